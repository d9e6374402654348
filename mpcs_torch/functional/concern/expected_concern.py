"""Mean costs of decisions: with costs per pair of classes, with costs per sample, and with ranges of costs."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.concern.decision import least_risk, prior_ratio, shifted_probs
from mpcs_torch.functional.inputs.arrays import ConcernLike, as_tensor, as_tensors, concern_costs
from mpcs_torch.functional.inputs.checks import (
    check_choice,
    check_costs,
    check_matrix_fits,
    widest_float,
)
from mpcs_torch.functional.inputs.decisions import (
    Decisions,
    decision_range,
    decision_rules,
    flatten_decisions,
    highest_class,
)
from mpcs_torch.functional.inputs.faults import Fault, finite, raise_first
from mpcs_torch.functional.inputs.labels import Labels
from mpcs_torch.functional.inputs.probabilities import (
    RowTerms,
    Samples,
    flatten_samples,
    input_scale,
    row_terms,
    sample_rules,
)

DecideBy = Literal["most_probable", "least_concern"]


class CostSums(NamedTuple):
    """For each true class, the sums of costs and of sample weights: (..., C) each, float64 (float32 on MPS)."""

    cost: Tensor
    """The sum of the costs of the decisions, each multiplied by its weight."""
    samples: Tensor
    """The sum of the weights."""


def expected_concern(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    concern: Tensor | ConcernLike | None = None,
    decision: DecideBy = "most_probable",
    from_logits: bool = True,
    training_priors: Tensor | None = None,
    priors: Tensor | None = None,
    normalize: bool = True,
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the mean concern (cost) of decisions over samples; lower is better, 0 is perfect.

    By default, this mean is divided by the mean concern of always deciding for the best single class. A value of 1 is
    then no better than that constant decision. With true class y, decision :math:`\hat{y}` and concern D:

    .. math:: \frac{\sum_n D_{y_n \hat{y}_n} [\hat{y}_n \ne y_n]}{\min_j \sum_n D_{y_n j} [j \ne y_n]}

    With ``priors`` :math:`\pi`, both means become :math:`\sum_c \pi_c m_c`: :math:`m_c` is the mean concern of the
    samples of class c.

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` floating point scores, or ``(N,)`` or ``(N, ...)`` integer decisions. A
            decision is a class, -1 to refer the sample to a person, or C, C + 1, ... for coarse answers (class groups).
        target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N,)`` or ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        concern: A `ConcernSpec`, or ``(C, C)`` costs >= 0 for mistaking the true class (row) for another (column); the
            diagonal is not read. A matrix ``(C, C + A + 1)``, as from `ConcernSpec.costs`, also has the costs of A
            coarse answers and, in the last column, of a referral. Default: 1 everywhere, which counts errors.
        decision: The rule for scores: the ``"most_probable"`` class, or ``"least_concern"`` (`least_concern_decision`).
        from_logits: Whether ``preds`` are logits rather than probabilities; never guessed from the values.
        training_priors: ``(C,)`` class frequencies of the training data. If given, `shift_priors` corrects
            probabilities for ``priors``; integer decisions stay unchanged.
        priors: ``(C,)`` class frequencies of the deployment, >= 0 with a sum of 1. Default: those of the samples.
        normalize: Whether to divide by the mean concern of the best single class, as above. Coarse answers and
            referrals are not considered as constant decisions.
        ignore_index: Label of samples to leave out.

    Returns:
        A float64 scalar (float32 on MPS). It is NaN without samples, without samples of a class with a prior above 0,
        or if both means are 0. It is infinite if only the mean concern of the best single class is 0.

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
    check_choice("decision", decision, DecideBy)
    preds = as_tensor(preds, "preds")
    matrix = cost_matrix(concern, num_classes).to(preds.device, widest_float(preds.device))
    ratio = prior_ratio(training_priors, priors, num_classes, needs_both=False)
    decided = decide(preds, target, sample_weight, matrix, decision, from_logits, ratio, ignore_index)
    raise_first(decided.find_faults())
    return mean_cost(sum_costs(decided, matrix), matrix, priors=priors, normalize=normalize)


def cost_matrix(concern: Tensor | ConcernLike | None, num_classes: int) -> Tensor:
    """Return the validated costs, (C, C) or wider, floating point, 0 on the diagonal; None means 1 for each error."""
    check_matrix_fits(num_classes, 8)
    if concern is None:
        concern = torch.ones(num_classes, num_classes)
    costs = concern_costs(concern)
    check_costs(costs, num_classes, referral=True)
    # The diagonal is not read, so costs that differ only there must have equal fingerprints.
    return costs.detach().to(widest_float(costs.device), copy=True).fill_diagonal_(0)


Decided = RowTerms | Decisions
"""The decisions for a batch, from scores or as passed in. The first field has the decisions (M,), as column numbers of
the cost matrix; the second field has the labels."""


def decide(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None,
    concern: Tensor,
    decision: DecideBy,
    from_logits: bool,
    ratio: Tensor | None,
    ignore_index: int | None,
) -> Decided:
    """Flatten the batch to M samples and, if it has scores, decide by the rule ``decision``."""
    preds, target, sample_weight = as_tensors(preds, target, sample_weight)
    num_classes = concern.shape[0]
    if preds.is_floating_point():
        samples = flatten_samples(preds, target, num_classes, input_scale(from_logits), ignore_index, sample_weight)

        def decide_rows(samples: Samples) -> Tensor:
            if decision == "most_probable" and ratio is None:
                return highest_class(samples.scores)[1]
            probs = samples.probs() if ratio is None else shifted_probs(samples, ratio)
            return highest_class(probs)[1] if decision == "most_probable" else least_risk(probs, concern)

        return row_terms(samples, decide_rows)
    if decision != "most_probable":
        raise ValueError(f"preds must be floating point scores to decide by {decision!r}, but got {preds.dtype}.")
    further = concern.shape[1] - num_classes
    return flatten_decisions(preds, target, num_classes, ignore_index, sample_weight, further)


def cost_rules(concern: Tensor, *, from_logits: bool) -> tuple[str, str, str]:
    """Return the rules for values of target, preds and sample_weight; an error message begins with the broken rule."""
    num_classes = concern.shape[0]
    target, preds, weight = sample_rules(num_classes, scale=input_scale(from_logits))
    return target, f"{preds}, or decisions {decision_range(num_classes, concern.shape[1] - num_classes)}", weight


def sum_costs(decided: Decided, concern: Tensor) -> CostSums:
    """Sum the costs of decisions for each true class, from costs (C, K), without synchronizing an accelerator."""
    predicted, labels, *_ = decided
    target = labels.target
    cost = concern.flatten().take(target * concern.shape[1] + predicted)
    return CostSums(labels.sum_by(target, len(concern), cost), labels.sum_by(target, len(concern)))


def mean_cost(sums: CostSums, concern: Tensor, *, priors: Tensor | None, normalize: bool) -> Tensor:
    """Return `expected_concern` from sums of costs, with the settings ``priors`` and ``normalize``."""
    costs = concern[:, : len(concern)].to(sums.cost)  # constant coarse answers or referrals are left out
    if priors is None:
        return sums.cost.sum(-1) / ((sums.samples @ costs).amin(-1) if normalize else sums.samples.sum(-1))
    shares = priors.to(sums.cost)
    cost = torch.where(shares > 0, shares * sums.cost / sums.samples, 0.0).sum(-1)
    return cost / (shares @ costs).amin() if normalize else cost


class RowCostSums(NamedTuple):
    """Sums of costs times sample weights, and of these weights (``samples``): (...) each, float64 (float32 on MPS)."""

    cost: Tensor
    """The sum of the costs of the decisions."""
    least: Tensor
    """The sum of the costs of the cheapest decision for each sample."""
    most: Tensor
    """The sum of the costs of the most expensive decision for each sample."""
    samples: Tensor
    """The sum of the weights."""


def row_cost(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    regret: bool = False,
) -> Tensor:
    r"""Compute the mean cost of decisions, if each sample has a separate cost for each decision; lower is better.

    With the cost :math:`c_{nj}` of decision j for sample n, and the actual decision :math:`\hat{y}_n`, the result is

    .. math:: \frac{1}{N} \sum_n c_{n \hat{y}_n}, \quad \textrm{or with regret} \quad
        \frac{1}{N} \sum_n (c_{n \hat{y}_n} - \min_j c_{nj})

    Args:
        preds: ``(N, ...)`` integer decisions, or ``(N, C, ...)`` floating point scores of any kind. The index of the
            highest score is the decision (the lower index in a tie).
        target: ``(N, C, ...)`` the cost of each decision for each sample, e.g. in euros: finite, negative for a gain.
        sample_weight: ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        regret: Whether to subtract the cost of the cheapest decision for each sample: 0 is perfect.

    Returns:
        A float64 scalar (float32 on MPS), NaN without samples.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    Example:
        >>> costs = torch.tensor([[0.0, 5.0], [300.0, 5.0], [20.0, 5.0]])  # to pay, or to look into, three claims
        >>> row_cost(torch.tensor([0, 1, 0]), costs, num_classes=2)
        tensor(8.3333, dtype=torch.float64)
        >>> row_cost(torch.tensor([0, 1, 0]), costs, num_classes=2, regret=True)
        tensor(5., dtype=torch.float64)
    """
    samples = flatten_costs(preds, target, num_classes=num_classes, sample_weight=sample_weight)
    raise_first(samples.find_faults())
    sums = sum_row_costs(samples)
    return (sums.cost - sums.least if regret else sums.cost) / sums.samples


class CostedDecisions(NamedTuple):
    """The decisions for M samples, and the cost of every possible decision."""

    decisions: Decisions
    costs: Tensor
    """The costs: (M, C), floating point."""
    labels: Labels
    """Dummy labels of 0, with the sample weights and, if sums are over bins, the bin of each sample."""

    def find_faults(self) -> tuple[Fault, ...]:
        """Return a `Fault` for each of `row_cost_rules`, in that order: it finds the samples that break the rule."""
        spans = [finite(self.costs.amin(1)), finite(self.costs.amax(1))]
        rule, *_ = row_cost_rules(self.labels.num_classes)
        return (Fault(rule, self.costs, spans), *self.decisions.find_faults()[1:])


def row_cost_rules(num_classes: int) -> tuple[str, ...]:
    """Return the rules for values of target, preds and sample_weight; an error message begins with the broken rule."""
    return (f"target must hold {num_classes} finite costs for each sample", *decision_rules(num_classes)[1:])


def flatten_costs(preds: Tensor, target: Tensor, *, num_classes: int, sample_weight: Tensor | None) -> CostedDecisions:
    """Check shapes and dtypes, decide for the highest score in ``preds``, and flatten to M samples."""
    costs = as_tensor(target, "target").detach()
    if costs.ndim < 2 or costs.shape[1] != num_classes or costs.is_complex() or costs.dtype == torch.bool:
        rule = f"target must be costs (N, {num_classes}, ...), one for each decision"
        raise ValueError(f"{rule}, but got {costs.dtype} of shape {tuple(costs.shape)}.")
    unlabelled = costs.new_zeros(costs.shape[:1] + costs.shape[2:], dtype=torch.int64)
    decisions = flatten_decisions(preds, unlabelled, num_classes, None, sample_weight)
    costs = (costs if costs.is_floating_point() else costs.double()).movedim(1, -1).reshape(-1, num_classes)
    return CostedDecisions(decisions, costs, decisions.labels)


def sum_row_costs(samples: CostedDecisions) -> RowCostSums:
    """Return the weighted sums over all samples, a scalar for each field; with B bins, those over each bin, (B,)."""
    costs, labels = samples.costs, samples.labels
    cost = costs.gather(1, samples.decisions.predicted.unsqueeze(1)).squeeze(1)
    total, least, most = (labels.sum(values) for values in (cost, costs.amin(1), costs.amax(1)))
    return RowCostSums(total, least, most, labels.sum())


def mean_cost_range(counts: Tensor, low: Tensor, high: Tensor) -> Tensor:
    r"""Compute the lowest and the highest total cost of decisions over a set of possible costs.

    The possible costs D are the convex hull of V boxes, e.g. one for each person who stated costs. A box has a range
    for each cost, from ``low`` to ``high``. The total is linear in D, so both extremes are at corners of boxes:

    .. math::
        \min_v \sum_{ij} \bigl(n^+_{ij} D^{low,v}_{ij} - n^-_{ij} D^{high,v}_{ij}\bigr), \qquad
        \max_v \sum_{ij} \bigl(n^+_{ij} D^{high,v}_{ij} - n^-_{ij} D^{low,v}_{ij}\bigr)

    where :math:`n^+` and :math:`n^-` are the positive and the negative part of n.

    Args:
        counts: n, ``(..., C, K)``: the number or share of samples for each true class (row) and decision (column). For
            the range of the difference of two models' costs, pass the difference of their counts.
        low: ``(C, K)``, or ``(V, C, K)`` for V boxes: lowest costs, finite, >= 0. K is C, or C + A + 1 as in
            `least_concern_decision`. The diagonal is not read. `ConcernRange.bounds` returns ``low`` and ``high``.
        high: The highest costs, in the shape of ``low`` and >= ``low`` everywhere.

    Returns:
        ``(..., 2)``, float64: the lowest and the highest total.

    Raises:
        ValueError: If a shape or a value breaks its rule above.

    Example:
        >>> low, high = torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[0.0, 1.0], [40.0, 0.0]])
        >>> mean_cost_range(torch.tensor([[50, 4], [1, 45]]) / 100, low, high)
        tensor([0.0500, 0.4400], dtype=torch.float64)
    """
    bounds = [as_tensor(bound, name).to(counts.device).double() for bound, name in ((low, "low"), (high, "high"))]
    if bounds[0].shape != bounds[1].shape or bounds[0].ndim not in (2, 3) or not bounds[0].numel():
        shapes = " and ".join(str(tuple(bound.shape)) for bound in bounds)
        raise ValueError(f"low and high must have one shape, (C, K) or (V, C, K), but got {shapes}.")
    low, high = (bound.clone().reshape(-1, *bound.shape[-2:]) for bound in bounds)
    for box in (*low, *high):
        check_costs(box, len(box), referral=True)
        box.fill_diagonal_(0)
    if (low > high).any():
        raise ValueError("low must nowhere be above high, but is.")
    if counts.shape[-2:] != low.shape[1:]:
        raise ValueError(
            f"counts must have shape (..., {low.shape[1]}, {low.shape[2]}), but got {tuple(counts.shape)}."
        )
    counts = counts.double().unsqueeze(-3)
    positive, negative = counts.clamp(min=0), counts.clamp(max=0)
    lowest = (positive * low + negative * high).sum((-2, -1)).amin(-1)
    return torch.stack([lowest, (positive * high + negative * low).sum((-2, -1)).amax(-1)], dim=-1)
