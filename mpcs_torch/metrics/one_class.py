"""One-vs-rest metrics of a class or a group of classes: recall, specificity, precision and AUROC."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from mpcs_torch.functional.inputs.decisions import Decisions
from mpcs_torch.functional.inputs.labels import WeightedSum
from mpcs_torch.metrics.additive import DecisionMetric

Rate = Literal["recall", "specificity", "precision"]


class ClassRate(DecisionMetric):
    """Compute the recall, specificity or precision of a group of classes; in [0, 1], higher is better.

    A decision for any class of the group is correct if the true class is in the group.

    Args:
        num_classes: C, at least 2.
        classes: The indices of the classes in the group.
        rate: ``"recall"``, ``"specificity"`` or ``"precision"``.
        ignore_index: The label of samples to leave out.
        validate_args: Whether to check the values of each batch.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics.one_class import ClassRate
        >>> ClassRate(num_classes=3, classes=[1, 2])(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 2, 2, 2]))
        tensor(0.6667, dtype=torch.float64)
    """

    higher_is_better = True
    plot_upper_bound = 1.0
    sums_type = WeightedSum
    interval_rule = "bounded"
    row_bounds = (0, 1)

    def __init__(
        self,
        num_classes: int,
        classes: Sequence[int],
        rate: Rate = "recall",
        *,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(locals(), (), further_settings=("classes", "rate"))

    def sum_samples(self, samples: Decisions) -> WeightedSum:
        """Return the numerator and the denominator of the rate, each summed over the samples with their weights."""
        labels = samples.labels
        true, predicted = (_is_in(classes, self.classes) for classes in (labels.target, samples.predicted))
        total = {"recall": true, "specificity": ~true, "precision": predicted}[self.rate]
        return WeightedSum(labels.sum(total & (true == predicted)), labels.sum(total))


class ClassAUROC(Metric):
    """Compute the area under the ROC of a group of classes against the rest; higher is better, 0.5 is chance.

    The score of a sample is the sum of its probabilities for the classes of the group. The area equals
    that of torchmetrics' ``BinaryAUROC`` or, with weights, of scikit-learn's ``roc_auc_score``. The area is NaN if no
    sample or every sample is of the group.
    """

    higher_is_better = True
    full_state_update = False
    plot_lower_bound, plot_upper_bound = 0.0, 1.0
    interval_rule = "ranks"
    scores: list[Tensor]
    in_group: list[Tensor]
    weights: list[Tensor]

    def __init__(self, classes: Sequence[int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.classes = tuple(classes)
        self.add_state("scores", [], dist_reduce_fx="cat")
        self.add_state("in_group", [], dist_reduce_fx="cat")
        self.add_state("weights", [], dist_reduce_fx="cat")

    def update(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> None:
        """Add a batch: probabilities (N, C), labels (N,) and weights (N,)."""
        self.weights += [] if sample_weight is None else [sample_weight]
        self.scores.append(preds[:, self.classes].sum(1))
        self.in_group.append(_is_in(target, self.classes))

    def misranked(self) -> tuple[list[Tensor], list[Tensor] | None]:
        """Return the share of wrong comparisons of each sample, and the weights of the samples.

        Each sample of the group is compared with each sample outside it. A comparison is wrong if the sample of the
        group has the lower score; a tie counts 1/2. Both results are lists of two tensors, for the group and for the
        other samples; weights are None if no batch had any.
        """
        scores, in_group = dim_zero_cat(self.scores).double(), dim_zero_cat(self.in_group)
        weights = dim_zero_cat(self.weights).double() if len(self.weights) else torch.ones_like(scores)
        levels = scores.unique(return_inverse=True)[1]  # type: ignore[no-untyped-call]
        rest, group = (levels.bincount(weights * kind) for kind in (~in_group, in_group))
        above = 1 - (rest.cumsum(0) - rest / 2) / rest.sum()
        below = (group.cumsum(0) - group / 2) / group.sum()
        shares = [above[levels[in_group]], below[levels[~in_group]]]
        return shares, self.by_kind(weights) if len(self.weights) else None

    def by_kind(self, values: Tensor) -> list[Tensor]:
        """Return a list of two tensors: the ``values`` (N,) of samples in the group, and those of all other samples."""
        in_group = dim_zero_cat(self.in_group)
        return [values[in_group], values[~in_group]]

    def compute(self) -> Tensor:
        """Return the area: a float64 scalar."""
        (shares, _), weights = self.misranked()
        return 1 - (shares.mean() if weights is None else shares @ weights[0] / weights[0].sum())


def _is_in(labels: Tensor, classes: Sequence[int]) -> Tensor:
    return torch.isin(labels, torch.tensor(classes, device=labels.device))
