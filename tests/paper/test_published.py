"""The numbers we print as the paper's are the paper's."""

import pytest

from mpcs_torch.paper.experiments import experiment_config
from mpcs_torch.paper.published_values import (
    BENCHMARKS,
    CASE_STUDY_ERRORS,
    CASE_STUDY_PICKS,
    EXPERIMENTS,
    FIGURE_5,
    FIGURE_6,
    TABLE_2,
    TABLE_3,
)
from tests.conftest import load_oracle

PAPER = load_oracle("paper_tables")


@pytest.mark.parametrize(
    ("name", "columns", "ours"),
    [
        ("table_2", [*BENCHMARKS], TABLE_2),
        ("table_3", [*BENCHMARKS, "mpcs"], TABLE_3),
    ],
)
def test_tables(name: str, columns: list[str], ours: object) -> None:
    assert PAPER[name]["columns"] == columns
    assert {f"exp{row['exp']:02}": row["values"] for row in PAPER[name]["rows"]} == ours


def test_figure_5() -> None:
    for epoch, matrix in FIGURE_5.items():
        printed = PAPER["figure_5"][f"turn_{epoch}"]
        picked_by = {name for name, pick in CASE_STUDY_PICKS.items() if pick == epoch}
        assert matrix == printed["matrix"]
        assert CASE_STUDY_ERRORS[epoch] == (printed["errors"], printed["dangerous"])
        assert picked_by == set(printed["picked_by"])


def test_every_experiment_has_its_config() -> None:
    assert [experiment_config(name).name for name in EXPERIMENTS] == list(EXPERIMENTS)


def test_figure_6() -> None:
    printed = PAPER["figure_6"]
    assert {name: printed[name] for name in printed if name != "note"} == FIGURE_6
