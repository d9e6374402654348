"""The sentences at the top of the demo's report."""

import pytest
import torch
from scipy.stats import ttest_rel

from mpcs_torch import ConcernSpec
from mpcs_torch.report.demo import verdict, with_referral, without_referral
from mpcs_torch.report.demonstration import (
    BY_COST,
    RECOMMENDED,
    USUAL,
    WAYS,
    Demonstration,
    SeedResult,
    train_and_decide,
)

CONCERN = ConcernSpec(3, releases=[[0, 1]])


def seed_result(*counts: tuple[int, int, int]) -> SeedResult:
    """Make 100 decisions for samples of class 0 of each way, from its dangerous errors, errors and decided samples."""
    parts = [
        (dangerous, errors - dangerous, decided - errors, 100 - decided)
        for dangerous, errors, decided in counts
    ]
    decisions = [
        torch.tensor([2, 1, 0, -1]).repeat_interleave(torch.tensor(part)) for part in parts
    ]
    return SeedResult(torch.zeros(100).long(), dict(zip(WAYS, decisions, strict=True)))


SEEDS = [
    seed_result((8, 20, 100), (6, 20, 100), (6, 20, 100), (4, 18, 100), (1, 8, 80)),
    seed_result((12, 24, 100), (10, 24, 100), (10, 24, 100), (6, 16, 100), (0, 7, 70)),
]


def test_the_verdict_counts_dangerous_errors() -> None:
    assert verdict(Demonstration(CONCERN, SEEDS)) == (
        "Dangerous errors on test data: 10.0 as usual, 5.0 after better training, 0.5 with referrals."
    )


def test_the_table_and_the_sentences_hold_means_over_seeds() -> None:
    demonstration = Demonstration(CONCERN, SEEDS)
    rows = demonstration.table().rows
    assert [row[:4] for row in rows] == [
        [WAYS[0], "100.0 %", "22.0", "10.0"],
        [WAYS[1], "100.0 %", "22.0", "8.0"],
        [WAYS[2], "100.0 %", "22.0", "8.0"],
        [WAYS[3], "100.0 %", "17.0", "5.0"],
        [WAYS[4], "75.0 %", "7.5", "0.5"],
    ]
    assert rows[0][4] == ""
    assert rows[1][4].startswith("20 % [")
    sentence = without_referral(demonstration)
    assert sentence.startswith("Of 100 test samples, 10.0 are dangerous errors")
    assert (
        "deciding by cost: 0 % [0, 0] fewer, at +0.00 [+0.00, +0.00] points of accuracy"
        in sentence
    )
    assert (
        "] fewer, at +5.00 [-33.12, +43.12] points of accuracy" in sentence
    )  # Student's t of two seeds
    assert with_referral(demonstration).endswith(
        "75.0 % of the samples are decided, with 0.5 dangerous errors."
    )


def test_intervals_are_those_of_seeds() -> None:
    generator = torch.Generator().manual_seed(0)
    counts = torch.randint(5, 15, (8, 2), generator=generator).tolist()
    ways = [
        [(a, a, 100), (a, a, 100), (a, a, 100), (b, b, 100), (b, b, 100)] for a, b in counts
    ]
    demonstration = Demonstration(CONCERN, [seed_result(*each) for each in ways])
    points = demonstration.points(RECOMMENDED, USUAL)
    paired = ttest_rel([a for a, _ in counts], [b for _, b in counts]).confidence_interval()
    assert points[1:] == pytest.approx((paired.low, paired.high))
    cut = demonstration.cut(RECOMMENDED, USUAL)
    assert cut.value == pytest.approx(
        1 - sum(b for _, b in counts) / sum(a for a, _ in counts)
    )
    assert cut.low < cut.value < cut.high
    assert demonstration.cut(BY_COST, USUAL) == (0, 0, 0)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_a_seed_gives_the_same_decisions_again() -> None:
    first, second = train_and_decide(3), train_and_decide(3)
    assert tuple(first.decisions) == WAYS
    assert all(
        torch.equal(decisions, second.decisions[name])
        for name, decisions in first.decisions.items()
    )
    assert not (first.decisions[USUAL] == -1).any()
    assert (first.decisions[USUAL] == first.target).double().mean() > 0.9
