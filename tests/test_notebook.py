"""Notebooks show specs and tables as HTML."""

from html.parser import HTMLParser

from mpcs_torch import ConcernSpec
from mpcs_torch.learning.selection import Epoch, SelectionRule, explain
from mpcs_torch.tables import Table

HOSTILE = '<img src=x onerror="alert(1)">&'


class Cells(HTMLParser):
    """Collects the rows of a table, and the tags of the page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: list[str] = []
        self.bold: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: object) -> None:
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data
        if self.tags[-1] == "b":
            self.bold.append(data)


def test_a_spec_is_a_matrix_with_dangerous_pairs_in_bold() -> None:
    spec = ConcernSpec(["red", "yellow", HOSTILE], releases=[["red", "yellow"]], factor=0.25)
    shown = Cells(spec._repr_html_())
    assert shown.rows[0] == ["true \\ predicted", *spec.classes]
    assert shown.rows[1] == ["red", "", "0.25", "1"]
    assert shown.rows[3] == [HOSTILE, "1", "1", ""]
    assert shown.bold == ["1"] * 5
    assert "img" not in shown.tags


def test_a_spec_of_many_classes_is_its_text() -> None:
    page = ConcernSpec(1000, releases=[[0, 1]])._repr_html_()
    assert page.startswith("<pre>ConcernSpec(classes=(&#x27;0&#x27;")
    assert len(page) < 30_000


def test_tables_and_explanations_are_html_tables() -> None:
    table = Table(["name", "value"], [[HOSTILE, "0.5"]])
    shown = Cells(table._repr_html_())
    assert shown.rows == [["name", "value"], [HOSTILE, "0.5"]]
    assert "img" not in shown.tags
    rule = SelectionRule("mpcs", {"mpcs": "min", "accuracy": "max"})
    epochs = [Epoch(1, {"mpcs": 0.5, "accuracy": 0.9}), Epoch(2, {"mpcs": 0.4, "accuracy": 0.8})]
    assert Cells(explain(rule, epochs)._repr_html_()).rows[1] == ["the rule", "2", "0.4", "0.8"]
