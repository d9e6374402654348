"""``mpcs reproduce``: the paper's experiments, their numbers beside the printed ones."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from mpcs_torch.cli.options import DataRoot, Out, Overwrite
from mpcs_torch.cli.progress import progress_bar
from mpcs_torch.paper.case_study import figure_5_comparison, picks, picks_table
from mpcs_torch.paper.experiments import EXPERIMENTS, experiment_config, finish_run
from mpcs_torch.paper.published import RECORD_FILES
from mpcs_torch.paper.replay import compare
from mpcs_torch.paper.tables import markdown, table_2
from mpcs_torch.report.html import write_report
from mpcs_torch.trainer.folder import check_free
from mpcs_torch.trainer.records import read_records


def reproduce(
    experiments: Annotated[list[str], typer.Argument(help=f"Any of {', '.join(EXPERIMENTS)}.")],
    data_root: DataRoot = Path("data"),
    out: Out = Path("runs"),
    records: Annotated[
        Path | None, typer.Option(help="Folder of published per-turn records to compare with, if you have them.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Run experiments of the paper; print their correlations, and the case study's picks, beside the paper's."""
    unknown = [name for name in experiments if name not in EXPERIMENTS]
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)}: must be among {', '.join(EXPERIMENTS)}")
    if len(set(experiments)) < len(experiments):
        raise typer.BadParameter(f"{' '.join(experiments)}: each must stand once")
    if records is not None:
        missing = [
            name for name in experiments if name in RECORD_FILES and not (records / RECORD_FILES[name]).is_file()
        ]
        if missing:
            files = ", ".join(str(records / RECORD_FILES[name]) for name in missing)
            raise typer.BadParameter(f"{files}: no such file", param_hint="--records")
    check_free([out / name for name in experiments], overwrite=overwrite)
    for name in experiments:
        _reproduce_one(name, data_root=data_root, out=out, records=records, overwrite=overwrite)


def _reproduce_one(name: str, *, data_root: Path, out: Path, records: Path | None, overwrite: bool) -> None:
    config = experiment_config(name)
    data = config.data.load(data_root)
    start = perf_counter()
    with progress_bar(name, config.turns.count) as bar:
        run = finish_run(config, data, out / name, [bar], overwrite=overwrite)
    seconds = perf_counter() - start
    typer.echo(f"\n## {name}: {config.model} on {config.data}, {len(run.records)} turns, {seconds:.0f} s\n")
    typer.echo(table_2(name, run.records))
    if records is not None:
        published = RECORD_FILES.get(name)
        typer.echo(
            f"\n{compare(run.records, read_records(records / published))}."
            if published
            else "\nNo comparison by turns: no record to replay was published (or its data were split without a seed)."
        )
    if name == "case-study":
        typer.echo(f"\n{markdown(*picks_table(picks(run)))}\n\n{figure_5_comparison(run)}")
    write_report(run, out / name / "report.html")
    typer.echo(f"\nwrote {out / name / 'records.csv'} and report.html beside it")
