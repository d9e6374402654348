"""Fit decision rules to files of predictions, and apply the rules to other files: each row is decided or referred."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.checks import REFERRAL
from mpcs_torch.errors import Rule
from mpcs_torch.evaluation.cautions import shared, unread_units
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.decision_numbers import CHANCE, decision_numbers
from mpcs_torch.evaluation.evaluation import Evaluation
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.matched_rows import columns_of_costs, costs_of_rows
from mpcs_torch.evaluation.files.predictions import (
    NO_LABEL,
    PredictedRows,
    Predictions,
)
from mpcs_torch.evaluation.files.read_options import (
    Advance,
    PredictionsError,
    ReadOptions,
    naming_file,
)
from mpcs_torch.evaluation.files.roles import named_labels
from mpcs_torch.evaluation.files.tables import ReadColumns, take_rows
from mpcs_torch.evaluation.files.words import LABELS, WRITTEN, named_as
from mpcs_torch.evaluation.files.write import check_copy, copy_table
from mpcs_torch.evaluation.result import Result
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.evaluation.unit_sums import ids_of_names
from mpcs_torch.evaluation.units import DecisionUnits
from mpcs_torch.functional.inputs.decisions import REFERRED, is_class
from mpcs_torch.functional.inputs.groups import Groups, costs_by_label, valid_values
from mpcs_torch.functional.inputs.probabilities import MIN_PROBABILITY
from mpcs_torch.learning import DecisionRule, RuleEstimate, estimate_decisions
from mpcs_torch.learning.decision_rule import IS_CHEAPER, IS_DECIDED, IS_LIMITED, IS_UNSOUND
from mpcs_torch.learning.rule_fit import check_row_costs

OTHER_FREQUENCIES = (
    "The rule was fitted for other class frequencies: these values are those of the frequencies in the file. "
    "mpcs score --prevalence gives them for others."
)


PARTLY_LABELLED = (
    "Of {} rows, {} have a label: all values are of these, which count alike. If some were more likely to be labelled "
    "than others, such as one of each patient, give each its weight: mpcs score --missing drop --weight COLUMN."
)


WITHOUT_CHANCE = (
    f"The column {CHANCE} is not used: rows with a label count alike, in these values and in differences from "
    f"estimates. mpcs monitor weights rows by it. For other values, add a column of 1 / {CHANCE} to the file of "
    "decisions: mpcs score --missing drop --weight COLUMN."
)


OF_ROWS = "Rows have costs of their own (--cost-columns): costs of the concern are those of its classes alone."


class FileDecisions(NamedTuple):
    """The decisions for the rows of a file."""

    decisions: int
    referrals: int
    result: Result[ClassifierScores] | None
    """The evaluation of the decisions for rows with labels, as by `mpcs score`; None if no row has a label."""
    units: str = ""
    """A sentence on how rows were combined into units of decision; empty if they were not."""
    estimates: Sequence[RuleEstimate] = ()
    """The estimated rate of dangerous errors and mean cost of all rows, and the difference of labels from them."""


class UnitRows(NamedTuple):
    """The M rows to decide: those of a file or, if it has units of decision such as patients, one for each unit."""

    logits: Tensor
    """(M, C), float64."""
    target: Tensor
    """(M,), int64: labels; `NO_LABEL` for a row without a label, or for a unit with such a row."""
    groups: dict[str, Groups]
    """The groups of the rows, by the name of the column."""
    units: Tensor
    """(N,): for each of the N rows of the file, its index among the M rows."""
    note: str
    """A sentence on how rows were combined into units of decision; empty if they were not."""
    costs: Tensor | None
    """The costs of decisions by true class, (M, C, C); None if no columns have them."""

    @classmethod
    def of(
        cls,
        rows: PredictedRows,
        predictions: Predictions,
        concern: ConcernSpec,
        columns: Iterable[str],
    ) -> Self:
        """Return `UnitRows` of ``rows`` and the groups in ``columns``; if there are units, combine the rows of each."""
        unit = predictions.options.unit
        size = len(rows.numbers)
        names = predictions.class_names
        target = rows.target if rows.target.ndim == 1 else torch.full((size,), NO_LABEL)
        groups = {name: rows.others.groups(name) for name in columns}
        costs = costs_of_rows(rows.others, predictions.options, len(names))
        if costs is not None and costs.ndim == 2:
            raise PredictionsError(predictions.path, Rule("columns_by_true_class"))
        if costs is not None:
            is_labelled = target != NO_LABEL
            of_labelled = rows.others.where(is_labelled.numpy())
            sources = {"costs": columns_of_costs(predictions.options, len(names))}
            with of_labelled.naming(sources):
                valid_values("costs", costs[is_labelled])
        if unit is None:
            return cls(rows.scores, target, groups, torch.arange(size), "", costs)
        of_rows = rows.others.groups(unit)
        with naming_file(predictions.path):
            units = DecisionUnits.of(
                of_rows, predictions.options.combine, concern, len(names), size, unit
            )
            codes = units.units.codes
            lacks = units.highest((target == NO_LABEL).long())[codes] == 1
            of_groups = {name: of.codes for name, of in groups.items()}
            target = target.masked_fill(lacks, NO_LABEL)
            each = Rows(rows.scores.softmax(1), target, codes, of_groups, costs=costs)
            combined = units.combined(each, len(names), is_clustered=False)
        logits = combined.probs.clamp(min=MIN_PROBABILITY).log()
        groups = {
            name: of._replace(codes=combined.groups[name]) for name, of in groups.items()
        }
        return cls(
            logits, combined.target, groups, codes, units.note(names), combined.costs
        )


def open_to_fit(rule: DecisionRule, path: Path, options: ReadOptions) -> Predictions:
    """Open labelled predictions, with the columns of groups for which the rule has limits."""
    _refuse_name(rule, path)
    groups = [limit.by for limit in rule.limits if limit.by is not None]
    predictions = Predictions(path, options, class_names=rule.concern.classes, texts=groups)
    predictions.table.check_columns(groups, "--limit")
    return predictions


def rows_to_fit(
    rule: DecisionRule, predictions: Predictions, advance: Advance
) -> tuple[dict[str, Any], str]:
    """Return the arguments of `DecisionRule.fit` from a file opened by `open_to_fit`, and a sentence on its units.

    If the file has units of decision, the rows of each unit are combined. If not, the sentence is "".
    """
    read = predictions.logits()
    cluster = predictions.options.cluster
    weight = predictions.options.weight
    advance(len(read.scores))
    by = {limit.by for limit in rule.limits if limit.by is not None}
    columns = set(by)
    if cluster is not None:
        columns.add(cluster)
    if weight is not None:
        columns.add(weight)
    logits, target, groups, _, note, costs = UnitRows.of(
        read, predictions, rule.concern, columns
    )
    by_group = {name: groups[name].of_rows() for name in by}
    arguments = {"preds": logits, "target": target, "groups": by_group, "costs": costs}
    if cluster is not None:
        arguments["clusters"] = groups[cluster].of_rows()
    if weight is not None:
        with naming_file(predictions.path):
            arguments["weights"] = [float(text) for text in groups[weight].of_rows()]
    return arguments, note


def fit_rule(rule: DecisionRule, predictions: Predictions, advance: Advance) -> str:
    """Fit a rule to the rows of a file opened by `open_to_fit`; return a sentence on how rows were combined, or "".

    Raise an error if the rows cannot guarantee the limits of the rule.

    Warns:
        EvaluationWarning: The warning E2, if a column seems to name units such as patients, but there are no clusters.
    """
    arguments, note = rows_to_fit(rule, predictions, advance)
    with naming_file(predictions.path):
        rule.fit(**arguments)
    for caution in shared(unread_units(predictions)) if rule.limits else ():
        warnings.warn(caution, stacklevel=2)
    return note


def open_to_decide(rule: DecisionRule, path: Path, options: ReadOptions) -> Predictions:
    """Open predictions, labelled or not; refuse a file with a column that `apply_rule` would write."""
    _refuse_name(rule, path)
    table = open_table(path)
    clash = next((name for name in WRITTEN if name in table.names), None)
    if clash is not None:
        raise PredictionsError(path, Rule("no_written_column", column=clash))
    predictions = Predictions(
        path, options, class_names=rule.concern.classes, needs_labels=False, table=table
    )
    others = named_as([name for name in table.names if name not in options.columns], LABELS)
    if others and predictions.table.joined:
        raise PredictionsError(path, Rule("no_other_labels", column=others[0]))
    return predictions


def apply_rule(
    rule: DecisionRule, predictions: Predictions, out: Path, advance: Advance
) -> FileDecisions:
    """Copy a file and add the decision for each row: a class, a set of classes, or a referral.

    The column ``decision`` is added, and four columns about the best class, the one with the lowest expected cost.
    ``best`` is its name, ``risk`` the probability that deciding for it is a dangerous error, and ``cost`` its expected
    cost. ``reason`` says why it is not the decision, or is empty. Labels that the file calls differently, such as by
    numbers, become names of classes.

    Warns:
        EvaluationWarning: If the rule was fitted to some of the labelled rows.
    """
    from pyarrow import array

    check_copy(predictions.table, out)
    read = predictions.logits()
    cluster = predictions.options.cluster
    advance(len(read.scores))
    columns = [] if cluster is None else [cluster]
    rows = UnitRows.of(read, predictions, rule.concern, columns)
    is_labelled = rows.target != NO_LABEL
    with torch.no_grad(), naming_file(predictions.path):
        if rows.costs is not None:
            check_row_costs(rows.costs[is_labelled], rows.target[is_labelled])
        assessed = rule.assess(rows.logits, rows.costs)
    names = list(decision_numbers(rule.concern.classes, rule.concern.answers))
    reasons = {
        IS_DECIDED: "",
        IS_CHEAPER: "it costs less",
        IS_UNSOUND: "its scores are not sound",
    }
    for place, limit in enumerate(rule.limits):
        reasons[IS_LIMITED + place] = f"its risk is too high for '{limit}'"
    of_units: dict[str, list[Any]] = {
        "decision": [names[decision] for decision in assessed.decision.tolist()],
        "risk": _short(assessed.risk),
        "cost": _short(assessed.cost),
        "reason": [reasons[reason] for reason in assessed.reason.tolist()],
        "best": [names[label] for label in assessed.best.tolist()],
    }
    unit_of_row = rows.units.int().numpy()
    added = {
        name: take_rows(array(values), unit_of_row) for name, values in of_units.items()
    }
    roles = predictions.roles
    table = replace(predictions.table, classes=rule.concern.classes)

    def change(copied: ReadColumns) -> dict[str, Any]:
        changed = dict[str, Any]()
        if roles.label is not None and roles.called:
            changed[roles.label] = named_labels(copied, roles)
        return changed | read.spread(added, copied)

    copy_table(table, out, change, has_names=True, names=roles.usual_names())
    result = _evaluated(rule, rows, assessed.decision, predictions, out.name)
    clusters = None if cluster is None else rows.groups[cluster].of_rows()
    estimates = estimate_decisions(assessed, rule.concern, rows.target, clusters=clusters)
    return FileDecisions(
        len(rows.logits),
        int((assessed.decision == REFERRED).sum()),
        result,
        rows.note,
        estimates,
    )


def _evaluated(
    rule: DecisionRule,
    rows: UnitRows,
    decisions: Tensor,
    predictions: Predictions,
    name: str,
) -> Result[ClassifierScores] | None:
    """Evaluate the decisions (M,) of the rows that have a label; return None if no row has a label."""
    is_labelled = rows.target != NO_LABEL
    cluster = predictions.options.cluster
    decided = decisions[is_labelled].unsqueeze(1)
    target = rows.target[is_labelled]
    if not len(target):
        return None
    rule.warn_of_fitted(rows.logits[is_labelled])
    ids = torch.arange(len(target))
    if cluster is not None:
        ids = ids_of_names(rows.groups[cluster].of_rows())[is_labelled]
    refers = not is_class(decided, len(rule.concern.classes)).all()
    paid = None if rows.costs is None else costs_by_label(rows.costs[is_labelled], target)
    evaluation = Evaluation(
        rule.concern.classes,
        concern=rule.concern,
        is_decided=True,
        refers=refers,
        has_costs=paid is not None,
    )
    clusters = () if cluster is None else (cluster,)
    evaluation.add(name, Rows(decided, target, ids, costs=paid), clusters)
    result = evaluation.result()
    notes = list(result.notes)
    if rule.priors is not None:
        notes.append(OTHER_FREQUENCIES)
    if paid is not None:
        notes.append(OF_ROWS)
    if not is_labelled.all():
        notes.append(PARTLY_LABELLED.format(len(is_labelled), len(target)))
    if CHANCE in predictions.table.names:
        notes.append(WITHOUT_CHANCE)
    return replace(
        result, notes=notes, cautions=[*result.cautions, *shared(unread_units(predictions))]
    )


def _short(values: torch.Tensor) -> list[float]:
    return [float(f"{value:.6g}") for value in values.tolist()]


def _refuse_name(rule: DecisionRule, path: Path) -> None:
    if REFERRAL in rule.concern.classes:
        raise PredictionsError(path, Rule("no_class_named_so", name=REFERRAL))
