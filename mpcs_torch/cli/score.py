"""``mpcs score``: compute the metrics of a file of predictions."""

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli.options import AsJson, Html, OverwriteReport, check_report


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
    as_json: AsJson = False,
    html: Html = None,
    overwrite: OverwriteReport = False,
) -> None:
    """Compute all metrics that a file of predictions allows, in one pass with bounded memory.

    npz and pt files contain preds (N, C) and target. csv and parquet files contain a column of scores for each class,
    named after the class or numbered from 0, and a column target, or columns target_NAME of soft labels. npy files
    contain only scores; --target gives the labels.
    """
    check_report(html, overwrite=overwrite)

    from mpcs_torch.cli.progress import row_counter
    from mpcs_torch.concern import load_concern
    from mpcs_torch.scoring import Predictions
    from mpcs_torch.scoring import score as score_predictions

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
        from mpcs_torch.report.score import write_score_report

        write_score_report(predictions.name, scores, spec, html)
        typer.echo(f"wrote {html}", err=as_json)
