"""Pages made from templates, with embedded figures whose colours are light or dark like those of the page."""

import base64
import io
import platform
import re
from collections.abc import Collection, Sequence
from functools import cache
from importlib.metadata import version
from math import isfinite, nan
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from mpcs_torch.concern.checks import MAX_READABLE_CLASSES
from mpcs_torch.errors import printable
from mpcs_torch.evaluation import Result
from mpcs_torch.evaluation.decision_curve import DecisionCurves
from mpcs_torch.evaluation.group_differences import ABOUT_GROUP_DIFFERENCES
from mpcs_torch.evaluation.result import (
    ABOUT_RANGES,
    comparison_table,
    group_difference_table,
)
from mpcs_torch.evaluation.scores import GroupScores, Scores
from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT, LEVEL
from mpcs_torch.io.atomic_files import replace_text
from mpcs_torch.plots.canvas import BLACK, ON_DARK, WIDTH, page_colours
from mpcs_torch.plots.forest import MAX_ROWS, Effect, Panel, result_figure
from mpcs_torch.report.error_counts import TERMS
from mpcs_torch.tables import Table, numeric_columns

ABOUT_CURVES = (
    "Net benefit: found rows, minus needless actions times the odds of the threshold, for each row. Bands: "
    f"{CONFIDENCE_TEXT} intervals at each threshold."
)
PIXELS = 96
"""The number of pixels in an inch in a browser."""
HYPHENATED = re.compile(r"\S*-\S*")
TIGHT = re.compile(
    r"(?<=[\d,]) %|(?<=\b[a-z]) = (?=\d)|(?P<script><script(?s:.*?)</script>)"
)
"""The texts in which lines must not break, such as 5 % and p = 0.5, and the scripts, which must not change."""
MAX_CONFUSIONS = 8
"""The maximum number of confusions in a table."""
COLOUR = re.compile("|".join(ON_DARK))


class Drawing(NamedTuple):
    """A figure as an embedded image for a page, with its texts and size."""

    uri: str
    alt: str
    """A text with the content of the figure, for readers who cannot see the figure."""
    caption: str
    width: int
    """The width in pixels."""
    height: int

    @property
    def is_wide(self) -> bool:
        """Whether the figure scrolls on a small screen, because its text would be too small if it shrank."""
        return self.width > 1.2 * WIDTH * PIXELS


def draw(figure: Figure, alt: str, caption: str = "") -> Drawing:
    """Return ``figure`` as an embedded SVG, with the text ``alt`` for readers who cannot see it, and a caption."""
    content = base64.b64encode(to_svg(figure).encode()).decode()
    uri = f"data:image/svg+xml;base64,{content}"
    width, height = figure.get_size_inches()
    return Drawing(uri, alt, caption, round(PIXELS * width), round(PIXELS * height))


def save_table(table: Table, path: Path) -> None:
    """Write a table as Markdown."""
    replace_text(path, table.markdown() + "\n")


def to_svg(figure: Figure) -> str:
    """Return ``figure`` as SVG text without background. Its colours change if the reader prefers dark pages."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    # The style goes behind the opening tag, whose attributes stay as they are.
    head, tag, rest = buffer.getvalue().partition("<svg ")
    attributes, end, content = rest.partition(">")
    # A colour is replaced by a variable of the stylesheet, which `_theme` defines.
    themed = COLOUR.sub(lambda match: f"var({_name(match[0])})", content)
    return f"{head}{tag}{attributes}{end}{_theme()}{themed}"


def render(template: str, path: Path, **content: object) -> None:
    """Write a page to ``path``: the template with the name ``template``, filled with the values ``content``."""
    page = environment().get_template(f"{template}.html.j2").render(content)

    def tightened(match: re.Match[str]) -> str:
        if match["script"]:
            return match["script"]
        return match[0].replace(" ", "\N{NO-BREAK SPACE}")

    replace_text(path, TIGHT.sub(tightened, page))


@cache
def environment() -> Environment:
    """Return the Jinja environment of the templates in this package."""
    made = Environment(
        loader=PackageLoader("mpcs_torch.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    made.globals |= {
        "versions": {
            "python": platform.python_version(),
            "torch": version("torch"),
            "mpcs_torch": version("mpcs_torch"),
        },
        "page_colours": page_colours,
        "ABOUT_RANGES": ABOUT_RANGES,
        "CONFIDENCE_TEXT": CONFIDENCE_TEXT,
        "LEVEL": LEVEL,
        "MAX_CONFUSIONS": MAX_CONFUSIONS,
        "MAX_READABLE_CLASSES": MAX_READABLE_CLASSES,
        "TERMS": TERMS,
    }
    filters = (
        numeric_columns,
        whole,
        breakable,
        in_parts,
        printable,
        comparison_table,
        groups_by_column,
        draw_curves,
    )
    made.filters |= {function.__name__: function for function in filters}
    return made


def draw_curves(curves: DecisionCurves) -> Drawing:
    """Draw the decision curves of a result."""
    alt = f"Decision curves. {printable(curves.sentences()[0])}"
    return draw(curves.plot(), alt, ABOUT_CURVES)


class GroupsOfColumn(NamedTuple):
    """The table and the figure of the groups of rows by a column, such as ``site``, on a page."""

    column: str
    about_worst: list[str]
    """Sentences on which groups may be the worst."""
    chart: Drawing
    tables: list[tuple[str, Table]]
    """The captions and the tables of metrics."""


def groups_by_column(result: Result[Any]) -> list[GroupsOfColumn]:
    """Return what a page about ``result`` shows of each column of groups."""
    names_to_draw = drawn_models(result)
    shown = []
    differences = result.group_differences
    for column in dict.fromkeys(groups.column for groups in result.groups):
        models = [groups for groups in result.groups if groups.column == column]
        tables = list[tuple[str, Table]]()
        sentences = list[str]()
        for groups in models:
            metrics = groups.main_metrics()
            for start in range(0, len(metrics), 3):  # as many fit a printed page
                about = groups.order() if start == 0 else "other metrics"
                caption = f"By {column}: {groups.model}, {about}"
                tables.append((caption, groups.table(metrics[start : start + 3])))
            about_worst = groups.about_worst()
            sentences += [
                printable(f"{groups.model}: {sentence}") for sentence in about_worst
            ]
        if column in differences:
            caption = f"Differences by {column}: {ABOUT_GROUP_DIFFERENCES}"
            tables.append((caption, group_difference_table(differences[column])))
        to_draw = [groups for groups in models if groups.model in names_to_draw]
        chart = _draw_groups(column, to_draw)
        shown.append(GroupsOfColumn(column, sentences, chart, tables))
    return shown


def named(names: Collection[str], systems: str = "models") -> str:
    """Return up to three names for a title, with commas between; for more names, their number, such as "5 models"."""
    if len(names) > 3:
        return f"{len(names)} {systems}"
    return ", ".join(map(printable, names))


def drawn_models(result: Result[Any]) -> list[str]:
    """Return the names of the models to draw: those that are compared, or without comparisons, all."""
    compared = {name for row in result.comparisons for name in (row.first, row.second)}
    return [name for name in result.models if name in compared] or list(result.models)


def _draw_groups(column: str, models: Sequence[GroupScores]) -> Drawing:
    """Draw the metric by which groups are ranked, with intervals. The ranking is that for the first of ``models``."""
    first = models[0]
    metric = first.ranked_by
    names = first.worst_first()[:MAX_ROWS]
    effects = {
        printable(name): [_effect(model.groups[name], metric) for model in models]
        for name in names
    }
    overall = [_effect(model.pooled, metric)[0] for model in models]
    names_of_models = [model.model for model in models]
    panel = Panel(metric, effects, overall=overall)
    figure = result_figure([panel], names_of_models, subject=column)
    worst = f"{names[0]} with {first.groups[names[0]].values[metric]:.4g} for {first.model}"
    alt = f"{metric} of each group of {column}, the worst first: {worst}."
    order = "Worst first"
    if len(models) > 1:
        order = f"In the order of {first.model}, the worst first"
    caption = f"{order}; dashed lines: all rows."
    if len(first.groups) > MAX_ROWS:
        caption = f"The worst {MAX_ROWS} of {len(first.groups)} groups. {caption}"
    if first.has_intervals:
        caption += f" Bars: {CONFIDENCE_TEXT} intervals, each of one group alone."
    return draw(figure, printable(alt), printable(caption))


def _effect(scores: Scores, metric: str) -> Effect:
    """Return the value of a metric and its interval; an infinite value, which cannot be drawn, is NaN."""
    value = scores.values[metric]
    if not isfinite(value):
        value = nan
    low, high = scores.intervals.get(metric, (nan, nan))
    return value, low, high


def whole(text: str) -> Markup:
    """Return ``text`` as HTML in which words with hyphens stay on one line."""
    return Markup(HYPHENATED.sub(r'<span class="whole">\g<0></span>', str(escape(text))))


def breakable(text: str) -> Markup:
    """Return ``text`` as HTML; if it is a single word, lines may break after its underscores."""
    shown = whole(text)
    if " " in text:
        return shown
    return Markup(str(shown).replace("_", "_<wbr>"))


def in_parts(cell: str) -> str:
    """Return ``cell`` with no-break spaces, except after a colon or comma and before a square bracket."""
    return re.sub(r"(?<![:,]) (?!\[)", "\N{NO-BREAK SPACE}", cell)


def _theme() -> str:
    light = "".join(f"{_name(colour)}:{colour};" for colour in ON_DARK)
    dark = "".join(f"{_name(colour)}:{shown};" for colour, shown in ON_DARK.items())
    # matplotlib writes no colour for black, so set the default colour.
    css = f"svg{{{light}fill:var({_name(BLACK)})}}@media screen and (prefers-color-scheme:dark){{svg{{{dark}}}}}"
    return f"<style>{css}</style>"


def _name(colour: str) -> str:
    return f"--c{colour[1:]}"
