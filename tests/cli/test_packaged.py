"""Run configs of the package by name, and files by their path."""

from pathlib import Path

import pytest

from mpcs_torch.io.packaged import packaged_names
from mpcs_torch.paper.published_values import EXPERIMENTS
from tests.cli.shell import one_line, run
from tests.cli.test_cli import IRIS


def test_a_name_is_a_config_of_the_package_and_a_path_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("exp01").write_text("not a config")
    assert run("train", "exp01", "epochs.count=1") == 0
    Path("exp02.yaml").write_text(IRIS.read_text())
    assert run("train", "exp02.yaml", "epochs.count=1", "name=mine") == 0
    assert "iris" in (tmp_path / "runs" / "mine" / "config.yaml").read_text()
    assert (
        run("train", "./exp01", "epochs.count=1", "name=file") == 2
    )  # which is not a config


def test_a_name_cannot_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("train", "\x1b[31m.yaml") == 2
    assert r"\x1b[31m.yaml: no such file" in one_line(capsys.readouterr().err)


def test_all_configs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("train", "--list") == 0
    listed = [
        line.split("|")[1].strip() for line in capsys.readouterr().out.splitlines()[2:]
    ]
    assert listed == packaged_names("experiments")
    assert set(EXPERIMENTS) <= set(listed)
