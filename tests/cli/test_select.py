"""`mpcs select` on folders of a `CheckpointSelector`, on runs, and on seeds of either."""

import json
import shutil
from collections.abc import Callable
from math import nan
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
import torch

from mpcs_torch.learning import CheckpointSelector, SelectionRule
from tests.cli.printed import printed_tables
from tests.cli.selector_folders import EPOCHS, RULE, train, train_seeds
from tests.cli.shell import Shell

T_QUANTILES = {2: 4.302652729911275, 4: 2.7764451051977987}
"""The quantiles of Student's t distribution at 0.975, by degrees of freedom, from a table."""


@pytest.fixture
def select(mpcs: Shell) -> Callable[..., dict[str, Any]]:
    """Return a function that runs ``mpcs select --json`` and returns its result."""

    def selected(arguments: str) -> dict[str, Any]:
        plain: dict[str, Any] = mpcs.json(f"select {arguments}")
        return plain

    return selected


Select = Callable[[str], dict[str, Any]]


def best(result: dict[str, Any]) -> int:
    """Return the number of the picked epoch."""
    [epoch] = result["best"]
    number: int = epoch["epoch"]
    return number


def test_a_folder_of_any_loop_gives_the_pick_of_its_recorded_rule(
    mpcs: Shell, select: Select
) -> None:
    expected = train(Path("skin")).explain()
    printed = mpcs("select skin").out
    [table] = printed_tables(printed)
    assert table.header == [*expected.header]
    assert table.rows == [[*row] for row in expected.rows]
    rule = "rule: lowest missed, accuracy within 0.01 of its best"
    assert printed.startswith(f"skin: 3 epochs of a CheckpointSelector; {rule}")
    assert select("skin")["best"] == [
        {"epoch": 1, "values": EPOCHS[1], "checkpoint": "skin/epoch-00001.pt"}
    ]


@pytest.mark.parametrize(
    ("options", "rule", "epoch"),
    [
        ("--by accuracy", {"by": "accuracy", "within": {}}, 1),
        ("--within accuracy=0.1", {"by": "missed", "within": {"accuracy": 0.1}}, 2),
        (
            "--by missed --at-most missed=4 --at-least accuracy=0.9",
            {"at_most": {"missed": 4}, "at_least": {"accuracy": 0.9}},
            2,
        ),
        ("--by accuracy --at-most missed=5", {"at_most": {"missed": 5}, "within": {}}, 1),
    ],
)
def test_options_apply_another_rule_to_the_epochs_of_any_loop(
    options: str, rule: dict[str, Any], epoch: int, select: Select
) -> None:
    train(Path("skin"))
    plain = select(f"skin {options}")
    assert plain["rule"].items() >= rule.items()
    assert best(plain) == epoch
    assert plain["read"][1].startswith("skin: picked by this rule: ")


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (
            "--at-least acuracy=0.9",
            [
                "--at-least: must be one of the suitable metrics",
                "did you mean accuracy?",
            ],
        ),
        ("--at-most slow=9", ["--at-most: must be one of"]),  # it is not in each epoch
        ("--at-least missed=1", ["use at_most"]),
        ("--by loss", [", missed, accuracy, but is 'loss'"]),  # which can be chosen
    ],
)
def test_options_that_fit_no_column_are_refused(
    options: str, parts: list[str], mpcs: Shell
) -> None:
    train(Path("skin"))
    refused = mpcs.refusal(f"select skin {options}")
    assert all(part in refused for part in parts), refused


def test_metrics_without_a_recorded_direction_are_named_and_do_not_rank(
    select: Select,
) -> None:
    train(Path("skin"))
    plain = select("skin")
    unknown = "without a recorded direction, and so without a pick: loss, slow"
    assert plain["read"][0].endswith(f"; {unknown}")
    assert set(plain["picked_by_each"]) == {"missed", "accuracy"}


def test_the_checkpoint_to_load_is_named_where_that_of_the_pick_is_gone(
    mpcs: Shell,
) -> None:
    train(Path("skin"), keep_last=True)
    select = "select skin --within accuracy=0.1"
    assert "Best checkpoint: epoch 2, skin/epoch-00002.pt" in mpcs(select).out
    Path("skin/epoch-00002.pt").unlink()
    printed = mpcs(select).out
    assert "Best checkpoint: epoch 1, skin/epoch-00001.pt" in printed
    [table] = printed_tables(printed)
    assert [row[:2] for row in table.rows[:2]] == [
        ["the rule (its checkpoint is gone)", "2"],
        ["the rule, with a checkpoint", "1"],
    ]


def test_a_folder_is_read_while_it_is_written_after_it_moved_and_without_its_checkpoints(
    mpcs: Shell, select: Select
) -> None:
    train(Path("skin"))
    with Path("skin/manifest.json").open("a") as file:
        file.write('{"number": 3, "values": {"missed": 0')  # the beginning of the next line
    shutil.move("skin", "elsewhere")
    shutil.copytree("elsewhere", "copy", ignore=shutil.ignore_patterns("*.pt"))
    checkpoint = select("elsewhere")["best"][0]["checkpoint"]
    assert checkpoint == "elsewhere/epoch-00001.pt"
    [pick] = select("copy")["best"]
    assert (pick["epoch"], pick["checkpoint"]) == (1, None)
    assert "Best checkpoint: none" in mpcs("select copy").out


def test_nothing_of_a_folder_is_loaded_or_changed(
    select: Select, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(Path("skin"))
    Path("skin/epoch-00001.pt").write_bytes(b"another file")
    before = {path: path.read_bytes() for path in Path("skin").iterdir()}
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("loaded"))
    assert best(select("skin")) == 1
    assert {path: path.read_bytes() for path in Path("skin").iterdir()} == before


def test_a_folder_can_be_opened_after_it_was_read(select: Select) -> None:
    train(Path("skin"))
    select("skin")
    assert CheckpointSelector.open("skin").best is not None


def test_epochs_with_nan_alone_are_never_picked_and_the_reason_is_printed(
    mpcs: Shell, select: Select
) -> None:
    train(Path("diverged"), [{"missed": nan, "accuracy": nan}] * 2)
    reason = "No epoch is picked: missed is NaN in each epoch.\n"
    assert mpcs("select diverged").out.endswith(reason)
    assert select("diverged")["best"] == []


def test_the_config_of_a_run_has_its_rule(mpcs: Shell, select: Select) -> None:
    run_folder("run", "")
    plain = select("run")
    assert best(plain) == 2, "mpcs, where nothing is recorded"
    assert plain["read"][0] == "run: 3 epochs of a run of mpcs train; no rule is recorded"
    run_folder("run", "selector: {by: accuracy, within: {mpcs: 0.3}, ties: last}\n")
    plain = select("run")
    assert (plain["rule"]["by"], plain["rule"]["ties"], best(plain)) == (
        "accuracy",
        "last",
        1,
    )
    assert best(select("run --by mpcs")) == 2
    run_folder("run", "selector: {by: brier_score}\n")
    why = "run/config.yaml: the selector does not fit the records: "
    assert why in mpcs("select run", 2).err


def run_folder(name: str, config: str) -> None:
    Path(name).mkdir(parents=True, exist_ok=True)
    rows = "epoch,accuracy,mpcs,test_accuracy\n1,0.95,0.3,0.9\n2,0.94,0.1,0.9\n3,0.95,0.5,0.9\n"
    (Path(name) / "records.csv").write_text(rows)
    (Path(name) / "config.yaml").write_text(f"name: {Path(name).name}\n{config}")


def settings_of(result: dict[str, Any]) -> dict[str, int]:
    """Return the number of folders of each setting."""
    return {one["setting"]: len(one["folders"]) for one in result["settings"]}


def folders_of(result: dict[str, Any]) -> list[str]:
    """Return the names of all folders in their order."""
    return [folder["folder"] for one in result["settings"] for folder in one["folders"]]


def test_seeds_in_one_folder_are_one_row_with_an_interval_and_a_pick_each(
    mpcs: Shell, select: Select
) -> None:
    missed = [5.0, 7.0, 6.0, 4.0, 8.0]
    train_seeds(Path("runs"), missed)
    summary, picks = printed_tables(mpcs("select runs").out)
    [row] = summary.rows
    margin = T_QUANTILES[4] * stdev(missed) / 5**0.5
    ends = [6 - margin, 6 + margin]
    interval = f"[{ends[0]:.3g}, {ends[1]:.3g}]"
    assert row[:3] == ["runs/seed-*", "5", f"{fmean(missed):g} {interval}"]
    accuracy = row[summary.header.index("accuracy")]
    assert accuracy == "0.955", "equal values have no interval"
    names = [f"runs/seed-{seed}" for seed in range(5)]
    assert [row[:3] for row in picks.rows] == [
        [name, "1", f"{count:g}"] for name, count in zip(names, missed, strict=True)
    ]
    plain = select("runs")
    [setting] = plain["settings"]
    mean = setting["means"]["missed"]
    assert (mean["mean"], mean["seeds"]) == (6.0, 5)
    assert mean["interval"] == pytest.approx(ends)
    assert [best(folder) for folder in setting["folders"]] == [1] * 5
    assert folders_of(plain) == names


def test_folders_of_seeds_may_be_named_one_by_one_in_any_number_of_parents(
    select: Select,
) -> None:
    folders = [f"runs/seed-{seed}/checkpoints" for seed in (10, 11, 12)]
    for folder in folders:
        train(Path(folder))
    assert settings_of(select(" ".join(folders))) == {"runs/seed-*/checkpoints": 3}


def test_another_rule_is_applied_to_each_seed(select: Select) -> None:
    train_seeds(Path("runs"), [5, 6, 7])
    [setting] = select("runs --within accuracy=0.1")["settings"]
    assert [best(folder) for folder in setting["folders"]] == [2, 2, 2]


def test_seeds_are_ordered_by_their_number(select: Select) -> None:
    for seed in (10, 9, 1):
        train(Path(f"runs/seed-{seed}"))
    Path("runs/.cache").mkdir()
    assert folders_of(select("runs")) == ["runs/seed-1", "runs/seed-9", "runs/seed-10"]


def test_folders_with_another_rule_or_another_name_are_other_settings(
    select: Select,
) -> None:
    other = SelectionRule("accuracy", RULE.directions)
    train_seeds(Path("runs"), [5, 6, 7], "plain-seed")
    train_seeds(Path("runs"), [5, 6, 7], "margin-seed")
    train_seeds(Path("more"), [5, 6, 7], "plain-seed", other)
    pooled = {"runs/margin-seed-*": 3, "runs/plain-seed-*": 3}
    assert settings_of(select("runs more")) == {**pooled, "more/plain-seed-*": 3}
    train(Path("runs/plain-seed-3"), rule=other)
    plain = select("runs")
    assert settings_of(plain) == {**pooled, "runs/plain-seed-3": 1}
    assert not_pooled(plain).startswith("runs/plain-seed-3: ")


def not_pooled(result: dict[str, Any]) -> str:
    """Return what is said of folders that are not pooled."""
    start = "Not pooled as seeds: "
    [line] = [line for line in result["read"] if line.startswith(start)]
    return str(line.removeprefix(start))


def test_settings_with_one_pattern_are_named_by_their_folders(select: Select) -> None:
    rules = [SelectionRule("accuracy", RULE.directions), RULE]
    for seed in range(4):
        train(Path(f"runs/seed{seed}"), rule=rules[seed % 2])
    assert [*settings_of(select("runs"))] == [
        "runs/seed0, runs/seed2",
        "runs/seed1, runs/seed3",
    ]


def test_numbers_that_name_no_seed_are_never_pooled(select: Select) -> None:
    names = [f"runs/run-{trial}" for trial in range(6)]
    for name in names:
        train(Path(name))
    plain = select("runs")
    assert settings_of(plain) == dict.fromkeys(names, 1)
    assert ", ".join(names) in not_pooled(plain)
    assert "plain-seed0" in not_pooled(plain), "how to name seeds"


@pytest.mark.parametrize(
    "settings",
    [("lr0.1", "lr0.01"), ("bs32", "bs64"), ("lr1e-3", "lr1e-4"), ("fold1", "fold2")],
)
@pytest.mark.parametrize("separator", ["-", "/"])
def test_settings_that_differ_in_a_number_are_not_pooled(
    settings: tuple[str, str], separator: str, select: Select
) -> None:
    patterns = [f"runs/{setting}{separator}seed" for setting in settings]
    folders = [f"{pattern}{seed}" for pattern in patterns for seed in (0, 1)]
    for folder in folders:
        train(Path(folder))
    plain = select(" ".join(folders))
    assert settings_of(plain) == {f"{pattern}*": 2 for pattern in patterns}
    assert not [line for line in plain["read"] if line.startswith("Not pooled")]


def test_runs_are_seeds_of_one_setting_if_only_name_and_seed_differ(
    select: Select,
) -> None:
    for seed, name in enumerate(("first", "second", "third"), start=1):
        run_folder(f"runs/{name}", f"seed: {seed}\nmodel: {{name: mlp}}\n")
    run_folder("runs/other", "seed: 4\nmodel: {name: linear}\n")
    plain = select("runs")
    assert [*settings_of(plain).values()] == [3, 1]
    assert folders_of(plain)[:3] == ["runs/first", "runs/second", "runs/third"]


def test_runs_with_the_same_seed_are_not_pooled_and_the_reason_is_printed(
    select: Select,
) -> None:
    seeds = {"runs/toy-seed1": 7, "runs/toy-seed2": 7, "runs/toy-seed3": 8}
    for name, seed in seeds.items():
        run_folder(name, f"seed: {seed}\n")
    plain = select("runs")
    assert [*settings_of(plain).values()] == [1, 1, 1]
    reason = "seeds of one setting have different seeds"
    assert not_pooled(plain).startswith(f"{', '.join(seeds)}: {reason}")


def test_a_damaged_folder_among_several_is_refused_by_name(mpcs: Shell) -> None:
    train_seeds(Path("runs"), [5, 6, 7, 8])
    Path("runs/seed-1/manifest.json").write_text("{")
    assert "runs/seed-1/manifest.json " in mpcs("select runs", 2).err


def test_a_metric_that_is_nan_in_each_epoch_is_named_with_its_folder(
    select: Select,
) -> None:
    first, second = [{**values, "loss": nan} for values in EPOCHS[:2]]
    train(Path("runs/seed-0"), [first, EPOCHS[1]])
    train(Path("runs/seed-1"), [first, second])
    assert select("runs")["warnings"] == ["runs/seed-1: NaN in each epoch: loss"]
    assert select("runs/seed-0")["warnings"] == []


def test_an_epoch_that_is_recorded_twice_is_counted_and_listed_once(
    mpcs: Shell, select: Select
) -> None:
    train(Path("skin"))
    again = [EPOCHS[0], {**EPOCHS[1], "missed": 8.0}, {**EPOCHS[2], "missed": 4.0}]
    train(Path("skin"), again, resume=True)
    plain = select("skin --within accuracy=1")
    assert plain["read"][0].startswith("skin: 3 epochs of ")
    assert (best(plain), plain["as_good_as"]) == (2, [1, 0])
    [warning] = plain["warnings"]
    assert warning.startswith("skin: recorded more than once: epoch 1, 2 ")
    [table] = printed_tables(mpcs("select skin --within accuracy=1").out)
    assert [row[-1] for row in table.rows[:2]] == ["0, 1 (2 epochs)", "0, 2 (2 epochs)"]


@pytest.mark.parametrize(("seeds", "has_interval"), [(2, False), (3, True)])
def test_two_seeds_have_no_interval_and_the_reason_is_printed(
    seeds: int, has_interval: bool, mpcs: Shell, select: Select
) -> None:
    train_seeds(Path("runs"), [5, 6, 7][:seeds])
    printed = mpcs("select runs").out
    assert "if there are at least 3 seeds" in printed
    assert ("[" in next(printed_tables(printed)).rows[0][2]) is has_interval
    [setting] = select("runs")["settings"]
    assert (setting["means"]["missed"]["interval"] is not None) is has_interval


def test_a_mean_says_over_how_many_seeds_it_is(mpcs: Shell) -> None:
    train_seeds(Path("runs"), [5, 6, 7])
    train(Path("runs/seed-3"), [{"missed": nan, "accuracy": nan}])
    summary, picks = printed_tables(mpcs("select runs").out)
    assert summary.rows[0][1:3] == ["4", "6 [3.52, 8.48] (3 of 4 seeds)"]
    assert picks.rows[3] == ["runs/seed-3", "none", "", "", "", ""]


NO_MANIFEST = "is not the manifest of a CheckpointSelector"


@pytest.mark.parametrize(
    ("folders", "name", "reason"),
    [
        ("empty", "empty", "it has no folders"),
        ("notes", "notes", "it has no folders"),
        ("broken", "broken/manifest.json", NO_MANIFEST),
        ("other", "other/manifest.json", NO_MANIFEST),
        ("lacking", "lacking/manifest.json", NO_MANIFEST),
        ("begun", "begun", "contains no epochs"),
        ("mixed", "mixed/logs", "each folder in it must be"),
        ("kinds", "kinds/run", "must be of one kind"),
        ("skin run", "run", "must be of one kind"),
        ("deep", "deep/seed-0", "each folder in it must be"),
        ("skin ./skin", "skin", "is named twice"),
    ],
)
def test_a_folder_that_cannot_be_read_is_refused_in_one_sentence(
    folders: str, name: str, reason: str, mpcs: Shell
) -> None:
    train(Path("skin"))
    run_folder("run", "")
    for folder in ("empty", "notes", "mixed/logs"):
        Path(folder).mkdir(parents=True)
    Path("notes/notes.txt").write_text("lr 0.1")
    begun = Path("skin/manifest.json").read_text().splitlines()[0]
    epochs = [{"number": 0, "values": {"missed": 1}}]
    contents = {
        "broken": "\0\1",
        "other": '{"name": "a web app", "icons": []}\n',
        "lacking": json.dumps({**json.loads(begun), "epochs": epochs}) + "\n",
        "begun": begun + "\n",
    }
    for folder, content in contents.items():
        Path(folder).mkdir()
        Path(folder, "manifest.json").write_text(content)
    for folder in ("mixed/seed-0", "kinds/skin", "deep/seed-0/checkpoints"):
        shutil.copytree("skin", folder)
    shutil.copytree("run", "kinds/run")
    message = mpcs(f"select {folders}", 2).err
    assert name in message
    assert reason in message
    assert message.count("\n") == 1
    assert mpcs(f"report {folders} --out report.html", 2).err == message
    assert not Path("report.html").exists()


def test_names_in_a_manifest_cannot_control_the_terminal(mpcs: Shell) -> None:
    train(Path("skin"), [{**EPOCHS[0], "loss\x1b[31m": 1.0}])
    message = mpcs("select skin", 2).err
    assert "has control characters" in message
    assert "\x1b" not in message
