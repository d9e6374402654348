"""Statistics of weights against the metrics of samples that are repeated as often as they are drawn."""

import re
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mpcs_torch.functional import (
    OperatingPoint,
    Resamples,
    Statistic,
    actual_cost_statistic,
    actual_detection_cost,
    area_statistic,
    cllr,
    cllr_statistic,
    equal_error_rate,
    equal_error_statistic,
    mean_statistic,
    partial_auc,
)

POINT = OperatingPoint(0.2, c_miss=3)

Metric = Callable[[Tensor, Tensor], Tensor]
DETECTION: dict[str, tuple[Callable[[Tensor, Tensor], Statistic], Metric]] = {
    "equal error rate": (equal_error_statistic, lambda s, y: equal_error_rate(s, y, method="interpolated")),
    "area": (area_statistic, lambda s, y: partial_auc(s, y, max_p_fa=1.0)),
    "Cllr": (cllr_statistic, cllr),
    "Bayes cost": (
        lambda s, y: actual_cost_statistic(s, y, point=POINT),
        lambda s, y: actual_detection_cost(s, y, points=POINT),
    ),
    "cost at 1": (
        lambda s, y: actual_cost_statistic(s, y, point=POINT, threshold=1.0),
        lambda s, y: actual_detection_cost(s, y, points=POINT, threshold=1.0),
    ),
}


@st.composite
def drawn_trials(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor]:
    values = st.sampled_from([-torch.inf, -2.0, 0.0, 0.5, 1.0, 1.5, torch.inf]) | st.floats(-4, 4)
    trials = draw(st.lists(st.tuples(values, st.booleans(), st.integers(0, 3)), max_size=30))
    scores = torch.tensor([*(score for score, _, _ in trials), 0.0, 1.0], dtype=torch.float64)
    labels = torch.tensor([*(label for _, label, _ in trials), True, False])
    return scores, labels, torch.tensor([*(count for _, _, count in trials), 1, 1])


@pytest.mark.filterwarnings("ignore::mpcs_torch.functional.ReversedScoresWarning")
@pytest.mark.parametrize("name", DETECTION)
@settings(max_examples=40)
@given(drawn_trials())
def test_detection_statistics_are_those_of_repeated_trials(name: str, case: tuple[Tensor, Tensor, Tensor]) -> None:
    scores, labels, counts = case
    make, metric = DETECTION[name]
    weights = torch.stack([torch.ones_like(counts), counts])
    expected = [metric(scores.repeat_interleave(row), labels.repeat_interleave(row)).item() for row in weights]
    found = make(scores, labels)(weights)
    assert found.dtype == torch.float64
    assert found.tolist() == pytest.approx(expected, abs=1e-12)


def test_concern_and_means_are_those_of_repeated_samples() -> None:
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(3, (60,), generator=generator)
    decisions = torch.randint(-1, 3, (60,), generator=generator)
    values = torch.rand(60, generator=generator)
    for weights in Resamples(60, number=5):
        means = mean_statistic(values)(weights)
        wrong = mean_statistic(decisions != target)(weights)
        for number, row in enumerate(weights):
            drawn = [each.repeat_interleave(row) for each in (decisions, target, values)]
            assert means[number].item() == pytest.approx(drawn[2].double().mean().item())
            assert wrong[number].item() == pytest.approx((drawn[0] != drawn[1]).double().mean().item())


def test_an_infinite_value_counts_where_it_is_drawn() -> None:
    found = mean_statistic(torch.tensor([1.0, torch.inf]))(torch.tensor([[2, 0], [1, 1]]))
    assert found.tolist() == [1.0, torch.inf]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mean_statistic(torch.tensor([1.0, torch.nan])), "values must not be NaN or -inf, but got nan."),
        (lambda: mean_statistic(torch.ones(2, dtype=torch.int64)), "values must be floating point or bools (N,)"),
        (lambda: equal_error_statistic(torch.ones(2), torch.ones(2).long()), "but holds no non-targets"),
        (
            lambda: actual_cost_statistic(torch.ones(2), torch.arange(2), point=POINT, threshold=torch.nan),
            "threshold must not be NaN",
        ),
        (lambda: cllr_statistic(torch.ones(2, 1), torch.arange(2)), "preds must be floating point scores (N,)"),
        (lambda: cllr_statistic(torch.arange(2), torch.arange(2)), "preds must be floating point scores (N,)"),
        (
            lambda: actual_cost_statistic(torch.ones(2), torch.arange(2), point=OperatingPoint(1.0)),
            "p_target must be",
        ),
    ],
)
def test_wrong_arguments_are_refused(make: Callable[[], Statistic], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        make()
