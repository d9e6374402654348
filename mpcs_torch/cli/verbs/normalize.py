"""``mpcs normalize``: normalise detection scores by those of a cohort."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from mpcs_torch.cli.console import note, print_reading, row_counter
from mpcs_torch.cli.options import FILE, file_argument, shared
from mpcs_torch.evaluation.files.reading import ReadOptions


@shared("score_columns", "id_column", "label_column", "overwrite", "quiet")
def normalize(
    scores: Annotated[Path, file_argument("SCORES")],
    cohort: Annotated[Path, FILE],
    method: Annotated[Literal["z", "t", "s", "adaptive-s"], typer.Option()],
    out: Annotated[Path, typer.Option(dir_okay=False)],
    reading: ReadOptions,
    top: Annotated[int | None, typer.Option(min=2, show_default="300")] = None,
) -> None:
    """Normalise scores by the mean and the deviation of each enrolment's or test's scores against a cohort.

    Labels and all other columns are kept; they are not needed.

    Args:
        scores: Two names and a score in each row; other columns are kept.
        cohort: Scores of the enrolments and tests against a cohort: a name, one of the cohort and a score in each row,
            or a table with the columns name and score.
        method: z: by the scores of the enrolment; t: of the test; s and adaptive-s: of both.
        out: The file to write: text like SCORES, or parquet.
        top: adaptive-s: the number of highest scores of each name to use.
    """
    if method == "adaptive-s":
        top = top or 300
    elif top is not None:
        raise typer.BadParameter(f"is not for --method {method}", param_hint="--top")

    from mpcs_torch.evaluation.files.changed_trials import normalize_trials

    with row_counter("normalise", [scores]) as advance:
        read, fewer = normalize_trials(scores, out, cohort, method, reading, advance, top=top)
    print_reading(read)
    if fewer:
        names = "1 name has" if fewer == 1 else f"{fewer} names have"
        note(f"{names} fewer than {top} scores in {cohort.name}: all of them were taken, instead of the {top} highest")
    note(f"wrote {out}")
