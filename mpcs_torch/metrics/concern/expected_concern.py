"""ExpectedConcern, MeanSeverity and RowCost: the Metrics of the functions of the same names."""

from typing import Any

from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern import expected_concern as measures
from mpcs_torch.functional.concern.expected_concern import DecideBy
from mpcs_torch.metrics.measure_metric import MeasureMetric


class ExpectedConcern(MeasureMetric):
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

    of = measures.ExpectedConcern
    measure: measures.ExpectedConcern

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
        measure = measures.ExpectedConcern(
            num_classes,
            concern,
            decision,
            from_logits,
            training_priors,
            priors,
            normalize,
            ignore_index,
        )
        super().__init__(measure, validate_args, kwargs)

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # may be relative to a constant decision
        from mpcs_torch.plots.bars import class_bars

        if self.normalize:
            title += " of the best constant class"
        sums = self.named_sums()
        mean = self.measure.mean_cost(sums, normalize=False).item()
        return class_bars(
            (sums.cost / sums.samples).tolist(), mean, title, ylabel="mean concern", on=on
        )


class MeanSeverity(ExpectedConcern):
    """Compute the mean concern (cost) of wrong decisions; lower is better.

    Arguments are those of `mpcs_torch.functional.mean_severity`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.concern import spec_from_heights
        >>> from mpcs_torch.metrics import MeanSeverity
        >>> animals = spec_from_heights({"pet": ["cat", "dog"], "farm": ["cow"]})
        >>> MeanSeverity(3, concern=animals)(torch.tensor([0, 1, 0]), torch.tensor([0, 0, 2]))
        tensor(0.7500, dtype=torch.float64)
    """

    of = measures.MeanSeverity

    def __init__(
        self,
        num_classes: int,
        *,
        concern: ConcernSpec | Tensor | None = None,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        measure = self.of(num_classes, concern, ignore_index=ignore_index)
        MeasureMetric.__init__(self, measure, validate_args, kwargs)


class RowCost(MeasureMetric):
    """Compute the mean cost of decisions with row-wise costs; lower is better.

    Arguments are those of `mpcs_torch.functional.row_cost`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import RowCost
        >>> RowCost(num_classes=2)(torch.tensor([0, 1]), torch.tensor([[0.0, 5.0], [300.0, 5.0]]))
        tensor(2.5000, dtype=torch.float64)
    """

    of = measures.RowCost

    def __init__(
        self,
        num_classes: int,
        *,
        regret: bool = False,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(measures.RowCost(num_classes, regret), validate_args, kwargs)

    def _references(self) -> dict[str, float]:
        sums = self.named_sums()
        return {
            "cheapest decisions": 0.0 if self.regret else (sums.least / sums.samples).item()
        }
