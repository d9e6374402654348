"""Audits: unbiased whatever is predicted, shorter with good predictions, and honest where little was seen."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mpcs_torch.errors import InvalidValueError
from mpcs_torch.functional import AuditedMean, audited_mean, clopper_pearson
from tests.refused import Refused

SAMPLES, REPETITIONS = 1500, 60


@cache
def audits(*, is_good: bool) -> list[AuditedMean]:
    """Audit samples of which risky ones are labelled more often; 1/4, the mean of u^3, are wrong."""
    random, made = np.random.default_rng(0), []
    for _ in range(REPETITIONS):
        risk = random.random(SAMPLES) ** 3
        wrong = random.random(SAMPLES) < risk
        chance = np.where(risk > 0.5, 0.5, 0.1)
        loss = np.where(random.random(SAMPLES) < chance, wrong, np.nan)
        predicted = risk if is_good else random.random(SAMPLES)
        made.append(audited_mean(*map(torch.from_numpy, (loss, predicted, chance))))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("is_good", [True, False])
def test_intervals_hold_whatever_is_predicted(is_good: bool) -> None:
    made = audits(is_good=is_good)
    values = np.array([audit.value for audit in made])
    assert values.mean() == pytest.approx(0.25, abs=3 * values.std() / REPETITIONS**0.5)
    assert np.mean([audit.low <= 0.25 <= audit.high for audit in made]) >= 0.93


def test_good_predictions_shorten_the_interval() -> None:
    good = np.mean([audit.high - audit.low for audit in audits(is_good=True)])
    poor = np.mean([audit.high - audit.low for audit in audits(is_good=False)])
    assert good < 0.97 * poor


def test_all_labelled_is_the_mean() -> None:
    loss = torch.arange(50.0) / 50
    assert audited_mean(loss, torch.zeros(50), torch.ones(50)).value == pytest.approx(0.49)
    assert audited_mean(loss, loss, torch.ones(50)).value == pytest.approx(0.49)
    value, low, high = audited_mean(
        torch.tensor([1.0] * 3 + [0.0] * 27), torch.rand(30), torch.ones(30)
    )
    assert (value, low, high) == pytest.approx((0.1, *clopper_pearson(3, 30)), abs=2e-3)


Losses = tuple[np.ndarray, np.ndarray, np.ndarray, float]
"""Losses, predicted losses, chances of a label, and the true mean."""


def hard_and_easy(random: np.random.Generator) -> Losses:
    """Draw rows of which one in ten is hard and always labelled; of the others, one in fifty is labelled."""
    hard = random.random(1000) < 0.1
    rate, chance = np.where(hard, 0.2, 0.01), np.where(hard, 1, 0.02)
    return random.random(1000) < rate, rate, chance, 0.029


def rare_and_dear(random: np.random.Generator) -> Losses:
    loss = random.choice([0, 0.01, 1], 1000, p=[0.949, 0.05, 0.001])
    return loss, np.zeros(1000), np.full(1000, 0.5), 0.0015


def nearly_always(random: np.random.Generator) -> Losses:
    return random.random(100) < 0.97, np.full(100, 0.5), np.ones(100), 0.97


@pytest.mark.parametrize("draw", [hard_and_easy, rare_and_dear, nearly_always])
def test_intervals_hold_where_the_audit_may_have_missed_what_matters(
    draw: Callable[..., Any],
) -> None:
    random, hits = np.random.default_rng(1), []
    for _ in range(100):
        loss, predicted, chance, mean = draw(random)
        known = np.where(random.random(len(loss)) < chance, loss, np.nan)
        audit = audited_mean(*map(torch.from_numpy, (known, predicted, chance)))
        hits.append(audit.low <= mean <= audit.high)
    assert np.mean(hits) >= 0.95


def days(random: np.random.Generator, share: float) -> tuple[Tensor, Tensor, Tensor]:
    """Draw errors of 200 days with 50 images each, whose rates differ, days, and which days are audited."""
    rates = random.beta(1, 19, 200)
    errors = (random.random((200, 50)) < rates[:, None]).ravel().astype(float)
    of_days = np.repeat(np.arange(200), 50)
    return (
        torch.from_numpy(errors),
        torch.from_numpy(of_days),
        torch.from_numpy(random.random(200) < share)[of_days],
    )


def test_an_audit_of_whole_days_is_one_of_clusters() -> None:
    random, refused, hits, widths = np.random.default_rng(2), 0, [], []
    for _ in range(60):
        errors, of_days, known = days(random, 0.3)
        given = (
            errors.where(known, torch.nan),
            torch.full((10_000,), 0.05),
            torch.full((10_000,), 0.3),
        )
        low, high = audited_mean(*given, clusters=of_days)[1:]
        hits.append(low <= errors.mean() <= high)
        widths.append(high - low)
        try:
            audited_mean(*given)
        except InvalidValueError as error:
            refused += error.code == "whatever_the_error"
    assert np.mean(hits) >= 0.95
    assert np.mean(widths) < 0.12
    assert refused >= 20


def test_clusters_of_one_sample_are_independent_samples() -> None:
    random = np.random.default_rng(3)
    known = torch.from_numpy(
        np.where(random.random(300) < 0.5, (random.random(300) < 0.1).astype(float), np.nan)
    )
    given = known, torch.full((300,), 0.1), torch.full((300,), 0.5)
    assert audited_mean(*given, clusters=range(300)) == pytest.approx(
        audited_mean(*given), abs=2e-3
    )


def test_labels_of_complaints_are_refused_and_those_of_an_audit_are_not() -> None:
    random, refused = np.random.default_rng(4), {False: 0, True: 0}
    for complains in [False, True] * 60:
        risk = random.beta(0.3, 5, 5000)
        wrong = random.random(5000) < risk
        labelled = (random.random(5000) < 0.1) | (
            complains & wrong & (random.random(5000) < 0.4)
        )
        given = np.where(labelled, wrong, np.nan), risk, np.full(5000, 0.1)
        try:
            audited_mean(*map(torch.from_numpy, given))
        except InvalidValueError as error:
            refused[complains] += error.code == "whatever_the_error"
    assert refused[False] == 0
    assert refused[True] >= 55


def test_wrong_arguments_are_refused() -> None:
    half, unknown = torch.full((3,), 0.5), torch.full((3,), torch.nan)
    for arguments, refusal in (
        ((half, half[:2], half), Refused("same_shape", "loss, predicted and chance")),
        (
            (half, half, 0 * half),
            Refused("above_at_most", "chance", 0, sample=0, minimum=0, maximum=1),
        ),
        ((half, unknown, half), Refused("between", "predicted", minimum=0, maximum=1)),
        ((4 * half, half, half), Refused("loss_or_unknown", "loss", 2)),
        ((unknown, half, 2 * half), Refused("known_if_certain", "loss")),
    ):
        with refusal:
            audited_mean(*arguments)
    with Refused("open_between", "confidence"):
        audited_mean(half, half, half, confidence=1.0)
