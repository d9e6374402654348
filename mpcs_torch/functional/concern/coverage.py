"""Coverage and accuracy of decisions if some samples are referred to a person, and the risk-coverage curve."""

from numbers import Real
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import require
from mpcs_torch.functional.concern.dangerous import (
    DangerousErrorCounts,
    SeverityMeasure,
    dangerous_pair_mask,
)
from mpcs_torch.functional.inputs.arrays import ConcernLike
from mpcs_torch.functional.inputs.checks import widened, widest_float
from mpcs_torch.functional.inputs.decisions import highest_class
from mpcs_torch.functional.inputs.probabilities import Samples, checked_samples, input_scale
from mpcs_torch.functional.measure import RatioOfBins


def coverage(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    concern: ConcernLike | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the share of samples that are decided, not referred to a person; higher is better, 1 if all are decided.

    Arguments and errors are those of `dangerous_errors`, without ``normalize``. A ``concern`` is needed only if
    ``preds`` has coarse answers (groups of classes). If ``preds`` has scores, every sample is decided.

    Returns:
        A float64 scalar (float32 on MPS); NaN without samples.

    References:
        El-Yaniv, Wiener: On the Foundations of Noise-free Selective Classification, JMLR 11, 2010, Definition 1.

    Example:
        >>> import torch
        >>> coverage(torch.tensor([1, -1, 0, 2]), torch.tensor([1, 2, 0, 2]), num_classes=3)
        tensor(0.7500, dtype=torch.float64)
    """
    return Coverage(num_classes, ignore_index, concern)(preds, target, sample_weight)


class Coverage(SeverityMeasure):
    """The measure of `coverage`."""

    direction = "max"

    def ratio(self, sums: DangerousErrorCounts, whole: DangerousErrorCounts) -> RatioOfBins:  # noqa: ARG002
        """Return the numbers of decided samples and of all samples."""
        return sums.decided, sums.samples


def selective_accuracy(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    concern: ConcernLike | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the accuracy of the samples that are decided, not referred to a person; higher is better, 1 is perfect.

    Arguments and errors are those of `coverage`. A coarse answer is right if its group contains the true class.

    Returns:
        A float64 scalar (float32 on MPS); NaN if no sample is decided.

    References:
        El-Yaniv, Wiener: On the Foundations of Noise-free Selective Classification, JMLR 11, 2010, Definition 2: 1
        minus the selective risk.

    Example:
        >>> import torch
        >>> selective_accuracy(torch.tensor([1, -1, 1, 2]), torch.tensor([1, 2, 0, 2]), num_classes=3)
        tensor(0.6667, dtype=torch.float64)
    """
    measure = SelectiveAccuracy(num_classes, ignore_index, concern)
    return measure(preds, target, sample_weight)


class SelectiveAccuracy(SeverityMeasure):
    """The measure of `selective_accuracy`."""

    direction = "max"

    def ratio(self, sums: DangerousErrorCounts, whole: DangerousErrorCounts) -> RatioOfBins:  # noqa: ARG002
        """Return the numbers of correct decisions and of decided samples."""
        return sums.decided - sums.errors, sums.decided


class RiskCoverage(NamedTuple):
    """The risk-coverage curve: (N,) for each field, float64 (float32 on MPS); item n - 1 is for n decided samples."""

    coverage: Tensor
    """The share of samples that are decided, in (0, 1]; the other samples are referred to a person."""
    risk: Tensor
    """The mean loss of the decided samples; lower is better."""


def risk_coverage_area(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int,
    concern: Tensor | ConcernLike | None = None,
    from_logits: bool = True,
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the area under the curve of dangerous errors against coverage, in [0, 1]; lower is better.

    The decision for each sample is its most probable class :math:`\hat{y}`. Its estimated risk is the probability of a
    dangerous error, :math:`r = \sum_i p_i [(i, \hat{y})\text{ is dangerous}]`. For n = 1 to N, compute the share of
    dangerous errors among the n samples with the lowest r. The area is the mean of these N shares.

    ``preds`` are ``(N, C)`` or ``(N, C, ...)`` floating point logits, or probabilities with ``from_logits=False``. The
    other arguments and the errors are those of `dangerous_errors`, without ``normalize``.

    Returns:
        A float64 scalar (float32 on MPS); NaN without samples.

    References:
        Geifman, Uziel, El-Yaniv: Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers, ICLR 2019 (AURC).
        Deviations: only dangerous errors count; among samples with equal r, each counts as the mean of their errors, so
        the order of samples does not matter.

    Example:
        >>> import torch
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]])
        >>> risk_coverage_area(probs, torch.tensor([0, 0, 1, 1]), num_classes=2, from_logits=False)
        tensor(0.0625, dtype=torch.float64)
    """
    curve = _curve_of_errors(preds, target, num_classes, concern, from_logits, ignore_index)
    return curve.risk.mean()


def generalized_risk_coverage_area(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int,
    concern: Tensor | ConcernLike | None = None,
    from_logits: bool = True,
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the area under the curve of the share of decided dangerous errors against coverage; lower is better.

    Unlike `risk_coverage_area`, it divides errors by all samples, not by those decided, so an error counts the same
    wherever it is decided. It is the mean rate of dangerous errors that are not referred, if a share of samples is
    referred that is drawn at random from 0 to 1; in [0, 1/2]. Arguments and errors are those of `risk_coverage_area`.

    Returns:
        A float64 scalar (float32 on MPS); NaN without samples.

    References:
        Traub et al.: Overcoming Common Flaws in the Evaluation of Selective Classification Systems, NeurIPS 2024
        (AUGRC), by the trapezoidal rule from 0 decided samples. Deviation: only dangerous errors count.

    Example:
        >>> import torch
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]])
        >>> generalized_risk_coverage_area(probs, torch.tensor([0, 0, 1, 1]), num_classes=2, from_logits=False)
        tensor(0.0312, dtype=torch.float64)
    """
    curve = _curve_of_errors(preds, target, num_classes, concern, from_logits, ignore_index)
    return generalized_area(curve)


def risk_at_coverage(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int,
    coverage: float = 0.8,
    concern: Tensor | ConcernLike | None = None,
    from_logits: bool = True,
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the rate of dangerous errors among decided samples if a share of samples is decided; lower is better.

    The samples with the lowest estimated risk are decided, as in `risk_coverage_area`: the smallest number of them that
    is at least ``coverage``, above 0 and at most 1. The other arguments and the errors are those of this function.

    Returns:
        A float64 scalar (float32 on MPS), in [0, 1]; NaN without samples.

    References:
        El-Yaniv, Wiener: On the Foundations of Noise-free Selective Classification, JMLR 11, 2010 (selective risk).

    Example:
        >>> import torch
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]])
        >>> target = torch.tensor([0, 0, 1, 1])
        >>> risk_at_coverage(probs, target, num_classes=2, coverage=1.0, from_logits=False)
        tensor(0.2500, dtype=torch.float64)
    """
    check_coverage(coverage)
    curve = _curve_of_errors(preds, target, num_classes, concern, from_logits, ignore_index)
    return risk_at(curve, coverage)


def _curve_of_errors(
    preds: Tensor,
    target: Tensor,
    num_classes: int,
    concern: Tensor | ConcernLike | None,
    from_logits: bool,
    ignore_index: int | None,
) -> RiskCoverage:
    """Return the curve of dangerous errors."""
    samples = checked_samples(
        preds, target, num_classes, input_scale(from_logits), ignore_index
    )
    dangerous = dangerous_pair_mask(concern, num_classes).to(samples.scores.device)
    risk, loss = estimated_risks(samples, dangerous)
    counted = samples.labels.counted
    return risk_coverage_curve(risk[counted], loss[counted])


def generalized_area(curve: RiskCoverage) -> Tensor:
    """Return the area under the curve of errors divided by all samples, whose first point is (0, 0)."""
    of_all = curve.risk * curve.coverage
    # The trapezoidal rule from (0, 0) is the mean of all points, of which the last counts half.
    half_of_last = of_all[-1:] / max(2 * len(of_all), 1)
    return (of_all - half_of_last).mean()


def check_coverage(coverage: float) -> None:
    """Check that a share of decided samples is above 0 and at most 1."""
    is_share = isinstance(coverage, Real) and 0 < coverage <= 1
    require(is_share, "above_at_most", "coverage", coverage, minimum=0, maximum=1)


def risk_at(curve: RiskCoverage, coverage: float) -> Tensor:
    """Return the risk of the smallest number of samples whose share is at least ``coverage``; NaN without samples."""
    is_enough = curve.coverage >= coverage * (1 - 1e-12)  # their share may be rounded
    return curve.risk[is_enough][:1].mean()


def risk_coverage_curve(
    risk: Tensor, loss: Tensor, weight: Tensor | None = None
) -> RiskCoverage:
    """Compute the mean loss of the n samples with the lowest estimated risk, for n = 1 to N.

    Args:
        risk: ``(N,)``, floating point without NaN: the estimated risk of each sample. Only the order matters.
        loss: ``(N,)`` the loss >= 0 of the decision for each sample, e.g. whether it is a dangerous error.
        weight: ``(N,)`` sample weights above 0, used in the mean loss and in the coverage. Default: 1.

    Example:
        >>> import torch
        >>> risk_coverage_curve(torch.tensor([0.1, 0.4, 0.2]), torch.tensor([0, 1, 0])).risk
        tensor([0.0000, 0.0000, 0.3333], dtype=torch.float64)
    """
    is_alike = loss.shape == risk.shape and risk.ndim == 1
    shapes = [tuple(risk.shape), tuple(loss.shape)]
    require(is_alike, "same_shape", "risk and loss", shapes, shape="(N,)")
    require(not risk.isnan().any(), "no_nan", "risk")
    ordered = risk.sort()
    losses = widened(loss[ordered.indices])
    weights = torch.ones_like(losses)
    if weight is not None:
        weights = weight[ordered.indices].to(losses.dtype)
    # Samples with equal risks have the mean of their losses, so that their order does not matter.
    values, group = torch.unique_consecutive(ordered.values, return_inverse=True)
    zeros = losses.new_zeros(len(values))
    tied_loss = zeros.index_add(0, group, weights * losses)
    tied_weight = zeros.index_add(0, group, weights)
    mean_loss = (tied_loss / tied_weight)[group]
    count = weights.cumsum(0)
    return RiskCoverage(count / count[-1:], (mean_loss * weights).cumsum(0) / count)


def estimated_risks(samples: Samples, dangerous: Tensor) -> tuple[Tensor, Tensor]:
    """Return the probability that deciding for the most probable class is dangerous, and whether it is: (M,) each."""
    probs = samples.probs()
    _, decided = highest_class(probs)
    is_dangerous = dangerous[samples.labels.target, decided]
    return danger_risks(probs, decided, dangerous), is_dangerous


def danger_risks(probs: Tensor, decided: Tensor, dangerous: Tensor) -> Tensor:
    """Return the probability (M,) that each decision (M,) is a dangerous error, from class probabilities (M, C)."""
    of_dangerous = probs * dangerous.t()[decided]
    # The summation order varies between rows; rounded to float32, equal rows have equal risks.
    return of_dangerous.sum(dim=1, dtype=widest_float(probs.device)).float()
