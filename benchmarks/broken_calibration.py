"""Show what estimates before labels are worth once calibration breaks, and how often the calibration alarm shows it.

Run: python -m benchmarks.broken_calibration

Samples of three classes are drawn around three points of a plane. The model knows the exact probabilities of the first
deployment. Each row changes something. Of each row, 200 deployments are drawn for each number of labels.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch import ConcernSpec
from mpcs_torch.learning import DecisionRule, estimate_decisions
from mpcs_torch.tables import Table

CONCERN = ConcernSpec(
    ["benign", "unclear", "malignant"],
    weights=[[0, 1, 1], [1, 0, 1], [5, 2, 0]],
    dangerous=[["malignant", "benign"]],
)
PRIORS = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
CENTRES = torch.tensor([[0.0, 0.0], [1.8, 0.6], [2.4, 2.4]], dtype=torch.float64)
DEPLOYMENTS, LABELS, MANY = 200, (500, 4000), 400_000
OF_LABELS = "alarm, 500 / 4000 labels"
HEADER = [
    "deployment",
    "dangerous: estimated",
    "true",
    OF_LABELS,
    "cost: estimated",
    "true",
    OF_LABELS,
]


class World(NamedTuple):
    """A deployment: how samples are drawn, and what the model says of them."""

    priors: Tensor = PRIORS
    """The class frequencies of the samples."""
    noise: float = 0.0
    """The standard deviation of what is added to the inputs that the model sees."""
    scale: float = 1.0
    """The factor of the logits."""
    is_hard: bool = False
    """Whether samples come from where classes overlap: four of five of the others are left out."""
    known_priors: Tensor | None = None
    """The class frequencies by which the rule corrects the probabilities."""
    has_opposite_sites: bool = False
    """Whether the logits are times 1.5 at one half of the sites, and times 0.72 at the other."""


WORLDS = {
    "as calibrated": World(),
    "logits times 1.5: too sure": World(scale=1.5),
    "logits times 0.7: too unsure": World(scale=0.7),
    "malignant samples three times as frequent": World(
        torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    ),
    "the same, with the new frequencies in the rule (`priors`)": World(
        torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64),
        known_priors=torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64),
    ),
    "malignant samples a third as frequent": World(
        torch.tensor([0.76, 0.207, 0.033], dtype=torch.float64)
    ),
    "more samples where classes overlap": World(is_hard=True),
    "noise in the inputs, as of a worn scanner": World(noise=0.8),
    "too sure at one half of the sites, too unsure at the other": World(
        has_opposite_sites=True
    ),
}


def exact_logits(inputs: Tensor) -> Tensor:
    """Return the log-probabilities (N, 3), up to a constant, of the first deployment."""
    return PRIORS.log() - (inputs.unsqueeze(1) - CENTRES).square().sum(dim=2) / 2


def draw(world: World, samples: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return the logits and the labels of samples of a deployment."""
    number = 6 * samples if world.is_hard else samples
    target = torch.multinomial(world.priors, number, replacement=True, generator=generator)
    inputs = CENTRES[target] + torch.randn(
        number, 2, generator=generator, dtype=torch.float64
    )
    if world.is_hard:
        sure = exact_logits(inputs).softmax(dim=1).amax(dim=1) > 0.9
        kept = (
            (~sure | (torch.rand(number, generator=generator) < 0.2))
            .nonzero()
            .flatten()[:samples]
        )
        inputs, target = inputs[kept], target[kept]
    inputs = inputs + world.noise * torch.randn(
        len(inputs), 2, generator=generator, dtype=torch.float64
    )
    logits = world.scale * exact_logits(inputs)
    if world.has_opposite_sites:
        logits = logits * torch.where(
            torch.rand(len(logits), 1, generator=generator) < 0.5, 1.5, 0.72
        )
    return logits, target


def rule_of(world: World) -> DecisionRule:
    """Return the rule of a deployment, whose probabilities are right in the first one."""
    rule = DecisionRule(CONCERN, calibration=None)
    if world.known_priors is not None:
        rule.prior_ratio.copy_(world.known_priors / PRIORS)
    return rule


def row(name: str, world: World) -> list[str]:
    """Return the row of a deployment: estimates and true values of many samples, and the share of alarms."""
    rule, generator = rule_of(world), torch.Generator().manual_seed(0)
    alarms = torch.zeros(2, len(LABELS))
    for place, number in enumerate(LABELS):
        for _ in range(DEPLOYMENTS):
            logits, target = draw(world, number, generator)
            estimates = estimate_decisions(rule.assess(logits), CONCERN, target)
            alarms[:, place] += torch.tensor([estimate.is_alarm for estimate in estimates])
    logits, target = draw(world, MANY, generator)
    dangerous, cost = estimate_decisions(rule.assess(logits), CONCERN, target)
    of_dangerous, of_cost = [
        " / ".join(f"{100 * share / DEPLOYMENTS:.0f} %" for share in of_numbers)
        for of_numbers in alarms
    ]
    return [
        name,
        f"{100 * dangerous.value:.2f} %",
        f"{100 * (dangerous.value + dangerous.difference):.2f} %",
        of_dangerous,
        f"{cost.value:.3f}",
        f"{cost.value + cost.difference:.3f}",
        of_cost,
    ]


if __name__ == "__main__":
    print(Table(HEADER, [row(name, world) for name, world in WORLDS.items()]).markdown())
