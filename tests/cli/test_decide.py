"""``mpcs decide``: fit and apply a rule, guarantees that are out of reach, and files that are not replaced."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from mpcs_torch import ConcernSpec, load_concern
from mpcs_torch.cli.verbs import decide
from mpcs_torch.concern import save_concern
from mpcs_torch.evaluation import decision_files
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.functional import costs_if_wrong
from mpcs_torch.learning import DecisionRule, Limit, plan_limit
from tests.calibration.data import logits
from tests.cli.printed import printed_tables
from tests.cli.shell import Shell, one_line
from tests.evaluation.files.write import SUFFIXES, write_predictions

NAMES = ["red", "yellow", "green", "blue"]
FIT = "decide fit dev.csv --concern concern.yaml --out rule.pt"
APPLY = "decide apply rule.pt new.csv --out out.csv"


@pytest.fixture(autouse=True)
def spec(mpcs: Shell) -> ConcernSpec:  # for its folder
    Path("concern.yaml").write_text(
        "classes: [red, yellow, green, blue]\nreleases: [[red, yellow], [yellow, red]]\nfactor: 0.5\n"
    )
    return load_concern("concern.yaml")


@pytest.fixture
def rule(spec: ConcernSpec) -> DecisionRule:
    """Return a rule without calibration, which is in rule.pt."""
    rule = DecisionRule(spec, calibration=None)
    rule.save("rule.pt")
    return rule


def write_logits(name: str, seed: int) -> None:
    write_predictions(Path(name), *logits(seed), NAMES)


def read_rows(name: str = "out.csv") -> list[dict[str, str]]:
    with Path(name).open() as file:
        return list(csv.DictReader(file))


def decisions() -> list[str]:
    return [row["decision"] for row in read_rows()]


def named(decided: Tensor) -> list[str]:
    return [[*NAMES, "refer"][label] for label in decided.tolist()]


LIMIT = "--limit 'dangerous <= 10 % with confidence 0.9'"
GUARANTEE = "dangerous <= 0.1 of samples with confidence 0.9"


def check_rows(expected: DecisionRule, new: Tensor, target: Tensor) -> None:
    """Check the rows of out.csv: decisions, risks, reasons, and the labels that were in the file."""
    assessed = expected.assess(new)
    rows = read_rows()
    assert decisions() == named(expected(new))
    risks = [float(row["risk"]) for row in rows]
    assert risks == pytest.approx(assessed.risk.tolist(), rel=1e-4)
    assert [row["best"] for row in rows] == named(assessed.best)
    reasons = {"refer": f"its risk is too high for '{GUARANTEE}'"}
    assert all(row["reason"] == reasons.get(row["decision"], "") for row in rows)
    assert [row["target"] for row in rows] == named(target)


def check_printed(printed: str) -> None:
    """Check the tables that are printed by counting the rows of out.csv."""
    pairs = [(row["target"], row["decision"]) for row in read_rows()]
    referrals = decisions().count("refer")
    assert 0 < referrals < len(pairs) == 400
    assert f"400 decisions, {referrals} of them referrals" in printed
    wrong = [(label, name) for label, name in pairs if name not in (label, "refer")]
    released = sum({"red", "yellow"} == set(pair) for pair in wrong)
    assert 0 < released < len(wrong), "else costs are dangerous errors"
    values, matrix, by_class = printed_tables(printed)
    applied = dict(row[:2] for row in values.rows)
    accuracy = 1 - len(wrong) / (400 - referrals)
    assert f"({len(wrong) - released} of 400)" in applied["dangerous_rate"]
    assert float(applied["coverage"]) == pytest.approx(1 - referrals / 400)
    assert float(applied["selective_accuracy"]) == pytest.approx(accuracy, abs=1e-4)
    assert matrix.header == ["true class", *NAMES, "referred"]
    assert sum(int(row[-1]) for row in matrix.rows) == referrals
    assert [row[0] for row in by_class.rows] == NAMES


@pytest.mark.parametrize("scale", ["logits", "probabilities"])
def test_a_rule_decides_or_refers_each_row(
    scale: str, mpcs: Shell, spec: ConcernSpec
) -> None:
    scores, target = logits(0)
    new, new_target = logits(1)
    flag = "--logits" if scale == "logits" else ""
    for name, values, truth in (("dev.csv", scores, target), ("new.csv", new, new_target)):
        written = values if flag else values.softmax(dim=1)
        write_predictions(Path(name), written, truth, NAMES)
    printed = mpcs(f"{FIT} {LIMIT} {flag}").out
    assert f"Guaranteed for samples like these: {GUARANTEE}." in printed
    assert decide.TWO_SIDED in one_line(printed)
    [fitted] = printed_tables(printed)
    assert fitted.rows[:3] == [
        ["samples that calibrated", "80"],
        ["seed that drew them", "0"],
        ["samples judged", "320"],
    ], "one of five calibrates"
    printed = mpcs(f"{APPLY} {flag}").out
    expected = DecisionRule(spec, Limit(0.1, confidence=0.9)).fit(scores, target)
    check_rows(expected, new, new_target)
    check_printed(printed)


def write_table(name: str, columns: Mapping[str, Sequence[object]]) -> None:
    with Path(name).open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))


def write_probabilities(name: str, seed: int, **more: Sequence[object]) -> None:
    """Write probabilities and labels, with further columns."""
    scores, target = logits(seed)
    columns = dict(zip(NAMES, scores.softmax(1).T.tolist(), strict=True))
    write_table(name, {**columns, "target": named(target), **more})


def test_decisions_are_evaluated_as_the_file_of_decisions_is(mpcs: Shell) -> None:
    weights = [[0, 1, 3, 3], [1, 0, 1, 2], [1, 1, 0, 1], [40, 20, 9, 0]]
    groups = {"dark": ["green", "blue"]}
    spec = ConcernSpec(NAMES, weights=weights, dangerous=9, refer=0.5, class_groups=groups)
    Path("concern.yaml").unlink()
    save_concern(spec, "concern.yaml")
    write_probabilities("new.csv", 0, patient=[f"p{row // 3}" for row in range(400)])
    write_logits("dev.csv", 1)
    mpcs(f"{FIT} --logits")
    printed = mpcs(f"{APPLY} --cluster patient --json")
    assert "E2" not in printed.err
    applied = json.loads(printed.out)
    scored = mpcs.json("score out.csv --concern concern.yaml --cluster patient")
    for part in ("metrics", "intervals", "per_class", "confusion", "classes"):
        assert applied[part] == scored[part], part
    assert applied["decisions"] == 400
    dark = int((logits(0)[1] >= 2).sum())
    assert applied["per_class"]["dark"]["samples"] == dark
    warned = mpcs(f"{APPLY} --overwrite").err
    assert "E2: rows share values of 'patient' (134)" in warned


def test_labels_are_not_needed_to_apply(mpcs: Shell) -> None:
    write_logits("dev.csv", 0)
    write_predictions(Path("new.npz"), logits(1)[0], None, NAMES)
    assert "No limit was asked for" in mpcs(f"{FIT} --logits").out
    apply = "decide apply rule.pt new.npz --out out.csv --logits"
    assert mpcs(apply).out.splitlines() == [
        'new.npz: no labels; lists of scores "preds" = classes red, yellow, green, blue',
        "Estimated from the probabilities, which is right only while they are calibrated, and is no limit:",
        "- dangerous errors per sample: 0.3091 (of 400)",
        "- cost per sample: 0.3445 (of 400)",
        "wrote out.csv: 400 decisions, 0 of them referrals",
    ]


def test_priors_and_costs_reach_the_rule(mpcs: Shell) -> None:
    write_logits("dev.csv", 0)
    mpcs(f"{FIT} --logits --priors 0.1,0.2,0.3,0.4")
    priors = DecisionRule.load("rule.pt").priors
    assert priors is not None
    assert torch.allclose(priors, torch.tensor([0.1, 0.2, 0.3, 0.4]))
    mpcs(f"{FIT} --logits --limit 'cost <= 0.2' --overwrite")
    assert DecisionRule.load("rule.pt").limits == (Limit(0.2, "cost", confidence=None),)


CASES = "classes: [benign, malignant]\nreleases: [[benign, malignant]]\nfactor: 0.1\n"


def write_cases(path: Path, seed: int) -> None:
    """Write predictions for five images of each patient, of whom one in five is malignant, at two sites."""
    patients = 400
    generator = torch.Generator().manual_seed(seed)
    is_malignant = torch.arange(patients) % 5 == 0
    shared = 0.8 * torch.randn(patients, generator=generator)
    images = torch.randn(patients, 5, generator=generator)
    scores = (4 * is_malignant - 2.5 + shared).unsqueeze(1) + images
    p = scores.sigmoid().flatten().tolist()
    rows = [(patient, image) for patient in range(patients) for image in range(5)]
    labels = ["malignant" if patient % 5 == 0 else "benign" for patient, _ in rows]
    columns: dict[str, Sequence[object]] = {
        "image": [f"i{patient}-{image}" for patient, image in rows],
        "benign": [1 - share for share in p],
        "malignant": p,
        "target": labels,
        "site": [["north", "south"][patient % 2] for patient, _ in rows],
        "patient": [f"p{patient}" for patient, _ in rows],
        "age": [30 + patient % 50 for patient, _ in rows],
    }
    write_table(str(path), columns)


def test_limits_of_patients_and_sites_and_all_columns_flow_through_files(
    mpcs: Shell,
) -> None:
    Path("concern.yaml").write_text(CASES)
    write_cases(Path("dev.csv"), 0)
    write_cases(Path("new.csv"), 1)
    limits = (
        "--limit 'dangerous <= 20 % of malignant by site' --limit 'any <= 10 % of decided'"
    )
    warned = one_line(mpcs(f"{FIT} {limits}").err)
    assert "warning: E2: rows share values of 'patient' (400); if such rows" in warned
    assert mpcs(f"{FIT} {limits} --overwrite --mute E2").err == ""
    printed = mpcs(f"{FIT} {limits} --cluster patient --overwrite")
    assert printed.err == ""
    like = "new clusters (patient) like these, none larger than the largest: dang"
    assert f"Guaranteed for the samples of {like}" in printed.out
    assert "dangerous errors of malignant" in printed.out
    mpcs("calibrate fit dev.csv --method temperature --out cal.pt")
    mpcs("calibrate apply cal.pt new.csv --out calibrated.csv")
    mpcs("decide apply rule.pt calibrated.csv --out decisions.csv")
    rows, decided = read_rows("new.csv"), read_rows("decisions.csv")
    assert list(decided[0]) == [*rows[0], "decision", "risk", "cost", "reason", "best"]
    kept = ("image", "site", "patient", "age", "target")
    assert [[row[name] for name in kept] for row in decided] == [
        [row[name] for name in kept] for row in rows
    ]
    reasons = [row["reason"] for row in decided if row["decision"] == "refer"]
    assert 0 < len(reasons) < len(rows)
    assert {reason.split("'")[1].split(" <=")[0] for reason in reasons} <= {
        "dangerous",
        "any",
    }
    mpcs("score calibrated.csv --by site --cluster patient --concern concern.yaml")


def test_the_first_line_says_how_a_file_was_read(mpcs: Shell) -> None:
    write_logits("dev.csv", 0)
    header, *lines = lines_of("dev.csv")
    with_age = [f"{line},{age}" for age, line in enumerate(lines, start=1)]
    Path("dev.csv").write_text("\n".join([f"{header},age", *with_age]))
    how = 'dev.csv: labels "target"; scores red, yellow, green, blue; not used: age'
    assert mpcs(f"{FIT} --logits --quiet").out.splitlines()[0] == how
    printed = mpcs(f"{FIT} --logits --overwrite --json")
    assert printed.err.splitlines()[0] == how
    assert json.loads(printed.out)["read"] == [how]


def lines_of(name: str) -> list[str]:
    return Path(name).read_text().splitlines()


@pytest.mark.usefixtures("rule")
def test_every_column_keeps_its_name_order_and_text(mpcs: Shell) -> None:
    Path("new.csv").write_text(
        ";code;red;yellow;diagnosis;green;blue;note;when\n"
        '0;007;0,7;0,1;red;0,1;0,1;"a; ""b""";2024-01-01\n'
        "1;008;0,10;0,2;;0,3;0,40;;\n"
    )
    printed = mpcs(f"{APPLY} --label-column diagnosis").out
    header, *rows = lines_of("out.csv")
    header_before, *rows_before = lines_of("new.csv")
    assert header == f"{header_before};decision;risk;cost;reason;best"
    pairs = zip(rows, rows_before, strict=True)
    assert all(row.startswith(before) for row, before in pairs)
    added = [row.split(";")[-5:] for row in rows]
    assert [(decision, risk) for decision, risk, _, _, _ in added] == [
        ("red", "0,2"),
        ("blue", "0,6"),
    ], "a row without a label is decided, too"
    only = "Of 2 rows, 1 have a label: all values are of these, which count alike."
    assert only in printed


@pytest.mark.usefixtures("rule")
def test_a_column_of_chances_is_said_to_be_unused(mpcs: Shell) -> None:
    Path("new.csv").write_text(
        "chance,red,yellow,green,blue,target\n0.1,0.7,0.1,0.1,0.1,red\n"
    )
    assert decision_files.WITHOUT_CHANCE in one_line(mpcs(APPLY).out)


@pytest.mark.usefixtures("rule")
def test_rows_without_scores_are_left_out_and_stay_in_the_file(mpcs: Shell) -> None:
    Path("new.csv").write_text(
        "id,red,yellow,green,blue\na,0.7,0.1,0.1,0.1\nb,,,,\nc,0.1,0.1,0.1,0.7\n"
    )
    printed = mpcs(f"{APPLY} --missing drop").out
    missing = "1 row without a label, prediction, cluster, unit, weight or cost left out"
    assert f"{missing}: values are those of the others." in printed
    assert "2 decisions, 0 of them referrals" in printed
    assert [row["id"] for row in read_rows()] == ["a", "b", "c"]
    assert decisions() == ["red", "", "blue"]


def test_labels_may_be_in_another_file(mpcs: Shell, spec: ConcernSpec) -> None:
    scores, target = logits(0)
    columns = dict(zip(NAMES, scores.T.tolist(), strict=True))
    write_table("dev.csv", {**columns, "id": range(400)})
    truth = named(target)
    write_table("labels.csv", {"id": range(400)[::-1], "truth": truth[::-1]})
    how = "--labels labels.csv --id-column id --logits"
    printed = mpcs(f"{FIT} --limit 'any <= 50 %' {how}").out
    assert "dev.csv (labels of labels.csv by 'id'): labels" in printed
    expected = DecisionRule(spec, Limit(0.5, "any")).fit(scores, target)
    thresholds = DecisionRule.load("rule.pt").thresholds.tolist()
    assert thresholds == pytest.approx(expected.thresholds.tolist())
    mpcs(f"decide apply rule.pt dev.csv --out out.csv {how} --mute E1")
    assert [row["truth"] for row in read_rows()] == truth


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_each_format_gives_the_same_decisions(
    suffix: str, mpcs: Shell, rule: DecisionRule
) -> None:
    write_logits(f"new{suffix}", 1)
    out = "out.parquet" if suffix == ".parquet" else "out.csv"
    mpcs(f"decide apply rule.pt new{suffix} --out {out} --logits")
    table = open_table(Path(out)).read(["decision", "target"]).columns
    assert table["decision"].tolist() == named(rule(logits(1)[0]))
    assert len(table["target"]) == 400


def test_a_plan_says_how_many_samples_to_collect(mpcs: Shell) -> None:
    plan = "decide plan --limit 'any <= 10 % of red by site' --share 0.15"
    printed = mpcs(f"{plan} --expected 0.01 --expected 0.03").out
    limit = Limit(0.1, "any", "red", "site")
    first, second = [plan_limit(limit, rate, share=0.15) for rate in (0.01, 0.03)]
    [table] = printed_tables(printed)
    assert table.rows == [
        [rate, *map(str, (one.given, one.counted, one.judging, one.fewest))]
        for rate, one in (("0.01", first), ("0.03", second))
    ]
    assert f"With 1 % of errors: {first}\nWith 3 % of errors: {second}" in printed
    [plain] = mpcs.json(f"{plan} --expected 0.01")
    assert plain["expected"] == 0.01
    assert (plain["given"], plain["plan"]) == (first.given, str(first))


def test_a_limit_per_cluster_of_a_group_of_classes_counts_clusters(mpcs: Shell) -> None:
    Path("concern.yaml").write_text(
        "classes: [red, yellow, green, blue]\nclass_groups: {warm: [red, yellow]}\n"
    )
    patients = [f"p{row // 4}" for row in range(400)]
    write_probabilities("dev.csv", 0, patient=patients, size=[4] * 400)
    limits = "--limit 'any <= 20 % of warm per cluster' --limit 'any <= 30 %'"
    printed = mpcs(f"{FIT} --weight size {limits} --cluster patient").out
    like = "new clusters (patient) like these, none larger than the largest"
    assert f"for {like}: any <= 0.2 of warm per cluster" in printed


def test_columns_of_costs_reach_the_rule_and_the_values(
    mpcs: Shell, spec: ConcernSpec
) -> None:
    generator = torch.Generator().manual_seed(0)
    costs = 9 * torch.rand(2, 400, 4, generator=generator).double() + 0.1
    columns = [f"cost_{name}" for name in NAMES]
    for seed, name in enumerate(("dev.csv", "new.csv")):
        values = zip(columns, costs[seed].T.tolist(), strict=True)
        write_probabilities(name, seed, **dict(values))
    options = f"--cost-columns {','.join(columns)} --costs-if-wrong"
    mpcs(f"{FIT} --limit 'dangerous <= 20 %' {options}")
    refused = mpcs.refusal(f"{APPLY} --json")
    assert "costs must be given if they were in the fit (--cost-columns)" in refused
    printed = mpcs(f"{APPLY} {options} --json")
    applied = json.loads(printed.out)
    expected = DecisionRule(spec, Limit(0.2))
    expected.fit(*logits(0), costs=costs_if_wrong(costs[0]))
    new, target = logits(1)
    assessed = expected.assess(new, costs_if_wrong(costs[1]))
    decided = assessed.decision
    assert decisions() == named(decided)
    expected_costs = pytest.approx(assessed.cost.tolist(), rel=1e-4)
    assert [float(row["cost"]) for row in read_rows()] == expected_costs
    paid = costs[1].gather(1, decided.clamp(min=0).unsqueeze(1)).squeeze(1)
    paid = torch.where((decided == target) | (decided < 0), 0.0, paid)
    cost = applied["estimated"][1]
    assert cost["name"] == "cost per sample"
    assert cost["value"] + cost["difference"] == pytest.approx(paid.mean().item(), rel=1e-4)
    assert applied["referrals"]
    assert "mean_cost" not in applied["metrics"]
    assert "the costs of rows have none of a referral" in printed.err


@pytest.mark.parametrize("is_if_wrong", [False, True])
def test_columns_of_costs_are_those_of_mpcs_score(is_if_wrong: bool, mpcs: Shell) -> None:
    generator = torch.Generator().manual_seed(0)
    size = 4 if is_if_wrong else 16
    costs = 9 * torch.rand(400, size, generator=generator).double()
    columns = [f"{decided} for {true}" for true in NAMES for decided in NAMES][:size]
    write_probabilities("dev.csv", 1, **dict(zip(columns, costs.T.tolist(), strict=True)))
    options = f"--cost-columns '{','.join(columns)}'"
    words = "red, yellow, green, blue: by true class, red for red"
    by_class = costs.view(400, -1, 4)
    if is_if_wrong:
        options += " --costs-if-wrong"
        words = "wrongly for red: red for red, "
        by_class = costs_if_wrong(costs)
    mpcs(f"{FIT} {options}")
    apply = f"decide apply rule.pt dev.csv --out out.csv {options} --mute E1"
    score = f"score out.csv {options} --decision-column decision --concern concern.yaml"
    results = [mpcs.json(apply), mpcs.json(score)]
    decided = torch.tensor([NAMES.index(name) for name in decisions()])
    paid = by_class[torch.arange(400), logits(1)[1], decided].mean().item()
    ends = pytest.approx(results[0]["intervals"]["mean_cost"])
    for result in results:
        assert result["metrics"]["mean_cost"] == pytest.approx(paid)
        assert result["intervals"]["mean_cost"] == ends
    assert f"costs of deciding {words}" in results[0]["read"][0]


@pytest.mark.usefixtures("rule")
def test_a_row_with_a_missing_cost_is_dropped_or_referred_if_it_has_no_label(
    mpcs: Shell,
) -> None:
    costs = {name: [1.0 + place] * 400 for place, name in enumerate("abcd")}
    costs["b"][6] = torch.nan
    write_probabilities("new.csv", 0, **costs)
    options = "--cost-columns a,b,c,d --costs-if-wrong"
    files = "decide fit new.csv --concern concern.yaml --out other.pt"
    mpcs(f"{files} {options} --missing drop")
    header, *table = [line.split(",") for line in lines_of("new.csv")]
    of_label = header.index("target")
    table[6][of_label] = ""
    rows = [header, *table]
    without_labels = [[*row[:of_label], *row[of_label + 1 :]] for row in rows]
    for written in (rows, without_labels):
        Path("new.csv").write_text("\n".join(map(",".join, written)) + "\n")
        mpcs(f"{APPLY} {options} --overwrite")
        assert decisions().index("refer") == 6


def test_the_estimate_is_compared_with_labels(mpcs: Shell) -> None:
    write_logits("dev.csv", 0)
    mpcs(f"{FIT} --logits")
    scores, target = logits(1)
    write_predictions(Path("new.csv"), 3 * scores, target, NAMES)
    printed = mpcs(f"{APPLY} --logits").out
    assert "CALIBRATION ALARM" in printed
    assert "to_frame(), or --all of a command, has them" in one_line(printed)
    all_metrics = mpcs("score out.csv --concern concern.yaml --all").out
    assert "destructive_rate" in all_metrics
    dangerous, cost = mpcs.json(f"{APPLY} --logits --overwrite")["estimated"]
    assert [dangerous["labelled"], cost["labelled"]] == [400, 400]
    assert dangerous["low"] > 0
    assert f"dangerous errors per sample: {dangerous['value']:.4g} (of 400)" in printed


def test_the_calibration_of_the_rule_is_that_of_the_option(
    mpcs: Shell, spec: ConcernSpec
) -> None:
    write_logits("dev.csv", 0)
    mpcs(f"{FIT} --logits --calibration vector")
    expected = DecisionRule(spec, calibration="vector").fit(*logits(0))
    loaded = DecisionRule.load("rule.pt")
    assert loaded.calibration_method == "vector"
    new, _ = logits(1)
    assert loaded.assess(new).risk == pytest.approx(expected.assess(new).risk, abs=1e-5)
