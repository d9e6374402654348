# Each target works alone on a fresh machine with Python >= 3.11: it makes .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench clean

demo: $(VENV)/.train
	$(BIN)/mpcs demo --overwrite

test: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python -m tests.benchmarks.bench

$(VENV)/.train: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[train]'
	touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.train
	$(BIN)/pip install --quiet --editable '.[train,dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist
