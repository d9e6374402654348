"""The choice of settings: validation samples of some seeds choose, under one budget for all losses.

Each loss has the same steps, augmentation, learning rates and number of settings, and is chosen by the same score. So a
difference between two losses is not one of budgets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from examples.benchmark.fleets import Condition, Regime
from examples.benchmark.losses import FLOORED, LOSSES, PLAIN, SMOOTHING
from examples.benchmark.tasks import TASKS, Task
from examples.benchmark.training import Training
from mpcs_torch.cli.console import counting_bar
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.learning.factor_choice import best_calibration, harm_matrix

AS_USUAL = "cross entropy, as usual"
"""The arm without augmentation, with the plain number of steps and without label smoothing."""
SHORT = {PLAIN: "cross entropy, plain steps", FLOORED: "margin with a floor, plain steps"}
"""Losses that are also judged without augmentation and with the plain number of steps, and the names of these arms."""


class Arm(NamedTuple):
    """A way of training that is compared."""

    regime: Regime
    setting: float
    """Of the loss."""

    def plain(self) -> dict[str, Any]:
        """Return the arm as plain values."""
        loss, rate, condition, smoothing = self.regime
        setting = {"loss": loss, "setting": self.setting, "smoothing": smoothing}
        return {**setting, "rate": rate, **condition._asdict()}


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

    def trainings(self, arm: Arm, seeds: range, members: int) -> list[Training]:
        """Return the trainings of an arm under some seeds, in parts of which each trains at once."""
        size = max(1, self.details.at_once // members)
        parts = [seeds[start : start + size] for start in range(0, len(seeds), size)]
        return [self._training(arm, (arm.setting,), part, members) for part in parts]

    def tried(self, arm: Arm) -> Training:
        """Return the training of an arm, with all settings of its loss, under the seeds by which they are chosen."""
        return self._training(
            arm, LOSSES[arm.regime.loss].values, self.details.choice_seeds, 1
        )

    def _training(
        self, arm: Arm, settings: tuple[float, ...], seeds: range, members: int
    ) -> Training:
        return Training(
            self.task, arm.regime, settings, seeds, members, self.data_root, self.out
        )

    def score(self, arm: Arm) -> float:
        """Return the mean log score of an arm on the validation samples of the choice seeds; lower is better."""
        harm, training = harm_matrix(self.concern), self.tried(arm)
        outcomes = [training.outcome(arm.setting, seed) for seed in training.seeds]
        scores = [
            best_calibration(each.validation[0], each.validation_labels, harm).score
            for each in outcomes
        ]
        return sum(scores) / len(scores)

    def best(self, arms: Sequence[Arm]) -> Arm:
        """Return the best of some arms; train what is missing under the choice seeds."""
        finish(
            f"{self.task}: choosing {arms[0].regime.loss}",
            [self.tried(arm) for arm in arms],
        )
        return min(arms, key=self.score)

    def arms_of(self, loss: str, condition: Condition, smoothing: float = 0.0) -> list[Arm]:
        """Return the arms by which the setting and the learning rate of a loss are chosen."""
        if LOSSES[loss].setting == SMOOTHING:
            smoothing = 0.0  # it chooses its own
        regimes = [
            Regime(loss, rate, condition, smoothing) for rate in self.details.learning_rates
        ]
        return [Arm(regime, value) for value in LOSSES[loss].values for regime in regimes]

    def chosen(self) -> dict[str, Arm]:
        """Return the arm of each loss under the condition that is best for cross entropy, and the shorter arms."""
        task, plain = self.details, self.arms_of(PLAIN, Condition())
        chosen = {AS_USUAL: self.best([arm for arm in plain if not arm.setting])}
        chosen |= {
            name: self.best(self.arms_of(loss, Condition())) for loss, name in SHORT.items()
        }
        regime = chosen[SHORT[PLAIN]].regime
        regimes = [
            regime._replace(condition=Condition(noise, length))
            for noise in task.noises
            for length in task.lengths
        ]
        settings = LOSSES[PLAIN].values
        condition = self.best(
            [Arm(each, value) for each in regimes for value in settings]
        ).regime.condition
        chosen[PLAIN] = self.best(self.arms_of(PLAIN, condition))
        for name, loss in LOSSES.items():
            if name != PLAIN and loss.group in task.groups:
                chosen[name] = self.best(
                    self.arms_of(name, condition, chosen[PLAIN].setting)
                )
        return chosen


def finish(title: str, trainings: Sequence[Training]) -> None:
    """Run the trainings that are not done."""
    missing = [training for training in dict.fromkeys(trainings) if not training.is_done()]
    if missing:
        with counting_bar(title, len(missing)) as advance:
            for training in missing:
                training.run()
                advance()
