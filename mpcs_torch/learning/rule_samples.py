"""The samples that a decision rule is fitted to."""

from collections.abc import Sequence

from torch import Tensor

from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.probabilities import flatten_samples

CALIBRATION_SHARE = 0.2


def checked_logits(preds: Tensor, target: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    """Check logits (N, C) and labels (N,), at least one of them; upcast half types."""
    if preds.ndim != 2:
        raise ValueError(f"preds must have shape (N, C), but got {tuple(preds.shape)}.")
    samples = flatten_samples(
        preds, target, num_classes=num_classes, scale="logits", ignore_index=None, sample_weight=None
    )
    raise_first(samples.find_faults())
    if not len(preds):
        raise ValueError("preds must hold at least one sample, but is empty.")
    return samples.scores, samples.labels.target


def class_frequencies(target: Tensor, class_names: Sequence[str]) -> Tensor:
    """Return the share of each class among labels (N,): (C,); refuse a class without samples."""
    counts = target.bincount(minlength=len(class_names))
    absent = [class_names[label] for label in (counts == 0).nonzero().flatten().tolist()]
    if absent:
        raise ValueError(f"target must hold every class to correct for priors, but has no {', '.join(absent)}.")
    return counts / len(target)


def calibration_samples(given: int) -> int:
    """Return how many of the given samples fit the calibration if the others guarantee a limit."""
    return max(1, round(CALIBRATION_SHARE * given))


def given_samples(judging: int) -> int:
    """Return how many samples must be given so that a number of them is left to judge."""
    given = judging
    while given - calibration_samples(given) < judging:
        given += 1
    return given
