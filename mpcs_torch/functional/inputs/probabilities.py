"""Scores and labels of any supported shape as one flat list of samples."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import as_tensors
from mpcs_torch.functional.inputs.checks import check_num_classes, check_scores
from mpcs_torch.functional.inputs.faults import Fault, raise_first, warn_of_probabilities
from mpcs_torch.functional.inputs.labels import WEIGHT_RULE, Labels, flatten_labels, label_rule
from mpcs_torch.functional.inputs.parts import of_parts

Scale = Literal["logits", "log_probs", "probs"]


class GivenSamples(NamedTuple):
    """A batch of M samples with the scores as they were given."""

    scores: Tensor
    """(M, C), floating point: on the given scale."""
    labels: Labels
    scale: Scale
    checked: bool = True
    """Whether to look for scores that are off their scale; without, none is found."""

    def upcast(self) -> "Samples":
        """Make half types float32, and the scores of ignored samples harmless."""
        scores = self.scores.to(computed_in(self.scores))
        if self.labels.ignores:  # a weight of 0 would not cancel a NaN
            scores = torch.where(self.labels.counted.unsqueeze(1), scores, 1 / self.labels.num_classes)
        return Samples(scores, self.labels, self.scale, self.scores.dtype, self.checked)

    def at(self, rows: slice) -> "GivenSamples":
        """Return some of the samples."""
        return GivenSamples(self.scores[rows], self.labels.at(rows), self.scale, self.checked)

    def find_faults(self, is_bad: Tensor) -> tuple[Fault, Fault, Fault]:
        """Find the samples that break each rule of `sample_rules`, in that order, given whose scores do: (M,), bool."""
        if self.scale == "logits":
            warn_of_probabilities(self.scores, self.labels.counted if self.labels.ignores else None)
        label_fault, weight_fault = self.labels.find_faults()
        _, rule, _ = sample_rules(self.labels.num_classes, scale=self.scale)
        bad = is_bad & self.labels.counted if self.labels.ignores else is_bad
        return label_fault, Fault(rule, bad, self.scores), weight_fault


class Samples(NamedTuple):
    """A batch of M samples, safe to compute with even where their values break a rule."""

    scores: Tensor
    """(M, C), float32 or float64: on the given scale; the same for each class of an ignored sample."""
    labels: Labels
    scale: Scale
    given_as: torch.dtype
    """The dtype of the scores before half types were upcast."""
    checked: bool = True
    """As `GivenSamples.checked`."""

    def probs(self) -> Tensor:
        """Return the probability of each class, to the last bit that of torch: (M, C)."""
        return self.scores if self.scale == "probs" else self.scores.softmax(dim=1)

    def quick_probs(self) -> Tensor:
        """Return the probability of each class, but for its last bit: (M, C)."""
        return probs_of(self.scores, self.scale)

    def log_probs(self) -> Tensor:
        """Return the natural logarithm of the probability of each class, from logits or log-probabilities: (M, C)."""
        return self.scores if self.scale == "log_probs" else log_softmax(self.scores)

    def of_true_class(self, values: Tensor) -> Tensor:
        """Pick the value of the true class from each row of (M, C): (M,)."""
        return values.gather(1, self.labels.target.unsqueeze(1)).squeeze(1)

    def find_faults(self) -> tuple[Fault, Fault, Fault]:
        """Find the samples that break each rule of `sample_rules`, in that order."""
        return GivenSamples(self.scores, self.labels, self.scale).find_faults(self.is_bad())

    def is_bad(self, probs: Tensor | None = None) -> Tensor:
        """Tell for each sample whether its scores are off their scale: (M,), bool.

        Given the probabilities too, this does not read the logits again.
        """
        if not self.checked:
            return torch.zeros_like(self.labels.target, dtype=torch.bool)
        if self.scale == "logits":
            # A softmax is NaN in all classes unless the largest logit is finite.
            return ~self.scores.amax(dim=1).isfinite() if probs is None else probs[:, 0] != probs[:, 0]
        # Rounding each probability moves their sum by about the type's eps; 1e-3 forgives printed decimals.
        tolerance = max(1e-3, torch.finfo(self.given_as).eps)
        if self.scale == "log_probs":
            return ~(self.scores.logsumexp(dim=1).abs() <= tolerance)
        scores = self.scores if probs is None else probs  # these may be laid out better
        return ~(((scores.sum(dim=1) - 1).abs() <= tolerance) & (scores.amin(dim=1) >= 0))


def computed_in(scores: Tensor) -> torch.dtype:
    """Return the dtype to compute in: float32 for half types."""
    # A softmax in bfloat16 would move one confidence in seven to another interval (t = 50).
    return torch.float32 if scores.dtype in (torch.float16, torch.bfloat16) else scores.dtype


def probs_of(scores: Tensor, scale: Scale) -> Tensor:
    """Return the probability of each class, but for its last bit, from scores (M, C) on a scale."""
    if scale == "logits":
        return _in_columns(scores, Tensor.softmax)
    return scores if scale == "probs" else scores.exp()


REGISTER = 16
"""The floats that a vector register of a CPU holds, at most."""


def log_softmax(scores: Tensor) -> Tensor:
    """Take the log-softmax of each row of scores (M, C): the bits that torch gives for float32."""
    return _in_columns(scores, Tensor.log_softmax)


def _in_columns(scores: Tensor, function: Callable[[Tensor, int], Tensor]) -> Tensor:
    """Apply a function of vectors, and of their dimension, to the rows of scores.

    On the CPU, torch takes six times as long over rows that are shorter than a vector register as over columns. In
    registers of 16 floats both give the same logarithms, if no column is left over for a scalar exponential.
    """
    classes = scores.shape[1]
    if not scores.is_cpu or torch.compiler.is_compiling():
        return function(scores, 1)

    def of_part(rows: slice) -> Tensor:
        part = scores[rows]
        if classes >= REGISTER:
            return function(part, 1)
        columns = scores.new_zeros(classes, len(part) + -len(part) % REGISTER)
        columns[:, : len(part)] = part.t()
        return function(columns, 0)[:, : len(part)].t()

    return torch.cat(of_parts(of_part, scores))


class RowTerms(NamedTuple):
    """A batch of M samples with the number that a metric makes of the scores of each."""

    term: Tensor
    """(M,): float32 or wider, or int64 for decisions."""
    labels: Labels
    given: GivenSamples
    is_bad: Tensor
    """(M,), bool: whether the scores of a sample are off their scale."""

    def find_faults(self) -> tuple[Fault, Fault, Fault]:
        """Find the samples that break each rule of `sample_rules`, in that order."""
        return self.given.find_faults(self.is_bad)


def terms_of(given: GivenSamples, term: Callable[[Samples], Tensor]) -> RowTerms:
    """Compute a number for each sample, (M,), without looking at a value."""

    def of_part(rows: slice) -> tuple[Tensor, Tensor]:
        samples = given.at(rows).upcast()
        return term(samples), samples.is_bad()

    terms, is_bad = (torch.cat(parts) for parts in zip(*of_parts(of_part, given.scores), strict=True))
    return RowTerms(terms, given.labels, given, is_bad)


def checked_terms(
    term: Callable[[Samples], Tensor],
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None,
    *,
    num_classes: int,
    scale: Scale,
    ignore_index: int | None,
) -> RowTerms:
    """Flatten a batch, compute a number for each sample, and check the values. This waits for an accelerator."""
    check_num_classes(num_classes)
    given = flatten_given(
        preds, target, num_classes=num_classes, scale=scale, ignore_index=ignore_index, sample_weight=sample_weight
    )
    terms = terms_of(given, term)
    raise_first(terms.find_faults())
    return terms


def sample_rules(num_classes: int, *, scale: Scale) -> tuple[str, str, str]:
    """Return what the values of target, preds and sample_weight must be, as error messages begin."""
    preds = {
        "logits": "preds must be logits without NaN or +inf",
        "log_probs": "preds must be log-probabilities whose exponentials sum to 1 over dimension 1",
        "probs": "preds must be probabilities >= 0 that sum to 1 over dimension 1 (for logits pass from_logits=True)",
    }
    return label_rule(num_classes), preds[scale], WEIGHT_RULE


def scale_of(from_logits: bool) -> Scale:
    """Return the scale of scores that are logits or probabilities."""
    return "logits" if from_logits else "probs"


def checked_samples(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    scale: Scale,
    ignore_index: int | None,
) -> Samples:
    """Flatten a batch as `flatten_samples` does, and check its values. This waits for an accelerator."""
    check_num_classes(num_classes)
    samples = flatten_samples(
        preds, target, num_classes=num_classes, scale=scale, ignore_index=ignore_index, sample_weight=sample_weight
    )
    raise_first(samples.find_faults())
    return samples


def flatten_samples(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int,
    scale: Scale,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
) -> Samples:
    """Check shapes and dtypes, upcast half types, and flatten (N, C, ...) to (M, C)."""
    return flatten_given(
        preds, target, num_classes=num_classes, scale=scale, ignore_index=ignore_index, sample_weight=sample_weight
    ).upcast()


def flatten_given(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int,
    scale: Scale,
    ignore_index: int | None,
    sample_weight: Tensor | None,
    checked: bool = True,
) -> GivenSamples:
    """Check shapes and dtypes, and flatten (N, C, ...) to (M, C).

    Nothing here looks at a value, so an accelerator is never waited for.
    """
    preds, target, sample_weight = as_tensors(preds, target, sample_weight)
    if num_classes == 2 and preds.shape == target.shape and scale != "log_probs" and preds.is_floating_point():
        # Of class 1 alone, (N, ...): make them those of both classes, (N, 2, ...); a sigmoid is such a softmax.
        preds = torch.stack([1 - preds if scale == "probs" else torch.zeros_like(preds), preds], dim=1)
    check_scores(preds, target, num_classes)
    scores = preds if preds.ndim == 2 else preds.movedim(1, -1).reshape(-1, num_classes)
    labels = flatten_labels(target, num_classes=num_classes, ignore_index=ignore_index, sample_weight=sample_weight)
    return GivenSamples(scores, labels, scale, checked)
