"""Metrics by name that readers of a field expect: kappa, balanced accuracy, and rates and areas of one class."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from mpcs_torch import ConcernSpec, Evaluation, WithInterval, evaluate, evaluate_detectors
from mpcs_torch.concern import ConcernError
from mpcs_torch.evaluation import RequirementError
from mpcs_torch.evaluation.reasons import Reason
from mpcs_torch.evaluation.result import Result
from mpcs_torch.functional import clopper_pearson
from mpcs_torch.functional.quality.scores import ClassRate
from mpcs_torch.metrics.measure_metric import MeasureMetric
from tests.evaluation.draws import rows_of
from tests.refused import Refused

GRADES = ["none", "mild", "moderate", "severe"]
CONCERN = ConcernSpec(GRADES, class_groups={"referable": ["moderate", "severe"]})
TARGET, PROBS, OTHER = rows_of(400, [0.5, 0.25, 0.15, 0.1])
SITES = np.array(["north", "south", "south"] * 133 + ["north"])


def measured(**arguments: Any) -> Result[Any]:
    given = {"preds": {"A": PROBS, "B": OTHER}, "target": TARGET, "concern": CONCERN}
    return evaluate(**{**given, **arguments})


def test_rates_have_the_interval_of_their_counts() -> None:
    metrics = ["sensitivity[severe]", "precision[severe]", "specificity[referable]"]
    found, decided = measured(metrics=metrics), PROBS.argmax(1)
    right = int(((decided == 3) & (TARGET == 3)).sum())
    pairs = measured(metrics=metrics, clusters=np.arange(400) // 2)
    for name, counted in zip(metrics, (TARGET == 3, decided == 3, None), strict=True):
        low, high = found.interval(name, "A") or (1, 0)
        if counted is not None:
            assert (low, high) == pytest.approx(clopper_pearson(right, int(counted.sum())))
        least, most = pairs.interval(name, "A") or (1, 0)
        assert most - least == pytest.approx(high - low, rel=0.15), "pairs of unlike rows"


def test_models_are_compared_by_the_recall_of_groups_of_classes() -> None:
    found = measured()
    row = found.comparisons[-1]
    assert (row.measure, row.better) == ("recall[referable]", "B")
    first, second = [probs.argmax(1)[TARGET >= 2] < 2 for probs in (PROBS, OTHER)]
    only_first, only_second = [
        int(each.sum()) for each in (first & ~second, second & ~first)
    ]
    expected = binomtest(only_first, only_first + only_second).pvalue
    assert row.paired.p_value == pytest.approx(expected), "McNemar's test of its rows"
    for metrics, compared in (
        (["accuracy"], ["accuracy"]),
        (["sensitivity[referable]"], ["sensitivity[referable]"]),  # the recall, once
    ):
        rows = measured(metrics=metrics).comparisons
        assert [each.by.metric for each in rows] == compared
    low = row.paired.low
    assert found.require(f"recall[referable] > A + {low - 0.001}")
    with pytest.raises(RequirementError):
        found.require(f"recall[referable] > A + {low + 0.001}")


def test_tables_of_groups_of_rows_show_groups_of_classes() -> None:
    found = measured(preds=PROBS, metrics=["accuracy"], groups={"site": SITES})
    table = found.groups[0].table()
    assert [*table.header] == ["site", "rows", "accuracy", "recall[referable]"]
    south = found.value("recall[referable]", group=("site", "south"))
    [shown] = [row[3] for row in table.rows if row[0] == "south"]
    assert shown.split()[0] == f"{south:.4g}"
    assert "recall[referable]" in str(found).split("by site")[1]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"mild": [1, 2]}, "must differ from classes"),
        ({"samples": [1]}, "must differ from classes, coarse answers, samples and decided"),
        ({"a]": [1]}, "without ]"),
        ({"all": GRADES}, "must leave out a class"),
        ({"some": []}, "must be a list of classes"),
        ({"some": ["awful"]}, "must be one of the classes"),
        ({"some": [7]}, "an index from 0 to 3"),
        (["referable"], "must be a mapping"),
    ],
)
def test_groups_of_classes_that_break_rules_are_refused(groups: Any, message: str) -> None:
    with pytest.raises(ConcernError, match=message):
        ConcernSpec(GRADES, class_groups=groups)


def test_without_a_class_its_area_and_rate_are_undefined() -> None:
    absent = evaluate(PROBS, TARGET.clamp(max=2), metrics=["auroc[3]", "sensitivity[3]"])
    assert np.isnan([*absent.first.values.values()]).all()
    assert absent.first.undefined() == dict.fromkeys(
        absent.first.values, Reason("undefined", text="class '3' is without samples")
    )
    never = evaluate(0 * TARGET, TARGET, concern=CONCERN)
    value, ends, reason = never.find("precision[referable]")
    assert np.isnan(value)
    assert (ends, reason is None) == (None, False)


def test_a_rate_of_a_class_has_an_interval_in_a_training_loop() -> None:
    rate = MeasureMetric(ClassRate(4, classes=[2, 3]), True, {})
    metric = WithInterval(rate, prefix="referable")
    for rows in torch.arange(400).split(90):
        metric.update(PROBS[rows], TARGET[rows])
    value, ends, _ = measured().find("recall[referable]", "A")
    found = [each.item() for each in metric.compute().values()]
    assert found == pytest.approx([value, *ends])


@pytest.mark.parametrize("size", [1, 2, 20, 100])
def test_an_area_has_the_interval_that_detectors_have(size: int) -> None:
    """By the same function, however clusters are spread over parts of the rows, batches and groups."""
    clusters, severe = np.arange(400)[::-1] // size, (8 * PROBS[:, 3:]).round() / 8
    ties = torch.cat([(1 - severe).expand(-1, 3) / 3, severe], 1)
    columns: Any = {"clusters": None if size == 1 else clusters, "groups": {"site": SITES}}
    expected = evaluate_detectors(ties[:, 3], TARGET == 3, **columns)
    parts = [Evaluation(4, metrics=["auroc[3]"]) for _ in range(2)]
    for part, rows in zip(parts, (slice(None, None, 2), slice(1, None, 2)), strict=True):
        batch = {} if size == 1 else {"clusters": clusters[rows]}
        part.update(ties[rows], TARGET[rows], groups={"site": SITES[rows]}, **batch)
    parts[0].merge(parts[1])
    whole = evaluate(ties, TARGET, metrics=["auroc[3]"], **columns)
    for result in (whole, parts[0].result()):
        for group in (None, ("site", "north"), ("site", "south")):
            value, ends, _ = result.find("auroc[3]", group=group)
            wanted, of_detector, _ = expected.find("auroc", group=group)
            assert value == pytest.approx(wanted)
            assert (ends is None) == (size == 100), "4 clusters are too few"
            assert ends == (of_detector and pytest.approx(of_detector, rel=1e-6))


@pytest.mark.parametrize(
    ("name", "arguments", "refusal"),
    [
        (
            "auroc[sever]",
            {},
            Refused(
                "misspelt_class", "auroc[sever]", "sever", suggestion="did you mean severe?"
            ),
        ),
        (
            "recall[x]",
            {"concern": None},
            Refused("names_class", "recall[x]", "x", classes=["0", "1", "2", "3"]),
        ),
        ("sensitivity", {}, Refused("unknown_metric", "metric", "sensitivity")),
        (
            "auroc[severe]",
            {"preds": TARGET},
            Refused("no_probabilities", "", metrics="auroc[severe]"),
        ),
        (
            "recall[severe]",
            {"preds": TARGET - 1},
            Refused("has_referrals", "", metrics="recall[severe]"),
        ),
    ],
)
def test_what_cannot_be_scoresis_refused(
    name: str, arguments: Any, refusal: Refused
) -> None:
    with refusal:
        measured(metrics=[name], **arguments)
