"""MetaPatternConcernScore: the Metric of `functional.meta_pattern_concern_score`."""

from math import log
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.spec import LARGEST_DENSE
from mpcs_torch.functional.concern import mpcs as kernel
from mpcs_torch.functional.concern.mpcs import LOWEST_LEVEL, CorrectConcern, ScoreAverage, pattern_scores
from mpcs_torch.functional.inputs.arrays import concern_weights
from mpcs_torch.functional.inputs.checks import check_choice, check_concern
from mpcs_torch.functional.inputs.labels import WeightedSum
from mpcs_torch.functional.inputs.probabilities import RowTerms, Samples
from mpcs_torch.metrics.additive import ProbabilityMetric


class MetaPatternConcernScore(ProbabilityMetric):
    """Compute the mean Meta Pattern Concern Score (MPCS) of all samples; in nats, lower is better, 0 is perfect.

    Arguments are those of `mpcs_torch.functional.meta_pattern_concern_score`; for ``validate_args`` and errors see
    `Accuracy`.

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

    interval_rule = "mean"
    interval_scale = "log"

    concern: Tensor | None

    def __init__(
        self,
        num_classes: int,
        *,
        k: int | None = None,
        t: int | None = None,
        concession: float | None = None,
        concern: ConcernSpec | Tensor | None = None,
        from_logits: bool = True,
        correct_concern: CorrectConcern = "sum",
        ignore_index: int | None = None,
        average: ScoreAverage = "micro",
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        k, t = kernel.pattern_settings(num_classes, concern, k=k, t=t, concession=concession)
        check_choice("correct_concern", correct_concern, CorrectConcern)
        check_choice("average", average, ScoreAverage)
        concern = concern_matrix(concern, num_classes)
        settings = "num_classes", "k", "t", "concern", "correct_concern", "from_logits", "ignore_index", "average"
        super().__init__(locals(), settings, shape=() if average == "micro" else (num_classes,))

    def term_from_samples(self, samples: Samples) -> Tensor:
        """Return the MPCS of each sample: (M,)."""
        return pattern_scores(samples, k=self.k, t=self.t, concern=self.concern, correct_concern=self.correct_concern)

    def sum_samples(self, samples: RowTerms) -> WeightedSum:
        """Return the sum of scores and the sum of weights: scalars if ``average`` is ``"micro"``, else by class."""
        return kernel.sum_scores(samples, self.average)

    def row_ratios(self, whole: WeightedSum) -> list[tuple[float, float]]:  # noqa: ARG002  # the same for any samples
        """Return the lowest and the highest score of a sample, each with 1 as the denominator."""
        return [(0, 1), (log((self.t - 1) / LOWEST_LEVEL), 1)]

    def _draw(self, title: str, value: Any, on: Any) -> Any:
        if self.average == "micro":
            return super()._draw(title, value, on)
        from mpcs_torch.plots.bars import class_bars

        mean = (self.total.sum() / self.weight.sum()).item()
        return class_bars(value.tolist(), mean, title, ylabel="MPCS", on=on)


def concern_matrix(concern: ConcernSpec | Tensor | None, num_classes: int) -> Tensor | None:
    """Check the weights, and return them as float64 (C, C); return None if all are 1.

    The matrix is dense with a diagonal of 1, or sparse if a sparse concern has more than 1024 classes. Equivalent
    concerns give equal matrices, because metrics compare hashes of their settings.
    """
    if concern is None:
        return None
    weights = concern_weights(concern, compact=True)
    check_concern(weights, num_classes)
    matrix = weights.detach().to(torch.float64, copy=True)
    if matrix.layout == torch.sparse_coo:
        if num_classes > LARGEST_DENSE:
            return matrix.coalesce()
        matrix = kernel.dense_concern(matrix)
    matrix.fill_diagonal_(1)
    return None if (matrix == 1).all() else matrix
