"""ExpectedConcern and RowCost: the Metrics of `functional.expected_concern` and `functional.row_cost`."""

from typing import Any

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern import expected_concern as kernel
from mpcs_torch.functional.concern.decision import prior_ratio
from mpcs_torch.functional.concern.expected_concern import DecideBy
from mpcs_torch.functional.inputs.checks import check_choice, check_num_classes
from mpcs_torch.metrics.additive import AdditiveMetric


class ExpectedConcern(AdditiveMetric):
    """Compute the mean concern of decisions relative to the best constant class; lower is better, 0 is perfect.

    Arguments are those of `mpcs_torch.functional.expected_concern`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch import ConcernSpec, ExpectedConcern
        >>> lights = ConcernSpec(["red", "yellow", "green"], weights=[[1, 1, 9], [1, 1, 1], [9, 1, 1]])
        >>> probs, target = torch.tensor([[0.5, 0.1, 0.4], [0.6, 0.3, 0.1]]), torch.tensor([2, 0])
        >>> for decision in ("most_probable", "least_concern"):
        ...     cost = ExpectedConcern(3, concern=lights, decision=decision, from_logits=False, normalize=False)
        ...     print(decision, cost(probs, target))
        most_probable tensor(4.5000, dtype=torch.float64)
        least_concern tensor(1., dtype=torch.float64)
    """

    sums_type = kernel.CostSums
    interval_rule = "bounded"
    takes_referrals = needs_referral_cost = True

    concern: Tensor
    priors: Tensor | None

    def __init__(
        self,
        num_classes: int,
        *,
        concern: ConcernSpec | Tensor | None = None,
        decision: DecideBy = "most_probable",
        from_logits: bool = True,
        training_priors: Tensor | None = None,
        priors: Tensor | None = None,
        normalize: bool = True,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        check_choice("decision", decision, DecideBy)
        concern = kernel.cost_matrix(concern, num_classes)
        ratio = prior_ratio(training_priors, priors, num_classes, needs_both=False)
        super().__init__(
            locals(),
            value_rules=kernel.cost_rules(concern, from_logits=from_logits),
            state_settings=("num_classes", "concern", "decision", "from_logits", "ratio", "ignore_index"),
            shape=(num_classes,),
        )

    def samples_from_batch(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> kernel.Decided:
        """Return the samples of a batch with their decisions, from scores (N, C, ...) or decisions (N, ...)."""
        settings = self.concern, self.decision, self.from_logits, self.ratio, self.ignore_index
        return kernel.decide(preds, target, sample_weight, *settings)

    def sum_samples(self, samples: kernel.Decided) -> kernel.CostSums:
        """Return the costs and the numbers of samples, summed by true class."""
        return kernel.sum_costs(samples, self.concern)

    def value_from_sums(self, sums: kernel.CostSums) -> Tensor:
        """Return the mean cost of decisions, relative to the best constant decision if ``normalize`` is set."""
        return kernel.mean_cost(sums, self.concern, priors=self.priors, normalize=self.normalize)

    def ratio_from_sums(self, sums: kernel.CostSums, whole: kernel.CostSums) -> tuple[Tensor, Tensor]:
        """Return the cost of the decisions, and the cost of the constant decision that is best over all samples."""
        return sums.cost.sum(-1), sums.samples @ self._baseline(whole)

    def row_ratios(self, whole: kernel.CostSums) -> list[tuple[float, float]]:
        """Return two pairs for each class: 0 and its highest cost, each with the cost of the best constant decision."""
        constant = self._baseline(whole).tolist()
        highest = self.concern.amax(1).tolist()
        return [(cost, per) for max_cost, per in zip(highest, constant, strict=True) for cost in (0.0, max_cost)]

    def _baseline(self, whole: kernel.CostSums) -> Tensor:
        """Return the cost of the best constant decision by true class, (C,); without ``normalize``, all are 1."""
        if not self.normalize:
            return torch.ones_like(whole.samples)
        costs = self.concern[:, : self.num_classes].to(whole.samples)
        return costs[:, (whole.samples @ costs).argmin()]

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # may be relative to a constant decision
        from mpcs_torch.plots.bars import class_bars

        if self.normalize:
            title += " of the best constant class"
        mean = kernel.mean_cost(self.sums(), self.concern, priors=self.priors, normalize=False).item()
        return class_bars((self.cost / self.samples).tolist(), mean, title, ylabel="mean concern", on=on)


class RowCost(AdditiveMetric):
    """Compute the mean cost of decisions with row-wise costs; lower is better.

    Arguments are those of `mpcs_torch.functional.row_cost`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import RowCost
        >>> RowCost(num_classes=2)(torch.tensor([0, 1]), torch.tensor([[0.0, 5.0], [300.0, 5.0]]))
        tensor(2.5000, dtype=torch.float64)
    """

    sums_type = kernel.RowCostSums
    sum_samples = staticmethod(kernel.sum_row_costs)
    interval_rule = "bounded"
    plot_lower_bound = None

    def __init__(self, num_classes: int, *, regret: bool = False, validate_args: bool = True, **kwargs: Any) -> None:
        check_num_classes(num_classes)
        super().__init__(locals(), value_rules=kernel.row_cost_rules(num_classes), state_settings=("num_classes",))

    def samples_from_batch(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> kernel.CostedDecisions:
        """Return the decisions of a batch, each with the costs of all possible decisions."""
        return kernel.flatten_costs(preds, target, num_classes=self.num_classes, sample_weight=sample_weight)

    def ratio_from_sums(self, sums: kernel.RowCostSums, whole: kernel.RowCostSums) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """Return the sum of the costs (or regrets) of the decisions, and the sum of the weights."""
        return (sums.cost - sums.least if self.regret else sums.cost), sums.samples

    def bin_ratios(self, bins: kernel.RowCostSums, whole: kernel.RowCostSums, size: float) -> list[tuple[float, float]]:  # noqa: ARG002
        """Return pairs of a bound of a bin's cost (lowest, highest, largest regret) and the highest weight of a bin."""
        per, regret = bins.samples.max().item(), (bins.most - bins.least).max().item()
        costs = [0.0] if self.regret else [bins.least.min().item(), bins.most.max().item()]
        return [(cost, per) for cost in (*costs, regret)]

    def _references(self) -> dict[str, float]:
        return {"cheapest decisions": 0.0 if self.regret else (self.least / self.samples).item()}
