"""`mpcs select` on folders of a `CheckpointSelector`, on runs, and on seeds of either."""

import json
import shutil
from math import nan
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
import torch

from mpcs_torch.learning import CheckpointSelector, SelectionRule
from tests.cli.printed import printed_tables
from tests.cli.selector_folders import EPOCHS, RULE, train, train_seeds
from tests.cli.shell import one_line, run

T_QUANTILES = {2: 4.302652729911275, 4: 2.7764451051977987}
"""The quantiles of Student's t distribution at 0.975, by degrees of freedom, from a table."""


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def selected(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    capsys.readouterr()
    assert run("select", *arguments, "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_folder_of_any_loop_gives_the_pick_of_its_recorded_rule(
    capsys: pytest.CaptureFixture[str],
) -> None:
    selector = train(Path("skin"))
    assert run("select", "skin") == 0
    out = capsys.readouterr().out
    [table] = printed_tables(out)
    expected = selector.explain()
    assert (table.header, table.rows) == (
        [*expected.header],
        [[*row] for row in expected.rows],
    )
    assert out.startswith(
        "skin: 3 epochs of a CheckpointSelector; rule: lowest missed, accuracy within 0.01 of its best"
    )
    best = selected(capsys, "skin")["best"]
    assert best == [{"epoch": 1, "values": EPOCHS[1], "checkpoint": "skin/epoch-00001.pt"}]


def test_options_apply_another_rule_to_the_epochs_of_any_loop(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train(Path("skin"))
    found = selected(capsys, "skin", "--by", "accuracy")
    assert (found["rule"]["by"], found["rule"]["within"], found["best"][0]["epoch"]) == (
        "accuracy",
        {},
        1,
    )
    assert found["read"][1] == "skin: picked by this rule: highest accuracy"
    found = selected(capsys, "skin", "--within", "accuracy=0.1")
    assert (found["rule"]["by"], found["best"][0]["epoch"]) == ("missed", 2), (
        "the recorded metric still ranks"
    )


def test_limits_of_options_are_those_of_the_rule(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train(Path("skin"))
    limits = ("--at-most", "missed=4", "--at-least", "accuracy=0.9")
    found = selected(capsys, "skin", "--by", "missed", *limits)
    assert (found["rule"]["at_most"], found["rule"]["at_least"]) == (
        {"missed": 4},
        {"accuracy": 0.9},
    )
    assert found["best"][0]["epoch"] == 2
    expected = SelectionRule("accuracy", RULE.directions, at_most={"missed": 5})
    found = selected(capsys, "skin", "--by", "accuracy", "--at-most", "missed=5")
    epochs = CheckpointSelector.open("skin").epochs
    assert found["best"][0]["epoch"] == expected.ranking(epochs)[0].number
    assert run("select", "skin", "--at-least", "acuracy=0.9") == 2
    refused = one_line(capsys.readouterr().err)
    assert "--at-least: must be one of the suitable metrics" in refused
    assert "did you mean accuracy?" in refused
    assert run("select", "skin", "--at-most", "slow=9") == 2, "it is not in each epoch"
    assert run("select", "skin", "--at-least", "missed=1") == 2
    assert "use at_most" in one_line(capsys.readouterr().err)


def test_metrics_without_a_recorded_direction_are_named_and_do_not_rank(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train(Path("skin"))
    found = selected(capsys, "skin")
    assert found["read"][0].endswith(
        "; without a recorded direction, and so without a pick: loss, slow"
    )
    assert set(found["picked_by_each"]) == {"missed", "accuracy"}
    assert run("select", "skin", "--by", "loss") == 2
    assert ", missed, accuracy, but is 'loss'" in one_line(capsys.readouterr().err), (
        "which columns can be chosen"
    )


def test_the_checkpoint_to_load_is_named_where_that_of_the_pick_is_gone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train(Path("skin"), keep_last=True)
    assert run("select", "skin", "--within", "accuracy=0.1") == 0
    assert "Best checkpoint: epoch 2, skin/epoch-00002.pt" in capsys.readouterr().out
    Path("skin/epoch-00002.pt").unlink()
    assert run("select", "skin", "--within", "accuracy=0.1") == 0
    out = capsys.readouterr().out
    assert "Best checkpoint: epoch 1, skin/epoch-00001.pt" in out
    [table] = printed_tables(out)
    assert [row[:2] for row in table.rows[:2]] == [
        ["the rule (its checkpoint is gone)", "2"],
        ["the rule, with a checkpoint", "1"],
    ]


def test_a_folder_is_read_while_it_is_written_after_it_moved_and_without_its_checkpoints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train(Path("skin"))
    with Path("skin/manifest.json").open("a") as file:
        file.write('{"number": 3, "values": {"missed": 0')  # the beginning of the next line
    shutil.move("skin", "elsewhere")
    shutil.copytree("elsewhere", "copy", ignore=shutil.ignore_patterns("*.pt"))
    assert (
        selected(capsys, "elsewhere")["best"][0]["checkpoint"] == "elsewhere/epoch-00001.pt"
    )
    found = selected(capsys, "copy")["best"][0]
    assert (found["epoch"], found["checkpoint"]) == (1, None)
    assert run("select", "copy") == 0
    assert "Best checkpoint: none" in capsys.readouterr().out


def test_nothing_of_a_folder_is_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train(Path("skin"))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a checkpoint was loaded")

    monkeypatch.setattr(torch, "load", refuse)
    Path("skin/epoch-00001.pt").write_bytes(b"another file")
    assert selected(capsys, "skin")["best"][0]["epoch"] == 1


def test_epochs_with_nan_alone_are_never_picked_and_the_reason_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train(Path("diverged"), [{"missed": nan, "accuracy": nan}] * 2)
    assert run("select", "diverged") == 0
    assert capsys.readouterr().out.endswith(
        "No epoch is picked: missed is NaN in each epoch.\n"
    )
    assert selected(capsys, "diverged")["best"] == []


def test_the_config_of_a_run_has_its_rule(capsys: pytest.CaptureFixture[str]) -> None:
    run_folder("run", "")
    found = selected(capsys, "run")
    assert found["best"][0]["epoch"] == 2, "mpcs, where nothing is recorded"
    assert found["read"][0] == "run: 3 epochs of a run of mpcs train; no rule is recorded"
    run_folder("run", "selector: {by: accuracy, within: {mpcs: 0.3}, ties: last}\n")
    found = selected(capsys, "run")
    assert (found["rule"]["by"], found["rule"]["ties"], found["best"][0]["epoch"]) == (
        "accuracy",
        "last",
        1,
    )
    assert selected(capsys, "run", "--by", "mpcs")["best"][0]["epoch"] == 2
    run_folder("run", "selector: {by: brier_score}\n")
    assert run("select", "run") == 2
    assert (
        "run/config.yaml: the selector does not fit the records: "
        in capsys.readouterr().err
    )


def run_folder(name: str, config: str) -> None:
    Path(name).mkdir(parents=True, exist_ok=True)
    rows = "epoch,accuracy,mpcs,test_accuracy\n1,0.95,0.3,0.9\n2,0.94,0.1,0.9\n3,0.95,0.5,0.9\n"
    (Path(name) / "records.csv").write_text(rows)
    (Path(name) / "config.yaml").write_text(f"name: {Path(name).name}\n{config}")


def test_seeds_in_one_folder_are_one_row_with_an_interval_and_a_pick_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    missed = [5.0, 7.0, 6.0, 4.0, 8.0]
    train_seeds(Path("runs"), missed)
    assert run("select", "runs") == 0
    summary, picks = printed_tables(capsys.readouterr().out)
    [row] = summary.rows
    margin = T_QUANTILES[4] * stdev(missed) / 5**0.5
    assert row[:3] == [
        "runs/seed-*",
        "5",
        f"{fmean(missed):g} [{6 - margin:.3g}, {6 + margin:.3g}]",
    ]
    assert dict(zip(summary.header, row, strict=True))["accuracy"] == "0.955", (
        "equal values have no interval"
    )
    assert [row[:3] for row in picks.rows] == [
        [f"runs/seed-{i}", "1", f"{missed[i]:g}"] for i in range(5)
    ]
    [setting] = selected(capsys, "runs")["settings"]
    mean = setting["means"]["missed"]
    assert (mean["mean"], mean["seeds"]) == (6.0, 5)
    assert mean["interval"] == pytest.approx([6 - margin, 6 + margin])
    assert [folder["best"][0]["epoch"] for folder in setting["folders"]] == [1] * 5
    assert [folder["folder"] for folder in setting["folders"]] == [
        f"runs/seed-{i}" for i in range(5)
    ]


def test_folders_of_seeds_may_be_named_one_by_one_in_any_number_of_parents(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for seed in (10, 11, 12):
        train(Path(f"runs/seed-{seed}/checkpoints"))
    [setting] = selected(
        capsys, *(f"runs/seed-{seed}/checkpoints" for seed in (10, 11, 12))
    )["settings"]
    assert (setting["setting"], len(setting["folders"])) == ("runs/seed-*/checkpoints", 3)


def test_another_rule_is_applied_to_each_seed(capsys: pytest.CaptureFixture[str]) -> None:
    train_seeds(Path("runs"), [5, 6, 7])
    [setting] = selected(capsys, "runs", "--within", "accuracy=0.1")["settings"]
    assert [folder["best"][0]["epoch"] for folder in setting["folders"]] == [2, 2, 2]


def test_seeds_are_ordered_by_their_number(capsys: pytest.CaptureFixture[str]) -> None:
    for seed in (10, 9, 1):
        train(Path(f"runs/seed-{seed}"))
    Path("runs/.cache").mkdir()
    [setting] = selected(capsys, "runs")["settings"]
    assert [folder["folder"] for folder in setting["folders"]] == [
        f"runs/seed-{seed}" for seed in (1, 9, 10)
    ]


def test_folders_with_another_rule_or_another_name_are_other_settings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = SelectionRule("accuracy", RULE.directions)
    train_seeds(Path("runs"), [5, 6, 7], "plain-seed")
    train_seeds(Path("runs"), [5, 6, 7], "margin-seed")
    train_seeds(Path("more"), [5, 6, 7], "plain-seed", other)
    found = selected(capsys, "runs", "more")["settings"]
    names = ["runs/margin-seed-*", "runs/plain-seed-*", "more/plain-seed-*"]
    assert [(setting["setting"], len(setting["folders"])) for setting in found] == [
        (name, 3) for name in names
    ]
    train(Path("runs/plain-seed-3"), rule=other)
    found = selected(capsys, "runs")
    assert [setting["setting"] for setting in found["settings"]] == [
        *names[:2],
        "runs/plain-seed-3",
    ]
    assert [
        line
        for line in found["read"]
        if line.startswith("Not pooled as seeds: runs/plain-seed-3: ")
    ]


def test_settings_with_one_pattern_are_named_by_their_folders(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for seed in range(4):
        train(
            Path(f"runs/seed{seed}"),
            rule=RULE if seed % 2 else SelectionRule("accuracy", RULE.directions),
        )
    names = [setting["setting"] for setting in selected(capsys, "runs")["settings"]]
    assert names == ["runs/seed0, runs/seed2", "runs/seed1, runs/seed3"]


def test_numbers_that_name_no_seed_are_never_pooled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for trial in range(6):
        train(Path(f"runs/run-{trial}"))
    found = selected(capsys, "runs")
    assert [setting["setting"] for setting in found["settings"]] == [
        f"runs/run-{trial}" for trial in range(6)
    ]
    [reason] = [line for line in found["read"] if line.startswith("Not pooled as seeds: ")]
    assert ", ".join(f"runs/run-{trial}" for trial in range(6)) in reason
    assert "plain-seed0" in reason, "how to name seeds"


@pytest.mark.parametrize(
    "settings",
    [("lr0.1", "lr0.01"), ("bs32", "bs64"), ("lr1e-3", "lr1e-4"), ("fold1", "fold2")],
)
@pytest.mark.parametrize("separator", ["-", "/"])
def test_settings_that_differ_in_a_number_are_not_pooled(
    settings: tuple[str, str], separator: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [
        f"runs/{setting}{separator}seed{seed}" for setting in settings for seed in (0, 1)
    ]
    for folder in folders:
        train(Path(folder))
    found = selected(capsys, *folders)
    assert [setting["setting"] for setting in found["settings"]] == [
        f"runs/{name}{separator}seed*" for name in settings
    ]
    assert not [line for line in found["read"] if line.startswith("Not pooled")]


def test_runs_are_seeds_of_one_setting_if_only_name_and_seed_differ(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, seed in (("first", 1), ("second", 2), ("third", 3)):
        run_folder(f"runs/{name}", f"seed: {seed}\nmodel: {{name: mlp}}\n")
    run_folder("runs/other", "seed: 4\nmodel: {name: linear}\n")
    found = selected(capsys, "runs")["settings"]
    assert [len(setting["folders"]) for setting in found] == [3, 1]
    assert [folder["folder"] for folder in found[0]["folders"]] == [
        "runs/first",
        "runs/second",
        "runs/third",
    ]


def test_runs_with_the_same_seed_are_not_pooled_and_the_reason_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, seed in (("toy-seed1", 7), ("toy-seed2", 7), ("toy-seed3", 8)):
        run_folder(f"runs/{name}", f"seed: {seed}\n")
    found = selected(capsys, "runs")
    assert [len(setting["folders"]) for setting in found["settings"]] == [1, 1, 1]
    names = "runs/toy-seed1, runs/toy-seed2, runs/toy-seed3"
    [reason] = [line for line in found["read"] if line.startswith("Not pooled")]
    assert reason.startswith(
        f"Not pooled as seeds: {names}: seeds of one setting have different seeds"
    )


def test_a_damaged_folder_among_several_is_refused_by_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train_seeds(Path("runs"), [5, 6, 7, 8])
    Path("runs/seed-1/manifest.json").write_text("{")
    assert run("select", "runs") == 2
    assert "runs/seed-1/manifest.json " in capsys.readouterr().err


def test_a_metric_that_is_nan_in_each_epoch_is_named_with_its_folder(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train(Path("runs/seed-0"), [{**EPOCHS[0], "loss": nan}, EPOCHS[1]])
    train(Path("runs/seed-1"), [{**EPOCHS[0], "loss": nan}, {**EPOCHS[1], "loss": nan}])
    assert selected(capsys, "runs")["warnings"] == ["runs/seed-1: NaN in each epoch: loss"]
    assert selected(capsys, "runs/seed-0")["warnings"] == []


def test_an_epoch_that_is_recorded_twice_is_counted_and_listed_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train(Path("skin"))
    train(
        Path("skin"),
        [EPOCHS[0], {**EPOCHS[1], "missed": 8.0}, {**EPOCHS[2], "missed": 4.0}],
        resume=True,
    )
    found = selected(capsys, "skin", "--within", "accuracy=1")
    assert found["read"][0].startswith("skin: 3 epochs of ")
    assert (found["best"][0]["epoch"], found["as_good_as"]) == (2, [1, 0])
    [warning] = found["warnings"]
    assert warning.startswith("skin: recorded more than once: epoch 1, 2 ")
    assert run("select", "skin", "--within", "accuracy=1") == 0
    out = capsys.readouterr().out
    [table] = printed_tables(out)
    assert [row[-1] for row in table.rows[:2]] == ["0, 1 (2 epochs)", "0, 2 (2 epochs)"]


@pytest.mark.parametrize(("seeds", "has_interval"), [(2, False), (3, True)])
def test_two_seeds_have_no_interval_and_the_reason_is_printed(
    seeds: int, has_interval: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    train_seeds(Path("runs"), [5, 6, 7][:seeds])
    assert run("select", "runs") == 0
    out = capsys.readouterr().out
    assert "if there are at least 3 seeds" in out
    summary = next(printed_tables(out))
    assert ("[" in summary.rows[0][2]) is has_interval
    [setting] = selected(capsys, "runs")["settings"]
    assert (setting["means"]["missed"]["interval"] is not None) is has_interval


def test_a_mean_says_over_how_many_seeds_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    train_seeds(Path("runs"), [5, 6, 7])
    train(Path("runs/seed-3"), [{"missed": nan, "accuracy": nan}])
    assert run("select", "runs") == 0
    summary, picks = printed_tables(capsys.readouterr().out)
    assert summary.rows[0][1:3] == ["4", "6 [3.52, 8.48] (3 of 4 seeds)"]
    assert picks.rows[3] == ["runs/seed-3", "none", "", "", "", ""]


@pytest.mark.parametrize(
    ("arguments", "names", "told"),
    [
        (["empty"], "empty", "it has no folders"),
        (["notes"], "notes", "it has no folders"),
        (["broken"], "broken/manifest.json", "is not the manifest of a CheckpointSelector"),
        (["other"], "other/manifest.json", "is not the manifest of a CheckpointSelector"),
        (
            ["lacking"],
            "lacking/manifest.json",
            "is not the manifest of a CheckpointSelector",
        ),
        (["begun"], "begun", "contains no epochs"),
        (["mixed"], "mixed/logs", "each folder in it must be"),
        (["kinds"], "kinds/run", "must be of one kind"),
        (["skin", "run"], "run", "must be of one kind"),
        (["deep"], "deep/seed-0", "each folder in it must be"),
        (["skin", "./skin"], "skin", "is named twice"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_a_folder_that_cannot_be_read_is_refused_in_one_sentence(
    arguments: list[str], names: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty").mkdir()
    Path("notes").mkdir()
    Path("notes/notes.txt").write_text("lr 0.1")
    train(Path("skin"))
    run_folder("run", "")
    manifest = json.loads(Path("skin/manifest.json").read_text().splitlines()[0])
    contents = {
        "broken": b"\x00\x01",
        "other": b'{"name": "a web app", "icons": []}\n',
        "lacking": json.dumps(
            {**manifest, "epochs": [{"number": 0, "values": {"missed": 1}}]}
        ).encode()
        + b"\n",
        "begun": json.dumps(manifest).encode() + b"\n",
    }
    for name, content in contents.items():
        Path(name).mkdir()
        Path(name, "manifest.json").write_bytes(content)
    for name in ("mixed/seed-0", "kinds/skin", "deep/seed-0/checkpoints"):
        shutil.copytree("skin", name)
    Path("mixed/logs").mkdir()
    shutil.copytree("run", "kinds/run")
    assert run("select", *arguments) == 2
    message = capsys.readouterr().err
    assert names in message
    assert told in message
    assert message.count("\n") == 1
    assert run("report", *arguments, "--out", "report.html") == 2
    assert capsys.readouterr().err == message
    assert not Path("report.html").exists()


def test_names_in_a_manifest_cannot_control_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train(Path("skin"), [{**EPOCHS[0], "loss\x1b[31m": 1.0}])
    assert run("select", "skin") == 2
    message = capsys.readouterr().err
    assert "has control characters" in message
    assert "\x1b" not in message


def test_a_folder_is_not_changed_by_reading_it(capsys: pytest.CaptureFixture[str]) -> None:
    train(Path("skin"))
    before = (
        sorted(path.name for path in Path("skin").iterdir()),
        Path("skin/manifest.json").read_bytes(),
    )
    assert run("select", "skin") == 0
    assert (
        sorted(path.name for path in Path("skin").iterdir()),
        Path("skin/manifest.json").read_bytes(),
    ) == before
    assert CheckpointSelector.open("skin").best is not None
