"""``mpcs detect``: compute the metrics of files of detection scores, and compare detectors."""

from collections.abc import Sequence
from enum import StrEnum
from math import isnan
from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli.console import COMMAND_LINE, note
from mpcs_torch.cli.options import AsJson, By, Cluster, Html, Intervals, OverwriteReport, Quiet, check_report, points_of


class Calibration(StrEnum):
    """A way to calibrate detection scores."""

    LOGISTIC = "logistic"
    PAV = "pav"


def detect(
    scores: Annotated[
        list[Path],
        typer.Argument(
            metavar="SCORES...",
            exists=True,
            dir_okay=False,
            help="csv, parquet, npz, HDF5 or text file with the score of each trial; one file for each detector.",
        ),
    ],
    trials: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="List of trials: Kaldi's, with two names and a label on each line, or a Key in HDF5.",
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
    threshold: Annotated[
        float | None, typer.Option(help="Also measure decisions that accept scores of at least this.")
    ] = None,
    development: Annotated[
        list[Path] | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="Scores of other trials, from which thresholds are learnt; once for each detector, in their order.",
        ),
    ] = None,
    development_trials: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="List of the development trials.")
    ] = None,
    at_false_alarm: Annotated[
        list[float] | None,
        typer.Option(min=0, max=1, help="Miss rate at the development threshold of this false-alarm rate; repeatable."),
    ] = None,
    at_miss: Annotated[
        list[float] | None,
        typer.Option(min=0, max=1, help="False-alarm rate at the development threshold of this miss rate; repeatable."),
    ] = None,
    max_false_alarm: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Also measure the area under the ROC up to this false-alarm rate."),
    ] = None,
    calibrate: Annotated[
        Calibration | None, typer.Option(help="Also measure scores calibrated on the development trials.")
    ] = None,
    fuse: Annotated[
        bool, typer.Option("--fuse", help="Also measure the logistic fusion, fitted on the development trials.")
    ] = False,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN[,COLUMN]",
            show_default="trial, or enrollment and test",
            help="Columns that name a trial, to match the trials of several files.",
        ),
    ] = None,
    by: By = None,
    cluster: Cluster = None,
    intervals: Intervals = True,
    as_json: AsJson = False,
    html: Html = None,
    overwrite: OverwriteReport = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Measure how well detectors separate targets from non-targets, what their decisions cost, and which is better.

    csv and parquet files have the columns score and label (or y_score and y_true, and the like), npz files the arrays
    scores and labels. HDF5 files (h5) are
    those of SIDEKIT and BOSARIS, with a Key as --trials. Any other file is text with one trial on each line: score and
    label, or with --trials two names and the score. Labels are 1, target or true, and 0, nontarget or false.
    """
    needs = {"--at-false-alarm": at_false_alarm, "--at-miss": at_miss, "--calibrate": calibrate, "--fuse": fuse}
    _check_development(len(scores), len(development or []), [name for name, given in needs.items() if given])
    if fuse and len(scores) < 2:
        raise typer.BadParameter("needs at least two files of scores", param_hint="--fuse")
    if threshold is not None and isnan(threshold):
        raise typer.BadParameter("must be a number, but is nan", param_hint="--threshold")
    if max_false_alarm == 0:
        raise typer.BadParameter("must be above 0, but is 0", param_hint="--max-false-alarm")
    check_report(html, overwrite=overwrite)
    points = points_of(point)

    from mpcs_torch.cli.console import print_scores
    from mpcs_torch.cli.failures import told_warnings
    from mpcs_torch.cli.progress import row_counter
    from mpcs_torch.evaluation.detector_files import DetectorFiles, score_detectors
    from mpcs_torch.processes.world import launched

    if launched() > 1:
        raise typer.BadParameter("one process measures detectors: start it without torchrun", param_hint="SCORES")

    columns = [*([] if cluster is None else [cluster]), *(by or [])]
    files = DetectorFiles(
        scores,
        trials,
        development or (),
        development_trials,
        tuple(key.split(",")) if key else (),
        tuple(dict.fromkeys(columns)),
    )
    read = f"read {', '.join(path.name for path in scores)}"
    with told_warnings(), row_counter(read, [*scores, *files.development]) as advance:
        result = score_detectors(
            files,
            points,
            advance,
            is_llr=llr,
            threshold=threshold,
            p_fa=at_false_alarm or (),
            p_miss=at_miss or (),
            max_p_fa=max_false_alarm,
            calibration=None if calibrate is None else calibrate.value,
            is_fused=fuse,
            by=by or (),
            cluster=cluster,
            intervals=intervals,
        )
    print_scores(result, as_json=as_json)
    if html is not None:
        from mpcs_torch.report.detection import write_detection_report

        write_detection_report(result, html, command=str(COMMAND_LINE))
        note(f"wrote {html}")


def _check_development(detectors: int, development: int, needing: Sequence[str]) -> None:
    if development not in (0, detectors):
        problem = f"must be given once for each of the {detectors} files of scores, but is given {development} times"
        raise typer.BadParameter(problem, param_hint="--development")
    if needing and not development:
        raise typer.BadParameter("needs --development", param_hint=needing[0])
