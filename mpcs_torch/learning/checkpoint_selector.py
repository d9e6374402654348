"""Keep the checkpoints of the best epochs on disk, through crashes."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from warnings import warn

import torch
from torch import Tensor

from mpcs_torch.files import rename, write_whole
from mpcs_torch.learning import manifest
from mpcs_torch.learning.manifest import Manifest, ManifestError, SavedEpoch
from mpcs_torch.learning.selection import Epoch, SelectionRule, explain
from mpcs_torch.tables import Table


class CheckpointSelector:
    """Saves the best epochs, and no others, in a folder; usable in any loop.

    The folder's ``manifest.json`` is the ledger of all epochs, kept through restarts: make a selector on the same
    folder to go on. Checkpoints are written to a temporary file, brought to the disk, entered in the manifest, and only
    then are others deleted; a process that dies at any moment loses neither the best checkpoint nor the ledger. Files
    that the manifest does not own are never touched.

    Args:
        folder: Made if it is not there.
        rule: Which epoch is the best.
        top_k: How many of the best to keep.
        keep_last: Whether to keep the last epoch as well.
        keep_every: Keep every n-th epoch as well; 0 for none.

    Raises:
        ManifestError: A ValueError, if the manifest is of another rule or cannot be read.

    Example:
        >>> import tempfile, torch
        >>> from mpcs_torch import MetaPatternConcernScore
        >>> from mpcs_torch.learning import CheckpointSelector, SelectionRule
        >>> directions = {"mpcs": MetaPatternConcernScore, "accuracy": "max"}
        >>> rule = SelectionRule("mpcs", directions, within={"accuracy": 0.01})
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
    ) -> None:
        if top_k < 1 or keep_every < 0:
            raise ValueError(f"top_k must be at least 1 and keep_every at least 0, but got {top_k} and {keep_every}.")
        self.folder, self.rule = Path(folder), rule
        self.top_k, self.keep_last, self.keep_every = top_k, keep_last, keep_every
        self.epochs: list[SavedEpoch] = []
        """The ledger, in the order of the updates."""
        self._garbage: list[SavedEpoch] = []
        self._is_pending = False
        """Whether the ledger's last epoch is not entered in the manifest yet."""
        self._is_settled = False
        """Whether what an earlier process had begun is finished. It may be alive, so that waits for an update."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if (self.folder / manifest.NAME).exists():
            self._take_over(Manifest.read(self.folder))

    @property
    def best(self) -> SavedEpoch | None:
        """The best epoch so far; None before the first one that keeps to the rule's limits."""
        ranking = self.rule.ranking(self.epochs)
        return ranking[0] if ranking else None  # type: ignore[return-value]  # a ranking gives back what it took

    @property
    def last_epoch(self) -> int | None:
        """The latest epoch in the ledger: a resumed loop goes on after it."""
        return self.epochs[-1].number if self.epochs else None

    def update(self, state: object | Callable[[], object], *, epoch: int, **values: float | Tensor) -> None:
        """Enter an epoch, and save its state if it is to be kept.

        Args:
            state: What `torch.save` takes and ``weights_only=True`` loads, or a function that gives it (called only if
                it is to be saved).
            epoch: Its number. An epoch that a resumed loop repeats with the same values changes nothing, unless its
                checkpoint was lost; with other values it is a further candidate.
            **values: Its metrics, at least those of the rule; NaN is allowed and never wins.

        Raises:
            ValueError: If a metric of the rule is missing.
            OSError: If the checkpoint cannot be written; the ledger and the kept checkpoints are as they were.
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
            message = f"the checkpoint of epoch {epoch} cannot be saved, and those before it are kept"
            raise OSError(error.errno, f"{message}: {error.strerror}", str(self.folder)) from error

    def load_best(self, map_location: Any = "cpu") -> Any:
        """Load the best checkpoint whose file is whole, with ``weights_only=True``.

        A torn or missing file is reported as a warning, and the one next to it in the ranking is loaded.

        Raises:
            FileNotFoundError: If there is none.
        """
        for entry in self.rule.ranking(self.epochs):
            assert isinstance(entry, SavedEpoch)
            if entry.file is None:
                continue
            path = self.folder / entry.file
            if entry.is_whole_in(self.folder):
                return torch.load(path, map_location=map_location, weights_only=True)
            warn(f"{path} is not the file that was saved; trying the next best epoch", stacklevel=2)
        raise FileNotFoundError(f"{self.folder} holds no whole checkpoint that keeps to the rule")

    def load(self, epoch: int, map_location: Any = "cpu") -> Any:
        """Load the checkpoint of an epoch that is kept, with ``weights_only=True``.

        Raises:
            FileNotFoundError: If it is not kept, or its file is torn.
        """
        for entry in self.epochs:
            if entry.number == epoch and entry.is_whole_in(self.folder):
                return torch.load(self.folder / str(entry.file), map_location=map_location, weights_only=True)
        raise FileNotFoundError(f"{self.folder} holds no whole checkpoint of epoch {epoch}")

    def explain(self) -> Table:
        """What the rule picks, what each metric would have picked alone, and what that means for the others."""
        return explain(self.rule, self.epochs)

    def _kept(self, epochs: Sequence[SavedEpoch], *, new: SavedEpoch | None = None) -> list[Epoch]:
        """The epochs whose checkpoints stay: an epoch without one, lost or never kept, keeps no other from staying."""
        among = [epoch for epoch in epochs if epoch.file is not None or epoch is new]
        kept = self.rule.could_win(epochs, self.top_k, among=among)
        kept += [epoch for epoch in epochs if self.keep_every and epoch.number % self.keep_every == 0]
        return [*kept, epochs[-1]] if self.keep_last and epochs else kept

    def _save(self, entry: SavedEpoch, state: object) -> SavedEpoch:
        """Bring a checkpoint to the disk; until it is entered, the manifest knows it as pending."""
        temporary = self.folder / manifest.temporary_name(entry.number)
        sha256 = write_whole(temporary, lambda file: torch.save(state, file))
        name = manifest.free_name(self.folder, entry.number)
        saved = replace(entry, file=name, sha256=sha256)
        try:
            self._manifest(self.epochs, pending=saved, garbage=self._garbage).write(self.folder)
            rename(temporary, self.folder / name)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        return saved

    def _enter(self, epochs: list[SavedEpoch]) -> None:
        """Make this the ledger, and delete the files that it no longer keeps."""
        kept = self._kept(epochs)
        dropped = [epoch for epoch in epochs if epoch.file is not None and not any(map(epoch.is_same, kept))]
        entered = [replace(epoch, file=None, sha256="") if epoch in dropped else epoch for epoch in epochs]
        garbage = [*self._garbage, *dropped]
        self._manifest(entered, garbage=garbage).write(self.folder)
        self.epochs, self._garbage = entered, garbage
        self._delete_garbage()

    def _delete_garbage(self) -> None:
        for epoch in self._garbage:
            with suppress(OSError):  # it stays garbage, and is tried again
                (self.folder / str(epoch.file)).unlink(missing_ok=True)
        self._garbage = [epoch for epoch in self._garbage if (self.folder / str(epoch.file)).exists()]

    def _manifest(self, epochs: Sequence[SavedEpoch], **changed: Any) -> Manifest:
        return Manifest(asdict(self.rule), epochs, **changed)

    def _take_over(self, found: Manifest) -> None:
        if found.rule != json.loads(json.dumps(asdict(self.rule))):
            path = self.folder / manifest.NAME
            raise ManifestError(f"{path} is of another rule, {found.rule}: choose another folder.")
        self.epochs = [self._without_lost_file(epoch) for epoch in found.epochs]
        self._garbage = [epoch for epoch in found.garbage if epoch.is_whole_in(self.folder)]
        if found.pending is not None and found.pending.is_whole_in(self.folder):
            self.epochs.append(found.pending)
            self._is_pending = True

    def _settle(self) -> None:
        """Finish what a process that died had begun, and remove its temporary files."""
        if self._is_pending:
            self._enter(self.epochs)
        self._delete_garbage()
        for leftover in [path for pattern in manifest.TEMPORARY_FILES for path in self.folder.glob(pattern)]:
            leftover.unlink()
        self._is_settled = True

    def _without_lost_file(self, epoch: SavedEpoch) -> SavedEpoch:
        if epoch.file is None or epoch.is_whole_in(self.folder):
            return epoch
        warn(f"{self.folder / epoch.file} is not the file that was saved: epoch {epoch.number} is lost", stacklevel=4)
        return replace(epoch, file=None, sha256="")
