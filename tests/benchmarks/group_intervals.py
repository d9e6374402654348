"""Show on simulated groups, and on soft labels, how often 95 % intervals of `mpcs score` hold the true value.

Run: python -m tests.benchmarks.group_intervals
"""

from collections import Counter
from collections.abc import Callable
from math import isfinite
from pathlib import Path

import torch
from torch import Tensor

from mpcs_torch import ConcernSpec
from mpcs_torch.metrics.by_name import ENTRIES
from mpcs_torch.scoring.chosen_metrics import ONLY_WHEN_ASKED, ChosenMetrics
from mpcs_torch.scoring.chunks import Chunk
from mpcs_torch.scoring.grouped_metrics import GroupedMetrics
from mpcs_torch.scoring.scores import Scores
from mpcs_torch.tables import Table

NAMES = list("abcd")
CONCERN = ConcernSpec(NAMES, releases=[["a", "b"]], factor=0.3)
SHARES = torch.tensor([0.4, 0.3, 0.2, 0.1])
GROUPS, RESAMPLES, TRUTH = 200, 200, 400_000
Draw = Callable[[int, torch.Generator], tuple[Tensor, Tensor]]


def hard(rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw probabilities of 4 classes, and labels."""
    target = torch.multinomial(SHARES, rows, replacement=True, generator=generator)
    scores = 1.5 * torch.randn(rows, 4, generator=generator, dtype=torch.float64)
    scores[torch.arange(rows), target] += 2
    return scores.softmax(1), target


def soft(rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw probabilities of 4 labels, and the shares of 5 annotators who gave each; the last label is rare."""
    truth = (torch.randn(rows, 4, generator=generator, dtype=torch.float64) + SHARES.log()).mul(1.5)
    votes = torch.rand(5, rows, 4, generator=generator, dtype=torch.float64) < truth.sigmoid()
    noise = torch.randn(rows, 4, generator=generator, dtype=torch.float64)
    return (truth + noise).sigmoid(), votes.double().mean(0)


def coverage(draw: Draw, rows: int, groups: int, chosen: ChosenMetrics, seed: int = 0) -> dict[str, tuple[int, int]]:
    """Return for each metric how many intervals of groups hold the true value, and how many groups have one.

    A number of dangerous errors, which grows with the rows, is left out.
    """
    generator = torch.Generator().manual_seed(seed)
    true = _measured(*draw(TRUTH, generator), TRUTH, chosen, 0)["0"].values
    found = _measured(*draw(rows * groups, generator), rows, chosen, RESAMPLES)
    held, given = Counter[str](), Counter[str]()
    for scores in found.values():
        for name, (low, high) in scores.intervals.items():
            given[name] += 1
            held[name] += low <= true[name] <= high
    return {name: (held[name], given[name]) for name in given if isfinite(true[name]) and name != "dangerous"}


def all_metrics(*, is_soft: bool) -> ChosenMetrics:
    """Return those that ``mpcs score`` shows."""
    entries = tuple(
        entry
        for entry in ENTRIES
        if entry.takes != "trials" and (entry.takes == "soft_labels") == is_soft and entry.name not in ONLY_WHEN_ASKED
    )
    return ChosenMetrics(entries, len(NAMES), None if is_soft else CONCERN, {}, is_soft)


def _measured(probs: Tensor, target: Tensor, rows: int, chosen: ChosenMetrics, resamples: int) -> dict[str, Scores]:
    grouped = GroupedMetrics(Path("simulated"), "group", chosen, resamples)
    codes = torch.arange(len(probs)) // rows
    grouped.add(Chunk(1, probs, target), codes, None)
    pooled = Scores(len(probs), NAMES, {}, None, None, None, has_concern=chosen.concern is not None)
    return grouped.scores("simulated", [str(code) for code in range(int(codes.max()) + 1)], pooled).groups


def main() -> None:
    """Print the tables."""
    torch.set_num_threads(1)
    tables = (("groups", hard, (50, 300)), ("sets of soft labels", soft, (100, 500)))
    for title, draw, sizes in tables:
        chosen = all_metrics(is_soft=draw is soft)
        found = [coverage(draw, rows, GROUPS, chosen) for rows in sizes]
        print(f"\nIntervals (95 %) that hold the true value, of those given for {GROUPS} {title}:\n")
        cells = [[name, *("{} of {}".format(*each[name]) for each in found)] for name in found[0]]
        print(Table(["metric", *(f"{rows} rows" for rows in sizes)], cells).markdown())


if __name__ == "__main__":
    main()
