"""Show how often a gate passes a new model that fails where the sample may not show it.

Run: python -m benchmarks.rare_failures [REPETITIONS] [DESIGN ...]

The new model is as good as the old one, with errors of its own, except for rare rows, patients or a rare class. Each
gate is ``metric < old + true difference`` (or ``>``), which the new model breaks just so: at most 2.5 % may pass.
Beside it stands how many would pass if gates used the ends of intervals. Intervals are those of differences, which
should hold the true difference in 95 %.
"""

import sys
from collections.abc import Callable
from math import nan
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch import ConcernSpec, evaluate
from mpcs_torch.evaluation import Requirement, Result
from mpcs_torch.tables import Table

REPETITIONS, TRUTH = 400, 300_000
FAILING = "old, failing"
CONCERN = ConcernSpec(["a", "b", "c"], releases=[["a", "b"], ["b", "a"]])


class Sample(NamedTuple):
    """Rows of the old and the new model."""

    models: dict[str, Tensor]
    target: Tensor
    further: dict[str, Any]
    """Arguments of `evaluate`, such as clusters."""


class Design(NamedTuple):
    """A population, and how much of it is drawn."""

    draw: Callable[[int, torch.Generator], Sample]
    units: int
    metrics: tuple[str, ...]


def _models(target: Tensor, fails: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
    """Return probabilities of an old model, and of another one, equally good, that is surely wrong where it ``fails``.

    ``FAILING`` is the old model with the same failures: its difference gives the truth with little noise.
    """
    noise = torch.randn(2, len(target), 3, generator=generator)
    old, other = (3 * torch.eye(3)[target] + noise).softmax(dim=-1)
    wrong = (0.999 * torch.eye(3) + 0.0005 * (1 - torch.eye(3)))[(target + 1) % 3]
    new = torch.where(fails.unsqueeze(1), wrong, other)
    return {"old": old, "new": new, FAILING: torch.where(fails.unsqueeze(1), wrong, old)}


def rows(expected: float, of: int) -> Callable[[int, torch.Generator], Sample]:
    """Return a function that draws rows, of which ``expected`` in ``of`` fail."""

    def draw(number: int, generator: torch.Generator) -> Sample:
        target = torch.randint(0, 3, (number,), generator=generator)
        fails = torch.rand(number, generator=generator) < expected / of
        return Sample(_models(target, fails, generator), target, {})

    return draw


def patients(size: int, share: float) -> Callable[[int, torch.Generator], Sample]:
    """Return a function that draws patients, of whom a share fails in each of ``size`` images."""

    def draw(number: int, generator: torch.Generator) -> Sample:
        clusters = torch.arange(number).repeat_interleave(size)
        target = torch.randint(0, 3, (len(clusters),), generator=generator)
        fails = (torch.rand(number, generator=generator) < share)[clusters]
        return Sample(_models(target, fails, generator), target, {"clusters": clusters})

    return draw


def rare_class(share: float, missed: float) -> Callable[[int, torch.Generator], Sample]:
    """Return a function that draws rows, of which those of a rare class fail more often in the new model."""

    def draw(number: int, generator: torch.Generator) -> Sample:
        shares = torch.tensor([(1 - share) / 2, (1 - share) / 2, share])
        target = torch.multinomial(shares, number, replacement=True, generator=generator)
        fails = (target == 2) & (torch.rand(number, generator=generator) < missed)
        return Sample(_models(target, fails, generator), target, {})

    return draw


def heavy_class(rare: int, missed: float) -> Callable[[int, torch.Generator], Sample]:
    """Return a function that draws ``rare`` rows of 300 that stand for 30 % of use, and are missed more often."""

    def draw(number: int, generator: torch.Generator) -> Sample:
        severe = max(1, round(number * rare / 300))
        target = torch.cat(
            [
                torch.full((severe,), 2),
                torch.randint(0, 2, (number - severe,), generator=generator),
            ]
        )
        fails = (target == 2) & (torch.rand(number, generator=generator) < missed)
        return Sample(
            _models(target, fails, generator), target, {"prevalence": [0.35, 0.35, 0.3]}
        )

    return draw


MEANS = ("mpcs", "brier_score", "cross_entropy")
DESIGNS = {
    "1 of 1000 rows fails": Design(rows(1, 1000), 1000, MEANS),
    "3 of 1000 rows fail": Design(rows(3, 1000), 1000, MEANS),
    "3 % of 60 patients fail in 20 images": Design(
        patients(20, 0.03), 60, ("misclassification_rate", *MEANS)
    ),
    "8 severe rows stand for 30 % of use": Design(
        heavy_class(8, 0.2), 300, ("misclassification_rate", "dangerous_rate", "mcc")
    ),
    "9 rare rows of 300": Design(
        rare_class(0.03, 0.1), 300, ("macro_f1", "balanced_accuracy", "mcc")
    ),
    "10 rare rows of 1000": Design(
        rare_class(0.01, 0.1), 1000, ("balanced_error_rate", "auroc")
    ),
}
HIGHER = {"macro_f1", "balanced_accuracy", "mcc", "auroc"}


def measured(design: Design, seed: int) -> Result[Any]:
    """Evaluate the old and the new model on a sample."""
    sample = design.draw(design.units, torch.Generator().manual_seed(seed))
    models = {name: sample.models[name] for name in ("old", "new")}
    return evaluate(
        models,
        sample.target,
        concern=CONCERN,
        metrics=list(design.metrics),
        **sample.further,
    )


def true_differences(design: Design, units: int = TRUTH) -> dict[str, float]:
    """Return how much worse the new model is by each metric, from a large sample."""
    sample = design.draw(
        units // (20 if design.units < 100 else 1), torch.Generator().manual_seed(10_000)
    )
    models = {name: sample.models[name] for name in ("old", FAILING)}
    given: dict[str, Any] = {
        "concern": CONCERN,
        "metrics": list(design.metrics),
        "intervals": False,
    }
    found = evaluate(models, sample.target, **given, **sample.further)
    return {
        metric: found.value(metric, FAILING) - found.value(metric, "old")
        for metric in design.metrics
    }


def shares(design: Design, repetitions: int) -> list[list[str]]:
    """Return a row of text for each metric: shares of gates passed, and of intervals that hold the true difference."""
    truth = true_differences(design)
    results = [measured(design, seed) for seed in range(repetitions)]
    cells = []
    for metric in design.metrics:
        gate = Requirement(metric, ">" if metric in HIGHER else "<", truth[metric], "old")
        by_bounds = sum(
            outcome.holds for result in results for outcome in result.check(gate)
        )
        compared = [
            row.paired
            for result in results
            for row in result.comparisons
            if row.by.metric == metric
        ]
        by_ends = sum(
            gate.check(paired.difference, paired.low, paired.high).holds
            for paired in compared
        )
        holds = sum(paired.low <= truth[metric] <= paired.high for paired in compared)
        width = (
            sorted(paired.high - paired.low for paired in compared)[len(compared) // 2]
            if compared
            else nan
        )
        passed = [_percent(by_bounds, repetitions), _percent(by_ends, repetitions)]
        shown = [_percent(holds, len(compared)), str(len(compared)), f"{width:.3g}"]
        cells.append([metric, f"{truth[metric]:+.4f}", *passed, *shown])
    return cells


def _percent(number: int, of: int) -> str:
    return f"{100 * number / of:.1f} %" if of else ""


def main(repetitions: int = REPETITIONS, *names: str) -> None:
    """Print a row for each design and metric."""
    header = ["design", "metric", "true difference", "gates passed", "passed by intervals"]
    header += ["intervals that hold", "intervals", "median width"]
    body = [
        [name, *row]
        for name, design in DESIGNS.items()
        if not names or name in names
        for row in shares(design, repetitions)
    ]
    print(Table(header, body).markdown())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
