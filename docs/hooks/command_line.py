"""The command line as a page: what ``mpcs VERB --help`` says of each verb."""

import re
from collections.abc import Iterator
from typing import Any

import typer

from mpcs_torch.cli.app import app


def every_verb() -> str:
    """Return a section of Markdown for each verb."""
    root = typer.main.get_command(app)
    context = root.make_context("mpcs", [], resilient_parsing=True)
    return "\n\n".join(
        text
        for name in root.list_commands(context)
        for text in _sections(root, context, name, "mpcs")
    )


def _sections(group: Any, context: Any, name: str, before: str) -> Iterator[str]:
    command = group.get_command(context, name)
    called = f"{before} {name}"
    inner = command.make_context(called, [], resilient_parsing=True)
    verbs = command.list_commands(inner) if hasattr(command, "list_commands") else []
    if not verbs:
        yield "\n\n".join(
            [
                f"## {called}",
                _text(command.help),
                _usage(command, inner),
                _table(command, inner),
            ]
        )
    for verb in verbs:
        yield from _sections(command, inner, verb, called)


def _text(text: str | None) -> str:
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text or "")


def _usage(command: Any, context: Any) -> str:
    return f"```text\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```"


def _table(command: Any, context: Any) -> str:
    records = [
        record
        for parameter in command.get_params(context)
        if (record := parameter.get_help_record(context))
    ]
    rows = [
        f"| `{_cell(option)}` | {_cell(text)} |"
        for option, text in records
        if option != "--help"
    ]
    return (
        "\n".join(["| argument or option | meaning |", "|---|---|", *rows]) if rows else ""
    )


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|").replace("<", "&lt;" if "`" in text else "<")
