"""Holm's correction of the p-values of several comparisons."""

import torch
from torch import Tensor


def holm_adjusted(p_values: Tensor) -> Tensor:
    r"""Adjust p-values for the number of comparisons by Holm's step-down method.

    With the m p-values in ascending order, the i-th becomes

    .. math:: \tilde p_i = \min\left(1, \max_{j \le i} \, (m - j + 1) \, p_j\right)

    If all comparisons with an adjusted p-value of at most 0.05 are called a difference, the probability that one or
    more of them are wrong is at most 0.05, however the comparisons depend on each other.

    Args:
        p_values: ``(M,)`` floating point, in [0, 1].

    Returns:
        ``(M,)``, float64, in [0, 1], in the order of ``p_values``.

    Raises:
        ValueError: If ``p_values`` breaks its rule above.

    References:
        Holm: A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6, 1979.

    Example:
        >>> holm_adjusted(torch.tensor([0.01, 0.04, 0.03], dtype=torch.float64))
        tensor([0.0300, 0.0600, 0.0600], dtype=torch.float64)
    """
    if not p_values.is_floating_point() or p_values.ndim != 1:
        given = f"{p_values.dtype} {tuple(p_values.shape)}"
        raise ValueError(f"p_values must be floating point (M,), but got {given}.")
    outside = ~((p_values >= 0) & (p_values <= 1))  # NaN too
    if outside.any():
        raise ValueError(f"p_values must be in [0, 1], but got {p_values[outside][0].item():g}.")
    ascending, order = p_values.double().sort(stable=True)
    if len(ascending) == 0:
        return ascending
    factors = torch.arange(len(ascending), 0, -1, device=ascending.device)
    stepped = (ascending * factors).cummax(0).values.clamp(max=1)
    return torch.empty_like(stepped).index_copy(0, order, stepped)
