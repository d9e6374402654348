"""The worst group: the metric of each group alone, and the worst of these values."""

import json
import pickle
from collections.abc import Callable
from html import unescape
from math import hypot, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn
from torchmetrics import Metric, MetricCollection
from torchmetrics.classification import MulticlassAUROC, MulticlassF1Score

from mpcs_torch import (
    ConcernSpec,
    DangerousErrors,
    MetaPatternConcernScore,
    WithInterval,
    WorstGroup,
    evaluate,
)
from mpcs_torch.evaluation import Result
from mpcs_torch.evaluation.scores import GroupScores
from mpcs_torch.functional import clopper_pearson
from mpcs_torch.metrics import (
    Accuracy,
    ClassErrorRates,
    MacroRecall,
    Overconfidence,
    RiskCoverageArea,
)
from mpcs_torch.processes import World
from mpcs_torch.report.score import write_score_report
from tests.metrics.batches import CLASSES, random_batch
from tests.processes.forked import forked_world, succeeded
from tests.refused import Refused

LOGITS, TARGET = random_batch(120, seed=4)
GROUPS = torch.arange(120) % 7 % 5  # five groups of unequal sizes
CONCERN = ConcernSpec(CLASSES, releases=[[0, 1]], factor=0.3)
METRICS: dict[str, Callable[[], Metric]] = {
    "sums": lambda: DangerousErrors(CLASSES, concern=CONCERN, normalize="samples"),
    "probabilities": lambda: MetaPatternConcernScore(CLASSES, concern=CONCERN),
    "samples": lambda: RiskCoverageArea(CLASSES, concern=CONCERN),
    "torchmetrics": lambda: MulticlassF1Score(CLASSES),
    "samples of torchmetrics": lambda: MulticlassAUROC(CLASSES),
}


def values_alone(make: Callable[[], Metric]) -> list[float]:
    return [
        make()(LOGITS[rows], TARGET[rows]).item()
        for rows in nn.functional.one_hot(GROUPS).T.bool()
    ]


def worst(values: list[float], metric: Metric) -> float:
    return min(values) if metric.higher_is_better else max(values)


def updated(metric: Metric) -> WorstGroup:
    wrapper = WorstGroup(metric, groups=5)
    for rows in torch.arange(120).split(50):
        wrapper.update(LOGITS[rows], TARGET[rows], groups=GROUPS[rows])
    return wrapper


@pytest.fixture(params=METRICS)
def make(request: pytest.FixtureRequest) -> Callable[[], Metric]:
    return METRICS[request.param]


def test_the_value_is_the_worst_of_the_groups_alone(make: Callable[[], Metric]) -> None:
    wrapper, alone = updated(make()), values_alone(make)
    assert wrapper.per_group().tolist() == pytest.approx(alone, rel=1e-6)
    assert wrapper.compute().item() == pytest.approx(worst(alone, make()), rel=1e-6)
    assert wrapper.higher_is_better is make().higher_is_better


@pytest.mark.filterwarnings("ignore:No positive samples:UserWarning")
def test_it_is_cloned_pickled_reset_and_called_as_other_metrics(
    make: Callable[[], Metric],
) -> None:
    whole, again, called = updated(make()), updated(make()), WorstGroup(make(), groups=5)
    again.reset()
    for metric in (again, called):
        for rows in (slice(0, 60), slice(60, 120)):
            metric(LOGITS[rows], TARGET[rows], groups=GROUPS[rows])
    copies = [whole.clone(), pickle.loads(pickle.dumps(whole)), again, called]
    if not isinstance(make(), MulticlassAUROC):  # its lists of other lengths are not loaded
        loaded = WorstGroup(make(), groups=5)
        for metric in (whole, loaded):
            metric.persistent(True)
        loaded.load_state_dict(whole.state_dict())
        copies.append(loaded)
    expected = pytest.approx(whole.compute().item(), rel=1e-6)
    assert [metric.compute().item() for metric in copies] == [expected] * len(copies)


def test_small_groups_and_groups_without_a_value_take_no_part() -> None:
    accuracy = WorstGroup(Accuracy(2), groups=4, min_rows=3)
    preds, target = torch.tensor([0, 0, 1, 1, 0, 1]), torch.tensor([0, 1, 1, 0, 0, 1])
    accuracy.update(preds, target, groups=torch.tensor([0, 0, 0, 1, 3, 3]))
    assert accuracy.per_group().tolist() == pytest.approx(
        [2 / 3, nan, nan, nan], nan_ok=True
    )
    accuracy.update(torch.tensor([1]), torch.tensor([0]), groups=torch.tensor([3]))
    of_groups = [2 / 3, nan, nan, 2 / 3]
    assert accuracy.per_group().tolist() == pytest.approx(of_groups, nan_ok=True)
    assert accuracy.compute().item() == pytest.approx(2 / 3)
    alone = WorstGroup(Accuracy(2), groups=2, min_rows=9)
    assert alone(preds, target, groups=0 * target).isnan()
    assert alone.compute().isnan()


def test_in_a_collection_groups_reach_the_metrics_that_take_them() -> None:
    collection = MetricCollection(
        {
            "accuracy": Accuracy(CLASSES),
            "sure": WithInterval(Accuracy(CLASSES)),
            "worst": WorstGroup(Accuracy(CLASSES), groups=5),
            "dangerous": WorstGroup(METRICS["sums"](), groups=5),
        }
    )
    clusters, weights = torch.arange(120) // 2, torch.ones(120)
    # Metrics that share states are found after the first batch.
    for rows in torch.arange(120).split(40):
        collection.update(
            LOGITS[rows],
            TARGET[rows],
            groups=GROUPS[rows],
            clusters=clusters[rows],
            sample_weight=weights[rows],
        )
    values = collection.compute()
    accuracy = Accuracy(CLASSES)(LOGITS, TARGET)
    assert values["accuracy"] == accuracy == values["sure_accuracy"]
    for name, metric in (("worst", Accuracy(CLASSES)), ("dangerous", METRICS["sums"]())):
        expected = updated(metric).compute().item()
        assert values[name].item() == pytest.approx(expected)
    called = collection(LOGITS, TARGET, groups=GROUPS)
    assert called.keys() >= {"accuracy", "worst", "dangerous"}


def test_weights_go_with_their_rows() -> None:
    weights, rows = torch.arange(120) % 3, (LOGITS, TARGET, GROUPS)
    wrapper, repeated = [WorstGroup(Accuracy(CLASSES), groups=5) for _ in range(2)]
    wrapper.update(*rows, sample_weight=weights)
    repeated.update(*[each.repeat_interleave(weights, 0) for each in rows])
    assert wrapper.per_group().tolist() == pytest.approx(repeated.per_group().tolist())


COUNTS = {"minimum": 1}
REFUSED: dict[str, tuple[dict[str, Any], Refused]] = {
    "no metric": ({"metric": 3}, Refused("directed_metric", "metric", 3)),
    "no direction": ({"metric": Overconfidence(2)}, Refused("directed_metric", "metric")),
    "each step": (
        {"metric": Accuracy(2, dist_sync_on_step=True)},
        Refused("no_sync_on_step", "metric"),
    ),
    "no groups": (
        {"groups": 0},
        Refused("whole_at_least", "groups and min_rows", [0, 1], **COUNTS),
    ),
    "half a row": (
        {"min_rows": 2.5},
        Refused("whole_at_least", "groups and min_rows", [2, 2.5], **COUNTS),
    ),
}


@pytest.mark.parametrize(("arguments", "refusal"), REFUSED.values(), ids=REFUSED)
def test_arguments_are_checked(arguments: dict[str, Any], refusal: Refused) -> None:
    with refusal:
        WorstGroup(**{"metric": Accuracy(2), "groups": 2, **arguments})


@pytest.mark.parametrize(
    ("groups", "row"),
    [([0, 2, 5], 1), ([0, -1, 0], 1), ([0, 1], None), ([0.0, 1, 1], None)],
)
def test_groups_of_a_batch_are_checked(groups: list[float], row: int | None) -> None:
    wrapper, labels = WorstGroup(Accuracy(2), groups=2), torch.tensor([0, 1, 1])
    with Refused("group_of_each_row", "groups", last=1, sample=row):
        wrapper.update(labels, labels, groups=torch.tensor(groups))
    with Refused("not_updated", "WorstGroup.compute"):
        wrapper.compute()


def test_a_metric_of_several_values_has_no_worst() -> None:
    wrapper = updated(ClassErrorRates(CLASSES))
    with Refused("computes_scalar", "metric"):
        wrapper.compute()


def test_a_group_may_be_absent_in_a_process(tmp_path: Path) -> None:
    """Some groups lie in one process alone, so that the other has no rows of it, and others in both."""
    is_first = (GROUPS <= 2) & (torch.arange(120) < 100)
    makes = dict(METRICS)
    del makes["samples of torchmetrics"]

    def work(world: World) -> None:
        values = {}
        rows = is_first == (world.rank == 0)
        for name, make in makes.items():
            wrapper = WorstGroup(make(), groups=5, min_rows=13)
            wrapper.update(LOGITS[rows], TARGET[rows], groups=GROUPS[rows])
            values[name] = [wrapper.compute().item(), *wrapper.per_group().tolist()]
        (tmp_path / f"{world.rank}.json").write_text(json.dumps(values))

    assert succeeded(forked_world(tmp_path, 2, work))
    assert GROUPS.bincount().tolist() == [35, 34, 17, 17, 17]
    assert GROUPS[is_first].bincount()[2] > 13 > GROUPS[~is_first].bincount()[2] > 0
    for rank in range(2):
        found = json.loads((tmp_path / f"{rank}.json").read_text())
        for name, make in makes.items():
            alone = values_alone(make)
            expected = [worst(alone, make()), *alone]
            assert found[name] == pytest.approx(expected, rel=1e-5), name


def test_recall_of_a_class_that_a_group_lacks_leaves_the_group_out() -> None:
    preds, target, groups = torch.tensor([[0, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]])
    assert WorstGroup(MacroRecall(2), groups=2)(preds, target, groups=groups) == 0.75


def evaluated(
    wrong: list[int],
    rows: int = 100,
    *,
    metric: str = "misclassification_rate",
    intervals: bool = True,
) -> Result[Any]:
    """Evaluate a group for each number of wrong rows, named "0", "1" and so on."""
    target = torch.arange(rows).repeat(len(wrong)) % 2
    is_wrong = torch.cat([torch.arange(rows) < number for number in wrong])
    return evaluate(
        target ^ is_wrong.long(),
        target,
        class_names=2,
        metrics=[metric],
        groups={"site": torch.arange(len(wrong)).repeat_interleave(rows)},
        intervals=intervals,
    )


def groups_of(wrong: list[int], **options: Any) -> GroupScores:
    [groups] = evaluated(wrong, **options).groups
    return groups


@pytest.mark.parametrize("metric", ["misclassification_rate", "accuracy"])
def test_groups_that_may_be_the_worst_are_those_whose_difference_may_be_zero(
    metric: str,
) -> None:
    wrong = [30, 5, 22, 18, 12, 0]
    ends = [clopper_pearson(number, 100) for number in wrong]
    ratio = stats.norm.ppf(1 - 0.05 / 5) / stats.norm.ppf(0.975)
    expected = ["0"]
    for place in (2, 3, 4, 1, 5):
        half = hypot(0.3 - ends[0][0], ends[place][1] - wrong[place] / 100)
        if (30 - wrong[place]) / 100 <= ratio * half:
            expected.append(str(place))
    assert expected == ["0", "2", "3"]
    assert groups_of(wrong, metric=metric).may_be_worst() == expected


@pytest.mark.parametrize(
    ("wrong", "end"),
    [
        ([30, 5, 22, 18, 12, 0], "one of 3 groups: 0, 2, 3."),
        ([60, 5, 5], "0."),
        ([12, 10, 11], "one of 3 groups: 0, 2, 1."),
        ([10] * 8, "one of 8 groups: 0, 1, 2, 3, 4 and 3 more."),
        ([10], None),
    ],
)
def test_the_sentence_says_how_sure_the_worst_group_is(
    wrong: list[int], end: str | None
) -> None:
    start = "0 has the worst misclassification_rate, but was chosen for it. With 95 % confidence, the worst is "
    expected = [] if end is None else [f"{start}{end}"]
    assert groups_of(wrong).about_worst() == expected


def test_the_sentence_is_printed_written_and_in_the_json(tmp_path: Path) -> None:
    result = evaluated([30, 5, 22], metric="accuracy")
    [sentence] = result.groups[0].about_worst()
    assert sentence in str(result)
    assert result.to_dict()["groups"][0]["may_be_worst"] == ["0", "2"]
    write_score_report(result, None, tmp_path / "report.html")
    assert sentence in unescape((tmp_path / "report.html").read_text()).replace("\xa0", " ")
    without = evaluated([30, 5, 22], metric="accuracy", intervals=False)
    assert without.groups[0].may_be_worst() == []
    assert "may_be_worst" not in without.to_dict()["groups"][0]


def test_the_truly_worst_group_is_among_those_that_may_be() -> None:
    """All rates are equal, so that the worst is worst by chance alone: any group may be taken for the truly worst."""
    draws = np.random.default_rng(0).binomial(80, 0.15, (60, 6)).tolist()
    contained = sum("3" in groups_of(wrong, rows=80).may_be_worst() for wrong in draws)
    assert contained >= 0.95 * len(draws)
