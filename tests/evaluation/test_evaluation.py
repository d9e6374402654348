"""Evaluating tensors and streams: what a user asks for, what merges, and what is refused."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from mpcs_torch import ConcernRange, ConcernSpec, Evaluation, evaluate
from mpcs_torch.concern.spec import about_dangerous
from mpcs_torch.evaluation import model_sums, unit_sums
from mpcs_torch.evaluation.result import leading
from tests.evaluation.alike import assert_same_numbers
from tests.evaluation.draws import rows_of
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


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({"metric": "f1"}, Refused("measured", "metric")),
        ({"metric": "mpcs", "model": "C"}, Refused("one_of", "model")),
        ({"metric": "mpcs", "model": None}, Refused("one_of", "model")),
        ({"metric": "mpcs", "group": ("site", "s9")}, Refused("one_of", "group")),
        ({"metric": "mpcs", "group": ("site", "s1", "s1")}, Refused("one_of", "group")),
        ({"metric": "mpcs", "group": "s1"}, Refused("one_of", "group")),
    ],
)
def test_what_was_not_measured_is_refused(asked: dict[str, Any], refusal: Refused) -> None:
    result = evaluate(MODELS, TARGET, metrics=["mpcs"], groups={"site": SITES})
    with refusal:
        result.value(**{"model": "A", **asked})


def test_units_that_are_folded_tell_nearly_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target, *probs = rows_of(6000, [0.25] * 4, skills=(0.0, 0.1))
    sites = np.array(["s0", "s1"] * 3000)
    every = evaluate(dict(zip("AB", probs, strict=True)), target, groups={"site": sites})
    for module in (unit_sums, model_sums):
        monkeypatch.setattr(module, "BUDGET", 2**17)
    monkeypatch.setattr(unit_sums.UnitSums.__init__, "__defaults__", (2**17,))
    monkeypatch.setattr(model_sums, "BUDGET_OF_GROUPS", 2**16)
    monkeypatch.setattr(model_sums, "PENDING", 4000)
    evaluation = Evaluation(4)
    for rows in torch.arange(6000).split(700):
        part = {name: each[rows] for name, each in zip("AB", probs, strict=True)}
        evaluation.update(part, target[rows], groups={"site": sites[rows]})
    folded = evaluation.result()
    tables = evaluation._models["A"][0].tables
    assert None not in (tables[""].bits, tables["site"].bits)
    assert_same_numbers(every, folded, near=0.4)


def test_arrays_names_and_settings_are_taken() -> None:
    names = list("wxyz")
    expected = evaluate(FIRST, TARGET).first.values
    for target in (TARGET.numpy(), [names[label] for label in TARGET]):
        found = evaluate(FIRST.numpy(), target, class_names=names).first
        assert [*found.per_class()] == names
        assert found.values == pytest.approx(expected)
    assert not evaluate(FIRST, SECOND, intervals=False).first.intervals
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


COSTS, DEARER = [ConcernSpec(4, releases=[[0, 1]], factor=factor) for factor in (0.1, 0.9)]
ROWS = (FIRST, TARGET)


@pytest.mark.parametrize(
    ("one", "other", "code"),
    [
        (of_batches(ROWS), of_batches(ROWS, clusters=PATIENTS), "clusters_as_here"),
        (of_batches(ROWS), of_batches(ROWS, groups={"site": SITES}), "same_groups"),
        (of_batches(ROWS), Evaluation(4, metrics=["mpcs"]), "same_evaluation"),
        (Evaluation(4, concern=ConcernSpec(4)), Evaluation(4), "same_evaluation"),
        (
            Evaluation(4, concern=ConcernRange([COSTS], [DEARER])),
            Evaluation(4, concern=ConcernRange([COSTS], [COSTS])),
            "same_evaluation",
        ),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(
    one: Evaluation, other: Evaluation, code: str
) -> None:
    with Refused(code, "other"):
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
    groups = {"site": ["s"] * len(TARGET)}
    result = evaluate(FIRST, TARGET, groups=groups, metrics=["accuracy"])
    [of_site] = result.groups
    assert of_site.summaries() == {}
    assert [row[0] for row in of_site.table().rows] == ["s", "pooled"]
    assert "worst" not in result.to_dict()["groups"][0]


@pytest.mark.parametrize("number", [4, 5])
def test_a_note_says_that_groups_are_many(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpcs_torch.evaluation.evaluation.MANY_GROUPS", 4)
    sites = [str(row) for row in range(number)]
    rows = FIRST[:number], TARGET[:number]
    result = evaluate(*rows, groups={"site": sites}, intervals=False)
    is_said = any("site" in note and str(number) in note for note in result.notes)
    assert is_said == (number > 4)


def test_models_of_merged_parts_need_identifiers() -> None:
    def merged(name: str, order: list[int], *, are_named: bool = False) -> Evaluation:
        whole = Evaluation(4, metrics=["accuracy"])
        for part in order:
            one = Evaluation(4, metrics=["accuracy"])
            clusters = [f"{part} {row}" for row in range(240)] if are_named else None
            one.update({name: (FIRST, SECOND)[part]}, TARGET, clusters=clusters)
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
    names = ["red", "yellow", "green"]
    concern = ConcernSpec(names, releases=[["red", "yellow"]])
    target, probs, _ = rows_of(120, [1.0] * 3)
    frame = pd.DataFrame(probs.numpy(), columns=names)[["green", "red", "yellow"]]
    labels = [names[label] for label in target]

    def values(*rows: Any, **arguments: Any) -> Any:
        return pytest.approx(dict(evaluate(*rows, **arguments).first.values), nan_ok=True)

    # Names that are neither texts nor numbers are no classes: columns count by place.
    mixed = pd.DataFrame(probs.numpy(), columns=["a", ("b", 1), ("c", 2)])
    soft = {"class_names": names}
    by_name: list[tuple[Any, Any, dict[str, Any], Any]] = [
        (
            frame,
            labels,
            {"concern": concern, "costs": 9 * frame},
            values(probs, target, concern=concern, costs=9 * probs),
        ),
        (frame, labels, {}, values(probs, target)),
        (frame, labels, {"class_names": names}, values(probs, target)),
        (frame, labels, {"class_names": [*frame.columns]}, values(probs, target)),
        (pd.DataFrame(probs.numpy()), pd.Series(target.numpy()), {}, values(probs, target)),
        (mixed, target, {}, values(probs, target)),
        (frame, frame[::-1], soft, values(probs, probs.flip(0), **soft)),
    ]
    for preds, true, arguments, expected in by_name:
        assert evaluate(preds, true, **arguments).first.values == expected
    with Refused("column_for_each_class", "preds"):
        evaluate(frame.rename(columns={"red": "RED"}), labels, concern=concern)
    with Refused("numbered_classes", "target", labels[0]):
        evaluate(probs, labels)
    with Refused("one_of", "target", labels[0], choices=["0", "1", "blue"]):
        evaluate(probs[:, :3], labels, class_names=["0", "1", "blue"])


def test_an_error_names_the_model_whose_predictions_are_invalid() -> None:
    with Refused("floating", "preds['b']"):
        evaluate({"a": FIRST, "b": TARGET}, TARGET)
    with Refused("shape", "target"):
        evaluate({"a": FIRST, "b": FIRST[:20]}, TARGET)


@pytest.mark.parametrize(("free", "is_measured"), [(0.0, False), (0.1, True)])
def test_mpcs_is_left_out_where_any_error_costs_nothing(
    free: float, is_measured: bool
) -> None:
    costs = [[0, free, 1, 1], [1, 0, 1, 1], [20, 5, 0, 1], [1, 1, 1, 0]]
    concern = ConcernSpec(["a", "b", "c", "d"], weights=costs)
    result = evaluate(MODELS["A"], TARGET, concern=concern)
    assert ("mpcs" in result.first.values) == is_measured


def test_an_evaluation_merges_others_and_not_itself() -> None:
    one = Evaluation(4)
    one.update(MODELS["A"], TARGET)
    for other in (one, [one]):
        with Refused("another_evaluation", "other"):
            one.merge(other)  # type: ignore[arg-type]


def test_a_metric_that_is_not_shown_is_not_remarked_on() -> None:
    one_class = evaluate(torch.eye(3)[torch.zeros(20).long()], torch.zeros(20).long())
    undefined = [*one_class.first.undefined()]
    assert len(undefined) > 1
    [name, other, *_] = undefined
    [remark] = [text for text in one_class.first.remarks([name]) if " is " in text]
    assert name in remark
    assert other not in remark.split(":")[0].split(", ")
    assert one_class.first.remarks([]) == []
