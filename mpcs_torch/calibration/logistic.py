"""Logistic calibration: an affine map from detection scores to log-likelihood ratios."""

from typing import Self
from warnings import warn

import torch
from torch import Tensor, nn

from mpcs_torch.calibration.calibration_warning import CalibrationWarning
from mpcs_torch.calibration.prior_weighted import fit_affine
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
    if scores.amin() < scores.amax():  # else the scale is 0
        targets, nontargets = scores[is_target], scores[~is_target]
        if targets.amin() >= nontargets.amax() or targets.amax() <= nontargets.amin():
            problem = "a threshold separates targets from non-targets without error, so that no finite scale is optimal"
            raise ValueError(f"preds must overlap to be calibrated, but {problem}.")
    weights, bias = fit_affine(scores.unsqueeze(1), is_target, p_target)
    return weights.item(), bias.item()
