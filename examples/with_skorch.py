"""skorch: a pipeline as in its tutorial "Quickstart"; the learning rate and the best epoch follow MPCS."""

import torch
from sklearn.datasets import load_digits
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier
from skorch.callbacks import EpochScoring, LRScheduler
from torch import nn

from mpcs_torch import ConcernSpec
from mpcs_torch.integrations.sklearn import concern_scorer
from mpcs_torch.integrations.skorch import SelectCheckpoint
from mpcs_torch.learning import MPCSLR, SelectionRule, SoftmaxMarginLoss

# Confusing 1 with 7, or 3, 5 and 8 with each other, is an everyday mistake. Any other error is dangerous.
CONCERN = ConcernSpec(classes=10, releases=[[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]], factor=0.1)


def main() -> None:
    """Train for eight epochs; the table shows the score, which scikit-learn negates, and the learning rate."""
    torch.manual_seed(0)
    pixels, digits = load_digits(return_X_y=True)
    best = SelectCheckpoint("skorch_checkpoints", SelectionRule("neg_mpcs", {"neg_mpcs": "max"}), load_best=True)
    net = NeuralNetClassifier(
        nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)),
        criterion=SoftmaxMarginLoss(CONCERN),
        classes=range(10),
        lr=0.1,
        max_epochs=8,
        batch_size=64,
        callbacks=[
            ("mpcs", EpochScoring(concern_scorer("mpcs", CONCERN), lower_is_better=False, name="neg_mpcs")),
            ("rate", LRScheduler(policy=MPCSLR, monitor=lambda net: -net.history[-1, "neg_mpcs"])),
            ("best", best),
        ],
    )
    Pipeline([("scale", StandardScaler()), ("net", net)]).fit(pixels.astype("float32"), digits)
    print(best.selector.explain().markdown())


if __name__ == "__main__":
    main()
