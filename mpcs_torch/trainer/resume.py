"""Save the state of a training run, and resume the run from it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from time import monotonic
from types import FrameType
from typing import Any

import torch

from mpcs_torch.errors import CodedError, shown
from mpcs_torch.exit_statuses import ExitStatus
from mpcs_torch.io.atomic_files import flush_paths, replace_file, replace_text
from mpcs_torch.io.untrusted_files import load_tensors, read_text
from mpcs_torch.trainer.config.load import changed_keys, dump_config
from mpcs_torch.trainer.config.sections import ConfigError, RunConfig
from mpcs_torch.trainer.loop import TrainingRun

COUNT = "epochs.count"
FILE = "resume.pt"
"""The name of the file of the saved state. A finished run keeps the file, so that the run can be trained longer."""


class StoppedError(CodedError, RuntimeError):
    """An error that ends a run because of a signal (Ctrl-C or SIGTERM). The state of the run was saved before."""

    exit_status: int = ExitStatus.TERMINATED


class RunKeeper:
    """Save a run to ``folder`` every ``seconds``, and when the process is interrupted (Ctrl-C) or terminated."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder = folder
        self.seconds = seconds
        self._saved_at = monotonic()
        self._stopping: int | None = None
        """The number of the received signal; None before a signal."""

    def after_step(self, run: TrainingRun) -> None:
        """Save the run if the last save is ``seconds`` ago. If any process received a signal, save and stop the run."""
        is_stopping = self._stopping is not None
        is_due = is_stopping or monotonic() - self._saved_at >= self.seconds
        saves, stops = run.world.any_set([is_due, is_stopping], run.split.labels.device)
        if saves:
            self.save(run)
        if stops:
            folder = quote(str(self.folder))
            error = StoppedError("stopped", epoch=run.epochs, step=run.steps, folder=folder)
            # Another process may have received the signal.
            error.exit_status = 128 + (self._stopping or signal.SIGTERM)
            error.is_printed_elsewhere = not run.world.is_first
            raise error

    def save(self, run: TrainingRun) -> None:
        """Write the state from which to resume the run (in rank 0 only)."""
        content = {"config": dump_config(run.config), **run.state_dict()}

        def write() -> None:
            # The state must not be newer than the records.
            flush_paths([self.folder / "records.csv"])
            replace_file(self.folder / FILE, lambda file: torch.save(content, file))

        run.world.from_first(write)
        self._saved_at = monotonic()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Delay Ctrl-C and SIGTERM in the with block until the step is over; a second Ctrl-C stops at once."""

        def defer(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # a signal handler
            if number == signal.SIGINT == self._stopping:
                raise KeyboardInterrupt
            self._stopping = number

        signals = [signal.SIGTERM]
        # Shells let jobs in the background ignore Ctrl-C.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signals.append(signal.SIGINT)
        before = {}
        with suppress(ValueError):  # only the main thread receives signals
            before = {number: signal.signal(number, defer) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def restore(run: TrainingRun, saved: dict[str, Any]) -> None:
    """Load the state ``saved`` into ``run``; raise a `ConfigError` if ``saved`` is damaged or has another config."""
    try:
        check_resumable(saved["config"], run.config, saved["epochs"])
        run.load_state_dict(saved)
    except ConfigError:
        raise
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ConfigError(
            "damaged_state", f"{run.config.name}:", cause=shown(repr(error))
        ) from error


def check_resumable(saved: str, config: RunConfig, epochs: int = 0) -> bool:
    """Return whether ``config`` has another number of epochs than ``saved``, the config of a run as YAML text.

    Raises:
        ConfigError: If another setting differs, if a schedule depends on a number of epochs that differs, or if
            ``config`` has fewer than ``epochs``, the number of finished epochs.
    """
    changed = changed_keys(saved, config)
    place = f"{config.name}:"
    others = ", ".join(key for key in changed if key != COUNT)
    if others:
        raise ConfigError("same_config", place, keys=others, key=COUNT)
    if changed and config.follows_count is not None:
        raise ConfigError("same_count", place, key=COUNT, follows=config.follows_count)
    if epochs > config.epochs.count:
        raise ConfigError("finished_epochs", place, key=COUNT, epochs=epochs)
    return bool(changed)


def read_state(folder: Path) -> dict[str, Any] | None:
    """Return the saved state in ``folder``, without running code from the file; None if there is no saved state."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        state: dict[str, Any] = load_tensors(path)
    except Exception as error:  # torch raises many kinds of errors
        raise ConfigError("saved_state", str(path), cause=shown(str(error))) from error
    return state


def cut_records(path: Path, epochs: int) -> None:
    """Delete all but the first ``epochs`` rows of ``path``; raise a `ConfigError` if it has fewer complete rows."""
    lines = read_text(path).splitlines(keepends=True)[: 1 + epochs]
    complete = len(lines) - 1
    if complete < epochs or not lines[-1].endswith("\n"):
        number = max(complete, 0)
        raise ConfigError("saved_epochs", str(path), epochs=epochs, number=number)
    replace_text(path, "".join(lines))
