"""Evaluate detectors on the same trials: values with intervals, values by group, and comparisons."""

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal, cast

import torch
from torch import Tensor

from mpcs_torch.errors import InvalidValueError
from mpcs_torch.evaluation.cautions import independence, independence_of_clusters
from mpcs_torch.evaluation.detector_scores import Detector, DetectorScores
from mpcs_torch.evaluation.fixed_thresholds import Thresholds, as_fixed_thresholds
from mpcs_torch.evaluation.paired_differences import (
    NotCompared,
    adjusted,
    difference,
)
from mpcs_torch.evaluation.reasons import Reason
from mpcs_torch.evaluation.result import Result
from mpcs_torch.evaluation.rows import names_in
from mpcs_torch.evaluation.scores import GroupScores
from mpcs_torch.evaluation.unit_sums import places_by_code
from mpcs_torch.evaluation.units import DecisionUnits
from mpcs_torch.functional import Comparison, OperatingPoint, PairedDifference
from mpcs_torch.functional.comparison.significance import ComparedBy
from mpcs_torch.functional.detection.area import PartialAUC
from mpcs_torch.functional.detection.cost import as_points
from mpcs_torch.functional.detection.errors import (
    check_both_occur,
    checked_scores,
    missing_kind,
    warn_if_reversed,
)
from mpcs_torch.functional.inputs.arrays import as_tensor
from mpcs_torch.functional.inputs.groups import Groups, group_codes, row_names

POINTS = (OperatingPoint(0.5), OperatingPoint(0.01), OperatingPoint(0.001))
MISSES = (0.05, 0.01)
"""The miss rates at which the false-alarm rate is measured: sensitivities of 95 and 99 %."""
ONE_CLUSTER = "All trials belong to one cluster, which shows nothing about other clusters: intervals are of little use."


def evaluate_detectors(
    preds: Any,
    target: Any,
    *,
    target_label: str | None = None,
    points: Sequence[OperatingPoint] = POINTS,
    llr: bool | Collection[str] = False,
    thresholds: Thresholds | Mapping[str, Thresholds] = (),
    groups: Mapping[str, Groups | Sequence[object] | Tensor] | None = None,
    clusters: Groups | Sequence[object] | Tensor | None = None,
    unit: Groups | Sequence[object] | Tensor | None = None,
    combine: Literal["mean", "worst"] = "mean",
    has_units: bool = False,
    p_fa: Sequence[float] = (),
    p_miss: Sequence[float] = MISSES,
    max_p_fa: float | None = None,
    compared: Collection[str] | None = None,
    intervals: bool = True,
) -> Result[DetectorScores]:
    """Evaluate one or several detectors on the same trials.

    The equal error rate and the area under the ROC have intervals. Error rates and costs have intervals at thresholds
    that were not chosen on these trials. These intervals combine that of a mean over targets and that of a mean over
    non-targets (`mpcs_torch.functional.bounded_mean_interval`, for rates `clopper_pearson`) by square-and-add (MOVER).
    `Cllr` has a jackknife interval if enough ratios are on the wrong side of 0. To compare two detectors, the same
    methods are applied to their difference in each trial. With clusters, clusters are independent, not trials.

    Args:
        preds: ``(N,)`` scores, floating point, of any range, higher for targets; or a dictionary by detector.
        target: ``(N,)`` integers or bools: 1 for targets, 0 for non-targets; or names. Both must occur.
        target_label: The name in ``target`` that stands for targets; all other names stand for non-targets.
        points: The operating points at which minimum costs, and for likelihood ratios also actual costs, are measured.
        llr: Whether scores are natural-log likelihood ratios, or the names of the detectors whose scores are such
            ratios. For such detectors, Cllr and the costs at the Bayes thresholds are measured, too.
        thresholds: Numbers that were not chosen on these trials; a dictionary by detector if they differ. At each, the
            costs at ``points`` and the half total error rate are measured.
        groups: By column: ``(N,)`` names of the group of each trial.
        clusters: ``(N,)`` names of clusters, such as speakers: trials of the same cluster are not independent.
        unit: ``(N,)`` names of the units of decision, such as patients. The trials of a unit are combined into one
            trial before anything is evaluated; they must have the same groups and clusters.
        combine: The score of a unit: ``"mean"`` of its trials, which must then all have the same label; or ``"worst"``,
            their highest score: the unit is then a target if one of its trials is a target.
        has_units: Whether the trials are units already, into which rows were combined; sentences then call them so.
        p_fa: Limits on the false-alarm rate, each in [0, 1]: the lowest miss rate under each limit is measured, too.
        p_miss: Limits on the miss rate, each in [0, 1]: the lowest false-alarm rate under each limit is measured, too.
        max_p_fa: A false-alarm rate in (0, 1]: the standardised area under the ROC up to this rate is measured, too.
        compared: The names of the detectors that are compared in pairs. Default: all.
        intervals: Whether to compute intervals and compare detectors.

    Raises:
        ValueError: If an argument breaks its rule above.

    Warns:
        ReversedScoresWarning: If the area under the ROC of a detector is below 1/2.

    Example:
        >>> labels = torch.arange(400) % 4 == 0
        >>> scores = torch.arange(400).mul(0.6180339) % 1 + labels * 0.6
        >>> result = evaluate_detectors(scores, labels, points=[OperatingPoint(0.1)])
        >>> print(f"{result.value('equal_error_rate'):.3f} ({result.first.interval('equal_error_rate')})")
        0.183 (0.1413 to 0.2347)
    """
    by_name = preds if isinstance(preds, Mapping) else {"detector": preds}
    if not by_name:
        raise InvalidValueError("not_empty", "preds")
    points = as_points(points)
    partial_area = None if max_p_fa is None else PartialAUC(max_p_fa=max_p_fa)
    labels = _labels(target, target_label)
    scores = dict[str, Tensor]()
    for name, each in by_name.items():
        numbers = as_tensor(each, "preds").cpu()
        if not numbers.is_floating_point():
            numbers = numbers.double()
        scores[str(name)], is_target = checked_scores(numbers, labels)
    if len(scores) < len(by_name):
        raise InvalidValueError("different_names", "preds", list(by_name))
    _check_names("llr", [] if isinstance(llr, bool) else llr, scores)
    of_names: Mapping[str, Thresholds] = dict.fromkeys(scores, cast(Thresholds, thresholds))
    if isinstance(thresholds, Mapping):
        of_names = thresholds
    _check_names("thresholds", of_names, scores)
    fixed = {name: as_fixed_thresholds(each, points) for name, each in of_names.items()}
    _check_names("compared", [] if compared is None else compared, scores)
    notes = list[str]()
    columns = {
        column: group_codes(column, names, len(labels))
        for column, names in (groups or {}).items()
    }
    of_clusters: Groups | None = None
    if clusters is not None:
        of_clusters = group_codes("clusters", clusters, len(labels))
    if unit is not None:
        units = DecisionUnits.of(unit, combine, None, 2, len(labels))
        for name, of_trials in scores.items():
            scores[name], combined = units.trials(of_trials, is_target)
        is_target = combined
        check_both_occur(is_target)
        for column, of_rows in columns.items():
            columns[column] = units.combined_groups(of_rows, f"groups[{column!r}]")
        if of_clusters is not None:
            of_clusters = units.combined_groups(of_clusters, "clusters")
        notes.append(units.note(("non-target", "target")))

    def detector(name: str, places: Tensor | slice) -> Detector:
        ids = None
        if of_clusters is not None:
            ids = of_clusters.codes[places].unique(return_inverse=True)[1]  # type: ignore[no-untyped-call]
        return Detector(
            scores[name][places],
            is_target[places],
            ids,
            points,
            is_llr=llr if isinstance(llr, bool) else name in llr,
            fixed=fixed.get(name, []),
            limits=(p_fa, p_miss),
            partial_area=partial_area,
        )

    detectors = {name: detector(name, slice(None)) for name in scores}
    for each in detectors.values():
        warn_if_reversed(each.summary.area, each.summary.counts)
    values = {
        name: each.compute_scores(intervals=intervals) for name, each in detectors.items()
    }
    by_group = list[GroupScores]()
    for column, (names, codes) in columns.items():
        complete = dict[str, Tensor]()
        for code, places in places_by_code(codes).items():
            if missing_kind(is_target[places]) is None:
                complete[names[code]] = places
        if len(complete) < len(names):
            left_out = ", ".join(name for name in names if name not in complete)
            notes.append(
                f"Without targets or without non-targets, by {column}: {left_out}."
            )
        for model in scores:
            of_groups = {
                name: detector(model, places).compute_scores(intervals=intervals)
                for name, places in complete.items()
            }
            by_group.append(GroupScores(model, column, values[model], of_groups))
    comparisons = list[Comparison]()
    without = list[NotCompared]()
    if intervals:
        kind = "units" if has_units or unit is not None else "trials"
        notes.append(_about_units(of_clusters, kind, are_compared=len(scores) > 1))
        pairs = {
            name: each
            for name, each in detectors.items()
            if compared is None or name in compared
        }
        comparisons, without = _compare(pairs)
    notes += map(str, without)
    return Result(
        values, by_group, comparisons, notes=notes, without=without, is_default=True
    )


def _about_units(clusters: Groups | None, kind: str, *, are_compared: bool) -> str:
    """Return a sentence on what the intervals take as independent: clusters, or samples of a ``kind``."""
    if clusters is None:
        return independence(kind)
    number = len(clusters.names)
    if number == 1:
        return ONE_CLUSTER
    return independence_of_clusters(
        f"{number} clusters", "trials", are_compared=are_compared
    )


def _labels(target: Any, target_label: str | None) -> Tensor:
    """Return labels as a tensor; names become True if they equal ``target_label``, else False."""
    names = names_in(target)
    if target_label is None and not names:
        return as_tensor(target, "target").cpu()
    distinct = sorted({*row_names("target", names, len(names))})
    if target_label not in distinct:
        code = "one_of" if names else "none_for_numbers"
        raise InvalidValueError(code, "target_label", target_label, choices=distinct)
    return torch.tensor([name == target_label for name in names])


def _check_names(argument: str, names: Collection[str], known: Collection[str]) -> None:
    unknown = [name for name in names if name not in known]
    if isinstance(names, str):  # a single name is no list of names
        unknown = [names]
    if unknown:
        raise InvalidValueError("names_among", argument, unknown[0], known=list(known))


def _compare(
    detectors: Mapping[str, Detector],
) -> tuple[list[Comparison], list[NotCompared]]:
    """Compare each pair of detectors by the measures of `Detector.compared`; say which were not compared, and why."""
    rows = list[tuple[str, str, ComparedBy, PairedDifference | Reason]]()
    for (first, one), (second, other) in combinations(detectors.items(), 2):
        costs = [
            name
            for name, each in one.fixed.items()
            if each.shown == "cost" and name in other.fixed
        ]
        has_cllr = one.is_llr and other.is_llr
        estimates = one.compared(costs, has_cllr=has_cllr)
        others = other.compared(costs, has_cllr=has_cllr)
        for measure, estimate in estimates.items():
            rows.append((first, second, measure, difference(estimate, others[measure])))
    order = list(dict.fromkeys(measure.name for _, _, measure, _ in rows))
    return adjusted(sorted(rows, key=lambda row: order.index(row[2].name)))
