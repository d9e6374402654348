"""The sentence and the table by class that reports begin with."""

from pathlib import Path

import pytest
import torch
from scipy.stats import binomtest
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.evaluation import evaluate, evaluate_confusion
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.report.error_counts import error_sentence, error_table, max_danger_costs
from tests.cli.shell import must_run
from tests.report.page import Page

CLASSES = ["benign", "naevus", "keratosis", "malignant"]
MISSED = [["malignant", name] for name in CLASSES[:3]]
CONFUSION = torch.tensor(
    [[900, 20, 4, 0], [30, 400, 10, 0], [10, 5, 145, 0], [9, 3, 2, 62]]
)


def scores_of(
    confusion: Tensor, concern: ConcernSpec | None = None, names: list[str] = CLASSES
) -> ClassifierScores:
    return evaluate_confusion(confusion, names, concern=concern).first


def test_errors_are_counted_in_the_rows_of_the_dangerous_class() -> None:
    spec = ConcernSpec(CLASSES, dangerous=MISSED)
    told = error_sentence(scores_of(CONFUSION, spec), spec)
    assert told == "makes dangerous errors on 14 of 76 malignant (18.4 % [10.5, 29])."
    spec = ConcernSpec(CLASSES, dangerous=[*MISSED, ["naevus", "benign"]])
    told = error_sentence(scores_of(CONFUSION, spec), spec)
    assert told.endswith(
        ", 30 of 440 naevus (6.82 % [4.65, 9.59]); 44 of 1600 rows (2.75 % [2.01, 3.67]) in all."
    )


def test_none_of_a_few_is_not_read_as_never() -> None:
    spec = ConcernSpec(CLASSES, dangerous=MISSED)
    told = error_sentence(scores_of(torch.diag(torch.tensor([100, 50, 20, 9])), spec), spec)
    high = binomtest(0, 9).proportion_ci().high
    assert f"on 0 of 9 malignant (but up to {100 * high:.3g} % may be)." in told


def test_patients_are_counted_before_rows() -> None:
    target, decisions = torch.tensor([0, 0, 3, 3, 3, 3]), torch.tensor([0, 0, 3, 0, 0, 3])
    spec = ConcernSpec(CLASSES, dangerous=MISSED)
    scores = evaluate(
        decisions, target, concern=spec, clusters=["a", "a", "b", "c", "c", "c"]
    ).first
    told = error_sentence(scores, spec)
    assert "1 of 2 clusters with malignant (50 % [1.26, 98.7]; 2 of 4 rows: 50 % [" in told
    told = error_sentence(
        evaluate(decisions, target, class_names=CLASSES, clusters=list("aabccc")).first,
        None,
    )
    assert "1 of 3 clusters (33.3 % [0.84, 90.6]; 2 of 6 rows: 33.3 % [" in told


def test_the_class_with_the_dearest_error_comes_first_however_rare() -> None:
    weights = [[0, 1, 1, 2], [1, 0, 1, 2], [1, 1, 0, 2], [20, 20, 10, 0]]
    spec = ConcernSpec(CLASSES, weights=weights, dangerous=2)
    table = error_table(dict.fromkeys(("one", "two"), scores_of(CONFUSION, spec)), spec)
    assert table is not None
    assert table.header[:4] == ["class", "model", "rows", "dangerous errors"]
    assert [row[:3] for row in table.rows[:2]] == [
        ["malignant", "one", "76"],
        ["malignant", "two", "76"],
    ]


def test_what_cannot_be_dangerous_has_no_rate_and_no_interval() -> None:
    spec = ConcernSpec(
        CLASSES, dangerous=MISSED, class_groups={"lesion": ["keratosis", "malignant"]}
    )
    table = error_table({"one": scores_of(CONFUSION, spec)}, spec)
    assert table is not None
    by_class = {row[0]: dict(zip(table.header, row, strict=True)) for row in table.rows}
    assert by_class["naevus"]["dangerous errors"] == "none counts as dangerous"
    assert by_class["malignant"]["missed"].startswith("14 of 76: 18.4 % [")
    assert by_class["malignant"]["false alarms"] == "0"
    assert by_class["benign"]["false alarms"] == str(30 + 10 + 9)
    assert by_class["lesion"]["missed"].startswith("27 of 236: 11.4 % [")


def test_of_many_classes_the_worst_are_listed() -> None:
    confusion = torch.eye(50, dtype=torch.int64) * 10
    confusion[7, 3] = 5
    table = error_table(
        {"one": scores_of(confusion, None, [f"c{n}" for n in range(50)])}, None
    )
    assert table is not None
    rows = table.rows
    assert rows[0][0] == "c7"
    assert (len(rows), rows[-1][0]) == (17, "and 34 others")


def test_nothing_is_claimed_of_a_dangerous_class_without_rows(tmp_path: Path) -> None:
    (tmp_path / "concern.yaml").write_text(
        "classes: [red, green, blue]\nreleases: [[red, green]]\n"
    )
    rows = [f"0.{6 - n % 3},0.3,0.{1 + n % 3},{n % 2}" for n in range(60)]
    (tmp_path / "p.csv").write_text("\n".join(["red,green,blue,target", *rows]) + "\n")
    page, concern = tmp_path / "r.html", tmp_path / "concern.yaml"
    must_run("score", tmp_path / "p.csv", "--concern", concern, "--html", page)
    read = Page(page)
    assert "No row is blue: errors there are not known." in read.plain_text
    [table] = [table for table in read.tables if table.header[:2] == ["class", "rows"]]
    assert ["blue", "0", "no rows", "no rows"] in [row[:4] for row in table.rows]


@pytest.mark.parametrize(
    ("metric", "has_brackets"), [("misclassification_rate", True), ("macro_f1", False)]
)
def test_brackets_are_explained_if_there_are_any(
    metric: str, has_brackets: bool, tmp_path: Path
) -> None:
    rows = [f"0.{6 - n % 3},0.{4 + n % 3},{n % 2}" for n in range(60)]
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("\n".join(["no,yes,target", *rows]) + "\n")
    models, page = [tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "r.html"
    must_run("score", *models, "--metrics", metric, "--html", page)
    [table] = [table for table in Page(page).tables if "wrong decisions" in table.header]
    assert ("[" in " ".join(table.rows[0])) == has_brackets
    assert ("In brackets: " in Page(page).plain_text) == has_brackets


@pytest.mark.parametrize("concern", [None, ConcernSpec(CLASSES)])
def test_where_every_error_is_dangerous_all_are_counted(
    concern: ConcernSpec | None,
) -> None:
    scores = scores_of(CONFUSION, concern)
    assert [scores.outcomes[name].dangerous.item() for name in CLASSES] == [24, 40, 15, 14]
    assert [*max_danger_costs(scores, concern)] == [
        "malignant",
        "keratosis",
        "naevus",
        "benign",
    ]
    assert {*max_danger_costs(scores, concern).values()} == {1.0}


def test_a_class_that_is_a_number_is_not_read_as_a_count() -> None:
    scores = scores_of(torch.tensor([[5, 0], [1, 4]]), None, ["0", "1"])
    assert error_sentence(scores, None).startswith("is wrong on 1 of 5 of class 1 (20 % [")
