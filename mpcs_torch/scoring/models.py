"""Evaluate the files of one or several classifiers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import quoted
from mpcs_torch.processes.world import ALONE, World
from mpcs_torch.scoring.chunks import Chunk, PredictionsError
from mpcs_torch.scoring.matched_rows import MatchedRows
from mpcs_torch.scoring.predictions import Predictions
from mpcs_torch.scoring.row_risks import RowRisks
from mpcs_torch.scoring.tuned import tuned_entries

if TYPE_CHECKING:  # torchmetrics takes seconds to import: it is loaded when predictions are scored
    from mpcs_torch.evaluation import Evaluation, Result
    from mpcs_torch.evaluation.classifier_scores import ClassifierScores
    from mpcs_torch.metrics.by_name import MetricEntry

Advance = Callable[[int], None]
FEWEST_SHARED = 10_000
"""Rows that are worth sharing: of fewer, every process reads all."""
SOFT_ALONE = "Models are compared on files with one class for each row: soft labels have intervals alone."


def score_models(
    opened: Mapping[str, Predictions],
    concern: ConcernSpec | None,
    advance: Advance = lambda _: None,
    *,
    entries: "Sequence[MetricEntry] | None" = None,
    settings: Mapping[str, Any] | None = None,
    development: Predictions | None = None,
    by: Sequence[str] = (),
    cluster: str | None = None,
    identifier: str | None = None,
    intervals: bool = True,
    world: World = ALONE,
    risks: Mapping[str, RowRisks] = MappingProxyType({}),
) -> "Result[ClassifierScores]":
    """Evaluate files with the same rows, each in one pass.

    Several processes read a part of the rows each, if their number is known (arrays and parquet) and they are matched
    by their order; else all read all rows, and take turns in measuring them.

    Of several files, the labels and the groups of the first are held, 8 bytes for a row and column.

    Args:
        opened: The file of each model, which has the columns of groups among its texts.
        concern: Which errors matter, for the metrics that ask.
        advance: Called with the number of rows that were added, to show progress.
        entries: The metrics. Default: all that the labels allow.
        settings: Further settings for the metrics that have them, such as ``k`` and ``t`` of MPCS.
        development: An open file of soft labels, which is read as a whole: hard F is also measured at the thresholds
            that are best there.
        by: Columns of the first file: each of their groups is measured too.
        cluster: A column of the first file that says which rows are not independent. Default: rows are independent.
        identifier: A column of all files that names each row, by which rows are matched. Default: by their order.
        intervals: Whether values get intervals and models are compared.
        world: The processes that evaluate the files together, all of which return the result of the whole.
        risks: By model, if figures of certainty are wanted: filled with the risks of its rows.

    Raises:
        PredictionsError: If a file cannot be read or scored, or rows do not match.
        OtherProcessError: If another process has raised such an error.
    """
    columns = list(dict.fromkeys([*by, *([] if cluster is None else [cluster])]))
    part = _own_part(opened, identifier, world)

    def evaluated() -> "Evaluation":
        rows = MatchedRows(columns, identifier=identifier, holds=len(opened) > 1)
        evaluation: Evaluation | None = None
        for name, predictions in opened.items():
            number = -1
            for number, chunk in enumerate(predictions.chunks(part)):
                if evaluation is None:
                    evaluation = _begun(
                        predictions, concern, entries, settings, development, chunk, intervals=intervals
                    )
                if number == 0 and name in risks:
                    risks[name].begin(evaluation.chosen)
                places, codes = rows.add(predictions.path, predictions.class_names, chunk)
                if part is not None or number % world.size == world.rank:
                    groups = {column: codes[column] for column in by}
                    ids = places + (0 if part is None else part.start)
                    ids = ids if cluster is None else rows.columns[cluster].ids[codes[cluster]]
                    try:
                        evaluation.add(name, chunk.scores, chunk.target, groups, ids=ids, cluster=cluster)
                    except ValueError as error:
                        raise PredictionsError(predictions.path, str(error).rstrip(".")) from None
                if name in risks:
                    risks[name].add(chunk)
                advance(len(chunk.scores) * (1 if part is None else world.size))
            if number < 0:
                raise PredictionsError(predictions.path, "holds no row")
            rows.end(predictions.path)
        assert evaluation is not None
        for column in by:
            evaluation.codes_of(column, rows.columns[column].names)
        return evaluation

    evaluation = world.done_by_all(evaluated)
    if part is not None:
        for of_model in risks.values():
            of_model.gather(world)
        for predictions in opened.values():
            predictions.gather(world)
    try:
        result = _of_all(evaluation, world).result()
    except ValueError as error:
        raise PredictionsError(next(iter(opened.values())).path, str(error).rstrip(".")) from None
    return _with_notes(result, opened, evaluation, development)


def _own_part(opened: Mapping[str, Predictions], identifier: str | None, world: World) -> range | None:
    """Return the rows that this process reads; None for all."""
    if world.size == 1 or identifier is not None:
        return None
    [rows, *others] = {predictions.rows for predictions in opened.values()}
    if others or rows is None or rows < FEWEST_SHARED:
        return None
    return range(rows)[world.rows(rows)]


def _begun(
    predictions: Predictions,
    concern: ConcernSpec | None,
    entries: "Sequence[MetricEntry] | None",
    settings: Mapping[str, Any] | None,
    development: Predictions | None,
    chunk: Chunk,
    *,
    intervals: bool,
) -> "Evaluation":
    """Begin an evaluation with the metrics that the labels of the first rows allow."""
    from mpcs_torch.evaluation import Evaluation
    from mpcs_torch.evaluation.chosen import choose_metrics

    names = predictions.class_names
    if development is not None and not chunk.is_soft:
        raise PredictionsError(predictions.path, "must have soft labels for thresholds of a development file")
    try:
        wanted: Sequence[MetricEntry] | None = entries
        if development is not None:
            chosen = choose_metrics(len(names), concern, entries, is_soft=chunk.is_soft)
            wanted = [*chosen.entries, *tuned_entries(development, names)]
        return Evaluation(
            names, concern=concern, metrics=wanted, settings=settings, is_soft=chunk.is_soft, intervals=intervals
        )
    except PredictionsError:
        raise
    except ValueError as error:
        raise PredictionsError(predictions.path, str(error)) from None


def _of_all(evaluation: "Evaluation", world: World) -> "Evaluation":
    """Return the evaluation of all processes."""
    if world.size == 1:
        return evaluation
    whole, *others = world.told_by_all(evaluation)
    for other in others:
        whole.merge(other)
    return whole


def _with_notes(
    result: "Result[ClassifierScores]",
    opened: Mapping[str, Predictions],
    evaluation: "Evaluation",
    development: Predictions | None,
) -> "Result[ClassifierScores]":
    """Add how the files were read."""
    models = {}
    for name, predictions in opened.items():
        scores = result.models[name]
        notes = list(scores.notes)
        if development is not None and development.path.samefile(predictions.path):
            notes.append("hard F at thresholds that were learned on the file that is scored is optimistic")
        if predictions.takes_any_column and scores.confusion is not None:
            counts = scores.confusion.sum(1).tolist()
            absent = [label for label, count in zip(scores.class_names, counts, strict=True) if not count]
            if absent:
                problem = f"no row has the label {quoted(absent[0])}"
                notes.append(f"{problem}: if that is no class, --ignore leaves its column out")
        models[name] = replace(scores, notes=notes, file_notes=predictions.notes())
    notes = list(result.notes)
    compared = [entry.name for entry in evaluation.chosen.entries if entry.compared_as]
    if len(opened) > 1 and evaluation.chosen.is_soft:
        notes.append(SOFT_ALONE)
    elif len(opened) > 1 and not compared:
        notes.append("None of the metrics is one that models are compared by.")
    return replace(result, models=models, notes=notes)
