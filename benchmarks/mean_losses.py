"""Train for robustness or for decisiveness, instead of by cross entropy: ``python -m benchmarks.mean_losses``.

George, Barrera and Nelson propose these losses in Section 6 of arXiv:2006.00058. Each is -log of a generalized mean of
the probability of the true class: of power -2/3, 0 (cross entropy) and 1. Models are small, and the digits are those of
scikit-learn.
"""

import torch
from sklearn.datasets import load_digits
from torch import nn

from mpcs_torch import ProbabilityAccuracy
from mpcs_torch.functional import jackknife_interval
from mpcs_torch.learning import GeneralizedMeanLoss

LOSSES = {"robustness": -2 / 3, "cross entropy": 0.0, "decisiveness": 1.0}
SEEDS, STEPS, TRAINED = 20, 300, 700


def main() -> None:
    """Print accuracy and the reported means on test data, with right labels and with noise."""
    digits = load_digits()
    inputs, labels = (
        torch.tensor(digits.data, dtype=torch.float32) / 16,
        torch.tensor(digits.target),
    )
    for noise in (0.0, 0.2):
        print(
            f"{noise:.0%} of the training labels drawn at random; test data, means over {SEEDS} seeds [95 %]"
        )
        print(
            f"{'trained for':14}{'accuracy %':>20}{'robustness':>22}{'geometric':>22}{'decisiveness':>22}{'slope':>8}"
        )
        for name, power in LOSSES.items():
            rows = torch.tensor(
                [train(inputs, labels, power, noise, seed) for seed in range(SEEDS)]
            )
            over_seeds = jackknife_interval(
                lambda kept, rows=rows: rows[kept].mean(dim=0), torch.arange(SEEDS)
            )
            mean, low, high = [values.tolist() for values in over_seeds]
            cells = [f"{mean[0]:.1f} [{low[0]:.1f}, {high[0]:.1f}]".rjust(20)]
            cells += [
                f"{mean[i]:.3f} [{low[i]:.3f}, {high[i]:.3f}]".rjust(22) for i in (1, 2, 3)
            ]
            print(f"{name:14}{''.join(cells)}{mean[4]:8.2f}")
        print()


def train(
    inputs: torch.Tensor, labels: torch.Tensor, power: float, noise: float, seed: int
) -> list[float]:
    """Train one model; return accuracy in percent, the three reported means and the slope."""
    torch.manual_seed(seed)
    order = torch.randperm(len(labels))
    inputs, labels = inputs[order], labels[order]
    wrong = torch.rand(TRAINED) < noise
    seen = torch.where(wrong, torch.randint(0, 10, (TRAINED,)), labels[:TRAINED])
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    loss = GeneralizedMeanLoss(power)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss(model(inputs[:TRAINED]), seen).backward()
        optimizer.step()
    accuracy = ProbabilityAccuracy(num_classes=10)
    with torch.no_grad():
        logits = model(inputs[TRAINED:])
    accuracy.update(logits, labels[TRAINED:])
    values = accuracy.compute()
    right = (logits.argmax(dim=1) == labels[TRAINED:]).double().mean().item()
    means = [
        values[f"reported_{mean}"].item()
        for mean in ("robustness", "geometric_accuracy", "decisiveness")
    ]
    return [100 * right, *means, values["slope"].item()]


if __name__ == "__main__":
    main()
