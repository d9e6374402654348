"""Laws that all losses of logits share, with cross entropy of torch as the measure wherever they should equal it."""

import io
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import grad, vmap
from torch.nn.functional import cross_entropy, one_hot

from mpcs_torch.learning import ConcernLoss, GeneralizedMeanLoss, SoftmaxMarginLoss

CONCERN = 0.1 + torch.rand(5, 5, generator=torch.Generator().manual_seed(0))
WEIGHT = torch.tensor([1.0, 2.0, 0.5, 0.0, 3.0])
LIKE_CROSS_ENTROPY: dict[str, Callable[..., nn.Module]] = {
    "concern": lambda **given: ConcernLoss(CONCERN, concern_share=0.0, **given),
    "margin": lambda **given: SoftmaxMarginLoss(CONCERN, margin=0.0, **given),
    "mean": lambda **given: GeneralizedMeanLoss(0.0, **given),
}
LOSSES: dict[str, Callable[..., nn.Module]] = {
    "concern": lambda **given: ConcernLoss(CONCERN, **given),
    "no concern": lambda **given: ConcernLoss(CONCERN, concern_share=0.0, **given),
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
    kind=st.sampled_from(["labels", "ignored", "all ignored", "shares"]),
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
    if kind == "all ignored":
        target = torch.full(shape, -100)
    weight = WEIGHT.double() if weighted else None
    for name, make in LIKE_CROSS_ENTROPY.items():
        given: dict[str, Any] = {"label_smoothing": smoothing, "reduction": reduction}
        given = {} if name == "mean" else given
        expected = cross_entropy(logits, target, weight, **given)
        found = make(weight=weight, **given)(logits, target)
        torch.testing.assert_close(found, expected, equal_nan=True)


@every_loss
@given(
    seed=st.integers(0, 10**6),
    soft=st.booleans(),
    weighted=st.booleans(),
    reduction=st.sampled_from(["mean", "sum", "none"]),
)
def test_a_whole_sample_weight_is_a_sample_taken_so_often(
    name: str, seed: int, soft: bool, weighted: bool, reduction: str
) -> None:
    logits, labels, shares = draw(seed)
    times = torch.tensor([1, 3, 0, 2, 1, 1])
    target = shares if soft else labels
    settings: dict[str, Any] = {"weight": WEIGHT} if weighted else {}
    if name != "mean":
        settings["reduction"] = reduction
    loss = LOSSES[name](**settings)
    again = loss(logits.repeat_interleave(times, 0), target.repeat_interleave(times, 0))
    weighted_loss = loss(logits, target, times)
    if name == "mean" or reduction == "mean":
        sevenfold = loss(logits, target, 7.0 * times)
        torch.testing.assert_close(weighted_loss, sevenfold, equal_nan=True)
    torch.testing.assert_close(weighted_loss.sum(), again.sum(), equal_nan=True)


@pytest.mark.parametrize(
    "loss",
    [
        *(make() for make in LOSSES.values()),
        LOSSES["concern"](label_smoothing=0.2),
        LOSSES["margin"](label_smoothing=0.2),
    ],
)
def test_the_form_of_a_batch_does_not_matter(loss: nn.Module) -> None:
    """One-hot shares are labels, ignored samples are left out, and a single sample is a batch of one."""
    logits, labels, shares = draw(3)
    torch.testing.assert_close(
        loss(logits, one_hot(labels, 5).double()), loss(logits, labels)
    )
    ignored = torch.where(torch.arange(6) % 3 == 1, -100, labels)
    kept = loss(logits[ignored >= 0], labels[ignored >= 0])
    images = logits.reshape(3, 2, 5).movedim(-1, 1)
    torch.testing.assert_close(loss(images, ignored.reshape(3, 2)), kept)
    for target in (labels, shares):
        torch.testing.assert_close(loss(logits[0], target[0]), loss(logits[:1], target[:1]))


@every_loss
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("low", [-math.inf, -1e30])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_masked_class_has_no_gradient_and_spoils_none(
    name: str, soft: bool, low: float, dtype: torch.dtype
) -> None:
    logits, labels, shares = draw(5, dtype=dtype)
    target = shares * (torch.arange(5) < 3) if soft else labels % 3
    logits[:, 3] = low
    logits[0, 1:] = low
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


@given(
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([0.1, 1.0, 10.0, 40.0, 3000.0]),
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
    exact = loss(logits.double(), target)
    assert loss(logits, target).item() == pytest.approx(exact.item(), rel=2e-5)
    single = gradient_of(loss, logits, target).double()
    double = gradient_of(loss, logits.double(), target)
    highest = double.abs().max().item()
    torch.testing.assert_close(single, double, rtol=1e-3, atol=1e-6 * highest)


# torch itself raises this warning.
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:FutureWarning")
@pytest.mark.parametrize("name", ["concern", "margin"])
def test_derivatives_of_every_kind(name: str) -> None:
    logits, target, _ = draw(6)
    target[2] = -100
    of_batch = LOSSES[name](label_smoothing=0.3)

    def loss(scores: Tensor) -> Tensor:
        return of_batch(scores, target)

    leaf = logits.clone().requires_grad_()
    assert torch.autograd.gradcheck(loss, (leaf,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(loss, (leaf,))
    weights = torch.rand(6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda given: of_batch(logits, target, given), (weights,)
    ), "learned weights"


@every_loss
def test_gradients_of_single_samples(name: str) -> None:
    loss = LOSSES[name]()
    logits, target, _ = draw(0)
    found = vmap(grad(lambda one, label: loss(one.unsqueeze(0), label.unsqueeze(0))))(
        logits, target
    )
    for row, label, expected in zip(logits, target, found, strict=True):
        alone = gradient_of(loss, row.unsqueeze(0), label.unsqueeze(0))
        torch.testing.assert_close(alone, expected.unsqueeze(0))


@every_loss
def test_compiled_they_compute_the_same(name: str) -> None:
    logits, target, _ = draw(7, dtype=torch.float32)
    compiled = torch.compile(LOSSES[name](), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(logits, target), LOSSES[name]()(logits, target))


@every_loss
def test_a_batch_without_a_sample_that_counts_teaches_nothing(name: str) -> None:
    """PyTorch's issue 116349: the mean is NaN, which a run survives only if the gradient is 0."""
    logits, labels, _ = draw(8)
    for rest in ((torch.full((6,), -100),), (labels, torch.zeros(6))):
        assert LOSSES[name]()(logits, *rest).isnan()
        assert (gradient_of(LOSSES[name](), logits, *rest) == 0).all()


@every_loss
def test_they_are_cross_entropies_for_whoever_asks(name: str) -> None:
    """As skorch does, which takes a softmax of the outputs of a network then."""
    loss = LOSSES[name](weight=WEIGHT)
    assert isinstance(loss, nn.CrossEntropyLoss)
    assert not loss.state_dict(), "settings, no part of a checkpoint"
    loss.load_state_dict({})
    torch.save(loss, io.BytesIO())


@every_loss
def test_a_weight_of_0_leaves_a_sample_out_whatever_its_loss(name: str) -> None:
    loss = LOSSES[name]()
    logits, target, _ = draw(9)
    logits[0, target[0]] = -torch.inf
    weights = (torch.arange(6) > 0).double()
    torch.testing.assert_close(loss(logits, target, weights), loss(logits[1:], target[1:]))
    gradient = gradient_of(loss, logits, target, weights)
    alone = gradient_of(loss, logits[1:], target[1:])
    torch.testing.assert_close(gradient[1:], alone)
    assert (gradient[0] == 0).all()
