"""Precision, recall and F score for soft labels in [0, 1], as from annotators who disagree, smoothing or mixup."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import require
from mpcs_torch.functional.inputs.checks import (
    check_beta,
    check_choice,
    check_zero_division,
    widened,
)
from mpcs_torch.functional.inputs.labels import Bins, WeightedSum
from mpcs_torch.functional.inputs.soft_labels import SOFT_RULES, SoftSamples, flatten_soft
from mpcs_torch.functional.measure import Measure

SoftAverage = Literal["micro", "macro", "weighted", "none"]
TNorm = Literal["minimum", "product", "lukasiewicz"]
"""The name of a T-norm T(p, y), which extends the logical "and" of p and y from 0 and 1 to all values in [0, 1]."""


class SoftSums(NamedTuple):
    """Weighted sums over the samples, for each class. Every field has the shape (..., C)."""

    shared: Tensor
    """The sum of T(p, y) over predictions p and labels y. The T-norm T is by default the minimum."""
    predicted: Tensor
    """The sum of the predictions p."""
    actual: Tensor
    """The sum of the labels y."""
    elements: Tensor
    """The sum of the sample weights, without ignored (sample, class) pairs."""


@dataclass(eq=False)
class SoftMeasure(Measure):
    """A measure of labels that are degrees of truth, from 0 to 1."""

    has_range = False
    value_rules = SOFT_RULES

    @property
    def classes(self) -> int | None:
        """The number of classes that a batch must have; None for any number."""
        return None

    def rows(
        self,
        preds: Tensor,
        target: Tensor,
        sample_weight: Tensor | None = None,
        ignore: Tensor | None = None,
    ) -> SoftSamples:
        """Flatten the predictions, labels, weights and ignored elements of a batch."""
        return flatten_soft(
            preds,
            target,
            num_classes=self.classes,
            sample_weight=sample_weight,
            ignore=ignore,
        )


@dataclass(eq=False)
class SoftScore(SoftMeasure):
    """A measure that is an F score of degrees of truth."""

    num_classes: int
    beta: float = 1.0
    """The weight of recall in F: with 0, F is the precision; with infinity, it is the recall."""
    average: SoftAverage = "micro"
    zero_division: float = 0.0

    sums_type = SoftSums
    direction = "max"
    limits = (0.0, 1.0)

    def __post_init__(self) -> None:
        """Check the settings."""
        require(
            self.num_classes >= 1, "at_least", "num_classes", self.num_classes, minimum=1
        )
        check_choice("average", self.average, SoftAverage)
        check_zero_division(self.zero_division)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return self.num_classes

    @property
    def shape(self) -> tuple[int, ...]:
        """The sums are by class."""
        return (self.num_classes,)

    @abstractmethod
    def degrees(self, samples: SoftSamples) -> Sequence[Tensor]:
        """Return what each sample and class adds to each field of `SoftSums`: (M, C) each."""

    def sums(self, rows: SoftSamples, bins: Bins | None = None) -> Tensor:
        """Return the sums of degrees of truth, without synchronizing an accelerator."""
        return torch.cat(rows.sums(self.degrees, bins), dim=-1)

    def value(self, sums: SoftSums) -> Tensor:
        """Return the F score (...), or (..., C) if ``average`` is "none"."""
        shared, predicted, actual = sums.shared, sums.predicted, sums.actual
        if self.average == "micro":
            shared, predicted, actual = shared.sum(-1), predicted.sum(-1), actual.sum(-1)
        # The equation of `soft_fbeta`, divided by 1 + beta^2, so that beta may be infinite.
        actual_share = 1.0 if self.beta == inf else self.beta**2 / (1 + self.beta**2)
        mass = actual_share * actual + (1 - actual_share) * predicted
        score = self._quotient(shared, mass)
        if self.average == "macro":
            return score.mean(-1)
        if self.average == "weighted":
            # An absent class has weight 0, even if its score is NaN.
            weighted = torch.where(sums.actual == 0, 0.0, score * sums.actual)
            return self._quotient(weighted.sum(-1), sums.actual.sum(-1))
        return score

    def _quotient(self, numerator: Tensor, denominator: Tensor) -> Tensor:
        is_empty = denominator == 0
        # The gradient of 0 / 0 would be NaN, even where the quotient is not used.
        quotient = numerator / torch.where(is_empty, 1.0, denominator)
        return torch.where(is_empty, self.zero_division, quotient)

    def averaged_classes(self, sums: SoftSums) -> Tensor | None:
        """Return the sum of labels of each class if the value is a macro average, else None."""
        return sums.actual if self.average == "macro" else None

    def row_influences(self, slopes: SoftSums, sums: SoftSums) -> tuple[Tensor, Tensor]:
        """Return the influence of a row whose degrees are 0 or 1 in one class: (C, 4), by its degrees in this class.

        The other result is the weight of the rows that count for each class. In its other classes, a usual row changes
        the value little. In all of them at once, it may add more than that.
        """
        neither = torch.zeros_like(slopes.shared)
        both = slopes.shared + slopes.predicted + slopes.actual
        influences = torch.stack([neither, slopes.predicted, slopes.actual, both], 1)
        return influences, sums.elements


@dataclass(eq=False)
class SoftFBeta(SoftScore):
    """The measure of `soft_fbeta`, `soft_precision`, `soft_recall` and `soft_f1`."""

    t_norm: TNorm = "minimum"

    sums_settings = ("num_classes", "t_norm")

    def __post_init__(self) -> None:
        """Check the settings."""
        check_choice("t_norm", self.t_norm, TNorm)
        super().__post_init__()

    def degrees(self, samples: SoftSamples) -> Sequence[Tensor]:
        """Return T(p, y), the predictions p, the labels y, and whether they count."""
        p = samples.predicted
        y = samples.actual
        if self.t_norm == "minimum":
            shared = torch.minimum(p, y)
        elif self.t_norm == "product":
            shared = widened(p) * widened(y)
        else:
            # In float32, p + 1 loses digits of a small p.
            shared = (widened(p) + widened(y) - 1).clamp(min=0)
        return shared, p, y, samples.counted


HARD_LABEL = 0.5
"""The threshold of soft labels: a label above 0.5 counts as positive."""


@dataclass(eq=False)
class HardF1(SoftScore):
    """The measure of `hard_f1`."""

    threshold: float | Tensor = 0.5

    sums_settings = ("num_classes", "threshold")

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        threshold = self.threshold
        shape = (self.num_classes,)
        if isinstance(threshold, Tensor):
            is_by_class = threshold.shape == shape and threshold.is_floating_point()
            require(is_by_class, "number_or_shape", "threshold", threshold, shape=shape)
        has_nan = torch.as_tensor(threshold).isnan().any()
        require(not has_nan, "no_nan", "threshold", threshold)

    def degrees(self, samples: SoftSamples) -> Sequence[Tensor]:
        """Return whether both are positive, the predictions above the threshold, the labels above 0.5, and all."""
        predicted = (samples.predicted > self.threshold) & samples.counted
        actual = samples.actual > HARD_LABEL
        return predicted & actual, predicted, actual, samples.counted


def soft_precision(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    ignore: Tensor | None = None,
    *,
    num_classes: int,
    average: SoftAverage = "micro",
    zero_division: float = 0.0,
    t_norm: TNorm = "minimum",
) -> Tensor:
    r"""Compute the soft precision :math:`\sum T(p, y) / \sum p`; in [0, 1], higher is better.

    The sums are over predictions p and labels y. T, the other arguments, result and errors are those of `soft_fbeta`.

    Example:
        >>> import torch
        >>> soft_precision(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]), num_classes=1)
        tensor(0.7857, dtype=torch.float64)
    """
    measure = SoftFBeta(num_classes, 0.0, average, zero_division, t_norm)
    return measure(preds, target, sample_weight, ignore)


def soft_recall(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    ignore: Tensor | None = None,
    *,
    num_classes: int,
    average: SoftAverage = "micro",
    zero_division: float = 0.0,
    t_norm: TNorm = "minimum",
) -> Tensor:
    r"""Compute the soft recall :math:`\sum T(p, y) / \sum y`; in [0, 1], higher is better.

    The sums are over predictions p and labels y. T, the other arguments, result and errors are those of `soft_fbeta`.

    Example:
        >>> import torch
        >>> soft_recall(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]), num_classes=1)
        tensor(0.9167, dtype=torch.float64)
    """
    measure = SoftFBeta(num_classes, inf, average, zero_division, t_norm)
    return measure(preds, target, sample_weight, ignore)


def soft_f1(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    ignore: Tensor | None = None,
    *,
    num_classes: int,
    average: SoftAverage = "micro",
    zero_division: float = 0.0,
    t_norm: TNorm = "minimum",
) -> Tensor:
    r"""Compute the harmonic mean of soft precision and recall; in [0, 1], higher is better.

    It is `soft_fbeta` with beta = 1. Arguments, result and errors are those of `soft_fbeta`.

    Example:
        >>> import torch
        >>> soft_f1(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]), num_classes=1)
        tensor(0.8462, dtype=torch.float64)
    """
    measure = SoftFBeta(num_classes, 1.0, average, zero_division, t_norm)
    return measure(preds, target, sample_weight, ignore)


def soft_fbeta(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    ignore: Tensor | None = None,
    *,
    num_classes: int,
    beta: float,
    average: SoftAverage = "micro",
    zero_division: float = 0.0,
    t_norm: TNorm = "minimum",
) -> Tensor:
    r"""Compute the F score of soft precision and recall; in [0, 1], higher is better.

    .. math:: F_\beta = \frac{(1 + \beta^2) \sum T(p, y)}{\beta^2 \sum y + \sum p}, \quad T(p, y) = \min(p, y)

    The sums are over predictions p and labels y. If all p and y are 0 or 1, the value is the usual F score. With
    ``t_norm="minimum"``, as in the equation, the value is 1 if and only if all predictions equal their labels; the
    other functions T do not ensure this. The value is differentiable except where a prediction equals its label.

    Args:
        preds: ``(N,)`` for one class, or ``(N, C)`` or ``(N, C, ...)``, floating point in [0, 1]. Further dimensions
            (time, space) count as samples.
        target: The soft labels, of the same shape, floating point, integer or bool, in [0, 1].
        sample_weight: ``(N,)`` or ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        ignore: Bool, in the shape of ``preds``: True for each value to leave out.
        num_classes: C; 1 for predictions of shape ``(N,)``.
        beta: Weight > 0 of recall against precision.
        average: ``"micro"`` pools all classes; ``"macro"`` is the mean of the values of all classes; ``"weighted"``
            weighs this mean by the sum of the labels of each class; ``"none"`` returns one value per class.
        zero_division: The value of 0 / 0: 0, 1 or NaN.
        t_norm: The function T: ``"minimum"``, ``"product"``, or ``"lukasiewicz"``, which is max(p + y - 1, 0).

    Returns:
        A float64 scalar (float32 on MPS), or ``(C,)`` with ``average="none"``.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Harju, Mesaros: Evaluating classification systems against soft labels with fuzzy precision and recall,
        DCASE 2023, Section 2.1, Eq. 3.

    Example:
        >>> import torch
        >>> soft_fbeta(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]), num_classes=1, beta=2.0)
        tensor(0.8871, dtype=torch.float64)
    """
    check_beta(beta)
    measure = SoftFBeta(num_classes, beta, average, zero_division, t_norm)
    return measure(preds, target, sample_weight, ignore)


def hard_f1(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    ignore: Tensor | None = None,
    *,
    num_classes: int,
    threshold: float | Tensor = 0.5,
    average: SoftAverage = "micro",
    zero_division: float = 0.0,
) -> Tensor:
    """Compute the F1 of predictions above a threshold against labels above 0.5; in [0, 1], higher is better.

    A prediction above ``threshold`` counts as positive. ``threshold`` is a number, or ``(C,)`` numbers, one for each
    class. The score has no gradient. It is optimistic if the thresholds were chosen on the same data.
    The average ``"weighted"`` weighs classes by their number of positive labels. The other arguments, the shape of the
    result and errors are those of `soft_fbeta`.

    References:
        Harju, Mesaros: Evaluating classification systems against soft labels with fuzzy precision and recall,
        DCASE 2023, Section 3.1 (the rows "Hard" and "Hard / OT" of Table 2).

    Example:
        >>> import torch
        >>> hard_f1(torch.tensor([0.9, 0.6, 0.1]), torch.tensor([1.0, 0.2, 0.0]), num_classes=1)
        tensor(0.6667, dtype=torch.float64)
    """
    measure = HardF1(num_classes, 1.0, average, zero_division, threshold)
    return measure(preds, target, sample_weight, ignore)


def soft_kl_divergence(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    ignore: Tensor | None = None,
    *,
    epsilon: float = 0.0,
) -> Tensor:
    r"""Compute the mean binary Kullback-Leibler divergence of predictions from soft labels; in nats, lower is better.

    0 is perfect. The sum is over the n pairs of a prediction p and its label y, one for each sample and class:

    .. math:: \frac{1}{n} \sum y \log \frac{y}{p} + (1 - y) \log \frac{1 - y}{1 - p}

    Predictions are clamped to [epsilon, 1 - epsilon], with 0 <= ``epsilon`` < 1/2. If ``epsilon`` is 0, a prediction of
    0 or 1 that differs from its label makes the mean infinite. Other arguments and errors are those of `soft_fbeta`.

    Returns:
        A float64 scalar (float32 on MPS), with gradients; NaN if every element is ignored.

    References:
        Harju, Mesaros: Evaluating classification systems against soft labels with fuzzy precision and recall,
        DCASE 2023, Section 2.2 (Table 1) and Section 3 (Table 2).

    Example:
        >>> soft_kl_divergence(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.1491, dtype=torch.float64)
    """
    return SoftKLDivergence(epsilon)(preds, target, sample_weight, ignore)


@dataclass(eq=False)
class SoftKLDivergence(SoftMeasure):
    """The measure of `soft_kl_divergence`."""

    epsilon: float = 0.0

    sums_type = WeightedSum
    sums_settings = ("epsilon",)
    interval_rule = "mean"

    def __post_init__(self) -> None:
        """Check the settings."""
        require(
            0 <= self.epsilon < 0.5,
            "from_below",
            "epsilon",
            self.epsilon,
            minimum=0,
            maximum=0.5,
        )

    def sums(self, rows: SoftSamples, bins: Bins | None = None) -> Tensor:
        """Return the sum of divergences of all elements, and the sum of weights."""
        divergence, elements = rows.sums(self._divergences, bins)
        return torch.stack([divergence.sum(-1), elements.sum(-1)], dim=-1)

    def _divergences(self, samples: SoftSamples) -> Sequence[Tensor]:
        p = widened(samples.predicted)  # 1 - 1e-8 is 1 in float32
        y = widened(samples.actual)
        if self.epsilon:
            p = p.clamp(self.epsilon, 1 - self.epsilon)
        values = _divergence(p, y) + _divergence(1 - p, 1 - y)
        return torch.where(samples.counted, values, 0.0), samples.counted


def _divergence(p: Tensor, y: Tensor) -> Tensor:
    """Return y log(y / p) for each pair of elements; where y is 0, the value and its gradient are 0 for any p."""
    is_positive = y > 0
    log_y = torch.where(is_positive, y, 1.0).log()
    log_p = torch.where(is_positive, p, 1.0).log()
    return y * (log_y - log_p)
