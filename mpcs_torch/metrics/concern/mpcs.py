"""MetaPatternConcernScore: the shell over `functional.meta_pattern_concern_score`."""

from typing import Any

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern.mpcs import CorrectConcern, check_mpcs_settings, pattern_terms, score_terms
from mpcs_torch.functional.inputs.checks import check_concern
from mpcs_torch.functional.inputs.probabilities import flatten_samples, sample_rules
from mpcs_torch.metrics.base import SumMetric


class MetaPatternConcernScore(SumMetric):
    """Mean Meta Pattern Concern Score (MPCS) over samples; in nats, lower is better, 0 is perfect.

    Equations, shapes and rules are those of `mpcs_torch.functional.meta_pattern_concern_score`.

    Args:
        num_classes: C, at least 2.
        k: How many classes to look at, ``1 <= k <= C``. Default: 5, or C if that is less.
        t: How many intervals to cut [0, 1] into, at least 2.
        concern: A `ConcernSpec`, or its ``(C, C)`` matrix of weights > 0 (rows true classes, columns predicted ones).
            Default: 1 everywhere.
        from_logits: Whether ``preds`` are logits rather than probabilities. Never guessed.
        correct_concern: The concern of the true class: ``"sum"`` of the others, or their ``"count"`` k - 1.
        ignore_index: Label of samples to leave out.
        validate_args: Whether to look for bad values in batches. Without, they give a wrong score silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule, and from `compute` if no
            batch was seen. Away from the CPU bad values are reported by `compute`.

    Example:
        >>> import torch
        >>> from mpcs_torch import ConcernSpec, MetaPatternConcernScore
        >>> lights = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"], ["yellow", "red"]])
        >>> mpcs = MetaPatternConcernScore(num_classes=3, concern=lights, from_logits=False)
        >>> as_yellow = mpcs(torch.tensor([[0.2, 0.7, 0.1]]), torch.tensor([0]))
        >>> as_green = mpcs(torch.tensor([[0.2, 0.1, 0.7]]), torch.tensor([0]))
        >>> print(f"red as yellow {as_yellow:.2f}, red as green {as_green:.2f}, both {mpcs.compute():.2f}")
        red as yellow 1.04, red as green 1.22, both 1.13
    """

    score_sum: Tensor
    weight_sum: Tensor
    concern: Tensor

    def __init__(
        self,
        num_classes: int,
        *,
        k: int | None = None,
        t: int = 200,
        concern: ConcernSpec | Tensor | None = None,
        from_logits: bool = True,
        correct_concern: CorrectConcern = "sum",
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        k = min(5, num_classes) if k is None else k
        check_mpcs_settings(k=k, t=t, num_classes=num_classes, correct_concern=correct_concern)
        concern = concern_matrix(concern, num_classes)
        super().__init__(locals(), value_rules=sample_rules(num_classes, from_logits=from_logits))
        self.add_sum("score_sum", dtype=torch.float64)
        self.add_sum("weight_sum", dtype=torch.float64)

    def update(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> None:
        """Add a batch: preds (N, C) or (N, C, ...), target and sample_weight (N,) or (N, ...)."""
        samples = flatten_samples(
            preds,
            target,
            num_classes=self.num_classes,
            from_logits=self.from_logits,
            ignore_index=self.ignore_index,
            sample_weight=sample_weight,
        )
        self.admit(samples.faults)
        terms = pattern_terms(samples.probs, samples.target, k=self.k, t=self.t, concern=self.concern)
        scores = score_terms(terms, k=self.k, correct_concern=self.correct_concern)
        self.score_sum = self.score_sum + (scores * samples.weight).sum()
        self.weight_sum = self.weight_sum + samples.weight.sum()

    def compute(self) -> Tensor:
        """The (weighted) mean score of all samples, float64; NaN where none of them has weight."""
        self.check_computable()
        return self.score_sum / self.weight_sum


def concern_matrix(concern: ConcernSpec | Tensor | None, num_classes: int) -> Tensor:
    """The weights of a spec or a tensor, checked, as float64 (C, C) with a diagonal of ones; ones without either."""
    if concern is None:
        return torch.ones(num_classes, num_classes, dtype=torch.float64)
    matrix = concern.matrix() if isinstance(concern, ConcernSpec) else concern.detach().to(torch.float64)
    check_concern(matrix, num_classes)
    return matrix.clone().fill_diagonal_(1)  # not read; settings that mean the same must look the same
