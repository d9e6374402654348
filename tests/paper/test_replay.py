"""The published runs, digit for digit, and what the paper reads off them."""

import re
from pathlib import Path

import pytest

from mpcs_torch.paper.experiments import FinishedRun, experiment_config, finish_run
from mpcs_torch.paper.published_values import RECORD_FILES, Agreement, compare
from mpcs_torch.trainer.checkpoints import open_selector
from mpcs_torch.trainer.data import load_mnist
from mpcs_torch.trainer.loop import TrainingRun
from mpcs_torch.trainer.result import Record, read_records
from tests.cli.shell import run
from tests.refused import Refused


def replay(name: str, folder: Path, data_root: Path, epochs: int) -> FinishedRun:
    config = experiment_config(name)
    config = config.model_copy(
        update={"epochs": config.epochs.model_copy(update={"count": epochs})}
    )
    return finish_run(config, config.data.load(data_root), folder / name)


@pytest.mark.parametrize(
    ("name", "epochs"),
    [
        ("exp03", 20),
        pytest.param("exp05", 15, marks=pytest.mark.exhaustive),
        pytest.param("exp07", 15, marks=pytest.mark.slow),
        pytest.param("exp09", 6, marks=pytest.mark.slow),
    ],
)
def test_experiments_replay_their_first_epochs(
    tmp_path: Path, data_root: Path, published_records: Path, name: str, epochs: int
) -> None:
    run = replay(name, tmp_path, data_root, epochs)
    published = read_records(published_records / RECORD_FILES[name])
    all_agree = Agreement(epochs, epochs, epochs, None)
    assert compare(run.records, published[:epochs]) == all_agree


@pytest.mark.slow
def test_the_command_replays_the_case_study_and_its_picks(
    tmp_path: Path,
    data_root: Path,
    published_records: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    inputs = ["--data-root", data_root, "--records", published_records]
    assert run("reproduce", "case-study", *inputs, "--out", tmp_path) == 0
    printed = capsys.readouterr().out
    assert "of 150 epochs agree with the published record in all columns" in printed
    assert printed.count("100 of 100 cells") == 2
    numbers = re.findall(r"(\d+) (?:errors|dangerous)? ?\(paper: (\d+)\)", printed)
    assert len(numbers) >= 6
    assert all(ours == theirs for ours, theirs in numbers)

    folder = tmp_path / "case-study"
    records = read_records(folder / "records.csv")
    published = read_records(published_records / RECORD_FILES["case-study"])
    assert compare(records[:20], published[:20]) == Agreement(20, 20, 20, None)
    # The selector of its config leaves the checkpoint of the paper's pick, whose evaluation is the record.
    prepared = TrainingRun(experiment_config("case-study"), load_mnist(data_root))
    selector = open_selector(prepared.config, folder)
    assert selector is not None
    assert selector.best is not None
    prepared.model.load_state_dict(selector.load_best()["model"])
    values = prepared.measure(prepared.split).values
    assert values == pytest.approx({name: records[132][name] for name in values}, rel=1e-6)
    assert {"epoch": 133, **selector.best.values} == records[132]


def columns(**columns: list[float]) -> list[Record]:
    rows = zip(*columns.values(), strict=True)
    return [
        {"epoch": epoch, **dict(zip(columns, row, strict=True))}
        for epoch, row in enumerate(rows, start=1)
    ]


def test_epochs_that_agree_are_counted_and_the_first_difference_is_named() -> None:
    ours = columns(accuracy=[0.50004, 0.7, 0.5, 0.5], mpcs_count=[1.0, 0.8, 0.9, 1.0])
    theirs = columns(accuracy=[0.5, 0.7, 0.5, 0.5], mpcs=[1.0, 0.8, 0.8, 1.0])
    agreement = compare(ours, theirs)
    assert agreement == Agreement(4, 3, 2, "epoch 3, mpcs 0.9000 for 0.8000")
    assert str(agreement).startswith("3 of 4 epochs agree")
    assert "including the first 2; first difference: epoch 3" in str(agreement)


def test_zero_has_no_sign_at_four_decimals() -> None:
    assert compare(columns(mcc=[-1e-6]), columns(mcc=[0.0])).agreeing == 1


def test_a_published_column_that_is_none_of_ours_is_named() -> None:
    with Refused("one_of", "columns of published records", "auc"):
        compare(columns(mcc=[0.5]), columns(auc=[0.5]))
