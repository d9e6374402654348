"""Weights of rows and shares of classes: values are those of scikit-learn, and laws tie intervals to repeated rows."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import (
    accuracy_score,
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
)
from torchmetrics.classification import (
    MulticlassAUROC,
    MulticlassCohenKappa,
    MulticlassJaccardIndex,
)

from mpcs_torch import ConcernSpec, Evaluation, WithInterval, evaluate
from mpcs_torch.concern.files import save_concern
from mpcs_torch.evaluation.cautions import independence
from mpcs_torch.evaluation.reasons import OPEN_WEIGHTS
from mpcs_torch.evaluation.rows import Rows
from tests.cli.shell import run
from tests.evaluation.alike import assert_alike
from tests.refused import Refused
from tests.report.page import Page

GENERATOR = torch.Generator().manual_seed(0)
TARGET = torch.multinomial(
    torch.tensor([0.4, 0.3, 0.3]), 300, replacement=True, generator=GENERATOR
)
PROBS, OTHER = (
    (
        torch.randn(300, 3, generator=GENERATOR).double()
        + skill * torch.eye(3).double()[TARGET]
    ).softmax(1)
    for skill in (1.5, 2)
)
WEIGHTS = torch.rand(300, generator=GENERATOR).double() + 0.1
CONCERN = ConcernSpec(list("abc"), weights=[[0, 1, 1], [1, 0, 1], [20, 2, 0]], dangerous=5)
SITES = ["north" if row % 3 else "south" for row in range(300)]


def measured(**arguments: Any) -> Any:
    return evaluate(**{"preds": PROBS, "target": TARGET, "concern": CONCERN, **arguments})


WEIGHTED: dict[str, Any] = {
    "accuracy": lambda y, p, w: accuracy_score(y, p.argmax(1), sample_weight=w),
    "macro_f1": lambda y, p, w: f1_score(y, p.argmax(1), average="macro", sample_weight=w),
    "weighted_f1": lambda y, p, w: f1_score(
        y, p.argmax(1), average="weighted", sample_weight=w
    ),
    "top_k_accuracy": lambda y, p, w: top_k_accuracy_score(y, p, k=2, sample_weight=w),
    "mcc": lambda y, p, w: matthews_corrcoef(y, p.argmax(1), sample_weight=w),
    "cross_entropy": lambda y, p, w: log_loss(y, p, sample_weight=w),
    "quadratic_weighted_kappa": lambda y, p, w: cohen_kappa_score(
        y, p.argmax(1), weights="quadratic", sample_weight=w
    ),
    "auroc[referable]": lambda y, p, w: roc_auc_score(
        y > 0, p[:, 1:].sum(1), sample_weight=w
    ),
    "recall[referable]": lambda y, p, w: recall_score(
        y > 0, p.argmax(1) > 0, sample_weight=w
    ),
    "precision[referable]": lambda y, p, w: precision_score(
        y > 0, p.argmax(1) > 0, sample_weight=w
    ),
    "jaccard": lambda y, p, w: jaccard_score(
        y, p.argmax(1), average="macro", sample_weight=w
    ),
}
OF_TORCHMETRICS = {"jaccard": MulticlassJaccardIndex(3)}


@pytest.mark.parametrize("clusters", [None, torch.arange(300) // 3])
def test_values_are_those_of_scikit_learn(clusters: Any) -> None:
    concern = replace(CONCERN, class_groups={"referable": ["b", "c"]})
    found = measured(
        weights=WEIGHTS,
        concern=concern,
        metrics={name: OF_TORCHMETRICS.get(name, name) for name in WEIGHTED},
        clusters=clusters,
        groups={"site": SITES},
    )
    south = np.array([site == "south" for site in SITES])
    for name, of in WEIGHTED.items():
        expected = of(TARGET, PROBS, WEIGHTS)
        assert found.value(name) == pytest.approx(expected, rel=1e-6), name
        of_south = of(TARGET[south], PROBS[south], WEIGHTS[south])
        value = found.value(name, group=("site", "south"))
        assert value == pytest.approx(of_south, rel=1e-6), name
    assert found.first.without_interval == {}
    expected = confusion_matrix(TARGET, PROBS.argmax(1), sample_weight=WEIGHTS)
    torch.testing.assert_close(found.first.confusion, torch.from_numpy(expected))
    assert found.first.rows == 300
    effective = WEIGHTS.sum().square() / WEIGHTS.square().sum()
    assert f"effective sample size is {effective:.0f} rows" in "".join(found.all_notes())


def test_with_interval_gives_weights_to_metrics_of_sums() -> None:
    wrapped = WithInterval(MulticlassCohenKappa(3, weights="quadratic"), prefix="kappa")
    wrapped.update(PROBS, TARGET, sample_weight=WEIGHTS)
    expected = WEIGHTED["quadratic_weighted_kappa"](TARGET, PROBS, WEIGHTS)
    assert wrapped.compute()["kappa"].item() == pytest.approx(expected)
    with Refused("metric_of_sums", "sample_weight", metric="MulticlassAUROC"):
        WithInterval(MulticlassAUROC(3)).update(PROBS, TARGET, sample_weight=WEIGHTS)
    binned = measured(weights=WEIGHTS, metrics=[MulticlassAUROC(3, thresholds=50)])
    areas = [
        roc_auc_score(label == TARGET, PROBS[:, label], sample_weight=WEIGHTS)
        for label in range(3)
    ]
    assert binned.value("MulticlassAUROC") == pytest.approx(np.mean(areas), abs=0.005)


def test_functions_of_rows_have_their_weights_and_must_use_them() -> None:
    def off(rows: Rows) -> torch.Tensor:
        wrong = (rows.probs.argmax(1) != rows.target).double()
        if rows.weights is None:
            return wrong.mean()
        return wrong @ rows.weights / rows.weights.sum()

    found = measured(
        weights=WEIGHTS,
        metrics={"off": off, "misclassification_rate": "misclassification_rate"},
    )
    assert found.value("off") == pytest.approx(found.value("misclassification_rate"))
    with Refused("uses_weights", "a function of weighted rows"):
        measured(
            weights=WEIGHTS,
            metrics={
                "off": lambda rows: (rows.probs.argmax(1) != rows.target).double().mean()
            },
        )
    # In each of these two groups, weights do not change the value.
    is_right = ["right" if right else "wrong" for right in PROBS.argmax(1) == TARGET]
    by_group = measured(
        weights=WEIGHTS, metrics={"off": off}, groups={"decision": is_right}
    )
    assert [
        by_group.value("off", group=("decision", name)) for name in ("right", "wrong")
    ] == pytest.approx([0, 1])


@pytest.mark.parametrize("clusters", [None, torch.arange(300) // 3])
def test_areas_keep_their_interval_with_weights_of_1_and_with_annotators_who_agree(
    clusters: Any,
) -> None:
    # Only a few rows are of class c.
    few = torch.where((TARGET == 2) & (torch.arange(300) > 30), 0, TARGET)
    plain = measured(target=few, metrics=["auroc[c]"], clusters=clusters).interval(
        "auroc[c]"
    )
    shares = torch.nn.functional.one_hot(few, 3).double()
    for given in ({"weights": torch.full((300,), 2.0)}, {"target": shares}):
        found = measured(
            **{"target": few, **given}, metrics=["auroc[c]"], clusters=clusters
        )
        assert found.interval("auroc[c]") == pytest.approx(plain)


def test_shares_of_classes_weight_an_enriched_set_back() -> None:
    shares = {"a": 0.9, "b": 0.08, "c": 0.02}
    found = measured(prevalence=shares)
    recall = [found.value(f"recall[{name}]") * share for name, share in shares.items()]
    assert found.value("accuracy") == pytest.approx(sum(recall))
    assert "effective sample size" in "".join(found.all_notes())
    listed = [*shares.values()]
    for each in (found, measured(prevalence=listed, weights=WEIGHTS)):
        of_classes = each.first.confusion.sum(1) / 300
        assert of_classes.tolist() == pytest.approx(listed)


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"weights": [1.0]}, Refused("shape", "weights", shape=(300,))),
        (
            {"weights": -WEIGHTS},
            Refused("finite_at_least", "weights", -0.5737918, sample=0, minimum=0),
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
    twice = {"preds": PROBS.repeat(2, 1), "target": TARGET.repeat(2)}
    names, frequencies = torch.arange(300).repeat(2), FREQUENCIES.repeat(2)
    units = measured(**twice, unit=names, frequencies=frequencies)
    assert units.notes[-1] == independence("units")
    assert_alike(units.to_dict(), measured(**rows).to_dict())


def test_bounds_of_weighted_rows_need_the_largest_weight_of_any_row() -> None:
    weighted = measured(weights=WEIGHTS, metrics=["accuracy", "macro_f1", "mpcs", "auroc"])
    largest = float(WEIGHTS.max())
    for requirement in ("accuracy > 0.1", "macro_f1 > 0.1", "mpcs < 9", "auroc > 0.1"):
        [without] = weighted.check(requirement)
        assert (without.reason, without.holds) == (OPEN_WEIGHTS, False)
        near, far = (
            abs(weighted.check(requirement, max_weight=most)[0].bound - without.value)
            for most in (largest, 3 * largest)
        )
        assert far > near > 0
        [approximate] = weighted.check(requirement, approximate=True)
        assert approximate.bound in weighted.interval(requirement.split()[0])
    alike = measured(weights=torch.ones(300), metrics=["accuracy"])
    one, twenty, more = (
        alike.check("accuracy > 0.1", max_weight=most)[0].bound for most in (1, 20, 200)
    )
    # Weights that are all 1 tell nothing of further rows.
    assert one > twenty + 0.05 > more + 0.1
    known = measured(prevalence=[0.2, 0.3, 0.5], metrics=["accuracy"])
    assert known.check("accuracy > 0.1")[0].reason is None
    with Refused("above", "max_weight", 0, minimum=0):
        weighted.check("accuracy > 0.1", max_weight=0)


def test_the_report_of_weighted_rows_counts_weights(tmp_path: Path) -> None:
    path, page = tmp_path / "a.csv", tmp_path / "page.html"
    columns = dict(zip("abc", PROBS.T.tolist(), strict=True))
    columns |= {"label": ["abc"[label] for label in TARGET], "w": WEIGHTS.tolist()}
    pd.DataFrame(columns).to_csv(path, index=False)
    save_concern(CONCERN, tmp_path / "concern.yaml")
    options = ("--concern", tmp_path / "concern.yaml", "--html", page)
    assert run("score", path, "--weight", "w", *options) == 0
    text = " ".join(Page(page).text.split())
    wrong = confusion_matrix(TARGET, PROBS.argmax(1), sample_weight=WEIGHTS)
    of_c, dangerous = wrong[2].sum(), wrong[2, 0]
    ends = measured(weights=WEIGHTS).first.class_intervals["c"]["recall"]
    shown = f"{100 * (1 - wrong[2, 2] / of_c):.3g} % [{100 * (1 - ends[1]):.3g}, {100 * (1 - ends[0]):.3g}]"
    assert (
        f"dangerous errors on {dangerous:.4g} of {of_c:.4g} c ({100 * dangerous / of_c:.3g} %"
        in text
    )
    assert re.search(r"of [\d.]+ weighted rows", text)
    assert shown in text, (
        "the interval of weighted rows, not Clopper and Pearson's of counts"
    )
    assert "What referring samples" in text


def rare_and_heavy() -> tuple[torch.Tensor, torch.Tensor]:
    """Return decisions and labels: 300 ill, of whom 30 are missed, and 30 well without a false alarm."""
    target = torch.tensor([1] * 300 + [0] * 30)
    decided = target.clone()
    decided[:30] = 0
    return decided, target


def test_a_further_row_that_is_decided_may_be_of_the_heaviest_class() -> None:
    """A false alarm weighs 190 times a right decision, though none is among the rows decided as ill."""
    decided, target = rare_and_heavy()
    names = ["well", "ill"]
    found = evaluate(
        decided, target, class_names=names, prevalence={"well": 0.95, "ill": 0.05}
    )
    specificity, _ = found.interval("specificity[ill]")
    precision, _ = found.interval("precision[ill]")
    assert precision < 0.05 * 0.9 / (0.05 * 0.9 + 0.95 * (1 - specificity))
    assert not found.check("precision[ill] > 0.9")[0].holds
    plain = evaluate(decided, target, class_names=names)
    for rate in ("recall[ill]", "specificity[ill]"):  # of rows of one class and weight
        assert found.interval(rate) == pytest.approx(plain.interval(rate), abs=2e-3)


def test_a_further_row_of_a_group_may_be_heavier_than_those_in_it() -> None:
    decided, target = rare_and_heavy()
    sites = ["a"] * 300 + ["b"] * 30  # all light rows are at one site
    found = evaluate(
        decided,
        target,
        class_names=["well", "ill"],
        prevalence={"well": 0.95, "ill": 0.05},
        groups={"site": sites},
    )
    outcomes = {each.group: each for each in found.check("accuracy > 0.5")}
    assert outcomes["site = a"].value == pytest.approx(0.9)
    assert not outcomes["site = a"].holds
    assert outcomes["site = b"].holds


def test_weights_that_differ_within_a_class_may_be_those_of_further_rows_of_another() -> (
    None
):
    target = torch.tensor([1] * 100 + [0] * 100)
    decided = target.clone()
    decided[:5] = 0
    weights = torch.ones(200)
    weights[150:] = 25  # no heavy row is ill, by chance
    found = evaluate(decided, target, class_names=["well", "ill"], weights=weights)
    low, _ = found.interval("recall[ill]")
    assert low < 95 / (100 + 25)
