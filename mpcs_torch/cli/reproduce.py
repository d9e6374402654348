"""``mpcs reproduce``: repeat the paper's experiments."""

from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli.options import DataRoot, Out, Overwrite
from mpcs_torch.paper.names import EXPERIMENTS, QUICK
from mpcs_torch.paper.published import RECORD_FILES

NAMES = (*EXPERIMENTS, "figure6")


def _names() -> list[str]:
    return list(NAMES)


def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(metavar="EXPERIMENT", help=f"One or more of {', '.join(NAMES)}.", autocompletion=_names),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Run all experiments, and write Tables II and III and Figure 4 to OUT/evaluation."),
    ] = False,
    seeds: Annotated[
        int,
        typer.Option(
            min=0, help="Also repeat each experiment with seeds 0 to SEEDS - 1; with --all, only the fast ones."
        ),
    ] = 0,
    data_root: DataRoot = Path("data"),
    out: Out = Path("runs"),
    records: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="Folder of the published per-epoch records, to compare with.",
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Run experiments of the paper, and print their results next to the paper's."""
    names = _check_names(experiments or [], everything)
    published = [] if records is None else _record_files(names, records)

    from mpcs_torch.cli import experiments as runs
    from mpcs_torch.cli.figure_6 import reproduce_figure_6
    from mpcs_torch.trainer.folder import check_free

    with_figure_6 = "figure6" in names
    names = [name for name in names if name != "figure6"]
    runs.check_records(published)
    check_free([out / name for name in names], overwrite=overwrite)
    if everything:
        runs.check_evaluation_free(out / "evaluation", overwrite=overwrite)
    repeated = [] if seeds == 0 else [name for name in names if name in QUICK or not everything]
    finished = {name: runs.reproduce_one(name, data_root, out, records, overwrite=overwrite) for name in names}
    intervals = {name: runs.repeat(name, seeds, data_root, out, overwrite=overwrite) for name in repeated}
    if everything:
        runs.write_everything(out / "evaluation", finished, intervals)
    if with_figure_6:
        reproduce_figure_6(data_root, out, seeds=0 if everything else seeds, overwrite=overwrite)


def _check_names(names: list[str], everything: bool) -> list[str]:
    if everything == bool(names):
        raise typer.BadParameter(f"name one or more experiments ({', '.join(NAMES)}) or pass --all")
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)}: must be one of {', '.join(NAMES)}")
    if len(set(names)) < len(names):
        raise typer.BadParameter(f"{' '.join(names)}: name each experiment once")
    return names or list(NAMES)


def _record_files(names: list[str], records: Path) -> list[Path]:
    needed = [records / RECORD_FILES[name] for name in names if name in RECORD_FILES]
    missing = [str(path) for path in needed if not path.is_file()]
    if missing:
        raise typer.BadParameter(f"{', '.join(missing)}: no such file", param_hint="--records")
    return needed
