"""``mpcs monitor``: states, alarms, reports, and settings that stay."""

import json
import re
from pathlib import Path

import pytest
import torch

from mpcs_torch import ConcernSpec
from mpcs_torch.exit_statuses import ExitStatus
from mpcs_torch.learning import DecisionRule, Limit
from mpcs_torch.tables import in_percent
from tests.cli.printed import printed_tables
from tests.cli.shell import one_line, run
from tests.monitoring.test_watch import HEADER, rows, write
from tests.report.page import Page
from tests.report.test_hostile_names import check


@pytest.fixture
def rule(tmp_path: Path) -> Path:
    path = tmp_path / "rule.pt"
    DecisionRule(ConcernSpec(["good", "bad"], refer=0.3), calibration=None).save(path)
    return path


def test_a_log_that_grows_is_read_on_until_there_is_an_alarm(
    rule: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, state, page = (tmp_path / name for name in ("log.csv", "state.json", "page.html"))
    write(log, rows(300, rate=0.01))
    settings = (
        "--limit",
        "any <= 5 % of bad by site",
        "--limit",
        "any <= 5 %",
        "--run-length",
        "100000",
    )
    outputs = ("--html", page, "--overwrite")
    assert run("monitor", rule, log, "--state", state, *settings, *outputs) == 0
    told = capsys.readouterr()
    read = 'log.csv: labels "target"; predicted labels "decision"; not used: risk'
    assert told.out.startswith(f"{read}\nIt is not shown that ")
    known = re.search(
        r"that 'errors of bad, site (\w+)' keeps its limit, 5 %: it is \S+ % so far, and may be as high as (\S+) %, "
        r"by \d+ samples \(confidence 0\.95\)\. There is no alarm in .* with a label\.\n",
        told.out,
    )
    assert known is not None
    assert 5 < float(known[2]) < 50
    assert "it is no p-value" in told.out
    risk, change = printed_tables(told.out)
    assert [row[0] for row in risk.rows] == [
        "errors of bad, site north",
        "errors of bad, site south",
        "errors of samples",
    ]
    assert [row[4] for row in risk.rows] == ["5 %"] * 3
    [row] = [row for row in risk.rows if row[0] == f"errors of bad, site {known[1]}"]
    assert row[3].endswith(f" to {known[2]} %")
    assert [row[0] for row in change.rows] == [row[0] for row in risk.rows]
    assert "There is no alarm in 300 rows" in told.out
    with log.open("a") as file:
        file.writelines(",".join(row) + "\n" for row in rows(600, rate=0.5, seed=1))
    assert run("monitor", rule, log, "--state", state, *outputs) == ExitStatus.ALARM
    told = capsys.readouterr()
    first, later = rows(300, rate=0.01), rows(600, rate=0.5, seed=1)
    old, new = ([row[2] for row in part].count("refer") for part in (first, later))
    labelled = sum(row[4] != "" for row in later)
    assert f"600 new rows, {labelled} of them with a label. " in told.out
    share, of_all = in_percent(new / 600), in_percent((old + new) / 900)
    assert f"{share} of them are referrals, {of_all} of all 900 rows." in told.out
    assert re.search(
        r"Alarm: 'errors of samples' is above its limit, known from row 3\d\d of .*log.csv \(day \d+\) on",
        told.err,
    )
    assert run("monitor", rule, log, "--state", state, "--json") == ExitStatus.ALARM, (
        "an alarm stays"
    )
    plain = json.loads(capsys.readouterr().out)
    assert (plain["rows"], plain["referred"]) == (900, new + old)
    assert plain["read"] == [read]
    assert {alarm["kind"] for alarm in plain["alarms"]} == {"risk", "change"}
    [of_all_samples] = [
        mean for mean in plain["risk"] if mean["name"] == "errors of samples"
    ]
    assert (of_all_samples["highest"], of_all_samples["is_alarm"]) == (0.05, True)
    assert 0.05 < of_all_samples["low"] < of_all_samples["rate"] < of_all_samples["high"]
    shown = Page(page)
    assert "is above its limit" in shown.text
    assert f"{old + new} of 900" in shown.text
    assert "Evidence is what a bet that the limit is exceeded has won" in shown.text
    check(shown)


def test_an_alarm_stays_until_it_is_acknowledged(
    rule: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, page = rows(400, rate=0.4), tmp_path / "page.html"
    log, state = write(tmp_path / "log.csv", bad), tmp_path / "state.json"
    limits = ("--limit", "any <= 5 %", "--limit", "any <= 5 % of bad")
    assert run("monitor", rule, log, "--state", state, *limits) == ExitStatus.ALARM
    write(log, [*bad, *rows(4000, rate=0.0, seed=1)])
    assert run("monitor", rule, log, "--state", state) == ExitStatus.ALARM
    assert (
        run("monitor", rule, log, "--state", state, "--acknowledge", "errors of worse") == 2
    )
    assert "'errors of worse': did you mean errors of " in one_line(capsys.readouterr().err)
    assert (
        run("monitor", rule, log, "--state", state, "--acknowledge", "errors of bad")
        == ExitStatus.ALARM
    )
    told = capsys.readouterr().out
    assert (
        "acknowledged: Alarm: 'errors of bad' is above its limit, known from row " in told
    )
    [risk] = printed_tables(told)
    assert [(row[0], row[-1]) for row in risk.rows] == [
        ("errors of samples", "yes"),
        ("errors of bad", "no"),
    ]
    assert (
        run("monitor", rule, log, "--state", state, "--acknowledge", "all", "--html", page)
        == 0
    )
    assert "alarm (2 acknowledged) in 4400 rows" in Page(page).text
    told = capsys.readouterr().out
    new_test = "was acknowledged: a new test of its limit, 5 %, has {} samples so far"
    assert told.count(new_test.format(0)) == 2
    assert "It is not shown" not in told, "the old alarm has shown the opposite"
    later = [*bad, *rows(4000, rate=0.0, seed=1), *rows(400, rate=0.0, seed=2)]
    write(log, later)
    assert run("monitor", rule, log, "--state", state) == 0
    labels = [row[4] for row in later[4400:]]
    assert new_test.format(len(labels) - labels.count("")) in capsys.readouterr().out
    capsys.readouterr()
    assert run("monitor", rule, log, "--state", state, "--json") == 0
    plain = json.loads(capsys.readouterr().out)
    assert (plain["alarms"], [alarm["name"] for alarm in plain["acknowledged"]]) == (
        [],
        ["errors of bad", "errors of samples"],
    )


def test_names_of_groups_are_no_markup(rule: Path, tmp_path: Path) -> None:
    name = "<script>alert(1)</script>"
    log = write(
        tmp_path / "log.csv", [[*row[:1], name, *row[2:]] for row in rows(80)], HEADER
    )
    settings = ("--limit", "any <= 0.2 by site", "--html", tmp_path / "page.html")
    assert run("monitor", rule, log, "--state", tmp_path / "state.json", *settings) == 0
    page = Page(tmp_path / "page.html")
    check(page)
    assert name in page.text


def test_a_rule_for_clusters_is_monitored_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logits = torch.tensor([[4.0, 0.0], [0.0, 4.0]]).repeat(400, 1)
    target = torch.tensor([0, 1]).repeat(400)
    concern = ConcernSpec(["good", "bad"], refer=0.3)
    for clusters, expected in ((None, False), (torch.arange(800) // 4, True)):
        path, log = tmp_path / f"{expected}.pt", write(tmp_path / "log.csv", rows(20))
        DecisionRule(concern, Limit(0.1, "any"), calibration=None).fit(
            logits, target, clusters=clusters
        ).save(path)
        assert (
            run(
                "monitor",
                path,
                log,
                "--state",
                tmp_path / f"{expected}.json",
                "--overwrite",
            )
            == 0
        )
        warned = one_line(capsys.readouterr().err)
        assert ("E2: the rule was fitted to clusters" in warned) is expected
        assert ("with `chance` 1 / (its rows) and --least-chance" in warned) is expected
    by_cluster = (
        "--cluster-size",
        "4",
        "--state",
        tmp_path / "clusters.json",
        "--overwrite",
    )
    assert run("monitor", path, log, *by_cluster) == 0
    captured = capsys.readouterr()
    assert "E2" not in captured.err
    assert "at most 4 rows are taken to err together" in captured.out
    [risk] = printed_tables(captured.out)
    assert risk.rows[0][1] == str(len(labelled(log)) / 4)


def test_limits_that_are_kept_are_said_to_be(
    rule: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write(tmp_path / "log.csv", rows(2000, rate=0.0))
    assert (
        run(
            "monitor",
            rule,
            log,
            "--state",
            tmp_path / "state.json",
            "--limit",
            "any <= 5 %",
        )
        == 0
    )
    assert re.search(
        r"Limits are kept: 'errors of samples', the least known rate, is at most 0\.\d+ %",
        capsys.readouterr().out,
    )


def labelled(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines()[1:] if not line.endswith(",")]


def test_labels_of_one_decision_alone_are_a_caution(
    rule: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = [
        [*row[:4], row[4] if row[2] == "bad" else ""] for row in rows(3000, rate=0.1)
    ]
    log, page = write(tmp_path / "log.csv", content), tmp_path / "page.html"
    given = (
        "--state",
        tmp_path / "state.json",
        "--limit",
        "any <= 20 % of bad",
        "--html",
        page,
    )
    assert run("monitor", rule, log, *given) == ExitStatus.NO_PROMISE
    lines = capsys.readouterr().out.splitlines()[1:]
    cautions = [line for line in lines if line.startswith("CAUTION: ")]
    assert len(cautions) >= 2
    first, after = lines[0], lines[len(cautions)]
    assert first.startswith("CAUTION: labels stand for 0 of ")
    assert first.endswith("rates of rows with a label are not those of all rows.")
    assert after.endswith("shows nothing with such labels.")
    assert all(line in Page(page).text for line in [*cautions, after])
    assert (
        run("monitor", rule, log, "--state", tmp_path / "state.json", "--json")
        == ExitStatus.NO_PROMISE
    )
    plain = json.loads(capsys.readouterr().out)
    assert plain["cautions"][0] in first
