"""Configs: typed, closed, all errors at once."""

from pathlib import Path
from typing import Any

import pytest
import torch

from mpcs_torch.concern.files import FIELDS, load_concern
from mpcs_torch.errors import Rule
from mpcs_torch.functional.concern.mpcs import MetaPatternConcernScore
from mpcs_torch.trainer.config.load import dump_config, load_config
from mpcs_torch.trainer.config.parts import PartError
from mpcs_torch.trainer.config.sections import (
    ConcernConfig,
    ConfigError,
    DataConfig,
    ModelConfig,
    RunConfig,
)
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.loop import TrainingRun
from mpcs_torch.trainer.result import Record, read_records
from tests.refused import sentence
from tests.trainer.toy import toy_config, toy_data

CONFIGS = Path(__file__).parents[2] / "configs" / "experiments"
MINIMAL = "name: mine\ndata: {name: iris}\nmodel: {name: mlp}\n"


def write(folder: Path, text: str, name: str = "run.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_configs_are_named_after_their_files_and_make_a_round_trip(
    path: Path, tmp_path: Path
) -> None:
    config = load_config(path)
    assert config.name == path.stem
    assert load_config(write(tmp_path, dump_config(config))) == config


def test_overrides_are_yaml_by_dotted_key(tmp_path: Path) -> None:
    overrides = [
        "training.batch_size=7",
        "epochs.when=before",
        "score.concern.releases=[[0, 1]]",
    ]
    config = load_config(write(tmp_path, MINIMAL), overrides)
    assert config.training.batch_size == 7
    assert config.epochs.when == "before"
    assert config.score.concern.releases == [[0, 1]]


def test_a_concern_file_lies_relative_to_the_config(tmp_path: Path) -> None:
    (tmp_path / "concerns").mkdir()
    write(
        tmp_path / "concerns",
        "classes: [a, b, c]\nreleases: [[a, b]]\nfactor: 0.25\n",
        "mine.yaml",
    )
    config = load_config(
        write(tmp_path, MINIMAL + "score: {concern: concerns/mine.yaml}\n")
    )
    assert config.score.concern.spec(["a", "b", "c"]).released().nonzero().tolist() == [
        [0, 1]
    ]
    assert config.score.concern.factor == 0.25


ALL_KEYS = """
classes: [setosa, versicolor, virginica]
weights: [[0, 1, 5], [1, 0, 2], [3, 1, 0]]
dangerous: 3
refer: 0.5
answers: {versicolor or virginica: 0.3}
class_groups: {tall: [versicolor, 2]}
concession: 0.01
"""


def test_a_concern_file_of_the_other_commands_is_valid_in_a_config(tmp_path: Path) -> None:
    path = write(tmp_path, ALL_KEYS, "concern.yaml")
    config = load_config(write(tmp_path, MINIMAL + "score: {concern: concern.yaml}\n"))
    spec = config.score.concern.spec(load_concern(path).classes)
    assert spec == load_concern(path)
    assert (
        load_config(write(tmp_path, dump_config(config))).score.concern.spec(spec.classes)
        == spec
    )


def test_a_config_has_all_keys_of_a_concern_file() -> None:
    assert {*ConcernConfig.model_fields} == {*FIELDS}


def test_answers_and_groups_of_classes_do_not_change_the_training(tmp_path: Path) -> None:
    plain = {"weights": [[0, 1, 5], [1, 0, 2], [3, 1, 0]], "refer": 0.5}
    further = {
        **plain,
        "answers": {"red or yellow": 0.3},
        "class_groups": {"warm": ["red", "yellow"]},
    }
    records = list[list[Record]]()
    for number, concern in enumerate((plain, further)):
        config = toy_config(
            score={"concern": concern},
            epochs={"count": 3},
            metrics=["mpcs", "expected_concern"],
        )
        run_in_folder(config, toy_data(), tmp_path / str(number))
        records.append(read_records(tmp_path / str(number) / "records.csv"))
    assert records[0] == records[1]


@pytest.mark.parametrize(
    "key",
    ["concern", "concern.factor", "score.releases", "training.batchsize", "model.layers"],
)
def test_a_key_that_its_section_lacks_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match=r": Extra inputs are not permitted"):
        load_config(write(tmp_path, MINIMAL), [f"{key}=5"])


def test_all_errors_are_reported_together(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "name: a/b\ndata: {name: cifar}\nmodel: {name: mlp, hiden: 3}\nscore: {t: 1}\n",
    )
    with pytest.raises(ConfigError) as error:
        load_config(path)
    lines = str(error.value).splitlines()
    assert len(lines) == 4
    assert any(
        line.startswith(f"{path}:2: data: name must be one of iris, digits, breast_cancer")
        for line in lines
    )
    assert f"{path}:3: model.hiden: Extra inputs are not permitted" in lines
    assert f"{path}:4: score.t: Input should be greater than or equal to 2" in lines


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        ("[", [], "not valid YAML"),
        ("3", [], "must be a mapping with the keys name, seed, data"),
        (
            MINIMAL,
            ["training.batch_size"],
            "override 'training.batch_size': must read dotted.key=value",
        ),
        (MINIMAL, ["name.first=a"], "override 'name.first=a': name has a value, not keys"),
        (MINIMAL, ["seed=["], r"override 'seed=\[': not valid YAML"),
        (
            MINIMAL,
            ["seed=2020-13-45"],
            r"override 'seed=2020-13-45': not valid YAML: month must be in 1..12",
        ),
        (
            MINIMAL + "seed: 1\nseed: 2\n",
            [],
            r"run.yaml: not valid YAML: line 5, column 1: seed appears twice",
        ),
        (
            MINIMAL,
            ["training.batch_size=true"],
            r"training.batch_size.*: Input should be a valid integer",
        ),
        (
            MINIMAL,
            ["score.concern.releases=[[yes, no]]"],
            r"score.concern.releases.0.0.*: Input should be a valid",
        ),
        (MINIMAL, ["data.name=[iris]"], r"data: name must be one of iris, digits"),
        (MINIMAL, ["seed=99999999999999999999"], r"seed: Input should be less than"),
        (
            MINIMAL + "score: {concern: none.yaml}\n",
            [],
            "score.concern: cannot read .*none.yaml: No such file",
        ),
        (MINIMAL, ["model={hidden: 3}"], r"model: must have one of the keys name and path"),
        (
            MINIMAL,
            ["model={name: mlp, path: a:b}"],
            r"model: must have one of the keys name and path",
        ),
        (
            MINIMAL,
            ["model={path: no_such_module:Net}"],
            r"path must .*no_such_module:Net'.* No module named",
        ),
        (MINIMAL, ["model={path: 'math:cosinus'}"], r"path must .* attribute 'cosinus'"),
    ],
)
def test_broken_configs_are_refused(
    tmp_path: Path, text: str, overrides: list[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(write(tmp_path, text), overrides)


def test_a_broken_concern_file_shows_its_own_lines(tmp_path: Path) -> None:
    write(tmp_path, "classes: [a, b]\nreleases: [[a, d]]\n", "concern.yaml")
    with pytest.raises(
        ConfigError,
        match=r"score.concern: .*concern.yaml:2:16: releases\[0\]\[1\]: must be one of",
    ):
        load_config(write(tmp_path, MINIMAL + "score: {concern: concern.yaml}\n"))


def test_arguments_of_a_part_are_checked_and_filled_in(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, MINIMAL), ["model.name=lstm", "model.hidden=7"])
    assert config.model.model_dump() == {
        "name": "lstm",
        "path": None,
        "hidden": 7,
        "layers": 1,
    }
    with pytest.raises(ConfigError, match=r"model.hidden: Input should be greater than 0"):
        load_config(write(tmp_path, MINIMAL), ["model.hidden=0"])
    with pytest.raises(ConfigError, match=r"data.set: Field required"):
        load_config(write(tmp_path, MINIMAL), ["data.name=ucr"])


def test_numbers_without_a_dot_are_numbers(tmp_path: Path) -> None:
    assert (
        load_config(
            write(tmp_path, MINIMAL), ["training.learning_rate=1e-3"]
        ).training.learning_rate
        == 0.001
    )


def test_a_missing_config_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent.yaml: cannot be read: No such file"):
        load_config(tmp_path / "absent.yaml")


def test_configs_do_not_change() -> None:
    config = RunConfig.model_validate(
        {"name": "a", "data": {"name": "iris"}, "model": {"name": "mlp"}}
    )
    with pytest.raises(ValueError, match=r"frozen"):
        config.seed = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("score", "t"),
    [
        ({}, 200),
        ({"t": 50}, 50),
        ({"concession": 0.02}, 49),
        ({"concern": {"concession": 0.1}}, 9),
        ({"concern": {"concession": 0.1}, "concession": 0.02}, 49),
        ({"concern": {"concession": 0.1}, "t": 50}, 50),
    ],
)
def test_a_run_has_the_intervals_that_t_or_a_concession_asks_for(
    score: dict[str, Any], t: int
) -> None:
    run = TrainingRun(toy_config(score=score), toy_data())
    assert run.config.score.t == t
    assert TrainingRun(run.config, toy_data()).config == run.config, (
        "a resolved config repeats the run"
    )
    mpcs = next(made for entry, made in run.metrics if entry.name == "mpcs")
    assert isinstance(mpcs, MetaPatternConcernScore)
    assert mpcs.t == t


def test_t_and_a_concession_exclude_each_other() -> None:
    with pytest.raises(
        ConfigError, match=sentence("not_with", "concession", 0.02, other="t")
    ):
        TrainingRun(toy_config(score={"t": 50, "concession": 0.02}), toy_data())


def test_a_concern_of_a_run_says_which_errors_are_dangerous() -> None:
    weights = [[0.0, 10.0, 50.0], [10.0, 0.0, 10.0], [50.0, 1.0, 0.0]]
    config = toy_config(
        score={"concern": {"weights": weights, "dangerous": 10, "refer": 2.0}}
    )
    spec = config.score.concern.spec(["a", "b", "c"])
    assert spec.dangerous_pairs().int().tolist() == [[0, 1, 1], [1, 0, 1], [1, 0, 0]]
    assert spec.costs()[:, 3].tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "training.learning_rate=.inf",
            "training.learning_rate: Input should be a finite number",
        ),
        (
            "training.learning_rate=1e999999",
            "training.learning_rate: Input should be a finite number",
        ),
        (
            "selector={by: mpcs, at_most: {dangerous: .nan}}",
            "selector.at_most.dangerous: Input should be a finite number",
        ),
        (
            "loss={name: softmax_margin, margin: .inf}",
            "loss.margin: Input should be a finite number",
        ),
        (
            "selector={top_k: 1000000000000000000000000}",
            "selector.top_k: Input should be less than 2147483648",
        ),
        (
            "data={name: breast_cancer, unused_classes: 1000000000}",
            "unused_classes: Input should be less than",
        ),
        ("seed=*a", "override 'seed=\\*a': not valid YAML: .*aliases such as"),
        ("seed=" + "[" * 1000, "nested more than 50 deep"),
        ("a." * 1000 + "b=1", "a: Extra inputs are not permitted"),
        (
            "seed=\x1b[31m",
            r"override 'seed=\\x1b\[31m': not valid YAML: line 1, column 1: the character U\+001B",
        ),
        ("model={path: '..:x'}", f"model: {sentence('import_path', 'path', '..:x')}"),
        ("model={path: [a]}", f"model: {sentence('import_path', 'path', ['a'])}"),
        ("model={path: 'math:pi'}", f"model: path {Rule('standard_library')}"),
        (
            "data={path: 'shutil:rmtree'}",
            f"data: {sentence('standard_library', 'path', 'shutil:rmtree', owner='shutil')}",
        ),
        (
            "data={path: 'os:remove'}",
            f"data: path {Rule('standard_library')}, but got 'os:remove': .* (posix|nt)",
        ),
        (
            "model={path: 'torch:relu'}",
            "model: must name a function or class of the shape of an input and the number",
        ),
        (
            "model={path: 'tests.trainer.toy:toy_data'}",
            "model: must name .* too many positional arguments",
        ),
        ("metrics=[{name: [a]}]", "metrics.0.name: Input should be a valid string"),
        (
            "metrics=[{name: a, metric: [b]}]",
            "metrics.0.metric: Input should be a valid string",
        ),
        ("metrics=[{name: mpcs, 3: 4}]", "metrics.0.3: Keys should be strings"),
        (
            "metrics=[{name: a, path: 'tests.trainer.toy:toy_data'}]",
            "path must name a torchmetrics Metric class",
        ),
        ("data.name=" + "x" * 10_000, "data: name must be one of iris, .* but is 'xxx"),
        (f"{{{'x' * 10_000}}}=1", r"^(?s:.){0,400}$"),
        (
            "metrics=[" + "mpcs, " * 5000 + "]",
            "metrics: must have at least one metric, with different names",
        ),
    ],
    ids=range(24),
)
def test_hostile_settings_are_refused_briefly(
    tmp_path: Path, override: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        load_config(write(tmp_path, MINIMAL), [override])
    # One of the errors lists the names of all metrics.
    assert len(str(error.value)) < 1200 + len(str(tmp_path))
    assert "\x1b" not in str(error.value)


def test_a_loader_with_an_argument_that_is_a_key_of_the_section_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "csv_loader.py").write_text(
        "def load(root, *, path='train.csv'):\n    return None\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        ConfigError,
        match=r"data: .* its argument path must have another name, because path is a key",
    ):
        load_config(write(tmp_path, MINIMAL), ["data={path: 'csv_loader:load'}"])


def test_a_config_with_many_unknown_keys_reports_the_first(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        load_config(write(tmp_path, MINIMAL + "".join(f"k{i}: 1\n" for i in range(5000))))
    assert len(str(error.value).splitlines()) == 21


def test_code_of_a_config_that_fails_is_the_cause_of_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "failing_parts.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    part = "model={path: 'failing_parts:Net', width: 3}"
    with pytest.raises(
        ConfigError, match="'failing_parts:Net': ZeroDivisionError: division by zero"
    ) as error:
        load_config(write(tmp_path, MINIMAL), [part, "score.t=0"])
    assert "score.t: Input should be greater than or equal to 2" in str(error.value), (
        "all errors are reported together"
    )
    assert isinstance(error.value.__cause__, ZeroDivisionError)


def failing_net(input_shape: object, num_classes: int) -> None:
    raise KeyError("width")


def wide_net(input_shape: object, num_classes: int, width: int = 8) -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(4, width), torch.nn.Linear(width, num_classes)
    )


def test_ordinary_arguments_after_the_positional_ones_are_keys(tmp_path: Path) -> None:
    part = f"model={{path: '{__name__}:wide_net', width: 3}}"
    config = load_config(write(tmp_path, MINIMAL), [part])
    assert config.model.model_dump()["width"] == 3
    with pytest.raises(ConfigError, match=r"model.num_classes"):
        load_config(write(tmp_path, MINIMAL), [part.replace("width", "num_classes")])


def no_net(input_shape: object, num_classes: int) -> int:
    return 3


def no_data(root: Path) -> None:
    return None


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            {"path": f"{__name__}:failing_net"},
            "model.path: your .*:failing_net raised KeyError: 'width' at .*py:",
        ),
        (
            {"path": f"{__name__}:no_net"},
            "model.path: .*:no_net must return Module, but returns int",
        ),
        ({"name": "lstm", "hidden": 10**6}, "model: lstm: inputs must have shape"),
    ],
)
def test_a_model_that_cannot_be_made_is_an_error_of_this_part(
    model: dict[str, Any], message: str
) -> None:
    config = toy_config().model_copy(
        update={"model": ModelConfig.model_construct(None, **model)}
    )
    with pytest.raises(PartError, match=message):
        TrainingRun(config, toy_data())


def test_a_loader_must_return_data(tmp_path: Path) -> None:
    with pytest.raises(
        PartError,
        match=r"data.path: .*:no_data must return DataSplits, but returns NoneType",
    ):
        DataConfig.model_validate({"path": f"{__name__}:no_data"}).load(tmp_path)


def test_a_folder_given_as_data_root_is_never_deleted(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(ValueError, match="standard library"):
        DataConfig.model_validate({"path": "shutil:rmtree"}).load(tmp_path / "mine")
    assert (tmp_path / "mine").exists()


def test_errors_name_the_key_and_not_the_case_of_a_union(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"training\.batch_size: Input should be greater than or equal to 1",
    ) as error:
        load_config(write(tmp_path, MINIMAL), ["training.batch_size=0"])
    assert "function" not in str(error.value)
