"""Fit decision rules to files of predictions, and decide or refer the rows of others."""

import csv
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.evaluation.calibration_files import Advance, all_rows
from mpcs_torch.evaluation.files.chunks import PredictionsError
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.io.atomic_files import replace_text
from mpcs_torch.learning import DecisionRule, RuleReport
from mpcs_torch.learning.rule_limit import report_on

REFERRAL = "refer"
"""Stands for a referral in a file of decisions."""


class FileDecisions(NamedTuple):
    """The decisions for the rows of a file."""

    decisions: Tensor
    """(N,), int64: class indices, or -1 for a referral."""
    risk: Tensor
    """(N,): the estimated risk of each decision; infinite where a referral costs less."""
    report: RuleReport | None
    """The effect on the rows, if they have labels."""
    class_names: Sequence[str]

    def write(self, path: Path) -> None:
        """Write a csv file with a row for each sample: the name of the class or ``refer``, and the estimated risk."""
        names = [*self.class_names, REFERRAL]  # -1 is the last
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["decision", "risk"])
        rows = zip(self.decisions.tolist(), self.risk.tolist(), strict=True)
        writer.writerows([names[decision], repr(risk)] for decision, risk in rows)
        replace_text(path, text.getvalue())


def fit_rule(rule: DecisionRule, predictions: Predictions, advance: Advance) -> DecisionRule:
    """Fit a rule to the rows of a file.

    Raises:
        PredictionsError: If there is no row, the labels are soft, a value breaks a rule, or the rows cannot guarantee
            the limit.
    """
    _refuse_name(rule, predictions)
    logits, target = all_rows(predictions, advance)
    try:
        return rule.fit(logits, target)
    except ValueError as error:
        raise PredictionsError(predictions.path, str(error)) from None


def apply_rule(rule: DecisionRule, predictions: Predictions, advance: Advance) -> FileDecisions:
    """Decide or refer the rows of a file, which need no labels.

    Raises:
        PredictionsError: If there is no row or a value breaks a rule.
    """
    _refuse_name(rule, predictions)
    logits, target = all_rows(predictions, advance)
    with torch.no_grad():
        decisions, (_, risk) = rule(logits), rule.estimate(logits)
    names = rule.concern.classes
    report = report_on(decisions, target, rule.concern) if target.ndim == 1 else None
    return FileDecisions(decisions, risk, report, names)


def _refuse_name(rule: DecisionRule, predictions: Predictions) -> None:
    if REFERRAL in rule.concern.classes:
        problem = f"a class must not be named {REFERRAL!r}, which stands for a referral"
        raise PredictionsError(predictions.path, problem)
