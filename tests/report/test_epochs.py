"""The report of epochs that a `CheckpointSelector` recorded, and of the seeds of a setting."""

import base64
import json
import re
from math import nan
from pathlib import Path
from statistics import fmean, stdev

import pytest

from tests.cli.selector_folders import EPOCHS, train, train_seeds
from tests.cli.shell import run
from tests.cli.test_select import T_QUANTILES
from tests.report.page import Page
from tests.report.test_hostile_names import NAMES, check
from tests.report.test_run import trained


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def report(*arguments: object) -> Page:
    assert run("report", *arguments, "--out", "page.html", "--overwrite") == 0
    return Page(Path("page.html"))


def figures(page: Page) -> dict[str, str]:
    """Return the SVG of each figure, by the metric that it shows."""
    images = [attributes for tag, attributes in page.elements if tag == "img"]
    svgs = [
        base64.b64decode(str(image["src"]).partition(",")[2]).decode() for image in images
    ]
    return {
        str(image["alt"]).partition(" over")[0]: svg
        for image, svg in zip(images, svgs, strict=True)
    }


def test_the_page_of_a_folder_begins_with_the_pick_and_why() -> None:
    selector = train(Path("skin"))
    assert run("report", "skin") == 0
    page = Page(Path("skin/report.html"))
    title = "skin: epoch 1 is picked, lowest missed (5) among epochs with accuracy within 0.01 of its best."
    assert title in page.plain_text
    [table] = page.tables
    expected = selector.explain()
    assert (table.header, table.rows) == (
        [*expected.header],
        [[*row] for row in expected.rows],
    )
    text = " ".join(page.plain_text.split())
    assert "this page cannot show test samples" in text
    assert "`mpcs score`" in text
    assert "Best checkpoint: epoch 1, skin/epoch-00001.pt" in text
    assert "E5: the epoch was picked from 3 by missed" in text
    assert "mpcs report skin" in text


def test_each_metric_is_drawn_over_the_epochs_with_the_picked_epoch() -> None:
    train(Path("skin"))
    page = report("skin")
    by_metric = figures(page)
    assert [*by_metric] == ["missed", "accuracy", "loss", "slow"]
    assert all("picked: epoch 1" in svg for svg in by_metric.values())
    assert (
        page.alts[0] == "missed over the epochs. skin: 9 at the first epoch, 3 at the last."
    )


def test_a_metric_without_finite_values_is_not_drawn() -> None:
    train(Path("skin"), [{**EPOCHS[0], "loss": nan}, {**EPOCHS[1], "loss": nan}])
    assert "loss" not in figures(report("skin"))


def test_without_a_pick_the_page_says_so() -> None:
    train(Path("skin"), [{"missed": nan, "accuracy": nan}] * 2)
    text = report("skin").plain_text
    assert "skin: no epoch is picked." in text
    assert "missed is NaN in each epoch" in text
    assert "E5" not in text


def test_of_a_repeated_epoch_the_picked_values_are_drawn() -> None:
    train(Path("skin"), EPOCHS[:2])
    selector = train(Path("skin"), [EPOCHS[0], {**EPOCHS[1], "missed": 90.0}], resume=True)
    assert [epoch.number for epoch in selector.epochs] == [0, 1, 1]
    assert (
        report("skin").alts[0]
        == "missed over the epochs. skin: 9 at the first epoch, 5 at the last."
    )


def test_seeds_are_summarized_and_all_of_them_are_drawn() -> None:
    missed = [5.0, 7.0, 6.0, 4.0, 8.0]
    train_seeds(Path("runs"), missed)
    assert run("report", "runs") == 0
    page = Page(Path("runs/report.html"))
    margin = T_QUANTILES[4] * stdev(missed) / 5**0.5
    mean = f"{fmean(missed):g} [{6 - margin:.3g}, {6 + margin:.3g}]"
    assert (
        f"runs/seed-*: missed is {mean} at the picked epoch (mean of 5 seeds)."
        in page.plain_text
    )
    summary, picks = page.tables
    assert [row[:3] for row in summary.rows] == [["runs/seed-*", "5", mean]]
    assert [row[:3] for row in picks.rows] == [
        [f"runs/seed-{i}", "1", f"{missed[i]:g}"] for i in range(5)
    ]
    svg = figures(page)["missed"]
    assert len(re.findall(r"picked: epoch of each seed", svg)) == 1
    assert page.alts[0].count(" at the last") == 5


def test_the_page_says_what_is_not_pooled() -> None:
    train_seeds(Path("runs"), [5, 6, 7])
    train(Path("runs/other"))
    text = report("runs", "--quiet").plain_text
    assert "runs/seed-*: 3 seeds of one setting" in text
    assert "Not pooled as seeds: runs/other: " in text


def test_settings_are_compared_in_one_row_each() -> None:
    train_seeds(Path("plain"), [5, 6, 7])
    train_seeds(Path("margin"), [4, 4, 3])
    page = report("plain", "margin")
    summary, picks = page.tables
    assert [row[:2] for row in summary.rows] == [
        ["plain/seed-*", "3"],
        ["margin/seed-*", "3"],
    ]
    assert len(picks.rows) == 6


def test_folders_that_are_no_seeds_are_compared_without_means() -> None:
    train(Path("plain"))
    train(Path("margin"), [{**EPOCHS[0], "missed": 2}])
    [picks] = report("plain", "margin").tables
    assert [row[:3] for row in picks.rows] == [["plain", "1", "5"], ["margin", "0", "2"]]


def test_seeds_of_a_run_are_summarized_by_their_test_metrics() -> None:
    selector = {"by": "cross_entropy", "keep_last": True}
    folders = [
        trained(Path(f"runs/toy-{seed}"), seed=seed, selector=selector)
        for seed in (1, 2, 3)
    ]
    page = report("runs")
    results = [json.loads((folder / "result.json").read_text()) for folder in folders]
    dangerous = [result["values"]["test"]["dangerous"] for result in results]
    assert len(set(dangerous)) > 1, "else there is no interval"
    margin = T_QUANTILES[2] * stdev(dangerous) / 3**0.5
    summary, picks = page.tables
    assert summary.caption == "Metrics on test data at the picked epochs"
    row = dict(zip(summary.header, summary.rows[0], strict=True))
    mean = fmean(dangerous)
    assert row["seeds"] == "3"
    assert row["dangerous"].startswith(
        f"{mean:.6g} [{mean - margin:.3g}, {mean + margin:.3g}]"
    )
    assert [row[1] for row in picks.rows] == [str(result["epoch"]) for result in results]
    (folders[1] / "result.json").unlink()
    assert run("report", "runs", "--out", "page.html", "--overwrite") == 2


def test_names_in_a_manifest_are_no_markup() -> None:
    train(
        Path("skin"),
        [
            {**EPOCHS[0], **dict.fromkeys(NAMES, 0.5)},
            {**EPOCHS[1], **dict.fromkeys(NAMES, 0.7)},
        ],
    )
    page = report("skin")
    check(page)
    assert all(name in page.text for name in NAMES)
