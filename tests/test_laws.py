"""Laws that every public Metric keeps; one that is not listed in `tests.metrics.cases` fails."""

import itertools
import pickle
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torchmetrics import Metric, MetricCollection

from mpcs_torch import DangerousErrors, MetaPatternConcernScore, metrics
from mpcs_torch.metrics.base import SumMetric
from tests.metrics.cases import CASES, CLASSES, Batch, MetricCase, random_batch, values_of
from tests.metrics.two_processes import values_of_two_processes

WHOLE = random_batch(40, seed=0)


@pytest.fixture(params=CASES, ids=lambda kind: kind.__name__)
def case(request: pytest.FixtureRequest) -> MetricCase:
    return CASES[request.param]


def expected(case: MetricCase, batch: Batch = WHOLE) -> dict[str, Any]:
    return pytest.approx(case.oracle(batch), rel=1e-9)


def updated(metric: SumMetric, batch: Batch = WHOLE) -> SumMetric:
    metric.update(*batch)
    return metric


def part(start: int, stop: int) -> Batch:
    return WHOLE[0][start:stop], WHOLE[1][start:stop]


def test_every_public_metric_is_listed() -> None:
    public = {getattr(metrics, name) for name in metrics.__all__}
    assert public == set(CASES)
    assert all(issubclass(kind, Metric) for kind in public)


def test_constants_say_what_a_trainer_must_know(case: MetricCase) -> None:
    kind = type(case.make())
    assert kind.full_state_update is False
    assert isinstance(kind.is_differentiable, bool)
    assert kind.higher_is_better is case.higher_is_better


def test_value_is_that_of_the_oracle(case: MetricCase) -> None:
    assert values_of(updated(case.make()).compute()) == expected(case)


def test_the_oracle_tells_the_two_settings_apart(case: MetricCase) -> None:
    assert values_of(updated(case.make_other()).compute()) != expected(case)


def test_batches_and_their_order_do_not_matter() -> None:
    @given(st.lists(st.integers(1, 39), unique=True, max_size=5), st.randoms(use_true_random=False))
    def law(cuts: list[int], random: Any) -> None:
        edges = [0, *sorted(cuts), 40]
        batches = [part(start, stop) for start, stop in itertools.pairwise(edges)]
        random.shuffle(batches)
        for case in CASES.values():
            metric = case.make()
            for batch in batches:
                metric.update(*batch)
            assert values_of(metric.compute()) == expected(case)

    law()


def test_an_empty_batch_adds_nothing(case: MetricCase) -> None:
    metric = updated(case.make())
    metric.update(*part(0, 0))
    assert values_of(metric.compute()) == expected(case)


def test_forward_gives_the_batch_and_keeps_the_whole(case: MetricCase) -> None:
    metric = case.make()
    assert values_of(metric(*part(0, 10))) == expected(case, part(0, 10))
    assert values_of(metric(*part(10, 40))) == expected(case, part(10, 40))
    assert values_of(metric.compute()) == expected(case)


def test_reset_forgets(case: MetricCase) -> None:
    metric = updated(case.make(), random_batch(7, seed=1))
    metric.reset()
    assert values_of(updated(metric).compute()) == expected(case)


def test_pickles_and_clones_hold_the_state(case: MetricCase) -> None:
    metric = updated(case.make(), part(0, 10))
    for copy in (pickle.loads(pickle.dumps(metric)), metric.clone()):
        assert values_of(updated(copy, part(10, 40)).compute()) == expected(case)
    assert values_of(metric.compute()) == expected(case, part(0, 10))


def test_merging_adds_and_refreshes_the_value(case: MetricCase) -> None:
    metric = updated(case.make(), part(0, 10))
    stale = values_of(metric.compute())
    metric.merge_state(updated(case.make(), part(10, 30)))
    metric.merge_state(updated(case.make(), part(30, 40)).metric_state)
    assert values_of(metric.compute()) == expected(case)
    assert values_of(metric.compute()) != stale
    assert metric.update_count == 3


def test_merging_into_a_fresh_metric_is_no_compute_before_update(case: MetricCase) -> None:
    metric = case.make()
    metric.merge_state(updated(case.make()))
    assert values_of(metric.compute()) == expected(case)


def test_merging_other_settings_is_refused(case: MetricCase) -> None:
    metric = updated(case.make())
    with pytest.raises(ValueError, match=r"must come from a .* with the same settings"):
        metric.merge_state(updated(case.make_other()))
    assert values_of(metric.compute()) == expected(case)


def test_state_dict_makes_a_round_trip(case: MetricCase) -> None:
    saved = updated(case.make(), part(0, 10))
    saved.persistent(True)
    loaded = updated(case.make(), random_batch(3, seed=2))
    stale = values_of(loaded.compute())
    loaded.load_state_dict(saved.state_dict())
    assert values_of(loaded.compute()) == expected(case, part(0, 10))
    assert values_of(loaded.compute()) != stale
    assert values_of(updated(loaded, part(10, 40)).compute()) == expected(case)
    assert values_of(saved.compute()) == expected(case, part(0, 10))


def test_a_state_saved_in_less_precision_is_loaded_into_ours(case: MetricCase) -> None:
    saved = updated(case.make())
    saved.persistent(True)
    narrow = {name: state.float() for name, state in saved.state_dict().items()}
    loaded = case.make()
    loaded.load_state_dict(narrow)
    assert [state.dtype for state in loaded.metric_state.values()] == [
        state.dtype for state in saved.metric_state.values()
    ]


def test_a_loaded_metric_counts_as_updated(case: MetricCase) -> None:
    saved = updated(case.make())
    saved.persistent(True)
    loaded = case.make()
    loaded.load_state_dict(saved.state_dict())
    assert loaded.update_called
    assert values_of(loaded.compute()) == expected(case)  # a warning of torchmetrics would fail here


def test_loading_other_settings_is_refused(case: MetricCase) -> None:
    saved = updated(case.make_other())
    saved.persistent(True)
    with pytest.raises(ValueError, match=r"must come from a .* with the same settings"):
        case.make().load_state_dict(saved.state_dict())


def test_states_stay_out_of_a_models_checkpoint_unless_asked_in(case: MetricCase) -> None:
    assert not nn.ModuleDict({"metric": case.make()}).state_dict()


@pytest.mark.parametrize("cast", ["set_dtype", "to", "half"])
def test_states_keep_their_precision(case: MetricCase, cast: str) -> None:
    metric = updated(case.make(), part(0, 10))
    before = {name: state.dtype for name, state in metric.metric_state.items()}
    module = nn.ModuleDict({"metric": metric})
    {"set_dtype": metric.set_dtype, "to": module.to, "half": lambda _: module.half()}[cast](torch.half)
    assert {name: state.dtype for name, state in metric.metric_state.items()} == before
    assert values_of(updated(metric, part(10, 40)).compute()) == expected(case)
    metric.reset()
    assert {name: state.dtype for name, state in metric.metric_state.items()} == before


def test_compute_groups_keep_settings_apart(case: MetricCase) -> None:
    collection = MetricCollection({"one": case.make(), "other": case.make_other(), "twin": case.make()})
    collection.update(*case.agreeing_batch)
    assert values_of(collection["one"].compute()) == values_of(collection["other"].compute())
    collection.update(*WHOLE)
    alone = updated(updated(case.make_other(), case.agreeing_batch))
    assert values_of(collection["other"].compute()) == pytest.approx(values_of(alone.compute()))
    both = tuple(torch.cat(tensors) for tensors in zip(case.agreeing_batch, WHOLE, strict=True))
    assert values_of(collection["one"].compute()) == expected(case, (both[0], both[1]))
    assert values_of(collection["twin"].compute()) == expected(case, (both[0], both[1]))


def test_update_never_waits_for_a_gpu(case: MetricCase) -> None:
    metric = case.make()
    with FakeTensorMode(allow_non_fake_inputs=True):  # raises where a value is looked at
        metric.to("cuda")
        metric.update(torch.randn(5, CLASSES, device="cuda"), torch.zeros(5, dtype=torch.int64, device="cuda"))
        assert all(state.device.type == "cuda" for state in metric.metric_state.values())


def test_bad_values_on_a_gpu_are_refused_by_compute(case: MetricCase, monkeypatch: pytest.MonkeyPatch) -> None:
    metric = updated(case.make())
    monkeypatch.setattr(Tensor, "is_cpu", False)  # as any device but the CPU looks
    metric.update(torch.zeros(3, CLASSES), torch.tensor([0, CLASSES, -1]))
    with pytest.raises(ValueError, match=r"target must hold class indices from 0 to 3 .*, but 2 of the samples since"):
        metric.compute()
    metric.reset()
    assert values_of(updated(metric).compute()) == expected(case)


def test_a_refused_batch_leaves_the_metric_as_it_was(case: MetricCase) -> None:
    metric = updated(case.make())
    bad = (torch.zeros(2, CLASSES), torch.tensor([0, CLASSES]))
    with pytest.raises(ValueError, match=r"target must hold class indices from 0 to 3 .*, but sample 1 has 4"):
        metric.update(*bad)
    with pytest.raises(ValueError, match=r"target must hold class indices"):
        metric(*bad)
    assert values_of(metric.compute()) == expected(case)
    assert values_of(metric(*part(0, 10))) == expected(case, part(0, 10))


@pytest.mark.filterwarnings("ignore:The ``compute`` method")
def test_compute_without_a_batch_is_refused(case: MetricCase) -> None:
    metric = case.make()
    with pytest.raises(ValueError, match=rf"{type(metric).__name__}.compute needs at least one batch: call update"):
        metric.compute()


def test_a_batch_of_ignored_samples_does_not_end_a_run(case: MetricCase) -> None:
    metric = case.make(ignore_index=-1)
    metric(torch.zeros(2, CLASSES), torch.tensor([-1, -1]))
    metric(*WHOLE)
    assert values_of(metric.compute()) == expected(case)


def test_values_go_unlooked_at_when_told_so(case: MetricCase) -> None:
    metric = updated(case.make(validate_args=False))
    metric.update(torch.zeros(1, CLASSES), torch.tensor([CLASSES]))
    assert values_of(metric.compute()) != expected(case)


def test_a_diagonal_that_is_not_read_makes_no_other_settings() -> None:
    for kind, matrix in ((MetaPatternConcernScore, torch.ones(3, 3)), (DangerousErrors, torch.ones(3, 3).bool())):
        metric = kind(3, concern=matrix)
        metric.merge_state(kind(3, concern=matrix.clone().fill_diagonal_(0)))


def test_states_can_be_shared_between_processes(case: MetricCase) -> None:
    metric = case.make()
    metric.share_memory()
    assert all(state.is_shared() for state in metric.metric_state.values())


def test_core_compiles_without_a_break(case: MetricCase) -> None:
    compiled = torch.compile(case.core, fullgraph=True, backend="eager")
    for ours, plain in zip(compiled(*WHOLE), case.core(*WHOLE), strict=True):
        assert torch.equal(ours, plain)


def test_gradients_do_not_reach_the_state(case: MetricCase) -> None:
    metric = case.make()
    metric(WHOLE[0].clone().requires_grad_(), WHOLE[1])
    assert not any(state.requires_grad for state in metric.metric_state.values())


def test_plot_draws_what_it_is_given_where_it_is_told(case: MetricCase) -> None:
    metric = updated(case.make())
    figure, _ = metric.plot()
    assert figure.axes
    axes = Figure().add_subplot()
    _, drawn_on = metric.plot([metric.compute(), metric.compute()], ax=axes)
    assert drawn_on is axes
    assert len(axes.lines[0].get_xdata()) == 2


def test_two_processes_agree_with_one() -> None:
    for by_rank in values_of_two_processes([part(0, 10), part(10, 40)]):
        for kind, value in by_rank.items():
            assert value == expected(next(case for known, case in CASES.items() if known.__name__ == kind))
