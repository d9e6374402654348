"""Train runs in folders, and sweeps of many runs in parallel."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from mpcs_torch.errors import ExistsError
from mpcs_torch.io.atomic_files import (
    delete_stale,
    flush_paths,
    locked,
    replace_text,
)
from mpcs_torch.io.local_paths import local_path
from mpcs_torch.io.untrusted_files import read_text
from mpcs_torch.learning import CheckpointSelector
from mpcs_torch.learning.checkpoint_files import MANIFEST, delete_checkpoints
from mpcs_torch.processes import ALONE, World, run_in_processes
from mpcs_torch.trainer.checkpoints import FOLDER as CHECKPOINTS
from mpcs_torch.trainer.checkpoints import open_selector, selector_hook
from mpcs_torch.trainer.config.load import changed_keys, dump_config
from mpcs_torch.trainer.config.sections import RunConfig
from mpcs_torch.trainer.data import DataSplits
from mpcs_torch.trainer.loop import Hook, TrainingRun, resolved_config
from mpcs_torch.trainer.result import (
    CONFIG,
    RECORDS,
    Record,
    RunResult,
    measure_result,
    read_records,
    read_result,
    record_writer,
)
from mpcs_torch.trainer.result import FILE as RESULT
from mpcs_torch.trainer.resume import FILE as SAVED
from mpcs_torch.trainer.resume import (
    RunKeeper,
    check_resumable,
    cut_records,
    read_state,
    restore,
)

RUN_FILES = (CONFIG, RECORDS, RESULT, "report.html", SAVED)
"""The files of a run, without its checkpoints. If a run is replaced, these files and the checkpoints are deleted."""


def is_finished(config: RunConfig, folder: Path) -> bool:
    """Return whether ``folder`` has a finished run with exactly the settings of ``config``.

    Raises:
        ConfigError: If any setting but the number of epochs differs, or if that differs and a schedule depends on it.
        ExistsError: If the number of epochs differs, and the run stopped early or has no saved state.
    """
    if not (folder / RESULT).exists():
        return False
    if not check_resumable(read_text(folder / CONFIG), config):
        return True
    stopped = read_result(folder).stopped
    if stopped is not None:
        raise ExistsError("stopped_run", str(folder), stopped=stopped)
    if not (folder / SAVED).exists():
        raise ExistsError("no_saved_state", str(folder), file=SAVED)
    return False


def check_free(folders: Iterable[Path], *, overwrite: bool) -> None:
    """Raise an `ExistsError` if any of ``folders`` has a run, unless ``overwrite`` is true."""
    marks = (*RUN_FILES, f"{CHECKPOINTS}/{MANIFEST}")
    taken = [
        str(folder) for folder in folders if any((folder / mark).exists() for mark in marks)
    ]
    if taken and not overwrite:
        raise ExistsError("has_run", ", ".join(taken))


def run_in_folder(
    config: RunConfig,
    data: DataSplits,
    folder: str | Path,
    hooks: Sequence[Hook] = (),
    *,
    overwrite: bool = False,
    resume: bool = False,
    world: World = ALONE,
) -> tuple[TrainingRun, RunResult]:
    """Train to the last epoch, and write ``config.yaml`` (with all defaults), ``records.csv`` and ``result.json``.

    Args:
        config: The config of the run.
        data: The data that the config names.
        folder: The folder of the run; only the process of rank 0 writes to it.
        hooks: Functions that rank 0 calls after each epoch.
        overwrite: Whether to replace a run in the folder.
        resume: Whether to resume the run in the folder. A run without a saved state begins again.
        world: The processes that train together.

    Raises:
        ExistsError: If the folder has a run, and neither ``overwrite`` nor ``resume`` is set.
        FolderInUseError: If another process writes to the folder.
        ConfigError: If the config does not match the data or the run to resume. The folder is then unchanged.
        StoppedError: If the process was interrupted or terminated; the run can be resumed.
    """
    folder = local_path(folder, "folder")
    # This checks the config: do so before an old run is deleted.
    run = TrainingRun(config, data, world)
    with ExitStack() as stack:

        def open_folder() -> dict[str, Any] | None:
            stack.enter_context(locked(folder))
            # Check after locking, because another process may have finished a run in the meantime.
            check_free([folder], overwrite=overwrite or resume)
            return read_state(folder) if resume else None

        saved = world.from_first(open_folder)
        if saved is not None:
            restore(run, saved)
        elif resume and not overwrite and (folder / CONFIG).exists():
            check_resumable(read_text(folder / CONFIG), run.config)
        world.from_first(lambda: _begin(run, folder, is_new=saved is None))
        selector = None
        hooks_of_rank = list[Hook]()
        if world.is_first:
            records = record_writer(
                folder / RECORDS, config.columns, append=saved is not None
            )
            hooks_of_rank = [stack.enter_context(records), *hooks]
            selector = open_selector(config, folder)
        if selector is not None:
            hooks_of_rank.insert(1, selector_hook(selector))
        keeper = RunKeeper(folder, config.training.save_seconds)
        stack.enter_context(keeper.watching())
        run.train(hooks_of_rank, keeper.after_step)
        keeper.save(run)
        result = measure_result(run, selector)
        world.from_first(lambda: _write_result(result, folder, selector))
    return run, result


def _begin(run: TrainingRun, folder: Path, *, is_new: bool) -> None:
    """Clear ``folder`` for a new run; for a resumed run, remove the records of epochs after the saved state."""
    # No other process writes these files now, so what a killed one left of them is of no use.
    for name in (CONFIG, RECORDS, RESULT, SAVED):
        delete_stale(folder / name, seconds=0)
    if is_new:
        # This comes first, because it raises if it cannot read the manifest.
        delete_checkpoints(folder / CHECKPOINTS)
    else:
        cut_records(folder / RECORDS, run.epochs)
    if is_new or changed_keys(read_text(folder / CONFIG), run.config):
        for name in RUN_FILES if is_new else (RESULT, "report.html"):
            (folder / name).unlink(missing_ok=True)
        replace_text(folder / CONFIG, dump_config(run.config))


def _write_result(
    result: RunResult, folder: Path, selector: CheckpointSelector | None
) -> None:
    """Write ``result`` last, after all else is on disk, because this file marks the run as finished."""
    if selector is not None:
        files = [epoch.file for epoch in selector.epochs if epoch.file is not None]
        paths = [selector.folder / file for file in files]
        present = [path for path in paths if path.exists()]
        flush_paths([*present, selector.folder / MANIFEST, selector.folder])
    flush_paths([folder / RECORDS, folder])
    result.write(folder)


def sweep(
    configs: Sequence[RunConfig],
    data_root: str | Path,
    out: str | Path,
    *,
    overwrite: bool = False,
) -> Iterator[tuple[RunConfig, list[Record]]]:
    """Train each config in ``out/<name>``, in parallel; yield the config and the records of each finished run.

    A run that was begun is resumed, and a finished run is kept, unless ``overwrite`` is true.
    """
    data_root = local_path(data_root, "data_root")
    out = local_path(out, "out")
    yield from run_in_processes(
        partial(_run_records, data_root=data_root, out=out, overwrite=overwrite), configs
    )


def _run_records(
    config: RunConfig, *, data_root: Path, out: Path, overwrite: bool
) -> list[Record]:
    folder = out / config.name
    data = config.data.load(data_root)
    is_begun = (folder / CONFIG).exists() and not overwrite
    if not is_begun or not is_finished(resolved_config(config, data), folder):
        run_in_folder(config, data, folder, overwrite=overwrite, resume=is_begun)
    return read_records(folder / RECORDS)
