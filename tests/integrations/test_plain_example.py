"""The loop of the page `In your loop` goes on after a crash as if nothing had happened."""

import runpy
from pathlib import Path

import pytest
import torch

from tests.power_failure import image_of

MAIN = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "plain_pytorch.py"))[
    "main"
]


@pytest.mark.parametrize("crashes", [(1,), (2, 5), (4, 5, 6)])
def test_the_loop_resumes_and_stops_as_the_unbroken_one(
    tmp_path: Path, crashes: tuple[int, ...]
) -> None:
    unbroken = MAIN(tmp_path / "unbroken", 40)
    assert unbroken.should_stop
    for epochs in (*crashes, 40):
        resumed = MAIN(tmp_path / "resumed", epochs)
    assert len(resumed.epochs) == len(unbroken.epochs) < 40
    assert image_of(resumed.folder) == image_of(unbroken.folder)
    torch.testing.assert_close(
        resumed.load_best()["model"], unbroken.load_best()["model"], rtol=0.0, atol=0.0
    )
