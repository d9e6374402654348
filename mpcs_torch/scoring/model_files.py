"""The files of the predictions of one or several classifiers for the same rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mpcs_torch.scoring.columns import check_texts
from mpcs_torch.scoring.predictions import COLUMNS, Predictions
from mpcs_torch.scoring.system_names import names_of


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

    @property
    def columns(self) -> list[str]:
        """All columns that are neither scores nor labels."""
        return list(dict.fromkeys([*self.by, *([] if self.cluster is None else [self.cluster])]))


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
        return Predictions(path, target=target, from_logits=files.from_logits, class_names=names, texts=files.columns)

    names = names_of(files.paths)
    if files.columns and files.paths[0].suffix in COLUMNS:
        check_texts(files.paths[0], files.columns)
    if class_names is None and len(names) > 1:
        naming = next((path for path in files.paths if path.suffix in COLUMNS), files.paths[0])
        class_names = opened(naming, None).class_names
    return {name: opened(path, class_names) for name, path in zip(names, files.paths, strict=True)}
