"""The work of ``mpcs detect`` between its options and its output."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import typer

from mpcs_torch.cli.console import say
from mpcs_torch.cli.progress import counting_bar, row_counter
from mpcs_torch.functional import OperatingPoint, TooFewSamplesError
from mpcs_torch.processes.world import World
from mpcs_torch.scoring import read_trials, score_detection
from mpcs_torch.scoring.detector_files import DetectorFiles, read_detectors
from mpcs_torch.scoring.detector_results import Results, measure_detectors
from mpcs_torch.scoring.detectors import CalibrationMethod, calibrated, fused
from mpcs_torch.scoring.thresholds import FixedThreshold, given_threshold, learned_thresholds

FEW_CLUSTERS = 20
"""With fewer, 95 % intervals held the true value in 90 to 92 % of simulated sets (tests.benchmarks.comparisons)."""


@dataclass(frozen=True)
class Plan:
    """Whatever is measured."""

    files: DetectorFiles
    points: Sequence[OperatingPoint]
    is_llr: bool
    resamples: int
    threshold: float | None = None
    p_fa: Sequence[float] = ()
    """False-alarm rates of thresholds that are learnt."""
    p_miss: Sequence[float] = ()
    max_p_fa: float | None = None
    """The false-alarm rate up to which the area under the ROC is wanted."""
    calibration: CalibrationMethod | None = None
    is_fused: bool = False
    cluster: str | None = None
    """A column."""
    by: Sequence[str] = ()
    """Columns."""

    def given(self) -> list[FixedThreshold]:
        """Return the threshold of the command line."""
        return [] if self.threshold is None else given_threshold(self.threshold, self.points)


def measured(plan: Plan) -> Results:
    """Read the files, calibrate and fuse as asked for, and measure everything."""
    files, points = plan.files, plan.points
    with row_counter(
        f"read {', '.join(path.name for path in files.paths)}", [*files.paths, *files.development]
    ) as advance:
        read = read_detectors(files, is_llr=plan.is_llr, is_fused=plan.is_fused, advance=advance)
    clusters = None if plan.cluster is None else read.groups[plan.cluster]
    if clusters is not None and len(clusters.names) < FEW_CLUSTERS:
        number = len(clusters.names)
        warnings.warn(f"--cluster {plan.cluster}: with only {number} clusters, intervals are too short", stacklevel=2)
    detectors = compared = read.detectors
    if plan.calibration is not None:
        prior = points[0].effective_prior
        pairs = zip(detectors, files.development, strict=True)
        compared = [calibrated(each, plan.calibration, prior, path) for each, path in pairs]
        detectors = [*detectors, *compared]
    if plan.is_fused:
        fusion = fused(read.detectors, points[0].effective_prior, files.development[0])
        detectors, compared = [*detectors, fusion], [*compared, fusion]
    learned = [
        learned_thresholds(each.development, points, p_fa=plan.p_fa, p_miss=plan.p_miss)
        if each.development is not None
        else []
        for each in detectors
    ]
    rounds = len(detectors) + (len(compared) > 1)
    bar = counting_bar("bootstrap", rounds * plan.resamples) if plan.resamples else nullcontext(lambda _: None)
    with bar as advance_resamples, told_if_too_few(plan.cluster):
        return measure_detectors(
            detectors,
            [[*plan.given(), *own] for own in learned],
            points,
            compared=[each.name for each in compared],
            clusters=clusters,
            conditions={column: read.groups[column] for column in plan.by},
            resamples=plan.resamples,
            max_p_fa=plan.max_p_fa,
            advance=advance_resamples,
        )


def measured_together(plan: Plan, world: World) -> Results:
    """Measure one detector, whose trials are shared by several processes."""
    (path, *_), trials = plan.files.paths, plan.files.trials
    if plan.files != DetectorFiles([path], trials) or plan.max_p_fa is not None:
        options = "--development, --by, --cluster, --key and --max-false-alarm"
        problem = f"several processes measure one file, without {options}"
        raise typer.BadParameter(problem, param_hint="SCORES")
    with row_counter(f"read {path.name}", [path], shown=world.is_first) as advance:
        read = read_trials(path, trials, advance, world=world)
    with counting_bar("bootstrap", plan.resamples, shown=plan.resamples > 0 and world.is_first) as advance_resamples:
        found = score_detection(
            read,
            plan.points,
            is_llr=plan.is_llr,
            resamples=plan.resamples,
            fixed=plan.given(),
            advance=advance_resamples,
            world=world,
        )
    return Results({path.name: found}, [], [])


@contextmanager
def told_if_too_few(cluster: str | None) -> Iterator[None]:
    """Refuse data that are too few for the intervals that were asked for."""
    try:
        yield
    except TooFewSamplesError as error:
        raise typer.BadParameter(str(error), param_hint="--resamples" if cluster is None else "--cluster") from None


@contextmanager
def told_warnings(*, shown: bool) -> Iterator[None]:
    """Print the warnings of the work, each once."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in told if shown):
        say(f"mpcs: warning: {message}", err=True)
