"""The base class of errors that a user can fix, and functions that quote values and escape control characters."""

import re
import reprlib
from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum

MAX_QUOTED = 100
"""The maximum number of characters of a value in an error message."""


class ExitStatus(IntEnum):
    """What the exit status of an ``mpcs`` command says."""

    DONE = 0
    """It has done its work; what it prints may hold cautions."""
    FAULT = 1
    """It failed by an error of this package."""
    REFUSED = 2
    """It refused its input: an option, a file, a value, or what is missing on this machine."""
    NOT_MET = 3
    """It measured that a requirement is not met."""
    ALARM = 4
    """It monitors an alarm that is not acknowledged."""
    NO_PROMISE = 5
    """It monitors no alarm, but the labels do not support the promise that there is none to raise."""
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


class InvalidValueError(MpcsError, ValueError):
    """The error for an argument, or a sample of it, that breaks a rule.

    Args:
        rule: What the argument must be; its first word is the name of the argument.
        value: What it is, in the form in which the message quotes it.
        sample: The index of the first sample that breaks the rule, if samples do.
        column: The index of the value of this sample that breaks the rule, if it is known which does.
        count: The number of samples that break it, if only their number is known.

    Example:
        >>> print(InvalidValueError("beta must be finite and > 0", -1.0))
        beta must be finite and > 0, but got -1.0.
    """

    def __init__(
        self,
        rule: str,
        value: object = None,
        *,
        sample: int | None = None,
        column: int | None = None,
        count: int | None = None,
    ) -> None:
        self.rule, self.value, self.sample, self.column, self.count = rule, value, sample, column, count
        found = f"got {value}"
        if sample is not None:
            found = f"sample {sample} has {value}"
        elif count is not None:
            found = f"{count} of the samples since the last reset do not"
        super().__init__(f"{rule}, but {found}.")

    @property
    def argument(self) -> str:
        """The name of the argument that breaks the rule."""
        return self.rule.split(maxsplit=1)[0]

    @property
    def plain_rule(self) -> str:
        """The rule without the name of the argument, and without the advice in brackets, which is for Python."""
        return self.rule.removeprefix(self.argument).partition(" (")[0].strip()


def require(is_kept: object, rule: str, value: object) -> None:
    """Raise an `InvalidValueError` unless ``is_kept`` is true: ``rule`` begins with the argument that has ``value``."""
    if not is_kept:
        raise InvalidValueError(rule, value)


class _Short(reprlib.Repr):
    """A `repr` that abbreviates values that are huge or deeply nested."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxstring = self.maxlong = self.maxother = MAX_QUOTED

    def repr_int(self, x: int, level: int) -> str:
        return super().repr_int(x, level) if x.bit_length() < 1000 else f"an integer of {x.bit_length()} bits"


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
    line = " ".join(text[: 2 * limit].split())
    safe = line if line.isprintable() else repr(line)[1:-1]
    return safe if len(safe) <= limit and len(text) <= 2 * limit else f"{safe[: limit - 3]}..."


CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")
"""A pattern for control characters, line separators, text direction marks, byte order marks and lone surrogates. It
does not match zero-width joiners, because many scripts need them."""


def has_control(text: str) -> bool:
    """Return whether ``text`` has a character that `CONTROL` matches."""
    return CONTROL.search(text) is not None


def printable(text: str) -> str:
    r"""Return ``text`` with its control characters escaped, such as ``\x1b`` for the escape character."""
    return CONTROL.sub(lambda found: repr(found[0])[1:-1], text)
