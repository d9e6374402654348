"""``mpcs score``: the table, JSON, the report, and files that are not replaced."""

from pathlib import Path

import pytest
import torch

from tests.cli.printed import printed_tables
from tests.cli.shell import Shell, one_line
from tests.report.page import Page

CSV = "target,red,yellow,green\nred,0.7,0.2,0.1\nred,0.2,0.7,0.1\ngreen,0.6,0.1,0.3\nyellow,0.1,0.8,0.1\n"
CONCERN = "classes: [red, yellow, green]\nreleases: [[red, yellow]]\nfactor: 0.5\n"
SCORE = "score p.csv --concern concern.yaml"


@pytest.fixture(autouse=True)
def _files(mpcs: Shell) -> None:
    Path("p.csv").write_text(CSV)
    Path("concern.yaml").write_text(CONCERN)


def test_errors_and_concern_come_first_and_what_repeats_others_is_left_out(
    mpcs: Shell,
) -> None:
    table = next(printed_tables(mpcs(SCORE).out))
    assert [row[0] for row in table.rows] == [
        "dangerous_rate",
        "expected_concern",
        "accuracy",
        "macro_f1",
        "auroc",
        "overconfidence",
        "dangerous_gap",
        "mpcs",
    ]
    printed = mpcs(f"{SCORE} --all").out
    lines = [line for line in printed.splitlines() if line.startswith("Metrics: ")]
    families = ["concern", "decisions", "probabilities", "calibration"]
    assert lines == [f"Metrics: {family}" for family in families]
    assert "| balanced_error_rate " in printed


def test_metrics_that_repeat_others_are_computed_by_name(mpcs: Shell) -> None:
    metrics = mpcs.json("score p.csv")["metrics"]
    assert list(metrics)[:3] == ["accuracy", "macro_f1", "auroc"]
    assert "dangerous_rate" not in metrics, (
        "without a concern, it is the rate of wrong decisions"
    )
    assert metrics["misclassification_rate"] == 1 - metrics["accuracy"] == 0.5
    repeating = {
        "onedal_micro_precision": 0.5,  # that of accuracy
        "onedal_micro_recall": 0.5,
        "onedal_micro_fscore": 0.5,
        "onedal_average_accuracy": 1 - 2 / 3 * 0.5,
        "onedal_error_rate": 2 / 3 * 0.5,
        "macro_recall": 1 - metrics["balanced_error_rate"],
    }
    assert not repeating.keys() & metrics.keys()
    values = mpcs.json(f"score p.csv --metrics {','.join(repeating)}")["metrics"]
    assert values == pytest.approx(repeating)


def test_a_value_that_is_not_finite_has_a_reason(mpcs: Shell) -> None:
    Path("p.csv").write_text(
        "target,red,yellow,green\nred,0.7,0.2,0.1\nred,0.2,0.8,0\nyellow,0,1,0\n"
    )
    printed = mpcs("score p.csv --all").out
    never, absent = "class 'green' is never predicted", "class 'green' is without samples"
    assert f"\nmacro_precision is nan: {never}.\n" in printed
    assert f"\nbalanced_error_rate is nan, balanced_accuracy is nan: {absent}.\n" in printed
    plain = mpcs.json("score p.csv")
    undefined = {name for name, value in plain["metrics"].items() if value is None}
    assert plain["undefined"]["macro_precision"] == never
    assert plain["undefined"].keys() == undefined
    Path("p.csv").write_text("target,red,green\nred,0,1\ngreen,0,1\n")
    printed = mpcs("score p.csv --metrics cross_entropy").out
    assert "cross_entropy is inf: the probability of a label is 0." in printed


def test_metrics_are_chosen_by_name(mpcs: Shell) -> None:
    plain = mpcs.json("score p.csv --metrics mpcs,accuracy --k 2 --t 50")
    assert list(plain["metrics"]) == ["mpcs", "accuracy"]


def test_the_report_shows_its_figures(mpcs: Shell) -> None:
    mpcs(f"{SCORE} --html report.html")
    text = Path("report.html").read_text()
    # decision curves, confusion matrix, referral, reliability
    assert text.count("<img src=") == 4
    assert "macro_<wbr>precision" in text
    assert f"mpcs {SCORE}" in Page(Path("report.html")).text


UNSURE = "healthy,ill,target\n" + "0.6,0.4,healthy\n" * 9 + "0.4,0.6,ill\n"


def test_decisions_by_cost_that_cost_more_are_warned_of(mpcs: Shell) -> None:
    """Every prediction is right, but so unsure that by cost everybody is called ill."""
    header, rows = UNSURE.split("\n", 1)
    Path("p.csv").write_text(f"{header}\n{rows * 60}")
    Path("concern.yaml").write_text("classes: [healthy, ill]\nweights: [[0, 1], [10, 0]]\n")
    warning = "E3: probabilities of 0.6 to 0.605 are right for 100 % of 600: they are not calibrated"
    assert f"warning: {warning}" in mpcs(SCORE).err
    Path("concern.yaml").write_text("classes: [healthy, ill]\n")
    assert "warning" not in mpcs(SCORE).err


def test_errors_that_cost_nothing_leave_mpcs_out(mpcs: Shell) -> None:
    Path("p.csv").write_text(UNSURE)
    Path("concern.yaml").write_text("classes: [healthy, ill]\nweights: [[0, 0], [10, 0]]\n")
    why = "it divides by weights, and the concern has weights of 0"
    warning = mpcs(SCORE).err.splitlines()[-1]
    assert warning == f"mpcs: warning: mpcs is left out: {why}"
    metrics = mpcs.json(SCORE)["metrics"]
    assert "mpcs" not in metrics
    # 0 / 0: to call everybody ill costs nothing either
    assert metrics["expected_concern"] is None


def test_a_concession_replaces_t(mpcs: Shell) -> None:
    Path("p.csv").write_text("a,b,target\n0.98,0.02,a\n")
    by_default, conceded, by_t = [
        mpcs.json(f"score p.csv --metrics mpcs {option}")["metrics"]["mpcs"]
        for option in ("", "--concession 0.02", "--t 49")
    ]
    assert by_default > 0 == conceded == by_t


def test_rows_of_the_training_are_pointed_out(mpcs: Shell) -> None:
    def write(name: str, *parts: tuple[int, int]) -> None:
        lines = ["0,1,target"]
        for seed, rows in parts:
            generator = torch.Generator().manual_seed(seed)
            probs = torch.rand(rows, generator=generator).tolist()
            lines += [f"{p:.6f},{1 - p:.6f},{int(p < 0.5)}" for p in probs]
        Path(name).write_text("\n".join(lines) + "\n")

    write("train.csv", (0, 400))
    write("p.csv", (1, 300))
    warnings = mpcs.json("score p.csv --seen train.csv").get("warnings", [])
    assert "E1" not in [warning["code"] for warning in warnings]
    write("p.csv", (0, 100), (1, 300))
    warnings = mpcs.json("score p.csv --seen train.csv")["warnings"]
    [shared] = [one["warning"] for one in warnings if one["code"] == "E1"]
    assert "25 % of the 400 rows are also in train.csv" in shared
    assert "--seen" in mpcs.refusal("score train.csv p.csv --seen train.csv")


def test_it_is_said_what_expected_concern_is_relative_to(mpcs: Shell) -> None:
    """Of 8 benign and 2 malignant rows, always deciding benign costs 2 * 10 / 10, and malignant 8 * 1 / 10 a row."""
    Path("concern.yaml").write_text(
        "classes: [benign, malignant]\nweights: [[0, 1], [10, 0]]\n"
    )
    rows = [
        f"{0.9 - 0.1 * (n % 5):.1f},{0.1 + 0.1 * (n % 5):.1f},{['benign', 'malignant'][n > 7]}"
        for n in range(10)
    ]
    Path("p.csv").write_text("\n".join(["benign,malignant,target", *rows]) + "\n")
    printed = mpcs(f"{SCORE} --metrics expected_concern,dangerous --html r.html").out
    relative = "1 is the cost of always deciding malignant"
    assert f"expected_concern: {relative}, which is 0.8 for each row." in one_line(printed)
    assert relative in Page(Path("r.html")).facts["cost of errors"]
    assert "always deciding" not in mpcs("score p.csv --metrics accuracy").out
