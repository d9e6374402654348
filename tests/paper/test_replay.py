"""The published runs, digit for digit, and what the paper reads off them."""

from pathlib import Path
from typing import Any

import pytest

from mpcs_torch.cli import experiments
from mpcs_torch.cli.experiments import reproduce_one
from mpcs_torch.paper.experiments import (
    FinishedRun,
    experiment_config,
    finish_run,
    picks_table,
)
from mpcs_torch.paper.published_values import RECORD_FILES, Agreement, compare
from mpcs_torch.trainer.checkpoints import open_selector
from mpcs_torch.trainer.data import load_mnist
from mpcs_torch.trainer.loop import TrainingRun
from mpcs_torch.trainer.result import read_records
from tests.cli.shell import run
from tests.conftest import load_oracle
from tests.refused import Refused

FIGURE_5 = load_oracle("paper_tables")["figure_5"]


def replay(name: str, folder: Path, data_root: Path, epochs: int) -> FinishedRun:
    config = experiment_config(name)
    config = config.model_copy(
        update={"epochs": config.epochs.model_copy(update={"count": epochs})}
    )
    return finish_run(config, config.data.load(data_root), folder / name)


def test_exp03_replays_its_first_epochs(
    tmp_path: Path, data_root: Path, published_records: Path
) -> None:
    run = replay("exp03", tmp_path, data_root, 20)
    published = read_records(published_records / RECORD_FILES["exp03"])
    assert compare(run.records, published[:20]) == Agreement(20, 20, 20, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "epochs"),
    [pytest.param("exp05", 15, marks=pytest.mark.exhaustive), ("exp07", 15), ("exp09", 6)],
)
def test_other_experiments_replay_until_rounding_parts_them(
    tmp_path: Path, data_root: Path, published_records: Path, name: str, epochs: int
) -> None:
    run = replay(name, tmp_path, data_root, epochs)
    published = read_records(published_records / RECORD_FILES[name])
    assert compare(run.records, published[:epochs]) == Agreement(
        epochs, epochs, epochs, None
    )


@pytest.mark.slow
def test_the_command_replays_the_case_study_and_its_picks(
    tmp_path: Path,
    data_root: Path,
    published_records: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    finished: list[FinishedRun] = []

    def kept(*arguments: Any, **options: Any) -> FinishedRun:
        finished.append(reproduce_one(*arguments, **options))
        return finished[-1]

    monkeypatch.setattr(experiments, "reproduce_one", kept)
    arguments = (
        "--data-root",
        data_root,
        "--records",
        published_records,
        "--out",
        tmp_path,
    )
    assert run("reproduce", "case-study", *arguments) == 0
    printed = capsys.readouterr().out
    assert (
        "of 150 epochs agree with the published record in all columns at 4 decimals"
        in printed
    )
    assert printed.count("100 of 100 cells") == 2
    assert "mpcs picks epoch 133 (paper: 133)" in printed
    folder = tmp_path / "case-study"

    published = read_records(published_records / RECORD_FILES["case-study"])
    assert compare(finished[0].records[:20], published[:20]) == Agreement(20, 20, 20, None)
    for row, epoch in zip(picks_table(finished[0]).rows, (132, 133), strict=True):
        of_paper = FIGURE_5[f"turn_{epoch}"]
        assert finished[0].confusions[epoch - 1].t().tolist() == of_paper["matrix"]
        assert row[0] == ", ".join(of_paper["picked_by"])
        assert row[1:5:2] == [str(epoch), str(of_paper["errors"])]
        assert row[4] == str(of_paper["dangerous"])

    # The selector of its config leaves the checkpoint of the paper's pick, whose evaluation is the record.
    prepared = TrainingRun(experiment_config("case-study"), load_mnist(data_root))
    selector = open_selector(prepared.config, folder)
    assert selector is not None
    assert selector.best is not None
    assert selector.best.number == 133
    prepared.model.load_state_dict(selector.load_best()["model"])
    values = prepared.measure(prepared.split).values
    assert values == pytest.approx(
        {name: selector.best.values[name] for name in values}, rel=1e-6
    )
    assert {"epoch": 133, **selector.best.values} == read_records(folder / "records.csv")[
        132
    ]


def test_a_difference_is_counted_and_named() -> None:
    ours = [
        {"epoch": 1, "accuracy": 0.50004, "mpcs_count": 1.0},
        {"epoch": 2, "accuracy": 0.7, "mpcs_count": 0.9},
    ]
    theirs = [
        {"epoch": 1, "accuracy": 0.5, "mpcs": 1.0},
        {"epoch": 2, "accuracy": 0.7, "mpcs": 0.8},
    ]
    agreement = compare(ours, theirs)
    assert agreement == Agreement(2, 1, 1, "epoch 2, mpcs 0.9000 for 0.8000")
    assert str(agreement).startswith("1 of 2 epochs agree")


def test_epochs_are_counted_from_the_first_to_the_first_difference() -> None:
    ours = [{"epoch": epoch, "accuracy": 0.5} for epoch in (1, 2, 3, 4)]
    theirs = [
        {"epoch": epoch, "accuracy": 0.6 if epoch == 3 else 0.5} for epoch in (1, 2, 3, 4)
    ]
    agreement = compare(ours, theirs)
    assert (agreement.agreeing, agreement.from_first) == (3, 2)
    assert (
        "including the first 2; first difference: epoch 3, accuracy 0.5000 for 0.6000"
        in str(agreement)
    )


def test_zero_has_no_sign_at_four_decimals() -> None:
    assert compare([{"epoch": 1, "mcc": -1e-6}], [{"epoch": 1, "mcc": 0.0}]).agreeing == 1


def test_a_published_column_that_is_none_of_ours_is_named() -> None:
    with Refused("one_of", "columns of published records", "auc"):
        compare([{"epoch": 1, "mcc": 0.5}], [{"epoch": 1, "auc": 0.5}])
