"""The case study (Fig. 5): the turn that each metric picks, and its dangerous errors."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from mpcs_torch.paper.experiments import FinishedRun
from mpcs_torch.paper.published import BENCHMARKS, CASE_STUDY_ERRORS, CASE_STUDY_PICKS, FIGURE_5
from mpcs_torch.tables import Table
from mpcs_torch.trainer.records import Record, pick


@dataclass(frozen=True)
class Pick:
    """A turn, and the metrics that rank it first."""

    metrics: tuple[str, ...]
    record: Record
    confusion: Tensor
    """Training set, int64 (C, C): rows true classes."""

    @property
    def turn(self) -> int:
        """The number of the turn, from 1."""
        return int(self.record["turn"])

    @property
    def errors(self) -> int:
        """Misclassified training samples."""
        return int(self.confusion.sum() - self.confusion.trace())

    @property
    def dangerous(self) -> int:
        """Misclassified training samples whose pair is not released."""
        return int(self.record["dangerous"])


def picks(run: FinishedRun) -> list[Pick]:
    """Return one pick for each turn that some metric ranks first, with the pick of MPCS last."""
    metrics_by_turn: dict[int, list[str]] = {}
    for metric in (*BENCHMARKS, "mpcs"):
        metrics_by_turn.setdefault(pick(run.records, metric), []).append(metric)
    turns = sorted(metrics_by_turn, key=lambda turn: ("mpcs" in metrics_by_turn[turn], turn))
    return [Pick(tuple(metrics_by_turn[turn]), run.records[turn - 1], run.confusions[turn - 1]) for turn in turns]


def picks_table(chosen: Sequence[Pick]) -> Table:
    """Return a table of each pick: its metrics on the training set, and its test accuracy."""
    header = ["picked by", "turn", "accuracy", "errors", "dangerous", "MPCS", "test accuracy"]
    rows = [
        [
            ", ".join(chosen_one.metrics),
            str(chosen_one.turn),
            f"{chosen_one.record['accuracy']:.2%}",
            str(chosen_one.errors),
            str(chosen_one.dangerous),
            f"{chosen_one.record['mpcs']:.4f}",
            f"{chosen_one.record['test_accuracy']:.2%}",
        ]
        for chosen_one in chosen
    ]
    return Table(header, rows)


def figure_5_comparison(run: FinishedRun) -> str:
    """Compare the picks of a replay with Fig. 5: turns, matrices (rows are predictions) and dangerous errors."""
    lines = []
    for metric, published in CASE_STUDY_PICKS.items():
        lines.append(f"{metric} picks turn {pick(run.records, metric)} (paper: {published})")
    for turn, printed in FIGURE_5.items():
        if turn > len(run.records):
            continue
        ours = Pick((), run.records[turn - 1], run.confusions[turn - 1])
        matrix = ours.confusion.t().tolist()
        equal = sum(a == b for row, other in zip(matrix, printed, strict=True) for a, b in zip(row, other, strict=True))
        errors, dangerous = CASE_STUDY_ERRORS[turn]
        lines += [
            f"\nTurn {turn}: {ours.errors} errors (paper: {errors}), {ours.dangerous} dangerous (paper: {dangerous}); "
            f"{equal} of {len(matrix) ** 2} cells of the confusion matrix equal Fig. 5's",
            "",
            _labelled(matrix, run.concern.class_names).markdown(),
        ]
    return "\n".join(lines)


def _labelled(matrix: list[list[int]], names: Sequence[str]) -> Table:
    rows = [[name, *map(str, row)] for name, row in zip(names, matrix, strict=True)]
    return Table(["predicted \\ true", *names], rows)
