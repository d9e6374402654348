"""The law of shown numbers: each number of a table, on a terminal or a page, is that of ``--json`` under its name."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from tests.cli.printed import printed_tables
from tests.cli.shell import Shell
from tests.report.page import Page, PageTable
from tests.report.rounded import is_rounded, shows

COMPARED = ["metric", "A", "B", "B - A", "95 %", "p", "p, corrected"]
CLASSES = ["class", "samples", "precision", "recall", "specificity", "wrongly decided as"]
CLUSTERED = [*CLASSES[:2], "patients", *CLASSES[2:]]
DETECTOR = ["metric", "value", "95 %", "threshold", "miss rate", "false-alarm rate"]
OF_ROWS = re.compile(r" \((\d+) of (\d+)\)")
SUMMARIES = ("worst", "mean of groups", "spread")
CONCERN = "classes: [red, yellow, green]\nreleases: [[red, yellow], [yellow, red]]\nfactor: 0.25\n"


FILES = ("one.csv", "two.csv")


@pytest.fixture
def _predictions(mpcs: Shell) -> None:
    """Write two models of the same rows, right about two times of three, at two sites of different sizes."""
    Path("concern.yaml").write_text(CONCERN)
    target = [(row * row) % 7 % 3 for row in range(150)]
    for seed, name in enumerate(FILES):
        noise = torch.randn(150, 3, generator=torch.Generator().manual_seed(seed))
        probs = (noise + (1 + seed) * torch.eye(3)[target]).double().softmax(1).tolist()
        rows = [
            f"{'south' if row % 3 else 'north'},p{row % 40},{label},{','.join(map(repr, scores))}"
            for row, (label, scores) in enumerate(zip(target, probs, strict=True))
        ]
        Path(name).write_text("\n".join(["site,patient,target,red,yellow,green", *rows]))


@pytest.fixture
def _detectors(mpcs: Shell) -> None:
    """Write two detectors of the same trials, with noise of two kinds."""
    for seed, name in enumerate(FILES):
        generator = torch.Generator().manual_seed(seed)
        scores = torch.randn(300, generator=generator, dtype=torch.float64)
        rows = [
            f"t{i},s{i % 30},{'quiet' if i % 4 else 'loud'},{score + (1.5 + seed) * (i % 5 < 2)},{int(i % 5 < 2)}"
            for i, score in enumerate(scores.tolist())
        ]
        Path(name).write_text("\n".join(["trial,speaker,noise,score,label", *rows]))


def shown_by(mpcs: Shell, command: str) -> tuple[Any, list[PageTable], Page]:
    """Return what a command tells as JSON, the tables that it prints and writes to a page, and the page."""
    plain = mpcs.json(command)
    printed = mpcs(f"{command} --html r.html").out
    page = Page(Path("r.html"))
    return plain, [*printed_tables(printed), *page.tables], page


def check_comparisons(table: PageTable, comparisons: Any) -> None:
    assert len(table.rows) <= len(comparisons), "those of the main metrics"
    for cells, row in zip(table.rows, comparisons, strict=False):
        assert cells[:3] == [row["measure"], *row["systems"]]
        assert is_rounded(cells[3], row["difference"])
        assert shows(cells[4], row["low"], row["high"])
        assert is_rounded(cells[5], row["p_value"])
        assert is_rounded(cells[6], row["adjusted_p_value"])
        assert row["difference"] == pytest.approx(row["second"] - row["first"])


def check_groups(table: PageTable, groups: Any, sizes: Sequence[str], pooled: Any) -> None:
    """Check a table of groups: its sizes, its values with intervals, the summaries, and the row of all."""
    names = table.header[1 + len(sizes) :]
    summaries = set(groups) & set(SUMMARIES)
    assert {row[0] for row in table.rows} == {*groups["groups"], "pooled", *summaries}
    for name, *cells in table.rows:
        if name in SUMMARIES:
            assert cells[: len(sizes)] == [""] * len(sizes)
            of_row = {"metrics": groups[name]}
        else:
            of_row = groups["groups"].get(name, pooled)
            assert cells[: len(sizes)] == [str(of_row[size]) for size in sizes]
        for metric, cell in zip(names, cells[len(sizes) :], strict=True):
            ends = of_row.get("intervals", {}).get(metric, ())
            assert shows(cell, of_row["metrics"][metric], *ends), (name, metric)


def check_harm(table: PageTable, plain: Any, models: Any) -> None:
    """Check what becomes of each class by each model; of green, all errors are dangerous."""
    header = ["class"]
    if len(models) > 1:
        header.append("model")
    if "patients" in table.header:
        header.append("patients")
    assert table.header == [
        *header,
        "rows",
        "dangerous errors",
        "missed",
        "false alarms",
        "precision",
    ]
    assert len(table.rows) == 3 * len(models)
    for row in table.rows:
        cells = dict(zip(table.header, row, strict=True))
        name = cells["class"]
        scores = models[cells.get("model", "one.csv")]
        of_class = scores["per_class"][name]
        counts = scores["confusion"]
        place = plain["classes"].index(name)
        released = {"red": (0, 1), "yellow": (0, 1), "green": (2,)}[name]
        dangerous = sum(
            count for other, count in enumerate(counts[place]) if other not in released
        )
        rows, predicted = sum(counts[place]), sum(row[place] for row in counts)
        right = counts[place][place]
        if "patients" in cells:
            assert float(cells["patients"]) == of_class["patients"]["true"] > 0
        assert int(cells["rows"]) == rows
        for column, part, whole, rate in (
            ("dangerous errors", dangerous, rows, "dangerous_rate"),
            ("missed", rows - right, rows, "error_rate"),
            ("precision", right, predicted, "precision"),
        ):
            ends = [100 * end for end in of_class["intervals"][rate]]
            share = 100 * part / whole
            assert shows(cells[column], part, whole, share, *ends), (name, rate)
        false_alarms = predicted - right
        assert int(cells["false alarms"]) == false_alarms
        assert false_alarms == of_class["counts"]["predicted"] - right


def check_classes(table: PageTable, plain: Any) -> None:
    """Check the precision, recall and specificity of each class, and the other classes that are decided for it."""
    classes = plain["classes"]
    assert [row[0] for row in table.rows] == classes
    for true, row in enumerate(table.rows):
        cells = dict(zip(table.header, row, strict=True))
        of_class = plain["per_class"][cells["class"]]
        if table.header == CLUSTERED:
            assert float(cells["patients"]) == of_class["patients"]["true"]
        wrong = {
            classes[label]: number
            for label, number in enumerate(plain["confusion"][true])
            if number and label != true
        }
        shown_wrong = dict[str, int]()
        for part in filter(None, cells["wrongly decided as"].split(", ")):
            label, number = part.rsplit(": ", 1)
            shown_wrong[label] = int(number)
        assert shown_wrong == wrong
        for column in ("samples", "precision", "recall", "specificity"):
            ends = of_class["intervals"].get(column, ())
            assert shows(cells[column], of_class[column], *ends), (cells["class"], column)


def check_confusions(table: PageTable, plain: Any, models: Any) -> None:
    """Check how often each model takes one class for another."""
    for pair, *cells in table.rows:
        true, predicted = [plain["classes"].index(name) for name in pair.split(" → ")]
        counts = [scores["confusion"][true][predicted] for scores in models.values()]
        # The count of each model is followed by its share of the cost.
        shown = cells[: 2 * len(models) : 2]
        assert [int(cell) for cell in shown] == counts


def check_metrics(table: PageTable, plain: Any, models: Any) -> None:
    """Check the values of each metric, with their intervals; what a metric is may follow."""
    several = len(models) > 1
    columns = list(models) if several else ["value", "95 %"]
    assert table.header[1 : 1 + len(columns)] == columns
    for row in table.rows:
        cells = dict(zip(table.header, row, strict=True))
        name = cells["metric"]
        for model, scores in models.items():
            # The interval of a single model has a column of its own.
            cell = cells[model] if several else f"{cells['value']} {cells['95 %']}"
            for count, rows in OF_ROWS.findall(cell):
                assert int(count) == scores["metrics"]["dangerous"], name
                assert int(rows) == plain["rows"], name
            ends = scores.get("intervals", {}).get(name, ())
            assert shows(OF_ROWS.sub("", cell), scores["metrics"][name], *ends), name


def check_sites(table: PageTable, plain: Any, models: Any) -> None:
    """Check the values of each site, and their order where the worst are to come first."""
    [groups] = [
        groups
        for groups in plain["groups"]
        if re.search(rf"(^|: ){re.escape(groups['model'])},", table.caption)
    ]
    pooled = {"rows": plain["rows"], **models[groups["model"]]}
    check_groups(table, groups, ["rows"], pooled)
    if "mpcs first" in table.caption:
        rates = [groups["groups"][row[0]]["metrics"]["mpcs"] for row in table.rows[:2]]
        assert rates == sorted(rates, reverse=True)


def models_of(plain: Any) -> Any:
    """Return the scores by the name of the model; those of a single model are not listed by name."""
    return plain.get("models", {"one.csv": plain})


def check_score(table: PageTable, plain: Any) -> None:
    models = models_of(plain)
    if table.header == COMPARED:
        check_comparisons(table, plain["comparisons"])
    elif table.header[1:] == COMPARED:
        differences = plain["group_differences"]
        assert [row[0] for row in table.rows] == [each["group"] for each in differences]
        of_models = table._replace(header=COMPARED, rows=[row[1:] for row in table.rows])
        check_comparisons(of_models, differences)
    elif table.header in (CLASSES, CLUSTERED):
        check_classes(table, plain)
    elif table.header[0] == "model":
        assert [row[0] for row in table.rows] == list(models)
    elif table.header[0] == "class":
        check_harm(table, plain, models)
    elif table.header[0] == "true → predicted":
        check_confusions(table, plain, models)
    elif table.header[0] == "metric":
        check_metrics(table, plain, models)
    else:
        check_sites(table, plain, models)


def check_each_table_is_there(
    tables: Sequence[PageTable], number: int, classes: list[str]
) -> None:
    """Count the tables of one model, or of a number of them; each is printed, and on the page."""
    headers = [table.header for table in tables]
    assert headers.count(classes) == (2 if number == 1 else 0)
    assert headers.count(COMPARED) == (2 if number == 2 else 0)
    of_sites = [header for header in headers if header[0] == "site"]
    of_differences = [header for header in of_sites if header[1:] == COMPARED]
    assert len(of_differences) == (2 if number == 2 else 0), "printed, and on the page"
    assert len(of_sites) - len(of_differences) == 3 * number, (
        "one table is printed, and two fit a page"
    )


class Errors(NamedTuple):
    """The errors of a model among 150 rows."""

    wrong: int
    dangerous: int

    @classmethod
    def of(cls, scores: Any) -> "Errors":
        counts = torch.tensor(scores["confusion"])
        errors = cls(int(counts.sum() - counts.trace()), scores["metrics"]["dangerous"])
        assert 0 < errors.dangerous < errors.wrong < 150 - errors.wrong, (
            "else the counts are not told apart"
        )
        return errors


def check_errors_of_a_model(
    page: Page, facts: dict[str, str], plain: Any, *, is_clustered: bool
) -> None:
    """Check what the page of a single model says of its errors and their cost, before any table."""
    errors = Errors.of(plain)
    [relative] = [
        remark for remark in plain["notes"] if remark.startswith("expected_concern")
    ]
    cost = f"{plain['metrics']['expected_concern']:.3g}"
    assert facts["cost of errors"].startswith(f"{cost} 1 is the cost of")
    assert facts["cost of errors"].split("always deciding ")[1] in relative

    def share(count: int, metric: str) -> str:
        low, high = [100 * end for end in plain["intervals"][metric]]
        return f"{100 * count / plain['rows']:.3g} % [{low:.3g}, {high:.3g}]"

    text = page.plain_text
    dangerous = share(errors.dangerous, "dangerous_rate")
    wrong = share(errors.wrong, "misclassification_rate")
    # Rows come after patients, where there are patients.
    if is_clustered:
        assert f"; {errors.dangerous} of 150 rows: {dangerous})" in text
    else:
        assert f"{errors.dangerous} of 150 rows ({dangerous})" in text
    colon = ":" if is_clustered else ""
    dangerous_fact = f"{errors.dangerous} of 150 rows{colon} {dangerous}"
    assert facts["dangerous errors"].endswith(dangerous_fact)
    wrong_fact = f"{errors.wrong} of 150 rows{colon} {wrong}"
    assert facts["wrong decisions"].endswith(wrong_fact)
    sentence = text.split("makes dangerous errors on ")[1].split(" in all")[0]
    of_class = r"(\d+) of \d+ rows" if is_clustered else r"(\d+) of \d+ \w+ \("
    *of_classes, _ = re.findall(of_class, sentence)  # the last one is that of all rows
    assert sum(map(int, of_classes)) == errors.dangerous


def check_errors_of_one_of_several(
    tables: Sequence[PageTable], name: str, errors: Errors
) -> None:
    """Check the row of a model in the table of what became of the rows."""
    [cells] = [
        dict(zip(table.header, row, strict=True))
        for table in tables
        if table.caption.startswith("What became of the rows")
        for row in table.rows
        if row[0] == name
    ]
    assert f"{errors.dangerous} of 150 rows" in cells["dangerous errors"]
    assert f"{errors.wrong} of 150 rows" in cells["wrong decisions"]


def check_figures(page: Page, scores: Any, *, diagram: str, name: str) -> None:
    """Check the numbers in the descriptions of the figures of a model."""
    [alt] = [alt for alt in page.alts if alt.startswith(f"{diagram}: ")]
    for field in ("geometric_accuracy", "decisiveness", "robustness"):
        [(reported, measured)] = re.findall(
            rf"{field.replace('_', ' ')} ([\d.]+) reported and ([\d.]+) measured", alt
        )
        assert reported == f"{scores['metrics'][field]:.2f}"
        assert measured == f"{scores['metrics'][f'measured_{field}']:.2f}"
    [alt] = [
        alt for alt in page.alts if alt.startswith("Dangerous errors per decided sample")
    ]
    assert f"{name}: {100 * Errors.of(scores).dangerous / 150:.3g} %" in alt


@pytest.mark.slow
@pytest.mark.usefixtures("_predictions")
@pytest.mark.parametrize("options", ["", "--cluster patient"], ids=["rows", "clusters"])
@pytest.mark.parametrize("number", [1, 2], ids=["one model", "two models"])
def test_scores_are_shown_under_their_names(number: int, options: str, mpcs: Shell) -> None:
    files = " ".join(FILES[:number])
    command = f"score {files} --concern concern.yaml --by site {options}"
    first_screen = printed_tables(mpcs(command).out)
    of_command = mpcs.json(command)
    for table in first_screen:
        check_score(table, of_command)
    plain, tables, page = shown_by(mpcs, f"{command} --all")
    check_each_table_is_there(tables, number, CLUSTERED if options else CLASSES)
    for table in tables:
        check_score(table, plain)
    models = models_of(plain)
    shown = Counter(
        row[0] for table in tables if table.header[0] == "metric" for row in table.rows
    )
    for scores in models.values():
        assert {shown[name] for name in scores["metrics"]} == {2}, (
            "printed, and on the page"
        )
    facts = dict(page.facts)
    assert facts.pop("rows") == str(plain["rows"]) == "150"
    assert facts.pop("classes") == "3"
    assert bool(facts.pop("patients", "")) == bool(options)
    if number == 1:
        check_errors_of_a_model(page, facts, plain, is_clustered=bool(options))
        check_figures(page, plain, diagram="Reliability diagram", name="one.csv")
        return
    for name, scores in models.items():
        check_errors_of_one_of_several(tables, name, Errors.of(scores))
        check_figures(page, scores, diagram=f"Reliability diagram of {name}", name=name)


MIN_ERRORS = 30
"""Rates of fewer errors have a star (Doddington's rule of 30), and so have the costs of which they are a part."""


def check_detect(table: PageTable, plain: Any) -> None:
    models = models_of(plain)
    if table.header == COMPARED:
        check_comparisons(table, plain["comparisons"])
    elif table.header[:6] == DETECTOR:
        check_detector(table, plain)
    elif table.header[0] == "metric":
        assert table.header[1:] == list(models)
        for name, *cells in table.rows:
            for scores, cell in zip(models.values(), cells, strict=True):
                ends = scores["intervals"].get(name, ())
                assert shows(cell, scores["metrics"][name], *ends), name
    else:
        check_noises(table, plain, models)


def check_detector(table: PageTable, plain: Any) -> None:
    """Check the metrics of one detector, with their thresholds and the rates of errors there."""
    for row in table.rows:
        cells = dict(zip(table.header, row, strict=True))
        name, value = cells["metric"], cells["value"]
        assert is_rounded(value.removesuffix("*"), plain["metrics"][name])
        assert shows(cells["95 %"], *plain["intervals"].get(name, ())), name
        stars = [
            "*" in cells["miss rate"],
            "*" in cells["false-alarm rate"],
        ]
        is_unsure = "cost[" in name and any(stars)
        assert value.endswith("*") == is_unsure, "a cost is as unsure as its rates"
        if name not in plain["errors"]:
            assert cells["threshold"] == "", name
            assert cells["miss rate"] == cells["false-alarm rate"] == "", name
            continue
        at = plain["errors"][name]
        assert shows(cells["threshold"], at["threshold"]), name
        for column, rate, kind, is_starred in (
            ("miss rate", "miss_rate", "targets", stars[0]),
            ("false-alarm rate", "false_alarm_rate", "non-targets", stars[1]),
        ):
            ends = at.get(f"{rate}_interval", ())
            assert shows(cells[column].replace("*", ""), at[rate], *ends), (name, rate)
            has_few = round(at[rate] * plain[kind]) < MIN_ERRORS
            assert is_starred == has_few, f"{name}, {rate}: few errors"


def check_noises(table: PageTable, plain: Any, models: Any) -> None:
    """Check the values of each noise, the worst first."""
    title = re.sub(r"^By noise: |, (by|the worst|other) .*", "", table.caption)
    [groups] = [groups for groups in plain["groups"] if groups["model"] == title]
    sizes = {size: plain[size] for size in ("targets", "non-targets")}
    check_groups(table, groups, list(sizes), {**sizes, **models[title]})
    of_groups = [groups["groups"][row[0]]["metrics"] for row in table.rows[:2]]
    rates = [values["equal_error_rate"] for values in of_groups]
    assert rates == sorted(rates, reverse=True)


@pytest.mark.slow
@pytest.mark.usefixtures("_detectors")
@pytest.mark.parametrize("options", ["", "--cluster speaker"], ids=["trials", "clusters"])
@pytest.mark.parametrize("number", [1, 2], ids=["one detector", "two detectors"])
def test_detection_scores_are_shown_under_their_names(
    number: int, options: str, mpcs: Shell
) -> None:
    files = " ".join(FILES[:number])
    wanted = "--by noise --threshold 1 --point 0.2,3,1"
    plain, tables, page = shown_by(mpcs, f"detect {files} {wanted} {options}")
    headers = [table.header for table in tables]
    assert [header[:6] for header in headers].count(DETECTOR) == (2 if number == 1 else 0)
    assert headers.count(COMPARED) == (2 if number == 2 else 0)
    assert sum(header[0] == "noise" for header in headers) == 2 * number
    for table in tables:
        check_detect(table, plain)
    of_values = [
        table
        for table in tables
        if table.header[0] == "metric" and table.header != COMPARED
    ]
    shown = Counter(row[0] for table in of_values for row in table.rows)
    for name in ("equal_error_rate", "auroc", "min_cost[p=0.2,c_miss=3,c_fa=1]"):
        assert shown[name] == 2, "printed, and on the page"
    assert not shown.keys() & {"cllr", "actual_cost[p=0.2,c_miss=3,c_fa=1]"}, (
        "which are of likelihood ratios alone"
    )
    facts = dict(page.facts)
    assert facts.pop("targets") == str(plain["targets"])
    assert facts.pop("non-targets") == str(plain["non-targets"])
    rates = {
        name: f"{100 * scores['metrics']['equal_error_rate']:.3g} %"
        for name, scores in models_of(plain).items()
    }
    if number == 2:
        assert facts == {f"equal error rate, {name}": rate for name, rate in rates.items()}
        return
    rate = rates["one.csv"]
    assert facts == {"equal error rate": rate}
    low, high = [100 * end for end in plain["intervals"]["equal_error_rate"]]
    interval = f" (95 % interval {low:.3g} to {high:.3g})"
    ranked = f"ranks a target above a non-target in {100 * plain['metrics']['auroc']:.4g} % of pairs"
    sentence = f"one.csv has an equal error rate of {rate}{interval}, and {ranked}."
    assert sentence in page.plain_text
