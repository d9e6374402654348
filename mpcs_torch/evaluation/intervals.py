"""Confidence intervals of metrics, and of their differences, from sums in bins.

There are two rules, and each metric declares its rule (`AdditiveMetric.interval_rule`):

- **bounded**: rates and costs, with a known maximum for each row, have Gaffke's bound (`bounded_mean_interval`), which
  is valid however rare expensive errors are. For rates it is Clopper and Pearson's, and for a difference of rates its
  test is McNemar's.
- **smooth**: other functions of sums have the delete-one-bin jackknife: Student's t interval, on the scale that the
  metric declares, with the spread of the values that leave out a bin, where enough bins have a wrong decision. With
  fewer, rare rows may make the value; a **mean** over rows then has Gaffke's bound, if that is narrow enough.
"""

from collections.abc import Callable, Iterable, Sequence
from math import inf, isclose, isfinite, nan, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional import (
    Comparison,
    PairedDifference,
    bounded_mean_interval,
    bounded_mean_test,
    clopper_pearson,
)
from mpcs_torch.functional.comparison.clopper_pearson import clopper_pearson_ends
from mpcs_torch.functional.comparison.means import Interval, distinct_pairs
from mpcs_torch.functional.comparison.significance import Measure, with_verdicts
from mpcs_torch.functional.inputs.confidence import CONFIDENCE
from mpcs_torch.functional.quality.confusion import ClassCounts

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from mpcs_torch.metrics.additive import AdditiveMetric, Scale

MIN_UNITS = 10
"""The fewest bins for a standard error."""
MIN_WRONG = {"mean": 10, "smooth": 5}
"""The fewest bins with a wrong decision, by rule: fewer that happen to be in a sample would promise too much."""
MIN_OF_CLASS = 5
"""The fewest bins with samples of each class that an average over classes needs."""
MIN_OF_RATE, MIN_HEAVY = 10, 5
"""The fewest bins with right decisions, and with misses, of each class, and those that have half of the spread of a
mean, for the jackknife: with fewer, rates of classes have bounds, and means too, if any."""
MAX_BIAS = 0.1
"""The largest bias of an average over classes, as the jackknife estimates it, in widths of its interval."""
MAX_CLASS_BOUNDS = 100
"""The most classes whose rates over clusters are bounded, which takes time for each."""
WIDEST = 0.1
"""The share of the possible values beyond which Gaffke's bound of a mean is of no use."""
RATE = [(0, 1), (1, 1)]
OF_DIFFERENCES = (
    " Intervals of rates and costs allow for a worse cluster than all of these; those of differences do not."
)
"""Added to the note on clusters where models are compared."""
Reason = str
"""Why there is no interval."""


class Units(NamedTuple):
    """The sizes and errors of B bins."""

    rows: Tensor
    """(B,): the number of rows of each."""
    errors: Tensor
    """(B,): the number of its wrong decisions, or the shares of annotators who say so; NaN for degrees of truth."""
    counts: Tensor
    """(B,): how many bins are like this one: 1, but for the cells of a confusion matrix."""
    cluster: str | None
    """The column of clusters; None if rows are independent."""
    weights: Tensor | None = None
    """(B,): the sum of the weights of the rows of each; None if all rows count alike."""

    @property
    def name(self) -> str:
        """Rows or clusters, as a sentence calls the bins."""
        return "rows" if self.cluster is None else "clusters"

    @property
    def are_rows(self) -> bool:
        """Whether each bin is one row, without a weight."""
        return self.weights is None and (self.cluster is None or self.size == 1)

    @property
    def size(self) -> float:
        """The most rows, or the largest weight, of a bin that are not independent of each other."""
        if self.weights is not None:
            return self.weights.max().item()
        return 1.0 if self.cluster is None else self.rows.max().item()


def interval_of(metric: "AdditiveMetric", bins: Any, units: Units) -> Interval | Reason:
    """Return the interval of a metric by its sums in bins, ``sums_type`` of tensors (B, ...), or why it has none."""
    whole = whole_of(bins, units)
    value = metric.value_of(whole).item()
    if not isfinite(value):
        return "without a value, there is none"
    if metric.interval_rule == "bounded":
        return _bounded(metric, bins, whole, units)
    if isinstance(bins, ClassCounts) and metric.averaged_classes(bins) is not None and _has_rare_rates(bins, units):
        return _of_class_rates(metric, bins, whole, units)
    fewest = MIN_WRONG[metric.interval_rule]
    is_hard = not bool(units.errors.isnan().any())
    is_rare = is_hard and _seen(units.errors > 0, units) < fewest
    if is_rare or (metric.interval_rule == "mean" and _few_make_the_spread(*metric.ratio_of(bins, whole), units)):
        interval = _bounded(metric, bins, whole, units) if metric.interval_rule == "mean" else ""
        ends = sorted(metric.of_ratio(ratio, whole) for ratio, _ in metric.row_ratios(whole)) or [0.0]
        if isinstance(interval, str) or interval[1] - interval[0] > WIDEST * (ends[-1] - ends[0]):
            few = f"fewer than {fewest} {units.name} have a wrong decision" if is_rare else f"few {units.name} make it"
            return f"{few}, so rare ones may make the value"
        return interval
    near = _jackknife(metric, bins, whole, units)
    if isinstance(near, str) or metric.interval_rule != "mean" or not metric.row_ratios(whole):
        return near
    further = _with_worst_row(metric, bins, whole, units)
    return (min(near[0], further), near[1]) if metric.higher_is_better else (near[0], max(near[1], further))


def difference_of(metric: "AdditiveMetric", first: Any, second: Any, units: Units) -> PairedDifference | Reason:
    """Return how much the value of a second model exceeds that of a first, with interval and p-value, or why not.

    Both belong together: the p-value is at most 0.05 exactly where the interval excludes 0. Rates of independent
    rows, costs of which few bins make the difference, and whatever differs in few bins have Gaffke's bound; others the
    jackknife of the difference. The sums of both models are in the same bins, as `interval_of` takes them.
    """
    whole = [whole_of(bins, units) for bins in (first, second)]
    first_value, second_value = (metric.value_of(sums).item() for sums in whole)
    difference = second_value - first_value
    if not isfinite(difference):
        return "a value is not finite"
    possible = metric.bin_ratios(first, whole[0], units.size)
    if metric.interval_rule != "smooth":
        ratios = [metric.ratio_of(bins, each) for bins, each in zip((first, second), whole, strict=True)]
        apart = ratios[1][0] - ratios[0][0]
        is_rare = _seen(apart != 0, units) < MIN_UNITS
        is_rare |= metric.interval_rule == "bounded" and _few_make_the_spread(apart, ratios[0][1], units)
        is_rate = metric.interval_rule == "bounded" and list(metric.row_ratios(whole[0])) == RATE and units.are_rows
        slope = _slope(metric, whole[0])
        if (is_rate or (is_rare and possible)) and slope and ratios[0][1].equal(ratios[1][1]):
            both = [(sign * most, per) for most, per in possible for sign in (-1, 1)]
            numbers, counts, per = _counted(apart, ratios[0][1], both, units)
            low, high = sorted(slope * ratio for ratio in _gaffke(numbers, counts, per))
            p_value = bounded_mean_test(numbers, counts)
            return PairedDifference(first_value, second_value, difference, low, high, p_value)
        if is_rare:
            return f"few {units.name} make it, so rare ones may be missing here"
    if reason := _too_few(metric, first, units) or _too_few(metric, second, units):
        return reason
    of_models = zip((first, second), whole, strict=True)
    without = [metric.value_of(_without_each(bins, sums)) for bins, sums in of_models]
    spread = _spread(without[1] - without[0], units)
    if spread is None:
        return f"some values without one of the {units.name} do not exist"
    if spread <= 1e-12 * abs(difference) or spread == 0:
        return f"all {units.name} agree, so the error of the value is unknown"
    return student_difference(first_value, second_value, spread, units.counts.sum().item() - 1)


def _slope(metric: "AdditiveMetric", whole: Any) -> float | None:
    """Return by how much a value changes with its ratio; None if that is not the same everywhere."""
    ends = sorted(ratio for ratio, _ in metric.row_ratios(whole)) or [0.0, 1.0]
    width = (ends[-1] - ends[0]) / 4
    low, middle, high = (metric.of_ratio(ends[0] + place * width, whole) for place in (1, 2, 3))
    return (high - low) / (2 * width) if isclose(middle - low, high - middle, rel_tol=1e-9) else None


class NotCompared(NamedTuple):
    """Two systems whose difference by a metric has no interval."""

    first: str
    second: str
    by: Measure
    reason: Reason

    def __str__(self) -> str:
        """Say so in a sentence."""
        return f"No difference between {self.first} and {self.second} by {self.by.name}: {self.reason}."


def adjusted(
    rows: Iterable[tuple[str, str, Measure, PairedDifference | Reason]],
) -> tuple[list[Comparison], list[NotCompared]]:
    """Correct the p-values of the differences of two systems by a metric, and say why there are no others."""
    without, known = list[NotCompared](), list[tuple[str, str, Measure, PairedDifference]]()
    for first, second, measure, paired in rows:
        if isinstance(paired, str):
            without.append(NotCompared(first, second, measure, paired))
        else:
            known.append((first, second, measure, paired))
    return (with_verdicts(known, CONFIDENCE) if known else []), without


def rate_interval(right: Tensor, of: Tensor, units: Units) -> Interval | None:
    """Return the interval of a rate from its numerators and denominators in bins (B,); None without any."""
    wanted, total = (round((summed * units.counts).sum().item()) for summed in (right, of))
    if not (of * units.counts).sum() > 0:
        return None
    if units.are_rows:
        return clopper_pearson(wanted, total, confidence=CONFIDENCE)
    most = of.max().item()
    low, high = _gaffke(*_counted(right, of, [(0, most), (most, most)], units))
    return max(0.0, low), min(1.0, high)


def whole_of(bins: Any, units: Units) -> Any:
    """Return the sums of all bins."""
    return type(bins)(*(torch.tensordot(units.counts, summed, 1) for summed in bins))


def _seen(is_wanted: Tensor, units: Units) -> float:
    """Return how many bins are wanted; of weighted rows, how many of equal weight would say as much (Kish)."""
    if units.weights is None:
        return (is_wanted * units.counts).sum().item()
    weights = is_wanted * units.weights
    return (weights.sum().square() / weights.square().sum().clamp(min=1e-300)).item()


def _bounded(metric: "AdditiveMetric", bins: Any, whole: Any, units: Units) -> Interval | Reason:
    numerator, per = metric.ratio_of(bins, whole)
    possible = metric.bin_ratios(bins, whole, units.size)
    if not possible:
        return "a row can add any number"
    if not (per * units.counts).sum() > 0:
        return "there is nothing to divide by"
    if list(metric.row_ratios(whole)) == RATE:
        ends = rate_interval(numerator, per, units)
        assert ends is not None
    else:
        ends = _gaffke(*_counted(numerator, per, possible, units))
    low, high = (metric.of_ratio(end, whole) for end in ends)
    return min(low, high), max(low, high)


def _with_worst_row(metric: "AdditiveMetric", bins: Any, whole: Any, units: Units) -> float:
    """Return the worse end of Gaffke's interval of a mean, if the worst bin had one more row, as bad as can be."""
    numerator, per = metric.ratio_of(bins, whole)
    lowest, highest = sorted(ratio for ratio, _ in metric.row_ratios(whole))
    is_rising = metric.of_ratio(highest, whole) > metric.of_ratio(lowest, whole)
    sign, bad = (1.0, highest) if is_rising != bool(metric.higher_is_better) else (-1.0, -lowest)
    sizes = units.rows if units.weights is None else units.weights
    total = units.counts @ sizes
    size, row = (units.counts @ sizes.square() / total).item(), (total / (units.counts @ units.rows)).item()
    worst = (sign * numerator / per).nan_to_num(-inf).max().item()
    worst += max(0.0, bad - worst) * row / size
    possible = [(size * min(sign * lowest, sign * highest), size), (size * worst, size)]
    return metric.of_ratio(sign * _gaffke(*_counted(sign * numerator, per, possible, units))[1], whole)


def _counted(
    numerator: Tensor, per: Tensor, possible: Sequence[tuple[float, float]], units: Units
) -> tuple[Tensor, Tensor, Tensor]:
    """Count the bins with the same numerator and denominator, (B,) each.

    Returns:
        Different values, how many bins have each, 0 for the possible ones, and the denominators of the values.
    """
    pairs, counts = distinct_pairs(torch.stack([numerator, per], 1), units.counts)
    bounds = torch.tensor(possible, dtype=torch.float64)
    values, weights = torch.cat([pairs, bounds]).unbind(1)
    return values, torch.cat([counts, torch.zeros(len(bounds), dtype=torch.float64)]), weights


def _gaffke(values: Tensor, counts: Tensor, per: Tensor) -> Interval:
    return bounded_mean_interval(values, counts, per=per, confidence=CONFIDENCE)


def _few_make_the_spread(numerator: Tensor, per: Tensor, units: Units) -> bool:
    """Return whether fewer than 5 bins, or 1 of 100, have half of the squared deviations, such as saturated losses."""
    mean = (units.counts @ numerator) / (units.counts @ per)
    squares, order = (numerator - mean * per).square().sort(descending=True)
    counts = units.counts[order]
    heavy = (counts * squares).cumsum(0) <= 0.5 * (counts * squares).sum()
    return bool((counts * heavy).sum() < min(MIN_HEAVY, counts.sum().item() // 100))


def _has_rare_rates(bins: ClassCounts, units: Units) -> bool:
    """Return whether few bins have right decisions, or misses, of a class: the jackknife would give it no variance."""
    seen = [torch.tensordot(units.counts, (each > 0).double(), 1) for each in (bins.right, bins.true - bins.right)]
    is_present = bins.true.sum(0) > 0
    return bool(((torch.minimum(*seen) < MIN_OF_RATE) & is_present).any())


def _of_class_rates(metric: "AdditiveMetric", bins: ClassCounts, whole: ClassCounts, units: Units) -> Interval | Reason:
    """Return the interval of a function of the share and recall of each class and of the rate of false alarms for it.

    Square-and-add (MOVER: Zou and Donner, Construction of confidence intervals about effect measures, Statistics in
    Medicine 27, 2008): each rate has its own interval, and the changes of the value as it moves to an end are combined.
    An error is a miss of one class and a false alarm for another, so the changes by both are added as they are.
    """
    classes, rows = whole.true.shape[-1], whole.true.sum()
    if units.name == "clusters" and classes > MAX_CLASS_BOUNDS:
        return f"rates of classes with few {units.name} are bounded for at most {MAX_CLASS_BOUNDS} classes"
    value, squares, all_ends = (
        metric.value_of(whole),
        torch.zeros(2, 3, dtype=torch.float64),
        _class_rate_ends(bins, units),
    )
    known = (~all_ends.isnan().any(-1).any(-1)).nonzero().flatten()
    step = max(1, 2**16 // classes)  # in 10 MiB
    for labels in (known[first : first + step] for first in range(0, len(known), step)):
        (recall, alarms, share), each = all_ends[labels].unbind(1), torch.arange(len(labels))
        right, true = (summed[labels].unsqueeze(1) for summed in (whole.right, whole.true))
        moved = whole.counts.repeat(len(labels), 6, 1, 1)
        moved[each, :2, 0, labels] = recall * true
        moved[each, 2:4, 2, labels] = right + alarms * (rows - true)
        moved[each, 4:, :2, labels] *= (share * rows / true).unsqueeze(2)
        moved[each, :, 2, labels] += moved[each, :, 0, labels] - right
        change = (metric.value_of(ClassCounts(moved)) - value).nan_to_num(0).view(-1, 3, 2)
        ends = torch.stack([change.amin(2).clamp(max=0), change.amax(2).clamp(min=0)])
        squares += ends.square().sum(1)
    missed, alarmed, shared = squares.sqrt().unbind(1)
    below, above = torch.hypot(missed + alarmed, shared).tolist()
    number = units.counts.sum()
    change = (metric.value_of(_without_each(bins, whole)) - value).nan_to_num(0)  # NaN without the only row of a class
    if ((number - 1) / number * (units.counts @ change)).abs() > MAX_BIAS * (below + above):
        return f"it depends on the number of {units.name}: with fewer of a class, it has another value on average"
    least, most = metric.plot_lower_bound, metric.plot_upper_bound
    low, high = value.item() - below, value.item() + above
    return low if least is None else max(low, least), high if most is None else min(high, most)


def _class_rate_ends(bins: ClassCounts, units: Units) -> Tensor:
    """Return the intervals of the recall, of the false alarms, and of the share of each class: (C, 3, 2), or NaN."""
    of_rows = bins.true.sum(-1, keepdim=True).expand_as(bins.true)
    rates = (bins.right, bins.true), (bins.predicted - bins.right, of_rows - bins.true), (bins.true, of_rows)
    if units.are_rows:
        sums = ((torch.tensordot(units.counts, each, 1).round() for each in rate) for rate in rates)
        return torch.stack([clopper_pearson_ends(*each, confidence=CONFIDENCE) for each in sums], dim=1)
    by_rate = [
        [rate_interval(*each, units) or (nan, nan) for each in zip(part.T, total.T, strict=True)]
        for part, total in rates
    ]
    return torch.tensor(by_rate, dtype=torch.float64).transpose(0, 1)


def _jackknife(metric: "AdditiveMetric", bins: Any, whole: Any, units: Units) -> Interval | Reason:
    reason = _too_few(metric, bins, units)
    if reason is not None:
        return reason
    forward = SCALES[metric.interval_scale][0]
    value = forward(metric.value_of(whole))
    spread = _spread(forward(metric.value_of(_without_each(bins, whole))), units)
    if spread is None or not isfinite(value.item()):
        return f"some values without one of the {units.name} do not exist"
    if spread <= 1e-12 * max(1.0, abs(value.item())):
        return f"all {units.name} agree, so the error of the value is unknown"
    return student_interval(value, spread, units.counts.sum().item() - 1, metric.interval_scale)


def _too_few(metric: "AdditiveMetric", bins: Any, units: Units) -> Reason | None:
    if units.counts.sum() < MIN_UNITS:
        return f"a standard error needs at least {MIN_UNITS} {units.name}"
    of_classes = metric.averaged_classes(bins)
    if of_classes is not None:
        seen = torch.tensordot(units.counts, (of_classes > 0).double(), 1)
        if bool((seen < MIN_OF_CLASS).any()):
            return f"an average over classes needs {MIN_OF_CLASS} {units.name} with samples of each class"
    return None


def _without_each(bins: Any, whole: Any) -> Any:
    """Return the sums of all bins but one, for each that is left out: (B, ...)."""
    return type(bins)(*(total - summed for total, summed in zip(whole, bins, strict=True)))


def _spread(without: Tensor, units: Units) -> float | None:
    """Return the standard error of a value from those that leave out a bin (B,); None if one does not exist."""
    if not bool(without.isfinite().all()):
        return None
    number = units.counts.sum().item()
    mean = (units.counts @ without) / number
    return sqrt((number - 1) / number * (units.counts @ (without - mean).square()).item())


def student_interval(on_scale: Tensor, spread: float, freedom: float, scale: "Scale") -> Interval:
    """Return Student's interval of a value from that on a scale and its standard error there."""
    half = spread * quantile(freedom)
    low, high = (SCALES[scale][1](on_scale + sign * half).item() for sign in (-1, 1))
    return low, high


def student_difference(first: float, second: float, spread: float, freedom: float) -> PairedDifference:
    """Return the difference of a second value from a first by its standard error, with Student's interval and test."""
    from scipy.special import stdtr  # scipy.stats takes longer to import

    change, half = second - first, spread * quantile(freedom)
    p_value = 2 * float(stdtr(freedom, -abs(change) / spread))
    return PairedDifference(first, second, change, change - half, change + half, p_value)


def quantile(freedom: float) -> float:
    """Return half the length of Student's interval in standard errors, by its degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


SCALES: "dict[Scale, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]]" = {
    "plain": (torch.positive, torch.positive),
    "log": (torch.log, torch.exp),
    "logit": (torch.logit, torch.sigmoid),
    "atanh": (torch.atanh, torch.tanh),
}
"""The scale of a jackknife, and the way back."""
