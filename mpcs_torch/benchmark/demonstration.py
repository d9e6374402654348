"""The comparison of ``mpcs demo``: a plain model beside the recommended recipe, with and without referral."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.benchmark.judging import MAX_ACCURACY_LOSS, RECIPE
from mpcs_torch.benchmark.measures import Effect, difference, reduction
from mpcs_torch.benchmark.methods import METHODS, Problem
from mpcs_torch.benchmark.runs import outputs, train
from mpcs_torch.benchmark.tasks import TASKS
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional import RiskCoverage, confusion_matrix, dangerous_errors_details, risk_coverage_curve
from mpcs_torch.learning import DecisionRule, Limit, recommended
from mpcs_torch.learning.recommended import LOSSES
from mpcs_torch.learning.recommended import PLAIN as PLAIN_LOSS
from mpcs_torch.tables import Table

TASK, LEARNING_RATE = TASKS["digits, MLP"], 0.01
SEEDS = range(10)
MAX_DANGEROUS, CONFIDENCE = 0.01, 0.9
"""The limit that referral is held to, and the probability with which it holds."""
PLAIN, RECOMMENDED = "plain", "recommended"
WITH_REFERRAL = ", with referral"


class Tally(NamedTuple):
    """Numbers of test samples under one seed."""

    dangerous: int
    errors: int
    decided: int
    samples: int


@dataclass(frozen=True)
class Demonstration:
    """The test results of both runs, with and without referral, over seeds."""

    concern: ConcernSpec
    tallies: dict[str, list[Tally]] = field(default_factory=dict)
    """By way of learning and deciding; a tally for each seed."""
    confusions: dict[str, Tensor] = field(default_factory=dict)
    """By run, without referral: int64 (C, C), summed over seeds; rows true classes."""
    risks: dict[str, list[tuple[Tensor, Tensor]]] = field(default_factory=dict)
    """By run: the estimated risk of each test decision, and whether it is a dangerous error; a pair for each seed."""

    def add(self, name: str, decisions: Tensor, target: Tensor) -> None:
        """Count the decisions (N,) of one seed."""
        classes, dangerous = len(self.concern.classes), self.concern.dangerous_pairs()
        if WITH_REFERRAL not in name:
            confusion = confusion_matrix(decisions, target, num_classes=classes).long()
            self.confusions[name] = self.confusions.get(name, torch.zeros_like(confusion)) + confusion
        counts = dangerous_errors_details(decisions, target, num_classes=classes, concern=dangerous)
        self.tallies.setdefault(name, []).append(Tally(*(int(count) for count in counts)))

    def assess(self, name: str, rule: DecisionRule, logits: Tensor, target: Tensor) -> None:
        """Keep the risks that a rule estimates for its decisions of one seed."""
        assessed = rule.assess(logits)
        self.risks.setdefault(name, []).append((assessed.risk, rule.dangerous[target, assessed.best]))

    def mean(self, name: str, count: str, per: str | None = None) -> float:
        """Return the mean of a count over seeds, or the mean of its ratio to another count."""
        tallies = self.tallies[name]
        return float(np.mean([getattr(t, count) / (1 if per is None else getattr(t, per)) for t in tallies]))

    def effect(self, count: str, *, relative: bool) -> Effect:
        """Compare the recommended with the plain run, without referral, seed by seed."""
        ours, theirs = ([getattr(tally, count) for tally in self.tallies[name]] for name in (RECOMMENDED, PLAIN))
        return (reduction if relative else difference)(ours, theirs)

    def curve(self, name: str) -> RiskCoverage:
        """Return dangerous errors per decided sample against coverage, over the samples of all seeds."""
        risks, losses = zip(*self.risks[name], strict=True)
        return risk_coverage_curve(torch.cat(risks), torch.cat(losses))

    def table(self) -> Table:
        """Return a row for each way of learning and deciding, with means over seeds."""
        header = ["", "decided", "right, of those decided", "errors", "dangerous errors", "dangerous per sample"]
        rows = []
        for name in self.tallies:
            decided, right = self.mean(name, "decided", "samples"), 1 - self.mean(name, "errors", "decided")
            shares = [f"{100 * decided:.1f} %", f"{100 * right:.2f} %"]
            counts = [f"{self.mean(name, count):.1f}" for count in ("errors", "dangerous")]
            rows.append([name, *shares, *counts, f"{100 * self.mean(name, 'dangerous', 'samples'):.2f} %"])
        return Table(header, rows)


def demonstrate(advance: Callable[[], None]) -> Demonstration:
    """Train the losses of the recipe under each seed, choose by validation samples, and decide for test samples."""
    concern = TASK.spec(Path())
    demonstration = Demonstration(concern)
    limit = Limit(MAX_DANGEROUS, confidence=CONFIDENCE)
    recipe = recommended(concern, max_accuracy_loss=MAX_ACCURACY_LOSS)
    referring = recommended(concern, max_accuracy_loss=MAX_ACCURACY_LOSS, refer=limit)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for so small a model, waiting for other threads takes most of the time
    try:
        for seed in SEEDS:
            parts = TASK.parts(Path(), seed)
            problem = Problem(concern, parts.train.labels.bincount(), TASK.steps)
            validation, test = {}, {}
            for name, (margin, smoothing) in LOSSES.items():
                setting = {"margin": margin, "label_smoothing": smoothing}
                model = train(TASK, METHODS[RECIPE], setting, LEARNING_RATE, parts, problem, seed=seed)
                validation[name], test[name] = outputs(model, parts.validation), outputs(model, parts.test)
                advance()
            target, labels = parts.validation.labels, parts.test.labels
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "E4")  # ten digits that are alike
                choice, referred = recipe.choose(validation, target), referring.choose(validation, target)
                limited = DecisionRule(concern, limit).fit(validation[PLAIN_LOSS], target)
            demonstration.add(PLAIN, test[PLAIN_LOSS].argmax(dim=1), labels)
            demonstration.add(RECOMMENDED, choice.rule(test[choice.name]), labels)
            demonstration.add(PLAIN + WITH_REFERRAL, limited(test[PLAIN_LOSS]), labels)
            demonstration.add(RECOMMENDED + WITH_REFERRAL, referred.rule(test[referred.name]), labels)
            demonstration.assess(PLAIN, limited, test[PLAIN_LOSS], labels)
            demonstration.assess(RECOMMENDED, referred.rule, test[referred.name], labels)
    finally:
        torch.set_num_threads(threads)
    return demonstration
