"""Compare two detectors of pairs that show the same handwritten digit, with thresholds learned on other pairs."""

import torch
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch.nn.functional import cosine_similarity
from torchmetrics import MetricCollection

from mpcs_torch import EqualErrorRate, MinDetectionCost, OperatingPoint
from mpcs_torch.metrics import ActualDetectionCost, DetectionCurve
from mpcs_torch.plots import det_curves

# One pair in ten shows the same digit, and a false alarm costs three misses.
POINT = OperatingPoint(p_target=0.1, c_miss=1.0, c_fa=3.0)
TRAIN, DEVELOPMENT, EVALUATION = slice(0, 600), slice(600, 1000), slice(1000, 1797)


def pairs(
    features: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute the similarity of each sample to a hundred others, and whether they show the same digit."""
    steps = torch.randint(
        1, len(labels), (len(labels), 100), generator=torch.Generator().manual_seed(0)
    )
    others = (torch.arange(len(labels)).unsqueeze(1) + steps) % len(labels)
    scores = cosine_similarity(features.unsqueeze(1), features[others], dim=2)
    return scores.flatten(), (labels.unsqueeze(1) == labels[others]).flatten().long()


def main() -> None:
    """Print the error rates and costs of each detector on new pairs, and draw the DET curves."""
    digits = load_digits()
    pixels, labels = torch.tensor(digits.data), torch.tensor(digits.target)
    projection = LinearDiscriminantAnalysis().fit(digits.data[TRAIN], digits.target[TRAIN])
    systems = {
        "pixels": pixels,
        "discriminant analysis": torch.tensor(projection.transform(digits.data)),
    }
    curves = {}
    print(
        "detector               equal error rate  minimum cost  cost at the learned threshold"
    )
    for name, features in systems.items():
        development = MinDetectionCost(POINT)
        development.update(*pairs(features[DEVELOPMENT], labels[DEVELOPMENT]))
        actual = ActualDetectionCost(POINT)
        actual.threshold_from(development)
        evaluation = MetricCollection(  # keeps the scores once for all metrics
            {
                "eer": EqualErrorRate(),
                "minimum": MinDetectionCost(POINT),
                "actual": actual,
                "curve": DetectionCurve(),
            }
        )
        evaluation.update(*pairs(features[EVALUATION], labels[EVALUATION]))
        values = evaluation.compute()
        curves[name] = evaluation["curve"].compute()
        print(
            f"{name:22} {100 * values['eer']:14.2f} %  {values['minimum']:12.3f}  {values['actual']:12.3f}"
        )
    det_curves(curves, points=[POINT]).savefig("det.png", dpi=110)
    print("wrote det.png")


if __name__ == "__main__":
    main()
