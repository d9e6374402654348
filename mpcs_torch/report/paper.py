"""The evaluation section of the paper as files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mpcs_torch.paper.experiments import Reproduction, evaluation_tables, measured_costs
from mpcs_torch.paper.published_values import TABLE_2, MeanOverRuns, more_expensive_than_printed
from mpcs_torch.plots.trends import figure_4
from mpcs_torch.report.render import draw, render

FILES = ("runs.md", "table2.md", "table3.md", "figure4.png", "figure4.svg", "report.html")


def write_evaluation(
    folder: Path, finished: Mapping[str, Reproduction], seeds: Mapping[str, Sequence[MeanOverRuns]]
) -> None:
    """Write the tables, the figure and the page of the evaluation to ``folder``; `FILES` has their names."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = list(evaluation_tables(finished, seeds))
    for name, _, table in tables:
        (folder / f"{name}.md").write_text(table.markdown() + "\n", encoding="utf-8")
    runs = {name: finished[name].run for name in TABLE_2 if name in finished}
    figure = figure_4({f"{name}: {run.config.model}, {run.config.data}": run.records for name, run in runs.items()})
    figure.savefig(folder / "figure4.png", dpi=110)
    figure.savefig(folder / "figure4.svg", metadata={"Date": None})
    render(
        "evaluation",
        folder / "report.html",
        tables=[(title, table) for _, title, table in tables],
        more_expensive=more_expensive_than_printed(measured_costs(finished)),
        figure=draw(
            figure,
            f"Metrics over the epochs, from 0 at the lowest to 1 at the highest, in a panel for each of {len(runs)} "
            "experiments. Accuracy, F1 and MCC rise as the others fall.",
        ),
    )
