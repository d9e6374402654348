"""ExpectedConcern: the Metric of `functional.expected_concern`."""

from typing import Any

from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern.expected_concern import (
    CostSums,
    DecideBy,
    cost_rules,
    decide,
    mean_cost,
    sum_costs,
)
from mpcs_torch.functional.inputs.checks import check_choice, check_num_classes
from mpcs_torch.metrics.base import SumMetric
from mpcs_torch.metrics.concern.mpcs import concern_matrix


class ExpectedConcern(SumMetric):
    """Compute the mean concern of decisions relative to the best constant decision; lower is better, 0 is perfect.

    Equations, shapes and rules are those of `mpcs_torch.functional.expected_concern`.

    Args:
        num_classes: C, at least 2.
        concern: A `ConcernSpec`, or its ``(C, C)`` matrix of weights > 0 (rows true classes, columns decisions).
            Default: 1 everywhere, which counts errors.
        decision: The decision that scores lead to: for the ``"most_probable"`` class, or the ``"least_concern"``
            decision of `mpcs_torch.functional.least_concern_decision`.
        from_logits: Whether scores are logits rather than probabilities. Never guessed.
        normalize: Whether to divide by the cost of the best constant decision. Otherwise the value is the mean concern
            per sample.
        ignore_index: Label of samples to leave out.
        validate_args: Whether to check the values of each batch. Without, bad values give a wrong result silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule, and from `compute` if no
            batch was seen. Away from the CPU, `compute` reports bad values.

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
    """Scalar: the concern of the decisions times the weights of the samples, summed."""
    constant_cost: Tensor
    """(C,): the same of always deciding for each class."""
    samples: Tensor
    """Scalar: the weights of the samples, summed."""
    concern: Tensor

    def __init__(
        self,
        num_classes: int,
        *,
        concern: ConcernSpec | Tensor | None = None,
        decision: DecideBy = "most_probable",
        from_logits: bool = True,
        normalize: bool = True,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        check_num_classes(num_classes)
        check_choice("decision", decision, DecideBy)
        concern = concern_matrix(concern, num_classes)
        super().__init__(
            locals(),
            value_rules=cost_rules(num_classes, from_logits=from_logits),
            state_settings=("num_classes", "concern", "decision", "from_logits", "ignore_index"),
        )
        for name, shape in (("cost", ()), ("constant_cost", (num_classes,)), ("samples", ())):
            self.add_sum(name, shape=shape)

    def update(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> None:
        """Add a batch: preds (N, C, ...) scores or (N, ...) decisions, target and sample_weight (N, ...)."""
        decided = decide(
            preds,
            target,
            concern=self.concern,
            decision=self.decision,
            from_logits=self.from_logits,
            ignore_index=self.ignore_index,
            sample_weight=sample_weight,
        )
        self.admit(decided.find_faults)
        self.add(**sum_costs(decided, self.concern)._asdict())

    def compute(self) -> Tensor:
        """Return the (normalized) mean concern of all decisions: a float64 scalar."""
        self.check_computable()
        return mean_cost(CostSums(self.cost, self.constant_cost, self.samples), normalize=self.normalize)
