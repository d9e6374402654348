"""The register of metrics: for each name the class, its settings, its input, and whether higher or lower is better.

The trainer, ``mpcs score``, ``mpcs select``, tests and documentation read it. To add a metric, add one line here.
"""

import ast
import inspect
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
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
"""The kind of input of a metric, which decides the arguments of its ``update``.

``"decisions"``: predicted classes (N,) and labels (N,). ``"probabilities"``: (N, C) and labels (N,).
``"log_probabilities"``: (N, C) and labels (N,). ``"positive"``: probabilities of class 1, (N,), and labels (N,).
``"soft_labels"``: probabilities and degrees of truth, (N, C) both.
``"costs"``: predicted classes (N,), and the costs of all decisions, (N, C).
``"trials"``: scores and target or non-target labels, (N,) both; with ``num_classes``, scores (N, C) and labels (N,).
"""
Section = Literal["main", "concern", "other"]
"""The section of a metric in reports: ``"main"`` comes first, as does ``"concern"`` if costs of errors are known."""
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
    """A named metric: its class, its settings and its role in reports."""

    name: str
    metric: type[Metric]
    takes: Takes
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The constructor arguments, without those that the data and the kind of input determine."""
    key: str | None = None
    """The key of the value in the dictionary that the metric computes; None if it computes a tensor."""
    is_count: bool = False
    """Whether the value is a count, a whole number."""
    given_direction: Direction | None = None
    """The direction that is better (``"min"`` or ``"max"``), if the class of the metric does not define it."""
    section: Section = "other"
    is_default: bool = True
    """Whether the metric is measured by default; False if it is redundant."""
    is_of_referrals: bool = False
    """Whether the metric is about referrals, so that it is measured by default only if samples are referred."""
    group_rank: int | None = None
    """The rank, from 0, of the metric as a key that sorts groups of samples: ties are sorted by the next rank."""
    in_group_tables: bool = False
    compared_as: str = ""
    """The name of the metric in sentences that compare models; empty if no sentence compares them by this metric."""
    repeats: str = ""
    """The name of a metric whose difference between two models is the same, up to the sign; empty if there is none."""
    undefined: Undefined | None = None
    no_interval: str = ""
    """The reason why the metric has no interval; empty if its class or its states define an interval."""
    of: str = ""
    """The class or group of classes in the brackets of a one-vs-rest name such as ``recall[CLASS]``."""
    made: Metric | None = None
    """A metric instance that the user passed, to be copied with its settings; else None."""

    @property
    def direction(self) -> Direction | None:
        """``"min"`` if lower values are better, ``"max"`` if higher values are; None if neither is better."""
        if self.given_direction is not None or self.metric.higher_is_better is None:
            return self.given_direction
        return "max" if self.metric.higher_is_better else "min"

    @property
    def is_registered(self) -> bool:
        """Whether the class of the metric is in this register, so that its kind of input is known."""
        return any(entry.metric is self.metric for entry in (*ENTRIES, *OF_CLASS.values()))

    @property
    def takes_classes(self) -> bool:
        """Whether the targets of the metric are class indices."""
        return self.takes not in ("soft_labels", "costs")

    @property
    def counts_classes(self) -> bool:
        """Whether this is a classification metric of this package or torchmetrics whose targets are class indices."""
        is_classification = self.is_registered or self.metric.__module__.startswith("torchmetrics.classification")
        return is_classification and self.takes_classes

    @property
    def needs_matrix(self) -> bool:
        """Whether measuring the metric takes a (C, C) matrix, which is too large if there are many classes."""
        return self.takes == "decisions" or issubclass(self.metric, (metrics.ExpectedConcern, metrics.RiskCoverageArea))

    def make(self, num_classes: int, **shared: Any) -> Metric:
        """Create the metric; ``shared`` are settings for all metrics, ``concern`` for example.

        Shared settings that this metric does not have are ignored. The entry's own ``settings`` take precedence.
        """
        if self.made is not None:
            return deepcopy(self.made)
        available = {"num_classes": num_classes, **_INPUT_SETTINGS.get(self.takes, {}), **shared}
        accepted = accepted_settings(self.metric)
        arguments = {name: value for name, value in available.items() if name in accepted}
        return self.metric(**{**arguments, **self.settings})

    def value(self, metric: Metric) -> float:
        """Return the value of ``metric``, an instance that `make` returned, as a number."""
        computed = metric.compute()
        number = computed[self.key] if self.key is not None else computed
        if not isinstance(number, Tensor | float | int) or (isinstance(number, Tensor) and number.numel() != 1):
            actual = f"shape {tuple(number.shape)}" if isinstance(number, Tensor) else f"a {type(number).__name__}"
            raise ValueError(f"metric {self.name} must compute a scalar to be recorded, but has {actual}.")
        return int(number) if self.is_count else float(number)


def find_entry(text: str) -> MetricEntry:
    """Return the entry with the name ``text``, or create an entry if ``text`` is the import path of a user's `Metric`.

    Raises:
        ValueError: If ``text`` is neither a name of an entry nor an import path of a `Metric`.
    """
    if text in BY_NAME:
        return BY_NAME[text]
    name, _, of = text.partition("[")
    if name in OF_CLASS and of.endswith("]"):
        return replace(OF_CLASS[name], name=text, of=of[:-1], compared_as=text)
    if ":" in text:
        return entry_of_path(text)
    names = [*BY_NAME, *(f"{name}[CLASS]" for name in OF_CLASS)]
    suggestion = f"did you mean {text}[CLASS]?" if text in OF_CLASS else did_you_mean(text, names)
    known = "metrics have a name of `mpcs metrics`" if suggestion else f"metrics are {', '.join(names)}"
    rule = f"{known}, or [name=]package.module:Class(setting=value)"
    raise ValueError(f"{rule}, but got {quoted(text)}{f': {suggestion}' if suggestion else '.'}")


def entry_of_path(path: str) -> MetricEntry:
    """Create an entry for ``[name=]package.module:Class`` or ``[name=]package.module:Class(setting=value)``.

    The default name is that of the class. A metric class named ``Binary...`` takes the probabilities of class 1, any
    other those of all classes. The value of a setting is a Python literal if it can be parsed as one, otherwise text.

    Raises:
        ValueError: If ``path`` does not name a torchmetrics `Metric`, or the syntax of its settings is invalid.
    """
    custom_name, _, path = path.partition("=") if "=" in path.partition(":")[0] else ("", "", path)
    class_path, _, arguments = path.removesuffix(")").partition("(")
    metric = import_attribute(class_path)
    if not (isinstance(metric, type) and issubclass(metric, Metric)):
        raise ValueError(f"path must name a torchmetrics Metric class, but {quoted(path)} names {quoted(metric)}.")
    pairs = [pair.partition("=") for pair in arguments.split(",")] if arguments else []
    if bool(arguments) != path.endswith(")") or not all(setting.strip().isidentifier() for setting, _, _ in pairs):
        raise ValueError(f"settings must be written as Class(setting=value), but got {quoted(path)}.")
    settings = {setting.strip(): _parse_value(value.strip()) for setting, _, value in pairs}
    name = custom_name.strip() or metric.__name__
    return MetricEntry(name, metric, _guess_takes(metric), settings, compared_as=name)


def entry_of_metric(metric: Metric, name: str | None = None) -> MetricEntry:
    """Create a `MetricEntry` for a metric instance; the default name is the name of its class."""
    kind = type(metric)
    takes = next((entry.takes for entry in ENTRIES if entry.metric is kind), _guess_takes(kind))
    if takes == "probabilities" and getattr(metric, "from_logits", False):
        takes = "log_probabilities"  # log-probabilities are also logits
    name = kind.__name__ if name is None else name
    return MetricEntry(name, kind, takes, made=metric, compared_as=name)


def _guess_takes(metric: type[Metric]) -> Takes:
    """Guess the kind of input of an unregistered metric by its name, which is ``Binary...`` for binary metrics."""
    return "positive" if metric.__name__.startswith("Binary") else "probabilities"


def _parse_value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def accepted_settings(metric: type[Metric]) -> frozenset[str]:
    """Return the names of the parameters of a metric's constructor."""
    parameters = inspect.signature(metric.__init__).parameters.values()
    return frozenset(
        p.name for p in parameters if p.name != "self" and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    )


_decisions = partial(MetricEntry, takes="decisions")
_redundant = partial(_decisions, is_default=False)
_concern = partial(_decisions, section="concern")
_concern_in_tables = partial(_concern, in_group_tables=True)
_referrals = partial(_concern_in_tables, is_of_referrals=True)
_probabilities = partial(MetricEntry, takes="probabilities")
_soft_labels = partial(MetricEntry, takes="soft_labels")
_costs = partial(MetricEntry, takes="costs", section="main", in_group_tables=True)
_trials = partial(MetricEntry, takes="trials")
_in_bins = partial(
    _probabilities,
    metric=metrics.ProbabilityAccuracy,
    settings={"cells": 20_000},
    no_interval="it is computed from bins of probabilities, which leaving out rows would make noisier",
)
_AVERAGES = ("micro", "macro", "weighted")
_SHOWN: dict[str, Any] = {"in_group_tables": True}
_MAIN: dict[str, Any] = {"section": "main", **_SHOWN}

ENTRIES: tuple[MetricEntry, ...] = (
    _decisions("accuracy", metrics.Accuracy, section="main", compared_as="accuracy", repeats="misclassification_rate"),
    _decisions(
        "misclassification_rate",
        metrics.WeightedErrorRate,
        group_rank=2,
        compared_as="rate of wrong decisions",
        **_MAIN,
    ),
    _concern("dangerous", metrics.DangerousErrors, is_count=True),
    _concern_in_tables(
        "dangerous_rate",
        metrics.DangerousErrors,
        settings={"normalize": "samples"},
        group_rank=0,
        compared_as="rate of dangerous errors",
    ),
    _referrals("selective_dangerous_rate", metrics.DangerousErrors, settings={"normalize": "decided"}),
    _referrals("coverage", metrics.Coverage, compared_as="coverage"),
    _referrals("selective_accuracy", metrics.SelectiveAccuracy),
    _referrals("mean_concern", metrics.ExpectedConcern, settings={"normalize": False}, compared_as="mean concern"),
    _concern("destructive_rate", metrics.DangerousErrors, settings={"normalize": "errors"}),
    _decisions("balanced_error_rate", metrics.BalancedErrorRate, undefined="absent", **_SHOWN),
    _decisions("f1_macro", metrics.MacroF1),
    _decisions("mcc", metrics.MatthewsCorrelation),
    _redundant("micro_precision", metrics.MicroPrecision),
    _redundant("micro_recall", metrics.MicroRecall),
    _redundant("micro_fscore", metrics.MicroFScore, undefined="either"),
    _decisions("macro_precision", metrics.MacroPrecision, undefined="unpredicted"),
    _redundant("macro_recall", metrics.MacroRecall, undefined="absent"),
    _decisions("macro_fscore", metrics.MacroFScore, undefined="either"),
    _redundant("balanced_accuracy", metrics.MacroRecall, undefined="absent"),
    _redundant(
        "quadratic_weighted_kappa",
        MulticlassCohenKappa,
        settings={"weights": "quadratic"},
        compared_as="quadratic weighted kappa",
    ),
    _redundant("average_accuracy", metrics.AverageAccuracy),
    _redundant("error_rate", metrics.ErrorRate),
    _redundant("weighted_error_rate", metrics.WeightedErrorRate),
    _probabilities("mpcs", metrics.MetaPatternConcernScore, group_rank=1, compared_as="MPCS", **_MAIN),
    _probabilities(
        "mpcs_count", metrics.MetaPatternConcernScore, settings={"correct_concern": "count"}, is_default=False
    ),
    _concern_in_tables(
        "expected_concern", metrics.ExpectedConcern, compared_as="expected concern", undefined="constant"
    ),
    _probabilities(
        "least_concern_cost",
        metrics.ExpectedConcern,
        settings={"decision": "least_concern"},
        section="concern",
        undefined="constant",
    ),
    _probabilities(
        "risk_coverage_area", metrics.RiskCoverageArea, is_default=False, no_interval="no valid method is known"
    ),
    MetricEntry("cross_entropy", metrics.CrossEntropy, "log_probabilities", undefined="probability 0", **_SHOWN),
    _probabilities("brier_score", metrics.BrierScore),
    _probabilities("mean_squared_error", metrics.BrierScore, settings={"over_classes": "mean"}, is_default=False),
    _probabilities("geometric_accuracy", metrics.GeometricAccuracy),
    _probabilities("decisiveness", metrics.Decisiveness),
    _probabilities("robustness", metrics.Robustness),
    _in_bins("measured_geometric_accuracy", key="measured_geometric_accuracy", given_direction="max"),
    _in_bins("measured_decisiveness", key="measured_decisiveness", given_direction="max"),
    _in_bins("measured_robustness", key="measured_robustness", given_direction="max"),
    _in_bins("calibration_slope", key="slope"),
    *(
        _soft_labels(f"{name}_{average}", metric, settings={"average": average}, in_group_tables=average == "macro")
        for name, metric in {"soft_precision": metrics.SoftPrecision, "soft_recall": metrics.SoftRecall}.items()
        for average in _AVERAGES
    ),
    *(
        _soft_labels(
            f"soft_f1_{average}",
            metrics.SoftF1,
            settings={"average": average},
            in_group_tables=True,
            group_rank=0 if average == "macro" else None,
            compared_as="macro soft F1" if average == "macro" else "",
        )
        for average in _AVERAGES
    ),
    _soft_labels("hard_f1_micro", metrics.HardF1, settings={"average": "micro"}),
    _soft_labels("hard_f1_macro", metrics.HardF1, settings={"average": "macro"}),
    _soft_labels(
        "soft_kl_divergence", metrics.SoftKLDivergence, settings={"epsilon": 1e-7}, compared_as="divergence", **_SHOWN
    ),
    _costs("mean_cost", metrics.RowCost, compared_as="mean cost"),
    _costs("regret", metrics.RowCost, settings={"regret": True}, compared_as="regret", repeats="mean_cost"),
    _trials("equal_error_rate", metrics.EqualErrorRate),
    _trials("min_detection_cost", metrics.MinDetectionCost, settings={"points": OperatingPoint(0.5)}),
    _trials("actual_detection_cost", metrics.ActualDetectionCost, settings={"points": OperatingPoint(0.5)}),
    _trials("half_total_error_rate", metrics.HalfTotalErrorRate),
    _trials("cllr", metrics.Cllr),
    _trials("min_cllr", metrics.MinCllr),
    _trials("partial_auc", metrics.PartialAUC),
    _trials("h_measure", metrics.HMeasure),
    _trials("miss_at_false_alarm", metrics.MissAtFalseAlarm, settings={"p_fa": 0.01}),
    _trials("false_alarm_at_miss", metrics.FalseAlarmAtMiss, settings={"p_miss": 0.01}),
    _trials("precision_recall_break_even", metrics.PrecisionRecallBreakEven),
)
BY_NAME: Mapping[str, MetricEntry] = {entry.name: entry for entry in ENTRIES}
_RATES = {"recall": "recall", "sensitivity": "recall", "specificity": "specificity", "precision": "precision"}
OF_CLASS: Mapping[str, MetricEntry] = {
    "auroc": _probabilities("auroc[CLASS]", ClassAUROC, undefined="absent", **_SHOWN),
    **{
        name: _decisions(
            f"{name}[CLASS]",
            ClassRate,
            settings={"rate": rate},
            undefined="unpredicted" if rate == "precision" else "absent",
            **_SHOWN,
        )
        for name, rate in _RATES.items()
    },
}
"""The one-vs-rest metrics of a class, or of a named group of classes, by the name before the bracket."""
