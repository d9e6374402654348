"""The names of the paper's experiments and its printed numbers, without torch, so that commands list them fast."""

import json

from mpcs_torch.io.packaged import packaged_folder

EXPERIMENTS = ("exp01", "exp01-breast-cancer", *(f"exp{number:02}" for number in range(2, 11)), "case-study")
QUICK = tuple(name for name in EXPERIMENTS if name not in ("exp03", "exp05", "exp10", "case-study"))
"""The experiments that take seconds: all except those on MNIST."""
BENCHMARKS = ("accuracy", "f1_macro", "mcc", "mean_squared_error", "cross_entropy")
"""The metrics that the paper compares with MPCS, in the order of its tables."""
RECORD_FILES = {**{name: f"{name}.csv" for name in ("exp03", "exp05", "exp07", "exp09")}, "case-study": "compare1.csv"}
"""The published records of experiments that can be replayed (IRIS and DIGITS were split without a seed)."""

CASE_STUDY_PICKS = {**dict.fromkeys(BENCHMARKS, 132), "mpcs": 133}
CASE_STUDY_ERRORS = {132: (5108, 2621), 133: (5128, 2605)}
"""The number of errors and of dangerous errors of each picked epoch."""

_NUMBERS = json.loads((packaged_folder("paper") / "published.json").read_text(encoding="utf-8"))
TABLE_2: dict[str, list[float]] = _NUMBERS["table_2"]
"""Spearman correlation of MPCS with each benchmark over the epochs of an experiment."""
TABLE_3: dict[str, list[float]] = _NUMBERS["table_3"]
"""Milliseconds of one evaluation, forward pass included: the benchmarks, then MPCS."""
FIGURE_5: dict[int, list[list[int]]] = {int(epoch): matrix for epoch, matrix in _NUMBERS["figure_5"].items()}
"""The confusion matrix of each epoch, as printed: rows are predictions, columns labels."""
FIGURE_6: dict[str, float] = _NUMBERS["figure_6"]
"""The sum of each metric over the epochs: that of the run that learns with MPCS, divided by that of the plain run."""
