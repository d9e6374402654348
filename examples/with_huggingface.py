"""Hugging Face's Trainer, as in the tutorial "Fine-tuning", with a small model.

The Trainer loads the epoch with the lowest MPCS, the learning rate follows MPCS, and
training stops by patience.
"""

import os

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from mpcs_torch import ConcernSpec, MetaPatternConcernScore
from mpcs_torch.learning import MPCSLR, SelectionRule, SoftmaxMarginLoss
from mpcs_torch.metrics import Accuracy

os.environ["HF_HUB_OFFLINE"] = "1"  # nothing is downloaded here

from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainingArguments
from transformers.modeling_outputs import SequenceClassifierOutput

from mpcs_torch.integrations.huggingface import (
    SelectCheckpoint,
    compute_metrics,
    loss_function,
)

# Confusing 1 with 7, or 3, 5 and 8 with each other, is an everyday mistake.
# Any other error is dangerous.
RELEASES = [[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]]
CONCERN = ConcernSpec(classes=10, releases=RELEASES, factor=0.1)


class Digits(PreTrainedModel):
    """A small network over 64 pixels."""

    config_class = PretrainedConfig

    def __init__(self) -> None:
        super().__init__(PretrainedConfig())
        self.net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(
        self,
        inputs: Tensor,
        labels: Tensor | None = None,  # noqa: ARG002
    ) -> SequenceClassifierOutput:
        """Return logits; the Trainer computes the loss."""
        return SequenceClassifierOutput(logits=self.net(inputs))


def main() -> None:
    """Train for up to five epochs, and print the scores and the epoch that was picked."""
    torch.manual_seed(0)
    digits = load_digits()
    inputs = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    samples = zip(inputs, labels, strict=True)
    rows = [{"inputs": pixels, "labels": label} for pixels, label in samples]

    model = Digits()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    rule = SelectionRule("mpcs_loss", {"mpcs_loss": MetaPatternConcernScore})
    best = SelectCheckpoint("best", rule, patience=3)
    arguments = TrainingArguments(
        output_dir="trainer",
        num_train_epochs=5,
        per_device_train_batch_size=64,
        per_device_eval_batch_size=450,
        eval_strategy="epoch",
        save_strategy="epoch",
        # The name ends in "loss", so the Trainer knows that lower is better.
        metric_for_best_model="mpcs_loss",
        load_best_model_at_end=True,
        use_cpu=True,
        dataloader_pin_memory=False,
        report_to="none",
        disable_tqdm=True,
    )
    mpcs = MetaPatternConcernScore(10, concern=CONCERN)
    metrics = {"mpcs": mpcs, "accuracy": Accuracy(10)}
    trainer = Trainer(
        model,
        arguments,
        train_dataset=rows[:1347],
        eval_dataset=rows[1347:],
        compute_metrics=compute_metrics(metrics),
        compute_loss_func=loss_function(SoftmaxMarginLoss(CONCERN)),
        callbacks=[best],
        optimizers=(optimizer, MPCSLR(optimizer)),
    )
    trainer.train()
    print(best.selector.explain().markdown())
    # The Trainer knows no limits. If the rule has some, load its pick:
    # model.load_state_dict(best.selector.load_best())
    print(f"The Trainer loaded {trainer.state.best_model_checkpoint}: the same weights.")


if __name__ == "__main__":
    main()
