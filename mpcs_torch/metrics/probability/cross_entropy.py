"""CrossEntropy: the Metric of `functional.cross_entropy`."""

from math import log
from typing import Any

from torch import Tensor

from mpcs_torch.functional.inputs.arrays import detached
from mpcs_torch.functional.inputs.checks import check_num_classes
from mpcs_torch.functional.inputs.probabilities import Samples, flatten_samples, sample_rules
from mpcs_torch.functional.probability.cross_entropy import EntropySums, entropy_scale, entropy_sums
from mpcs_torch.metrics.additive import AdditiveMetric


class CrossEntropy(AdditiveMetric):
    """Compute the mean cross entropy of probabilities; in nats, lower is better, 0 is perfect.

    The equation, shapes and rules are those of `mpcs_torch.functional.cross_entropy`.

    Args:
        num_classes: C, at least 2.
        from_logits: Whether ``preds`` are logits rather than probabilities. Never guessed.
        normalized: Whether the logits are log-probabilities already, which saves a `log_softmax`.
        ignore_index: Label of samples to leave out.
        validate_args: Whether to check the values of each batch. Without, bad values give a wrong result silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule, and from `compute` if no
            batch was seen. Away from the CPU, `compute` reports bad values.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import CrossEntropy
        >>> entropy = CrossEntropy(num_classes=2, from_logits=False)
        >>> entropy(torch.tensor([[0.5, 0.5], [0.2, 0.8]]), torch.tensor([0, 1]))
        tensor(0.4581, dtype=torch.float64)
    """

    sums_type = EntropySums
    interval_rule = "mean"
    interval_scale = "log"

    entropy: Tensor
    """Scalar: -log of the probabilities of true classes times the weights of the samples, summed."""
    samples: Tensor
    """Scalar: the weights of the samples, summed."""

    def __init__(
        self,
        num_classes: int,
        *,
        from_logits: bool = True,
        normalized: bool = False,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        check_num_classes(num_classes)
        scale = entropy_scale(from_logits=from_logits, normalized=normalized)
        super().__init__(locals(), value_rules=sample_rules(num_classes, scale=scale))

    def samples_of(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Samples:
        """Return a batch as flat samples."""
        return flatten_samples(
            detached(preds),
            target,
            num_classes=self.num_classes,
            scale=self.scale,
            ignore_index=self.ignore_index,
            sample_weight=sample_weight,
        )

    def sums_of(self, samples: Samples) -> EntropySums:
        """Return the sums of samples."""
        return entropy_sums(samples)

    def value_of(self, sums: EntropySums) -> Tensor:
        """Return the mean over samples, NaN without samples."""
        return sums.entropy / sums.samples

    def _references(self) -> dict[str, float]:
        return {**super()._references(), "uniform guess": log(self.num_classes)}
