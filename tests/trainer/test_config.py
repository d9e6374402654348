"""Configs: typed, closed, all errors at once."""

from pathlib import Path
from typing import Any

import pytest
import torch

from mpcs_torch.concern.files import FIELDS, load_concern
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
from tests.refused import Refused
from tests.trainer.toy import toy_config, toy_data

CONFIGS = Path(__file__).parents[2] / "configs" / "experiments"
MINIMAL = "name: mine\ndata: {name: iris}\nmodel: {name: mlp}\n"


def write(folder: Path, text: str, name: str = "run.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def loaded(folder: Path, *overrides: str, more: str = "") -> RunConfig:
    return load_config(write(folder, MINIMAL + more), overrides)


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_configs_are_named_after_their_files_and_make_a_round_trip(
    path: Path, tmp_path: Path
) -> None:
    config = load_config(path)
    assert config.name == path.stem
    assert load_config(write(tmp_path, dump_config(config))) == config


CONCERN = """
classes: [setosa, versicolor, virginica]
weights: [[0, 1, 5], [1, 0, 2], [3, 1, 0]]
dangerous: 3
refer: 0.5
answers: {versicolor or virginica: 0.3}
class_groups: {tall: [versicolor, 2]}
concession: 0.01
"""


def test_a_concern_file_of_the_other_commands_is_valid_in_a_config_beside_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "concerns").mkdir()
    spec = load_concern(write(tmp_path / "concerns", CONCERN, "mine.yaml"))
    config = loaded(tmp_path, more="score: {concern: concerns/mine.yaml}\n")
    again = load_config(write(tmp_path, dump_config(config)))
    for one in (config, again):
        assert one.score.concern.spec(spec.classes) == spec


def test_a_config_has_all_keys_of_a_concern_file() -> None:
    assert {*ConcernConfig.model_fields} == {*FIELDS}


def test_answers_and_groups_of_classes_do_not_change_the_training(tmp_path: Path) -> None:
    plain = {"weights": [[0, 1, 5], [1, 0, 2], [3, 1, 0]], "refer": 0.5}
    answers, groups = {"red or yellow": 0.3}, {"warm": ["red", "yellow"]}
    records = list[list[Record]]()
    for concern in (plain, {**plain, "answers": answers, "class_groups": groups}):
        config = toy_config(
            score={"concern": concern}, metrics=["mpcs", "expected_concern"]
        )
        run_in_folder(config, toy_data(), tmp_path, overwrite=True)
        records.append(read_records(tmp_path / "records.csv"))
    assert records[0] == records[1]


def codes(error: ConfigError) -> list[str]:
    """Return the key and code of each problem of a config, or the code of the error and that of its cause."""
    if error.code == "problems":
        return [": ".join(problem) for problem in error.fields["codes"]]
    cause = error.fields.get("cause")
    return [error.code if cause is None else f"{error.code}: {cause.code}"]


def test_all_errors_are_reported_together(tmp_path: Path) -> None:
    text = "name: a/b\ndata: {name: cifar}\nmodel: {name: mlp, hiden: 3}\nscore: {t: 1}\n"
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        load_config(path)
    assert codes(error.value) == [
        "name: string_pattern_mismatch",
        "data: known_name",
        "model.hiden: extra_forbidden",
        "score.t: greater_than_equal",
    ]
    assert f"{path}:4: score.t: " in str(error.value)


OVERRIDES = {
    "training.batch_size": "caused_by: dotted_key",
    "training.batch_size=0": "training.batch_size: greater_than_equal",
    "name.first=a": "caused_by: no_keys",
    "seed=[": "caused_by: caused_by",
    "seed=2020-13-45": "caused_by: caused_by",
    "training.batch_size=true": "training.batch_size: int_type",
    "score.concern.releases=[[yes, no]]": "score.concern.releases.0.0.str: string_type",
    "data.name=[iris]": "data: known_name",
    "seed=99999999999999999999": "seed: less_than",
    "model={hidden: 3}": "model: one_key",
    "model={name: mlp, path: a:b}": "model: one_key",
    "model={path: no_such_module:Net}": "model: import_fails",
    "model={path: 'math:cosinus'}": "model: import_fails",
    "training.learning_rate=.inf": "training.learning_rate: finite_number",
    "training.learning_rate=1e999999": "training.learning_rate: finite_number",
    "selector={by: mpcs, at_most: {dangerous: .nan}}": "selector.at_most.dangerous: finite_number",
    "loss={name: softmax_margin, margin: .inf}": "loss.margin: finite_number",
    "selector={top_k: 1000000000000000000000000}": "selector.top_k: less_than",
    "data={name: breast_cancer, unused_classes: 1000000000}": "data.unused_classes: less_than_equal",
    "seed=*a": "caused_by: no_anchor",
    "seed=" + "[" * 1000: "caused_by: max_depth",
    "a." * 1000 + "b=1": "a: extra_forbidden",
    "seed=\x1b[31m": "caused_by: allowed_character",
    "model={path: '..:x'}": "model: import_path",
    "model={path: [a]}": "model: import_path",
    "model={path: 'math:pi'}": "model: standard_library",
    "data={path: 'shutil:rmtree'}": "data: standard_library",
    "data={path: 'os:remove'}": "data: standard_library",
    "model={path: 'torch:relu'}": "model: maker",
    "model={path: 'tests.trainer.toy:toy_data'}": "model: maker",
    "metrics=[{name: [a]}]": "metrics.0.name: string_type",
    "metrics=[{name: a, metric: [b]}]": "metrics.0.metric: string_type",
    "metrics=[{name: mpcs, 3: 4}]": "metrics.0.3: invalid_key",
    "metrics=[{name: a, path: 'tests.trainer.toy:toy_data'}]": "metrics.0: metric_class",
    "data.name=" + "x" * 10000: "data: known_name",
    f"{{{'x' * 10000}}}=1": ": extra_forbidden",
    "metrics=[" + "mpcs, " * 5000 + "]": "metrics: some_metrics",
    "concern=5": "concern: extra_forbidden",
    "concern.factor=5": "concern: extra_forbidden",
    "score.releases=5": "score.releases: extra_forbidden",
    "training.batchsize=5": "training.batchsize: extra_forbidden",
    "model.layers=5": "model.layers: extra_forbidden",
    "model={name: lstm, hidden: 0}": "model.hidden: greater_than",
    "data={name: ucr}": "data.set: missing",
    "selector={by: mpcs, patience: 0}": "selector.patience: greater_than_equal",
    "selector.by=test_accuracy": ": not_of_test",
    "selector={by: mpcs, within: {test_accuracy: 0.1}}": ": not_of_test",
    "selector={by: mpcs, at_most: {test_dangerous: 1}}": ": not_of_test",
    "scheduler={name: plateau, score: test_accuracy}": ": not_of_test",
    "training.loss_scale=test_mpcs": ": not_of_test",
}
"""The code of the error of each override."""
TEXTS = {
    "[": "caused_by: caused_by",
    "3": "keys",
    MINIMAL + "seed: 1\nseed: 2\n": "caused_by: key_once",
    MINIMAL + "score: {concern: none.yaml}\n": "score.concern: cannot_read",
}
"""The code of the error of each file."""


@pytest.mark.parametrize(
    ("text", "overrides", "code"),
    [
        *[(MINIMAL, [override], code) for override, code in OVERRIDES.items()],
        *[(text, [], code) for text, code in TEXTS.items()],
    ],
    ids=range(len(OVERRIDES) + len(TEXTS)),
)
def test_broken_and_hostile_configs_are_refused_briefly(
    tmp_path: Path, text: str, overrides: list[str], code: str
) -> None:
    with pytest.raises(ConfigError) as error:
        load_config(write(tmp_path, text), overrides)
    assert code in codes(error.value)
    # One lists the names of all metrics.
    assert len(str(error.value)) < 1200 + len(str(tmp_path))
    assert "\x1b" not in str(error.value)


def test_a_broken_concern_file_shows_its_own_lines(tmp_path: Path) -> None:
    write(tmp_path, "classes: [a, b]\nreleases: [[a, d]]\n", "concern.yaml")
    with pytest.raises(ConfigError, match=r"score.concern: .*concern.yaml:2:16: "):
        loaded(tmp_path, more="score: {concern: concern.yaml}\n")


def test_arguments_of_a_part_are_checked_and_filled_in(tmp_path: Path) -> None:
    config = loaded(tmp_path, "model.name=lstm", "model.hidden=7")
    assert config.model.model_dump() == {
        "name": "lstm",
        "path": None,
        "hidden": 7,
        "layers": 1,
    }


def test_numbers_without_a_dot_are_numbers(tmp_path: Path) -> None:
    config = loaded(tmp_path, "training.learning_rate=1e-3")
    assert config.training.learning_rate == 0.001


def test_a_missing_config_is_named(tmp_path: Path) -> None:
    path = tmp_path / "absent.yaml"
    with Refused("readable", f"{path}:", raises=ConfigError):
        load_config(path)


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
    again = TrainingRun(run.config, toy_data())
    assert again.config == run.config, "a resolved config repeats the run"
    [mpcs] = [metric for entry, metric in run.metrics if entry.name == "mpcs"]
    assert isinstance(mpcs, MetaPatternConcernScore)
    assert mpcs.t == t


def test_a_loader_with_an_argument_that_is_a_key_of_the_section_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "csv_loader.py").write_text(
        "def load(root, *, path='train.csv'):\n    return None\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with Refused("problems", raises=ConfigError, codes=[("data", "maker")]):
        loaded(tmp_path, "data={path: 'csv_loader:load'}")


def test_a_config_with_many_unknown_keys_reports_the_first(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        loaded(tmp_path, more="".join(f"k{i}: 1\n" for i in range(5000)))
    assert len(str(error.value).splitlines()) == 21


def test_code_of_a_config_that_fails_is_the_cause_of_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "failing_parts.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError) as error:
        loaded(tmp_path, "model={path: 'failing_parts:Net', width: 3}", "score.t=0")
    assert codes(error.value) == ["model: import_fails", "score.t: greater_than_equal"]
    assert isinstance(error.value.__cause__, ZeroDivisionError)


def failing_net(input_shape: object, num_classes: int) -> None:
    raise KeyError("width")


def wide_net(input_shape: object, num_classes: int, width: int = 8) -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(4, width), torch.nn.Linear(width, num_classes)
    )


def test_ordinary_arguments_after_the_positional_ones_are_keys(tmp_path: Path) -> None:
    part = f"model={{path: '{__name__}:wide_net', width: 3}}"
    config = loaded(tmp_path, part)
    assert config.model.model_dump()["width"] == 3
    with Refused(
        "problems", codes=[("model.num_classes", "extra_forbidden")], raises=ConfigError
    ):
        loaded(tmp_path, part.replace("width", "num_classes"))


def no_net(input_shape: object, num_classes: int) -> int:
    return 3


def no_data(root: Path) -> None:
    return None


@pytest.mark.parametrize(
    ("model", "code", "place"),
    [
        (
            {"path": f"{__name__}:failing_net"},
            "raised",
            f"model.path: your {__name__}:failing_net",
        ),
        ({"path": f"{__name__}:no_net"}, "returns", f"model.path: {__name__}:no_net"),
        ({"name": "lstm", "hidden": 10**6}, "caused_by", "model: lstm:"),
    ],
)
def test_a_model_that_cannot_be_made_is_an_error_of_this_part(
    model: dict[str, Any], code: str, place: str
) -> None:
    config = toy_config().model_copy(
        update={"model": ModelConfig.model_construct(None, **model)}
    )
    with Refused(code, place, raises=PartError):
        TrainingRun(config, toy_data())


def test_a_loader_must_return_data(tmp_path: Path) -> None:
    place = f"data.path: {__name__}:no_data"
    with Refused("returns", place, raises=PartError, returned="NoneType"):
        DataConfig.model_validate({"path": f"{__name__}:no_data"}).load(tmp_path)
