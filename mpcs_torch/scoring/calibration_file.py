"""Files of fitted calibrations, which load with ``weights_only=True``."""

from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import torch

from mpcs_torch.calibration import LogisticCalibration, PAVCalibration, TemperatureScaling, VectorScaling
from mpcs_torch.control_characters import has_control, printable
from mpcs_torch.errors import MAX_QUOTED, MpcsError, quoted
from mpcs_torch.files import replace_whole
from mpcs_torch.untrusted_files import FileRuleError, check_whole_tensors, load_tensors

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
    held = {
        "kind": KIND,
        "method": saved.method,
        "class_names": list(saved.class_names),
        "from_logits": saved.from_logits,
        "state": dict(saved.module.state_dict()),
    }
    replace_whole(path, lambda file: torch.save(held, file))


def load_calibration(path: Path) -> SavedCalibration:
    """Read the calibration that `save_calibration` wrote.

    Raises:
        CalibrationFileError: If the file cannot be read or holds something else.
    """
    place = printable(str(path))
    try:
        held = load_tensors(path)
    except FileNotFoundError:
        raise
    except FileRuleError as error:
        raise CalibrationFileError(f"{place}: {error}") from None
    except Exception as error:  # zip and pickle raise many kinds
        raise CalibrationFileError(f"{place}: is not a file of `mpcs calibrate fit`, and cannot be read") from error
    if not isinstance(held, dict) or held.get("kind") != KIND:
        raise CalibrationFileError(f"{place}: is not a file of `mpcs calibrate fit`")
    try:
        return _restored(held)
    except Exception as error:  # any value may have any type
        problem = f"has no {error}" if isinstance(error, KeyError) else str(error)
        reason = printable(" ".join(problem[: 2 * MAX_QUOTED].split()))
        raise CalibrationFileError(f"{place}: its calibration is damaged: {reason}") from error


def _restored(held: dict[str, Any]) -> SavedCalibration:
    method: Method
    method, class_names, from_logits = held["method"], tuple(held["class_names"]), held["from_logits"]
    if method not in get_args(Method):
        raise ValueError(f"unknown method {quoted(method)}")
    if not isinstance(from_logits, bool):
        raise ValueError(f"from_logits must be True or False, but is {quoted(from_logits)}")
    wrong = [name for name in class_names if not isinstance(name, str) or has_control(name)]
    if wrong or len(set(class_names)) < len(class_names):
        raise ValueError(f"class names must differ, and have no control characters: {quoted(wrong or class_names)}")
    check_whole_tensors(held["state"].values())
    module = new_calibration(method, len(class_names))
    module.load_state_dict(held["state"])
    bad = [name for name, value in module.state_dict().items() if not value.isfinite().all()]
    if bad:
        raise ValueError(f"{', '.join(bad)} must be finite")
    return SavedCalibration(method, module, class_names, from_logits)
