"""The concession in confidence: how far short of certainty a confidence may fall without being punished."""

from math import ceil, isclose

DEFAULT_INTERVALS = 200
"""As in the published runs: it forgives what falls short of certainty by less than 0.005."""


def concession_intervals(concession: float) -> int:
    r"""Compute the number of intervals t of MPCS that forgives a concession in confidence.

    With t intervals, a right class with confidence :math:`1 - c` costs nothing if :math:`t (1 - c) \ge t - 1`, and a
    wrong class with confidence :math:`c` costs nothing if :math:`t c < 1`. The largest t that forgives both is

    .. math:: t = \lceil 1 / c \rceil - 1

    Args:
        concession: c, above 0 and below 1/2, and at least 2e-9, where t reaches its highest value of 2^29.

    Raises:
        ValueError: If the concession is outside that range.

    References:
        Wang, Du, Liu: Meta Pattern Concern Score, arXiv:2209.06408v3, abstract, Section II and Fig. 2. The paper gives
        no formula.

    Example:
        >>> concession_intervals(0.02)
        49
    """
    if isinstance(concession, bool) or not isinstance(concession, int | float) or not 2e-9 <= concession < 0.5:
        raise ValueError(f"concession must be a number from 2e-9 to below 0.5, but got {concession!r}.")
    inverse = 1 / concession
    # The inverse of the float nearest to 1/n can differ from n in its last bit.
    steps = round(inverse) if isclose(inverse, round(inverse), rel_tol=1e-14) else ceil(inverse)
    return steps - 1


def chosen_intervals(t: int | None, concession: float | None) -> int:
    """Return the number of intervals that the setting t or the setting concession asks for; the default is 200.

    Raises:
        ValueError: If both are given, or the concession breaks its rule.
    """
    if concession is None:
        return DEFAULT_INTERVALS if t is None else t
    if t is not None:
        raise ValueError(f"concession must not be given together with t, but got {concession} and t = {t}.")
    return concession_intervals(concession)
