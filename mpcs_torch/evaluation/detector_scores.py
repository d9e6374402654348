"""The values of a detector on some trials, with the error rates at thresholds."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import inf, log2
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.evaluation.equal_error_ends import (
    EqualErrorEnds,
    combined,
    equal_error_ends,
)
from mpcs_torch.evaluation.first_screen import DetectorMetric
from mpcs_torch.evaluation.fixed_thresholds import (
    FixedThreshold,
    bayes_thresholds,
    limiting_thresholds,
    point_key,
)
from mpcs_torch.evaluation.influence import RARELY, IndependentUnits, Influences
from mpcs_torch.evaluation.intervals_and_bounds import interval
from mpcs_torch.evaluation.ranks import influences_on_areas
from mpcs_torch.evaluation.reasons import NOT_REQUESTED, Reason
from mpcs_torch.evaluation.rows import MIN_UNLIKELY
from mpcs_torch.evaluation.scores import Scores, with_ends, with_reasons
from mpcs_torch.functional import DetectionCost, DetectionSummary, OperatingPoint
from mpcs_torch.functional.comparison.means import Interval, Mean, error_mean, estimate_mean
from mpcs_torch.functional.comparison.significance import ComparedBy
from mpcs_torch.functional.detection.area import (
    HMeasure,
    PartialAUC,
    PrecisionRecallBreakEven,
)
from mpcs_torch.functional.detection.cost import EVEN, cost_at
from mpcs_torch.functional.detection.curve import summary_from_counts
from mpcs_torch.functional.detection.equal_error_rate import equal_error_from_counts
from mpcs_torch.functional.detection.errors import MIN_ERRORS, count_errors, midpoint
from mpcs_torch.functional.detection.llr_cost import cllr_from_means, softplus
from mpcs_torch.functional.inputs.confidence import CONFIDENCE, CONFIDENCE_TEXT
from mpcs_torch.functional.inputs.probabilities import MIN_PROBABILITY
from mpcs_torch.functional.quality.roc_area import RankedGroup
from mpcs_torch.tables import Table, in_digits

EQUAL_ERROR = DetectorMetric(
    "equal_error_rate",
    "equal error rate",
    in_group_tables=True,
    group_rank=0,
    computes="where miss and false-alarm rates are equal",
)
INTERPOLATED = DetectorMetric(
    "equal_error_rate_interpolated", "equal error rate (interpolated)", screen=None
)
AREA = DetectorMetric(
    "auroc",
    "area under the ROC",
    PartialAUC.direction,
    computes="chance that a target scores higher than a non-target",
)
CLLR = DetectorMetric(
    "cllr", "Cllr", in_group_tables=True, computes="mean cost in bits; 1 is no information"
)
CHOSEN_HERE = Reason(
    "no_method",
    text="the threshold is the best on these trials; thresholds that are learned on others, or given, have intervals",
)
UNKNOWN = Reason("no_method", text="no valid method is known")
ABOUT_MINIMUM = "lowest cost if the share of targets is p; 1 is no better than a constant"
RATE = (0.0, 1.0)
FURTHER_BITS = -0.5 * log2(MIN_PROBABILITY)
"""The cost in Cllr of a trial whose true kind gets `MIN_PROBABILITY`: the interval allows for one such trial."""
H_MEASURE = DetectorMetric("h_measure", "H-measure", HMeasure.direction, screen=None)
MIN_CLLR = DetectorMetric(
    "min_cllr",
    "minimum Cllr",
    computes="mean cost in bits after the best calibration here; 1 is no information",
)
CALIBRATION_LOSS = DetectorMetric("calibration_loss", "calibration loss", screen=None)
BREAK_EVEN = DetectorMetric(
    "precision_recall_break_even", "precision-recall break-even, errors", screen=None
)


class ErrorsAt(NamedTuple):
    """The error rates of a detector at a threshold."""

    cost: DetectionCost
    """The cost and the rates; for the equal error rate, at the threshold where the two rates differ least."""
    miss_rate: Interval | None = None
    """The interval of the miss rate; None without intervals, or if the threshold was chosen on these trials."""
    false_alarm_rate: Interval | None = None
    """The interval of the false-alarm rate; None in the same cases as ``miss_rate``."""

    def to_dict(self) -> dict[str, Any]:
        """Return the threshold, the rates, and the intervals that there are, as plain types."""
        plain: dict[str, Any] = {
            "threshold": self.cost.threshold.item(),
            "miss_rate": self.cost.p_miss.item(),
            "false_alarm_rate": self.cost.p_fa.item(),
        }
        if self.miss_rate is not None:
            plain["miss_rate_interval"] = self.miss_rate
        if self.false_alarm_rate is not None:
            plain["false_alarm_rate_interval"] = self.false_alarm_rate
        return plain


class MetricRow(NamedTuple):
    """A metric of a detector, and what is known of it."""

    metric: DetectorMetric
    value: float | Tensor
    interval: Callable[[], Interval | Reason] = lambda: UNKNOWN
    """The interval or the reason for none, as a function because intervals take time."""
    errors: ErrorsAt | None = None
    """The errors at the threshold of the metric, if it has one."""


@dataclass(frozen=True, kw_only=True)
class DetectorScores(Scores):
    """The values of a detector on some trials."""

    summary: DetectionSummary
    points: Sequence[OperatingPoint]
    is_llr: bool
    entries: Sequence[DetectorMetric]
    errors: Mapping[str, ErrorsAt] = field(default_factory=dict)
    """The errors at the threshold of each metric that has one."""

    def headline(self) -> str:
        """Return the numbers of trials as text."""
        return ", ".join(f"{number} {kind}" for kind, number in self.sizes().items())

    def sizes(self) -> dict[str, int]:
        """Return the numbers of targets and of non-targets."""
        return {
            "targets": int(self.summary.counts.targets),
            "non-targets": int(self.summary.counts.nontargets),
        }

    def table(self, names: Sequence[str] | None = None) -> Table:
        """Return a table with a row for each metric; an asterisk marks rates that are based on fewer than 30 errors."""
        header = [
            "metric",
            "value",
            CONFIDENCE_TEXT,
            "threshold",
            "miss rate",
            "false-alarm rate",
        ]
        names = list(self.values) if names is None else names
        costs = {entry.name for entry in self.entries if entry.is_cost}
        rows = list[list[str]]()
        for name in names:
            mark = "*" if name in costs and any(self._have_few_errors(name)) else ""
            value = f"{in_digits(self.values[name], 4)}{mark}"
            rows.append([name, value, self.interval(name), *self._cost_cells(name)])
        return Table(header, rows)

    def remarks(self, only: Collection[str] | None) -> list[str]:
        """Return sentences on the meaning of costs, and on metrics that have no value or no interval."""
        about_costs = "Costs are divided by that of the better constant decision (accept all or reject all)."
        return [about_costs, *super().remarks(only)]

    def table_remarks(self) -> list[str]:
        """Return sentences that explain the rates in the table of values."""
        remarks = []
        at = self.errors[EQUAL_ERROR.name].cost
        equal = in_digits(self.values[EQUAL_ERROR.name], 3)
        if any(in_digits(rate.item(), 3) != equal for rate in (at.p_miss, at.p_fa)):
            remarks.append(
                "The equal error rate is read off the convex hull of the ROC (ROCCH), whose points mix two thresholds "
                "at random; the rates in its row are those of one actual threshold, the one where they differ least."
            )
        if (
            self.values[EQUAL_ERROR.name] == 0
            and sum(self.sizes().values()) >= MIN_UNLIKELY
        ):
            remarks.append(
                "The scores tell targets from non-targets without any error: are the labels decisions at a threshold?"
            )
        if any(any(self._have_few_errors(name)) for name in self.values):
            remarks.append(
                "* fewer than 30 errors: the true rate may be more than 30 % higher or lower, and a cost with it. "
                "Without errors, the rate may be as high as 3 divided by the number of targets or non-targets, and "
                "the cost several times as high."
            )
        return remarks

    def to_dict(self) -> dict[str, Any]:
        """Return values, intervals, titles, errors at thresholds, and the convex hull of the ROC, as plain types."""
        hull = self.summary.hull.rates()
        errors = {name: at.to_dict() for name, at in self.errors.items()}
        titles = {entry.name: entry.title for entry in self.entries}
        hull_rates = {
            "miss_rate": hull.p_miss.tolist(),
            "false_alarm_rate": hull.p_fa.tolist(),
        }
        return {
            **super().to_dict(),
            "titles": titles,
            "errors": errors,
            "convex_hull": hull_rates,
        }

    def _have_few_errors(self, name: str) -> list[bool]:
        """Return whether misses, and false alarms, are few at the threshold of a metric; nothing if it has none."""
        at = self.errors.get(name)
        if at is None:
            return []
        misses = round(at.cost.p_miss.item() * int(self.summary.counts.targets))
        false_alarms = round(at.cost.p_fa.item() * int(self.summary.counts.nontargets))
        return [misses < MIN_ERRORS, false_alarms < MIN_ERRORS]

    def _cost_cells(self, name: str) -> list[str]:
        """Return the cells of the threshold of a metric, and of the rates there; empty ones if it has no threshold."""
        at = self.errors.get(name)
        if at is None:
            return ["", "", ""]
        cells = [in_digits(at.cost.threshold.item(), 5)]
        rates = (at.cost.p_miss.item(), at.cost.p_fa.item())
        intervals = (at.miss_rate, at.false_alarm_rate)
        are_few = self._have_few_errors(name)
        for rate, ends, is_few in zip(rates, intervals, are_few, strict=True):
            mark = "*" if is_few else ""
            cells.append(with_ends(f"{in_digits(rate, 3)}{mark}", ends, 3))
        return cells


class Detector:
    """The scores of a detector for some trials, with at least one target and one non-target."""

    def __init__(
        self,
        scores: Tensor,
        labels: Tensor,
        clusters: Tensor | None,
        points: Sequence[OperatingPoint],
        *,
        is_llr: bool,
        fixed: Sequence[FixedThreshold],
        limits: tuple[Sequence[float], Sequence[float]],
        partial_area: PartialAUC | None,
    ) -> None:
        self.scores = scores
        self.labels = labels
        self.clusters = clusters
        self.points = points
        self.is_llr = is_llr
        self._partial_area = partial_area
        thresholds = bayes_thresholds(points) if is_llr else []
        self.fixed = {each.name: each for each in [*thresholds, *fixed]}
        self._codes = torch.arange(len(labels)) if clusters is None else clusters
        """(N,): the unit of each trial, which is the trial itself or its cluster."""
        counts = count_errors(scores, labels)
        self.limiting = limiting_thresholds(counts, *limits)
        self.summary = summary_from_counts(counts, points)

    def compute_scores(self, *, intervals: bool) -> DetectorScores:
        """Compute the values, and their intervals if requested."""
        entries = list[DetectorMetric]()
        measured = dict[str, tuple[float, Interval | Reason]]()
        errors = dict[str, ErrorsAt]()
        for metric, value, ends, at in self._measured(intervals=intervals):
            entries.append(metric)
            measured[metric.name] = float(value), ends() if intervals else NOT_REQUESTED
            if at is not None:
                errors[metric.name] = at
        return DetectorScores(
            rows=len(self.scores),
            entries=entries,
            **with_reasons(measured),
            summary=self.summary,
            points=self.points,
            is_llr=self.is_llr,
            errors=errors,
        )

    def _measured(self, *, intervals: bool) -> Iterator[MetricRow]:
        """Yield all metrics in the order of tables."""
        yield from self._rates_and_areas()
        yield from self._minimum_costs()
        if self.is_llr:
            yield from self._costs_in_bits()
        for fixed in self.fixed.values():
            yield self._at_fixed_threshold(fixed, intervals=intervals)

    def _rates_and_areas(self) -> Iterator[MetricRow]:
        """Yield the metrics that need no costs and no share of targets."""
        counts = self.summary.counts
        summary = self.summary
        rate, threshold = self._equal_error
        at = cost_at(counts, EVEN, threshold)
        yield MetricRow(
            EQUAL_ERROR, summary.equal_error.rate, self._hull_ends, ErrorsAt(at)
        )
        yield MetricRow(INTERPOLATED, rate, lambda: self._ends.interval)
        for limiting in self.limiting:
            at = cost_at(counts, EVEN, limiting.threshold)
            metric = DetectorMetric(limiting.name, limiting.title, computes=limiting.title)
            yield MetricRow(
                metric, limiting.cost_value(at), lambda: CHOSEN_HERE, ErrorsAt(at)
            )
        yield MetricRow(AREA, summary.area, lambda: interval(self.area))
        if self._partial_area is not None:
            limit = self._partial_area.max_p_fa
            title = f"{AREA.title} up to {100 * limit:g} % false alarms"
            metric = DetectorMetric(
                f"{AREA.name}[p_fa={limit:g}]", title, PartialAUC.direction
            )
            yield MetricRow(metric, self._partial_area.from_counts(counts))
        yield MetricRow(H_MEASURE, HMeasure().from_counts(summary.hull))
        yield MetricRow(BREAK_EVEN, PrecisionRecallBreakEven().from_counts(summary.hull))

    def _minimum_costs(self) -> Iterator[MetricRow]:
        """Yield the lowest cost at each operating point, and the minimum Cllr."""
        for point, cost in zip(self.points, self.summary.min_costs, strict=True):
            name = f"min_cost[{point_key(point)}]"
            title = f"minimum cost, {point.label()}"
            metric = DetectorMetric(
                name,
                title,
                in_group_tables=not self.fixed,
                computes=ABOUT_MINIMUM,
                is_cost=True,
            )
            yield MetricRow(metric, cost.normalized, lambda: CHOSEN_HERE, ErrorsAt(cost))
        yield MetricRow(MIN_CLLR, self.summary.min_cllr, lambda: CHOSEN_HERE)

    def _costs_in_bits(self) -> Iterator[MetricRow]:
        """Yield Cllr, and what of it better calibration would save."""
        value = self.bits.value
        loss = value - self.summary.min_cllr.item()
        yield MetricRow(CLLR, value, lambda: interval(self.bits))
        yield MetricRow(CALIBRATION_LOSS, loss, lambda: CHOSEN_HERE)

    def _at_fixed_threshold(self, fixed: FixedThreshold, *, intervals: bool) -> MetricRow:
        """Return the cost or the error rate at a threshold that was not chosen on these trials."""
        at = cost_at(self.summary.counts, fixed.point, fixed.threshold)
        errors = ErrorsAt(at)
        if intervals:
            misses, false_alarms = self._errors(fixed.threshold)
            errors = ErrorsAt(
                at, misses.interval(CONFIDENCE), false_alarms.interval(CONFIDENCE)
            )
        metric = DetectorMetric(
            fixed.name,
            fixed.title,
            in_group_tables=True,
            computes=fixed.title,
            is_cost=fixed.shown == "cost",
        )
        ends = partial(self._fixed_interval, fixed)
        return MetricRow(metric, fixed.cost_value(at), ends, errors)

    def _hull_ends(self) -> Interval:
        """Return the interval of the equal error rate of the hull, which is at most the interpolated one."""
        low, high = self._ends.interval
        return min(low, self.summary.equal_error.rate.item()), high

    @cached_property
    def _kinds(self) -> list[Tensor]:
        """The indices of targets, and those of non-targets."""
        return [kind.nonzero().squeeze(1) for kind in (self.labels, ~self.labels)]

    @cached_property
    def _equal_error(self) -> tuple[float, float]:
        """The equal error rate, interpolated between points of the curve, and a threshold with nearly equal rates."""
        counts = self.summary.counts
        interpolated = equal_error_from_counts(counts, "interpolated")
        nearest = equal_error_from_counts(counts, "nearest")
        threshold = midpoint(nearest.low, nearest.high)
        return interpolated.rate.item(), threshold.item()

    @cached_property
    def _ends(self) -> EqualErrorEnds:
        """The interval of the equal error rate, and its derivatives."""
        return equal_error_ends(self.summary.counts, *self._equal_error, self._errors)

    @cached_property
    def units(self) -> IndependentUnits:
        """The trials, or their clusters."""
        sizes = self._codes.bincount().double()
        return IndependentUnits(
            sizes,
            torch.ones_like(sizes),
            None if self.clusters is None else "clusters",
            word="trials",
        )

    def influences(
        self,
        value: float,
        of_trials: Sequence[Tensor],
        possible: Sequence[Interval],
        limits: Interval = RATE,
        kinds: Sequence[Tensor | slice] | None = None,
    ) -> Influences:
        """Return the influences on a ``value`` that is the sum of means over kinds of trials.

        ``kinds`` are the indices of the trials of each kind; by default, targets and non-targets. ``of_trials`` are the
        values of the trials of each kind, and ``possible`` their lowest and highest possible values.
        """
        of_units = torch.zeros(len(self.units.rows), dtype=torch.float64)
        added = torch.zeros_like(of_units)
        of_rows = list[list[float]]()
        sizes = list[Tensor]()
        for values, ends, places in zip(
            of_trials, possible, kinds or self._kinds, strict=True
        ):
            mean = values.mean()
            number = len(values)
            codes = self._codes[places]
            of_units.index_add_(0, codes, (values - mean) / number)
            added.index_add_(0, codes, values / number)
            of_rows.append([(end - mean.item()) / number for end in ends])
            sizes.append(self.units.usual(codes.bincount(minlength=len(of_units)).double()))
        limits_of_rows = torch.tensor(of_rows, dtype=torch.float64)
        return Influences(
            value,
            of_units,
            self.units,
            added,
            of_rows=limits_of_rows,
            usual_error=limits_of_rows,
            class_sizes=torch.stack(sizes),
            limits=limits,
        )

    @cached_property
    def bits(self) -> Influences:
        """Cllr, the cost of log-likelihood ratios in bits, from 0 to infinity; and each trial's influence on it."""
        targets, nontargets = self._by_kind(self.scores)
        nothing = self.scores.new_zeros(())  # the cost of the other kind of trials
        costs = [
            cllr_from_means(softplus(ratios), nothing) for ratios in (-targets, nontargets)
        ]
        value = sum(by_kind.mean().item() for by_kind in costs)
        possible = [(0.0, max(FURTHER_BITS, by_kind.max().item())) for by_kind in costs]
        influences = self.influences(value, costs, possible, (0.0, inf))
        return influences._replace(usual_error=None, has_bound=False, further_share=RARELY)

    @cached_property
    def area(self) -> Influences:
        """The area under the ROC, with the influence of each trial."""
        weights = torch.ones(len(self.labels), dtype=torch.float64)
        areas = [RankedGroup(self.scores, self.labels, weights)]
        return influences_on_areas(
            areas, weights, self._codes, self.units.cluster, word="trials"
        )

    def at(
        self, threshold: float, weights: tuple[float, float], value: float | Tensor
    ) -> Influences:
        """Return each trial's influence on ``value``, the sum of ``weights`` times error rates at ``threshold``."""
        possible = [(0.0, weight) for weight in weights]
        limits = (0.0, sum(weights))
        return self.influences(
            float(value), self._errors_of_trials(threshold, weights), possible, limits
        )

    def at_fixed(self, fixed: FixedThreshold) -> Influences:
        """Return each trial's influence on the cost, or the error rate, at a threshold."""
        return self.at(fixed.threshold, fixed.weights, self._cost_at(fixed))

    def _errors_of_trials(
        self, threshold: float, weights: tuple[float, float]
    ) -> list[Tensor]:
        """Return the errors of targets and of non-targets at ``threshold``, (N_k,) each, times ``weights``."""
        rejected_targets, rejected_nontargets = self._by_kind(self.scores < threshold)
        misses = rejected_targets.double()
        false_alarms = (~rejected_nontargets).double()
        of_miss, of_false_alarm = weights
        return [of_miss * misses, of_false_alarm * false_alarms]

    def compared(
        self, costs: Sequence[str], *, has_cllr: bool
    ) -> dict[ComparedBy, Influences]:
        """Return the measures for comparing detectors, with the influences here. ``costs`` are keys of ``fixed``."""
        equal, threshold = self._equal_error
        errors = self.at(threshold, self._ends.slopes, equal)
        errors = errors._replace(limits=RATE, is_chosen=True)
        measures = {
            ComparedBy(INTERPOLATED.title, is_rate=True, metric=INTERPOLATED.name): errors,
            ComparedBy(AREA.title, lower_is_better=False, metric=AREA.name): self.area,
        }
        if has_cllr:
            measures[ComparedBy(CLLR.title, metric=CLLR.name)] = self.bits
        fixed = [self.fixed[name] for name in costs]
        for each in fixed:
            measures[ComparedBy(each.title, metric=each.name)] = self.at_fixed(each)
        if fixed:
            point = fixed[0].point
            is_rejected = self.scores < fixed[0].threshold
            wrong = (is_rejected == self.labels).double()
            title = f"rate of wrong decisions in these trials, {point.label()}"
            name = f"wrong_decisions[{point_key(point)}]"
            all_trials = [slice(None)]
            rate = self.influences(wrong.mean().item(), [wrong], [RATE], kinds=all_trials)
            measure = ComparedBy(title, is_rate=True, metric=name)
            measures[measure] = rate._replace(usual_error=None)
        return measures

    def _errors(
        self, threshold: float, weights: tuple[float, float] = (1.0, 1.0)
    ) -> list[Mean]:
        """Return the miss rate and the false-alarm rate at ``threshold``, times ``weights``, as means over trials."""
        if self.clusters is None:
            counts = self.summary.counts
            at = cost_at(counts, EVEN, threshold)
            misses = round((at.p_miss * counts.targets).item())
            false_alarms = round((at.p_fa * counts.nontargets).item())
            of_miss, of_false_alarm = weights
            return [
                error_mean(misses, int(counts.targets), of_miss),
                error_mean(false_alarms, int(counts.nontargets), of_false_alarm),
            ]
        errors = self._errors_of_trials(threshold, weights)
        clusters = self._by_kind(self.clusters)
        return [
            estimate_mean(of_kind, (0.0, weight), clusters_of_kind)
            for of_kind, weight, clusters_of_kind in zip(
                errors, weights, clusters, strict=True
            )
        ]

    def _fixed_interval(self, fixed: FixedThreshold) -> Interval | Reason:
        if fixed.shown in ("miss rate", "false-alarm rate"):
            misses, false_alarms = self._errors(fixed.threshold)
            rate = misses if fixed.shown == "miss rate" else false_alarms
            return rate.interval(CONFIDENCE)
        if self.clusters is not None:  # clusters make the two rates depend on each other
            return interval(self.at_fixed(fixed))
        errors = self._errors(fixed.threshold, fixed.weights)
        limits = (0.0, sum(fixed.weights))
        return combined(self._cost_at(fixed).item(), errors, limits)

    def _cost_at(self, fixed: FixedThreshold) -> Tensor:
        return fixed.cost_value(cost_at(self.summary.counts, fixed.point, fixed.threshold))

    def _by_kind(self, values: Tensor) -> list[Tensor]:
        """Split the values of trials, (N,), into those of targets and those of non-targets."""
        return [values[places] for places in self._kinds]


def det_points(detectors: Mapping[str, DetectorScores]) -> Table:
    """Return a table of DET curves: the error rates of each detector at all its thresholds, in ascending order."""
    rows = list[list[str]]()
    for name, scores in detectors.items():
        rates = scores.summary.counts.rates()
        points = zip(
            rates.thresholds.tolist(),
            rates.p_miss.tolist(),
            rates.p_fa.tolist(),
            strict=True,
        )
        rows += [[name, *map(repr, point)] for point in points]
    return Table(["detector", "threshold", "miss_rate", "false_alarm_rate"], rows)
