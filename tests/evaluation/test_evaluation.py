"""Evaluating tensors and streams: what a user asks for, what merges, and what is refused."""

import json
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import torch

from mpcs_torch import ConcernRange, ConcernSpec, Evaluation, evaluate
from mpcs_torch.concern.spec import about_dangerous
from mpcs_torch.evaluation import model_sums, unit_sums
from mpcs_torch.evaluation.reasons import Reason
from mpcs_torch.evaluation.result import leading
from tests.evaluation.alike import assert_same_numbers
from tests.metrics.batches import random_batch
from tests.refused import Refused

LOGITS, TARGET = random_batch(240, seed=5)
FIRST = LOGITS.double().softmax(1)
SECOND = (LOGITS.double() + 1.5 * torch.nn.functional.one_hot(TARGET, 4)).softmax(1)
MODELS = {"A": FIRST, "B": SECOND}
SITES, PATIENTS = [f"s{row % 3}" for row in range(240)], torch.arange(240) // 8
CONCERN = ConcernSpec(
    ["a", "b", "c", "d"], releases=[["a", "b"], ["b", "c", "d"]], factor=0.25
)


def test_a_frame_holds_comparisons_with_their_p_values() -> None:
    result = evaluate(MODELS, TARGET, concern=CONCERN, groups={"site": SITES})
    assert len(result.comparisons) == 4
    json.dumps(result.to_dict())
    frame = result.to_frame()
    differences = frame[frame.column == "difference"]
    assert list(differences.value) == [row.paired.difference for row in result.comparisons]
    assert list(differences.p_value) == [row.paired.p_value for row in result.comparisons]
    assert list(differences.adjusted_p_value) == [
        row.adjusted_p_value for row in result.comparisons
    ]


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({"metric": "f1"}, Refused("measured", "metric")),
        ({"metric": "mpcs", "model": "C"}, Refused("one_of", "model")),
        ({"metric": "mpcs", "model": None}, Refused("one_of", "model")),
        ({"metric": "mpcs", "group": ("site", "s9")}, Refused("one_of", "group")),
    ],
)
def test_what_was_not_measured_is_refused(asked: dict[str, Any], refusal: Refused) -> None:
    result = evaluate(MODELS, TARGET, metrics=["mpcs"], groups={"site": SITES})
    with refusal:
        result.value(**{"model": "A", **asked})


def test_units_that_are_folded_tell_nearly_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(6000, 4, generator=generator, dtype=torch.float64)
    target = torch.randint(4, (6000,), generator=generator)
    preds = {
        "A": logits.softmax(1),
        "B": (logits + 0.1 * torch.nn.functional.one_hot(target, 4)).softmax(1),
    }
    groups = {"site": [f"s{row % 2}" for row in range(6000)]}
    every = evaluate(preds, target, groups=groups)
    for module in (unit_sums, model_sums):
        monkeypatch.setattr(module, "BUDGET", 2**17)
    monkeypatch.setattr(unit_sums.UnitSums.__init__, "__defaults__", (2**17,))
    monkeypatch.setattr(model_sums, "BUDGET_OF_GROUPS", 2**16)
    monkeypatch.setattr(model_sums, "PENDING", 4000)
    evaluation = Evaluation(4)
    for rows in torch.arange(6000).split(700):
        part = {"site": [groups["site"][row] for row in rows.tolist()]}
        evaluation.update(
            {name: own[rows] for name, own in preds.items()}, target[rows], groups=part
        )
    folded = evaluation.result()
    assert evaluation._models["A"][0].tables[""].bits is not None
    assert evaluation._models["A"][0].tables["site"].bits is not None
    assert_same_numbers(every, folded, near=0.4)


def test_arrays_names_and_settings_are_taken() -> None:
    names = list("wxyz")
    expected = evaluate(FIRST, TARGET).first.values
    for target in (TARGET.numpy(), [names[label] for label in TARGET.tolist()]):
        found = evaluate(FIRST.numpy(), target, class_names=names)
        assert list(found.first.per_class()) == names
        assert found.first.values == pytest.approx(expected)
    soft = evaluate(FIRST, torch.rand(240, 4), intervals=False)
    assert not soft.first.intervals
    of_two = evaluate(FIRST, TARGET, metrics=["mpcs"], settings={"k": 2})
    assert of_two.value("mpcs") != expected["mpcs"]


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"preds": LOGITS}, Refused("probabilities", "preds")),
        ({"preds": FIRST[:, :1]}, Refused("at_least", "num_classes", minimum=2)),
        ({"preds": FIRST[:5]}, Refused("shape", "target")),
        ({"target": TARGET + 1}, Refused("class_indices", "target", last=3)),
        ({"groups": {"site": SITES[:9]}}, Refused("name_for_each", "site", 9, rows=240)),
        ({"clusters": [1, 2]}, Refused("name_for_each", "clusters", 2, rows=240)),
        ({"metrics": ["acuracy"]}, Refused("unknown_metric", "metric")),
        ({"concern": ConcernSpec(["a", "b"])}, Refused("predicted_classes", "concern")),
        ({"settings": {"k": 9}}, Refused("rank", "k")),
        ({"settings": {"kk": 3}}, Refused("known_setting", "settings", "kk")),
        ({"metrics": "mpcs"}, Refused("list_of_metrics", "metrics", "mpcs")),
        ({"metrics": []}, Refused("list_of_metrics", "metrics")),
        ({"metrics": [ConcernSpec]}, Refused("kind_of_metric", "metrics")),
        ({"concern": "lights.yaml"}, Refused("spec", "concern", "lights.yaml")),
        ({"preds": {}}, Refused("not_empty", "preds")),
        ({"groups": SITES}, Refused("groups_by_column", "groups")),
        ({"groups": {"": SITES}}, Refused("groups_by_column", "groups")),
        (
            {"groups": {"site": [None, *SITES[1:]]}},
            Refused("named", "site", sample=0),
        ),
        (
            {"clusters": [float("nan")] * 240},
            Refused("named", "clusters", float("nan"), sample=0),
        ),
        ({"clusters": PATIENTS.unsqueeze(1)}, Refused("one_dimension", "clusters")),
        ({"target": ["a"] * 240}, Refused("numbered_classes", "target", "a")),
        ({"class_names": ["a", "a", "b", "c"]}, Refused("different_names", "class_names")),
        ({"class_names": "abcd"}, Refused("list_of_names", "class_names")),
    ],
)
def test_bad_input_is_refused(given: dict[str, Any], refusal: Refused) -> None:
    with refusal:
        evaluate(**{"preds": FIRST, "target": TARGET, **given})


def of_batches(*batches: Any, **columns: Any) -> Evaluation:
    evaluation = Evaluation(4)
    for preds, target in batches:
        evaluation.update(preds, target, **columns)
    return evaluation


COSTS, DEARER = (ConcernSpec(4, releases=[[0, 1]], factor=factor) for factor in (0.1, 0.9))
ROWS = (FIRST, TARGET)


@pytest.mark.parametrize(
    ("one", "other", "refusal"),
    [
        (
            of_batches(ROWS),
            of_batches(ROWS, clusters=PATIENTS),
            Refused("clusters_as_here", "other"),
        ),
        (
            of_batches(ROWS),
            of_batches(ROWS, groups={"site": SITES}),
            Refused("same_groups", "other"),
        ),
        (
            of_batches(ROWS),
            Evaluation(4, metrics=["mpcs"]),
            Refused("same_evaluation", "other"),
        ),
        (
            Evaluation(4, concern=ConcernSpec(4)),
            Evaluation(4),
            Refused("same_evaluation", "other"),
        ),
        (
            Evaluation(4, concern=ConcernRange([COSTS], [DEARER])),
            Evaluation(4, concern=ConcernRange([COSTS], [COSTS])),
            Refused("same_evaluation", "other"),
        ),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(
    one: Evaluation, other: Evaluation, refusal: Refused
) -> None:
    with refusal:
        one.merge(other)


def test_batches_that_do_not_belong_together_are_refused() -> None:
    with Refused("some_row", "result"):
        Evaluation(4).result()
    for column in ({"groups": {"site": SITES}}, {"clusters": PATIENTS}):
        with Refused("same_columns", "groups and clusters"):
            of_batches(ROWS).update(*ROWS, **column)
    several = ({"A": FIRST}, TARGET), ({"B": FIRST[:100]}, TARGET[:100])
    relabelled = ({"A": FIRST}, TARGET), ({"B": FIRST}, (TARGET + 1) % 4)
    for batches in (several, relabelled):
        with Refused("same_rows", "models"):
            of_batches(*batches).result()


@pytest.mark.parametrize(("metric", "is_told"), [("dangerous_rate", True), ("mcc", False)])
def test_dangerous_errors_are_named_if_a_metric_counts_them(
    metric: str, is_told: bool
) -> None:
    result = evaluate(FIRST, TARGET, concern=CONCERN, metrics=[metric])
    assert (about_dangerous(CONCERN) in result.notes) == is_told


@pytest.mark.parametrize(
    ("measures", "kept"),
    [("a" * 7 + "b" * 5 + "c", 12), ("a" * 7 + "b" * 6 + "c", 7), ("a" * 13 + "b", 13)],
)
def test_at_most_12_comparisons_are_shown_with_all_of_each_metric(
    measures: str, kept: int
) -> None:
    rows: Any = [SimpleNamespace(measure=measure) for measure in measures]
    shown, others = leading(rows)
    assert shown == rows[:kept]
    assert others == sorted({*measures[kept:]})


def test_a_single_group_has_no_worst_value_and_no_spread() -> None:
    result = evaluate(
        FIRST, TARGET, groups={"site": ["s"] * len(TARGET)}, metrics=["accuracy"]
    )
    assert result.groups[0].summaries() == {}
    assert [row[0] for row in result.groups[0].table().rows] == ["s", "pooled"]
    assert "worst" not in result.to_dict()["groups"][0]


def test_models_of_merged_parts_need_identifiers() -> None:
    generator = torch.Generator().manual_seed(3)
    target = torch.arange(60) % 3
    parts = [torch.randn(60, 3, generator=generator).softmax(1) for _ in range(2)]

    def merged(name: str, order: list[int], *, are_named: bool = False) -> Evaluation:
        whole = Evaluation(3, metrics=["accuracy"])
        for part in order:
            one = Evaluation(3, metrics=["accuracy"])
            clusters = [f"{part} {row}" for row in range(60)] if are_named else None
            one.update({name: parts[part]}, target, clusters=clusters)
            whole.merge(one)
        return whole

    with Refused("no_further_models", "other", ["B"]):
        merged("A", [0, 1]).merge(merged("B", [1, 0]))
    named = merged("A", [0, 1], are_named=True)
    named.merge(merged("B", [1, 0], are_named=True))
    assert named.result().comparisons[0].paired.difference == 0
    # Models of the same rows, one after another.
    of_part = merged("A", [0])
    for name in "BC":
        of_part.merge(merged(name, [0]))
    assert [*of_part.result().models] == ["A", "B", "C"]


def test_columns_of_a_data_frame_are_classes_by_name() -> None:
    concern = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"]])
    names = list(concern.classes)
    target = torch.arange(3).repeat(40)
    probs = torch.randn(120, 3, generator=torch.Generator().manual_seed(0)).softmax(1)
    frame = pd.DataFrame(probs.numpy(), columns=names)[["green", "red", "yellow"]]
    labels = [names[label] for label in target.tolist()]

    def values(*rows: Any, **arguments: Any) -> Any:
        found = evaluate(*rows, **arguments).first.values
        return pytest.approx(dict(found), nan_ok=True)

    costed = values(probs, target, concern=concern, costs=9 * probs)
    assert evaluate(frame, labels, concern=concern, costs=9 * frame).first.values == costed
    for further in ({}, {"class_names": names}, {"class_names": [*frame.columns]}):
        found = evaluate(frame, labels, metrics=["accuracy"], **further)
        assert found.first.values == values(probs, target, metrics=["accuracy"])
    plain = evaluate(pd.DataFrame(probs.numpy()), pd.Series(target.numpy()))
    assert plain.first.values == values(probs, target)
    # Names that are neither texts nor numbers are no classes: columns count by place.
    mixed = pd.DataFrame(probs.numpy(), columns=["a", ("b", 1), ("c", 2)])
    assert evaluate(mixed, target).first.values == values(probs, target)
    soft = evaluate(frame, frame[::-1], class_names=names).first.values
    assert soft == values(probs, probs.flip(0), class_names=names)
    with Refused("column_for_each_class", "preds"):
        evaluate(frame.rename(columns={"red": "RED"}), labels, concern=concern)
    with Refused("numbered_classes", "target", "red"):
        evaluate(probs, labels)


def test_rows_of_one_class_say_nothing_about_an_average_over_classes() -> None:
    scores = evaluate(
        torch.tensor([[0.8, 0.1, 0.1]]).repeat(20, 1), torch.zeros(20, dtype=torch.int64)
    ).first
    assert scores.without_interval["macro_f1"] == Reason("absent_class")


def test_an_error_names_the_model_whose_predictions_are_invalid() -> None:
    probs, target = torch.eye(3).repeat(10, 1), torch.arange(3).repeat(10)
    with Refused("floating", "preds['b']"):
        evaluate({"a": probs, "b": target}, target)
    with Refused("shape", "target"):
        evaluate({"a": probs, "b": probs[:20]}, target)
    with Refused("unknown_metric", "metric", "recall"):
        evaluate(probs, target, metrics=["recall"])
