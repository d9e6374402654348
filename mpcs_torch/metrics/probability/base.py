"""The shell that the metrics of sums over samples with a probability for each class share."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from mpcs_torch.functional.inputs.arrays import detached
from mpcs_torch.functional.inputs.checks import check_num_classes
from mpcs_torch.functional.inputs.probabilities import Samples, flatten_samples, sample_rules
from mpcs_torch.metrics.additive import AdditiveMetric


class ProbabilityMetric(AdditiveMetric):
    """A metric of sums over samples with a probability for each class."""

    def __init__(self, arguments: Mapping[str, Any], state_settings: Sequence[str] | None = None) -> None:
        """Take the ``locals()`` of a constructor, with ``num_classes`` and the ``scale`` of the scores."""
        num_classes = arguments["num_classes"]
        check_num_classes(num_classes)
        rules = sample_rules(num_classes, scale=arguments["scale"])
        super().__init__(arguments, value_rules=rules, state_settings=state_settings)

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
