"""The order in which metrics of a classifier are shown: errors and their costs first, oneDAL's averages last."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

DECISIONS, CONCERN = ("accuracy", "misclassification_rate", "mpcs"), ("dangerous", "dangerous_rate", "destructive_rate")
COSTS = ("expected_concern", "least_concern_cost")
AVERAGES = (
    *("micro_precision", "micro_recall", "micro_fscore", "macro_precision", "macro_recall", "macro_fscore"),
    *("average_accuracy", "error_rate", "weighted_error_rate"),
)
"""Those that oneDAL defines, by its names: its weighted error rate is the share of wrong decisions."""
ABOUT_AVERAGES = (
    "Averages of each class against the rest, by oneDAL's definitions: with many classes, most of these yes-or-no "
    "decisions are a right no, so average_accuracy is near 1 and error_rate near 0 "
    "however many predictions are wrong."
)
ALL_IN_ONE = 12
"""Up to this number of metrics, such as those of --metrics, one table shows them in their order."""


class Section(NamedTuple):
    """Metrics that are shown together."""

    about: str
    """A sentence for the reader; empty if the names say it all."""
    names: list[str]


def sections_of(names: Collection[str], *, has_concern: bool) -> list[Section]:
    """Return the sections that metrics are shown in, none of them empty.

    Args:
        names: Metrics in any order.
        has_concern: Whether a concern says which errors matter; otherwise metrics of concern repeat the error rate, so
            only MPCS comes first.
    """
    if len(names) <= ALL_IN_ONE:
        return [Section("", list(names))]
    leading = (*DECISIONS, *CONCERN, *COSTS) if has_concern else DECISIONS
    first = [name for name in leading if name in names]
    averages = [name for name in AVERAGES if name in names]
    others = [name for name in names if name not in (*first, *averages)]
    found = [Section("", first), Section("", others), Section(ABOUT_AVERAGES, averages)]
    return [section for section in found if section.names]


def in_order(names: Iterable[str], *, has_concern: bool) -> list[str]:
    """Return metrics in the order of their sections."""
    return [name for section in sections_of(list(names), has_concern=has_concern) for name in section.names]
