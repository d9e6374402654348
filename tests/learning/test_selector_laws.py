"""Laws of `CheckpointSelector`: what `update` accepts can be resumed and loaded; the rest changes nothing on disk."""

import argparse
import contextlib
import random
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mpcs_torch.errors import CodedError
from mpcs_torch.learning import CheckpointSelector, SelectionRule, checkpoint_files
from tests.power_failure import Image, image_of, restore
from tests.processes.forked import forked, succeeded
from tests.refused import Refused

RULE = SelectionRule("mpcs", {"mpcs": "min"})


numbers = st.one_of(
    st.floats(),
    st.integers(-(2**70), 2**70),
    st.just(10**400),
    st.floats().map(torch.tensor),
    st.floats(width=16).map(np.float16),
    st.integers(-9, 9).map(np.int8),
    st.sampled_from(
        [
            torch.tensor([0.5]),
            torch.tensor([[2]]),
            torch.tensor([0.5, 0.5]),
            torch.tensor(True),
        ]
    ),
    st.sampled_from(
        [
            np.array(0.5),
            np.array([0.5, 1.0]),
            np.bool_(True),
            True,
            Decimal("0.5"),
            Fraction(1, 3),
        ]
    ),
    st.sampled_from(
        ["0.5", b"1", None, 1j, object(), [], [0.5], {}, float, torch.tensor([])]
    ),
)
leaves = st.one_of(
    numbers,
    st.text(max_size=3),
    st.sampled_from(
        [
            torch.zeros(2, 3, dtype=torch.bfloat16),
            torch.zeros(3, requires_grad=True),
            torch.nn.Parameter(torch.ones(2)),
            torch.float64,
            torch.Size([2]),
            torch.device("cpu"),
            {1, 2},
            np.arange(3),
            np.str_("a"),
            np.dtype("f8"),
            slice(3),
            range(3),
            Path("a"),
            argparse.Namespace(lr=1),
            threading.Lock(),
            lambda: 1,
            iter([1]),
        ]
    ),
)
states = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=2) | st.integers(0, 3), inner, max_size=3),
        st.lists(st.tuples(st.sampled_from("ab"), inner), max_size=2).map(OrderedDict),
    ),
    max_leaves=5,
)


@settings(max_examples=150)
@given(
    state=states,
    epoch=numbers,
    mpcs=numbers,
    name=st.text(min_size=1, max_size=3),
    other=numbers,
)
@example({"best": np.float64(0.9)}, 0, 0.5, "loss", 0.5)
@example({"args": argparse.Namespace(lr=0.1)}, 0, 0.5, "loss", 0.5)
@example(torch.nn.Linear(2, 2), 0, 0.5, "loss", 0.5)
@example({}, torch.tensor(2), np.float32(0.5), "\ud800", float("-inf"))
@example({}, 0.0, 0.0, " ", 10**400)
def test_what_is_accepted_can_be_resumed_and_loaded(
    state: Any, epoch: Any, mpcs: Any, name: str, other: Any
) -> None:
    with TemporaryDirectory() as place:
        folder = Path(place)
        selector = CheckpointSelector(folder, RULE, flush=False)
        selector.update("first", epoch=-1, mpcs=1.0)
        before = image_of(folder)
        values = {"mpcs": mpcs}
        if name not in ("mpcs", "state", "epoch", "self"):
            values[name] = other
        refusal: CodedError | None = None
        try:
            selector.update(lambda: state, epoch=epoch, **values)
        except CodedError as error:
            refusal = error
        if refusal is not None:
            is_named = refusal.argument in ("epoch", name, "mpcs")
            assert is_named or refusal.argument.startswith("state")
            assert image_of(folder) == before
            return
        for again in (
            CheckpointSelector(folder, RULE, resume=True),
            CheckpointSelector.open(folder),
        ):
            assert [entry.key for entry in again.epochs] == [
                entry.key for entry in selector.epochs
            ]
            expected = state if float(mpcs) < 1 else "first"
            assert repr(again.load_best()) == repr(expected)
        selector.update("better", epoch=9, mpcs=float("-inf"))
        if float(mpcs) != float("-inf"):
            assert CheckpointSelector.open(folder).load_best() == "better"


def test_limits_may_be_numbers_of_any_library(tmp_path: Path) -> None:
    limits = [
        0.25,
        np.float32(0.25),
        np.float64(0.25),
        torch.tensor(0.25),
        Fraction(1, 4),
        1,
    ]
    for number, limit in enumerate(limits):
        folder = tmp_path / str(number)
        rule = SelectionRule(
            "mpcs",
            {"mpcs": "min"},
            within={"mpcs": limit},
            at_most={"mpcs": limit},
            at_least={"slope": limit},
        )
        CheckpointSelector(folder, rule).update({}, epoch=0, mpcs=0.02, slope=0.9)
        assert CheckpointSelector(folder, rule, resume=True).last_epoch == 0
        assert CheckpointSelector.open(folder).rule == rule


score = st.integers(0, 5).map(lambda n: n / 4) | st.just(float("nan"))


@settings(max_examples=60)
@given(
    scores=st.lists(st.tuples(score, score), min_size=1, max_size=12),
    options=st.fixed_dictionaries(
        {
            "top_k": st.integers(1, 2),
            "keep_last": st.booleans(),
            "keep_every": st.sampled_from([0, 3]),
            "keep_best_by": st.sampled_from([(), ("accuracy",)]),
            "keep_at_most": st.sampled_from([None, 2, 3]),
            "patience": st.sampled_from([None, 1, 3]),
        }
    ),
    restarts=st.sets(st.integers(0, 11)),
    within=st.sampled_from([{}, {"accuracy": 0.25}]),
)
def test_a_resumed_selector_equals_an_unbroken_one(
    scores: list[tuple[float, float]],
    options: dict[str, Any],
    restarts: set[int],
    within: dict[str, float],
) -> None:
    rule = SelectionRule("mpcs", {"mpcs": "min", "accuracy": "max"}, within=within)
    with TemporaryDirectory() as place:
        unbroken = CheckpointSelector(
            Path(place) / "unbroken", rule, flush=False, **options
        )
        resumed = CheckpointSelector(Path(place) / "resumed", rule, flush=False, **options)
        for epoch, (mpcs, accuracy) in enumerate(scores):
            if epoch in restarts:
                if epoch % 2:
                    resumed = CheckpointSelector.open(resumed.folder, flush=False)
                else:
                    resumed = CheckpointSelector(
                        resumed.folder, rule, resume=True, flush=False, **options
                    )
            for selector in (unbroken, resumed):
                selector.update(
                    {"epoch": torch.tensor(epoch)},
                    epoch=epoch,
                    mpcs=mpcs,
                    accuracy=accuracy,
                )
            assert image_of(unbroken.folder) == image_of(resumed.folder)
            assert (unbroken.best_path is None) == (resumed.best_path is None)
            assert unbroken.should_stop == resumed.should_stop
            if unbroken.best is not None and resumed.best is not None:
                assert unbroken.best.key == resumed.best.key
                assert unbroken.load_best() == {"epoch": torch.tensor(unbroken.best.number)}
            if options["keep_at_most"] is None:
                ranking = rule.ranking(unbroken.epochs)
                assert unbroken.best == (ranking[0] if ranking else None)
        if not within and options["keep_at_most"] is None:
            files = {f"epoch-{epoch:05}.pt" for epoch in epochs_to_keep(unbroken, options)}
            assert image_of(unbroken.folder).keys() == {*files, "manifest.json"}


def epochs_to_keep(selector: CheckpointSelector, options: dict[str, Any]) -> set[int]:
    """Return the epochs whose files the options keep, if nothing limits their number."""
    ranking = selector.rule.ranking(selector.epochs)
    kept = {epoch.number for epoch in ranking[: options["top_k"]]}
    number = len(selector.epochs)
    if options["keep_last"]:
        kept.add(number - 1)
    if options["keep_every"]:
        kept |= {*range(0, number, options["keep_every"])}
    picks = selector.rule.picked_by_each(selector.epochs)
    kept |= {picks[name].number for name in options["keep_best_by"] if name in picks}
    return kept


def test_the_record_is_readable_after_a_kill_at_any_byte(tmp_path: Path) -> None:
    selector = CheckpointSelector(tmp_path, RULE, top_k=9)
    for epoch in range(3):
        selector.update({"epoch": epoch}, epoch=epoch, mpcs=1 / (epoch + 1))
    whole = (tmp_path / checkpoint_files.MANIFEST).read_bytes()
    begins = whole.index(b"\n") + 1
    for size in range(begins, len(whole)):
        (tmp_path / checkpoint_files.MANIFEST).write_bytes(whole[:size])
        epochs = whole[:size].count(b"\n") - 1
        assert CheckpointSelector.open(tmp_path).last_epoch == (
            epochs - 1 if epochs else None
        )
    (tmp_path / checkpoint_files.MANIFEST).write_bytes(whole[:-9])
    CheckpointSelector.open(tmp_path).update({"epoch": 3}, epoch=3, mpcs=0.1)
    assert [epoch.number for epoch in CheckpointSelector.open(tmp_path).epochs] == [0, 1, 3]


def test_the_limit_on_files_holds_and_the_lost_pick_is_named(tmp_path: Path) -> None:
    rule = SelectionRule(
        "loss", {"loss": "min", "accuracy": "max"}, within={"accuracy": 0.01}
    )
    selector = CheckpointSelector(tmp_path, rule, keep_at_most=5, flush=False)
    for epoch in range(400):
        selector.update(
            {"epoch": epoch},
            epoch=epoch,
            loss=0.1 + epoch / 1000,
            accuracy=1 - 1 / (epoch + 2),
        )
        assert len(list(tmp_path.glob("*.pt"))) <= 5
    best, pick = selector.best, rule.ranking(selector.epochs)[0]
    assert best is not None
    assert (pick.number, pick.file) == (79, None)
    assert pick.values["loss"] < best.values["loss"] < pick.values["loss"] + 0.1
    assert selector.load_best() == {"epoch": best.number}
    assert [row[:2] for row in selector.explain().rows[:2]] == [
        ["the rule (its checkpoint is gone)", "79"],
        ["the rule, with a checkpoint", str(best.number)],
    ]


def test_patience_is_counted_from_the_last_change_of_the_best(tmp_path: Path) -> None:
    selector = CheckpointSelector(tmp_path, RULE, patience=2)
    stops = []
    for epoch, mpcs in enumerate([nan, nan, 0.5, 0.6, 0.4, 0.4, nan, 0.3]):
        selector.update({}, epoch=epoch, mpcs=mpcs)
        stops.append(selector.should_stop)
    assert stops == [False, True, False, False, False, False, True, False]


def test_epochs_that_a_resumed_run_repeats_do_not_count_twice(tmp_path: Path) -> None:
    """It crashed in epoch 4, and goes on from its best checkpoint, of epoch 1; the values differ a little."""
    selector = CheckpointSelector(tmp_path, RULE, patience=3)
    for epoch, mpcs in [(0, 0.5), (1, 0.3), (2, 0.4), (3, 0.41)]:
        selector.update({}, epoch=epoch, mpcs=mpcs)
    for _ in range(2):
        selector = CheckpointSelector(tmp_path, RULE, patience=3, resume=True)
        for epoch, mpcs, stops in [(2, 0.42, False), (3, 0.43, False), (4, 0.44, True)]:
            selector.update({}, epoch=epoch, mpcs=mpcs)
            assert selector.should_stop == (stops or selector.epochs[-1].number == 4)


def test_a_selector_is_shown_by_its_folder_rule_and_best_epoch(tmp_path: Path) -> None:
    selector = CheckpointSelector(tmp_path, RULE)
    for epoch, mpcs in enumerate([0.5, 0.3]):
        selector.update({}, epoch=epoch, mpcs=mpcs)
    text = f"CheckpointSelector({str(tmp_path)!r}, min mpcs, 2 epochs, best: epoch 1)"
    assert repr(selector) == text


def test_a_folder_without_a_record_is_not_opened(tmp_path: Path) -> None:
    with Refused("folder_of_selector", raises=FileNotFoundError, folder=str(tmp_path)):
        CheckpointSelector.open(tmp_path)
    selector = CheckpointSelector(tmp_path, RULE)
    selector.update({}, epoch=0, mpcs=0.5)
    text = (tmp_path / checkpoint_files.MANIFEST).read_text()
    (tmp_path / checkpoint_files.MANIFEST).write_text(
        text.replace('"top_k": 1', '"top_k": "one"')
    )
    with Refused("rule_of_selector", raises=checkpoint_files.InvalidValueError):
        CheckpointSelector.open(tmp_path)


def test_a_folder_that_changed_is_refused_without_resume(tmp_path: Path) -> None:
    first = CheckpointSelector(tmp_path, RULE, top_k=9)
    first.update("first", epoch=0, mpcs=1.0)
    second = CheckpointSelector(tmp_path, RULE, top_k=9, resume=True)
    second.update("second", epoch=1, mpcs=0.1)
    with Refused("other_selector", raises=RuntimeError, folder=str(tmp_path)):
        first.update("third", epoch=2, mpcs=0.7)
    third = CheckpointSelector(tmp_path, RULE, top_k=9, resume=True)
    second.update("second", epoch=3, mpcs=0.2)
    third.update("third", epoch=4, mpcs=0.3)
    numbers = [epoch.number for epoch in CheckpointSelector.open(tmp_path).epochs]
    assert numbers == [0, 1, 3, 4]


def test_every_process_may_call_update(tmp_path: Path) -> None:
    """The state may be gathered from all of them, so all are asked for it at the same updates."""

    def train(rank: int) -> None:
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{tmp_path}/ranks", rank=rank, world_size=2
        )
        selector = CheckpointSelector(tmp_path / "folder", RULE, patience=2)

        def state() -> dict[str, torch.Tensor]:
            gathered = torch.tensor(1.0)
            torch.distributed.all_reduce(gathered)
            return {"ranks": gathered}

        for epoch, mpcs in enumerate([0.5, 0.7, 0.3, 0.4, 0.6]):
            selector.update(state, epoch=epoch, mpcs=mpcs)
        assert selector.should_stop
        assert selector.best is not None
        assert selector.best.number == 2
        torch.distributed.barrier()
        assert selector.best_path == tmp_path / "folder" / "epoch-00002.pt"
        assert selector.load_best() == {"ranks": torch.tensor(2.0)}
        torch.distributed.destroy_process_group()

    assert succeeded([forked(lambda: train(0)), forked(lambda: train(1))])
    assert [path.name for path in (tmp_path / "folder").glob("*.pt")] == ["epoch-00002.pt"]


def test_averaged_weights_are_saved_and_shards_are_refused_by_name(tmp_path: Path) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import distribute_tensor
    from torch.optim.swa_utils import AveragedModel

    average = AveragedModel(torch.nn.Linear(2, 2), use_buffers=True)
    selector = CheckpointSelector(tmp_path / "average", RULE)
    selector.update(average.state_dict, epoch=0, mpcs=0.5)
    average.load_state_dict(selector.load_best())

    def shard() -> None:
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{tmp_path}/rank", rank=0, world_size=1
        )
        tensor = distribute_tensor(torch.ones(4), init_device_mesh("cpu", (1,)))
        place = "state['model']['weight']"
        with Refused(
            "whole_tensor", place, raises=checkpoint_files.InvalidValueError, type="DTensor"
        ):
            CheckpointSelector(tmp_path / "shards", RULE).update(
                {"model": {"weight": tensor}}, epoch=0, mpcs=0.5
            )
        assert list((tmp_path / "shards").iterdir()) == []

    assert succeeded([forked(shard)])


def traced(function: Callable[[], object], act: Callable[[int], object]) -> int:
    """Call a function, and ``act`` before each line of the selector; return the number of lines."""
    lines = 0

    def trace(frame: Any, event: str, argument: object) -> Any:
        nonlocal lines
        file = frame.f_code.co_filename
        if "mpcs_torch/learning" not in file and "mpcs_torch/io" not in file:
            return None
        if event == "line":
            lines += 1
            act(lines)
        return trace

    outer = sys.gettrace()  # that of coverage, perhaps
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(outer)
    return lines


# Nobody could close the files that are open at an interrupt.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_line_of_an_update_loses_nothing(tmp_path: Path) -> None:
    """The same selector goes on, as in a notebook; or another process does."""

    def interrupted(at: int) -> tuple[CheckpointSelector, int]:
        def interrupt(line: int) -> None:
            if line == at:
                raise KeyboardInterrupt

        selector = CheckpointSelector(tmp_path / str(at), RULE, keep_last=True, flush=False)
        selector.update({"epoch": 0}, epoch=0, mpcs=0.9)
        lines = at
        with contextlib.suppress(KeyboardInterrupt):
            lines = traced(
                lambda: selector.update({"epoch": 1}, epoch=1, mpcs=0.8), interrupt
            )
        return selector, lines

    _, lines = interrupted(at=0)
    assert lines > 100
    for at in range(1, lines + 1):
        selector, _ = interrupted(at)
        again = CheckpointSelector(selector.folder, RULE, keep_last=True, resume=True)
        assert again.load_best() in ({"epoch": 0}, {"epoch": 1})
        for epoch, mpcs in ((1, 0.8), (2, 0.95), (3, 0.7), (4, 0.85)):
            selector.update({"epoch": epoch}, epoch=epoch, mpcs=mpcs)
        opened = CheckpointSelector.open(selector.folder)
        assert [each.number for each in opened.epochs] in (
            [0, 1, 2, 3, 4],
            [0, 1, 1, 2, 3, 4],
        )
        assert (selector.load_best(), opened.load_best()) == ({"epoch": 3}, {"epoch": 3})
        files = sorted(path.name for path in selector.folder.iterdir())
        assert files == ["epoch-00003.pt", "epoch-00004.pt", checkpoint_files.MANIFEST]


def test_a_kill_at_any_line_of_a_loop_loses_nothing(tmp_path: Path) -> None:
    """Whoever goes on ends with the files of a loop that nobody killed, and touches no file of others."""
    draw = random.Random(0)
    values = [{"mpcs": draw.random(), "accuracy": draw.random()} for _ in range(8)]
    rule = SelectionRule(
        "mpcs", {"mpcs": "min", "accuracy": "max"}, within={"accuracy": 0.2}
    )

    def go_on(folder: Path) -> CheckpointSelector:
        return CheckpointSelector(
            folder, rule, top_k=2, keep_last=True, keep_every=4, resume=True
        )

    def train(selector: CheckpointSelector) -> None:
        # If all epochs are recorded, repeating the last one finishes pending work.
        for epoch in range(min(len(selector.epochs), 7), 8):
            selector.update({"epoch": epoch}, epoch=epoch, **values[epoch])

    images = list[Image]()

    def look(line: int) -> None:
        image = image_of(whole)
        if image not in images:
            images.append(image)

    whole = restore({"epoch-00003.pt": b"mine"}, tmp_path / "whole")
    traced(lambda: train(go_on(whole)), look)
    assert len(images) > 4 * len(values)
    recorded = 0
    for number, image in enumerate(images):
        selector = go_on(restore(image, tmp_path / str(number)))
        numbers = [epoch.number for epoch in selector.epochs]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) >= recorded
        recorded = len(numbers)
        if selector.best is not None:
            assert selector.load_best() == {"epoch": selector.best.number}
        assert (selector.best is None) == (not numbers)
        train(selector)
        assert image_of(selector.folder) == image_of(whole)


def test_an_update_within_another_harms_neither_record(tmp_path: Path) -> None:
    """As a signal handler may do."""
    selector = CheckpointSelector(tmp_path, RULE, top_k=9, resume=True)
    selector.update("first", epoch=0, mpcs=0.9)

    def state() -> str:
        selector.update("inner", epoch=1, mpcs=0.5)
        return "outer"

    with Refused("other_selector", raises=RuntimeError):
        selector.update(state, epoch=2, mpcs=0.1)
    selector.update("last", epoch=3, mpcs=0.4)
    opened = CheckpointSelector.open(tmp_path)
    assert [epoch.number for epoch in opened.epochs] == [0, 1, 3]
    assert opened.load_best() == "last"


def test_several_validations_of_an_epoch_are_told_apart(tmp_path: Path) -> None:
    selector = CheckpointSelector(tmp_path, RULE, keep_last=True, patience=2)
    for part in range(3):
        selector.update({"part": part}, epoch=3, mpcs=0.0)
    assert selector.load(3) == {"part": 2}
    assert selector.should_stop
    assert selector.load_best() == {"part": 0}


def test_a_folder_that_is_gone_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    selector = CheckpointSelector("here", RULE)
    selector.update({}, epoch=0, mpcs=0.5)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    selector.update({}, epoch=1, mpcs=0.4)
    (tmp_path / "here").rename(tmp_path / "moved")
    with pytest.raises(
        FileNotFoundError, match="the manifest is gone: the folder was moved or emptied"
    ):
        selector.update({}, epoch=2, mpcs=0.3)
    assert CheckpointSelector.open(tmp_path / "moved").last_epoch == 1


@pytest.mark.benchmark
def test_ten_thousand_updates_take_less_than_a_minute(tmp_path: Path) -> None:
    import time

    rule = SelectionRule(
        "mpcs", {"mpcs": "min", "accuracy": "max"}, within={"accuracy": 0.5}
    )
    selector = CheckpointSelector(
        tmp_path, rule, flush=False, keep_at_most=5, keep_best_by=("accuracy",)
    )
    began = time.monotonic()
    for epoch in range(10_000):
        selector.update({}, epoch=epoch, mpcs=1 / (epoch + 1), accuracy=epoch / 10_000)
    assert time.monotonic() - began < 60
    began = time.monotonic()
    assert CheckpointSelector.open(tmp_path).best == selector.best
    assert time.monotonic() - began < 10
