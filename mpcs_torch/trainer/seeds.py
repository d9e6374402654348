"""Group folders that are seeds of one setting, and summarize each setting by means over its seeds."""

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from os.path import commonprefix
from statistics import fmean
from typing import NamedTuple

import torch

from mpcs_torch.errors import quoted
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
HOW_TO_POOL = {
    True: "to be pooled, runs must have the same config.yaml except for name and seed",
    False: "to be pooled, folders must have the same rule, and names that differ only in the seed, such as plain-seed0 "
    "and plain-seed1",
}
"""The needs of folders to be seeds of one setting, by whether they have the config of a run."""

Settings = Mapping[str, Sequence[RecordedEpochs]]
"""The folders of each setting, which differ only in the seed, by the name of the setting."""
Picks = Mapping[str, Mapping[str, Epoch | None]]
"""The picked epoch of each folder by its name, for each setting; None if no epoch is picked."""


class Runs(NamedTuple):
    """Folders of one setting that differ in the seed alone, or a single folder."""

    folders: Sequence[RecordedEpochs]
    reason: str
    """The reason why a single folder is not pooled with others; empty for several folders."""


def setting_and_seed(folder: RecordedEpochs) -> tuple[object, object]:
    """Return all that is known of the training in ``folder`` except for the seed, and the seed; None if it is unknown.

    A run has both in its config. Otherwise, both are in the path, whose last part like ``seed0`` names the seed.
    """
    picks = folder.rule, folder.directions
    if folder.config:
        seed = folder.config.get("seed", RunConfig.model_fields["seed"].default)
        return (picks, {**folder.config, "name": None, "seed": None}), seed
    path = str(folder.folder.absolute())
    match = SEED.fullmatch(path)
    if match is None:
        return (picks, path), None
    before, seed, after = match.groups()
    return (picks, before, after), int(seed)


def runs_that_differ_in_the_seed_alone(recorded: Sequence[RecordedEpochs]) -> list[Runs]:
    """Pool folders that are equal in all that is known except for the seed, if their seeds are all different."""
    known = [setting_and_seed(folder) for folder in recorded]
    settings = [setting for setting, _ in known]
    pooled = []
    for place, setting in enumerate(settings):
        if setting in settings[:place]:
            continue
        folders = [folder for folder, other in zip(recorded, settings, strict=True) if other == setting]
        seeds = [seed for other, seed in known if other == setting]
        if len(folders) == 1:
            pooled.append(Runs(folders, HOW_TO_POOL[bool(folders[0].config)]))
        elif any(seeds.count(seed) > 1 for seed in seeds):
            reason = f"their seeds must differ, but are {quoted(seeds)}"
            pooled += [Runs([folder], reason) for folder in folders]
        else:
            pooled.append(Runs(folders, ""))
    return pooled


def seeds_by_setting(recorded: Sequence[RecordedEpochs]) -> tuple[Settings, list[str]]:
    """Return the folders of each setting, and sentences on what was read, what is pooled, and what is not and why.

    A setting is named by the path of its only folder, or by a pattern such as ``runs/seed-*``.
    """
    pooled = runs_that_differ_in_the_seed_alone(recorded)
    patterns = [_pattern([folder.name for folder in runs.folders]) for runs in pooled]
    settings, apart = dict[str, Sequence[RecordedEpochs]](), dict[str, list[str]]()
    for pattern, (folders, reason) in zip(patterns, pooled, strict=True):
        is_ambiguous = patterns.count(pattern) > 1  # runs a and b of one setting, c and d of another
        settings[", ".join(folder.name for folder in folders) if is_ambiguous else pattern] = folders
        if reason:
            apart.setdefault(reason, []).append(pattern)
    sentences = [_reading(setting, folders) for setting, folders in settings.items()]
    if len(recorded) > 1:
        sentences += [f"Not pooled as seeds: {', '.join(names)}: {reason}" for reason, names in apart.items()]
    return settings, sentences


def _pattern(names: Sequence[str]) -> str:
    """Return the only name, or what all ``names`` begin and end with, with ``*`` for the part between."""
    if len(names) == 1:
        return names[0]
    start = commonprefix(names)  # noqa: RUF071  # of characters
    end = commonprefix([name[len(start) :][::-1] for name in names])[::-1]  # noqa: RUF071
    return f"{start.rstrip('0123456789')}*{end.lstrip('0123456789')}"


def _reading(name: str, seeds: Sequence[RecordedEpochs]) -> str:
    """Return a sentence on what was read in the folders ``seeds`` of the setting ``name``."""
    first, counts = seeds[0], sorted({len({epoch.number for epoch in folder.epochs}) for folder in seeds})
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
    picked = {setting: [epoch for epoch in seeds.values() if epoch is not None] for setting, seeds in picks.items()}
    few = [setting for setting, epochs in picked.items() if len(epochs) < MIN_SEEDS]
    sentences = []
    if len(few) < len(picks):
        student = "Student's t; they can exceed the range of a metric"
        sentences.append(
            f"In brackets: {CONFIDENCE_TEXT} intervals of the mean over seeds ({student}), if seeds differ."
        )
    if few:
        names = ", ".join(few)
        why = f"fewer than {MIN_SEEDS} seeds with a picked epoch do not show how much seeds differ"
        sentences.append(f"No interval for {names}: {why}.")
    return sentences
