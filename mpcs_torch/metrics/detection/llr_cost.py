"""Cllr and MinCllr: the cost of log-likelihood ratios, as passed in and with optimal calibration."""

from typing import Any

from mpcs_torch.functional.detection import llr_cost as measures
from mpcs_torch.metrics.detection.base import PlainTrialMetric


class _LikelihoodRatioCost(PlainTrialMetric):
    """The base of costs that average over operating points; their figures show the cost at each operating point."""

    def _draw_curves(self, systems: Any, marks: Any, title: str, on: Any) -> Any:  # noqa: ARG002  # marks no points
        from mpcs_torch.plots.detection import bayes_error_curves

        return bayes_error_curves(systems, title, on=on)


class Cllr(_LikelihoodRatioCost):
    """Compute the cost of natural-log likelihood ratios, in bits; lower is better: 0 is perfect, 1 is uninformative.

    The equation and references are those of `mpcs_torch.functional.cllr`. Arguments and errors are those of
    `EqualErrorRate`, without ``method``.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Cllr
        >>> Cllr()(torch.tensor([2.0, -2.0, 800.0]), torch.tensor([1, 0, 1]))
        tensor(0.1373, dtype=torch.float64)
    """

    of = measures.Cllr


class MinCllr(_LikelihoodRatioCost):
    """Compute the minimum `Cllr`, in bits, over all increasing transforms of the scores; in [0, 1], lower is better.

    `Cllr` minus this value is the loss due to calibration. References are those of `mpcs_torch.functional.min_cllr`.
    Arguments and errors are those of `EqualErrorRate`, without ``method``.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import MinCllr
        >>> MinCllr()(torch.tensor([20.0, 10.0, 15.0, 30.0]), torch.tensor([1, 0, 0, 1]))
        tensor(0., dtype=torch.float64)
    """

    of = measures.MinCllr
