"""Tell the columns of a table of predictions apart: scores of classes, labels, and what is neither."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from mpcs_torch.errors import quoted, shown
from mpcs_torch.scoring.chunks import PredictionsError, is_number

LABEL, SOFT = "target", "target_"
LABELS = (LABEL, "label", "labels", "y_true", "true_label", "ground_truth", "truth", "y", "class")
"""Names of a column of labels, of which a table has one."""
IDS = (
    *("id", "ids", "index", "idx", "row_id", "sample_id", "image_id", "uid", "uuid"),
    *("filename", "file", "path", "image"),
)
DECIDED = ("pred", "preds", "prediction", "predictions", "predicted", "predicted_label", "predicted_class", "y_pred")
"""Names of a column of predicted classes."""
PEEKED_ROWS, PEEKED_VALUES = 100, 10**5
"""The most values of a table that are read to see what its columns hold."""

Kind = Literal["text", "whole", "number"]
"""No value is a number; all are whole numbers; anything else."""


class ColumnOptions(NamedTuple):
    """The options of the user about columns."""

    target: str | None = None
    """The column of labels."""
    ignored: Sequence[str] = ()
    identifier: str | None = None
    """The column by which rows of several files are matched."""


class Roles(NamedTuple):
    """The roles of the columns of a table."""

    scores: list[str]
    """Columns that may be classes, in the order of the table."""
    label: str | None
    soft: list[str]
    """Columns of soft labels."""
    notes: list[str]
    """Sentences on columns that are not read."""


def peeked_rows(columns: int) -> int:
    """Return how many rows are read to see what that many columns hold."""
    return min(PEEKED_ROWS, max(1, PEEKED_VALUES // columns))


def find_roles(
    path: Path,
    names: Sequence[str],
    peek: Callable[[], Mapping[str, Sequence[Any]]],
    *,
    class_names: Sequence[str] | None,
    options: ColumnOptions,
) -> Roles:
    """Return what the columns are.

    Args:
        path: The file, for errors.
        names: The columns, without those of groups.
        peek: Reads the first values of the columns; not called if the names say everything.
        class_names: The names of the classes, which are always scores.
        options: What the user says of the columns.

    Raises:
        PredictionsError: If the column of labels is missing, or several may be it.
    """
    if options.target is not None and options.target not in names:
        raise PredictionsError(path, f"has no column {quoted(options.target)} of --target-column, but {quoted(names)}")
    out = {*options.ignored, *([] if options.identifier is None else [options.identifier])}
    left = [name for name in names if name not in out]
    soft = [] if options.target is not None else [name for name in left if name.startswith(SOFT)]
    left = [name for name in left if name not in soft]
    label = LABEL if options.target is None and LABEL in left and LABEL not in (class_names or ()) else options.target
    others = [name for name in left if name != label]
    if _are_classes(others, class_names):
        return Roles(others, label, soft, [])
    held = peek()
    kinds = {name: kind_of(held[name]) for name in others}
    if label is None and not soft:
        label = _label_among(path, kinds, class_names)
        others = [name for name in others if name != label]
    why = {
        name: reason
        for name in others
        if name not in (class_names or ()) and (reason := _other_use(name, kinds[name])) is not None
    }
    told = ", ".join(f"{quoted(shown(name))} ({reason})" for name, reason in list(why.items())[:10])
    more = f" and {len(why) - 10} more" if len(why) > 10 else ""
    notes = [f"Columns that are no scores of classes: {told}{more}."] if why else []
    return Roles([name for name in others if name not in why], label, soft, notes)


def kind_of(values: Sequence[Any]) -> Kind:
    """Return what the values of a column are; empty ones say nothing."""
    held = [value for value in values if value is not None and str(value).strip()]
    if held and not any(is_number(value) for value in held):
        return "text"
    is_whole = held and all(is_number(value) and float(value) % 1 == 0 for value in held)
    return "whole" if is_whole else "number"


def _are_classes(names: Sequence[str], class_names: Sequence[str] | None) -> bool:
    found = set(names)
    return found in (set(class_names or ()), {str(label) for label in range(len(names))}) and bool(found)


def _label_among(path: Path, kinds: Mapping[str, Kind], class_names: Sequence[str] | None) -> str | None:
    """Return the only column with a name of labels that holds no scores."""
    named = [
        name
        for name, kind in kinds.items()
        if name.lower() in LABELS and kind != "number" and name not in (class_names or ())
    ]
    if len(named) > 1:
        problem = f"has several columns that may be the labels, {quoted(named)}: name it with --target-column"
        raise PredictionsError(path, problem)
    return named[0] if named else None


def _other_use(name: str, kind: Kind) -> str | None:
    """Return what a column holds that cannot be scores; None if it may be a class."""
    if kind == "number":
        return None
    if not name or name.startswith(("Unnamed:", "__index_level_")):  # as pandas calls its index
        return "an index"
    if name.lower() in IDS:
        return "ids; --id-column matches files by them"
    if name.lower() in DECIDED:
        return "decisions, which are taken from the scores instead"
    return "text" if kind == "text" else None
