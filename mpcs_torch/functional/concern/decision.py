"""Bayes decisions for a cost matrix, with an optional correction for changed class frequencies."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from mpcs_torch.errors import InvalidValueError
from mpcs_torch.functional.inputs.arrays import ConcernLike, as_tensor, concern_costs
from mpcs_torch.functional.inputs.checks import check_by_class, check_costs, check_priors
from mpcs_torch.functional.inputs.decisions import REFERRED
from mpcs_torch.functional.inputs.probabilities import (
    Samples,
    compute_dtype,
    unlabelled_samples,
)


def shift_priors(probs: Tensor, *, training_priors: Tensor, priors: Tensor) -> Tensor:
    r"""Correct class probabilities for class frequencies that differ between training and deployment.

    .. math:: p'_c = \frac{p_c \pi'_c / \pi_c}{\sum_j p_j \pi'_j / \pi_j}

    The result is calibrated if ``probs`` are calibrated, and only the class frequencies differ (label shift).

    Args:
        probs: ``(N, C)`` or ``(N, C, ...)`` floating point probabilities.
        training_priors: :math:`\pi`, ``(C,)``: the class frequencies of the training data, > 0, with a sum of 1.
        priors: :math:`\pi'`, ``(C,)``: the class frequencies of the deployment, >= 0, with a sum of 1.

    Returns:
        Probabilities of the shape of ``probs``. For a sample with :math:`p_c \pi'_c = 0` for all classes c, they are
        proportional to :math:`\pi'_c / \pi_c`.

    Raises:
        ValueError: If a shape or priors break their rule above.

    References:
        Saerens, Latinne, Decaestecker: Adjusting the Outputs of a Classifier to New a Priori Probabilities, Neural
        Computation 14(1), 2002, Eq. 2.4.

    Example:
        >>> import torch
        >>> even = torch.tensor([0.5, 0.5])
        >>> shift_priors(torch.tensor([[0.9, 0.1]]), training_priors=even, priors=torch.tensor([0.1, 0.9]))
        tensor([[0.5000, 0.5000]])
    """
    check_by_class(probs, "probs")
    check_priors(priors, probs.shape[1], name="priors")
    check_priors(training_priors, probs.shape[1], name="training_priors", above_0=True)
    rows = probs.movedim(1, -1)
    ratio = priors / training_priors
    shifted = _normalized(rows * ratio.to(rows), ratio)
    return shifted.movedim(-1, 1)


def shifted_probs(samples: Samples, ratio: Tensor) -> Tensor:
    """Return the class probabilities (M, C) after a change of priors; ``ratio`` (C,) is new divided by old priors."""
    if samples.scale == "probs":
        probs = samples.probs()
        return _normalized(probs * ratio.to(probs), ratio)
    log_probs = samples.log_probs()  # probabilities may underflow to 0
    log_shifted = log_probs + ratio.to(log_probs).log()
    # Divided by the highest, the probabilities of a row do not all underflow; -inf - -inf would be NaN.
    highest = log_shifted.amax(dim=1, keepdim=True).nan_to_num(neginf=0.0)
    return _normalized((log_shifted - highest).exp(), ratio)


def _normalized(weights: Tensor, ratio: Tensor) -> Tensor:
    """Divide each row of ``weights`` (..., C) by its sum; a row of zeros becomes proportional to ``ratio`` (C,)."""
    total = weights.sum(dim=-1, keepdim=True)
    default = (ratio / ratio.sum()).to(weights)
    return torch.where(total > 0, weights / total, default)


def prior_ratio(
    training_priors: Tensor | None,
    priors: Tensor | None,
    num_classes: int,
    *,
    needs_both: bool = True,
) -> Tensor | None:
    """Return ``priors / training_priors`` (C,) after checks, or None if both are None.

    ValueError if only one of them is given; without ``needs_both``, ``priors`` alone give None.
    """
    if priors is not None:
        check_priors(priors, num_classes, name="priors")
    if training_priors is None and (priors is None or not needs_both):
        return None
    if training_priors is None:
        raise InvalidValueError("given_with", "training_priors", other="priors")
    if priors is None:
        raise InvalidValueError("given_with", "priors", other="training_priors")
    check_priors(training_priors, num_classes, name="training_priors", above_0=True)
    return priors / training_priors


def least_concern_decision(
    preds: Tensor,
    *,
    concern: Tensor | ConcernLike,
    from_logits: bool = True,
    training_priors: Tensor | None = None,
    priors: Tensor | None = None,
) -> Tensor:
    r"""Decide for the class with the minimum expected concern (cost): the Bayes decision for a cost matrix.

    .. math:: \hat{y} = \arg\min_j \sum_{i \ne j} p_i D_{ij}

    Here p are the class probabilities, and D the costs of ``concern``. If all errors cost the same, the decision is the
    most probable class. The probabilities must be calibrated (`mpcs_torch.calibration`); otherwise these decisions can
    cost more than always choosing the most probable class.

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` floating point logits, or probabilities with ``from_logits=False``.
        concern: A `ConcernSpec`, or ``(C, C)`` costs >= 0 for mistaking the true class (row) for another (column); the
            diagonal is not read. A matrix ``(C, C + A + 1)``, as from `ConcernSpec.costs`, also has the costs of A
            coarse answers (groups of classes). Its last column has the costs of referring the sample to a person.
        from_logits: Whether ``preds`` are logits rather than probabilities; never guessed from the values.
        training_priors: ``(C,)`` class frequencies of the training data, given together with ``priors``.
        priors: ``(C,)`` class frequencies of the deployment; the probabilities are corrected with `shift_priors`.
            Default: those of the training data.

    Returns:
        int64 ``(N,)`` or ``(N, ...)``: class indices, C, C + 1, ... for coarse answers, or -1 for a referral. If the
        lowest cost is tied, a class is preferred to a coarse answer, and both to a referral; of tied classes, the most
        probable is chosen (the lower index if this is tied too).

    Raises:
        ValueError: If a shape, a dtype or a value breaks its rule above.

    References:
        Duda, Hart, Stork: Pattern Classification, 2nd ed., Section 2.2 (conditional risk). Chow: On Optimum Recognition
        Error and Reject Tradeoff, IEEE Trans. Information Theory 16(1), 1970 (referral).

    Example:
        >>> probs = torch.tensor([[0.5, 0.4, 0.1]])
        >>> red_for_green_is_grave = torch.tensor([[0.0, 1.0, 9.0], [1.0, 0.0, 1.0], [9.0, 1.0, 0.0]])
        >>> least_concern_decision(probs, concern=red_for_green_is_grave, from_logits=False)
        tensor([1])
    """
    preds = as_tensor(preds, "preds")
    check_by_class(preds)
    costs = concern_costs(concern).to(preds.device)
    num_classes = len(costs) if costs.ndim == 2 else preds.shape[1]
    check_costs(costs, num_classes, referral=True)
    samples = unlabelled_samples(preds, num_classes, from_logits=from_logits)
    ratio = prior_ratio(training_priors, priors, num_classes)
    probs = samples.probs() if ratio is None else shifted_probs(samples, ratio)
    decided = least_risk(probs, costs)
    has_referral = costs.shape[1] > num_classes
    if has_referral:
        referral = costs.shape[1] - 1  # the last column
        decided = torch.where(decided == referral, REFERRED, decided)
    return decided.reshape(preds.shape[:1] + preds.shape[2:])


def least_risk(rows: Tensor, concern: Tensor) -> Tensor:
    """Return the column of ``concern`` with the least expected cost: (...), for class probabilities (..., C)."""
    rows = rows.to(compute_dtype(rows))
    costs = without_diagonal(concern)
    # Sums of costs could overflow. The division is in place, because the costs are a copy.
    costs.div_(costs.amax().clamp(min=torch.finfo(costs.dtype).tiny))
    # Decisions must not depend on the caller's autocast.
    with torch.autocast(rows.device.type, enabled=False):
        return ranked_choices(rows @ costs.to(rows), rows).first(costs.shape[1])


class Choices(NamedTuple):
    """The possible answers for each sample: the class of minimum expected cost, and A coarse answers (class groups)."""

    answers: Tensor
    """(..., 1 + A), int64: the answers by ascending expected cost, as column numbers of the cost matrix."""
    is_worth: Tensor
    """(..., 1 + A), bool: whether the answer costs at most as much as referring the sample to a person."""

    def first(self, columns: int) -> Tensor:
        """Return the column of the cheapest answer, (...); if a referral costs less, the last of all ``columns``."""
        return torch.where(self.is_worth[..., 0], self.answers[..., 0], columns - 1)


def ranked_choices(expected: Tensor, rows: Tensor) -> Choices:
    """Rank the answers by their ``expected`` costs (..., K), given the class probabilities ``rows`` (..., C).

    K is C or, with A coarse answers and a referral, C + A + 1. Costs must be at least 0, and small enough to be added.
    Costs that differ only by rounding are tied, so that a decision does not depend on the batch size. In a tie, the
    more probable class comes first, then coarse answers (groups of classes), then the referral.
    """
    classes = rows.shape[-1]
    columns = expected.shape[-1]
    rounding = rounding_bound(rows)
    class_costs = expected[..., :classes]
    min_cost = class_costs.amin(dim=-1, keepdim=True)
    is_cheapest = class_costs <= min_cost * (1 + rounding)
    answers = torch.where(is_cheapest, rows, -1.0).argmax(dim=-1, keepdim=True)
    if columns == classes:
        return Choices(answers, torch.ones_like(answers, dtype=torch.bool))
    cost = torch.cat([min_cost, expected[..., classes:-1]], dim=-1)
    is_worth = expected[..., -1:] >= cost * (1 - rounding)
    if columns > classes + 1:
        coarse = torch.arange(classes, columns - 1, device=rows.device)
        answers = torch.cat([answers, coarse.expand(*cost.shape[:-1], -1)], dim=-1)
        ascending, order = cost.sort(dim=-1)
        # Tied costs share a rank; within a rank, the order is that of the columns.
        is_higher = ascending[..., :-1] < ascending[..., 1:] * (1 - rounding)
        rank = nn.functional.pad(is_higher.long().cumsum(dim=-1), (1, 0))
        order = order.gather(-1, (rank * columns + order).argsort(dim=-1))
        answers = answers.gather(-1, order)
        is_worth = is_worth.gather(-1, order)
    return Choices(answers, is_worth)


def rounding_bound(rows: Tensor) -> float:
    """Return an upper bound of the relative rounding error of expected costs, for probabilities ``rows`` (..., C)."""
    return 16 * torch.finfo(rows.dtype).eps * float(rows.shape[-1] ** 0.5)


def without_diagonal(concern: Tensor) -> Tensor:
    """Return a floating point copy of the matrix with 0 on its diagonal."""
    floating = concern if concern.is_floating_point() else concern.float()
    return floating.clone().fill_diagonal_(0)
