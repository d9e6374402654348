"""The display of a result in a notebook: the figure, the table, and all of it as a data frame."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot

from mpcs_torch import ConcernSpec, evaluate, evaluate_detectors
from mpcs_torch.evaluation.result import MAX_GROUPS, Result
from tests.evaluation.draws import rows_of
from tests.refused import Refused

GRADES = ["none", "mild", "severe"]
CONCERN = ConcernSpec(GRADES, refer=0.5, class_groups={"ill": ["mild", "severe"]})
TARGET, *PROBS = rows_of(1200, [0.5, 0.3, 0.2])
MODELS = dict(zip(("small", "large"), PROBS, strict=True))
SMALL = MODELS["small"]


def by(groups: int) -> dict[str, Any]:
    return {"clinic": [f"clinic {row % groups}" for row in range(1200)]}


SHAPES: dict[str, Callable[[], Result[Any]]] = {
    "one model": lambda: evaluate(SMALL, TARGET, class_names=GRADES),
    "two models": lambda: evaluate(MODELS, TARGET, concern=CONCERN),
    "12 groups": lambda: evaluate(MODELS, TARGET, concern=CONCERN, groups=by(12)),
    "50 groups": lambda: evaluate(
        MODELS, TARGET, concern=CONCERN, groups={**by(50), "site": ["a", "b"] * 600}
    ),
    "decisions": lambda: evaluate(
        [*np.array(GRADES)[SMALL.argmax(1)][:-1], "refer"], TARGET, concern=CONCERN
    ),
    "soft labels": lambda: evaluate(SMALL, MODELS["large"]),
    "no intervals": lambda: evaluate(SMALL, TARGET, intervals=False, metrics=["mpcs"]),
    "detectors": lambda: evaluate_detectors(
        {name: probs[:, 2] for name, probs in MODELS.items()}, TARGET == 2
    ),
}


@cache
def result_with(shape: str) -> Result[Any]:
    return SHAPES[shape]()


def texts(labels: Any) -> list[str]:
    return [label.get_text() for label in labels]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def points(axes: Any) -> list[float]:
    return [
        line.get_xdata()[0]
        for line in axes.lines
        if line.get_marker() != "None" and len(line.get_xdata()) == 1
    ]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_every_result_is_drawn(shape: str) -> None:
    figure, axes = result_with(shape).plot()
    assert pyplot.gcf() is figure
    drawn = axes if isinstance(axes, list) else [axes]
    assert drawn == figure.axes
    assert all(np.isfinite(points(each)).any() for each in drawn)
    assert figure.get_figheight() < 40


def test_values_intervals_groups_and_differences_are_those_of_the_result() -> None:
    result = result_with("12 groups")
    _, (above, below) = result.plot("misclassification_rate")
    worst = result.groups[0].worst_first()
    places = [None, *(("clinic", name) for name in worst)]
    drawn = [
        result.find("misclassification_rate", model, place)
        for model in MODELS
        for place in places
    ]
    assert points(above) == pytest.approx([value for value, *_ in drawn])
    assert texts(above.get_yticklabels()) == ["all rows", *worst]
    ends = [tuple(line.get_xdata()) for line in above.lines if len(line.get_xdata()) == 2]
    assert ends == [interval for _, interval, _ in drawn]
    assert points(below) == pytest.approx([result.comparisons[0].paired.difference])
    assert texts(below.get_yticklabels()) == ["large - small"]


def test_the_worst_of_many_groups_are_drawn() -> None:
    _, axes = result_with("50 groups").plot("mpcs")
    labels = texts(axes[0].get_yticklabels())
    others = f"and {50 - MAX_GROUPS} others"
    assert labels[MAX_GROUPS + 1 :] == [others, "site: a", "site: b"]


def test_rates_of_classes_are_drawn_by_name() -> None:
    result = result_with("two models")
    _, axes = result.plot(["recall[severe]", "precision[ill]"])
    assert points(axes[0]) == [result.value("recall[severe]", model) for model in MODELS]
    decided = result_with("decisions")
    _, axes = decided.plot("coverage[severe]")
    assert points(axes)[0] == decided.value("coverage[severe]")


def test_an_unknown_metric_and_a_missing_matplotlib_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = result_with("no intervals")
    with Refused("measured", "metric", "mcps"):
        result.plot("mcps")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ModuleNotFoundError,
        match=r"plot needs matplotlib: pip install 'mpcs_torch\[plot\]'",
    ):
        result.plot()


class Balanced(HTMLParser):
    """Check that elements end where they should, and collect the texts that are shown and folded."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.shown: list[str] = []
        self.rows = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "br":  # which has no end
            self.open.append(tag)
        if tag == "tr" and "details" not in self.open:
            self.rows += 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "details" not in self.open:
            self.shown.append(data)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_notebook_shows_one_short_table_and_folds_the_rest(shape: str) -> None:
    result = result_with(shape)
    assert len(repr(result).splitlines()) <= 20
    page = Balanced()
    page.feed(result._repr_html_())
    assert not page.open
    assert page.rows <= 20
    assert next(iter(result.first.values)) in page.shown


def test_verdicts_and_files_stand_in_lines_of_their_own() -> None:
    result = replace(
        result_with("two models"), read=["a.csv: labels <y>", "b.csv: labels <y>"]
    )
    page = result._repr_html_()
    assert page.startswith(
        "<p>a.csv: labels &lt;y&gt;<br>b.csv: labels &lt;y&gt;<br>1200 rows, 3 classes"
    )
    assert "<br>".join(each.verdict for each in result.comparisons[:2]) in page


@pytest.mark.parametrize("shape", SHAPES)
def test_the_frame_holds_every_value_once(shape: str) -> None:
    result = result_with(shape)
    frame = result.to_frame()
    assert not frame.duplicated(["model", "column", "group", "metric"]).any()
    assert (frame.metric != "").all()
    is_difference = frame.column == "difference"
    columns = ["value", "low", "high", "p_value", "adjusted_p_value"]
    differences = frame.loc[is_difference, columns].values.tolist()
    assert differences == [
        [*row.paired[2:], row.adjusted_p_value] for row in result.comparisons
    ]
    for row in frame[~is_difference].itertuples():
        group = (row.column, row.group) if row.column else None
        value, ends, _ = result.find(row.metric, row.model, group)
        low, high = ends or (np.nan, np.nan)
        shown = [row.value, row.low, row.high]
        assert shown == pytest.approx([value, low, high], nan_ok=True)
    for groups in result.groups:
        of_model = frame[(frame.model == groups.model) & (frame.column == groups.column)]
        assert {*of_model.group} == {*groups.groups}
