"""The risk-coverage curve: its ends, ties and bad input."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mpcs_torch.functional import dangerous_errors, risk_coverage_area, risk_coverage_curve
from mpcs_torch.metrics import RiskCoverageArea
from tests.conftest import details
from tests.refused import Refused

PAIRS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.5]), st.booleans()), min_size=1, max_size=20
)


@given(PAIRS, st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter_even_among_ties(
    pairs: list[tuple[float, bool]], random: object
) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    risk, loss = torch.tensor(pairs, dtype=torch.float64).t()
    shuffled_risk, shuffled_loss = torch.tensor(shuffled, dtype=torch.float64).t()
    curve = risk_coverage_curve(risk, loss)
    assert torch.allclose(
        risk_coverage_curve(shuffled_risk, shuffled_loss).risk, curve.risk
    )


def test_at_full_coverage_the_risk_is_the_rate_of_dangerous_errors() -> None:
    logits, target = torch.randn(50, 3), torch.randint(0, 3, (50,))
    concern = torch.tensor([[0, 1, 0], [1, 0, 0], [0, 1, 0]]).bool()
    curve = details(RiskCoverageArea(3, concern=concern), logits, target)
    rate = dangerous_errors(
        logits, target, num_classes=3, concern=concern, normalize="samples"
    )
    assert curve.coverage[-1] == 1
    assert curve.risk[-1].item() == pytest.approx(rate.item())


def test_ties_share_their_losses() -> None:
    curve = risk_coverage_curve(torch.tensor([0.5, 0.5, 0.1]), torch.tensor([1, 0, 0]))
    assert curve.risk.tolist() == pytest.approx([0, 0.25, 1 / 3])


def test_bad_input_is_refused() -> None:
    with Refused("same_shape", "risk and loss", shape="(N,)"):
        risk_coverage_curve(torch.zeros(2), torch.zeros(3))
    with Refused("no_nan", "risk"):
        risk_coverage_curve(torch.tensor([torch.nan]), torch.zeros(1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("classes", [2, 6, 15, 40])
def test_the_order_of_equal_rows_does_not_matter(classes: int, dtype: torch.dtype) -> None:
    """Equal rows have equal risks, wherever they stand and however they are split into batches."""
    generator = torch.Generator().manual_seed(classes)
    for _ in range(20):
        row = torch.randn(1, classes, generator=generator).to(dtype)
        logits, decided = row.repeat(41, 1), int(row.argmax())
        target = torch.where(torch.arange(41) < 20, (decided + 1) % classes, decided)
        for order in (torch.arange(41), torch.randperm(41, generator=generator)):
            metric = RiskCoverageArea(classes)
            for start, stop in ((0, 1), (1, 2), (2, 19), (19, 41)):
                metric.update(logits[start:stop], target[order[start:stop]])
            assert metric.compute().item() == pytest.approx(20 / 41, rel=1e-12)
            area = risk_coverage_area(logits, target[order], num_classes=classes)
            assert area.item() == pytest.approx(20 / 41, rel=1e-12)


def test_whole_weights_are_repeated_samples() -> None:
    generator = torch.Generator().manual_seed(0)
    risk = torch.randint(10, (50,), generator=generator) / 10
    loss = torch.rand(50, generator=generator)
    weight = torch.randint(1, 4, (50,), generator=generator)
    weighted = risk_coverage_curve(risk, loss, weight)
    repeated = risk_coverage_curve(
        risk.repeat_interleave(weight), loss.repeat_interleave(weight)
    )
    errors = np.interp(
        weighted.coverage, repeated.coverage, repeated.coverage * repeated.risk
    )
    np.testing.assert_allclose(weighted.coverage * weighted.risk, errors)
    assert weighted.coverage[-1] == 1
    assert len(weighted.coverage) == 50
