"""Sums in bins: they add up to those of all rows, whatever the bins, the order and the parts."""

from typing import Any

import pytest
import torch
from torch import Tensor

from mpcs_torch import ConcernSpec
from mpcs_torch.evaluation.chosen import choose_metrics, inputs_from_probs
from mpcs_torch.evaluation.influence import IndependentUnits, bias
from mpcs_torch.evaluation.unit_sums import UnitSums, ids_of_names, in_bits
from mpcs_torch.functional.inputs.labels import Bins
from mpcs_torch.metrics.named_metrics import BY_NAME, ENTRIES
from tests.metrics.batches import random_batch
from tests.refused import Refused

CONCERN = ConcernSpec(4, releases=[[0, 1]], factor=0.3)
ADDITIVE = [entry for entry in ENTRIES if entry.is_measure and not entry.of.is_wide]


RATIOS = [entry for entry in ADDITIVE if entry.of.interval_rule != "smooth"]


def sums_of_batch(entry: Any, measure: Any, seed: int) -> Tensor:
    logits, target = random_batch(40, seed=seed)
    probs = logits.double().softmax(1)
    inputs = inputs_from_probs(probs, {entry.takes})[entry.takes]
    labels = target if entry.takes_classes else probs.flip(0)
    return measure.sums(measure.rows(inputs, labels))


@pytest.mark.parametrize("entry", RATIOS, ids=lambda entry: entry.name)
def test_a_value_comes_from_the_ratio_of_its_sums(entry: Any) -> None:
    """That groups have the values of their rows alone is a law of evaluations."""
    measure = entry.make(4, concern=CONCERN)
    named = measure.named(sums_of_batch(entry, measure, seed=1))
    numerator, per = measure.ratio(named, named)
    value = measure.value_from_ratio((numerator / per).item(), named)
    assert value == pytest.approx(measure.value(named).item())


@pytest.mark.parametrize("entry", ADDITIVE, ids=lambda entry: entry.name)
def test_several_sums_have_the_value_of_each(entry: Any) -> None:
    measure = entry.make(4, concern=CONCERN)
    batches = [sums_of_batch(entry, measure, seed) for seed in range(5)]
    alone = torch.stack([measure.value(measure.named(each)) for each in batches])
    together = measure.value(measure.named(torch.stack(batches)))
    torch.testing.assert_close(together, alone)


@pytest.mark.parametrize("name", ["macro_f1", "mcc"])
def test_the_bias_of_few_rows_is_that_of_random_halves(name: str) -> None:
    """In a half, each row counts twice or not at all."""
    measure: Any = BY_NAME[name].make(4)
    ones = torch.ones(40, dtype=torch.float64)
    rows = IndependentUnits(ones, ones, None)
    generator = torch.Generator().manual_seed(0)
    fast = naive = 0.0
    for seed in range(60):
        logits, target = random_batch(40, seed=seed)
        of_rows = measure.sums(
            measure.rows(logits.argmax(1), target), Bins(torch.arange(40), 40)
        ).double()
        fast += bias(measure, measure.named(of_rows), rows)
        times = 2.0 * torch.randint(2, (100, 40), generator=generator)
        values = measure.value(measure.named(times.double() @ of_rows))
        naive += (
            values.nanmean().item() - measure.value(measure.named(of_rows.sum(0))).item()
        )
    assert fast == pytest.approx(naive, rel=0.25)


CLASSED = [(entry, entry.make(4)) for entry in ADDITIVE if entry.takes_classes]
NONE = torch.zeros(100, dtype=torch.float64)
BOUNDED = [
    entry
    for entry, measure in CLASSED
    if measure is not None
    and measure.row_ratios(measure.named(NONE[: measure.width]))
    and entry.name != "cross_entropy"  # whose highest loss is a stated one
]


@pytest.mark.parametrize("entry", BOUNDED, ids=lambda entry: entry.name)
def test_no_row_adds_more_than_its_metric_says(entry: Any) -> None:
    """For any ratio v, numerator - v denominator of a row is between the least and the most of possible rows."""
    measure, sure = entry.make(4, concern=CONCERN), torch.eye(4).double().clamp(1e-12)
    probs = torch.cat([sure.repeat(4, 1), torch.full((4, 4), 0.25).double()])
    target = torch.cat([torch.arange(4).repeat_interleave(4), torch.arange(4)])
    inputs = inputs_from_probs(probs / probs.sum(1, keepdim=True), {entry.takes})
    rows = measure.rows(inputs[entry.takes], target)
    whole = measure.named(measure.sums(rows))
    of_rows = measure.named(measure.sums(rows, Bins(torch.arange(20), 20)))
    numerator, per = measure.ratio(of_rows, whole)
    possible = torch.tensor(measure.row_ratios(whole), dtype=torch.float64)
    for ratio in (0.0, 0.3, 1.0):
        rest, ends = numerator - ratio * per, possible[:, 0] - ratio * possible[:, 1]
        assert ((rest >= ends.min() - 1e-9) & (rest <= ends.max() + 1e-9)).all()


def by_bin(table: UnitSums) -> dict[tuple[int, int], list[float]]:
    return {
        (code, int(bin_id)): row.tolist()
        for code, ids, sums in table.by_group()
        for bin_id, row in zip(ids, sums, strict=True)
    }


def test_bins_are_folded_to_their_budget_by_hash_alike_in_every_part() -> None:
    generator, ids = torch.Generator().manual_seed(1), torch.arange(3000)
    groups = torch.randint(3, (3000,), generator=generator)
    sums = torch.randn(3000, 2, generator=generator).double()
    small, large = UnitSums(budget=600), UnitSums()
    for rows in ids.split(500):
        small.add(groups[rows], in_bits(rows, None, small.bits), sums[rows])
        large.add(groups[rows], rows, sums[rows])
    assert small.sums.numel() <= 600
    assert small.bits is not None
    large.fold(small.bits)
    assert by_bin(small) == {key: pytest.approx(row) for key, row in by_bin(large).items()}
    unfolded = UnitSums()
    unfolded.add(groups, ids, sums)
    unfolded.merge(small)
    assert unfolded.bits == small.bits
    torch.testing.assert_close(unfolded.sums.sum(0), 2 * sums.sum(0))


def test_names_have_the_same_identifier_everywhere() -> None:
    assert ids_of_names(["p7", "p8", "p7"]).tolist() == [
        286969151315059023,
        3540737710092921294,
        286969151315059023,
    ]


def test_a_metric_of_few_numbers_is_read_from_many() -> None:
    names = [entry.name for entry in choose_metrics(CONCERN.classes, CONCERN).entries]
    assert {"mpcs", "accuracy", "measured_decisiveness"} < {*names}
    assert not {"mpcs_count", "risk_coverage_area"} & {*names}
    with Refused("no_soft_labels", "", metrics="soft_f1_micro"):
        choose_metrics(CONCERN.classes, None, [BY_NAME["soft_f1_micro"]])


def test_sums_that_wait_are_folded_before_others_are_merged() -> None:
    """Both would be folded when they are joined, the first to fewer bits than the second."""
    expected, tables = UnitSums(1000), []
    for first, last in ((0, 1200), (1200, 5200)):
        ids = torch.arange(first, last)
        ones = torch.ones(last - first, 1, dtype=torch.float64)
        groups = torch.zeros_like(ids)
        expected.add(groups, in_bits(ids, None, expected.bits), ones)
        assert len(expected.ids) <= 1000, "joined at once"
        tables.append(UnitSums(1000))
        tables[-1].add(groups, ids, ones)
        assert tables[-1].bits is None, "nothing is joined yet"
    tables[0].merge(tables[1])
    assert tables[0].bits == expected.bits
    assert tables[0].ids.equal(expected.ids)
    assert tables[0].sums.equal(expected.sums)
