"""The register of metrics: the class, settings, input and better direction of each name.

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
``"log_probabilities"``: (N, C) and labels (N,). ``"positive"``: probabilities of class 1, (N,), and labels (N,).
``"soft_labels"``: probabilities and degrees of truth, (N, C) both.
``"costs"``: predicted classes (N,), and the costs of all decisions, (N, C).
``"trials"``: scores and target or non-target labels, (N,) both; with ``num_classes``, scores (N, C) and labels (N,).
"""
Section = Literal["main", "concern", "other"]
"""The place of a metric in reports: first, first if there is a concern, or after these."""
Undefined = Literal["unpredicted", "absent", "either", "constant", "probability 0"]
"""The cause of a value of NaN or infinity: a class is never predicted, is absent, or either; a constant decision costs
nothing; or the probability of a label is 0."""
_INPUT_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "probabilities": {"from_logits": False},
    "log_probabilities": {"from_logits": True, "normalized": True},
}
"""The settings that each kind of input implies."""


@dataclass(frozen=True)
class MetricEntry:
    """A registered metric: its class, settings and role in reports."""

    name: str
    metric: type[Metric]
    takes: Takes
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Constructor arguments other than those that data and input determine."""
    key: str | None = None
    """The key of the value if the metric computes a dictionary."""
    is_count: bool = False
    """Whether the value is a whole number."""
    given_direction: Direction | None = None
    """The better direction, if the class does not define it."""
    section: Section = "other"
    is_default: bool = True
    """Whether it is measured by default: False if it is redundant."""
    is_of_referrals: bool = False
    """Whether it is informative only with referrals; then it is a default only with these."""
    group_rank: int | None = None
    """The sort priority for groups: they are sorted by the measured metric of lowest rank, ties by the next."""
    in_group_tables: bool = False
    compared_as: str = ""
    """Its name in sentences; empty if models are not compared by it."""
    repeats: str = ""
    """The name of a metric with an equivalent difference between models."""
    undefined: Undefined | None = None
    no_interval: str = ""
    """The reason why it has no interval; empty if its class or its states define one."""
    of: str = ""
    """The class or group of classes of a one-vs-rest name such as ``recall[CLASS]``."""
    made: Metric | None = None
    """An instance passed in by the user, which is copied with its settings."""

    @property
    def direction(self) -> Direction | None:
        """The better direction of the value; None if neither is better."""
        if self.given_direction is not None or self.metric.higher_is_better is None:
            return self.given_direction
        return "max" if self.metric.higher_is_better else "min"

    @property
    def is_registered(self) -> bool:
        """Whether the metric is registered here, so its kind of input is known."""
        return any(entry.metric is self.metric for entry in (*ENTRIES, *OF_CLASS.values()))

    @property
    def takes_classes(self) -> bool:
        """Whether its labels are class indices."""
        return self.takes not in ("soft_labels", "costs")

    @property
    def counts_classes(self) -> bool:
        """Whether it is a classification metric, of this package or torchmetrics, with class indices as labels."""
        is_classification = self.is_registered or self.metric.__module__.startswith("torchmetrics.classification")
        return is_classification and self.takes_classes

    @property
    def needs_matrix(self) -> bool:
        """Whether the metric needs a (C, C) matrix."""
        return self.takes == "decisions" or issubclass(self.metric, (metrics.ExpectedConcern, metrics.RiskCoverageArea))

    def make(self, num_classes: int, **shared: Any) -> Metric:
        """Create the metric for C classes.

        Args:
            num_classes: C.
            **shared: Settings for all metrics, e.g. ``concern`` or ``k``. Settings that the metric lacks are ignored;
                those of the entry take precedence.

        Raises:
            ValueError: If a setting breaks a rule of the metric.
        """
        if self.made is not None:
            return deepcopy(self.made)
        available = {"num_classes": num_classes, **_INPUT_SETTINGS.get(self.takes, {}), **shared}
        accepted = settings_of(self.metric)
        arguments = {name: value for name, value in available.items() if name in accepted}
        return self.metric(**{**arguments, **self.settings})

    def value(self, metric: Metric) -> float:
        """Return the value of a metric that `make` returned."""
        computed = metric.compute()
        number = computed[self.key] if self.key is not None else computed
        if not isinstance(number, Tensor | float | int) or (isinstance(number, Tensor) and number.numel() != 1):
            actual = f"shape {tuple(number.shape)}" if isinstance(number, Tensor) else f"a {type(number).__name__}"
            raise ValueError(f"metric {self.name} must compute a scalar to be recorded, but has {actual}.")
        return int(number) if self.is_count else float(number)


def find_entry(text: str) -> MetricEntry:
    """Return the entry of a registered name, or create one for the import path of a user's `Metric`.

    Raises:
        ValueError: If the text is neither.
    """
    if text in BY_NAME:
        return BY_NAME[text]
    name, _, of = text.partition("[")
    if name in OF_CLASS and of.endswith("]"):
        return replace(OF_CLASS[name], name=text, of=of[:-1], compared_as=text)
    if ":" in text:
        return entry_of_path(text)
    names = [*BY_NAME, *(f"{name}[CLASS]" for name in OF_CLASS)]
    suggestion = did_you_mean(text, names)
    known = "metrics have a name of `mpcs metrics`" if suggestion else f"metrics are {', '.join(names)}"
    rule = f"{known}, or [name=]package.module:Class(setting=value)"
    raise ValueError(f"{rule}, but got {quoted(text)}{f': {suggestion}' if suggestion else '.'}")


def entry_of_path(path: str) -> MetricEntry:
    """Create an entry for ``package.module:Class`` or ``package.module:Class(setting=value)``, or ``name=`` before it.

    The default name is that of the class; the input is probabilities. Setting values are parsed as Python literals, and
    otherwise taken as text.

    Raises:
        ValueError: If the path is not that of a torchmetrics `Metric`, or the syntax of the settings is invalid.
    """
    custom_name, _, path = path.partition("=") if "=" in path.partition(":")[0] else ("", "", path)
    class_path, _, arguments = path.removesuffix(")").partition("(")
    metric = import_attribute(class_path)
    if not (isinstance(metric, type) and issubclass(metric, Metric)):
        raise ValueError(f"path must name a torchmetrics Metric class, but {quoted(path)} names {quoted(metric)}.")
    pairs = [pair.partition("=") for pair in arguments.split(",")] if arguments else []
    if bool(arguments) != path.endswith(")") or not all(setting.strip().isidentifier() for setting, _, _ in pairs):
        raise ValueError(f"settings must be written as Class(setting=value), but got {quoted(path)}.")
    settings = {setting.strip(): _value_of(value.strip()) for setting, _, value in pairs}
    name = custom_name.strip() or metric.__name__
    return MetricEntry(name, metric, _takes_of(metric), settings, compared_as=name)


def entry_of_metric(metric: Metric, name: str | None = None) -> MetricEntry:
    """Create an entry for a metric instance; the default name is that of its class."""
    kind = type(metric)
    takes = next((entry.takes for entry in ENTRIES if entry.metric is kind), _takes_of(kind))
    if takes == "probabilities" and getattr(metric, "from_logits", False):
        takes = "log_probabilities"  # log-probabilities are valid logits
    name = kind.__name__ if name is None else name
    return MetricEntry(name, kind, takes, made=metric, compared_as=name)


def _takes_of(metric: type[Metric]) -> Takes:
    """Return the input of an unregistered metric; torchmetrics names binary metrics ``Binary...``."""
    return "positive" if metric.__name__.startswith("Binary") else "probabilities"


def _value_of(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def settings_of(metric: type[Metric]) -> frozenset[str]:
    """Return the names of the parameters of a metric's constructor."""
    parameters = inspect.signature(metric.__init__).parameters.values()
    return frozenset(
        p.name for p in parameters if p.name != "self" and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    )


_MEASURED = ("measured_geometric_accuracy", "measured_decisiveness", "measured_robustness")
_SOFT = {"soft_precision": metrics.SoftPrecision, "soft_recall": metrics.SoftRecall, "soft_f1": metrics.SoftF1}

ENTRIES = (
    # Decisions.
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
    # Row-wise costs.
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
"""One-vs-rest metrics of a class, or of a group that a concern names, by the name before the bracket."""
