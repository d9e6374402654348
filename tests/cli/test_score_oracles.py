"""``mpcs score --json`` against the cases of the oracles for soft labels and for generalized means."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mpcs_torch import evaluate
from mpcs_torch.metrics import HardF1
from tests.cli.test_cli import run
from tests.conftest import load_oracle

SOFT, MEANS = load_oracle("soft_cases"), load_oracle("generalized_cases")
DEFAULTS = {"epsilon": 0.005, "span": "data"}
ANY_BINS = {
    "tiny_binary_two_columns": 4,
    "uniform_constant": 5,
    "one_hot_25pct_wrong": 5,
    "single_sample": 10,
}
"""Cases with the same bins for this number of bins as for the 20 of the command."""
DELTA = {"uniform_constant": 0.005, "one_hot_25pct_wrong": 0.005}
"""The command finds singularities where there are some."""


def scored(
    folder: Path, preds: Any, target: Any, capsys: pytest.CaptureFixture[str], *options: str
) -> dict[str, Any]:
    np.savez(folder / "p.npz", preds=np.array(preds, dtype=float), target=np.array(target))
    assert run("score", folder / "p.npz", "--json", *options) == 0
    values: dict[str, Any] = json.loads(capsys.readouterr().out)["metrics"]
    return values


def column(values: list[Any]) -> list[Any]:
    return values if isinstance(values[0], list) else [[value] for value in values]


@pytest.mark.parametrize(
    "case", SOFT["cases"], ids=lambda case: f"{case['name']}-{case['zero_division']}"
)
def test_soft_labels(
    case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = case["expected"]
    values = scored(tmp_path, column(case["preds"]), column(case["target"]), capsys)
    assert values["soft_kl_divergence"] == pytest.approx(
        expected["kld_mean_preds_clamped_1e-7"], abs=1e-6
    )
    if case["zero_division"] != 0:  # the command has no other value of 0 / 0
        return
    for average in ("micro", "macro", "weighted"):
        for name in ("precision", "recall", "f1"):
            assert values[f"soft_{name}_{average}"] == pytest.approx(
                expected[average][name], abs=1e-6
            )
    for average in ("micro", "macro"):
        assert values[f"hard_f1_{average}"] == pytest.approx(
            expected["hard_gt_0.5"][average]["f1"], abs=1e-6
        )


@pytest.mark.parametrize("case", MEANS["cases"], ids=lambda case: case["name"])
def test_generalized_means(
    case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = scored(tmp_path, case["preds"], case["target"], capsys)
    assert values["accuracy"] == pytest.approx(case["prediction_accuracy"])
    entropy = float(case["minus_log_likelihood_mean"])
    assert values["cross_entropy"] == (
        None if np.isinf(entropy) else pytest.approx(entropy, abs=1e-5)
    )
    same = [
        expected
        for expected in case["expected"]
        if expected["epsilon"] == DEFAULTS["epsilon"]
    ]
    reported = {name: values[NAMES[name]] for name in NAMES}
    assert reported == pytest.approx(same[0]["reported"], abs=1e-5)
    wanted = {
        **DEFAULTS,
        "n_bins": ANY_BINS.get(case["name"]),
        "delta": DELTA.get(case["name"]),
    }
    for expected in same:
        if all(expected[key] == value for key, value in wanted.items()):
            measured = {name: values[f"measured_{NAMES[name]}"] for name in NAMES}
            assert measured == pytest.approx(expected["measured"], abs=1e-6)
            slope = float(expected["slope"])
            assert values["calibration_slope"] == (
                None if np.isnan(slope) else pytest.approx(slope, abs=1e-5)
            )
            return
    assert case["name"] not in ANY_BINS


NAMES = {
    "geometric": "geometric_accuracy",
    "decisiveness": "decisiveness",
    "robustness": "robustness",
}


def test_hard_f_at_thresholds_of_other_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    preds, target = (
        np.array([[0.18, 0.8], [0.12, 0.6], [0.7, 0.9]]),
        np.array([[0.9, 0.7], [0.2, 0.3], [0.6, 1.0]]),
    )
    np.savez(tmp_path / "other.npz", preds=preds, target=target)
    assert run("score", tmp_path / "other.npz", "--json") == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["hard_f1_macro"] == pytest.approx(
        (2 / 3 + 4 / 5) / 2
    )
    tuned = HardF1(num_classes=2, average="macro", threshold=torch.tensor([0.15, 0.7]))
    assert evaluate(preds, target, metrics={"tuned": tuned}).value("tuned") == 1
