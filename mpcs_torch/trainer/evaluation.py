"""All the numbers of one turn from one forward pass over the training set and one over the test set."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torchmetrics.functional.classification import multiclass_confusion_matrix

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern.dangerous import count_dangerous_cells
from mpcs_torch.functional.concern.mpcs import pattern_terms, score_terms
from mpcs_torch.functional.quality.accuracy import accuracy_of
from mpcs_torch.functional.quality.macro_f1 import macro_f1_of
from mpcs_torch.functional.quality.matthews_correlation import matthews_correlation_of
from mpcs_torch.trainer.data import DataSplits


@dataclass(frozen=True)
class Evaluation:
    """What a turn measured."""

    values: dict[str, float]
    """By the names of `columns.COLUMNS`, without the turn."""
    confusion: Tensor
    """Training set, int64 (C, C): rows true classes, columns predicted ones."""


@dataclass(frozen=True)
class Evaluator:
    """Measures a model on data that stays on one device, with fixed settings of MPCS."""

    data: DataSplits
    concern: ConcernSpec
    k: int
    t: int
    mode: Literal["eval", "train"]
    batch_size: int
    """How many training samples go through the model at once."""

    @torch.no_grad()
    def __call__(self, model: nn.Module) -> Evaluation:
        """Evaluate, drawing nothing from the random generators and giving the model back in its own mode."""
        own_mode = model.training
        model.train(self.mode == "train")
        logits = self.logits(model)
        test_predicted = forward_pass(model, self.data.test_inputs).argmax(dim=1)
        model.train(own_mode)
        target = self.data.train_labels
        log_probs = logits.log_softmax(dim=1)  # gives the cross entropy and, quicker than a softmax, the probabilities
        probs = log_probs.exp()
        confusion = multiclass_confusion_matrix(
            logits.argmax(dim=1), target, num_classes=logits.shape[1], validate_args=False
        ).cpu()
        terms = pattern_terms(probs, target, k=self.k, t=self.t, concern=self.concern.matrix().to(target.device))

        column = target.unsqueeze(1)
        errors = probs.scatter_add(1, column, torch.full_like(column, -1, dtype=probs.dtype))
        return Evaluation(
            {
                "accuracy": accuracy_of(confusion).item(),
                "f1_macro": macro_f1_of(confusion).item(),
                "mcc": matthews_correlation_of(confusion).item(),
                "mean_squared_error": errors.square().mean(dtype=torch.float64).item(),
                "cross_entropy": -log_probs.gather(1, column).mean(dtype=torch.float64).item(),
                "mpcs": score_terms(terms, k=self.k, correct_concern="sum").mean().item(),
                "mpcs_count": score_terms(terms, k=self.k, correct_concern="count").mean().item(),
                "dangerous": int(count_dangerous_cells(confusion, self.concern.released())),
                "test_accuracy": (test_predicted == self.data.test_labels).double().mean().item(),
            },
            confusion,
        )

    def logits(self, model: nn.Module) -> Tensor:
        """Of the training samples, (N, C)."""
        batches = torch.split(self.data.train_inputs, self.batch_size)
        return torch.cat([forward_pass(model, inputs) for inputs in batches])


def forward_pass(model: nn.Module, inputs: Tensor) -> Tensor:
    """Logits (N, C) of a whole set at once; fabric gives them in float32 under mixed precision too."""
    logits: Tensor = model(inputs)
    return logits
