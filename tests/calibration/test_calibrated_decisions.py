"""The benchmark of calibrated decisions on single splits."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from benchmarks.calibrated_decisions import (
    HEADER,
    Predicted,
    costs,
    digit_costs,
    predict_split,
    summarize,
    tumour_costs,
)
from benchmarks.tabular_models import MODELS, TREES, UNDER_FITTED, Train


@pytest.mark.parametrize("seed", range(3))
def test_decisions_by_cost_need_calibration_on_an_under_fitted_model(seed: int) -> None:
    split = predict_split(*load_digits(return_X_y=True), MODELS[UNDER_FITTED], seed)
    found = costs(split, digit_costs(0))
    assert found.calibrated < found.most_probable < found.raw
    assert split.temperature < 1
    assert split.is_fitted


@pytest.mark.parametrize("train", MODELS.values(), ids=MODELS)
def test_every_calibrated_model_is_better_than_the_best_constant_decision(
    train: Train,
) -> None:
    split = predict_split(*load_breast_cancer(return_X_y=True), train, 0)
    assert costs(split, tumour_costs(10)).calibrated < (split.target == 1).double().mean()


def test_a_forest_gives_no_class_less_than_half_a_vote() -> None:
    features, labels = load_breast_cancer(return_X_y=True)
    logits = MODELS["random forest"](features[::3], labels[::3], 0)(features)
    assert logits.amin().exp().item() == pytest.approx(0.5 / TREES)


def test_an_mlp_depends_on_its_seed_alone() -> None:
    features, labels = load_breast_cancer(return_X_y=True)
    features, labels = StandardScaler().fit_transform(features)[:50], labels[:50]
    before = torch.get_rng_state()
    first = MODELS["MLP"](features, labels, 0)(features)
    again = MODELS["MLP"](features, labels, 0)(features)
    other = MODELS["MLP"](features, labels, 1)(features)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_split_without_an_optimal_temperature_is_counted_and_stays_uncalibrated() -> None:
    labels = np.arange(60) % 2
    separated = labels[:, None] + np.linspace(0, 0.1, 60)[:, None]
    split = predict_split(separated, labels, MODELS[UNDER_FITTED], 0)
    assert not split.is_fitted
    assert split.temperature == 1
    assert torch.equal(split.calibrated, split.logits)


def test_a_row_holds_means_and_paired_differences() -> None:
    sure, unsure, target = (
        torch.tensor([[0.0, 3.0]]),
        torch.tensor([[0.0, 1.0]]),
        torch.tensor([0]),
    )
    splits = [
        Predicted(
            sure, unsure, target, temperature=3.0, is_fitted=True
        ),  # only calibrated decisions avoid the miss
        Predicted(
            sure, unsure, 1 - target, temperature=1.0, is_fitted=False
        ),  # only they give a false alarm
    ]
    row = dict(zip(HEADER[2:], summarize(splits, tumour_costs(10)), strict=True))
    assert row.pop("calibrated - most probable").startswith("-4.500 [")
    assert row == {
        "temperature": "2.00",
        "most probable": "5.000",
        "raw": "5.000",
        "calibrated": "0.500",
        "worst split": "+1.000",
        "not fitted": "1",
    }
