"""Situations of training loops, the same in every framework."""

from dataclasses import replace
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
import skorch
import torch
from ignite.engine import Engine
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
        "ignore:.*(log on epoch level|have no `val_dataloader`|resuming from a checkpoint that|adding a <class)"
    ),
    pytest.mark.filterwarnings(
        "ignore:ReduceLROnPlateau conditioned on metric:RuntimeWarning"
    ),
]
SCORES = [0.8, 0.4, 0.6, 0.5, 0.7]


def numbers(selector: CheckpointSelector) -> list[int]:
    """Return the places of the recorded epochs, from 0, whatever the framework counts from."""
    first = selector.epochs[0].number
    return [epoch.number - first for epoch in selector.epochs]


def recorded(selector: CheckpointSelector) -> list[float]:
    return [epoch.values[NAME] for epoch in selector.epochs]


def expected_rates(scores: list[float]) -> list[float]:
    """Return the rate of each epoch: the first rate, then in proportion to the score of the epoch before."""
    rates = [RATE, *(RATE * min(1.0, score / scores[0]) for score in scores[:-1])]
    return pytest.approx(rates, rel=1e-6)  # type: ignore[return-value]


@pytest.fixture(params=LOOPS)
def framework(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def loop(framework: str) -> Loop:
    return LOOPS[framework]


def test_the_best_epoch_is_picked_with_its_weights_and_the_rate_follows_the_score(
    loop: Loop, tmp_path: Path
) -> None:
    script = Script(SCORES, tmp_path)
    (selector,) = loop(script)
    assert recorded(selector) == pytest.approx(SCORES)
    assert numbers(selector) == [0, 1, 2, 3, 4]
    assert trained_weights(selector) == 1
    assert script.rates == expected_rates(SCORES)
    assert selector.best_path is not None
    assert torch.load(selector.best_path, weights_only=True)


@pytest.mark.parametrize("score", [nan, inf])
def test_an_epoch_that_diverges_is_recorded_and_not_picked(
    loop: Loop, tmp_path: Path, score: float
) -> None:
    script = Script([0.8, score, 0.4], tmp_path)
    (selector,) = loop(script)
    assert recorded(selector) == pytest.approx([0.8, score, 0.4], nan_ok=True)
    assert trained_weights(selector) == 2
    assert script.rates == [RATE] * 3


def test_smaller_improvements_than_min_delta_are_no_progress(
    loop: Loop, tmp_path: Path
) -> None:
    script = Script(
        [0.8, 0.75, 0.71, 0.1], tmp_path, options={"patience": 2, "min_delta": 0.1}
    )
    (selector,) = loop(script)
    assert recorded(selector) == pytest.approx([0.8, 0.75, 0.71])
    assert trained_weights(selector) == 2
    assert len(script.rates) == 3


@pytest.mark.parametrize("callbacks", [1, 2])
def test_a_run_that_crashes_resumes_as_if_it_had_not(
    loop: Loop, tmp_path: Path, callbacks: int
) -> None:
    """Each of two callbacks records once, and no scheduler is stepped twice."""
    crashing = Script(
        SCORES, tmp_path, crash_in=2, callbacks=callbacks, options={"keep_last": True}
    )
    with pytest.raises(CrashError):
        loop(crashing)
    options = {"keep_last": True, "resume": True}
    resumed = replace(crashing, crash_in=None, resume=True, rates=[], options=options)
    for selector in loop(resumed):
        assert recorded(selector) == pytest.approx(SCORES)
        assert trained_weights(selector) == 1
    assert [*crashing.rates[:2], *resumed.rates] == expected_rates(SCORES)


def test_patience_counts_on_after_a_resume(loop: Loop, tmp_path: Path) -> None:
    scores, options = [0.8, 0.4, 0.6, 0.5, 0.7, 0.1], {"keep_last": True, "patience": 3}
    with pytest.raises(CrashError):
        loop(Script(scores, tmp_path, crash_in=3, options=options))
    (selector,) = loop(
        Script(scores, tmp_path, resume=True, options={**options, "resume": True})
    )
    assert recorded(selector) == pytest.approx(scores[:5])


def test_a_second_training_is_not_mixed_with_the_first(loop: Loop, tmp_path: Path) -> None:
    with pytest.raises((TrainedTwiceError, ExistsError)):
        loop(Script(SCORES, tmp_path, fits=2))
    assert recorded(CheckpointSelector.open(tmp_path / "best-0")) == pytest.approx(SCORES)


def test_without_validation_it_is_said_that_nothing_is_recorded(
    framework: str, loop: Loop, tmp_path: Path
) -> None:
    outcome: Any = pytest.raises((MissingMetricError, InvalidValueError))
    if framework == "Ignite":
        outcome = pytest.warns(UserWarning, match="has recorded no epoch")
    with outcome:
        loop(Script(SCORES, tmp_path, validates=False))


def test_a_metric_that_is_missing_is_named_with_those_that_are_there_before_the_next_epoch(
    loop: Loop, tmp_path: Path
) -> None:
    script = Script(SCORES, tmp_path, logged="other_loss")
    with Refused("metric_of_rule", raises=MissingMetricError, metrics=NAME) as refused:
        loop(script)
    assert "other_loss" in refused.value.fields["given"]
    assert len(script.rates) == 1


def test_a_folder_with_an_earlier_run_is_refused_or_warned_of(
    loop: Loop, tmp_path: Path
) -> None:
    loop(Script(SCORES, tmp_path))
    with Refused("no_earlier_run", raises=ExistsError):
        loop(Script(SCORES, tmp_path))
    with pytest.warns(UserWarning, match=f"has {len(SCORES)} epochs of an earlier one"):
        loop(Script(SCORES, tmp_path, options={"resume": True}))


def test_if_no_epoch_is_within_the_limits_nothing_is_picked(
    loop: Loop, tmp_path: Path
) -> None:
    rule = SelectionRule(NAME, {NAME: "min"}, at_most={NAME: 0.1})
    (selector,) = loop(Script(SCORES, tmp_path, rule=rule, options={"patience": 1}))
    assert selector.best is None
    assert len(selector.epochs) == len(SCORES)  # patience waits for the first pick


def test_checkpoints_of_other_epochs_are_kept_as_asked(loop: Loop, tmp_path: Path) -> None:
    (selector,) = loop(Script(SCORES, tmp_path, options={"top_k": 2, "keep_last": True}))
    first = selector.epochs[0].number
    assert [epoch.number - first for epoch in selector.epochs if epoch.file] == [1, 3, 4]


def test_a_score_of_0_is_picked_and_its_rate_warned_of(loop: Loop, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="the score 0 sets the learning rate to 0"):
        (selector,) = loop(Script([0.8, 0.0, 0.0], tmp_path))
    assert trained_weights(selector) == 1


SECOND_SET = {"Lightning": "set/dataloader_idx_1", "Hugging Face": f"second_{NAME}"}
FIRST_SET = {"Hugging Face": f"first_{NAME}"}
"""The names that frameworks give to the scores of several validation sets."""


def test_the_rule_may_name_metrics_of_several_validation_sets(
    framework: str, loop: Loop, tmp_path: Path
) -> None:
    first, second = FIRST_SET.get(framework, NAME), SECOND_SET.get(framework, "second_loss")
    rule = SelectionRule(second, {second: "min", first: "min"}, within={first: 0.3})
    (selector,) = loop(Script(SCORES, tmp_path, rule=rule, second_set=second))
    assert [epoch.values[second] for epoch in selector.epochs] == pytest.approx(
        [1 - score for score in SCORES]
    )
    assert trained_weights(selector) == 4  # 0.3, of those whose first score is at most 0.7


def select_checkpoint(framework: str, *arguments: Any, **options: Any) -> Any:
    """Make a callback whose training begins, because skorch checks arguments then."""
    if framework == "Lightning":
        return lightning.SelectCheckpoint(*arguments, **options)
    if framework == "Hugging Face":
        return huggingface.SelectCheckpoint(*arguments, **options)
    if framework == "Ignite":
        required = {"state": dict, "trainer": Engine(lambda *_: None)}
        return ignite.SelectCheckpoint(*arguments, **required, **options)
    callback = with_skorch.SelectCheckpoint(*arguments, **options)
    callback.initialize().on_train_begin(skorch.NeuralNet(nn.Linear, nn.MSELoss))
    return callback


SELECTOR = "a selector"
"""It stands for one that the test makes."""


@pytest.mark.parametrize(
    ("arguments", "options", "code", "argument"),
    [
        ([Path("a")], {}, "rule_of_folder", "rule"),
        ([RULE, Path("a")], {}, "selector_or_folder", "selector_or_folder"),
        ([SELECTOR, RULE], {}, "of_selector", "rule"),
        ([SELECTOR], {"patience": 2}, "of_selector", "patience"),
        ([Path("a"), RULE], {"pateince": 2}, "unknown_setting", "SelectCheckpoint"),
    ],
)
def test_arguments_that_do_not_fit_are_named(
    framework: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[Any],
    options: dict[str, Any],
    code: str,
    argument: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if arguments[0] == SELECTOR:
        arguments = [CheckpointSelector(tmp_path / "b", RULE), *arguments[1:]]
    with Refused(code, argument, raises=ArgumentsError):
        select_checkpoint(framework, *arguments, **options)
    assert not Path("a").exists()


def test_a_selector_or_its_folder_and_rule_make_the_same_callback(
    framework: str, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"top_k": 2, "patience": 4}
    made = select_checkpoint(framework, tmp_path / "a", RULE, **options).selector
    assert (made.rule, made.top_k, made.patience) == (RULE, 2, 4)
    selector = CheckpointSelector(tmp_path / "b", RULE)
    assert select_checkpoint(framework, selector).selector is selector
