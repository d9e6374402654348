"""Group folders that are seeds of one setting, and summarize each setting by means over its seeds."""

from collections.abc import Mapping, Sequence
from math import isfinite
from os.path import commonprefix
from statistics import fmean
from typing import NamedTuple

import torch

from mpcs_torch.functional import jackknife_interval
from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.learning.selection import Epoch, SelectionRule
from mpcs_torch.tables import Table, in_table
from mpcs_torch.trainer.config.parts import TEST
from mpcs_torch.trainer.recorded_epochs import RecordedEpochs
from mpcs_torch.trainer.result import rule_in_words

MIN_SEEDS = 3
"""The minimum number of seeds for an interval. Of two seeds, an interval would be 25 standard errors wide."""

Settings = Mapping[str, Sequence[RecordedEpochs]]
"""The folders of each setting, which differ only in the seed, by the name of the setting."""
Picks = Mapping[str, Mapping[str, Epoch | None]]
"""The picked epoch of each folder by its name, for each setting; None if no epoch is picked."""


def seeds_by_setting(recorded: Sequence[RecordedEpochs]) -> Settings:
    """Return the folders of each setting, by the path of the only folder or by a pattern such as ``runs/seed-*``."""
    groups: list[list[RecordedEpochs]] = []
    for folder in recorded:
        seeds = next((group for group in groups if group[0].setting == folder.setting), None)
        if seeds is None:
            groups.append([folder])
        else:
            seeds.append(folder)
    patterns = [_pattern([folder.name for folder in group]) for group in groups]
    settings = {}
    for pattern, group in zip(patterns, groups, strict=True):
        is_ambiguous = patterns.count(pattern) > 1  # run-1 and run-2 of one setting, run-3 and run-4 of another
        settings[", ".join(folder.name for folder in group) if is_ambiguous else pattern] = group
    return settings


def _pattern(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    start = commonprefix(names)  # noqa: RUF071  # of characters
    return f"{start.rstrip('0123456789')}*"


def reading_sentence(name: str, seeds: Sequence[RecordedEpochs]) -> str:
    """Return a sentence on what was read in the folders ``seeds`` of the setting ``name``."""
    first, counts = seeds[0], sorted({len(folder.epochs) for folder in seeds})
    text = " to ".join(map(str, dict.fromkeys([counts[0], counts[-1]]))) + (" epoch" if counts == [1] else " epochs")
    if len(seeds) > 1:
        text = f"{len(seeds)} seeds of one setting, {text} each"
    rule = "no rule is recorded" if first.rule is None else f"rule: {rule_in_words(first.rule)}"
    unknown = [name for name in first.columns if name not in first.directions and not name.startswith(TEST)]
    without = f"; without a recorded direction, and so without a pick: {', '.join(unknown)}" if unknown else ""
    return f"{name}: {text} of {first.kind}; {rule}{without}"


class SeedMean(NamedTuple):
    """The mean of a metric over the seeds that have a value."""

    mean: float
    seeds: int
    """The number of seeds with a value."""
    interval: tuple[float, float] | None
    """Student's t interval of the mean; None for fewer than `MIN_SEEDS` values, and for equal or infinite values."""

    def cell(self, seeds: int) -> str:
        """Return the text for a table; ``seeds`` is the number of all seeds."""
        text = in_table(self.mean)
        if self.interval is not None:
            text += " [{:.3g}, {:.3g}]".format(*self.interval)
        return text if self.seeds == seeds else f"{text} ({self.seeds} of {seeds} seeds)"


def mean_over_seeds(values: Sequence[float]) -> SeedMean:
    """Return the mean of ``values``, one for each seed, with its interval."""
    mean = fmean(values)
    if len(values) < MIN_SEEDS or not all(map(isfinite, values)) or min(values) == max(values):
        return SeedMean(mean, len(values), None)
    by_seed = torch.tensor(values, dtype=torch.float64)
    # The jackknife of a mean is Student's interval.
    _, low, high = jackknife_interval(lambda kept: by_seed[kept].mean(), torch.arange(len(values)))
    return SeedMean(mean, len(values), (float(low), float(high)))


def picks_by(rule: SelectionRule, seeds: Sequence[RecordedEpochs]) -> dict[str, Epoch | None]:
    """Return the epoch that ``rule`` picks in each folder, by the folder's name; None if it picks none."""
    return {folder.name: next(iter(rule.ranking(folder.epochs)), None) for folder in seeds}


def means_at_picks(picks: Mapping[str, Epoch | None]) -> dict[str, SeedMean]:
    """Return the mean of each metric over the folders that record it in their picked epoch."""
    epochs = [epoch for epoch in picks.values() if epoch is not None]
    names = dict.fromkeys(name for epoch in epochs for name in epoch.values)
    return {name: mean_over_seeds([epoch.values[name] for epoch in epochs if name in epoch.values]) for name in names}


def summary_table(picks: Picks) -> Table:
    """Return a table with a row for each setting: the number of seeds, and the mean of each metric."""
    rows = {}
    for setting, seeds in picks.items():
        means = {name: mean.cell(len(seeds)) for name, mean in means_at_picks(seeds).items()}
        rows[setting, str(len(seeds))] = means
    return _table(["setting", "seeds"], rows)


def picks_table(picks: Picks) -> Table:
    """Return a table with a row for each folder: its picked epoch, and the metrics of this epoch."""
    rows = {}
    for seeds in picks.values():
        for folder, epoch in seeds.items():
            number = "none" if epoch is None else str(epoch.number)
            rows[folder, number] = (
                {} if epoch is None else {name: in_table(value) for name, value in epoch.values.items()}
            )
    return _table(["folder", "picked epoch"], rows)


def _table(header: Sequence[str], rows: Mapping[tuple[str, str], Mapping[str, str]]) -> Table:
    """Return a table whose first columns are the keys of ``rows``; the others are all metrics in the values."""
    metrics = list(dict.fromkeys(name for cells in rows.values() for name in cells))
    body = [[*first, *(cells.get(name, "") for name in metrics)] for first, cells in rows.items()]
    return Table([*header, *metrics], body)


def summary_parts(picks: Picks) -> list[Table | str]:
    """Return `picks_table`, and before it the `summary_table` with its sentences if any setting has several seeds."""
    if all(len(seeds) == 1 for seeds in picks.values()):
        return [picks_table(picks)]
    return [summary_table(picks), *interval_sentences(picks), picks_table(picks)]


def interval_sentences(picks: Picks) -> list[str]:
    """Return sentences that say what the brackets in `summary_table` are, and why some settings have none."""
    few = [setting for setting, seeds in picks.items() if len(seeds) < MIN_SEEDS]
    sentences = []
    if len(few) < len(picks):
        student = "Student's t; they can exceed the range of a metric"
        sentences.append(
            f"In brackets: {CONFIDENCE_TEXT} intervals of the mean over seeds ({student}), if seeds differ."
        )
    if few:
        names = ", ".join(few)
        sentences.append(f"No interval for {names}: fewer than {MIN_SEEDS} seeds do not show how much seeds differ.")
    return sentences
