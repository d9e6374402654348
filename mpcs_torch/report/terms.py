"""What the terms of pages mean, in a line each: they are shown where a term stands."""

from typing import Any

from mpcs_torch.evaluation import Result
from mpcs_torch.report.harm import DANGEROUS, DECIDED_RIGHT, FALSE_ALARMS, MISSED, PRECISION, REFERRED

TERMS = {
    DANGEROUS: "rows of the class that are decided as something that the concern calls dangerous, of all its rows",
    MISSED: "rows of the class, or of a class of the group, that are decided as something else, of all its rows",
    REFERRED: "rows of the class that are not decided, but handed to a person, of all its rows",
    FALSE_ALARMS: "rows of other classes that are decided as this one",
    PRECISION: "precision: how many of the rows that are decided as the class are of the class",
    DECIDED_RIGHT: "accuracy of the decided: how many of the decided rows of the class are decided as the class",
    "concern": "what the error costs, in the unit of the concern",
    "95 %": "95 % confidence interval: where the value may be for new rows like these",
    "p": "how often chance alone would show such a difference, or a larger one",
    "p, corrected": "the same, allowing for all rows of this table",
    "dangerous": "the number of dangerous errors",
    "dangerous_rate": "dangerous errors, as a share of all rows",
    "selective_dangerous_rate": "dangerous errors, as a share of the decided rows",
    "destructive_rate": "dangerous errors, as a share of all errors: how bad an error is, not how frequent",
    "mean_concern": "mean cost of the decisions and referrals of a row, in the unit of the concern",
    "expected_concern": "mean cost of a row, divided by that of always deciding the class that then costs least",
    "least_concern_cost": "the same, if rows were decided by the cost of each error, not for the most probable class",
}
"""By term: what a column or a metric is. Other metrics are explained by the first line of their documentation."""


def terms_of(result: Result[Any]) -> dict[str, str]:
    """Return the explanation of each term that a page of a result may show."""
    metrics = {
        entry.name: getattr(entry, "metric", None) for scores in result.models.values() for entry in scores.entries
    }
    first_lines = {
        name: (metric.__doc__ or "").strip().partition("\n")[0].removeprefix("Compute ")
        for name, metric in metrics.items()
        if metric is not None
    }
    return {**first_lines, **TERMS}
