"""Files of predictions and of trials: read with every value checked, matched, and written.

Whatever reads, matches or writes a file raises `PredictionsError` if the file cannot be read or breaks a rule. It names
the file, and the row and the column if they are known. Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpcs_torch.evaluation.files.chunks import PredictionsError
    from mpcs_torch.evaluation.files.formats import open_table
    from mpcs_torch.evaluation.files.predictions import Predictions
    from mpcs_torch.evaluation.files.reading import ReadOptions
    from mpcs_torch.evaluation.files.tables import FileTable
    from mpcs_torch.evaluation.files.trials import read_trials
    from mpcs_torch.evaluation.files.write import write_trials

_FILES = {
    "PredictionsError": "chunks",
    "open_table": "formats",
    "Predictions": "predictions",
    "ReadOptions": "reading",
    "FileTable": "tables",
    "read_trials": "trials",
    "write_trials": "write",
}
__all__ = ["FileTable", "Predictions", "PredictionsError", "ReadOptions", "open_table", "read_trials", "write_trials"]

if not TYPE_CHECKING:

    def __getattr__(name):
        """Import a public name."""
        from importlib import import_module

        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
        return globals()[name]
