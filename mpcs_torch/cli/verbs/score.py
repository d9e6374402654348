"""``mpcs score``: compute the metrics of a file of predictions."""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpcs_torch.cli import options
from mpcs_torch.cli.console import COMMAND_LINE, note, print_scores
from mpcs_torch.cli.options import (
    AsJson,
    By,
    Cluster,
    Html,
    Ignore,
    Intervals,
    Logits,
    OverwriteReport,
    Quiet,
    TargetColumn,
)

if TYPE_CHECKING:
    from mpcs_torch.metrics.by_name import MetricEntry


def score(
    predictions: Annotated[list[Path], options.file_argument("PREDICTIONS...")],
    concern: Annotated[
        list[Path] | None,
        options.concern_option("how much each error matters, also as ranges; repeatable for several people"),
    ] = None,
    target: Annotated[Path | None, options.file_option()] = None,
    target_column: TargetColumn = None,
    ignore: Ignore = None,
    id_column: options.IdColumn = None,
    logits: Logits = False,
    metrics: Annotated[str | None, typer.Option(show_default="those that repeat no other")] = None,
    k: Annotated[int | None, typer.Option(min=1, show_default="5")] = None,
    t: Annotated[int | None, typer.Option(min=2, show_default="200")] = None,
    concession: Annotated[float | None, typer.Option(show_default="the concern's")] = None,
    confusion: Annotated[bool, typer.Option("--confusion")] = False,
    development: Annotated[Path | None, options.file_option()] = None,
    seen: Annotated[Path | None, options.file_option()] = None,
    by: By = None,
    cluster: Cluster = None,
    intervals: Intervals = True,
    require: Annotated[list[str] | None, typer.Option(metavar="TEXT")] = None,
    mute: options.Mute = None,
    as_json: AsJson = False,  # noqa: ARG001  # read by its callback
    html: Html = None,
    overwrite: OverwriteReport = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Compute all metrics that files of predictions allow, and compare models.

    Each file is read in one pass with bounded memory. Files of several models have the same rows, in the same order
    unless --id-column matches them.

    npz and pt files contain preds (N, C) and target. csv and parquet files contain a column of scores for each class,
    named after the class or numbered from 0, and a column target (or label, y_true) of names or numbers of classes, or
    columns target_NAME of soft labels. Files of `mpcs decide apply` have decisions instead of scores. An index, ids,
    predicted classes and text are left out. npy files contain only scores; --target gives the labels. A confusion
    matrix has the predicted classes in the header and the true class first in each row.

    Args:
        predictions: npz, npy, pt, csv or parquet file with one row per sample; one file for each model.
        target: File of the labels, if PREDICTIONS is an npy file.
        metrics: Names of `mpcs metrics` or package.module:Class, with commas between.
        k: MPCS: number of classes to look at.
        t: MPCS: number of intervals.
        concession: MPCS, instead of --t: how far confidences may fall short of certainty.
        confusion: PREDICTIONS is a confusion matrix instead, as csv.
        development: Soft labels: also measure hard F at the thresholds by class that are best on this file.
        seen: Predictions of the model for rows of its training or choice: warn if rows are the same.
        require: Exit with status 3 unless intervals show it, such as "dangerous_rate < 1 %"; repeatable.
    """
    options.check_out(html, overwrite=overwrite, option="--html")
    if confusion:
        of_scores: dict[str, object] = {"--target": target, "--logits": logits, "--development": development}
        of_scores |= {"--k": k, "--t": t, "--concession": concession}
        of_scores |= {"--target-column": target_column, "--ignore": ignore, "--id-column": id_column}
        of_scores |= {"--by": by, "--cluster": cluster, "--seen": seen}
        options.refuse_given(of_scores, "is for scores, which a confusion matrix does not have")
    if len(predictions) > 1 and (confusion or development is not None or seen is not None):
        option = "--confusion" if confusion else "--seen" if development is None else "--development"
        raise typer.BadParameter("is for one file of predictions", param_hint=option)

    from mpcs_torch.evaluation.requirements import Requirement, RequirementError, outcomes_of, table_of

    with options.refused_values(option="--require"):
        requirements = [Requirement.parse(text) for text in require or ()]

    from mpcs_torch.cli.progress import row_counter
    from mpcs_torch.concern import load_concern_range
    from mpcs_torch.evaluation.classifier_files import ModelFiles, open_models, score_models, shared_rows
    from mpcs_torch.evaluation.files.predictions import Predictions
    from mpcs_torch.evaluation.rows import RowRisks
    from mpcs_torch.processes.world import joined

    costs = load_concern_range(*concern) if concern else None
    spec = None if costs is None else costs.middle
    entries = None if metrics is None else _entries(metrics)
    risks: dict[str, RowRisks] = {}
    with joined() as world:
        if confusion:
            from mpcs_torch.evaluation.confusion import score_confusion

            result = score_confusion(predictions[0], costs, entries=entries, intervals=intervals)
        else:
            reading = options.read_options(target, target_column, ignore, logits=logits, id_column=id_column)
            files = ModelFiles(predictions, reading, by or (), cluster)
            opened = open_models(files, spec)
            risks = {name: RowRisks() for name in opened} if html is not None else {}
            names = ", ".join(path.name for path in predictions)
            with row_counter(f"score {names}", predictions, shown=world.is_first) as advance:
                result = score_models(
                    files,
                    opened,
                    costs,
                    advance,
                    entries=entries,
                    settings={"k": k, "t": t, "concession": concession},
                    development=None if development is None else Predictions(development, from_logits=logits),
                    intervals=intervals,
                    world=world,
                    risks=risks,
                    check=partial(outcomes_of, requirements=requirements) if requirements else None,
                )
    if not world.is_first:
        return
    if seen is not None:
        known = Predictions(seen, from_logits=logits)
        result = replace(result, cautions=[*result.cautions, *shared_rows(next(iter(opened.values())), known)])
    with options.refused_values(option="--require"):
        outcomes = outcomes_of(result, requirements) if requirements else []
    print_scores(result := result.muted(*(mute or ())), outcomes)
    if html is not None:
        from mpcs_torch.report.score import write_score_report

        table = table_of(outcomes) if outcomes else None
        write_score_report(result, spec, html, risks=risks, requirements=table, command=str(COMMAND_LINE))
        note(f"wrote {html}")
    if not all(outcome.holds for outcome in outcomes):
        raise RequirementError(outcomes)


def _entries(metrics: str) -> "list[MetricEntry]":
    from mpcs_torch.metrics.by_name import find_entry

    if ":" in metrics:
        sys.path.insert(0, str(Path.cwd()))  # where the user's own metric is likely to be
    with options.refused_values(option="--metrics"):
        return [find_entry(name.strip()) for name in metrics.split(",")]
