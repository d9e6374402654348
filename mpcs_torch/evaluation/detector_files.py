"""Score files of detectors: read them, match trials by name, calibrate, fuse, and evaluate."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.calibration import LogisticFusion
from mpcs_torch.errors import Rule
from mpcs_torch.evaluation.calibration_files import (
    Calibration,
    TrialMethod,
    new_calibration,
)
from mpcs_torch.evaluation.cautions import reversed_scores, shared, units_in_table
from mpcs_torch.evaluation.detector_scores import DetectorScores
from mpcs_torch.evaluation.detectors import evaluate_detectors
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.read_options import (
    Advance,
    PredictionsError,
    ReadOptions,
    file_names,
    naming_file,
)
from mpcs_torch.evaluation.files.row_ids import RowIds, check_as_many
from mpcs_torch.evaluation.files.trials import Trials, TrialTable, read_trials
from mpcs_torch.evaluation.fixed_thresholds import (
    FixedThreshold,
    given_threshold,
    learned_thresholds,
)
from mpcs_torch.evaluation.result import Result
from mpcs_torch.evaluation.units import DecisionUnits
from mpcs_torch.functional import OperatingPoint, ReversedScoresWarning


def score_detectors(
    paths: Sequence[Path],
    options: ReadOptions,
    points: Sequence[OperatingPoint],
    advance: Advance,
    *,
    development: Sequence[Path],
    development_labels: Path | None,
    is_llr: bool,
    threshold: float | None,
    p_fa: Sequence[float],
    p_miss: Sequence[float],
    max_p_fa: float | None,
    at_minimum: bool,
    calibration: TrialMethod | None,
    is_fused: bool,
    intervals: bool,
) -> Result[DetectorScores]:
    """Evaluate detectors from files as `evaluate_detectors` does; arguments with the same names have the same meaning.

    ``development`` is empty, or has one file of development trials for each of ``paths``. If these files have no
    labels, ``development_labels`` is a file with their labels. Thresholds that limit error rates are learned from these
    trials (`learned_thresholds`). With ``calibration``, each detector is also calibrated on these trials, and the
    calibrated detectors are compared. With ``is_fused``, a fusion of all detectors is evaluated, too. Decisions at
    ``threshold`` are measured, too. ``advance`` is called with the number of rows of each file.
    """
    tables = _matched(paths, options, advance, named=len(paths) > 1)
    learning = options._replace(by=(), cluster=None, labels=development_labels)
    # A fusion needs files with the same trials; without one, each file is read alone.
    others = list[TrialTable]()
    for files in [development] if is_fused else [[path] for path in development]:
        others += _matched(files, learning, advance, named=is_fused)
    names = file_names(paths)
    prior = points[0].effective_prior
    trials = {name: table.trials for name, table in zip(names, tables, strict=True)}
    # Without development, there are no others.
    learned = {name: table.trials for name, table in zip(names, others, strict=False)}
    further = list[tuple[str, Calibration | LogisticFusion, Path, list[str]]]()
    if calibration is not None:
        for name, path in zip(names, development, strict=True):
            unfitted = new_calibration(calibration, 0, prior)
            further.append((f"{name}, calibrated", unfitted, path, [name]))
    if is_fused:
        further.append(("fusion", LogisticFusion(len(names), prior), development[0], names))
    limits: dict[str, Any] = {"p_fa": p_fa, "p_miss": p_miss, "at_minimum": at_minimum}
    for name, module, path, sources in further:
        trials[name], learned[name] = _converted(module, path, sources, trials, learned)
    of_ratios = [name for name, *_ in further]
    fixed = dict[str, list[FixedThreshold]]()
    for name in trials:
        fixed[name] = [] if threshold is None else given_threshold(threshold, points)
        if name in learned:
            fixed[name] += learned_thresholds(*learned[name], points, **limits)
    with warnings.catch_warnings():
        if intervals:  # below, a caution says which option turns the scores
            warnings.simplefilter("ignore", ReversedScoresWarning)
        result = evaluate_detectors(
            {name: each.scores for name, each in trials.items()},
            tables[0].trials.labels,
            points=points,
            llr=[*names, *of_ratios] if is_llr else of_ratios,
            thresholds=fixed,
            groups={column: tables[0].groups[column] for column in options.by},
            clusters=None if options.cluster is None else tables[0].groups[options.cluster],
            has_units=options.unit is not None,
            p_fa=() if development else p_fa,
            p_miss=() if development else p_miss,
            max_p_fa=max_p_fa,
            compared=list(trials) if calibration is None else of_ratios,
            intervals=intervals,
        )
    cautions = list(result.cautions)
    if intervals and options.cluster is None:
        cautions += shared(units_in_table(open_table(paths[0]), tables[0].unread))
    for name, scores in result.models.items() if intervals else ():
        way = (
            "without --lower-is-target" if options.lower_is_target else "--lower-is-target"
        )
        cautions += reversed_scores(
            scores.intervals.get("auroc"),
            way,
            "" if len(names) == 1 else f"{name}: ",
        )
    return replace(
        result, read=[table.read for table in [*tables, *others]], cautions=cautions
    )


def _converted(
    module: Calibration | LogisticFusion,
    path: Path,
    names: Sequence[str],
    trials: Mapping[str, Trials],
    learned: Mapping[str, Trials],
) -> list[Trials]:
    """Fit ``module`` to the development trials ``learned`` of the detectors ``names``; apply it to all their trials.

    Return two sets of trials with log-likelihood ratios as scores: those of ``trials``, then those of ``learned``.
    Errors in the fit name the development file ``path``.
    """

    def joined(by_name: Mapping[str, Trials]) -> Tensor:
        scores = torch.stack([by_name[name].scores for name in names], dim=1)
        return scores if isinstance(module, LogisticFusion) else scores.squeeze(1)

    with naming_file(path):
        module.fit(joined(learned), learned[names[0]].labels)
    return [
        each[names[0]]._replace(scores=module(joined(each))) for each in (trials, learned)
    ]


def _matched(
    paths: Sequence[Path], options: ReadOptions, advance: Advance, *, named: bool
) -> list[TrialTable]:
    """Read files with the same trials, in the order of the first file. The groups are read only from the first file."""
    first = read_trials(paths[0], options, advance, named=named)
    others = [
        read_trials(path, options.alone(), advance, named=named) for path in paths[1:]
    ]
    tables = [first]
    for path, other in zip(paths[1:], others, strict=True):
        tables.append(_align(first, other, (paths[0], path)))
    if options.unit is None:
        return tables
    with naming_file(paths[0]):
        number = len(first.trials.labels)
        units = DecisionUnits.of(
            first.groups[options.unit], options.combine, None, 2, number, options.unit
        )
        for place, table in enumerate(tables):
            groups = {
                name: units.combined_groups(each, name)
                for name, each in table.groups.items()
            }
            read = f"{table.read}; {units.note(('non-target', 'target'))}"
            trials = Trials(*units.trials(*table.trials))
            tables[place] = table._replace(
                trials=trials, names=None, groups=groups, read=read
            )
    return tables


def _align(first: TrialTable, other: TrialTable, paths: tuple[Path, Path]) -> TrialTable:
    """Return ``other`` with its trials in the order of ``first``, matched by name or, without names, row by row.

    Raise a PredictionsError if a trial is missing in one of the two files ``paths``, or if its labels differ.
    """
    trials = other.trials
    how = "row by row"
    if first.names is not None and other.names is not None:
        ids = RowIds(paths[0], first.names, has_rows=False)
        others = RowIds(paths[1], other.names, has_rows=False)
        in_order = ids.order_among(others)
        how = "by name"
        trials = Trials(trials.scores[in_order], trials.labels[in_order])
    elif (first.names is None) != (other.names is None):
        unnamed = paths[0] if first.names is None else paths[1]
        raise PredictionsError(unnamed, Rule("names_of_trials"))
    else:
        check_as_many(
            paths[1],
            len(trials.labels),
            paths[0],
            len(first.trials.labels),
            Rule("without_names"),
        )
    differs = trials.labels != first.trials.labels
    if differs.any():
        place = int(differs.nonzero()[0])
        rule = Rule("label_of_row", number=place + 1, first=paths[0])
        if first.names is not None:
            name = first.names[place].as_py()
            rule = Rule("label_of_named", name=name, first=paths[0])
        raise PredictionsError(paths[1], rule)
    return other._replace(trials=trials, read=f"{other.read}; matched {how}")
