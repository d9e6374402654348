"""Code that the config of a run folder names is run for the user who started the run, or at the user's word."""

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from mpcs_torch.trainer.config.load_with_suggestions import dump_config, load_config
from mpcs_torch.trainer.config.sections import ConfigError
from mpcs_torch.trainer.config.trusted_code import UntrustedCodeError
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.recommended import recipe_runs
from mpcs_torch.trainer.result import open_trained
from mpcs_torch.trainer.resume import FILE, check_resumable
from tests.cli.test_cli import IRIS, one_line, run
from tests.trainer.toy import toy_config, toy_data

OWN = "import torch\ndef net(shape, classes, *, bias: bool = True):\n    return torch.nn.Linear(shape[0], classes)\n"
PLANTED = f"import pathlib\npathlib.Path('ran').touch()\n{OWN}"
MODEL = "model={path: 'planted:net'}"
SETTINGS = ("score={}", "metrics=[accuracy]", "epochs={count: 1}", "selector={by: accuracy}", "-q")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder with a state folder, and with a module that leaves the file ``ran`` when it is imported."""
    (tmp_path / "planted.py").write_text(PLANTED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
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


def untrusted(folder: Path) -> dict[str, str]:
    """Return the code that is named by a run folder and not trusted."""
    with pytest.raises(UntrustedCodeError) as caught:
        open_trained(folder, Path("data"), trust_code=False)
    assert caught.value.config == folder / "config.yaml"
    return dict(caught.value.code)


def test_a_run_that_the_user_started_is_resumed_and_reported_without_a_word(started: Path, here: Path) -> None:
    assert run("report", started) == 0
    forget(here)
    assert run("train", "--resume", started, "epochs.count=2") == 0
    forget(here)
    assert run("report", started, "--overwrite") == 0, "the changed config is remembered, too"


@pytest.mark.parametrize("command", [("report",), ("train", "--resume"), ("train", "epochs.count=2", "--resume")])
def test_the_run_of_another_user_is_refused_by_name_and_runs_no_code(
    command: tuple[str, ...], started: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(here / "state")
    assert run(*command, started) == 2
    error = one_line(capsys.readouterr().err)
    assert str(started / "config.yaml") in error
    assert "model.path: planted:net" in error
    assert "--trust-code" in error
    assert not (here / "ran").exists()
    assert run(*command, started, "--trust-code") == 0
    assert (here / "ran").exists()


def test_a_word_for_a_report_is_not_remembered_but_a_resumed_run_is_ones_own(started: Path, here: Path) -> None:
    shutil.rmtree(here / "state")
    assert run("report", started, "--trust-code") == 0
    forget(here)
    assert run("report", started, "--overwrite") == 2
    assert run("train", "--resume", started, "epochs.count=2", "--trust-code") == 0
    forget(here)
    assert run("report", started, "--overwrite") == 0


@pytest.mark.parametrize("change", ["moved", "edited", "linked"])
def test_the_place_and_the_content_of_a_config_count(change: str, started: Path, here: Path) -> None:
    other = here / "other"
    if change == "moved":
        started.rename(other)
    elif change == "linked":
        other.symlink_to(started)
    else:
        other = started
        text = (started / "config.yaml").read_text()
        (started / "config.yaml").write_text(text.replace("bias: true", "bias: false"))
    if change == "linked":
        assert run("report", other) == 0, "a link leads to the same place"
    else:
        assert untrusted(other) == {"model.path": "planted:net"}
    assert (here / "ran").exists() == (change == "linked")


def test_every_import_path_is_named(here: Path) -> None:
    (here / "run").mkdir()
    metrics = [{"name": "own", "path": "planted:Metric"}, "accuracy"]
    parts = {name: {"path": f"planted:{name}"} for name in ("data", "model", "loss", "scheduler")}
    training = {"optimizer": {"path": "planted:optimizer"}}
    tree = {"name": "run", **parts, "training": training, "metrics": metrics, "unknown": [[{"path": "planted:later"}]]}
    (here / "run" / "config.yaml").write_text(str(tree))
    with pytest.raises(UntrustedCodeError) as caught:
        load_config(here / "run" / "config.yaml", trust_code=False)
    assert caught.value.code == {
        **{f"{name}.path": f"planted:{name}" for name in parts},
        "training.optimizer.path": "planted:optimizer",
        "metrics.0.path": "planted:Metric",
        "unknown.0.0.path": "planted:later",
    }


def test_a_config_that_the_user_names_is_trusted_wherever_it_is(started: Path, here: Path) -> None:
    shutil.rmtree(here / "state")
    assert run("train", started / "config.yaml", "--out", "again", "-q") == 0
    assert (here / "ran").exists()


def test_a_run_without_code_needs_no_word_and_leaves_nothing_in_the_state_folder(here: Path) -> None:
    assert run("train", IRIS, *SETTINGS, "name=plain") == 0
    assert run("report", "runs/plain") == 0
    assert not (here / "state").exists()


def test_select_runs_no_code(started: Path, here: Path) -> None:
    shutil.rmtree(here / "state")
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
def test_code_in_what_a_resumed_run_left_is_compared_and_not_run(plant: Callable[[Path], None], here: Path) -> None:
    plant(here / "run")
    with pytest.raises(ConfigError, match=r"differs from that of the saved run in model\.path"):
        run_in_folder(toy_config(epochs={"count": 2}), toy_data(), here / "run", resume=True)
    assert not (here / "ran").exists()


def test_code_in_the_folder_of_a_run_of_the_recipe_is_compared_and_not_run(here: Path) -> None:
    recipe = ("data={name: iris, validation_fraction: 0.3}", "recommended={}", "epochs={count: 1, samples: validation}")
    settings = ("score={}", "metrics=[accuracy]", "name=recipe", "-q")
    config = load_config(IRIS, [*recipe, *settings[:-1]])
    first = recipe_runs(config)["plain"][0]
    folder = here / "runs" / "recipe" / first.name
    folder.mkdir(parents=True)
    plain = dump_config(first)
    (folder / "config.yaml").write_text(plain.replace("name: mlp\n  path: null\n  hidden: 32", "path: planted:net"))
    (folder / "result.json").write_text("{}")
    assert run("train", IRIS, *recipe, *settings) == 2
    assert not (here / "ran").exists()


def test_an_unfit_saved_config_with_the_same_code_still_differs(here: Path) -> None:
    config = toy_config(model={"path": "planted:net", "bias": True})
    assert check_resumable(dump_config(config), toy_config(model={"path": "planted:net"})) is False
    with pytest.raises(ConfigError, match=r"differs from that of the saved run in model\.bias"):
        check_resumable(dump_config(config), toy_config(model={"path": "planted:net", "bias": False}))


def test_a_relative_state_folder_is_ignored_because_it_may_be_an_attackers(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("HOME", str(here / "home"))
    assert run("train", IRIS, MODEL, *SETTINGS, "name=mine") == 0
    assert not (here / "state").exists()
    marks = here / "home" / ".local" / "state" / "mpcs_torch" / "started-runs"
    assert [mark.read_text() for mark in marks.iterdir()] == [f"{here / 'runs' / 'mine' / 'config.yaml'}\n"]
    assert marks.stat().st_mode & 0o777 == 0o700


def test_a_state_folder_that_cannot_be_written_is_said_and_the_run_goes_on(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(here / "file"))
    with pytest.warns(UserWarning, match="--trust-code"):
        assert run("train", IRIS, MODEL, *SETTINGS, "name=mine") == 0
    forget(here)
    assert run("report", "runs/mine") == 2
