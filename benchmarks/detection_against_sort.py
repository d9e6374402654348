"""Time detection metrics as a multiple of one sort. Run: python -m benchmarks.detection_against_sort."""

import resource

import torch

from benchmarks.rounds import quickest
from mpcs_torch.functional import OperatingPoint
from mpcs_torch.functional.detection.curve import summary_from_counts
from mpcs_torch.functional.detection.errors import count_errors, hull_vertices

LIMIT = 1.5
SIZE = 10**7
POINTS = [OperatingPoint(0.5), OperatingPoint(0.01), OperatingPoint(0.001)]


def ratio(target_share: float = 0.5, distance: float = 2.0, rounds: int = 6) -> float:
    """Equal error rate, three least costs, area and least Cllr of 10^7 float64 scores, over a sort and a pass of PAV.

    The pass is the convex hull, whose edges are PAV's blocks. The quickest of some rounds of each, taken in turns.
    """
    generator = torch.Generator().manual_seed(0)
    labels = torch.rand(SIZE, generator=generator) < target_share
    scores = torch.randn(SIZE, generator=generator, dtype=torch.float64) + distance * labels
    counts = count_errors(scores, labels)
    calls = (
        lambda: scores.sort(),
        lambda: hull_vertices(counts),
        lambda: summary_from_counts(count_errors(scores, labels), POINTS),
    )
    sort, pav, ours = quickest(calls, rounds)
    return ours / (sort + pav)


if __name__ == "__main__":
    for target_share, distance in ((0.5, 2.0), (0.5, 0.5), (0.01, 2.0)):
        kind = f"{target_share:g} of them targets, {distance:g} deviations apart"
        print(
            f"10^7 scores, {kind}: {ratio(target_share, distance):.2f} times a sort and a pass of PAV (limit {LIMIT})"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory of this process: {peak:.2f} GiB")
