"""Logistic calibration: an affine map from detection scores to log-likelihood ratios."""

from math import log
from typing import Self
from warnings import warn

import torch
from torch import Tensor, nn

from mpcs_torch.calibration.calibration_warning import CalibrationWarning
from mpcs_torch.calibration.newton import STEPS, Expansion, minimize
from mpcs_torch.calibration.scores import LabelledTrials, labelled_trials, upcast_half
from mpcs_torch.functional.detection.operating_point import OperatingPoint, check_point


class LogisticCalibration(nn.Module):
    r"""Map detection scores to natural-log likelihood ratios by prior-weighted logistic regression.

    The ratio is :math:`a s + b`, with the scale a and the bias b that minimise, with p for ``p_target``,

    .. math:: \frac{p}{T} \sum_{targets} \log(1 + e^{-(a s + b + \mathrm{logit}\,p)}) +
        \frac{1 - p}{N} \sum_{nontargets} \log(1 + e^{a s + b + \mathrm{logit}\,p})

    With p = 0.5 this is `cllr` times the natural logarithm of 2. The numbers of targets (T) and non-targets (N) do not
    matter, only ``p_target`` does. Before `fit` the scale is 1 and the bias 0, which changes nothing.

    Args:
        p_target: The prior probability of a target that the fit weighs errors by, in (0, 1). Choose it near the
            effective prior of the application.

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
    """Float64 scalar."""
    bias: Tensor
    """Float64 scalar."""

    def __init__(self, p_target: float = 0.5) -> None:
        super().__init__()
        self.p_target = check_point(OperatingPoint(p_target)).p_target
        self.register_buffer("scale", torch.ones((), dtype=torch.float64))
        self.register_buffer("bias", torch.zeros((), dtype=torch.float64))

    def forward(self, preds: Tensor) -> Tensor:
        """Return log-likelihood ratios of the shape of ``preds``, in its dtype, or in float32 for half types.

        Raises:
            ValueError: If ``preds`` is not floating point.
        """
        scores = upcast_half(preds)
        return (self.scale * scores.to(self.scale.dtype) + self.bias).to(scores.dtype)

    def fit(self, preds: Tensor, target: Tensor) -> Self:
        """Set the scale and the bias to their optimum, computed in float64.

        Args:
            preds: ``(N,)`` or ``(N, ...)`` scores, floating point and finite, higher for targets.
            target: ``(N,)`` or ``(N, ...)`` integers or bools: 1 for targets, 0 for non-targets; both must occur.

        Raises:
            ValueError: If a shape, a dtype or a value breaks its rule above, or if there is no finite optimum, because
                a threshold separates targets from non-targets.

        Warns:
            CalibrationWarning: If the scale is not above 0, because the scores are reversed or carry no information.
        """
        trials = labelled_trials(preds, target)
        scale, bias = _fitted(trials, self.p_target)
        if not scale > 0:
            reason = "targets do not score higher than non-targets: scores are reversed or carry no information"
            warn(f"The scale is {scale:g}, because {reason}.", CalibrationWarning, stacklevel=2)
        self.scale.fill_(scale)
        self.bias.fill_(bias)
        return self


def _fitted(trials: LabelledTrials, p_target: float) -> tuple[float, float]:
    """Return the optimal scale and bias."""
    scores, is_target = trials
    if scores.amin() == scores.amax():
        return 0.0, 0.0
    targets, nontargets = scores[is_target], scores[~is_target]
    if targets.amin() >= nontargets.amax() or targets.amax() <= nontargets.amin():
        problem = "a threshold separates targets from non-targets without error, so that no finite scale is optimal"
        raise ValueError(f"preds must overlap to be calibrated, but {problem}.")
    centre, spread = scores.mean(), scores.std(correction=0)
    unit = LabelledTrials((scores - centre) / spread, is_target)
    found = minimize(lambda point: _expand(unit, p_target, point), scores.new_zeros(2))
    if found is None:
        raise ValueError(f"preds must overlap to be calibrated, but {STEPS} Newton steps found no finite optimum.")
    scale = found[0] / spread
    return scale.item(), (found[1] - scale * centre).item()


def _expand(trials: LabelledTrials, p_target: float, point: Tensor) -> Expansion:
    """Expand the weighted cross entropy in the scale and the bias (2,), in which it is convex."""
    scores, is_target = trials
    target = is_target.to(scores)
    weight = torch.where(is_target, p_target / target.sum(), (1 - p_target) / (1 - target).sum())
    log_odds = point[0] * scores + point[1] + log(p_target / (1 - p_target))
    loss = torch.nn.functional.binary_cross_entropy_with_logits(log_odds, target, weight, reduction="sum")
    probs = log_odds.sigmoid()
    inputs = torch.stack([scores, torch.ones_like(scores)])
    curvature = weight * probs * (1 - probs)
    return Expansion(loss, inputs @ (weight * (probs - target)), (inputs * curvature) @ inputs.T)
