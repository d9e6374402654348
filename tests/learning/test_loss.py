"""The losses: their equations, their limits MPCS and cross entropy, and finite values for extreme logits."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import grad, vmap
from torch.nn.functional import cross_entropy

from mpcs_torch.functional import ProbabilitiesWarning, meta_pattern_concern_score
from mpcs_torch.functional.concern.losses import log_complement
from mpcs_torch.learning import (
    ConcernLoss,
    GeneralizedMeanLoss,
    MarginRamp,
    SoftmaxMarginLoss,
)
from tests.learning.losses_in_float64 import concern_loss, softmax_margin_loss
from tests.refused import Refused


def draw(seed: int, samples: int = 7, classes: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(samples, classes, generator=generator, dtype=torch.float64)
    target = torch.randint(0, classes, (samples,), generator=generator)
    concern = 0.1 + torch.rand(classes, classes, generator=generator, dtype=torch.float64)
    return logits, target, concern


def in_plain_python(
    logits: Tensor, target: Tensor, concern: Tensor, share: float
) -> list[float]:
    losses = []
    for row, y in zip(logits.softmax(1).tolist(), target.tolist(), strict=True):
        weights = [0.0 if j == y else concern[y, j].item() for j in range(len(row))]
        pushed = sum(w * -math.log1p(-p) for w, p in zip(weights, row, strict=True))
        losses.append((1 - share) * -math.log(row[y]) + share * pushed / sum(weights))
    return losses


@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_the_concern_loss_matches_its_equation(seed: int, share: float) -> None:
    logits, target, concern = draw(seed)
    ours = concern_loss(
        logits, target, concern=concern, concern_share=share, reduction="none"
    )
    assert ours.tolist() == pytest.approx(
        in_plain_python(logits, target, concern, share), rel=1e-7, abs=1e-9
    )


@given(seed=st.integers(0, 10**6))
def test_the_concern_loss_is_the_limit_of_mpcs(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    probs = 0.05 + torch.rand(20, 4, generator=generator, dtype=torch.float64)
    probs /= probs.sum(1, keepdim=True)
    assert probs.min() >= 0.01
    assert probs.max() <= 0.99
    target = torch.randint(0, 4, (20,), generator=generator)
    concern = 0.1 + torch.rand(4, 4, generator=generator, dtype=torch.float64)
    score = meta_pattern_concern_score(
        probs, target, num_classes=4, k=4, t=10**7, concern=concern, from_logits=False
    )
    assert concern_loss(probs.log(), target, concern=concern).item() == pytest.approx(
        score.item(), abs=1e-4
    )


@given(seed=st.integers(0, 10**6), margin=st.sampled_from([0.5, 1.0, 4.0]))
def test_the_softmax_margin_loss_matches_its_equation(seed: int, margin: float) -> None:
    logits, target, concern = draw(seed)
    ours = softmax_margin_loss(
        logits, target, concern=concern, margin=margin, reduction="none"
    )
    expected = []
    for row, y in zip(logits.tolist(), target.tolist(), strict=True):
        raised = [
            z + margin * (0.0 if j == y else concern[y, j].item())
            for j, z in enumerate(row)
        ]
        expected.append(math.log(sum(math.exp(z) for z in raised)) - row[y])
    assert ours.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.2])
def test_the_softmax_margin_loss_takes_shares_of_classes(label_smoothing: float) -> None:
    logits, target, concern = draw(5)
    shares = torch.nn.functional.one_hot(target, logits.shape[1]).double()
    settings: dict[str, Any] = {
        "concern": concern,
        "margin": 2.0,
        "label_smoothing": label_smoothing,
    }
    expected = softmax_margin_loss(logits, target, reduction="none", **settings)
    torch.testing.assert_close(
        softmax_margin_loss(logits, shares, reduction="none", **settings), expected
    )
    images = logits.unsqueeze(2).expand(-1, -1, 2)
    mixed = 0.7 * shares + 0.3 * shares.flip(0)
    loss = SoftmaxMarginLoss(concern, margin=2.0)(
        images, mixed.unsqueeze(2).expand(-1, -1, 2)
    )
    raised = logits + 2.0 * mixed @ concern.clone().fill_diagonal_(0)
    torch.testing.assert_close(loss, cross_entropy(raised, mixed))
    torch.testing.assert_close(
        softmax_margin_loss(logits, mixed, concern=concern, margin=0),
        cross_entropy(logits, mixed),
    )
    with Refused("shape_of", "target", other="logits"):
        softmax_margin_loss(logits, shares[:, :3], concern=concern)
    with Refused("finite_shares", "target", -1.0):
        softmax_margin_loss(logits, -shares, concern=concern)
    with Refused("finite_shares", "target", float("inf")):
        softmax_margin_loss(logits, torch.where(shares > 0, math.inf, 0.0), concern=concern)


@pytest.mark.parametrize(
    ("dtype", "label", "ignore_index"),
    [
        (torch.uint8, 156, -100),
        (torch.int8, -1, 255),
        (torch.uint16, 7, -100),
        (torch.int64, -1, -100),
    ],
)
def test_a_label_of_a_narrow_dtype_is_not_taken_for_the_ignored_one(
    dtype: torch.dtype, label: int, ignore_index: int
) -> None:
    """In uint8, 156 equals -100."""
    logits, target = torch.randn(4, 3), torch.tensor([0, 1, label, 0]).to(dtype)
    for loss in (concern_loss, partial(softmax_margin_loss, concern=torch.ones(3, 3))):
        with Refused("class_indices_or", "target", label, last=2, ignored=ignore_index):
            loss(logits, target, ignore_index=ignore_index)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_with_share_or_margin_zero_they_equal_cross_entropy(
    reduction: str, label_smoothing: float, weighted: bool
) -> None:
    logits, target, _ = draw(3)
    logits = logits.reshape(7, 5, 1).expand(7, 5, 2)
    target = target.reshape(7, 1).repeat(1, 2)
    target[0, 1] = -100
    weight = (
        torch.tensor([1.0, 2.0, 0.5, 0.0, 3.0], dtype=torch.float64) if weighted else None
    )
    settings = {
        "weight": weight,
        "label_smoothing": label_smoothing,
        "reduction": reduction,
    }
    ours = concern_loss(logits, target, concern_share=0.0, **settings)  # type: ignore[arg-type]
    margin = softmax_margin_loss(
        logits, target, concern=torch.ones(5, 5), margin=0.0, **settings
    )  # type: ignore[arg-type]
    expected = cross_entropy(logits, target, **settings)  # type: ignore[arg-type]
    assert torch.allclose(ours, expected)
    assert torch.equal(margin, expected)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.3])
def test_gradients_match_finite_differences(label_smoothing: float) -> None:
    logits, target, concern = draw(1)
    logits.requires_grad_()

    def loss(scores: Tensor) -> Tensor:
        return concern_loss(
            scores, target, concern=concern, label_smoothing=label_smoothing
        )

    def margin(scores: Tensor) -> Tensor:
        return softmax_margin_loss(
            scores, target, concern=concern, label_smoothing=label_smoothing
        )

    assert torch.autograd.gradcheck(loss, (logits,))
    assert torch.autograd.gradcheck(margin, (logits,))


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16]
)
@pytest.mark.parametrize("target", [0, 1, 2])
@pytest.mark.parametrize("function", [concern_loss, softmax_margin_loss])
def test_saturated_logits_give_finite_values_and_gradients(
    dtype: torch.dtype, target: int, function: Callable[..., Tensor]
) -> None:
    logits = torch.tensor([[1e4, -1e4, 0.0]], dtype=dtype, requires_grad=True)
    loss = function(logits, torch.tensor([target]), concern=torch.ones(3, 3))
    loss.backward()
    assert torch.isfinite(loss)
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    assert (loss > 1000) == (target != 0)
    assert loss.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


def test_the_complement_of_a_probability_that_rounds_to_one_is_accurate() -> None:
    exact = log_complement(torch.tensor([[40.0, 0.0, 0.0]], dtype=torch.float64))
    assert log_complement(torch.tensor([[40.0, 0.0, 0.0]])).tolist()[0] == pytest.approx(
        exact.tolist()[0], rel=1e-6
    )
    assert exact[0, 0].item() == pytest.approx(
        -40 + torch.tensor(2.0).double().log().item(), rel=1e-12
    )


def test_a_class_that_is_masked_out_costs_nothing() -> None:
    logits = torch.tensor([[1.0, 2.0, float("-inf")]], requires_grad=True)
    for share in (0.0, 0.5):
        loss = concern_loss(logits, torch.tensor([0]), concern_share=share)
        assert torch.isfinite(loss)
        (gradient,) = torch.autograd.grad(loss, logits)
        assert torch.isfinite(gradient[0, :2]).all()
    assert torch.allclose(
        concern_loss(logits, torch.tensor([0]), concern_share=0.0),
        cross_entropy(logits, torch.tensor([0])),
    )


@pytest.mark.parametrize("module", [ConcernLoss, SoftmaxMarginLoss])
def test_a_module_checks_its_concern_once_and_saves_no_settings(
    module: Callable[..., nn.Module],
) -> None:
    with Refused(
        "weights_off_diagonal" if module is ConcernLoss else "some_cost", "concern"
    ):
        module(torch.zeros(3, 3))
    with Refused("covers_classes", "concern", 3, classes=4):
        module(torch.ones(3, 3))(torch.zeros(2, 4), torch.tensor([0, 1]))
    assert not module(torch.ones(3, 3), weight=torch.ones(3)).state_dict(), (
        "settings, no part of a checkpoint"
    )


def test_the_mean_over_no_samples_is_nan_as_in_torch() -> None:
    assert concern_loss(torch.zeros(2, 3), torch.tensor([-100, -100])).isnan()
    assert concern_loss(torch.zeros(2, 3), torch.tensor([-100, -100]), reduction="sum") == 0


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        (
            {"label_smoothing": -0.1},
            Refused("between", "label_smoothing", -0.1, minimum=0, maximum=1),
        ),
        ({"reduction": "avg"}, Refused("one_of", "reduction", "avg")),
        ({"logits": torch.ones(2, 3, dtype=torch.int64)}, Refused("floating", "logits")),
        (
            {"logits": torch.ones(2, 1)},
            Refused("shape", "logits", shape="(N, C), (N, C, ...) or (C,) with C >= 2"),
        ),
        (
            {"target": torch.ones(3, dtype=torch.int64)},
            Refused("shape", "target", shape=(2,)),
        ),
    ],
)
@pytest.mark.parametrize("loss", [concern_loss, softmax_margin_loss])
def test_wrong_settings_are_refused(
    loss: Callable[..., Tensor], changed: dict[str, object], refusal: Refused
) -> None:
    arguments = {
        "logits": torch.zeros(2, 3),
        "target": torch.tensor([0, 1]),
        "concern": torch.ones(3, 3),
        **changed,
    }
    with refusal:
        loss(**arguments)


def test_a_share_must_be_from_0_to_1() -> None:
    with Refused("between", "concern_share", 1.5, minimum=0, maximum=1):
        concern_loss(torch.zeros(2, 3), torch.tensor([0, 1]), concern_share=1.5)


@pytest.mark.parametrize("margin", [-0.5, math.nan, math.inf])
def test_a_margin_must_be_finite_and_nonnegative(margin: float) -> None:
    with Refused("finite_at_least", "margin", minimum=0):
        SoftmaxMarginLoss(torch.ones(3, 3), margin=margin)


LOSSES = [ConcernLoss(), SoftmaxMarginLoss(torch.ones(3, 3)), GeneralizedMeanLoss(-2 / 3)]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_labels_out_of_range_are_named(loss: nn.Module) -> None:
    for label in (3, -1):
        with Refused("class_indices_or", "target", label, last=2, ignored=-100):
            loss(torch.zeros(2, 3), torch.tensor([0, label]))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_probabilities_in_place_of_logits_are_warned_of_whatever_dimensions_follow(
    loss: nn.Module,
) -> None:
    logits, target = draw(0, samples=14, classes=3)[:2]
    for shape in ((14,), (7, 2)):
        by_class = logits.reshape(*shape, 3).movedim(-1, 1)
        loss(by_class, target.reshape(shape))
        with pytest.warns(ProbabilitiesWarning, match="the logits look like probabilities"):
            loss(by_class.softmax(1), target.reshape(shape))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_gradients_of_single_samples(loss: nn.Module) -> None:
    logits = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([0, 2, 1, 1, 0])
    found = vmap(grad(lambda one, label: loss(one.unsqueeze(0), label.unsqueeze(0))))(
        logits, target
    )
    for row, label, expected in zip(logits, target, found, strict=True):
        alone = row.unsqueeze(0).requires_grad_()
        loss(alone, label.unsqueeze(0)).backward()
        torch.testing.assert_close(alone.grad, expected.unsqueeze(0))


def test_a_ramp_goes_on_where_it_was_saved() -> None:
    def ramped() -> tuple[SoftmaxMarginLoss, MarginRamp]:
        loss = SoftmaxMarginLoss(torch.ones(3, 3), margin=4.0)
        return loss, MarginRamp(loss, 8, begin=0.25, end=0.75)

    loss, ramp = ramped()
    margins = [loss.margin]
    for _ in range(9):
        ramp.step()
        margins.append(loss.margin)
    assert margins == [0, 0, 0, 1, 2, 3, 4, 4, 4, 4]
    again, resumed = ramped()
    resumed.load_state_dict({"step": 4})
    resumed.step()
    assert again.margin == 3
    assert resumed.state_dict() == {"step": 5}


@pytest.mark.parametrize(
    ("steps", "shares"),
    [(0, (0.1, 0.6)), (5, (0.6, 0.6)), (5, (-0.1, 0.6)), (5, (0.1, 1.1))],
)
def test_a_ramp_that_cannot_be_is_refused(steps: int, shares: tuple[float, float]) -> None:
    is_short = Refused("at_least", "steps", steps, minimum=1)
    with (
        is_short if steps < 1 else Refused("shares_in_order", "begin and end", list(shares))
    ):
        MarginRamp(
            SoftmaxMarginLoss(torch.ones(3, 3)), steps, begin=shares[0], end=shares[1]
        )
