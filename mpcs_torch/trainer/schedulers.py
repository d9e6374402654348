"""Learning-rate schedulers by name, one line each; they step at every turn."""

from collections.abc import Callable, Mapping
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ChainedScheduler, CosineAnnealingLR, LinearLR, LRScheduler, ReduceLROnPlateau

from mpcs_torch.learning import MPCSLR

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Loss = Literal["mean_squared_error", "cross_entropy", "mpcs", "mpcs_count", "dangerous"]
"""The columns of the records that are better when lower."""
Step = Callable[[Mapping[str, float]], None]
"""Called with the values of each turn."""


def cosine(optimizer: Optimizer, turns: int, *, warmup_turns: NonNegativeInt = 0) -> Step:
    """From the learning rate down to 0 over the turns of the run, after rising to it for the first turns."""
    parts: list[LRScheduler] = [CosineAnnealingLR(optimizer, T_max=turns)]
    if warmup_turns:
        parts.append(LinearLR(optimizer, start_factor=1 / (warmup_turns + 1), total_iters=warmup_turns))
    scheduler = ChainedScheduler(parts)
    return lambda values: scheduler.step()  # noqa: ARG005  # of no value


def plateau(
    optimizer: Optimizer,
    turns: int,  # noqa: ARG001  # the same call for all
    *,
    score: Loss = "mpcs",
    factor: Annotated[float, Field(gt=0, lt=1)] = 0.5,
    patience: NonNegativeInt = 3,
) -> Step:
    """Lower the learning rate when a score (lower is better) no longer falls."""
    scheduler = ReduceLROnPlateau(optimizer, mode="min", factor=factor, patience=patience)
    return lambda values: scheduler.step(values[score])


def mpcs_lr(
    optimizer: Optimizer,
    turns: int,  # noqa: ARG001  # the same call for all
    *,
    score: Loss = "mpcs",
    power: NotNegative = 1.0,
    reference: Positive | None = None,
    lowest: Share = 0.0,
    highest: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.0,
    smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    warmup_steps: NonNegativeInt = 0,
) -> Step:
    """`MPCSLR` on a score of the turn."""
    scheduler = MPCSLR(
        optimizer,
        power=power,
        reference=reference,
        lowest=lowest,
        highest=highest,
        smoothing=smoothing,
        warmup_steps=warmup_steps,
    )
    return lambda values: scheduler.step(values[score])


SCHEDULERS: dict[str, Callable[..., Step]] = {"cosine": cosine, "plateau": plateau, "mpcs_lr": mpcs_lr}
"""Called with the optimizer and the number of turns; a config sets their keyword-only arguments."""
