"""Reasons why a value has no interval, no bound or no difference, as data, and their sentences.

Only what the register says of a metric, or a metric of these rows, comes as a text from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Code = Literal[
    "no_value",
    "undefined",
    "not_finite",
    "not_requested",
    "no_interval",
    "no_method",
    "no_range",
    "one_look",
    "open_weights",
    "absent_class",
    "by_convention",
    "many_classes",
    "few_units",
    "few_effective",
    "biased",
    "all_agree",
    "missing_without_some",
    "few_dominate",
    "in_steps",
    "wraps_metrics",
    "not_mergeable",
    "too_large",
]
SENTENCES: Mapping[Code, str] = {
    "no_value": "the metric has no value",
    "undefined": "{text}",
    "not_finite": "a value is not finite",
    "not_requested": "intervals were not requested",
    "no_interval": "it has no interval",
    "no_method": "{text}",
    "no_range": "no bound of it is known, so its interval is approximate",
    "one_look": "it has an interval for one look alone",
    "open_weights": "further rows may weigh more than those seen: give the largest weight, max_weight= or --max-weight",
    "absent_class": "a class has no rows, so nothing is known of its errors",
    "by_convention": "it is 0 / 0 for these rows, which counts as a fixed value",
    "many_classes": "the worst error is searched for among at most {number} classes",
    "few_units": "an interval needs at least {number} {unit}",
    "few_effective": "a few {unit} have most of the weight: as few as {number} count, and an interval needs more",
    "biased": "on parts of the {unit}, it is clearly higher or lower than on all: it depends on their number",
    "all_agree": "all {unit} agree, so the error of the value is unknown",
    "missing_without_some": "the value does not exist without some of the {unit}",
    "few_dominate": "few {unit} dominate the value, so rare ones may be missing here",
    "in_steps": "it changes in steps as {unit} are left out, as quantiles and values at a threshold do",
    "wraps_metrics": "it wraps other metrics, and has no mergeable states itself",
    "not_mergeable": (
        "its states are not sums, minima, maxima or collected samples, so parts of the rows do not merge"
    ),
    "too_large": "states of {number} numbers for each of {text} parts take too much memory",
}


@dataclass(frozen=True)
class Reason:
    """The reason why something has not been computed; its text is the sentence."""

    code: Code
    unit: str = ""
    """The word for what is counted: "rows", "clusters" or "trials"."""
    number: int = 0
    text: str = ""
    """The sentence, for the codes ``"no_method"`` (of the register) and ``"undefined"`` (of these rows)."""

    def __str__(self) -> str:
        return SENTENCES[self.code].format(
            unit=self.unit, number=self.number, text=self.text
        )


NO_VALUE = Reason("no_value")
NOT_FINITE = Reason("not_finite")
NOT_REQUESTED = Reason("not_requested")
NO_INTERVAL = Reason("no_interval")
NO_RANGE = Reason("no_range")
ONE_LOOK = Reason("one_look")
OPEN_WEIGHTS = Reason("open_weights")
