"""Alarms stay until they are acknowledged, whenever one reads the monitor."""

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torchmetrics import MetricCollection

from mpcs_torch import ConcernSpec
from mpcs_torch.learning import Limit
from mpcs_torch.monitoring import ChangeMonitor, DriftMonitor, RiskMonitor
from mpcs_torch.monitoring.alarm import MAX_AT_ONCE, Monitor
from mpcs_torch.processes import World
from tests.processes.forked import forked_world, succeeded
from tests.refused import Refused

TWO = ConcernSpec(["good", "bad"])
SITES = {"site": ["north", "south", "east"]}
NORTH, SOUTH, EAST = [f"dangerous errors of samples, site {site}" for site in SITES["site"]]


def risk(**settings: Any) -> RiskMonitor:
    return RiskMonitor(TWO, Limit(0.02, by="site"), groups=SITES, **settings)


def change(run_length: float = 1000) -> ChangeMonitor:
    return ChangeMonitor(TWO, Limit(0.02, by="site"), groups=SITES, run_length=run_length)


def drift() -> DriftMonitor:
    validation = DriftMonitor(TWO)
    validation.update(torch.tensor([0, 0, 1]).repeat(200))
    return DriftMonitor(TWO, reference=validation)


class Stream:
    """Samples of three sites: from sample 150 to 250, those of the north are wrong too often."""

    def __init__(self, size: int = 500, *, seed: int = 0, worst: float = 0.4) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.sites = torch.randint(3, (size,), generator=generator)
        place = torch.arange(size)
        is_bad_time = (self.sites == 0) & (place > 150) & (place < 250)
        rate = torch.where(is_bad_time, worst, 0.005)
        self.wrong = (torch.rand(size, generator=generator) < rate).long()

    def add(self, monitor: Any, start: int = 0, stop: int | None = None) -> None:
        """Add the samples from ``start`` to ``stop``; for a `DriftMonitor`, errors are decisions that are rare."""
        rows, extra = slice(start, stop), dict[str, Any]()
        if isinstance(monitor, RiskMonitor):
            extra = {
                "target": torch.zeros_like(self.wrong[rows]),
                "groups": {"site": self.sites[rows]},
            }
        monitor.update(self.wrong[rows], **extra)

    def values(self, monitor: Any) -> Any:
        if isinstance(monitor, DriftMonitor):
            return monitor.batch_values(self.wrong)[0]
        return monitor.batch_values(
            self.wrong, torch.zeros_like(self.wrong), None, {"site": self.sites}
        )[0]


def read_every(monitor: Monitor, stream: Stream, step: int) -> list[list[bool]]:
    """Return the alarms at each reading."""
    readings = []
    for start in range(0, len(stream.wrong), step):
        stream.add(monitor, start, start + step)
        readings.append(monitor.compute().is_alarm.tolist())
    return readings


@pytest.mark.parametrize(
    "make",
    [risk, change, lambda: change(100), drift],
    ids=["risk", "change", "often", "drift"],
)
@pytest.mark.parametrize("seed", range(3))
def test_reading_every_row_every_ten_rows_or_once_gives_the_same_alarms(
    make: Any, seed: int
) -> None:
    stream, whole = Stream(seed=seed), make()
    evidence = whole.follow(stream.values(whole), torch.arange(len(stream.wrong)))
    is_beyond = whole.is_alarm(evidence)
    assert is_beyond.any()
    expected = is_beyond.cumsum(dim=0) > 0
    assert read_every(make(), stream, 1) == expected.tolist()
    assert read_every(make(), stream, 10) == expected[9::10].tolist()
    assert read_every(make(), stream, len(stream.wrong)) == [expected[-1].tolist()]


def test_the_start_of_a_test_may_raise_an_alarm_without_an_error() -> None:
    right = torch.zeros(600, dtype=torch.int64)
    monitor = ChangeMonitor(TWO, Limit(1e-4), run_length=100)
    path = monitor.follow(monitor.batch_values(right, right)[0], torch.arange(600))[:, 0]
    first = int((path >= monitor.threshold).int().argmax())
    assert first % 100 == 0, "the first sample of a test"
    once = ChangeMonitor(TWO, Limit(1e-4), run_length=100)
    assert once.add_values(once.batch_values(right, right)[0]).tolist() == [first]


@pytest.mark.parametrize("make", [risk, change])
def test_an_alarm_stays_when_its_evidence_is_gone(make: Any) -> None:
    monitor, stream = make(), Stream(6000)
    stream.add(monitor)
    assert not monitor.is_alarm(monitor.evidence_now()).any()
    assert monitor.compute().is_alarm.tolist() == [True, False, False]
    assert monitor.names[0] == NORTH


@pytest.mark.parametrize("make", [risk, change, drift])
def test_the_first_sample_of_an_alarm_is_found_in_large_batches(make: Any) -> None:
    stream, monitor, whole = Stream(2 * MAX_AT_ONCE + 100), make(), make()
    whole.add_values(stream.values(whole))
    values = stream.values(monitor)
    is_beyond = monitor.is_alarm(monitor.follow(values, torch.arange(len(stream.wrong))))
    first = torch.where(is_beyond.any(dim=0), is_beyond.int().argmax(dim=0), -1)
    assert make().add_values(values).tolist() == first.tolist()
    assert (first > 0).any()
    assert whole.add_values(values).tolist()[0] == -1, "an alarm that stays is not new"


@pytest.mark.parametrize("make", [risk, change, drift])
def test_an_accelerator_raises_the_same_alarms(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, monitor, other = Stream(), make(), make()
    first = monitor.add_values(stream.values(monitor))
    monkeypatch.setattr(Tensor, "is_cpu", False)  # as on any device except the CPU
    assert other.add_values(stream.values(other)).tolist() == first.tolist()


@pytest.mark.parametrize("make", [risk, change])
def test_a_test_begins_again_after_its_alarm_is_acknowledged(make: Any) -> None:
    monitor, stream, fresh = make(), Stream(2000), make()
    stream.add(monitor, 0, 400)
    before = monitor.evidence_now()
    assert monitor.compute().is_alarm.tolist() == [True, False, False]
    monitor.acknowledge()
    assert monitor.compute().is_alarm.tolist() == [False, False, False]
    assert monitor.compute().evidence.tolist() == pytest.approx(
        [1, *before[1:].tolist()]
    ), "other tests go on"
    assert monitor.compute().rate[0] == monitor.loss[0] / monitor.samples[0], (
        "the rate is that of all samples"
    )
    stream.add(monitor, 400)
    stream.add(fresh, 400)
    assert monitor.evidence_now()[0] == fresh.evidence_now()[0]
    again = Stream(250, worst=1.0)
    for each in (monitor, fresh):
        again.add(each)
    assert (
        monitor.compute().is_alarm.tolist()
        == fresh.compute().is_alarm.tolist()
        == [True, False, False]
    )


def test_alarms_are_acknowledged_by_name() -> None:
    monitor = risk()
    wrong = torch.ones(60, dtype=torch.int64)
    monitor.update(wrong, torch.zeros_like(wrong), groups={"site": torch.arange(60) % 2})
    assert monitor.compute().is_alarm.tolist() == [True, True, False]
    evidence = monitor.compute().evidence.tolist()
    monitor.acknowledge(SOUTH, EAST)
    assert monitor.compute().is_alarm.tolist() == [True, False, False]
    assert monitor.compute().evidence.tolist() == [evidence[0], 1, evidence[2]]
    with Refused("monitored", "names"):
        monitor.acknowledge(NORTH, NORTH.replace("north", "nort"))
    assert monitor.compute().is_alarm.tolist() == [True, False, False]


def test_alarms_are_in_the_state() -> None:
    monitor, again = risk(), Stream(250, worst=1.0)
    Stream().add(monitor)
    monitor.acknowledge()
    again.add(monitor)
    monitor.persistent(True)
    loaded = risk()
    loaded.load_state_dict(monitor.state_dict())
    for other in (loaded, pickle.loads(pickle.dumps(monitor)), monitor.clone()):
        assert other.compute().is_alarm.tolist() == [True, False, False]
        assert other.evidence_now().tolist() == monitor.evidence_now().tolist()
    monitor.reset()
    again.add(monitor, 0, 1)
    assert not monitor.compute().is_alarm.any()


def test_merged_monitors_have_the_alarms_of_all_parts_and_of_the_sums() -> None:
    one, other, quiet = risk(), risk(), risk()
    Stream(6000).add(one)
    Stream(6000, seed=7, worst=0.0).add(quiet)
    wrong = torch.ones(2, dtype=torch.int64)
    for monitor in (other, quiet):
        monitor.update(
            wrong[:1], torch.zeros_like(wrong[:1]), groups={"site": torch.tensor([1])}
        )
    quiet.merge_state(one)
    assert quiet.compute().is_alarm.tolist() == [True, False, False]
    assert not other.compute().is_alarm.any()
    pair = risk()
    pair.update(wrong[:1], torch.zeros_like(wrong[:1]), groups={"site": torch.tensor([1])})
    pair.merge_state(other)
    assert pair.compute().is_alarm.tolist() == [False, True, False]
    pair.acknowledge()
    assert not pair.compute().is_alarm.any()


def _acknowledge_together(world: World) -> None:
    monitor, wrong = risk(), torch.ones(1, dtype=torch.int64)
    monitor.update(wrong, torch.zeros_like(wrong), groups={"site": wrong})
    assert monitor.raised.tolist() == [0, 0, 0], "an error in each process is too few"
    assert monitor.compute().is_alarm.tolist() == [False, True, False], "two are enough"
    monitor.acknowledge()
    assert monitor.compute().is_alarm.tolist() == [False, False, False]


def test_processes_raise_and_acknowledge_alarms_together(tmp_path: Path) -> None:
    assert succeeded(forked_world(tmp_path, 2, _acknowledge_together))


@pytest.mark.parametrize("make", [risk, change])
def test_forward_goes_on_with_the_evidence_of_earlier_batches(make: Any) -> None:
    by_update, by_forward, alone, stream = make(), make(), make(), Stream()
    for start in range(0, 500, 50):
        rows = slice(start, start + 50)
        target = torch.zeros_like(stream.wrong[rows])
        by_update.update(stream.wrong[rows], target, groups={"site": stream.sites[rows]})
        value = by_forward(stream.wrong[rows], target, groups={"site": stream.sites[rows]})
        alone.reset()
        alone.update(stream.wrong[rows], target, groups={"site": stream.sites[rows]})
        assert value.evidence.tolist() == alone.compute().evidence.tolist()
    assert by_forward.update_count == 10
    assert (
        by_forward.compute().is_alarm.tolist()
        == by_update.compute().is_alarm.tolist()
        == [True, False, False]
    )
    for name, state in by_update.metric_state.items():
        assert torch.equal(by_forward.metric_state[name], state)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (risk(), risk(confidence=0.9999999)),
        (risk(), RiskMonitor(TWO, Limit(0.9, by="site"), groups=SITES)),
        (change(), change(10**9)),
    ],
    ids=["confidence", "limit", "run length"],
)
def test_monitors_with_other_rules_of_alarms_share_no_state(one: Any, other: Any) -> None:
    collection = MetricCollection({"one": one, "other": other})
    wrong = torch.zeros(20, dtype=torch.int64)
    collection.update(wrong, wrong, groups={"site": wrong})
    wrong = (torch.arange(60) % 10 == 0).long()
    collection.update(
        wrong, torch.zeros_like(wrong), groups={"site": torch.zeros_like(wrong)}
    )
    collection.update(
        wrong, torch.zeros_like(wrong), groups={"site": torch.zeros_like(wrong)}
    )
    assert [
        bool(monitor.raised[0]) for monitor in (collection["one"], collection["other"])
    ] == [True, False]
    if isinstance(one, ChangeMonitor):
        return
    with Refused("other_settings", "the state", type="RiskMonitor"):
        one.merge_state(other)
