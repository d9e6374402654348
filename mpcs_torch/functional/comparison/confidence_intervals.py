"""Confidence intervals of error rates, of means of bounded values, and of any smooth statistic (jackknife)."""

from collections.abc import Callable
from math import inf, nan
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import require
from mpcs_torch.functional.inputs.checks import widened
from mpcs_torch.functional.inputs.confidence import CONFIDENCE, check_confidence


def clopper_pearson(
    errors: int, trials: int, *, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    r"""Compute the exact confidence interval of an error rate, in [0, 1].

    With e errors in n trials and :math:`\alpha` = 1 - ``confidence``, its bounds are quantiles of beta distributions:

    .. math:: B^{-1}(\alpha / 2; e, n - e + 1), \quad B^{-1}(1 - \alpha / 2; e + 1, n - e)

    If no trial is an error, the lower end is 0; if all trials are errors, the upper end is 1. If the trials are
    independent, the interval contains the true rate with a probability of at least ``confidence``. Trials of one
    patient are not independent. Needs scipy.

    Args:
        errors: The number of errors, from 0 to ``trials``.
        trials: The number of trials, at least 1.
        confidence: In (0, 1).

    Returns:
        The lower and the upper end.

    Raises:
        ValueError: If a setting breaks its rule above.

    References:
        Clopper, Pearson: The use of confidence or fiducial limits, Biometrika 26, 1934.

    Example:
        >>> low, high = clopper_pearson(0, 10)
        >>> print(f"{low:.3f} {high:.3f}")
        0.000 0.308
    """
    require(trials >= 1, "at_least", "trials", trials, minimum=1)
    require(0 <= errors <= trials, "between", "errors", errors, minimum=0, maximum=trials)
    check_confidence(confidence)
    ends = clopper_pearson_ends(
        torch.tensor(float(errors), dtype=torch.float64),
        torch.tensor(float(trials), dtype=torch.float64),
        confidence=confidence,
    )
    low, high = ends.tolist()
    return low, high


def clopper_pearson_ends(
    errors: Tensor, trials: Tensor, *, confidence: float = CONFIDENCE
) -> Tensor:
    """Return the `clopper_pearson` bounds, (..., 2), for float64 counts (...); both are NaN if there are no trials."""
    from scipy.special import betaincinv  # scipy.stats takes longer to import

    tail = (1 - confidence) / 2
    right = trials - errors
    low = torch.as_tensor(betaincinv(errors.numpy(), (right + 1).numpy(), tail))
    high = torch.as_tensor(betaincinv((errors + 1).numpy(), right.numpy(), 1 - tail))
    # A beta distribution with the shape 0 has no quantiles.
    ends = torch.stack([low.where(errors > 0, 0.0), high.where(right > 0, 1.0)], dim=-1)
    return ends.where((trials > 0).unsqueeze(-1), nan)


MIN_UNITS = 10
"""The minimum number of independent units, such as rows or clusters, for an interval by their spread. It does not
depend on what is seen in the units: if intervals were left out because of that, the others would be wrong."""
Floats = NDArray[np.float64]
NODE_STEP = 0.08
NODES = np.sinh(np.arange(0, 8, NODE_STEP))
"""Integration nodes along a contour, in standard deviations; interval ends are accurate to 0.2 % of the width."""
PRECISION = 1e-4
"""The tolerance of an end, relative to its distance from the mean."""
MIN_TAIL = 1e-15
"""The smallest probability of a tail; a smaller one is clamped."""


def bounded_mean_interval(
    values: Tensor,
    counts: Tensor,
    *,
    per: Tensor | None = None,
    confidence: float = CONFIDENCE,
) -> tuple[float, float]:
    r"""Compute Gaffke's confidence interval of a mean, or of a ratio of means, over independent samples.

    Unlike a bootstrap, this interval accounts for costly errors that did not occur. For the upper end, one more
    sample with the largest possible value is added. It is then the quantile of :math:`\sum_i D_i x_i` at
    (1 + ``confidence``) / 2; the random weights D are uniform on the simplex. The lower end is minus the upper end
    for -x. If all values are 0 or 1, this is `clopper_pearson`. No distribution is known for which the coverage is too
    low; if large values are rare, the interval is wider than needed.

    For the ratio of the means of x and y, the upper end is the v for which the mean of x - v y has the upper end 0.

    Args:
        values: ``(K,)`` values x: all that occur, and also the smallest and the largest possible value.
        counts: ``(K,)`` the number of samples with each value: whole numbers >= 0, not all 0.
        per: ``(K,)`` values y >= 0 of the denominator, one for each of ``values``. Default: all 1, for a mean.
        confidence: In (0, 1).

    Returns:
        The lower and the upper end; -inf and inf if ``per`` is 0 for all samples.

    Raises:
        ValueError: If an argument breaks its rule above.

    References:
        Gaffke: Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable,
        Mathematical Methods of Statistics 14(4), 2005. Phan, Thomas, Learned-Miller: Towards practical mean bounds for
        small samples, ICML 2021. Deviation: the quantile is computed by integration along a contour through the saddle
        point, not by Monte Carlo.

    Example:
        >>> import torch
        >>> costs, errors = torch.tensor([0.0, 1.0, 50.0]), torch.tensor([190, 10, 0])  # no error of cost 50 yet
        >>> low, high = bounded_mean_interval(costs, errors)
        >>> print(f"{low:.3f} {high:.3f}")
        0.024 0.963
    """
    low = bounded_mean_end(values, counts, per=per, confidence=confidence, is_upper=False)
    high = bounded_mean_end(values, counts, per=per, confidence=confidence, is_upper=True)
    return low, high


def bounded_mean_end(
    values: Tensor, counts: Tensor, *, per: Tensor | None, confidence: float, is_upper: bool
) -> float:
    """Return the upper end of `bounded_mean_interval` if ``is_upper``, else the lower end."""
    check_confidence(confidence)
    x, n, y = checked_values(values, counts, per)
    if n @ y == 0:
        return inf if is_upper else -inf
    tail = (1 - confidence) / 2
    if is_upper:
        return _upper_end(x, n, y, tail)
    return 0.0 - _upper_end(-x, n, y, tail)  # a minus sign would make 0.0 to -0.0


def checked_values(
    values: Tensor, counts: Tensor, per: Tensor | None
) -> tuple[Floats, Floats, Floats]:
    """Return values, counts and denominators (K,) as arrays; ``per`` is 1 by default. Raise a ValueError if invalid."""
    x = values.double().cpu().numpy()
    n = counts.double().cpu().numpy()
    y = np.ones_like(x) if per is None else per.double().cpu().numpy()
    for name, numbers in (("values", x), ("counts", n), ("per", y)):
        is_valid = (
            numbers.ndim == 1 and numbers.shape == x.shape and np.isfinite(numbers).all()
        )
        require(is_valid, "as_many_numbers", name, numbers, other="values")
    are_counts = (n >= 0).all() and (n == np.floor(n)).all() and n.any()
    require(are_counts, "counts", "counts", n.tolist())
    require((y >= 0).all(), "at_least", "per", y.min(), minimum=0)
    return x, n, y


def _upper_end(x: Floats, n: Floats, y: Floats, level: float) -> float:
    """Return the v for which the randomly weighted mean of x - v y is above 0 with the probability ``level``."""
    from scipy.optimize import brentq  # scipy.stats takes longer to import
    from scipy.special import ndtri

    quantile = ndtri(level)  # below 0: the level is that of a tail

    def surplus(v: float) -> float:
        """Return by how many standard deviations, of a normal distribution, the probability is above the level."""
        values, counts = _with_pseudo_sample(x - v * y, n)
        probability = _probability_above_0(values, counts)
        probability = min(max(probability, MIN_TAIL), 1 - MIN_TAIL)
        return float(ndtri(probability) - quantile)

    mean = float(n @ x / (n @ y))
    if surplus(mean) <= 0:  # all samples have the largest value
        return mean
    # The first step is 1.2 times the bound of a normal distribution, so that it is seldom doubled. The width of the
    # range allows for the added sample.
    rest = x - mean * y
    spread = np.sqrt(n @ rest**2) + np.ptp(rest)
    step = float(-1.2 * quantile * spread / (n @ y))
    low = mean
    while surplus(low + step) > 0:
        low = low + step
        step = 2 * step
    return float(brentq(surplus, low, low + step, xtol=PRECISION * (low + step - mean)))


def _with_pseudo_sample(x: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Return the values ``x`` with a count ``n`` above 0, and their counts; add one sample with the value max(x)."""
    occurs = n > 0
    return np.append(x[occurs], x.max()), np.append(n[occurs], 1.0)


def _probability_above_0(a: Floats, n: Floats) -> float:
    r"""Return the probability that :math:`\sum_k a_k G_k > 0`, for gamma variables :math:`G_k` with shapes ``n``.

    It is an integral along a contour from below to above the real axis, which crosses it between 0 and 1 / max a:

    .. math:: \frac{1}{2 \pi i} \int \frac{e^{K(s)}}{s} ds, \quad K(s) = -\sum_k n_k \log(1 - a_k s)
    """
    if a.max() <= 0:
        return 0.0
    if a.min() >= 0:
        return 1.0
    is_mirrored = n @ a > 0  # integrate the smaller tail
    if is_mirrored:
        a = -a
    a = a / np.abs(a).max()
    low = 1e-9 / a.max()
    high = 1 / a.max()
    # Along the contour through the saddle point, where K'(s) = 1 / s, the integrand hardly oscillates. An approximate
    # saddle point suffices, because the integral does not depend on the contour.
    for _ in range(9):
        saddle = (low * high) ** 0.5
        if n @ (a / (1 - a * saddle)) > 1 / saddle:
            high = saddle
        else:
            low = saddle
    # The second derivative of K(s) - log(s): near the saddle point, the integrand is a normal density.
    curvature = n @ (a / (1 - a * saddle)) ** 2 + saddle**-2
    scale = curvature**-0.5
    contour = saddle + 1j * scale * NODES
    exponent = -(np.log(1 - np.multiply.outer(contour, a)) * n).sum(1)  # K(s)
    # Nodes are sinh t at equal steps of t, so each stands for scale * cosh t. The lower half of the contour has the
    # conjugate values, so the real part counts twice.
    density = scale * np.sqrt(1 + NODES**2)
    integrand = (np.exp(exponent) / contour).real * density
    # Trapezoidal rule; the last node adds nothing.
    tail = (integrand.sum() - integrand[0] / 2) * NODE_STEP / np.pi
    probability = 1 - tail if is_mirrored else tail
    return float(min(max(probability, 0), 1))


class JackknifeInterval(NamedTuple):
    """A jackknife estimate, and the bounds of its confidence interval. Each has the shape of the statistic."""

    estimate: Tensor
    low: Tensor
    high: Tensor


def jackknife_interval(
    statistic: Callable[[Tensor], Tensor], groups: Tensor, *, confidence: float = CONFIDENCE
) -> JackknifeInterval:
    r"""Compute the jackknife estimate of a statistic and its confidence interval, over independent groups of samples.

    Let s be the statistic of all samples, and :math:`s_g` that of all samples but those of group g. With G groups and
    the mean :math:`\bar s` of all :math:`s_g`, the estimate and the interval are

    .. math::
        G s - (G - 1) \bar s \pm t_{G - 1} \sqrt{\frac{G - 1}{G} \sum_g (s_g - \bar s)^2}

    where :math:`t_{G - 1}` is the quantile of Student's t distribution at (1 + ``confidence``) / 2. Correlated samples,
    such as those of one patient, must be in one group. The method is for smooth statistics, such as the F score, not
    for quantiles. The interval can exceed the range of the statistic. Needs scipy.

    Args:
        statistic: A function that gets the ascending indices (M,) of some samples, and returns a float tensor.
        groups: ``(N,)`` integers: the group of each sample. There must be at least 2 groups.
        confidence: In (0, 1).

    Raises:
        ValueError: If an argument breaks its rule above.

    References:
        Tukey: Bias and confidence in not quite large samples, Annals of Mathematical Statistics 29, 1958. Used by
        Harju, Mesaros: Evaluating classification systems against soft labels with fuzzy precision and recall,
        DCASE 2023, Section 3.1, Table 2 and Fig. 2.

    Example:
        >>> scores, recording = torch.tensor([0.5, 0.7, 0.4, 0.8, 0.9]), torch.tensor([0, 0, 1, 2, 2])
        >>> interval = jackknife_interval(lambda kept: scores[kept].mean(), recording)
        >>> print(" ".join(f"{value:.2f}" for value in interval))
        0.67 0.16 1.19
    """
    from scipy.special import stdtrit  # scipy.stats takes longer to import

    is_integer = not groups.is_floating_point() and not groups.is_complex()
    require(
        groups.ndim == 1 and is_integer, "integer_shape", "groups", groups, shape="(N,)"
    )
    check_confidence(confidence)
    names = torch.unique(groups)
    count = len(names)
    require(count >= 2, "holds_at_least", "groups", count, minimum=2, unit="groups")
    whole = widened(statistic(torch.arange(len(groups), device=groups.device)))
    left_out = list[Tensor]()
    for name in names:
        others = (groups != name).nonzero().squeeze(1)
        left_out.append(widened(statistic(others)))
    without = torch.stack(left_out)
    mean = without.mean(dim=0)
    estimate = count * whole - (count - 1) * mean
    error = ((count - 1) / count * (without - mean).square().sum(dim=0)).sqrt()
    margin = float(stdtrit(count - 1, (1 + confidence) / 2)) * error
    return JackknifeInterval(estimate, estimate - margin, estimate + margin)
