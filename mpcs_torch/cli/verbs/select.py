"""``mpcs select``: apply a selection rule to the epochs that were recorded in folders."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpcs_torch.cli.console import print_reading, print_result, print_warnings
from mpcs_torch.cli.options import named_numbers, refused_values, shared
from mpcs_torch.errors import printable

if TYPE_CHECKING:
    from mpcs_torch.learning.selection import SelectionRule
    from mpcs_torch.trainer.recorded_epochs import RecordedEpochs

LIMIT = "COLUMN=VALUE"


@shared("json")
def select(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER", exists=True, file_okay=False)
    ],
    by: Annotated[
        str | None, typer.Option(show_default="that of the recorded rule; mpcs without one")
    ] = None,
    within: Annotated[list[str] | None, typer.Option(metavar=LIMIT)] = None,
    at_most: Annotated[list[str] | None, typer.Option(metavar=LIMIT)] = None,
    at_least: Annotated[list[str] | None, typer.Option(metavar=LIMIT)] = None,
) -> None:
    """Print the epoch that a rule picks, and the epochs that each metric alone would have picked.

    The rule is the one that FOLDER records, unless options give another one: these replace all recorded limits, and
    --by the column that ranks. For example, --within accuracy=0.001 considers only epochs whose accuracy is at most
    0.001 below the best, and --at-most dangerous=20 only those with at most 20 in the column dangerous.

    Seeds of one setting are summarized in one row: runs whose configs differ only in name and seed, and folders of a
    CheckpointSelector with the same rule whose names differ only in the seed, such as plain-seed0 and plain-seed1. No
    code of a folder is run.

    Args:
        folders: Folder of a run of mpcs train, folder of a CheckpointSelector, or a folder of such folders.
        by: Column to rank epochs by.
        within: Largest distance from the best value. Repeat for several columns.
        at_most: Highest value of a column for which lower is better, or neither; repeatable.
        at_least: Lowest value of a column for which higher is better, or neither; repeatable.
    """
    limits = {
        "within": named_numbers(within or (), "--within", LIMIT),
        "at_most": named_numbers(at_most or (), "--at-most", LIMIT),
        "at_least": named_numbers(at_least or (), "--at-least", LIMIT),
    }

    from mpcs_torch.trainer.pooled_seeds import (
        means_at_picks,
        picks_by,
        readings,
        seeds_by_setting,
        summary_parts,
    )
    from mpcs_torch.trainer.recorded_epochs import read_folders
    from mpcs_torch.trainer.result import rule_in_words

    recorded = read_folders(folders)
    warned = [warning for folder in recorded for warning in folder.warnings()]
    grouped = seeds_by_setting(recorded)
    print_reading(*readings(grouped))
    print_warnings(*map(printable, warned))
    picks, settings = dict[str, Any](), list[dict[str, Any]]()
    for name, seeds in grouped.items():
        rule = _rule(seeds, by, limits)
        if rule != seeds[0].rule:
            print_reading(f"{name}: picked by this rule: {rule_in_words(rule)}")
        picks[name] = picks_by(rule, seeds)
        means = {
            metric: mean._asdict() for metric, mean in means_at_picks(picks[name]).items()
        }
        settings.append(
            {
                "setting": name,
                "means": means,
                "folders": [_plain(folder, rule) for folder in seeds],
            }
        )
    if len(recorded) == 1:
        print_result(
            {"warnings": warned, **_plain(recorded[0], rule)}, *recorded[0].explained(rule)
        )
    else:
        print_result({"warnings": warned, "settings": settings}, *summary_parts(picks))


def _rule(
    seeds: "Sequence[RecordedEpochs]", by: str | None, limits: dict[str, dict[str, float]]
) -> "SelectionRule":
    """Return the recorded rule, or if ``by`` or any of ``limits`` is given, the rule of these options."""
    from mpcs_torch.learning.selection import SelectionRule
    from mpcs_torch.trainer.config.sections import check_followed

    directions = seeds[0].directions
    recorded = seeds[0].rule
    if recorded is not None and by is None and not any(limits.values()):
        return recorded
    if by is None:
        by = "mpcs" if recorded is None else recorded.by
    epochs = [epoch for folder in seeds for epoch in folder.epochs]
    in_all = [
        name for name in seeds[0].columns if all(name in epoch.values for epoch in epochs)
    ]
    with refused_values():
        check_followed("--by", [by], directions)
        check_followed("--within", limits["within"], directions)
        check_followed("--at-most", limits["at_most"], in_all)
        check_followed("--at-least", limits["at_least"], in_all)
        return SelectionRule(
            by, directions, limits["within"], limits["at_most"], limits["at_least"]
        )


def _plain(folder: "RecordedEpochs", rule: "SelectionRule") -> dict[str, Any]:
    """Return what ``rule`` picks in ``folder`` as plain data, and which epochs may be as good."""
    from mpcs_torch.learning.selection import as_good_as, count_interval, count_metrics

    ranking = rule.ranking(folder.epochs)
    counts = count_metrics(rule, folder.epochs)
    same = as_good_as(ranking, rule.by, ranking[0]) if ranking and rule.by in counts else []
    return {
        "folder": folder.name,
        "rule": asdict(rule),
        "best": [
            {
                "epoch": epoch.number,
                "values": dict(epoch.values),
                "checkpoint": folder.checkpoint(epoch),
            }
            for epoch in ranking[:1]
        ],
        "intervals": {
            name: count_interval(ranking[0].values[name]) for name in counts if ranking
        },
        "as_good_as": list(dict.fromkeys(epoch.number for epoch in same)),
        "picked_by_each": {
            name: epoch.number for name, epoch in rule.picked_by_each(folder.epochs).items()
        },
    }
