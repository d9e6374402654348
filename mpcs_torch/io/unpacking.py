"""Unpack compressed files and zip archives; the bytes are counted while they are unpacked, or before."""

import zipfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from mpcs_torch.errors import quoted
from mpcs_torch.io.untrusted_files import MAX_MEMBERS, FileRuleError, Unpacked

BLOCK_BYTES = 2**20


def unpack(path: Path, compression: str) -> bytes:
    """Return the content of a file that is packed as a whole, by ``compression``: "gzip", "bz2" or "zstd"."""
    from pyarrow import CompressedInputStream, OSFile

    content = BytesIO()
    unpacked = Unpacked(path)
    with CompressedInputStream(OSFile(str(path)), compression) as stream:
        while block := stream.read(BLOCK_BYTES):
            unpacked.add(len(block))
            content.write(block)
    return content.getvalue()


def zip_members(path: Path) -> Sequence[zipfile.ZipInfo]:
    """Return the members of a zip archive. Refuse too many members, a large unpacked size, and unusual compressions.

    The declared sizes can be trusted if readers ask for a number of bytes. Without a number, zipfile unpacks up to 2 GB
    more before it stops: see `unpacked_zip`.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise FileRuleError("members_at_most", "", len(members), maximum=MAX_MEMBERS)
    unpacked = Unpacked(path)
    for member in members:
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FileRuleError("known_compression", quoted(member.filename))
        unpacked.add(member.file_size)
    return members


def unpacked_zip(path: Path) -> BytesIO:
    """Return an uncompressed copy of a zip archive, for libraries that read members without a number of bytes."""
    copy = BytesIO()
    members = zip_members(path)
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(copy, "w") as stored:
        for member in members:
            with archive.open(member) as file:
                stored.writestr(member.filename, file.read(member.file_size))
    return copy
