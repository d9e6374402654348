"""Read arrays of numbers and text from npy files without numpy's own reader, which raises errors of many kinds."""

import math
import warnings
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from mpcs_torch.errors import MAX_QUOTED, printable, quoted
from mpcs_torch.io.untrusted_files import FileRuleError, check_regular

MAX_HEADER_BYTES = 10_000
"""With what is before it: numpy's limit, but no more is read. That of an array of numbers has about 100."""


class TruncatedArrayError(FileRuleError):
    """An array that ends before its last value."""

    def __init__(self, rows: int, row: int, column: int) -> None:
        super().__init__(f"the file ends here, before row {rows}")
        self.row, self.column = row, column
        """The place of the first missing value: the row counts from 1, the column from 0."""


class NpyHeader(NamedTuple):
    """The part of an array file before the values."""

    shape: tuple[int, ...]
    is_fortran: bool
    """Whether columns rather than rows are contiguous."""
    dtype: np.dtype[Any]
    start: int
    """The place of the first value in the file."""

    def check_whole(self, size: int) -> None:
        """Refuse an array whose file has so many bytes, if they are too few."""
        values, columns = (size - self.start) // self.dtype.itemsize, max(1, math.prod(self.shape[1:]))
        if values < math.prod(self.shape):
            row, column = divmod(values, columns)
            raise TruncatedArrayError(self.shape[0], row + 1, column)


def read_header(file: IO[bytes], *, most_characters: int = 0) -> NpyHeader:
    """Read the header of an array of numbers, or of texts of so many characters.

    Raises:
        FileRuleError: If the file is not an npy file of numbers of at most 8 bytes, or of such text.
    """
    start = BytesIO(file.read(MAX_HEADER_BYTES))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python's parser, about text that is then refused
            read = npy.read_array_header_1_0 if npy.read_magic(start) == (1, 0) else npy.read_array_header_2_0
            header = NpyHeader(*read(start), start.tell())
    except Exception:  # of the parsers of Python and of dtypes
        rule = f"must be an array in numpy's npy format, with a header of at most {MAX_HEADER_BYTES} bytes"
        raise FileRuleError(f"{rule}, but begins with {quoted(start.getvalue())}") from None
    shape, _, dtype, _ = header
    most_bytes = 4 * most_characters if dtype.kind == "U" else 8
    if dtype.kind not in "fiubU" or not 0 < dtype.itemsize <= most_bytes or dtype.subdtype is not None:
        text = f" or text of at most {most_characters} characters" if most_characters else ""
        raise FileRuleError(
            f"must contain numbers of at most 8 bytes{text}, but contains {printable(str(dtype)[:MAX_QUOTED])}"
        )
    if any(isinstance(size, bool) or size < 0 for size in shape):
        raise FileRuleError(f"the sizes of the array must not be negative, but the shape is {quoted(shape)}")
    return header


def map_array(path: Path) -> NDArray[Any]:
    """Map an npy file to memory: values are read when they are used.

    Raises:
        FileRuleError: If it is not a regular npy file of numbers.
        TruncatedArrayError: If it ends before its last value.
        FileNotFoundError: If there is no such file.
    """
    check_regular(path)
    with path.open("rb") as file:
        header = read_header(file)
    header.check_whole(path.stat().st_size)
    try:
        if not math.prod(header.shape):
            return np.empty(header.shape, header.dtype)  # nothing can be mapped
        return np.memmap(path, header.dtype, "r", header.start, header.shape, "F" if header.is_fortran else "C")
    except (ValueError, OverflowError):  # too many or too large dimensions beside one of size 0
        raise FileRuleError(f"no array can have the shape {quoted(header.shape)}") from None
