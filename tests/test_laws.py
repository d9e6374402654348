"""Laws that every public Metric obeys; a Metric that is not listed in `tests.metrics.cases` fails."""

import copy
import itertools
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from threading import Event
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
from torchmetrics.wrappers import BootStrapper, ClasswiseWrapper, MetricTracker, MinMaxMetric

from mpcs_torch import DangerousErrors, ExpectedConcern, MetaPatternConcernScore, metrics
from mpcs_torch.functional.inputs.labels import Labels
from mpcs_torch.functional.inputs.probabilities import Samples
from mpcs_torch.functional.inputs.soft_labels import SoftSamples
from mpcs_torch.metrics import DetectionCurve
from mpcs_torch.metrics.base import SumMetric
from tests.metrics.case import Batch, MetricCase
from tests.metrics.cases import BY_NAME, CASES, values_of
from tests.metrics.two_processes import values_of_two_processes
from tests.plots.texts import text_faults

SIZE = 40


@pytest.fixture(params=BY_NAME)
def case(request: pytest.FixtureRequest) -> MetricCase:
    return BY_NAME[request.param]


def whole(case: MetricCase) -> Batch:
    return case.fed.draw(SIZE, 0)


def part(case: MetricCase, start: int, stop: int) -> Batch:
    preds, target = whole(case)
    return preds[start:stop], target[start:stop]


def expected(case: MetricCase, batch: Batch | None = None) -> dict[str, Any]:
    return pytest.approx(of_whole(case) if batch is None else case.oracle(batch), rel=1e-9, nan_ok=True)


@cache
def of_whole(case: MetricCase) -> dict[str, float]:
    """Ask the oracle, which may take a second, only once."""
    return case.oracle(whole(case))


def updated(case: MetricCase, metric: SumMetric | None = None, batch: Batch | None = None) -> SumMetric:
    metric = case.make() if metric is None else metric
    metric.update(*(whole(case) if batch is None else batch))
    return metric


def stranger(case: MetricCase) -> SumMetric:
    """Make a metric whose states must not be mistaken for those of this case."""
    return (case.make_stranger or case.make_other)()


def tensors(metric: SumMetric) -> list[Tensor]:
    """Return all tensors that the states hold."""
    states = metric.metric_state.values()
    return [tensor for state in states for tensor in (state if isinstance(state, list) else [state])]


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
    one = {name: state.clone() for name, state in metric.metric_state.items() if name != "settings"}
    for _ in range(28):
        metric.merge_state(pickle.loads(pickle.dumps(metric)))
    assert SIZE * metric.batch_count > 10**10
    before = {name: metric.metric_state[name] for name in one}
    updated(case, metric)
    for name, batch in one.items():
        grown = metric.metric_state[name] - before[name]
        assert torch.allclose(grown, batch, rtol=1e-5 if batch.is_floating_point() else 0, atol=1e-5)


def test_value_equals_the_oracle(case: MetricCase) -> None:
    assert values_of(updated(case).compute()) == expected(case)


def test_other_settings_give_another_value(case: MetricCase) -> None:
    assert values_of(updated(case, case.make_other()).compute()) != expected(case)


def test_batches_and_their_order_do_not_matter() -> None:
    @settings(max_examples=12)
    @given(st.lists(st.integers(1, 39), unique=True, max_size=5), st.randoms(use_true_random=False))
    def law(cuts: list[int], random: Any) -> None:
        edges = list(itertools.pairwise([0, *sorted(cuts), SIZE]))
        random.shuffle(edges)
        for case in BY_NAME.values():
            metric = case.make()
            for start, stop in edges:
                metric.update(*part(case, start, stop))
            assert values_of(metric.compute()) == expected(case)

    law()


def test_an_empty_batch_adds_nothing(case: MetricCase) -> None:
    metric = updated(case)
    metric.update(*part(case, 0, 0))
    assert values_of(metric.compute()) == expected(case)


def test_forward_returns_the_value_of_the_batch_and_accumulates(case: MetricCase) -> None:
    metric = case.make()
    assert values_of(metric(*part(case, 0, 10))) == expected(case, part(case, 0, 10))
    assert values_of(metric(*part(case, 10, 40))) == expected(case, part(case, 10, 40))
    assert values_of(metric.compute()) == expected(case)


def test_reset_clears_the_states(case: MetricCase) -> None:
    metric = updated(case, batch=case.fed.draw(7, 1))
    metric.reset()
    assert values_of(updated(case, metric).compute()) == expected(case)


def test_pickles_and_clones_hold_the_state(case: MetricCase) -> None:
    metric = updated(case, batch=part(case, 0, 10))
    for other in (pickle.loads(pickle.dumps(metric)), metric.clone()):
        assert values_of(updated(case, other, part(case, 10, 40)).compute()) == expected(case)
    assert values_of(metric.compute()) == expected(case, part(case, 0, 10))


def test_merging_adds_states_and_refreshes_the_value(case: MetricCase) -> None:
    metric = updated(case, batch=part(case, 0, 10))
    stale = values_of(metric.compute())
    metric.merge_state(updated(case, batch=part(case, 10, 30)))
    metric.merge_state(updated(case, batch=part(case, 30, 40)).metric_state)
    assert values_of(metric.compute()) == expected(case)
    assert values_of(metric.compute()) != stale
    assert metric.update_count == 3


def test_merging_into_a_fresh_metric_counts_as_an_update(case: MetricCase) -> None:
    metric = case.make()
    metric.merge_state(updated(case))
    assert values_of(metric.compute()) == expected(case)


def test_merging_other_settings_is_refused(case: MetricCase) -> None:
    metric = updated(case)
    with pytest.raises(ValueError, match=r"must come from a .* with the same settings"):
        metric.merge_state(updated(case, stranger(case)))
    assert values_of(metric.compute()) == expected(case)


def test_state_dict_makes_a_round_trip(case: MetricCase) -> None:
    saved = updated(case, batch=part(case, 0, 10))
    saved.persistent(True)
    loaded = updated(case, batch=case.fed.draw(3, 2))
    stale = values_of(loaded.compute())
    loaded.load_state_dict(saved.state_dict())
    assert values_of(loaded.compute()) == expected(case, part(case, 0, 10))
    assert values_of(loaded.compute()) != stale
    assert values_of(updated(case, loaded, part(case, 10, 40)).compute()) == expected(case)
    assert values_of(saved.compute()) == expected(case, part(case, 0, 10))


def test_a_state_saved_in_lower_precision_is_loaded_in_full_precision(case: MetricCase) -> None:
    saved = updated(case)
    saved.persistent(True)
    summed = {name for name, state in saved.metric_state.items() if isinstance(state, Tensor)}
    narrow = {name: s.float() if name in summed else s for name, s in saved.state_dict().items()}
    loaded = case.make()
    loaded.load_state_dict(narrow)
    assert [tensor.dtype for tensor in tensors(loaded)] == [tensor.dtype for tensor in tensors(saved)]


def test_a_loaded_metric_counts_as_updated(case: MetricCase) -> None:
    saved = updated(case)
    saved.persistent(True)
    loaded = case.make()
    loaded.load_state_dict(saved.state_dict())
    assert loaded.update_called
    assert values_of(loaded.compute()) == expected(case)  # a warning of torchmetrics would fail here


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
    {"set_dtype": metric.set_dtype, "to": module.to, "half": lambda _: module.half()}[cast](torch.half)
    assert [tensor.dtype for tensor in tensors(metric)] == before
    assert values_of(updated(case, metric, part(case, 10, 40)).compute()) == expected(case)
    metric.reset()
    updated(case, metric, part(case, 0, 10))
    assert [tensor.dtype for tensor in tensors(metric)] == before


def test_compute_groups_separate_different_settings(case: MetricCase) -> None:
    collection = MetricCollection({"one": case.make(), "other": case.make_other(), "twin": case.make()})
    collection.update(*case.agreeing_batch)
    one = values_of(collection["one"].compute())
    assert one == pytest.approx(values_of(collection["other"].compute()), nan_ok=True)
    collection.update(*whole(case))
    alone = updated(case, updated(case, case.make_other(), case.agreeing_batch))
    assert values_of(collection["other"].compute()) == pytest.approx(values_of(alone.compute()), nan_ok=True)
    both = tuple(torch.cat(pair) for pair in zip(case.agreeing_batch, whole(case), strict=True))
    assert values_of(collection["one"].compute()) == expected(case, (both[0], both[1]))
    assert values_of(collection["twin"].compute()) == expected(case, (both[0], both[1]))


def test_update_never_waits_for_a_gpu(case: MetricCase) -> None:
    metric = case.make()
    with FakeTensorMode(allow_non_fake_inputs=True):  # raises if a value is looked at
        metric.to("cuda")
        metric.update(*(torch.zeros(t.shape, dtype=t.dtype, device="cuda") for t in case.fed.draw(5, 0)))
        assert all(tensor.device.type == "cuda" for tensor in tensors(metric))


def test_bad_values_on_a_gpu_are_refused_by_compute(case: MetricCase, monkeypatch: pytest.MonkeyPatch) -> None:
    metric = updated(case)
    monkeypatch.setattr(Tensor, "is_cpu", False)  # as on any device except the CPU
    metric.update(*case.fed.bad)
    metric.update(*case.fed.bad)
    with pytest.raises(ValueError, match=rf"{case.fed.rule}, but 2 of the samples since"):
        metric.compute()
    metric.reset()
    assert values_of(updated(case, metric).compute()) == expected(case)


def in_small_batches(case: MetricCase) -> SumMetric:
    """Return a metric that has seen all samples, most of them in batches that wait."""
    metric = case.make()
    for start in range(0, SIZE, 4):
        metric.update(*part(case, start, start + 4))
    return metric


READERS: dict[str, Callable[[SumMetric, MetricCase], SumMetric]] = {
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


def merged(metric: SumMetric, other: SumMetric | dict[str, Any]) -> SumMetric:
    metric.merge_state(other)
    return metric


def loaded(metric: SumMetric, other: SumMetric) -> SumMetric:
    other.persistent(True)
    metric.load_state_dict(other.state_dict())
    return metric


@pytest.mark.parametrize("reader", READERS)
def test_batches_that_wait_are_seen_by_all_that_reads_states(case: MetricCase, reader: str) -> None:
    metric = READERS[reader](in_small_batches(case), case)
    assert values_of(metric.compute()) == expected(case)
    assert metric.batch_count == SIZE // 4
    assert values_of(updated(case, metric).compute()) == expected(case, tuple(map(twice, whole(case))))


def test_small_batches_share_calls_of_the_kernel(case: MetricCase, monkeypatch: pytest.MonkeyPatch) -> None:
    metric, calls = case.make(), []
    if not metric.lets_wait:
        pytest.skip("its batches never wait")
    update = type(metric).update

    @wraps(update)  # an update of another module would not wait
    def counted(self: SumMetric, preds: Tensor, target: Tensor) -> None:
        calls.append(len(preds))
        update(self, preds, target)

    monkeypatch.setattr(type(metric), "update", counted)
    for _ in range(300):
        metric.update(*part(case, 0, 4))
    assert metric.batch_count == 300
    assert calls == [299 * 4]  # the first batch is added at once, by the update from before the patch


def bad_batch_that_waits(case: MetricCase) -> Batch:
    if not case.make().lets_wait:
        pytest.skip("its batches never wait")
    preds, target = (bad.to(good.dtype) for bad, good in zip(case.fed.bad, whole(case), strict=True))
    return preds, target


def test_a_bad_batch_that_waited_is_named_and_the_others_count(case: MetricCase) -> None:
    metric, bad = case.make(), bad_batch_that_waits(case)
    for start in range(0, SIZE, 10):
        metric.update(*part(case, start, start + 10))
        if start == 20:
            metric.update(*bad)
    with pytest.raises(ValueError, match=rf"^update 4: {case.fed.rule}, but sample 1 has {case.fed.quoted}"):
        metric(*bad)
    with pytest.raises(ValueError, match=rf"^{case.fed.rule}, but sample 1 has {case.fed.quoted}"):
        metric(*bad)
    metric.update(*part(case, 0, 0))
    assert values_of(metric.compute()) == expected(case)


def test_an_error_waits_for_the_first_look(case: MetricCase) -> None:
    metric, bad = updated(case), bad_batch_that_waits(case)
    metric.update(*bad)
    with pytest.raises(ValueError, match=rf"^update 2: {case.fed.rule}, but sample 1 has {case.fed.quoted}"):
        metric.compute()
    assert values_of(metric.compute()) == expected(case)
    assert metric.batch_count == 1


def test_a_reset_forgets_batches_that_wait_but_not_what_is_wrong_with_them(case: MetricCase) -> None:
    metric, bad = updated(case, updated(case)), bad_batch_that_waits(case)
    metric.reset()
    assert values_of(updated(case, metric).compute()) == expected(case)
    metric.update(*bad)
    with pytest.warns(UserWarning, match=f"were forgotten had bad values: update 2: {case.fed.rule}"):
        metric.reset()
    assert metric.update_count == metric.batch_count == 0
    assert values_of(updated(case, metric).compute()) == expected(case)


def waiting_score() -> SumMetric:
    return in_small_batches(BY_NAME["MetaPatternConcernScore"])


def value_of_all() -> dict[str, Any]:
    return expected(BY_NAME["MetaPatternConcernScore"])


def test_all_bad_batches_are_named() -> None:
    case = BY_NAME["MetaPatternConcernScore"]
    metric, bad = waiting_score(), bad_batch_that_waits(case)
    for _ in range(3):
        metric.update(*bad)
    with pytest.raises(ValueError, match=r"^update 11: .* Updates 12, 13 were refused, too\.$"):
        metric.compute()
    assert values_of(metric.compute()) == value_of_all()


def test_a_move_that_fails_keeps_the_batches_that_wait() -> None:
    metric = waiting_score()
    with pytest.raises(RuntimeError, match="no such place"):
        metric._apply(lambda _: (_ for _ in ()).throw(RuntimeError("no such place")))
    assert values_of(metric.compute()) == value_of_all()
    assert metric.batch_count == SIZE // 4


def interrupt_compute(metric: SumMetric, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Press Ctrl-C after a number of calls of the kernel."""
    left, update = [calls], type(metric).update

    def interrupted(self: Any, *args: Any) -> None:
        left[0] -= 1
        if left[0] == -1:
            raise KeyboardInterrupt
        update(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(type(metric), "update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            metric.compute()


@pytest.mark.parametrize("calls", [0, 3])
def test_an_interrupt_keeps_the_batches_that_wait(calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = BY_NAME["MetaPatternConcernScore"]
    metric = waiting_score()
    if calls:  # one by one, because one is bad
        metric.update(*bad_batch_that_waits(case))
    interrupt_compute(metric, calls, monkeypatch)
    if calls:
        with pytest.raises(ValueError, match="update 11"):
            metric.compute()
    assert values_of(metric.compute()) == value_of_all()
    assert metric.batch_count == SIZE // 4


def test_an_interrupt_after_a_bad_batch_keeps_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    case = BY_NAME["MetaPatternConcernScore"]
    metric = updated(case)
    for batch in (bad_batch_that_waits(case), whole(case), whole(case)):
        metric.update(*batch)
    interrupt_compute(metric, 3, monkeypatch)  # all together, the bad one, and a good one
    with pytest.raises(ValueError, match=r"^update 2: "):
        metric.compute()
    assert metric.batch_count == 3


def test_threads_lose_no_batch() -> None:
    """Four that update and one that reads the states; a batch has four samples."""
    case = BY_NAME["MetaPatternConcernScore"]
    metric, batch, stop = case.make(), part(case, 0, 4), Event()

    def update() -> None:
        for _ in range(1000):
            metric.update(*batch)

    def read() -> None:
        while not stop.wait(0.001):
            assert metric.weight.isfinite()
            if metric.update_count:
                metric.compute()

    metric.update(*batch)
    with ThreadPoolExecutor(5) as threads:
        reading = threads.submit(read)
        for work in [threads.submit(update) for _ in range(4)]:
            work.result()
        stop.set()
        reading.result()
    assert metric.update_count == metric.batch_count == 4001
    assert metric.weight == 4001 * 4


def test_a_batch_of_a_wrong_shape_is_refused_each_time() -> None:
    metric, (preds, target, *_) = waiting_score(), part(BY_NAME["MetaPatternConcernScore"], 0, 4)
    for _ in range(2):
        with pytest.raises(ValueError, match="preds must have 4 classes"):
            metric.update(preds[:, :3], target)
    assert values_of(metric.compute()) == value_of_all()


def test_a_shallow_copy_has_batches_of_its_own() -> None:
    case = BY_NAME["MetaPatternConcernScore"]
    metric, batch = case.make(), part(case, 0, 4)
    for _ in range(3):
        metric.update(*batch)
    copied = copy.copy(metric)
    for each, further in ((metric, 4), (copied, 2)):
        for _ in range(further):
            each.update(*batch)
    assert (metric.batch_count, copied.batch_count) == (7, 5)


def test_an_interrupted_forward_leaves_the_metric_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    metric = waiting_score()
    with monkeypatch.context() as patch:
        patch.setattr(type(metric), "samples_of", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            metric(*part(BY_NAME["MetaPatternConcernScore"], 0, 4))
    assert values_of(metric.compute()) == value_of_all()
    assert metric.batch_count == SIZE // 4


def test_a_collection_is_reset_as_a_whole_though_a_batch_was_bad() -> None:
    cases = [BY_NAME[name] for name in ("BrierScore", "MetaPatternConcernScore")]
    metrics = MetricCollection(
        {name: case.make() for name, case in zip("ab", cases, strict=True)}, compute_groups=False
    )
    for batch in (whole(cases[0]), bad_batch_that_waits(cases[0])):
        metrics.update(*batch)
    with pytest.warns(UserWarning, match="were forgotten had bad values"):
        metrics.reset()
    assert all(metric.batch_count == 0 for metric in metrics.values())


def test_batches_that_wait_are_added_while_an_update_is_compiled() -> None:
    case = BY_NAME["MacroF1"]
    torch.compiler.reset()
    metric, batch = case.make(), part(case, 0, 12)
    for _ in range(2):
        metric.update(*batch)
    torch.compile(metric.update, backend="eager")(*batch)
    assert metric.batch_count == 3


def test_a_state_that_is_replaced_stays_so() -> None:
    metric = waiting_score()
    metric.weight = torch.tensor(1000.0, dtype=torch.float64)
    assert pickle.loads(pickle.dumps(metric)).weight == metric.weight == 1000


def test_updates_between_sync_and_unsync_are_those_of_the_synced_state() -> None:
    metric = waiting_score()
    metric.sync(dist_sync_fn=lambda state, group=None: [state, state], distributed_available=lambda: True)
    metric.update(*part(BY_NAME["MetaPatternConcernScore"], 0, 4))
    metric.unsync()
    assert values_of(metric.compute()) == value_of_all()
    assert metric.batch_count == SIZE // 4


class Counting(MetaPatternConcernScore):
    """A user's metric with an update of its own."""

    seen = 0

    def update(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> None:
        super().update(preds, target, sample_weight)
        self.seen += 1


def test_each_update_of_a_users_own_is_called() -> None:
    metric = Counting(4)
    for start in range(0, SIZE, 4):
        metric.update(*part(BY_NAME["MetaPatternConcernScore"], start, start + 4))
    assert metric.seen == SIZE // 4


def test_a_refused_batch_leaves_the_metric_as_it_was(case: MetricCase) -> None:
    metric = updated(case, case.make(validate_args="eager"))
    with pytest.raises(ValueError, match=rf"{case.fed.rule}, but sample 1 has {case.fed.quoted}"):
        metric.update(*case.fed.bad)
    with pytest.raises(ValueError, match=case.fed.rule):
        metric(*case.fed.bad)
    assert values_of(metric.compute()) == expected(case)
    assert values_of(metric(*part(case, 0, 10))) == expected(case, part(case, 0, 10))


@pytest.mark.filterwarnings("ignore:The ``compute`` method")
def test_compute_without_a_batch_is_refused(case: MetricCase) -> None:
    metric = case.make()
    with pytest.raises(ValueError, match=rf"{type(metric).__name__}.compute needs at least one batch: call update"):
        metric.compute()


def test_a_batch_of_ignored_samples_raises_no_error(case: MetricCase) -> None:
    metric = case.make(**case.fed.ignoring)
    metric(*case.fed.ignored)
    metric(*whole(case))
    assert values_of(metric.compute()) == expected(case)


def test_values_are_not_checked_without_validate_args(case: MetricCase) -> None:
    metric = updated(case, case.make(validate_args=False))
    metric.update(*case.fed.bad)
    assert values_of(metric.compute()) != expected(case)


def test_without_validate_args_no_bad_values_are_searched(case: MetricCase, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (Labels, SoftSamples):
        monkeypatch.setattr(kind, "find_faults", lambda _: pytest.fail("bad values were searched"))
    found = Samples.is_bad
    searched = "scores off their scale were searched"
    monkeypatch.setattr(Samples, "is_bad", lambda part, *given: pytest.fail(searched) if part.checked else found(part))
    assert values_of(updated(case, case.make(validate_args=False)).compute()) == expected(case)


def test_the_diagonal_of_concern_does_not_count_as_a_setting() -> None:
    for kind in (MetaPatternConcernScore, DangerousErrors, ExpectedConcern):
        ones = torch.ones(3, 3, dtype=torch.bool if kind is DangerousErrors else torch.float32)
        metric = kind(3, concern=ones)
        metric.merge_state(kind(3, concern=ones.clone().fill_diagonal_(0)))


@pytest.fixture(params=[name for name, case in BY_NAME.items() if list(case.oracle(whole(case))) == [""]])
def scalar_case(request: pytest.FixtureRequest) -> MetricCase:
    return BY_NAME[request.param]


def test_a_tracker_finds_the_best_value_of_a_scalar_metric(scalar_case: MetricCase) -> None:
    tracker = MetricTracker(scalar_case.make())
    batches = [scalar_case.fed.draw(SIZE, seed) for seed in range(3)]
    for batch in batches:
        tracker.increment()
        tracker.update(*batch)
    values = [scalar_case.oracle(batch)[""] for batch in batches]
    assert tracker.compute_all().tolist() == pytest.approx(values)
    best, step = tracker.best_metric(return_step=True)
    assert best == pytest.approx(max(values) if scalar_case.higher_is_better else min(values))
    assert values[step] == pytest.approx(best)


def test_minimum_and_maximum_of_a_scalar_metric_are_kept(scalar_case: MetricCase) -> None:
    extremes = MinMaxMetric(scalar_case.make())
    values = []
    for stop in (20, SIZE):
        extremes.update(*part(scalar_case, stop - 20, stop))
        found = extremes.compute()
        values.append(scalar_case.oracle(part(scalar_case, 0, stop))[""])
    assert found["raw"].item() == pytest.approx(values[-1])
    assert (found["min"].item(), found["max"].item()) == pytest.approx((min(values), max(values)))


def test_a_scalar_metric_can_be_bootstrapped(scalar_case: MetricCase) -> None:
    torch.manual_seed(0)
    bootstrap = BootStrapper(scalar_case.make(), num_bootstraps=8, raw=True)
    bootstrap.update(*whole(scalar_case))
    found = bootstrap.compute()
    assert found["raw"].shape == (8,)
    assert found["raw"].isfinite().all()
    assert found["mean"].item() == pytest.approx(found["raw"].mean().item())


def test_a_bootstrap_gives_quantiles() -> None:
    case, levels = BY_NAME["MetaPatternConcernScore"], torch.tensor([0.025, 0.975], dtype=torch.float64)
    torch.manual_seed(0)
    bootstrap = BootStrapper(case.make(), num_bootstraps=50, quantile=levels)  # values are float64, and so are levels
    bootstrap.update(*whole(case))
    low, high = bootstrap.compute()["quantile"]
    assert low < case.oracle(whole(case))[""] < high


@pytest.mark.parametrize("name", ["MulticlassQualityMetrics", "ProbabilityAccuracy"])
def test_a_tracker_stacks_the_values_of_a_dictionary(name: str) -> None:
    case = BY_NAME[name]
    tracker = MetricTracker(case.make(), maximize=True)
    for seed in range(2):
        tracker.increment()
        tracker.update(*case.fed.draw(SIZE, seed))
    oracles = [case.oracle(case.fed.draw(SIZE, seed)) for seed in range(2)]
    stacked = {entry: values.tolist() for entry, values in tracker.compute_all().items()}
    assert stacked == {entry: pytest.approx([oracle[entry] for oracle in oracles]) for entry in oracles[0]}


def test_a_classwise_wrapper_names_the_values_of_classes() -> None:
    case = BY_NAME["ClassErrorRates"]
    by_class = ClasswiseWrapper(case.make(), labels=list("abcd"))
    by_class.update(*whole(case))
    named = {name.removeprefix("classerrorrates_"): value.item() for name, value in by_class.compute().items()}
    assert named == pytest.approx(dict(zip("abcd", case.oracle(whole(case)).values(), strict=True)))


def test_a_classwise_wrapper_names_the_scores_of_true_classes() -> None:
    preds, target = BY_NAME["MetaPatternConcernScore"].fed.draw(SIZE, 0)
    by_class = ClasswiseWrapper(MetaPatternConcernScore(num_classes=preds.shape[1], average="none"), prefix="mpcs_")
    by_class.update(preds, target)
    for name, value in by_class.compute().items():
        rows = target == int(name.removeprefix("mpcs_"))
        alone = MetaPatternConcernScore(num_classes=preds.shape[1])(preds[rows], target[rows])
        assert value.item() == pytest.approx(alone.item(), nan_ok=True)


def test_states_can_be_shared_between_processes(case: MetricCase) -> None:
    metric = case.make()
    metric.share_memory()
    assert all(tensor.is_shared() for tensor in tensors(metric))


@pytest.mark.parametrize("name", ["MetaPatternConcernScore", "BrierScore", "MacroF1", "SoftF1"])
def test_a_compiled_loop_has_no_graph_break_and_two_graphs_for_two_sizes(name: str) -> None:
    case = BY_NAME[name]
    torch.compiler.reset()
    counters.clear()
    metric = case.make()
    compiled = torch.compile(metric.update, fullgraph=True, backend="eager")
    for start, stop in itertools.islice(itertools.cycle([(0, 12), (12, SIZE)]), 100):
        compiled(*(tensor.clone() for tensor in part(case, start, stop)))  # views would differ in their offset, too
    assert counters["stats"]["unique_graphs"] == 2
    assert metric.batch_count == 100
    assert values_of(metric.compute()) == expected(case)


def test_core_compiles_without_a_graph_break(case: MetricCase) -> None:
    compiled = torch.compile(case.core, fullgraph=True, backend="eager")
    for ours, plain in zip(compiled(*whole(case)), case.core(*whole(case)), strict=True):
        assert torch.equal(ours, plain)


@pytest.mark.parametrize("waits", [False, True])
def test_changing_a_batch_afterwards_does_not_change_the_metric(case: MetricCase, waits: bool) -> None:
    metric, batch = case.make(), whole(case)
    if waits:
        metric.update(*(tensor[:1] for tensor in batch))
        batch = (batch[0][1:], batch[1][1:])
    metric.update(*batch)
    for tensor in batch:
        tensor.zero_()
    assert values_of(metric.compute()) == expected(case)


def test_gradients_do_not_reach_the_state(case: MetricCase) -> None:
    metric = case.make()
    preds, target = whole(case)
    metric(preds.requires_grad_() if preds.is_floating_point() else preds, target)  # decisions have none
    assert not any(tensor.requires_grad for tensor in tensors(metric))


def test_plot_draws_the_samples(case: MetricCase) -> None:
    metric = updated(case)
    before = values_of(metric.compute())
    figure, axes = metric.plot()
    assert pyplot.fignum_exists(figure.number)
    assert axes.images or axes.patches or axes.collections or max(len(line.get_xdata()) for line in axes.lines) >= 2
    assert list(text_faults(figure)) == []
    pyplot.close(figure)
    assert pyplot.get_fignums() == []
    assert values_of(metric.compute()) == pytest.approx(before, rel=0, abs=0, nan_ok=True)
    assert values_of(updated(case, metric).compute()) == expected(case, tuple(map(twice, whole(case))))


def twice(batch: Tensor) -> Tensor:
    return torch.cat([batch, batch])


def test_plot_leaves_other_axes_alone(case: MetricCase) -> None:
    figure = Figure(figsize=(9, 3))
    grid = figure.subplots(1, 3)
    before = [(list(axes.get_children()), axes.get_position().bounds) for axes in (grid[0], grid[2])]
    assert updated(case).plot(ax=grid[1]) == (figure, grid[1])
    assert grid[1].has_data()
    assert [(list(axes.get_children()), axes.get_position().bounds) for axes in (grid[0], grid[2])] == before
    assert (figure.axes, figure.legends, figure.texts, pyplot.get_fignums()) == (list(grid), [], [], [])
    assert tuple(figure.get_size_inches()) == (9, 3)


def test_plot_draws_the_given_values_on_the_given_axes(case: MetricCase) -> None:
    metric = updated(case)
    if isinstance(metric, DetectionCurve):  # a line already
        return
    axes = Figure().add_subplot()
    _, drawn_on = metric.plot([metric.compute(), metric.compute()], ax=axes)
    assert drawn_on is axes
    assert len(axes.lines[0].get_xdata()) == 2


def test_two_processes_agree_with_one() -> None:
    batches = {name: [part(case, 0, 10), part(case, 10, SIZE)] for name, case in BY_NAME.items()}
    for by_rank in values_of_two_processes(batches):
        for name, value in by_rank.items():
            assert value == expected(BY_NAME[name])


def test_a_process_may_have_no_batch() -> None:
    batches = {name: [whole(case), None] for name, case in BY_NAME.items()}
    for by_rank in values_of_two_processes(batches):
        for name, value in by_rank.items():
            assert value == expected(BY_NAME[name])


def test_a_sync_sends_the_sums_of_a_metric_in_one_message(case: MetricCase) -> None:
    messages = []

    def sent_and_received(state: Tensor, group: Any = None) -> list[Tensor]:  # as of torchmetrics
        messages.append(state)
        return [state, state]

    metric = updated(case, case.make(dist_sync_fn=sent_and_received, distributed_available_fn=lambda: True))
    assert values_of(metric.compute()) == expected(case, tuple(map(twice, whole(case))))
    assert len(messages) <= 1 + sum(isinstance(state, list) for state in metric.metric_state.values())
