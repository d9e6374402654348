"""Compare models by the metrics that were requested, or by those that the register marks for comparisons."""

from collections.abc import Iterator, Mapping
from itertools import combinations

from mpcs_torch.evaluation.outcomes import group_rate
from mpcs_torch.evaluation.paired_differences import NotCompared, adjusted
from mpcs_torch.evaluation.reasons import Reason
from mpcs_torch.evaluation.unit_values import SumsOfUnits, UnitValues
from mpcs_torch.functional import Comparison, PairedDifference
from mpcs_torch.functional.comparison.significance import ComparedBy
from mpcs_torch.metrics.metric_entry import FAMILIES


def compare(
    models: Mapping[str, UnitValues],
) -> tuple[list[Comparison], list[NotCompared]]:
    """Compare each pair of models, which have the same units; return comparisons, and pairs that cannot be compared.

    If no metrics were requested, models are compared by the metrics that the register marks for comparisons, and by the
    rates of groups of classes. Without a concern (costs of errors), metrics of concern equal the error rate, so they
    are left out.
    """
    first = next(iter(models.values()))
    measures = list(_metrics(first))
    if first.layout.chosen.is_default:
        measures += _rates_of_groups(first)
    differences = list[tuple[str, str, ComparedBy, PairedDifference | Reason]]()
    for by in measures:
        for a, b in combinations(models, 2):
            change = models[a].difference(models[b], by.metric)
            differences.append((a, b, by, change))
    return adjusted(differences)


def _metrics(first: UnitValues) -> Iterator[ComparedBy]:
    chosen = first.layout.chosen
    names = {entry.name for entry in chosen.entries}
    has_errors = bool({"accuracy", "misclassification_rate"} & names)
    entries = list(chosen.entries)
    if chosen.is_default:
        entries.sort(key=lambda entry: FAMILIES.index(entry.family))
    for entry in entries:
        is_repeated = has_errors and chosen.concern is None and entry.family == "concern"
        is_directed = entry.direction is not None and not entry.is_count
        is_wanted = bool(entry.compared_as) if chosen.is_default else is_directed
        if is_wanted and not is_repeated and entry.repeats not in names:
            measured = first.metrics[entry.name]
            yield ComparedBy(
                entry.compared_as or entry.name,
                entry.direction == "min",
                is_rate=isinstance(measured, SumsOfUnits) and measured.is_rate,
                metric=entry.name,
            )


def _rates_of_groups(first: UnitValues) -> Iterator[ComparedBy]:
    """Yield the recall of each group of classes or, if rows may be referred, the group's error rate.

    A group is left out if it has no rows, or if this rate is one of the chosen metrics.
    """
    chosen = first.layout.chosen
    outcomes = first.outcomes()
    rate = group_rate(refers=chosen.refers)
    measured = {
        entry.of_class for entry in chosen.entries if entry.settings.get("rate") == rate
    }
    if chosen.concern is None:
        return
    for group, _ in chosen.concern.class_groups:
        if group not in measured and outcomes[group].true.any():
            name = f"{rate}[{group}]"
            yield ComparedBy(
                name, lower_is_better=rate == "error_rate", is_rate=True, metric=name
            )
