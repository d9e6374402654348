"""Check the law of commands: of files, they say what the functions say of tensors with the same rows."""

import csv
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torchmetrics.classification import MulticlassCohenKappa

from mpcs_torch import ConcernSpec, evaluate
from mpcs_torch.calibration import LogisticCalibration, LogisticFusion
from mpcs_torch.concern import save_concern
from mpcs_torch.evaluation import Result, evaluate_detectors
from mpcs_torch.evaluation.fixed_thresholds import given_threshold, learned_thresholds
from mpcs_torch.exit_statuses import ExitStatus
from mpcs_torch.functional import OperatingPoint, costs_if_wrong, detection_curve
from tests.cli.shell import must_run
from tests.evaluation.alike import assert_alike

GENERATOR = torch.Generator().manual_seed(0)
ROWS = 240
CLASSES = ["a", "b", "c"]
ORDER = torch.randperm(ROWS, generator=GENERATOR).tolist()
TARGET = torch.randint(3, (ROWS,), generator=GENERATOR)
PROBS = {
    name: (
        1.5 * torch.randn(ROWS, 3, generator=GENERATOR).double()
        + skill * torch.eye(3)[TARGET]
    ).softmax(1)
    for name, skill in (("one", 1.0), ("two", 2.0))
}
SHARES = (0.8 * torch.eye(3).double()[TARGET] + 0.2 * PROBS["one"]).round(decimals=2)
SHARES[:, 0] = 1 - SHARES[:, 1:].sum(1)
COSTS = 10 * torch.rand(ROWS, 3, generator=GENERATOR).double()
UNITS = torch.arange(ROWS) // 4
OF_UNITS = TARGET[::4].repeat_interleave(4)
WEIGHTS = torch.rand(ROWS, generator=GENERATOR).double() + 0.1
COLUMNS: dict[str, list[Any]] = {
    "id": list(range(ROWS)),
    "patient": [f"p{unit}" for unit in UNITS],
    "reader": [f"r{row % 7}" for row in range(ROWS)],
    "shift": ["early" if row % 2 else "late" for row in ORDER],
    "site": ["north" if unit % 3 else "south" for unit in UNITS],
    "w": WEIGHTS.tolist(),
    "n": torch.randint(1, 5, (ROWS,), generator=GENERATOR).tolist(),
}
PAID = dict(zip(("pay", "ask", "stop"), COSTS.T.tolist(), strict=True))
CONCERN = ConcernSpec(
    CLASSES,
    weights=[[0, 1, 1], [1, 0, 1], [20, 2, 0]],
    dangerous=5,
    refer=0.5,
    answers={"b or c": 0.3},
    class_groups={"b, c": ["b", "c"]},
)
KAPPA = "kappa=torchmetrics.classification:MulticlassCohenKappa(weights=quadratic, ignore_index=-1)"
DECIDED = {
    name: torch.where(probs.amax(1) < 0.5, torch.arange(ROWS) % 5 - 1, probs.argmax(1))
    for name, probs in PROBS.items()
}
FEW = ["accuracy", "mpcs", "macro_f1"]
SCORE: dict[str, tuple[str, dict[str, Any], str]] = {
    "all metrics": ("", {}, "scores a, b, c"),
    "a concern": ("--concern concern.yaml", {"concern": CONCERN}, ""),
    "settings": (
        "--metrics mpcs,accuracy --k 2 --t 50",
        {"metrics": ["mpcs", "accuracy"], "settings": {"k": 2, "t": 50}},
        "",
    ),
    "groups of classes": (
        "--concern concern.yaml --metrics 'auroc[b, c], recall[b, c]'",
        {"concern": CONCERN, "metrics": ["auroc[b, c]", "recall[b, c]"]},
        "",
    ),
    "any metric": (
        f"--metrics '{KAPPA},mpcs'",
        {
            "metrics": {
                "kappa": MulticlassCohenKappa(3, weights="quadratic"),
                "mpcs": "mpcs",
            }
        },
        "",
    ),
    "groups": ("--by site --by shift", {"groups": ("site", "shift")}, ""),
    "clusters": (
        "--cluster patient --by site",
        {"clusters": "patient", "groups": ("site",)},
        "",
    ),
    "crossed": (
        "--cluster patient --crossed reader --metrics accuracy,mpcs,macro_f1",
        {"clusters": ("patient", "reader"), "metrics": FEW},
        "",
    ),
    "weights": ("--weight w", {"weights": "w"}, "weights w"),
    "frequencies": (
        "--frequency n --by site",
        {"frequencies": "n", "groups": ("site",)},
        "frequencies n",
    ),
    "shares": (
        "--prevalence a=0.9,b=0.08,c=0.02 --weight w",
        {"prevalence": [0.9, 0.08, 0.02], "weights": "w"},
        "prevalence a 0.9, b 0.08, c 0.02",
    ),
    "units": ("--unit patient", {"unit": "patient", "target": OF_UNITS}, "units patient"),
    "worst units": (
        "--concern concern.yaml --unit patient --combine worst --by site",
        {"concern": CONCERN, "unit": "patient", "combine": "worst", "groups": ("site",)},
        "units patient, combined by worst",
    ),
    "costs": (
        "--cost-columns pay,ask,stop",
        {"costs": COSTS},
        "costs of deciding a: pay, b: ask, c: stop",
    ),
    "costs if wrong": (
        "--cost-columns pay,ask,stop --costs-if-wrong --metrics mean_cost,regret",
        {"costs": costs_if_wrong(COSTS), "metrics": ["mean_cost", "regret"]},
        "",
    ),
    "annotators": (
        "--concern concern.yaml --by site",
        {"concern": CONCERN, "target": SHARES, "groups": ("site",)},
        "shares of annotators target_a, target_b, target_c",
    ),
    "degrees of truth": ("", {"target": SHARES}, "degrees of truth target_a"),
    "decisions": (
        "--concern concern.yaml --cluster patient",
        {"concern": CONCERN, "preds": DECIDED, "clusters": "patient"},
        'predicted labels "decision"',
    ),
    "predicted classes": (
        "",
        {
            "preds": {name: probs.argmax(1) for name, probs in PROBS.items()},
            "class_names": CLASSES,
        },
        "",
    ),
    "values alone": ("--no-intervals", {"intervals": False}, ""),
}


def written(path: Path, order: list[int], columns: dict[str, Any]) -> Path:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        rows.writerows([list(values)[row] for values in columns.values()] for row in order)
    return path


def scored_files(folder: Path, given: dict[str, Any]) -> list[Path]:
    """Write a file for each model; the rows of the second are in another order, and only the first has costs."""
    target, files = given.get("target", TARGET), []
    truth = {"target": [CLASSES[label] for label in target]} if target.ndim == 1 else {}
    if target.ndim == 2:
        truth = {
            f"target_{name}": target[:, place].tolist()
            for place, name in enumerate(CLASSES)
        }
    names = [*CLASSES, "b or c", "refer"]
    for name, preds in given.get("preds", PROBS).items():
        if preds.ndim == 1:
            scores = {"decision": [names[number] for number in preds]}
        else:
            scores = dict(zip(CLASSES, preds.T.tolist(), strict=True))
        first = {**COLUMNS, **PAID} if not files else {"id": COLUMNS["id"]}
        order = ORDER if files else list(range(ROWS))
        files.append(written(folder / f"{name}.csv", order, {**first, **scores, **truth}))
    return files


def by_name(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function, in which columns stand for their names."""
    filled = dict(given)
    for name in ("clusters", "weights", "frequencies", "unit", "groups"):
        named = given.get(name)
        if isinstance(named, str):
            filled[name] = COLUMNS[named]
        elif named is not None:
            filled[name] = {column: COLUMNS[column] for column in named}
    return filled


def printed(
    capsys: pytest.CaptureFixture[str], *words: str | Path | int, status: int = 0
) -> Any:
    must_run(*words, "--json", status=status)
    return json.loads(capsys.readouterr().out)


def words_of(kind: str, number: int) -> list[str | Path]:
    """Write the files of some models to the current folder, and return the command that scores them."""
    save_concern(CONCERN, Path("concern.yaml"))
    options, given, _ = SCORE[kind]
    files = scored_files(Path(), given)[:number]
    named = ["--id-column", "id"] if number > 1 else []
    return ["score", *files, *shlex.split(options), *named]


def evaluated(kind: str, number: int) -> Result[Any]:
    given = SCORE[kind][1]
    preds = given.get("preds", PROBS)
    if number == 1:
        preds = {"one.csv": preds["one"]}
    arguments = {"target": TARGET, "class_names": None if "concern" in given else CLASSES}
    return evaluate(**{**arguments, **by_name(given), "preds": preds})


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


ALONE = ("all metrics", "worst units", "decisions", "weights", "groups")
"""The kinds that are also scored without another model."""


@pytest.mark.parametrize(
    ("kind", "number"), [*((kind, 2) for kind in SCORE), *((kind, 1) for kind in ALONE)]
)
def test_files_of_predictions_are_scored_as_tensors(
    kind: str, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed(capsys, *words_of(kind, number))
    assert SCORE[kind][2] in found["read"][0]
    assert_alike(found, evaluated(kind, number).to_dict())


@pytest.mark.parametrize(
    ("kind", "number", "requirement", "how"),
    [
        ("all metrics", 2, "misclassification_rate < one + 50 %", {}),
        ("all metrics", 1, "accuracy > 0.3", {"looks": 3}),
        ("a concern", 1, "dangerous_rate <= 0", {}),
        ("annotators", 1, "recall[b, c] > 0.1", {}),
        ("any metric", 1, "kappa > 0.1", {}),
        ("any metric", 1, "kappa > 0.1", {"approximate": True}),
        ("weights", 1, "accuracy > 0.2", {}),
        ("weights", 1, "accuracy > 0.2", {"max_weight": 3.0}),
        ("costs", 1, "mean_cost < 1e4", {}),
    ],
)
def test_requirements_are_checked_as_those_of_tensors(
    kind: str,
    number: int,
    requirement: str,
    how: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = [f"--{name.replace('_', '-')}" for name in how]
    options += [str(value) for value in how.values() if value is not True]
    outcomes = evaluated(kind, number).check(requirement, **how)
    status = 0 if all(outcome.holds for outcome in outcomes) else ExitStatus.NOT_MET
    words = [*words_of(kind, number), "--require", requirement, *options]
    found = printed(capsys, *words, status=status)["requirements"]
    expected = [
        {
            **outcome._asdict(),
            "requirement": str(outcome.requirement),
            "reason": str(outcome.reason or ""),
        }
        for outcome in outcomes
    ]
    assert_alike(found, expected)


SCORES = {
    name: (torch.randn(ROWS, generator=GENERATOR) + skill * (OF_UNITS == 2)).double()
    for name, skill in (("one", 1.0), ("two", 2.0))
}
DEVELOPMENT = {name: scores.flip(0) * 1.2 for name, scores in SCORES.items()}
IS_TARGET, OF_DEVELOPMENT = OF_UNITS == 2, (OF_UNITS == 2).flip(0)
POINTS = [OperatingPoint(0.5), OperatingPoint(0.1, c_miss=2.0, c_fa=3.0)]
AT = "--point 0.5 --point 0.1,2,3"
DETECT: dict[str, tuple[str, dict[str, Any]]] = {
    "scores": ("--point 0.5", {"points": POINTS[:1]}),
    "ratios": (f"{AT} --llr", {"points": POINTS, "llr": list(SCORES)}),
    "rates": (
        f"{AT} --at-false-alarm 0.1 --at-miss 0.2 --max-false-alarm 0.3",
        {"points": POINTS, "p_fa": [0.1], "p_miss": [0.2], "max_p_fa": 0.3},
    ),
    "a threshold": (
        f"{AT} --threshold 1",
        {"points": POINTS, "thresholds": given_threshold(1.0, POINTS)},
    ),
    "groups of clusters": (
        "--by shift --cluster patient",
        {"groups": ("shift",), "clusters": "patient"},
    ),
    "units": ("--unit patient --by site", {"unit": "patient", "groups": ("site",)}),
    "worst units": (
        "--unit patient --combine worst",
        {"unit": "patient", "combine": "worst"},
    ),
    "values alone": ("--no-intervals", {"intervals": False}),
}


def trial_files(prefix: str, scores: dict[str, Tensor], labels: Tensor) -> list[Path]:
    """Write a file for each detector, with its trials in an order of its own."""
    files = []
    for name, each in scores.items():
        columns = {**COLUMNS, "score": each.tolist(), "label": labels.long().tolist()}
        order = ORDER if files else list(range(ROWS))
        files.append(written(Path(f"{prefix}{name}.csv"), order, columns))
    return files


@pytest.mark.parametrize("kind", DETECT)
def test_files_of_trials_are_evaluated_as_tensors(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options, given = DETECT[kind]
    files = trial_files("", SCORES, IS_TARGET)
    found = printed(capsys, "detect", *files, "--id-column", "id", *options.split())
    expected = evaluate_detectors(SCORES, IS_TARGET, **by_name(given))
    assert_alike(found, expected.to_dict())


def test_what_is_learnt_of_development_files_is_that_of_tensors(
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = trial_files("", SCORES, IS_TARGET)
    learning = trial_files("dev-", DEVELOPMENT, OF_DEVELOPMENT)
    options = [*AT.split(), "--calibrate", "logistic", "--fuse", "--at-minimum"]
    options += ["--at-miss", "0.2", "--at-false-alarm", "0.1", "--id-column", "id"]
    options += [word for path in learning for word in ("--development", path)]
    found = printed(capsys, "detect", *files, *options)

    scores, development = dict(SCORES), dict(DEVELOPMENT)
    for name in SCORES:
        module = LogisticCalibration(0.5).fit(DEVELOPMENT[name], OF_DEVELOPMENT)
        scores[f"{name}, calibrated"] = module(SCORES[name])
        development[f"{name}, calibrated"] = module(DEVELOPMENT[name])
    systems = torch.stack(list(SCORES.values()), 1)
    learning_systems = torch.stack(list(DEVELOPMENT.values()), 1)
    fusion = LogisticFusion(2, 0.5).fit(learning_systems, OF_DEVELOPMENT)
    scores["fusion"] = fusion(systems)
    development["fusion"] = fusion(learning_systems)
    ratios = [name for name in scores if name not in SCORES]
    learned = {
        name: learned_thresholds(
            each, OF_DEVELOPMENT, POINTS, p_fa=[0.1], p_miss=[0.2], at_minimum=True
        )
        for name, each in development.items()
    }
    expected = evaluate_detectors(
        scores,
        IS_TARGET,
        points=POINTS,
        thresholds=learned,
        p_miss=(),
        llr=ratios,
        compared=ratios,
    )
    assert_alike(found, expected.to_dict())


def test_the_points_of_curves_are_those_of_the_function() -> None:
    files = trial_files("", SCORES, IS_TARGET)
    must_run("detect", *files, "--id-column", "id", "--no-intervals", "--det", "det.csv")
    with Path("det.csv").open() as file:
        rows = list(csv.DictReader(file))
    for name, scores in SCORES.items():
        curve = detection_curve(scores, IS_TARGET)
        columns = {
            "miss_rate": curve.p_miss,
            "false_alarm_rate": curve.p_fa,
            "threshold": curve.thresholds,
        }
        for column, values in columns.items():
            found = [float(row[column]) for row in rows if row["detector"] == name]
            assert sorted(found) == pytest.approx(sorted(values.tolist()))
