"""The intersections of fuzzy sets: their formulas, and the scores made of them."""

from typing import Any, get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mpcs_torch.functional import soft_f1, soft_precision, soft_recall
from mpcs_torch.functional.soft.scores import TNorm
from mpcs_torch.metrics import SoftF1
from tests.refused import Refused

T_NORMS: tuple[TNorm, ...] = get_args(TNorm)
DEGREES = st.floats(0, 1)
FORMULAS = {
    "minimum": min,
    "product": lambda p, y: p * y,
    "lukasiewicz": lambda p, y: max(p + y - 1, 0.0),
}
EXACT = 1e-12


def shared_of(preds: Tensor, target: Tensor, t_norm: TNorm) -> Tensor:
    """Return the sum of T(p, y) over the samples of each class."""
    metric = SoftF1(preds.shape[1], t_norm=t_norm)
    metric.update(preds, target)
    shared: Tensor = metric.named_sums().shared
    return shared


def shared(t_norm: TNorm, p: float, y: float) -> float:
    preds, target = torch.tensor([[[p]], [[y]]], dtype=torch.float64)
    return shared_of(preds, target, t_norm).item()


def draw(seed: int) -> tuple[Tensor, Tensor]:
    preds, target = torch.rand(
        2, 30, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    return preds, target


@pytest.mark.parametrize("t_norm", T_NORMS)
@given(p=DEGREES, y=DEGREES)
def test_each_is_its_formula(t_norm: TNorm, p: float, y: float) -> None:
    assert shared(t_norm, p, y) == pytest.approx(FORMULAS[t_norm](p, y), abs=EXACT)


@pytest.mark.parametrize("t_norm", T_NORMS)
@given(seed=st.integers(0, 10**6))
def test_precision_recall_and_f_are_those_of_the_counts(t_norm: TNorm, seed: int) -> None:
    preds, target = draw(seed)
    tp = shared_of(preds, target, t_norm)
    settings: dict[str, Any] = {"num_classes": 3, "average": "none", "t_norm": t_norm}
    assert torch.allclose(soft_precision(preds, target, **settings), tp / preds.sum(dim=0))
    assert torch.allclose(soft_recall(preds, target, **settings), tp / target.sum(dim=0))
    f = 2 * tp / (preds.sum(dim=0) + target.sum(dim=0))
    assert torch.allclose(soft_f1(preds, target, **settings), f)


def test_small_degrees_keep_their_digits_in_float32() -> None:
    preds = torch.full((1000, 1), 1e-9)
    assert shared_of(preds, torch.ones(1000, 1), "lukasiewicz").item() == pytest.approx(
        1e-6, rel=1e-5
    )


@pytest.mark.parametrize("t_norm", ["drastic", None])
def test_an_unknown_intersection_is_refused(t_norm: Any) -> None:
    with Refused("one_of", "t_norm", t_norm):
        SoftF1(3, t_norm=t_norm)
