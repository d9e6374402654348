"""Jackknife intervals: against a computation by hand, the t interval of a mean, and their coverage."""

import re
from functools import partial
from typing import Any

import pytest
import torch
from scipy.stats import ttest_1samp

from mpcs_torch.functional import jackknife_interval, soft_f1


def test_a_ratio_by_hand() -> None:
    """The F1 of three recordings is 3/4, and 1/2, 6/7 and 4/5 without one of them."""
    preds = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 0.0]).double()
    target = torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0, 0.0]).double()
    recording = torch.tensor([7, 7, 3, 3, 5, 5])
    found = jackknife_interval(lambda kept: soft_f1(preds[kept], target[kept], num_classes=1), recording)
    whole, without = 3 / 4, [1 / 2, 6 / 7, 4 / 5]
    mean = sum(without) / 3
    error = (2 / 3 * sum((value - mean) ** 2 for value in without)) ** 0.5
    estimate = 3 * whole - 2 * mean
    expected = (estimate, estimate - 4.302652729911275 * error, estimate + 4.302652729911275 * error)
    assert [value.item() for value in found] == pytest.approx(expected, abs=1e-9)


def test_the_interval_of_a_mean_is_the_t_interval_whatever_its_shape() -> None:
    values = torch.randn(12, 3, generator=torch.Generator().manual_seed(0)).double()
    found = jackknife_interval(lambda kept: values[kept].mean(dim=0), torch.arange(12), confidence=0.9)
    theirs = ttest_1samp(values.numpy(), 0).confidence_interval(0.9)
    assert found.estimate.tolist() == pytest.approx(values.mean(dim=0).tolist())
    assert found.low.tolist() == pytest.approx(theirs.low.tolist())
    assert found.high.tolist() == pytest.approx(theirs.high.tolist())


def f_of(preds: torch.Tensor, target: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    return soft_f1(preds[kept], target[kept], num_classes=1)


def test_intervals_of_soft_f_over_recordings_hold_the_truth_about_as_often_as_they_say() -> None:
    """Frames of one recording share an offset: intervals of single frames would be far too narrow."""
    generator = torch.Generator().manual_seed(0)

    def draw(recordings: int) -> tuple[torch.Tensor, torch.Tensor]:
        target = torch.rand(recordings, 20, generator=generator)
        offset = torch.randn(recordings, 1, generator=generator) / 4
        return (target + offset).clamp(0, 1).flatten(), target.flatten()

    truth = soft_f1(*draw(20_000), num_classes=1).item()

    def hits(groups: torch.Tensor, times: int) -> int:
        """Count the intervals that hold the truth."""
        number = 0
        for _ in range(times):
            preds, target = draw(15)
            found = jackknife_interval(partial(f_of, preds, target), groups)
            number += found.low.item() <= truth <= found.high.item()
        return number

    assert hits(torch.arange(15).repeat_interleave(20), times=100) >= 88
    assert hits(torch.arange(300), times=15) <= 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": torch.zeros(3)}, "groups must be integers of shape (N,), but got torch.float32 of (3,)."),
        ({"groups": torch.zeros(3).long()}, "groups must hold at least 2 groups, but hold 1."),
        ({"confidence": 95.0}, "confidence must be above 0 and below 1, but got 95.0."),
    ],
)
def test_errors_name_the_wrong_argument(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        jackknife_interval(torch.sum, **{"groups": torch.arange(3), **arguments})
