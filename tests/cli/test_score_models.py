"""``mpcs score`` of several models, groups and clusters: tables, verdicts, JSON, the report, and refused options."""

import json
import re
from pathlib import Path

import pytest
import torch

from tests.cli.shell import run

CONCERN = "classes: [red, green]\nweights: [[0, 5], [1, 0]]\ndangerous: 5\n"


def write(path: Path, skill: float) -> Path:
    generator = torch.Generator().manual_seed(int(10 * skill))
    rows = []
    for row in range(90):
        right = torch.sigmoid(skill + torch.randn((), generator=generator)).item()
        red = right if row % 3 else 1 - right
        rows.append(
            f"p{row % 15},{['north', 'south'][row % 2]},{red},{1 - red},{'red' if row % 3 else 'green'}"
        )
    path.write_text("\n".join(["patient,site,red,green,target", *rows]) + "\n")
    return path


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    (tmp_path / "concern.yaml").write_text(CONCERN)
    return [
        write(tmp_path / f"{name}.csv", skill)
        for name, skill in (("A", -0.5), ("B", 1.0), ("C", 1.2))
    ]


def grouped(files: list[Path], *arguments: object) -> int:
    concern = files[0].with_name("concern.yaml")
    return run(
        "score",
        *files,
        "--by",
        "site",
        "--cluster",
        "patient",
        "--concern",
        concern,
        *arguments,
    )


def test_models_have_a_column_each_and_a_verdict_for_each_metric(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert grouped(files) == 0
    out = capsys.readouterr().out
    assert (
        "95 % intervals: 15 clusters (patient) are independent, the rows of a cluster are not."
        in out
    )
    assert (
        "By rate of wrong decisions, the data do not show which of B and C is best; A is worse than B and C."
        in out
    )
    for metric in ("rate of dangerous errors", "MPCS", "expected concern"):
        assert f"By {metric}, " in out
    assert "Intervals of groups are each of one group alone." in out


def test_the_report_shows_each_model(files: list[Path], tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    assert grouped(files, "--html", page) == 0
    text = page.read_text()
    figures = 9  # confusion matrix and reliability of each, referral, decision curves, and a chart of sites
    assert text.count("data:image/svg+xml") == figures
    assert "Scores of A, B, C" in text
    assert "<h1>By rate of dangerous errors" in text
    assert text.index("Comparison on the same rows") < text.index(
        "<li>By rate of wrong decisions"
    )


def test_one_file_has_intervals_unless_they_are_refused(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert grouped(files, "--no-intervals") == 0
    assert not re.search("95 %|By MPCS", capsys.readouterr().out)
    files[0].write_text(
        "\n".join(line.split(",", 2)[2] for line in files[0].read_text().splitlines())
    )
    assert run("score", files[0], "--no-intervals") == 0
    assert "95 %" not in capsys.readouterr().out
    assert run("score", files[0], "--all") == 0
    out = capsys.readouterr().out
    assert "95 % intervals assume independent rows" in out
    assert (
        "No interval for measured_geometric_accuracy, measured_decisiveness, measured_robustness, "
        in out
    )
    assert run("score", files[0], "--json") == 0
    assert list(json.loads(capsys.readouterr().out)["without_interval"]) == [
        *(
            f"measured_{name}"
            for name in ("geometric_accuracy", "decisiveness", "robustness")
        ),
        "calibration_slope",
    ]


def test_npy_files_share_the_file_of_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numpy = pytest.importorskip("numpy")
    probs = torch.rand(30, 2, generator=torch.Generator().manual_seed(0))
    for name, scores in (("A", probs), ("B", probs.flip(0))):
        numpy.save(tmp_path / f"{name}.npy", scores / scores.sum(1, keepdim=True))
    numpy.save(tmp_path / "t.npy", torch.arange(30) % 2)
    paths = [tmp_path / "A.npy", tmp_path / "B.npy"]
    assert (
        run("score", *paths, "--labels", tmp_path / "t.npy", "--metrics", "accuracy") == 0
    )
    assert "a difference in accuracy between A and B" in capsys.readouterr().out


def test_names_of_groups_are_texts_alone(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "r.html"
    hostile = (
        files[0].read_text().replace("north", "<b>\x1b[2J$x_{").replace("south", "s" * 300)
    )
    files[0].write_text(hostile)
    assert grouped(files[:1], "--html", page) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "s" * 300 not in out
    assert "<b>" not in page.read_text()
    assert "\x1b" not in page.read_text()
