"""Simulate three speaker detectors whose true error rates are known, for docs/tutorials/detector-exercises.md.

The files go to the folder given as argument, by default runs/detection.
"""

import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.special import ndtr, ndtri

from mpcs_torch.functional import (
    OperatingPoint,
    bounded_mean_interval,
    clopper_pearson,
    detection_curve,
)
from mpcs_torch.plots import det_curves, roc_curves
from mpcs_torch.plots.canvas import BLACK, NONTARGETS, TARGETS

TRIALS_PER_SPEAKER, SHARE_OF_TARGETS = 50, 0.15
SPEAKERS = {"dev": 60, "eval": 80, "small": 8, "noisy-dev": 60}
BABBLE = {"dev": 0.2, "eval": 0.6, "small": 0.6, "noisy-dev": 0.6}
"""The share of trials with babble: "dev" has less of it than the trials where the detectors are used."""
COMMON, OWN, SPEAKER = 0.6, 0.8, 0.5
"""Deviations of what all detectors hear alike, of what each hears alone, and of the means of the speakers."""
DEVIATION = (COMMON**2 + OWN**2 + SPEAKER**2) ** 0.5


class Detector(NamedTuple):
    """The place of the scores of a detector: in units of its own, so no threshold serves two detectors."""

    distance: float
    """From the mean of non-targets to that of targets, in clean speech."""
    babble: float
    """The rise of the scores of non-targets in babble."""
    scale: float
    shift: float


DETECTORS = {
    "a": Detector(3.2, 1.6, 1.0, 0.0),
    "b": Detector(2.8, 0.5, 2.0, 1.5),
    "c": Detector(2.2, 0.8, 0.7, -3.0),
}


class Trials(NamedTuple):
    """Trials of an evaluation or development set."""

    speaker: Tensor
    is_noisy: Tensor
    label: Tensor
    scores: dict[str, Tensor]


def main() -> None:
    """Write the trials and the pictures, and print the true error rates."""
    folder = Path(*sys.argv[1:2] or ["runs/detection"])
    folder.mkdir(parents=True, exist_ok=True)
    print("detector  noise   true equal error rate  at the threshold")
    for name, (distance, babble, scale, shift) in DETECTORS.items():
        for noise, rise in (("clean", 0.0), ("babble", babble)):
            gaussians = (
                shift + scale * rise,
                scale * DEVIATION,
                shift + scale * distance,
                scale * DEVIATION,
            )
            rate, threshold = gaussian_equal_error(*gaussians)
            print(f"{name:9} {noise:7} {rate:21.4f} {threshold:17.3f}")
    generator = torch.Generator().manual_seed(2017)
    sets = {part: simulated(SPEAKERS[part], BABBLE[part], generator) for part in SPEAKERS}
    for part, trials in sets.items():
        for name, scores in trials.scores.items():
            write(folder / f"{name}-{part}.csv", scores, trials.label, columns(trials))
    curves = {
        name: detection_curve(scores, sets["eval"].label)
        for name, scores in sets["eval"].scores.items()
    }
    small = detection_curve(sets["small"].scores["a"], sets["small"].label)
    pair = {"a, 4000 trials": curves["a"], "a, 400 trials": small}
    for file, systems in (
        ("detection-systems.png", curves),
        ("detection-small-det.png", pair),
    ):
        det_curves(systems, points=OperatingPoint(0.05)).savefig(
            folder / file, dpi=80, bbox_inches="tight"
        )
    roc_curves({"a": small}, "a, 400 trials").savefig(
        folder / "detection-small-roc.png", dpi=90
    )
    draw_gaussians(0.0, 1.0, 2.0, 0.5).savefig(folder / "detection-gaussian.png", dpi=100)
    compare_same_area(folder)
    check_intervals(generator)
    print(f"\nwrote trials and pictures to {folder}")


def simulated(speakers: int, share_of_babble: float, generator: torch.Generator) -> Trials:
    """Draw trials, whose scores depend on the speaker of the test utterance."""
    number = speakers * TRIALS_PER_SPEAKER
    label = (torch.rand(number, generator=generator) < SHARE_OF_TARGETS).long()
    is_noisy = torch.rand(number, generator=generator) < share_of_babble
    speaker = torch.arange(number) // TRIALS_PER_SPEAKER
    alike = COMMON * torch.randn(number, generator=generator)
    alike += SPEAKER * torch.randn(speakers, generator=generator)[speaker]
    scores = {}
    for name, (distance, babble, scale, shift) in DETECTORS.items():
        mean = torch.where(label == 1, distance, babble * is_noisy)
        scores[name] = shift + scale * (
            mean + alike + OWN * torch.randn(number, generator=generator)
        )
    return Trials(speaker, is_noisy, label, scores)


def columns(trials: Trials) -> dict[str, list[str]]:
    """Return the names of the speakers and of the noise."""
    noise = ["babble" if is_noisy else "clean" for is_noisy in trials.is_noisy.tolist()]
    return {"speaker": [f"s{number}" for number in trials.speaker.tolist()], "noise": noise}


def write(
    path: Path,
    scores: Tensor,
    label: Tensor,
    others: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write scored trials as csv."""
    others = others or {}
    shown = [f"{score:.5f}" for score in scores.tolist()]
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["trial", *others, "score", "label"])
        lines.writerows(
            zip(range(len(shown)), *others.values(), shown, label.tolist(), strict=True)
        )


def gaussian_equal_error(
    nontarget_mean: float,
    nontarget_deviation: float,
    target_mean: float,
    target_deviation: float,
) -> tuple[float, float]:
    """Compute the rate at which Gaussian scores have as high a miss rate as false-alarm rate, and its threshold."""
    deviations = nontarget_deviation + target_deviation
    threshold = (
        nontarget_mean * target_deviation + target_mean * nontarget_deviation
    ) / deviations
    return NormalDist().cdf((nontarget_mean - target_mean) / deviations), threshold


def draw_gaussians(
    nontarget_mean: float,
    nontarget_deviation: float,
    target_mean: float,
    target_deviation: float,
) -> Figure:
    """Draw both densities, and the equal areas of errors on the two sides of the threshold."""
    rate, threshold = gaussian_equal_error(
        nontarget_mean, nontarget_deviation, target_mean, target_deviation
    )
    axes = Figure(figsize=(7, 3), layout="constrained").add_subplot(
        xlabel="score", ylabel="density", ylim=(0, 0.9)
    )
    scores = torch.linspace(-3, 4, 701, dtype=torch.float64)

    def draw(
        density: Tensor, is_wrong: Tensor, *, name: str, errors: str, colour: str
    ) -> None:
        axes.plot(scores, density, color=colour, label=name)
        axes.fill_between(
            scores[is_wrong],
            density[is_wrong],
            color=colour,
            alpha=0.4,
            label=f"{errors}, {100 * rate:.2f} %",
        )

    nontargets = torch.distributions.Normal(nontarget_mean, nontarget_deviation)
    draw(
        nontargets.log_prob(scores).exp(),
        scores >= threshold,
        name="non-targets",
        errors="false alarms",
        colour=NONTARGETS,
    )
    targets = torch.distributions.Normal(target_mean, target_deviation)
    draw(
        targets.log_prob(scores).exp(),
        scores < threshold,
        name="targets",
        errors="misses",
        colour=TARGETS,
    )
    axes.axvline(
        threshold,
        color=BLACK,
        linestyle=":",
        linewidth=0.9,
        label=f"threshold {threshold:.4f}",
    )
    axes.legend(fontsize=9, loc="upper left")
    return axes.figure


def compare_same_area(folder: Path) -> None:
    """Write and draw two detectors with the same area and the same equal error rate.

    Scores are quantiles of the distributions, so that no chance is in them. Those of non-targets have mean 0 and
    deviation 1. Targets of mean m and deviation s, and others of mean m / s and deviation 1 / s, have ROCs that are
    mirror images at the diagonal from (0, 1) to (1, 0).
    """
    curves = {}
    labels = torch.cat([torch.ones(1000), torch.zeros(9000)]).long()
    nontargets = quantiles(9000)
    for name, mean, deviation in (("wide", 2.8, 2.0), ("narrow", 1.4, 0.5)):
        scores = torch.cat([mean + deviation * quantiles(1000), nontargets])
        write(folder / f"{name}.csv", scores, labels)
        curves[name] = detection_curve(scores, labels)
    roc_curves(curves, "the same area, the same equal error rate").savefig(
        folder / "detection-same-area.png", dpi=90
    )


def quantiles(number: int) -> Tensor:
    """Return equally likely quantiles of the standard normal distribution."""
    return ndtri((torch.arange(number, dtype=torch.float64) + 0.5) / number)


def check_intervals(generator: torch.Generator) -> None:
    """Print how often 95 % intervals of the false-alarm rate of a hold the true rate, over sets of new speakers."""
    sets, speakers = 300, 20
    threshold, babble = 2.4, BABBLE["eval"]
    clean = 1 - ndtr(torch.tensor(threshold) / DEVIATION)
    noisy = 1 - ndtr(torch.tensor(threshold - DETECTORS["a"].babble) / DEVIATION)
    truth = (1 - babble) * clean + babble * noisy
    hits = {"independent trials (Clopper-Pearson)": 0, "whole speakers (Gaffke)": 0}
    for _ in range(sets):
        trials = simulated(speakers, babble, generator)
        is_nontarget = trials.label == 0
        alarms = trials.scores["a"][is_nontarget] >= threshold
        speaker = trials.speaker[is_nontarget]
        counts, alarms_of = speaker.bincount().double(), speaker.bincount(alarms.double())
        most = counts.max().item()  # the largest speaker may be accepted never or always
        whole = bounded_mean_interval(
            torch.cat([alarms_of, torch.tensor([0.0, most])]),
            torch.cat([torch.ones(speakers), torch.zeros(2)]),
            per=torch.cat([counts, torch.tensor([most, most])]),
        )
        independent = clopper_pearson(int(alarms.sum()), len(alarms))
        for name, (low, high) in zip(hits, (independent, whole), strict=True):
            hits[name] += int(low <= truth <= high)
    print(f"\ntrue false-alarm rate of a at a threshold of {threshold}: {truth:.4f}")
    print(f"95 % intervals of {sets} sets of {speakers} speakers hold it in")
    for name, count in hits.items():
        print(f"  {name:37} {100 * count / sets:.1f} %")


if __name__ == "__main__":
    main()
