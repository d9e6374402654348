"""Check the intervals of crossed clusters, such as patients and readers."""

import pytest
import torch
from torch import Tensor

from mpcs_torch.evaluation import evaluate
from tests.evaluation.alike import assert_same_numbers
from tests.refused import Refused

METRICS = ["accuracy", "cross_entropy", "macro_recall"]


def scores(
    patients: int, readers: int, *, seed: int, spread: float = 1.0
) -> tuple[dict[str, Tensor], Tensor, dict[str, list[int]]]:
    """Return the probabilities of two models for each patient and reader, the labels, and both columns."""
    generator = torch.Generator().manual_seed(seed)
    patient = torch.arange(patients).repeat_interleave(readers)
    reader = torch.arange(readers).repeat(patients)
    target = (patient % 3 == 0).long()
    shared = 1 + spread * torch.randn(readers, generator=generator)[reader]
    models = {}
    for name in ("first", "second"):
        right = (
            shared
            + torch.randn(patients, generator=generator)[patient]
            + torch.randn(len(patient), generator=generator)
        )
        positive = torch.where(target == 1, right, -right).sigmoid().double()
        models[name] = torch.stack([1 - positive, positive], dim=1)
    return models, target, {"patient": patient.tolist(), "reader": reader.tolist()}


@pytest.mark.parametrize("second", ["alone", "same"])
def test_a_column_that_adds_nothing_changes_no_interval(second: str) -> None:
    models, target, columns = scores(40, 12, seed=0)
    patients = columns["patient"]
    further = list(range(len(target))) if second == "alone" else patients
    plain = evaluate(models, target, clusters=patients, metrics=METRICS)
    crossed = evaluate(
        models, target, clusters={"patient": patients, "other": further}, metrics=METRICS
    )
    assert_same_numbers(crossed, plain, near=1e-6)
    for one, other in zip(crossed.comparisons, plain.comparisons, strict=True):
        assert (one.paired.p_value <= 0.05) == (other.paired.p_value <= 0.05)


def test_both_columns_widen_intervals_as_squares() -> None:
    models, target, columns = scores(60, 15, seed=1)
    by = {
        name: evaluate(models["first"], target, clusters=rows, metrics=["macro_recall"])
        for name, rows in columns.items()
    }
    rows = evaluate(models["first"], target, metrics=["macro_recall"])
    crossed = evaluate(models["first"], target, clusters=columns, metrics=["macro_recall"])
    value, (low, high) = crossed.value("macro_recall"), crossed.interval("macro_recall")
    below = [
        value - each.interval("macro_recall")[0]
        for each in (by["patient"], by["reader"], rows)
    ]
    assert value - low == pytest.approx(
        (below[0] ** 2 + below[1] ** 2 - below[2] ** 2) ** 0.5
    )
    assert 0 <= low < value < high <= 1
    assert "patient and reader are crossed" in crossed.notes[0]


def test_groups_and_models_keep_their_places() -> None:
    models, target, columns = scores(60, 15, seed=2)
    site = ["north" if patient % 2 else "south" for patient in columns["patient"]]
    crossed = evaluate(
        models, target, clusters=columns, groups={"site": site}, metrics=METRICS
    )
    plain = evaluate(
        models, target, clusters=columns["patient"], groups={"site": site}, metrics=METRICS
    )
    for model in models:
        of_site = crossed.interval("macro_recall", model, ("site", "north"))
        by_patient = plain.interval("macro_recall", model, ("site", "north"))
        assert of_site[0] < by_patient[0] < by_patient[1] < of_site[1]
    assert [row.measure for row in crossed.comparisons] == [
        row.measure for row in plain.comparisons
    ]


@pytest.mark.slow
def test_intervals_hold_the_truth_where_those_by_patient_do_not() -> None:
    hits = dict.fromkeys(("crossed", "patient"), 0)
    for seed in range(40):
        models, target, columns = scores(60, 14, seed=100 + seed)
        truth = 0.7181  # P(N(1, 3) > 0)
        for name, clusters in (("crossed", columns), ("patient", columns["patient"])):
            low, high = evaluate(
                models["first"], target, clusters=clusters, metrics=["macro_recall"]
            ).interval("macro_recall")
            hits[name] += low <= truth <= high
    assert hits["crossed"] >= 34  # 95 % of 40 are 38; fewer than 34 have probability 0.0004
    assert hits["patient"] < hits["crossed"]


def test_one_or_three_columns_are_refused() -> None:
    models, target, columns = scores(5, 4, seed=0)
    with Refused("two_columns_of_clusters", "clusters"):
        evaluate(models["first"], target, clusters={"patient": columns["patient"]})


def test_crossed_clusters_take_units_and_frequencies() -> None:
    models, target, columns = scores(40, 12, seed=3)
    plain = evaluate(models, target, clusters=columns, metrics=METRICS)
    united = evaluate(
        {name: each.repeat(2, 1) for name, each in models.items()},
        target.repeat(2),
        clusters={name: rows * 2 for name, rows in columns.items()},
        metrics=METRICS,
        unit=list(zip(*columns.values(), strict=True)) * 2,
    )
    assert_same_numbers(united, plain)
    twice = [2] * len(target)
    counted = evaluate(models, target, clusters=columns, metrics=METRICS, frequencies=twice)
    # One more row that is as bad as can be is one of twice as many.
    assert_same_numbers(counted, plain, near=0.15)


def test_a_metric_that_one_column_cannot_compare_is_named() -> None:
    # An interval needs at least 10 clusters.
    models, target, columns = scores(40, 5, seed=0)
    found = evaluate(
        models, target, clusters=columns, metrics=["quadratic_weighted_kappa", "accuracy"]
    )
    assert not found.comparisons
    assert [each.by.metric for each in found.without] == [
        "quadratic_weighted_kappa",
        "accuracy",
    ]
    assert {each.reason.code for each in found.without} == {"few_units"}
    assert [note for note in found.notes if note.startswith("No difference")] == [
        *map(str, found.without)
    ]
