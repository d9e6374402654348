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
from collections.abc import Callable, Iterator
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


def raises(
    monitor: RiskMonitor, decisions: Tensor, **more: Tensor | dict[str, Tensor]
) -> bool:
    """Return whether a monitor ever raises an alarm, looking after each label."""
    return first_alarm(monitor, decisions, **more) is not None


def at_the_limit(random: np.random.Generator) -> dict[str, bool]:
    """Draw one stream of each kind at its limit; return which raise an alarm, or leave the interval."""
    plain = errors(random, RATE)
    costly = torch.from_numpy(random.choice(3, LABELS, p=[0.955, 0.04, 0.005]))
    mean_cost = 0.04 * 1 + 0.005 * 10
    groups = {"site": [str(site) for site in range(10)]}
    sites = torch.from_numpy(random.integers(0, 10, LABELS))
    audited = plain[torch.from_numpy(random.random(LABELS) < 0.1)]
    chance = torch.full(audited.shape, 0.1)
    learned = reference_of(errors(random, RATE, REFERENCE))
    counts, samples = plain.cumsum(0)[::10], torch.arange(1, LABELS + 1)[::10]
    low, high = anytime_interval(counts, samples)
    cost = RiskMonitor(COSTS, Limit(mean_cost, "cost", confidence=None))
    values, _ = cost.batch_values(costly, torch.zeros_like(costly))
    of_costs = anytime_interval(values.loss[0].cumsum(0)[::10], samples)
    share = mean_cost / 10  # losses of a monitor are shares of the highest cost
    alike = errors(random, RATE, LABELS // 5).repeat_interleave(5)
    by_site = RiskMonitor(TWO, Limit(RATE, by="site"), groups=groups)
    of_audit = RiskMonitor(TWO, Limit(RATE), least_chance=0.1)
    of_reference = RiskMonitor(TWO, Limit(RATE), reference=learned)
    restarting = ChangeMonitor(TWO, Limit(RATE), run_length=RUN_LENGTH)
    return {
        "rate": raises(RiskMonitor(TWO, Limit(RATE)), plain),
        "mean cost": raises(cost, costly),
        "ten groups": raises(by_site, plain, groups={"site": sites}),
        "audit of 10 %": raises(of_audit, audited, chance=chance),
        "against a reference": raises(of_reference, plain),
        "five equal images of each patient": raises(RiskMonitor(TWO, Limit(RATE)), alike),
        "restarts": raises(restarting, plain),
        "interval of the rate misses": bool(((low > RATE) | (high < RATE)).any()),
        "interval of the cost misses": bool(
            ((of_costs.low > share) | (of_costs.high < share)).any()
        ),
    }


def patients(
    random: np.random.Generator, rate: float
) -> tuple[Tensor, np.ndarray, np.ndarray]:
    """Draw 6000 patients with 1 to 60 images, more where they are harder: one error or not, images, and error rates."""
    hard = random.beta(0.5, 1.5, 6000)
    rates = rate * 4 * hard  # the mean of this beta distribution is 1/4
    is_wrong = torch.from_numpy((random.random(6000) < rates).astype(np.int64))
    return is_wrong, (1 + 59 * hard).round(), rates


def days(random: np.random.Generator, correlation: float) -> Tensor:
    """Draw the errors of 200 days with 100 images each, at a rate of 5 %."""
    spread = (1 - correlation) / correlation
    rates = random.beta(0.05 * spread, 0.95 * spread, 200).repeat(100)
    return torch.from_numpy((random.random(20_000) < rates).astype(np.int64))


def audit_of(
    wrong: Tensor, labelled: np.ndarray, chance: float, risk: np.ndarray, **more: np.ndarray
) -> str:
    """Return whether an audit holds the mean, or is refused."""
    known = wrong.double().where(torch.from_numpy(labelled), torch.nan)
    chances = torch.full(wrong.shape, chance)
    try:
        _, low, high = audited_mean(known, torch.from_numpy(risk), chances, **more)  # type: ignore[arg-type]
    except ValueError:
        return "refused"
    return "holds" if low <= wrong.double().mean() <= high else "misses"


def exceeds(stream: Tensor, limit: float, **more: float) -> bool:
    """Return whether a monitor with further settings raises an alarm."""
    return raises(RiskMonitor(TWO, Limit(limit), **more), stream)  # type: ignore[arg-type]


def of_patients(random: np.random.Generator) -> Iterator[tuple[str, bool]]:
    """Monitor images of patients who have more of them where they are harder."""
    for name, rate in (("2.1 %", 0.0108), ("1 %", 0.0051)):
        wrong, sizes, rates = patients(random, rate)
        of_images = random.random(int(sizes.sum())) < rates.repeat(sizes.astype(int))
        design = f"{name} of the images of patients, one of each"
        yield design, exceeds(wrong, 0.01)
        by_chance = RiskMonitor(TWO, Limit(0.01), least_chance=1 / 60)
        chance = torch.from_numpy(1 / sizes)
        yield f"{design}, chance=1 / size", raises(by_chance, wrong, chance=chance)
        yield (
            f"{name} of the images of patients, all, cluster_size=60",
            exceeds(torch.from_numpy(of_images.astype(np.int64)), 0.01, cluster_size=60),
        )


def of_turns(random: np.random.Generator) -> Iterator[tuple[str, bool]]:
    """Begin a new monitor 20 times, with the same confidence or with one for all of them."""
    for confidence in (0.95, 1 - 0.05 / 20):
        is_any = any(
            exceeds(errors(random, RATE), RATE, confidence=confidence) for _ in range(20)
        )
        yield f"20 states in turn, confidence={confidence:g}", is_any


def of_late_labels(random: np.random.Generator) -> Iterator[tuple[str, bool]]:
    """Monitor labels that come later than samples, those of errors sooner than others."""
    wrong = errors(random, 0.02, 4000)
    of_errors, of_others = random.exponential(100, 4000), random.exponential(500, 4000)
    arrival = np.arange(4000) + np.where(wrong.numpy() > 0, of_errors, of_others)
    order = arrival.argsort()
    come = order[arrival[order] < 4000]
    yield "labels as they come, those of errors sooner", exceeds(wrong[come], 0.02)
    yield "the same, in the order of samples after 3000", exceeds(wrong[:1000], 0.02)


def of_scanner(random: np.random.Generator) -> Iterator[tuple[str, bool]]:
    """Monitor days of a scanner, whose images err together a little."""
    wrong = days(random, 0.01)
    for size in (1, 2, 100):
        yield (
            f"days of a scanner, correlation 0.01, cluster_size={size}",
            exceeds(wrong, 0.05, cluster_size=size),
        )


def of_audits(random: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Audit whole days, and samples of which complaints are labelled, too."""
    wrong = days(random, 0.05)
    labelled = (random.random(200) < 0.2).repeat(100)
    flat, of_days = np.full(20_000, 0.05), np.arange(200).repeat(100)
    yield "audit of whole days", audit_of(wrong, labelled, 0.2, flat)
    yield (
        "audit of whole days, clusters=day",
        audit_of(wrong, labelled, 0.2, flat, clusters=of_days),
    )
    risk = random.beta(0.3, 5, 10_000)
    wrong = torch.from_numpy((random.random(10_000) < risk).astype(np.int64))
    audited = random.random(10_000) < 0.1
    complaints = (wrong.numpy() > 0) & (random.random(10_000) < 0.3)
    yield "audit", audit_of(wrong, audited, 0.1, risk)
    yield (
        "audit with complaints of 30 % of the errors",
        audit_of(wrong, audited | complaints, 0.1, risk),
    )


def advice(random: np.random.Generator) -> dict[str, bool | str]:
    """Draw what breaks the assumptions of monitors and audits; return alarms, and what audits say."""
    return {
        **dict(of_patients(random)),
        **dict(of_turns(random)),
        **dict(of_late_labels(random)),
        **dict(of_scanner(random)),
        **dict(of_audits(random)),
    }


def shares(repetitions: list[dict[str, bool | str]]) -> Table:
    """Return for each design the share of repetitions with an alarm, or what audits do."""
    rows = []
    for name in repetitions[0]:
        values = [repetition[name] for repetition in repetitions]
        words = ("holds", "refused") if isinstance(values[0], str) else ()
        parts = [
            f"{word} {values.count(word) / len(values):.1%}"
            for word in words
            if word in values
        ]
        if not words:
            parts = [f"alarms {values.count(True) / len(values):.1%}"]
        rows.append([name, ", ".join(parts)])
    return Table(["design", f"of {len(repetitions)} repetitions"], rows)


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
    theirs: dict[str, Callable[[Tensor], int | None]] = {}
    if find_spec("mapie"):
        theirs["MAPIE"] = lambda stream: mapie_alarm(reference, stream, 0.05)
        theirs["MAPIE, tolerance 0"] = lambda stream: mapie_alarm(reference, stream, 0.0)
    rows = []
    for rate in CHANGED:
        for is_late in (False, True):
            by_name: dict[str, list[int | None]] = {
                name: [] for name in (*monitors, *theirs)
            }
            for number in range(streams):
                change = int(random.integers(0, LABELS // 2)) if is_late else 0
                stream = torch.cat([errors(random, RATE, change), errors(random, rate)])
                watching = monitors | theirs if number < OF_MAPIE else monitors
                for name, alarm_of in watching.items():
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
        *theirs,
    ]
    return Table(header, rows)


def speed(folder: Path) -> Table:
    """Return the time and the memory of `mpcs monitor` over a million labels and over ten million: 22 rates."""
    random, rows = np.random.default_rng(0), []

    def texts(codes: np.ndarray, names: list[str]) -> pa.Array:
        numbers = pa.array(codes.astype(np.int8))
        return pa.DictionaryArray.from_arrays(numbers, pa.array(names)).dictionary_decode()

    DecisionRule(TWO, calibration=None).save(folder / "rule.pt")
    for millions in (1, 10):
        number = millions * 10**6
        is_wrong = random.random(number) < RATE
        sites = random.integers(0, 10, number)
        columns = {
            "decision": texts(is_wrong, ["good", "bad"]),
            "target": texts(np.zeros(number), ["good", "bad"]),
            "site": texts(sites, [str(site) for site in range(10)]),
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
            for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
                name, _, value = line.partition(":")
                if name == "VmHWM":  # "VmHWM:     1234 kB"
                    peak = max(peak, int(value.split()[0]) / 1024)
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
