"""Command-line options that several verbs (subcommands) share, and checks of options and files."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer
from typer.models import ArgumentInfo, ParameterInfo

from mpcs_torch.cli.console import COMMAND_LINE
from mpcs_torch.error_sentences import WARNINGS
from mpcs_torch.errors import InvalidValueError, Rule, printable
from mpcs_torch.evaluation.files.read_options import Missing, ReadOptions
from mpcs_torch.io.atomic_files import output_path
from mpcs_torch.io.local_paths import local_path
from mpcs_torch.io.packaged import (
    is_packaged_name,
    known_names,
    packaged_file,
    packaged_names,
)


def file_argument(metavar: str, text: str | None = None) -> Any:
    """Return a Typer argument for an existing file, shown as ``metavar``, with the help ``text``."""
    return typer.Argument(metavar=metavar, exists=True, dir_okay=False, help=text)


def concern_option(text: str) -> Any:
    """Return a Typer option for a concern file; ``text`` completes the help "YAML file that says ..."."""
    text = f"YAML file that says {text}, or a name, such as traffic-lights."
    return typer.Option(metavar="FILE|NAME", parser=file_or_name("concerns"), help=text)


def file_or_name(kind: str) -> Callable[[str], Path]:
    """Return a parser of text: a path if it has a dot or a slash, else the name of a file in ``configs/<kind>``."""

    def path_from_text(text: str) -> Path:
        shown = printable(text)
        path = path_of(text)
        if not is_packaged_name(text):
            demand(path.is_file(), "is_there", path=shown, kind="file")
            return path
        known = known_names(kind, text)
        demand(text in packaged_names(kind), "packaged_name", name=shown, known=known)
        return packaged_file(kind, text)

    return path_from_text


def path_of(text: str | Path, argument: str = "the path") -> Path:
    """Return ``text`` as a path by `local_path`; refuse addresses such as ``s3://bucket`` as usage errors."""
    with refused_values():
        return local_path(text, argument)


def _path_parser(info: ParameterInfo) -> Callable[[str | Path], Path]:
    """Return a parser of text: a local path. If the option ``info`` is read (``exists``), it must be there."""

    def path_from_text(text: str | Path) -> Path:  # the default of an option is a path
        path = path_of(text)
        shown = printable(str(path))
        kind = "file" if info.file_okay else "folder"
        demand(path.exists() or not info.exists, "is_there", path=shown, kind=kind)
        is_wrong_folder = path.is_dir() and not info.dir_okay
        is_wrong_file = path.is_file() and not info.file_okay
        is_right_kind = not is_wrong_folder and not is_wrong_file
        demand(is_right_kind, "of_kind", path=shown, kind=kind)
        return path

    return path_from_text


def _takes_paths(annotation: Any) -> bool:
    """Return whether an annotation is a path, or has one inside, such as ``list[Path] | None``."""
    return annotation is Path or any(map(_takes_paths, get_args(annotation)))


def _as_flag(parameter: Parameter) -> Parameter:
    """Return ``parameter``. If it is a bare bool, it becomes a flag without the option ``--no-...``."""
    if parameter.annotation is not bool:
        return parameter
    name = option_name(parameter.name)
    return parameter.replace(annotation=Annotated[bool, typer.Option(name)])


def _with_local_paths(parameter: Parameter) -> Parameter:
    """Return ``parameter``. If it takes paths as text, it gets the parser of `_path_parser`."""
    if not _takes_paths(parameter.annotation):
        return parameter
    annotation, info = get_args(parameter.annotation)
    if info.parser is None:
        info = copy(info)  # several verbs may share it
        info.parser = _path_parser(info)
        is_file = info.file_okay and not info.dir_okay
        info.metavar = info.metavar or ("FILE" if is_file else "FOLDER")
    return parameter.replace(annotation=Annotated[annotation, info])


def _column(
    text: str,
    *names: str,
    kind: Any = str,
    metavar: str = "COLUMN",
    default: str | bool = True,
) -> Any:
    """Return an option of ``names``, by default that of its key, whose help says the text ``default``, if any."""
    option = typer.Option(*names, metavar=metavar, help=text, show_default=default)
    return Annotated[kind | None, option]


def _flag(text: str, *names: str) -> Any:
    return Annotated[bool, typer.Option(*names, help=text)]


_SCORES = "Columns of scores in the order of the classes, with commas between; prob_* is all that begin so."
_LABELS = "File of the labels, matched by --id-column, else row by row; for detectors, a list of trials."
_MISSING = (
    "Rows without a label, a score, a weight or a cost: an error, or left out and counted."
)
_CLUSTER = "Rows that share a value, such as a patient, are not independent: intervals go by clusters."
_CROSSED = (
    "A second column, crossed with --cluster, such as readers who all read all patients."
)
_COMBINE = "By the mean score of a unit; or by its worst row (of each class or a worse one, the highest probability)."
_MODELS = "Models of one file, with commas between: words in names of columns, or values of one column."
_CODES = "; ".join(f"{code}: {warning}" for code, warning in WARNINGS.items())
_MUTE = f"Leave out the warnings of this code; repeatable. {_CODES}."
READING: Mapping[str, Any] = {
    "label_column": _column("Column of the labels.", default="by its name"),
    "score_columns": _column(
        _SCORES,
        "--score-columns",
        "--score-column",
        metavar="COLUMNS",
        default="by their names and values",
    ),
    "decision_column": _column("Measure the predicted labels of this column, not scores."),
    "classes": _column(
        "Names of the classes in their order, with commas between.", metavar="NAMES"
    ),
    "id_column": _column("Match rows, of several files or of labels, by this column."),
    "labels": Annotated[
        Path | None,
        typer.Option("--labels", "--trials", exists=True, dir_okay=False, help=_LABELS),
    ],
    "missing": Annotated[Missing, typer.Option(help=_MISSING)],
    "by": _column(
        "Measure each group of rows of this column, too; repeatable.", kind=list[str]
    ),
    "cluster": _column(_CLUSTER),
    "crossed": _column(_CROSSED),
    "weight": _column(
        "Weights of rows, such as 1 / the probability with which each was sampled."
    ),
    "frequency": _column(
        "How many independent rows each row stands for: whole numbers from 1."
    ),
    "prevalence": _column(
        "Share of each class where the model is used, such as ill=0.01,healthy=0.99.",
        metavar="SHARES",
    ),
    "unit": _column(
        "What is decided about, such as a patient: its rows become one row before anything is measured."
    ),
    "combine": _column(
        _COMBINE, kind=Literal["mean", "worst"], metavar="mean|worst", default="mean"
    ),
    "cost_columns": _column(
        "Columns of what each decision costs in each row, in the order of the classes, with commas between; or by true "
        "class, C x C columns.",
        metavar="COLUMNS",
    ),
    "costs_if_wrong": _flag(
        "--cost-columns have what deciding for each class costs if wrong.",
        "--costs-if-wrong",
    ),
    "models": _column(_MODELS, metavar="NAMES"),
    "from_logits": _flag("The scores are logits, not probabilities.", "--logits"),
    "target_label": _column(
        "The label of targets; others are non-targets.",
        metavar="LABEL",
        default="by its word",
    ),
    "lower_is_target": _flag("Low scores are those of targets.", "--lower-is-target"),
}
"""Options for reading files, by the names of the fields of `ReadOptions`."""
OF_ALL = ("label_column", "score_columns", "id_column", "labels", "missing")
OF_CLASSES = (*OF_ALL, "classes", "from_logits")
"""The names of the options of verbs that read scores of classes."""
OF_TRIALS = (*OF_ALL, "target_label", "lower_is_target")
"""The names of the options of verbs that read detection scores."""
OF_COSTS = ("cost_columns", "costs_if_wrong")
"""The names of the options of verbs that take costs of rows."""
OF_UNITS = ("unit", "combine")
"""The names of the options of verbs that can combine rows, such as those of a patient."""
Code = StrEnum("Code", {code: code for code in WARNINGS})  # type: ignore[misc]  # mypy asks for a literal
"""The codes of warnings, which docs/how-to/misleading-evaluations.md explains."""
PRINTING: Mapping[str, Any] = {
    "everything": _flag(
        "Show all metrics by family, and tables of more than 20 classes.", "--all"
    ),
    "overwrite": _flag("Replace existing files or runs.", "--overwrite"),
    "mute": Annotated[list[Code] | None, typer.Option(help=_MUTE)],
    "json": _flag(
        "Print JSON instead of a table, with null for NaN and infinity.", "--json"
    ),
    "quiet": _flag("Print results, warnings and errors, no progress.", "--quiet", "-q"),
}
"""Options for printing and for replacing files, by the names of the fields of `COMMAND_LINE`."""
FLAGS = (
    "costs_if_wrong",
    "from_logits",
    "lower_is_target",
    "everything",
    "overwrite",
    "json",
    "quiet",
)
DEFAULTS: Mapping[str, Any] = {"missing": "error", **dict.fromkeys(FLAGS, False)}

FILE = typer.Option(exists=True, dir_okay=False)
DataRoot = Annotated[
    Path, typer.Option(envvar="MPCS_DATA_ROOT", help="Folder of the data sets.")
]
Html = Annotated[
    Path | None,
    typer.Option(dir_okay=False, help="Also write a report with plots to this file."),
]
Intervals = Annotated[
    bool,
    typer.Option(
        "--intervals/--no-intervals", help="Give values intervals, and compare models."
    ),
]
Out = Annotated[Path, typer.Option(help="Folder for the runs.")]
TrustCode = Annotated[
    bool,
    typer.Option("--trust-code", help="Run the code that the config.yaml of a run names."),
]
_VALIDATION = "Predictions and labels of samples that the model was not trained on, as `mpcs score` reads them."
Validation = Annotated[Path, file_argument("VALIDATION", _VALIDATION)]


def shared(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options ``names`` to a verb, and checks all given paths before the verb runs.

    Each path must be local: ``~`` is expanded, and an address such as ``s3://bucket`` is refused.
    The verb gets the options in `READING` as the argument ``reading``. Those in `PRINTING` are stored in
    `COMMAND_LINE`. A file option without Typer's setting ``exists`` is an output. Its file must not exist, unless
    --overwrite is given or the option is ``writable``. It must not be an input, either.
    """

    def decorated(verb: Callable[..., None]) -> Callable[..., None]:
        parameters = list[Parameter]()
        for parameter in signature(verb).parameters.values():
            if parameter.name == "reading":  # stands for the options that it has
                parameters += [_added(name) for name in names if name in READING]
            else:
                parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
        printing = [name for name in PRINTING if name in names]
        parameters += [_added(name) for name in printing]
        parameters = [_with_local_paths(_as_flag(parameter)) for parameter in parameters]
        infos = dict[str, Any]()  # what Typer knows of each option, by its name
        for parameter in parameters:
            for info in getattr(parameter.annotation, "__metadata__", ()):
                infos[parameter.name] = info

        @wraps(verb)
        def called(**values: Any) -> None:
            for name in printing:
                value = values.pop(name)
                if value:
                    setattr(COMMAND_LINE, name, value)
            _check_files(values, infos, has_overwrite="overwrite" in names)
            read = {name: values.pop(name) for name in READING if name in names}
            if read:
                values["reading"] = _read_options(read)
            verb(**values)

        # Typer reads the options from these, not from the function that is wrapped.
        vars(called)["__signature__"] = Signature(parameters)
        called.__annotations__ = {
            parameter.name: parameter.annotation for parameter in parameters
        }
        return called

    return decorated


def _added(name: str) -> Parameter:
    """Return the parameter of an option in `READING` or `PRINTING`."""
    annotation = READING[name] if name in READING else PRINTING[name]
    default = DEFAULTS.get(name)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


LISTS = ("score_columns", "classes", "cost_columns", "models", "prevalence")
"""The options whose text is a list with commas between; an entry with a comma is in quotes, as in a csv file."""


def _read_options(texts: Mapping[str, Any]) -> ReadOptions:
    """Return the options for reading files from their values on the command line; those not given are None."""
    read = {name: value for name, value in texts.items() if value is not None}
    for name in LISTS:
        if name in read:
            read[name] = _entries(read[name])
    if "prevalence" in read:
        form = "a share for each class, such as ill=0.01,healthy=0.99"
        read["prevalence"] = named_numbers(read["prevalence"], "--prevalence", form)
    needs = {"combine": "unit", "crossed": "cluster", "costs_if_wrong": "cost_columns"}
    for name, needed in needs.items():
        is_met = needed in read or not read.get(name)
        demand(is_met, "needs_too", option_name(name), other=option_name(needed))
    read["by"] = tuple(read.get("by", ()))
    return ReadOptions(**read)


def _entries(text: str) -> tuple[str, ...]:
    """Return the entries of one of the `LISTS`; an empty text has none."""
    for entries in csv.reader([text]):
        return tuple(entry.strip() for entry in entries)
    return ()


def named_numbers(entries: Sequence[str], option: str, form: str) -> dict[str, float]:
    """Return the numbers in ``entries`` of the form NAME=NUMBER, by name; refuse other entries and repeated names.

    The error message is about ``option``, and describes valid entries by ``form``.
    """
    numbers = dict[str, str]()
    for entry in entries:
        name, _, number = entry.rpartition("=")
        numbers[name.strip()] = number
    is_repeated = len(numbers) < len(entries)
    with refused_values(option=option):
        if is_repeated or "" in numbers:  # an entry without = has no name
            text = repr(", ".join(entries))
            raise InvalidValueError("named_numbers", form=form, text=text)
        return {name: float(number) for name, number in numbers.items()}


def given_options(reading: ReadOptions) -> dict[str, object]:
    """Return the fields of ``reading`` that differ from their defaults, by name."""
    return {
        name: value
        for name, value in reading._asdict().items()
        if value != ReadOptions._field_defaults[name]
    }


def option_name(name: str) -> str:
    """Return the command-line option for a field ``name``, such as ``--id-column`` for ``id_column``."""
    if name == "from_logits":
        return "--logits"
    return f"--{name.replace('_', '-')}"


def _check_files(
    values: Mapping[str, Any], infos: Mapping[str, Any], *, has_overwrite: bool
) -> None:
    """Check each output by `check_out`; refuse one that is read, or that another option writes."""
    files = {
        name: values[name]
        for name, info in infos.items()
        if not info.dir_okay and values.get(name)
    }
    read = list[Path]()
    for name, value in files.items():
        if not infos[name].exists:
            continue
        if isinstance(value, list):
            read += value
        else:
            read.append(value)
    written = list[Path]()
    for name, path in files.items():
        info = infos[name]
        if info.exists:
            continue
        option = str(info.metavar) if isinstance(info, ArgumentInfo) else option_name(name)
        check_out(path, option, may_exist=info.writable, has_overwrite=has_overwrite)
        is_read = path.exists() and any(path.samefile(other) for other in read)
        shown = printable(str(path))
        demand(not is_read, "no_input", option, path=shown)
        is_new = path.resolve() not in written
        demand(is_new, "no_other_output", option, path=shown)
        written.append(path.resolve())


def check_out(
    path: Path,
    option: str = "--out",
    *,
    may_exist: bool = False,
    has_overwrite: bool = True,
) -> None:
    """Raise an error if ``path`` has no folder, or if it exists, and neither --overwrite nor ``may_exist`` is set.

    ``has_overwrite`` tells whether the verb has the option --overwrite, which the message then names.
    """
    shown, folder = printable(str(path)), printable(str(path.parent))
    demand(path.parent.is_dir(), "folder_is_there", option, path=shown, folder=folder)
    with refused_values(option=option):
        output_path(path)
    is_free = COMMAND_LINE.overwrite or may_exist or not path.exists()
    or_else = " or pass --overwrite" if has_overwrite else ""
    demand(is_free, "new_file", option, path=shown, or_else=or_else)


def demand(is_kept: object, code: str, option: str | None = None, **fields: Any) -> None:
    """Raise a usage error of ``option`` about the rule with ``code`` and ``fields`` unless ``is_kept`` is true."""
    if not is_kept:
        raise typer.BadParameter(str(Rule(code, **fields)), param_hint=option)


def refuse_given(options: Mapping[str, object], code: str, **fields: Any) -> None:
    """Raise an error, as `demand` does, for the first of ``options`` that is neither None nor False."""
    for name, value in options.items():
        demand(value is None or value is False, code, option_name(name), **fields)


@contextmanager
def refused_values(about: str = "", *, option: str | None = None) -> Iterator[None]:
    """Turn a ValueError in the with block into a usage error of ``option``, with ``about`` before the message."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(f"{about}{error}", param_hint=option) from None
