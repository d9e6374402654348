"""``mpcs reproduce``: repeat the paper's experiments."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from mpcs_torch.cli.console import print_result
from mpcs_torch.cli.options import DataRoot, Out, demand, shared
from mpcs_torch.paper.published_values import EXPERIMENTS, QUICK, RECORD_FILES

Experiment = StrEnum("Experiment", {name: name for name in (*EXPERIMENTS, "figure6")})  # type: ignore[misc]


@shared("overwrite", "json", "quiet")
def reproduce(
    experiments: Annotated[
        list[Experiment] | None,
        typer.Argument(
            metavar="EXPERIMENT", help=f"One or more of {', '.join(Experiment)}."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all")] = False,
    seeds: Annotated[int, typer.Option(min=0)] = 0,
    data_root: DataRoot = Path("data"),
    out: Out = Path("runs"),
    records: Annotated[Path | None, typer.Option(exists=True, file_okay=False)] = None,
) -> None:
    """Run experiments of the paper, and print their results beside the published ones.

    Args:
        everything: Run all experiments, and write Tables II and III and Figure 4 to OUT/evaluation.
        seeds: Also repeat each experiment with seeds 0 to SEEDS - 1; with --all, only the fast ones.
        records: Folder of the published per-epoch records, to compare with.
    """
    is_one_way = everything != bool(experiments)
    demand(is_one_way, "experiments_or_all", names=", ".join(Experiment))
    names = [str(name) for name in experiments or Experiment]
    demand(len(set(names)) == len(names), "experiment_once", names=" ".join(names))
    published = (
        [records / RECORD_FILES[name] for name in names if name in RECORD_FILES]
        if records
        else []
    )
    missing = [str(path) for path in published if not path.is_file()]
    demand(not missing, "is_there", "--records", path=", ".join(missing), kind="file")

    from mpcs_torch.cli import experiments as runs

    with_figure_6 = "figure6" in names
    names = [name for name in names if name != "figure6"]
    evaluation = out / "evaluation" if everything else None
    runs.check_before_training(names, published, out, evaluation)
    repeated = (
        [] if seeds == 0 else [name for name in names if name in QUICK or not everything]
    )
    finished, intervals, figure_6 = dict[str, Any](), dict[str, Any](), dict[str, Any]()
    for name in names:
        finished[name] = runs.reproduce_one(name, data_root, out, records)
    for name in repeated:
        intervals[name] = runs.repeat(name, seeds, data_root, out)
    if evaluation is not None:
        runs.write_everything(evaluation, finished, intervals)
    if with_figure_6:
        figure_6["figure6"] = runs.reproduce_figure_6(
            data_root, out, seeds=0 if everything else seeds
        )
    print_result(
        {name: one.plain(intervals.get(name, ())) for name, one in finished.items()}
        | figure_6
    )
