"""Twenty-one situations of training loops, the same in every framework, each run or marked with a reason."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
import skorch
import torch
from torch import nn

from mpcs_torch.errors import ArgumentsError, ExistsError, InvalidValueError
from mpcs_torch.integrations import huggingface, ignite, lightning
from mpcs_torch.integrations import skorch as with_skorch
from mpcs_torch.integrations.checkpoints import TrainedTwiceError
from mpcs_torch.learning import CheckpointSelector, SelectionRule
from mpcs_torch.learning.selection import MissingMetricError
from tests.integrations.loops import (
    LOOPS,
    NAME,
    RATE,
    RULE,
    CrashError,
    Loop,
    Script,
    trained_weights,
)
from tests.refused import Refused

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:.*(does not have many workers|LeafSpec|logging interval|callbacks used)"
    ),
    pytest.mark.filterwarnings(
        "ignore:.*(log on epoch level|resuming from a checkpoint that|adding a <class)"
    ),
    pytest.mark.filterwarnings(
        "ignore:ReduceLROnPlateau conditioned on metric:RuntimeWarning"
    ),
]
SCORES = [0.8, 0.4, 0.6, 0.5, 0.7]
CLASSES: dict[str, Any] = {
    "Lightning": lightning.SelectCheckpoint,
    "Hugging Face": huggingface.SelectCheckpoint,
    "Ignite": ignite.SelectCheckpoint,
    "skorch": with_skorch.SelectCheckpoint,
}
OWN_LOOP = {"plain", "Accelerate"}
"""Frameworks in which the user calls `CheckpointSelector.update`."""


def numbers(selector: CheckpointSelector) -> list[int]:
    """Return the places of the recorded epochs, from 0, whatever the framework counts from."""
    first = selector.epochs[0].number
    return [epoch.number - first for epoch in selector.epochs]


def recorded(selector: CheckpointSelector) -> list[float]:
    return [epoch.values[NAME] for epoch in selector.epochs]


def expected_rates(scores: list[float]) -> list[float]:
    """Return the rate of each epoch: the first rate, then in proportion to the score of the epoch before."""
    return pytest.approx(
        [RATE, *(RATE * min(1.0, score / scores[0]) for score in scores[:-1])], rel=1e-6
    )  # type: ignore[return-value]


@pytest.fixture(params=LOOPS)
def framework(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def loop(framework: str) -> Loop:
    return LOOPS[framework]


def needs(framework: str, reasons: dict[str, str]) -> None:
    """Skip a cell with the framework's own reason."""
    if framework in reasons:
        pytest.skip(f"{framework}: {reasons[framework]}")


def own_loop(reason: str) -> dict[str, str]:
    return dict.fromkeys(OWN_LOOP, reason)


def test_01_the_best_epoch_is_picked_with_the_weights_that_were_validated(
    loop: Loop, tmp_path: Path
) -> None:
    (selector,) = loop(Script(SCORES, tmp_path))
    assert recorded(selector) == pytest.approx(SCORES)
    assert numbers(selector) == [0, 1, 2, 3, 4]
    assert trained_weights(selector) == 1


def test_02_the_learning_rate_follows_the_score(loop: Loop, tmp_path: Path) -> None:
    script = Script(SCORES, tmp_path)
    loop(script)
    assert script.rates == expected_rates(SCORES)


@pytest.mark.parametrize("score", [nan, inf])
def test_03_an_epoch_that_diverges_is_recorded_and_not_picked(
    loop: Loop, tmp_path: Path, score: float
) -> None:
    script = Script([0.8, score, 0.4], tmp_path)
    (selector,) = loop(script)
    assert recorded(selector) == pytest.approx([0.8, score, 0.4], nan_ok=True)
    assert trained_weights(selector) == 2
    assert script.rates == [RATE] * 3


def test_04_patience_stops_the_training(loop: Loop, tmp_path: Path) -> None:
    script = Script([*SCORES, 0.1], tmp_path, options={"patience": 2})
    (selector,) = loop(script)
    assert recorded(selector) == pytest.approx(SCORES[:4])
    assert len(script.rates) == 4


def test_05_smaller_improvements_than_min_delta_are_no_progress(
    loop: Loop, tmp_path: Path
) -> None:
    script = Script(
        [0.8, 0.75, 0.71, 0.1], tmp_path, options={"patience": 2, "min_delta": 0.1}
    )
    (selector,) = loop(script)
    assert recorded(selector) == pytest.approx([0.8, 0.75, 0.71])
    assert trained_weights(selector) == 2


def test_06_of_two_callbacks_each_records_once_and_steps_no_scheduler_twice(
    loop: Loop, tmp_path: Path
) -> None:
    script = Script(SCORES, tmp_path, callbacks=2)
    selectors = loop(script)
    assert [recorded(selector) for selector in selectors] == [pytest.approx(SCORES)] * 2
    assert script.rates == expected_rates(SCORES)


@pytest.mark.parametrize("callbacks", [1, 2])
def test_07_a_run_that_crashes_resumes_as_if_it_had_not(
    loop: Loop, tmp_path: Path, callbacks: int
) -> None:
    options = {"keep_last": True}
    crashing = Script(SCORES, tmp_path, crash_in=2, callbacks=callbacks, options=options)
    with pytest.raises(CrashError):
        loop(crashing)
    resumed = Script(
        SCORES,
        tmp_path,
        resume=True,
        callbacks=callbacks,
        options={**options, "resume": True},
    )
    for selector in loop(resumed):
        assert recorded(selector) == pytest.approx(SCORES)
        assert trained_weights(selector) == 1
    assert [*crashing.rates[:2], *resumed.rates] == expected_rates(SCORES)


def test_08_patience_counts_on_after_a_resume(loop: Loop, tmp_path: Path) -> None:
    scores, options = [0.8, 0.4, 0.6, 0.5, 0.7, 0.1], {"keep_last": True, "patience": 3}
    with pytest.raises(CrashError):
        loop(Script(scores, tmp_path, crash_in=3, options=options))
    (selector,) = loop(
        Script(scores, tmp_path, resume=True, options={**options, "resume": True})
    )
    assert recorded(selector) == pytest.approx(scores[:5])


def test_09_a_second_training_is_not_mixed_with_the_first(
    framework: str, loop: Loop, tmp_path: Path
) -> None:
    needs(framework, own_loop("the loop is the user's, and so is the selector of each run"))
    with pytest.raises((TrainedTwiceError, ExistsError)):
        loop(Script(SCORES, tmp_path, fits=2))
    assert recorded(CheckpointSelector.open(tmp_path / "best-0")) == pytest.approx(SCORES)


def test_10_without_validation_it_is_said_that_nothing_is_recorded(
    framework: str, loop: Loop, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    needs(framework, own_loop("nothing is recorded if the user calls no update"))
    if framework == "Ignite":
        with pytest.warns(UserWarning, match="SelectCheckpoint has recorded no epoch"):
            loop(Script(SCORES, tmp_path, validates=False))
        return
    with pytest.raises((MissingMetricError, InvalidValueError)):
        loop(Script(SCORES, tmp_path, validates=False))


def test_11_a_metric_that_is_missing_is_named_with_those_that_are_there(
    loop: Loop, tmp_path: Path
) -> None:
    with pytest.raises(MissingMetricError) as error:
        loop(Script(SCORES, tmp_path, logged="other_loss"))
    assert error.value.fields["metrics"] == NAME
    assert "other_loss" in error.value.fields["given"]


def test_12_the_best_checkpoint_loads_without_running_code(
    loop: Loop, tmp_path: Path
) -> None:
    (selector,) = loop(Script(SCORES, tmp_path))
    assert selector.best_path is not None
    assert torch.load(selector.best_path, weights_only=True)


def test_13_a_folder_with_an_earlier_run_is_refused(loop: Loop, tmp_path: Path) -> None:
    loop(Script(SCORES, tmp_path))
    with pytest.raises(ExistsError) as error:
        loop(Script(SCORES, tmp_path))
    assert error.value.code == "no_earlier_run"


def test_14_if_no_epoch_is_within_the_limits_nothing_is_picked(
    loop: Loop, tmp_path: Path
) -> None:
    rule = SelectionRule(NAME, {NAME: "min"}, at_most={NAME: 0.1})
    (selector,) = loop(Script(SCORES, tmp_path, rule=rule, options={"patience": 1}))
    assert (selector.best, len(selector.epochs)) == (
        None,
        len(SCORES),
    )  # and patience waits for the first pick


def test_15_checkpoints_of_other_epochs_are_kept_as_asked(
    loop: Loop, tmp_path: Path
) -> None:
    (selector,) = loop(Script(SCORES, tmp_path, options={"top_k": 2, "keep_last": True}))
    first = selector.epochs[0].number
    assert [epoch.number - first for epoch in selector.epochs if epoch.file] == [1, 3, 4]


def test_16_a_score_of_0_is_picked_and_its_rate_warned_of(
    loop: Loop, tmp_path: Path
) -> None:
    with pytest.warns(UserWarning, match="the score 0 sets the learning rate to 0"):
        (selector,) = loop(Script([0.8, 0.0, 0.0], tmp_path))
    assert trained_weights(selector) == 1


SECOND_SET = {"Lightning": "set/dataloader_idx_1", "Hugging Face": f"second_{NAME}"}
FIRST_SET = {"Hugging Face": f"first_{NAME}"}
"""The names that frameworks give to the scores of several validation sets."""


def test_17_the_rule_may_name_metrics_of_several_validation_sets(
    framework: str, loop: Loop, tmp_path: Path
) -> None:
    first, second = FIRST_SET.get(framework, NAME), SECOND_SET.get(framework, "second_loss")
    rule = SelectionRule(second, {second: "min", first: "min"}, within={first: 0.3})
    (selector,) = loop(Script(SCORES, tmp_path, rule=rule, second_set=second))
    assert [epoch.values[second] for epoch in selector.epochs] == pytest.approx(
        [1 - score for score in SCORES]
    )
    assert trained_weights(selector) == 4  # 0.3, of those whose first score is at most 0.7


@dataclass
class Wrong:
    """Arguments of `SelectCheckpoint` that do not fit, and how they are refused."""

    arguments: tuple[Any, ...]
    options: dict[str, Any]
    refusal: Refused


def wrong_arguments(folder: Path) -> Iterator[Wrong]:
    selector = CheckpointSelector(folder / "of selector", RULE)

    def refused(code: str, argument: str, *value: Any, **fields: Any) -> Refused:
        return Refused(code, argument, *value, raises=ArgumentsError, **fields)

    def unknown(name: str) -> Refused:
        return refused("unknown_setting", "SelectCheckpoint", name=name)

    yield Wrong((folder / "a",), {}, refused("rule_of_folder", "rule", None))
    yield Wrong(
        (RULE, folder / "a"), {}, refused("selector_or_folder", "selector_or_folder", RULE)
    )
    yield Wrong((selector, RULE), {}, refused("of_selector", "rule"))
    yield Wrong((selector,), {"patience": 2}, refused("of_selector", "patience"))
    yield Wrong((folder / "a", RULE), {"save_top_k": 2}, unknown("save_top_k"))
    yield Wrong((folder / "a", RULE), {"pateince": 2}, unknown("pateince"))


@pytest.mark.parametrize("name", CLASSES)
def test_18_arguments_that_do_not_fit_are_named(name: str, tmp_path: Path) -> None:
    own = {"Ignite": {"state": dict, "trainer": ignite.Engine(lambda *_: None)}}.get(
        name, {}
    )
    for wrong in wrong_arguments(tmp_path):
        with wrong.refusal:
            made(CLASSES[name], wrong.arguments, {**own, **wrong.options})
    assert not (tmp_path / "a").exists()


OF_OTHERS: dict[str, dict[str, Any]] = {
    "Lightning": {"save_on_train_epoch_end": True},
    "Ignite": {"state": dict},
    "skorch": {"load_best": True},
}


@pytest.mark.parametrize("other", OF_OTHERS)
@pytest.mark.parametrize("name", CLASSES)
def test_19_an_argument_of_another_framework_is_named(
    name: str, other: str, tmp_path: Path
) -> None:
    needs(name, {other: "it is an argument of its own"})
    own = {"Ignite": {"state": dict, "trainer": ignite.Engine(lambda *_: None)}}.get(
        name, {}
    )
    (argument,) = OF_OTHERS[other]
    with Refused(
        "unknown_setting", "SelectCheckpoint", raises=ArgumentsError, name=argument
    ):
        made(CLASSES[name], (tmp_path, RULE), {**own, **OF_OTHERS[other]})


def made(
    kind: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    callback = kind(*arguments, **options)
    if isinstance(callback, with_skorch.SelectCheckpoint):
        callback.initialize().on_train_begin(skorch.NeuralNet(nn.Linear, nn.MSELoss))
    return callback


@pytest.mark.parametrize("name", CLASSES)
def test_20_a_selector_or_its_folder_and_rule_make_the_same_callback(
    name: str, tmp_path: Path
) -> None:
    own = {"Ignite": {"state": dict, "trainer": ignite.Engine(lambda *_: None)}}.get(
        name, {}
    )
    from_folder = made(
        CLASSES[name], (tmp_path / "a", RULE), {**own, "top_k": 2, "patience": 4}
    ).selector
    selector = CheckpointSelector(tmp_path / "b", RULE, top_k=2, patience=4)
    from_selector = made(CLASSES[name], (selector,), own).selector
    assert from_selector is selector
    assert (from_folder.rule, from_folder.top_k, from_folder.patience) == (RULE, 2, 4)


def test_21_a_new_training_in_the_folder_of_another_one_is_warned_of(
    framework: str, loop: Loop, tmp_path: Path
) -> None:
    needs(
        framework,
        own_loop("the loop is the user's, and so is the state with which it begins"),
    )
    loop(Script(SCORES, tmp_path))
    with pytest.warns(
        UserWarning, match=f"begins anew, but .* has {len(SCORES)} epochs of an earlier one"
    ):
        loop(Script(SCORES, tmp_path, options={"resume": True}))


def test_every_situation_has_its_number() -> None:
    found = re.findall(r"^def test_(\d\d)_", Path(__file__).read_text(), flags=re.MULTILINE)
    assert [int(number) for number in found] == list(range(1, 22))
