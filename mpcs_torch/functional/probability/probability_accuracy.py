"""Generalized means of the predicted probabilities and of the observed rates of true classes, and their comparison."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import Rule, require
from mpcs_torch.functional.inputs.arrays import map_chunks
from mpcs_torch.functional.inputs.checks import (
    check_choice,
    check_num_classes,
    widened,
    widest_float,
)
from mpcs_torch.functional.inputs.labels import Bins, value_rules
from mpcs_torch.functional.inputs.probabilities import (
    SCORE_RULES,
    Samples,
    flatten_samples,
    input_scale,
)
from mpcs_torch.functional.measure import Measure
from mpcs_torch.functional.probability.scores import (
    POWERS,
    ProbabilityMeans,
    check_floor,
    means_from_probs,
    means_of_sums,
    power_sums,
    prob_of_true_class,
)

PER_OCTAVE = 16
"""The number of parts of the lowest histogram cell from a probability to twice this probability."""
LOW_CELLS = 100 * PER_OCTAVE
"""The number of parts, each of equal ratio, of the lowest histogram cell; the first part includes 0."""
BinSpan = Literal["data", "unit"]


class MeasuredProbabilities(NamedTuple):
    """B bins of probabilities, ascending, and the generalized means of their rates; all float64 (float32 on MPS)."""

    means: ProbabilityMeans
    low: Tensor
    """(B,): the lower edges of the bins."""
    high: Tensor
    """(B,): the upper edges, exclusive except for the last bin."""
    correct: Tensor
    """(B,): the number of probabilities of true classes in each bin."""
    incorrect: Tensor
    """(B,): the number of probabilities of other classes in each bin."""

    @property
    def rate(self) -> Tensor:
        """The share of probabilities in each bin that belong to true classes: (B,)."""
        return self.correct / (self.correct + self.incorrect)


def calibration_slope(reported: ProbabilityMeans, measured: ProbabilityMeans) -> Tensor:
    """Compute the slope of measured over reported probabilities; above 1 is underconfident, below 1 overconfident.

    .. math:: (D_{measured} - R_{measured}) / (D_{reported} - R_{reported})

    D is the decisiveness (arithmetic mean), and R the robustness (generalized mean with power -2/3). If the reported D
    and R are equal, the slope is NaN. For few samples it is too high on average, because noise spreads the rates.

    References:
        George, Barrera, Nelson, arXiv:2006.00058, Eq. 3.
    """
    spread = reported.decisiveness - reported.robustness
    slope = (measured.decisiveness - measured.robustness) / spread
    return torch.where(spread > 1e-12, slope, float("nan"))


class _Bins(NamedTuple):
    """A partition of probabilities: "singular" cells, which hold more than an average bin, and bins for the rest."""

    width: float
    rank: Tensor
    """(cells,), int64: the index of each cell of width ``width`` among the singular cells; -1 if not singular."""
    starts: Tensor
    """(B,): the lower edges of the bins, ascending."""
    last: float
    """The upper edge of the last bin, inclusive."""

    @property
    def number(self) -> int:
        """The total number of singular cells and bins."""
        return int(self.rank.max()) + 1 + len(self.starts)

    def owner(self, probs: Tensor) -> Tensor:
        """Return the index of each probability's singular cell or bin (cells come first); `number` if it is in none."""
        cell = (probs / self.width).long().clamp(0, len(self.rank) - 1)
        rank = self.rank[cell]
        index = torch.bucketize(probs, self.starts, right=True) - 1
        is_in_bin = (index >= 0) & (probs <= self.last)
        bins = torch.where(is_in_bin, index + self.number - len(self.starts), self.number)
        return torch.where(rank >= 0, rank, bins)

    def sums(self, probs: Tensor, counts: Tensor) -> Tensor:
        """Return the sum of the ``counts`` of ``probs`` in each singular cell and bin; the last is that in none."""

        def of_chunk(rows: slice) -> Tensor:
            owner = self.owner(widened(probs[rows]).contiguous())
            return Bins(owner.flatten(), self.number + 1).sum(counts[rows].flatten())

        return torch.stack(map_chunks(of_chunk, probs)).sum(0)


def equal_population(counts: Tensor, bins: int) -> Tensor:
    """Divide ``counts`` (G,) into at most ``bins`` runs of about equal sums; return the first index of each run."""
    total = counts.sum()
    quantiles = torch.arange(1, bins, device=counts.device) * total // bins
    starts = torch.searchsorted(counts.cumsum(0), quantiles, right=True)
    return torch.cat([starts.new_zeros(1), torch.unique(starts[starts > 0])])


def _edges(cells: int, device: torch.device) -> Tensor:
    """Return the edges of the cells of a histogram, from 0 to 1, as `ProbabilityAccuracy.grid` counts them."""
    wide = widest_float(device)
    octaves = torch.arange(-LOW_CELLS, 0, device=device, dtype=wide) / PER_OCTAVE
    low_edges = 2**octaves / cells
    low_edges[0] = 0
    equal_edges = torch.arange(1, cells + 1, device=device, dtype=wide) / cells
    return torch.cat([low_edges, equal_edges])


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
    r"""Compute geometric accuracy, decisiveness and robustness, reported and measured, and the slope between them.

    Reported means are those of `geometric_accuracy`, `decisiveness` and `robustness`; the slope is `calibration_slope`.
    For the measured means, the probabilities of the true classes are divided into bins of equal population. If a cell
    of width ``delta`` holds more of these probabilities than such a bin, the cell becomes a bin of its own (a
    singularity, mostly at 1). A bin with :math:`n_b` of the :math:`N` probabilities of true classes, and :math:`m_b` of
    those of other classes, has the rate :math:`f_b = n_b / (n_b + m_b)`. The measured mean with power r is

    .. math:: M_r = \left( \frac{1}{N} \sum_b n_b \max(f_b, \epsilon)^r \right)^{1/r}

    `mpcs_torch.metrics.ProbabilityAccuracy` also returns the bins.

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` floating point scores; 16-bit types are upcast.
        target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``.
        num_classes: C, at least 2.
        from_logits: Whether ``preds`` are logits rather than probabilities; never guessed from the values.
        epsilon: The smallest value of probabilities and rates, in [0, 1); smaller values are raised to it.
        n_bins: The maximum number of bins; there are never more bins than samples.
        delta: The width of cells that can become singularities, 1 divided by a whole number; None for no singularities.
        span: With ``"data"``, probabilities of wrong classes do not count if they are outside the range of the
            probabilities of true classes. ``"unit"`` extends the outer bins (but not singularities) to 0 and 1.
        cells: None for exact bins. For bins from a histogram: its number of cells, a multiple of 1 / ``delta``.
        ignore_index: Label of samples to leave out.

    Returns:
        Float64 scalars by name (float32 on MPS), NaN without samples: ``geometric_accuracy``, ``decisiveness`` and
        ``robustness``, each with the prefixes ``reported_`` and ``measured_``, in [0, 1], higher is better; and
        ``slope``, above 1 if the classifier is underconfident, below 1 if overconfident.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        George, Barrera, Nelson: Applying the decisiveness and robustness metrics to convolutional neural networks,
        arXiv:2006.00058, Sections 3 and 4. The paper does not specify the bin of a probability on an edge (here the
        upper bin), the treatment of wrong classes outside the bins (here ``span``), or the number of bins.

    Example:
        >>> import torch
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
        >>> target = torch.tensor([0, 0, 1, 1])
        >>> probability_accuracy(probs, target, num_classes=2, from_logits=False, n_bins=2)["slope"]
        tensor(0.7421, dtype=torch.float64)
    """
    measure = ProbabilityAccuracy(
        num_classes, cells, from_logits, epsilon, n_bins, delta, span, ignore_index
    )
    values: Any = measure(preds, target)
    return dict(values)


class CellSums(NamedTuple):
    """The sums of rows from which reported and measured means are computed."""

    powers: Tensor
    """(..., 3): the sums of the probabilities of true classes (at least ``epsilon``), raised to each of `POWERS`."""
    samples: Tensor
    """(...): the number of rows."""
    correct: Tensor
    """(..., grid_size): the number of probabilities of true classes in each cell."""
    incorrect: Tensor
    """(..., grid_size): the number of probabilities of other classes in each cell."""


@dataclass(eq=False)
class ProbabilityAccuracy(Measure):
    """The measure of `probability_accuracy`, from a histogram of probabilities or, without ``cells``, from all."""

    num_classes: int
    cells: int | None
    from_logits: bool = True
    epsilon: float = 0.005
    n_bins: int = 20
    delta: float | None = 0.005
    span: BinSpan = "data"
    ignore_index: int | None = None

    sums_type = CellSums
    sums_settings = ("num_classes", "cells", "from_logits", "epsilon", "ignore_index")
    direction = None
    takes_weights = False
    is_wide = True

    def __post_init__(self) -> None:
        """Check the settings."""
        check_num_classes(self.num_classes)
        check_floor(self.epsilon)
        require(self.n_bins >= 1, "at_least", "n_bins", self.n_bins, minimum=1)
        delta = self.delta
        cells_of_delta = 1
        if delta is not None:
            require(0 < delta <= 1, "inverse_of_whole", "delta", delta)
            cells_of_delta = round(1 / delta)
            is_inverse = abs(1 / delta - cells_of_delta) < 1e-6
            require(is_inverse, "inverse_of_whole", "delta", delta)
        check_choice("span", self.span, BinSpan)
        if self.cells is not None:
            is_multiple = self.cells >= 1 and self.cells % cells_of_delta == 0
            require(is_multiple, "multiple", "cells", self.cells, number=cells_of_delta)

    @property
    def value_rules(self) -> Sequence[Rule]:
        """The rules of the values of rows."""
        return value_rules(self.num_classes, SCORE_RULES[input_scale(self.from_logits)])

    @property
    def grid(self) -> int:
        """The number of histogram cells: ``cells`` equal ones, the lowest of which is divided into `LOW_CELLS`."""
        assert self.cells is not None
        return LOW_CELLS + self.cells - 1

    @property
    def width(self) -> int:
        """The number of sums."""
        return len(POWERS) + 1 + 2 * self.grid

    def named(self, sums: Tensor) -> CellSums:
        """Split the sums into those of powers, rows, and cells."""
        sizes = [len(POWERS), 1, self.grid, self.grid]
        powers, samples, correct, incorrect = sums.split_with_sizes(sizes, -1)
        return CellSums(powers, samples.squeeze(-1), correct.long(), incorrect.long())

    def rows(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> Samples:
        """Flatten a batch of scores (N, C, ...) and labels (N, ...)."""
        require(sample_weight is None, "none", "sample_weight", sample_weight)
        scale = input_scale(self.from_logits)
        return flatten_samples(preds, target, self.num_classes, scale, self.ignore_index)

    def sums(self, rows: Samples, bins: Bins | None = None) -> Tensor:
        """Return the sums of all rows, or of the rows in each bin, without synchronizing an accelerator."""
        if bins is not None:
            parts = [rows.at(bins.codes == code) for code in range(bins.number)]
            return torch.stack([self.sums(part) for part in parts])
        probs = rows.probs()
        weight = rows.labels.weight
        powers = power_sums(rows.true_class_values(probs), weight, self.epsilon)
        cells = self._cells(probs.nan_to_num(0).to(weight.dtype))
        correct = Bins(rows.true_class_values(cells), self.grid).sum(weight)
        of_all_classes = weight.unsqueeze(1).expand_as(cells).reshape(-1)
        total = Bins(cells.reshape(-1), self.grid).sum(of_all_classes)
        return torch.cat([powers, weight.sum().unsqueeze(0), correct, total - correct])

    def _cells(self, probs: Tensor) -> Tensor:
        """Return the index of the histogram cell of each probability."""
        assert self.cells is not None
        scaled = probs * self.cells
        octaves = (scaled.log2() * PER_OCTAVE).clamp(min=-LOW_CELLS)  # -inf for 0
        low_cell = octaves.floor().long() + LOW_CELLS
        equal_cell = LOW_CELLS - 1 + scaled.long()
        return torch.where(scaled < 1, low_cell, equal_cell).clamp(0, self.grid - 1)

    def value_of_rows(self, rows: Samples) -> Any:
        """Return the reported means, the measured means and the slope by name."""
        if self.cells is not None:
            return super().value_of_rows(rows)
        reported, measured = self.exact(rows)
        return compare_means(reported, measured.means)

    def exact(self, samples: Samples) -> tuple[ProbabilityMeans, MeasuredProbabilities]:
        """Return the reported means and the bins of ``samples``, without a histogram."""
        true_probs = samples.map(prob_of_true_class)
        weight = samples.labels.weight
        reported = means_from_probs(true_probs, weight, self.epsilon)
        counted = samples.labels.counted
        of_true = widened(true_probs[counted])
        # Each distinct value is a cell without width.
        values, counts = torch.unique(of_true, return_counts=True)
        probs = samples.at(counted).probs()
        ones = counts.new_ones(1).expand(probs.shape)
        return reported, self._rates(values, values, counts, probs, ones)

    def value(self, sums: CellSums) -> Any:
        """Return the reported means, the measured means and the slope by name."""
        return compare_means(self.reported(sums), self.measured(sums).means)

    def reported(self, sums: CellSums) -> ProbabilityMeans:
        """Return the means of the predicted probabilities of the true classes."""
        return means_of_sums(sums.powers, sums.samples)

    def measured(self, sums: CellSums) -> MeasuredProbabilities:
        """Return the bins of the predicted probabilities, and the generalized means of their rates."""
        assert self.cells is not None
        edges = _edges(self.cells, sums.correct.device)
        total = sums.correct + sums.incorrect
        used = total > 0  # few rows fill few of the cells
        low = edges[:-1][used]
        high = edges[1:][used]
        middle = (low + high) / 2
        return self._rates(low, high, sums.correct[used], middle, total[used])

    def _rates(
        self, low: Tensor, high: Tensor, of_true: Tensor, probs: Tensor, counts: Tensor
    ) -> MeasuredProbabilities:
        """Choose `_Bins`, count in them, and compute the means of their rates.

        The V cells from ``low`` to ``high`` (V,), ascending, hold ``of_true`` (V,) probabilities of true classes. All
        ``probs``, each with its number in ``counts``, are counted in the bins.
        """
        middle = (low + high) / 2
        total = int(of_true.sum())
        max_bins = min(self.n_bins, total)
        width = self.delta or 1.0
        cells = round(1 / width)
        cell = (middle / width).long().clamp(0, cells - 1)
        # A cell is singular if it holds more than an average bin.
        is_singular = Bins(cell, cells).sum(of_true) * max_bins > total
        if self.delta is None:
            is_singular = torch.zeros_like(is_singular)
        rest = torch.where(is_singular[cell], 0, of_true)
        kept = rest.nonzero().squeeze(1)
        first = kept
        last = 0.0
        if len(kept):
            bins_of_rest = max_bins - int(is_singular.sum())
            first = kept[equal_population(rest[kept], bins_of_rest)]
            last = float(middle[kept[-1]])
        edges = torch.cat([low[first], high[kept[-1:]]])
        if self.span == "unit" and len(edges):
            edges[0] = 0
            edges[-1] = 1
            last = inf
        rank = torch.where(is_singular, is_singular.cumsum(0) - 1, -1)
        bins = _Bins(width, rank, edges[:-1], last)
        # Count in singular cells and bins, and sort them together by their lower edges.
        singular_starts = is_singular.nonzero().squeeze(1).to(low.dtype) * width
        starts = torch.cat([singular_starts, edges[:-1]])
        ends = torch.cat([singular_starts + width, edges[1:]])
        order = starts.argsort(stable=True)
        correct = bins.sums(middle, of_true)[order].to(low.dtype)
        both = bins.sums(probs, counts)[order].to(low.dtype)
        means = means_from_probs(correct / both, correct, self.epsilon)
        return MeasuredProbabilities(
            means, starts[order], ends[order], correct, both - correct
        )


def compare_means(
    reported: ProbabilityMeans, measured: ProbabilityMeans
) -> dict[str, Tensor]:
    """Return the three reported means, the three measured means, and the calibration slope, by name."""
    values = dict[str, Tensor]()
    for name, value in reported._asdict().items():
        values[f"reported_{name}"] = value
    for name, value in measured._asdict().items():
        values[f"measured_{name}"] = value
    values["slope"] = calibration_slope(reported, measured)
    return values
