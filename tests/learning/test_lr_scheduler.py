"""`MPCSLR`: its equation, the reasons it gives, and restarts."""

import io
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.optim import SGD
from torch.optim.lr_scheduler import ReduceLROnPlateau

from mpcs_torch.learning import MPCSLR


def optimizer(*lrs: float) -> SGD:
    return SGD([{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": lr} for lr in lrs or (0.1,)])


def test_frameworks_see_a_plateau_scheduler() -> None:
    assert isinstance(MPCSLR(optimizer()), ReduceLROnPlateau)


@given(
    scores=st.lists(st.floats(0.01, 10), min_size=1, max_size=8),
    power=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    smoothing=st.sampled_from([0.0, 0.9]),
    warmup=st.integers(0, 4),
)
def test_the_learning_rate_matches_its_equation(
    scores: list[float], power: float, smoothing: float, warmup: int
) -> None:
    own = optimizer(0.1, 0.02)
    scheduler = MPCSLR(own, power=power, lowest=0.05, highest=1.5, smoothing=smoothing, warmup_steps=warmup)
    running = scores[0]
    for n, score in enumerate(scores, start=1):
        running = smoothing * running + (1 - smoothing) * score
        factor = min(max((running / scores[0]) ** power, 0.05), 1.5) * min(1, (n + 1) / (warmup + 1))
        scheduler.step(torch.tensor(score, dtype=torch.float64))
        assert scheduler.get_last_lr() == pytest.approx([0.1 * factor, 0.02 * factor])
        assert [group["lr"] for group in own.param_groups] == scheduler.get_last_lr()


def test_warmup_begins_before_the_first_score() -> None:
    own = optimizer()
    MPCSLR(own, warmup_steps=4)
    assert own.param_groups[0]["lr"] == pytest.approx(0.1 / 5)


def test_every_learning_rate_has_a_reason() -> None:
    scheduler = MPCSLR(optimizer(), warmup_steps=2)
    reasons = [scheduler.reason]
    for score in (0.0, 0.8, float("nan"), 0.4):
        scheduler.step(score)
        reasons.append(scheduler.reason)
    assert reasons == [
        "no score yet, warmup 0.333333",
        "score 0 cannot be the reference: kept",
        "score 0.8 of reference 0.8: factor 1",
        "score nan is not finite: kept",
        "score 0.4 of reference 0.8: factor 0.5",
    ]


def test_a_tensor_learning_rate_is_changed_in_place() -> None:
    own = SGD([torch.nn.Parameter(torch.zeros(1))], lr=torch.tensor(0.1))
    held = own.param_groups[0]["lr"]
    scheduler = MPCSLR(own, reference=1.0)
    scheduler.step(0.5)
    assert held.item() == pytest.approx(0.05)


def test_a_resumed_run_equals_an_unbroken_one() -> None:
    scores = [0.9, 0.7, 0.8, 0.3, 0.5]
    unbroken = MPCSLR(optimizer(), smoothing=0.5, warmup_steps=3)
    for score in scores:
        unbroken.step(score)
    first = MPCSLR(optimizer(), smoothing=0.5, warmup_steps=3)
    for score in scores[:2]:
        first.step(score)
    buffer = io.BytesIO()
    torch.save(first.state_dict(), buffer)
    buffer.seek(0)
    own = optimizer()
    second = MPCSLR(own, smoothing=0.5, warmup_steps=3)
    second.load_state_dict(torch.load(buffer, weights_only=True))
    assert own.param_groups[0]["lr"] == first.get_last_lr()[0]
    for score in scores[2:]:
        second.step(score)
    assert second.state_dict() == unbroken.state_dict()
    assert second.get_last_lr() == unbroken.get_last_lr()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"power": -1}, "power must be finite and >= 0, but got -1."),
        ({"reference": 0.0}, "reference must be finite and > 0, or None, but got 0.0."),
        ({"lowest": 2.0}, "lowest and highest must be finite with 0 <= lowest <= highest, but got 2.0, 1.0."),
        ({"smoothing": 1.0}, "smoothing must be from 0 to below 1, but got 1.0."),
        ({"warmup_steps": -1}, "warmup_steps must be at least 0, but got -1."),
    ],
)
def test_wrong_settings_are_refused(setting: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        MPCSLR(optimizer(), **setting)  # type: ignore[arg-type]


def test_a_scheduler_of_a_used_optimizer_starts_from_its_first_learning_rate() -> None:
    own = optimizer()
    first = MPCSLR(own, warmup_steps=4)
    first.step(0.8)
    first.step(0.4)
    second = MPCSLR(own, reference=0.8, warmup_steps=4, last_epoch=1)  # as skorch does when training goes on
    assert second.base_lrs == [0.1]
    second.step(0.4)
    assert own.param_groups[0]["lr"] == pytest.approx(0.1 * 4 / 5 / 2)
    with pytest.raises(ValueError, match="last_epoch must be at least -1, but got -2"):
        MPCSLR(own, last_epoch=-2)
