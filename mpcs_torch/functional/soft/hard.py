"""Counts of soft labels and predictions that are above a threshold, and the thresholds with the highest F."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_beta, widest_float
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.soft_labels import SoftSamples, flatten_soft
from mpcs_torch.functional.soft.sums import SoftSums, check_soft_settings

HARD_LABEL = 0.5
"""The threshold of soft labels: a label above it is positive."""


def hard_sums(samples: SoftSamples, threshold: float | Tensor) -> SoftSums:
    """Count predictions above ``threshold``, labels above 0.5, and both, without synchronizing an accelerator."""
    wide = widest_float(samples.preds.device)
    limit = threshold.to(samples.preds.device, wide) if isinstance(threshold, Tensor) else threshold

    def thresholded(chunk: SoftSamples) -> tuple[Tensor, Tensor, Tensor]:
        predicted, actual = chunk.predicted > limit, chunk.actual > HARD_LABEL
        predicted = predicted if chunk.ignored is None else predicted & chunk.counted
        return predicted & actual, predicted, actual

    shared, predicted, actual = samples.sums(thresholded, wide)
    return SoftSums(shared, predicted, actual, samples.elements(wide))


def check_threshold(threshold: float | Tensor, num_classes: int) -> None:
    """Check that a threshold is not NaN and, if it is a tensor, has one value for each class."""
    if isinstance(threshold, Tensor) and (threshold.shape != (num_classes,) or not threshold.is_floating_point()):
        raise ValueError(
            f"threshold must be a number or floating point of shape ({num_classes},), "
            f"but got {threshold.dtype} of shape {tuple(threshold.shape)}."
        )
    if torch.as_tensor(threshold).isnan().any():
        raise ValueError(f"threshold must not be NaN, but got {threshold}.")


class FThresholds(NamedTuple):
    """The best thresholds of the classes: float64 (C,) each."""

    threshold: Tensor
    """The threshold of each class; a prediction above it is positive."""
    fscore: Tensor
    """The F score at that threshold, in [0, 1]."""


def best_f_thresholds(
    preds: Tensor, target: Tensor, ignore: Tensor | None = None, *, num_classes: int, beta: float = 1.0
) -> FThresholds:
    r"""Compute for each class the threshold of predictions with the highest F against labels above 0.5.

    All distinct predictions are tried, so the maximum is exact. The threshold is the middle of the interval of optimal
    thresholds. If several intervals tie, it is the middle of the widest bounded one (the lowest of equally wide ones).
    Thresholds with the same F here can differ on new data. The threshold is -inf if accepting everything is optimal. A
    class without a label above 0.5 gets the threshold +inf, and NaN as F.

    F on the same data is optimistic: choose thresholds on development data, and evaluate with `hard_f1` on a hold-out.
    Per-class thresholds maximize macro F; micro F can fall. Arguments and errors are those of `soft_fbeta`.

    References:
        Harju, Mesaros: Evaluating classification systems against soft labels with fuzzy precision and recall,
        DCASE 2023, Section 3.1 (optimal threshold).

    Example:
        >>> preds, target = torch.tensor([0.1, 0.2, 0.4, 0.7]), torch.tensor([0.2, 0.4, 0.6, 0.9])
        >>> best = best_f_thresholds(preds, target, num_classes=1)
        >>> print(f"F {best.fscore.item():.1f} above {best.threshold.item():.1f}")
        F 1.0 above 0.3
    """
    check_soft_settings(num_classes, "none", 0.0)
    check_beta(beta)
    samples = flatten_soft(preds, target, num_classes=num_classes, sample_weight=None, ignore=ignore)
    raise_first(samples.find_faults())
    wide = widest_float(samples.preds.device)
    predicted, is_true = samples.predicted.detach().to(wide), samples.actual > HARD_LABEL
    columns = zip(predicted.unbind(1), is_true.unbind(1), samples.counted.unbind(1), strict=True)
    best = [_best_of_class(values[counted], truth[counted], beta) for values, truth, counted in columns]
    return FThresholds(*(torch.stack(field) for field in zip(*best, strict=True)))


def _best_of_class(predicted: Tensor, is_true: Tensor, beta: float) -> FThresholds:
    """Return the threshold with the highest F for predictions (M,), chosen as in `best_f_thresholds`, and this F."""
    if not is_true.any():
        return FThresholds(predicted.new_tensor(torch.inf), predicted.new_tensor(torch.nan))
    values, place, total = torch.unique(predicted, return_inverse=True, return_counts=True)
    positives = torch.zeros_like(total).index_add(0, place, is_true.to(total))
    from_value_up = (counts.flip(0).cumsum(0).flip(0).to(predicted) for counts in (total, positives))
    accepted, hits = from_value_up
    fscore = (1 + beta**2) * hits / (beta**2 * hits[0] + accepted)
    best = fscore == fscore.max()
    edges = best.to(total).diff(prepend=total.new_zeros(1), append=total.new_zeros(1))
    first, last = (edges == 1).nonzero().squeeze(1), (edges == -1).nonzero().squeeze(1) - 1
    low = torch.where(first > 0, values[(first - 1).clamp(min=0)], -torch.inf)
    high = values[last]
    widest = (high - low).nan_to_num(posinf=-1).argmax()
    return FThresholds(_middle_of(low[widest], high[widest]), fscore.max())


def _middle_of(low: Tensor, high: Tensor) -> Tensor:
    """Return the middle of the interval [low, high), or ``low`` if no other float lies in it."""
    middle = low + (high - low) / 2
    return torch.where(low.isinf() | (middle >= high), low, middle)
