"""``mpcs explore``: a page for setting and trying costs."""

import shlex
import warnings
from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli import options
from mpcs_torch.cli.console import note, row_counter
from mpcs_torch.evaluation.files.read_options import ReadOptions


@options.shared(*options.OF_CLASSES, "by", "overwrite", "quiet")
def explore(
    predictions: Annotated[list[Path], options.file_argument("PREDICTIONS...")],
    out: Annotated[Path, typer.Option("--out", "-o", dir_okay=False)],
    concern: Annotated[
        Path | None, options.concern_option("how much each error matters")
    ] = None,
    *,
    reading: ReadOptions,
) -> None:
    """Write a page on which anybody can set the costs of errors, and see the consequences for models.

    It is one file for a browser, which needs no network and sends nothing: the confusions, whose costs are set by a
    click or in words; the price of a referral; dangerous errors, accuracy and coverage with intervals, and mean costs.
    Its result is a concern.yaml for the other commands. Without --concern, every error costs the same.

    Probabilities are used as they are. Decisions by cost need calibrated ones: `mpcs calibrate`.

    Args:
        predictions: Files of predictions as `mpcs score` reads them; one for each model.
        out: The HTML file to write.
    """
    from mpcs_torch.concern import load_concern
    from mpcs_torch.evaluation.cautions import shared, unread_units
    from mpcs_torch.evaluation.classifier_files import open_models
    from mpcs_torch.evaluation.files.matched_rows import hold_rows
    from mpcs_torch.report.explore import write_explorer

    spec = None if concern is None else load_concern(concern)
    opened = open_models(predictions, reading, spec)
    with row_counter("read", predictions, *opened.values()) as advance:
        rows = hold_rows(opened, advance)
        units = unread_units(next(iter(opened.values())))
        for caution in shared(units, "mpcs score --cluster"):
            warnings.warn(caution, stacklevel=1)
    write_explorer(rows, spec, out, reading=shlex.join(reading.in_words()))
    note(f"wrote {out}: open it in a browser")
