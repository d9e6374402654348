"""PartialAUC, HMeasure, and metrics at single points of the ROC."""

from typing import Any

from mpcs_torch.functional.detection import area as measures
from mpcs_torch.functional.detection.trial_measure import ClassAverage
from mpcs_torch.metrics.detection.base import PlainTrialMetric, TrialMetric


class _RocMetric(TrialMetric):
    """The base of metrics whose figures show ROC curves."""

    def _draw_curves(self, systems: Any, marks: Any, title: str, on: Any) -> Any:  # noqa: ARG002  # marks no points
        from mpcs_torch.plots.detection import roc_curves

        return roc_curves(systems, title, on=on)


class PartialAUC(_RocMetric):
    """Compute the standardised area under the ROC up to a false-alarm rate; higher is better, 0.5 is chance.

    Arguments are those of `mpcs_torch.functional.partial_auc`; for ``validate_args`` and errors see `EqualErrorRate`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import PartialAUC
        >>> PartialAUC()(torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 1, 0, 1]))
        tensor(1., dtype=torch.float64)
    """

    of = measures.PartialAUC

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
        super().__init__(
            self.of(num_classes, average, ignore_index, max_p_fa=max_p_fa),
            validate_args,
            kwargs,
        )


class MissAtFalseAlarm(TrialMetric):
    """Compute the minimum miss rate at a false-alarm rate of at most ``p_fa``, in [0, 1]; lower is better.

    The threshold is chosen on the same scores. The other arguments and the errors are those of `EqualErrorRate`,
    without ``method``.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import MissAtFalseAlarm
        >>> MissAtFalseAlarm(0.0)(torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 1, 1, 1]))
        tensor(0., dtype=torch.float64)
    """

    of = measures.MissAtFalseAlarm

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
        super().__init__(
            self.of(num_classes, average, ignore_index, p_fa=p_fa), validate_args, kwargs
        )


class FalseAlarmAtMiss(TrialMetric):
    """Compute the minimum false-alarm rate at a miss rate of at most ``p_miss``, in [0, 1]; lower is better.

    The threshold is chosen on the same scores. The other arguments and the errors are those of `EqualErrorRate`,
    without ``method``.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import FalseAlarmAtMiss
        >>> FalseAlarmAtMiss(0.1)(torch.tensor([0.5, 0.4, 0.8, 0.9]), torch.tensor([0, 1, 1, 1]))
        tensor(1., dtype=torch.float64)
    """

    of = measures.FalseAlarmAtMiss

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
        super().__init__(
            self.of(num_classes, average, ignore_index, p_miss=p_miss),
            validate_args,
            kwargs,
        )


class PrecisionRecallBreakEven(PlainTrialMetric):
    """Compute the number of misses at the threshold that gives as many false alarms; lower is better.

    References are those of `mpcs_torch.functional.precision_recall_break_even`. Arguments and errors are those of
    `EqualErrorRate`, without ``method``.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import PrecisionRecallBreakEven
        >>> PrecisionRecallBreakEven()(torch.tensor([0.5, 0.4, 0.3, 0.9]), torch.tensor([0, 1, 0, 1]))
        tensor(0.5000, dtype=torch.float64)
    """

    of = measures.PrecisionRecallBreakEven


class HMeasure(_RocMetric, PlainTrialMetric):
    """Compute the H-measure, in [0, 1]; higher is better: 1 is perfect, 0 is as bad as ignoring the scores.

    The equation and references are those of `mpcs_torch.functional.h_measure`. Arguments and errors are those of
    `EqualErrorRate`, without ``method``.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import HMeasure
        >>> HMeasure()(torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 0, 1, 1]))
        tensor(0.5000, dtype=torch.float64)
    """

    of = measures.HMeasure
