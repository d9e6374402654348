"""Functions and Metrics of the same name take the same settings and return the same values, details included."""

import inspect
from typing import Any

import pytest
import torch
from torch import Tensor

from mpcs_torch import functional, metrics
from tests.metrics.detection.cases import CLASSES, POINTS, class_scores, detections

TWINS: dict[str, tuple[type[Any], list[dict[str, Any]]]] = {
    "equal_error_rate": (metrics.EqualErrorRate, [{}, {"method": "nearest"}]),
    "min_detection_cost": (metrics.MinDetectionCost, [{"points": POINTS}, {"points": POINTS[1], "normalize": False}]),
    "actual_detection_cost": (metrics.ActualDetectionCost, [{"points": POINTS}, {"points": POINTS[1], "threshold": 1}]),
    "half_total_error_rate": (metrics.HalfTotalErrorRate, [{}, {"threshold": 0.5}]),
    "cllr": (metrics.Cllr, [{}]),
    "min_cllr": (metrics.MinCllr, [{}]),
    "detection_curve": (metrics.DetectionCurve, [{}]),
}
WITH_DETAILS = ["equal_error_rate", "min_detection_cost", "actual_detection_cost", "half_total_error_rate"]
METRIC_ONLY = ("self", "validate_args", "kwargs")


def split_settings() -> list[dict[str, Any]]:
    classes = [{"num_classes": CLASSES, "average": average} for average in ("micro", "macro", "none")]
    return [{**settings, "ignore_index": ignored} for settings in ({}, *classes) for ignored in (None, -1)]


def flat(value: Any) -> list[Tensor]:
    return [value] if isinstance(value, Tensor) else [tensor for entry in value for tensor in flat(entry)]


def assert_same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    for a, b in zip(flat(one), flat(other), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", TWINS)
def test_both_take_the_same_settings(name: str) -> None:
    of_metric = inspect.signature(TWINS[name][0].__init__).parameters
    of_function = inspect.signature(getattr(functional, name)).parameters
    expected = {key: entry.default for key, entry in of_metric.items() if key not in METRIC_ONLY}
    assert {key: entry.default for key, entry in list(of_function.items())[2:]} == expected
    if name in WITH_DETAILS:
        of_details = inspect.signature(getattr(functional, f"{name}_details")).parameters
        expected.pop("normalize", None)  # details hold both costs
        assert {key: entry.default for key, entry in list(of_details.items())[2:]} == expected


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("split", split_settings(), ids=str)
def test_both_return_the_same(name: str, split: dict[str, Any]) -> None:
    preds, target = class_scores(60, 0) if "num_classes" in split else detections(60, 0)
    if split["ignore_index"] is not None:
        target = torch.where(torch.arange(60) % 7 == 0, split["ignore_index"], target)
    kind, settings_of = TWINS[name]
    if name == "detection_curve" and split.get("average") == "macro":
        pytest.skip("the mean of curves is not a curve of any detector")
    for settings in settings_of:
        metric = kind(**settings, **split)
        metric.update(preds, target)
        assert_same(getattr(functional, name)(preds, target, **settings, **split), metric.compute())
        if name in WITH_DETAILS:
            settings = {key: value for key, value in settings.items() if key != "normalize"}
            details = getattr(functional, f"{name}_details")
            assert_same(details(preds, target, **settings, **split), metric.details())
