"""Compare training with MPCS and without, for ``mpcs reproduce figure6``."""

from pathlib import Path
from typing import Any

from mpcs_torch.cli.console import heading, note, show, text_of
from mpcs_torch.cli.sweeps import finish_all
from mpcs_torch.paper.figure_6 import comparison_configs, ratios, ratios_table, seeds_table
from mpcs_torch.plots.learning_comparison import figure_6


def reproduce_figure_6(data_root: Path, out: Path, *, seeds: int, overwrite: bool) -> dict[str, Any]:
    """Run the published seed and others, print and return the ratios, and draw the four panels to OUT/figure6.png."""
    published = comparison_configs()
    plain, with_mpcs = finish_all("figure6", published, data_root, out, overwrite=overwrite)
    ours = ratios(plain, with_mpcs)
    show(f"\n{heading(f'figure6: seed {published[0].seed}')}\n\n{text_of(ratios_table(ours))}")
    figure = figure_6(plain, with_mpcs)
    figure.savefig(out / "figure6.png", dpi=110)
    figure.savefig(out / "figure6.svg", metadata={"Date": None})
    note(f"\nwrote {out / 'figure6.png'} and figure6.svg")
    by_seed = []
    if seeds:
        configs = [config for seed in range(seeds) for config in comparison_configs(seed)]
        runs = finish_all("figure6, seeds", configs, data_root, out / "seeds", overwrite=overwrite)
        by_seed = [ratios(*pair) for pair in zip(runs[::2], runs[1::2], strict=True)]
        show(f"\n{heading(f'figure6: seeds 0 to {seeds - 1}')}\n\n{text_of(seeds_table(by_seed))}")
    return {"seed": published[0].seed, "ratios": ours, "by_seed": by_seed}
