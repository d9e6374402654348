"""Small files that unpack to many times their size, in every format. Each function takes the unpacked size in bytes.

``python -m tests.evaluation.files.bombs FOLDER`` writes them to a folder, and reads each in a process with little
memory. It prints a line of JSON for each.
"""

import bz2
import gzip
import json
import lzma
import os
import pickle
import resource
import sys
import time
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow
import torch
from numpy.lib import format as npy
from pyarrow import parquet

from mpcs_torch.errors import MpcsError
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.io import untrusted_files

ROWS = b"0.5,0.5,0\n"
PART = 2**20
"""The unpacked bytes of the parts that packed files repeat."""
Write = Callable[[Path, int], object]


def packed_text(
    path: Path, unpacked: int, *, compress: Callable[[bytes], bytes], rows: bytes = ROWS
) -> None:
    """Write one packed part many times: all three formats allow this."""
    part = compress(rows * (PART // len(rows)))
    path.write_bytes(compress(b"a,b,label\n") + part * (unpacked // PART))


def zstd(content: bytes) -> bytes:
    return bytes(pyarrow.Codec("zstd").compress(content))


def packed_lists(path: Path, unpacked: int) -> None:
    """Write JSON of empty lists: each takes 3 bytes as text, and 56 in memory."""
    path.write_bytes(gzip.compress(b"[" + b"[]," * (unpacked // 56) + b"[]]"))


def many_members(path: Path, unpacked: int) -> None:
    """Write 40 arrays of zeros, none of them large."""
    np.savez_compressed(
        path,
        **{f"scores{place}": np.zeros((unpacked // 40 // 16, 2)) for place in range(40)},
    )


def shared_members(path: Path, unpacked: int) -> None:
    """Write an archive whose directory names the same array many times."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("scores.npy", "w") as member:
            npy.write_array(member, np.zeros((PART // 16, 2)))
        archive.filelist += archive.filelist * (unpacked // PART)


def header(shape: tuple[int, ...], dtype: str = "<f8") -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def huge_shape(path: Path, unpacked: int) -> None:
    """Write an archive with an array whose header declares more values than it has."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("scores.npy", header((unpacked // 16, 2)) + bytes(64))


def empty_texts(path: Path, unpacked: int) -> None:
    """Write an array of texts without characters: its rows take no bytes in the file."""
    path.write_bytes(header((unpacked // 8,), "<U0") + bytes(64))


def repeated(path: Path, unpacked: int, *, column: Any, **options: Any) -> None:
    """Write the same values again and again to a parquet file."""
    table = pyarrow.table({"a": column, "b": column})
    with parquet.ParquetWriter(path, table.schema, **options) as writer:
        for _ in range(1 + unpacked // table.nbytes):
            writer.write_table(table)


MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
TEXTS_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"


def sheet(path: Path, row: str, count: int, *, text: str = "a text") -> None:
    """Write an xlsx file with the XML of a row ``count`` times, and with a text that cells can refer to."""
    from openpyxl import Workbook

    Workbook().save(path)
    with zipfile.ZipFile(path) as archive:
        members = {
            member.filename: archive.read(member).decode() for member in archive.infolist()
        }
    del members["xl/worksheets/sheet1.xml"]
    members["xl/sharedStrings.xml"] = f'<sst xmlns="{MAIN}"><si><t>{text}</t></si></sst>'
    texts = (
        f'<Override PartName="/xl/sharedStrings.xml" ContentType="{TEXTS_TYPE}" /></Types>'
    )
    members["[Content_Types].xml"] = members["[Content_Types].xml"].replace(
        "</Types>", texts
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        with archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as file:
            file.write(f'<worksheet xmlns="{MAIN}"><sheetData>'.encode())
            rows = 1 + PART // len(row)
            for _ in range(count // rows):
                file.write(row.encode() * rows)
            file.write(row.encode() * (count % rows) + b"</sheetData></worksheet>")


def packed_sheet(path: Path, unpacked: int) -> None:
    row = "<row><c><v>0</v></c></row>"
    sheet(path, row, unpacked // len(row))


def wide_rows(path: Path, unpacked: int) -> None:
    """Write rows with a single cell at the right end: readers fill the others."""
    sheet(path, '<row><c r="XFD1"><v>0</v></c></row>', unpacked // 2**17)


def shared_text(path: Path, unpacked: int) -> None:
    """Write cells that refer to one long text."""
    sheet(path, '<row><c t="s"><v>0</v></c></row>', unpacked // PART, text="x" * PART)


def lying_sheet(path: Path, unpacked: int) -> None:
    """Write a member that unpacks to more than it declares; reading it whole unpacks up to 2 GB before the end."""
    sheet(path, " ", unpacked)
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("xl/worksheets/sheet1.xml").file_size
    content = path.read_bytes()
    for width in (
        4,
        8,
    ):  # the size stands in the directory, and before the member as one of 64 bits
        content = content.replace(
            size.to_bytes(width, "little"), (unpacked // 100).to_bytes(width, "little")
        )
    path.write_bytes(content)


def hdf5(path: Path, *, rows: int, columns: int, names: Any = None) -> None:
    """Write a matrix of scores that are not stored, because all are the fill value."""
    with h5py.File(path, "w") as file:
        file["modelset"] = (
            np.array([f"m{row}".encode() for row in range(rows)])
            if names is None
            else names
        )
        file["segset"] = np.array([f"s{column}".encode() for column in range(columns)])
        file.create_dataset(
            "scores", (rows, columns), "f8", chunks=(1, columns), compression="gzip"
        )


def empty_matrix(path: Path, unpacked: int) -> None:
    hdf5(path, rows=unpacked // 8 // 10**5 + 1, columns=10**5)


def long_names(path: Path, unpacked: int) -> None:
    """Write a matrix whose rows have long names, which its columns repeat."""
    hdf5(path, rows=1, columns=unpacked // 2**15, names=np.array([b"x" * 2**15]))
    with h5py.File(path, "a") as file:
        file["scores"][:] = 0.0


def shared_names(path: Path, unpacked: int) -> None:
    """Write names that refer to one long text."""
    rows = unpacked // PART
    with h5py.File(path, "w") as file:
        names = file.create_dataset("modelset", (rows,), h5py.string_dtype())
        names[0] = "x" * PART
        file["segset"] = np.array([b"s"])
        file["scores"] = np.zeros((rows, 1))
        start, size = names.id.get_offset(), names.id.get_storage_size()
    content = bytearray(path.read_bytes())
    content[start : start + size] = content[start : start + size // rows] * rows
    path.write_bytes(content)


def packed_tensors(path: Path, unpacked: int) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("p/data.pkl", pickle.dumps({}))
        with archive.open("p/data/0", "w", force_zip64=True) as member:
            for _ in range(unpacked // PART):
                member.write(bytes(PART))


def nested_lists(path: Path, unpacked: int) -> None:
    """Write a list of lists of lists ..., each of which refers ten times to the next."""
    value: list[Any] = [0]
    for _ in range(len(str(unpacked))):
        value = [value] * 10
    torch.save({"preds": torch.zeros(10, 2), "labels": value}, path)


def one_text(path: Path, unpacked: int) -> None:
    labels = ["x" * PART] * (unpacked // PART)
    torch.save({"preds": torch.zeros(len(labels), 2), "labels": labels}, path)


def views(path: Path, unpacked: int) -> None:
    """Write many tensors that share their values."""
    values = torch.zeros(PART // 8, 2)
    torch.save({f"preds{place}": values[:] for place in range(unpacked // PART)}, path)


TEXT = "x" * 10**5
BOMBS: Mapping[str, Write] = {
    "p.csv.gz": partial(packed_text, compress=gzip.compress),
    "p.csv.bz2": partial(packed_text, compress=bz2.compress),
    "p.csv.zst": partial(packed_text, compress=zstd),
    "p.csv.xz": partial(packed_text, compress=lzma.compress),
    "one line.csv.gz": partial(packed_text, compress=gzip.compress, rows=b"0"),
    "lines.jsonl.gz": partial(
        packed_text, compress=gzip.compress, rows=b'{"a": 0.5, "b": 0.5, "label": 0}\n'
    ),
    "lists.json.gz": packed_lists,
    "members.npz": many_members,
    "shared members.npz": shared_members,
    "shape.npz": huge_shape,
    "texts.npy": empty_texts,
    "numbers.parquet": partial(repeated, column=pyarrow.array(np.zeros(2**20))),
    "lists.parquet": partial(repeated, column=pyarrow.array([[0.0] * 1000] * 1000)),
    "texts.parquet": partial(repeated, column=pyarrow.array([TEXT] * 1000)),
    "prefixes.parquet": partial(
        repeated,
        column=pyarrow.array([TEXT] * 1000),
        use_dictionary=False,
        column_encoding={"a": "DELTA_BYTE_ARRAY", "b": "DELTA_BYTE_ARRAY"},
    ),
    "records.parquet": partial(repeated, column=pyarrow.array([{"text": TEXT}] * 1000)),
    "packed.xlsx": packed_sheet,
    "wide.xlsx": wide_rows,
    "shared.xlsx": shared_text,
    "lying.xlsx": lying_sheet,
    "matrix.h5": empty_matrix,
    "names.h5": long_names,
    "shared names.h5": shared_names,
    "packed.pt": packed_tensors,
    "nested.pt": nested_lists,
    "text.pt": one_text,
    "views.pt": views,
}
"""The bombs by file name."""
MEMORY = 2 * 2**30
"""The bytes of memory of the machine that reads the bombs."""
UNPACKED, UNPACKED_BY_DEFLATE = 3 * 10**9, 6 * 10**8
"""The bytes to which the bombs unpack that `main` writes. The others take long to write."""
DEFLATED = ("members.npz", "packed.xlsx", "lying.xlsx", "packed.pt")


def refusal(path: Path) -> str:
    """Read all columns of a file, and return the error; empty if there is none."""
    try:
        table = open_table(path)
        table.peek()
        table.read(table.names)
    except MpcsError as error:
        return str(error)
    return ""


def read_with_little_memory(path: Path) -> None:
    """Print how a process with `MEMORY` bytes, of which the imports take some, refuses a file; end the process."""
    untrusted_files.memory_bytes = lambda: MEMORY
    virtual, resident = [
        int(pages) for pages in Path("/proc/self/statm").read_text().split()[:2]
    ]
    limit = (virtual - resident) * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    started = time.perf_counter()
    message = refusal(path)
    told = {"name": path.name, "seconds": time.perf_counter() - started, "message": message}
    print(json.dumps(told), flush=True)
    os._exit(0)


def main(folder: Path) -> None:
    """Write and read all bombs."""
    import openpyxl  # noqa: F401  # imported before memory is limited

    for name, write in BOMBS.items():
        write(folder / name, UNPACKED_BY_DEFLATE if name in DEFLATED else UNPACKED)
        child = os.fork()
        if not child:
            read_with_little_memory(folder / name)
        os.waitpid(child, 0)
        (folder / name).unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
