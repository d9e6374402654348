"""The sentences at the top of the demo's report."""

import pytest
import torch
from scipy.stats import ttest_rel

from mpcs_torch import ConcernSpec
from mpcs_torch.learning.recommended import PLAIN
from mpcs_torch.report.demo import cut_of_dangerous, verdict, with_referral, without_referral
from mpcs_torch.trainer.recommended import RECOMMENDED, WITH_REFERRAL, Demonstration, SeedResult, train_and_decide

CONCERN = ConcernSpec(3, releases=[[0, 1]])
EVERY = (PLAIN, RECOMMENDED, PLAIN + WITH_REFERRAL, RECOMMENDED + WITH_REFERRAL)


def seed_result(*counts: tuple[int, int, int]) -> SeedResult:
    """Make 100 decisions for samples of class 0 of each way, from its dangerous errors, errors and decided samples."""
    parts = [(dangerous, errors - dangerous, decided - errors, 100 - decided) for dangerous, errors, decided in counts]
    decisions = [torch.tensor([2, 1, 0, -1]).repeat_interleave(torch.tensor(part)) for part in parts]
    return SeedResult(torch.zeros(100).long(), dict(zip(EVERY, decisions, strict=False)), {})


SEEDS = [
    seed_result((8, 20, 100), (4, 18, 100), (2, 9, 60), (1, 8, 80)),
    seed_result((12, 24, 100), (6, 16, 100), (1, 6, 40), (0, 7, 70)),
]


def test_the_verdict_is_a_sentence() -> None:
    assert verdict(Demonstration(CONCERN, [seed_result((1, 2, 100), (1, 3, 100))] * 2)) == (
        "The recommended recipe and the plain run make equally many dangerous errors on test data: 1.0."
    )
    assert verdict(Demonstration(CONCERN, [seed_result((2, 2, 100), (3, 3, 100))] * 2)) == (
        "The recommended recipe makes 50 % more dangerous errors on test data: 3.0 instead of 2.0."
    )
    assert verdict(Demonstration(CONCERN, SEEDS)) == (
        "The recommended recipe makes 50 % fewer dangerous errors on test data: 5.0 instead of 10.0."
    )


def test_the_table_and_the_sentences_hold_means_over_seeds() -> None:
    demonstration = Demonstration(CONCERN, SEEDS)
    assert demonstration.table().rows == [
        [PLAIN, "100.0 %", "78.00 %", "22.0", "10.0", "10.00 %"],
        [RECOMMENDED, "100.0 %", "83.00 %", "17.0", "5.0", "5.00 %"],
        [PLAIN + WITH_REFERRAL, "50.0 %", "85.00 %", "7.5", "1.5", "1.50 %"],
        [RECOMMENDED + WITH_REFERRAL, "75.0 %", "90.00 %", "7.5", "0.5", "0.50 %"],
    ]
    sentence = without_referral(demonstration)
    assert sentence.startswith("Of 100 test samples, the plain run makes 10.0 dangerous errors and the recommended")
    assert " decision rule 5.0: 50 % [" in sentence
    assert "] fewer, at +5.00 [-33.12, +43.12] points of accuracy" in sentence  # Student's t of two seeds
    assert with_referral(demonstration).endswith(
        "recipe decides 75.0 % of the samples, the plain run with the same rule 50.0 %."
    )


def test_intervals_are_those_of_seeds() -> None:
    generator = torch.Generator().manual_seed(0)
    counts = torch.randint(5, 15, (8, 2), generator=generator).tolist()
    demonstration = Demonstration(CONCERN, [seed_result((a, 20, 100), (b, 20, 100)) for a, b in counts])
    difference = demonstration.effect(lambda ours, theirs: ours - theirs, "dangerous")
    paired = ttest_rel([b for _, b in counts], [a for a, _ in counts]).confidence_interval()
    assert difference[1:] == pytest.approx((paired.low, paired.high))
    cut = cut_of_dangerous(demonstration)
    assert cut.value == pytest.approx(1 - sum(b for _, b in counts) / sum(a for a, _ in counts))
    assert cut.low < cut.value < cut.high


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_a_seed_gives_the_same_decisions_again() -> None:
    first, second = train_and_decide(3), train_and_decide(3)
    assert list(first.decisions) == list(EVERY)
    assert all(torch.equal(decisions, second.decisions[name]) for name, decisions in first.decisions.items())
    assert not (first.decisions[PLAIN] == -1).any()
    assert (first.decisions[PLAIN] == first.target).double().mean() > 0.9
    best, risk = first.risks[RECOMMENDED]
    wrong = best != first.target
    assert risk[wrong].mean() > risk[~wrong].mean()
