"""Comparisons of systems, and their sentences."""

import re
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.stats import norm

from mpcs_torch.functional import (
    Comparison,
    PairedDifference,
    holm_adjusted,
    sign_flip_test,
    summarize_comparisons,
)
from mpcs_torch.functional.comparison.significance import ComparedBy, with_verdicts


def compared(measure: ComparedBy, wrong: dict[str, torch.Tensor]) -> list[Comparison]:
    """Compare systems by the share of samples that they got wrong."""
    rows = []
    for (a, one), (b, other) in combinations(wrong.items(), 2):
        values = [each.double().mean().item() for each in (one, other)]
        change = values[1] - values[0]
        p_value = sign_flip_test(one.double() - other.double())
        rows.append(
            (
                a,
                b,
                measure,
                PairedDifference(*values, change, change - 0.1, change + 0.1, p_value),
            )
        )
    return with_verdicts(rows, 0.95)


RATE = ComparedBy("error rate", is_rate=True)


@pytest.mark.parametrize(
    ("errors", "better"), [(6, None), (20, "A")], ids=["only one p-value", "adjusted, too"]
)
def test_a_winner_is_named_by_the_adjusted_p_value(errors: int, better: str | None) -> None:
    """Of 6 and 0 errors, p = 0.03 is shown by two systems alone, but three times that by three systems."""
    rows = torch.arange(80)
    wrong = {"A": rows < 0, "B": rows < errors, "C": (rows >= 40) & (rows < 40 + errors)}
    found = compared(RATE, wrong)
    assert [(each.measure, each.first, each.second) for each in found] == [
        ("error rate", *pair) for pair in combinations("ABC", 2)
    ]
    p_values = torch.tensor([each.paired.p_value for each in found], dtype=torch.float64)
    assert [each.adjusted_p_value for each in found] == holm_adjusted(p_values).tolist()
    assert [each.better for each in found] == [better, better, None]
    for each in found[:2]:
        assert each.paired.p_value < 0.05
        assert (each.adjusted_p_value < 0.05) == (better is not None)
        assert ("after correction for 3 comparisons" in each.verdict) == (better is None)
    summary = "By error rate, A is better than B and C."
    if better is None:
        summary = "By error rate, the data do not show that any of A, B and C is better than another."
    assert summarize_comparisons(found) == [summary]
    [alone] = compared(RATE, {"A": wrong["A"], "B": wrong["B"]})
    assert alone.better == "A"
    [upside_down] = compared(
        RATE._replace(lower_is_better=False), {"A": ~wrong["A"], "B": ~wrong["B"]}
    )
    assert upside_down.better == "A"


EER = ComparedBy("EER", is_rate=True)
AREA = ComparedBy("area under the ROC", lower_is_better=False)


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
            "B minus A is -0.1 points (95 % interval -0.6 to 0.4). "
            "One of about 1 points would have been shown with a chance of 9 in 10.",
        ),
        (
            EER,
            PairedDifference(0.04, 0.03, -0.01, -0.018, -0.002, 0.02),
            0.12,
            "The data do not show a difference in EER between A and B after correction for 6 comparisons: "
            "4 % against 3 %, B minus A is -1 points (95 % interval -1.8 to -0.2); "
            "the interval, of this comparison alone, excludes 0. "
            "One of about 1.6 points would have been shown with a chance of 9 in 10.",
        ),
        (
            EER,
            PairedDifference(0.04, 0.03, -0.01, -0.018, -0.002, 0.057),
            0.12,
            "The data do not show a difference in EER between A and B: "
            "4 % against 3 %, B minus A is -1 points (95 % interval -1.8 to -0.2); "
            "the interval, by another method than p = 0.057, excludes 0. "
            "One of about 1.6 points would have been shown with a chance of 9 in 10.",
        ),
        (
            EER,
            PairedDifference(0.04, 0.03, -0.01, -0.021, 0.001, 0.004),
            0.02,
            "B has a lower EER than A: 3 % against 4 %, a difference of 1 points (95 % interval -0.1 to 2.1); "
            "the interval, by another method than p = 0.004, contains 0.",
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
            ComparedBy("Cllr"),
            PairedDifference(0.5, torch.inf, torch.inf, -torch.inf, torch.inf, 1.0),
            1.0,
            "The data do not show a difference in Cllr between A and B: 0.5 against inf.",
        ),
        (
            ComparedBy("actual cost, p = 0.5"),
            PairedDifference(0.5, torch.inf, torch.inf, -torch.inf, torch.inf, 1.0),
            1.0,
            "The data do not show a difference in actual cost, p = 0.5, between A and B: 0.5 against inf.",
        ),
    ],
)
def test_verdicts_are_sentences(
    measure: ComparedBy, found: PairedDifference, p_value: float, sentence: str
) -> None:
    assert Comparison("A", "B", measure, found, p_value, 6, 0.05).verdict == sentence


@pytest.mark.parametrize("comparisons", [1, 5])
def test_the_difference_that_is_named_is_shown_in_nine_of_ten_samples(
    comparisons: int,
) -> None:
    paired = PairedDifference(1.0, 1.1, 0.1, -1.86, 2.06, 0.9)
    compared_systems = Comparison(
        "A", "B", ComparedBy("cost"), paired, 0.9, comparisons, 0.05
    )
    [named] = re.findall(
        r"One of about (\S+) would have been shown with a chance of 9 in 10",
        compared_systems.verdict,
    )
    # An interval of half width 1.96 says that the difference has a standard error of 1.
    measured = float(named) + np.random.default_rng(0).normal(size=20_000)
    p_values = 2 * norm.sf(np.abs(measured))
    assert (p_values * comparisons <= 0.05).mean() == pytest.approx(0.9, abs=0.02)
