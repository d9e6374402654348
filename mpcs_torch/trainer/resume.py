"""The checkpoints that a run keeps, and how it goes on from the last one."""

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
from mpcs_torch.trainer.config.run import ConfigError, RunConfig, changed_keys, dump_config
from mpcs_torch.trainer.loop import Hook, LoopState, MeasuredEpoch, PreparedRun

FOLDER = "checkpoints"
"""Inside the run's folder."""


def open_selector(config: RunConfig, run_folder: Path) -> CheckpointSelector | None:
    """Open the selector of a run, new or with the ledger of a finished one; None if the config has none."""
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
        resume=True,  # the trainer has cleared the folder of a new run
    )


def selector_hook(selector: CheckpointSelector | None) -> Hook:
    """Return a hook that offers every epoch to the selector, which the first process alone has, and heeds its patience.

    The selector's record is that of all epochs, so a run that goes on after a kill stops where it would have.
    """

    def offer(epoch: MeasuredEpoch, state: LoopState) -> str | None:
        if selector is None:
            return None
        selector.update(lambda: checkpoint(state), epoch=epoch.number, **epoch.values)
        is_repeated = epoch.number != selector.last_epoch  # a run that was killed had come further
        if is_repeated or selector.best is None or not selector.should_stop:
            return None
        best, patience = selector.best.number, selector.patience
        return f"the best epoch by the selector's rule is still {best} (selector.patience: {patience})"

    return offer


def checkpoint(state: LoopState) -> dict[str, Any]:
    """Return the state of a run as tensors and plain values, which ``torch.load(weights_only=True)`` reads."""
    return {
        "model": state.measured.state_dict(),
        "optimizer": state.optimizer.state_dict(),
        "epochs": state.epochs,
        "steps": state.steps,
        "random_state": torch.get_rng_state(),
    }


COUNT = "epochs.count"
FILE = "resume.pt"
"""In the run's folder; that of a finished run is what a longer one goes on from."""


class StoppedError(MpcsError, RuntimeError):
    """The run was asked to stop, and has saved its state."""

    exit_status = 128 + signal.SIGTERM


class RunKeeper:
    """Saves a run every few seconds, and when the process is asked to end (Ctrl-C or SIGTERM)."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder, self.seconds = folder, seconds
        self._saved_at = monotonic()
        self._stopping: int | None = None
        """The signal that asked to stop."""

    def asks(self) -> tuple[bool, bool]:
        """Tell whether to save after the next step, and whether to stop then."""
        is_stopping = self._stopping is not None
        return is_stopping or monotonic() - self._saved_at >= self.seconds, is_stopping

    def save(self, run: PreparedRun, *, stop: bool) -> None:
        """Save all that the rest of a run depends on, as tensors and plain values, in the first of its processes.

        Raises:
            StoppedError: If it has to stop.
        """
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
            error = StoppedError(f"stopped {place}; `mpcs train --resume {quote(str(self.folder))}` goes on from there")
            error.exit_status = 128 + (self._stopping or signal.SIGTERM)  # another process may have been asked
            error.is_printed_elsewhere = not state.world.is_first
            raise error

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Turn Ctrl-C and a request to terminate into one to stop after the step; a second Ctrl-C stops at once."""

        def ask(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # a signal handler
            if number == signal.SIGINT == self._stopping:
                raise KeyboardInterrupt
            self._stopping = number

        # Whoever started this process may have it ignore Ctrl-C, as shells do for jobs in the background.
        is_interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        watched = [signal.SIGTERM, *([signal.SIGINT] if is_interruptible else [])]
        before = {}
        with suppress(ValueError):  # not the main thread, which alone gets signals
            for number in watched:
                before[number] = signal.signal(number, ask)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def restore(run: PreparedRun, saved: dict[str, Any]) -> None:
    """Give a new run the state of a saved one.

    Raises:
        ConfigError: If the saved run had another config, not just another number of epochs, or its state is damaged.
    """
    state = run.state
    try:
        check_goes_on(saved["config"], run.config, saved["epochs"])
        for name, part in _parts(run).items():
            part.load_state_dict(saved["parts"][name])
        state.epochs, state.steps, state.taken = saved["epochs"], saved["steps"], saved["taken"]
        state.stopped = saved.get("stopped")  # which older versions lack
        state.order = None if saved["order"] is None else saved["order"].to(run.data.train.labels.device)
        if state.world.rank < len(saved["random"]):  # a run may go on with more processes than before
            cpu, *cuda = saved["random"][state.world.rank]
            torch.set_rng_state(cpu)
            if cuda and torch.cuda.is_available():
                torch.cuda.set_rng_state(cuda[0])
    except ConfigError:
        raise
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ConfigError(f"{run.config.name}: the saved state is damaged: {shown(repr(error))}") from error


def check_goes_on(saved: str, config: RunConfig, epochs: int = 0) -> bool:
    """Return whether a run goes on with another number of epochs, or with the config as it was.

    Args:
        saved: The config of the run as it was dumped.
        config: The config to go on with.
        epochs: The epochs that are done.

    Raises:
        ConfigError: If anything else changes, a schedule depends on the number of epochs, or that is too small.
    """
    changed = changed_keys(saved, config)
    if others := ", ".join(key for key in changed if key != COUNT):
        problem = f"the config is not that of the saved run, which has another {others}; only {COUNT} may change"
    elif changed and config.follows_count is not None:
        problem = f"{COUNT} cannot change as the run goes on, because {config.follows_count} depends on it"
    elif epochs > config.epochs.count:
        problem = f"{COUNT} must be at least {epochs}, the epochs that are done"
    else:
        return bool(changed)
    raise ConfigError(f"{config.name}: {problem}; --overwrite begins anew")


def read_state(folder: Path) -> dict[str, Any] | None:
    """Read the saved state of a run; None if it has saved none.

    Raises:
        ConfigError: If the file is not such a state; reading it runs no code.
    """
    path = folder / FILE
    if not path.exists():
        return None
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds
        raise ConfigError(f"{path} is not the saved state of a run: {shown(str(error))}") from error
    return state


def cut_records(path: Path, epochs: int) -> None:
    """Leave the rows of the first epochs.

    Raises:
        ConfigError: If there are fewer.
    """
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)[: 1 + epochs]
    if len(lines) <= epochs or not lines[-1].endswith("\n"):
        raise ConfigError(f"{path} must hold the {epochs} epochs of the saved run, but holds {max(len(lines) - 1, 0)}")
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
