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
from tests.cli.shell import Shell
from tests.refused import Refused
from tests.trainer.toy import toy_config, toy_data

OWN = "import torch\ndef net(shape, classes, *, bias: bool = True):\n    return torch.nn.Linear(shape[0], classes)\n"
PLANTED = f"import pathlib\npathlib.Path('ran').touch()\n{OWN}"
MARK = Path("ran")
TRAIN = (
    "train exp01 score={} metrics=[accuracy] epochs.count=1 'selector={by: accuracy}' -q"
)


@pytest.fixture(autouse=True)
def _planted(mpcs: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Write a module to the current folder that leaves the file ``ran`` when it is imported."""
    Path("planted.py").write_text(PLANTED)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("planted", None)


@pytest.fixture
def started(mpcs: Shell) -> Path:
    """A run that this user started, whose module is not imported any more."""
    mpcs(f"{TRAIN} 'model={{path: \"planted:net\"}}' name=mine")
    MARK.unlink()
    del sys.modules["planted"]  # the next import leaves the mark again
    return Path("runs/mine")


@pytest.mark.parametrize(
    "command", ["report", "train --resume", "train epochs.count=2 --resume"]
)
def test_code_of_a_run_folder_is_refused_by_name_and_not_run(
    command: str, started: Path, mpcs: Shell
) -> None:
    refused = mpcs.refusal(f"{command} {started}")
    for part in (
        str(started / "config.yaml"),
        "model.path: planted:net",
        "--trust-code",
    ):
        assert part in refused
    assert not MARK.exists()
    mpcs(f"{command} {started} --trust-code")
    assert MARK.exists()


def test_every_import_path_is_named() -> None:
    parts = ("data", "model", "loss", "scheduler")
    tree = {
        "name": "run",
        **{part: {"path": f"planted:{part}"} for part in parts},
        "training": {"optimizer": {"path": "planted:optimizer"}},
        "metrics": [{"name": "own", "path": "planted:Metric"}, "accuracy"],
        "unknown": [[{"path": "planted:later"}]],
    }
    Path("config.yaml").write_text(str(tree))
    with Refused("names_code", raises=UntrustedCodeError) as refused:
        load_config(Path("config.yaml"), trust_code=False)
    for named in (
        *(f"{part}.path: planted:{part}" for part in parts),
        "training.optimizer.path: planted:optimizer",
        "metrics.0.path: planted:Metric",
        "unknown.0.0.path: planted:later",
    ):
        assert named in refused.value.fields["names"]
    assert not MARK.exists()


def test_a_config_that_the_user_names_is_trusted_wherever_it_is(
    started: Path, mpcs: Shell
) -> None:
    mpcs(f"train {started}/config.yaml --out again -q")
    assert MARK.exists()


def test_a_run_without_code_needs_no_word(mpcs: Shell) -> None:
    mpcs(f"{TRAIN} name=plain")
    mpcs("report runs/plain")


def test_select_runs_no_code(started: Path, mpcs: Shell) -> None:
    second = shutil.copytree(started, Path("runs/second")) / "config.yaml"
    second.write_text(second.read_text().replace("seed: 1", "seed: 2"))
    for command in (
        f"select {started}",
        "select runs",
        f"select {started} --by accuracy --json",
        "report runs --out seeds.html",
    ):
        mpcs(command)
    assert not MARK.exists()


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
    plant: Callable[[Path], None],
) -> None:
    folder = Path("run")
    plant(folder)
    with Refused("same_config", raises=ConfigError) as refused:
        run_in_folder(toy_config(epochs={"count": 2}), toy_data(), folder, resume=True)
    assert "model.path" in refused.value.fields["keys"]
    assert not MARK.exists()


def test_an_unfit_saved_config_with_the_same_code_still_differs() -> None:
    saved = dump_config(toy_config(model={"path": "planted:net", "bias": True}))
    assert check_resumable(saved, toy_config(model={"path": "planted:net"})) is False
    with Refused("same_config", raises=ConfigError, keys="model.bias"):
        check_resumable(saved, toy_config(model={"path": "planted:net", "bias": False}))
