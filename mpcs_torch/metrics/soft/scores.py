"""Soft precision, recall, F and divergence, and HardF1: the Metrics of the functions of the same names."""

from dataclasses import replace
from typing import Any

from torch import Tensor

from mpcs_torch.functional.inputs.arrays import detached
from mpcs_torch.functional.inputs.checks import check_beta
from mpcs_torch.functional.soft import scores as measures
from mpcs_torch.functional.soft.scores import SoftAverage, TNorm
from mpcs_torch.metrics.measure_metric import MeasureMetric


class SoftMetric(MeasureMetric):
    """The base of metrics whose labels are degrees of truth, from 0 to 1."""

    def update(
        self,
        preds: Tensor,
        target: Tensor,
        sample_weight: Tensor | None = None,
        ignore: Tensor | None = None,
    ) -> None:
        """Add a batch: preds, target and ignore (N,), (N, C) or (N, C, ...), sample_weight (N,) or (N, ...)."""
        self.add_rows(preds, detached(target, "target"), sample_weight, ignore)


class SoftScore(SoftMetric):
    """The base of F scores of degrees of truth."""

    measure: measures.SoftScore

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # may be a value for each class
        from mpcs_torch.plots.bars import class_bars

        average: SoftAverage = (
            "macro" if self.measure.average == "none" else self.measure.average
        )
        sums = self.named_sums()
        mean = replace(self.measure, average=average).value(sums)
        scores = replace(self.measure, average="none").value(sums)
        return class_bars(
            scores.tolist(),
            mean.item(),
            title,
            ylabel="value",
            mean_label=f"{average} average",
            on=on,
        )


class SoftFBeta(SoftScore):
    """Compute F-beta from soft precision and recall, for labels that are degrees of truth; in [0, 1], higher is better.

    Arguments are those of `mpcs_torch.functional.soft_fbeta`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import SoftFBeta
        >>> SoftFBeta(num_classes=1, beta=2.0)(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.8871, dtype=torch.float64)
    """

    of = measures.SoftFBeta

    def __init__(
        self,
        num_classes: int,
        *,
        beta: float,
        average: SoftAverage = "micro",
        zero_division: float = 0.0,
        t_norm: TNorm = "minimum",
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        check_beta(beta)
        super().__init__(
            measures.SoftFBeta(num_classes, beta, average, zero_division, t_norm),
            validate_args,
            kwargs,
        )


class _FixedBeta(SoftScore):
    of = measures.SoftFBeta
    beta: float

    def __init__(
        self,
        num_classes: int,
        *,
        average: SoftAverage = "micro",
        zero_division: float = 0.0,
        t_norm: TNorm = "minimum",
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        measure = measures.SoftFBeta(num_classes, self.beta, average, zero_division, t_norm)
        super().__init__(measure, validate_args, kwargs)


class SoftF1(_FixedBeta):
    """Compute the harmonic mean of soft precision and recall; in [0, 1], higher is better.

    Arguments and errors are those of `SoftFBeta` without ``beta``.

    Example:
        >>> import torch
        >>> from mpcs_torch import SoftF1
        >>> agreement = torch.tensor([[1.0, 0.0], [0.6, 0.4]])  # the share of annotators who chose each class
        >>> SoftF1(num_classes=2)(torch.tensor([[0.9, 0.1], [0.7, 0.3]]), agreement)
        tensor(0.9000, dtype=torch.float64)
    """

    beta = 1.0


class SoftPrecision(_FixedBeta):
    """Compute the soft precision, the true share of the predicted degrees; in [0, 1], higher is better.

    Arguments and errors are those of `SoftFBeta` without ``beta``.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import SoftPrecision
        >>> SoftPrecision(num_classes=1)(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.7857, dtype=torch.float64)
    """

    beta = 0.0


class SoftRecall(_FixedBeta):
    """Compute the soft recall, the predicted share of the true degrees; in [0, 1], higher is better.

    Arguments and errors are those of `SoftFBeta` without ``beta``.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import SoftRecall
        >>> SoftRecall(num_classes=1)(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.9167, dtype=torch.float64)
    """

    beta = float("inf")


class HardF1(SoftScore):
    """Compute the F1 of predictions above a threshold against labels above 0.5; in [0, 1], higher is better.

    Arguments are those of `mpcs_torch.functional.hard_f1`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import HardF1
        >>> HardF1(num_classes=1)(torch.tensor([0.9, 0.6, 0.1]), torch.tensor([1.0, 0.2, 0.0]))
        tensor(0.6667, dtype=torch.float64)
    """

    of = measures.HardF1

    def __init__(
        self,
        num_classes: int,
        *,
        threshold: float | Tensor = 0.5,
        average: SoftAverage = "micro",
        zero_division: float = 0.0,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        measure = measures.HardF1(num_classes, 1.0, average, zero_division, threshold)
        super().__init__(measure, validate_args, kwargs)


class SoftKLDivergence(SoftMetric):
    """Compute the mean binary Kullback-Leibler divergence of predictions from soft labels; in nats, lower is better.

    Arguments are those of `mpcs_torch.functional.soft_kl_divergence`; for ``validate_args`` and errors see `Accuracy`.
    The mean is over the elements of all classes together.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import SoftKLDivergence
        >>> SoftKLDivergence()(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.1491, dtype=torch.float64)
    """

    of = measures.SoftKLDivergence

    def __init__(
        self, *, epsilon: float = 0.0, validate_args: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(measures.SoftKLDivergence(epsilon), validate_args, kwargs)
