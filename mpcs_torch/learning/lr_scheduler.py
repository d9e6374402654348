"""`MPCSLR`, a scheduler that scales the learning rate with an evaluation score."""

import warnings
from math import inf, isfinite, isnan, nan
from typing import Any, SupportsFloat

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from mpcs_torch.errors import ArgumentsError, CodedError, require
from mpcs_torch.learning.rank_zero import from_first_rank, has_other_ranks
from mpcs_torch.learning.selection import number


class RepeatedStepError(CodedError, RuntimeError):
    """Accelerate would step a scheduler more than once for one score."""


SETTINGS = (
    "power",
    "reference",
    "lowest",
    "highest",
    "smoothing",
    "warmup_steps",
    "sets_rates",
)
PROGRESS = ("score", "factor", "reason", "last_epoch")
"""The attributes in `MPCSLR.state_dict` besides the settings."""


class _Stored:
    """A number that is stored in the optimizer's first parameter group, like ``initial_lr``.

    It is saved with the optimizer, so that a scheduler that is created anew continues. NaN is stored for None, because
    torch.distributed.checkpoint loads only numbers, and only those that the optimizer has already.
    """

    def __init__(self, key: str, default: float | None = None) -> None:
        self.key, self.default = key, default

    def __get__(self, scheduler: "MPCSLR", _: type) -> Any:
        stored = float(scheduler.optimizer.param_groups[0].get(self.key, nan))
        return self.default if isnan(stored) else stored

    def __set__(self, scheduler: "MPCSLR", value: float | None) -> None:
        scheduler.optimizer.param_groups[0][self.key] = nan if value is None else value


class MPCSLR(ReduceLROnPlateau):
    r"""Scale the learning rate with an evaluation score for which lower is better, such as MPCS.

    .. math::
        \eta = \eta_0 \cdot f, \quad
        f = \min(1, \tfrac{n + 1}{w + 1}) \cdot \mathrm{clip}((s / s_0)^a, l, h)

    with the smoothed score :math:`s`, its reference :math:`s_0`, the power :math:`a`, the number :math:`n` of scheduler
    steps so far and the number :math:`w` of warmup steps. Call ``scheduler.step(score)`` after each evaluation. In a
    distributed run, call it on every rank: all ranks use the score of rank 0.

    The base rate :math:`\eta_0` of a parameter group is its ``initial_lr``: the rate that the group had when the first
    scheduler of the optimizer was created, or when the group was added. All torch schedulers share this value. The
    reference, the smoothed score and the factor are stored beside it, in the first group: a scheduler that is created
    anew for the same optimizer (skorch does so in every ``partial_fit``), or for an optimizer whose state is then
    loaded, continues with them. So step only one `MPCSLR` for each optimizer: two would share these numbers, and
    smooth each score twice. As with torch's schedulers, this is no error, but a scheduler whose rates were changed
    since its last step warns.

    A score of 0 gives a rate of 0, and then nothing changes anymore. So set ``lowest`` for scores that can be 0,
    such as counts of errors; otherwise, this scheduler warns when it happens.

    To scale a warmup or a cosine, set ``sets_rates=False``, and multiply by ``factor`` in a `LambdaLR`::

        score = MPCSLR(optimizer, sets_rates=False)
        cosine = LambdaLR(optimizer, lambda n: score.factor * (1 + math.cos(math.pi * n / steps)) / 2)

    This class is a subclass of `ReduceLROnPlateau` because frameworks pass a metric only to such schedulers.
    `SequentialLR` and `ChainedScheduler` refuse such schedulers: call `step` of this one yourself. Accelerate steps a
    prepared scheduler once for each process. So do not prepare this one, but call
    ``accelerator.register_for_checkpointing``; or create `Accelerator` with ``step_scheduler_with_optimizer=False``.

    Args:
        optimizer: The optimizer.
        power: a >= 0. The paper proposes 1; 0 disables everything except the warmup.
        reference: :math:`s_0 > 0`. Default: the reference of an earlier `MPCSLR` of the optimizer, or the first score.
        lowest: l >= 0, the lower bound of the factor.
        highest: h, the upper bound of the factor.
        smoothing: The weight of past scores in an exponential moving average, at least 0 (no smoothing) and below 1.
        warmup_steps: w; the warmup starts when the scheduler is created, before its first step.
        sets_rates: Whether to set the learning rates. If not, only ``factor`` is computed.
        last_epoch: The number of steps that an earlier scheduler of this optimizer made, minus 1; -1 if there is none.

    Attributes:
        factor: The current factor f.
        score: The smoothed score; None before the first.
        reference: The score at which the factor is 1; None before the first score.
        reason: The reason for the current learning rate, as text.

    Raises:
        ValueError: If a setting is outside its range.
        RepeatedStepError: From ``step``, if Accelerate prepared the scheduler and would repeat the step once for each
            of several processes.

    In trials on MNIST, no variant made fewer dangerous errors than a cosine schedule with warmup. Use this scheduler if
    the number of steps is not known in advance.

    References:
        Wang, Du, Liu: Meta Pattern Concern Score, arXiv:2209.06408v3, Section IV-C2. Deviations: reference, power,
        bounds, smoothing and warmup are not in the paper.

    Example:
        >>> import torch
        >>> from mpcs_torch.learning import MPCSLR
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
        >>> scheduler = MPCSLR(optimizer, power=0.5)
        >>> scheduler.step(0.8)
        >>> scheduler.step(0.2)
        >>> scheduler.get_last_lr(), scheduler.reason
        ([0.05], 'score 0.2 of reference 0.8: factor 0.5')
    """

    reference = _Stored("initial_score")
    score = _Stored("last_score")
    factor = _Stored("last_factor", 1.0)

    def __init__(
        self,
        optimizer: Optimizer,
        *,
        power: float = 1.0,
        reference: float | None = None,
        lowest: float = 0.0,
        highest: float = 1.0,
        smoothing: float = 0.0,
        warmup_steps: int = 0,
        sets_rates: bool = True,
        last_epoch: int = -1,
    ) -> None:
        require(0 <= power < inf, "finite_at_least", "power", power, minimum=0)
        require(
            reference is None or 0 < reference < inf,
            "finite_above",
            "reference",
            reference,
            minimum=0,
        )
        require(
            0 <= lowest <= highest < inf,
            "finite_in_order",
            "lowest and highest",
            [lowest, highest],
        )
        require(
            0 <= smoothing < 1, "from_below", "smoothing", smoothing, minimum=0, maximum=1
        )
        require(warmup_steps >= 0, "at_least", "warmup_steps", warmup_steps, minimum=0)
        require(last_epoch >= -1, "at_least", "last_epoch", last_epoch, minimum=-1)
        if not isinstance(optimizer, Optimizer):
            raise ArgumentsError(
                "instance", "optimizer", optimizer, type="torch.optim.Optimizer"
            )
        self.optimizer = (
            optimizer  # first, because the parent sets `factor`, which is stored in it
        )
        earlier_factor = optimizer.param_groups[0].get("last_factor")
        super().__init__(optimizer)
        self.power, self.smoothing = float(power), float(smoothing)
        self.lowest, self.highest = float(lowest), float(highest)
        self.warmup_steps, self.sets_rates = int(warmup_steps), bool(sets_rates)
        self.reference = self.reference if reference is None else float(reference)
        self.score = self.score  # stored from now on, even if there is none yet
        self.last_epoch = last_epoch + 1
        self.reason = "no score yet"
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", _rate(group))
        self._is_continued = last_epoch > -1
        self._has_set, self._warned = False, set[str]()
        if earlier_factor is None:
            self._set_factor(1.0)
        else:
            self.factor = earlier_factor
            self._remember_rates()

    def step(self, metrics: SupportsFloat) -> None:  # type: ignore[override]  # without the epoch, deprecated in torch
        """Set the learning rates by ``metrics``, the evaluation score; a score that is not finite changes no rate."""
        score = self._score_of_first_rank(number("metrics, the evaluation score,", metrics))
        self.last_epoch += 1
        if score < 0:
            self._warn(
                "direction",
                f"the score {score:g} is below 0: MPCSLR needs scores where lower is better and 0 is the best",
            )
        if not isfinite(score):
            self.reason = f"score {score:g} is not finite: unchanged"
            return
        smoothed = score
        if self.score is not None:
            smoothed = self.smoothing * self.score + (1 - self.smoothing) * score
        self.score = smoothed
        if self.reference is None:
            if score <= 0:
                self.reason = f"score {score:g} cannot be the reference: unchanged"
                return
            if self._is_continued:
                self._warn(
                    "reference",
                    f"the score {score:g} becomes the reference, because the optimizer has none of an earlier MPCSLR: "
                    "to continue, pass reference=, or load the state of the optimizer or of the scheduler",
                )
            self.reference = score
        unbounded = (max(smoothed, 0.0) / self.reference) ** self.power
        factor = min(max(unbounded, self.lowest), self.highest)
        self.reason = (
            f"score {smoothed:g} of reference {self.reference:g}: factor {factor:g}"
        )
        self._warn_of_overwritten_rates()
        self._set_factor(factor)
        self._has_set = True
        self._warn_of_zero()

    @property
    def base_lrs(self) -> list[float]:  # type: ignore[override]  # an attribute in torch; here read from the groups
        """The ``initial_lr`` of each parameter group. If a later group has none, it is first set to its rate."""
        return [
            float(group.setdefault("initial_lr", _rate(group)))
            for group in self.optimizer.param_groups
        ]

    def get_last_lr(self) -> list[float]:  # type: ignore[override]  # floats also of rates that are tensors
        """Return the current learning rate of each parameter group."""
        return [_rate(group) for group in self.optimizer.param_groups]

    @property
    def total_steps(self) -> int:
        """Always raise an error. With several processes, the error stops a loop in the library Accelerate.

        By default, this loop would call `step` once for each process. It reads this attribute before each call.

        Raises:
            RepeatedStepError: If there are several processes.
            AttributeError: Otherwise, because a scheduler driven by a metric has no total number of steps.
        """
        if has_other_ranks():
            raise RepeatedStepError("one_step")
        raise AttributeError("total_steps")

    def state_dict(self) -> dict[str, Any]:
        """Return the settings and the progress as a dictionary of numbers, text and lists."""
        return {name: getattr(self, name) for name in (*SETTINGS, *PROGRESS)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the settings and progress that `state_dict` returned.

        As with all torch schedulers, the learning rates belong to the state of the optimizer, which is loaded on its
        own. The next step sets them.

        Raises:
            ValueError: If the state is not from an `MPCSLR`.
        """
        names = (*SETTINGS, *PROGRESS)
        missing = [name for name in names if name not in state_dict]
        require(not missing, "scheduler_state", "state_dict", missing=missing)
        for name in names:
            setattr(self, name, state_dict[name])
        self._has_set = False

    def _set_factor(self, factor: float) -> None:
        """Set ``self.factor`` to ``factor`` (less during the warmup) and, if ``sets_rates`` is set, set the rates."""
        if self.last_epoch < self.warmup_steps:
            warmup = (self.last_epoch + 1) / (self.warmup_steps + 1)
            factor *= warmup
            self.reason += f", warmup {warmup:g}"
        self.factor = factor
        # A new scheduler must not undo the warmup of another one.
        if self.sets_rates and (factor != 1 or self.score is not None):
            for group, base in zip(self.optimizer.param_groups, self.base_lrs, strict=True):
                _set_rate(group, base * factor)
        self._remember_rates()

    def _remember_rates(self) -> None:
        self._last_lr = [*self.get_last_lr()]

    def _warn_of_overwritten_rates(self) -> None:
        if not (self._has_set and self.sets_rates):
            return
        for rate, lr in zip(self.get_last_lr(), self._last_lr, strict=False):
            if rate != lr:
                self._warn(
                    "rates",
                    f"the learning rate {rate:g}, which was {lr:g} after the last step of MPCSLR, is "
                    "overwritten: to keep the rates of other schedulers, pass sets_rates=False, and multiply by the "
                    "factor in a LambdaLR",
                )

    def _warn_of_zero(self) -> None:
        """Warn if all learning rates become 0, because then the model and its score no longer change."""
        is_stopped = not any(self._last_lr) if self.sets_rates else self.factor == 0
        if is_stopped and any(self.base_lrs):
            self._warn(
                "zero",
                f"the score {self.score:g} sets the learning rate to 0: as long as it is 0, the model does not change, "
                "and so the score does not recover. Pass lowest= to keep the rate above 0",
            )

    def _warn(self, cause: str, sentence: str) -> None:
        if cause not in self._warned:  # once, not at every step
            self._warned.add(cause)
            warnings.warn(sentence, stacklevel=4)

    def _score_of_first_rank(self, score: float) -> float:
        shared = from_first_rank(score)
        if shared != score and isfinite(score):
            self._warn(
                "ranks",
                f"the score {score:g} of this rank differs from that of rank 0, {shared:g}, which all ranks use: "
                "synchronize the metric",
            )
        return shared


def _rate(group: dict[str, Any]) -> float:
    return float(group["lr"])


def _set_rate(group: dict[str, Any], rate: float) -> None:
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(rate)
    else:
        group["lr"] = rate
