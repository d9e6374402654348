"""Run the paper's experiments, and print their results, for ``mpcs reproduce``."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from mpcs_torch.cli.console import COMMAND_LINE, heading, note, show, text_of
from mpcs_torch.cli.failures import told_warnings
from mpcs_torch.cli.progress import counting_bar, progress_bar
from mpcs_torch.paper.experiments import (
    Reproduction,
    evaluation_tables,
    experiment_config,
    measured_costs,
    reproduce_experiment,
    seeded_config,
)
from mpcs_torch.paper.figures import (
    comparison_configs,
    figure_5_comparison,
    picks,
    picks_table,
    ratios,
    ratios_table,
    seeds_table,
)
from mpcs_torch.paper.published import BENCHMARKS
from mpcs_torch.paper.tables import (
    Interval,
    correlations,
    more_expensive_than_printed,
    seed_intervals,
    table_2_row,
    table_3,
)
from mpcs_torch.plots.trends import figure_6
from mpcs_torch.processes.pool import run_in_child
from mpcs_torch.report.paper import FILES, write_evaluation, write_report
from mpcs_torch.tables import Table
from mpcs_torch.trainer.config.run import RunConfig
from mpcs_torch.trainer.folder import RunExistsError, check_free, sweep
from mpcs_torch.trainer.records import Record, read_records


def finish_all(
    title: str, configs: list[RunConfig], data_root: Path, out: Path, *, overwrite: bool
) -> list[list[Record]]:
    """Run all configs, and return the records of each in the order of the configs."""
    finished: dict[str, list[Record]] = {}
    with counting_bar(title, len(configs)) as advance:
        for config, records in sweep(configs, data_root, out, overwrite=overwrite):
            finished[config.name] = records
            advance()
    return [finished[config.name] for config in configs]


def check_before_training(
    names: Sequence[str], published: Sequence[Path], out: Path, evaluation: Path | None, *, overwrite: bool
) -> None:
    """Refuse published records that cannot be read, and folders that hold a run or an evaluation already."""
    for path in published:
        with told_warnings():
            read_records(path)
    check_free([out / name for name in names], overwrite=overwrite)
    if evaluation is not None and not overwrite and any((evaluation / name).exists() for name in FILES):
        raise RunExistsError(f"{evaluation} already holds an evaluation: choose another folder or pass --overwrite")


def reproduce_one(name: str, data_root: Path, out: Path, records: Path | None, *, overwrite: bool) -> Reproduction:
    """Run an experiment in a separate process, so that its peak memory can be measured, and print and report it."""
    try:
        finished = run_in_child(_in_child, name, data_root, out / name, records, overwrite, COMMAND_LINE.is_quiet)
    except KeyboardInterrupt:
        if sys.stderr.isatty():  # the child was killed while it showed a bar
            console = Console(stderr=True)
            console.show_cursor()
            console.print()
        raise
    run = finished.run
    show(f"\n{heading(finished.title)}\n\n{text_of(table_2_row(name, run.records))}\n")
    if run.costs is not None:
        show(f"{text_of(table_3({name: run.costs}))}\n")
    if finished.agreement is not None:
        show(f"{finished.agreement}.\n")
    elif records is not None:
        show("Not compared epoch by epoch: no record was published, or its data were split without a seed.\n")
    if name == "case-study":
        show(f"{text_of(picks_table(picks(run)))}\n\n{figure_5_comparison(run, text_of)}\n")
    write_report(run, out / name / "report.html", finished.agreement)
    note(f"wrote {out / name / 'records.csv'} and report.html beside it")
    return finished


def _in_child(
    name: str, data_root: Path, folder: Path, records: Path | None, overwrite: bool, is_quiet: bool
) -> Reproduction:
    COMMAND_LINE.is_quiet = is_quiet
    with progress_bar(name, experiment_config(name).epochs.count) as bar:
        return reproduce_experiment(name, data_root, folder, records, [bar], overwrite=overwrite)


def repeat(name: str, seeds: int, data_root: Path, out: Path, *, overwrite: bool) -> tuple[Interval, ...]:
    """Run an experiment with several seeds, and print the intervals of its correlations."""
    configs = [seeded_config(name, seed) for seed in range(seeds)]
    runs = finish_all(f"{name}, seeds", configs, data_root, out / "seeds", overwrite=overwrite)
    intervals = seed_intervals(runs)
    rows = [
        [benchmark, *(f"{value:.4f}" for value in (i.mean, i.low, i.high, i.lowest, i.highest))]
        for benchmark, i in zip(BENCHMARKS, intervals, strict=True)
    ]
    header = ["Spearman of mpcs_count with", "mean", "95 % from", "to", "lowest run", "highest"]
    show(f"\n{heading(f'{name} over seeds 0 to {seeds - 1}')}\n\n{text_of(Table(header, rows))}")
    return intervals


def write_everything(
    folder: Path, finished: Mapping[str, Reproduction], intervals: Mapping[str, Sequence[Interval]]
) -> None:
    """Write the evaluation of all experiments, and print its tables."""
    write_evaluation(folder, finished, intervals)
    for _, title, table, _ in evaluation_tables(finished, intervals):
        show(f"\n{heading(title)}\n\n{text_of(table)}")
    costs = measured_costs(finished)
    cells = "; ".join(more_expensive_than_printed(costs)) or "nothing"
    show(f"\nMore expensive than in the paper, relative to accuracy: {cells}.")
    note(f"\nwrote {folder / 'report.html'}, tables as .md and .csv, figure4.png and figure4.svg")


def plain_results(
    finished: Mapping[str, Reproduction], intervals: Mapping[str, Sequence[Interval]]
) -> dict[str, dict[str, Any]]:
    """Return the results of each experiment for JSON: correlations of mpcs_count by metric, and their intervals."""
    return {
        name: {
            "seconds": one.seconds,
            "peak_bytes": one.peak_bytes,
            "epochs": len(one.run.records),
            "agreement": None if one.agreement is None else asdict(one.agreement),
            "spearman": dict(zip(BENCHMARKS, correlations(one.run.records), strict=True)),
            "over_seeds": dict(zip(BENCHMARKS, map(asdict, intervals.get(name, ())), strict=False)),
            "milliseconds": None if one.run.costs is None else asdict(one.run.costs),
        }
        for name, one in finished.items()
    }


def reproduce_figure_6(data_root: Path, out: Path, *, seeds: int, overwrite: bool) -> dict[str, Any]:
    """Run the published seed and others, print and return the ratios, and draw the four panels to OUT/figure6.png."""
    published = comparison_configs()
    plain, with_mpcs = finish_all("figure6", published, data_root, out, overwrite=overwrite)
    ours = ratios(plain, with_mpcs)
    show(f"\n{heading(f'figure6: seed {published[0].seed}')}\n\n{text_of(ratios_table(ours))}")
    figure = figure_6(plain, with_mpcs)
    figure.savefig(out / "figure6.png", dpi=110)
    figure.savefig(out / "figure6.svg", metadata={"Date": None})
    note(f"\nwrote {out / 'figure6.png'} and figure6.svg")
    by_seed = []
    if seeds:
        configs = [config for seed in range(seeds) for config in comparison_configs(seed)]
        runs = finish_all("figure6, seeds", configs, data_root, out / "seeds", overwrite=overwrite)
        by_seed = [ratios(*pair) for pair in zip(runs[::2], runs[1::2], strict=True)]
        show(f"\n{heading(f'figure6: seeds 0 to {seeds - 1}')}\n\n{text_of(seeds_table(by_seed))}")
    return {"seed": published[0].seed, "ratios": ours, "by_seed": by_seed}
