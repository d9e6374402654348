"""Loss modules: losses weighted by the costs of errors (a concern), and generalized-mean losses."""

from math import isfinite
from typing import Any

from torch import Tensor, nn

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import InvalidValueError, require
from mpcs_torch.functional.concern.decision import without_diagonal
from mpcs_torch.functional.concern.losses import (
    check_margin,
    concern_loss,
    costs_of_errors,
    penalty_matrix,
    softmax_margin_loss,
)
from mpcs_torch.functional.inputs.arrays import concern_weights
from mpcs_torch.functional.inputs.checks import check_concern, check_costs
from mpcs_torch.functional.inputs.logits import (
    LossBatch,
    LossReduction,
    LossSettings,
    check_class_weight,
    loss_batch,
)
from mpcs_torch.functional.probability.scores import generalized_mean_loss


class _LossOfLogits(nn.CrossEntropyLoss):
    """A `torch.nn.CrossEntropyLoss` whose class weights are validated, and are not saved in checkpoints."""

    def __init__(
        self, num_classes: int | None, weight: Tensor | None, **settings: Any
    ) -> None:
        super().__init__(check_class_weight(weight, num_classes), **settings)
        self.register_buffer("weight", self.weight, persistent=False)

    def _batch(
        self,
        logits: Tensor,
        target: Tensor,
        sample_weight: Tensor | None,
        matrix: Tensor | None,
    ) -> LossBatch:
        reduction: Any = self.reduction  # a str in torch
        settings = LossSettings(
            self.weight, self.ignore_index, self.label_smoothing, reduction
        )
        batch = loss_batch(logits, target, settings, sample_weight)
        if matrix is not None and len(matrix) != batch.scores.shape[1]:
            raise InvalidValueError(
                "covers_classes", "concern", len(matrix), classes=batch.scores.shape[1]
            )
        return batch


class ConcernLoss(_LossOfLogits):
    r"""Compute cross entropy plus a concern-weighted penalty on wrong classes; in nats, lower is better, 0 is perfect.

    For one sample with true class :math:`y` and probabilities :math:`p`:

    .. math::
        L = (1 - s) \cdot (-\log p_y) + s \cdot \sum_{j \ne y} \frac{D_{yj}}{\sum_{i \ne y} D_{yi}} (-\log(1 - p_j))

    D is the matrix of ``concern``. With s = 0, the loss is cross entropy. With s = 1/2, the loss is the Meta Pattern
    Concern Score over all classes (k = C) in the limit of infinitely many probability intervals (t).

    Args:
        concern: A `ConcernSpec`, or its ``(C, C)`` matrix of weights > 0. Default: all errors have the same weight.
        concern_share: s, the share of the loss that penalizes wrong classes, from 0 to 1.
        weight: ``(C,)`` weights >= 0: the loss of a sample is multiplied by the weight of its true class.
        ignore_index: The label of ignored samples.
        label_smoothing: The share of each label, from 0 to 1, that is spread evenly over all classes.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: From the constructor or `forward`, if an argument is invalid.

    References:
        Wang, Du, Liu: Meta Pattern Concern Score, arXiv:2209.06408v3, Eq. 4 to 9, for k = C and t to infinity.

    Example:
        >>> import torch
        >>> from mpcs_torch import ConcernSpec
        >>> from mpcs_torch.learning import ConcernLoss
        >>> lights = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"]], factor=0.5)
        >>> logits = torch.tensor([[2.0, 1.0, 0.0], [2.0, 0.0, 1.0]])  # unsure between red and yellow; red and green
        >>> ConcernLoss(lights, reduction="none")(logits, torch.tensor([0, 0]))
        tensor([0.2820, 0.3131])
    """

    penalties: Tensor | None

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
        # As float32, because some devices do not support float64.
        matrix = None if concern is None else concern_weights(concern).float()
        if matrix is not None:
            check_concern(matrix, len(matrix))
            matrix = penalty_matrix(without_diagonal(matrix))
        classes = None if matrix is None else len(matrix)
        super().__init__(
            classes,
            weight,
            ignore_index=ignore_index,
            label_smoothing=label_smoothing,
            reduction=reduction,
        )
        self.register_buffer("penalties", matrix, persistent=False)
        self.concern_share = concern_share

    def forward(
        self,
        logits: Tensor,
        target: Tensor,
        sample_weight: Tensor | None = None,
        *,
        costs: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a batch: float32, or float64 for float64 logits.

        Means are weighted as in `torch.nn.functional.cross_entropy`. If all samples are ignored, the gradient is 0.

        Args:
            logits: ``(N, C)`` or ``(N, C, ...)``, or ``(C,)`` for one sample, floating point; 16-bit types are upcast.
                The logit of an impossible class may be -inf.
            target: ``(N,)``, ``(N, ...)`` or ``()`` integer class indices in ``[0, C)``, or ``ignore_index``.
                Alternatively, the shares of the classes, >= 0 (as from mixup): floating point, shaped like ``logits``.
            sample_weight: ``(N,)``, ``(N, ...)`` or ``()`` weights >= 0 of the samples. Default: 1.
            costs: ``(N, C, C, ...)`` or ``(C, C)``: costs of the samples, by true class and decision, in place of those
                of ``concern``; `mpcs_torch.functional.costs_if_wrong` makes them of amounts. D is then what a decision
                costs beyond the right one, at least 0. The penalties of a sample sum to 1, so only the ratios of its
                costs count: if some samples cost more than others, pass ``sample_weight``, too.
        """
        batch = self._batch(logits, target, sample_weight, self.penalties)
        penalties = (
            self.penalties
            if costs is None
            else penalty_matrix(costs_of_errors(batch, logits, costs))
        )
        return concern_loss(batch, penalties, self.concern_share)


class SoftmaxMarginLoss(_LossOfLogits):
    r"""Compute the cross entropy of logits to which the cost of each error is added; in nats, lower is better.

    For one sample with true class :math:`y` and logits :math:`z`:

    .. math::
        L = -z_y + \log \sum_j \exp(z_j + m D_{yj}), \quad D_{yy} = 0

    The more an error costs, the larger is the margin by which the true class must win against the wrong class. Costs
    are added in training only: at inference, probabilities are the softmax of the logits. If the target consists of
    class shares, the added costs are the mean of the rows of D, weighted by the shares.

    Args:
        concern: A `ConcernSpec`, or its ``(C, C)`` matrix of weights >= 0.
        margin: m >= 0, the margin in nats for an error of weight 1; with 0, the loss is cross entropy. A value assigned
            to the attribute ``margin`` replaces m, which is stored as ``full_margin``. During a `MarginRamp`, reading
            ``margin`` gives the reduced margin that now applies: ``full_margin`` times ``margin_share``.
        weight: As in `ConcernLoss`, like ``ignore_index``, ``label_smoothing`` and ``reduction``.

    Raises:
        ValueError: From the constructor or `forward`, if an argument is invalid.

    References:
        Gimpel, Smith: Softmax-Margin CRFs: Training Log-Linear Models with Cost Functions, NAACL HLT 2010.

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
    full_margin: float
    margin_share: float
    """The share of the full margin that applies now, from 0 to 1."""

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
        matrix = concern_weights(concern).float()  # some devices do not support float64
        check_costs(matrix, len(matrix))
        super().__init__(
            len(matrix),
            weight,
            ignore_index=ignore_index,
            label_smoothing=label_smoothing,
            reduction=reduction,
        )
        self.register_buffer("costs", without_diagonal(matrix), persistent=False)
        self.margin, self.margin_share = margin, 1.0

    @property
    def margin(self) -> float:
        """The margin in nats that now applies to an error of weight 1: ``full_margin`` times ``margin_share``."""
        return self.full_margin * self.margin_share

    @margin.setter
    def margin(self, margin: float) -> None:
        check_margin(margin)
        self.full_margin = margin

    def extra_repr(self) -> str:
        """Return the current and the full margin."""
        return f"margin={self.margin:g}, full_margin={self.full_margin:g}"

    def forward(
        self,
        logits: Tensor,
        target: Tensor,
        sample_weight: Tensor | None = None,
        *,
        costs: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a batch; arguments and result are those of `ConcernLoss.forward`.

        With ``costs``, each sample and class has a margin of its own: m times the cost. So divide amounts of money by a
        typical amount; a margin of 1 to 4 nats is then usual for it.
        """
        batch = self._batch(logits, target, sample_weight, self.costs)
        costs = self.costs if costs is None else costs_of_errors(batch, logits, costs)
        return softmax_margin_loss(batch, costs, self.margin)


class MarginRamp:
    """Raise the margin of a `SoftmaxMarginLoss` linearly from 0 to its full value during training.

    The ``full_margin`` of the loss does not change, so a new ramp on the same loss starts from 0 again.

    Args:
        loss: The loss whose ``margin_share`` the ramp sets.
        steps: The total number of calls of `step`: epochs or optimizer steps.
        begin: The share of the steps after which the margin starts to rise.
        end: The share of the steps after which the margin reaches its full value.

    Raises:
        ValueError: If an argument is invalid.

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

    def __init__(
        self, loss: SoftmaxMarginLoss, steps: int, *, begin: float = 0.1, end: float = 0.6
    ) -> None:
        require(steps >= 1, "at_least", "steps", steps, minimum=1)
        require(0 <= begin < end <= 1, "shares_in_order", "begin and end", [begin, end])
        self._loss = loss
        self._steps = steps
        self._begin = begin
        self._end = end
        self.load_state_dict({"step": 0})

    def step(self) -> None:
        """Count one more step, and set the margin of the loss."""
        self.load_state_dict({"step": self._step + 1})

    def state_dict(self) -> dict[str, int]:
        """Return the number of steps so far."""
        return {"step": self._step}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Resume after the saved number of steps."""
        self._step = state["step"]
        share = (self._step / self._steps - self._begin) / (self._end - self._begin)
        self._loss.margin_share = min(max(share, 0.0), 1.0)


class GeneralizedMeanLoss(_LossOfLogits):
    r"""Compute -log of the generalized mean of the probability of the true class; in nats, lower is better.

    .. math:: L = -\frac{1}{r} \log \frac{\sum_n w_n p_{n y_n}^r}{\sum_n w_n}

    The weight :math:`w_n` of a sample is its sample weight times the class weight of its true class :math:`y_n`. If the
    target consists of class shares, :math:`p_{n y_n}` is a geometric mean of the class probabilities of the sample,
    weighted by share times class weight. :math:`w_n` is then the sample weight times the sum of these weights. As in
    `torch.nn.functional.cross_entropy`, L is then multiplied by the mean of these sums.

    The gradient is that of cross entropy with sample weights proportional to :math:`p^r`, scaled to a mean of 1. So
    powers below 0 focus on hard samples; powers above 0 reduce the weight of hard ones, which helps with label noise.
    Powers far from 0 give noisy losses on small batches, because the mean is over the batch.

    Args:
        power: r: -2/3 for robustness, 0 for cross entropy, 1 for decisiveness. Probabilities near 0 are not clamped.
        weight: As in `ConcernLoss`, like ``ignore_index``.

    Raises:
        ValueError: From the constructor or `forward`, if an argument is invalid.

    References:
        George, Barrera, Nelson, arXiv:2006.00058, Eq. 2; Section 6 proposes such losses without an equation.

    Example:
        >>> import torch
        >>> from mpcs_torch.learning import GeneralizedMeanLoss
        >>> logits, target = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, 3.0]]), torch.tensor([0, 0, 1])
        >>> [round(GeneralizedMeanLoss(power)(logits, target).item(), 4) for power in (-2 / 3, 0, 1)]
        [0.6153, 0.4963, 0.3556]
    """

    def __init__(
        self, power: float, *, weight: Tensor | None = None, ignore_index: int = -100
    ) -> None:
        super().__init__(None, weight, ignore_index=ignore_index)
        require(isfinite(power), "finite", "power", power)
        self.power = power

    def forward(
        self, logits: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return the loss of a batch; arguments and result are those of `ConcernLoss.forward`."""
        return generalized_mean_loss(
            self._batch(logits, target, sample_weight, None), self.power
        )
