"""Groups of classes, such as referable grades: rates are those of the union of their classes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from scipy.stats import binomtest
from sklearn.metrics import precision_score, recall_score
from torch import Tensor

from mpcs_torch import ConcernSpec, evaluate
from mpcs_torch.concern import ConcernError, load_concern
from mpcs_torch.concern.files import save_concern
from mpcs_torch.evaluation import RequirementError
from mpcs_torch.functional import clopper_pearson

GRADES = ["none", "mild", "moderate", "severe", "proliferative"]
REFERABLE = ["moderate", "severe", "proliferative"]
CONCERN = ConcernSpec(
    GRADES, releases=[["mild", "none"]], class_groups={"referable": REFERABLE, "worst": [4]}
)
GENERATOR = torch.Generator().manual_seed(0)
TARGET = torch.randint(5, (400,), generator=GENERATOR)
PROBS = (
    torch.randn(400, 5, generator=GENERATOR).double() + 1.5 * torch.eye(5).double()[TARGET]
).softmax(1)
CLINICS = ["a" if row % 4 else "b" for row in range(400)]


def in_group(labels: Tensor) -> Tensor:
    return labels >= 2


@pytest.mark.parametrize("clinic", [None, "a", "b"])
def test_rates_are_those_of_scikit_learn_for_the_union(clinic: str | None) -> None:
    found = evaluate(PROBS, TARGET, concern=CONCERN, groups={"clinic": CLINICS})
    kept = torch.tensor([clinic in (None, each) for each in CLINICS])
    true, decided = in_group(TARGET[kept]), in_group(PROBS.argmax(1)[kept])
    group = None if clinic is None else ("clinic", clinic)
    for name, expected in (
        ("recall[referable]", recall_score(true, decided)),
        ("sensitivity[referable]", recall_score(true, decided)),
        ("specificity[referable]", recall_score(~true, ~decided)),
        ("precision[referable]", precision_score(true, decided)),
    ):
        assert found.value(name, group=group) == pytest.approx(expected)
    right, number = int((true & decided).sum()), int(true.sum())
    assert found.interval("recall[referable]", group=group) == pytest.approx(
        clopper_pearson(right, number)
    )
    if clinic is None:
        assert found.value("recall[worst]") == pytest.approx(
            found.value("recall[proliferative]")
        )
        assert found.interval("specificity[worst]") == pytest.approx(
            found.interval("specificity[proliferative]")
        )
        assert "referable" in str(found)


OTHER = (
    torch.randn(400, 5, generator=GENERATOR).double() + 2 * torch.eye(5).double()[TARGET]
).softmax(1)


def test_models_are_compared_by_the_recall_of_groups() -> None:
    found = evaluate({"A": PROBS, "B": OTHER}, TARGET, concern=CONCERN)
    by_measure = {row.measure: row.paired for row in found.comparisons}
    assert list(by_measure)[-2:] == ["recall[referable]", "recall[worst]"]
    named = evaluate(
        {"A": PROBS, "B": OTHER}, TARGET, concern=CONCERN, metrics=["accuracy"]
    )
    assert [row.measure for row in named.comparisons] == ["accuracy"], (
        "which is corrected for itself alone"
    )
    for name, is_true in (("referable", in_group(TARGET)), ("worst", TARGET == 4)):
        members = torch.arange(5) >= (2 if name == "referable" else 4)
        missed = [~members[probs.argmax(1)][is_true].numpy() for probs in (PROBS, OTHER)]
        only_first = int((missed[0] & ~missed[1]).sum())
        only_second = int((~missed[0] & missed[1]).sum())
        expected = binomtest(only_first, only_first + only_second).pvalue
        assert by_measure[f"recall[{name}]"].p_value == pytest.approx(expected), (
            "McNemar's test of the group's rows"
        )
        difference = found.value(f"recall[{name}]", "B") - found.value(
            f"recall[{name}]", "A"
        )
        assert by_measure[f"recall[{name}]"].difference == pytest.approx(difference)
    low = by_measure["recall[referable]"].low
    assert found.require(
        f"recall[referable] > A {'-' if low < 0 else '+'} {abs(low) + (0.01 if low < 0 else -0.001)}"
    )
    with pytest.raises(RequirementError):
        found.require("recall[referable] > A + 0.2")


def test_tables_of_groups_of_rows_show_groups_of_classes() -> None:
    found = evaluate(
        PROBS, TARGET, concern=CONCERN, metrics=["accuracy"], groups={"clinic": CLINICS}
    )
    table = found.groups[0].table()
    assert list(table.header) == [
        "clinic",
        "rows",
        "accuracy",
        "recall[referable]",
        "recall[worst]",
    ]
    values = {
        name: found.value("recall[referable]", group=("clinic", name)) for name in "ab"
    }
    shown = {row[0]: row[3].split()[0] for row in table.rows}
    assert shown["a"] == f"{values['a']:.4g}"
    assert shown["worst"] == f"{min(values.values()):.4g}"
    assert "recall[referable]" in str(found).split("by clinic")[1]
    frame = found.to_frame()
    of_clinic = frame[(frame.column == "clinic") & (frame.metric == "recall[referable]")]
    assert dict(zip(of_clinic.group, of_clinic.value, strict=True)) == pytest.approx(values)
    assert of_clinic.low.notna().all()


def test_files_and_copies_keep_groups(tmp_path: Path) -> None:
    save_concern(CONCERN, tmp_path / "grades.yaml")
    loaded = load_concern(tmp_path / "grades.yaml")
    assert loaded == CONCERN == replace(CONCERN, factor=CONCERN.factor)
    assert loaded.class_groups == (("referable", (2, 3, 4)), ("worst", (4,)))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"mild": [1, 2]}, "must differ from classes"),
        ({"samples": [1]}, "must differ from classes, coarse answers, samples and decided"),
        ({"a]": [1]}, "without ]"),
        ({"all": GRADES}, "must leave out a class"),
        ({"some": []}, "must be a list of classes"),
        ({"some": ["awful"]}, "must be one of the classes"),
        ({"some": [7]}, "an index from 0 to 4"),
        (["referable"], "must be a mapping"),
    ],
)
def test_groups_that_break_rules_are_refused(groups: Any, message: str) -> None:
    with pytest.raises(ConcernError, match=message):
        ConcernSpec(GRADES, class_groups=groups)
