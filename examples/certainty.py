"""Are the probabilities of a classifier calibrated? Two training runs of one model on handwritten digits."""

import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from torch import Tensor, nn

from mpcs_torch import ProbabilityAccuracy
from mpcs_torch.functional import (
    calibration_slope,
    decisiveness,
    geometric_accuracy,
    robustness,
)
from mpcs_torch.functional.probability.probability_accuracy import MeasuredProbabilities
from mpcs_torch.functional.probability.scores import (
    DECISIVE,
    GEOMETRIC,
    ROBUST,
    ProbabilityMeans,
)
from mpcs_torch.plots import reliability

# Decisiveness and robustness, reported and measured, from Table 1 of George, Barrera and Nelson, arXiv:2006.00058.
TABLE_1 = {
    "AlexNet, GTSRB": (0.973, 0.603, 0.962, 0.679),
    "DenseNet, GTSRB": (0.939, 0.437, 0.920, 0.505),
    "AlexNet, ImageNet": (0.465, 0.054, 0.444, 0.054),
    "DenseNet, ImageNet": (0.607, 0.085, 0.573, 0.087),
}
FLOORS = (0.05, 0.01, 0.005, 0.001, 0.0)
"""The floors epsilon of Table 2."""
POWERS = [tenth / 10 for tenth in range(-20, 21)]
SEEN = 700
"""The number of samples to train with; the others are new."""
TRAININGS = {"few steps": (60, 0.0), "20 percent wrong labels": (800, 0.2)}
"""The steps of each training, and the share of its labels that are drawn at random."""


def main() -> None:
    """Print the slopes of the paper, then those of two models of ours; draw their reliability and their means."""
    print_slopes_of_the_paper()
    digits = load_digits()
    inputs = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    new_labels = labels[SEEN:]
    print(
        "\ntraining          robust  geometric  decisive   slope      (reported / measured)"
    )
    logits, curves = {}, {}
    for name, (steps, noise) in TRAININGS.items():
        logits[name] = outputs_of_training(inputs, labels, steps=steps, noise=noise)
        accuracy = ProbabilityAccuracy(num_classes=10)
        accuracy.update(logits[name], new_labels)
        values = accuracy.compute()
        pairs = [
            f"{values[f'reported_{mean}']:.3f} / {values[f'measured_{mean}']:.3f}"
            for mean in ("robustness", "geometric_accuracy", "decisiveness")
        ]
        print(f"{name:24} {'   '.join(pairs)}   {values['slope']:.2f}")
        file = f"certainty-{name.replace(' ', '-')}.png"
        reliability(accuracy.bins(), accuracy.reported(), name).savefig(file, dpi=110)
        print(f"wrote {file}")
        curves[name] = mean_curves(of_true_class(logits[name], new_labels), accuracy.bins())

    mean_figure(curves).savefig("certainty-means.png", dpi=110)
    print("wrote certainty-means.png")
    print_means_by_floor(logits["20 percent wrong labels"], new_labels)


def print_slopes_of_the_paper() -> None:
    """Print the slope of each classifier of Table 1, from its decisiveness and robustness alone."""
    print("slopes of the classifiers of the paper (below 1 is overconfident):")
    for name, (decisive, robust, *measured) in TABLE_1.items():
        of_paper = [
            ProbabilityMeans(torch.tensor(torch.nan), torch.tensor(d), torch.tensor(r))
            for d, r in ((decisive, robust), measured)
        ]
        print(f"{name:20} {calibration_slope(*of_paper):.3f}")


def outputs_of_training(
    inputs: Tensor, labels: Tensor, *, steps: int, noise: float
) -> Tensor:
    """Train with a share of wrong labels, and return the logits of the samples that were not seen."""
    torch.manual_seed(0)
    is_wrong = torch.rand(SEEN) < noise
    seen = torch.where(is_wrong, torch.randint(0, 10, (SEEN,)), labels[:SEEN])
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs[:SEEN]), seen).backward()
        optimizer.step()
    with torch.no_grad():
        outputs: Tensor = model(inputs[SEEN:])
    return outputs


def of_true_class(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the probability of the true class of each sample."""
    return logits.softmax(dim=1).gather(1, labels.unsqueeze(1)).squeeze(1)


def print_means_by_floor(logits: Tensor, labels: Tensor) -> None:
    """Print the reported means with each floor, and the share of probabilities below it."""
    print(
        "\nreported means of the second model, by the floor epsilon of the probabilities, as in Table 2:"
    )
    print("epsilon   below it  robust  geometric  decisive")
    probs = of_true_class(logits, labels)
    for epsilon in FLOORS:
        settings = {"num_classes": 10, "epsilon": epsilon}
        below = (probs < epsilon).float().mean()
        robust = robustness(logits, labels, **settings)
        geometric = geometric_accuracy(logits, labels, **settings)
        decisive = decisiveness(logits, labels, **settings)
        print(f"{epsilon:<9} {below:8.1%} {robust:7.3f} {geometric:10.3f} {decisive:9.3f}")


def mean_curves(of_true: Tensor, bins: MeasuredProbabilities) -> tuple[Tensor, Tensor]:
    """Compute the means of reported and of measured probabilities of true classes for each of POWERS."""
    reported = [power_mean(of_true, torch.ones_like(of_true), power) for power in POWERS]
    measured = [power_mean(bins.rate, bins.correct, power) for power in POWERS]
    return torch.stack(reported), torch.stack(measured)


def power_mean(values: Tensor, weights: Tensor, power: float) -> Tensor:
    """Compute the generalized mean of values, which are at least 0.005."""
    floored, shares = values.clamp(min=0.005), weights / weights.sum()
    if power == 0:
        return (shares * floored.log()).sum().exp()
    return (shares * floored**power).sum() ** (1 / power)


def mean_figure(curves: dict[str, tuple[Tensor, Tensor]]) -> Figure:
    """Draw the means of reported (solid) and of measured probabilities (dashed) over their power; higher is better."""
    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.add_subplot(
        xlabel="power of the mean", ylabel="mean probability of the true class", ylim=(0, 1)
    )
    for name, power in (
        ("robustness", ROBUST),
        ("geometric", GEOMETRIC),
        ("decisiveness", DECISIVE),
    ):
        axes.axvline(power, color="lightgrey", linewidth=0.8)
        axes.text(power, 0.02, f" {name}", rotation=90, color="grey")
    for number, (name, (reported, measured)) in enumerate(curves.items()):
        axes.plot(POWERS, reported, f"C{number}-", label=f"{name}, reported")
        axes.plot(POWERS, measured, f"C{number}--", label=f"{name}, measured")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


if __name__ == "__main__":
    main()
