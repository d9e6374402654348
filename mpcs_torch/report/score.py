"""The report about files of predictions."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import printable
from mpcs_torch.evaluation import Result
from mpcs_torch.evaluation.classifier_files import RowRisks
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.outcomes import EVERY, number_text
from mpcs_torch.functional import summarize_comparisons
from mpcs_torch.report.error_counts import (
    MAX_SENTENCES,
    error_sentence,
    explanations,
    outcome_tiles,
)
from mpcs_torch.report.figures import ClassifierSections
from mpcs_torch.report.render import named, render
from mpcs_torch.tables import Table


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
    # These come first.
    of_concern = [
        entry.compared_as for entry in result.first.entries if entry.family == "concern"
    ]
    compared = summarize_comparisons(
        sorted(result.comparisons, key=lambda row: row.measure not in of_concern)
    )
    conclusions = compared[:1]
    if len(result.models) <= MAX_SENTENCES:
        conclusions += [_sentence(name, result, concern) for name in result.models]
    of_models = {
        name: outcome_tiles(scores, concern) for name, scores in result.models.items()
    }
    tiles, outcomes = _facts(result, of_models)
    shown = [
        text for facts in of_models.values() for texts in facts.values() for text in texts
    ]
    render(
        "score",
        path,
        kind=f"Scores of {named(result.models)}",
        title=named(result.models),
        conclusions=conclusions,
        result=result,
        shown=ClassifierSections(result.models, risks, concern),
        tiles=tiles,
        outcomes=outcomes,
        has_brackets=any(" [" in text for text in shown),
        warnings=score_warnings(result),
        requirements=requirements,
        compared=compared,
        terms=explanations(result),
        command=command,
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
    return f"{printable(name)} {error_sentence(scores, concern)}"


def _facts(
    result: Result[ClassifierScores], of_models: Mapping[str, dict[str, list[str]]]
) -> tuple[dict[str, object], Table | None]:
    """Return the key numbers of the rows and, of a single model, of its errors; and a table of those of several.

    The errors of each model are ``of_models``, by `outcome_tiles`.
    """
    first = result.first
    tiles: dict[str, object] = {}
    if first.clusters:
        tiles[first.cluster_name] = number_text(first.clusters[EVERY].true.item())
    tiles |= {"rows": first.rows, "classes": len(first.class_names)}
    if len(of_models) == 1:
        return {**tiles, **next(iter(of_models.values()))}, None
    records = []
    for name, of_model in of_models.items():
        if of_model:
            cells = {title: ": ".join(texts) for title, texts in of_model.items()}
            records.append({"model": printable(name), **cells})
    return tiles, Table.from_records(records) if records else None
