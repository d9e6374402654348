"""``mpcs detect``: compute the metrics of files of detection scores, and compare detectors."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mpcs_torch.cli import options
from mpcs_torch.cli.console import COMMAND_LINE, note, print_scores, row_counter
from mpcs_torch.errors import InvalidValueError
from mpcs_torch.evaluation.files.read_options import ReadOptions

if TYPE_CHECKING:
    from mpcs_torch.functional import OperatingPoint

POINTS = ("0.5", "0.01", "0.001")


@options.shared(*options.OF_TRIALS, "by", "cluster", *options.OF_UNITS, *options.PRINTING)
def detect(
    scores: Annotated[list[Path], options.file_argument("SCORES...")],
    reading: ReadOptions,
    llr: bool = False,
    point: Annotated[
        list[str] | None,
        typer.Option(metavar="P_TARGET[,C_MISS,C_FA]", show_default=", ".join(POINTS)),
    ] = None,
    threshold: float | None = None,
    development: Annotated[list[Path] | None, options.FILE] = None,
    development_labels: Annotated[Path | None, options.FILE] = None,
    at_false_alarm: Annotated[list[float] | None, typer.Option(min=0, max=1)] = None,
    at_miss: Annotated[
        list[float] | None, typer.Option(min=0, max=1, show_default="0.05 and 0.01")
    ] = None,
    max_false_alarm: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    at_minimum: bool = False,
    det: Annotated[Path | None, typer.Option(metavar="FILE", dir_okay=False)] = None,
    calibrate: Literal["logistic", "pav"] | None = None,
    fuse: bool = False,
    intervals: options.Intervals = True,
    html: options.Html = None,
) -> None:
    """Measure how well detectors separate targets from non-targets, what their decisions cost, and which is better.

    Files may have a header or none, and any delimiter or format: a column of scores, one of labels (words or numbers
    for targets and non-targets), and names of the trials. The first line of the output says how each was read.

    Args:
        scores: File with the score of each trial, also HDF5 of SIDEKIT and BOSARIS; one file for each detector.
        llr: The scores are natural-log likelihood ratios.
        point: Operating point; repeat for several. Costs are 1 unless given.
        threshold: Also measure decisions that accept scores of at least this.
        development: Scores of other trials for choosing thresholds; once for each detector, in their order.
        development_labels: List of the development trials, for files without labels.
        at_false_alarm: Miss rate at this false-alarm rate, by the development threshold if there is one; repeatable.
        at_miss: False-alarm rate at this miss rate, by the development threshold if there is one; repeatable.
        max_false_alarm: Also measure the area under the ROC up to this false-alarm rate.
        at_minimum: Half total error rate at the threshold of its development minimum, too.
        det: Also write the points of the DET curves to this csv file: thresholds and both error rates.
        calibrate: Also measure scores calibrated on the development trials.
        fuse: Also measure the logistic fusion, fitted on the development trials.
    """
    development = development or []
    options.demand(
        len(development) in (0, len(scores)),
        "given_for_each",
        "--development",
        files=len(scores),
        given=len(development),
    )
    if not development:
        learnt = {"at_minimum": at_minimum, "calibrate": calibrate, "fuse": fuse}
        options.refuse_given(learnt, "needs", other="--development")
    are_two = len(scores) > 1 or not fuse
    options.demand(are_two, "needs", "--fuse", other="at least two files of scores")
    is_number = threshold is None or not isnan(threshold)
    options.demand(is_number, "is_not_nan", "--threshold")
    options.demand(max_false_alarm != 0, "is_not_0", "--max-false-alarm")
    points = _read_points(point or POINTS)

    from mpcs_torch.evaluation.detector_files import score_detectors
    from mpcs_torch.evaluation.detectors import MISSES

    with row_counter("read", [*scores, *development]) as advance:
        result = score_detectors(
            scores,
            reading,
            points,
            advance,
            development=development,
            development_labels=development_labels,
            is_llr=llr,
            threshold=threshold,
            p_fa=at_false_alarm or (),
            p_miss=at_miss or MISSES,
            max_p_fa=max_false_alarm,
            at_minimum=at_minimum,
            calibration=calibrate,
            is_fused=fuse,
            intervals=intervals,
        )
    result = result.muted(*COMMAND_LINE.mute)
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


def _read_points(texts: Sequence[str]) -> "list[OperatingPoint]":
    points = []
    for text in texts:
        with options.refused_values(f"{text}: ", option="--point"):
            if text.count(",") not in (0, 2):
                raise InvalidValueError("point")
            numbers = [float(part) for part in text.split(",")]

            # Imported late, because it imports torch.
            from mpcs_torch.functional import OperatingPoint

            points.append(OperatingPoint(*numbers))
    return points
