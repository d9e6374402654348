"""Several models on the same rows: comparisons, intervals, groups, and rows that do not match."""

import csv
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch

from mpcs_torch import ConcernSpec
from mpcs_torch.evaluation import Result, model_sums
from mpcs_torch.evaluation.classifier_files import open_models, score_models
from mpcs_torch.evaluation.files.read_options import NO_GROUP, ReadOptions
from mpcs_torch.functional import clopper_pearson, dangerous_errors, sign_flip_test
from mpcs_torch.metrics.named_metrics import BY_NAME
from tests.evaluation.means import MEANS
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
    path: Path,
    probs: torch.Tensor,
    target: torch.Tensor = TARGET,
    **texts: Sequence[str | None],
) -> Path:
    table: dict[str, Sequence[Any]] = dict(texts)
    table |= {name: column.tolist() for name, column in zip(NAMES, probs.t(), strict=True)}
    if target.ndim == 1:
        table["target"] = [NAMES[label] for label in target.tolist()]
    else:
        table |= {
            f"target_{name}": column.tolist()
            for name, column in zip(NAMES, target.t(), strict=True)
        }
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.table(table), path)
    elif path.suffix == ".npz":
        np.savez(path, preds=probs, target=target)
    else:
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([table.keys(), *zip(*table.values(), strict=True)])
    return path


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


def test_models_are_compared_by_the_tests_of_their_metrics(tmp_path: Path) -> None:
    found = measured(plain(tmp_path))
    rows = {row.measure: row for row in found.comparisons}
    decisions = [probs.argmax(1) for probs in (FIRST, SECOND)]
    dangerous = [CONCERN.dangerous_pairs()[TARGET, own] for own in decisions]
    wrong = [own != TARGET for own in decisions]
    assert list(rows) == [
        "rate of dangerous errors",
        "expected concern",
        "rate of wrong decisions",
        "MPCS",
    ]
    assert rows["rate of wrong decisions"].paired.p_value == pytest.approx(
        sign_flip_test(wrong[0].double() - wrong[1].double())
    )
    assert rows["rate of dangerous errors"].paired.p_value == pytest.approx(
        sign_flip_test(dangerous[0].double() - dangerous[1].double())
    )
    names = ["dangerous_rate", "expected_concern", "misclassification_rate", "mpcs"]
    for row, name in zip(found.comparisons, names, strict=True):
        values = [found.models[model].values[name] for model in ("A", "B")]
        assert [row.paired.first, row.paired.second] == pytest.approx(values, rel=1e-12), (
            name
        )
        assert row.better == "B"
    count = dangerous_errors(
        decisions[0], TARGET, num_classes=4, concern=CONCERN.dangerous_pairs()
    )
    assert rows["rate of dangerous errors"].paired.first == pytest.approx(
        count.item() / 240
    )


def test_rows_of_a_cluster_say_as_much_as_one_of_them(tmp_path: Path) -> None:
    """Each row three times, in a cluster of its own, says as much as each row once."""
    once = write(tmp_path / "once.csv", FIRST)
    often = write(
        tmp_path / "often.csv",
        FIRST.repeat(3, 1),
        TARGET.repeat(3),
        row=[str(r % 240) for r in range(720)],
    )
    alone, clustered = measured([once]).first, measured([often], cluster="row").first
    assert list(alone.intervals) == list(clustered.intervals)
    for name, interval in alone.intervals.items():
        scale = 3 if name == "dangerous" else 1
        if name in MEANS:  # which allow for one more bad row, not for three
            assert clustered.intervals[name][1] <= interval[1] * 1.001
        else:
            assert clustered.intervals[name] == pytest.approx(
                [scale * end for end in interval], rel=1e-3
            ), name


@pytest.mark.parametrize("name", ["accuracy", "brier_score"])
def test_clusters_give_intervals_of_any_metric_alone(tmp_path: Path, name: str) -> None:
    paths = [
        write(tmp_path / f"{model}.csv", FIRST, patient=PATIENTS) for model in ("A", "B")
    ]
    found = measured(paths, metrics=[name], cluster="patient")
    assert [*found.models["A"].intervals] == [name]
    assert [row.by.metric for row in found.comparisons] == [name]


def test_rates_of_classes_have_intervals(tmp_path: Path) -> None:
    right = torch.where(TARGET == 1, FIRST.argmax(1) == 1, False)
    number = int((TARGET == 1).sum())
    path = write(tmp_path / "A.csv", FIRST, row=[str(row) for row in range(240)])
    exact = measured([path], metrics=["accuracy"], by=["row"]).first.class_intervals["b"]
    low, high = clopper_pearson(int(right.sum()), number)
    assert exact["recall"] == (low, high)
    assert exact["error_rate"] == pytest.approx((1 - high, 1 - low))
    clustered = measured([path], cluster="row").first.class_intervals["b"]
    for name, interval in exact.items():
        assert clustered[name] == pytest.approx(interval, abs=1e-3), name
    patients = write(tmp_path / "B.csv", FIRST, patient=PATIENTS)
    table = measured([patients], cluster="patient").first.class_table()
    assert table is not None
    assert all(" to " in cell for row in table.rows for cell in row[3:6])


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


def grouped_like_their_rows(
    folder: Path, target: torch.Tensor, concern: ConcernSpec | None, cluster: str | None
) -> None:
    """Assert that each of 3 groups, of neighbouring rows and patients, has the intervals of its rows alone."""
    sites, patients = (
        [f"s{row // 80}" for row in range(240)],
        [f"p{row // 8}" for row in range(240)],
    )
    path = write(folder / "A.csv", FIRST, target, site=sites, patient=patients)
    [groups] = measured([path], concern, by=["site"], cluster=cluster).groups
    for place in range(3):
        rows = slice(80 * place, 80 * (place + 1))
        only = write(folder / "only.csv", FIRST[rows], target[rows], patient=patients[rows])
        alone = measured([only], concern, cluster=cluster).first
        intervals = groups.groups[f"s{place}"].intervals
        assert list(intervals) == list(alone.intervals)
        for name, interval in intervals.items():
            assert interval == pytest.approx(alone.intervals[name], rel=1e-9), name
        assert len(intervals) > 10


@pytest.mark.parametrize("cluster", [None, "patient"])
def test_groups_have_the_intervals_of_their_rows_alone(
    tmp_path: Path, cluster: str | None
) -> None:
    grouped_like_their_rows(tmp_path, TARGET, CONCERN, cluster)


def test_groups_of_soft_labels_have_the_intervals_of_their_rows_alone(
    tmp_path: Path,
) -> None:
    soft = torch.rand(240, 4, generator=torch.Generator().manual_seed(0))
    grouped_like_their_rows(tmp_path, soft, None, None)


def test_a_group_of_one_cluster_or_row_has_only_bounds(tmp_path: Path) -> None:
    groups = ["one", "two", "two", *["rest"] * 237]
    path = write(
        tmp_path / "A.csv", FIRST, group=groups, patient=["p", "p", "p", *PATIENTS[3:]]
    )
    [of_clusters] = measured([path], by=["group"], cluster="patient").groups
    assert "mcc" not in of_clusters.groups["two"].intervals
    low, high = of_clusters.groups["two"].intervals["accuracy"]
    assert high - low > 0.97
    [of_rows] = measured([path], by=["group"], metrics=["cross_entropy"]).groups
    assert [bool(own.intervals) for own in of_rows.groups.values()] == [False, False, True]


def test_no_error_in_any_cluster_does_not_promise_that_there_is_none(
    tmp_path: Path,
) -> None:
    sure = torch.nn.functional.one_hot(TARGET, 4).double()
    found = measured([write(tmp_path / "A.csv", sure, patient=PATIENTS)], cluster="patient")
    assert found.first.intervals["dangerous_rate"] == pytest.approx(
        clopper_pearson(0, 20), rel=1e-3
    )
    assert found.first.intervals["accuracy"][0] < 0.9
    *_, note = found.notes
    assert (
        note
        == "95 % intervals: 20 clusters (patient) are independent, the rows of a cluster are not."
    )


def test_what_says_the_same_without_a_concern_is_not_compared_twice(tmp_path: Path) -> None:
    found = measured(plain(tmp_path), None)
    assert [row.measure for row in found.comparisons] == ["rate of wrong decisions", "MPCS"]
    assert [
        row.measure
        for row in measured(plain(tmp_path), None, metrics=["expected_concern"]).comparisons
    ] == ["expected concern"]
    none = measured(plain(tmp_path), None, metrics=["calibration_slope"])
    assert not none.comparisons
    assert none.notes[-1] == "None of the metrics is one that models are compared by."
    named = measured(plain(tmp_path), None, metrics=["decisiveness"])
    assert [row.measure for row in named.comparisons] == ["decisiveness"]
    assert none.notes[-1] not in named.notes


MEASURED_PROBABILITIES = [
    "measured_decisiveness",
    "measured_geometric_accuracy",
    "measured_robustness",
    "calibration_slope",
]
"""The metrics of a histogram of a group's rows, which must be asked for."""


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("metrics", [None, ["accuracy", *MEASURED_PROBABILITIES]])
def test_groups_have_the_metrics_of_their_rows_alone(
    tmp_path: Path, suffix: str, metrics: list[str] | None
) -> None:
    paths = [
        write(tmp_path / f"A.{suffix}", FIRST, site=SITES),
        write(tmp_path / "B.npz", SECOND),
    ]
    found = measured(paths, by=["site"], intervals=False, metrics=metrics)
    assert [(groups.model, groups.column) for groups in found.groups] == [
        ("A", "site"),
        ("B", "site"),
    ]
    for groups, probs in zip(found.groups, (FIRST, SECOND), strict=True):
        assert {name: own.rows for name, own in groups.groups.items()} == {
            "s0": 80,
            "s1": 80,
            "s2": 80,
        }
        for place in range(3):
            only = write(tmp_path / "only.npz", probs[place::3], TARGET[place::3])
            alone = measured([only], metrics=metrics).first.values
            expected = {
                name: alone[name]
                for name in alone
                if metrics or name not in MEASURED_PROBABILITIES
            }
            assert groups.groups[f"s{place}"].values == pytest.approx(expected, nan_ok=True)


def test_groups_are_summarized_and_the_worst_come_first(tmp_path: Path) -> None:
    shifted = torch.where(torch.arange(240).unsqueeze(1) % 3 == 1, FIRST.flip(1), SECOND)
    [groups] = measured(
        [write(tmp_path / "A.csv", shifted, site=SITES)], by=["site"], intervals=False
    ).groups
    values = {name: own.values["mpcs"] for name, own in groups.groups.items()}
    summaries = groups.summaries()
    assert groups.worst_first()[0] == "s1"
    assert summaries["worst"]["mpcs"] == values["s1"] == max(values.values())
    assert (
        summaries["worst"]["accuracy"] == groups.groups["s1"].values["accuracy"]
    )  # the lowest
    assert summaries["mean of groups"]["mpcs"] == pytest.approx(sum(values.values()) / 3)
    assert summaries["spread"]["mpcs"] == pytest.approx(
        max(values.values()) - min(values.values())
    )
    assert "dangerous" not in summaries["worst"]  # a count grows with its group
    table = groups.table()
    assert table.header[:3] == ["site", "rows", "dangerous_rate"]
    assert len(table.header) == 8
    assert [row[0] for row in table.rows[3:]] == [
        "worst",
        "mean of groups",
        "spread",
        "pooled",
    ]


def test_of_many_groups_the_worst_are_shown_and_too_many_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "A.csv", FIRST, row=[str(row % 48) for row in range(240)])
    [groups] = measured(
        [path], by=["row"], metrics=["mpcs", "accuracy"], intervals=False
    ).groups
    rows = groups.table().rows
    assert (len(rows), rows[40][0]) == (45, "and 8 others")
    exactly = write(tmp_path / "B.csv", FIRST, row=[str(row % 40) for row in range(240)])
    [groups] = measured([exactly], by=["row"], metrics=["accuracy"], intervals=False).groups
    assert (len(groups.table().rows), groups.table().rows[40][0]) == (44, "worst")
    monkeypatch.setattr(model_sums, "MAX_SUM_NUMBERS", 40 * 14)
    with refused_file("A.csv: fewer_groups", argument="column 'row'"):
        measured([path], by=["row"], metrics=["accuracy"], intervals=False)


def test_a_group_without_a_value_is_left_out_of_the_summaries(tmp_path: Path) -> None:
    """Site s0 holds one class alone, so that no constant decision costs anything there."""
    target = torch.where(torch.arange(240) % 3 == 0, 0, TARGET)
    [groups] = measured(
        [write(tmp_path / "A.csv", SECOND, target, site=SITES)],
        by=["site"],
        metrics=["macro_recall"],
        intervals=False,
    ).groups
    assert np.isnan(groups.groups["s0"].values["macro_recall"])
    assert groups.worst_first()[-1] == "s0"
    others = [groups.groups[name].values["macro_recall"] for name in ("s1", "s2")]
    assert groups.summaries()["worst"]["macro_recall"] == min(others)
    assert groups.table().rows[2][2] == ""


def test_models_of_soft_labels_have_intervals_and_a_comparison(tmp_path: Path) -> None:
    soft = torch.rand(240, 4, generator=torch.Generator().manual_seed(0))
    paths = [
        write(tmp_path / "A.csv", FIRST, soft, site=SITES),
        write(tmp_path / "B.parquet", SECOND, soft),
    ]
    found = measured(paths, None, by=["site"])
    assert found.table().header == ["metric", "A", "B"]
    assert len(found.groups) == 2
    assert [row.measure for row in found.comparisons] == ["macro soft F1", "divergence"]
    other = write(tmp_path / "C.csv", SECOND, soft.flip(0))
    with refused_file("same_rows", argument="models"):
        measured([paths[0], other], None)
    for scores in (*found.models.values(), *found.groups[0].groups.values()):
        assert set(scores.values) - set(scores.intervals) <= {"hard_f1_macro"}


OTHER = TARGET.clone()
OTHER[200] = (TARGET[200] + 1) % 4


@pytest.mark.parametrize(
    ("second", "refusal"),
    [
        (
            {"target": OTHER},
            "B.csv: label_as_first, row 201",
        ),
        (
            {"probs": SECOND[:200], "target": TARGET[:200]},
            "B.csv: as_many_rows",
        ),
        (
            {"probs": SECOND.repeat(2, 1), "target": TARGET.repeat(2)},
            "B.csv: as_many_rows",
        ),
        (
            {"site": ["s0", *SITES[:-1]]},
            "B.csv: group_as_first, row 2, column site",
        ),
        (
            {"site": ["s0", "x1", *SITES[2:]]},
            "B.csv: group_as_first, row 2, column site",
        ),
        (
            {"target": SECOND},
            "B.csv: soft_labels_as_first",
        ),
    ],
)
def test_rows_that_do_not_match_are_refused(
    tmp_path: Path, second: dict[str, Any], refusal: str
) -> None:
    first = write(tmp_path / "A.csv", FIRST, site=SITES)
    other = write(tmp_path / "B.csv", **{"probs": SECOND, **second})
    with refused_file(refusal):
        measured([first, other], None, by=["site"], intervals=False)


@pytest.mark.parametrize(
    ("texts", "options", "refusal"),
    [
        (
            {"place": SITES},
            {"by": ["site"]},
            "A.csv: has_named_column",
        ),
        (
            {"site": ["", *SITES[1:]]},
            {"cluster": "site"},
            "has_name, row 1, column site",
        ),
        (
            {},
            {"by": ["target"]},
            "A.csv: both",
        ),
        ({}, {"cluster": "a"}, "A.csv: no_scores"),
    ],
)
def test_columns_that_name_no_groups_are_refused(
    tmp_path: Path,
    texts: dict[str, list[str]],
    options: dict[str, Any],
    refusal: str,
) -> None:
    path = write(tmp_path / "A.csv", FIRST, **texts)
    with refused_file(refusal):
        measured([path], **options)


def test_rows_without_a_group_are_a_group(tmp_path: Path) -> None:
    path = write(tmp_path / "A.csv", FIRST, site=["", *SITES[1:]])
    [groups] = measured([path], by=["site"], intervals=False).groups
    assert {name: own.rows for name, own in groups.groups.items()} == {
        NO_GROUP: 1,
        "s1": 80,
        "s2": 80,
        "s0": 79,
    }


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
    second = tmp_path / "B.csv"
    rows = [
        [*row.tolist()[::-1], NAMES[label]]
        for row, label in zip(SECOND, TARGET, strict=True)
    ]
    with second.open("w", newline="") as file:
        csv.writer(file).writerows([[*NAMES[::-1], "target"], *rows])
    found = measured(
        [write(tmp_path / "A.csv", FIRST), second],
        None,
        metrics=["accuracy"],
        intervals=False,
    )
    accuracy = (SECOND.argmax(1) == TARGET).double().mean().item()
    assert found.models["B"].values["accuracy"] == pytest.approx(accuracy)
