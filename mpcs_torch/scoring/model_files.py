"""The files of the predictions of one or several classifiers for the same rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mpcs_torch.control_characters import printable
from mpcs_torch.errors import quoted
from mpcs_torch.scoring.chunks import PredictionsError
from mpcs_torch.scoring.column_roles import ColumnOptions
from mpcs_torch.scoring.columns import check_texts, names_in
from mpcs_torch.scoring.predictions import COLUMNS, Predictions


class ModelFiles(NamedTuple):
    """Files of predictions, and what to read of them."""

    paths: Sequence[Path]
    target: Path | None = None
    """The labels of npy files."""
    from_logits: bool = False
    by: Sequence[str] = ()
    """Columns whose groups are measured."""
    cluster: str | None = None
    """The column of rows that are drawn together."""
    options: ColumnOptions = ColumnOptions()
    """The options of the user about other columns of csv and parquet files."""

    @property
    def columns(self) -> list[str]:
        """All columns that are neither scores nor labels."""
        given = [self.cluster, self.options.identifier if len(self.paths) > 1 else None]
        return list(dict.fromkeys([*self.by, *(name for name in given if name is not None)]))


def open_models(files: ModelFiles, class_names: Sequence[str] | None) -> dict[str, Predictions]:
    """Open the file of each model, by its name.

    Args:
        files: The files.
        class_names: The classes in index order. Default: those of the first file that names them.

    Raises:
        PredictionsError: If a file cannot be read, is given twice, lacks a column of groups if it is the first, or has
            other classes.
    """

    def opened(path: Path, names: Sequence[str] | None) -> Predictions:
        has_labels = path.suffix != ".npy" and any(other.suffix == ".npy" for other in files.paths)
        target = None if has_labels else files.target
        return Predictions(
            path,
            target=target,
            from_logits=files.from_logits,
            class_names=names,
            texts=files.columns,
            columns=files.options,
        )

    names = file_names(files.paths)
    _check_options(files)
    if files.columns and files.paths[0].suffix in COLUMNS:
        check_texts(files.paths[0], files.columns)
    if class_names is None and len(names) > 1:
        naming = next((path for path in files.paths if path.suffix in COLUMNS), files.paths[0])
        class_names = opened(naming, None).class_names
    return {name: opened(path, class_names) for name, path in zip(names, files.paths, strict=True)}


def _check_options(files: ModelFiles) -> None:
    """Refuse options that name a column which no file has, and files without the column that matches them."""
    tables = [path for path in files.paths if path.suffix in COLUMNS]
    identifier = files.options.identifier
    if files.options != ColumnOptions() and not tables:
        option = "--target-column" if files.options.target else "--id-column" if identifier else "--ignore"
        raise PredictionsError(files.paths[0], f"has no columns: {option} is for csv and parquet files")
    if identifier is not None:
        for path in files.paths:
            if path not in tables:
                raise PredictionsError(path, f"must be a csv or parquet file with the column {quoted(identifier)}")
            check_texts(path, [identifier])
    found = {name for path in tables for name in names_in(path)} if files.options.ignored else set()
    missing = next((name for name in files.options.ignored if name not in found), None)
    if missing is not None:
        raise PredictionsError(tables[0], f"has no column {quoted(missing)} of --ignore, but {quoted(sorted(found))}")


def file_names(paths: Sequence[Path]) -> list[str]:
    """Return the name of one file; of several files, names without suffix, or whole paths if two have the same name.

    Raises:
        PredictionsError: If a file is given twice.
    """
    for place, path in enumerate(paths):
        if any(path.samefile(other) for other in paths[:place]):
            raise PredictionsError(path, "is given twice, but each model must have a file of its own")
    names = [path.name if len(paths) == 1 else path.stem for path in paths]
    return [printable(name) for name in (names if len(set(names)) == len(names) else map(str, paths))]
