"""The report: one file, nothing beside it, numbers from the run."""

import re
from pathlib import Path

import pytest
from scipy.stats import spearmanr

from mpcs_torch.paper.experiments import Agreement, FinishedRun, finish_run
from mpcs_torch.paper.figures import picks
from mpcs_torch.paper.published import BENCHMARKS
from mpcs_torch.report.paper import write_report
from tests.conftest import load_oracle
from tests.report.page import Page
from tests.trainer.toy import toy_config, toy_data

PRINTED = {f"exp{row['exp']:02}": row["values"] for row in load_oracle("paper_tables")["table_2"]["rows"]}


def toy_run(folder: Path, *, time_metrics: bool = False, **changed: object) -> FinishedRun:
    config = toy_config(**{"epochs": {"count": 12, "test": ["accuracy"]}, **changed})
    return finish_run(config, toy_data(), folder / "toy", time_metrics=time_metrics)


def test_report_needs_nothing_beside_it_and_shows_the_picks(tmp_path: Path) -> None:
    released = {"releases": [["red", "yellow", "green"], ["yellow", "red"]], "factor": 0.1}
    run = toy_run(tmp_path, score={"k": 3, "t": 20, "concern": released})
    write_report(run, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert all(source.startswith("data:image/svg+xml;base64,") for source in re.findall(r'src="([^"]*)"', page))
    assert page.count("<img") == 3
    assert not re.findall(r"https?://|<script|<link", page)
    [table] = Page(tmp_path / "report.html").tables
    assert table.header == ["picked by", "epoch", "accuracy", "errors", "dangerous", "MPCS", "test accuracy"]
    assert [row[1] for row in table.rows] == [str(chosen.epoch) for chosen in picks(run)]
    for _, epoch, accuracy, errors, dangerous, mpcs, test_accuracy in table.rows:
        record = run.records[int(epoch) - 1]
        assert int(record["epoch"]) == int(epoch)
        assert (accuracy, errors) == (f"{100 * record['accuracy']:.2f} %", f"{45 * (1 - record['accuracy']):.0f}")
        assert (dangerous, mpcs) == (f"{record['dangerous']:.0f}", f"{record['mpcs']:.4f}")
        assert test_accuracy == f"{100 * record['test_accuracy']:.2f} %"
    assert any(row[3] != row[4] for row in table.rows), "else all errors are dangerous"


@pytest.mark.parametrize("name", ["exp02", "exp03", "exp07"])
def test_report_of_an_experiment_shows_its_row_of_table_2_beside_the_run(name: str, tmp_path: Path) -> None:
    run = toy_run(tmp_path, name=name)
    agreement = Agreement(12, 9, 7, "epoch 8, mcc 0.1 for 0.2") if name == "exp03" else None
    write_report(run, tmp_path / "report.html", agreement)
    table, _ = Page(tmp_path / "report.html").tables
    assert table.header == ["Spearman with", "mpcs", "mpcs_count", "paper", "difference"]
    assert [row[0] for row in table.rows] == list(BENCHMARKS)
    for (metric, mpcs, mpcs_count, paper, difference), printed in zip(table.rows, PRINTED[name], strict=True):
        columns = {column: [record[column] for record in run.records] for column in (metric, "mpcs", "mpcs_count")}
        ours = [spearmanr(columns[column], columns[metric]).statistic for column in ("mpcs", "mpcs_count")]
        assert (mpcs, mpcs_count) == tuple(f"{value:.4f}" for value in ours)
        assert (paper, difference) == (f"{printed:.4f}", f"{ours[1] - printed:+.4f}")
    page = (tmp_path / "report.html").read_text()
    assert ("9 of 12 epochs agree with the published record" in page) == (name == "exp03")
    assert ("until rounding parts them" in page) == (name == "exp07")


def test_report_of_weights_names_no_factor(tmp_path: Path) -> None:
    weights = [[1, 0.5, 1], [1, 1, 1], [2, 1, 1]]
    write_report(toy_run(tmp_path, score={"k": 3, "concern": {"weights": weights}}), tmp_path / "report.html")
    assert "counts less than any other error" in (tmp_path / "report.html").read_text()
