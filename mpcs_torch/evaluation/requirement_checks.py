"""Test requirements on the values of a result: the value, and the bound that must keep the limit, of each group."""

from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING, Any

from mpcs_torch.errors import InvalidValueError, require
from mpcs_torch.evaluation.intervals_and_bounds import End
from mpcs_torch.evaluation.paired_differences import NotCompared
from mpcs_torch.evaluation.reasons import NO_RANGE, OPEN_WEIGHTS, Reason
from mpcs_torch.evaluation.requirements import AT_SHARES, Outcome, Requirement
from mpcs_torch.evaluation.scores import Measured, Scores, end_of_interval, measured_as
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
    for each in requirements:
        is_requirement = isinstance(each, Requirement | str)
        require(is_requirement, "requirement_type", "requirements", each)
    parsed = [
        Requirement.parse(each) if isinstance(each, str) else each for each in requirements
    ]
    references = {each.reference for each in parsed}
    tested = [name for name in result.models if name not in references]
    if not parsed or not tested:
        raise InvalidValueError("needs_requirements", "require", requirements)
    is_number = isinstance(looks, int) and looks >= 1
    require(is_number, "whole_at_least", "looks", looks, minimum=1)
    if max_weight is not None:
        units = result.first.units
        heaviest = 0.0
        if result.has_open_weights and units is not None:
            heaviest = units.units.heaviest
        # A weight such as 3.333 may be given for one of 1 / 0.3.
        is_possible = max_weight > 0 and max_weight >= 0.999 * heaviest
        require(is_possible, "max_weight", "max_weight", max_weight, heaviest=heaviest)
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
            limits = result.first.value_range(requirement.metric)
            if limits is not None:
                low, high = limits
                if requirement.reference is not None:  # a difference of two such values
                    low, high = low - high, high - low
                requirement.check_range(low, high)
        except ValueError as error:
            raise InvalidValueError(
                "kept_requirement", requirement=str(requirement), error=error
            ) from None
    return outcomes


def _tested(
    result: "Result[Any]", requirement: Requirement, model: str, end: End
) -> dict[str, Tested]:
    """Return a model's value, or its difference from the reference, for all rows (key "") and for each group."""
    metric, reference = requirement.metric, requirement.reference
    of_model = _scores_by_group(result, model)
    if reference is not None:
        of_reference = _scores_by_group(result, reference)
        metric = _compared_metric(result, metric)
        tested = {"": _tested_difference(result, metric, model, reference, end)}
        for group in [*of_model][1:]:  # the first is all rows
            scores, others = of_model[group], of_reference[group]
            change = _measured(scores, metric).value - _measured(others, metric).value
            bound = _difference_bound(scores, others, metric, end, NO_RANGE)
            tested[group] = change, bound, None
        return tested
    result.find(metric, model)  # raises an error with a hint if it was not measured
    tested = {}
    for group, scores in of_model.items():
        measured = _measured(scores, metric)
        bound = scores.bound(metric, end)
        if bound == NO_RANGE and measured.interval is None:
            # There is no interval either, which has a reason of its own.
            bound = measured.reason
        tested[group] = measured.value, bound, measured.interval
    return tested


def _measured(scores: Scores, metric: str) -> Measured:
    measured = scores.find(metric)
    if measured is None:
        raise InvalidValueError("named_rate", "metric", metric)
    return measured


def _scores_by_group(result: "Result[Any]", model: str) -> dict[str, Scores]:
    """Return the scores of a model on all rows (key ""), and in each group by the column and the group."""
    result.scores(model)  # raises an error if there is no such model
    by_group = dict[str, Scores]()
    for (column, name), scores in result.by_group(model).items():
        by_group[f"{column} = {name}" if column else ""] = scores
    return by_group


def _compared_metric(result: "Result[Any]", metric: str) -> str:
    """Return the name by which models are compared by ``metric``."""
    rows: list[Comparison | NotCompared] = [*result.comparisons, *result.without]
    metrics = list(dict.fromkeys(row.by.metric for row in rows))
    if metric not in metrics:
        metric = measured_as(metric)
    if metric not in metrics:
        code = "rates_compared_by" if "[" in metric else "compared_by"
        raise InvalidValueError(
            code, "models", metric, compared=", ".join(metrics) or "nothing"
        )
    return metric


def _difference_bound(
    scores: Scores, of_reference: Scores, metric: str, end: End, without: float | Reason
) -> float | Reason:
    """Return the bound of the difference of two models, or the reason for none; without known units, ``without``."""
    if scores.units is None or of_reference.units is None:
        return without
    return scores.units.difference_bound(of_reference.units, metric, end)


def _tested_difference(
    result: "Result[Any]", metric: str, model: str, reference: str, end: End
) -> Tested:
    rows: list[Comparison | NotCompared] = [*result.comparisons, *result.without]
    first, second = result.models[reference], result.models[model]
    change = second.values.get(metric, nan) - first.values.get(metric, nan)
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
    by_interval = end_of_interval(ends, reason, end)
    return change, _difference_bound(second, first, metric, end, by_interval), ends
