"""Laws that all losses of logits share, with cross entropy of torch as the measure wherever they should equal it."""

import copy
import io
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from mpcs_torch import ConcernSpec
from mpcs_torch.learning import (
    ConcernLoss,
    GeneralizedMeanLoss,
    MarginRamp,
    SoftmaxMarginLoss,
    recommended,
)
from tests.learning.losses_in_float64 import concern_loss
from tests.refused import Refused

CONCERN = 0.1 + torch.rand(5, 5, generator=torch.Generator().manual_seed(0))
WEIGHT = torch.tensor([1.0, 2.0, 0.5, 0.0, 3.0])
LIKE_CROSS_ENTROPY: dict[str, Callable[..., nn.Module]] = {
    "concern": lambda **given: ConcernLoss(CONCERN, concern_share=0.0, **given),
    "margin": lambda **given: SoftmaxMarginLoss(CONCERN, margin=0.0, **given),
    "mean": lambda **given: GeneralizedMeanLoss(0.0, **given),
}
LOSSES: dict[str, Callable[..., nn.Module]] = {
    "concern": lambda **given: ConcernLoss(CONCERN, **given),
    "equal concern": lambda **given: ConcernLoss(**given),
    "margin": lambda **given: SoftmaxMarginLoss(CONCERN, margin=2.0, **given),
    "mean": lambda **given: GeneralizedMeanLoss(-2 / 3, **given),
}
every_loss = pytest.mark.parametrize("name", LOSSES)


def draw(
    seed: int, samples: int = 6, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(samples, 5, generator=generator, dtype=torch.float64)
    target = torch.randint(0, 5, (samples,), generator=generator)
    return (
        logits.to(dtype),
        target,
        torch.rand(samples, 5, generator=generator, dtype=torch.float64).softmax(1),
    )


def gradient_of(loss: Callable[..., Tensor], logits: Tensor, *given: Any) -> Tensor:
    leaf = logits.clone().requires_grad_()
    loss(leaf, *given).backward()
    assert leaf.grad is not None
    return leaf.grad


@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["labels", "ignored", "shares"]),
    shape=st.sampled_from([(6,), (3, 2), (1, 6), (2, 1, 3)]),
    weighted=st.booleans(),
    smoothing=st.sampled_from([0.0, 0.2]),
    reduction=st.sampled_from(["mean", "sum", "none"]),
)
def test_they_equal_cross_entropy_where_they_should(
    seed: int,
    kind: str,
    shape: tuple[int, ...],
    weighted: bool,
    smoothing: float,
    reduction: str,
) -> None:
    flat, labels, shares = draw(seed)
    logits = flat.reshape(*shape, 5).movedim(-1, 1)
    target = (
        shares.reshape(*shape, 5).movedim(-1, 1)
        if kind == "shares"
        else labels.reshape(shape)
    )
    if kind == "ignored":
        target = torch.where(torch.arange(6).reshape(shape) % 3 == 1, -100, target)
    weight = WEIGHT.double() if weighted else None
    for name, make in LIKE_CROSS_ENTROPY.items():
        given: dict[str, Any] = {"label_smoothing": smoothing, "reduction": reduction}
        given = {} if name == "mean" else given
        expected = cross_entropy(logits, target, weight, **given)
        found = make(weight=weight, **given)(logits, target)
        torch.testing.assert_close(found, expected, equal_nan=True)
        alone = make(weight=weight, **given)(
            flat[0], shares[0] if kind == "shares" else labels[0]
        )
        one = cross_entropy(
            flat[0], shares[0] if kind == "shares" else labels[0], weight, **given
        )
        torch.testing.assert_close(alone, one, equal_nan=True)


@every_loss
@given(seed=st.integers(0, 10**6), soft=st.booleans(), weighted=st.booleans())
def test_a_whole_sample_weight_is_a_sample_taken_so_often(
    name: str, seed: int, soft: bool, weighted: bool
) -> None:
    logits, labels, shares = draw(seed)
    times = torch.tensor([1, 3, 0, 2, 1, 1])
    target = shares if soft else labels
    loss = LOSSES[name](**({"weight": WEIGHT} if weighted else {}))
    again = loss(logits.repeat_interleave(times, 0), target.repeat_interleave(times, 0))
    torch.testing.assert_close(loss(logits, target, times), again, equal_nan=True)
    torch.testing.assert_close(loss(logits, target, 7.0 * times), again, equal_nan=True)


@pytest.mark.parametrize("kind", [ConcernLoss, SoftmaxMarginLoss])
def test_losses_of_single_samples_are_multiplied_by_their_weights(
    kind: Callable[..., nn.Module],
) -> None:
    logits, labels, _ = draw(2)
    times = torch.arange(6.0)
    each = kind(CONCERN, reduction="none")(logits, labels)
    torch.testing.assert_close(
        kind(CONCERN, reduction="none")(logits, labels, times), times * each
    )
    torch.testing.assert_close(
        kind(CONCERN, reduction="sum")(logits, labels, times), (times * each).sum()
    )
    torch.testing.assert_close(
        kind(CONCERN)(logits, labels, times), (times * each).sum() / times.sum()
    )


@every_loss
def test_one_hot_shares_are_labels(name: str) -> None:
    logits, labels, _ = draw(3)
    torch.testing.assert_close(
        LOSSES[name]()(logits, one_hot(labels, 5).double()), LOSSES[name]()(logits, labels)
    )


@every_loss
@pytest.mark.parametrize("soft", [False, True])
def test_a_single_sample_is_a_batch_of_one(name: str, soft: bool) -> None:
    logits, labels, shares = draw(4)
    target = shares if soft else labels
    torch.testing.assert_close(
        LOSSES[name]()(logits[0], target[0]), LOSSES[name]()(logits[:1], target[:1])
    )


@every_loss
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("low", [-math.inf, -1e30])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_masked_class_has_no_gradient_and_spoils_none(
    name: str, soft: bool, low: float, dtype: torch.dtype
) -> None:
    logits, labels, shares = draw(5, dtype=dtype)
    target = shares * (torch.arange(5) < 3) if soft else labels % 3
    logits[:, 3], logits[0, 1:] = low, low
    target[0] = torch.tensor([1.0, 0, 0, 0, 0]) if soft else 0
    logits.requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        loss = LOSSES[name]()(logits, target)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert loss.isfinite()
    assert gradient.isfinite().all()
    assert (gradient[:, 3] == 0).all()
    exact = LOSSES[name]()(logits.detach().double(), target)
    assert loss.item() == pytest.approx(exact.item(), rel=1e-5)


@pytest.mark.parametrize("soft", [False, True])
def test_large_logits_keep_their_gradients(soft: bool) -> None:
    """A wrong class that is certain in float32, 3, 30, 80, 95 or 10 000 nats above the true one."""
    for gap in (3.0, 30.0, 80.0, 95.0, 1e4):
        logits, labels = torch.tensor([[0.0, gap, -1.0, 0.5, 1.0]]), torch.tensor([0])
        target = one_hot(labels, 5).float() if soft else labels
        for name in ("concern", "equal concern"):
            wide = gradient_of(LOSSES[name](), logits.double(), target)
            torch.testing.assert_close(
                gradient_of(LOSSES[name](), logits, target).double(),
                wide,
                rtol=1e-4,
                atol=1e-7,
            )
        if gap > 3:
            assert gradient_of(ConcernLoss(concern_share=1.0), logits, target)[
                0, 1
            ] == pytest.approx(0.25)


@given(
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([0.1, 1.0, 10.0, 40.0]),
    classes=st.sampled_from([2, 5, 80]),
    weighted=st.booleans(),
    share=st.sampled_from([0.2, 0.5, 1.0]),
    reduction=st.sampled_from(["mean", "sum"]),
)
@settings(max_examples=60, deadline=None)
def test_single_precision_gives_the_loss_and_the_gradient_of_double_precision(
    seed: int, scale: float, classes: int, weighted: bool, share: float, reduction: str
) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(500, classes, generator=generator)
    target = torch.randint(0, classes, (500,), generator=generator)
    target[::7] = -100
    weight = torch.rand(classes, generator=generator) if weighted else None
    concern = 0.1 + torch.rand(classes, classes, generator=generator)
    loss = ConcernLoss(concern, concern_share=share, weight=weight, reduction=reduction)  # type: ignore[arg-type]
    exact = concern_loss(
        logits.double(),
        target,
        concern=concern,
        concern_share=share,
        weight=weight,
        reduction="none",
    ).sum()
    kept = target >= 0
    if reduction != "sum":
        exact /= kept.sum() if weight is None else weight[target[kept]].double().sum()
    assert loss(logits, target).item() == pytest.approx(exact.item(), rel=2e-5)
    single = gradient_of(loss, logits, target)
    double = gradient_of(loss, logits.double(), target)
    of_row = 3.0
    if reduction != "sum":
        total = kept.sum() if weight is None else weight[target[kept]].sum()
        of_row = 3.0 / total.item()
    torch.testing.assert_close(single.double(), double, rtol=1e-3, atol=1e-6 * of_row)


# torch itself raises this warning.
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:FutureWarning")
def test_derivatives_of_every_kind() -> None:
    logits, target, _ = draw(6)
    target[2] = -100

    def loss(scores: Tensor) -> Tensor:
        return concern_loss(scores, target, concern=CONCERN.double())

    leaf = logits.clone().requires_grad_()
    assert torch.autograd.gradcheck(loss, (leaf,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(loss, (leaf,))
    torch.testing.assert_close(
        torch.func.hessian(loss)(logits), torch.autograd.functional.hessian(loss, logits)
    )
    weights = torch.rand(6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda given: concern_loss(logits, target, given), (weights,)
    ), "learned weights"


@every_loss
def test_compiled_they_compute_the_same(name: str) -> None:
    logits, target, _ = draw(7, dtype=torch.float32)
    compiled = torch.compile(LOSSES[name](), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(logits, target), LOSSES[name]()(logits, target))


@every_loss
def test_a_batch_without_a_sample_that_counts_teaches_nothing(name: str) -> None:
    """PyTorch's issue 116349: the mean is NaN, which a run survives only if the gradient is 0."""
    logits, target = torch.randn(4, 5), torch.full((4,), -100)
    assert LOSSES[name]()(logits, target).isnan()
    assert (gradient_of(LOSSES[name](), logits, target) == 0).all()


@pytest.mark.parametrize("kind", ["concern", "margin", "mean"])
@pytest.mark.parametrize(
    ("weight", "refusal"),
    [
        (torch.tensor([1.0, -1.0, 1.0, 1.0, 1.0]), Refused("class_weights", "weight")),
        (torch.tensor([1.0, math.nan, 1.0, 1.0, 1.0]), Refused("class_weights", "weight")),
        (torch.tensor([math.inf] * 5), Refused("class_weights", "weight")),
        (torch.ones(5, 1), Refused("shape", "weight")),
    ],
)
def test_wrong_class_weights_are_refused_when_a_loss_is_made(
    kind: str, weight: Tensor, refusal: Refused
) -> None:
    with refusal:
        LOSSES[kind](weight=weight)


@every_loss
def test_class_weights_of_another_number_of_classes_are_refused(name: str) -> None:
    with Refused("shape", "weight", shape="(5,)"):
        LOSSES[name](weight=torch.ones(4))(*draw(0)[:2])
    with Refused("shape", "weight", shape="(5,)"):
        ConcernLoss(CONCERN, weight=np.ones(4))  # type: ignore[arg-type]


@every_loss
@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_wrong_sample_weights_are_refused(name: str, bad: float) -> None:
    logits, target, _ = draw(0)
    with Refused("finite_at_least", "sample_weight", minimum=0):
        LOSSES[name]()(logits, target, torch.tensor([1.0, bad, 1, 1, 1, 1]))
    with Refused("shape", "sample_weight", shape=(6,)):
        LOSSES[name]()(logits, target, torch.ones(5))


def test_shares_have_no_label_to_ignore() -> None:
    logits, _, shares = draw(0)
    with Refused("below_0_for_shares", "ignore_index", 4):
        ConcernLoss(ignore_index=4)(logits, shares)


@pytest.mark.parametrize(
    "kind", [ConcernLoss(), SoftmaxMarginLoss(CONCERN), GeneralizedMeanLoss(1.0)]
)
def test_they_are_cross_entropies_for_whoever_asks(kind: nn.Module) -> None:
    """As skorch does, which takes a softmax of the outputs of a network then."""
    assert isinstance(kind, nn.CrossEntropyLoss)
    assert not kind.state_dict()
    kind.load_state_dict({})
    torch.save(kind, io.BytesIO())


# Made again is made once


def share_of(step: int, steps: int) -> float:
    return min(max((step / steps - 0.1) / 0.5, 0.0), 1.0)


@given(
    moves=st.lists(
        st.sampled_from(
            ["make", "step", "step", "step", "save", "load", "pickle", "copy", "set"]
        )
    ),
    steps=st.integers(1, 20),
)
@settings(deadline=None)
def test_a_ramp_made_again_is_a_ramp_made_once(moves: list[str], steps: int) -> None:
    loss, full, step, saved = SoftmaxMarginLoss(CONCERN, margin=4.0), 4.0, 0, {"step": 0}
    ramp = MarginRamp(loss, steps)
    for move in moves:
        if move == "make":
            ramp, step = MarginRamp(loss, steps), 0
        elif move == "step":
            ramp.step()
            step += 1
        elif move == "save":
            saved = ramp.state_dict()
        elif move == "load":
            ramp.load_state_dict(saved)
            step = saved["step"]
        elif move == "set":
            full /= 2
            loss.margin = full
        else:
            copied: tuple[SoftmaxMarginLoss, MarginRamp] = (
                pickle.loads(pickle.dumps((loss, ramp)))
                if move == "pickle"
                else copy.deepcopy((loss, ramp))
            )
            loss, ramp = copied
        assert loss.margin == full * share_of(step, steps)
        assert loss.full_margin == full
        assert f"margin={loss.margin:g}, full_margin={full:g}" in repr(loss)


@pytest.mark.parametrize(
    ("steps", "stopped", "expected"), [(100, 40, 2.4), (50, 20, 2.4), (10, 3, 1.6)]
)
def test_every_seed_trains_with_the_same_margin(
    steps: int, stopped: int, expected: float
) -> None:
    loss = recommended(
        ConcernSpec(["a", "b", "c"], releases=[["a", "b"]], factor=0.5)
    ).losses["margin"]
    for _ in range(4):
        ramp = MarginRamp(loss, steps=steps)
        for _ in range(stopped):
            ramp.step()
        assert loss.margin == pytest.approx(expected)
    MarginRamp(loss, steps=10)
    ramp = MarginRamp(loss, steps=10)
    for _ in range(10):
        ramp.step()
    assert loss.margin == 4


def test_settings_of_a_margin_are_checked_when_they_are_set() -> None:
    with Refused("finite_at_least", "margin", -1.0, minimum=0):
        SoftmaxMarginLoss(CONCERN, margin=-1.0)
    loss = SoftmaxMarginLoss(CONCERN)
    with Refused("finite_at_least", "margin", float("nan"), minimum=0):
        loss.margin = math.nan


@pytest.mark.parametrize(
    "loss",
    [ConcernLoss(), SoftmaxMarginLoss(torch.ones(4, 4)), GeneralizedMeanLoss(-2 / 3)],
)
def test_a_weight_of_0_leaves_a_sample_out_whatever_its_loss(loss: nn.Module) -> None:
    logits = torch.tensor([[-torch.inf, 1, 0, 0], [0, 1, 2, 3.0]], requires_grad=True)
    target = torch.tensor([0, 1])
    value = loss(logits, target, torch.tensor([0.0, 1.0]))
    assert value.item() == pytest.approx(loss(logits[1:], target[1:]).item())
    (gradient,) = torch.autograd.grad(value, logits)
    (alone,) = torch.autograd.grad(loss(logits[1:], target[1:]), logits)
    torch.testing.assert_close(gradient, alone)


def test_samples_without_any_weight_have_no_mean_and_no_gradient() -> None:
    for loss in (ConcernLoss(), SoftmaxMarginLoss(torch.ones(3, 3))):
        logits = torch.randn(2, 3, requires_grad=True)
        value = loss(logits, torch.tensor([0, 1]), torch.zeros(2))
        assert value.isnan()
        value.backward()
        assert torch.equal(logits.grad, torch.zeros(2, 3))  # type: ignore[arg-type]


def test_what_changes_before_a_second_derivative_is_told() -> None:
    logits, target = torch.randn(3, 4, requires_grad=True), torch.tensor([0, 0, 0])
    value = ConcernLoss(torch.rand(4, 4) + 0.1)(logits, target)
    target.fill_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(value, logits, create_graph=True)


def test_transforms_of_other_tensors_and_negative_views_are_taken() -> None:
    loss, target = ConcernLoss(torch.rand(4, 4) + 0.1), torch.tensor([0, 1, 2])
    logits = torch.randn(3, 4)
    expected = loss(logits, target)
    scaled = torch.func.vmap(lambda scale: loss(logits, target) * scale)(torch.ones(2))
    torch.testing.assert_close(scaled, expected.expand(2))
    torch.testing.assert_close(
        torch.func.functionalize(lambda given: loss(given, target))(logits), expected
    )
    negative = torch._neg_view(-logits)
    torch.testing.assert_close(loss(negative, target), expected)


def test_weights_of_samples_below_0_are_refused_by_all() -> None:
    for loss in (ConcernLoss(), GeneralizedMeanLoss(0.0)):
        with Refused("finite_at_least", "sample_weight"):
            loss(torch.randn(2, 4), torch.tensor([0, 1]), torch.tensor([1.0, -1.0]))
