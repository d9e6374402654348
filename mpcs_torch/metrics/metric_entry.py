"""Describe a metric by its measure or Metric, its settings, its kind of input and its role in reports."""

import inspect
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from torch import Tensor
from torch.nn import Module

from mpcs_torch.errors import InvalidValueError
from mpcs_torch.functional.concern.expected_concern import ExpectedConcern
from mpcs_torch.functional.concern.risk_gap import RiskGap
from mpcs_torch.functional.detection.trial_measure import TrialMeasure
from mpcs_torch.functional.measure import Direction, Measure
from mpcs_torch.functional.quality.roc_area import RocArea
from mpcs_torch.io.packaged import import_attribute

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from torchmetrics import Metric

Takes = Literal[
    "decisions",
    "probabilities",
    "log_probabilities",
    "positive",
    "soft_labels",
    "costs",
    "trials",
]
"""The kind of input of a metric, which decides the arguments of its ``update``.

``"decisions"``: predicted classes (N,) and labels (N,). ``"probabilities"``: (N, C) and labels (N,).
``"log_probabilities"``: (N, C) and labels (N,). ``"positive"``: probabilities of class 1, (N,), and labels (N,).
``"soft_labels"``: probabilities and degrees of truth, (N, C) both.
``"costs"``: predicted classes (N,), and the costs of all decisions, (N, C).
``"trials"``: scores and target or non-target labels, (N,) both; with ``num_classes``, scores (N, C) and labels (N,).
"""
Family = Literal[
    "concern",
    "referrals",
    "decisions",
    "probabilities",
    "calibration",
    "soft labels",
    "costs of rows",
    "detectors",
    "oneDAL",
]
"""The heading under which tables of all metrics show a metric."""
FAMILIES: tuple[Family, ...] = get_args(Family)
"""In the order of tables."""
Undefined = Literal["unpredicted", "absent", "either", "constant", "probability 0"]
"""The cause of a NaN or infinite value: a class is never predicted, or never occurs in the labels, or either of these;
the best constant decision costs nothing; or a true class has probability 0."""
_INPUT_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "probabilities": {"from_logits": False},
    "log_probabilities": {"from_logits": True, "normalized": True},
}
"""The constructor arguments that each kind of input implies."""


@dataclass(frozen=True)
class MetricEntry:
    """A named metric: its measure or its Metric, its settings and its role in reports."""

    name: str
    of: Any
    """The class of the measure or, for a Metric that is none, its import path, ``package.module:Class``. The class of a
    Metric is replaced by one of these."""
    takes: Takes
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings, without those that the data and the kind of input determine."""
    computes: str = ""
    """A description of the value in a few words."""
    key: str | None = None
    """The key of the value in the dictionary that the metric computes; None if it computes a tensor."""
    is_count: bool = False
    """Whether the value is a count, a whole number."""
    given_direction: Direction | None = None
    """The direction that is better (``"min"`` or ``"max"``), if the measure does not define it."""
    family: Family = "decisions"
    screen: int | None = None
    """The place of the metric among the few that tables show by default, from 0; None if only tables of all show it."""
    is_default: bool = True
    """Whether the metric is measured by default; False if it is redundant."""
    group_rank: int | None = None
    """The rank, from 0, of the metric as a key that sorts groups of samples: ties are sorted by the next rank."""
    in_group_tables: bool = False
    compared_as: str = ""
    """The name of the metric in sentences that compare models; empty if no sentence compares them by this metric."""
    repeats: str = ""
    """The name of a metric whose difference between two models is the same, up to the sign; empty if there is none."""
    undefined: Undefined | None = None
    no_interval: str = ""
    """The reason why the metric has no interval; empty if its measure or its states define an interval."""
    of_class: str = ""
    """The class or group of classes in the brackets of a one-vs-rest name such as ``recall[CLASS]``."""
    made: "Metric | None" = None
    """A metric instance that the user passed, to be copied with its settings; else None."""

    def __post_init__(self) -> None:
        """Replace the class of a Metric by its measure, or by its import path."""
        if isinstance(self.of, type) and issubclass(self.of, Module):
            metric: Any = self.of
            object.__setattr__(self, "of", identity_of(metric))

    @property
    def direction(self) -> Direction | None:
        """``"min"`` if lower values are better, ``"max"`` if higher values are; None if neither is better."""
        if self.given_direction is not None:
            return self.given_direction
        if not isinstance(self.of, str):
            direction: Direction | None = self.of.direction
            return direction
        directions: dict[bool, Direction] = {True: "max", False: "min"}
        return directions.get(self.metric_class.higher_is_better)

    @property
    def limits(self) -> tuple[float, float] | None:
        """The lowest and highest possible value; None if they are not known."""
        if isinstance(self.of, str):
            return None
        low, high = self.of.limits
        if low is not None and high is not None:
            return low, high
        if high is not None or self.is_count or not self.is_measure:
            return None
        # A mean of rows that are from 0 to 1 is from 0 to 1, too.
        is_share = tuple(self.of.row_limits) == (0, 1)
        return (0.0, 1.0) if is_share else None

    @property
    def class_name(self) -> str:
        """The name of the class of the measure or Metric."""
        if isinstance(self.of, str):
            _, _, name = self.of.rpartition(":")
        else:
            name = self.of.__name__
        return str(name)

    @property
    def metric_class(self) -> Any:
        """The class of a Metric that is no measure."""
        assert isinstance(self.of, str)
        return type(self.made) if self.made is not None else import_attribute(self.of)

    @property
    def is_measure(self) -> bool:
        """Whether the metric is a measure, so that its value is a function of sums over rows."""
        return isinstance(self.of, type) and issubclass(self.of, Measure)

    @property
    def is_of_ranks(self) -> bool:
        """Whether the metric is a measure of ranks, which keeps the scores of all rows."""
        return self.of is RocArea

    @property
    def takes_classes(self) -> bool:
        """Whether the targets of the metric are class indices."""
        return self.takes not in ("soft_labels", "costs")

    @property
    def needs_matrix(self) -> bool:
        """Whether measuring the metric takes a (C, C) matrix, which is too large if there are many classes."""
        return self.takes == "decisions" or self.of in (
            ExpectedConcern,
            RiskGap,
            *OF_CURVES,
        )

    @property
    def accepted_settings(self) -> frozenset[str]:
        """The names of the settings that the metric has."""
        if not isinstance(self.of, str):
            return frozenset(field.name for field in fields(self.of) if field.init)
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        parameters = inspect.signature(self.metric_class).parameters.values()
        return frozenset(
            parameter.name for parameter in parameters if parameter.kind in kinds
        )

    def make(self, num_classes: int, **shared: Any) -> Any:
        """Create the measure, the measure of ranks or, if the metric is neither, the Metric, which keeps trials.

        ``shared`` are settings for all metrics, ``concern`` for example. Those that this metric does not have are
        ignored. The entry's own ``settings`` take precedence.
        """
        if self.made is not None:
            measure = getattr(self.made, "measure", None)
            if isinstance(measure, Measure) and not measure.is_wide:
                return measure
            return deepcopy(self.made)
        available = {
            "num_classes": num_classes,
            **_INPUT_SETTINGS.get(self.takes, {}),
            **shared,
        }
        accepted = self.accepted_settings
        settings = {name: value for name, value in available.items() if name in accepted}
        settings |= self.settings
        if isinstance(self.of, str):
            return self.metric_class(**settings)
        measure = self.of(**settings)
        if not isinstance(measure, TrialMeasure):
            return measure
        # torchmetrics takes seconds to import.
        from mpcs_torch.metrics.detection.base import TrialMetric

        return TrialMetric(measure, bool(shared.get("validate_args", True)), {})

    def number(self, computed: Any) -> float:
        """Return what a metric computed as a number."""
        number = computed[self.key] if self.key is not None else computed
        is_scalar_tensor = isinstance(number, Tensor) and number.numel() == 1
        if not is_scalar_tensor and not isinstance(number, float | int):
            raise InvalidValueError("recorded_scalar", f"metric {self.name}", number)
        return int(number) if self.is_count else float(number)


def identity_of(metric: "type[Metric]") -> "type[Measure] | str":
    """Return the measure of the class of a Metric, or its import path."""
    measure: type[Measure] | None = getattr(metric, "of", None)
    if measure is not None:
        return measure
    module = metric.__module__
    if module.startswith("mpcs_torch.metrics"):  # all Metrics are public there
        module = "mpcs_torch.metrics"
    return f"{module}:{metric.__qualname__}"


RISK_COVERAGE = "mpcs_torch.metrics:RiskCoverageArea"
GENERALIZED = "mpcs_torch.metrics:GeneralizedRiskCoverageArea"
AT_COVERAGE = "mpcs_torch.metrics:RiskAtCoverage"
OF_CURVES = (RISK_COVERAGE, GENERALIZED, AT_COVERAGE)
"""The Metrics of the curve of errors against coverage."""
