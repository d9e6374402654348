"""Errors that a user can fix, and functions that quote values and escape characters."""

import re
import reprlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import PurePath
from string import Formatter
from typing import Any

from mpcs_torch.error_sentences import HINTS, RULES
from mpcs_torch.exit_statuses import ExitStatus

MAX_QUOTED = 100
"""The maximum number of characters of a value in an error message."""
MAX_QUOTED_NUMBERS = 10
"""The maximum number of values of a row in an error message."""
MAX_QUOTED_CAUSE = 200
"""The maximum number of characters of an error of other code, in a message about what it caused."""


class MpcsError(Exception):
    """The base class of errors in the user's input. The ``mpcs`` command prints only the message, not the traceback.

    Each subclass also derives from a built-in error such as ValueError, so that other code can catch it.
    """

    exit_status: int = ExitStatus.REFUSED
    """The exit status of the ``mpcs`` command after this error."""
    is_printed_elsewhere = False
    """Whether another process of the same run prints the message, so that this process need not."""


@dataclass(init=False)
class Rule:
    """A rule for the values of an argument or a file; its text continues a sentence that begins with either.

    Example:
        >>> str(Rule("at_least", "n_bins", minimum=1))
        'must be at least 1'
    """

    code: str
    """The key of the rule in `mpcs_torch.error_sentences`."""
    argument: str
    fields: Mapping[str, Any]
    """Numbers, texts, other arguments, other rules, or the error that is the cause, which the rule names."""

    def __init__(self, code: str, argument: str = "", /, **fields: Any) -> None:
        self.code, self.argument, self.fields = code, argument, fields

    def __str__(self) -> str:
        return _SENTENCE.vformat(RULES[self.code], (), self.fields)

    def broken_by(self, value: Any = ..., **place: Any) -> "InvalidValueError":
        """Return the error for a ``value``, perhaps that of a ``sample``, that breaks the rule."""
        return InvalidValueError(self.code, self.argument, value, **place, **self.fields)


class CodedError(MpcsError):
    """An error as data: the code of a rule that is broken, and what it names. Its sentence is made when it is printed.

    Args:
        code: The key of the rule in `mpcs_torch.error_sentences`.
        argument: The name of the argument, key or file, with which the sentence begins; empty where the rule is of a
            file that the caller names.
        value: The value; `...` if the message quotes none.
        sample: The index of the first sample that breaks the rule, if samples do.
        column: The index of the value of this sample that breaks the rule, if it is known which does.
        count: The number of samples that break it, if only their number is known.
        **fields: What the rule names, such as its ``minimum``.
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
        super().__init__()  # without arguments, which an OSError would take for errno and file name
        self.args = (code, argument, value)  # as pickle passes them
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
        return Rule(self.code, self.argument, **self.fields)

    def __str__(self) -> str:
        hint = _SENTENCE.vformat(HINTS.get(self.code, ""), (), self.fields)
        remedy = f": {hint}" if hint else ""
        return f"{self.argument} {self.rule}{self._breach()}{remedy}".strip()

    def _breach(self) -> str:
        """Return the part of the sentence that says which value, or how many samples, break the rule."""
        if self.sample is not None:
            return f", but sample {self.sample} has {value_in_words(self.value)}"
        if self.count is not None:
            return f", but {self.count} of the samples since the last reset do not"
        if self.value is ...:
            return ""
        return f", but got {value_in_words(self.value)}"


class InvalidValueError(CodedError, ValueError):
    """The error for an argument, or a sample of it, that breaks a rule.

    Example:
        >>> print(InvalidValueError("at_least", "n_bins", 0, minimum=1))
        n_bins must be at least 1, but got 0
    """


class ArgumentsError(InvalidValueError, TypeError):
    """The error for an argument that has a wrong type, is unknown, or does not go with the others."""


class ExistsError(CodedError, FileExistsError):
    """The error for a file that would be overwritten, or a folder that is not empty."""


class MissingFileError(CodedError, FileNotFoundError):
    """The error for a file, or a checkpoint in a folder, that does not exist or is damaged."""


class DataError(CodedError, RuntimeError):
    """The error for a data set that is missing or broken, or that cannot be split as requested."""


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
        more = ", ..." if len(value) > MAX_QUOTED_NUMBERS else ""
        return f"[{', '.join(map(value_in_words, value[:MAX_QUOTED_NUMBERS]))}{more}]"
    if hasattr(value, "dtype") and hasattr(value, "shape") and not isinstance(value, type):
        return f"{value.dtype} {tuple(value.shape)}"
    return quoted(value)


class _Sentence(Formatter):
    """Fills a template: ``!r`` quotes a field, ``!l`` lists names, and ``!t`` lists them as `span` does.

    Without these, texts, rules and errors are as they are, and values as `value_in_words` gives them.
    """

    def convert_field(self, value: Any, conversion: Any) -> Any:
        words: dict[str, Callable[[Any], str]] = {"r": quoted, "l": listed, "t": span}
        return words[conversion](value) if conversion else value

    def format_field(self, value: Any, _: str) -> str:
        if isinstance(value, str | Rule | MpcsError | PurePath):
            return str(value)
        if isinstance(value, Exception):
            return shown(str(value), MAX_QUOTED_CAUSE)
        return value_in_words(value)


_SENTENCE = _Sentence()


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


def listed(names: Sequence[str], most: int = 10) -> str:
    """Return the first ``most`` names with commas between, and the number of the others, for a message."""
    first = ", ".join(quoted(name)[1:-1] for name in islice(names, most))
    if len(names) > most:
        return f"{first} and {len(names) - most} more"
    return first or "none"


NUMBERED = re.compile(r"(|.*\D)(\d{1,18})(\D*)")
"""A pattern for a name with a number: the text before the last number in it, this number, and the text behind it."""


def span(names: Sequence[str]) -> str:
    """List ``names`` for a message; names with consecutive numbers become "FIRST to LAST"."""
    families = [family for family, _ in numbered_families(names)]
    if len(names) > 2 and families == [tuple(names)]:
        return f"{listed(names[:1])} to {listed(names[-1:])}"
    return listed(names)


def numbered_families(
    names: Sequence[str],
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield families of ``names``, such as p0 and p1, that differ only in numbers from 0 or 1; and their numbers."""
    families = defaultdict[tuple[str, str], dict[int, str]](dict)
    for name in names:
        if match := NUMBERED.fullmatch(name):
            families[match[1], match[3]][int(match[2])] = name
    for family in families.values():
        numbers, size = sorted(family), len(family)
        if size > 1 and numbers in ([*range(size)], [*range(1, size + 1)]):
            yield tuple(family[number] for number in numbers), tuple(map(str, numbers))


def did_you_mean(given: object, names: Iterable[str], likeness: float = 0.6) -> str:
    """Return a question that suggests up to 3 of ``names`` that are spelled like ``given``, or else contain it.

    It is empty if there are none. ``likeness`` is the lowest `difflib.SequenceMatcher.ratio`, from 0 to 1, of similar
    names.

    Example:
        >>> did_you_mean("acuracy", ["accuracy", "mpcs"])
        'did you mean accuracy?'
        >>> did_you_mean("kappa", ["accuracy", "quadratic_weighted_kappa"])
        'did you mean quadratic_weighted_kappa?'
    """
    text, known = str(given)[:MAX_QUOTED], list(names)
    near = get_close_matches(text, known, cutoff=likeness)
    if not near and len(text) > 1:
        near = [name for name in known if text in name][:3]
    return f"did you mean {' or '.join(near)}?" if near else ""


def shown(text: str, limit: int = MAX_QUOTED) -> str:
    """Return ``text`` on one line, cut to ``limit`` characters, with control characters escaped."""
    beginning = text[: 2 * limit]  # the rest is cut before it takes time
    safe = " ".join(beginning.split())
    if not safe.isprintable():
        safe = repr(safe)[1:-1]
    is_whole = beginning == text and len(safe) <= limit
    return safe if is_whole else f"{safe[: limit - 3]}..."


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
