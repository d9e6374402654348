"""A metric with an interval: its value is that of the metric, its interval that of `evaluate`."""

import hashlib
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassCohenKappa

from mpcs_torch import ConcernSpec, WithInterval, evaluate, metrics
from mpcs_torch.evaluation import with_interval
from mpcs_torch.functional.measure import fingerprint
from mpcs_torch.metrics.measure_metric import MeasureMetric
from mpcs_torch.metrics.named_metrics import BY_NAME
from tests.evaluation.draws import rows_of
from tests.evaluation.test_sums import ADDITIVE
from tests.metrics.batches import random_batch
from tests.refused import Refused

LOGITS, TARGET = random_batch(120, seed=4)
PROBS = LOGITS.double().softmax(1)
CONCERN = ConcernSpec(4, releases=[[0, 1]], factor=0.3)


def wrapped(name: str) -> WithInterval:
    return WithInterval(
        MeasureMetric(BY_NAME[name].make(4, concern=CONCERN), True, {}), prefix="m"
    )


def test_settings_have_a_fingerprint_that_saved_states_keep() -> None:
    """The first 16 bytes of SHA-256 of the settings in the order of their names; those of tensors by value."""
    text = "{'a': 1, 'b': 'x'}"
    expected = [*hashlib.sha256(text.encode()).digest()[:16]]
    assert fingerprint({"b": "x", "a": 1}).equal(torch.tensor(expected))
    costs = torch.tensor([[0.0, 1.5], [2.0, 0.0]])
    of_costs = fingerprint({"costs": costs})
    assert of_costs.equal(fingerprint({"costs": costs.double().T.contiguous().T}))
    assert not of_costs.equal(fingerprint({"costs": costs.T}))
    assert not of_costs.equal(fingerprint({"costs": costs.flatten()}))
    assert not of_costs.equal(fingerprint({"costs": costs.long()}))
    sparse = costs.to_sparse_coo().coalesce()  # type: ignore[no-untyped-call]
    of_sparse = fingerprint({"costs": sparse})
    assert of_sparse.equal(fingerprint({"costs": sparse.clone()}))
    assert not of_sparse.equal(fingerprint({"costs": (2 * sparse).coalesce()}))


CLUSTERS, WEIGHTS = torch.arange(120) % 24, 0.1 + torch.rand(120)
EACH_CLASS = torch.rand(120, 4).double()
RARELY_WRONG = torch.where(torch.arange(120) < 116, TARGET, 3 - TARGET)
SURE = (PROBS + 9 * torch.eye(4, dtype=torch.float64)[RARELY_WRONG]) / 10
CASES: dict[str, tuple[Tensor, dict[str, Tensor]]] = {
    "decisions": (PROBS, {"target": TARGET}),
    "sure decisions": (SURE, {"target": TARGET}),
    "soft_labels": (PROBS, {"target": EACH_CLASS}),
    "costs": (PROBS, {"target": TARGET, "costs": EACH_CLASS}),
}


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
@pytest.mark.parametrize("clusters", [None, CLUSTERS], ids=["rows", "clusters"])
@pytest.mark.parametrize("case", CASES)
def test_values_and_intervals_are_those_of_evaluate(
    case: str, clusters: Tensor | None, weights: Tensor | None
) -> None:
    probs, labels = CASES[case]
    is_of_classes = "decisions" in case
    entries = [
        entry
        for entry in ADDITIVE
        if entry.takes_classes == is_of_classes
        and (is_of_classes or entry.takes == case)
        and (weights is None or entry.of.takes_weights)
    ]
    concern = CONCERN if is_of_classes else None
    columns = {"clusters": clusters, "weights": weights}
    expected = evaluate(probs, **labels, concern=concern, metrics=entries, **columns)
    true = labels.get("costs", labels["target"])
    for entry in entries:
        is_of_probs = entry.takes in ("probabilities", "soft_labels", "costs")
        inputs, metric = probs if is_of_probs else probs.log(), wrapped(entry.name)
        for rows in torch.arange(120).split(50):
            names = None if clusters is None else clusters[rows]
            given = {} if weights is None else {"sample_weight": weights[rows]}
            metric.update(inputs[rows], true[rows], names, **given)
        found = {name: each.item() for name, each in metric.compute().items()}
        assert found["m"] == pytest.approx(expected.value(entry.name)), entry.name
        interval = expected.interval(entry.name) or (float("nan"),) * 2
        assert (found["m_low"], found["m_high"]) == pytest.approx(interval, nan_ok=True), (
            entry.name
        )


@pytest.mark.filterwarnings("ignore:The ``compute`` method:UserWarning")
def test_it_merges_resets_and_is_pickled_as_other_metrics() -> None:
    whole, first, second = [wrapped("mpcs") for _ in range(3)]
    whole.update(PROBS, TARGET)
    for part, rows in ((first, slice(0, 60)), (second, slice(60, 120))):
        batch = part(PROBS[rows], TARGET[rows])
        alone = evaluate(PROBS[rows], TARGET[rows], concern=CONCERN)
        assert batch["m"] == pytest.approx(alone.value("mpcs"))
    first.merge_state(second)
    expected = {name: pytest.approx(each) for name, each in whole.compute().items()}
    for metric in (first, pickle.loads(pickle.dumps(first)), whole.clone()):
        assert metric.compute() == expected
    whole.reset()
    with Refused("not_updated", "WithInterval.compute"):
        whole.compute()


@pytest.mark.parametrize("clustered", [False, True])
def test_memory_has_a_bound(clustered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    target, probs, _ = rows_of(4000, [1.0] * 4)
    values = []
    for budget in (10**6, 4000):
        metric = wrapped("accuracy")
        monkeypatch.setattr(with_interval, "BUDGET", budget)
        for rows in torch.arange(4000).split(250):
            clusters = rows % 200 if clustered else None
            metric.update(probs[rows].argmax(1), target[rows], clusters)
        values.append({name: each.item() for name, each in metric.compute().items()})
    assert sum(part.numel() for part in metric.sums) <= 4000 + 250 * 14
    assert values[0]["m"] == values[1]["m"]
    assert values[0] == pytest.approx(values[1], abs=1e-3)


def test_further_dimensions_are_of_their_row() -> None:
    metric, preds = WithInterval(metrics.Accuracy(4)), torch.zeros(30, 4, 5)
    preds[:, 2] = 1
    metric.update(preds, torch.full((30, 5), 2))
    assert metric.compute()["accuracy"] == 1


def test_ignored_and_missing_rows_say_nothing() -> None:
    expected = wrapped("brier_score")
    expected.update(PROBS[:60], TARGET[:60])
    ignoring = WithInterval(
        metrics.BrierScore(4, from_logits=False, ignore_index=-1), prefix="m"
    )
    ignoring.update(PROBS, torch.where(torch.arange(120) < 60, TARGET, -1))
    ignoring.update(PROBS[:0], TARGET[:0])
    assert ignoring.compute() == expected.compute()


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"preds": PROBS * 2}, Refused("probabilities", "preds")),
        ({"clusters": [1, 2]}, Refused("name_for_each", "clusters", 2, rows=120)),
        ({"clusters": TARGET}, Refused("given_for_every_batch", "clusters")),
    ],
)
def test_bad_input_is_refused_and_nothing_is_added(
    given: dict[str, Any], refusal: Refused
) -> None:
    metric = wrapped("brier_score")
    metric.update(PROBS, TARGET)
    before = metric.compute()
    with refusal:
        metric.update(**{"preds": PROBS, "target": TARGET, **given})
    metric._computed = None
    assert metric.compute() == before


def test_keys_differ_in_collections_and_logs() -> None:
    def keys(metrics: dict[str, Any], prefix: str | None = None) -> list[str]:
        collection = MetricCollection(metrics, prefix=prefix)
        collection.update(PROBS.argmax(1), TARGET)
        return [*collection.compute()]

    def accuracy(prefix: str | None = None) -> WithInterval:
        return WithInterval(metrics.Accuracy(4), prefix=prefix)

    kappa = WithInterval(MulticlassCohenKappa(4), prefix="kappa")
    names = ["val_accuracy", "val_accuracy_low", "val_accuracy_high"]
    of_kappa = ["val_kappa", "val_kappa_low", "val_kappa_high"]
    assert keys({"a": accuracy(), "k": kappa}, "val_") == [*names, *of_kappa]
    assert keys({"a": accuracy("val_accuracy")}) == names
    twice = keys({"student": accuracy(), "teacher": accuracy()})
    assert twice[::3] == ["student_accuracy", "teacher_accuracy"]


def test_a_collection_shares_no_states_that_are_equal_by_chance() -> None:
    """Without errors in the first batch, the sums of both costs are 0, and torchmetrics would share them."""
    alone = {
        name: WithInterval(metrics.ExpectedConcern(4, concern=spec), prefix=name)
        for name, spec in (("one", CONCERN), ("other", ConcernSpec(4)))
    }
    together = MetricCollection({name: metric.clone() for name, metric in alone.items()})
    for preds in (TARGET, PROBS.argmax(1)):
        for metric in (together, *alone.values()):
            metric.update(preds, TARGET)
    assert together.compute() == alone["one"].compute() | alone["other"].compute()


def test_a_misspelt_argument_is_refused() -> None:
    with pytest.raises(TypeError, match="weights"):
        wrapped("accuracy").update(PROBS, TARGET, weights=torch.ones(120))
