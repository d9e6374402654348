"""The share of samples that are decided instead of referred."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import ConcernLike, as_tensors, is_spec
from mpcs_torch.functional.inputs.checks import check_num_classes
from mpcs_torch.functional.inputs.decisions import Decisions, flatten_decisions
from mpcs_torch.functional.inputs.faults import raise_first


class CoverageSums(NamedTuple):
    """Numbers of samples, or sums of their weights: (...), in the widest float."""

    decided: Tensor
    """Samples with a class or a coarse answer."""
    samples: Tensor
    """All samples."""


def coverage(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    concern: ConcernLike | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the share of samples that are decided instead of referred; higher is better, 1 refers none.

    Args:
        preds: ``(N, ...)`` integer predicted classes, with -1 for samples that are referred and C, C + 1, ... for the
            coarse answers of the spec, or ``(N, C, ...)`` floating point scores, which decide every sample.
        target: ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        concern: A `ConcernSpec`, if it has coarse answers.
        ignore_index: Label of samples to leave out.

    Returns:
        A float64 scalar (float32 on MPS); NaN without samples.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        El-Yaniv, Wiener: On the Foundations of Noise-free Selective Classification, JMLR 11, 2010, Definition 1.

    Example:
        >>> import torch
        >>> coverage(torch.tensor([1, -1, 0, 2]), torch.tensor([1, 2, 0, 2]), num_classes=3)
        tensor(0.7500, dtype=torch.float64)
    """
    check_num_classes(num_classes)
    preds, target, sample_weight = as_tensors(preds, target, sample_weight)
    decisions = flatten_decisions(
        preds,
        target,
        num_classes=num_classes,
        ignore_index=ignore_index,
        sample_weight=sample_weight,
        further=further_decisions(concern),
    )
    raise_first(decisions.find_faults())
    decided, samples = count_decided(decisions)
    return decided / samples


def further_decisions(concern: object) -> int:
    """Return the number of decisions beside the classes: coarse answers and a referral."""
    return 1 + (len(concern.members()) if is_spec(concern) else 0)


def count_decided(decisions: Decisions) -> CoverageSums:
    """Count the samples that are decided, without looking at a value."""
    weight = decisions.labels.weight
    is_decided = decisions.predicted < decisions.labels.num_classes + max(0, decisions.further - 1)
    return CoverageSums(*map(decisions.labels.sum, (torch.where(is_decided, weight, 0.0), weight)))
