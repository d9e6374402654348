"""`ConcernSpec`: how much each confusion of two classes matters."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mpcs_torch.concern.rules import ConcernError, find_problems, index_of, names_of

Pairs = Sequence[Sequence[str | int]]
"""Lists ``[true, predicted, ...]`` of class names or indices."""


@dataclass(frozen=True)
class ConcernSpec:
    """Describe what each error costs and which errors are dangerous.

    Args:
        classes: The class names in index order, or the number of classes (which are then named "0", "1", ...).
        releases: Lists ``[true, predicted, ...]`` of class names or indices: mistaking the first class for any of the
            others is released, which means tolerable. Pairs are ordered: the opposite confusion is not released.
        factor: The concern of a released pair, ``0 < factor <= 1``; every other pair has concern 1.
        weights: The concern of each pair, instead of releases and factor: C rows (true classes) of C columns (predicted
            classes), finite and >= 0. The diagonal is ignored. Costs in any unit will do.
        dangerous: Which errors are dangerous: lists ``[true, predicted, ...]``, or a number, the weight from which on
            an error is dangerous. Every other error is released, and without ``weights`` it has the concern ``factor``.
            Default: every error that is not in ``releases`` and has a weight above 0.
        refer: The cost of referring a sample to somebody else instead of deciding, on the scale of the concern and
            >= 0: one number, or one for each true class. Default: decisions refer no sample.
        concession: How far a confidence may fall short of certainty without being punished by MPCS, from 2e-9 to below
            1/2. Default: MPCS uses 200 intervals, which is a concession of just below 0.005.

    Raises:
        ConcernError: If the arguments break rules; the message lists each of them with its place.

    References:
        Wang, Du, Liu: Meta Pattern Concern Score, arXiv:2209.06408v3, Eq. 8 (release list and factor) and Section II
        (concession). Deviation: a separate weight for each pair, which the introduction of the paper mentions and its
        equations leave out.

    Example:
        >>> spec = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"]], factor=0.5)
        >>> spec.matrix()
        tensor([[1.0000, 0.5000, 1.0000],
                [1.0000, 1.0000, 1.0000],
                [1.0000, 1.0000, 1.0000]], dtype=torch.float64)
        >>> costs = ConcernSpec(["healthy", "ill"], weights=[[0, 10], [50, 0]], dangerous=50, refer=2)
        >>> costs.dangerous_pairs()
        tensor([[False, False],
                [ True, False]])
    """

    classes: Sequence[str] | int
    releases: Pairs = ()
    factor: float = 0.5
    weights: Sequence[Sequence[float]] | None = None
    dangerous: Pairs | float | None = None
    refer: Sequence[float] | float | None = None
    concession: float | None = None

    def __post_init__(self) -> None:
        problems = list(find_problems(self))
        if problems:
            raise ConcernError(problems)
        frozen = {
            "classes": self.class_names,
            "releases": self._indices(self.releases),
            "weights": None if self.weights is None else tuple(tuple(map(float, row)) for row in self.weights),
            "dangerous": self._indices(self.dangerous) if isinstance(self.dangerous, Sequence) else self.dangerous,
            "refer": tuple(map(float, self.refer)) if isinstance(self.refer, Sequence) else self.refer,
        }
        for field, value in frozen.items():
            object.__setattr__(self, field, value)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Return the names of the classes in index order."""
        return names_of(self.classes)

    def matrix(self) -> Tensor:
        """Return the concern of each true class (row) predicted as each class (column), float64 (C, C), diagonal 1."""
        if self.weights is not None:
            return torch.tensor(self.weights, dtype=torch.float64).fill_diagonal_(1.0)
        return torch.where(self.released(), self.factor, 1.0).double()

    def costs(self) -> Tensor:
        """Return the cost of each decision (column) for each true class (row), for decisions with the minimum cost.

        Returns:
            float64 (C, C), the `matrix` with a diagonal of 0; or (C, C + 1), with the cost of a referral in the last
            column, if ``refer`` is set.
        """
        errors = self.matrix().fill_diagonal_(0)
        if self.refer is None:
            return errors
        referral = torch.as_tensor(self.refer, dtype=torch.float64).expand(len(errors))
        return torch.cat([errors, referral.unsqueeze(1)], dim=1)

    def dangerous_pairs(self) -> Tensor:
        """Return the dangerous confusions, bool (C, C): rows true classes, columns predicted ones, diagonal False."""
        if isinstance(self.dangerous, Sequence):
            dangerous = self._mask(self.dangerous)
        elif self.weights is None:
            dangerous = ~self._mask(self.releases)
        else:
            weights = self.matrix()
            dangerous = weights > 0 if self.dangerous is None else weights >= self.dangerous
        return dangerous.fill_diagonal_(False)

    def released(self) -> Tensor:
        """Return the confusions that are not dangerous, bool (C, C), diagonal False."""
        return (~self.dangerous_pairs()).fill_diagonal_(False)

    def _indices(self, pairs: Pairs) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(index_of(entry, self.class_names) for entry in entries) for entries in pairs)

    def _mask(self, pairs: Pairs) -> Tensor:
        mask = torch.zeros(len(self.class_names), len(self.class_names), dtype=torch.bool)
        for true, *predicted in pairs:
            mask[int(true), [int(other) for other in predicted]] = True
        return mask
