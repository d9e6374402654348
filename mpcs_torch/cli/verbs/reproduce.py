"""``mpcs reproduce``: repeat the paper's experiments."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpcs_torch.cli.console import print_json
from mpcs_torch.cli.failures import told_how_to_go_on
from mpcs_torch.cli.options import AsJson, DataRoot, Out, Overwrite, Quiet
from mpcs_torch.paper.published import EXPERIMENTS, QUICK, RECORD_FILES

if TYPE_CHECKING:
    from mpcs_torch.paper.experiments import Reproduction
    from mpcs_torch.paper.tables import Interval

NAMES = (*EXPERIMENTS, "figure6")


def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="EXPERIMENT", help=f"One or more of {', '.join(NAMES)}.", autocompletion=lambda: list(NAMES)
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all")] = False,
    seeds: Annotated[int, typer.Option(min=0)] = 0,
    data_root: DataRoot = Path("data"),
    out: Out = Path("runs"),
    records: Annotated[Path | None, typer.Option(exists=True, file_okay=False)] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Run experiments of the paper, and print their results next to the paper's.

    Args:
        everything: Run all experiments, and write Tables II and III and Figure 4 to OUT/evaluation.
        seeds: Also repeat each experiment with seeds 0 to SEEDS - 1; with --all, only the fast ones.
        records: Folder of the published per-epoch records, to compare with.
    """
    names = _check_names(experiments or [], everything)
    published = [] if records is None else _record_files(names, records)

    from mpcs_torch.cli import experiments as runs

    with_figure_6 = "figure6" in names
    names = [name for name in names if name != "figure6"]
    evaluation = out / "evaluation" if everything else None
    runs.check_before_training(names, published, out, evaluation, overwrite=overwrite)
    repeated = [] if seeds == 0 else [name for name in names if name in QUICK or not everything]
    options = {"--seeds": seeds or None, "--data-root": data_root, "--out": out, "--records": records}
    finished: dict[str, Reproduction] = {}
    intervals: dict[str, Sequence[Interval]] = {}
    results: dict[str, Any] = {}

    def how_to_go_on() -> str:
        """Say with which command to run what is left; only figure 6 reads the runs that are finished."""
        left = [name for name in names if name not in (intervals if name in repeated else finished)]
        left = ["--all"] if everything else [*left, *(["figure6"] if with_figure_6 else [])]
        words = [word for name, value in options.items() if value is not None for word in (name, str(value))]
        command = shlex.join(["mpcs", "reproduce", *left, *words, *([] if left == ["figure6"] else ["--overwrite"])])
        return f"; what is not finished runs again with: {command}"

    with told_how_to_go_on(how_to_go_on):
        for name in names:
            finished[name] = runs.reproduce_one(name, data_root, out, records, overwrite=overwrite)
        for name in repeated:
            intervals[name] = runs.repeat(name, seeds, data_root, out, overwrite=overwrite)
        if evaluation is not None:
            runs.write_everything(evaluation, finished, intervals)
        if with_figure_6:
            more = 0 if everything else seeds
            results["figure6"] = runs.reproduce_figure_6(data_root, out, seeds=more, overwrite=overwrite)
    if as_json:
        print_json(runs.plain_results(finished, intervals) | results)


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
