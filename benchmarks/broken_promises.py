"""Count and draw how often a limit is exceeded if an assumption of its guarantee holds, and if it is broken.

Run: python -m benchmarks.broken_promises [FITS] [--figure promises.png]
"""

import argparse
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor

from mpcs_torch import ConcernSpec
from mpcs_torch.learning import DecisionRule, Limit
from mpcs_torch.plots.canvas import BLUE, DARK_GREY, RED, canvas, grid, legend_below
from mpcs_torch.tables import Table

FITS, DRAWN, NEW = 300, 3000, 40_000
CLASSES = ConcernSpec(["benign", "malignant"])
OF_SAMPLES, OF_CLASS = Limit(0.05, "any"), Limit(0.1, "any", of="malignant")


def drawn(
    samples: int, seed: int, *, malignant: float = 0.3, images: int = 1, noise: float = 1.0
) -> tuple[Tensor, ...]:
    """Draw overconfident logits, labels and patients, whose images are equal."""
    generator = torch.Generator().manual_seed(seed)
    patients = samples // images
    target = (torch.rand(patients, generator=generator) < malignant).long()
    centres = torch.tensor([[1.4, 0.0], [0.0, 1.4]])
    noises = noise * (0.8 + 0.6 * target)  # malignant cases are harder
    logits = 2 * (
        centres[target]
        + noises.unsqueeze(1) * torch.randn(patients, 2, generator=generator)
    )
    patient = torch.arange(patients).repeat_interleave(images)
    return logits[patient], target[patient], patient


def share_above(
    limit: Limit,
    fits: int,
    *,
    images: int = 1,
    is_clustered: bool = False,
    models: int = 1,
    seeds: int = 0,
    samples: int = DRAWN,
    new: Callable[[], tuple[Tensor, ...]] = lambda: drawn(NEW, -1),
) -> float:
    """Return the share of fits whose rate of errors on new samples is above the limit.

    Of several models or seeds of a calibration, the rule with the highest coverage is taken, by the same samples.
    """
    logits, target, _ = new()
    counted, above = (
        target == 1 if limit == OF_CLASS else torch.ones_like(target, dtype=torch.bool),
        0,
    )
    for seed in range(fits):
        rules = []
        for model in range(max(models, seeds)):
            given, labels, patient = drawn(samples, seed, images=images)
            given = given + 0.5 * torch.randn(
                given.shape, generator=torch.Generator().manual_seed(model)
            ) * (models > 1)
            settings = (
                {"calibration": "temperature", "seed": model}
                if seeds
                else {"calibration": None, "seed": seed}
            )
            rule = DecisionRule(CLASSES, limit, **settings)
            rules.append(
                rule.fit(given, labels, clusters=patient if is_clustered else None)
            )
        best = max(rules, key=lambda rule: rule.report.coverage)
        noise = (
            0.5
            * torch.randn(logits.shape, generator=torch.Generator().manual_seed(seed))
            * (models > 1)
        )
        decisions = best(logits + noise)
        above += bool(
            ((decisions >= 0) & (decisions != target))[counted].double().mean()
            > limit.at_most
        )
    return above / fits


def rows(fits: int) -> list[tuple[str, float, float]]:
    """Return the shares of fits above the limit, with each assumption kept and broken."""
    shifted, drifted = (
        (lambda: drawn(NEW, -1, malignant=0.6)),
        (lambda: drawn(NEW, -1, noise=1.3)),
    )
    return [
        (
            "ten images of a patient:\nclusters given / not given",
            share_above(OF_SAMPLES, fits, images=10, is_clustered=True),
            share_above(OF_SAMPLES, fits, images=10),
        ),
        (
            "twice as many malignant:\nlimit of the class / of all samples",
            share_above(OF_CLASS, fits, new=shifted),
            share_above(OF_SAMPLES, fits, new=shifted),
        ),
        (
            "new samples are alike /\nnoisier than those of the fit",
            share_above(OF_SAMPLES, fits),
            share_above(OF_SAMPLES, fits, new=drifted),
        ),
        (
            "one model /\nthe best of 20 by the same samples",
            share_above(OF_SAMPLES, fits),
            share_above(OF_SAMPLES, max(20, fits // 5), models=20),
        ),
        (
            "500 samples, one seed /\nthe best of 16 seeds",
            share_above(OF_SAMPLES, fits, seeds=1, samples=500),
            share_above(OF_SAMPLES, fits, seeds=16, samples=500),
        ),
    ]


def figure(shares: Sequence[tuple[str, float, float]]) -> Figure:
    """Draw the share of fits above the limit, with each assumption kept and broken."""
    drawing, axes = canvas(
        4.2, "Fits that exceed their limit", xlabel="share of fits, %", ylabel=""
    )
    for place, (_, kept, broken) in enumerate(shares):
        for offset, value, colour in ((-0.18, kept, BLUE), (0.18, broken, RED)):
            axes.barh(place + offset, 100 * value, height=0.32, color=colour)
            axes.text(
                100 * value + 1.5,
                place + offset,
                f"{100 * value:.0f}",
                va="center",
                fontsize=8,
            )
    axes.barh(0, 0, color=BLUE, label="the assumption holds")
    axes.barh(0, 0, color=RED, label="it is broken")
    axes.axvline(5, color=DARK_GREY, linestyle=":", linewidth=0.9, label="allowed: 5 %")
    axes.set_yticks(range(len(shares)), [name for name, _, _ in shares], fontsize=8)
    axes.set(xlim=(0, 112))
    axes.invert_yaxis()
    grid(axes, "x")
    legend_below(drawing)
    return drawing


def main() -> None:
    """Print the shares, and draw them if a figure is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument("fits", type=int, nargs="?", default=FITS)
    parser.add_argument(
        "--figure", type=Path, help="Where to draw the shares, such as promises.png."
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some fits refer all samples
        shares = rows(arguments.fits)
    if arguments.figure is not None:
        figure(shares).savefig(arguments.figure, dpi=110)
    cells = [
        [name.replace("\n", " "), f"{kept:.3f}", f"{broken:.3f}"]
        for name, kept, broken in shares
    ]
    print(Table(["assumption", "kept", "broken"], cells).markdown())


if __name__ == "__main__":
    main()
