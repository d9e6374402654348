"""The numbers we print as the paper's are the paper's."""

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


def test_table_2() -> None:
    assert list(BENCHMARKS) == PAPER["table_2"]["columns"]
    printed = {f"exp{row['exp']:02}": row["values"] for row in PAPER["table_2"]["rows"]}
    assert printed == TABLE_2


def test_table_3() -> None:
    assert [*BENCHMARKS, "mpcs"] == PAPER["table_3"]["columns"]
    printed = {f"exp{row['exp']:02}": row["values"] for row in PAPER["table_3"]["rows"]}
    assert printed == TABLE_3


def test_figure_5() -> None:
    for epoch, matrix in FIGURE_5.items():
        printed = PAPER["figure_5"][f"turn_{epoch}"]
        assert matrix == printed["matrix"]
        assert CASE_STUDY_ERRORS[epoch] == (printed["errors"], printed["dangerous"])
        assert {
            metric for metric, pick in CASE_STUDY_PICKS.items() if pick == epoch
        } == set(printed["picked_by"])


def test_every_experiment_has_its_config() -> None:
    assert [experiment_config(name).name for name in EXPERIMENTS] == list(EXPERIMENTS)


def test_figure_6() -> None:
    assert {
        name: value for name, value in PAPER["figure_6"].items() if name != "note"
    } == FIGURE_6
