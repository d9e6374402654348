"""What decisions cost, as a share of what the best constant decision costs."""

from typing import Literal, NamedTuple

from torch import Tensor

from mpcs_torch.functional.concern.decision import least_risk, without_diagonal
from mpcs_torch.functional.inputs.checks import check_concern
from mpcs_torch.functional.inputs.decisions import flatten_decided
from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.faults import Fault, raise_first
from mpcs_torch.functional.inputs.probabilities import flatten_samples, sample_rules

Decision = Literal["most_probable", "least_concern"]


class CostSums(NamedTuple):
    """Sums over samples, in the widest float."""

    cost: Tensor
    """Scalar: concern of the wrong decisions."""
    constant_cost: Tensor
    """(C,): what always deciding for each class would have cost."""
    samples: Tensor
    """Scalar."""


def expected_concern(
    preds: Tensor,
    target: Tensor,
    *,
    concern: Tensor,
    decision: Decision = "most_probable",
    from_logits: bool = True,
    normalize: bool = True,
    ignore_index: int | None = None,
) -> Tensor:
    r"""Mean concern of decisions over samples; lower is better, 0 is perfect, 1 is no better than a constant.

    .. math:: \frac{\sum_n D_{y_n \hat{y}_n} [\hat{y}_n \ne y_n]}{\min_j \sum_n D_{y_n j} [j \ne y_n]}

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` floating point scores to decide by, or ``(N,)`` or ``(N, ...)`` integer
            decisions.
        target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``.
        concern: ``(C, C)`` weights > 0 for taking the true class (row) for another (column); the diagonal is not read.
        decision: How scores decide: for the ``"most_probable"`` class, or by `least_concern_decision`.
        from_logits: Whether scores are logits rather than probabilities. Never guessed.
        normalize: Whether to divide by the cost of the best constant decision; without, the mean concern per sample.
        ignore_index: Label of samples to leave out.

    Returns:
        A float64 scalar (float32 on MPS); NaN without samples, or where a constant decision costs nothing and ours
        does not either.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Ferrer: Analysis and Comparison of Classification Metrics, arXiv:2209.05355, normalized expected cost.

    Example:
        >>> import torch
        >>> concern = torch.tensor([[0.0, 1.0, 9.0], [1.0, 0.0, 1.0], [9.0, 1.0, 0.0]])
        >>> expected_concern(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 2]), concern=concern)
        tensor(0.5000, dtype=torch.float64)
    """
    check_decision(decision)
    check_concern(concern, len(concern) if isinstance(concern, Tensor) else 0)
    sums, faults = sum_costs(
        preds, target, concern=concern, decision=decision, from_logits=from_logits, ignore_index=ignore_index
    )
    raise_first(faults)
    return mean_cost(sums, normalize=normalize)


def check_decision(decision: str) -> None:
    """Refuse an unknown way to decide."""
    if decision not in ("most_probable", "least_concern"):
        raise ValueError(f"decision must be 'most_probable' or 'least_concern', but got {decision!r}.")


def decision_rules(num_classes: int, *, from_logits: bool) -> tuple[str, str]:
    """What the values of target and preds must be, as error messages begin."""
    target, preds, _ = sample_rules(num_classes, from_logits=from_logits)
    return target, f"{preds}, or decisions from 0 to {num_classes - 1}"


def sum_costs(
    preds: Tensor,
    target: Tensor,
    *,
    concern: Tensor,
    decision: Decision,
    from_logits: bool,
    ignore_index: int | None,
) -> tuple[CostSums, tuple[Fault, Fault]]:
    """The sums, and the samples that break a rule; looks at no value, so an accelerator is never waited for."""
    num_classes = concern.shape[0]
    target_rule, preds_rule = decision_rules(num_classes, from_logits=from_logits)
    if preds.is_floating_point():
        samples = flatten_samples(
            preds,
            target,
            num_classes=num_classes,
            from_logits=from_logits,
            ignore_index=ignore_index,
            sample_weight=None,
        )
        labels, counted = samples.target, samples.weight
        decided = _decide(samples.probs, concern, decision)
        target_fault, preds_fault, _ = samples.faults
    else:
        if decision != "most_probable":
            raise ValueError(f"preds must be floating point scores to decide by {decision!r}, but got {preds.dtype}.")
        pairs = flatten_decided(preds, target, num_classes=num_classes, ignore_index=ignore_index)
        labels, counted = pairs.target, pairs.counted.to(widest_float(preds.device))
        decided = pairs.predicted
        target_fault, preds_fault = pairs.faults
    rows = without_diagonal(concern).to(counted)[labels] * counted.unsqueeze(1)
    cost = rows.gather(1, decided.unsqueeze(1)).sum()
    faults = target_fault._replace(rule=target_rule), preds_fault._replace(rule=preds_rule)
    return CostSums(cost, rows.sum(dim=0), counted.sum()), faults


def mean_cost(sums: CostSums, *, normalize: bool) -> Tensor:
    """The cost per sample, or as a share of the best constant decision's."""
    return sums.cost / (sums.constant_cost.amin() if normalize else sums.samples)


def _decide(probs: Tensor, concern: Tensor, decision: Decision) -> Tensor:
    return probs.argmax(dim=1) if decision == "most_probable" else least_risk(probs, concern)
