"""Sums of the rows of each unit, from which values, intervals, groups and comparisons are computed."""

import hashlib
from collections.abc import Iterator, Sequence
from copy import copy

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.errors import InvalidValueError
from mpcs_torch.functional.inputs.evaluation_warnings import hashed
from mpcs_torch.functional.inputs.labels import Bins

BUDGET = 2**21
"""The maximum number of sums of the units of all rows (16 MiB)."""
BITS = 62
"""The number of bits of a hashed identifier. With fewer bits, some identifiers become equal: units are joined."""
MIN_BITS = 5
"""The minimum number of bits of an identifier: fewer than 32 units would give a poor estimate of the variance."""

LEADING = 3
"""The number of columns before the sums of metrics: rows, the sum of labels, and the sum of weights."""
WEIGHTS = 2
"""The place of the sum of weights among these columns."""


class UnitSums:
    """The sums of the rows of each unit of each group.

    A unit is one row, or one cluster of rows that are not independent; it has K sums. If there are more than ``budget``
    sums in all units, the units whose hashed identifiers begin with the same bits are joined (folded). The hashes
    depend only on the identifiers, so the units of all models can be compared.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self._budget = budget
        self.bits: int | None = None
        """The number of bits of hashed identifiers; None while each identifier is a unit of its own."""
        self._groups = torch.zeros(0, dtype=torch.int64)
        self._ids = torch.zeros(0, dtype=torch.int64)
        self._sums = torch.zeros(0, 0, dtype=torch.float64)
        self._pending = list[tuple[Tensor, Tensor, Tensor]]()
        self._pending_values = 0

    @property
    def groups(self) -> Tensor:
        """(U,), int64: the code of the group of each unit."""
        self._join_pending()
        return self._groups

    @property
    def ids(self) -> Tensor:
        """(U,), int64: the identifier of each unit, which is unique within its group."""
        self._join_pending()
        return self._ids

    @property
    def sums(self) -> Tensor:
        """(U, K), float64: the sums of each unit."""
        self._join_pending()
        return self._sums

    def add(self, groups: Tensor, ids: Tensor, sums: Tensor) -> None:
        """Add row i of ``sums`` (n, K) to unit ``ids[i]`` (its identifier, `bits` bits) of group ``groups[i]``."""
        is_folded = self.bits is not None and len(self._ids) > 0
        if is_folded and not bool(groups.any() | self._groups.any()):  # all are of group 0
            places = torch.searchsorted(self._ids, ids).clamp_(max=len(self._ids) - 1)
            if self._ids[places].equal(ids):  # true for most batches after folding
                self._sums.index_add_(0, places, sums)
                return
        self._pending.append((groups, ids, sums))
        self._pending_values += sums.numel()
        # Joining few values takes as long as joining many.
        if self._pending_values > max(2**17, self._sums.numel() // 4):
            self._join_pending()

    def exceeds(self, most: int) -> bool:
        """Return whether there are more than ``most`` sums in all units."""
        return self._sums.numel() + self._pending_values > most and self.sums.numel() > most

    def _join_pending(self) -> None:
        if not self._pending:
            return
        parts = list(self._pending)
        if len(self._ids):  # before the first rows, sums have no width
            parts.insert(0, (self._groups, self._ids, self._sums))
        self._pending = []
        self._pending_values = 0
        groups = torch.cat([part[0] for part in parts])
        ids = torch.cat([part[1] for part in parts])
        self._join(groups, ids, torch.cat([part[2] for part in parts]))
        while self._sums.numel() > self._budget and self.bits != MIN_BITS:
            # Fold to a quarter of the units, so that they are not folded again soon.
            distinct = len(self._ids.unique())  # type: ignore[no-untyped-call]
            self.fold(max(MIN_BITS, int(np.log2(max(2, distinct // 4)))))

    def fold(self, bits: int) -> None:
        """Shorten hashed identifiers to at most ``bits`` bits, and join the units whose identifiers become equal."""
        self._join_pending()
        if self.bits is None or bits < self.bits:
            self._join(self._groups, in_bits(self._ids, self.bits, bits), self._sums)
            self.bits = bits

    def merge(
        self, other: "UnitSums", groups: Tensor | None = None, *, first: int = 0
    ) -> None:
        """Add the sums of other rows; ``other`` does not change.

        A group with the code c in ``other`` has the code ``groups[c]`` here; by default, the code c. ``first`` is added
        to the identifiers in ``other`` if they are positions of rows: the positions then continue those here.
        """
        # This may fold units, which changes their bits.
        self._join_pending()
        other._join_pending()
        added = copy(other)
        if added.bits is None:
            added._ids = added._ids + first
        bits = min(self.bits or BITS, added.bits or BITS)
        if bits < BITS:
            self.fold(bits)
            added.fold(bits)
        groups_here = added.groups if groups is None else groups[added.groups]
        self.add(groups_here, added.ids, added.sums)

    def by_group(self) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Yield for each group: its code, the identifiers of its units, (U,), ascending, and their sums, (U, K)."""
        for code, places in places_by_code(self.groups).items():
            yield code, self.ids[places], self.sums[places]

    def _join(self, groups: Tensor, ids: Tensor, sums: Tensor) -> None:
        """Add up sums of the same unit and group, and order the results by identifier, then by group."""
        order = groups.argsort(stable=True)
        order = order[ids[order].argsort(stable=True)]
        groups, ids = groups[order], ids[order]
        is_new = torch.ones(len(ids), dtype=torch.bool)
        is_new[1:] = (ids[1:] != ids[:-1]) | (groups[1:] != groups[:-1])
        places = torch.empty_like(order)
        places[order] = is_new.long().cumsum(0) - 1
        self._groups, self._ids = groups[is_new], ids[is_new]
        self._sums = Bins(places, len(self._ids)).sum(sums)


def join_alike(tables: Sequence[UnitSums]) -> None:
    """Join units until all tables have the same.

    Raises:
        ValueError: If the tables have different units.
    """
    first, *others = tables
    bits = min(table.bits or BITS for table in tables)
    if bits < BITS:
        for table in tables:
            table.fold(bits)
    for other in others:
        of_first = first.sums[:, :LEADING]
        is_same = first.ids.equal(other.ids)
        if not is_same or not torch.allclose(of_first, other.sums[:, :LEADING]):
            raise InvalidValueError("same_rows", "models")


def places_by_code(codes: Tensor) -> dict[int, Tensor]:
    """Return, for each distinct code in ``codes`` (n,), the ascending places of the rows that have it."""
    order = codes.argsort(stable=True)
    distinct, counts = codes[order].unique_consecutive(return_counts=True)  # type: ignore[no-untyped-call]
    places = order.split_with_sizes(counts.tolist())
    return dict(zip(distinct.tolist(), places, strict=True))


def in_bits(ids: Tensor, bits: int | None, wanted: int | None) -> Tensor:
    """Shorten identifiers (n,) from ``bits`` to ``wanted`` bits. None means identifiers that are not hashed yet."""
    if bits == wanted or wanted is None:
        return ids
    if bits is None:
        ids = hashed(ids)
        bits = BITS
    return ids >> (bits - wanted)  # keeps the first bits


def ids_of_names(names: Sequence[str]) -> Tensor:
    """Return an identifier of each name, (n,), int64; equal names have equal identifiers in all processes."""
    digests = (
        hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest()
        for name in names
    )
    return torch.tensor(
        [int.from_bytes(digest, "little") >> 2 for digest in digests], dtype=torch.int64
    )
