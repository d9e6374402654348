"""``mpcs decide``: fit and apply a rule, guarantees that are out of reach, and files that are not replaced."""

import csv
import json
from pathlib import Path

import pytest
import torch

from mpcs_torch import ConcernSpec, load_concern
from mpcs_torch.cli.verbs import decide
from mpcs_torch.concern import save_concern
from mpcs_torch.evaluation import decision_files
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.functional import costs_if_wrong
from mpcs_torch.learning import DecisionRule, Limit, plan_limit
from tests.calibration.data import logits
from tests.cli.printed import printed_tables
from tests.cli.test_cli import one_line, run
from tests.evaluation.files.write import SUFFIXES, write_predictions

NAMES = ["red", "yellow", "green", "blue"]


@pytest.fixture
def concern(tmp_path: Path) -> Path:
    path = tmp_path / "concern.yaml"
    path.write_text(
        "classes: [red, yellow, green, blue]\nreleases: [[red, yellow], [yellow, red]]\nfactor: 0.5\n"
    )
    return path


def predictions(path: Path, seed: int, *, labelled: bool = True) -> Path:
    scores, target = logits(seed)
    return write_predictions(path, scores, target if labelled else None, NAMES)


def fit(rows: Path, concern: Path, rule: Path, *options: str | Path) -> None:
    """Fit a rule by ``mpcs decide fit``, and write it to the file ``rule``."""
    assert run("decide", "fit", rows, "--concern", concern, "--out", rule, *options) == 0


def apply(rule: Path, rows: Path, out: Path, *options: str | Path) -> None:
    """Decide ``rows`` by ``mpcs decide apply``, and write the decisions to the file ``out``."""
    assert run("decide", "apply", rule, rows, "--out", out, *options) == 0


@pytest.mark.parametrize("scale", ["logits", "probabilities"])
def test_a_rule_decides_or_refers_each_row(
    scale: str, tmp_path: Path, concern: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (scores, target), (new, new_target) = logits(0), logits(1)
    flags = ["--logits"] if scale == "logits" else []
    for name, values, labels in (("dev.csv", scores, target), ("new.csv", new, new_target)):
        write_predictions(
            tmp_path / name, values if flags else values.softmax(dim=1), labels, NAMES
        )
    limit = ("--limit", "dangerous <= 10 % with confidence 0.9")
    rule = tmp_path / "rule.pt"
    fit(tmp_path / "dev.csv", concern, rule, *limit, *flags)
    printed = capsys.readouterr().out
    assert (
        "Guaranteed for samples like these: dangerous <= 0.1 of samples with confidence 0.9."
        in printed
    )
    assert decide.TWO_SIDED in one_line(printed)
    [fitted] = printed_tables(printed)
    assert fitted.rows[:3] == [
        ["samples that calibrated", "80"],
        ["seed that drew them", "0"],
        ["samples judged", "320"],
    ], "one of five calibrates"
    out = tmp_path / "decisions.csv"
    apply(rule, tmp_path / "new.csv", out, *flags)
    printed = capsys.readouterr().out
    with out.open() as file:
        rows = list(csv.DictReader(file))
    decided = [row["decision"] for row in rows]
    expected = DecisionRule(load_concern(concern), Limit(0.1, confidence=0.9))
    expected.fit(scores, target)
    assert decided == [[*NAMES, "refer"][i] for i in expected(new).tolist()]
    assert f"{len(rows)} decisions, {decided.count('refer')} of them referrals" in printed
    assert 0 < decided.count("refer") < len(rows)
    assessed = expected.assess(new)
    assert [float(row["risk"]) for row in rows] == pytest.approx(
        assessed.risk.tolist(), rel=1e-4
    )
    assert [row["best"] for row in rows] == [NAMES[i] for i in assessed.best.tolist()]
    assert {row["reason"] for row in rows if row["decision"] != "refer"} == {""}
    reason = "its risk is too high for 'dangerous <= 0.1 of samples with confidence 0.9'"
    assert {row["reason"] for row in rows if row["decision"] == "refer"} == {reason}
    assert [row["target"] for row in rows] == [NAMES[i] for i in new_target.tolist()]
    wrong = [
        (NAMES[label], name)
        for label, name in zip(new_target.tolist(), decided, strict=True)
    ]
    wrong = [(label, name) for label, name in wrong if name not in (label, "refer")]
    released = sum({"red", "yellow"} == set(pair) for pair in wrong)
    assert 0 < released < len(wrong), "else costs are dangerous errors"
    values, matrix, by_class = printed_tables(printed)
    applied = dict(row[:2] for row in values.rows)
    decided_rows = 400 - decided.count("refer")
    assert f"({len(wrong) - released} of 400)" in applied["dangerous_rate"]
    assert float(applied["coverage"]) == pytest.approx(decided_rows / 400)
    assert float(applied["selective_accuracy"]) == pytest.approx(
        1 - len(wrong) / decided_rows, abs=1e-4
    )
    assert matrix.header == ["true class", *NAMES, "referred"]
    assert sum(int(row[-1]) for row in matrix.rows) == decided.count("refer")
    assert [row[0] for row in by_class.rows] == NAMES


def test_decisions_are_evaluated_as_the_file_of_decisions_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = [[0, 1, 3, 3], [1, 0, 1, 2], [1, 1, 0, 1], [40, 20, 9, 0]]
    spec = ConcernSpec(
        NAMES,
        weights=weights,
        dangerous=9,
        refer=0.5,
        class_groups={"dark": ["green", "blue"]},
    )
    save_concern(spec, tmp_path / "c.yaml")
    scores, target = logits(0)
    rows = [
        f"{','.join(map(str, row))},{NAMES[y]},p{n // 3}"
        for n, (row, y) in enumerate(
            zip(scores.softmax(1).tolist(), target.tolist(), strict=True)
        )
    ]
    (tmp_path / "new.csv").write_text(
        "\n".join([",".join([*NAMES, "target", "patient"]), *rows]) + "\n"
    )
    rule, out, files = (
        tmp_path / "rule.pt",
        tmp_path / "out.csv",
        ("--concern", tmp_path / "c.yaml"),
    )
    assert (
        run(
            "decide",
            "fit",
            predictions(tmp_path / "dev.npz", 1),
            *files,
            "--out",
            rule,
            "--logits",
        )
        == 0
    )
    capsys.readouterr()
    assert (
        run(
            "decide",
            "apply",
            rule,
            tmp_path / "new.csv",
            "--out",
            out,
            "--cluster",
            "patient",
            "--json",
        )
        == 0
    )
    applied, warned = capsys.readouterr()
    assert "E2" not in warned
    assert run("score", out, *files, "--cluster", "patient", "--json") == 0
    scored = json.loads(capsys.readouterr().out)
    found = json.loads(applied)
    for part in ("metrics", "intervals", "per_class", "confusion", "classes"):
        assert found[part] == scored[part], part
    assert found["decisions"] == 400
    assert found["per_class"]["dark"]["samples"] == int((target >= 2).sum())
    apply(rule, tmp_path / "new.csv", tmp_path / "other.csv")
    assert "E2: rows share values of 'patient' (134)" in capsys.readouterr().err


def test_labels_are_not_needed_to_apply(
    tmp_path: Path, concern: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dev, new = (
        predictions(tmp_path / "dev.npz", 0),
        predictions(tmp_path / "new.npz", 1, labelled=False),
    )
    rule, out = tmp_path / "rule.pt", tmp_path / "out.csv"
    fit(dev, concern, rule, "--logits")
    assert "No limit was asked for" in capsys.readouterr().out
    apply(rule, new, out, "--logits")
    assert capsys.readouterr().out.splitlines() == [
        'new.npz: no labels; lists of scores "preds" = classes red, yellow, green, blue',
        "Estimated from the probabilities, which is right only while they are calibrated, and is no limit:",
        "- dangerous errors per sample: 0.3091 (of 400)",
        "- cost per sample: 0.3445 (of 400)",
        f"wrote {out}: 400 decisions, 0 of them referrals",
    ]


def test_priors_and_costs_reach_the_rule(tmp_path: Path, concern: Path) -> None:
    dev, rule = predictions(tmp_path / "dev.npz", 0), tmp_path / "rule.pt"
    fit = ("decide", "fit", dev, "--concern", concern, "--logits")
    assert run(*fit, "--out", rule, "--priors", "0.1,0.2,0.3,0.4") == 0
    loaded = DecisionRule.load(rule)
    assert loaded.priors is not None
    assert torch.allclose(loaded.priors, torch.tensor([0.1, 0.2, 0.3, 0.4]))
    assert run(*fit, "--out", rule, "--limit", "cost <= 0.2", "--overwrite") == 0
    assert DecisionRule.load(rule).limits == (Limit(0.2, "cost", confidence=None),)


CASES = "classes: [benign, malignant]\nreleases: [[benign, malignant]]\nfactor: 0.1\n"


def write_cases(path: Path, seed: int, patients: int = 400) -> None:
    """Write predictions for five images of each patient, of whom one in five is malignant, at two sites."""
    generator = torch.Generator().manual_seed(seed)
    malignant = torch.arange(patients) % 5 == 0
    shared = 0.8 * torch.randn(patients, generator=generator)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "benign", "malignant", "target", "site", "patient", "age"])
        for patient in range(patients):
            for image in range(5):
                score = (
                    4 * malignant[patient]
                    - 2.5
                    + shared[patient]
                    + torch.randn(1, generator=generator).item()
                )
                p = score.sigmoid().item()
                label = ["benign", "malignant"][int(malignant[patient])]
                site = ["north", "south"][patient % 2]
                rows.writerow(
                    [
                        f"i{patient}-{image}",
                        1 - p,
                        p,
                        label,
                        site,
                        f"p{patient}",
                        30 + patient % 50,
                    ]
                )


def test_limits_of_patients_and_sites_and_all_columns_flow_through_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("concern.yaml").write_text(CASES)
    write_cases(Path("validation.csv"), 0)
    write_cases(Path("new.csv"), 1)
    fit = (
        "decide",
        "fit",
        "validation.csv",
        "--concern",
        "concern.yaml",
        "--out",
        "rule.pt",
    )
    limits = (
        "--limit",
        "dangerous <= 20 % of malignant by site",
        "--limit",
        "any <= 10 % of decided",
    )
    assert run(*fit, *limits) == 0
    told = one_line(capsys.readouterr().err)
    assert "warning: E2: rows share values of 'patient' (400); if such rows" in told
    assert run(*fit, *limits, "--overwrite", "--mute", "E2") == 0
    assert capsys.readouterr().err == ""
    assert run(*fit, *limits, "--cluster", "patient", "--overwrite") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert (
        "Guaranteed for the samples of new clusters (patient) like these, none larger than the largest: dang"
        in printed.out
    )
    assert "dangerous errors of malignant" in printed.out
    assert (
        run(
            "calibrate",
            "fit",
            "validation.csv",
            "--method",
            "temperature",
            "--out",
            "cal.pt",
        )
        == 0
    )
    assert run("calibrate", "apply", "cal.pt", "new.csv", "--out", "calibrated.csv") == 0
    assert (
        run("decide", "apply", "rule.pt", "calibrated.csv", "--out", "decisions.csv") == 0
    )
    with Path("new.csv").open() as first, Path("decisions.csv").open() as last:
        rows, decisions = list(csv.DictReader(first)), list(csv.DictReader(last))
    assert list(decisions[0]) == [*rows[0], "decision", "risk", "cost", "reason", "best"]
    kept = ("image", "site", "patient", "age", "target")
    assert [[row[name] for name in kept] for row in decisions] == [
        [row[name] for name in kept] for row in rows
    ]
    referred = [row for row in decisions if row["decision"] == "refer"]
    assert 0 < len(referred) < len(rows)
    assert {row["reason"].split("'")[1].split(" <=")[0] for row in referred} <= {
        "dangerous",
        "any",
    }
    score = (
        "score",
        "calibrated.csv",
        "--by",
        "site",
        "--cluster",
        "patient",
        "--concern",
        "concern.yaml",
    )
    assert run(*score) == 0


def test_the_first_line_says_how_a_file_was_read(
    tmp_path: Path, concern: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dev = predictions(tmp_path / "dev.csv", 0)
    dev.write_text(
        "\n".join(f"{line},{place or 'age'}" for place, line in enumerate(lines_of(dev)))
    )
    fit = (
        "decide",
        "fit",
        dev,
        "--concern",
        concern,
        "--logits",
        "--out",
        tmp_path / "rule.pt",
        "--overwrite",
    )
    how = 'dev.csv: labels "target"; scores red, yellow, green, blue; not used: age'
    assert run(*fit, "--quiet") == 0
    assert capsys.readouterr().out.splitlines()[0] == how
    assert run(*fit, "--json") == 0
    printed = capsys.readouterr()
    assert printed.err.splitlines()[0] == how
    assert json.loads(printed.out)["read"] == [how]


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_every_column_keeps_its_name_order_and_text(
    tmp_path: Path, concern: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule, out, new = tmp_path / "rule.pt", tmp_path / "out.csv", tmp_path / "new.csv"
    DecisionRule(load_concern(concern), calibration=None).save(rule)
    new.write_text(
        ";code;red;yellow;diagnosis;green;blue;note;when\n"
        '0;007;0,7;0,1;red;0,1;0,1;"a; ""b""";2024-01-01\n'
        "1;008;0,10;0,2;;0,3;0,40;;\n"
    )
    apply(rule, new, out, "--label-column", "diagnosis")
    header, *rows = lines_of(out)
    assert header == f"{lines_of(new)[0]};decision;risk;cost;reason;best"
    assert [
        row.startswith(line) for row, line in zip(rows, lines_of(new)[1:], strict=True)
    ] == [True, True]
    assert [row.split(";")[-5] for row in rows] == ["red", "blue"], (
        "a row without a label is decided, too"
    )
    assert [row.split(";")[-4] for row in rows] == ["0,2", "0,6"]
    assert (
        "Of 2 rows, 1 have a label: all values are of these, which count alike."
        in capsys.readouterr().out
    )


def test_a_column_of_chances_is_said_to_be_unused(
    tmp_path: Path, concern: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule, out, new = tmp_path / "rule.pt", tmp_path / "out.csv", tmp_path / "new.csv"
    DecisionRule(load_concern(concern), calibration=None).save(rule)
    new.write_text("chance,red,yellow,green,blue,target\n0.1,0.7,0.1,0.1,0.1,red\n")
    apply(rule, new, out)
    assert decision_files.WITHOUT_CHANCE in one_line(capsys.readouterr().out)


def test_rows_without_scores_are_left_out_and_stay_in_the_file(
    tmp_path: Path, concern: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule, out, new = tmp_path / "rule.pt", tmp_path / "out.csv", tmp_path / "new.csv"
    DecisionRule(load_concern(concern), calibration=None).save(rule)
    new.write_text(
        "id,red,yellow,green,blue\na,0.7,0.1,0.1,0.1\nb,,,,\nc,0.1,0.1,0.1,0.7\n"
    )
    apply(rule, new, out, "--missing", "drop")
    printed = capsys.readouterr().out
    assert (
        "1 row without a label, prediction, cluster, unit, weight or cost left out: values are those of the others."
        in printed
    )
    assert "2 decisions, 0 of them referrals" in printed
    with out.open() as file:
        assert [(row["id"], row["decision"]) for row in csv.DictReader(file)] == [
            ("a", "red"),
            ("b", ""),
            ("c", "blue"),
        ]


def test_labels_may_be_in_another_file(
    tmp_path: Path, concern: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores, target = logits(0)
    dev = write_predictions(tmp_path / "dev.csv", scores, None, NAMES)
    rows = [f"{line},{place or 'id'}" for place, line in enumerate(lines_of(dev))]
    dev.write_text("\n".join(rows) + "\n")
    labels = [
        f"{place},{NAMES[label]}" for place, label in enumerate(target.tolist(), start=1)
    ]
    (tmp_path / "labels.csv").write_text("\n".join(["id,truth", *labels[::-1]]) + "\n")
    rule, given = (
        tmp_path / "rule.pt",
        ("--labels", tmp_path / "labels.csv", "--id-column", "id", "--logits"),
    )
    fit(dev, concern, rule, "--limit", "any <= 50 %", *given)
    assert "dev.csv (labels of labels.csv by 'id'): labels" in capsys.readouterr().out
    expected = DecisionRule(load_concern(concern), Limit(0.5, "any"))
    expected.fit(scores, target)
    assert DecisionRule.load(rule).thresholds.tolist() == pytest.approx(
        expected.thresholds.tolist()
    )
    assert (
        run(
            "decide",
            "apply",
            rule,
            dev,
            "--out",
            tmp_path / "out.csv",
            *given,
            "--mute",
            "E1",
        )
        == 0
    )
    with (tmp_path / "out.csv").open() as file:
        assert [row["truth"] for row in csv.DictReader(file)] == [
            NAMES[label] for label in target.tolist()
        ]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_each_format_gives_the_same_decisions(
    suffix: str, tmp_path: Path, concern: Path
) -> None:
    rule, new = tmp_path / "rule.pt", predictions(tmp_path / f"new{suffix}", 1)
    expected = DecisionRule(load_concern(concern), calibration=None)
    expected.save(rule)
    out = tmp_path / f"out{'.parquet' if suffix == '.parquet' else '.csv'}"
    apply(rule, new, out, "--logits")
    table = open_table(out).read(["decision", "target"]).columns
    assert table["decision"].tolist() == [
        [*NAMES, "refer"][i] for i in expected(logits(1)[0]).tolist()
    ]
    assert len(table["target"]) == 400


def test_a_plan_says_how_many_samples_to_collect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limit = ("decide", "plan", "--limit", "any <= 10 % of red by site", "--share", "0.15")
    rates = ("--expected", "0.01", "--expected", "0.03")
    assert run(*limit, *rates) == 0
    printed = capsys.readouterr().out
    planned = [
        plan_limit(Limit(0.1, "any", "red", "site"), p, share=0.15) for p in (0.01, 0.03)
    ]
    [table] = printed_tables(printed)
    columns = [
        [str(p.given), str(p.counted), str(p.judging), str(p.fewest)] for p in planned
    ]
    assert table.rows == [["0.01", *columns[0]], ["0.03", *columns[1]]]
    assert f"With 1 % of errors: {planned[0]}\nWith 3 % of errors: {planned[1]}" in printed
    assert run(*limit, *rates[:2], "--json") == 0
    [found] = json.loads(capsys.readouterr().out)
    assert (found["expected"], found["given"], found["plan"]) == (
        0.01,
        planned[0].given,
        str(planned[0]),
    )


def test_a_limit_per_cluster_of_a_group_of_classes_counts_clusters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    concern, pilot = tmp_path / "concern.yaml", tmp_path / "pilot.csv"
    concern.write_text(
        "classes: [red, yellow, green, blue]\nclass_groups: {warm: [red, yellow]}\n"
    )
    scores, target = logits(0)
    head, *lines = (
        write_predictions(pilot, scores.softmax(1), target, NAMES).read_text().split()
    )
    pilot.write_text(
        "\n".join(
            [
                f"{head},patient,size",
                *(f"{line},p{row // 4},4" for row, line in enumerate(lines)),
            ]
        )
    )
    limits = (
        "--limit",
        "any <= 20 % of warm per cluster",
        "--limit",
        "any <= 30 %",
        "--cluster",
        "patient",
    )
    out = tmp_path / "rule.pt"
    fit = (
        "decide",
        "fit",
        pilot,
        "--concern",
        concern,
        "--out",
        out,
        "--weight",
        "size",
        *limits,
    )
    assert run(*fit) == 0
    said = capsys.readouterr().out
    assert (
        "for new clusters (patient) like these, none larger than the largest: any <= 0.2 of warm per cluster"
        in said
    )


def costed(path: Path, seed: int, columns: dict[str, list[float]]) -> Path:
    scores, target = logits(seed)
    header = ",".join([*NAMES, "target", *columns])
    values = [
        *zip(
            *scores.softmax(1).T.tolist(),
            [NAMES[y] for y in target.tolist()],
            *columns.values(),
            strict=True,
        )
    ]
    path.write_text(
        "\n".join([header, *(",".join(map(str, row)) for row in values)]) + "\n"
    )
    return path


def test_columns_of_costs_reach_the_rule_and_the_values(
    tmp_path: Path, concern: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generator = torch.Generator().manual_seed(0)
    costs = 9 * torch.rand(2, 400, 4, generator=generator).double() + 0.1
    columns = [f"cost_{name}" for name in NAMES]
    files = [
        costed(
            tmp_path / f"{name}.csv",
            seed,
            dict(zip(columns, of_rows.T.tolist(), strict=True)),
        )
        for seed, (name, of_rows) in enumerate(zip(("dev", "new"), costs, strict=True))
    ]
    rule, out, named = (
        tmp_path / "rule.pt",
        tmp_path / "out.csv",
        ("--cost-columns", ",".join(columns)),
    )
    options = (*named, "--costs-if-wrong")
    limit = ("--limit", "dangerous <= 20 %")
    fit(files[0], concern, rule, *limit, *options)
    capsys.readouterr()
    assert run("decide", "apply", rule, files[1], "--out", out, "--json") == 2
    assert "costs must be given if they were in the fit (--cost-columns)" in one_line(
        capsys.readouterr().err
    )
    apply(rule, files[1], out, *options, "--json")
    told = capsys.readouterr()
    found = json.loads(told.out)
    scores, target = logits(0)
    expected = DecisionRule(load_concern(concern), Limit(0.2)).fit(
        scores, target, costs=costs_if_wrong(costs[0])
    )
    new, new_target = logits(1)
    assessed = expected.assess(new, costs_if_wrong(costs[1]))
    decided = assessed.decision
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["decision"] for row in rows] == [
        [*NAMES, "refer"][label] for label in decided.tolist()
    ]
    assert [float(row["cost"]) for row in rows] == pytest.approx(
        assessed.cost.tolist(), rel=1e-4
    )
    paid = costs[1].gather(1, decided.clamp(min=0).unsqueeze(1)).squeeze(1)
    paid = torch.where((decided == new_target) | (decided < 0), 0.0, paid)
    cost = found["estimated"][1]
    assert cost["name"] == "cost per sample"
    assert cost["value"] + cost["difference"] == pytest.approx(paid.mean().item(), rel=1e-4)
    assert found["referrals"]
    assert "mean_cost" not in found["metrics"]
    assert "the costs of rows have none of a referral" in told.err


@pytest.mark.parametrize("is_if_wrong", [False, True])
def test_columns_of_costs_are_those_of_mpcs_score(
    is_if_wrong: bool, tmp_path: Path, concern: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    costs = (
        9
        * torch.rand(
            400, 4 if is_if_wrong else 16, generator=torch.Generator().manual_seed(0)
        ).double()
    )
    columns = [f"{decided} for {true}" for true in NAMES for decided in NAMES][
        : costs.shape[1]
    ]
    new = costed(tmp_path / "new.csv", 1, dict(zip(columns, costs.T.tolist(), strict=True)))
    rule, out, options = (
        tmp_path / "rule.pt",
        tmp_path / "out.csv",
        ["--cost-columns", ",".join(columns)],
    )
    options += ["--costs-if-wrong"] * is_if_wrong
    fit(new, concern, rule, *options)
    capsys.readouterr()
    apply(rule, new, out, *options, "--json", "--mute", "E1")
    found = json.loads(capsys.readouterr().out)
    assert (
        run(
            "score",
            out,
            *options,
            "--decision-column",
            "decision",
            "--concern",
            concern,
            "--json",
        )
        == 0
    )
    scored = json.loads(capsys.readouterr().out)
    _, target = logits(1)
    decided = torch.tensor(
        [
            NAMES.index(row["decision"])
            for row in csv.DictReader(out.read_text().splitlines())
        ]
    )
    by_class = costs_if_wrong(costs) if is_if_wrong else costs.view(400, 4, 4)
    paid = by_class[torch.arange(400), target, decided]
    for result in (found, scored):
        assert result["metrics"]["mean_cost"] == pytest.approx(paid.mean().item())
        assert result["intervals"]["mean_cost"] == pytest.approx(
            found["intervals"]["mean_cost"]
        )
    words = (
        "wrongly for red: red for red, "
        if is_if_wrong
        else "red, yellow, green, blue: by true class, red for red"
    )
    assert f"costs of deciding {words}" in found["read"][0]


def test_a_row_with_a_missing_cost_is_dropped_or_referred_if_it_has_no_label(
    tmp_path: Path, concern: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    costs = torch.ones(400, 4).double() + torch.arange(4)
    costs[6, 1] = torch.nan
    new = costed(tmp_path / "new.csv", 0, dict(zip("abcd", costs.T.tolist(), strict=True)))
    rule, out = tmp_path / "rule.pt", tmp_path / "out.csv"
    DecisionRule(load_concern(concern), calibration=None).save(rule)
    options = ("--cost-columns", "a,b,c,d", "--costs-if-wrong")
    fit, apply = (
        ("decide", "fit", new, "--concern", concern, "--out", tmp_path / "other.pt"),
        ("decide", "apply", rule),
    )
    assert run(*fit, *options, "--missing", "drop") == 0
    table = [line.split(",") for line in lines_of(new)]
    table[7][4] = ""
    new.write_text("\n".join(map(",".join, table)) + "\n")
    assert run(*apply, new, "--out", out, *options) == 0
    assert [row["decision"] for row in csv.DictReader(out.read_text().splitlines())].index(
        "refer"
    ) == 6
    new.write_text(
        "\n".join(",".join([*row[:4], *row[5:]]) for row in table) + "\n"
    )  # without labels
    assert run(*apply, new, "--out", out, *options, "--overwrite") == 0
    assert [row["decision"] for row in csv.DictReader(out.read_text().splitlines())].index(
        "refer"
    ) == 6


def test_the_estimate_is_compared_with_labels(
    tmp_path: Path, concern: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule, out = tmp_path / "rule.pt", tmp_path / "out.csv"
    fit(predictions(tmp_path / "dev.npz", 0), concern, rule, "--logits")
    scores, target = logits(1)
    new = write_predictions(tmp_path / "new.csv", 3 * scores, target, NAMES)
    capsys.readouterr()
    apply(rule, new, out, "--logits")
    printed = capsys.readouterr().out
    assert "CALIBRATION ALARM" in printed
    assert "to_frame(), or mpcs score --all, has them" in one_line(printed)
    assert run("score", out, "--concern", concern, "--all") == 0
    assert "destructive_rate" in capsys.readouterr().out
    apply(rule, new, out, "--logits", "--json", "--overwrite")
    dangerous, cost = json.loads(capsys.readouterr().out)["estimated"]
    values = json.loads(json.dumps([dangerous, cost]))
    assert [each["labelled"] for each in values] == [400, 400]
    assert dangerous["low"] > 0
    assert f"dangerous errors per sample: {dangerous['value']:.4g} (of 400)" in printed


def test_the_calibration_of_the_rule_is_that_of_the_option(
    tmp_path: Path, concern: Path
) -> None:
    scores, target = logits(0)
    write_predictions(tmp_path / "dev.csv", scores, target, NAMES)
    rule = tmp_path / "rule.pt"
    options = ("--logits", "--calibration", "vector")
    fit(tmp_path / "dev.csv", concern, rule, *options)
    here = DecisionRule(load_concern(concern), calibration="vector").fit(scores, target)
    new, _ = logits(1)
    loaded = DecisionRule.load(rule)
    assert loaded.calibration_method == "vector"
    assert loaded.assess(new).risk == pytest.approx(here.assess(new).risk, abs=1e-5)
