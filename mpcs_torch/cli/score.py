"""``mpcs score``: all metrics of a file of predictions."""

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli.detection import parse_point, print_detection_scores
from mpcs_torch.cli.progress import row_counter
from mpcs_torch.concern import load_concern
from mpcs_torch.report.score import write_score_report
from mpcs_torch.scoring import Predictions
from mpcs_torch.scoring import score as score_predictions

DETECTION = "Detection"
POINTS = ("0.5", "0.01", "0.001")


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
    detection: Annotated[
        bool, typer.Option("--detection", help="PREDICTIONS holds the scores of a detector.", rich_help_panel=DETECTION)
    ] = False,
    trials: Annotated[
        Path | None, typer.Option(help="Kaldi's list of trials: two names and a label.", rich_help_panel=DETECTION)
    ] = None,
    llr: Annotated[
        bool, typer.Option("--llr", help="Scores are natural-log likelihood ratios.", rich_help_panel=DETECTION)
    ] = False,
    point: Annotated[
        list[str] | None,
        typer.Option(
            help="Operating point P_TARGET,C_MISS,C_FA; again for more; or P_TARGET alone. [default: 0.5 0.01 0.001]",
            rich_help_panel=DETECTION,
        ),
    ] = None,
    resamples: Annotated[
        int, typer.Option(min=0, help="Of the bootstrap; 0 for no intervals.", rich_help_panel=DETECTION)
    ] = 200,
) -> None:
    """Score a file of predictions by all metrics that it allows, in one pass of bounded memory.

    npz and pt hold preds (N, C) and target; csv and parquet a column of scores for each class, named after it or
    numbered from 0, and a column target, or target_NAME columns of soft labels; npy scores alone, whose labels --target
    names.

    With --detection a csv holds columns score and label (1, target or true; 0, nontarget or false), other files a line
    for each trial: score and label, or with --trials two names and the score.
    """
    if html is not None and not html.parent.is_dir():
        raise typer.BadParameter(f"{html}: there is no folder {html.parent}")
    if html is not None and html.exists() and not overwrite:
        raise typer.BadParameter(f"{html} is already there: choose another file or pass --overwrite")
    if detection:
        if concern is not None or target is not None or logits:
            raise typer.BadParameter("--concern, --target and --logits do not go with --detection")
        print_detection_scores(
            predictions,
            trials,
            points=[parse_point(text) for text in point or POINTS],
            is_llr=llr,
            resamples=resamples,
            as_json=as_json,
            html=html,
        )
        return
    if trials is not None or llr or point:
        raise typer.BadParameter("--trials, --llr and --point go with --detection")
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
