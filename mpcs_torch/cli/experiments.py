"""Run the paper's experiments and print their results, as ``mpcs reproduce`` does."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mpcs_torch.cli.console import (
    COMMAND_LINE,
    counting_bar,
    heading,
    note,
    progress_bar,
    show,
)
from mpcs_torch.errors import ExistsError
from mpcs_torch.io.atomic_files import save_figure
from mpcs_torch.paper import experiments, published_values
from mpcs_torch.paper.experiments import FinishedRun
from mpcs_torch.paper.published_values import MeanOverRuns
from mpcs_torch.plots.trends import figure_6
from mpcs_torch.report.run import FILES, write_evaluation
from mpcs_torch.tables import Table
from mpcs_torch.trainer.config.sections import RunConfig
from mpcs_torch.trainer.folder import check_free, sweep
from mpcs_torch.trainer.result import Record, read_records


def finish_all(
    title: str, configs: list[RunConfig], data_root: Path, out: Path
) -> list[list[Record]]:
    """Run all ``configs``, and return the records (one per epoch) of each run, in the order of ``configs``."""
    finished: dict[str, list[Record]] = {}
    with counting_bar(title, len(configs)) as advance:
        for config, records in sweep(
            configs, data_root, out, overwrite=COMMAND_LINE.overwrite
        ):
            finished[config.name] = records
            advance()
    return [finished[config.name] for config in configs]


def check_before_training(
    names: Sequence[str], published: Sequence[Path], out: Path, evaluation: Path | None
) -> None:
    """Raise an error if a file in ``published`` cannot be read, or if an output folder already has results."""
    for path in published:
        read_records(path)
    check_free([out / name for name in names], overwrite=COMMAND_LINE.overwrite)
    if evaluation is None or COMMAND_LINE.overwrite:
        return
    if any((evaluation / name).exists() for name in FILES):
        raise ExistsError("has_evaluation", str(evaluation))


def reproduce_one(
    name: str, data_root: Path, out: Path, records: Path | None
) -> FinishedRun:
    """Run the experiment ``name``, and print its results; compare with published ``records`` if given."""
    config = experiments.experiment_config(name)
    with progress_bar(name, config.epochs.count) as bar:
        data = config.data.load(data_root)
        run = experiments.finish_run(
            config,
            data,
            out / name,
            [bar],
            overwrite=COMMAND_LINE.overwrite,
            time_metrics=True,
        )
    if records is not None and name in published_values.RECORD_FILES:
        published = read_records(records / published_values.RECORD_FILES[name])
        run = replace(run, agreement=published_values.compare(run.records, published))
    parts: list[Table | str] = [
        f"\n{heading(run.title)}",
        published_values.table_2({name: run.records}, {}),
    ]
    if run.costs is not None:
        parts.append(published_values.table_3({name: run.costs}))
    if run.agreement is not None:
        parts.append(f"{run.agreement}.")
    elif records is not None:
        parts.append(
            "Not compared epoch by epoch: no record was published, or its data were split without a seed."
        )
    if name == published_values.CASE_STUDY:
        parts += [experiments.picks_table(run), *experiments.figure_5_comparison(run)]
    show(*parts)
    note(
        f"\nwrote {out / name / 'records.csv'}; `mpcs report {out / name}` draws its trends"
    )
    return run


def repeat(name: str, seeds: int, data_root: Path, out: Path) -> tuple[MeanOverRuns, ...]:
    """Run the experiment ``name`` with seeds 0 to ``seeds`` - 1; print and return mean correlations with intervals."""
    configs = [experiments.seeded_config(name, seed) for seed in range(seeds)]
    runs = finish_all(f"{name}, seeds", configs, data_root, out / "seeds")
    intervals = published_values.seed_intervals(runs)
    show(
        f"\n{heading(f'{name} over seeds 0 to {seeds - 1}')}",
        published_values.intervals_table(intervals),
    )
    return intervals


def write_everything(
    folder: Path,
    finished: Mapping[str, FinishedRun],
    intervals: Mapping[str, Sequence[MeanOverRuns]],
) -> None:
    """Write the report, tables and Figure 4 of all experiments to ``folder``, and print the tables."""
    write_evaluation(folder, finished, intervals)
    for one in experiments.evaluation_tables(finished, intervals):
        show(f"\n{heading(one.title)}", one.table)
    note(f"\nwrote {folder / 'report.html'}, tables as .md, figure4.png and figure4.svg")


def reproduce_figure_6(data_root: Path, out: Path, *, seeds: int) -> dict[str, Any]:
    """Train two runs, one with MPCS in the loss; draw Figure 6, and return ratios of the metrics of these runs.

    The figure shows the published seed. Ratios are returned for this seed, and for the seeds 0 to ``seeds`` - 1.
    """
    published = experiments.comparison_configs()
    plain, with_mpcs = finish_all("figure6", published, data_root, out)
    ours = experiments.ratios(plain, with_mpcs)
    show(
        f"\n{heading(f'figure6: seed {published[0].seed}')}", experiments.ratios_table(ours)
    )
    figure = figure_6(plain, with_mpcs)
    save_figure(figure, out / "figure6.png")
    save_figure(figure, out / "figure6.svg")
    note(f"\nwrote {out / 'figure6.png'} and figure6.svg")
    by_seed = []
    if seeds:
        pairs = [experiments.comparison_configs(seed) for seed in range(seeds)]
        # Pair after pair, so that what an interrupted command has finished can be compared.
        configs = [config for pair in pairs for config in pair]
        runs = finish_all("figure6, seeds", configs, data_root, out / "seeds")
        for seed in range(seeds):
            of_plain = runs[2 * seed]
            of_mpcs = runs[2 * seed + 1]
            by_seed.append(experiments.ratios(of_plain, of_mpcs))
        show(
            f"\n{heading(f'figure6: seeds 0 to {seeds - 1}')}",
            experiments.seeds_table(by_seed),
        )
    return {"seed": published[0].seed, "ratios": ours, "by_seed": by_seed}
