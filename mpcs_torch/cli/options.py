"""Options and checks that several verbs share."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpcs_torch.cli.console import COMMAND_LINE
from mpcs_torch.errors import did_you_mean, printable
from mpcs_torch.io.packaged import packaged_file, packaged_names

if TYPE_CHECKING:
    from mpcs_torch.functional import OperatingPoint


def _set_quiet(given: bool) -> bool:
    COMMAND_LINE.is_quiet = given
    return given


def _set_json(given: bool) -> bool:
    COMMAND_LINE.wants_json = given
    return given


Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", callback=_set_quiet, help="Print results, warnings and errors, but no progress."),
]


def file_or_name(kind: str) -> Callable[[str], Path]:
    """Return a parser of what names a YAML file: its path, with a dot or a slash, or the name of one of the package."""

    def found(given: str) -> Path:
        shown, path = printable(given), Path(given)
        if "." in given or path.name != given:
            if not path.is_file():
                raise typer.BadParameter(f"{shown}: no such file")
            return path
        names = packaged_names(kind)
        if given in names:
            return packaged_file(kind, given)
        known = did_you_mean(given, names) or f"the names are {', '.join(names)}."
        raise typer.BadParameter(f"{shown}: no such name; {known} A file is written ./{shown} or {shown}.yaml")

    return found


Concern = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE|NAME",
        parser=file_or_name("concerns"),
        help="YAML file that says how much each error matters, or a name, such as traffic-lights.",
    ),
]
By = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Measure each group of rows of this column, too; repeatable."),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Rows that share a value, such as a patient or a speaker, are not independent: intervals go by clusters.",
    ),
]
Intervals = Annotated[
    bool, typer.Option("--intervals/--no-intervals", help="Give values 95 % intervals, and compare models.")
]
DataRoot = Annotated[
    Path,
    typer.Option(envvar="MPCS_DATA_ROOT", help="Folder of the data sets."),
]
Out = Annotated[Path, typer.Option(help="Folder for the runs.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace runs of the same name.")]
AsJson = Annotated[
    bool,
    typer.Option("--json", callback=_set_json, help="Print JSON instead of a table, with null for NaN and infinity."),
]
Html = Annotated[Path | None, typer.Option(dir_okay=False, help="Also write a report with plots to this file.")]
Replace = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]
Logits = Annotated[bool, typer.Option("--logits", help="The scores are logits, not probabilities.")]
Labels = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="File of the labels, for an npy file of predictions.")
]
TargetColumn = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", show_default="target, label or y_true", help="Column of the labels."),
]
Ignore = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Leave out a column that is no class; repeatable.")
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


DEFAULT = ("0.5", "0.01", "0.001")


def points_of(texts: Sequence[str] | None) -> "list[OperatingPoint]":
    """Read P_TARGET or P_TARGET,C_MISS,C_FA from each text, or from the default ones.

    Raises:
        typer.BadParameter: If a text is no operating point.
    """
    numbers = [(text, _numbers(text)) for text in texts or DEFAULT]  # before torch is imported
    return [_point(*each) for each in numbers]


def _numbers(text: str) -> list[float]:
    parts = text.split(",")
    try:
        if len(parts) not in (1, 3):
            raise ValueError("it must be P_TARGET or P_TARGET,C_MISS,C_FA.")
        return [float(part) for part in parts]
    except ValueError as error:
        raise typer.BadParameter(f"{text}: {error}", param_hint="--point") from None


def _point(text: str, numbers: list[float]) -> "OperatingPoint":
    from mpcs_torch.functional import OperatingPoint
    from mpcs_torch.functional.detection.operating_point import check_point

    try:
        return check_point(OperatingPoint(*numbers))
    except ValueError as error:
        raise typer.BadParameter(f"{text}: {error}", param_hint="--point") from None
