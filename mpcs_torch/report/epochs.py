"""The report of epochs that were recorded in folders, without test samples: of any loop, or of the seeds of a run."""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite, nan
from pathlib import Path

from mpcs_torch.learning.checkpoint_files import SavedEpoch
from mpcs_torch.learning.selection import Epoch, warn_of_pick
from mpcs_torch.plots.trends import metric_trend
from mpcs_torch.report.render import Drawing, draw, named, render
from mpcs_torch.trainer.pooled_seeds import Picks, Settings, means_at_picks, summary_parts
from mpcs_torch.trainer.recorded_epochs import RUN, RecordedEpochs
from mpcs_torch.trainer.result import read_result, why_picked

PICKED = "picked"
Records = Mapping[str, Sequence[Mapping[str, float]]]
"""The metrics of each epoch, with the column "epoch", by the name of a run or folder."""
NO_SAMPLES = (
    "A CheckpointSelector records metrics, not predictions, so this page cannot show test samples: to see errors by "
    "class, save the predictions of the picked model for test samples, and run `mpcs score` on this file."
)
OF_SEEDS = "The report of a single run shows its errors by class: `mpcs report` with one of the folders."


def write_epochs_report(
    settings: Settings, path: Path, *, notes: Sequence[str], command: str
) -> None:
    """Write a page about the epochs in folders: the picked epochs and why, the means over seeds, and all curves.

    Args:
        settings: The folders of each setting, by the name of the setting.
        path: The HTML file to write.
        notes: Sentences on how the folders were read.
        command: The command that writes the page.

    Raises:
        ValueError: If a folder is that of a run that is not finished.
    """
    [first, *others] = [folder for seeds in settings.values() for folder in seeds]
    where, remark = (" on test data", OF_SEEDS) if first.kind == RUN else ("", NO_SAMPLES)
    picks = {
        setting: {folder.name: _pick(folder) for folder in seeds}
        for setting, seeds in settings.items()
    }
    sentences = [
        _verdict(setting, seeds, picks[setting], where)
        for setting, seeds in settings.items()
    ]
    sentences += [*(f"{sentence.rstrip('.')}." for sentence in notes), remark]
    if others or first.rule is None:
        title, parts = "Picked epochs", summary_parts(picks)
    else:
        title, parts = "What each metric picks", first.explained(first.rule)
        if picks[first.name][first.name] is not None:
            sentences += map(
                str,
                warn_of_pick(len(first.epochs), first.rule.by, "the data of these metrics"),
            )
    render(
        "epochs",
        path,
        kind=f"Epochs of {named(settings, 'settings')}, recorded by {first.kind}",
        conclusions=sentences,
        title=title,
        contents=parts,
        caption=f"Metrics{where} at the picked epochs",
        trends=_trends_of_folders(settings, picks),
        command=command,
    )


def _pick(folder: RecordedEpochs) -> Epoch | None:
    """Return the epoch that the rule picks, or None; of a finished run, the picked epoch with its test metrics."""
    if folder.kind == RUN:
        result = read_result(folder.folder)
        return Epoch(result.epoch, result.values["test"])
    assert folder.rule is not None
    return next(iter(folder.rule.ranking(folder.epochs)), None)


def _verdict(
    setting: str,
    seeds: Sequence[RecordedEpochs],
    picks: Mapping[str, Epoch | None],
    where: str,
) -> str:
    """Return a sentence on the pick in the only folder and the reason, or on the mean over the picks of the seeds."""
    rule, means = seeds[0].rule, means_at_picks(picks)
    if not means:
        return f"{setting}: no epoch is picked."
    pick = picks[seeds[0].name]
    if rule is not None and pick is not None and len(seeds) == 1 and not where:
        return f"{setting}: epoch {pick.number} is picked, {why_picked(rule, seeds[0].epochs, pick)}."
    metric = next(iter(means)) if rule is None else rule.by
    mean = means[metric].cell(len(seeds))
    return f"{setting}: {metric}{where} is {mean} at the picked epoch (mean of {len(seeds)} seeds)."


def _trends_of_folders(settings: Settings, picks: Picks) -> list[Drawing]:
    """Draw the curves of all folders."""
    records = dict[str, list[dict[str, float]]]()
    marked = dict[str, dict[str, int]]()
    setting_of = dict[str, str]()
    columns: dict[str, None] = {}  # those with a value to draw
    for setting, seeds in settings.items():
        for folder in seeds:
            setting_of[folder.name] = setting
            by_number = {epoch.number: epoch for epoch in folder.epochs}
            pick = picks[setting][folder.name]
            if pick is not None:
                marked[folder.name] = {PICKED: pick.number}
            if isinstance(pick, SavedEpoch):
                by_number[pick.number] = (
                    pick  # a resumed loop may have repeated the epoch with other values
                )
            rows = [{**epoch.values, "epoch": epoch.number} for epoch in by_number.values()]
            records[folder.name] = rows
            columns |= {
                name: None
                for name in folder.columns
                if any(isfinite(row.get(name, nan)) for row in rows)
            }
    return trends(records, columns, marked, setting_of)


def trends(
    runs: Records,
    columns: Iterable[str],
    marked: Mapping[str, Mapping[str, int]],
    settings: Mapping[str, str] | None = None,
) -> list[Drawing]:
    """Draw a figure of each of ``columns``; the other arguments are those of `metric_trend`."""
    drawings = []
    for column in columns:
        ends = "; ".join(
            f"{name}: {records[0].get(column, nan):.4g} at the first epoch, "
            f"{records[-1].get(column, nan):.4g} at the last"
            for name, records in runs.items()
        )
        drawings.append(
            draw(
                metric_trend(runs, column, marked, settings),
                f"{column} over the epochs. {ends}.",
            )
        )
    return drawings
