"""The values in the MPCS paper, and their comparison with reproduced values: records of epochs, Tables II and III."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import NamedTuple

from mpcs_torch.errors import require
from mpcs_torch.io.packaged import packaged_folder
from mpcs_torch.tables import Table

Record = Mapping[str, float]
"""The metrics of an epoch, by column of a records file."""
EXPERIMENTS = (
    "exp01",
    "exp01-breast-cancer",
    "exp02",
    "exp03",
    "exp04",
    "exp05",
    "exp06",
    "exp07",
    "exp08",
    "exp09",
    "exp10",
    "case-study",
)
CASE_STUDY = "case-study"
"""The experiment whose picks and confusion matrices Fig. 5 shows."""
_ON_MNIST = ("exp03", "exp05", "exp10", CASE_STUDY)
QUICK = tuple(name for name in EXPERIMENTS if name not in _ON_MNIST)
"""The experiments that take seconds: all except the experiments on MNIST."""
BENCHMARKS = ("accuracy", "f1_macro", "mcc", "mean_squared_error", "cross_entropy")
"""The metrics that the paper compares with MPCS, in the order of its tables."""
TIMED = (*BENCHMARKS, "mpcs")
"""The metrics in Table III, whose computing time is measured."""
RECORD_FILES = {
    **{name: f"{name}.csv" for name in ("exp03", "exp05", "exp07", "exp09")},
    CASE_STUDY: "compare1.csv",
}
"""The file of published metrics of each epoch, by experiment; only experiments that can be repeated exactly."""

CASE_STUDY_PICKS = {**dict.fromkeys(BENCHMARKS, 132), "mpcs": 133}
"""The epoch of the case study that each metric picks, by the name of the metric."""


class PublishedErrors(NamedTuple):
    """The numbers of errors of an epoch."""

    errors: int
    dangerous: int


CASE_STUDY_ERRORS = {132: PublishedErrors(5108, 2621), 133: PublishedErrors(5128, 2605)}
"""The errors of the epochs that the metrics pick."""

_NUMBERS = json.loads(
    (packaged_folder("paper") / "published.json").read_text(encoding="utf-8")
)
TABLE_2: dict[str, list[float]] = _NUMBERS["table_2"]
"""The Spearman correlation of MPCS with each metric in `BENCHMARKS` over the epochs, by experiment."""
TABLE_3: dict[str, list[float]] = _NUMBERS["table_3"]
"""The milliseconds of one evaluation, including the forward pass, for each metric in `TIMED`, by experiment."""
FIGURE_5: dict[int, list[list[int]]] = {
    int(epoch): matrix for epoch, matrix in _NUMBERS["figure_5"].items()
}
"""The confusion matrix, by epoch, as printed: rows are predictions, columns labels."""
FIGURE_6: dict[str, float] = _NUMBERS["figure_6"]
"""The sum of each metric over the epochs of the run with MPCS in the loss, divided by the sum for the plain run."""


@dataclass(frozen=True)
class Agreement:
    """The agreement of a repeated experiment with the published metrics of each epoch."""

    epochs: int
    agreeing: int
    """The number of epochs that are equal to the published epochs in all columns at 4 decimals."""
    from_first: int
    """The number of equal epochs before the first difference."""
    first_difference: str | None
    """A text with the first unequal epoch and its unequal columns; None if all are equal."""

    def __str__(self) -> str:
        text = f"{self.agreeing} of {self.epochs} epochs agree with the published record in all columns at 4 decimals"
        if self.first_difference is None:
            return text
        return f"{text}, including the first {self.from_first}; first difference: {self.first_difference}"


def compare(records: Sequence[Record], published: Sequence[Record]) -> Agreement:
    """Compare ``records`` with ``published`` ones at 4 decimals.

    The column mpcs of ``published`` is compared with the column mpcs_count of ``records``, counted as in the paper.
    """
    differences: dict[int, str] = {}
    for index, (ours, theirs) in enumerate(zip(records, published, strict=False)):
        unequal = []
        for column, value in theirs.items():
            name = "mpcs_count" if column == "mpcs" else column
            columns = "columns of published records"
            require(name in ours, "one_of", columns, column, choices=list(ours))
            # z removes the sign of a zero.
            mine, printed = f"{ours[name]:z.4f}", f"{value:z.4f}"
            if mine != printed:
                unequal.append(f"{column} {mine} for {printed}")
        if unequal:
            differences[index] = f"epoch {theirs['epoch']:.0f}, {', '.join(unequal)}"
    compared = min(len(records), len(published))
    first_unequal = min(differences, default=compared)  # so many epochs before it are equal
    return Agreement(
        epochs=len(published),
        agreeing=compared - len(differences),
        from_first=first_unequal,
        first_difference=differences.get(first_unequal),
    )


@dataclass(frozen=True)
class MeanOverRuns:
    """A mean over runs, with its 95 % interval and the range of the runs."""

    runs: int
    mean: float
    low: float
    high: float
    """The upper end of the interval; ``low`` is its lower end."""
    lowest: float
    highest: float
    """The highest value of a run; ``lowest`` is the lowest value."""

    @property
    def cells(self) -> list[str]:
        """The cells of a row of `means_table`, at 4 decimals."""
        _, *numbers = astuple(self)
        return [f"{number:.4f}" for number in numbers]


def mean_interval(values: Sequence[float]) -> MeanOverRuns:
    """Return the mean of ``values`` and its 95 % interval (BCa bootstrap with 9999 resamples and a fixed seed)."""
    import numpy as np
    from scipy.stats import bootstrap

    from mpcs_torch.functional.inputs.confidence import CONFIDENCE

    sample = np.asarray(values, dtype=np.float64)
    low = high = mean = float(sample.mean())
    if sample.min() < sample.max():  # otherwise there is nothing to resample
        resampled = bootstrap(
            (sample,), np.mean, confidence_level=CONFIDENCE, rng=np.random.default_rng(0)
        )
        low, high = map(float, resampled.confidence_interval)
    return MeanOverRuns(
        len(sample), mean, low, high, float(sample.min()), float(sample.max())
    )


def correlations(records: Sequence[Record]) -> tuple[float, ...]:
    """Return Spearman's correlation of each metric in `BENCHMARKS` with mpcs_count (MPCS, counted as in the paper).

    The correlation is that of the ranks of the epochs ``records``, with mean ranks for ties.
    """
    import torch  # slow to import, so only here
    from torchmetrics.functional import spearman_corrcoef

    columns = {
        name: torch.tensor([record[name] for record in records], dtype=torch.float64)
        for name in ("mpcs_count", *BENCHMARKS)
    }
    mpcs = columns.pop("mpcs_count")
    return tuple(float(spearman_corrcoef(mpcs, column)) for column in columns.values())


def seed_intervals(runs: Sequence[Sequence[Record]]) -> tuple[MeanOverRuns, ...]:
    """Return the mean and interval of each of the `correlations` over ``runs`` with different seeds."""
    by_metric = zip(*map(correlations, runs), strict=True)
    return tuple(mean_interval(of_runs) for of_runs in by_metric)


def table_2(
    runs: Mapping[str, Sequence[Record]], seeds: Mapping[str, Sequence[MeanOverRuns]]
) -> Table:
    """Return Table II: our correlations, those of the paper in brackets, and the spread over seeds for accuracy."""
    rows = []
    for name, records in runs.items():
        cells = [f"{ours:.3f}" for ours in correlations(records)]
        if name in TABLE_2:
            numbers = zip(cells, TABLE_2[name], strict=True)
            cells = [f"{ours} ({printed:.3f})" for ours, printed in numbers]
        spread = ""
        if name in seeds:
            accuracy = seeds[name][BENCHMARKS.index("accuracy")]
            interval = f"{accuracy.mean:.3f} [{accuracy.low:.3f}, {accuracy.high:.3f}]"
            spread = f"{interval}, runs {accuracy.lowest:.3f} to {accuracy.highest:.3f}"
        rows.append([name, *cells, spread])
    return Table(["ours (paper)", *BENCHMARKS, "accuracy, over seeds"], rows)


def means_table(first: str, run: str, rows: Sequence[Sequence[str]], *more: str) -> Table:
    """Return a table of means over runs; ``first`` and ``more`` are the headers around `MeanOverRuns.cells`."""
    from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT

    numbers = ["mean", f"{CONFIDENCE_TEXT} from", "to", f"lowest {run}", "highest"]
    return Table([first, *numbers, *more], rows)


def intervals_table(intervals: Sequence[MeanOverRuns]) -> Table:
    """Return a table of `correlations` over seeds: mean, 95 % interval, lowest and highest run."""
    means = zip(BENCHMARKS, intervals, strict=True)
    rows = [[benchmark, *interval.cells] for benchmark, interval in means]
    return means_table("Spearman of mpcs_count with", "run", rows)


@dataclass(frozen=True)
class MetricCosts:
    """The median times of one evaluation of the training samples, in milliseconds."""

    forward: float
    """The time of the model's forward pass."""
    alone: dict[str, float]
    """The time of each metric, from the logits to a Python number, by name."""

    def relative(self, metric: str) -> float:
        """Return the time of forward pass plus ``metric``, divided by the time of forward pass plus accuracy."""
        return (self.forward + self.alone[metric]) / (self.forward + self.alone["accuracy"])


def table_3(costs: Mapping[str, MetricCosts]) -> Table:
    """Return Table III: each metric's time alone, and its time with the forward pass, divided by that of accuracy."""
    rows = []
    for name, cost in costs.items():
        printed = TABLE_3.get(name)
        cells = []
        for place, metric in enumerate(TIMED):
            of_paper = "" if printed is None else f" (x{printed[place] / printed[0]:.3f})"
            cells.append(
                f"{_milliseconds(cost.alone[metric])}, x{cost.relative(metric):.3f}{of_paper}"
            )
        rows.append([name, _milliseconds(cost.forward), *cells])
    return Table(["ours (paper)", "forward pass", *TIMED], rows)


def _milliseconds(value: float) -> str:
    if value < 1000:
        return f"{value:.3g} ms"
    return f"{value:.0f} ms"
