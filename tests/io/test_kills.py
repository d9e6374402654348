"""Commands that are killed at random moments leave the old output or the whole new one."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.processes.forked import forked
from tests.test_power_failures import WHOLE_FILES

pytestmark = pytest.mark.skipif(os.name != "posix", reason="forks")
NAMES = [
    "decide apply IN/rule.pt IN/p#.csv --out OUT/d.csv",
    "calibrate apply IN/cal.pt IN/p#.csv --out OUT/p.parquet",
    "decide fit IN/p#.csv --concern IN/c.yaml --out OUT/rule.pt",
]


def whole_outputs(name: str, folder: Path) -> dict[str, set[bytes]]:
    """Return the contents that each output of a command may have: those of its two versions."""
    contents: dict[str, set[bytes]] = {}
    for number in (1, 2):
        WHOLE_FILES[name](folder, number)
        for path in folder.iterdir():
            contents.setdefault(path.name, set()).add(path.read_bytes())
    return contents


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kills", [20, pytest.param(270, marks=pytest.mark.exhaustive)])
def test_a_killed_command_leaves_the_old_output_or_the_whole_new_one(
    name: str, kills: int, tmp_path: Path
) -> None:
    reference, folder = tmp_path / "reference", tmp_path / "out"
    reference.mkdir()
    folder.mkdir()
    started = time.perf_counter()
    allowed = whole_outputs(name, reference)
    span = (time.perf_counter() - started) / 2  # the longest wait before a kill, in seconds
    chance = random.Random(0)
    killed = 0
    for number in range(kills):
        child = forked(lambda number=number: WHOLE_FILES[name](folder, 1 + number % 2))
        time.sleep(chance.uniform(0, span))
        os.kill(child, signal.SIGKILL)
        interrupted = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        killed += interrupted
        # The first run imports, and other work on the machine comes and goes: follow what a command takes now.
        span *= 1.1 if interrupted else 0.8
        for path in folder.iterdir():
            if not path.name.startswith("."):
                assert path.read_bytes() in allowed[path.name], (
                    f"{path.name} is neither the old nor the new one"
                )
    assert killed > kills / 3, "the commands were not interrupted"
    WHOLE_FILES[name](folder, 1)
    assert {path.name for path in folder.iterdir() if not path.name.startswith(".")} >= set(
        allowed
    )
