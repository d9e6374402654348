"""Match the rows of two files by their ids."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.errors import quoted, shown
from mpcs_torch.evaluation.files.file_errors import PredictionsError
from mpcs_torch.evaluation.files.tables import FileTable, ReadColumns
from mpcs_torch.evaluation.files.words import is_index

if TYPE_CHECKING:
    import pyarrow


class RowIds(NamedTuple):
    """The ids of the rows of a file: the texts of one column, or those of several columns joined by spaces."""

    path: Path
    ids: "pyarrow.Array"
    """(N,) texts, none of them missing."""
    column: str | None = None
    """The column of the ids, for error messages; None if there are several."""
    has_rows: bool = True
    """Whether the ids are those of all rows of the file, in their order."""

    @classmethod
    def of(cls, read: ReadColumns, names: Sequence[str]) -> Self:
        """Join the texts of the columns ``names`` to one id per row; refuse missing texts."""
        from pyarrow import compute

        parts = []
        for name in names:
            texts = compute.utf8_trim_whitespace(read.texts(name))
            if texts.null_count:
                raise read.error("must name the row, but is missing", texts.is_null().index(True).as_py(), name)
            parts.append(texts)
        joined = parts[0] if len(parts) == 1 else compute.binary_join_element_wise(*parts, " ")
        return cls(read.path, joined, names[0] if len(names) == 1 else None)

    def named(self, place: int) -> str:
        """Quote the id at index ``place`` for a message."""
        return quoted(self.ids[place].as_py())

    def repeated(self) -> int:
        """Return the index of the first id that is equal to an earlier id; 0 if all ids differ."""
        return int((self.among(self) != np.arange(len(self.ids))).argmax()) if len(self.ids) else 0

    def check_different(self, next_step: str = "") -> Self:
        """Return these ids; refuse an id that several rows share."""
        if row := self.repeated():
            problem = f"each id must name one row, but {self.named(row)} appears again{next_step}"
            raise PredictionsError(self.path, problem, row=row + 1 if self.has_rows else None, column=self.column)
        return self

    def among(self, others: "RowIds") -> NDArray[np.int32]:
        """Return the index of each id in ``others``; -1 for an id that ``others`` lacks."""
        from pyarrow import compute

        return np.array(compute.index_in(self.ids, value_set=others.ids).fill_null(-1), dtype=np.int32)

    def all_among(self, others: "RowIds", next_step: str = "") -> NDArray[np.int32]:
        """Return the index of each id in ``others``; refuse ``others`` if an id is missing."""
        places = self.among(others)
        if number := int((places < 0).sum()):
            place = int((places < 0).argmax())
            row = f" in row {place + 1}" if self.has_rows else ""
            column = "" if self.column is None else f" of column {shown(self.column.removeprefix('column '))}"
            rows = "1 row" if number == 1 else f"{number} rows"
            problem = f"lacks {rows} of {self.path}, such as {self.named(place)}{row}{column}"
            raise PredictionsError(others.path, f"{problem}{next_step}")
        return places


def shared_ids(tables: Sequence[FileTable]) -> list[str]:
    """Return the names of the columns of ids that all tables have."""
    ids = [[name for name in table.names if table.has_names and is_index(name)] for table in tables]
    return [name for name in ids[0] if all(name in others for others in ids)]
