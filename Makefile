# Each target works alone on a fresh machine with Python >= 3.11: it makes .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow test-lowest mutants package lint docs bench clean

demo: $(VENV)/.train
	$(BIN)/mpcs demo --overwrite

test: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# The tests that `make test` leaves out because each takes many seconds: replays, training runs, pages with many commands.
test-slow: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m 'slow and not exhaustive'

# Warnings of old packages about newer ones, and tests whose oracle or framework is only in newer versions.
OLD_WARNINGS := -W ignore::DeprecationWarning -W 'ignore:The given buffer is not writable:UserWarning'
NEWER_ORACLES := --ignore tests/calibration/test_class_calibration.py --ignore tests/integrations \
	--ignore tests/test_types.py --ignore tests/test_examples.py --ignore tests/docs \
	--ignore tests/trainer/test_loggers.py --ignore mpcs_torch/integrations

# The lowest versions that pyproject.toml allows, in an environment of their own.
test-lowest:
	$(PYTHON) -m venv --clear $(VENV)-lowest
	$(VENV)-lowest/bin/python tests/packages/lowest_versions.py > $(VENV)-lowest/constraints.txt
	$(VENV)-lowest/bin/pip install --quiet --editable '.[test]' --constraint $(VENV)-lowest/constraints.txt
	OMP_NUM_THREADS=1 $(VENV)-lowest/bin/python -m pytest -n 2 --dist worksteal $(OLD_WARNINGS) $(NEWER_ORACLES)

# COUNT mutants of the core, drawn with SEED, against the tests that reach them; a sample of 100 takes ten minutes, after
# a run of all tests that finds out which reach what (tests of time may fail under coverage).
COUNT ?= 100
SEED ?= 0
mutants: build/mutants.coverage
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutants $< $(COUNT) $(SEED)

build/mutants.coverage: $(VENV)/.dev $(shell find mpcs_torch tests -name '*.py')
	mkdir -p build
	-OMP_NUM_THREADS=1 COVERAGE_FILE=$@ $(BIN)/python -m pytest --quiet -n 2 --dist worksteal \
		--cov=mpcs_torch --cov-context=test --cov-report=

# Wheel and sdist, used in a folder without the repository.
package: $(VENV)/.dev
	rm -rf build/package
	$(BIN)/python -m tests.packages.smoke build/package

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --quiet -m types tests/test_types.py

# The site of docs/, in build/site: open build/site/index.html. A broken link or anchor fails.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.bench

$(VENV)/.train: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[train]'
	touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.train
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-lowest build dist
