"""A watch of logs: its state is that of one pass, whatever happens between, and its alarms name the row."""

import csv
import os
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from mpcs_torch import ConcernSpec
from mpcs_torch.errors import InvalidValueError
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.functional import anytime_interval
from mpcs_torch.io.artifacts import sealed_json
from mpcs_torch.learning import DecisionRule, Limit
from mpcs_torch.monitoring.watch import (
    CHANGE,
    RISK,
    Alarm,
    LogRows,
    Settings,
    Watch,
    names_of_groups,
    read_log,
)
from tests.processes.forked import forked
from tests.refused import Refused, refused_file

CONCERN = ConcernSpec(["good", "bad"], refer=0.3)
SITES = {"site": ["north", "south"]}
SETTINGS = Settings(
    "0" * 64, ["any <= 0.05 of bad by site", "any <= 0.05"], SITES, run_length=10_000
)
HEADER = ["time", "site", "decision", "risk", "target"]


def rows(number: int, *, rate: float = 0.02, seed: int = 0) -> list[list[str]]:
    draw = random.Random(seed)
    made = []
    for place in range(number):
        label = draw.choice(["good", "bad"])
        if draw.random() < 0.1:
            decision = "refer"
        elif draw.random() < rate:
            decision = "good" if label == "bad" else "bad"
        else:
            decision = label
        shown = label if draw.random() < 0.7 else ""
        site, risk = draw.choice(["north", "south"]), f"{draw.random():.3f}"
        made.append([f"day {place}", site, decision, risk, shown])
    return made


def write(
    path: Path, content: Sequence[Sequence[str]], header: Sequence[str] = HEADER
) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *content])
    return path


def go_on(watch: Watch, path: Path, *, state: Path | None = None) -> Watch:
    """Read the rest of a log."""
    before = watch.rows
    watch.read(path, ReadOptions(), str)
    if state is not None and watch.rows > before:
        watch.save(state)
    return watch


def watched(folder: Path, content: list[list[str]]) -> Watch:
    """Read a log with ``content`` from its first row."""
    return go_on(Watch(SETTINGS, CONCERN), write(folder / "log.csv", content))


def rows_of(path: Path, reading: ReadOptions | None = None) -> LogRows:
    """Return the rows of a log."""
    new = read_log(path, CONCERN, Settings("0" * 64, []), reading or ReadOptions(), str)
    assert new is not None
    return new


def test_a_log_that_grows_gives_the_state_of_one_pass(tmp_path: Path) -> None:
    content, path = rows(1200), tmp_path / "log.csv"
    whole = go_on(Watch(SETTINGS, CONCERN), write(path, content))
    text, draw = path.read_bytes(), random.Random(1)
    growing, state, end = Watch(SETTINGS, CONCERN), tmp_path / "state.json", 0
    while end < len(text):
        end = min(len(text), end + draw.randrange(1, 9000))
        path.write_bytes(text[:end])  # most often in the middle of a line
        go_on(growing, path)
        growing.save(state)
        growing = Watch.load(state, CONCERN)
    assert growing.plain() == whole.plain()
    assert whole.rows == 1200


def test_a_state_after_kills_is_that_of_one_pass(tmp_path: Path) -> None:
    logs = [
        write(tmp_path / f"log{number}.csv", rows(40, seed=number)) for number in range(40)
    ]
    state, whole = tmp_path / "state.json", Watch(SETTINGS, CONCERN)
    begun = time.perf_counter()
    for log in logs:
        go_on(whole, log, state=tmp_path / "whole.json")
    took = time.perf_counter() - begun

    def read_all() -> None:
        """Go on from the state that is there; what was read is read again, to be checked."""
        watch = Watch(SETTINGS, CONCERN)
        if state.exists():
            watch = Watch.load(state, CONCERN)
        for log in logs:
            go_on(watch, log, state=state)
        watch.save(state)

    draw, kills, is_killed = random.Random(0), 0, True
    while is_killed:
        child = forked(read_all)
        # The first kills come early; later ones leave time to finish.
        time.sleep(draw.uniform(0, took / 6 if kills < 4 else 2 * took))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        is_killed = os.WIFSIGNALED(status)
        kills += is_killed
    assert status == 0
    assert kills >= 3
    assert state.read_bytes() == (tmp_path / "whole.json").read_bytes()
    assert Watch.load(state, CONCERN).rows == whole.rows == 1600


def test_parquet_files_that_grow_are_read_as_csv_files_are(tmp_path: Path) -> None:
    content = rows(300)
    by_csv = watched(tmp_path, content)
    path, watch = tmp_path / "log.parquet", Watch(SETTINGS, CONCERN)
    for end in (100, 300):
        columns = dict(zip(HEADER, zip(*content[:end], strict=True), strict=True))
        table = pa.table({**columns, "risk": [float(risk) for risk in columns["risk"]]})
        pq.write_table(table, path, row_group_size=64)
        go_on(watch, path)
    assert watch.plain()["monitors"] == by_csv.plain()["monitors"]


def test_an_alarm_names_the_first_row_that_shows_it_and_stays(tmp_path: Path) -> None:
    content = [
        *rows(400, rate=0.01),
        *rows(160, rate=0.4, seed=1),
        *rows(6000, rate=0.0, seed=2),
    ]
    watch = watched(tmp_path, content)
    alarm = next(
        alarm
        for alarm in watch.alarms
        if (alarm.kind, alarm.name) == (RISK, "errors of samples")
    )
    assert 400 < alarm.row < 600
    assert alarm.time == content[alarm.row - 1][0]
    before = Watch(SETTINGS, CONCERN)
    go_on(before, write(tmp_path / "before.csv", content[: alarm.row - 1]))
    assert (RISK, "errors of samples") not in {
        (one.kind, one.name) for one in before.alarms
    }
    assert not watch.monitors[RISK].evidence_now()[2] >= watch.monitors[RISK].threshold, (
        "it is over, but was raised"
    )


def test_acknowledged_alarms_are_cleared_and_may_be_raised_again(tmp_path: Path) -> None:
    bad, path, state = rows(400, rate=0.4), tmp_path / "log.csv", tmp_path / "state.json"
    watch = go_on(Watch(SETTINGS, CONCERN), write(path, bad))
    of_all = [alarm for alarm in watch.alarms if alarm.name == "errors of samples"]
    others = [alarm for alarm in watch.alarms if alarm not in of_all]
    assert {alarm.kind for alarm in of_all} == {RISK, CHANGE}
    assert watch.acknowledge("errors of samples") == of_all
    assert (watch.alarms, watch.acknowledged) == (others, of_all)
    watch.save(state)
    watch = Watch.load(state, CONCERN)
    assert (watch.alarms, watch.acknowledged) == (others, of_all)
    go_on(watch, path)
    assert watch.alarms == others, "without new rows there is no new alarm"
    go_on(watch, write(path, [*bad, *rows(400, rate=0.4, seed=1)]))
    again = [alarm for alarm in watch.alarms if alarm not in others]
    assert {(alarm.kind, alarm.name) for alarm in again} == {
        (alarm.kind, alarm.name) for alarm in of_all
    }
    assert all(alarm.row > 400 for alarm in again)
    with Refused("monitored", "names", "errors of sample"):
        watch.acknowledge("errors of sample")
    watch.acknowledge()
    assert watch.alarms == []
    assert not any(monitor.alarms().any() for monitor in watch.monitors.values())


def log_of(tmp_path: Path, content: Sequence[tuple[str, str]], number: int = 400) -> Watch:
    """Watch a log of so many rows of decision and label, in turn."""
    path = write(
        tmp_path / "log.csv",
        [list(content[place % len(content)]) for place in range(number)],
        HEADER[2::2],
    )
    settings = Settings("0" * 64, ["any <= 0.2 of bad", "any <= 0.2"])
    return go_on(Watch(settings, CONCERN), path)


def test_decisions_and_limits_without_labels_are_cautions(tmp_path: Path) -> None:
    alike = [("good", "good"), ("good", ""), ("bad", "bad"), ("bad", "")]
    assert log_of(tmp_path, alike).cautions() == []
    of_bad = log_of(tmp_path, [("good", ""), ("good", ""), ("good", ""), ("bad", "bad")])
    due = "labels stand for 0 of 300 rows decided good, where 75 are due"
    assert (
        of_bad.cautions()[0]
        == f"{due}: rates of rows with a label are not those of all rows."
    )
    assert "100 of 100 rows decided bad, where 25 are due" in of_bad.cautions()[1]
    of_bad.save(tmp_path / "state.json")
    assert Watch.load(tmp_path / "state.json", CONCERN).cautions() == of_bad.cautions()
    assert log_of(tmp_path, [("good", "good")]).cautions() == [
        "no label has tested 'errors of bad'."
    ]
    assert log_of(tmp_path, [("good", "")]).cautions() == [
        "no label has tested 'errors of bad', 'errors of samples'."
    ]
    assert log_of(tmp_path, alike, 0).cautions() == []


def test_labels_are_counted_by_their_chance(tmp_path: Path) -> None:
    def cautions(audited: float, complaints: float) -> list[str]:
        draw, content = random.Random(0), list[list[str]]()
        for _ in range(6000):
            is_labelled = draw.random() < audited or draw.random() < complaints
            content.append(
                ["refer", "bad", "1"]
                if draw.random() < 0.2
                else ["good", "bad" * is_labelled, "0.1"]
            )
        path = write(tmp_path / "log.csv", content, ["decision", "target", "chance"])
        settings = Settings("0" * 64, ["any <= 0.9"], least_chance=0.1)
        return go_on(Watch(settings, CONCERN), path).cautions()

    assert cautions(0.1, 0.0) == []
    assert [text.split(", where")[0].split(" of ")[1] for text in cautions(0.1, 0.1)] == [
        "4752 rows decided good"
    ]
    assert "rows decided good" in cautions(0.0, 0.0)[0]


def test_audits_are_weighted_by_their_chance(tmp_path: Path) -> None:
    content = [
        ["good", "good" if place % 2 else "bad", "0.5" if place % 4 else "1"]
        for place in range(40)
    ]
    path = write(tmp_path / "log.csv", content, ["decision", "target", "chance"])
    watch = go_on(
        Watch(Settings("0" * 64, ["any <= 0.9"], least_chance=0.5), CONCERN), path
    )
    monitor = watch.monitors[RISK]
    assert (monitor.loss.item(), monitor.samples.item()) == (
        10 * 1 + 10 * 0.5,
        30 * 1 + 10 * 0.5,
    )
    with refused_file("chance_of_label, row 2, column chance", minimum=1.0):
        go_on(Watch(Settings("0" * 64, ["any <= 0.9"]), CONCERN), path)
    with refused_file("has_named_column", name="chance", option="--least-chance"):
        go_on(watch, write(tmp_path / "other.csv", rows(3)))


def test_groups_that_are_not_watched_count_only_for_the_whole(tmp_path: Path) -> None:
    content = [["t", "west", "good", "0.5", "bad"] for _ in range(10)]
    watch = watched(tmp_path, content)
    assert watch.monitors[RISK].samples.tolist() == [0, 0, 10]


def test_rows_without_a_group_are_a_group(tmp_path: Path) -> None:
    log = write(
        tmp_path / "log.csv",
        [["t", site, "good", "0.5", "bad"] for site in ("", "north", "")],
    )
    sites = names_of_groups(log, "site")
    assert sites == ["(none)", "north"]
    settings = Settings("0" * 64, SETTINGS.limits, {"site": sites})
    assert go_on(Watch(settings, CONCERN), log).monitors[RISK].samples.tolist() == [2, 1, 3]


BAD: list[tuple[dict[int, str], str]] = [
    ({2: "maybe"}, "decision_of, row 3, column decision"),
    ({4: "ugly"}, "label_of, row 3, column target"),
    ({2: "good;"}, "decision_of, row 3, column decision"),
]


@pytest.mark.parametrize(("changed", "refusal"), BAD)
def test_a_bad_row_is_named_and_nothing_is_counted(
    tmp_path: Path, changed: dict[int, str], refusal: str
) -> None:
    content: list[Any] = rows(5)
    for place, value in changed.items():
        content[2][place] = value
    watch = Watch(SETTINGS, CONCERN)
    with refused_file(refusal):
        go_on(watch, write(tmp_path / "log.csv", content))
    assert (watch.rows, watch.positions) == (0, {})


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_what_was_read_must_stay_as_it_was(tmp_path: Path, kind: str) -> None:
    def written(content: list[list[str]]) -> Path:
        if kind == "csv":
            return write(tmp_path / "log.csv", content)
        columns: dict[str, Any] = dict(zip(HEADER, zip(*content, strict=True), strict=True))
        columns["risk"] = [float(risk) for risk in columns["risk"]]
        pq.write_table(pa.table(columns), tmp_path / "log.parquet")
        return tmp_path / "log.parquet"

    content = rows(50)
    watch = go_on(Watch(SETTINGS, CONCERN), written(content))
    unlabelled = next(place for place, row in enumerate(content) if not row[4])
    filled = [
        [*row[:4], "good"] if place == unlabelled else row
        for place, row in enumerate(content)
    ]
    for other in (content[:20], rows(60, seed=9), [*filled, *rows(5)]):
        with refused_file("unchanged_log", number=50):
            go_on(watch, written(other))
    assert go_on(watch, written([*content, *rows(5)])).rows == 55


def test_a_log_without_a_column_of_labels_is_refused(tmp_path: Path) -> None:
    path = write(
        tmp_path / "log.csv", [["good", "1"], ["good", "0"]], ["decision", "Outcome"]
    )
    with refused_file("column_for_labels"):
        rows_of(path)
    assert rows_of(path, ReadOptions("Outcome")).target.tolist() == [1, 0]


def test_the_same_log_by_another_path_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "log.csv", rows(30))
    monkeypatch.chdir(tmp_path)
    watch = go_on(go_on(Watch(SETTINGS, CONCERN), path), Path("log.csv"))
    assert watch.rows == 30


def test_a_last_line_without_its_end_is_left_for_later(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", rows(10))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert len(rows_of(path).decisions) == 9


def test_a_file_that_is_no_state_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    for text in ("", "[]", '{"kind": "other"}', "\xff"):
        state.write_text(text, encoding="latin-1")
        with Refused("state_of_watch", f"{state}:"):
            Watch.load(state, CONCERN)
    Watch(SETTINGS, CONCERN).save(state)
    with Refused("state_of_watch", f"{state}:"):
        Watch.load(state, ConcernSpec(["other", "names"]))


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"kind": "other"}, "kind_of_state"),
        ({"counts": "many"}, "lists_of_numbers"),
        ({"logs": {"log.csv": [0, ""]}}, "place_in_log"),
        ({"alarms": [Alarm(RISK, "none", "log.csv", 1, "")._asdict()]}, "alarm_of_state"),
    ],
)
def test_a_state_with_a_wrong_entry_is_refused(
    tmp_path: Path, changed: dict[str, Any], code: str
) -> None:
    state = tmp_path / "state.json"
    state.write_text(sealed_json(Watch(SETTINGS, CONCERN).plain() | changed))
    with pytest.raises(InvalidValueError) as refused:
        Watch.load(state, CONCERN)
    assert vars(refused.value.__context__)["code"] == code


def test_other_limits_than_classes_are_refused() -> None:
    with Refused("limited_samples", "of"):
        Watch(Settings("0" * 64, [str(Limit(0.1, of="ugly"))]), CONCERN)


def test_logs_with_semicolons_and_decimal_commas_are_read_alike(tmp_path: Path) -> None:
    content, said = rows(60), list[str]()
    by_comma = watched(tmp_path, content)
    lines = [";".join(row).replace(".", ",") for row in [HEADER, *content]]
    (tmp_path / "other.csv").write_text("\n".join(lines) + "\nday 60;north;go")
    watch = Watch(SETTINGS, CONCERN)
    watch.read(tmp_path / "other.csv", ReadOptions(), said.append)
    assert watch.plain()["monitors"] == by_comma.plain()["monitors"]
    dialect = "separated by semicolons, decimal commas"
    assert said == [
        f'other.csv ({dialect}): labels "target"; predicted labels "decision"; not used: risk'
    ]


def test_rows_without_decisions_can_be_left_out_and_keep_their_numbers(
    tmp_path: Path,
) -> None:
    content = [["good", "bad"], ["", "good"], ["bad", ""], ["bad", "bad"]]
    path = write(tmp_path / "log.csv", content, ["decision", "target"])
    with refused_file("decision_of, row 2, column decision"):
        rows_of(path)
    new = rows_of(path, ReadOptions(missing="drop"))
    assert (new.numbers.tolist(), new.target.tolist(), new.position(3)[0]) == (
        [1, 3, 4],
        [1, -100, 1],
        4,
    )
    watch = Watch(Settings("", ["any <= 0.5"]), CONCERN)
    for _ in range(2):
        watch.read(path, ReadOptions(missing="drop"), str)
        assert (watch.rows, watch.labelled) == (3, 2)


def test_a_log_of_scores_alone_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", [["0.5", "0.5", "bad"]], ["good", "bad", "target"])
    with refused_file("has_named_column", name="decision"):
        rows_of(path)


def test_labels_may_all_come_later(tmp_path: Path) -> None:
    path = write(
        tmp_path / "log.csv",
        [["good", ""]] * 300 + [["good", "bad"]],
        ["decision", "label"],
    )
    assert rows_of(path).target.tolist() == [-100] * 300 + [1]


def test_alarms_are_in_the_order_of_rows_whatever_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = [*rows(2000, rate=0.0), *rows(600, rate=0.5, seed=1)]
    settings = Settings("0" * 64, ["any <= 0.3 of bad", "any <= 0.05"], run_length=1000)
    log = write(tmp_path / "log.csv", content)
    whole = go_on(Watch(settings, CONCERN), log).alarms
    assert [alarm.row for alarm in whole] == sorted(alarm.row for alarm in whole)
    assert {alarm.kind for alarm in whole} == {"risk", "change"}
    monkeypatch.setattr("mpcs_torch.monitoring.watch.MAX_AT_ONCE", 70)
    monkeypatch.setattr("mpcs_torch.monitoring.alarm.MAX_AT_ONCE", 30)
    assert go_on(Watch(settings, CONCERN), log).alarms == whole


def estimated_rows(number: int, *, seed: int, heat: float = 1.0) -> list[list[str]]:
    """Draw rows of a rule's decisions with their risks and costs, which are right if ``heat`` is 1."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(number, 2, generator=generator)
    label = torch.multinomial(logits.softmax(1), 1, generator=generator).squeeze(1)
    is_known = torch.rand(number, generator=generator) < 0.5
    rule = DecisionRule(CONCERN, calibration=None)
    assessed = rule.assess(heat * logits)
    names = [*CONCERN.classes, "refer"]
    rows = []
    for row in range(number):
        decision, true = names[assessed.decision[row]], names[label[row]]
        risk, cost = f"{assessed.risk[row]:.6g}", f"{assessed.cost[row]:.6g}"
        rows.append([decision, risk, cost, true if is_known[row] else ""])
    return rows


ESTIMATED = ["decision", "risk", "cost", "target"]


def test_rows_without_an_estimate_are_counted(tmp_path: Path) -> None:
    content = estimated_rows(600, seed=0)
    for row in content[:50]:
        row[1:3] = ["", "nan"]
    decided = sum(
        row[0] != "refer" for row in content[:50]
    )  # a referral has a price without an estimate
    watch = go_on(
        Watch(Settings("0" * 64, ["any <= 0.5"]), CONCERN),
        write(tmp_path / "log.csv", content, ESTIMATED),
    )
    for estimate in watch.estimates():
        assert (estimate.samples, estimate.without) == (600 - decided, decided)
        assert f"(of {600 - decided}; no estimate of {decided} more)" in str(estimate)


@pytest.mark.parametrize(
    ("column", "value", "has_row_costs", "is_refused"),
    [
        ("risk", "1.2", False, True),
        ("risk", "-0.1", True, True),
        ("cost", "-0.1", False, True),
        ("cost", "inf", True, True),
        ("cost", "-0.1", True, False),
    ],
)
def test_risks_and_costs_that_are_none_are_refused(
    column: str, value: str, has_row_costs: bool, is_refused: bool, tmp_path: Path
) -> None:
    content = estimated_rows(60, seed=0)
    content[7][ESTIMATED.index(column)] = value
    watch = Watch(Settings("0" * 64, ["any <= 0.5"], has_row_costs=has_row_costs), CONCERN)
    path = write(tmp_path / "log.csv", content, ESTIMATED)
    if is_refused:
        with refused_file(f"{column}_or_empty, row 8, column {column}"):
            go_on(watch, path)
    else:
        assert go_on(watch, path).rows == 60


def test_costs_of_rows_are_estimated_but_not_compared(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", estimated_rows(600, seed=0), ESTIMATED)
    settings = Settings("0" * 64, ["any <= 0.5"])
    plain = go_on(Watch(settings, CONCERN), path).estimates()
    settings = replace(settings, has_row_costs=True)
    of_rows = go_on(Watch(settings, CONCERN), path).estimates()
    assert plain[0] == of_rows[0]
    assert plain[1].labelled > 0
    assert (of_rows[1].value, of_rows[1].samples, of_rows[1].labelled) == (
        plain[1].value,
        600,
        0,
    )
    assert "not compared with labels, because logs do not have the costs of rows: " in str(
        of_rows[1]
    )


def test_estimates_are_means_of_the_logged_risks_and_costs(tmp_path: Path) -> None:
    content = estimated_rows(600, seed=0)
    path = write(tmp_path / "log.csv", content[:250], ESTIMATED)
    watch = go_on(Watch(Settings("0" * 64, ["any <= 0.5"]), CONCERN), path)
    write(path, content, ESTIMATED)
    watch = go_on(watch, path, state=tmp_path / "state.json")
    price = float(CONCERN.costs()[0, -1])
    rows = [(one, float(risk), float(cost), label) for one, risk, cost, label in content]
    risks = [0.0 if one == "refer" else risk for one, risk, _, _ in rows]
    costs = [price if one == "refer" else cost for one, _, cost, _ in rows]
    known = [place for place, row in enumerate(rows) if row[3]]
    names = list(CONCERN.classes)
    dangerous, cost = watch.estimates()
    assert dangerous.value == pytest.approx(sum(risks) / 600)
    assert cost.value == pytest.approx(sum(costs) / 600)
    assert dangerous.labelled == cost.labelled == len(known)
    dangerous_pairs = CONCERN.dangerous_pairs()
    wrong = []
    for decision, _, _, label in [rows[place] for place in known]:
        is_decided = decision != "refer"
        pair = names.index(label), names.index(decision) if is_decided else 0
        wrong.append(is_decided and bool(dangerous_pairs[pair]))
    assert dangerous.difference == pytest.approx(
        (sum(wrong) - sum(risks[place] for place in known)) / len(known)
    )
    low, high = anytime_interval(torch.tensor(sum(wrong)), torch.tensor(len(known)))
    estimated = sum(risks[place] for place in known) / len(known)
    assert (dangerous.low, dangerous.high) == pytest.approx(
        (low.item() - estimated, high.item() - estimated)
    )
    assert dangerous.sure == "95 %, at any time"
    without = write(
        tmp_path / "other.csv",
        [[row[0], row[3]] for row in content],
        ["decision", "target"],
    )
    assert (
        go_on(Watch(Settings("0" * 64, ["any <= 0.5"]), CONCERN), without).estimates() == []
    )


def test_a_broken_calibration_raises_an_alarm_and_a_sound_one_does_not(
    tmp_path: Path,
) -> None:
    """Of 40 logs, read ten times each, at most one of a calibrated rule ever has an alarm; all others have one."""
    ever = {1.0: 0, 3.0: 0}
    for heat in ever:
        for seed in range(20):
            watch = Watch(Settings("0" * 64, ["any <= 0.5"]), CONCERN)
            path, alarms = tmp_path / f"{heat}{seed}.csv", 0
            content = estimated_rows(2000, seed=seed, heat=heat)
            for end in range(200, 2001, 200):
                write(path, content[:end], ESTIMATED)
                watch.read(path, ReadOptions(), str)
                alarms += any(estimate.is_alarm for estimate in watch.estimates())
            ever[heat] += alarms > 0
    assert ever[1.0] <= 1
    assert ever[3.0] == 20
