"""Averages can hide a rare class: a classifier of handwritten digits that was trained with few eights."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torchmetrics.functional.classification import multiclass_accuracy, multiclass_f1_score

from mpcs_torch import ConcernSpec, MulticlassQualityMetrics
from mpcs_torch.functional import class_error_rates
from mpcs_torch.metrics import ConfusionMatrix
from mpcs_torch.plots import confusion_matrix

CONCERN = ConcernSpec(
    classes=10, releases=[[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]]
)


def main() -> None:
    """Train without most of the eights, print all averages, and draw the confusion matrix."""
    torch.manual_seed(0)
    digits = load_digits()
    inputs, labels = (
        torch.tensor(digits.data, dtype=torch.float32) / 16,
        torch.tensor(digits.target),
    )
    train, test = torch.arange(900), torch.arange(900, len(labels))
    train = train[(labels[:900] != 8) | (torch.rand(900) < 0.05)]

    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs[train]), labels[train]).backward()
        optimizer.step()

    quality, matrix = (
        MulticlassQualityMetrics(num_classes=10),
        ConfusionMatrix(num_classes=10),
    )
    with torch.no_grad():
        predicted = model(inputs[test]).argmax(dim=1)
    quality.update(predicted, labels[test])
    matrix.update(predicted, labels[test])
    for name, value in quality.compute().items():
        print(f"{name:20} {value:.4f}")
    rates = class_error_rates(predicted, labels[test], num_classes=10)
    print("error rate by class ", " ".join(f"{rate:.2f}" for rate in rates))

    print("\nOther libraries use the same words for other numbers:")
    f1 = multiclass_f1_score(predicted, labels[test], num_classes=10, average="macro")
    print(
        f"macro F1 of torchmetrics, the mean of the classes' F1: {f1:.4f} (macro_fscore is the F of the means)"
    )
    accuracy = multiclass_accuracy(predicted, labels[test], num_classes=10, average="micro")
    print(
        f"accuracy, the share of right decisions: {accuracy:.4f} (here 1 - weighted_error_rate)"
    )
    names = [str(digit) for digit in range(10)]
    confusion_matrix(
        matrix.compute(), CONCERN.released(), names, "trained with few eights"
    ).savefig("confusion.png")
    print("\nwrote confusion.png")


if __name__ == "__main__":
    main()
