"""Reports of files that others named: their texts are shown, and are never markup."""

import base64
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.shell import run
from tests.report.page import Page

NAMES = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a & b's",
    "--><svg onload=alert(1)>",
    "]]>",
    "$x^2$",
    "\\$\\frac{$",
    "{{ 7 * 7 }}",
    "javascript:alert(1)",
]
FILE = "<script>alert(1)<b> & 'q'.csv".replace("/", "")


def check(page: Page) -> None:
    """Check that a page and its figures hold the elements of our templates alone."""
    assert not {tag for tag, _ in page.elements} & {
        "script",
        "b",
        "svg",
        "iframe",
        "object",
    }
    assert not [
        name
        for _, attributes in page.elements
        for name in attributes
        if name.startswith("on")
    ]
    images = [attributes["src"] for tag, attributes in page.elements if tag == "img"]
    assert images
    for source in images:
        assert source is not None
        kind, _, content = source.partition(",")
        assert kind == "data:image/svg+xml;base64"
        document = base64.b64decode(content).decode()
        assert "\x1b" not in document
        elements = list(ElementTree.fromstring(document).iter())
        assert not [
            element
            for element in elements
            if element.tag.endswith(("script", "foreignObject", "}a"))
        ]
        assert not [
            name for element in elements for name in element.attrib if name.startswith("on")
        ]


def test_names_of_classes_are_no_markup(tmp_path: Path) -> None:
    header = ",".join(['"' + name.replace('"', '""') + '"' for name in NAMES])
    labels = header.split(",")
    rows = "".join(
        f"{','.join(str(0.92 if c == r else 0.01) for c in range(9))},{labels[r]}\n"
        for r in range(9)
    )
    (tmp_path / FILE).write_text(f"{header},target\n{rows}")
    assert run("score", tmp_path / FILE, "--html", tmp_path / "r.html") == 0
    page = Page(tmp_path / "r.html")
    check(page)
    assert FILE in page.text


def test_names_of_files_are_no_markup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"\x1b[31m[red]{FILE}"
    path.write_text("score,label\n1,1\n0,0\n2,1\n1.5,0\n")
    assert run("detect", path, "--no-intervals", "--html", tmp_path / "r.html") == 0
    told = capsys.readouterr()
    assert "\x1b[31m" not in told.out + told.err
    page = Page(tmp_path / "r.html")
    check(page)
    assert f"\\x1b[31m[red]{FILE}" in page.text
    assert "\x1b" not in page.text
    path.write_text("score,label\n1,x\n")
    assert run("detect", path) == 2
    assert "\x1b[31m" not in capsys.readouterr().err
