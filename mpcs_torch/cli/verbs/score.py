"""``mpcs score``: compute the metrics of a file of predictions."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from mpcs_torch.cli import options
from mpcs_torch.cli.console import COMMAND_LINE, note, print_scores, row_counter
from mpcs_torch.evaluation.files.read_options import ReadOptions

WEIGHED = ("weight", "frequency", "prevalence", *options.OF_COSTS, *options.OF_UNITS)
"""The options that change how much rows count, or what their decisions cost."""

BETWEEN = re.compile(r",(?![^(]*\)|[^\[]*\])")
"""A pattern for the commas between metrics, that is, commas outside brackets."""


@options.shared(
    *options.OF_CLASSES,
    "decision_column",
    "models",
    "by",
    "cluster",
    "crossed",
    *WEIGHED,
    *options.PRINTING,
)
def score(
    predictions: Annotated[list[Path], options.file_argument("PREDICTIONS...")],
    concern: Annotated[
        list[Path] | None,
        options.concern_option(
            "how much each error matters, perhaps as ranges; repeatable for several people"
        ),
    ] = None,
    *,
    reading: ReadOptions,
    metrics: Annotated[
        str | None, typer.Option(show_default="those that repeat no other")
    ] = None,
    k: Annotated[int | None, typer.Option(min=1, show_default="5")] = None,
    t: Annotated[int | None, typer.Option(min=2, show_default="200")] = None,
    concession: Annotated[float | None, typer.Option(show_default="the concern's")] = None,
    confusion: bool = False,
    seen: Annotated[Path | None, options.FILE] = None,
    intervals: options.Intervals = True,
    require: Annotated[list[str] | None, typer.Option(metavar="TEXT")] = None,
    approximate: bool = False,
    looks: Annotated[int, typer.Option(min=1)] = 1,
    max_weight: float | None = None,
    html: options.Html = None,
) -> None:
    """Compute all metrics that files of predictions allow, and compare models.

    A file has a row for each sample, as text with any delimiter, JSON, parquet, xlsx, npz, npy or pt: a label,
    and a score for each class, one probability of the positive class, or a predicted label. The first line of the
    output says which columns these are; options name them if names and values are ambiguous. Files of several models
    have the same rows, in the same order unless --id-column matches them.

    Args:
        predictions: One file for each model.
        metrics: Names of `mpcs metrics`, or [name=]package.module:Class(setting=value), with commas between.
        k: MPCS: number of classes to look at.
        t: MPCS: number of intervals.
        concession: MPCS, instead of --t: how far confidences may fall short of certainty.
        confusion: PREDICTIONS is a confusion matrix instead, with the true class first in each row.
        seen: Predictions for rows that the model was trained or chosen on: warn if rows are the same.
        require: Exit with status 3 unless a bound meets the requirement, such as "dangerous_rate < 1 %"; repeatable.
        looks: How many times requirements will be tested in all, with more rows or other models.
        max_weight: The largest weight (--weight) that a further row, or cluster, may have: for requirements.
        approximate: Test metrics that have no bound, such as cross entropy, by the end of their interval.
    """
    if confusion:
        of_scores = {
            "seen": seen,
            "concession": concession,
            "k": k,
            "t": t,
            **options.given_options(reading),
        }
        options.refuse_given(of_scores, "of_scores")
    if len(predictions) > 1:
        options.refuse_given({"confusion": confusion, "seen": seen}, "of_one_file")

    from mpcs_torch.evaluation.requirements import (
        Requirement,
        demand_all,
        outcomes_table,
    )

    with options.refused_values(option="--require"):
        requirements = [Requirement.parse(text) for text in require or ()]
    how: dict[str, Any] = {
        "approximate": approximate,
        "looks": looks,
        "max_weight": max_weight,
    }

    from mpcs_torch.concern import load_concern_range
    from mpcs_torch.evaluation.classifier_files import (
        RowRisks,
        open_models,
        score_models,
        shared_rows,
    )
    from mpcs_torch.evaluation.files.predictions import Predictions
    from mpcs_torch.metrics.find_entry import find_entry

    costs = load_concern_range(*concern) if concern else None
    spec = None if costs is None else costs.middle
    entries = None
    if metrics is not None:
        with options.refused_values(option="--metrics"):
            entries = [find_entry(name.strip()) for name in BETWEEN.split(metrics)]
    risks: dict[str, RowRisks] = {}
    if confusion:
        from mpcs_torch.evaluation.confusion import score_confusion

        result = score_confusion(
            predictions[0], costs, entries=entries, intervals=intervals
        )
    else:
        opened = open_models(predictions, reading, spec)
        if html is not None:
            risks = {name: RowRisks() for name in opened}
        # Requirements that cannot be tested are refused before the evaluation.
        check = (
            (lambda result: result.check(*requirements, **how)) if requirements else None
        )
        with row_counter("score", predictions) as advance:
            result = score_models(
                opened,
                costs,
                advance,
                entries=entries,
                settings={"k": k, "t": t, "concession": concession},
                intervals=intervals,
                risks=risks,
                check=check,
            )
    if seen is not None:
        known = Predictions(seen, reading.alone()._replace(labels=None))
        first, *_ = opened.values()  # all models of a file have the same rows
        shared = shared_rows(first, known)
        result = replace(result, cautions=[*result.cautions, *shared])
    with options.refused_values(option="--require"):
        outcomes = result.check(*requirements, **how) if requirements else []
    result = result.muted(*COMMAND_LINE.mute)
    print_scores(result, outcomes)
    if html is not None:
        from mpcs_torch.report.score import write_score_report

        table = outcomes_table(outcomes) if outcomes else None
        write_score_report(
            result, spec, html, risks=risks, requirements=table, command=str(COMMAND_LINE)
        )
        note(f"wrote {html}")
    demand_all(outcomes)
