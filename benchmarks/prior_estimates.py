"""Show how often intervals of estimated class priors hold the true ones, and what their decisions cost.

Run: python -m benchmarks.prior_estimates [--repetitions 20] [--draws 1000]

The population is the 1500 digits that an MLP was not trained on. Validation samples are drawn from it with equal class
frequencies, and unlabelled samples with each of ten priors. Costs and rates of decisions are those in the population.
A second table has as many draws as its standard errors need: of the same, of two classes, one of which becomes rare,
and of a poor model. The third is of images of patients, whose classes and noise are alike, and says how often there are
priors to paste, and how often one of these is wrong by more than a factor of 2.
"""

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.ndimage import rotate
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor

from benchmarks.held_out import DIGITS_TEST
from benchmarks.tabular_models import mlp
from examples.benchmark.tasks import TASKS
from mpcs_torch.calibration import estimate_priors
from mpcs_torch.calibration.priors import PriorEstimate, PriorMethod
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.inputs.confidence import LEVEL
from mpcs_torch.learning import DecisionRule, Limit
from mpcs_torch.tables import Table

VALIDATION, UNLABELLED = 1500, 1000
"""Numbers of samples."""
EVEN = torch.full((10,), 0.1, dtype=torch.float64)
ANGLES = (30, 45)
METHODS: tuple[PriorMethod, ...] = ("em", "black_box")
HIGHEST = 0.05
"""The limit of the errors of one class."""
SHOWN = ["in the interval", "width", "limit exceeded", "label shift refused"]
HEADER = [
    "priors",
    *SHOWN,
    *(f"rotated by {angle} refused" for angle in ANGLES),
    "cost / cost with the true priors",
]


class Population(NamedTuple):
    """Logits of the same images, upright and rotated."""

    logits: Tensor
    """(N, C)."""
    rotated: list[Tensor]
    """For each angle (N, C)."""
    target: Tensor
    """(N,)."""
    concern: ConcernSpec

    def draw(self, samples: int, priors: Tensor, generator: torch.Generator) -> Tensor:
        """Draw the places of so many samples with class frequencies (C,)."""
        weights = (priors / self.target.bincount())[self.target]
        return torch.multinomial(weights, samples, replacement=True, generator=generator)

    def cost(self, decisions: Tensor, priors: Tensor) -> float:
        """Return the mean cost of decisions (N,), none of them a referral, at class frequencies (C,)."""
        costs = self.concern.costs().double()[self.target, decisions]
        return float((costs * (priors / self.target.bincount())[self.target]).sum())


def population() -> Population:
    """Train the MLP of `held_out.digits` and predict the other digits, upright and rotated."""
    concern = TASKS["digits, MLP"].spec(Path())
    train, test, labels, target = train_test_split(
        *load_digits(return_X_y=True), test_size=DIGITS_TEST, random_state=0
    )
    predict = mlp(train / 16, labels, 0)

    def turned(angle: float) -> Any:
        images = rotate(test.reshape(-1, 8, 8), angle, axes=(1, 2), reshape=False, order=1)
        return predict(images.reshape(len(test), -1) / 16)

    return Population(
        predict(test / 16),
        [turned(angle) for angle in ANGLES],
        torch.from_numpy(target),
        concern,
    )


def ten_priors() -> list[Tensor]:
    """Return even priors, and nine that are drawn evenly from all."""
    drawn = np.random.default_rng(0).dirichlet(np.ones(10), size=9)
    return [EVEN, *torch.from_numpy(drawn)]


def holds(estimate: PriorEstimate, priors: Tensor) -> Tensor:
    """Return for each class whether its interval holds the true prior."""
    return (estimate.low <= priors) & (priors <= estimate.high)


def outcomes(
    data: Population, method: PriorMethod, repetitions: int
) -> Iterator[list[float]]:
    """Give the values of a row of the table, for each of ten priors and each repetition."""
    generator = torch.Generator().manual_seed(0)
    for number, priors in enumerate(ten_priors() * repetitions):
        known = data.draw(VALIDATION, EVEN, generator)
        unknown = data.draw(UNLABELLED, priors, generator)
        samples = data.logits[known], data.target[known]
        estimate = estimate_priors(*samples, data.logits[unknown], method=method)
        hits = holds(estimate, priors)
        p_values = [
            estimate_priors(*samples, rotated[unknown], method=method).p_value
            for rotated in data.rotated
        ]
        limited = number // 10 % 10  # each class in turn
        limit = Limit(HIGHEST, "any", of=data.concern.classes[limited])
        of_class = data.target == limited
        decisions = DecisionRule(data.concern, limit, priors=estimate.priors).fit(*samples)(
            data.logits[of_class]
        )
        wrong = ((decisions != limited) & (decisions >= 0)).double().mean()
        yield [
            float(hits.double().mean()),
            float((estimate.high - estimate.low).mean()),
            float(wrong > HIGHEST),
            *[float(p_value < LEVEL) for p_value in (estimate.p_value, *p_values)],
            _cost(data, samples, estimate.priors, priors),
            _cost(data, samples, priors, priors),
            _cost(data, samples, None, priors),
        ]


def simulated(
    shares: list[float], samples: int, skill: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw logits (N, C), of which softmax is not calibrated, and labels (N,) at these class frequencies."""
    target = torch.multinomial(
        torch.tensor(shares), samples, replacement=True, generator=generator
    )
    noise = torch.randn(samples, len(shares), generator=generator)
    return skill * torch.eye(len(shares))[target] + noise, target


def label_shift(data: Population, method: PriorMethod, draws: int) -> list[list[str]]:
    """Return for each design how often label shift alone is refused, and how often the intervals hold."""
    generator = torch.Generator().manual_seed(1)

    def of_digits(number: int) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor]:
        priors = ten_priors()[number % 10]
        known = data.draw(VALIDATION, EVEN, generator)
        unknown = data.draw(UNLABELLED, priors, generator)
        return (data.logits[known], data.target[known]), data.logits[unknown], priors

    def of_rare(_: int) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor]:
        rare = [0.99, 0.01]
        samples = simulated([0.8, 0.2], 200, 2.0, generator)
        unlabelled, _ = simulated(rare, 1000, 2.0, generator)
        return samples, unlabelled, torch.tensor(rare, dtype=torch.float64)

    def of_poor(_: int) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor]:
        shifted = [0.1, 0.2, 0.3, 0.4]
        samples = simulated([0.25] * 4, 400, 1.2, generator)
        unlabelled, _ = simulated(shifted, 1000, 1.2, generator)
        return samples, unlabelled, torch.tensor(shifted, dtype=torch.float64)

    rows = []
    for name, draw in (
        ("digits, ten priors", of_digits),
        ("one class in 100", of_rare),
        ("poor model", of_poor),
    ):
        refused, hits = [], []
        for number in range(draws):
            samples, unknown, priors = draw(number)
            estimate = estimate_priors(*samples, unknown, method=method)
            refused.append(estimate.p_value < LEVEL)
            hits.append(holds(estimate, priors).double().mean().item())
        rows.append([method, name, f"{np.mean(refused):.3f}", f"{np.mean(hits):.3f}"])
    return rows


class Patients(NamedTuple):
    """A design: numbers of patients in validation and in the deployment, and the images of each."""

    validation: int
    deployment: int
    images: int
    known: list[float]
    """Class frequencies of validation, by patients."""
    deployed: list[float]
    skill: float = 2.0
    is_informative: bool = False
    """Whether patients have 1 to ``images`` images, the more, the more of them are of the last class."""


DESIGNS = {
    "4 images of each patient": Patients(200, 300, 4, [0.25] * 4, [0.1, 0.2, 0.3, 0.4]),
    "1 to 12 images, more where the last class is": Patients(
        200, 300, 12, [0.4, 0.3, 0.3], [0.6, 0.3, 0.1], is_informative=True
    ),
    "20 and 30 patients with 20 images": Patients(
        20, 30, 20, [0.34, 0.33, 0.33], [0.5, 0.3, 0.2]
    ),
    "10 and 10 patients with 30 images": Patients(
        10, 10, 30, [0.34, 0.33, 0.33], [0.5, 0.3, 0.2]
    ),
    "five grades, two rare": Patients(
        375, 375, 4, [0.5, 0.2, 0.15, 0.08, 0.07], [0.5, 0.2, 0.15, 0.08, 0.07], 1.5
    ),
    "poor model, a rare class": Patients(
        150, 150, 4, [0.3, 0.3, 0.3, 0.1], [0.5, 0.3, 0.17, 0.03], 1.2
    ),
}
TIMES = 2.0


def images(
    design: Patients, shares: list[float], patients: int, random: np.random.Generator
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Draw logits (N, C), labels (N,) and patients (N,), and the class frequencies among the images of all patients."""
    mixes = random.dirichlet(np.array(shares), patients)
    sizes = np.full(patients, design.images)
    if design.is_informative:
        sizes = (1 + (design.images - 1) * (0.15 + 0.85 * mixes[:, -1])).round().astype(int)
    of = np.repeat(np.arange(patients), sizes)
    labels = (
        (random.random(len(of))[:, None] > mixes[of].cumsum(1))
        .sum(1)
        .clip(0, len(shares) - 1)
    )
    noise = (
        random.standard_normal((patients, len(shares)))[of],
        random.standard_normal((len(of), len(shares))),
    )
    logits = design.skill * np.eye(len(shares))[labels] + (noise[0] + noise[1]) / np.sqrt(2)
    frequencies = (mixes * sizes[:, None]).sum(0) / sizes.sum()
    return (
        torch.from_numpy(logits),
        torch.from_numpy(labels),
        torch.from_numpy(of),
        torch.from_numpy(frequencies),
    )


def by_patient(design: Patients, draws: int) -> list[str]:
    """Return how often intervals hold by image, of one image of each patient, and by patient; and what is to paste."""
    random = np.random.default_rng(0)
    priors = images(design, design.deployed, 400_000, random)[3]
    hits = {"rows": list[float](), "one": list[float](), "clusters": list[float]()}
    refused, ratios = [], list[float]()
    for _ in range(draws):
        preds, target, patients, _ = images(design, design.known, design.validation, random)
        unlabelled, _, others, _ = images(
            design, design.deployed, design.deployment, random
        )
        first = torch.from_numpy(np.unique(others.numpy(), return_index=True)[1])
        clusters = {"clusters": patients, "unlabelled_clusters": others + design.validation}
        given = {
            "rows": (unlabelled, {}),
            "one": (unlabelled[first], {}),
            "clusters": (unlabelled, clusters),
        }
        for name, (samples, more) in given.items():
            estimate = estimate_priors(preds, target, samples, **more)  # type: ignore[arg-type]
            has_interval = estimate.low.isfinite()
            hits[name] += holds(estimate, priors)[has_interval].double().tolist()
        refused.append(estimate.p_value < LEVEL)
        if not estimate.problem([*map(str, priors)]):
            ratios.append(float((estimate.priors / priors).log().abs().amax().exp()))
    shown = [float(np.mean(np.array(values))) for values in (*hits.values(), refused)]
    wrong = sum(ratio > TIMES for ratio in ratios)
    return [*(f"{value:.3f}" for value in shown), f"{len(ratios)} of {draws}", str(wrong)]


def _cost(
    data: Population, samples: tuple[Tensor, Tensor], used: Tensor | None, priors: Tensor
) -> float:
    rule = DecisionRule(data.concern, calibration="vector", priors=used).fit(*samples)
    return data.cost(rule(data.logits), priors)


def table(data: Population, repetitions: int) -> Table:
    """Return a row for each method, and one for the frequencies of validation."""
    rows = []
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            means = np.mean([*outcomes(data, method, repetitions)], axis=0)
        # The last ones are the costs with the estimate, with the true priors, and without priors.
        *shares, cost, best, without = means
        rows.append([method, *(f"{share:.3f}" for share in shares), f"{cost / best:.3f}"])
    return Table(
        HEADER,
        [*rows, ["those of validation", *[""] * len(shares), f"{without / best:.3f}"]],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--repetitions", type=int, default=20, help="for each of ten priors"
    )
    parser.add_argument(
        "--draws", type=int, default=1000, help="of each row of the second table"
    )
    asked = parser.parse_args()
    data = population()
    print(table(data, asked.repetitions).markdown(), flush=True)
    warnings.simplefilter("ignore")
    rows = [row for method in METHODS for row in label_shift(data, method, asked.draws)]
    print(
        Table(
            ["priors", "design", "label shift refused", "in the interval"], rows
        ).markdown()
    )
    header = [
        "design",
        "holds by image",
        "one image of each",
        "by patient",
        "label shift refused",
        "to paste",
        "wrong",
    ]
    print(
        Table(
            header,
            [[name, *by_patient(design, asked.draws)] for name, design in DESIGNS.items()],
        ).markdown()
    )
