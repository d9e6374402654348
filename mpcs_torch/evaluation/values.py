"""From sums in bins to values, intervals and comparisons."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from math import isnan

import torch
from torch import Tensor

from mpcs_torch.evaluation.bins import BITS, BinnedSums
from mpcs_torch.evaluation.chosen import ChosenMetrics
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.intervals import CONFIDENCE, RATE, Units, difference_of, interval_of, rate_interval, whole_of
from mpcs_torch.evaluation.left_out import LeftOut, difference_of_left_out
from mpcs_torch.evaluation.model_sums import ALL, OF_ROWS, ModelSums, SumLayout
from mpcs_torch.evaluation.scores import Interval
from mpcs_torch.functional import Comparison, PairedDifference
from mpcs_torch.functional.comparison.significance import Measure, with_verdicts
from mpcs_torch.functional.concern.expected_concern import constant_classes
from mpcs_torch.functional.quality.confusion import ClassCounts
from mpcs_torch.metrics.concern.expected_concern import cost_matrix
from mpcs_torch.metrics.one_class import ClassRate, RateSums


def scores_of(
    layout: SumLayout,
    numbers: Tensor,
    units: Units,
    class_names: list[str],
    others: Mapping[str, tuple[float, Interval | str]],
    *,
    confusion: Tensor | None = None,
    intervals: bool,
) -> ClassifierScores:
    """Return the values of the rows in bins, and their intervals.

    Args:
        layout: The metrics, and where their sums are.
        numbers: ``(B, K)`` the sums of each bin.
        units: The bins.
        class_names: C names.
        others: The values of the metrics that no sums determine, with intervals or why they have none.
        confusion: ``(C, C)``, int64, rows true classes: adds the intervals of the rates of classes.
        intervals: Whether values get intervals.
    """
    entries, has_classes = {entry.name: entry for entry in layout.chosen.entries}, confusion is not None
    values = {name: value for name, (value, _) in others.items()}
    intervals_or_reasons = {name: interval for name, (_, interval) in others.items()}
    for name, metric, bins in layout.of_metrics(numbers):
        value = metric.value_of(whole_of(bins, units)).item()
        values[name] = round(value) if entries[name].is_count and units.weights is None else value
        if intervals:
            intervals_or_reasons[name] = interval_of(metric, bins, units)
    if intervals and "destructive_rate" in values and layout.chosen.concern is None:
        intervals_or_reasons["destructive_rate"] = "without a concern, every error is dangerous"
    by_metric = {
        name: intervals_or_reasons.get(name, entry.no_interval) for name, entry in entries.items() if intervals
    }
    return ClassifierScores(
        rows=round((units.counts @ units.rows).item()),
        entries=layout.chosen.entries,
        values={name: values[name] for name in entries},
        intervals={name: ends for name, ends in by_metric.items() if not isinstance(ends, str)},
        without_interval={
            name: why for name, why in by_metric.items() if isinstance(why, str) and not isnan(values[name])
        },
        class_names=class_names,
        confusion=confusion,
        constant=None if confusion is None else _best_constant(layout.chosen, confusion, class_names),
        class_intervals=_class_intervals(layout, numbers, units, class_names if has_classes else ())
        if intervals
        else {},
        group_counts={name: units.counts @ counts for name, counts in layout.of_class_groups(numbers)},
        weight=(units.counts @ numbers[:, OF_ROWS - 1]).item(),
    )


def _best_constant(chosen: ChosenMetrics, confusion: Tensor, class_names: Sequence[str]) -> tuple[str, float] | None:
    """Return the class that costs least if it is always decided, and the cost per row; None if no metric needs it."""
    if not any(entry.undefined == "constant" for entry in chosen.entries):
        return None
    per_row = (confusion.sum(1).double() / confusion.sum()) @ constant_classes(
        cost_matrix(chosen.concern, len(confusion))
    )
    return class_names[int(per_row.argmin())], per_row.min().item()


def _class_intervals(
    layout: SumLayout, numbers: Tensor, units: Units, class_names: Sequence[str]
) -> dict[str, dict[str, Interval]]:
    """Return the intervals of the rates of each named class, and of each group of classes, by its name and rate."""
    counts = next((bins.counts for _, _, bins in layout.of_metrics(numbers) if isinstance(bins, ClassCounts)), None)
    of_classes = {} if counts is None else {name: counts[..., label] for label, name in enumerate(class_names)}
    by_class, weights = dict[str, dict[str, Interval]](), numbers[:, OF_ROWS - 1]
    for name, of_class in {**of_classes, **dict(layout.of_class_groups(numbers))}.items():
        right, true, predicted = of_class.unbind(-1)
        negatives = (weights - true).clamp(min=0)  # shares of 1/3 and 2/3 leave a rounding error
        rejected = torch.minimum((negatives - predicted + right).clamp(min=0), negatives)
        recall = rate_interval(right, true, units)
        ends = {
            "precision": rate_interval(right, predicted, units),
            "recall": recall,
            "specificity": rate_interval(rejected, negatives, units),
            "error_rate": None if recall is None else (1 - recall[1], 1 - recall[0]),
        }
        by_class[name] = {rate: interval for rate, interval in ends.items() if interval is not None}
    return by_class


def compare(models: Mapping[str, ModelSums], cluster: str | None) -> list[Comparison]:
    """Compare each pair of models by the metrics that the register names for it.

    Without a concern, dangerous errors and expected concern say what wrong decisions say, so they are left out: more
    comparisons would need lower p-values.

    Raises:
        ValueError: If models have different rows.
    """
    tables = _same_bins([sums.tables[ALL] for sums in models.values()])
    layout = next(iter(models.values())).layout
    chosen, units = layout.chosen, layout.units(tables[0].sums, cluster)
    by_model = {
        name: {metric: (made, bins) for metric, made, bins in models[name].layout.of_metrics(table.sums)}
        for name, table in zip(models, tables, strict=True)
    }
    rows = list[tuple[str, str, Measure, PairedDifference]]()
    names = {entry.name for entry in chosen.entries}
    has_errors = any(entry.section == "main" and entry.takes == "decisions" for entry in chosen.entries)
    for entry in chosen.entries:
        is_repeated = has_errors and chosen.concern is None and entry.section == "concern"
        if not entry.compared_as or is_repeated or entry.repeats in names:
            continue
        for a, b in combinations(by_model, 2):
            if entry.name not in by_model[a]:
                measure = Measure(entry.compared_as, entry.direction == "min", metric=entry.name)
                one, other = (models[name].left_out(entry.name) for name in (a, b))
                if isinstance(one, LeftOut) and isinstance(other, LeftOut):
                    apart = difference_of_left_out(one, other)
                    rows += [] if apart is None else [(a, b, measure, apart)]
                continue
            (metric, one), (_, other) = by_model[a][entry.name], by_model[b][entry.name]
            is_rate = list(metric.row_ratios(whole_of(one, units))) == RATE
            measure = Measure(entry.compared_as, entry.direction == "min", is_rate, entry.name)
            rows.append((a, b, measure, difference_of(metric, one, other, units)))
    rows += _recall_of_groups(models, tables, units)
    return with_verdicts(rows, CONFIDENCE) if rows else []


def _recall_of_groups(
    models: Mapping[str, ModelSums], tables: Sequence[BinnedSums], units: Units
) -> Iterator[tuple[str, str, Measure, PairedDifference]]:
    """Compare the recall of each group of classes, unless it is one of the metrics."""
    layout = next(iter(models.values())).layout
    known = {entry.of for entry in layout.chosen.entries if entry.settings.get("rate") == "recall"}
    by_model = {name: dict(layout.of_class_groups(table.sums)) for name, table in zip(models, tables, strict=True)}
    for group, (a, b) in product(layout.class_groups, combinations(by_model, 2)):
        name = f"recall[{group}]"
        if by_model[a][group][:, 1].any() and group not in known:
            one, other = (RateSums(*by_model[model][group][:, :2].unbind(1)) for model in (a, b))
            measure = Measure(name, lower_is_better=False, is_rate=True, metric=name)
            yield a, b, measure, difference_of(ClassRate(2, [1]), one, other, units)


def _same_bins(tables: Sequence[BinnedSums]) -> list[BinnedSums]:
    """Return copies that are folded to the same bins."""
    bits = min(table.bits or BITS for table in tables)
    copies = []
    for table in tables:
        copy = BinnedSums()
        copy.merge(table)
        if bits < BITS:
            copy.fold(bits)
        copies.append(copy)
    first = copies[0]
    for other in copies[1:]:
        if not first.ids.equal(other.ids) or not torch.allclose(first.sums[:, [0, 2, 3]], other.sums[:, [0, 2, 3]]):
            raise ValueError("models must have the same rows and labels, in the same parts, to be compared.")
    return copies
