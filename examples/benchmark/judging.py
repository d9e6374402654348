"""The judgement of ways to train and to decide: on test samples, with seeds by which nothing was chosen."""

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from examples.benchmark.losses import DANGEROUS, FLOORED, LOSSES, PLAIN, UNIFORM
from examples.benchmark.measures import calibrated_probs
from examples.benchmark.training import Outcome, Training, file_name
from examples.benchmark.trials import Arm, Trials, finish
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern.decision import least_risk
from mpcs_torch.functional.inputs.decisions import REFERRED
from mpcs_torch.learning import DecisionRule, Limit, UnattainableLimitError
from mpcs_torch.learning.factor_choice import (
    best_calibration,
    choose_factor,
    decide,
    harm_matrix,
)
from mpcs_torch.learning.recommended import average_logits

MAX_ACCURACY_LOSS = 0.0005
"""The accuracy that a decision by cost may lose on validation samples, as a share of samples."""
MIXED = "one model of each of four losses"
CHOSEN = "the best of four losses by validation samples"
FOUR_LOSSES = (DANGEROUS, UNIFORM, FLOORED, PLAIN)
"""The losses of which one model each is taken for `MIXED`, and of which one is chosen for `CHOSEN`."""
LIKELY, BY_COST, CHEAPEST = "most probable class", "by cost", "lowest expected cost"
REFERRING = "by cost, with referral"
DECISIONS = (LIKELY, BY_COST, CHEAPEST, REFERRING)
"""`BY_COST` keeps the accuracy on validation samples, within `MAX_ACCURACY_LOSS`; `CHEAPEST` does not look at it."""


class Judged(NamedTuple):
    """The results of one way to train and to decide, under one seed."""

    accuracy: float
    """With referral: the share of samples that are decided correctly."""
    dangerous: float
    """The share of samples that are dangerous errors."""
    cost: float
    """The mean cost of a sample, where the worst error costs 1; with costs of rows, in units of their mean."""
    coverage: float
    """The share of samples that are decided."""


class Judging(NamedTuple):
    """Arms whose models are judged together: the mean of ``members`` models of each."""

    trials: Trials
    name: str
    arms: tuple[Arm, ...]
    members: int

    @property
    def path(self) -> Path:
        """The file of the results."""
        folder = self.trials.out / "judged" / file_name(self.trials.task)
        return folder / f"{file_name(self.name)}-{self.members}.json"

    def trainings(self) -> list[list[Training]]:
        """Return the trainings of each arm."""
        seeds = self.trials.details.seeds
        by_arm = []
        for arm in self.arms:
            # A loss is trained once with all its members, of which every judging takes as many as it needs. Arms that
            # are no losses, such as `AS_USUAL`, are judged with one model.
            is_of_losses = self.name in (*LOSSES, MIXED)
            members = LOSSES[arm.regime.loss].members if is_of_losses else 1
            by_arm.append(self.trials.trainings(arm, seeds, members))
        return by_arm

    def results(self) -> dict[str, Any]:
        """Return the results of each decision and seed, and the CPU seconds of all models; keep them in a file."""
        task = self.trials.details
        of = {
            "seeds": [task.seeds.start, task.seeds.stop],
            "limit": task.limit,
            "ways": [*DECISIONS],
            "arms": [arm.plain() for arm in self.arms],
        }
        if self.path.is_file():
            kept: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
            if kept["of"] == of:
                return kept
        by_arm = self.trainings()
        finish(
            f"{self.trials.task}: {self.name}",
            [each for trainings in by_arm for each in trainings],
        )
        of_seed = {seed: self._judge(by_arm, seed) for seed in self.trials.details.seeds}
        seconds = sum(self.members * trainings[0].seconds() for trainings in by_arm)
        results = {
            "of": of,
            "seconds": seconds,
            "decisions": {
                way: [list(each[place]) for each in of_seed.values()]
                for place, way in enumerate(DECISIONS)
            },
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(results), encoding="utf-8")
        return results

    def _judge(self, by_arm: Sequence[Sequence[Training]], seed: int) -> list[Judged]:
        validation, test = list[Tensor](), list[Tensor]()
        for first, (arm, trainings) in enumerate(zip(self.arms, by_arm, strict=True)):
            [training] = [training for training in trainings if seed in training.seeds]
            outcome = training.outcome(arm.setting, seed)
            # Models of several arms differ in their first weights, too: they have the numbers 0, 1, 2 and so on.
            members = slice(first, first + self.members)
            validation += outcome.validation[members]
            test += outcome.test[members]
        # The labels are the same for all arms.
        mean = outcome._replace(
            validation=average_logits(validation), test=average_logits(test)
        )
        row_costs = self.trials.details.samples(self.trials.data_root).costs
        if row_costs is not None:
            row_costs = row_costs[
                self.trials.details.parts(self.trials.data_root, seed).test
            ]
        return judge(mean, self.trials.concern, self.trials.details.limit, row_costs)


def judge(
    outcome: Outcome, concern: ConcernSpec, limit: float, row_costs: Tensor | None = None
) -> list[Judged]:
    """Return the results of logits (N, C) on the test samples, decided in each of the `DECISIONS`.

    With the costs (N, C) of an error for each true class of a row, a decision by cost is one by the costs of its row.
    """
    harm = harm_matrix(concern)
    labels = outcome.validation_labels
    suited = best_calibration(outcome.validation, labels, harm)
    test_probs = calibrated_probs(suited.method, outcome.validation, labels, outcome.test)
    if row_costs is None:
        factor = choose_factor(suited.probs, labels, harm, MAX_ACCURACY_LOSS)
        assert factor is not None  # the first one is always admissible
        by_cost = decide(test_probs, harm, factor)
    else:
        # An error costs what the true class of the row says, so deciding j saves p_j c_j of the sum of p_i c_i.
        by_cost = (test_probs * row_costs).argmax(dim=1)
    rule = DecisionRule(concern, Limit(limit), calibration=suited.method)
    # With too few samples for the limit, all are referred.
    referring = torch.full_like(by_cost, REFERRED)
    with warnings.catch_warnings(), suppress(UnattainableLimitError):
        warnings.simplefilter("ignore")
        referring = rule.fit(outcome.validation, labels)(outcome.test)
    decisions = (
        outcome.test.argmax(dim=1),
        by_cost,
        least_risk(test_probs, _costs(concern)),
        referring,
    )
    return [
        _judged(decision, outcome.test_labels, concern, row_costs) for decision in decisions
    ]


def _costs(concern: ConcernSpec) -> Tensor:
    """Return the costs (C, C) of errors, the highest of which is 1."""
    costs = concern.costs().double()
    return costs / costs.max()


def _judged(
    decision: Tensor, target: Tensor, concern: ConcernSpec, row_costs: Tensor | None
) -> Judged:
    is_decided = decision != REFERRED
    decided = decision.clamp(
        min=0
    )  # a class in place of a referral, which is then left out
    is_dangerous = concern.dangerous_pairs()[target, decided] & is_decided
    if row_costs is None:
        cost = _costs(concern)[target, decided]
    else:
        of_errors = row_costs.gather(1, target.unsqueeze(1)).squeeze(1)
        cost = of_errors * (decision != target) / row_costs.mean()
    return Judged(
        accuracy=(decision == target).double().mean().item(),
        dangerous=is_dangerous.double().mean().item(),
        cost=(cost * is_decided).double().mean().item(),
        coverage=is_decided.double().mean().item(),
    )


def judgings_of(trials: Trials, chosen: Mapping[str, Arm]) -> Iterator[Judging]:
    """Yield what is judged: each loss with one model and, for some, with several; and a mean of several losses."""
    for name, arm in chosen.items():
        numbers = {1, LOSSES[name].members} if name in LOSSES else {1}
        for members in sorted(numbers):
            yield Judging(trials, name, (arm,), members)
    if all(loss in chosen for loss in FOUR_LOSSES):
        yield Judging(trials, MIXED, tuple(chosen[loss] for loss in FOUR_LOSSES), 1)


def key(name: str, models: int) -> str:
    """Return the key of a way to train among the results of a task."""
    return f"{models} {name}"


def parts_of(key: str) -> tuple[str, int]:
    """Return the name and the number of models of a `key`."""
    models, name = key.split(" ", 1)
    return name, int(models)


def result_of(trials: Trials) -> dict[str, Any]:
    """Train what is missing, and return the results of a task as plain values."""
    chosen = trials.chosen()
    judged = {
        key(judging.name, judging.members * len(judging.arms)): judging.results()
        for judging in judgings_of(trials, chosen)
    }
    best = min(FOUR_LOSSES, key=lambda loss: trials.score(chosen[loss]))
    judged[key(CHOSEN, 1)] = judged[key(best, 1)]
    task = trials.details
    has_row_costs = task.samples(trials.data_root).costs is not None
    return {
        "task": trials.task,
        "samples": len(task.parts(trials.data_root, task.seeds[0]).test),
        "has_list": trials.concern.weights is None and not has_row_costs,
        "judged": judged,
    }
