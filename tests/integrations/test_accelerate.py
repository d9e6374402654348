"""The loop under Accelerate takes the path of the plain loop, alone and in two processes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mpcs_torch.learning import CheckpointSelector
from tests.integrations import plain_loop as plain
from tests.integrations.accelerate_loop import accelerate_loop


@pytest.mark.parametrize("prepares", [False, True])
def test_pick_weights_and_learning_rates_are_those_of_the_plain_loop(
    tmp_path: Path, prepares: bool
) -> None:
    expected = plain.plain_loop(tmp_path / "plain")
    rates, selector = accelerate_loop(
        tmp_path, prepares=prepares
    )  # one process may prepare the scheduler
    scores = [epoch.values["mpcs"] for epoch in selector.epochs]
    plain.assert_same(expected, selector, selector.load_best(), rates, scores)


def test_a_registered_scheduler_is_saved_and_loaded(tmp_path: Path) -> None:
    expected = plain.plain_loop(tmp_path / "plain")
    accelerate_loop(tmp_path)
    rates, _ = accelerate_loop(tmp_path, resumes_at=3)
    assert rates == expected.rates[3:]


@pytest.mark.slow
def test_two_processes_take_the_same_path_count_once_and_refuse_repeated_steps(
    tmp_path: Path,
) -> None:
    expected = plain.plain_loop(tmp_path / "plain")
    command = [sys.executable, "-m", "tests.integrations.accelerate_loop", str(tmp_path)]
    root = Path(__file__).parents[2]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    for rank in (0, 1):
        found = json.loads((tmp_path / f"{rank}.json").read_text())
        assert found["registered"] == pytest.approx(expected.rates, rel=1e-4)
        assert found["prepared"] == pytest.approx(expected.rates, rel=1e-4)
        assert found["errors"] == [
            4.0,
            4.0,
        ]  # not twice what the other process has seen too
        assert found["repeated"].startswith(
            "Accelerate would step MPCSLR once for each process"
        )
    epochs = CheckpointSelector.open(tmp_path / "registered" / "selector-0").epochs
    assert [epoch.number for epoch in epochs] == list(range(plain.EPOCHS))
    assert plain.rule().ranking(epochs)[0].number == expected.picked
