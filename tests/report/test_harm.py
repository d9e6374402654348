"""The sentence and the table by class that reports begin with."""

from pathlib import Path

import pytest
import torch

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.report.harm import classes_of, harm_sentence, harm_table
from tests.cli.test_cli import run
from tests.report.page import Page

CLASSES = ["benign", "naevus", "keratosis", "malignant"]
MISSED = [["malignant", name] for name in CLASSES[:3]]
CONFUSION = torch.tensor([[900, 20, 4, 0], [30, 400, 10, 0], [10, 5, 145, 0], [9, 3, 2, 62]])


def test_errors_are_counted_in_the_rows_of_the_dangerous_class() -> None:
    classes = classes_of(CONFUSION, ConcernSpec(CLASSES, dangerous=MISSED), CLASSES)
    told = harm_sentence(classes, are_all=False, ends=(0.0048, 0.0146))
    of_class, in_all = "14 of 76 malignant (18.4 % [10.5, 29])", "14 of 1600 rows in all (0.875 % [0.48, 1.46])"
    assert told == f"makes dangerous errors on {of_class}; {in_all}."


def test_the_class_with_the_dearest_error_comes_first_however_rare() -> None:
    weights = [[0, 1, 1, 2], [1, 0, 1, 2], [1, 1, 0, 2], [20, 20, 10, 0]]
    classes = classes_of(CONFUSION, ConcernSpec(CLASSES, weights=weights, dangerous=2), CLASSES)
    table = harm_table({"one": classes, "two": classes}, are_all=False)
    assert table.header == ["class", "model", "rows", "dangerous errors", "recall"]
    assert [row[:3] for row in table.rows[:2]] == [["malignant", "one", "76"], ["malignant", "two", "76"]]


def test_of_many_classes_the_worst_are_listed() -> None:
    confusion = torch.eye(50, dtype=torch.int64) * 10
    confusion[7, 3] = 5
    rows = harm_table({"one": classes_of(confusion, None, [f"c{n}" for n in range(50)])}, are_all=True).rows
    assert rows[0][0] == "c7"
    assert (len(rows), rows[-1][0]) == (13, "and 38 others")


def test_nothing_is_claimed_of_a_dangerous_class_without_rows(tmp_path: Path) -> None:
    (tmp_path / "concern.yaml").write_text("classes: [red, green, blue]\nreleases: [[red, green]]\n")
    rows = [f"0.{6 - n % 3},0.3,0.{1 + n % 3},{n % 2}" for n in range(60)]
    (tmp_path / "p.csv").write_text("\n".join(["red,green,blue,target", *rows]) + "\n")
    page = tmp_path / "r.html"
    assert run("score", tmp_path / "p.csv", "--concern", tmp_path / "concern.yaml", "--html", page) == 0
    read = Page(page)
    assert "No row is blue: errors there are not known." in read.plain_text
    [table] = [table for table in read.tables if table.header == ["class", "rows", "dangerous errors", "recall"]]
    assert ["blue", "0", "", ""] in table.rows


@pytest.mark.parametrize("concern", [None, ConcernSpec(CLASSES)])
def test_where_every_error_is_dangerous_all_are_counted(concern: ConcernSpec | None) -> None:
    classes = classes_of(CONFUSION, concern, CLASSES)
    assert [each.errors for each in classes] == [24, 40, 15, 14]


def test_a_class_that_is_a_number_is_not_read_as_a_count() -> None:
    classes = classes_of(torch.tensor([[5, 0], [1, 4]]), None, ["0", "1"])
    assert harm_sentence(classes, are_all=True).startswith("is wrong on 1 of 5 of class 1 (20 % [")


def test_over_clusters_intervals_are_those_that_are_given() -> None:
    given = {"malignant": {"error_rate": (0.1, 0.4), "recall": (0.6, 0.9)}, "benign": {"error_rate": (0.0, 0.1)}}
    classes = classes_of(CONFUSION, ConcernSpec(CLASSES, dangerous=[*MISSED, ["benign", "naevus"]]), CLASSES, given)
    by_label = {each.label: each for each in classes}
    assert (by_label["malignant"].ends, by_label["malignant"].recall_ends) == ((0.1, 0.4), (0.6, 0.9))
    assert by_label["benign"].ends is None, "its dangerous errors are some of its errors"
