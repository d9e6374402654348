"""Requirements that a model must meet to be released: limits that the ends of its intervals must keep."""

import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import Any, NamedTuple, Self

from mpcs_torch.errors import InvalidValueError, MpcsError, printable, quoted
from mpcs_torch.evaluation.reasons import NO_INTERVAL, Reason
from mpcs_torch.exit_statuses import ExitStatus
from mpcs_torch.tables import Table, in_digits

SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?:\s*%)?"
TEXT = re.compile(
    r"(?P<metric>[^<>\[\]]*[^<>\[\]\s](?:\[.+\])?)\s*(?P<sign>[<>]=?)\s*"
    rf"(?:(?P<limit>[-+]?{NUMBER})|(?P<reference>[^\s<>=].*?)(?:\s+(?P<side>[-+])\s*(?P<margin>{NUMBER}))?)"
)
RULE = "'dangerous_rate < 1 %', 'recall[malignant] > 0.98' or 'mpcs < MODEL + 0.001'"


@dataclass(frozen=True)
class Requirement:
    """A limit that a metric must keep for a model to be released, such as ``recall[malignant] > 0.98``.

    A bound must keep the limit, on all rows and in each group: an upper bound for ``<`` and ``<=``, else a lower one.
    It allows for one more row (or cluster) as bad as any can be, which the rows may lack by chance. A value without a
    bound fails. A model that violates a requirement passes in at most 2.5 % of evaluations. Several requirements and
    groups need no correction, because a model must meet all of them (an intersection-union test; Berger, Technometrics
    24, 1982). Each attempt needs new rows, or a number of ``looks`` that is fixed beforehand.

    Args:
        metric: The name of a metric, or of a rate of a class, as in `Result.value`.
        sign: ``<``, ``<=``, ``>`` or ``>=``.
        limit: The limit, a finite number. With a reference, it limits the model's value minus the reference's value.
        reference: The name of a model to compare with, on all rows and in each group. This model is not tested itself.
        is_percent: Whether limit, value and bound are shown in percent; `parse` sets it for a limit in percent.

    Raises:
        ValueError: If the sign or the limit breaks its rule.

    Example:
        >>> Requirement.parse("mpcs < old + 0.1 %")
        Requirement(metric='mpcs', sign='<', limit=0.001, reference='old')
        >>> Requirement.parse("dangerous_rate < 1 %").check(0.005, low=0.001, high=0.02).holds
        False
    """

    metric: str
    sign: str
    limit: float
    reference: str | None = None
    is_percent: bool = field(default=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.sign not in SIGNS or not isfinite(self.limit):
            raise InvalidValueError("sign_and_limit", "sign", self, choices=list(SIGNS))

    def __str__(self) -> str:
        """Return the requirement as text that `parse` reads."""
        reference = ""
        limit = self.limit
        if self.reference is not None:
            if limit == 0:
                return f"{self.metric} {self.sign} {self.reference}"
            sign = "-" if limit < 0 else "+"
            reference = f"{self.reference} {sign} "
            limit = abs(limit)
        number = f"{100 * limit:.10g} %" if self.is_percent else str(limit)
        return f"{self.metric} {self.sign} {reference}{number}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a requirement, such as ``dangerous_rate < 1 %`` or ``mpcs < MODEL + 0.001``.

        Raises:
            ValueError: If the text cannot be read as a requirement.
        """
        match = TEXT.fullmatch(text.strip())
        if match is None:
            raise InvalidValueError(
                "reads_like", f"requirement {quoted(text)}", example=RULE
            )
        number = match["limit"]
        # If there is no limit, there is a reference, perhaps with a margin such as + 0.001.
        if number is None:
            number = f"{match['side'] or ''}{match['margin'] or 0}"
        is_percent = "%" in number
        limit = float(number.rstrip("% "))
        return cls(
            match["metric"],
            match["sign"],
            limit / 100 if is_percent else limit,
            match["reference"],
            is_percent=is_percent,
        )

    def check_range(self, low: float, high: float) -> None:
        """Raise a ValueError if no value from ``low`` to ``high`` can keep the limit, or if none can violate it."""
        # At the ends of the range, some signs are met by all values or by none: no value is < the lowest one.
        is_below = self.limit < low or (self.limit == low and self.sign in ("<", ">="))
        is_above = self.limit > high or (
            self.limit == high and self.sign in ("<", "<=", ">")
        )
        if is_below or is_above:
            is_share = self.limit >= 1 and not self.is_percent
            code = "limit_in_percent" if is_share else "limit_in_range"
            raise InvalidValueError(
                code,
                f"the limit of a value from {low:g} to {high:g}",
                self.limit,
                limit=self.limit,
            )

    def check(
        self, value: Any, low: Any = nan, high: Any = nan, reason: Reason = NO_INTERVAL
    ) -> "Outcome":
        """Test a value or a difference by its interval, as in ``check(*WithInterval(...).compute().values())``."""
        is_upper = self.sign in ("<", "<=")
        bound = float(high if is_upper else low)
        has_bound = isfinite(bound)
        return Outcome(
            self,
            model="",
            group="",
            value=float(value),
            bound=bound,
            holds=has_bound and SIGNS[self.sign](bound, self.limit),
            reason=None if has_bound else reason,
        )

    def check_bound(self, value: float, bound: float | Reason) -> "Outcome":
        """Test a value or a difference by its bound; without one, by the reason why it has none."""
        if isinstance(bound, Reason):
            return self.check(value, reason=bound)
        return self.check(value, bound, bound)


AT_SHARES = (
    ", at the class shares of these rows (prevalence= and --prevalence take those of use)"
)
"""A caution for outcomes of precision, which is higher in test sets with a larger share of the class."""

NOT_SHOWN = "not shown"
"""The verdict in tables if a value keeps the limit, but its bound does not, or there is no bound."""


class Outcome(NamedTuple):
    """The outcome of a requirement for a model, on all rows or in a group."""

    requirement: Requirement
    model: str
    group: str
    """The group, such as ``site = north``; empty for all rows."""
    value: float
    bound: float
    """The end of the interval that must keep the limit; not finite if there is no interval."""
    holds: bool
    """Whether it is shown that the limit is kept. If not, the value may keep it and only its bound not."""
    reason: Reason | None
    """The reason why there is no bound; None if there is a bound."""
    caution: str = ""
    """A condition on which the value depends; empty if there is none."""


class RequirementError(MpcsError, AssertionError):
    """The error for requirements that are not met. The message is a table of failed tests; ``outcomes`` has all tests.

    Example:
        >>> print(RequirementError([Requirement("mpcs", "<", 0.3).check(0.25, low=0.21, high=0.34)]))
        1 of 1 tests of requirements failed:
        | requirement | holds     | value | bound | model | group    |
        |-------------|-----------|-------|-------|-------|----------|
        | mpcs < 0.3  | not shown | 0.25  | 0.34  |       | all rows |
    """

    exit_status = ExitStatus.NOT_MET

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        super().__init__(outcomes)
        self.outcomes = outcomes

    def __str__(self) -> str:
        failed = [outcome for outcome in self.outcomes if not outcome.holds]
        table = outcomes_table(failed).markdown()
        return (
            f"{len(failed)} of {len(self.outcomes)} tests of requirements failed:\n{table}"
        )


def demand_all(outcomes: Sequence[Outcome]) -> None:
    """Raise a `RequirementError` unless all ``outcomes`` hold."""
    if not all(outcome.holds for outcome in outcomes):
        raise RequirementError(outcomes)


def outcomes_table(outcomes: Sequence[Outcome]) -> Table:
    """Return a table with a row for each outcome; differences and their bounds are shown with a sign."""
    rows = []
    for requirement, model, group, value, bound, holds, reason, caution in outcomes:
        times, unit = (100, " %") if requirement.is_percent else (1, "")
        sign = "" if requirement.reference is None else "+"
        numbers = [in_digits(times * number, 4, sign) + unit for number in (value, bound)]
        verdict = "yes" if holds else "no"
        if not holds and SIGNS[requirement.sign](value, requirement.limit):
            verdict = NOT_SHOWN
        if reason and not holds:
            verdict += f": {reason}"
        verdict += caution
        cells = [str(requirement), verdict, *numbers, model, group or "all rows"]
        rows.append([printable(cell) for cell in cells])
    return Table(["requirement", "holds", "value", "bound", "model", "group"], rows)
