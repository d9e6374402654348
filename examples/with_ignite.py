"""Ignite: its tutorial "Quick start", with MPCS, a rate that follows it, the best epoch."""

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mpcs_torch import ConcernSpec, MetaPatternConcernScore
from mpcs_torch.integrations.ignite import SelectCheckpoint, TorchMetric
from mpcs_torch.learning import MPCSLR, SelectionRule, SoftmaxMarginLoss
from mpcs_torch.metrics import Accuracy

# Confusing 1 with 7, or 3, 5 and 8 with each other, is an everyday mistake.
# Any other error is dangerous.
RELEASES = [[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]]
CONCERN = ConcernSpec(classes=10, releases=RELEASES, factor=0.1)


def main() -> None:
    """Train for up to eight epochs, and print the epochs that the rule and metrics pick."""
    torch.manual_seed(0)
    digits = load_digits()
    inputs = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    seen = TensorDataset(inputs[:1347], labels[:1347])
    train = DataLoader(seen, batch_size=64, shuffle=True)
    validation = DataLoader(TensorDataset(inputs[1347:], labels[1347:]), batch_size=450)

    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = MPCSLR(optimizer)
    trainer = create_supervised_trainer(model, optimizer, SoftmaxMarginLoss(CONCERN))
    mpcs = MetaPatternConcernScore(10, concern=CONCERN)
    metrics = {"mpcs": TorchMetric(mpcs), "accuracy": TorchMetric(Accuracy(10))}
    evaluator = create_supervised_evaluator(model, metrics=metrics)

    directions = {"mpcs": MetaPatternConcernScore, "accuracy": "max"}
    rule = SelectionRule("mpcs", directions, within={"accuracy": 0.01})
    folder, state = "ignite_checkpoints", model.state_dict
    best = SelectCheckpoint(folder, rule, state=state, trainer=trainer, patience=3)

    @evaluator.on(Events.COMPLETED)
    def set_rate() -> None:  # before the checkpoint, which has the scheduler of this step
        scheduler.step(evaluator.state.metrics["mpcs"])

    evaluator.add_event_handler(Events.COMPLETED, best)

    @trainer.on(Events.EPOCH_COMPLETED)
    def validate() -> None:
        values = evaluator.run(validation).metrics
        numbers = f"MPCS {values['mpcs']:.4f}  accuracy {values['accuracy']:.4f}"
        print(f"epoch {trainer.state.epoch}  {numbers}")

    trainer.run(train, max_epochs=8)
    print(best.selector.explain().markdown())
    model.load_state_dict(best.selector.load_best())


if __name__ == "__main__":
    main()
