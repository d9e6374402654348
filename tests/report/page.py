"""A page of HTML as its elements, its text and its tables."""

from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

PARTS = {"table", "caption", "tr", "th", "td", "dt", "dd", "li"}


class PageTable(NamedTuple):
    """The texts of a table's cells."""

    caption: str
    header: list[str]
    rows: list[list[str]]


class Page(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._parts: list[tuple[str, list[str]]] = []
        self._is_inside = False
        self.feed(path.read_text())

    @property
    def tables(self) -> list[PageTable]:
        """The tables of the page in their order."""
        found: list[tuple[list[str], list[list[str]]]] = []
        for tag, text in self._texts():
            if tag == "table":
                found.append(([], []))
            elif tag == "caption":
                found[-1][0].append(text)
            elif tag == "tr":
                found[-1][1].append([])
            elif tag in ("th", "td"):
                found[-1][1][-1].append(text)
        return [PageTable("".join(caption), rows[0], rows[1:]) for caption, rows in found]

    @property
    def facts(self) -> dict[str, str]:
        """The values at the top of the page, by name."""
        told = [text for tag, text in self._texts() if tag in ("dt", "dd")]
        return dict(zip(told[::2], told[1::2], strict=True))

    @property
    def alts(self) -> list[str]:
        """The descriptions of figures, in which lines may end anywhere."""
        return [
            _plain(str(attributes["alt"]))
            for tag, attributes in self.elements
            if tag == "img"
        ]

    @property
    def plain_text(self) -> str:
        """The text, in which lines may end anywhere."""
        return _plain(self.text)

    def _texts(self) -> list[tuple[str, str]]:
        return [(tag, _plain("".join(texts).strip())) for tag, texts in self._parts]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in PARTS:
            self._parts.append((tag, []))
            self._is_inside = True

    def handle_endtag(self, tag: str) -> None:
        self._is_inside = self._is_inside and tag not in PARTS

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._is_inside:
            self._parts[-1][1].append(data)


def _plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")
