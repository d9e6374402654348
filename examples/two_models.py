"""Write the test predictions of two models, for ``mpcs score small.csv large.csv --concern digits.yaml``."""

import csv
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn

from mpcs_torch import ConcernSpec
from mpcs_torch.concern import save_concern

# Confusing 1 with 7, or 3, 5 and 8 with each other, is an everyday mistake. Any other error is dangerous.
CONCERN = ConcernSpec(classes=10, releases=[[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]], factor=0.5)


def main() -> None:
    """Train both models on the first half of the digits, and predict the second."""
    digits = load_digits()
    inputs, labels = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    train, test = slice(None, 900), slice(900, None)
    for name, hidden in (("small", 8), ("large", 64)):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 10))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(60):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs[train]), labels[train]).backward()
            optimizer.step()
        probs = model(inputs[test]).softmax(dim=1)
        with Path(f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow([*CONCERN.classes, "target"])
            rows.writerows([*row, label] for row, label in zip(probs.tolist(), labels[test].tolist(), strict=True))
        print(f"wrote {name}.csv")
    Path("digits.yaml").unlink(missing_ok=True)
    save_concern(CONCERN, Path("digits.yaml"))
    print("wrote digits.yaml")


if __name__ == "__main__":
    main()
