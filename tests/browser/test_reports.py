"""Every report in a browser: at three widths, in both themes, for the eye, the keyboard and a screen reader."""

import io
import re
import zlib
from pathlib import Path

import pytest
from PIL import Image

from mpcs_torch.plots.canvas import BLACK, BLUE, ON_DARK, RED
from tests.browser.chromium import Page
from tests.browser.reports import REPORTS, make_reports
from tests.cli.shell import run

CHECKS = Path(__file__).with_name("checks.js").read_text()
WIDTHS, SCHEMES = (1280, 800, 400), ("light", "dark")
MAX_BYTES = 3_000_000


@pytest.fixture(scope="module")
def reports(
    page: Page, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:  # skips first
    return make_reports(tmp_path_factory.mktemp("reports"))


@pytest.mark.slow
@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_sound_at_every_width_in_both_themes(
    page: Page, reports: dict[str, Path], name: str
) -> None:
    assert reports[name].stat().st_size < MAX_BYTES
    faults = []
    for scheme in SCHEMES:
        for width in WIDTHS:
            page.open(reports[name], width=width, scheme=scheme)
            found = [*page.evaluate(CHECKS), *page.complaints]
            found += [
                f"asks for {url[:80]}"
                for url in page.requests
                if not url.startswith(("data:", "file:"))
            ]
            faults += [f"{width} pixels, {scheme}: {fault}" for fault in found]
    assert faults == []
    assert len([url for url in page.requests if url.startswith("file:")]) == 1, (
        "a report is one file"
    )


INTRUDER = """new Promise((done) => {
  const violated = [];
  document.addEventListener("securitypolicyviolation", ({effectiveDirective}) => violated.push(effectiveDirective));
  const place = document.body.appendChild(document.createElement("div"));
  place.innerHTML = `<img src="data:," onerror="window.ran = true"><img src="http://127.0.0.1:9/x.png">
    <link rel="stylesheet" href="http://127.0.0.1:9/x.css"><iframe src="http://127.0.0.1:9/"></iframe>
    <base href="http://127.0.0.1:9/"><form action="http://127.0.0.1:9/"></form>`;
  place.appendChild(document.createElement("script")).textContent = "window.ran = true";
  place.querySelector("form").submit();
  setTimeout(() => done([violated.sort(), window.ran === true]), 300);
})"""
"""Add to a page what a hostile name would add if it were not escaped; return what the page's policy refuses of it."""
REFUSED = [
    "base-uri",
    "form-action",
    "frame-src",
    "img-src",
    "script-src-attr",
    "script-src-elem",
    "style-src-elem",
]


def test_no_report_runs_scripts_or_loads_anything_even_if_a_name_were_markup(
    page: Page, reports: dict[str, Path]
) -> None:
    for path in reports.values():
        page.open(path, width=800, scheme="light")
        assert page.evaluate(INTRUDER) == [REFUSED, False], path.name


def test_the_page_of_costs_runs_its_scripts_but_loads_nothing(
    page: Page, tmp_path: Path
) -> None:
    (tmp_path / "p.csv").write_text("target,a,b\na,0.7,0.3\nb,0.2,0.8\n")
    assert run("explore", tmp_path / "p.csv", "--out", tmp_path / "page.html") == 0
    page.open(tmp_path / "page.html", width=800, scheme="light")
    scripts = {"script-src-attr", "script-src-elem"}
    assert page.evaluate(INTRUDER) == [
        [each for each in REFUSED if each not in scripts],
        True,
    ]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_table_that_goes_on_beyond_the_edge_has_a_shade_there(
    page: Page, reports: dict[str, Path], scheme: str
) -> None:
    page.open(reports["models"], width=400, scheme=scheme)
    found = (
        "const box = [...document.querySelectorAll('.scroll')]"
        ".find(({scrollWidth, clientWidth}) => scrollWidth > clientWidth + 50);"
    )
    shades = {}
    for place in ("start", "end"):
        [right, top] = page.evaluate(
            f"(() => {{ {found} box.scrollLeft = '{place}' === 'end' ? 1e6 : 0;"
            "const {right, top} = box.getBoundingClientRect(); return [right, top + scrollY]; })()"
        )
        picture = Image.open(io.BytesIO(page.screenshot())).convert("L")
        blank = picture.getpixel((round(right) + 8, round(top) + 2))
        shades[place] = blank - picture.getpixel((round(right) - 1, round(top) + 2))
    assert shades["start"] > 10
    assert shades["end"] == 0


def test_the_cost_of_confusions_is_visible_on_a_phone(
    page: Page, reports: dict[str, Path]
) -> None:
    for name in ("score", "runs"):
        page.open(reports[name], width=400, scheme="light")
        assert (
            page.evaluate("document.querySelector('.bar').getBoundingClientRect().right")
            < 400
        )


@pytest.mark.parametrize("width", WIDTHS)
def test_names_are_broken_only_where_they_do_not_fit_a_line(
    page: Page, reports: dict[str, Path], width: int
) -> None:
    page.open(reports["detect"], width=width, scheme="light")
    heights = page.evaluate(
        "[...document.querySelectorAll(':not(pre) > .whole')].map(name => name.getBoundingClientRect().height"
        " / parseFloat(getComputedStyle(name).lineHeight))"
    )
    assert len(heights) > 3
    assert max(heights) < 1.5


@pytest.mark.parametrize(("scheme", "is_dark"), [("light", False), ("dark", True)])
def test_figures_follow_the_theme(
    page: Page, reports: dict[str, Path], scheme: str, is_dark: bool
) -> None:
    page.open(reports["score"], width=800, scheme=scheme)
    box = page.evaluate(
        "(({x, y, width, height}) => [x, y + scrollY, width, height])(document.images[0].getBoundingClientRect())"
    )
    left, top, width, height = map(round, box)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("L")
    figure = picture.crop((left, top, left + width, top + height))
    assert (figure.getpixel((3, 3)) < 60) is is_dark
    low, high = figure.getextrema()
    assert high - low > 150, "texts stand out"


def test_a_report_is_printed_in_light_colours(page: Page, reports: dict[str, Path]) -> None:
    page.open(reports["run"], width=1280, scheme="dark")
    streams = re.findall(rb"stream\r?\n(.*?)endstream", page.pdf(), flags=re.DOTALL)
    # 0x78 begins what zlib has packed: pages, not fonts and pictures.
    packed = [stream for stream in streams if stream.startswith(b"\x78")]
    printed = b"".join(map(zlib.decompress, packed))
    assert colour_in_pdf(RED) in printed
    assert not any(
        colour_in_pdf(ON_DARK[colour]) in printed for colour in (BLACK, RED, BLUE)
    )


@pytest.mark.slow
def test_what_is_folded_is_opened_by_the_keyboard_and_printed(
    page: Page, reports: dict[str, Path]
) -> None:
    page.open(reports["score"], width=800, scheme="light")
    height = "(() => { const fold = document.querySelector('details'); return [fold.open, fold.scrollHeight]; })()"
    is_open, folded = page.evaluate(height)
    assert not is_open
    page.call("Emulation.setEmulatedMedia", media="print")
    is_open, printed = page.evaluate(height)
    assert not is_open
    assert printed > folded + 200
    page.call("Emulation.setEmulatedMedia", media="")
    assert page.evaluate(height) == [False, folded]
    page.evaluate("document.querySelector('summary').focus()")
    for kind in ("keyDown", "keyUp"):
        page.call(
            "Input.dispatchKeyEvent",
            type=kind,
            key="Enter",
            code="Enter",
            windowsVirtualKeyCode=13,
            text="\r",
        )
    assert page.evaluate(height)[0]


def colour_in_pdf(colour: str) -> bytes:
    """Return the operands that choose a colour such as #b00020."""
    shares = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return b" ".join(f"{share:.4g}".removeprefix("0").encode() or b"0" for share in shares)


@pytest.mark.slow
def test_the_checks_find_faults(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "bad.html"
    path.write_text(
        "<html><title>bad</title><body><main><h1>One</h1><h3>Three</h3><img src='data:image/png;base64,AAAA'>"
        "<p style='color: #999'>faint</p><table><tr><th>a</th></tr></table><div style='width: 900px'>wide</div>"
        "</main><div>stray</div><script>console.error('told')</script><script src='http://127.0.0.1:9/x.js'></script>"
    )
    page.open(path, width=400, scheme="light")
    found = " | ".join(page.evaluate(CHECKS))
    for fault in (
        "does not decode",
        "no alt text",
        "pixels wide",
        "a level is left out",
        "must be 1 <footer>",
        "language",
        "no caption",
        "no scope",
        "cannot scroll",
        "outside landmarks",
        "contrast 2.8",
    ):
        assert fault in found
    assert any("told" in complaint for complaint in page.complaints)
    assert any(url.startswith("http:") for url in page.requests)
