"""The law of twins: a function and its Metric take the same arguments with the same defaults, and return the same."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torchmetrics import Metric

from mpcs_torch import ConcernSpec, OperatingPoint, functional, metrics
from mpcs_torch.errors import InvalidValueError
from tests.metrics.batches import CLASSES, random_batch, soft_batch
from tests.metrics.concern.cases import costed_batch
from tests.metrics.detection.cases import class_scores, detections
from tests.metrics.quality.cases import SINGLE
from tests.oracles import naive

SIZE = 40
C = {"num_classes": CLASSES}
CONCERN = 0.5 + torch.arange(CLASSES**2).reshape(CLASSES, CLASSES) / 10
PRIORS = torch.arange(1.0, CLASSES + 1) / (CLASSES * (CLASSES + 1) / 2)
POINTS = [OperatingPoint(0.5), OperatingPoint(0.1, c_miss=3.0)]

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "Accuracy": [C, {**C, "ignore_index": -1}],
    "ActualDetectionCost": [
        {"points": POINTS},
        {"points": POINTS[0], "threshold": 0.3, "normalize": False, "ignore_index": -1},
        {"points": POINTS, **C, "average": "none"},
    ],
    "BrierScore": [
        C,
        {**C, "over_classes": "mean", "from_logits": False, "ignore_index": -1},
    ],
    "ClassErrorRates": [C, {**C, "ignore_index": -1}],
    "Cllr": [{}, {**C, "average": "none", "ignore_index": -1}],
    "ConfusionMatrix": [C, {**C, "ignore_index": -1}],
    "CrossEntropy": [
        C,
        {**C, "normalized": True},
        {**C, "from_logits": False, "ignore_index": -1},
    ],
    "Coverage": [
        C,
        {**C, "concern": ConcernSpec(CLASSES, refer=1, answers={"0 or 1": 0.5})},
        {**C, "ignore_index": -1},
    ],
    "SelectiveAccuracy": [
        C,
        {**C, "concern": ConcernSpec(CLASSES, refer=1, answers={"0 or 1": 0.5})},
        {**C, "ignore_index": -1},
    ],
    "DangerousErrors": [
        C,
        {**C, "concern": CONCERN > 1, "normalize": "samples"},
        {**C, "concern": CONCERN > 1, "normalize": "errors", "ignore_index": -1},
        {**C, "concern": CONCERN > 1, "normalize": "decided"},
    ],
    "Decisiveness": [C, {**C, "from_logits": False, "epsilon": 0.2, "ignore_index": -1}],
    "DetectionCurve": [{}, {**C, "average": "none", "ignore_index": -1}],
    "EqualErrorRate": [
        {},
        {"method": "nearest", "ignore_index": -1},
        C,
        {**C, "average": "none"},
    ],
    "ExpectedConcern": [
        C,
        {**C, "concern": CONCERN, "decision": "least_concern", "from_logits": False},
        {**C, "priors": PRIORS, "training_priors": torch.full((CLASSES,), 1 / CLASSES)},
        {**C, "concern": CONCERN, "normalize": False, "ignore_index": -1},
    ],
    "FalseAlarmAtMiss": [
        {"p_miss": 0.2},
        {"p_miss": 0.2, **C, "average": "none", "ignore_index": -1},
    ],
    "GeneralizedRiskCoverageArea": [
        C,
        {**C, "concern": CONCERN > 1, "from_logits": False, "ignore_index": -1},
    ],
    "GeometricAccuracy": [
        C,
        {**C, "from_logits": False, "epsilon": 0.2, "ignore_index": -1},
    ],
    "HMeasure": [{}, {**C, "average": "none", "ignore_index": -1}],
    "HalfTotalErrorRate": [
        {"threshold": 0.25},
        {"threshold": 0.25, **C, "average": "none", "ignore_index": -1},
    ],
    "HardF1": [
        C,
        {**C, "threshold": 0.3, "average": "macro"},
        {
            **C,
            "threshold": torch.tensor([0.1, 0.2, -torch.inf, torch.inf]),
            "average": "none",
            "zero_division": 1.0,
        },
    ],
    "MacroF1": [C, {**C, "ignore_index": -1}],
    "MatthewsCorrelation": [C, {**C, "ignore_index": -1}],
    "MeanSeverity": [C, {**C, "concern": CONCERN, "ignore_index": -1}],
    "MetaPatternConcernScore": [
        C,
        {**C, "k": 3, "t": 20, "concern": CONCERN, "correct_concern": "count"},
        {**C, "concession": 0.02},
        {**C, "concern": CONCERN, "average": "none"},
        {**C, "from_logits": False, "ignore_index": -1},
    ],
    "MinCllr": [{}, {**C, "average": "none", "ignore_index": -1}],
    "MinDetectionCost": [
        {"points": POINTS},
        {"points": POINTS[0], "normalize": False, "ignore_index": -1},
        {"points": POINTS, **C, "average": "none"},
    ],
    "MissAtFalseAlarm": [
        {"p_fa": 0.2},
        {"p_fa": 0.2, **C, "average": "none", "ignore_index": -1},
    ],
    "MulticlassQualityMetrics": [
        C,
        {**C, "beta": 2.0, "zero_division": 1.0, "ignore_index": -1},
    ],
    "NetBenefit": [
        C,
        {**C, "classes": [3], "threshold": 0.3, "from_logits": False, "ignore_index": -1},
    ],
    "Overconfidence": [C, {**C, "from_logits": False, "ignore_index": -1}],
    "PartialAUC": [{}, {"max_p_fa": 0.2, **C, "average": "none", "ignore_index": -1}],
    "PrecisionRecallBreakEven": [{}, {**C, "average": "none", "ignore_index": -1}],
    "ProbabilityAccuracy": [
        C,
        {
            **C,
            "epsilon": 0.1,
            "n_bins": 4,
            "delta": None,
            "span": "unit",
            "ignore_index": -1,
        },
        {**C, "from_logits": False, "cells": 2000},
    ],
    "RiskAtCoverage": [
        C,
        {
            **C,
            "coverage": 0.55,
            "concern": CONCERN > 1,
            "from_logits": False,
            "ignore_index": -1,
        },
    ],
    "RiskCoverageArea": [
        C,
        {**C, "concern": CONCERN > 1, "from_logits": False, "ignore_index": -1},
    ],
    "RiskGap": [
        C,
        {**C, "concern": CONCERN, "loss": "cost", "from_logits": False, "ignore_index": -1},
    ],
    "Robustness": [C, {**C, "from_logits": False, "epsilon": 0.2, "ignore_index": -1}],
    "RowCost": [C, {**C, "regret": True}],
    "SoftF1": [C, {**C, "average": "none", "zero_division": 1.0, "t_norm": "product"}],
    "SoftFBeta": [
        {**C, "beta": 2.0},
        {
            **C,
            "beta": 0.5,
            "average": "macro",
            "zero_division": 1.0,
            "t_norm": "lukasiewicz",
        },
    ],
    "SoftKLDivergence": [{}, {"epsilon": 0.1}],
    "SoftPrecision": [
        C,
        {**C, "average": "weighted", "zero_division": 1.0, "t_norm": "product"},
    ],
    "SoftRecall": [C, {**C, "average": "macro", "zero_division": 1.0, "t_norm": "product"}],
}
"""Default settings of each Metric, and others that leave no setting out."""

ENTRIES = {
    kind.__name__: entry for kind, (entry, _) in SINGLE.items() if entry in naive.ONEDAL
}
"""Exemption: the twin of these is an entry of the dictionary of `multiclass_quality_metrics`."""
MORE_SETTINGS = {"meta_pattern_concern_score": ["reduction"]}
"""Exemption: scores of single samples cannot be the value of a Metric."""

WITH_TWIN = sorted(set(metrics.__all__) - set(ENTRIES))
VARIANTS = [(name, place) for name in SETTINGS for place in range(len(SETTINGS[name]))]
"""Each Metric and the place of each of its settings."""


def twin_of(name: str) -> Callable[..., Any]:
    """Find the function by its name: `SoftFBeta` and `soft_fbeta` differ in capitals and underscores."""
    found = [
        function
        for function in functional.__all__
        if function.replace("_", "") == name.lower()
    ]
    assert len(found) == 1, f"{name} has no function mpcs_torch.functional.* of its name"
    twin: Callable[..., Any] = getattr(functional, found[0])
    return twin


def family_of(name: str) -> str:
    """Return the folder of a Metric's file, such as soft."""
    module: str = getattr(metrics, name).__module__
    return module.split(".")[-2]


def draw_batch(name: str, settings: dict[str, Any]) -> dict[str, Tensor]:
    """Draw a batch as the settings want it, without what is optional."""
    if family_of(name) == "soft":
        preds, target = soft_batch(SIZE, 0)
    elif name == "RowCost":
        preds, target = costed_batch(SIZE, 0)
    elif family_of(name) == "detection":
        draw = class_scores if "num_classes" in settings else detections
        preds, target = draw(SIZE, 0)
    else:
        preds, target = random_batch(SIZE, 0)
        if settings.get("normalized"):
            preds = preds.log_softmax(dim=1)
        if not settings.get("from_logits", True):
            preds = preds.softmax(dim=1)
    if "ignore_index" in settings:
        target[::5] = settings["ignore_index"]
    return {"preds": preds, "target": target}


def optional(name: str, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """Draw the further arguments of an update of the Metric."""
    generator = torch.Generator().manual_seed(1)
    values = {
        "sample_weight": torch.rand(SIZE, generator=generator),
        "ignore": torch.rand(batch["preds"].shape, generator=generator) < 0.2,
    }
    return {parameter: values[parameter] for parameter in arguments_of_update(name)[2:]}


def arguments_of_update(name: str) -> list[str]:
    return list(inspect.signature(getattr(metrics, name).update).parameters)[1:]


def settings_of(name: str) -> dict[str, inspect.Parameter]:
    parameters = dict(inspect.signature(getattr(metrics, name)).parameters)
    assert parameters.pop("validate_args").default is True
    assert parameters.pop("kwargs").kind is inspect.Parameter.VAR_KEYWORD
    return parameters


def assert_same(ours: Any, theirs: Any) -> None:
    """Compare types, and the dtype, shape and value of every tensor."""
    assert type(ours) is type(theirs)
    if isinstance(ours, Tensor):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)
    elif isinstance(ours, dict):
        assert list(ours) == list(theirs)
        assert_same(list(ours.values()), list(theirs.values()))
    else:
        for our, their in zip(ours, theirs, strict=True):
            assert_same(our, their)


def updated(name: str, settings: dict[str, Any], batch: dict[str, Any]) -> Metric:
    metric: Metric = getattr(metrics, name)(**settings)
    metric.update(**batch)
    return metric


@pytest.mark.parametrize("name", WITH_TWIN)
def test_every_setting_of_every_metric_is_compared(name: str) -> None:
    assert {setting for variant in SETTINGS[name] for setting in variant} == set(
        settings_of(name)
    )


@pytest.mark.parametrize("name", WITH_TWIN)
def test_twins_stand_in_files_of_the_same_name(name: str) -> None:
    assert twin_of(name).__module__ == getattr(metrics, name).__module__.replace(
        ".metrics.", ".functional."
    )


def test_every_file_of_metrics_has_a_functional_file_of_its_name() -> None:
    package = Path(metrics.__file__).parent
    files = {
        path.relative_to(package) for path in package.glob("*/*.py") if path.stem != "base"
    }
    assert [
        str(file)
        for file in sorted(files)
        if not (package.parent / "functional" / file).exists()
    ] == []


@pytest.mark.parametrize("name", WITH_TWIN)
def test_numpy_arrays_give_what_tensors_give(name: str) -> None:
    for settings in SETTINGS[name]:
        batch = draw_batch(name, settings)
        batch |= optional(name, batch)
        arrays = {argument: tensor.numpy() for argument, tensor in batch.items()}
        for array in arrays.values():
            array.flags.writeable = False  # as those of a memory-mapped file
        theirs = updated(name, settings, batch).compute()
        assert_same(updated(name, settings, arrays).compute(), theirs)
        assert_same(twin_of(name)(**arrays, **settings), theirs)


@pytest.mark.parametrize("name", WITH_TWIN)
def test_twins_have_the_same_arguments_and_defaults(name: str) -> None:
    twin = twin_of(name)
    tensors_of_twin = dict[str, Any]()
    settings_of_twin = dict[str, str]()
    for parameter in inspect.signature(twin).parameters.values():
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            tensors_of_twin[parameter.name] = parameter.default
        elif parameter.name not in MORE_SETTINGS.get(twin.__name__, []):
            settings_of_twin[parameter.name] = repr(parameter.default)
    update = inspect.signature(getattr(metrics, name).update).parameters
    tensors = {
        parameter: update[parameter].default for parameter in arguments_of_update(name)
    }
    assert list(tensors_of_twin.items()) == list(tensors.items())
    settings = {
        setting: repr(parameter.default) for setting, parameter in settings_of(name).items()
    }
    assert list(settings_of_twin.items()) == list(settings.items())


@pytest.mark.parametrize(("name", "place"), VARIANTS)
def test_twins_return_the_same(name: str, place: int) -> None:
    settings = SETTINGS[name][place]
    batch = draw_batch(name, settings)
    for whole in (batch, {**batch, **optional(name, batch)}):
        assert_same(
            twin_of(name)(**whole, **settings), updated(name, settings, whole).compute()
        )


@pytest.mark.parametrize("argument", ["preds", "target"])
@pytest.mark.parametrize(("name", "place"), VARIANTS)
def test_twins_refuse_the_same(name: str, place: int, argument: str) -> None:
    settings = SETTINGS[name][place]
    batch = draw_batch(name, settings)
    values = batch[argument].clone()
    values[1] = float("nan") if values.is_floating_point() else 99  # the first is ignored
    with pytest.raises(InvalidValueError) as of_metric:
        updated(name, settings, {**batch, argument: values})
    assert of_metric.value.argument == argument
    with pytest.raises(InvalidValueError) as of_twin:
        twin_of(name)(**{**batch, argument: values}, **settings)
    assert of_twin.value.rule == of_metric.value.rule
    assert of_twin.value.sample == of_metric.value.sample


def assert_near(ours: Any, theirs: Any) -> None:
    """Compare as `assert_same` does, but for rounding: sums are taken in another order."""
    if isinstance(ours, Tensor):
        torch.testing.assert_close(
            ours, theirs, rtol=1e-6, atol=1e-7, equal_nan=True, check_dtype=False
        )
    else:
        if isinstance(ours, dict):
            ours = list(ours.values())
            theirs = list(theirs.values())
        for our, their in zip(ours, theirs, strict=True):
            assert_near(our, their)


@pytest.mark.parametrize(
    "name", [name for name in WITH_TWIN if "sample_weight" in arguments_of_update(name)]
)
def test_weights_repeat_samples(name: str) -> None:
    """The Metric sees two batches one after the other."""
    counts = torch.arange(SIZE) % 3
    for settings in SETTINGS[name]:
        batch = draw_batch(name, settings)
        repeated = twin_of(name)(
            **{key: rows.repeat_interleave(counts, 0) for key, rows in batch.items()},
            **settings,
        )
        assert_near(twin_of(name)(**batch, sample_weight=counts, **settings), repeated)
        metric = getattr(metrics, name)(**settings)
        for rows in (slice(0, 11), slice(11, SIZE)):
            metric.update(batch["preds"][rows], batch["target"][rows], counts[rows])
        assert_near(metric.compute(), repeated)


@pytest.mark.parametrize(
    "name", [name for name in WITH_TWIN if "ignore_index" in settings_of(name)]
)
def test_ignored_samples_do_not_count_whatever_their_scores(name: str) -> None:
    for settings in SETTINGS[name]:
        batch = draw_batch(name, settings)
        others = {key: value for key, value in settings.items() if key != "ignore_index"}
        kept = torch.arange(SIZE) % 5 > 0
        expected = twin_of(name)(
            **{key: rows[kept] for key, rows in batch.items()}, **others
        )
        batch["preds"][~kept] = torch.nan
        batch["target"][~kept] = -1
        assert_near(twin_of(name)(**batch, **{**others, "ignore_index": -1}), expected)


@pytest.mark.parametrize("name", WITH_TWIN)
def test_further_dimensions_are_samples(name: str) -> None:
    for settings in SETTINGS[name]:
        batch = draw_batch(name, settings)
        images = {key: torch.stack(rows.split(8), dim=-1) for key, rows in batch.items()}
        assert_near(twin_of(name)(**images, **settings), twin_of(name)(**batch, **settings))


@pytest.mark.parametrize("name", ENTRIES)
def test_single_quality_metrics_are_entries_of_the_dictionary(name: str) -> None:
    for settings in SETTINGS["MulticlassQualityMetrics"]:
        batch = draw_batch(name, settings)
        batch |= optional(name, batch)
        values = functional.multiclass_quality_metrics(**batch, **settings)
        assert_same(values[ENTRIES[name]], updated(name, settings, batch).compute())
    assert list(settings_of(name)) == list(settings_of("MulticlassQualityMetrics"))
