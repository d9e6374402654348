"""Class scores and labels of any shape, flattened to M samples."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from mpcs_torch.errors import InvalidValueError, Rule
from mpcs_torch.functional.inputs.arrays import (
    EVERY_ROW,
    as_tensors,
    by_class,
    concat_chunks,
)
from mpcs_torch.functional.inputs.checks import check_num_classes, check_scores
from mpcs_torch.functional.inputs.faults import (
    Fault,
    outside,
    raise_first,
    warn_of_probabilities,
)
from mpcs_torch.functional.inputs.labels import Labels, flatten_labels
from mpcs_torch.functional.inputs.sum_tolerance import sum_tolerance

Scale = Literal["logits", "log_probs", "probs"]
MIN_PROBABILITY = 1e-12
"""The lowest probability whose logarithm is taken; it stands for lower ones, and in intervals for unseen samples."""


class Samples(NamedTuple):
    """A batch of M samples with scores for C classes. Results from invalid scores are NaN."""

    scores: Tensor
    """(M, C), floating point: logits, log-probabilities or probabilities, as ``scale`` names."""
    labels: Labels
    scale: Scale

    def at(self, rows: slice | Tensor) -> "Samples":
        """Return the samples in ``rows``."""
        if rows is EVERY_ROW:
            return self
        return Samples(self.scores[rows], self.labels.at(rows), self.scale)

    def wide(self) -> Tensor:
        """Return the scores (M, C) as float32 or wider; all scores of an ignored sample become 1 / C."""
        scores = self.scores.to(compute_dtype(self.scores))
        if self.labels.ignored is None:
            return scores
        # An ignored score may be NaN, and NaN times the weight 0 is NaN.
        ignored = self.labels.ignored.unsqueeze(1)
        return torch.where(ignored, 1 / self.labels.num_classes, scores)

    def probs(self) -> Tensor:
        """Return the class probabilities of each sample: (M, C)."""
        scores = self.wide()
        return scores if self.scale == "probs" else _row_wise(Tensor.softmax, scores)

    def log_probs(self) -> Tensor:
        """Return the log-probabilities of the classes (M, C); the scores must be logits or log-probabilities."""
        scores = self.wide()
        return scores if self.scale == "log_probs" else log_softmax(scores)

    def true_class_values(self, values: Tensor) -> Tensor:
        """Return the value in ``values`` (M, C) of each sample's true class: (M,)."""
        return values.gather(1, self.labels.target.unsqueeze(1)).squeeze(1)

    def map(self, term: Callable[["Samples"], Tensor]) -> Tensor:
        """Return a number for each sample, (M,), that ``term`` computes from parts of the samples."""
        (terms,) = concat_chunks(lambda rows: [term(self.at(rows))], self.scores)
        return terms

    def find_faults(self) -> Sequence[Fault]:
        """Return three `Fault`: the checks of labels, of scores and of weights."""
        tolerance = sum_tolerance(self.scores.dtype)
        if self.scale == "logits":
            warn_of_probabilities(self.scores, self.labels.ignored)
            finite = torch.finfo(self.scores.dtype)
            broken = outside(self.scores.amax(dim=1), finite.min, finite.max)
        elif self.scale == "log_probs":
            total = self.scores.to(compute_dtype(self.scores)).logsumexp(dim=1)
            broken = outside(total, -tolerance, tolerance)
        else:
            # torch adds 16-bit numbers in float32 anyway; with dtype=float32, it is ten times slower.
            total = self.scores.sum(dim=1)
            has_negative = outside(self.scores.amin(dim=1), 0)
            broken = outside(total, 1 - tolerance, 1 + tolerance) | has_negative
        return self.labels.find_faults(SCORE_RULES[self.scale], self.scores, broken)


SCORE_RULES: Mapping[Scale, Rule] = {
    "logits": Rule("logits", "preds"),
    "log_probs": Rule("log_probabilities", "preds"),
    "probs": Rule("probabilities", "preds"),
}


def compute_dtype(scores: Tensor) -> torch.dtype:
    """Return the dtype to compute in: float32 for scores of 16 bits, else the dtype of ``scores``."""
    # With a bfloat16 softmax and t = 50, MPCS would put one confidence in seven into the wrong interval.
    has_16_bits = scores.dtype in (torch.float16, torch.bfloat16)
    return torch.float32 if has_16_bits else scores.dtype


def log_softmax(scores: Tensor) -> Tensor:
    """Compute the row-wise log-softmax of scores (M, C)."""
    return _row_wise(Tensor.log_softmax, scores)


def _row_wise(function: Callable[[Tensor, int], Tensor], scores: Tensor) -> Tensor:
    """Apply ``function(tensor, dimension)`` to each row; transpose short rows first, which is five times faster.

    The number of rows is padded to a multiple of 64, so that torch rounds equal rows equally, wherever they are.
    """
    # Rows of fewer than 16 classes do not fill a vector register.
    if not scores.is_cpu or scores.shape[1] >= 16 or torch.compiler.is_compiling():
        return function(scores, 1)
    padding = -scores.shape[0] % 64  # more than the registers that torch uses at once
    columns = scores.t().contiguous()
    if padding:
        columns = nn.functional.pad(columns, (0, padding))
    return function(columns, 0)[:, : scores.shape[0]].t()


def input_scale(from_logits: bool) -> Scale:
    """Return the `Scale` for ``from_logits``: "logits" if True, else "probs"."""
    return "logits" if from_logits else "probs"


def as_two_classes(
    preds: Tensor, target: Tensor, num_classes: int, scale: Scale | None
) -> Tensor:
    """Expand binary scores (N, ...) of class 1 to both classes, (N, 2, ...); return other scores unchanged.

    If ``scale`` is None, raise a ValueError for binary scores, because their threshold (0 or 1/2) is unknown.
    """
    is_binary = (
        num_classes == 2 and preds.shape == target.shape and preds.is_floating_point()
    )
    if not is_binary or scale == "log_probs":
        return preds
    if scale is None:
        raise InvalidValueError("binary_scores", "preds", preds)
    # The sigmoid of a logit is the softmax of 0 and the logit.
    of_class_0 = 1 - preds if scale == "probs" else torch.zeros_like(preds)
    return torch.stack([of_class_0, preds], dim=1)


def flatten_samples(
    preds: Tensor,
    target: Tensor,
    num_classes: int,
    scale: Scale,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
) -> Samples:
    """Check shapes and dtypes, and flatten scores (N, C, ...) to (M, C), without waiting for an accelerator."""
    check_num_classes(num_classes)
    preds, target, sample_weight = as_tensors(preds, target, sample_weight)
    preds = as_two_classes(preds, target, num_classes, scale)
    check_scores(preds, target, num_classes)
    return Samples(
        by_class(preds, num_classes),
        flatten_labels(target, num_classes, ignore_index, sample_weight),
        scale,
    )


def checked_samples(
    preds: Tensor,
    target: Tensor,
    num_classes: int,
    scale: Scale,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
) -> Samples:
    """Flatten a batch as `flatten_samples` does, and validate its values; this waits for an accelerator."""
    samples = flatten_samples(
        preds, target, num_classes, scale, ignore_index, sample_weight
    )
    raise_first(samples.find_faults())
    return samples


def unlabelled_samples(preds: Tensor, num_classes: int, *, from_logits: bool) -> Samples:
    """Validate scores (N, C, ...), and return them as `Samples` whose labels are all 0."""
    shape = preds.shape[:1] + preds.shape[2:]  # without the classes
    labels = torch.zeros(shape, dtype=torch.int64, device=preds.device)
    return checked_samples(preds, labels, num_classes, input_scale(from_logits))
