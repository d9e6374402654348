"""``mpcs score`` of several models, groups and clusters: tables, verdicts, JSON, the report, and refused options."""

import re
from pathlib import Path

import pytest
import torch

from tests.cli.shell import Shell

CONCERN = "classes: [red, green]\nweights: [[0, 5], [1, 0]]\ndangerous: 5\n"
GROUPED = "--by site --cluster patient --concern concern.yaml"


def write(path: Path, skill: float) -> None:
    generator = torch.Generator().manual_seed(int(10 * skill))
    lines = ["patient,site,red,green,target"]
    for row in range(90):
        right = torch.sigmoid(skill + torch.randn((), generator=generator)).item()
        label, red = ("red", right) if row % 3 else ("green", 1 - right)
        site = ["north", "south"][row % 2]
        lines.append(f"p{row % 15},{site},{red},{1 - red},{label}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(autouse=True)
def _files(mpcs: Shell) -> None:
    Path("concern.yaml").write_text(CONCERN)
    for name, skill in (("A.csv", -0.5), ("B.csv", 1.0), ("C.csv", 1.2)):
        write(Path(name), skill)


def test_models_have_a_column_each_and_a_verdict_for_each_metric(mpcs: Shell) -> None:
    printed = mpcs(f"score A.csv B.csv C.csv {GROUPED}").out
    for sentence in (
        "95 % intervals: 15 clusters (patient) are independent, the rows of a cluster are not.",
        "By rate of wrong decisions, the data do not show which of B and C is best; A is worse than B and C.",
        "By rate of dangerous errors, ",
        "By MPCS, ",
        "By expected concern, ",
        "Intervals of groups are each of one group alone.",
    ):
        assert sentence in printed


def test_the_report_shows_each_model(mpcs: Shell) -> None:
    mpcs(f"score A.csv B.csv C.csv {GROUPED} --html r.html")
    text = Path("r.html").read_text()
    figures = 9  # confusion matrix and reliability of each, referral, decision curves, and a chart of sites
    assert text.count("data:image/svg+xml") == figures
    assert "Scores of A, B, C" in text
    assert "<h1>By rate of dangerous errors" in text
    other_verdict = text.index("<li>By rate of wrong decisions")
    assert text.index("Comparison on the same rows") < other_verdict


def test_one_file_has_intervals_unless_they_are_refused(mpcs: Shell) -> None:
    printed = mpcs(f"score A.csv B.csv C.csv {GROUPED} --no-intervals").out
    assert not re.search("95 %|By MPCS", printed)
    lines = Path("A.csv").read_text().splitlines()
    Path("A.csv").write_text("\n".join(line.split(",", 2)[2] for line in lines))
    assert "95 %" not in mpcs("score A.csv --no-intervals").out
    names = [
        "measured_geometric_accuracy",
        "measured_decisiveness",
        "measured_robustness",
        "calibration_slope",
    ]
    printed = mpcs("score A.csv --all").out
    assert "95 % intervals assume independent rows" in printed
    assert f"No interval for {', '.join(names[:3])}, " in printed
    assert list(mpcs.json("score A.csv")["without_interval"]) == names


def test_npy_files_share_the_file_of_labels(mpcs: Shell) -> None:
    numpy = pytest.importorskip("numpy")
    probs = torch.rand(30, 2, generator=torch.Generator().manual_seed(0))
    for name, scores in (("A", probs), ("B", probs.flip(0))):
        numpy.save(f"{name}.npy", scores / scores.sum(1, keepdim=True))
    numpy.save("t.npy", torch.arange(30) % 2)
    printed = mpcs("score A.npy B.npy --labels t.npy --metrics accuracy").out
    assert "a difference in accuracy between A and B" in printed


def test_names_of_groups_are_texts_alone(mpcs: Shell) -> None:
    text = Path("A.csv").read_text()
    hostile = text.replace("north", "<b>\x1b[2J$x_{").replace("south", "s" * 300)
    Path("A.csv").write_text(hostile)
    printed = mpcs(f"score A.csv {GROUPED} --html r.html").out
    assert "s" * 300 not in printed
    assert "<b>" not in Path("r.html").read_text()
    assert "\x1b" not in printed + Path("r.html").read_text()
