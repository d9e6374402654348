"""The tables of an experiment have the numbers of its run."""

from pathlib import Path

import pytest
from scipy.stats import spearmanr

from mpcs_torch.paper.experiments import FinishedRun, finish_run, picks, picks_table
from mpcs_torch.paper.published_values import BENCHMARKS, table_2
from tests.conftest import load_oracle
from tests.trainer.toy import toy_config, toy_data

PRINTED = {
    f"exp{row['exp']:02}": row["values"]
    for row in load_oracle("paper_tables")["table_2"]["rows"]
}


def toy_run(folder: Path, *, time_metrics: bool = False, **changed: object) -> FinishedRun:
    config = toy_config(**{"epochs": {"count": 12, "test": ["accuracy"]}, **changed})
    return finish_run(config, toy_data(), folder / "toy", time_metrics=time_metrics)


def test_the_picks_are_epochs_of_the_records(tmp_path: Path) -> None:
    released = {"releases": [["red", "yellow", "green"], ["yellow", "red"]], "factor": 0.1}
    run = toy_run(tmp_path, score={"k": 3, "t": 20, "concern": released})
    table = picks_table(run)
    assert table.header == [
        "picked by",
        "epoch",
        "accuracy",
        "errors",
        "dangerous",
        "MPCS",
        "test accuracy",
    ]
    assert {int(row[1]) for row in table.rows} == {*picks(run.records).values()}
    for _, epoch, accuracy, errors, dangerous, mpcs, test_accuracy in table.rows:
        record = run.records[int(epoch) - 1]
        assert int(record["epoch"]) == int(epoch)
        assert (accuracy, errors) == (
            f"{100 * record['accuracy']:.2f} %",
            f"{45 * (1 - record['accuracy']):.0f}",
        )
        assert (dangerous, mpcs) == (f"{record['dangerous']:.0f}", f"{record['mpcs']:.4f}")
        assert test_accuracy == f"{100 * record['test_accuracy']:.2f} %"
    assert any(row[3] != row[4] for row in table.rows), "else all errors are dangerous"


@pytest.mark.parametrize("name", ["exp02", "exp03", "exp07"])
def test_the_row_of_table_2_has_the_correlations_of_scipy_and_of_the_paper(
    name: str, tmp_path: Path
) -> None:
    run = toy_run(tmp_path, name=name)
    table = table_2({name: run.records}, {})
    assert table.header == ["ours (paper)", *BENCHMARKS, "accuracy, over seeds"]
    [[experiment, *cells, seeds]] = table.rows
    assert (experiment, seeds) == (name, "")
    for metric, cell, printed in zip(BENCHMARKS, cells, PRINTED[name], strict=True):
        columns = [
            [record[column] for record in run.records] for column in ("mpcs_count", metric)
        ]
        assert cell == f"{spearmanr(*columns).statistic:.3f} ({printed:.3f})"
