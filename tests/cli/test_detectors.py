"""``mpcs detect`` with several files, development trials, clusters and conditions."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.cli.shell import run

NAMES = ("a", "b", "c")


class Simulated:
    """Three detectors of the same trials, the second the best; in files whose rows are in different orders."""

    def __init__(self, folder: Path, seed: int, size: int = 400) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.arange(size) % 4 == 0
        self.speakers = torch.randint(30, (size,), generator=generator)
        self.noisy = torch.rand(size, generator=generator) < 0.4
        self.scores, self.paths = {}, []
        for name, distance in zip(NAMES, (1.5, 3.0, 1.5), strict=True):
            noise = torch.randn(size, generator=generator, dtype=torch.float64)
            scores = (2 * (noise + (distance - 0.8 * self.noisy) * self.labels)).round(
                decimals=3
            )
            self.scores[name] = scores
            order = torch.randperm(size, generator=generator).tolist()
            rows = [
                f"t{i},s{self.speakers[i]},{self.noisy[i]},{scores[i]},{int(self.labels[i])}"
                for i in order
            ]
            self.paths.append(folder / f"{name}-{seed}.csv")
            self.paths[-1].write_text("\n".join(["trial,speaker,noisy,score,label", *rows]))


@pytest.fixture
def evaluation(tmp_path: Path) -> Simulated:
    return Simulated(tmp_path, 1)


@pytest.fixture
def development(tmp_path: Path) -> Simulated:
    return Simulated(tmp_path, 2)


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    assert run("detect", *arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


def learning(development: Simulated) -> list[object]:
    return [argument for path in development.paths for argument in ("--development", path)]


def test_pav_calibrates_one_detector(
    evaluation: Simulated, development: Simulated, capsys: pytest.CaptureFixture[str]
) -> None:
    options = (
        "--development",
        development.paths[0],
        "--calibrate",
        "pav",
        "--no-intervals",
    )
    found = told(capsys, evaluation.paths[0], *options)["models"]
    assert list(found) == ["a-1.csv", "a-1.csv, calibrated"]
    plain, calibrated = (set(scores["metrics"]) for scores in found.values())
    assert calibrated - plain >= {"cllr", "calibration_loss"}


def test_the_worst_condition_is_the_worst_in_the_direction_of_each_metric(
    evaluation: Simulated, development: Simulated, capsys: pytest.CaptureFixture[str]
) -> None:
    options = (
        "--point",
        0.5,
        "--llr",
        "--max-false-alarm",
        0.1,
        "--threshold",
        1,
        "--at-miss",
        0.1,
        "--no-intervals",
    )
    found = told(
        capsys,
        evaluation.paths[0],
        "--development",
        development.paths[0],
        "--by",
        "noisy",
        *options,
    )
    [by_noise] = found["groups"]
    higher_is_better = {"auroc", "auroc[p_fa=0.1]", "h_measure"}
    assert higher_is_better < set(by_noise["worst"])
    for name, worst in by_noise["worst"].items():
        values = [group["metrics"][name] for group in by_noise["groups"].values()]
        assert min(values) < max(values), (
            f"{name} does not tell the worst from the best condition"
        )
        assert worst == (min if name in higher_is_better else max)(values), name
        assert by_noise["spread"][name] == pytest.approx(max(values) - min(values))
        assert by_noise["mean of groups"][name] == pytest.approx(sum(values) / 2)


@pytest.mark.slow
def test_a_report_shows_all_detectors(
    evaluation: Simulated,
    development: Simulated,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = tmp_path / "r.html"
    options = ("--fuse", "--by", "noisy", "--cluster", "speaker", "--html", page)
    assert run("detect", *evaluation.paths, *learning(development), *options) == 0
    text = page.read_text()
    assert (
        text.count("data:image/svg+xml") == 4
    )  # DET, ROC, Bayes error of the fusion, conditions
    assert "Detection scores of 4 detectors" in text
    assert "<h1>By equal error rate" in text
    assert "clusters are independent, the trials of a cluster are not" in text
    assert "By noisy: fusion" in text


def test_files_without_names_are_matched_row_by_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("score,label\n1,1\n2,0\n3,1\n0,0\n")
    (tmp_path / "b.csv").write_text("score,label\n3,1\n1,0\n2,1\n0,0\n")
    files = tmp_path / "a.csv", tmp_path / "b.csv"
    assert (
        told(capsys, *files, "--no-intervals")["models"]["b"]["metrics"]["equal_error_rate"]
        == 0
    )
