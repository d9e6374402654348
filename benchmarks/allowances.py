"""Show what accuracy buys: dangerous errors and accuracy on test samples by the accuracy that `recommended` may cost.

Run: python -m benchmarks.allowances [--seeds 20]

Under each seed, both losses of the recipe are trained alike, validation samples choose by each allowance, and test
samples by which nothing was chosen compare the choice with the plain model, decided by its most probable class.
"""

import argparse
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import torch

from examples.benchmark.fleets import Condition, Fleet, Model, Regime
from examples.benchmark.losses import FLOORED
from examples.benchmark.losses import PLAIN as CROSS_ENTROPY
from examples.benchmark.measures import Effect, difference, reduction
from examples.benchmark.tasks import TASKS, Task, all_samples
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.suggest import spec_from_order
from mpcs_torch.learning import recommended
from mpcs_torch.learning.recommended import MARGIN, PLAIN
from mpcs_torch.tables import Table
from mpcs_torch.trainer.data import DataSplits, Split
from mpcs_torch.trainer.networks import MODELS

ALLOWANCES = (0.0, 0.0005, 0.002, 0.005, 0.01, 0.02, 0.05)
GRADES, FREQUENCIES = (
    ("none", "mild", "moderate", "severe", "worst"),
    (0.5, 0.2, 0.15, 0.08, 0.07),
)


def graded(root: Path) -> DataSplits:
    """Draw samples of five grades, the worse the rarer, that overlap with their neighbours."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.multinomial(
        torch.tensor(FREQUENCIES), 4000, replacement=True, generator=generator
    )
    inputs = torch.randn(4000, 6, generator=generator) + labels.unsqueeze(1) * torch.tensor(
        [1.0, 0.8, 0.5, 0, 0, 0]
    )
    return DataSplits(
        Split(inputs[:3000], labels[:3000]), Split(inputs[3000:], labels[3000:]), GRADES
    )


def graded_concern(names: tuple[str, ...]) -> ConcernSpec:
    """Return costs that grow with the distance, 5 times as high for too low a grade; from 0.5 on, dangerous."""
    costs = spec_from_order(names, under=5)
    return ConcernSpec(names, weights=costs.weights, dangerous=0.5)


GRADED = Task(
    "five grades, MLP",
    partial(all_samples, load=graded),
    graded_concern,
    partial(MODELS["mlp"], hidden=32),
    steps=400,
    shares=(0.4, 0.3),
)
CHOSEN = (TASKS["digits, MLP"], TASKS["breast cancer, MLP"], GRADED)


def rates_of(task: Task, seed: int) -> dict[float | str, tuple[float, float]]:
    """Return the shares of dangerous errors and of right decisions on test samples, plainly and by each allowance."""
    concern, parts = task.spec(Path()), task.parts(Path(), seed)
    labels = task.samples(Path()).labels
    validation, test = {}, {}
    for name, loss in ((PLAIN, CROSS_ENTROPY), (MARGIN, FLOORED)):
        fleet = Fleet(
            task, Regime(loss, 0.01, Condition()), [Model(setting=0.0, seed=seed)], Path()
        )
        fleet.train()
        validation[name], test[name] = (
            fleet.outputs(0, parts.validation),
            fleet.outputs(0, parts.test),
        )
    decisions: dict[float | str, torch.Tensor] = {PLAIN: test[PLAIN].argmax(dim=1)}
    for allowed in ALLOWANCES:
        choice = recommended(concern, max_accuracy_loss=allowed).choose(
            validation, labels[parts.validation]
        )
        decisions[allowed] = choice.rule(test[choice.name])
    target, is_dangerous = labels[parts.test], concern.dangerous_pairs()
    return {
        way: (
            is_dangerous[target, each].double().mean().item(),
            (each == target).double().mean().item(),
        )
        for way, each in decisions.items()
    }


def main() -> None:
    """Print a row for each task and allowance, with intervals over seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    seeds = range(100, 100 + parser.parse_args().seeds)
    warnings.simplefilter("ignore")
    torch.set_num_threads(
        1
    )  # for so small models, waiting for other threads takes most of the time
    rows = []
    for task in CHOSEN:
        of_seeds = [rates_of(task, seed) for seed in seeds]
        plain = np.array([each[PLAIN] for each in of_seeds])
        for allowed in ALLOWANCES:
            ours = np.array([each[allowed] for each in of_seeds])
            points, saved = (
                difference(ours[:, 1], plain[:, 1]),
                reduction(ours[:, 0], plain[:, 0]),
            )
            changes = [
                _written(points, 100, 2),
                _written(Effect(-saved.value, -saved.high, -saved.low), 100, 1),
            ]
            rows.append(
                [
                    task.name,
                    f"{100 * allowed:g}",
                    *changes,
                    f"{1e4 * ours[:, 0].mean():.0f}",
                ]
            )
    header = [
        "task",
        "points allowed",
        "points of accuracy",
        "% of dangerous errors",
        "dangerous errors in 10 000",
    ]
    print(Table(header, rows).markdown())


def _written(effect: Effect, unit: float, digits: int) -> str:
    def signed(number: float) -> str:
        return f"{unit * number:+.{digits}f}"

    return f"{signed(effect.value)} [{signed(effect.low)}, {signed(effect.high)}]"


if __name__ == "__main__":
    main()
