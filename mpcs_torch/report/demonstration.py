"""Train and decide in the ways of ``mpcs demo``, and summarize what each step changes."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.calibration import CalibrationWarning
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional import confusion_matrix, jackknife_interval
from mpcs_torch.functional.concern.dangerous import DangerousErrorCounts, DangerousErrors
from mpcs_torch.functional.inputs.decisions import highest_class
from mpcs_torch.learning import Limit, recommended
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
USUAL = "cross entropy as usual"
FAIR = "+ noise, more steps, label smoothing"
BY_COST = "+ decided by cost"
RECOMMENDED = "+ a margin, if validation samples choose it"
REFERRING = "+ referrals"
WAYS = (USUAL, FAIR, BY_COST, RECOMMENDED, REFERRING)
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


class SeedResult(NamedTuple):
    """The test results of one seed."""

    target: Tensor
    """The true classes, int64 (N,)."""
    decisions: dict[str, Tensor]
    """The decisions, int64 (N,), by the way to train and to decide; -1 is a referral."""


class Effect(NamedTuple):
    """A difference or relative change of counts (means over seeds), with the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def percent(self) -> str:
        """The value in percent, and its interval in brackets."""
        return f"{100 * self.value:.0f} % [{100 * self.low:.0f}, {100 * self.high:.0f}]"


@dataclass(frozen=True)
class Demonstration:
    """The test results of each way to train and to decide, for each seed."""

    concern: ConcernSpec
    seeds: list[SeedResult] = field(default_factory=list)

    def counts(self, way: str) -> DangerousErrorCounts:
        """Return the counts of the test samples of each seed, float64 (S,), by ``way``, a key of their decisions."""
        pairs = self.concern.dangerous_pairs()
        measure = DangerousErrors(len(self.concern.classes), concern=pairs)
        by_seed = list[Tensor]()
        for seed in self.seeds:
            rows = measure.rows(seed.decisions[way], seed.target)
            by_seed.append(measure.sums(rows))
        counts: DangerousErrorCounts = measure.named(torch.stack(by_seed))
        return counts

    @property
    def samples(self) -> int:
        """The mean number of test samples of a seed."""
        return int(self.counts(USUAL).samples.mean())

    def decided(self, way: str) -> float:
        """Return the mean share of decided samples."""
        counts = self.counts(way)
        return (counts.decided / counts.samples).mean().item()

    def cut(self, way: str, before: str) -> Effect:
        """Return the share of the dangerous errors of ``before`` that ``way`` avoids, with a jackknife interval."""
        ours, theirs = self.counts(way).dangerous, self.counts(before).dangerous
        return self._effect(lambda kept: 1 - ours[kept].mean() / theirs[kept].mean())

    def points(self, way: str, before: str) -> Effect:
        """Return the difference of the accuracies of ``way`` and ``before``, in points; both decide every sample."""
        ours, theirs = self.counts(way), self.counts(before)
        points = 100 * (theirs.errors - ours.errors) / ours.samples
        return self._effect(lambda kept: points[kept].mean())

    def _effect(self, statistic: Callable[[Tensor], Tensor]) -> Effect:
        """Return the value and interval over all seeds of ``statistic``, a function of the indices of some seeds."""
        seeds = torch.arange(len(self.seeds))
        _, low, high = jackknife_interval(statistic, seeds)
        return Effect(statistic(seeds).item(), float(low), float(high))

    def confusion(self, way: str) -> Tensor:
        """Return the confusion matrix of ``way``, summed over seeds, int64 (C, C); rows are true classes."""
        decisions = torch.cat([seed.decisions[way] for seed in self.seeds])
        target = torch.cat([seed.target for seed in self.seeds])
        classes = len(self.concern.classes)
        return confusion_matrix(decisions, target, num_classes=classes).long()

    def table(self) -> Table:
        """Return a table of means over seeds, with a row for each way to train and to decide."""
        rows = list[dict[str, str]]()
        before = None
        for way in self.seeds[0].decisions:
            counts = self.counts(way)
            fewer = "" if before is None else self.cut(way, before).percent
            rows.append(
                {
                    "": way,
                    "decided": f"{100 * self.decided(way):.1f} %",
                    "errors": f"{counts.errors.mean():.1f}",
                    "dangerous errors": f"{counts.dangerous.mean():.1f}",
                    "fewer than in the row before": fewer,
                }
            )
            before = way
        return Table.from_records(rows)


def demo_concern() -> ConcernSpec:
    """Return the costs of errors in the demonstration."""
    digits = [str(digit) for digit in range(10)]
    return load_packaged_config("experiments/demo").score.concern.spec(digits)


def train_and_decide(seed: int) -> SeedResult:
    """Train as usual and with both losses of the recipe, choose by validation samples, and decide test samples."""
    seeded = [f"seed={seed}", f"data.split_seed={seed}", f"data.validation_seed={seed}"]
    data = load_packaged_config("experiments/demo", seeded).data.load(Path())
    assert data.validation is not None  # set in the config
    concern = demo_concern()
    validation = dict[str, Tensor]()
    test = dict[str, Tensor]()
    for name, changes in RUNS.items():
        config = load_packaged_config("experiments/demo", [*seeded, *changes])
        trained = TrainingRun(config, data).train()
        validation[name] = trained.logits(data.validation)
        test[name] = trained.logits(data.test)
    target = data.validation.labels
    with warnings.catch_warnings():
        # Rare classes have no limit (E4), and of few samples, all may be right.
        warnings.filterwarnings("ignore", "E4")
        warnings.simplefilter("ignore", CalibrationWarning)
        recipe = recommended(concern, max_accuracy_loss=MAX_ACCURACY_LOSS)
        by_cost = recipe.choose({PLAIN: validation[PLAIN]}, target)
        fair = {PLAIN: validation[PLAIN], MARGIN: validation[MARGIN]}
        choice = recipe.choose(fair, target)
        with_referrals = recommended(
            concern, max_accuracy_loss=MAX_ACCURACY_LOSS, refer=LIMIT
        )
        referring = with_referrals.choose(fair, target)
    _, usual = highest_class(test[USUAL])
    _, plain = highest_class(test[PLAIN])
    decisions = {
        USUAL: usual,
        FAIR: plain,
        BY_COST: by_cost.rule(test[PLAIN]),
        RECOMMENDED: choice.rule(test[choice.name]),
        REFERRING: referring.rule(test[referring.name]),
    }
    return SeedResult(data.test.labels, decisions)


def demonstrate(advance: Callable[[], None]) -> Demonstration:
    """Return the test results of 20 seeds, trained in parallel; call ``advance`` after each seed."""
    results = {}
    for seed, result in run_in_processes(train_and_decide, SEEDS):
        results[seed] = result
        advance()
    return Demonstration(demo_concern(), [results[seed] for seed in sorted(results)])
