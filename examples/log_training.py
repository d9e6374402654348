"""Log each epoch of a run to TensorBoard and MLflow, by a hook of the trainer: ``python examples/log_training.py``."""

import os
from pathlib import Path

from mlflow.tracking import MlflowClient  # pip install mlflow-skinny
from torch.utils.tensorboard import SummaryWriter  # pip install tensorboard

from mpcs_torch.io.packaged import packaged_file
from mpcs_torch.trainer.config.load import load_config
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.loop import MeasuredEpoch, TrainingRun

config = load_config(packaged_file("experiments", "digits"), ["epochs.count=5"])
folder = Path("runs/logged")
os.environ.setdefault(
    "MLFLOW_ALLOW_FILE_STORE", "true"
)  # a database or a server needs more than mlflow-skinny
board = SummaryWriter(str(folder / "tensorboard"))
client = MlflowClient(Path("mlruns").absolute().as_uri())  # or that of a server
experiment = client.get_experiment_by_name(config.name)
tracked = client.create_run(
    client.create_experiment(config.name)
    if experiment is None
    else experiment.experiment_id
)


def log(epoch: MeasuredEpoch, run: TrainingRun) -> None:
    """Log the metrics and the learning rate of an epoch."""
    for name, value in {
        **epoch.values,
        "learning_rate": float(run.optimizer.param_groups[0]["lr"]),
    }.items():
        board.add_scalar(name, value, epoch.number)
        client.log_metric(tracked.info.run_id, name, value, step=epoch.number)


_, result = run_in_folder(
    config, config.data.load(Path("data")), folder, [log], overwrite=True
)
board.close()
client.set_terminated(tracked.info.run_id)
print(
    f"epoch {result.epoch} is the best of {config.epochs.count}, as the curves in {folder / 'tensorboard'} show"
)
