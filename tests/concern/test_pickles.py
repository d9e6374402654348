"""Specs and ranges in pickles and checkpoints: they come back equal, also without running code, or not at all."""

import copy
import copyreg
import io
import pickle
import subprocess
import sys
from typing import Any

import pytest
import torch

from mpcs_torch import ConcernError, ConcernRange, ConcernSpec
from mpcs_torch.concern import weights_only

SPECS = [
    ConcernSpec(3),
    ConcernSpec(
        ["red", "yellow", "green"],
        releases=[["red", "yellow"]],
        factor=0.25,
        concession=0.01,
    ),
    ConcernSpec(
        ["red", "yellow", "green"],
        weights=[[0, 1, 5], [1, 0, 2], [3, 1, 0]],
        dangerous=3,
        refer=[0.5, 0.2, 0.1],
        answers={"red or yellow": 0.3},
        class_groups={"warm": ["red", "yellow"]},
    ),
]
RANGE = ConcernRange(
    [ConcernSpec(2, weights=[[0, 5], [1, 0]])], [ConcernSpec(2, weights=[[0, 20], [1, 0]])]
)
NEGATIVE = (("a", "b"), (), -1.0)
"""The first fields of a spec whose factor breaks its rule."""


def saved(value: object) -> io.BytesIO:
    file = io.BytesIO()
    torch.save({"hyper_parameters": {"concern": value}}, file)
    file.seek(0)
    return file


def load(file: io.BytesIO) -> Any:
    return torch.load(file, weights_only=True)["hyper_parameters"]["concern"]


@pytest.mark.parametrize("concern", [*SPECS, RANGE])
def test_concerns_come_back_equal(concern: ConcernSpec | ConcernRange) -> None:
    assert load(saved(concern)) == concern
    assert pickle.loads(pickle.dumps(concern)) == concern
    assert copy.copy(concern) == copy.deepcopy(concern) == concern
    assert hash(load(saved(concern))) == hash(concern)


@pytest.mark.parametrize(
    ("concern", "made_by"),
    [
        (SPECS[0], (weights_only.spec_from_fields, NEGATIVE)),
        (RANGE, (weights_only.range_from_fields, (RANGE.high, RANGE.low))),
        (RANGE, (weights_only.range_from_fields, ((), ()))),
    ],
)
def test_invalid_arguments_in_a_file_are_refused(
    concern: Any, made_by: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as changed:
        changed.setattr(type(concern), "__reduce__", lambda self: made_by)
        file, plain = saved(concern), pickle.dumps(concern)
    with pytest.raises(ConcernError):
        load(file)
    with pytest.raises(ConcernError):
        pickle.loads(plain)


@pytest.mark.parametrize(
    ("concern", "made_by"),
    [
        (
            SPECS[0],
            (copyreg.__newobj__, (ConcernSpec,), {"classes": ("a", "b"), "factor": -1.0}),
        ),  # type: ignore[attr-defined]
        (SPECS[0], (weights_only.spec_from_fields, (("a", "b"),), {"factor": -1.0})),
        (RANGE, (copyreg.__newobj__, (ConcernRange,), {"low": (), "high": ()})),  # type: ignore[attr-defined]
        (RANGE, (weights_only.range_from_fields, (RANGE.low, RANGE.high), {"low": ()})),
    ],
    ids=["new spec", "changed spec", "new range", "changed range"],
)
def test_fields_that_a_file_sets_without_the_constructor_are_refused(
    concern: Any, made_by: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as changed:
        changed.setattr(type(concern), "__reduce__", lambda self: made_by)
        file = saved(concern)
    with pytest.raises(pickle.UnpicklingError):
        load(file)


@pytest.mark.parametrize("package", ["metrics", "learning"])
def test_each_package_that_uses_concerns_lets_them_load(package: str) -> None:
    file = saved(SPECS[2]).getvalue()
    code = f"import io, torch, mpcs_torch.{package}; torch.load(io.BytesIO({file!r}), weights_only=True)"
    subprocess.run([sys.executable, "-c", code], check=True)
