"""The mean area over classes: its intervals and differences hold, in groups, clusters and merged parts."""

from statistics import NormalDist
from typing import Any

import pytest
import torch
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from mpcs_torch import evaluate
from mpcs_torch.evaluation.ranks import influences_on_areas
from mpcs_torch.functional.quality.roc_area import RocArea
from tests.evaluation.draws import rows_of

CLASSES = 3


def area_of(rows: int, seed: int, **options: Any) -> Any:
    """Evaluate the mean area of rows of three classes."""
    target, probs, _ = rows_of(rows, [1.0] * CLASSES, seed=seed)
    return evaluate(probs, target, metrics=["auroc"], **options)


def area_of_rare(rows: int, seed: int, **options: Any) -> Any:
    """Evaluate the area of one class that has 5 % of the rows."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.arange(rows) < 0.05 * rows
    score = (torch.randn(rows, generator=generator) + 3 * target).double().sigmoid()
    probs = torch.stack([1 - score, score], 1)
    return evaluate(probs, target.long(), metrics={"auroc": "auroc[1]"}, **options)


@pytest.mark.parametrize("draw", [area_of, area_of_rare])
def test_intervals_hold_the_area_of_many_rows(draw: Any) -> None:
    true, hits = draw(200_000, 999, intervals=False).value("auroc"), 0
    for seed in range(150):
        low, high = draw(300, seed).interval("auroc") or (1, 0)
        hits += low <= true <= high
    assert binomtest(hits, 150, 0.95, "less").pvalue > 0.001


def test_a_model_does_not_differ_from_itself() -> None:
    target, probs, _ = rows_of(500, [1.0] * CLASSES)
    same = evaluate({"a": probs, "b": probs.clone()}, target, metrics=["auroc"])
    [row] = same.comparisons
    assert (row.paired.difference, row.paired.p_value) == (0, 1)
    assert row.paired.low < 0 < row.paired.high


def test_the_best_further_row_of_a_class_raises_the_area_as_in_scikit_learn() -> None:
    target, probs, _ = rows_of(60, [1.0] * CLASSES)
    measure, weights = RocArea(CLASSES), torch.ones(60).double()
    areas = measure.areas(measure.rows(probs, target))
    found = influences_on_areas(areas, weights, torch.arange(60), None)
    assert found.of_rows is not None
    # The influence is the derivative by the weight of a row that is sure of its class.
    weight = 1e-6
    for true, (_, most) in enumerate(found.of_rows.tolist()):
        raised = roc_auc_score(
            [*target.tolist(), true],
            torch.cat([probs, torch.eye(CLASSES).double()[[true]]]),
            multi_class="ovr",
            sample_weight=[*weights.tolist(), weight],
        )
        assert most == pytest.approx((raised - found.value) / weight, rel=1e-3)


@pytest.mark.parametrize("positives", [30, 250])
def test_p_values_of_areas_are_near_those_of_delong(positives: int) -> None:
    """The variance of DeLong, DeLong and Clarke-Pearson, written out for pairs of rows."""
    generator, target = (
        torch.Generator().manual_seed(positives),
        torch.arange(500) < positives,
    )
    scores = torch.randn(2, 500, generator=generator, dtype=torch.float64) + 1.5 * target
    models = {
        name: torch.stack([-each, each], 1).sigmoid()
        for name, each in zip("ab", scores, strict=True)
    }
    [row] = evaluate(models, target.long(), metrics=["auroc"]).comparisons
    by_pair = (scores[:, target].unsqueeze(2) > scores[:, ~target].unsqueeze(1)).double()
    change = by_pair[1] - by_pair[0]
    variance = change.mean(1).var() / positives + change.mean(0).var() / (500 - positives)
    z = float(change.mean().abs() / variance.sqrt())
    assert row.paired.p_value == pytest.approx(2 * NormalDist().cdf(-z), rel=0.1, abs=0.01)
