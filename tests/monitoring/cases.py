"""The cases of the monitors for the laws."""

from math import log, nan

from scipy.optimize import brentq
from scipy.special import betaln, xlogy

from mpcs_torch import ConcernSpec
from mpcs_torch.learning import Limit
from mpcs_torch.monitoring import RiskMonitor
from tests.metrics.batches import CERTAIN, CLASSES, HARD
from tests.metrics.case import Batch, MetricCase

CONCERN = ConcernSpec(CLASSES, releases=[[0, 1], [2, 3, 1]], factor=0.25)
NAMES = [str(name) for name in CONCERN.classes]
LIMITS = [Limit(0.1), Limit(0.2, "any", of=NAMES[1]), Limit(0.3, "any", of=f"decided {NAMES[2]}")]
RELEASED = {(0, 1), (2, 3), (2, 1)}


def evidence(errors: float, samples: float, limit: float) -> float:
    """Mix the likelihood ratios of 25 rates against the limit."""
    ratios = []
    for number in range(25):
        odds = 1.2 * (40 / 1.2) ** (number / 24) * limit / (1 - limit)
        rate = odds / (1 + odds)
        ratios.append((rate / limit) ** errors * ((1 - rate) / (1 - limit)) ** (samples - errors))
    return sum(ratios) / 25


def interval(errors: float, samples: float) -> tuple[float, float]:
    """Return the rates that a mixture with the density Beta(1/2, 1/2) does not reject."""

    def excess(rate: float) -> float:
        mixed = betaln(errors + 0.5, samples - errors + 0.5) - betaln(0.5, 0.5)
        return float(mixed - xlogy(errors, rate) - xlogy(samples - errors, 1 - rate) + log(0.05))

    if not samples:
        return 0.0, 1.0
    mean = errors / samples
    low = brentq(excess, 1e-300, mean, xtol=1e-16) if errors else 0.0
    return low, brentq(excess, mean, 1 - 1e-16, xtol=1e-16) if errors < samples else 1.0


def reading(counts: list[tuple[int, int, float]]) -> dict[str, float]:
    """Return all values of errors among samples, with limits."""
    rows = []
    for errors, samples, limit in counts:
        against = evidence(errors, samples, limit)
        rows.append((errors / samples if samples else nan, *interval(errors, samples), against))
    strongest = sorted((row[3] for row in rows), reverse=True)
    passed = [e for rank, e in enumerate(strongest, 1) if e >= len(rows) / (rank * 0.05)]
    values = {
        f"{name} {place}": row[column]
        for column, name in enumerate(("rate", "low", "high", "evidence"))
        for place, row in enumerate(rows)
    }
    alarms = {f"is_alarm {place}": bool(passed) and row[3] >= min(passed) for place, row in enumerate(rows)}
    return {**values, **alarms, "total 0": sum(strongest) / len(rows)}


def risk_oracle(batch: Batch) -> dict[str, float]:
    preds, target = batch
    pairs = list(zip(target.tolist(), preds.argmax(dim=1).tolist(), strict=True))
    dangerous = [true != guess and (true, guess) not in RELEASED for true, guess in pairs]
    of_1 = [guess != 1 for true, guess in pairs if true == 1]
    as_2 = [true != 2 for true, guess in pairs if guess == 2]
    counts = [(sum(errors), len(errors)) for errors in (dangerous, of_1, as_2)]
    return reading([(*count, limit) for count, limit in zip(counts, (0.1, 0.2, 0.3), strict=True)])


WATCHING = RiskMonitor(CONCERN, LIMITS)

MONITORS = {
    "RiskMonitor": MetricCase(
        make=lambda **settings: RiskMonitor(CONCERN, LIMITS, **settings),
        higher_is_better=None,
        make_other=lambda: RiskMonitor(ConcernSpec(CLASSES), LIMITS),
        agreeing_batch=CERTAIN,
        oracle=risk_oracle,
        core=lambda preds, target: WATCHING.batch_values(preds, target)[0].weight.flatten(),
        fed=HARD,
    ),
}
