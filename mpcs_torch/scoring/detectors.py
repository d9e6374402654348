"""Detectors that are measured on the same trials: matched by name, calibrated, fused and compared."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.calibration import LogisticCalibration, LogisticFusion, PAVCalibration
from mpcs_torch.errors import quoted
from mpcs_torch.functional import (
    Comparison,
    Measure,
    OperatingPoint,
    Resamples,
    actual_cost_statistic,
    cllr_statistic,
    compare_systems,
    equal_error_statistic,
    rate_measure,
)
from mpcs_torch.scoring.bootstrap import CLLR, INTERPOLATED
from mpcs_torch.scoring.chunks import PredictionsError
from mpcs_torch.scoring.thresholds import FixedThreshold, bayes_thresholds
from mpcs_torch.scoring.trials import Trials, TrialTable

CalibrationMethod = Literal["logistic", "pav"]


class Detector(NamedTuple):
    """A detector, with its scores of the trials to be measured."""

    name: str
    trials: Trials
    is_llr: bool
    development: Trials | None = None
    """Other trials, from which thresholds, calibrations and fusions are learnt."""


def in_order_of(first: TrialTable, other: TrialTable, paths: tuple[Path, Path]) -> Trials:
    """Return the trials of another detector in the order of the first, by the names of the trials.

    Files that do not name their trials are matched row by row.

    Raises:
        PredictionsError: If a trial is missing in one of the files, or has another label there.
    """
    if first.names is None or other.names is None:
        if (first.names is None) != (other.names is None):
            unnamed = paths[0] if first.names is None else paths[1]
            raise PredictionsError(unnamed, "must name its trials (a column trial, or --key) as the other file does")
        if len(first.trials.labels) != len(other.trials.labels):
            sizes = f"{len(other.trials.labels)} trials, but {paths[0]} has {len(first.trials.labels)}"
            raise PredictionsError(paths[1], f"has {sizes}: without names, they are matched row by row")
        trials = other.trials
    else:
        import pyarrow
        from pyarrow import compute

        for names, held, (lacking, having) in (
            (first.names, other.names, paths[::-1]),
            (other.names, first.names, paths),
        ):
            missing = compute.filter(names, compute.invert(compute.is_in(names, value_set=held)))
            if len(missing):
                problem = f"has no score for {len(missing)} trials of {having}, such as {quoted(missing[0].as_py())}"
                raise PredictionsError(lacking, problem)
        order = compute.index_in(first.names, value_set=other.names)
        places = torch.from_numpy(np.from_dlpack(order.cast(pyarrow.int64())).copy())
        trials = Trials(other.trials.scores[places], other.trials.labels[places])
    differs = trials.labels != first.trials.labels
    if differs.any():
        place = int(differs.nonzero()[0])
        name = f"trial {quoted(first.names[place].as_py())}" if first.names is not None else f"row {place + 1}"
        raise PredictionsError(paths[1], f"{name} must have the label that it has in {paths[0]}")
    return trials


def calibrated(detector: Detector, method: CalibrationMethod, p_target: float, path: Path) -> Detector:
    """Return a detector whose scores are log-likelihood ratios, by a calibration fitted to its development trials.

    Raises:
        PredictionsError: If the development trials, of the file ``path``, cannot be calibrated.
    """
    development = _development_of(detector)
    module = LogisticCalibration(p_target) if method == "logistic" else PAVCalibration()
    try:
        module.fit(*development)
    except ValueError as error:
        raise PredictionsError(path, str(error)) from None
    learned, measured = (trials._replace(scores=module(trials.scores)) for trials in (development, detector.trials))
    return Detector(f"{detector.name}, calibrated", measured, is_llr=True, development=learned)


def fused(detectors: Sequence[Detector], p_target: float, path: Path) -> Detector:
    """Return the fusion of detectors with the same trials in the same order, fitted to their development trials.

    Raises:
        PredictionsError: If the development trials, of the file ``path``, cannot be fused.
    """
    development = [_development_of(detector) for detector in detectors]
    fusion = LogisticFusion(len(detectors), p_target)
    scores = torch.stack([trials.scores for trials in development], dim=1)
    try:
        fusion.fit(scores, development[0].labels)
    except ValueError as error:
        raise PredictionsError(path, str(error)) from None
    measured = torch.stack([detector.trials.scores for detector in detectors], dim=1)
    return Detector(
        "fusion",
        detectors[0].trials._replace(scores=fusion(measured)),
        is_llr=True,
        development=development[0]._replace(scores=fusion(scores)),
    )


def compare_detectors(
    detectors: Sequence[Detector],
    points: Sequence[OperatingPoint],
    fixed: Sequence[Sequence[FixedThreshold]],
    *,
    resamples: int,
    clusters: Tensor | None,
    advance: Callable[[int], None],
) -> list[Comparison]:
    """Compare each pair of detectors by equal error rate, costs at fixed thresholds, Cllr, and wrong decisions.

    Args:
        detectors: At least two, with the same trials in the same order.
        points: The operating points.
        fixed: For each detector, thresholds with the same names.
        resamples: The number of bootstrap resamples, at least 1.
        clusters: ``(N,)`` codes of the clusters of trials. Default: trials are independent.
        advance: Called with the number of resamples after each batch.

    Raises:
        ValueError: If the clusters are too few.
    """
    labels = detectors[0].trials.labels
    rates = [equal_error_statistic(*each.trials) for each in detectors]
    measures = [Measure(INTERPOLATED, rates, is_rate=True)]
    are_llr = all(detector.is_llr for detector in detectors)
    if are_llr:
        measures.append(Measure(CLLR, [cllr_statistic(*each.trials) for each in detectors]))
        fixed = [[*bayes_thresholds(points), *own] for own in fixed]
    of_costs = [own for own in zip(*fixed, strict=True) if own[0].shown == "cost"]
    for own in of_costs:
        pairs = zip(detectors, own, strict=True)
        costs = [actual_cost_statistic(*each.trials, point=at.point, threshold=at.threshold) for each, at in pairs]
        measures.append(Measure(own[0].name, costs))
    for own in of_costs[:1]:
        pairs = zip(detectors, own, strict=True)
        wrong = [(each.trials.scores >= at.threshold) != labels for each, at in pairs]
        measures.append(rate_measure(f"rate of wrong decisions in these trials, {own[0].point.label()}", wrong))
    drawn = Resamples(len(labels), number=resamples, strata=labels, clusters=clusters)
    return compare_systems([detector.name for detector in detectors], measures, drawn, advance=advance)


def _development_of(detector: Detector) -> Trials:
    if detector.development is None:
        raise ValueError(f"detector {detector.name} must have development trials.")
    return detector.development
