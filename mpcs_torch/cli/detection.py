"""``mpcs score --detection``: the metrics of a detector's scores."""

import json
import math
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import typer

from mpcs_torch.cli.progress import counting_bar, row_counter
from mpcs_torch.functional import OperatingPoint, ReversedScoresWarning
from mpcs_torch.functional.detection.operating_point import check_point
from mpcs_torch.report.detection import write_detection_report
from mpcs_torch.scoring import DetectionScores, Trials, read_trials, score_detection


def print_detection_scores(
    path: Path,
    trials: Path | None,
    *,
    points: Sequence[OperatingPoint],
    is_llr: bool,
    resamples: int,
    as_json: bool,
    html: Path | None,
) -> None:
    """Read, score, print, and write the report."""
    with row_counter(f"read {path.name}") as advance:
        read = read_trials(path, trials, advance)
    found = _scored(read, points, is_llr=is_llr, resamples=resamples)
    counts = found.summary.counts
    if as_json:
        finite = {name: value if math.isfinite(value) else None for name, value in found.named().items()}
        sizes = {"targets": int(counts.targets), "nontargets": int(counts.nontargets)}
        typer.echo(json.dumps({**sizes, "metrics": finite}, indent=1))
    else:
        typer.echo(f"{counts.targets} targets, {counts.nontargets} nontargets\n\n{found.table().markdown()}\n")
        typer.echo("Costs are shares of those of a constant decision. In brackets: 95 % Clopper-Pearson. All")
        typer.echo("intervals: as if trials were independent. * rests on fewer than 30 errors: may be off by 30 %.")
    if html is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReversedScoresWarning)  # told already
            write_detection_report(path.name, found, html)
        typer.echo(f"wrote {html}", err=as_json)


def _scored(trials: Trials, points: Sequence[OperatingPoint], *, is_llr: bool, resamples: int) -> DetectionScores:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        bar = counting_bar("bootstrap", resamples) if resamples else nullcontext(lambda: None)
        with bar as advance:
            found = score_detection(trials, points, is_llr=is_llr, resamples=resamples, advance=advance)
    for message in dict.fromkeys(str(warning.message) for warning in told):
        typer.echo(f"mpcs: warning: {message}", err=True)
    return found


def parse_point(text: str) -> OperatingPoint:
    """An operating point from p_target, or p_target,c_miss,c_fa."""
    parts = text.split(",")
    try:
        if len(parts) not in (1, 3):
            raise ValueError("it must be P_TARGET or P_TARGET,C_MISS,C_FA.")
        return check_point(OperatingPoint(*map(float, parts)))
    except ValueError as error:
        raise typer.BadParameter(f"{text}: {error}", param_hint="--point") from None
