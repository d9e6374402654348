"""Read npy files of numbers and text without NumPy's reader, which raises many kinds of errors."""

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
"""The limit of NumPy, including the magic bytes; the header of an array of numbers has about 100."""


class TruncatedArrayError(FileRuleError):
    """An array file that ends before its last value."""

    def __init__(self, rows: int, row: int, column: int) -> None:
        super().__init__(f"the file ends here, before row {rows}")
        self.row, self.column = row, column
        """The first missing value: row from 1, column from 0."""


class NpyHeader(NamedTuple):
    """The header of an array file."""

    shape: tuple[int, ...]
    is_fortran: bool
    """Whether columns rather than rows are contiguous."""
    dtype: np.dtype[Any]
    start: int
    """The offset of the first value in the file."""

    def check_whole(self, size: int) -> None:
        """Raise if a file of this size in bytes is too small for the array."""
        values, columns = (size - self.start) // self.dtype.itemsize, max(1, math.prod(self.shape[1:]))
        if values < math.prod(self.shape):
            row, column = divmod(values, columns)
            raise TruncatedArrayError(self.shape[0], row + 1, column)


def read_header(file: IO[bytes], *, max_characters: int = 0) -> NpyHeader:
    """Read the header of an array of numbers, or of text of at most so many characters.

    Raises:
        FileRuleError: If the file is not an npy file of numbers of at most 8 bytes, or of that text.
    """
    start = BytesIO(file.read(MAX_HEADER_BYTES))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # from Python's parser, for invalid headers
            read = npy.read_array_header_1_0 if npy.read_magic(start) == (1, 0) else npy.read_array_header_2_0
            header = NpyHeader(*read(start), start.tell())
    except Exception:  # the parsers of Python and of dtypes raise many kinds
        rule = f"must be an array in numpy's npy format, with a header of at most {MAX_HEADER_BYTES} bytes"
        raise FileRuleError(f"{rule}, but begins with {quoted(start.getvalue())}") from None
    shape, _, dtype, _ = header
    max_bytes = 4 * max_characters if dtype.kind == "U" else 8
    if dtype.kind not in "fiubU" or not 0 < dtype.itemsize <= max_bytes or dtype.subdtype is not None:
        text = f" or text of at most {max_characters} characters" if max_characters else ""
        raise FileRuleError(
            f"must contain numbers of at most 8 bytes{text}, but contains {printable(str(dtype)[:MAX_QUOTED])}"
        )
    if any(isinstance(size, bool) or size < 0 for size in shape):
        raise FileRuleError(f"the sizes of the array must not be negative, but the shape is {quoted(shape)}")
    return header


def map_array(path: Path) -> NDArray[Any]:
    """Memory-map an npy file.

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
            return np.empty(header.shape, header.dtype)  # an empty file cannot be mapped
        return np.memmap(path, header.dtype, "r", header.start, header.shape, "F" if header.is_fortran else "C")
    except (ValueError, OverflowError):  # too many or too large dimensions
        raise FileRuleError(f"no array can have the shape {quoted(header.shape)}") from None
