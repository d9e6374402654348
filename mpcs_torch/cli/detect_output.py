"""The output of ``mpcs detect``: tables and verdicts, or JSON."""

from typing import Any

from mpcs_torch.cli.console import print_json, say, text_of
from mpcs_torch.cli.json_values import finite
from mpcs_torch.evaluation.comparison_table import comparison_table, leading, plain_comparisons
from mpcs_torch.functional import summarize_comparisons
from mpcs_torch.scoring import DetectionScores
from mpcs_torch.scoring.detection_scores import notes
from mpcs_torch.scoring.detector_results import Results


def print_results(found: Results, *, as_json: bool, cluster: str | None) -> None:
    """Print everything that was measured."""
    if as_json:
        print_json(_plain(found))
        return
    first = next(iter(found.scores.values()))
    counts = first.summary.counts
    say(f"{counts.targets} targets, {counts.nontargets} non-targets\n")
    say(text_of((first if len(found.scores) == 1 else found).table()))
    for note in notes(list(found.scores.values()), cluster):
        say(f"\n{note}")
    if found.comparisons:
        rows, others = leading(found.comparisons)
        say(f"\n{text_of(comparison_table(rows))}\n")
        if others:
            say(f"p-values are corrected for these rows and those of {', '.join(others)} (--json has all).\n")
        say("\n".join(summarize_comparisons(found.comparisons)))
    for conditions in found.conditions:
        title = f"{conditions.detector}, by {conditions.column}"
        say(f"\n{title}\n\n{text_of(conditions.table())}")
        if conditions.incomplete:
            say(f"\nWithout targets or without non-targets: {', '.join(conditions.incomplete)}.")


def _plain(found: Results) -> dict[str, Any]:
    first = next(iter(found.scores.values()))
    counts = first.summary.counts
    plain: dict[str, Any] = {"targets": int(counts.targets), "nontargets": int(counts.nontargets)}
    if len(found.scores) == 1:
        plain["metrics"] = finite(first.named())
        hull = first.summary.hull.rates()
        plain["convex_hull"] = {"miss_rate": hull.p_miss.tolist(), "false_alarm_rate": hull.p_fa.tolist()}
    else:
        plain["detectors"] = {name: finite(scores.named()) for name, scores in found.scores.items()}
    if found.comparisons:
        plain["comparisons"] = plain_comparisons(found.comparisons)
    if found.conditions:
        plain["conditions"] = [
            {
                "detector": conditions.detector,
                "column": conditions.column,
                "groups": {name: _with_sizes(scores) for name, scores in conditions.by_name.items()},
                "incomplete": conditions.incomplete,
                **{name: finite(values) for name, values in conditions.summaries().items()},
            }
            for conditions in found.conditions
        ]
    return plain


def _with_sizes(scores: DetectionScores) -> dict[str, Any]:
    counts = scores.summary.counts
    return {"targets": int(counts.targets), "nontargets": int(counts.nontargets), "metrics": finite(scores.named())}
