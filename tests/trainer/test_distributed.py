"""A run of several processes has the records of a run of one, also after some of them were killed."""

from pathlib import Path

import pytest

from mpcs_torch.processes import World
from mpcs_torch.trainer.result import read_records
from tests.processes.run_python import run_python
from tests.trainer.distributed_runs import TOLERANCE
from tests.trainer.toy import contents


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(2, marks=pytest.mark.exhaustive),
        pytest.param(3, marks=pytest.mark.slow),
        pytest.param(4, marks=pytest.mark.exhaustive),
    ],
)
def test_records_are_those_of_one_process(tmp_path: Path, size: int) -> None:
    run_python("-m", "tests.trainer.distributed_runs", tmp_path, size)


@pytest.mark.exhaustive
def test_killed_runs_go_on(tmp_path: Path) -> None:
    run_python("-m", "tests.trainer.kill_training", tmp_path, 10)


CONFIG = """
data: {name: digits}
model: {path: "tests.trainer.launched:fragile"}
training: {batch_size: 50, save_seconds: 0}
epochs: {count: 12, every: 7}
selector: {by: mpcs}
device: {precision: 64-true}
name: run
"""


@pytest.mark.exhaustive
def test_a_run_that_torchrun_restarts_is_that_of_two_processes_and_of_one(
    tmp_path: Path,
) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    train = ["-m", "mpcs_torch", "train", tmp_path / "config.yaml", "--out"]
    for name, options in (
        ("one", []),
        ("two", ["--nproc-per-node=2"]),
        ("restarted", ["--nproc-per-node=2", "--max-restarts=1"]),
    ):
        run_python("-m", "torch.distributed.run", *options, *train, tmp_path / name)
    assert contents(tmp_path / "restarted") == contents(tmp_path / "two")
    records = [read_records(tmp_path / name / "run/records.csv") for name in ("one", "two")]
    for row, other in zip(*records, strict=True):
        assert row == pytest.approx(other, rel=TOLERANCE, abs=0.0)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 10])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_every_row_has_one_process(count: int, size: int) -> None:
    shares = [World(rank, size).rows(count) for rank in range(size)]
    assert [row for share in shares for row in range(count)[share]] == list(range(count))
    lengths = [share.stop - share.start for share in shares]
    assert max(lengths) - min(lengths) <= 1
