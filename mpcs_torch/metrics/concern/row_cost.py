"""RowCost: the Metric of `functional.row_cost`."""

from typing import Any

from torch import Tensor

from mpcs_torch.functional.concern import row_cost as kernel
from mpcs_torch.functional.inputs.checks import check_num_classes
from mpcs_torch.metrics.additive import AdditiveMetric


class RowCost(AdditiveMetric):
    """Compute the mean cost of decisions with row-wise costs; lower is better.

    Arguments are those of `mpcs_torch.functional.row_cost`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import RowCost
        >>> cost = RowCost(num_classes=2)
        >>> cost(torch.tensor([0, 1]), torch.tensor([[0.0, 5.0], [300.0, 5.0]]))
        tensor(2.5000, dtype=torch.float64)
    """

    sums_type = kernel.RowCostSums
    sums_of = staticmethod(kernel.sum_row_costs)
    interval_rule = "bounded"
    plot_lower_bound = None

    def __init__(self, num_classes: int, *, regret: bool = False, validate_args: bool = True, **kwargs: Any) -> None:
        check_num_classes(num_classes)
        super().__init__(locals(), value_rules=kernel.row_cost_rules(num_classes), state_settings=("num_classes",))

    def samples_of(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> kernel.CostedDecisions:
        """Return the decisions of a batch, each with the costs of all possible decisions."""
        return kernel.flatten_costs(preds, target, num_classes=self.num_classes, sample_weight=sample_weight)

    def ratio_of(self, sums: kernel.RowCostSums, whole: kernel.RowCostSums) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """Return the sum of the costs (or regrets) of the decisions, and the sum of the weights."""
        return (sums.cost - sums.least if self.regret else sums.cost), sums.samples

    def bin_ratios(self, bins: kernel.RowCostSums, whole: kernel.RowCostSums, size: float) -> list[tuple[float, float]]:  # noqa: ARG002
        """Return pairs of a sum and the largest weight of a bin; sums are the extreme costs and the largest regret."""
        per, regret = bins.samples.max().item(), (bins.most - bins.least).max().item()
        costs = [0.0] if self.regret else [bins.least.min().item(), bins.most.max().item()]
        return [(cost, per) for cost in (*costs, regret)]

    def _references(self) -> dict[str, float]:
        return {"cheapest decisions": 0.0 if self.regret else (self.least / self.samples).item()}
