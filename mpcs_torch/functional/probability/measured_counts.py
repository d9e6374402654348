"""Measured probabilities from a histogram: the same bins, with their edges on a grid.

The cells of the grid have equal widths, but the lowest one is divided into sixteenths of an octave. Robustness depends
on the wrong classes whose probability is below that of every true class, and there probabilities of one in a million
have to be told apart.
"""

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.probability.measured import (
    MeasuredProbabilities,
    Span,
    equal_population,
    from_bins,
    sums_from,
)

PER_OCTAVE, OCTAVES = 16, 100
LOW_CELLS = PER_OCTAVE * OCTAVES
"""The number of cells that the lowest one is divided into; the first of them takes all smaller values, and 0."""


def grid_size(cells: int) -> int:
    """Return the number of cells of the grid."""
    return LOW_CELLS + cells - 1


def count_probabilities(probs: Tensor, labels: Tensor, counted: Tensor, cells: int) -> tuple[Tensor, Tensor]:
    """Count the probabilities (M, C) of true and of other classes in each cell of the grid: int64 (grid_size,) each.

    Nothing here looks at a value, so an accelerator is never waited for.
    """
    scaled = probs.nan_to_num(0).to(widest_float(probs.device)) * cells
    part = (scaled.log2() * PER_OCTAVE).clamp(min=-LOW_CELLS).floor().long() + LOW_CELLS
    cell = torch.where(scaled < 1, part, LOW_CELLS - 1 + scaled.long()).clamp(0, grid_size(cells) - 1)
    of_true = cell.gather(1, labels.unsqueeze(1)).squeeze(1)
    weight = counted.long()
    zeros = torch.zeros(grid_size(cells), dtype=torch.int64, device=probs.device)
    every = zeros.index_add(0, cell.reshape(-1), weight.unsqueeze(1).expand_as(cell).reshape(-1))
    correct = zeros.index_add(0, of_true, weight)
    return correct, every - correct


def measure_counts(
    correct: Tensor, incorrect: Tensor, cells: int, epsilon: float, n_bins: int, delta: float | None, span: Span
) -> MeasuredProbabilities:
    """Return the bins and means of counts (grid_size,) with ``cells`` a multiple of 1 / delta."""
    total = int(correct.sum())
    bins = min(n_bins, total)
    groups = []
    if delta is not None and bins:
        singular = round(1 / delta)
        starts = torch.arange(singular, device=correct.device) * (cells // singular) + LOW_CELLS - 1
        starts[0] = 0
        n, m = sums_from(correct, starts), sums_from(incorrect, starts)
        overfull = n * bins > total
        low = torch.arange(singular, device=n.device)[overfull] * delta
        groups.append((low, low + delta, n[overfull], m[overfull]))
        sizes = torch.cat([starts, starts.new_tensor([len(correct)])]).diff()
        rest = ~overfull.repeat_interleave(sizes)
        correct, incorrect = correct * rest, incorrect * rest
        bins -= int(overfull.sum())
    occupied = correct.nonzero().squeeze(1)
    if len(occupied):
        first, last = (0, len(correct) - 1) if span == "unit" else (int(occupied[0]), int(occupied[-1]))
        n, m = correct[first : last + 1], incorrect[first : last + 1]
        start = equal_population(n, bins)
        bounds = _edges(cells, correct.device)[torch.cat([start + first, start.new_tensor([last + 1])])]
        groups.append((bounds[:-1], bounds[1:], sums_from(n, start), sums_from(m, start)))
    return from_bins(groups, epsilon, correct.device)


def _edges(cells: int, device: torch.device) -> Tensor:
    """Return the edges of the grid's cells: (grid_size + 1,)."""
    wide = widest_float(device)
    lowest = 2 ** (torch.arange(-LOW_CELLS, 0, device=device, dtype=wide) / PER_OCTAVE) / cells
    lowest[0] = 0
    return torch.cat([lowest, torch.arange(1, cells + 1, device=device, dtype=wide) / cells])
