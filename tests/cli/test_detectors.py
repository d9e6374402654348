"""``mpcs detect`` with several files, development trials, clusters and conditions."""

from pathlib import Path

import pytest
import torch

from tests.cli.shell import Shell

NAMES = ("a", "b", "c")


def simulate(prefix: str, seed: int) -> None:
    """Write three detectors of the same trials, the second the best, in files whose rows are in different orders."""
    size, generator = 400, torch.Generator().manual_seed(seed)
    labels = torch.arange(size) % 4 == 0
    speakers = torch.randint(30, (size,), generator=generator)
    noisy = torch.rand(size, generator=generator) < 0.4
    for name, distance in zip(NAMES, (1.5, 3.0, 1.5), strict=True):
        noise = torch.randn(size, generator=generator, dtype=torch.float64)
        scores = (2 * (noise + (distance - 0.8 * noisy) * labels)).round(decimals=3)
        rows = [
            f"t{i},s{speakers[i]},{noisy[i]},{scores[i]},{int(labels[i])}"
            for i in torch.randperm(size, generator=generator).tolist()
        ]
        header = "trial,speaker,noisy,score,label"
        Path(f"{prefix}{name}.csv").write_text("\n".join([header, *rows]))


@pytest.fixture(autouse=True)
def _files(mpcs: Shell) -> None:
    simulate("", 1)
    simulate("dev-", 2)


def test_pav_calibrates_one_detector(mpcs: Shell) -> None:
    learning = "--development dev-a.csv --calibrate pav"
    models = mpcs.json(f"detect a.csv {learning} --no-intervals")["models"]
    assert list(models) == ["a.csv", "a.csv, calibrated"]
    plain, calibrated = [set(scores["metrics"]) for scores in models.values()]
    assert calibrated - plain >= {"cllr", "calibration_loss"}


def test_development_trials_have_labels_in_a_list_of_their_own(mpcs: Shell) -> None:
    learned = "--development dev-a.csv --calibrate pav --no-intervals"
    expected = mpcs.json(f"detect a.csv {learned}")["models"]
    for prefix in ("", "dev-"):
        rows = [row.split(",") for row in Path(f"{prefix}a.csv").read_text().split()]
        for name, columns in (("scores", (0, 3)), ("labels", (0, 4))):
            lines = [",".join(row[place] for place in columns) for row in rows]
            # The lists name different trials.
            renamed = [line.replace("t", f"{prefix}t", 1) for line in lines[1:]]
            Path(f"{prefix}{name}.csv").write_text("\n".join([lines[0], *renamed]))
    options = "--development dev-scores.csv --calibrate pav --no-intervals"
    lists = "--labels labels.csv --development-labels dev-labels.csv"
    models = mpcs.json(f"detect scores.csv {lists} {options}")["models"]
    assert list(models) == ["scores.csv", "scores.csv, calibrated"]
    for of_lists, of_columns in zip(models.values(), expected.values(), strict=True):
        assert of_lists["metrics"] == of_columns["metrics"]


def test_the_worst_condition_is_the_worst_in_the_direction_of_each_metric(
    mpcs: Shell,
) -> None:
    metrics = "--point 0.5 --llr --max-false-alarm 0.1 --threshold 1 --at-miss 0.1"
    files = "a.csv --development dev-a.csv --by noisy"
    [by_noise] = mpcs.json(f"detect {files} {metrics} --no-intervals")["groups"]
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
def test_a_report_shows_all_detectors(mpcs: Shell) -> None:
    learning = " ".join(f"--development dev-{name}.csv" for name in NAMES)
    options = "--fuse --by noisy --cluster speaker --html r.html"
    mpcs(f"detect a.csv b.csv c.csv {learning} {options}")
    text = Path("r.html").read_text()
    # DET, ROC, Bayes error of the fusion, conditions
    assert text.count("data:image/svg+xml") == 4
    for part in (
        "Detection scores of 4 detectors",
        "<h1>By equal error rate",
        "clusters are independent, the trials of a cluster are not",
        "By noisy: fusion",
    ):
        assert part in text


def test_files_without_names_are_matched_row_by_row(mpcs: Shell) -> None:
    Path("a.csv").write_text("score,label\n1,1\n2,0\n3,1\n0,0\n")
    Path("b.csv").write_text("score,label\n3,1\n1,0\n2,1\n0,0\n")
    models = mpcs.json("detect a.csv b.csv --no-intervals")["models"]
    assert models["b"]["metrics"]["equal_error_rate"] == 0
