"""The commands of docs/how-to/detection.md print what the page shows."""

import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.test_cli import run

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "how-to" / "detection.md").read_text()


def blocks(language: str) -> list[str]:
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    return [text for found, text in fences if found == language]


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """The output of the commands of the page, run one after the other in a copy of the examples."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for block in blocks(""):
        for command in block.replace("\\\n", "").splitlines():
            program, *arguments = shlex.split(command)
            if program == "cd":
                monkeypatch.chdir(arguments[0])
            elif program == "python":
                monkeypatch.setattr(sys, "argv", arguments)
                runpy.run_path(arguments[0], run_name="__main__")
            else:
                assert program == "mpcs"
                assert run(*arguments) == 0
    return capsys.readouterr().out


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


def holds(row: list[str], shown: list[str]) -> bool:
    """Whether the shown cells are cells of the row, in its order."""
    rest = iter(row)
    return all(cell in rest for cell in shown)


def test_the_page_shows_what_its_commands_print(printed: str) -> None:
    rows = [cells(line) for line in printed.splitlines() if line.startswith("|")]
    shown = [line for line in PAGE.splitlines() if line.startswith("|") and not line.startswith("|--")]
    assert len(shown) > 30
    assert [line for line in shown if not any(holds(row, cells(line)) for row in rows)] == []
    assert [line for block in blocks("text") for line in block.splitlines() if line not in printed.splitlines()] == []


def test_every_picture_of_the_page_is_drawn_by_its_example() -> None:
    example = (ROOT / "examples" / "detection_exercises.py").read_text()
    pictures = re.findall(r"\]\(\.\./(detection-[^)]+\.png)\)", PAGE)
    assert pictures
    assert all(f'"{picture}"' in example for picture in pictures)
    assert all((ROOT / "docs" / picture).stat().st_size < 100_000 for picture in pictures)
