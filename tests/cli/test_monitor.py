"""``mpcs monitor``: states, alarms, reports, and settings that stay."""

import re
from pathlib import Path

import pytest
import torch

from mpcs_torch import ConcernSpec
from mpcs_torch.exit_statuses import ExitStatus
from mpcs_torch.learning import DecisionRule, Limit
from mpcs_torch.tables import in_percent
from tests.cli.printed import printed_tables
from tests.cli.shell import Shell, one_line
from tests.monitoring.test_watch import HEADER, rows, write
from tests.report.page import Page
from tests.report.test_hostile_names import check

CONCERN = ConcernSpec(["good", "bad"], refer=0.3)
MONITOR = "monitor rule.pt log.csv --state state.json"
LOG = Path("log.csv")


@pytest.fixture(autouse=True)
def _rule(mpcs: Shell) -> None:
    DecisionRule(CONCERN, calibration=None).save("rule.pt")


def referrals_in(content: list[list[str]]) -> int:
    decision = HEADER.index("decision")
    return sum(row[decision] == "refer" for row in content)


def labels_in(content: list[list[str]]) -> int:
    target = HEADER.index("target")
    return sum(row[target] != "" for row in content)


def test_a_log_that_grows_is_read_on_until_there_is_an_alarm(mpcs: Shell) -> None:
    first, later = rows(300, rate=0.01), rows(600, rate=0.5, seed=1)
    write(LOG, first)
    limits = "--limit 'any <= 5 % of bad by site' --limit 'any <= 5 %'"
    outputs = "--html page.html --overwrite"
    printed = mpcs(f"{MONITOR} {limits} --run-length 100000 {outputs}").out
    read = 'log.csv: labels "target"; predicted labels "decision"; not used: risk'
    assert printed.startswith(f"{read}\nIt is not shown that ")
    known = re.search(
        r"that 'errors of bad, site (\w+)' keeps its limit, 5 %: it is \S+ % so far, and may be as high as (\S+) %, "
        r"by \d+ samples \(confidence 0\.95\)\. There is no alarm in .* with a label\.\n",
        printed,
    )
    assert known is not None
    assert 5 < float(known[2]) < 50
    assert "it is no p-value" in printed
    risk, change = printed_tables(printed)
    names = [f"errors of {of}" for of in ("bad, site north", "bad, site south", "samples")]
    assert [(row[0], row[4]) for row in risk.rows] == [(name, "5 %") for name in names]
    [row] = [row for row in risk.rows if row[0] == f"errors of bad, site {known[1]}"]
    assert row[3].endswith(f" to {known[2]} %")
    assert [row[0] for row in change.rows] == names
    assert "There is no alarm in 300 rows" in printed
    with LOG.open("a") as file:
        file.writelines(",".join(row) + "\n" for row in later)
    alarmed = mpcs(f"{MONITOR} {outputs}", ExitStatus.ALARM)
    old, new = referrals_in(first), referrals_in(later)
    assert f"600 new rows, {labels_in(later)} of them with a label. " in alarmed.out
    share, of_all = in_percent(new / 600), in_percent((old + new) / 900)
    assert f"{share} of them are referrals, {of_all} of all 900 rows." in alarmed.out
    assert re.search(
        r"Alarm: 'errors of samples' is above its limit, known from row 3\d\d of .*log.csv \(day \d+\) on",
        alarmed.err,
    )
    plain = mpcs.json(MONITOR, ExitStatus.ALARM)  # an alarm stays
    assert (plain["rows"], plain["referred"]) == (900, new + old)
    assert plain["read"] == [read]
    assert {alarm["kind"] for alarm in plain["alarms"]} == {"risk", "change"}
    of_samples = plain["risk"][2]
    assert (of_samples["highest"], of_samples["is_alarm"]) == (0.05, True)
    assert 0.05 < of_samples["low"] < of_samples["rate"] < of_samples["high"]
    page = Page(Path("page.html"))
    assert "is above its limit" in page.text
    assert f"{old + new} of 900" in page.text
    assert "Evidence is what a bet that the limit is exceeded has won" in page.text
    check(page)


def test_an_alarm_stays_until_it_is_acknowledged(mpcs: Shell) -> None:
    content = rows(400, rate=0.4)
    write(LOG, content)
    mpcs(f"{MONITOR} --limit 'any <= 5 %' --limit 'any <= 5 % of bad'", ExitStatus.ALARM)
    content += rows(4000, rate=0.0, seed=1)
    write(LOG, content)
    mpcs(MONITOR, ExitStatus.ALARM)
    refused = mpcs.refusal(f"{MONITOR} --acknowledge 'errors of worse'")
    assert "'errors of worse': did you mean errors of " in refused
    printed = mpcs(f"{MONITOR} --acknowledge 'errors of bad'", ExitStatus.ALARM).out
    known = "'errors of bad' is above its limit, known from row "
    assert f"acknowledged: Alarm: {known}" in printed
    [risk] = printed_tables(printed)
    assert [(row[0], row[-1]) for row in risk.rows] == [
        ("errors of samples", "yes"),
        ("errors of bad", "no"),
    ]
    printed = mpcs(f"{MONITOR} --acknowledge all --html page.html").out
    assert "alarm (2 acknowledged) in 4400 rows" in Page(Path("page.html")).text
    new_test = "was acknowledged: a new test of its limit, 5 %, has {} samples so far"
    assert printed.count(new_test.format(0)) == 2
    assert "It is not shown" not in printed, "the old alarm has shown the opposite"
    new = rows(400, rate=0.0, seed=2)
    write(LOG, [*content, *new])
    assert new_test.format(labels_in(new)) in mpcs(MONITOR).out
    plain = mpcs.json(MONITOR)
    assert plain["alarms"] == []
    assert [alarm["name"] for alarm in plain["acknowledged"]] == [
        "errors of bad",
        "errors of samples",
    ]


def test_names_of_groups_are_no_markup(mpcs: Shell) -> None:
    name = "<script>alert(1)</script>"
    write(LOG, [[*row[:1], name, *row[2:]] for row in rows(80)], HEADER)
    mpcs(f"{MONITOR} --limit 'any <= 0.2 by site' --html page.html")
    page = Page(Path("page.html"))
    check(page)
    assert name in page.text


def test_a_rule_for_clusters_is_monitored_with_a_warning(mpcs: Shell) -> None:
    logits = torch.tensor([[4.0, 0.0], [0.0, 4.0]]).repeat(400, 1)
    target = torch.tensor([0, 1]).repeat(400)
    write(LOG, rows(20))
    warnings = list[str]()
    for name, clusters in (("rows", None), ("clusters", torch.arange(800) // 4)):
        rule = DecisionRule(CONCERN, Limit(0.1, "any"), calibration=None)
        rule.fit(logits, target, clusters=clusters).save(f"{name}.pt")
        printed = mpcs(f"monitor {name}.pt log.csv --state {name}.json")
        warnings.append(one_line(printed.err))
    for part in (
        "E2: the rule was fitted to clusters",
        "with `chance` 1 / (its rows) and --least-chance",
    ):
        assert [part in warning for warning in warnings] == [False, True]
    printed = mpcs("monitor clusters.pt log.csv --cluster-size 4 --state state.json")
    assert "E2" not in printed.err
    assert "at most 4 rows are taken to err together" in printed.out
    [risk] = printed_tables(printed.out)
    _, *lines = LOG.read_text().splitlines()
    labels = sum(not line.endswith(",") for line in lines)
    assert risk.rows[0][1] == str(labels / 4)


def test_limits_that_are_kept_are_said_to_be(mpcs: Shell) -> None:
    write(LOG, rows(2000, rate=0.0))
    kept = (
        r"Limits are kept: 'errors of samples', the least known rate, is at most 0\.\d+ %"
    )
    assert re.search(kept, mpcs(f"{MONITOR} --limit 'any <= 5 %'").out)


def test_labels_of_one_decision_alone_are_a_caution(mpcs: Shell) -> None:
    content = rows(3000, rate=0.1)
    write(LOG, [[*row[:4], row[4] if row[2] == "bad" else ""] for row in content])
    options = "--limit 'any <= 20 % of bad' --html page.html"
    printed = mpcs(f"{MONITOR} {options}", ExitStatus.NO_PROMISE).out
    _, *lines = printed.splitlines()
    cautions = [line for line in lines if line.startswith("CAUTION: ")]
    assert len(cautions) >= 2
    first, after = lines[0], lines[len(cautions)]
    assert first.startswith("CAUTION: labels stand for 0 of ")
    assert first.endswith("rates of rows with a label are not those of all rows.")
    assert after.endswith("shows nothing with such labels.")
    page = Page(Path("page.html"))
    assert all(line in page.text for line in [*cautions, after])
    plain = mpcs.json(MONITOR, ExitStatus.NO_PROMISE)
    assert plain["cautions"][0] in first
