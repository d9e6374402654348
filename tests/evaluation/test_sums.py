"""Sums in bins: they add up to those of all rows, whatever the bins, the order and the parts."""

from typing import Any

import pytest
import torch
from torch import Tensor

from mpcs_torch import ConcernSpec
from mpcs_torch.evaluation.chosen import choose_metrics, inputs_from_probs
from mpcs_torch.evaluation.unit_sums import UnitSums, ids_of_names, in_bits
from mpcs_torch.functional.inputs.labels import Bins
from mpcs_torch.metrics.named_metrics import ENTRIES
from tests.metrics.batches import random_batch
from tests.refused import Refused

CONCERN = ConcernSpec(4, releases=[[0, 1]], factor=0.3)
ADDITIVE = [entry for entry in ENTRIES if entry.is_measure and not entry.of.is_wide]


@pytest.mark.parametrize("entry", ADDITIVE, ids=lambda entry: entry.name)
def test_bins_have_the_values_of_their_rows_alone(entry: Any) -> None:
    logits, target = random_batch(120, seed=1)
    probs = logits.double().softmax(1)
    labels: Tensor = (
        target if entry.takes_classes else torch.rand(120, 4, dtype=torch.float64)
    )
    inputs = inputs_from_probs(probs, {entry.takes})[entry.takes]
    measure = entry.make(4, concern=CONCERN)
    codes, rows = torch.arange(120) % 3, measure.rows(inputs, labels)
    bins, whole = measure.sums(rows, Bins(codes, 4)), measure.sums(rows)
    torch.testing.assert_close(bins.sum(0), whole)
    values = measure.value(measure.named(bins[:3]))
    for code in range(3):
        torch.testing.assert_close(
            values[code], measure(inputs[codes == code], labels[codes == code])
        )
    if measure.interval_rule != "smooth":
        named = measure.named(whole)
        numerator, per = measure.ratio(named, named)
        value = measure.value(named).item()
        assert measure.value_from_ratio((numerator / per).item(), named) == pytest.approx(
            value
        )


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
    measure = entry.make(4, concern=CONCERN)
    sure = torch.eye(4, dtype=torch.float64).repeat(4, 1).clamp(1e-12)
    probs = torch.cat(
        [sure / sure.sum(1, keepdim=True), torch.full((4, 4), 0.25, dtype=torch.float64)]
    )
    target = torch.cat([torch.arange(4).repeat_interleave(4), torch.arange(4)])
    inputs = inputs_from_probs(probs, {entry.takes})[entry.takes]
    rows = measure.rows(inputs, target)
    whole = measure.named(measure.sums(rows))
    numerator, per = measure.ratio(
        measure.named(measure.sums(rows, Bins(torch.arange(20), 20))), whole
    )
    possible = torch.tensor(measure.row_ratios(whole), dtype=torch.float64)
    for ratio in (0.0, 0.3, 1.0):
        most, least = (possible[:, 0] - ratio * possible[:, 1]).aminmax()[::-1]
        rest = numerator - ratio * per
        assert (rest <= most + 1e-9).all()
        assert (rest >= least - 1e-9).all()


def drawn(rows: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    groups = torch.randint(3, (rows,), generator=generator)
    return (
        groups,
        torch.randint(40, (rows,), generator=generator),
        torch.randn(rows, 2, generator=generator).double(),
    )


def by_bin(table: UnitSums) -> dict[tuple[int, int], list[float]]:
    return {
        (code, int(bin_id)): row.tolist()
        for code, ids, sums in table.by_group()
        for bin_id, row in zip(ids, sums, strict=True)
    }


def test_parts_merge_to_the_whole_bit_for_bit() -> None:
    groups, ids, sums = drawn(200, 0)
    whole, parts = UnitSums(), [UnitSums(), UnitSums()]
    whole.add(groups[:120], ids[:120], sums[:120])
    whole.add(groups[120:], ids[120:], sums[120:])
    parts[0].add(groups[:120], ids[:120], sums[:120])
    parts[1].add(groups[120:], ids[120:], sums[120:])
    parts[0].merge(parts[1])
    assert by_bin(parts[0]) == by_bin(whole)
    expected = torch.zeros(3, 40, 2, dtype=torch.float64).index_put_(
        (groups, ids), sums, accumulate=True
    )
    for (code, bin_id), row in by_bin(whole).items():
        assert row == pytest.approx(expected[code, bin_id].tolist())


def test_bins_are_folded_to_their_budget_by_hash_alike_in_every_part() -> None:
    groups, ids, sums = drawn(3000, 1)
    ids = torch.arange(3000)
    small, large = UnitSums(budget=600), UnitSums()
    for rows in torch.arange(3000).split(500):
        small.add(groups[rows], in_bits(ids[rows], None, small.bits), sums[rows])
        large.add(groups[rows], ids[rows], sums[rows])
    assert small.sums.numel() <= 600
    assert small.bits is not None
    large.fold(small.bits)
    assert by_bin(small).keys() == by_bin(large).keys()
    for key, row in by_bin(large).items():
        assert by_bin(small)[key] == pytest.approx(row)
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
    chosen = choose_metrics(CONCERN.classes, CONCERN)
    names = [entry.name for entry in chosen.entries]
    assert {"mpcs", "accuracy", "measured_decisiveness"} < set(names)
    assert not {"mpcs_count", "risk_coverage_area"} & set(names)
    with Refused("no_soft_labels", "", metrics="soft_f1_micro"):
        choose_metrics(
            ["a", "b", "c", "d"],
            None,
            [entry for entry in ENTRIES if entry.name == "soft_f1_micro"],
        )


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
