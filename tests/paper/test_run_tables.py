"""The tables of an experiment have the numbers of its run."""

from pathlib import Path

from mpcs_torch.paper.experiments import FinishedRun, finish_run, picks, picks_table
from tests.trainer.toy import toy_config, toy_data


def toy_run(folder: Path, *, time_metrics: bool = False, **changed: object) -> FinishedRun:
    config = toy_config(**{"epochs": {"count": 12, "test": ["accuracy"]}, **changed})
    return finish_run(config, toy_data(), folder / "toy", time_metrics=time_metrics)


def test_the_picks_are_epochs_of_the_records(tmp_path: Path) -> None:
    released = {"releases": [["red", "yellow", "green"], ["yellow", "red"]], "factor": 0.1}
    run = toy_run(tmp_path, score={"k": 3, "t": 20, "concern": released})
    table = picks_table(run)
    names = "picked by, epoch, accuracy, errors, dangerous, MPCS, test accuracy"
    assert table.header == names.split(", ")
    assert {int(row[1]) for row in table.rows} == {*picks(run.records).values()}
    for row in table.rows:
        record = run.records[int(row[1]) - 1]
        assert row[1:] == [
            f"{record['epoch']:.0f}",
            f"{100 * record['accuracy']:.2f} %",
            f"{45 * (1 - record['accuracy']):.0f}",
            f"{record['dangerous']:.0f}",
            f"{record['mpcs']:.4f}",
            f"{100 * record['test_accuracy']:.2f} %",
        ]
    assert any(row[3] != row[4] for row in table.rows), "else all errors are dangerous"
