"""Evaluate the files of predictions of one or several classifiers."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch

from mpcs_torch.concern import ConcernRange, ConcernSpec
from mpcs_torch.concern.checks import decision_numbers
from mpcs_torch.evaluation.cautions import shared_by_rows
from mpcs_torch.evaluation.files.chunks import (
    Advance,
    PredictionsError,
    file_names,
    is_number,
    values_of,
)
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.matched_rows import MatchedRows
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.reading import ReadOptions
from mpcs_torch.evaluation.files.roles import number_or_text
from mpcs_torch.evaluation.files.row_ids import shared_ids
from mpcs_torch.evaluation.row_risks import RowRisks
from mpcs_torch.evaluation.rows import Rows, class_weights
from mpcs_torch.functional.inputs.evaluation_warnings import EvaluationWarning, hash_rows, known_rows, warn_of_known
from mpcs_torch.functional.soft.hard import best_f_thresholds

if TYPE_CHECKING:
    from mpcs_torch.evaluation.classifier_scores import ClassifierScores
    from mpcs_torch.evaluation.evaluation import Evaluation
    from mpcs_torch.evaluation.result import Result
    from mpcs_torch.metrics.register import MetricEntry


def open_models(
    paths: Sequence[Path], reading: ReadOptions, concern: ConcernSpec | None = None
) -> dict[str, Predictions]:
    """Open the file of each model, by its name.

    If one of several files has predicted labels instead of scores, models are compared by decisions: those of files
    of scores are the most probable classes.

    Args:
        paths: The files.
        reading: How to read them. Columns of groups and clusters are those of the first file.
        concern: Names the classes in index order, and the answers of files of decisions. Default: the classes are those
            of the first file that names them.

    Raises:
        PredictionsError: If a file cannot be read, or has other classes.
    """
    if reading.missing == "drop" and len(paths) > 1:
        raise PredictionsError(paths[0], "--missing drop is for one file: rows of several files must be the same")
    numbers = None if concern is None else decision_numbers(concern.classes, concern.answers)

    is_in_order = len(paths) > 1 and reading.id_column is None
    ids = shared_ids([open_table(path) for path in paths]) if is_in_order else []  # which must be equal

    def opened(classes: Sequence[str] | None) -> list[Predictions]:
        several = [reading, *[reading.alone()] * (len(paths) - 1)]
        columns = [*reading.columns, *ids]
        return [
            Predictions(path, options, class_names=classes, decisions=numbers, texts=columns)
            for path, options in zip(paths, several, strict=True)
        ]

    models = opened(None if concern is None else concern.classes)
    if any(each.class_names != models[0].class_names for each in models):
        scored = [each.class_names for each in models if each.roles.form != "decisions"]
        named = [names for names in scored if not all(map(is_number, names))]
        every = sorted({name for each in models for name in each.class_names}, key=number_or_text)
        models = opened([*named, *scored, every][0])
    for each in models:
        each.decides = any(other.decides for other in models)
    return dict(zip(file_names(paths), models, strict=True))


def tuned_entries(development: Predictions, class_names: Sequence[str]) -> "list[MetricEntry]":
    """Return hard F at the threshold of each class that is best on development data."""
    from mpcs_torch.metrics.register import MetricEntry
    from mpcs_torch.metrics.soft.scores import HardF1

    if development.class_names != list(class_names):
        raise PredictionsError(development.path, "must have the classes of the file that is scored, in their order")
    rows = development.rows()
    if not rows.is_soft:
        raise PredictionsError(development.path, "must have soft labels for thresholds by class")
    best = best_f_thresholds(rows.scores, rows.target, num_classes=len(class_names))
    return [
        MetricEntry(
            f"hard_f1_{average}_tuned", HardF1, "soft_labels", {"average": average, "threshold": best.threshold}
        )
        for average in ("micro", "macro")
    ]


def score_models(
    opened: Mapping[str, Predictions],
    concern: ConcernSpec | ConcernRange | None,
    advance: Advance = lambda _: None,
    *,
    entries: "Sequence[MetricEntry] | None" = None,
    settings: Mapping[str, Any] | None = None,
    development: Predictions | None = None,
    intervals: bool = True,
    risks: Mapping[str, RowRisks] = MappingProxyType({}),
    check: "Callable[[Result[ClassifierScores]], object] | None" = None,
) -> "Result[ClassifierScores]":
    """Evaluate files with the same rows, which are read one after the other.

    The files are ``opened`` by `open_models`; ``concern``, ``settings``, ``intervals`` and the ``entries``, which
    are metrics, are arguments of `Evaluation`. Hard F is also measured at the thresholds that are best on
    ``development``, a file of soft labels. ``risks``, by model, are filled with those of its rows, if figures of
    certainty are wanted. ``check`` is called with the result of one row, before all are measured: its ValueError
    refuses names of metrics early.

    Raises:
        PredictionsError: If a file cannot be read or scored, or rows do not match.
    """
    from mpcs_torch.evaluation.chosen import needs_classes

    first, is_alone = next(iter(opened.values())), len(opened) == 1
    reading, is_clustered = first.reading, first.reading.cluster is not None
    for predictions in opened.values():
        predictions.has_shares = needs_classes(concern, entries)
    alike = [] if is_alone else [name for name in first.texts if name not in reading.columns]
    matched = MatchedRows(first, identifier=None if is_alone else reading.id_column, alike=alike, concern=concern)
    rows, of_classes = matched.rows_of(first), None
    with values_of(first.path):
        if reading.prevalence is not None:
            repeated = rows.repeated(is_clustered=is_clustered)
            of_classes = class_weights(repeated, reading.prevalence, first.class_names)
        evaluation = _evaluation_of(opened, rows, concern, entries, settings, development, intervals=intervals)
        if check is not None:
            trial, weights = deepcopy(evaluation), torch.ones(1).double() if evaluation.chosen.is_weighted else None
            for name in opened:
                trial.add(name, rows.at(slice(1))._replace(groups={}, weights=weights, frequencies=None), None)
            check(trial.result())
        evaluation.count_repeats(rows)
    for name, predictions in opened.items():
        rows = rows if predictions is first else matched.rows_of(predictions)
        if name in risks:
            risks[name].begin(evaluation.chosen)
        for part in rows.repeated(is_clustered=is_clustered):
            part = part if of_classes is None else part.weighted_by(of_classes)
            with values_of(predictions.path):
                evaluation.add(name, part, reading.cluster)
            if name in risks:
                risks[name].add(part)
            advance(len(part.ids))
    for column in reading.by:
        evaluation.codes_of(column, matched.columns[column].names)
    with values_of(first.path):
        result = evaluation.result()
    notes = [] if matched.units is None else [matched.units.note(first.class_names)]
    shared = shared_by_rows(first) if intervals else []
    cautious = replace(result, notes=[*notes, *result.notes], cautions=[*result.cautions, *shared])
    return _with_notes(cautious, opened, evaluation, development)


def _evaluation_of(
    opened: Mapping[str, Predictions],
    rows: Rows,
    concern: ConcernSpec | ConcernRange | None,
    entries: "Sequence[MetricEntry] | None",
    settings: Mapping[str, Any] | None,
    development: Predictions | None,
    *,
    intervals: bool,
) -> "Evaluation":
    """Return an evaluation with the metrics that the labels of the rows allow."""
    from mpcs_torch.evaluation.chosen import choose_metrics
    from mpcs_torch.evaluation.evaluation import Evaluation

    first, is_soft = next(iter(opened.values())), rows.target.ndim == 2
    names, reading = first.class_names, first.reading
    if development is not None:
        if not is_soft:
            raise PredictionsError(first.path, "must have soft labels for thresholds of a development file")
        chosen = choose_metrics(names, concern, entries, is_soft=is_soft, has_costs=rows.costs is not None)
        entries = [*chosen.entries, *tuned_entries(development, names)]
    return Evaluation(
        names,
        concern=concern,
        metrics=entries,
        settings=settings,
        is_soft=is_soft,
        is_decided=first.decides,
        is_weighted=reading.weight is not None or reading.prevalence is not None,
        has_costs=rows.costs is not None,
        refers=any(each.refers for each in opened.values()),
        intervals=intervals,
    )


def shared_rows(scored: Predictions, seen: Predictions) -> list[EvaluationWarning]:
    """Warn (E1) if rows of a file that is scored have the scores of rows of another file."""
    hashes, others = (hash_rows(file.rows().scores) for file in (scored, seen))
    return warn_of_known(known_rows(others), hashes, seen.path.name)


def _with_notes(
    result: "Result[ClassifierScores]",
    opened: Mapping[str, Predictions],
    evaluation: "Evaluation",
    development: Predictions | None,
) -> "Result[ClassifierScores]":
    """Add how the files were read."""
    models, notes, cautions = {}, list(result.notes), list(result.cautions)
    for name, predictions in opened.items():
        scores = result.models[name]
        if development is not None and development.path.samefile(predictions.path):
            problem = "hard F at thresholds that were learned on the file that is scored is optimistic"
            cautions.append(EvaluationWarning("E5", problem))
        models[name] = replace(scores, file_notes=predictions.notes())
    if len(opened) > 1 and not any(entry.compared_as for entry in evaluation.chosen.entries):
        notes.append("None of the metrics is one that models are compared by.")
    return replace(
        result,
        models=models,
        notes=notes,
        cautions=cautions,
        read=[predictions.how() for predictions in [*opened.values(), *([development] if development else [])]],
    )
