"""The means of reported and of measured probabilities, and the slope between them."""

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_num_classes
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.probabilities import flatten_samples, scale_of
from mpcs_torch.functional.probability.generalized import (
    DECISIVE,
    GEOMETRIC,
    ROBUST,
    ProbabilityMeans,
    mean_of,
    weighted_powers,
)
from mpcs_torch.functional.probability.measured import (
    Span,
    calibration_slope,
    check_bins,
    count_probabilities,
    measure,
    measure_counts,
)

POWERS = (GEOMETRIC, DECISIVE, ROBUST)


def probability_accuracy(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int,
    from_logits: bool = True,
    epsilon: float = 0.005,
    n_bins: int = 20,
    delta: float | None = 0.005,
    span: Span = "data",
    cells: int | None = None,
    ignore_index: int | None = None,
) -> dict[str, Tensor]:
    """Compute geometric accuracy, decisiveness and robustness, reported and measured, and the slope between them.

    Equations are those of `geometric_accuracy`, `decisiveness`, `robustness`, `measured_probabilities` and
    `calibration_slope`.

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` floating point scores; half types are upcast.
        target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``.
        num_classes: C, at least 2.
        from_logits: Whether ``preds`` are logits rather than probabilities. Never guessed.
        epsilon: Floor of probabilities and rates, in [0, 1).
        n_bins: The largest number of bins; there are never more than samples.
        delta: The width of a cell that can be a singularity, 1 divided by a whole number; None for no singularities.
        span: ``"data"`` leaves out probabilities of wrong classes outside the range of those of true classes;
            ``"unit"`` extends the outer bins to 0 and 1.
        cells: None for exact bins, or the number of cells of [0, 1], a multiple of 1 / delta, at whose edges bins may
            begin.
        ignore_index: Label of samples to leave out.

    Returns:
        Float64 scalars by name (float32 on MPS): ``reported_`` and ``measured_`` ``geometric_accuracy``,
        ``decisiveness`` and ``robustness``, in [0, 1], higher is better; and ``slope``, above 1 for an underconfident
        classifier and below 1 for an overconfident one. NaN without samples. There is no ``sample_weight``, because
        bins of equal population count samples.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        George, Barrera, Nelson: Applying the decisiveness and robustness metrics to convolutional neural networks,
        arXiv:2006.00058, Sections 3 and 4.

    Example:
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
        >>> target = torch.tensor([0, 0, 1, 1])
        >>> probability_accuracy(probs, target, num_classes=2, from_logits=False, n_bins=2)["slope"]
        tensor(0.7421, dtype=torch.float64)
    """
    check_num_classes(num_classes)
    check_bins(epsilon, n_bins, delta, span)
    check_cells(cells, delta)
    samples = flatten_samples(
        preds,
        target,
        num_classes=num_classes,
        scale=scale_of(from_logits),
        ignore_index=ignore_index,
        sample_weight=None,
    )
    raise_first(samples.find_faults())
    probs, labels = samples.probs(), samples.labels
    reported = reported_means(power_sums(samples.of_true_class(probs), labels.weight, epsilon), labels.weight.sum())
    if cells is None:
        kept = probs[labels.counted], labels.target[labels.counted]
        measured = measure(*kept, epsilon, n_bins, delta, span)
    else:
        counts = count_probabilities(probs, labels.target, labels.counted, cells)
        measured = measure_counts(*counts, cells, epsilon, n_bins, delta, span)
    return compare_means(reported, measured.means)


def power_sums(of_true: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """Sum the weighted powers of the probabilities of true classes for each of `POWERS`: (3,)."""
    return torch.stack([weighted_powers(of_true, weight, power, epsilon).sum() for power in POWERS])


def reported_means(sums: Tensor, weight: Tensor) -> ProbabilityMeans:
    """Return the means of the probabilities of true classes from their power sums (3,) and total weight."""
    return ProbabilityMeans(*(mean_of(total, weight, power) for total, power in zip(sums, POWERS, strict=True)))


def compare_means(reported: ProbabilityMeans, measured: ProbabilityMeans) -> dict[str, Tensor]:
    """Return both kinds of means and the slope by name."""
    named = {"reported": reported, "measured": measured}
    values = {f"{kind}_{name}": value for kind, means in named.items() for name, value in means._asdict().items()}
    return {**values, "slope": calibration_slope(reported, measured)}


def check_cells(cells: int | None, delta: float | None) -> None:
    """Refuse a number of cells that is not a multiple of 1 / delta."""
    if cells is None:
        return
    singular = 1 if delta is None else round(1 / delta)
    if cells < 1 or cells % singular:
        raise ValueError(f"cells must be None or a multiple of 1 / delta = {singular}, but got {cells}.")
