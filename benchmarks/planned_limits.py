"""Compare the chances that `plan_limit` promises with the share of fits that decide all samples.

Run: python -m benchmarks.planned_limits [FITS] [--figure plan.png]

The population has two classes, benign and malignant, and a model whose rates of errors are the expected ones. Each fit
is of a `DecisionRule` to as many samples as planned. It attains its limit if it refers none of them.
"""

import argparse
import warnings
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor

from benchmarks.limits import in_words
from mpcs_torch import ConcernSpec
from mpcs_torch.calibration import CalibrationWarning
from mpcs_torch.evaluation import EvaluationWarning
from mpcs_torch.learning import (
    AllReferredWarning,
    DecisionRule,
    Limit,
    LimitPlan,
    UnattainableLimitError,
    plan_limit,
)
from mpcs_torch.plots.canvas import DARK_GREY, canvas, coloured, grid, legend_below
from mpcs_torch.tables import Table

FITS, CHANCE = 500, 0.9
CONCERN = ConcernSpec(["benign", "malignant"])
"""Both errors are dangerous, and cost the same: a calibration leaves decisions as they are."""


class Case(NamedTuple):
    """A limit to plan for, and the population."""

    limit: Limit
    expected: float
    """The rate of errors in each class."""
    share: float = 1.0
    """Of what counts."""
    malignant: float = 0.3
    """The share of malignant samples."""
    cluster_size: tuple[int, ...] = (1,)
    shared: float = 0.0

    def plan(self) -> LimitPlan:
        """Return the plan."""
        return plan_limit(
            self.limit,
            self.expected,
            chance=CHANCE,
            share=self.share,
            cluster_size=self.cluster_size,
            shared=self.shared,
        )


CASES = {
    "any of samples": Case(Limit(0.05, "any"), 0.02),
    "dangerous of a class": Case(
        Limit(0.05, of="malignant"), 0.015, share=0.1, malignant=0.1
    ),
    "no error expected": Case(Limit(0.02, of="malignant"), 0.0, share=0.1, malignant=0.1),
    "any of decided": Case(Limit(0.05, "any", of="decided"), 0.02),
    "clusters of 5, half shared": Case(
        Limit(0.05, "any"), 0.02, cluster_size=(5,), shared=0.5
    ),
    "clusters of 10, alike": Case(Limit(0.05, "any"), 0.02, cluster_size=(10,), shared=1.0),
    "clusters of 1 to 30": Case(
        Limit(0.05, "any"), 0.02, cluster_size=(1, 2, 4, 30), shared=0.3
    ),
    "clusters of 1 to 30, per cluster": Case(
        Limit(0.05, "any", per="cluster"), 0.02, cluster_size=(1, 2, 4, 30), shared=0.3
    ),
}


def share_attained(case: Case, fits: int) -> float:
    """Return the share of fits to the planned number of samples that decide all of them."""
    plan, attained = case.plan(), 0
    for seed in range(fits):
        logits, target, clusters = _drawn(
            case, plan.given, torch.Generator().manual_seed(seed)
        )
        rule = DecisionRule(CONCERN, case.limit, seed=seed)
        with warnings.catch_warnings():
            for kind in (AllReferredWarning, EvaluationWarning, CalibrationWarning):
                warnings.simplefilter("ignore", kind)
            try:
                rule.fit(
                    logits, target, clusters=None if case.cluster_size == (1,) else clusters
                )
            except UnattainableLimitError:  # by chance, too few samples of the class
                continue
        attained += bool((rule(logits) >= 0).all())
    return attained / fits


def _drawn(
    case: Case, units: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw logits and labels of clusters, and their codes; the less sure, the likelier an error is."""
    sizes = torch.tensor(case.cluster_size)
    sizes = sizes[torch.randint(len(sizes), (units,), generator=generator)]
    clusters = torch.arange(units).repeat_interleave(sizes)
    target = (torch.rand(units, generator=generator) < case.malignant).long()[clusters]
    if case.shared == 1 or sizes.max() == 1:
        rate = torch.full((units,), case.expected)
        is_error = (torch.rand(units, generator=generator) < rate)[clusters]
    else:
        alike = 1 / case.shared - 1
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(2**31, (1,), generator=generator)))
            rate = torch.distributions.Beta(
                case.expected * alike, (1 - case.expected) * alike
            ).sample((units,))
        is_error = torch.rand(len(clusters), generator=generator) < rate[clusters]
    decision = torch.where(is_error, 1 - target, target)
    sureness = torch.rand(len(target), generator=generator) * torch.where(
        is_error, 4.0, 8.0
    )
    return (
        torch.nn.functional.one_hot(decision, 2) * (0.01 + sureness)[:, None],
        target,
        clusters,
    )


def figure() -> Figure:
    """Draw the chance to attain a limit of a rare class against the number of samples, for three rates of errors."""
    text = "dangerous <= 1 % of malignant"
    plans = {
        f"{100 * rate:g} % of errors": plan_limit(Limit.parse(text), rate, share=0.05)
        for rate in (0.001, 0.003, 0.005)
    }
    drawn, axes = canvas(
        3.0, text, xlabel="samples to collect", ylabel="chance to refer none, %"
    )
    highest = 1.5 * max(plan.given for plan in plans.values())
    numbers = [round(highest * place / 400) for place in range(1, 401)]
    for name, plan, colour in coloured(plans):
        axes.plot(
            numbers,
            [100 * plan.chance_with(n) for n in numbers],
            color=colour,
            linewidth=1.5,
            label=name,
        )
        axes.plot(
            [plan.given] * 2, [0, 100 * CHANCE], color=colour, linewidth=0.9, linestyle="--"
        )
    axes.axhline(
        100 * CHANCE,
        color=DARK_GREY,
        linewidth=0.9,
        linestyle=":",
        label=f"wanted: {100 * CHANCE:g} %",
    )
    axes.set(xlim=(0, highest), ylim=(0, 101))
    grid(axes)
    return legend_below(drawn)


def main() -> None:
    """Print a row for each case as it finishes, and draw the figure if it is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument("fits", type=int, nargs="?", default=FITS)
    parser.add_argument(
        "--figure",
        type=Path,
        help="Where to draw chances against samples, such as plan.png.",
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.figure is not None:
        figure().savefig(arguments.figure, dpi=110)
    rows = []

    def add(
        name: str,
        limits: list[Limit],
        wanted: str,
        given: int,
        planned: float,
        attained: float,
    ) -> None:
        error = sqrt(attained * (1 - attained) / arguments.fits)
        rows.append(
            [
                name,
                in_words(limits),
                wanted,
                str(given),
                f"{planned:.3f}",
                f"{attained:.3f} ± {error:.3f}",
            ]
        )
        print(*rows[-1], sep=" | ", flush=True)

    for name, case in CASES.items():
        plan = case.plan()
        attained = share_attained(case, arguments.fits)
        add(
            name,
            [case.limit],
            f"{case.expected:g} errors",
            plan.given,
            plan.chance_with(plan.given),
            attained,
        )
    print(
        "\n"
        + Table(
            ["case", "limit", "expected", "given", "planned", "attained"], rows
        ).markdown()
    )


if __name__ == "__main__":
    main()
