"""Tables of comparisons, and their sentences."""

import re

import pytest
import torch

from mpcs_torch.functional import (
    Measure,
    Resamples,
    compare_systems,
    holm_adjusted,
    mcnemar_test,
    mean_statistic,
    paired_bootstrap,
    rate_measure,
    summarize_comparisons,
)
from mpcs_torch.functional.comparison.bootstrap import PairedDifference
from mpcs_torch.functional.comparison.verdict import verdict_of

VALUES = torch.rand(3, 80, generator=torch.Generator().manual_seed(0)) + torch.tensor([[0.0], [0.1], [0.6]])
MEAN = Measure("mean", [mean_statistic(row) for row in VALUES])
ERRORS = rate_measure("error rate", list(VALUES > 0.8))


def test_each_pair_is_compared_by_each_metric_on_the_same_resamples() -> None:
    calls: list[int] = []
    found = compare_systems(["A", "B", "C"], [MEAN, ERRORS], Resamples(80), advance=calls.append)
    assert sum(calls) == 1000
    pairs = [("A", "B"), ("A", "C"), ("B", "C")]
    assert [(each.measure, each.first, each.second) for each in found] == [
        (name, *pair) for name in ("mean", "error rate") for pair in pairs
    ]
    alone = paired_bootstrap(MEAN.statistics[0], MEAN.statistics[2], Resamples(80))
    assert found[1].found == alone
    p_values = torch.tensor([each.found.p_value for each in found], dtype=torch.float64)
    assert [each.adjusted_p_value for each in found] == holm_adjusted(p_values).tolist()


def test_rates_of_independent_samples_are_tested_by_mcnemar() -> None:
    wrong = ERRORS.wrong
    assert wrong is not None
    [single] = compare_systems(["A", "B"], [rate_measure("error rate", wrong[:2])], Resamples(80))
    assert single.found.p_value == mcnemar_test(wrong[0], wrong[1]).p_value
    clustered = Resamples(80, clusters=torch.arange(80) // 4)
    [shared] = compare_systems(["A", "B"], [rate_measure("error rate", wrong[:2])], clustered)
    assert shared.found == paired_bootstrap(*ERRORS.statistics[:2], clustered)


@pytest.mark.parametrize(("errors", "better"), [(6, None), (20, "A")], ids=["only one p-value", "adjusted, too"])
def test_a_winner_is_named_by_the_adjusted_p_value(errors: int, better: str | None) -> None:
    """Of 6 and 0 errors, p = 0.03 is shown by two systems alone, but three times that by three systems."""
    rows = torch.arange(80)
    wrong = [rows < 0, rows < errors, (rows >= 40) & (rows < 40 + errors)]
    measure = rate_measure("error rate", wrong)
    found = compare_systems(["A", "B", "C"], [measure], Resamples(80))
    assert [each.better for each in found] == [better, better, None]
    for each in found[:2]:
        assert each.found.p_value < 0.05
        assert (each.adjusted_p_value < 0.05) == (better is not None)
        assert ("after correction for 3 comparisons" in each.verdict) == (better is None)
    [told] = summarize_comparisons(found)
    assert told == (
        "By error rate, the data do not show that any of A, B and C is better than another."
        if better is None
        else "By error rate, A is better than B and C."
    )
    [alone] = compare_systems(["A", "B"], [rate_measure("error rate", wrong[:2])], Resamples(80))
    assert alone.better == "A"
    upside_down = rate_measure("accuracy", [~each for each in wrong[:2]])._replace(lower_is_better=False)
    assert compare_systems(["A", "B"], [upside_down], Resamples(80))[0].better == "A"


EER = Measure("EER", [], is_rate=True)
AREA = Measure("area under the ROC", [], lower_is_better=False)


@pytest.mark.parametrize(
    ("measure", "found", "p_value", "sentence"),
    [
        (
            EER,
            PairedDifference(0.04, 0.031, -0.009, -0.014, -0.004, 0.001),
            0.006,
            "B has a lower EER than A: 3.1 % against 4 %, a difference of 0.9 points (95 % interval 0.4 to 1.4).",
        ),
        (
            EER,
            PairedDifference(0.031, 0.04, 0.009, 0.004, 0.014, 0.001),
            0.006,
            "A has a lower EER than B: 3.1 % against 4 %, a difference of 0.9 points (95 % interval 0.4 to 1.4).",
        ),
        (
            AREA,
            PairedDifference(0.8, 0.9, 0.1, 0.05, 0.15, 0.001),
            0.05,
            "B has a higher area under the ROC than A: 0.9 against 0.8, a difference of 0.1 "
            "(95 % interval 0.05 to 0.15).",
        ),
        (
            AREA,
            PairedDifference(0.9, 0.8, -0.1, -0.15, -0.05, 0.001),
            0.05,
            "A has a higher area under the ROC than B: 0.9 against 0.8, a difference of 0.1 "
            "(95 % interval 0.05 to 0.15).",
        ),
        (
            EER,
            PairedDifference(0.04, 0.039, -0.001, -0.006, 0.004, 0.6),
            1.0,
            "The data do not show a difference in EER between A and B: 4 % against 3.9 %, "
            "B minus A is -0.1 points (95 % interval -0.6 to 0.4).",
        ),
        (
            EER,
            PairedDifference(0.04, 0.03, -0.01, -0.018, -0.002, 0.02),
            0.12,
            "The data do not show a difference in EER between A and B after correction for 6 comparisons: "
            "4 % against 3 %, B minus A is -1 points (95 % interval -1.8 to -0.2).",
        ),
        (
            AREA,
            PairedDifference(0.5, 0.5, 0.0, -0.0, 0.0, 1.0),
            1.0,
            "The data do not show a difference in area under the ROC between A and B: 0.5 against 0.5, B minus A is 0.",
        ),
        (
            AREA,
            PairedDifference(0.0, 1.0, 1.0, 0.9, 1.0, 0.001),
            0.001,
            "B has a higher area under the ROC than A: 1 against 0, a difference of 1 (95 % interval 0.9 to 1).",
        ),
        (
            Measure("Cllr", []),
            PairedDifference(0.5, torch.inf, torch.inf, -torch.inf, torch.inf, 1.0),
            1.0,
            "The data do not show a difference in Cllr between A and B: 0.5 against inf.",
        ),
        (
            Measure("actual cost, p = 0.5", []),
            PairedDifference(0.5, torch.inf, torch.inf, -torch.inf, torch.inf, 1.0),
            1.0,
            "The data do not show a difference in actual cost, p = 0.5, between A and B: 0.5 against inf.",
        ),
    ],
)
def test_verdicts_are_sentences(measure: Measure, found: PairedDifference, p_value: float, sentence: str) -> None:
    assert verdict_of("A", "B", measure, found, p_value, 6, 0.05) == sentence


def test_one_system_and_missing_statistics_are_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("systems must be at least 2 and measures at least 1")):
        compare_systems(["A"], [Measure("mean", MEAN.statistics[:1])], Resamples(80))
    with pytest.raises(ValueError, match=re.escape("statistic for each of the 2 systems, but mean holds 3.")):
        compare_systems(["A", "B"], [MEAN], Resamples(80))
