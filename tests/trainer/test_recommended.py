"""A config with the recommended recipe: all its runs, the choice, and going on after a cut."""

import json
from pathlib import Path

import pytest

from mpcs_torch.cli.app import VERBS
from mpcs_torch.errors import ExitStatus
from mpcs_torch.learning import DecisionRule
from mpcs_torch.trainer.config.load_with_suggestions import load_packaged_config
from mpcs_torch.trainer.config.sections import ConfigError
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.recommended import CHOICE, RULE, recipe_runs
from tests.cli.test_cli import run
from tests.learning.test_recommended import LIGHTS

SETTINGS = ("digits", "recommended={members: 2}", "selector=null", "scheduler=null", "epochs.count=2", "name=mine")


def test_it_trains_every_loss_and_goes_on_where_it_was_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "train" in VERBS
    folder, train = tmp_path / "mine", run_in_folder
    begun: list[str] = []

    def cut(config: object, data: object, place: Path, *given: object, **others: object) -> object:
        begun.append(place.name)
        if len(begun) == 3:
            raise KeyboardInterrupt
        return train(config, data, place, *given, **others)  # type: ignore[arg-type]

    monkeypatch.setattr("mpcs_torch.trainer.folder.run_in_folder", cut)
    assert run("train", *SETTINGS, "--out", tmp_path, "-q") == ExitStatus.INTERRUPTED
    assert f"--resume {folder}" in capsys.readouterr().err
    assert run("train", "--resume", folder, "-q") == 0
    assert begun == ["plain-1", "plain-2", "margin-1", "margin-1", "margin-2"]
    told = json.loads((folder / CHOICE).read_text())
    assert capsys.readouterr().out.startswith(f"{told['loss']}, decided by cost")
    assert [step["name"] for step in told["steps"]][-1] == "+ 2 models"
    assert DecisionRule.load(folder / RULE).is_fitted
    assert run("train", *SETTINGS, "--out", tmp_path, "-q") == 2
    assert "already has a run" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:E4", "ignore::mpcs_torch.calibration.CalibrationWarning")
def test_limits_come_from_the_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limited = "recommended={refer: [dangerous <= 0.2]}"
    assert run("train", SETTINGS[0], limited, *SETTINGS[2:], "--out", tmp_path, "-q", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["steps"][-1]["name"] == "+ referrals that keep the limits"
    assert DecisionRule.load(tmp_path / "mine" / RULE).limits[0].at_most == 0.2


def test_the_runs_have_the_losses_of_the_recipe() -> None:
    recipe = "recommended={members: 2, label_smoothing: 0.1}"
    runs = recipe_runs(load_packaged_config("experiments/digits", [recipe, "selector=null", "seed=5"]))
    assert {name: [(own.name, own.seed) for own in of_loss] for name, of_loss in runs.items()} == {
        "plain": [("plain-1", 5), ("plain-2", 6)],
        "margin": [("margin-1", 5), ("margin-2", 6)],
    }
    assert [of_loss[0].training.margin_ramp for of_loss in runs.values()] == [None, [0.1, 0.6]]
    losses = [own.loss.make(LIGHTS) for of_loss in runs.values() for own in of_loss]
    assert [loss.label_smoothing for loss in losses] == [0.1] * 4
    assert [loss.full_margin for loss in losses] == [0, 0, 4, 4]
    assert all(own.recommended is None and own.selector is not None for of_loss in runs.values() for own in of_loss)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["recommended={}", "epochs.samples=train"], "must have validation samples to choose by"),
        (["recommended={max_accuracy_loss: 2}"], "max_accuracy_loss: Input should be less than or equal to 1"),
        (["recommended={refer: [most]}"], "recommended.refer"),
    ],
)
def test_what_is_wrong_is_named(overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_packaged_config("experiments/digits", overrides)
