"""Limits on files that others wrote: they are data, so reading one runs no code and fills no memory or disk."""

import stat
import warnings
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from mpcs_torch.errors import MAX_QUOTED, MpcsError, printable, quoted

Restored = TypeVar("Restored")

FREE_BYTES = 2**30
"""Files that unpack to no more than this may be packed as tightly as they like: machines with torch have the memory."""
MAX_EXPANSION = 200
"""Of larger data. Probabilities shrink to about a half, and bombs to 1/1000. So do rows of zeros and a single one for
many classes, which can be saved uncompressed."""
MAX_DATA_BYTES = 2**31
"""Of a file of a data set, which is held in memory: those that we know have at most 150 MB."""
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class FileRuleError(MpcsError, ValueError):
    """A rule that a file breaks; the message does not name the file."""


def check_regular(path: Path, *, most_bytes: int | None = None) -> None:
    """Refuse a path that is no regular file, before it is opened: a pipe would block, and a device may never end.

    Links are followed. A file that is read at once has a limit on its size.

    Raises:
        FileRuleError: If it is something else or too large.
        FileNotFoundError: If there is nothing.
    """
    found = path.stat()
    kind = stat.S_IFMT(found.st_mode)
    if kind != stat.S_IFREG:
        raise FileRuleError(f"must be a regular file, but is {_KINDS.get(kind, 'something else')}")
    if most_bytes is not None and found.st_size > most_bytes:
        raise FileRuleError(f"must have at most {most_bytes} bytes, but has {found.st_size}")


def read_limited(path: Path, limit: int) -> bytes:
    """Read a regular file at once.

    Raises:
        FileRuleError: If it is something else, or has more bytes than the limit.
        FileNotFoundError: If there is nothing.
    """
    check_regular(path, most_bytes=limit)
    with path.open("rb") as file:
        return file.read(limit)  # no more, should the file grow meanwhile


def check_member(member: zipfile.ZipInfo) -> None:
    """Refuse a member of a zip file that expands far beyond its bytes; a smaller one can be read as a stream.

    Raises:
        FileRuleError: If it expands more than `MAX_EXPANSION` times, to more than `FREE_BYTES`, or is packed by a
            method whose steps have no limit.
    """
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise FileRuleError(f"{quoted(member.filename)} must be stored or deflated, but has another compression")
    packed, unpacked = member.compress_size, member.file_size
    if unpacked > FREE_BYTES and unpacked > MAX_EXPANSION * packed:
        rule = f"must expand to at most {MAX_EXPANSION} times its size or {FREE_BYTES} bytes"
        problem = f"but {packed} bytes expand to {unpacked}: save it uncompressed"
        raise FileRuleError(f"{quoted(member.filename)} {rule}, {problem}")


def load_tensors(path: Path, *, mmap: bool = False) -> Any:
    """Load a file of `torch.save` as tensors and plain values, to the CPU; pickles that would run code are refused.

    With ``mmap``, tensors stay on disk until they are read.

    Raises:
        FileRuleError: If it is no regular file, or is packed: `torch.save` packs nothing.
        FileNotFoundError: If there is no such file.
        Exception: Of many kinds, if the file is damaged.
    """
    import torch

    check_regular(path)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > path.stat().st_size:
            raise FileRuleError(f"must not be packed, but {path.stat().st_size} bytes expand to {unpacked}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what the file holds, which its reader checks
        return torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)


def load_fitted(
    path: Path, kind: str, restore: Callable[[Any], Restored], *, source: str, subject: str, error: type[MpcsError]
) -> Restored:
    """Load a fitted module from a file of `torch.save` whose field ``kind`` says what it holds, and restore it.

    Any other problem of the file raises the error, whose message begins with its name, and tells the source (the
    command or class that writes such files) and the subject (their content).

    Raises:
        FileNotFoundError: If there is no such file.
    """
    place = printable(str(path))
    try:
        content = load_tensors(path)
    except FileNotFoundError:
        raise
    except FileRuleError as problem:
        raise error(f"{place}: {problem}") from None
    except Exception as problem:  # zip and pickle raise many kinds
        raise error(f"{place}: is not a file of {source}, and cannot be read") from problem
    if not isinstance(content, dict) or content.get("kind") != kind:
        raise error(f"{place}: is not a file of {source}")
    try:
        return restore(content)
    except Exception as problem:  # any value may have any type
        reason = f"has no {problem}" if isinstance(problem, KeyError) else str(problem)
        reason = printable(" ".join(reason[: 2 * MAX_QUOTED].split()))
        raise error(f"{place}: {subject} is damaged: {reason}") from problem


def check_whole_tensors(values: Iterable[object]) -> None:
    """Refuse tensors that declare more values than their file holds; other values are ignored.

    Raises:
        FileRuleError: If a tensor is not dense, or repeats values that are stored once.
    """
    import torch

    for value in values:
        if not isinstance(value, torch.Tensor):
            continue
        if value.layout != torch.strided or value.device.type != "cpu" or value.is_quantized:
            raise FileRuleError(f"tensors must be dense and on the CPU, but one is {value.layout} on {value.device}")
        if value.numel() * value.element_size() > value.untyped_storage().nbytes():
            shape = quoted(tuple(value.shape))
            raise FileRuleError(
                f"tensors must hold all of their values, but one of shape {shape} does not (contiguous)"
            )
