"""Trials that several processes hold: each only its share, with the values of one process."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch

from mpcs_torch.functional import OperatingPoint
from mpcs_torch.functional.detection import bootstrap
from mpcs_torch.functional.detection.bootstrap import TrialDraws, interval_of_resamples
from mpcs_torch.functional.detection.errors import count_errors
from mpcs_torch.processes.world import World
from mpcs_torch.scoring import Trials, score_detection, shares
from mpcs_torch.scoring.shares import SAMPLE, errors_of_all, exchange_ranges, thresholds_that_matter
from tests.processes.forked import forked_world, succeeded

POINTS = [OperatingPoint(0.5), OperatingPoint(0.1, c_miss=3.0), OperatingPoint(0.001)]


def drawn(seed: int) -> Trials:
    """Draw few or many trials, with and without ties, some of them infinite."""
    generator = torch.Generator().manual_seed(seed)
    size = (3, 40, 1500, 3000)[seed % 4]
    labels = torch.arange(size) % (2 + seed % 3) == 1
    scores = torch.randn(size, generator=generator, dtype=torch.float64) + labels * (seed % 5 - 1)
    if seed % 3 == 1:
        scores = (scores * (1 + seed % 7)).round()
    if seed % 5 == 0:
        scores[scores.abs() > 1] *= torch.inf
    return Trials(scores, labels)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.filterwarnings("ignore::mpcs_torch.functional.ReversedScoresWarning")
def test_several_processes_find_the_values_of_one(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "visible_points", lambda x, y: torch.tensor([0]))  # they are many of a small set
    monkeypatch.setattr(shares, "BLOCK", 301)

    def compare(world: World) -> None:
        for seed in range(32 // size):
            trials = drawn(seed)
            own = Trials(*(field[world.rank :: size] for field in trials))
            settings = {"points": POINTS, "is_llr": True, "resamples": 2}
            alone = score_detection(trials, **settings).named()  # type: ignore[arg-type]
            named = score_detection(own, **settings, world=world).named()  # type: ignore[arg-type]
            rounded = [name for name in named if name.startswith(("Cllr", "calibration"))]
            assert {name: named.pop(name) for name in rounded} == pytest.approx(
                {name: alone.pop(name) for name in rounded}, rel=1e-12, abs=1e-15, nan_ok=True
            )
            assert named == alone, seed

    assert succeeded(forked_world(tmp_path, size, compare))


@pytest.mark.parametrize("size", [2, 3])
def test_every_process_holds_a_range_of_scores_no_larger_than_its_share(size: int, tmp_path: Path) -> None:
    number = 30_000
    scores = torch.randn(number, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def check(world: World, all_scores: torch.Tensor, most: float) -> None:
        labels = all_scores > 0
        first = number // 3  # the processes have read unequal numbers
        read = slice(0, first) if world.is_first else slice(first + world.rank - 1, None, size - 1)
        own = exchange_ranges(Trials(all_scores[read], labels[read]), world)
        assert len(own.scores) <= most
        assert torch.equal(own.labels, own.scores > 0)
        told = world.told_by_all(own.scores)
        assert torch.equal(torch.cat(told).sort().values, all_scores.sort().values)
        held = [part for part in told if len(part)]
        assert all(low.max() < high.min() for low, high in pairwise(held))

    def check_all(world: World) -> None:
        check(world, scores, number / size + number / SAMPLE + 1)
        check(world, scores.round(), number)
        check(world, torch.zeros(number, dtype=torch.float64), number)

    assert succeeded(forked_world(tmp_path, size, check_all))


def test_few_points_of_a_curve_are_told(tmp_path: Path) -> None:
    number = 200_000
    labels = torch.arange(number) % 3 == 0
    scores = torch.randn(number, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + labels

    def check(world: World) -> None:
        own = count_errors(*exchange_ranges(Trials(scores[world.rank :: 2], labels[world.rank :: 2]), world))
        lookup = torch.linspace(-9, 9, 400, dtype=torch.float64)
        counts, _ = errors_of_all(own, world, lambda curve: thresholds_that_matter(curve, POINTS, lookup))
        assert len(counts.thresholds) < 20_000

    assert succeeded(forked_world(tmp_path, 2, check))


def test_the_thresholds_at_the_ends_of_every_range_are_told(tmp_path: Path) -> None:
    def check(world: World) -> None:
        scores = torch.arange(4, dtype=torch.float64) + 4 * world.rank
        own = count_errors(scores, scores % 2 == 0)
        counts, area = errors_of_all(own, world, lambda curve: torch.tensor([0]))
        assert counts.thresholds.tolist() == [0, 3, 4, 7, torch.inf]
        assert counts.misses.tolist() == [0, 2, 2, 4, 4]
        assert counts.false_alarms.tolist() == [4, 3, 2, 1, 0]
        assert area == 6 / 16

    assert succeeded(forked_world(tmp_path, 2, check))


def test_draws_in_blocks_are_those_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "BLOCK", 7)

    def draws(*places: tuple[range, int]) -> list[torch.Tensor]:
        held: list[TrialDraws] = []

        def keep(resample: TrialDraws) -> torch.Tensor:
            held.append(resample)
            return torch.zeros(1)

        interval_of_resamples(keep, places, torch.device("cpu"), resamples=3, confidence=0.9)
        return [torch.cat(counts) for counts in zip(*held, strict=True)]

    whole = draws((range(40), 40), (range(55), 55))
    parts = [
        draws((targets, 40), (nontargets, 55))
        for targets, nontargets in (
            (range(11), range(30)),
            (range(11, 11), range(30, 55)),
            (range(11, 40), range(55, 55)),
        )
    ]
    for kind, size in ((0, 40), (1, 55)):
        joined = torch.cat([part[kind].view(3, -1) for part in parts], dim=1)
        assert torch.equal(joined, whole[kind].view(3, size))
        assert joined.sum(dim=1).tolist() == [size] * 3
