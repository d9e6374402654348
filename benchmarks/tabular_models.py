"""Four kinds of classifiers that are overconfident or underconfident in different ways."""

from collections.abc import Callable
from typing import Any

import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from torch import Tensor

TREES = 100
Predict = Callable[[Any], Tensor]
"""From features (N, F) to logits (N, C), float64."""
Train = Callable[[Any, Any, int], Predict]
"""From features, labels and a seed to a trained model."""


def logistic_regression(inverse_penalty: float) -> Train:
    """Return the training of a logistic regression; a small inverse penalty makes it underfit."""

    def train(features: Any, labels: Any, seed: int) -> Predict:
        model = LogisticRegression(C=inverse_penalty, max_iter=10_000).fit(features, labels)

        def predict(unseen: Any) -> Tensor:
            logits = torch.from_numpy(model.decision_function(unseen))
            return (
                logits
                if logits.ndim == 2
                else torch.stack([torch.zeros_like(logits), logits], dim=1)
            )

        return predict

    return train


def mlp(features: Any, labels: Any, seed: int) -> Predict:
    """Train a network with one hidden layer until it fits the training data closely."""
    width, classes = features.shape[1], int(labels.max()) + 1
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = torch.nn.Linear(width, 64), torch.nn.ReLU(), torch.nn.Linear(64, classes)
    model = torch.nn.Sequential(*layers).double()
    inputs, target = torch.from_numpy(features), torch.from_numpy(labels)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(200):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), target).backward()
        optimizer.step()
    return lambda unseen: model(torch.from_numpy(unseen)).detach()


def random_forest(features: Any, labels: Any, seed: int) -> Predict:
    """Train a random forest whose probabilities are at least half a vote.

    Without a lower limit, a class without a vote has a logit of -inf. The trees cannot tell such a class from one with
    fewer votes than 1 in TREES, and half a vote is the middle of this range.
    """
    model = RandomForestClassifier(TREES, random_state=seed).fit(features, labels)
    return lambda unseen: (
        torch.from_numpy(model.predict_proba(unseen)).clamp(min=0.5 / TREES).log()
    )


UNDER_FITTED = "logistic regression, under-fitted"
MODELS: dict[str, Train] = {
    UNDER_FITTED: logistic_regression(1e-3),
    "logistic regression, over-fitted": logistic_regression(1e4),
    "MLP": mlp,
    "random forest": random_forest,
}
