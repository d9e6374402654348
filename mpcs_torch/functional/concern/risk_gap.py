"""The gap between measured and estimated dangerous errors or costs: an alarm that probabilities are not calibrated."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from torch import Tensor

from mpcs_torch.functional.concern.dangerous import dangerous_pair_mask
from mpcs_torch.functional.concern.expected_concern import cost_matrix
from mpcs_torch.functional.inputs.arrays import ConcernLike
from mpcs_torch.functional.inputs.checks import check_choice
from mpcs_torch.functional.inputs.decisions import highest_class
from mpcs_torch.functional.inputs.probabilities import Samples
from mpcs_torch.functional.measure import ProbabilityMeasure, Ratios

Loss = Literal["dangerous", "cost"]


def risk_gap(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    concern: Tensor | ConcernLike | None = None,
    loss: Loss = "dangerous",
    from_logits: bool = True,
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the mean loss of decisions minus its estimate by the probabilities; 0 is best, above 0 is too hopeful.

    .. math:: \frac{1}{N} \sum_n \left( D_{y_n \hat{y}_n} - \sum_c p_{nc} D_{c \hat{y}_n} \right)

    The decision :math:`\hat{y}_n` is the most probable class. D is 1 for a dangerous error, else 0; or the cost of each
    error. The second sum needs no label: its mean estimates the rate of dangerous errors, or the mean cost, before
    labels come. This is right on average **only while probabilities are calibrated**. A gap whose interval does not
    contain 0 shows that they are not. A gap of 0 does not show that they are: errors in both directions cancel.

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` floating point logits, or probabilities with ``from_logits=False``.
        target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N,)`` or ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        concern: A `ConcernSpec`; or ``(C, C)``, as in `dangerous_errors` or, with ``loss="cost"``, `expected_concern`.
        loss: ``"dangerous"`` for dangerous errors, or ``"cost"``.
        from_logits: Whether ``preds`` are logits rather than probabilities; never guessed from the values.
        ignore_index: Label of samples to leave out.

    Returns:
        A float64 scalar (float32 on MPS), NaN without samples.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Guo, Pleiss, Sun, Weinberger: On Calibration of Modern Neural Networks, ICML 2017, Section 2, where D is 1 for
        every error. Duda, Hart, Stork: Pattern Classification, 2nd ed., Section 2.2 (conditional risk).

    Example:
        >>> import torch
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2]])
        >>> risk_gap(probs, torch.tensor([0, 1]), num_classes=2, from_logits=False)  # estimated: 0.15
        tensor(0.3500, dtype=torch.float64)
    """
    return RiskGap(num_classes, from_logits, ignore_index, concern, loss)(
        preds, target, sample_weight
    )


@dataclass(eq=False)
class RiskGap(ProbabilityMeasure):
    """The measure of `risk_gap`."""

    concern: Tensor | ConcernLike | None = None
    loss: Loss = "dangerous"
    losses: Tensor = field(init=False, repr=False)
    """(C, C): the loss of each decision (column) for each true class (row)."""

    sums_settings: ClassVar[tuple[str, ...]] = (
        "num_classes",
        "from_logits",
        "ignore_index",
        "losses",
    )
    direction = None
    limits = (None, None)
    interval_rule = "bounded"

    def __post_init__(self) -> None:
        """Check the settings, and compute the losses."""
        super().__post_init__()
        check_choice("loss", self.loss, Loss)
        if self.loss == "cost":
            self.losses = cost_matrix(self.concern, self.num_classes)[:, : self.num_classes]
        else:
            self.losses = dangerous_pair_mask(self.concern, self.num_classes).double()

    def term(self, samples: Samples) -> Tensor:
        """Return the loss of the decision minus its expectation."""
        of_decision = self.losses.T[highest_class(samples.scores)[1]]
        estimated = (samples.probs().to(of_decision) * of_decision).sum(dim=1)
        return samples.true_class_values(of_decision) - estimated

    def row_ratios(self, whole: object) -> Ratios:  # noqa: ARG002
        """Return the lowest and the highest gap of a row: no loss instead of the highest, and the reverse."""
        highest = self.losses.max().item()
        return [(-highest, 1), (highest, 1)]
