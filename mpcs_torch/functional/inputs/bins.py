"""Bins of samples, whose sums are kept apart so that intervals can leave out one bin at a time."""

from typing import Any, NamedTuple

from torch import Tensor


class Bins(NamedTuple):
    """The bin of each of M samples."""

    codes: Tensor
    """(M,), int64, in [0, ``number``)."""
    number: int
    """B, the number of bins, some of which may be empty."""

    def at(self, rows: slice) -> "Bins":
        """Return the bins of some of the samples."""
        return Bins(self.codes[rows], self.number)

    def sum(self, values: Tensor) -> Tensor:
        """Sum values (M, ...) over the samples of each bin: (B, ...)."""
        return values.new_zeros(self.number, *values.shape[1:]).index_add_(0, self.codes, values)

    def sum_by(self, codes: Tensor, size: int, values: Tensor) -> Tensor:
        """Sum values (M,) over the samples of each bin and code in [0, size): (B, size)."""
        cells = values.new_zeros(self.number * size).index_add_(0, self.codes * size + codes, values)
        return cells.view(self.number, size)


def in_bins(samples: Any, bins: Bins) -> Any:
    """Return a batch of samples of any kind, or one that holds such `Labels`, so that its sums are over bins."""
    if hasattr(samples, "labels"):
        return samples._replace(labels=samples.labels._replace(bins=bins))
    return samples._replace(bins=bins)
