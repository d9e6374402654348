"""Write files of trials, and put other scores into them."""

import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.lib import format as npy
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.chunks import PredictionsError, lines_of, reading
from mpcs_torch.evaluation.files.hdf5 import SUFFIXES, import_h5py, is_hdf5
from mpcs_torch.evaluation.files.tables import CsvFile, import_pyarrow, parquet_names, write_csv_rows
from mpcs_torch.evaluation.files.trial_hdf5 import check_matrix, fill_key, fill_scores, key_of
from mpcs_torch.evaluation.files.trial_table import LABELS, MOST_CHARACTERS, SCORES
from mpcs_torch.evaluation.files.trial_text import PAIR, numbered_rows, refuse_binary, split_lines
from mpcs_torch.evaluation.files.trials import TrialTable, scores_of, texts_of
from mpcs_torch.functional.inputs.groups import Groups
from mpcs_torch.io.atomic_files import replace_together, replace_whole

ROWS = 2**16
"""The number of rows that are written at a time."""


def fill_csv(file: BinaryIO, table: TrialTable) -> None:
    """Write a header, the columns of groups, scores and labels."""
    write_csv_rows(file, [[*table.groups, "score", "label"]])
    for rows in _blocks(table):
        columns = [_texts(group, rows) for group in table.groups.values()]
        scores = map(repr, table.trials.scores[rows].tolist())
        write_csv_rows(file, zip(*columns, scores, table.trials.label_names(rows), strict=True))


def fill_parquet(file: BinaryIO, table: TrialTable) -> None:
    """Write the columns of groups, scores and labels."""
    import pyarrow
    from pyarrow import parquet

    types = {**dict.fromkeys(table.groups, pyarrow.string()), "score": pyarrow.float64(), "label": pyarrow.string()}
    schema = pyarrow.schema(types)
    with parquet.ParquetWriter(file, schema) as writer:
        for rows in _blocks(table):
            columns: list[Any] = [_texts(group, rows) for group in table.groups.values()]
            columns += [table.trials.scores[rows].numpy(), table.trials.label_names(rows)]
            arrays = [pyarrow.array(values, kind) for values, kind in zip(columns, schema.types, strict=True)]
            writer.write_batch(pyarrow.record_batch(arrays, schema=schema))


def fill_npz(file: BinaryIO, table: TrialTable) -> None:
    """Write arrays of scores, of labels, and of the texts of groups."""
    with zipfile.ZipFile(file, "w") as archive:
        _write_array(archive, SCORES, table, "<f8", lambda rows: table.trials.scores[rows])
        _write_array(archive, LABELS, table, "|b1", lambda rows: table.trials.labels[rows])
        for column, group in table.groups.items():
            longest = max(1, *map(len, group.names)) if group.names else 1
            _write_array(archive, column, table, f"<U{longest}", partial(_texts, group))


def fill_text(file: BinaryIO, table: TrialTable, values: Callable[[slice], list[str]]) -> None:
    """Write two names and a value on each line."""
    for rows in _blocks(table):
        columns = [_texts(table.groups[name], rows) for name in PAIR]
        file.writelines(f"{' '.join(fields)}\n".encode() for fields in zip(*columns, values(rows), strict=True))


def _blocks(table: TrialTable) -> Iterator[slice]:
    trials = len(table.trials.labels)
    return (slice(start, min(start + ROWS, trials)) for start in range(0, trials, ROWS))


def _texts(group: Groups, rows: slice) -> list[str]:
    return [group.names[code] for code in group.codes[rows].tolist()]


def _write_array(
    archive: zipfile.ZipFile, name: str, table: TrialTable, dtype: str, values: Callable[[slice], Any]
) -> None:
    header = {"descr": dtype, "fortran_order": False, "shape": (len(table.trials.labels),)}
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        npy.write_array_header_1_0(file, header)
        for rows in _blocks(table):
            file.write(np.asarray(values(rows), dtype).tobytes())


Fill = Callable[[BinaryIO], None]
TABLES = {".csv": fill_csv, ".parquet": fill_parquet, ".npz": fill_npz}
RESERVED = ("score", "label", SCORES, LABELS)


def write_trials(path: Path, table: TrialTable, trials: Path | None = None) -> list[str]:
    """Write trials so that `read_trial_table` reads them again. Files are replaced whole, and none if one fails.

    Args:
        path: The file to write. csv, parquet and npz hold scores, labels and all columns of groups; HDF5, and text in
            Kaldi's format for any other suffix, hold the scores of enrollment and test.
        table: The trials, and as groups the columns to write.
        trials: For HDF5 and text, the list of the trials with their labels: a Key in HDF5, or text.

    Returns:
        The columns that the format has no place for.

    Raises:
        PredictionsError: If the format needs columns that there are not, or cannot hold a name.
    """
    _check_columns(path, table)
    fill = TABLES.get(path.suffix.lower())
    if fill is not None:
        if trials is not None:
            raise PredictionsError(path, "holds the labels itself: a list of trials is only for HDF5 and text")
        if fill is fill_parquet:
            import_pyarrow(path)
        replace_together({path: partial(fill, table=table)})
        return []
    if trials is None or trials.resolve() == path.resolve():
        rule = "holds no labels: give a file for the list of trials, --out-trials FILE"
        raise PredictionsError(path, rule if trials is None else f"{rule}, that is another one")
    if trials.suffix.lower() in TABLES:
        raise PredictionsError(trials, "a list of trials must be HDF5 or text")
    _check_pairs(path, table)
    replace_together({trials: _list_of(trials, table), path: _scores_of(path, table)})
    return [name for name in table.groups if name not in PAIR]


def _check_columns(path: Path, table: TrialTable) -> None:
    """Refuse names of columns that mean something else, and texts that an array or a matrix would cut."""
    for column, group in table.groups.items():
        if column in RESERVED:
            raise PredictionsError(path, f"a column must not be called {quoted(column)}, as scores or labels are")
        for name in group.names:
            if "\0" in name or len(name) > MOST_CHARACTERS:
                rule = f"must have at most {MOST_CHARACTERS} characters and no zero character"
                raise PredictionsError(path, f"{rule}, but is {quoted(name)}", column=column)


def _check_pairs(path: Path, table: TrialTable) -> None:
    """Refuse trials that enrollment and test do not name, or that appear twice."""
    if not set(PAIR) <= table.groups.keys():
        rule = f"needs the columns {quoted(list(PAIR))}"
        raise PredictionsError(path, f"{rule}, but the trials have {quoted(list(table.groups))}")
    enrollment, test = (table.groups[name] for name in PAIR)
    pairs, counts = np.unique((enrollment.codes * len(test.names) + test.codes).numpy(), return_counts=True)
    if (counts > 1).any():
        row, column = divmod(int(pairs[counts > 1][0]), len(test.names))
        pair = quoted(f"{enrollment.names[row]} {test.names[column]}")
        raise PredictionsError(path, f"must name each trial once, but {pair} appears more than once")


def _scores_of(path: Path, table: TrialTable) -> Fill:
    if not is_hdf5(path):
        _check_words(path, table)
        values = table.trials.scores
        return partial(fill_text, table=table, values=lambda rows: [repr(score) for score in values[rows].tolist()])
    import_h5py(path)
    check_matrix(path, table)
    return partial(fill_scores, table=table)


def _list_of(path: Path, table: TrialTable) -> Fill:
    if not is_hdf5(path):
        _check_words(path, table)
        return partial(fill_text, table=table, values=table.trials.label_names)
    import_h5py(path)
    return partial(fill_key, key=key_of(path, table))


def _check_words(path: Path, table: TrialTable) -> None:
    """Refuse names that text cannot hold, because white space separates its fields."""
    for column in PAIR:
        for name in table.groups[column].names:
            if name.split() != [name]:
                raise PredictionsError(path, f"must have no white space in text, but is {quoted(name)}", column=column)


COLUMN_SUFFIXES = (".csv", ".parquet")
Change = Callable[..., Tensor]
Changed = Callable[[list[str], Sequence[Any], int], Tensor]
"""Returns new scores, from the names of columns, some rows of them, and the number of the first row."""
Rows = Iterator[tuple[int, list[list[str]]]]


def rewrite_scores(
    path: Path, out: Path, change: Change, advance: Callable[[int], None], *, given: Sequence[str] = ()
) -> None:
    """Copy a file of trials with changed scores; labels, names and further columns stay, and none is needed.

    Args:
        path: A csv or parquet file with a column ``score``, or a text file with one trial on each line: a score, score
            and label, or two names and a score.
        out: The file to write, in the same format.
        change: Maps scores (n,), float64, and n texts of each of the ``given`` columns to new scores.
        advance: Called with the number of rows after each batch.
        given: The columns that ``change`` takes. Two names on a line are those of enrollment and test.

    Raises:
        PredictionsError: If the file cannot be read, a score is not a number, a given column is missing, or ``out``
            names another format.
    """
    suffix, other = path.suffix.lower(), out.suffix.lower()
    kind = suffix if suffix in COLUMN_SUFFIXES else ""
    if kind != (other if other in COLUMN_SUFFIXES else ""):
        rule = f"must end in {kind}" if kind else f"must not end in {other}"
        raise PredictionsError(out, f"{rule}, because the format is that of {path}")

    def changed(names: list[str], columns: Sequence[Any], first: int) -> Tensor:
        """Return the new scores of some rows."""
        scores = torch.from_numpy(scores_of(path, columns[names.index("score")], first))
        texts = (texts_of(path, columns[names.index(name)], name, first).to_pylist() for name in given)
        advance(len(scores))
        return change(scores, *texts)

    def copy(file: BinaryIO) -> None:
        with reading(path):
            if suffix in (".npz", *SUFFIXES):
                raise PredictionsError(path, "must be csv, parquet or text: `mpcs convert` writes these")
            if kind == ".parquet":
                _copy_parquet(file, path, changed, given)
            else:
                _copy_rows(file, path, changed, given, is_csv=kind == ".csv")

    replace_whole(out, copy)


def _copy_parquet(file: BinaryIO, path: Path, changed: Changed, given: Sequence[str]) -> None:
    names = parquet_names(path)
    _check_given(path, names, ["score", *given])
    import pyarrow
    from pyarrow import parquet

    opened, place, first = parquet.ParquetFile(path), names.index("score"), 1
    field = pyarrow.field("score", pyarrow.float64())
    with parquet.ParquetWriter(file, opened.schema_arrow.set(place, field)) as writer:
        for read in opened.iter_batches(ROWS):
            scores = changed(names, read.columns, first).numpy()
            writer.write_batch(read.set_column(place, field, pyarrow.array(scores, field.type)))
            first += len(read)


def _copy_rows(file: BinaryIO, path: Path, changed: Changed, given: Sequence[str], *, is_csv: bool) -> None:
    refuse_binary(path)
    pyarrow = import_pyarrow(path)
    header, names, batches = _csv_rows(path) if is_csv else _text_rows(path)
    _check_given(path, names, given)
    place = names.index("score")
    _write_rows(file, header, is_csv=is_csv)
    for first, rows in batches:
        columns = [pyarrow.array(column, pyarrow.string()) for column in zip(*rows, strict=True)]
        for fields, score in zip(rows, changed(names, columns, first).tolist(), strict=True):
            fields[place] = repr(score)
        _write_rows(file, rows, is_csv=is_csv)


def _check_given(path: Path, names: Sequence[str], needed: Sequence[str]) -> None:
    if not set(needed) <= set(names):
        raise PredictionsError(path, f"must have the columns {quoted(list(needed))}, but has {quoted(list(names))}")


def _csv_rows(path: Path) -> tuple[list[list[str]], list[str], Rows]:
    """Return the header, the names of the columns, and the rows."""
    file = CsvFile(path)
    if "score" not in file.names:
        raise PredictionsError(
            path, f"must begin with a header that contains score, but begins with {quoted(file.names)}"
        )
    return [file.header], file.names, numbered_rows(file.rows())


def _text_rows(path: Path) -> tuple[list[list[str]], list[str], Rows]:
    """Return no header, the names of the fields, and the lines."""
    with path.open(encoding="utf-8-sig") as file:
        count = next((len(fields) for line in lines_of(file, path) if (fields := line.split())), 0)
    if count not in (1, 2, 3):
        raise PredictionsError(path, f"must contain 1 to 3 fields on each line, but begins with {count}")
    names = [*PAIR, "score"] if count == 3 else ["score", "label"][:count]
    return [], names, split_lines(path, count, f"{count} fields as its first line does")


def _write_rows(file: BinaryIO, rows: Sequence[Sequence[str]], *, is_csv: bool) -> None:
    if is_csv:
        write_csv_rows(file, rows)
    else:
        file.writelines(f"{' '.join(row)}\n".encode() for row in rows)
