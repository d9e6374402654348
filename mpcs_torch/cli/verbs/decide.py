"""``mpcs decide``: fit a decision rule to validation predictions, and decide or refer by it."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpcs_torch.cli.console import note, note_all, print_json, text_of
from mpcs_torch.cli.failures import told_warnings
from mpcs_torch.cli.groups import FlagGroup
from mpcs_torch.cli.options import AsJson, Ignore, Labels, Logits, Quiet, Replace, TargetColumn, check_out, file_or_name

if TYPE_CHECKING:
    from mpcs_torch.learning import DecisionRule, RuleReport
    from mpcs_torch.learning.decision_rule import CalibrationMethod

decide = typer.Typer(
    cls=FlagGroup,
    help="Decide for the class of the minimum expected cost, or refer the sample, with a guarantee.",
    no_args_is_help=True,
    add_completion=False,
)


class Calibration(StrEnum):
    """A way to calibrate before deciding."""

    TEMPERATURE = "temperature"
    VECTOR = "vector"
    NONE = "none"


@decide.command()
def fit(
    validation: Annotated[
        Path,
        typer.Argument(
            metavar="VALIDATION",
            exists=True,
            dir_okay=False,
            help="Predictions and labels of samples that the model was not trained on, as `mpcs score` reads them.",
        ),
    ],
    concern: Annotated[
        Path,
        typer.Option(
            metavar="FILE|NAME",
            parser=file_or_name("concerns"),
            help="YAML file that says what errors and referrals cost, or a name, such as traffic-lights.",
        ),
    ],
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
    check_out(out, overwrite=overwrite)

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
    try:
        rule = DecisionRule(
            spec,
            calibration=method,
            priors=None if priors is None else torch.tensor(_numbers(priors)),
            max_dangerous=max_dangerous,
            max_cost=max_cost,
            confidence=confidence,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    columns = ColumnOptions(target_column, tuple(ignore or ()))
    opened = Predictions(validation, target=target, from_logits=logits, class_names=spec.classes, columns=columns)
    with told_warnings(), row_counter(f"read {validation.name}", [validation]) as advance:
        fit_rule(rule, opened, advance)
    note_all(opened.notes())
    rule.save(out, overwrite=overwrite)
    assert rule.report is not None
    if as_json:
        print_json({"rule": out, **_plain(rule.report), "guaranteed": _plain_limit(rule)})
        return
    typer.echo(f"{_table(rule.report)}\n\n{_guarantee(rule)}")
    note(f"wrote {out}")


@decide.command()
def apply(
    rule: Annotated[Path, typer.Argument(metavar="RULE", exists=True, dir_okay=False, help="File of `decide fit`.")],
    predictions: Annotated[
        Path,
        typer.Argument(metavar="PREDICTIONS", exists=True, dir_okay=False, help="Predictions; labels are not needed."),
    ],
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
    check_out(out, overwrite=overwrite)

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
        found = apply_rule(loaded, opened, advance)
    note_all(opened.notes())
    found.write(out)
    referred = int((found.decisions < 0).sum())
    if as_json:
        report = {} if found.report is None else _plain(found.report)
        print_json({"decisions": len(found.decisions), "referrals": referred, **report})
    elif found.report is not None:
        typer.echo(f"{_table(found.report)}\n")
    note(f"wrote {out}: {len(found.decisions)} decisions, {referred} of them referrals")


def _table(report: "RuleReport") -> str:
    from mpcs_torch.tables import Table

    rows = [
        ["samples that calibrated", str(report.calibrated_by)],
        ["samples judged", str(report.judged_by)],
        ["coverage", f"{report.coverage:.6g}"],
        ["dangerous errors per sample", f"{report.dangerous_rate:.6g}"],
        ["cost per sample", f"{report.cost:.6g}"],
    ]
    return text_of(Table(["", "value"], rows[0 if report.calibrated_by else 1 :]))


def _plain(report: "RuleReport") -> dict[str, Any]:
    return {
        "calibrated_by": report.calibrated_by,
        "judged_by": report.judged_by,
        "coverage": report.coverage,
        "dangerous_rate": report.dangerous_rate,
        "cost": report.cost,
    }


def _plain_limit(rule: "DecisionRule") -> dict[str, Any] | None:
    limit = rule.limit
    if not limit:
        return None
    return {"max_dangerous": limit.max_dangerous, "max_cost": limit.max_cost, "confidence": limit.confidence}


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
