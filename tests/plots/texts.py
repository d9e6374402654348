"""Find texts of a figure that are cut off or lie over each other."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

SLACK = 1.5
"""Pixels: the box of a text is a little larger than its ink."""


def drawn_texts(figure: Figure) -> list[tuple[str, Bbox]]:
    """Draw a figure, and return the texts that were drawn with their boxes, in pixels."""
    canvas = FigureCanvasAgg(figure)
    found: list[Text] = []
    draw = Text.draw

    def noted(self: Text, renderer: Any, *args: Any, **kwargs: Any) -> None:
        found.append(self)
        draw(self, renderer, *args, **kwargs)

    with patch.object(Text, "draw", noted):
        canvas.draw()
    shown = [text for text in found if text.get_visible() and text.get_text().strip()]
    return [
        (text.get_text(), Text.get_window_extent(text, canvas.get_renderer()))
        for text in shown
    ]


def text_faults(figure: Figure) -> Iterator[str]:
    """Name the texts that lie outside the figure, and the pairs that lie over each other."""
    texts = drawn_texts(figure)
    inside = figure.bbox
    widened = inside.padded(SLACK)
    for text, box in texts:
        is_inside = widened.x0 <= box.x0 and box.x1 <= widened.x1
        is_inside &= widened.y0 <= box.y0 and box.y1 <= widened.y1
        if not is_inside:
            yield f"{text!r} at {box.extents.round().tolist()} is outside {inside.extents.round().tolist()}"
    texts.sort(key=lambda each: each[1].x0)
    for place, (one, first) in enumerate(texts):
        for other, second in texts[place + 1 :]:
            if second.x0 >= first.x1 - SLACK:
                break
            height = min(first.y1, second.y1) - max(first.y0, second.y0)
            if min(first.x1, second.x1) - second.x0 > SLACK and height > SLACK:
                yield f"{one!r} lies over {other!r}"
