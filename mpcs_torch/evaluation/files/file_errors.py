"""Errors that name a place in a file, and functions that turn the errors of parsers into them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mpcs_torch.errors import MAX_QUOTED, MpcsError, printable, shown
from mpcs_torch.io.untrusted_files import FileRuleError, check_regular

EXTRAS = {"openpyxl": "xlsx", "h5py": "hdf5"}
"""The extra of this package that installs each optional parser."""
Advance = Callable[[int], None]
"""A function that shows progress: it is called with the number of rows of each file that was read."""


class PredictionsError(MpcsError, ValueError):
    """The error for a file that cannot be read or scored. It names the place; rows have numbers from 1."""

    def __init__(self, path: Path, problem: str, *, row: int | None = None, column: str | int | None = None) -> None:
        place = [str(path)]
        place += [] if row is None else [f"row {row}"]
        place += [] if column is None else [f"column {shown(str(column).removeprefix('column '))}"]
        super().__init__(printable(f"{', '.join(place)}: {problem}"))


class NoRowsError(PredictionsError):
    """The error for a file that has no rows, but to which rows may still be added."""


@contextmanager
def reading(path: Path, row: int | None = None) -> Iterator[None]:
    """Turn any error of a parser into a `PredictionsError` that names the file and, if given, the row.

    A path that is not a regular file is refused before anything is read.
    """
    try:
        if row is None:
            check_regular(path)
        yield
    except (PredictionsError, FileNotFoundError):
        raise
    except FileRuleError as error:
        raise PredictionsError(path, str(error), row=row) from None
    except UnicodeDecodeError as error:
        raise PredictionsError(path, f"cannot be read: {error}; save it as UTF-8", row=row) from None
    except ImportError as error:
        extra = EXTRAS.get(error.name or "", "cli")
        raise PredictionsError(path, f"requires {error.name}: pip install 'mpcs_torch[{extra}]'") from None
    except Exception as error:  # the parsers of zip, npy, pickle, csv and parquet raise many kinds
        reason = str(error).splitlines()[0][: 2 * MAX_QUOTED] if str(error) else type(error).__name__
        raise PredictionsError(path, f"cannot be read: {reason}", row=row) from error


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Turn a ValueError about the values of a file into a `PredictionsError` that names the file."""
    try:
        yield
    except PredictionsError:
        raise
    except ValueError as error:
        raise PredictionsError(path, str(error).rstrip(".")) from None


def file_names(paths: Sequence[Path]) -> list[str]:
    """Return the name of a single file. For several files, return names without suffix, or paths if names repeat.

    A file that is given twice is refused.
    """
    for place, path in enumerate(paths):
        if any(path.samefile(other) for other in paths[:place]):
            raise PredictionsError(path, "is given twice, but each model must have a file of its own")
    names = [path.name if len(paths) == 1 else path.stem for path in paths]
    return [printable(name) for name in (names if len(set(names)) == len(names) else map(str, paths))]
