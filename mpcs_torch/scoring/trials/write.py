"""Write trials in the format that the suffix of the file names."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from mpcs_torch.errors import quoted
from mpcs_torch.files import replace_together
from mpcs_torch.scoring.chunks import PredictionsError
from mpcs_torch.scoring.csv_file import import_pyarrow
from mpcs_torch.scoring.hdf5_file import import_h5py, is_hdf5
from mpcs_torch.scoring.trials.hdf5_write import check_matrix, fill_key, fill_scores, key_of
from mpcs_torch.scoring.trials.held import TrialTable
from mpcs_torch.scoring.trials.npz import LABELS, MOST_CHARACTERS, SCORES
from mpcs_torch.scoring.trials.text import PAIR
from mpcs_torch.scoring.trials.write_table import fill_csv, fill_npz, fill_parquet, fill_text

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
        has = quoted(list(table.groups))
        raise PredictionsError(path, f"needs the columns {quoted(list(PAIR))}, but the trials have {has}")
    enrollment, test = (table.groups[name] for name in PAIR)
    found, counts = np.unique((enrollment.codes * len(test.names) + test.codes).numpy(), return_counts=True)
    if (counts > 1).any():
        row, column = divmod(int(found[counts > 1][0]), len(test.names))
        pair = quoted(f"{enrollment.names[row]} {test.names[column]}")
        raise PredictionsError(path, f"must name each trial once, but {pair} appears more than once")


def _scores_of(path: Path, table: TrialTable) -> Fill:
    if is_hdf5(path):
        import_h5py(path)
        check_matrix(path, table)
        return partial(fill_scores, table=table)
    _check_words(path, table)
    return partial(fill_text, table=table, values=lambda rows: [repr(s) for s in table.trials.scores[rows].tolist()])


def _list_of(path: Path, table: TrialTable) -> Fill:
    if is_hdf5(path):
        import_h5py(path)
        return partial(fill_key, key=key_of(path, table))
    _check_words(path, table)
    return partial(fill_text, table=table, values=table.trials.label_names)


def _check_words(path: Path, table: TrialTable) -> None:
    """Refuse names that text cannot hold, because white space separates its fields."""
    for column in PAIR:
        for name in table.groups[column].names:
            if name.split() != [name]:
                raise PredictionsError(path, f"must have no white space in text, but is {quoted(name)}", column=column)
