"""Take the pictures of reports that the pages show: python -m tests.browser.pictures FOLDER (such as docs).

It needs chromium. The window is as narrow as a phone, so that the pictures can be read on one.
"""

import base64
import os
import runpy
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.browser.chromium import find_chromium, opened_page
from tests.cli.shell import must_run

EXAMPLES = Path(__file__).parents[2] / "examples"
PREDICTIONS = str(EXAMPLES / "data" / "predictions.csv")
WIDTH = 480
"""The width of the window in pixels; pictures have 1.5 pixels for each."""


class Picture(NamedTuple):
    """A picture of a page."""

    command: str
    """Writes the page.html."""
    height: int
    """Of what is shown, in pixels of the window."""


PICTURES = {
    "score-report": Picture(
        f"score {PREDICTIONS} --concern traffic-lights --html page.html", 620
    ),
    "is-b-better": Picture(
        "score a.csv b.csv --concern concern.yaml --metrics dangerous_rate,accuracy,mpcs --html page.html",
        460,
    ),
    "explore": Picture(
        "explore pilot.csv --concern biopsies.yaml --by site --out page.html", 900
    ),
}
"""By name."""


def main(folder: Path) -> None:
    """Write the pictures to a folder."""
    browser = find_chromium()
    assert browser is not None, "install chromium"
    folder = folder.resolve()
    with TemporaryDirectory() as work, opened_page(browser) as page:
        os.chdir(work)
        for example in ("three_outcomes", "biopsies"):
            runpy.run_path(str(EXAMPLES / f"{example}.py"), run_name="__main__")
        for name, (command, height) in PICTURES.items():
            must_run(*command.split(), "--overwrite")
            page.open(Path("page.html"), width=WIDTH, scheme="light")
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1.5}
            shot = page.call(
                "Page.captureScreenshot", clip=clip, captureBeyondViewport=True
            )
            (folder / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
