"""Confusion matrices in files: the deck's language recognition, any counts, and files that are something else."""

import json
from pathlib import Path

import pytest

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.evaluation.confusion import read_confusion, score_confusion
from tests.cli.shell import one_line, run
from tests.conftest import load_oracle
from tests.refused import refused_file

DIALECTS = Path(__file__).parents[3] / "examples" / "data" / "dialects.csv"


def test_the_decks_homework_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    expected = load_oracle("dialect_confusion")
    assert run("score", "--confusion", DIALECTS, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["confusion"], found["rows"]) == (expected["matrix"], expected["total"])
    values = {
        "weighted_error_rate": found["metrics"]["misclassification_rate"],
        "unweighted_error_rate": found["metrics"]["balanced_error_rate"],
        "russian_error_rate": found["per_class"]["RUS"]["error_rate"],
    }
    for name, value in values.items():
        assert value == pytest.approx(expected["homework"][name]["value"]), name
    for name, row in expected["per_class"].items():
        assert found["per_class"][name]["precision"] == pytest.approx(row["precision"])


def test_a_concern_says_which_errors_are_dangerous(tmp_path: Path) -> None:
    path = tmp_path / "matrix.csv"
    path.write_text(",a,b\na,5,2\nb,3,9\n")
    for names, dangerous in (("ab", 3), ("ba", 2)):
        concern = ConcernSpec([*names], releases=[[*names]])
        assert score_confusion(path, concern).value("dangerous") == dangerous
    with refused_file("same_classes_as_concern", classes=("b", "c"), names=["a", "b"]):
        score_confusion(path, ConcernSpec(["b", "c"]))


@pytest.mark.parametrize(
    "text",
    [
        ",a,b\na,5,2\nb,3,9\n",
        ";a;b\na;5;2\nb;3;9\n",
        ",b,a\na,2,5\nb,9,3\n",
        "true\\pred,a,b\na,5,2\nb,3,9\n",
        "pred\\true,a,b\na,5,3\nb,2,9\n",
        "label,a,b,All\na,5,2,7\nb,3,9,12\nAll,8,11,19\n",
        "label,a,b,All\na,5,2,7\nb,3,9,12\n",
        "label,a,b\na,5,2\nb,3,9\nAll,8,11\n",
    ],
)
def test_rows_columns_and_sums_are_recognized(text: str, tmp_path: Path) -> None:
    (tmp_path / "matrix.csv").write_text(text)
    names, counts, how = read_confusion(tmp_path / "matrix.csv")
    order = [names.index(name) for name in "ab"]
    assert counts[order][:, order].tolist() == [[5, 2], [3, 9]]
    assert ("rows predicted" in how, "All" in how) == ("pred\\" in text, "All" in text)


def test_a_report_is_written(tmp_path: Path) -> None:
    assert run("score", "--confusion", DIALECTS, "--html", tmp_path / "report.html") == 0
    assert (tmp_path / "report.html").read_text().count("<img src=") == 1


def test_what_needs_scores_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("score", "--confusion", DIALECTS, "--k", 3) == 2
    assert "--k: is for scores, which a confusion matrix does not have" in one_line(
        capsys.readouterr().err
    )
    assert run("score", "--confusion", DIALECTS, "--metrics", "accuracy,mpcs") == 2
    assert "holds decisions alone, but mpcs must have probabilities" in one_line(
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("5,2\n3,9\n", "header_of_classes"),
        (",a\na,1\n", "classes_of_matrix"),
        (",a,b\na,1,2\n", "square"),
        (",true a,true b\npred a,5,3\npred b,2,9\n", "square"),
        (",a,b\na,1,2\na,3,4\nb,3,4\n", "square"),
        (",a,b\na,1\nb,3,4\n", "all_values_of_row, row 1, column b"),
        (",a,b\na,1,2\nb,3,0.5\n", "count, column b"),
        (",a,b\na,1,-2\nb,3,4\n", "count, column b"),
        (",a,b,sum\na,1,2,3\nb,3,4,8\n", "sums_of_counts"),
        ("what,a,b\na,1,2\nb,3,4\n", "corner"),
        (",a,b\na,0,0\nb,0,0\n", "counted_samples"),
        (",a,b\na,9007199254740992,0\nb,0,1\n", "counted_samples"),
        ("a,b\x00c", "known_format"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, refusal: str) -> None:
    path = tmp_path / "matrix.csv"
    path.write_text(text)
    with refused_file(refusal):
        read_confusion(path)
