"""Show on simulated data how often 95 % intervals of values and of differences hold the true value.

Run: python -m benchmarks.coverage [REPETITIONS] [DESIGN ...]
"""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from math import isfinite, sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch import ConcernSpec, evaluate
from mpcs_torch.evaluation import Result, evaluate_detectors
from mpcs_torch.evaluation.fixed_thresholds import given_threshold
from mpcs_torch.functional import OperatingPoint, PairedDifference
from mpcs_torch.metrics.named_metrics import ENTRIES
from mpcs_torch.tables import Table

TRUTH = 400_000
"""The rows by which true values are estimated."""
HARD = [
    entry.name
    for entry in ENTRIES
    if entry.takes != "trials" and entry.takes_classes and not entry.no_interval
]
OWN = [
    entry.name for entry in ENTRIES if entry.name in HARD and not isinstance(entry.of, str)
]
"""Those of `HARD` that take shares of annotators, too; metrics of torchmetrics need one class for each row."""
COSTED = [entry.name for entry in ENTRIES if entry.takes == "costs"]
SOFT = [entry.name for entry in ENTRIES if entry.takes == "soft_labels"]


class Sample(NamedTuple):
    """Rows of two models."""

    preds: dict[str, Tensor]
    target: Tensor
    clusters: Tensor | None = None
    costs: Tensor | None = None


class Design(NamedTuple):
    """A population, and how many rows of it are drawn."""

    draw: Callable[[int, torch.Generator], Sample]
    rows: int
    concern: ConcernSpec | None = None
    metrics: Sequence[str] = HARD
    """Empty for detectors."""
    truth: int = TRUTH


def classes(
    number: int,
    skill: float,
    *,
    size: int = 1,
    shared: float = 0.0,
    bad: float = 0.0,
) -> Callable[[int, torch.Generator], Sample]:
    """Return a function that draws rows of two models that are equally good.

    Args:
        number: The number of classes, the last of which is the rarest.
        skill: How far the score of the true class is above the others.
        size: Rows of a cluster.
        shared: The part of the variance of scores that the rows of a cluster share.
        bad: The share of clusters in which the models know nothing.
    """

    def draw(rows: int, generator: torch.Generator) -> Sample:
        units = rows // size
        shares = torch.linspace(2, 0.5, number)
        target = torch.multinomial(shares, rows, replacement=True, generator=generator)
        patient = torch.arange(units).repeat_interleave(size)
        is_bad = (torch.rand(units, generator=generator) < bad)[patient]
        raised = torch.where(is_bad, 0.0, skill).double()
        preds = {}
        for name in ("A", "B"):
            own = torch.randn(rows, number, generator=generator, dtype=torch.float64)
            common = torch.randn(units, number, generator=generator, dtype=torch.float64)[
                patient
            ]
            scores = 1.5 * (sqrt(1 - shared) * own + sqrt(shared) * common)
            scores[torch.arange(rows), target] += raised
            preds[name] = scores.softmax(1)
        return Sample(preds, target, patient if size > 1 else None)

    return draw


def soft(rows: int, generator: torch.Generator) -> Sample:
    """Draw probabilities of 4 labels, and the shares of 5 annotators who gave each; the last label is rare."""
    settings: dict[str, Any] = {"generator": generator, "dtype": torch.float64}
    shares = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    truth = 1.5 * (torch.randn(rows, 4, **settings) + shares)
    votes = torch.rand(5, rows, 4, **settings) < truth.sigmoid()
    preds = {name: (truth + torch.randn(rows, 4, **settings)).sigmoid() for name in "AB"}
    return Sample(preds, votes.double().mean(0))


def annotated(rows: int, generator: torch.Generator) -> Sample:
    """Draw classes of which the last is rare, and the shares of 3 annotators who are wrong in 1 of 6 rows each."""
    truth = torch.multinomial(
        torch.tensor([0.5, 0.3, 0.17, 0.03]), rows, replacement=True, generator=generator
    )
    slips = torch.randint(4, (3, rows), generator=generator)
    # A slip is right in 1 of 4: 2 / 9 of slips make 1 of 6 votes wrong.
    votes = torch.where(torch.rand(3, rows, generator=generator) < 7 / 9, truth, slips)
    preds = {}
    for name in ("A", "B"):
        noise = torch.randn(rows, 4, generator=generator, dtype=torch.float64)
        preds[name] = (1.3 * noise + 3 * torch.eye(4)[truth]).softmax(1)
    return Sample(preds, torch.nn.functional.one_hot(votes, 4).double().mean(0))


def priced(fraud: float, spread: float) -> Callable[[int, torch.Generator], Sample]:
    """Return a function that draws claims, of which a share is fraud: paying it costs the amount, looking into any 5.

    Amounts are lognormal, with this spread of their logarithms.
    """

    def draw(rows: int, generator: torch.Generator) -> Sample:
        settings: dict[str, Any] = {"generator": generator, "dtype": torch.float64}
        target = (torch.rand(rows, generator=generator) < fraud).long()
        amounts = (4 + spread * torch.randn(rows, **settings)).exp()
        preds = {}
        for name in ("A", "B"):
            chance = (2 * torch.randn(rows, **settings) + 5 * target - 2.5).sigmoid()
            preds[name] = torch.stack([1 - chance, chance], 1)
        costs = torch.stack([amounts * target, torch.full_like(amounts, 5)], 1)
        return Sample(preds, target, costs=costs)

    return draw


def dear(cost: float) -> ConcernSpec:
    """Return a concern of 4 classes, in which one error costs much more than the others."""
    weights = torch.ones(4, 4)
    weights[3, 0] = cost
    return ConcernSpec(list("abcd"), weights=weights.tolist(), dangerous=cost)


RELEASED = ConcernSpec(list("abcd"), releases=[["a", "b"]], factor=0.3)
COSTS = ("dangerous_rate", "expected_concern", "least_concern_cost", "mpcs", "accuracy")


def trials(
    separation: float,
    targets: float,
    *,
    size: int = 1,
    shared: float = 0.0,
    joint: float = 0.0,
) -> Callable[[int, torch.Generator], Sample]:
    """Return a function that draws trials of two detectors that are equally good: log-likelihood ratios.

    Args:
        separation: Of targets and non-targets, in standard deviations.
        targets: The share of targets.
        size: Trials of a cluster, such as a speaker.
        shared: The part of the variance of scores that the targets of a cluster share, and its non-targets.
        joint: The correlation of what both kinds share: with 1, clusters with low targets have low non-targets.
    """

    def draw(rows: int, generator: torch.Generator) -> Sample:
        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        labels = torch.arange(rows) < targets * rows
        if size > 1:  # the same number in each cluster
            labels = torch.arange(rows) % size < round(targets * size)
        cluster = torch.arange(rows) // size
        shift = normal(2, len(cluster.unique()), 2)  # type: ignore[no-untyped-call]
        shift[..., 1] = joint * shift[..., 0] + sqrt(1 - joint**2) * shift[..., 1]
        alike = normal(rows)
        preds = {}
        for place, name in enumerate("AB"):
            of_cluster = shift[place, cluster, (~labels).long()]
            of_trial = sqrt(0.7) * alike + sqrt(0.3) * normal(rows)
            noise = sqrt(shared) * of_cluster + sqrt(1 - shared) * of_trial
            # The log-likelihood ratios of two Gaussians at this distance have means of +- d^2 / 2 and deviation d.
            mean = torch.where(labels, 1.0, -1.0) * separation**2 / 2
            preds[name] = separation * noise + mean
        return Sample(preds, labels, cluster if size > 1 else None)

    return draw


DESIGNS = {
    "4 classes, 50 rows": Design(classes(4, 2), 50, RELEASED),
    "4 classes, 300 rows": Design(classes(4, 2), 300, RELEASED),
    "10 classes, 1000 rows": Design(classes(10, 3), 1000),
    "100 classes, 1000 rows": Design(classes(100, 5), 1000),
    "100 classes, 10000 rows": Design(classes(100, 5), 10_000),
    "4 classes, 100000 rows": Design(classes(4, 2), 100_000, RELEASED, truth=4_000_000),
    "20 clusters of 5": Design(classes(4, 2, size=5, shared=0.5), 100, RELEASED),
    "20 clusters of 20": Design(classes(4, 2, size=20, shared=0.5), 400, RELEASED),
    "50 clusters of 50": Design(classes(4, 2, size=50, shared=0.3), 2500, RELEASED),
    "100 clusters of 10, 3 % bad": Design(
        classes(4, 4, size=10, shared=0.3, bad=0.03), 1000, RELEASED
    ),
    "40 clusters of 50, 3 % bad": Design(
        classes(4, 6, size=50, shared=0.1, bad=0.03), 2000, RELEASED
    ),
    "cost 20, 200 rows": Design(classes(4, 4), 200, dear(20), COSTS),
    "cost 50, 200 rows": Design(classes(4, 4), 200, dear(50), COSTS),
    "cost 100, 200 rows": Design(classes(4, 4), 200, dear(100), COSTS),
    "cost 100, 2000 rows": Design(classes(4, 4), 2000, dear(100), COSTS),
    "0.15 % errors, 300 rows": Design(classes(4, 7.3), 300, RELEASED),
    "0.15 % errors, 3000 rows": Design(classes(4, 7.3), 3000, RELEASED),
    "soft labels, 100 rows": Design(soft, 100, None, SOFT),
    "soft labels, 1000 rows": Design(soft, 1000, None, SOFT),
    "annotators, 200 rows": Design(annotated, 200, dear(30), OWN),
    "annotators, 1000 rows": Design(annotated, 1000, dear(30), OWN),
    "costs of rows, 200 rows": Design(priced(0.2, 0.5), 200, None, COSTED),
    "costs of rows, 1000 rows": Design(priced(0.2, 0.5), 1000, None, COSTED),
    "skewed costs of rows, 200 rows": Design(priced(0.1, 1.2), 200, None, COSTED),
    "skewed costs of rows, 1000 rows": Design(priced(0.1, 1.2), 1000, None, COSTED),
    "detectors, 50 targets and 50 others": Design(trials(3, 0.5), 100, None, ()),
    "detectors, 100 targets and 400 others": Design(trials(2, 0.2), 500, None, ()),
    "detectors, 20 targets and 1980 others": Design(trials(3, 0.01), 2000, None, ()),
    "detectors, 1000 targets and 9000 others": Design(trials(4, 0.1), 10_000, None, ()),
    "detectors, 0.1 % equal errors": Design(trials(6.2, 0.1), 10_000, None, ()),
    "detectors, 20 speakers of 50 trials": Design(
        trials(2.8, 0.2, size=50, shared=0.3), 1000, None, ()
    ),
    "detectors, 20 speakers, joint": Design(
        trials(2.8, 0.2, size=50, shared=0.3, joint=-0.9), 1000, None, ()
    ),
    "detectors, 100 speakers of 50 trials": Design(
        trials(2.8, 0.2, size=50, shared=0.3), 5000, None, ()
    ),
}


def measured(design: Design, sample: Sample, *, intervals: bool = True) -> Result[Any]:
    """Evaluate a sample."""
    if not design.metrics:
        points = [OperatingPoint(0.5), OperatingPoint(0.1)]
        return evaluate_detectors(
            sample.preds if intervals else sample.preds["A"],
            sample.target,
            points=points,
            llr=True,
            thresholds=given_threshold(1.0, points[:1]),
            clusters=sample.clusters if intervals else None,
            intervals=intervals,
        )
    return evaluate(
        sample.preds if intervals else sample.preds["A"],
        sample.target,
        concern=design.concern,
        metrics=design.metrics,
        clusters=sample.clusters if intervals else None,
        costs=sample.costs,
        intervals=intervals,
    )


class Compared(NamedTuple):
    """Numbers of samples by what a comparison of two equally good models says, for which 0 is the true difference."""

    misses: int = 0
    """The interval leaves out 0."""
    rejected: int = 0
    """The p-value is at most 5 %."""
    contradicts: int = 0
    """One of both, not the other."""

    def counting(self, paired: PairedDifference) -> "Compared":
        """Count one more comparison."""
        misses = paired.low > 0 or paired.high < 0
        is_rejected = paired.p_value <= 0.05
        return Compared(
            self.misses + misses,
            self.rejected + is_rejected,
            self.contradicts + (misses != is_rejected),
        )


def coverage(
    design: Design, repetitions: int, seed: int = 0
) -> tuple[dict[str, tuple[int, int]], dict[str, Compared]]:
    """Return for each metric how many intervals hold the true value, and how many samples have one.

    Returns:
        That; and the comparisons by metric.
    """
    generator = torch.Generator().manual_seed(seed)
    population = design.draw(design.truth, generator)
    true = measured(design, population, intervals=False).first.values
    hits, intervals = Counter[str](), Counter[str]()
    compared = dict[str, Compared]()
    for _ in range(repetitions):
        result = measured(design, design.draw(design.rows, generator))
        scores = result.models["A"]
        for name, (low, high) in scores.intervals.items():
            intervals[name] += 1
            hits[name] += low <= true[name] <= high
        for row in result.comparisons:
            before = compared.get(row.measure, Compared())
            compared[row.measure] = before.counting(row.paired)
    names = [name for name in scores.values if isfinite(true[name]) and name != "dangerous"]
    return {name: (hits[name], intervals[name]) for name in names}, compared


def main() -> None:
    """Print a table for each design."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    for name, design in DESIGNS.items():
        if len(sys.argv) > 2 and not any(wanted in name for wanted in sys.argv[2:]):
            continue
        counts, compared = coverage(design, repetitions)
        rows = [
            [
                metric,
                f"{100 * hits / intervals:.1f} %" if intervals else "",
                f"{100 * intervals / repetitions:.0f} %",
            ]
            for metric, (hits, intervals) in counts.items()
        ]
        header = ["metric", "hold the true value", "have an interval"]
        print(f"\n{name}\n\n{Table(header, rows).markdown()}\n", flush=True)
        for metric, samples in compared.items():
            of_intervals = f"{100 * samples.misses / repetitions:.1f} % of intervals"
            of_p_values = f"{100 * samples.rejected / repetitions:.1f} % of p-values"
            print(
                f"difference in {metric}: {of_intervals}, {of_p_values} of intervals and p-values find one, "
                f"{samples.contradicts} contradict",
                flush=True,
            )


if __name__ == "__main__":
    main()
