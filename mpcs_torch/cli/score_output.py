"""The output of ``mpcs score``: tables and verdicts, or JSON."""

from typing import Any

from mpcs_torch.cli.console import print_json, say, text_of
from mpcs_torch.cli.json_values import plain_comparisons
from mpcs_torch.control_characters import printable
from mpcs_torch.functional import summarize_comparisons
from mpcs_torch.scoring.comparison_table import comparison_table
from mpcs_torch.scoring.model_scores import ModelScores
from mpcs_torch.scoring.own_intervals import without_interval
from mpcs_torch.scoring.scores import Scores


def print_scores(found: ModelScores, *, as_json: bool) -> None:
    """Print everything that was measured."""
    if as_json:
        print_json(_plain(found))
    else:
        say("\n\n".join(_parts(found)))
    for model, scores in found.scores.items():
        of_model = f"{model}: " if len(found.scores) > 1 else ""
        for warning in scores.warnings():
            say(f"warning: {of_model}{warning}", err=True)


def _parts(found: ModelScores) -> list[str]:
    first = found.first
    names = ", ".join(first.class_names[:10]) + (", ..." if len(first.class_names) > 10 else "")
    parts = [f"{first.rows} rows, {len(first.class_names)} classes: {names}"]
    for about, table in found.sections():
        parts += [*([about] if about else []), text_of(table)]
    parts += [printable(note) for note in found.notes]
    if len(found.scores) == 1 and (by_class := first.class_table()) is not None:
        parts.append(text_of(by_class))
    if found.comparisons:
        parts += [text_of(comparison_table(found.comparisons)), "\n".join(summarize_comparisons(found.comparisons))]
    for groups in found.groups:
        parts += [printable(f"{groups.model}, by {groups.column}, {groups.order()}"), text_of(groups.table())]
    return parts


def _plain(found: ModelScores) -> dict[str, Any]:
    first = found.first
    plain: dict[str, Any] = {"rows": first.rows, "classes": first.class_names}
    if len(found.scores) == 1:
        plain |= _plain_scores(first)
    else:
        plain["models"] = {name: _plain_scores(scores) for name, scores in found.scores.items()}
    if found.notes:
        plain["notes"] = list(found.notes)
    if found.comparisons:
        plain["comparisons"] = plain_comparisons(found.comparisons)
        plain["verdicts"] = summarize_comparisons(found.comparisons)
    if found.groups:
        plain["groups"] = [
            {
                "model": groups.model,
                "column": groups.column,
                "groups": {
                    name: {"rows": groups.groups[name].rows, **_plain_values(groups.groups[name])}
                    for name in groups.worst_first()
                },
                **groups.summaries(),
            }
            for groups in found.groups
        ]
    return plain


def _plain_values(scores: Scores) -> dict[str, Any]:
    plain: dict[str, Any] = {"metrics": scores.values}
    if scores.intervals:
        plain |= {"intervals": dict(scores.intervals), "without_interval": without_interval(scores)}
    return plain


def _plain_scores(scores: Scores) -> dict[str, Any]:
    plain = _plain_values(scores)
    if undefined := scores.undefined():
        plain["undefined"] = undefined
    if scores.confusion is not None:
        plain |= {"confusion": scores.confusion.tolist(), "per_class": _plain_classes(scores)}
    return plain


def _plain_classes(scores: Scores) -> dict[str, dict[str, Any]]:
    found = scores.class_intervals
    return {
        name: {**rates, **({"intervals": dict(found[name])} if name in found else {})}
        for name, rates in scores.per_class().items()
    }
