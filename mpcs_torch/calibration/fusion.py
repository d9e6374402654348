"""Logistic fusion: one log-likelihood ratio from the scores of several systems."""

from typing import Self
from warnings import warn

import torch
from torch import Tensor, nn

from mpcs_torch.calibration.calibration_warning import CalibrationWarning
from mpcs_torch.calibration.prior_weighted import fit_affine
from mpcs_torch.calibration.scores import labelled_trials, upcast_half
from mpcs_torch.functional.detection.operating_point import OperatingPoint, check_point


class LogisticFusion(nn.Module):
    r"""Map the scores of S systems for the same trials to one natural-log likelihood ratio each.

    The ratio is :math:`w_1 s_1 + \dots + w_S s_S + b`, with the weights and the bias that minimise the prior-weighted
    cross entropy of `LogisticCalibration`, which is the fusion of one system. Fit it to trials that none of the systems
    was trained on. Before `fit` the weights are 1 / S and the bias 0: the mean of the scores.

    Args:
        num_systems: S, at least 1.
        p_target: The prior probability of a target that the fit weighs errors by, in (0, 1). Choose it near the
            effective prior of the application.

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
    """``(S,)``, float64."""
    bias: Tensor
    """Float64 scalar."""

    def __init__(self, num_systems: int, p_target: float = 0.5) -> None:
        super().__init__()
        if num_systems < 1:
            raise ValueError(f"num_systems must be at least 1, but got {num_systems}.")
        self.p_target = check_point(OperatingPoint(p_target)).p_target
        self.register_buffer("weights", torch.full((num_systems,), 1 / num_systems, dtype=torch.float64))
        self.register_buffer("bias", torch.zeros((), dtype=torch.float64))

    def forward(self, preds: Tensor) -> Tensor:
        """Return log-likelihood ratios ``(N,)``, in the dtype of ``preds``, or in float32 for half types.

        Args:
            preds: ``(N, S)`` scores, floating point.

        Raises:
            ValueError: If a shape or a dtype breaks its rule above.
        """
        scores = upcast_half(self._checked(preds))
        return ((scores.to(self.weights.dtype) * self.weights).sum(dim=1) + self.bias).to(scores.dtype)

    def fit(self, preds: Tensor, target: Tensor) -> Self:
        """Set the weights and the bias to their optimum, computed in float64.

        Args:
            preds: ``(N, S)`` scores, floating point and finite, higher for targets.
            target: ``(N,)`` integers or bools: 1 for targets, 0 for non-targets; both must occur.

        Raises:
            ValueError: If a shape, a dtype or a value breaks its rule above, or if there is no finite optimum, because
                the systems together separate targets from non-targets.

        Warns:
            CalibrationWarning: If a weight is below 0: that system is heard against its own scores. This is common
                where systems are much alike, and a reason to leave one of them out.
        """
        self._checked(preds)
        systems = [labelled_trials(scores, target) for scores in preds.unbind(dim=1)]
        scores = torch.stack([system.scores for system in systems], dim=1)
        weights, bias = fit_affine(scores, systems[0].is_target, self.p_target)
        if (weights < 0).any():
            found = ", ".join(f"{weight:.3g}" for weight in weights.tolist())
            warn(f"The weights of the systems are {found}: one is below 0.", CalibrationWarning, stacklevel=2)
        self.weights.copy_(weights)
        self.bias.copy_(bias)
        return self

    def _checked(self, preds: Tensor) -> Tensor:
        if preds.ndim != 2 or preds.shape[1] != len(self.weights):
            raise ValueError(f"preds must have shape (N, {len(self.weights)}), but got {tuple(preds.shape)}.")
        return preds
