"""Sums of rows in bins: what values, intervals, groups and comparisons are all computed from."""

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.functional.inputs.evaluation_warnings import hashed

BUDGET = 2**21
"""The maximum number of values in the bins of all rows: 16 MiB."""
BITS = 62
"""Of an identifier that was hashed. Bins are folded by leaving out bits."""
MIN_BITS = 5
"""With fewer than 32 bins, deviations would be known too badly."""
MIN_PENDING = 2**17
"""The maximum number of pending values: more are joined into the bins."""


class BinnedSums:
    """The sums of rows for each bin of each group.

    A bin is a row while there are few, or a cluster of rows that are not independent. If the numbers become more than
    ``budget``, bins are joined by the hash of their identifiers, so that those of several models stay the same.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self._budget = budget
        self.bits: int | None = None
        """The bits of a hash that bins are added with; None while each identifier has its own bin."""
        self._groups, self._ids = (torch.zeros(0, dtype=torch.int64) for _ in range(2))
        self._sums = torch.zeros(0, 0, dtype=torch.float64)
        self._pending = list[tuple[Tensor, Tensor, Tensor]]()
        self._number = 0
        """Of the pending values."""

    @property
    def groups(self) -> Tensor:
        """(B,): the code of the group of each bin."""
        self._join_pending()
        return self._groups

    @property
    def ids(self) -> Tensor:
        """(B,): the identifier of each bin; groups may have bins with the same one."""
        self._join_pending()
        return self._ids

    @property
    def sums(self) -> Tensor:
        """(B, K)."""
        self._join_pending()
        return self._sums

    def add(self, groups: Tensor, bins: Tensor, sums: Tensor) -> None:
        """Add sums (n, K) of bins (n,) with as many ``bits`` of groups (n,); they may occur more than once."""
        if self.bits is not None and len(self._ids) and not bool(groups.any() | self._groups.any()):
            places = torch.searchsorted(self._ids, bins).clamp_(max=len(self._ids) - 1)
            if self._ids[places].equal(bins):  # as of most batches, once there are few bins
                self._sums.index_add_(0, places, sums)
                return
        self._pending.append((groups, bins, sums))
        self._number += sums.numel()
        if self._number > max(MIN_PENDING, self._sums.numel() // 4):  # to join a few would take as long as all
            self._join_pending()

    def exceeds(self, most: int) -> bool:
        """Return whether there are more numbers."""
        return self._sums.numel() + self._number > most and self.sums.numel() > most

    def _join_pending(self) -> None:
        if not self._pending:
            return
        parts = [*([(self._groups, self._ids, self._sums)] if len(self._ids) else []), *self._pending]
        self._pending, self._number = [], 0
        self._join(*(torch.cat(each) for each in zip(*parts, strict=True)))
        while self._sums.numel() > self._budget and self.bits != MIN_BITS:
            # A quarter of them, so that they are not folded again soon.
            distinct = len(self._ids.unique())  # type: ignore[no-untyped-call]
            self.fold(max(MIN_BITS, int(np.log2(max(2, distinct // 4)))))

    def fold(self, bits: int) -> None:
        """Join bins until their identifiers differ in at most so many bits."""
        self._join_pending()
        if self.bits is None or bits < self.bits:
            self._join(self._groups, in_bits(self._ids, self.bits, bits), self._sums)
            self.bits = bits

    def merge(self, other: "BinnedSums", groups: Tensor | None = None, *, first: int = 0) -> None:
        """Add the sums of other rows, which stay as they are.

        ``groups`` are the codes here of its groups, by their codes there (default: the same). ``first`` is added to its
        identifiers, if they are numbers of rows.
        """
        for each in (self, other):  # joining may leave fewer bits
            each._join_pending()
        added = BinnedSums(other._budget)
        added.__dict__.update(other.__dict__)
        if added.bits is None:
            added._ids = added._ids + first
        bits = min(each.bits or BITS for each in (self, added))
        if bits < BITS:
            self.fold(bits)
            added.fold(bits)
        self.add(added.groups if groups is None else groups[added.groups], added.ids, added.sums)

    def by_group(self) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Yield each group with its bins' identifiers (B,), in ascending order, and their sums (B, K)."""
        order = self.groups.argsort(stable=True)
        codes, counts = self.groups[order].unique_consecutive(return_counts=True)  # type: ignore[no-untyped-call]
        for code, places in zip(codes.tolist(), order.tensor_split(counts.cumsum(0)[:-1]), strict=True):
            yield code, self.ids[places], self.sums[places]

    def _join(self, groups: Tensor, ids: Tensor, sums: Tensor) -> None:
        """Add up the sums of equal bins of equal groups, and order them by identifier, then group."""
        order = groups.argsort(stable=True)
        order = order[ids[order].argsort(stable=True)]
        groups, ids = groups[order], ids[order]
        is_new = torch.ones(len(ids), dtype=torch.bool)
        is_new[1:] = (ids[1:] != ids[:-1]) | (groups[1:] != groups[:-1])
        places = torch.empty_like(order)
        places[order] = is_new.long().cumsum(0) - 1
        self._groups, self._ids = groups[is_new], ids[is_new]
        self._sums = sums.new_zeros(len(self._ids), sums.shape[1]).index_add_(0, places, sums)


def in_bits(ids: Tensor, bits: int | None, wanted: int | None) -> Tensor:
    """Return identifiers with some bits of a hash, None for identifiers themselves, with fewer bits: (n,)."""
    if bits == wanted or wanted is None:
        return ids
    return hashed(ids) >> (BITS - wanted) if bits is None else ids >> (bits - wanted)


def ids_of_names(names: Sequence[str]) -> Tensor:
    """Return an identifier for each name, the same on every machine: (n,), int64."""
    digests = (hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest() for name in names)
    return torch.tensor([int.from_bytes(digest, "little") >> 2 for digest in digests], dtype=torch.int64)
