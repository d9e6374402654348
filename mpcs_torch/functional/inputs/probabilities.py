"""Scores and labels of any supported shape as one flat list of samples."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from mpcs_torch.functional.inputs.arrays import as_tensors
from mpcs_torch.functional.inputs.checks import check_num_classes, check_scores
from mpcs_torch.functional.inputs.faults import Fault, Span, finite, raise_first, warn_of_probabilities
from mpcs_torch.functional.inputs.labels import WEIGHT_RULE, Labels, flatten_labels, label_rule
from mpcs_torch.functional.inputs.parts import EVERY_ROW, joined_parts
from mpcs_torch.functional.inputs.sum_tolerance import sum_tolerance

Scale = Literal["logits", "log_probs", "probs"]


class Samples(NamedTuple):
    """A batch of M samples; what is computed of it is safe even where its values break a rule."""

    scores: Tensor
    """(M, C), floating point: on the given scale, as they were given."""
    labels: Labels
    scale: Scale

    def at(self, rows: slice) -> "Samples":
        """Return some of the samples."""
        return self if rows is EVERY_ROW else Samples(self.scores[rows], self.labels.at(rows), self.scale)

    def wide(self) -> Tensor:
        """Return the scores as float32 or float64, the same for each class of an ignored sample: (M, C)."""
        scores = self.scores.to(computed_in(self.scores))
        if self.labels.ignored is None:
            return scores
        return torch.where(self.labels.ignored.unsqueeze(1), 1 / self.labels.num_classes, scores)  # 0 * NaN is NaN

    def probs(self) -> Tensor:
        """Return the probability of each class: (M, C)."""
        scores = self.wide()
        return scores if self.scale == "probs" else _of_rows(Tensor.softmax, scores)

    def log_probs(self) -> Tensor:
        """Return the natural logarithm of the probability of each class, from logits or log-probabilities: (M, C)."""
        scores = self.wide()
        return scores if self.scale == "log_probs" else log_softmax(scores)

    def of_true_class(self, values: Tensor) -> Tensor:
        """Pick the value of the true class from each row of (M, C): (M,)."""
        return values.gather(1, self.labels.target.unsqueeze(1)).squeeze(1)

    def find_faults(self, computed: Tensor | None = None) -> tuple[Fault, Fault, Fault]:
        """Find the samples that break each rule of `sample_rules`, in that order.

        Args:
            computed: (M,): numbers that a softmax of the logits has led to; they are NaN where logits break the rule.
                Default: the logits are looked at.
        """
        label_fault, weight_fault = self.labels.find_faults()
        tolerance = sum_tolerance(self.scores.dtype)
        if self.scale == "logits":
            warn_of_probabilities(self.scores, label_fault.counted)
            spans = [finite(self.scores.amax(dim=1)) if computed is None else Span(computed)]
        elif self.scale == "log_probs":
            spans = [Span(self.scores.to(computed_in(self.scores)).logsumexp(dim=1), -tolerance, tolerance)]
        else:
            total = self.scores.sum(dim=1)  # adds in float32; a sum into float32 takes ten times as long for half types
            spans = [Span(total, 1 - tolerance, 1 + tolerance), Span(self.scores.amin(dim=1), lowest=0)]
        _, rule, _ = sample_rules(self.labels.num_classes, scale=self.scale)
        return label_fault, Fault(rule, self.scores, spans, label_fault.counted), weight_fault


def computed_in(scores: Tensor) -> torch.dtype:
    """Return the dtype to compute in: float32 for half types."""
    # A softmax in bfloat16 would move one confidence in seven to another interval (t = 50).
    return torch.float32 if scores.dtype in (torch.float16, torch.bfloat16) else scores.dtype


def log_softmax(scores: Tensor) -> Tensor:
    """Take the log-softmax of each row of scores (M, C)."""
    return _of_rows(Tensor.log_softmax, scores)


def _of_rows(function: Callable[[Tensor, int], Tensor], scores: Tensor) -> Tensor:
    """Apply a function of vectors and their dimension to rows; torch takes five times as long over short ones.

    Columns are filled up to whole registers, because torch rounds the last ones of a row in another way: equal rows
    give equal bits wherever they stand.
    """
    # Rows of fewer than 16 classes do not fill a vector register.
    if not scores.is_cpu or scores.shape[1] >= 16 or torch.compiler.is_compiling():
        return function(scores, 1)
    columns, left = scores.t(), -scores.shape[0] % 64  # fills more registers than torch uses at once
    return function(nn.functional.pad(columns, (0, left)) if left else columns, 0)[:, : scores.shape[0]].t()


class RowTerms(NamedTuple):
    """A batch of M samples with the number that a metric makes of the scores of each."""

    term: Tensor
    """(M,): float32 or wider, NaN where logits break their rule; or int64 for decisions."""
    labels: Labels
    samples: Samples

    def find_faults(self) -> tuple[Fault, Fault, Fault]:
        """Find the samples that break each rule of `sample_rules`, in that order."""
        return self.samples.find_faults(self.term if self.term.is_floating_point() else None)


def terms_of(samples: Samples, term: Callable[[Samples], Tensor]) -> RowTerms:
    """Compute a number for each sample, (M,), without looking at a value."""
    (terms,) = joined_parts(lambda rows: [term(samples.at(rows))], samples.scores)
    return RowTerms(terms, samples.labels, samples)


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
    samples = flatten_samples(
        preds, target, num_classes=num_classes, scale=scale, ignore_index=ignore_index, sample_weight=sample_weight
    )
    terms = terms_of(samples, term)
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


def of_both_classes(preds: Tensor, target: Tensor, num_classes: int, scale: Scale | None) -> Tensor:
    """Return scores (N, ...) of class 1 alone as those of both classes, (N, 2, ...), and others as they are.

    Raises:
        ValueError: If they are on no known scale: a decision for class 1 begins at a logit of 0, or a probability of
            1/2.
    """
    if num_classes != 2 or preds.shape != target.shape or not preds.is_floating_point() or scale == "log_probs":
        return preds
    if scale is None:
        raise ValueError(
            f"preds must have shape (N, 2) or hold integer decisions, but got {preds.dtype} {tuple(preds.shape)}: "
            "pass decisions such as (preds > 0.5).long() of the probabilities of class 1."
        )
    # A sigmoid is a softmax with 0.
    return torch.stack([1 - preds if scale == "probs" else torch.zeros_like(preds), preds], dim=1)


def flatten_samples(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int,
    scale: Scale,
    ignore_index: int | None = None,
    sample_weight: Tensor | None = None,
) -> Samples:
    """Check shapes and dtypes, and flatten (N, C, ...) to (M, C).

    Nothing here looks at a value, so an accelerator is never waited for.
    """
    preds, target, sample_weight = as_tensors(preds, target, sample_weight)
    preds = of_both_classes(preds, target, num_classes, scale)
    check_scores(preds, target, num_classes)
    scores = preds if preds.ndim == 2 else preds.movedim(1, -1).reshape(-1, num_classes)
    labels = flatten_labels(target, num_classes=num_classes, ignore_index=ignore_index, sample_weight=sample_weight)
    return Samples(scores, labels, scale)
