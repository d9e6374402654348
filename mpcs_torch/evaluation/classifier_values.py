"""Compute the scores of a classifier on some rows, from the units of these rows."""

import torch
from torch import Tensor

from mpcs_torch.evaluation.chosen import ChosenMetrics
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.crossed_clusters import Ends
from mpcs_torch.evaluation.outcomes import AT_RISK, EVERY, Outcomes
from mpcs_torch.evaluation.reasons import Reason
from mpcs_torch.evaluation.scores import with_reasons
from mpcs_torch.evaluation.unit_values import UnitValues
from mpcs_torch.functional.concern.dangerous import DANGEROUS, severity_matrix
from mpcs_torch.functional.concern.expected_concern import cost_matrix


def scores_of(
    of_units: UnitValues, *, confusion: Tensor | None = None, intervals: bool
) -> ClassifierScores:
    """Compute the values of metrics, and their intervals. Without ``confusion``, rates of classes are left out."""
    chosen = of_units.layout.chosen
    units = of_units.units
    measured = of_units.measured(intervals=intervals)
    if intervals and "destructive_rate" in measured and chosen.concern is None:
        value, _ = measured["destructive_rate"]
        reason = Reason("no_method", text="without a concern, every error is dangerous")
        measured["destructive_rate"] = value, reason
    entries = tuple(entry for entry in chosen.entries if entry.name in measured)
    in_order = dict[str, tuple[float, Ends]]()
    for entry in entries:
        value, ends = measured[entry.name]
        is_whole_number = entry.is_count and units.weights is None
        in_order[entry.name] = round(value) if is_whole_number else value, ends
    outcomes = of_units.outcomes()
    counted = dict[str, Outcomes]()
    if confusion is not None:
        counted |= outcomes
    elif chosen.concern is not None:
        for name, _ in chosen.concern.class_groups:
            if name in outcomes:
                counted[name] = outcomes[name]
    summed = dict[str, Outcomes]()
    for name, by_unit in counted.items():
        summed[name] = by_unit.mapped(lambda numbers: units.counts @ numbers)
    if confusion is not None and chosen.class_names[0] not in outcomes:
        # There are too many classes to be counted in units.
        summed = {**_outcomes_from(confusion, chosen), **summed}
    named = {name: each for name, each in summed.items() if name not in (EVERY, AT_RISK)}
    clusters = dict[str, Outcomes]()
    if units.cluster is not None:
        clusters = {name: each.clusters() for name, each in counted.items()}
    counter = of_units.layout.outcomes
    return ClassifierScores(
        rows=round((units.counts @ units.rows).item()),
        entries=entries,
        **with_reasons(in_order),
        class_names=list(chosen.class_names),
        confusion=confusion,
        constant=None if confusion is None else _best_constant(chosen, confusion),
        class_intervals=of_units.class_intervals(named) if intervals else {},
        outcomes=summed,
        without_danger=() if counter is None else counter.without_danger,
        clusters=clusters,
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
    size = len(confusion)
    counts = confusion.double()
    severity = severity_matrix(chosen.concern, size)[:, : counts.shape[1]]
    true = counts.sum(1)
    of_classes = Outcomes(  # (C,) each
        true=true,
        right=counts.diagonal(),
        predicted=counts.sum(0)[:size],
        referred=counts[:, -1] if chosen.refers else 0 * true,
        missed=(counts * (severity > 0)).sum(1),
        dangerous=(counts * (severity == DANGEROUS)).sum(1),
    )
    by_class = torch.stack([*of_classes], dim=1)
    return {
        name: Outcomes(*numbers.unbind())
        for name, numbers in zip(chosen.class_names, by_class, strict=True)
    }
