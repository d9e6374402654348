"""The rows of each group, and the clusters that groups hold."""

from collections.abc import Iterator

import torch
from torch import Tensor

MOST_CODES = 2**31
"""More than any file has groups or clusters: a pair of codes fits into 64 bits."""


def rows_by_group(codes: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Yield each code that occurs, with the indices of its rows in ascending order.

    Args:
        codes: ``(N,)``, int64.
    """
    ordered, order = codes.sort(stable=True)
    present, counts = ordered.unique_consecutive(return_counts=True)  # type: ignore[no-untyped-call]
    yield from zip(present.tolist(), order.tensor_split(counts.cumsum(0)[:-1]), strict=True)


class GroupClusters:
    """Number the clusters of all groups in one sequence: a cluster that lies in two groups has two numbers."""

    def __init__(self) -> None:
        self._numbers = dict[int, int]()
        self._by_group: dict[int, Tensor] | None = None

    def add(self, groups: Tensor, clusters: Tensor) -> Tensor:
        """Return the number of the cluster in the group of each row: (n,)."""
        self._by_group = None
        pairs, places = (groups * MOST_CODES + clusters).unique(return_inverse=True)  # type: ignore[no-untyped-call]
        numbers = [self._numbers.setdefault(pair, len(self._numbers)) for pair in pairs.tolist()]
        return torch.tensor(numbers)[places]

    def of(self, group: int) -> Tensor:
        """Return the numbers of the clusters of a group, in the order of their codes."""
        if self._by_group is None:
            pairs = torch.tensor(list(self._numbers), dtype=torch.int64)
            order = pairs.argsort()  # numbers are given in the order of the dictionary
            groups = (pairs // MOST_CODES)[order]
            self._by_group = {code: order[rows] for code, rows in rows_by_group(groups)}
        return self._by_group[group]
