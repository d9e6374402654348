"""Table III: what is measured, and how it stands beside the paper's times."""

from pathlib import Path

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
    assert min(measured.forward, *measured.alone.values()) > 0
    assert max(measured.forward, *measured.alone.values()) < 1000, "milliseconds"


def test_table_3_shows_time_alone_and_both_ratios() -> None:
    (row,) = table_3({"exp03": costs(9.0, mpcs=3.0)}).rows
    assert row[:3] == ["exp03", "9 ms", "1 ms, x1.000 (x1.000)"]
    assert row[-1] == "3 ms, x1.200 (x19.024)"
