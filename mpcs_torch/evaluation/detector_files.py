"""Score files of detectors: read, matched by the names of trials, calibrated, fused, and evaluated."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch

from mpcs_torch.calibration import LogisticCalibration, LogisticFusion, PAVCalibration
from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.bins import Groups
from mpcs_torch.evaluation.detector_scores import DetectorScores
from mpcs_torch.evaluation.detectors import evaluate_detectors
from mpcs_torch.evaluation.files.chunks import PredictionsError, file_names
from mpcs_torch.evaluation.files.trial_readers import read_trial_table
from mpcs_torch.evaluation.files.trials import Trials, TrialTable
from mpcs_torch.evaluation.fixed_thresholds import given_threshold, learned_thresholds
from mpcs_torch.evaluation.result import Result
from mpcs_torch.functional import OperatingPoint

Advance = Callable[[int], None]
CalibrationMethod = Literal["logistic", "pav"]


class Detector(NamedTuple):
    """A detector, with its scores of the trials to be measured."""

    name: str
    trials: Trials
    is_llr: bool
    development: Trials | None = None
    """Other trials, from which thresholds, calibrations and fusions are learnt."""


class DetectorFiles(NamedTuple):
    """The files of detectors and what to read of them."""

    paths: Sequence[Path]
    trials: Path | None = None
    """The list of trials of text files."""
    development: Sequence[Path] = ()
    """None, or one for each of ``paths``."""
    development_trials: Path | None = None
    key: Sequence[str] = ()
    """The columns that name a trial."""
    columns: Sequence[str] = ()
    """The columns of clusters and conditions."""


def score_detectors(
    files: DetectorFiles,
    points: Sequence[OperatingPoint],
    advance: Advance,
    *,
    is_llr: bool = False,
    threshold: float | None = None,
    p_fa: Sequence[float] = (),
    p_miss: Sequence[float] = (),
    max_p_fa: float | None = None,
    calibration: CalibrationMethod | None = None,
    is_fused: bool = False,
    by: Sequence[str] = (),
    cluster: str | None = None,
    intervals: bool = True,
) -> Result[DetectorScores]:
    """Evaluate detectors by their files, as `evaluate_detectors` does.

    Args:
        files: The files.
        points: The operating points.
        advance: Called with the number of rows after each batch.
        is_llr: Whether scores are natural-log likelihood ratios.
        threshold: Decisions at this threshold are measured too.
        p_fa: False-alarm rates whose thresholds are learned from development trials.
        p_miss: Miss rates whose thresholds are learned from development trials.
        max_p_fa: As in `evaluate_detectors`.
        calibration: Scores that are calibrated on the development trials are measured too, and compared.
        is_fused: Whether the fusion of the detectors is measured too, and compared.
        by: Columns whose groups are measured.
        cluster: The column of trials that are not independent.
        intervals: As in `evaluate_detectors`.

    Raises:
        PredictionsError: If a file cannot be read, or the trials of the detectors do not match.
    """
    detectors, groups = read_detectors(files, is_llr=is_llr, is_fused=is_fused, advance=advance)
    read = compared = detectors
    prior = points[0].effective_prior
    if calibration is not None:
        pairs = zip(read, files.development, strict=True)
        compared = [calibrated(each, calibration, prior, path) for each, path in pairs]
        detectors = [*detectors, *compared]
    if is_fused:
        fusion = fused(read, prior, files.development[0])
        detectors, compared = [*detectors, fusion], [*compared, fusion]
    given = [] if threshold is None else given_threshold(threshold, points)
    learned = {
        each.name: []
        if each.development is None
        else learned_thresholds(*each.development, points, p_fa=p_fa, p_miss=p_miss)
        for each in detectors
    }
    return evaluate_detectors(
        {each.name: each.trials.scores for each in detectors},
        detectors[0].trials.labels,
        points=points,
        llr=[each.name for each in detectors if each.is_llr],
        thresholds={name: [*given, *thresholds] for name, thresholds in learned.items()},
        groups={column: groups[column] for column in by},
        clusters=None if cluster is None else groups[cluster],
        max_p_fa=max_p_fa,
        compared=[each.name for each in compared],
        intervals=intervals,
    )


def read_detectors(
    files: DetectorFiles, *, is_llr: bool, is_fused: bool, advance: Advance
) -> tuple[list[Detector], dict[str, Groups]]:
    """Read the trials of detectors, in the same order, and the groups of the trials by column.

    Args:
        files: The files.
        is_llr: Whether scores are natural-log likelihood ratios.
        is_fused: Whether the development trials of all detectors must be the same, too.
        advance: Called with the number of rows after each batch.

    Raises:
        PredictionsError: If a file cannot be read, or the trials of the detectors do not match.
    """
    tables, trials = _matched(files.paths, files.trials, files, advance, named=len(files.paths) > 1)
    development: Sequence[Trials | None] = [None] * len(trials)
    if is_fused:
        _, development = _matched(files.development, files.development_trials, files, advance, named=True)
    elif files.development:
        development = [read_trial_table(path, files.development_trials, advance).trials for path in files.development]
    names = file_names(files.paths)
    detectors = [
        Detector(name, measured, is_llr, learned)
        for name, measured, learned in zip(names, trials, development, strict=True)
    ]
    return detectors, tables[0].groups


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


def _matched(
    paths: Sequence[Path], listed: Path | None, files: DetectorFiles, advance: Advance, *, named: bool
) -> tuple[list[TrialTable], list[Trials]]:
    """Read files whose trials must be the same, and put all in the order of the first."""
    tables = [
        read_trial_table(
            path,
            listed,
            advance,
            named=named,
            key=files.key,
            columns=files.columns if paths is files.paths and path is paths[0] else (),
        )
        for path in paths
    ]
    pairs = list(zip(paths, tables, strict=True))[1:]
    others = [_in_order_of(tables[0], table, (paths[0], path)) for path, table in pairs]
    return tables, [tables[0].trials, *others]


def _in_order_of(first: TrialTable, other: TrialTable, paths: tuple[Path, Path]) -> Trials:
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

        for names, others, (lacking, having) in (
            (first.names, other.names, paths[::-1]),
            (other.names, first.names, paths),
        ):
            missing = compute.filter(names, compute.invert(compute.is_in(names, value_set=others)))
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


def _development_of(detector: Detector) -> Trials:
    if detector.development is None:
        raise ValueError(f"detector {detector.name} must have development trials.")
    return detector.development
