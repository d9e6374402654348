"""The report of a case study, and the evaluation section of the paper as files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mpcs_torch.paper.experiments import Agreement, FinishedRun, Reproduction, evaluation_tables, measured_costs
from mpcs_torch.paper.figures import pick, picks, picks_table
from mpcs_torch.paper.published import BENCHMARKS, RECORD_FILES, TABLE_2
from mpcs_torch.paper.tables import MeanOverRuns, more_expensive_than_printed, table_2_row
from mpcs_torch.plots.trends import figure_4, trends
from mpcs_torch.report.figures import draw_confusion
from mpcs_torch.report.render import draw, render


def write_report(run: FinishedRun, path: Path, agreement: Agreement | None = None) -> None:
    """Write Table II for the experiment, the picks of all metrics, two of their confusion matrices, and the trends."""
    chosen, names = picks(run), list(run.concern.classes)
    by_epoch = {one.epoch: one for one in chosen}
    by_accuracy, by_mpcs = (by_epoch[pick(run.records, metric)] for metric in ("accuracy", "mpcs"))
    drawn = {
        f"{one.epoch}, picked by {by}": one.confusion for by, one in (("accuracy", by_accuracy), ("MPCS", by_mpcs))
    }
    page = render(
        "case_study",
        run=run,
        benchmarks=", ".join(BENCHMARKS),
        by_accuracy=by_accuracy,
        by_mpcs=by_mpcs,
        picks=picks_table(chosen),
        table_2=table_2_row(run.config.name, run.records) if run.config.name in TABLE_2 else None,
        agreement=agreement,
        is_replay=run.config.name in RECORD_FILES,
        released_pairs=int(run.concern.released().sum()),
        drawn=draw(
            trends(run.records, {"accuracy": by_accuracy.epoch, "MPCS": by_mpcs.epoch}),
            f"Accuracy, cross entropy and MPCS over {len(run.records)} epochs. Accuracy picks epoch "
            f"{by_accuracy.epoch}, MPCS picks epoch {by_mpcs.epoch}.",
        ),
        matrices=[
            draw_confusion(confusion, run.concern, names, f"Confusion matrix of epoch {title}")
            for title, confusion in drawn.items()
        ],
    )
    path.write_text(page, encoding="utf-8")


FILES = (
    "runs.md",
    "table2.md",
    "table3.md",
    "figure4.png",
    "figure4.svg",
    "report.html",
)


def write_evaluation(
    folder: Path, finished: Mapping[str, Reproduction], seeds: Mapping[str, Sequence[MeanOverRuns]]
) -> None:
    """Write `FILES` to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = list(evaluation_tables(finished, seeds))
    for name, _, table in tables:
        (folder / f"{name}.md").write_text(table.markdown() + "\n", encoding="utf-8")
    runs = {name: finished[name].run for name in TABLE_2 if name in finished}
    figure = figure_4({f"{name}: {run.config.model}, {run.config.data}": run.records for name, run in runs.items()})
    figure.savefig(folder / "figure4.png", dpi=110)
    figure.savefig(folder / "figure4.svg", metadata={"Date": None})
    page = render(
        "evaluation",
        tables=[(title, table) for _, title, table in tables],
        more_expensive=more_expensive_than_printed(measured_costs(finished)),
        figure=draw(
            figure,
            f"Metrics over the epochs, from 0 at the lowest to 1 at the highest, in a panel for each of {len(runs)} "
            "experiments. Accuracy, F1 and MCC rise as the others fall.",
        ),
    )
    (folder / "report.html").write_text(page, encoding="utf-8")
