"""Any Metric has the value of torchmetrics, and an interval where one holds: in `evaluate` and in `WithInterval`."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torchmetrics import MeanMetric, Metric, MinMaxMetric
from torchmetrics.classification import (
    BinaryAUROC,
    MulticlassAccuracy,
    MulticlassAUROC,
    MulticlassAveragePrecision,
    MulticlassCalibrationError,
    MulticlassCohenKappa,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
    MulticlassFBetaScore,
    MulticlassMatthewsCorrCoef,
    MulticlassRecall,
)
from torchmetrics.regression import MeanSquaredError, PearsonCorrCoef, R2Score

from mpcs_torch import Evaluation, WithInterval, evaluate
from mpcs_torch.evaluation.result import Result
from mpcs_torch.metrics import (
    MetaPatternConcernScore,
    MulticlassQualityMetrics,
    ProbabilityAccuracy,
    RiskAtCoverage,
    RiskCoverageArea,
)
from mpcs_torch.metrics.metric_entry import MetricEntry
from tests.evaluation.draws import rows_of
from tests.refused import Refused

TARGET, PROBS, OTHER = rows_of(900, [0.5, 0.3, 0.2], skills=(1.0, 1.6))
SITES = [("north", "south")[row % 3 == 0] for row in range(900)]
OURS: dict[str, Any] = {
    "kappa": lambda: MulticlassCohenKappa(3, weights="quadratic"),
    "auroc": lambda: MulticlassAUROC(3),
    "precision": lambda: MulticlassAveragePrecision(3),
    "f1": lambda: MulticlassF1Score(3, average="macro"),
    "mcc": lambda: MulticlassMatthewsCorrCoef(3),
    "f half": lambda: MulticlassFBetaScore(0.5, num_classes=3),
    "f two": lambda: MulticlassFBetaScore(2.0, num_classes=3),
}


class MeanSize(Metric):
    """Hold a number that is no state, so that states of parts do not merge."""

    full_state_update = False
    batches = 0
    samples: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.add_state("samples", torch.tensor(0), dist_reduce_fx="sum")

    def update(self, preds: Tensor, target: Tensor) -> None:
        self.samples += len(target)
        self.batches += 1

    def compute(self) -> Tensor:
        return self.samples / self.batches


class OfBatches(MeanSize):
    """Average over batches, so that parts of several batches count as one."""

    def __init__(self) -> None:
        Metric.__init__(self)
        for name in ("samples", "batches"):
            self.add_state(name, torch.tensor(0.0), dist_reduce_fx="sum")

    def update(self, preds: Tensor, target: Tensor) -> None:
        self.samples += (preds.argmax(1) == target).float().mean()
        self.batches += 1


class WideSum(MeanSize):
    """Hold a state of so many numbers that those of 32 parts take too much memory."""

    def __init__(self) -> None:
        Metric.__init__(self)
        self.add_state("samples", torch.zeros(2**20), dist_reduce_fx="sum")

    def compute(self) -> Tensor:
        return self.samples[0]


def measured(**arguments: Any) -> Result[Any]:
    metrics = {name: make() for name, make in OURS.items()}
    return evaluate(
        **{
            "preds": {"A": PROBS, "B": OTHER},
            "target": TARGET,
            "metrics": metrics,
            **arguments,
        }
    )


def value(make: Any, probs: Tensor = PROBS, target: Tensor = TARGET) -> float:
    metric = make()
    metric.update(probs, target)
    return float(metric.compute())


def test_values_are_those_of_torchmetrics_in_groups_too_and_lie_in_their_intervals() -> (
    None
):
    found = measured(groups={"site": SITES})
    for name, make in OURS.items():
        assert found.value(name, "A") == pytest.approx(value(make))
        low, high = found.interval(name, "A", ("site", "south"))
        of_south = found.value(name, "A", ("site", "south"))
        assert of_south == pytest.approx(value(make, PROBS[::3], TARGET[::3]))
        assert low < of_south < high
    assert [row.better for row in found.comparisons] == ["B"] * len(OURS)


def test_the_interval_is_near_that_of_the_jackknife_of_single_rows() -> None:
    metrics = {"theirs": MulticlassMatthewsCorrCoef(3), "ours": "mcc"}
    found = evaluate(PROBS, TARGET, metrics=metrics)
    low, high = found.interval("ours")
    near = pytest.approx((low, high), abs=0.2 * (high - low))
    assert found.interval("theirs") == near


@pytest.mark.parametrize("kind", [MulticlassCohenKappa, MulticlassMatthewsCorrCoef])
def test_intervals_of_predictions_by_chance_contain_0(kind: Any) -> None:
    """For plots, torchmetrics states 0 to 1: on this logit scale, the interval of a positive value was all above 0."""

    class Named(kind):  # type: ignore[misc]
        """A subclass has the same limits."""

    contained = 0
    for seed in range(20):
        target, probs, _ = rows_of(300, [1.0] * 3, skills=(0.0, 0.0), seed=seed)
        found = evaluate(probs, target, metrics={"chance": Named(3)})
        low, high = found.interval("chance")
        assert low < found.value("chance") < high
        contained += low < 0 < high
    assert contained >= 17


WRAPPED = MinMaxMetric(MulticlassAccuracy(3))


@pytest.mark.parametrize(
    ("metric", "codes"),
    [
        (lambda rows: rows.probs.max(), {"few_dominate"}),
        (lambda rows: rows.probs[:, 0].median(), {"in_steps"}),
        (MulticlassCalibrationError(3), {"in_steps", "biased"}),
        (lambda rows: len(rows.target) > 0, {"all_agree"}),
        (
            MetricEntry("m", MinMaxMetric, "probabilities", key="raw", made=WRAPPED),
            {"wraps_metrics"},
        ),
        (MeanSize(), {"not_mergeable"}),
        (OfBatches(), {"not_mergeable"}),
        (WideSum(), {"too_large"}),
    ],
)
def test_what_has_no_valid_interval_says_why(metric: Any, codes: set[str]) -> None:
    generator = torch.Generator().manual_seed(0)
    calibrated = torch.rand(900, 3, generator=generator).softmax(1)
    target = torch.multinomial(calibrated, 1, generator=generator).squeeze(1)
    found = evaluate(calibrated.double(), target, metrics={"m": metric})
    value, interval, reason = found.find("m")
    assert np.isfinite(value)
    assert interval is None
    assert reason.code in codes


def test_metrics_whose_states_do_not_merge_have_their_value_of_merged_parts() -> None:
    whole, part = [Evaluation(3, metrics={"size": MeanSize()}) for _ in range(2)]
    part.update(PROBS, TARGET)
    whole.merge(part)
    assert whole.result().value("size") == 900
    whole.update(PROBS[:100], TARGET[:100])
    assert whole.result().value("size") == 500  # of two batches
    part.merge(whole)  # adds the rows; the number of batches is no state
    assert part.result().value("size") == 1900
    part.merge(Evaluation(3, metrics={"size": MeanSize()}))
    assert part.result().value("size") == 1900


def test_metrics_take_what_there_is() -> None:
    two, first = torch.stack([1 - PROBS[:, 0], PROBS[:, 0]], 1), (TARGET == 0).long()
    soft, kappa = torch.eye(3).double()[TARGET], MulticlassCohenKappa(3)
    for preds, target, metric, expected in (
        (two, first, BinaryAUROC(), BinaryAUROC()(PROBS[:, 0], first)),
        (PROBS.argmax(1), TARGET, kappa, MulticlassCohenKappa(3)(PROBS, TARGET)),
        (PROBS, soft, MeanSquaredError(), (PROBS - soft).square().mean()),
    ):
        classes = 2 if preds is two else 3
        found = evaluate(preds, target, metrics={"m": metric}, class_names=classes)
        assert found.value("m") == pytest.approx(float(expected))
    metrics = {"logits": MetaPatternConcernScore(3), "named": "mpcs"}
    ours = evaluate(PROBS, TARGET, metrics=metrics)
    assert ours.value("logits") == pytest.approx(ours.value("named"))


@pytest.mark.parametrize(
    ("metrics", "refusal"),
    [
        ([MeanSquaredError(), MeanSquaredError()], Refused("different_names", "metrics")),
        ([len], Refused("kind_of_metric", "metrics")),
        ({"m": 3}, Refused("kind_of_metric", "metrics")),
        ({"m": MulticlassF1Score}, Refused("kind_of_metric", "metrics")),
        ([MulticlassRecall(3, average=None)], Refused("recorded_scalar")),
        (
            [ProbabilityAccuracy(3)],
            Refused("recorded_scalar", "metric ProbabilityAccuracy"),
        ),
        ([MulticlassQualityMetrics(3)], Refused("computes_scalar", "metric")),
        ([BinaryAUROC()], Refused("two_probabilities", "a metric of two classes", 3)),
    ],
)
def test_bad_metrics_are_refused(metrics: Any, refusal: Refused) -> None:
    with refusal:
        evaluate(PROBS, TARGET, metrics=metrics)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("risk_coverage_area", RiskCoverageArea), ("risk_at_coverage", RiskAtCoverage)],
)
def test_a_metric_without_an_interval_has_none_however_it_is_passed(
    name: str, kind: Any
) -> None:
    metrics = {
        "named": name,
        "made": kind(3, from_logits=False),
        "of path": f"mpcs_torch.metrics:{kind.__name__}(from_logits=False)",
    }
    result = evaluate(PROBS, TARGET, class_names=3, metrics=metrics)
    named = result.find("named")
    assert (named[1], named[2].code) == (None, "no_method")
    assert result.find("made") == result.find("of path") == named
    with Refused("with_interval", "metric", metric=kind.__name__):
        WithInterval(kind(3))


@pytest.mark.filterwarnings("ignore:The ``compute`` method:UserWarning")
@pytest.mark.parametrize("clusters", [None, torch.arange(900) // 3])
@pytest.mark.parametrize(
    "make",
    [
        OURS["kappa"],
        OURS["auroc"],
        lambda: MulticlassRecall(3, average=None),
        lambda: MulticlassConfusionMatrix(3, normalize="true"),
    ],
)
def test_with_interval_takes_any_metric(make: Any, clusters: Tensor | None) -> None:
    whole, *parts = [WithInterval(make(), prefix="m") for _ in range(3)]
    for number, rows in enumerate(torch.arange(900).split(100)):
        units = None if clusters is None else clusters[rows]
        for metric in (whole, parts[number % 2]):
            metric.update(PROBS[rows], TARGET[rows], units)
    parts[0].merge_state(parts[1])
    expected = make()(PROBS, TARGET).double()
    for found in (whole.compute(), parts[0].compute()):
        torch.testing.assert_close(found["m"], expected)
        assert (found["m_low"] < expected).all()
        assert (found["m_high"] > expected).all()


def test_with_interval_takes_values_and_targets_of_any_kind() -> None:
    with Refused("merges", "metric"):
        WithInterval(PearsonCorrCoef())
    with Refused("merges", "metric", reason="those of MeanSize do not"):
        WithInterval(MeanSize()).update(PROBS, TARGET)
    mean, values = WithInterval(MeanMetric(), prefix="mean"), PROBS[:, 0]
    for part in values.split(100):
        mean.update(part)
    found = {name: each.item() for name, each in mean.compute().items()}
    width = 2 * 1.96 * values.std().item() / 30
    assert found["mean"] == pytest.approx(values.mean().item(), rel=1e-6)
    assert found["mean_high"] - found["mean_low"] == pytest.approx(width, rel=0.25)
    fit = WithInterval(R2Score())
    fit.update(values, (TARGET == 0).double())
    assert fit.compute()["r2score_low"] < fit.compute()["r2score"]


def test_a_batch_that_a_metric_refuses_adds_nothing() -> None:
    metric = WithInterval(MulticlassCohenKappa(3))
    metric.update(PROBS, TARGET)
    before = metric.compute()
    with pytest.raises(RuntimeError, match=r"shape|Detected"):
        metric.update(PROBS, TARGET + 1)
    metric._computed = None
    assert metric.compute() == before


def test_a_group_of_one_row_has_its_value() -> None:
    groups = {"site": ["one", *["many"] * 899]}
    found = evaluate(PROBS, TARGET, metrics={"f1": MulticlassF1Score(3)}, groups=groups)
    value, interval, _ = found.find("f1", group=("site", "one"))
    assert value in (0.0, 1.0)
    assert interval is None


class SumOfMeans(MeanSize):
    """Declare a mean of the rows of a batch a sum, so that states of parts do not merge."""

    def update(self, preds: Tensor, target: Tensor) -> None:
        self.samples = self.samples + (preds.argmax(1) == target).double().mean()

    def compute(self) -> Tensor:
        return self.samples


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_few_rows_have_their_value_if_states_do_not_merge(rows: int) -> None:
    right = PROBS.argmax(1)
    site = ["many"] * (len(right) - rows) + ["few"] * rows
    metrics = {"share": SumOfMeans()}
    found = evaluate(PROBS, right, metrics=metrics, groups={"site": site})
    assert found.value("share", group=("site", "few")) == 1
    assert evaluate(PROBS[-rows:], right[-rows:], metrics=metrics).value("share") == 1
