"""``mpcs detect``: compute the metrics of files of detection scores, and compare detectors."""

from enum import StrEnum
from math import isnan
from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli import options
from mpcs_torch.cli.console import COMMAND_LINE, note, print_scores
from mpcs_torch.cli.failures import told_warnings
from mpcs_torch.cli.options import AsJson, By, Cluster, Html, Intervals, OverwriteReport, Quiet

Calibration = StrEnum("Calibration", {"LOGISTIC": "logistic", "PAV": "pav"})
"""A way to calibrate detection scores."""


def detect(
    scores: Annotated[list[Path], options.file_argument("SCORES...")],
    trials: Annotated[Path | None, options.file_option()] = None,
    llr: Annotated[bool, typer.Option("--llr")] = False,
    point: Annotated[
        list[str] | None, typer.Option(metavar="P_TARGET[,C_MISS,C_FA]", show_default="0.5, 0.01 and 0.001")
    ] = None,
    threshold: float | None = None,
    development: Annotated[list[Path] | None, options.file_option()] = None,
    development_trials: Annotated[Path | None, options.file_option()] = None,
    at_false_alarm: Annotated[list[float] | None, typer.Option(min=0, max=1)] = None,
    at_miss: Annotated[list[float] | None, typer.Option(min=0, max=1, show_default="0.05 and 0.01")] = None,
    max_false_alarm: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    at_minimum: Annotated[bool, typer.Option("--at-minimum")] = False,
    det: Annotated[Path | None, typer.Option(metavar="FILE", dir_okay=False)] = None,
    calibrate: Calibration | None = None,
    fuse: Annotated[bool, typer.Option("--fuse")] = False,
    key: Annotated[
        str | None, typer.Option(metavar="COLUMN[,COLUMN]", show_default="trial, or enrollment and test")
    ] = None,
    by: By = None,
    cluster: Cluster = None,
    intervals: Intervals = True,
    as_json: AsJson = False,  # noqa: ARG001  # read by its callback
    html: Html = None,
    overwrite: OverwriteReport = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Measure how well detectors separate targets from non-targets, what their decisions cost, and which is better.

    csv and parquet files have the columns score and label (or y_score and y_true, and the like), npz files the arrays
    scores and labels. HDF5 files (h5) are those of SIDEKIT and BOSARIS, with a Key as --trials. Any other file is text
    with one trial on each line: score and label, or with --trials two names and the score. Labels are 1, target or
    true, and 0, nontarget or false.

    Args:
        scores: csv, parquet, npz, HDF5 or text file with the score of each trial; one file for each detector.
        trials: List of trials: Kaldi's, with two names and a label on each line, or a Key in HDF5.
        llr: The scores are natural-log likelihood ratios.
        point: Operating point; repeat for several. Costs are 1 unless given.
        threshold: Also measure decisions that accept scores of at least this.
        development: Scores of other trials, from which thresholds are learnt; once for each detector, in their order.
        development_trials: List of the development trials.
        at_false_alarm: Miss rate at this false-alarm rate, by the development threshold if there is one; repeatable.
        at_miss: False-alarm rate at this miss rate, by the development threshold if there is one; repeatable.
        max_false_alarm: Also measure the area under the ROC up to this false-alarm rate.
        at_minimum: Half total error rate at the threshold of its development minimum, too.
        det: Also write the points of the DET curves to this csv file: thresholds and both error rates.
        calibrate: Also measure scores calibrated on the development trials.
        fuse: Also measure the logistic fusion, fitted on the development trials.
        key: Columns that name a trial, to match the trials of several files.
    """
    if development and len(development) != len(scores):
        number = f"{len(scores)} files of scores, but is given {len(development)} times"
        raise typer.BadParameter(f"must be given once for each of the {number}", param_hint="--development")
    learnt = {"--at-minimum": at_minimum, "--calibrate": calibrate, "--fuse": fuse}
    for option, value in learnt.items():
        if value and not development:
            raise typer.BadParameter("needs --development", param_hint=option)
    if fuse and len(scores) < 2:
        raise typer.BadParameter("needs at least two files of scores", param_hint="--fuse")
    if threshold is not None and isnan(threshold):
        raise typer.BadParameter("must be a number, but is nan", param_hint="--threshold")
    if max_false_alarm == 0:
        raise typer.BadParameter("must be above 0, but is 0", param_hint="--max-false-alarm")
    options.check_out(html, overwrite=overwrite, option="--html")
    options.check_out(det, overwrite=overwrite, option="--det")
    points = options.points_of(point)

    from mpcs_torch.cli.progress import row_counter
    from mpcs_torch.evaluation.detector_files import DetectorFiles, score_detectors
    from mpcs_torch.evaluation.detectors import MISSES
    from mpcs_torch.processes.world import launched

    if launched() > 1:
        raise typer.BadParameter("one process measures detectors: start it without torchrun", param_hint="SCORES")

    keys = tuple(key.split(",")) if key else ()
    files = DetectorFiles(scores, trials, development or (), development_trials, keys)
    read = f"read {', '.join(path.name for path in scores)}"
    with told_warnings(), row_counter(read, [*scores, *files.development]) as advance:
        result = score_detectors(
            files,
            points,
            advance,
            is_llr=llr,
            threshold=threshold,
            p_fa=at_false_alarm or (),
            p_miss=at_miss or MISSES,
            max_p_fa=max_false_alarm,
            at_minimum=at_minimum,
            calibration=None if calibrate is None else calibrate.value,
            is_fused=fuse,
            by=by or (),
            cluster=cluster,
            intervals=intervals,
        )
    print_scores(result)
    if det is not None:
        from mpcs_torch.evaluation.detector_scores import det_points
        from mpcs_torch.io.atomic_files import replace_text

        replace_text(det, det_points(result.models).csv())
        note(f"wrote {det}")
    if html is not None:
        from mpcs_torch.report.detection import write_detection_report

        write_detection_report(result, html, command=str(COMMAND_LINE))
        note(f"wrote {html}")
