"""The limits that a decision rule guarantees, and the report that measures the rule on samples."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import InvalidValueError, require
from mpcs_torch.functional import clopper_pearson
from mpcs_torch.functional.concern.dangerous import DANGEROUS, severity_matrix
from mpcs_torch.functional.inputs.confidence import (
    CONFIDENCE,
    CONFIDENCE_TEXT,
    check_confidence,
)
from mpcs_torch.functional.inputs.decisions import is_class
from mpcs_torch.functional.inputs.groups import costs_by_label
from mpcs_torch.tables import Table, in_table

ALL_SAMPLES = "samples"
"""The value of `Limit.of` for all samples."""
DECIDED = "decided"
"""The value of `Limit.of` for samples that are not referred."""
PER_SAMPLE = "sample"
"""The value of `Limit.per` for the rate over all samples."""
PER_CLUSTER = "cluster"
"""The value of `Limit.per` for the mean of the rates of clusters."""
TEXT = re.compile(
    r"(?P<errors>\S.*?)\s*<=\s*(?P<at_most>[^\s%]+)(?P<percent>\s*%)?(?:\s+of\s+(?P<of>.+?))?"
    r"(?P<per>\s+per\s+cluster)?(?:\s+by\s+(?P<by>.+?))?"
    r"(?:\s+(?:with confidence\s+(?P<confidence>[^\s%]+)(?P<of_100>\s*%)?|(?P<mean>in expectation)))?"
)
RULE = f"dangerous <= 0.01 of malignant by site with confidence {CONFIDENCE:g}"


@dataclass(frozen=True)
class Limit:
    """An upper bound on the rate of certain errors among certain samples, which a `DecisionRule` guarantees.

    A referred sample is not an error. If class frequencies change, only limits on samples of a true class remain valid.

    Args:
        at_most: The upper bound of the error rate, above 0 and below 1. With ``errors="cost"``: of the mean cost.
        errors: The errors that count: ``"dangerous"`` (`ConcernSpec.dangerous_pairs`), ``"any"``, or pairs of class
            names (true class, wrong class). With ``"cost"``, the limit is on the mean cost.
        of: The samples that count. ``"samples"``: all. The name of a class, or of a group of classes
            (`ConcernSpec.class_groups`): samples that truly belong to it. ``"decided"``: samples that are not referred.
            ``"decided NAME"``: samples decided as the class or group NAME.
        by: The name of a column of groups, for example ``"site"``: the limit holds in each group. Default: no groups.
        confidence: The probability, over random validation sets, that the limit holds for new samples. With None, the
            limit holds only on average over validation sets. None is required for ``"cost"``, and is not allowed for
            limits on decided samples.
        per: The rate to limit if samples are in clusters (patients, for example). ``"sample"``: the rate over all
            samples of new clusters. ``"cluster"``: the rate in each cluster, averaged over new clusters. The two rates
            differ if large clusters have more errors. If a few clusters are large, ``"cluster"`` needs fewer clusters.

    Raises:
        ValueError: If an argument is invalid.

    Example:
        >>> print(Limit(0.01, of="malignant", by="site"))
        dangerous <= 0.01 of malignant by site with confidence 0.95
        >>> Limit.parse("any <= 5 % of decided with confidence 0.9")
        Limit(at_most=0.05, errors='any', of='decided', by=None, confidence=0.9, per='sample')
    """

    at_most: float
    errors: str | tuple[tuple[str, str], ...] = "dangerous"
    of: str = ALL_SAMPLES
    by: str | None = None
    confidence: float | None = CONFIDENCE
    per: str = PER_SAMPLE

    def __post_init__(self) -> None:
        require(isinstance(self.at_most, Real), "number", "at_most", self.at_most)
        # A rule with a NumPy number could not be loaded.
        object.__setattr__(self, "at_most", float(self.at_most))
        if self.confidence is not None:
            is_number = isinstance(self.confidence, Real)
            require(is_number, "number", "confidence", self.confidence)
            object.__setattr__(self, "confidence", float(self.confidence))
            check_confidence(self.confidence)
        if isinstance(self.errors, str):
            is_known = self.errors in ("dangerous", "any", "cost")
            require(is_known, "kind_of_errors", "errors", self.errors)
        else:
            pairs = tuple(tuple(map(str, pair)) for pair in self.errors)
            others = [
                pair for pair in self.errors if isinstance(pair, str) or len(pair) != 2
            ]
            require(pairs and not others, "pairs_of_names", "errors", self.errors)
            object.__setattr__(self, "errors", pairs)
        require(0 < self.at_most < inf, "finite_above", "at_most", self.at_most, minimum=0)
        if self.errors != "cost":
            require(self.at_most < 1, "below", "at_most", self.at_most, maximum=1)
        are_texts = isinstance(self.of, str) and isinstance(self.by, str | None)
        require(are_texts, "text", "of and by", [self.of, self.by])
        require(
            self.per in (PER_SAMPLE, PER_CLUSTER),
            "one_of",
            "per",
            self.per,
            choices=[PER_SAMPLE, PER_CLUSTER],
        )
        if self.errors == "cost" and self.confidence is not None:
            raise InvalidValueError("none_for_costs", "confidence", self.confidence)
        if self.is_of_decided and self.confidence is None:
            raise InvalidValueError("given_for_decided", "confidence", of=self.of)

    def __str__(self) -> str:
        """Return the limit as text that `parse` reads."""
        by = "" if self.by is None else f" by {self.by}"
        sure = "in expectation"
        if self.confidence is not None:
            sure = f"with confidence {self.confidence:.12g}"
        per = " per cluster" if self.per == PER_CLUSTER else ""
        return f"{self.errors_as_text} <= {self.at_most:.12g} of {self.of}{per}{by} {sure}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the limit in ``text``, such as ``dangerous <= 1 % of malignant by site``; default confidence: 0.95.

        Raises:
            ValueError: If the text is not a valid limit.
        """
        match = TEXT.fullmatch(text.strip())
        try:
            if match is None:
                raise InvalidValueError("reads_like", example=repr(RULE))
            errors: Any = match["errors"]
            if "->" in errors:
                errors = _pairs_in(errors)
            at_most = float(match["at_most"])
            if match["percent"]:
                at_most /= 100
            confidence: float | None = CONFIDENCE
            if match["confidence"]:
                confidence = float(match["confidence"])
                if match["of_100"]:
                    confidence /= 100
            elif match["mean"] or errors == "cost":
                confidence = None
            per = PER_CLUSTER if match["per"] else PER_SAMPLE
            return cls(
                at_most, errors, match["of"] or ALL_SAMPLES, match["by"], confidence, per
            )
        except ValueError as error:
            raise InvalidValueError("limit_as_text", text=text, error=error) from None

    @property
    def errors_as_text(self) -> str:
        """The errors that count, as in the text of the limit: pairs of classes are ``true->wrong``."""
        if isinstance(self.errors, str):
            return self.errors
        return ", ".join("->".join(pair) for pair in self.errors)

    @property
    def decided_as(self) -> str | None:
        """The name after "decided " in ``of``: only samples that are decided as such count. None without a name."""
        word, space, name = self.of.partition(" ")
        return name if space and word == DECIDED else None

    @property
    def is_of_decided(self) -> bool:
        """Whether only decided samples count in the rate."""
        return self.of == DECIDED or self.decided_as is not None

    @property
    def is_of_true_class(self) -> bool:
        """Whether only samples whose true class is ``of``, or is in the group ``of``, count."""
        return self.of != ALL_SAMPLES and not self.is_of_decided

    def is_of_one_class(self, concern: ConcernSpec) -> bool:
        """Return whether only samples of one true class count."""
        labels = self.limited_classes(concern)
        return self.is_of_true_class and labels is not None and len(labels) == 1

    @property
    def unit(self) -> str:
        """The samples that count in the rate, as text for messages."""
        if self.is_of_true_class:
            return f"samples of {self.of}"
        return ALL_SAMPLES if self.of == ALL_SAMPLES else f"{self.of} samples"

    def limited_classes(self, concern: ConcernSpec) -> tuple[int, ...] | None:
        """Return the indices of the classes that ``of`` names; None if it names none (``"samples"`` or ``"decided"``).

        Raises:
            ValueError: If there is no such class or group of classes, or its name is ambiguous.
        """
        members = _labels_by_name(concern)
        if self.of in members and not self.is_of_true_class:
            raise InvalidValueError("name_of_class", "of", self.of)
        if self.of in (ALL_SAMPLES, DECIDED):
            return None
        name = self.of if self.decided_as is None else self.decided_as
        if name not in members:
            known = [ALL_SAMPLES, DECIDED, *members]
            raise InvalidValueError(
                "limited_samples", "of", self.of, choices=known, decided=DECIDED
            )
        return members[name]

    def losses(self, concern: ConcernSpec) -> Tensor:
        """Return the loss of each decision (column) for each true class (row): (C, C + A), float64.

        Columns are C classes and A coarse answers. A loss is 0 if the limit does not count such samples.
        """
        if self.errors == "cost":
            loss = concern.costs()[:, : len(concern.classes) + len(concern.answers)]
        else:
            loss = concern.over_answers(self._counted_pairs(concern))
        labels = self.limited_classes(concern)
        if labels is None:
            return loss
        is_limited = torch.zeros_like(loss)
        if self.is_of_decided:
            is_limited[:, list(labels)] = 1
        else:
            is_limited[list(labels)] = 1
        return loss * is_limited

    def _counted_pairs(self, concern: ConcernSpec) -> Tensor:
        """Return the errors that count, (C, C), float64: 1 for each, else 0; rows are true classes."""
        classes = list(concern.classes)
        if self.errors == "any":
            return 1 - torch.eye(len(classes), dtype=torch.float64)
        if isinstance(self.errors, str):
            return concern.dangerous_pairs().double()
        pairs = torch.zeros(len(classes), len(classes), dtype=torch.float64)
        for true, other in self.errors:
            if true not in classes or other not in classes or true == other:
                raise InvalidValueError("different_classes", "errors", [true, other])
            pairs[classes.index(true), classes.index(other)] = 1
        return pairs

    def counted(self, target: Tensor, answers: Tensor, concern: ConcernSpec) -> Tensor:
        """Return whether the limit counts sample n if ``answers[n, k]`` is its decision: bool (N, K)."""
        labels = self.limited_classes(concern)
        if labels is None:
            return torch.ones_like(answers, dtype=torch.bool)
        classes = answers
        if not self.is_of_decided:
            classes = target.unsqueeze(1).expand(answers.shape)
        return torch.isin(classes, torch.tensor(labels, device=classes.device))


def _pairs_in(text: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs of names in ``text``, such as ``red->green, green->red``."""
    pairs = list[tuple[str, str]]()
    for part in text.split(","):
        names = [name.strip() for name in part.split("->")]
        if len(names) != 2:
            raise InvalidValueError("pairs_with_arrows", "errors")
        pairs.append((names[0], names[1]))
    return tuple(pairs)


def _labels_by_name(concern: ConcernSpec) -> dict[str, tuple[int, ...]]:
    """Return the indices of the classes that the name of a class, or of a group of classes, stands for."""
    labels = {name: (label,) for label, name in enumerate(concern.classes)}
    return labels | dict(concern.class_groups)


def as_limits(limits: Any) -> tuple[Limit, ...]:
    """Return one limit, or several, as a tuple; the caller checks the types."""
    if isinstance(limits, list | tuple):
        return tuple(limits)
    return (limits,)


class ClassErrors(NamedTuple):
    """The number of dangerous errors among the samples of a class."""

    errors: int
    samples: int
    has_interval: bool = True
    """Whether the samples are independent; only then is the interval valid."""

    def __str__(self) -> str:
        if not self.samples:
            return "no samples"
        interval = "in clusters: no interval"
        if self.has_interval:
            low, high = clopper_pearson(self.errors, self.samples)
            interval = f"{CONFIDENCE_TEXT}: {low:.3g} to {high:.3g}"
        return f"{self.errors} of {self.samples}, {self.errors / self.samples:.3g} ({interval})"


class RuleReport(NamedTuple):
    """The results of a decision rule on labelled samples. For a fit with limits, these samples set the thresholds."""

    calibrated_by: int
    """The number of samples used to fit the calibration."""
    judged_by: int
    """The number of samples on which the other values are measured."""
    coverage: float
    """The share of samples that are decided, not referred."""
    dangerous_rate: float
    """The number of dangerous errors per sample; a referred sample is not an error."""
    cost: float
    """The mean cost per sample of decisions and referrals; a referral without a price costs 0."""
    by_class: Mapping[str, ClassErrors]
    """The dangerous errors by the name of a class or group; classes without possible dangerous errors are left out.
    Their intervals are two-sided, while limits are one-sided: an interval may end above a limit that is guaranteed."""
    coarse: float = 0.0
    """The share of samples that get a coarse answer, which is a set of classes."""
    seed: int | None = None
    """The seed of the split into samples for calibration and samples for thresholds; None without a split. The
    guarantee is valid only if the seed was fixed in advance."""

    @property
    def is_clustered(self) -> bool:
        """Whether the samples came in clusters."""
        return any(not errors.has_interval for errors in self.by_class.values())

    def plain(self) -> dict[str, Any]:
        """Convert the report to dictionaries, lists and numbers."""
        by_class = {name: list(errors) for name, errors in self.by_class.items()}
        return {**self._asdict(), "by_class": by_class}

    def table(self, concern: ConcernSpec) -> Table:
        """Return the report as a table with a row for each value."""
        price = ""
        if concern.refer is None and self.coverage < 1:
            price = ", a referral at 0"
        values = {
            "samples that calibrated": self.calibrated_by or None,
            "seed that drew them": self.seed,
            "samples judged": self.judged_by,
            "coverage": self.coverage,
            "coarse answers per sample": self.coarse or None,
            "dangerous errors per sample": self.dangerous_rate,
            f"cost per sample{price}": self.cost,
        }
        rows = []
        for name, value in values.items():
            if isinstance(value, int):
                rows.append([name, str(value)])
            elif value is not None:
                rows.append([name, in_table(value)])
        for name, errors in self.by_class.items():
            rows.append([f"dangerous errors of {name}", str(errors)])
        return Table(["", "value"], rows)

    @classmethod
    def restored(cls, plain: Mapping[str, Any]) -> Self:
        """Restore a report from the output of `plain`.

        Raises:
            ValueError: If a value is invalid.
        """
        by_class = {
            str(name): ClassErrors(*errors) for name, errors in plain["by_class"].items()
        }
        report = cls(**{**plain, "by_class": by_class})
        fields = report._asdict()
        del fields["by_class"]
        if report.seed is None:  # the only field that may be None
            del fields["seed"]
        values: list[object] = list(fields.values())
        for errors in by_class.values():
            values += errors
        if not all(isinstance(value, int | float) for value in values):
            raise InvalidValueError("number", "values of the report")
        return report


def report_on(
    decisions: Tensor,
    target: Tensor,
    concern: ConcernSpec,
    *,
    is_clustered: bool = False,
    weights: Tensor | None = None,
    costs: Tensor | None = None,
) -> RuleReport:
    """Return a report on ``decisions`` (N,), int64: a class, C + a for coarse answer a, or -1 for a referral.

    With ``is_clustered``, error counts have no interval. ``weights`` (N,) weight the means over samples, but not the
    error counts of classes. ``costs``, (N, C, C) as in `DecisionRule.fit`, replace those of the concern.
    """
    values = values_of(decisions, target, concern, costs)
    if weights is None:
        weights = torch.ones(len(target), dtype=torch.float64)
    weights = weights.to(values.cost)

    def mean(of_samples: Tensor) -> float:
        return (of_samples @ weights / weights.sum()).item()

    return RuleReport(
        calibrated_by=0,
        judged_by=len(target),
        coverage=mean(1 - values.is_referral),
        dangerous_rate=mean(values.is_dangerous),
        cost=mean(values.cost),
        by_class=_errors_by_class(
            target, values.is_dangerous == 1, concern, is_clustered=is_clustered
        ),
        coarse=mean((decisions >= len(concern.classes)).double()),
    )


class DecisionValues(NamedTuple):
    """The values of decisions, float64: of each sample, (N,), or by true class and decision, (C, C + A + 1)."""

    is_right: Tensor
    """1 if the decision is correct, else 0."""
    is_dangerous: Tensor
    """1 if it is a dangerous error, else 0."""
    cost: Tensor
    is_referral: Tensor
    """1 if it is a referral, else 0."""


def values_of(
    decisions: Tensor, target: Tensor, concern: ConcernSpec, costs: Tensor | None = None
) -> DecisionValues:
    """Return the values of decisions (N,) for samples of the true classes ``target`` (N,).

    ``costs`` of rows by true class, (N, C, C), replace those of the concern, except of coarse answers and referrals.
    """
    matrices = torch.stack(decision_values(concern)).to(target.device)
    # A referral is the last column, which -1 selects.
    values = DecisionValues(*matrices[:, target, decisions])
    if costs is not None:
        by_decision = costs_by_label(costs, target).to(values.cost)
        is_single = is_class(decisions, by_decision.shape[1])
        column = decisions.where(is_single, 0).unsqueeze(1)
        paid = by_decision.gather(1, column).squeeze(1)
        values.cost.copy_(torch.where(is_single, paid, values.cost))
    return values


def _errors_by_class(
    target: Tensor, is_error: Tensor, concern: ConcernSpec, *, is_clustered: bool
) -> dict[str, ClassErrors]:
    """Return the dangerous errors by the name of each class or group that can have some."""
    classes = len(concern.classes)
    samples = target.bincount(minlength=classes).tolist()
    errors = target[is_error].bincount(minlength=classes).tolist()
    can_be_dangerous = concern.dangerous_pairs().any(dim=1)
    by_class = dict[str, ClassErrors]()
    for name, labels in _labels_by_name(concern).items():
        if can_be_dangerous[list(labels)].any():
            by_class[name] = ClassErrors(
                sum(errors[label] for label in labels),
                sum(samples[label] for label in labels),
                has_interval=not is_clustered,
            )
    return by_class


def decision_values(concern: ConcernSpec) -> DecisionValues:
    """Return the values of each decision for each true class: matrices (C, C + A + 1), float64.

    Rows are true classes. Columns are decisions: C classes, A coarse answers and a referral, which costs 0 unless the
    concern says otherwise.
    """
    costs = concern.costs()
    if concern.refer is None:
        costs = torch.nn.functional.pad(costs, (0, 1))  # a column of 0 for referrals
    is_last = torch.arange(costs.shape[1]) == costs.shape[1] - 1
    is_dangerous = severity_matrix(concern, len(costs)) == DANGEROUS
    return DecisionValues(
        is_right=torch.eye(*costs.shape).double(),
        is_dangerous=is_dangerous.double(),
        cost=costs.double(),
        is_referral=is_last.expand(costs.shape).double(),
    )
