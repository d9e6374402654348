"""`CheckpointSelector`: keep the checkpoints of the best epochs on disk, even if the process crashes."""

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import Any, Self, SupportsFloat, SupportsIndex
from warnings import warn
from weakref import finalize

import torch
from torch import nn

from mpcs_torch.errors import (
    ExistsError,
    InvalidValueError,
    MissingFileError,
    MpcsError,
    quoted,
    require,
    shown,
)
from mpcs_torch.io.atomic_files import FolderInUseError, acquire, release, rename
from mpcs_torch.io.local_paths import local_path
from mpcs_torch.learning import checkpoint_files
from mpcs_torch.learning.checkpoint_files import (
    Manifest,
    SavedEpoch,
    Update,
    save_state,
)
from mpcs_torch.learning.rank_zero import is_follower
from mpcs_torch.learning.selection import (
    Contenders,
    SelectionRule,
    explain,
    number,
    whole_number,
)
from mpcs_torch.tables import Table

ARGUMENTS_OF_UPDATE = ("self", "state", "epoch")
"""Names that no metric may have, because `CheckpointSelector.update` takes metrics by keyword."""
SETTINGS = (
    "top_k",
    "keep_last",
    "keep_every",
    "keep_best_by",
    "keep_at_most",
    "patience",
    "min_delta",
)
"""Constructor arguments that ``manifest.json`` records besides the rule; `CheckpointSelector.open` restores them."""


CHECKED = "epoch-0.pt"
"""The name of the file with which `CheckpointSelector.check` tests a state."""


class CheckpointSelector:
    """Save only the checkpoints of the best epochs in a folder, in any training loop.

    The file ``manifest.json`` in the folder records the metrics of all epochs. To resume, create a selector on the same
    folder with ``resume=True``. To read the folder later, use `open`. A new checkpoint is written and recorded before
    old checkpoints are deleted. So a process that dies at any moment loses neither the best checkpoint nor the record.
    Files that are not in the manifest are not touched.

    In a distributed run (``torch.distributed``), only rank 0 writes. If the other ranks also call `update` with the
    same values, all ranks have the same `best`. If ``state`` is a function, all ranks then call it in the same epochs.

    A selector whose `update` was never called follows the folder: if another process writes to it (one that a launcher
    has spawned, for example), all attributes and methods show the epochs of that process.

    Args:
        folder: The folder of the checkpoints. It is created if missing, and must be empty unless ``resume`` is set.
        rule: The rule that ranks the epochs.
        top_k: The number of best epochs whose checkpoints are kept.
        keep_last: Whether to also keep the last epoch.
        keep_every: Also keep each epoch whose number is a multiple of ``keep_every``. Default: 0, which keeps none.
        keep_best_by: Names of metrics. For each of these metrics, the epoch with its best value is also kept.
        keep_at_most: The maximum number of checkpoints kept because of ``rule``, at least ``top_k``. By default, there
            is no maximum: each epoch is kept that could still become the best when a metric in ``within`` reaches a new
            best value. With a maximum, the best epoch by the rule may have no checkpoint. Then `best` is the best epoch
            with a checkpoint, and `explain` lists both epochs.
        patience: The number of updates without progress after which `should_stop` is True. An update is progress if it
            gives a better `best`. Before the first `best`, only updates with NaN are counted. If a run goes back to an
            earlier epoch, the epochs after it do not count.
        min_delta: The minimum improvement of the metric by which the rule ranks, in the unit of this metric; smaller
            ones are no progress. It needs ``patience``.
        weights_only: Whether checkpoints are loaded with ``weights_only=True`` of `torch.load`, which runs no code.
        resume: Whether to continue the run that is recorded in the folder. The folder may also be empty.
        flush: Whether each update is flushed to disk, to survive a power failure.

    Raises:
        ExistsError: If the folder contains files and ``resume`` is not set. It is a FileExistsError.
        ValueError: If the manifest was written for another rule or cannot be read, a number is too small, a metric in
            ``keep_best_by`` has no direction, or ``folder`` is an address such as ``s3://bucket/run``.
        FolderInUseError: From `update`, if another process has locked the folder; a fork of that process keeps the
            lock. Without ``resume``, also if another selector has written to the folder.

    Example:
        >>> import tempfile, torch
        >>> from mpcs_torch.learning import CheckpointSelector, SelectionRule
        >>> rule = SelectionRule("mpcs", {"mpcs": "min", "accuracy": "max"}, within={"accuracy": 0.01})
        >>> selector = CheckpointSelector(tempfile.mkdtemp(), rule)
        >>> for epoch, (mpcs, accuracy) in enumerate([(0.5, 0.95), (0.3, 0.955), (0.2, 0.90)]):
        ...     selector.update({"weight": torch.tensor(epoch)}, epoch=epoch, mpcs=mpcs, accuracy=accuracy)
        >>> selector.load_best(), selector.best_path.name
        ({'weight': tensor(1)}, 'epoch-00001.pt')
    """

    def __init__(
        self,
        folder: str | Path,
        rule: SelectionRule,
        *,
        top_k: int = 1,
        keep_last: bool = False,
        keep_every: int = 0,
        keep_best_by: Sequence[str] = (),
        keep_at_most: int | None = None,
        patience: int | None = None,
        min_delta: float = 0.0,
        weights_only: bool = True,
        resume: bool = False,
        flush: bool = True,
    ) -> None:
        self.rule = rule
        self.top_k = top_k
        self.keep_last = keep_last
        self.keep_every = keep_every
        self.keep_best_by = keep_best_by
        self.keep_at_most = keep_at_most
        self.patience = patience
        self.min_delta = min_delta
        self._check_settings()
        self.keep_best_by = tuple(keep_best_by)
        self.min_delta = float(min_delta)
        self.folder = local_path(folder, "folder").absolute()
        self.weights_only = weights_only
        self.flush = flush
        self._epochs: list[SavedEpoch] = []
        self._has_updated = False
        """Whether `update` was called; if not, the attributes follow the folder."""
        self._resumes = resume
        self._has_lock = False
        """Whether this selector has locked the folder; the first update locks it."""
        self._is_writing = False
        """Whether an update is in progress or was interrupted; the attributes may then not match the folder."""
        self._garbage: list[SavedEpoch] = []
        """Epochs whose checkpoints are still to be deleted."""
        self._size = 0
        """The size of ``manifest.json`` in bytes, up to the last complete line."""
        self.folder.mkdir(parents=True, exist_ok=True)
        files = sorted(
            path.name for path in self.folder.iterdir() if not path.name.startswith(".")
        )
        if files and not resume and not is_follower():
            code = "no_files"
            if checkpoint_files.MANIFEST in files:
                code = "no_earlier_run"
            raise ExistsError(code, "folder", folder=str(self.folder), file=shown(files[0]))
        self._load_epochs([], {})
        self._last_stamp: object = None
        """The `_stamp` of the manifest as this selector wrote it or continues it."""
        self._read_stamp: object = None
        """The `_stamp` of the manifest as it was read last."""
        if resume:
            self._continue_from_disk()

    def _check_settings(self) -> None:
        for name in ("top_k", "keep_every", "keep_at_most", "patience"):
            value = getattr(self, name)
            require(value is None or isinstance(value, int), "whole", name, value)
        minima = {"top_k": 1, "keep_every": 0}
        if self.keep_at_most is not None:
            minima["keep_at_most"] = self.top_k
        if self.patience is not None:
            minima["patience"] = 1
        for name, minimum in minima.items():
            value = getattr(self, name)
            require(value >= minimum, "at_least", name, value, minimum=minimum)
        names, delta = self.keep_best_by, self.min_delta
        require(not isinstance(names, str), "list_of_names", "keep_best_by", names)
        require(0 <= delta < inf, "finite_at_least", "min_delta", delta, minimum=0)
        is_used = delta == 0 or self.patience is not None
        require(is_used, "needs_patience", "min_delta", delta)
        for name in ARGUMENTS_OF_UPDATE:
            if name in self.rule.metrics:
                raise InvalidValueError("reserved_metric", "rule", name=name)
        for name in names:
            if name not in self.rule.directions:
                raise InvalidValueError("directed_metrics", "keep_best_by", name)

    @classmethod
    def open(cls, folder: str | Path, **settings: Any) -> Self:
        """Create a selector on the folder of an earlier run, with the rule and settings in its ``manifest.json``.

        Constructor arguments in ``settings`` replace the recorded settings. The manifest does not record
        ``weights_only``, so an untrusted folder cannot make `load_best` run code.

        Raises:
            FileNotFoundError: If the folder has no manifest.
            ValueError: If the manifest cannot be read.
        """
        folder = local_path(folder, "folder")
        path = folder / checkpoint_files.MANIFEST
        if not path.exists():
            raise MissingFileError("folder_of_selector", str(path), folder=str(folder))
        saved = Manifest.read(folder)
        try:
            arguments = {
                name: value for name, value in saved.settings.items() if name in SETTINGS
            }
            arguments |= {"resume": True, **settings}
            return cls(folder, SelectionRule(**saved.rule), **arguments)
        except (TypeError, ValueError, AttributeError) as error:
            # A value that breaks a rule is the manifest's fault, unless the caller passed it.
            is_of_caller = isinstance(error, MpcsError)
            if isinstance(error, InvalidValueError):
                is_of_caller = error.argument in settings
            if is_of_caller:
                raise
            raise InvalidValueError(
                "rule_of_selector", str(path), cause=shown(str(error))
            ) from None

    def renewed(self, folder: str | Path) -> Self:
        """Create a selector with the same rule and settings on another folder, which must be empty."""
        unrecorded: dict[str, Any] = {
            "weights_only": self.weights_only,
            "flush": self.flush,
        }
        return type(self)(folder, self.rule, **self._settings(), **unrecorded)

    def __repr__(self) -> str:
        best = "none" if self.best is None else f"epoch {self.best.number}"
        rule = f"{self.rule.directions[self.rule.by]} {self.rule.by}"
        return f"CheckpointSelector({str(self.folder)!r}, {rule}, {len(self.epochs)} epochs, best: {best})"

    @property
    def epochs(self) -> list[SavedEpoch]:
        """Return all recorded epochs, in the order of the updates."""
        self._follow_disk()
        return self._epochs

    @property
    def best(self) -> SavedEpoch | None:
        """Return the best epoch that has a checkpoint; None if no such epoch is within the limits of the rule."""
        self._follow_disk()
        # Compared by identity, because epochs that were repeated may be equal.
        kept = {id(self._epochs[place]) for place in self._kept}
        for epoch in self.rule.ranking(self._epochs):
            if id(epoch) in kept:
                return epoch
        return None

    @property
    def best_path(self) -> Path | None:
        """Return the path of the checkpoint of `best`; None if `best` is None or the checkpoint is not written yet."""
        best = self._on_disk().best
        return None if best is None or best.file is None else self.folder / best.file

    @property
    def last_path(self) -> Path | None:
        """Return the path of the checkpoint of the last epoch (see ``keep_last``); None if it was not kept."""
        epochs = self._on_disk().epochs
        if not epochs or epochs[-1].file is None:
            return None
        return self.folder / epochs[-1].file

    @property
    def last_epoch(self) -> int | None:
        """Return the number of the last recorded epoch, to continue a resumed loop; None if no epoch is recorded."""
        return self.epochs[-1].number if self.epochs else None

    @property
    def should_stop(self) -> bool:
        """Return whether the last ``patience`` updates were no progress; updates before a resume count, too."""
        self._follow_disk()
        return self.patience is not None and self._keepers[0].waited >= self.patience

    def update(
        self,
        state: object | Callable[[], object],
        *,
        epoch: SupportsIndex | float | None = None,
        **values: SupportsFloat,
    ) -> None:
        """Record an epoch, and save its state if the selector keeps this epoch.

        Args:
            state: The object to save, which `torch.load` must be able to read with the selector's ``weights_only``, or
                a function that returns this object. The function is called only if the epoch is kept. For sharded
                models, pass a function that gathers the whole state on every rank (``get_model_state_dict`` with
                ``full_state_dict=True``).
            epoch: The epoch number, an integer of any library; it must be given. After a restart, an epoch that is
                repeated with the same values is not recorded again. If the values differ, or its checkpoint was lost,
                it is recorded as a further epoch with the same number.
            **values: The metrics of the epoch by name, at least those of the rule: scalars of any library. If the rule
                ranks by a metric or limits it, an epoch with NaN for this metric is never the best.

        Raises:
            ValueError: If ``epoch`` or a metric of the rule is missing (`MissingMetricError`), or if a value is not a
                number; or if ``state`` cannot be saved, or cannot be loaded again. The message names the entry of
                ``state`` that failed. Nothing on disk changes.
            OSError: If the checkpoint cannot be written; the manifest and the checkpoints stay unchanged.
        """
        require(epoch is not None, "no_epoch", "epoch")
        if isinstance(state, nn.Module) and self.weights_only:
            raise InvalidValueError("loadable_state", "state", type=type(state).__name__)
        self.rule.values_in(values)
        entry = SavedEpoch(
            whole_number("epoch", epoch),
            {name: number(name, value) for name, value in values.items()},
        )
        if not is_follower():
            self._prepare()
        self._has_updated = True
        if self._recorded[entry.key]:
            self._recorded[entry.key] -= 1
            return
        stamp = self._last_stamp
        place = len(self._epochs)
        keepers = [keeper.add(entry) for keeper in self._keepers]
        wanted = set[int]()  # indices of epochs, besides those by ``keep_every``
        for keeper in keepers:
            wanted |= keeper.places_kept
        if self.keep_last:
            wanted.add(place)
        is_kept = place in wanted or self._is_nth(entry)
        dropped = [
            other
            for other in sorted(self._kept - wanted)
            if not self._is_nth(self._epochs[other])
        ]
        files = [str(self._epochs[other].file) for other in dropped]
        content = state
        if is_kept and callable(state) and not isinstance(state, nn.Module):
            content = state()
        self._is_writing = True
        if not is_follower():
            self._check_unchanged(stamp)  # state() may have called update
            entry = self._write(entry, content, files, is_kept=is_kept)
        self._commit(entry, dropped, keepers, is_kept=is_kept)
        if not is_follower():
            self._garbage = checkpoint_files.delete_files(self.folder, self._garbage)
        self._is_writing = False

    def check(self, state: object) -> None:
        """Raise a ValueError if a checkpoint with the content ``state`` could not be saved or loaded again."""
        temporary = self.folder / f".{CHECKED}.tmp"
        save_state(state, temporary, weights_only=self.weights_only, flush=False)
        temporary.unlink()

    def load_best(self, map_location: Any = "cpu") -> Any:
        """Load the best checkpoint that is intact; this runs no code unless ``weights_only`` is False.

        If a file is damaged or missing, warn and load the next best checkpoint.

        Raises:
            FileNotFoundError: If no checkpoint is intact.
        """
        epochs = self._on_disk().epochs
        if not epochs:
            raise MissingFileError("recorded", str(self.folder))
        ranking = self.rule.ranking(epochs)
        if not ranking:
            raise MissingFileError("within_limits", f"{self.folder}:", epochs=len(epochs))
        for entry in ranking:
            if entry.file is None:
                continue
            if entry.is_whole_in(self.folder):
                return self._load_file(entry.file, map_location)
            warn(
                f"{self.folder / entry.file} is missing or damaged; trying the next best epoch",
                stacklevel=2,
            )
        raise MissingFileError("intact_within_limits", str(self.folder))

    def load(self, epoch: int, map_location: Any = "cpu") -> Any:
        """Load the checkpoint of the epoch with the number ``epoch``; of several intact checkpoints, load the latest.

        Raises:
            FileNotFoundError: If the checkpoint was not kept, or its file is damaged.
        """
        for entry in reversed(self._on_disk().epochs):
            if entry.number == epoch and entry.is_whole_in(self.folder):
                return self._load_file(str(entry.file), map_location)
        raise MissingFileError("intact", str(self.folder), epoch=epoch)

    def _load_file(self, name: str, map_location: Any) -> Any:
        return torch.load(
            self.folder / name, map_location=map_location, weights_only=self.weights_only
        )

    def explain(self) -> Table:
        """Return a table with the epoch that the rule picks, and the epoch that each metric alone would pick.

        If the checkpoint of the picked epoch is gone, the table also lists the best epoch with a checkpoint.
        """
        return explain(self.rule, self.epochs, best=self.best)

    def _on_disk(self) -> Self:
        """Return this selector on rank 0; on other ranks, return a copy that follows ``manifest.json``."""
        if not is_follower():
            return self
        reader = copy(self)
        reader._has_updated = False
        return reader

    def _follow_disk(self) -> None:
        """Read the manifest again if another process has written it and this selector was never updated."""
        if not self._has_updated and self._stamp() != self._read_stamp:
            self._read()

    def _is_nth(self, epoch: SavedEpoch) -> bool:
        return bool(self.keep_every) and epoch.number % self.keep_every == 0

    def _load_epochs(self, epochs: list[SavedEpoch], lost: Mapping[int, str]) -> None:
        """Replace the recorded epochs; ``lost`` are names of missing or damaged files, by the indices of the epochs."""
        self._epochs = epochs
        self._lost_files = set(lost.values())
        self._kept = {place for place, epoch in enumerate(epochs) if epoch.file is not None}
        """The indices of the epochs that have a checkpoint."""
        self._recorded = Counter(
            epoch.key for place, epoch in enumerate(epochs) if place not in lost
        )
        """The number of times that each `SavedEpoch.key` is recorded, less those that this process has repeated."""
        keepers = [Contenders(self.rule, self.top_k, self.keep_at_most, self.min_delta)]
        keepers += [Contenders(self.rule.alone(name), 1) for name in self.keep_best_by]
        for place, epoch in enumerate(epochs):
            is_lost = place in lost
            keepers = [keeper.add(epoch, competes=not is_lost) for keeper in keepers]
        self._keepers = [keeper.among(self._kept) for keeper in keepers]
        """The `Contenders` of the rule, then those of each metric in ``keep_best_by``."""

    def _commit(
        self,
        entry: SavedEpoch,
        dropped: list[int],
        keepers: list[Contenders],
        *,
        is_kept: bool,
    ) -> None:
        """Update all attributes at once after a write to disk, so that an interrupt leaves no outdated attribute."""
        epochs = [*self._epochs, entry]
        garbage = list(self._garbage)
        for place in dropped:
            garbage.append(epochs[place])
            epochs[place] = epochs[place].without_file()
        kept = self._kept.difference(dropped)
        if is_kept:
            kept.add(len(self._epochs))
        self.__dict__.update(_epochs=epochs, _kept=kept, _keepers=keepers, _garbage=garbage)

    def _write(
        self, entry: SavedEpoch, state: object, dropped: list[str], *, is_kept: bool
    ) -> SavedEpoch:
        """Save ``state`` if ``is_kept``, and record an `Update`; return ``entry`` with the file name and the hash."""
        temporary = None
        has_begun = False
        try:
            if is_kept:
                file = checkpoint_files.free_name(
                    self.folder, entry.number, self._lost_files
                )
                entry = replace(entry, file=file)
                temporary = checkpoint_files.temporary_path(self.folder, entry)
                sha256 = save_state(
                    state, temporary, weights_only=self.weights_only, flush=self.flush
                )
                entry = replace(entry, sha256=sha256)
            # A signal handler may have called update.
            self._check_unchanged(self._last_stamp)
            if not self._size:
                self._begin_manifest([])
            size = self._size
            has_begun = True
            self._size = checkpoint_files.append(
                self.folder, size, Update(entry, dropped), flush=self.flush
            )
            if temporary is not None:
                rename(temporary, self.folder / str(entry.file), flush=self.flush)
        except BaseException as error:
            with suppress(OSError):
                if has_begun:
                    os.truncate(self.folder / checkpoint_files.MANIFEST, size)
                if temporary is not None:
                    temporary.unlink(missing_ok=True)
                    # No earlier file had this name.
                    (self.folder / str(entry.file)).unlink(missing_ok=True)
            if not isinstance(error, OSError):
                raise
            message = f"cannot save the checkpoint of epoch {entry.number}; earlier checkpoints are kept"
            raise OSError(
                error.errno, f"{message}: {error.strerror}", str(self.folder)
            ) from error
        self._last_stamp = self._stamp()
        return entry

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in SETTINGS}

    def _stamp(self) -> tuple[int, int] | None:
        """Return the inode and size of ``manifest.json``, which other writers change; None if there is no such file."""
        try:
            status = (self.folder / checkpoint_files.MANIFEST).stat()
        except OSError:
            return None
        return status.st_ino, status.st_size

    def _begin_manifest(self, epochs: Sequence[SavedEpoch]) -> None:
        manifest = Manifest(asdict(self.rule), self._settings(), epochs)
        manifest.write(self.folder, flush=self.flush)
        self._size = (self.folder / checkpoint_files.MANIFEST).stat().st_size
        self._is_current = True
        self._last_stamp = self._stamp()

    def _check_unchanged(self, stamp: object) -> None:
        if self._stamp() == stamp:
            return
        if self._stamp() is None:
            raise MissingFileError("manifest_there", f"{self.folder}:")
        raise FolderInUseError("other_selector", folder=str(self.folder))

    def _continue_from_disk(self) -> None:
        self._read()
        self._last_stamp = self._read_stamp

    def _read(self) -> None:
        self._read_stamp = self._stamp()
        if self._read_stamp is None:
            return
        saved = Manifest.read(self.folder)
        self._check_rule(saved)
        epochs = list(saved.epochs)
        lost = dict[int, str]()
        for place, epoch in enumerate(epochs):
            if epoch.file is not None and not epoch.is_whole_in(self.folder):
                warn(
                    f"{self.folder / epoch.file} is missing or damaged: epoch {epoch.number} is lost",
                    stacklevel=3,
                )
                epochs[place] = epoch.without_file()
                lost[place] = epoch.file
        self._load_epochs(epochs, lost)
        names = {epoch.file for epoch in epochs}
        self._garbage = [
            epoch
            for epoch in saved.dropped
            if epoch.file not in names and epoch.is_whole_in(self.folder)
        ]
        self._size = saved.size
        # As read from JSON, in which tuples are lists.
        self._is_current = saved.settings == json.loads(json.dumps(self._settings()))

    def _check_rule(self, saved: Manifest) -> None:
        """Raise a ValueError if ``saved`` is of another rule, or lacks a metric of the rule."""
        path = self.folder / checkpoint_files.MANIFEST
        rule = json.loads(json.dumps(asdict(self.rule)))
        for name in sorted({*rule, *saved.rule}):
            there, here = saved.rule.get(name), rule.get(name)
            if there != here:
                raise InvalidValueError(
                    "same_rule",
                    str(path),
                    name=name,
                    there=quoted(there),
                    here=quoted(here),
                )
        for epoch in saved.epochs:
            missing = [name for name in self.rule.metrics if name not in epoch.values]
            if missing:
                raise InvalidValueError(
                    "metric_of_epoch", str(path), metric=missing[0], epoch=epoch.number
                )

    def _prepare(self) -> None:
        """Lock the folder, and finish or roll back an interrupted update."""
        if not self._has_lock:
            acquire(self.folder)
            finalize(self, release, self.folder)
            self._has_lock = True
        elif self._stamp() == self._last_stamp and not self._is_writing:
            return
        is_of_others = self._stamp() not in (None, self._last_stamp)
        # An interrupted update, or another process, may have written since.
        if self._is_writing or (self._resumes and is_of_others):
            self._continue_from_disk()
        self._check_unchanged(self._last_stamp)
        self._garbage = checkpoint_files.delete_files(self.folder, self._garbage)
        # Before temporary files are deleted, because only they show that a line is unfinished.
        if self._last_stamp is not None:
            os.truncate(self.folder / checkpoint_files.MANIFEST, self._size)
        for temporary in self.folder.glob(".*.tmp"):
            if checkpoint_files.TEMPORARY.fullmatch(temporary.name):
                temporary.unlink()
        if self._last_stamp is not None:
            self._last_stamp = self._stamp()
            if not self._is_current:
                self._begin_manifest(self._epochs)
        self._is_writing = False
