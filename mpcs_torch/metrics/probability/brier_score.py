"""BrierScore: the Metric of `functional.brier_score`."""

from typing import Any

from torch import Tensor

from mpcs_torch.functional.inputs.arrays import detached
from mpcs_torch.functional.inputs.checks import check_choice, check_num_classes
from mpcs_torch.functional.inputs.probabilities import flatten_samples, sample_rules, scale_of
from mpcs_torch.functional.probability.brier_score import BrierSums, OverClasses, brier_of, brier_sums
from mpcs_torch.metrics.base import SumMetric


class BrierScore(SumMetric):
    """Compute the Brier score of probabilities; lower is better, 0 is perfect.

    The equation, shapes and rules are those of `mpcs_torch.functional.brier_score`.

    Args:
        num_classes: C, at least 2.
        over_classes: ``"sum"`` over the classes, or their ``"mean"``, which divides it by C: the mean squared error
            that the MPCS paper reports.
        from_logits: Whether ``preds`` are logits rather than probabilities. Never guessed.
        ignore_index: Label of samples to leave out.
        validate_args: Whether to check the values of each batch. Without, bad values give a wrong result silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule, and from `compute` if no
            batch was seen. Away from the CPU, `compute` reports bad values.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import BrierScore
        >>> score = BrierScore(num_classes=2, from_logits=False)
        >>> score(torch.tensor([[0.75, 0.25], [0.5, 0.5]]), torch.tensor([0, 1]))
        tensor(0.3125, dtype=torch.float64)
    """

    squared_error: Tensor
    """Scalar: the squared differences of all classes times the weights of the samples, summed."""
    samples: Tensor
    """Scalar: the weights of the samples, summed."""

    def __init__(
        self,
        num_classes: int,
        *,
        over_classes: OverClasses = "sum",
        from_logits: bool = True,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        check_num_classes(num_classes)
        check_choice("over_classes", over_classes, OverClasses)
        super().__init__(
            locals(),
            value_rules=sample_rules(num_classes, scale=scale_of(from_logits)),
            state_settings=("num_classes", "from_logits", "ignore_index"),
        )
        self.add_sum("squared_error")
        self.add_sum("samples")

    def update(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> None:
        """Add a batch: preds (N, C) or (N, C, ...), target and sample_weight (N,) or (N, ...)."""
        samples = flatten_samples(
            detached(preds),
            target,
            num_classes=self.num_classes,
            scale=scale_of(self.from_logits),
            ignore_index=self.ignore_index,
            sample_weight=sample_weight,
        )
        self.admit(samples.find_faults)
        self.add(**brier_sums(samples)._asdict())

    def compute(self) -> Tensor:
        """Return the mean over all samples: a float64 scalar, NaN without samples."""
        self.check_computable()
        return brier_of(BrierSums(self.squared_error, self.samples), self.num_classes, self.over_classes)

    def _references(self) -> dict[str, float]:
        of_sum = 1 - 1 / self.num_classes
        guess = of_sum if self.over_classes == "sum" else of_sum / self.num_classes
        return {**super()._references(), "uniform guess": guess}
