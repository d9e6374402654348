"""Names in files of decisions, and the numbers that stand for them: classes, coarse answers and referrals."""

from collections.abc import Sequence

from mpcs_torch.concern.checks import REFERRAL
from mpcs_torch.functional.inputs.decisions import REFERRED

CHANCE = "chance"
"""The column with the probability with which a row was chosen to be labelled."""


def decision_numbers(
    classes: Sequence[str], answers: Sequence[tuple[str, float]] = ()
) -> dict[str, int]:
    """Map names of decisions to numbers: ``classes`` from 0, then ``answers``; "refer" is `REFERRED` unless a class."""
    numbers = {
        name: number
        for number, name in enumerate([*classes, *(answer for answer, _ in answers)])
    }
    numbers.setdefault(REFERRAL, REFERRED)
    return numbers
