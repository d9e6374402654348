"""Confusion matrices in files: the deck's language recognition, any counts, and files that are something else."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import balanced_accuracy_score, matthews_corrcoef

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.evaluation.confusion import read_confusion, score_confusion
from mpcs_torch.evaluation.files.chunks import PredictionsError
from tests.cli.test_cli import one_line, run
from tests.conftest import load_oracle

DIALECTS = Path(__file__).parents[3] / "examples" / "data" / "dialects.csv"


def test_the_decks_homework_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    expected = load_oracle("dialect_confusion")
    assert run("score", "--confusion", DIALECTS, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    homework = expected["homework"]
    assert found["confusion"] == expected["matrix"]
    assert found["rows"] == expected["total"]
    assert found["metrics"]["misclassification_rate"] == pytest.approx(homework["weighted_error_rate"]["value"])
    assert found["metrics"]["balanced_error_rate"] == pytest.approx(homework["unweighted_error_rate"]["value"])
    assert found["per_class"]["RUS"]["error_rate"] == pytest.approx(homework["russian_error_rate"]["value"])
    for name, row in expected["per_class"].items():
        assert found["per_class"][name]["precision"] == pytest.approx(row["precision"])


@given(counts=arrays(np.int64, (3, 3), elements=st.integers(0, 40)).filter(lambda c: (c.sum(axis=1) > 0).all()))
def test_values_are_those_of_the_samples_it_counts(counts: "np.ndarray[tuple[int, int], np.dtype[np.int64]]") -> None:
    true, predicted = (np.repeat(labels.flatten(), counts.flatten()) for labels in np.indices((3, 3)))
    with TemporaryDirectory() as folder:
        values = score_confusion(written(Path(folder), counts.tolist(), "abc"), None).first.values
    assert values["balanced_error_rate"] == pytest.approx(1 - balanced_accuracy_score(true, predicted))
    assert values["mcc"] == pytest.approx(matthews_corrcoef(true, predicted), abs=1e-12)


def test_a_concern_says_which_errors_are_dangerous(tmp_path: Path) -> None:
    concern = ConcernSpec(["a", "b"], releases=[("a", "b")])
    path = written(tmp_path, [[5, 2], [3, 9]], "ab")
    assert score_confusion(path, concern).first.values["dangerous"] == 3
    with pytest.raises(PredictionsError, match=r"must have the classes of the concern, \['b', 'a'\]"):
        score_confusion(path, ConcernSpec(["b", "a"]))


def test_a_report_is_written(tmp_path: Path) -> None:
    assert run("score", "--confusion", DIALECTS, "--html", tmp_path / "report.html") == 0
    assert (tmp_path / "report.html").read_text().count("<img src=") == 1


def test_what_needs_scores_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("score", "--confusion", DIALECTS, "--k", 3) == 2
    assert "--k: is for scores, which a confusion matrix does not have" in one_line(capsys.readouterr().err)
    assert run("score", "--confusion", DIALECTS, "--metrics", "accuracy,mpcs") == 2
    assert "holds decisions alone, but mpcs must have more" in one_line(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"must begin with a header of an empty cell and at least two class names that differ, but begins with"),
        (",a\na,1\n", "at least two class names that differ"),
        (",a,a\na,1,2\na,3,4\n", "at least two class names that differ"),
        (",a,b\nb,1,2\na,3,4\n", r"must have a row for each class in the order of the header, but has \['b', 'a'\]"),
        (",a,b\na,1,2\n", r"a row for each class in the order of the header, but has \['a'\]"),
        (",a,b\na,1\nb,3,4\n", "row 1: must have 2 counts, but has 1"),
        (",a,b\na,1,2\nb,3,0.5\n", "row 2, column b: must be a whole number of at least 0, but is '0.5'"),
        (",a,b\na,1,-2\nb,3,4\n", "row 1, column b: must be a whole number of at least 0, but is '-2'"),
        (",a,b\na,0,0\nb,0,0\n", "must count from 1 to 9007199254740992 samples, but counts 0"),
        (",a,b\na,9007199254740992,0\nb,0,1\n", "must count from 1 to 9007199254740992 samples"),
        ("a\x00b", "cannot be read|must begin with a header"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "matrix.csv"
    path.write_text(text)
    with pytest.raises(PredictionsError, match=message):
        read_confusion(path)


def written(folder: Path, counts: list[list[int]], names: str) -> Path:
    rows = [["", *names], *([name, *map(str, row)] for name, row in zip(names, counts, strict=True))]
    path = folder / "matrix.csv"
    path.write_text("\n".join(",".join(row) for row in rows))
    return path
