"""Calibrations fitted to files, saved, loaded and applied to files with and without labels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mpcs_torch.calibration import LogisticCalibration, TemperatureScaling, VectorScaling
from mpcs_torch.evaluation.calibration_files import (
    SavedCalibration,
    calibrate_predictions,
    fit_to_predictions,
    fit_to_trials,
    open_to_calibrate,
)
from mpcs_torch.evaluation.files.changed_trials import rewrite_scores
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.evaluation.files.trials import read_trials
from tests.calibration.data import CLASSES, logits, trials
from tests.evaluation.files.write import SUFFIXES, write_predictions
from tests.refused import refused_file

LOGITS, TARGET = logits(0)
PROBS = LOGITS.softmax(dim=1)
NAMES = ["red", "yellow", "green", "blue"]
NUMBERS = tuple(map(str, range(CLASSES)))
TEMPERATURE = SavedCalibration("temperature", TemperatureScaling(), tuple(NAMES), True)
OF_LOGITS = ReadOptions(from_logits=True)


def ignore(rows: int) -> None:
    pass


def calibrated(
    saved: SavedCalibration, path: Path, out: Path, reading: ReadOptions | None = None
) -> Tensor:
    """Return the scores of the copy of a file with calibrated scores."""
    opened = open_to_calibrate(saved, path, reading or ReadOptions())
    calibrate_predictions(saved, opened, out, ignore)
    names = None if saved.class_names == NUMBERS else saved.class_names
    copy = Predictions(
        out,
        OF_LOGITS._replace(from_logits=saved.from_logits),
        class_names=names,
        needs_labels=False,
    )
    return (copy.logits() if saved.from_logits else copy.rows()).scores


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("scores", "reading"), [(LOGITS, OF_LOGITS), (PROBS, ReadOptions())]
)
def test_a_fit_to_a_file_is_the_fit_to_its_logits(
    suffix: str, scores: Tensor, reading: ReadOptions, tmp_path: Path
) -> None:
    path = write_predictions(tmp_path / f"p{suffix}", scores, TARGET, NAMES)
    fitted = fit_to_predictions(Predictions(path, reading), "temperature", ignore)
    torch.testing.assert_close(
        fitted.saved.module.state_dict(),
        TemperatureScaling().fit(LOGITS, TARGET).state_dict(),
        rtol=1e-6,
        atol=0,
    )
    assert (fitted.rows, fitted.saved.method) == (400, "temperature")
    assert fitted.saved.from_logits == reading.from_logits
    assert fitted.after < fitted.before


def test_scores_without_names_or_labels_are_calibrated(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", LOGITS)
    saved = TEMPERATURE._replace(class_names=NUMBERS)
    scores = calibrated(saved, tmp_path / "p.npy", tmp_path / "out.npz")
    torch.testing.assert_close(scores, LOGITS)


def test_probabilities_of_0_and_1_are_calibrated_too(tmp_path: Path) -> None:
    votes = torch.nn.functional.one_hot(PROBS.argmax(dim=1), CLASSES).double()
    path = write_predictions(tmp_path / "p.npz", votes, TARGET, NAMES)
    fitted = fit_to_predictions(Predictions(path), "temperature", ignore)
    scores = calibrated(fitted.saved, path, tmp_path / "out.npz")
    accuracy = (votes.argmax(dim=1) == TARGET).double().mean()
    torch.testing.assert_close(scores.amax(dim=1).mean(), accuracy, rtol=1e-6, atol=0)


@pytest.mark.parametrize("from_logits", [True, False])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_calibrated_rows_stay_logits_or_probabilities_and_keep_their_labels(
    suffix: str, from_logits: bool, tmp_path: Path
) -> None:
    logits, rows = (LOGITS, LOGITS) if from_logits else (PROBS.log(), PROBS)
    module = VectorScaling(CLASSES).fit(logits, TARGET)
    saved = SavedCalibration("vector", module, tuple(NAMES), from_logits)
    path, out = tmp_path / f"p{suffix}", tmp_path / f"out{suffix}"
    write_predictions(path, rows, TARGET, NAMES)
    scores, expected = calibrated(saved, path, out), module(logits)
    torch.testing.assert_close(scores, expected if from_logits else expected.softmax(1))
    before, after = open_table(path), open_table(out)
    assert after.names == before.names
    assert after.peek()["target"] == before.peek()["target"]
    assert {*tmp_path.iterdir()} == {path, out}


def test_rows_that_are_left_out_have_no_scores(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(
        "red,yellow,green,blue,id\n1,2,3,4,a\n1,,3,4,b\n4,3,2,1,c\n"
    )
    with refused_file("logits, row 2, column yellow"):
        calibrated(TEMPERATURE, tmp_path / "p.csv", tmp_path / "out.csv")
    scores = open_to_calibrate(TEMPERATURE, tmp_path / "p.csv", ReadOptions(missing="drop"))
    calibrate_predictions(TEMPERATURE, scores, tmp_path / "out.csv", ignore)
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[1:] == ["1.0,2.0,3.0,4.0,a", ",,,,b", "4.0,3.0,2.0,1.0,c"]
    assert scores.notes == [
        "1 row without a label, prediction, cluster, unit, weight or cost left out: values are those of the others."
    ]


def test_one_probability_of_the_positive_class_stays_one(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("id,prob\na,0.2\nb,0.9\n")
    module = VectorScaling(2)
    module.scale.fill_(2)
    saved = SavedCalibration("vector", module, ("good", "bad"))
    opened = open_to_calibrate(saved, tmp_path / "p.csv", ReadOptions())
    calibrate_predictions(saved, opened, tmp_path / "o.csv", ignore)
    columns = open_table(tmp_path / "o.csv").read(["id", "prob"])
    assert columns.columns["id"].to_pylist() == ["a", "b"]
    expected = [0.04 / (0.04 + 0.64), 0.81 / (0.81 + 0.01)]
    assert columns.numbers("prob").tolist() == pytest.approx(expected)


INFINITE = LOGITS.clone()
INFINITE[7, 0] = -torch.inf
SOFT = torch.rand(400, CLASSES, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("scores", "target", "reading", "refusal"),
    [
        (LOGITS, None, OF_LOGITS, "no_labels"),
        (PROBS, SOFT, ReadOptions(), "classes_for_logits"),
        (INFINITE, TARGET, OF_LOGITS, "p.npz: finite_logits"),
        (LOGITS[:0], TARGET[:0], OF_LOGITS, "rows_below_header"),
    ],
)
def test_rows_that_no_calibration_fits_are_refused(
    scores: Tensor,
    target: Tensor | None,
    reading: ReadOptions,
    refusal: str,
    tmp_path: Path,
) -> None:
    path = write_predictions(tmp_path / "p.npz", scores, target, NAMES)
    with refused_file(refusal):
        fit_to_predictions(Predictions(path, reading), "vector", ignore)


def test_columns_are_those_of_the_classes_of_the_fit(tmp_path: Path) -> None:
    module = VectorScaling(CLASSES).fit(LOGITS, TARGET)
    saved = SavedCalibration("vector", module, tuple(NAMES), True)
    turned = write_predictions(tmp_path / "p.csv", LOGITS.flip(1), 3 - TARGET, NAMES[::-1])
    scores = calibrated(saved, turned, tmp_path / "out.csv")
    torch.testing.assert_close(scores, module(LOGITS))
    assert (tmp_path / "out.csv").read_text().startswith("blue,green,yellow,red,target\n")
    letters = ReadOptions(classes=list("abcd"))
    other = write_predictions(tmp_path / "p.csv", LOGITS, None, letters.classes)
    assert open_to_calibrate(TEMPERATURE, other, letters).class_names == NAMES
    with refused_file("no_scores"):
        open_to_calibrate(TEMPERATURE, other, ReadOptions())
    with refused_file("expected_classes", number=4, expected=2):
        open_to_calibrate(
            TEMPERATURE._replace(class_names=("0", "1")), other, ReadOptions()
        )
    with refused_file("called_classes", classes=tuple(NAMES)):
        open_to_calibrate(TEMPERATURE, other, ReadOptions(classes=NAMES[::-1]))


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    for name, scores in (("p.csv", LOGITS), ("p.npz", INFINITE)):
        write_predictions(tmp_path / name, scores, TARGET, NAMES)
    module = VectorScaling(CLASSES)
    module.scale.fill_(-1)
    turned = SavedCalibration("vector", module, NUMBERS, True)
    for saved, name, out, refusal in (
        (TEMPERATURE, "p.csv", "o.npz", "o.npz: ends_as_text"),
        (TEMPERATURE, "p.npz", "o.npy", "o.npy: ends_as_arrays"),
        (turned, "p.npz", "o.npz", "p.npz: finite_if_calibrated, row 8"),
    ):
        with refused_file(refusal):
            calibrated(saved, tmp_path / name, tmp_path / out)
    assert {path.name for path in tmp_path.iterdir()} == {"p.csv", "p.npz"}


SCORES, LABELS = trials(0)


def text_of(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("name", "header", "line"),
    [
        ("s.csv", ["id,score,label"], '"a,b",{},{}'),
        ("s.csv", ["score"], "{}"),
        ("s.txt", [], "{} {}"),
        ("s.txt", [], "one other {}"),
        ("s.txt", [], "{}"),
    ],
)
def test_only_the_scores_of_trials_change(
    name: str, header: list[str], line: str, tmp_path: Path
) -> None:
    def text(scores: Tensor) -> str:
        pairs = zip(scores.tolist(), LABELS.tolist(), strict=True)
        return text_of([*header, *[line.format(*pair) for pair in pairs]])

    module, rows = LogisticCalibration().fit(SCORES, LABELS), list[int]()
    path, out = tmp_path / name, tmp_path / f"out-{name}"
    path.write_text(text(SCORES))
    rewrite_scores(path, out, module, ReadOptions(), rows.append)
    assert out.read_text() == text(module(SCORES)).replace(" ", "\t")
    assert sum(rows) == 400


@pytest.mark.parametrize("method", ["logistic", "pav"])
def test_ratios_of_a_file_are_those_of_its_tensors(method: Any, tmp_path: Path) -> None:
    path, out = tmp_path / "s.txt", tmp_path / "llr.txt"
    pairs = zip(SCORES.tolist(), LABELS.tolist(), strict=True)
    path.write_text(text_of([f"{score} {label}" for score, label in pairs]))
    read = read_trials(path, ReadOptions(), ignore).trials
    fitted = fit_to_trials(path, read, method, 0.5)
    rewrite_scores(path, out, fitted.saved.module, ReadOptions(), ignore)
    ratios = read_trials(out, ReadOptions(), ignore).trials
    assert torch.equal(ratios.scores, fitted.saved.module(SCORES))
    assert fitted.after < fitted.before
    assert fitted.measure == "Cllr"


def test_separated_trials_are_refused_with_their_file(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("1 0\n2 1\n")
    read = read_trials(tmp_path / "s.txt", ReadOptions(), ignore).trials
    with refused_file("s.txt: separated", argument="preds"):
        fit_to_trials(tmp_path / "s.txt", read, "logistic", 0.5)


@pytest.mark.parametrize(
    ("name", "text", "out", "refusal"),
    [
        ("s.csv", "score\n1\n", "o.npz", "o.npz: ends_as_text"),
        ("s.csv", "score\n1\nx\n", "o.csv", "s.csv: number, row 2, column score"),
        (
            "s.txt",
            "1.5 0\n2\n",
            "o.txt",
            "s.txt: all_values_of_row, row 2, column column 2",
        ),
        ("s.txt", "a b c d\n", "o.txt", "s.txt: no_trial_scores"),
    ],
)
def test_a_bad_file_of_trials_is_refused_and_nothing_is_written(
    name: str, text: str, out: str, refusal: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with refused_file(refusal):
        rewrite_scores(
            tmp_path / name, tmp_path / out, lambda scores: scores, ReadOptions(), ignore
        )
    assert [path.name for path in tmp_path.iterdir()] == [name]
