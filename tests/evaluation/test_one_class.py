"""Metrics by name that readers of a field expect: kappa, balanced accuracy, and rates and areas of one class."""

from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from sklearn.metrics import (
    balanced_accuracy_score,
    cohen_kappa_score,
    precision_score,
    recall_score,
    roc_auc_score,
)

from mpcs_torch import ConcernSpec, Evaluation, WithInterval, evaluate, evaluate_detectors
from mpcs_torch.concern import ConcernError
from mpcs_torch.evaluation import RequirementError
from mpcs_torch.evaluation.reasons import Reason
from mpcs_torch.evaluation.result import Result
from mpcs_torch.functional import clopper_pearson
from mpcs_torch.functional.quality.scores import ClassRate
from mpcs_torch.metrics.measure_metric import MeasureMetric
from tests.refused import Refused

GRADES = ["none", "mild", "moderate", "severe"]
CONCERN = ConcernSpec(GRADES, class_groups={"referable": ["moderate", "severe"]})
GENERATOR = torch.Generator().manual_seed(0)
TARGET = torch.multinomial(
    torch.tensor([0.5, 0.25, 0.15, 0.1]), 400, replacement=True, generator=GENERATOR
)
PROBS, OTHER = (
    (torch.randn(400, 4, generator=GENERATOR) + skill * torch.eye(4)[TARGET])
    .softmax(1)
    .double()
    for skill in (1, 2)
)
SITES = np.array(["north", "south", "south"] * 133 + ["north"])
OF_ROWS: dict[str, Any] = {
    "quadratic_weighted_kappa": lambda p, y: cohen_kappa_score(
        y, p.argmax(1), weights="quadratic"
    ),
    "balanced_accuracy": lambda p, y: balanced_accuracy_score(y, p.argmax(1)),
    "sensitivity[severe]": lambda p, y: recall_score(y == 3, p.argmax(1) == 3),
    "recall[referable]": lambda p, y: recall_score(y >= 2, p.argmax(1) >= 2),
    "specificity[referable]": lambda p, y: recall_score(y < 2, p.argmax(1) < 2),
    "precision[severe]": lambda p, y: precision_score(y == 3, p.argmax(1) == 3),
    "precision[referable]": lambda p, y: precision_score(y >= 2, p.argmax(1) >= 2),
    "auroc[severe]": lambda p, y: roc_auc_score(y == 3, p[:, 3]),
    "auroc[referable]": lambda p, y: roc_auc_score(y >= 2, p[:, 2:].sum(1)),
}


def measured(**arguments: Any) -> Result[Any]:
    given = {
        "preds": {"A": PROBS, "B": OTHER},
        "target": TARGET,
        "concern": CONCERN,
        "metrics": list(OF_ROWS),
    }
    return evaluate(**{**given, **arguments})


def test_values_are_those_of_scikit_learn_by_group_too_and_models_are_compared() -> None:
    found = measured(groups={"site": SITES})
    of_default = measured(groups={"site": SITES}, metrics=None)
    places = {None: np.full(400, True)}
    places |= {("site", site): site == SITES for site in ("north", "south")}
    for name, value in OF_ROWS.items():
        for model, probs in (("A", PROBS.numpy()), ("B", OTHER.numpy())):
            for group, rows in places.items():
                of_group = found.find(name, model, group)
                expected = value(probs[rows], TARGET.numpy()[rows])
                assert of_group[0] == pytest.approx(expected), name
                assert of_group[1][0] < of_group[0] < of_group[1][1]
                is_rate = "auroc" not in name and name.endswith("[referable]")
                if is_rate:  # which is measured even if it is not named
                    assert of_default.find(name, model, group)[:2] == of_group[:2]
    better = {row.by.metric: row.better for row in found.comparisons}
    assert better == dict.fromkeys(OF_ROWS, "B")
    named = measured(metrics=["sensitivity[referable]"]).comparisons
    assert [row.by.metric for row in named] == ["sensitivity[referable]"], (
        "which is recall[referable]"
    )


def test_rates_have_the_interval_of_their_counts() -> None:
    found, decided = measured(), PROBS.argmax(1)
    right = int(((decided == 3) & (TARGET == 3)).sum())
    for name, number in (("sensitivity", TARGET == 3), ("precision", decided == 3)):
        ends = clopper_pearson(right, int(number.sum()))
        assert found.interval(f"{name}[severe]", "A") == pytest.approx(ends)
    pairs = measured(clusters=np.arange(400) // 2)
    for name in ("sensitivity[severe]", "specificity[referable]", "precision[severe]"):
        (low, high), (least, most) = found.interval(name, "A"), pairs.interval(name, "A")  # type: ignore[misc]
        assert most - least == pytest.approx(high - low, rel=0.15), "pairs of unlike rows"


def test_models_are_compared_by_the_recall_of_groups_of_classes() -> None:
    found = measured(metrics=None)
    row = found.comparisons[-1]
    assert row.measure == "recall[referable]"
    missed = [probs.argmax(1)[TARGET >= 2].numpy() < 2 for probs in (PROBS, OTHER)]
    only_first = int((missed[0] & ~missed[1]).sum())
    only_second = int((~missed[0] & missed[1]).sum())
    expected = binomtest(only_first, only_first + only_second).pvalue
    assert row.paired.p_value == pytest.approx(expected), "McNemar's test of its rows"
    assert measured(metrics=["accuracy"]).comparisons[0].measure == "accuracy"
    assert len(measured(metrics=["accuracy"]).comparisons) == 1
    low = row.paired.low
    assert found.require(f"recall[referable] > A + {low - 0.001}")
    with pytest.raises(RequirementError):
        found.require(f"recall[referable] > A + {low + 0.001}")


def test_tables_of_groups_of_rows_show_groups_of_classes() -> None:
    found = measured(preds=PROBS, metrics=["accuracy"], groups={"site": SITES})
    table = found.groups[0].table()
    assert list(table.header) == ["site", "rows", "accuracy", "recall[referable]"]
    shown = {row[0]: row[3].split()[0] for row in table.rows}
    south = found.value("recall[referable]", group=("site", "south"))
    assert shown["south"] == f"{south:.4g}"
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
    assert [np.isnan(value) for value in absent.first.values.values()] == [True, True]
    assert absent.first.undefined() == dict.fromkeys(
        absent.first.values, Reason("undefined", text="class '3' is without samples")
    )


def test_a_rate_of_a_class_has_an_interval_in_a_training_loop() -> None:
    metric = WithInterval(
        MeasureMetric(ClassRate(4, classes=[2, 3]), True, {}), prefix="referable"
    )
    for rows in torch.arange(400).split(90):
        metric.update(PROBS[rows], TARGET[rows])
    found = measured()
    expected = [
        found.value("recall[referable]", "A"),
        *(found.interval("recall[referable]", "A") or ()),
    ]
    assert [each.item() for each in metric.compute().values()] == pytest.approx(expected)


def holds(draws: int, *, rows: int, positives: int, gap: float, seed: int) -> list[bool]:
    """Draw scores of which the true area is known, and tell whether intervals hold it."""
    area, generator = NormalDist().cdf(gap / 2**0.5), torch.Generator().manual_seed(seed)
    target, held = torch.arange(rows) < positives, list[bool]()
    for _ in range(draws):
        score = (torch.randn(rows, generator=generator) + gap * target).double().sigmoid()
        found = evaluate(
            torch.stack([1 - score, score], 1), target.long(), metrics=["auroc[1]"]
        )
        ends = found.interval("auroc[1]")
        held.append(ends is not None and ends[0] <= area <= ends[1])
    return held


@pytest.mark.slow
@pytest.mark.parametrize("gap", [1.8, 3.0])
@pytest.mark.parametrize("draws", [40, pytest.param(300, marks=pytest.mark.exhaustive)])
def test_intervals_of_areas_hold_for_a_rare_class(draws: int, gap: float) -> None:
    held = holds(draws, rows=300, positives=15, gap=gap, seed=1)
    assert binomtest(sum(held), draws, 0.95, "less").pvalue > 0.001


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
