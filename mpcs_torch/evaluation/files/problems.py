"""Problems that keep a file from being read in one way, as data."""

from typing import Any

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.facts import span
from mpcs_torch.messages import PROBLEMS


class Problem:
    """A reason why a file, or one way to read it, is refused or doubted; its text is a sentence of `PROBLEMS`.

    ``fields`` are what the sentence names: numbers, texts of the file, which are quoted, and lists of such texts.
    """

    def __init__(self, code: str, **fields: Any) -> None:
        self.code, self.fields = code, fields

    def __str__(self) -> str:
        return PROBLEMS[self.code].format(
            **{name: _shown(value) for name, value in self.fields.items()}
        )


def _shown(value: Any) -> Any:
    if isinstance(value, int | float):
        return value
    return quoted(value) if isinstance(value, str) else span(value)
