"""Cllr and MinCllr: what likelihood ratios cost, and what they would if they were calibrated."""

import torch
from torch import Tensor

from mpcs_torch.functional.detection.curve import hull_of
from mpcs_torch.functional.detection.llr_cost import cllr_of, min_cllr_of
from mpcs_torch.metrics.detection.base import Problem, ScoreMetric


class Cllr(ScoreMetric):
    """Cost of natural-log likelihood ratios over all operating points; in bits, lower is better, 1 is no clue.

    Equation and references are those of `mpcs_torch.functional.cllr`; arguments and errors those of `EqualErrorRate`,
    without its method.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Cllr
        >>> metric = Cllr()
        >>> metric.update(torch.tensor([2.0, -2.0, 800.0]), torch.tensor([1, 0, 1]))
        >>> metric.compute()
        tensor(0.1373, dtype=torch.float64)
    """

    def compute(self) -> Tensor:
        """The cost, float64: a scalar, or (C,) with ``average="none"``."""

        def value(problem: Problem) -> Tensor:
            self.errors_of(problem)  # for its warning
            return cllr_of(problem.scores, problem.labels)

        costs = self.each_problem(value, torch.clone)
        return self.averaged(self.stacked(costs))


class MinCllr(ScoreMetric):
    """The least `Cllr` that a rising transform of the scores can have; in bits, lower is better, in [0, 1].

    `Cllr` minus this is what calibration loses. References are those of `mpcs_torch.functional.min_cllr`; arguments and
    errors those of `EqualErrorRate`, without its method.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import MinCllr
        >>> metric = MinCllr()
        >>> metric.update(torch.tensor([20.0, 10.0, 15.0, 30.0]), torch.tensor([1, 0, 0, 1]))
        >>> metric.compute()
        tensor(0., dtype=torch.float64)
    """

    plot_upper_bound = 1.0

    def compute(self) -> Tensor:
        """The cost, float64: a scalar, or (C,) with ``average="none"``."""
        costs = self.each_problem(lambda problem: min_cllr_of(hull_of(self.errors_of(problem))), torch.clone)
        return self.averaged(self.stacked(costs))
