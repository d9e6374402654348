"""A complete loop: metrics, scheduler and warmup, the best epoch, resuming, stopping early.

Run it again after Ctrl-C or a crash: it goes on after the last epoch, as if nothing had
happened.
"""

from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassAccuracy

from mpcs_torch import ConcernSpec, DangerousErrors, MetaPatternConcernScore
from mpcs_torch.learning import MPCSLR, CheckpointSelector, SelectionRule, SoftmaxMarginLoss

# Confusing 1 with 7, or 3, 5 and 8 with each other, is an everyday mistake.
# Any other error is dangerous.
RELEASES = [[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]]
CONCERN = ConcernSpec(classes=10, releases=RELEASES, factor=0.5)
# The fewest dangerous errors, of the epochs whose accuracy is within a point of the best.
DIRECTIONS = {"dangerous": "min", "accuracy": "max"}
RULE = SelectionRule("dangerous", DIRECTIONS, within={"accuracy": 0.01})


def main(folder: Path = Path("runs/plain-pytorch"), epochs: int = 30) -> CheckpointSelector:
    """Train until the best epoch has not changed for three epochs, and print the pick."""
    digits = load_digits()
    inputs = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    train, valid = torch.arange(len(labels)).split([1347, 450])

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    loss = SoftmaxMarginLoss(CONCERN, margin=2.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    # MPCSLR is stepped with each epoch. The warmup is stepped with each batch, and
    # multiplies by the factor of MPCSLR.
    scheduler = MPCSLR(optimizer, power=0.5, lowest=0.05, sets_rates=False)
    warmup = LambdaLR(optimizer, lambda batch: scheduler.factor * min(1, (batch + 4) / 40))
    metrics = MetricCollection(
        {
            "accuracy": MulticlassAccuracy(10, average="micro"),
            "mpcs": MetaPatternConcernScore(num_classes=10, concern=CONCERN),
            "dangerous": DangerousErrors(num_classes=10, concern=CONCERN),
        }
    )

    selector = CheckpointSelector(
        folder,
        RULE,
        keep_last=True,
        keep_at_most=3,
        patience=3,
        resume=True,
    )
    parts = {
        "model": model,
        "optimizer": optimizer,
        "warmup": warmup,
        "scheduler": scheduler,
    }
    begin = 0
    if selector.last_epoch is not None:
        saved, begin = selector.load(selector.last_epoch), selector.last_epoch + 1
        for name, part in parts.items():
            part.load_state_dict(saved[name])

    for epoch in range(begin, epochs):
        if selector.should_stop:
            break
        generator = torch.Generator().manual_seed(epoch)
        shuffled = train[torch.randperm(len(train), generator=generator)]
        for batch in shuffled.split(64):
            optimizer.zero_grad()
            loss(model(inputs[batch]), labels[batch]).backward()
            optimizer.step()
            warmup.step()
        with torch.no_grad():
            metrics.update(model(inputs[valid]), labels[valid])
        values = metrics.compute()
        metrics.reset()
        scheduler.step(values["mpcs"])
        states = {name: part.state_dict() for name, part in parts.items()}
        selector.update(states, epoch=epoch, **values)
        numbers = "  ".join(f"{name} {value:.4f}" for name, value in sorted(values.items()))
        print(f"epoch {epoch:2}: {numbers}  learning rate {scheduler.get_last_lr()[0]:.5f}")

    print(selector.explain().markdown())
    model.load_state_dict(selector.load_best()["model"])
    return selector


if __name__ == "__main__":
    main()
