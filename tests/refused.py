"""The check that a call is refused by a rule: by its code and its fields, not by its sentence."""

import re
from types import TracebackType
from typing import Any

import pytest

from mpcs_torch.errors import InvalidValueError
from mpcs_torch.evaluation.files.reading import PredictionsError


def sentence(code: str, argument: str = "", *value: Any, **fields: Any) -> str:
    """Return a pattern for the sentence of a rule, where an error of another type quotes it."""
    return re.escape(str(InvalidValueError(code, argument, *value, **fields)))


class Refused:
    """A context in which an `InvalidValueError` must be raised, which then is ``error``."""

    error: InvalidValueError

    def __init__(
        self,
        code: str,
        argument: str,
        *value: Any,
        raises: type = InvalidValueError,
        **expected: Any,
    ) -> None:
        """Expect an error of the type ``raises``, perhaps with its value, sample, column and fields."""
        self.code, self.argument, self.value, self.raises, self.expected = (
            code,
            argument,
            value,
            raises,
            expected,
        )

    def __enter__(self) -> "Refused":
        return self

    def __exit__(
        self, _: object, error: BaseException | None, __: TracebackType | None
    ) -> bool:
        assert error is not None, f"{self.code} of {self.argument} is not refused"
        if not isinstance(error, self.raises):
            return False
        assert isinstance(error, InvalidValueError)
        # The error about a requirement or a limit as text has that of its value.
        cause = error.fields.get("error")
        error = cause if isinstance(cause, InvalidValueError) else error
        self.error = error
        assert (error.code, error.argument) == (self.code, self.argument), error
        actual = {
            "sample": error.sample,
            "column": error.column,
            "count": error.count,
            **error.fields,
        }
        for name, value in self.expected.items():
            assert _are_equal(actual[name], value), error
        for value in self.value:
            assert _are_equal(error.value, value), error
        return True


def _are_equal(actual: object, expected: object) -> bool:
    """Compare values, and lists of numbers up to the rounding of float32."""
    return actual == expected or actual == pytest.approx(expected, nan_ok=True)


def refused_file(refusal: str, **fields: Any) -> pytest.RaisesExc[PredictionsError]:
    """Expect a `PredictionsError` by its code and place, as in "p.csv: number, row 3, column score", and by fields.

    The file, the column, and the row and column may be left out.
    """

    def is_expected(error: PredictionsError) -> bool:
        places = {"row": error.row, "column": error.column}
        named = [f"{name} {place}" for name, place in places.items() if place is not None]
        refused = ", ".join([f"{error.path.name}: {error.code}", *named])
        assert f" {refusal}, " in f" {refused}, ", error
        known = {"value": error.value, "argument": error.rule.argument, **error.rule.fields}
        assert known | fields == known, error
        return True

    return pytest.raises(PredictionsError, check=is_expected)
