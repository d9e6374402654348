"""Probabilities that were rounded to a few decimals, so that those of a row do not sum to 1."""

from collections.abc import Sequence

import torch
from torch import Tensor

DECIMALS = range(2, 7)
"""The decimals that may be shown: with 1, rounding could explain nearly any sum; with 7, sums are exact enough."""
LOWEST = 0.5
"""The lowest sum that is accepted, since more than half of the probability would be guessed."""


class RoundedSums:
    """Accept sums that the rounding of the file explains, and remember them."""

    def __init__(self) -> None:
        self.decimals: int | None = None
        """As shown in the file; None if no sum needed it so far."""
        self._lowest, self._highest, self._rows = 1.0, 1.0, 0

    def accepts(self, scores: Tensor, total: Tensor, off: Tensor) -> bool:
        """Return whether rounding explains the sums of all rows that are off, and remember them.

        A sum is explained if it is within half a unit of the last decimal for each number. What lifts a sum above 1
        has been rounded up, so zeros do not count there.

        Args:
            scores: ``(n, C)`` probabilities as the file has them.
            total: ``(n, 1)``, float64: their sums.
            off: ``(n,)``: the rows whose sum is not 1.
        """
        decimals = _shown(scores)
        if decimals is None:
            return False
        half, sums, rows = 0.5 * 10.0**-decimals, total.squeeze(1)[off], scores[off]
        room = 1e-9  # for the sums of floating point numbers
        most = 1 + half * (rows > 0).sum(dim=1) + room
        least = max(LOWEST, 1 - half * scores.shape[1] - room)
        if not bool(((sums >= least) & (sums <= most)).all()):
            return False
        self.decimals = max(decimals, self.decimals or 0)
        self._lowest, self._highest = min(self._lowest, sums.min().item()), max(self._highest, sums.max().item())
        self._rows += len(sums)
        return True

    @staticmethod
    def joined(parts: "Sequence[RoundedSums]") -> "RoundedSums":
        """Return what was accepted in several parts of a file."""
        whole = RoundedSums()
        for part in parts:
            if part.decimals is not None:
                whole.decimals = max(part.decimals, whole.decimals or 0)
                whole._lowest, whole._highest = min(whole._lowest, part._lowest), max(whole._highest, part._highest)
                whole._rows += part._rows
        return whole

    def note(self) -> str | None:
        """Say what was accepted; None if all sums were 1."""
        if self.decimals is None:
            return None
        span = f"{self._lowest:.4g} to {self._highest:.4g}"
        shown = f"probabilities are rounded to {self.decimals} decimals"
        return f"The {shown}: {self._rows} rows sum to {span}, and were divided by their sum."


def _shown(scores: Tensor) -> int | None:
    """Return how many decimals numbers have; None if they have more than `DECIMALS`."""
    for decimals in DECIMALS:
        unit = 10.0**decimals
        # A whole number divided by a power of ten is rounded as the decimal number that was read.
        if torch.equal(((scores.double() * unit).round() / unit).to(scores.dtype), scores):
            return decimals
    return None
