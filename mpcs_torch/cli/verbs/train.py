"""``mpcs train``: train by a run config; ``--list`` shows those of the package."""

import os
import shlex
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpcs_torch.cli.console import COMMAND_LINE, note, part_text, print_result, progress_bar
from mpcs_torch.cli.options import DataRoot, Out, TrustCode, demand, file_or_name, shared
from mpcs_torch.exit_statuses import ExitStatus
from mpcs_torch.io.packaged import packaged_file, packaged_names
from mpcs_torch.io.yaml_files import read_yaml_file
from mpcs_torch.tables import Table

if TYPE_CHECKING:
    from mpcs_torch.processes import World
    from mpcs_torch.trainer.config.sections import RunConfig
    from mpcs_torch.trainer.loop import Hook


def config_table() -> Table:
    """Return a table with a row for each packaged config: its name, data and model."""
    rows = []
    for name in packaged_names("experiments"):
        config = read_yaml_file(packaged_file("experiments", name)).value
        rows.append([name, _named(config["data"]), _named(config["model"])])
    return Table(["name", "data", "model"], rows)


def _named(part: Mapping[str, object]) -> str:
    return " ".join(str(part[key]) for key in ("name", "set") if key in part)


@shared("overwrite", "json", "quiet")
def train(
    config: Annotated[
        str | None,
        typer.Argument(
            metavar="CONFIG", autocompletion=lambda: packaged_names("experiments")
        ),
    ] = None,
    overrides: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE")] = None,
    data_root: DataRoot = Path("data"),
    out: Out = Path("runs"),
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN", exists=True, file_okay=False)
    ] = None,
    trust_code: TrustCode = False,
    listed: Annotated[bool, typer.Option("--list")] = False,
) -> None:
    """Train by CONFIG, and write config.yaml, records.csv (one row per epoch) and result.json to OUT/NAME.

    --resume RUN resumes a run that was stopped or killed. --resume RUN epochs.count=500 extends a finished run; the
    result is as if it had been started with 500 epochs. Under torchrun, the processes train one model together, and a
    restarted run resumes by itself. The exit status is 6 if the run has diverged. CONFIG may name code by import paths,
    and this code is run: train only what you trust. The code that the config.yaml of RUN names is run only with
    --trust-code.

    Args:
        config: Run config: a YAML file, or a name of `mpcs train --list`.
        overrides: Settings that replace those of CONFIG, such as training.batch_size=32; with --resume, epochs.count.
        resume: Instead of CONFIG: resume the run in this folder.
        listed: List the configs of the package, and train nothing.
    """
    if listed:
        table = config_table()
        print_result(table.records(), table)
        return
    changes = list(overrides or [])
    if resume is None:
        is_complete = config is not None
    else:
        if config is not None:  # the first change stands where a config does
            changes.insert(0, config)
        is_complete = all("=" in change for change in changes)
    demand(is_complete, "config_or_resume")
    if resume is None:
        path_from_text = file_or_name("experiments")
        path = path_from_text(str(config))
    else:
        path = resume / "config.yaml"
    from mpcs_torch.processes import joined
    from mpcs_torch.trainer.config.load import load_config

    with joined() as world:
        trusts = trust_code or resume is None  # who names a config trusts it
        settings = world.from_first(lambda: load_config(path, changes, trust_code=trusts))
        folder = out / settings.name if resume is None else resume
        restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))  # by torchrun
        resumes = resume is not None or restarts > 0
        try:
            _train(settings, folder, data_root, world, resume=resumes)
        except KeyboardInterrupt:  # outside the steps, which finish first
            if (folder / "config.yaml").is_file():
                command = f"mpcs train --resume {shlex.quote(str(folder))}"
                typer.echo(f"mpcs: `{command}` resumes from the last saved state", err=True)
            raise


def _train(
    settings: "RunConfig", folder: Path, data_root: Path, world: "World", *, resume: bool
) -> None:
    from mpcs_torch.trainer.folder import check_free, is_finished, run_in_folder
    from mpcs_torch.trainer.result import FILE as RESULT
    from mpcs_torch.trainer.result import read_result

    overwrite = COMMAND_LINE.overwrite
    world.from_first(lambda: check_free([folder], overwrite=overwrite or resume))
    if resume and world.from_first(lambda: is_finished(settings, folder)):
        if world.is_first:
            result = read_result(folder)
            stopped = "" if result.stopped is None else f"; it stopped {result.stopped}"
            note(f"{folder} is finished: its result is in {folder / RESULT}{stopped}")
            print_result({"run": folder, **result.plain()})
        return
    data = settings.data.load(data_root)
    bar: AbstractContextManager[Hook | None] = nullcontext()
    if world.is_first:
        bar = progress_bar(settings.name, settings.epochs.count)
    with bar as advance:
        hooks = [] if advance is None else [advance]
        _, result = run_in_folder(
            settings, data, folder, hooks, overwrite=overwrite, resume=resume, world=world
        )
    if not world.is_first:
        return
    stopped = "" if result.stopped is None else f"Stopped {result.stopped}.\n"
    picked = f"{stopped}Picked epoch {result.epoch}: {result.reason}."
    print_result(
        {"run": folder, **result.plain()}, picked, f"{part_text(result.table())}\n"
    )
    note(f"wrote {folder / 'records.csv'}, config.yaml and result.json")
    if settings.selector is not None:
        note(
            f"`mpcs select {folder}` compares this pick with those of other metrics and rules"
        )
    if result.diverged:
        problem = f"{settings.name} has diverged: the model of epoch {result.epoch} gives NaN or infinite logits"
        typer.echo(
            f"mpcs: {problem}. Lower training.learning_rate, or look for NaN in the data",
            err=True,
        )
        raise typer.Exit(ExitStatus.DIVERGED)
