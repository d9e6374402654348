"""HDF5 files of trials, and their keys as SIDEKIT, BOSARIS and PyBOSARIS write them."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.chunks import PredictionsError, reading
from mpcs_torch.io.untrusted_files import FREE_BYTES, MOST_EXPANSION, FileRuleError

if TYPE_CHECKING:
    import h5py

SUFFIXES = (".h5", ".hdf5")
FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 32000: "lzf"}
"""By the library's number. Others may come from plug-ins, which are programs."""
PACKERS = {1, 32000}
"""Of those, the ones that make chunks smaller; one after the other would multiply what they expand to."""
MOST_PACKED = 2**20 + 2**12
"""Bytes of a packed chunk: gzip unpacks it to about `FREE_BYTES` at most, whatever size it declares. h5py chooses
chunks of less than 2^20 bytes before they are packed."""
NAMES = 2**16
"""The number of names that are read at a time."""


def is_hdf5(path: Path) -> bool:
    """Return whether the suffix says that a file is HDF5."""
    return path.suffix.lower() in SUFFIXES


def import_h5py(path: Path) -> Any:
    """Return h5py; refuse to read or write a file if it is not installed."""
    try:
        import h5py
    except ImportError:
        raise PredictionsError(path, "requires h5py: pip install 'mpcs_torch[hdf5]'") from None
    return h5py


def has_dataset(file: "h5py.File", name: str) -> bool:
    """Return whether a file has a link of this name; none is followed but that of the group of the name."""
    *groups, last = name.split("/")
    at = file
    for group in groups:
        if not at.id.links.exists(group.encode()):
            return False
        at = _inside(at, group)
    return bool(at.id.links.exists(last.encode()))


def numbers_in(file: "h5py.File", name: str, shape: tuple[int, int], kinds: str, rule: str) -> "h5py.Dataset":
    """Return a matrix of numbers, of which no value is read yet; refuse anything else, and what breaks a limit.

    Args:
        file: The file.
        name: The name of the dataset.
        shape: The numbers of models and of segments.
        kinds: Numpy's letters of the kinds of numbers that it may have.
        rule: The kinds in words.
    """
    matrix = _dataset(file, name)
    if matrix.dtype.kind not in kinds or matrix.dtype.itemsize > 8:
        raise FileRuleError(f"{quoted(name)} must contain {rule}, but contains {quoted(str(matrix.dtype))}")
    if len(matrix.shape) != 2:
        raise FileRuleError(f"{quoted(name)} must be a matrix, but has the shape {quoted(matrix.shape)}")
    if matrix.shape != shape:
        rule = f"{quoted(name)} must have the shape {shape}, as there are models and segments"
        raise FileRuleError(f"{rule}, but has {quoted(matrix.shape)}")
    return matrix


def names_in(file: "h5py.File", name: str) -> dict[str, int]:
    """Return the names that a dataset has, each with its place; refuse empty names and those that appear twice."""
    import h5py

    dataset = _dataset(file, name)
    text = h5py.check_string_dtype(dataset.dtype)
    if text is None or len(dataset.shape) != 1:
        kind = f"{quoted(str(dataset.dtype))} of shape {quoted(dataset.shape)}"
        raise FileRuleError(f"{quoted(name)} must be a list of names, but is {kind}")
    longest = text.length or Path(file.filename).stat().st_size  # no text is longer than its file
    step = max(1, min(NAMES, FREE_BYTES // max(1, longest)))
    places: dict[str, int] = {}
    for start in range(0, dataset.shape[0], step):
        for text_or_bytes in dataset[start : start + step]:
            text_of_name = text_or_bytes.decode() if isinstance(text_or_bytes, bytes) else text_or_bytes
            if not text_of_name or text_of_name in places:  # at once: repeated names take next to no space in a file
                problem = "has an empty name" if not text_of_name else f"has {quoted(text_of_name)} twice"
                raise FileRuleError(f"{quoted(name)} must have different names, but {problem}")
            places[text_of_name] = len(places)
    return places


def _inside(at: "h5py.Group", part: str) -> Any:
    """Return what a hard link of a group leads to; other links may lead to other files."""
    import h5py

    link = part.encode()
    if not at.id.links.exists(link):
        raise FileRuleError(f"must have {quoted(part)}")
    if at.id.links.get_info(link).type != h5py.h5l.TYPE_HARD:
        raise FileRuleError(f"{quoted(part)} must be in the file itself, but is a soft or external link")
    return at[part]


def _dataset(file: "h5py.File", name: str) -> "h5py.Dataset":
    import h5py

    at: Any = file
    for part in name.split("/"):
        if not isinstance(at, h5py.Group):
            raise FileRuleError(f"must have the dataset {quoted(name)}")
        at = _inside(at, part)
    if not isinstance(at, h5py.Dataset) or at.shape is None:
        raise FileRuleError(f"{quoted(name)} must be a dataset with a shape")
    if at.is_virtual or at.external:
        raise FileRuleError(f"{quoted(name)} must be in the file itself, but is virtual or in other files")
    _check_size(file, name, at)
    return at


def _check_size(file: "h5py.File", name: str, dataset: "h5py.Dataset") -> None:
    """Refuse a dataset that would fill the memory, and filters that are not built in."""
    properties, size = dataset.id.get_create_plist(), Path(file.filename).stat().st_size
    filters = [properties.get_filter(place)[0] for place in range(properties.get_nfilters())]
    if not set(filters) <= FILTERS.keys() or sum(number in PACKERS for number in filters) > 1:
        raise FileRuleError(f"{quoted(name)} must be packed once, by {', '.join(FILTERS.values())} alone")
    for shape in (dataset.shape, dataset.chunks or ()):
        declared = math.prod(shape) * dataset.dtype.itemsize
        if declared > FREE_BYTES and declared > MOST_EXPANSION * size:
            rule = f"must declare at most {MOST_EXPANSION} times the size of the file or {FREE_BYTES} bytes"
            raise FileRuleError(f"{quoted(name)} {rule}, but declares {declared}")
    packed_sizes = [0]
    if filters:
        dataset.id.chunk_iter(lambda chunk: packed_sizes.append(chunk.size))
    if (largest := max(packed_sizes)) > MOST_PACKED:
        raise FileRuleError(
            f"{quoted(name)} must be packed in chunks of at most {MOST_PACKED} bytes, but one has {largest}"
        )


PAIRS = (("modelset", "segset"), ("ID/row_ids", "ID/column_ids"), ("model_names", "test_names"))
"""The names of rows and columns in files of SIDEKIT, BOSARIS for MATLAB, and PyBOSARIS."""
TRIALS = "trial_mask"
TARGETS, NONTARGETS = "tar_mask", "non_mask"
CELLS = 2**22
"""The number of values of a matrix that are read at a time."""


class Key(NamedTuple):
    """The pairs of an enrolment (model) and a test (segment) that are trials, and those of them that are targets."""

    enrollments: list[str]
    """(E,), no two alike."""
    tests: list[str]
    """(T,), no two alike."""
    labels: NDArray[np.int8]
    """(E, T): 1 for target trials, -1 for non-target trials, 0 for pairs that are no trials."""


def read_key(path: Path) -> Key:
    """Read a Key, or an Ndx: its trials have no labels, and appear as targets.

    Args:
        path: An HDF5 file of SIDEKIT, BOSARIS or PyBOSARIS.

    Raises:
        PredictionsError: If it cannot be read, or a value breaks a rule.
    """
    with reading(path), import_h5py(path).File(path, "r") as file:
        enrollments, tests = axes_of(file)
        names, shape = (list(enrollments), list(tests)), (len(enrollments), len(tests))
        if has_dataset(file, TRIALS):
            return Key(*names, _read_mask(file, TRIALS, shape, lowest=-1))
        if not has_dataset(file, TARGETS):
            raise PredictionsError(path, f"must be a Key, with {TRIALS}, or with {TARGETS} and {NONTARGETS}")
        labels = _read_mask(file, TARGETS, shape, lowest=0)
        nontargets = _read_mask(file, NONTARGETS, shape, lowest=0)
        both = labels & nontargets
        if both.any():
            row, column = divmod(int(both.argmax()), len(tests))
            pair = quoted(f"{names[0][row]} {names[1][column]}")
            raise PredictionsError(path, f"a trial must be target or non-target, but {pair} is both")
        labels -= nontargets
        return Key(*names, labels)


def axes_of(file: "h5py.File") -> tuple[dict[str, int], dict[str, int]]:
    """Return the names of rows and columns, each with its place."""
    for rows, columns in PAIRS:
        if has_dataset(file, rows):
            return names_in(file, rows), names_in(file, columns)
    known = ", or ".join(" and ".join(pair) for pair in PAIRS)
    raise FileRuleError(f"must have the names of models and segments: {known}")


def row_blocks(shape: tuple[int, int]) -> Iterator[slice]:
    """Yield the rows of a matrix in blocks of at most `CELLS` values, or of one row."""
    step = max(1, CELLS // max(1, shape[1]))
    for start in range(0, shape[0], step):
        yield slice(start, min(start + step, shape[0]))


def _read_mask(file: "h5py.File", name: str, shape: tuple[int, int], *, lowest: int) -> NDArray[np.int8]:
    """Read a matrix of numbers from ``lowest`` to 1."""
    matrix = numbers_in(file, name, shape, "biu", "integers or bools")
    mask = np.empty(shape, dtype=np.int8)
    for rows in row_blocks(shape):
        values = matrix[rows].view(np.uint8) if matrix.dtype.kind == "b" else matrix[rows]
        bad = (values < lowest) | (values > 1)
        if bad.any():
            raise FileRuleError(f"{quoted(name)} must be from {lowest} to 1, but has {values[bad][0]}")
        mask[rows] = values
    return mask
