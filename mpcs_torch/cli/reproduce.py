"""``mpcs reproduce``: the paper's experiments, their numbers beside the printed ones."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli.figure_6 import reproduce_figure_6
from mpcs_torch.cli.options import DataRoot, Out, Overwrite
from mpcs_torch.cli.progress import progress_bar
from mpcs_torch.cli.sweeps import finish_all
from mpcs_torch.paper.case_study import figure_5_comparison, picks, picks_table
from mpcs_torch.paper.correlation import seed_intervals, table_2_row
from mpcs_torch.paper.costs import dearer_than_printed, table_3
from mpcs_torch.paper.experiments import EXPERIMENTS, QUICK, experiment_config, seeded_config
from mpcs_torch.paper.intervals import Interval
from mpcs_torch.paper.published import BENCHMARKS, RECORD_FILES
from mpcs_torch.paper.reproduction import Reproduction, evaluation_tables, measured_costs, reproduce_experiment
from mpcs_torch.report.case_study import write_report
from mpcs_torch.report.evaluation import FILES, write_evaluation
from mpcs_torch.tables import Table
from mpcs_torch.trainer.folder import RunExistsError, check_free

NAMES = (*EXPERIMENTS, "figure6")


def reproduce(
    experiments: Annotated[list[str] | None, typer.Argument(help=f"Any of {', '.join(NAMES)}.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All of them, and OUT/evaluation with Tables II and III and Figure 4.")
    ] = False,
    seeds: Annotated[
        int, typer.Option(min=0, help="Repeat over seeds 0 to N-1 as well; with --all, only what takes seconds a run.")
    ] = 0,
    data_root: DataRoot = Path("data"),
    out: Out = Path("runs"),
    records: Annotated[
        Path | None, typer.Option(help="Folder of published per-turn records to compare with, if you have them.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Run experiments of the paper; print their correlations, and the case study's picks, beside the paper's."""
    names = _check_names(experiments or [], everything)
    if records is not None:
        _check_records(names, records)
    with_figure_6 = "figure6" in names
    names = [name for name in names if name != "figure6"]
    check_free([out / name for name in names], overwrite=overwrite)
    if everything:
        _check_evaluation_free(out / "evaluation", overwrite=overwrite)
    repeated = [] if seeds == 0 else [name for name in names if name in QUICK or not everything]
    finished = {name: _reproduce_one(name, data_root, out, records, overwrite=overwrite) for name in names}
    intervals = {name: _repeat(name, seeds, data_root, out, overwrite=overwrite) for name in repeated}
    if everything:
        _write_everything(out / "evaluation", finished, intervals)
    if with_figure_6:
        reproduce_figure_6(data_root, out, seeds=0 if everything else seeds, overwrite=overwrite)


def _check_names(names: list[str], everything: bool) -> list[str]:
    if everything == bool(names):
        raise typer.BadParameter(f"name experiments ({', '.join(NAMES)}) or pass --all")
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)}: must be among {', '.join(NAMES)}")
    if len(set(names)) < len(names):
        raise typer.BadParameter(f"{' '.join(names)}: each must stand once")
    return names or list(NAMES)


def _check_records(names: Sequence[str], records: Path) -> None:
    needed = [records / RECORD_FILES[name] for name in names if name in RECORD_FILES]
    missing = [str(path) for path in needed if not path.is_file()]
    if missing:
        raise typer.BadParameter(f"{', '.join(missing)}: no such file", param_hint="--records")


def _check_evaluation_free(folder: Path, *, overwrite: bool) -> None:
    if not overwrite and any((folder / name).exists() for name in FILES):
        raise RunExistsError(f"{folder} already holds an evaluation: choose another folder or pass --overwrite")


def _reproduce_one(name: str, data_root: Path, out: Path, records: Path | None, *, overwrite: bool) -> Reproduction:
    # A process for each experiment makes its peak memory its own.
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        finished = pool.submit(_in_child, name, data_root, out / name, records, overwrite).result()
    run = finished.run
    typer.echo(f"\n## {finished.title}\n\n{table_2_row(name, run.records).markdown()}\n")
    if run.costs is not None:
        typer.echo(f"{table_3({name: run.costs}).markdown()}\n")
    if finished.agreement is not None:
        typer.echo(f"{finished.agreement}.\n")
    elif records is not None:
        typer.echo(
            "No comparison by turns: no record to replay was published (or its data were split without a seed).\n"
        )
    if name == "case-study":
        typer.echo(f"{picks_table(picks(run)).markdown()}\n\n{figure_5_comparison(run)}\n")
    write_report(run, out / name / "report.html")
    typer.echo(f"wrote {out / name / 'records.csv'} and report.html beside it")
    return finished


def _in_child(name: str, data_root: Path, folder: Path, records: Path | None, overwrite: bool) -> Reproduction:
    with progress_bar(name, experiment_config(name).turns.count) as bar:
        return reproduce_experiment(name, data_root, folder, records, [bar], overwrite=overwrite)


def _repeat(name: str, seeds: int, data_root: Path, out: Path, *, overwrite: bool) -> tuple[Interval, ...]:
    configs = [seeded_config(name, seed) for seed in range(seeds)]
    runs = finish_all(f"{name}, seeds", configs, data_root, out / "seeds", overwrite=overwrite)
    intervals = seed_intervals(runs)
    rows = [
        [benchmark, *(f"{value:.4f}" for value in (i.mean, i.low, i.high, i.least, i.most))]
        for benchmark, i in zip(BENCHMARKS, intervals, strict=True)
    ]
    header = ["Spearman of mpcs_count with", "mean", "95 % from", "to", "least run", "most"]
    typer.echo(f"\n## {name} over seeds 0 to {seeds - 1}\n\n{Table(header, rows).markdown()}")
    return intervals


def _write_everything(
    folder: Path, finished: Mapping[str, Reproduction], intervals: Mapping[str, Sequence[Interval]]
) -> None:
    write_evaluation(folder, finished, intervals)
    for _, title, table, _ in evaluation_tables(finished, intervals):
        typer.echo(f"\n## {title}\n\n{table.markdown()}")
    costs = measured_costs(finished)
    typer.echo(
        f"\nDearer than in the paper, relative to accuracy: {'; '.join(dearer_than_printed(costs)) or 'nothing'}."
    )
    typer.echo(f"\nwrote {folder / 'report.html'}, tables as .md and .csv, figure4.png and figure4.svg")
