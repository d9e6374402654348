"""Read untrusted files without running their code or exhausting memory."""

import io
import stat
import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from mpcs_torch.errors import MpcsError, quoted

FREE_BYTES = 2**30
"""The unpacked size in bytes up to which any compression ratio is allowed."""
MAX_EXPANSION = 200
"""The maximum compression ratio of data larger than `FREE_BYTES`. Zip bombs have a ratio of about 1000. So do one-hot
rows of many classes, which must be saved uncompressed."""
MAX_TEXT_BYTES = 500_000_000
"""The maximum size of a text file that is read into memory as a whole, such as the records of a million epochs."""
_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFSOCK: "a socket"}


class FileRuleError(MpcsError, ValueError):
    """The error for a file that breaks a rule. The message does not name the file."""


def check_regular(path: Path, *, max_bytes: int | None = None) -> None:
    """Raise a `FileRuleError` for a path that is not a regular file, or for a file of more than ``max_bytes`` bytes.

    Call this before opening a file, because a pipe blocks and a device may never end. Links are followed.
    """
    status = path.stat()
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise FileRuleError(f"must be a regular file, but is {_KINDS.get(kind, 'something else')}")
    if max_bytes is not None and status.st_size > max_bytes:
        raise FileRuleError(f"must have at most {max_bytes} bytes, but has {status.st_size}")


def read_limited(path: Path, limit: int) -> bytes:
    """Read a whole regular file; raise a `FileRuleError` if it has more than ``limit`` bytes."""
    check_regular(path, max_bytes=limit)
    with path.open("rb") as file:
        return file.read(limit)  # the file may have grown


def read_text(path: Path) -> str:
    """Read a regular file of UTF-8 text.

    Raises:
        FileRuleError: If it is not regular, or has more than `MAX_TEXT_BYTES` bytes.
        UnicodeDecodeError: If it is not UTF-8 text.
    """
    text = read_limited(path, MAX_TEXT_BYTES).decode("utf-8")
    return io.StringIO(text, newline=None).read()  # every line ends with a newline character alone


def check_member(member: zipfile.ZipInfo) -> None:
    """Raise a `FileRuleError` for a zip member that is neither stored nor deflated, or that may be a zip bomb."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise FileRuleError(f"{quoted(member.filename)} must be stored or deflated, but has another compression")
    packed, unpacked = member.compress_size, member.file_size
    if unpacked > FREE_BYTES and unpacked > MAX_EXPANSION * packed:
        rule = f"must expand to at most {MAX_EXPANSION} times its size or {FREE_BYTES} bytes"
        problem = f"but {packed} bytes expand to {unpacked}: save it uncompressed"
        raise FileRuleError(f"{quoted(member.filename)} {rule}, {problem}")


def load_tensors(file: Path | BinaryIO, *, mmap: bool = False) -> Any:
    """Load tensors and plain values from a file of `torch.save` to the CPU, without running code.

    With ``mmap``, tensors stay on disk until they are used. A file that is not regular, or that is compressed, raises a
    `FileRuleError` (`torch.save` never compresses). A damaged file may raise any error.
    """
    import torch

    if isinstance(file, Path):
        check_regular(file)
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
        packed, unpacked = (
            sum(sizes) for sizes in zip(*((m.compress_size, m.file_size) for m in members), strict=True)
        )
        if unpacked > packed:
            raise FileRuleError(f"must not be packed, but {packed} bytes expand to {unpacked}")
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
        if value.layout != torch.strided or value.device.type != "cpu" or value.is_quantized:
            raise FileRuleError(f"tensors must be dense and on the CPU, but one is {value.layout} on {value.device}")
        if value.numel() * value.element_size() > value.untyped_storage().nbytes():
            shape = quoted(tuple(value.shape))
            raise FileRuleError(
                f"tensors must store all of their values, but one of shape {shape} does not (contiguous)"
            )
