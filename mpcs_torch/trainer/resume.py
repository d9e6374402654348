"""Save the checkpoints and the state of a run, and resume it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from time import monotonic
from types import FrameType
from typing import Any

import torch
from torch import nn

from mpcs_torch.errors import MpcsError, shown
from mpcs_torch.io.atomic_files import flush_paths, replace_text, replace_whole
from mpcs_torch.learning import CheckpointSelector
from mpcs_torch.trainer.config.load_with_suggestions import changed_keys, dump_config
from mpcs_torch.trainer.config.sections import ConfigError, RunConfig
from mpcs_torch.trainer.loop import Hook, LoopState, MeasuredEpoch, PreparedRun

FOLDER = "checkpoints"
"""The folder of checkpoints inside the run's folder."""


def open_selector(config: RunConfig, run_folder: Path) -> CheckpointSelector | None:
    """Open the checkpoint selector of a run, with the epochs in ``run_folder``; None if the config has no selector."""
    selector = config.selector
    if selector is None:
        return None
    return CheckpointSelector(
        run_folder / FOLDER,
        selector.rule(config.directions),
        top_k=selector.top_k,
        keep_last=selector.keep_last,
        keep_every=selector.keep_every,
        keep_best_by=[name for name in selector.keep_best_by if name in config.directions],
        patience=selector.patience,
        resume=True,  # the folder of a new run was cleared
    )


def selector_hook(selector: CheckpointSelector | None) -> Hook:
    """Return a hook that updates ``selector`` (None except in rank 0) and stops the run when its patience ends.

    The selector records all epochs, so a resumed run stops at the same epoch as an uninterrupted one.
    """

    def select(epoch: MeasuredEpoch, state: LoopState) -> str | None:
        if selector is None:
            return None
        selector.update(lambda: checkpoint(state), epoch=epoch.number, **epoch.values)
        is_repeated = epoch.number != selector.last_epoch  # the run was killed after it had recorded later epochs
        if is_repeated or selector.best is None or not selector.should_stop:
            return None
        best, patience = selector.best.number, selector.patience
        return f"the best epoch by the selector's rule is still {best} (selector.patience: {patience})"

    return select


def checkpoint(state: LoopState) -> dict[str, Any]:
    """Return the content of a checkpoint of ``state``, as tensors and plain values."""
    return {
        "model": state.measured.state_dict(),
        "optimizer": state.optimizer.state_dict(),
        "epochs": state.epochs,
        "steps": state.steps,
        "random_state": torch.get_rng_state(),
    }


COUNT = "epochs.count"
FILE = "resume.pt"
"""The saved state in the run's folder; a finished run keeps it, so that it can be trained longer."""


class StoppedError(MpcsError, RuntimeError):
    """The run received a signal to stop, and saved its state."""

    exit_status = 128 + signal.SIGTERM


class RunKeeper:
    """Save a run every few seconds, and when the process is interrupted (Ctrl-C) or terminated (SIGTERM)."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder, self.seconds = folder, seconds
        self._saved_at = monotonic()
        self._stopping: int | None = None
        """The number of the signal that was received; None before a signal."""

    def after_step(self, run: PreparedRun) -> None:
        """Save the run if any process is due to save it, and stop the run if any process has received a signal."""
        is_stopping = self._stopping is not None
        is_due = is_stopping or monotonic() - self._saved_at >= self.seconds
        saves, stops = run.state.world.any_set([is_due, is_stopping], run.batches.split.labels.device)
        if saves:
            self.save(run, stop=stops)

    def save(self, run: PreparedRun, *, stop: bool = False) -> None:
        """Save, in rank 0, all state that the rest of the run needs; with ``stop``, then raise a `StoppedError`."""
        state = run.state
        random = [torch.get_rng_state(), *([torch.cuda.get_rng_state()] if torch.cuda.is_available() else [])]
        with run.running():
            parts = {name: part.state_dict() for name, part in _parts(run).items()}
        content = {
            "config": dump_config(run.config),
            "parts": parts,
            "epochs": state.epochs,
            "steps": state.steps,
            "order": state.order,
            "taken": state.taken,
            "stopped": state.stopped,
            "random": state.world.gather(lambda: random),
        }

        def write() -> None:
            flush_paths([self.folder / "records.csv"])  # the state must not be newer than the records
            replace_whole(self.folder / FILE, lambda file: torch.save(content, file))

        state.world.from_first(write)
        self._saved_at = monotonic()
        if stop:
            place = f"after epoch {state.epochs}, step {state.steps}"
            error = StoppedError(f"stopped {place}; `mpcs train --resume {quote(str(self.folder))}` resumes it")
            error.exit_status = 128 + (self._stopping or signal.SIGTERM)  # another process may have received the signal
            error.is_printed_elsewhere = not state.world.is_first
            raise error

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Defer Ctrl-C and SIGTERM until after the current step; a second Ctrl-C stops the run at once."""

        def defer(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # a signal handler
            if number == signal.SIGINT == self._stopping:
                raise KeyboardInterrupt
            self._stopping = number

        # Shells let jobs in the background ignore Ctrl-C.
        is_interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        watched = [signal.SIGTERM, *([signal.SIGINT] if is_interruptible else [])]
        before = {}
        with suppress(ValueError):  # only the main thread receives signals
            for number in watched:
                before[number] = signal.signal(number, defer)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def restore(run: PreparedRun, saved: dict[str, Any]) -> None:
    """Load the state ``saved`` into a new run; raise a `ConfigError` if the state is damaged or for another config."""
    state = run.state
    try:
        check_resumable(saved["config"], run.config, saved["epochs"])
        for name, part in _parts(run).items():
            part.load_state_dict(saved["parts"][name])
        state.epochs, state.steps, state.taken = saved["epochs"], saved["steps"], saved["taken"]
        state.stopped = saved.get("stopped")  # older versions did not save it
        state.order = None if saved["order"] is None else saved["order"].to(run.data.train.labels.device)
        if state.world.rank < len(saved["random"]):  # there may be more processes than before
            cpu, *cuda = saved["random"][state.world.rank]
            torch.set_rng_state(cpu)
            if cuda and torch.cuda.is_available():
                torch.cuda.set_rng_state(cuda[0])
    except ConfigError:
        raise
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ConfigError(f"{run.config.name}: the saved state is damaged: {shown(repr(error))}") from error


def check_resumable(saved: str, config: RunConfig, epochs: int = 0) -> bool:
    """Return whether ``saved``, a dumped config, and ``config`` differ in the number of epochs.

    Raises:
        ConfigError: If another setting differs, if the number of epochs differs and a schedule depends on it, or if
            ``config`` has fewer epochs than ``epochs``, the number of finished epochs.
    """
    changed = changed_keys(saved, config)
    if others := ", ".join(key for key in changed if key != COUNT):
        problem = f"the config differs from that of the saved run in {others}; only {COUNT} may change"
    elif changed and config.follows_count is not None:
        problem = f"{COUNT} cannot change when a run is resumed, because {config.follows_count} depends on it"
    elif epochs > config.epochs.count:
        problem = f"{COUNT} must be at least {epochs}, the number of finished epochs"
    else:
        return bool(changed)
    raise ConfigError(f"{config.name}: {problem}; --overwrite starts anew")


def read_state(folder: Path) -> dict[str, Any] | None:
    """Read the saved state of a run, without running code from the file; None if there is no saved state."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds
        raise ConfigError(f"{path} is not the saved state of a run: {shown(str(error))}") from error
    return state


def cut_records(path: Path, epochs: int) -> None:
    """Keep the rows of the first ``epochs`` epochs; raise a `ConfigError` if the file has fewer complete rows."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)[: 1 + epochs]
    if len(lines) <= epochs or not lines[-1].endswith("\n"):
        raise ConfigError(f"{path} must have the {epochs} epochs of the saved run, but has {max(len(lines) - 1, 0)}")
    replace_text(path, "".join(lines))


def _parts(run: PreparedRun) -> dict[str, Any]:
    state = run.state
    loss = state.loss if isinstance(state.loss, nn.Module) else None
    parts = {
        "model": state.model,
        "average": state.average,
        "optimizer": state.optimizer,
        "scheduler": run.scheduler,
        "loss": loss,
        "loss_scale": state.loss_scale,
        "ramp": state.ramp,
    }
    return {name: part for name, part in parts.items() if hasattr(part, "state_dict")}
