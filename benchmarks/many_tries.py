"""Show how often one of many tries misleads: a gate at ten sample sizes, and the best of 30 equal epochs.

Run: python -m benchmarks.many_tries [RUNS]

The new model is exactly at each limit, so no try should pass. Each run of the gate collects rows and looks after every
200; each run of epochs draws their wrong decisions, of which half are the same in all epochs.
"""

import sys

import torch
from torch import Tensor

from benchmarks.gates import CONCERN
from mpcs_torch import evaluate
from mpcs_torch.learning.selection import Epoch, as_good_as
from mpcs_torch.tables import Table

GATES = {"misclassification_rate": "<", "expected_concern": "<", "recall[green]": ">"}
SIZES = range(200, 2001, 200)
TRUTH = 1_000_000
EPOCHS, SAMPLES, ERROR_RATE = 30, 10_000, 0.005


def scored(rows: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw scores and labels."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.multinomial(
        torch.tensor([0.4, 0.3, 0.3]), rows, replacement=True, generator=generator
    )
    noise = torch.randn(rows, 3, generator=generator, dtype=torch.float64)
    return (noise + 2 * torch.eye(3)[target]).softmax(1), target


def passing_gates(runs: int) -> Table:
    """Return the percentage of runs in which a model at its limit passes at one of the sizes."""
    metrics = ["accuracy", "misclassification_rate", "expected_concern"]
    at_limit = evaluate(
        *scored(TRUTH, 0), concern=CONCERN, metrics=metrics, intervals=False
    )
    gates = [f"{name} {sign} {at_limit.value(name)}" for name, sign in GATES.items()]
    passed = torch.zeros(runs, 2, len(gates), dtype=torch.bool)
    for run in range(runs):
        probs, target = scored(max(SIZES), run + 1)
        for size in SIZES:
            result = evaluate(probs[:size], target[:size], concern=CONCERN, metrics=metrics)
            for place, looks in enumerate((1, len(SIZES))):
                holds = [outcome.holds for outcome in result.check(*gates, looks=looks)]
                passed[run, place] |= torch.tensor([is_kept is True for is_kept in holds])
    shares = passed.double().mean(0).mul(100).T.tolist()
    rows = [
        [name, f"{unplanned:.3g} %", f"{planned:.3g} %"]
        for name, (unplanned, planned) in zip(GATES, shares, strict=True)
    ]
    return Table(["gate", "passes once, looks=1", "passes once, looks=10"], rows)


def missing_epochs(runs: int) -> float:
    """Return the percentage of runs in which one of equal epochs is not among those that may be as good."""
    generator = torch.Generator().manual_seed(0)
    mean = SAMPLES * ERROR_RATE / 2
    missing = 0
    for _ in range(runs):
        in_all = torch.poisson(torch.tensor(mean), generator=generator)
        alone = torch.poisson(torch.full((EPOCHS,), mean), generator=generator)
        counts = (in_all + alone).tolist()
        epochs = [
            Epoch(number, {"dangerous": count}) for number, count in enumerate(counts)
        ]
        pick = min(epochs, key=lambda epoch: epoch.values["dangerous"])
        others = as_good_as(epochs, "dangerous", pick)
        missing += len(others) < EPOCHS - 1
    return 100 * missing / runs


def main(runs: int = 1000) -> None:
    """Print a table of gates, and the share of runs with a missing epoch."""
    print(passing_gates(runs).markdown())
    print(
        f"\nOf {EPOCHS} equal epochs, one is missing in {missing_epochs(runs):.3g} % of runs."
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
