"""Every number of the report of runs, worked out again in plain Python from predictions, records and results."""

import csv
import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from mpcs_torch.report.run import write_run_report
from mpcs_torch.trainer.result import TrainedRun
from tests.report.page import Page, PageTable
from tests.report.rounded import is_rounded, numbers_in, shows
from tests.report.test_run import opened, trained

WEIGHTS = [
    [(3 * true + 5 * predicted) % 8 / 4 + 0.25 for predicted in range(10)]
    for true in range(10)
]
DANGEROUS_FROM = 1.25


def is_dangerous(true: int, predicted: int) -> bool:
    return WEIGHTS[true][predicted] >= DANGEROUS_FROM


def kind_of(true: int, predicted: int) -> str:
    """Return what tables call an error."""
    if is_dangerous(true, predicted):
        return "dangerous"
    return f"costs {WEIGHTS[true][predicted]:g}"


@dataclass
class Counted:
    """The test samples of an epoch, each as the model decides it."""

    labels: list[int]
    decisions: list[int]
    confidences: list[float]

    @classmethod
    def of(cls, run: TrainedRun, epoch: int) -> "Counted":
        logits = run.logits(run.test, epoch)
        assert logits is not None
        rows = [[math.exp(value) for value in row] for row in logits.tolist()]
        confidences = [max(row) / sum(row) for row in rows]
        return cls(
            run.test.labels.tolist(), [row.index(max(row)) for row in rows], confidences
        )

    @property
    def confused(self) -> Counter[tuple[int, int]]:
        return Counter(
            (y, d) for y, d in zip(self.labels, self.decisions, strict=True) if y != d
        )

    @property
    def errors(self) -> int:
        return self.confused.total()

    @property
    def dangerous(self) -> int:
        return sum(count for pair, count in self.confused.items() if is_dangerous(*pair))

    @property
    def costs(self) -> dict[tuple[int, int], float]:
        return {(y, d): count * WEIGHTS[y][d] for (y, d), count in self.confused.items()}

    def share_of_costs(self, pair: tuple[int, int]) -> str:
        return f"{100 * self.costs.get(pair, 0) / sum(self.costs.values()):.1f} %"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[TrainedRun]:
    """Two runs with all checkpoints, in which errors are many, and half of them dangerous."""
    root = tmp_path_factory.mktemp("runs")
    concern = {"weights": WEIGHTS, "dangerous": DANGEROUS_FROM}
    settings = {
        "score": {"concern": concern},
        "selector": {"by": "cross_entropy", "keep_every": 1},
    }
    return [opened(trained(root / f"run{seed}", seed=seed, **settings)) for seed in (5, 6)]


@pytest.fixture(scope="module")
def page(runs: list[TrainedRun], tmp_path_factory: pytest.TempPathFactory) -> Page:
    path = tmp_path_factory.mktemp("page") / "r.html"
    write_run_report(runs[:1], path, data_root=Path("data"))
    return Page(path)


def picked(runs: list[TrainedRun]) -> Counted:
    """Count the decisions of the picked epoch of the first run."""
    return Counted.of(runs[0], runs[0].result.epoch)


def table_of(page: Page, caption: str) -> PageTable:
    [table] = [table for table in page.tables if table.caption.startswith(caption)]
    return table


def test_the_facts_at_the_top_are_counts_of_test_samples(
    runs: list[TrainedRun], page: Page
) -> None:
    counted = picked(runs)
    assert 0 < counted.dangerous < counted.errors < len(counted.labels), (
        "else the counts are not told apart"
    )
    facts, rows = dict(page.facts), len(counted.labels)
    for title, count in (
        ("wrong decisions", counted.errors),
        ("dangerous errors", counted.dangerous),
    ):
        assert facts.pop(title).startswith(
            f"{count} of {rows} rows {100 * count / rows:.3g} % ["
        )
    relative = facts.pop("cost of errors", "")
    assert facts == {"epochs": "4", "classes": "10", "test samples": str(rows)}, relative


def test_the_page_begins_with_the_dangerous_errors_of_the_classes(
    runs: list[TrainedRun], page: Page
) -> None:
    counted = picked(runs)
    told = page.plain_text.split(
        f"Epoch {runs[0].result.epoch} of run5 makes dangerous errors on "
    )[1]
    of_classes = re.findall(r"(\d+) of (\d+) of class (\d) \(", told.split(" in all")[0])
    assert len(of_classes) == 3, "the others are not told"
    for number, rows, label in of_classes:
        assert int(rows) == counted.labels.count(int(label))
        assert int(number) == sum(
            count
            for (true, predicted), count in counted.confused.items()
            if true == int(label) and is_dangerous(true, predicted)
        )
    assert f"; {counted.dangerous} of {len(counted.labels)} test samples (" in told


def test_the_verdict_names_the_dangerous_errors_of_both_picks(
    runs: list[TrainedRun], page: Page
) -> None:
    [told] = re.findall(
        r"Epoch (\d) makes (\d+) dangerous test errors; accuracy would have picked (.*?)\.(?:Why|The last|\n)",
        page.text,
    )
    accuracy = {int(record["epoch"]): record["accuracy"] for record in runs[0].records}
    other = max(accuracy, key=lambda epoch: (accuracy[epoch], -epoch))
    assert (int(told[0]), int(told[1])) == (
        runs[0].result.epoch,
        picked(runs).dangerous,
    )
    assert other != runs[0].result.epoch, "else half of the sentence is not tested"
    assert re.fullmatch(
        rf"epoch {other}, which (also )?makes {Counted.of(runs[0], other).dangerous}",
        told[2],
    )


def test_the_costliest_confusions_are_listed_by_their_cost_in_the_worse_epoch(
    runs: list[TrainedRun], page: Page
) -> None:
    table = table_of(page, "Most expensive first")
    # Each of two epochs has a column of counts and one of shares.
    first, _, second, _ = table.header[1:5]
    one, other = [Counted.of(runs[0], int(numbers_in(name)[0])) for name in (first, second)]
    assert table.header[0] == "true → predicted"
    assert table.header[5:] == ["kind", "concern"]
    shown = []
    for pair_shown, count, share, other_count, other_share, kind, concern in table.rows:
        true, predicted = map(int, pair_shown.split(" → "))
        pair = true, predicted
        shown.append(pair)
        assert int(count) == one.confused[pair]
        assert int(other_count) == other.confused[pair]
        assert share == one.share_of_costs(pair)
        assert other_share == other.share_of_costs(pair)
        assert float(concern) == WEIGHTS[true][predicted]
        assert kind.endswith(kind_of(true, predicted))
    highest = {
        pair: max(one.costs.get(pair, 0), other.costs.get(pair, 0))
        for pair in one.costs | other.costs
    }
    costs = [highest.pop(pair) for pair in shown]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] >= max(highest.values()), "no other confusion costs more"


def test_the_worst_samples_have_the_highest_confidence_times_concern(
    runs: list[TrainedRun], page: Page
) -> None:
    counted = picked(runs)
    costs = {
        place: sure * WEIGHTS[label][decision]
        for place, (label, decision, sure) in enumerate(
            zip(counted.labels, counted.decisions, counted.confidences, strict=True)
        )
        if label != decision
    }
    worst = sorted(costs, key=lambda place: -costs[place])[:12]
    by_confidence = sorted(costs, key=lambda place: -counted.confidences[place])[:12]
    assert set(worst) != set(by_confidence), (
        "else the weights of the concern are not tested"
    )
    expected = []
    for place in worst:
        label, decision = counted.labels[place], counted.decisions[place]
        expected.append(
            [
                str(place),
                str(label),
                str(decision),
                f"{100 * counted.confidences[place]:.1f} %",
                kind_of(label, decision),
                f"{WEIGHTS[label][decision]:g}",
            ]
        )
    rows = table_of(page, "Wrong decisions with the highest confidence times concern").rows
    assert [[" ".join(cell.split()) for cell in row] for row in rows] == expected
    assert [
        alt
        for alt in page.alts
        if f"The {len(worst)} samples of the table: {worst[0]}: " in alt
    ]


def test_the_picks_are_the_best_rows_of_the_records(
    runs: list[TrainedRun], page: Page
) -> None:
    table = table_of(page, "The epoch that each metric ranks first")
    with (runs[0].folder / "records.csv").open() as file:
        records = {
            row["epoch"]: {name: float(value) for name, value in row.items()}
            for row in csv.DictReader(file)
        }
    best = {"picked": str(runs[0].result.epoch)}
    for metric in ("accuracy", "cross_entropy", "mpcs", "dangerous"):
        sign = -1 if metric == "accuracy" else 1
        best[metric] = min(
            records, key=lambda epoch: (sign * records[epoch][metric], int(epoch))
        )
    assert {
        metric: epoch for names, epoch, *_ in table.rows for metric in names.split(", ")
    } == best
    assert len({epoch for _, epoch, *_ in table.rows}) == len(table.rows) > 1
    for _, epoch, *values in table.rows:
        for name, value in zip(table.header[2:], values, strict=True):
            assert is_rounded(value, records[epoch][name]), name


def test_the_metrics_of_each_split_are_those_of_the_result(
    runs: list[TrainedRun], page: Page
) -> None:
    table = table_of(page, "Metrics of")
    values = json.loads((runs[0].folder / "result.json").read_text())["values"]
    assert [row[0] for row in table.rows] == list(values["test"])
    for name, *cells in table.rows:
        for split, cell in zip(table.header[1:], cells, strict=True):
            assert is_rounded(cell, values[split][name])
    counted = picked(runs)
    assert values["test"]["dangerous"] == counted.dangerous
    assert values["test"]["accuracy"] == pytest.approx(
        1 - counted.errors / len(counted.labels)
    )


def test_figures_are_described_by_the_numbers_that_they_show(
    runs: list[TrainedRun], page: Page
) -> None:
    first, last = runs[0].records[0], runs[0].records[-1]
    for column in ("accuracy", "cross_entropy", "mpcs", "dangerous"):
        [told] = [alt for alt in page.alts if alt.startswith(f"{column} over the epochs.")]
        assert shows(told.split("run5: ")[1].rstrip("."), first[column], last[column])
    counted = picked(runs)
    [told] = [
        alt
        for alt in page.alts
        if alt.startswith(f"Confusion matrix of epoch {runs[0].result.epoch}")
    ]
    most = max(counted.confused.values())
    assert (
        f": {len(counted.labels)} samples, {counted.errors} errors, {counted.dangerous} of them dangerous."
        in told
    )
    [(true, predicted, count)] = re.findall(
        r"Most often, (\d) is taken for (\d): (\d+) times", told
    )
    assert counted.confused[int(true), int(predicted)] == int(count) == most
    [told] = [
        alt for alt in page.alts if alt.startswith("Dangerous errors per decided sample")
    ]
    # The number of each epoch stands before its share.
    numbers = list[float]()
    for epoch in map(int, re.findall(r"epoch (\d)", told)):
        dangerous = Counted.of(runs[0], epoch).dangerous
        numbers += [epoch, 100 * dangerous / len(counted.labels)]
    assert shows(told.split("Without referral: ")[1].rstrip("."), *numbers)


def test_runs_are_counted_and_compared_on_the_same_samples(
    runs: list[TrainedRun], tmp_path: Path
) -> None:
    write_run_report(runs, tmp_path / "r.html", data_root=Path("data"))
    page = Page(tmp_path / "r.html")
    counted = {run.config.name: Counted.of(run, run.result.epoch) for run in runs}
    picked = table_of(page, "Picked epochs")
    assert picked.header[:5] == [
        "run",
        "picked epoch",
        "test samples",
        "errors",
        "dangerous errors",
    ]
    assert picked.header[5:] == ["accuracy", "cross_entropy", "mpcs"], (
        "dangerous errors have one column"
    )
    for run, row in zip(runs, picked.rows, strict=True):
        of_run = counted[run.config.name]
        assert row[:5] == [
            run.config.name,
            str(run.result.epoch),
            str(len(of_run.labels)),
            str(of_run.errors),
            str(of_run.dangerous),
        ]
        assert all(
            is_rounded(cell, run.result.values["test"][name])
            for name, cell in zip(picked.header[5:], row[5:], strict=True)
        )
    compared = table_of(page, "Differences of each pair of runs")
    wrong = {"rate of dangerous errors": "dangerous", "rate of wrong decisions": "errors"}
    assert [row[0] for row in compared.rows] == list(wrong)
    for measure, first, second, difference, interval, p_value, corrected in compared.rows:
        rates = [
            getattr(counted[name], wrong[measure]) / len(counted[name].labels)
            for name in (first, second)
        ]
        assert is_rounded(difference, rates[1] - rates[0])
        low, high = map(float, interval.split(" to "))
        assert low < float(difference) < high
        assert 0 < float(p_value) <= float(corrected) <= 1
