"""Check the outcomes of classes and groups of classes: counted by sets, and against scikit-learn and scipy."""

import pytest
import torch
from sklearn.metrics import accuracy_score, confusion_matrix, precision_score
from torch import Tensor

from mpcs_torch import ConcernSpec, evaluate
from mpcs_torch.evaluation.classifier_scores import cluster_plural
from mpcs_torch.evaluation.outcomes import AT_RISK, EVERY
from mpcs_torch.functional import clopper_pearson

GRADES = ["none", "mild", "severe", "worst"]
SPEC = ConcernSpec(
    GRADES,
    weights=[[0, 1, 2, 2], [1, 0, 1, 2], [9, 5, 0, 1], [9, 9, 1, 0]],
    dangerous=5,
    refer=1,
    answers={"severe or worst": 0.5, "none or mild": 0.2},
    class_groups={"bad": ["severe", "worst"], "treated": ["mild", "severe", "worst"]},
)
STANDS_FOR = {0: {0}, 1: {1}, 2: {2}, 3: {3}, 4: {2, 3}, 5: {0, 1}, -1: set[int]()}
PATIENTS = [f"p{row // 3}" for row in range(600)]
PAIRS = [["severe", "none"], ["worst", "mild"]]


def drawn() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(4, (600,), generator=generator)
    other = torch.randint(-1, 6, (600,), generator=generator)
    return torch.where(torch.rand(600, generator=generator) < 0.5, target, other), target


DECISIONS, TARGET = drawn()
ROWS = list(zip(DECISIONS.tolist(), TARGET.tolist(), PATIENTS, strict=True))


def by_sets(members: set[int]) -> list[list[str]]:
    """Return the patients of the rows that count in each number of the outcomes, one entry a row."""
    dangerous = {(true, other) for true in (2, 3) for other in (0, 1)}
    counted = list[list[str]]()
    for is_counted in (
        lambda stands, true: true in members,
        lambda stands, true: true in members and stands and stands <= members,
        lambda stands, true: stands and stands <= members,
        lambda stands, true: true in members and not stands,
        lambda stands, true: true in members and stands and not stands & members,
        lambda stands, true: (
            true in members
            and true not in stands
            and any((true, other) in dangerous for other in stands)
        ),
    ):
        counted.append(
            [
                patient
                for decision, true, patient in ROWS
                if is_counted(STANDS_FOR[decision], true)
            ]
        )
    return counted


@pytest.mark.parametrize(
    ("name", "members"),
    [
        *((name, {label}) for label, name in enumerate(GRADES)),
        ("bad", {2, 3}),
        ("treated", {1, 2, 3}),
        (AT_RISK, {2, 3}),
    ],
)
def test_outcomes_and_clusters_are_those_of_counting_sets(
    name: str, members: set[int]
) -> None:
    scores = evaluate(DECISIONS, TARGET, concern=SPEC, clusters=PATIENTS).first
    expected = by_sets(members)
    assert [each.item() for each in scores.outcomes[name]] == [
        len(patients) for patients in expected
    ]
    assert [each.item() for each in scores.clusters[name]] == [
        len({*patients}) for patients in expected
    ]
    assert all(expected[:5]), "each number is tested"


def test_all_rows_are_right_or_missed_or_referred() -> None:
    every = evaluate(DECISIONS, TARGET, concern=SPEC).first.outcomes[EVERY]
    right = sum(true in STANDS_FOR[decision] for decision, true, _ in ROWS)
    assert (every.true.item(), every.right.item()) == (600, right)
    assert every.right + every.missed + every.referred == 600


def test_rates_of_classes_have_the_intervals_of_scipy_and_the_values_of_scikit_learn() -> (
    None
):
    decisions = torch.where(DECISIONS > 3, TARGET, DECISIONS)
    result, is_decided = evaluate(decisions, TARGET, concern=SPEC), decisions >= 0
    rows = TARGET[is_decided], decisions[is_decided]
    precision = [result.value(f"precision[{name}]") for name in GRADES]
    assert precision == pytest.approx([*precision_score(*rows, average=None)])
    assert result.value("selective_accuracy") == pytest.approx(accuracy_score(*rows))
    of_severe = decisions[TARGET == 2]
    for name, is_counted in (
        ("referral_rate[severe]", of_severe < 0),
        ("dangerous_rate[severe]", (of_severe == 0) | (of_severe == 1)),
        ("coverage[severe]", of_severe >= 0),
    ):
        counts = int(is_counted.sum()), len(of_severe)
        assert result.value(name) == pytest.approx(counts[0] / counts[1])
        assert result.interval(name) == pytest.approx(clopper_pearson(*counts))


def test_the_confusion_matrix_has_coarse_answers_and_referrals_in_the_last_columns() -> (
    None
):
    scores = evaluate(DECISIONS, TARGET, concern=SPEC).first
    assert scores.decision_names == [*GRADES, "severe or worst", "none or mild", "referred"]
    columns = torch.where(DECISIONS < 0, 6, DECISIONS)
    expected = confusion_matrix(TARGET, columns, labels=range(7))[:4]
    assert scores.confusion is not None
    assert scores.confusion.tolist() == expected.tolist()


def test_of_many_classes_outcomes_are_those_of_a_few_with_the_same_rows() -> None:
    decisions = torch.where(DECISIONS > 3, TARGET, DECISIONS)
    few, many = [
        evaluate(decisions, TARGET, concern=ConcernSpec(names, dangerous=PAIRS)).first
        for names in (GRADES, [*GRADES, *(f"unused {n}" for n in range(40))])
    ]
    for name in GRADES:
        assert torch.stack([*few.outcomes[name]]).equal(torch.stack([*many.outcomes[name]]))
        one, other = few.class_intervals[name], many.class_intervals[name]
        assert one["precision"] == other["precision"]


def test_work_is_told_by_patients_and_by_rows() -> None:
    scores = evaluate(DECISIONS, TARGET, concern=SPEC, clusters=PATIENTS).first
    by_patient, by_row = scores.remarks_of_referrals()
    referred = [(true, patient) for decision, true, patient in ROWS if decision < 0]
    rows, at_risk = len(referred), sum(true > 1 for true, _ in referred)
    shares = f"{1000 * rows / 600:.0f} are referred; {1000 * at_risk / 600:.0f} of these are of a class"
    assert by_row.startswith(f"Of 1 000 rows, {shares}")
    assert by_row.endswith(f"({rows} and {at_risk} of 600 here).")
    assert f"({len({patient for _, patient in referred})} and " in by_patient
    assert evaluate(TARGET, TARGET, concern=SPEC).first.remarks_of_referrals() == []


def test_rules_are_compared_by_what_they_miss_not_by_recall() -> None:
    better = torch.where(torch.arange(600) % 4 > 0, TARGET, DECISIONS)
    compared = evaluate({"A": DECISIONS, "B": better}, TARGET, concern=SPEC).comparisons
    by_measure = {row.measure: row.better for row in compared}
    assert by_measure["error_rate[bad]"] == "B"
    assert not any("recall" in measure for measure in by_measure)


@pytest.mark.parametrize(
    ("column", "plural"),
    [
        ("patient", "patients"),
        ("patient_id", "patients"),
        ("family", "families"),
        ("x_1", "clusters (x_1)"),
    ],
)
def test_clusters_are_called_by_the_plural_of_their_column(
    column: str, plural: str
) -> None:
    assert cluster_plural(column) == plural


@pytest.mark.parametrize(("classes", "named"), [(4, True), (10, True), (11, False)])
def test_at_most_ten_classes_are_counted_by_name(classes: int, named: bool) -> None:
    target = torch.arange(100) % 3
    scores = evaluate(target, target, class_names=classes, metrics=["accuracy"]).first
    counts = [34, 33, 33, *[0] * (classes - 3)]
    by_name = ", ".join(f"{name}: {count}" for name, count in enumerate(counts))
    of_classes = by_name if named else "0 to 34 rows each"
    assert scores.headline() == (
        f"100 rows, {classes} classes ({of_classes}); always 0 would be right in 34 %"
    )
    weighted = evaluate(
        target, target, class_names=classes, metrics=["accuracy"], weights=1 + target
    ).first
    names = ", ".join(map(str, range(min(classes, 10))))
    more = "" if named else ", ..."
    assert weighted.headline() == f"100 rows, {classes} classes: {names}{more}"


@pytest.mark.parametrize(
    ("decisions", "named"),
    [
        ([0, 0, 0, 0, 0, 0, 0], ""),
        ([0, 0, 0, 0, 0, 0, 2], "c: 1"),
        ([0, 2, 2, 3, 1, 1, 1], "b: 3, c: 2, d: 1"),
        ([4, 2, 2, 3, 1, 1, 1], "b: 3, c: 2, d: 1, ..."),
        ([4, 3, 3, 2, 2, 1, 1], "b: 2, c: 2, d: 2, ..."),
    ],
)
def test_the_three_most_frequent_wrong_decisions_of_a_class_are_named(
    decisions: list[int], named: str
) -> None:
    preds = torch.tensor([*decisions, 1, 2, 3, 4])
    target = torch.tensor([*[0] * len(decisions), 1, 2, 3, 4])
    scores = evaluate(preds, target, class_names=list("abcde"), metrics=["accuracy"]).first
    table = scores.class_table()
    assert table is not None
    place = [*table.header].index("wrongly decided as")
    assert [row[place] for row in table.rows] == [named, "", "", "", ""]
