"""``mpcs convert``: write a file of detection scores in another format."""

from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli.console import note
from mpcs_torch.cli.options import Quiet, Replace, check_out, file_argument, file_option
from mpcs_torch.errors import shown


def convert(
    scores: Annotated[Path, file_argument("SCORES")],
    out: Annotated[Path, typer.Argument(metavar="OUT", dir_okay=False)],
    trials: Annotated[Path | None, file_option()] = None,
    out_trials: Annotated[Path | None, typer.Option(dir_okay=False)] = None,
    overwrite: Replace = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Write scores and labels of a detector in another format.

    csv, parquet and npz keep all columns, as text. HDF5 and Kaldi's text hold the scores of the columns enrollment and
    test; --out-trials is for their labels.

    Args:
        scores: Scores, as `mpcs detect` reads them.
        out: The file to write: csv, parquet, npz, HDF5 (h5), else Kaldi's text.
        trials: List of trials, for HDF5 and text with two names and a score.
        out_trials: The list of trials to write for HDF5 or text: a Key (h5), else text.
    """
    check_out(out, overwrite=overwrite, option="OUT")
    check_out(out_trials, overwrite=overwrite, option="--out-trials")

    from mpcs_torch.cli.progress import row_counter
    from mpcs_torch.evaluation.files.trial_readers import columns_of, read_trial_table
    from mpcs_torch.evaluation.files.trial_writers import write_trials

    with row_counter(f"read {scores.name}", [scores]) as advance:
        columns = columns_of(scores, trials)
        table = read_trial_table(scores, trials, advance, columns=columns, both_kinds=False)
    left_out = write_trials(out, table, out_trials)
    if left_out:
        typer.echo(f"mpcs: warning: {out.name} has no place for {shown(', '.join(left_out))}", err=True)
    note(f"wrote {out}" if out_trials is None else f"wrote {out_trials} and {out}")
