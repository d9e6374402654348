"""Thresholds from development trials: where they lie, and what they leave on the same trials."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mpcs_torch.evaluation.files.trials import Trials
from mpcs_torch.evaluation.fixed_thresholds import learned_thresholds
from mpcs_torch.functional import (
    OperatingPoint,
    equal_error_rate,
    false_alarm_at_miss,
    miss_at_false_alarm,
)
from mpcs_torch.metrics import MinDetectionCost
from tests.conftest import details
from tests.refused import Refused

POINTS = [OperatingPoint(0.5), OperatingPoint(0.1, c_miss=2.0)]
DRAWN = st.lists(
    st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=30
).filter(lambda drawn: len({label for _, label in drawn}) == 2)


def rates_at(trials: Trials, threshold: float) -> tuple[float, float]:
    accepted = trials.scores >= threshold
    return (~accepted[trials.labels]).double().mean().item(), accepted[
        ~trials.labels
    ].double().mean().item()


@pytest.mark.filterwarnings("ignore:the area under the ROC")
@given(drawn=DRAWN, limit=st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]))
def test_they_are_the_best_on_the_development_trials(
    drawn: list[tuple[int, bool]], limit: float
) -> None:
    scores, labels = zip(*drawn, strict=True)
    trials = Trials(torch.tensor(scores, dtype=torch.float64), torch.tensor(labels))
    first, second, equal, miss, alarm = learned_thresholds(
        *trials, POINTS, p_fa=[limit], p_miss=[limit]
    )
    for found, point in zip((first, second), POINTS, strict=True):
        assert found.threshold == details(MinDetectionCost(point), *trials).threshold
    p_miss, p_fa = rates_at(trials, equal.threshold)
    assert (p_miss + p_fa) / 2 == pytest.approx(
        equal_error_rate(*trials, method="nearest").item()
    )
    p_miss, p_fa = rates_at(trials, miss.threshold)
    assert p_fa <= limit
    assert p_miss == miss_at_false_alarm(*trials, p_fa=limit)
    p_miss, p_fa = rates_at(trials, alarm.threshold)
    assert p_miss <= limit
    assert p_fa == false_alarm_at_miss(*trials, p_miss=limit)


def test_a_threshold_lies_in_the_middle_of_those_that_are_as_good() -> None:
    trials = Trials(
        torch.tensor([0.0, 1.0, 5.0, 6.0]), torch.tensor([False, False, True, True])
    )
    found = {
        each.name: each.threshold
        for each in learned_thresholds(*trials, POINTS[:1], p_fa=[0.0, 0.5], p_miss=[0.0])
    }
    assert found["cost[development,p=0.5]"] == 3
    assert found["half_total_error_rate[development]"] == 3
    assert found["miss_rate[development,p_fa=0]"] == 3
    assert found["miss_rate[development,p_fa=0.5]"] == 2.5  # from 0 to 5
    assert found["false_alarm_rate[development,p_miss=0]"] == 3


@pytest.mark.parametrize("name", ["p_fa", "p_miss"])
def test_rates_are_checked(name: str) -> None:
    trials = Trials(torch.tensor([0.0, 1.0]), torch.tensor([False, True]))
    with Refused("between", name, 1.5, minimum=0, maximum=1):
        learned_thresholds(*trials, POINTS, **{name: [1.5]})
