"""Sizes, colours, texts and legends of figures, which must be readable on the screen of a phone."""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from textwrap import fill, wrap
from typing import Any, NamedTuple, TypeVar, cast

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLUE = "#0072b2"
ORANGE = "#d55e00"
GREEN = "#009e73"
PINK = "#cc79a7"
AMBER = "#e69f00"
SKY = "#56b4e9"
BLACK = "#000000"
WHITE = "#ffffff"
RED = "#b00020"
GREY = "#8a8a8a"
DARK_GREY = "#5f5f5f"
LIGHT_GREY = "#cccccc"
FAINT_GREY = "#9a9a9a"
GRID = "#ececec"

ON_DARK = {
    BLUE: "#4c9fe0",
    ORANGE: "#f28c3b",
    GREEN: "#3cc79b",
    PINK: "#e29cc4",
    AMBER: "#f2bd42",
    SKY: "#a6daff",
    BLACK: "#e8eaed",
    WHITE: "#16181d",
    RED: "#ff6b74",
    GREY: "#8b9099",
    DARK_GREY: "#b4b9c2",
    LIGHT_GREY: "#4a4f58",
    FAINT_GREY: "#7d838d",
    GRID: "#2b2f36",
}
"""The colour on a dark page, by the colour on a white page."""


class Shades(NamedTuple):
    """The colours of a page element."""

    light: str
    dark: str


PAGE = {
    "page": Shades(WHITE, ON_DARK[WHITE]),
    "raised": Shades("#f6f7f9", "#1e2127"),
    "line": Shades("#dfe3e8", "#343942"),
    "ink": Shades(ON_DARK[WHITE], ON_DARK[BLACK]),
    "soft": Shades("#565d68", "#a9b0bb"),
    "accent": Shades("#0b5cad", "#7ab7ff"),
    "danger": Shades(RED, "#ff8088"),
    "calm": Shades("#007a58", ON_DARK[GREEN]),
}
"""The colours of each page element, by the element's name in stylesheets."""

SYSTEMS = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY, BLACK)
"""The colours of the systems (models or detectors) in a figure, in this order."""
MARKERS = "osD^vPX"
TARGETS, NONTARGETS = ORANGE, BLUE
RELEASED, DANGEROUS = GREEN, RED
ACCURACY, CROSS_ENTROPY, MPCS = BLUE, GREY, ORANGE

MAX_NAME_LENGTH = 40
"""The maximum number of characters of a name in a legend."""
MAX_BESIDE = 20
"""The maximum number of characters of a name beside an axis."""
MAX_IN_SENTENCE = 22
"""The maximum number of characters of a name in a legend if a value follows the name."""

System = TypeVar("System")


def coloured(systems: Mapping[str, System]) -> Iterator[tuple[str, System, str]]:
    """Yield the name, the value and the colour of each of ``systems`` (models or detectors)."""
    for number, (name, system) in enumerate(systems.items()):
        yield name, system, SYSTEMS[number % len(SYSTEMS)]


def literal(name: str, most: int = MAX_NAME_LENGTH) -> str:
    """Return ``name`` for matplotlib, with $ and a leading _ escaped; if longer than ``most``, without its middle."""
    if len(name) > most:
        start, end = name[: (most - 1) // 2], name[-(most // 2) :]
        name = f"{start}…{end}"
    # Between two dollars, matplotlib reads mathematics.
    shown = name.replace("$", r"\$")
    # Matplotlib leaves labels that begin with _ out of legends.
    return f" {shown}" if shown.startswith("_") else shown


def page_colours(*, is_dark: bool) -> str:
    """Return the light or the dark colours of a page as CSS declarations."""
    declarations = list[str]()
    for name, shades in PAGE.items():
        colour = shades.dark if is_dark else shades.light
        declarations.append(f"--{name}: {colour};")
    return " ".join(declarations)


def shown_number(value: float) -> str:
    """Return ``value`` as text: a whole number in full, any other number with three significant digits."""
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.3g}"


def lines(text: str, width: int = 46, most: int = 2) -> str:
    """Break ``text`` into at most ``most`` lines of ``width`` characters; cut the middle of a longer text."""
    # A line ends at a space, so lines hold less than their width.
    return "\n".join(wrap(literal(text, most * width - 8), width))


Place = Axes | Figure | None
"""The axes or the empty figure of the caller to draw on, or None for a new figure."""

WIDTH = 4.8
"""The width of a figure in inches: 460 pixels, which a phone shows at about 80 %."""
SMALL, NORMAL = 9, 10
"""The sizes of fonts, in points."""
ROW = 1.5
"""The height of a row in a legend, divided by the font size."""
POINT = 1 / 72
"""The size of a point in inches."""
LETTER = 0.6
"""The width of a digit (and, approximately, of a letter), divided by the font size."""
MAX_IN_COLUMN = 22
"""The maximum number of characters of the labels of a legend with two columns."""


def canvas(
    height: float, title: str = "", *, width: float = WIDTH, on: Place = None, **labels: Any
) -> tuple[Figure, Axes]:
    """Return a figure and its axes, with ``title`` and ``labels`` (arguments of ``Axes.set``).

    ``height`` and ``width`` of a figure are in inches, without a legend. Axes that are given as ``on`` keep their size
    and shape. The title is cut after two lines, and on given axes after four.
    """
    if isinstance(on, Axes):
        axes = on
        figure = cast(Figure, axes.figure)
        labels.pop("aspect", None)  # the shape of the axes stays
        axes.set(**labels)
        inches, _ = axes_size(axes)
        letters = int(inches / (LETTER * SMALL * POINT))
        axes.set_title(lines(title, max(8, letters), 4), fontsize=SMALL)
    else:
        figure = Figure(layout="constrained") if on is None else on
        figure.set_size_inches(width, height)
        axes = figure.add_subplot(**labels)
        if title:  # of the figure, which is wider than the axes
            figure.suptitle(lines(title), fontsize=NORMAL)
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def axes_size(axes: Axes) -> tuple[float, float]:
    """Return the width and the height of ``axes`` in inches, before matplotlib's layout."""
    return axes.bbox.width / axes.figure.dpi, axes.bbox.height / axes.figure.dpi


def grid(axes: Axes, axis: str = "both") -> None:
    """Draw faint grid lines behind the curves, for the axis "x", "y" or "both"."""
    axes.grid(axis=axis, color=GRID, linewidth=0.8)  # type: ignore[arg-type]  # a Literal
    axes.set_axisbelow(True)


def legend_below(
    figure: Figure,
    columns: int | None = None,
    *,
    handles: Sequence[Artist] = (),
    on: Place = None,
) -> Figure:
    """Add a legend of ``handles`` (default: the first artist with each label) below the axes, and return the figure.

    If axes are given as ``on``, the legend is inside them, but if they are too small, there is none.
    """
    axes = on if isinstance(on, Axes) else figure.axes[0]
    if not handles:
        by_label = dict[str, Artist]()
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            by_label.setdefault(label, handle)
        handles = list(by_label.values())
    if isinstance(on, Axes):
        _legend_inside(on, handles)
        return figure
    if columns is None:
        longest = max((len(str(handle.get_label())) for handle in handles), default=0)
        columns = 2 if longest <= MAX_IN_COLUMN else 1
    rows = ceil(len(handles) / columns)
    # With less, labels would lie over the legend.
    figure.set_figheight(figure.get_figheight() + 0.21 * rows + 0.1)
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=SMALL,
    )
    return figure


def _legend_inside(axes: Axes, handles: Sequence[Artist]) -> None:
    labels = [str(handle.get_label()) for handle in handles]
    width, height = axes_size(axes)
    beside = 6  # letters that the mark and the margins take
    longest = max(map(len, labels))
    # Letters shrink if the legend would cover more than the width, or than 0.4 of the height.
    by_width = width / (LETTER * POINT * (longest + beside))
    by_height = height * 0.4 / (ROW * POINT * len(labels))
    size = max(6.5, min(SMALL, by_width, by_height))  # points, in narrow axes of the caller
    letters = int(width / (LETTER * POINT * size)) - beside
    broken = [fill(label, max(12, letters)) for label in labels]
    rows = sum(label.count("\n") + 1 for label in broken)
    if rows * ROW * POINT * size < 0.75 * height:
        axes.legend(handles, broken, fontsize=size, framealpha=0.6).set_in_layout(False)
