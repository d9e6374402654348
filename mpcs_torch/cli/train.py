"""``mpcs train``: train a model as a config says."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli.options import DataRoot, Out, Overwrite

DIVERGED = 3
"""Exit status of a run that has finished, but whose model gives no numbers."""


def train(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", exists=True, dir_okay=False, help="Run config (YAML).")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE", help="Settings that replace those of CONFIG, such as training.batch_size=32"
        ),
    ] = None,
    data_root: DataRoot = Path("data"),
    out: Out = Path("runs"),
    overwrite: Overwrite = False,
) -> None:
    """Train as CONFIG says, and write config.yaml, records.csv (one row per turn) and result.json to OUT/NAME.

    The exit status is 3 if the run has diverged. Import paths in CONFIG run code: train only configs that you trust.
    """
    from mpcs_torch.cli.progress import progress_bar
    from mpcs_torch.trainer.config import load_config
    from mpcs_torch.trainer.folder import check_free, run_in_folder

    sys.path.insert(0, str(Path.cwd()))  # where the user's own modules are, which a config names by import path
    settings = load_config(config, overrides or [])
    folder = out / settings.name
    check_free([folder], overwrite=overwrite)
    data = settings.data.load(data_root)
    with progress_bar(settings.name, settings.turns.count) as bar:
        _, result = run_in_folder(settings, data, folder, [bar], overwrite=overwrite)
    typer.echo(f"Picked turn {result.turn}: {result.reason}.\n\n{result.table().markdown()}\n")
    typer.echo(f"wrote {folder / 'records.csv'}, config.yaml and result.json")
    if settings.selector is not None:
        typer.echo(f"`mpcs select {folder}` compares this pick with those of other metrics and rules")
    if result.diverged:
        problem = f"{settings.name} has diverged: the model of turn {result.turn} gives NaN or infinite logits"
        typer.echo(f"mpcs: {problem}. Lower training.learning_rate, or look for NaN in the data", err=True)
        raise typer.Exit(DIVERGED)
