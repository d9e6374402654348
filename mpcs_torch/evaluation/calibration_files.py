"""Fit calibrations to files of predictions and of trials, save them, and apply them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor

from mpcs_torch.calibration import LogisticCalibration, PAVCalibration, TemperatureScaling, VectorScaling
from mpcs_torch.calibration.priors import PriorEstimate, estimate_priors
from mpcs_torch.errors import MpcsError, has_control, quoted
from mpcs_torch.evaluation.files.chunks import Advance, PredictionsError
from mpcs_torch.evaluation.files.matched_rows import text_of
from mpcs_torch.evaluation.files.predictions import Predictions, ReadOptions, open_with_columns
from mpcs_torch.evaluation.files.trials import Trials
from mpcs_torch.functional import cross_entropy
from mpcs_torch.functional.detection.llr_cost import cllr_of
from mpcs_torch.io.atomic_files import replace_whole
from mpcs_torch.io.untrusted_files import check_whole_tensors, load_fitted, physical_memory

ClassMethod = Literal["temperature", "vector"]
TrialMethod = Literal["logistic", "pav"]
Method = Literal[ClassMethod, TrialMethod]
Calibration = TemperatureScaling | VectorScaling | LogisticCalibration | PAVCalibration

KIND = "mpcs_torch calibration"
"""Names the kind of the file in its field ``kind``."""


class CalibrationFileError(MpcsError, ValueError):
    """A file that does not hold a calibration."""


class SavedCalibration(NamedTuple):
    """A calibration and what it was fitted to."""

    method: Method
    module: Calibration
    class_names: tuple[str, ...] = ()
    """In index order; empty for detection scores."""
    from_logits: bool = False
    """Whether it was fitted to logits rather than to logarithms of probabilities."""


def new_calibration(method: Method, num_classes: int) -> Calibration:
    """Create the calibration of a method, not fitted."""
    match method:
        case "temperature":
            return TemperatureScaling()
        case "vector":
            return VectorScaling(num_classes)
        case "logistic":
            return LogisticCalibration()
        case "pav":
            return PAVCalibration()


def save_calibration(saved: SavedCalibration, path: Path) -> None:
    """Write a calibration to a file, in one step."""
    content = {
        "kind": KIND,
        "method": saved.method,
        "class_names": list(saved.class_names),
        "from_logits": saved.from_logits,
        "state": dict(saved.module.state_dict()),
    }
    replace_whole(path, lambda file: torch.save(content, file))


def load_calibration(path: Path) -> SavedCalibration:
    """Read the calibration that `save_calibration` wrote.

    Raises:
        CalibrationFileError: If the file cannot be read or holds something else.
    """
    source, subject = "`mpcs calibrate fit`", "its calibration"
    return load_fitted(path, KIND, _restored, source=source, subject=subject, error=CalibrationFileError)


def _restored(content: dict[str, Any]) -> SavedCalibration:
    method: Method
    method, class_names, from_logits = content["method"], tuple(content["class_names"]), content["from_logits"]
    if method not in get_args(Method):
        raise ValueError(f"unknown method {quoted(method)}")
    if not isinstance(from_logits, bool):
        raise ValueError(f"from_logits must be True or False, but is {quoted(from_logits)}")
    wrong = [name for name in class_names if not isinstance(name, str) or has_control(name)]
    if wrong or len(set(class_names)) < len(class_names):
        raise ValueError(f"class names must differ, and have no control characters: {quoted(wrong or class_names)}")
    check_whole_tensors(content["state"].values())
    module = new_calibration(method, len(class_names))
    module.load_state_dict(content["state"])
    bad = [name for name, value in module.state_dict().items() if not value.isfinite().all()]
    if bad:
        raise ValueError(f"{', '.join(bad)} must be finite")
    return SavedCalibration(method, module, class_names, from_logits)


MEMORY_SHARE = 8
"""Calibrations and rules hold about so many copies of all logits: the file's, their sums, their derivatives."""


class FittedCalibration(NamedTuple):
    """A calibration and what it changes on the rows that it was fitted to."""

    saved: SavedCalibration
    rows: int
    measure: str
    """The name of the measure that the fit lowers."""
    before: float
    after: float


class CalibratedPredictions(NamedTuple):
    """The rows of a file of predictions after calibration."""

    scores: Tensor
    """(N, C), float64: logits, or probabilities if those were given."""
    target: Tensor
    """(N,), int64; (N, 0) if the file has no labels."""
    class_names: list[str]
    texts: dict[str, list[str]]
    """The other columns of the file."""
    notes: list[str]
    """Sentences on the reading of the file where that was not plain."""


def fit_to_predictions(predictions: Predictions, method: ClassMethod, advance: Advance) -> FittedCalibration:
    """Fit temperature or vector scaling to the rows of a file.

    Warns:
        CalibrationWarning: If there is no finite optimum.
    """
    logits, target, _ = all_rows(predictions, advance)
    names = tuple(predictions.class_names)
    module = new_calibration(method, len(names))
    try:
        module.fit(logits, target)
    except ValueError as error:
        raise PredictionsError(predictions.path, str(error)) from None
    before, after = (
        cross_entropy(scores, target, num_classes=len(names)).item() for scores in (logits, module(logits))
    )
    saved = SavedCalibration(method, module, names, predictions.from_logits)
    return FittedCalibration(saved, len(logits), "cross entropy", before, after)


def fit_to_trials(path: Path, trials: Trials, method: TrialMethod, p_target: float) -> FittedCalibration:
    """Fit logistic or PAV calibration to the trials of a file; ``p_target``, in (0, 1), is for logistic calibration.

    Warns:
        CalibrationWarning: If the scores are reversed or carry no information.
    """
    module = LogisticCalibration(p_target) if method == "logistic" else new_calibration(method, 0)
    try:
        module.fit(*trials)
    except ValueError as error:
        raise PredictionsError(path, str(error)) from None
    before, after = (cllr_of(scores, trials.labels).item() for scores in (trials.scores, module(trials.scores)))
    return FittedCalibration(SavedCalibration(method, module), len(trials.scores), "Cllr", before, after)


def calibrate_predictions(
    saved: SavedCalibration, path: Path, reading: ReadOptions, advance: Advance
) -> CalibratedPredictions:
    """Apply temperature or vector scaling to a file, which need not have labels.

    The file must hold logits if the calibration was fitted to logits, and else probabilities.
    """
    reading, names = reading._replace(from_logits=saved.from_logits), _unless_numbered(saved.class_names)
    predictions = open_with_columns(path, reading, class_names=names, needs_labels=False)
    if len(predictions.class_names) != len(saved.class_names):
        problem = f"has scores for {len(predictions.class_names)} classes, but {len(saved.class_names)} are expected"
        raise PredictionsError(path, problem)
    logits, labels, texts = all_rows(predictions, advance)
    scores = saved.module(logits)
    bad = ~scores.amax(dim=1).isfinite()
    if bad.any():
        raise PredictionsError(path, "the calibrated logits are not finite", row=int(bad.nonzero()[0]) + 1)
    scores = scores if saved.from_logits else scores.softmax(dim=1)
    return CalibratedPredictions(scores, labels, predictions.class_names, texts, predictions.notes())


def _unless_numbered(class_names: Sequence[str]) -> Sequence[str] | None:
    """Return the names of classes; None for numbers, which other files may name."""
    return None if [*class_names] == [*map(str, range(len(class_names)))] else class_names


def estimate_file_priors(
    validation: Predictions, path: Path, reading: ReadOptions, advance: Advance
) -> tuple[PriorEstimate, list[str]]:
    """Estimate the class frequencies of another file; also return what was not plain in reading it, in sentences."""
    names = _unless_numbered(validation.class_names)
    unlabelled = open_with_columns(path, reading._replace(target=None), class_names=names, needs_labels=False)
    logits, target, _ = all_rows(validation, advance)
    others = all_rows(unlabelled, advance).logits
    try:
        return estimate_priors(logits, target, others), unlabelled.notes()
    except ValueError as error:
        faulty = path if str(error).startswith("unlabelled") else validation.path
        raise PredictionsError(faulty, str(error)) from None


class AllRows(NamedTuple):
    """The rows of a file."""

    logits: Tensor
    """(N, C), float64."""
    target: Tensor
    """(N,), int64; (N, 0) if the file has no labels."""
    texts: dict[str, list[str]]
    """The columns that are neither scores nor labels, as far as they were asked for."""


def all_rows(predictions: Predictions, advance: Advance) -> AllRows:
    """Read all logits, labels and texts of a file; refuse no rows, and rows that take too much of the memory."""
    chunks, values, most = [], 0, physical_memory() // MEMORY_SHARE
    for chunk in predictions.logits():
        chunks.append(chunk)
        values += chunk.scores.numel()
        if values * chunk.scores.element_size() > most:
            problem = f"all rows must be in memory at once, but take more than 1/{MEMORY_SHARE} of it, {most} bytes"
            raise PredictionsError(predictions.path, problem, row=chunk.first_row)
        advance(len(chunk.scores))
    if not chunks:
        raise PredictionsError(predictions.path, "has no rows")
    texts = {name: [text_of(value) for chunk in chunks for value in chunk.texts[name]] for name in chunks[0].texts}
    return AllRows(torch.cat([chunk.scores for chunk in chunks]), torch.cat([chunk.target for chunk in chunks]), texts)
