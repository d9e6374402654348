"""The report of files of predictions."""

from collections.abc import Mapping
from math import isfinite, nan
from pathlib import Path
from types import MappingProxyType

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import printable, shown
from mpcs_torch.evaluation import Result
from mpcs_torch.evaluation.classifier_files import RowRisks
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.evaluation import INDEPENDENT
from mpcs_torch.evaluation.scores import TRUE_CLASS, GroupScores, Interval
from mpcs_torch.functional import clopper_pearson, summarize_comparisons
from mpcs_torch.plots import condition_chart, reliability
from mpcs_torch.report.figures import (
    MOST_CLASSES,
    costliest,
    draw_confusion,
    draw_det,
    draw_referral,
    draw_verdict,
    errors_of,
)
from mpcs_torch.report.render import Drawing, draw, write_result
from mpcs_torch.tables import Table

ON_PAGE = 3
"""The number of metrics with intervals that fit a line of a printed page."""
TOLD = 3
"""The most classes in a sentence, and the most models that have one."""


def write_score_report(
    result: Result[ClassifierScores],
    concern: ConcernSpec | None,
    path: Path,
    *,
    risks: Mapping[str, RowRisks] = MappingProxyType({}),
    requirements: Table | None = None,
    command: str = "",
) -> None:
    """Write the verdict, the costliest confusions, figures of certainty and confusions, and all tables.

    Args:
        result: The values of the models.
        concern: Which errors matter.
        path: The HTML file to write.
        risks: Of the rows of each model, for figures of certainty.
        requirements: Which of them are met.
        command: The command line that made the report, for readers who want to repeat it.
    """
    names = result.first.class_names
    confusions = {name: scores.confusion for name, scores in result.models.items() if scores.confusion is not None}
    write_result(
        "score",
        path,
        result,
        name=", ".join(map(printable, result.models)) if len(result.models) < 4 else f"{len(result.models)} models",
        compared=_compared(result),
        sentences=[_sentence(name, result, concern) for name in result.models if len(result.models) <= TOLD],
        summary=_summary(result, concern),
        requirements=requirements,
        costs=costliest(confusions, concern, names) if confusions else None,
        drawings=[
            draw_confusion(confusion, concern, names, f"Confusion matrix{_of_model(result, name)}")
            for name, confusion in confusions.items()
            if len(names) <= MOST_CLASSES
        ]
        + _verdict(concern, risks),
        certainty=_certainty(result, concern, risks),
        is_several=len(result.models) > 1,
        is_too_large=bool(confusions) and len(names) > MOST_CLASSES,
        most=MOST_CLASSES,
        sections=result.sections(),
        warnings=score_warnings(result),
        classes=result.first.class_table() if len(result.models) == 1 else None,
        chart=_chart,
        tables=_tables,
        command=command,
    )


def score_warnings(result: Result[ClassifierScores]) -> list[str]:
    """Return the warnings of all models as sentences, which name the model if there are several."""
    warnings = [printable(warning).rstrip(".") for warning in result.warnings()]
    return [f"{warning}." if len(result.models) > 1 else f"{warning[0].upper()}{warning[1:]}." for warning in warnings]


def _compared(result: Result[ClassifierScores]) -> list[str]:
    """Say which models are better, by dangerous errors first."""
    of_concern = [entry.compared_as for entry in result.first.entries if entry.section == "concern"]
    return summarize_comparisons(sorted(result.comparisons, key=lambda row: row.measure not in of_concern))


def _sentence(name: str, result: Result[ClassifierScores], concern: ConcernSpec | None) -> str:
    """Say how many rows of each class are dangerous errors, the class first where one costs most."""
    scores, model = result.models[name], printable(name)
    by_class = [] if concern is None else _dangerous_by_class(name, result, concern)
    if not by_class and scores.confusion is None:
        return f"{model}: {scores.rows} rows with {len(scores.class_names)} classes."
    parts = [f"{n} of {of} {printable(label)} ({_percent(n, of, ends)})" for label, n, of, ends in by_class]
    told = ", ".join(parts[:TOLD]) + (" and on others" if len(parts) > TOLD else "")
    if scores.confusion is None:
        decided = f"{model} decides {100 * scores.values['coverage']:.3g} % of {scores.rows} rows and refers the others"
        return f"{decided}; dangerous errors: {told}."
    errors, dangerous = errors_of(scores.confusion, concern)
    wrong = f"wrong on {errors} of {scores.rows} rows ({_percent(errors, scores.rows)})"
    if not by_class:
        return f"{model} is {wrong}."
    in_all = f"{dangerous} of {scores.rows} rows in all ({_percent(dangerous, scores.rows)})"
    return f"{model} makes dangerous errors on {told}; {in_all}. It is {wrong}."


def _dangerous_by_class(
    name: str, result: Result[ClassifierScores], concern: ConcernSpec
) -> list[tuple[str, int, int, Interval | None]]:
    """Return the dangerous errors of the classes: their number, that of the rows, and the interval of their share.

    Classes are in the order of their dearest error, then of the share.
    """
    scores, pairs = result.models[name], concern.dangerous_pairs()
    dearest = (concern.matrix() * pairs).amax(dim=1).tolist()
    groups = next((each.groups for each in result.groups if (each.model, each.column) == (name, TRUE_CLASS)), {})
    found = list[tuple[str, int, int, Interval | None]]()
    for label, is_dangerous in zip(concern.classes, pairs, strict=True):
        of_class = groups.get(label)
        if of_class is not None and "dangerous_rate" in of_class.values:
            count = round(of_class.values["dangerous_rate"] * of_class.rows)
            found.append((label, count, of_class.rows, of_class.intervals.get("dangerous_rate")))
        elif scores.confusion is not None:
            row = scores.confusion[concern.classes.index(label)]
            count, total = int(row[is_dangerous].sum()), int(row.sum())
            if INDEPENDENT in result.notes:
                ends: Interval | None = clopper_pearson(count, total)
            else:  # over clusters, that of all errors of a class is known
                has_all = int(is_dangerous.sum()) == len(row) - 1
                ends = scores.class_intervals.get(label, {}).get("error_rate") if has_all else None
            found.append((label, count, total, ends))
    order = dict(zip(concern.classes, dearest, strict=True))
    told = [each for each in found if order[each[0]] > 0 and each[2]]
    return sorted(told, key=lambda each: (-order[each[0]], -each[1] / each[2]))


def _percent(count: int, total: int, ends: Interval | None = None) -> str:
    share = f"{100 * count / total:.3g} %"
    return share if ends is None else f"{share} [{100 * ends[0]:.3g}, {100 * ends[1]:.3g}]"


def _summary(result: Result[ClassifierScores], concern: ConcernSpec | None) -> dict[str, object]:
    facts: dict[str, object] = {"rows": result.first.rows, "classes": len(result.first.class_names)}
    for name, scores in result.models.items():
        if scores.confusion is None or len(result.models) > 3:
            continue
        errors, dangerous = errors_of(scores.confusion, concern)
        if len(result.models) == 1:
            facts |= {"errors": errors} if concern is None else {"errors": errors, "dangerous errors": dangerous}
        elif concern is None:
            facts[f"errors, {printable(name)}"] = errors
        else:
            facts[f"dangerous errors, {printable(name)}"] = f"{dangerous} of {errors}"
    return facts


def _of_model(result: Result[ClassifierScores], name: str) -> str:
    return f" of {name}" if len(result.models) > 1 else ""


def _certainty(
    result: Result[ClassifierScores], concern: ConcernSpec | None, kept_risks: Mapping[str, RowRisks]
) -> list[Drawing]:
    drawings = []
    risks = {printable(name): kept for name, rows in kept_risks.items() if (kept := rows.risks()) is not None}
    if risks:
        drawings.append(draw_referral(risks, counted="errors" if concern is None else "dangerous errors"))
    trials = {printable(name): kept for name, rows in kept_risks.items() if (kept := rows.trials()) is not None}
    if trials:
        drawings.append(draw_det(trials, printable(result.first.class_names[1])))
    for name, scores in result.models.items():
        of_model = _of_model(result, name)
        if scores.measured is not None and scores.reported is not None:
            figure = reliability(scores.measured, scores.reported, f"Reliability{of_model}")
            pairs = zip(scores.reported._fields, scores.reported, scores.measured.means, strict=True)
            means = ", ".join(
                f"{field.replace('_', ' ')} {one:.2f} reported and {other:.2f} measured" for field, one, other in pairs
            )
            drawings.append(draw(figure, printable(f"Reliability diagram{of_model}: {means}.")))
    return drawings


def _verdict(concern: ConcernSpec | None, risks: Mapping[str, RowRisks]) -> list[Drawing]:
    kept = {printable(name): rows.kept for name, rows in risks.items() if rows.kept is not None}
    drawing = draw_verdict(kept, concern) if kept and concern is not None else None
    return [] if drawing is None else [drawing]


def _chart(column: str, models: list[GroupScores]) -> Drawing:
    """Draw the metric that ranks groups, in the order of the first model."""
    first = models[0]
    metric, names = first.ranked_by, first.worst_first()
    values = {model.model: [_drawn(model.groups[name].values[metric]) for name in names] for model in models}
    pooled = {model.model: _drawn(model.pooled.values[metric]) for model in models}
    intervals = {
        model.model: [model.groups[name].intervals.get(metric, (nan, nan)) for name in names]
        for model in models
        if model.has_intervals
    }
    labels = [shown(name) for name in names]
    figure = condition_chart(values, pooled, labels, metric=metric, column=column, intervals=intervals)
    worst = values[first.model][0]
    alt = f"{metric} of each group of {column}, the worst first: {names[0]} with {worst:.4g} for {first.model}."
    return draw(figure, printable(alt))


def _tables(groups: GroupScores) -> list[tuple[str, Table]]:
    """Return tables that fit a printed page, each with a title."""
    metrics = groups.main_metrics()
    tables = [groups.table(metrics[first : first + ON_PAGE]) for first in range(0, len(metrics), ON_PAGE)]
    titles = [f"{groups.model}, {groups.order()}", *[f"{groups.model}, other metrics"] * (len(tables) - 1)]
    return list(zip(titles, tables, strict=True))


def _drawn(value: float) -> float:
    return value if isfinite(value) else nan
