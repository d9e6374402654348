"""Losses as modules: by the concern of errors, generalized means and soft F1."""

from math import isfinite
from typing import Any

import torch
from torch import Tensor, nn

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import require
from mpcs_torch.functional.concern.decision import without_diagonal
from mpcs_torch.functional.concern.losses import checked_concern_loss, checked_softmax_margin_loss
from mpcs_torch.functional.inputs.arrays import weights_of
from mpcs_torch.functional.inputs.checks import LossReduction, LossSettings, check_choice, check_concern, check_costs
from mpcs_torch.functional.inputs.soft_labels import flatten_soft
from mpcs_torch.functional.probability.generalized import generalized_mean_loss
from mpcs_torch.functional.soft.sums import SoftAverage, score_of, soft_sums


class ConcernLoss(nn.Module):
    """`functional.concern_loss` as a module: the differentiable limit of MPCS; lower is better.

    Args:
        concern: A `ConcernSpec`, or its ``(C, C)`` matrix of weights > 0. Default: all errors matter equally.
        concern_share: The share of the loss that penalizes wrong classes, from 0 (cross entropy) to 1; 1/2 is MPCS.
        weight: ``(C,)`` weights >= 0 of the classes, applied by the true class.
        ignore_index: The label of samples that are ignored.
        label_smoothing: The share of each label, from 0 to 1, that is spread evenly over all classes.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: From the constructor or `forward`, if an argument breaks its rule.

    Example:
        >>> import torch
        >>> from mpcs_torch import ConcernSpec
        >>> from mpcs_torch.learning import ConcernLoss
        >>> lights = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"]], factor=0.5)
        >>> logits = torch.tensor([[2.0, 1.0, 0.0], [2.0, 0.0, 1.0]])  # unsure between red and yellow; red and green
        >>> ConcernLoss(lights, reduction="none")(logits, torch.tensor([0, 0]))
        tensor([0.2820, 0.3131])
    """

    concern: Tensor | None
    weight: Tensor | None

    def __init__(
        self,
        concern: ConcernSpec | Tensor | None = None,
        *,
        concern_share: float = 0.5,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        reduction: LossReduction = "mean",
    ) -> None:
        super().__init__()
        matrix = None if concern is None else _matrix(concern)
        if matrix is not None:
            check_concern(matrix, len(matrix))
        self.register_buffer("concern", matrix, persistent=False)
        self.register_buffer("weight", weight, persistent=False)
        self.concern_share, self.ignore_index = concern_share, ignore_index
        self.label_smoothing, self.reduction = label_smoothing, reduction

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compute the loss of logits (N, C, ...) for labels (N, ...)."""
        if self.concern is not None:
            _check_classes(self.concern, logits)
        settings = LossSettings(self.weight, self.ignore_index, self.label_smoothing, self.reduction)
        return checked_concern_loss(logits, target, self.concern, self.concern_share, settings)


class SoftmaxMarginLoss(nn.Module):
    """`functional.softmax_margin_loss` as a module: cross entropy with margins by concern; lower is better.

    The true class must win by a larger margin over a class where the error matters more.

    Args:
        concern: A `ConcernSpec`, or its ``(C, C)`` matrix of weights >= 0.
        margin: The margin in nats for a concern of 1, >= 0; 0 is cross entropy.
        weight: As in `ConcernLoss`, and so are ``ignore_index``, ``label_smoothing`` and ``reduction``.

    Raises:
        ValueError: From the constructor or `forward`, if an argument breaks its rule.

    Example:
        >>> import torch
        >>> from mpcs_torch import ConcernSpec
        >>> from mpcs_torch.learning import SoftmaxMarginLoss
        >>> lights = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"]], factor=0.1)
        >>> logits = torch.tensor([[2.0, 1.0, 0.0], [2.0, 0.0, 1.0]])  # unsure between red and yellow; red and green
        >>> SoftmaxMarginLoss(lights, reduction="none")(logits, torch.tensor([0, 0]))
        tensor([0.5735, 0.7653])
    """

    costs: Tensor
    weight: Tensor | None

    def __init__(
        self,
        concern: ConcernSpec | Tensor,
        *,
        margin: float = 1.0,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        reduction: LossReduction = "mean",
    ) -> None:
        super().__init__()
        matrix = _matrix(concern)
        check_costs(matrix, len(matrix))
        self.register_buffer("costs", without_diagonal(matrix), persistent=False)
        self.register_buffer("weight", weight, persistent=False)
        self.margin, self.ignore_index = margin, ignore_index
        self.label_smoothing, self.reduction = label_smoothing, reduction

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compute the loss of logits (N, C, ...) for labels (N, ...), or for shares of classes (N, C, ...)."""
        _check_classes(self.costs, logits)
        settings = LossSettings(self.weight, self.ignore_index, self.label_smoothing, self.reduction)
        return checked_softmax_margin_loss(logits, target, self.costs, self.margin, settings)


class MarginRamp:
    """Raise the margin of a `SoftmaxMarginLoss` from 0 to its full value while training.

    Between two shares of the steps it rises linearly. A full margin from the first step costs more accuracy
    (``mpcs benchmark``).

    Args:
        loss: Its margin is the full one.
        steps: The number of calls of `step` in the whole training: epochs or optimizer steps.
        begin: The share of the steps after which the margin starts to rise.
        end: The share of the steps after which it is full.

    Raises:
        ValueError: If an argument breaks its rule.

    Example:
        >>> import torch
        >>> from mpcs_torch.learning import MarginRamp, SoftmaxMarginLoss
        >>> loss = SoftmaxMarginLoss(torch.ones(3, 3), margin=2.0)
        >>> ramp, margins = MarginRamp(loss, steps=10), []
        >>> for _ in range(10):
        ...     margins.append(loss.margin)  # train an epoch with the loss
        ...     ramp.step()
        >>> [round(margin, 1) for margin in margins]
        [0.0, 0.0, 0.4, 0.8, 1.2, 1.6, 2.0, 2.0, 2.0, 2.0]
    """

    def __init__(self, loss: SoftmaxMarginLoss, steps: int, *, begin: float = 0.1, end: float = 0.6) -> None:
        require(steps >= 1, "steps must be at least 1", steps)
        require(0 <= begin < end <= 1, "begin and end must be shares, 0 <= begin < end <= 1", f"{begin} and {end}")
        self._loss, self._full, self._steps, self._begin, self._end = loss, loss.margin, steps, begin, end
        self.load_state_dict({"step": 0})

    def step(self) -> None:
        """Take a step, and set the margin."""
        self.load_state_dict({"step": self._step + 1})

    def state_dict(self) -> dict[str, int]:
        """Return the number of steps that were taken."""
        return {"step": self._step}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on after so many steps."""
        self._step = state["step"]
        share = (self._step / self._steps - self._begin) / (self._end - self._begin)
        self._loss.margin = self._full * min(max(share, 0.0), 1.0)


def _matrix(concern: ConcernSpec | Tensor) -> Tensor:
    return weights_of(concern).float()  # some devices do not support float64


def _check_classes(concern: Tensor, logits: Tensor) -> None:
    if len(concern) != logits.shape[1]:
        raise ValueError(f"concern must cover {logits.shape[1]} classes, but covers {len(concern)}.")


class ConcernLossScale:
    """Multiply the loss of each batch by a score, as the paper did with the MPCS of the training set.

    Use it to repeat the paper's runs. It is not recommended: over 20 seeds (`mpcs reproduce figure6`) training with it
    makes 1.7 % more dangerous errors than training without. `SoftmaxMarginLoss` helps (`mpcs benchmark`).

    Example:
        >>> import torch
        >>> from mpcs_torch.learning import ConcernLossScale
        >>> scale = ConcernLossScale()
        >>> scale.update(torch.tensor(0.5))  # the score of an evaluation
        >>> scale(torch.tensor(2.0))
        tensor(1.)
    """

    def __init__(self) -> None:
        self.score = 1.0

    def update(self, score: float | Tensor) -> None:
        """Set the score, a finite number >= 0; before the first update it is 1.

        Raises:
            ValueError: If the score is negative or not finite; the old score stays.
        """
        value = float(score)
        require(0 <= value < torch.inf, "score must be finite and >= 0", value)
        self.score = value

    def __call__(self, loss: Tensor) -> Tensor:
        """Return the loss times the latest score."""
        return loss * self.score

    def state_dict(self) -> dict[str, Any]:
        """Return the latest score."""
        return {"score": self.score}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a saved score."""
        self.update(state["score"])


class GeneralizedMeanLoss(nn.Module):
    """`functional.generalized_mean_loss` as a module: -log of the mean of a batch; in nats, lower is better.

    Args:
        power: -2/3 is the loss of robustness, 0 cross entropy, and 1 the loss of decisiveness.
        ignore_index: The label of samples that are ignored.

    Raises:
        ValueError: From the constructor or `forward`, if an argument breaks its rule.

    Example:
        >>> import torch
        >>> from mpcs_torch.learning import GeneralizedMeanLoss
        >>> logits, target = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, 3.0]]), torch.tensor([0, 0, 1])
        >>> [round(GeneralizedMeanLoss(power)(logits, target).item(), 4) for power in (-2 / 3, 0, 1)]
        [0.6153, 0.4963, 0.3556]
    """

    def __init__(self, power: float, *, ignore_index: int = -100) -> None:
        super().__init__()
        require(isfinite(power), "power must be finite", power)
        self.power, self.ignore_index = power, ignore_index

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compute the loss of logits (N, C, ...) for labels (N, ...)."""
        return generalized_mean_loss(logits, target, power=self.power, ignore_index=self.ignore_index)


class SoftF1Loss(nn.Module):
    """Compute 1 minus `functional.soft_f1` of a batch, for soft labels; in [0, 1], lower is better.

    F1 is a ratio of sums over the batch. ``"macro"`` is noisy on small batches, because some classes may be missing.

    Args:
        average: ``"micro"`` over all elements, ``"macro"`` over classes, or ``"weighted"`` by the sum of labels.

    Raises:
        ValueError: From the constructor or `forward`, if a setting, a shape or a dtype breaks its rule. Values outside
            [0, 1] raise no error; they are clamped.

    Example:
        >>> import torch
        >>> from mpcs_torch.learning import SoftF1Loss
        >>> logits = torch.tensor([[2.0, -1.0], [0.5, 0.0]])
        >>> SoftF1Loss()(logits.softmax(dim=1), torch.tensor([[1.0, 0.0], [0.6, 0.4]]))
        tensor(0.0349)
    """

    def __init__(self, average: SoftAverage = "micro") -> None:
        super().__init__()
        check_choice("average", average, SoftAverage)
        if average == "none":
            raise ValueError("average must be 'micro', 'macro' or 'weighted', because a loss is a scalar.")
        self.average: SoftAverage = average

    def forward(self, preds: Tensor, target: Tensor, ignore: Tensor | None = None) -> Tensor:
        """The loss of probabilities (N,), (N, C) or (N, C, ...) for labels of that shape, a scalar."""
        samples = flatten_soft(preds, target, num_classes=None, sample_weight=None, ignore=ignore)
        sums = soft_sums(samples, samples.predicted.dtype)
        return 1 - score_of(sums, beta=1.0, average=self.average, zero_division=0.0)
