"""``mpcs reproduce figure6``: learning with MPCS against learning without."""

from pathlib import Path

import typer

from mpcs_torch.cli.progress import counting_bar
from mpcs_torch.paper.figure_6 import comparison_configs, ratios, ratios_table, seeds_table
from mpcs_torch.report.figures import figure_6
from mpcs_torch.trainer.config import RunConfig
from mpcs_torch.trainer.records import Record
from mpcs_torch.trainer.sweep import sweep


def reproduce_figure_6(data_root: Path, out: Path, *, seeds: int, overwrite: bool) -> None:
    """Run the published seed, and further ones; print the ratios, and draw the four panels to OUT/figure6.png."""
    published = comparison_configs()
    plain, with_mpcs = _run_all(published, data_root, out, overwrite=overwrite)
    typer.echo(f"\n## figure6: seed {published[0].seed}\n\n{ratios_table(ratios(plain, with_mpcs)).markdown()}")
    figure = figure_6(plain, with_mpcs)
    figure.savefig(out / "figure6.png", dpi=110)
    figure.savefig(out / "figure6.svg", metadata={"Date": None})
    typer.echo(f"\nwrote {out / 'figure6.png'} and figure6.svg")
    if seeds:
        configs = [config for seed in range(seeds) for config in comparison_configs(seed)]
        runs = _run_all(configs, data_root, out / "seeds", overwrite=overwrite)
        by_seed = [ratios(*pair) for pair in zip(runs[::2], runs[1::2], strict=True)]
        typer.echo(f"\n## figure6: seeds 0 to {seeds - 1}\n\n{seeds_table(by_seed).markdown()}")


def _run_all(configs: list[RunConfig], data_root: Path, out: Path, *, overwrite: bool) -> list[list[Record]]:
    """The records of each config, in their order."""
    finished: dict[str, list[Record]] = {}
    with counting_bar("figure6, runs", len(configs)) as advance:
        for config, records in sweep(configs, data_root, out, overwrite=overwrite):
            finished[config.name] = records
            advance()
    return [finished[config.name] for config in configs]
