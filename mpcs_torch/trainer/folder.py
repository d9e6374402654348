"""The folder of a run, which is replaced only on request."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from mpcs_torch.errors import MpcsError
from mpcs_torch.files import replace_text
from mpcs_torch.learning import manifest
from mpcs_torch.trainer import checkpoints
from mpcs_torch.trainer.config import RunConfig, dump_config
from mpcs_torch.trainer.data import DataSplits
from mpcs_torch.trainer.loop import Hook, PreparedRun
from mpcs_torch.trainer.prepare import prepare_run
from mpcs_torch.trainer.records import RecordWriter
from mpcs_torch.trainer.result import FILE as RESULT
from mpcs_torch.trainer.result import RunResult, measure_result

OWN_FILES = ("config.yaml", "records.csv", RESULT, "report.html")
"""What a run writes beside its checkpoints; replacing it deletes these and the checkpoints."""


class RunExistsError(MpcsError, FileExistsError):
    """The folder already holds a run."""


def check_free(folders: Iterable[Path], *, overwrite: bool) -> None:
    """Refuse folders that hold a run, before any work is done, unless runs may be overwritten."""
    marks = (*OWN_FILES, f"{checkpoints.FOLDER}/{manifest.NAME}")
    taken = [str(folder) for folder in folders if any((folder / mark).exists() for mark in marks)]
    if taken and not overwrite:
        raise RunExistsError(f"{', '.join(taken)} already holds a run: choose another folder or pass --overwrite")


def run_in_folder(
    config: RunConfig,
    data: DataSplits,
    folder: Path,
    hooks: Sequence[Hook] = (),
    *,
    overwrite: bool = False,
    flush: bool = True,
) -> tuple[PreparedRun, RunResult]:
    """Run to the end, and write ``config.yaml`` (with every default), ``records.csv`` and ``result.json`` to a folder.

    Without ``flush``, turns do not wait until checkpoints are on disk: for runs that are repeated if they are cut off.

    Raises:
        RunExistsError: If the folder holds a run, and ``overwrite`` is not set.
        ConfigError: If the config does not fit the data; an old run is then kept.
    """
    check_free([folder], overwrite=overwrite)
    prepared = prepare_run(config, data)  # what is wrong with the config must show before an old run is deleted
    folder.mkdir(parents=True, exist_ok=True)
    manifest.delete_checkpoints(folder / checkpoints.FOLDER)  # first, because it refuses what it cannot read
    for name in OWN_FILES:
        (folder / name).unlink(missing_ok=True)
    replace_text(folder / "config.yaml", dump_config(prepared.config))
    selector = checkpoints.open_selector(config, folder, flush=flush)
    if selector is not None:
        hooks = [checkpoints.selector_hook(selector), *hooks]
    with RecordWriter(folder / "records.csv", config.columns) as writer:
        prepared.start([writer, *hooks])
    result = measure_result(prepared, selector)
    result.write(folder)
    return prepared, result
