"""``mpcs score --require``: the table, JSON, the report, the exit status, and typing errors."""

import json
from pathlib import Path

import pytest

from mpcs_torch.evaluation.evaluation import Evaluation
from mpcs_torch.exit_statuses import ExitStatus
from tests.cli.printed import printed_tables
from tests.cli.shell import Shell
from tests.cli.test_score_models import write

HELD, FAILED = "recall[red] > 0.1", "misclassification_rate < 0.1 %"


@pytest.fixture(autouse=True)
def _files(mpcs: Shell) -> None:
    write(Path("A.csv"), 1.0)
    write(Path("B.csv"), 1.2)


def test_what_holds_is_the_last_table(mpcs: Shell) -> None:
    printed = mpcs(f"score A.csv --require '{HELD}' --require 'mpcs < 1.3'").out
    *_, table = printed_tables(printed)
    assert table.header[:2] == ["requirement", "holds"]
    assert [row[:2] for row in table.rows] == [[HELD, "yes"], ["mpcs < 1.3", "yes"]]


def test_a_failure_exits_with_status_3_and_says_which(mpcs: Shell) -> None:
    score = f"score A.csv --require '{HELD}' --require '{FAILED}' --json --html r.html"
    printed = mpcs(score, ExitStatus.NOT_MET)
    plain = json.loads(printed.out)
    rows = plain["requirements"]
    assert [(row["requirement"], row["holds"]) for row in rows] == [
        (HELD, True),
        (FAILED, False),
    ]
    low, _ = plain["per_class"]["red"]["intervals"]["recall"]
    assert rows[0]["bound"] == pytest.approx(low)
    assert "mpcs: 1 of 2 tests of requirements failed:" in printed.err
    assert HELD not in printed.err
    assert "<h2>Requirements</h2>" in Path("r.html").read_text()


def test_a_model_is_tested_against_another_one(mpcs: Shell) -> None:
    score = "score A.csv B.csv --require 'misclassification_rate < A + 0.5'"
    [row] = mpcs.json(score)["requirements"]
    assert (row["model"], row["group"]) == ("B", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--require 'mpcs 0.1'", "must read like"),
        ("--require 'mcps < 0.1'", "did you mean mpcs?"),
        ("--require 'recall[rad] > 0.1'", "did you mean recall[red]"),
        ("--require 'mpcs < C'", "model must be one of ['A', 'B']"),
        ("--no-intervals --require 'mpcs < A'", "compared by nothing"),
    ],
)
def test_a_typing_error_is_told_before_rows_are_measured(
    options: str, message: str, mpcs: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Evaluation, "add_all", lambda *_: pytest.fail("rows were measured"))
    assert message in mpcs.refusal(f"score A.csv B.csv {options}")
