"""The mean area over classes: its intervals and differences hold, in groups, clusters and merged parts."""

from statistics import NormalDist

import pytest
import torch
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from mpcs_torch import evaluate
from mpcs_torch.evaluation.ranks import influences_on_areas
from mpcs_torch.functional.quality.roc_area import RocArea

CLASSES = 3


def drawn(rows: int, seed: int, *, skill: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(CLASSES, (rows,), generator=generator)
    logits = (
        torch.randn(rows, CLASSES, generator=generator) + skill * torch.eye(CLASSES)[target]
    )
    return logits.double().softmax(1), target


def area(skill: float) -> float:
    probs, target = drawn(200_000, 999, skill=skill)
    return evaluate(probs, target, metrics=["auroc"], intervals=False).value("auroc")


def test_intervals_hold_the_area_of_many_rows() -> None:
    true = area(1.0)
    held = []
    for seed in range(150):
        ends = evaluate(*drawn(300, seed), metrics=["auroc"]).interval("auroc")
        assert ends is not None
        held.append(ends[0] <= true <= ends[1])
    assert binomtest(sum(held), len(held), 0.95, "less").pvalue > 0.001


def test_a_model_does_not_differ_from_itself() -> None:
    probs, target = drawn(500, 2)
    same = evaluate({"a": probs, "b": probs.clone()}, target, metrics=["auroc"])
    [row] = same.comparisons
    assert (row.paired.difference, row.paired.p_value) == (0, 1)
    assert row.paired.low < 0 < row.paired.high


def test_the_best_further_row_of_a_class_raises_the_area_as_in_scikit_learn() -> None:
    probs, target = drawn(60, 4)
    weights = torch.ones(60, dtype=torch.float64)
    measure = RocArea(CLASSES)
    areas = measure.areas(measure.rows(probs, target))
    found = influences_on_areas(areas, weights, torch.arange(60), None)
    assert found.of_rows is not None
    # The influence is the derivative by the weight of a row that is sure of its class.
    weight = 1e-6
    weights_with = torch.cat([weights, torch.tensor([weight])])
    raised = list[float]()
    for true in range(CLASSES):
        scores = torch.cat([probs, torch.eye(CLASSES).double()[[true]]])
        labels = torch.cat([target, torch.tensor([true])])
        by_class = [
            roc_auc_score(labels == place, scores[:, place], sample_weight=weights_with)
            for place in range(CLASSES)
        ]
        raised.append((sum(by_class) / CLASSES - found.value) / weight)
    assert found.of_rows[:, 1].tolist() == pytest.approx(raised, rel=1e-3)


@pytest.mark.parametrize("positives", [30, 250])
def test_p_values_of_areas_are_near_those_of_delong(positives: int) -> None:
    """The variance of DeLong, DeLong and Clarke-Pearson, written out for pairs of rows."""
    generator = torch.Generator().manual_seed(positives)
    target = (torch.arange(500) < positives).long()
    scores = [
        torch.randn(500, generator=generator, dtype=torch.float64) + 1.5 * target
        for _ in range(2)
    ]
    probs = {name: each.sigmoid() for name, each in zip("ab", scores, strict=True)}
    models = {name: torch.stack([1 - each, each], 1) for name, each in probs.items()}
    [row] = evaluate(models, target, metrics=["auroc"]).comparisons
    by_pair = [
        (each[target == 1].unsqueeze(1) > each[target == 0]).double() for each in scores
    ]
    change = by_pair[1] - by_pair[0]
    variance = change.mean(1).var() / positives + change.mean(0).var() / (500 - positives)
    z = abs(change.mean().item()) / variance.sqrt().item()
    assert row.paired.p_value == pytest.approx(2 * NormalDist().cdf(-z), rel=0.1, abs=0.01)
