"""Options and checks that several verbs share."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpcs_torch.cli.console import COMMAND_LINE
from mpcs_torch.errors import did_you_mean, printable
from mpcs_torch.io.packaged import packaged_file, packaged_names

if TYPE_CHECKING:
    from mpcs_torch.evaluation.files.predictions import ReadOptions
    from mpcs_torch.functional import OperatingPoint
    from mpcs_torch.learning.decision_rule import CalibrationMethod


def _set_quiet(value: bool) -> bool:
    COMMAND_LINE.is_quiet = value
    return value


def _set_json(value: bool) -> bool:
    COMMAND_LINE.wants_json = value
    return value


def _set_muted(codes: list["Code"] | None) -> list["Code"] | None:
    COMMAND_LINE.muted = codes or ()
    return codes


def file_argument(metavar: str, text: str | None = None) -> Any:
    """Return an argument that names a file that exists."""
    return typer.Argument(metavar=metavar, exists=True, dir_okay=False, help=text)


def file_option(text: str | None = None) -> Any:
    """Return an option that names a file that exists."""
    return typer.Option(exists=True, dir_okay=False, help=text)


def concern_option(text: str) -> Any:
    """Return an option that names a concern."""
    text = f"YAML file that says {text}, or a name, such as traffic-lights."
    return typer.Option(metavar="FILE|NAME", parser=file_or_name("concerns"), help=text)


def file_or_name(kind: str) -> Callable[[str], Path]:
    """Return a parser of what names a YAML file: its path, with a dot or a slash, or the name of one of the package."""

    def file_of(text: str) -> Path:
        shown, path = printable(text), Path(text)
        if "." in text or path.name != text:
            if not path.is_file():
                raise typer.BadParameter(f"{shown}: no such file")
            return path
        names = packaged_names(kind)
        if text in names:
            return packaged_file(kind, text)
        known = did_you_mean(text, names) or f"the names are {', '.join(names)}."
        raise typer.BadParameter(f"{shown}: no such name; {known} A file is written ./{shown} or {shown}.yaml")

    return file_of


Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", callback=_set_quiet, help="Print results, warnings and errors, but no progress."),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", callback=_set_json, help="Print JSON instead of a table, with null for NaN and infinity."),
]
Concern = Annotated[Path | None, concern_option("how much each error matters")]
Code = StrEnum("Code", {"E1": "E1", "E2": "E2", "E3": "E3", "E4": "E4", "E5": "E5"})
"""Of warnings: docs/how-to/misleading-evaluations.md."""
Mute = Annotated[
    list[Code] | None, typer.Option(callback=_set_muted, help="Leave out the warnings of this code; repeatable.")
]
By = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Measure each group of rows of this column, too; repeatable.")
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
DataRoot = Annotated[Path, typer.Option(envvar="MPCS_DATA_ROOT", help="Folder of the data sets.")]
Out = Annotated[Path, typer.Option(help="Folder for the runs.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace runs of the same name.")]
Html = Annotated[Path | None, typer.Option(dir_okay=False, help="Also write a report with plots to this file.")]
Replace = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]
Logits = Annotated[bool, typer.Option("--logits", help="The scores are logits, not probabilities.")]
Calibration = StrEnum("Calibration", ["TEMPERATURE", "VECTOR", "NONE"])
"""A way to calibrate before deciding."""


def calibration_method(calibration: Calibration) -> "CalibrationMethod":
    """Return the name of a way to calibrate for `DecisionRule`."""
    if calibration is Calibration.NONE:
        return None
    return "vector" if calibration is Calibration.VECTOR else "temperature"


Validation = Annotated[
    Path,
    file_argument(
        "VALIDATION", "Predictions and labels of samples that the model was not trained on, as `mpcs score` reads them."
    ),
]
Labels = Annotated[Path | None, file_option("File of the labels, for an npy file of predictions.")]
TargetColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", show_default="target, label or y_true", help="Column of the labels.")
]
Ignore = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Leave out a column that is no class; repeatable.")
]
IdColumn = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Match the rows of several files by this column, not by their order."),
]
OverwriteReport = Annotated[bool, typer.Option("--overwrite", help="Replace an existing report.")]


def read_options(
    target: Path | None,
    target_column: str | None,
    ignore: Sequence[str] | None,
    *,
    logits: bool = False,
    id_column: str | None = None,
) -> "ReadOptions":
    """Return how to read files of predictions, by the options of a verb."""
    from mpcs_torch.evaluation.files.columns import ColumnOptions
    from mpcs_torch.evaluation.files.predictions import ReadOptions

    return ReadOptions(target, logits, ColumnOptions(target_column, tuple(ignore or ()), id_column))


def check_out(path: Path | None, *, overwrite: bool, option: str = "--out", read: Sequence[Path] = ()) -> None:
    """Refuse a file whose folder does not exist, or that exists and may not be replaced, or that is to be read."""
    if path is None:
        return
    shown = printable(str(path))
    if not path.parent.is_dir():
        raise typer.BadParameter(f"{shown}: the folder {printable(str(path.parent))} does not exist", param_hint=option)
    if path.exists() and not overwrite:
        raise typer.BadParameter(f"{shown} exists: choose another file or pass --overwrite", param_hint=option)
    if path.exists() and any(path.samefile(other) for other in read):
        raise typer.BadParameter(f"{shown} is a file to read: choose another", param_hint=option)


def refuse_given(options: Mapping[str, object], problem: str) -> None:
    """Refuse the first option, by name, that was given: one that is neither None nor False."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise typer.BadParameter(problem, param_hint=name)


@contextmanager
def refused_values(about: str = "", *, option: str | None = None) -> Iterator[None]:
    """Turn a ValueError into the message that an option or argument is wrong, which begins with what it is about."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(f"{about}{error}", param_hint=option) from None


DEFAULT = ("0.5", "0.01", "0.001")


def points_of(texts: Sequence[str] | None) -> "list[OperatingPoint]":
    """Read P_TARGET or P_TARGET,C_MISS,C_FA from each text, or from the default ones; refuse any other text."""
    texts, numbers, points = texts or DEFAULT, [], []
    for text in texts:  # before torch is imported
        with refused_values(f"{text}: ", option="--point"):
            if text.count(",") not in (0, 2):
                raise ValueError("it must be P_TARGET or P_TARGET,C_MISS,C_FA.")
            numbers.append([float(part) for part in text.split(",")])

    from mpcs_torch.functional import OperatingPoint
    from mpcs_torch.functional.detection.operating_point import check_point

    for text, parts in zip(texts, numbers, strict=True):
        with refused_values(f"{text}: ", option="--point"):
            points.append(check_point(OperatingPoint(*parts)))
    return points
