"""Random outputs against soft labels: soft F falls as the divergence rises, and hard F does not.

The experiment is that of Section 3.2 in Harju and Mesaros, "Evaluating classification systems against soft labels". Its
data are those of a challenge; here the references are made up: 60 recordings of 50 segments, in which five annotators
each hear some of 11 sounds.
"""

import torch
from matplotlib.figure import Figure
from torch import Tensor

from mpcs_torch.functional import hard_f1, jackknife_interval, soft_f1, soft_kl_divergence
from mpcs_torch.plots.canvas import BLUE, GREEN, GREY, ORANGE

CLASSES, RECORDINGS, SEGMENTS, ANNOTATORS = 11, 60, 50, 5
SPREADS = (0.01, 0.1, 1.0, 5.0, 20.0)
"""Both parameters of a beta distribution: predictions near 0 and 1, uniform ones, and predictions near 1/2."""


def main() -> None:
    """Print and draw the scores of random outputs, from the most extreme one to a constant of 1/2."""
    torch.manual_seed(0)
    target = soft_references()
    recording = torch.arange(RECORDINGS).repeat_interleave(SEGMENTS)
    outputs = {
        f"beta({r:g}, {r:g})": torch.distributions.Beta(r, r).sample(target.shape)
        for r in SPREADS
    }
    outputs["constant 0.5"] = torch.full_like(target, 0.5)
    print(
        f"{(target > 0.5).float().mean():.1%} of the labels are above 0.5; their mean is {target.mean():.3f}\n"
    )
    print(
        "output              KLD   hard micro  macro   best thresholds micro  macro   soft macro  soft micro [95 %]"
    )
    rows = []
    for name, preds in outputs.items():
        row = scores(preds, target)
        interval = jackknife_interval(
            lambda kept, p=preds: soft_f1(p[kept], target[kept], num_classes=CLASSES),
            recording,
        )
        low, high = interval.low.item(), interval.high.item()
        values = "{:7.3f} {:11.3f} {:7.3f} {:19.3f} {:9.3f} {:11.3f}".format(*row[:6])
        print(
            f"{name:16} {values} {interval.estimate.item():10.3f} [{low:.3f}, {high:.3f}]"
        )
        rows.append(row)
    draw(torch.tensor(rows), list(outputs))
    print("\nwrote random-outputs.png")


def soft_references() -> Tensor:
    """Return the share of annotators who hear each sound in each segment; most sounds are rare, as in recordings."""
    frequency = torch.linspace(0.02, 0.4, CLASSES)
    of_recording = torch.distributions.Beta(2 * frequency, 2 * (1 - frequency)).sample(
        (RECORDINGS,)
    )
    is_there = torch.rand(RECORDINGS, SEGMENTS, CLASSES) < of_recording.unsqueeze(1)
    clarity = torch.where(
        is_there,
        torch.distributions.Beta(4.0, 2.0).sample(is_there.shape),
        torch.distributions.Beta(0.5, 8.0).sample(is_there.shape),
    )
    return (
        torch.distributions.Binomial(ANNOTATORS, clarity).sample() / ANNOTATORS
    ).flatten(0, 1)


def scores(preds: Tensor, target: Tensor) -> list[float]:
    """Return KLD, hard F at 0.5 and at the best thresholds (micro, macro), soft macro and micro F."""
    best = best_thresholds(preds, target)
    hard = [
        hard_f1(
            preds, target, num_classes=CLASSES, threshold=threshold, average=average
        ).item()
        for threshold in (0.5, best)
        for average in ("micro", "macro")
    ]
    soft = [
        soft_f1(preds, target, num_classes=CLASSES, average=average).item()
        for average in ("macro", "micro")
    ]
    divergence = soft_kl_divergence(
        preds, target, epsilon=1e-7
    )  # the floor of `mpcs score`
    return [divergence.item(), *hard, *soft]


def best_thresholds(preds: Tensor, target: Tensor) -> Tensor:
    """Return for each class the threshold of 200 with the highest hard F on these samples."""
    thresholds = torch.arange(200) / 200
    by_class = [
        hard_f1(
            preds, target, num_classes=CLASSES, threshold=threshold.item(), average="none"
        )
        for threshold in thresholds
    ]
    return thresholds[torch.stack(by_class).argmax(dim=0)]


def draw(rows: Tensor, names: list[str]) -> None:
    """Draw F against the divergence, whose range needs a logarithmic axis."""
    axes = Figure(figsize=(7, 4.4), layout="constrained").add_subplot(
        xlabel="Kullback-Leibler divergence, nats",
        ylabel="F",
        xscale="log",
        xlim=(0.45, 9),
        ylim=(0, 0.55),
    )
    divergence, hard_micro, hard_macro, best_micro, best_macro, soft_macro, soft_micro = (
        rows.T.tolist()
    )
    axes.plot(divergence, soft_micro, "o-", color=ORANGE, label="soft, micro")
    axes.plot(divergence, soft_macro, "s-", color=ORANGE, alpha=0.5, label="soft, macro")
    axes.plot(
        divergence,
        best_micro,
        "o--",
        color=BLUE,
        label="hard at the best thresholds, micro",
    )
    axes.plot(
        divergence,
        best_macro,
        "s--",
        color=BLUE,
        alpha=0.5,
        label="hard at the best thresholds, macro",
    )
    # A constant of 0.5 is not above 0.5: no hard label at all.
    axes.plot(
        divergence[:-1], hard_micro[:-1], "o:", color=GREEN, label="hard at 0.5, micro"
    )
    axes.plot(
        divergence[:-1],
        hard_macro[:-1],
        "s:",
        color=GREEN,
        alpha=0.5,
        label="hard at 0.5, macro",
    )
    for x, name in zip(divergence, names, strict=True):
        # The points of these two are so near that their names would overlap.
        side = {"constant 0.5": "right", "beta(5, 5)": "left"}.get(name, "center")
        axes.annotate(
            name, (x, 0.54), rotation=90, fontsize=7, color=GREY, ha=side, va="top"
        )
    axes.set_xticks([0.5, 1, 2, 5], ["0.5", "1", "2", "5"])
    axes.minorticks_off()
    axes.legend(fontsize=7, loc="lower left")
    axes.figure.savefig("random-outputs.png", dpi=110)


if __name__ == "__main__":
    main()
