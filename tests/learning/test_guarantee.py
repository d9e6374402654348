"""The benchmark of the guarantee on a few splits, and the chance that it compares with."""

from collections.abc import Iterator
from math import sqrt

import pytest
import torch

from mpcs_torch.learning import Limit
from tests.benchmarks import guarantee
from tests.benchmarks.held_out import HeldOut, digits
from tests.benchmarks.random_splits import (
    METHODS,
    Outcome,
    allowed_errors,
    on_the_population,
    on_the_rest,
    outcome_of,
    share_on_the_population,
    share_on_the_rest,
)

ONE_PERCENT = Limit(0.01, confidence=0.95)


@pytest.fixture(scope="module")
def pool() -> Iterator[HeldOut]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the tensors are tiny: threads would wait for each other
    yield digits()
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", METHODS)
def test_the_limit_is_exceeded_as_often_as_chance_says(pool: HeldOut, name: str) -> None:
    splits, method = 150, METHODS[name]
    judged = method.judged(500)
    chances = share_on_the_rest(judged, 1000, ONE_PERCENT), share_on_the_population(judged, 1500, ONE_PERCENT)
    for on, chance in zip((on_the_rest, on_the_population), chances, strict=True):
        above = sum(on(pool, method.fit, ONE_PERCENT, 500, seed).exceeds(ONE_PERCENT) for seed in range(splits))
        assert above / splits == pytest.approx(chance, abs=3 * sqrt(chance / splits))


def test_in_expectation_the_rate_on_the_rest_is_within_the_limit(pool: HeldOut) -> None:
    limit = Limit(0.01, confidence=None)
    rates = torch.tensor([on_the_rest(pool, METHODS["rule"].fit, limit, 500, seed).rate for seed in range(100)])
    assert 0.005 < rates.mean() <= 0.01 + 2 * rates.std() / sqrt(len(rates))


def test_the_rest_and_the_population_are_other_samples_than_those_of_the_fit(pool: HeldOut) -> None:
    seen: list[HeldOut] = []

    def fit(held_out: HeldOut, limit: Limit) -> object:
        seen.append(held_out)
        return lambda logits: logits.argmax(dim=1)

    rest = on_the_rest(pool, fit, ONE_PERCENT, 500, 0)  # type: ignore[arg-type]
    every = on_the_population(pool, fit, ONE_PERCENT, 500, 0)  # type: ignore[arg-type]
    fitted, drawn = (outcome_of(lambda logits: logits.argmax(dim=1), held_out) for held_out in seen)
    assert (rest.samples, every.samples, drawn.samples) == (1000, 1500, 500)
    assert rest.dangerous + fitted.dangerous == every.dangerous
    assert len(seen[0].logits.unique(dim=0)) == 500 > len(seen[1].logits.unique(dim=0))


def test_a_rate_equal_to_the_limit_does_not_exceed_it() -> None:
    assert not Outcome(1.0, 7, 700).exceeds(ONE_PERCENT)
    assert Outcome(1.0, 8, 700).exceeds(ONE_PERCENT)


@pytest.mark.parametrize("limit", guarantee.LIMITS)
def test_chance_keeps_the_confidence_in_the_population_and_almost_in_a_large_rest(limit: float) -> None:
    asked = Limit(limit, confidence=0.95)
    for judged in (1600, 2000, 5000):
        population = share_on_the_population(judged, 10**7, asked)
        assert 0 < population <= 0.05
        assert share_on_the_rest(judged, 10**7, asked) == pytest.approx(population, rel=1e-2)
        assert share_on_the_rest(judged, judged, asked) > population
    assert allowed_errors(400, ONE_PERCENT) == 0
    assert allowed_errors(298, ONE_PERCENT) == -1


def test_every_setting_has_a_row_or_a_reason(pool: HeldOut) -> None:
    more = torch.cat([torch.arange(1500), torch.arange(1500)])
    pools = {"MNIST": pool.at(more), "digits": pool}
    sure = guarantee.results(pools, 0.95, 2)
    assert len(sure.table.rows) == 27
    assert len(sure.reasons) == 6  # two limits and three methods, at n = 500
    limit = "the limit 'dangerous <= 0.002 of samples with confidence 0.95'"
    assert sure.reasons[0].startswith(f"n = 500, rule: {limit} cannot be guaranteed by")
    assert sum("not attainable" in row for row in sure.table.rows) == 12
    mean = guarantee.results(pools, None, 2)
    assert sum("not attainable" in row for row in mean.table.rows) == 2
    assert mean.markdown().count("\n- ") == len(mean.reasons) == 1


def test_the_figure_shows_each_score_and_both_rules(pool: HeldOut) -> None:
    (axes,) = guarantee.risk_coverage(pool, samples=1000, limit=0.01).axes
    *curves, rule, other = axes.lines
    ends = [line.get_xydata()[-1].tolist() for line in curves]
    decided, *most_probable = [risk for _, risk in ends]
    assert [coverage for coverage, _ in ends] == [100] * 4
    assert most_probable == pytest.approx([most_probable[0]] * 3)
    assert decided > 0
    assert all(0 < line.get_xdata()[0] < 100 for line in (rule, other))
