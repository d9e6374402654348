"""The sentences at the top of the demo's report."""

import torch

from mpcs_torch import ConcernSpec
from mpcs_torch.benchmark.demonstration import PLAIN, RECOMMENDED, WITH_REFERRAL, Demonstration, Tally
from mpcs_torch.report.demo import verdict, with_referral, without_referral


def test_the_verdict_of_equally_many_dangerous_errors_is_a_sentence() -> None:
    found = Demonstration(ConcernSpec(3))
    for name in (PLAIN, RECOMMENDED):
        found.add(name, torch.tensor([0, 1, 1]), torch.tensor([0, 1, 2]))
    assert verdict(found) == (
        "The recommended recipe and the plain run make equally many dangerous errors on test data: 1.0."
    )
    found = Demonstration(ConcernSpec(3))
    for name, decided in ((PLAIN, [0, 0]), (RECOMMENDED, [0, 1])):
        found.add(name, torch.tensor([decided[1], 1]), torch.tensor([1, 2]))
    assert (
        verdict(found) == "The recommended recipe makes 50 % fewer dangerous errors on test data: 1.0 instead of 2.0."
    )


def test_the_table_and_the_sentences_hold_means_over_seeds() -> None:
    """Of 100 samples under each of two seeds, errors are 20 and 16, of which 8 and 4 are dangerous, and so on."""
    tallies = {
        PLAIN: [Tally(8, 20, 100, 100), Tally(12, 24, 100, 100)],
        PLAIN + WITH_REFERRAL: [Tally(2, 9, 60, 100), Tally(1, 6, 40, 100)],
        RECOMMENDED: [Tally(4, 18, 100, 100), Tally(6, 16, 100, 100)],
        RECOMMENDED + WITH_REFERRAL: [Tally(1, 8, 80, 100), Tally(0, 7, 70, 100)],
    }
    found = Demonstration(ConcernSpec(3), tallies)
    assert found.table().rows == [
        [PLAIN, "100.0 %", "78.00 %", "22.0", "10.0", "10.00 %"],
        [PLAIN + WITH_REFERRAL, "50.0 %", "85.00 %", "7.5", "1.5", "1.50 %"],
        [RECOMMENDED, "100.0 %", "83.00 %", "17.0", "5.0", "5.00 %"],
        [RECOMMENDED + WITH_REFERRAL, "75.0 %", "90.00 %", "7.5", "0.5", "0.50 %"],
    ]
    assert found.table().header[1:] == [
        "decided",
        "right, of those decided",
        "errors",
        "dangerous errors",
        "dangerous per sample",
    ]
    told = without_referral(found)
    assert told.startswith(
        "Of 100 test samples, the plain run makes 10.0 dangerous errors and the recommended loss and"
    )
    assert " decision rule 5.0: 50 % [" in told
    assert "] fewer, at +5.00 [-33.12, +43.12] points of accuracy" in told  # Student's t of two seeds
    assert with_referral(found).endswith(
        "recipe decides 75.0 % of the samples, the plain run with the same rule 50.0 %."
    )
    assert (
        verdict(found) == "The recommended recipe makes 50 % fewer dangerous errors on test data: 5.0 instead of 10.0."
    )
