"""``mpcs train``: train a model as a config says."""

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpcs_torch.cli.options import DataRoot, Out, Overwrite

if TYPE_CHECKING:
    from mpcs_torch.processes.world import World
    from mpcs_torch.trainer.config import RunConfig
    from mpcs_torch.trainer.loop import Hook
DIVERGED = 3
"""Exit status of a run that has finished, but whose model gives no numbers."""


def train(
    config: Annotated[
        Path | None, typer.Argument(metavar="CONFIG", exists=True, dir_okay=False, help="Run config (YAML).")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE", help="Settings that replace those of CONFIG, such as training.batch_size=32"
        ),
    ] = None,
    data_root: DataRoot = Path("data"),
    out: Out = Path("runs"),
    overwrite: Overwrite = False,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN", exists=True, file_okay=False, help="Instead of CONFIG: go on with the run in this folder."
        ),
    ] = None,
    log: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Also log each epoch to tensorboard (in OUT/NAME/tensorboard) or mlflow (MLFLOW_TRACKING_URI, or "
            "OUT/NAME/mlruns); may be repeated.",
        ),
    ] = None,
) -> None:
    """Train as CONFIG says, and write config.yaml, records.csv (one row per epoch) and result.json to OUT/NAME.

    A run that was stopped or killed goes on with --resume RUN. Under torchrun, its processes train one model together,
    and a restarted run goes on by itself. The exit status is 3 if the run has diverged. Import paths in CONFIG, or in
    the config.yaml of RUN, run code: train and resume only what you trust.
    """
    if (config is None) == (resume is None):
        raise typer.BadParameter("give one of CONFIG and --resume RUN")
    from mpcs_torch.processes.world import joined

    sys.path.insert(0, str(Path.cwd()))  # where the user's own modules are, which a config names by import path
    with joined() as world:
        settings, folder = world.told_by_first(lambda: _settings(config, overrides or [], out, resume))
        is_restarted = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
        resumes = resume is not None or is_restarted
        _train(settings, folder, data_root, world, overwrite=overwrite, resume=resumes, log=log or [])


def _settings(config: Path | None, overrides: list[str], out: Path, resume: Path | None) -> "tuple[RunConfig, Path]":
    from mpcs_torch.trainer.config import load_config

    if resume is not None:
        return load_config(resume / "config.yaml", overrides), resume
    assert config is not None
    settings = load_config(config, overrides)
    return settings, out / settings.name


def _train(
    settings: "RunConfig",
    folder: Path,
    data_root: Path,
    world: "World",
    *,
    overwrite: bool,
    resume: bool,
    log: list[str],
) -> None:
    from mpcs_torch.cli.progress import progress_bar
    from mpcs_torch.trainer.folder import check_free, run_in_folder
    from mpcs_torch.trainer.loggers import LOGGERS, check_loggers

    world.told_by_first(lambda: check_loggers(log))
    world.told_by_first(lambda: check_free([folder], overwrite=overwrite or resume))
    if resume and world.told_by_first(lambda: (folder / "result.json").exists()):
        if world.is_first:
            typer.echo(f"{folder} is finished: its result is in {folder / 'result.json'}")
        return
    data = settings.data.load(data_root)
    with ExitStack() as stack:
        hooks: list[Hook] = []
        if world.is_first:
            bar = progress_bar(settings.name, settings.epochs.count)
            hooks = [stack.enter_context(hook) for hook in (bar, *(LOGGERS[name](settings, folder) for name in log))]
        _, result = run_in_folder(settings, data, folder, hooks, overwrite=overwrite, resume=resume, world=world)
    if not world.is_first:
        return
    typer.echo(f"Picked epoch {result.epoch}: {result.reason}.\n\n{result.table().markdown()}\n")
    typer.echo(f"wrote {folder / 'records.csv'}, config.yaml and result.json")
    if settings.selector is not None:
        typer.echo(f"`mpcs select {folder}` compares this pick with those of other metrics and rules")
    if result.diverged:
        problem = f"{settings.name} has diverged: the model of epoch {result.epoch} gives NaN or infinite logits"
        typer.echo(f"mpcs: {problem}. Lower training.learning_rate, or look for NaN in the data", err=True)
        raise typer.Exit(DIVERGED)
