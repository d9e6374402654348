"""The influence of parts of the rows on the value of any Metric, from its values without each part.

The values without some parts show the influence of each part (the delete-a-group jackknife: Shao and Wu, A general
theory for jackknife variance estimation, Annals of Statistics 17, 1989). Metrics for which this fails get no interval.
To detect them, parts are joined into at most 32 folds. The method fails if

- few folds make up the whole spread, as for a maximum;
- the effect of leaving out two folds differs from the sum of both effects, as for quantiles and values at thresholds;
- the mean of the values on a quarter of the rows differs from the value, as for binned calibration errors.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.evaluation.influence import Estimate, IndependentUnits, Influences, Unknown
from mpcs_torch.evaluation.intervals_and_bounds import standard_error
from mpcs_torch.evaluation.paired_differences import difference
from mpcs_torch.evaluation.reasons import Code, Reason
from mpcs_torch.functional import PairedDifference
from mpcs_torch.functional.comparison.confidence_intervals import MIN_UNITS

FOLDS = 32
"""The maximum number of folds. A fold must be large enough for a median to change when the fold is left out."""
# Beyond these three limits, 95 % intervals of medians, thresholds, maxima and calibration errors contain the true value
# in only 0 to 90 % of cases (`benchmarks/any_metric.py`).
MIN_EFFECTIVE = 0.25
"""The minimum share of folds with an effect; about 0.6 for smooth metrics."""
MAX_STEPS = 0.01
"""The maximum squared error for pairs of folds, relative to the squared spread; about 0.001 for smooth metrics."""
MAX_BIAS = 1.0
"""The maximum bias, in standard errors; about 0.1 to 0.4 for smooth metrics."""
Limits = tuple[float | None, float | None]


class LeftOut(NamedTuple):
    """The values of a metric: with all rows, and with parts of the rows left out. The shape of a value is (...)."""

    whole: Tensor
    """(...): the value with all rows."""
    alone: Tensor
    """(P, ...): the values without each of P parts."""
    singles: Tensor
    """(G, ...): the values without each of G folds (sets of parts)."""
    pairs: Tensor
    """(G, ...): for each fold, the value without this fold and the next one."""
    quarters: Tensor
    """(...): the mean of four values, each computed from a quarter of the parts."""

    def mapped(self, function: Callable[..., Tensor], *others: "LeftOut") -> "LeftOut":
        """Apply ``function`` to each field of this `LeftOut` and the same field of ``others``; return the results."""
        results = [function(*values) for values in zip(self, *others, strict=True)]
        return LeftOut(*results)


class ValueOfParts(NamedTuple):
    """The value of a scalar metric that is not a function of sums, and how parts of the rows change it."""

    number: float
    left_out: LeftOut | Reason
    """The values without parts of the rows, or the reason why they are not known."""
    unit: str
    """The word for rows or clusters in reasons."""
    limits: Limits = (None, None)
    """The lowest and the highest possible value; None means no limit."""

    def value(self) -> float:
        """Return the value."""
        return self.number

    def estimate(self) -> Estimate:
        """Return the value with the influence of each part."""
        if isinstance(self.left_out, Reason):
            return Unknown(self.number, self.left_out, has_range=False)
        return of_parts(self.left_out, self.unit, self.limits)

    def difference(self, other: "ValueOfParts") -> PairedDifference | Reason:
        """Return the other model's value minus this one's, with interval and p-value, or the reason for none."""
        if isinstance(self.left_out, Reason):
            return self.left_out
        if isinstance(other.left_out, Reason):
            return other.left_out
        change = of_parts(other.left_out.mapped(torch.sub, self.left_out), self.unit)
        if isinstance(change, Unknown):
            return change.reason
        before = Influences(self.number, torch.zeros_like(change.of_units), change.units)
        return difference(before, change._replace(value=other.number))


def of_parts(left: LeftOut, unit: str, limits: Limits = (None, None)) -> Estimate:
    """Return the value with the influence of each part; ``unit`` is the word for rows or clusters in reasons."""
    value = left.whole.item()
    parts = len(left.alone)
    folds = len(left.singles)
    if parts < MIN_UNITS:
        return Unknown(value, Reason("few_units", unit, MIN_UNITS), has_range=False)
    if not all(bool(each.isfinite().all()) for each in left):
        return Unknown(value, Reason("missing_without_some", unit), has_range=False)
    ones = torch.ones(parts, dtype=torch.float64)
    units = IndependentUnits(ones, ones, None, word=unit)
    of_units = (parts - 1) / parts * (left.alone.mean() - left.alone)
    spread = standard_error(of_units, units)
    change = left.singles - left.singles.mean()
    alone = left.singles - left.whole
    # The effect of leaving out two folds. The factor makes it exact for means, where the other rows gain weight.
    both = (alone + alone.roll(-1)) * (folds - 1) / (folds - 2)
    unexplained = left.pairs - left.whole - both
    # The square of the sum of G equal effects is G times the sum of their squares; that of one effect is their sum.
    min_square = MIN_EFFECTIVE * folds * change.square().sum()
    checks: dict[Code, bool | Tensor] = {
        "all_agree": spread <= 1e-12 * max(1.0, abs(value)),
        "few_dominate": change.abs().sum().square() < min_square,
        "in_steps": unexplained.square().sum() > 2 * MAX_STEPS * alone.square().sum(),
        "biased": (left.quarters - left.whole).abs() > MAX_BIAS * spread,
    }
    for code, fails in checks.items():
        if fails:
            return Unknown(value, Reason(code, unit), has_range=False)
    return Influences(value, of_units, units, limits=limits)


TRUE_LIMITS: Mapping[str, Limits] = {
    "CohenKappa": (-1.0, 1.0),
    "MatthewsCorrCoef": (-1.0, 1.0),
    "KendallRankCorrCoef": (-1.0, 1.0),
    "CosineSimilarity": (None, None),
    "ExplainedVariance": (None, 1.0),
    "AdjustedMutualInfoScore": (None, 1.0),
    "NormalizedMutualInfoScore": (0.0, 1.0),
}
"""The limits of torchmetrics' Metrics whose bounds for plots are not their limits, by the end of the name: most state
0 to 1, but are below 0 for predictions worse than chance. An interval on the scale of wrong limits never contains 0."""


def limits_of(metric: Any) -> Limits:
    """Return the lowest and the highest value that a torchmetrics Metric states for plots, unless these are wrong."""
    for kind in type(metric).__mro__:  # also of a subclass with a name of its own
        for name, limits in TRUE_LIMITS.items():
            if kind.__name__.endswith(name):
                return limits
    lowest = getattr(metric, "plot_lower_bound", None)
    highest = getattr(metric, "plot_upper_bound", None)
    return lowest, highest
