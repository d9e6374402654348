"""Tables on a terminal: they fit it, numbers are whole and aligned, and nothing in a name is interpreted."""

import re
import sys
from html import unescape

import pytest
from markdown_it import MarkdownIt
from rich.cells import cell_len

from mpcs_torch.cli.console import heading, note, part_text, say
from mpcs_torch.errors import printable
from mpcs_torch.tables import Table

METRICS = [
    "accuracy",
    "mean_squared_error",
    "soft_precision_macro",
    "dangerous",
    "mpcs",
    "cross_entropy",
]
HOSTILE = [
    "[bold red]dog[/bold red]",
    "[/]",
    "\x1b[31mred\x1b[0m",
    "a\nb",
    "an\u202eeman",
    "[link=x]y",
]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")  # whose text has no control characters
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def at_width(terminal: pytest.MonkeyPatch, width: int, table: Table) -> list[str]:
    terminal.setenv("COLUMNS", str(width))
    return part_text(table).split("\n")


def test_a_pipe_gets_markdown_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "20")
    table = Table(["name", "value"], [["a long name [bold]", "1.5"]])
    assert part_text(table) == table.markdown()


@pytest.mark.parametrize(
    "name", ["a|b", "a\\|b", "|", "ends\\", "\\\\|", "a | b", "\\", "a\nb|c", "|||"]
)
def test_no_name_shifts_the_columns_of_a_markdown_table(name: str) -> None:
    table = Table(["site", f"recall[{name}]"], [[name, "1"], ["north", name]])
    html = MarkdownIt("commonmark").enable("table").render(table.markdown())
    cells = [
        unescape(cell).replace("\\", "")
        for cell in re.findall("<t[dh]>(.*?)</t[dh]>", html)
    ]
    shown = printable(name).replace(
        "\\", ""
    )  # Markdown reads a backslash before some characters as an escape
    assert cells == ["site", f"recall[{shown}]", shown, "1", "north", shown]


def test_a_terminal_shows_a_name_with_bars_as_it_is(terminal: pytest.MonkeyPatch) -> None:
    table = Table(["site", "recall"], [["a|b", "0.5"], ["north", "0.25"]])
    assert [line.split() for line in at_width(terminal, 80, table)[2:]] == [
        ["a|b", "0.5"],
        ["north", "0.25"],
    ]


TABLES = {
    "many columns": Table(
        ["picked by", *METRICS], [["the rule", *["0.123456 (+0.05)"] * len(METRICS)]] * 3
    ),
    "long names": Table(
        ["class", "samples", "recall"],
        [["very_long_" * 15, "12", "0.5"], ["word " * 40, "3", "1"]],
    ),
    "long headers": Table(["true", *("label " * 20, "label_" * 20)], [["a", "1 !", "-"]]),
    "wide characters": Table(["class", "recall"], [["日本語" * 30, "0.25"]]),
    "a hundred classes": Table(
        ["true", *map(str, range(100))], [[str(i), *["0.5"] * 100] for i in range(3)]
    ),
    "sentences": Table(
        ["name", "takes", "computes"],
        [["mpcs", "probabilities", "Compute what a model knows. " * 5]],
    ),
    "no rows": Table(["pair", "share of neighbours"], []),
}


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("name", TABLES)
def test_no_line_is_wider_than_the_terminal_and_no_number_is_broken(
    terminal: pytest.MonkeyPatch, width: int, name: str
) -> None:
    table = TABLES[name]
    lines = at_width(terminal, width, table)
    assert max(map(cell_len, lines)) <= width
    for row in table.rows:
        for cell in row[1:]:
            if cell[0].isdigit():
                assert any(cell in line for line in lines)


def test_columns_that_do_not_fit_come_below_with_the_first_column_again(
    terminal: pytest.MonkeyPatch,
) -> None:
    lines = at_width(terminal, 60, TABLES["many columns"])
    assert sum(line.startswith("picked by") for line in lines) == 3
    words = " ".join(" ".join(lines).split())
    assert all(metric in words or metric.split("_")[0] + "_" in words for metric in METRICS)


def test_columns_of_numbers_end_at_one_place(terminal: pytest.MonkeyPatch) -> None:
    values = ["0.5 (0.25 to 0.75)", "123.4567", "-1e-05", "12", "nan", "97.1 %", ""]
    header, _, *rows = at_width(
        terminal, 80, Table(["metric", "value"], [["m", value] for value in values])
    )
    assert [
        row.rstrip().endswith(value) for row, value in zip(rows, values, strict=True)
    ] == [True] * len(values)
    assert {len(row) for row, value in zip(rows, values, strict=True) if value} == {
        len(header)
    }


def test_names_are_not_markup_and_have_no_control_characters(
    terminal: pytest.MonkeyPatch,
) -> None:
    terminal.setenv("TERM", "xterm-256color")
    terminal.setenv("NO_COLOR", "1")
    text = "\n".join(
        at_width(
            terminal, 80, Table(["[b]class[/b]", "n"], [[name, "1"] for name in HOSTILE])
        )
    )
    plain = re.sub(r"\x1b\[[01]?m", "", text)  # the bold header
    assert plain.splitlines()[0].startswith("[b]class[/b]")
    assert all(name in plain for name in HOSTILE if "[" in name and "\x1b" not in name)
    assert r"\x1b[31mred" in plain
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", plain)


def test_a_terminal_that_can_shows_a_bold_header(terminal: pytest.MonkeyPatch) -> None:
    terminal.setenv("TERM", "xterm-256color")
    assert "\x1b[1m" in part_text(TABLES["long names"])
    assert heading("Runs") == "\x1b[1mRuns\x1b[0m"
    terminal.setenv("TERM", "dumb")
    assert "\x1b" not in part_text(TABLES["long names"])
    assert heading("Runs") == "Runs"


def test_escape_sequences_do_not_count_as_width(
    terminal: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.setenv("TERM", "xterm-256color")
    terminal.setenv("COLUMNS", "40")
    table = Table(
        ["metric", "value", "what"], [["accuracy", "0.5", "the share of right ones"]]
    )
    say(table)
    shown = capsys.readouterr().out.rstrip("\n")
    assert shown == part_text(table)
    assert shown.count("\n") == 2


def test_long_sentences_are_broken_between_words_on_a_terminal_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    path = "/a/folder/with-a-name/that-is-longer-than/the-terminal.csv"
    text = f"A note.\n\n    indented: {'word ' * 12}\nwrote {path} and more"
    note(text)
    told = capsys.readouterr().out
    assert max(len(line) for line in told.splitlines() if path not in line) <= 40
    assert "\n    indented: word" in told
    assert f"\n{path}\n" in told
    assert told.split() == text.split()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    note(text)
    assert capsys.readouterr().out == f"{text}\n"
