"""Statistics of classified samples as functions of how often each sample is drawn."""

from collections.abc import Callable

import torch
from torch import Tensor

Statistic = Callable[[Tensor], Tensor]
"""Takes int64 weights ``(R, N)``, how often each of R resamples draws each sample, and returns values (R,), float64."""


def mean_statistic(values: Tensor) -> Statistic:
    """Make a function of weights that computes the mean of a value of each sample.

    It serves for the MPCS (``meta_pattern_concern_score(..., reduction="none")``) and, of bools, for rates of errors
    or of dangerous errors.

    Args:
        values: ``(N,)`` floating point numbers without NaN and -infinity, or bools.

    Returns:
        A `Statistic`.

    Raises:
        ValueError: If ``values`` breaks its rule above.

    Example:
        >>> mean_statistic(torch.tensor([0.0, 1.0, 3.0]))(torch.tensor([[1, 1, 1], [0, 1, 2]]))
        tensor([1.3333, 2.3333], dtype=torch.float64)
    """
    if values.ndim != 1 or not (values.is_floating_point() or values.dtype == torch.bool):
        raise ValueError(f"values must be floating point or bools (N,), but got {values.dtype} {tuple(values.shape)}.")
    if values.is_floating_point():
        bad = values.isnan() | (values == -torch.inf)
        if bad.any():
            raise ValueError(f"values must not be NaN or -inf, but got {values[bad][0].item()}.")
    # Converted at each call: of the samples, a statistic holds no more than what it was given.
    return lambda weights: weighted_mean(weights.to(values.device), values.double())


def weighted_mean(weights: Tensor, values: Tensor) -> Tensor:
    """Return the means of values (n,) under each row of weights (R, n); infinite where an infinity is drawn."""
    drawn = weights.double()
    is_infinite = values.isinf()
    mean = drawn @ torch.where(is_infinite, 0.0, values) / drawn.sum(1)
    if is_infinite.any():  # 0 times infinity would be NaN
        mean = torch.where(drawn @ is_infinite.double() > 0, torch.inf, mean)
    return mean
