"""Keep the checkpoints of the best epochs on disk, even if the process crashes."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from itertools import chain, count
from pathlib import Path
from typing import Any
from warnings import warn
from weakref import finalize

import torch
from torch import Tensor

from mpcs_torch.errors import quoted, shown
from mpcs_torch.io.atomic_files import rename, write_whole
from mpcs_torch.io.locks import release, take
from mpcs_torch.learning import manifest
from mpcs_torch.learning.manifest import FolderNotEmptyError, Manifest, ManifestError, SavedEpoch
from mpcs_torch.learning.selection import Epoch, SelectionRule, explain
from mpcs_torch.tables import Table


class CheckpointSelector:
    """Save the checkpoints of the best epochs, and only those, in a folder; usable in any training loop.

    ``manifest.json`` in the folder records the metrics of all epochs. To go on with it, or to read it later, create a
    selector on the same folder with ``resume=True``.
    A checkpoint is written to a temporary file, flushed and recorded before others are deleted, so a process that dies
    at any moment loses neither the best checkpoint nor the record. Files that are not in the manifest are not touched.

    Args:
        folder: The folder of the checkpoints, which must be empty without ``resume``; created if it does not exist.
        rule: The rule that ranks the epochs.
        top_k: The number of best epochs to keep.
        keep_last: Whether to also keep the last epoch.
        keep_every: Also keep every n-th epoch; 0 for none.
        keep_best_by: Metrics whose own best epochs are kept too, to compare with.
        resume: Whether to go on with the epochs of the folder, if it has any.
        flush: Whether updates wait for the disk, so that not even a power failure loses files.

    Raises:
        FolderNotEmptyError: A FileExistsError, if the folder holds files and ``resume`` is not set.
        ManifestError: A ValueError, if the manifest was written for another rule or cannot be read.
        ValueError: If ``top_k`` or ``keep_every`` is too small, or ``keep_best_by`` lacks a direction.
        FolderInUseError: From the first `update`, if another process that still runs has made updates in the folder.

    Example:
        >>> import tempfile, torch
        >>> from mpcs_torch.learning import CheckpointSelector, SelectionRule
        >>> rule = SelectionRule("mpcs", {"mpcs": "min", "accuracy": "max"}, within={"accuracy": 0.01})
        >>> selector = CheckpointSelector(tempfile.mkdtemp(), rule)
        >>> for epoch, (mpcs, accuracy) in enumerate([(0.5, 0.95), (0.3, 0.955), (0.2, 0.90)]):
        ...     selector.update({"weight": torch.tensor(epoch)}, epoch=epoch, mpcs=mpcs, accuracy=accuracy)
        >>> selector.load_best()
        {'weight': tensor(1)}
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
        resume: bool = False,
        flush: bool = True,
    ) -> None:
        if top_k < 1 or keep_every < 0:
            raise ValueError(f"top_k must be at least 1 and keep_every at least 0, but got {top_k} and {keep_every}.")
        if unknown := [name for name in keep_best_by if name not in rule.directions]:
            raise ValueError(f"keep_best_by must name metrics with a direction, but {unknown[0]} has none.")
        self.folder, self.rule, self.keep_best_by = Path(folder), rule, tuple(keep_best_by)
        self.top_k, self.keep_last, self.keep_every, self.flush = top_k, keep_last, keep_every, flush
        self.epochs: list[SavedEpoch] = []
        """In the order of the updates."""
        self._garbage: list[SavedEpoch] = []
        self._is_pending = False  # whether the last epoch is not in the manifest yet
        self._is_settled = False
        """Whether the work of an earlier process, which may still run until an update, is finished."""
        self.folder.mkdir(parents=True, exist_ok=True)
        files = sorted(path.name for path in self.folder.iterdir())
        if files and not resume:
            content = f"{shown(files[0])}: pass another folder."
            if manifest.NAME in files:
                content = "the checkpoints of an earlier run: pass resume=True to go on with them, or another folder."
            raise FolderNotEmptyError(f"folder must be empty, but {self.folder} holds {content}")
        self._read_at = 0  # when the manifest that was read had been changed
        self._read()

    @property
    def best(self) -> SavedEpoch | None:
        """Return the best epoch so far; None if no epoch is within the limits of the rule yet."""
        ranking = self.rule.ranking(self.epochs)
        return ranking[0] if ranking else None  # type: ignore[return-value]  # a ranking returns the epochs it was given

    @property
    def last_epoch(self) -> int | None:
        """Return the number of the latest epoch, after which a resumed loop continues; None before the first."""
        return self.epochs[-1].number if self.epochs else None

    def update(self, state: object | Callable[[], object], *, epoch: int, **values: float | Tensor) -> None:
        """Record an epoch, and save its state if the rule keeps it.

        Args:
            state: An object that `torch.save` writes and ``weights_only=True`` loads, or a function that returns one,
                which is called only if the state is saved.
            epoch: The number of the epoch. Repeating an epoch with the same values after a restart changes nothing,
                unless its checkpoint was lost; with other values it is another candidate.
            **values: The metrics of the epoch, at least those of the rule; NaN is allowed and never wins.

        Raises:
            ValueError: If a metric of the rule is missing.
            OSError: If the checkpoint cannot be written; the record and the kept checkpoints stay unchanged.
        """
        missing = [name for name in self.rule.metrics if name not in values]
        if missing:
            raise ValueError(f"update needs the metrics of the rule, but {', '.join(missing)} is missing.")
        if not self._is_settled:
            self._settle()
        entry = SavedEpoch(epoch, {name: float(value) for name, value in values.items()})
        place = next((i for i, old in enumerate(self.epochs) if entry.is_same(old)), len(self.epochs))
        is_repeated = place < len(self.epochs)
        epochs = [*self.epochs[:place], entry, *self.epochs[place + 1 :]]
        is_kept = entry in self._kept(epochs, new=entry)
        if is_repeated and (self.epochs[place].file is not None or not is_kept):
            return
        try:
            if is_kept:
                epochs[place] = self._save(entry, state() if callable(state) else state)
            self._enter(epochs)
        except OSError as error:
            if (saved := epochs[place].file) is not None:
                (self.folder / saved).unlink(missing_ok=True)
            message = f"the checkpoint of epoch {epoch} cannot be saved; earlier checkpoints are kept"
            raise OSError(error.errno, f"{message}: {error.strerror}", str(self.folder)) from error

    def load_best(self, map_location: Any = "cpu") -> Any:
        """Load the best checkpoint whose file is intact, with ``weights_only=True``.

        If a file is damaged or missing, a warning says so and the next best checkpoint is loaded.

        Raises:
            FileNotFoundError: If no checkpoint is intact.
        """
        for entry in self.rule.ranking(self.epochs):
            assert isinstance(entry, SavedEpoch)
            if entry.file is None:
                continue
            path = self.folder / entry.file
            if entry.is_whole_in(self.folder):
                return torch.load(path, map_location=map_location, weights_only=True)
            warn(f"{path} is missing or damaged; trying the next best epoch", stacklevel=2)
        raise FileNotFoundError(f"{self.folder} contains no intact checkpoint within the limits of the rule")

    def load(self, epoch: int, map_location: Any = "cpu") -> Any:
        """Load the checkpoint of one epoch, with ``weights_only=True``.

        Raises:
            FileNotFoundError: If the epoch was not kept, or its file is damaged.
        """
        for entry in self.epochs:
            if entry.number == epoch and entry.is_whole_in(self.folder):
                return torch.load(self.folder / str(entry.file), map_location=map_location, weights_only=True)
        raise FileNotFoundError(f"{self.folder} contains no intact checkpoint of epoch {epoch}")

    def explain(self) -> Table:
        """Return a table of the epoch that the rule picks and those that each metric alone would have picked."""
        return explain(self.rule, self.epochs)

    def _kept(self, epochs: Sequence[SavedEpoch], *, new: SavedEpoch | None = None) -> list[Epoch]:
        """Return the epochs whose checkpoints stay; epochs without a checkpoint do not take a place among the best."""
        kept = self.rule.could_win(epochs, self.top_k, among=[e for e in epochs if e.file is not None or e is new])
        kept += [epoch for epoch in epochs if self.keep_every and epoch.number % self.keep_every == 0]
        alone = self.rule.picked_by_each(epochs) if self.keep_best_by else {}
        kept += [alone[name] for name in self.keep_best_by if name in alone]
        return [*kept, epochs[-1]] if self.keep_last and epochs else kept

    def _save(self, entry: SavedEpoch, state: object) -> SavedEpoch:
        """Write a checkpoint to disk; the manifest lists it as pending until `_enter` records it."""
        temporary = self.folder / f".epoch-{entry.number:0>5}.pt.tmp"
        sha256 = write_whole(temporary, lambda file: torch.save(state, file), flush=self.flush)
        names = (f"epoch-{entry.number:05}{suffix}.pt" for suffix in chain([""], (f"-{n}" for n in count(2))))
        name = next(name for name in names if not (self.folder / name).exists())
        saved = replace(entry, file=name, sha256=sha256)
        try:
            self._write_manifest(self.epochs, pending=saved, garbage=self._garbage)
            rename(temporary, self.folder / name, flush=self.flush)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        return saved

    def _enter(self, epochs: list[SavedEpoch]) -> None:
        """Record these epochs in the manifest, and delete the checkpoints that are no longer kept."""
        kept = self._kept(epochs)
        dropped = [epoch for epoch in epochs if epoch.file is not None and not any(map(epoch.is_same, kept))]
        entered = [replace(epoch, file=None, sha256="") if epoch in dropped else epoch for epoch in epochs]
        self._write_manifest(entered, garbage=[*self._garbage, *dropped])
        self.epochs, self._garbage = entered, manifest.delete_files(self.folder, [*self._garbage, *dropped])

    def _write_manifest(self, epochs: Sequence[SavedEpoch], **changed: Any) -> None:
        Manifest(asdict(self.rule), epochs, **changed).write(self.folder, flush=self.flush)

    def _read(self) -> None:
        """Take over the manifest, if there is one and it has changed since it was read."""
        path = self.folder / manifest.NAME
        changed_at = path.stat().st_mtime_ns if path.exists() else 0
        if changed_at == self._read_at:
            return
        saved, self._read_at = Manifest.read(self.folder), changed_at
        if saved.rule != json.loads(json.dumps(asdict(self.rule))):
            raise ManifestError(f"{path} was written for another rule, {quoted(saved.rule)}: choose another folder.")
        for epoch in [*saved.epochs, *([] if saved.pending is None else [saved.pending])]:
            missing = [name for name in self.rule.metrics if name not in epoch.values]
            if missing:
                raise ManifestError(f"{path} lacks {missing[0]} of epoch {quoted(epoch.number)}.")
        self.epochs = []
        for epoch in saved.epochs:
            is_lost = epoch.file is not None and not epoch.is_whole_in(self.folder)
            if is_lost:
                lost = self.folder / str(epoch.file)
                warn(f"{lost} is missing or damaged: epoch {epoch.number} is lost", stacklevel=3)
            self.epochs.append(replace(epoch, file=None, sha256="") if is_lost else epoch)
        self._garbage = [epoch for epoch in saved.garbage if epoch.is_whole_in(self.folder)]
        if saved.pending is not None and saved.pending.is_whole_in(self.folder):
            self.epochs.append(saved.pending)
            self._is_pending = True

    def _settle(self) -> None:
        """Keep other processes out, finish the work of one that died, and delete its temporary files."""
        take(self.folder)
        finalize(self, release, self.folder)
        self._read()  # another process may have gone on since
        if self._is_pending:
            self._enter(self.epochs)
        self._garbage = manifest.delete_files(self.folder, self._garbage)
        for temporary in [*self.folder.glob(".epoch-*.pt.tmp"), *self.folder.glob(f".{manifest.NAME}.tmp")]:
            temporary.unlink()
        self._is_settled = True
