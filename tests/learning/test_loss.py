"""The losses: MPCS and means as their limits, what they refuse, and the ramp of a margin."""

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from mpcs_torch.functional import ProbabilitiesWarning, meta_pattern_concern_score
from mpcs_torch.functional.concern.losses import log_complement
from mpcs_torch.learning import (
    ConcernLoss,
    GeneralizedMeanLoss,
    MarginRamp,
    SoftmaxMarginLoss,
)
from mpcs_torch.trainer.config.load import load_packaged_config
from tests.oracles import naive
from tests.refused import Refused

POWERS = (-2.0, -2 / 3, -1e-3, 0.0, 1e-12, 0.5, 1.0)
LOGITS, TARGET, ONES = torch.zeros(2, 3), torch.tensor([0, 1]), torch.ones(3, 3)
LOSSES = {
    "concern": ConcernLoss,
    "margin": lambda **given: SoftmaxMarginLoss(ONES, **given),
    "mean": lambda **given: GeneralizedMeanLoss(-2 / 3, **given),
}
every_loss = pytest.mark.parametrize("name", LOSSES)


def draw(seed: int, samples: int = 7, classes: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(samples, classes, generator=generator, dtype=torch.float64)
    target = torch.randint(0, classes, (samples,), generator=generator)
    return logits, target, 0.1 + torch.rand(classes, classes, generator=generator)


@given(seed=st.integers(0, 10**6))
def test_the_concern_loss_is_the_limit_of_mpcs(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    probs = 0.05 + torch.rand(20, 4, generator=generator, dtype=torch.float64)
    probs /= probs.sum(1, keepdim=True)
    assert probs.min() >= 0.01
    assert probs.max() <= 0.99
    target = torch.randint(0, 4, (20,), generator=generator)
    concern = 0.1 + torch.rand(4, 4, generator=generator)
    score = meta_pattern_concern_score(
        probs, target, num_classes=4, k=4, t=10**7, concern=concern, from_logits=False
    )
    ours = ConcernLoss(concern)(probs.log(), target)
    assert ours.item() == pytest.approx(score.item(), abs=1e-4)


@given(seed=st.integers(0, 10**6), power=st.sampled_from(POWERS))
def test_the_loss_of_a_mean_is_minus_its_logarithm(seed: int, power: float) -> None:
    logits, target, _ = draw(seed)
    probs = logits.softmax(1)[torch.arange(7), target].tolist()
    exponent = 0.0 if abs(power) < 1e-9 else power
    expected = -math.log(naive.generalized_mean(probs, exponent, 0.0))
    ours = GeneralizedMeanLoss(power)(logits, target)
    assert ours.item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("power", POWERS)
def test_the_gradient_of_a_mean_is_that_of_cross_entropy_with_weights_of_mean_one(
    power: float,
) -> None:
    logits, target, _ = draw(0, samples=30)
    logits.requires_grad_()
    loss = GeneralizedMeanLoss(power)
    assert torch.autograd.gradcheck(lambda z: loss(z, target), (logits,))
    (ours,) = torch.autograd.grad(loss(logits, target), logits)
    losses = cross_entropy(logits, target, reduction="none")
    weights = (-power * losses).softmax(0).detach()
    (theirs,) = torch.autograd.grad((weights * losses).sum(), logits)
    assert torch.allclose(ours, theirs)


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16]
)
@pytest.mark.parametrize("label", [0, 1, 2])
@pytest.mark.parametrize(
    "loss",
    [ConcernLoss(ONES), SoftmaxMarginLoss(ONES), *map(GeneralizedMeanLoss, POWERS)],
)
def test_saturated_logits_give_finite_values_and_gradients(
    loss: nn.Module, label: int, dtype: torch.dtype
) -> None:
    logits = torch.tensor(
        [[1e4, -1e4, 0.0], [-1e4, 1e4, 0.0], [0.0, 0.0, 0.0]],
        dtype=dtype,
        requires_grad=True,
    )
    target = torch.tensor([label, 0, 0])
    value = loss(logits, target)
    value.backward()
    assert value.isfinite()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert (loss(logits[:1], target[:1]) > 1000) == (label != 0)


def test_the_complement_of_a_probability_that_rounds_to_one_is_accurate() -> None:
    exact = log_complement(torch.tensor([[40.0, 0.0, 0.0]], dtype=torch.float64))
    assert log_complement(torch.tensor([[40.0, 0.0, 0.0]])).tolist()[0] == pytest.approx(
        exact.tolist()[0], rel=1e-6
    )
    assert exact[0, 0].item() == pytest.approx(-40 + math.log(2), rel=1e-12)


def test_run_configs_take_it_by_name() -> None:
    config = load_packaged_config(
        "experiments/digits", ["loss={name: generalized_mean, power: -0.5}"]
    )
    assert config.loss.model_extra == {"power": -0.5}


# What is refused or warned of


@every_loss
@pytest.mark.parametrize(
    ("batch", "refusal"),
    [
        ((LOGITS.long(), TARGET), Refused("floating", "logits")),
        (
            (LOGITS[:, :1], TARGET),
            Refused("shape", "logits", shape="(N, C), (N, C, ...) or (C,) with C >= 2"),
        ),
        ((LOGITS, TARGET[:1]), Refused("shape", "target", shape=(2,))),
        (
            (LOGITS, TARGET.float()),
            Refused("shape_of", "target", other="logits", shape=(2, 3)),
        ),
        ((LOGITS, LOGITS - 1), Refused("finite_shares", "target", -1.0)),
        ((LOGITS, LOGITS + math.inf), Refused("finite_shares", "target", math.inf)),
        (
            (LOGITS, TARGET + 2),
            Refused("class_indices_or", "target", 3, last=2, ignored=-100),
        ),
        (
            (LOGITS, TARGET - 1),
            Refused("class_indices_or", "target", -1, last=2, ignored=-100),
        ),
        *(
            (
                (LOGITS, TARGET, torch.tensor([1.0, bad])),
                Refused("finite_at_least", "sample_weight", minimum=0),
            )
            for bad in (-1.0, math.nan, math.inf)
        ),
        (
            (LOGITS, TARGET, torch.ones(5)),
            Refused("shape", "sample_weight", shape=(2,)),
        ),
    ],
)
def test_batches_that_do_not_fit_are_refused(
    name: str, batch: tuple[Tensor, ...], refusal: Refused
) -> None:
    with refusal:
        LOSSES[name]()(*batch)


@every_loss
@pytest.mark.parametrize(
    ("weight", "refusal"),
    [
        (torch.tensor([1.0, -1.0, 1.0]), Refused("class_weights", "weight")),
        (torch.tensor([1.0, math.nan, 1.0]), Refused("class_weights", "weight")),
        (torch.tensor([1.0, math.inf, 1.0]), Refused("class_weights", "weight")),
        (torch.ones(3, 1), Refused("shape", "weight")),
        (torch.ones(4), Refused("shape", "weight", shape="(3,)")),
    ],
)
def test_wrong_class_weights_are_refused(
    name: str, weight: Tensor, refusal: Refused
) -> None:
    with refusal:
        LOSSES[name](weight=weight)(LOGITS, TARGET)


def ramp(steps: int, begin: float, end: float) -> MarginRamp:
    return MarginRamp(SoftmaxMarginLoss(ONES), steps, begin=begin, end=end)


@pytest.mark.parametrize(
    ("make", "refusal"),
    [
        (
            lambda: ConcernLoss(label_smoothing=-0.1)(LOGITS, TARGET),
            Refused("between", "label_smoothing", -0.1, minimum=0, maximum=1),
        ),
        (
            lambda: ConcernLoss(reduction="avg")(LOGITS, TARGET),  # type: ignore[arg-type]
            Refused("one_of", "reduction", "avg"),
        ),
        (
            lambda: ConcernLoss(concern_share=1.5)(LOGITS, TARGET),
            Refused("between", "concern_share", 1.5, minimum=0, maximum=1),
        ),
        (
            lambda: ConcernLoss(ignore_index=4)(LOGITS, LOGITS),
            Refused("below_0_for_shares", "ignore_index", 4),
        ),
        (lambda: ConcernLoss(0 * ONES), Refused("weights_off_diagonal", "concern")),
        (lambda: SoftmaxMarginLoss(0 * ONES), Refused("some_cost", "concern")),
        (
            lambda: ConcernLoss(ONES)(torch.zeros(2, 4), TARGET),
            Refused("covers_classes", "concern", 3, classes=4),
        ),
        (
            lambda: SoftmaxMarginLoss(ONES)(torch.zeros(2, 4), TARGET),
            Refused("covers_classes", "concern", 3, classes=4),
        ),
        (
            lambda: ConcernLoss(ONES, weight=torch.ones(4).numpy()),  # type: ignore[arg-type]
            Refused("shape", "weight", shape="(3,)"),
        ),
        *(
            (
                lambda margin=margin: SoftmaxMarginLoss(ONES, margin=margin),
                Refused("finite_at_least", "margin", margin, minimum=0),
            )
            for margin in (-0.5, math.nan, math.inf)
        ),
        (
            lambda: setattr(SoftmaxMarginLoss(ONES), "margin", math.nan),
            Refused("finite_at_least", "margin", math.nan, minimum=0),
        ),
        (lambda: GeneralizedMeanLoss(math.inf), Refused("finite", "power", math.inf)),
        (lambda: ramp(0, 0.1, 0.6), Refused("at_least", "steps", 0, minimum=1)),
        *(
            (
                lambda shares=shares: ramp(5, *shares),
                Refused("shares_in_order", "begin and end", list(shares)),
            )
            for shares in ((0.6, 0.6), (-0.1, 0.6), (0.1, 1.1))
        ),
    ],
)
def test_wrong_settings_are_refused(make: Callable[[], Any], refusal: Refused) -> None:
    with refusal:
        make()


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
    target = torch.tensor([0, label]).to(dtype)
    with Refused("class_indices_or", "target", label, last=2, ignored=ignore_index):
        ConcernLoss(ignore_index=ignore_index)(LOGITS, target)


@every_loss
def test_probabilities_in_place_of_logits_are_warned_of_whatever_dimensions_follow(
    name: str,
) -> None:
    loss = LOSSES[name]()
    logits, target = draw(0, samples=14, classes=3)[:2]
    for shape in ((14,), (7, 2)):
        by_class = logits.reshape(*shape, 3).movedim(-1, 1)
        loss(by_class, target.reshape(shape))
        with pytest.warns(ProbabilitiesWarning, match="the logits look like probabilities"):
            loss(by_class.softmax(1), target.reshape(shape))


# The ramp


@given(
    moves=st.lists(
        st.sampled_from(
            ["make", "step", "step", "step", "save", "load", "pickle", "copy", "set"]
        )
    ),
    steps=st.integers(1, 20),
    shares=st.sampled_from([(0.1, 0.6), (0.25, 0.75), (0.0, 1.0)]),
)
@settings(deadline=None)
def test_a_ramp_made_again_is_a_ramp_made_once(
    moves: list[str], steps: int, shares: tuple[float, float]
) -> None:
    begin, end = shares
    loss, full, step, saved = SoftmaxMarginLoss(ONES, margin=4.0), 4.0, 0, {"step": 0}
    ramp = MarginRamp(loss, steps, begin=begin, end=end)
    for move in moves:
        if move == "make":
            ramp, step = MarginRamp(loss, steps, begin=begin, end=end), 0
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
        elif move == "pickle":
            loss, ramp = pickle.loads(pickle.dumps((loss, ramp)))
        else:
            loss, ramp = copy.deepcopy((loss, ramp))
        share = (step / steps - begin) / (end - begin)
        assert loss.margin == full * min(max(share, 0.0), 1.0)
        assert loss.full_margin == full
        assert f"margin={loss.margin:g}, full_margin={full:g}" in repr(loss)
