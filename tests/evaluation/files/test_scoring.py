"""Files of predictions: all formats give the same values, and errors name row and column."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mpcs_torch import (
    ConcernSpec,
)
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.metrics.named_metrics import BY_NAME
from tests.evaluation.files.alone import score
from tests.evaluation.files.write import SUFFIXES, write_predictions
from tests.metrics.batches import CLASSES, random_batch, soft_batch
from tests.refused import refused_file

LOGITS, TARGET = random_batch(300, seed=5)
PROBS = LOGITS.softmax(1)
CONCERN = ConcernSpec(["a", "b", "c", "d"], releases=[["a", "b"]], factor=0.25)


FORMATS = (*SUFFIXES, ".npy")


def write(folder: Path, suffix: str, scores: Tensor, target: Tensor) -> list[Path]:
    """Write scores and labels to a file, or to two with an array each."""
    if suffix == ".npy":
        for name, array in (("p.npy", scores), ("t.npy", target)):
            np.save(folder / name, array)
        return [folder / "p.npy", folder / "t.npy"]
    names = [str(number) for number in range(scores[0].numel())]
    return [write_predictions(folder / f"p{suffix}", scores, target, names)]


def scored(files: list[Path], *, concern: ConcernSpec | None = None, **options: Any) -> Any:
    return score(opened(files, concern=concern, **options), concern).values


def opened(
    files: list[Path], *, concern: ConcernSpec | None = None, **options: Any
) -> Predictions:
    [path, *labels] = files
    reading = ReadOptions(labels=labels[0] if labels else None, **options)
    return Predictions(path, reading, class_names=concern.classes if concern else None)


SOFT_PROBS, SOFT_TARGET = soft_batch(300, seed=5)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    ("scores", "target"),
    [(PROBS, TARGET), (SOFT_PROBS, SOFT_TARGET), (SOFT_PROBS[:, :1], SOFT_TARGET[:, :1])],
    ids=["labels", "soft labels", "soft labels of one class"],
)
def test_rows_are_read_as_often_as_one_likes_as_they_were_written(
    tmp_path: Path, suffix: str, scores: Tensor, target: Tensor
) -> None:
    predictions = opened(write(tmp_path, suffix, scores, target))
    for _ in range(2):
        rows = predictions.rows()
        torch.testing.assert_close(rows.scores, scores.double())
        torch.testing.assert_close(rows.target, target, check_dtype=False)


@pytest.mark.parametrize("suffix", FORMATS)
def test_logits_and_their_probabilities_have_the_same_values(
    tmp_path: Path, suffix: str
) -> None:
    files = write(tmp_path, suffix, LOGITS, TARGET)
    logits = scored(files, from_logits=True, concern=CONCERN)
    probs = scored(write(tmp_path, suffix, PROBS, TARGET), concern=CONCERN)
    assert logits == pytest.approx(probs, rel=1e-5)
    one = write(tmp_path, suffix, SOFT_PROBS[:, :1], SOFT_TARGET[:, :1])
    with refused_file("number_of_classes_of_file", number=1):
        scored(one, from_logits=True)


def test_probabilities_of_half_precision_are_divided_by_their_sum(tmp_path: Path) -> None:
    rows = opened(write(tmp_path, ".pt", PROBS.bfloat16(), TARGET)).rows()
    torch.testing.assert_close(rows.scores, PROBS.double(), rtol=0.01, atol=0)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("\ndog,cat,target\n0.1,0.9, cat\n0.8,0.2,cat\n\n", ["cat", "dog"]),
        ("1,0,target\n0.1,0.9,0\n0.8,0.2,0\n", ["cat", "dog"]),
        ("1,0,target\n0.1,0.9,0\n0.8,0.2,0\n", None),
    ],
)
def test_columns_are_matched_to_classes_by_name_or_number(
    tmp_path: Path, text: str, names: list[str] | None
) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text)
    rows = Predictions(path, class_names=names).rows()
    right = rows.scores.gather(1, rows.target.unsqueeze(1)).squeeze(1)
    assert right.tolist() == [0.9, 0.2]
    with refused_file("no_scores"):
        Predictions(path, class_names=["cat", "dog", "bird"])


def test_a_metric_of_soft_labels_needs_them(tmp_path: Path) -> None:
    predictions = opened(write(tmp_path, ".npz", PROBS, TARGET))
    with refused_file("no_soft_labels"):
        score(predictions, None, entries=[BY_NAME["soft_f1_micro"]])


def test_metrics_of_pairs_of_classes_are_left_out_where_there_are_too_many(
    tmp_path: Path,
) -> None:
    probs = torch.full((2, 20_000), 1 / 20_000, dtype=torch.float64)
    file = opened(write(tmp_path, ".npy", probs, torch.tensor([0, 19_999])))
    for concern in (None, ConcernSpec(20_000, releases=[[0, 1]])):
        found = score(file, concern)
        assert "mpcs" in found.values
        assert "accuracy" not in found.values
        assert found.confusion is None
        [note] = found.notes
        assert note.startswith("more than 10000 classes: metrics of pairs of classes")
    with refused_file("too_many_classes", metrics="expected_concern", maximum=10000):
        score(file, None, entries=[BY_NAME["expected_concern"], BY_NAME["mpcs"]])


HEADER = "target,0,1\n"


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (f"{HEADER}0,0.5,0.5\n1,0.4", "p.csv: all_values_of_row, row 2, column 1"),
        (f"{HEADER}0,0.5,0.5,0.1\n", "p.csv: name_of_value, row 1, column 4"),
        (f"{HEADER}0,0.5,0.5\n0,x,0.5\n", "p.csv: number, row 2, column 0"),
        (f"{HEADER}0,nan,0.5\n", "probabilities, row 1, column 0"),
        (f"{HEADER}0,-2,3\n", "p.csv: sums"),
        (f"{HEADER}0.5,0.5,0.5\n", "p.csv: label_of, row 1, column target"),
        (f"{HEADER}nan,0.5,0.5\n", "p.csv: label_of, row 1, column target"),
        (HEADER, "p.csv: rows_below_header"),
        ("", "p.csv: rows_in_file"),
        ("target,a\n0,1\n", "p.csv: no_scores"),
        ("a,b\n0.5,0.5\n", "no_labels"),
        ("target,a,a,b\n", "p.csv: different_columns"),
        ("target_a,target_b,a,b\n1,-2,0.5,0.5\n", "degrees, row 1"),
        (
            "target_a,target_b,a,b\n1,3,0.5,0.5\n0,0,0.5,0.5\n",
            "degrees, row 2, column target_a",
        ),
    ],
)
def test_a_damaged_csv_is_refused_with_its_place(
    tmp_path: Path, text: str, refusal: str
) -> None:
    (tmp_path / "p.csv").write_text(text)
    with refused_file(refusal):
        scored([tmp_path / "p.csv"])


WRONG = torch.arange(300) == 200
ONE = WRONG.unsqueeze(1) & (torch.arange(CLASSES) == 1)
"""The second class of that row."""


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    ("scores", "target", "refusal"),
    [
        (PROBS.masked_fill(ONE, torch.nan), TARGET, "probabilities, row 201"),
        (LOGITS.masked_fill(ONE, torch.inf), TARGET, "logits, row 201"),
        (PROBS.masked_fill(ONE, 0.9999), TARGET, "probabilities, row 201"),
        (PROBS, SOFT_TARGET.masked_fill(ONE, 1.5), "degrees, row 201"),
    ],
    ids=["score", "logit", "sum", "soft label"],
)
def test_errors_count_rows_from_1(
    suffix: str, scores: Tensor, target: Tensor, refusal: str, tmp_path: Path
) -> None:
    with refused_file(refusal):
        scored(
            write(tmp_path, suffix, scores, target), from_logits=bool((scores < 0).any())
        )


@pytest.mark.parametrize("damaged", [100, 180, 290])
def test_lines_that_are_no_text_are_named(damaged: int, tmp_path: Path) -> None:
    (path,) = write(tmp_path, ".csv", PROBS, TARGET)
    lines = path.read_bytes().split(b"\n")  # the header is row 0
    lines[damaged] = b"\xff" + lines[damaged]
    path.write_bytes(b"\n".join(lines))
    with refused_file("p.csv: utf_8_in_line", line=damaged + 1):
        scored([path])


@pytest.mark.parametrize(
    ("scores", "target", "refusal"),
    [
        (PROBS, TARGET.masked_fill(WRONG, 7), "label_of, row 201"),
        (PROBS[:, 0], TARGET, "many_labels"),
        (PROBS, TARGET[:5], "as_many_rows"),
        (PROBS, TARGET + 0.5, "label_of, row 1, column labels"),
        (LOGITS.long(), TARGET, "sums"),
        (LOGITS.masked_fill(WRONG.unsqueeze(1), -torch.inf), TARGET, "logits, row 201"),
    ],
)
def test_arrays_that_break_a_rule_are_refused(
    scores: Tensor, target: Tensor, refusal: str, tmp_path: Path
) -> None:
    files = write(tmp_path, ".npy", scores, target)
    with refused_file(refusal):
        scored(files, from_logits=refusal.startswith("logits"))


def test_files_without_arrays_of_scores_and_labels_are_refused(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("p.npz", "p.npy", "p.pt")]
    np.savez(paths[0], preds=PROBS)
    np.save(paths[1], PROBS)
    torch.save([PROBS], paths[2])
    codes = ("p.npz: no_labels", "p.npy: no_labels", "tensors_by_name")
    for path, code in zip(paths, codes, strict=True):
        with refused_file(code):
            scored([path])
    with refused_file("size_of_lists, column preds", size=4, number=2):
        scored(write(tmp_path, ".pt", PROBS, TARGET), concern=ConcernSpec(2))
