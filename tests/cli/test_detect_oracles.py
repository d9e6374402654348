"""Every expectation of the detection oracles, through ``mpcs detect``."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from mpcs_torch.evaluation.fixed_thresholds import point_key
from mpcs_torch.metrics import MinDetectionCost
from tests.cli.test_cli import run
from tests.conftest import details, load_oracle
from tests.functional.detection.test_detection import (
    CASES,
    H_MEASURE,
    near,
    points_of,
    scores_of,
)

DEVELOPED = [case for case in CASES if "dev_target" in case]


def written(path: Path, targets: list[Any], nontargets: list[Any]) -> Path:
    rows = [*(f"{score},1" for score in targets), *(f"{score},0" for score in nontargets)]
    path.write_text("\n".join(["score,label", *rows]))
    return path


def measured(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert run("detect", *arguments, "--no-intervals", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    errors = {
        f"{name}, {key.replace('alse_a', 'alse-a').replace('_', ' ')}": value
        for name, at in told["errors"].items()
        for key, value in at.items()
    }
    return {
        name: float("inf") if value is None else value
        for name, value in {**told["metrics"], **errors}.items()
    }


@pytest.mark.filterwarnings("ignore:the area under the ROC")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_command_gives_every_expectation(
    case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = case["expected"]
    rows = dict(points_of(expected["min_dcf"]))
    options = [
        word
        for p in rows
        for word in ("--point", f"{p.p_target!r},{p.c_miss!r},{p.c_fa!r}")
    ]
    file = written(tmp_path / "s.csv", case["target"], case["nontarget"])
    found = measured(capsys, file, "--llr", "--max-false-alarm", 0.1, *options)
    assert found["equal_error_rate"] == near(expected["eer_rocch"])
    assert found["equal_error_rate_interpolated"] == near(expected["eer_interpolated"])
    nearest = (
        found["equal_error_rate, miss rate"] + found["equal_error_rate, false-alarm rate"]
    ) / 2
    assert any(
        nearest == near(value)
        for value in expected["eer_nearest"]["values_at_the_minimisers_of_abs_gap"]
    )
    partial = expected["pauc_mcclish_max_fpr_0.1"].get("value")
    if isinstance(partial, float):
        assert found["area_under_roc[p_fa=0.1]"] == near(partial)
    if "rocch_vertices" in expected:
        assert run("detect", file, "--no-intervals", "--json") == 0
        hull, vertices = (
            json.loads(capsys.readouterr().out)["convex_hull"],
            expected["rocch_vertices"],
        )
        assert hull["miss_rate"] == pytest.approx(vertices["pmiss"], abs=1e-9)
        assert hull["false_alarm_rate"] == pytest.approx(vertices["pfa"], abs=1e-9)
    assert found["area_under_roc"] == near(expected["auc"])
    assert found["h_measure"] == near(H_MEASURE[case["name"]])
    assert found["precision_recall_break_even"] == near(expected["prbep_error_count"])
    assert found["cllr"] == near(expected["cllr"])
    assert found["min_cllr"] == near(expected["min_cllr"])
    if math.isfinite(found["cllr"]):
        assert found["calibration_loss"] == near(found["cllr"] - found["min_cllr"])
    for point, row in rows.items():
        assert found[f"min_cost[{point_key(point)}]"] == near(row["normalized"])
        minimum = details(MinDetectionCost(point), *scores_of(case))
        threshold = found[f"min_cost[{point_key(point)}], threshold"]
        assert threshold == minimum.threshold or math.isinf(minimum.threshold), (
            "JSON has no infinite numbers"
        )
    for point, row in points_of(expected["act_dcf_bayes"]):
        name = f"actual_cost[{point_key(point)}]"
        assert found[name] == near(row["normalized"])
        assert (found[f"{name}, miss rate"], found[f"{name}, false-alarm rate"]) == (
            near(row["p_miss"]),
            near(row["p_fa"]),
        )


@pytest.mark.parametrize("case", DEVELOPED, ids=lambda case: case["name"])
def test_thresholds_of_development_trials(
    case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = dict(points_of(case["expected"]["dev_threshold_dcf"]))
    development = written(tmp_path / "dev.csv", case["dev_target"], case["dev_nontarget"])
    options = [
        word
        for p in rows
        for word in ("--point", f"{p.p_target!r},{p.c_miss!r},{p.c_fa!r}")
    ]
    evaluation = written(tmp_path / "s.csv", case["target"], case["nontarget"])
    found = measured(capsys, evaluation, "--development", development, *options)
    for point, row in rows.items():
        name, middle = (
            f"cost[development,{point_key(point)}]",
            row["with_midpoint_threshold"],
        )
        assert found[f"{name}, threshold"] == near(middle["threshold"])
        assert found[name] == near(middle["eval_act_dcf_norm"])
    half = case["expected"]["hter_at_dev_eer_threshold"]
    name = "half_total_error_rate[development]"
    assert (found[f"{name}, threshold"], found[name]) == (
        near(half["threshold"]),
        near(half["hter"]),
    )


def test_no_case_is_left_out() -> None:
    assert len(load_oracle("detection_cases")["cases"]) == len(CASES) == len(H_MEASURE)
    assert torch.tensor([len(case["expected"]) for case in CASES]).min() >= 10
