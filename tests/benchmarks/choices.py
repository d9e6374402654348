"""Show how often a choice on validation samples is the best one: by counts, and as `recommended` does.

Run: python -m examples.benchmark MNIST digits simulated; then
python -m tests.benchmarks.choices runs/benchmark [--resamples 1000]

The predictions are those that the benchmark kept: of a plain model and the models with margins, on the validation and
test samples of its tuning seeds. These are taken for the population. Validation samples are drawn from it with
replacement, and a model and a decision factor are chosen by them: the fewest dangerous errors at an accuracy at most
0.05 points below the plain model's. The best choice is the one that the whole population makes.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from examples.benchmark.judging import MAX_ACCURACY_LOSS, RECIPE, Arm, Trials
from examples.benchmark.runs import outcome_of
from examples.benchmark.tasks import TASKS
from mpcs_torch.learning.choice import FACTORS, HARM, RIGHT, Options, calibrated, calibration_for, harm_matrix
from mpcs_torch.tables import Table

SIZES = {"MNIST, MLP": (2000, 10_000), "digits, MLP": (800,), "simulated, MLP": (1000,)}


class Chosen(NamedTuple):
    """The effect of a choice in the population."""

    is_best: bool
    harm: float
    """The change of dangerous errors in 10 000 samples."""
    too_inaccurate: float
    """By how many points more than allowed the accuracy falls."""


def population(trials: Trials, seed: int) -> Options:
    """Return the options on all samples of a seed."""
    rates = len(TASKS[trials.task].learning_rates)
    arms = [Arm("cross entropy", rates - 1)]
    arms += [arm for arm in trials.arms(RECIPE) if arm.setting % rates == rates - 1]
    outcomes = [outcome_of(trials.run(arm, seed)) for arm in arms]
    logits = [torch.cat([each.validation, each.test]) for each in outcomes]
    target = torch.cat([outcomes[0].validation_labels, outcomes[0].test_labels])
    harm = harm_matrix(TASKS[trials.task].spec(trials.data_root))
    probs = [calibrated(each, target, calibration_for(harm)) for each in logits]
    return Options.from_probs(probs, target, harm, FACTORS[:9])


def by_counts(options: Options) -> int:
    """Return the place with the fewest dangerous errors at an accuracy that is allowed, by labels alone."""
    counted = options.counted.mean(dim=2)
    sound = (counted[:, RIGHT] >= -MAX_ACCURACY_LOSS).nonzero().flatten().tolist()
    return min(sound, key=lambda place: counted[place, HARM].item())


def draws(options: Options, size: int, number: int, generator: torch.Generator) -> dict[str, list[Chosen]]:
    """Choose by counts and by scores, on samples that are drawn again and again."""
    truth = options.counted.mean(dim=2)
    best = by_counts(options)
    ways = {"counts": by_counts, "scores": lambda drawn: drawn.choose(MAX_ACCURACY_LOSS)}
    found: dict[str, list[Chosen]] = {name: [] for name in ways}
    for _ in range(number):
        at = torch.randint(0, options.counted.shape[2], (size,), generator=generator)
        drawn = Options(
            options.options, *(each[..., at] for each in (options.counted, options.estimated, options.scores))
        )
        for name, way in ways.items():
            place = way(drawn)
            lost = max(0.0, -truth[place, RIGHT].item() - MAX_ACCURACY_LOSS)
            found[name].append(Chosen(place == best, 1e4 * truth[place, HARM].item(), 100 * lost))
    return found


def main() -> None:
    """Print a row for each task, size and way of choosing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data-root", type=Path, default=Path("data"))
    parser.add_argument("--resamples", type=int, default=1000)
    given = parser.parse_args()
    rows = []
    for task, sizes in SIZES.items():
        seeds = TASKS[task].tuning_seeds
        populations = [population(Trials(task, given.data_root, given.folder), seed) for seed in seeds]
        for size in sizes:
            generator, found = torch.Generator().manual_seed(0), {}
            for options in populations:
                for name, chosen in draws(options, size, given.resamples // len(seeds), generator).items():
                    found.setdefault(name, []).extend(chosen)
            for name, chosen in found.items():
                is_best, harm, lost = np.mean(np.array(chosen, dtype=np.float64), axis=0)
                rows.append([task, str(size), name, f"{100 * is_best:.1f} %", f"{harm:+.1f}", f"{lost:.3f}"])
    header = [
        "task",
        "validation samples",
        "by",
        "the best choice",
        "dangerous in 10 000",
        "points below the allowance",
    ]
    print(Table(header, rows).markdown())


if __name__ == "__main__":
    main()
