"""Compute the scores of a classifier on some rows, from the units of these rows."""

from math import isnan

from torch import Tensor

from mpcs_torch.evaluation.chosen import ChosenMetrics
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.outcomes import AT_RISK, EVERY, Outcomes
from mpcs_torch.evaluation.reasons import Reason
from mpcs_torch.evaluation.unit_values import UnitValues
from mpcs_torch.functional.concern.dangerous import DANGEROUS, severity_matrix
from mpcs_torch.functional.concern.expected_concern import cost_matrix


def scores_of(of_units: UnitValues, *, confusion: Tensor | None = None, intervals: bool) -> ClassifierScores:
    """Compute the values of metrics, and their intervals. Without ``confusion``, rates of classes are left out."""
    chosen, units = of_units.layout.chosen, of_units.units
    measured = of_units.measured(intervals=intervals)
    if "destructive_rate" in measured and chosen.concern is None:
        value, _ = measured["destructive_rate"]
        measured["destructive_rate"] = value, Reason("no_method", text="without a concern, every error is dangerous")
    entries = tuple(entry for entry in chosen.entries if entry.name in measured)
    values = {entry.name: measured[entry.name][0] for entry in entries}
    if units.weights is None:
        values |= {entry.name: round(values[entry.name]) for entry in entries if entry.is_count}
    ends = {entry.name: measured[entry.name][1] for entry in entries if intervals}
    class_groups = dict(chosen.concern.class_groups) if chosen.concern is not None else {}
    outcomes = of_units.outcomes()
    counted = {name: each for name, each in outcomes.items() if confusion is not None or name in class_groups}
    summed = {name: Outcomes(*(units.counts @ each for each in of)) for name, of in counted.items()}
    if confusion is not None and chosen.class_names[0] not in outcomes:  # too many classes to be counted in units
        summed = {**_outcomes_from(confusion, chosen), **summed}
    named = {name: each for name, each in summed.items() if name not in (EVERY, AT_RISK)}
    rates = of_units.rates(named) if intervals else {}
    return ClassifierScores(
        rows=round((units.counts @ units.rows).item()),
        entries=entries,
        values=values,
        intervals={name: each for name, each in ends.items() if not isinstance(each, Reason)},
        without_interval={
            name: each for name, each in ends.items() if isinstance(each, Reason) and not isnan(values[name])
        },
        class_names=list(chosen.class_names),
        confusion=confusion,
        constant=None if confusion is None else _best_constant(chosen, confusion),
        class_intervals={
            name: {rate: ends for rate, (_, ends) in of_class.items() if not isinstance(ends, Reason)}
            for name, of_class in rates.items()
        },
        outcomes=summed,
        harmless=() if of_units.layout.outcomes is None else of_units.layout.outcomes.harmless,
        clusters={name: each.clusters() for name, each in counted.items() if units.cluster is not None},
        refers=chosen.refers,
        decision_names=chosen.decision_names,
        weight=(units.counts @ units.sizes).item(),
        units=of_units if intervals and not of_units.crossed else None,
    )


def _best_constant(chosen: ChosenMetrics, confusion: Tensor) -> tuple[str, float] | None:
    """Return the class that is cheapest to predict for all rows, and the cost per row; None if no metric needs it."""
    if not any(entry.undefined == "constant" for entry in chosen.entries):
        return None
    shares = confusion.sum(1).double() / confusion.sum()
    costs = shares @ cost_matrix(chosen.concern, len(confusion))[:, : len(confusion)]
    return chosen.class_names[int(costs.argmin())], costs.min().item()


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
