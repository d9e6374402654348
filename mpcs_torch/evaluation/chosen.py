"""The metrics that classifiers are evaluated by."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torchmetrics import Metric

from mpcs_torch.concern import ConcernRange, ConcernSpec
from mpcs_torch.concern.checks import MAX_MATRIX_CLASSES
from mpcs_torch.errors import did_you_mean, quoted
from mpcs_torch.evaluation.metric_states import OfRows, takes_weights
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.evaluation.scores import sections_of
from mpcs_torch.functional.inputs.decisions import flatten_decisions
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.probabilities import flatten_samples, scale_of
from mpcs_torch.functional.inputs.soft_labels import flatten_soft, shares_of
from mpcs_torch.metrics.additive import AdditiveMetric
from mpcs_torch.metrics.concern.mpcs import MetaPatternConcernScore
from mpcs_torch.metrics.metric_set import MetricSet
from mpcs_torch.metrics.register import ENTRIES, MetricEntry, Takes, entry_of_metric, find_entry

Metrics = Sequence[str | MetricEntry | Metric] | Mapping[str, str | MetricEntry | Metric | Callable[[Rows], Any]]

SHARES = (
    "Soft labels are shares of annotators: a row counts for each class by its share, and as one row, whose annotators "
    "are not independent. Metrics of degrees of truth, such as soft_f1_macro, are measured if they are named."
)
DEGREES = (
    "Soft labels are degrees of truth. With a concern, or with named metrics of classes, such as "
    "misclassification_rate, they are shares of annotators, with the sum 1."
)


class ChosenMetrics(NamedTuple):
    """Metrics, ready to be made."""

    entries: tuple[MetricEntry, ...]
    num_classes: int
    concern: ConcernSpec | None
    settings: Mapping[str, Any]
    is_soft: bool
    """Whether the labels are soft."""
    is_decided: bool = False
    """Whether predictions are decisions."""
    refers: bool = False
    """Whether these may be referrals or coarse answers."""
    is_weighted: bool = False
    """Whether rows have weights."""
    has_costs: bool = False
    """Whether each row has costs of decisions."""
    ranges: ConcernRange | None = None
    """The set of costs of which the concern is the middle; None if costs are known, or decisions have none."""
    class_names: Sequence[str] = ()

    @property
    def decision_names(self) -> list[str]:
        """The classes, and where rows may be referred the coarse answers, and a referral."""
        answers = () if self.concern is None else self.concern.answers
        return [*self.class_names, *([*(name for name, _ in answers), "referred"] if self.refers else [])]

    @property
    def further(self) -> int:
        """The number of decisions in addition to the classes."""
        return len(self.decision_names) - len(self.class_names)

    @property
    def has_shares(self) -> bool:
        """Whether soft labels are the shares of annotators for each class, because metrics count classes."""
        return self.is_soft and any(entry.takes_classes for entry in self.entries)

    @property
    def weighs(self) -> bool:
        """Whether metrics are given weights: those of rows, or shares."""
        return self.is_weighted or self.has_shares

    def make(self, *, additive: bool) -> MetricSet:
        """Make those metrics whose value is a function of sums, or the others; refuse settings that break a rule."""
        entries = [entry for entry in self.entries if issubclass(entry.metric, AdditiveMetric) == additive]
        return MetricSet(entries, self.num_classes, torch.device("cpu"), concern=self.concern, **self.settings)

    def checked(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Refuse bad values; return probabilities, or decisions, and labels on the CPU."""
        classes = self.num_classes
        if self.is_decided:
            decided = flatten_decisions(
                preds, target, num_classes=classes, ignore_index=None, sample_weight=None, further=self.further
            )
            if preds.ndim != 1 or preds.is_floating_point():
                raise ValueError(f"preds must be integer decisions (N,), but got {preds.dtype} {tuple(preds.shape)}.")
            raise_first(decided.find_faults())
            return preds.long().cpu().unsqueeze(1), decided.labels.target.cpu()
        shares: Tensor | None = None
        if self.is_soft:
            soft = flatten_soft(preds, target, num_classes=classes, sample_weight=None, ignore=None)
            raise_first(soft.find_faults()[: 1 if self.has_shares else None])
            if not self.has_shares:
                return soft.predicted.double().cpu(), soft.actual.double().cpu()
            shares, fault = shares_of(soft.actual.double().cpu())
            raise_first([fault])
            target = shares.argmax(1).to(preds.device)  # which is a class, for the rules of probabilities
        samples = flatten_samples(
            preds, target, num_classes=classes, scale=scale_of(False), ignore_index=None, sample_weight=None
        )
        try:
            raise_first(samples.find_faults())
        except ValueError as error:  # of functions, which have more arguments
            message = (
                str(error).replace("pass from_logits=True", "take logits.softmax(1)").replace(" (or ignore_index)", "")
            )
            raise ValueError(message) from None
        return samples.scores.detach().double().cpu(), samples.labels.target.cpu() if shares is None else shares

    def notes(self, *, is_default: bool) -> list[str]:
        """Return which metrics were left out, and why, unless they were named."""
        if not is_default:
            return []
        notes = []
        if self.weighs:
            given = "weights" if self.is_weighted else "shares of annotators"
            notes.append(f"metrics that take no {given}, such as measured probabilities, are left out")
        if self.refers and not _has_referral_cost(self.concern):
            notes.append("costs are left out: decisions may be referrals, for which the concern has no cost (refer)")
        elif not self.refers and has_free_errors(self.concern):
            notes.append("mpcs is left out: it divides by weights, and the concern has weights of 0")
        if self.num_classes > MAX_MATRIX_CLASSES and (self.has_shares or not self.is_soft):
            left_out = "metrics of pairs of classes, such as accuracy, are left out"
            notes.append(f"more than {MAX_MATRIX_CLASSES} classes: {left_out}")
        return notes


def choose_metrics(
    class_names: Sequence[str],
    concern: ConcernSpec | ConcernRange | None,
    entries: Sequence[MetricEntry] | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    is_soft: bool = False,
    is_decided: bool = False,
    refers: bool = False,
    is_weighted: bool = False,
    has_costs: bool = False,
) -> ChosenMetrics:
    """Choose the requested metrics, or all that the labels allow; arguments are those of `Evaluation`."""
    ranges = concern if isinstance(concern, ConcernRange) and not concern.is_known else None
    concern = concern.middle if isinstance(concern, ConcernRange) else concern
    num_classes = len(class_names)
    has_shares = is_soft and needs_classes(concern, entries)
    if is_decided and is_soft:
        raise ValueError("has soft labels, but decisions need one class for each row")
    if entries is None and refers:
        is_priced = _has_referral_cost(concern)
        # Costs are those of the concern (mean_concern), not relative to a decision that is always the same.
        allowed = [
            entry
            for entry in ENTRIES
            if takes_referrals(entry)
            and entry.is_default
            and entry.undefined != "constant"
            and (is_priced or not getattr(entry.metric, "needs_referral_cost", False))
        ]
    elif entries is None:
        takes: set[Takes] = {"decisions"} if has_shares or not is_soft else {"soft_labels"}
        takes |= set() if is_decided or "soft_labels" in takes else {"probabilities", "log_probabilities"}
        is_without_mpcs = has_free_errors(concern)
        allowed = [
            entry
            for entry in ENTRIES
            if entry.takes in takes
            and entry.is_default
            and not entry.is_of_referrals
            and not (is_without_mpcs and entry.metric is MetaPatternConcernScore)
            and not (num_classes > MAX_MATRIX_CLASSES and entry.needs_matrix)
        ]
    if entries is None:
        allowed += [entry for entry in ENTRIES if entry.takes == "costs" and has_costs]
        allowed = [
            entry for entry in allowed if not (is_weighted or has_shares) or takes_weights(entry.make(num_classes))
        ]
        entries = in_order(allowed, has_concern=concern is not None)
    entries = [_of_class(entry, class_names, concern) if entry.of else entry for entry in entries]
    given: Takes | None = "soft_labels" if is_soft else "decisions" if is_decided else None
    if given is not None:  # metrics of others take what there is
        is_fixed = [each.is_registered or (is_soft and each.counts_classes) for each in entries]
        entries = [each if fixed else replace(each, takes=given) for each, fixed in zip(entries, is_fixed, strict=True)]
    wrong = [entry.name for entry in entries if entry.takes == "soft_labels" and not is_soft]
    if wrong:
        raise ValueError(f"has one class for each row, but {', '.join(wrong)} must have soft labels")
    of_costs = [entry.name for entry in entries if entry.takes == "costs"]
    if bool(of_costs) != has_costs:
        lacks = "has costs of rows, but no metric takes them: mean_cost and regret do"
        raise ValueError(f"has no costs of rows, but {', '.join(of_costs)} must have them" if of_costs else lacks)
    unscored = [entry.name for entry in entries if is_decided and entry.takes not in ("decisions", "costs")]
    unfit = unscored or [entry.name for entry in entries if refers and not takes_referrals(entry)]
    if unfit:
        if unscored:
            raise ValueError(
                f"has predicted labels alone, but {', '.join(unfit)} must have the probability of each class"
            )
        counted = "neither right nor wrong by them; coverage, selective_accuracy and dangerous_rate count it"
        beside = "rates of a class, such as precision[CLASS] and error_rate[CLASS], are always measured"
        has, needs = "referrals or coarse answers among its decisions", "must have a class for each row"
        raise ValueError(f"has {has}, but {', '.join(unfit)} {needs}: a referral is {counted}, and {beside}")
    weighed = entries if is_weighted else [entry for entry in entries if has_shares and entry.takes_classes]
    unweighted = [entry.name for entry in weighed if not takes_weights(entry.make(num_classes))]
    if unweighted or (weighed and ranges is not None):
        has = "weights of rows" if is_weighted else "soft labels, which are shares of annotators"
        needs = "costs must be known, not ranges" if ranges is not None else f"{', '.join(unweighted)} takes none"
        raise ValueError(f"has {has}, but {needs}")
    large = [entry.name for entry in entries if num_classes > MAX_MATRIX_CLASSES and entry.needs_matrix]
    if large:
        rule = f"must have at most {MAX_MATRIX_CLASSES} classes for {', '.join(large)}"
        raise ValueError(f"{rule}, but has {num_classes}")
    ranges = None if refers and not _has_referral_cost(concern) else ranges
    kinds = is_soft, is_decided, refers, is_weighted, has_costs
    return ChosenMetrics(tuple(entries), num_classes, concern, settings or {}, *kinds, ranges, tuple(class_names))


def needs_classes(concern: object, entries: Sequence[MetricEntry] | None) -> bool:
    """Return whether metrics count classes, so that soft labels are shares of annotators for these.

    Metrics of others that count no classes, such as those of torchmetrics.regression, take soft labels as they are.
    """
    if entries is None:
        return concern is not None
    return any(entry.counts_classes for entry in entries)


def _of_class(entry: MetricEntry, class_names: Sequence[str], concern: ConcernSpec | None) -> MetricEntry:
    """Return the entry with the indices of the class, or of the group of classes, that its name has in brackets."""
    classes = {name: (label,) for label, name in enumerate(class_names)}
    known = {**classes, **dict(concern.class_groups if concern is not None else ())}
    if entry.of not in known:
        meant = did_you_mean(entry.of, known)
        rule = f"{entry.name} must name a class, or a group of classes of a concern"
        raise ValueError(f"{rule}: {meant or f'they are {quoted(list(known))}.'}")
    return replace(entry, settings={**entry.settings, "classes": known[entry.of]})


def takes_referrals(entry: MetricEntry) -> bool:
    """Return whether a metric takes decisions that may be referrals or coarse answers."""
    return entry.takes == "decisions" and getattr(entry.metric, "takes_referrals", False)


def _has_referral_cost(concern: ConcernSpec | None) -> bool:
    return concern is not None and concern.refer is not None


def in_order(entries: Sequence[MetricEntry], *, has_concern: bool) -> list[MetricEntry]:
    """Return metrics in the order in which sections show them."""
    by_name = {entry.name: entry for entry in entries}
    return [by_name[name] for names in sections_of(entries, has_concern=has_concern) for name in names]


def has_free_errors(concern: ConcernSpec | None) -> bool:
    """Return whether an error costs nothing, so that MPCS, which divides by costs, is not defined."""
    if concern is None or concern.weights is None:  # a factor is above 0
        return False
    return bool((concern.matrix() == 0).any())


class Given:
    """The input of metrics for some rows: predictions in the form of each metric, labels and weights."""

    def __init__(self, rows: Rows, takes: AbstractSet[Takes]) -> None:
        self.rows, self._inputs = rows, inputs_of(rows.probs, takes)

    @property
    def decisions(self) -> Tensor:
        """(n,): of each row."""
        return self._inputs["decisions"]

    @cached_property
    def _by_class(self) -> tuple[Tensor | slice, Tensor, Tensor | None]:
        return self.rows.by_class()

    def of(self, takes: Takes) -> tuple[Tensor | slice, Tensor, Tensor, Tensor | None]:
        """Return which rows a metric is given, some repeatedly, with predictions, labels and weights: (m, ...) each."""
        if takes in ("soft_labels", "costs"):
            labels = self.rows.target if takes == "soft_labels" else self.rows.costs
            assert labels is not None
            return slice(None), self._inputs[takes], labels, self.rows.weights
        places, classes, weights = self._by_class
        return places, self._inputs[takes][places], classes, weights


def inputs_of(probs: Tensor, takes: AbstractSet[Takes]) -> dict[Takes, Tensor]:
    """Return the forms of probabilities (n, C), or of decisions (n, 1), that metrics take."""
    if not probs.is_floating_point():
        return {"decisions": probs[:, 0], "costs": probs[:, 0]}
    inputs = dict.fromkeys(takes, probs)
    if takes & {"decisions", "costs"}:
        inputs["decisions"] = inputs["costs"] = probs.argmax(dim=1)
    if "positive" in takes:
        if probs.shape[1] != 2:
            raise ValueError(f"a metric of two classes needs probabilities of two, but they are of {probs.shape[1]}.")
        inputs["positive"] = probs[:, 1].contiguous()
    if "log_probabilities" in takes:
        inputs["log_probabilities"] = probs.log()
    return inputs


def entries_of(metrics: Metrics) -> list[MetricEntry]:
    """Return the entries of metrics that are given in any way that `Evaluation` takes."""
    if isinstance(metrics, str | Metric | MetricEntry) or not metrics:
        raise ValueError(f"metrics must be a list, [metric], or a dictionary by name, but got {quoted(metrics)}.")
    named = metrics.items() if isinstance(metrics, Mapping) else [(None, metric) for metric in metrics]
    entries = [_entry_of(metric, name) for name, metric in named]
    repeated = [name for name, count in Counter(entry.name for entry in entries).items() if count > 1]
    if repeated:
        raise ValueError(f"metrics must have different names, as in {{'name': metric}}, but {quoted(repeated)} repeat.")
    return entries


def _entry_of(metric: Any, name: str | None) -> MetricEntry:
    if isinstance(metric, str | MetricEntry):
        entry = find_entry(metric) if isinstance(metric, str) else metric
        return entry if name is None else replace(entry, name=name)
    if isinstance(metric, Metric):
        return entry_of_metric(metric, name)
    if callable(metric) and name is not None:
        return entry_of_metric(OfRows(metric), name)
    rule = "metrics must be names or entries of the register, Metrics, or functions by name, {'name': function}"
    raise ValueError(f"{rule}, but got {quoted(metric)}.")
