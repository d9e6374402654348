"""Read the epochs that a folder records: of a run of `mpcs train`, or of a `CheckpointSelector` in any other loop.

Reading runs no code of the folder, and loads no checkpoint.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from typing import Any

from mpcs_torch.errors import (
    InvalidValueError,
    has_control,
    printable,
    quoted,
    require,
    shown,
)
from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT, LEVEL
from mpcs_torch.functional.measure import Direction
from mpcs_torch.io.yaml_files import YamlError, read_yaml_file
from mpcs_torch.learning import SelectionRule
from mpcs_torch.learning.checkpoint_files import MANIFEST, Manifest, SavedEpoch, damaged
from mpcs_torch.learning.selection import count_metrics, explain
from mpcs_torch.metrics.named_metrics import COLUMNS
from mpcs_torch.tables import Table
from mpcs_torch.trainer.config.parts import TEST
from mpcs_torch.trainer.config.sections import SelectorConfig
from mpcs_torch.trainer.result import CONFIG, RECORDS, no_pick, read_records

RUN, SELECTOR = "a run of mpcs train", "a CheckpointSelector"
"""The kinds of folders, by who wrote them."""
NUMBER = re.compile(r"\d+")
EXPECTED = f"the folder of {RUN} ({RECORDS}) or of {SELECTOR} ({MANIFEST})"


@dataclass(frozen=True)
class RecordedEpochs:
    """The epochs of a folder, and what the folder records about choosing one of them."""

    folder: Path
    kind: str
    """The kind of the folder: `RUN` or `SELECTOR`."""
    epochs: Sequence[SavedEpoch]
    """All epochs in their order; there is at least one. Those of a run name no checkpoints."""
    directions: Mapping[str, Direction]
    """Whether a metric is better when lower ("min") or higher ("max"), by name, if that is recorded."""
    rule: SelectionRule | None
    """The recorded rule; None for a run without a selector."""
    config: Mapping[str, Any]
    """The config of a run of mpcs train as plain data; empty if the folder has none."""

    @property
    def name(self) -> str:
        """The path of the folder, without control characters."""
        return printable(str(self.folder))

    @property
    def columns(self) -> list[str]:
        """The names of all metrics; some may be recorded only in some epochs."""
        return list(dict.fromkeys(name for epoch in self.epochs for name in epoch.values))

    def warnings(self) -> list[str]:
        """Return sentences on metrics that are NaN in each epoch, and on epochs that are recorded more than once."""
        without = [
            name
            for name in self.columns
            if all(isnan(epoch.values.get(name, nan)) for epoch in self.epochs)
        ]
        recordings = Counter(epoch.number for epoch in self.epochs)
        repeated = ", ".join(
            str(number) for number, times in recordings.items() if times > 1
        )
        sentences = []
        if without:
            sentences.append(f"{self.name}: NaN in each epoch: {', '.join(without)}")
        if repeated:
            why = "each recording is a candidate; a run that goes on from an earlier checkpoint repeats epochs"
            sentences.append(
                f"{self.name}: recorded more than once: epoch {repeated} ({why})"
            )
        return sentences

    def checkpoint(self, epoch: SavedEpoch) -> Path | None:
        """Return the path of the checkpoint of ``epoch``; None if there is no such file."""
        if epoch.file is None:
            return None
        path = self.folder / epoch.file
        return path if path.is_file() else None

    def explained(self, rule: SelectionRule) -> list[Table | str]:
        """Return the table of `explain`, and sentences on its brackets, on the picked epoch and on its checkpoint."""
        ranking = rule.ranking(self.epochs)
        counts = count_metrics(rule, self.epochs)
        saved = [epoch for epoch in ranking if self.checkpoint(epoch) is not None]
        best = saved[0] if saved else None
        parts: list[Table | str] = [explain(rule, self.epochs, best=best)]
        if counts:
            parts.append(
                f"In brackets: {CONFIDENCE_TEXT} intervals of columns read as counts of independent errors: "
                f"{', '.join(counts)}. A count that was picked as the lowest is likely to be higher on new samples. "
                "Last column: epochs whose count does not differ from that of the row's epoch, by an exact test at "
                f"{100 * LEVEL:g} % for all pairs of epochs."
            )
        if not ranking:
            return [*parts, no_pick(rule, self.epochs)]
        parts.append(f"Best epoch: {ranking[0].number}")
        if self.kind == SELECTOR:
            place = "none"
            if best is not None:
                place = f"epoch {best.number}, {printable(str(self.checkpoint(best)))}"
            parts.append(f"Best checkpoint: {place}")
        return parts


def read_folders(folders: Sequence[Path]) -> list[RecordedEpochs]:
    """Read the epochs of ``folders``. In place of a folder of folders with epochs, read all of these.

    Raises:
        ValueError: If folders are of different kinds, a folder is named twice, a folder records no epochs, or the
            manifest of a `CheckpointSelector` or the records or the config of a run are damaged.
    """
    paths = [path for folder in folders for path in _folders_with_epochs(folder)]
    for place, path in enumerate(paths):
        if any(path.samefile(earlier) for earlier in paths[:place]):
            raise InvalidValueError("named_once", str(path))
    recorded = [
        _read_selector(path) if (path / MANIFEST).exists() else _read_run(path)
        for path in paths
    ]
    first = recorded[0]
    for folder in recorded:
        if folder.kind != first.kind:
            raise InvalidValueError(
                "one_kind",
                "the folders",
                name=first.name,
                kind=first.kind,
                other=folder.name,
                other_kind=folder.kind,
            )
        require(folder.epochs, "some_epochs", folder.name)
    return recorded


def _folders_with_epochs(folder: Path) -> list[Path]:
    """Return ``folder`` if it has epochs, else the folders in it, all of which must have epochs."""
    if _has_epochs(folder):
        return [folder]
    inside = [
        path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")
    ]
    others = [str(path) for path in inside if not _has_epochs(path)]
    place = str(folder)
    if others:
        raise InvalidValueError(
            "folder_of_run", place, expected=EXPECTED, other=min(others)
        )
    require(inside, "folders_of_runs", place, expected=EXPECTED)
    # With zeros before numbers, seed-2 comes before seed-10.
    return sorted(
        inside, key=lambda path: NUMBER.sub(lambda found: found[0].zfill(20), path.name)
    )


def _has_epochs(folder: Path) -> bool:
    return (folder / RECORDS).exists() or (folder / MANIFEST).exists()


def _read_selector(folder: Path) -> RecordedEpochs:
    saved = Manifest.read(folder)
    try:
        rule = SelectionRule(**saved.rule)
        for epoch in saved.epochs:
            rule.values_in(epoch.values)
            for name in epoch.values:
                require(
                    not has_control(name), "no_control_in_name", f"the name {quoted(name)}"
                )
    except (TypeError, ValueError, AttributeError) as error:
        raise damaged(folder / MANIFEST, error) from None
    directions: Any = rule.directions  # which are resolved
    return RecordedEpochs(folder, SELECTOR, saved.epochs, directions, rule, config={})


def _read_run(folder: Path) -> RecordedEpochs:
    epochs = [
        SavedEpoch(int(record.pop("epoch")), record)
        for record in read_records(folder / RECORDS)
    ]
    tree = plain_config(folder)
    columns = dict.fromkeys(name for epoch in epochs for name in epoch.values)
    directions = recorded_directions(
        tree, [name for name in columns if not name.startswith(TEST)]
    )
    rule = None
    if tree.get("selector") is not None:
        try:
            rule = SelectorConfig.model_validate(tree["selector"]).rule(columns, directions)
        except ValueError as error:
            place = f"{folder / CONFIG}:"
            cause = shown(str(error), 300)
            raise InvalidValueError("fitting_selector", place, cause=cause) from None
    return RecordedEpochs(folder, RUN, epochs, directions, rule, tree)


def plain_config(folder: Path) -> dict[str, Any]:
    """Return ``config.yaml`` in ``folder`` as plain data, without running code; empty if there is no such mapping.

    Raises:
        ValueError: If the file is not plain YAML.
    """
    path = folder / CONFIG
    try:
        tree = read_yaml_file(path).value if path.is_file() else {}
    except YamlError as error:
        raise InvalidValueError("caused_by", f"{path}:", cause=error) from None
    return tree if isinstance(tree, dict) else {}


def recorded_directions(
    config: Mapping[str, Any], columns: Collection[str]
) -> dict[str, Direction]:
    """Return for each of ``columns`` whether it is better when lower ("min") or higher ("max"); leave out unknown ones.

    The sources are the plain ``config`` of a run and the built-in metrics.
    """
    listed = config.get("metrics")
    if not isinstance(listed, list):
        listed = []
    named = {str(entry.get("name")): entry for entry in listed if isinstance(entry, dict)}
    directions = dict[str, Direction]()
    for column in columns:
        metric = named.get(column, {})
        direction = metric.get("direction")
        if direction is None and "path" not in metric:
            built_in = COLUMNS.get(str(metric.get("metric") or column))
            direction = built_in and built_in.direction
        if direction in ("min", "max"):
            directions[column] = direction
    return directions
