"""Compute confidence intervals of metrics, and of their differences, from binned sums.

A bin is a row or a cluster of rows. Each metric declares one of three rules (`Measure.interval_rule`):

- **bounded**, for rates and costs whose maximum per row is known: Gaffke's bound (`bounded_mean_interval`), which is
  valid no matter how rare expensive errors are. For rates it equals the Clopper-Pearson interval, and the test of a
  difference of rates is McNemar's.
- **smooth**, for other functions of sums: the jackknife, which leaves out one bin at a time. It gives Student's t
  interval on the scale that the metric declares. If few bins have a wrong decision, there is no interval.
- **mean**, for means over rows: also the jackknife; if rare rows can dominate, Gaffke's bound, unless it is too wide.
"""

from collections.abc import Callable, Iterable, Sequence
from math import inf, isclose, isfinite, nan, sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional import Comparison, PairedDifference, bounded_mean_interval, bounded_mean_test
from mpcs_torch.functional.comparison.confidence_intervals import clopper_pearson_ends
from mpcs_torch.functional.comparison.means import Interval, distinct_pairs
from mpcs_torch.functional.comparison.significance import ComparedBy, with_verdicts
from mpcs_torch.functional.inputs.confidence import CONFIDENCE
from mpcs_torch.functional.measure import IntervalScale, Measure
from mpcs_torch.functional.quality.scores import ClassCounts, PairCounts

AnyMeasure = Measure[Any, Any]
MIN_UNITS = 10
"""The minimum number of bins (rows or clusters of rows) from which a standard error is computed."""
MIN_WRONG = {"mean": 10, "smooth": 5}
"""The minimum number of bins with wrong decisions, by interval rule. With fewer, jackknife intervals are too narrow."""
MIN_OF_CLASS = 5
"""The minimum number of bins with samples of each class, for the jackknife of an average over classes."""
MAX_BIAS = 0.1
"""The maximum bias of an average over classes (estimated by the jackknife), divided by the width of the interval."""
MAX_CLASS_BOUNDS = 100
"""The maximum number of classes whose rates get bounds over clusters; each class takes milliseconds."""
RATE = [(0, 1), (1, 1)]
"""The `Measure.row_ratios` of a rate: a row adds 0 or 1 to the numerator, and 1 to the denominator."""
ABOUT_DIFFERENCES = (
    " Intervals of rates and costs allow for a cluster worse than any of these; intervals of differences do not."
)
"""A sentence that is added to the note on clusters if models are compared."""
ClassEnds = Callable[[ClassCounts, "Units"], Tensor]
Reason = str
"""The type of a sentence on why there is no interval."""
NO_VALUE: Reason = "the metric has no value"
NOT_REQUESTED: Reason = "intervals were not requested"
NO_RANGE: Reason = "no bound of it is known, so its interval is approximate"


ONE_LOOK: Reason = "it has an interval for one look alone"


MAX_CLASSES = 2000
"""The largest number of classes of which all pairs are searched for the worst error."""
ABSENT: Reason = "a class has no rows, so nothing is known of its errors"
BY_CONVENTION: Reason = "it is 0 / 0 for these rows, which counts as a fixed value"
MANY_CLASSES: Reason = f"the worst error is searched for among at most {MAX_CLASSES} classes"


class Influences(NamedTuple):
    """A value, and how much each unit and each possible row of weight 1 changes it, to first order."""

    value: float
    of_units: Tensor
    """(B,): the influence of each bin; the sum over all units is 0."""
    of_rows: Tensor
    """(T, D): the influence of a row, by its true class and its decision; (1, D) if the class does not matter."""

    def unseen(self, other: "Influences") -> float:
        """Return the variance of the difference of two models by rows that may be missing by chance.

        Of each class, there are two such rows, with half of the weight of a row each: one that the first model misses,
        and one that the other misses. A miss is the mean of the errors of all wrong classes.
        """
        right = [rows.diagonal() for rows in (self.of_rows, other.of_rows)]
        number = max(1, len(right[0]) - 1)
        wrong = [(rows.sum(1) - hit) / number for rows, hit in zip((self.of_rows, other.of_rows), right, strict=True)]
        return ((wrong[1] - right[0]).square().sum() + (right[1] - wrong[0]).square().sum()).item() / 4


class End(NamedTuple):
    """An end of an interval, as a bound for requirements."""

    is_upper: bool
    confidence: float = CONFIDENCE
    """That of the interval with both ends: a bound is wrong in half of the other cases."""


class Units(NamedTuple):
    """The sizes and errors of B bins. A bin is one row, or one cluster of rows that are not independent."""

    rows: Tensor
    """(B,): the number of rows in each bin."""
    errors: Tensor
    """(B,): the number of wrong decisions in each bin. For soft labels: the summed shares of annotators who disagree,
    or NaN if labels are degrees of truth."""
    counts: Tensor
    """(B,): the number of equal bins that each element stands for: 1, except for the cells of a confusion matrix."""
    cluster: str | None
    """The name of the column of clusters; None if rows are independent."""
    weights: Tensor | None = None
    """(B,): the sum of the weights of the rows in each bin; None if all rows have the same weight."""

    @property
    def name(self) -> str:
        """The word for bins in messages: "rows" or "clusters"."""
        return "rows" if self.cluster is None else "clusters"

    @property
    def are_rows(self) -> bool:
        """Whether each bin is one row without a weight."""
        return self.weights is None and (self.cluster is None or self.size == 1)

    @property
    def mean_weight(self) -> float:
        """The mean weight of a row."""
        return 1.0 if self.weights is None else ((self.counts @ self.weights) / (self.counts @ self.rows)).item()

    @property
    def size(self) -> float:
        """The largest total weight of a bin; without weights, the largest number of rows in a bin."""
        if self.weights is not None:
            return self.weights.max().item()
        return 1.0 if self.cluster is None else self.rows.max().item()


def class_rate_ends(bins: ClassCounts, units: Units) -> Tensor:
    """Return the intervals of each class's recall, false-alarm rate and share: (C, 3, 2); NaN for a rate of 0 / 0."""
    of_rows = bins.true.sum(-1, keepdim=True).expand_as(bins.true)
    parts = torch.stack([bins.right, bins.predicted - bins.right, bins.true], dim=-1)
    return rate_ends(parts, torch.stack([bins.true, of_rows - bins.true, of_rows], dim=-1), units)


def metric_interval(
    measure: AnyMeasure, bins: Any, units: Units, class_ends: ClassEnds = class_rate_ends
) -> Interval | Reason:
    """Return the interval of a metric, or the reason why it has none.

    ``bins`` has the sums of B bins: a ``sums_type`` of the metric, with tensors (B, ...). ``units`` has the sizes of
    these bins. ``class_ends`` computes the intervals of rates of classes, as `class_rate_ends` does.
    """
    whole = total_sums(bins, units)
    value = measure.value(whole).item()
    if not isfinite(value):
        return NO_VALUE
    if measure.interval_rule == "bounded":
        return bounded_interval(measure, bins, whole, units)
    if isinstance(bins, ClassCounts) and measure.averaged_classes(bins) is not None and _has_rare_rates(bins, units):
        return _from_class_rates(measure, bins, whole, units, class_ends)
    fewest = MIN_WRONG[measure.interval_rule]
    is_hard = not bool(units.errors.isnan().any())
    is_rare = is_hard and _effective_count(units.errors > 0, units) < fewest
    if is_rare or (measure.interval_rule == "mean" and _few_dominate(*measure.ratio(bins, whole), units)):
        interval = bounded_interval(measure, bins, whole, units) if measure.interval_rule == "mean" else ""
        ends = sorted(measure.value_from_ratio(ratio, whole) for ratio, _ in measure.row_ratios(whole)) or [0.0]
        if isinstance(interval, str) or interval[1] - interval[0] > 0.1 * (ends[-1] - ends[0]):  # too wide to report
            why = (
                f"fewer than {fewest} {units.name} have a wrong decision"
                if is_rare
                else f"few {units.name} dominate it"
            )
            return f"{why}, so rare ones may be missing here"
        return interval
    near = _jackknife(measure, bins, whole, units)
    if isinstance(near, str) or measure.interval_rule != "mean" or not measure.row_ratios(whole):
        return near
    further = _with_worst_row(measure, bins, whole, units)
    return (min(near[0], further), near[1]) if measure.direction == "max" else (near[0], max(near[1], further))


def metric_difference(measure: AnyMeasure, first: Any, second: Any, units: Units) -> PairedDifference | Reason:
    """Return the second model's value minus the first's, with interval and p-value, or the reason why there is none.

    The p-value is at most 0.05 exactly when the interval excludes 0. Gaffke's bound is used for rates of independent
    rows; for costs, if few bins make up most of the difference; and if the models differ in few bins. Otherwise, the
    jackknife is used. ``first`` and ``second`` are the models' sums in the same bins, as in `metric_interval`.
    """
    whole = [total_sums(bins, units) for bins in (first, second)]
    first_value, second_value = (measure.value(sums).item() for sums in whole)
    difference = second_value - first_value
    if not isfinite(difference):
        return "a value is not finite"
    possible = measure.bin_ratios(first, whole[0], units.size)
    if measure.interval_rule != "smooth":
        ratios = [measure.ratio(bins, each) for bins, each in zip((first, second), whole, strict=True)]
        change = ratios[1][0] - ratios[0][0]
        is_rare = _effective_count(change != 0, units) < MIN_UNITS
        is_rare |= measure.interval_rule == "bounded" and _few_dominate(change, ratios[0][1], units)
        is_rate = measure.interval_rule == "bounded" and list(measure.row_ratios(whole[0])) == RATE and units.are_rows
        slope = _slope(measure, whole[0])
        if (is_rate or (is_rare and possible)) and slope and ratios[0][1].equal(ratios[1][1]):
            both = [(sign * most, per) for most, per in possible for sign in (-1, 1)]
            numbers, counts, per = histogram(change, ratios[0][1], both, units)
            low, high = sorted(slope * ratio for ratio in _gaffke(numbers, counts, per))
            p_value = bounded_mean_test(numbers, counts)
            return PairedDifference(first_value, second_value, difference, low, high, p_value)
        if is_rare:
            return f"few {units.name} dominate it, so rare ones may be missing here"
    if reason := _too_few(measure, first, units) or _too_few(measure, second, units):
        return reason
    of_models = zip((first, second), whole, strict=True)
    without = [measure.value(_without_each(bins, sums)) for bins, sums in of_models]
    spread = _spread(without[1] - without[0], units)
    is_average = measure.interval_rule == "smooth" and measure.averaged_classes(first) is not None
    if spread is not None and is_average:
        one, other = (influences(measure, bins, units) for bins in (first, second))
        if not isinstance(one, str) and not isinstance(other, str):
            spread = sqrt(spread**2 + units.mean_weight**2 * one.unseen(other))
    if spread is None:
        return f"the value does not exist without some of the {units.name}"
    if spread <= 1e-12 * abs(difference) or spread == 0:
        return f"all {units.name} agree, so the error of the value is unknown"
    return student_difference(first_value, second_value, spread, units.counts.sum().item() - 1)


def slope_of_ratio(measure: AnyMeasure, whole: Any) -> float:
    """Return the derivative of the metric's value by the ratio numerator / denominator."""
    numerator, per = measure.ratio(whole, whole)
    ratio, step = (numerator / per).item(), 1e-5
    low, high = (measure.value_from_ratio(ratio + sign * step, whole) for sign in (-1, 1))
    return (high - low) / (2 * step)


def _slope(measure: AnyMeasure, whole: Any) -> float | None:
    """Return the derivative of the metric's value by the ratio numerator / denominator; None if it is not constant."""
    ends = sorted(ratio for ratio, _ in measure.row_ratios(whole)) or [0.0, 1.0]
    width = (ends[-1] - ends[0]) / 4
    low, middle, high = (measure.value_from_ratio(ends[0] + place * width, whole) for place in (1, 2, 3))
    return (high - low) / (2 * width) if isclose(middle - low, high - middle, rel_tol=1e-9) else None


class NotCompared(NamedTuple):
    """Two models or detectors that cannot be compared by a metric, and the reason."""

    first: str
    second: str
    by: ComparedBy
    reason: Reason

    def __str__(self) -> str:
        return f"No difference between {self.first} and {self.second} by {self.by.name}: {self.reason}."


def adjusted(
    rows: Iterable[tuple[str, str, ComparedBy, PairedDifference | Reason]],
) -> tuple[list[Comparison], list[NotCompared]]:
    """Split ``rows`` into comparisons, with p-values corrected for multiple tests, and pairs that were not compared."""
    without, known = list[NotCompared](), list[tuple[str, str, ComparedBy, PairedDifference]]()
    for first, second, measure, paired in rows:
        if isinstance(paired, str):
            without.append(NotCompared(first, second, measure, paired))
        else:
            known.append((first, second, measure, paired))
    return (with_verdicts(known, CONFIDENCE) if known else []), without


def rate_ends(parts: Tensor, totals: Tensor, units: Units, confidence: float = CONFIDENCE) -> Tensor:
    """Return the intervals of rates. Each of B bins has numerators ``parts`` and denominators ``totals``: (B, ...).

    Returns:
        ``(..., 2)``, float64: the lower and the upper end; NaN for a rate whose denominator is 0 in all bins.
    """
    if units.are_rows:
        sums = (torch.tensordot(units.counts, each, 1).round() for each in (parts, totals))
        return clopper_pearson_ends(*sums, confidence=confidence)
    ends = list[Interval]()
    for part, total in zip(parts.reshape(len(parts), -1).T, totals.reshape(len(totals), -1).T, strict=True):
        most = total.max().item()
        if (total * units.counts).sum() > 0:
            low, high = _gaffke(*histogram(part, total, [(0, most), (most, most)], units), confidence)
            ends.append((max(0.0, low), min(1.0, high)))
        else:
            ends.append((nan, nan))
    return torch.tensor(ends, dtype=torch.float64).reshape(*parts.shape[1:], 2)


def total_sums(bins: Any, units: Units) -> Any:
    """Return the sums over all bins, in the type of ``bins``; each element stands for ``units.counts`` equal bins."""
    return type(bins)(*(torch.tensordot(units.counts, summed, 1) for summed in bins))


def _effective_count(is_counted: Tensor, units: Units) -> float:
    """Return the number of bins where ``is_counted`` is True; with weights, their effective sample size (Kish)."""
    if units.weights is None:
        return (is_counted * units.counts).sum().item()
    weights = is_counted * units.weights
    return (weights.sum().square() / weights.square().sum().clamp(min=1e-300)).item()


def bounded_interval(
    measure: AnyMeasure, bins: Any, whole: Any, units: Units, confidence: float = CONFIDENCE
) -> Interval | Reason:
    """Return Gaffke's interval of a ratio, which allows for a bin of the largest size with the worst possible rows."""
    numerator, per = measure.ratio(bins, whole)
    possible = measure.bin_ratios(bins, whole, units.size)
    if not possible:
        return "the contribution of a row is unbounded"
    if not (per * units.counts).sum() > 0:
        return "its denominator is 0"
    if list(measure.row_ratios(whole)) == RATE:
        ends: Sequence[float] = rate_ends(numerator, per, units, confidence).tolist()
    else:
        ends = _gaffke(*histogram(numerator, per, possible, units), confidence)
    low, high = (measure.value_from_ratio(end, whole) for end in ends)
    return min(low, high), max(low, high)


def _with_worst_row(measure: AnyMeasure, bins: Any, whole: Any, units: Units) -> float:
    """Return the worse end of Gaffke's interval of a mean, allowing for unseen rows with the worst possible value.

    The interval needs the worst possible mean of a bin: here, that of the worst bin in ``bins``, with such a row added.
    """
    numerator, per = measure.ratio(bins, whole)
    lowest, highest = sorted(ratio for ratio, _ in measure.row_ratios(whole))
    is_rising = measure.value_from_ratio(highest, whole) > measure.value_from_ratio(lowest, whole)
    sign, bad = (1.0, highest) if is_rising != (measure.direction == "max") else (-1.0, -lowest)
    sizes = units.rows if units.weights is None else units.weights
    total = units.counts @ sizes
    size, row = (units.counts @ sizes.square() / total).item(), (total / (units.counts @ units.rows)).item()
    worst = (sign * numerator / per).nan_to_num(-inf).max().item()
    worst += max(0.0, bad - worst) * row / size
    possible = [(size * min(sign * lowest, sign * highest), size), (size * worst, size)]
    return measure.value_from_ratio(sign * _gaffke(*histogram(sign * numerator, per, possible, units))[1], whole)


def histogram(
    numerator: Tensor, per: Tensor, possible: Sequence[tuple[float, float]], units: Units
) -> tuple[Tensor, Tensor, Tensor]:
    """Count the bins with each pair of ``numerator`` and denominator ``per``, (B,) each; add the pairs ``possible``.

    Returns:
        For each distinct pair: its numerator, the number of bins (0 for ``possible``), and its denominator.
    """
    pairs, counts = distinct_pairs(torch.stack([numerator, per], 1), units.counts)
    bounds = torch.tensor(possible, dtype=torch.float64)
    values, weights = torch.cat([pairs, bounds]).unbind(1)
    return values, torch.cat([counts, torch.zeros(len(bounds), dtype=torch.float64)]), weights


def _gaffke(values: Tensor, counts: Tensor, per: Tensor, confidence: float = CONFIDENCE) -> Interval:
    return bounded_mean_interval(values, counts, per=per, confidence=confidence)


def _few_dominate(numerator: Tensor, per: Tensor, units: Units) -> bool:
    """Return whether few bins (under 5, and under 1 % of all) make up half of the sum of squared deviations."""
    mean = (units.counts @ numerator) / (units.counts @ per)
    squares, order = (numerator - mean * per).square().sort(descending=True)
    counts = units.counts[order]
    heavy = (counts * squares).cumsum(0) <= 0.5 * (counts * squares).sum()
    return bool((counts * heavy).sum() < min(5, counts.sum().item() // 100))


def _has_rare_rates(bins: ClassCounts, units: Units) -> bool:
    """Return whether any class has correct decisions in under 10 bins, or misses in under 10: too few to jackknife."""
    numbers = [torch.tensordot(units.counts, (each > 0).double(), 1) for each in (bins.right, bins.true - bins.right)]
    is_present = bins.true.sum(0) > 0
    return bool(((torch.minimum(*numbers) < 10) & is_present).any())


def _from_class_rates(
    measure: AnyMeasure, bins: ClassCounts, whole: ClassCounts, units: Units, class_ends: ClassEnds
) -> Interval | Reason:
    """Return the interval of a metric that depends on the share, the recall and the false-alarm rate of each class.

    The method is square-and-add (MOVER: Zou and Donner, Construction of confidence intervals about effect measures,
    Statistics in Medicine 27, 2008). Each rate is moved to the ends of its interval, and the squared changes of the
    metric are added. Changes by recall and by false alarms are added before they are squared: each error is both a miss
    of one class and a false alarm of another.
    """
    classes, rows = whole.true.shape[-1], whole.true.sum()
    if units.name == "clusters" and classes > MAX_CLASS_BOUNDS:
        return f"rates of classes with few {units.name} are bounded for at most {MAX_CLASS_BOUNDS} classes"
    all_ends = class_ends(bins, units)
    value, squares = measure.value(whole), torch.zeros(2, 3, dtype=torch.float64)
    known = (~all_ends.isnan().any(-1).any(-1)).nonzero().flatten()
    if not len(known):
        return "all rows are of one class, so the others may be missing here"
    step = max(1, 2**16 // classes)  # about 10 MiB
    for labels in (known[first : first + step] for first in range(0, len(known), step)):
        (recall, alarms, share), each = all_ends[labels].unbind(1), torch.arange(len(labels))
        right, true = (summed[labels].unsqueeze(1) for summed in (whole.right, whole.true))
        moved = torch.stack(whole).repeat(len(labels), 6, 1, 1)
        moved[each, :2, 0, labels] = recall * true
        moved[each, 2:4, 2, labels] = right + alarms * (rows - true)
        moved[each, 4:, :2, labels] *= (share * rows / true).unsqueeze(2)
        moved[each, :, 2, labels] += moved[each, :, 0, labels] - right
        change = (measure.value(ClassCounts(*moved.unbind(2))) - value).nan_to_num(0).view(-1, 3, 2)
        ends = torch.stack([change.amin(2).clamp(max=0), change.amax(2).clamp(min=0)])
        squares += ends.square().sum(1)
    missed, alarmed, shared = squares.sqrt().unbind(1)
    below, above = torch.hypot(missed + alarmed, shared).tolist()
    number = units.counts.sum()
    # A value is NaN without the only row of a class.
    change = (measure.value(_without_each(bins, whole)) - value).nan_to_num(0)
    if ((number - 1) / number * (units.counts @ change)).abs() > MAX_BIAS * (below + above):
        return f"it depends on the number of {units.name}: its mean value changes when a class has fewer"
    least, most = measure.limits
    low, high = value.item() - below, value.item() + above
    return low if least is None else max(low, least), high if most is None else min(high, most)


def _jackknife(measure: AnyMeasure, bins: Any, whole: Any, units: Units) -> Interval | Reason:
    reason = _too_few(measure, bins, units)
    if reason is not None:
        return reason
    forward = SCALES[measure.interval_scale][0]
    value = forward(measure.value(whole))
    spread = _spread(forward(measure.value(_without_each(bins, whole))), units)
    if spread is None or not isfinite(value.item()):
        return f"the value does not exist without some of the {units.name}"
    if spread <= 1e-12 * max(1.0, abs(value.item())):
        return f"all {units.name} agree, so the error of the value is unknown"
    return student_interval(value, spread, units.counts.sum().item() - 1, measure.interval_scale)


def _too_few(measure: AnyMeasure, bins: Any, units: Units) -> Reason | None:
    if units.counts.sum() < MIN_UNITS:
        return f"a standard error needs at least {MIN_UNITS} {units.name}"
    of_classes = measure.averaged_classes(bins)
    if of_classes is not None:
        numbers = torch.tensordot(units.counts, (of_classes > 0).double(), 1)
        if bool((numbers < MIN_OF_CLASS).any()):
            return f"an average over classes needs {MIN_OF_CLASS} {units.name} with samples of each class"
    return None


def _without_each(bins: Any, whole: Any) -> Any:
    """Return, for each bin, the sums of all other bins: (B, ...)."""
    return type(bins)(*(total - summed for total, summed in zip(whole, bins, strict=True)))


def _spread(without: Tensor, units: Units) -> float | None:
    """Return the jackknife standard error from the values without each bin, (B,); None if any value is not finite."""
    if not bool(without.isfinite().all()):
        return None
    number = units.counts.sum().item()
    mean = (units.counts @ without) / number
    return sqrt((number - 1) / number * (units.counts @ (without - mean).square()).item())


def student_interval(on_scale: Tensor, spread: float, freedom: float, scale: IntervalScale) -> Interval:
    """Return Student's t interval of ``on_scale``, with standard error ``spread``, transformed back from ``scale``."""
    half = spread * quantile(freedom)
    low, high = (SCALES[scale][1](on_scale + sign * half).item() for sign in (-1, 1))
    return low, high


def student_difference(first: float, second: float, spread: float, freedom: float) -> PairedDifference:
    """Return ``second`` - ``first`` with Student's t interval and p-value, given its standard error ``spread``."""
    from scipy.special import stdtr  # scipy.stats takes longer to import

    change, half = second - first, spread * quantile(freedom)
    p_value = 2 * float(stdtr(freedom, -abs(change) / spread))
    return PairedDifference(first, second, change, change - half, change + half, p_value)


def quantile(freedom: float) -> float:
    """Return the half-width of Student's interval, in standard errors, for ``freedom`` degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


SCALES: "dict[IntervalScale, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]]" = {
    "plain": (torch.positive, torch.positive),
    "log": (torch.log, torch.exp),
    "logit": (torch.logit, torch.sigmoid),
    "atanh": (torch.atanh, torch.tanh),
}
"""For each scale of the jackknife: the transformation to this scale, and the inverse transformation."""


def influences(measure: AnyMeasure, bins: Any, units: Units) -> Influences | Reason:
    """Return a value with the influences of units and of rows, or the reason why those of rows are not known."""
    whole = total_sums(bins, units)
    value = measure.value(whole).item()
    if not isfinite(value):
        return NO_VALUE
    if measure.interval_rule != "smooth":
        rows = measure.row_ratios(whole)
        numerator, per = measure.ratio(bins, whole)
        total = (units.counts @ per).item()
        if not rows or not total > 0:
            return NO_RANGE
        ratio, slope = (units.counts @ numerator).item() / total, slope_of_ratio(measure, whole)
        of_rows = torch.tensor([[slope * (top - ratio * of) / total for top, of in rows]], dtype=torch.float64)
        return Influences(value, slope * (numerator - ratio * per) / total, of_rows)
    classes = measure.averaged_classes(bins)
    if classes is not None and bool((units.counts @ classes == 0).any()):
        return ABSENT
    summed = [each.detach().clone().requires_grad_() for each in whole]
    value_of_sums = measure.value(type(whole)(*summed))
    slopes = torch.autograd.grad(value_of_sums, summed, allow_unused=True, materialize_grads=True)
    of_units = torch.stack([(each * slope).flatten(1).sum(1) for each, slope in zip(bins, slopes, strict=True)]).sum(0)
    cells = _of_rows(type(whole)(*slopes))
    if isinstance(cells, str):
        return cells
    # The value is one by convention, such as an MCC of 0 if all decisions are of one class: it would change at once.
    return Influences(value, of_units, cells) if bool(cells.any()) else BY_CONVENTION


def _of_rows(slopes: Any) -> Tensor | Reason:
    """Return the influence of a row of each true class and decision, (C, C), given the slopes of the sums."""
    if isinstance(slopes, PairCounts):
        return slopes.confusion
    if not isinstance(slopes, ClassCounts):
        return NO_RANGE
    if len(slopes.true) > MAX_CLASSES:
        return MANY_CLASSES
    return slopes.true.unsqueeze(1) + slopes.predicted + slopes.right.diag()
