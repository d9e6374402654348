"""Train and decide in the ways of ``mpcs demo``, and summarize what each step changes."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.calibration import CalibrationWarning
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional import (
    RiskCoverage,
    confusion_matrix,
    jackknife_interval,
    risk_coverage_curve,
)
from mpcs_torch.functional.concern.dangerous import DangerousErrors
from mpcs_torch.functional.inputs.decisions import highest_class
from mpcs_torch.learning import DecisionRule, Limit, recommended
from mpcs_torch.learning.recommended import MARGIN, PLAIN
from mpcs_torch.processes import run_in_processes
from mpcs_torch.tables import Table
from mpcs_torch.trainer.config.load import load_packaged_config
from mpcs_torch.trainer.loop import TrainingRun

SEEDS = range(20)
LIMIT = Limit(0.01, confidence=0.9)
"""The limit on dangerous errors if samples may be referred to a person."""
MAX_ACCURACY_LOSS = 0.0005
"""The largest loss of validation accuracy by decisions by cost."""
USUAL, FAIR, BY_COST, RECOMMENDED, REFERRING = WAYS = (
    "cross entropy as usual",
    "+ noise, more steps, label smoothing",
    "+ decided by cost",
    "+ a margin, if validation samples choose it",
    "+ referrals",
)
"""The ways to train and to decide. Each adds something to the one before."""
WITHOUT_MARGIN = ("loss.margin=0", "training.margin_ramp=null")
RUNS = {
    USUAL: (
        *WITHOUT_MARGIN,
        "loss.label_smoothing=0",
        "training.noise=0",
        "epochs.every=1",
    ),
    PLAIN: WITHOUT_MARGIN,
    MARGIN: (),
}
"""The changes of the demonstration's config for each model: as usual, and with the two losses of the recipe."""


class Tally(NamedTuple):
    """Counts for one seed: dangerous errors, all errors, decided (not referred) samples, and all test samples."""

    dangerous: int
    errors: int
    decided: int
    samples: int


class SeedResult(NamedTuple):
    """The test results of one seed."""

    target: Tensor
    """The true classes, int64 (N,)."""
    decisions: dict[str, Tensor]
    """The decisions, int64 (N,), by the way to train and to decide; -1 is a referral."""
    risks: dict[str, tuple[Tensor, Tensor]]
    """The decisions without referral, (N,), and their estimated risks, (N,), for `FAIR` and `RECOMMENDED`."""


class Effect(NamedTuple):
    """A difference or relative change of counts (means over seeds), with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Demonstration:
    """The test results of each way to train and to decide, for each seed."""

    concern: ConcernSpec
    seeds: list[SeedResult] = field(default_factory=list)

    def tallies(self, way: str) -> list[Tally]:
        """Return the counts of test samples for each seed; ``way`` is a key of `SeedResult.decisions`."""
        measure = DangerousErrors(
            len(self.concern.classes), concern=self.concern.dangerous_pairs()
        )
        rows = [measure.rows(seed.decisions[way], seed.target) for seed in self.seeds]
        return [Tally(*map(int, measure.named(measure.sums(each)))) for each in rows]

    def mean(self, way: str, count: str, per: str | None = None) -> float:
        """Return the mean over seeds of the `Tally` field ``count``, or with ``per``, of ``count`` / ``per``."""
        ratios = [
            getattr(t, count) / (1 if per is None else getattr(t, per))
            for t in self.tallies(way)
        ]
        return fmean(ratios)

    def cut(self, way: str, before: str) -> Effect:
        """Return the share of the dangerous errors of ``before`` that ``way`` avoids, with a jackknife interval."""
        return self._effect(
            lambda ours, theirs: 1 - ours / theirs, "dangerous", way, before
        )

    def points(self, way: str, before: str) -> Effect:
        """Return the difference of the accuracies of ``way`` and ``before``, in points; both decide every sample."""
        samples = self.tallies(way)[0].samples
        return self._effect(
            lambda ours, theirs: 100 * (theirs - ours) / samples, "errors", way, before
        )

    def _effect(
        self, compare: Callable[[Tensor, Tensor], Tensor], count: str, way: str, before: str
    ) -> Effect:
        counts = [
            [getattr(tally, count) for tally in self.tallies(each)]
            for each in (way, before)
        ]
        by_seed = torch.tensor(counts, dtype=torch.float64)
        _, low, high = jackknife_interval(
            lambda kept: compare(*by_seed[:, kept].mean(dim=1)),
            torch.arange(len(self.seeds)),
        )
        return Effect(
            *(float(value) for value in (compare(*by_seed.mean(dim=1)), low, high))
        )

    def confusion(self, way: str) -> Tensor:
        """Return the confusion matrix of ``way``, summed over seeds, int64 (C, C); rows are true classes."""
        target = torch.cat([seed.target for seed in self.seeds])
        decisions = torch.cat([seed.decisions[way] for seed in self.seeds])
        return confusion_matrix(
            decisions, target, num_classes=len(self.concern.classes)
        ).long()

    def curve(self, way: str) -> RiskCoverage:
        """Return the risk-coverage curve of dangerous errors for ``way`` and the samples of all seeds."""
        decisions = torch.cat([seed.risks[way][0] for seed in self.seeds])
        risks = torch.cat([seed.risks[way][1] for seed in self.seeds])
        target = torch.cat([seed.target for seed in self.seeds])
        return risk_coverage_curve(risks, self.concern.dangerous_pairs()[target, decisions])

    def table(self) -> Table:
        """Return a table of means over seeds, with a row for each way to train and to decide."""
        header = [
            "",
            "decided",
            "errors",
            "dangerous errors",
            "fewer than in the row before",
        ]
        rows, before = [], None
        for way in self.seeds[0].decisions:
            fewer = ""
            if before is not None:
                cut = self.cut(way, before)
                fewer = (
                    f"{100 * cut.value:.0f} % [{100 * cut.low:.0f}, {100 * cut.high:.0f}]"
                )
            counts = [f"{self.mean(way, count):.1f}" for count in ("errors", "dangerous")]
            rows.append(
                [way, f"{100 * self.mean(way, 'decided', 'samples'):.1f} %", *counts, fewer]
            )
            before = way
        return Table(header, rows)


def demo_concern() -> ConcernSpec:
    """Return the costs of errors in the demonstration."""
    return load_packaged_config("experiments/demo").score.concern.spec(
        [str(digit) for digit in range(10)]
    )


def train_and_decide(seed: int) -> SeedResult:
    """Train as usual and with both losses of the recipe, choose by validation samples, and decide test samples."""
    seeded = [
        f"{key}={seed}" for key in ("seed", "data.split_seed", "data.validation_seed")
    ]
    configs = {
        name: load_packaged_config("experiments/demo", [*seeded, *changes])
        for name, changes in RUNS.items()
    }
    data, concern = configs[MARGIN].data.load(Path()), demo_concern()
    assert data.validation is not None  # set in the config
    validation, test = dict[str, Tensor](), dict[str, Tensor]()
    for name, config in configs.items():
        trained = TrainingRun(config, data).train()
        validation[name], test[name] = (
            trained.logits(data.validation),
            trained.logits(data.test),
        )
    target = data.validation.labels
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "E4")  # rare classes without a limit
        warnings.simplefilter(
            "ignore", CalibrationWarning
        )  # of few samples, all may be right
        recipe = recommended(concern, max_accuracy_loss=MAX_ACCURACY_LOSS)
        by_cost = recipe.choose({PLAIN: validation[PLAIN]}, target)
        fair = {name: validation[name] for name in (PLAIN, MARGIN)}
        choice = recipe.choose(fair, target)
        referring = recommended(
            concern, max_accuracy_loss=MAX_ACCURACY_LOSS, refer=LIMIT
        ).choose(fair, target)
        limited = DecisionRule(concern, LIMIT).fit(validation[PLAIN], target)
    decisions = {
        USUAL: highest_class(test[USUAL])[1],
        FAIR: highest_class(test[PLAIN])[1],
        BY_COST: by_cost.rule(test[PLAIN]),
        RECOMMENDED: choice.rule(test[choice.name]),
        REFERRING: referring.rule(test[referring.name]),
    }
    assessed = {
        FAIR: limited.assess(test[PLAIN]),
        RECOMMENDED: referring.rule.assess(test[referring.name]),
    }
    return SeedResult(
        data.test.labels,
        decisions,
        {way: (each.best, each.risk) for way, each in assessed.items()},
    )


def demonstrate(advance: Callable[[], None]) -> Demonstration:
    """Return the test results of 20 seeds, trained in parallel; call ``advance`` after each seed."""
    results = {}
    for seed, result in run_in_processes(train_and_decide, SEEDS):
        results[seed] = result
        advance()
    return Demonstration(demo_concern(), [results[seed] for seed in sorted(results)])
