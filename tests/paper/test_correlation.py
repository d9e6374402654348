"""Table II, from records."""

import pytest
from scipy import stats

from mpcs_torch.paper.published_values import (
    BENCHMARKS,
    TABLE_2,
    mean_interval,
    seed_intervals,
    table_2,
)

SCORES = [3, 1, 4, 1, 5, 9, 2, 6]
VALUES = {
    name: [(place * place + number) % 5 for place in range(8)]
    for number, name in enumerate(BENCHMARKS)
}
"""Values of each metric, with ties."""
RUN = [
    {"mpcs": score, "mpcs_count": score, **{name: VALUES[name][place] for name in VALUES}}
    for place, score in enumerate(SCORES)
]


@pytest.mark.parametrize("name", TABLE_2)
def test_table_2_puts_the_papers_values_beside_correlations_of_ranks(name: str) -> None:
    rho = {
        metric: f"{stats.spearmanr(SCORES, values).statistic:.3f}"
        for metric, values in VALUES.items()
    }
    table = table_2({name: RUN}, {name: seed_intervals([RUN, RUN])})
    assert table.header == ["ours (paper)", *BENCHMARKS, "accuracy, over seeds"]
    [[experiment, *cells, seeds]] = table.rows
    assert experiment == name
    printed = dict(zip(BENCHMARKS, TABLE_2[name], strict=True))
    assert cells == [f"{rho[metric]} ({value:.3f})" for metric, value in printed.items()]
    of_seeds = rho["accuracy"]
    assert seeds == f"{of_seeds} [{of_seeds}, {of_seeds}], runs {of_seeds} to {of_seeds}"


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
