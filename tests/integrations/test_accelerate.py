"""The loop under Accelerate takes the path of the plain loop, alone and in two processes."""

import json
from pathlib import Path

import pytest

from mpcs_torch.learning import CheckpointSelector
from tests.integrations import plain_loop as plain
from tests.integrations.accelerate_loop import accelerate_loop
from tests.processes.run_python import run_python


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
    run_python("-m", "tests.integrations.accelerate_loop", tmp_path)
    for rank in (0, 1):
        outcomes = json.loads((tmp_path / f"{rank}.json").read_text())
        for name in ("registered", "prepared"):
            assert outcomes[name] == pytest.approx(expected.rates, rel=1e-4)
        # Not twice the errors that the other process has seen too.
        assert outcomes["errors"] == [4.0, 4.0]
        assert outcomes["repeated"].startswith("Accelerate would step MPCSLR once for each")
    epochs = CheckpointSelector.open(tmp_path / "registered" / "selector-0").epochs
    assert [epoch.number for epoch in epochs] == list(range(plain.EPOCHS))
    assert plain.rule().ranking(epochs)[0].number == expected.picked
