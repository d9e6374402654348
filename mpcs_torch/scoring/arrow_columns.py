"""Numbers and labels of columns of arrow, with errors that name the row."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.errors import quoted
from mpcs_torch.scoring.chunks import PredictionsError, is_number

if TYPE_CHECKING:
    import pyarrow


def numbers_of(path: Path, values: "pyarrow.Array", column: str, first_row: int) -> NDArray[np.float64]:
    """Return the numbers that a column holds, as numbers or as text: float64.

    Raises:
        PredictionsError: If a value is missing or is no number.
    """
    from pyarrow.types import is_floating, is_integer

    if (is_floating(values.type) or is_integer(values.type)) and not values.null_count:
        return np.asarray(np.from_dlpack(values), dtype=np.float64)  # to_numpy would import pandas
    held = values.to_pylist()
    try:
        return np.array([float(value) for value in held])
    except (TypeError, ValueError, OverflowError):
        row = next(row for row, value in enumerate(held) if not is_number(value))
        problem = "is missing" if held[row] in (None, "") else f"must be a number, but is {quoted(held[row])}"
        raise PredictionsError(path, problem, row=first_row + row, column=column) from None


def labels_of(
    path: Path,
    values: "pyarrow.Array",
    column: str,
    first_row: int,
    label_of: Callable[[Any], int | None],
    rule: str,
) -> NDArray[np.int64]:
    """Return the labels of a column, asking once for each distinct value: int64.

    Args:
        path: The file, for errors.
        values: The column.
        column: Its name, for errors.
        first_row: The number of its first row, for errors.
        label_of: Returns the label of a value, or None if it has none.
        rule: What a value must be, as the error begins.

    Raises:
        PredictionsError: If a value has no label.
    """
    from pyarrow.types import is_dictionary

    if is_dictionary(values.type) and values.null_count:
        values = values.dictionary_decode()
    encoded = values if is_dictionary(values.type) else values.dictionary_encode(null_encoding="encode")
    places: NDArray[np.int64] = np.asarray(np.from_dlpack(encoded.indices), dtype=np.int64)
    distinct = encoded.dictionary.to_pylist()
    labels = [label_of(value) for value in distinct]
    bad = np.isin(places, [place for place, label in enumerate(labels) if label is None])
    if bad.any():
        row = int(bad.argmax())
        problem = f"{rule}, but is {quoted(distinct[places[row]])}"
        raise PredictionsError(path, problem, row=first_row + row, column=column)
    by_place: NDArray[np.int64] = np.array([label or 0 for label in labels], dtype=np.int64)
    return by_place[places]
