"""MkDocs hook: write what the code knows: the reference, the command line, parts of pages, and colours."""

import re
from typing import Any

from command_line import every_verb
from maths import MathsExtension
from mkdocs.structure.files import File
from names import NamesExtension
from public_names import names_in

PARTS = "<!-- parts of a config -->"
REFERENCE = re.compile(r"^<!-- reference: (\w+)(?: (\w+))? -->$", re.MULTILINE)
COMMANDS = "<!-- commands -->"
CODE = re.compile(r"<(pre|code|math|script|style)\b.*?</\1>", re.DOTALL)
PERCENT = re.compile(r"(?<=\d) %")
"""The space of 5 %, at which a line must not break."""


def on_config(config: Any) -> Any:
    """Add our Markdown extensions."""
    config.markdown_extensions += [MathsExtension(), NamesExtension()]
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Add the colours of the reports as a stylesheet."""
    from mpcs_torch.plots.canvas import page_colours

    light, dark = (page_colours(is_dark=is_dark) for is_dark in (False, True))
    css = f':root, [data-md-color-scheme="default"] {{ {light} }}\n[data-md-color-scheme="slate"] {{ {dark} }}\n'
    files.append(File.generated(config, "theme/colours.css", content=css))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill in the names of a package, or of one of its families, and the verbs."""
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, every_verb())
    if PARTS in markdown:
        markdown = markdown.replace(PARTS, _parts())
    return REFERENCE.sub(_entries, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Keep numbers and their % on one line, but leave code as it is, because it is copied."""
    parts = list[str]()
    end = 0
    for code in CODE.finditer(html):
        parts += [PERCENT.sub("\xa0%", html[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, PERCENT.sub("\xa0%", html[end:])])


def _entries(marker: re.Match[str]) -> str:
    package, family = marker[1], marker[2]
    names = names_in(package, family)
    assert names, f"{marker[0]}: mpcs_torch.{package} has no such names"
    return "\n\n".join(f"::: mpcs_torch.{package}.{name}" for name in names)


def _parts() -> str:
    """Return the names of our parts, and the sections of a config."""
    from mpcs_torch.trainer.config.sections import (
        DataConfig,
        LossConfig,
        ModelConfig,
        OptimizerConfig,
        SchedulerConfig,
    )

    parts = {
        "data": DataConfig,
        "model": ModelConfig,
        "loss": LossConfig,
        "scheduler": SchedulerConfig,
        "training.optimizer": OptimizerConfig,
    }
    rows = [
        f"| `{key}` | {', '.join(f'`{name}`' for name in part.registry)} |"
        for key, part in parts.items()
    ]
    return "\n".join(["| part | names |", "|---|---|", *rows])
