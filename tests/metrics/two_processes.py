"""All metrics in two processes that communicate through gloo."""

import json
import tempfile
import warnings
from pathlib import Path

from matplotlib.figure import Figure

from mpcs_torch.metrics.base import titled
from mpcs_torch.processes import World
from tests.metrics.case import Batch
from tests.metrics.cases import BY_NAME, values_of
from tests.processes.forked import forked_world, succeeded

DRAWN = ("Accuracy", "EqualErrorRate", "RiskCoverageArea", "BrierScore")
"""One for each way in which metrics keep their states."""


def values_of_two_processes(
    batches: dict[str, list[Batch | None]],
) -> list[dict[str, dict[str, float]]]:
    """Give each process its batch of each metric; return the values of each process by the name of the metric."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        assert succeeded(
            forked_world(folder, 2, lambda world: _work(world, folder, batches))
        )
        return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


def _work(world: World, folder: Path, batches: dict[str, list[Batch | None]]) -> None:
    values = {}
    for name, case in BY_NAME.items():
        metric = case.make()
        batch = batches[name][world.rank]
        if batch is not None:
            metric.update(*batch)
        with warnings.catch_warnings():
            # torchmetrics warns where a process had no batch.
            warnings.simplefilter("ignore")
            values[name] = values_of(metric.compute())
            if name in DRAWN:
                axes = Figure().add_subplot()
                metric.plot(ax=axes)
                assert axes.get_title() == titled(name, metric.compute())
                # A figure with counts shows the rows of all processes.
                counted = sum(int(text.get_text()) for text in axes.texts)
                rows = sum(len(batch[1]) for batch in batches[name] if batch is not None)
                assert counted in (0, rows)
        assert metric.batch_count == (batch is not None), (
            "the states of other processes are given back"
        )
    (folder / f"{world.rank}.json").write_text(json.dumps(values))
