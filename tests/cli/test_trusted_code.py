"""Code that the config of a run folder names is run only at the user's word."""

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from mpcs_torch.trainer.config.load import UntrustedCodeError, dump_config, load_config
from mpcs_torch.trainer.config.sections import ConfigError
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.resume import FILE, check_resumable
from tests.cli.shell import one_line, run
from tests.cli.test_cli import IRIS
from tests.refused import Refused
from tests.trainer.toy import toy_config, toy_data

OWN = "import torch\ndef net(shape, classes, *, bias: bool = True):\n    return torch.nn.Linear(shape[0], classes)\n"
PLANTED = f"import pathlib\npathlib.Path('ran').touch()\n{OWN}"
MODEL = "model={path: 'planted:net'}"
SETTINGS = (
    "score={}",
    "metrics=[accuracy]",
    "epochs={count: 1}",
    "selector={by: accuracy}",
    "-q",
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder with a module that leaves the file ``ran`` when it is imported."""
    (tmp_path / "planted.py").write_text(PLANTED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("planted", None)


@pytest.fixture
def started(here: Path) -> Path:
    """A run that this user started, whose module is not imported any more."""
    assert run("train", IRIS, MODEL, *SETTINGS, "name=mine") == 0
    forget(here)
    return here / "runs" / "mine"


def forget(folder: Path) -> None:
    """Make the next import of the module leave its mark again."""
    (folder / "ran").unlink()
    del sys.modules["planted"]


@pytest.mark.parametrize(
    "command", [("report",), ("train", "--resume"), ("train", "epochs.count=2", "--resume")]
)
def test_code_of_a_run_folder_is_refused_by_name_and_not_run(
    command: tuple[str, ...], started: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*command, started) == 2
    error = one_line(capsys.readouterr().err)
    assert str(started / "config.yaml") in error
    assert "model.path: planted:net" in error
    assert "--trust-code" in error
    assert not (here / "ran").exists()
    assert run(*command, started, "--trust-code") == 0
    assert (here / "ran").exists()


def test_every_import_path_is_named(here: Path) -> None:
    (here / "run").mkdir()
    metrics = [{"name": "own", "path": "planted:Metric"}, "accuracy"]
    parts = {
        name: {"path": f"planted:{name}"} for name in ("data", "model", "loss", "scheduler")
    }
    training = {"optimizer": {"path": "planted:optimizer"}}
    tree = {
        "name": "run",
        **parts,
        "training": training,
        "metrics": metrics,
        "unknown": [[{"path": "planted:later"}]],
    }
    (here / "run" / "config.yaml").write_text(str(tree))
    with Refused("names_code", raises=UntrustedCodeError) as refused:
        load_config(here / "run" / "config.yaml", trust_code=False)
    keys = [
        *(f"{name}.path: planted:{name}" for name in parts),
        "training.optimizer.path: planted:optimizer",
    ]
    for named in (
        *keys,
        "metrics.0.path: planted:Metric",
        "unknown.0.0.path: planted:later",
    ):
        assert named in refused.value.fields["names"]
    assert not (here / "ran").exists()


def test_a_config_that_the_user_names_is_trusted_wherever_it_is(
    started: Path, here: Path
) -> None:
    assert run("train", started / "config.yaml", "--out", "again", "-q") == 0
    assert (here / "ran").exists()


def test_a_run_without_code_needs_no_word(here: Path) -> None:
    assert run("train", IRIS, *SETTINGS, "name=plain") == 0
    assert run("report", "runs/plain") == 0


def test_select_runs_no_code(started: Path, here: Path) -> None:
    shutil.copytree(started, here / "runs" / "second")
    config = here / "runs" / "second" / "config.yaml"
    config.write_text(config.read_text().replace("seed: 1", "seed: 2"))
    assert run("select", started) == 0
    assert run("select", here / "runs") == 0
    assert run("select", started, "--by", "accuracy", "--json") == 0
    assert run("report", here / "runs", "--out", "seeds.html") == 0
    assert not (here / "ran").exists()


def plant_in_saved_state(folder: Path) -> None:
    run_in_folder(toy_config(epochs={"count": 1}), toy_data(), folder)
    saved = torch.load(folder / FILE)
    torch.save({**saved, "config": planted(saved["config"])}, folder / FILE)


def plant_in_config(folder: Path) -> None:
    run_in_folder(toy_config(epochs={"count": 1}), toy_data(), folder)
    (folder / FILE).unlink()
    (folder / "config.yaml").write_text(planted((folder / "config.yaml").read_text()))


def planted(config: str) -> str:
    assert config.count("path: null\n  hidden: 8") == 1
    return config.replace("name: mlp\n  path: null\n  hidden: 8", "path: planted:net")


@pytest.mark.parametrize("plant", [plant_in_saved_state, plant_in_config])
def test_code_in_what_a_resumed_run_left_is_compared_and_not_run(
    plant: Callable[[Path], None], here: Path
) -> None:
    plant(here / "run")
    with Refused("same_config", raises=ConfigError) as refused:
        run_in_folder(
            toy_config(epochs={"count": 2}), toy_data(), here / "run", resume=True
        )
    assert "model.path" in refused.value.fields["keys"]
    assert not (here / "ran").exists()


def test_an_unfit_saved_config_with_the_same_code_still_differs(here: Path) -> None:
    config = toy_config(model={"path": "planted:net", "bias": True})
    assert (
        check_resumable(dump_config(config), toy_config(model={"path": "planted:net"}))
        is False
    )
    with Refused("same_config", raises=ConfigError, keys="model.bias"):
        check_resumable(
            dump_config(config), toy_config(model={"path": "planted:net", "bias": False})
        )
