"""Evaluate files with the predictions of one or several classifiers."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernRange, ConcernSpec
from mpcs_torch.errors import Rule, quoted
from mpcs_torch.evaluation.cautions import reversed_scores, shared, unread_units
from mpcs_torch.evaluation.chosen import ChosenMetrics, needs_classes
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.decision_curve import CurveScale, DecisionCurves, scale_at_risk
from mpcs_torch.evaluation.decision_numbers import decision_numbers
from mpcs_torch.evaluation.evaluation import Evaluation
from mpcs_torch.evaluation.files.facts import number_or_text
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.matched_rows import MatchedRows
from mpcs_torch.evaluation.files.models import split_models
from mpcs_torch.evaluation.files.offers import UnclearFileError
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import (
    Advance,
    PredictionsError,
    ReadOptions,
    file_names,
    naming_file,
)
from mpcs_torch.evaluation.files.row_ids import shared_ids
from mpcs_torch.evaluation.files.tables import to_number
from mpcs_torch.evaluation.result import Result
from mpcs_torch.evaluation.rows import Rows, class_weights
from mpcs_torch.functional.concern.coverage import danger_risks
from mpcs_torch.functional.concern.dangerous import dangerous_pair_mask
from mpcs_torch.functional.inputs.decisions import highest_class
from mpcs_torch.functional.inputs.evaluation_warnings import (
    EvaluationWarning,
    hash_rows,
    known_rows,
    warn_of_known,
)
from mpcs_torch.metrics.metric_entry import MetricEntry

MAX_RISK_CLASSES = 1000
"""The maximum number of classes for which risks are kept, because pairs of classes take memory."""


class RowRisks:
    """The risk of each row: the probability, by the model's own scores, that its decision is a dangerous error.

    A row takes 5 bytes, or 13 with a weight. `add` ignores rows with soft labels or decisions, and rows with more
    classes than `MAX_RISK_CLASSES`.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Tensor, ...]] = []
        """For each batch: risks, whether decisions are dangerous errors, and weights if there are any."""

    def add(self, rows: Rows, chosen: ChosenMetrics) -> None:
        """Add the risks of ``rows``; the concern of ``chosen`` states which errors are dangerous."""
        if chosen.is_soft or chosen.is_decided or chosen.num_classes > MAX_RISK_CLASSES:
            return
        pairs = dangerous_pair_mask(chosen.concern, chosen.num_classes)
        decisions = highest_class(rows.probs)[1]
        columns = [
            danger_risks(rows.probs, decisions, pairs).float(),
            pairs[rows.target, decisions],
        ]
        if rows.weights is not None:
            columns.append(rows.weights)
        self._parts.append(tuple(columns))

    def risks(self) -> tuple[Tensor, ...] | None:
        """Return (N,) tensors: risks, whether decisions are dangerous errors, and any weights; None without rows."""
        if not self._parts:
            return None
        columns = zip(*self._parts, strict=True)
        return tuple(torch.cat(column) for column in columns)


def open_models(
    paths: Sequence[Path], options: ReadOptions, concern: ConcernSpec | None = None
) -> dict[str, Predictions]:
    """Open the file of each model; return the opened files by the name of the model.

    If any file has predicted labels instead of scores, the models are compared by their decisions: in a file of scores,
    the class with the highest score is the decision. Groups and clusters are read only from the first file. A
    ``concern`` states the classes in index order, and the sets of classes that may be decided. Without a concern, the
    classes are those of the first file that names them. If ``options`` names several models, they are those of the only
    file (see `split_models`).
    """
    if options.missing == "drop" and len(paths) > 1:
        raise PredictionsError(paths[0], Rule("drop_of_one_file"))
    if len(options.models) > 1 and len(paths) > 1:
        raise PredictionsError(paths[1], Rule("models_of_one_file"))
    numbers = None
    if concern is not None:
        numbers = decision_numbers(concern.classes, concern.answers)
    ids = list[str]()  # the columns that must be equal in all files
    if len(paths) > 1 and options.id_column is None:
        ids += shared_ids([open_table(path) for path in paths])
    known: dict[str, Any] = {"decisions": numbers, "texts": [*options.columns, *ids]}
    sources = {
        name: (open_table(path), options)
        for name, path in zip(file_names(paths), paths, strict=True)
    }
    if len(options.models) > 1:
        sources = split_models(open_table(paths[0]), options)
    for name in [*sources][1:]:
        table, of_model = sources[name]
        sources[name] = table, of_model.alone()

    def opened(classes: Sequence[str] | None) -> list[Predictions]:
        return [
            Predictions(table.path, of_model, class_names=classes, table=table, **known)
            for table, of_model in sources.values()
        ]

    try:
        models = opened(None if concern is None else concern.classes)
    except UnclearFileError as error:
        # Other models would replace the given ones, of which only one was tried.
        if len(options.models) > 1:
            error.offers = [offer for offer in error.offers if not offer.options.models]
        raise
    if any(each.class_names != models[0].class_names for each in models):
        scored = [each.class_names for each in models if each.roles.form != "decisions"]
        named = [names for names in scored if None in map(to_number, names)]
        every = {name for each in models for name in each.class_names}
        # Names are the best classes, then columns of scores, then all numbers that are decided.
        classes = [*named, *scored, sorted(every, key=number_or_text)]
        models = opened(classes[0])
    for each in models:
        each.decides = any(other.decides for other in models)
    return dict(zip(sources, models, strict=True))


def score_models(
    opened: Mapping[str, Predictions],
    concern: ConcernSpec | ConcernRange | None,
    advance: Advance = lambda _: None,
    *,
    entries: Sequence[MetricEntry] | None = None,
    settings: Mapping[str, Any] | None = None,
    intervals: bool = True,
    risks: Mapping[str, RowRisks] = MappingProxyType({}),
    check: Callable[[Result[ClassifierScores]], object] | None = None,
) -> Result[ClassifierScores]:
    """Evaluate files with the same rows. The files are read one after the other.

    The files ``opened`` come from `open_models`. ``concern``, ``settings``, ``intervals`` and ``entries`` (the metrics)
    are arguments of `Evaluation`. ``risks`` maps models to `RowRisks`, to which the rows of the model are added; the
    result then has decision curves, or the reason why not. ``check`` is called before the evaluation with the result of
    a single row; it may raise a ValueError, as for unknown names.
    """
    first = next(iter(opened.values()))
    is_alone = len(opened) == 1
    options = first.options
    names = first.class_names
    is_clustered = first.options.cluster is not None
    for predictions in opened.values():
        predictions.has_shares = needs_classes(concern, entries)
    matched = MatchedRows(first, is_alone=is_alone, concern=concern)
    rows = matched.rows(first)
    of_classes = None
    is_soft = rows.target.ndim == 2
    if len(names) < 2 and not is_soft:
        raise PredictionsError(first.path, Rule("only_class", name=names[0]))
    with naming_file(first.path):
        if options.prevalence is not None:
            of_classes = class_weights(
                rows.repeated(is_clustered=is_clustered), options.prevalence, names
            )
        evaluation = Evaluation(
            names,
            concern=concern,
            metrics=entries,
            settings=settings,
            is_soft=is_soft,
            is_decided=first.decides,
            is_weighted=options.weight is not None or options.prevalence is not None,
            has_costs=rows.costs is not None,
            refers=any(each.refers for each in opened.values()),
            intervals=intervals,
        )
        evaluation.has_units = matched.units is not None
        if check is not None:
            trial = deepcopy(evaluation)
            weights = torch.ones(1).double() if evaluation.chosen.is_weighted else None
            for name in opened:
                row = rows.at(slice(1))._replace(
                    ids=torch.zeros(1).long(), groups={}, weights=weights
                )
                trial.add(name, row._replace(frequencies=None))
            check(trial.result())
        scale = _scale(first, concern, is_soft=is_soft) if risks else ""
        evaluations = [evaluation]
        if isinstance(scale, CurveScale):
            is_weighted = evaluation.chosen.is_weighted
            evaluations.append(
                Evaluation(
                    names,
                    metrics=scale.metrics(),
                    is_weighted=is_weighted,
                    intervals=intervals,
                )
            )
        for column in options.by:
            for of_part in evaluations:
                of_part.assign_codes(column, matched.columns[column].names)
    clusters = tuple(
        name for name in (options.cluster, options.crossed) if name is not None
    )
    for name, predictions in opened.items():
        rows = rows if predictions is first else matched.rows(predictions)
        rows = rows if of_classes is None else rows.weighted_by(of_classes)
        with naming_file(predictions.path):
            evaluation.add_all({name: rows}, clusters)
            for benefits in evaluations[1:]:
                benefits.add_all({name: rows._replace(costs=None)}, clusters)
        if name in risks:
            for part in rows.repeated(is_clustered=is_clustered):
                risks[name].add(part, evaluation.chosen)
        advance(len(rows.ids))
    units = unread_units(first) if intervals else {}
    evaluation.unread_units = list(units)
    with naming_file(first.path):
        result = evaluation.result()
    notes = list(result.notes)
    if matched.units is not None:
        notes.insert(0, matched.units.note(names))
    if intervals and not is_alone and not (result.comparisons or result.without):
        notes.append("None of the metrics is one that models are compared by.")
    cautions = [*result.cautions, *shared(units)]
    for name, each in opened.items():
        if each.roles.form == "positive":
            area = result.models[name].intervals.get("auroc")
            cautions += reversed_scores(
                area, _turned(each, concern), "" if is_alone else f"{name}: "
            )
    models = {
        name: replace(result.models[name], file_notes=each.notes)
        for name, each in opened.items()
    }
    read = [each.how() for each in opened.values()]
    result = replace(result, has_open_weights=options.weight is not None)
    curves: DecisionCurves | str
    if isinstance(scale, CurveScale):
        measured = evaluations[1].result()
        curves = DecisionCurves(scale, measured.models, measured.groups)
    else:
        curves = scale
    return replace(
        result,
        models=models,
        notes=notes,
        cautions=cautions,
        read=read,
        decision_curves=curves,
    )


def _scale(
    first: Predictions, concern: ConcernSpec | ConcernRange | None, *, is_soft: bool
) -> CurveScale | str:
    """Return the scale of decision curves, or the reason why there are none."""
    if is_soft or first.decides:
        return "they need one class and a probability of each class in each row."
    try:
        return scale_at_risk(concern)
    except ValueError as error:
        return str(error)


def _turned(predictions: Predictions, concern: ConcernSpec | ConcernRange | None) -> str:
    """Return the option that makes a single probability that of the other class, or why no option does."""
    roles, options = predictions.roles, predictions.options
    if concern is None and not roles.is_shown:
        return options._replace(classes=roles.classes[::-1]).words_beyond(options)
    read = f"{quoted(roles.scores[0])} is read as the probability of {quoted(roles.classes[roles.of_class])}"
    return f"{read}; 1 minus it is that of the other"


def shared_rows(scored: Predictions, seen: Predictions) -> list[EvaluationWarning]:
    """Return the warning E1 if rows of the file ``scored`` have the same scores as rows of the file ``seen``."""
    hashes, others = hash_rows(scored.rows().scores), hash_rows(seen.rows().scores)
    return warn_of_known(known_rows(others), hashes, seen.path.name)
