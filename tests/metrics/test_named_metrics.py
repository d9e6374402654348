"""The register: every public metric is in it, under laws, with a direction; and users add their own by import path."""

import inspect
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor

from mpcs_torch import metrics
from mpcs_torch.cli.verbs.metrics import register_table
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern.dangerous import SeverityMeasure
from mpcs_torch.functional.concern.expected_concern import ExpectedConcern
from mpcs_torch.functional.concern.mpcs import MetaPatternConcernScore
from mpcs_torch.functional.concern.risk_gap import RiskGap
from mpcs_torch.functional.measure import Measure
from mpcs_torch.functional.probability.probability_accuracy import ProbabilityAccuracy
from mpcs_torch.functional.probability.scores import TopKAccuracy
from mpcs_torch.functional.quality.roc_area import RocArea
from mpcs_torch.functional.quality.scores import (
    ClassErrorRates,
    QuadraticWeightedKappa,
    WeightedF1,
)
from mpcs_torch.metrics.find_entry import entry_of_metric, find_entry
from mpcs_torch.metrics.measure_metric import MeasureMetric
from mpcs_torch.metrics.metric_entry import OF_CURVES, MetricEntry, Takes
from mpcs_torch.metrics.named_metrics import BY_NAME, ENTRIES, OF_CLASS
from mpcs_torch.metrics.shared_sums import shared_sums
from tests.refused import Refused

NO_SCALAR = {
    metrics.ClassErrorRates,
    metrics.ConfusionMatrix,
    metrics.DetectionCurve,
    metrics.MulticlassQualityMetrics,
    metrics.SoftFBeta,
}
"""A value for each class, a curve, what ten entries give one by one, and a metric whose beta has no default."""
OF_TORCHMETRICS = {RocArea, QuadraticWeightedKappa, TopKAccuracy, WeightedF1}
"""Measures of what torchmetrics has as Metrics; with these measures, they also have intervals and bounds."""
CALIBRATION = "torchmetrics.classification:MulticlassCalibrationError"
CONCERN = ConcernSpec(3, releases=[[0, 1]], factor=0.5)
LOGITS = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
TARGET = torch.arange(50) % 3
OF_TRIALS = [entry for entry in ENTRIES if entry.takes == "trials"]


def test_names_are_unique_and_every_public_metric_is_registered() -> None:
    assert len(BY_NAME) == len(ENTRIES)
    public = {getattr(metrics, name) for name in metrics.__all__} - NO_SCALAR
    defined = {
        getattr(metric, "of", f"mpcs_torch.metrics:{metric.__name__}") for metric in public
    }
    ours = {entry.of for entry in ENTRIES if not str(entry.of).startswith("torchmetrics")}
    ours |= {OF_CLASS["net_benefit"].of}
    # The measure counts by cells; the Metric can also keep all scores, and is registered by its path.
    ours.remove(ProbabilityAccuracy)
    ours.add("mpcs_torch.metrics:ProbabilityAccuracy")
    assert ours - OF_TORCHMETRICS == defined


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_the_direction_is_that_of_the_class(entry: MetricEntry) -> None:
    made = entry.make(3)
    metric = MeasureMetric(made, True, {}) if isinstance(made, Measure) else made
    higher_is_better = True if entry.is_of_ranks else metric.higher_is_better
    if higher_is_better is not None:
        assert entry.direction == ("max" if higher_is_better else "min")
    else:
        assert entry.direction is None or entry.key is not None


def test_settings_of_the_surroundings_reach_the_metrics_that_have_them() -> None:
    measure = BY_NAME["mpcs"].make(3, concern=CONCERN, k=2, t=50, unknown=1)
    assert isinstance(measure, MetaPatternConcernScore)
    assert (measure.k, measure.t, measure.from_logits) == (2, 50, False)
    assert measure.weights is not None
    assert torch.equal(measure.weights, CONCERN.mpcs_weights())
    own = MetricEntry("mpcs_k3", MetaPatternConcernScore, "probabilities", {"k": 3}).make(
        3, k=2
    )
    assert own.k == 3, "an entry's own settings win"


@pytest.mark.parametrize("entry", OF_TRIALS, ids=lambda entry: entry.name)
def test_an_entry_of_trials_is_the_public_metric_and_an_instance_of_it_the_entry(
    entry: MetricEntry,
) -> None:
    kind = getattr(metrics, entry.class_name)
    assert MetricEntry("public", kind, "trials").of is entry.of
    instance = entry_of_metric(kind(num_classes=3, **entry.settings), entry.name)
    for name in ("of", "takes", "direction"):
        assert getattr(instance, name) == getattr(entry, name)
    public = kind(num_classes=3, **entry.settings)
    made = (entry.make(3), instance.make(3), public)
    values = [metric(LOGITS, TARGET) for metric in made]
    assert values[0] == values[1] == values[2]
    for name in ("higher_is_better", "plot_upper_bound"):
        assert getattr(made[0], name) == getattr(public, name)
    assert torch.equal(made[0].settings, public.settings)
    with pytest.warns(
        UserWarning, match=f"^{entry.class_name} needs targets and non-targets"
    ):
        assert entry.make(3)(LOGITS, TARGET.clamp(max=1)).isnan()


def test_equal_states_are_shared_and_others_metrics_are_kept_apart() -> None:
    expected = [
        {"accuracy", "macro_f1", "mcc", "macro_recall"},
        {"dangerous", "dangerous_rate"},
        {"mpcs"},
        {"mpcs_count"},
    ]
    entries = [BY_NAME[name] for names in expected for name in sorted(names)]
    groups = shared_sums(entries, 3, concern=CONCERN)
    assert [{*group.members} for group in groups] == expected
    foreign = [
        MetricEntry(f"error_{n}", CALIBRATION, "probabilities", {"n_bins": n})
        for n in (5, 50)
    ]
    few, many = [
        group.first(LOGITS.softmax(1), TARGET)
        for group in shared_sums(foreign, 3, concern=CONCERN)
    ]
    assert few != many


def test_a_measure_has_the_same_value_in_a_group_as_alone() -> None:
    log_probs = LOGITS.log_softmax(dim=1)
    inputs: dict[Takes, torch.Tensor] = {
        "decisions": LOGITS.argmax(dim=1),
        "probabilities": log_probs.exp(),
        "log_probabilities": log_probs,
        "soft_labels": log_probs.exp(),
        "costs": LOGITS.argmax(dim=1),
    }
    own = [entry for entry in ENTRIES if entry.is_measure]
    for group in shared_sums(own, 3, concern=CONCERN, k=2, t=50):
        target = TARGET if group.entries[0].takes_classes else torch.eye(3)[TARGET]
        measure = group.first
        values = group.values(
            measure.named(measure.sums(measure.rows(inputs[group.takes], target)))
        )
        for entry in group.entries:
            value = entry.number(values[entry.name])
            alone = entry.make(3, concern=CONCERN, k=2, t=50)(inputs[entry.takes], target)
            assert value == entry.number(alone), "also not NaN"
            assert isinstance(value, int) == entry.is_count


OF_PAIRS = (SeverityMeasure, ExpectedConcern, RiskGap)


@pytest.mark.parametrize("classes", [1000, 50_257])
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_many_classes_take_little_memory_or_are_refused(
    entry: MetricEntry, classes: int
) -> None:
    refused = Refused("matrix_too_large", "num_classes", limit=2.0)
    is_of_pairs = entry.of in OF_CURVES or (
        not isinstance(entry.of, str) and issubclass(entry.of, OF_PAIRS)
    )
    with refused if classes > 10_000 and is_of_pairs else nullcontext():
        made = entry.make(classes)
        if isinstance(made, Measure):
            assert 8 * made.width <= 400 * classes
        elif not entry.is_of_ranks:
            states = made.metric_state.values()
            assert (
                sum(state.nbytes for state in states if isinstance(state, torch.Tensor))
                <= 400 * classes
            )


def test_a_users_metric_is_found_by_import_path() -> None:
    entry = find_entry("torchmetrics.classification:MulticlassCalibrationError")
    assert (entry.name, entry.takes, entry.direction) == (
        "MulticlassCalibrationError",
        "probabilities",
        "min",
    )


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (
            "xyz",
            Refused(
                "metric_name",
                "metric",
                "xyz",
                names=[*BY_NAME, *(f"{name}[CLASS]" for name in OF_CLASS)],
            ),
        ),
        (
            "acuracy",
            Refused(
                "unknown_metric",
                "metric",
                "acuracy",
                suggestion="did you mean accuracy or top_k_accuracy or auroc?",
            ),
        ),
        ("torch:nothing", Refused("import_fails", "path", "torch:nothing")),
        ("torch:Tensor", Refused("metric_class", "path", "torch:Tensor", found=Tensor)),
    ],
)
def test_what_is_no_metric_is_refused(text: str, refusal: Refused) -> None:
    with refusal:
        find_entry(text)


def test_a_metric_that_is_no_scalar_is_refused_when_it_is_recorded() -> None:
    entry = MetricEntry("rates", ClassErrorRates, "decisions")
    with Refused("recorded_scalar", "metric rates"):
        entry.number(entry.make(3)(LOGITS.argmax(1), TARGET))


def test_the_table_of_the_register_says_what_each_metric_computes() -> None:
    rows = register_table(code="").rows
    assert [row[0] for row in rows] == [
        entry.name for entry in (*ENTRIES, *OF_CLASS.values())
    ]
    assert all(row[-1] for row in rows)


def test_people_can_make_each_public_metric_with_the_settings_that_the_table_shows() -> (
    None
):
    for entry in ENTRIES:
        kind = getattr(metrics, entry.class_name, None)
        if kind is not None:
            assert {*entry.settings} <= {*inspect.signature(kind).parameters}, entry.name


@pytest.mark.parametrize("brackets", ["(", ")", "()", "(top_k=2", "(top_k=2)x", "(2)"])
def test_brackets_of_an_import_path_must_be_closed_and_have_settings(brackets: str) -> None:
    path = f"torchmetrics.classification:MulticlassAccuracy{brackets}"
    with Refused("metric_settings", "settings", path):
        find_entry(path)
    with_setting = find_entry("torchmetrics.classification:MulticlassAccuracy(top_k=2)")
    assert with_setting.settings == {"top_k": 2}
