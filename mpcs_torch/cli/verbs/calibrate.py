"""``mpcs calibrate``: fit a calibration to a file of scores, and apply it to others."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpcs_torch.cli import options
from mpcs_torch.cli.app import group_of_commands
from mpcs_torch.cli.console import note, print_json, text_of
from mpcs_torch.cli.failures import told_warnings
from mpcs_torch.cli.options import AsJson, Ignore, Labels, Logits, Quiet, Replace, TargetColumn, Validation
from mpcs_torch.tables import Table

if TYPE_CHECKING:
    from mpcs_torch.evaluation.calibration_files import FittedCalibration

calibrate = group_of_commands("Make probabilities and detection scores say how often they are right.")


Method = StrEnum("Method", ["TEMPERATURE", "VECTOR", "LOGISTIC", "PAV"])
"""A way to calibrate."""


@calibrate.command()
def fit(
    dev: Annotated[Path, options.file_argument("DEV")],
    method: Annotated[Method, typer.Option()],
    out: Annotated[Path, typer.Option(dir_okay=False)],
    logits: Logits = False,
    target: Labels = None,
    target_column: TargetColumn = None,
    ignore: Ignore = None,
    trials: Annotated[Path | None, options.file_option()] = None,
    p_target: Annotated[float | None, typer.Option(show_default="0.5")] = None,
    overwrite: Replace = False,
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Fit a calibration to scores with labels.

    Args:
        dev: Scores and labels of samples that the model was not trained on, as `mpcs score` or `mpcs detect` read them.
        method: temperature or vector: predictions of a classifier; logistic or pav: detection scores.
        out: The file of the calibration to write.
        trials: List of trials in Kaldi's format, for detection scores.
        p_target: logistic: the prior of targets that weighs the errors.
    """
    others: dict[str, object] = {"--trials": trials}
    if method in (Method.LOGISTIC, Method.PAV):
        others = {"--logits": logits, "--target": target, "--target-column": target_column, "--ignore": ignore}
    if method is not Method.LOGISTIC:
        others |= {"--p-target": p_target}
    options.refuse_given(others, f"is not for --method {method}")
    if p_target is not None and not 0 < p_target < 1:
        raise typer.BadParameter(f"must be between 0 and 1, but is {p_target}", param_hint="--p-target")
    options.check_out(out, overwrite=overwrite)

    from mpcs_torch.cli.progress import row_counter
    from mpcs_torch.evaluation.calibration_files import fit_to_predictions, fit_to_trials, save_calibration
    from mpcs_torch.evaluation.files.predictions import Predictions
    from mpcs_torch.evaluation.files.trial_readers import read_trials

    notes: list[str] = []
    with told_warnings(), row_counter(f"read {dev.name}", [dev]) as advance:
        if method in (Method.LOGISTIC, Method.PAV):
            scores = read_trials(dev, trials, advance)
            p_target = 0.5 if p_target is None else p_target
            fitted = fit_to_trials(dev, scores, "pav" if method is Method.PAV else "logistic", p_target)
        else:
            reading = options.read_options(target, target_column, ignore, logits=logits)
            predictions = Predictions(dev, **reading._asdict())
            fitted = fit_to_predictions(predictions, "vector" if method is Method.VECTOR else "temperature", advance)
            notes = predictions.notes()
    note(*notes)
    save_calibration(fitted.saved, out)
    _print_fit(fitted, out, as_json=as_json)


@calibrate.command()
def apply(
    calibration: Annotated[Path, options.file_argument("CAL")],
    scores: Annotated[Path, options.file_argument("SCORES")],
    out: Annotated[Path, typer.Option(dir_okay=False)],
    target: Labels = None,
    target_column: TargetColumn = None,
    ignore: Ignore = None,
    overwrite: Replace = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Apply a calibration to a file of scores.

    Predictions stay what they are, logits or probabilities. Detection scores become natural-log likelihood ratios, for
    `mpcs detect --llr`.

    Args:
        calibration: File of `mpcs calibrate fit`.
        scores: Scores of the same kind as those of the fit; labels are kept, but need not be there.
        out: The file to write: csv, npz or pt for predictions of a classifier.
    """
    options.check_out(out, overwrite=overwrite, read=[calibration, scores])

    from mpcs_torch.cli.progress import row_counter
    from mpcs_torch.evaluation.calibration_files import calibrate_predictions, load_calibration
    from mpcs_torch.evaluation.files.predictions import write_predictions
    from mpcs_torch.evaluation.files.trial_writers import rewrite_scores

    saved, notes = load_calibration(calibration), list[str]()
    with row_counter(f"calibrate {scores.name}", [scores]) as advance:
        if saved.class_names:
            reading = options.read_options(target, target_column, ignore)
            calibrated = calibrate_predictions(saved, scores, reading, advance)
            write_predictions(out, *calibrated[:4])
            notes = calibrated.notes
        else:
            of_classes = {"--target": target, "--target-column": target_column, "--ignore": ignore}
            options.refuse_given(of_classes, f"is not for --method {saved.method}")
            rewrite_scores(scores, out, saved.module, advance)
    note(*notes, f"wrote {out}")


@calibrate.command()
def priors(
    validation: Validation,
    unlabelled: Annotated[Path, options.file_argument("UNLABELLED")],
    concern: Annotated[Path | None, options.concern_option("the order of the classes")] = None,
    logits: Logits = False,
    target: Labels = None,
    target_column: TargetColumn = None,
    ignore: Ignore = None,
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Estimate how frequent each class is among predictions without labels.

    This is right if only class frequencies have changed; a test says so. For `mpcs decide fit --priors`, give the
    concern of the rule, whose order the priors then have.

    Args:
        unlabelled: Predictions of the deployment.
    """
    from mpcs_torch.calibration.priors import LEVEL
    from mpcs_torch.cli.progress import row_counter
    from mpcs_torch.concern import load_concern
    from mpcs_torch.evaluation.calibration_files import estimate_file_priors
    from mpcs_torch.evaluation.files.predictions import open_with_columns

    reading = options.read_options(target, target_column, ignore, logits=logits)
    names = None if concern is None else load_concern(concern).classes
    predictions = open_with_columns(validation, reading, class_names=names)
    with told_warnings(), row_counter("read predictions", [validation, unlabelled]) as advance:
        estimate, notes = estimate_file_priors(predictions, unlabelled, reading, advance)
    note(*predictions.notes(), *notes)
    is_label_shift, values = estimate.p_value >= LEVEL, [column.tolist() for column in estimate[:4]]
    if as_json:
        vectors = dict(zip(estimate._fields, [*values, estimate.p_value], strict=True))
        print_json({"classes": predictions.class_names, **vectors, "is_label_shift": is_label_shift})
        return
    table = [
        [name, f"{share:.4g}", f"{prior:.4g}", f"{low:.4g} to {high:.4g}"]
        for name, prior, low, high, share in zip(predictions.class_names, *values, strict=True)
    ]
    seen, listed = f"(p = {estimate.p_value:.2g})", ",".join(f"{prior:.6g}" for prior in values[0])
    conclusion = f"No change beyond class frequencies is seen {seen}.\n--priors {listed}"
    if not is_label_shift:
        conclusion = f"DO NOT USE THESE PRIORS: the samples of a class do not look like those of validation {seen}."
    typer.echo(f"{text_of(Table(['class', 'validation', 'unlabelled', '95 %'], table))}\n\n{conclusion}")


def _print_fit(fitted: "FittedCalibration", out: Path, *, as_json: bool) -> None:
    """Print the parameters of a calibration, if it has few, and what it changes."""
    method, state = fitted.saved.method, fitted.saved.module.state_dict()
    is_short = method in (Method.TEMPERATURE, Method.LOGISTIC)
    parameters = {name: float(value) for name, value in state.items()} if is_short else {}
    if as_json:
        values = {"measure": fitted.measure, "before": fitted.before, "after": fitted.after, "rows": fitted.rows}
        print_json({"calibration": out, "method": method, "parameters": parameters, **values})
        return
    result = " and ".join(f"{name} {value:.5g}" for name, value in parameters.items()) or method
    change = f"{fitted.measure} {fitted.before:.5g} -> {fitted.after:.5g} on the same {fitted.rows} rows"
    typer.echo(f"wrote {out}: {result}, {change}")
