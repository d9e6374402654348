"""Weights of rows and shares of classes: values are those of scikit-learn, and laws tie intervals to repeated rows."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    cohen_kappa_score,
    confusion_matrix,
    f1_score,
    jaccard_score,
    log_loss,
    matthews_corrcoef,
    precision_score,
    recall_score,
    roc_auc_score,
    top_k_accuracy_score,
    zero_one_loss,
)
from torchmetrics.classification import (
    MulticlassAUROC,
    MulticlassCohenKappa,
    MulticlassJaccardIndex,
)

from mpcs_torch import ConcernSpec, Evaluation, WithInterval, evaluate
from mpcs_torch.concern.files import save_concern
from mpcs_torch.evaluation.cautions import independence
from mpcs_torch.evaluation.intervals_and_bounds import End
from mpcs_torch.evaluation.reasons import OPEN_WEIGHTS
from mpcs_torch.evaluation.rows import Rows
from tests.cli.shell import run
from tests.evaluation.alike import assert_alike
from tests.evaluation.draws import rows_of
from tests.refused import Refused
from tests.report.page import Page

TARGET, PROBS, _ = rows_of(300, [0.4, 0.3, 0.3], skills=(1.5, 2))
GENERATOR = torch.Generator().manual_seed(0)
WEIGHTS = torch.rand(300, generator=GENERATOR).double() + 0.1
CONCERN = ConcernSpec(list("abc"), weights=[[0, 1, 1], [1, 0, 1], [20, 2, 0]], dangerous=5)
SITES = ["north" if row % 3 else "south" for row in range(300)]


def measured(**arguments: Any) -> Any:
    return evaluate(**{"preds": PROBS, "target": TARGET, "concern": CONCERN, **arguments})


OF_DECISIONS: dict[str, Callable[..., Any]] = {
    "accuracy": accuracy_score,
    "balanced_accuracy": balanced_accuracy_score,
    "macro_f1": partial(f1_score, average="macro"),
    "weighted_f1": partial(f1_score, average="weighted"),
    "mcc": matthews_corrcoef,
    "quadratic_weighted_kappa": partial(cohen_kappa_score, weights="quadratic"),
    "jaccard": partial(jaccard_score, average="macro"),
}
OF_REFERABLE = {
    "sensitivity[referable]": recall_score,
    "precision[referable]": precision_score,
    "specificity[referable]": partial(recall_score, pos_label=False),
}
OF_SCORES = {"top_k_accuracy": top_k_accuracy_score, "cross_entropy": log_loss}


def by_scikit_learn(rows: Any) -> dict[str, float]:
    """Return the values of some rows, which count as much as they weigh."""
    target, probs, weights = TARGET[rows], PROBS[rows], WEIGHTS[rows]
    decided, is_referable = probs.argmax(1), target > 0
    referable = probs[:, 1:].sum(1)
    values = {
        "auroc[referable]": roc_auc_score(is_referable, referable, sample_weight=weights)
    }
    for functions, true, given in (
        (OF_DECISIONS, target, decided),
        (OF_REFERABLE, is_referable, decided > 0),
        (OF_SCORES, target, probs),
    ):
        for name, function in functions.items():
            values[name] = function(true, given, sample_weight=weights)
    return values


OF_TORCHMETRICS = {"jaccard": MulticlassJaccardIndex(3)}


@pytest.mark.parametrize("clusters", [None, torch.arange(300) // 3])
def test_values_are_those_of_scikit_learn(clusters: Any) -> None:
    expected = by_scikit_learn(slice(None))
    found = measured(
        weights=WEIGHTS,
        concern=replace(CONCERN, class_groups={"referable": ["b", "c"]}),
        metrics={name: OF_TORCHMETRICS.get(name, name) for name in expected},
        clusters=clusters,
        groups={"site": SITES},
    )
    assert found.first.values == pytest.approx(expected, rel=1e-6)
    south = by_scikit_learn(slice(None, None, 3))
    assert found.scores(group=("site", "south")).values == pytest.approx(south, rel=1e-6)
    assert found.first.without_interval == {}
    counts = confusion_matrix(TARGET, PROBS.argmax(1), sample_weight=WEIGHTS)
    torch.testing.assert_close(found.first.confusion, torch.from_numpy(counts))
    assert found.first.rows == 300
    effective = WEIGHTS.sum().square() / WEIGHTS.square().sum()
    assert f"effective sample size is {effective:.0f} rows" in "".join(found.all_notes())


def test_with_interval_gives_weights_to_metrics_of_sums() -> None:
    wrapped = WithInterval(MulticlassCohenKappa(3, weights="quadratic"), prefix="kappa")
    wrapped.update(PROBS, TARGET, sample_weight=WEIGHTS)
    expected = by_scikit_learn(slice(None))["quadratic_weighted_kappa"]
    assert wrapped.compute()["kappa"].item() == pytest.approx(expected)
    with Refused("metric_of_sums", "sample_weight", metric="MulticlassAUROC"):
        WithInterval(MulticlassAUROC(3)).update(PROBS, TARGET, sample_weight=WEIGHTS)
    binned = measured(weights=WEIGHTS, metrics=[MulticlassAUROC(3, thresholds=50)])
    area = roc_auc_score(TARGET, PROBS, multi_class="ovr", sample_weight=WEIGHTS)
    assert binned.value("MulticlassAUROC") == pytest.approx(area, abs=0.005)


def test_functions_of_rows_have_their_weights_and_must_use_them() -> None:
    def off(rows: Rows, *, is_weighted: bool = True) -> Any:
        weights = rows.weights if is_weighted else None
        return zero_one_loss(rows.target, rows.probs.argmax(1), sample_weight=weights)

    is_right = ["right" if right else "wrong" for right in PROBS.argmax(1) == TARGET]
    found = measured(weights=WEIGHTS, metrics={"off": off}, groups={"decision": is_right})
    expected = zero_one_loss(TARGET, PROBS.argmax(1), sample_weight=WEIGHTS)
    assert found.value("off") == pytest.approx(expected)
    # In each of these two groups, weights do not change the value.
    for name, value in (("right", 0), ("wrong", 1)):
        assert found.value("off", group=("decision", name)) == pytest.approx(value)
    with Refused("uses_weights", "a function of weighted rows"):
        measured(weights=WEIGHTS, metrics={"off": partial(off, is_weighted=False)})


@pytest.mark.parametrize("clusters", [None, torch.arange(300) // 3])
def test_areas_keep_their_interval_with_weights_of_1_and_with_annotators_who_agree(
    clusters: Any,
) -> None:
    # Only a few rows are of class c.
    few = torch.where((TARGET == 2) & (torch.arange(300) > 30), 0, TARGET)
    plain, weighted, agreed = [
        measured(metrics=["auroc[c]"], clusters=clusters, **given).interval("auroc[c]")
        for given in (
            {"target": few},
            {"target": few, "weights": torch.full((300,), 2.0)},
            {"target": torch.nn.functional.one_hot(few, 3).double()},
        )
    ]
    assert weighted == agreed == pytest.approx(plain)


def test_shares_of_classes_weight_an_enriched_set_back() -> None:
    shares = {"a": 0.9, "b": 0.08, "c": 0.02}
    found = measured(prevalence=shares)
    recall = [found.value(f"recall[{name}]") * share for name, share in shares.items()]
    assert found.value("accuracy") == pytest.approx(sum(recall))
    assert "effective sample size" in "".join(found.all_notes())
    weighted = measured(prevalence=[*shares.values()], weights=WEIGHTS)
    of_classes = weighted.first.confusion.sum(1) / 300
    assert of_classes.tolist() == pytest.approx([*shares.values()])


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"weights": [1.0]}, Refused("shape", "weights", shape=(300,))),
        (
            {"weights": -WEIGHTS},
            Refused("finite_at_least", "weights", float(-WEIGHTS[0]), sample=0, minimum=0),
        ),
        ({"prevalence": {"a": 1}}, Refused("names_all_classes", "prevalence")),
        (
            {"prevalence": [0.5, 0.5, 0.5]},
            Refused("shares_with_sum_1", "prevalence", number=3),
        ),
        (
            {"prevalence": [0.5, 0.2, 0.3], "target": TARGET.clamp(max=1)},
            Refused("needs_rows_of", "prevalence", absent=["c"]),
        ),
        (
            {"weights": WEIGHTS, "metrics": [MulticlassAUROC(3)]},
            Refused("has_weights", "", metrics="MulticlassAUROC"),
        ),
        ({"weights": torch.zeros(300)}, Refused("some_row", "result")),
        ({"frequencies": [1]}, Refused("shape", "frequencies", shape=(300,))),
        (
            {"frequencies": torch.zeros(300)},
            Refused("whole_at_least", "frequencies", 0.0, sample=0, minimum=1),
        ),
        ({"frequencies": WEIGHTS + 1}, Refused("whole_at_least", "frequencies", minimum=1)),
        (
            {"frequencies": torch.full((300,), 10**6)},
            Refused("sum_at_most", "frequencies", maximum=100000000),
        ),
    ],
)
def test_bad_weights_are_refused(arguments: dict[str, Any], refusal: Refused) -> None:
    with refusal:
        measured(**arguments)
    evaluation = Evaluation(3)
    with Refused("given_for_every_batch", "weights"):
        evaluation.update(PROBS, TARGET, weights=WEIGHTS)


FREQUENCIES = torch.randint(1, 5, (300,), generator=GENERATOR)
REPEATED = torch.arange(300).repeat_interleave(FREQUENCIES)


def test_frequencies_go_with_units_and_shares_of_classes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Rows are repeated in parts of 100 scores, so that there are several parts.
    monkeypatch.setattr("mpcs_torch.evaluation.rows.REPEATED", 100)
    rows = {"preds": PROBS[REPEATED], "target": TARGET[REPEATED]}
    shares = [0.9, 0.08, 0.02]
    found = measured(frequencies=FREQUENCIES, prevalence=shares)
    assert_alike(found.to_dict(), measured(**rows, prevalence=shares).to_dict())
    twice = torch.arange(300).repeat(2)
    units = measured(
        preds=PROBS[twice], target=TARGET[twice], unit=twice, frequencies=FREQUENCIES[twice]
    )
    assert units.notes[-1] == independence("units")
    assert_alike(units.to_dict(), measured(**rows).to_dict())


def test_bounds_of_weighted_rows_need_the_largest_weight_of_any_row() -> None:
    weighted = measured(weights=WEIGHTS, metrics=["accuracy", "macro_f1", "mpcs", "auroc"])
    largest = float(WEIGHTS.max())
    for requirement in ("accuracy > 0.1", "macro_f1 > 0.1", "mpcs < 9", "auroc > 0.1"):
        [without] = weighted.check(requirement)
        assert (without.reason, without.holds) == (OPEN_WEIGHTS, False)
        [near] = weighted.check(requirement, max_weight=largest)
        [far] = weighted.check(requirement, max_weight=3 * largest)
        assert abs(far.bound - far.value) > abs(near.bound - near.value) > 0
        [approximate] = weighted.check(requirement, approximate=True)
        assert approximate.bound in weighted.interval(requirement.split()[0])
    alike = measured(weights=torch.ones(300), metrics=["accuracy"])
    one, twenty, more = [
        alike.check("accuracy > 0.1", max_weight=most)[0].bound for most in (1, 20, 200)
    ]
    # Weights that are all 1 tell nothing of further rows.
    assert one > twenty + 0.05 > more + 0.1
    known = measured(prevalence=[0.2, 0.3, 0.5], metrics=["accuracy"])
    assert known.check("accuracy > 0.1")[0].reason is None
    for lower in (0, 0.9 * largest):
        with Refused("max_weight", "max_weight", lower, heaviest=largest):
            weighted.check("accuracy > 0.1", max_weight=lower)


def test_the_report_of_weighted_rows_counts_weights(tmp_path: Path) -> None:
    path, page = tmp_path / "a.csv", tmp_path / "page.html"
    rows = pd.DataFrame(PROBS.numpy(), columns=list("abc"))
    rows.assign(label=np.array(list("abc"))[TARGET], w=WEIGHTS.numpy()).to_csv(
        path, index=False
    )
    save_concern(CONCERN, tmp_path / "concern.yaml")
    options = ("--concern", tmp_path / "concern.yaml", "--html", page)
    assert run("score", path, "--weight", "w", *options) == 0
    text = " ".join(Page(page).text.split())
    wrong = confusion_matrix(TARGET, PROBS.argmax(1), sample_weight=WEIGHTS)
    of_c, dangerous = wrong[2].sum(), wrong[2, 0]
    low, high = measured(weights=WEIGHTS).first.class_intervals["c"]["recall"]
    share = f"({100 * dangerous / of_c:.3g} %"
    assert f"dangerous errors on {dangerous:.4g} of {of_c:.4g} c {share}" in text
    assert re.search(r"of [\d.]+ weighted rows", text)
    # This is the interval of weighted rows, not Clopper and Pearson's of counts.
    ends = f"[{100 * (1 - high):.3g}, {100 * (1 - low):.3g}]"
    assert f"{100 * (1 - wrong[2, 2] / of_c):.3g} % {ends}" in text
    assert "What referring samples" in text


def rare_and_heavy(**columns: Any) -> Any:
    """Evaluate 300 ill, of whom 30 are missed, and 30 well without a false alarm, who stand for more than 99 %."""
    target = torch.arange(330) < 300
    decided = target & (torch.arange(330) >= 30)
    names = ["well", "ill"]
    return evaluate(decided.long(), target.long(), class_names=names, **columns)


SHARES = {"well": 0.95, "ill": 0.05}


def test_a_further_row_that_is_decided_may_be_of_the_heaviest_class() -> None:
    """A false alarm weighs 190 times a right decision, though none is among the rows decided as ill."""
    found, plain = rare_and_heavy(prevalence=SHARES), rare_and_heavy()
    specificity, _ = found.interval("specificity[ill]")
    precision, _ = found.interval("precision[ill]")
    assert precision < 0.05 * 0.9 / (0.05 * 0.9 + 0.95 * (1 - specificity))
    assert not found.check("precision[ill] > 0.9")[0].holds
    for rate in ("recall[ill]", "specificity[ill]"):  # of rows of one class and weight
        assert found.interval(rate) == pytest.approx(plain.interval(rate), abs=2e-3)


def test_a_further_row_of_a_group_may_be_heavier_than_those_in_it() -> None:
    sites = ["a"] * 300 + ["b"] * 30  # all light rows are at one site
    found = rare_and_heavy(prevalence=SHARES, groups={"site": sites})
    of_light, of_heavy = found.check("accuracy > 0.5")[1:]
    assert (of_light.group, of_heavy.group) == ("site = a", "site = b")
    assert of_light.value == pytest.approx(0.9)
    assert (of_light.holds, of_heavy.holds) == (False, True)


def test_weights_that_differ_within_a_class_may_be_those_of_further_rows_of_another() -> (
    None
):
    weights = torch.ones(330)
    weights[315:] = 25  # no heavy row is ill, by chance
    low, _ = rare_and_heavy(weights=weights).interval("recall[ill]")
    assert low < 270 / (300 + 25)


def test_the_largest_weight_is_that_of_a_row_also_if_rows_are_folded() -> None:
    """Beyond 32 768 rows, several rows are added up to a unit, which weighs more than any of them."""
    target = torch.arange(80_000) % 3
    weights = 1 + 0.5 * (torch.arange(80_000) % 2)
    many = evaluate(torch.eye(3)[target], target, weights=weights, metrics=["accuracy"])
    [outcome] = many.check("accuracy > 0.9", max_weight=1.5)
    assert outcome.holds


@pytest.mark.parametrize("clusters", [None, torch.arange(300) // 3])
def test_a_bound_of_a_group_allows_for_the_heaviest_row_of_another_with_shares_too(
    clusters: torch.Tensor | None,
) -> None:
    """A bound of the group alone knows only its light rows."""
    shares = torch.nn.functional.one_hot(TARGET, 3) * 0.6 + 0.4 / 3
    weights = torch.ones(300, dtype=torch.float64)
    weights[0] = 30
    site = ["a"] * 150 + ["b"] * 150
    arguments: dict[str, Any] = {"metrics": ["expected_concern"], "clusters": clusters}
    whole = measured(target=shares, weights=weights, groups={"site": site}, **arguments)
    if clusters is not None:
        arguments["clusters"] = clusters[150:]
    alone = measured(
        preds=PROBS[150:], target=shares[150:], weights=weights[150:], **arguments
    )
    end = End(is_upper=True)
    of_group = whole.scores(group=("site", "b")).bound("expected_concern", end)
    of_alone = alone.first.bound("expected_concern", end)
    assert isinstance(of_group, float)
    assert isinstance(of_alone, float)
    assert of_group > 1.1 * of_alone
