"""Sweeps with a progress bar."""

from pathlib import Path

from mpcs_torch.cli.progress import counting_bar
from mpcs_torch.trainer.config.run import RunConfig
from mpcs_torch.trainer.records import Record
from mpcs_torch.trainer.sweep import sweep


def finish_all(
    title: str, configs: list[RunConfig], data_root: Path, out: Path, *, overwrite: bool
) -> list[list[Record]]:
    """Run all configs, and return the records of each in the order of the configs."""
    finished: dict[str, list[Record]] = {}
    with counting_bar(title, len(configs)) as advance:
        for config, records in sweep(configs, data_root, out, overwrite=overwrite):
            finished[config.name] = records
            advance()
    return [finished[config.name] for config in configs]
