"""The report of files of predictions."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import printable
from mpcs_torch.evaluation import Result
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.outcomes import EVERY
from mpcs_torch.evaluation.rows import RowRisks
from mpcs_torch.evaluation.scores import GroupScores
from mpcs_torch.functional import summarize_comparisons
from mpcs_torch.plots import reliability
from mpcs_torch.report.figures import (
    MOST_CLASSES,
    compare_costs,
    costliest,
    draw_confusion,
    draw_det,
    draw_referral,
    draw_verdict,
)
from mpcs_torch.report.harm import DANGEROUS, all_rows, harm_sentence, harm_table, number_text, percent
from mpcs_torch.report.render import Drawing, draw, write_result
from mpcs_torch.report.terms import terms_of
from mpcs_torch.tables import Table

ON_PAGE = 3
"""The number of metrics with intervals that fit a line of a printed page."""
UNWEIGHTED = "DET curves and the picture of what costs least over other costs, which count rows alike, are left out."
"""Of weighted rows; all else on the page is weighted."""
NOTHING_SHOWN = (
    "Which model, or way of deciding, costs least is shown for none of the costs that were tried: no picture."
)
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
    drawn, notes = _verdict(concern, risks), list(result.notes)
    result = replace(result, notes=[*notes, *([NOTHING_SHOWN] if drawn is not None and not drawn else [])])
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
        sentences=[
            told for name in result.models if len(result.models) <= TOLD for told in _told(name, result, concern)
        ],
        has_intervals=any(scores.class_intervals for scores in result.models.values()),
        summary=_summary(result, concern),
        requirements=requirements,
        costs=costliest(confusions, concern, names) if confusions else None,
        terms=terms_of(result),
        drawings=[
            draw_confusion(
                confusion,
                concern,
                names,
                f"Confusion matrix{_of_model(result, name)}",
                decisions=result.models[name].decision_names,
            )
            for name, confusion in confusions.items()
            if len(names) <= MOST_CLASSES
        ]
        + (drawn or []),
        by_class=harm_table(result.models, concern),
        work=[f"{_about(result, name)}{told}" for name in result.models for told in _work(result, name)],
        over_costs=result.over_costs,
        by_class_caption=_caption(result, concern),
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


def _told(name: str, result: Result[ClassifierScores], concern: ConcernSpec | None) -> list[str]:
    """Say how many rows of each class are dangerous errors, the class first where one costs most, and what else."""
    scores, model = result.models[name], printable(name)
    counted = "weighted rows" if scores.is_weighted else "rows"
    if EVERY not in scores.outcomes:
        return [f"{model}: {scores.rows} rows with {len(scores.class_names)} classes."]
    told = [f"{model} {harm_sentence(scores, concern, counted=counted)}"]
    every = all_rows(scores, scores.intervals.get("misclassification_rate")).rows
    if concern is not None and every.missed != every.dangerous:
        wrong = all_rows(scores, scores.intervals.get("misclassification_rate"))
        told.append(f"{model} is wrong on {wrong.told('missed', '', counted)}.")
    if scores.refers and every.referred:
        told.append(f"{model} refers {all_rows(scores, None).told('referred', '', counted)}.")
    elif scores.refers:
        told.append(f"{model} refers none.")
    return told


def _caption(result: Result[ClassifierScores], concern: ConcernSpec | None) -> str:
    """Say how the table by class is read."""
    first = result.first
    order = "The worst class first" if concern is None else "The class with the most expensive error first"
    beside = f"; {first.cluster_name}: those with such rows" if first.clusters else ""
    sure = ", 95 % intervals in brackets" if any(first.class_intervals.values()) else ""
    return f"{order}, then groups of classes{beside}; rows as parts of rows{sure}"


def _summary(result: Result[ClassifierScores], concern: ConcernSpec | None) -> dict[str, object]:
    """Return the tiles: each number says what it is a part of."""
    first = result.first
    facts: dict[str, object] = {"rows": first.rows, "classes": len(first.class_names)}
    if first.clusters:
        facts = {first.cluster_name: number_text(first.clusters[EVERY].true.item())} | facts
    for name, scores in result.models.items():
        if EVERY not in scores.outcomes or len(result.models) > TOLD:
            continue
        of = "" if len(result.models) == 1 else f", {printable(name)}"
        if not of and concern is not None and scores.constant and "expected_concern" in scores.values:
            units = f"cost of errors, as a share of always deciding {printable(scores.constant[0])}"
            facts[units] = f"{scores.values['expected_concern']:.3g}"
        counted = {DANGEROUS: "dangerous"} if concern is not None else {}
        counted |= {"referred": "referred"} if scores.refers else {}
        for title, field in ({"wrong decisions": "missed"} | counted).items():
            facts[f"{title}{of}"] = _tile(scores, field)
        if scores.refers:
            every = scores.outcomes[EVERY]
            right, decided = every.right.item(), (every.true - every.referred).item()
            facts[f"accuracy of the decided{of}"] = (
                f"{percent(right, decided)} of {number_text(decided)} rows" if decided else "none is decided"
            )
    return facts


def _tile(scores: ClassifierScores, field: str) -> str:
    """Return how many rows are something, of how many, and clusters first."""
    counts = [(scores.clusters[EVERY], scores.cluster_name)] if scores.clusters else []
    counts.append((scores.outcomes[EVERY], "weighted rows" if scores.is_weighted else "rows"))
    texts = [f"{number_text(getattr(of, field).item())} of {number_text(of.true.item())} {what}" for of, what in counts]
    return f"in {', '.join(texts)}" if len(texts) > 1 else texts[0]


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


def _work(result: Result[ClassifierScores], name: str) -> list[str]:
    return result.models[name].remarks_of_referrals()


def _about(result: Result[ClassifierScores], name: str) -> str:
    return f"{printable(name)}: " if len(result.models) > 1 else ""


def _verdict(concern: ConcernSpec | None, risks: Mapping[str, RowRisks]) -> list[Drawing] | None:
    """Draw what costs least; nothing if that is shown nowhere, None if there is nothing to compare."""
    kept = {printable(name): rows.kept for name, rows in risks.items() if rows.kept is not None}
    verdict = compare_costs(kept, concern) if kept and concern is not None else None
    if verdict is None:
        return None
    return [draw_verdict(verdict, is_several=len(kept) > 1)] if verdict.is_shown.any() else []


def _tables(groups: GroupScores) -> list[tuple[str, Table]]:
    """Return tables that fit a printed page, each with a title."""
    metrics = groups.main_metrics()
    tables = [groups.table(metrics[first : first + ON_PAGE]) for first in range(0, len(metrics), ON_PAGE)]
    titles = [f"{groups.model}, {groups.order()}", *[f"{groups.model}, other metrics"] * (len(tables) - 1)]
    return list(zip(titles, tables, strict=True))
