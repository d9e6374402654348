"""Compare decisions by cost, before and after calibration, with the most probable class.

Run: python -m tests.benchmarks.calibrated_decisions

For each data set, model and seed, 40 % of the data are to train, 30 % to calibrate and 30 % to test. All models
are calibrated by `TemperatureScaling`; this and the models' settings were fixed before the first run.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from mpcs_torch.calibration import CalibrationWarning, TemperatureScaling
from mpcs_torch.functional import expected_concern
from mpcs_torch.paper.intervals import mean_interval
from mpcs_torch.tables import Table

SPLITS, TREES = 20, 100
Predict = Callable[[Any], Tensor]
"""From features (N, F) to logits (N, C), float64."""
Train = Callable[[Any, Any, int], Predict]
"""From features, labels and a seed to a trained model."""
Decision = Literal["most_probable", "least_concern"]


class DataSet(NamedTuple):
    """Features, labels and the cost of each error."""

    features: Any
    labels: Any
    concern: Tensor


class Split(NamedTuple):
    """The mean cost per test sample of three kinds of decisions on one split, and the calibration."""

    most_probable: float
    raw: float
    """Of the least-concern decisions by uncalibrated probabilities."""
    calibrated: float
    """Of the least-concern decisions by calibrated probabilities."""
    temperature: float
    is_fitted: bool
    """Whether there was an optimal temperature; if not, it is 1 and calibration changes nothing."""


def breast_cancer() -> DataSet:
    """Missing a malignant tumour (class 0) costs 10, the opposite error 1."""
    return DataSet(*load_breast_cancer(return_X_y=True), torch.tensor([[0.0, 10.0], [1.0, 0.0]]))


def digits() -> DataSet:
    """The cost of each error is drawn once from 1 to 10."""
    costs = 1 + 9 * torch.rand(10, 10, generator=torch.Generator().manual_seed(0))
    return DataSet(*load_digits(return_X_y=True), costs.fill_diagonal_(0))


def logistic_regression(inverse_penalty: float) -> Train:
    """Return the training of a logistic regression; a small inverse penalty makes it underfit."""

    def train(features: Any, labels: Any, seed: int) -> Predict:
        model = LogisticRegression(C=inverse_penalty, max_iter=10_000).fit(features, labels)

        def predict(unseen: Any) -> Tensor:
            logits = torch.from_numpy(model.decision_function(unseen))
            return logits if logits.ndim == 2 else torch.stack([torch.zeros_like(logits), logits], dim=1)

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
    return lambda unseen: torch.from_numpy(model.predict_proba(unseen)).clamp(min=0.5 / TREES).log()


UNDER_FITTED = "logistic regression, under-fitted"
DATA = {"breast cancer": breast_cancer, "digits": digits}
MODELS = {
    UNDER_FITTED: logistic_regression(1e-3),
    "logistic regression, over-fitted": logistic_regression(1e4),
    "MLP": mlp,
    "random forest": random_forest,
}
COSTS = ["most probable", "raw", "calibrated"]
HEADER = ["data", "model", "temperature", *COSTS, "calibrated - most probable", "worst split", "not fitted"]


def run_split(data: DataSet, train: Train, seed: int) -> Split:
    """Train, calibrate and test on one split."""
    features, rest, labels, rest_labels = _divide(data.features, data.labels, 0.6, seed)
    held_out, test, held_out_labels, test_labels = _divide(rest, rest_labels, 0.5, seed)
    scaler = StandardScaler().fit(features)
    predict = train(scaler.transform(features), labels, seed)
    calibration = TemperatureScaling()
    with warnings.catch_warnings(record=True, action="always", category=CalibrationWarning) as caught:
        calibration.fit(predict(scaler.transform(held_out)), torch.from_numpy(held_out_labels))
    logits, target = predict(scaler.transform(test)), torch.from_numpy(test_labels)
    return Split(
        _cost(logits, target, data.concern, "most_probable"),
        _cost(logits, target, data.concern, "least_concern"),
        _cost(calibration(logits), target, data.concern, "least_concern"),
        calibration.temperature.item(),
        is_fitted=not caught,
    )


def _divide(features: Any, labels: Any, share: float, seed: int) -> Any:
    return train_test_split(features, labels, test_size=share, random_state=seed, stratify=labels)


def _cost(logits: Tensor, target: Tensor, concern: Tensor, decision: Decision) -> float:
    settings = {"num_classes": len(concern), "concern": concern, "normalize": False}
    return expected_concern(logits, target, decision=decision, **settings).item()


def summarize(splits: Sequence[Split]) -> list[str]:
    """Return the cells of a row: means, the paired difference with its interval, and the largest difference."""
    means = [
        f"{np.mean(costs):.3f}"
        for costs in ([s.most_probable for s in splits], [s.raw for s in splits], [s.calibrated for s in splits])
    ]
    change = mean_interval([split.calibrated - split.most_probable for split in splits])
    interval = f"{change.mean:+.3f} [{change.low:+.3f}, {change.high:+.3f}]"
    temperature = f"{np.median([split.temperature for split in splits]):.2f}"
    not_fitted = sum(not split.is_fitted for split in splits)
    return [temperature, *means, interval, f"{change.highest:+.3f}", str(not_fitted)]


def main() -> None:
    """Print a row for each data set and model, and the first three splits of the under-fitted logistic regressions."""
    torch.set_num_threads(1)
    rows, single = [], []
    for data_name, load in DATA.items():
        data = load()
        for model_name, train in MODELS.items():
            splits = [run_split(data, train, seed) for seed in range(SPLITS)]
            rows.append([data_name, model_name, *summarize(splits)])
            if model_name == UNDER_FITTED:
                single += [[data_name, str(k), *(f"{cost:.3f}" for cost in splits[k][:3])] for k in range(3)]
    print(Table(HEADER, rows).markdown())
    print(f"\nSingle splits, {UNDER_FITTED}:\n")
    print(Table(["data", "split", *COSTS], single).markdown())


if __name__ == "__main__":
    main()
