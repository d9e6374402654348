"""Compare decisions by cost, before and after calibration, with the most probable class.

Run: python -m benchmarks.calibrated_decisions

For each data set, model and seed, 40 % of the data are to train, 30 % to calibrate and 30 % to test. All models
are calibrated by `TemperatureScaling`; this and the models' settings were fixed before the first run.
"""

import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from benchmarks.tabular_models import MODELS, UNDER_FITTED, Train
from mpcs_torch.calibration import CalibrationWarning, TemperatureScaling
from mpcs_torch.functional import expected_concern
from mpcs_torch.paper.published_values import mean_interval
from mpcs_torch.tables import Table

SPLITS = 20
COSTS = ["most probable", "raw", "calibrated"]
CHANGE = "calibrated - most probable"
HEADER = ["data", "model", "temperature", *COSTS, CHANGE, "worst split", "not fitted"]


class Predicted(NamedTuple):
    """The predictions for the test part of one split."""

    logits: Tensor
    """(N, C)."""
    calibrated: Tensor
    """(N, C)."""
    target: Tensor
    """(N,)."""
    temperature: float
    is_fitted: bool
    """Whether there was an optimal temperature; if not, it is 1 and calibration changes nothing."""


class Costs(NamedTuple):
    """The mean cost per test sample of three kinds of decisions."""

    most_probable: float
    raw: float
    """Of the least-concern decisions by uncalibrated probabilities."""
    calibrated: float
    """Of the least-concern decisions by calibrated probabilities."""


def tumour_costs(missed: float) -> Tensor:
    """Return the costs (2, 2) where missing a malignant tumour (class 0) costs more than the opposite error, 1."""
    return torch.tensor([[0.0, missed], [1.0, 0.0]])


def digit_costs(seed: int) -> Tensor:
    """Return costs (10, 10) of errors, drawn from 1 to 10."""
    return (
        1 + 9 * torch.rand(10, 10, generator=torch.Generator().manual_seed(seed))
    ).fill_diagonal_(0)


DATA = {"breast cancer": load_breast_cancer, "digits": load_digits}
CONCERNS = {
    "breast cancer": {
        "10 : 1": tumour_costs(10),
        "2 : 1": tumour_costs(2),
        "50 : 1": tumour_costs(50),
    },
    "digits": {f"1 to 10, draw {seed}": digit_costs(seed) for seed in range(3)},
}
"""The costs for each data set; the first are those of the large table."""


def predict_split(features: Any, labels: Any, train: Train, seed: int) -> Predicted:
    """Train and calibrate on two parts of the data, and predict the third."""
    known, rest, known_labels, rest_labels = _divide(features, labels, 0.6, seed)
    held_out, test, held_out_labels, test_labels = _divide(rest, rest_labels, 0.5, seed)
    scaler = StandardScaler().fit(known)
    predict = train(scaler.transform(known), known_labels, seed)
    calibration = TemperatureScaling()
    with warnings.catch_warnings(
        record=True, action="always", category=CalibrationWarning
    ) as caught:
        calibration.fit(
            predict(scaler.transform(held_out)), torch.from_numpy(held_out_labels)
        )
    logits, temperature = predict(scaler.transform(test)), calibration.temperature.item()
    return Predicted(
        logits,
        calibration(logits),
        torch.from_numpy(test_labels),
        temperature,
        is_fitted=not caught,
    )


def _divide(features: Any, labels: Any, share: float, seed: int) -> Any:
    return train_test_split(
        features, labels, test_size=share, random_state=seed, stratify=labels
    )


def costs(predicted: Predicted, concern: Tensor) -> Costs:
    """Compute the mean costs of the three kinds of decisions."""
    return Costs(
        _cost(predicted.logits, predicted.target, concern, "most_probable"),
        _cost(predicted.logits, predicted.target, concern, "least_concern"),
        _cost(predicted.calibrated, predicted.target, concern, "least_concern"),
    )


def _cost(
    logits: Tensor,
    target: Tensor,
    concern: Tensor,
    decision: Literal["most_probable", "least_concern"],
) -> float:
    num_classes = len(concern)
    value = expected_concern(
        logits,
        target,
        num_classes=num_classes,
        concern=concern,
        decision=decision,
        normalize=False,
    )
    return value.item()


def summarize(splits: Sequence[Predicted], concern: Tensor) -> list[str]:
    """Return the cells of a row, without its names."""
    all_costs = [costs(split, concern) for split in splits]
    temperature = f"{np.median([split.temperature for split in splits]):.2f}"
    means = [f"{mean:.3f}" for mean in np.mean(all_costs, axis=0)]
    change = mean_interval([split.calibrated - split.most_probable for split in all_costs])
    interval = f"{change.mean:+.3f} [{change.low:+.3f}, {change.high:+.3f}]"
    not_fitted = sum(not split.is_fitted for split in splits)
    return [temperature, *means, interval, f"{change.highest:+.3f}", str(not_fitted)]


def tables(split_count: int) -> tuple[Table, Table, Table]:
    """Return all models with the first costs, their changes with the others, and three splits of under-fitted ones."""
    rows, other_rows, single_rows = [], [], []
    for data_name, load in DATA.items():
        features, labels = load(return_X_y=True)
        splits = {
            model: [
                predict_split(features, labels, train, seed) for seed in range(split_count)
            ]
            for model, train in MODELS.items()
        }
        (_, concern), *others = CONCERNS[data_name].items()
        rows += [[data_name, model, *summarize(splits[model], concern)] for model in MODELS]
        for costs_name, other in others:
            changes = [
                summarize(splits[model], other)[HEADER.index(CHANGE) - 2]
                for model in MODELS
            ]
            other_rows.append([data_name, costs_name, *changes])
        for seed, split in enumerate(splits[UNDER_FITTED][:3]):
            single_rows.append(
                [data_name, str(seed), *(f"{cost:.3f}" for cost in costs(split, concern))]
            )
    return (
        Table(HEADER, rows),
        Table(["data", "costs", *MODELS], other_rows),
        Table(["data", "split", *COSTS], single_rows),
    )


def main() -> None:
    """Print the tables."""
    torch.set_num_threads(1)
    all_models, other_costs, single_splits = tables(SPLITS)
    print(all_models.markdown())
    print(f"\n{CHANGE}, with other costs:\n\n{other_costs.markdown()}")
    print(f"\nSingle splits, {UNDER_FITTED}:\n\n{single_splits.markdown()}")


if __name__ == "__main__":
    main()
