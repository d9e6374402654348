"""The mean cost of decisions, relative to the best constant decision."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.concern.decision import least_risk, without_diagonal
from mpcs_torch.functional.inputs.checks import check_choice, check_concern, check_num_classes
from mpcs_torch.functional.inputs.decisions import flatten_decisions
from mpcs_torch.functional.inputs.faults import Fault, raise_first
from mpcs_torch.functional.inputs.labels import Labels
from mpcs_torch.functional.inputs.probabilities import flatten_samples, sample_rules, scale_of

DecideBy = Literal["most_probable", "least_concern"]


class CostSums(NamedTuple):
    """Sums over samples, each multiplied by its weight, in the widest float."""

    cost: Tensor
    """Scalar: the concern of the decisions."""
    constant_cost: Tensor
    """(C,): the concern of always deciding for each class."""
    samples: Tensor
    """Scalar: 1 for each sample."""


def expected_concern(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    concern: Tensor | None = None,
    decision: DecideBy = "most_probable",
    from_logits: bool = True,
    normalize: bool = True,
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the mean concern of decisions over samples; lower is better, 0 is perfect.

    Normalized, 1 is no better than the best constant decision:

    .. math:: \frac{\sum_n D_{y_n \hat{y}_n} [\hat{y}_n \ne y_n]}{\min_j \sum_n D_{y_n j} [j \ne y_n]}

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` floating point scores to decide by, or ``(N,)`` or ``(N, ...)`` integer
            decisions.
        target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N,)`` or ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        concern: ``(C, C)`` weights > 0 for taking the true class (row) for another (column); the diagonal is not read.
            Default: 1 everywhere, which counts errors.
        decision: The decision that scores lead to: for the ``"most_probable"`` class, or the ``"least_concern"``
            decision of `least_concern_decision`.
        from_logits: Whether scores are logits rather than probabilities. Never guessed.
        normalize: Whether to divide by the cost of the best constant decision. Otherwise the value is the mean concern
            per sample.
        ignore_index: Label of samples to leave out.

    Returns:
        A float64 scalar (float32 on MPS); NaN without samples, or if the decisions and the best constant decision both
        cost nothing.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Ferrer: Analysis and Comparison of Classification Metrics, arXiv:2209.05355, normalized expected cost.

    Example:
        >>> import torch
        >>> concern = torch.tensor([[0.0, 1.0, 9.0], [1.0, 0.0, 1.0], [9.0, 1.0, 0.0]])
        >>> expected_concern(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 2]), num_classes=3, concern=concern)
        tensor(0.5000, dtype=torch.float64)
    """
    check_num_classes(num_classes)
    check_choice("decision", decision, DecideBy)
    matrix = torch.ones(num_classes, num_classes, device=preds.device) if concern is None else concern
    check_concern(matrix, num_classes)
    decided = decide(
        preds,
        target,
        concern=matrix,
        decision=decision,
        from_logits=from_logits,
        ignore_index=ignore_index,
        sample_weight=sample_weight,
    )
    raise_first(decided.find_faults())
    return mean_cost(sum_costs(decided, matrix), normalize=normalize)


class Decided(NamedTuple):
    """The decisions for a batch of M samples, whether they were given or follow from scores."""

    predicted: Tensor
    """(M,), int64, in [0, C)."""
    labels: Labels
    find_faults: Callable[[], tuple[Fault, Fault, Fault]]
    """Finds the samples that break each rule of `cost_rules`, in that order."""


def decide(
    preds: Tensor,
    target: Tensor,
    *,
    concern: Tensor,
    decision: DecideBy,
    from_logits: bool,
    ignore_index: int | None,
    sample_weight: Tensor | None,
) -> Decided:
    """Flatten integer decisions, or scores and decide by them, without looking at a value."""
    num_classes = concern.shape[0]
    if preds.is_floating_point():
        samples = flatten_samples(
            preds,
            target,
            num_classes=num_classes,
            scale=scale_of(from_logits),
            ignore_index=ignore_index,
            sample_weight=sample_weight,
        )
        probs = samples.probs()
        predicted = probs.argmax(dim=1) if decision == "most_probable" else least_risk(probs, concern)
        return Decided(predicted, samples.labels, samples.find_faults)
    if decision != "most_probable":
        raise ValueError(f"preds must be floating point scores to decide by {decision!r}, but got {preds.dtype}.")
    decisions = flatten_decisions(
        preds, target, num_classes=num_classes, ignore_index=ignore_index, sample_weight=sample_weight
    )
    return Decided(decisions.predicted, decisions.labels, decisions.find_faults)


def cost_rules(num_classes: int, *, from_logits: bool) -> tuple[str, str, str]:
    """Return what the values of target, preds and sample_weight must be, as error messages begin."""
    target, preds, weight = sample_rules(num_classes, scale=scale_of(from_logits))
    return target, f"{preds}, or decisions from 0 to {num_classes - 1}", weight


def sum_costs(decided: Decided, concern: Tensor) -> CostSums:
    """Sum the costs of the decisions and of every constant decision, without looking at a value."""
    weight = decided.labels.weight
    rows = without_diagonal(concern).to(weight)[decided.labels.target] * weight.unsqueeze(1)
    cost = rows.gather(1, decided.predicted.unsqueeze(1)).sum()
    return CostSums(cost, rows.sum(dim=0), weight.sum())


def mean_cost(sums: CostSums, *, normalize: bool) -> Tensor:
    """Return the cost per sample, or relative to the best constant decision."""
    return sums.cost / (sums.constant_cost.amin() if normalize else sums.samples)
