"""The validation split: stratified, seeded, clusters kept whole."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mpcs_torch.errors import DataError
from mpcs_torch.trainer.config.sections import ConfigError, DataConfig
from mpcs_torch.trainer.data import DataSplits, Split, hold_out_validation
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.loop import TrainingRun
from mpcs_torch.trainer.result import read_records, read_result
from tests.refused import Refused
from tests.trainer.toy import toy_config, toy_data


def numbered(size: int, classes: int, clusters: torch.Tensor | None = None) -> DataSplits:
    """Each sample's input is its number."""
    inputs = torch.arange(size, dtype=torch.float32).unsqueeze(1)
    labels = torch.arange(size) % classes
    return DataSplits(
        Split(inputs, labels, clusters),
        Split(inputs, labels),
        tuple(map(str, range(classes))),
    )


def validation_of(data: DataSplits) -> Split:
    assert data.validation is not None
    return data.validation


@given(
    st.integers(40, 90), st.integers(2, 4), st.floats(0.1, 0.5), st.integers(0, 2**32 - 1)
)
def test_every_sample_is_in_one_split_and_classes_keep_their_shares(
    size: int, classes: int, fraction: float, seed: int
) -> None:
    data = numbered(size, classes)
    split = hold_out_validation(data, fraction, seed)
    part = validation_of(split)
    both = torch.cat([split.train.inputs, part.inputs]).flatten().sort().values
    assert torch.equal(both, data.train.inputs.flatten())
    assert abs(len(part.labels) - fraction * size) <= 1
    expected = fraction * data.train.labels.bincount(minlength=classes)
    assert ((part.labels.bincount(minlength=classes) - expected).abs() <= 1.5).all()
    assert split.test is data.test


@given(st.integers(0, 100))
def test_clusters_are_never_separated(seed: int) -> None:
    split = hold_out_validation(numbered(120, 3, torch.arange(120) // 5), 0.25, seed)
    train, part = split.train, validation_of(split)
    assert train.clusters is not None
    assert part.clusters is not None
    assert torch.equal(part.clusters, part.inputs.flatten().long() // 5)
    assert not {*train.clusters.tolist()} & {*part.clusters.tolist()}
    assert 0.1 * 120 <= len(part.labels) <= 0.4 * 120


@pytest.mark.parametrize(
    ("data", "fraction", "code"),
    [
        (numbered(4, 4), 0.5, "cannot_split"),
        (numbered(40, 2, torch.zeros(40).long()), 0.2, "cannot_split"),
        (hold_out_validation(toy_data(), 0.2, 0), 0.2, "has_validation"),
    ],
)
def test_what_cannot_be_split_is_refused(
    data: DataSplits, fraction: float, code: str
) -> None:
    with Refused(code, raises=DataError):
        hold_out_validation(data, fraction, 0)


def test_a_config_holds_out_validation_samples(tmp_path: Path) -> None:
    config = {"name": "digits"}
    whole = DataConfig.model_validate(config).load(tmp_path)
    data = DataConfig.model_validate({**config, "validation_fraction": 0.2}).load(tmp_path)
    assert len(validation_of(data).labels) == round(0.2 * len(whole.train.labels) + 0.5)
    assert torch.equal(data.test.inputs, whole.test.inputs)


def on_validation(**changed: Any) -> Any:
    return toy_config(
        epochs={"count": 5, "samples": "validation"},
        selector={"by": "mpcs"},
        scheduler={"name": "mpcs_lr"},
        **changed,
    )


def test_epochs_are_measured_on_validation_samples_and_test_data_at_the_end(
    tmp_path: Path,
) -> None:
    data = hold_out_validation(toy_data(), 0.2, 0)
    run, result = run_in_folder(on_validation(), data, tmp_path)
    records = read_records(tmp_path / "records.csv")
    assert not [column for column in records[0] if column.startswith("test_")]
    assert run.split.labels.tolist() == validation_of(data).labels.tolist()
    assert list(result.values) == ["train", "validation", "test"]
    best = min(records, key=lambda record: record["mpcs"])
    assert {"epoch": result.epoch, **result.values["validation"]} == best
    lowest = f"lowest mpcs ({best['mpcs']:.6g})"
    assert result.reason == f"{lowest} on validation data of 5 epochs"
    assert read_result(tmp_path) == result


def test_the_result_is_that_of_the_picked_checkpoint_and_the_model_keeps_its_last_weights(
    tmp_path: Path,
) -> None:
    config = toy_config(
        epochs={"count": 6, "test": ["accuracy"]},
        selector={"by": "accuracy", "ties": "last"},
    )
    weights: list[dict[str, torch.Tensor]] = []
    note = [lambda epoch, run: weights.append(copy.deepcopy(run.model.state_dict()))]
    run, result = run_in_folder(config, toy_data(), tmp_path, note)
    record = read_records(tmp_path / "records.csv")[result.epoch - 1]
    assert result.values["test"]["accuracy"] == record["test_accuracy"]
    assert result.values["train"] == {name: record[name] for name in result.values["train"]}
    torch.testing.assert_close(run.model.state_dict(), weights[-1], rtol=0.0, atol=0.0)


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        (None, "the run has no selector"),
        (
            {"by": "mpcs", "at_most": {"mpcs": -1.0}},
            "no epoch is within the limits of the selector",
        ),
    ],
)
def test_a_run_without_a_pick_ends_with_its_last_epoch(
    tmp_path: Path, selector: Any, reason: str
) -> None:
    config = toy_config(epochs={"count": 3}, selector=selector)
    _, result = run_in_folder(config, toy_data(), tmp_path)
    assert (result.epoch, result.reason) == (3, f"the last epoch, because {reason}")


def test_validation_samples_that_are_missing_are_asked_for() -> None:
    with Refused("validation_split", "toy: epochs.samples:", raises=ConfigError):
        TrainingRun(on_validation(), toy_data())
