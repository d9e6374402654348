"""Limits on errors of all samples, of a class, of decided ones, of groups and of clusters, on simulated populations."""

from math import sqrt

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mpcs_torch.learning import UnattainableLimitError
from mpcs_torch.learning.limited_rate import LimitedRate
from mpcs_torch.learning.threshold_testing import RiskPath, last_step
from tests.learning.risk_threshold import risk_threshold

FITS = 300
MAX_ABOVE = 0.05 + 2 * sqrt(0.05 * 0.95 / FITS)
RISKS, RATES = (
    torch.linspace(0, 0.5, 40, dtype=torch.float64),
    torch.linspace(0, 0.25, 40, dtype=torch.float64) ** 2 * 4,
)
"""A population of 40 equally frequent kinds of samples: their estimated risks, and how often they are wrong."""


def drawn(
    samples: int, generator: torch.Generator, size: int = 1
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the kind, the loss and the cluster of samples, of which those of a cluster are all alike."""
    kinds = torch.randint(40, (samples,), generator=generator)
    loss = torch.rand(samples, generator=generator) < RATES[kinds]
    return tuple(
        each.repeat_interleave(size) for each in (kinds, loss, torch.arange(samples))
    )  # type: ignore[return-value]


def rate_at(step: int) -> float:
    """Return the true rate of errors per sample if the kinds up to a step are decided."""
    return RATES[: step + 1].sum().item() / 40


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=300),
    st.sampled_from([0.05, 0.2, 0.5]),
    st.sampled_from([0.5, 0.9, None]),
)
def test_one_limit_per_sample_is_that_of_a_risk_threshold(
    rows: list[tuple[int, bool]], at_most: float, confidence: float | None
) -> None:
    kinds = torch.tensor([kind for kind, _ in rows])
    loss = torch.tensor([wrong for _, wrong in rows])
    rate = LimitedRate(
        "errors", at_most, confidence, loss[:, None], torch.ones_like(loss)[:, None]
    )
    refused = None
    try:
        threshold = risk_threshold(
            kinds.double(), loss.double(), max_loss=at_most, confidence=confidence
        )
    except UnattainableLimitError as error:
        refused = error
    if refused is not None:
        with pytest.raises(UnattainableLimitError) as ours:
            rate.check_attainable()
        assert (ours.value.samples, ours.value.needed) == (refused.samples, refused.needed)
        assert ours.value.lowest == pytest.approx(refused.lowest)
        return
    rate.check_attainable()
    alone = rate._replace(clusters=torch.randperm(len(kinds))).over_all()
    for each in (rate, alone):
        assert (kinds <= last_step([each], kinds[:, None], 10)).sum() == (
            kinds < threshold.threshold
        ).sum()


@pytest.mark.parametrize("size", [1, 10])
def test_the_limit_holds_for_new_clusters_however_alike_their_samples_are(
    size: int,
) -> None:
    generator = torch.Generator().manual_seed(0)
    above = {"clusters": 0, "samples": 0}
    for _ in range(FITS):
        kinds, loss, clusters = drawn(400, generator, size)
        for name, codes in (("clusters", clusters), ("samples", None)):
            rate = LimitedRate(
                "errors",
                0.02,
                0.95,
                loss[:, None],
                torch.ones_like(loss)[:, None],
                clusters=codes,
            )
            above[name] += rate_at(last_step([rate], kinds[:, None], 40)) > 0.02
    assert above["clusters"] / FITS <= MAX_ABOVE
    assert size == 1 or above["samples"] / FITS > 0.2, (
        "without clusters, ten equal samples count as ten"
    )


def test_limits_of_ten_groups_need_no_correction() -> None:
    generator = torch.Generator().manual_seed(1)
    hard = 3  # times as many errors
    above = 0
    for _ in range(FITS):
        kinds, _, _ = drawn(3000, generator)
        group = torch.randint(10, (3000,), generator=generator)
        scale = torch.where(group == 0, hard, 1)
        loss = torch.rand(3000, generator=generator) < RATES[kinds] * scale
        rates = [
            LimitedRate(
                f"group {code}", 0.05, 0.95, loss[:, None], (group == code)[:, None]
            )
            for code in range(10)
        ]
        above += hard * rate_at(last_step(rates, kinds[:, None], 40)) > 0.05
    assert above / FITS <= MAX_ABOVE


def test_the_rate_of_decided_samples_is_limited_on_steps_that_were_fixed_before() -> None:
    generator = torch.Generator().manual_seed(2)
    above = coverage = 0.0
    for _ in range(FITS):
        kinds, loss, _ = drawn(1500, generator)
        rate = LimitedRate(
            "errors",
            0.02,
            0.95,
            loss[:, None],
            torch.ones_like(loss)[:, None],
            is_of_decided=True,
        )
        step = last_step([rate], kinds[:, None], 40, first=8)
        above += step >= 0 and rate_at(step) * 40 / (step + 1) > 0.02
        coverage += (step + 1) / 40 / FITS
    assert above / FITS <= MAX_ABOVE
    assert coverage > 0.25


def test_few_samples_of_a_class_guarantee_nothing_of_it() -> None:
    loss, malignant = torch.zeros(1000), torch.arange(1000) < 40
    rate = LimitedRate("the limit", 0.05, 0.95, loss[:, None], malignant[:, None])
    with pytest.raises(
        UnattainableLimitError,
        match=r"the limit cannot .* by 40 samples, .* 0\.0722\. A limit of 0\.05 needs 59",
    ):
        rate.check_attainable()
    rate._replace(at_most=0.08).check_attainable()
    clusters = torch.arange(1000) // 5
    with pytest.raises(UnattainableLimitError, match="by 8 samples"):
        rate._replace(at_most=0.08, clusters=clusters).check_attainable()
    with pytest.raises(UnattainableLimitError, match="They can guarantee 1\\."):
        rate._replace(counted=malignant[:, None] & False).check_attainable()


def test_a_path_uses_all_limits_alike() -> None:
    risk = torch.stack(
        [torch.linspace(0, 1, 101), torch.linspace(0, 1, 101) ** 2], dim=1
    ).double()
    path = RiskPath(risk, torch.tensor([0.1, 0.02]), [False, False])
    places = path.first_place(risk)
    assert (places.diff() >= 0).all()
    for place in (0.1, 0.5, 2.0):
        thresholds = path.thresholds_at(place)
        used = [
            (column * (column < at)).mean().item()
            for column, at in zip(risk.T, thresholds, strict=True)
        ]
        assert used == pytest.approx([0.1 * place, 0.02 * place], rel=0.2)
        # Deciding up to a place is the same as deciding below all thresholds.
        assert torch.equal(places < place, (risk < thresholds).all(dim=1))
