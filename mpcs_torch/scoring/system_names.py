"""The names of systems that are compared: those of their files."""

from collections.abc import Sequence
from pathlib import Path

from mpcs_torch.control_characters import printable
from mpcs_torch.scoring.chunks import PredictionsError


def names_of(paths: Sequence[Path]) -> list[str]:
    """Return the name of one file; of several files, names without suffix, or whole paths if two have the same name.

    Raises:
        PredictionsError: If a file is given twice.
    """
    for place, path in enumerate(paths):
        if any(path.samefile(other) for other in paths[:place]):
            raise PredictionsError(path, "is given twice, but each system must have a file of its own")
    names = [path.name if len(paths) == 1 else path.stem for path in paths]
    return [printable(name) for name in (names if len(set(names)) == len(names) else map(str, paths))]
