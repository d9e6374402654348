"""``mpcs score`` in several processes prints what one prints, once."""

import json
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import torch

from mpcs_torch.cli.app import run_app
from mpcs_torch.evaluation import evaluate  # noqa: F401  # imports torchmetrics once, before processes are forked
from mpcs_torch.processes import world
from mpcs_torch.scoring import chunks, write_predictions
from tests.cli.test_cli import one_line, run
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


def test_detectors_are_measured_by_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.txt").write_text("1 1\n0 0\n")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert run("detect", tmp_path / "s.txt") == 2
    assert "one process measures detectors: start it without torchrun" in one_line(capsys.readouterr().err)
