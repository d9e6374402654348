"""Table II: correlation of MPCS with the usual metrics over the epochs of a run, and means over runs."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
import torch
from scipy.stats import bootstrap
from torchmetrics.functional import spearman_corrcoef

from mpcs_torch.paper.published import BENCHMARKS, TABLE_2
from mpcs_torch.tables import Table
from mpcs_torch.trainer.records import Record


@dataclass(frozen=True)
class Interval:
    """A mean over runs, and its 95 % interval."""

    runs: int
    mean: float
    low: float
    high: float
    """The ends of the 95 % interval of the mean."""
    lowest: float
    highest: float
    """The lowest and the highest run."""


def mean_interval(values: Sequence[float]) -> Interval:
    """Compute mean and 95 % interval by the bias-corrected bootstrap (scipy's BCa, 9999 resamples, a fixed seed)."""
    sample = np.asarray(values, dtype=np.float64)
    low = high = mean = float(sample.mean())
    if sample.min() < sample.max():  # equal values leave nothing to resample
        interval = bootstrap((sample,), np.mean, rng=np.random.default_rng(0)).confidence_interval
        low, high = float(interval.low), float(interval.high)
    return Interval(len(sample), mean, low, high, float(sample.min()), float(sample.max()))


def spearman(records: Sequence[Record], column: str, other: str) -> float:
    """Compute Spearman's rank correlation of two columns over the epochs of a run; ties share their mean rank."""
    values = torch.tensor([[record[column], record[other]] for record in records], dtype=torch.float64)
    return float(spearman_corrcoef(values[:, 0], values[:, 1]))


def correlations(records: Sequence[Record]) -> tuple[float, ...]:
    """Compute the correlation of each benchmark with MPCS under the rule of the published runs."""
    return tuple(spearman(records, "mpcs_count", benchmark) for benchmark in BENCHMARKS)


def seed_intervals(runs: Sequence[Sequence[Record]]) -> tuple[Interval, ...]:
    """Compute the interval of each benchmark's correlation over runs with different seeds."""
    return tuple(map(mean_interval, zip(*map(correlations, runs), strict=True)))


def table_2_row(name: str, records: Sequence[Record]) -> Table:
    """Return the table of one experiment: correlations under both concern rules, beside the paper's."""
    printed = TABLE_2.get(name)
    rows = []
    for i, (benchmark, ours) in enumerate(zip(BENCHMARKS, correlations(records), strict=True)):
        row = [benchmark, f"{spearman(records, 'mpcs', benchmark):.4f}", f"{ours:.4f}"]
        rows.append(row if printed is None else [*row, f"{printed[i]:.4f}", f"{ours - printed[i]:+.4f}"])
    header = ["Spearman with", "mpcs", "mpcs_count"]
    return Table(header if printed is None else [*header, "paper", "difference"], rows)


def table_2(runs: Mapping[str, Sequence[Record]], seeds: Mapping[str, Sequence[Interval]]) -> Table:
    """Return Table II: our correlations, the paper's in brackets, and the spread of the first one over seeds."""
    rows = []
    for name, records in runs.items():
        paper = [f" ({printed:.3f})" for printed in TABLE_2[name]] if name in TABLE_2 else [""] * len(BENCHMARKS)
        cells = [f"{ours:.3f}{printed}" for ours, printed in zip(correlations(records), paper, strict=True)]
        spread = ""
        if name in seeds:
            _, mean, low, high, lowest, highest = astuple(seeds[name][0])
            spread = f"{mean:.3f} [{low:.3f}, {high:.3f}], runs {lowest:.3f} to {highest:.3f}"
        rows.append([name, *cells, spread])
    return Table(["ours (paper)", *BENCHMARKS, "accuracy, over seeds"], rows)


def table_2_values(runs: Mapping[str, Sequence[Record]], seeds: Mapping[str, Sequence[Interval]]) -> Table:
    """Return the numbers behind Table II, one row for each experiment and benchmark."""
    rows = []
    for name, records in runs.items():
        for i, (benchmark, ours) in enumerate(zip(BENCHMARKS, correlations(records), strict=True)):
            printed = [f"{TABLE_2[name][i]:.4f}", f"{ours - TABLE_2[name][i]:.4f}"] if name in TABLE_2 else ["", ""]
            over_seeds = [""] * 6
            if name in seeds:
                over_seeds = [str(seeds[name][i].runs), *(f"{value:.4f}" for value in astuple(seeds[name][i])[1:])]
            by_value = f"{spearman(records, 'mpcs', benchmark):.4f}"
            rows.append([name, benchmark, by_value, f"{ours:.4f}", *printed, *over_seeds])
    over_seeds_header = ["seeds", "mean", "interval_low", "interval_high", "lowest", "highest"]
    return Table(["experiment", "benchmark", "mpcs", "mpcs_count", "paper", "difference", *over_seeds_header], rows)
