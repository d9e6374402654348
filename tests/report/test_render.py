"""The parts of pages: figures that follow the theme, tables whose numbers are aligned, confusions by cost."""

import base64
import re
from pathlib import Path
from typing import cast

import pytest
import torch

import mpcs_torch.report
from mpcs_torch import ConcernSpec
from mpcs_torch.evaluation import Result
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.plots import confusion_matrix, risk_coverage_figure
from mpcs_torch.plots.canvas import ON_DARK
from mpcs_torch.report.figures import costliest_table, draw_confusion
from mpcs_torch.report.render import breakable, environment, to_svg, whole
from mpcs_torch.report.score import score_warnings
from mpcs_torch.tables import Table, numeric_columns

TEMPLATES = Path(mpcs_torch.report.__file__).with_name("templates")
CONFUSION = torch.tensor([[50, 4, 1], [3, 40, 0], [0, 2, 30]])
NAMES = ["red", "yellow", "green"]
CONCERN = ConcernSpec(NAMES, releases=[["red", "yellow"]], factor=0.25)


def costliest(table: Table, *, has_concern: bool) -> str:
    """Return what a page shows of a table of confusions."""
    parts = environment().get_template("parts.html.j2").module
    return str(parts.costliest(table, has_concern))  # type: ignore[attr-defined]


def test_every_colour_of_a_figure_changes_with_the_theme() -> None:
    curve = torch.linspace(0.1, 1, 10), torch.linspace(0, 0.2, 10)
    for figure in (
        confusion_matrix(CONFUSION, CONCERN.released(), NAMES, "t"),
        risk_coverage_figure({"a": curve}),
    ):
        svg = to_svg(figure)
        theme, content = svg.split("</style>", 1)
        assert "prefers-color-scheme:dark" in theme
        assert not re.findall(r"(?:fill|stroke): #[0-9a-f]{3,6}", content)
        assert set(re.findall(r"var\((--c[0-9a-f]{6})\)", content)) <= {
            f"--c{colour[1:]}" for colour in ON_DARK
        }


def test_a_figure_has_its_size_and_scrolls_where_it_is_wide() -> None:
    assert not draw_confusion(CONFUSION, CONCERN, NAMES, "t").is_wide
    many = draw_confusion(
        torch.eye(30, dtype=torch.int64), None, [str(n) for n in range(30)], "t"
    )
    assert many.is_wide
    document = base64.b64decode(many.uri.partition(",")[2]).decode()
    points = re.search(r'width="([0-9.]+)pt"', document)
    assert points is not None
    assert many.width == pytest.approx(float(points[1]) * 96 / 72, abs=1)


def test_every_page_has_the_content_policy_of_the_base() -> None:
    templates = {
        path.name: path.read_text()
        for path in TEMPLATES.glob("*.html.j2")
        if path.name != "parts.html.j2"
    }
    base = templates.pop("base.html.j2")
    assert (
        '\n<head>\n<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy"'
        in base
    )
    assert len(templates) >= 4
    for name, text in templates.items():
        assert text.startswith('{% extends "base.html.j2" %}'), name
        assert "Content-Security-Policy" not in text, name
        assert ("{% block scripts %}" in text) == (name == "explore.html.j2"), name


def test_columns_of_numbers_are_found() -> None:
    rows = [["a", "1.5", "", "x", ""], ["b", "-2 to 3", "nan", "4", ""]]
    assert numeric_columns(Table(["", "", "", "", ""], rows)) == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert numeric_columns(Table(["a"], [])) == [False]


def test_names_with_hyphens_are_kept_whole_and_never_markup() -> None:
    assert (
        whole("a of mlp-<b>.csv, 3")
        == 'a of <span class="whole">mlp-&lt;b&gt;.csv,</span> 3'
    )
    assert breakable("rate_of_<b>_") == "rate_<wbr>of_<wbr>&lt;b&gt;_<wbr>"
    assert breakable("error_mean, mcc") == "error_mean, mcc", (
        "it can be broken at the space"
    )


def test_the_costliest_confusions_come_first_with_their_shares() -> None:
    table = costliest_table({"one": CONFUSION}, CONCERN, NAMES)
    assert table.header == [
        "true → predicted",
        "errors",
        "share of the cost",
        "kind",
        "concern",
    ]
    assert table.rows == [
        ["yellow → red", "3", "42.9 %", "dangerous", "1"],
        ["green → yellow", "2", "28.6 %", "dangerous", "1"],
        ["red → yellow", "4", "14.3 %", "released", "0.25"],
        ["red → green", "1", "14.3 %", "dangerous", "1"],
    ]
    page = costliest(table, has_concern=True)
    assert page.count("◥") == 3, "dangerous errors are marked"
    assert page.count('class="bar soft"') == 1
    assert 'style="--share:42.9%"' in page


def test_confusions_of_two_systems_are_ranked_by_the_worse_one() -> None:
    other = torch.tensor([[50, 0, 9], [0, 40, 0], [0, 0, 30]])
    table = costliest_table({"one": CONFUSION, "two": other}, None, NAMES)
    assert table.header[1::2] == ["errors, one", "errors, two"]
    assert table.rows[0] == ["red → green", "1", "10.0 %", "9", "100.0 %"]
    none = costliest_table({"one": torch.eye(3, dtype=torch.int64)}, None, NAMES)
    assert "There is no error." in costliest(none, has_concern=False)


def test_a_confusion_matrix_is_described() -> None:
    told = draw_confusion(CONFUSION, CONCERN, NAMES, "Test data").alt
    assert (
        told
        == "Test data: 130 samples, 10 errors, 6 of them dangerous. Most often, red is taken for yellow: 4 times."
    )


@pytest.mark.parametrize(
    ("models", "told"),
    [
        (["a"], ["No row has the label 2."]),
        (["a", "b"], ["a: no row has the label 2.", "b: no row has the label 2."]),
    ],
)
def test_warnings_are_sentences_and_name_the_model(
    models: list[str], told: list[str]
) -> None:
    class Warned:
        notes = ("no row has the label 2",)

    found = Result(dict.fromkeys(models, cast(ClassifierScores, Warned())))
    assert score_warnings(found) == told
