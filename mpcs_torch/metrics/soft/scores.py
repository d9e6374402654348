"""Soft precision, recall, F and divergence, and HardF1: the Metrics of the functions of the same names."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from mpcs_torch.functional.inputs.arrays import detached
from mpcs_torch.functional.inputs.checks import check_beta, check_choice, widest_float
from mpcs_torch.functional.inputs.labels import WeightedSum
from mpcs_torch.functional.inputs.soft_labels import SOFT_RULES, SoftSamples, flatten_soft
from mpcs_torch.functional.soft.scores import (
    SoftAverage,
    SoftSums,
    TNorm,
    check_epsilon,
    check_soft_settings,
    check_threshold,
    divergence_sums,
    hard_sums,
    score_from_sums,
    soft_sums,
)
from mpcs_torch.metrics.additive import AdditiveMetric


class SoftMetric(AdditiveMetric):
    """The base of metrics that are functions of sums over elements; labels are degrees of truth, from 0 to 1."""

    num_classes: int | None = None
    """The number of classes that a batch must have; None for any number."""

    def samples_from_batch(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None, ignore: Tensor | None = None
    ) -> SoftSamples:
        """Flatten the predictions, labels, weights and ignored elements of a batch."""
        preds, target = detached(preds), detached(target, "target")
        return flatten_soft(preds, target, num_classes=self.num_classes, sample_weight=sample_weight, ignore=ignore)

    def update(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None, ignore: Tensor | None = None
    ) -> None:
        """Add a batch: preds, target and ignore (N,), (N, C) or (N, C, ...), sample_weight (N,) or (N, ...)."""
        samples = self.samples_from_batch(preds, target, sample_weight, ignore)
        self.admit(samples.find_faults)
        self.add(**self.sum_samples(samples)._asdict())


class SoftScore(SoftMetric):
    """The base of F scores that are computed from sums of degrees of truth."""

    higher_is_better = True
    plot_upper_bound = 1.0

    sums_type = SoftSums
    interval_scale = "logit"

    beta: float
    """The weight of recall in F: with 0, F is the precision; with infinity, it is the recall."""

    def __init__(self, arguments: Mapping[str, Any], state_settings: Sequence[str]) -> None:
        check_soft_settings(arguments["num_classes"], arguments["average"], arguments["zero_division"])
        check_choice("t_norm", arguments.get("t_norm", "minimum"), TNorm)
        shape = (arguments["num_classes"],)
        super().__init__(arguments, value_rules=SOFT_RULES, state_settings=state_settings, shape=shape)

    def value_from_sums(self, sums: SoftSums, average: SoftAverage | None = None) -> Tensor:
        """Return the F score of ``sums``; ``average`` None stands for the setting of the metric."""
        return score_from_sums(sums, beta=self.beta, average=average or self.average, zero_division=self.zero_division)

    def averaged_classes(self, sums: SoftSums) -> Tensor | None:
        """Return the sum of labels of each class if the value is a macro average, else None."""
        return sums.actual if self.average == "macro" else None

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # may be a value for each class
        from mpcs_torch.plots.bars import class_bars

        average: SoftAverage = "macro" if self.average == "none" else self.average
        mean = self.value_from_sums(self.sums(), average).item()
        scores = self.value_from_sums(self.sums(), "none").tolist()
        return class_bars(scores, mean, title, ylabel="value", mean_label=f"{average} average", on=on)


class SoftFBeta(SoftScore):
    """Compute F-beta from soft precision and recall, for labels that are degrees of truth; in [0, 1], higher is better.

    Arguments are those of `mpcs_torch.functional.soft_fbeta`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import SoftFBeta
        >>> SoftFBeta(num_classes=1, beta=2.0)(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.8871, dtype=torch.float64)
    """

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
        super().__init__(locals(), ("num_classes", "t_norm"))

    def sum_samples(self, samples: SoftSamples) -> SoftSums:
        """Return the sums of a batch, by class."""
        return soft_sums(samples, widest_float(samples.preds.device), self.t_norm)


class _FixedBeta(SoftFBeta):
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
        SoftScore.__init__(self, locals(), ("num_classes", "t_norm"))


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

    beta = 1.0

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
        check_threshold(threshold, num_classes)
        super().__init__(locals(), ("num_classes", "threshold"))

    def sum_samples(self, samples: SoftSamples) -> SoftSums:
        """Return the sums of a batch, by class."""
        return hard_sums(samples, self.threshold)


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

    sums_type = WeightedSum
    interval_rule = "mean"
    interval_scale = "log"

    def __init__(self, *, epsilon: float = 0.0, validate_args: bool = True, **kwargs: Any) -> None:
        check_epsilon(epsilon)
        super().__init__(locals(), value_rules=SOFT_RULES)

    def sum_samples(self, samples: SoftSamples) -> WeightedSum:
        """Return the sum of divergences and the sum of weights."""
        return divergence_sums(samples, self.epsilon)
