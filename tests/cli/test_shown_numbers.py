"""The law of shown numbers: each number of a table, on a terminal or a page, is that of ``--json`` under its name."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
    assert {row[0] for row in table.rows} == {
        *groups["groups"],
        "pooled",
        *set(groups) & set(SUMMARIES),
    }
    for name, *cells in table.rows:
        if name in SUMMARIES:
            assert cells[: len(sizes)] == [""] * len(sizes)
            of_row = {"metrics": groups[name]}
        else:
            of_row = groups["groups"].get(name, pooled)
            assert cells[: len(sizes)] == [str(of_row[size]) for size in sizes]
        for metric, cell in zip(names, cells[len(sizes) :], strict=True):
            assert shows(
                cell,
                of_row["metrics"][metric],
                *of_row.get("intervals", {}).get(metric, ()),
            ), (name, metric)


def check_harm(table: PageTable, plain: Any, models: Any) -> None:
    """Check what becomes of each class by each model; of green, all errors are dangerous."""
    several = len(models) > 1
    is_clustered = "patients" in table.header
    names = ["dangerous errors", "missed", "false alarms", "precision"]
    sizes = [*(["patients"] if is_clustered else []), "rows"]
    assert table.header == ["class", *(["model"] if several else []), *sizes, *names]
    assert len(table.rows) == 3 * len(models)
    for name, *cells in table.rows:
        scores = models[cells.pop(0) if several else "one.csv"]
        of_class = scores["per_class"][name]
        counts = scores["confusion"]
        place = plain["classes"].index(name)
        released = {"red": (0, 1), "yellow": (0, 1), "green": (2,)}[name]
        dangerous = sum(
            count for other, count in enumerate(counts[place]) if other not in released
        )
        rows, predicted = sum(counts[place]), sum(row[place] for row in counts)
        right = counts[place][place]
        if is_clustered:
            assert float(cells.pop(0)) == of_class["patients"]["true"] > 0
        assert int(cells[0]) == rows
        for cell, part, whole, rate in (
            (cells[1], dangerous, rows, "dangerous_rate"),
            (cells[2], rows - right, rows, "error_rate"),
            (cells[4], right, predicted, "precision"),
        ):
            ends = (100 * end for end in of_class["intervals"][rate])
            assert shows(cell, part, whole, 100 * part / whole, *ends), (name, rate)
        assert int(cells[3]) == predicted - right == of_class["counts"]["predicted"] - right


def check_score(table: PageTable, plain: Any) -> None:
    models = plain.get("models", {"one.csv": plain})
    if table.header == COMPARED:
        check_comparisons(table, plain["comparisons"])
    elif table.header[1:] == COMPARED:
        differences = plain["group_differences"]
        assert [row[0] for row in table.rows] == [each["group"] for each in differences]
        of_models = table._replace(header=COMPARED, rows=[row[1:] for row in table.rows])
        check_comparisons(of_models, differences)
    elif table.header in (CLASSES, CLUSTERED):
        for name, *cells in table.rows:
            of_class = plain["per_class"][name]
            if table.header == CLUSTERED:
                assert float(cells.pop(1)) == of_class["patients"]["true"]
            true = plain["classes"].index(name)
            wrong = {
                plain["classes"][label]: number
                for label, number in enumerate(plain["confusion"][true])
                if number and label != true
            }
            printed_wrong = [
                each.rsplit(": ", 1) for each in cells.pop().split(", ") if each
            ]
            assert {label: int(number) for label, number in printed_wrong} == wrong
            for column, cell in zip(
                ("samples", "precision", "recall", "specificity"), cells, strict=True
            ):
                assert shows(
                    cell, of_class[column], *of_class["intervals"].get(column, ())
                ), (name, column)
        assert [row[0] for row in table.rows] == plain["classes"]
    elif table.header[0] == "model":
        assert [row[0] for row in table.rows] == list(models)
    elif table.header[0] == "class":
        check_harm(table, plain, models)
    elif table.header[0] == "true → predicted":
        for pair, *cells in table.rows:
            true, predicted = (plain["classes"].index(name) for name in pair.split(" → "))
            counts = [scores["confusion"][true][predicted] for scores in models.values()]
            assert [int(cell) for cell in cells[: 2 * len(models) : 2]] == counts
    elif table.header[0] == "metric":
        several = len(models) > 1
        for name, *cells in table.rows:
            shown = (
                cells[: len(models)] if several else [" ".join(cells[:2])]
            )  # what a metric is may follow
            for scores, cell in zip(models.values(), shown, strict=True):
                interval = scores.get("intervals", {}).get(name, ())
                for count, rows in OF_ROWS.findall(cell):
                    assert (int(count), int(rows)) == (
                        scores["metrics"]["dangerous"],
                        plain["rows"],
                    ), name
                assert shows(OF_ROWS.sub("", cell), scores["metrics"][name], *interval), (
                    name
                )
        columns = list(models) if several else ["value", "95 %"]
        assert table.header[1 : 1 + len(columns)] == columns
    else:
        [groups] = [
            each
            for each in plain["groups"]
            if re.search(rf"(^|: ){re.escape(each['model'])},", table.caption)
        ]
        check_groups(
            table, groups, ["rows"], {"rows": plain["rows"], **models[groups["model"]]}
        )
        if "mpcs first" in table.caption:
            rates = [groups["groups"][row[0]]["metrics"]["mpcs"] for row in table.rows[:2]]
            assert rates == sorted(rates, reverse=True)


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
    models = plain.get("models", {"one.csv": plain})
    headers = [table.header for table in tables]
    assert headers.count(CLUSTERED if options else CLASSES) == (2 if number == 1 else 0)
    assert headers.count(COMPARED) == (2 if number == 2 else 0)
    of_sites = [header for header in headers if header[0] == "site"]
    of_differences = [header for header in of_sites if header[1:] == COMPARED]
    assert len(of_differences) == (2 if number == 2 else 0), "printed, and on the page"
    assert len(of_sites) - len(of_differences) == 3 * number, (
        "one table is printed, and two fit a page"
    )
    for table in tables:
        check_score(table, plain)
    shown = Counter(
        row[0] for table in tables if table.header[0] == "metric" for row in table.rows
    )
    assert {shown[name] for scores in models.values() for name in scores["metrics"]} == {
        2
    }, "printed, and on the page"
    facts = dict(page.facts)
    assert facts.pop("rows") == str(plain["rows"])
    assert facts.pop("classes") == "3"
    assert bool(facts.pop("patients", "")) == bool(options)
    for name, scores in models.items():
        counts = torch.tensor(scores["confusion"])
        errors = int(counts.sum() - counts.trace())
        dangerous = scores["metrics"]["dangerous"]
        assert 0 < dangerous < errors < plain["rows"] - errors, (
            "else the counts are not told apart"
        )
        if number == 1:
            [relative] = [
                remark for remark in plain["notes"] if remark.startswith("expected_concern")
            ]
            assert facts["cost of errors"].startswith(
                f"{scores['metrics']['expected_concern']:.3g} 1 is the cost of"
            )
            assert facts["cost of errors"].split("always deciding ")[1] in relative
            shares = []
            for count, metric in (
                (dangerous, "dangerous_rate"),
                (errors, "misclassification_rate"),
            ):
                low, high = (100 * end for end in scores["intervals"][metric])
                shares.append(
                    f"{100 * count / plain['rows']:.3g} % [{low:.3g}, {high:.3g}]"
                )
            text = page.plain_text
            beside = (": ", "; ") if options else (" (", "")
            assert f"{beside[1]}{dangerous} of 150 rows{beside[0]}{shares[0]})" in text
            for title, count, share in zip(
                ("dangerous errors", "wrong decisions"),
                (dangerous, errors),
                shares,
                strict=True,
            ):
                assert facts[title].endswith(
                    f"{count} of 150 rows{': ' if options else ' '}{share}"
                )
            told_of = text.split("makes dangerous errors on ")[1].split(" in all")[0]
            *of_classes, _ = re.findall(
                r"(\d+) of \d+ rows" if options else r"(\d+) of \d+ \w+ \(", told_of
            )
            assert sum(map(int, of_classes)) == dangerous
        else:
            [cells] = [
                dict(zip(table.header, row, strict=True))
                for table in tables
                if table.caption.startswith("What became of the rows")
                for row in table.rows
                if row[0] == name
            ]
            assert f"{dangerous} of {plain['rows']} rows" in cells["dangerous errors"]
            assert f"{errors} of {plain['rows']} rows" in cells["wrong decisions"]
        of_model = "" if number == 1 else f" of {name}"
        [alt] = [
            alt for alt in page.alts if alt.startswith(f"Reliability diagram{of_model}: ")
        ]
        for field in ("geometric_accuracy", "decisiveness", "robustness"):
            [pair] = re.findall(
                rf"{field.replace('_', ' ')} ([\d.]+) reported and ([\d.]+) measured", alt
            )
            assert pair == tuple(
                f"{scores['metrics'][key]:.2f}" for key in (field, f"measured_{field}")
            )
        [alt] = [
            alt
            for alt in page.alts
            if alt.startswith("Dangerous errors per decided sample")
        ]
        assert f"{name}: {100 * dangerous / 150:.3g} %" in alt


def check_detect(table: PageTable, plain: Any) -> None:
    models = plain.get("models", {"one.csv": plain})
    if table.header == COMPARED:
        check_comparisons(table, plain["comparisons"])
    elif table.header[:6] == DETECTOR:
        for name, value, interval, threshold, *rates in (row[:6] for row in table.rows):
            assert is_rounded(value.removesuffix("*"), plain["metrics"][name])
            is_starred = "cost[" in name and "*" in "".join(rates)
            assert value.endswith("*") == is_starred, "a cost is as unsure as its rates"
            assert shows(interval, *plain["intervals"].get(name, ())), name
            at = plain["errors"].get(name, {})
            assert shows(threshold, *([at["threshold"]] if at else [])), name
            for rate, cell in zip(("miss_rate", "false_alarm_rate"), rates, strict=True):
                values = [at[rate], *at.get(f"{rate}_interval", ())] if at else []
                assert shows(cell.replace("*", ""), *values), (name, rate)
                trials = plain["targets" if rate == "miss_rate" else "non-targets"]
                assert ("*" in cell) == (bool(at) and round(at[rate] * trials) < 30), (
                    f"{name}, {rate}: few errors"
                )
    elif table.header[0] == "metric":
        assert table.header[1:] == list(models)
        for name, *cells in table.rows:
            for scores, cell in zip(models.values(), cells, strict=True):
                assert shows(
                    cell, scores["metrics"][name], *scores["intervals"].get(name, ())
                ), name
    else:
        title = re.sub(r"^By noise: |, (by|the worst|other) .*", "", table.caption)
        [groups] = [each for each in plain["groups"] if each["model"] == title]
        sizes = {size: plain[size] for size in ("targets", "non-targets")}
        check_groups(table, groups, list(sizes), {**sizes, **models[title]})
        rates = [
            groups["groups"][row[0]]["metrics"]["equal_error_rate"]
            for row in table.rows[:2]
        ]
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
    models, facts = plain.get("models", {"one.csv": plain}), dict(page.facts)
    assert (facts.pop("targets"), facts.pop("non-targets")) == (
        str(plain["targets"]),
        str(plain["non-targets"]),
    )
    rates = {
        name: f"{100 * scores['metrics']['equal_error_rate']:.3g} %"
        for name, scores in models.items()
    }
    alone = number == 1
    assert facts == {
        f"equal error rate{'' if alone else f', {name}'}": rate
        for name, rate in rates.items()
    }
    if alone:
        low, high = (100 * end for end in plain["intervals"]["equal_error_rate"])
        interval = f" (95 % interval {low:.3g} to {high:.3g})"
        ranked = f"ranks a target above a non-target in {100 * plain['metrics']['auroc']:.4g} % of pairs"
        assert (
            f"one.csv has an equal error rate of {rates['one.csv']}{interval}, and {ranked}."
            in page.plain_text
        )
