"""``mpcs detect``: the table, JSON, the report, and refused options."""

import json
from pathlib import Path

import pytest

from tests.cli.shell import one_line, run
from tests.metrics.detection.cases import detections
from tests.report.page import Page


@pytest.fixture
def file(tmp_path: Path) -> Path:
    scores, labels = detections(90, 0)
    rows = [
        f"{score},{label}"
        for score, label in zip(scores.tolist(), labels.tolist(), strict=True)
    ]
    (tmp_path / "s.csv").write_text("\n".join(["score,label", *rows]))
    return tmp_path / "s.csv"


def test_json_and_the_report_of_likelihood_ratios(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "r.html"
    arguments = ("detect", file, "--llr", "--json", "--html", page)
    assert run(*arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["targets"], told["non-targets"]) == (30, 60)
    assert told["metrics"]["actual_cost[p=0.01]"] > 0
    assert page.read_text().count("data:image/svg+xml") == 4
    before = page.stat().st_mtime_ns
    assert run(*arguments) == 2
    assert "--overwrite" in one_line(capsys.readouterr().err)
    assert page.stat().st_mtime_ns == before


def test_a_warning_of_reversed_scores_is_printed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.txt").write_text("0 1\n1 0\n0.5 1\n2 0\n" * 8)
    assert run("detect", tmp_path / "s.txt", "--html", tmp_path / "r.html") == 0
    printed = capsys.readouterr()
    assert (printed.out + printed.err).count(
        "E6: the area under the ROC is below one half"
    ) == 1
    told = Page(tmp_path / "r.html").text
    assert "min_cost[p=0.5]" in told
    assert "--lower-is-target" in told
    assert f"mpcs detect {tmp_path / 's.txt'}" in told


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
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, key, how = KINDS[kind]
    (tmp_path / "s.txt").write_text(text)
    (tmp_path / "key.txt").write_text(key)
    options = ["--labels", tmp_path / "key.txt"] if key else []
    assert run("detect", tmp_path / "s.txt", *options, "--no-intervals", "--quiet") == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("s.txt: ")
    assert how in first
    assert run("detect", tmp_path / "s.txt", *options, "--no-intervals", "--json") == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert told["read"] == [first]
    assert first in printed.err
    assert told["metrics"]["equal_error_rate"] == 0


def test_rows_that_share_a_patient_are_warned_of_unless_clusters_are_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"p{i % 10},{i * 7 % 60 / 10},{int(i * 11 % 60 > 29)}" for i in range(60)]
    (tmp_path / "s.csv").write_text("\n".join(["patient_id,score,label", *rows]))
    assert run("detect", tmp_path / "s.csv") == 0
    assert "warning: E2: rows share values of 'patient_id' (10)" in capsys.readouterr().err
    for options in (("--cluster", "patient_id"), ("--no-intervals",), ("--mute", "E2")):
        assert run("detect", tmp_path / "s.csv", *options) == 0
        assert "E2" not in capsys.readouterr().err
