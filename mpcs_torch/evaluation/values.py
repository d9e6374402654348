"""Compute values, intervals and comparisons from the sums of rows in bins."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import combinations, product
from math import isnan

import torch
from torch import Tensor

from mpcs_torch.evaluation.bins import BITS, BinnedSums
from mpcs_torch.evaluation.chosen import ChosenMetrics
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.influence import (
    RATE,
    NotCompared,
    Units,
    adjusted,
    metric_difference,
    metric_interval,
    rate_ends,
    total_sums,
)
from mpcs_torch.evaluation.model_sums import ALL, LEADING, ModelSums, SumLayout
from mpcs_torch.evaluation.outcomes import AT_RISK, EVERY, Outcomes, group_rate
from mpcs_torch.evaluation.parts import parts_difference
from mpcs_torch.evaluation.ranks import rank_difference
from mpcs_torch.evaluation.reasons import Reason
from mpcs_torch.functional import Comparison, PairedDifference
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.comparison.significance import ComparedBy
from mpcs_torch.functional.concern.dangerous import DANGEROUS, severity_matrix
from mpcs_torch.functional.concern.expected_concern import cost_matrix
from mpcs_torch.functional.inputs.labels import WeightedSum
from mpcs_torch.functional.quality.scores import ClassRate
from mpcs_torch.metrics.register import FAMILIES, MetricEntry


def binned_scores(
    layout: SumLayout,
    numbers: Tensor,
    units: Units,
    class_names: list[str],
    without_sums: Mapping[str, tuple[float, Interval | Reason]],
    *,
    confusion: Tensor | None = None,
    intervals: bool,
) -> ClassifierScores:
    """Compute the values of metrics, and their intervals, from the sums of rows in bins.

    ``numbers`` (B, K) are the K sums of each bin, in the order of ``layout``. ``without_sums`` has each metric that is
    not a function of sums, with its value, and its interval or the reason why it has none. Without ``confusion`` (see
    `ClassifierScores`), rates of classes are left out.
    """
    chosen, rows = layout.chosen, numbers[:, LEADING - 1]
    entries = {entry.name: entry for entry in chosen.entries}
    outcomes = layout.binned_outcomes(numbers)
    class_groups = dict(chosen.concern.class_groups) if chosen.concern is not None else {}
    binned = {name: each for name, each in outcomes.items() if confusion is not None or name in class_groups}
    summed = {name: Outcomes(*(units.counts @ each for each in of)) for name, of in binned.items()}
    if confusion is not None and class_names[0] not in outcomes:  # too many classes to be counted in bins
        summed = {**_outcomes_from(confusion, chosen), **summed}
    values = {name: value for name, (value, _) in without_sums.items()}
    ends = {name: interval for name, (_, interval) in without_sums.items()}
    for name, measure, bins in layout.measure_sums(numbers):
        value = measure.value(total_sums(bins, units)).item()
        values[name] = round(value) if entries[name].is_count and units.weights is None else value
        if intervals:
            ends[name] = metric_interval(measure, bins, units)
    if "destructive_rate" in values and chosen.concern is None:
        ends["destructive_rate"] = Reason("no_method", text="without a concern, every error is dangerous")
    entries = {name: entry for name, entry in entries.items() if name in values}
    ends = {name: ends.get(name, no_method(entry)) for name, entry in entries.items() if intervals}
    return ClassifierScores(
        rows=round((units.counts @ units.rows).item()),
        entries=tuple(entries.values()),
        values={name: values[name] for name in entries},
        intervals={name: each for name, each in ends.items() if not isinstance(each, Reason)},
        without_interval={
            name: why for name, why in ends.items() if isinstance(why, Reason) and not isnan(values[name])
        },
        class_names=class_names,
        confusion=confusion,
        constant=None if confusion is None else _best_constant(chosen, confusion, class_names),
        class_intervals=_class_intervals(layout, rows, units, binned, summed) if intervals else {},
        outcomes=summed,
        harmless=() if layout.outcomes is None else layout.outcomes.harmless,
        clusters={name: each.clusters() for name, each in binned.items() if units.cluster is not None},
        refers=chosen.refers,
        decision_names=chosen.decision_names,
        weight=(units.counts @ rows).item(),
    )


def no_method(entry: MetricEntry) -> Reason:
    """Return the reason why a metric has no interval, as the register says it."""
    return Reason("no_method", text=entry.no_interval)


def _best_constant(chosen: ChosenMetrics, confusion: Tensor, class_names: Sequence[str]) -> tuple[str, float] | None:
    """Return the class that is cheapest to predict for all rows, and the cost per row; None if no metric needs it."""
    if not any(entry.undefined == "constant" for entry in chosen.entries):
        return None
    shares = confusion.sum(1).double() / confusion.sum()
    costs = shares @ cost_matrix(chosen.concern, len(confusion))[:, : len(confusion)]
    return class_names[int(costs.argmin())], costs.min().item()


def _outcomes_from(confusion: Tensor, chosen: ChosenMetrics) -> dict[str, Outcomes]:
    """Count the correct, missed, referred and dangerously decided rows of each class, given a confusion matrix."""
    size, counts = len(confusion), confusion.double()
    severity = severity_matrix(chosen.concern, size)[:, : counts.shape[1]]
    true = counts.sum(1)
    columns = Outcomes(
        true=true,
        right=counts.diagonal(),
        predicted=counts.sum(0)[:size],
        referred=counts[:, -1] if chosen.refers else 0 * true,
        missed=(counts * (severity > 0)).sum(1),
        dangerous=(counts * (severity == DANGEROUS)).sum(1),
    )
    by_class = zip(*(column.unbind() for column in columns), strict=True)
    return {name: Outcomes(*numbers) for name, numbers in zip(chosen.class_names, by_class, strict=True)}


def _class_intervals(
    layout: SumLayout, rows: Tensor, units: Units, binned: Mapping[str, Outcomes], summed: Mapping[str, Outcomes]
) -> dict[str, dict[str, Interval]]:
    """Return the intervals of rates as a nested dictionary: by class or group of classes, then by rate.

    Independent rows without weights need only the total counts, ``summed``; others need the counts in bins, ``binned``.
    """
    counted = summed if units.are_rows else binned
    outcomes = {name: each for name, each in counted.items() if name not in (EVERY, AT_RISK)}
    if not outcomes:
        return {}
    if units.are_rows:
        rows, units = (units.counts @ rows).unsqueeze(0), units._replace(counts=units.counts.new_ones(1))
        outcomes = {name: Outcomes(*(number.unsqueeze(0) for number in each)) for name, each in outcomes.items()}
    stacked = Outcomes(*(torch.stack(numbers, dim=1) for numbers in zip(*outcomes.values(), strict=True)))
    rates = stacked.rates(rows.unsqueeze(1), refers=layout.chosen.refers)
    parts, totals = (torch.stack(each, dim=2) for each in zip(*rates.values(), strict=True))
    ends = rate_ends(parts, totals.expand_as(parts), units).tolist()
    return {
        name: {rate: (low, high) for rate, (low, high) in zip(rates, of_class, strict=True) if not isnan(low)}
        for name, of_class in zip(outcomes, ends, strict=True)
    }


def compare(
    models: Mapping[str, ModelSums], cluster: str | None, *, is_default: bool
) -> tuple[list[Comparison], list[NotCompared]]:
    """Compare each pair of models by the requested metrics; return comparisons, and pairs that cannot be compared.

    With ``is_default``, no metrics were requested. Models are then compared by the metrics that the register marks for
    comparisons, and by the rates of groups of classes. Without a concern (costs of errors), metrics of concern equal
    the error rate, so they are left out.

    Raises:
        ValueError: If models have different rows.
    """
    tables = same_bins([sums.tables[ALL] for sums in models.values()])
    layout = next(iter(models.values())).layout
    chosen, units = layout.chosen, layout.units(tables[0].sums, cluster)
    by_model = {
        name: {metric: (measure, bins) for metric, measure, bins in layout.measure_sums(table.sums)}
        for name, table in zip(models, tables, strict=True)
    }
    rows = list[tuple[str, str, ComparedBy, PairedDifference | Reason]]()
    names = {entry.name for entry in chosen.entries}
    has_errors = bool({"accuracy", "misclassification_rate"} & names)
    by_family = sorted(chosen.entries, key=lambda entry: FAMILIES.index(entry.family))
    for entry in by_family if is_default else chosen.entries:
        is_repeated = has_errors and chosen.concern is None and entry.family == "concern"
        is_wanted = entry.compared_as if is_default else entry.direction and not entry.is_count
        if not is_wanted or is_repeated or entry.repeats in names:
            continue
        by = ComparedBy(entry.compared_as or entry.name, entry.direction == "min", metric=entry.name)
        for a, b in combinations(by_model, 2):
            if entry.name in by_model[a]:
                (measure, one), (_, other) = by_model[a][entry.name], by_model[b][entry.name]
                by = by._replace(is_rate=list(measure.row_ratios(total_sums(one, units))) == RATE)
                difference = metric_difference(measure, one, other, units)
                if entry.no_interval:
                    difference = no_method(entry)
            elif entry.is_measure:
                difference = no_method(entry)
            elif entry.is_of_ranks:
                ranks = [models[name].ranks[entry.name] for name in (a, b)]
                difference = rank_difference(*ranks, clusters=cluster is not None)
            else:
                first, second = (models[name].left_out(entry.name) for name in (a, b))
                difference = parts_difference(first, second, units.name)
            rows.append((a, b, by, difference))
    rows += _group_differences(layout, dict(zip(models, tables, strict=True)), units) if is_default else []
    return adjusted(rows)


def _group_differences(
    layout: SumLayout, tables: Mapping[str, BinnedSums], units: Units
) -> Iterator[tuple[str, str, ComparedBy, PairedDifference | Reason]]:
    """Compare models by the recall of each group of classes or, if rows may be referred, by the group's error rate.

    A group is left out if this rate is one of the chosen metrics, by which `compare` compares anyway.
    """
    chosen, rate = layout.chosen, group_rate(refers=layout.chosen.refers)
    groups = [] if chosen.concern is None else [name for name, _ in chosen.concern.class_groups]
    measured = {entry.of_class for entry in chosen.entries if entry.settings.get("rate") == rate}
    outcomes = {name: layout.binned_outcomes(table.sums) for name, table in tables.items()}
    for group, (a, b) in product(groups, combinations(tables, 2)):
        rates = (outcomes[name][group].rates(units.rows, refers=chosen.refers)[rate] for name in (a, b))
        one, other = (WeightedSum(*counts) for counts in rates)
        if one.weight.any() and group not in measured:
            name = f"{rate}[{group}]"
            by = ComparedBy(name, lower_is_better=rate == "error_rate", is_rate=True, metric=name)
            yield a, b, by, metric_difference(ClassRate(2), one, other, units)


def same_bins(tables: Sequence[BinnedSums]) -> list[BinnedSums]:
    """Copy ``tables``, and join bins until all copies have the same; raise a ValueError if their rows differ."""
    bits = min(table.bits or BITS for table in tables)
    first, *others = copies = [deepcopy(table) for table in tables]
    if bits < BITS:
        for table in copies:
            table.fold(bits)
    for other in others:
        if not first.ids.equal(other.ids) or not torch.allclose(first.sums[:, :LEADING], other.sums[:, :LEADING]):
            raise ValueError("models must have the same rows and labels, in the same parts, to be compared.")
    return copies
