"""Table III: what is measured, and how it stands beside the paper's times."""

from pathlib import Path

import pytest

from mpcs_torch.paper.experiments import measure_costs
from mpcs_torch.paper.published_values import TIMED, MetricCosts, table_3
from mpcs_torch.trainer.folder import run_in_folder
from tests.trainer.toy import toy_config, toy_data


def costs(forward: float, **alone: float) -> MetricCosts:
    return MetricCosts(forward, {name: alone.get(name, 1.0) for name in TIMED})


def test_every_metric_takes_time_and_the_forward_pass_does_too(tmp_path: Path) -> None:
    run, _ = run_in_folder(toy_config(), toy_data(), tmp_path / "toy")
    measured = measure_costs(run)
    assert set(measured.alone) == set(TIMED)
    assert all(
        0 < milliseconds < 1000
        for milliseconds in (measured.forward, *measured.alone.values())
    )


def test_a_metric_costs_its_own_time_and_the_pass_as_a_multiple_of_accuracys() -> None:
    assert costs(9.0, mpcs=3.0).relative("mpcs") == pytest.approx(12 / 10)
    assert costs(9.0).relative("accuracy") == 1.0


def test_table_3_shows_time_alone_and_both_ratios() -> None:
    (row,) = table_3({"exp03": costs(9.0, mpcs=3.0)}).rows
    assert row[:3] == ["exp03", "9 ms", "1 ms, x1.000 (x1.000)"]
    assert row[-1] == "3 ms, x1.200 (x19.024)"
