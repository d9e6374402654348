"""Options and checks that several verbs share."""

from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.control_characters import printable

DataRoot = Annotated[
    Path,
    typer.Option(envvar="MPCS_DATA_ROOT", help="Folder of the data sets."),
]
Out = Annotated[Path, typer.Option(help="Folder for the runs.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace runs of the same name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table, with null for NaN and infinity.")]
Html = Annotated[Path | None, typer.Option(dir_okay=False, help="Also write a report with plots to this file.")]
Replace = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]
Logits = Annotated[bool, typer.Option("--logits", help="The scores are logits, not probabilities.")]
Labels = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="File of the labels, for an npy file of predictions.")
]
OverwriteReport = Annotated[bool, typer.Option("--overwrite", help="Replace an existing report.")]


def check_report(html: Path | None, *, overwrite: bool) -> None:
    """Refuse a report whose folder does not exist, or that exists and may not be replaced."""
    if html is not None:
        check_out(html, overwrite=overwrite, option="--html")


def check_out(path: Path, *, overwrite: bool, option: str = "--out") -> None:
    """Refuse a file whose folder does not exist, or that exists and may not be replaced."""
    shown = printable(str(path))
    if not path.parent.is_dir():
        raise typer.BadParameter(f"{shown}: the folder {printable(str(path.parent))} does not exist", param_hint=option)
    if path.exists() and not overwrite:
        raise typer.BadParameter(f"{shown} exists: choose another file or pass --overwrite", param_hint=option)
