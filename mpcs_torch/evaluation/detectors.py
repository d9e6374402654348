"""Evaluate detectors: values with intervals, groups, and the comparison of several detectors on the same trials."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from itertools import combinations
from math import hypot, inf, log2
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.detector_scores import (
    AREA,
    CLLR,
    EQUAL_ERROR,
    INTERPOLATED,
    DetectorScores,
    ErrorsAt,
)
from mpcs_torch.evaluation.fixed_thresholds import EVEN, FixedThreshold, bayes_thresholds, key_of, limiting_thresholds
from mpcs_torch.evaluation.intervals import CONFIDENCE, FEWEST, FEWEST_WRONG, OF_DIFFERENCES, Reason
from mpcs_torch.evaluation.result import Result
from mpcs_torch.evaluation.scores import DetectorMetric, GroupScores
from mpcs_torch.evaluation.trial_means import (
    TrialUnits,
    combined,
    difference,
    difference_of_rates,
    effective,
    fewest_effective,
    jackknife_interval,
    means_of,
)
from mpcs_torch.functional import Comparison, OperatingPoint, PairedDifference
from mpcs_torch.functional.comparison.means import Interval, Mean, mean_of, rate_of
from mpcs_torch.functional.comparison.significance import Measure, with_verdicts
from mpcs_torch.functional.detection.area import break_even_of, check_max_p_fa, h_measure_of, partial_auc_of
from mpcs_torch.functional.detection.cost import cost_at
from mpcs_torch.functional.detection.equal_error_rate import equal_error_of
from mpcs_torch.functional.detection.errors import (
    area_under_roc,
    checked_scores,
    count_errors,
    middle_of,
    missing_kind,
    warn_if_reversed,
)
from mpcs_torch.functional.detection.llr_cost import mean_cost_of, softplus
from mpcs_torch.functional.detection.operating_point import as_points
from mpcs_torch.functional.detection.summary import summary_of
from mpcs_torch.functional.inputs.arrays import as_tensor
from mpcs_torch.functional.inputs.groups import Groups, group_codes

POINTS = (OperatingPoint(0.5), OperatingPoint(0.01), OperatingPoint(0.001))
MISSES = (0.05, 0.01)
"""The miss rates at which false alarms are measured: sensitivities of 95 and 99 %."""
INDEPENDENT = (
    "95 % intervals assume independent trials; trials that share something, such as a speaker, need clusters "
    "(clusters=, or --cluster COLUMN)."
)
ONE_CLUSTER = "All trials are of one cluster, which says nothing of others: intervals are of little use."
CHOSEN_HERE = (
    "the threshold is the best on these trials; thresholds that are learned on others, or given, have intervals"
)
UNKNOWN = "no valid method is known"
RATE = (0.0, 1.0)
FURTHER_BITS = -0.5 * log2(1e-7)
"""The part in Cllr of a further trial that its interval allows for, whose kind is given the probability 1e-7."""
FEWEST_MISRANKED = 40
"""The fewest trials, as `effective` counts them, by which the jackknife judges an area: with fewer, it is too sure."""


def evaluate_detectors(
    preds: Any,
    target: Any,
    *,
    points: Sequence[OperatingPoint] = POINTS,
    llr: bool | Collection[str] = False,
    thresholds: Sequence[FixedThreshold] | Mapping[str, Sequence[FixedThreshold]] = (),
    groups: Mapping[str, Groups | Sequence[object] | Tensor] | None = None,
    clusters: Groups | Sequence[object] | Tensor | None = None,
    p_fa: Sequence[float] = (),
    p_miss: Sequence[float] = MISSES,
    max_p_fa: float | None = None,
    compared: Collection[str] | None = None,
    intervals: bool = True,
) -> Result[DetectorScores]:
    """Evaluate one or several detectors on the same trials.

    Error rates, costs at thresholds that were not chosen on these trials, the equal error rate and the area under the
    ROC have intervals made of those of two bounded means (`mpcs_torch.functional.bounded_mean_interval`, which for
    rates is `clopper_pearson`), of targets and of non-targets, combined as `cost_interval` does. `Cllr` has the
    jackknife's, if enough ratios are on the wrong side. Detectors are compared in the same ways, on the differences of
    trials. With clusters, they are the units of all of these.

    Args:
        preds: ``(N,)`` scores, floating point, higher for targets; of any range. For several detectors a dictionary.
        target: ``(N,)`` integers or bools: 1 for targets, 0 for non-targets; both must occur.
        points: The operating points of the minimum costs, and for likelihood ratios also of the actual costs.
        llr: Whether scores are natural-log likelihood ratios, or the names of the detectors whose scores are: adds Cllr
            and the costs at the Bayes thresholds.
        thresholds: Thresholds that were not chosen on these trials; by detector if they differ.
        groups: By column, the group of each trial: ``(N,)`` names.
        clusters: ``(N,)`` names of what trials share, such as speakers: trials of a cluster are not independent.
        p_fa: Adds the lowest miss rates on these trials at these false-alarm rates at most, each in [0, 1].
        p_miss: Adds the lowest false-alarm rates on these trials at these miss rates at most, each in [0, 1].
        max_p_fa: Adds the standardised area under the ROC up to this false-alarm rate, in (0, 1].
        compared: The detectors that are compared in pairs. Default: all.
        intervals: Whether values get intervals and detectors are compared.

    Raises:
        ValueError: If an argument breaks its rule above.

    Warns:
        ReversedScoresWarning: If an area under the ROC is below 1/2.

    Example:
        >>> labels = torch.arange(400) % 4 == 0
        >>> scores = torch.arange(400).mul(0.6180339) % 1 + labels * 0.6
        >>> result = evaluate_detectors(scores, labels, points=[OperatingPoint(0.1)])
        >>> print(f"{result.value('equal_error_rate'):.3f} ({result.first.interval('equal_error_rate')})")
        0.183 (0.1413 to 0.2347)
    """
    by_name = preds if isinstance(preds, Mapping) else {"detector": preds}
    if not by_name:
        raise ValueError("preds must hold at least one detector, but is empty.")
    points = as_points(points)
    if max_p_fa is not None:
        check_max_p_fa(max_p_fa)
    labels = as_tensor(target, "target")
    scores = dict[str, Tensor]()
    for name, given in by_name.items():
        numbers = as_tensor(given, "preds").cpu()
        numbers = numbers if numbers.is_floating_point() else numbers.double()
        scores[str(name)], checked = checked_scores(numbers, labels.cpu())
    if len(scores) < len(by_name):
        raise ValueError(f"preds must have a name for each detector, but got {quoted(list(by_name))}.")
    _check_names("llr", [] if isinstance(llr, bool) else llr, scores)
    _check_names("thresholds", thresholds if isinstance(thresholds, Mapping) else [], scores)
    _check_names("compared", [] if compared is None else compared, scores)
    columns = {column: group_codes(column, names, len(checked)) for column, names in (groups or {}).items()}
    of_clusters = None if clusters is None else group_codes("clusters", clusters, len(checked))
    trials = TrialUnits(checked, None if of_clusters is None else of_clusters.codes)

    def detector_of(name: str, places: Tensor | None = None) -> Detector:
        is_llr = llr if isinstance(llr, bool) else name in llr
        fixed = thresholds.get(name, ()) if isinstance(thresholds, Mapping) else thresholds
        part = (scores[name], trials) if places is None else (scores[name][places], trials.part(places))
        return Detector(*part, points, is_llr=is_llr, fixed=fixed, limits=(p_fa, p_miss), max_p_fa=max_p_fa)

    detectors = {name: detector_of(name) for name in scores}
    for detector in detectors.values():
        warn_if_reversed(detector.summary.area, detector.summary.counts)
    values = {name: detector.scores_of(intervals=intervals) for name, detector in detectors.items()}
    notes, by_group = list[str](), list[GroupScores]()
    for column, (names, codes) in columns.items():
        places_of = {name: (codes == code).nonzero().squeeze(1) for code, name in enumerate(names)}
        complete = {name: places for name, places in places_of.items() if missing_kind(trials.labels[places]) is None}
        if len(complete) < len(names):
            left_out = ", ".join(name for name in names if name not in complete)
            notes.append(f"Without targets or without non-targets, by {column}: {left_out}.")
        for model in scores:
            parts = {name: detector_of(model, places) for name, places in complete.items()}
            of_groups = {name: part.scores_of(intervals=intervals) for name, part in parts.items()}
            by_group.append(GroupScores(model, column, values[model], of_groups))
    if intervals and of_clusters is not None:
        number = len(of_clusters.names)
        note = f"95 % intervals: {number} clusters are independent of each other, the trials of a cluster are not."
        notes.append(ONE_CLUSTER if number == 1 else note + (OF_DIFFERENCES if len(scores) > 1 else ""))
    elif intervals:
        notes.append(INDEPENDENT)
    wanted = {name: detector for name, detector in detectors.items() if compared is None or name in compared}
    comparisons = _compare(wanted) if intervals and len(wanted) > 1 else []
    return Result(values, by_group, comparisons, notes=notes)


def _check_names(argument: str, names: Collection[str], known: Collection[str]) -> None:
    """Refuse names of detectors that there are none of."""
    unknown = [name for name in names if name not in known]
    if isinstance(names, str) or unknown:
        given = names if isinstance(names, str) else unknown[0]
        raise ValueError(f"{argument} must hold names of detectors, {quoted(list(known))}, but got {quoted(given)}.")


class Detector:
    """The scores of one detector of some trials, which hold targets and non-targets."""

    def __init__(
        self,
        scores: Tensor,
        trials: TrialUnits,
        points: Sequence[OperatingPoint],
        *,
        is_llr: bool,
        fixed: Sequence[FixedThreshold],
        limits: tuple[Sequence[float], Sequence[float]],
        max_p_fa: float | None,
    ) -> None:
        self.scores, self.trials, self.points, self.is_llr, self._max_p_fa = scores, trials, points, is_llr, max_p_fa
        self.fixed = [*(bayes_thresholds(points) if is_llr else []), *fixed]
        counts = count_errors(scores, trials.labels)
        self.limiting = limiting_thresholds(counts, *limits)
        self.summary = summary_of(counts, area_under_roc(counts), points)

    def scores_of(self, *, intervals: bool) -> DetectorScores:
        """Return the values, and their intervals if they are asked for."""
        counts = self.summary.counts
        values, errors, metrics = dict[str, float](), dict[str, ErrorsAt](), list[DetectorMetric]()
        ends_or_reasons = dict[str, Interval | Reason]()

        def add(metric: DetectorMetric, value: Tensor | float, ends: Reason | Callable[[], Interval | Reason]) -> None:
            metrics.append(metric)
            values[metric.name] = float(value)
            if intervals:
                ends_or_reasons[metric.name] = ends if isinstance(ends, str) else ends()

        errors[EQUAL_ERROR.name] = ErrorsAt(cost_at(counts, EVEN, self.equal_error_threshold))
        add(EQUAL_ERROR, self.summary.equal_error.rate, self._hull_error_interval)
        add(INTERPOLATED, self.equal_error, self._equal_error_interval)
        for limiting in self.limiting:
            at = cost_at(counts, EVEN, limiting.threshold)
            add(DetectorMetric(limiting.name, limiting.title), limiting.value_of(at), CHOSEN_HERE)
            errors[limiting.name] = ErrorsAt(at)
        add(AREA, self.summary.area, self._area_interval)
        if self._max_p_fa is not None:
            title = f"{AREA.title} up to {100 * self._max_p_fa:g} % false alarms"
            partial_area = DetectorMetric(f"{AREA.name}[p_fa={self._max_p_fa:g}]", title, "max")
            add(partial_area, partial_auc_of(counts, self._max_p_fa), UNKNOWN)
        add(DetectorMetric("h_measure", "H-measure", "max"), h_measure_of(self.summary.hull.rates()), UNKNOWN)
        break_even = DetectorMetric("precision_recall_break_even", "precision-recall break-even, errors")
        add(break_even, break_even_of(self.summary.hull), UNKNOWN)
        for point, cost in zip(self.points, self.summary.min_costs, strict=True):
            name, title = f"min_cost[{key_of(point)}]", f"minimum cost, {point.label()}"
            metric = DetectorMetric(name, title, in_group_tables=not self.fixed)
            add(metric, cost.normalized, CHOSEN_HERE)
            errors[metric.name] = ErrorsAt(cost)
        add(DetectorMetric("min_cllr", "minimum Cllr"), self.summary.min_cllr, CHOSEN_HERE)
        if self.is_llr:
            add(CLLR, self.cllr, self._cllr_interval)
            loss = self.cllr - self.summary.min_cllr.item()
            add(DetectorMetric("calibration_loss", "calibration loss"), loss, CHOSEN_HERE)
        for fixed in self.fixed:
            cost = cost_at(counts, fixed.point, fixed.threshold)
            metric = DetectorMetric(fixed.name, fixed.title, in_group_tables=True)
            add(metric, fixed.value_of(cost), partial(self._fixed_interval, fixed))
            rates = [mean.interval(CONFIDENCE) for mean in self._errors(fixed.threshold)] if intervals else []
            errors[fixed.name] = ErrorsAt(cost, *rates)
        return DetectorScores(
            rows=len(self.scores),
            entries=metrics,
            values=values,
            intervals={name: ends for name, ends in ends_or_reasons.items() if not isinstance(ends, str)},
            without_interval={name: why for name, why in ends_or_reasons.items() if isinstance(why, str)},
            summary=self.summary,
            points=self.points,
            is_llr=self.is_llr,
            errors=errors,
        )

    @cached_property
    def equal_error(self) -> float:
        """The equal error rate on straight lines between the points of the curve."""
        return equal_error_of(self.summary.counts, "interpolated").rate.item()

    @cached_property
    def equal_error_threshold(self) -> float:
        """A threshold of nearly equal rates."""
        nearest = equal_error_of(self.summary.counts, "nearest")
        return middle_of(nearest.low, nearest.high).item()

    @cached_property
    def cllr(self) -> float:
        """The cost of log-likelihood ratios, in bits."""
        return sum(of_kind.mean().item() for of_kind in self.costs_in_bits)

    @cached_property
    def costs_in_bits(self) -> list[Tensor]:
        """The part of each trial in the mean of its kind, of which Cllr is the sum."""
        nothing = self.scores.new_zeros(())
        return [mean_cost_of(softplus(ratios), nothing) for ratios in self._wrong_ratios]

    @cached_property
    def _wrong_ratios(self) -> list[Tensor]:
        """The log-likelihood ratio of each trial for the other kind than its own."""
        targets, nontargets = self.trials.by_kind(self.scores)
        return [-targets, nontargets]

    @cached_property
    def misranked(self) -> list[Tensor]:
        """The share of the trials of the other kind that are ranked wrongly with a trial; ties count 1/2.

        As the jackknife of DeLong, DeLong and Clarke-Pearson has it, by kind, in the order of the trials.
        """
        places = torch.searchsorted(self.summary.counts.thresholds, self.scores)
        return [self._misranked_at(kind, of_kind) for kind, of_kind in enumerate(self.trials.by_kind(places))]

    @property
    def _ranked_misranked(self) -> list[Tensor]:
        """The same, but in the order of the scores, so that no trial is looked up: for independent trials."""
        shares, counts = list[Tensor](), self.summary.counts
        for kind, numbers in enumerate((counts.misses.diff(), -counts.false_alarms.diff())):
            places = numbers.nonzero().squeeze(1)
            shares.append(self._misranked_at(kind, places).repeat_interleave(numbers[places]))
        return shares

    def _misranked_at(self, kind: int, places: Tensor) -> Tensor:
        """Return the share for targets (0) or non-targets (1) whose scores are these thresholds."""
        counts = self.summary.counts
        others = (counts.false_alarms, counts.misses)[kind]
        return (others[places] + others[places + 1]).double() / (2 * (counts.nontargets, counts.targets)[kind])

    def value_at(self, fixed: FixedThreshold) -> float:
        """Return the value at a threshold."""
        return fixed.value_of(cost_at(self.summary.counts, fixed.point, fixed.threshold)).item()

    def weighted_errors(self, threshold: float, weights: tuple[float, float]) -> list[Tensor]:
        """Return the weight of a miss or of a false alarm for the trials of each kind that are one, else 0."""
        rejected_targets, rejected_nontargets = self.trials.by_kind(self.scores < threshold)
        return [weights[0] * rejected_targets.double(), weights[1] * (~rejected_nontargets).double()]

    def _errors(self, threshold: float, weights: tuple[float, float] = (1.0, 1.0)) -> list[Mean]:
        """Return the means of the weighted errors of targets and of non-targets at a threshold."""
        if self.trials.clusters is None:
            counts = self.summary.counts
            at = cost_at(counts, EVEN, threshold)
            errors = at.p_miss * counts.targets, at.p_fa * counts.nontargets
            trials = counts.targets, counts.nontargets
            return [rate_of(round(e.item()), int(n), w) for e, n, w in zip(errors, trials, weights, strict=True)]
        wrong, clusters = self.weighted_errors(threshold, weights), self.trials.by_kind(self.trials.clusters)
        return [mean_of(values, (0.0, weights[kind]), clusters[kind]) for kind, values in enumerate(wrong)]

    def _fixed_interval(self, fixed: FixedThreshold) -> Interval:
        if fixed.shown in ("miss rate", "false-alarm rate"):
            return self._errors(fixed.threshold)[fixed.shown == "false-alarm rate"].interval(CONFIDENCE)
        means = self._errors(fixed.threshold, fixed.weights)
        if self.trials.clusters is not None:  # which make both rates depend on each other
            possible = [(0.0, most) for most in fixed.weights]
            means = means_of(
                self.weighted_errors(fixed.threshold, fixed.weights), possible, self.trials.clusters_by_kind
            )
        return combined(self.value_at(fixed), means, (0.0, sum(fixed.weights)))

    def _area_interval(self) -> Interval | Reason:
        area, clusters = self.summary.area.item(), self.trials.clusters_by_kind
        misranked = self._ranked_misranked if clusters is None else self.misranked
        if clusters is None and effective(misranked, None) >= FEWEST_MISRANKED:
            return jackknife_interval(area, misranked, None, "logit")
        low, high = combined(1 - area, means_of(misranked, [RATE, RATE], clusters), RATE)
        return 1 - high, 1 - low

    def _cllr_interval(self) -> Interval | Reason:
        """Return the interval of the jackknife, if rare trials with large costs are not missing by chance."""
        clusters, fewest = self.trials.clusters_by_kind, FEWEST_WRONG["mean"]
        unit = "trials" if clusters is None else "clusters"
        targets, nontargets = self._wrong_ratios
        for place, wrong in enumerate((targets >= 0, nontargets > 0)):
            number = wrong.sum() if clusters is None else len(clusters[place][wrong].unique())  # type: ignore[no-untyped-call]
            if number < fewest:
                kind = ("targets", "non-targets")[place]
                return f"fewer than {fewest} {unit} have {kind} with ratios on the wrong side of 0"
        if fewest_effective(self.costs_in_bits, clusters) < FEWEST:
            return f"fewer than {FEWEST} {unit} of a kind have other ratios than the rest, so rare ones may make it"
        near = jackknife_interval(self.cllr, self.costs_in_bits, clusters, "log")
        if isinstance(near, str):
            return near
        possible = [(0.0, max(FURTHER_BITS, of_kind.max().item())) for of_kind in self.costs_in_bits]
        further = combined(self.cllr, means_of(self.costs_in_bits, possible, clusters), (0.0, inf))
        return near[0], max(near[1], further[1])

    def _equal_error_interval(self) -> Interval:
        of_miss, of_alarm, of_both = self._shifted_equal_errors
        equal = self.equal_error
        below, above = (hypot(equal - of_miss[end], equal - of_alarm[end]) for end in (0, 1))
        return max(equal - below, of_both[0]), min(equal + above, of_both[1])

    def _hull_error_interval(self) -> Interval:
        """Return that interval for the rate on the convex hull, which is lower, and at most 1/2."""
        (low, high), hull = self._equal_error_interval(), self.summary.equal_error.rate.item()
        return min(low, hull), high

    @cached_property
    def _shifted_equal_errors(self) -> tuple[Interval, Interval, Interval]:
        """The equal error rates with the miss rate, the false-alarm rate or both at ends of their intervals.

        They are at the same end at all thresholds, so that curves are shifted as a whole.
        """
        counts = self.summary.counts
        misses, alarms, thresholds = counts
        targets, nontargets = counts.targets.item(), counts.nontargets.item()

        @cache
        def end_of_rate(place: int, kind: int, end: int) -> float:
            return self._errors(thresholds[place].item())[kind].end(end, CONFIDENCE)

        def crossing(shifted: Sequence[int], end: int) -> float:
            def rates_at(place: int) -> tuple[float, float]:
                both = [misses[place].item() / targets, alarms[place].item() / nontargets]
                for kind in shifted:
                    both[kind] = end_of_rate(place, kind, end)
                return both[0], both[1]

            first, last = 0, len(thresholds) - 1
            while first < last:
                middle = (first + last) // 2
                miss, alarm = rates_at(middle)
                first, last = (first, middle) if miss >= alarm else (middle + 1, last)
            miss, alarm = rates_at(first)
            if first == 0 or miss == alarm:
                return miss
            before, alarm_before = rates_at(first - 1)
            span = alarm_before - before + miss - alarm  # 0 where infinite scores move neither rate
            return before + (alarm_before - before) / span * (miss - before) if span else before

        of_miss, of_alarm, of_both = ((crossing(shifted, 0), crossing(shifted, 1)) for shifted in ([0], [1], [0, 1]))
        return of_miss, of_alarm, of_both

    @cached_property
    def equal_error_weights(self) -> tuple[float, float]:
        """The change of the equal error rate with the miss rate and with the false-alarm rate at its threshold."""
        intervals = [mean.interval(CONFIDENCE) for mean in self._errors(self.equal_error_threshold)]
        slopes = [
            (high - low) / (rate_high - rate_low)
            for (low, high), (rate_low, rate_high) in zip(self._shifted_equal_errors, intervals, strict=False)
        ]
        total = sum(slopes)
        return slopes[0] / total, slopes[1] / total


def _compare(detectors: Mapping[str, Detector]) -> list[Comparison]:
    """Compare each pair by equal error rate, area, Cllr, costs at fixed thresholds, and wrong decisions."""
    rows = list[tuple[str, str, Measure, PairedDifference]]()
    for (first, one), (second, other) in combinations(detectors.items(), 2):
        rows += [(first, second, *compared) for compared in _differences(one, other)]
    order = list(dict.fromkeys(row[2].name for row in rows))
    return with_verdicts(sorted(rows, key=lambda row: order.index(row[2].name)), CONFIDENCE)


def _differences(one: Detector, other: Detector) -> Iterator[tuple[Measure, PairedDifference]]:
    """Yield the difference of a second detector from a first, for each metric that both have."""
    clusters = one.trials.clusters_by_kind
    both = (one, one.equal_error_weights), (other, other.equal_error_weights)
    first, second = (each.weighted_errors(each.equal_error_threshold, weights) for each, weights in both)
    possible = [(-least, most) for least, most in zip(both[0][1], both[1][1], strict=True)]
    apart = difference(one.equal_error, other.equal_error, _apart(first, second), possible, clusters)
    yield Measure(INTERPOLATED.title, is_rate=True, metric=INTERPOLATED.name), apart
    areas = [each.summary.area.item() for each in (one, other)]
    possible = [(-1.0, 1.0), (-1.0, 1.0)]
    apart = difference(areas[0], areas[1], _apart(other.misranked, one.misranked), possible, clusters)
    yield Measure(AREA.title, lower_is_better=False, metric=AREA.name), apart
    if one.is_llr and other.is_llr:
        apart_in_bits = _apart(one.costs_in_bits, other.costs_in_bits)
        yield Measure(CLLR.title, metric=CLLR.name), difference(one.cllr, other.cllr, apart_in_bits, None, clusters)
    of_other = {fixed.name: fixed for fixed in other.fixed if fixed.shown == "cost"}
    at_costs = [(fixed, of_other[fixed.name]) for fixed in one.fixed if fixed.name in of_other]
    for at, at_other in at_costs:
        weights, most = at.weights, sum(at.weights)
        errors = one.weighted_errors(at.threshold, weights), other.weighted_errors(at_other.threshold, weights)
        values = one.value_at(at), other.value_at(at_other)
        possible = [(-weight, weight) for weight in weights]
        yield Measure(at.title, metric=at.name), difference(*values, _apart(*errors), possible, clusters, (-most, most))
    for at, at_other in at_costs[:1]:
        labels = one.trials.labels
        wrong = (one.scores < at.threshold) == labels, (other.scores < at_other.threshold) == labels
        name = f"rate of wrong decisions in these trials, {at.point.label()}"
        measure = Measure(name, is_rate=True, metric=f"wrong_decisions[{key_of(at.point)}]")
        yield measure, difference_of_rates(wrong, one.trials.clusters)


def _apart(first: Sequence[Tensor], second: Sequence[Tensor]) -> list[Tensor]:
    """Return by how much the values of the trials of each kind by a second detector exceed those by a first."""
    return [values - of_first for of_first, values in zip(first, second, strict=True)]
