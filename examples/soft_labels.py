"""Soft labels, which are degrees of truth: the small cases of the paper, and images that mix two digits."""

import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torchvision.transforms.v2 import MixUp

from mpcs_torch.functional import soft_f1, soft_kl_divergence, soft_precision, soft_recall
from mpcs_torch.metrics import SoftF1

# Labels and predictions with the scores of Table 1 in Harju and Mesaros, "Evaluating classification systems against
# soft labels". The paper only draws them as bars.
TABLE_1 = [
    ([0.9, 0.8, 0.2, 0.1], [0.2, 0.9, 0.1, 0.6]),
    ([0.9, 0.8, 0.2, 0.1], [0.8, 0.7, 0.1, 0.4]),
    ([0.6, 0.6, 0.4, 0.4], [0.4, 0.4, 0.6, 0.4]),
]


def main() -> None:
    """Print Table 1, draw Figure 1, and score models on mixed digits."""
    print("Table 1   hard P    R     F  soft P    R     F    KLD")
    for number, (labels, predictions) in enumerate(TABLE_1, start=1):
        target, preds = torch.tensor(labels), torch.tensor(predictions)
        scores = [
            100 * metric(p, y, num_classes=1)
            for p, y in (((preds > 0.5).float(), target > 0.5), (preds, target))
            for metric in (soft_precision, soft_recall, soft_f1)
        ]
        printed = "  ".join(f"{score:5.1f}" for score in scores)
        print(f"case {number}     {printed}  {soft_kl_divergence(preds, target):.3f}")
    draw_figure_1()
    print("wrote soft-f.png\n")
    score_mixed_digits()


def draw_figure_1() -> None:
    """Draw the F of two predictions, of which one is right and the other off by epsilon."""
    epsilon = torch.linspace(-0.2, 0.8, 501)
    target = torch.tensor([0.8, 0.2])
    pairs = [torch.tensor([0.8, 0.2 + e]).clamp(0, 1) for e in epsilon.tolist()]
    axes = Figure(figsize=(6, 3.6), layout="constrained").add_subplot(
        xlabel="epsilon", ylabel="F", ylim=(0.5, 1.03)
    )
    axes.plot(
        epsilon,
        [soft_f1(preds, target, num_classes=1) for preds in pairs],
        color="#d55e00",
        label="soft",
    )
    hard = [soft_f1((preds > 0.5).float(), target > 0.5, num_classes=1) for preds in pairs]
    axes.plot(epsilon, hard, "--", color="#0072b2", label="hard, threshold 0.5")
    axes.legend()
    axes.figure.savefig("soft-f.png", dpi=110)


def score_mixed_digits() -> None:
    """Compare models trained on single and on mixed digits: which one predicts the share of each digit?"""
    torch.manual_seed(0)
    digits = load_digits()
    inputs = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    mix = MixUp(num_classes=10)
    tests = [
        mix(inputs[batch], labels[batch])
        for batch in torch.arange(900, len(labels)).split(32)
    ]
    print("trained on      soft F1 of mixed digits   hard F1 of their larger halves")
    for name in ("single digits", "mixed digits"):
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
        for _ in range(60):
            for batch in torch.randperm(900).split(64):
                seen, target = inputs[batch], labels[batch]
                if name == "mixed digits":
                    seen, target = mix(seen, target)
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(seen), target).backward()
                optimizer.step()
        soft, hard = (
            SoftF1(num_classes=10, average="macro"),
            SoftF1(num_classes=10, average="macro"),
        )
        with torch.no_grad():
            for seen, target in tests:
                probs = model(seen).softmax(dim=1)
                soft.update(probs, target)
                hard.update(larger(probs), larger(target))
        print(f"{name:14} {soft.compute():14.3f} {hard.compute():26.3f}")


def larger(degrees: Tensor) -> Tensor:
    """Return the one-hot label of the digit with the larger share."""
    return nn.functional.one_hot(degrees.argmax(dim=1), 10).float()


if __name__ == "__main__":
    main()
