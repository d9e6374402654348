"""Files of detection scores: their formats, their errors and their metrics."""

import re
from pathlib import Path

import pytest
import torch
from pyarrow import csv, parquet

from mpcs_torch.evaluation.comparison_table import leading
from mpcs_torch.functional import (
    Comparison,
    OperatingPoint,
    cllr,
    clopper_pearson,
    cost_interval,
    equal_error_rate,
    half_total_error_rate,
    partial_auc,
    stratified_bootstrap,
)
from mpcs_torch.scoring import PredictionsError, Trials, read_trials, score_detection
from mpcs_torch.scoring.bootstrap import AREA, EQUAL_ERROR
from mpcs_torch.scoring.detection_scores import notes
from mpcs_torch.scoring.thresholds import given_threshold
from mpcs_torch.scoring.trials import table, text
from tests.metrics.detection.cases import detections

CSV = "id,score,label\na,0.5,1\nb,-inf,0\n\nc,2e-3,Target\nd, 1,nontarget\n"
TEXT = "0.5 target\n-inf nontarget\n\n2e-3 1\n1 0\n"
PAIRS = "a x 0.5\nb y -inf\nc z 2e-3\nd w 1\n"
LIST = "d w nontarget\na x target\nb y nontarget\nc z target\n"


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def read(path: Path, trials: Path | None = None) -> Trials:
    return read_trials(path, trials, lambda rows: None)


@pytest.mark.parametrize("rows", [1, 2, 2**16])
def test_all_formats_give_the_same_trials(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "ROWS", rows)
    monkeypatch.setattr(table, "ROWS", rows)
    read_rows: list[int] = []
    files = [
        (written(tmp_path, "s.csv", CSV), None),
        (written(tmp_path, "s.txt", TEXT), None),
        (written(tmp_path, "S.CSV", CSV.replace("\n", "\r\n")), None),
        (written(tmp_path, "bom.txt", "\ufeff" + TEXT), None),
        (written(tmp_path, "scores", PAIRS), written(tmp_path, "trials", LIST)),
        (tmp_path / "s.parquet", None),
    ]
    parquet.write_table(csv.read_csv(tmp_path / "s.csv"), tmp_path / "s.parquet")
    for path, trials in files:
        scores, labels = read_trials(path, trials, read_rows.append)
        assert scores.tolist() == [0.5, -torch.inf, 0.002, 1.0]
        assert labels.tolist() == [True, False, True, False]
    assert sum(read_rows) == 24


@pytest.mark.parametrize(
    ("name", "text", "trials", "message"),
    [
        ("s.csv", "", None, "must have the columns ['score', 'label'], but has []"),
        (
            "s.csv",
            "a,label\n1,1\n",
            None,
            "must have the columns ['score', 'label'], but has ['a'",
        ),
        ("s.csv", "score,label\n", None, "s.csv: contains no rows"),
        ("s.csv", "score,label\n1,1\n2,0\nx,1\n", None, "s.csv, row 3, column score: must be a number, but is 'x'"),
        ("s.csv", "score,label\n1,1\nnan,0\n", None, "s.csv, row 2, column score: must be a number, but is 'nan'"),
        (
            "s.csv",
            "score,label\n1,1\n1,2\n",
            None,
            "row 2, column label: must be one of 1, target, true, 0, nontarget,",
        ),
        ("s.csv", "score,label\n1,1\n1\n", None, "s.csv, row 2, column label: is missing: the row has 1 of 2 values"),
        (
            "s.csv",
            "score,label\n1,1\n2,1\n",
            None,
            "must contain target and non-target trials, but contains no non-target",
        ),
        ("s.txt", "1 0\n", None, "must contain target and non-target trials, but contains no target"),
        (
            "s.txt",
            "1 0\n\n1 x y\n",
            None,
            "s.txt, row 3: must contain a score and a label (for two names and a score, give",
        ),
        ("s.txt", "a b 1\n", None, "give --trials FILE), but contains 3 fields"),
        ("s.txt", "a x 1\nc x 2\n", "a x target\n", "s.txt, row 2: c x is not in "),
        ("s.txt", "a x 1\na x 2\n", "a x target\n", "s.txt, row 2: a x appears twice"),
        ("s.txt", "a x 1\n", "a x target\nb y 0\n", "has no scores for 1 trials of "),
        ("s.txt", "a x 1\n", "a x target\na x 0\n", "trials, row 2: a x appears twice"),
        ("s.txt", "a x 1\n", "a x yes\n", "trials, row 1, column label: must be one of 1, target"),
        ("s.txt", "a x 1\n", "a target\n", "trials, row 1: must contain two names and a label, but contains 2 fields"),
        ("s.csv", "score,label\n1,1\n", "a x 1\n", "contains its own labels"),
    ],
)
def test_errors_name_the_file_and_the_place(
    name: str, text: str, trials: str | None, message: str, tmp_path: Path
) -> None:
    listed = None if trials is None else written(tmp_path, "trials", trials)
    with pytest.raises(PredictionsError, match=re.escape(message)):
        read(written(tmp_path, name, text), listed)


POINTS = [OperatingPoint(0.5), OperatingPoint(0.1, c_miss=2.0)]


def trials_of(size: int = 300) -> Trials:
    scores, labels = detections(size, 0)
    return Trials(scores.double(), labels.bool())


def test_intervals_are_those_of_sorting_every_resample() -> None:
    """The counts of resamples give what the functions give for the trials themselves."""
    trials = trials_of(200)

    def statistic(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        rate = equal_error_rate(scores, labels, method="interpolated")
        return torch.stack([rate, partial_auc(scores, labels), cllr(scores, labels)])

    low, high = stratified_bootstrap(statistic, *trials, resamples=50)
    named = score_detection(trials, POINTS, is_llr=True, resamples=50).named()
    for place, name in enumerate(["equal error rate", "area under the ROC", "Cllr"]):
        ends = named[f"{name}, low"], named[f"{name}, high"]
        assert ends == pytest.approx((low[place].item(), high[place].item()), rel=1e-12)


def test_costs_at_fixed_thresholds_have_exact_intervals() -> None:
    trials = trials_of()
    found = score_detection(trials, POINTS, is_llr=True, resamples=0, fixed=given_threshold(0.7, POINTS))
    named = found.named()
    misses = int((trials.scores[trials.labels] < 0.7).sum())
    alarms = int((trials.scores[~trials.labels] >= 0.7).sum())
    name = f"cost at 0.7, {POINTS[1].label()}"
    assert (named[f"{name}, low"], named[f"{name}, high"]) == cost_interval(misses, 100, alarms, 200, point=POINTS[1])
    assert (named[f"{name}, miss rate, low"], named[f"{name}, miss rate, high"]) == clopper_pearson(misses, 100)
    half = named["half total error rate at 0.7"]
    assert half == half_total_error_rate(*trials, threshold=0.7)
    assert named["half total error rate at 0.7, low"] < half < named["half total error rate at 0.7, high"]
    assert f"actual cost, {POINTS[0].label()}, low" in named


def test_intervals_contain_their_values_and_minima_have_none() -> None:
    calls: list[int] = []
    found = score_detection(trials_of(60), POINTS, is_llr=True, resamples=40, advance=calls.append)
    assert sum(calls) == 40
    named = found.named()
    for name in ("equal error rate", "area under the ROC", "Cllr"):
        assert named[f"{name}, low"] < named[name] < named[f"{name}, high"]
    assert not [name for name in named if name.endswith(", low") and name.startswith(("minimum", "calibration"))]


def test_an_equal_error_rate_beside_other_rates_is_explained() -> None:
    found = score_detection(trials_of(60), POINTS[:1], is_llr=False, resamples=0)
    told = [note for note in notes([found], None) if "convex hull of the ROC (ROCCH)" in note]
    assert len(told) == 1
    for about_rates in ("ROCCH", "fewer than 30 errors"):  # the table of several has no rates
        assert [note for note in notes([found], None) if about_rates in note]
        assert not [note for note in notes([found, found], None) if about_rates in note]
    equal = score_detection(Trials(torch.arange(4.0), torch.arange(4) >= 2), POINTS[:1], is_llr=False, resamples=0)
    assert not [note for note in notes([equal], None) if "ROCCH" in note]


def test_a_long_comparison_shows_the_first_metrics() -> None:
    rows = [
        Comparison("a", other, measure, None, 0.5, None, "")  # type: ignore[arg-type]
        for measure in ("rate", "cost", "wrong")
        for other in "bcdef"
    ]
    assert leading(rows) == (rows[:10], ["wrong"])
    assert leading(rows, most=3) == (rows[:5], ["cost", "wrong"])
    assert leading(rows, most=15) == (rows, [])


def test_a_rate_without_errors_has_an_interval_with_clusters_too() -> None:
    trials, clusters = trials_of(120), torch.arange(120) % 40
    fixed = given_threshold(-100, POINTS[:1])  # accepts all
    found = score_detection(trials, POINTS, is_llr=False, resamples=20, fixed=fixed, clusters=clusters).named()
    name = "cost at -100, p = 0.5"
    holding = [len(clusters[kind].unique()) for kind in (trials.labels, ~trials.labels)]
    ends = [
        (found[f"{name}, {rate}, low"], found[f"{name}, {rate}, high"]) for rate in ("miss rate", "false-alarm rate")
    ]
    assert ends == [clopper_pearson(0, holding[0]), clopper_pearson(holding[1], holding[1])]
    assert found[f"{name}, low"] < found[name] == 1 < found[f"{name}, high"]


def test_resamples_that_all_agree_give_no_interval() -> None:
    trials = Trials(torch.tensor([0.9, 0.7, 0.2, 0.4, 0.1]), torch.tensor([1, 1, 0, 0, 0], dtype=torch.int8))
    found = score_detection(trials, [], is_llr=False, resamples=50)
    assert [(value.value, value.interval) for value in found.values if value.name in (EQUAL_ERROR, AREA)] == [
        (0, None),
        (1, None),
    ]
