"""One law for every path that the package takes: ``~`` is expanded, and an address such as ``s3://bucket`` is refused.

A door is a public function with an argument of the type ``str | Path``, or an argument or option of the command line.
"""

import ast
import os
import re
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
import typer

from mpcs_torch import ConcernSpec, load_concern, load_concern_range
from mpcs_torch.calibration import TemperatureScaling
from mpcs_torch.cli.app import VERBS, VerbGroup
from mpcs_torch.concern import save_concern
from mpcs_torch.errors import ArgumentsError, InvalidValueError, Rule
from mpcs_torch.evaluation.calibration_files import (
    SavedCalibration,
    load_calibration,
    load_priors,
    save_calibration,
)
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.evaluation.files.trials import Trials, TrialTable, read_trials
from mpcs_torch.evaluation.files.write import write_trials
from mpcs_torch.functional.inputs.groups import Groups
from mpcs_torch.integrations.checkpoints import CheckpointCallback, make_selector
from mpcs_torch.io.local_paths import local_path
from mpcs_torch.learning import CheckpointSelector, DecisionRule, SelectionRule
from mpcs_torch.monitoring.watch import Settings, Watch, watch_logs
from mpcs_torch.trainer.config.load import load_config
from mpcs_torch.trainer.config.sections import ConfigError, DataConfig
from mpcs_torch.trainer.folder import run_in_folder, sweep
from mpcs_torch.trainer.result import open_trained, read_records, read_result
from tests.cli.shell import one_line, run
from tests.processes.in_this_process import in_this_process
from tests.refused import Refused
from tests.trainer.toy import toy_config, toy_data

PACKAGE = Path(__file__).parents[1] / "mpcs_torch"
CONCERN = ConcernSpec(["good", "bad"], refer=0.3)
RULE = SelectionRule("mpcs", {"mpcs": "min"})
WATCH = Watch(Settings("", ["any <= 0.1"]), CONCERN)
SHORT = toy_config(epochs={"count": 1}, score={})
CALIBRATION = SavedCalibration("temperature", TemperatureScaling(), ("good", "bad"), True)
PAIRS = {name: Groups(["a", "b"], torch.tensor([0, 1])) for name in ("enrollment", "test")}
TRIALS = TrialTable(
    Trials(torch.tensor([0.5, 0.2]), torch.tensor([True, False])), None, PAIRS
)


def here(name: str) -> Path:
    """Return a path beside the home folder of these tests."""
    return Path(os.environ["HOME"]).parent / name


def finished_run() -> Path:
    """Return the folder of a finished run whose data set is not there."""
    run_in_folder(
        toy_config(data={"name": "mnist"}, epochs={"count": 1}), toy_data(), here("run")
    )
    return here("run")


def watch(state: str | Path, log: str | Path) -> object:
    return watch_logs(state, [log], lambda: WATCH, ReadOptions(), str, lambda rows: None)


LOCAL = str(Rule("local_folder"))
DOORS: dict[str, Callable[[Any], object]] = {
    "load_concern(path)": load_concern,
    "load_concern_range(paths)": load_concern_range,
    "save_concern(path)": lambda path: save_concern(CONCERN, path),
    "save(path) of DecisionRule": DecisionRule(CONCERN, calibration=None).save,
    "load(path) of DecisionRule": DecisionRule.load,
    "save_calibration(path)": lambda path: save_calibration(CALIBRATION, path),
    "load_calibration(path)": load_calibration,
    "load_priors(path)": lambda path: load_priors(path, ["good", "bad"]),
    "open_table(path)": open_table,
    "__init__(path) of Predictions": Predictions,
    "read_trials(path)": lambda path: read_trials(path, ReadOptions(), lambda rows: None),
    "write_trials(path)": lambda path: write_trials(path, TRIALS, here("trials.txt")),
    "write_trials(trials)": lambda path: write_trials(here("scores.txt"), TRIALS, path),
    "save(path) of Watch": WATCH.save,
    "load(path) of Watch": lambda path: Watch.load(path, CONCERN),
    "read(path) of Watch": lambda path: WATCH.read(path, ReadOptions(), str),
    "watch_logs(state)": lambda path: watch(path, here("log.csv")),
    "watch_logs(logs)": lambda path: watch(here("state.json"), path),
    "load_config(path)": load_config,
    "load(root) of DataConfig": lambda root: DataConfig(name="mnist").load(root),
    "run_in_folder(folder)": lambda folder: run_in_folder(SHORT, toy_data(), folder),
    "sweep(data_root)": lambda root: list(
        sweep([toy_config(data={"name": "mnist"})], root, here("runs"))
    ),
    "sweep(out)": lambda out: list(sweep([SHORT], here("data"), out)),
    "read_records(path)": read_records,
    "read_result(folder)": read_result,
    "open_trained(folder)": lambda folder: open_trained(folder, toy_data()),
    "__init__(folder) of CheckpointSelector": lambda folder: CheckpointSelector(
        folder, RULE
    ),
    "open(folder) of CheckpointSelector": CheckpointSelector.open,
    "renewed(folder) of CheckpointSelector": lambda folder: CheckpointSelector(
        here("first"), RULE
    ).renewed(folder),
    "make_selector(selector_or_folder)": lambda folder: make_selector(folder, RULE, {}),
    "__init__(selector_or_folder) of CheckpointCallback": lambda folder: CheckpointCallback(
        folder, RULE
    ),
    "open_trained(data)": lambda root: open_trained(finished_run(), root),
}
"""A call of each door of Python, by the name and the argument of the function."""
DOORS["__init__(selector_or_folder) of SelectCheckpoint"] = DOORS[
    "__init__(selector_or_folder) of CheckpointCallback"
]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a home folder, and a working folder beside it; both are empty."""
    monkeypatch.setattr("mpcs_torch.trainer.folder.run_in_processes", in_this_process)
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))  # on Windows
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


def doors_in_source() -> Iterator[str]:
    """Yield each argument of the type ``str | Path`` of public functions, in the form of `DOORS`."""
    for file in PACKAGE.rglob("*.py"):
        if file.relative_to(PACKAGE).parts[0] in ("io", "cli"):
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        for scope in (tree, *classes):
            owner = f" of {scope.name}" if isinstance(scope, ast.ClassDef) else ""
            for function in scope.body:
                if not isinstance(function, ast.FunctionDef) or re.match(
                    "_[^_]", function.name
                ):
                    continue
                arguments = [
                    *function.args.args,
                    *function.args.kwonlyargs,
                    *filter(None, [function.args.vararg]),
                ]
                for argument in arguments:
                    if "str | Path" in ast.unparse(argument.annotation or ast.Constant("")):
                        yield f"{function.name}({argument.arg}){owner}"


def test_every_door_is_tested() -> None:
    assert set(doors_in_source()) == set(DOORS)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "address", ["s3://bucket/place", Path("s3://bucket/place"), "file:///bucket/place"]
)
def test_doors_refuse_addresses(door: str, address: str | Path, home: Path) -> None:
    with pytest.raises(InvalidValueError) as refused:
        DOORS[door](address)
    assert (refused.value.code, refused.value.value) == ("local_folder", str(address))
    assert refused.value.argument.isidentifier()
    assert [*Path.cwd().iterdir(), *home.iterdir()] == []


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", [str, Path])
def test_doors_expand_the_home_folder(door: str, kind: type, home: Path) -> None:
    """The file that the door reads or writes is in the home folder: it is made there, or named by the error."""
    problem = ""
    try:
        DOORS[door](kind("~/place.csv"))
    except Exception as error:
        problem = str(error)
    assert (home / "place.csv").exists() or str(home / "place.csv") in problem
    assert not any(path.name == "~" for path in Path.cwd().iterdir())


def parsers_of_verbs() -> Iterator[tuple[str, Callable[[str], Path], bool]]:
    """Yield the name and the parser of each path of the command line, and whether it is the path of a folder."""
    for verb in VERBS:
        command = VerbGroup().get_command(None, verb)
        for each in getattr(command, "commands", {}).values() or [command]:
            for parameter in signature(each.callback).parameters.values():
                if "Path" in str(parameter.annotation):
                    info = get_args(parameter.annotation)[1]
                    yield (
                        f"{verb} {each.name} {parameter.name}",
                        info.parser,
                        info.exists and not info.file_okay,
                    )


PARSERS = {name: (parser, is_folder) for name, parser, is_folder in parsers_of_verbs()}


def test_the_command_line_has_paths() -> None:
    assert {
        "score score predictions",
        "train train resume",
        "concern check file",
        "data list data_root",
    } <= {*PARSERS}
    assert len(PARSERS) > 50


@pytest.mark.parametrize("name", PARSERS)
def test_paths_of_the_command_line_are_local(name: str, home: Path) -> None:
    parser, is_folder = PARSERS[name]
    place = home / "place.csv"
    if is_folder:
        place.mkdir()
    else:
        place.touch()
    assert parser("~/place.csv") == place
    for address in ("s3://bucket/place.csv", "s3:/bucket/place.csv", "file:///place.csv"):
        with pytest.raises(typer.BadParameter, match=LOCAL):
            parser(address)


@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "s3://bucket/p.csv"),
        ("train", "s3://bucket/config.yaml"),
        ("train", "digits", "--out", "gs://bucket/runs"),
        (
            "concern",
            "suggest",
            "s3://bucket/p.csv",
            "--from",
            "costs",
            "--out",
            "concern.yaml",
        ),
        ("concern", "check", "s3://bucket/concern.yaml"),
        (
            "decide",
            "fit",
            "p.csv",
            "--concern",
            "traffic-lights",
            "--out",
            "rule.pt",
            "--priors",
            "s3://bucket/p.json",
        ),
    ],
    ids=" ".join,
)
def test_commands_refuse_addresses(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("p.csv").touch()
    assert run(*arguments) == 2
    assert f"{LOCAL}, but got '" in one_line(capsys.readouterr().err)
    assert [path.name for path in Path.cwd().iterdir()] == ["p.csv"]


def test_commands_expand_the_home_folder(home: Path) -> None:
    (home / "p.csv").write_text("target,a,b\na,0.9,0.1\nb,0.2,0.8\n")
    (home / "priors.json").write_text("{}")
    assert run("score", "~/p.csv", "--html", "~/report.html", "-q") == 0
    assert (home / "report.html").is_file()
    save_concern(ConcernSpec(["a", "b"], refer=0.5), "~/concern.yaml")
    assert run("concern", "check", "~/concern.yaml") == 0
    assert run("concern", "suggest", "a,b", "--from", "order", "--out", "~/draft.yaml") == 0
    assert load_concern("~/draft.yaml").classes == ("a", "b")


def test_the_data_root_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPCS_DATA_ROOT", "s3://bucket/data")
    assert run("data", "list") == 2
    assert f"{LOCAL}, but got 's3://bucket/data'" in one_line(capsys.readouterr().err)


def test_a_config_names_its_concern_in_the_home_folder(home: Path, tmp_path: Path) -> None:
    save_concern(
        ConcernSpec(["a", "b"], factor=0.25, releases=[["a", "b"]]), home / "concern.yaml"
    )
    config = tmp_path / "config.yaml"
    text = "name: mine\ndata: {name: iris}\nmodel: {name: mlp}\nscore: {concern: CONCERN}\n"
    config.write_text(text.replace("CONCERN", "~/concern.yaml"))
    assert load_config(config).score.concern.factor == 0.25
    config.write_text(text.replace("CONCERN", "s3://bucket/concern.yaml"))
    with pytest.raises(ConfigError, match=rf"score\.concern: concern {LOCAL}"):
        load_config(config)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("~", "HOME"),
        ("~/run", "HOME/run"),
        (Path("~/run"), "HOME/run"),
        ("./~/run", "WORK/~/run"),
        ("./s3:/run", "WORK/s3:/run"),
        ("runs/~/s3:/x", "runs/~/s3:/x"),
        ("C:/runs", "C:/runs"),
        ("C:\\runs", "C:\\runs"),
        ("package.module:name", "package.module:name"),
    ],
)
def test_local_paths_stay_themselves_however_often_they_are_taken(
    path: str | Path, expected: str, home: Path
) -> None:
    local = local_path(path, "path")
    assert str(local) == expected.replace("HOME", str(home)).replace(
        "WORK", str(Path.cwd())
    )
    assert local_path(local, "path") == local


def test_unknown_users_and_other_values_are_refused() -> None:
    with Refused("known_user", "folder", "~nobody-at-all/run"):
        local_path("~nobody-at-all/run", "folder")
    with Refused("instance", "folder", 3, raises=ArgumentsError):
        local_path(3, "folder")  # type: ignore[arg-type]


def test_paths_of_other_file_systems_are_refused_without_a_download() -> None:
    class CloudPath:
        def __str__(self) -> str:
            return "gs://bucket/run"

        def __fspath__(self) -> str:
            raise AssertionError("downloads the file")

    with Refused("local_folder", "path", "gs://bucket/run"):
        local_path(CloudPath(), "path")
