"""Evaluate detectors: values with intervals, groups, and the comparison of several detectors on the same trials."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from itertools import combinations
from math import hypot, inf, log2
from typing import Any

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
from mpcs_torch.evaluation.influences import Influences, area_interval, area_of, combined, difference
from mpcs_torch.evaluation.intervals import CONFIDENCE, FEWEST, FEWEST_WRONG, OF_DIFFERENCES, Reason
from mpcs_torch.evaluation.result import Result
from mpcs_torch.evaluation.scores import DetectorMetric, GroupScores
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
    misranked_shares,
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
BREAK_EVEN = DetectorMetric("precision_recall_break_even", "precision-recall break-even, errors")
Measured = tuple[DetectorMetric, float | Tensor, Reason | Callable[[], Interval | Reason], ErrorsAt | None]


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
        >>> import torch
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
    trials = Trials(checked, None if of_clusters is None else of_clusters.codes)

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
    comparisons, without = _compare(wanted) if intervals and len(wanted) > 1 else ([], [])
    return Result(values, by_group, comparisons, notes=[*notes, *without])


def _check_names(argument: str, names: Collection[str], known: Collection[str]) -> None:
    """Refuse names of detectors that there are none of."""
    unknown = [name for name in names if name not in known]
    if isinstance(names, str) or unknown:
        given = names if isinstance(names, str) else unknown[0]
        raise ValueError(f"{argument} must hold names of detectors, {quoted(list(known))}, but got {quoted(given)}.")


class Trials:
    """Trials of two kinds, targets and non-targets, and their clusters."""

    def __init__(self, labels: Tensor, clusters: Tensor | None = None) -> None:
        """Hold trials.

        Args:
            labels: (N,), bool: True for targets.
            clusters: (N,), int64 codes; None if trials are independent.
        """
        self.labels = labels
        self.clusters = None if clusters is None else clusters.unique(return_inverse=True)[1]  # type: ignore[no-untyped-call]

    @cached_property
    def kinds(self) -> list[Tensor]:
        """The places of targets, and of non-targets."""
        return [kind.nonzero().squeeze(1) for kind in (self.labels, ~self.labels)]

    def by_kind(self, values: Tensor) -> list[Tensor]:
        """Return the values (N, ...) of the trials of each kind."""
        return [values[places] for places in self.kinds]

    @cached_property
    def clusters_by_kind(self) -> list[Tensor] | None:
        """The clusters of the trials of each kind; None if trials are independent."""
        return None if self.clusters is None else self.by_kind(self.clusters)

    def part(self, places: Tensor) -> "Trials":
        """Return some of the trials."""
        return Trials(self.labels[places], None if self.clusters is None else self.clusters[places])


class Detector:
    """The scores of one detector of some trials, which hold targets and non-targets."""

    def __init__(
        self,
        scores: Tensor,
        trials: Trials,
        points: Sequence[OperatingPoint],
        *,
        is_llr: bool,
        fixed: Sequence[FixedThreshold],
        limits: tuple[Sequence[float], Sequence[float]],
        max_p_fa: float | None,
    ) -> None:
        self.scores, self.trials, self.points, self.is_llr, self._max_p_fa = scores, trials, points, is_llr, max_p_fa
        self.fixed = {each.name: each for each in [*(bayes_thresholds(points) if is_llr else []), *fixed]}
        counts = count_errors(scores, trials.labels)
        self.limiting = limiting_thresholds(counts, *limits)
        self.summary = summary_of(counts, area_under_roc(counts), points)

    def scores_of(self, *, intervals: bool) -> DetectorScores:
        """Return the values, and their intervals if they are asked for."""
        rows = list(self._measured(intervals=intervals))
        ends = {metric.name: each() if callable(each) else each for metric, _, each, _ in rows if intervals}
        return DetectorScores(
            rows=len(self.scores),
            entries=[metric for metric, *_ in rows],
            values={metric.name: float(value) for metric, value, *_ in rows},
            intervals={name: each for name, each in ends.items() if not isinstance(each, str)},
            without_interval={name: each for name, each in ends.items() if isinstance(each, str)},
            summary=self.summary,
            points=self.points,
            is_llr=self.is_llr,
            errors={metric.name: errors for metric, *_, errors in rows if errors is not None},
        )

    def _measured(self, *, intervals: bool) -> Iterator[Measured]:
        """Yield each metric with its value, its interval or why it has none, and the errors if it has a threshold."""
        counts, summary = self.summary.counts, self.summary
        equal = ErrorsAt(cost_at(counts, EVEN, self.equal_error_threshold))
        yield EQUAL_ERROR, summary.equal_error.rate, self._hull_error_interval, equal
        yield INTERPOLATED, self.equal_error, self._equal_error_interval, None
        for limiting in self.limiting:
            at = cost_at(counts, EVEN, limiting.threshold)
            yield DetectorMetric(limiting.name, limiting.title), limiting.value_of(at), CHOSEN_HERE, ErrorsAt(at)
        yield AREA, summary.area, self._area_interval, None
        if self._max_p_fa is not None:
            title = f"{AREA.title} up to {100 * self._max_p_fa:g} % false alarms"
            partial_area = DetectorMetric(f"{AREA.name}[p_fa={self._max_p_fa:g}]", title, "max")
            yield partial_area, partial_auc_of(counts, self._max_p_fa), UNKNOWN, None
        yield DetectorMetric("h_measure", "H-measure", "max"), h_measure_of(summary.hull.rates()), UNKNOWN, None
        yield BREAK_EVEN, break_even_of(summary.hull), UNKNOWN, None
        for point, cost in zip(self.points, summary.min_costs, strict=True):
            name, title = f"min_cost[{key_of(point)}]", f"minimum cost, {point.label()}"
            metric = DetectorMetric(name, title, in_group_tables=not self.fixed)
            yield metric, cost.normalized, CHOSEN_HERE, ErrorsAt(cost)
        yield DetectorMetric("min_cllr", "minimum Cllr"), summary.min_cllr, CHOSEN_HERE, None
        if self.is_llr:
            yield CLLR, self.bits.value, self._cllr_interval, None
            loss = self.bits.value - summary.min_cllr.item()
            yield DetectorMetric("calibration_loss", "calibration loss"), loss, CHOSEN_HERE, None
        for fixed in self.fixed.values():
            at = cost_at(counts, fixed.point, fixed.threshold)
            rates = [mean.interval(CONFIDENCE) for mean in self._errors(fixed.threshold)] if intervals else []
            metric = DetectorMetric(fixed.name, fixed.title, in_group_tables=True)
            yield metric, fixed.value_of(at), partial(self._fixed_interval, fixed), ErrorsAt(at, *rates)

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
    def bits(self) -> Influences:
        """The cost of log-likelihood ratios, in bits, which is not bounded."""
        nothing = self.scores.new_zeros(())
        costs = [mean_cost_of(softplus(ratios), nothing) for ratios in self._wrong_ratios]
        value = sum(of_kind.mean().item() for of_kind in costs)
        return Influences(value, costs, limits=(0.0, inf), clusters=self.trials.clusters_by_kind)

    @property
    def _wrong_ratios(self) -> list[Tensor]:
        """The log-likelihood ratio of each trial for the other kind than its own."""
        targets, nontargets = self.trials.by_kind(self.scores)
        return [-targets, nontargets]

    @cached_property
    def misranked(self) -> list[Tensor]:
        """The share of the trials of the other kind that are ranked wrongly with a trial, of each kind."""
        return misranked_shares(self.summary.counts, (self.scores, self.trials.labels))

    def at(self, threshold: float, weights: tuple[float, float], value: float | Tensor) -> Influences:
        """Return a value that is the sum of the weighted rates of misses and of false alarms at a threshold."""
        is_rejected = self.trials.by_kind(self.scores < threshold)
        errors = [weights[0] * is_rejected[0].double(), weights[1] * (~is_rejected[1]).double()]
        possible, limits = [(0.0, weight) for weight in weights], (0.0, sum(weights))
        return Influences(float(value), errors, possible, limits, self.trials.clusters_by_kind)

    def compared(self, costs: Sequence[str], *, has_cllr: bool) -> Iterator[tuple[Measure, Influences]]:
        """Yield what detectors are compared by: the costs at these of the fixed thresholds, and more."""
        clusters, counts = self.trials.clusters, self.summary.counts
        equal = self.at(self.equal_error_threshold, self.equal_error_weights, self.equal_error)
        yield Measure(INTERPOLATED.title, is_rate=True, metric=INTERPOLATED.name), equal._replace(limits=RATE)
        area = area_of(self.misranked, self.trials.clusters_by_kind)
        yield Measure(AREA.title, lower_is_better=False, metric=AREA.name), area
        if has_cllr:
            yield Measure(CLLR.title, metric=CLLR.name), self.bits
        fixed = [self.fixed[name] for name in costs]
        for each in fixed:
            value = each.value_of(cost_at(counts, each.point, each.threshold))
            yield Measure(each.title, metric=each.name), self.at(each.threshold, each.weights, value)
        for each in fixed[:1]:
            wrong = ((self.scores < each.threshold) == self.trials.labels).double()
            title = f"rate of wrong decisions in these trials, {each.point.label()}"
            measure = Measure(title, is_rate=True, metric=f"wrong_decisions[{key_of(each.point)}]")
            together = None if clusters is None else [clusters]
            yield measure, Influences(wrong.mean().item(), [wrong], [RATE], clusters=together)

    def _errors(self, threshold: float, weights: tuple[float, float] = (1.0, 1.0)) -> list[Mean]:
        """Return the means of the weighted errors of targets and of non-targets at a threshold."""
        counts = self.summary.counts
        at = cost_at(counts, EVEN, threshold)
        if self.trials.clusters_by_kind is None:
            errors = at.p_miss * counts.targets, at.p_fa * counts.nontargets
            trials = counts.targets, counts.nontargets
            return [rate_of(round(e.item()), int(n), w) for e, n, w in zip(errors, trials, weights, strict=True)]
        wrong = self.at(threshold, weights, at.cost).kinds
        rows = zip(wrong, weights, self.trials.clusters_by_kind, strict=True)
        return [mean_of(errors, (0.0, weight), clusters) for errors, weight, clusters in rows]

    def _fixed_interval(self, fixed: FixedThreshold) -> Interval:
        if fixed.shown in ("miss rate", "false-alarm rate"):
            return self._errors(fixed.threshold)[fixed.shown == "false-alarm rate"].interval(CONFIDENCE)
        value = fixed.value_of(cost_at(self.summary.counts, fixed.point, fixed.threshold)).item()
        if self.trials.clusters is not None:  # which make both rates depend on each other
            return self.at(fixed.threshold, fixed.weights, value).bounds()
        return combined(value, self._errors(fixed.threshold, fixed.weights), (0.0, sum(fixed.weights)))

    def _area_interval(self) -> Interval | Reason:
        clusters = self.trials.clusters_by_kind
        return area_interval(misranked_shares(self.summary.counts) if clusters is None else self.misranked, clusters)

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
        if min(self.bits.of_kind(place).effective() for place in (0, 1)) < FEWEST:
            return f"fewer than {FEWEST} {unit} of a kind have other ratios than the rest, so rare ones may make it"
        near = self.bits.jackknife("log")
        if isinstance(near, str):
            return near
        possible = [(0.0, max(FURTHER_BITS, of_kind.max().item())) for of_kind in self.bits.kinds]
        return near[0], max(near[1], self.bits._replace(possible=possible).bounds()[1])

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


def _compare(detectors: Mapping[str, Detector]) -> tuple[list[Comparison], list[str]]:
    """Compare each pair by equal error rate, area, Cllr, costs at fixed thresholds, and wrong decisions.

    Returns:
        The comparisons, and why there are no others.
    """
    rows, notes = list[tuple[str, str, Measure, PairedDifference]](), list[str]()
    for (first, one), (second, other) in combinations(detectors.items(), 2):
        costs = [name for name, each in one.fixed.items() if each.shown == "cost" and name in other.fixed]
        has_cllr = one.is_llr and other.is_llr
        both = (each.compared(costs, has_cllr=has_cllr) for each in (one, other))
        for (measure, value), (_, value_of_other) in zip(*both, strict=True):
            paired = difference(value, value_of_other)
            if isinstance(paired, str):
                notes.append(f"No difference between {first} and {second} by {measure.name}: {paired}.")
            else:
                rows.append((first, second, measure, paired))
    order = list(dict.fromkeys(row[2].name for row in rows))
    return with_verdicts(sorted(rows, key=lambda row: order.index(row[2].name)), CONFIDENCE), notes
