"""Show how often a difference is shown that a sentence calls detectable with a chance of 9 in 10.

Run: python -m benchmarks.detectable_differences [REPETITIONS]

"One of about 1.03 points would have been shown with a chance of 9 in 10" stands below a comparison that shows no
difference. Here, two equally good models are compared on a first sample. Then each of the others is drawn from a
population in which one model is better by just the difference that the first sample's sentence names.
"""

import re
import sys
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch import evaluate
from mpcs_torch.evaluation import Result
from mpcs_torch.tables import Table, in_percent

REPETITIONS = 400
NAMED = re.compile(r"One of about (\S+) points would have been shown")


class Design(NamedTuple):
    """Clusters of rows, and how often a model is wrong where the other one is right."""

    clusters: int
    size: int
    alone: float
    """The share of rows that one model decides wrongly and the other one does not, for each of both."""
    both: float
    """The share of rows that both decide wrongly."""


DESIGNS = {
    "300 rows, 10 % differ": Design(300, 1, 0.05, 0.1),
    "3000 rows, 3 % differ": Design(3000, 1, 0.015, 0.03),
    "3000 rows, 0.4 % differ": Design(3000, 1, 0.002, 0.002),
    "100 patients of 10 images, 10 % differ": Design(100, 10, 0.05, 0.1),
}


def drawn(design: Design, difference: float, generator: torch.Generator) -> Result:
    """Compare models on a sample; B is wrong more seldom than A by ``difference``.

    Half of the patients are hard: all differences are in their images, twice as many as on average.
    """
    is_hard = torch.rand(design.clusters, generator=generator) < 0.5
    clusters = torch.arange(design.clusters).repeat_interleave(design.size)
    chance = torch.rand(len(clusters), generator=generator)
    scale = torch.where(is_hard, 2.0, 0.0)[clusters] if design.size > 1 else 1.0
    only_a = scale * (design.alone + difference / 2)
    only_b = scale * (design.alone - difference / 2)
    is_a_wrong: Tensor = chance < only_a
    is_b_wrong = ~is_a_wrong & (chance < only_a + only_b)
    is_both = chance > 1 - design.both
    wrong = {"A": is_a_wrong | is_both, "B": is_b_wrong | is_both}
    return evaluate(
        {name: each.long() for name, each in wrong.items()},
        torch.zeros(len(clusters), dtype=torch.int64),
        class_names=["right", "wrong"],
        metrics=["misclassification_rate"],
        clusters=clusters if design.size > 1 else None,
    )


def main(repetitions: int) -> None:
    """Print the share of samples in which the named difference is shown."""
    rows = list[dict[str, str]]()
    for name, design in DESIGNS.items():
        generator = torch.Generator().manual_seed(0)
        found = None
        while found is None:  # the first sample that shows no difference
            [comparison] = drawn(design, 0.0, generator).comparisons
            found = NAMED.search(comparison.verdict)
        named = float(found[1]) / 100
        shown = sum(
            drawn(design, named, generator).comparisons[0].better == "B"
            for _ in range(repetitions)
        )
        cells = {"design": name, "named": f"{100 * named:.3g} points"}
        rows.append({**cells, "shown": in_percent(shown / repetitions)})
    print(Table.from_records(rows).markdown())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else REPETITIONS)
