"""The report of files of predictions."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import printable
from mpcs_torch.evaluation import Result
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.evaluation import INDEPENDENT
from mpcs_torch.evaluation.rows import RowRisks
from mpcs_torch.evaluation.scores import TRUE_CLASS, GroupScores
from mpcs_torch.functional import summarize_comparisons
from mpcs_torch.plots import reliability
from mpcs_torch.report.figures import (
    MOST_CLASSES,
    costliest,
    draw_confusion,
    draw_det,
    draw_referral,
    draw_verdict,
    errors_of,
)
from mpcs_torch.report.harm import OfClass, classes_of, harm_sentence, harm_table, number_text, percent
from mpcs_torch.report.render import Drawing, draw, write_result
from mpcs_torch.tables import Table

ON_PAGE = 3
"""The number of metrics with intervals that fit a line of a printed page."""
UNWEIGHTED = "DET curves and the picture of what costs least over other costs, which count rows alike, are left out."
"""Of weighted rows; all else on the page is weighted."""
TOLD = 3
"""The most models that have a sentence."""


def write_score_report(
    result: Result[ClassifierScores],
    concern: ConcernSpec | None,
    path: Path,
    *,
    risks: Mapping[str, RowRisks] = MappingProxyType({}),
    requirements: Table | None = None,
    command: str = "",
) -> None:
    """Write the harm, by class, by referral, by confusion and by group, the comparison, and all else folded.

    The risks of the rows of each model are for figures of certainty. The requirements say which of them are met.
    """
    if any(rows.is_weighted for rows in risks.values()):
        result = replace(result, notes=[*result.notes, UNWEIGHTED])
    names = result.first.class_names
    confusions = {name: counts for name, scores in result.models.items() if (counts := scores.confusion) is not None}
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
        by_class=_class_table(result, concern),
        over_costs=result.over_costs,
        by_class_caption=_caption(concern),
        referral=_referral(concern, risks),
        certainty=_certainty(result, risks),
        is_several=len(result.models) > 1,
        is_too_large=bool(confusions) and len(names) > MOST_CLASSES,
        most=MOST_CLASSES,
        sections=result.sections(),
        warnings=score_warnings(result),
        classes=result.first.class_table() if len(result.models) == 1 else None,
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
    scores, model, classes = result.models[name], printable(name), _classes(name, result, concern)
    if not classes:
        return f"{model}: {scores.rows} rows with {len(scores.class_names)} classes."
    ends, of_wrong = (scores.intervals.get(name) for name in ("dangerous_rate", "misclassification_rate"))
    counted = "weighted rows" if scores.is_weighted else "rows"
    told = harm_sentence(classes, are_all=concern is None, ends=of_wrong if concern is None else ends, counted=counted)
    if (counts := scores.confusion) is None:
        decided = f"{model} decides {100 * scores.values['coverage']:.3g} % of {scores.rows} rows and refers the others"
        return f"{decided}; it {told}"
    if concern is None:
        return f"{model} {told}"
    errors, dangerous = errors_of(counts, concern)
    if errors == dangerous:
        return f"{model} {told}"
    total = counts.sum().item()
    of_all = f"{number_text(errors)} of {number_text(total)} {counted} ({percent(errors, total, of_wrong)})"
    return f"{model} {told} It is wrong on {of_all}."


def _classes(name: str, result: Result[ClassifierScores], concern: ConcernSpec | None) -> list[OfClass]:
    """Return the dangerous errors of each class, as a confusion matrix or the groups of decisions count them."""
    scores = result.models[name]
    if (counts := scores.confusion) is not None:
        is_counted = INDEPENDENT in result.notes and not scores.is_weighted
        intervals = None if is_counted else scores.class_intervals
        return classes_of(counts, concern, scores.class_names, intervals)
    groups = next((each.groups for each in result.groups if (each.model, each.column) == (name, TRUE_CLASS)), {})
    if concern is None or not any("dangerous_rate" in of_class.values for of_class in groups.values()):
        return []
    dearest = (concern.matrix() * concern.dangerous_pairs()).amax(dim=1).tolist()
    classes = list[OfClass]()
    for label, cost in zip(concern.classes, dearest, strict=True):
        of_class, rate, rows, ends_of = groups.get(label), 0.0, 0.0, None
        if isinstance(of_class, ClassifierScores):
            rate, rows = of_class.values["dangerous_rate"], of_class.weight
            ends_of = of_class.intervals.get("dangerous_rate")
        classes.append(OfClass(label, round(rate * rows, 6), rows, ends_of, cost))
    return classes


def _caption(concern: ConcernSpec | None) -> str:
    """Say how the table by class is read."""
    if concern is None:
        return "The worst class first; 95 % intervals in brackets"
    caption = "The class with the most expensive error first; 95 % intervals in brackets"
    is_empty = not bool(concern.dangerous_pairs().any(dim=1).all())
    return f"{caption}; no entry where no error is dangerous" if is_empty else caption


def _class_table(result: Result[ClassifierScores], concern: ConcernSpec | None) -> Table | None:
    """Return the dangerous errors and the recall of each class; None if they are not known."""
    by_model = {name: _classes(name, result, concern) for name in result.models}
    if not all(by_model.values()):
        return None
    return harm_table(by_model, are_all=concern is None)


def _summary(result: Result[ClassifierScores], concern: ConcernSpec | None) -> dict[str, object]:
    facts: dict[str, object] = {"rows": result.first.rows, "classes": len(result.first.class_names)}
    for name, scores in result.models.items():
        if (counts := scores.confusion) is None or len(result.models) > 3:
            continue
        errors, dangerous = map(number_text, errors_of(counts, concern))
        if len(result.models) == 1 and concern is not None and scores.constant and "expected_concern" in scores.values:
            units = f"cost of errors, as a share of always deciding {printable(scores.constant[0])}"
            facts[units] = f"{scores.values['expected_concern']:.3g}"
        if len(result.models) == 1:
            facts |= {"errors": errors} if concern is None else {"errors": errors, "dangerous errors": dangerous}
        elif concern is None:
            facts[f"errors, {printable(name)}"] = errors
        else:
            facts[f"dangerous errors, {printable(name)}"] = f"{dangerous} of {errors}"
    return facts


def _of_model(result: Result[ClassifierScores], name: str) -> str:
    return f" of {name}" if len(result.models) > 1 else ""


def _referral(concern: ConcernSpec | None, kept_risks: Mapping[str, RowRisks]) -> list[Drawing]:
    risks = {printable(name): kept for name, rows in kept_risks.items() if (kept := rows.risks()) is not None}
    return [draw_referral(risks, counted="errors" if concern is None else "dangerous errors")] if risks else []


def _certainty(result: Result[ClassifierScores], kept_risks: Mapping[str, RowRisks]) -> list[Drawing]:
    drawings = []
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


def _tables(groups: GroupScores) -> list[tuple[str, Table]]:
    """Return tables that fit a printed page, each with a title."""
    metrics = groups.main_metrics()
    tables = [groups.table(metrics[first : first + ON_PAGE]) for first in range(0, len(metrics), ON_PAGE)]
    titles = [f"{groups.model}, {groups.order()}", *[f"{groups.model}, other metrics"] * (len(tables) - 1)]
    return list(zip(titles, tables, strict=True))
