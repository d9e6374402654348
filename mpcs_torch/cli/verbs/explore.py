"""``mpcs explore``: a page on which costs are set and tried."""

import shlex
import warnings
from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli import options
from mpcs_torch.cli.console import note
from mpcs_torch.cli.failures import told_warnings
from mpcs_torch.cli.options import Calibration, Concern, Ignore, Labels, Logits, OverwriteReport, Quiet, TargetColumn


def explore(
    predictions: Annotated[list[Path], options.file_argument("PREDICTIONS...")],
    out: Annotated[Path, typer.Option("--out", "-o", dir_okay=False)],
    concern: Concern = None,
    by: Annotated[list[str] | None, typer.Option(metavar="COLUMN")] = None,
    id_column: options.IdColumn = None,
    calibration: Calibration = Calibration.TEMPERATURE,
    logits: Logits = False,
    target: Labels = None,
    target_column: TargetColumn = None,
    ignore: Ignore = None,
    overwrite: OverwriteReport = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Write a page on which anybody can set what errors cost, and see what follows for models.

    It is one file for a browser, which needs no network and sends nothing: the confusions, whose costs are set by a
    click or in words; the price of a referral, class frequencies and limits; dangerous errors, accuracy, coverage and
    cost with intervals. Its result is a concern.yaml for the other commands. Without --concern, every error costs the
    same.

    Probabilities are calibrated first, as by `mpcs decide fit`: decisions by cost need that.

    Args:
        predictions: Files of predictions as `mpcs score` reads them; one for each model.
        out: The HTML file to write.
        by: Show each group of rows of this column, too; repeatable.
        calibration: How to calibrate first; those of each fifth of the rows by the others.
    """
    options.check_out(out, overwrite=overwrite, read=predictions)

    from mpcs_torch.cli.progress import row_counter
    from mpcs_torch.concern import load_concern
    from mpcs_torch.evaluation.cautions import repeating
    from mpcs_torch.evaluation.classifier_files import ModelFiles, open_models
    from mpcs_torch.evaluation.held_rows import hold_rows
    from mpcs_torch.report.explore import write_explorer

    spec = None if concern is None else load_concern(concern)
    reading = options.read_options(target, target_column, ignore, logits=logits, id_column=id_column)
    files = ModelFiles(predictions, reading, by or ())
    opened = open_models(files, spec)
    with row_counter("read " + ", ".join(path.name for path in predictions), predictions) as advance:
        rows = hold_rows(files, opened, advance)
    for file in opened.values():
        note(*file.notes())
    with told_warnings():
        for caution in repeating(next(iter(opened.values())).unread()):
            warnings.warn(caution, stacklevel=1)
    method = options.calibration_method(calibration)
    given = {"--target-column": [target_column], "--ignore": ignore or ()}
    words = [word for name, values in given.items() for value in values if value for word in (name, value)]
    write_explorer(
        rows if method is None else rows.calibrated(method),
        spec,
        out,
        calibration=method,
        reading=shlex.join([*words, *(["--logits"] if logits else [])]),
    )
    note(f"wrote {out}: open it in a browser")
