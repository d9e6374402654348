"""``mpcs decide``: fit a decision rule to validation predictions, and decide or refer by it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mpcs_torch.cli import options
from mpcs_torch.cli.app import group_of_commands
from mpcs_torch.cli.console import (
    COMMAND_LINE,
    note,
    print_result,
    print_scores,
    row_counter,
    show,
)
from mpcs_torch.errors import Rule
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.tables import Table

if TYPE_CHECKING:
    from mpcs_torch.learning import DecisionRule

decide = group_of_commands(
    "Decide for the class of the minimum expected cost, or refer the sample, with a guarantee."
)


@decide.command()
@options.shared(
    *options.OF_CLASSES,
    "cluster",
    "weight",
    *options.OF_COSTS,
    *options.OF_UNITS,
    "overwrite",
    "mute",
    "json",
    "quiet",
)
def fit(
    validation: options.Validation,
    concern: Annotated[Path, options.concern_option("what errors and referrals cost")],
    out: Annotated[Path, typer.Option(dir_okay=False)],
    reading: ReadOptions,
    limit: Annotated[list[str] | None, typer.Option(metavar="TEXT")] = None,
    priors: Annotated[
        str | None, typer.Option(metavar="NUMBERS|FILE", show_default="the file's")
    ] = None,
    calibration: Annotated[
        Literal["temperature", "vector"], typer.Option()
    ] = "temperature",
) -> None:
    """Fit a decision rule to predictions with labels.

    A limit is ERRORS <= RATE of WHAT by COLUMN with confidence C. ERRORS are dangerous, any, or pairs such as
    red->green, with commas between; WHAT is samples, the name of a class or group of classes (its true samples),
    decided (samples that are not referred), or decided and such a name. Only the rate must be given with the errors:
    the default is of samples, with confidence 0.95. A limit of cost holds in expectation.

    With --cluster, a limit is on the rate over all samples of new clusters. One of WHAT per cluster is on the mean of
    the rates of clusters. If only some rows of each cluster were kept, give --weight (size by number kept), or a limit
    of samples per cluster. For the decision about a whole patient, give --unit.

    --cost-columns names what decisions cost in each row, true class by true class, in place of the concern's costs.
    With --costs-if-wrong, it names what deciding for each class costs if it is wrong, such as an amount of money.
    Costs must be known before the true class is. Give the same columns to `decide apply`.

    Args:
        out: The file of the rule to write.
        limit: Guarantee, by referring rows, a limit such as 'dangerous <= 1 % of malignant by site'; repeatable.
        priors: Class frequencies of the deployment, with commas between, or the file of `calibrate priors --json`.
        calibration: What is fitted to a fifth of the rows: one temperature, or a scale and a bias for each class, which
            also corrects a loss with class weights.
    """
    from mpcs_torch.concern import load_concern
    from mpcs_torch.evaluation.decision_files import fit_rule, open_to_fit
    from mpcs_torch.learning import DecisionRule, Limit

    spec = load_concern(concern)
    with options.refused_values():
        frequencies = None if priors is None else _priors(priors, spec.classes)
        limits = [Limit.parse(text) for text in limit or ()]
        rule = DecisionRule(spec, limits, calibration=calibration, priors=frequencies)
    predictions = open_to_fit(rule, validation, reading)
    with row_counter("read", [validation], predictions) as advance:
        about_units = fit_rule(rule, predictions, advance)
    rule.save(out, overwrite=COMMAND_LINE.overwrite)
    assert rule.report is not None
    if about_units:
        note(about_units)
    plain = {
        "rule": out,
        **rule.report.plain(),
        "guaranteed": [str(limit) for limit in rule.limits],
    }
    print_result(plain, rule.report.table(rule.concern), _guarantee(rule, reading.cluster))
    note(f"wrote {out}")


@decide.command()
@options.shared(
    *options.OF_CLASSES,
    "cluster",
    *options.OF_COSTS,
    *options.OF_UNITS,
    "overwrite",
    "mute",
    "json",
    "quiet",
)
def apply(
    rule: Annotated[Path, options.file_argument("RULE")],
    predictions: Annotated[Path, options.file_argument("PREDICTIONS")],
    out: Annotated[Path, typer.Option(dir_okay=False)],
    reading: ReadOptions,
) -> None:
    """Copy a file with the decision for each row, the name of a class or refer, its risk, expected cost and reason.

    All columns of the file are kept; labels that are numbers become names of classes. A row that is left out has no
    decision.

    If the file has labels, also evaluate the decisions, as `mpcs score` does for the file of decisions. Rows with a
    label count alike: a column `chance`, by which `mpcs monitor` weights them, is not used here.

    The rate of dangerous errors and the cost of all rows are estimated from the probabilities, also without labels.
    This is right only while probabilities are calibrated. With labels, the difference is shown with its interval.

    Args:
        rule: File of `decide fit`.
        predictions: Predictions; labels are not needed.
        out: The file of decisions to write: text like PREDICTIONS, or parquet; npz or pt of arrays.
    """
    from mpcs_torch.evaluation.decision_files import apply_rule, open_to_decide
    from mpcs_torch.learning import DecisionRule
    from mpcs_torch.learning.rule_estimate import estimate_lines

    loaded = DecisionRule.load(rule)
    opened = open_to_decide(loaded, predictions, reading)
    with row_counter("decide", [predictions], opened) as advance:
        decided = apply_rule(loaded, opened, out, advance)
    if decided.units:
        note(decided.units)
    plain: dict[str, object] = {
        "decisions": decided.decisions,
        "referrals": decided.referrals,
        "estimated": [estimate._asdict() for estimate in decided.estimates],
    }
    if decided.result is None:
        print_result(plain)
    else:
        print_scores(decided.result.muted(*COMMAND_LINE.mute), beside=plain)
    show("\n".join(estimate_lines(decided.estimates)))
    note(
        f"wrote {out}: {decided.decisions} decisions, {decided.referrals} of them referrals"
    )


@decide.command()
@options.shared("json", "quiet")
def plan(
    limit: Annotated[str, typer.Option(metavar="TEXT")],
    expected: Annotated[list[float], typer.Option()],
    chance: float = 0.9,
    share: float = 1.0,
    cluster_size: Annotated[str, typer.Option(metavar="SIZES")] = "1",
    shared: float = 0.0,
) -> None:
    """Plan how many validation samples to collect, so that a limit is likely to be kept without referring any.

    Args:
        limit: A limit, as of `decide fit`.
        expected: Expected share of errors among the samples that the limit is about; repeatable.
        chance: The desired probability that all samples can be decided under the limit.
        share: Share of the samples that the limit is about, such as those of the class; for a limit by a column, in the
            rarest group.
        cluster_size: Samples of a cluster, such as a patient; or several, equally frequent sizes, with commas.
        shared: Correlation of errors in a cluster; 1 if all samples err together.
    """
    from mpcs_torch.learning import Limit, plan_limit

    with options.refused_values():
        asked = Limit.parse(limit)
        sizes: Any = _numbers(cluster_size, "--cluster-size")
        plans = {
            rate: plan_limit(
                asked, rate, chance=chance, share=share, cluster_size=sizes, shared=shared
            )
            for rate in expected
        }
    plain = list[dict[str, Any]]()
    rows = list[dict[str, str]]()
    sentences = list[str]()
    for rate, samples in plans.items():
        row = {
            "expected": rate,
            "given": samples.given,
            "counted": samples.counted,
            "judging": samples.judging,
            "fewest": samples.fewest,
        }
        plain.append({**row, "plan": str(samples)})
        rows.append({name: str(value) for name, value in row.items()})
        sentences.append(f"With {100 * rate:g} % of errors: {samples}")
    print_result(plain, Table.from_records(rows), "\n".join(sentences))


def _guarantee(rule: "DecisionRule", cluster: str | None) -> str:
    """Return a sentence that says which limits are guaranteed, and for which samples."""
    if not rule.limits:
        return "No limit was asked for, so nothing is guaranteed; the values are those of the samples of the fit."
    like = "samples like these"
    if cluster is not None:
        per_cluster = [limit.per == "cluster" for limit in rule.limits]
        of = "new clusters" if any(per_cluster) else "the samples of new clusters"
        like = f"{of} ({cluster}) like these"
        # A limit per cluster holds for any size, one per sample only up to the largest of the fit.
        if not all(per_cluster):
            like += ", none larger than the largest"
    limits = "; ".join(map(str, rule.limits))
    sentences = [f"Guaranteed for {like}: {limits}."]
    if rule.report is not None and not rule.report.is_clustered:
        sentences.append(TWO_SIDED)
    if rule.priors is not None:
        sentences.append(RESTS_ON_PRIORS)
    return "\n".join(sentences)


TWO_SIDED = (
    "Intervals in the table are two-sided and limits are one-sided, so an interval may end above a limit that is "
    "guaranteed with the same confidence."
)
RESTS_ON_PRIORS = (
    "Limits of true classes hold at any class frequencies, also where the priors are wrong, if these did not come from "
    "the same rows; the other values are at the class frequencies of these rows."
)


def _priors(text: str, class_names: Sequence[str]) -> list[float]:
    from mpcs_torch.evaluation.calibration_files import load_priors

    path = options.path_of(text, "--priors")
    if path.is_file():
        return load_priors(path, class_names)
    return _numbers(text)


def _numbers(text: str, option: str = "--priors") -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        rule = Rule("numbers_with_commas", text=text)
        raise typer.BadParameter(str(rule), param_hint=option) from None
