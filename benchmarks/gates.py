"""Show on simulated data how often a gate passes a model that is at its limit, and models that are better.

Run: python -m benchmarks.gates [EVALUATIONS]

There are three classes, of which the last is rare. Limits are the true values of a model whose scores of the true class
are higher by 2, so it breaks "<" just so. Better models are higher by more, and a reference, "old", by 2.1.
"""

import sys
from math import sqrt

import torch
from torch import Tensor

from mpcs_torch import ConcernSpec, evaluate
from mpcs_torch.evaluation import Requirement, Result
from mpcs_torch.tables import Table

CONCERN = ConcernSpec(
    ["red", "yellow", "green"], weights=[[0, 1, 1], [1, 0, 1], [20, 5, 0]], dangerous=5
)
METRICS = ["accuracy", "dangerous_rate", "expected_concern", "mpcs"]
GATES = {"dangerous_rate": "<", "expected_concern": "<", "mpcs": "<", "recall[green]": ">"}
SKILLS, REFERENCE, ROWS, TRUTH = (2.0, 2.2, 2.5, 3.0), 2.1, 1000, 1_000_000


def draw(rows: int, skill: float, seed: int) -> Result:
    """Evaluate a model beside the reference, with which it shares half of the variance of its scores."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.multinomial(
        torch.tensor([0.5, 0.4, 0.1]), rows, replacement=True, generator=generator
    )
    shared, own, other = torch.randn(3, rows, 3, generator=generator)

    def probs(noise: Tensor, higher: float) -> Tensor:
        return (
            (sqrt(0.5) * (shared + noise) + higher * torch.eye(3)[target])
            .mul(1.5)
            .double()
            .softmax(1)
        )

    models = {"old": probs(own, REFERENCE), "new": probs(other, skill)}
    return evaluate(
        models, target, concern=CONCERN, metrics=METRICS, intervals=rows < TRUTH
    )


def passes(result: Result, requirement: Requirement) -> bool:
    """Return whether the new model passes."""
    return any(
        outcome.model == "new" and outcome.holds for outcome in result.check(requirement)
    )


def main(evaluations: int = 1000) -> None:
    """Print the shares of passes in percent; of better models, of a fifth as many evaluations."""
    at_limit = draw(TRUTH, SKILLS[0], 0)
    gates = [
        Requirement(name, sign, round(at_limit.value(name, "new"), 4))
        for name, sign in GATES.items()
    ]
    worse = [at_limit.value("mpcs", name) for name in ("new", "old")]
    gates.append(Requirement("mpcs", "<", round(worse[0] - worse[1], 4), "old"))
    shares = list[list[float]]()
    for skill in SKILLS:
        seeds = range(1, 1 + (evaluations if skill == SKILLS[0] else evaluations // 5))
        results = (draw(ROWS, skill, seed) for seed in seeds)
        passed = torch.tensor(
            [[passes(result, gate) for gate in gates] for result in results]
        )
        shares.append(passed.double().mean(0).mul(100).tolist())
    header = [
        "requirement",
        "at the limit",
        *(f"higher by {skill}" for skill in SKILLS[1:]),
    ]
    cells = [
        [f"{share:.3g} %" for share in of_gate] for of_gate in zip(*shares, strict=True)
    ]
    print(
        Table(
            header, [[str(gate), *row] for gate, row in zip(gates, cells, strict=True)]
        ).markdown()
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
