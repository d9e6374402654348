"""The register of metrics: for each name the measure or the Metric, its settings, its input, and its role in reports.

The trainer, ``mpcs score``, ``mpcs select``, tests and documentation read it. To add a metric, add one line here. This
module does not import torchmetrics: a `Metric` that is no measure is imported when it is made.
"""

import inspect
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Literal, get_args

from torch import Tensor
from torch.nn import Module

from mpcs_torch.errors import InvalidValueError
from mpcs_torch.functional.concern.coverage import Coverage, SelectiveAccuracy
from mpcs_torch.functional.concern.dangerous import DangerousErrors
from mpcs_torch.functional.concern.expected_concern import (
    ExpectedConcern,
    MeanSeverity,
    RowCost,
)
from mpcs_torch.functional.concern.mpcs import MetaPatternConcernScore
from mpcs_torch.functional.concern.net_benefit import NetBenefit
from mpcs_torch.functional.concern.risk_gap import RiskGap
from mpcs_torch.functional.detection import area, cost, llr_cost
from mpcs_torch.functional.detection.equal_error_rate import EqualErrorRate
from mpcs_torch.functional.detection.trial_measure import TrialMeasure
from mpcs_torch.functional.measure import Direction, Measure
from mpcs_torch.functional.probability.probability_accuracy import ProbabilityAccuracy
from mpcs_torch.functional.probability.scores import (
    BrierScore,
    CrossEntropy,
    Decisiveness,
    GeometricAccuracy,
    Overconfidence,
    Robustness,
)
from mpcs_torch.functional.quality import scores as quality
from mpcs_torch.functional.quality.roc_area import RocArea
from mpcs_torch.functional.soft.scores import HardF1, SoftFBeta, SoftKLDivergence
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
        # The value is a mean of rows that are from 0 to 1.
        has_shares = self.is_measure and tuple(self.of.row_limits) == (0, 1)
        if high is None and has_shares and not self.is_count:
            return 0.0, 1.0
        return None

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
    def is_registered(self) -> bool:
        """Whether the measure or Metric is in this register, so that its kind of input is known."""
        return self.of in TAKES

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
    def counts_classes(self) -> bool:
        """Whether this is a classification metric of this package or torchmetrics whose targets are class indices."""
        is_of_torchmetrics = str(self.of).startswith("torchmetrics.classification")
        return (self.is_registered or is_of_torchmetrics) and self.takes_classes

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
            is_scalar = isinstance(measure, Measure) and not measure.is_wide
            return measure if is_scalar else deepcopy(self.made)
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


_decisions = partial(MetricEntry, takes="decisions")
_redundant = partial(_decisions, is_default=False)
_concern = partial(_decisions, family="concern")
_referrals = partial(_decisions, family="referrals", in_group_tables=True)
_onedal = partial(_decisions, family="oneDAL", is_default=False)
_probabilities = partial(MetricEntry, takes="probabilities", family="probabilities")
_calibration = partial(_probabilities, family="calibration")
_soft_labels = partial(MetricEntry, takes="soft_labels", family="soft labels")
_costs = partial(MetricEntry, takes="costs", family="costs of rows", in_group_tables=True)
_trials = partial(MetricEntry, takes="trials", family="detectors")
_of_torchmetrics = partial(MetricEntry, is_default=False, given_direction="max")
_in_bins = partial(
    _calibration,
    of=ProbabilityAccuracy,
    settings={"cells": 20_000},
    no_interval="it is computed from bins of probabilities, which leaving out rows would make noisier",
)


def _soft(name: str, beta: float, what: str) -> list[MetricEntry]:
    """Return the entries of a soft score for each way to average classes."""
    ways = {
        "micro": "of all classes together",
        "macro": "mean over classes",
        "weighted": "mean over classes, weighted by their labels",
    }
    screens = {"soft_f1_macro": 0, "soft_precision_macro": 1, "soft_recall_macro": 2}
    return [
        _soft_labels(
            f"{name}_{average}",
            SoftFBeta,
            computes=f"{what}, {way}",
            settings={"beta": beta, "average": average},
            in_group_tables=average == "macro" or beta == 1,
            screen=screens.get(f"{name}_{average}"),
        )
        for average, way in ways.items()
    ]


ENTRIES: tuple[MetricEntry, ...] = (
    _decisions(
        "accuracy",
        quality.Accuracy,
        computes="share of right decisions",
        screen=4,
        compared_as="accuracy",
        repeats="misclassification_rate",
    ),
    _decisions(
        "misclassification_rate",
        quality.WeightedErrorRate,
        computes="share of wrong decisions",
        group_rank=2,
        compared_as="rate of wrong decisions",
        in_group_tables=True,
    ),
    _concern(
        "dangerous", DangerousErrors, computes="number of dangerous errors", is_count=True
    ),
    _concern(
        "dangerous_rate",
        DangerousErrors,
        computes="share of samples that are dangerous errors",
        settings={"normalize": "samples"},
        screen=0,
        in_group_tables=True,
        group_rank=0,
        compared_as="rate of dangerous errors",
    ),
    _referrals(
        "selective_dangerous_rate",
        DangerousErrors,
        computes="share of decided samples that are dangerous errors",
        settings={"normalize": "decided"},
    ),
    _referrals(
        "coverage",
        Coverage,
        computes="share of samples that are decided, not referred",
        screen=2,
        compared_as="coverage",
    ),
    _referrals(
        "selective_accuracy",
        SelectiveAccuracy,
        computes="accuracy of the samples that are decided",
        screen=3,
    ),
    _referrals(
        "mean_concern",
        ExpectedConcern,
        computes="mean cost of a decision or referral",
        settings={"normalize": False},
        screen=1,
        compared_as="mean concern",
    ),
    _concern(
        "mean_severity",
        MeanSeverity,
        computes="mean cost of wrong decisions",
        is_default=False,
        in_group_tables=True,
    ),
    _concern(
        "destructive_rate",
        DangerousErrors,
        computes="share of errors that are dangerous",
        settings={"normalize": "errors"},
    ),
    _decisions(
        "balanced_error_rate",
        quality.BalancedErrorRate,
        computes="mean over classes of the share of wrong decisions",
        undefined="absent",
        in_group_tables=True,
    ),
    _decisions(
        "macro_f1", quality.MacroF1, computes="mean F1 over classes that occur", screen=5
    ),
    _decisions(
        "mcc",
        quality.MatthewsCorrelation,
        computes="Matthews correlation of decisions and labels",
    ),
    _decisions(
        "macro_precision",
        quality.MacroPrecision,
        computes="mean precision of classes",
        undefined="unpredicted",
    ),
    _redundant(
        "macro_recall",
        quality.MacroRecall,
        computes="mean recall of classes",
        undefined="absent",
    ),
    _decisions(
        "balanced_accuracy",
        quality.MacroRecall,
        computes="mean recall of classes",
        undefined="absent",
    ),
    _redundant(
        "quadratic_weighted_kappa",
        "torchmetrics.classification:MulticlassCohenKappa",
        computes="Cohen's kappa with quadratic weights, by torchmetrics",
        given_direction="max",
        settings={"weights": "quadratic"},
        compared_as="quadratic weighted kappa",
    ),
    _onedal(
        "onedal_micro_precision",
        quality.MicroPrecision,
        computes="micro precision: the accuracy",
    ),
    _onedal(
        "onedal_micro_recall", quality.MicroRecall, computes="micro recall: the accuracy"
    ),
    _onedal(
        "onedal_micro_fscore",
        quality.MicroFScore,
        computes="F score of micro precision and micro recall: the accuracy",
        undefined="either",
    ),
    _onedal(
        "onedal_macro_fscore",
        quality.MacroFScore,
        computes="F score of macro precision and macro recall",
        undefined="either",
    ),
    _onedal(
        "onedal_average_accuracy",
        quality.AverageAccuracy,
        computes="mean of the accuracies of each class against the rest",
    ),
    _onedal(
        "onedal_error_rate",
        quality.ErrorRate,
        computes="2 / C times the share of wrong decisions",
    ),
    _of_torchmetrics(
        "weighted_f1",
        "torchmetrics.classification:MulticlassF1Score",
        "decisions",
        computes="mean F1 over classes, weighted by their samples, by torchmetrics",
        settings={"average": "weighted"},
    ),
    _of_torchmetrics(
        "top_k_accuracy",
        "torchmetrics.classification:MulticlassAccuracy",
        "probabilities",
        computes="share of samples whose class is among the 2 most probable, by torchmetrics",
        settings={"top_k": 2, "average": "micro"},
        family="probabilities",
    ),
    _of_torchmetrics(
        "average_precision",
        "torchmetrics.classification:MulticlassAveragePrecision",
        "probabilities",
        computes="area under the precision-recall curve, mean over classes, by torchmetrics",
        family="probabilities",
    ),
    _of_torchmetrics(
        "ece",
        "torchmetrics.classification:MulticlassCalibrationError",
        "probabilities",
        computes="expected calibration error of 15 bins, by torchmetrics",
        given_direction="min",
        family="calibration",
    ),
    _probabilities(
        "auroc",
        RocArea,
        computes="area under the ROC of each class against the rest, mean over classes that occur",
        screen=6,
    ),
    _calibration(
        "overconfidence",
        Overconfidence,
        computes="mean probability of the decision, minus accuracy: above 0 too sure, below 0 too unsure",
        screen=7,
    ),
    _probabilities(
        "mpcs",
        MetaPatternConcernScore,
        computes="Meta Pattern Concern Score: mean penalty of unsure and wrong confidences, 0 is best",
        screen=9,
        group_rank=1,
        in_group_tables=True,
        compared_as="MPCS",
    ),
    _probabilities(
        "mpcs_count",
        MetaPatternConcernScore,
        computes="MPCS with the concern of the true class as in the published runs",
        settings={"correct_concern": "count"},
        is_default=False,
    ),
    _concern(
        "expected_concern",
        ExpectedConcern,
        computes="mean cost of decisions, divided by that of the best constant class",
        screen=1,
        in_group_tables=True,
        compared_as="expected concern",
        undefined="constant",
    ),
    _probabilities(
        "least_concern_cost",
        ExpectedConcern,
        computes="expected concern if decisions were those of least expected cost",
        settings={"decision": "least_concern"},
        family="concern",
        undefined="constant",
    ),
    _probabilities(
        "dangerous_gap",
        RiskGap,
        computes="dangerous errors per sample, minus those that the probabilities promise: above 0 there are more",
        family="concern",
        screen=8,
    ),
    _probabilities(
        "cost_gap",
        RiskGap,
        computes="mean cost of decisions, minus the cost that the probabilities promise: above 0 it is higher",
        settings={"loss": "cost"},
        family="concern",
    ),
    _probabilities(
        "risk_coverage_area",
        RISK_COVERAGE,
        computes="area under the curve of dangerous errors against coverage",
        given_direction="min",
        is_default=False,
        no_interval="no valid method is known",
    ),
    _probabilities(
        "generalized_risk_coverage_area",
        GENERALIZED,
        computes="area under the curve of decided dangerous errors, as a share of all, against coverage",
        given_direction="min",
        is_default=False,
    ),
    _probabilities(
        "risk_at_coverage",
        AT_COVERAGE,
        computes="share of dangerous errors among the 80 % of samples with the lowest estimated risk",
        given_direction="min",
        is_default=False,
        no_interval="which rows are decided depends on all rows",
    ),
    MetricEntry(
        "cross_entropy",
        CrossEntropy,
        "log_probabilities",
        computes="mean of -log of the probability of the true class, in nats",
        family="probabilities",
        undefined="probability 0",
        in_group_tables=True,
    ),
    _probabilities(
        "brier_score",
        BrierScore,
        computes="mean squared error of probabilities, summed over classes",
    ),
    _probabilities(
        "mean_squared_error",
        BrierScore,
        computes="mean squared error of probabilities, mean over classes",
        settings={"over_classes": "mean"},
        is_default=False,
    ),
    _probabilities(
        "geometric_accuracy",
        GeometricAccuracy,
        computes="geometric mean of the probability of the true class, at least 0.005",
    ),
    _probabilities(
        "decisiveness",
        Decisiveness,
        computes="arithmetic mean of the probability of the true class",
    ),
    _probabilities(
        "robustness",
        Robustness,
        computes="power mean (-2/3) of the probability of the true class, at least 0.005",
    ),
    _in_bins(
        "measured_geometric_accuracy",
        computes="geometric accuracy, by the measured frequencies of probabilities",
        key="measured_geometric_accuracy",
        given_direction="max",
    ),
    _in_bins(
        "measured_decisiveness",
        computes="decisiveness, by the measured frequencies of probabilities",
        key="measured_decisiveness",
        given_direction="max",
    ),
    _in_bins(
        "measured_robustness",
        computes="robustness, by the measured frequencies of probabilities",
        key="measured_robustness",
        given_direction="max",
    ),
    _in_bins(
        "calibration_slope",
        computes="slope of measured against reported frequencies: below 1, probabilities are too extreme",
        key="slope",
    ),
    *_soft("soft_precision", 0.0, "share of the predicted degrees that is true"),
    *_soft("soft_recall", inf, "share of the true degrees that is predicted"),
    *(
        replace(entry, group_rank=0, compared_as="macro soft F1")
        if entry.name == "soft_f1_macro"
        else entry
        for entry in _soft("soft_f1", 1.0, "F1 of degrees of truth")
    ),
    _soft_labels(
        "hard_f1_micro",
        HardF1,
        computes="F1 of predictions and labels above 0.5, of all classes together",
        settings={"average": "micro"},
    ),
    _soft_labels(
        "hard_f1_macro",
        HardF1,
        computes="F1 of predictions and labels above 0.5, mean over classes",
        settings={"average": "macro"},
    ),
    _soft_labels(
        "soft_kl_divergence",
        SoftKLDivergence,
        computes="mean binary Kullback-Leibler divergence of predictions from labels, in nats",
        settings={"epsilon": 1e-7},
        compared_as="divergence",
        screen=3,
        in_group_tables=True,
    ),
    _costs(
        "mean_cost",
        RowCost,
        computes="mean of what the costs of a row say of its decision, right or wrong",
        screen=2,
        compared_as="mean cost",
    ),
    _costs(
        "regret",
        RowCost,
        computes="mean cost above that of the cheapest decision of each row",
        settings={"regret": True},
        screen=3,
        compared_as="regret",
        repeats="mean_cost",
    ),
    _trials(
        "equal_error_rate",
        EqualErrorRate,
        computes="rate at which misses and false alarms are equally frequent",
    ),
    _trials(
        "min_detection_cost",
        cost.MinDetectionCost,
        computes="minimum detection cost over all thresholds",
        settings={"points": cost.EVEN},
    ),
    _trials(
        "actual_detection_cost",
        cost.ActualDetectionCost,
        computes="detection cost at the Bayes threshold",
        settings={"points": cost.EVEN},
    ),
    _trials(
        "half_total_error_rate",
        cost.HalfTotalErrorRate,
        computes="mean of the miss rate and the false-alarm rate at threshold 0",
    ),
    _trials(
        "cllr",
        llr_cost.Cllr,
        computes="cost of natural-log likelihood ratios, in bits",
    ),
    _trials(
        "min_cllr",
        llr_cost.MinCllr,
        computes="minimum of cllr over all increasing transforms, in bits",
    ),
    _trials(
        "partial_auc",
        area.PartialAUC,
        computes="standardised area under the ROC",
    ),
    _trials("h_measure", area.HMeasure, computes="H-measure"),
    _trials(
        "miss_at_false_alarm",
        area.MissAtFalseAlarm,
        computes="minimum miss rate at a false-alarm rate of 1 %",
        settings={"p_fa": 0.01},
    ),
    _trials(
        "false_alarm_at_miss",
        area.FalseAlarmAtMiss,
        computes="minimum false-alarm rate at a miss rate of 1 %",
        settings={"p_miss": 0.01},
    ),
    _trials(
        "precision_recall_break_even",
        area.PrecisionRecallBreakEven,
        computes="number of misses at the threshold with as many false alarms",
    ),
)
BY_NAME: Mapping[str, MetricEntry] = {entry.name: entry for entry in ENTRIES}
PUBLISHED = {"f1_macro": "macro_f1"}
"""The names of metrics that are called otherwise in published records and their configs."""
COLUMNS: Mapping[str, MetricEntry] = {
    **BY_NAME,
    **{name: BY_NAME[ours] for name, ours in PUBLISHED.items()},
}
"""The metrics by the names that columns of records may have."""


def _rate(name: str, rate: quality.Rate, what: str, undefined: Undefined) -> MetricEntry:
    settings = {"rate": rate}
    return _decisions(
        f"{name}[CLASS]",
        quality.ClassRate,
        computes=what,
        settings=settings,
        undefined=undefined,
        in_group_tables=True,
    )


OF_CLASS: Mapping[str, MetricEntry] = {
    "auroc": _probabilities(
        "auroc[CLASS]",
        RocArea,
        computes="area under the ROC of the class or group of classes against the rest",
        undefined="absent",
        in_group_tables=True,
    ),
    "net_benefit": _probabilities(
        "net_benefit[CLASS]",
        NetBenefit,
        computes="found samples of the class minus weighted needless actions, at threshold 0.5; at 0.1: [CLASS@0.1]",
        family="concern",
        in_group_tables=True,
    ),
    "recall": _rate(
        "recall", "recall", "share of the class that is decided as the class", "absent"
    ),
    "sensitivity": _rate(
        "sensitivity", "recall", "share of the class that is decided as the class", "absent"
    ),
    "specificity": _rate(
        "specificity",
        "specificity",
        "share of the rest that is decided as the rest",
        "absent",
    ),
    "precision": _rate(
        "precision",
        "precision",
        "share of the decisions for the class that are right",
        "unpredicted",
    ),
}
"""The one-vs-rest metrics of a class, or of a named group of classes, by the name before the bracket."""
# Reversed, because the last of several entries stays in a dictionary.
TAKES: Mapping[Any, Takes] = {
    entry.of: entry.takes for entry in reversed((*ENTRIES, *OF_CLASS.values()))
}
"""The input of each registered measure or Metric: that of its first entry."""
WITHOUT_INTERVAL: Mapping[Any, str] = {
    entry.of: entry.no_interval for entry in ENTRIES if entry.no_interval
}
"""The reason why each registered measure or Metric without an interval has none."""
