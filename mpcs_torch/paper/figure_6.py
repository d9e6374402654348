"""The learning comparison (Fig. 6): a run whose loss is multiplied by MPCS, beside the plain run."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple

from mpcs_torch.paper.correlation import mean_interval
from mpcs_torch.paper.experiments import experiment_config
from mpcs_torch.paper.published import FIGURE_6
from mpcs_torch.tables import Table
from mpcs_torch.trainer.config.run import RunConfig
from mpcs_torch.trainer.records import Record

NAMES = ("figure6-plain", "figure6-mpcs")
COLUMNS = {
    "train_accuracy": "accuracy",
    "test_accuracy": "test_accuracy",
    "mpcs": "mpcs_count",
    "dangerous": "dangerous",
}
"""What the paper compares, and our column."""


def comparison_configs(seed: int | None = None) -> list[RunConfig]:
    """Load the configs of the plain run and the MPCS run, with the published seed or with another."""
    overrides = [[] if seed is None else [f"seed={seed}", f"name={name}-seed{seed:02}"] for name in NAMES]
    return [experiment_config(name, override) for name, override in zip(NAMES, overrides, strict=True)]


def ratios(plain: Sequence[Record], with_mpcs: Sequence[Record]) -> dict[str, float]:
    """Compute the ratio of the sums over the epochs, MPCS run to plain run."""
    return {
        name: sum(record[column] for record in with_mpcs) / sum(record[column] for record in plain)
        for name, column in COLUMNS.items()
    }


def ratios_table(ours: Mapping[str, float]) -> Table:
    """Return the ratios of the published seed beside the paper's."""
    rows = [[n, f"{ours[n]:.4f}", f"{FIGURE_6[n]:.4f}", f"{ours[n] - FIGURE_6[n]:+.4f}"] for n in COLUMNS]
    return Table(["sum over epochs, MPCS run / plain run", "ours", "paper", "difference"], rows)


def seeds_table(by_seed: Sequence[Mapping[str, float]]) -> Table:
    """Return the ratios over seeds: mean, 95 % interval, and in how many seeds the MPCS run is better."""
    rows = []
    for name in COLUMNS:
        values = [ratio[name] for ratio in by_seed]
        better = sum(value > 1 if "accuracy" in name else value < 1 for value in values)
        runs, *numbers = astuple(mean_interval(values))
        rows.append([name, *(f"{value:.4f}" for value in numbers), f"{better} of {runs}"])
    header = ["MPCS run / plain run", "mean", "95 % from", "to", "lowest seed", "highest", "MPCS run better"]
    return Table(header, rows)
