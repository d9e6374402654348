"""``mpcs decide``: fit a decision rule to validation predictions, and decide or refer by it."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpcs_torch.cli import options
from mpcs_torch.cli.app import group_of_commands
from mpcs_torch.cli.console import note, print_json, say, text_of
from mpcs_torch.cli.failures import told_warnings
from mpcs_torch.cli.options import (
    AsJson,
    Calibration,
    Cluster,
    Ignore,
    Labels,
    Logits,
    Quiet,
    Replace,
    TargetColumn,
    Validation,
)
from mpcs_torch.tables import Table

if TYPE_CHECKING:
    from mpcs_torch.concern import ConcernSpec
    from mpcs_torch.learning import DecisionRule, RuleReport

decide = group_of_commands("Decide for the class of the minimum expected cost, or refer the sample, with a guarantee.")


@decide.command()
def fit(
    validation: Validation,
    concern: Annotated[Path, options.concern_option("what errors and referrals cost")],
    out: Annotated[Path, typer.Option(dir_okay=False)],
    limit: Annotated[list[str] | None, typer.Option(metavar="TEXT")] = None,
    cluster: Cluster = None,
    calibration: Calibration = Calibration.TEMPERATURE,
    priors: Annotated[str | None, typer.Option(show_default="the file's")] = None,
    logits: Logits = False,
    target: Labels = None,
    target_column: TargetColumn = None,
    ignore: Ignore = None,
    mute: options.Mute = None,  # noqa: ARG001  # read by its callback
    overwrite: Replace = False,
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Fit a decision rule to predictions with labels.

    A limit is ERRORS <= RATE of WHAT by COLUMN with confidence C. ERRORS are dangerous, any, or pairs such as
    red->green, with commas between; WHAT is samples, the name of a class (its true samples), decided (samples that are
    not referred), or decided and a class. Only the rate must be given with the errors: the default is of samples, with
    confidence 0.95. A limit of cost holds in expectation.

    Args:
        out: The file of the rule to write.
        limit: Guarantee, by referring rows, a limit such as 'dangerous <= 1 % of malignant by site'; repeatable.
        calibration: How to calibrate first.
        priors: Class frequencies of the deployment, with commas between.
    """
    options.check_out(out, overwrite=overwrite, read=[validation])

    from mpcs_torch.cli.progress import row_counter
    from mpcs_torch.concern import load_concern
    from mpcs_torch.evaluation.decision_files import fit_rule
    from mpcs_torch.evaluation.files.predictions import open_with_columns
    from mpcs_torch.learning import DecisionRule, Limit

    spec = load_concern(concern)
    with options.refused_values():
        rule = DecisionRule(
            spec,
            [Limit.parse(text) for text in limit or ()],
            calibration=options.calibration_method(calibration),
            priors=None if priors is None else _numbers(priors),
        )
    columns = dict.fromkeys((cluster, *(limit.by for limit in rule.limits)))
    reading = options.read_options(target, target_column, ignore, logits=logits)
    needed = [column for column in columns if column is not None]
    predictions = open_with_columns(validation, reading, class_names=spec.classes, needed=needed)
    with told_warnings(), row_counter(f"read {validation.name}", [validation]) as advance:
        fit_rule(rule, predictions, advance, cluster=cluster)
    note(*predictions.notes())
    rule.save(out, overwrite=overwrite)
    assert rule.report is not None
    if as_json:
        print_json({"rule": out, **rule.report.plain(), "guaranteed": [str(limit) for limit in rule.limits]})
        return
    typer.echo(f"{_table(rule.report, rule.concern)}\n\n{_guarantee(rule, cluster)}")
    note(f"wrote {out}")


@decide.command()
def apply(
    rule: Annotated[Path, options.file_argument("RULE")],
    predictions: Annotated[Path, options.file_argument("PREDICTIONS")],
    out: Annotated[Path, typer.Option(dir_okay=False)],
    logits: Logits = False,
    target: Labels = None,
    target_column: TargetColumn = None,
    ignore: Ignore = None,
    mute: options.Mute = None,  # noqa: ARG001  # read by its callback
    overwrite: Replace = False,
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Write the decision for each row, the name of a class or refer, with its risk, expected cost and reason.

    All other columns and the label are kept.

    If the file has labels, also print what the decisions cost.

    Args:
        rule: File of `decide fit`.
        predictions: Predictions; labels are not needed.
        out: The csv file of decisions to write.
    """
    options.check_out(out, overwrite=overwrite, read=[rule, predictions])

    from mpcs_torch.cli.progress import row_counter
    from mpcs_torch.evaluation.decision_files import apply_rule
    from mpcs_torch.evaluation.files.predictions import open_with_columns
    from mpcs_torch.learning import DecisionRule

    loaded = DecisionRule.load(rule)
    reading = options.read_options(target, target_column, ignore, logits=logits)
    opened = open_with_columns(predictions, reading, class_names=loaded.concern.classes, needs_labels=False)
    with told_warnings(), row_counter(f"decide {predictions.name}", [predictions]) as advance:
        decided = apply_rule(loaded, opened, advance)
    note(*opened.notes())
    decided.write(out)
    decisions = decided.assessed.decision
    referred = int((decisions < 0).sum())
    if as_json:
        report = {} if decided.report is None else decided.report.plain()
        print_json({"decisions": len(decisions), "referrals": referred, **report})
    elif decided.report is not None:
        typer.echo(f"{_table(decided.report, loaded.concern)}\n")
    note(f"wrote {out}: {len(decisions)} decisions, {referred} of them referrals")


@decide.command()
def plan(
    limit: Annotated[str, typer.Option(metavar="TEXT")],
    expected: Annotated[list[float], typer.Option()],
    chance: float = 0.9,
    share: float = 1.0,
    group_shares: Annotated[str | None, typer.Option(metavar="SHARES")] = None,
    cluster_size: int = 1,
    shared: float = 0.0,
    picture: Annotated[Path | None, typer.Option(dir_okay=False)] = None,
    overwrite: Replace = False,
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Plan how many validation samples to collect, so that a limit is likely to be kept without referring any.

    Args:
        limit: A limit, as of `decide fit`.
        expected: Share of errors to expect among the samples that the limit is of; repeatable.
        chance: The chance wanted to decide all under the limit.
        share: Share of what the limit is of, such as the class.
        group_shares: Shares of the groups of a limit by a column, with commas.
        cluster_size: Samples of a cluster, such as a patient.
        shared: Correlation of errors in a cluster; 1 if all err together.
        picture: Also draw the chance by the number, to an svg file.
    """
    options.check_out(picture, overwrite=overwrite, option="--picture")
    if picture is not None and picture.suffix != ".svg":
        raise typer.BadParameter(f"must end in .svg, but is {picture}", param_hint="--picture")

    from mpcs_torch.learning import Limit, plan_limit

    with options.refused_values():
        asked = Limit.parse(limit)
        shares = (1.0,) if group_shares is None else _numbers(group_shares, "--group-shares")
        plan_for = partial(plan_limit, asked, chance=chance, share=share, group_shares=shares)
        plans = {rate: plan_for(rate, cluster_size=cluster_size, shared=shared) for rate in expected}
    columns = ["expected", "given", "counted", "judging", "fewest"]
    found = [[rate, one.given, sum(one.counted), one.judging, one.fewest] for rate, one in plans.items()]
    if as_json:
        print_json([dict(zip([*columns, "plan"], [*row, str(plans[row[0]])], strict=True)) for row in found])
    else:
        told = [f"With {100 * rate:g} % of errors: {one}" for rate, one in plans.items()]
        say("\n".join([text_of(Table(columns, [list(map(str, row)) for row in found])), "", *told]))
    if picture is not None:
        from mpcs_torch.plots import plan_figure
        from mpcs_torch.report.render import write_svg

        curves = {f"{100 * rate:g} % of errors": (one.given, one.chance_with) for rate, one in plans.items()}
        unit = "samples" if cluster_size == 1 else "clusters"
        write_svg(picture, plan_figure(curves, wanted=chance, unit=unit, title=limit))
        note(f"wrote {picture}")


def _table(report: "RuleReport", concern: "ConcernSpec") -> str:
    free = ", a referral at 0" if concern.refer is None and report.coverage < 1 else ""
    rows = [
        ["samples that calibrated", str(report.calibrated_by)],
        ["samples judged", str(report.judged_by)],
        ["coverage", f"{report.coverage:.6g}"],
        *([["coarse answers per sample", f"{report.coarse:.6g}"]] if report.coarse else []),
        ["dangerous errors per sample", f"{report.dangerous_rate:.6g}"],
        [f"cost per sample{free}", f"{report.cost:.6g}"],
    ]
    rows += [[f"{name} at the priors", f"{value:.6g}"] for name, value in report.at_priors.items()]
    rows += [[f"dangerous errors of {name}", str(errors)] for name, errors in report.by_class.items()]
    return text_of(Table(["", "value"], rows[0 if report.calibrated_by else 1 :]))


def _guarantee(rule: "DecisionRule", cluster: str | None) -> str:
    if not rule.limits:
        return "No limit was asked for, so nothing is guaranteed; the values are those of the samples of the fit."
    like = "samples like these" if cluster is None else f"the samples of new clusters ({cluster}) like these"
    return f"Guaranteed for {like}: {'; '.join(map(str, rule.limits))}."


def _numbers(text: str, option: str = "--priors") -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"must be numbers with commas between, but is {text!r}", param_hint=option) from None
