"""skorch: its tutorial "Quickstart"; the learning rate and the best epoch follow MPCS."""

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

# Confusing 1 with 7, or 3, 5 and 8 with each other, is an everyday mistake.
# Any other error is dangerous.
RELEASES = [[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]]
CONCERN = ConcernSpec(classes=10, releases=RELEASES, factor=0.1)


def main() -> None:
    """Train for eight epochs; the table shows the negated score and the learning rate."""
    torch.manual_seed(0)
    pixels, digits = load_digits(return_X_y=True)
    rule = SelectionRule("neg_mpcs", {"neg_mpcs": "max"})
    best = SelectCheckpoint("skorch_checkpoints", rule, load_best=True)
    scorer = concern_scorer("mpcs", CONCERN)
    score = EpochScoring(scorer, lower_is_better=False, name="neg_mpcs")
    rate = LRScheduler(policy=MPCSLR, monitor=lambda net: -net.history[-1, "neg_mpcs"])
    net = NeuralNetClassifier(
        nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)),
        criterion=SoftmaxMarginLoss(CONCERN),
        classes=range(10),
        lr=0.1,
        max_epochs=8,
        batch_size=64,
        callbacks=[
            ("mpcs", score),
            ("rate", rate),
            ("best", best),
        ],
    )
    pipeline = Pipeline([("scale", StandardScaler()), ("net", net)])
    pipeline.fit(pixels.astype("float32"), digits)
    print(best.selector.explain().markdown())


if __name__ == "__main__":
    main()
