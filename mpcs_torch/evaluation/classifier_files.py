"""Evaluate the files of predictions of one or several classifiers."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch

from mpcs_torch.concern import ConcernRange, ConcernSpec
from mpcs_torch.concern.rules import decision_numbers
from mpcs_torch.evaluation.cautions import shared_by_rows
from mpcs_torch.evaluation.files.chunks import Advance, PredictionsError, file_names, is_number, values_of
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
from mpcs_torch.processes.world import ALONE, World

if TYPE_CHECKING:
    from mpcs_torch.evaluation.classifier_scores import ClassifierScores
    from mpcs_torch.evaluation.evaluation import Evaluation
    from mpcs_torch.evaluation.result import Result
    from mpcs_torch.metrics.by_name import MetricEntry


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
    """Return hard F at the threshold of each class that is best on development data, held in memory as a whole."""
    from mpcs_torch.metrics.by_name import MetricEntry
    from mpcs_torch.metrics.soft.scores import HardF1

    if development.class_names != list(class_names):
        raise PredictionsError(development.path, "must have the classes of the file that is scored, in their order")
    chunks = list(development.chunks())
    if not chunks:
        raise PredictionsError(development.path, "has no rows")
    if not chunks[0].is_soft:
        raise PredictionsError(development.path, "must have soft labels for thresholds by class")
    preds, target = torch.cat([chunk.scores for chunk in chunks]), torch.cat([chunk.target for chunk in chunks])
    best = best_f_thresholds(preds, target, num_classes=len(class_names))
    return [
        MetricEntry(
            f"hard_f1_{average}_tuned", HardF1, "soft_labels", {"average": average, "threshold": best.threshold}
        )
        for average in ("micro", "macro")
    ]


MIN_SHARED = 10_000
"""Rows that are worth sharing: of fewer, every process reads all."""


def score_models(
    opened: Mapping[str, Predictions],
    concern: ConcernSpec | ConcernRange | None,
    advance: Advance = lambda _: None,
    *,
    entries: "Sequence[MetricEntry] | None" = None,
    settings: Mapping[str, Any] | None = None,
    development: Predictions | None = None,
    intervals: bool = True,
    world: World = ALONE,
    risks: Mapping[str, RowRisks] = MappingProxyType({}),
    check: "Callable[[Result[ClassifierScores]], object] | None" = None,
) -> "Result[ClassifierScores]":
    """Evaluate files with the same rows, each in one pass.

    Of several files, the labels and the groups of the first are held, 8 bytes for a row and column. The processes of a
    ``world`` return the result of the whole. They read a part of the rows each, if their number is known (arrays and
    parquet) and they are matched by their order; else all read all rows, and take turns in measuring them.

    Units of decision need the scores of a file in memory, 8 bytes for each; shares of classes, one more pass over the
    first file.

    The files are ``opened`` by `open_models`; ``concern``, ``settings``, ``intervals`` and the ``entries``, which
    are metrics, are arguments of `Evaluation`. Hard F is also measured at the thresholds that are best on
    ``development``, a file of soft labels, which is read as a whole. ``risks``, by model, are filled with those of its
    rows, if figures of certainty are wanted. ``check`` is called with the result of one row, before the others: its
    ValueError refuses names of metrics early.

    Raises:
        PredictionsError: If a file cannot be read or scored, or rows do not match.
        OtherProcessError: If another process has raised such an error.
    """
    first = next(iter(opened.values()))
    reading = first.reading
    identifier = reading.id_column if len(opened) > 1 else None
    part = _own_part(opened, identifier, world)
    alike = [name for name in first.texts if name not in reading.columns]
    matched = partial(MatchedRows, reading, identifier=identifier, holds=len(opened) > 1, alike=alike, concern=concern)

    def begun(predictions: Predictions, rows: Rows) -> "Evaluation":
        """Begin an evaluation with the metrics that the labels of the first rows allow."""
        from mpcs_torch.evaluation.chosen import choose_metrics
        from mpcs_torch.evaluation.evaluation import Evaluation

        names, wanted, is_soft = predictions.class_names, entries, rows.target.ndim == 2
        if development is not None and not is_soft:
            raise PredictionsError(predictions.path, "must have soft labels for thresholds of a development file")
        with values_of(predictions.path):
            if development is not None:
                chosen = choose_metrics(names, concern, entries, is_soft=is_soft, has_costs=rows.costs is not None)
                wanted = [*chosen.entries, *tuned_entries(development, names)]
            evaluation = Evaluation(
                names,
                concern=concern,
                metrics=wanted,
                settings=settings,
                is_soft=is_soft,
                is_decided=predictions.decides,
                is_weighted=rows.weights is not None,
                has_costs=rows.costs is not None,
                refers=any(each.refers for each in opened.values()),
                intervals=intervals,
            )
            if check is not None:
                trial, weights = deepcopy(evaluation), None if rows.weights is None else torch.ones(1).double()
                for name in opened:
                    trial.add(name, rows.at(slice(1))._replace(groups={}, weights=weights), None)
                check(trial.result())
            return evaluation

    def counted(rows: int) -> None:
        advance(rows * (1 if part is None else world.size))

    def evaluated() -> "tuple[Evaluation, list[str]]":
        from mpcs_torch.evaluation.chosen import needs_classes

        rows, cluster, of_classes = matched(), reading.cluster, None
        if reading.prevalence is not None:
            with values_of(first.path):
                of_classes = class_weights(matched().rows_of(copy(first)), reading.prevalence, first.class_names)
        evaluation: Evaluation | None = None
        for name, predictions in opened.items():
            number, predictions.has_shares = -1, needs_classes(concern, entries)
            for number, read in enumerate(rows.rows_of(predictions, part, counted)):
                read = read if of_classes is None else read.weighted_by(of_classes)
                if evaluation is None:
                    evaluation = begun(predictions, read)
                if number == 0 and name in risks:
                    risks[name].begin(evaluation.chosen)
                if part is not None or number % world.size == world.rank:
                    if predictions is first and reading.frequency is None:
                        evaluation.count_repeats(read)
                    with values_of(predictions.path):
                        evaluation.add(name, read, cluster)
                if name in risks:
                    risks[name].add(read)
            if number < 0:
                raise PredictionsError(predictions.path, "has no rows")
            rows.end(predictions)
        assert evaluation is not None
        for column in reading.by:
            evaluation.codes_of(column, rows.columns[column].names)
        return evaluation, [] if rows.units is None else [rows.units.note(first.class_names)]

    (evaluation, notes), *of_others = world.gather(evaluated)
    if part is not None:
        for of_model in risks.values():
            of_model.gather(world)
        for predictions in opened.values():
            predictions.gather(world)
    with values_of(first.path):
        for other, _ in of_others:
            evaluation.merge(other)
        result = evaluation.result()
    shared = shared_by_rows(first) if intervals else []
    cautious = replace(result, notes=[*notes, *result.notes], cautions=[*result.cautions, *shared])
    return _with_notes(cautious, opened, evaluation, development)


def shared_rows(scored: Predictions, seen: Predictions) -> list[EvaluationWarning]:
    """Warn (E1) if rows of a file that is scored have the scores of rows of another file."""
    hashes, others = (torch.cat([hash_rows(chunk.scores) for chunk in file.chunks()]) for file in (scored, seen))
    return warn_of_known(known_rows(others), hashes, seen.path.name)


def _own_part(opened: Mapping[str, Predictions], identifier: str | None, world: World) -> range | None:
    """Return the rows that this process reads; None for all."""
    reading = next(iter(opened.values())).reading
    if world.size == 1 or identifier is not None or reading.unit is not None or reading.frequency is not None:
        return None
    [rows, *others] = {predictions.table.rows for predictions in opened.values()}
    if others or rows is None or rows < MIN_SHARED:
        return None
    return range(rows)[world.rows(rows)]


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
