"""MPCS and dangerous errors beside accuracy, in a plain PyTorch loop over handwritten digits."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassAccuracy

from mpcs_torch import ConcernSpec, DangerousErrors, MetaPatternConcernScore

# Confusing 1 with 7, or 3, 5 and 8 with each other, is an everyday mistake. Any other error is dangerous.
CONCERN = ConcernSpec(classes=10, releases=[[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]], factor=0.5)


def main() -> None:
    """Train for ten epochs and print the accuracy, the MPCS and the number of dangerous errors of each."""
    torch.manual_seed(0)
    digits = load_digits()
    inputs = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    train, valid = torch.arange(len(labels)).split([1347, 450])

    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    metrics = MetricCollection(
        {
            "accuracy": MulticlassAccuracy(10, average="micro"),
            "mpcs": MetaPatternConcernScore(num_classes=10, concern=CONCERN),
            "dangerous": DangerousErrors(num_classes=10, concern=CONCERN),
        }
    )
    print("epoch  accuracy    MPCS  dangerous")
    for epoch in range(1, 11):
        for batch in train[torch.randperm(len(train))].split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs[batch]), labels[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            metrics.update(model(inputs[valid]), labels[valid])
        values = metrics.compute()
        print(f"{epoch:5}  {values['accuracy']:8.4f}  {values['mpcs']:.4f}  {values['dangerous']:9.0f}")
        metrics.reset()


if __name__ == "__main__":
    main()
