"""Are the probabilities of a classifier calibrated? Two training runs of one model on handwritten digits."""

import torch
from sklearn.datasets import load_digits
from torch import nn

from mpcs_torch import ProbabilityAccuracy
from mpcs_torch.functional import calibration_slope
from mpcs_torch.functional.probability.generalized import ProbabilityMeans
from mpcs_torch.plots import reliability

# Decisiveness and robustness, reported and measured, from Table 1 of George, Barrera and Nelson, arXiv:2006.00058.
TABLE_1 = {
    "AlexNet, GTSRB": (0.973, 0.603, 0.962, 0.679),
    "DenseNet, GTSRB": (0.939, 0.437, 0.920, 0.505),
    "AlexNet, ImageNet": (0.465, 0.054, 0.444, 0.054),
    "DenseNet, ImageNet": (0.607, 0.085, 0.573, 0.087),
}


def main() -> None:
    """Print the slopes of the paper, then those of two models of ours, and draw the reliability of both."""
    print("slopes of the classifiers of the paper (below 1 is overconfident):")
    for name, (decisive, robust, *measured) in TABLE_1.items():
        of_paper = [
            ProbabilityMeans(torch.tensor(torch.nan), torch.tensor(d), torch.tensor(r))
            for d, r in ((decisive, robust), measured)
        ]
        print(f"{name:20} {calibration_slope(*of_paper):.3f}")

    digits = load_digits()
    inputs, labels = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    print("\ntraining          robust  geometric  decisive   slope      (reported / measured)")
    for name, steps, noise in (("few steps", 60, 0.0), ("20 percent wrong labels", 800, 0.2)):
        torch.manual_seed(0)
        wrong = torch.rand(700) < noise
        seen = torch.where(wrong, torch.randint(0, 10, (700,)), labels[:700])
        model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
        for _ in range(steps):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs[:700]), seen).backward()
            optimizer.step()
        accuracy = ProbabilityAccuracy(num_classes=10)
        with torch.no_grad():
            accuracy.update(model(inputs[700:]), labels[700:])
        values = accuracy.compute()
        pairs = [
            f"{values[f'reported_{mean}']:.3f} / {values[f'measured_{mean}']:.3f}"
            for mean in ("robustness", "geometric_accuracy", "decisiveness")
        ]
        print(f"{name:24} {'   '.join(pairs)}   {values['slope']:.2f}")
        file = f"certainty-{name.replace(' ', '-')}.png"
        reliability(accuracy.bins(), accuracy.reported(), name).savefig(file, dpi=110)
        print(f"wrote {file}")


if __name__ == "__main__":
    main()
