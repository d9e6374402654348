"""``mpcs detect``: compute the metrics of a file of detection scores."""

import json
import math
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpcs_torch.cli.options import AsJson, Html, OverwriteReport, check_report

if TYPE_CHECKING:
    from mpcs_torch.functional import OperatingPoint
    from mpcs_torch.processes.world import World
    from mpcs_torch.scoring import DetectionScores, Trials

POINTS = ("0.5", "0.01", "0.001")


def detect(
    scores: Annotated[
        Path,
        typer.Argument(
            metavar="SCORES",
            exists=True,
            dir_okay=False,
            help="csv or text file with the score and label of each trial.",
        ),
    ],
    trials: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="List of trials in Kaldi's format: two names and a label on each line."
        ),
    ] = None,
    llr: Annotated[bool, typer.Option("--llr", help="The scores are natural-log likelihood ratios.")] = False,
    point: Annotated[
        list[str] | None,
        typer.Option(
            metavar="P_TARGET[,C_MISS,C_FA]",
            show_default="0.5, 0.01 and 0.001",
            help="Operating point; repeat for several. Costs are 1 unless given.",
        ),
    ] = None,
    resamples: Annotated[
        int, typer.Option(min=0, help="Number of bootstrap resamples; 0 for no bootstrap intervals.")
    ] = 200,
    as_json: AsJson = False,
    html: Html = None,
    overwrite: OverwriteReport = False,
) -> None:
    """Measure how well the scores of a detector separate targets from non-targets, and what its decisions cost.

    A csv file has the columns score and label. Any other file is text with one trial on each line: score and label, or
    with --trials two names and the score. Labels are 1, target or true, and 0, nontarget or false. Under torchrun, each
    process holds a share of the trials.
    """
    points = [_numbers(text) for text in point or POINTS]
    check_report(html, overwrite=overwrite)

    from mpcs_torch.cli.progress import row_counter
    from mpcs_torch.processes.world import joined
    from mpcs_torch.scoring import read_trials

    checked = [_point(text, numbers) for text, numbers in zip(point or POINTS, points, strict=True)]
    with joined() as world:
        with row_counter(f"read {scores.name}", shown=world.is_first) as advance:
            read = read_trials(scores, trials, advance, world=world)
        found = _scored(read, checked, world, is_llr=llr, resamples=resamples)
    if not world.is_first:
        return
    _print(found, as_json=as_json)
    if html is not None:
        from mpcs_torch.report.detection import write_detection_report

        write_detection_report(scores.name, found, html)
        typer.echo(f"wrote {html}", err=as_json)


def _numbers(text: str) -> list[float]:
    parts = text.split(",")
    try:
        if len(parts) not in (1, 3):
            raise ValueError("it must be P_TARGET or P_TARGET,C_MISS,C_FA.")
        return [float(part) for part in parts]
    except ValueError as error:
        raise typer.BadParameter(f"{text}: {error}", param_hint="--point") from None


def _point(text: str, numbers: list[float]) -> "OperatingPoint":
    from mpcs_torch.functional import OperatingPoint
    from mpcs_torch.functional.detection.operating_point import check_point

    try:
        return check_point(OperatingPoint(*numbers))
    except ValueError as error:
        raise typer.BadParameter(f"{text}: {error}", param_hint="--point") from None


def _scored(
    trials: "Trials", points: "Sequence[OperatingPoint]", world: "World", *, is_llr: bool, resamples: int
) -> "DetectionScores":
    from mpcs_torch.cli.progress import counting_bar
    from mpcs_torch.scoring import score_detection

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        bar = counting_bar("bootstrap", resamples, shown=world.is_first) if resamples else nullcontext(lambda: None)
        with bar as advance:
            found = score_detection(trials, points, is_llr=is_llr, resamples=resamples, advance=advance, world=world)
    for message in dict.fromkeys(str(warning.message) for warning in told if world.is_first):
        typer.echo(f"mpcs: warning: {message}", err=True)
    return found


def _print(found: "DetectionScores", *, as_json: bool) -> None:
    counts = found.summary.counts
    if as_json:
        finite = {name: value if math.isfinite(value) else None for name, value in found.named().items()}
        sizes = {"targets": int(counts.targets), "nontargets": int(counts.nontargets)}
        typer.echo(json.dumps({**sizes, "metrics": finite}, indent=1))
    else:
        typer.echo(f"{counts.targets} targets, {counts.nontargets} non-targets\n\n{found.table().markdown()}\n")
        typer.echo("Costs are divided by that of the better constant decision. In brackets: 95 % Clopper-Pearson.")
        typer.echo("All intervals assume independent trials. * fewer than 30 errors: may be off by more than 30 %.")
