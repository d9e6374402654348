"""One report of each kind, made in seconds."""

from pathlib import Path

import torch

from mpcs_torch import ConcernSpec
from mpcs_torch.exit_statuses import ExitStatus
from mpcs_torch.report.demo import write_demo_report
from mpcs_torch.report.demonstration import WAYS, Demonstration, SeedResult
from tests.cli.selector_folders import train
from tests.cli.shell import must_run
from tests.report.test_run import trained

LONG = "a class whose name is as long as that of a file in a deep folder"
NAMES = ["red", "yellow", LONG]
REPORTS = (
    "score",
    "models",
    "detect",
    "run",
    "runs",
    "epochs",
    "seeds",
    "demo",
    "monitor",
)
"""The names of the pages."""
GENERATOR = torch.Generator().manual_seed(0)


def make_reports(folder: Path) -> dict[str, Path]:
    """Write a report of each command, and return the pages by name."""
    pages = {name: folder / f"{name}.html" for name in REPORTS}
    concern = folder / "concern.yaml"
    concern.write_text(f"classes: [red, yellow, '{LONG}']\nreleases: [[red, yellow]]\n")
    models = [
        _predictions(folder / f"{name}.csv", strength)
        for name, strength in (("mlp", 1.5), ("forest", 2.5))
    ]
    options = ("--concern", concern, "--by", "city")
    must_run("score", models[0], *options, "--html", pages["score"])
    must_run("score", *models, *options, "--html", pages["models"])
    detectors = [
        _trials(folder / f"{name}.csv", gap)
        for name, gap in (("ecapa", 3.0), ("xvector", 2.0))
    ]
    must_run("detect", *detectors, "--llr", "--by", "device", "--html", pages["detect"])
    runs = [
        trained(folder / name, selector={"by": name, "keep_every": 1})
        for name in ("mpcs", "cross_entropy")
    ]
    must_run("report", runs[0], "--out", pages["run"])
    must_run("report", *runs, "--out", pages["runs"])
    for seed in range(3):
        epochs = [
            {"missed": (7 * number + seed) % 20, "accuracy": 0.9, LONG: number / 7}
            for number in range(30)
        ]
        train(folder / "loops" / f"seed-{seed}", epochs)
    must_run("report", folder / "loops" / "seed-0", "--out", pages["epochs"])
    must_run("report", folder / "loops", "--out", pages["seeds"])
    write_demo_report(_demonstration(), pages["demo"])
    rule = folder / "rule.pt"
    must_run("decide", "fit", models[1], "--concern", concern, "--out", rule)
    log = _log(folder / "log.csv", 0.3)
    settings = ("--state", folder / "state.json", "--limit", "dangerous <= 0.05 by city")
    outputs = ("--html", pages["monitor"])
    must_run("monitor", rule, log, *settings, *outputs, status=ExitStatus.ALARM)
    return pages


def _log(path: Path, rate: float) -> Path:
    labels, wrong = torch.arange(900) % 3, torch.rand(900, generator=GENERATOR) < rate
    decisions = torch.where(wrong, (labels + 1) % 3, labels).tolist()
    rows = [
        f"2026-01-{1 + n // 30:02d},{NAMES[decision]},{label},city {n % 4}"
        for n, (decision, label) in enumerate(zip(decisions, labels.tolist(), strict=True))
    ]
    path.write_text("\n".join(["time,decision,target,city", *rows]) + "\n")
    return path


def _predictions(path: Path, strength: float) -> Path:
    labels = torch.arange(300) % 3
    noise = torch.randn(300, 3, generator=GENERATOR)
    probs = (noise + strength * torch.eye(3)[labels]).softmax(dim=1).tolist()
    rows = []
    for n, (row, label) in enumerate(zip(probs, labels.tolist(), strict=True)):
        shares = ",".join(f"{p:.6f}" for p in row)
        rows.append(f"{shares},{label},city {n % 4}")
    path.write_text("\n".join([f"{','.join(NAMES)},target,city", *rows]) + "\n")
    return path


def _trials(path: Path, gap: float) -> Path:
    labels = torch.arange(400) % 4 == 0
    scores = (torch.randn(400, generator=GENERATOR) + gap * labels).tolist()
    devices = ("phone", "far-field microphone in the ceiling")
    rows = [
        f"{n},{score},{int(label)},{devices[n % 2]}"
        for n, (score, label) in enumerate(zip(scores, labels, strict=True))
    ]
    path.write_text("\n".join(["trial,score,label,device", *rows]) + "\n")
    return path


def _demonstration() -> Demonstration:
    seeds, target = [], torch.arange(200) % 10
    for _seed in range(10):
        result = SeedResult(target, {})
        for way, share in zip(WAYS, (0.1, 0.09, 0.09, 0.07, 0.05), strict=True):
            is_guessed = torch.rand(200, generator=GENERATOR) < share
            guesses = torch.randint(0, 10, (200,), generator=GENERATOR)
            result.decisions[way] = torch.where(is_guessed, guesses, target)
        seeds.append(result)
    return Demonstration(ConcernSpec(10, releases=[[1, 8], [8, 1]]), seeds)
