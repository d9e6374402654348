"""Estimates of dangerous errors and costs before labels come, and their difference from labels."""

from collections.abc import Sequence
from math import nan
from typing import NamedTuple

from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import require
from mpcs_torch.functional.comparison.means import estimate_mean
from mpcs_torch.functional.inputs.confidence import CONFIDENCE, CONFIDENCE_TEXT
from mpcs_torch.functional.inputs.groups import flat_costs, group_codes
from mpcs_torch.learning.decision_rule import Assessment
from mpcs_torch.learning.rule_limit import decision_values, paid_costs
from mpcs_torch.tables import in_digits

ABOUT_ESTIMATES = "Estimated from the probabilities, which is right only while they are calibrated, and is no limit:"
DANGEROUS, COST = "dangerous errors per sample", "cost per sample"


class Estimate(NamedTuple):
    """A mean over samples that probabilities estimate, and once labels come, how far it is from the measured mean."""

    name: str
    value: float
    """The estimated mean over all samples: of the risks, or expected costs, of their decisions."""
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

    @property
    def is_alarm(self) -> bool:
        """Whether the interval of the difference does not contain 0: the probabilities are not calibrated."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        text = f"{self.name}: {in_digits(self.value, 4)} (of {self.samples})"
        if not self.labelled:
            return text
        ends = " to ".join(in_digits(end, 3) for end in (self.low, self.high))
        text += f"; measured minus estimated: {in_digits(self.difference, 3, '+')} ({self.sure}: {ends}; "
        text += f"{self.labelled} with a label)"
        if not self.is_alarm:
            return text
        more = "more" if self.low > 0 else "less"
        return f"{text}. CALIBRATION ALARM: {more} than estimated, so do not rely on this estimate: calibrate again"


def estimate_lines(estimates: Sequence[Estimate]) -> str:
    """Return sentences on ``estimates``, a line for each, below a line that says when they are right."""
    return "\n".join([ABOUT_ESTIMATES, *(f"- {estimate}" for estimate in estimates)])


def estimate_decisions(
    assessed: Assessment,
    concern: ConcernSpec,
    target: Tensor | None = None,
    *,
    clusters: Sequence[object] | Tensor | None = None,
    costs: Tensor | None = None,
    ignore_index: int = -100,
) -> list[Estimate]:
    r"""Estimate the rate of dangerous errors and the mean cost of decisions before labels come.

    The estimates are the means of ``decision_risk`` and ``decision_cost``. They are right on average **only while
    probabilities are calibrated**, and are never a limit. Once labels come, the mean of error minus risk of each sample
    shows whether they were right; so does that of paid minus expected cost. If its interval does not contain 0, the
    estimate does not hold: a calibration alarm. The reverse is not true: few labels cannot show a small difference.

    Args:
        assessed: What `DecisionRule.assess` returned, for samples (N,) or, such as pixels, (N, ...).
        concern: The concern of the rule.
        target: ``(N,)`` or ``(N, ...)`` labels, or ``ignore_index`` for samples without a label. Samples must be chosen
            to be labelled without regard to their errors. Default: there are no labels yet.
        clusters: ``(N,)`` the cluster of each sample, as in `DecisionRule.fit`. Default: samples are independent; of
            samples with several positions, each sample is a cluster.
        costs: The costs of the samples, as in `DecisionRule.assess`.
        ignore_index: The label of samples without a label.

    Returns:
        Two `Estimate`, of dangerous errors and of costs, with 95 % intervals of differences. They are for one look: a
        deployment that is looked at again and again needs `mpcs monitor`.

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
    shape = assessed.decision.shape
    decisions, risk, expected = (values.detach().cpu().flatten() for values in (assessed.decision, *assessed[-2:]))
    pairs = {DANGEROUS: risk.double(), COST: expected.double()}
    if target is None:
        return [_estimate(name, values) for name, values in pairs.items()]
    require(target.shape == shape, f"target must have shape {tuple(shape)}", tuple(target.shape))
    number = shape[0]
    if len(shape) > 1 and clusters is None:
        clusters = range(number)
    codes = None
    if clusters is not None:
        codes = group_codes("clusters", clusters, number).codes.repeat_interleave(len(decisions) // max(1, number))
    labels = target.cpu().flatten().long()
    is_labelled = labels != ignore_index
    known = labels.where(is_labelled, 0)
    _, dangerous, cost, _ = decision_values(concern)[:, known, decisions]
    highest = float(concern.costs().max())
    if costs is not None:
        like = decisions.new_empty(number, len(concern.classes), *shape[1:])
        flat = flat_costs(costs, like, [len(concern.classes), concern.costs().shape[1]]).cpu().double()
        cost = paid_costs(flat, known, decisions, cost)
        highest = max(highest, float(flat.abs().max()))
    measured = {DANGEROUS: (dangerous, 1.0), COST: (cost, highest)}
    estimates = list[Estimate]()
    for name, values in pairs.items():
        losses, limit = measured[name]
        is_known = is_labelled & values.isfinite()
        estimate = _estimate(name, values)
        if is_known.any():
            of_clusters = None if codes is None else codes[is_known]
            mean = estimate_mean((losses - values)[is_known], (-limit, limit), of_clusters)
            low, high = mean.interval(CONFIDENCE)
            estimate = estimate._replace(labelled=int(is_known.sum()), difference=mean.value, low=low, high=high)
        estimates.append(estimate)
    return estimates


def _estimate(name: str, values: Tensor) -> Estimate:
    finite = values[values.isfinite()]
    return Estimate(name, finite.mean().item(), len(finite))
