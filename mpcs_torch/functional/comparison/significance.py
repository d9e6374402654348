"""Significance tests of differences between systems, and their results in sentences."""

from collections.abc import Sequence
from math import exp, isfinite, log, pi, sqrt
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import Rule, require
from mpcs_torch.functional.comparison.confidence_intervals import checked_values
from mpcs_torch.functional.inputs.checks import require_all
from mpcs_torch.functional.inputs.faults import outside


def holm_adjusted(p_values: Tensor) -> Tensor:
    r"""Adjust p-values for the number of comparisons by Holm's step-down method.

    With the m p-values in ascending order, the i-th becomes

    .. math:: \tilde p_i = \min\left(1, \max_{j \le i} \, (m - j + 1) \, p_j\right)

    If all comparisons with an adjusted p-value of at most 0.05 are rejected, the probability of any false rejection is
    at most 0.05, under any dependence.

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
    is_row = p_values.is_floating_point() and p_values.ndim == 1
    require(is_row, "float_shape", "p_values", p_values, shape="(M,)")
    in_range = Rule("between", "p_values", minimum=0, maximum=1)
    require_all(~outside(p_values, 0, 1), in_range, p_values)
    ascending, order = p_values.double().sort(stable=True)
    if len(ascending) == 0:
        return ascending
    factors = torch.arange(len(ascending), 0, -1, device=ascending.device)  # m - j + 1
    stepped = (ascending * factors).cummax(0).values.clamp(max=1)
    return torch.empty_like(stepped).index_copy(0, order, stepped)


MAX_ENUMERATED = 36
"""The maximum number of units whose sign flips are enumerated."""
MAX_LATTICE = 4096
"""The maximum sum of multiples of one number whose distribution is computed exactly."""


def sign_flip_test(values: Tensor, counts: Tensor | None = None) -> float:
    r"""Return the two-sided p-value, in (0, 1], of the hypothesis that each unit has its value or minus it by chance.

    A unit, such as a patient, has the value x: what it adds to the difference of two models. If the models are equally
    good, they could change places in each unit, so that x gets a random sign :math:`\epsilon`:

    .. math:: p = P\left[\left|\sum_u \epsilon_u x_u\right| \ge \left|\sum_u x_u\right|\right]

    If the sum is above 0, a higher x of a unit where it is not below 0 never raises p. For values of -1, 0 and 1,
    this is McNemar's exact test. The probability is exact for up to 36 units, and for values that are multiples of one
    number; otherwise, it is a saddle-point approximation.

    Args:
        values: ``(K,)``, finite: x of each unit, or each distinct value.
        counts: ``(K,)``: the number of units with each value, whole numbers >= 0, not all 0. Default: 1.

    Raises:
        ValueError: If an argument breaks its rule above.

    References:
        Fisher: The design of experiments, 1935, Section 21. Robinson: Saddlepoint approximations for permutation tests
        and confidence intervals, Journal of the Royal Statistical Society B 44, 1982.

    Example:
        >>> import torch
        >>> sign_flip_test(torch.tensor([1.0, -1.0]), torch.tensor([9.0, 1.0]))
        0.021484375
    """
    if counts is None:
        counts = torch.ones_like(values, dtype=torch.float64)
    checked = checked_values(values, counts, None)
    x, n = torch.from_numpy(checked[0]), torch.from_numpy(checked[1])
    total = abs(float(x @ n))
    # A sign is flipped anyway, so only the sizes of values matter. A size of 0, up to rounding, never changes the sum.
    sizes = x.abs()
    is_counted = (sizes > 1e-12 * sizes.max()) & (n > 0)
    distinct, places = sizes[is_counted].unique(return_inverse=True)  # type: ignore[no-untyped-call]
    if len(distinct) == 0 or total == 0:
        return 1.0
    numbers = torch.zeros_like(distinct).index_add_(0, places, n[is_counted])
    # In units of the largest size; the sizes ascend.
    total /= float(distinct[-1])
    distinct = distinct / distinct[-1]
    multiples = (distinct / distinct[0]).round()
    is_lattice = torch.allclose(multiples * distinct[0], distinct, rtol=1e-9, atol=0.0)
    if len(distinct) == 1:
        tail = _binomial_tail(int(numbers[0]), total)
    elif numbers.sum() <= MAX_ENUMERATED:
        tail = _enumerated_tail(distinct, numbers, total)
    elif is_lattice and multiples @ numbers <= MAX_LATTICE:
        tail = _lattice_tail(multiples, numbers, total / float(distinct[0]))
    else:
        tail = _saddle_point_tail(distinct, numbers, total)
    return min(1.0, 2 * tail)


def _binomial_tail(number: int, total: float) -> float:
    """Return the probability that the sum of ``number`` random signs is at least ``total``."""
    from scipy.special import bdtr  # scipy.stats takes longer to import

    minuses = round((number - total) / 2)
    return float(bdtr(minuses, number, 0.5))


def _enumerated_tail(sizes: Tensor, numbers: Tensor, total: float) -> float:
    """Return the probability of a sum of at least ``total``, from all sums of both halves of the units."""
    of_units = sizes.repeat_interleave(numbers.long())
    halves = []
    for units in (of_units[::2], of_units[1::2]):
        sums = torch.zeros(1, dtype=torch.float64)
        for size in units:
            sums = torch.cat([sums + size, sums - size])
        halves.append(sums.sort().values)
    first, second = halves
    # The number of sums of the second half that are too small to reach the total with a sum of the first.
    too_small = torch.searchsorted(second, total * (1 - 1e-12) - first)
    return 1 - float(too_small.double().mean()) / len(second)


def _lattice_tail(multiples: Tensor, numbers: Tensor, total: float) -> float:
    """Return the probability of a sum of at least ``total`` of random signs, each times one of ``multiples``.

    ``numbers`` (K,) are the numbers of signs with each of the whole numbers ``multiples`` (K,).
    """
    import numpy as np
    from scipy.special import gammaln  # scipy.stats takes longer to import

    chances = np.ones(1)  # of each possible sum, from the lowest to the highest
    for multiple, number in torch.stack([multiples, numbers], dim=1).long().tolist():
        pluses = np.arange(number + 1)
        log_choices = (
            gammaln(number + 1) - gammaln(pluses + 1) - gammaln(number - pluses + 1)
        )
        # Each plus in place of a minus moves the sum by twice the multiple.
        of_multiple = np.zeros(2 * multiple * number + 1)
        of_multiple[:: 2 * multiple] = np.exp(log_choices - number * np.log(2))
        chances = np.convolve(chances, of_multiple)
    highest = (len(chances) - 1) // 2  # the sum at place i is i - highest
    return float(chances[highest + round(total) :].sum())


def _saddle_point_tail(sizes: Tensor, numbers: Tensor, total: float) -> float:
    """Approximate the probability of a sum of at least ``total`` by the formula of Lugannani and Rice."""
    from scipy.optimize import brentq  # scipy.stats takes longer to import
    from scipy.special import ndtr

    highest_sum = float(sizes @ numbers)
    of_highest: float = 2.0 ** -float(numbers.sum())  # its probability: all signs are plus
    if total >= highest_sum * (1 - 1e-9):
        return of_highest

    def slope(tilt: float) -> float:
        """Return the derivative of the cumulant minus ``total``; it is 0 at the saddle point."""
        return float((numbers * sizes) @ torch.tanh(tilt * sizes) - total)

    high = 1.0
    while slope(high) < 0:
        high *= 2
    tilt = float(brentq(slope, 0.0, high))
    scaled = tilt * sizes
    log_cosh = scaled + torch.log1p(torch.exp(-2 * scaled)) - log(2)  # without overflow
    cumulant = float(numbers @ log_cosh)
    curvature = float((numbers * sizes.square()) @ (1 - torch.tanh(scaled).square()))
    root = sqrt(max(0.0, 2 * (tilt * total - cumulant)))
    if root < 1e-3:
        return 0.5
    density = exp(-(root**2) / 2) / sqrt(2 * pi)
    tail = float(ndtr(-root)) + density * (1 / (tilt * sqrt(curvature)) - 1 / root)
    return min(0.5, max(tail, of_highest))


class PairedDifference(NamedTuple):
    """The difference between the values of a metric for two systems on the same samples, with interval and p-value."""

    first: float
    """The value of the first system."""
    second: float
    """The value of the second system."""
    difference: float
    """``second`` minus ``first``; NaN if both are infinite."""
    low: float
    """The lower end of the interval of the difference."""
    high: float
    """The upper end of the interval of the difference."""
    p_value: float
    """The two-sided p-value, in [0, 1]."""


class ComparedBy(NamedTuple):
    """A metric for comparing systems."""

    name: str
    """The name of the metric in sentences, e.g. "Cllr" or "equal error rate"."""
    lower_is_better: bool = True
    is_rate: bool = False
    """Whether values are printed in percent."""
    metric: str = ""
    """The name of the metric in code, such as "equal_error_rate"."""

    def number(self, value: float) -> str:
        """Return ``value`` with three digits, in percent for a rate: neither "1.2e+03" nor "-0"."""
        scaled = 100 * value if self.is_rate else value
        rounded = float(f"{scaled:.3g}") + 0.0  # a sum with 0.0 is never -0.0
        return f"{rounded:.15g}"

    def difference(self, value: float) -> str:
        """Return the difference ``value`` with its unit."""
        unit = " points" if self.is_rate else ""
        return f"{self.number(value)}{unit}"

    def against(self, one: float, other: float) -> str:
        """Return two values with their unit."""
        percent = " %" if self.is_rate else ""
        return f"{self.number(one)}{percent} against {self.number(other)}{percent}"


class Comparison(NamedTuple):
    """The comparison of two systems by one metric."""

    first: str
    """The name of the first system."""
    second: str
    """The name of the second system."""
    by: ComparedBy
    """The metric."""
    paired: PairedDifference
    adjusted_p_value: float
    """The p-value after Holm's correction for all comparisons, in [0, 1]; it decides about significance."""
    comparisons: int
    """The number of comparisons for which the p-value is corrected."""
    level: float
    """The largest significant p-value; the interval has the confidence 1 - level."""

    @property
    def measure(self) -> str:
        """The name of the metric."""
        return self.by.name

    @property
    def better(self) -> str | None:
        """The name of the significantly better system; None if there is none."""
        difference = self.paired.difference
        is_significant = self.adjusted_p_value <= self.level
        if not is_significant or not isfinite(difference) or difference == 0:
            return None
        lower = self.second if difference < 0 else self.first
        higher = self.first if difference < 0 else self.second
        return lower if self.by.lower_is_better else higher

    @property
    def worse(self) -> str | None:
        """The name of the significantly worse system; None if there is none."""
        if self.better is None:
            return None
        return self.second if self.better == self.first else self.first

    @property
    def verdict(self) -> str:
        """A sentence that states which system is better, and by how much, or that the data do not show a difference.

        If the interval of this comparison seems to contradict the adjusted p-value, the sentence gives the reason.
        """
        # A name with a comma gets a second comma, as in "actual cost, p = 0.5,".
        name = f"{self.by.name}," if ", " in self.by.name else self.by.name
        return self._nothing_shown(name) if self.better is None else self._shown(name)

    def _nothing_shown(self, name: str) -> str:
        """Return the verdict without a significant difference; ``name`` is that of the metric."""
        paired = self.paired
        nothing = f"The data do not show a difference in {name} between {self.first} and {self.second}"
        values = self.by.against(paired.first, paired.second)
        if not isfinite(paired.difference):
            return f"{nothing}: {values}."
        corrected = ""
        interval = f"the interval, by another method than p = {paired.p_value:.2g},"
        if paired.p_value <= self.level:
            corrected = f" after correction for {self.comparisons} comparisons"
            interval = "the interval, of this comparison alone,"
        has_width = paired.low != paired.high
        contains_0 = paired.low <= 0 <= paired.high
        conflict = ""
        if has_width and not contains_0:
            conflict = f"; {interval} excludes 0"
        size = self._size(paired.difference, paired.low, paired.high)
        change = f"{self.second} minus {self.first} is {size}"
        return f"{nothing}{corrected}: {values}, {change}{conflict}.{self._power()}"

    def _power(self) -> str:
        """Return a sentence on the difference that would have been significant; empty if the interval has no width."""
        width = self.paired.high - self.paired.low
        if not width > 0:
            return ""
        detectable = _detectable_difference(width, self.level, self.comparisons)
        if self.by.is_rate and detectable > 1:
            return " These data can hardly show any difference."
        return f" One of about {self.by.difference(detectable)} would have been shown with a chance of 9 in 10."

    def _shown(self, name: str) -> str:
        """Return the verdict with a significant difference, which is given as a positive number."""
        paired = self.paired
        values = self.by.against(paired.first, paired.second)
        if self.better == self.second:
            values = self.by.against(paired.second, paired.first)
        low = paired.low
        high = paired.high
        if paired.difference < 0:
            low = -paired.high
            high = -paired.low
        word = "lower" if self.by.lower_is_better else "higher"
        conflict = ""
        if low < 0 < high:
            conflict = f"; the interval, by another method than p = {paired.p_value:.2g}, contains 0"
        size = f"a difference of {self._size(abs(paired.difference), low, high)}{conflict}"
        return f"{self.better} has a {word} {name} than {self.worse}: {values}, {size}."

    def _size(self, difference: float, low: float, high: float) -> str:
        """Return a difference with its interval from ``low`` to ``high``, if this is known and has a width."""
        size = self.by.difference(difference)
        if not low < high:  # NaN is not lower
            return size
        ends = f"{self.by.number(low)} to {self.by.number(high)}"
        return f"{size} ({100 * (1 - self.level):.4g} % interval {ends})"


def with_verdicts(
    rows: Sequence[tuple[str, str, ComparedBy, PairedDifference]], confidence: float
) -> list[Comparison]:
    """Return a comparison for each row (two systems, metric, difference), with p-values adjusted for all rows."""
    p_values = [paired.p_value for _, _, _, paired in rows]
    adjusted = holm_adjusted(torch.tensor(p_values, dtype=torch.float64)).tolist()
    return [
        Comparison(first, second, by, paired, p_value, len(rows), level=1 - confidence)
        for (first, second, by, paired), p_value in zip(rows, adjusted, strict=True)
    ]


def summarize_comparisons(comparisons: Sequence[Comparison]) -> list[str]:
    """Return a sentence for each metric that states which system is best, as far as the data show it.

    Args:
        comparisons: All comparisons of an evaluation, e.g. of `mpcs_torch.evaluation.evaluate`.

    Returns:
        One sentence per metric; with two systems, it is `Comparison.verdict`.

    Example:
        >>> from mpcs_torch.evaluation import evaluate_detectors
        >>> labels = torch.arange(400) % 2 == 0
        >>> noise = torch.arange(400).mul(0.6180339) % 1
        >>> scores = {"A": 0.9 * labels + noise, "B": 0.5 * labels + noise}
        >>> summarize_comparisons(evaluate_detectors(scores, labels).comparisons)[0].split(":")[0]
        'A has a lower equal error rate (interpolated) than B'
    """
    by_measure: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        by_measure.setdefault(comparison.measure, []).append(comparison)
    return [
        rows[0].verdict if len(rows) == 1 else _summary(measure, rows)
        for measure, rows in by_measure.items()
    ]


def _summary(measure: str, rows: Sequence[Comparison]) -> str:
    """Return the sentence on more than two systems, from the comparison of each pair by one metric."""
    systems = list[str]()
    beaten_by = dict[str, list[str]]()  # the systems that are significantly better
    for row in rows:
        systems += [row.first, row.second]
        if row.better is not None and row.worse is not None:
            beaten_by.setdefault(row.worse, []).append(row.better)
    systems = list(dict.fromkeys(systems))
    best = [name for name in systems if name not in beaten_by]
    worse = [name for name in systems if name in beaten_by]
    if not worse:
        return f"By {measure}, the data do not show that any of {_listed(systems)} is better than another."
    if len(best) == 1:
        only = best[0]
        beaten = [row.worse for row in rows if row.worse and row.better == only]
        # Systems that others beat, but not this one.
        others = [name for name in worse if name not in beaten]
        unshown = ""
        if others:
            unshown = f"; the data do not show that it is better than {_listed(others)}"
        return f"By {measure}, {only} is better than {_listed(beaten)}{unshown}."
    clauses = [f"{name} is worse than {_listed(beaten_by[name])}" for name in worse]
    return f"By {measure}, the data do not show which of {_listed(best)} is best; {'; '.join(clauses)}."


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _detectable_difference(width: float, level: float, comparisons: int) -> float:
    """Return the smallest true difference of two systems that would be found significant with a probability of 0.9.

    The measured difference is assumed to be normal. Its interval at the confidence 1 - ``level`` has the ``width``. It
    must be significant at ``level / comparisons`` (Bonferroni's correction).
    """
    from scipy.special import ndtri  # scipy.stats takes longer to import

    alone = ndtri(1 - level / 2)
    corrected = ndtri(1 - level / 2 / comparisons)
    standard_error = width / (2 * alone)
    return float(standard_error * (corrected + ndtri(0.9)))
