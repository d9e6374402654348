"""The check that a call is refused by a rule: by its code and its fields, not by its sentence."""

import re
from typing import Any

import pytest

from mpcs_torch.errors import CodedError, InvalidValueError, MpcsError


def sentence(code: str, argument: str = "", *value: Any, **fields: Any) -> str:
    """Return a pattern for the sentence of a rule, where an error of another type quotes it."""
    return re.escape(str(InvalidValueError(code, argument, *value, **fields)))


class Refused:
    """A context in which a `CodedError` must be raised."""

    def __init__(
        self,
        code: str,
        argument: str | None = None,
        *value: Any,
        raises: type[CodedError] = InvalidValueError,
        **expected: Any,
    ) -> None:
        """Expect an error of the type ``raises``, perhaps with its argument, value, sample, column and fields."""
        self.code = code
        self.argument = argument
        expected["code"] = code
        if argument is not None:
            expected["argument"] = argument
        if value:
            [expected["value"]] = value

        def is_expected(error: CodedError) -> bool:
            # The error about a requirement or a limit as text has that of its value.
            cause = error.fields.get("error")
            actual = vars(cause if isinstance(cause, CodedError) else error)
            for name, wanted in expected.items():
                assert _are_equal((actual | actual["fields"])[name], wanted), error
            return True

        self._context = pytest.raises(raises, check=is_expected)

    def __enter__(self) -> pytest.ExceptionInfo[CodedError]:
        return self._context.__enter__()

    def __exit__(self, *raised: Any) -> bool:
        return self._context.__exit__(*raised)


def refused_file(refusal: str, **fields: Any) -> pytest.RaisesExc[MpcsError]:
    """Expect a `PredictionsError` by its code and place, as in "p.csv: number, row 3, column score", and by fields.

    The file, the column, and the row and column may be left out.
    """

    def is_expected(error: Any) -> bool:
        places = {"row": error.row, "column": error.column}
        named = [f"{name} {place}" for name, place in places.items() if place is not None]
        refused = ", ".join([f"{error.path.name}: {error.code}", *named])
        assert f" {refusal}, " in f" {refused}, ", error
        known = {"value": error.value, "argument": error.rule.argument, **error.rule.fields}
        assert known | fields == known, error
        return True

    return pytest.raises(MpcsError, check=is_expected)


def _are_equal(actual: object, expected: object) -> bool:
    """Compare values, and lists of numbers up to the rounding of float32."""
    return actual == expected or actual == pytest.approx(expected, nan_ok=True)
