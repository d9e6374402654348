"""Metrics computed from their definitions in plain Python."""

import math
from typing import Any

ONEDAL = (
    "average_accuracy",
    "error_rate",
    "micro_precision",
    "micro_recall",
    "micro_fscore",
    "macro_precision",
    "macro_recall",
    "macro_fscore",
    "weighted_error_rate",
    "balanced_error_rate",
)
"""The quality metrics of oneDAL and of a lecture, by name."""


def _ratio(a: float, b: float) -> float:
    return a / b if b else 0.0


def quality(scores: list[list[float]], target: list[int], classes: int) -> dict[str, Any]:
    """Compute oneDAL's quality metrics with 0 / 0 = 0, and others, from one-vs-rest counts of each class."""
    predicted = [max(range(classes), key=row.__getitem__) for row in scores]
    pairs = list(zip(target, predicted, strict=True))
    size = len(pairs)
    counts = []
    for c in range(classes):
        tp = sum(t == c and p == c for t, p in pairs)
        fp = sum(t != c and p == c for t, p in pairs)
        fn = sum(t == c and p != c for t, p in pairs)
        counts.append((tp, fp, fn))
    all_tp, all_fp, all_fn = [sum(column) for column in zip(*counts, strict=True)]
    micro_p, micro_r = _ratio(all_tp, all_tp + all_fp), _ratio(all_tp, all_tp + all_fn)
    precisions = [_ratio(tp, tp + fp) for tp, fp, _ in counts]
    recalls = [_ratio(tp, tp + fn) for tp, _, fn in counts]
    macro_p, macro_r = _mean(precisions), _mean(recalls)
    return {
        "average_accuracy": _mean([(size - fp - fn) / size for _, fp, fn in counts]),
        "error_rate": _mean([(fp + fn) / size for _, fp, fn in counts]),
        "micro_precision": micro_p,
        "micro_recall": micro_r,
        "micro_fscore": _ratio(2 * micro_p * micro_r, micro_p + micro_r),
        "macro_precision": macro_p,
        "macro_recall": macro_r,
        "macro_fscore": _ratio(2 * macro_p * macro_r, macro_p + macro_r),
        "weighted_error_rate": sum(t != p for t, p in pairs) / size,
        "balanced_error_rate": _mean([1 - recall for recall in recalls]),
        "class_error_rates": [
            fn / (tp + fn) if tp + fn else math.nan for tp, _, fn in counts
        ],
        "accuracy": sum(t == p for t, p in pairs) / size,
        "macro_f1": _mean(
            [2 * tp / (2 * tp + fp + fn) for tp, fp, fn in counts if tp + fp + fn]
        ),
        "matthews_correlation": _matthews_correlation(pairs, classes),
    }


def _matthews_correlation(pairs: list[tuple[int, int]], classes: int) -> float:
    """Compute the correlation of the one-hot labels and decisions (Gorodkin 2004, Eq. 2)."""
    of_both = of_true = of_predicted = 0.0
    for c in range(classes):
        is_true = [float(t == c) for t, _ in pairs]
        is_predicted = [float(p == c) for _, p in pairs]
        of_both += _covariance(is_true, is_predicted)
        of_true += _covariance(is_true, is_true)
        of_predicted += _covariance(is_predicted, is_predicted)
    return of_both / math.sqrt(of_true * of_predicted) if of_true * of_predicted else 0.0


def _covariance(xs: list[float], ys: list[float]) -> float:
    return _mean([(x - _mean(xs)) * (y - _mean(ys)) for x, y in zip(xs, ys, strict=True)])


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def overconfidence(probs: list[list[float]], target: list[int]) -> float:
    """Subtract the accuracy from the mean confidence (Guo et al. 2017)."""
    confidence = sum(map(max, probs)) / len(probs)
    right = sum(
        row.index(max(row)) == label for row, label in zip(probs, target, strict=True)
    )
    return confidence - right / len(probs)


def risk_gap(
    probs: list[list[float]], target: list[int], losses: list[list[float]]
) -> float:
    """Subtract the mean conditional risk of the most probable class from its mean loss (Duda, Hart, Stork, 2.2)."""
    gaps = []
    for row, label in zip(probs, target, strict=True):
        decided = row.index(max(row))
        estimated = sum(p * losses[c][decided] for c, p in enumerate(row))
        gaps.append(losses[label][decided] - estimated)
    return _mean(gaps)


def brier_score(probs: list[list[float]], target: list[int]) -> float:
    """Compute the mean over samples of the sum over classes of squared differences (Brier 1950)."""
    return _mean(
        [
            sum((p - (c == y)) ** 2 for c, p in enumerate(row))
            for row, y in zip(probs, target, strict=True)
        ]
    )


def cross_entropy(probs: list[list[float]], target: list[int]) -> float:
    """Compute the mean of -log of the probability of the true class, in nats."""
    return _mean([-math.log(row[y]) for row, y in zip(probs, target, strict=True)])


def macro_soft_fbeta(
    preds: list[list[float]], target: list[list[float]], beta: float
) -> float:
    """Compute the mean over classes of soft F; precision for beta 0, recall for an infinite beta."""
    values = []
    for p_column, y_column in zip(
        zip(*preds, strict=True), zip(*target, strict=True), strict=True
    ):
        shared = sum(map(min, p_column, y_column))
        if beta == 0:
            values.append(shared / sum(p_column))
        elif beta == math.inf:
            values.append(shared / sum(y_column))
        else:
            values.append(
                (1 + beta**2) * shared / (beta**2 * sum(y_column) + sum(p_column))
            )
    return sum(values) / len(values)


def macro_hard_f1(
    preds: list[list[float]], target: list[list[float]], threshold: float
) -> float:
    """Compute the mean over classes of the F1 of predictions above a threshold against labels above 0.5."""
    values = []
    for p_column, y_column in zip(
        zip(*preds, strict=True), zip(*target, strict=True), strict=True
    ):
        pairs = [(p > threshold, y > 0.5) for p, y in zip(p_column, y_column, strict=True)]
        values.append(_ratio(2 * pairs.count((True, True)), sum(p + y for p, y in pairs)))
    return sum(values) / len(values)


def soft_kl_divergence(preds: list[list[float]], target: list[list[float]]) -> float:
    """Compute the mean binary divergence of elements strictly between 0 and 1."""
    pairs = [
        (p, y)
        for ps, ys in zip(preds, target, strict=True)
        for p, y in zip(ps, ys, strict=True)
    ]
    return sum(
        y * math.log(y / p) + (1 - y) * math.log((1 - y) / (1 - p)) for p, y in pairs
    ) / len(pairs)


def generalized_mean(
    values: list[float], power: float, epsilon: float, weights: list[float] | None = None
) -> float:
    weights = weights or [1.0] * len(values)
    floored = [max(value, epsilon) for value in values]
    if power == 0:
        mean = sum(w * math.log(v) for w, v in zip(weights, floored, strict=True)) / sum(
            weights
        )
        return math.exp(mean)
    return (
        sum(w * v**power for w, v in zip(weights, floored, strict=True)) / sum(weights)
    ) ** (1 / power)


def probability_accuracy(
    probs: list[list[float]], target: list[int], n_bins: int, epsilon: float
) -> dict[str, float]:
    """Compute the reported and measured means without cells of singularities, and the slope."""
    correct = sorted(row[label] for row, label in zip(probs, target, strict=True))
    incorrect = [
        p
        for row, label in zip(probs, target, strict=True)
        for j, p in enumerate(row)
        if j != label
    ]
    incorrect = [p for p in incorrect if correct[0] <= p <= correct[-1]]
    bins = min(n_bins, len(correct))
    edges = sorted(
        {correct[g * len(correct) // bins] for g in range(1, bins)} - {correct[0]}
    )
    n, m = [0] * (len(edges) + 1), [0] * (len(edges) + 1)
    for counts, values in ((n, correct), (m, incorrect)):
        for value in values:
            counts[sum(edge <= value for edge in edges)] += 1
    rates = [a / (a + b) for a, b in zip(n, m, strict=True)]
    result = {}
    for kind, values, weights in (
        ("reported", correct, None),
        ("measured", rates, [float(count) for count in n]),
    ):
        for name, power in (
            ("geometric_accuracy", 0.0),
            ("decisiveness", 1.0),
            ("robustness", -2 / 3),
        ):
            result[f"{kind}_{name}"] = generalized_mean(values, power, epsilon, weights)
    spread = result["reported_decisiveness"] - result["reported_robustness"]
    measured = result["measured_decisiveness"] - result["measured_robustness"]
    return {**result, "slope": measured / spread if spread > 1e-12 else math.nan}
