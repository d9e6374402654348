"""A row of a file is refused by the check that refuses the same row of a tensor, and the error says where it is."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from mpcs_torch import evaluate
from mpcs_torch.errors import InvalidValueError
from mpcs_torch.evaluation.classifier_files import open_models, score_models
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import PredictionsError, ReadOptions
from tests.evaluation.files.write import write_predictions

GOOD = [0.7, 0.2, 0.1]
BAD = 4
"""The index of the bad row."""


def written(path: Path, probs: Tensor, target: Tensor, others: dict[str, Tensor]) -> Path:
    columns = {name: values.tolist() for name, values in others.items()}
    return write_predictions(path, probs, target, "abc", **columns)


PROBS, TARGET = torch.tensor([GOOD] * 9), torch.arange(9) % 3
SHARES = torch.tensor([GOOD] * 9)


def at_bad_row(values: Tensor, row: Any) -> Tensor:
    """Return ``values`` with another row."""
    return torch.cat(
        [values[:BAD], torch.tensor([row], dtype=values.dtype), values[BAD + 1 :]]
    )


@pytest.mark.parametrize(
    ("probs", "target", "others", "column"),
    [
        (at_bad_row(PROBS, [0.7, 0.2, 0.2]), TARGET, {}, None),
        (at_bad_row(PROBS, [1.1234567, -0.1234567, 0]), TARGET, {}, None),
        (at_bad_row(PROBS, [0.7, torch.nan, 0.1]), TARGET, {}, "b"),
        (PROBS, at_bad_row(SHARES, [1.5, 0, 0]), {}, None),
        (PROBS, TARGET, {"weights": at_bad_row(torch.ones(9), -1.0)}, "weights"),
        (PROBS, TARGET, {"frequencies": at_bad_row(torch.ones(9), 0.5)}, "frequencies"),
    ],
    ids=["sum", "range", "gap", "truth", "weight", "frequency"],
)
def test_a_file_is_refused_as_a_tensor_is(
    tmp_path: Path,
    probs: Tensor,
    target: Tensor,
    others: dict[str, Tensor],
    column: str | None,
) -> None:
    with pytest.raises(InvalidValueError) as of_tensor:
        evaluate(probs.double(), target, class_names=["a", "b", "c"], **others)
    path = written(tmp_path / "p.csv", probs, target, others)
    options = ReadOptions(
        weight="weights" if "weights" in others else None,
        frequency="frequencies" if "frequencies" in others else None,
        score_columns=("a", "b", "c") if target.ndim == 1 else (),
    )
    with pytest.raises(PredictionsError) as of_file:
        score_models(open_models([path], options), None)
    assert of_tensor.value.sample == BAD
    assert (of_file.value.row, of_file.value.column) == (BAD + 1, column)
    assert of_file.value.code == of_tensor.value.code


@pytest.mark.parametrize("off", [0, 9e-4, -9e-4])
def test_a_file_accepts_the_sums_that_a_tensor_accepts(tmp_path: Path, off: float) -> None:
    probs = at_bad_row(PROBS.double(), [0.7123456789 + off, 0.2, 0.0876543211])
    evaluate(probs, TARGET, class_names=["a", "b", "c"])
    rows = Predictions(written(tmp_path / "p.csv", probs, TARGET, {})).rows()
    torch.testing.assert_close(rows.scores, probs / probs.sum(1, keepdim=True))


def test_degrees_of_truth_are_not_divided_by_their_sum(tmp_path: Path) -> None:
    probs = torch.tensor(
        [[0.33, 0.33, 0.33]] * 9, dtype=torch.float64
    )  # as shares that are rounded would be
    file = Predictions(written(tmp_path / "p.csv", probs, SHARES.double().sqrt(), {}))
    torch.testing.assert_close(file.rows().scores, probs)
    assert file.notes == []
