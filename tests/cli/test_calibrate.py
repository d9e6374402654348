"""``mpcs calibrate``: fit and apply to predictions and to trials, warnings, and files that are not replaced."""

import json
from pathlib import Path

import pytest
import torch

from mpcs_torch.calibration import estimate_priors
from mpcs_torch.learning import DecisionRule
from tests.calibration.data import logits, trials
from tests.cli.printed import printed_tables
from tests.cli.shell import one_line, run
from tests.evaluation.files.write import write_predictions

NAMES = ["red", "yellow", "green", "blue"]


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    scores, target = logits(0)
    write_predictions(tmp_path / "dev.csv", scores.softmax(dim=1), target, NAMES)
    return tmp_path / "dev.csv"


@pytest.fixture
def detection(tmp_path: Path) -> Path:
    rows = [
        f"{score},{label}\n"
        for score, label in zip(*(values.tolist() for values in trials(0)), strict=True)
    ]
    (tmp_path / "scores.csv").write_text("".join(["score,label\n", *rows]))
    return tmp_path / "scores.csv"


def metric(capsys: pytest.CaptureFixture[str], name: str, *arguments: str | Path) -> float:
    capsys.readouterr()
    assert run(*arguments, "--json") == 0
    return float(json.loads(capsys.readouterr().out)["metrics"][name])


@pytest.mark.parametrize("method", ["temperature", "vector"])
def test_calibrated_predictions_have_a_lower_cross_entropy(
    method: str, dev: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cal, out = dev.with_name("cal.pt"), dev.with_name("out.csv")
    assert run("calibrate", "fit", dev, "--method", method, "--out", cal) == 0
    printed = capsys.readouterr().out
    how = 'dev.csv: labels "target"; scores red, yellow, green, blue\n'
    assert printed.startswith(f"{how}wrote {cal}: {method}")
    assert "on the same 400 rows" in printed
    assert run("calibrate", "apply", cal, dev, "--out", out) == 0
    assert capsys.readouterr().out == f"{how}wrote {out}\n"
    assert out.read_text().startswith("red,yellow,green,blue,target\n")
    before, after = (metric(capsys, "cross_entropy", "score", path) for path in (dev, out))
    assert after < before
    assert f"cross entropy {before:.5g} -> {after:.5g}" in printed


def test_calibrated_logits_stay_logits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores, target = logits(0)
    dev, cal, out = tmp_path / "dev.npz", tmp_path / "cal.pt", tmp_path / "out.npz"
    write_predictions(dev, scores, target, NAMES)
    assert (
        run("calibrate", "fit", dev, "--method", "temperature", "--logits", "--out", cal)
        == 0
    )
    assert run("calibrate", "apply", cal, dev, "--out", out) == 0
    before, after = (
        metric(capsys, "cross_entropy", "score", path, "--logits") for path in (dev, out)
    )
    assert after < before


@pytest.mark.parametrize("method", ["logistic", "pav"])
def test_calibrated_trials_have_a_lower_cllr(
    method: str, detection: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cal, out = detection.with_name("cal.pt"), detection.with_name("llr.csv")
    assert run("calibrate", "fit", detection, "--method", method, "--out", cal) == 0
    printed = capsys.readouterr().out
    assert run("calibrate", "apply", cal, detection, "--out", out) == 0
    arguments = ["detect", out, "--llr", "--no-intervals"]
    assert f" -> {metric(capsys, 'cllr', *arguments):.5g} on the same 400 rows" in printed
    loss = metric(capsys, "calibration_loss", *arguments)
    assert abs(loss) < (1e-9 if method == "pav" else 0.1)


def test_the_prior_of_the_fit_is_an_option(
    detection: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []
    for prior in ("0.5", "0.01"):
        cal = detection.with_name(f"{prior}.pt")
        assert (
            run(
                "calibrate",
                "fit",
                detection,
                "--method",
                "logistic",
                "--p-target",
                prior,
                "--out",
                cal,
            )
            == 0
        )
        printed.append(capsys.readouterr().out.splitlines()[1].split(": ")[1])
    assert printed[0].startswith("scale ")
    assert printed[0] != printed[1]


def test_a_fit_without_an_optimum_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = torch.arange(12) % 4
    write_predictions(
        tmp_path / "dev.npz", torch.nn.functional.one_hot(target, 4).double(), target, NAMES
    )
    arguments = [
        "calibrate",
        "fit",
        tmp_path / "dev.npz",
        "--method",
        "temperature",
        "--out",
        tmp_path / "cal.pt",
    ]
    assert run(*arguments) == 0
    captured = capsys.readouterr()
    assert (
        "mpcs: warning: The temperature is 1, because every sample is classified correctly"
        in captured.err
    )
    assert "temperature 1, cross entropy" in captured.out


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """Predictions with labels."""
    scores, target = logits(0, 2000)
    write_predictions(tmp_path / "known.csv", scores.softmax(dim=1), target, NAMES)
    return tmp_path / "known.csv"


@pytest.fixture
def deployed(known: Path) -> Path:
    """Predictions without labels; red ones are four times as frequent, and the columns are in another order."""
    scores, target = logits(1, 4000)
    is_kept = (target == 0) | (torch.arange(4000) % 4 == 0)
    path = known.with_name("deployed.csv")
    write_predictions(path, scores[is_kept].softmax(dim=1).flip(1), None, NAMES[::-1])
    return path


def test_priors_of_a_file_are_those_of_the_function(
    known: Path, deployed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("calibrate", "priors", known, deployed, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    preds, target = logits(0, 2000)
    others, classes = logits(1, 4000)
    others = others[(classes == 0) | (torch.arange(4000) % 4 == 0)]
    expected = estimate_priors(preds, target, others)
    assert (found["classes"], found["is_label_shift"]) == (NAMES, True)
    for name in (
        "priors",
        "low",
        "high",
        "joint_low",
        "joint_high",
        "validation_priors",
        "p_value",
    ):
        assert found[name] == pytest.approx(
            torch.as_tensor(getattr(expected, name)).tolist(), rel=1e-4
        ), name
    assert run("calibrate", "priors", known, deployed) == 0
    printed = capsys.readouterr().out
    [table] = printed_tables(printed)
    assert table.header == [
        "class",
        "validation",
        "unlabelled (95 %)",
        "all together (95 %)",
    ]
    low, high = found["low"][0], found["high"][0]
    assert table.rows[0][:3] == [
        "red",
        "0.254",
        f"{found['priors'][0]:.2f} ({low:.2f} to {high:.2f})",
    ]
    assert (
        table.rows[0][3] == f"{found['joint_low'][0]:.2f} to {found['joint_high'][0]:.2f}"
    )
    assert "No change beyond class frequencies is seen (p = " in printed


def fit_with_priors(
    known: Path, concern: Path, priors: Path, rule: Path, *options: str
) -> int:
    files = ("--concern", concern, "--priors", priors, "--out", rule)
    return run("decide", "fit", known, *files, *options)


def test_a_rule_takes_the_priors_of_a_file_by_the_names_of_classes(
    known: Path, deployed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    concern, rule, file = (
        known.with_name(name) for name in ("concern.yaml", "rule.pt", "priors.json")
    )
    concern.write_text("classes: [blue, red, yellow, green]\n")
    assert run("calibrate", "priors", known, deployed, "--json") == 0, (
        "in another order of the classes"
    )
    file.write_text(printed := capsys.readouterr().out)
    found = json.loads(printed)
    by_name = dict(zip(found["classes"], found["priors"], strict=True))
    assert max(by_name, key=lambda name: by_name[name]) == "red"
    limit = ("--limit", "any <= 90 % of red")
    assert fit_with_priors(known, concern, file, rule, *limit) == 0
    expected = [by_name[name] for name in ("blue", "red", "yellow", "green")]
    assert DecisionRule.load(rule).priors.tolist() == pytest.approx(expected, abs=1e-6)  # type: ignore[union-attr]
    assert "the other values are at the class frequencies of these rows" in one_line(
        capsys.readouterr().out
    )


def test_priors_of_clusters_and_of_groups_of_classes(
    known: Path, deployed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores, target = logits(0)
    rows = [
        [*row, name]
        for row, name in zip(scores.softmax(1).tolist(), target.tolist(), strict=True)
    ]
    for path in (known, deployed):
        lines = [
            ",".join([*map(str, row[:4]), NAMES[row[4]], f"p{place // 2}"])
            for place, row in enumerate(rows)
        ]
        path.write_text("\n".join([",".join([*NAMES, "target", "patient"]), *lines]) + "\n")
    concern = known.with_name("concern.yaml")
    concern.write_text(
        "classes: [red, yellow, green, blue]\nclass_groups:\n  warm: [red, yellow]\n"
    )
    priors = ("calibrate", "priors", known, deployed, "--concern", concern)
    found = []
    for more, warned in (([], True), (["--cluster", "patient"], False)):
        assert run(*priors, *more, "--json") == 0
        captured = capsys.readouterr()
        assert ("E2: rows share values of 'patient'" in one_line(captured.err)) is warned
        found.append(json.loads(captured.out))
    assert found[0]["priors"] == found[1]["priors"]
    assert found[0]["low"] != found[1]["low"]
    warm = found[1]["class_groups"]["warm"]
    assert warm["prior"] == pytest.approx(sum(found[1]["priors"][:2]), abs=1e-6)
    assert run(*priors, "--cluster", "patient") == 0
    [table] = printed_tables(capsys.readouterr().out)
    assert table.rows[4][:2] == ["warm", ""]
    assert table.rows[4][2].startswith(f"{warm['prior']:.2f} (")


def test_priors_that_are_too_uncertain_are_refused(
    known: Path, deployed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores, target = logits(1, 60)
    write_predictions(deployed, scores.softmax(dim=1)[target != 3], None, NAMES)
    assert run("calibrate", "priors", known, deployed) == 0
    printed = capsys.readouterr().out
    assert "DO NOT USE THESE PRIORS: intervals are wider than their estimates: " in printed
    assert "these samples do not distinguish any classes." in printed
    assert "--priors" not in printed
    assert run("calibrate", "priors", known, deployed, "--json") == 0
    file, concern = known.with_name("priors.json"), known.with_name("concern.yaml")
    file.write_text(capsys.readouterr().out)
    concern.write_text("classes: [red, yellow, green, blue]\n")
    fit = (known, concern, file, known.with_name("rule.pt"))
    assert fit_with_priors(*fit) == 2
    assert "its priors must not be used: intervals are wider" in one_line(
        capsys.readouterr().err
    )
    for text in ("{}", "no", file.read_text().replace('"blue"', '"pink"')):
        file.write_text(text)
        assert fit_with_priors(*fit) == 2
        assert "must be what `mpcs calibrate priors --json` prints for" in one_line(
            capsys.readouterr().err
        )


def test_priors_that_must_not_be_used_are_not_offered(
    known: Path, deployed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores, target = logits(1, spread=1.0)
    write_predictions(deployed, scores.softmax(dim=1), target, NAMES)
    assert run("calibrate", "priors", known, deployed) == 0
    captured = capsys.readouterr()
    assert (
        "mpcs: warning: do not use the priors: more than class frequencies has changed"
        in captured.err
    )
    assert captured.out.splitlines()[-1].startswith(
        "DO NOT USE THESE PRIORS: the samples of a class do not look the same"
    )
    assert "--priors" not in captured.out
