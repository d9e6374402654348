"""Laws that every public Metric obeys; a Metric that is not listed in `tests.metrics.cases` fails."""

import copy
import itertools
import pickle
import sys
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch._subclasses.fake_tensor import FakeTensorMode
from torchmetrics import Metric, MetricCollection
from torchmetrics.utilities.data import dim_zero_sum
from torchmetrics.wrappers import (
    BootStrapper,
    ClasswiseWrapper,
    MetricTracker,
    MinMaxMetric,
    Running,
)

from mpcs_torch import DangerousErrors, ExpectedConcern, MetaPatternConcernScore, metrics
from mpcs_torch.functional.inputs.faults import Fault
from mpcs_torch.metrics import Accuracy, ConfusionMatrix, DetectionCurve
from tests.metrics.case import Batch, MetricCase
from tests.metrics.cases import BY_NAME, CASES, values_of
from tests.metrics.two_processes import values_of_two_processes
from tests.plots.texts import text_faults
from tests.refused import Refused

SIZE = 40
DOUBLINGS = 28
"""After so many doublings, 40 samples are more than 10^10."""


@pytest.fixture(params=BY_NAME)
def case(request: pytest.FixtureRequest) -> MetricCase:
    return BY_NAME[request.param]


def whole(case: MetricCase) -> Batch:
    return case.batches.draw(SIZE, 0)


def part(case: MetricCase, start: int, stop: int) -> Batch:
    preds, target = whole(case)
    return preds[start:stop], target[start:stop]


def expected(case: MetricCase, batch: Batch | None = None) -> dict[str, Any]:
    values = of_whole(case) if batch is None else case.oracle(batch)
    return pytest.approx(values, rel=1e-9, nan_ok=True)


@cache
def of_whole(case: MetricCase) -> dict[str, float]:
    """Ask the oracle, which may take a second, only once."""
    return case.oracle(whole(case))


def updated(
    case: MetricCase, metric: Metric | None = None, batch: Batch | None = None
) -> Metric:
    """Update a metric, by default a fresh one, with a batch, by default the whole one."""
    metric = case.make() if metric is None else metric
    batch = whole(case) if batch is None else batch
    metric.update(*batch)
    return metric


def check(case: MetricCase, metric: Metric, batch: Batch | None = None) -> None:
    """Check that ``metric`` has the value that the oracle gives for ``batch``; by default, for the whole batch."""
    assert values_of(metric.compute()) == expected(case, batch)


def stranger(case: MetricCase) -> Metric:
    """Make a metric whose states must not be mistaken for those of this case."""
    return (case.make_stranger or case.make_other)()


def tensors(metric: Metric) -> list[Tensor]:
    """Return all tensors that the states hold."""
    tensors = list[Tensor]()
    for state in metric.metric_state.values():
        if isinstance(state, list):
            tensors += state
        else:
            tensors.append(state)
    return tensors


def test_every_public_metric_is_listed() -> None:
    public = {getattr(metrics, name) for name in metrics.__all__}
    assert public == set(CASES)
    assert all(issubclass(kind, Metric) for kind in public)


def test_class_constants_are_declared(case: MetricCase) -> None:
    kind = type(case.make())
    assert kind.full_state_update is False
    assert isinstance(kind.is_differentiable, bool)
    assert kind.higher_is_better is case.higher_is_better


def test_totals_of_ten_thousand_million_samples_still_grow(case: MetricCase) -> None:
    metric = updated(case)
    if any(isinstance(state, list) for state in metric.metric_state.values()):
        pytest.skip("holds every sample")
    summed = {
        name for name, reduction in metric._reductions.items() if reduction is dim_zero_sum
    }
    one = {name: metric.metric_state[name].clone() for name in summed}
    for _ in range(DOUBLINGS):
        metric.merge_state(pickle.loads(pickle.dumps(metric)))
    assert SIZE * metric.batch_count > 10**10
    before = {name: metric.metric_state[name] for name in one}
    updated(case, metric)
    for name, batch in one.items():
        grown = metric.metric_state[name] - before[name]
        assert torch.allclose(
            grown, batch, rtol=1e-5 if batch.is_floating_point() else 0, atol=1e-5
        )


def test_value_equals_the_oracle(case: MetricCase) -> None:
    check(case, updated(case))


def test_other_settings_give_another_value(case: MetricCase) -> None:
    assert values_of(updated(case, case.make_other()).compute()) != expected(case)


def test_batches_and_their_order_do_not_matter() -> None:
    @settings(max_examples=12)
    @given(
        st.lists(st.integers(1, 39), unique=True, max_size=5),
        st.randoms(use_true_random=False),
    )
    def law(cuts: list[int], random: Any) -> None:
        edges = list(itertools.pairwise([0, *sorted(cuts), SIZE]))
        random.shuffle(edges)
        for case in BY_NAME.values():
            metric = case.make()
            for start, stop in edges:
                metric.update(*part(case, start, stop))
            check(case, metric)

    law()


def test_an_empty_batch_adds_nothing(case: MetricCase) -> None:
    metric = updated(case)
    metric.update(*part(case, 0, 0))
    check(case, metric)


def test_forward_returns_the_value_of_the_batch_and_accumulates(case: MetricCase) -> None:
    metric = case.make()
    assert values_of(metric(*part(case, 0, 10))) == expected(case, part(case, 0, 10))
    assert values_of(metric(*part(case, 10, 40))) == expected(case, part(case, 10, 40))
    check(case, metric)


def test_reset_clears_the_states(case: MetricCase) -> None:
    metric = updated(case, batch=case.batches.draw(7, 1))
    metric.reset()
    check(case, updated(case, metric))


def test_pickles_and_clones_hold_the_state(case: MetricCase) -> None:
    metric = updated(case, batch=part(case, 0, 10))
    for other in (pickle.loads(pickle.dumps(metric)), metric.clone()):
        check(case, updated(case, other, part(case, 10, 40)))
    assert values_of(metric.compute()) == expected(case, part(case, 0, 10))


def test_merging_adds_states_and_refreshes_the_value(case: MetricCase) -> None:
    metric = updated(case, batch=part(case, 0, 10))
    stale = values_of(metric.compute())
    metric.merge_state(updated(case, batch=part(case, 10, 30)))
    metric.merge_state(updated(case, batch=part(case, 30, 40)).metric_state)
    check(case, metric)
    assert values_of(metric.compute()) != stale
    assert metric.update_count == 3


def test_merging_into_a_fresh_metric_counts_as_an_update(case: MetricCase) -> None:
    metric = case.make()
    metric.merge_state(updated(case))
    check(case, metric)


def test_merging_other_settings_is_refused(case: MetricCase) -> None:
    metric = updated(case)
    with pytest.raises(ValueError, match=r"must come from a .* with the same settings"):
        metric.merge_state(updated(case, stranger(case)))
    check(case, metric)


def test_state_dict_makes_a_round_trip(case: MetricCase) -> None:
    saved = updated(case, batch=part(case, 0, 10))
    saved.persistent(True)
    loaded = updated(case, batch=case.batches.draw(3, 2))
    stale = values_of(loaded.compute())
    loaded.load_state_dict(saved.state_dict())
    assert values_of(loaded.compute()) == expected(case, part(case, 0, 10))
    assert values_of(loaded.compute()) != stale
    check(case, updated(case, loaded, part(case, 10, 40)))
    assert values_of(saved.compute()) == expected(case, part(case, 0, 10))


def test_a_state_saved_in_lower_precision_is_loaded_in_full_precision(
    case: MetricCase,
) -> None:
    saved = updated(case)
    saved.persistent(True)
    summed = {
        name for name, state in saved.metric_state.items() if isinstance(state, Tensor)
    }
    narrow = {
        name: s.float() if name in summed else s for name, s in saved.state_dict().items()
    }
    loaded = case.make()
    loaded.load_state_dict(narrow)
    assert [tensor.dtype for tensor in tensors(loaded)] == [
        tensor.dtype for tensor in tensors(saved)
    ]


def test_a_loaded_metric_counts_as_updated(case: MetricCase) -> None:
    saved = updated(case)
    saved.persistent(True)
    loaded = case.make()
    loaded.load_state_dict(saved.state_dict())
    assert loaded.update_called
    # A warning of torchmetrics would fail the test here.
    assert values_of(loaded.compute()) == expected(case)


def test_loading_other_settings_is_refused(case: MetricCase) -> None:
    saved = updated(case, stranger(case))
    saved.persistent(True)
    with pytest.raises(ValueError, match=r"must come from a .* with the same settings"):
        case.make().load_state_dict(saved.state_dict())


def test_states_are_not_in_a_checkpoint_by_default(case: MetricCase) -> None:
    assert not nn.ModuleDict({"metric": case.make()}).state_dict()


@pytest.mark.parametrize("cast", ["set_dtype", "to", "half"])
def test_states_keep_their_precision(case: MetricCase, cast: str) -> None:
    metric = updated(case, batch=part(case, 0, 10))
    before = [tensor.dtype for tensor in tensors(metric)]
    module = nn.ModuleDict({"metric": metric})
    if cast == "set_dtype":
        metric.set_dtype(torch.half)
    elif cast == "to":
        module.to(torch.half)
    else:
        module.half()
    assert [tensor.dtype for tensor in tensors(metric)] == before
    check(case, updated(case, metric, part(case, 10, 40)))
    metric.reset()
    updated(case, metric, part(case, 0, 10))
    assert [tensor.dtype for tensor in tensors(metric)] == before


def test_compute_groups_separate_different_settings(case: MetricCase) -> None:
    collection = MetricCollection(
        {"one": case.make(), "other": case.make_other(), "twin": case.make()}
    )
    collection.update(*case.agreeing_batch)
    one = values_of(collection["one"].compute())
    assert one == pytest.approx(values_of(collection["other"].compute()), nan_ok=True)
    collection.update(*whole(case))
    alone = updated(case, updated(case, case.make_other(), case.agreeing_batch))
    assert values_of(collection["other"].compute()) == pytest.approx(
        values_of(alone.compute()), nan_ok=True
    )
    pairs = zip(case.agreeing_batch, whole(case), strict=True)
    preds, target = [torch.cat(pair) for pair in pairs]
    assert values_of(collection["one"].compute()) == expected(case, (preds, target))
    assert values_of(collection["twin"].compute()) == expected(case, (preds, target))


def test_update_never_waits_for_a_gpu(case: MetricCase) -> None:
    metric = case.make()
    with FakeTensorMode(allow_non_fake_inputs=True):  # raises if a value is looked at
        metric.to("cuda")
        metric.update(
            *(
                torch.zeros(t.shape, dtype=t.dtype, device="cuda")
                for t in case.batches.draw(5, 0)
            )
        )
        assert all(tensor.device.type == "cuda" for tensor in tensors(metric))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_a_gpu_gives_the_values_of_the_cpu_and_update_does_not_wait_for_it(
    case: MetricCase,
) -> None:
    metric = case.make().to("cuda")
    batches = [
        tuple(tensor.cuda() for tensor in part(case, *rows)) for rows in ((0, 7), (7, SIZE))
    ]
    metric.update(*batches[0])
    torch.cuda.set_sync_debug_mode("error")
    try:
        metric.update(*batches[1])
    finally:
        torch.cuda.set_sync_debug_mode("default")
    check(case, metric)


def test_bad_values_on_a_gpu_are_refused_by_compute(
    case: MetricCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric = updated(case)
    monkeypatch.setattr(Tensor, "is_cpu", False)  # as on any device except the CPU
    metric.update(*case.batches.bad)
    metric.update(*case.batches.bad)
    refusal = case.batches.refusal
    with Refused(refusal.code, refusal.argument, count=2):
        metric.compute()
    metric.reset()
    check(case, updated(case, metric))


READERS: dict[str, Callable[[Metric, MetricCase], Metric]] = {
    "compute": lambda metric, _: metric,
    "pickle": lambda metric, _: pickle.loads(pickle.dumps(metric)),
    "clone": lambda metric, _: metric.clone(),
    "deepcopy": lambda metric, _: copy.deepcopy(metric),
    "move": lambda metric, _: metric.to("cpu"),
    "merge": lambda metric, case: merged(case.make(), metric),
    "merge states": lambda metric, case: merged(case.make(), metric.metric_state),
    "merge into it": lambda metric, case: merged(metric, case.make()),
    "state_dict": lambda metric, case: loaded(case.make(), metric),
}
"""Ways to read the states of a metric; each returns one with the same samples."""


def merged(metric: Metric, other: Metric | dict[str, Any]) -> Metric:
    metric.merge_state(other)
    return metric


def loaded(metric: Metric, other: Metric) -> Metric:
    other.persistent(True)
    metric.load_state_dict(other.state_dict())
    return metric


@pytest.mark.parametrize("reader", READERS)
def test_all_that_reads_states_sees_all_batches(case: MetricCase, reader: str) -> None:
    metric = case.make()
    for start in range(0, SIZE, 4):
        metric.update(*part(case, start, start + 4))
    metric = READERS[reader](metric, case)
    check(case, metric)
    assert metric.update_count == metric.batch_count == SIZE // 4
    check(case, updated(case, metric), whole_twice(case))


@pytest.mark.parametrize("method", ["update", "forward"])
def test_an_interrupted_batch_leaves_the_metric_as_it_was(
    case: MetricCase, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Press Ctrl-C at the end of the work on a batch."""
    metric = updated(case)
    update = type(metric).update

    def interrupted(self: Any, *args: Any) -> None:
        update(self, *args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(metric), "update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            getattr(metric, method)(*part(case, 0, 4))
    check(case, metric)
    assert metric.update_count == 1


def test_states_are_attributes_at_every_moment(case: MetricCase) -> None:
    """Read them before each line of ours that changes them, as a signal handler could."""
    metric = case.make()
    metric.persistent(True)
    seen = list[dict[str, list[bytes]]]()

    def states() -> dict[str, list[bytes]]:
        return {name: _bytes_of(state) for name, state in metric.metric_state.items()}

    def look(frame: Any, event: str, arg: Any) -> Any:
        is_ours = "mpcs_torch" in frame.f_code.co_filename
        if event == "line" and is_ours and sys.gettrace() is not None:
            sys.settrace(None)  # reading the states is not traced
            seen.append(states())
            sys.settrace(look)
        return look

    once = part(case, 0, 4)
    again = part(case, 4, 8)
    for step in (lambda: metric.update(*once), lambda: metric(*again), metric.reset):
        before = states()
        seen.clear()
        outer = sys.gettrace()  # that of coverage, perhaps
        sys.settrace(look)
        try:
            step()
        finally:
            sys.settrace(outer)
        after = states()
        assert len(seen) > 3
        assert all(seen_states in (before, after) for seen_states in seen)


def _bytes_of(state: Any) -> list[bytes]:
    parts = state if isinstance(state, list) else [state]
    return [part.numpy().tobytes() for part in parts]


@pytest.mark.filterwarnings("ignore:The ``compute`` method")
def test_an_error_in_compute_leaves_a_metric_of_several_processes_unsynced(
    case: MetricCase,
) -> None:
    metric = case.make(
        dist_sync_fn=lambda state, group=None: [state, state],
        distributed_available_fn=lambda: True,
    )
    with pytest.raises(ValueError, match="needs at least one batch"):
        metric.compute()
    check(case, updated(case, metric), whole_twice(case))
    assert metric.update_count == 1


class Asking(Accuracy):
    """A user's metric that looks at its value in the middle of an update."""

    def update(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        super().update(preds, target, sample_weight)
        self.last = self.compute()


def test_a_value_that_an_update_asks_for_has_the_batch() -> None:
    metric = Asking(2)
    for preds, value in ((0, 1.0), (1, 0.5)):
        metric.update(torch.tensor([preds]), torch.tensor([0]))
        assert metric.last == value == metric.compute()


def test_a_batch_of_a_wrong_shape_is_refused_each_time() -> None:
    case = BY_NAME["MetaPatternConcernScore"]
    metric, (preds, target, *_) = updated(case), part(case, 0, 4)
    for _ in range(2):
        with pytest.raises(ValueError, match="preds must have 4 classes"):
            metric.update(preds[:, :3], target)
    check(case, metric)


def test_kept_samples_lie_in_few_tensors_that_a_reset_frees(case: MetricCase) -> None:
    metric = case.make()
    lists = [name for name, state in metric.metric_state.items() if isinstance(state, list)]
    for start in range(SIZE):
        metric.update(*part(case, start, start + 1))
    assert all(len(getattr(metric, name)) <= SIZE.bit_length() for name in lists)
    by_forward, merged_all = case.make(), case.make()
    for start in range(0, SIZE, 4):
        by_forward(*part(case, start, start + 4))
        merged_all.merge_state(updated(case, batch=part(case, start, start + 4)))
    assert all(
        len(getattr(other, name)) <= 4
        for other in (by_forward, merged_all)
        for name in lists
    )
    states = [getattr(metric, name) for name in lists]
    kept = [weakref.ref(tensor) for state in states for tensor in state]
    metric.reset()
    assert [len(state) for state in states] == [SIZE.bit_count()] * len(lists), (
        "the list that somebody holds is left alone"
    )
    del states
    assert not any(reference() is not None for reference in kept)


class Counting(MetaPatternConcernScore):
    """A user's metric with an update of its own."""

    seen = 0

    def update(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        super().update(preds, target, sample_weight)
        self.seen += 1


class Listing(MetaPatternConcernScore):
    """A user's metric that appends to a list state, and then fails."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(4, **kwargs)
        self.add_state("sizes", [], dist_reduce_fx="cat")

    def update(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        self.sizes.append(torch.tensor([len(preds)]))
        super().update(preds, target, sample_weight)


def test_a_refused_batch_leaves_the_lists_of_a_user_alone() -> None:
    metric, case = Listing(), BY_NAME["MetaPatternConcernScore"]
    metric.update(*part(case, 0, 4))
    metric(*part(case, 4, 12))
    with case.batches.refusal:
        metric.update(*case.batches.bad)
    assert [size.item() for size in metric.sizes] == [4, 8]


def test_each_update_of_a_users_own_is_called() -> None:
    metric = Counting(4)
    for start in range(0, SIZE, 4):
        metric.update(*part(BY_NAME["MetaPatternConcernScore"], start, start + 4))
    assert metric.seen == SIZE // 4


def test_a_refused_batch_leaves_the_metric_as_it_was(case: MetricCase) -> None:
    metric = updated(case)
    with case.batches.refusal:
        metric.update(*case.batches.bad)
    with case.batches.refusal:
        metric(*case.batches.bad)
    check(case, metric)
    assert metric.update_count == 1
    assert values_of(metric(*part(case, 0, 10))) == expected(case, part(case, 0, 10))


@pytest.mark.filterwarnings("ignore:The ``compute`` method")
def test_compute_without_a_batch_is_refused(case: MetricCase) -> None:
    metric = case.make()
    with pytest.raises(
        ValueError,
        match=rf"{type(metric).__name__}.compute needs at least one batch: call update",
    ):
        metric.compute()


@pytest.mark.filterwarnings("ignore:.* needs targets and non-targets")
def test_a_batch_of_ignored_samples_raises_no_error(case: MetricCase) -> None:
    metric = case.make(**case.batches.ignoring)
    metric(*case.batches.ignored)
    metric(*whole(case))
    check(case, metric)


def test_values_are_not_checked_without_validate_args(case: MetricCase) -> None:
    metric = updated(case, case.make(validate_args=False))
    metric.update(*case.batches.bad)
    assert values_of(metric.compute()) != expected(case)


def test_without_validate_args_no_bad_values_are_searched(
    case: MetricCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric = case.make(validate_args=False)
    monkeypatch.setattr(
        Fault, "__new__", lambda *_, **__: pytest.fail("bad values were searched")
    )
    check(case, updated(case, metric))


def test_the_diagonal_of_concern_does_not_count_as_a_setting() -> None:
    for kind in (MetaPatternConcernScore, DangerousErrors, ExpectedConcern):
        ones = torch.ones(
            3, 3, dtype=torch.bool if kind is DangerousErrors else torch.float32
        )
        metric = kind(3, concern=ones)
        metric.merge_state(kind(3, concern=ones.clone().fill_diagonal_(0)))


@pytest.fixture(
    params=[
        name for name, case in BY_NAME.items() if list(case.oracle(whole(case))) == [""]
    ]
)
def scalar_case(request: pytest.FixtureRequest) -> MetricCase:
    return BY_NAME[request.param]


def test_a_tracker_finds_the_best_value_of_a_scalar_metric(scalar_case: MetricCase) -> None:
    if scalar_case.higher_is_better is None:
        pytest.skip("neither higher nor lower is better")
    tracker = MetricTracker(scalar_case.make())
    batches = [scalar_case.batches.draw(SIZE, seed) for seed in range(3)]
    for batch in batches:
        tracker.increment()
        tracker.update(*batch)
    values = [scalar_case.oracle(batch)[""] for batch in batches]
    assert tracker.compute_all().tolist() == pytest.approx(values)
    best, step = tracker.best_metric(return_step=True)
    assert best == pytest.approx(
        max(values) if scalar_case.higher_is_better else min(values)
    )
    assert values[step] == pytest.approx(best)


def test_minimum_and_maximum_of_a_scalar_metric_are_kept(scalar_case: MetricCase) -> None:
    extremes = MinMaxMetric(scalar_case.make())
    values = []
    for stop in (20, SIZE):
        extremes.update(*part(scalar_case, stop - 20, stop))
        found = extremes.compute()
        values.append(scalar_case.oracle(part(scalar_case, 0, stop))[""])
    assert found["raw"].item() == pytest.approx(values[-1])
    assert (found["min"].item(), found["max"].item()) == pytest.approx(
        (min(values), max(values))
    )


def test_a_scalar_metric_can_be_bootstrapped(scalar_case: MetricCase) -> None:
    torch.manual_seed(0)
    bootstrap = BootStrapper(scalar_case.make(), num_bootstraps=8, raw=True)
    bootstrap.update(*whole(scalar_case))
    found = bootstrap.compute()
    assert found["raw"].shape == (8,)
    assert found["raw"].isfinite().all()
    assert found["mean"].item() == pytest.approx(found["raw"].mean().item())


def test_a_bootstrap_gives_quantiles() -> None:
    case = BY_NAME["MetaPatternConcernScore"]
    levels = torch.tensor([0.025, 0.975], dtype=torch.float64)
    torch.manual_seed(0)
    # Values are float64, so levels must be, too.
    bootstrap = BootStrapper(case.make(), num_bootstraps=50, quantile=levels)
    bootstrap.update(*whole(case))
    low, high = bootstrap.compute()["quantile"]
    assert low < case.oracle(whole(case))[""] < high


@pytest.mark.parametrize("name", ["MulticlassQualityMetrics", "ProbabilityAccuracy"])
def test_a_tracker_stacks_the_values_of_a_dictionary(name: str) -> None:
    case = BY_NAME[name]
    tracker = MetricTracker(case.make(), maximize=True)
    for seed in range(2):
        tracker.increment()
        tracker.update(*case.batches.draw(SIZE, seed))
    oracles = [case.oracle(case.batches.draw(SIZE, seed)) for seed in range(2)]
    stacked = {entry: values.tolist() for entry, values in tracker.compute_all().items()}
    assert stacked == {
        entry: pytest.approx([oracle[entry] for oracle in oracles]) for entry in oracles[0]
    }


def test_a_classwise_wrapper_names_the_values_of_classes() -> None:
    case = BY_NAME["ClassErrorRates"]
    by_class = ClasswiseWrapper(case.make(), labels=list("abcd"))
    by_class.update(*whole(case))
    named = {
        name.removeprefix("classerrorrates_"): value.item()
        for name, value in by_class.compute().items()
    }
    assert named == pytest.approx(
        dict(zip("abcd", case.oracle(whole(case)).values(), strict=True))
    )


def test_a_classwise_wrapper_names_the_scores_of_true_classes() -> None:
    preds, target = BY_NAME["MetaPatternConcernScore"].batches.draw(SIZE, 0)
    by_class = ClasswiseWrapper(
        MetaPatternConcernScore(num_classes=preds.shape[1], average="none"), prefix="mpcs_"
    )
    by_class.update(preds, target)
    for name, value in by_class.compute().items():
        rows = target == int(name.removeprefix("mpcs_"))
        alone = MetaPatternConcernScore(num_classes=preds.shape[1])(
            preds[rows], target[rows]
        )
        assert value.item() == pytest.approx(alone.item(), nan_ok=True)


def test_states_can_be_shared_between_processes(case: MetricCase) -> None:
    metric = case.make()
    metric.share_memory()
    assert all(tensor.is_shared() for tensor in tensors(metric))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["MetaPatternConcernScore", "BrierScore", "MacroF1", "SoftF1"]
)
def test_a_compiled_loop_has_no_graph_break_and_two_graphs_for_two_sizes(name: str) -> None:
    case = BY_NAME[name]
    torch.compiler.reset()
    counters.clear()
    metric = case.make()
    compiled = torch.compile(metric.update, fullgraph=True, backend="eager")
    for start, stop in itertools.islice(itertools.cycle([(0, 12), (12, SIZE)]), 100):
        # Clones, because views would differ in their offset, too.
        compiled(*(tensor.clone() for tensor in part(case, start, stop)))
    assert counters["stats"]["unique_graphs"] == 2
    assert metric.update_count == metric.batch_count == 100
    check(case, metric)


def test_core_compiles_without_a_graph_break(case: MetricCase) -> None:
    torch.compiler.reset()  # all measures share one function, which may be compiled eight times
    compiled = torch.compile(case.core, fullgraph=True, backend="eager")
    for ours, plain in zip(compiled(*whole(case)), case.core(*whole(case)), strict=True):
        # A softmax may be computed by rows or by columns.
        torch.testing.assert_close(ours, plain, rtol=1e-6, atol=1e-9)


def test_changing_a_batch_afterwards_does_not_change_the_metric(case: MetricCase) -> None:
    metric, batch = case.make(), whole(case)
    metric.update(*batch)
    for tensor in batch:
        tensor.zero_()
    check(case, metric)


def test_gradients_do_not_reach_the_state(case: MetricCase) -> None:
    metric = case.make()
    preds, target = whole(case)
    if preds.is_floating_point():  # decisions have no gradients
        preds.requires_grad_()
    metric(preds, target)
    assert not any(tensor.requires_grad for tensor in tensors(metric))


def test_plot_draws_the_samples(case: MetricCase) -> None:
    metric = updated(case)
    before = values_of(metric.compute())
    figure, axes = metric.plot()
    assert pyplot.fignum_exists(figure.number)
    assert (
        axes.images
        or axes.patches
        or axes.collections
        or max(len(line.get_xdata()) for line in axes.lines) >= 2
    )
    assert list(text_faults(figure)) == []
    pyplot.close(figure)
    assert pyplot.get_fignums() == []
    assert values_of(metric.compute()) == pytest.approx(before, rel=0, abs=0, nan_ok=True)
    check(case, updated(case, metric), whole_twice(case))


def whole_twice(case: MetricCase) -> Batch:
    preds, target = whole(case)
    return torch.cat([preds, preds]), torch.cat([target, target])


def test_plot_leaves_other_axes_alone(case: MetricCase) -> None:
    figure = Figure(figsize=(9, 3))
    grid = figure.subplots(1, 3)
    before = [
        (list(axes.get_children()), axes.get_position().bounds)
        for axes in (grid[0], grid[2])
    ]
    assert updated(case).plot(ax=grid[1]) == (figure, grid[1])
    assert grid[1].has_data()
    assert [
        (list(axes.get_children()), axes.get_position().bounds)
        for axes in (grid[0], grid[2])
    ] == before
    assert (figure.axes, figure.legends, figure.texts, pyplot.get_fignums()) == (
        list(grid),
        [],
        [],
        [],
    )
    assert tuple(figure.get_size_inches()) == (9, 3)


def test_plot_draws_the_given_values_on_the_given_axes(case: MetricCase) -> None:
    metric = updated(case)
    # These have no numbers that could be drawn as a line.
    if isinstance(metric, DetectionCurve | ConfusionMatrix):
        return
    axes = Figure().add_subplot()
    _, drawn_on = metric.plot([metric.compute(), metric.compute()], ax=axes)
    assert drawn_on is axes
    assert len(axes.lines[0].get_xdata()) == 2


def test_two_processes_agree_with_one() -> None:
    batches = {
        name: [part(case, 0, 10), part(case, 10, SIZE)] for name, case in BY_NAME.items()
    }
    for by_rank in values_of_two_processes(batches):
        for name, value in by_rank.items():
            assert value == expected(BY_NAME[name])


def test_a_process_may_have_no_batch() -> None:
    batches = {name: [whole(case), None] for name, case in BY_NAME.items()}
    for by_rank in values_of_two_processes(batches):
        for name, value in by_rank.items():
            assert value == expected(BY_NAME[name])


class Holder(nn.Module):
    """A module that holds a metric, as models of Lightning do."""

    def __init__(self, metric: Metric) -> None:
        super().__init__()
        self.linear, self.metric = nn.Linear(4, 4), metric

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.linear(inputs)
        return outputs


@pytest.mark.filterwarnings(
    "ignore:`torch.jit.script` is deprecated", "ignore:This property will be removed"
)
def test_a_module_that_holds_the_metric_can_be_scripted(case: MetricCase) -> None:
    scripted = torch.jit.script(Holder(updated(case)))
    assert scripted(torch.zeros(2, 4)).shape == (2, 4)


def test_a_running_value_is_that_of_the_last_batches(case: MetricCase) -> None:
    running = Running(case.make(), window=2)
    for start in range(0, SIZE, 10):
        running.update(*part(case, start, start + 10))
        assert values_of(running.compute()) == expected(
            case, part(case, max(0, start - 10), start + 10)
        )


def test_a_composition_computes_from_the_values(scalar_case: MetricCase) -> None:
    doubled = scalar_case.make() + scalar_case.make()
    for start in (0, 20):
        doubled.update(*part(scalar_case, start, start + 20))
    assert doubled.compute().item() == pytest.approx(
        2 * of_whole(scalar_case)[""], nan_ok=True
    )


def test_values_are_float32_on_devices_without_float64(
    scalar_case: MetricCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lightning's `log` sends them to the device of the model."""
    # Each module that has imported the function has a name of its own for it.
    for name, module in list(sys.modules.items()):
        if name.startswith("mpcs_torch.") and hasattr(module, "widest_float"):
            monkeypatch.setattr(module, "widest_float", lambda _: torch.float32)
    metric = scalar_case.make()
    for name, state in metric.metric_state.items():
        if isinstance(state, Tensor) and state.is_floating_point():
            setattr(metric, name, state.float())
    assert updated(scalar_case, metric).compute().dtype == torch.float32
