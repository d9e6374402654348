"""``mpcs calibrate``: fit a calibration to a file of scores, and apply it to others."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from mpcs_torch.cli import options
from mpcs_torch.cli.app import group_of_commands
from mpcs_torch.cli.console import note, print_reading, print_result, row_counter
from mpcs_torch.cli.options import OF_ALL, OF_CLASSES, OF_TRIALS
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.tables import Table

calibrate = group_of_commands(
    "Calibrate probabilities and detection scores, and estimate class frequencies."
)


@calibrate.command()
@options.shared(*dict.fromkeys((*OF_CLASSES, *OF_TRIALS)), "overwrite", "json", "quiet")
def fit(
    dev: Annotated[Path, options.file_argument("DEV")],
    method: Annotated[Literal["temperature", "vector", "logistic", "pav"], typer.Option()],
    out: Annotated[Path, typer.Option(dir_okay=False)],
    reading: ReadOptions,
    p_target: Annotated[float | None, typer.Option(show_default="0.5")] = None,
) -> None:
    """Fit a calibration to scores with labels.

    Args:
        dev: Scores and labels of samples that the model was not trained on, as `mpcs score` or `mpcs detect` read them.
        method: temperature or vector: predictions of a classifier; logistic or pav: detection scores.
        out: The file of the calibration to write.
        p_target: logistic: the prior of targets, by which errors are weighted.
    """
    _refuse_others(reading, method)
    if method != "logistic":
        options.refuse_given({"p_target": p_target}, "of_method", method=method)
    is_prior = p_target is None or 0 < p_target < 1
    options.demand(is_prior, "prior", "--p-target", number=str(p_target))

    from mpcs_torch.evaluation.calibration_files import (
        fit_to_predictions,
        fit_to_trials,
        save_calibration,
    )
    from mpcs_torch.evaluation.files.predictions import Predictions
    from mpcs_torch.evaluation.files.trials import read_trials

    if method == "logistic" or method == "pav":
        with row_counter("read", [dev]) as advance:
            table = read_trials(dev, reading, advance)
            print_reading(table.read)
            prior = 0.5 if p_target is None else p_target
            low = reading.lower_is_target
            fitted = fit_to_trials(dev, table.trials, method, prior, lower_is_target=low)
    else:
        predictions = Predictions(dev, reading)
        with row_counter("read", [dev], predictions) as advance:
            fitted = fit_to_predictions(predictions, method, advance)
    save_calibration(fitted.saved, out)
    parameters = dict[str, float]()
    if method in ("temperature", "logistic"):  # others have too many to print
        for name, value in fitted.saved.module.state_dict().items():
            parameters[name] = float(value)
    values = {
        "measure": fitted.measure,
        "before": fitted.before,
        "after": fitted.after,
        "rows": fitted.rows,
    }
    texts = [f"{name} {value:.5g}" for name, value in parameters.items()]
    result = " and ".join(texts) or method
    change = f"{fitted.measure} {fitted.before:.5g} -> {fitted.after:.5g} on the same {fitted.rows} rows"
    plain = {"calibration": out, "method": method, "parameters": parameters, **values}
    print_result(plain, f"wrote {out}: {result}, {change}")


def _refuse_others(reading: ReadOptions, method: str) -> None:
    """If ``method`` calibrates detection scores, refuse options for classifiers; otherwise, those for detectors."""
    is_of_trials = method in ("logistic", "pav")
    others = set(OF_CLASSES if is_of_trials else OF_TRIALS) - set(OF_ALL)
    refused = {
        name: value
        for name, value in options.given_options(reading).items()
        if name in others
    }
    options.refuse_given(refused, "of_method", method=method)


@calibrate.command()
@options.shared(*OF_ALL, "classes", "target_label", "overwrite", "quiet")
def apply(
    calibration: Annotated[Path, options.file_argument("CAL")],
    scores: Annotated[Path, options.file_argument("SCORES")],
    out: Annotated[Path, typer.Option(dir_okay=False)],
    reading: ReadOptions,
) -> None:
    """Copy a file with calibrated scores; all other columns stay as they are.

    Logits stay logits, and probabilities stay probabilities. Detection scores become natural-log likelihood ratios, for
    `mpcs detect --llr`.

    Args:
        calibration: File of `mpcs calibrate fit`.
        scores: Scores of the same kind as those of the fit; labels are not needed.
        out: The file to write: text like SCORES, or parquet; npz or pt of arrays.
    """
    from mpcs_torch.evaluation.calibration_files import (
        calibrate_predictions,
        load_calibration,
        open_to_calibrate,
    )
    from mpcs_torch.evaluation.files.changed_trials import rewrite_scores

    saved = load_calibration(calibration)
    _refuse_others(reading, saved.method)
    if saved.class_names:
        predictions = open_to_calibrate(saved, scores, reading)
        with row_counter("calibrate", [scores], predictions) as advance:
            calibrate_predictions(saved, predictions, out, advance)
    else:
        with row_counter("calibrate", [scores]) as advance:
            reading = reading._replace(lower_is_target=saved.lower_is_target)
            print_reading(rewrite_scores(scores, out, saved.module, reading, advance))
    note(f"wrote {out}")


@calibrate.command()
@options.shared(*OF_CLASSES, "cluster", "json", "quiet")
def priors(
    validation: options.Validation,
    unlabelled: Annotated[Path, options.file_argument("UNLABELLED")],
    reading: ReadOptions,
    concern: Annotated[
        Path | None, options.concern_option("the order and the groups of the classes")
    ] = None,
) -> None:
    """Estimate how frequent each class is among predictions without labels.

    The estimate is valid if only class frequencies have changed, which is tested. Save the output of --json in a file
    for `mpcs decide fit --priors`.

    Args:
        unlabelled: Predictions of the deployment.
    """
    from mpcs_torch.calibration.priors import class_shares
    from mpcs_torch.concern import load_concern
    from mpcs_torch.evaluation.calibration_files import (
        estimate_file_priors,
        open_unlabelled,
        plain_priors,
    )
    from mpcs_torch.evaluation.files.predictions import Predictions
    from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT, LEVEL

    class_names, class_groups = None, {}
    if concern is not None:
        spec = load_concern(concern)
        class_names, class_groups = spec.classes, dict(spec.class_groups)
    known = Predictions(validation, reading, class_names=class_names)
    other = open_unlabelled(known, unlabelled)
    with row_counter("read", [validation, unlabelled], known, other) as advance:
        estimate = estimate_file_priors(known, other, class_groups, advance)
    plain = plain_priors(estimate, known.class_names)
    rows = list[list[str]]()
    alone = class_shares(estimate.priors, estimate.low, estimate.high)
    together = class_shares(estimate.priors, estimate.joint_low, estimate.joint_high)
    in_validation = estimate.validation_priors.tolist()
    for place, name in enumerate(known.class_names):
        intervals = [str(alone[place]), together[place].interval]
        rows.append([name, f"{in_validation[place]:.3g}", *intervals])
    for name, share in estimate.class_groups.items():
        rows.append([name, "", str(share), ""])
    conclusion = f"No change beyond class frequencies is seen (p = {estimate.p_value:.2g})."
    if plain["problem"]:
        conclusion = f"DO NOT USE THESE PRIORS: {plain['problem']}."
    plain["is_label_shift"] = estimate.p_value >= LEVEL
    header = [
        "class",
        "validation",
        f"unlabelled ({CONFIDENCE_TEXT})",
        f"all together ({CONFIDENCE_TEXT})",
    ]
    print_result(plain, Table(header, rows), conclusion)
