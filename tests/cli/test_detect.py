"""``mpcs detect``: the table, JSON, the report, and refused options."""

import json
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.metrics.detection.cases import detections
from tests.report.page import Page


def test_json_and_the_report_of_likelihood_ratios(mpcs: Shell) -> None:
    pairs = zip(*(values.tolist() for values in detections(90, 0)), strict=True)
    lines = [f"{score},{label}" for score, label in pairs]
    Path("s.csv").write_text("\n".join(["score,label", *lines]))
    plain = mpcs.json("detect s.csv --llr --html r.html")
    assert (plain["targets"], plain["non-targets"]) == (30, 60)
    assert plain["metrics"]["actual_cost[p=0.01]"] > 0
    before = Path("r.html").read_text()
    assert before.count("data:image/svg+xml") == 4
    assert "--overwrite" in mpcs.refusal("detect s.csv --html r.html")
    assert Path("r.html").read_text() == before


def test_a_warning_of_reversed_scores_is_printed_once(mpcs: Shell) -> None:
    Path("s.txt").write_text("0 1\n1 0\n0.5 1\n2 0\n" * 8)
    printed = "".join(mpcs("detect s.txt --html r.html"))
    assert printed.count("E6: the area under the ROC is below one half") == 1
    page = Page(Path("r.html")).text
    for part in ("min_cost[p=0.5]", "--lower-is-target", "mpcs detect s.txt"):
        assert part in page


KINDS = {
    "a header of tabs": (
        "score\tlabel\n.9\t1\n.2\t0\n.4\t0\n.7\t1\n",
        "",
        'separated by tabs; labels "label" (1 = target)',
    ),
    "four columns of anti-spoofing": (
        "u1 - bonafide 1.5\nu2 A1 spoof -2\nu3 A2 spoof .5\nu4 - bonafide .75\n",
        "",
        'separated by white space, no header; labels "column 3" (bonafide = target); scores "column 4"; '
        "not used: column 1, column 2",
    ),
    "the label first": (
        "1 .9\n0 .2\n0 .4\n1 .7\n",
        "",
        'labels "column 1" (1 = target); scores "column 2"',
    ),
    "a list of trials, label first": (
        "a x .9\na y .2\nb x .4\nb y .7\n",
        "0 b x\n1 a x\n1 b y\n0 a y\n",
        'names "column 1" and "column 2"; labels "labels" (1 = target); scores "column 3"',
    ),
    "one name and a key": (
        "u1 .9\nu2 .2\nu3 .4\nu4 .7\n",
        "u1 bonafide\nu4 bonafide\nu2 spoof\nu3 spoof\n",
        'labels column 2 of key.txt by \'column 1\'; names "column 1"; labels "labels" (bonafide = target)',
    ),
    "own names of columns": (
        "person,ward,true_label,oof_proba\na,n,1,.9\nb,n,0,.2\nc,s,0,.4\nd,s,1,.7\n",
        "",
        'labels "true_label" (1 = target); scores "oof_proba"; not used: person, ward',
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_files_are_read_as_they_are_and_the_first_line_says_how(
    kind: str, mpcs: Shell
) -> None:
    text, key, how = KINDS[kind]
    Path("s.txt").write_text(text)
    Path("key.txt").write_text(key)
    detect = "detect s.txt --no-intervals" + (" --labels key.txt" if key else "")
    first = mpcs(f"{detect} --quiet").out.splitlines()[0]
    assert first.startswith("s.txt: ")
    assert how in first
    printed = mpcs(f"{detect} --json")
    plain = json.loads(printed.out)
    assert plain["read"] == [first]
    assert first in printed.err
    assert plain["metrics"]["equal_error_rate"] == 0


def test_rows_that_share_a_patient_are_warned_of_unless_clusters_are_given(
    mpcs: Shell,
) -> None:
    rows = [f"p{i % 10},{i * 7 % 60 / 10},{int(i * 11 % 60 > 29)}" for i in range(60)]
    Path("s.csv").write_text("\n".join(["patient_id,score,label", *rows]))
    warning = "warning: E2: rows share values of 'patient_id' (10)"
    assert warning in mpcs("detect s.csv").err
    for option in ("--cluster patient_id", "--no-intervals", "--mute E2"):
        assert "E2" not in mpcs(f"detect s.csv {option}").err
