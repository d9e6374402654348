"""Several models on the same rows: which are compared, groups, and rows that do not match.

tests/cli/test_laws.py checks that files have the numbers of their tensors.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mpcs_torch import ConcernSpec
from mpcs_torch.evaluation import Result, model_sums
from mpcs_torch.evaluation.classifier_files import open_models, score_models
from mpcs_torch.evaluation.files.read_options import NO_GROUP, ReadOptions
from mpcs_torch.functional import clopper_pearson
from mpcs_torch.metrics.named_metrics import BY_NAME
from tests.evaluation.files.write import write_predictions
from tests.metrics.batches import random_batch
from tests.refused import refused_file

NAMES = ["a", "b", "c", "d"]
LOGITS, TARGET = random_batch(240, seed=5)
FIRST = LOGITS.double().softmax(1)
SECOND = (LOGITS.double() + 1.5 * torch.nn.functional.one_hot(TARGET, 4)).softmax(1)
SITES, PATIENTS = (
    [f"s{row % 3}" for row in range(240)],
    [f"p{row % 20}" for row in range(240)],
)
CONCERN = ConcernSpec(NAMES, releases=[["a", "b"], ["b", "c", "d"]], factor=0.25)
BARE = {name for name, entry in BY_NAME.items() if entry.no_interval}


def write(
    path: Path, probs: torch.Tensor, target: torch.Tensor = TARGET, **texts: Sequence[str]
) -> Path:
    return write_predictions(path, probs, target, NAMES, **texts)


def plain(folder: Path) -> list[Path]:
    """Two files without columns of groups."""
    return [write(folder / "A.csv", FIRST), write(folder / "B.npz", SECOND)]


def measured(
    paths: Sequence[Path],
    concern: ConcernSpec | None = CONCERN,
    *,
    by: Sequence[str] = (),
    cluster: str | None = None,
    metrics: Sequence[str] | None = None,
    intervals: bool = True,
) -> Result:
    opened = open_models(paths, ReadOptions(by=by, cluster=cluster), concern)
    entries = None if metrics is None else [BY_NAME[name] for name in metrics]
    return score_models(opened, concern, entries=entries, intervals=intervals)


def test_a_note_says_what_is_independent(tmp_path: Path) -> None:
    sure = torch.eye(4).double()[TARGET]
    path = write(tmp_path / "A.csv", sure, patient=PATIENTS)
    result = measured([path], cluster="patient")
    exact = clopper_pearson(0, 20)
    assert result.first.intervals["dangerous_rate"] == pytest.approx(exact, rel=1e-3)
    independent = "20 clusters (patient) are independent, the rows of a cluster are not."
    assert result.notes[-1] == f"95 % intervals: {independent}"
    table = result.first.class_table()
    assert table is not None
    assert all(" to " in cell for row in table.rows for cell in row[3:6])


@pytest.mark.parametrize(
    ("concern", "metrics", "compared"),
    [
        (
            CONCERN,
            None,
            ["dangerous_rate", "expected_concern", "misclassification_rate", "mpcs"],
        ),
        (None, None, ["misclassification_rate", "mpcs"]),  # expected concern is the same
        (None, ["expected_concern"], ["expected_concern"]),
        (None, ["decisiveness"], ["decisiveness"]),
        (None, ["calibration_slope"], []),
    ],
)
def test_models_are_compared_by_metrics_that_say_different_things(
    tmp_path: Path,
    concern: ConcernSpec | None,
    metrics: list[str] | None,
    compared: list[str],
) -> None:
    result = measured(plain(tmp_path), concern, metrics=metrics)
    assert [row.by.metric for row in result.comparisons] == compared
    note = "None of the metrics is one that models are compared by."
    assert (result.notes[-1] == note) == (not compared)


@pytest.mark.slow
def test_every_number_has_an_interval_or_a_reason(tmp_path: Path) -> None:
    """Those of bins alone have none, of one and of several files, with clusters and in groups."""
    paths = [
        write(tmp_path / f"{model}.csv", FIRST, patient=PATIENTS, site=SITES)
        for model in ("A", "B")
    ]
    for concern, cluster, number in itertools.product(
        (CONCERN, None), (None, "patient"), (1, 2)
    ):
        bare = BARE | ({"destructive_rate"} if concern is None else set())
        found = measured(paths[:number], concern, cluster=cluster, by=["site"])
        for scores in (*found.models.values(), *found.groups[0].groups.values()):
            without = {*scores.values} - {*scores.intervals}
            assert without == {*scores.without_interval}
            assert without == bare & {*scores.values}


@pytest.mark.parametrize("metrics", [None, ["measured_robustness"]])
def test_groups_have_metrics_of_histograms_if_these_are_named(
    tmp_path: Path, metrics: list[str] | None
) -> None:
    paths = [write(tmp_path / "A.parquet", FIRST, site=SITES), *plain(tmp_path)[1:]]
    of_models = measured(paths, by=["site"], metrics=metrics).groups
    assert [groups.model for groups in of_models] == ["A", "B"]
    for groups in of_models:
        assert groups.column == "site"
        for scores in groups.groups.values():
            assert scores.rows == 80
            assert ("measured_robustness" in scores.values) == (metrics is not None)


def test_groups_are_summarized_and_the_worst_come_first(tmp_path: Path) -> None:
    shifted = torch.where(torch.arange(240).unsqueeze(1) % 3 == 1, FIRST.flip(1), SECOND)
    path = write(tmp_path / "A.csv", shifted, site=SITES)
    [groups] = measured([path], by=["site"], intervals=False).groups
    values = [each.values["mpcs"] for each in groups.groups.values()]
    of_worst, summaries = groups.groups["s1"].values, groups.summaries()
    assert groups.worst_first()[0] == "s1"
    assert summaries["worst"]["mpcs"] == of_worst["mpcs"] == max(values)
    assert summaries["worst"]["accuracy"] == of_worst["accuracy"]  # the lowest
    assert summaries["mean of groups"]["mpcs"] == pytest.approx(sum(values) / 3)
    assert summaries["spread"]["mpcs"] == pytest.approx(max(values) - min(values))
    assert "dangerous" not in summaries["worst"]  # a count grows with its group
    table, names = groups.table(), ["worst", "mean of groups", "spread", "pooled"]
    assert table.header[:3] == ["site", "rows", "dangerous_rate"]
    assert len(table.header) == 8
    assert [row[0] for row in table.rows[3:]] == names


def test_of_many_groups_the_worst_are_shown_and_too_many_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"by": ["row"], "metrics": ["accuracy"], "intervals": False}
    for number, shown, name in ((48, 45, "and 8 others"), (40, 44, "worst")):
        names = [str(row % number) for row in range(240)]
        path = write(tmp_path / "A.csv", FIRST, row=names)
        [groups] = measured([path], **options).groups
        rows = groups.table().rows
        assert (len(rows), rows[40][0]) == (shown, name)
    monkeypatch.setattr(model_sums, "MAX_SUM_NUMBERS", 39 * 14)
    with refused_file("A.csv: fewer_groups", argument="column 'row'"):
        measured([path], **options)


def test_a_group_without_a_value_is_left_out_of_the_summaries(tmp_path: Path) -> None:
    """Site s0 holds one class alone, so that no constant decision costs anything there."""
    target = torch.where(torch.arange(240) % 3 == 0, 0, TARGET)
    path = write(tmp_path / "A.csv", SECOND, target, site=SITES)
    [groups] = measured(
        [path], by=["site"], metrics=["macro_recall"], intervals=False
    ).groups
    values = {site: each.values["macro_recall"] for site, each in groups.groups.items()}
    assert np.isnan(values["s0"])
    assert groups.worst_first()[-1] == "s0"
    assert groups.summaries()["worst"]["macro_recall"] == min(values["s1"], values["s2"])
    assert groups.table().rows[2][2] == ""


OTHER = TARGET.clone()
OTHER[200] = (TARGET[200] + 1) % 4


@pytest.mark.parametrize(
    ("second", "refusal"),
    [
        ({"target": OTHER}, "B.csv: label_as_first, row 201"),
        ({"probs": SECOND[:200], "target": TARGET[:200]}, "B.csv: as_many_rows"),
        ({"probs": SECOND.repeat(2, 1), "target": TARGET.repeat(2)}, "B.csv: as_many_rows"),
        ({"site": ["s0", *SITES[:-1]]}, "B.csv: group_as_first, row 2, column site"),
        ({"site": ["s0", "x1", *SITES[2:]]}, "B.csv: group_as_first, row 2, column site"),
        ({"target": SECOND}, "B.csv: soft_labels_as_first"),
    ],
)
def test_rows_that_do_not_match_are_refused(
    tmp_path: Path, second: dict[str, Any], refusal: str
) -> None:
    first = write(tmp_path / "A.csv", FIRST, site=SITES)
    other = write(tmp_path / "B.csv", **{"probs": SECOND, **second})
    with refused_file(refusal):
        measured([first, other], None, by=["site"], intervals=False)


def test_rows_without_a_group_are_a_group(tmp_path: Path) -> None:
    path = write(tmp_path / "A.csv", FIRST, site=["", *SITES[1:]])
    [groups] = measured([path], by=["site"], intervals=False).groups
    sizes = {name: scores.rows for name, scores in groups.groups.items()}
    assert sizes == {NO_GROUP: 1, "s1": 80, "s2": 80, "s0": 79}


def test_a_file_given_twice_is_refused_and_equal_names_become_paths(tmp_path: Path) -> None:
    path = write(tmp_path / "A.csv", FIRST)
    with refused_file("A.csv: given_twice"):
        measured([path, path])
    (tmp_path / "other").mkdir()
    other = write(tmp_path / "other" / "A.csv", SECOND)
    assert list(measured([path, other], intervals=False).models) == [str(path), str(other)]


def test_classes_are_matched_by_name_whatever_the_order_of_the_columns(
    tmp_path: Path,
) -> None:
    paths = [
        write(tmp_path / "A.csv", FIRST),
        write_predictions(tmp_path / "B.csv", SECOND.flip(1), 3 - TARGET, NAMES[::-1]),
    ]
    result = measured(paths, None, metrics=["accuracy"], intervals=False)
    accuracy = (SECOND.argmax(1) == TARGET).double().mean().item()
    assert result.models["B"].values["accuracy"] == pytest.approx(accuracy)
