"""Count how often 95 % intervals of further metrics and designs hold the true value.

Run: python -m benchmarks.further_designs [DRAWS]
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch import ConcernSpec, evaluate
from mpcs_torch.cli.console import counting_bar
from mpcs_torch.evaluation import Result, evaluate_detectors
from mpcs_torch.evaluation.fixed_thresholds import given_threshold
from mpcs_torch.functional import OperatingPoint
from mpcs_torch.tables import Table

DRAWS = 500
POINT = OperatingPoint(0.5)
TRUTH = 400_000
"""The rows by which true values are estimated."""
CONCERN = ConcernSpec(
    ["other", "benign", "tumour"], weights=[[0, 1, 1], [1, 0, 1], [9, 9, 0]]
)
FURTHER = ["mean_severity", "dangerous_gap", "cost_gap"]


class Sample(NamedTuple):
    """Rows of one model, as `evaluate` takes them."""

    preds: Tensor
    target: Tensor
    further: dict[str, Any]


class Design(NamedTuple):
    """A population, and how many units of it are drawn."""

    name: str
    draw: Callable[[int, torch.Generator], Sample]
    units: int
    metrics: Sequence[str]
    truth: int = TRUTH
    """The units by which true values are estimated."""


def patients(share: float) -> Callable[[int, torch.Generator], Sample]:
    """Draw calibrated probabilities of three classes, of which tumours have a ``share``."""
    priors = torch.tensor([(1 - share) / 2, (1 - share) / 2, share], dtype=torch.float64)

    def draw(rows: int, generator: torch.Generator) -> Sample:
        target = torch.multinomial(priors, rows, replacement=True, generator=generator)
        seen = torch.randn(rows, 3, generator=generator, dtype=torch.float64)
        seen[torch.arange(rows), target] += 2
        # The density of what is seen is proportional to exp(2 seen) for the true class.
        probs = (2 * seen + priors.log()).softmax(1)
        return Sample(probs, target, {"concern": CONCERN})

    return draw


def images(number: int, generator: torch.Generator) -> Sample:
    """Draw 16 x 16 pixels of images that are of different difficulty."""
    target = torch.randint(2, (number, 16, 16), generator=generator)
    logits = torch.randn(number, 2, 16, 16, generator=generator)
    skill = 2 + torch.randn(number, 1, 1, 1, generator=generator)
    logits += skill * torch.nn.functional.one_hot(target, 2).movedim(-1, 1)
    return Sample(logits.softmax(1), target, {})


def unlike_clusters(number: int, generator: torch.Generator) -> Sample:
    """Draw clusters of 10 rows; 1 in 15 is 13 times as large, and harder."""
    is_large = torch.rand(number, generator=generator) < 1 / 15
    sizes = torch.where(is_large, 130, 10)
    cluster = torch.arange(number).repeat_interleave(sizes)
    recall = torch.where(is_large, 0.6, 0.9)[cluster]
    target = torch.randint(3, cluster.shape, generator=generator)
    is_right = torch.rand(cluster.shape, generator=generator) < recall
    preds = torch.where(is_right, target, (target + 1) % 3)
    return Sample(preds, target, {"clusters": cluster, "class_names": 3})


def repeated(rows: int, generator: torch.Generator) -> Sample:
    """Draw rows, each of which occurs twice."""
    sample = patients(0.2)(rows, generator)
    return Sample(sample.preds.repeat(2, 1), sample.target.repeat(2), sample.further)


DESIGNS = [
    *[
        Design(
            f"{100 * share:g} % tumours, {rows} rows",
            patients(share),
            rows,
            [f"net_benefit[tumour@{threshold}]" for threshold in (0.05, 0.1, 0.3)],
        )
        for share in (0.03, 0.15)
        for rows in (200, 1000)
    ],
    *[
        Design(f"20 % tumours, {rows} rows", patients(0.2), rows, FURTHER)
        for rows in (150, 300, 600, 1000)
    ],
    Design("30 images, pixel by pixel", images, 30, ["accuracy"], truth=4000),
    Design("24 clusters, a few large and hard", unlike_clusters, 24, ["accuracy"], 40_000),
    Design("100 rows, each twice, as 200 rows", repeated, 100, ["accuracy"]),
]


def measured(design: Design, units: int, seed: int, *, intervals: bool) -> Result[Any]:
    """Evaluate a sample of ``units``."""
    sample = design.draw(units, torch.Generator().manual_seed(seed))
    return evaluate(
        sample.preds,
        sample.target,
        metrics=list(design.metrics),
        intervals=intervals,
        **sample.further,
    )


def coverage(design: Design, draws: int) -> Iterator[list[str]]:
    """Yield a row of text for each metric."""
    true = measured(design, design.truth, draws, intervals=False)
    results = [
        measured(design, design.units, seed, intervals=True) for seed in range(draws)
    ]
    for metric in design.metrics:
        truth = true.value(metric)
        given = [result.interval(metric) for result in results]
        intervals = [ends for ends in given if isinstance(ends, tuple)]
        held = sum(low <= truth <= high for low, high in intervals)
        share = f"{100 * held / len(intervals):.1f} %" if intervals else ""
        yield [
            design.name,
            metric,
            f"{truth:.4f}",
            share,
            f"{100 * len(intervals) / draws:.0f} %",
        ]


def worst_groups(number: int, draws: int) -> list[str]:
    """Return a row of text: how often the worst of ``number`` groups is named as one that may be the worst."""
    recalls = torch.linspace(0.8, 0.9, number)
    group = torch.arange(number).repeat_interleave(100)
    names = [f"site {place}" for place in range(number)]
    held = 0
    for seed in range(draws):
        generator = torch.Generator().manual_seed(seed)
        target = torch.randint(3, group.shape, generator=generator)
        is_right = torch.rand(group.shape, generator=generator) < recalls[group]
        preds = torch.where(is_right, target, (target + 1) % 3)
        result = evaluate(
            preds,
            target,
            metrics=["accuracy"],
            groups={"site": [names[place] for place in group.tolist()]},
            class_names=3,
        )
        [by_site] = result.groups
        held += "site 0" in by_site.may_be_worst()
    share = f"{100 * held / draws:.1f} %"
    return [f"{number} sites of 100 rows", "the worst site", "site 0", share, "100 %"]


def speakers(draws: int, *, as_clusters: bool) -> list[str]:
    """Return a row of text for the cost of 20 speakers with 10 target and 40 other trials each."""
    held = 0
    threshold = given_threshold(1.0, [POINT])[0]
    # Both rates are the share of a normal distribution beyond 1, so the normalised cost is twice that.
    truth = 1 - torch.erf(torch.tensor(1.0) / 2**0.5).item()
    for seed in range(draws):
        generator = torch.Generator().manual_seed(seed)
        speaker = torch.arange(20).repeat_interleave(50)
        labels = (torch.arange(1000) % 5 == 0).long()
        shift = torch.randn(20, generator=generator)[speaker]
        noise = 0.6 * shift + 0.8 * torch.randn(1000, generator=generator)
        # Speakers with high scores of targets have low ones of others, so that errors of both kinds come together.
        result = evaluate_detectors(
            2 * labels + noise * (1 - 2 * labels),
            labels,
            points=[POINT],
            thresholds=[threshold],
            clusters=speaker if as_clusters else None,
        )
        ends = result.interval(threshold.name)
        assert isinstance(ends, tuple)
        low, high = ends
        held += low <= truth <= high
    name = "20 speakers of 50 trials, " + (
        "as clusters" if as_clusters else "as 1000 trials"
    )
    return [name, threshold.name, f"{truth:.4f}", f"{100 * held / draws:.1f} %", "100 %"]


def main(draws: int = DRAWS) -> None:
    """Print a row for each design and metric."""
    rows = list[list[str]]()
    with counting_bar("designs", len(DESIGNS)) as advance:
        for design in DESIGNS:
            rows += coverage(design, draws)
            advance(1)
    rows += [worst_groups(number, draws) for number in (2, 5, 20)]
    rows += [speakers(draws, as_clusters=as_clusters) for as_clusters in (False, True)]
    header = ["design", "metric", "true value", "hold it", "have an interval"]
    print(Table(header, rows).markdown())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
