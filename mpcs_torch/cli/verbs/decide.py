"""``mpcs decide``: fit a decision rule to validation predictions, and decide or refer by it."""

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpcs_torch.cli import options
from mpcs_torch.cli.app import group_of_commands
from mpcs_torch.cli.console import note, print_json, text_of
from mpcs_torch.cli.failures import told_warnings
from mpcs_torch.cli.options import AsJson, Ignore, Labels, Logits, Quiet, Replace, TargetColumn
from mpcs_torch.tables import Table

if TYPE_CHECKING:
    from mpcs_torch.learning import DecisionRule, RuleReport
    from mpcs_torch.learning.decision_rule import CalibrationMethod

decide = group_of_commands("Decide for the class of the minimum expected cost, or refer the sample, with a guarantee.")


Calibration = StrEnum("Calibration", ["TEMPERATURE", "VECTOR", "NONE"])
"""A way to calibrate before deciding."""


@decide.command()
def fit(
    validation: Annotated[
        Path,
        options.file_argument(
            "VALIDATION",
            "Predictions and labels of samples that the model was not trained on, as `mpcs score` reads them.",
        ),
    ],
    concern: Annotated[Path, options.concern_option("what errors and referrals cost")],
    out: Annotated[Path, typer.Option(dir_okay=False, help="The file of the rule to write.")],
    max_dangerous: Annotated[
        float | None, typer.Option(help="Guarantee at most this many dangerous errors per sample, such as 0.005.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="Guarantee at most this cost of errors per sample, in expectation.")
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(show_default="in expectation", help="With this probability, such as 0.95, --max-dangerous holds."),
    ] = None,
    calibration: Annotated[Calibration, typer.Option(help="How to calibrate first.")] = Calibration.TEMPERATURE,
    priors: Annotated[
        str | None,
        typer.Option(show_default="the file's", help="Class frequencies of the deployment, with commas between."),
    ] = None,
    logits: Logits = False,
    target: Labels = None,
    target_column: TargetColumn = None,
    ignore: Ignore = None,
    overwrite: Replace = False,
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Fit a decision rule to predictions with labels."""
    options.check_out(out, overwrite=overwrite)

    import torch

    from mpcs_torch.cli.progress import row_counter
    from mpcs_torch.concern import load_concern
    from mpcs_torch.evaluation.decision_files import fit_rule
    from mpcs_torch.evaluation.files.columns import ColumnOptions
    from mpcs_torch.evaluation.files.predictions import Predictions
    from mpcs_torch.learning import DecisionRule

    spec = load_concern(concern)
    method: CalibrationMethod = None
    if calibration is not Calibration.NONE:
        method = "vector" if calibration is Calibration.VECTOR else "temperature"
    with options.refused_values():
        rule = DecisionRule(
            spec,
            calibration=method,
            priors=None if priors is None else torch.tensor(_numbers(priors)),
            max_dangerous=max_dangerous,
            max_cost=max_cost,
            confidence=confidence,
        )
    columns = ColumnOptions(target_column, tuple(ignore or ()))
    predictions = Predictions(validation, target=target, from_logits=logits, class_names=spec.classes, columns=columns)
    with told_warnings(), row_counter(f"read {validation.name}", [validation]) as advance:
        fit_rule(rule, predictions, advance)
    note(*predictions.notes())
    rule.save(out, overwrite=overwrite)
    assert rule.report is not None
    if as_json:
        guaranteed = asdict(rule.limit) if rule.limit else None
        print_json({"rule": out, **rule.report._asdict(), "guaranteed": guaranteed})
        return
    typer.echo(f"{_table(rule.report)}\n\n{_guarantee(rule)}")
    note(f"wrote {out}")


@decide.command()
def apply(
    rule: Annotated[Path, options.file_argument("RULE", "File of `decide fit`.")],
    predictions: Annotated[Path, options.file_argument("PREDICTIONS", "Predictions; labels are not needed.")],
    out: Annotated[Path, typer.Option(dir_okay=False, help="The csv file of decisions to write.")],
    logits: Logits = False,
    target: Labels = None,
    target_column: TargetColumn = None,
    ignore: Ignore = None,
    overwrite: Replace = False,
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Write the decision for each row, the name of a class or refer, and its estimated risk.

    If the file has labels, also print what the decisions cost.
    """
    options.check_out(out, overwrite=overwrite)

    from mpcs_torch.cli.progress import row_counter
    from mpcs_torch.evaluation.decision_files import apply_rule
    from mpcs_torch.evaluation.files.columns import ColumnOptions
    from mpcs_torch.evaluation.files.predictions import Predictions
    from mpcs_torch.learning import DecisionRule

    loaded = DecisionRule.load(rule)
    opened = Predictions(
        predictions,
        target=target,
        from_logits=logits,
        class_names=loaded.concern.classes,
        needs_labels=False,
        columns=ColumnOptions(target_column, tuple(ignore or ())),
    )
    with row_counter(f"decide {predictions.name}", [predictions]) as advance:
        decided = apply_rule(loaded, opened, advance)
    note(*opened.notes())
    decided.write(out)
    referred = int((decided.decisions < 0).sum())
    if as_json:
        report = {} if decided.report is None else decided.report._asdict()
        print_json({"decisions": len(decided.decisions), "referrals": referred, **report})
    elif decided.report is not None:
        typer.echo(f"{_table(decided.report)}\n")
    note(f"wrote {out}: {len(decided.decisions)} decisions, {referred} of them referrals")


def _table(report: "RuleReport") -> str:
    rows = [
        ["samples that calibrated", str(report.calibrated_by)],
        ["samples judged", str(report.judged_by)],
        ["coverage", f"{report.coverage:.6g}"],
        ["dangerous errors per sample", f"{report.dangerous_rate:.6g}"],
        ["cost per sample", f"{report.cost:.6g}"],
    ]
    return text_of(Table(["", "value"], rows[0 if report.calibrated_by else 1 :]))


def _guarantee(rule: "DecisionRule") -> str:
    limit = rule.limit
    if not limit:
        return "No limit was asked for, so nothing is guaranteed; the values are those of the samples of the fit."
    what = (
        f"at most {limit.max_dangerous:g} dangerous errors per sample"
        if limit.max_cost is None
        else f"a cost of errors of at most {limit.max_cost:g} per sample"
    )
    sure = "in expectation" if limit.confidence is None else f"with confidence {limit.confidence:g}"
    return f"Guaranteed for samples like these, {sure}: {what}."


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"must be numbers with commas between, but is {text!r}", param_hint="--priors"
        ) from None
