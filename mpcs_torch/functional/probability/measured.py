"""Measured probabilities: how often classes were true that were given such probabilities."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.probabilities import flatten_samples
from mpcs_torch.functional.probability.generalized import ProbabilityMeans, check_floor, means_of

Span = Literal["data", "unit"]


class MeasuredProbabilities(NamedTuple):
    """The means of the measured probabilities, and the B bins that they come from, ascending."""

    means: ProbabilityMeans
    low: Tensor
    """(B,): where each bin begins; it ends below `high`, the last one at it."""
    high: Tensor
    """(B,)."""
    correct: Tensor
    """(B,): how many probabilities of true classes lie in each bin."""
    incorrect: Tensor
    """(B,): how many of other classes."""

    @property
    def rate(self) -> Tensor:
        """How often a class was true that was given such a probability: (B,)."""
        return self.correct / (self.correct + self.incorrect)


def measured_probabilities(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int,
    from_logits: bool = True,
    epsilon: float = 0.005,
    n_bins: int = 20,
    delta: float | None = 0.005,
    span: Span = "data",
    ignore_index: int | None = None,
) -> MeasuredProbabilities:
    r"""Bin all class probabilities, and average the rates at which they were right.

    The probabilities of the true classes are cut into bins of equal population; cells of width ``delta`` that hold more
    than a bin's share (singularities, mostly at 1) become bins of their own. With :math:`n_b` of :math:`N` true classes
    and :math:`m_b` others in a bin, :math:`f_b = n_b / (n_b + m_b)`, and

    .. math:: M_r = \left( \frac{1}{N} \sum_b n_b \max(f_b, \epsilon)^r \right)^{1/r}

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` floating point scores; half types are upcast.
        target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``.
        num_classes: C.
        from_logits: Whether ``preds`` are logits rather than probabilities. Never guessed.
        epsilon: Floor of the rates, in [0, 1).
        n_bins: How many bins at most; no more than samples.
        delta: Width of the cells of singularities, 1 divided by a whole number; None for none.
        span: ``"data"`` leaves out probabilities of wrong classes beyond those of true ones; ``"unit"`` lets the outer
            bins reach 0 and 1.
        ignore_index: Label of samples to leave out.

    Returns:
        The means, float64 (float32 on MPS), NaN without samples; and the bins.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        George, Barrera, Nelson, arXiv:2006.00058, Section 4. Their bins leave open which ties go where, what becomes of
        wrong classes outside the bins, and how many bins there are: ties go up, ``span`` and ``n_bins`` say the rest.

    Example:
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
        >>> measured = measured_probabilities(
        ...     probs, torch.tensor([0, 0, 1, 1]), num_classes=2, from_logits=False, n_bins=2
        ... )
        >>> measured.rate
        tensor([0.5000, 1.0000], dtype=torch.float64)
    """
    check_bins(epsilon, n_bins, delta, span)
    samples = flatten_samples(
        preds, target, num_classes=num_classes, from_logits=from_logits, ignore_index=ignore_index, sample_weight=None
    )
    raise_first(samples.faults)
    counted = samples.weight > 0
    return measure(samples.probs[counted], samples.target[counted], epsilon, n_bins, delta, span)


def calibration_slope(reported: ProbabilityMeans, measured: ProbabilityMeans) -> Tensor:
    """How fast measured probabilities rise with reported ones: above 1 underconfident, below 1 overconfident.

    .. math:: (D_{measured} - R_{measured}) / (D_{reported} - R_{reported})

    NaN where the reported means are equal. Biased for few samples: equal bins of few samples scatter, which spreads the
    measured means apart.

    References:
        George, Barrera, Nelson, arXiv:2006.00058, Eq. 3.
    """
    spread = reported.decisiveness - reported.robustness
    slope = (measured.decisiveness - measured.robustness) / spread
    return torch.where(spread > 1e-12, slope, float("nan"))


def measure(
    probs: Tensor, labels: Tensor, epsilon: float, n_bins: int, delta: float | None, span: Span
) -> MeasuredProbabilities:
    """The bins and means of probabilities (N, C) with labels (N,)."""
    probs = probs.to(widest_float(probs.device))
    is_true = torch.zeros_like(probs, dtype=torch.bool).scatter(1, labels.unsqueeze(1), True)
    correct, incorrect = probs[is_true], probs[~is_true]
    bins = min(n_bins, len(correct))
    parts = []
    if delta is not None and bins:
        cells = round(1 / delta)
        of_correct, of_incorrect = ((p / delta).long().clamp(max=cells - 1) for p in (correct, incorrect))
        n, m = (torch.bincount(cell, minlength=cells) for cell in (of_correct, of_incorrect))
        overfull = n * bins > len(correct)
        low = torch.arange(cells, device=probs.device)[overfull].to(probs) * delta
        parts.append((low, low + delta, n[overfull], m[overfull]))
        correct, incorrect = correct[~overfull[of_correct]], incorrect[~overfull[of_incorrect]]
        bins -= int(overfull.sum())
    if len(correct):
        values, n = torch.unique(correct, return_counts=True)
        nearest = torch.searchsorted(values, incorrect, right=True) - 1
        if span == "data":
            nearest = nearest[(nearest >= 0) & (incorrect <= values[-1])]
        m = torch.bincount(nearest.clamp(min=0), minlength=len(values))
        start = equal_population(n, bins)
        bounds = torch.cat([values[start], values[-1:]])
        if span == "unit":
            bounds[0], bounds[-1] = 0, 1
        parts.append((bounds[:-1], bounds[1:], sums_from(n, start), sums_from(m, start)))
    return from_bins(parts, epsilon, probs.device)


def equal_population(counts: Tensor, bins: int) -> Tensor:
    """Where bins of about equal counts begin, as ascending indices of counts (G,), the first one 0."""
    total = counts.sum()
    ranks = torch.arange(1, bins, device=counts.device) * total // bins
    starts = torch.searchsorted(counts.cumsum(0), ranks, right=True)
    return torch.cat([starts.new_zeros(1), torch.unique(starts[starts > 0])])


def sums_from(counts: Tensor, starts: Tensor) -> Tensor:
    """Sums of counts (G,) from each start to the next."""
    before = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    ends = torch.cat([starts[1:], starts.new_tensor([len(counts)])])
    return before[ends] - before[starts]


def from_bins(
    parts: list[tuple[Tensor, Tensor, Tensor, Tensor]], epsilon: float, device: torch.device
) -> MeasuredProbabilities:
    """Join parts of (low, high, correct, incorrect), order them, and take the means."""
    wide = widest_float(device)
    parts = parts or [(torch.zeros(0, device=device),) * 4]
    low, high, correct, incorrect = (
        torch.cat([tensor.to(wide) for tensor in column]) for column in zip(*parts, strict=True)
    )
    order = low.argsort(stable=True)
    low, high, correct, incorrect = low[order], high[order], correct[order], incorrect[order]
    means = means_of(correct / (correct + incorrect), correct, epsilon)
    return MeasuredProbabilities(means, low, high, correct, incorrect)


def check_bins(epsilon: float, n_bins: int, delta: float | None, span: str) -> None:
    """Refuse settings that the bins do not take."""
    check_floor(epsilon)
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, but got {n_bins}.")
    if delta is not None and not (0 < delta <= 1 and abs(1 / delta - round(1 / delta)) < 1e-6):
        raise ValueError(f"delta must be 1 divided by a whole number, or None, but got {delta}.")
    if span not in ("data", "unit"):
        raise ValueError(f"span must be 'data' or 'unit', but got {span!r}.")
