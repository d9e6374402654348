"""Audits: unbiased whatever is predicted, shorter with good predictions, and honest where little was seen."""

from math import isnan

import numpy as np
import pytest
import torch

from mpcs_torch.functional import AuditedMean, audited_mean

SAMPLES, REPETITIONS = 3000, 400


def audits(*, is_good: bool) -> tuple[list[AuditedMean], float]:
    """Audit samples of which risky ones are labelled more often; return the audits and the true mean."""
    random, found = np.random.default_rng(0), []
    for _ in range(REPETITIONS):
        risk = random.random(SAMPLES) ** 3
        wrong = random.random(SAMPLES) < risk
        chance = np.where(risk > 0.5, 0.5, 0.1)
        loss = np.where(random.random(SAMPLES) < chance, wrong, np.nan)
        predicted = risk if is_good else random.random(SAMPLES)
        found.append(audited_mean(*map(torch.from_numpy, (loss, predicted, chance))))
    return found, 0.25


@pytest.mark.parametrize("is_good", [True, False])
def test_intervals_hold_whatever_is_predicted(is_good: bool) -> None:
    found, mean = audits(is_good=is_good)
    values = np.array([audit.value for audit in found])
    assert values.mean() == pytest.approx(mean, abs=3 * values.std() / REPETITIONS**0.5)
    assert 0.93 <= np.mean([audit.low <= mean <= audit.high for audit in found]) <= 0.975


def test_good_predictions_shorten_the_interval() -> None:
    good, poor = (
        np.mean([audit.high - audit.low for audit in audits(is_good=is_good)[0]]) for is_good in (True, False)
    )
    assert good < 0.9 * poor


def test_all_labelled_is_the_mean() -> None:
    loss = torch.arange(50.0)
    assert audited_mean(loss, torch.zeros(50), torch.ones(50)).value == pytest.approx(24.5)
    assert audited_mean(loss, loss, torch.ones(50)).value == pytest.approx(24.5)


def test_an_audit_that_saw_few_errors_has_no_interval() -> None:
    loss = torch.zeros(500)
    loss[:9] = 1
    audit = audited_mean(loss, torch.rand(500), torch.full((500,), 0.5))
    assert isnan(audit.low)
    assert isnan(audit.high)


def test_wrong_arguments_are_refused() -> None:
    one = torch.ones(3)
    for arguments, message in (
        ((one, one[:2], one), "must have the same shape"),
        ((one, one, 0 * one), "chance must be above 0"),
        ((one, one / 0, one), "predicted must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            audited_mean(*arguments)
    with pytest.raises(ValueError, match="confidence must be above 0 and below 1"):
        audited_mean(one, one, one, confidence=1.0)
