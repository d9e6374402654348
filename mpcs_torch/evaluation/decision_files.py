"""Fit decision rules to files of predictions, and decide or refer the rows of others."""

import warnings
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.calibration_files import all_rows
from mpcs_torch.evaluation.cautions import repeating
from mpcs_torch.evaluation.files.chunks import Advance, PredictionsError
from mpcs_torch.evaluation.files.columns import DECISION, LABEL, REFERRAL, decision_numbers
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.tables import write_csv_rows
from mpcs_torch.functional.inputs.faults import ProbabilitiesWarning, look_like_probabilities
from mpcs_torch.io.atomic_files import replace_whole
from mpcs_torch.learning import Assessment, DecisionRule, RuleReport
from mpcs_torch.learning.decision_rule import IS_CHEAPER, IS_DECIDED, IS_LIMITED, IS_UNSOUND
from mpcs_torch.learning.rule_limit import report_on

WRITTEN = (DECISION, "risk", "cost", "reason", "best")
"""The columns that a file of decisions adds to those of the predictions."""


class FileDecisions(NamedTuple):
    """The decisions for the rows of a file."""

    assessed: Assessment
    target: Tensor
    """(N,) labels, or (N, 0) without."""
    texts: Mapping[str, list[str]]
    """The other columns of the file."""
    report: RuleReport | None
    """The effect on the rows, if they have labels."""
    reasons: Mapping[int, str]
    """By number of `Assessment.reason`."""
    names: Sequence[str]
    """Of the decisions: the classes, the coarse answers, and a referral, which is the last."""

    def write(self, path: Path) -> None:
        """Write a csv file with a row for each sample, in the order of the predictions.

        It has the other columns of the predictions, the label if there is one, the decision (the name of a class or of
        a coarse answer, or ``refer``), the estimated risk that the best class is a dangerous error, its expected cost,
        the reason why it is not the decision, and the best class.
        """
        names = self.names
        columns: dict[str, Sequence[object]] = dict(self.texts)
        if self.target.ndim == 1:
            columns[LABEL] = [names[label] for label in self.target.tolist()]
        best = [names[label] for label in self.assessed.best.tolist()]
        reasons = [self.reasons[reason] for reason in self.assessed.reason.tolist()]
        decisions = [names[decision] for decision in self.assessed.decision.tolist()]
        risks, costs = (
            [f"{value:.6g}" for value in values.tolist()] for values in (self.assessed.risk, self.assessed.cost)
        )
        columns |= dict(zip(WRITTEN, (decisions, risks, costs, reasons, best), strict=True))
        rows = zip(*columns.values(), strict=True)
        replace_whole(path, lambda file: write_csv_rows(file, chain([columns], rows)))


def fit_rule(rule: DecisionRule, predictions: Predictions, advance: Advance, *, cluster: str | None = None) -> None:
    """Fit a rule to the rows of a file, which has the columns of clusters and of the groups of limits among its texts.

    Rows that cannot guarantee the limits are refused.

    Warns:
        EvaluationWarning: E2, if a column seems to name what rows share, and there is no cluster.
    """
    _refuse_name(rule, predictions)
    rows = all_rows(predictions, advance)
    by = {limit.by for limit in rule.limits if limit.by is not None}
    for column in (*by, *([] if cluster is None else [cluster])):
        if "" in rows.texts[column]:
            row = rows.texts[column].index("") + 1
            raise PredictionsError(predictions.path, "must name a group, but is missing", row=row, column=column)
    try:
        clusters = None if cluster is None else rows.texts[cluster]
        rule.fit(rows.logits, rows.target, clusters=clusters, groups={column: rows.texts[column] for column in by})
    except ValueError as error:
        raise PredictionsError(predictions.path, str(error)) from None
    columns = {name: ({*filter(None, texts)}, sum(map(bool, texts))) for name, texts in rows.texts.items()}
    for caution in repeating(columns) if rule.limits and cluster is None else []:
        warnings.warn(caution, stacklevel=2)


def apply_rule(rule: DecisionRule, predictions: Predictions, advance: Advance) -> FileDecisions:
    """Decide or refer the rows of a file, which need no labels.

    Warns:
        EvaluationWarning: If rows have labels, but were in the fit.
    """
    _refuse_name(rule, predictions)
    rows = all_rows(predictions, advance)
    clash = next((name for name in WRITTEN if name in rows.texts), None)
    if clash is not None:
        problem = f"has a column {quoted(clash)}, which decisions are written to: rename it, or --ignore it"
        raise PredictionsError(predictions.path, problem)
    if predictions.from_logits and look_like_probabilities(rows.logits):
        warnings.warn("the logits look like probabilities: leave out --logits.", ProbabilitiesWarning, stacklevel=2)
    with torch.no_grad():
        assessed = rule.assess(rows.logits)
    reasons = {IS_DECIDED: "", IS_CHEAPER: "it costs less", IS_UNSOUND: "its scores are not sound"}
    reasons |= {IS_LIMITED + j: f"its risk is too high for '{limit}'" for j, limit in enumerate(rule.limits)}
    report = None
    if rows.target.ndim == 1:
        rule.warn_of_fitted(rows.logits)
        is_clustered = rule.report is not None and not all(
            errors.has_interval for errors in rule.report.by_class.values()
        )
        report = report_on(assessed.decision, rows.target, rule.concern, priors=rule.priors, is_clustered=is_clustered)
    return FileDecisions(assessed, rows.target, rows.texts, report, reasons, list(decision_numbers(rule.concern)))


def _refuse_name(rule: DecisionRule, predictions: Predictions) -> None:
    if REFERRAL in rule.concern.classes:
        problem = f"a class must not be named {REFERRAL!r}, which stands for a referral"
        raise PredictionsError(predictions.path, problem)
