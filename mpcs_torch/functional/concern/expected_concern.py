"""Mean costs of decisions: with costs per pair of classes, with costs per sample, and with ranges of costs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import Rule, require
from mpcs_torch.functional.concern.decision import least_risk, prior_ratio, shifted_probs
from mpcs_torch.functional.inputs.arrays import (
    ConcernLike,
    as_tensor,
    as_tensors,
    by_class,
    concern_costs,
)
from mpcs_torch.functional.inputs.checks import (
    check_choice,
    check_costs,
    check_matrix_fits,
    check_num_classes,
    widest_float,
)
from mpcs_torch.functional.inputs.decisions import (
    Decisions,
    decision_range,
    decision_rule,
    flatten_decisions,
    highest_class,
)
from mpcs_torch.functional.inputs.faults import Fault
from mpcs_torch.functional.inputs.labels import WEIGHT_RULE, Labels, Term, value_rules
from mpcs_torch.functional.inputs.probabilities import (
    SCORE_RULES,
    Samples,
    flatten_samples,
    input_scale,
)
from mpcs_torch.functional.measure import RatioOfBins, Ratios, RowMeasure

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
    measure = ExpectedConcern(
        num_classes,
        concern,
        decision,
        from_logits,
        training_priors,
        priors,
        normalize,
        ignore_index,
    )
    return measure(preds, target, sample_weight)


def cost_matrix(concern: Tensor | ConcernLike | None, num_classes: int) -> Tensor:
    """Return the validated costs, (C, C) or wider, floating point, 0 on the diagonal; None means 1 for each error."""
    check_matrix_fits(num_classes, 8)
    if concern is None:
        concern = torch.ones(num_classes, num_classes)
    costs = concern_costs(concern)
    check_costs(costs, num_classes, referral=True)
    # The diagonal is not read, so costs that differ only there must have equal fingerprints.
    return costs.detach().to(widest_float(costs.device), copy=True).fill_diagonal_(0)


@dataclass(eq=False)
class ExpectedConcern(RowMeasure):
    """The measure of `expected_concern`."""

    num_classes: int
    concern: Tensor | ConcernLike | None = None
    decision: DecideBy = "most_probable"
    from_logits: bool = True
    training_priors: Tensor | None = None
    priors: Tensor | None = None
    normalize: bool = True
    ignore_index: int | None = None
    costs: Tensor = field(init=False, repr=False)
    """(C, K), as in `cost_matrix`."""
    ratio_of_priors: Tensor | None = field(init=False, repr=False)
    """As in `prior_ratio`."""

    sums_type = CostSums
    sums_settings = (
        "num_classes",
        "costs",
        "decision",
        "from_logits",
        "ratio_of_priors",
        "ignore_index",
    )
    interval_rule = "bounded"
    takes_referrals = needs_referral_cost = True

    def __post_init__(self) -> None:
        """Check the settings, and compute the costs."""
        check_choice("decision", self.decision, DecideBy)
        self.costs = cost_matrix(self.concern, self.num_classes)
        self.ratio_of_priors = prior_ratio(
            self.training_priors, self.priors, self.num_classes, needs_both=False
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The sums are by true class."""
        return (self.num_classes,)

    @property
    def further(self) -> int:
        """The number of decisions other than the classes."""
        return self.costs.shape[1] - self.num_classes

    @property
    def value_rules(self) -> Sequence[Rule]:
        """The rules of the values of rows."""
        scores = SCORE_RULES[input_scale(self.from_logits)]
        decisions = decision_range(self.num_classes, self.further)
        rule = Rule("scores_or_decisions", "preds", scores=scores, decisions=decisions)
        return value_rules(self.num_classes, rule)

    def rows(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> Samples | Decisions:
        """Flatten a batch of scores (N, C, ...) or decisions (N, ...), labels and weights (N, ...)."""
        preds, target, sample_weight = as_tensors(preds, target, sample_weight)
        size = self.num_classes
        ignored = self.ignore_index
        if preds.is_floating_point():
            scale = input_scale(self.from_logits)
            return flatten_samples(preds, target, size, scale, ignored, sample_weight)
        require(
            self.decision == "most_probable",  # other rules need probabilities
            "scores_to_decide",
            "preds",
            preds.dtype,
            decision=self.decision,
        )
        return flatten_decisions(preds, target, size, ignored, sample_weight, self.further)

    def decide(self, samples: Samples) -> Tensor:
        """Return the decision for each sample: (M,)."""
        ratio = self.ratio_of_priors
        if self.decision == "most_probable":
            # The order of logits is that of their probabilities.
            scores = samples.scores if ratio is None else shifted_probs(samples, ratio)
            _, decided = highest_class(scores)
            return decided
        probs = samples.probs() if ratio is None else shifted_probs(samples, ratio)
        return least_risk(probs, self.costs)

    def terms(self, rows: Samples | Decisions) -> Sequence[Term]:
        """Return the cost of each decision, and 1, at the true class."""
        predicted = rows.predicted if isinstance(rows, Decisions) else rows.map(self.decide)
        labels = rows.labels
        cost = self.costs[labels.target, predicted]
        return Term(labels.target, cost), Term(labels.target)

    def value(self, sums: CostSums) -> Tensor:
        """Return the mean cost of decisions, relative to the best constant decision if ``normalize`` is set."""
        return self.mean_cost(sums, normalize=self.normalize)

    def mean_cost(self, sums: CostSums, *, normalize: bool) -> Tensor:
        """Return the mean cost of decisions, divided by that of the best constant decision if ``normalize`` is set."""
        # Constant coarse answers and referrals are left out.
        costs = self.costs[:, : self.num_classes].to(sums.cost)
        if self.priors is None:
            cost = sums.cost.sum(-1)
            if normalize:
                return cost / (sums.samples @ costs).amin(-1)
            return cost / sums.samples.sum(-1)
        shares = self.priors.to(sums.cost)
        # A class with the share 0 may have no samples.
        cost = torch.where(shares > 0, shares * sums.cost / sums.samples, 0.0).sum(-1)
        return cost / (shares @ costs).amin() if normalize else cost

    def ratio(self, sums: CostSums, whole: CostSums) -> RatioOfBins:
        """Return the cost of the decisions, and the cost of the constant decision that is best over all samples."""
        return sums.cost.sum(-1), sums.samples @ self._baseline(whole)

    def row_ratios(self, whole: CostSums) -> Ratios:
        """Return two pairs for each class: 0 and its highest cost, each with the cost of the best constant decision."""
        constant = self._baseline(whole).tolist()
        highest = self.costs.amax(1).tolist()
        ratios = list[tuple[float, float]]()
        for max_cost, constant_cost in zip(highest, constant, strict=True):
            ratios += [(0.0, constant_cost), (max_cost, constant_cost)]
        return ratios

    def _baseline(self, whole: CostSums) -> Tensor:
        """Return the cost of the best constant decision by true class, (C,); without ``normalize``, all are 1."""
        if not self.normalize:
            return torch.ones_like(whole.samples)
        costs = self.costs[:, : self.num_classes].to(whole.samples)
        best_class = (whole.samples @ costs).argmin()
        return costs[:, best_class]


def mean_severity(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    concern: Tensor | ConcernLike | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the mean concern (cost) of wrong decisions; lower is better.

    With costs by height in a tree of classes (`mpcs_torch.concern.spec_from_heights`), it says how far off mistakes
    are. A model with fewer mistakes may have a higher mean severity, because easy samples are then right: read it
    beside the accuracy. Only classes are decisions here: referrals and coarse answers do not count.

    ``preds`` are ``(N, C, ...)`` floating point scores or ``(N, ...)`` integer decisions. The other arguments and the
    errors are those of `expected_concern`.

    Returns:
        A float64 scalar (float32 on MPS); NaN if no decision is wrong.

    References:
        Bertinetto et al.: Making Better Mistakes: Leveraging Class Hierarchies with Deep Networks, CVPR 2020, Section
        4.1 (average mistake severity).

    Example:
        >>> concern = torch.tensor([[0.0, 1.0, 3.0], [1.0, 0.0, 3.0], [3.0, 3.0, 0.0]])
        >>> mean_severity(torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 2, 1]), num_classes=3, concern=concern)
        tensor(2., dtype=torch.float64)
    """
    measure = MeanSeverity(num_classes, concern, ignore_index=ignore_index)
    return measure(preds, target, sample_weight)


@dataclass(eq=False)
class MeanSeverity(ExpectedConcern):
    """The measure of `mean_severity`: the samples of its sums are the wrong decisions."""

    normalize: bool = False

    def terms(self, rows: Samples | Decisions) -> Sequence[Term]:
        """Return the cost of each wrong decision for a class, and 1, at the true class."""
        predicted = rows.predicted if isinstance(rows, Decisions) else rows.map(self.decide)
        true = rows.labels.target
        is_wrong = (predicted != true) & (predicted < self.num_classes)
        return Term(true, self.costs[true, predicted] * is_wrong), Term(true, is_wrong)


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
    return RowCost(num_classes, regret)(preds, target, sample_weight)


class CostedDecisions(NamedTuple):
    """The decisions for M samples, and the cost of every possible decision."""

    decisions: Decisions
    costs: Tensor
    """The costs: (M, C), floating point."""

    @property
    def labels(self) -> Labels:
        """Dummy labels of 0, with the sample weights."""
        return self.decisions.labels

    def find_faults(self) -> Sequence[Fault]:
        """Return a `Fault`, the check of one validation rule, for costs, decisions and weights."""
        is_infinite = ~self.costs.isfinite().all(dim=1)
        cost_fault = Fault(cost_rule(self.labels.num_classes), self.costs, is_infinite)
        _, *others = self.decisions.find_faults()  # the labels are no input
        return cost_fault, *others


def cost_rule(num_classes: int) -> Rule:
    """Return the rule of the costs of each sample."""
    return Rule("finite_costs", "target", number=num_classes)


@dataclass(eq=False)
class RowCost(RowMeasure):
    """The measure of `row_cost`."""

    num_classes: int
    regret: bool = False

    sums_type = RowCostSums
    sums_settings = ("num_classes",)
    interval_rule = "bounded"
    limits = (None, None)
    has_range = False  # the costs of further rows may be higher

    def __post_init__(self) -> None:
        """Check the number of classes."""
        check_num_classes(self.num_classes)

    @property
    def value_rules(self) -> Sequence[Rule]:
        """The rules of the values of rows."""
        return cost_rule(self.num_classes), decision_rule(self.num_classes), WEIGHT_RULE

    def rows(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> CostedDecisions:
        """Check shapes and dtypes, decide for the highest score in ``preds``, and flatten to M samples."""
        costs = as_tensor(target, "target").detach()
        is_real = not costs.is_complex() and costs.dtype != torch.bool
        is_by_class = costs.ndim >= 2 and costs.shape[1] == self.num_classes
        require(
            is_real and is_by_class,
            "costs_by_class",
            "target",
            costs,
            classes=self.num_classes,
        )
        unlabelled = costs.new_zeros(costs.shape[:1] + costs.shape[2:], dtype=torch.int64)
        decisions = flatten_decisions(
            preds, unlabelled, self.num_classes, None, sample_weight
        )
        costs = costs if costs.is_floating_point() else costs.double()
        return CostedDecisions(decisions, by_class(costs, self.num_classes))

    def terms(self, rows: CostedDecisions) -> Sequence[Term]:
        """Return the cost of the decision, of the cheapest and of the most expensive decision, and 1."""
        costs = rows.costs
        cost = costs.gather(1, rows.decisions.predicted.unsqueeze(1)).squeeze(1)
        return (
            Term(number=cost),
            Term(number=costs.amin(1)),
            Term(number=costs.amax(1)),
            Term(),
        )

    def ratio(self, sums: RowCostSums, whole: RowCostSums) -> RatioOfBins:  # noqa: ARG002
        """Return the sum of the costs (or regrets) of the decisions, and the sum of the weights."""
        cost = sums.cost - sums.least if self.regret else sums.cost
        return cost, sums.samples

    def seen_ratios(self, units: RowCostSums) -> Ratios:
        """Return the lowest and the highest mean cost (or regret) that decisions can have in any unit that was seen."""
        least = units.least / units.samples
        most = units.most / units.samples
        if self.regret:
            return [(0.0, 1), ((most - least).max().item(), 1)]
        return [(least.min().item(), 1), (most.max().item(), 1)]


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
    low = as_tensor(low, "low").to(counts.device, torch.float64, copy=True)
    high = as_tensor(high, "high").to(counts.device, torch.float64, copy=True)
    is_alike = low.shape == high.shape and low.ndim in (2, 3) and low.numel()
    shapes = [tuple(low.shape), tuple(high.shape)]
    require(is_alike, "same_shape", "low and high", shapes, shape="(C, K) or (V, C, K)")
    low = low.reshape(-1, *low.shape[-2:])
    high = high.reshape(-1, *high.shape[-2:])
    for box in (*low, *high):
        check_costs(box, len(box), referral=True)
        box.fill_diagonal_(0)
    require(not (low > high).any(), "nowhere_above", "low", other="high")
    shape = f"(..., {low.shape[1]}, {low.shape[2]})"
    require(counts.shape[-2:] == low.shape[1:], "shape", "counts", counts, shape=shape)
    counts = counts.double().unsqueeze(-3)
    positive = counts.clamp(min=0)
    negative = counts.clamp(max=0)
    # Of each box of costs (V, C, K), and then of all boxes.
    lowest = (positive * low + negative * high).sum((-2, -1)).amin(-1)
    highest = (positive * high + negative * low).sum((-2, -1)).amax(-1)
    return torch.stack([lowest, highest], dim=-1)
