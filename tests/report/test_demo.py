"""The sentences at the top of the demo's report."""

import torch

from mpcs_torch import ConcernSpec
from mpcs_torch.report.demo import verdict
from mpcs_torch.study.demonstration import PLAIN, RECOMMENDED, Demonstration


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
