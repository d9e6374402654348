"""``mpcs score`` and ``mpcs detect`` in several processes print what one prints, once."""

import json
import math
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib
import pytest
import torch

from mpcs_torch.cli.app import run_app
from mpcs_torch.evaluation import evaluate  # noqa: F401  # imports torchmetrics once, before processes are forked
from mpcs_torch.processes import world
from mpcs_torch.scoring import chunks, write_predictions
from mpcs_torch.scoring.trials import text
from tests.processes.forked import forked_world, succeeded


def same(one: Any, other: Any) -> bool:
    """Whether values are equal up to the order of sums."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == pytest.approx(other, rel=1e-9, nan_ok=True)) if isinstance(one, float) else bool(one == other)


@pytest.mark.parametrize(
    ("rows", "options"),
    [(1, ""), (10, ""), (3001, ""), (3001, "--by site"), (3001, "--cluster patient --by site")],
)
def test_two_processes_score_files_as_one_does(
    rows: int, options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "VALUES", 3000)  # so that the files have several chunks
    generator = torch.Generator().manual_seed(0)
    target, paths = torch.randint(0, 3, (rows,), generator=generator), []
    for name in ("a", "b") if options else ("a",):
        probs = torch.randn(rows, 3, generator=generator).softmax(dim=1)
        paths.append(tmp_path / f"{name}.{'csv' if options else 'npz'}")
        write_predictions(paths[-1], probs, target, ["red", "yellow", "green"])
    for path in paths if options else ():
        header, *lines = path.read_text().splitlines()
        lines = [f"{line},s{row % 3},p{row // 5}" for row, line in enumerate(lines)]
        path.write_text("\n".join([f"{header},site,patient", *lines]))

    def score(joined: world.World) -> None:
        monkeypatch.setattr(world, "joined", lambda: nullcontext(joined))
        printed = tmp_path / f"{joined.size}-{joined.rank}.json"
        with printed.open("w") as output, redirect_stdout(output), pytest.raises(SystemExit) as stopped:
            run_app(["score", *map(str, paths), *options.split(), "--json"])
        assert not stopped.value.code

    for size in (1, 2):
        assert succeeded(forked_world(tmp_path, size, score))
    texts = ((tmp_path / f"{size}-0.json").read_text().replace("null", "NaN") for size in (1, 2))
    alone, first = map(json.loads, texts)
    assert (tmp_path / "2-1.json").read_text() == ""
    assert same(first, alone)


def detect(folder: Path, size: int, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[tuple[int, str, str]]:
    """Run ``mpcs detect`` in processes; return the status, the output and the errors of each."""

    def run(joined: world.World) -> None:
        monkeypatch.setattr(world, "joined", lambda: nullcontext(joined))
        out, err = (folder / f"{joined.rank}.{name}" for name in ("out", "err"))
        with out.open("w") as output, err.open("w") as errors, redirect_stdout(output), redirect_stderr(errors):
            with pytest.raises(SystemExit) as stopped:
                run_app(["detect", *arguments])
            (folder / f"{joined.rank}.status").write_text(str(stopped.value.code or 0))

    assert succeeded(forked_world(folder, size, run))
    names = ("status", "out", "err")
    texts = ([(folder / f"{rank}.{name}").read_text() for name in names] for rank in range(size))
    return [(int(status), out, err) for status, out, err in texts]


def told(text: str) -> dict[str, float]:
    found = json.loads(text)
    return {**found.pop("metrics"), **found}


TIED = [(round(math.sin(row) * 3), int(math.sin(3 * row) > 0.3)) for row in range(2000)]
FINE = [(math.sin(row) * 5 + math.sin(7 * row) - 2, int(math.sin(row) > 0.3)) for row in range(3000)]
INFINITE = [(score * 1e308 * 10 if abs(score) > 5 else score, label) for score, label in FINE]


FEW = [(1.0, 1), (0.5, 0), (0.2, 1)]


@pytest.mark.parametrize(
    ("rows", "size", "kind"),
    [(TIED, 2, "csv"), (TIED, 3, "pairs"), (INFINITE, 2, "text"), (FEW, 4, "csv"), (FEW, 4, "pairs")],
    ids=["tied", "tied-pairs", "infinite", "few", "few-pairs"],
)
def test_several_processes_measure_a_detector_as_one_does(
    rows: list[tuple[float, int]], size: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "VALUES", 500)  # so that the files have several batches
    monkeypatch.setattr(text, "ROWS", 300)
    lines = {
        "csv": ["score,label", *(f"{score},{label}" for score, label in rows)],
        "text": [f"{score} {label}" for score, label in rows],
        "pairs": [f"é{place} x {score}" for place, (score, _) in enumerate(rows)],
    }
    file = tmp_path / f"scores.{kind}"
    file.write_text("\n".join(lines[kind]))
    arguments = [str(file), "--json", "--llr", "--resamples", "3", "--point", "0.5", "--point", "0.02,5,1"]
    if kind == "pairs":
        labels = [f"é{place} x {label}" for place, (_, label) in enumerate(rows)]
        (tmp_path / "trials").write_text("\n".join(reversed(labels)))
        arguments += ["--trials", str(tmp_path / "trials")]
    ((_, alone, _),) = detect(tmp_path, 1, monkeypatch, *arguments)
    (status, first, _), *others = detect(tmp_path, size, monkeypatch, *arguments)
    assert status == 0
    assert others == [(0, "", "")] * (size - 1)
    found, expected = told(first), told(alone)
    for name in ("Cllr", "Cllr, low", "Cllr, high", "calibration loss"):
        assert found.pop(name) == pytest.approx(expected.pop(name), rel=1e-12)
    assert found == expected


def test_two_processes_draw_the_report_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(matplotlib.rcParams, "svg.hashsalt", "the same names in all drawings")
    file = tmp_path / "scores.txt"
    file.write_text("\n".join(f"{score} {label}" for score, label in FINE))
    page, texts = tmp_path / "page.html", []
    for size in (1, 2):
        arguments = (str(file), "--llr", "--resamples", "0", "--html", str(page), "--overwrite")
        (status, out, _), *_ = detect(tmp_path, size, monkeypatch, *arguments)
        assert status == 0
        assert out.endswith(f"wrote {page}\n")
        texts.append(page.read_text())
    one, other = texts
    assert len(one) > 100_000
    assert (one == other) is True  # or pytest would compare them line by line


@pytest.mark.parametrize(
    ("lines", "labels", "message"),
    [
        (["1 1"] * 5 + ["x 0"], None, "row 6, column score: must be a number, but is 'x'"),
        (["1 1"] * 6, None, "contains no non-target trial"),
        ([], None, "contains no rows"),
        ([f"{row} a 1" for row in range(6)], [f"{row} a {row % 2}" for row in range(9)], "has no scores for "),
        ([f"{row} a 1" for row in (*range(6), 3)], [f"{row} a {row % 2}" for row in range(6)], "3 a appears twice"),
    ],
)
def test_an_error_that_one_process_finds_ends_all_with_one_message(
    lines: list[str], labels: list[str] | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "ROWS", 1)
    (tmp_path / "s.txt").write_text("\n".join(lines))
    (tmp_path / "trials").write_text("\n".join(labels or []))
    extra = [] if labels is None else ["--trials", str(tmp_path / "trials")]
    found = detect(tmp_path, 2, monkeypatch, str(tmp_path / "s.txt"), *extra)
    assert [(status, out) for status, out, _ in found] == [(2, "")] * 2
    assert sum(err.count("mpcs: ") for _, _, err in found) == 1
    assert message in " ".join("".join(err for _, _, err in found).split())
