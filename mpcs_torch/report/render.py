"""Pages from templates, with embedded figures that follow the theme of the page."""

import base64
import io
import platform
import re
from collections.abc import Callable, Sequence
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from mpcs_torch.errors import printable
from mpcs_torch.evaluation import Result
from mpcs_torch.evaluation.result import comparison_table
from mpcs_torch.evaluation.scores import GroupScores
from mpcs_torch.functional.comparison.significance import Comparison
from mpcs_torch.io.atomic_files import replace_text
from mpcs_torch.plots.canvas import BLACK, ON_DARK, WIDTH, literal
from mpcs_torch.plots.forest import Effect, forest_figure
from mpcs_torch.tables import Table

PIXELS = 96
"""Of an inch in a browser."""
NUMBER = re.compile(r"[-+]?\d.*|nan|-?inf|")
WORD = re.compile(r"(\s+)")
TIGHT = re.compile(r"(?<=[\d,]) %|(?<=\b[a-z]) = (?=\d)|<script(?s:.*?)</script>")
"""Spaces where lines must not end: those of 5 % and p = 0.5; and scripts, whose spaces stay."""
COLOUR = re.compile("|".join(ON_DARK))


class Drawing(NamedTuple):
    """A figure in a page."""

    uri: str
    alt: str
    """All that somebody who does not see the figure should learn from it."""
    caption: str
    width: int
    """Pixels."""
    height: int

    @property
    def is_wide(self) -> bool:
        """Whether it scrolls on a small screen, where its texts would be too small to read otherwise."""
        return self.width > 1.2 * WIDTH * PIXELS


def draw(figure: Figure, alt: str, caption: str = "") -> Drawing:
    """Return a figure as a picture for a page."""
    uri = "data:image/svg+xml;base64," + base64.b64encode(to_svg(figure).encode()).decode()
    width, height = (round(PIXELS * inches) for inches in figure.get_size_inches())
    return Drawing(uri, alt, caption, width, height)


def write_svg(path: Path, figure: Figure) -> None:
    """Write the figure as an SVG file, in one step."""
    replace_text(path, to_svg(figure))


def to_svg(figure: Figure) -> str:
    """Return the figure as an SVG document without background, whose colours change where dark pages are preferred."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    head, tag, rest = buffer.getvalue().partition("<svg ")
    attributes, end, content = rest.partition(">")
    return f"{head}{tag}{attributes}{end}{_theme()}{COLOUR.sub(lambda found: f'var({_name(found[0])})', content)}"


def render(template: str, **content: object) -> str:
    """Render a page from one of our templates."""
    environment = Environment(
        loader=PackageLoader("mpcs_torch.report", "templates"), autoescape=True, undefined=StrictUndefined
    )
    environment.filters |= {"numeric_columns": numeric_columns, "whole": whole, "breakable": breakable}
    page = environment.get_template(f"{template}.html.j2").render(content, versions=versions())
    return TIGHT.sub(
        lambda found: found[0] if found[0].startswith("<script") else found[0].replace(" ", "\N{NO-BREAK SPACE}"), page
    )


def write_result(
    template: str,
    path: Path,
    result: Result[Any],
    *,
    compared: Sequence[str],
    sentences: Sequence[str],
    chart: Callable[[str, list[GroupScores]], Drawing],
    tables: Callable[[GroupScores], list[tuple[str, Table]]],
    command: str,
    **content: object,
) -> None:
    """Write the page of models or detectors, with what their pages share: comparisons, groups and the command.

    Args:
        template: Its name.
        path: Of the page.
        result: Of the evaluation.
        compared: The sentences of the comparisons. The first is the title.
        sentences: Of the models or detectors, below the title. Without comparisons the first is the title.
        chart: Draws the groups of a column.
        tables: Returns the titled tables of a model's groups.
        command: Writes the page again; empty for none.
        **content: More for the template.
    """
    columns: dict[str, list[GroupScores]] = {}
    for groups in result.groups:
        columns.setdefault(groups.column, []).append(groups)
    title, *rest = [*compared[:1], *sentences]
    page = render(
        template,
        **content,
        verdict=title,
        verdicts=rest,
        told=result.all_notes(),
        comparisons=comparison_table(result.comparisons) if result.comparisons else None,
        compared_drawings=_draw_comparisons(result.comparisons),
        compared_told=compared[1:],
        columns=[
            {
                "name": name,
                "chart": chart(name, models),
                "tables": [table for model in models for table in tables(model)],
            }
            for name, models in columns.items()
        ],
        commands=[command] if command else [],
    )
    replace_text(path, page)


def _draw_comparisons(comparisons: Sequence[Comparison]) -> list[Drawing]:
    """Draw the differences of two systems in percent of the first; nothing for more systems."""
    shown = {row.measure: row.paired for row in comparisons if row.paired.first and isfinite(row.paired.difference)}
    pairs = {(row.first, row.second) for row in comparisons}
    if len(pairs) != 1 or not shown:
        return []
    [(first, second)] = pairs
    effects: dict[str, list[Effect]] = {}
    for name, paired in shown.items():
        share = 100 / abs(paired.first)
        effects[name] = [(share * paired.difference, share * paired.low, share * paired.high)]
    label = f"{literal(second, 20)} minus {literal(first, 20)}, % of {literal(first, 20)}"
    told = "; ".join(f"{name} {values[0][0]:+.3g} %" for name, values in effects.items())
    alt = printable(f"Differences of {second} from {first}: {told}.")
    return [
        draw(forest_figure(effects, [label]), alt, "Differences with 95 % intervals, as a share of the first value.")
    ]


def versions() -> dict[str, str]:
    """Return the versions that results can depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in ("torch", "mpcs_torch")}}


def numeric_columns(table: Table) -> list[bool]:
    """Return for each column whether all of its cells are numbers or empty."""
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.header)
    return [all(NUMBER.fullmatch(cell) for cell in column) and any(column) for column in columns]


def whole(text: str) -> Markup:
    """Keep names such as those of files in one piece: browsers break them at hyphens."""
    parts = (f'<span class="whole">{escape(part)}</span>' if "-" in part else escape(part) for part in WORD.split(text))
    return Markup("".join(parts))


def breakable(text: str) -> Markup:
    """Let a long name of a metric or column be broken after its underscores instead, where there is no room."""
    shown = whole(text)
    return shown if " " in text else Markup(str(shown).replace("_", "_<wbr>"))


def _theme() -> str:
    light, dark = (
        "".join(f"{_name(colour)}:{shown};" for colour, shown in pairs)
        for pairs in ([(colour, colour) for colour in ON_DARK], ON_DARK.items())
    )
    # Black is what matplotlib leaves out, so that it is inherited.
    css = f"svg{{{light}fill:var({_name(BLACK)})}}@media screen and (prefers-color-scheme:dark){{svg{{{dark}}}}}"
    return f"<style>{css}</style>"


def _name(colour: str) -> str:
    return f"--c{colour[1:]}"
