"""The worst group: the metric of each group alone, and the worst of these values."""

import json
import pickle
from collections.abc import Callable
from html import unescape
from math import nan
from pathlib import Path
from typing import Any

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
        first = WorstGroup(make(), groups=5)
        first.update(LOGITS[:60], TARGET[:60], groups=GROUPS[:60])
        of_batch = metric(LOGITS[:60], TARGET[:60], groups=GROUPS[:60])
        assert of_batch.item() == pytest.approx(first.compute().item(), rel=1e-6)
        metric(LOGITS[60:], TARGET[60:], groups=GROUPS[60:])
    copies = [whole.clone(), pickle.loads(pickle.dumps(whole)), again, called]
    if not isinstance(make(), MulticlassAUROC):  # its lists of other lengths are not loaded
        loaded = WorstGroup(make(), groups=5)
        for metric in (whole, loaded):
            metric.persistent(True)
        loaded.load_state_dict(whole.state_dict())
        copies.append(loaded)
    for copied in copies:
        assert copied.compute().item() == pytest.approx(whole.compute().item(), rel=1e-6)


def test_small_groups_and_groups_without_a_value_take_no_part() -> None:
    accuracy = WorstGroup(Accuracy(2), groups=4, min_rows=3)
    preds, target = torch.tensor([0, 0, 1, 1, 0, 1]), torch.tensor([0, 1, 1, 0, 0, 1])
    accuracy.update(preds, target, groups=torch.tensor([0, 0, 0, 1, 3, 3]))
    expected = torch.tensor([2 / 3, nan, nan, nan], dtype=torch.float64)
    torch.testing.assert_close(accuracy.per_group(), expected, equal_nan=True)
    accuracy.update(torch.tensor([1]), torch.tensor([0]), groups=torch.tensor([3]))
    expected[3] = 2 / 3
    torch.testing.assert_close(accuracy.per_group(), expected, equal_nan=True)
    assert accuracy.compute().item() == pytest.approx(2 / 3)
    alone = WorstGroup(Accuracy(2), groups=2, min_rows=9)
    assert alone(preds, target, groups=torch.zeros(6, dtype=torch.int64)).isnan()
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
    columns = {
        "groups": GROUPS,
        "clusters": torch.arange(120) // 2,
        "sample_weight": torch.ones(120),
    }
    # Metrics that share states are found after the first batch.
    for rows in torch.arange(120).split(40):
        batch = {name: values[rows] for name, values in columns.items()}
        collection.update(LOGITS[rows], TARGET[rows], **batch)
    values = collection.compute()
    accuracy = Accuracy(CLASSES)(LOGITS, TARGET)
    assert values["accuracy"] == accuracy == values["sure_accuracy"]
    worst_accuracy = updated(Accuracy(CLASSES)).compute()
    assert values["worst"].item() == pytest.approx(worst_accuracy.item())
    most_dangerous = updated(METRICS["sums"]()).compute()
    assert values["dangerous"].item() == pytest.approx(most_dangerous.item())
    called = collection(LOGITS, TARGET, groups=GROUPS)
    assert called.keys() >= {"accuracy", "worst", "dangerous"}


def test_weights_go_with_their_rows() -> None:
    weights = torch.arange(120) % 3
    wrapper = WorstGroup(Accuracy(CLASSES), groups=5)
    wrapper.update(LOGITS, TARGET, groups=GROUPS, sample_weight=weights)
    repeated = WorstGroup(Accuracy(CLASSES), groups=5)
    repeated.update(
        *(each.repeat_interleave(weights, 0) for each in (LOGITS, TARGET, GROUPS))
    )
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


@pytest.mark.parametrize("groups", [[0, 2, 0], [0, -1, 0], [0, 1], [0.0, 1, 1]])
def test_groups_of_a_batch_are_checked(groups: list[float]) -> None:
    wrapper, labels = WorstGroup(Accuracy(2), groups=2), torch.tensor([0, 1, 1])
    with Refused("group_of_each_row", "groups", last=1):
        wrapper.update(labels, labels, groups=torch.tensor(groups))
    with Refused("not_updated", "WorstGroup.compute"):
        wrapper.compute()


def test_the_row_of_a_wrong_group_is_named() -> None:
    wrapper, labels = WorstGroup(Accuracy(2), groups=2), torch.tensor([0, 1, 1])
    with Refused("group_of_each_row", "groups", 2, sample=1):
        wrapper.update(labels, labels, groups=torch.tensor([0, 2, 5]))


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
    recall = WorstGroup(MacroRecall(2), groups=2)
    worst = recall(
        torch.tensor([0, 0, 1, 0]),
        torch.tensor([0, 1, 1, 0]),
        groups=torch.tensor([0, 0, 0, 1]),
    )
    assert worst == 0.75


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
    return evaluated(wrong, **options).groups[0]


@pytest.mark.parametrize("metric", ["misclassification_rate", "accuracy"])
def test_groups_that_may_be_the_worst_are_those_whose_difference_may_be_zero(
    metric: str,
) -> None:
    wrong = [30, 5, 22, 18, 12, 0]
    # These are the intervals of Clopper and Pearson.
    intervals = [stats.binomtest(number, 100).proportion_ci() for number in wrong]
    low = [interval.low for interval in intervals]
    high = [interval.high for interval in intervals]
    ratio = stats.norm.ppf(1 - 0.05 / 5) / stats.norm.ppf(0.975)
    expected = ["0"]
    for place in (2, 3, 4, 1, 5):
        half = ((0.3 - low[0]) ** 2 + (high[place] - wrong[place] / 100) ** 2) ** 0.5
        if (30 - wrong[place]) / 100 <= ratio * half:
            expected.append(str(place))
    assert expected == ["0", "2", "3"]
    assert groups_of(wrong, metric=metric).may_be_worst() == expected


def test_the_sentence_says_how_sure_the_worst_group_is() -> None:
    few, one, every = (
        groups_of(wrong) for wrong in ([30, 5, 22, 18, 12, 0], [60, 5, 5], [12, 10, 11])
    )
    start = "0 has the worst misclassification_rate, but was chosen for it. With 95 % confidence, the worst is "
    assert few.about_worst() == [f"{start}one of 3 groups: 0, 2, 3."]
    assert one.about_worst() == [f"{start}0."]
    assert every.about_worst() == [f"{start}one of 3 groups: 0, 2, 1."]
    assert groups_of([10] * 8).about_worst() == [
        f"{start}one of 8 groups: 0, 1, 2, 3, 4 and 3 more."
    ]
    assert groups_of([10]).about_worst() == []


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
    generator = torch.Generator().manual_seed(0)
    draws = (
        torch.binomial(
            torch.full((60, 6), 80.0), torch.full((60, 6), 0.15), generator=generator
        )
        .long()
        .tolist()
    )
    found = sum("3" in groups_of(wrong, rows=80).may_be_worst() for wrong in draws)
    assert found >= 0.95 * len(draws)
