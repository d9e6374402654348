"""`MPCSLR`: its equation, the reasons it gives, and restarts."""

import copy
import io
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)
from torch.optim import SGD
from torch.optim.lr_scheduler import (
    CosineAnnealingLR,
    LambdaLR,
    LinearLR,
    ReduceLROnPlateau,
)

from mpcs_torch.learning import MPCSLR
from tests.processes.forked import forked, succeeded
from tests.refused import Refused


def optimizer(*lrs: float) -> SGD:
    return SGD(
        [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": lr} for lr in lrs or (0.1,)]
    )


def test_frameworks_see_a_plateau_scheduler() -> None:
    assert isinstance(MPCSLR(optimizer()), ReduceLROnPlateau)


def resumed(own: SGD, scheduler: MPCSLR, **settings: Any) -> tuple[SGD, MPCSLR]:
    """Return new ones with the states of an optimizer and its scheduler, as a checkpoint has them."""
    buffer = io.BytesIO()
    torch.save((own.state_dict(), scheduler.state_dict()), buffer)
    buffer.seek(0)
    of_optimizer, of_scheduler = torch.load(buffer, weights_only=True)
    again = optimizer(0.1, 0.02)
    loaded = MPCSLR(again, **settings)
    again.load_state_dict(of_optimizer)
    loaded.load_state_dict(of_scheduler)
    assert loaded.state_dict() == scheduler.state_dict()
    assert loaded.get_last_lr() == scheduler.get_last_lr()
    return again, loaded


@given(
    scores=st.lists(st.floats(0.01, 10), min_size=1, max_size=8),
    power=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    smoothing=st.sampled_from([0.0, 0.9]),
    warmup=st.integers(0, 4),
    resumed_at=st.integers(1, 8),
)
def test_the_learning_rate_matches_its_equation(
    scores: list[float], power: float, smoothing: float, warmup: int, resumed_at: int
) -> None:
    settings: dict[str, Any] = {
        "power": power,
        "lowest": 0.05,
        "highest": 1.5,
        "smoothing": smoothing,
        "warmup_steps": warmup,
    }
    own = optimizer(0.1, 0.02)
    scheduler = MPCSLR(own, **settings)
    assert scheduler.get_last_lr() == pytest.approx(
        [0.1 / (warmup + 1), 0.02 / (warmup + 1)]
    )
    running = scores[0]
    for n, score in enumerate(scores, start=1):
        running = smoothing * running + (1 - smoothing) * score
        factor = min(max((running / scores[0]) ** power, 0.05), 1.5) * min(
            1, (n + 1) / (warmup + 1)
        )
        if n == resumed_at:
            own, scheduler = resumed(own, scheduler, **settings)
        scheduler.step(torch.tensor(score, dtype=torch.float64))
        assert scheduler.get_last_lr() == pytest.approx([0.1 * factor, 0.02 * factor])
        assert [group["lr"] for group in own.param_groups] == scheduler.get_last_lr()


def test_every_learning_rate_has_a_reason() -> None:
    scheduler = MPCSLR(optimizer(), warmup_steps=2)
    reasons = [scheduler.reason]
    for score in (0.0, 0.8, float("nan"), 0.4):
        scheduler.step(score)
        reasons.append(scheduler.reason)
    assert reasons == [
        "no score yet, warmup 0.333333",
        "score 0 cannot be the reference: unchanged",
        "score 0.8 of reference 0.8: factor 1",
        "score nan is not finite: unchanged",
        "score 0.4 of reference 0.8: factor 0.5",
    ]


def test_a_tensor_learning_rate_is_changed_in_place() -> None:
    own = SGD([torch.nn.Parameter(torch.zeros(1))], lr=torch.tensor(0.1))
    held = own.param_groups[0]["lr"]
    scheduler = MPCSLR(own, reference=1.0)
    scheduler.step(0.5)
    assert held.item() == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("setting", "refusal"),
    [
        ({"power": -1}, Refused("finite_at_least", "power", -1, minimum=0)),
        ({"reference": 0.0}, Refused("finite_above", "reference", 0.0, minimum=0)),
        ({"lowest": 2.0}, Refused("finite_in_order", "lowest and highest")),
        ({"smoothing": 1.0}, Refused("from_below", "smoothing", 1.0, minimum=0, maximum=1)),
        ({"last_epoch": -2}, Refused("at_least", "last_epoch", -2, minimum=-1)),
        ({"warmup_steps": -1}, Refused("at_least", "warmup_steps", -1, minimum=0)),
    ],
)
def test_wrong_settings_are_refused(setting: dict[str, float], refusal: Refused) -> None:
    with refusal:
        MPCSLR(optimizer(), **setting)  # type: ignore[arg-type]


def test_a_scheduler_of_a_used_optimizer_starts_from_its_first_learning_rate() -> None:
    own = optimizer()
    first = MPCSLR(own, warmup_steps=4)
    first.step(0.8)
    first.step(0.4)
    # skorch does this when training goes on.
    second = MPCSLR(own, reference=0.8, warmup_steps=4, last_epoch=1)
    assert second.base_lrs == [0.1]
    second.step(0.4)
    assert own.param_groups[0]["lr"] == pytest.approx(0.1 * 4 / 5 / 2)
    MPCSLR(own, reference=0.2).step(0.2)
    assert own.param_groups[0]["lr"] == pytest.approx(0.1)


Others = Callable[[SGD], Any]
OTHERS: dict[str, Others] = {
    "cosine": lambda own: CosineAnnealingLR(own, 7),
    "linear": lambda own: LinearLR(own, 0.5, total_iters=3),
    "lambda": lambda own: LambdaLR(own, lambda n: 1 / (n + 1)),
}


class Loop:
    """A training loop with a scheduler that follows a score and one of torch's schedulers, or none."""

    def __init__(self) -> None:
        self.optimizer, self.other = SGD([weight()], lr=0.1), None
        self.scheduler = self.made()

    def made(self) -> MPCSLR:
        return MPCSLR(self.optimizer, reference=1.0, lowest=0.01, highest=2.0)

    @property
    def rates(self) -> list[float]:
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def do(self, operation: str, value: float) -> None:
        if operation in OTHERS:
            self.other = OTHERS[operation](self.optimizer)
        elif operation == "train":
            self.optimizer.step()
            if self.other is not None:
                self.other.step()
        elif operation == "add":
            if isinstance(self.other, LambdaLR):
                self.other = None  # it would fail at the next step
            self.optimizer.add_param_group({"params": [weight()], "lr": 0.01 + value})
        elif operation == "by hand":
            self.optimizer.param_groups[-1]["lr"] = 0.01 + value
        elif operation in ("score", "nan"):
            self.scheduler.step(value if operation == "score" else math.nan)
        elif operation in ("state", "anew"):
            state = copy.deepcopy(self.scheduler.state_dict())
            if operation == "anew":
                self.scheduler = self.made()
            self.scheduler.load_state_dict(state)
        elif operation == "copy":
            self.optimizer, self.other, self.scheduler = copy.deepcopy(
                (self.optimizer, self.other, self.scheduler)
            )
        elif self.other is None:  # torch's own cannot be pickled
            self.optimizer, self.scheduler = pickle.loads(
                pickle.dumps((self.optimizer, self.scheduler))
            )


def weight() -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.zeros((), dtype=torch.float64))


OPERATIONS = [
    "train",
    "train",
    "score",
    "score",
    "nan",
    "add",
    "by hand",
    "state",
    "anew",
    "copy",
    "pickle",
    *OTHERS,
]
SEQUENCES = st.lists(
    st.tuples(st.sampled_from(OPERATIONS), st.sampled_from([0.0, 0.2, 0.5, 1.0, 1.7])),
    max_size=25,
)


@pytest.mark.filterwarnings(
    "ignore:(the learning rate|the score 0 sets|Seems like):UserWarning"
)
@given(operations=SEQUENCES)
def test_rates_that_are_set_follow_a_plain_formula(
    operations: list[tuple[str, float]],
) -> None:
    loop = Loop()
    bases = [0.1]
    for operation, value in operations:
        if operation in OTHERS or operation in ("score", "anew"):
            bases += loop.rates[len(bases) :]
        before = loop.rates
        loop.do(operation, value)
        if operation in ("nan", "state", "anew", "copy", "pickle"):
            assert loop.rates == before
        if operation == "score":
            assert loop.rates == pytest.approx(
                [max(base * value, base * 0.01) for base in bases]
            )
            assert loop.scheduler.get_last_lr() == loop.rates
        assert [
            group.get("initial_lr") for group in loop.optimizer.param_groups[: len(bases)]
        ] == bases


def with_cosine(own: SGD) -> tuple[MPCSLR, LambdaLR]:
    """The combination that the docstring of `MPCSLR` and the page of frameworks show."""
    score = MPCSLR(own, reference=1.0, sets_rates=False)
    return score, LambdaLR(
        own, lambda n: score.factor * (1 + math.cos(math.pi * n / 20)) / 2
    )


def test_a_cosine_is_multiplied_by_the_factor_and_resumes() -> None:
    own = SGD([weight()], lr=0.1)
    score, cosine = with_cosine(own)
    factor = 1.0
    for n in range(1, 21):
        if n % 4 == 0:  # an evaluation; its factor holds from the next batch on
            factor = 1 / n
            score.step(factor)
        own.step()
        cosine.step()
        expected = 0.1 * factor * (1 + math.cos(math.pi * n / 20)) / 2
        assert own.param_groups[0]["lr"] == pytest.approx(expected)
        resumed = SGD([weight()], lr=0.1)
        others = with_cosine(resumed)
        for part, saved in zip((resumed, *others), (own, score, cosine), strict=True):
            part.load_state_dict(copy.deepcopy(saved.state_dict()))
        own, score, cosine = resumed, *others
    assert score.factor == 1 / 20


@pytest.mark.parametrize("sets_rates", [True, False])
def test_what_is_computed_is_in_the_state_of_the_optimizer(sets_rates: bool) -> None:
    """Frameworks save the optimizer, but not the MPCSLR beside it; skorch makes one in every `partial_fit`."""
    settings: dict[str, Any] = {"sets_rates": sets_rates, "smoothing": 0.5}
    own = optimizer()
    scheduler = MPCSLR(own, **settings)
    scheduler.step(0.8)
    scheduler.step(0.4)
    restarted = optimizer()
    early = MPCSLR(restarted, **settings)  # before the state is loaded
    restarted.load_state_dict(copy.deepcopy(own.state_dict()))
    late = MPCSLR(restarted, **settings)
    assert early.factor == late.factor == scheduler.factor == pytest.approx(0.75)
    scheduler.step(0.2)
    late.step(0.2)
    assert early.factor == late.factor == scheduler.factor == pytest.approx(0.5)
    rates = [each.param_groups[0]["lr"] for each in (own, restarted)]
    assert rates == pytest.approx([0.05, 0.05] if sets_rates else [0.1, 0.1])


def test_a_checkpoint_of_distributed_training_restores_the_score() -> None:
    """torch.distributed.checkpoint loads only the values for which the optimizer has a place."""
    models = [torch.nn.Linear(2, 2) for _ in range(2)]
    saved, resumed = [SGD(model.parameters(), lr=0.1) for model in models]
    first, second = MPCSLR(saved), MPCSLR(resumed)
    first.step(0.8)
    first.step(0.4)
    options = StateDictOptions(flatten_optimizer_state_dict=True)
    state = get_optimizer_state_dict(models[0], saved, options=options)
    places = get_optimizer_state_dict(models[1], resumed, options=options)
    set_optimizer_state_dict(
        models[1], resumed, {name: state[name] for name in places}, options=options
    )
    assert (second.reference, second.score, second.factor) == (0.8, 0.4, 0.5)
    second.step(0.2)
    assert resumed.param_groups[0]["lr"] == pytest.approx(0.025)


def test_a_score_that_is_no_number_is_refused() -> None:
    for wrong in (None, "0.5", torch.zeros(2)):
        with Refused("number", "metrics, the evaluation score,"):
            MPCSLR(optimizer()).step(wrong)  # type: ignore[arg-type]


ZERO = "the score 0 sets the learning rate to 0.* Pass lowest="


@pytest.mark.parametrize(
    ("settings", "scores", "told"),
    [
        ({}, [7.0, 0.0], ZERO),
        ({"sets_rates": False}, [7.0, 0.0], ZERO),
        ({"reference": 3.0}, [7.0, 0.0], ZERO),
        (
            {"last_epoch": 3},
            [0.5],
            "the score 0.5 becomes the reference, because the optimizer has none",
        ),
        (
            {},
            [-0.3],
            "the score -0.3 is below 0: MPCSLR needs scores where lower is better",
        ),
    ],
)
def test_what_looks_wrong_is_told_once(
    settings: dict[str, Any], scores: list[float], told: str
) -> None:
    scheduler = MPCSLR(optimizer(), **settings)
    *before, last = scores
    for score in before:
        scheduler.step(score)
    with pytest.warns(UserWarning, match=told):
        scheduler.step(last)
    scheduler.step(last)


@pytest.mark.parametrize("settings", [{"lowest": 0.1}, {"smoothing": 0.5}])
def test_a_rate_that_stays_above_0_is_not_warned_of(settings: dict[str, Any]) -> None:
    scheduler = MPCSLR(optimizer(), **settings)
    for score in (7.0, 0.0, 1.0):
        scheduler.step(score)
    assert scheduler.get_last_lr()[0] > 0


def test_a_warmup_of_torch_keeps_the_base_rate() -> None:
    """The warmup starts at a tenth; schedulers that are made later must not take that for the first rate."""
    for others in (
        lambda own: LinearLR(own, 0.1, total_iters=3),
        lambda own: LambdaLR(own, lambda n: min(1, n / 5)),
    ):
        own = optimizer()
        warmup, scheduler = others(own), MPCSLR(own)
        for _ in range(6):
            own.step()
            warmup.step()
        scheduler.step(0.8)
        assert (own.param_groups[0]["lr"], own.param_groups[0]["initial_lr"]) == (0.1, 0.1)
        assert CosineAnnealingLR(own, 10).base_lrs == [0.1]


def test_a_rate_of_others_that_is_lost_is_told_once_whatever_was_told_before() -> None:
    own = optimizer()
    scheduler = MPCSLR(own)
    with pytest.warns(UserWarning, match="is below 0"):
        scheduler.step(-0.3)
    scheduler.step(0.8)
    own.param_groups[0]["lr"] = 0.02
    with pytest.warns(
        UserWarning,
        match=r"0.02, which was 0.1 .* is overwritten: .* pass sets_rates=False",
    ):
        scheduler.step(0.8)
    own.param_groups[0]["lr"] = 0.02
    scheduler.step(0.4)
    assert own.param_groups[0]["lr"] == pytest.approx(0.05)


def test_states_of_fewer_groups_load_but_no_others() -> None:
    saved = MPCSLR(optimizer())
    saved.step(1.0)
    saved.step(0.5)
    scheduler = MPCSLR(optimizer(0.1, 0.01))
    scheduler.load_state_dict(saved.state_dict())
    assert scheduler.factor == 0.5
    scheduler.step(0.1)
    assert scheduler.get_last_lr() == pytest.approx([0.01, 0.001])
    with Refused("scheduler_state", "state_dict"):
        scheduler.load_state_dict(ReduceLROnPlateau(optimizer()).state_dict())


def test_all_ranks_use_the_score_of_the_first(tmp_path: Path) -> None:
    def train(rank: int) -> None:
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{tmp_path}/ranks", rank=rank, world_size=2
        )
        scheduler = MPCSLR(optimizer(), reference=1.0)
        if rank == 0:
            scheduler.step(0.5)
        else:
            with pytest.warns(
                UserWarning,
                match="the score 0.3 of this rank differs from that of rank 0, 0.5, which all",
            ):
                scheduler.step(0.3)
        assert scheduler.get_last_lr() == [0.05]
        torch.distributed.destroy_process_group()

    assert succeeded([forked(lambda: train(0)), forked(lambda: train(1))])
