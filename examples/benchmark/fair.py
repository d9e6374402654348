"""The fair comparison: which of training, decision, members and loss avoid dangerous errors, and at which price.

``python -m examples.benchmark.fair`` trains what is missing, and prints the tables. Each loss has the same trainings,
steps, augmentation and learning rates, chosen on the same validation samples by the same score; each model, or mean of
models, is decided in the same ways. So a difference between two losses is not one of budgets.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from examples.benchmark.fair_runs import FLOORED, LOSSES, PLAIN, UNIFORM, Condition, Setting, Training, train_and_keep
from examples.benchmark.fair_tables import save_values, tables_of
from examples.benchmark.judging import each_done
from examples.benchmark.measures import calibrated_probs, quietly
from examples.benchmark.runs import Outcome
from examples.benchmark.tasks import TASKS, Task, tasks_of
from mpcs_torch.cli.console import counting_bar, say
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.inputs.decisions import REFERRED
from mpcs_torch.learning import DecisionRule, Limit
from mpcs_torch.learning.choice import Options, calibrated, calibration_for, decide, harm_matrix, log_score
from mpcs_torch.learning.recommended import average_logits

MAX_ACCURACY_LOSS = 0.0005
"""The accuracy that a decision by cost may lose on validation samples, as a share of samples."""
MAX_CHOICE_SEEDS = 8
"""The maximum number of seeds by whose validation samples settings are chosen."""
LENGTHS = (1, 4)
"""The multiples of the steps of a task that are tried."""
MEMBERS = 4
"""The number of models whose mean is judged, for the losses in `OF_MEMBERS`."""
OF_MEMBERS = (PLAIN, UNIFORM, FLOORED)
AS_USUAL = "cross entropy, as usual"
"""The arm without augmentation, with the plain number of steps and without label smoothing."""
DECISIONS = ("most probable class", "by cost", "by cost, with referral")


class Arm(NamedTuple):
    """A loss with what was chosen for it."""

    loss: str
    setting: Setting
    rate: float
    condition: Condition


class Judged(NamedTuple):
    """The results of one way to train and to decide, under one seed."""

    accuracy: float
    """With referral: the share of samples that are decided correctly."""
    dangerous: float
    """The share of samples that are dangerous errors."""
    harm: float
    """The mean harm of a sample, in [0, 1]."""
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
    def choice_seeds(self) -> range:
        """The seeds by whose validation samples everything is chosen; others judge."""
        return self.details.choice_seeds[:MAX_CHOICE_SEEDS]

    @property
    def concern(self) -> ConcernSpec:
        """The concern of the task."""
        return self.details.spec(self.data_root)

    def trainings(self, arm: Arm, seeds: Sequence[int], members: int = 1) -> list[Training]:
        """Return the trainings of an arm under each seed."""
        return [
            Training(self.task, *arm, seed, member, self.data_root, self.out)
            for seed in seeds
            for member in range(members)
        ]

    def score(self, arm: Arm) -> float:
        """Return the mean log score of an arm on the validation samples of the choice seeds; lower is better."""
        harm, scores = harm_matrix(self.concern), []
        for training in self.trainings(arm, self.choice_seeds):
            outcome = training.outcome()
            probs = calibrated(outcome.validation, outcome.validation_labels, calibration_for(harm))
            scores.append(log_score(probs, outcome.validation_labels, harm).mean())
        return torch.stack(scores).mean().item()

    def best(self, arms: Sequence[Arm]) -> Arm:
        """Return the best of arms whose trainings under the choice seeds are done."""
        return min(arms, key=self.score)

    def first_arms(self) -> list[Arm]:
        """Return the arms by which the setting and the learning rate of the plain loss are chosen."""
        loss = LOSSES[PLAIN]
        rates = self.details.learning_rates
        return [Arm(PLAIN, setting, rate, Condition()) for setting in loss.settings for rate in rates]

    def condition_arms(self, first: Arm) -> list[Arm]:
        """Return the arms by which augmentation and steps are chosen, with the plain loss."""
        conditions = [Condition(noise, length) for noise in self.details.noises for length in LENGTHS]
        return [first._replace(condition=condition) for condition in conditions]

    def loss_arms(self, loss: str, condition: Condition) -> list[Arm]:
        """Return the arms by which the setting and the learning rate of a loss are chosen."""
        rates = self.details.learning_rates
        return [Arm(loss, setting, rate, condition) for setting in LOSSES[loss].settings for rate in rates]


def members_of(loss: str) -> int:
    """Return how many models of a loss are trained under each judging seed."""
    return MEMBERS if loss in OF_MEMBERS else 1


def finish(title: str, trainings: Sequence[Training]) -> None:
    """Train what is missing."""
    missing = {training.path: training for training in trainings if not training.is_done()}
    for _ in each_done(title, train_and_keep, list(missing.values()), counting_bar):
        pass


def chosen_arms(tasks: Sequence[Trials]) -> dict[Trials, dict[str, Arm]]:
    """Return the arm of each loss, and that as usual, for each task; train what the choice needs."""
    seeds = {trials: trials.choice_seeds for trials in tasks}
    first = {trials: trials.first_arms() for trials in tasks}
    finish("plain loss", [each for t in tasks for arm in first[t] for each in t.trainings(arm, seeds[t])])
    best = {trials: trials.best(first[trials]) for trials in tasks}
    conditions = {trials: trials.condition_arms(best[trials]) for trials in tasks}
    finish("steps and noise", [each for t in tasks for arm in conditions[t] for each in t.trainings(arm, seeds[t])])
    condition = {trials: trials.best(conditions[trials]).condition for trials in tasks}
    arms = {t: {loss: t.loss_arms(loss, condition[t]) for loss in LOSSES} for t in tasks}
    of_losses = [(t, arm) for t in tasks for several in arms[t].values() for arm in several]
    finish("losses", [each for t, arm in of_losses for each in t.trainings(arm, seeds[t])])
    chosen = {t: {loss: t.best(several) for loss, several in arms[t].items()} for t in tasks}
    for trials in tasks:
        usual = [arm for arm in first[trials] if not dict(arm.setting)["label_smoothing"]]
        chosen[trials][AS_USUAL] = trials.best(usual)
    return chosen


class Work(NamedTuple):
    """Models whose mean is judged, under one seed."""

    trials: Trials
    name: str
    arm: Arm
    members: int
    seed: int


def judge(work: Work) -> list[Judged]:
    """Return the results of the mean of some models on the test samples, decided in each of the `DECISIONS`."""
    torch.set_num_threads(1)
    trials, spec = work.trials, work.trials.concern
    outcomes = [each.outcome() for each in trials.trainings(work.arm, [work.seed], work.members)]
    means = [average_logits([getattr(each, part) for each in outcomes]) for part in ("validation", "test")]
    outcome = Outcome(means[0], outcomes[0].validation_labels, means[1], outcomes[0].test_labels)
    harm = harm_matrix(spec)
    probs = calibrated(outcome.validation, outcome.validation_labels, calibration_for(harm))
    options = Options.from_probs([probs], outcome.validation_labels, harm)
    factor = options.options[options.choose(MAX_ACCURACY_LOSS)].factor
    likely, by_cost = outcome.test.argmax(dim=1), decide(calibrated_probs(outcome, harm), harm, factor)
    rule = DecisionRule(spec, Limit(trials.details.limit))
    fitted = quietly(partial(rule.fit, outcome.validation, outcome.validation_labels))
    referring = torch.full_like(by_cost, REFERRED) if fitted is None else fitted(outcome.test)
    return [_judged(decision, outcome.test_labels, spec) for decision in (likely, by_cost, referring)]


def _judged(decision: Tensor, target: Tensor, spec: ConcernSpec) -> Judged:
    is_decided, decided = decision != REFERRED, decision.clamp(min=0)
    is_dangerous = spec.dangerous_pairs()[target, decided] & is_decided
    harm = harm_matrix(spec)[target, decided] * is_decided
    of_samples = decision == target, is_dangerous, harm, is_decided
    return Judged(*(values.double().mean().item() for values in of_samples))


def results_of(tasks: Sequence[Trials]) -> Iterator[dict[str, Any]]:
    """Train what is missing, and yield the results of each task as plain values."""
    chosen = chosen_arms(tasks)
    arms = [(trials, name, arm) for trials in tasks for name, arm in chosen[trials].items()]
    counted = [(trials, arm, 1 if name == AS_USUAL else members_of(name)) for trials, name, arm in arms]
    finish("judging", [each for t, arm, number in counted for each in t.trainings(arm, t.details.seeds, number)])
    works = []
    for trials, name, arm in arms:
        for members in {1, 1 if name == AS_USUAL else members_of(name)}:
            works += [Work(trials, name, arm, members, seed) for seed in trials.details.seeds]
    results = dict(each_done("measuring", judge, works, counting_bar))
    for trials in tasks:
        yield _result(trials, chosen[trials], {work: of for work, of in results.items() if work.trials == trials})


def _result(trials: Trials, chosen: Mapping[str, Arm], results: Mapping[Work, Sequence[Judged]]) -> dict[str, Any]:
    task, seeds = trials.details, trials.details.seeds
    values: dict[str, Any] = {}
    for name, arm in chosen.items():
        members = sorted({work.members for work in results if work.name == name})
        of_members = {}
        for number in members:
            of_seeds = [results[Work(trials, name, arm, number, seed)] for seed in seeds]
            of_members[str(number)] = {
                decision: [list(of_seed[place]) for of_seed in of_seeds] for place, decision in enumerate(DECISIONS)
            }
        trained = trials.trainings(arm, seeds)
        values[name] = {
            "arm": plain_arm(arm),
            "seconds": sum(training.seconds() for training in trained) / len(trained),
            "members": of_members,
        }
    samples = len(trials.trainings(chosen[PLAIN], seeds)[0].outcome().test_labels)
    return {
        "task": trials.task,
        "seeds": [seeds.start, seeds.stop],
        "samples": samples,
        "limit": task.limit,
        "arms": values,
    }


def plain_arm(arm: Arm) -> dict[str, Any]:
    """Return an arm as plain values."""
    return {"loss": arm.loss, "setting": dict(arm.setting), "rate": arm.rate, **arm.condition._asdict()}


def main() -> None:
    """Train what is missing, print the tables, and keep the values."""
    parser = argparse.ArgumentParser("python -m examples.benchmark.fair", description=__doc__)
    parser.add_argument("tasks", metavar="TASK", nargs="*", help="names of tasks, or parts of them; default: all")
    parser.add_argument("--data-root", type=Path, default=Path("data"), help="default: data")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="default: runs")
    given = parser.parse_args()
    try:
        names = tasks_of(given.tasks)
    except ValueError as error:
        parser.error(str(error))
    folder = given.out / "fair"
    results = list(results_of([Trials(name, given.data_root, folder) for name in names]))
    save_values(results, folder)
    say(*tables_of(results))


if __name__ == "__main__":
    main()
