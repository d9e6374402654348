"""The report of a run: which epoch each metric picks."""

from pathlib import Path

from mpcs_torch.paper.case_study import Pick, picks, picks_table
from mpcs_torch.paper.experiments import FinishedRun
from mpcs_torch.paper.published import BENCHMARKS
from mpcs_torch.plots import confusion_matrix
from mpcs_torch.plots.trends import trends
from mpcs_torch.report.render import data_uri, render
from mpcs_torch.trainer.records import pick


def write_report(run: FinishedRun, path: Path) -> None:
    """Write the trends, the confusion matrices of the picks of accuracy and MPCS, and a table of all picks."""
    chosen = picks(run)
    by_accuracy = _of_epoch(chosen, pick(run.records, "accuracy"))
    by_mpcs = _of_epoch(chosen, pick(run.records, "mpcs"))
    released = run.concern.released()
    names = run.concern.class_names
    page = render(
        "case_study",
        run=run,
        benchmarks=", ".join(BENCHMARKS),
        by_accuracy=by_accuracy,
        by_mpcs=by_mpcs,
        picks=picks_table(chosen),
        released_pairs=int(released.sum()),
        trends=data_uri(trends(run.records, [by_accuracy.epoch, by_mpcs.epoch])),
        matrices=[
            (title, data_uri(confusion_matrix(chosen_one.confusion, released, names, title)))
            for title, chosen_one in (
                (f"Picked by accuracy: epoch {by_accuracy.epoch}, {by_accuracy.dangerous} dangerous", by_accuracy),
                (f"Picked by MPCS: epoch {by_mpcs.epoch}, {by_mpcs.dangerous} dangerous", by_mpcs),
            )
        ],
    )
    path.write_text(page, encoding="utf-8")


def _of_epoch(chosen: list[Pick], epoch: int) -> Pick:
    return next(chosen_one for chosen_one in chosen if chosen_one.epoch == epoch)
