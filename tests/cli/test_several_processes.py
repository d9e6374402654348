"""``mpcs score`` in two processes prints what one prints, once."""

import json
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

import pytest
import torch

from mpcs_torch.cli.app import run_app
from mpcs_torch.processes import world
from mpcs_torch.scoring import chunks, write_predictions
from tests.processes.forked import forked_world, succeeded


@pytest.mark.parametrize("rows", [1, 10, 3001])
def test_two_processes_score_a_file_as_one_does(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "VALUES", 3000)  # so that the file has several chunks
    generator = torch.Generator().manual_seed(0)
    probs = torch.randn(rows, 3, generator=generator).softmax(dim=1)
    target = torch.randint(0, 3, (rows,), generator=generator)
    write_predictions(tmp_path / "dev.npz", probs, target, ["red", "yellow", "green"])

    def score(joined: world.World) -> None:
        monkeypatch.setattr(world, "joined", lambda: nullcontext(joined))
        printed = tmp_path / f"{joined.size}-{joined.rank}.json"
        with printed.open("w") as output, redirect_stdout(output), pytest.raises(SystemExit) as stopped:
            run_app(["score", str(tmp_path / "dev.npz"), "--json"])
        assert not stopped.value.code

    for size in (1, 2):
        assert succeeded(forked_world(tmp_path, size, score))
    texts = ((tmp_path / f"{size}-0.json").read_text().replace("null", "NaN") for size in (1, 2))
    alone, first = map(json.loads, texts)
    assert (tmp_path / "2-1.json").read_text() == ""
    assert first.pop("metrics") == pytest.approx(alone.pop("metrics"), rel=1e-12, nan_ok=True)
    assert first.pop("per_class") == {
        name: pytest.approx(row, nan_ok=True) for name, row in alone.pop("per_class").items()
    }
    assert first == alone
