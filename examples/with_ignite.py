"""Ignite: MPCS on an evaluator, from which the learning rate and the checkpoint selector follow."""

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mpcs_torch import ConcernSpec, MetaPatternConcernScore
from mpcs_torch.integrations.ignite import SelectCheckpoint, TorchMetric
from mpcs_torch.learning import MPCSLR, CheckpointSelector, SelectionRule, SoftmaxMarginLoss
from mpcs_torch.metrics import Accuracy

# Confusing 1 with 7, or 3, 5 and 8 with each other, is an everyday mistake. Any other error is dangerous.
CONCERN = ConcernSpec(classes=10, releases=[[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]], factor=0.1)


def main() -> None:
    """Train for eight epochs, and print the epoch that the rule picks beside those of single metrics."""
    torch.manual_seed(0)
    digits = load_digits()
    inputs, labels = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    train = DataLoader(TensorDataset(inputs[:1347], labels[:1347]), batch_size=64, shuffle=True)
    validation = DataLoader(TensorDataset(inputs[1347:], labels[1347:]), batch_size=450)

    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = MPCSLR(optimizer)
    rule = SelectionRule("mpcs", {"mpcs": MetaPatternConcernScore, "accuracy": "max"}, within={"accuracy": 0.01})
    selector = CheckpointSelector("ignite_checkpoints", rule)

    trainer = create_supervised_trainer(model, optimizer, SoftmaxMarginLoss(CONCERN))
    evaluator = create_supervised_evaluator(model)
    TorchMetric(MetaPatternConcernScore(10, concern=CONCERN)).attach(evaluator, "mpcs")
    TorchMetric(Accuracy(10)).attach(evaluator, "accuracy")
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: evaluator.run(validation))
    evaluator.add_event_handler(Events.COMPLETED, SelectCheckpoint(selector, model.state_dict, trainer))
    evaluator.add_event_handler(Events.COMPLETED, lambda: scheduler.step(evaluator.state.metrics["mpcs"]))
    trainer.run(train, max_epochs=8)

    print(selector.explain().markdown())
    model.load_state_dict(selector.load_best())


if __name__ == "__main__":
    main()
