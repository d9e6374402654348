"""Test predictions of a trained network on MNIST and on digits, with the concern of the case study or the benchmark."""

from pathlib import Path
from typing import NamedTuple

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor

from benchmarks.tabular_models import mlp
from examples.benchmark.fleets import Condition, Fleet, Model, Regime
from examples.benchmark.losses import PLAIN
from examples.benchmark.tasks import TASKS
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional import accuracy, dangerous_errors, least_concern_decision

DIGITS_TEST = 1500


class HeldOut(NamedTuple):
    """Logits for samples that the network was not trained on."""

    logits: Tensor
    """(N, C)."""
    target: Tensor
    """(N,), int64."""
    concern: ConcernSpec

    def at(self, index: Tensor) -> "HeldOut":
        """Return the samples at some indices."""
        return HeldOut(self.logits[index], self.target[index], self.concern)

    def summary(self) -> str:
        """Describe how often decisions without referral are right, and how often their errors are dangerous."""
        classes, samples = len(self.concern.classes), len(self.target)
        right = accuracy(self.logits, self.target, num_classes=classes)
        decided = least_concern_decision(
            self.logits, concern=self.concern.costs(), from_logits=True
        )
        pairs = self.concern.dangerous_pairs()
        rate = (
            dangerous_errors(decided, self.target, num_classes=classes, concern=pairs)
            / samples
        )
        return f"{samples} test samples, accuracy {right:.4f}, dangerous rate {rate:.4f}"


def mnist(data_root: Path) -> HeldOut:
    """Train the MLP of the benchmark by cross entropy (seed 0), and predict the 10 000 test images."""
    task = TASKS["MNIST, MLP"]
    fleet = Fleet(
        task,
        Regime(PLAIN, task.learning_rates[0], Condition()),
        [Model(0.0, seed=0)],
        data_root,
    )
    fleet.train()
    places = fleet.parts[0].test
    return HeldOut(fleet.outputs(0, places), fleet.labels[places], task.spec(data_root))


def digits() -> HeldOut:
    """Train an MLP on 297 of the 1797 digits, and predict the others; the concern is that of the benchmark."""
    concern = TASKS["digits, MLP"].spec(Path())
    train, test, labels, target = train_test_split(
        *load_digits(return_X_y=True), test_size=DIGITS_TEST, random_state=0
    )
    return HeldOut(mlp(train / 16, labels, 0)(test / 16), torch.from_numpy(target), concern)
