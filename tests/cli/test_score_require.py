"""``mpcs score --require``: the table, JSON, the report, the exit status, and typing errors."""

import json
from pathlib import Path

import pytest

from mpcs_torch.errors import ExitStatus
from tests.cli.shell import one_line, run
from tests.cli.test_score_models import CONCERN, write

HELD, FAILED = "recall[red] > 0.1", "misclassification_rate < 0.1 %"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    (tmp_path / "concern.yaml").write_text(CONCERN)
    return [
        write(tmp_path / f"{name}.csv", skill) for name, skill in (("A", 1.0), ("B", 1.2))
    ]


def score(files: list[Path], *arguments: object) -> int:
    return run("score", *files, *arguments)


def test_what_holds_is_the_last_table(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert score(files[:1], "--require", HELD, "--require", "mpcs < 1.3") == 0
    table = capsys.readouterr().out.split("\n\n")[-1].splitlines()
    assert [cell.strip() for cell in table[0].strip("|").split("|")][:2] == [
        "requirement",
        "holds",
    ]
    assert [line.split("|")[1].strip() for line in table[2:]] == [HELD, "mpcs < 1.3"]
    assert all(line.split("|")[2].strip() == "yes" for line in table[2:])


def test_a_failure_exits_with_status_3_and_says_which(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "r.html"
    assert (
        score(files[:1], "--require", HELD, "--require", FAILED, "--json", "--html", page)
        == ExitStatus.NOT_MET
    )
    out, err = capsys.readouterr()
    rows = json.loads(out)["requirements"]
    assert [(row["requirement"], row["holds"]) for row in rows] == [
        (HELD, True),
        ("misclassification_rate < 0.1 %", False),
    ]
    assert rows[0]["bound"] == pytest.approx(
        json.loads(out)["per_class"]["red"]["intervals"]["recall"][0]
    )
    assert "mpcs: 1 of 2 tests of requirements failed:" in err
    assert HELD not in err
    assert "<h2>Requirements</h2>" in page.read_text()


def test_a_model_is_tested_against_another_one(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert score(files, "--require", "misclassification_rate < A + 0.5", "--json") == 0
    [row] = json.loads(capsys.readouterr().out)["requirements"]
    assert (row["model"], row["group"]) == ("B", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--require", "mpcs 0.1"], "must read like"),
        (["--require", "mcps < 0.1"], "did you mean mpcs?"),
        (["--require", "recall[rad] > 0.1"], "did you mean recall[red]"),
        (["--require", "mpcs < C"], "model must be one of ['A', 'B']"),
        (["--no-intervals", "--require", "mpcs < A"], "compared by nothing"),
    ],
)
def test_a_typing_error_is_told_before_rows_are_measured(
    arguments: list[str],
    message: str,
    files: list[Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mpcs_torch.evaluation.evaluation import Evaluation

    monkeypatch.setattr(
        Evaluation, "count_repeats", lambda *_: pytest.fail("rows were measured")
    )
    assert score(files, *arguments) == 2
    assert message in one_line(capsys.readouterr().err)
