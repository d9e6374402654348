"""Problems that keep a file from being read in one way, as data."""

from typing import Any

from mpcs_torch.errors import Rule, quoted
from mpcs_torch.evaluation.files.facts import span


class Problem:
    """A reason why a file, or one way to read it, is refused or doubted; its text is a sentence of `messages.RULES`.

    ``fields`` are what the sentence names: numbers, texts of the file, which are quoted, and lists of such texts.
    """

    def __init__(self, code: str, **fields: Any) -> None:
        self.code, self.fields = code, fields

    def __str__(self) -> str:
        return str(
            Rule(self.code, "", {name: _shown(each) for name, each in self.fields.items()})
        )


def _shown(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.3g}")
    if isinstance(value, int):
        return value
    return quoted(value) if isinstance(value, str) else span(value)
