"""PartialAUC, HMeasure, and metrics at single points of the ROC."""

from typing import Any

from torch import Tensor

from mpcs_torch.functional.detection import area as kernel
from mpcs_torch.functional.detection.errors import BinaryTrials, ClassAverage, ErrorRates
from mpcs_torch.metrics.detection.base import PlainDetectionMetric, ScalarDetectionMetric


def _draw_roc(curves: dict[int, ErrorRates], names: list[str], title: str, on: Any) -> Any:
    from mpcs_torch.plots.detection import roc_curves

    return roc_curves(dict(zip(names, curves.values(), strict=True)), title, on=on)


class PartialAUC(ScalarDetectionMetric):
    """Compute the standardised area under the ROC up to a false-alarm rate; higher is better, 0.5 is chance.

    Arguments are those of `mpcs_torch.functional.partial_auc`; for ``validate_args`` and errors see `EqualErrorRate`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import PartialAUC
        >>> PartialAUC()(torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 1, 0, 1]))
        tensor(1., dtype=torch.float64)
    """

    higher_is_better = True
    plot_upper_bound = 1.0
    _draw_curves = staticmethod(_draw_roc)

    def __init__(
        self,
        max_p_fa: float = 1.0,
        *,
        num_classes: int | None = None,
        average: ClassAverage = "macro",
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        kernel.check_max_p_fa(max_p_fa)
        super().__init__(locals())

    def statistic(self, trials: BinaryTrials) -> Tensor:
        """Return the area under the ROC of one detector."""
        return kernel.partial_auc_from_counts(trials.errors(), self.max_p_fa)


class MissAtFalseAlarm(ScalarDetectionMetric):
    """Compute the minimum miss rate at a false-alarm rate of at most ``p_fa``, in [0, 1]; lower is better.

    The threshold is chosen on the same scores. The other arguments and the errors are those of `EqualErrorRate`,
    without ``method``.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import MissAtFalseAlarm
        >>> MissAtFalseAlarm(0.0)(torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 1, 1, 1]))
        tensor(0., dtype=torch.float64)
    """

    plot_upper_bound = 1.0

    def __init__(
        self,
        p_fa: float,
        *,
        num_classes: int | None = None,
        average: ClassAverage = "macro",
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        kernel.check_rate("p_fa", p_fa)
        super().__init__(locals())

    def statistic(self, trials: BinaryTrials) -> Tensor:
        """Return the miss rate of one detector."""
        return kernel.min_miss_rate(trials, self.p_fa)


class FalseAlarmAtMiss(ScalarDetectionMetric):
    """Compute the minimum false-alarm rate at a miss rate of at most ``p_miss``, in [0, 1]; lower is better.

    The threshold is chosen on the same scores. The other arguments and the errors are those of `EqualErrorRate`,
    without ``method``.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import FalseAlarmAtMiss
        >>> FalseAlarmAtMiss(0.1)(torch.tensor([0.5, 0.4, 0.8, 0.9]), torch.tensor([0, 1, 1, 1]))
        tensor(1., dtype=torch.float64)
    """

    plot_upper_bound = 1.0

    def __init__(
        self,
        p_miss: float,
        *,
        num_classes: int | None = None,
        average: ClassAverage = "macro",
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        kernel.check_rate("p_miss", p_miss)
        super().__init__(locals())

    def statistic(self, trials: BinaryTrials) -> Tensor:
        """Return the false-alarm rate of one detector."""
        return kernel.min_false_alarm_rate(trials, self.p_miss)


class PrecisionRecallBreakEven(PlainDetectionMetric):
    """Compute the number of misses at the threshold that gives as many false alarms; lower is better.

    References are those of `mpcs_torch.functional.precision_recall_break_even`. Arguments and errors are those of
    `EqualErrorRate`, without ``method``.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import PrecisionRecallBreakEven
        >>> PrecisionRecallBreakEven()(torch.tensor([0.5, 0.4, 0.3, 0.9]), torch.tensor([0, 1, 0, 1]))
        tensor(0.5000, dtype=torch.float64)
    """

    statistic = staticmethod(kernel.break_even_of_trials)


class HMeasure(PlainDetectionMetric):
    """Compute the H-measure, in [0, 1]; higher is better: 1 is perfect, 0 is as bad as ignoring the scores.

    The equation and references are those of `mpcs_torch.functional.h_measure`. Arguments and errors are those of
    `EqualErrorRate`, without ``method``.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import HMeasure
        >>> HMeasure()(torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 0, 1, 1]))
        tensor(0.5000, dtype=torch.float64)
    """

    higher_is_better = True
    plot_upper_bound = 1.0
    _draw_curves = staticmethod(_draw_roc)
    statistic = staticmethod(kernel.h_measure_of_trials)
