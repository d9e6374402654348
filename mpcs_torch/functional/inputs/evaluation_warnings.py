"""`EvaluationWarning`: what makes an evaluation misleading, such as rows of the fit, and classes with few samples."""

from collections.abc import Collection, Sequence

import numpy as np
import torch
from torch import Tensor

MIN_OF_DANGEROUS_CLASS = 59
"""With fewer samples of a class, none of them missed, its rate of misses may exceed 5 % (at confidence 95 %)."""
MAX_KNOWN = 4096
MAX_REPEATED, MIN_SHARED = 0.01, 0.05
"""Of the rows: with more that are equal, such as votes of a forest, rows of other samples are equal by chance, too."""


class EvaluationWarning(UserWarning):
    """Something that makes an evaluation misleading, with a stable code: docs/how-to/misleading-evaluations.md.

    The text begins with the code: ``warnings.filterwarnings("ignore", "E4")`` mutes warnings of a fit,
    `Result.muted` those of a result, and ``--mute E4`` those of a command.

    Example:
        >>> print(EvaluationWarning("E4", "few samples of malignant (3)"))
        E4: few samples of malignant (3) (docs/how-to/misleading-evaluations.md#e4)
    """

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(code, sentence)
        self.code, self.sentence = code, sentence
        self.page = f"docs/how-to/misleading-evaluations.md#{code.lower()}"

    def __str__(self) -> str:
        """Return code, sentence and page."""
        return f"{self.code}: {self.sentence} ({self.page})"


def rare_classes(
    names: Sequence[str], counts: Tensor, dangerous: Tensor, limited: Collection[str] = (), units: str = "samples"
) -> list[EvaluationWarning]:
    """Warn of fewer than 59 units, by counts (C,), of classes with dangerous errors, (C, C), that are not limited."""
    rows = zip(names, counts.tolist(), dangerous.any(dim=1).tolist(), strict=True)
    rare = [f"{name} ({n})" for name, n, is_ in rows if is_ and n < MIN_OF_DANGEROUS_CLASS and name not in limited]
    few = f"{', '.join(rare[:5])}{' and others' if len(rare) > 5 else ''}"
    why = f"with fewer than {MIN_OF_DANGEROUS_CLASS}, not even 0 misses show a rate below 5 %"
    told = f"few {units} of classes that are dangerous to miss, {few}: {why}"
    return [EvaluationWarning("E4", told)] if rare else []


def known_rows(hashes: Tensor) -> Tensor:
    """Return the 4096 smallest of the hashes of rows (N,), by which they are recognized; none if rows repeat."""
    distinct, counts = torch.unique(hashes, return_counts=True)
    repeats = int(counts[counts > 1].sum()) > MAX_REPEATED * len(hashes)
    kept: Tensor = distinct[: 0 if repeats else MAX_KNOWN].clone()
    return kept


def warn_of_known(known: Tensor, hashes: Tensor, where: str) -> list[EvaluationWarning]:
    """Warn if rows, by their hashes (N,), are in another sample, by its `known_rows`; ``where`` names it."""
    is_part = len(known) == MAX_KNOWN  # then larger hashes are of rows that may be known
    distinctive = hashes if len(known) and len(known_rows(hashes)) else hashes[:0]
    among = distinctive[distinctive <= known[-1]] if is_part else distinctive
    share = torch.isin(among, known).double().mean().item() if len(among) else 0.0
    told = f"{'about ' if is_part else ''}{100 * share:.3g} % of the {len(hashes)} rows are also in {where}"
    return [EvaluationWarning("E1", f"{told}: values look better than on new rows")] if share >= MIN_SHARED else []


def hash_rows(rows: Tensor) -> Tensor:
    """Hash rows (N, C) of numbers as float32, so that equal rows have equal hashes: (N,), int64, on the CPU."""
    bits = (rows.detach().cpu().float() + 0.0).view(torch.int32).long()  # -0.0 becomes 0.0
    return hashed(hashed(bits + (torch.arange(rows.shape[1]) << 32)).sum(dim=1))


def hashed(numbers: Tensor) -> Tensor:
    """Return a hash of 62 bits of each number (SplitMix64; Steele, Lea, Flood, OOPSLA 2014)."""
    mixed = numbers.numpy().astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return torch.from_numpy(((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(2)).astype(np.int64))
