"""Estimates of dangerous errors and costs before labels come, and their difference from labels."""

from collections.abc import Sequence
from math import nan, prod
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import require
from mpcs_torch.functional.comparison.means import estimate_mean
from mpcs_torch.functional.inputs.confidence import CONFIDENCE, CONFIDENCE_TEXT
from mpcs_torch.functional.inputs.decisions import REFERRED
from mpcs_torch.functional.inputs.groups import flat_costs, group_codes
from mpcs_torch.learning.decision_rule import Assessment
from mpcs_torch.learning.rule_limit import decision_values, values_of
from mpcs_torch.tables import in_digits

ABOUT_ESTIMATES = "Estimated from the probabilities, which is right only while they are calibrated, and is no limit:"
DANGEROUS, COST = "dangerous errors per sample", "cost per sample"


class RuleEstimate(NamedTuple):
    """A mean over samples that probabilities estimate, and, once labels come, how far it is from the measured mean."""

    name: str
    value: float
    """The estimated mean over samples: of the risks, or expected costs, of their decisions."""
    samples: int
    labelled: int = 0
    """The number of samples with a label; the others do not count in the difference."""
    difference: float = nan
    """The measured mean minus the estimated one, both over samples with a label; NaN without labels."""
    low: float = nan
    """The lower end of the interval of the difference."""
    high: float = nan
    sure: str = CONFIDENCE_TEXT
    """The confidence of the interval, as text."""
    without: int = 0
    """The number of further samples, of which no estimate is known, as of coarse answers; they do not count."""

    @property
    def is_alarm(self) -> bool:
        """Whether the interval of the difference does not contain 0: the probabilities are not calibrated."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        others = f"; no estimate of {self.without} more" if self.without else ""
        text = f"{self.name}: {in_digits(self.value, 4)} (of {self.samples}{others})"
        if self.labelled:
            ends = f"{self.sure}: {in_digits(self.low, 3)} to {in_digits(self.high, 3)}"
            text += f"; measured minus estimated: {in_digits(self.difference, 3, '+')} ({ends}; {self.labelled} labels)"
        return (
            f"{text}. CALIBRATION ALARM: do not rely on this estimate"
            if self.is_alarm
            else text
        )


def estimate_lines(estimates: Sequence[RuleEstimate]) -> list[str]:
    """Return a line for each estimate, after a line that says when they are right; an empty list without estimates."""
    return (
        [ABOUT_ESTIMATES, *(f"- {estimate}" for estimate in estimates)] if estimates else []
    )


def estimate_decisions(
    assessed: Assessment,
    concern: ConcernSpec,
    target: Tensor | None = None,
    *,
    clusters: Sequence[object] | Tensor | None = None,
) -> list[RuleEstimate]:
    r"""Estimate the rate of dangerous errors and the mean cost of decisions before labels come.

    The estimates are the means of the estimated risks and expected costs of decisions. A referral is no error and has
    its price; coarse answers are left out. Estimates are right on average **only while probabilities are calibrated**,
    and are never a limit. Once labels come, the mean of error minus risk of each sample shows whether they were right,
    and so does that of paid minus expected cost. If its interval does not contain 0, the estimate does not hold: a
    calibration alarm. The reverse is not true: few labels cannot show a small difference.

    Args:
        assessed: What `DecisionRule.assess` returned, for samples (N,) or, such as pixels, (N, ...).
        concern: The concern of the rule.
        target: ``(N,)`` or ``(N, ...)`` labels; below 0 for samples without a label. Samples must be chosen to be
            labelled without regard to their errors. Default: there are no labels yet.
        clusters: ``(N,)`` the cluster of each sample, as in `DecisionRule.fit`. Default: samples are independent; of
            samples with several positions, each sample is a cluster.

    Returns:
        Two `RuleEstimate`, of dangerous errors and of costs, with 95 % intervals of differences. They are for one look:
        a deployment that is looked at again and again needs `mpcs monitor`.

    Raises:
        ValueError: If a shape is wrong.

    References:
        Duda, Hart, Stork: Pattern Classification, 2nd ed., Section 2.2 (conditional risk). Garg, Balakrishnan, Lipton,
        Neyshabur, Sedghi: Leveraging Unlabeled Data to Predict Out-of-Distribution Performance, ICLR 2022, Section 3
        (average confidence, and why no such estimate is right for every shift).

    Example:
        >>> import torch
        >>> from mpcs_torch import ConcernSpec
        >>> from mpcs_torch.learning import DecisionRule, estimate_decisions
        >>> concern = ConcernSpec(["benign", "malignant"], dangerous=[["malignant", "benign"]])
        >>> rule = DecisionRule(concern, calibration=None)
        >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0], [1.0, 0.0]])
        >>> print(estimate_decisions(rule.assess(logits), concern)[0])
        dangerous errors per sample: 0.1089 (of 4)
    """
    number, *positions = shape = tuple(assessed.decision.shape)
    labels = torch.full(shape, -1) if target is None else target.cpu().long()
    require(labels.shape == shape, "shape", "target", labels, shape=shape)
    highest_class, known = int(labels.max()) if labels.numel() else 0, len(concern.classes)
    require(
        highest_class < known, "below_where_known", "target", highest_class, maximum=known
    )
    labels, decisions = labels.flatten(), assessed.decision.cpu().flatten()
    of_best = torch.stack([assessed.risk, assessed.cost]).detach().cpu().double().flatten(1)
    highest, flat = [1.0, float(concern.costs().max())], None
    if assessed.costs is not None:
        flat = (
            flat_costs(assessed.costs, (number, len(concern.classes), *positions))
            .cpu()
            .double()
        )
        highest[1] = max(highest[1], float(flat.abs().max()))
    estimated, measured = estimated_and_measured(concern, decisions, labels, of_best, flat)
    codes = (
        torch.arange(number)
        if clusters is None
        else group_codes("clusters", clusters, number).codes
    )
    codes = codes.repeat_interleave(prod(positions))
    estimates = list[RuleEstimate]()
    for name, limit, expected, gaps in zip(
        (DANGEROUS, COST), highest, estimated, measured - estimated, strict=True
    ):
        known = int(expected.isfinite().sum())
        estimate = RuleEstimate(
            name, expected.nanmean().item(), known, without=len(expected) - known
        )
        is_known = gaps.isfinite()
        if is_known.any():
            mean = estimate_mean(gaps[is_known], (-limit, limit), codes[is_known])
            low, high = mean.interval(CONFIDENCE)
            estimate = estimate._replace(
                labelled=int(is_known.sum()), difference=mean.value, low=low, high=high
            )
        estimates.append(estimate)
    return estimates


def estimated_and_measured(
    concern: ConcernSpec,
    decisions: Tensor,
    target: Tensor,
    of_best: Tensor,
    costs: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the estimated and the measured losses of decisions (M,), whether they are dangerous and their costs.

    Both have the shape (2, M), with NaN where a loss is not known: labels below 0 are missing. ``of_best`` (2, M) are
    the risks and expected costs of the best classes; ``costs`` are as in `values_of`. A referral is no error and has
    its price, if this is the same for all true classes. Estimates of coarse answers, which are sets of classes, are not
    known.
    """
    by_class = decision_values(concern)
    of_referrals = torch.stack([by_class.is_dangerous[:, -1], by_class.cost[:, -1]])
    low, high = of_referrals.aminmax(dim=1)
    of_referral = torch.where(low == high, low, nan).unsqueeze(1)
    estimated = of_best.where(decisions < len(concern.classes), nan)
    values = values_of(decisions, target.clamp(min=0), concern, costs)
    of_samples = torch.stack([values.is_dangerous, values.cost])
    measured = of_samples.where(target >= 0, nan)
    return torch.where(decisions == REFERRED, of_referral, estimated), measured
