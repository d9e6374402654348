"""A file of predictions in any usual form is read as what it says, or refused with the option that helps.

MPCS_EXAMPLES=2000 tries more files.
"""

import csv
import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from mpcs_torch.evaluation.classifier_files import open_models, score_models
from mpcs_torch.evaluation.files.offers import Offer, UnclearFileError
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import PredictionsError

WORDS = (
    "cat",
    "dog",
    "owl",
    "label",
    "score",
    "pred",
    "id",
    "age",
    "target",
    "no",
    "yes",
    "Cat",
    "grade 2",
    "1st",
    "été",
)
LABEL_NAMES = ("label", "target", "y_true", "true_label", "Ground Truth", "class")
DELIMITERS = (",", ";", "\t", "|")
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le")


class File(NamedTuple):
    """The content of a file, and the way it is written."""

    probs: "np.ndarray[Any, np.dtype[np.float64]]"
    labels: list[int]
    names: list[str]
    """Of the classes."""
    form: str
    texts: str
    numbers: str
    style: Callable[[str], str]
    """From the name of a class to that of its column."""
    order: list[int]
    label_name: str
    label_first: bool
    delimiter: str
    encoding: str
    percent: bool
    decisions: list[int] | None
    labels_are_numbers: bool


@st.composite
def files(draw: st.DrawFn) -> File:
    rows, classes = draw(st.integers(2, 12)), draw(st.integers(2, 11))
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    probs = generator.dirichlet(np.full(classes, 0.5), rows).round(4)
    probs[:, 0] += 1 - probs.sum(axis=1)
    probs = probs.clip(0, 1).round(4)
    labels = [
        int(row.argmax()) if generator.random() < 0.6 else int(generator.integers(classes))
        for row in probs
    ]
    kind = draw(st.sampled_from(["words", "from 0", "from 1"]))
    first = 1 if kind == "from 1" else 0
    words = draw(st.permutations(list(WORDS))) if classes <= len(WORDS) else []
    names = (
        list(words[:classes])
        if kind == "words"
        else [str(first + number) for number in range(classes)]
    )
    prefix = draw(st.sampled_from(["", "prob_", "p_", "score_", "class ", "Prediction"]))
    suffix = draw(st.sampled_from(["", "_prob", ".score"])) if not prefix else ""
    return File(
        probs,
        labels,
        names,
        draw(st.sampled_from(["columns", "columns", "columns", "list", "json", "one-hot"])),
        draw(st.sampled_from(["", "site", "comment", "image"])),
        draw(st.sampled_from(["", "age", "fold", "weight", "share", "zero"])),
        lambda name: f"{prefix}{name}{suffix}",
        draw(st.permutations(range(classes))),
        draw(st.sampled_from(LABEL_NAMES)),
        draw(st.booleans()),
        draw(st.sampled_from(DELIMITERS)),
        draw(st.sampled_from(ENCODINGS)),
        draw(st.booleans()),
        draw(
            st.none() | st.lists(st.integers(0, classes - 1), min_size=rows, max_size=rows)
        ),
        kind == "words" and not {"no", "yes"} <= {*names} and draw(st.booleans()),
    )


def columns_of(file: File) -> list[tuple[str, list[Any]]]:
    """Return the columns of a file in their order."""
    rows, scale = len(file.probs), 100 if file.percent else 1
    labels = [
        str(label) if file.labels_are_numbers else file.names[label]
        for label in file.labels
    ]
    scores = [
        (file.style(file.names[c]), [f"{scale * p:.6g}" for p in file.probs[:, c]])
        for c in file.order
    ]
    if file.form in ("list", "json"):
        lists = (scale * file.probs).round(6).tolist()
        scores = [("probs", lists if file.form == "json" else [str(row) for row in lists])]
    others = []
    if file.texts:
        others.append((file.texts, [f"{file.texts} {row}" for row in range(rows)]))
    numbers = {
        "age": [40 + row for row in range(rows)],
        "fold": [row % 3 for row in range(rows)],
    }
    numbers |= {
        "weight": [1.25 + row / 8 for row in range(rows)],
        "share": [0.03 + row / 50 for row in range(rows)],
    }
    if file.numbers:
        others.append((file.numbers, numbers.get(file.numbers, [0] * rows)))
    if file.decisions is not None:
        others.append(
            ("predicted_label", [file.names[number] for number in file.decisions])
        )
    truth = [(file.label_name, labels)]
    if file.form == "one-hot":
        truth = [
            (f"target_{name}", [int(label == c) for label in file.labels])
            for c, name in enumerate(file.names)
        ]
    return [*truth, *others, *scores] if file.label_first else [*others, *scores, *truth]


def written(file: File, folder: Path) -> Path | None:
    """Write a file; return None if its columns would not have different names."""
    columns = columns_of(file)
    names = [name for name, _ in columns]
    if len({*names}) < len(names):
        return None
    rows = list(zip(*(values for _, values in columns), strict=True))
    if file.form == "json":
        path = folder / "p.jsonl"
        path.write_text(
            "\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows)
        )
        return path
    text = io.StringIO()
    csv.writer(text, delimiter=file.delimiter, lineterminator="\n").writerows(
        [names, *rows]
    )
    path = folder / ("p.tsv" if file.delimiter == "\t" else "p.csv")
    path.write_bytes(text.getvalue().encode(file.encoding))
    return path


def check_offer(path: Path, offer: Offer) -> None:
    """Check that the options that an error offers read the file, and measure what the error says."""
    models = score_models(
        open_models([path], offer.options), None, intervals=False
    ).models.values()
    measured = [*offer.measured.values.values()]
    assert [scores.values["accuracy"] for scores in models] == pytest.approx(measured), (
        offer.words
    )


def values_of(predictions: Predictions) -> tuple[float, float]:
    """Return accuracy and mean probability of the true class."""
    rows = predictions.rows()
    scores, target = rows.scores, rows.target
    if predictions.decides:  # the only label is refused once they are scored
        score_models({"": predictions}, None, intervals=False)
        raise AssertionError("scores are there")
    right = scores.argmax(dim=1) == target
    return right.double().mean().item(), scores.gather(1, target.unsqueeze(1)).mean().item()


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
    max_examples=int(os.environ.get("MPCS_EXAMPLES", "100")),
)
@given(file=files())
def test_a_file_is_read_as_what_it_says_or_refused_with_a_way(
    tmp_path: Path, file: File
) -> None:
    path = written(file, tmp_path)
    if path is None:
        return
    probs = file.probs / file.probs.sum(axis=1, keepdims=True)
    expected = (
        float(np.mean(probs.argmax(axis=1) == file.labels)),
        float(np.mean(probs[np.arange(len(probs)), file.labels])),
    )
    refusal = ""
    try:
        predictions = Predictions(path)
        # Beside a number such as an age, columns that no name marks may not be known as scores; the first line says so.
        if predictions.roles.remarks and file.numbers:
            return
        found = values_of(predictions)
    except UnclearFileError as error:
        refusal = str(error)
        for offer in error.offers:
            check_offer(path, offer)
    except PredictionsError as error:
        refusal = str(error)
    event(
        f"refused: {re.sub(r'[^a-z ]', '', refusal.split(': ', 1)[1])[:30]}"
        if refusal
        else f"read: {file.form}"
    )
    assert "--" in refusal or (
        not refusal and found == pytest.approx(expected, abs=2e-3)
    ), refusal or predictions.how()
