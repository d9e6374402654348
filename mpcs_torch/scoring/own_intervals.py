"""The intervals of all metrics of one file, and why some have none."""

from collections.abc import Iterator, Mapping
from math import isfinite

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional import Resamples
from mpcs_torch.scoring.class_intervals import drawn_class_intervals, exact_class_intervals
from mpcs_torch.scoring.count_intervals import (
    Counts,
    Interval,
    cost_interval,
    derived_intervals,
    drawn_intervals,
    exact_intervals,
    multinomial_counts,
)
from mpcs_torch.scoring.main_measures import Samples
from mpcs_torch.scoring.row_means import MOST_CLASSES, RowMeans
from mpcs_torch.scoring.scores import Scores

RESAMPLES, FEWEST = 1000, 200
DRAWS = 4_000_000
"""Cells drawn in all, unless that is fewer than `FEWEST` resamples: about a third of a second."""
EXPECTED_COST = "expected_concern"
OF_BINS = ("measured_geometric_accuracy", "measured_decisiveness", "measured_robustness", "calibration_slope")
"""A resample has noisier bins than the rows, so its values are biased, and a bootstrap of them does not hold."""


def own_intervals(
    scores: Scores, concern: ConcernSpec | None, means: RowMeans | None, resamples: int | None, group: int | None = None
) -> Scores:
    """Add the intervals of independent rows: none of them takes longer for more rows, but for those of means.

    Args:
        scores: The values of a file, or of a group of its rows.
        concern: Which errors matter.
        means: What was added up of its rows; None for a confusion matrix.
        resamples: The number of resamples, at least 1. Default: as many as are quick, from 200 to 1000.
        group: The code of the group in ``means``. Default: the scores are of a whole file, whose classes have intervals
            too.
    """
    found = exact_intervals(scores.values, scores.rows)
    if concern is None:
        found.pop("destructive_rate", None)  # always 1
    if scores.confusion is not None:
        number = quick_resamples(scores.confusion) if resamples is None else resamples
        found |= drawn_intervals(scores.values, multinomial_counts(scores.confusion, number), scores.rows)
        if EXPECTED_COST in scores.values and len(scores.confusion) <= MOST_CLASSES:
            from mpcs_torch.metrics.concern.expected_concern import cost_matrix

            costs = cost_matrix(concern, len(scores.confusion))
            interval = cost_interval(scores.confusion, costs, number)
            found |= {} if interval is None else {EXPECTED_COST: interval}
            if concern is None and EXPECTED_COST in found and "least_concern_cost" in scores.values:
                found["least_concern_cost"] = found[EXPECTED_COST]  # without a concern, both decide alike
    if means is not None:
        found |= {**means.intervals(scores.values, group or 0), **means.cost_interval(group or 0)}
    if group is None and scores.confusion is not None:
        scores = scores._replace(class_intervals=exact_class_intervals(scores.confusion, scores.class_names))
    return with_found(scores, found)


def with_found(scores: Scores, found: Mapping[str, Interval]) -> Scores:
    """Add those intervals that belong to a value, in the order of the values."""
    return scores._replace(
        intervals={name: found[name] for name, value in scores.values.items() if name in found and isfinite(value)}
    )


def clustered_intervals(
    scores: Scores,
    means: RowMeans,
    samples: Samples,
    labels: Tensor,
    drawn: Resamples,
    clusters: Tensor,
    of_main: Mapping[str, Interval],
    group: int | None = None,
) -> Scores:
    """Add the intervals of one model from resamples of whole clusters.

    Args:
        scores: Its values.
        means: What was added up of the rows of each cluster.
        samples: Of its rows.
        labels: ``(N,)``.
        drawn: The resamples.
        clusters: ``(N,)``: the clusters, numbered from 0 on.
        of_main: The intervals of its main metrics.
        group: The code of the group of these rows in ``means``. Default: all rows, whose classes have intervals too.
    """
    decisions, number = samples.decisions, int(clusters.max()) + 1
    first = clusters.new_full((number,), len(clusters)).scatter_reduce(0, clusters, torch.arange(len(clusters)), "amin")
    of_clusters: list[Tensor] = []
    counted: list[Counts] = []

    def batches() -> Iterator[Counts]:
        is_right = decisions == labels
        classes = len(scores.class_names)
        for weights in drawn:
            of_clusters.append(weights[:, first])
            held = weights.double()
            none = held.new_zeros(len(held), classes)
            counts = Counts(
                none.clone().index_add_(1, labels[is_right], held[:, is_right]),
                none.clone().index_add_(1, labels, held),
                none.clone().index_add_(1, decisions, held),
            )
            counted.extend([counts] if group is None else [])
            yield counts

    found = drawn_intervals(scores.values, batches(), number)
    if group is None:
        scores = scores._replace(class_intervals=drawn_class_intervals(counted, scores.class_names, number))
    return complete(scores, {**found, **means.clustered(torch.cat(of_clusters), group or 0), **of_main})


def complete(scores: Scores, found: Mapping[str, Interval]) -> Scores:
    """Add intervals, and those that they determine, such as that of the number of dangerous errors."""
    return with_found(scores, derived_intervals(found, scores.values, scores.rows))


def without_interval(scores: Scores) -> dict[str, str]:
    """Return why metrics have no interval, by metric; empty if none has one."""
    if not scores.intervals:
        return {}
    bare = [name for name, value in scores.values.items() if isfinite(value) and name not in scores.intervals]
    of_bins = "computed from bins, which resampling would make noisier"
    other = "not enough rows, errors or samples of a class to judge by, or none is known"
    found = {name: of_bins if name in OF_BINS else other for name in bare}
    if "destructive_rate" in found and not scores.has_concern:
        found["destructive_rate"] = "without a concern, every error is dangerous"
    return found


def reasons_without_interval(scores: Scores) -> dict[str, list[str]]:
    """Return the metrics that have no interval, by reason."""
    found: dict[str, list[str]] = {}
    for name, reason in without_interval(scores).items():
        found.setdefault(reason, []).append(name)
    return found


def quick_resamples(confusion: Tensor) -> int:
    """Return how many matrices of as many cells are drawn quickly."""
    return min(RESAMPLES, max(FEWEST, DRAWS // max(1, int((confusion > 0).sum()))))
