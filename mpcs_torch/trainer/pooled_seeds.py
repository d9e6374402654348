"""Group folders that are seeds of one setting, and summarize each setting by means over its seeds."""

import re
from collections import defaultdict
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
from mpcs_torch.trainer.config.sections import RunConfig
from mpcs_torch.trainer.recorded_epochs import RecordedEpochs
from mpcs_torch.trainer.result import rule_in_words

MIN_SEEDS = 3
"""The minimum number of seeds for an interval. Of two seeds, an interval would be 25 standard errors wide."""
SEED = re.compile(r"(.*)(?<![^\W\d_])seed[-_=]?([0-9]+)(.*)", re.IGNORECASE | re.DOTALL)
"""A path that names a seed by seed0, seed-0, seed_0 or seed=0, but not in a word such as linseed0. The groups are the
path before the last such part, the seed, and the path after it."""
POOLED = (
    "seeds of one setting have different seeds, the same rule, and the same config.yaml except for name and seed; "
    "without a config, names that differ only in the seed, such as plain-seed0 and plain-seed1"
)
BRACKETS = (
    f"In brackets: {CONFIDENCE_TEXT} intervals of the mean over seeds (Student's t; they can exceed the range of a "
    f"metric), if there are at least {MIN_SEEDS} seeds, and they differ."
)

Settings = Mapping[str, Sequence[RecordedEpochs]]
"""The folders of each setting, which differ only in the seed, by the name of the setting."""
Rows = dict[tuple[str, str], dict[str, str]]
"""The cells of the metrics in rows of a table, by the first two cells of the row."""
Picks = Mapping[str, Mapping[str, Epoch | None]]
"""The picked epoch of each folder by its name, for each setting; None if no epoch is picked."""


def _setting_and_seed(folder: RecordedEpochs) -> tuple[object, object]:
    """Return all that is known of the training in ``folder`` except for the seed, and the seed; None if it is unknown.

    A run has both in its config. Otherwise, both are in the path, whose last part like ``seed0`` names the seed.
    """
    picks = folder.rule, folder.directions
    if folder.config:
        seed = folder.config.get("seed", RunConfig.model_fields["seed"].default)
        others = sorted(folder.config.keys() - {"name", "seed"})
        return (picks, [(key, folder.config[key]) for key in others]), seed
    path = str(folder.folder.absolute())
    match = SEED.fullmatch(path)
    if match is None:
        return (picks, path), None
    before, seed, after = match.groups()
    return (picks, before, after), int(seed)


def seeds_by_setting(recorded: Sequence[RecordedEpochs]) -> Settings:
    """Return the folders of each setting. A setting with a seed twice is divided into its folders.

    A setting is named by the path of its only folder, or by a pattern such as ``runs/seed-*``.
    """
    by_setting: dict[str, list[RecordedEpochs]] = {}
    seeds: dict[str, list[object]] = {}
    for folder in recorded:
        setting, seed = _setting_and_seed(folder)
        key = repr(setting)  # a config cannot be hashed
        by_setting.setdefault(key, []).append(folder)
        seeds.setdefault(key, []).append(seed)
    pooled = list[list[RecordedEpochs]]()
    for key, folders in by_setting.items():
        if any(seeds[key].count(seed) > 1 for seed in seeds[key]):
            pooled += [[folder] for folder in folders]
        else:
            pooled.append(folders)
    patterns = [_pattern([folder.name for folder in folders]) for folders in pooled]
    by_title: dict[str, list[RecordedEpochs]] = {}
    for title, folders in zip(patterns, pooled, strict=True):
        # Runs a and b of one setting, and c and d of another, may have the same pattern.
        if patterns.count(title) > 1:
            title = ", ".join(folder.name for folder in folders)
        by_title[title] = folders
    return by_title


def _pattern(names: Sequence[str]) -> str:
    """Return the only name, or what all ``names`` begin and end with, with ``*`` for the part between."""
    if len(names) == 1:
        return names[0]
    start = commonprefix(names)  # noqa: RUF071  # of characters
    # The common end of the rests is the common start of the rests read backwards.
    backwards = [name[len(start) :][::-1] for name in names]
    end = commonprefix(backwards)[::-1]  # noqa: RUF071
    return f"{start.rstrip('0123456789')}*{end.lstrip('0123456789')}"


def readings(settings: Settings) -> list[str]:
    """Return sentences on what was read in the folders of each setting, and on folders that are not pooled."""
    sentences = []
    for setting, folders in settings.items():
        first = folders[0]
        numbers = {epoch.number for epoch in first.epochs}
        text = f"{len(numbers)} epochs"
        if len(folders) > 1:
            text = f"{len(folders)} seeds of one setting"
        rule = "no rule is recorded"
        if first.rule is not None:
            rule = f"rule: {rule_in_words(first.rule)}"
        text += f" of {first.kind}; {rule}"
        unknown = [
            name
            for name in first.columns
            if name not in first.directions and not name.startswith(TEST)
        ]
        if unknown:
            text += f"; without a recorded direction, and so without a pick: {', '.join(unknown)}"
        sentences.append(f"{setting}: {text}")
    apart = [setting for setting, folders in settings.items() if len(folders) == 1]
    if apart and len(settings) > 1:
        sentences.append(f"Not pooled as seeds: {', '.join(apart)}: {POOLED}")
    return sentences


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
    is_finite = all(map(isfinite, values))
    if len(values) < MIN_SEEDS or not is_finite or min(values) == max(values):
        return SeedMean(mean, len(values), None)
    by_seed = torch.tensor(values, dtype=torch.float64)
    # The jackknife of a mean is Student's interval.
    _, low, high = jackknife_interval(
        lambda kept: by_seed[kept].mean(), torch.arange(len(values))
    )
    return SeedMean(mean, len(values), (float(low), float(high)))


def picks_by(
    rule: SelectionRule, seeds: Sequence[RecordedEpochs]
) -> dict[str, Epoch | None]:
    """Return the epoch that ``rule`` picks in each folder, by the folder's name; None if it picks none."""
    return {folder.name: next(iter(rule.ranking(folder.epochs)), None) for folder in seeds}


def means_at_picks(picks: Mapping[str, Epoch | None]) -> dict[str, SeedMean]:
    """Return the mean of each metric over the folders that record it in their picked epoch."""
    by_name = defaultdict[str, list[float]](list)
    for epoch in filter(None, picks.values()):
        for name, value in epoch.values.items():
            by_name[name].append(value)
    return {name: mean_over_seeds(values) for name, values in by_name.items()}


def summary_parts(picks: Picks) -> list[Table | str]:
    """Return a table of the picked epoch of each folder, after a table of means if a setting has several seeds."""
    means: Rows = {}
    each_pick: Rows = {}
    for setting, seeds in picks.items():
        of_setting = means_at_picks(seeds).items()
        means[setting, str(len(seeds))] = {
            name: mean.cell(len(seeds)) for name, mean in of_setting
        }
        for folder, epoch in seeds.items():
            values = {} if epoch is None else epoch.values
            number = "none" if epoch is None else str(epoch.number)
            each_pick[folder, number] = {
                name: in_table(value) for name, value in values.items()
            }
    table = _table(["folder", "picked epoch"], each_pick)
    if len(means) == len(each_pick):  # each setting has one seed, which is its mean
        return [table]
    return [_table(["setting", "seeds"], means), BRACKETS, table]


def _table(header: Sequence[str], rows: Rows) -> Table:
    """Return a table with the columns ``header`` and a column for each metric in ``rows``."""
    metrics = dict.fromkeys(name for cells in rows.values() for name in cells)
    body = [
        [*first, *(cells.get(name, "") for name in metrics)]
        for first, cells in rows.items()
    ]
    return Table([*header, *metrics], body)
