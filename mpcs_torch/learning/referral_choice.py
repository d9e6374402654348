"""Choose among trained models and decision factors where samples may be referred: the most decisions under limits.

A limit on dangerous errors refers samples. It refers fewer if decisions avoid dangerous errors at the cost of harmless
ones, which is what a small decision factor does.

A limit holds for what is chosen only if other samples choose than those that judge the limit. So the choice is made by
the samples that calibrate a rule: the model by its log score, as without referral. For the factor they are few: as
many as judge are drawn from them, half the time with their own labels, which are noisy, and half the time with labels
that the calibrated probabilities of the model draw, which are not, but believe in it.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern.risk_control import UnattainableLimitError
from mpcs_torch.functional.inputs.decisions import REFERRED
from mpcs_torch.functional.inputs.groups import Groups
from mpcs_torch.learning.choice import calibrated, harm_of, log_score, with_factor
from mpcs_torch.learning.decision_rule import DecisionRule
from mpcs_torch.learning.rule_limit import Limit
from mpcs_torch.learning.rule_samples import calibrating

FACTORS = (None, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02)
"""The costs that are tried for a harmless error, where the worst one costs 1. None: the costs of the concern."""
DRAWN = 3000
"""At least so many samples are drawn, in as many fits as it takes, but not more than `FITS`."""
FITS = 5


class ReferralOption(NamedTuple):
    """A trained model and a way of deciding by it, with what it is expected to do under the limits."""

    model: int
    factor: float | None
    coverage: float
    """The share of samples that are decided."""
    right: float
    """The share of samples that are decided rightly."""


def choose_referring(
    logits: Sequence[Tensor],
    target: Tensor,
    concern: ConcernSpec,
    limits: Sequence[Limit],
    max_accuracy_loss: float,
    *,
    clusters: Groups | None = None,
    groups: Mapping[str, Groups] | None = None,
) -> ReferralOption:
    """Return the option that decides most samples, but not fewer rightly than allowed against the plain model.

    Of options that decide equally many, it is the one that decides most of them rightly.

    Args:
        logits: ``(N, C)`` of each model on the same samples, the plain model first; it is the first option, with the
            costs of the concern.
        target: ``(N,)`` class indices. Those of samples that will judge the limits are not read.
        concern: The costs. With a cost of referral or coarse answers, and under limits on costs, no factor is tried.
        limits: To be guaranteed by a `DecisionRule` with temperature scaling and the seed 0.
        max_accuracy_loss: The share of samples that may be lost as right decisions.
        clusters: Of each sample, if samples of a cluster are not independent.
        groups: Of each sample, by the columns of the limits.
    """
    units = torch.arange(len(target)) if clusters is None else clusters.codes
    chosen = calibrating(int(units.max()) + 1, seed=0)
    chooses, judging = chosen[units], max(int((~chosen).sum()), 1)
    own_units = units[chooses]
    sizes = own_units.bincount()
    members = torch.split(own_units.argsort(stable=True), sizes[sizes > 0].tolist())
    own_groups = {column: each.codes[chooses] for column, each in (groups or {}).items()}
    labels, harm = target[chooses], harm_of(concern)
    probs = [calibrated(each[chooses], labels) for each in logits]
    log_probs = [each.log() for each in probs]
    best = min(range(len(probs)), key=lambda model: log_score(probs[model], labels, harm).mean().item())
    has_factors = concern.refer is None and not concern.answers and all(limit.errors != "cost" for limit in limits)
    factors = FACTORS if has_factors else FACTORS[:1]
    tried = {0: FACTORS[:1], best: factors}
    rules = {factor: DecisionRule(with_factor(concern, factor), limits, calibration=None) for factor in factors}
    counts = torch.nn.functional.one_hot(labels, len(concern.classes)).to(probs[0])
    generator = torch.Generator().manual_seed(0)
    fits = min(FITS, -(-DRAWN // judging))
    found = {(model, factor): torch.zeros(2, dtype=torch.float64) for model in tried for factor in tried[model]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of samples that nobody has seen
        for _ in range(fits):
            drawn_members = [members[at] for at in torch.randint(len(members), (judging,), generator=generator)]
            drawn = torch.cat(drawn_members)
            drawn_units = torch.arange(judging).repeat_interleave(torch.tensor(list(map(len, drawn_members))))
            chance = torch.rand(judging, 1, generator=generator, dtype=torch.float64)[drawn_units]  # one for a unit
            known: dict[str, Any] = {"clusters": None if clusters is None else drawn_units}
            known["groups"] = {column: codes[drawn] for column, codes in own_groups.items()}
            for model, factor in found:
                for truth in (counts, probs[model]):
                    believed = (truth[drawn].cumsum(dim=1) <= chance).sum(dim=1).clamp(max=truth.shape[1] - 1)
                    fit = partial(rules[factor].fit, log_probs[model][drawn], believed, **known)
                    found[model, factor] += _shares(fit, log_probs[model], truth) / (2 * fits)
    options = [ReferralOption(*option, *shares.tolist()) for option, shares in found.items()]
    least = options[0].right - max_accuracy_loss
    return max((each for each in options if each.right >= least), key=lambda each: (each.coverage, each.right))


def _shares(fit: Callable[[], DecisionRule], preds: Tensor, truth: Tensor) -> Tensor:
    """Fit a rule to drawn samples; return the shares of all that are decided, and rightly by the truth (N, C)."""
    try:
        decision = fit()(preds)
    except UnattainableLimitError:
        return torch.zeros(2, dtype=torch.float64)
    is_decided = decision != REFERRED
    right = truth.gather(1, decision.clamp(min=0).unsqueeze(1)).squeeze(1)
    return torch.stack([is_decided.double().mean(), torch.where(is_decided, right, 0.0).mean()])
