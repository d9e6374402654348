"""Means over seeds and their intervals."""

from math import inf, nan
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mpcs_torch.learning import SelectionRule
from mpcs_torch.learning.checkpoint_files import SavedEpoch
from mpcs_torch.trainer.pooled_seeds import mean_over_seeds, readings, seeds_by_setting
from mpcs_torch.trainer.recorded_epochs import RUN, SELECTOR, RecordedEpochs

RULE = SelectionRule("mpcs", {"mpcs": "min"})
NAMES = st.text("abz.0189=_-e", min_size=1, max_size=8).map(lambda name: f"x{name}")


def folder(
    name: str, config: dict[str, Any] | None = None, rule: SelectionRule = RULE
) -> RecordedEpochs:
    kind = SELECTOR if config is None else RUN
    return RecordedEpochs(
        Path("runs", name),
        kind,
        [SavedEpoch(1, {"mpcs": 0.5})],
        {"mpcs": "min"},
        rule,
        config or {},
    )


def pooled(*folders: RecordedEpochs) -> list[list[str]]:
    settings = seeds_by_setting(folders)
    return [
        [one.folder.relative_to("runs").as_posix() for one in members]
        for members in settings.values()
    ]


@given(
    NAMES,
    NAMES,
    st.lists(st.integers(0, 10**6), min_size=2, max_size=5, unique=True),
    st.sampled_from("-_= "),
)
def test_names_are_pooled_if_they_are_equal_without_the_seed(
    before: str, after: str, seeds: list[int], separator: str
) -> None:
    pattern = f"{before}-seed{separator.strip()}{{}}-{after}"
    for seed_in in (pattern, pattern.replace("-seed", "/seed"), f"{pattern}/checkpoints"):
        names = [seed_in.format(seed) for seed in seeds]
        assert pooled(*map(folder, names)) == [names]
        other = [f"{name}0" for name in names]
        assert pooled(*map(folder, [*names, *other])) == [names, other]


@pytest.mark.parametrize(
    "names",
    [
        ["run-0", "run-1"],
        ["linseed0", "linseed1"],  # a word
        ["seeds0", "seeds1"],
        ["seed.0", "seed.1"],
        ["seed0", "seed-0", "seed_1"],  # 0 is repeated
        ["seed1", "seed01"],
        ["data-seed0-seed0", "data-seed1-seed0"],  # the last is the seed
    ],
)
def test_names_that_do_not_differ_in_a_seed_alone_are_not_pooled(names: list[str]) -> None:
    assert pooled(*map(folder, names)) == [[name] for name in names]


def test_a_seed_may_be_capitalized_and_another_rule_is_another_setting() -> None:
    other = SelectionRule("mpcs", {"mpcs": "min"}, ties="last")
    folders = [folder("Seed0"), folder("seed=1"), folder("seed2", rule=other)]
    assert pooled(*folders) == [["Seed0", "seed=1"], ["seed2"]]


@pytest.mark.parametrize(("seed", "groups"), [(1, [["a"], ["b"]]), (2, [["a", "b"]])])
def test_a_config_without_a_seed_has_the_default_seed(
    seed: int, groups: list[list[str]]
) -> None:
    assert pooled(folder("a", {"lr": 1}), folder("b", {"lr": 1, "seed": seed})) == groups


def test_a_single_folder_has_no_reason_to_print() -> None:
    settings = seeds_by_setting([folder("run-0")])
    assert [*settings] == ["runs/run-0"]
    assert len(readings(settings)) == 1


@pytest.mark.parametrize("seeds", [3, 5, 20])
def test_the_interval_of_a_mean_is_that_of_students_t(seeds: int) -> None:
    values = NormalDist(3, 2).samples(seeds, seed=seeds)
    mean, count, interval = mean_over_seeds(values)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert count == seeds
    assert mean == pytest.approx(sum(values) / seeds)
    assert interval == pytest.approx(tuple(expected))


@pytest.mark.parametrize(
    "values", [[1.0], [1.0, 2.0], [2.0, 2.0, 2.0], [1.0, 2.0, inf], [1.0, nan, 2.0]]
)
def test_few_equal_or_infinite_values_have_no_interval(values: list[float]) -> None:
    assert mean_over_seeds(values).interval is None
