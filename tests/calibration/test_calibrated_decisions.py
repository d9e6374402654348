"""The benchmark of calibrated decisions on single splits."""

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler

from tests.benchmarks.calibrated_decisions import (
    HEADER,
    MODELS,
    TREES,
    UNDER_FITTED,
    DataSet,
    Split,
    breast_cancer,
    digits,
    run_split,
    summarize,
)


@pytest.mark.parametrize("seed", range(3))
def test_decisions_by_cost_need_calibration_on_an_under_fitted_model(seed: int) -> None:
    split = run_split(digits(), MODELS[UNDER_FITTED], seed)
    assert split.calibrated < split.most_probable < split.raw
    assert split.temperature < 1
    assert split.is_fitted


@pytest.mark.parametrize("train", MODELS.values(), ids=MODELS)
def test_every_model_is_at_least_as_good_as_the_best_constant_decision(train: object) -> None:
    split = run_split(breast_cancer(), train, 0)
    assert split.calibrated < 107 / 171  # the costs of calling every test tumour malignant


def test_a_forest_gives_no_class_less_than_half_a_vote() -> None:
    data = breast_cancer()
    logits = MODELS["random forest"](data.features[::3], data.labels[::3], 0)(data.features)
    assert logits.amin().exp().item() == pytest.approx(0.5 / TREES)


def test_an_mlp_depends_on_its_seed_alone() -> None:
    data = breast_cancer()
    features = StandardScaler().fit_transform(data.features)[:50]
    before = torch.get_rng_state()
    first, again, other = (MODELS["MLP"](features, data.labels[:50], seed)(features) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_split_without_an_optimal_temperature_is_counted_and_stays_uncalibrated() -> None:
    labels = np.arange(60) % 2
    separated = DataSet(labels[:, None] + np.linspace(0, 0.1, 60)[:, None], labels, breast_cancer().concern)
    split = run_split(separated, MODELS[UNDER_FITTED], 0)
    assert not split.is_fitted
    assert split.temperature == 1
    assert split.calibrated == split.raw


def test_a_row_holds_means_and_paired_differences() -> None:
    splits = [Split(0.5, 0.4, 0.3, 2.0, is_fitted=True), Split(0.3, 0.4, 0.4, 4.0, is_fitted=False)]
    row = dict(zip(HEADER[2:], summarize(splits), strict=True))
    assert row.pop("calibrated - most probable").startswith("-0.050 [")
    assert row == {
        "temperature": "3.00",
        "most probable": "0.400",
        "raw": "0.400",
        "calibrated": "0.350",
        "worst split": "+0.100",
        "not fitted": "1",
    }
