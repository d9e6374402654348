"""Table II, from records."""

import pytest
from scipy import stats

from mpcs_torch.paper.published_values import (
    BENCHMARKS,
    correlations,
    mean_interval,
    seed_intervals,
    table_2,
)
from mpcs_torch.trainer.result import Record

VALUES = {
    "mpcs_count": [3, 1, 4, 1, 5, 9, 2, 6],
    "accuracy": [0.5, 0.5, 0.1, 0.9, 0.2, 0.2, 0.2, 0.3],
}


def records(columns: dict[str, list[float]]) -> list[Record]:
    return [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ]


RUN = records(
    {
        **VALUES,
        "mpcs": VALUES["mpcs_count"],
        **dict.fromkeys(BENCHMARKS, VALUES["accuracy"]),
    }
)
RHO = stats.spearmanr(VALUES["mpcs_count"], VALUES["accuracy"]).statistic


def test_spearman_ranks_ties_in_the_middle() -> None:
    assert correlations(RUN)[0] == pytest.approx(RHO, abs=1e-6)


def test_table_2_puts_the_papers_values_beside_ours() -> None:
    seeds = {"exp02": seed_intervals([RUN, RUN])}
    (row,) = table_2({"exp02": RUN}, seeds).rows
    assert row[:2] == ["exp02", f"{RHO:.3f} (-0.989)"]
    assert row[-1] == f"{RHO:.3f} [{RHO:.3f}, {RHO:.3f}], runs {RHO:.3f} to {RHO:.3f}"


def test_an_experiment_that_the_table_lacks_stands_alone() -> None:
    assert "(" not in table_2({"exp01-breast-cancer": RUN}, {}).rows[0][1]


def test_an_interval_holds_its_mean_and_narrows_with_more_runs() -> None:
    few, many = (
        mean_interval([1.0, 2.0, 4.0, 5.0]),
        mean_interval([1.0, 2.0, 4.0, 5.0] * 10),
    )
    assert few.mean == many.mean == 3.0
    assert few.low < many.low < 3.0 < many.high < few.high
    assert (few.runs, few.lowest, few.highest) == (4, 1.0, 5.0)
