"""``mpcs score``: compute the metrics of a file of predictions."""

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpcs_torch.cli.options import AsJson, Html, OverwriteReport, check_report

if TYPE_CHECKING:
    from mpcs_torch.concern import ConcernSpec
    from mpcs_torch.metrics.by_name import MetricEntry
    from mpcs_torch.scoring.scores import Scores


def score(
    predictions: Annotated[
        Path,
        typer.Argument(
            metavar="PREDICTIONS",
            exists=True,
            dir_okay=False,
            help="npz, npy, pt, csv or parquet file with one row per sample.",
        ),
    ],
    concern: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="YAML file that says how much each error matters.")
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="File of the labels, if PREDICTIONS is an npy file."),
    ] = None,
    logits: Annotated[bool, typer.Option("--logits", help="The scores are logits, not probabilities.")] = False,
    metrics: Annotated[
        str | None,
        typer.Option(help="Names of `mpcs metrics` or package.module:Class, with commas between. [default: all]"),
    ] = None,
    k: Annotated[int | None, typer.Option(min=1, help="MPCS: number of classes to look at. [default: 5]")] = None,
    t: Annotated[int | None, typer.Option(min=2, help="MPCS: number of intervals. [default: 200]")] = None,
    concession: Annotated[
        float | None,
        typer.Option(help="MPCS, instead of -t: how far confidences may fall short of certainty. [default: concern's]"),
    ] = None,
    confusion: Annotated[
        bool, typer.Option("--confusion", help="PREDICTIONS is a confusion matrix instead, as csv.")
    ] = False,
    development: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="Soft labels: also measure hard F at the thresholds by class that are best on this file.",
        ),
    ] = None,
    as_json: AsJson = False,
    html: Html = None,
    overwrite: OverwriteReport = False,
) -> None:
    """Compute all metrics that a file of predictions allows, in one pass with bounded memory.

    npz and pt files contain preds (N, C) and target. csv and parquet files contain a column of scores for each class,
    named after the class or numbered from 0, and a column target, or columns target_NAME of soft labels. npy files
    contain only scores; --target gives the labels. A confusion matrix has the predicted classes in the header and the
    true class first in each row.
    """
    check_report(html, overwrite=overwrite)
    if confusion:
        of_scores: dict[str, object] = {"--target": target, "--logits": logits or None, "--development": development}
        of_scores |= {"--k": k, "--t": t, "--concession": concession}
        unused = [name for name, value in of_scores.items() if value is not None]
        if unused:
            raise typer.BadParameter("is for scores, which a confusion matrix does not have", param_hint=unused[0])

    from mpcs_torch.cli.progress import row_counter
    from mpcs_torch.concern import load_concern
    from mpcs_torch.processes.world import joined
    from mpcs_torch.scoring import Predictions
    from mpcs_torch.scoring import score as score_predictions

    spec = None if concern is None else load_concern(concern)
    if confusion:
        from mpcs_torch.scoring.confusion_file import score_confusion

        found = score_confusion(predictions, spec, entries=None if metrics is None else _entries(metrics))
        _print(predictions, found, spec, html, as_json=as_json)
        return
    names = None if spec is None else spec.class_names
    opened = Predictions(predictions, target=target, from_logits=logits, class_names=names)
    entries = None if metrics is None else _entries(metrics)
    learned = None if development is None else Predictions(development, from_logits=logits)
    settings = {"k": k, "t": t, "concession": concession}
    with joined() as world, row_counter(f"score {predictions.name}", shown=world.is_first) as advance:
        scores = score_predictions(
            opened, spec, advance, entries=entries, settings=settings, world=world, development=learned
        )
    if world.is_first:
        _print(predictions, scores, spec, html, as_json=as_json)


def _print(
    predictions: Path, scores: "Scores", concern: "ConcernSpec | None", html: Path | None, *, as_json: bool
) -> None:
    if as_json:
        typer.echo(json.dumps(_finite(_plain(scores)), indent=1))
    else:
        shown = ", ".join(scores.class_names[:10]) + (", ..." if len(scores.class_names) > 10 else "")
        tables = [table.markdown() for table in (scores.table(), scores.class_table()) if table is not None]
        typer.echo("\n\n".join([f"{scores.rows} rows, {len(scores.class_names)} classes: {shown}", *tables]))
    for warning in scores.warnings():
        typer.echo(f"warning: {warning}", err=True)
    if html is not None:
        from mpcs_torch.report.score import write_score_report

        write_score_report(predictions.name, scores, concern, html)
        typer.echo(f"wrote {html}", err=as_json)


def _entries(metrics: str) -> "list[MetricEntry]":
    from mpcs_torch.metrics.by_name import find_entry

    if ":" in metrics:
        sys.path.insert(0, str(Path.cwd()))  # where the user's own metric is likely to be
    try:
        return [find_entry(name.strip()) for name in metrics.split(",")]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--metrics") from None


def _plain(scores: "Scores") -> dict[str, Any]:
    plain: dict[str, Any] = {"rows": scores.rows, "classes": scores.class_names, "metrics": scores.values}
    if scores.confusion is not None:
        plain |= {"confusion": scores.confusion.tolist(), "per_class": scores.per_class()}
    return plain


def _finite(value: Any) -> Any:
    """Replace NaN and infinity, which JSON does not have, by None."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
