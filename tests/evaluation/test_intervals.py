"""Intervals and differences are those of libraries and of naive loops, and hold the true value."""

import re
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit, logit
from sklearn.metrics import f1_score
from torch import Tensor

from mpcs_torch import ConcernSpec, evaluate
from mpcs_torch.evaluation import evaluate_confusion
from mpcs_torch.functional import bounded_mean_interval, meta_pattern_concern_score
from mpcs_torch.functional.comparison.means import MOST_DISTINCT, distinct_pairs
from tests.benchmarks.coverage import DESIGNS, coverage
from tests.metrics.batches import random_batch

LOGITS, TARGET = random_batch(150, seed=2)
PROBS = LOGITS.double().softmax(1)
OTHER = (LOGITS.double() + torch.nn.functional.one_hot(TARGET, 4)).softmax(1)
CONCERN = ConcernSpec(list("abcd"), weights=[[0, 1, 1, 40], [1, 0, 2, 1], [1, 1, 0, 1], [3, 1, 1, 0]], dangerous=3)


def without_each(units: Tensor) -> list[Tensor]:
    return [units != unit for unit in units.unique()]


@pytest.mark.parametrize("clusters", [torch.arange(150), torch.arange(150) % 30])
def test_the_jackknife_leaves_out_one_row_or_cluster_at_a_time(clusters: Tensor) -> None:
    found = evaluate(PROBS, TARGET, metrics=["f1_macro"], clusters=clusters)
    decided = PROBS.argmax(1)
    values = logit([f1_score(TARGET[kept], decided[kept], average="macro") for kept in without_each(clusters)])
    number = len(values)
    half = stats.t.ppf(0.975, number - 1) * ((number - 1) * values.var()) ** 0.5
    middle = logit(f1_score(TARGET, decided, average="macro"))
    assert found.interval("f1_macro") == pytest.approx((expit(middle - half), expit(middle + half)))


def test_a_difference_of_means_is_a_paired_t_test() -> None:
    found = evaluate({"A": PROBS, "B": OTHER}, TARGET, metrics=["mpcs"])
    a, b = (
        meta_pattern_concern_score(own, TARGET, num_classes=4, from_logits=False, reduction="none")
        for own in (PROBS, OTHER)
    )
    expected = stats.ttest_rel(b, a)
    [row] = found.comparisons
    assert row.paired.p_value == pytest.approx(expected.pvalue)
    assert (row.paired.low, row.paired.high) == pytest.approx(tuple(expected.confidence_interval()))
    assert row.better == "B"


@settings(max_examples=40)
@given(only_first=st.integers(0, 12), only_second=st.integers(0, 12), both=st.integers(0, 5), rest=st.integers(1, 300))
def test_differences_of_rates_are_mcnemars_and_never_contradict_it(
    only_first: int, only_second: int, both: int, rest: int
) -> None:
    target = torch.zeros(only_first + only_second + both + rest, dtype=torch.int64)
    first, second = torch.zeros_like(target), torch.zeros_like(target)
    first[: only_first + both] = 1
    second[only_first : only_first + both + only_second] = 1
    one_hot = {name: torch.eye(2, dtype=torch.float64)[own] for name, own in (("A", first), ("B", second))}
    [row] = evaluate(one_hot, target, metrics=["misclassification_rate"]).comparisons
    apart = only_first + only_second
    p_value = stats.binomtest(only_first, apart).pvalue if apart else 1.0
    assert row.paired.p_value == pytest.approx(p_value)
    assert (row.paired.low <= 0 <= row.paired.high) == (row.paired.p_value > 0.05)
    assert row.paired.low < row.paired.difference < row.paired.high


def test_rates_are_exact_and_costs_have_gaffkes_bound() -> None:
    found = evaluate(PROBS, TARGET, concern=CONCERN).first
    decided = PROBS.argmax(1)
    exact = stats.binomtest(int((decided != TARGET).sum()), 150).proportion_ci()
    assert found.intervals["misclassification_rate"] == pytest.approx((exact.low, exact.high))
    averaged = evaluate(PROBS, TARGET, concern=CONCERN, metrics=["average_accuracy"]).first
    assert averaged.intervals["average_accuracy"] == pytest.approx((1 - exact.high / 2, 1 - exact.low / 2))
    costs = CONCERN.costs()[:, :4].double().fill_diagonal_(0)
    constant = costs[TARGET].sum(0).argmin()
    pairs = torch.stack([costs[TARGET, decided], costs[TARGET, constant]], 1)
    largest = torch.stack([costs.amax(1), costs[:, constant]], 1)
    none = torch.stack([torch.zeros(4).double(), costs[:, constant]], 1)
    counts = torch.cat([torch.ones(150), torch.zeros(8)])
    values, per = torch.cat([pairs, largest, none]).unbind(1)
    expected = bounded_mean_interval(values, counts, per=per)
    assert found.intervals["expected_concern"] == pytest.approx(expected, rel=1e-4)
    of_class = (decided == TARGET)[TARGET == 2]
    recall = stats.binomtest(int(of_class.sum()), len(of_class)).proportion_ci()
    assert found.class_intervals["c"]["recall"] == pytest.approx((recall.low, recall.high))


def test_many_different_values_are_counted_together() -> None:
    generator = torch.Generator().manual_seed(0)
    pairs = torch.rand(5000, 2, generator=generator, dtype=torch.float64) ** 8
    joined, counts = distinct_pairs(pairs, torch.ones(5000, dtype=torch.float64))
    assert len(joined) <= 2 * MOST_DISTINCT
    assert counts.sum() == 5000
    torch.testing.assert_close((joined * counts.unsqueeze(1)).sum(0), pairs.sum(0))
    some = pairs[:400]
    exact = bounded_mean_interval(some[:, 0], torch.ones(400), per=some[:, 1])
    joined, counts = distinct_pairs(some, torch.ones(400, dtype=torch.float64))
    assert bounded_mean_interval(joined[:, 0], counts, per=joined[:, 1]) == pytest.approx(exact, rel=0.01)


def test_a_confusion_matrix_says_what_its_rows_say(monkeypatch: pytest.MonkeyPatch) -> None:
    concern = ConcernSpec(list("abcd"), releases=[["a", "b"]])
    rows = evaluate(PROBS, TARGET, concern=concern)
    assert rows.first.confusion is not None
    found = evaluate_confusion(rows.first.confusion, list("abcd"), concern=concern)
    assert len(found.first.intervals) == 11
    for name, interval in found.first.intervals.items():
        assert interval == pytest.approx(rows.first.intervals[name]), name
    assert found.first.class_intervals == rows.first.class_intervals
    monkeypatch.setattr("mpcs_torch.evaluation.confusion.MOST_OF_CELLS", 80)  # 5 cells at a time
    large = evaluate_confusion(rows.first.confusion, list("abcd"), concern=concern)
    assert large.first.values == pytest.approx(found.first.values)
    assert large.notes == ["No intervals: too many pairs of classes occur."]


SURE = torch.eye(4, dtype=torch.float64)


@pytest.mark.parametrize(
    ("preds", "target", "name", "reason"),
    [
        (PROBS[:9], TARGET[:9], "mcc", "a spread is judged by at least 10 rows"),
        (PROBS[:40], torch.zeros(40).long(), "balanced_error_rate", "without a value, there is none"),
        (PROBS[:40], torch.arange(40).clamp(max=3), "f1_macro", "needs 2 rows with samples of each class"),
        (SURE[TARGET], TARGET, "f1_macro", "fewer than 5 rows have a wrong decision"),
        (OTHER[OTHER.argmax(1) == TARGET], TARGET[OTHER.argmax(1) == TARGET], "cross_entropy", "fewer than 10 rows"),
        (PROBS, TARGET, "calibration_slope", "bins of probabilities"),
        (PROBS, TARGET, "destructive_rate", "without a concern, every error is dangerous"),
    ],
)
def test_what_has_no_interval_has_a_reason(preds: Tensor, target: Tensor, name: str, reason: str) -> None:
    found = evaluate(preds, target).first
    assert name not in found.intervals
    if name in found.without_interval:
        assert re.search(reason, found.without_interval[name])
    else:
        assert name in found.undefined()


def test_a_mean_that_rare_rows_may_make_has_the_bound_of_a_row_where_that_is_of_use() -> None:
    right = OTHER.argmax(1) == TARGET
    preds, target = OTHER[right].repeat(20, 1), TARGET[right].repeat(20)
    found = evaluate(preds, target)
    squares = (preds - torch.eye(4, dtype=torch.float64)[target]).square().sum(1)
    values = torch.cat([squares, torch.tensor([0.0, 2.0])])
    counts = torch.cat([torch.ones(len(squares)), torch.zeros(2)])
    assert found.interval("brier_score") == pytest.approx(bounded_mean_interval(values, counts), rel=1e-3)
    assert "rare ones may make the value" in found.first.without_interval["cross_entropy"]


@pytest.mark.parametrize(
    ("design", "metric"),
    [
        ("cost 50, 200 rows", "expected_concern"),
        ("100 clusters of 10, 3 % bad", "dangerous_rate"),
        ("soft labels, 100 rows", "soft_f1_macro"),
    ],
)
def test_nineteen_of_twenty_intervals_hold_the_true_value(design: str, metric: str) -> None:
    """Of 60 samples, 95 % intervals hold it in 57 with a deviation of 1.7; 3 of these are granted."""
    chosen: Any = DESIGNS[design]._replace(metrics=[metric], truth=100_000)
    counts, compared = coverage(chosen, 60, seed=3)
    held, given_one = counts[metric]
    assert given_one >= 57
    assert held >= 52
    for misses, rejected, against in compared.values():
        assert against == 0
        assert max(misses, rejected) <= 9
