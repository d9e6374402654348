"""Save the checkpoints and the state of a training run, and resume the run from its state."""

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

from mpcs_torch.errors import ExitStatus, MpcsError, shown
from mpcs_torch.io.atomic_files import flush_paths, replace_text, replace_whole
from mpcs_torch.io.untrusted_files import load_tensors, read_text
from mpcs_torch.learning import CheckpointSelector
from mpcs_torch.trainer.config.load_with_suggestions import changed_keys, dump_config
from mpcs_torch.trainer.config.sections import ConfigError, RunConfig
from mpcs_torch.trainer.loop import Hook, LoopState, MeasuredEpoch, PreparedRun

FOLDER = "checkpoints"
"""The name of the folder of checkpoints in the folder of a run."""


def open_selector(config: RunConfig, run_folder: Path) -> CheckpointSelector | None:
    """Open the checkpoint selector of the run in ``run_folder``; return None if ``config`` has no selector."""
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
        min_delta=selector.min_delta,
        resume=True,  # the folder of a new run was cleared
    )


def selector_hook(selector: CheckpointSelector | None) -> Hook:
    """Return a hook that adds epochs to ``selector``, and stops the run after too many epochs without progress."""

    def select(epoch: MeasuredEpoch, state: LoopState) -> str | None:
        if selector is None:
            return None
        selector.update(lambda: checkpoint(state), epoch=epoch.number, **epoch.values)
        is_repeated = epoch.number != selector.last_epoch  # a resumed run repeats epochs that the selector knows
        if is_repeated or not selector.should_stop:
            return None
        settings = f"selector.patience: {selector.patience}"
        if selector.min_delta:
            settings += f", selector.min_delta: {selector.min_delta:g}"
        if selector.best is None:
            return f"{selector.rule.by} was always NaN ({settings})"
        return f"the best epoch by the selector's rule is still {selector.best.number} ({settings})"

    return select


def checkpoint(state: LoopState) -> dict[str, Any]:
    """Return the content of a checkpoint, as tensors and plain values, from the loop's ``state``."""
    return {
        "model": state.measured.state_dict(),
        "optimizer": state.optimizer.state_dict(),
        "epochs": state.epochs,
        "steps": state.steps,
        "random_state": torch.get_rng_state(),
    }


COUNT = "epochs.count"
FILE = "resume.pt"
"""The name of the file of the saved state. A finished run keeps the file, so that the run can be trained longer."""


class StoppedError(MpcsError, RuntimeError):
    """An error that ends a run because of a signal (Ctrl-C or SIGTERM). The state of the run was saved before."""

    exit_status: int = ExitStatus.TERMINATED


class RunKeeper:
    """Save a run to ``folder`` every ``seconds``, and when the process is interrupted (Ctrl-C) or terminated."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder, self.seconds = folder, seconds
        self._saved_at = monotonic()
        self._stopping: int | None = None
        """The number of the received signal; None before a signal."""

    def after_step(self, run: PreparedRun) -> None:
        """Save the run if the last save is ``seconds`` ago. If any process received a signal, save and stop the run."""
        is_stopping = self._stopping is not None
        is_due = is_stopping or monotonic() - self._saved_at >= self.seconds
        saves, stops = run.state.world.any_set([is_due, is_stopping], run.batches.split.labels.device)
        if saves:
            self.save(run, stop=stops)

    def save(self, run: PreparedRun, *, stop: bool = False) -> None:
        """Write the state from which to resume the run (in rank 0 only); with ``stop``, then raise a `StoppedError`."""
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
        """Delay Ctrl-C and SIGTERM in the with block until the step is over; a second Ctrl-C stops at once."""

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
    """Load the state ``saved`` into ``run``; raise a `ConfigError` if ``saved`` is damaged or has another config."""
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
    """Return whether ``config`` has another number of epochs than ``saved``, the config of a run as YAML text.

    Raises:
        ConfigError: If another setting differs, if a schedule depends on a number of epochs that differs, or if
            ``config`` has fewer than ``epochs``, the number of finished epochs.
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
    """Return the saved state in ``folder``, without running code from the file; None if there is no saved state."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        state: dict[str, Any] = load_tensors(path)
    except Exception as error:  # torch raises many kinds of errors
        raise ConfigError(f"{path} is not the saved state of a run: {shown(str(error))}") from error
    return state


def cut_records(path: Path, epochs: int) -> None:
    """Delete all but the first ``epochs`` rows of ``path``; raise a `ConfigError` if it has fewer complete rows."""
    lines = read_text(path).splitlines(keepends=True)[: 1 + epochs]
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
