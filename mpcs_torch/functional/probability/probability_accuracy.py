"""Generalized means of reported and measured probabilities, and the calibration slope."""

from torch import Tensor

from mpcs_torch.functional.probability.generalized import ProbabilityMeans, means_of
from mpcs_torch.functional.probability.measured import (
    BinSpan,
    calibration_slope,
    check_bins,
    count_probabilities,
    measure_counts,
    measure_terms,
    true_probs,
)


def probability_accuracy(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int,
    from_logits: bool = True,
    epsilon: float = 0.005,
    n_bins: int = 20,
    delta: float | None = 0.005,
    span: BinSpan = "data",
    cells: int | None = None,
    ignore_index: int | None = None,
) -> dict[str, Tensor]:
    """Compute geometric accuracy, decisiveness and robustness, reported and measured, and the slope between them.

    Equations are those of `geometric_accuracy`, `decisiveness`, `robustness`, `measured_probabilities` and
    `calibration_slope`. ``epsilon`` is the floor of probabilities and rates. ``cells`` is None for exact bins, or the
    number of histogram cells of [0, 1], a multiple of 1 / delta. The other arguments and errors are those of
    `measured_probabilities`.

    Returns:
        Float64 scalars by name (float32 on MPS): ``geometric_accuracy``, ``decisiveness`` and
        ``robustness``, each with the prefixes ``reported_`` and ``measured_``, in [0, 1], higher is better; and
        ``slope``, above 1 if the classifier is underconfident, below 1 if overconfident. NaN without samples. There is
        no ``sample_weight``, because bins of equal population count samples.

    References:
        George, Barrera, Nelson: Applying the decisiveness and robustness metrics to convolutional neural networks,
        arXiv:2006.00058, Sections 3 and 4.

    Example:
        >>> import torch
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
        >>> target = torch.tensor([0, 0, 1, 1])
        >>> probability_accuracy(probs, target, num_classes=2, from_logits=False, n_bins=2)["slope"]
        tensor(0.7421, dtype=torch.float64)
    """
    check_bins(epsilon, n_bins, delta, span)
    check_cells(cells, delta)
    terms = true_probs(preds, target, num_classes, from_logits, ignore_index)
    labels = terms.labels
    reported = means_of(terms.term, labels.weight, epsilon)
    if cells is None:
        measured = measure_terms(terms, epsilon, n_bins, delta, span)
    else:
        probs = terms.samples.probs()
        counts = count_probabilities(probs, labels.target, labels.counted, cells)
        measured = measure_counts(*counts, cells, epsilon, n_bins, delta, span)
    return compare_means(reported, measured.means)


def compare_means(reported: ProbabilityMeans, measured: ProbabilityMeans) -> dict[str, Tensor]:
    """Return the reported means, the measured means, and the calibration slope, by name."""
    named = {"reported": reported, "measured": measured}
    values = {f"{kind}_{name}": value for kind, means in named.items() for name, value in means._asdict().items()}
    return {**values, "slope": calibration_slope(reported, measured)}


def check_cells(cells: int | None, delta: float | None) -> None:
    """Check that the number of cells is a multiple of 1 / delta, or None."""
    if cells is None:
        return
    singular = 1 if delta is None else round(1 / delta)
    if cells < 1 or cells % singular:
        raise ValueError(f"cells must be None or a multiple of 1 / delta = {singular}, but got {cells}.")
