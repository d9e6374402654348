"""HDF5 matrices of trials, as SIDEKIT, BOSARIS and PyBOSARIS read and write them: Scores and Keys; an Ndx is read."""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.chunks import PredictionsError
from mpcs_torch.evaluation.files.tables import Batch, Table
from mpcs_torch.functional.inputs.groups import Groups
from mpcs_torch.io.untrusted_files import FREE_BYTES, MAX_EXPANSION, FileRuleError

if TYPE_CHECKING:
    import h5py

SUFFIXES = (".h5", ".hdf5")
PAIRS = (("modelset", "segset"), ("ID/row_ids", "ID/column_ids"), ("model_names", "test_names"))
"""The names of rows and columns in files of SIDEKIT, BOSARIS for MATLAB, and PyBOSARIS."""
SCORES, MASK = ("scores", "score_mat"), "score_mask"
"""``score_mat`` is that of PyBOSARIS, which has no mask: NaN there is no score."""
TRIALS, TARGETS, NONTARGETS = "trial_mask", "tar_mask", "non_mask"
MATRIX = "a matrix of scores"
"""The dialect of a table of scores, some of which may be of pairs that are no trials."""
KINDS = {"f": "floating point numbers", "biu": "integers or bools"}
"""The values of scores, and of masks, by numpy's letters."""
NAMES, CELLS = 2**16, 2**22
"""The number of names, and of values of a matrix, that are read at a time."""
FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 32000: "lzf"}
"""By the library's number. Others may come from plug-ins, which are programs."""
CHECKSUM, LEAST_CHECKED = 3, 4
"""The number of fletcher32, and the bytes that it adds to a chunk."""
PACKERS = {1, 32000}
"""Of those, the ones that make chunks smaller; one after the other would multiply what they expand to."""
MAX_PACKED = 2**20 + 2**12
"""Bytes of a packed chunk: gzip unpacks it to about `FREE_BYTES` at most, whatever size it declares. h5py chooses
chunks of less than 2^20 bytes before they are packed."""
MAX_CELLS_OF_A_TRIAL = 100
"""Larger matrices with more cells would be packed tighter than `hdf5_table` reads, and are better written as tables."""
CHUNK_ROWS, CHUNK_CELLS = 64, 2**16
Pair = tuple[Groups, Groups]
"""The enrollments and the tests of trials."""
Cells = Callable[[slice], tuple[NDArray[np.intp], NDArray[np.intp], NDArray[Any]]]
"""Returns the rows and columns of the cells that are filled in some rows of a matrix, and their values."""


def hdf5_table(path: Path) -> Table:
    """Open a matrix as a table: enrollment, test, and the score of each pair that has one, or the label of each trial.

    The trials of an Ndx, which have no labels, appear as targets.

    Raises:
        FileRuleError: If it breaks a limit, or is no such file.
    """
    import h5py

    with h5py.File(path, "r") as file:
        names = _axes(file)
        kind = _cells(file, names)[0]

    def read(wanted: Sequence[str], _: Collection[str], __: range | None) -> Iterator[Batch]:
        from pyarrow import DictionaryArray, array, string

        first, texts = 1, [array(axis, string()) for axis in (*names, ["nontarget", "target"])]
        with h5py.File(path, "r") as file:
            block = _cells(file, names)[1]
            for some in row_blocks((len(names[0]), len(names[1]))):
                rows, columns, values = block(some)
                codes = {"enrollment": (rows, texts[0]), "test": (columns, texts[1]), "label": (values > 0, texts[2])}
                batch: dict[str, Any] = {} if kind == "label" else {"score": array(values)}
                for name in {*wanted} - batch.keys():
                    batch[name] = DictionaryArray.from_arrays(array(codes[name][0].astype(np.int32)), codes[name][1])
                yield Batch(first, {name: batch[name] for name in wanted})
                first += len(values)

    return Table(path, ["enrollment", "test", kind], read, dialect="" if kind == "label" else MATRIX)


def row_blocks(shape: tuple[int, int], chunk_rows: int = 1) -> Iterator[slice]:
    """Yield the rows of a matrix in blocks of whole chunks and at most `CELLS` values, or of one chunk."""
    step = chunk_rows * max(1, CELLS // max(1, chunk_rows * shape[1]))
    for start in range(0, shape[0], step):
        yield slice(start, min(start + step, shape[0]))


def _find(file: "h5py.File", name: str) -> Any:
    """Return what a name leads to, or None; refuse links that may lead to other files."""
    import h5py

    at: Any = file
    for part in name.split("/"):
        link = at.get(part, getlink=True) if isinstance(at, h5py.Group) else None
        if link is not None and not isinstance(link, h5py.HardLink):
            raise FileRuleError(f"{quoted(part)} must be in the file itself, but is a soft or external link")
        at = None if link is None else at[part]
    return at


def _dataset(file: "h5py.File", name: str) -> "h5py.Dataset":
    """Return a dataset that cannot fill the memory, run a plug-in or crash the library; no value is read yet."""
    import h5py

    dataset = _find(file, name)
    if not isinstance(dataset, h5py.Dataset) or dataset.shape is None:
        raise FileRuleError(f"must have {quoted(name)}, a dataset with a shape")
    rules = _storage_rules(dataset, Path(file.filename).stat().st_size)
    broken = next((rule for is_broken, rule in rules if is_broken), None)
    if broken is not None:
        raise FileRuleError(f"{quoted(name)} {broken}")
    return dataset


def _storage_rules(dataset: "h5py.Dataset", file_size: int) -> Iterator[tuple[object, str]]:
    """Yield the rules of how values are stored, each only where those before it hold."""
    yield dataset.is_virtual or dataset.external, "must be in the file itself, but is virtual or in other files"
    properties = dataset.id.get_create_plist()
    filters = [properties.get_filter(place)[0] for place in range(properties.get_nfilters())]
    is_foreign = not set(filters) <= FILTERS.keys() or sum(number in PACKERS for number in filters) > 1
    yield is_foreign, f"must be packed once, by {', '.join(FILTERS.values())} alone"
    declared = max(math.prod(shape) for shape in (dataset.shape, dataset.chunks or ())) * dataset.dtype.itemsize
    rule = f"must declare at most {MAX_EXPANSION} times the size of the file or {FREE_BYTES} bytes"
    yield declared > max(FREE_BYTES, MAX_EXPANSION * file_size), f"{rule}, but declares {declared}"
    packed = list[int]()
    if filters:
        dataset.id.chunk_iter(lambda chunk: packed.append(chunk.size))
    is_short = CHECKSUM in filters and min(packed, default=LEAST_CHECKED) < LEAST_CHECKED
    yield is_short, "has a chunk that is too short for its checksum"
    largest = max(packed, default=0)
    yield largest > MAX_PACKED, f"must be packed in chunks of at most {MAX_PACKED} bytes, but one has {largest}"


def _numbers(file: "h5py.File", name: str, shape: tuple[int, ...], kinds: str) -> "h5py.Dataset":
    """Return a matrix of numbers of some of `KINDS`."""
    matrix = _dataset(file, name)
    if matrix.dtype.kind not in kinds or matrix.dtype.itemsize > 8 or matrix.shape != shape:
        rule = f"must be a matrix {shape} of {KINDS[kinds]}, as there are models and segments"
        raise FileRuleError(f"{quoted(name)} {rule}, but is {_kind(matrix)}")
    return matrix


def _kind(dataset: "h5py.Dataset") -> str:
    return f"{quoted(str(dataset.dtype))} of shape {quoted(dataset.shape)}"


def _axes(file: "h5py.File") -> tuple[list[str], list[str]]:
    """Return the names of rows and columns."""
    pair = next((pair for pair in PAIRS if _find(file, pair[0]) is not None), None)
    if pair is None:
        known = ", or ".join(" and ".join(pair) for pair in PAIRS)
        raise FileRuleError(f"must have the names of models and segments: {known}")
    return _names(file, pair[0]), _names(file, pair[1])


def _names(file: "h5py.File", name: str) -> list[str]:
    """Return the names that a dataset has; refuse empty names and those that appear twice."""
    import h5py

    dataset = _dataset(file, name)
    text = h5py.check_string_dtype(dataset.dtype)
    if text is None or len(dataset.shape) != 1:
        raise FileRuleError(f"{quoted(name)} must be a list of names, but is {_kind(dataset)}")
    longest = text.length or Path(file.filename).stat().st_size  # no text is longer than its file
    step, names = max(1, min(NAMES, FREE_BYTES // max(1, longest))), dict[str, None]()
    for start in range(0, dataset.shape[0], step):
        for each in dataset.asstr("utf-8")[start : start + step]:
            if not each or each in names:  # at once: repeated names take next to no space in a file
                problem = f"has {quoted(each)} twice" if each else "has an empty name"
                raise FileRuleError(f"{quoted(name)} must have different names, but {problem}")
            names[each] = None
    return list(names)


def _cells(file: "h5py.File", names: Sequence[Sequence[str]]) -> tuple[Literal["score", "label"], Cells]:
    """Return whether a matrix has scores or labels, and what reads its cells: those of the mask, else not NaN or 0."""
    first = next((name for name in (*SCORES, TRIALS, TARGETS) if _find(file, name) is not None), None)
    if first is None:
        problem = f"must be Scores, with {' or '.join(SCORES)}, or a Key, with {TRIALS}"
        raise FileRuleError(f"{problem}, or with {TARGETS} and {NONTARGETS}")
    has_mask = first in SCORES and _find(file, MASK) is not None
    parts, shape = [first, *[MASK] * has_mask, *[NONTARGETS] * (first == TARGETS)], tuple(map(len, names))
    opened = {name: _numbers(file, name, shape, "f" if name in SCORES else "biu") for name in parts}

    def block(rows: slice) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[Any]]:
        if first in SCORES:
            values = opened[first][rows].astype(np.float64)
            is_filled = opened[MASK][rows] != 0 if has_mask else ~np.isnan(values)
            is_bad, rule = is_filled & np.isnan(values), "the score of {} must be a number, but is 'nan'"
        else:
            targets, *nontargets = (_labels(matrix[rows], name) for name, matrix in opened.items())
            values = targets - sum(nontargets)
            is_filled, rule = values != 0, "a trial must be target or non-target, but '{}' is both"
            is_bad = (targets == 1) & (sum(nontargets) == 1)
        if is_bad.any():
            row, column = (int(place[0]) for place in is_bad.nonzero())
            raise FileRuleError(rule.format(quoted(f"{names[0][row + rows.start]} {names[1][column]}")[1:-1]))
        row_places, columns = is_filled.nonzero()
        return row_places + rows.start, columns, values[row_places, columns]

    return "score" if first in SCORES else "label", block


def _labels(values: NDArray[Any], name: str) -> NDArray[np.int8]:
    """Return the numbers of a mask: from -1 to 1 in `TRIALS`, 0 or 1 in others."""
    values = values.view(np.uint8) if values.dtype.kind == "b" else values  # a damaged bool may be neither
    lowest = -1 if name == TRIALS else 0
    bad = (values < lowest) | (values > 1)
    if bad.any():
        raise FileRuleError(f"{quoted(name)} must be from {lowest} to 1, but has {values[bad][0]}")
    return np.asarray(values, dtype=np.int8)


def check_matrix(path: Path, pair: Pair) -> None:
    """Refuse trials that are too few for the matrix of their names, and names that a matrix cannot have.

    Raises:
        PredictionsError: If they are.
    """
    (rows, columns), trials = (len(side.names) for side in pair), len(pair[0].codes)
    if 8 * rows * columns > FREE_BYTES and rows * columns > MAX_CELLS_OF_A_TRIAL * trials:
        rule = f"a matrix of {rows} x {columns} must have at least one trial in {MAX_CELLS_OF_A_TRIAL} cells"
        raise PredictionsError(path, f"{rule}, but has {trials}: write csv, parquet or npz")
    if any("" in side.names for side in pair):
        raise PredictionsError(path, "must have a name for each enrollment and test, but one is missing")


def write_matrix(file: BinaryIO, kind: Literal["Scores", "Key"], pair: Pair, values: NDArray[Any]) -> None:
    """Write the scores of trials (N,), or their labels, 1 or -1, in a matrix of their names.

    Pairs without a score have the mask 0 and the score 0, as in SIDEKIT; PyBOSARIS, which has no mask, finds NaN.
    """
    import h5py

    order = pair[0].codes.argsort(stable=True).numpy()
    rows, columns = (side.codes.numpy()[order] for side in pair)
    filled, datasets = values[order], dict[str, tuple[NDArray[Any], float]]()
    if kind == "Scores":
        datasets = {SCORES[0]: (filled, 0), MASK: (np.ones_like(rows, np.int8), 0), SCORES[1]: (filled, np.nan)}
    else:
        datasets = {TRIALS: (filled, 0), TARGETS: (filled > 0, 0), NONTARGETS: (filled < 0, 0)}
    shape = (len(pair[0].names), len(pair[1].names))
    chunk_rows = max(1, min(CHUNK_ROWS, shape[0], CELLS // max(1, shape[1])))
    chunk = (chunk_rows, min(shape[1], CHUNK_CELLS // chunk_rows))
    packed = {} if 0 in shape else {"chunks": chunk, "compression": "gzip", "fletcher32": True}
    with h5py.File(file, "w") as opened:
        opened.attrs["type"], opened.attrs["version"] = kind, "1.0"  # of PyBOSARIS
        for names, side in zip(zip(*PAIRS, strict=True), pair, strict=True):
            encoded = [text.encode() for text in side.names]
            texts = np.array(encoded, dtype=h5py.string_dtype("utf-8", max(map(len, encoded), default=1)))
            opened.create_dataset(names[0], data=texts, compression="gzip" if encoded else None)
            for other in names[1:]:
                opened[other] = opened[names[0]]  # a link inside the file
        for name, (cells, empty) in datasets.items():
            dataset = opened.create_dataset(name, shape, cells.dtype, **packed)
            for block in row_blocks(shape, chunk_rows):
                some = slice(*np.searchsorted(rows, [block.start, block.stop]))
                matrix = np.full((block.stop - block.start, shape[1]), empty, dtype=cells.dtype)
                matrix[rows[some] - block.start, columns[some]] = cells[some]
                dataset[block] = matrix
