"""Fit calibrations to files of predictions or trials, save calibrations, and apply them to files."""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from torch import Tensor

from mpcs_torch.calibration import (
    LogisticCalibration,
    PAVCalibration,
    TemperatureScaling,
    VectorScaling,
)
from mpcs_torch.calibration.priors import PriorEstimate, estimate_priors
from mpcs_torch.errors import (
    InvalidValueError,
    Rule,
    has_control,
)
from mpcs_torch.evaluation.cautions import shared, unread_units
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import (
    Advance,
    PredictionsError,
    ReadOptions,
    naming_file,
)
from mpcs_torch.evaluation.files.trials import Trials
from mpcs_torch.evaluation.files.write import check_copy, copy_table
from mpcs_torch.functional import cross_entropy
from mpcs_torch.functional.detection.llr_cost import cllr_from_scores
from mpcs_torch.io.artifacts import load_artifact, save_artifact
from mpcs_torch.io.local_paths import local_path
from mpcs_torch.io.untrusted_files import check_whole_tensors, read_text

ClassMethod = Literal["temperature", "vector"]
TrialMethod = Literal["logistic", "pav"]
Method = Literal[ClassMethod, TrialMethod]
Calibration = TemperatureScaling | VectorScaling | LogisticCalibration | PAVCalibration

KIND = "mpcs_torch calibration 2"
"""The value of the field ``kind`` by which a calibration file is recognized."""


class SavedCalibration(NamedTuple):
    """A calibration and the kind of scores that it was fitted to."""

    method: Method
    module: Calibration
    class_names: tuple[str, ...] = ()
    """The names of the classes in index order; empty for detection scores."""
    from_logits: bool = False
    """Whether the calibration was fitted to logits rather than to logarithms of probabilities."""
    lower_is_target: bool = False
    """Whether targets have lower scores than non-targets; for detection scores only."""


def new_calibration(method: Method, num_classes: int, p_target: float = 0.5) -> Calibration:
    """Create an unfitted calibration."""
    if method == "vector":
        return VectorScaling(num_classes)
    if method == "logistic":
        return LogisticCalibration(p_target)
    if method == "temperature":
        return TemperatureScaling()
    return PAVCalibration()


def save_calibration(saved: SavedCalibration, path: str | Path) -> None:
    """Write a calibration to a file, which is replaced in one step."""
    path = local_path(path, "path")
    content = saved._asdict() | {"class_names": [*saved.class_names]}
    content["state"] = dict(content.pop("module").state_dict())
    save_artifact(content, path, kind=KIND)


def load_calibration(path: str | Path) -> SavedCalibration:
    """Read the calibration that `save_calibration` wrote.

    Raises:
        ValueError: If the file cannot be read, or contains something else.
    """
    return load_artifact(
        local_path(path, "path"),
        _restored,
        kind=KIND,
        source="`mpcs calibrate fit`",
        subject="its calibration",
    )


def _restored(content: dict[str, Any]) -> SavedCalibration:
    method: Method
    method = content["method"]
    class_names = tuple(content["class_names"])
    from_logits = content["from_logits"]
    if method not in get_args(Method):
        raise InvalidValueError("unknown_method", "method", method)
    if not isinstance(from_logits, bool):
        raise InvalidValueError("one_of", "from_logits", from_logits, choices=[True, False])
    wrong = [name for name in class_names if not isinstance(name, str) or has_control(name)]
    if wrong or len(set(class_names)) < len(class_names):
        raise InvalidValueError("plain_names", "class names", wrong or class_names)
    check_whole_tensors(content["state"].values())
    module = new_calibration(method, len(class_names))
    module.load_state_dict(content["state"])
    bad = [
        name for name, value in module.state_dict().items() if not value.isfinite().all()
    ]
    if bad:
        raise InvalidValueError("finite", ", ".join(bad))
    return SavedCalibration(
        method, module, class_names, from_logits, bool(content["lower_is_target"])
    )


class FittedCalibration(NamedTuple):
    """A calibration, and the loss on the rows to which it was fitted, before and after calibration."""

    saved: SavedCalibration
    rows: int
    measure: str
    """The name of the loss that the fit minimizes."""
    before: float
    after: float


def fit_to_predictions(
    predictions: Predictions, method: ClassMethod, advance: Advance
) -> FittedCalibration:
    """Fit temperature or vector scaling to the rows of a file.

    Warns:
        CalibrationWarning: If the fit has no finite optimum.
    """
    rows = predictions.logits()
    names = tuple(predictions.class_names)
    advance(len(rows.scores))
    saved = SavedCalibration(
        method, new_calibration(method, len(names)), names, predictions.options.from_logits
    )
    loss = partial(cross_entropy, num_classes=len(names))
    return _fitted(predictions.path, saved, rows.scores, rows.target, "cross entropy", loss)


def fit_to_trials(
    path: Path,
    trials: Trials,
    method: TrialMethod,
    p_target: float,
    *,
    lower_is_target: bool = False,
) -> FittedCalibration:
    """Fit logistic or PAV calibration to ``trials``, which were read from the file ``path``.

    Only logistic calibration uses ``p_target``, the prior probability of a target, in (0, 1). If targets have the lower
    scores in the file (``lower_is_target``), the scores in ``trials`` must already be negated.

    Warns:
        CalibrationWarning: If the scores are reversed or carry no information.
    """
    saved = SavedCalibration(
        method, new_calibration(method, 0, p_target), lower_is_target=lower_is_target
    )
    return _fitted(path, saved, *trials, "Cllr", cllr_from_scores)


def _fitted(
    path: Path,
    saved: SavedCalibration,
    scores: Tensor,
    target: Tensor,
    measure: str,
    loss: Callable[..., Tensor],
) -> FittedCalibration:
    with naming_file(path):
        saved.module.fit(scores, target)
    before = loss(scores, target).item()
    after = loss(saved.module(scores), target).item()
    return FittedCalibration(saved, len(scores), measure, before, after)


def open_to_calibrate(
    saved: SavedCalibration, path: Path, options: ReadOptions
) -> Predictions:
    """Open predictions that ``saved`` will calibrate, labelled or not; read logits if it was fitted to logits."""
    return _open_unlabelled(
        path, options._replace(from_logits=saved.from_logits), saved.class_names
    )


def open_unlabelled(like: Predictions, path: Path) -> Predictions:
    """Open predictions, with or without labels, that have the same classes as ``like``."""
    label = like.options.label_column
    label = label if label in open_table(path).names else None
    return _open_unlabelled(
        path, like.options._replace(label_column=label, labels=None), like.class_names
    )


def _open_unlabelled(
    path: Path, options: ReadOptions, class_names: Sequence[str]
) -> Predictions:
    """Open predictions for ``class_names``; if these are only the numbers 0, 1, ..., the file may have other names."""
    is_numbered = [*class_names] == [*map(str, range(len(class_names)))]
    predictions = Predictions(
        path, options, class_names=None if is_numbered else class_names, needs_labels=False
    )
    number, expected = len(predictions.class_names), len(class_names)
    if number != expected:
        rule = Rule("expected_classes", number=number, expected=expected)
        raise PredictionsError(path, rule)
    return predictions


def calibrate_predictions(
    saved: SavedCalibration, predictions: Predictions, out: Path, advance: Advance
) -> None:
    """Copy a file of predictions with calibrated scores; logits stay logits, and probabilities stay probabilities."""
    check_copy(predictions.table, out)
    rows = predictions.logits()
    advance(len(rows.scores))
    scores = saved.module(rows.scores)
    bad = ~scores.amax(dim=1).isfinite()
    if bad.any():
        row = int(rows.numbers[bad.nonzero()[0]])
        raise PredictionsError(predictions.path, Rule("finite_if_calibrated"), row=row)
    scores = scores if saved.from_logits else scores.softmax(dim=1)
    if predictions.roles.form == "positive":
        # The file has one number for both classes: the probability of the second, or its logit minus that of the first.
        of_second = scores[:, 1:]
        scores = of_second - scores[:, :1] if saved.from_logits else of_second
    names = predictions.roles.scores
    columns = {names[0]: scores}  # a column of lists
    if predictions.roles.form != "lists":
        columns = dict(zip(names, scores.T, strict=True))
    table = predictions.table
    # Labels that were joined from another file are left out: --labels may join them again.
    own_names = [name for name in table.names if name not in table.joined]
    copy_table(
        replace(table, names=own_names),
        out,
        partial(rows.spread, columns),
        names=predictions.roles.usual_names(),
    )


def estimate_file_priors(
    validation: Predictions,
    unlabelled: Predictions,
    class_groups: Mapping[str, Sequence[int]],
    advance: Advance,
) -> PriorEstimate:
    """Estimate the frequencies of the classes, and of ``class_groups``, in the file ``unlabelled``.

    The labelled file ``validation`` shows how the model scores each class. Rows of a cluster count as dependent.

    Warns:
        EvaluationWarning: The warning E2, if a column seems to name units such as patients, but there are no clusters.
    """
    known, others = validation.logits(), unlabelled.logits()
    advance(len(known.scores) + len(others.scores))
    cluster = validation.options.cluster
    clusters = [
        None if cluster is None else rows.others.groups(cluster).of_rows()
        for rows in (known, others)
    ]
    for predictions in (validation, unlabelled):
        for caution in shared(unread_units(predictions)):
            warnings.warn(caution, stacklevel=2)
    groups: dict[str, Any] = {
        "clusters": clusters[0],
        "unlabelled_clusters": clusters[1],
        "class_groups": class_groups,
    }
    try:
        return estimate_priors(known.scores, known.target, others.scores, **groups)
    except InvalidValueError as error:
        is_unlabelled = error.argument in ("unlabelled", "unlabelled_clusters")
        faulty = unlabelled.path if is_unlabelled else validation.path
        raise PredictionsError(faulty, error) from None


def plain_priors(estimate: PriorEstimate, names: Sequence[str]) -> dict[str, Any]:
    """Return ``estimate`` and the class ``names`` as a dictionary of plain types, which `load_priors` reads as JSON."""
    plain: dict[str, Any] = {"classes": [*names]}
    for name, value in estimate._asdict().items():
        plain[name] = value.tolist() if isinstance(value, Tensor) else value
    plain["class_groups"] = {}
    for group, share in estimate.class_groups.items():
        plain["class_groups"][group] = share._asdict()
    plain["told_apart"] = {}
    for labels, share in estimate.told_apart.items():
        part = " or ".join(names[label] for label in labels)
        plain["told_apart"][part] = share._asdict()
    plain["problem"] = estimate.problem(names)
    return plain


def load_priors(path: str | Path, class_names: Sequence[str]) -> list[float]:
    """Read the priors that `mpcs calibrate priors --json` prints; return them in the order of ``class_names``.

    Raises:
        ValueError: If the file contains something else, or says that its priors must not be used.
    """
    path = local_path(path, "path")
    try:
        plain = json.loads(read_text(path))
        priors = dict(zip(plain["classes"], map(float, plain["priors"]), strict=True))
        problem = plain["problem"]
        if sorted(priors) != sorted(class_names):
            raise InvalidValueError("priors_of_classes", classes=[*priors])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        names = [*class_names]
        raise InvalidValueError(
            "priors_of_command", f"{path}:", classes=names, cause=str(error)
        ) from None
    if problem:
        raise InvalidValueError("unusable_priors", f"{path}:", problem=problem)
    return [priors[name] for name in class_names]
