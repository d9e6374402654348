"""``mpcs score``: the table, JSON, the report, and files that are not replaced."""

import json
from pathlib import Path

import pytest
import torch

from tests.cli.shell import one_line, run
from tests.report.page import Page

CSV = "target,red,yellow,green\nred,0.7,0.2,0.1\nred,0.2,0.7,0.1\ngreen,0.6,0.1,0.3\nyellow,0.1,0.8,0.1\n"
CONCERN = "classes: [red, yellow, green]\nreleases: [[red, yellow]]\nfactor: 0.5\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "p.csv").write_text(CSV)
    (tmp_path / "concern.yaml").write_text(CONCERN)
    return tmp_path / "p.csv", tmp_path / "concern.yaml"


def test_errors_and_concern_come_first_and_what_repeats_others_is_left_out(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("score", files[0], "--concern", files[1]) == 0
    out = capsys.readouterr().out
    named = [
        line.split()[1]
        for line in out.split("| metric ")[1].split("\n\n")[0].splitlines()[2:]
    ]
    first = [
        "dangerous_rate",
        "expected_concern",
        "accuracy",
        "macro_f1",
        "auroc",
        "overconfidence",
    ]
    assert named == [*first, "dangerous_gap", "mpcs"]
    assert run("score", files[0], "--concern", files[1], "--all") == 0
    out = capsys.readouterr().out
    families = [
        line.removeprefix("Metrics: ")
        for line in out.splitlines()
        if line.startswith("Metrics: ")
    ]
    assert families == ["concern", "decisions", "probabilities", "calibration"]
    assert "| balanced_error_rate " in out
    assert run("score", files[0], "--json") == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    assert list(metrics)[:3] == ["accuracy", "macro_f1", "auroc"]
    assert "dangerous_rate" not in metrics, (
        "without a concern, it is the rate of wrong decisions"
    )
    assert metrics["misclassification_rate"] == 1 - metrics["accuracy"] == 0.5
    repeating = [
        f"onedal_{name}" for name in ("micro_precision", "micro_recall", "micro_fscore")
    ]
    repeating += ["onedal_average_accuracy", "onedal_error_rate", "macro_recall"]
    assert not set(repeating) & set(metrics)
    assert run("score", files[0], "--metrics", ",".join(repeating), "--json") == 0
    values = list(json.loads(capsys.readouterr().out)["metrics"].values())
    assert values[:3] == [0.5] * 3, "that of accuracy"
    assert values[3:5] == pytest.approx([1 - 2 / 3 * 0.5, 2 / 3 * 0.5])
    assert values[5] == pytest.approx(1 - metrics["balanced_error_rate"])


def test_a_value_that_is_not_finite_has_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.csv").write_text(
        "target,red,yellow,green\nred,0.7,0.2,0.1\nred,0.2,0.8,0\nyellow,0,1,0\n"
    )
    assert run("score", tmp_path / "p.csv", "--all") == 0
    out = capsys.readouterr().out
    never, absent = "class 'green' is never predicted", "class 'green' is without samples"
    assert f"\nmacro_precision is nan: {never}.\n" in out
    assert f"\nbalanced_error_rate is nan, balanced_accuracy is nan: {absent}.\n" in out
    assert run("score", tmp_path / "p.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["undefined"]["macro_precision"] == never
    assert set(found["undefined"]) == {
        name for name, value in found["metrics"].items() if value is None
    }
    (tmp_path / "p.csv").write_text("target,red,green\nred,0,1\ngreen,0,1\n")
    assert run("score", tmp_path / "p.csv", "--metrics", "cross_entropy") == 0
    assert (
        "cross_entropy is inf: the probability of a label is 0." in capsys.readouterr().out
    )


def test_metrics_are_chosen_by_name(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run("score", files[0], "--metrics", "mpcs,accuracy", "--k", 2, "--t", 50, "--json")
        == 0
    )
    assert list(json.loads(capsys.readouterr().out)["metrics"]) == ["mpcs", "accuracy"]


def test_the_report_shows_its_figures(files: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert run("score", files[0], "--concern", files[1], "--html", page) == 0
    text = page.read_text()
    assert (
        text.count("<img src=") == 4
    )  # decision curves, confusion matrix, referral, reliability
    assert "macro_<wbr>precision" in page.read_text()
    assert f"mpcs score {files[0]} --concern {files[1]}" in Page(page).text


UNSURE = "healthy,ill,target\n" + "0.6,0.4,healthy\n" * 9 + "0.4,0.6,ill\n"


def test_decisions_by_cost_that_cost_more_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every prediction is right, but so unsure that by cost everybody is called ill."""
    (tmp_path / "preds.csv").write_text(
        "healthy,ill,target\n" + UNSURE.split("\n", 1)[1] * 60
    )
    (tmp_path / "concern.yaml").write_text(
        "classes: [healthy, ill]\nweights: [[0, 1], [10, 0]]\n"
    )
    (tmp_path / "equal.yaml").write_text("classes: [healthy, ill]\n")
    assert run("score", tmp_path / "preds.csv", "--concern", tmp_path / "concern.yaml") == 0
    told = capsys.readouterr().err
    assert (
        "warning: E3: probabilities of 0.6 to 0.605 are right for 100 % of 600: they are not calibrated"
        in told
    )
    assert run("score", tmp_path / "preds.csv", "--concern", tmp_path / "equal.yaml") == 0
    assert "warning" not in one_line(capsys.readouterr().err)


def test_errors_that_cost_nothing_leave_mpcs_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "preds.csv").write_text(UNSURE)
    (tmp_path / "concern.yaml").write_text(
        "classes: [healthy, ill]\nweights: [[0, 0], [10, 0]]\n"
    )
    assert (
        run(
            "score",
            tmp_path / "preds.csv",
            "--concern",
            tmp_path / "concern.yaml",
            "--json",
        )
        == 0
    )
    printed = capsys.readouterr()
    values = json.loads(printed.out)["metrics"]
    assert printed.err.splitlines()[-1] == (
        "mpcs: warning: mpcs is left out: it divides by weights, and the concern has weights of 0"
    )
    assert "mpcs" not in values
    assert (
        values["expected_concern"] is None
    )  # 0 / 0: to call everybody ill costs nothing either


def test_a_concession_replaces_t(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "preds.csv").write_text("a,b,target\n0.98,0.02,a\n")
    found = []
    for option in ([], ["--concession", "0.02"], ["--t", "49"]):
        assert (
            run("score", tmp_path / "preds.csv", "--metrics", "mpcs", "--json", *option)
            == 0
        )
        found.append(json.loads(capsys.readouterr().out)["metrics"]["mpcs"])
    assert found[0] > 0 == found[1] == found[2]


def test_rows_of_the_training_are_pointed_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def rows(seed: int, number: int) -> list[str]:
        probs = torch.rand(
            number, 1, generator=torch.Generator().manual_seed(seed)
        ).double()
        return [f"{p:.6f},{1 - p:.6f},{int(p < 0.5)}\n" for p in probs[:, 0].tolist()]

    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    train.write_text("0,1,target\n" + "".join(rows(0, 400)))
    for shared, is_warned in ((0, False), (100, True)):
        test.write_text("0,1,target\n" + "".join([*rows(0, shared), *rows(1, 300)]))
        assert run("score", test, "--seen", train, "--json") == 0
        told = [
            each
            for each in json.loads(capsys.readouterr().out).get("warnings", [])
            if each["code"] == "E1"
        ]
        assert bool(told) is is_warned
        assert (
            not told or "25 % of the 400 rows are also in train.csv" in told[0]["warning"]
        )
    assert run("score", train, test, "--seen", train) == 2
    assert "--seen" in capsys.readouterr().err


def test_it_is_said_what_expected_concern_is_relative_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 8 benign and 2 malignant rows, always deciding benign costs 2 * 10 / 10, and malignant 8 * 1 / 10 a row."""
    (tmp_path / "c.yaml").write_text(
        "classes: [benign, malignant]\nweights: [[0, 1], [10, 0]]\n"
    )
    rows = [
        f"{0.9 - 0.1 * (n % 5):.1f},{0.1 + 0.1 * (n % 5):.1f},{['benign', 'malignant'][n > 7]}"
        for n in range(10)
    ]
    (tmp_path / "p.csv").write_text("\n".join(["benign,malignant,target", *rows]) + "\n")
    given = ("--concern", tmp_path / "c.yaml", "--metrics", "expected_concern,dangerous")
    assert run("score", tmp_path / "p.csv", *given, "--html", tmp_path / "r.html") == 0
    told = "expected_concern: 1 is the cost of always deciding malignant, which is 0.8 for each row."
    assert told in one_line(capsys.readouterr().out)
    assert (
        "1 is the cost of always deciding malignant"
        in Page(tmp_path / "r.html").facts["cost of errors"]
    )
    assert run("score", tmp_path / "p.csv", "--metrics", "accuracy") == 0
    assert "always deciding" not in capsys.readouterr().out
