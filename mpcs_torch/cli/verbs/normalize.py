"""``mpcs normalize``: normalise detection scores by those of a cohort."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli.console import note
from mpcs_torch.cli.options import Quiet, Replace, check_out, file_argument, file_option

TOP = 300


Method = StrEnum("Method", {"Z": "z", "T": "t", "S": "s", "ADAPTIVE_S": "adaptive-s"})
"""A way to normalise."""


def normalize(
    scores: Annotated[Path, file_argument("SCORES")],
    cohort: Annotated[Path, file_option()],
    method: Annotated[Method, typer.Option()],
    out: Annotated[Path, typer.Option(dir_okay=False)],
    top: Annotated[int | None, typer.Option(min=2, show_default=str(TOP))] = None,
    overwrite: Replace = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Subtract the mean and divide by the deviation of the scores that each enrolment or test has against a cohort.

    Labels and all other columns are kept, but need not be there.

    Args:
        scores: Two names and a score on each line, or csv or parquet with enrollment, test and score.
        cohort: Scores of the enrolments and tests against a cohort: a name, one of the cohort and a score on each line,
            or csv with name, cohort and score.
        method: z: by the scores of the enrolment; t: of the test; s and adaptive-s: of both.
        out: The file to write, in the format of SCORES.
        top: adaptive-s: how many of the highest scores of each name.
    """
    if method is Method.ADAPTIVE_S:
        top = top or TOP
    elif top is not None:
        raise typer.BadParameter(f"is not for --method {method}", param_hint="--top")
    check_out(out, overwrite=overwrite)

    from mpcs_torch.cli.progress import row_counter
    from mpcs_torch.evaluation.files.normalize import normalize_trials

    with row_counter(f"normalise {scores.name}", [scores]) as advance:
        fewer = normalize_trials(scores, out, cohort, method.value, advance, top=top)
    if fewer:
        names = "1 name has" if fewer == 1 else f"{fewer} names have"
        note(f"{names} fewer than {top} scores in {cohort.name}: all of them were taken, instead of the {top} highest")
    note(f"wrote {out}")
