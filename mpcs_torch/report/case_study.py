"""The report of a run: which epoch each metric picks."""

from pathlib import Path

from mpcs_torch.paper.case_study import Pick, picks, picks_table
from mpcs_torch.paper.experiments import FinishedRun
from mpcs_torch.paper.published import BENCHMARKS
from mpcs_torch.plots.trends import trends
from mpcs_torch.report.confusions import draw_confusion
from mpcs_torch.report.render import draw, render
from mpcs_torch.trainer.records import pick


def write_report(run: FinishedRun, path: Path) -> None:
    """Write the trends, the confusion matrices of the picks of accuracy and MPCS, and a table of all picks."""
    chosen = picks(run)
    by_accuracy = _of_epoch(chosen, pick(run.records, "accuracy"))
    by_mpcs = _of_epoch(chosen, pick(run.records, "mpcs"))
    released = run.concern.released()
    names = list(run.concern.classes)
    page = render(
        "case_study",
        run=run,
        benchmarks=", ".join(BENCHMARKS),
        by_accuracy=by_accuracy,
        by_mpcs=by_mpcs,
        picks=picks_table(chosen),
        released_pairs=int(released.sum()),
        drawn=draw(
            trends(run.records, {"accuracy": by_accuracy.epoch, "MPCS": by_mpcs.epoch}),
            f"Accuracy, cross entropy and MPCS over {len(run.records)} epochs. Accuracy picks epoch "
            f"{by_accuracy.epoch}, MPCS picks epoch {by_mpcs.epoch}.",
        ),
        matrices=[
            draw_confusion(
                one.confusion, run.concern, names, f"Confusion matrix of epoch {one.epoch}, picked by {metric}"
            )
            for metric, one in (("accuracy", by_accuracy), ("MPCS", by_mpcs))
        ],
    )
    path.write_text(page, encoding="utf-8")


def _of_epoch(chosen: list[Pick], epoch: int) -> Pick:
    return next(chosen_one for chosen_one in chosen if chosen_one.epoch == epoch)
