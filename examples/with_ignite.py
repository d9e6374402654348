"""Ignite: the loop of its tutorial "Quick start", with MPCS, a learning rate that follows it, and the best epoch."""

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mpcs_torch import ConcernSpec, MetaPatternConcernScore
from mpcs_torch.integrations.ignite import SelectCheckpoint, TorchMetric
from mpcs_torch.learning import MPCSLR, SelectionRule, SoftmaxMarginLoss
from mpcs_torch.metrics import Accuracy

# Confusing 1 with 7, or 3, 5 and 8 with each other, is an everyday mistake. Any other error is dangerous.
CONCERN = ConcernSpec(classes=10, releases=[[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]], factor=0.1)


def main() -> None:
    """Train for up to eight epochs, and print the epoch that the rule picks beside those of single metrics."""
    torch.manual_seed(0)
    digits = load_digits()
    inputs, labels = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    train = DataLoader(TensorDataset(inputs[:1347], labels[:1347]), batch_size=64, shuffle=True)
    validation = DataLoader(TensorDataset(inputs[1347:], labels[1347:]), batch_size=450)

    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = MPCSLR(optimizer)
    trainer = create_supervised_trainer(model, optimizer, SoftmaxMarginLoss(CONCERN))
    metrics = {"mpcs": TorchMetric(MetaPatternConcernScore(10, concern=CONCERN)), "accuracy": TorchMetric(Accuracy(10))}
    evaluator = create_supervised_evaluator(model, metrics=metrics)

    rule = SelectionRule("mpcs", {"mpcs": MetaPatternConcernScore, "accuracy": "max"}, within={"accuracy": 0.01})
    best = SelectCheckpoint("ignite_checkpoints", rule, state=model.state_dict, trainer=trainer, patience=3)

    @evaluator.on(Events.COMPLETED)
    def set_rate() -> None:  # before the checkpoint is saved, so that a saved scheduler has taken this step, too
        scheduler.step(evaluator.state.metrics["mpcs"])

    evaluator.add_event_handler(Events.COMPLETED, best)

    @trainer.on(Events.EPOCH_COMPLETED)
    def validate() -> None:
        values = evaluator.run(validation).metrics
        print(f"epoch {trainer.state.epoch}  MPCS {values['mpcs']:.4f}  accuracy {values['accuracy']:.4f}")

    trainer.run(train, max_epochs=8)
    print(best.selector.explain().markdown())
    model.load_state_dict(best.selector.load_best())


if __name__ == "__main__":
    main()
