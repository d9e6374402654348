"""The order of the sums of a unit: rows, labels and weights, the sums of each metric, and the counts of outcomes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.evaluation.chosen import ChosenMetrics, MetricInputs
from mpcs_torch.evaluation.influence import IndependentUnits
from mpcs_torch.evaluation.outcomes import OutcomeCounter, Outcomes
from mpcs_torch.evaluation.parts import ValueOfParts
from mpcs_torch.evaluation.reasons import Reason
from mpcs_torch.evaluation.unit_sums import LEADING
from mpcs_torch.functional.inputs.labels import Bins
from mpcs_torch.functional.measure import Measure
from mpcs_torch.functional.quality.roc_area import RocArea
from mpcs_torch.metrics.shared_sums import SharedSums


class SumLayout:
    """The order of the K sums of a unit: rows, labels, weights, then each metric's sums, then outcome counts."""

    def __init__(self, chosen: ChosenMetrics) -> None:
        self.chosen = chosen
        groups = chosen.shared_sums()
        of_sums = [group for group in groups if isinstance(group.first, Measure)]
        of_ranks = [group for group in groups if isinstance(group.first, RocArea)]
        self.ranks = {
            name: measure for group in of_ranks for name, measure in group.members.items()
        }
        self.others = [
            group for group in groups if not isinstance(group.first, Measure | RocArea)
        ]
        """Metrics that are no measures."""
        self.measures = [group for group in of_sums if not group.first.is_wide]
        self.wide = [group for group in of_sums if group.first.is_wide]
        """Measures whose sums are kept for all rows of a group together."""
        counts_classes = chosen.has_shares or not chosen.is_soft
        self.outcomes = (
            OutcomeCounter(chosen.class_names, chosen.concern, refers=chosen.refers)
            if counts_classes
            else None
        )
        self.no_methods = {
            entry.name: Reason("no_method", text=entry.no_interval)
            for entry in chosen.entries
            if entry.no_interval
        }
        """The reason why a metric never has an interval, for each metric that never has one."""

    def sums(self, inputs: MetricInputs, bins: Bins) -> Tensor:
        """Return the K sums of the rows in each of U ``bins``: (U, K), float64."""
        rows = inputs.rows
        ones = torch.ones(len(inputs.rows.ids), dtype=torch.float64)
        labels = rows.target.double()
        # Soft labels become one number, which shows whether two models have the same labels.
        if rows.target.ndim == 2:
            numbers_of_classes = 1 + torch.arange(labels.shape[1], dtype=torch.float64)
            labels = labels @ numbers_of_classes
        weights = ones if rows.weights is None else rows.weights
        numbers = [
            bins.sum(torch.stack([ones, labels, weights], dim=1)),
            *_sums(self.measures, inputs, bins),
        ]
        if self.outcomes is not None:
            places, decisions, target, of_classes = inputs.arguments("decisions")
            flags = self.outcomes.flags(decisions, target)
            if of_classes is not None:
                flags = flags * of_classes.unsqueeze(1)
            numbers.append(bins.at(places).sum(flags))
        return torch.cat(numbers, dim=1)

    def wide_sums(self, inputs: MetricInputs, bins: Bins) -> Tensor:
        """Return the W sums of wide measures for the rows in each of U ``bins``: (U, W), float64."""
        return torch.cat(_sums(self.wide, inputs, bins), dim=1)

    def measure_sums(self, numbers: Tensor) -> Iterator[tuple[str, Measure, Any]]:
        """Yield the name of each measure, the measure, and its sums, a ``sums_type`` of (U, ...), given ``numbers``."""
        for group, sums in _named(self.measures, numbers[:, LEADING:]):
            for name, measure in group.members.items():
                yield name, measure, sums

    def wide_values(self, numbers: Tensor, unit: str) -> dict[str, ValueOfParts]:
        """Return the values of wide measures, which have no intervals, given their sums (W,).

        ``unit`` is the word for rows or clusters in reasons.
        """
        values = dict[str, ValueOfParts]()
        for group, sums in _named(self.wide, numbers):
            computed = group.values(sums)
            for entry in group.entries:
                value = entry.number(computed[entry.name])
                values[entry.name] = ValueOfParts(value, self.no_methods[entry.name], unit)
        return values

    def probability_means(self, numbers: Tensor) -> dict[str, Any]:
        """Return the "reported" and the "measured" probabilities, given the sums (W,) of wide measures of all rows."""
        group, sums = next(_named(self.wide, numbers))
        return {
            "reported": group.first.reported(sums),
            "measured": group.first.measured(sums),
        }

    def outcomes_of(self, numbers: Tensor) -> Mapping[str, Outcomes]:
        """Return the outcomes in each unit, as tensors (U,), by class or group of classes, from ``numbers`` (U, K)."""
        if self.outcomes is None or not self.outcomes.width:
            return {}
        return self.outcomes.named(numbers[:, -self.outcomes.width :])

    def units(self, numbers: Tensor, cluster: str | None) -> IndependentUnits:
        """Return the sizes and weights of units, given their sums ``numbers``, (U, K)."""
        rows, _, weights = numbers[:, :LEADING].unbind(1)
        are_unequal = self.chosen.weighs and not weights.equal(rows)
        has_weights = self.chosen.has_shares or are_unequal
        return IndependentUnits(
            rows, torch.ones_like(rows), cluster, weights if has_weights else None
        )


def _sums(groups: Sequence[SharedSums], inputs: MetricInputs, bins: Bins) -> list[Tensor]:
    """Return the sums of the measures of each group for the rows in each of U ``bins``: (U, ...), float64."""
    numbers = list[Tensor]()
    for group in groups:
        places, preds, target, weights = inputs.arguments(group.takes)
        further = [] if weights is None else [weights]
        rows = group.first.rows(preds, target, *further)
        numbers.append(group.first.sums(rows, bins.at(places)).double())
    return numbers


def _named(
    groups: Sequence[SharedSums], numbers: Tensor
) -> Iterator[tuple[SharedSums, Any]]:
    """Yield the groups of measures, each with its named sums, given their sums (..., K), one group after the other."""
    place = 0
    for group in groups:
        width = group.first.width
        yield group, group.first.named(numbers[..., place : place + width])
        place += width
