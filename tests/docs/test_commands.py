"""Every command of README, CONTRIBUTING and docs/ works as printed."""

import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer

from mpcs_torch.cli.app import app
from mpcs_torch.exit_statuses import ExitStatus
from tests.cli.shell import run
from tests.docs.pages import EXAMPLE, FENCE, PAGES, ROOT, commands, name_of
from tests.docs.sample_files import write_samples

WITH_OUTPUT = {
    "docs/tutorials/detector-exercises.md": 0,
    "docs/tutorials/from-costs-to-deployment.md": 2,
}
"""Pages that show rows and columns of printed tables outside code, and how many of their tables are not printed."""
NOT_PRINTED = {
    "docs/development/layers.md": "a map",
    "docs/how-to/when-class-frequencies-change.md": "a refusal, of other data than those of the examples",
}
"""Pages with a text that no command of the page prints in the tests, and why."""
STATUS = {
    "mpcs monitor rule.pt log.csv later.csv --state state.json --html": ExitStatus.ALARM
}
"""Beginnings of commands that end with another exit status than 0."""
SLOW = {
    "mpcs reproduce": "repeats the paper's experiments, for minutes to hours",
    "mpcs data get": "downloads data",
    "mpcs demo": "trains with twenty seeds, which `make demo` and tests/cli/test_cli.py do, too",
    "torchrun": "starts processes that import torch",
}
"""Beginnings of commands, with the reason why each runs with `-m exhaustive` alone; otherwise it is only parsed."""


def slow_reason(command: list[str]) -> str | None:
    reason: str | None = by_beginning(command, SLOW, None)
    return reason


def by_beginning(command: list[str], values: Mapping[str, Any], default: Any) -> Any:
    """Return the value of the first beginning that a command has."""
    text = " ".join(command)
    for beginning, value in values.items():
        if text.startswith(beginning):
            return value
    return default


PAGES_WITH_COMMANDS = [page for page in PAGES if [*commands(page)]]
SLOW_COMMANDS = [
    pytest.param(command, id=" ".join(command))
    for page in PAGES_WITH_COMMANDS
    for command in commands(page)
    if slow_reason(command) is not None
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a folder with the examples, the configs and the files that the commands read."""
    for name in ("examples", "configs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    write_samples(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("my_package", None)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=name_of(page),
            marks=[] if page.stem == "README" else [pytest.mark.slow],
        )
        for page in PAGES_WITH_COMMANDS
    ],
)
def test_the_commands_of_a_page_run_one_after_the_other(
    page: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = [*commands(page)]
    texts = [] if name_of(page) in NOT_PRINTED else texts_of_commands(page)
    for place, (program, *arguments) in enumerate(shown):
        if slow_reason([program, *arguments]) is not None:
            check_arguments(program, arguments)
        elif program == "mpcs":
            status = by_beginning([program, *arguments], STATUS, 0)
            assert run(*arguments) == status, capsys.readouterr().err
        elif program == "cd":
            monkeypatch.chdir(arguments[0])
        elif program == "python" and arguments[0] == "-m":
            assert find_spec(arguments[1]) is not None
        elif program == "python":
            # Without a command that reads its files, and without its output, tests/test_examples.py is enough.
            if texts or any(later[0] == "mpcs" for later in shown[place:]):
                monkeypatch.setattr(sys, "argv", arguments)
                runpy.run_path(arguments[0], run_name="__main__")
            assert Path(arguments[0]).is_file()
        else:
            check_set_up(program, arguments)
    if any(slow_reason(command) for command in shown):
        return
    lines = capsys.readouterr().out.splitlines()
    rows = [cells(line) for line in lines if line.startswith("|")]
    check_tables_in_code(page, rows)
    check_texts(texts, lines)
    if name_of(page) in WITH_OUTPUT:
        check_tables_of_output(page, rows)


def is_row(line: str) -> bool:
    """Return whether a line is a row of a table, not the line below its header."""
    return line.startswith("|") and not line.startswith("|--")


def check_tables_in_code(page: Path, printed: list[list[str]]) -> None:
    """Demand that commands have printed each row of a table that stands in a block of code."""
    lines = list[str]()
    for *_, text in FENCE.findall(EXAMPLE.sub("", page.read_text())):
        lines += filter(is_row, text.splitlines())
    assert [line for line in lines if cells(line) not in printed] == []


def check_texts(texts: list[str], printed: list[str]) -> None:
    """Demand that commands have printed each line of some texts; long lines are wrapped on the pages."""
    words = " ".join(" ".join(printed).split())
    lines = [" ".join(line.split()) for text in texts for line in text.splitlines()]
    assert [line for line in lines if line not in words] == []


def check_tables_of_output(page: Path, printed: list[list[str]]) -> None:
    """Demand that commands have printed the rows of tables of a page, which may leave out rows and columns."""

    def is_printed(line: str) -> bool:
        return any(holds(row, cells(line)) for row in printed)

    tables = [
        match[0].splitlines()
        for match in re.finditer(r"(?:^\|.*\n)+", page.read_text(), re.MULTILINE)
    ]
    of_output = [table for table in tables if is_printed(table[0])]
    assert len(tables) - len(of_output) == WITH_OUTPUT[name_of(page)]
    lines = [line for table in of_output for line in table if is_row(line)]
    assert len(lines) >= 10
    assert [line for line in lines if not is_printed(line)] == []


def texts_of_commands(page: Path) -> list[str]:
    """Return the texts that stand below commands, not below examples in Python."""
    return [
        text
        for language, _, text in FENCE.findall(EXAMPLE.sub("", page.read_text()))
        if language == "text"
    ]


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


def holds(row: list[str], shown: list[str]) -> bool:
    """Return whether the shown cells are cells of the row, in its order."""
    rest = iter(row)
    return all(cell in rest for cell in shown)


def check_arguments(program: str, arguments: list[str]) -> None:
    """Parse the arguments of a slow command without running it."""
    if program == "torchrun":
        script = next(
            argument
            for argument in arguments
            if argument.endswith(".py") or argument == "mpcs_torch"
        )
        if script != "mpcs_torch":
            assert Path(script).is_file()
            return
        arguments = arguments[arguments.index(script) + 1 :]
    command = typer.main.get_command(app)
    while hasattr(command, "get_command"):  # a group of verbs
        context = command.make_context("mpcs", [], resilient_parsing=True)
        verb, *arguments = arguments
        command = command.get_command(context, verb)
        assert command is not None, f"mpcs {verb}"
    command.make_context("mpcs", arguments)


def check_set_up(program: str, arguments: list[str]) -> None:
    """See that a target of make or an extra of the package exists; what they do is that of .ci/run."""
    if program == "make":
        targets = re.findall(
            r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE
        )
        assert set(arguments) <= set(targets)
    else:
        assert (program, arguments[0]) in {("pip", "install")}, (
            f"no test runs {program} {arguments[0]}"
        )
        extras = re.findall(r"\[([a-z]+)\]", " ".join(arguments))
        assert all(
            f"\n{extra} = [" in (ROOT / "pyproject.toml").read_text() for extra in extras
        )


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", SLOW_COMMANDS)
def test_a_slow_command_runs(command: list[str], folder: Path, data_root: Path) -> None:
    (folder / "data").symlink_to(data_root)
    modules = {"mpcs": "mpcs_torch", "torchrun": "torch.distributed.run"}
    line = [sys.executable, "-m", modules[command[0]], *command[1:]]
    result = subprocess.run(line, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("beginning", SLOW)
def test_what_is_slow_is_shown_somewhere(beginning: str) -> None:
    assert any(" ".join(param.values[0]).startswith(beginning) for param in SLOW_COMMANDS)  # type: ignore[arg-type]
