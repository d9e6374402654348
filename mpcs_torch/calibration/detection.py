"""Map detection scores to log-likelihood ratios: logistic calibration and fusion, or isotonic regression (PAV)."""

from math import log
from typing import Any, Self
from warnings import warn

import torch
from torch import Tensor, nn

from mpcs_torch.calibration.scaling import (
    REVERSED,
    STEPS,
    CalibrationWarning,
    Expansion,
    labelled_trials,
    minimize,
    upcast_half,
)
from mpcs_torch.errors import InvalidValueError, require
from mpcs_torch.functional.detection.cost import OperatingPoint
from mpcs_torch.functional.detection.errors import count_errors, hull_vertices


def fit_affine(scores: Tensor, is_target: Tensor, p_target: float) -> tuple[Tensor, Tensor]:
    """Fit weights (S,) and a bias, float64, that map ``scores`` (N, S) of S systems to log-likelihood ratios.

    ``is_target`` (N,) is bool. Constant scores get the weight 0. Perfectly correlated systems share a single weight.

    Raises:
        ValueError: If there is no finite optimum.
    """
    centre = scores.mean(dim=0)
    is_constant = scores.amin(dim=0) == scores.amax(dim=0)
    # Constant scores divided by infinity are 0, and so is their weight.
    spread = scores.std(dim=0, correction=0).masked_fill(is_constant, torch.inf)
    unit = (scores - centre) / spread
    optimum = minimize(
        lambda point: _expand(unit, is_target, p_target, point),
        scores.new_zeros(scores.shape[1] + 1),
    )
    if optimum is None:
        raise InvalidValueError("no_optimum", "preds", steps=STEPS)
    # Undo the standardization.
    weights = optimum[:-1] / spread
    bias = optimum[-1] - weights @ centre
    return weights, bias


def _expand(scores: Tensor, is_target: Tensor, p_target: float, point: Tensor) -> Expansion:
    """Compute the weighted cross entropy and its derivatives at ``point`` (S + 1,), the S weights and the bias."""
    target = is_target.to(scores)
    of_targets = p_target / target.sum()
    of_nontargets = (1 - p_target) / (1 - target).sum()
    weight = torch.where(is_target, of_targets, of_nontargets)
    inputs = torch.cat([scores.T, torch.ones_like(scores[:, :1]).T])  # 1 for the bias
    log_odds = point @ inputs + log(p_target / (1 - p_target))
    loss = torch.nn.functional.binary_cross_entropy_with_logits(
        log_odds, target, weight, reduction="sum"
    )
    probs = log_odds.sigmoid()
    gradient = inputs @ (weight * (probs - target))
    curvature = weight * probs * (1 - probs)
    hessian = (inputs * curvature) @ inputs.T
    return Expansion(loss, gradient, hessian)


class LogisticCalibration(nn.Module):
    r"""Map detection scores to natural-log likelihood ratios by prior-weighted logistic regression.

    The ratio of a score s is :math:`a s + b`. With p for ``p_target``, the scale a and the bias b minimize

    .. math:: \frac{p}{T} \sum_{targets} \log(1 + e^{-(a s + b + \mathrm{logit}\,p)}) +
        \frac{1 - p}{N} \sum_{nontargets} \log(1 + e^{a s + b + \mathrm{logit}\,p})

    T is the number of targets, and N the number of non-targets; their proportion has no effect. With p = 0.5, the sum
    is `cllr` times the natural logarithm of 2. Before `fit`, scores are returned unchanged (scale 1, bias 0).

    Args:
        p_target: The prior probability p of a target in the equation, in (0, 1). Choose a value near the effective
            prior of the application.

    Raises:
        ValueError: If ``p_target`` is not in (0, 1).

    References:
        Brummer, du Preez: Application-independent evaluation of speaker detection, 2006.
        Brummer, de Villiers: The BOSARIS toolkit user guide, 2011, Section 4 (calibration).

    Example:
        >>> scores, labels = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0, 1, 0, 1])
        >>> calibration = LogisticCalibration().fit(scores, labels)
        >>> calibration(torch.tensor([2.5, 4.0]))
        tensor([0.0000, 1.3623])
    """

    scale: Tensor
    """The scale a, a float64 scalar."""
    bias: Tensor
    """The bias b, a float64 scalar."""

    def __init__(self, p_target: float = 0.5) -> None:
        super().__init__()
        self.p_target = OperatingPoint(p_target).p_target
        self.register_buffer("scale", torch.ones((), dtype=torch.float64))
        self.register_buffer("bias", torch.zeros((), dtype=torch.float64))

    def forward(self, preds: Tensor) -> Tensor:
        """Return log-likelihood ratios in the shape and dtype of the scores ``preds``, but float32 for 16-bit types.

        Raises:
            ValueError: If ``preds`` is not floating point.
        """
        scores = upcast_half(preds)
        return (self.scale * scores.to(self.scale.dtype) + self.bias).to(scores.dtype)

    def fit(self, preds: Tensor, target: Tensor) -> Self:
        """Set the scale and the bias to the values with the lowest cross entropy, computed in float64; return self.

        Args:
            preds: ``(N,)`` or ``(N, ...)`` scores, floating point and finite, higher for targets.
            target: ``(N,)`` or ``(N, ...)`` integers or bools: 1 for targets, 0 for non-targets; both must occur.

        Raises:
            ValueError: If an argument breaks its rule above, or if a threshold separates targets from non-targets (then
                no finite scale is optimal).

        Warns:
            CalibrationWarning: If the scale is not above 0: the scores are reversed or uninformative.
        """
        scores, is_target = labelled_trials(preds, target)
        if scores.amin() < scores.amax():  # otherwise the scale is 0
            targets, nontargets = scores[is_target], scores[~is_target]
            if targets.amin() >= nontargets.amax() or targets.amax() <= nontargets.amin():
                raise InvalidValueError("separated", "preds")
        weights, bias = fit_affine(scores.unsqueeze(1), is_target, self.p_target)
        scale = weights.item()
        if not scale > 0:
            warn(
                f"The scale is {scale:g}, because {REVERSED}.",
                CalibrationWarning,
                stacklevel=2,
            )
        self.scale.fill_(scale)
        self.bias.fill_(bias)
        return self


class LogisticFusion(nn.Module):
    r"""Combine the scores of S systems for a trial to one natural-log likelihood ratio.

    The ratio is :math:`w_1 s_1 + \dots + w_S s_S + b`. The weights and the bias minimize the prior-weighted cross
    entropy, as in `LogisticCalibration`. Call `fit` with trials on which no system was trained. Before `fit`, the ratio
    is the mean of the scores (weights 1 / S, bias 0).

    Args:
        num_systems: The number S of systems, at least 1.
        p_target: The prior probability of a target, in (0, 1), as in `LogisticCalibration`.

    Raises:
        ValueError: If a setting breaks its rule above.

    References:
        Brummer, de Villiers: The BOSARIS toolkit user guide, 2011, Section 4 (fusion).

    Example:
        >>> scores = torch.tensor([[0.0, 1.0], [2.0, 0.0], [3.0, 2.0], [1.0, 2.0], [2.0, 3.0], [4.0, 1.0]])
        >>> fusion = LogisticFusion(2).fit(scores, torch.tensor([0, 0, 0, 1, 1, 1]))
        >>> fusion(torch.tensor([[2.0, 2.0], [5.0, 5.0]]))
        tensor([0.6790, 6.4575])
    """

    weights: Tensor
    """The weights of the systems, ``(S,)``, float64."""
    bias: Tensor
    """The bias b, a float64 scalar."""

    def __init__(self, num_systems: int, p_target: float = 0.5) -> None:
        super().__init__()
        require(num_systems >= 1, "at_least", "num_systems", num_systems, minimum=1)
        self.p_target = OperatingPoint(p_target).p_target
        self.register_buffer(
            "weights", torch.full((num_systems,), 1 / num_systems, dtype=torch.float64)
        )
        self.register_buffer("bias", torch.zeros((), dtype=torch.float64))

    def forward(self, preds: Tensor) -> Tensor:
        """Return log-likelihood ratios (N,) of the scores ``preds`` (N, S) in their dtype; float32 for 16-bit types.

        Raises:
            ValueError: If ``preds`` is not floating point of shape ``(N, S)``.
        """
        self._check(preds)
        scores = upcast_half(preds)
        weighted = scores.to(self.weights.dtype) * self.weights
        ratios = weighted.sum(dim=1) + self.bias
        return ratios.to(scores.dtype)

    def fit(self, preds: Tensor, target: Tensor) -> Self:
        """Set the weights and the bias to the values with the lowest cross entropy, computed in float64; return self.

        ``preds`` has shape ``(N, S)``; ``target`` and the errors are those of `LogisticCalibration.fit`.

        Warns:
            CalibrationWarning: If a weight is negative. If the cause is highly correlated systems, drop one of them.
        """
        self._check(preds)
        trials = [labelled_trials(scores, target) for scores in preds.unbind(dim=1)]
        systems = torch.stack([scores for scores, _ in trials], dim=1)
        _, is_target = trials[0]  # the labels of all systems are the same
        weights, bias = fit_affine(systems, is_target, self.p_target)
        if (weights < 0).any():
            listed = ", ".join(f"{weight:.3g}" for weight in weights.tolist())
            warn(
                f"The weights of the systems are {listed}: one is negative.",
                CalibrationWarning,
                stacklevel=2,
            )
        self.weights.copy_(weights)
        self.bias.copy_(bias)
        return self

    def _check(self, preds: Tensor) -> None:
        is_by_system = preds.ndim == 2 and preds.shape[1] == len(self.weights)
        require(is_by_system, "shape", "preds", preds, shape=f"(N, {len(self.weights)})")


class PAVCalibration(nn.Module):
    """Map detection scores to natural-log likelihood ratios by isotonic regression (pool adjacent violators, PAV).

    PAV groups neighbouring scores into blocks. The probability of a block is its share of targets. Between two blocks,
    the probability is interpolated linearly; it is constant below the lowest and above the highest score. The ratio is
    the log odds of this probability, minus the log odds of targets in the fitted data.

    On the fitted data, the `cllr` of the ratios equals `min_cllr`. A block without targets has the ratio -inf, and a
    block without non-targets +inf. If a new target gets -inf, or a new non-target +inf, `cllr` is infinite. With few
    trials, use `LogisticCalibration`.

    References:
        Brummer, du Preez: Application-independent evaluation of speaker detection, 2006, Section 6.
        Zadrozny, Elkan: Transforming classifier scores into accurate multiclass probability estimates, KDD 2002.

    Example:
        >>> scores, labels = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]), torch.tensor([0, 1, 0, 0, 1])
        >>> calibration = PAVCalibration().fit(scores, labels)
        >>> calibration(torch.tensor([1.0, 1.5, 3.0, 9.0]))
        tensor([   -inf, -1.2040, -0.2877,     inf])
    """

    scores: Tensor
    """``(K,)``, float64, ascending: the first and the last score of each block."""
    posteriors: Tensor
    """``(K,)``, float64, non-decreasing: the share of targets in the block of each score."""
    prior_log_odds: Tensor
    """The log odds of targets in the fitted data, a float64 scalar."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scores", torch.empty(0, dtype=torch.float64))
        self.register_buffer("posteriors", torch.empty(0, dtype=torch.float64))
        self.register_buffer("prior_log_odds", torch.zeros((), dtype=torch.float64))
        self.register_load_state_dict_pre_hook(_resize)  # type: ignore[no-untyped-call]

    def forward(self, preds: Tensor) -> Tensor:
        """Return log-likelihood ratios in the shape and dtype of the scores ``preds``, but float32 for 16-bit types.

        Raises:
            ValueError: If ``preds`` is not floating point, or if `fit` was not called.
        """
        inputs = upcast_half(preds)
        if len(self.scores) == 0:
            raise InvalidValueError("not_fitted", "PAVCalibration")
        scores = inputs.to(self.scores.dtype).clamp(self.scores[0], self.scores[-1])
        # The indices of the fitted scores around each score; NaN sorts after all of them.
        above = torch.searchsorted(self.scores, scores.contiguous())
        above = above.clamp(max=len(self.scores) - 1)
        below = (above - 1).clamp(min=0)
        gap = self.scores[above] - self.scores[below]
        # At the lowest score there is no gap: the share is 0, or NaN for a score of NaN.
        share = torch.where(
            gap > 0, (scores - self.scores[below]) / gap, scores - self.scores[above]
        )
        posterior = torch.lerp(self.posteriors[below], self.posteriors[above], share)
        log_odds = posterior.log() - (-posterior).log1p()
        return (log_odds - self.prior_log_odds).to(inputs.dtype)

    def fit(self, preds: Tensor, target: Tensor) -> Self:
        """Fit the isotonic regression of labels on scores; arguments are those of `LogisticCalibration.fit`.

        Warns:
            CalibrationWarning: If scores are reversed or uninformative. Then all log-likelihood ratios are 0.
        """
        scores, is_target = labelled_trials(preds, target)
        counts = count_errors(scores, is_target)
        ends = hull_vertices(counts)  # each edge of the ROC convex hull is a block of PAV
        # From the start of a block to its end, misses grow by its targets, and false alarms shrink by its non-targets.
        block = counts.at(ends)
        targets = block.misses.diff().double()
        nontargets = -block.false_alarms.diff().double()
        posteriors = targets / (targets + nontargets)
        first_scores = counts.thresholds[ends[:-1]]
        last_scores = counts.thresholds[ends[1:] - 1]
        knots = torch.stack([first_scores, last_scores], dim=1)
        # A block of one score has one knot.
        is_new = torch.ones_like(knots, dtype=torch.bool)
        is_new[:, 1] = first_scores < last_scores
        self.scores = knots[is_new].to(self.scores)
        self.posteriors = posteriors.unsqueeze(1).expand_as(knots)[is_new].to(self.scores)
        if len(posteriors) == 1:
            warn(f"All ratios are 0, because {REVERSED}.", CalibrationWarning, stacklevel=2)
        log_odds = counts.targets.double().log() - counts.nontargets.double().log()
        self.prior_log_odds = log_odds.to(self.scores)
        return self


def _resize(module: nn.Module, state_dict: dict[str, Any], prefix: str, *_: object) -> None:
    """Resize the buffers of ``module`` to the shapes in ``state_dict``, so that this state can be loaded."""
    for name in ("scores", "posteriors"):
        saved = state_dict.get(f"{prefix}{name}")
        if saved is not None:
            setattr(module, name, module.get_buffer(name).new_empty(saved.shape))
