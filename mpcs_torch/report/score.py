"""The report about files of predictions."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from markupsafe import Markup

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import printable
from mpcs_torch.evaluation import Result
from mpcs_torch.evaluation.classifier_files import RowRisks
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.outcomes import EVERY, number_text
from mpcs_torch.evaluation.result import ABOUT_RANGES
from mpcs_torch.functional import summarize_comparisons
from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.report.figures import ClassifierSections
from mpcs_torch.report.harm import (
    MAX_SENTENCES,
    TERMS,
    explanations,
    harm_sentence,
    outcome_tiles,
)
from mpcs_torch.report.render import draw, last_sections, named, part, write_page
from mpcs_torch.tables import Table

ABOUT_CURVES = (
    "Net benefit: found rows, minus needless actions times the odds of the threshold, for each row. Bands: "
    f"{CONFIDENCE_TEXT} intervals at each threshold."
)


def write_score_report(
    result: Result[ClassifierScores],
    concern: ConcernSpec | None,
    path: Path,
    *,
    risks: Mapping[str, RowRisks] = MappingProxyType({}),
    requirements: Table | None = None,
    command: str = "",
) -> None:
    """Write an HTML page about the scores of models: errors, confusions, groups, referral, comparisons and metrics.

    Args:
        result: The scores of one or more models.
        concern: The costs of errors.
        path: The HTML file to write.
        risks: The estimated risks of the rows for each model, from which the page draws errors against coverage.
        requirements: A table of the requirements on metrics, which says whether each is met.
        command: The shell command that writes the page again.
    """
    title, terms = named(result.models), explanations(result)
    classifiers = ClassifierSections(result.models, risks, concern)
    has_intervals = any(scores.class_intervals for scores in result.models.values())
    unit = result.first.cluster_name if result.first.clusters else "rows"
    brackets = f"In brackets: {CONFIDENCE_TEXT} intervals, of where a rate may be for new {unit} like these."
    notes = [brackets] if has_intervals else []
    notes += (
        [f"{unit.capitalize()} count if at least one of their rows does."]
        if result.first.clusters
        else []
    )
    curves = result.decision_curves
    notes += (
        [f"There are no decision curves: {printable(curves)}"]
        if isinstance(curves, str)
        else []
    )
    metrics = [
        part(
            "table",
            table,
            f"Metrics of {title}" + (f": {family}" if family else ""),
            terms=terms,
        )
        for family, table in result.sections().items()
    ]
    if (
        len(result.models) == 1 and not result.first.refers
    ):  # with referrals, the table by class has the same cells
        caption = "Samples, precision, recall and error rate of each class"
        metrics.append(part("table", result.first.class_table(), caption, terms=terms))
    bounds = f"Bound: the worse end of a {CONFIDENCE_TEXT} interval, which must meet the requirement. "
    bounds += (
        f"Tested on rows, not on {unit} (--unit tests these)."
        if result.first.clusters
        else "Tested on rows."
    )
    details = [part("folded", "h2", "All metrics", *metrics)]
    of_concern = [
        entry.compared_as for entry in result.first.entries if entry.family == "concern"
    ]  # these come first
    compared = summarize_comparisons(
        sorted(result.comparisons, key=lambda row: row.measure not in of_concern)
    )
    counts = [
        _sentence(name, result, concern)
        for name in result.models
        if len(result.models) <= MAX_SENTENCES
    ]
    write_page(
        path,
        f"Scores of {title}",
        [*compared[:1], *counts],
        [
            *_facts(result, concern),
            part("notes", notes),
            part("cautions", score_warnings(result)),
        ],
        [
            part("section", "Requirements", part("table", requirements, bounds)),
            *classifiers.sections(
                _caption(result, concern), _over_costs(result), _net_benefit(result)
            ),
            *last_sections(result, "rows of models", compared[1:], details, command),
        ],
    )


def score_warnings(result: Result[ClassifierScores]) -> list[str]:
    """Return the warnings about all models as sentences; if there are several models, each sentence names its model."""
    warnings = [printable(warning).rstrip(".") for warning in result.warnings()]
    return [
        f"{warning}." if len(result.models) > 1 else f"{warning[0].upper()}{warning[1:]}."
        for warning in warnings
    ]


def _sentence(
    name: str, result: Result[ClassifierScores], concern: ConcernSpec | None
) -> str:
    scores = result.models[name]
    if EVERY not in scores.outcomes:
        return (
            f"{printable(name)}: {scores.rows} rows with {len(scores.class_names)} classes."
        )
    return f"{printable(name)} {harm_sentence(scores, concern)}"


def _facts(result: Result[ClassifierScores], concern: ConcernSpec | None) -> list[Markup]:
    first, models = (
        result.first,
        {name: outcome_tiles(scores, concern) for name, scores in result.models.items()},
    )
    tiles: dict[str, object] = {"rows": first.rows, "classes": len(first.class_names)}
    if first.clusters:
        tiles = {
            first.cluster_name: number_text(first.clusters[EVERY].true.item()),
            **tiles,
        }
    if len(models) == 1:
        return [part("facts", tiles | next(iter(models.values())), TERMS)]
    cells = {
        name: {title: ": ".join(texts) for title, texts in facts.items()}
        for name, facts in models.items()
    }
    records = [
        {"model": printable(name), **of_model}
        for name, of_model in cells.items()
        if of_model
    ]
    table = Table.from_records(records) if records else None
    return [
        part("facts", tiles),
        part("table", table, "What became of the rows by each model", terms=TERMS),
    ]


def _caption(result: Result[ClassifierScores], concern: ConcernSpec | None) -> str:
    first = result.first
    order = (
        "The worst class first"
        if concern is None
        else "The class with the most expensive error first"
    )
    beside = (
        f"; {first.cluster_name}: those with rows of the class; all else counts rows"
        if first.clusters
        else ""
    )
    beside += "; referred rows are not missed" if first.refers else ""
    sure = (
        f", {CONFIDENCE_TEXT} intervals in brackets"
        if any(first.class_intervals.values())
        else ""
    )
    return f"{order}, then groups of classes{beside}{sure}"


def _over_costs(result: Result[ClassifierScores]) -> Markup:
    if (over := result.over_costs) is None:
        return Markup()
    about = part("sentences", [ABOUT_RANGES, *over.sentences()])
    table = part(
        "table",
        over.table(),
        "Mean cost for each row, at the middle costs and over all of them",
    )
    return part("section", "Where costs are ranges", about, table)


def _net_benefit(result: Result[ClassifierScores]) -> Markup:
    curves = result.decision_curves
    if isinstance(curves, str):
        return Markup()
    sentences = [printable(sentence) for sentence in curves.sentences()]
    drawing = draw(curves.plot(), f"Decision curves. {sentences[0]}", ABOUT_CURVES)
    title = printable(f"What acting on {curves.scale.of} is worth")
    return part("section", title, part("sentences", sentences), part("figures", [drawing]))
