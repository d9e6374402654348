"""Files of predictions: all formats give the same values, and errors name row and column."""

import csv
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support, recall_score
from torch import Tensor

from mpcs_torch import (
    ConcernSpec,
    DangerousErrors,
    MetaPatternConcernScore,
    MulticlassQualityMetrics,
    ProbabilityAccuracy,
    SoftF1,
    evaluate,
)
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.reading import PredictionsError, ReadOptions
from mpcs_torch.functional import soft_kl_divergence
from mpcs_torch.metrics.register import BY_NAME
from tests.evaluation.files.alone import score
from tests.metrics.batches import CLASSES, random_batch, soft_batch

LOGITS, TARGET = random_batch(300, seed=5)
PROBS = LOGITS.softmax(1)
CONCERN = ConcernSpec(["a", "b", "c", "d"], releases=[["a", "b"]], factor=0.25)


def write_npz(folder: Path, scores: Tensor, target: Tensor) -> list[Path]:
    np.savez_compressed(folder / "p.npz", preds=scores, target=target)
    return [folder / "p.npz"]


def write_npy(folder: Path, scores: Tensor, target: Tensor) -> list[Path]:
    np.save(folder / "p.npy", scores)
    np.save(folder / "t.npy", target)
    return [folder / "p.npy", folder / "t.npy"]


def write_pt(folder: Path, scores: Tensor, target: Tensor) -> list[Path]:
    torch.save({"preds": scores, "target": target}, folder / "p.pt")
    return [folder / "p.pt"]


def columns(scores: Tensor, target: Tensor) -> dict[str, list[float]]:
    labels = (
        {"target": target}
        if target.ndim == 1
        else {f"target_{c}": t for c, t in enumerate(target.t())}
    )
    return {
        name: column.tolist()
        for name, column in {**labels, **dict(enumerate(scores.t()))}.items()
    }  # type: ignore


def write_csv(folder: Path, scores: Tensor, target: Tensor) -> list[Path]:
    table = columns(scores, target)
    with (folder / "p.csv").open("w", newline="") as file:
        csv.writer(file).writerows([table.keys(), *zip(*table.values(), strict=True)])
    return [folder / "p.csv"]


def write_parquet(folder: Path, scores: Tensor, target: Tensor) -> list[Path]:
    table = {str(name): column for name, column in columns(scores, target).items()}
    pyarrow.parquet.write_table(pyarrow.table(table), folder / "p.parquet")
    return [folder / "p.parquet"]


WRITERS = [write_npz, write_npy, write_pt, write_csv, write_parquet]
Write = Callable[[Path, Tensor, Tensor], list[Path]]


def scored(
    files: list[Path], *, from_logits: bool = False, concern: ConcernSpec | None = None
) -> dict[str, float]:
    return score(opened(files, from_logits=from_logits, concern=concern), concern).values


def opened(
    files: list[Path], *, from_logits: bool = False, concern: ConcernSpec | None = None
) -> Predictions:
    reading = ReadOptions(labels=(files[1:] or [None])[0], from_logits=from_logits)
    return Predictions(
        files[0], reading, class_names=None if concern is None else concern.classes
    )


@pytest.mark.parametrize("write", WRITERS)
def test_every_format_of_hard_labels_gives_the_values_of_the_metrics(
    tmp_path: Path, write: Write
) -> None:
    values = scored(write(tmp_path, LOGITS, TARGET), from_logits=True, concern=CONCERN)
    mpcs = MetaPatternConcernScore(CLASSES, concern=CONCERN)
    assert values["mpcs"] == pytest.approx(mpcs(LOGITS.double(), TARGET).item())
    errors = DangerousErrors(CLASSES, concern=CONCERN)(LOGITS, TARGET)
    assert values["dangerous"] == errors
    quality = MulticlassQualityMetrics(CLASSES)(LOGITS, TARGET)
    assert values["macro_precision"] == pytest.approx(quality["macro_precision"].item())
    measured = ProbabilityAccuracy(CLASSES)(LOGITS.double(), TARGET)["measured_robustness"]
    assert values["measured_robustness"] == pytest.approx(measured.item(), abs=1e-3)
    assert values["least_concern_cost"] != values["expected_concern"]
    assert values == pytest.approx(
        scored(write(tmp_path, PROBS, TARGET), concern=CONCERN), rel=1e-5
    )


@pytest.mark.slow
@pytest.mark.parametrize("write", WRITERS)
def test_every_format_of_soft_labels_gives_the_values_of_the_metrics(
    tmp_path: Path, write: Write
) -> None:
    probs, target = soft_batch(100, seed=1)
    values = scored(write(tmp_path, probs, target))
    assert values["soft_f1_macro"] == pytest.approx(
        SoftF1(CLASSES, average="macro")(probs, target).item()
    )
    assert values["soft_kl_divergence"] == pytest.approx(
        soft_kl_divergence(probs, target, epsilon=1e-7).item()
    )
    assert "mpcs" not in values
    shares = scored(write(tmp_path, probs, target), concern=CONCERN)
    assert shares["brier_score"] == pytest.approx(
        evaluate(probs, target, concern=CONCERN).value("brier_score")
    )
    assert "soft_f1_macro" not in shares


def test_soft_labels_need_not_sum_to_one(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(
        "rain,wind,target_wind,target_rain\n0.9,0.8,0.8,0.9\n0.1,1.0000005,1,0.1\n"
    )
    assert scored([tmp_path / "p.csv"])["soft_f1_macro"] == pytest.approx(1)


@pytest.mark.parametrize("write", WRITERS)
def test_soft_labels_can_be_of_one_class(tmp_path: Path, write: Write) -> None:
    probs, target = soft_batch(30, seed=2)
    files = write(tmp_path, probs[:, :1], target[:, :1])
    assert scored(files)["soft_f1_micro"] == pytest.approx(
        SoftF1(1)(probs[:, 0], target[:, 0]).item()
    )
    with pytest.raises(
        PredictionsError, match="must have scores of 2 to 10000000 classes, but has 1: 0"
    ):
        scored(files, from_logits=True)


def test_labels_may_be_names_of_classes(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("\ndog,cat,target\n0.1,0.9, cat\n0.8,0.2,cat\n\n")
    animals = ConcernSpec(["cat", "dog"], releases=[["cat", "dog"]])
    for concern in (None, animals):
        values = scored([tmp_path / "p.csv"], concern=concern)
        assert (values["misclassification_rate"], values.get("dangerous")) == (
            0.5,
            None if concern is None else 0,
        )


def test_each_class_has_its_precision_recall_and_error_rate(tmp_path: Path) -> None:
    found = score(opened(write_npz(tmp_path, PROBS, TARGET)))
    decided = PROBS.argmax(dim=1)
    expected = precision_recall_fscore_support(TARGET, decided)
    for label, (name, row) in enumerate(found.per_class().items()):
        assert name == str(label)
        assert list(row) == [
            "samples",
            "precision",
            "recall",
            "specificity",
            "error_rate",
            "dangerous_rate",
        ]
        precision, recall, _, samples = (values[label] for values in expected)
        specificity = recall_score(label != TARGET, decided != label)
        assert list(row.values()) == pytest.approx(
            [samples, precision, recall, specificity, 1 - recall, 1 - recall]
        )
    assert found.confusion is not None
    assert found.confusion.tolist() == confusion_matrix(TARGET, decided).tolist()
    table = found.class_table()
    assert table is not None
    assert [row[0] for row in table.rows] == ["0", "1", "2", "3"]


def test_metrics_and_their_settings_are_chosen(tmp_path: Path) -> None:
    (path,) = write_npz(tmp_path, PROBS, TARGET)
    names = ["brier_score", "mpcs", "cross_entropy"]
    entries = [BY_NAME[name] for name in names]
    chosen = score(Predictions(path), None, entries=entries)
    assert list(chosen.values) == names
    assert chosen.confusion is None
    assert chosen.values["cross_entropy"] == pytest.approx(
        torch.nn.functional.cross_entropy(LOGITS, TARGET).item()
    )
    settings = {"k": 2, "t": 20}
    changed = score(Predictions(path), None, entries=entries, settings=settings)
    mpcs = MetaPatternConcernScore(CLASSES, **settings)
    assert changed.values["mpcs"] == pytest.approx(mpcs(LOGITS.double(), TARGET).item())
    assert chosen.values["mpcs"] != changed.values["mpcs"]
    for wrong, message in (
        ("soft_f1_micro", "has one class for each row"),
        ("mpcs", "k must be from 1 to"),
    ):
        with pytest.raises(PredictionsError, match=message):
            score(Predictions(path), None, entries=[BY_NAME[wrong]], settings={"k": 9})


def test_metrics_of_pairs_of_classes_are_left_out_where_there_are_too_many(
    tmp_path: Path,
) -> None:
    classes = 20_000
    probs, target = (
        torch.full((2, classes), 1 / classes, dtype=torch.float64),
        torch.tensor([0, classes - 1]),
    )
    file = opened(write_npy(tmp_path, probs, target))
    for concern in (None, ConcernSpec(classes, releases=[[0, 1]])):
        found = score(file, concern)
        assert "mpcs" in found.values
        assert "accuracy" not in found.values
        assert found.confusion is None
        (note,) = found.notes
        assert (
            note
            == "more than 10000 classes: metrics of pairs of classes, such as accuracy, are left out"
        )
    with pytest.raises(
        PredictionsError,
        match="has too many classes, but expected_concern must have at most 10000",
    ):
        score(file, None, entries=[BY_NAME["expected_concern"], BY_NAME["mpcs"]])


def test_columns_are_matched_to_classes_by_name_or_number(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("1,0,target\n0.1,0.9,0\n")
    assert scored([path])["misclassification_rate"] == 0
    assert (
        scored([path], concern=ConcernSpec(["cat", "dog"]))["misclassification_rate"] == 0
    )
    path.write_text("cat,bird,target\n0.1,0.9,0\n")
    with pytest.raises(PredictionsError, match="there is no column for dog"):
        scored([path], concern=ConcernSpec(["cat", "dog", "bird"]))


def test_half_precision_probabilities_may_sum_to_about_one(tmp_path: Path) -> None:
    torch.save({"preds": PROBS.bfloat16(), "target": TARGET}, tmp_path / "p.pt")
    exact = scored(write_npz(tmp_path, PROBS, TARGET))
    assert scored([tmp_path / "p.pt"])["decisiveness"] == pytest.approx(
        exact["decisiveness"], abs=0.002
    )


def test_predictions_may_be_read_twice(tmp_path: Path) -> None:
    for write in WRITERS:
        file = opened(write(tmp_path, PROBS, TARGET))
        first, second = (score(file).values for _ in range(2))
        assert first == pytest.approx(second, nan_ok=True)


HEADER = "target,0,1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"{HEADER}0,0.5,0.5\n1,0.4",
            "p.csv, row 2, column 1: is missing: the row has 2 of 3 values",
        ),
        (
            f"{HEADER}0,0.5,0.5,0.1\n",
            "p.csv, row 1, column 4: has no name: the row has 4 values",
        ),
        (
            f"{HEADER}0,0.5,0.5\n0,x,0.5\n",
            "p.csv, row 2, column 0: must be a number, but is 'x'",
        ),
        (f"{HEADER}0,1,0\n1,,0.5\n", "p.csv, row 2, column 0: must be probabilities"),
        (
            f"{HEADER}0,nan,0.5\n",
            "but is missing (--missing drop leaves such rows out)",
        ),
        (
            f"{HEADER}0,-2,3\n",
            "p.csv: 0, 1 are not scores that sum to 1: rows sum to 1 to 1",
        ),
        (
            f"{HEADER}0,0.5,0.4\n",
            "p.csv, row 1: 0, 1 must be probabilities >= 0 that sum to 1 over dimension 1 (--logits reads logits; "
            "--score-columns names other columns; of several labels, `mpcs detect` scores one), but is [0.5, 0.4]",
        ),
        (
            f"{HEADER}3,0.5,0.5\n",
            "p.csv, row 1, column target: must be a class, one of 0, 1 (--label-column and --score-columns",
        ),
        (
            f"{HEADER}0.5,0.5,0.5\n",
            "p.csv, row 1, column target: must be a class, one of 0, 1 (--label-column and --score",
        ),
        (
            f"{HEADER}nan,0.5,0.5\n",
            "p.csv, row 1, column target: must be a class, one of 0, 1 (--label-column and --score-col",
        ),
        (HEADER, "p.csv: has a header, but no rows"),
        ("", "p.csv: has no rows: the file is empty"),
        (
            "target,a\n0,1\n",
            "p.csv: has no columns of scores or predicted labels that are known by their names",
        ),
        (
            "a,b\n0.5,0.5\n",
            "--label-column COLUMN names it, --labels FILE gives a file of labels",
        ),
        ("target,a,a,b\n", "p.csv: columns must have different names, but ['a'] repeat"),
        (
            "target_a,target_b,a,b\n1,-2,0.5,0.5\n",
            "row 1: target_a, target_b must hold degrees of truth from 0 to 1, but is [1, -2]",
        ),
        (
            "target_a,target_b,a,b\n1,3,0.5,0.5\n0,0,0.5,0.5\n",
            "row 2, column target_a: must hold degrees",
        ),
    ],
)
def test_a_damaged_csv_is_refused_with_its_place(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(PredictionsError, match=re.escape(message)):
        scored([tmp_path / "p.csv"])


SOFT_TARGET = soft_batch(300, seed=5)[1]
WRONG = torch.arange(300) == 200
ONE = WRONG.unsqueeze(1) & (torch.arange(CLASSES) == 1)
"""The second class of that row."""


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(
    ("scores", "target", "message"),
    [
        (
            PROBS.masked_fill(ONE, torch.nan),
            TARGET,
            r"row 201, column .*1\]?: must be probabilities .* but is missing",
        ),
        (
            LOGITS.masked_fill(ONE, torch.inf),
            TARGET,
            r"row 201: .* must be logits without .*, but is .*inf",
        ),
        (
            PROBS.masked_fill(ONE, 0.9999),
            TARGET,
            "row 201: .* must be probabilities .* that sum to 1 ",
        ),
        (
            LOGITS.masked_fill(WRONG.unsqueeze(1), -torch.inf),
            TARGET,
            r"row 201: .* must be logits .*, but is \[-inf, -inf, ",
        ),
        (
            PROBS,
            TARGET.masked_fill(WRONG, 7),
            "row 201, column .*: must be a class, one of 0, 1, 2, 3 .*, but is '?7",
        ),
        (
            PROBS,
            SOFT_TARGET.masked_fill(ONE, 1.5),
            "row 201: .* must hold degrees of truth from 0 to 1, but is .*1.5",
        ),
    ],
    ids=["score", "logit", "sum", "all ruled out", "label", "soft label"],
)
def test_errors_count_rows_from_1(
    write: Write, scores: Tensor, target: Tensor, message: str, tmp_path: Path
) -> None:
    with pytest.raises(PredictionsError, match=message):
        scored(write(tmp_path, scores, target), from_logits=bool((scores < 0).any()))


@pytest.mark.parametrize("damaged", [100, 180, 290])
def test_lines_that_are_no_text_are_named(damaged: int, tmp_path: Path) -> None:
    (path,) = write_csv(tmp_path, PROBS, TARGET)
    lines = path.read_bytes().split(b"\n")  # the header is row 0
    lines[damaged] = b"\xff" + lines[damaged]
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(
        PredictionsError,
        match=rf"p.csv: cannot be read: 'utf-8' codec.*in line {damaged + 1};",
    ):
        scored([path])


@pytest.mark.parametrize("write", WRITERS)
def test_a_truncated_file_is_refused(tmp_path: Path, write: Write) -> None:
    path, *rest = write(tmp_path, PROBS, TARGET)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(PredictionsError, match=re.escape(str(path))):
        scored([path, *rest])


def test_malformed_arrays_are_refused(tmp_path: Path) -> None:
    def refused(message: str, *files: Path) -> None:
        with pytest.raises(PredictionsError, match=re.escape(message)):
            scored(list(files))

    refused(
        "'preds' is one score, which tells two classes apart",
        *write_npz(tmp_path, PROBS[:, 0], TARGET),
    )
    refused("has 5 rows, but", *write_npy(tmp_path, PROBS, TARGET[:5]))
    refused(
        "row 1, column labels: must be a class", *write_npy(tmp_path, PROBS, TARGET + 0.5)
    )
    refused("--score-columns preds --logits", *write_npz(tmp_path, LOGITS.long(), TARGET))
    refused("--labels FILE gives a file of labels", tmp_path / "p.npy")
    np.savez(tmp_path / "p.npz", preds=PROBS)
    refused("--labels FILE gives a file of labels", tmp_path / "p.npz")
    np.save(tmp_path / "p.npy", np.array([[object(), 1]]), allow_pickle=True)
    refused(
        "cannot be read: Array can't be memory-mapped: Python objects in dtype",
        tmp_path / "p.npy",
        tmp_path / "t.npy",
    )
    torch.save([PROBS], tmp_path / "p.pt")
    refused(
        "must contain a dictionary with tensors, such as preds and target",
        tmp_path / "p.pt",
    )
    with pytest.raises(
        PredictionsError, match="has lists of 4 scores, but there are 2 classes"
    ):
        scored(write_pt(tmp_path, PROBS, TARGET), concern=ConcernSpec(2))
