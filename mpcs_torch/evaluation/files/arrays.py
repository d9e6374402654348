"""Open files of arrays as tables: npz, npy and pt."""

import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib import format as npy
from torch import Tensor

from mpcs_torch.errors import Rule, quoted
from mpcs_torch.evaluation.files.read_options import PredictionsError
from mpcs_torch.evaluation.files.tables import Column, FileTable, make_column
from mpcs_torch.evaluation.files.words import CLASS_NAMES, plain
from mpcs_torch.io.untrusted_files import (
    OBJECT_BYTES,
    VALUE_BYTES,
    FileRuleError,
    Unpacked,
    check_whole_tensors,
    load_tensors,
)


def npz_table(path: Path) -> FileTable:
    """Open the arrays of an npz file; others than arrays of numbers or texts are named, but not read."""
    arrays, other = dict[str, Any](), list[str]()
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        for member in members:
            name = member.filename.removesuffix(".npy")
            try:
                arrays[name] = _member_array(archive, member)
            except ValueError:
                # No array, or an array of Python objects, which would need pickle.
                if len(members) == 1:
                    raise
                other.append(name)
    if not arrays:
        raise PredictionsError(path, Rule("object_arrays", names=other))
    return _arrays_table(path, arrays, other)


def _member_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    """Read an array in a zip archive; refuse one whose header declares more values than it has, before it is made."""
    with archive.open(member) as file:
        header = (
            npy.read_array_header_1_0
            if npy.read_magic(file) == (1, 0)
            else npy.read_array_header_2_0
        )
        shape, _, dtype = header(file)
        if math.prod(shape) * dtype.itemsize > member.file_size:
            raise FileRuleError("all_values", quoted(member.filename), shape=shape)
        file.seek(0)
        return npy.read_array(file, allow_pickle=False)


def npy_table(path: Path) -> FileTable:
    """Open the only array of an npy file, which has no name."""
    return replace(
        _arrays_table(path, {"column 1": np.load(path, mmap_mode="r")}), has_names=False
    )


def torch_table(path: Path) -> FileTable:
    """Open the tensor, or the dictionary of tensors and lists, that `torch.save` wrote."""
    saved = load_tensors(path, mmap=True)
    saved = {"column 1": saved} if isinstance(saved, Tensor) else saved
    if not isinstance(saved, dict) or not any(
        isinstance(value, Tensor) for value in saved.values()
    ):
        raise PredictionsError(path, Rule("tensors_by_name"))
    _count_values(saved, Unpacked(path))
    columns = {
        str(name): value
        for name, value in saved.items()
        if isinstance(value, (Tensor, list))
    }
    check_whole_tensors(columns.values())
    arrays = {
        name: value if isinstance(value, Tensor) else make_column(value)
        for name, value in columns.items()
    }
    return _arrays_table(path, arrays)


def _count_values(content: Any, unpacked: Unpacked) -> None:
    """Count the values in nested containers: a short pickle can refer to one list many times, and this one to others.

    Containers and texts are counted as often as they are referred to, because columns hold copies of them.
    """
    remaining = [content]
    while remaining:
        value = remaining.pop()
        if isinstance(value, dict | list | tuple | set | frozenset):
            unpacked.add(OBJECT_BYTES * (1 + len(value)))
            inner = value.values() if isinstance(value, dict) else value
            remaining += [each for each in inner if not isinstance(each, int | float)]
        elif isinstance(value, str | bytes):
            unpacked.add(len(value))
        elif isinstance(value, Tensor) and value.layout == torch.strided:
            unpacked.add(
                min(value.numel() * value.element_size(), value.untyped_storage().nbytes())
            )


def _arrays_table(
    path: Path, arrays: Mapping[str, Any], other: Sequence[str] = ()
) -> FileTable:
    """Return a table of the arrays that have as many rows as the largest one. Its ``dialect`` names the others."""
    shapes = {
        name: tuple(array.shape) if hasattr(array, "shape") else (len(array),)
        for name, array in arrays.items()
    }
    plain_arrays = [
        name
        for name, array in arrays.items()
        if not isinstance(array, np.ndarray) or array.dtype.kind in "fiubU"
    ]
    sizes = {
        name: np.prod(shapes[name]) for name in plain_arrays if len(shapes[name]) in (1, 2)
    }
    if not sizes:
        raise PredictionsError(path, Rule("array_of_numbers", shapes=shapes))
    rows = shapes[max(sizes, key=lambda name: sizes[name])][0]
    names = [name for name in sizes if shapes[name][0] == rows]
    unfit = {name: shape for name, shape in shapes.items() if name not in names}
    other = [*other, *unfit]
    width = max((shapes[name][1] for name in names if len(shapes[name]) == 2), default=1)
    called, classes = _names_of_classes(arrays, unfit, width)
    # Labels may be (N, 1) beside scores (N, C).
    flat = {name for name in names if shapes[name][1:] == (1,) and width > 1}

    def load(wanted: Sequence[str], _: object, number: int | None) -> dict[str, Column]:
        columns, unpacked = dict[str, Column](), Unpacked(path)
        for name in wanted:
            array = arrays[name][:number]
            unpacked.add(_size_in_columns(array))
            columns[name] = _array_column(array[:, 0] if name in flat else array)
        return columns

    unread = [name for name in other if name != called]
    words = f"arrays of another shape or kind: {', '.join(unread)}" if unread else ""
    return FileTable(path, names, load, dialect=words, counts_from_0=True, classes=classes)


def _names_of_classes(
    arrays: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], width: int
) -> tuple[str | None, list[str]]:
    """Return the name of the array that names the classes of ``width`` scores, and these; None and [] without one.

    ``shapes`` are those of the arrays that may do so.
    """
    # A single probability in each row is that of one of two classes.
    fitting = {(width,), (max(width, 2),)}
    for name, shape in shapes.items():
        if plain(name) in CLASS_NAMES and shape in fitting:
            classes = _array_column(arrays[name]).tolist()
            are_names = all(isinstance(each, str) for each in classes)
            return name, classes if are_names and len({*classes}) == len(classes) else []
    return None, []


def _size_in_columns(array: Any) -> int:
    """Return the bytes that ``array`` takes as columns; those of lists are counted elsewhere."""
    if not isinstance(array, np.ndarray | Tensor):
        return 0
    return math.prod(max(1, size) for size in array.shape) * _value_bytes(array.dtype)


def _value_bytes(dtype: Any) -> int:
    """Return the bytes of a value of type ``dtype`` in a column: floats stay as they are, and integers get wider."""
    return (
        int(dtype.itemsize) if "float" in str(dtype) else max(VALUE_BYTES, dtype.itemsize)
    )


def _array_column(values: Any) -> Column:
    """Convert numbers (n, k) to a tensor, and numbers or texts (n,) to an arrow array."""
    if isinstance(values, Tensor) and values.ndim == 2:
        return values
    if isinstance(values, Tensor):
        values = (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    if not isinstance(values, np.ndarray):
        return values
    if values.dtype.kind == "b":  # damaged files may have bools above 1
        values = values.view(np.uint8)
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if values.ndim == 2:
        kind = values.dtype
        if kind.kind == "u":  # torch lacks unsigned types
            kind = np.dtype(np.float64 if kind == np.uint64 else np.int64)
        return torch.from_numpy(np.array(values, dtype=kind))
    import pyarrow

    return pyarrow.array(
        values.astype(np.float32) if values.dtype == np.float16 else values
    )
