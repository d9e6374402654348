"""``mpcs detect`` with several files, development trials, clusters and conditions."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from mpcs_torch.calibration import LogisticCalibration, LogisticFusion
from mpcs_torch.functional import OperatingPoint, cllr, equal_error_rate, partial_auc
from mpcs_torch.metrics import MinDetectionCost
from tests.cli.test_cli import one_line, run
from tests.conftest import details

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


def test_detectors_are_compared_on_the_same_trials(
    evaluation: Simulated, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(capsys, *evaluation.paths, "--point", 0.5)
    assert list(found["models"]) == ["a-1", "b-1", "c-1"]
    for name, scores in evaluation.scores.items():
        rate = equal_error_rate(scores, evaluation.labels).item()
        assert found["models"][f"{name}-1"]["metrics"]["equal_error_rate"] == pytest.approx(
            rate
        )
    rates = [
        row
        for row in found["comparisons"]
        if row["metric"] == "equal_error_rate_interpolated"
    ]
    pairs = {tuple(row["systems"]): row for row in rates}
    assert pairs["a-1", "b-1"]["adjusted_p_value"] < 0.01
    assert pairs["a-1", "c-1"]["adjusted_p_value"] > 0.05
    rates = [
        equal_error_rate(
            evaluation.scores[n], evaluation.labels, method="interpolated"
        ).item()
        for n in "ab"
    ]
    assert pairs["a-1", "b-1"]["difference"] == pytest.approx(rates[1] - rates[0])
    assert run("detect", *evaluation.paths, "--point", 0.5) == 0
    out = capsys.readouterr().out
    assert "By equal error rate (interpolated), b-1 is better than a-1 and c-1." in out
    assert [cell.strip() for cell in out.splitlines()[5].split("|")[1:-1]] == [
        "metric",
        "a-1",
        "b-1",
        "c-1",
    ]


def test_costs_and_decisions_are_compared_at_thresholds_and_likelihood_ratios_only_if_all_are(
    evaluation: Simulated, development: Simulated, capsys: pytest.CaptureFixture[str]
) -> None:
    def compared(*options: object) -> set[str]:
        return {
            row["metric"]
            for row in told(capsys, *evaluation.paths, *options)["comparisons"]
        }

    rate, area, cost = (
        "equal_error_rate_interpolated",
        "area_under_roc",
        "cost[threshold=1,p=0.5]",
    )
    wrong = "wrong_decisions[p=0.5]"
    assert compared("--point", 0.5) == {rate, area}
    assert compared("--point", 0.5, "--threshold", 1) == {rate, area, cost, wrong}
    assert compared("--point", 0.5, "--llr") == {
        rate,
        area,
        "cllr",
        "actual_cost[p=0.5]",
        wrong,
    }
    fused = compared(
        *learning(development), "--fuse", "--point", 0.5
    )  # the fusion alone gives likelihood ratios
    assert "cllr" not in fused


def test_thresholds_calibrations_and_a_fusion_are_learnt(
    evaluation: Simulated, development: Simulated, capsys: pytest.CaptureFixture[str]
) -> None:
    options = (
        "--point",
        0.2,
        "--calibrate",
        "logistic",
        "--fuse",
        "--at-false-alarm",
        0.1,
        "--at-miss",
        0.1,
    )
    found = told(capsys, *evaluation.paths, *learning(development), *options)["models"]
    assert list(found) == [
        "a-1",
        "b-1",
        "c-1",
        "a-1, calibrated",
        "b-1, calibrated",
        "c-1, calibrated",
        "fusion",
    ]
    learned = details(
        MinDetectionCost(OperatingPoint(0.2)), development.scores["b"], development.labels
    )
    assert (
        found["b-1"]["errors"]["cost[development,p=0.2]"]["threshold"] == learned.threshold
    )
    name = "miss_rate[development,p_fa=0.1]"
    missed = (
        evaluation.scores["b"][evaluation.labels]
        < found["b-1"]["errors"][name]["threshold"]
    )
    assert found["b-1"]["metrics"][name] == pytest.approx(missed.double().mean().item())
    assert "false_alarm_rate[development,p_miss=0.1]" in found["b-1"]["metrics"]
    module = LogisticCalibration(0.2).fit(development.scores["a"], development.labels)
    ratios = cllr(module(evaluation.scores["a"]), evaluation.labels)
    assert found["a-1, calibrated"]["metrics"]["cllr"] == pytest.approx(ratios.item())
    stacked = [
        torch.stack([held.scores[name] for name in NAMES], dim=1)
        for held in (development, evaluation)
    ]
    fused = LogisticFusion(3, 0.2).fit(stacked[0], development.labels)(stacked[1])
    assert found["fusion"]["metrics"]["area_under_roc"] == pytest.approx(
        partial_auc(fused, evaluation.labels).item()
    )


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


def test_each_condition_is_measured(
    evaluation: Simulated, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(
        capsys,
        evaluation.paths[0],
        "--by",
        "noisy",
        "--by",
        "speaker",
        "--point",
        0.5,
        "--no-intervals",
    )
    by_noise, by_speaker = found["groups"]
    for name, chosen in (("True", evaluation.noisy), ("False", ~evaluation.noisy)):
        rate = equal_error_rate(
            evaluation.scores["a"][chosen], evaluation.labels[chosen]
        ).item()
        assert by_noise["groups"][name]["metrics"]["equal_error_rate"] == pytest.approx(
            rate
        )
        assert by_noise["groups"][name]["targets"] == int(evaluation.labels[chosen].sum())
    [incomplete] = [
        note
        for note in found["notes"]
        if note.startswith("Without targets or without non-targets, by s")
    ]
    assert len(by_speaker["groups"]) + incomplete.count(",") == 30
    assert run("detect", evaluation.paths[0], "--by", "noisy", "--no-intervals") == 0
    assert "a-1.csv, by noisy" in capsys.readouterr().out


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
    higher_is_better = {"area_under_roc", "area_under_roc[p_fa=0.1]", "h_measure"}
    assert higher_is_better < set(by_noise["worst"])
    for name, worst in by_noise["worst"].items():
        values = [group["metrics"][name] for group in by_noise["groups"].values()]
        assert min(values) < max(values), (
            f"{name} does not tell the worst from the best condition"
        )
        assert worst == (min if name in higher_is_better else max)(values), name
        assert by_noise["spread"][name] == pytest.approx(max(values) - min(values))
        assert by_noise["mean of groups"][name] == pytest.approx(sum(values) / 2)


def test_clusters_change_intervals_and_not_values(
    evaluation: Simulated, capsys: pytest.CaptureFixture[str]
) -> None:
    options = (evaluation.paths[0], "--point", 0.5, "--threshold", 1, "--llr")
    plain, clustered = (
        told(capsys, *options, *more) for more in ((), ("--cluster", "speaker"))
    )
    assert plain["metrics"] == clustered["metrics"]
    assert set(plain["intervals"]) == set(clustered["intervals"])
    for name, (low, high) in clustered["intervals"].items():
        assert low != plain["intervals"][name][0]
        assert low < clustered["metrics"][name] < high


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


def changed(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\nt7,", "\nt999,", "a-1.csv: lacks 1 row of {folder}/b-1.csv, such as 't999'"),
        (
            "trial,",
            "remark,",
            "b-1.csv: must name its trials, by a column trial or --id-column, as the other file does",
        ),
        (
            "\nt8,",
            "\nt9,",
            "each id must name one row, but 't9' appears again: name other columns with --id-column",
        ),
    ],
)
def test_trials_that_do_not_match_are_refused(
    evaluation: Simulated,
    old: str,
    new: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    changed(evaluation.paths[1], old, new)
    assert run("detect", *evaluation.paths) == 2
    assert message.format(folder=tmp_path) in one_line(capsys.readouterr().err)


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
    changed(files[1], "2,1", "2,0")
    assert run("detect", *files) == 2
    assert "b.csv: row 3 must have the label that it has in " in one_line(
        capsys.readouterr().err
    )
    (tmp_path / "b.csv").write_text("score,label\n3,1\n1,0\n")
    assert run("detect", *files) == 2
    assert "b.csv: has 2 rows without names, but " in one_line(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--fuse",), "--fuse: needs --development"),
        (("--calibrate", "logistic"), "--calibrate: needs --development"),
        (
            ("--development", "DEV"),
            "must be given once for each of the 3 files of scores, but is given 1 times",
        ),
        (
            ("--by", "colour"),
            "has no column 'colour' of --by; it has trial, speaker, noisy, score, label",
        ),
        (("--threshold", "nan"), "--threshold: must be a number, but is nan"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    evaluation: Simulated,
    development: Simulated,
    options: tuple[object, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = evaluation.paths[0]
    lines = path.read_text().splitlines()
    path.write_text("\n".join([f"{lines[0]},one", *(f"{line},x" for line in lines[1:])]))
    given = [development.paths[0] if option == "DEV" else option for option in options]
    assert run("detect", *evaluation.paths, *given) == 2
    assert message in one_line(capsys.readouterr().err)


def test_the_points_of_the_curve_and_the_rate_at_the_development_minimum_are_given_on_request(
    evaluation: Simulated, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    development = Simulated(tmp_path, 2)
    given = (
        "--development",
        development.paths[0],
        "--at-minimum",
        "--json",
        "--det",
        tmp_path / "det.csv",
    )
    assert run("detect", evaluation.paths[0], *given) == 0
    found = json.loads(capsys.readouterr().out)
    name = "half_total_error_rate[development_minimum]"
    threshold = found["errors"][name]["threshold"]

    def rates(simulated: Simulated, at: float) -> tuple[float, float]:
        scores, labels = simulated.scores["a"], simulated.labels
        return (scores[labels] < at).double().mean().item(), (
            scores[~labels] >= at
        ).double().mean().item()

    thresholds = [*development.scores["a"].unique().tolist(), float("inf")]
    assert sum(rates(development, threshold)) == pytest.approx(
        min(sum(rates(development, at)) for at in thresholds)
    )
    assert found["metrics"][name] == pytest.approx(sum(rates(evaluation, threshold)) / 2)
    lines = (tmp_path / "det.csv").read_text().splitlines()
    assert lines[0] == "detector,threshold,miss_rate,false_alarm_rate"
    assert len(lines) == 2 + len(evaluation.scores["a"].unique())
    for line in lines[1:]:
        _, at, *both = line.split(",")
        assert tuple(map(float, both)) == pytest.approx(rates(evaluation, float(at)))
    assert run("detect", evaluation.paths[0], "--at-minimum") == 2
    assert "needs --development" in one_line(capsys.readouterr().err)
