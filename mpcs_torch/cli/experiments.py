"""Run the paper's experiments, and print their results, for ``mpcs reproduce``."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import typer

from mpcs_torch.cli.failures import told_warnings
from mpcs_torch.cli.progress import progress_bar
from mpcs_torch.cli.sweeps import finish_all
from mpcs_torch.paper.case_study import figure_5_comparison, picks, picks_table
from mpcs_torch.paper.correlation import seed_intervals, table_2_row
from mpcs_torch.paper.costs import more_expensive_than_printed, table_3
from mpcs_torch.paper.experiments import experiment_config, seeded_config
from mpcs_torch.paper.intervals import Interval
from mpcs_torch.paper.published import BENCHMARKS
from mpcs_torch.paper.reproduction import Reproduction, evaluation_tables, measured_costs, reproduce_experiment
from mpcs_torch.processes.pool import die_with_parent
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
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=die_with_parent, initargs=(os.getpid(),)) as pool:
        finished = pool.submit(_in_child, name, data_root, out / name, records, overwrite).result()
    run = finished.run
    typer.echo(f"\n## {finished.title}\n\n{table_2_row(name, run.records).markdown()}\n")
    if run.costs is not None:
        typer.echo(f"{table_3({name: run.costs}).markdown()}\n")
    if finished.agreement is not None:
        typer.echo(f"{finished.agreement}.\n")
    elif records is not None:
        typer.echo("Not compared epoch by epoch: no record was published, or its data were split without a seed.\n")
    if name == "case-study":
        typer.echo(f"{picks_table(picks(run)).markdown()}\n\n{figure_5_comparison(run)}\n")
    write_report(run, out / name / "report.html")
    typer.echo(f"wrote {out / name / 'records.csv'} and report.html beside it")
    return finished


def _in_child(name: str, data_root: Path, folder: Path, records: Path | None, overwrite: bool) -> Reproduction:
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
    typer.echo(f"\n## {name} over seeds 0 to {seeds - 1}\n\n{Table(header, rows).markdown()}")
    return intervals


def write_everything(
    folder: Path, finished: Mapping[str, Reproduction], intervals: Mapping[str, Sequence[Interval]]
) -> None:
    """Write the evaluation of all experiments, and print its tables."""
    write_evaluation(folder, finished, intervals)
    for _, title, table, _ in evaluation_tables(finished, intervals):
        typer.echo(f"\n## {title}\n\n{table.markdown()}")
    costs = measured_costs(finished)
    cells = "; ".join(more_expensive_than_printed(costs)) or "nothing"
    typer.echo(f"\nMore expensive than in the paper, relative to accuracy: {cells}.")
    typer.echo(f"\nwrote {folder / 'report.html'}, tables as .md and .csv, figure4.png and figure4.svg")
