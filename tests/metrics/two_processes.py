"""All metrics in two processes that talk over gloo."""

import json
import tempfile
from pathlib import Path

import torch.distributed
import torch.multiprocessing

from tests.metrics.cases import CASES, Batch, values_of


def values_of_two_processes(batches: list[Batch]) -> list[dict[str, dict[str, float]]]:
    """Give each process its batch; return what each computes, by the name of the metric."""
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(_work, (folder, batches), nprocs=len(batches))
        return [json.loads((Path(folder) / f"{rank}.json").read_text()) for rank in range(len(batches))]


def _work(rank: int, folder: str, batches: list[Batch]) -> None:
    store = f"file://{folder}/store"
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=len(batches))
    values = {}
    for kind, case in CASES.items():
        metric = case.make()
        metric.update(*batches[rank])
        values[kind.__name__] = values_of(metric.compute())
    (Path(folder) / f"{rank}.json").write_text(json.dumps(values))
    torch.distributed.destroy_process_group()
