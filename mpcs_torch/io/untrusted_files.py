"""Read untrusted files without running their code or exhausting memory."""

import io
import os
import stat
import warnings
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from mpcs_torch.errors import InvalidValueError

FREE_BYTES = 2**28
"""The unpacked size in bytes that every file may have, however small it is. Its columns then fit in 1 GiB of memory."""
MAX_EXPANSION = 200
"""The maximum unpacked size of larger files, relative to their size on disk. Scores expand to 2 to 20 times their
packed size; bombs to 1000 times (deflate) or a million times (bzip2, Zstandard, dictionaries, repeated references).
One-hot rows of many classes expand as much as bombs, so they must be saved uncompressed."""
MEMORY_SHARE = 0.5
"""The maximum unpacked size of larger files, relative to the memory: scores are copied while they are checked."""
VARIABLE = "MPCS_MAX_BYTES"
"""The environment variable with a number of bytes that replaces the three limits above."""
VALUE_BYTES = 8
"""The minimum number of bytes in memory of a value in a column."""
OBJECT_BYTES = 64
"""The minimum number of bytes in memory of a value that is a Python object."""
MAX_COLUMNS = 100_000
"""The maximum number of columns. An array (npz, npy, pt) is one column, but can have scores of more classes."""
MAX_MEMBERS = MAX_COLUMNS
"""The maximum number of members of a zip archive, such as the arrays of an npz file."""
MAX_NAME = 1000
"""The maximum length of the name of a column in characters, because some searches in names take quadratic time."""
MAX_LINE_BYTES = 2**24
"""The maximum length in bytes of the first lines of a text table: 167 bytes for each of `MAX_COLUMNS` cells."""
MAX_TEXT_BYTES = 500_000_000
"""The maximum size of a text file that is read into memory as a whole, such as the records of a million epochs."""
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFSOCK: "a socket",
}


class FileRuleError(InvalidValueError):
    """The error for a file that breaks a rule. The message does not name the file."""


def memory_bytes() -> int:
    """Return the memory of this machine, or of this container, in bytes; on Windows, 8 GiB."""
    memory = 2**33
    if hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # not in a container, or in one without a limit
        return min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return memory


def max_unpacked(packed: int) -> int:
    """Return the maximum number of bytes to which a file of ``packed`` bytes may unpack.

    It is never below ``packed``, so that no file is refused only because it is large.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen is None:
        large = min(MAX_EXPANSION * packed, int(MEMORY_SHARE * memory_bytes()))
        return max(packed, FREE_BYTES, large)
    if not chosen.isdecimal():
        raise FileRuleError("whole_bytes", VARIABLE, chosen)
    return max(packed, int(chosen))


class Unpacked:
    """Counts the bytes of memory that the parts of a file take together, and refuses too many.

    A file of a few kilobytes can unpack to many gigabytes. So readers count before they unpack, if the file declares
    its sizes, and otherwise block by block.
    """

    def __init__(self, path: Path) -> None:
        self._packed = path.stat().st_size
        self._bytes = 0
        self._limit = max_unpacked(self._packed)

    def add(self, number: int) -> None:
        """Count ``number`` further bytes; raise a `FileRuleError` if all together are above the limit."""
        self._bytes += number
        if self._bytes > self._limit:
            sizes: dict[str, Any] = {
                "maximum": self._limit,
                "packed": self._packed,
                "unpacked": self._bytes,
            }
            raise FileRuleError("unpacked_at_most", variable=VARIABLE, **sizes)


def check_regular(path: Path, *, max_bytes: int | None = None) -> None:
    """Raise a `FileRuleError` for a path that is not a regular file, or for a file of more than ``max_bytes`` bytes.

    Call this before opening a file, because a pipe blocks and a device may never end. Links are followed.
    """
    status = path.stat()
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise FileRuleError("regular_file", kind=_KINDS.get(kind, "something else"))
    if max_bytes is not None and status.st_size > max_bytes:
        raise FileRuleError("size_at_most", "", status.st_size, maximum=max_bytes)


def read_limited(path: Path, limit: int) -> bytes:
    """Read a whole regular file; raise a `FileRuleError` if it has more than ``limit`` bytes."""
    check_regular(path, max_bytes=limit)
    with path.open("rb") as file:
        return file.read(limit)  # no more, because the file may have grown since the check


def read_text(path: Path) -> str:
    """Read a regular file of UTF-8 text.

    Raises:
        FileRuleError: If it is not regular, or has more than `MAX_TEXT_BYTES` bytes.
        UnicodeDecodeError: If it is not UTF-8 text.
    """
    text = read_limited(path, MAX_TEXT_BYTES).decode("utf-8")
    # This turns each line end into a newline alone.
    with_newlines = io.StringIO(text, newline=None)
    return with_newlines.read()


def load_tensors(file: Path | BinaryIO, *, mmap: bool = False) -> Any:
    """Load tensors and plain values from a file of `torch.save` to the CPU, without running code.

    With ``mmap``, tensors stay on disk until they are used. A file that is not regular, or that is compressed, raises a
    `FileRuleError` (`torch.save` never compresses). A damaged file may raise any error.
    """
    import torch

    if isinstance(file, Path):
        check_regular(file)
        size = file.stat().st_size
    else:
        size = file.seek(0, os.SEEK_END)
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > size:
            raise FileRuleError("not_packed", packed=size, unpacked=unpacked)
    if not isinstance(file, Path):
        file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the content, which the caller validates
        return torch.load(file, map_location="cpu", weights_only=True, mmap=mmap)


def check_whole_tensors(values: Iterable[object]) -> None:
    """Raise a `FileRuleError` if a tensor in ``values`` is not dense, not on the CPU, or expanded (repeats values)."""
    import torch

    for value in values:
        if not isinstance(value, torch.Tensor):
            continue
        is_on_cpu = value.device.type == "cpu"
        if value.layout != torch.strided or value.is_quantized or not is_on_cpu:
            raise FileRuleError(
                "dense_on_cpu", "tensors", layout=value.layout, device=value.device
            )
        # An expanded tensor has more values than its storage.
        if value.numel() * value.element_size() > value.untyped_storage().nbytes():
            raise FileRuleError("contiguous", "tensors", shape=tuple(value.shape))
