"""Many runs side by side in processes of their own; finished ones are read, not run again."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import torch

from mpcs_torch.trainer.config import RunConfig, dump_config
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.loop import prepare_run
from mpcs_torch.trainer.records import Record, read_records


def sweep(
    configs: Sequence[RunConfig], data_root: Path, out: Path, *, overwrite: bool = False
) -> Iterator[tuple[RunConfig, list[Record]]]:
    """Run each config in ``out/<name>``, one process for each processor; yield them with their records as they finish.

    A sweep that was cut off goes on where it stopped: a folder that holds the whole run of the same config is read, and
    the beginning of one is run again.

    Raises:
        RunExistsError: If a folder holds the run of another config, and ``overwrite`` is not set.
    """
    processes = min(len(configs), os.cpu_count() or 1)
    # Spawned, because a fork of a process that has used threads of torch may hang.
    with ProcessPoolExecutor(processes, get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        try:
            futures = {
                pool.submit(_finish, config, data_root, out / config.name, overwrite): config for config in configs
            }
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _finish(config: RunConfig, data_root: Path, folder: Path, overwrite: bool) -> list[Record]:
    data = config.data.load(data_root)
    settings = dump_config(prepare_run(config, data).config)
    saved = folder / "config.yaml"
    is_ours = saved.is_file() and saved.read_text(encoding="utf-8") == settings
    if is_ours and (folder / "records.csv").is_file():
        records = read_records(folder / "records.csv")
        if len(records) == config.turns.count:
            return records
    run_in_folder(config, data, folder, overwrite=overwrite or is_ours)
    return read_records(folder / "records.csv")
