"""Measure the error of counting probabilities in cells: ``python -m benchmarks.histogram_error``."""

import torch
from torch import Tensor

from mpcs_torch import ProbabilityAccuracy

KINDS = {"flat": (1.0, 1.0), "overconfident": (3.0, 1.5), "sharp": (8.0, 2.0)}
"""Spread of the logits, and how much too sharp they are for the labels."""
CLASSES, BATCH = 10, 50_000


def values(kind: str, samples: int, cells: int | None) -> dict[str, Tensor]:
    """All values of random predictions, exact or by cells."""
    spread, temperature = KINDS[kind]
    generator = torch.Generator().manual_seed(0)
    metric = ProbabilityAccuracy(CLASSES, cells=cells)
    for _ in range(samples // BATCH):
        logits = spread * torch.randn(BATCH, CLASSES, generator=generator)
        labels = (
            (logits / temperature).softmax(1).multinomial(1, generator=generator).squeeze(1)
        )
        metric.update(logits, labels)
    return metric.compute()


def errors(samples: int, cells: int) -> tuple[float, float]:
    """The largest error of a mean, and of a slope, over all kinds."""
    means, slopes = [], []
    for kind in KINDS:
        exact, counted = values(kind, samples, None), values(kind, samples, cells)
        differences = {name: abs((counted[name] - exact[name]).item()) for name in exact}
        slopes.append(differences.pop("slope"))
        means += differences.values()
    return max(means), max(slopes)


def main() -> None:
    """Print the errors for 10^6 samples."""
    for cells in (2_000, 20_000):
        mean, slope = errors(1_000_000, cells)
        print(
            f"{cells} cells: means within {mean:.1e}, slopes within {slope:.1e} of the exact mode"
        )


if __name__ == "__main__":
    main()
