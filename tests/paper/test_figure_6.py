"""The learning comparison: what its ratios are, and that the published protocol gives them."""

from pathlib import Path

import pytest

from mpcs_torch.paper.experiments import (
    FIGURE_6_COLUMNS,
    comparison_configs,
    ratios,
    ratios_table,
    seeds_table,
)
from mpcs_torch.plots.trends import figure_6
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.result import read_records
from tests.paper.test_run_tables import toy_run


def alike(value: float) -> dict[str, float]:
    return dict.fromkeys([*FIGURE_6_COLUMNS, *FIGURE_6_COLUMNS.values()], value)


def test_ratios_are_of_sums_over_epochs() -> None:
    ours = ratios([alike(1.0), alike(3.0)], [alike(2.0), alike(1.0)])
    assert ours == dict.fromkeys(FIGURE_6_COLUMNS, 0.75)
    assert ratios_table(ours).rows[2] == ["mpcs", "0.7500", "0.9838", "-0.2338"]


def test_seeds_that_speak_for_mpcs_are_counted_by_direction() -> None:
    rows = seeds_table([alike(0.9), alike(1.1), alike(0.8)]).rows
    better = {row[0]: row[-1] for row in rows}
    accuracies = dict.fromkeys(("train_accuracy", "test_accuracy"), "1 of 3")
    assert better == {**accuracies, "mpcs": "2 of 3", "dangerous": "2 of 3"}


def test_the_runs_differ_in_their_loss_scale_alone() -> None:
    plain, with_mpcs = comparison_configs()
    assert (plain.seed, plain.epochs.count, plain.epochs.when) == (3, 300, "before")
    assert with_mpcs.training.loss_scale == "mpcs_count"
    changed = {"training": {**plain.training.model_dump(), "loss_scale": "mpcs_count"}}
    expected = {**plain.model_dump(), **changed, "name": with_mpcs.name}
    assert with_mpcs.model_dump() == expected
    names = [config.name for config in comparison_configs(7)]
    assert names == ["figure6-plain-seed07", "figure6-mpcs-seed07"]


def test_both_runs_begin_as_one_and_part_at_the_second_epoch(
    tmp_path: Path, data_root: Path
) -> None:
    losses = []
    for config in comparison_configs():
        epochs = config.epochs.model_copy(update={"count": 3})
        short = config.model_copy(update={"epochs": epochs})
        run_in_folder(short, short.data.load(data_root), tmp_path / short.name)
        records = read_records(tmp_path / short.name / "records.csv")
        losses.append([record["cross_entropy"] for record in records])
    assert losses[0][0] == losses[1][0]
    assert losses[0][1:] != pytest.approx(losses[1][1:], rel=1e-9)


def test_the_figure_has_four_panels_with_both_runs(tmp_path: Path) -> None:
    records = toy_run(tmp_path).records
    figure = figure_6(records, records)
    assert [len(axes.lines) for axes in figure.axes] == [2, 2, 2, 2]
