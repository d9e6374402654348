"""The register of metrics: what each name stands for, what it takes, and which way is better.

The trainer, ``mpcs score``, ``mpcs select``, the laws and the documentation read it. A new metric is one line here.
"""

import ast
import inspect
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from torch import Tensor
from torchmetrics import Metric
from torchmetrics.classification import MulticlassCohenKappa

import mpcs_torch.metrics as metrics
from mpcs_torch.errors import did_you_mean, quoted
from mpcs_torch.functional import OperatingPoint
from mpcs_torch.functional.comparison.significance import Direction
from mpcs_torch.io.packaged import import_attribute
from mpcs_torch.metrics.one_class import ClassAUROC, ClassRate

Takes = Literal["decisions", "probabilities", "log_probabilities", "positive", "soft_labels", "costs", "trials"]
"""The input of a metric: the arguments of ``update``.

``"decisions"``: predicted classes (N,) and labels (N,). ``"probabilities"``: (N, C) and labels (N,).
``"log_probabilities"``: their logarithms. ``"positive"``: those of the second of two classes, (N,), and labels (N,).
``"soft_labels"``: probabilities and degrees of truth, (N, C) both.
``"costs"``: predicted classes (N,), and what each would cost, (N, C).
``"trials"``: scores and target or non-target labels, (N,) both; with ``num_classes``, scores (N, C) and labels (N,).
"""
Section = Literal["main", "concern", "other"]
"""The place of a metric: first, first if there is a concern, or after these."""
Undefined = Literal["unpredicted", "absent", "either", "constant", "probability 0"]
"""When a value is NaN or infinite: a class is never predicted, never occurs, one of both; a decision that is always the
same costs nothing; or the probability of a label is 0."""
_OF_INPUT: Mapping[str, Mapping[str, Any]] = {
    "probabilities": {"from_logits": False},
    "log_probabilities": {"from_logits": True, "normalized": True},
}
"""Settings that follow from what a metric is given."""


@dataclass(frozen=True)
class MetricEntry:
    """A metric under a name."""

    name: str
    metric: type[Metric]
    takes: Takes
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the constructor, beside those that the data and the input decide."""
    key: str | None = None
    """The value to take where the metric computes a dictionary."""
    is_count: bool = False
    """True if the value is a whole number."""
    given_direction: Direction | None = None
    """For a metric whose class does not say which way is better."""
    section: Section = "other"
    is_default: bool = True
    """Whether it is measured unless metrics are named: not if it says what another one says."""
    is_of_referrals: bool = False
    """Whether it says something only where samples may be referred; it is a default only there."""
    group_rank: int | None = None
    """Groups are ranked by the measured metric with the lowest rank, and where that is equal by the next ones."""
    in_group_tables: bool = False
    compared_as: str = ""
    """Its name in sentences, if models are compared by it."""
    repeats: str = ""
    """A metric that says the same about a difference of models."""
    undefined: Undefined | None = None
    no_interval: str = ""
    """Why it never has an interval; empty if its class says how it gets one, or its states do."""
    of: str = ""
    """The class, or the group of classes, that is measured against the rest, if its name is like ``recall[CLASS]``."""
    made: Metric | None = None
    """A metric of the user's own, which is copied; the settings are its own."""

    @property
    def direction(self) -> Direction | None:
        """The better direction of the value; None if there is none."""
        if self.given_direction is not None or self.metric.higher_is_better is None:
            return self.given_direction
        return "max" if self.metric.higher_is_better else "min"

    @property
    def is_registered(self) -> bool:
        """Whether the metric is of this package, which says what it takes."""
        return any(entry.metric is self.metric for entry in (*ENTRIES, *OF_CLASS.values()))

    @property
    def takes_classes(self) -> bool:
        """Whether its labels are one class for each row."""
        return self.takes not in ("soft_labels", "costs")

    @property
    def counts_classes(self) -> bool:
        """Whether it is a metric of classification, ours or of torchmetrics, that needs one class for each row."""
        is_ours_or_theirs = self.is_registered or self.metric.__module__.startswith("torchmetrics.classification")
        return is_ours_or_theirs and self.takes_classes

    @property
    def needs_matrix(self) -> bool:
        """Whether the metric holds or reads a number for each pair of classes."""
        return self.takes == "decisions" or issubclass(self.metric, (metrics.ExpectedConcern, metrics.RiskCoverageArea))

    def make(self, num_classes: int, **given: Any) -> Metric:
        """Make the metric for C classes.

        Args:
            num_classes: C.
            **given: Settings of the surroundings, such as ``concern`` or ``k``. Those that the metric does not have are
                left out; the entry's own settings win.

        Raises:
            ValueError: If a setting breaks a rule of the metric.
        """
        if self.made is not None:
            return deepcopy(self.made)
        around = {"num_classes": num_classes, **_OF_INPUT.get(self.takes, {}), **given}
        known = settings_of(self.metric)
        return self.metric(**{**{name: value for name, value in around.items() if name in known}, **self.settings})

    def value(self, metric: Metric) -> float:
        """Return the value of a metric that this entry has made."""
        computed = metric.compute()
        number = computed[self.key] if self.key is not None else computed
        if not isinstance(number, Tensor | float | int) or (isinstance(number, Tensor) and number.numel() != 1):
            what = f"shape {tuple(number.shape)}" if isinstance(number, Tensor) else f"a {type(number).__name__}"
            raise ValueError(f"metric {self.name} must compute a scalar to be recorded, but has {what}.")
        return int(number) if self.is_count else float(number)


def find_entry(text: str) -> MetricEntry:
    """Return the entry of a registered name, or make one for the import path of a `Metric` of the user's own.

    Raises:
        ValueError: If it is neither.
    """
    if text in BY_NAME:
        return BY_NAME[text]
    name, _, of = text.partition("[")
    if name in OF_CLASS and of.endswith("]"):
        return replace(OF_CLASS[name], name=text, of=of[:-1], compared_as=text)
    if ":" in text:
        return entry_of_path(text)
    of_class = [f"{name}[CLASS]" for name in OF_CLASS]
    meant = did_you_mean(text, [*BY_NAME, *of_class])
    known = "metrics have a name of `mpcs metrics`" if meant else f"metrics are {', '.join([*BY_NAME, *of_class])}"
    rule = f"{known}, or [name=]package.module:Class(setting=value)"
    raise ValueError(f"{rule}, but got {quoted(text)}{f': {meant}' if meant else '.'}")


def entry_of_path(path: str) -> MetricEntry:
    """Make an entry for ``package.module:Class``, ``package.module:Class(setting=value)`` or ``name=...`` of these.

    Its name is that of its class, unless one is given, and it takes probabilities. A value of a setting is a number, a
    quoted text, True, False, None, or any other word as text.

    Raises:
        ValueError: If the path does not name a torchmetrics `Metric`, or settings are written in another way.
    """
    given_name, _, path = path.partition("=") if "=" in path.partition(":")[0] else ("", "", path)
    where, _, given = path.removesuffix(")").partition("(")
    metric = import_attribute(where)
    if not (isinstance(metric, type) and issubclass(metric, Metric)):
        raise ValueError(f"path must name a torchmetrics Metric class, but {quoted(path)} names {quoted(metric)}.")
    pairs = [pair.partition("=") for pair in given.split(",")] if given else []
    if bool(given) != path.endswith(")") or not all(setting.strip().isidentifier() for setting, _, _ in pairs):
        raise ValueError(f"settings must be written as Class(setting=value), but got {quoted(path)}.")
    settings = {setting.strip(): _value_of(value.strip()) for setting, _, value in pairs}
    name = given_name.strip() or metric.__name__
    return MetricEntry(name, metric, _takes_of(metric), settings, compared_as=name)


def entry_of_metric(metric: Metric, name: str | None = None) -> MetricEntry:
    """Make an entry for a metric that the user has made; its name is that of its class, unless one is given."""
    kind = type(metric)
    takes = next((entry.takes for entry in ENTRIES if entry.metric is kind), _takes_of(kind))
    if takes == "probabilities" and getattr(metric, "from_logits", False):
        takes = "log_probabilities"  # which are logits, too
    name = kind.__name__ if name is None else name
    return MetricEntry(name, kind, takes, made=metric, compared_as=name)


def _takes_of(metric: type[Metric]) -> Takes:
    """Return what a metric that is not registered takes; the names of torchmetrics say which are for two classes."""
    return "positive" if metric.__name__.startswith("Binary") else "probabilities"


def _value_of(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def settings_of(metric: type[Metric]) -> frozenset[str]:
    """Return the names of the settings that a metric's constructor has."""
    parameters = inspect.signature(metric.__init__).parameters.values()
    return frozenset(
        p.name for p in parameters if p.name != "self" and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    )


_MEASURED = ("measured_geometric_accuracy", "measured_decisiveness", "measured_robustness")
_SOFT = {"soft_precision": metrics.SoftPrecision, "soft_recall": metrics.SoftRecall, "soft_f1": metrics.SoftF1}

ENTRIES = (
    # Decisions: one confusion matrix serves them all.
    MetricEntry(
        "accuracy",
        metrics.Accuracy,
        "decisions",
        section="main",
        compared_as="accuracy",
        repeats="misclassification_rate",
    ),
    MetricEntry(
        "misclassification_rate",
        metrics.WeightedErrorRate,
        "decisions",
        section="main",
        group_rank=2,
        in_group_tables=True,
        compared_as="rate of wrong decisions",
    ),
    MetricEntry("dangerous", metrics.DangerousErrors, "decisions", is_count=True, section="concern"),
    MetricEntry(
        "dangerous_rate",
        metrics.DangerousErrors,
        "decisions",
        {"normalize": "samples"},
        section="concern",
        group_rank=0,
        in_group_tables=True,
        compared_as="rate of dangerous errors",
    ),
    MetricEntry(
        "selective_dangerous_rate",
        metrics.DangerousErrors,
        "decisions",
        {"normalize": "decided"},
        section="concern",
        is_of_referrals=True,
        in_group_tables=True,
    ),
    MetricEntry(
        "coverage",
        metrics.Coverage,
        "decisions",
        section="concern",
        is_of_referrals=True,
        in_group_tables=True,
        compared_as="coverage",
    ),
    MetricEntry(
        "selective_accuracy",
        metrics.SelectiveAccuracy,
        "decisions",
        section="concern",
        is_of_referrals=True,
        in_group_tables=True,
    ),
    MetricEntry(
        "mean_concern",
        metrics.ExpectedConcern,
        "decisions",
        {"normalize": False},
        section="concern",
        is_of_referrals=True,
        in_group_tables=True,
        compared_as="mean concern",
    ),
    MetricEntry("destructive_rate", metrics.DangerousErrors, "decisions", {"normalize": "errors"}, section="concern"),
    MetricEntry(
        "balanced_error_rate", metrics.BalancedErrorRate, "decisions", in_group_tables=True, undefined="absent"
    ),
    MetricEntry("f1_macro", metrics.MacroF1, "decisions"),
    MetricEntry("mcc", metrics.MatthewsCorrelation, "decisions"),
    MetricEntry("micro_precision", metrics.MicroPrecision, "decisions", is_default=False),
    MetricEntry("micro_recall", metrics.MicroRecall, "decisions", is_default=False),
    MetricEntry("micro_fscore", metrics.MicroFScore, "decisions", undefined="either", is_default=False),
    MetricEntry("macro_precision", metrics.MacroPrecision, "decisions", undefined="unpredicted"),
    MetricEntry("macro_recall", metrics.MacroRecall, "decisions", undefined="absent", is_default=False),
    MetricEntry("macro_fscore", metrics.MacroFScore, "decisions", undefined="either"),
    MetricEntry("balanced_accuracy", metrics.MacroRecall, "decisions", undefined="absent", is_default=False),
    MetricEntry(
        "quadratic_weighted_kappa",
        MulticlassCohenKappa,
        "decisions",
        {"weights": "quadratic"},
        is_default=False,
        compared_as="quadratic weighted kappa",
    ),
    MetricEntry("average_accuracy", metrics.AverageAccuracy, "decisions", is_default=False),
    MetricEntry("error_rate", metrics.ErrorRate, "decisions", is_default=False),
    MetricEntry("weighted_error_rate", metrics.WeightedErrorRate, "decisions", is_default=False),
    # Probabilities.
    MetricEntry(
        "mpcs",
        metrics.MetaPatternConcernScore,
        "probabilities",
        section="main",
        group_rank=1,
        in_group_tables=True,
        compared_as="MPCS",
    ),
    MetricEntry(
        "mpcs_count", metrics.MetaPatternConcernScore, "probabilities", {"correct_concern": "count"}, is_default=False
    ),
    MetricEntry(
        "expected_concern",
        metrics.ExpectedConcern,
        "decisions",
        section="concern",
        in_group_tables=True,
        compared_as="expected concern",
        undefined="constant",
    ),
    MetricEntry(
        "least_concern_cost",
        metrics.ExpectedConcern,
        "probabilities",
        {"decision": "least_concern"},
        section="concern",
        undefined="constant",
    ),
    MetricEntry(
        "risk_coverage_area",
        metrics.RiskCoverageArea,
        "probabilities",
        is_default=False,
        no_interval="no valid method is known",
    ),
    MetricEntry(
        "cross_entropy", metrics.CrossEntropy, "log_probabilities", in_group_tables=True, undefined="probability 0"
    ),
    MetricEntry("brier_score", metrics.BrierScore, "probabilities"),
    MetricEntry("mean_squared_error", metrics.BrierScore, "probabilities", {"over_classes": "mean"}, is_default=False),
    MetricEntry("geometric_accuracy", metrics.GeometricAccuracy, "probabilities"),
    MetricEntry("decisiveness", metrics.Decisiveness, "probabilities"),
    MetricEntry("robustness", metrics.Robustness, "probabilities"),
    *(
        MetricEntry(
            "calibration_slope" if key == "slope" else key,
            metrics.ProbabilityAccuracy,
            "probabilities",
            {"cells": 20_000},
            key=key,
            given_direction=None if key == "slope" else "max",
            no_interval="it is computed from bins of probabilities, which leaving out rows would make noisier",
        )
        for key in (*_MEASURED, "slope")
    ),
    # Soft labels.
    *(
        MetricEntry(
            f"{name}_{average}",
            metric,
            "soft_labels",
            {"average": average},
            group_rank=0 if (name, average) == ("soft_f1", "macro") else None,
            in_group_tables=average == "macro" or name == "soft_f1",
            compared_as="macro soft F1" if (name, average) == ("soft_f1", "macro") else "",
        )
        for name, metric in _SOFT.items()
        for average in ("micro", "macro", "weighted")
    ),
    *(
        MetricEntry(f"hard_f1_{average}", metrics.HardF1, "soft_labels", {"average": average})
        for average in ("micro", "macro")
    ),
    MetricEntry(
        "soft_kl_divergence",
        metrics.SoftKLDivergence,
        "soft_labels",
        {"epsilon": 1e-7},
        in_group_tables=True,
        compared_as="divergence",
    ),
    # Costs of each row.
    MetricEntry("mean_cost", metrics.RowCost, "costs", section="main", in_group_tables=True, compared_as="mean cost"),
    MetricEntry(
        "regret",
        metrics.RowCost,
        "costs",
        {"regret": True},
        section="main",
        in_group_tables=True,
        compared_as="regret",
        repeats="mean_cost",
    ),
    # Trials of a detector.
    MetricEntry("equal_error_rate", metrics.EqualErrorRate, "trials"),
    MetricEntry("min_detection_cost", metrics.MinDetectionCost, "trials", {"points": OperatingPoint(0.5)}),
    MetricEntry("actual_detection_cost", metrics.ActualDetectionCost, "trials", {"points": OperatingPoint(0.5)}),
    MetricEntry("half_total_error_rate", metrics.HalfTotalErrorRate, "trials"),
    MetricEntry("cllr", metrics.Cllr, "trials"),
    MetricEntry("min_cllr", metrics.MinCllr, "trials"),
    MetricEntry("partial_auc", metrics.PartialAUC, "trials"),
    MetricEntry("h_measure", metrics.HMeasure, "trials"),
    MetricEntry("miss_at_false_alarm", metrics.MissAtFalseAlarm, "trials", {"p_fa": 0.01}),
    MetricEntry("false_alarm_at_miss", metrics.FalseAlarmAtMiss, "trials", {"p_miss": 0.01}),
    MetricEntry("precision_recall_break_even", metrics.PrecisionRecallBreakEven, "trials"),
)
BY_NAME: Mapping[str, MetricEntry] = {entry.name: entry for entry in ENTRIES}
OF_CLASS: Mapping[str, MetricEntry] = {
    "auroc": MetricEntry("auroc[CLASS]", ClassAUROC, "probabilities", undefined="absent", in_group_tables=True),
    **{
        name: MetricEntry(
            f"{name}[CLASS]",
            ClassRate,
            "decisions",
            {"rate": rate},
            in_group_tables=True,
            undefined="unpredicted" if rate == "precision" else "absent",
        )
        for name, rate in {
            "recall": "recall",
            "sensitivity": "recall",
            "specificity": "specificity",
            "precision": "precision",
        }.items()
    },
}
"""Of one class, or of a group of classes that a concern names, against the rest: by what stands before its name."""
