"""The losses of the benchmark against their special cases and against plain Python."""

import math
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from examples.benchmark import methods
from examples.benchmark.methods import METHODS, SETTINGS, Batch, Method, Problem, method_of
from mpcs_torch import ConcernSpec

GENERATOR = torch.Generator().manual_seed(0)
CONCERN = ConcernSpec(4, releases=[[0, 1], [1, 0], [2, 3], [3, 2]], factor=0.5)
PROBLEM = Problem(CONCERN, torch.tensor([10, 10, 10, 10]), steps=100)
LOGITS, TARGET = torch.randn(12, 4, generator=GENERATOR), torch.arange(12) % 4
BATCH = Batch(LOGITS, TARGET, torch.arange(12), 0.5)
PLAIN = cross_entropy(LOGITS, TARGET)
P = LOGITS.softmax(dim=1)


@pytest.mark.parametrize(
    "loss",
    [
        methods.focal(PROBLEM, gamma=0.0),
        methods.soft_labels(PROBLEM, sharpness=1e4),
        methods.expected_cost(PROBLEM, share=0.0),
        methods.hierarchical(PROBLEM, alpha=0.0),
        methods.cost_weighted(PROBLEM, released=0.5),  # each row has the same costs
        methods.plain_loss(PROBLEM, label_smoothing=0.0),
        methods.ramped_margin(PROBLEM, margin=4.0, label_smoothing=0.0),  # at the first step
    ],
)
def test_it_is_cross_entropy_where_the_source_says_so(loss: methods.BatchLoss) -> None:
    torch.testing.assert_close(loss(BATCH), PLAIN)


def test_logit_adjustment_does_nothing_for_classes_of_equal_frequency() -> None:
    smoothed = cross_entropy(LOGITS, TARGET, label_smoothing=methods.SMOOTHING)
    torch.testing.assert_close(methods.logit_adjustment(PROBLEM, tau=1.0)(BATCH), smoothed)
    rare = PROBLEM._replace(class_counts=torch.tensor([1, 13, 13, 13]))
    loss = methods.logit_adjustment(rare, tau=1.0)
    assert loss(BATCH._replace(target=torch.zeros(12, dtype=torch.int64))) > cross_entropy(
        LOGITS, torch.zeros(12).long()
    )


def test_class_distance_weighting_is_the_sum_of_its_source() -> None:
    costs = [[0, 0.5, 1, 1], [0.5, 0, 1, 1], [1, 1, 0, 0.5], [1, 1, 0.5, 0]]
    expected = sum(
        -math.log(1 - P[n, j].item()) * costs[TARGET[n]][j] ** 2 for n in range(12) for j in range(4) if j != TARGET[n]
    )
    found = methods.class_distance_weighted(PROBLEM, power=2.0)(BATCH)
    assert found.item() == pytest.approx(expected / 12, rel=1e-5)


def test_hierarchical_loss_weighs_the_edge_below_the_root_less() -> None:
    groups = [[0, 1], [0, 1], [2, 3], [2, 3]]
    expected = 0.0
    for n, true in enumerate(TARGET.tolist()):
        of_group = sum(P[n, j].item() for j in groups[true])
        expected -= math.log(P[n, true].item() / of_group) + math.exp(-0.3) * math.log(of_group)
    assert methods.hierarchical(PROBLEM, alpha=0.3)(BATCH).item() == pytest.approx(expected / 12, rel=1e-5)


def test_the_coarse_model_multiplies_the_probability_of_its_group() -> None:
    other = torch.randn(12, 4, generator=GENERATOR).softmax(dim=1)
    of_group = torch.stack([other[:, :2].sum(dim=1)] * 2 + [other[:, 2:].sum(dim=1)] * 2, dim=1)
    expected = P * of_group / (P * of_group).sum(dim=1, keepdim=True)
    found = methods.fine_times_coarse([LOGITS, other.log()], PROBLEM)
    torch.testing.assert_close(found.exp(), expected)


WITH_DOUBT = torch.randn(12, 5, generator=GENERATOR)


def test_abstaining_losses_follow_their_sources_after_pretraining() -> None:
    batch = BATCH._replace(logits=WITH_DOUBT)
    p = WITH_DOUBT.softmax(dim=1)
    true = p[torch.arange(12), TARGET]
    gamblers = methods.deep_gamblers(PROBLEM, payoff=0.6)
    torch.testing.assert_close(gamblers(batch), -(true + p[:, 4] / 2.8).log().mean())
    believed = 0.9 + 0.1 * WITH_DOUBT[:, :4].softmax(dim=1)[torch.arange(12), TARGET]
    expected = -(believed * true.log() + (1 - believed) * p[:, 4].log()).mean()
    torch.testing.assert_close(methods.self_adaptive(PROBLEM, momentum=0.9)(batch), expected)
    early = batch._replace(progress=0.1)
    torch.testing.assert_close(gamblers(early), cross_entropy(WITH_DOUBT[:, :4], TARGET))
    combined = methods.spread_abstention([WITH_DOUBT], PROBLEM).exp()
    torch.testing.assert_close(combined, p[:, :4] + p[:, 4:] / 4)


def test_groups_are_classes_that_may_be_mistaken_for_each_other() -> None:
    assert methods.tree_of(CONCERN).tolist() == [0, 0, 1, 1]
    assert methods.has_tree(CONCERN)
    one_way = ConcernSpec(4, releases=[[0, 1], [2, 3]])
    assert methods.tree_of(one_way).tolist() == [0, 1, 2, 3]
    assert not methods.has_tree(one_way)


def test_an_ensemble_is_the_mean_of_probabilities() -> None:
    both = [LOGITS, LOGITS.flip(0)]
    expected = sum(each.softmax(dim=1) for each in both) / 2
    torch.testing.assert_close(methods.mean_of_members(both, PROBLEM).softmax(dim=1), expected)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("progress", [0.0, 0.5, 0.99])
def test_every_method_has_settings_and_a_gradient(name: str, progress: float) -> None:
    method = METHODS[name]
    assert len(method.settings) == SETTINGS
    for setting in method.settings:
        given = {key: value for key, value in setting.items() if key not in ("patience", "averaging")}
        for member in range(method.members):
            logits = torch.randn(12, 4 + method.extra_outputs, generator=GENERATOR).requires_grad_()
            loss = method.loss(PROBLEM._replace(member=member), **given)
            loss(Batch(logits, TARGET, torch.arange(12), progress)).backward()  # type: ignore[no-untyped-call]
            assert logits.grad is not None
            assert logits.grad.isfinite().all()
            assert logits.grad.any()


def test_confident_logits_do_not_make_a_loss_infinite() -> None:
    sure = (50 * torch.eye(4)[TARGET]).requires_grad_()
    for name, method in METHODS.items():
        if method.extra_outputs == 0:
            given = {key: value for key, value in method.settings[0].items() if key not in ("patience", "averaging")}
            value: Tensor = method.loss(PROBLEM, **given)(BATCH._replace(logits=sure))
            (gradient,) = torch.autograd.grad(value, sure)
            assert gradient.isfinite().all(), name


def test_a_stranger_brings_a_method_in_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "from examples.benchmark.methods import Method, plain_loss\n"
        "MINE = Method(plain_loss, ({}, {}, {}))\nFEW = Method(plain_loss, ())\n"
    )
    (tmp_path / "my_method.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_method", raising=False)
    assert isinstance(method_of("my_method:MINE"), Method)
    with pytest.raises(ValueError, match="must be a Method with 3 settings"):
        method_of("my_method:FEW")
    with pytest.raises(ValueError, match="must be an import path"):
        method_of("cross entrophy")
