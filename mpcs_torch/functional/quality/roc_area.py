"""The area under the ROC of classes against the rest, as a measure of ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_num_classes
from mpcs_torch.functional.inputs.probabilities import checked_samples
from mpcs_torch.functional.measure import Direction
from mpcs_torch.functional.quality.scores import is_in


class RankedRows(NamedTuple):
    """The columns that a measure of ranks keeps of N rows."""

    scores: Tensor
    """(N, S): the score of each row for each class or group of classes."""
    labels: Tensor
    """(N,), int64: the column in ``scores`` of each row's true class; S if it is none of them."""
    weights: Tensor
    """(N,): the weights of rows."""


@dataclass(eq=False)
class RocArea:
    """The area under the ROC of a group of classes against the rest, or the mean over all classes.

    The area of a class is the probability that a row of the class has a higher score than a row of another class; a tie
    counts 1/2. The score for a group is the sum of the probabilities of its classes. The mean is over the classes that
    occur; it equals scikit-learn's ``roc_auc_score(multi_class="ovr", average="macro")``. The value is NaN if no class,
    or a single class, occurs.
    """

    num_classes: int
    classes: Sequence[int] = ()
    """The indices of the classes of the group; empty for the mean over all classes."""

    direction: ClassVar[Direction] = "max"
    limits: ClassVar[tuple[float, float]] = (0.0, 1.0)
    takes_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the number of classes."""
        check_num_classes(self.num_classes)

    def rows(
        self, probs: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> RankedRows:
        """Return what to keep of rows with probabilities (N, C), labels (N,) and weights (N,)."""
        weights = (
            torch.ones_like(target, dtype=torch.float64)
            if sample_weight is None
            else sample_weight.double()
        )
        if not self.classes:
            return RankedRows(probs.double(), target, weights)
        scores = probs[:, list(self.classes)].double().sum(1, keepdim=True)
        return RankedRows(scores, (~is_in(target, self.classes)).long(), weights)

    def __call__(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return the value of a batch: probabilities (N, C), labels and weights (N,)."""
        samples = checked_samples(
            preds, target, self.num_classes, "probs", sample_weight=sample_weight
        )
        return self.value(
            self.rows(samples.scores, samples.labels.target, samples.labels.weight)
        )

    def value(self, rows: RankedRows) -> Tensor:
        """Return the area, or the mean area: a float64 scalar."""
        areas = [1 - ranked.misranked().of_group.mean for ranked in self.areas(rows)]
        return (
            torch.stack(areas).mean()
            if areas
            else torch.tensor(torch.nan, dtype=torch.float64)
        )

    def areas(self, rows: RankedRows) -> list["RankedGroup"]:
        """Return what is ranked for the area of each class that occurs beside others, or of the group."""
        columns = [
            RankedGroup(rows.scores[:, place], rows.labels == place, rows.weights)
            for place in range(rows.scores.shape[1])
        ]
        if self.num_classes == 2 and not self.classes:
            columns = columns[1:]  # the area of both classes is the same
        return [
            ranked
            for ranked in columns
            if bool(
                (rows.weights[ranked.is_in_group] > 0).any()
                and (rows.weights[~ranked.is_in_group] > 0).any()
            )
        ]


class Shares(NamedTuple):
    """The share of wrong comparisons of each row of one kind: the rows of a group, or those outside of it."""

    places: Tensor
    """(n,), int64: the places of the rows among all rows."""
    shares: Tensor
    """(n,), from 0 to 1."""
    weights: Tensor
    """(n,): the weights of the rows."""

    @property
    def mean(self) -> Tensor:
        """The mean share."""
        return self.shares @ self.weights / self.weights.sum()


class Misranked(NamedTuple):
    """The comparisons of each row of a group of classes with each row outside of it.

    A comparison is wrong if the row of the group has the lower score; a tie counts 1/2.
    """

    of_group: Shares
    of_others: Shares


class RankedGroup(NamedTuple):
    """The rows that one area is of."""

    scores: Tensor
    """(N,): the score of each row for the group."""
    is_in_group: Tensor
    """(N,), bool: whether each row is of the group."""
    weights: Tensor
    """(N,): the weights of rows."""

    def misranked(self) -> Misranked:
        """Return the share of wrong comparisons of each row: with many rows, make no list of them for all classes."""
        levels = self.scores.unique(return_inverse=True)[1]  # type: ignore[no-untyped-call]
        rest = levels.bincount(self.weights * ~self.is_in_group)
        group = levels.bincount(self.weights * self.is_in_group)
        above = 1 - (rest.cumsum(0) - rest / 2) / rest.sum()
        below = (group.cumsum(0) - group / 2) / group.sum()
        inside = self.is_in_group.nonzero().squeeze(1)
        outside = (~self.is_in_group).nonzero().squeeze(1)
        return Misranked(
            Shares(inside, above[levels[inside]], self.weights[inside]),
            Shares(outside, below[levels[outside]], self.weights[outside]),
        )
