"""Each epoch reaches TensorBoard and MLflow where ``mpcs train --log`` asks for them."""

import sys
from pathlib import Path
from typing import Any

import pytest
from mlflow.tracking import MlflowClient
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from typer.testing import CliRunner

from mpcs_torch.cli.app import app
from mpcs_torch.trainer.config.run import dump_config
from mpcs_torch.trainer.records import read_records
from tests.trainer.toy import toy_config

COLUMNS = ["accuracy", "mpcs", "learning_rate"]


def train(folder: Path, *arguments: str) -> Any:
    config = folder / "toy.yaml"
    settings = {"metrics": ["accuracy", "mpcs"], "epochs": {"count": 3}, "scheduler": {"name": "mpcs_lr"}, "score": {}}
    config.write_text(dump_config(toy_config(**settings)))
    return CliRunner().invoke(app, ["train", str(config), "--out", str(folder / "runs"), *arguments])


def scalars(run: Path) -> dict[str, list[tuple[int, float]]]:
    events = EventAccumulator(str(run / "tensorboard")).Reload()
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


@pytest.mark.filterwarnings("ignore::DeprecationWarning:tensorboard", "ignore::FutureWarning:mlflow")
def test_tensorboard_and_mlflow_hold_the_values_of_the_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("MLFLOW_TRACKING_URI", "MLFLOW_ALLOW_FILE_STORE"):
        monkeypatch.setenv(variable, "")  # so that the test leaves it as it was
        monkeypatch.delenv(variable)
    result = train(tmp_path, "--log", "tensorboard", "--log", "mlflow")
    assert result.exit_code == 0, result.output
    run = tmp_path / "runs" / "toy"
    records = read_records(run / "records.csv")
    logged = scalars(run)
    assert sorted(logged) == sorted(COLUMNS)
    assert logged["mpcs"] == [(row["epoch"], pytest.approx(row["mpcs"])) for row in records]
    assert len({value for _, value in logged["learning_rate"]}) == 3

    client = MlflowClient((run / "mlruns").as_uri())
    experiment = client.get_experiment_by_name("toy")
    assert experiment is not None
    (stored,) = client.search_runs([experiment.experiment_id])
    assert stored.info.status == "FINISHED"
    assert stored.data.params["training.batch_size"] == "10"
    history = client.get_metric_history(stored.info.run_id, "mpcs")
    assert [(entry.step, entry.value) for entry in history] == [(row["epoch"], row["mpcs"]) for row in records]


@pytest.mark.filterwarnings("ignore::DeprecationWarning:tensorboard")
def test_a_run_that_is_repeated_replaces_its_values_in_tensorboard(tmp_path: Path) -> None:
    train(tmp_path, "--log", "tensorboard")
    result = train(tmp_path, "seed=6", "--overwrite", "--log", "tensorboard")
    assert result.exit_code == 0, result.output
    run = tmp_path / "runs" / "toy"
    records = read_records(run / "records.csv")
    assert scalars(run)["mpcs"] == [(row["epoch"], pytest.approx(row["mpcs"])) for row in records]


@pytest.mark.filterwarnings("ignore::FutureWarning:mlflow")
def test_mlflow_logs_where_its_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    assert train(tmp_path, "--log", "mlflow").exit_code == 0
    assert MlflowClient().get_experiment_by_name("toy") is not None
    assert not (tmp_path / "runs" / "toy" / "mlruns").exists()


@pytest.mark.parametrize("name", ["tensorboard", "mlflow"])
def test_a_missing_package_is_named_before_any_work(tmp_path: Path, monkeypatch: Any, name: str) -> None:
    modules = [module for module in sys.modules if module.split(".")[0] == name or module == "torch.utils.tensorboard"]
    for module in [name, *modules]:
        monkeypatch.setitem(sys.modules, module, None)
    result = train(tmp_path, "--log", name)
    assert result.exit_code == 2
    assert f"logging to {name} needs a package that is missing: pip install {name}" in result.output
    assert not (tmp_path / "runs").exists()


def test_an_unknown_logger_is_refused(tmp_path: Path) -> None:
    result = train(tmp_path, "--log", "wandb")
    assert result.exit_code == 2
    assert "loggers are tensorboard, mlflow, but got 'wandb'" in result.output
