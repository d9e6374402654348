"""The limits of our benchmarks; timings, so only on demand: pytest -m benchmark."""

from pathlib import Path

import pytest

from benchmarks import (
    command_cost,
    detection_against_sort,
    limits,
    loss_cost,
    mpcs_cost,
    parquet_trials,
    replay_overhead,
    start_up,
)
from benchmarks.held_out import mnist


@pytest.mark.benchmark
@pytest.mark.parametrize("shape", mpcs_cost.FROM_LOGITS, ids=str)
def test_mpcs_costs_hardly_more_than_cross_entropy(shape: tuple[int, int]) -> None:
    assert mpcs_cost.from_logits(shape) <= mpcs_cost.FROM_LOGITS[shape]


@pytest.mark.benchmark
def test_mpcs_of_probabilities_costs_hardly_more_than_a_topk() -> None:
    assert mpcs_cost.from_probabilities() <= mpcs_cost.FROM_PROBABILITIES


@pytest.mark.benchmark
def test_a_metric_costs_hardly_more_than_its_function() -> None:
    assert mpcs_cost.update() <= mpcs_cost.UPDATE


@pytest.mark.benchmark
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", loss_cost.CALLS, ids=str)
@pytest.mark.parametrize("name", loss_cost.LIMITS)
def test_losses_cost_a_few_times_cross_entropy(
    name: str, shape: tuple[int, int], threads: int
) -> None:
    assert loss_cost.ratio(name, shape, threads) <= loss_cost.LIMITS[name][shape]


@pytest.mark.benchmark
@pytest.mark.parametrize("experiment", replay_overhead.TURNS)
def test_measuring_costs_a_fraction_of_training(experiment: str, data_root: Path) -> None:
    assert (
        replay_overhead.ratio(experiment, data_root) <= replay_overhead.LIMITS[experiment]
    )


@pytest.mark.benchmark
def test_detection_metrics_take_hardly_more_than_a_sort() -> None:
    assert detection_against_sort.ratio() <= detection_against_sort.LIMIT


@pytest.mark.benchmark
def test_detectors_in_a_file_take_at_most_twice_reading_and_a_sort() -> None:
    assert parquet_trials.ratio() <= parquet_trials.LIMIT


@pytest.mark.benchmark
def test_scoring_a_file_takes_a_few_times_scikit_learn(tmp_path: Path) -> None:
    assert command_cost.score_ratio(tmp_path) <= command_cost.SCORE_LIMIT


@pytest.mark.benchmark
def test_csv_takes_a_few_times_its_reading_longer_than_npz(tmp_path: Path) -> None:
    assert command_cost.csv_ratio(tmp_path) <= command_cost.CSV_LIMIT


@pytest.mark.benchmark
def test_intervals_of_a_million_trials_take_seconds(tmp_path: Path) -> None:
    assert command_cost.detect_seconds(tmp_path) <= command_cost.DETECT_LIMIT


@pytest.mark.benchmark
@pytest.mark.parametrize("verb", start_up.HELP, ids=" ".join)
def test_help_starts_fast_in_little_memory(verb: list[str]) -> None:
    seconds, mebibytes = start_up.cost("-m", "mpcs_torch", *verb, "--help")
    assert seconds <= start_up.SECONDS
    assert mebibytes <= start_up.MEBIBYTES


@pytest.mark.benchmark
def test_rules_keep_their_limit_on_mnist(data_root: Path) -> None:
    case = limits.Case("MNIST", limits.Pool(mnist(data_root), 2000), [limits.Limit(0.005)])
    above = sum(
        case.pool.exceeds(case.limits, limits.decisions_of_rule(case, seed))
        for seed in range(100)
    )
    assert above <= 9, "more than 9 of 100 happen once in 40"
