"""Run the paper's experiments, and print their results, for ``mpcs reproduce``."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mpcs_torch.cli.console import COMMAND_LINE, heading, note, show, text_of
from mpcs_torch.cli.failures import told_warnings
from mpcs_torch.cli.progress import progress_bar
from mpcs_torch.cli.sweeps import finish_all
from mpcs_torch.paper.case_study import figure_5_comparison, picks, picks_table
from mpcs_torch.paper.correlation import correlations, seed_intervals, table_2_row
from mpcs_torch.paper.costs import more_expensive_than_printed, table_3
from mpcs_torch.paper.experiments import experiment_config, seeded_config
from mpcs_torch.paper.intervals import Interval
from mpcs_torch.paper.published import BENCHMARKS
from mpcs_torch.paper.reproduction import Reproduction, evaluation_tables, measured_costs, reproduce_experiment
from mpcs_torch.processes.pool import run_in_child
from mpcs_torch.report.case_study import write_report
from mpcs_torch.report.evaluation import FILES, write_evaluation
from mpcs_torch.tables import Table
from mpcs_torch.trainer.folder import RunExistsError
from mpcs_torch.trainer.records import read_records


def check_records(paths: Sequence[Path]) -> None:
    """Refuse published records that cannot be read, before training starts."""
    for path in paths:
        with told_warnings():
            read_records(path)


def check_evaluation_free(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder that holds an evaluation, unless it may be overwritten."""
    if not overwrite and any((folder / name).exists() for name in FILES):
        raise RunExistsError(f"{folder} already holds an evaluation: choose another folder or pass --overwrite")


def reproduce_one(name: str, data_root: Path, out: Path, records: Path | None, *, overwrite: bool) -> Reproduction:
    """Run an experiment in a separate process, so that its peak memory can be measured, and print and report it."""
    try:
        finished = run_in_child(_in_child, name, data_root, out / name, records, overwrite, COMMAND_LINE.is_quiet)
    except KeyboardInterrupt:
        _leave_bar()
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
    write_report(run, out / name / "report.html")
    note(f"wrote {out / name / 'records.csv'} and report.html beside it")
    return finished


def _leave_bar() -> None:
    """Give the terminal its cursor back, and begin a line, after the child that showed a bar was killed."""
    if sys.stderr.isatty():
        from rich.console import Console

        console = Console(stderr=True)
        console.show_cursor()
        console.print()


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
