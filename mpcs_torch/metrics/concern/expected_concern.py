"""ExpectedConcern: the shell over `functional.expected_concern`."""

from typing import Any

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern.expected_concern import (
    CostSums,
    Decision,
    check_decision,
    decision_rules,
    mean_cost,
    sum_costs,
)
from mpcs_torch.metrics.base import SumMetric
from mpcs_torch.metrics.concern.mpcs import concern_matrix


class ExpectedConcern(SumMetric):
    """Mean concern of decisions as a share of the best constant decision's; lower is better, 0 is perfect.

    Equations, shapes and rules are those of `mpcs_torch.functional.expected_concern`.

    Args:
        num_classes: C, at least 2.
        concern: A `ConcernSpec`, or its ``(C, C)`` matrix of weights > 0 (rows true classes, columns decisions).
            Default: 1 everywhere, which counts errors.
        decision: How scores decide: for the ``"most_probable"`` class, or by `functional.least_concern_decision`.
        from_logits: Whether scores are logits rather than probabilities. Never guessed.
        normalize: Whether to divide by the cost of the best constant decision; without, the mean concern per sample.
        ignore_index: Label of samples to leave out.
        validate_args: Whether to look for bad values in batches. Without, they give a wrong value silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule, and from `compute` if no
            batch was seen. Away from the CPU bad values are reported by `compute`.

    Example:
        >>> import torch
        >>> from mpcs_torch import ConcernSpec, ExpectedConcern
        >>> lights = ConcernSpec(["red", "yellow", "green"], weights=[[1, 1, 9], [1, 1, 1], [9, 1, 1]])
        >>> probs, target = torch.tensor([[0.5, 0.1, 0.4], [0.6, 0.3, 0.1]]), torch.tensor([2, 0])
        >>> for decision in ("most_probable", "least_concern"):
        ...     cost = ExpectedConcern(3, concern=lights, decision=decision, from_logits=False, normalize=False)
        ...     print(decision, cost(probs, target))
        most_probable tensor(4.5000, dtype=torch.float64)
        least_concern tensor(1., dtype=torch.float64)
    """

    cost: Tensor
    constant_cost: Tensor
    samples: Tensor
    concern: Tensor

    def __init__(
        self,
        num_classes: int,
        *,
        concern: ConcernSpec | Tensor | None = None,
        decision: Decision = "most_probable",
        from_logits: bool = True,
        normalize: bool = True,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        check_decision(decision)
        concern = concern_matrix(concern, num_classes)
        super().__init__(locals(), value_rules=decision_rules(num_classes, from_logits=from_logits))
        for name, shape in (("cost", ()), ("constant_cost", (num_classes,)), ("samples", ())):
            self.add_sum(name, shape=shape, dtype=torch.float64)

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch: preds (N, C, ...) scores or (N, ...) decisions, target (N, ...)."""
        sums, faults = sum_costs(
            preds,
            target,
            concern=self.concern,
            decision=self.decision,
            from_logits=self.from_logits,
            ignore_index=self.ignore_index,
        )
        self.admit(faults)
        self.cost = self.cost + sums.cost
        self.constant_cost = self.constant_cost + sums.constant_cost
        self.samples = self.samples + sums.samples

    def compute(self) -> Tensor:
        """The (normalised) mean concern of all decisions, float64."""
        self.check_computable()
        return mean_cost(CostSums(self.cost, self.constant_cost, self.samples), normalize=self.normalize)
