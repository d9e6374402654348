"""The register of metrics: for each name the measure or the Metric, its settings, its input, and its role in reports.

The trainer, ``mpcs score``, ``mpcs select``, tests and documentation read it. To add a metric, add one line here. This
module does not import torchmetrics: a `Metric` that is no measure is imported when it is made.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

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
from mpcs_torch.functional.probability.probability_accuracy import ProbabilityAccuracy
from mpcs_torch.functional.probability.scores import (
    BrierScore,
    CrossEntropy,
    Decisiveness,
    GeometricAccuracy,
    Overconfidence,
    Robustness,
    TopKAccuracy,
)
from mpcs_torch.functional.quality import scores as quality
from mpcs_torch.functional.quality.roc_area import RocArea
from mpcs_torch.functional.soft.scores import HardF1, SoftFBeta, SoftKLDivergence
from mpcs_torch.metrics.metric_entry import (
    AT_COVERAGE,
    GENERALIZED,
    RISK_COVERAGE,
    MetricEntry,
    Takes,
    Undefined,
)

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
OF_BINS = (
    "it is computed from bins of probabilities, which leaving out rows would make noisier"
)
"""The reason why a metric of bins has no interval."""
FEW_WRONG = (
    "few rows that are ranked wrongly decide it, and none of them may be in the sample"
)
"""The reason why an area has no interval if leaving out rows does not show how much it varies."""
_in_bins = partial(
    _calibration,
    of=ProbabilityAccuracy,
    settings={"cells": 20_000},
    no_interval=OF_BINS,
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
        computes="share of right decisions (of probabilities: the most probable class)",
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
        quality.QuadraticWeightedKappa,
        computes="Cohen's kappa with quadratic weights",
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
    _redundant(
        "weighted_f1",
        quality.WeightedF1,
        computes="mean F1 over classes, weighted by their samples",
    ),
    _probabilities(
        "top_k_accuracy",
        TopKAccuracy,
        computes="share of samples whose class is among the 2 most probable",
        is_default=False,
    ),
    _of_torchmetrics(
        "average_precision",
        "torchmetrics.classification:MulticlassAveragePrecision",
        "probabilities",
        computes="area under the precision-recall curve, mean over classes, by torchmetrics",
        family="probabilities",
        no_interval=FEW_WRONG,
    ),
    _of_torchmetrics(
        "ece",
        "torchmetrics.classification:MulticlassCalibrationError",
        "probabilities",
        computes="expected calibration error of 15 bins, by torchmetrics",
        given_direction="min",
        family="calibration",
        no_interval=OF_BINS,
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
        computes="mean probability of the decision, minus accuracy: above 0 too sure, below 0 too unsure; "
        "classes may cancel",
        screen=7,
    ),
    _probabilities(
        "mpcs",
        MetaPatternConcernScore,
        computes="Meta Pattern Concern Score: mean penalty of unsure and wrong confidences; 0 is best, "
        "the surest error has 21.4 by default",
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
        no_interval=FEW_WRONG,
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


def is_registered(entry: MetricEntry) -> bool:
    """Return whether the measure or Metric of ``entry`` is in this register, so that its kind of input is known."""
    return entry.of in TAKES


def counts_classes(entry: MetricEntry) -> bool:
    """Return whether this is a classification metric of this package or torchmetrics whose targets are classes."""
    is_of_torchmetrics = str(entry.of).startswith("torchmetrics.classification")
    return entry.takes_classes and (is_registered(entry) or is_of_torchmetrics)
