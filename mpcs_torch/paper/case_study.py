"""The case study (Fig. 5): the epoch that each metric picks, and its dangerous errors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from mpcs_torch.paper.experiments import FinishedRun
from mpcs_torch.paper.published import BENCHMARKS, CASE_STUDY_ERRORS, CASE_STUDY_PICKS, FIGURE_5
from mpcs_torch.tables import Table
from mpcs_torch.trainer.records import Record, pick


@dataclass(frozen=True)
class Pick:
    """An epoch, and the metrics that rank it first."""

    metrics: tuple[str, ...]
    record: Record
    confusion: Tensor
    """Training set, int64 (C, C): rows true classes."""

    @property
    def epoch(self) -> int:
        """The number of the epoch, from 1."""
        return int(self.record["epoch"])

    @property
    def errors(self) -> int:
        """Misclassified training samples."""
        return int(self.confusion.sum() - self.confusion.trace())

    @property
    def dangerous(self) -> int:
        """Misclassified training samples whose pair is not released."""
        return int(self.record["dangerous"])


def picks(run: FinishedRun) -> list[Pick]:
    """Return one pick for each epoch that some metric ranks first, with the pick of MPCS last."""
    metrics_by_epoch: dict[int, list[str]] = {}
    for metric in (*BENCHMARKS, "mpcs"):
        metrics_by_epoch.setdefault(pick(run.records, metric), []).append(metric)
    epochs = sorted(metrics_by_epoch, key=lambda epoch: ("mpcs" in metrics_by_epoch[epoch], epoch))
    return [Pick(tuple(metrics_by_epoch[epoch]), run.records[epoch - 1], run.confusions[epoch - 1]) for epoch in epochs]


def picks_table(chosen: Sequence[Pick]) -> Table:
    """Return a table of each pick: its metrics on the training set, and its test accuracy."""
    header = ["picked by", "epoch", "accuracy", "errors", "dangerous", "MPCS", "test accuracy"]
    rows = []
    for one in chosen:
        train, test = (f"{100 * one.record[column]:.2f} %" for column in ("accuracy", "test_accuracy"))
        counts = [str(one.errors), str(one.dangerous)]
        rows.append([", ".join(one.metrics), str(one.epoch), train, *counts, f"{one.record['mpcs']:.4f}", test])
    return Table(header, rows)


def figure_5_comparison(run: FinishedRun, text_of: Callable[[Table], str] = Table.markdown) -> str:
    """Compare the picks of a replay with Fig. 5: epochs, matrices (rows are predictions) and dangerous errors."""
    picked = {metric: pick(run.records, metric) for metric in CASE_STUDY_PICKS}
    lines = [f"{metric} picks epoch {picked[metric]} (paper: {epoch})" for metric, epoch in CASE_STUDY_PICKS.items()]
    for epoch, printed in FIGURE_5.items():
        if epoch > len(run.records):
            continue
        ours = Pick((), run.records[epoch - 1], run.confusions[epoch - 1])
        names, matrix = run.concern.classes, ours.confusion.t().tolist()
        rows = [[name, *map(str, row)] for name, row in zip(names, matrix, strict=True)]
        equal = sum(a == b for row, other in zip(matrix, printed, strict=True) for a, b in zip(row, other, strict=True))
        errors, dangerous = CASE_STUDY_ERRORS[epoch]
        lines += [
            f"\nEpoch {epoch}: {ours.errors} errors (paper: {errors}), {ours.dangerous} dangerous "
            f"(paper: {dangerous}); {equal} of {len(matrix) ** 2} cells of the confusion matrix equal Fig. 5's",
            "",
            text_of(Table(["predicted \\ true", *names], rows)),
        ]
    return "\n".join(lines)
