"""The part of `SelectCheckpoint` that is the same in all frameworks: its arguments, its selector, and its rules.

A framework's `SelectCheckpoint` only adds where the values come from, how the state of the training is saved, and how a
training is stopped.
"""

import inspect
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from mpcs_torch.errors import ArgumentsError, CodedError
from mpcs_torch.learning import CheckpointSelector, SelectionRule
from mpcs_torch.learning.checkpoint_selector import ARGUMENTS_OF_UPDATE
from mpcs_torch.learning.rank_zero import from_first_rank, wait_for_all_ranks


class TrainedTwiceError(CodedError, RuntimeError):
    """A second training would be mixed with the first in one `CheckpointSelector`."""


def make_selector(
    selector_or_folder: CheckpointSelector | str | Path,
    rule: SelectionRule | None,
    options: Mapping[str, Any],
) -> CheckpointSelector:
    """Return the selector, or create one on the folder with ``rule`` and ``options``.

    Raises:
        ArgumentsError: If an argument has a wrong type, is unknown, or cannot change the selector.
        ValueError, FileExistsError: In the same cases as `CheckpointSelector`.
    """
    if isinstance(selector_or_folder, CheckpointSelector):
        extra = ["rule"] if rule is not None else list(options)
        if extra:
            raise ArgumentsError("of_selector", extra[0])
        return selector_or_folder
    if not isinstance(selector_or_folder, str | Path):
        raise ArgumentsError("selector_or_folder", "selector_or_folder", selector_or_folder)
    if not isinstance(rule, SelectionRule):
        raise ArgumentsError("rule_of_folder", "rule", rule)
    known = set(inspect.signature(CheckpointSelector).parameters) - {"folder", "rule"}
    unknown = sorted(options.keys() - known)
    if unknown:
        raise ArgumentsError(
            "unknown_setting", "SelectCheckpoint", name=unknown[0], known=sorted(known)
        )
    return CheckpointSelector(selector_or_folder, rule, **options)


class CheckpointCallback:
    """The base of the classes `SelectCheckpoint`: it passes the values of an epoch to a `CheckpointSelector`.

    Args:
        selector_or_folder: The selector, or the folder of a new one.
        rule: The rule of a new selector.
        **options: The other arguments of a new `CheckpointSelector`.

    Attributes:
        selector: The selector. It records one training: another training needs another `SelectCheckpoint`.
    """

    remedy: ClassVar[str] = ""
    """The remedy if the values of an epoch lack a metric of the rule: the end of the error message."""
    selector: CheckpointSelector

    def __init__(
        self,
        selector_or_folder: CheckpointSelector | str | Path,
        rule: SelectionRule | None = None,
        **options: Any,
    ) -> None:
        self.use(make_selector(selector_or_folder, rule, options))

    _has_recorded = _has_recorded_earlier = False
    """Whether this callback has recorded epochs of this training, and of an earlier one."""
    _is_new = True
    """Whether this training does not continue another one, which may have nothing left to do."""

    def use(self, selector: CheckpointSelector) -> None:
        """Record the next training with ``selector``, which may be another one than before."""
        if selector is not getattr(self, "selector", None):
            self.selector = selector
            self._has_recorded = self._has_recorded_earlier = False

    def begin_training(self, *, is_new: bool) -> None:
        """Begin a training: ``is_new`` if it starts with the first step, and does not continue an earlier one.

        Warn if ``is_new``, and the folder has the epochs of another training.

        Raises:
            TrainedTwiceError: If ``is_new``, and this callback has recorded another training.
        """
        self._has_recorded_earlier = self._has_recorded_earlier or self._has_recorded
        self._has_recorded, self._is_new = False, is_new
        if is_new and self._has_recorded_earlier:
            raise TrainedTwiceError("trained_once", folder=str(self.selector.folder))
        if is_new and self.selector.epochs:
            # No error: a cluster may have stopped the training before it saved its first state.
            warnings.warn(
                f"this training begins anew, but {self.selector.folder} has {len(self.selector.epochs)} epochs of an "
                "earlier one, and the best epoch may be one of them: pass an empty folder, unless this training "
                "repeats the earlier one",
                stacklevel=2,
            )

    def record(
        self,
        state: Callable[[], object],
        *,
        epoch: int,
        values: Mapping[str, Any],
        others: Mapping[str, float] | None = None,
    ) -> bool:
        """Update the selector; return whether the training should stop.

        All ranks must call this method. They use the values of rank 0, and wait until it has written the checkpoint.

        Args:
            state: A function that returns the state to save.
            epoch: The number of the epoch.
            values: All values by name, of which those of the rule are recorded.
            others: Values that are recorded, too. Default: none.
        """
        recorded = self.selector.rule.values_in(values, self.remedy)
        recorded |= {
            name: value
            for name, value in (others or {}).items()
            if name not in ARGUMENTS_OF_UPDATE
        }
        self.selector.update(state, epoch=epoch, **from_first_rank(recorded))
        wait_for_all_ranks()
        self._has_recorded = True
        return self.selector.should_stop

    def end_training(self) -> None:
        """Warn if a new training has recorded no epoch."""
        if self._is_new and not self._has_recorded:
            warnings.warn(
                f"SelectCheckpoint has recorded no epoch in {self.selector.folder}, because no evaluation with the "
                f"metrics {', '.join(self.selector.rule.metrics)} has run",
                stacklevel=2,
            )
