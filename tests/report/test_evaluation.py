"""The evaluation section's files: all there, drawn from the runs, nothing beside the page."""

import re
from dataclasses import replace
from pathlib import Path

from mpcs_torch.paper.published_values import Agreement, mean_interval
from mpcs_torch.plots.trends import METRIC_LINES, figure_4
from mpcs_torch.report.run import FILES, write_evaluation
from tests.paper.test_run_tables import toy_run


def test_all_files_are_written_and_hold_the_runs(tmp_path: Path) -> None:
    run = toy_run(tmp_path, time_metrics=True)
    finished = {
        "exp02": replace(run, agreement=Agreement(3, 2, 1, "epoch 2"), seconds=1.25),
        "case-study": replace(run, seconds=0.5),
    }
    write_evaluation(
        tmp_path / "evaluation", finished, {"exp02": [mean_interval([0.1, 0.3])] * 5}
    )
    assert {path.name for path in (tmp_path / "evaluation").iterdir()} == set(FILES)
    lines = (tmp_path / "evaluation" / "runs.md").read_text().splitlines()
    _, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [row[2:] for row in rows] == [["1.2", "1 of 3"], ["0.5", ""]]
    assert "0.200 [0.100, 0.300]" in (tmp_path / "evaluation" / "table2.md").read_text()
    page = (tmp_path / "evaluation" / "report.html").read_text()
    assert page.count("<table") == 3
    assert re.findall(r'src="([^,"]*)', page) == ["data:image/svg+xml;base64"]
    assert not re.findall(r"https?://|<script|<link", page)


def test_figure_4_has_a_panel_for_each_run_with_every_metric_from_0_to_1(
    tmp_path: Path,
) -> None:
    records = toy_run(tmp_path).records
    figure = figure_4(
        dict.fromkeys(("exp01", "exp02", "exp03", "exp04", "exp05", "exp06"), records)
    )
    shown = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title() for axes in shown] == [
        "exp01",
        "exp02",
        "exp03",
        "exp04",
        "exp05",
        "exp06",
    ]
    for line in shown[0].lines:
        assert (min(line.get_ydata()), max(line.get_ydata())) in ((0, 1), (0, 0))
    assert len(shown[0].lines) == len(METRIC_LINES)
