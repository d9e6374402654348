"""``mpcs convert``: write a file of detection scores in another format."""

from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli.console import note, print_reading, row_counter
from mpcs_torch.cli.options import OF_TRIALS, file_argument, shared
from mpcs_torch.errors import shown
from mpcs_torch.evaluation.files.reading import ReadOptions


@shared(*OF_TRIALS, "overwrite", "quiet", in_place=True)
def convert(
    scores: Annotated[Path, file_argument("SCORES")],
    out: Annotated[Path, typer.Argument(metavar="OUT", dir_okay=False)],
    reading: ReadOptions,
    out_trials: Annotated[Path | None, typer.Option(dir_okay=False)] = None,
) -> None:
    """Write scores and labels of a detector in another format.

    csv, parquet and npz keep all columns, as text. Kaldi's text has the scores of the columns enrollment and test, and
    --out-trials has their labels.

    Args:
        scores: Scores, as `mpcs detect` reads them.
        out: The file to write: csv, parquet, npz, else Kaldi's text.
        out_trials: The list of trials to write for text.
    """
    from mpcs_torch.evaluation.files.trials import read_trials
    from mpcs_torch.evaluation.files.write import write_trials

    with row_counter("read", [scores]) as advance:
        table = read_trials(scores, reading, advance, all_columns=True, both_kinds=False)
    print_reading(table.read)
    left_out = write_trials(out, table, out_trials)
    if left_out:
        typer.echo(f"mpcs: warning: {out.name} has no place for {shown(', '.join(left_out))}", err=True)
    note(f"wrote {out}" if out_trials is None else f"wrote {out_trials} and {out}")
