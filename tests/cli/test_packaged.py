"""Run configs of the package by name, and files by their path."""

from pathlib import Path

from mpcs_torch.io.packaged import packaged_names
from mpcs_torch.paper.published_values import EXPERIMENTS
from tests.cli.printed import printed_tables
from tests.cli.shell import Shell
from tests.cli.test_cli import IRIS


def test_a_name_is_a_config_of_the_package_and_a_path_is_a_file(mpcs: Shell) -> None:
    Path("exp01").write_text("not a config")
    mpcs("train exp01 epochs.count=1")
    Path("exp02.yaml").write_text(IRIS.read_text())
    mpcs("train exp02.yaml epochs.count=1 name=mine")
    assert "iris" in Path("runs/mine/config.yaml").read_text()
    mpcs.refusal("train ./exp01 epochs.count=1 name=file")


def test_a_name_cannot_control_the_terminal(mpcs: Shell) -> None:
    refused = mpcs.refusal("train '\x1b[31m.yaml'")
    assert r"\x1b[31m.yaml: no such file" in refused


def test_all_configs_are_listed(mpcs: Shell) -> None:
    [table] = printed_tables(mpcs("train --list").out)
    listed = [row[0] for row in table.rows]
    assert listed == packaged_names("experiments")
    assert set(EXPERIMENTS) <= set(listed)
