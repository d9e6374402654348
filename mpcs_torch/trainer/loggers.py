"""Hooks that send the measurements of each epoch to experiment trackers; ``mpcs train --log`` names them."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from time import time
from typing import Any

from mpcs_torch.errors import MpcsError, quoted
from mpcs_torch.trainer.config.run import RunConfig, flat
from mpcs_torch.trainer.loop import Hook, LoopState, MeasuredEpoch

Logger = Callable[[RunConfig, Path], AbstractContextManager[Hook]]
"""Called with the config and the folder of a run."""


class LoggerError(MpcsError, RuntimeError):
    """There is no logger of that name, or its package is missing."""


PARAMS_AT_ONCE = 100
"""The limit of MLflow."""


def check_loggers(names: Sequence[str]) -> None:
    """Check that loggers can be opened, before any work is done.

    Raises:
        LoggerError: If there is no logger of a name, or its package is not installed.
    """
    for name in names:
        if name not in LOGGERS:
            raise LoggerError(f"loggers are {', '.join(LOGGERS)}, but got {quoted(name)}")
        try:
            import_module(PACKAGES[name])
        except ModuleNotFoundError as error:
            raise LoggerError(f"logging to {name} needs a package that is missing: pip install {name}") from error


@contextmanager
def tensorboard(config: RunConfig, folder: Path) -> Iterator[Hook]:  # noqa: ARG001  # a Logger
    """Write event files to ``tensorboard`` in the run's folder."""
    from torch.utils.tensorboard import SummaryWriter

    writers: list[Any] = []

    def log(epoch: MeasuredEpoch, state: LoopState) -> None:
        if not writers:  # TensorBoard then ignores this epoch and later ones of a run that was cut off or replaced
            writers.append(SummaryWriter(str(folder / "tensorboard"), purge_step=epoch.number))
        for name, value in _values(epoch, state).items():
            writers[0].add_scalar(name, value, epoch.number)
        writers[0].flush()

    try:
        yield log
    finally:
        for writer in writers:
            writer.close()


@contextmanager
def mlflow(config: RunConfig, folder: Path) -> Iterator[Hook]:
    """Log to the server or store in ``MLFLOW_TRACKING_URI``, or else to files in ``mlruns`` in the run's folder.

    The experiment has the name of the run. A run that goes on after it was cut off is a second one there.
    """
    if "MLFLOW_TRACKING_URI" not in os.environ:
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # a database needs more packages than mlflow-skinny
    from mlflow.entities import Metric, Param
    from mlflow.tracking import MlflowClient

    client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI", (folder / "mlruns").absolute().as_uri()))
    runs: list[str] = []

    def log(epoch: MeasuredEpoch, state: LoopState) -> None:
        if not runs:
            earlier = client.get_experiment_by_name(config.name)
            experiment = client.create_experiment(config.name) if earlier is None else earlier.experiment_id
            runs.append(client.create_run(experiment, run_name=config.name).info.run_id)
            params = [Param(key, str(value)) for key, value in flat(config.model_dump()).items()]
            for start in range(0, len(params), PARAMS_AT_ONCE):
                client.log_batch(runs[0], params=params[start : start + PARAMS_AT_ONCE])
        now = int(1000 * time())  # in milliseconds
        metrics = [Metric(name, value, now, epoch.number) for name, value in _values(epoch, state).items()]
        client.log_batch(runs[0], metrics=metrics)

    status = "FAILED"
    try:
        yield log
        status = "FINISHED"
    finally:
        for run_id in runs:
            client.set_terminated(run_id, status)


def _values(epoch: MeasuredEpoch, state: LoopState) -> dict[str, float]:
    return {**epoch.values, "learning_rate": float(state.optimizer.param_groups[0]["lr"])}


LOGGERS: dict[str, Logger] = {"tensorboard": tensorboard, "mlflow": mlflow}
PACKAGES = {"tensorboard": "torch.utils.tensorboard", "mlflow": "mlflow.tracking"}
"""By logger, the module that it needs."""
