"""Trials of detectors are read by the meaning of the columns, and the way is told; or the file is refused."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from pyarrow import csv, parquet

from mpcs_torch.evaluation.files.offers import UnclearFileError
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.evaluation.files.trials import TrialTable, read_trials
from mpcs_torch.functional.detection.equal_error_rate import equal_error_rate
from tests.refused import refused_file

SCORES = (0.5, -1.5, 2e-3, 1.25)
LABELS = (True, False, False, True)


def read(path: Path, *, named: bool = False, **options: Any) -> TrialTable:
    return read_trials(path, ReadOptions(**options), lambda rows: None, named=named)


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def check(found: TrialTable) -> None:
    assert found.trials.scores.tolist() == list(SCORES)
    assert found.trials.labels.tolist() == list(LABELS)


WORDS = [
    ("target", "nontarget"),
    ("bonafide", "spoof"),
    ("Bona-Fide", "SPOOF"),
    ("genuine", "impostor"),
    ("real", "fake"),
    ("live", "spoof"),
    ("positive", "negative"),
    ("YES", "no"),
    ("True", "False"),
    ("1", "0"),
    ("1", "-1"),
    ("+1", "-1"),
    ("1.0", "0.0"),
]
DELIMITERS = {"comma": ",", "tab": "\t", "space": " ", "semicolon": ";"}
ORDERS = [
    *itertools.permutations(("name", "score", "label")),
    ("score", "label"),
    ("label", "score"),
]
ORDERS += [
    ("name", "attack", "label", "score"),
    ("speaker", "name", "attack", "label", "score"),
]
KINDS = [
    (words, delimiter, order, has_header)
    for place, (words, order) in enumerate(itertools.product(WORDS, ORDERS))
    for delimiter, has_header in [
        (list(DELIMITERS)[place % 4], place % 3 == 0),
        (list(DELIMITERS)[(place // 4) % 4], place % 3 == 1),
    ]
]


@pytest.mark.parametrize(("words", "delimiter", "order", "has_header"), KINDS)
def test_columns_are_known_by_their_values_or_names(
    words: tuple[str, str],
    delimiter: str,
    order: tuple[str, ...],
    has_header: bool,
    tmp_path: Path,
) -> None:
    columns = {
        "name": ["utt_1", "utt_2", "utt_3", "utt_4"],
        "speaker": ["s1", "s2", "s1", "s2"],
        "attack": ["-", "A07", "A07", "-"],
        "score": list(map(repr, SCORES)),
        "label": [words[0] if label else words[1] for label in LABELS],
    }
    rows = [order] if has_header else []
    rows += zip(*(columns[name] for name in order), strict=True)
    path = written(
        tmp_path / "s.txt", "".join(DELIMITERS[delimiter].join(row) + "\n" for row in rows)
    )
    found = read(path, named=True)
    check(found)
    label, score = [
        name if has_header else f"column {order.index(name) + 1}"
        for name in ("label", "score")
    ]
    assert f'labels "{label}" (' in found.read
    assert f'scores "{score}"' in found.read
    assert ("no header" in found.read) != has_header
    if "name" in order:
        assert found.names is not None
        assert found.names.to_pylist() == columns["name"]


CSV = "id,score,label\na,0.5,1\nb,-1.5,0\n\nc,2e-3,nontarget\nd, 1.25,Target\n"
PAIRS = "a x 0.5\nb y -1.5\nc z 2e-3\nd w 1.25\n"
LIST = "d w target\na x target\nb y nontarget\nc z nontarget\n"


def test_all_formats_give_the_same_trials(tmp_path: Path) -> None:
    files: list[tuple[Path, Path | None]] = [
        (written(tmp_path / "s.csv", CSV), None),
        (written(tmp_path / "S.CSV", CSV.replace("\n", "\r\n")), None),
        (written(tmp_path / "bom.txt", "\ufeff" + CSV.replace(",", " ")), None),
        (written(tmp_path / "scores", PAIRS), written(tmp_path / "trials", LIST)),
        (tmp_path / "s.parquet", None),
        (tmp_path / "s.npz", None),
    ]
    parquet.write_table(csv.read_csv(tmp_path / "s.csv"), tmp_path / "s.parquet")
    np.savez(
        tmp_path / "s.npz",
        scores=np.array(SCORES),
        labels=np.array(LABELS),
        id=np.array(list("abcd")),
    )
    for path, trials in files:
        check(read(path, labels=trials))
        check(read(path, labels=trials, named=True))


@pytest.mark.parametrize(
    ("scores", "trials", "how"),
    [
        (
            "a x .5\nb x -1.5\na y 2e-3\nb y 1.25\n",
            "1 b y\n1 a x\n0 b x\n0 a y\n",
            '"column 1" and "column 2"',
        ),
        (
            "a x .5\nb x -1.5\na y 2e-3\nb y 1.25\n",
            "b y target\na x target\nb x nontarget\na y nontarget\n",
            "",
        ),
        (
            "t1 .5\nt2 -1.5\nt3 2e-3\nt4 1.25\n",
            "t4 bonafide\nt2 spoof\nt3 spoof\nt1 bonafide\n",
            '"column 1"',
        ),
        (
            "t1,.5\nt2,-1.5\nt3,2e-3\nt4,1.25\n",
            "s1 t4 - - bonafide\ns1 t2 - A spoof\ns2 t3 - A spoof\ns2 t1 - - bonafide\n",
            "",
        ),
        (
            "t1 - .5\nt2 A -1.5\nt3 A 2e-3\nt4 - 1.25\n",
            "t4 bonafide\nt2 spoof\nt3 spoof\nt1 bonafide\n",
            '"column 1"',
        ),
        (
            "utt,llr\nt1,.5\nt2,-1.5\nt3,2e-3\nt4,1.25\n",
            "file,key\nt4,1\nt3,0\nt2,0\nt1,1\n",
            '"utt"',
        ),
        (".5\n-1.5\n2e-3\n1.25\n", "1\n0\n0\n1\n", ""),
    ],
)
def test_labels_apart_are_matched_by_name(
    scores: str, trials: str, how: str, tmp_path: Path
) -> None:
    found = read(
        written(tmp_path / "s.txt", scores), labels=written(tmp_path / "t.txt", trials)
    )
    check(found)
    assert f"names {how}" in found.read if how else "of t.txt by" in found.read


def test_names_may_be_given_by_an_option(tmp_path: Path) -> None:
    path = written(
        tmp_path / "s.csv", "score,label,trial,file,take\n1,1,t1,7,1\n0,0,t2,8,1\n"
    )
    for key, names in (
        (None, ["t1", "t2"]),
        ("file", ["7", "8"]),
        ("file,trial", ["7 t1", "8 t2"]),
    ):
        found = read(path, named=True, id_column=key)
        assert found.names is not None
        assert found.names.to_pylist() == names
    with refused_file("different_ids, row 2, column take", id="1"):
        read(path, named=True, id_column="take")
    assert read(written(path, "score,label\n1,1\n0,0\n"), named=True).names is None


@pytest.mark.parametrize(
    ("text", "options", "scores", "labels"),
    [
        ("a,0.1,cat\nb,0.7,dog\n", {"target_label": "dog"}, [0.1, 0.7], [False, True]),
        (
            "0.1 cat\n0.7 dog\n0.3 cow\n",
            {"target_label": "dog"},
            [0.1, 0.7, 0.3],
            [False, True, False],
        ),
        ("0.1 1\n0.7 0\n", {"target_label": "0"}, [0.1, 0.7], [False, True]),
        ("d,label\n0.1,1\n0.7,0\n", {"lower_is_target": True}, [-0.1, -0.7], [True, False]),
        ("1 0\n0 1\n", {"score_columns": ("column 2",)}, [0, 1], [True, False]),
        ("1 0\n0 1\n", {"label_column": "column 2"}, [1, 0], [False, True]),
        (
            "a,b,c\n0.1,0.7,1\n0.2,0.8,0\n",
            {"score_columns": ("b",)},
            [0.7, 0.8],
            [True, False],
        ),
        (
            "score,a,label\n0.1,0,1\n0.2,1,0\n",
            {"label_column": "a"},
            [0.1, 0.2],
            [False, True],
        ),
        ("score,label\n-inf,0\ninf,1\n", {}, [-torch.inf, torch.inf], [False, True]),
        (
            "score,label\n0.1,1\n,0\n0.3,\n0.2,0\n",
            {"missing": "drop"},
            [0.1, 0.2],
            [True, False],
        ),
    ],
)
def test_options_say_how_a_file_is_read(
    text: str,
    options: dict[str, Any],
    scores: list[float],
    labels: list[bool],
    tmp_path: Path,
) -> None:
    found = read(written(tmp_path / "s.txt", text), **options)
    assert (found.trials.scores.tolist(), found.trials.labels.tolist()) == (scores, labels)
    assert ("2 rows without a label or a score left out" in found.read) == (
        "missing" in options
    )
    assert ("thresholds are" in found.read) == ("lower_is_target" in options)


def test_the_sentence_says_all(tmp_path: Path) -> None:
    path = written(
        tmp_path / "s.txt", "t1 - bonafide 0.5\nt2 A07 spoof 1.5\nt3 A08 spoof 2.5\n"
    )
    roles = 'names "column 1"; labels "column 3" (bonafide = target); scores "column 4"; not used: column 2'
    assert (
        read(path, named=True).read
        == f"s.txt: separated by white space, no header; {roles}"
    )


def test_groups_may_be_missing_and_clusters_may_not(tmp_path: Path) -> None:
    text = "score,label,year,site\n1,1,2019,n\n0,0,2020,\n2,1,2019,n\n"
    path, arrays = written(tmp_path / "s.csv", text), tmp_path / "s.npz"
    np.savez(arrays, scores=[1.0, 0.0, 2.0], labels=[1, 0, 1], year=[2019, 2020, 2019])
    plain = written(tmp_path / "s.txt", "a 1 0.5\nb 0 0.7\n")
    found = read(path, by=("year", "site")).groups
    assert found["site"].codes.tolist() == [0, 1, 0]
    for group, names in (
        (found["site"], ["n", "(none)"]),
        (found["year"], ["2019", "2020"]),
        (read(arrays, by=("year",)).groups["year"], ["2019", "2020"]),
        (read(plain, by=("column 1",)).groups["column 1"], ["a", "b"]),
    ):
        assert group.names == names
    with refused_file("has_name, row 2, column site"):
        read(path, cluster="site")


@pytest.mark.parametrize(
    ("text", "options", "refusal"),
    [
        ("score,label\n", {}, "rows_below_header"),
        ("a,label\nx,1\n", {}, "no_trial_scores"),
        ("a,score\nx,1.5\n", {}, "no_trial_labels"),
        ("score,label\n1,1\n2,0\nx,1\n", {}, "number, row 3, column score"),
        ("score,label\n1,1\nnan,0\n", {}, "missing_value, row 2, column score"),
        ("score,label\n1,1\n2,\n", {}, "missing_value, row 2, column label"),
        ("score,label\n1,1\n2,0\n3,0\n1,x\n", {}, "label_of_trial, row 4, column label"),
        ("score,label\n1,1\n2,0\n", {"target_label": "x"}, "no_target"),
        ("0.5 0\n", {}, "both_kinds_of_trials"),
        ("score,label\n1,1\n0,0\n", {"label_column": "y"}, "has_named_column"),
        (
            "score,a,label\n1,1,1\n0,0,0\n",
            {"score_columns": ("a", "score")},
            "one_column_of_scores",
        ),
        (
            "score,label,trial\n1,1,a\n0,0,\n",
            {"named": True},
            "names_row, row 2, column trial",
        ),
    ],
)
def test_errors_name_the_place_and_the_next_step(
    text: str, options: dict[str, Any], refusal: str, tmp_path: Path
) -> None:
    with refused_file(refusal):
        read(written(tmp_path / "s.txt", text), **options)


@pytest.mark.parametrize(
    ("scores", "trials", "refusal"),
    [
        ("a x 1\nc x 2\nb x 3\n", "a x target\nb x nontarget\n", "t.txt: rows_of_file"),
        ("a x 1\na x 2\n", "a x target\nb x nontarget\n", "s.txt: different_ids, row 2"),
        ("a x 1\n", "a x target\nb y nontarget\n", "s.txt: rows_of_file"),
        ("a x 1\nb x 2\n", "a x 1\na x 0\n", "t.txt: different_ids, row 2"),
        ("a x 1\nb x 2\n", "a x yes\nb x maybe\n", "t.txt: column_of_labels"),
        ("a x 1.5\n", "b y 1\n", "t.txt: ids_of_both"),
        ("t 1.5\n", "t 1 x y z\n", "t.txt: one_column_of_labels"),
    ],
)
def test_labels_apart_must_match(
    scores: str, trials: str, refusal: str, tmp_path: Path
) -> None:
    with refused_file(refusal):
        read(
            written(tmp_path / "s.txt", scores), labels=written(tmp_path / "t.txt", trials)
        )


@pytest.mark.parametrize(
    ("scores", "labels", "refusal"),
    [
        ([0.0, 1, 0], [1, 0, 2], "label_of_trial, row 3, column labels"),
        ([0.0, 1, np.nan], [1, 0, 1], "s.npz: missing_value, row 3, column scores"),
        ([[0.0, 1]] * 3, [1, 0, 1], "s.npz: single_value, column scores"),
    ],
)
def test_arrays_that_break_a_rule_are_refused(
    tmp_path: Path, scores: list[Any], labels: list[int], refusal: str
) -> None:
    np.savez(tmp_path / "s.npz", scores=scores, labels=labels)
    with refused_file(refusal):
        read(tmp_path / "s.npz")


UNCLEAR = yaml.safe_load(
    Path(__file__).with_name("unclear_trials.yaml").read_text(encoding="utf-8")
)
"""By what it is: the content of a file, the code of the refusal, and the options that it offers."""


@pytest.mark.parametrize("name", UNCLEAR)
def test_an_unclear_file_is_refused_with_options_that_were_tried(
    name: str, tmp_path: Path
) -> None:
    case = UNCLEAR[name]
    path = written(tmp_path / "s.txt", case["content"])
    with pytest.raises(UnclearFileError) as refused:
        read(path)
    assert refused.value.code == case["code"]
    assert [offer.words for offer in refused.value.offers] == case["offers"]
    for offer in refused.value.offers:
        rate = equal_error_rate(*read_trials(path, offer.options, lambda _: None).trials)
        assert offer.measured.values == {"": rate.item()}


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("y_true,prob_benign\nmalignant,.2\nbenign,.9\n", "benign"),
        ("died,prob_died,ward\n1,.9,2\n0,.2,1\n", "1"),
        ("label,prob_fake\n1,.9\n0,.2\n", "1"),
        ("label,P(y=0)\n0,.9\n1,.2\n", None),
    ],
)
def test_names_of_scores_mean_what_they_mean_to_classifiers(
    text: str, target: str | None, tmp_path: Path
) -> None:
    path = written(tmp_path / "s.csv", text)
    predictions = Predictions(path)
    assert predictions.rows().scores.argmax(dim=1).equal(predictions.rows().target)
    if target is None:
        with pytest.raises(UnclearFileError):
            read(path)
        return
    trials = read(path).trials
    assert equal_error_rate(*trials) == 0
    assert predictions.class_names[predictions.roles.of_class] == target
