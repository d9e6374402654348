"""Warnings that an evaluation may mislead, e.g. because test rows were seen in training, or classes are rare."""

from collections.abc import Collection, Sequence

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.error_sentences import WARNINGS

MIN_OF_DANGEROUS_CLASS = 59
"""The smallest number of samples with which 0 misses show a miss rate below 5 % at a confidence of 95 %."""
MAX_KNOWN = 4096
MAX_DUPLICATE_SHARE = 0.01
"""The largest share of repeated rows in a data set; above it, rows of two data sets may match by chance."""
MIN_OVERLAP = 0.05
"""A warning is given if at least this share of the rows is also in another data set."""


class EvaluationWarning(UserWarning):
    """A reason why an evaluation may mislead, with a code that docs/how-to/misleading-evaluations.md explains.

    The text begins with the code. To mute the code E4, call ``warnings.filterwarnings("ignore", "E4")`` before a fit,
    call `Result.muted` on a result, or give a command the option ``--mute E4``.

    Example:
        >>> print(EvaluationWarning("E4", "few samples of malignant (3)"))
        E4: few samples of malignant (3) (docs/how-to/misleading-evaluations.md#e4)
    """

    def __init__(self, code: str, sentence: str) -> None:
        assert code in WARNINGS, code
        super().__init__(code, sentence)
        self.code = code
        self.sentence = sentence
        self.page = f"docs/how-to/misleading-evaluations.md#{code.lower()}"

    def __str__(self) -> str:
        return f"{self.code}: {self.sentence} ({self.page})"


def rare_classes(
    names: Sequence[str],
    counts: Tensor,
    dangerous: Tensor,
    limited: Collection[str] = (),
    units: str = "samples",
) -> list[EvaluationWarning]:
    """Return a warning if classes that are dangerous to miss, without an error limit, have fewer than 59 samples.

    ``dangerous`` (C, C) marks the dangerous errors (row: true class), and ``limited`` names the classes with a limit.
    """
    rows = zip(names, counts.tolist(), dangerous.any(dim=1).tolist(), strict=True)
    rare = [
        f"{name} ({n})"
        for name, n, is_ in rows
        if is_ and n < MIN_OF_DANGEROUS_CLASS and name not in limited
    ]
    few = f"{', '.join(rare[:5])}{' and others' if len(rare) > 5 else ''}"
    why = f"it takes {MIN_OF_DANGEROUS_CLASS} without a miss to show a rate below 5 %"
    sentence = f"few {units} of classes that are dangerous to miss, {few}: {why}"
    return [EvaluationWarning("E4", sentence)] if rare else []


def known_rows(hashes: Tensor) -> Tensor:
    """Return the 4096 smallest distinct ``hashes`` (N,) of rows; none if more than 1 % of the rows are repeated."""
    distinct, counts = torch.unique(hashes, return_counts=True)
    repeats = int(counts[counts > 1].sum()) > MAX_DUPLICATE_SHARE * len(hashes)
    kept: Tensor = distinct[: 0 if repeats else MAX_KNOWN].clone()
    return kept


def warn_of_known(known: Tensor, hashes: Tensor, where: str) -> list[EvaluationWarning]:
    """Return a warning if many ``hashes`` (N,) of rows are in ``known``, the `known_rows` of data named ``where``."""
    is_sketch = len(known) == MAX_KNOWN  # the larger hashes of the other sample are missing
    distinctive = hashes if len(known_rows(hashes)) else hashes[:0]
    comparable = distinctive[distinctive <= known[-1]] if is_sketch else distinctive
    share = torch.isin(comparable, known).double().mean().item() if len(comparable) else 0.0
    overlap = f"{'about ' if is_sketch else ''}{100 * share:.3g} % of the {len(hashes)} rows are also in {where}"
    return (
        [EvaluationWarning("E1", f"{overlap}: values look better than on new rows")]
        if share >= MIN_OVERLAP
        else []
    )


def hash_rows(rows: Tensor) -> Tensor:
    """Round ``rows`` (N, C) to float32, and return a hash of each row: (N,), int64, on the CPU."""
    bits = (rows.detach().cpu().float() + 0.0).view(torch.int32).long()  # -0.0 becomes 0.0
    return hashed(hashed(bits + (torch.arange(rows.shape[1]) << 32)).sum(dim=1))


def hashed(numbers: Tensor) -> Tensor:
    """Return a 62-bit hash of each number (SplitMix64; Steele, Lea, Flood, OOPSLA 2014)."""
    mixed = numbers.numpy().astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return torch.from_numpy(
        ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(2)).astype(np.int64)
    )
