"""Temperature scaling: one number that makes logits less or more confident."""

from typing import Self
from warnings import warn

import torch
from torch import Tensor, nn

from mpcs_torch.calibration.calibration_warning import CalibrationWarning
from mpcs_torch.calibration.newton import STEPS, Expansion, minimize
from mpcs_torch.calibration.scores import LabelledLogits, labelled_logits, upcast_half


class TemperatureScaling(nn.Module):
    r"""Divide logits by the temperature that minimises the cross entropy on held-out samples.

    .. math:: \min_{T > 0} -\frac{1}{N} \sum_n \log \mathrm{softmax}(z_n / T)_{y_n}

    A temperature above 1 corrects overconfidence. The most probable class stays the same. Before `fit` the temperature
    is 1, which changes nothing. Fit on samples that the classifier was not trained on.

    For probabilities, use their logarithms as logits.

    References:
        Guo, Pleiss, Sun, Weinberger: On calibration of modern neural networks, ICML 2017, Section 4.2.

    Example:
        >>> logits = torch.tensor([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
        >>> calibration = TemperatureScaling().fit(logits, torch.tensor([0, 0, 1, 1]))
        >>> calibration(logits).softmax(dim=1)[0]  # three of four are right
        tensor([0.7500, 0.2500])
    """

    temperature: Tensor
    """Float64 scalar, above 0."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("temperature", torch.ones((), dtype=torch.float64))

    def forward(self, preds: Tensor) -> Tensor:
        """Return calibrated logits of the shape of ``preds``, in its dtype, or in float32 for half types.

        Raises:
            ValueError: If ``preds`` is not floating point.
        """
        scores = upcast_half(preds)
        return scores / self.temperature.to(scores.dtype)

    def fit(self, preds: Tensor, target: Tensor) -> Self:
        """Set the temperature to its optimum, computed in float64.

        If there is no finite optimum above 0, the temperature becomes 1.

        Args:
            preds: ``(N, C)`` or ``(N, C, ...)`` logits, finite.
            target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``.

        Raises:
            ValueError: If a shape, a dtype or a value breaks its rule above.

        Warns:
            CalibrationWarning: If there is no finite optimum above 0, with the reason.
        """
        temperature = _fitted(labelled_logits(preds, target, preds.shape[1] if preds.ndim > 1 else 2))
        if isinstance(temperature, str):
            warn(f"The temperature is 1, because {temperature}.", CalibrationWarning, stacklevel=2)
        self.temperature.fill_(1.0 if isinstance(temperature, str) else temperature)
        return self


def _fitted(samples: LabelledLogits) -> float | str:
    """Return the optimal temperature, or the reason why there is none."""
    centred = samples.logits - samples.logits.mean(dim=1, keepdim=True)
    spread = centred.abs().mean()
    if spread == 0:
        return "the logits are the same for all classes: they carry no information"
    unit = LabelledLogits(centred / spread, samples.target)
    true = unit.of_true_class(unit.logits)
    if (true >= unit.logits.amax(dim=1)).all():
        return "every sample is classified right: the optimal temperature is 0"
    if true.mean() <= 0:
        reason = "the logits of the true classes are on average not above those of the other classes"
        return f"{reason}: the scores are reversed or carry no information, and the optimal temperature is infinite"
    inverse = minimize(lambda point: _expand(unit, point), centred.new_zeros(1))
    if inverse is None:
        return f"{STEPS} Newton steps found no finite optimum: almost all samples are classified right"
    return (spread / inverse).item()


def _expand(samples: LabelledLogits, inverse_temperature: Tensor) -> Expansion:
    """Expand the cross entropy in the inverse temperature, in which it is convex."""
    log_probs = (inverse_temperature * samples.logits).log_softmax(dim=1)
    probs, true = log_probs.exp(), samples.of_true_class(samples.logits)
    expected = (probs * samples.logits).sum(dim=1, keepdim=True)
    variance = (probs * (samples.logits - expected).square()).sum(dim=1).mean()
    slope = (expected.squeeze(1) - true).mean()
    return Expansion(-samples.of_true_class(log_probs).mean(), slope.reshape(1), variance.reshape(1, 1))
