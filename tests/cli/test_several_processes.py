"""``mpcs score`` in several processes prints what one prints, once."""

import json
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib
import numpy
import pyarrow
import pytest
import torch
from pyarrow import csv, parquet

from mpcs_torch.cli.app import run_app
from mpcs_torch.evaluation import classifier_files as models
from mpcs_torch.evaluation import evaluate  # noqa: F401  # imports torchmetrics once, before processes are forked
from mpcs_torch.evaluation.files import chunks
from mpcs_torch.processes import world
from tests.processes.forked import forked_world, succeeded


def same(one: Any, other: Any) -> bool:
    """Whether values are equal up to the order of sums."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == pytest.approx(other, rel=1e-9, nan_ok=True)) if isinstance(one, float) else bool(one == other)


def score(folder: Path, size: int, monkeypatch: pytest.MonkeyPatch, *arguments: object) -> list[tuple[int, str, str]]:
    """Run ``mpcs score`` in processes; return the status, the output and the errors of each."""

    def run_one(joined: world.World) -> None:
        monkeypatch.setattr(world, "joined", lambda: nullcontext(joined))
        out, err = (folder / f"{joined.rank}.{name}" for name in ("out", "err"))
        with out.open("w") as output, err.open("w") as errors, redirect_stdout(output), redirect_stderr(errors):
            with pytest.raises(SystemExit) as stopped:
                run_app(["score", *map(str, arguments)])
            (folder / f"{joined.rank}.status").write_text(str(stopped.value.code or 0))

    assert succeeded(forked_world(folder, size, run_one))
    names = ("status", "out", "err")
    texts = ([(folder / f"{rank}.{name}").read_text() for name in names] for rank in range(size))
    return [(int(status), out, err) for status, out, err in texts]


@pytest.mark.parametrize(
    ("rows", "kind", "options"),
    [
        (1, "npz", ""),
        (10, "npz", ""),
        (3001, "npz", ""),
        (3001, "csv", "--by site"),
        (3001, "parquet", "--by site"),
        (3001, "parquet", "--cluster patient --by site"),
        (3001, "parquet", "--by site --id-column name"),
        (3001, "parquet", "--weight w --prevalence red=0.9,yellow=0.06,green=0.04"),
        (3001, "parquet", "--unit patient --combine worst --weight size"),
        (3001, "parquet", "--frequency size"),
    ],
)
def test_processes_score_files_as_one_does(
    rows: int, kind: str, options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "VALUES", 3000)  # so that the files have several chunks
    monkeypatch.setattr(models, "MIN_SHARED", 1000)
    generator = torch.Generator().manual_seed(0)
    target, paths = torch.randint(0, 3, (rows,), generator=generator), []
    for name in ("a", "b") if options else ("a",):
        probs = torch.randn(rows, 3, generator=generator, dtype=torch.float64).softmax(dim=1).round(decimals=4)
        paths.append(tmp_path / f"{name}.{kind}")
        if kind == "npz":
            numpy.savez(paths[-1], preds=probs, target=target)
            continue
        columns = {name: probs[:, place].numpy() for place, name in enumerate(("red", "yellow", "green"))}
        columns |= {
            "target": [("red", "yellow", "green")[label] for label in target],
            "site": [f"s{row % 3 + row // 2000}" for row in range(rows)],
        }
        columns |= {"w": [1 + row % 7 / 10 for row in range(rows)], "size": [1 + row // 5 % 3 for row in range(rows)]}
        columns |= {"patient": [f"p{row // 5}" for row in range(rows)], "name": [f"r{row}" for row in range(rows)]}
        table = pyarrow.table(columns)
        parquet.write_table(table, paths[-1], row_group_size=700) if kind == "parquet" else csv.write_csv(
            table, paths[-1]
        )
    printed = []
    for size in (1, 2, 3):
        (status, out, err), *others = score(tmp_path, size, monkeypatch, *paths, *options.split(), "--json")
        assert status == 0, err
        assert [(status, out) for status, out, _ in others] == [(0, "")] * (size - 1)
        printed.append(json.loads(out.replace("null", "NaN")))
    assert same(printed[1], printed[0])
    assert same(printed[2], printed[0])


def test_an_error_that_one_process_finds_ends_all_with_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "MIN_SHARED", 10)
    probs, target = torch.full((40, 2), 0.5), torch.arange(40) % 2
    probs[33] = 0.7
    path = tmp_path / "a.npz"
    numpy.savez(path, preds=probs.numpy(), target=target.numpy())
    found = score(tmp_path, 2, monkeypatch, path)
    assert [(status, out) for status, out, _ in found] == [(2, "")] * 2
    errors = "".join(err for *_, err in found)
    assert errors.count("mpcs: ") == 1
    assert "row 34: the scores must sum to 1, but sum to 1.4" in " ".join(errors.split())


def test_two_processes_draw_the_report_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(matplotlib.rcParams, "svg.hashsalt", "the same names in all drawings")
    monkeypatch.setattr(models, "MIN_SHARED", 10)
    probs = torch.rand(600, 2, generator=torch.Generator().manual_seed(0)).softmax(1)
    numpy.savez(tmp_path / "a.npz", preds=probs, target=torch.arange(600) % 2)
    texts = []
    for size in (1, 2):
        page = tmp_path / "page.html"
        (status, *_), *_ = score(tmp_path, size, monkeypatch, tmp_path / "a.npz", "--html", page, "--overwrite")
        assert status == 0
        texts.append(page.read_text())
    one, other = texts
    assert len(one) > 100_000
    assert (one == other) is True  # or pytest would compare them line by line
