"""``mpcs calibrate``: fit and apply to predictions and to trials, warnings, and files that are not replaced."""

from pathlib import Path

import pytest
import torch

from mpcs_torch.calibration import estimate_priors
from mpcs_torch.learning import DecisionRule
from tests.calibration.data import logits, trials
from tests.cli.printed import printed_tables
from tests.cli.shell import Shell, one_line
from tests.evaluation.files.write import write_predictions

NAMES = ["red", "yellow", "green", "blue"]
CONCERN = "classes: [red, yellow, green, blue]\n"
FIT_PREDICTIONS = "calibrate fit dev.csv --out cal.pt --method"
FIT_TRIALS = "calibrate fit scores.csv --out cal.pt --method"
PRIORS = "calibrate priors known.csv deployed.csv"
FIT_RULE = "decide fit known.csv --concern concern.yaml --priors priors.json --out rule.pt"


@pytest.fixture(autouse=True)
def _files(mpcs: Shell) -> None:  # for its folder
    """Write predictions and trials, and predictions without labels of which red ones are four times as frequent."""
    Path("concern.yaml").write_text(CONCERN)
    for name, size in (("dev.csv", 400), ("known.csv", 2000)):
        scores, target = logits(0, size)
        write_predictions(Path(name), scores.softmax(dim=1), target, NAMES)
    rows = zip(*(values.tolist() for values in trials(0)), strict=True)
    lines = [f"{score},{label}" for score, label in rows]
    Path("scores.csv").write_text("\n".join(["score,label", *lines]) + "\n")
    # The columns are in another order.
    probs = deployed_logits().softmax(dim=1)
    write_predictions(Path("deployed.csv"), probs.flip(1), None, NAMES[::-1])


def deployed_logits() -> torch.Tensor:
    scores, target = logits(1, 4000)
    return scores[(target == 0) | (torch.arange(4000) % 4 == 0)]


@pytest.mark.parametrize("method", ["temperature", "vector"])
def test_calibrated_predictions_have_a_lower_cross_entropy(
    method: str, mpcs: Shell
) -> None:
    printed = mpcs(f"{FIT_PREDICTIONS} {method}").out
    how = 'dev.csv: labels "target"; scores red, yellow, green, blue\n'
    assert printed.startswith(f"{how}wrote cal.pt: {method}")
    assert "on the same 400 rows" in printed
    applied = mpcs("calibrate apply cal.pt dev.csv --out out.csv").out
    assert applied == f"{how}wrote out.csv\n"
    assert Path("out.csv").read_text().startswith("red,yellow,green,blue,target\n")
    before, after = [
        mpcs.json(f"score {name}")["metrics"]["cross_entropy"]
        for name in ("dev.csv", "out.csv")
    ]
    assert after < before
    assert f"cross entropy {before:.5g} -> {after:.5g}" in printed


def test_calibrated_logits_stay_logits(mpcs: Shell) -> None:
    write_predictions(Path("dev.npz"), *logits(0), NAMES)
    mpcs("calibrate fit dev.npz --method temperature --logits --out cal.pt")
    mpcs("calibrate apply cal.pt dev.npz --out out.npz")
    before, after = [
        mpcs.json(f"score {name} --logits")["metrics"]["cross_entropy"]
        for name in ("dev.npz", "out.npz")
    ]
    assert after < before


@pytest.mark.parametrize(("method", "loss"), [("logistic", 0.1), ("pav", 1e-9)])
def test_calibrated_trials_have_a_lower_cllr(method: str, loss: float, mpcs: Shell) -> None:
    printed = mpcs(f"{FIT_TRIALS} {method}").out
    mpcs("calibrate apply cal.pt scores.csv --out llr.csv")
    metrics = mpcs.json("detect llr.csv --llr --no-intervals")["metrics"]
    assert f" -> {metrics['cllr']:.5g} on the same 400 rows" in printed
    assert abs(metrics["calibration_loss"]) < loss


def test_the_prior_of_the_fit_is_an_option(mpcs: Shell) -> None:
    first, second = [
        mpcs(f"{FIT_TRIALS} logistic --overwrite --p-target {prior}").out.splitlines()[1]
        for prior in (0.5, 0.01)
    ]
    assert first.startswith("wrote cal.pt: scale ")
    assert first != second


def test_a_fit_without_an_optimum_is_a_warning(mpcs: Shell) -> None:
    target = torch.arange(12) % 4
    probs = torch.nn.functional.one_hot(target, 4).double()
    write_predictions(Path("dev.csv"), probs, target, NAMES)
    printed = mpcs(f"{FIT_PREDICTIONS} temperature")
    why = "because every sample is classified correctly"
    assert f"mpcs: warning: The temperature is 1, {why}" in printed.err
    assert "temperature 1, cross entropy" in printed.out


def test_priors_of_a_file_are_those_of_the_function(mpcs: Shell) -> None:
    plain = mpcs.json(PRIORS)
    preds, target = logits(0, 2000)
    expected = estimate_priors(preds, target, deployed_logits())
    assert (plain["classes"], plain["is_label_shift"]) == (NAMES, True)
    ends = ("low", "high", "joint_low", "joint_high")
    for name in ("priors", *ends, "validation_priors", "p_value"):
        values = torch.as_tensor(getattr(expected, name)).tolist()
        assert plain[name] == pytest.approx(values, rel=1e-4), name
    printed = mpcs(PRIORS).out
    [table] = printed_tables(printed)
    assert table.header == [
        "class",
        "validation",
        "unlabelled (95 %)",
        "all together (95 %)",
    ]
    prior, low, high, joint_low, joint_high = [
        f"{plain[name][0]:.2f}" for name in ("priors", *ends)
    ]
    assert table.rows[0] == [
        "red",
        "0.254",
        f"{prior} ({low} to {high})",
        f"{joint_low} to {joint_high}",
    ]
    assert "No change beyond class frequencies is seen (p = " in printed


def test_a_rule_takes_the_priors_of_a_file_by_the_names_of_classes(mpcs: Shell) -> None:
    text = mpcs(f"{PRIORS} --json").out
    Path("priors.json").write_text(text)
    plain = mpcs.json(PRIORS)
    by_name = dict(zip(plain["classes"], plain["priors"], strict=True))
    assert max(by_name, key=lambda name: by_name[name]) == "red"
    Path("concern.yaml").write_text("classes: [blue, red, yellow, green]\n")
    printed = mpcs(f"{FIT_RULE} --limit 'any <= 90 % of red'").out
    priors = DecisionRule.load("rule.pt").priors
    assert priors is not None
    expected = [by_name[name] for name in ("blue", "red", "yellow", "green")]
    assert priors.tolist() == pytest.approx(expected, abs=1e-6)
    others = "the other values are at the class frequencies of these rows"
    assert others in one_line(printed)


def test_priors_of_clusters_and_of_groups_of_classes(mpcs: Shell) -> None:
    header, *rows = Path("dev.csv").read_text().split()
    lines = [f"{row},p{place // 2}" for place, row in enumerate(rows)]
    for name in ("known.csv", "deployed.csv"):
        Path(name).write_text("\n".join([f"{header},patient", *lines]) + "\n")
    Path("concern.yaml").write_text(f"{CONCERN}class_groups:\n  warm: [red, yellow]\n")
    command = f"{PRIORS} --concern concern.yaml"
    warning = "E2: rows share values of 'patient'"
    assert warning in one_line(mpcs(command).err)
    assert warning not in mpcs(f"{command} --cluster patient").err
    of_rows, of_clusters = mpcs.json(command), mpcs.json(f"{command} --cluster patient")
    assert of_rows["priors"] == of_clusters["priors"]
    assert of_rows["low"] != of_clusters["low"]
    warm = of_clusters["class_groups"]["warm"]["prior"]
    assert warm == pytest.approx(sum(of_clusters["priors"][:2]), abs=1e-6)
    [table] = printed_tables(mpcs(f"{command} --cluster patient").out)
    assert table.rows[4][:2] == ["warm", ""]
    assert table.rows[4][2].startswith(f"{warm:.2f} (")


def test_priors_that_are_too_uncertain_are_refused(mpcs: Shell) -> None:
    scores, target = logits(1, 60)
    probs = scores.softmax(dim=1)[target != 3]
    write_predictions(Path("deployed.csv"), probs, None, NAMES)
    printed = mpcs(PRIORS).out
    assert "DO NOT USE THESE PRIORS: intervals are wider than their estimates: " in printed
    assert "these samples do not distinguish any classes." in printed
    assert "--priors" not in printed
    text = mpcs(f"{PRIORS} --json").out
    other = "must be what `mpcs calibrate priors --json` prints for"
    for content, refusal in (
        (text, "its priors must not be used: intervals are wider"),
        ("{}", other),
        ("no", other),
        (text.replace('"blue"', '"pink"'), other),
    ):
        Path("priors.json").write_text(content)
        assert refusal in mpcs.refusal(FIT_RULE)


def test_priors_that_must_not_be_used_are_not_offered(mpcs: Shell) -> None:
    scores, target = logits(1, spread=1.0)
    write_predictions(Path("deployed.csv"), scores.softmax(dim=1), target, NAMES)
    printed = mpcs(PRIORS)
    why = "do not use the priors: more than class frequencies has changed"
    assert f"mpcs: warning: {why}" in printed.err
    assert printed.out.splitlines()[-1].startswith(
        "DO NOT USE THESE PRIORS: the samples of a class do not look the same"
    )
    assert "--priors" not in printed.out
