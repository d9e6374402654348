"""Choose a trained model and a decision factor: fewer harmful errors at an accuracy that one allows.

Counts of rare errors on validation samples are noisy, and models differ in them by less than their noise. So the model
is chosen by a proper score of its calibrated probabilities, to which all samples contribute: the log score of the true
class, and that of no harm. Then its own calibrated probabilities say what each decision factor changes. Counts only
have a veto: an option that is clearly worse than the plain model by them is not chosen, however good its score is.

Where samples may be referred, a limit on dangerous errors refers them: fewer, if decisions avoid dangerous errors at
the cost of harmless ones, which is what a small factor does. A limit holds for what is chosen only if other samples
choose than those that judge the limit. So the choice is made by the samples that calibrate a rule. For the factor they
are few: as many as judge are drawn from them, half the time with their own labels, which are noisy, and half the time
with labels that the calibrated probabilities of the model draw, which are not, but believe in it.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from mpcs_torch.calibration import CalibrationWarning
from mpcs_torch.calibration.scaling import ScalingMethod, make_scaling
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.comparison.means import Mean, mean_of
from mpcs_torch.functional.concern.dangerous import DANGEROUS, severity_of
from mpcs_torch.functional.concern.decision import least_risk
from mpcs_torch.functional.concern.limited_rate import UnattainableLimitError
from mpcs_torch.functional.inputs.confidence import CONFIDENCE
from mpcs_torch.functional.inputs.decisions import REFERRED
from mpcs_torch.functional.inputs.groups import Groups
from mpcs_torch.learning.decision_rule import DecisionRule
from mpcs_torch.learning.rule_limit import Limit
from mpcs_torch.learning.rule_samples import calibrating

FACTORS = (1.0, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1)
"""The costs that are tried for a harmless error when deciding; the worst one costs 1. With 1 for all, the most probable
class is the decision."""
LEAST = 1e-12
"""The least probability that a score counts."""
RIGHT, HARM = 0, 1
"""The two numbers that are measured of each decision, by their place."""


class Option(NamedTuple):
    """A trained model, and a way of deciding by it."""

    model: int
    factor: float


@dataclass(frozen=True)
class Options:
    """The options on validation samples, each against the first model decided by its most probable class."""

    options: tuple[Option, ...]
    counted: Tensor
    """``(O, 2, N)``: the change of correct decisions and of harm, by the labels."""
    estimated: Tensor
    """``(O, 2, N)``: the change against the same model decided by its most probable class, as its probabilities say."""
    scores: Tensor
    """``(M, N)``: the log score of each model, in nats; less is better."""

    @classmethod
    def of(cls, logits: Sequence[Tensor], target: Tensor, harm: Tensor, factors: Sequence[float] = FACTORS) -> Self:
        """Compare models by their logits (N, C) on the same samples, the plain model first, and try factors, 1 first.

        The harm (C, C) of each error, rows true classes, is from 0 to 1, such as 1 for dangerous errors alone.
        """
        method = calibration_for(harm)
        return cls.of_probs([calibrated(each, target, method) for each in logits], target, harm, factors)

    @classmethod
    def of_probs(
        cls, probs: Sequence[Tensor], target: Tensor, harm: Tensor, factors: Sequence[float] = FACTORS
    ) -> Self:
        """Compare models by their `calibrated` probabilities.

        With the factor 0 alone, harm may be the costs of a concern with a referral, (C, C + A + 1), at most 1.
        """
        harm = harm.double()
        plain = decide(probs[0], harm, factors[0])
        options, counted, estimated = [], [], []
        for model, own in enumerate(probs):
            usual = decide(own, harm, factors[0])
            for factor in factors:
                decision = decide(own, harm, factor)
                options.append(Option(model, factor))
                counted.append(_of_labels(decision, target, harm) - _of_labels(plain, target, harm))
                estimated.append(_of_belief(decision, own, harm) - _of_belief(usual, own, harm))
        scores = torch.stack([log_score(own, target, harm) for own in probs])
        return cls(tuple(options), torch.stack(counted), torch.stack(estimated), scores)

    @classmethod
    def pooled(cls, parts: Sequence["Options"]) -> "Options":
        """Join the options of models that were trained in the same way, under several seeds."""
        names = ("counted", "estimated", "scores")
        return cls(parts[0].options, *(torch.cat([getattr(part, name) for part in parts], dim=-1) for name in names))

    def estimates(self) -> list[list[float]]:
        """Estimate the gain of accuracy and the change of harm by the factor of each option, for its model."""
        return self.estimated.mean(dim=2).tolist()

    def ranking(self) -> list[int]:
        """Return the models, the one with the best score first."""
        return self.scores.mean(dim=1).argsort(stable=True).tolist()

    def choose(self, max_accuracy_loss: float, clusters: Tensor | None = None) -> int:
        """Return the place of the least harmful option of the best model.

        Options count that are expected to cost no more accuracy than allowed, and are not clearly worse than the plain
        model by counts. If a model has none, the next best one follows; the plain model always has one. The loss of
        accuracy is a share of samples; codes (N,) tell the clusters of samples that are not independent.
        """
        estimates = self.estimates()
        for model in self.ranking():
            of_model = [place for place, option in enumerate(self.options) if option.model == model]
            expected = [place for place in of_model if estimates[place][RIGHT] >= -max_accuracy_loss]
            for place in sorted(expected, key=lambda place: estimates[place][HARM]):
                if place == 0 or not self._is_worse(place, max_accuracy_loss, clusters):
                    return place
        raise AssertionError("the plain model changes nothing with a factor of 1")

    def _is_worse(self, place: int, max_accuracy_loss: float, clusters: Tensor | None) -> bool:
        """Return whether an option clearly loses more accuracy than allowed, or clearly does more harm, by counts."""
        right, harm = (change_of(self.counted[place, part], clusters) for part in (RIGHT, HARM))
        return right.end(1, CONFIDENCE) < -max_accuracy_loss or harm.end(0, CONFIDENCE) > 0


def change_of(change: Tensor, clusters: Tensor | None) -> Mean:
    """Return the mean of changes (N,), each in [-1, 1]."""
    return mean_of(change, (-1.0, 1.0), clusters)


def decide(probs: Tensor, harm: Tensor, factor: float) -> Tensor:
    """Decide (N,) by probabilities (N, C), where a harmless error costs the factor, and the worst one 1."""
    return least_risk(probs, softened(harm, factor))


def softened(harm: Tensor, factor: float) -> Tensor:
    """Return the costs by which a factor decides, (C, C), from the harm of errors in [0, 1]."""
    return (factor + (1 - factor) * harm).fill_diagonal_(0)


def harm_of(concern: ConcernSpec) -> Tensor:
    """Return the harm of each error, float64 (C, C): its share of the highest weight; released pairs have 0."""
    if concern.weights is None:
        return concern.dangerous_pairs().double()
    weights = concern.matrix().fill_diagonal_(0)
    return weights / weights.max()


def with_factor(concern: ConcernSpec, factor: float | None) -> ConcernSpec:
    """Return the concern by whose costs a factor decides; the same errors are dangerous. None changes nothing."""
    if factor is None:
        return concern
    pairs = [(true, *row.nonzero().flatten().tolist()) for true, row in enumerate(concern.dangerous_pairs())]
    errors: dict[str, Any] = {"releases": (), "weights": softened(harm_of(concern), factor).tolist()}
    return replace(concern, **errors, dangerous=tuple(pair for pair in pairs if len(pair) > 1))


def _of_labels(decision: Tensor, target: Tensor, harm: Tensor) -> Tensor:
    """Return whether each decision is right, and its harm: (2, N)."""
    return torch.stack([(decision == target).double(), harm[target, decision]])


def log_score(probs: Tensor, target: Tensor, harm: Tensor) -> Tensor:
    """Return the log score of the true class, and that of the weight of the classes that do no harm: (N,)."""
    unharmed = 1 - (probs * harm[target, : probs.shape[1]]).sum(dim=1)
    right = probs.gather(1, target.unsqueeze(1)).squeeze(1)
    return -right.clamp(min=LEAST).log() - unharmed.clamp(min=LEAST).log()


def _of_belief(decision: Tensor, belief: Tensor, harm: Tensor) -> Tensor:
    """Return the probability that each decision is right, and its expected harm: (2, N)."""
    right = torch.nn.functional.pad(belief, (0, harm.shape[1] - len(harm)))  # no other answer than a class is right
    return torch.stack([each.gather(1, decision.unsqueeze(1)).squeeze(1) for each in (right, belief @ harm)])


def calibration_for(harm: Tensor) -> ScalingMethod:
    """Return the method that calibrates models which were trained with margins for the harm of errors (C, C).

    Where one direction of a confusion does more harm than the other, margins shift the odds of the classes. A
    temperature cannot undo that, and accuracy would be spent without the estimates noticing.
    """
    return "temperature" if torch.equal(harm, harm.T) else "vector"


def calibrated(logits: Tensor, target: Tensor, method: ScalingMethod = "temperature") -> Tensor:
    """Return probabilities (N, C), of which those of each fold are calibrated by the other samples."""
    order = torch.randperm(len(target), generator=torch.Generator().manual_seed(0))
    logits = logits.double()
    probs = torch.empty_like(logits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # no error among the others: nothing is changed
        for fold in order.tensor_split(5):  # its calibration is fitted on the other folds
            others = torch.ones(len(target), dtype=torch.bool)
            others[fold] = False
            calibration = make_scaling(method, logits.shape[1])
            if others.any():
                calibration.fit(logits[others], target[others])
            probs[fold] = calibration(logits[fold]).softmax(dim=1)
    return probs


REFERRING_FACTORS = (None, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02)
"""The costs that are tried for a harmless error, where the worst one costs 1. None: the costs of the concern."""
DRAWN = 3000
"""At least so many samples are drawn, in as many fits as it takes, but not more than `FITS`."""
FITS = 5


class ReferralOption(NamedTuple):
    """A trained model and a way of deciding by it, with what it is expected to do under the limits."""

    model: int
    factor: float | None
    right: float
    """The share of samples that are decided rightly."""
    dangerous: float
    """The share of samples that are decided with a dangerous error."""
    cost: float
    """The cost per sample by the concern; a referral without a price costs nothing."""
    referred: float
    """The share of samples that are not decided."""


def choose_referring(
    logits: Sequence[Tensor],
    target: Tensor,
    concern: ConcernSpec,
    limits: Sequence[Limit],
    max_accuracy_loss: float,
    *,
    clusters: Groups | None = None,
    groups: Mapping[str, Groups] | None = None,
) -> tuple[ReferralOption, list[ReferralOption]]:
    """Return the option that decides most samples, but not fewer rightly than allowed against the plain model, and all.

    Of options that decide equally many, it is the one that decides most of them rightly.

    Args:
        logits: ``(N, C)`` of each model on the same samples, the plain model first; it is the first option, with the
            costs of the concern.
        target: ``(N,)`` class indices. Those of samples that will judge the limits are not read.
        concern: The costs. With a cost of referral, and under limits on costs, no factor is tried.
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
    has_factors = concern.refer is None and all(limit.errors != "cost" for limit in limits)
    factors = REFERRING_FACTORS if has_factors else REFERRING_FACTORS[:1]
    tried = {0: REFERRING_FACTORS[:1], best: factors}
    rules = {factor: DecisionRule(with_factor(concern, factor), limits, calibration=None) for factor in factors}
    counts = torch.nn.functional.one_hot(labels, len(concern.classes)).to(probs[0])
    generator = torch.Generator().manual_seed(0)
    fits = min(FITS, -(-DRAWN // judging))
    found = {(model, factor): torch.zeros(4, dtype=torch.float64) for model in tried for factor in tried[model]}
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
                    found[model, factor] += _shares(fit, log_probs[model], truth, concern) / (2 * fits)
    options = [ReferralOption(*option, *shares.tolist()) for option, shares in found.items()]
    least = options[0].right - max_accuracy_loss
    allowed = (each for each in options if each.right >= least)
    return min(allowed, key=lambda each: (each.referred, -each.right)), options


def _shares(fit: Callable[[], DecisionRule], preds: Tensor, truth: Tensor, concern: ConcernSpec) -> Tensor:
    """Fit a rule to samples that were drawn; return its mean losses on all by the truth (N, C): (4,)."""
    try:
        decision = fit()(preds)
    except UnattainableLimitError:
        decision = torch.full((len(preds),), REFERRED)
    return (losses_of(concern)[:, :, decision] * truth.T).sum(dim=1).mean(dim=1)


def losses_of(concern: ConcernSpec) -> Tensor:
    """Return for each decision whether it is right, whether it is a dangerous error, its cost, and whether it refers.

    float64 (4, C, C + A + 1). The last column is that of a referral, and -1 finds it; without a price it costs nothing.
    """
    costs = concern.costs() if concern.refer is not None else torch.nn.functional.pad(concern.costs(), (0, 1))
    is_referral = (torch.arange(costs.shape[1]) == costs.shape[1] - 1).expand(costs.shape)
    is_dangerous = severity_of(concern, len(costs)) == DANGEROUS
    return torch.stack([torch.eye(*costs.shape), is_dangerous, costs, is_referral]).double()
