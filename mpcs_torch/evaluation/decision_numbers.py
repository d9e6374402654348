"""The numbers that stand for named decisions: classes, coarse answers and referrals."""

from collections.abc import Sequence

from mpcs_torch.concern.checks import REFERRAL
from mpcs_torch.functional.inputs.decisions import REFERRED


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
