"""A run of several processes has the records of a run of one."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from mpcs_torch.processes import ALONE, World


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(2, marks=pytest.mark.exhaustive),
        pytest.param(3, marks=pytest.mark.slow),
        pytest.param(4, marks=pytest.mark.exhaustive),
    ],
)
def test_records_are_those_of_one_process(tmp_path: Path, size: int) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.trainer.distributed_runs",
        str(tmp_path),
        str(size),
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{size} processes, largest relative difference" in result.stdout


@pytest.mark.parametrize("count", [0, 1, 3, 4, 10])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_every_row_has_one_process(count: int, size: int) -> None:
    shares = [World(rank, size).rows(count) for rank in range(size)]
    assert [row for share in shares for row in range(count)[share]] == list(range(count))
    lengths = [share.stop - share.start for share in shares]
    assert max(lengths) - min(lengths) <= 1


def test_a_process_alone_exchanges_with_itself() -> None:
    rows = torch.ones(3, 2)
    assert ALONE.gather_rows(rows, 3) is rows
    assert ALONE.any_set([True, False], rows.device) == [True, False]
    ALONE.add_up([rows])
    assert rows.sum() == 6
    assert ALONE.from_first(lambda: 7) == 7
    assert ALONE.gather(lambda: 7) == [7]
