"""Notebooks show specs and tables as HTML."""

from pathlib import Path

from mpcs_torch import ConcernSpec
from mpcs_torch.learning.selection import Epoch, SelectionRule, explain
from mpcs_torch.tables import Table
from tests.report.page import Page, PageTable

HOSTILE = '<img src=x onerror="alert(1)">&'


def shown(html: str, folder: Path) -> PageTable:
    (folder / "shown.html").write_text(html)
    page = Page(folder / "shown.html")
    assert "img" not in {tag for tag, _ in page.elements}
    [table] = page.tables
    return table


def test_a_spec_is_a_matrix_with_marked_dangerous_pairs(tmp_path: Path) -> None:
    spec = ConcernSpec(
        ["red", "yellow", HOSTILE], releases=[["red", "yellow"]], factor=0.25
    )
    table = shown(spec._repr_html_(), tmp_path)
    assert table.header == ["true \\ predicted", *spec.classes]
    assert [table.rows[0], table.rows[2]] == [
        ["red", "-", "0.25", "1 !"],
        [HOSTILE, "1 !", "1 !", "-"],
    ]


def test_a_spec_of_many_classes_is_its_text() -> None:
    page = ConcernSpec(1000, releases=[[0, 1]])._repr_html_()
    assert page.startswith("<pre>ConcernSpec(classes=(&#x27;0&#x27;")
    assert len(page) < 30_000


def test_tables_and_explanations_are_html_tables(tmp_path: Path) -> None:
    table = shown(Table(["name", "value"], [[HOSTILE, "0.5"]])._repr_html_(), tmp_path)
    assert (table.header, table.rows) == (["name", "value"], [[HOSTILE, "0.5"]])
    rule = SelectionRule("mpcs", {"mpcs": "min", "accuracy": "max"})
    epochs = [
        Epoch(1, {"mpcs": 0.5, "accuracy": 0.9}),
        Epoch(2, {"mpcs": 0.4, "accuracy": 0.8}),
    ]
    assert shown(explain(rule, epochs)._repr_html_(), tmp_path).rows[0] == [
        "the rule",
        "2",
        "0.4",
        "0.8",
    ]
