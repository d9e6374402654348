"""Choose a trained model and a decision factor, for fewer harmful errors within an allowed loss of accuracy.

A decision factor is the cost of a harmless error as a share of the cost of the worst error. Counts of rare errors are
too noisy to compare models. Instead, each model gets a score from its calibrated probabilities: the log score of the
true class plus the log score of no harm. The effect of each factor is estimated from the same probabilities. Counts
only rule out options (a model with a factor) that are significantly worse than the plain model.

If samples may be referred, a limit on dangerous errors decides which samples are referred. The limit is guaranteed for
the chosen option only if the option and the threshold are chosen on different samples. So the option is chosen on the
calibration samples, resampled to the size of the threshold set. Each resample is used twice: with its labels, which
are noisy, and with labels drawn from the calibrated probabilities, which trust the model.
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
from mpcs_torch.functional.comparison.means import estimate_mean
from mpcs_torch.functional.concern.decision import least_risk
from mpcs_torch.functional.concern.limits import UnattainableLimitError
from mpcs_torch.functional.inputs.confidence import CONFIDENCE
from mpcs_torch.functional.inputs.decisions import REFERRED
from mpcs_torch.functional.inputs.groups import Groups
from mpcs_torch.learning.decision_rule import DecisionRule
from mpcs_torch.learning.rule_fit import draw_calibration_units
from mpcs_torch.learning.rule_limit import Limit, decision_values

FACTORS = (1.0, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1)
"""The candidate decision factors. A factor is the cost of a harmless error if the worst error costs 1. With a factor of
1, all errors have the same cost, so the most probable class is decided."""
MIN_PROBABILITY = 1e-12
"""The lower bound to which log scores clamp probabilities."""
CHANGES = (-1.0, 1.0)
"""The lowest and the highest possible change of one sample in correctness (0 or 1) or in harm (0 to 1)."""
RIGHT, HARM = 0, 1
"""The two outcomes of a decision, by their index in tensors: whether it is correct, and its harm."""


class Option(NamedTuple):
    """A trained model (by index) and a decision factor: the cost of a harmless error if the worst error costs 1."""

    model: int
    factor: float


@dataclass(frozen=True)
class Options:
    """The effects of O options (a model with a factor each) on the correctness and the harm of N decisions."""

    options: tuple[Option, ...]
    counted: Tensor
    """``(O, 2, N)``: by labels, the change in correctness and in harm against the plain model with the first factor."""
    estimated: Tensor
    """``(O, 2, N)``: the expected changes, by predicted probabilities, against the same model with the first factor."""
    scores: Tensor
    """``(M, N)``: the log score of each of M models, in nats; lower is better."""

    @classmethod
    def from_probs(
        cls, probs: Sequence[Tensor], target: Tensor, harm: Tensor, factors: Sequence[float] = FACTORS
    ) -> Self:
        """Compute the changes from the `calibrated` probabilities (N, C) of each model; the plain model is the first.

        ``harm`` (C, C), in [0, 1], is the harm of each decision (column) for each true class (row), such as 1 for a
        dangerous error. ``factors`` begin with 1, unless 0 is the only factor, which minimizes ``harm`` itself. Then
        ``harm`` may also be costs (C, C + A + 1), with A coarse answers and a referral, divided by the highest cost.
        """
        harm = harm.double()
        outcomes, every = torch.stack([torch.eye(*harm.shape).to(harm), harm]), torch.arange(len(target))
        plain = decide(probs[0], harm, factors[0])
        options, counted, estimated = [], [], []
        for model, each in enumerate(probs):
            expected, default = each @ outcomes, decide(each, harm, factors[0])
            for factor in factors:
                decision = decide(each, harm, factor)
                options.append(Option(model, factor))
                counted.append(outcomes[:, target, decision] - outcomes[:, target, plain])
                estimated.append(expected[:, every, decision] - expected[:, every, default])
        scores = torch.stack([log_score(each, target, harm) for each in probs])
        return cls(tuple(options), torch.stack(counted), torch.stack(estimated), scores)

    def estimates(self) -> list[list[float]]:
        """Return the expected changes in accuracy and harm by each option, against its model with the first factor."""
        return self.estimated.mean(dim=2).tolist()

    def ranking(self) -> list[int]:
        """Return the indices of the models, the lowest (best) mean `log_score` first."""
        return self.scores.mean(dim=1).argsort(stable=True).tolist()

    def choose(self, max_accuracy_loss: float, clusters: Tensor | None = None) -> int:
        """Return the index of the chosen option: the admissible option of the best model with the least expected harm.

        An option is admissible if its expected loss of accuracy, a share of samples, is at most ``max_accuracy_loss``,
        and if it is not significantly worse than the plain model by counts. If the best model has no admissible option,
        the next best is tried. ``clusters`` (N,) are the cluster codes of the samples.
        """
        estimates = self.estimates()
        for model in self.ranking():
            of_model = [place for place, option in enumerate(self.options) if option.model == model]
            expected = [place for place in of_model if estimates[place][RIGHT] >= -max_accuracy_loss]
            for place in sorted(expected, key=lambda place: estimates[place][HARM]):
                if place == 0 or not self._is_worse(place, max_accuracy_loss, clusters):
                    return place
        raise AssertionError("the plain model with a factor of 1 is always admissible")

    def _is_worse(self, place: int, max_accuracy_loss: float, clusters: Tensor | None) -> bool:
        """Return whether 95 % intervals of counts show that option ``place`` loses too much accuracy or adds harm."""
        right, harm = (estimate_mean(self.counted[place, part], CHANGES, clusters) for part in (RIGHT, HARM))
        return right.end(1, CONFIDENCE) < -max_accuracy_loss or harm.end(0, CONFIDENCE) > 0


def decide(probs: Tensor, harm: Tensor, factor: float) -> Tensor:
    """Return the decisions (N,) of the lowest expected cost, by ``probs`` (N, C) and the costs of `softened`."""
    return least_risk(probs, softened(harm, factor))


def softened(harm: Tensor, factor: float) -> Tensor:
    """Rescale ``harm`` (C, C), in [0, 1], to costs: a harmless error costs ``factor``, an error of harm 1 costs 1."""
    return (factor + (1 - factor) * harm).fill_diagonal_(0)


def harm_matrix(concern: ConcernSpec) -> Tensor:
    """Return the harm of errors (C, C): weight / highest weight; without weights, 1 for dangerous errors, else 0."""
    if concern.weights is None:
        return concern.dangerous_pairs().double()
    weights = concern.matrix().fill_diagonal_(0)
    return weights / weights.max()


def with_factor(concern: ConcernSpec, factor: float | None) -> ConcernSpec:
    """Return ``concern`` with costs `softened` by ``factor`` (None: no change) and with the same dangerous errors."""
    if factor is None:
        return concern
    pairs = [(true, *row.nonzero().flatten().tolist()) for true, row in enumerate(concern.dangerous_pairs())]
    errors: dict[str, Any] = {"releases": (), "weights": softened(harm_matrix(concern), factor).tolist()}
    return replace(concern, **errors, dangerous=tuple(pair for pair in pairs if len(pair) > 1))


def log_score(probs: Tensor, target: Tensor, harm: Tensor) -> Tensor:
    """Return -log p(true class) - log(1 - expected harm) of each sample: (N,), in nats."""
    unharmed = 1 - (probs * harm[target, : probs.shape[1]]).sum(dim=1)
    right = probs.gather(1, target.unsqueeze(1)).squeeze(1)
    return -right.clamp(min=MIN_PROBABILITY).log() - unharmed.clamp(min=MIN_PROBABILITY).log()


def calibration_for(harm: Tensor) -> ScalingMethod:
    """Return the calibration method for models trained with margins in proportion to ``harm`` (C, C).

    If ``harm`` is asymmetric, margins make a model prefer some classes; a temperature cannot correct this.
    """
    return "temperature" if torch.equal(harm, harm.T) else "vector"


def calibrated(logits: Tensor, target: Tensor, method: ScalingMethod = "temperature") -> Tensor:
    """Return probabilities (N, C), float64, of logits (N, C); each of five folds is calibrated by the other four."""
    order = torch.randperm(len(target), generator=torch.Generator().manual_seed(0))
    logits = logits.double()
    probs = torch.empty_like(logits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # a fold whose fit has no finite optimum stays uncalibrated
        for fold in order.tensor_split(5):
            is_fit = torch.ones(len(target), dtype=torch.bool)
            is_fit[fold] = False
            calibration = make_scaling(method, logits.shape[1])
            if is_fit.any():
                calibration.fit(logits[is_fit], target[is_fit])
            probs[fold] = calibration(logits[fold]).softmax(dim=1)
    return probs


REFERRING_FACTORS = (None, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02)
"""The candidate factors if samples may be referred. None stands for the costs of the concern."""
MIN_RESAMPLED = 3000
"""The minimum number of samples or clusters to draw in all fits together, as far as `MAX_FITS` fits allow."""
MAX_FITS = 5


class ReferralOption(NamedTuple):
    """A trained model and a decision factor, with the expected results of a rule that guarantees the limits."""

    model: int
    factor: float | None
    right: float
    """The share of samples that are decided correctly."""
    dangerous: float
    """The number of dangerous errors per sample."""
    cost: float
    """The mean cost per sample, by the costs of the concern; a referral without a price costs nothing."""
    referred: float
    """The share of samples that are referred."""


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
    """Choose the model and factor with the fewest referrals; return this option and the list of all options.

    The share of correct decisions may be below that of the plain model by at most ``max_accuracy_loss``; of options
    with equally many referrals, the one with the highest share is chosen. The plain model is the first in ``logits``,
    (N, C) each, and in the list of options. If a referral has a cost, or a limit is on costs, no factor is tried. Only
    labels of calibration samples are read, not those of the samples that will set the thresholds.
    """
    units = torch.arange(len(target)) if clusters is None else clusters.codes
    is_calibration = draw_calibration_units(int(units.max()) + 1, seed=0)
    rows, num_units = is_calibration[units], max(int((~is_calibration).sum()), 1)
    units = units[rows]
    sizes = units.bincount()
    members = torch.split(units.argsort(stable=True), sizes[sizes > 0].tolist())
    group_codes = {column: each.codes[rows] for column, each in (groups or {}).items()}
    labels, harm = target[rows], harm_matrix(concern)
    probs = [calibrated(each[rows], labels) for each in logits]
    log_probs = [each.log() for each in probs]
    best = min(range(len(probs)), key=lambda model: log_score(probs[model], labels, harm).mean().item())
    has_factors = concern.refer is None and all(limit.errors != "cost" for limit in limits)
    factors = REFERRING_FACTORS if has_factors else REFERRING_FACTORS[:1]
    tried = {0: REFERRING_FACTORS[:1], best: factors}
    rules = {factor: DecisionRule(with_factor(concern, factor), limits, calibration=None) for factor in factors}
    counts = torch.nn.functional.one_hot(labels, len(concern.classes)).to(probs[0])
    generator = torch.Generator().manual_seed(0)
    fits = min(MAX_FITS, -(-MIN_RESAMPLED // num_units))
    sums = {(model, factor): torch.zeros(4, dtype=torch.float64) for model in tried for factor in tried[model]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about resampled data would mislead
        for _ in range(fits):
            resampled = [members[at] for at in torch.randint(len(members), (num_units,), generator=generator)]
            places = torch.cat(resampled)
            place_units = torch.arange(num_units).repeat_interleave(torch.tensor(list(map(len, resampled))))
            quantile = torch.rand(num_units, 1, generator=generator, dtype=torch.float64)[place_units]  # one per unit
            structure: dict[str, Any] = {"clusters": None if clusters is None else place_units}
            structure["groups"] = {column: codes[places] for column, codes in group_codes.items()}
            for model, factor in sums:
                for truth in (counts, probs[model]):
                    sampled = (truth[places].cumsum(dim=1) <= quantile).sum(dim=1).clamp(max=truth.shape[1] - 1)
                    fit = partial(rules[factor].fit, log_probs[model][places], sampled, **structure)
                    sums[model, factor] += _mean_losses(fit, log_probs[model], truth, concern) / (2 * fits)
    options = [ReferralOption(*option, *shares.tolist()) for option, shares in sums.items()]
    min_right = options[0].right - max_accuracy_loss
    allowed = (each for each in options if each.right >= min_right)
    return min(allowed, key=lambda each: (each.referred, -each.right)), options


def _mean_losses(fit: Callable[[], DecisionRule], preds: Tensor, truth: Tensor, concern: ConcernSpec) -> Tensor:
    """Decide the samples ``preds`` (N, C) by the rule that ``fit()`` returns; return the mean `decision_values` (4,).

    The true class of a sample is random, with the probabilities ``truth`` (N, C); the means are expected values. If a
    limit is unattainable, all samples are referred.
    """
    try:
        decision = fit()(preds)
    except UnattainableLimitError:
        decision = torch.full((len(preds),), REFERRED)
    return (decision_values(concern)[:, :, decision] * truth.T).sum(dim=1).mean(dim=1)
