"""The folder of a run: made anew, or replaced only when told to."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from mpcs_torch.errors import MpcsError
from mpcs_torch.files import replace_text
from mpcs_torch.learning import manifest
from mpcs_torch.trainer import checkpoints
from mpcs_torch.trainer.config import RunConfig, dump_config
from mpcs_torch.trainer.data import DataSplits
from mpcs_torch.trainer.loop import Hook, PreparedRun, prepare_run
from mpcs_torch.trainer.records import RecordWriter

OWN_FILES = ("config.yaml", "records.csv", "report.html")
"""What a run writes beside its checkpoints; replacing it deletes these and the checkpoints."""


class RunExistsError(MpcsError, FileExistsError):
    """A run of that name is already there."""


def check_free(folders: Iterable[Path], *, overwrite: bool) -> None:
    """Refuse, before any work, folders that hold a run, unless it may be overwritten."""
    marks = (*OWN_FILES, f"{checkpoints.FOLDER}/{manifest.NAME}")
    taken = [str(folder) for folder in folders if any((folder / mark).exists() for mark in marks)]
    if taken and not overwrite:
        raise RunExistsError(f"{', '.join(taken)} already holds a run: choose another folder or pass --overwrite")


def run_in_folder(
    config: RunConfig, data: DataSplits, folder: Path, hooks: Sequence[Hook] = (), *, overwrite: bool = False
) -> PreparedRun:
    """Run to the end, with ``config.yaml`` (every default written out) and ``records.csv`` in a folder of its own."""
    check_free([folder], overwrite=overwrite)
    prepared = prepare_run(config, data)  # what is wrong with the config must show before an old run is deleted
    folder.mkdir(parents=True, exist_ok=True)
    manifest.delete_checkpoints(folder / checkpoints.FOLDER)  # first, because it refuses what it cannot read
    for name in OWN_FILES:
        (folder / name).unlink(missing_ok=True)
    replace_text(folder / "config.yaml", dump_config(prepared.config))
    if config.selector is not None:
        hooks = [checkpoints.selector_hook(checkpoints.open_selector(config.selector, folder)), *hooks]
    with RecordWriter(folder / "records.csv") as writer:
        prepared.start([writer, *hooks])
    return prepared
