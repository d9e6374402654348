"""From sums in bins to values, intervals and comparisons."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from math import isnan

import torch
from torch import Tensor

from mpcs_torch.evaluation.bins import BITS, BinnedSums
from mpcs_torch.evaluation.chosen import ChosenMetrics
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.intervals import (
    RATE,
    NotCompared,
    Reason,
    Units,
    adjusted,
    difference_of,
    interval_of,
    rate_interval,
    whole_of,
)
from mpcs_torch.evaluation.left_out import LeftOut, difference_of_left_out
from mpcs_torch.evaluation.model_sums import ALL, OF_ROWS, ModelSums, SumLayout
from mpcs_torch.evaluation.outcomes import AT_RISK, EVERY, Outcomes, rate_of_groups
from mpcs_torch.functional import Comparison, PairedDifference
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.comparison.significance import Measure
from mpcs_torch.functional.concern.dangerous import DANGEROUS, severity_of
from mpcs_torch.functional.concern.expected_concern import constant_classes, cost_matrix
from mpcs_torch.functional.inputs.labels import WeightedSum
from mpcs_torch.metrics.one_class import ClassRate


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
        confusion: ``(C, C)`` or ``(C, C + A + 1)``, rows true classes: adds the rates of classes.
        intervals: Whether values get intervals.
    """
    entries = {entry.name: entry for entry in layout.chosen.entries}
    outcomes, rows = layout.outcomes_of(numbers), numbers[:, OF_ROWS - 1]
    of_groups = dict(layout.chosen.concern.class_groups) if layout.chosen.concern is not None else {}
    counted = {name: of for name, of in outcomes.items() if confusion is not None or name in of_groups}
    summed = {name: Outcomes(*(units.counts @ each for each in of)) for name, of in counted.items()}
    if confusion is not None and class_names[0] not in outcomes:
        summed = {**_outcomes_of(confusion, layout.chosen), **summed}
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
        class_intervals=_class_intervals(layout, numbers, units, counted, summed) if intervals else {},
        outcomes=summed,
        harmless=() if layout.outcomes is None else layout.outcomes.harmless,
        clusters={name: of.clusters() for name, of in counted.items() if units.cluster is not None},
        refers=layout.chosen.refers,
        decision_names=layout.chosen.decision_names,
        weight=(units.counts @ rows).item(),
    )


def _best_constant(chosen: ChosenMetrics, confusion: Tensor, class_names: Sequence[str]) -> tuple[str, float] | None:
    """Return the class that costs least if it is always decided, and the cost per row; None if no metric needs it."""
    if not any(entry.undefined == "constant" for entry in chosen.entries):
        return None
    per_row = (confusion.sum(1).double() / confusion.sum()) @ constant_classes(
        cost_matrix(chosen.concern, len(confusion))
    )
    return class_names[int(per_row.argmin())], per_row.min().item()


def _outcomes_of(confusion: Tensor, chosen: ChosenMetrics) -> dict[str, Outcomes]:
    """Return the outcomes of classes that are too many to be counted in bins."""
    size, counts = len(confusion), confusion.double()
    severity = severity_of(chosen.concern, size)[:, : counts.shape[1]]
    true, right, columns = counts.sum(1), counts.diagonal(), counts.sum(0)[:size]
    referred = counts[:, -1] if chosen.refers else 0 * true
    missed, dangerous = ((counts * is_counted).sum(1) for is_counted in (severity > 0, severity == DANGEROUS))
    parts = zip(*(each.unbind() for each in (true, right, columns, referred, missed, dangerous)), strict=True)
    return {name: Outcomes(*of) for name, of in zip(chosen.class_names, parts, strict=True)}


def _class_intervals(
    layout: SumLayout, numbers: Tensor, units: Units, counted: Mapping[str, Outcomes], summed: Mapping[str, Outcomes]
) -> dict[str, dict[str, Interval]]:
    """Return the intervals of the rates of each class, and of each group of classes, by its name and rate.

    Classes that are not counted in bins have some if rows are independent.
    """
    by_class, rows, refers = dict[str, dict[str, Interval]](), numbers[:, OF_ROWS - 1], layout.chosen.refers
    one = units._replace(counts=torch.ones(1, dtype=torch.float64))
    for name, of in summed.items():
        if name in counted:
            rates = counted[name].rates(rows, refers=refers)
        else:
            rates = Outcomes(*(each.unsqueeze(0) for each in of)).rates(
                (units.counts @ rows).unsqueeze(0), refers=refers
            )
        if name not in (EVERY, AT_RISK) and (name in counted or units.are_rows):
            at = units if name in counted else one
            ends = {rate: rate_interval(part, whole, at) for rate, (part, whole) in rates.items()}
            by_class[name] = {rate: interval for rate, interval in ends.items() if interval is not None}
    return by_class


def compare(
    models: Mapping[str, ModelSums], cluster: str | None, *, is_default: bool
) -> tuple[list[Comparison], list[NotCompared]]:
    """Compare each pair of models by the metrics that were named, and say why there are no others.

    Of the default metrics, by those that the register names for it, and by groups of classes.

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
    rows = list[tuple[str, str, Measure, PairedDifference | Reason]]()
    names = {entry.name for entry in chosen.entries}
    has_errors = any(entry.section == "main" and entry.takes == "decisions" for entry in chosen.entries)
    for entry in chosen.entries:
        is_repeated = has_errors and chosen.concern is None and entry.section == "concern"
        is_wanted = entry.compared_as if is_default else entry.direction and not entry.is_count
        if not is_wanted or is_repeated or entry.repeats in names:
            continue
        measure = Measure(entry.compared_as or entry.name, entry.direction == "min", metric=entry.name)
        for a, b in combinations(by_model, 2):
            if entry.name not in by_model[a]:
                one, other = (models[name].left_out(entry.name) for name in (a, b))
                if not isinstance(one, LeftOut) or not isinstance(other, LeftOut):
                    rows.append(
                        (a, b, measure, next(each[1] for each in (one, other) if not isinstance(each, LeftOut)))
                    )
                else:
                    rows.append((a, b, measure, difference_of_left_out(one, other, units.name)))
                continue
            (metric, one), (_, other) = by_model[a][entry.name], by_model[b][entry.name]
            measure = measure._replace(is_rate=list(metric.row_ratios(whole_of(one, units))) == RATE)
            difference = entry.no_interval or difference_of(metric, one, other, units)
            rows.append((a, b, measure, difference))
    rows += _rates_of_groups(models, tables, units) if is_default else []
    return adjusted(rows)


def _rates_of_groups(
    models: Mapping[str, ModelSums], tables: Sequence[BinnedSums], units: Units
) -> Iterator[tuple[str, str, Measure, PairedDifference | Reason]]:
    """Compare the recall of each group of classes, or what is missed where rows may be referred, if no metric does."""
    chosen = next(iter(models.values())).layout.chosen
    groups = dict[str, object]() if chosen.concern is None else dict(chosen.concern.class_groups)
    rate = rate_of_groups(refers=chosen.refers)
    known = {entry.of for entry in chosen.entries if entry.settings.get("rate") == rate}
    outcomes = {
        name: sums.layout.outcomes_of(table.sums) for (name, sums), table in zip(models.items(), tables, strict=True)
    }
    for group, (a, b) in product(groups, combinations(models, 2)):
        rates = (outcomes[name][group].rates(units.rows, refers=chosen.refers)[rate] for name in (a, b))
        one, other = (WeightedSum(*counts) for counts in rates)
        if one.weight.any() and group not in known:
            name = f"{rate}[{group}]"
            measure = Measure(name, lower_is_better=rate == "error_rate", is_rate=True, metric=name)
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
