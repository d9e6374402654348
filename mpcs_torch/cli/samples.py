"""Read labelled samples for ``mpcs concern suggest``: a data set, the user's own loader, or an npz file."""

import sys
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import typer
from numpy.lib import format as npy
from numpy.typing import NDArray
from pydantic import ValidationError
from torch import Tensor

from mpcs_torch.concern import ConcernError, ConcernSpec
from mpcs_torch.concern.spec import MAX_MATRIX_CLASSES
from mpcs_torch.errors import shown
from mpcs_torch.io.untrusted_files import FileRuleError, check_member, check_regular
from mpcs_torch.trainer.config.sections import DataConfig
from mpcs_torch.trainer.data import DATASETS, DataError


class Samples(NamedTuple):
    """Points with the class of each."""

    points: Tensor
    """(N, D), float32, finite."""
    labels: Tensor
    """(N,), int64 in [0, C)."""
    class_names: tuple[str, ...]
    """C different names."""


def load_samples(given: str, data_root: Path) -> Samples:
    """Load the training samples of a data set or of a loader, or the ``inputs`` of an npz file.

    Raises:
        BadParameter: If there is no such data set or loader.
        DataError: If the samples break a rule, or are missing.
    """
    if given.endswith(".npz"):
        return read_samples(Path(given), "inputs")
    name, _, ucr_set = given.partition("/")
    if ":" in given:
        sys.path.insert(0, str(Path.cwd()))  # where the user's own loader is likely to be
        section = {"path": given}
    elif name in DATASETS and (name == "ucr") == bool(ucr_set):
        section = {"name": name, **({"set": ucr_set} if ucr_set else {})}
    else:
        sets = f"{', '.join(DATASETS)}, with UCR sets as ucr/NAME"
        raise typer.BadParameter(f"{given}: must be one of {sets}; package.module:function; or an npz file")
    try:
        data = DataConfig.model_validate(section).load(data_root)
    except ValidationError as error:
        found = ("".join(f"{key}: " for key in detail["loc"]) + detail["msg"] for detail in error.errors())
        raise typer.BadParameter(f"{given}: {'; '.join(found)}") from None
    return _checked(given, "inputs", data.train.inputs.numpy(), data.train.labels.numpy(), data.class_names)


def read_samples(path: Path, key: str) -> Samples:
    """Read points under a key, ``labels`` and, if there are any, ``classes`` from an npz file, without pickle.

    Raises:
        DataError: If the file is not npz, or an array is missing or breaks a rule.
        FileNotFoundError: If there is no such file.
    """
    with _archive(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        for needed in (key, "labels"):
            if needed not in names:
                raise DataError(f"{path}: must have the array {needed}, but has {shown(', '.join(names)) or 'none'}")
        points, labels = _array(path, archive, key), _array(path, archive, "labels")
        classes = _array(path, archive, "classes") if "classes" in names else None
    if classes is not None and (classes.ndim != 1 or classes.dtype.kind != "U"):
        raise DataError(
            f"{path}: classes must be a list of names, but has the shape {classes.shape} and dtype {classes.dtype}"
        )
    try:
        class_names = None if classes is None else tuple(map(str, classes))
    except (SystemError, ValueError):  # how numpy says that a character does not exist
        raise DataError(f"{path}: classes must be names of valid characters") from None
    return _checked(str(path), key, points, labels, class_names)


def _archive(path: Path) -> zipfile.ZipFile:
    """Open an npz file; refuse one whose arrays take far more than its size."""
    try:
        check_regular(path)
        archive = zipfile.ZipFile(path)
        for member in archive.infolist():
            check_member(member)
    except FileRuleError as error:
        raise DataError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise
    except Exception:  # the parser of zip raises many kinds
        raise DataError(f"{path}: must be an npz file") from None
    return archive


def _array(path: Path, archive: zipfile.ZipFile, key: str) -> NDArray[Any]:
    try:
        with archive.open(f"{key}.npy") as file:
            found: NDArray[Any] = npy.read_array(file, allow_pickle=False)
    except Exception as error:  # the parsers of zip, of Python and of dtypes raise many kinds
        reason = shown(str(error)) or type(error).__name__
        raise DataError(f"{path}: {key} cannot be read without pickle: {reason}") from None
    return found


def _checked(
    source: str, key: str, points: NDArray[Any], labels: NDArray[Any], names: tuple[str, ...] | None
) -> Samples:
    """Return flat points with their labels, after checking every rule; name the classes by number if need be."""
    if points.ndim < 2 or 0 in points.shape or points.dtype.kind not in "fiub":
        rule = "must be numbers of shape (N, ...), not empty"
        raise DataError(f"{source}: {key} {rule}, but has the shape {points.shape} and dtype {points.dtype}")
    if labels.shape != points.shape[:1] or labels.dtype.kind not in "iu":
        rule = f"must be {len(points)} integers, one for each row of {key}"
        raise DataError(f"{source}: labels {rule}, but has the shape {labels.shape} and dtype {labels.dtype}")
    with np.errstate(over="ignore"):  # becomes infinite, which is refused
        flat = points.reshape(len(points), -1).astype(np.float32)
    if not np.isfinite(flat).all():
        row, column = np.argwhere(~np.isfinite(flat))[0]
        raise DataError(f"{source}: {key} must be finite in float32, but row {row} has {flat[row, column]}")
    size = MAX_MATRIX_CLASSES if names is None else len(names)
    if labels.min() < 0 or labels.max() >= size:
        wrong = labels[(labels < 0) | (labels >= size)][0]
        raise DataError(f"{source}: labels must be from 0 to {size - 1}, but has {wrong}")
    found = tuple(map(str, range(int(labels.max()) + 1))) if names is None else names
    try:
        ConcernSpec(found)
    except ConcernError as error:
        raise DataError(f"{source}: {error}") from None
    return Samples(torch.from_numpy(flat), torch.from_numpy(labels.astype(np.int64)), found)
