"""Show on random splits of test predictions that a `DecisionRule` keeps its limit, and how many samples it decides.

Run: MPCS_DATA_ROOT=data python -m tests.benchmarks.guarantee [--figure risk-coverage.png]

Models, limits, sample sizes and seeds were fixed before the first run. See `random_splits` for the methods.
"""

import argparse
import os
from collections.abc import Callable, Iterator, Mapping
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from mpcs_torch.functional import RiskCoverage, risk_coverage_curve
from mpcs_torch.learning import DecisionRule
from mpcs_torch.plots import risk_coverage_figure
from mpcs_torch.tables import Table
from tests.benchmarks.held_out import HeldOut, digits, mnist
from tests.benchmarks.random_splits import (
    METHODS,
    Fit,
    Limit,
    Method,
    Outcome,
    on_the_population,
    on_the_rest,
    share_on_the_population,
    share_on_the_rest,
)

SPLITS = 500
CONFIDENCE = 0.95
LIMITS = (0.002, 0.005, 0.01)
SAMPLES = {"MNIST": (500, 2000), "digits": (500,)}
"""The numbers of samples to fit to; digits has too few test samples for 2000."""
NAMES = ["data", "n", "limit", "method"]
SURE_HEADER = [*NAMES, "above, on the rest", "expected", "holds", "above, in the population", "expected"]
MEAN_HEADER = [*NAMES, "dangerous rate", "coverage"]


class Setting(NamedTuple):
    """One row of a table."""

    data: str
    samples: int
    limit: Limit
    method: str

    def names(self) -> list[str]:
        """Return the first cells of the row."""
        return [self.data, str(self.samples), f"{self.limit.at_most:g}", self.method]


def settings(confidence: float | None) -> Iterator[Setting]:
    """Give all rows of a table."""
    for data, sizes in SAMPLES.items():
        for samples in sizes:
            for limit in LIMITS:
                for method in METHODS:
                    yield Setting(data, samples, Limit(limit, confidence=confidence), method)


def highest_share(splits: int) -> float:
    """Return 1 - confidence plus twice the standard error of a share of so many splits."""
    delta = 1 - CONFIDENCE
    return delta + 2 * sqrt(delta * (1 - delta) / splits)


def sure_row(pool: HeldOut, method: Method, limit: Limit, samples: int, splits: int) -> list[str]:
    """Return how often the limit is exceeded, and the mean coverage.

    Raises:
        ValueError: If so few samples cannot guarantee the limit.
    """
    outcomes = _repeat(on_the_rest, pool, method.fit, limit, samples, splits)
    drawn = _repeat(on_the_population, pool, method.fit, limit, samples, splits)
    above = _share_above(outcomes, limit)
    judged, size = method.judged(samples), len(pool.target)
    return [
        f"{above:.3f}",
        f"{share_on_the_rest(judged, size - samples, limit):.3f}",
        "yes" if above <= highest_share(splits) else "no",
        f"{_share_above(drawn, limit):.3f}",
        f"{share_on_the_population(judged, size, limit):.3f}",
        *_means(outcomes),
    ]


def mean_row(pool: HeldOut, method: Method, limit: Limit, samples: int, splits: int) -> list[str]:
    """Return the mean dangerous rate and coverage.

    Raises:
        ValueError: If so few samples cannot guarantee the limit.
    """
    return _means(_repeat(on_the_rest, pool, method.fit, limit, samples, splits))


def _repeat(
    on: Callable[[HeldOut, Fit, Limit, int, int], Outcome],
    pool: HeldOut,
    fit: Fit,
    limit: Limit,
    samples: int,
    splits: int,
) -> list[Outcome]:
    return [on(pool, fit, limit, samples, seed) for seed in range(splits)]


def _share_above(outcomes: list[Outcome], limit: Limit) -> float:
    return float(np.mean([outcome.exceeds(limit) for outcome in outcomes]))


def _means(outcomes: list[Outcome]) -> list[str]:
    """Return the mean rate and coverage, each with twice its standard error."""
    values = np.array([(outcome.rate, outcome.coverage) for outcome in outcomes])
    rate, coverage = values.mean(axis=0)
    rate_error, coverage_error = 2 * values.std(axis=0, ddof=1) / sqrt(len(values))
    return [f"{rate:.5f} ± {rate_error:.5f}", f"{coverage:.3f} ± {coverage_error:.3f}"]


class Results(NamedTuple):
    """A table, and why some of its limits cannot be guaranteed."""

    table: Table
    reasons: list[str]

    def markdown(self) -> str:
        """Return both as Markdown."""
        return "\n".join([self.table.markdown(), "", *(f"- {reason}" for reason in self.reasons)])


def results(pools: Mapping[str, HeldOut], confidence: float | None, splits: int) -> Results:
    """Compute a row for each data set, number of samples, limit and method."""
    header = MEAN_HEADER if confidence is None else [*SURE_HEADER, *MEAN_HEADER[len(NAMES) :]]
    row_of = mean_row if confidence is None else sure_row
    rows, reasons = [], []
    for setting in settings(confidence):
        pool, method = pools[setting.data], METHODS[setting.method]
        try:
            cells = row_of(pool, method, setting.limit, setting.samples, splits)
        except ValueError as error:
            cells = ["not attainable", *[""] * (len(header) - len(NAMES) - 1)]
            reasons.append(f"n = {setting.samples}, {setting.method}: {error}")
        rows.append([*setting.names(), *cells])
    return Results(Table(header, rows), list(dict.fromkeys(reasons)))


def risk_coverage(pool: HeldOut, *, samples: int = 2000, limit: float = 0.005) -> Figure:
    """Draw dangerous errors against coverage for four estimates of the risk, and two rules with a guarantee."""
    probs = pool.logits.double().softmax(dim=1)
    assessed = DecisionRule(pool.concern, calibration=None).assess(pool.logits)
    decided, risk = assessed.decision, assessed.risk
    largest = probs.topk(2).values
    scores = {
        "largest probability": 1 - largest[:, 0],
        "margin of the two largest": largest[:, 1] - largest[:, 0],
        "entropy": torch.special.entr(probs).sum(dim=1),
    }
    curves = {"estimated dangerous risk": _curve(risk, decided, pool)}
    curves |= {name: _curve(score, probs.argmax(dim=1), pool) for name, score in scores.items()}
    marks = {}
    for name in ("rule", "largest probability"):
        rest = on_the_rest(pool, METHODS[name].fit, Limit(limit, confidence=CONFIDENCE), samples, 0)
        marks[f"{name}, at most {limit:g} with confidence {CONFIDENCE:g}"] = rest.coverage, rest.rate / rest.coverage
    return risk_coverage_figure(curves, marks=marks)


def _curve(risk: Tensor, decided: Tensor, pool: HeldOut) -> RiskCoverage:
    return risk_coverage_curve(risk, pool.concern.dangerous_pairs()[pool.target, decided])


def main() -> None:
    """Print the tables, and draw the figure if it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--figure", type=Path, help="Where to draw risk against coverage, such as risk-coverage.png.")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    pools = {"MNIST": mnist(Path(os.environ.get("MPCS_DATA_ROOT", "data"))), "digits": digits()}
    for name, pool in pools.items():
        print(f"{name}: {pool.summary()}")
    if arguments.figure is not None:
        risk_coverage(pools["MNIST"]).savefig(arguments.figure, dpi=110)
    print(f"\nWith confidence {CONFIDENCE:g}; the share of {SPLITS} splits may be {highest_share(SPLITS):.4f}:\n")
    print(results(pools, CONFIDENCE, SPLITS).markdown())
    print(f"\nIn expectation:\n\n{results(pools, None, SPLITS).markdown()}")


if __name__ == "__main__":
    main()
