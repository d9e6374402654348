"""The cases of the monitors for the laws."""

from math import log, nan

from scipy.optimize import brentq
from scipy.special import betaln, xlogy
from torch import Tensor

from mpcs_torch import ConcernSpec
from mpcs_torch.learning import Limit
from mpcs_torch.monitoring import RiskMonitor
from tests.metrics.batches import CERTAIN, CLASSES, HARD
from tests.metrics.case import Batch, MetricCase

CONCERN = ConcernSpec(CLASSES, releases=[[0, 1], [2, 3, 1]], factor=0.25)
NAMES = [str(name) for name in CONCERN.classes]
AT_MOST = (0.02, 0.5, 0.7)
"""In any order of the samples of the laws, the first limit raises an alarm, and the others do not."""
LIMITS = [
    Limit(AT_MOST[0]),
    Limit(AT_MOST[1], "any", of=NAMES[1]),
    Limit(AT_MOST[2], "any", of=f"decided {NAMES[2]}"),
]
RELEASED = {(0, 1), (2, 3), (2, 1)}


def evidence(errors: float, samples: float, limit: float) -> float:
    """Mix the likelihood ratios of 25 rates against the limit."""
    ratios = []
    for number in range(25):
        odds = 1.2 * (40 / 1.2) ** (number / 24) * limit / (1 - limit)
        rate = odds / (1 + odds)
        ratios.append(
            (rate / limit) ** errors * ((1 - rate) / (1 - limit)) ** (samples - errors)
        )
    return sum(ratios) / 25


def interval(errors: float, samples: float) -> tuple[float, float]:
    """Return the rates that a mixture with the density Beta(1/2, 1/2) does not reject."""

    def excess(rate: float) -> float:
        mixed = betaln(errors + 0.5, samples - errors + 0.5) - betaln(0.5, 0.5)
        return float(
            mixed - xlogy(errors, rate) - xlogy(samples - errors, 1 - rate) + log(0.05)
        )

    if not samples:
        return 0.0, 1.0
    mean = errors / samples
    low, high = 0.0, 1.0
    if errors:
        low = brentq(excess, 1e-300, mean, xtol=1e-16)
    if errors < samples:
        high = brentq(excess, mean, 1 - 1e-16, xtol=1e-16)
    return low, high


def counts_of(pairs: list[tuple[int, int]]) -> list[tuple[int, int, float]]:
    """Return the errors, the samples and the limit of each rate, from pairs of a label and a decision."""
    dangerous = [true != guess and (true, guess) not in RELEASED for true, guess in pairs]
    of_1 = [guess != 1 for true, guess in pairs if true == 1]
    as_2 = [true != 2 for true, guess in pairs if guess == 2]
    return [
        (sum(errors), len(errors), limit)
        for errors, limit in zip((dangerous, of_1, as_2), AT_MOST, strict=True)
    ]


def alarms_at_once(evidences: list[float]) -> list[bool]:
    """Return which evidences raise an alarm together."""
    strongest = sorted(evidences, reverse=True)
    passed = [
        e for rank, e in enumerate(strongest, 1) if e >= len(evidences) / (rank * 0.05)
    ]
    return [bool(passed) and e >= min(passed) for e in evidences]


def risk_oracle(batch: Batch) -> dict[str, float]:
    preds, target = batch
    pairs = list(zip(target.tolist(), preds.argmax(dim=1).tolist(), strict=True))
    raised = [False] * len(AT_MOST)
    for number in range(1, len(pairs) + 1):  # an alarm after any sample stays
        now = alarms_at_once([evidence(*count) for count in counts_of(pairs[:number])])
        raised = [before or after for before, after in zip(raised, now, strict=True)]
    values = dict[str, float]()
    for place, (errors, samples, limit) in enumerate(counts_of(pairs)):
        low, high = interval(errors, samples)
        row = {"rate": errors / samples if samples else nan, "low": low, "high": high}
        row |= {"evidence": evidence(errors, samples, limit), "is_alarm": raised[place]}
        values |= {f"{name} {place}": value for name, value in row.items()}
    evidences = [values[f"evidence {place}"] for place in range(len(AT_MOST))]
    return {**values, "total 0": sum(evidences) / len(evidences)}


WATCHING = RiskMonitor(CONCERN, LIMITS)


def weights_of(preds: Tensor, target: Tensor) -> Tensor:
    """Return what an update computes of a batch."""
    values, _ = WATCHING.batch_values(preds, target)
    return values.weight.flatten()


MONITORS = {
    "RiskMonitor": MetricCase(
        make=lambda **settings: RiskMonitor(CONCERN, LIMITS, **settings),
        higher_is_better=None,
        make_other=lambda: RiskMonitor(ConcernSpec(CLASSES), LIMITS),
        agreeing_batch=CERTAIN,
        oracle=risk_oracle,
        given_core=weights_of,
        batches=HARD,
    ),
}
