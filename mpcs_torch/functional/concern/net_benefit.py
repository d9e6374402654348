"""The net benefit of acting on a class or group of classes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import torch
from torch import Tensor

from mpcs_torch.errors import require
from mpcs_torch.functional.inputs.checks import widest_float
from mpcs_torch.functional.inputs.labels import WeightedSum
from mpcs_torch.functional.inputs.probabilities import Samples
from mpcs_torch.functional.measure import ProbabilityMeasure, Ratios


def net_benefit(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    classes: Sequence[int] = (1,),
    threshold: float = 0.5,
    from_logits: bool = True,
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the net benefit of acting on samples that probably are of some classes; higher is better, at most 1.

    Act on a sample (treat, alarm, refer) if the probability of ``classes`` is at least the threshold t. Then, of N
    samples, TP are acted on rightly and FP needlessly:

    .. math:: \frac{TP}{N} - \frac{t}{1 - t} \frac{FP}{N}

    The unit is a sample of ``classes`` that is found. The net benefit of acting on none is 0. A threshold of 0.1 states
    that finding one such sample is worth 9 needless actions.

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` floating point logits, or probabilities with ``from_logits=False``.
        target: ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        classes: The indices of the classes to act on.
        threshold: t, above 0 and below 1. If missing a sample costs m, and acting on one needlessly costs f, the
            threshold of least expected cost is f / (m + f).
        from_logits: Whether ``preds`` are logits.
        ignore_index: Label of samples to leave out.

    Returns:
        A float64 scalar (float32 on MPS); NaN without samples.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Vickers, Elkin: Decision Curve Analysis: A Novel Method for Evaluating Prediction Models, Medical Decision
        Making 26, 2006.

    Example:
        >>> probs = torch.tensor([[0.95, 0.05], [0.7, 0.3], [0.2, 0.8], [0.85, 0.15]])
        >>> target = torch.tensor([0, 0, 1, 1])
        >>> net_benefit(probs, target, num_classes=2, threshold=0.2, from_logits=False)  # finds one, one needlessly
        tensor(0.1875, dtype=torch.float64)
    """
    measure = NetBenefit(num_classes, from_logits, ignore_index, classes, threshold)
    return measure(preds, target, sample_weight)


@dataclass(eq=False)
class NetBenefit(ProbabilityMeasure):
    """The measure of `net_benefit`."""

    classes: Sequence[int] = (1,)
    threshold: float = 0.5

    sums_settings = ("num_classes", "from_logits", "ignore_index", "classes", "threshold")
    direction = "max"
    limits: ClassVar[tuple[float | None, float | None]] = (None, 1.0)
    interval_rule = "bounded"

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        labels = set(self.classes) if isinstance(self.classes, Iterable) else set()
        are_some = labels and labels < set(range(self.num_classes))
        require(
            are_some, "some_classes", "classes", self.classes, last=self.num_classes - 1
        )
        is_number = isinstance(self.threshold, Real)
        require(
            is_number and 0 < self.threshold < 1,
            "open_between",
            "threshold",
            self.threshold,
            minimum=0,
            maximum=1,
        )
        self.classes = tuple(sorted(labels))

    @property
    def odds(self) -> float:
        """The cost of a needless action, in units of a sample that is found: t / (1 - t)."""
        return self.threshold / (1 - self.threshold)

    def term(self, samples: Samples) -> Tensor:
        """Return what each row adds: 1 if it is acted on rightly, minus the odds if needlessly, else 0."""
        probs = samples.probs()
        of_group = probs[:, list(self.classes)].sum(dim=1, dtype=widest_float(probs.device))
        is_true = torch.isin(
            samples.labels.target, torch.tensor(self.classes, device=probs.device)
        )
        # Rounded to float32, a probability equals a threshold of the same decimals.
        acts = of_group.float() >= self.threshold
        return torch.full_like(of_group, -self.odds).masked_fill(is_true, 1.0) * acts

    def row_ratios(self, whole: WeightedSum) -> Ratios:  # noqa: ARG002  # the same for any samples
        """Return what a row adds at least and at most."""
        return [(-self.odds, 1), (1.0, 1)]
