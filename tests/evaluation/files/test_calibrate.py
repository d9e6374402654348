"""Calibrations fitted to files, saved, loaded and applied to files with and without labels."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from mpcs_torch.calibration import LogisticCalibration, TemperatureScaling, VectorScaling
from mpcs_torch.evaluation.calibration_files import (
    CalibrationFileError,
    SavedCalibration,
    calibrate_predictions,
    fit_to_predictions,
    fit_to_trials,
    load_calibration,
    save_calibration,
)
from mpcs_torch.evaluation.files.chunks import PredictionsError
from mpcs_torch.evaluation.files.predictions import Predictions, ReadOptions, write_predictions
from mpcs_torch.evaluation.files.trial_readers import read_trials
from mpcs_torch.evaluation.files.trial_writers import rewrite_scores
from tests.calibration.data import CLASSES, logits, trials
from tests.evaluation.files.test_scoring import WRITERS, Write, write_csv, write_npy, write_npz

LOGITS, TARGET = logits(0)
PROBS = LOGITS.softmax(dim=1)
NAMES = ["red", "yellow", "green", "blue"]


def ignore(rows: int) -> None:
    pass


def opened(files: list[Path], *, from_logits: bool = True) -> Predictions:
    return Predictions(files[0], target=(files[1:] or [None])[0], from_logits=from_logits)  # type: ignore[list-item]


def named_csv(path: Path, scores: Tensor, names: list[str], target: Tensor | None = None) -> Path:
    write_predictions(path, scores, torch.empty(len(scores), 0) if target is None else target, names)
    return path


@pytest.mark.parametrize("write", WRITERS)
def test_a_fit_to_a_file_is_the_fit_to_its_tensors(write: Write, tmp_path: Path) -> None:
    fitted = fit_to_predictions(opened(write(tmp_path, LOGITS, TARGET)), "temperature", ignore)
    expected = TemperatureScaling().fit(LOGITS, TARGET)
    torch.testing.assert_close(fitted.saved.module.state_dict(), expected.state_dict())
    assert (fitted.rows, fitted.saved.method, fitted.saved.from_logits) == (400, "temperature", True)
    assert fitted.after < fitted.before


def test_logarithms_of_probabilities_have_the_temperature_of_the_logits(tmp_path: Path) -> None:
    fitted = fit_to_predictions(opened(write_npz(tmp_path, PROBS, TARGET), from_logits=False), "temperature", ignore)
    expected = TemperatureScaling().fit(LOGITS, TARGET)
    torch.testing.assert_close(fitted.saved.module.state_dict(), expected.state_dict(), rtol=1e-6, atol=0)


def test_probabilities_of_0_and_1_are_calibrated_too(tmp_path: Path) -> None:
    votes = torch.nn.functional.one_hot(PROBS.argmax(dim=1), CLASSES).double()
    files = write_npz(tmp_path, votes, TARGET)
    fitted = fit_to_predictions(opened(files, from_logits=False), "temperature", ignore)
    calibrated = calibrate_predictions(fitted.saved, files[0], ReadOptions(), ignore).scores
    accuracy = (votes.argmax(dim=1) == TARGET).double().mean()
    torch.testing.assert_close(calibrated.amax(dim=1).mean(), accuracy, rtol=1e-6, atol=0)


@pytest.mark.parametrize("from_logits", [True, False])
@pytest.mark.parametrize("write", WRITERS)
def test_calibrated_rows_stay_logits_or_probabilities_and_keep_their_labels(
    write: Write, from_logits: bool, tmp_path: Path
) -> None:
    module = VectorScaling(CLASSES).fit(LOGITS if from_logits else PROBS.log(), TARGET)
    saved = SavedCalibration("vector", module, tuple(map(str, range(CLASSES))), from_logits)
    path, *labels = write(tmp_path, LOGITS if from_logits else PROBS, TARGET)
    found = calibrate_predictions(saved, path, ReadOptions((labels or [None])[0]), ignore)  # type: ignore[list-item]
    expected = module(LOGITS) if from_logits else module(PROBS.log()).softmax(dim=1)
    torch.testing.assert_close(found.scores, expected)
    assert torch.equal(found.target, TARGET)


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".pt"])
@pytest.mark.parametrize("is_labelled", [True, False])
def test_what_is_written_is_read_again(suffix: str, is_labelled: bool, tmp_path: Path) -> None:
    path, saved = tmp_path / f"p{suffix}", SavedCalibration("temperature", TemperatureScaling(), tuple(NAMES), True)
    logits, labels = LOGITS.repeat(41, 1), TARGET.repeat(41)  # more rows than csv is written at a time
    write_predictions(path, logits.t().contiguous().t(), labels if is_labelled else torch.empty(16400, 0), NAMES)
    scores, target, names, _, _ = calibrate_predictions(saved, path, ReadOptions(), ignore)
    assert torch.equal(scores, logits)
    assert names == NAMES
    assert torch.equal(target, labels) if is_labelled else target.shape == (16400, 0)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_an_npy_file_needs_no_labels_to_be_calibrated(tmp_path: Path) -> None:
    path, _ = write_npy(tmp_path, LOGITS, TARGET)
    saved = SavedCalibration("temperature", TemperatureScaling(), tuple(NAMES), True)
    assert calibrate_predictions(saved, path, ReadOptions(), ignore).target.shape == (400, 0)


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".pt"])
def test_a_fit_needs_labels(suffix: str, tmp_path: Path) -> None:
    path = named_csv(tmp_path / f"p{suffix}", LOGITS, NAMES)
    with pytest.raises(PredictionsError, match="must"):
        fit_to_predictions(opened([path]), "temperature", ignore)


def test_columns_are_found_by_the_names_of_the_fit(tmp_path: Path) -> None:
    module = VectorScaling(CLASSES).fit(LOGITS, TARGET)
    saved = SavedCalibration("vector", module, tuple(NAMES), True)
    turned = named_csv(tmp_path / "p.csv", LOGITS.flip(1), NAMES[::-1], 3 - TARGET)
    found = calibrate_predictions(saved, turned, ReadOptions(), ignore)
    torch.testing.assert_close(found.scores, module(LOGITS))
    assert torch.equal(found.target, TARGET)
    assert found.class_names == NAMES


def test_other_classes_than_those_of_the_fit_are_refused(tmp_path: Path) -> None:
    saved = SavedCalibration("temperature", TemperatureScaling(), tuple(NAMES), True)
    other = named_csv(tmp_path / "p.csv", LOGITS, ["a", "b", "c", "d"])
    with pytest.raises(PredictionsError, match="columns must be named after the classes"):
        calibrate_predictions(saved, other, ReadOptions(), ignore)
    numbered = saved._replace(class_names=("0", "1"))
    with pytest.raises(PredictionsError, match="has scores for 4 classes, but 2 are expected"):
        calibrate_predictions(numbered, other, ReadOptions(), ignore)


def test_soft_labels_are_refused(tmp_path: Path) -> None:
    files = write_csv(tmp_path, PROBS, torch.rand(400, CLASSES, generator=torch.Generator().manual_seed(0)))
    with pytest.raises(PredictionsError, match="has soft labels, but logits need one class for each row"):
        fit_to_predictions(opened(files, from_logits=False), "temperature", ignore)


def test_values_that_cannot_be_calibrated_are_refused(tmp_path: Path) -> None:
    scores = LOGITS.clone()
    scores[7, 0] = -torch.inf
    files = write_npz(tmp_path, scores, TARGET)
    with pytest.raises(PredictionsError, match=r"p\.npz: preds must be finite logits .* but sample 7 has \[-inf"):
        fit_to_predictions(opened(files), "vector", ignore)
    turned = VectorScaling(CLASSES)
    turned.scale.fill_(-1)
    with pytest.raises(PredictionsError, match=r"p\.npz, row 8: the calibrated logits are not finite"):
        calibrate_predictions(SavedCalibration("vector", turned, tuple("0123"), True), files[0], ReadOptions(), ignore)
    empty = write_npz(tmp_path, LOGITS[:0], TARGET[:0])
    with pytest.raises(PredictionsError, match="has no rows"):
        fit_to_predictions(opened(empty), "vector", ignore)
    with pytest.raises(PredictionsError, match=re.escape("p.txt: must be one of .csv, .npz, .pt")):
        write_predictions(tmp_path / "p.txt", LOGITS, TARGET, NAMES)


SCORES, LABELS = trials(0)


def text_of(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("name", "header", "line"),
    [
        ("s.csv", ["id,score,label"], '"a, b",{},{}'),
        ("s.csv", ["score"], "{}"),
        ("s.txt", [], "{} {}"),
        ("s.txt", [], "one other {}"),
        ("s.txt", [], "{}"),
    ],
)
def test_only_the_scores_of_trials_change(name: str, header: list[str], line: str, tmp_path: Path) -> None:
    def text(scores: Tensor) -> str:
        return text_of(header + [line.format(*pair) for pair in zip(scores.tolist(), LABELS.tolist(), strict=True)])

    module = LogisticCalibration().fit(SCORES, LABELS)
    rows: list[int] = []
    (tmp_path / name).write_text(text(SCORES))
    rewrite_scores(tmp_path / name, tmp_path / f"out-{name}", module, rows.append)
    assert (tmp_path / f"out-{name}").read_text() == text(module(SCORES))
    assert sum(rows) == 400


@pytest.mark.parametrize("method", ["logistic", "pav"])
def test_ratios_of_a_file_are_those_of_its_tensors(method: str, tmp_path: Path) -> None:
    pairs = zip(SCORES.tolist(), LABELS.tolist(), strict=True)
    (tmp_path / "s.txt").write_text(text_of([f"{score} {label}" for score, label in pairs]))
    held = read_trials(tmp_path / "s.txt", None, ignore)
    fitted = fit_to_trials(tmp_path / "s.txt", held, method, 0.5)  # type: ignore[arg-type]
    rewrite_scores(tmp_path / "s.txt", tmp_path / "llr.txt", fitted.saved.module, ignore)
    ratios = read_trials(tmp_path / "llr.txt", None, ignore)
    assert torch.equal(ratios.scores, fitted.saved.module(SCORES))
    assert fitted.after < fitted.before
    assert fitted.measure == "Cllr"


def test_separated_trials_are_refused_with_their_file(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("1 0\n2 1\n")
    with pytest.raises(PredictionsError, match=r"s\.txt: preds must overlap to be calibrated"):
        fit_to_trials(tmp_path / "s.txt", read_trials(tmp_path / "s.txt", None, ignore), "logistic", 0.5)


@pytest.mark.parametrize(
    ("name", "text", "out", "message"),
    [
        ("s.csv", "score\n1\n", "o.txt", "o.txt: must end in .csv, because the format is that of"),
        ("s.txt", "1\n", "o.csv", "o.csv: must not end in .csv, because the format is that of"),
        ("s.csv", "value\n1\n", "o.csv", "s.csv: must begin with a header that contains score, but begins with"),
        (
            "s.csv",
            "score,label\n1,0\n2\n",
            "o.csv",
            "s.csv, row 2, column label: is missing: the row has 1 of 2 values",
        ),
        ("s.csv", "score\n1\nx\n", "o.csv", "s.csv, row 2, column score: must be a number, but is 'x'"),
        ("s.txt", "1 0\n2\n", "o.txt", "row 2: must contain 2 fields as its first line does, but contains 1 fields"),
        ("s.txt", "a b c d\n", "o.txt", "s.txt: must contain 1 to 3 fields on each line, but begins with 4"),
        ("s.txt", "", "o.txt", "s.txt: must contain 1 to 3 fields on each line, but begins with 0"),
    ],
)
def test_a_bad_file_of_trials_is_refused_and_nothing_is_written(
    name: str, text: str, out: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(PredictionsError, match=re.escape(message)):
        rewrite_scores(tmp_path / name, tmp_path / out, lambda scores: scores, ignore)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "cal.pt"
    path.write_text("not a calibration")
    with pytest.raises(CalibrationFileError, match="is not a file of `mpcs calibrate fit`, and cannot be read"):
        load_calibration(path)
    torch.save({"preds": LOGITS}, path)
    with pytest.raises(CalibrationFileError, match=r"cal\.pt: is not a file of `mpcs calibrate fit`$"):
        load_calibration(path)
    save_calibration(SavedCalibration("vector", VectorScaling(2), ("a", "b", "c")), path)
    with pytest.raises(CalibrationFileError, match=r"its calibration is damaged: .*size mismatch for scale"):
        load_calibration(path)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(file: object, **arrays: object) -> None:
        raise OSError("no space left")

    (tmp_path / "p.npz").write_text("mine")
    monkeypatch.setattr(np, "savez", failing)
    with pytest.raises(OSError, match="no space left"):
        write_predictions(tmp_path / "p.npz", LOGITS, TARGET, NAMES)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("p.npz", "mine")]
