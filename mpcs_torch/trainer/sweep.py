"""Many runs in parallel; finished ones are read, not repeated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpcs_torch.processes.pool import run_in_processes
from mpcs_torch.trainer.config.run import RunConfig, dump_config
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.prepare import prepare_run
from mpcs_torch.trainer.records import Record, read_records


@dataclass(frozen=True)
class _Task:
    config: RunConfig
    data_root: Path
    folder: Path
    overwrite: bool


def sweep(
    configs: Sequence[RunConfig], data_root: Path, out: Path, *, overwrite: bool = False
) -> Iterator[tuple[RunConfig, list[Record]]]:
    """Run each config in ``out/<name>``, in parallel; yield each with its records as it finishes.

    A sweep that was interrupted resumes: a folder with the complete run of the same config is read, and an incomplete
    run is repeated. With ``overwrite`` all are repeated.

    Raises:
        RunExistsError: If a folder holds the run of another config, and ``overwrite`` is not set.
    """
    tasks = [_Task(config, data_root, out / config.name, overwrite) for config in configs]
    for task, records in run_in_processes(_finish, tasks):
        yield task.config, records


def _finish(task: _Task) -> list[Record]:
    config, folder = task.config, task.folder
    data = config.data.load(task.data_root)
    settings = dump_config(prepare_run(config, data).config)
    saved = folder / "config.yaml"
    is_ours = saved.is_file() and saved.read_text(encoding="utf-8") == settings
    if is_ours and not task.overwrite and (folder / "records.csv").is_file():
        whole = (folder / "records.csv").read_text(encoding="utf-8")
        if whole.count("\n") == 1 + config.epochs.count and whole.endswith("\n"):
            return read_records(folder / "records.csv")
    run_in_folder(config, data, folder, overwrite=task.overwrite or is_ours, flush=False)
    return read_records(folder / "records.csv")
