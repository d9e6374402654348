"""Choose a calibration and a decision factor, for fewer harmful errors within an allowed loss of accuracy.

A decision factor is the cost of a harmless error as a share of the cost of the worst error. Counts of rare errors are
too noisy to compare models or factors. Instead, each model gets a score from its calibrated probabilities: the log
score of the true class plus the log score of no harm. The effect of each factor is estimated from the same
probabilities. Counts only rule out factors that are significantly worse than another way to decide.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.calibration import CalibrationWarning
from mpcs_torch.calibration.scaling import ScalingMethod, make_scaling
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.comparison.means import estimate_mean
from mpcs_torch.functional.concern.decision import ranked_choices
from mpcs_torch.functional.concern.losses import mixed
from mpcs_torch.functional.inputs.confidence import CONFIDENCE
from mpcs_torch.functional.inputs.groups import costs_by_label
from mpcs_torch.functional.inputs.probabilities import MIN_PROBABILITY

FACTORS = (1.0, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1)
"""The candidate decision factors. A factor is the cost of a harmless error if the worst error costs 1. With a factor of
1, all errors have the same cost, so the most probable class is decided."""
FOLDS = 5
CHANGES = (-1.0, 1.0)
"""The lowest and the highest possible change of one sample in correctness (0 or 1) or in harm (0 to 1)."""


class Calibrated(NamedTuple):
    """The probabilities of a model by the calibration method that suits it best."""

    method: ScalingMethod
    probs: Tensor
    """Probabilities (N, C), float64, each calibrated by other samples."""
    score: float
    """The mean `log_score`, lower is better."""


class FactorEffect(NamedTuple):
    """The expected changes by a factor, against decisions of the same model by the first factor."""

    factor: float
    right: float
    """The change in the share of correct decisions."""
    harm: float
    """The change in the mean harm of a decision."""


def best_calibration(logits: Tensor, target: Tensor, harm: Tensor) -> Calibrated:
    """Calibrate logits (N, C) by a temperature or, if it scores better, by a scale and a bias for each class.

    If ``harm``, as in `log_score`, is asymmetric, margins make a model prefer some classes, which a temperature cannot
    correct. If it is symmetric, only a temperature is tried.
    """
    methods: list[ScalingMethod] = ["temperature"]
    of_classes = harm[..., : harm.shape[-2]]
    if not torch.equal(of_classes, of_classes.mT):
        methods.append("vector")
    tried = list[Calibrated]()
    for method in methods:
        probs = calibrated(logits, target, method)
        score = log_score(probs, target, harm).mean().item()
        tried.append(Calibrated(method, probs, score))
    return min(tried, key=lambda by_method: by_method.score)


def calibrated(logits: Tensor, target: Tensor, method: ScalingMethod) -> Tensor:
    """Return probabilities (N, C), float64, of logits (N, C); each of five folds is calibrated by the other four."""
    order = torch.randperm(len(target), generator=torch.Generator().manual_seed(0))
    logits = logits.double()
    probs = torch.empty_like(logits)
    with warnings.catch_warnings():
        # A fold whose fit has no finite optimum stays uncalibrated.
        warnings.simplefilter("ignore", CalibrationWarning)
        for fold in order.tensor_split(FOLDS):
            is_fit = torch.ones(len(target), dtype=torch.bool)
            is_fit[fold] = False
            calibration = make_scaling(method, logits.shape[1])
            if is_fit.any():
                calibration.fit(logits[is_fit], target[is_fit])
            probs[fold] = calibration(logits[fold]).softmax(dim=1)
    return probs


def log_score(probs: Tensor, target: Tensor, harm: Tensor) -> Tensor:
    """Return -log p(true class) - log(1 - expected harm) of each sample: (N,), in nats.

    ``harm`` is as in `effects_of_factors`. If each sample has its own, it counts as much as it has at stake: its score
    is that of its harm divided by the highest, times this highest harm.
    """
    of_true = costs_by_label(harm, target)[:, : probs.shape[1]]
    stakes = torch.ones_like(probs[:, 0]) if harm.ndim == 2 else harm.amax(dim=(1, 2))
    unharmed = 1 - (probs * of_true).sum(dim=1) / stakes.clamp(min=MIN_PROBABILITY)
    right = probs.gather(1, target.unsqueeze(1)).squeeze(1)
    log_right = right.clamp(min=MIN_PROBABILITY).log()
    log_unharmed = unharmed.clamp(min=MIN_PROBABILITY).log()
    return -stakes * (log_right + log_unharmed)


def effects_of_factors(
    probs: Tensor, harm: Tensor, factors: Sequence[float] = FACTORS
) -> list[FactorEffect]:
    """Return the changes by each factor that the probabilities (N, C) of a model let expect.

    ``harm`` (C, C), in [0, 1], is the harm of each decision (column) for each true class (row), such as 1 for a
    dangerous error. ``factors`` begin with 1, unless 0 is the only factor, which minimizes ``harm`` itself. Then
    ``harm`` may also be costs (C, C + A + 1), with A coarse answers and a referral, divided by the highest cost; or
    costs of each sample, with one more dimension (`harm_of_rows`).
    """
    # (2, N, decisions): whether each decision is right, and its harm.
    expected = torch.stack([mixed(probs, outcome) for outcome in _outcomes(harm)])
    rows = torch.arange(len(probs))
    first = decide(probs, harm, factors[0])
    effects = []
    for factor in factors:
        decision = decide(probs, harm, factor)
        right, harmed = expected[:, rows, decision] - expected[:, rows, first]
        effects.append(FactorEffect(factor, right.mean().item(), harmed.mean().item()))
    return effects


def choose_factor(
    probs: Tensor,
    target: Tensor,
    harm: Tensor,
    max_accuracy_loss: float,
    *,
    factors: Sequence[float] = FACTORS,
    before: Tensor | None = None,
    clusters: Tensor | None = None,
) -> float | None:
    """Return the admissible factor of least expected harm, or None if no factor is admissible.

    A factor is admissible if its expected loss of accuracy, a share of samples, is at most ``max_accuracy_loss``, and
    if counts do not show that it is worse than the decisions ``before``, (N,), by its accuracy or its harm. By default,
    these are the decisions of ``probs`` by the first factor, so that the first factor is always admissible.

    Args:
        probs: ``(N, C)`` probabilities.
        harm: As in `effects_of_factors`, like ``factors``.
        factors: The candidates.
        target: ``(N,)`` true classes.
        max_accuracy_loss: The allowed loss of accuracy.
        before: The decisions of another model.
        clusters: ``(N,)`` cluster codes of the samples.
    """
    rows = torch.arange(len(probs))
    by_decision = torch.stack(
        [costs_by_label(outcome, target) for outcome in _outcomes(harm)]
    )
    if before is None:
        before = decide(probs, harm, factors[0])
    effects = [
        effect
        for effect in effects_of_factors(probs, harm, factors)
        if effect.right >= -max_accuracy_loss
    ]
    # The first of equals is the highest factor, which changes the fewest decisions.
    for effect in sorted(effects, key=lambda effect: effect.harm):
        decision = decide(probs, harm, effect.factor)
        gains, more_harm = by_decision[:, rows, decision] - by_decision[:, rows, before]
        highest_gain = estimate_mean(gains, CHANGES, clusters).end(
            CONFIDENCE, is_upper=True
        )
        least_more_harm = estimate_mean(more_harm, CHANGES, clusters).end(
            CONFIDENCE, is_upper=False
        )
        if highest_gain >= -max_accuracy_loss and least_more_harm <= 0:
            return effect.factor
    return None


def _outcomes(harm: Tensor) -> Tensor:
    """Return two matrices for each true class (row) and decision (column): is it correct (0 or 1), and its harm."""
    is_right = torch.eye(*harm.shape[-2:], dtype=torch.float64)
    return torch.stack([is_right.expand_as(harm), harm.double()])


def decide(probs: Tensor, harm: Tensor, factor: float) -> Tensor:
    """Return the decisions (N,) of the lowest expected cost, by ``probs`` (N, C) and the costs of `softened`."""
    costs = softened(harm.double(), factor) if factor else harm.double()
    return ranked_choices(mixed(probs, costs), probs).first(costs.shape[-1])


def softened(harm: Tensor, factor: float) -> Tensor:
    """Rescale ``harm`` (C, C), in [0, 1], to costs: a harmless error costs ``factor``, an error of harm 1 costs 1."""
    return (factor + (1 - factor) * harm).fill_diagonal_(0)


def harm_matrix(concern: ConcernSpec) -> Tensor:
    """Return the harm of errors (C, C): weight / highest weight; without weights, 1 for dangerous errors, else 0."""
    if concern.weights is None:
        return concern.dangerous_pairs().double()
    weights = concern.mpcs_weights().fill_diagonal_(0)
    return weights / weights.max()


def harm_of_rows(costs: Tensor, concern: ConcernSpec) -> Tensor:
    """Return ``costs`` (N, C, C), with those of coarse answers and referrals by ``concern``, as harm: (N, C, K).

    Costs are those beyond the right decision; the lowest harm of a sample is 0, and the highest of all samples is 1.
    """
    further = concern.costs()[:, costs.shape[1] :].expand(len(costs), -1, -1)
    of_decisions = torch.cat([costs.double(), further], dim=2)
    of_right_decision = costs.diagonal(dim1=1, dim2=2).unsqueeze(2)
    beyond = of_decisions - of_right_decision
    harm = beyond - beyond.amin(dim=(1, 2), keepdim=True)
    return harm / harm.max().clamp(min=MIN_PROBABILITY)


def with_factor(concern: ConcernSpec, factor: float) -> ConcernSpec:
    """Return ``concern`` with costs `softened` by ``factor`` and with the same dangerous errors."""
    dangerous = list[tuple[int, ...]]()  # a true class, then its dangerous decisions
    for true, row in enumerate(concern.dangerous_pairs()):
        decisions = row.nonzero().flatten().tolist()
        if decisions:
            dangerous.append((true, *decisions))
    settings: dict[str, Any] = {
        "releases": (),
        "weights": softened(harm_matrix(concern), factor).tolist(),
        "dangerous": tuple(dangerous),
    }
    return replace(concern, **settings)
