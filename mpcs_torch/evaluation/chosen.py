"""Choose the metrics of classifiers that suit the labels and predictions."""

import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from torch import Tensor

from mpcs_torch.concern import ConcernRange, ConcernSpec
from mpcs_torch.concern.checks import MAX_MATRIX_CLASSES
from mpcs_torch.errors import InvalidValueError, did_you_mean, require
from mpcs_torch.evaluation.files.tables import to_number
from mpcs_torch.evaluation.first_screen import on_screen
from mpcs_torch.evaluation.rows import Rows, checked_scores
from mpcs_torch.functional.concern.mpcs import MetaPatternConcernScore
from mpcs_torch.functional.inputs.decisions import flatten_decisions, highest_class
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.metrics.find_entry import entry_of_metric, find_entry
from mpcs_torch.metrics.metric_entry import FAMILIES, MetricEntry, Takes
from mpcs_torch.metrics.named_metrics import ENTRIES, counts_classes, is_registered
from mpcs_torch.metrics.shared_sums import SharedSums, shared_sums

Metrics = Sequence[Any] | Mapping[str, Any]
"""Names, entries of the register and torchmetrics Metrics; or these by name, and functions of `Rows`."""

MAX_RANKED_CLASSES = 256
"""The maximum number of classes for which areas under the ROC are measured by default: all scores are kept for them."""
SHARES = (
    "Soft labels are the shares of annotators for each class: a row counts for each class by its share. Annotators of "
    "a row are not independent, so intervals count it as one row. Metrics of degrees of truth, such as soft_f1_macro, "
    "are measured if they are named."
)
DEGREES = (
    "Soft labels are degrees of truth. With a concern, or with named metrics of classes, such as "
    "misclassification_rate, they are the shares of annotators for each class, with the sum 1."
)


class ChosenMetrics(NamedTuple):
    """The chosen metrics, and the kinds of labels and predictions for which they were chosen."""

    entries: tuple[MetricEntry, ...]
    num_classes: int
    concern: ConcernSpec | None
    settings: Mapping[str, Any]
    is_soft: bool
    """Whether the labels are soft."""
    has_shares: bool
    """Whether soft labels are the shares of annotators for each class, because metrics count classes."""
    is_decided: bool
    """Whether predictions are decisions."""
    refers: bool
    """Whether decisions may be referrals (no class) or coarse answers (sets of classes)."""
    is_weighted: bool
    """Whether rows have weights."""
    has_costs: bool
    """Whether each row has costs of decisions."""
    ranges: ConcernRange | None
    """The ranges of costs, whose middle is ``concern``; None for known costs, or if referrals have no cost."""
    class_names: Sequence[str]
    is_default: bool = False
    """Whether the metrics were not named."""
    has_positions: bool = False
    """Whether samples have several positions, such as pixels; metrics that keep all scores must then be named."""

    @property
    def decision_names(self) -> list[str]:
        """The names of possible decisions: the classes and, if rows may be referred, sets of classes and "referred"."""
        names = list(self.class_names)
        if self.refers:
            answers = () if self.concern is None else self.concern.answers
            names += [name for name, _ in answers]
            names.append("referred")
        return names

    @property
    def further(self) -> int:
        """The number of possible decisions that are not a single class: sets of classes, and a referral."""
        return len(self.decision_names) - len(self.class_names)

    @property
    def weighs(self) -> bool:
        """Whether metrics get weights, which are either the weights of rows or the shares of annotators."""
        return self.is_weighted or self.has_shares

    def shared_sums(self) -> list[SharedSums]:
        """Create the chosen measures and Metrics."""
        return shared_sums(
            self.entries, self.num_classes, concern=self.concern, **self.settings
        )

    def checked(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Validate ``preds`` and ``target``, and return them on the CPU; decisions become (N, 1)."""
        classes = self.num_classes
        if self.is_decided:
            decided = flatten_decisions(
                preds,
                target,
                num_classes=classes,
                ignore_index=None,
                sample_weight=None,
                further=self.further,
            )
            if preds.is_floating_point():
                raise InvalidValueError("integer_shape", "preds", preds, shape="(N,)")
            raise_first(decided.find_faults())
            return preds.long().cpu().reshape(-1, 1), decided.labels.target.cpu()
        return checked_scores(
            preds, target, classes, is_soft=self.is_soft, has_shares=self.has_shares
        )

    def notes(self) -> list[str]:
        """Return sentences on the metrics left out, and why; empty if the user named metrics."""
        if not self.is_default:
            return []
        notes = []
        if self.has_positions:
            notes.append(
                "auroc is left out: it keeps the scores of all positions, such as pixels, in memory"
            )
        if self.weighs:
            kind = "weights" if self.is_weighted else "shares of annotators"
            notes.append(
                f"metrics that take no {kind}, such as measured probabilities, are left out"
            )
        if self.refers and self.has_costs:
            notes.append(
                "mean_cost and regret are left out: the costs of rows have none of a referral"
            )
        if self.refers and not _has_referral_cost(self.concern):
            notes.append(
                "costs are left out: decisions may be referrals, for which the concern has no cost (refer)"
            )
        elif not self.refers and has_free_errors(self.concern):
            notes.append(
                "mpcs is left out: it divides by weights, and the concern has weights of 0"
            )
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
    has_positions: bool = False,
) -> ChosenMetrics:
    """Choose the requested metrics; by default, all suitable metrics. The arguments are those of `Evaluation`.

    Raises:
        ValueError: If a requested metric does not suit the labels and predictions.
    """
    ranges: ConcernRange | None = None
    if isinstance(concern, ConcernRange):
        ranges = None if concern.is_known else concern
        concern = concern.middle
    if is_decided and is_soft:
        raise InvalidValueError("decisions_of_soft_labels")
    chosen = ChosenMetrics(
        entries=(),
        num_classes=len(class_names),
        concern=concern,
        settings=settings or {},
        is_soft=is_soft,
        has_shares=is_soft and needs_classes(concern, entries),
        is_decided=is_decided,
        refers=refers,
        is_weighted=is_weighted,
        has_costs=has_costs,
        ranges=None if refers and not _has_referral_cost(concern) else ranges,
        class_names=tuple(class_names),
        is_default=entries is None,
        has_positions=has_positions,
    )
    if entries is None:
        defaults = [entry for entry in ENTRIES if _is_default(chosen, entry)]
        entries = in_order(defaults)
    entries = [
        _class_entry(entry, class_names, concern) if entry.of_class else entry
        for entry in entries
    ]
    if is_soft or is_decided:
        # Metrics of other packages take whatever the rows have.
        takes: Takes = "soft_labels" if is_soft else "decisions"
        for place, entry in enumerate(entries):
            if not is_registered(entry) and not (is_soft and counts_classes(entry)):
                entries[place] = replace(entry, takes=takes)
    unfit = defaultdict[str, list[str]](list)
    for entry in entries:
        problem = _misfit(chosen, entry)
        if problem is not None:
            unfit[problem].append(entry.name)
    for code, names in unfit.items():  # the first rule that is broken
        raise InvalidValueError(code, metrics=", ".join(names), maximum=MAX_MATRIX_CLASSES)
    uses_costs = any(entry.takes == "costs" for entry in entries)
    are_left_out = refers and chosen.is_default
    if has_costs and not uses_costs and not are_left_out:
        raise InvalidValueError("costs_of_no_metric")
    if chosen.weighs and ranges is not None:
        raise InvalidValueError(
            "weights_of_ranges" if is_weighted else "annotators_of_ranges"
        )
    return chosen._replace(entries=tuple(entries))


def _misfit(chosen: ChosenMetrics, entry: MetricEntry) -> str | None:
    """Return the code of the rule that a metric breaks if it does not suit the rows; else None."""
    takes = entry.takes
    if takes == "soft_labels" and not chosen.is_soft:
        return "no_soft_labels"
    if takes == "costs" and not chosen.has_costs:
        return "no_costs"
    if chosen.is_decided and takes not in ("decisions", "costs"):
        return "no_probabilities"
    takes_referrals = takes == "decisions" and getattr(entry.of, "takes_referrals", False)
    if chosen.refers and not takes_referrals:
        return "has_referrals"
    is_weighed = chosen.is_weighted or (chosen.has_shares and entry.takes_classes)
    if is_weighed and not _takes_weights(entry, chosen.num_classes):
        return "has_weights" if chosen.is_weighted else "has_annotators"
    if entry.needs_matrix and chosen.num_classes > MAX_MATRIX_CLASSES:
        return "too_many_classes"
    return None


def _takes_weights(entry: MetricEntry, num_classes: int) -> bool:
    if entry.is_measure or entry.is_of_ranks:
        return bool(entry.of.takes_weights)
    # torchmetrics takes seconds to import
    from mpcs_torch.evaluation.metric_states import takes_weights

    return takes_weights(entry.make(num_classes) if entry.made is None else entry.made)


def _is_default(chosen: ChosenMetrics, entry: MetricEntry) -> bool:
    if entry.takes == "costs":
        return chosen.has_costs and not chosen.refers
    if not entry.is_default or _misfit(chosen, entry):
        return False
    if entry.family == "concern" and chosen.concern is None and not chosen.refers:
        return False  # each error then counts the same, which the accuracy says already
    if entry.is_of_ranks and (
        chosen.has_positions or chosen.num_classes > MAX_RANKED_CLASSES
    ):
        return False
    if chosen.refers:
        # Costs are then absolute (mean_concern), not relative to a constant decision.
        needs_cost = getattr(entry.of, "needs_referral_cost", False)
        is_priced = not needs_cost or _has_referral_cost(chosen.concern)
        return entry.undefined != "constant" and is_priced
    if chosen.is_soft and not chosen.has_shares:
        return entry.takes == "soft_labels"
    is_undefined = entry.of is MetaPatternConcernScore and has_free_errors(chosen.concern)
    takes: tuple[Takes, ...] = ("decisions", "probabilities", "log_probabilities")
    return entry.takes in takes and entry.family != "referrals" and not is_undefined


def needs_classes(concern: object, entries: Sequence[MetricEntry] | None) -> bool:
    """Return whether any metric counts classes. If so, soft labels mean the shares of annotators who chose a class."""
    if entries is None:
        return concern is not None
    return any(counts_classes(entry) for entry in entries)


def _class_entry(
    entry: MetricEntry, class_names: Sequence[str], concern: ConcernSpec | None
) -> MetricEntry:
    """Add to the settings of a metric what the brackets of its name say: a class or group, and perhaps a threshold."""
    known = known_classes(class_names, concern)
    of_class = entry.of_class
    settings = dict(entry.settings)
    if of_class not in known and "@" in of_class and "threshold" in entry.accepted_settings:
        of_class, _, text = of_class.rpartition("@")  # as in net_benefit[malignant@0.1]
        threshold = to_number(text) or 0.0
        name = f"threshold of {entry.name}"
        require(0 < threshold < 1, "open_between", name, text, minimum=0, maximum=1)
        settings["threshold"] = threshold
    if of_class not in known:
        suggestion = did_you_mean(of_class, known)
        code = "misspelt_class" if suggestion else "names_class"
        raise InvalidValueError(
            code, entry.name, of_class, classes=list(known), suggestion=suggestion
        )
    return replace(entry, settings={**settings, "classes": known[of_class]})


def known_classes(
    class_names: Sequence[str], concern: ConcernSpec | None
) -> dict[str, tuple[int, ...]]:
    """Return the indices of each class, and of each group of classes of the concern, by name."""
    known: dict[str, tuple[int, ...]] = {}
    for label, name in enumerate(class_names):
        known[name] = (label,)
    if concern is not None:
        known |= dict(concern.class_groups)
    return known


def _has_referral_cost(concern: ConcernSpec | None) -> bool:
    return concern is not None and concern.refer is not None


def in_order(entries: Sequence[MetricEntry]) -> list[MetricEntry]:
    """Sort metrics in the order in which tables show them: first those that are shown by default, then by family."""
    first = {name: place for place, name in enumerate(on_screen(entries))}
    return sorted(
        entries,
        key=lambda entry: (first.get(entry.name, len(first)), FAMILIES.index(entry.family)),
    )


def has_free_errors(concern: ConcernSpec | None) -> bool:
    """Return whether any error costs nothing; MPCS, which divides by costs, is then undefined."""
    if concern is None or concern.weights is None:
        return False  # without weights, errors cost a factor above 0
    return bool((concern.mpcs_weights() == 0).any())


class MetricInputs:
    """The inputs of metrics for some rows: labels, weights, and predictions in each form that metrics take."""

    def __init__(self, rows: Rows, takes: AbstractSet[Takes]) -> None:
        self.rows = rows
        self._inputs = inputs_from_probs(rows.probs, takes)

    @property
    def decisions(self) -> Tensor:
        """(n,): the decision for each row."""
        return self._inputs["decisions"]

    @cached_property
    def _by_class(self) -> tuple[Tensor | slice, Tensor, Tensor | None]:
        return self.rows.by_class()

    def arguments(
        self, takes: Takes
    ) -> tuple[Tensor | slice, Tensor, Tensor, Tensor | None]:
        """Return the indices, predictions, labels and weights of m rows, for metrics whose inputs are ``takes``.

        Metrics that count classes get a row with soft labels several times: once for each class that annotators chose,
        with their share as the weight.
        """
        if takes in ("soft_labels", "costs"):
            labels = self.rows.target if takes == "soft_labels" else self.rows.costs
            assert labels is not None
            return slice(None), self._inputs[takes], labels, self.rows.weights
        places, classes, weights = self._by_class
        return places, self._inputs[takes][places], classes, weights


def inputs_from_probs(probs: Tensor, takes: AbstractSet[Takes]) -> dict[Takes, Tensor]:
    """Convert probabilities (n, C), or decisions (n, 1), to each form in ``takes``, such as logarithms."""
    if not probs.is_floating_point():
        return {"decisions": probs[:, 0], "costs": probs[:, 0]}
    inputs = dict.fromkeys(takes, probs)
    if takes & {"decisions", "costs"}:
        inputs["decisions"] = inputs["costs"] = highest_class(probs)[1]
    if "positive" in takes:
        if probs.shape[1] != 2:
            raise InvalidValueError(
                "two_probabilities", "a metric of two classes", probs.shape[1]
            )
        inputs["positive"] = probs[:, 1].contiguous()
    if "log_probabilities" in takes:
        inputs["log_probabilities"] = probs.log()
    return inputs


def as_entries(metrics: Metrics) -> list[MetricEntry]:
    """Convert ``metrics``, in any form that `Evaluation` takes, to entries of the register of metrics."""
    if isinstance(metrics, str | MetricEntry) or is_metric(metrics) or not metrics:
        raise InvalidValueError("list_of_metrics", "metrics", metrics)
    if isinstance(metrics, Mapping):
        entries = [_make_entry(metric, name) for name, metric in metrics.items()]
    else:
        entries = [_make_entry(metric, None) for metric in metrics]
    counts = Counter(entry.name for entry in entries)
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise InvalidValueError("different_names", "metrics", repeated)
    return entries


def is_metric(value: object) -> bool:
    """Return whether an object is a torchmetrics Metric; there is none before torchmetrics is imported."""
    torchmetrics = sys.modules.get("torchmetrics")
    return torchmetrics is not None and isinstance(value, torchmetrics.Metric)


def _make_entry(metric: Any, name: str | None) -> MetricEntry:
    if isinstance(metric, str | MetricEntry):
        entry = find_entry(metric) if isinstance(metric, str) else metric
        return entry if name is None else replace(entry, name=name)
    if is_metric(metric):
        return entry_of_metric(metric, name)
    is_function = callable(metric) and not isinstance(metric, type)
    if is_function and name is not None:
        # torchmetrics takes seconds to import
        from mpcs_torch.evaluation.metric_states import OfRows

        return entry_of_metric(OfRows(metric), name)
    raise InvalidValueError("kind_of_metric", "metrics", metric)
