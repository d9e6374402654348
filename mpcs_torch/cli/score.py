"""``mpcs score``: all metrics of a file of predictions."""

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli.progress import row_counter
from mpcs_torch.concern import load_concern
from mpcs_torch.report.score import write_score_report
from mpcs_torch.scoring import Predictions
from mpcs_torch.scoring import score as score_predictions


def score(
    predictions: Annotated[Path, typer.Argument(help="npz, npy, pt, csv or parquet: a row for each sample.")],
    concern: Annotated[Path | None, typer.Option(help="YAML file that says which errors matter.")] = None,
    target: Annotated[Path | None, typer.Option(help="The labels, where PREDICTIONS is an npy of scores.")] = None,
    logits: Annotated[bool, typer.Option("--logits", help="Scores are logits, not probabilities.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON (null for NaN and infinity) instead of a table.")
    ] = False,
    html: Annotated[Path | None, typer.Option(help="Write a report with plots to this file as well.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the report.")] = False,
) -> None:
    """Score a file of predictions by all metrics that it allows, in one pass of bounded memory.

    npz and pt hold preds (N, C) and target; csv and parquet a column of scores for each class, named after it or
    numbered from 0, and a column target, or target_NAME columns of soft labels; npy scores alone, whose labels --target
    names.
    """
    if html is not None and not html.parent.is_dir():
        raise typer.BadParameter(f"{html}: there is no folder {html.parent}")
    if html is not None and html.exists() and not overwrite:
        raise typer.BadParameter(f"{html} is already there: choose another file or pass --overwrite")
    spec = None if concern is None else load_concern(concern)
    names = None if spec is None else spec.class_names
    opened = Predictions(predictions, target=target, from_logits=logits, class_names=names)
    with row_counter(f"score {predictions.name}") as advance:
        scores = score_predictions(opened, spec, advance)
    if as_json:
        finite = {name: value if math.isfinite(value) else None for name, value in scores.values.items()}
        typer.echo(json.dumps({"rows": scores.rows, "classes": scores.class_names, "metrics": finite}, indent=1))
    else:
        shown = ", ".join(scores.class_names[:10]) + (", ..." if len(scores.class_names) > 10 else "")
        typer.echo(f"{scores.rows} rows, {len(scores.class_names)} classes: {shown}\n\n{scores.table().markdown()}")
    if html is not None:
        write_score_report(predictions.name, scores, spec, html)
        typer.echo(f"wrote {html}", err=as_json)
