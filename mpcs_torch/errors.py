"""Errors that a user can fix, the exit statuses of commands, and functions that quote values and escape characters."""

import re
import reprlib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import IntEnum
from typing import Any, NamedTuple

from mpcs_torch.messages import HINTS, RULES

MAX_QUOTED = 100
"""The maximum number of characters of a value in an error message."""
MAX_NUMBERS = 10
"""The maximum number of values of a row in an error message."""


class ExitStatus(IntEnum):
    """The exit statuses of ``mpcs`` commands, each with its one meaning."""

    DONE = 0
    """It has done its work; what it prints may hold cautions."""
    FAULT = 1
    """It failed by an error of this package."""
    REFUSED = 2
    """It refused its input: an option, a file, a value, or what is missing on this machine."""
    NOT_MET = 3
    """It measured that a requirement is not met."""
    ALARM = 4
    """It monitors limits, and an alarm is not acknowledged."""
    NO_PROMISE = 5
    """It monitors limits, and there is no alarm; but too few labels count for a limit to support this."""
    DIVERGED = 6
    """It trained a model that gives NaN or infinite logits."""
    INTERRUPTED = 130
    """It was stopped by Ctrl-C."""
    TERMINATED = 143
    """It was stopped by SIGTERM."""


class MpcsError(Exception):
    """The base class of errors in the user's input. The ``mpcs`` command prints only the message, not the traceback.

    Each subclass also derives from a built-in error such as ValueError, so that other code can catch it.
    """

    exit_status: int = ExitStatus.REFUSED
    """The exit status of the ``mpcs`` command after this error."""
    is_printed_elsewhere = False
    """Whether another process of the same run prints the message, so that this process need not."""


class DataError(MpcsError, RuntimeError):
    """The error for a data set that is missing or broken, or that cannot be split as requested."""


class Rule(NamedTuple):
    """A rule for the values of an argument; its text continues a sentence that begins with the argument.

    Example:
        >>> str(Rule("at_least", "n_bins", {"minimum": 1}))
        'must be at least 1'
    """

    code: str
    """The key of the rule in `mpcs_torch.messages`."""
    argument: str = ""
    fields: Mapping[str, Any] = {}
    """Numbers, other arguments or other rules that the rule names."""

    def __str__(self) -> str:
        return _filled(RULES[self.code], self.fields)

    def broken_by(self, value: Any = ..., **place: Any) -> "InvalidValueError":
        """Return the error for a ``value``, perhaps that of a ``sample``, that breaks the rule."""
        return InvalidValueError(self.code, self.argument, value, **place, **self.fields)


class InvalidValueError(MpcsError, ValueError):
    """The error for an argument, or a sample of it, that breaks a rule. Its sentence is made when it is printed.

    Args:
        code: The key of the rule in `mpcs_torch.messages`.
        argument: The name of the argument; empty where the rule is of a file that the caller names.
        value: The value; `...` if the message quotes none.
        sample: The index of the first sample that breaks the rule, if samples do.
        column: The index of the value of this sample that breaks the rule, if it is known which does.
        count: The number of samples that break it, if only their number is known.
        **fields: What the rule names, such as its ``minimum``.

    Example:
        >>> print(InvalidValueError("at_least", "n_bins", 0, minimum=1))
        n_bins must be at least 1, but got 0
    """

    def __init__(
        self,
        code: str,
        argument: str = "",
        value: Any = ...,
        *,
        sample: int | None = None,
        column: int | None = None,
        count: int | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(code, argument, value)  # as pickle passes them
        self.code = code
        self.argument = argument
        self.value = value
        self.fields = fields
        self.sample = sample
        self.column = column
        self.count = count

    @property
    def rule(self) -> Rule:
        """The rule that is broken."""
        return Rule(self.code, self.argument, self.fields)

    def __str__(self) -> str:
        found = "" if self.value is ... else f", but got {value_in_words(self.value)}"
        if self.sample is not None:
            found = f", but sample {self.sample} has {value_in_words(self.value)}"
        elif self.count is not None:
            found = f", but {self.count} of the samples since the last reset do not"
        hint = _filled(HINTS.get(self.code, ""), self.fields)
        remedy = f": {hint}" if hint else ""
        return f"{self.argument} {self.rule}{found}{remedy}".strip()


def require(
    is_kept: object, code: str, argument: str, value: Any = ..., **fields: Any
) -> None:
    """Raise an `InvalidValueError` about the ``value`` of ``argument`` unless ``is_kept`` is true."""
    if not is_kept:
        raise InvalidValueError(code, argument, value, **fields)


def value_in_words(value: Any) -> str:
    """Return a value as messages quote it: numbers with up to six digits, and of a tensor its dtype and shape."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list) and any(isinstance(entry, float) for entry in value):
        more = ", ..." if len(value) > MAX_NUMBERS else ""
        return f"[{', '.join(map(value_in_words, value[:MAX_NUMBERS]))}{more}]"
    if hasattr(value, "dtype") and hasattr(value, "shape") and not isinstance(value, type):
        return f"{value.dtype} {tuple(value.shape)}"
    return quoted(value)


def _filled(template: str, fields: Mapping[str, Any]) -> str:
    texts = dict[str, str]()
    for name, field in fields.items():
        texts[name] = str(field) if isinstance(field, str | Rule) else value_in_words(field)
    return template.format(**texts)


class _Short(reprlib.Repr):
    """A `repr` that abbreviates values that are huge or deeply nested."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxstring = self.maxlong = self.maxother = MAX_QUOTED

    def repr_int(self, x: int, level: int) -> str:
        if x.bit_length() < 1000:
            return super().repr_int(x, level)
        return f"an integer of {x.bit_length()} bits"


def quoted(value: object) -> str:
    r"""Return the repr of ``value``, cut to 100 characters and without control characters.

    Example:
        >>> quoted(["red", chr(27)])
        "['red', '\\x1b']"
    """
    text = _Short().repr(value)
    return text if len(text) <= MAX_QUOTED else f"{text[: MAX_QUOTED - 3]}..."


def did_you_mean(given: object, names: Iterable[str]) -> str:
    """Return a question that suggests those of ``names`` that are spelled like ``given``; empty if none are similar.

    Example:
        >>> did_you_mean("acuracy", ["accuracy", "mpcs"])
        'did you mean accuracy?'
    """
    near = get_close_matches(str(given)[:MAX_QUOTED], list(names))
    return f"did you mean {' or '.join(near)}?" if near else ""


def shown(text: str, limit: int = MAX_QUOTED) -> str:
    """Return ``text`` on one line, cut to ``limit`` characters, with control characters escaped."""
    line = " ".join(text[: 2 * limit].split())  # the rest is cut before it takes time
    safe = line if line.isprintable() else repr(line)[1:-1]
    if len(safe) <= limit and len(text) <= 2 * limit:
        return safe
    return f"{safe[: limit - 3]}..."


CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
"""A pattern for control characters, line separators, text direction marks, byte order marks and lone surrogates. It
does not match zero-width joiners, because many scripts need them."""


def has_control(text: str) -> bool:
    """Return whether ``text`` has a character that `CONTROL` matches."""
    return CONTROL.search(text) is not None


def printable(text: str) -> str:
    r"""Return ``text`` with its control characters escaped, such as ``\x1b`` for the escape character."""
    return CONTROL.sub(lambda found: repr(found[0])[1:-1], text)
