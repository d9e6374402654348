"""Monitors: hardly ever a false alarm, early true ones, audits, references, groups and restarts."""

from itertools import pairwise
from math import log, sqrt
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mpcs_torch import ConcernSpec
from mpcs_torch.functional import anytime_evidence, clopper_pearson, labels_to_alarm
from mpcs_torch.functional.comparison.sequential import chernoff_interval
from mpcs_torch.learning import Limit
from mpcs_torch.monitoring import ChangeMonitor, DriftMonitor, RiskMonitor
from mpcs_torch.monitoring.alarm import Monitor, Values
from tests.refused import Refused

TWO = ConcernSpec(["good", "bad"])
COSTS = ConcernSpec(
    ["good", "bad", "worse"], weights=[[0, 1, 20], [1, 0, 5], [2, 1, 0]], refer=0.5
)
STREAMS, LENGTH = 100, 2000
MAX_FALSE_ALARMS = 0.05 + 2 * sqrt(0.05 * 0.95 / STREAMS)
"""The share of streams that may have a false alarm: 5 %, and two standard errors."""


def errors(rate: float, size: tuple[int, ...], seed: int = 0) -> Tensor:
    return (torch.rand(size, generator=torch.Generator().manual_seed(seed)) < rate).long()


def path_of(monitor: Monitor, values: Values) -> Tensor:
    """Return the evidence (N, K) after each of N samples."""
    return monitor.follow(values, torch.arange(values.loss.shape[1]))


def alarms_ever(monitor: RiskMonitor, losses: Tensor) -> bool:
    """Return whether errors (N,) of class 0 ever raise an alarm, looking after each."""
    values, _ = monitor.batch_values(losses, torch.zeros_like(losses))
    return bool((path_of(monitor, values).mean(dim=1) >= monitor.threshold).any())


def test_streams_at_the_limit_hardly_ever_raise_an_alarm_however_often_one_looks() -> None:
    streams = errors(0.01, (STREAMS, LENGTH))
    assert (
        sum(alarms_ever(RiskMonitor(TWO, Limit(0.01)), stream) for stream in streams)
        / STREAMS
        <= MAX_FALSE_ALARMS
    )


def test_limits_of_a_reference_keep_the_false_alarms_of_both() -> None:
    falls = 0
    for seed in range(STREAMS):
        reference = RiskMonitor(TWO, Limit(0.01))
        sample = errors(0.01, (1000,), seed)
        reference.update(sample, torch.zeros_like(sample))
        monitor = RiskMonitor(TWO, Limit(0.01), reference=reference)
        falls += alarms_ever(monitor, errors(0.01, (LENGTH,), 1000 + seed))
    assert falls / STREAMS <= MAX_FALSE_ALARMS


@pytest.mark.parametrize(("rate", "level"), [(0.04, 0.05), (0.1, 0.05), (0.04, 0.005)])
def test_the_planned_number_of_labels_is_the_median_delay(
    rate: float, level: float
) -> None:
    streams = errors(rate, (STREAMS, LENGTH), 1).cumsum(dim=1)
    evidence = anytime_evidence(
        streams, torch.arange(1, LENGTH + 1).expand_as(streams), limit=0.01
    )
    delays = torch.where(evidence >= 1 / level, 1, 0).argmax(dim=1) + 1
    planned = labels_to_alarm(rate, limit=0.01, level=level)
    below = (delays <= planned).double().mean().item()
    assert below == pytest.approx(0.5, abs=3 * sqrt(0.25 / STREAMS))
    divergence = rate * log(rate / 0.01) + (1 - rate) * log((1 - rate) / 0.99)
    assert planned <= 1.3 * log(1 / level) / divergence


def test_samples_that_err_together_count_as_one() -> None:
    """Five equal images of each patient; with equal weights they would raise an alarm in every third stream."""
    alarms, singles = 0, 0
    for seed in range(STREAMS):
        wrong = errors(0.01, (LENGTH // 5,), seed).repeat_interleave(5)
        alarms += alarms_ever(RiskMonitor(TWO, Limit(0.01), cluster_size=5), wrong)
        singles += alarms_ever(RiskMonitor(TWO, Limit(0.01)), wrong)
    assert alarms / STREAMS <= MAX_FALSE_ALARMS
    assert singles / STREAMS > 0.2
    one, five = RiskMonitor(TWO, Limit(0.01)), RiskMonitor(TWO, Limit(0.01), cluster_size=5)
    one.update(wrong[::5], torch.zeros_like(wrong[::5]))
    five.update(wrong, torch.zeros_like(wrong))
    assert five.compute().evidence == pytest.approx(one.compute().evidence.item(), rel=1e-4)


def test_one_image_of_each_patient_needs_its_chance() -> None:
    """Patients with more images are harder: their images are wrong more often than those of one image of each."""
    random, alarms = np.random.default_rng(0), {False: 0, True: 0}
    for _ in range(20):
        hard = random.beta(0.5, 1.5, 4000)
        sizes = (1 + 59 * hard).round()
        wrong = torch.from_numpy(random.random(4000) < 0.045 * hard).long()
        chance = torch.from_numpy(1 / sizes)
        assert (sizes * 0.045 * hard).sum() / sizes.sum() > 0.02
        for has_chance in (False, True):
            monitor = RiskMonitor(
                TWO, Limit(0.01), least_chance=1 / 60 if has_chance else 1.0
            )
            monitor.update(wrong, torch.zeros_like(wrong), chance if has_chance else None)
            alarms[has_chance] += int(monitor.compute().is_alarm)
    assert alarms[False] <= 4
    assert alarms[True] >= 10


def test_an_audit_of_a_tenth_sees_only_what_it_labelled() -> None:
    losses, audited = errors(0.05, (8000,)), errors(0.1, (8000,), 5)
    labelled = losses[audited == 1]
    all_of_them = RiskMonitor(TWO, Limit(0.01))
    all_of_them.update(labelled, torch.zeros_like(labelled))
    weighted = RiskMonitor(TWO, Limit(0.01), least_chance=0.1)
    weighted.update(labelled, torch.zeros_like(labelled), torch.full(labelled.shape, 0.1))
    assert weighted.compute().evidence == all_of_them.compute().evidence
    assert weighted.compute().is_alarm


def test_samples_that_are_always_labelled_are_weighted_down() -> None:
    """Half of the samples have 1 % of errors and are audited; the others have 9 %, and all are labelled."""
    sure, unsure = errors(0.01, (60_000,)), errors(0.09, (60_000,), 1)
    audited = sure[errors(0.1, (60_000,), 2) == 1]
    monitor = RiskMonitor(TWO, Limit(0.2), least_chance=0.1)
    decisions = torch.cat([audited, unsure])
    chance = torch.cat([torch.full(audited.shape, 0.1), torch.ones(len(unsure))])
    monitor.update(decisions, torch.zeros_like(decisions), chance)
    reading = monitor.compute()
    assert reading.rate.item() == pytest.approx(0.05, abs=0.004)
    assert reading.low < 0.05 < reading.high


def test_a_mean_cost_is_monitored_on_its_scale() -> None:
    monitor = RiskMonitor(COSTS, Limit(2.0, "cost", confidence=None))
    target = torch.zeros(1000, dtype=torch.int64)
    monitor.update(
        torch.where(torch.arange(1000) % 10 == 0, 2, -1), target
    )  # one in ten costs 20, the others refer
    reading = monitor.compute()
    assert reading.rate.item() == pytest.approx(2.0, rel=1e-6)


def test_groups_alarm_together_and_the_one_that_fails_is_named() -> None:
    names = [f"site {number}" for number in range(10)]
    monitor = RiskMonitor(TWO, Limit(0.01, by="site"), groups={"site": names})
    sites = [names[number % 10] for number in range(5000)]
    losses = errors(0.005, (5000,)) | (
        errors(0.1, (5000,), 3) * torch.tensor([site == "site 3" for site in sites])
    )
    monitor.update(losses, torch.zeros_like(losses), groups={"site": sites})
    reading = monitor.compute()
    assert [
        name
        for name, is_alarm in zip(monitor.names, reading.is_alarm.tolist(), strict=True)
        if is_alarm
    ] == ["dangerous errors of samples, site site 3"]
    assert reading.total >= monitor.threshold
    with Refused("one_of", "site", "site 77"):
        monitor.update(losses[:1], losses[:1], groups={"site": ["site 77"]})


def test_ten_groups_at_the_limit_hardly_ever_raise_an_alarm() -> None:
    falls = 0
    for seed in range(STREAMS):
        monitor = RiskMonitor(
            TWO, Limit(0.01, by="site"), groups={"site": [str(site) for site in range(10)]}
        )
        losses, sites = errors(0.01, (LENGTH,), seed), torch.arange(LENGTH) % 10
        values, _ = monitor.batch_values(
            losses, torch.zeros_like(losses), groups={"site": sites}
        )
        falls += bool((path_of(monitor, values).mean(dim=1) >= monitor.threshold).any())
    assert falls / STREAMS <= MAX_FALSE_ALARMS


def test_evidence_after_each_sample_is_that_of_the_samples_so_far() -> None:
    limits = [
        Limit(0.05),
        Limit(0.05, "any", of="bad"),
        Limit(0.1, "any", of="decided worse"),
    ]
    generator = torch.Generator().manual_seed(0)
    decisions = torch.randint(-1, 3, (60,), generator=generator)
    target = torch.randint(3, (60,), generator=generator)
    whole = RiskMonitor(COSTS, limits)
    path = path_of(whole, whole.batch_values(decisions, target)[0])
    for place in (0, 7, 31, 59):
        monitor = RiskMonitor(COSTS, limits)
        monitor.update(decisions[: place + 1], target[: place + 1])
        assert torch.equal(path[place], monitor.evidence_now())


@settings(max_examples=20)
@given(
    st.lists(st.integers(1, 299), unique=True, max_size=4),
    st.sampled_from([RiskMonitor, ChangeMonitor]),
)
def test_pieces_give_the_states_of_one_pass_to_the_last_bit(
    cuts: list[int], kind: Any
) -> None:
    limits = [Limit(2.0, "cost", confidence=None), Limit(0.05, of="bad")]
    generator = torch.Generator().manual_seed(1)
    decisions = torch.randint(-1, 3, (300,), generator=generator)
    target = torch.randint(3, (300,), generator=generator)
    chance = 0.1 + 0.9 * torch.rand(300, generator=generator)
    whole = kind(COSTS, limits, least_chance=0.1)
    pieces = kind(COSTS, limits, least_chance=0.1)
    whole.update(decisions, target, chance)
    for start, stop in pairwise([0, *sorted(cuts), 300]):
        pieces.update(decisions[start:stop], target[start:stop], chance[start:stop])
    for name, state in whole.metric_state.items():
        assert name == "batch_count" or torch.equal(state, pieces.metric_state[name])


def test_a_late_change_is_seen_soon_only_by_the_monitor_that_starts_again() -> None:
    before, after = errors(0.002, (40_000,)), errors(0.02, (1500,), 2)
    monitors = (
        RiskMonitor(TWO, Limit(0.005)),
        ChangeMonitor(TWO, Limit(0.005), run_length=400_000),
    )
    for monitor in monitors:
        for losses in (before, after):
            monitor.update(losses, torch.zeros_like(losses))
    assert [bool(monitor.compute().is_alarm) for monitor in monitors] == [False, True]


def test_false_alarms_of_restarts_are_at_least_the_run_length_apart() -> None:
    run_length, delays = 4000, []
    for seed in range(30):
        monitor = ChangeMonitor(TWO, Limit(0.02), run_length=run_length)
        losses = errors(0.02, (4 * run_length,), seed)
        path = path_of(
            monitor, monitor.batch_values(losses, torch.zeros_like(losses))[0]
        ).mean(dim=1)
        is_alarm = path >= monitor.threshold
        delays.append(int(is_alarm.int().argmax()) + 1 if is_alarm.any() else len(losses))
    assert sum(delays) / len(delays) >= run_length


def test_restarts_are_those_of_the_naive_sum_over_starts() -> None:
    losses = errors(0.05, (350,))
    monitor = ChangeMonitor(TWO, Limit(0.02), run_length=10_000)
    path = path_of(monitor, monitor.batch_values(losses, torch.zeros_like(losses))[0])[:, 0]
    for place in (0, 99, 100, 230, 349):
        starts = range(0, place + 1, 100)
        naive = [
            anytime_evidence(
                losses[start : place + 1].sum(), torch.tensor(place + 1 - start), limit=0.02
            )
            for start in starts
        ]
        assert path[place].item() == pytest.approx(sum(naive).item(), rel=1e-9)
    assert monitor.evidence_now().item() == pytest.approx(path[-1].item(), rel=1e-12)
    with Refused("never_merged", "a ChangeMonitor"):
        monitor.merge_state(monitor)


def test_shares_of_decisions_are_compared_with_a_reference_on_both_sides() -> None:
    falls = 0
    for seed in range(STREAMS):
        draws = torch.randint(-1, 2, (2500,), generator=torch.Generator().manual_seed(seed))
        validation = DriftMonitor(TWO)
        validation.update(draws[:500])
        deployed = DriftMonitor(TWO, reference=validation)
        path = path_of(deployed, deployed.batch_values(draws[500:])[0])
        falls += bool((path.mean(dim=1) >= deployed.threshold).any())
    assert falls / STREAMS <= MAX_FALSE_ALARMS
    deployed.reset()
    deployed.update(torch.full((400,), -1), torch.full((400,), 0.9))
    assert deployed.compute().is_alarm.tolist() == [True, True, True, False]


def test_coarse_answers_have_the_names_of_the_concern() -> None:
    lights = ConcernSpec(
        ["red", "yellow", "green"], answers={"red or yellow": 0.3}, refer=0.5
    )
    assert DriftMonitor(lights).names[2:5] == [
        "decided green",
        "decided red or yellow",
        "referred",
    ]


def test_arguments_that_break_their_rules_are_refused() -> None:
    other = RiskMonitor(TWO, Limit(0.01))
    other.update(torch.tensor([0]), torch.tensor([0]))
    wrong: list[tuple[Refused, dict[str, Any]]] = [
        (Refused("some_limits", "limits"), {"limits": []}),
        (Refused("some_limits", "limits"), {"limits": "any <= 0.1"}),
        (Refused("per_sample", "limits"), {"limits": Limit(0.1, per="cluster")}),
        (
            Refused("groups_of_column", "groups", name="site"),
            {"limits": Limit(0.1, by="site")},
        ),
        (
            Refused("open_between", "confidence", 1.0),
            {"limits": Limit(0.1), "confidence": 1.0},
        ),
        (
            Refused("above_at_most", "least_chance", 0.0),
            {"limits": Limit(0.1), "least_chance": 0.0},
        ),
        (
            Refused("same_arguments", "reference", type="RiskMonitor"),
            {"limits": Limit(0.1, "any"), "reference": DriftMonitor(TWO)},
        ),
        (
            Refused("same_arguments", "reference", type="RiskMonitor"),
            {"limits": Limit(0.1, of="bad"), "reference": other},
        ),
        (
            Refused("comparable_costs", "costs", highest=1e7),
            {"limits": Limit(0.1, "cost", confidence=None)},
        ),
        (
            Refused("below_highest_cost", "limits", 2.0, highest=1),
            {"limits": Limit(2.0, "cost", confidence=None)},
        ),
    ]
    for refusal, arguments in wrong:
        has_small_costs = refusal.code == "comparable_costs"
        concern = (
            ConcernSpec(["good", "bad"], weights=[[0, 1], [1e7, 0]])
            if has_small_costs
            else TWO
        )
        with refusal:
            RiskMonitor(concern, **arguments)
    with Refused("chance", "chance", 0.05, sample=1):
        RiskMonitor(TWO, Limit(0.1), least_chance=0.1).update(
            torch.tensor([0, 0]), torch.tensor([0, 0]), torch.tensor([0.1, 0.05])
        )
    with Refused("risk_or_unknown", "risk", 1.5, sample=0):
        DriftMonitor(TWO).update(torch.tensor([0]), torch.tensor([1.5]))
    with Refused("at_least", "run_length", minimum=100):
        ChangeMonitor(TWO, Limit(0.1), run_length=20)


def test_values_of_nothing_change_nothing() -> None:
    monitor = RiskMonitor(TWO, Limit(0.01))
    assert isinstance(
        monitor.batch_values(torch.empty(0).long(), torch.empty(0).long())[0], Values
    )
    monitor.update(torch.empty(0).long(), torch.empty(0).long())
    assert (monitor.compute().low, monitor.compute().high) == (0, 1)


def test_costs_of_a_reference_have_the_bound_of_bounded_values_even_where_their_sum_is_whole() -> (
    None
):
    limit = Limit(2.0, "cost", confidence=None)
    reference = RiskMonitor(COSTS, limit)
    reference.update(
        torch.tensor([2, 0, 2, 0]), torch.zeros(4, dtype=torch.int64)
    )  # costs of 20, 0, 20, 0
    bound = RiskMonitor(COSTS, limit, reference=reference).limits[1]
    assert bound.item() == pytest.approx(
        chernoff_interval(torch.tensor(2), torch.tensor(4), confidence=0.95).high.item()
    )
    errors_of_all = RiskMonitor(TWO, Limit(0.1))
    errors_of_all.update(torch.tensor([1, 0, 1, 0]), torch.zeros(4, dtype=torch.int64))
    exact = RiskMonitor(TWO, Limit(0.1), reference=errors_of_all).limits[1].item()
    assert exact == pytest.approx(clopper_pearson(2, 4)[1])
    assert exact < bound.item()


def test_only_a_limit_on_costs_watches_a_mean_cost_whatever_classes_are_called() -> None:
    named = ConcernSpec(["cost of ill", "healthy"], weights=[[0, 2], [1, 0]])
    pair = Limit(0.1, errors=(("cost of ill", "healthy"),))
    cost = Limit(1.0, errors="cost", confidence=None)
    shares = [mean.is_share for mean in RiskMonitor(named, [pair, cost]).shown_means()]
    assert shares == [True, False]
