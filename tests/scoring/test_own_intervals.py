"""Intervals of one file hold the true value, and are those of a bootstrap of its rows."""

from collections import Counter

import pytest
import torch
from torch import Tensor

from mpcs_torch import ConcernSpec
from mpcs_torch.functional import Resamples, bootstrap_interval
from mpcs_torch.metrics.by_name import BY_NAME
from mpcs_torch.scoring import row_means
from mpcs_torch.scoring.chosen_metrics import ChosenMetrics, inputs_of
from mpcs_torch.scoring.chunks import Chunk
from mpcs_torch.scoring.count_intervals import (
    STATISTICS,
    Counts,
    drawn_intervals,
    f1_macro,
    interval_around,
    interval_of_drawn,
    multinomial_counts,
)
from mpcs_torch.scoring.own_intervals import own_intervals
from mpcs_torch.scoring.row_means import RowMeans
from mpcs_torch.scoring.scores import Scores

NAMES = [
    *(
        "accuracy",
        "misclassification_rate",
        "dangerous_rate",
        "destructive_rate",
        "mpcs",
        "expected_concern",
        "least_concern_cost",
    ),
    *("cross_entropy", "brier_score", "geometric_accuracy", "decisiveness", "robustness", "average_accuracy"),
    *STATISTICS,
]
CONCERN = ConcernSpec(list("abcd"), releases=[["a", "b"]], factor=0.3)
CHOSEN = ChosenMetrics(tuple(BY_NAME[name] for name in NAMES), 4, CONCERN, {}, False)
SHARES = torch.tensor([0.4, 0.3, 0.2, 0.1])


def drawn(rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    target = torch.multinomial(SHARES, rows, replacement=True, generator=generator)
    scores = 1.5 * torch.randn(rows, 4, generator=generator, dtype=torch.float64)
    scores[torch.arange(rows), target] += 2
    return scores.softmax(1), target


def measured(probs: Tensor, target: Tensor, resamples: int, *, step: int = 10**6) -> Scores:
    metrics, means = CHOSEN.make(), RowMeans(resamples)
    means.begin(CHOSEN)
    for rows in torch.arange(len(probs)).split(step):
        metrics.update(inputs_of(probs[rows], metrics.takes), target[rows])
        means.add(Chunk(1, probs[rows], target[rows]))
    values, confusion = metrics.results()
    return own_intervals(Scores(len(probs), list("abcd"), values, confusion, None, None), CONCERN, means, resamples)


def test_nineteen_of_twenty_intervals_hold_the_true_value() -> None:
    """Of 200 sets, 95 % intervals hold it in 95 % with a deviation of 1.5 %; 4 of these are granted."""
    generator = torch.Generator().manual_seed(1)
    true = measured(*drawn(200_000, generator), resamples=10).values
    held: Counter[str] = Counter()
    for _ in range(200):
        found = measured(*drawn(300, generator), resamples=100)
        assert list(found.intervals) == NAMES
        held.update(name for name, (low, high) in found.intervals.items() if low <= true[name] <= high)
    assert all(held[name] >= 0.89 * 200 for name in NAMES), held
    assert 0.935 < sum(held.values()) / (200 * len(NAMES)) < 0.975


def test_the_mean_over_many_small_classes_is_held_too() -> None:
    """Of 100 classes with 10 samples each, percentiles of the bootstrap held it in 75 % of sets."""
    generator, held = torch.Generator().manual_seed(0), 0
    true = f1_macro(_counts(_confusion(2_000_000, generator))).item()
    for seed in range(40):
        confusion = _confusion(1000, generator)
        values = {"f1_macro": f1_macro(_counts(confusion)).item()}
        low, high = drawn_intervals(values, multinomial_counts(confusion, 100, seed), 1000)["f1_macro"]
        assert low < values["f1_macro"] < high
        held += low <= true <= high
    assert held >= 36


def _confusion(rows: int, generator: torch.Generator) -> Tensor:
    target = torch.randint(100, (rows,), generator=generator)
    is_right = torch.rand(rows, generator=generator) < 0.76
    decisions = torch.where(is_right, target, torch.randint(100, (rows,), generator=generator))
    return (100 * target + decisions).bincount(minlength=10_000).view(100, 100)


def _counts(confusion: Tensor) -> Counts:
    right, true, predicted = confusion.diagonal(), confusion.sum(1), confusion.sum(0)
    return Counts(*(held.double().unsqueeze(0) for held in (right, true, predicted)))


@pytest.mark.parametrize("name", ["f1_macro", "mcc", "macro_fscore"])
def test_drawing_cells_is_drawing_rows(name: str) -> None:
    probs, target = drawn(400, torch.Generator().manual_seed(2))
    found = measured(probs, target, resamples=2000).intervals[name]
    decisions, entry = probs.argmax(1), BY_NAME[name]

    def statistic(weights: Tensor) -> Tensor:
        return torch.stack([_value(entry.make(4), decisions, target, own) for own in weights])

    assert found == pytest.approx(bootstrap_interval(statistic, Resamples(400, number=1000)), abs=0.015)


def _value(metric: object, decisions: Tensor, target: Tensor, weights: Tensor) -> Tensor:
    metric.update(decisions, target, weights.double())  # type: ignore[attr-defined]
    value: Tensor = metric.compute()  # type: ignore[attr-defined]
    return value


def test_a_sample_of_a_sorted_file_tells_how_far_mpcs_varies(monkeypatch: pytest.MonkeyPatch) -> None:
    probs, target = drawn(20_000, torch.Generator().manual_seed(3))
    order = probs[torch.arange(20_000), target].argsort()
    all_rows = measured(probs, target, resamples=10).intervals["mpcs"]
    monkeypatch.setattr(row_means, "ALL_ROWS", 4000)
    sampled = measured(probs[order], target[order], resamples=10, step=1000).intervals["mpcs"]
    assert sum(sampled) == pytest.approx(sum(all_rows))
    assert sampled[1] - sampled[0] == pytest.approx(all_rows[1] - all_rows[0], rel=0.05)


def test_resamples_that_nearly_all_agree_give_no_interval() -> None:
    almost = torch.cat([torch.ones(199), torch.tensor([2.0])]).double()
    assert interval_of_drawn(almost, 50) is None  # both percentiles are 1
    assert interval_around(1.0, torch.ones(200).double() + 1e-15 * torch.arange(200), 50) is None  # rounding


def test_no_interval_promises_too_much() -> None:
    probs = torch.eye(4, dtype=torch.float64)[torch.arange(40) % 4]
    found = measured(probs, torch.arange(40) % 4, resamples=50)
    assert found.intervals["accuracy"][0] < 0.92
    assert set(found.intervals) == {"accuracy", "misclassification_rate", "dangerous_rate"}
    few = measured(*(held[:9] for held in drawn(9, torch.Generator().manual_seed(0))), resamples=50)
    assert "macro_recall" not in few.intervals  # resamples lack a class
