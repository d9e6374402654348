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
from tests.cli.shell import one_line, run
from tests.conftest import load_oracle
from tests.refused import refused_file

DIALECTS = Path(__file__).parents[3] / "examples" / "data" / "dialects.csv"


def test_the_decks_homework_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    expected = load_oracle("dialect_confusion")
    assert run("score", "--confusion", DIALECTS, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    homework = expected["homework"]
    assert found["confusion"] == expected["matrix"]
    assert found["rows"] == expected["total"]
    assert found["metrics"]["misclassification_rate"] == pytest.approx(
        homework["weighted_error_rate"]["value"]
    )
    assert found["metrics"]["balanced_error_rate"] == pytest.approx(
        homework["unweighted_error_rate"]["value"]
    )
    assert found["per_class"]["RUS"]["error_rate"] == pytest.approx(
        homework["russian_error_rate"]["value"]
    )
    for name, row in expected["per_class"].items():
        assert found["per_class"][name]["precision"] == pytest.approx(row["precision"])


@pytest.mark.slow
@given(
    counts=arrays(np.int64, (3, 3), elements=st.integers(0, 40)).filter(
        lambda c: (c.sum(axis=1) > 0).all()
    )
)
def test_values_are_those_of_the_samples_it_counts(
    counts: "np.ndarray[tuple[int, int], np.dtype[np.int64]]",
) -> None:
    true, predicted = (
        np.repeat(labels.flatten(), counts.flatten()) for labels in np.indices((3, 3))
    )
    with TemporaryDirectory() as folder:
        values = score_confusion(
            written(Path(folder), counts.tolist(), "abc"), None
        ).first.values
    assert values["balanced_error_rate"] == pytest.approx(
        1 - balanced_accuracy_score(true, predicted)
    )
    assert values["mcc"] == pytest.approx(matthews_corrcoef(true, predicted), abs=1e-12)


def test_a_concern_says_which_errors_are_dangerous(tmp_path: Path) -> None:
    concern = ConcernSpec(["a", "b"], releases=[("a", "b")])
    path = written(tmp_path, [[5, 2], [3, 9]], "ab")
    assert score_confusion(path, concern).first.values["dangerous"] == 3
    in_its_order = ConcernSpec(["b", "a"], releases=[("b", "a")])
    assert score_confusion(path, in_its_order).first.values["dangerous"] == 2
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
    assert counts[
        [[names.index(name)] for name in "ab"], [names.index(name) for name in "ab"]
    ].tolist() == [
        [5, 2],
        [3, 9],
    ]
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


def written(folder: Path, counts: list[list[int]], names: str) -> Path:
    rows = [
        ["", *names],
        *([name, *map(str, row)] for name, row in zip(names, counts, strict=True)),
    ]
    path = folder / "matrix.csv"
    path.write_text("\n".join(",".join(row) for row in rows))
    return path
