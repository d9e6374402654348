"""The fair comparison: validation samples choose settings, and test samples of other seeds judge them.

Each loss has the same steps, augmentation, learning rates and number of settings. These are chosen on the same
validation samples by the same score, and each model, or mean of models, is decided in the same ways. So a difference
between two losses is not one of budgets.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from examples.benchmark.losses import DANGEROUS, FLOORED, LOSSES, PLAIN, SMOOTHING, UNIFORM
from examples.benchmark.measures import calibrated_probs, quietly
from examples.benchmark.tasks import TASKS, Task
from examples.benchmark.training import Arm, Condition, Outcome, Training, file_name
from mpcs_torch.cli.console import counting_bar
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.inputs.decisions import REFERRED
from mpcs_torch.learning import DecisionRule, Limit
from mpcs_torch.learning.choice import Options, calibrated, calibration_for, decide, harm_matrix, log_score
from mpcs_torch.learning.recommended import average_logits

MAX_ACCURACY_LOSS = 0.0005
"""The accuracy that a decision by cost may lose on validation samples, as a share of samples."""
AS_USUAL = "cross entropy, as usual"
"""The arm without augmentation, with the plain number of steps and without label smoothing."""
SHORT = {PLAIN: "cross entropy, plain steps", FLOORED: "margin with a floor, plain steps"}
"""Losses that are also judged without augmentation and with the plain number of steps, and the names of these arms."""
MIXED = "one model of each of four losses"
MIXED_LOSSES = (PLAIN, UNIFORM, DANGEROUS, FLOORED)
LIKELY, BY_COST, REFERRING = "most probable class", "by cost", "by cost, with referral"
DECISIONS = (LIKELY, BY_COST, REFERRING)


class Judged(NamedTuple):
    """The results of one way to train and to decide, under one seed."""

    accuracy: float
    """With referral: the share of samples that are decided correctly."""
    dangerous: float
    """The share of samples that are dangerous errors."""
    harm: float
    """The mean harm of a sample, in [0, 1]; with costs of rows, the mean cost by the mean cost of an error."""
    coverage: float
    """The share of samples that are decided."""


@dataclass(frozen=True)
class Trials:
    """The trainings of a task."""

    task: str
    data_root: Path
    out: Path

    @property
    def details(self) -> Task:
        """The task itself."""
        return TASKS[self.task]

    @property
    def concern(self) -> ConcernSpec:
        """The concern of the task."""
        return self.details.spec(self.data_root)

    def losses(self) -> list[str]:
        """Return the names of the losses that are tried."""
        return [name for name, loss in LOSSES.items() if loss.group in self.details.groups]

    def trainings(self, arm: Arm, seeds: range, members: int = 1) -> list[Training]:
        """Return the trainings of an arm under some seeds, in parts of which each trains at once."""
        size = max(1, self.details.at_once // members)
        parts = [seeds[start : start + size] for start in range(0, len(seeds), size)]
        return [self._training(arm, (arm.setting,), part, members) for part in parts]

    def tried(self, arm: Arm) -> Training:
        """Return the training of an arm, with all settings of its loss, under the seeds by which they are chosen."""
        return self._training(arm, LOSSES[arm.loss].values, self.details.choice_seeds, 1)

    def _training(self, arm: Arm, settings: tuple[float, ...], seeds: range, members: int) -> Training:
        place = (self.data_root, self.out)
        return Training(self.task, arm.loss, settings, arm.rate, arm.condition, arm.smoothing, seeds, members, *place)

    def score(self, arm: Arm) -> float:
        """Return the mean log score of an arm on the validation samples of the choice seeds; lower is better."""
        harm, scores, training = harm_matrix(self.concern), [], self.tried(arm)
        for seed in training.seeds:
            outcome = training.outcome(arm.setting, seed)
            labels = outcome.validation_labels
            probs = calibrated(outcome.validation[0], labels, calibration_for(harm))
            scores.append(log_score(probs, labels, harm).mean())
        return torch.stack(scores).mean().item()

    def best(self, title: str, arms: Sequence[Arm]) -> Arm:
        """Return the best of some arms; train what is missing under the choice seeds."""
        finish(title, list(dict.fromkeys(self.tried(arm) for arm in arms)))
        return min(arms, key=self.score)

    def arms_of(self, loss: str, condition: Condition, smoothing: float = 0.0) -> list[Arm]:
        """Return the arms by which the setting and the learning rate of a loss are chosen."""
        has_own = LOSSES[loss].setting == SMOOTHING
        return [
            Arm(loss, value, rate, condition, 0.0 if has_own else smoothing)
            for value in LOSSES[loss].values
            for rate in self.details.learning_rates
        ]

    def chosen(self) -> dict[str, Arm]:
        """Return the arm of each loss under the condition that is best for the plain one, and those that are shorter.

        Conditions are chosen with the best plain setting without augmentation.
        """
        plain = self.arms_of(PLAIN, Condition())
        first = self.best(f"{self.task}: plain settings", plain)
        conditions = [Condition(noise, length) for noise in self.details.noises for length in self.details.lengths]
        tried = [first._replace(condition=condition) for condition in conditions]
        condition = self.best(f"{self.task}: conditions", tried).condition
        chosen = {AS_USUAL: self.best(f"{self.task}: as usual", [arm for arm in plain if not arm.setting])}
        chosen |= {name: self.best(name, self.arms_of(loss, Condition())) for loss, name in SHORT.items()}
        chosen[PLAIN] = self.best(f"{self.task}: {PLAIN}", self.arms_of(PLAIN, condition))
        for loss in self.losses():
            arms = self.arms_of(loss, condition, smoothing=chosen[PLAIN].setting)
            chosen[loss] = self.best(f"{self.task}: {loss}", arms)
        return chosen


def finish(title: str, trainings: Sequence[Training]) -> None:
    """Run the trainings that are not done."""
    missing = [training for training in trainings if not training.is_done()]
    if missing:
        with counting_bar(title, len(missing)) as advance:
            for training in missing:
                training.run()
                advance()


class Judging(NamedTuple):
    """Arms whose models are judged together: the mean of the first ``members`` models of each."""

    trials: Trials
    name: str
    arms: tuple[Arm, ...]
    members: int

    @property
    def path(self) -> Path:
        """The file of the results."""
        folder = self.trials.out / "judged" / file_name(self.trials.task)
        return folder / f"{file_name(self.name)}-{self.members}.json"

    def trained(self, arm: Arm) -> int:
        """Return how many models of an arm are trained under each seed."""
        return (
            1 if arm.condition == Condition() and self.name in (AS_USUAL, *SHORT.values()) else LOSSES[arm.loss].members
        )

    def trainings(self) -> list[list[Training]]:
        """Return the trainings of each arm."""
        seeds = self.trials.details.seeds
        return [self.trials.trainings(arm, seeds, self.trained(arm)) for arm in self.arms]

    def results(self) -> dict[str, Any]:
        """Return the results of each decision and seed, and the CPU seconds of all models; keep them in a file."""
        task = self.trials.details
        of = {"seeds": [task.seeds.start, task.seeds.stop], "limit": task.limit}
        of["arms"] = [plain_arm(arm) for arm in self.arms]
        if self.path.is_file():
            kept: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
            if kept["of"] == of:
                return kept
        by_arm = self.trainings()
        finish(f"{self.trials.task}: {self.name}", [each for trainings in by_arm for each in trainings])
        of_seed = {seed: self._judge(by_arm, seed) for seed in self.trials.details.seeds}
        seconds = sum(self.members * trainings[0].seconds() for trainings in by_arm)
        results = {
            "of": of,
            "seconds": seconds,
            "decisions": {way: [list(each[place]) for each in of_seed.values()] for place, way in enumerate(DECISIONS)},
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(results), encoding="utf-8")
        return results

    def _judge(self, by_arm: Sequence[Sequence[Training]], seed: int) -> list[Judged]:
        trainings = [each for of_arm in by_arm for each in of_arm if seed in each.seeds]
        outcomes = [each.outcome(arm.setting, seed) for arm, each in zip(self.arms, trainings, strict=True)]
        places = self.trials.details.parts(self.trials.data_root, seed).test
        costs = self.trials.details.samples(self.trials.data_root).costs
        means = [
            average_logits([logits for each in outcomes for logits in getattr(each, part)[: self.members]])
            for part in ("validation", "test")
        ]
        outcome = Outcome(means[0], outcomes[0].validation_labels, means[1], outcomes[0].test_labels)
        return judge(outcome, self.trials.concern, self.trials.details.limit, None if costs is None else costs[places])


def judge(outcome: Outcome, concern: ConcernSpec, limit: float, row_costs: Tensor | None = None) -> list[Judged]:
    """Return the results of logits (N, C) on the test samples, decided in each of the `DECISIONS`.

    With the costs (N, C) of an error for each true class of a row, a decision by cost is one by the costs of its row.
    """
    harm = harm_matrix(concern)
    probs = calibrated(outcome.validation, outcome.validation_labels, calibration_for(harm))
    test_probs = calibrated_probs(outcome, harm)
    if row_costs is None:
        options = Options.from_probs([probs], outcome.validation_labels, harm)
        by_cost = decide(test_probs, harm, options.options[options.choose(MAX_ACCURACY_LOSS)].factor)
    else:
        by_cost = (test_probs * row_costs).argmax(dim=1)
    rule = DecisionRule(concern, Limit(limit))
    fitted = quietly(partial(rule.fit, outcome.validation, outcome.validation_labels))
    referring = torch.full_like(by_cost, REFERRED) if fitted is None else fitted(outcome.test)
    decisions = (outcome.test.argmax(dim=1), by_cost, referring)
    return [_judged(decision, outcome.test_labels, concern, row_costs) for decision in decisions]


def _judged(decision: Tensor, target: Tensor, concern: ConcernSpec, row_costs: Tensor | None) -> Judged:
    is_decided, decided = decision != REFERRED, decision.clamp(min=0)
    is_dangerous = concern.dangerous_pairs()[target, decided] & is_decided
    harm = harm_matrix(concern)[target, decided]
    if row_costs is not None:
        harm = row_costs.gather(1, target.unsqueeze(1)).squeeze(1) * (decision != target) / row_costs.mean()
    of_samples = decision == target, is_dangerous, harm * is_decided, is_decided
    return Judged(*(values.double().mean().item() for values in of_samples))


def judgings_of(trials: Trials, chosen: Mapping[str, Arm]) -> Iterator[Judging]:
    """Yield what is judged: each loss with one model and, for some, with several; and a mean of several losses."""
    for name, arm in chosen.items():
        numbers = {1, LOSSES[name].members} if name in LOSSES else {1}
        for members in sorted(numbers):
            yield Judging(trials, name, (arm,), members)
    if all(loss in chosen for loss in MIXED_LOSSES):
        yield Judging(trials, MIXED, tuple(chosen[loss] for loss in MIXED_LOSSES), 1)


def result_of(trials: Trials) -> dict[str, Any]:
    """Train what is missing, and return the results of a task as plain values."""
    chosen = trials.chosen()
    arms: dict[str, Any] = {}
    for judging in judgings_of(trials, chosen):
        results = judging.results()
        number = str(judging.members * len(judging.arms))
        arm = arms.setdefault(judging.name, {"arms": results["of"]["arms"], "seconds": {}, "members": {}})
        arm["seconds"][number] = results["seconds"]
        arm["members"][number] = results["decisions"]
    seeds = trials.details.seeds
    samples = len(trials.details.parts(trials.data_root, seeds[0]).test)
    return {
        "task": trials.task,
        "seeds": [seeds.start, seeds.stop],
        "samples": samples,
        "limit": trials.details.limit,
        "is_by_row": trials.details.samples(trials.data_root).costs is not None,
        "arms": arms,
    }


def plain_arm(arm: Arm) -> dict[str, Any]:
    """Return an arm as plain values."""
    setting = {"setting": arm.setting, "smoothing": arm.smoothing}
    return {"loss": arm.loss, **setting, "rate": arm.rate, **arm.condition._asdict()}
