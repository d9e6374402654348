"""Read the files of several detectors, with their development trials, clusters and conditions."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from mpcs_torch.scoring.detectors import Detector, in_order_of
from mpcs_torch.scoring.system_names import names_of
from mpcs_torch.scoring.trials import Groups, Trials, TrialTable, read_trial_table

Advance = Callable[[int], None]


class DetectorFiles(NamedTuple):
    """The files of detectors and what to read of them."""

    paths: Sequence[Path]
    trials: Path | None = None
    """The list of trials of text files."""
    development: Sequence[Path] = ()
    """None, or one for each of ``paths``."""
    development_trials: Path | None = None
    key: Sequence[str] = ()
    """The columns that name a trial."""
    columns: Sequence[str] = ()
    """The columns of clusters and conditions."""


class ReadDetectors(NamedTuple):
    """Detectors with the same trials in the same order."""

    detectors: list[Detector]
    groups: dict[str, Groups]
    """By column."""


def read_detectors(files: DetectorFiles, *, is_llr: bool, is_fused: bool, advance: Advance) -> ReadDetectors:
    """Read the trials of detectors.

    Args:
        files: The files.
        is_llr: Whether scores are natural-log likelihood ratios.
        is_fused: Whether the development trials of all detectors must be the same, too.
        advance: Called with the number of rows after each batch.

    Raises:
        PredictionsError: If a file cannot be read, or the trials of the detectors do not match.
    """
    tables, trials = _matched(files.paths, files.trials, files, advance, named=len(files.paths) > 1)
    held: Sequence[Trials | None] = [None] * len(trials)
    if is_fused:
        _, held = _matched(files.development, files.development_trials, files, advance, named=True)
    elif files.development:
        held = [read_trial_table(path, files.development_trials, advance).trials for path in files.development]
    names = names_of(files.paths)
    detectors = [Detector(name, own, is_llr, other) for name, own, other in zip(names, trials, held, strict=True)]
    return ReadDetectors(detectors, tables[0].groups)


def _matched(
    paths: Sequence[Path], listed: Path | None, files: DetectorFiles, advance: Advance, *, named: bool
) -> tuple[list[TrialTable], list[Trials]]:
    """Read files whose trials must be the same, and put all in the order of the first."""
    tables = [
        read_trial_table(
            path,
            listed,
            advance,
            named=named,
            key=files.key,
            columns=files.columns if paths is files.paths and path is paths[0] else (),
        )
        for path in paths
    ]
    pairs = list(zip(paths, tables, strict=True))[1:]
    others = [in_order_of(tables[0], table, (paths[0], path)) for path, table in pairs]
    return tables, [tables[0].trials, *others]
