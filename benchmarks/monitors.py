"""Count false alarms of monitors, and the labels that they need to see a change, beside MAPIE's monitor.

Run: python -m benchmarks.monitors [STREAMS]

Where MAPIE is installed (pip install mapie), its `RiskMonitoring` sees the same labels and the same reference of 50
dangerous errors in 10 000. All monitors have a confidence of 0.95 and look after each label of 20 000.
"""

import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from math import log
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from scipy.stats import binom
from torch import Tensor

from mpcs_torch import ConcernSpec
from mpcs_torch.functional import anytime_interval, audited_mean, labels_to_alarm
from mpcs_torch.learning import DecisionRule, Limit
from mpcs_torch.monitoring import ChangeMonitor, RiskMonitor
from mpcs_torch.tables import Table

LABELS, RATE = 20_000, 0.005
REFERENCE, ITS_ERRORS = 10_000, 50
TWO = ConcernSpec(["good", "bad"])
COSTS = ConcernSpec(["none", "cheap", "dear"], weights=[[0, 1, 10], [1, 0, 1], [10, 1, 0]])
CHANGED = (0.01, 0.02, 0.05)
RUN_LENGTH = 400_000
"""Of restarts: 5 % of streams of `LABELS` raise an alarm."""
OF_MAPIE = 15
"""Streams that MAPIE's monitor sees, which takes seconds for each."""


def errors(random: np.random.Generator, rate: float, number: int = LABELS) -> Tensor:
    return torch.from_numpy((random.random(number) < rate).astype(np.int64))


def first_alarm(
    monitor: RiskMonitor, decisions: Tensor, **more: Tensor | dict[str, Tensor]
) -> int | None:
    """Return the number of labels to the first alarm, or None."""
    values, _ = monitor.batch_values(decisions, torch.zeros_like(decisions), **more)  # type: ignore[arg-type]
    looks = (values.loss > 0).any(dim=0).nonzero()[:, 0]  # evidence rises only there
    is_alarm = monitor.follow(values, looks).mean(dim=1) >= monitor.threshold
    return int(looks[is_alarm.int().argmax()]) + 1 if is_alarm.any() else None


def reference_of(sample: Tensor) -> RiskMonitor:
    monitor = RiskMonitor(TWO, Limit(RATE))
    monitor.update(sample, torch.zeros_like(sample))
    return monitor


def at_the_limit(random: np.random.Generator) -> dict[str, bool]:
    """Draw one stream of each kind at its limit; return which raise an alarm, or leave the interval."""
    plain = errors(random, RATE)
    costly = torch.from_numpy(
        random.choice(3, LABELS, p=[0.955, 0.04, 0.005])
    )  # a mean cost of 0.09
    groups = {"site": [str(site) for site in range(10)]}
    sites = torch.from_numpy(random.integers(0, 10, LABELS))
    audited = plain[torch.from_numpy(random.random(LABELS) < 0.1)]
    chance = torch.full(audited.shape, 0.1)
    learned = reference_of(errors(random, RATE, REFERENCE))
    counts, samples = plain.cumsum(0)[::10], torch.arange(1, LABELS + 1)[::10]
    low, high = anytime_interval(counts, samples)
    cost = RiskMonitor(COSTS, Limit(0.09, "cost", confidence=None))
    values, _ = cost.batch_values(costly, torch.zeros_like(costly))
    of_costs = anytime_interval(values.loss[0].cumsum(0)[::10], samples)
    alike = errors(random, RATE, LABELS // 5).repeat_interleave(5)
    return {
        "rate": first_alarm(RiskMonitor(TWO, Limit(RATE)), plain) is not None,
        "mean cost": first_alarm(cost, costly) is not None,
        "ten groups": first_alarm(
            RiskMonitor(TWO, Limit(RATE, by="site"), groups=groups),
            plain,
            groups={"site": sites},
        )
        is not None,
        "audit of 10 %": first_alarm(
            RiskMonitor(TWO, Limit(RATE), least_chance=0.1), audited, chance=chance
        )
        is not None,
        "against a reference": first_alarm(
            RiskMonitor(TWO, Limit(RATE), reference=learned), plain
        )
        is not None,
        "five equal images of each patient": first_alarm(
            RiskMonitor(TWO, Limit(RATE)), alike
        )
        is not None,
        "restarts": first_alarm(
            ChangeMonitor(TWO, Limit(RATE), run_length=RUN_LENGTH), plain
        )
        is not None,
        "interval of the rate misses": bool(((low > RATE) | (high < RATE)).any()),
        "interval of the cost misses": bool(
            ((of_costs.low > 0.009) | (of_costs.high < 0.009)).any()
        ),
    }


def patients(
    random: np.random.Generator, rate: float
) -> tuple[Tensor, np.ndarray, np.ndarray]:
    """Draw 6000 patients with 1 to 60 images, more where they are harder: one error or not, images, and error rates."""
    hard = random.beta(0.5, 1.5, 6000)
    rates = rate * 4 * hard
    return (
        torch.from_numpy((random.random(6000) < rates).astype(np.int64)),
        (1 + 59 * hard).round(),
        rates,
    )


def days(random: np.random.Generator, correlation: float) -> Tensor:
    """Draw the errors of 200 days with 100 images each, at a rate of 5 %."""
    spread = (1 - correlation) / correlation
    rates = random.beta(0.05 * spread, 0.95 * spread, 200).repeat(100)
    return torch.from_numpy((random.random(20_000) < rates).astype(np.int64))


def audit_of(
    wrong: Tensor, labelled: np.ndarray, chance: float, risk: np.ndarray, **more: np.ndarray
) -> str:
    """Return whether an audit holds the mean, or is refused."""
    given = (
        wrong.double().where(torch.from_numpy(labelled), torch.nan),
        torch.from_numpy(risk),
    )
    try:
        _, low, high = audited_mean(*given, torch.full(wrong.shape, chance), **more)  # type: ignore[arg-type]
    except ValueError:
        return "refused"
    return "holds" if low <= wrong.double().mean() <= high else "misses"


def advice(random: np.random.Generator) -> dict[str, str]:
    """Draw what breaks the assumptions of monitors and audits; return alarms, and what audits say."""

    def alarms(
        stream: Tensor, limit: float, chance: np.ndarray | None = None, **more: float
    ) -> str:
        given = {} if chance is None else {"chance": torch.from_numpy(chance)}
        return str(
            first_alarm(RiskMonitor(TWO, Limit(limit), **more), stream, **given) is not None
        )  # type: ignore[arg-type]

    found = dict[str, str]()
    for name, rate in (("2.1 %", 0.0108), ("1 %", 0.0051)):
        wrong, sizes, rates = patients(random, rate)
        every = torch.from_numpy(
            (random.random(int(sizes.sum())) < rates.repeat(sizes.astype(int))).astype(
                np.int64
            )
        )
        design = f"{name} of the images of patients, one of each"
        found[design] = alarms(wrong, 0.01)
        found[f"{design}, chance=1 / size"] = alarms(
            wrong, 0.01, 1 / sizes, least_chance=1 / 60
        )
        found[f"{name} of the images of patients, all, cluster_size=60"] = alarms(
            every, 0.01, cluster_size=60
        )
    for confidence in (0.95, 1 - 0.05 / 20):
        streams = (
            alarms(errors(random, RATE), RATE, confidence=confidence) for _ in range(20)
        )
        found[f"20 states in turn, confidence={confidence:g}"] = str("True" in streams)
    wrong = errors(random, 0.02, 4000)
    arrival = np.arange(4000) + np.where(
        wrong.numpy() > 0, random.exponential(100, 4000), random.exponential(500, 4000)
    )
    order = arrival.argsort()
    found["labels as they come, those of errors sooner"] = alarms(
        wrong[order[arrival[order] < 4000]], 0.02
    )
    found["the same, in the order of samples after 3000"] = alarms(wrong[:1000], 0.02)
    wrong, of_days = days(random, 0.01), np.arange(200).repeat(100)
    for size in (1, 2, 100):
        found[f"days of a scanner, correlation 0.01, cluster_size={size}"] = alarms(
            wrong, 0.05, cluster_size=size
        )
    wrong, labelled, flat = (
        days(random, 0.05),
        (random.random(200) < 0.2).repeat(100),
        np.full(20_000, 0.05),
    )
    found["audit of whole days"] = audit_of(wrong, labelled, 0.2, flat)
    found["audit of whole days, clusters=day"] = audit_of(
        wrong, labelled, 0.2, flat, clusters=of_days
    )
    risk = random.beta(0.3, 5, 10_000)
    wrong = torch.from_numpy((random.random(10_000) < risk).astype(np.int64))
    audited, complaints = (
        random.random(10_000) < 0.1,
        (wrong.numpy() > 0) & (random.random(10_000) < 0.3),
    )
    found["audit"] = audit_of(wrong, audited, 0.1, risk)
    found["audit with complaints of 30 % of the errors"] = audit_of(
        wrong, audited | complaints, 0.1, risk
    )
    return found


def shares(found: list[dict[str, str]]) -> Table:
    """Return for each design the share of repetitions with an alarm, or what audits do."""
    rows = []
    for name in found[0]:
        values = [each[name] for each in found]
        parts = [
            f"{word} {values.count(word) / len(values):.1%}"
            for word in ("holds", "refused")
            if word in values
        ]
        rows.append(
            [name, ", ".join(parts) or f"alarms {values.count('True') / len(values):.1%}"]
        )
    return Table(["design", f"of {len(found)} repetitions"], rows)


def fixed_size(rate: float) -> int:
    """Return the smallest sample in which an exact test of the limit at 5 % sees a rate with probability 1 / 2."""
    for size in range(1, 10**6):
        fewest = binom.isf(0.05, size, RATE) + 1
        if binom.sf(fewest - 1, size, rate) >= 0.5:
            return size
    raise AssertionError


def mapie_alarm(reference: Tensor, stream: Tensor, tolerance: float) -> int | None:
    """Return the number of labels to the first alarm of MAPIE's monitor, or None."""
    from mapie.exchangeability_testing import RiskMonitoring
    from mapie.risk_control import BinaryRisk

    wrong = BinaryRisk(
        lambda y_true, y_pred: y_true != y_pred,
        lambda y_true, _: np.ones_like(y_true, dtype=bool),
        False,
    )
    monitor = RiskMonitoring(wrong, tolerance=tolerance, warn=False)
    monitor.compute_threshold(np.zeros(len(reference)), reference.numpy())
    monitor.update(np.zeros(len(stream)), stream.numpy())
    above = monitor.online_risk_lower_bound_sequence_history > monitor.threshold
    return int(above.argmax()) + 1 if above.any() else None


def shown(delays: list[int | None]) -> str:
    """Return the median delay, and the share of alarms in brackets if some are missing."""
    seen = [delay for delay in delays if delay is not None]
    middle = median([LABELS * 10 if delay is None else delay for delay in delays])
    share = f" ({len(seen) / len(delays):.0%})" if len(seen) < len(delays) else ""
    return (f"{middle:.0f}" if middle < LABELS * 10 else "none") + share


def delays(streams: int) -> Table:
    """Return the median numbers of labels from a change to the alarm; alarms before the change are left out."""
    random = np.random.default_rng(1)
    reference = (torch.arange(REFERENCE) < ITS_ERRORS).long()
    learned = reference_of(reference)
    monitors: dict[str, Callable[[Tensor], int | None]] = {
        "limit 0.5 %": lambda stream: first_alarm(RiskMonitor(TWO, Limit(RATE)), stream),
        "restarts": lambda stream: first_alarm(
            ChangeMonitor(TWO, Limit(RATE), run_length=RUN_LENGTH), stream
        ),
        "reference": lambda stream: first_alarm(
            RiskMonitor(TWO, Limit(RATE), reference=learned), stream
        ),
        "reference, restarts": lambda stream: first_alarm(
            ChangeMonitor(TWO, Limit(RATE), run_length=RUN_LENGTH, reference=learned),
            stream,
        ),
    }
    if find_spec("mapie"):
        monitors["MAPIE"] = lambda stream: mapie_alarm(reference, stream, 0.05)
        monitors["MAPIE, tolerance 0"] = lambda stream: mapie_alarm(reference, stream, 0.0)
    rows = []
    for rate in CHANGED:
        for is_late in (False, True):
            by_name: dict[str, list[int | None]] = {name: [] for name in monitors}
            for number in range(streams):
                change = int(random.integers(0, LABELS // 2)) if is_late else 0
                stream = torch.cat([errors(random, RATE, change), errors(random, rate)])
                for name, alarm_of in monitors.items():
                    if name.startswith("MAPIE") and number >= OF_MAPIE:
                        continue
                    alarm = alarm_of(stream)
                    if alarm is None or alarm > change:
                        by_name[name].append(None if alarm is None else alarm - change)
            divergence = rate * log(rate / RATE) + (1 - rate) * log((1 - rate) / (1 - RATE))
            bounds = [
                f"{1.3 * log(20) / divergence:.0f}",
                str(labels_to_alarm(rate, limit=RATE)),
                str(fixed_size(rate)),
            ]
            rows.append(
                [
                    f"{rate:.0%}",
                    "unknown" if is_late else "first label",
                    *bounds,
                    *map(shown, by_name.values()),
                ]
            )
            print(rows[-1], flush=True)
    header = [
        "changes to",
        "from",
        "1.3 log(20) / KL",
        "planned",
        "best fixed size",
        *monitors,
    ]
    return Table(header, rows)


def speed(folder: Path) -> Table:
    """Return the time and the memory of `mpcs monitor` over a million labels and over ten million: 22 rates."""
    random, rows = np.random.default_rng(0), []
    DecisionRule(TWO, calibration=None).save(folder / "rule.pt")
    for millions in (1, 10):
        number = millions * 10**6
        decisions, sites = random.random(number) < RATE, random.integers(0, 10, number)
        names, of_sites = (
            pa.array(["good", "bad"]),
            pa.array([str(site) for site in range(10)]),
        )
        columns = {
            "decision": pa.DictionaryArray.from_arrays(
                pa.array(decisions.astype(np.int8)), names
            ).dictionary_decode(),
            "target": pa.DictionaryArray.from_arrays(
                pa.array(np.zeros(number, np.int8)), names
            ).dictionary_decode(),
            "site": pa.DictionaryArray.from_arrays(
                pa.array(sites.astype(np.int8)), of_sites
            ).dictionary_decode(),
        }
        path = folder / f"{millions}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=2**17)
        state = folder / f"{millions}.json"
        limits = (
            "--limit",
            "any <= 0.01 by site",
            "--limit",
            "any <= 0.01",
            "--run-length",
            "1000000",
        )
        command = [
            sys.executable,
            "-m",
            "mpcs_torch",
            "monitor",
            folder / "rule.pt",
            path,
            "--state",
            state,
            *limits,
        ]
        begun = time.perf_counter()
        peak = peak_memory(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        took = time.perf_counter() - begun
        size = state.stat().st_size / 1024
        rows.append(
            [f"{number:,}".replace(",", " "), f"{took:.0f}", f"{peak:.0f}", f"{size:.0f}"]
        )
    return Table(["labels", "seconds", "peak memory, MiB", "state, KiB"], rows)


def peak_memory(process: subprocess.Popen[bytes]) -> float:
    """Wait for a process, and return the most memory that it has had, in MiB."""
    peak = 0.0
    while process.poll() is None:
        with suppress(FileNotFoundError):
            status = Path(f"/proc/{process.pid}/status").read_text()
            peak = max(
                [
                    peak,
                    *(
                        int(line.split()[1]) / 1024
                        for line in status.splitlines()
                        if line[:5] == "VmHWM"
                    ),
                ]
            )
        time.sleep(0.1)
    assert process.returncode == 0
    return peak


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    streams = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    counts: dict[str, int] = {}
    random = np.random.default_rng(0)
    for _ in range(streams):
        for name, is_alarm in at_the_limit(random).items():
            counts[name] = counts.get(name, 0) + is_alarm
    rows = [[name, f"{count / streams:.3f}"] for name, count in counts.items()]
    print(
        Table(
            ["at the limit", f"share of {streams} streams with an alarm"], rows
        ).markdown(),
        flush=True,
    )
    print(shares([advice(random) for _ in range(min(streams, 200))]).markdown(), flush=True)
    print(delays(min(streams, 500)).markdown(), flush=True)
    with tempfile.TemporaryDirectory() as name:
        print(speed(Path(name)).markdown())
