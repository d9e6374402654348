"""Test requirements on the values of a result: the value, and the bound that must keep the limit, of each group."""

from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING, Any

from mpcs_torch.errors import InvalidValueError, require
from mpcs_torch.evaluation.influence import End
from mpcs_torch.evaluation.paired_differences import NotCompared
from mpcs_torch.evaluation.reasons import NO_RANGE, OPEN_WEIGHTS, Reason
from mpcs_torch.evaluation.requirements import AT_SHARES, Outcome, Requirement
from mpcs_torch.evaluation.scores import Scores, end_of_interval
from mpcs_torch.functional import Comparison
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.inputs.confidence import CONFIDENCE

if TYPE_CHECKING:  # imports this file
    from mpcs_torch.evaluation.result import Result

Tested = tuple[float, float | Reason, Interval | None]
"""A value, its bound for a requirement or the reason why it has none, and its interval."""


def check_requirements(
    result: "Result[Any]",
    requirements: Sequence[Requirement | str],
    *,
    approximate: bool,
    looks: int,
    max_weight: float | None,
) -> list[Outcome]:
    """Test each requirement for each model, on all rows and in each group, as `Result.check` documents it."""
    parsed = [
        Requirement.parse(each) if isinstance(each, str) else each for each in requirements
    ]
    references = {each.reference for each in parsed}
    tested = [name for name in result.models if name not in references]
    if not parsed or not tested:
        raise InvalidValueError("needs_requirements", "require", requirements)
    require(looks >= 1, "at_least", "looks", looks, minimum=1)
    require(
        max_weight is None or max_weight > 0,
        "above",
        "max_weight",
        max_weight,
        minimum=0,
    )
    is_open = result.has_open_weights and max_weight is None
    outcomes = list[Outcome]()
    for requirement in parsed:
        end = End(
            is_upper=requirement.sign[0] == "<",
            confidence=1 - (1 - CONFIDENCE) / looks,
            max_weight=max_weight or 0.0,
        )
        is_precision = requirement.metric.startswith("precision[")
        caution = AT_SHARES if is_precision and not result.first.is_weighted else ""
        try:
            for model in tested:
                by_group = _tested(result, requirement, model, end)
                for group, (value, bound, ends) in by_group.items():
                    if is_open and not isinstance(bound, Reason):
                        bound = OPEN_WEIGHTS
                    is_replaceable = bound in (NO_RANGE, OPEN_WEIGHTS)
                    if approximate and is_replaceable and ends is not None:
                        bound = end_of_interval(ends, NO_RANGE, end)
                    outcome = requirement.check_bound(value, bound)
                    outcomes.append(
                        outcome._replace(model=model, group=group, caution=caution)
                    )
            if requirement.reference is None:
                limits = result.first.value_range(requirement.metric)
                if limits is not None:
                    requirement.check_range(*limits)
        except ValueError as error:
            raise InvalidValueError(
                "kept_requirement", requirement=str(requirement), error=error
            ) from None
    return outcomes


def _tested(
    result: "Result[Any]", requirement: Requirement, model: str, end: End
) -> dict[str, Tested]:
    """Return a model's value for all rows (key "") and each group; with a reference, its difference on all rows."""
    metric = requirement.metric
    if requirement.reference is not None:
        return {"": _tested_difference(result, metric, model, requirement.reference, end)}
    result.find(metric, model)  # raises an error with a hint if it was not measured
    by_group: dict[str, Scores] = {"": result.models[model]}
    for column in result.groups:
        if column.model == model:
            for name, scores in column.groups.items():
                by_group[f"{column.column} = {name}"] = scores
    tested = dict[str, Tested]()
    for group, scores in by_group.items():
        measured = scores.find(metric)
        if measured is None:
            raise InvalidValueError("named_rate", "metric", metric)
        value, ends, _ = measured
        tested[group] = value, scores.bound(metric, end), ends
    return tested


def _tested_difference(
    result: "Result[Any]", metric: str, model: str, reference: str, end: End
) -> Tested:
    result.scores(reference)
    rows: list[Comparison | NotCompared] = [*result.comparisons, *result.without]
    metrics = list(dict.fromkeys(row.by.metric for row in rows))
    if metric not in metrics:
        metric = metric.replace("sensitivity[", "recall[", 1)
    if metric not in metrics:
        code = "rates_compared_by" if "[" in metric else "compared_by"
        raise InvalidValueError(
            code, "models", metric, compared=", ".join(metrics) or "nothing"
        )
    of_model = result.models[model].values.get(metric, nan)
    of_reference = result.models[reference].values.get(metric, nan)
    change = of_model - of_reference
    ends: Interval | None = None
    reason = NO_RANGE
    for row in rows:
        if row.by.metric != metric or {row.first, row.second} != {model, reference}:
            continue
        if isinstance(row, NotCompared):
            reason = row.reason
        elif row.second == model:
            change = row.paired.difference
            ends = (row.paired.low, row.paired.high)
        else:  # the comparison is the reference minus the model
            change = -row.paired.difference
            ends = (-row.paired.high, -row.paired.low)
    if result.paired_units:
        bound = result.paired_units[model].difference_bound(
            result.paired_units[reference], metric, end
        )
    else:
        bound = end_of_interval(ends, reason, end)
    return change, bound, ends
