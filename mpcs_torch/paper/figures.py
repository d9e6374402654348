"""The numbers of the paper's figures: the picks of the case study (Fig. 5), and training with MPCS (Fig. 6)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass

from torch import Tensor

from mpcs_torch.errors import require
from mpcs_torch.functional.inputs.checks import CONFIDENCE_TEXT
from mpcs_torch.learning import SelectionRule
from mpcs_torch.learning.selection import Epoch
from mpcs_torch.metrics.register import BY_NAME
from mpcs_torch.paper.experiments import FinishedRun, experiment_config
from mpcs_torch.paper.published_values import (
    BENCHMARKS,
    CASE_STUDY_ERRORS,
    CASE_STUDY_PICKS,
    FIGURE_5,
    FIGURE_6,
    mean_interval,
)
from mpcs_torch.tables import Table
from mpcs_torch.trainer.config.sections import RunConfig
from mpcs_torch.trainer.records import Record


@dataclass(frozen=True)
class Pick:
    """An epoch and the metrics that rank it first."""

    metrics: tuple[str, ...]
    record: Record
    confusion: Tensor
    """The confusion matrix on the training set, int64 (C, C); rows are true classes."""

    @property
    def epoch(self) -> int:
        """The number of the epoch, counted from 1."""
        return int(self.record["epoch"])

    @property
    def errors(self) -> int:
        """The number of misclassified training samples."""
        return int(self.confusion.sum() - self.confusion.trace())

    @property
    def dangerous(self) -> int:
        """The number of misclassified training samples whose error is not released."""
        return int(self.record["dangerous"])


def pick(records: Sequence[Record], column: str) -> int:
    """Return the first epoch with the best value of a registered metric; NaN is ignored."""
    rule = SelectionRule(column, {column: BY_NAME[column].direction or "min"})
    ranking = rule.ranking([Epoch(int(record["epoch"]), record) for record in records])
    require(ranking, f"column {column} must have a number in some epoch", f"NaN in all {len(records)}")
    return ranking[0].number


def picks(run: FinishedRun) -> list[Pick]:
    """Return each epoch that some metric ranks first; the pick of MPCS comes last."""
    metrics_by_epoch: dict[int, list[str]] = {}
    for metric in (*BENCHMARKS, "mpcs"):
        metrics_by_epoch.setdefault(pick(run.records, metric), []).append(metric)
    epochs = sorted(metrics_by_epoch, key=lambda epoch: ("mpcs" in metrics_by_epoch[epoch], epoch))
    return [Pick(tuple(metrics_by_epoch[epoch]), run.records[epoch - 1], run.confusions[epoch - 1]) for epoch in epochs]


def picks_table(chosen: Sequence[Pick]) -> Table:
    """Return a table of the picks: their metrics on the training set, and their test accuracy."""
    header = ["picked by", "epoch", "accuracy", "errors", "dangerous", "MPCS", "test accuracy"]
    rows = []
    for one in chosen:
        train, test = (f"{100 * one.record[column]:.2f} %" for column in ("accuracy", "test_accuracy"))
        counts = [str(one.errors), str(one.dangerous)]
        rows.append([", ".join(one.metrics), str(one.epoch), train, *counts, f"{one.record['mpcs']:.4f}", test])
    return Table(header, rows)


def figure_5_comparison(run: FinishedRun, text_of: Callable[[Table], str] = Table.markdown) -> str:
    """Compare the picks of a replay with Fig. 5: epochs, confusion matrices and dangerous errors."""
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
            f"(paper: {dangerous}); {equal} of {len(matrix) ** 2} cells of the confusion matrix are those of Fig. 5",
            "",
            text_of(Table(["predicted \\ true", *names], rows)),
        ]
    return "\n".join(lines)


NAMES = ("figure6-plain", "figure6-mpcs")
COLUMNS = {
    "train_accuracy": "accuracy",
    "test_accuracy": "test_accuracy",
    "mpcs": "mpcs_count",
    "dangerous": "dangerous",
}
"""The metrics of the comparison, each with its column of the records."""


def comparison_configs(seed: int | None = None) -> list[RunConfig]:
    """Load the configs of the plain run and the MPCS run, with the published seed or another one."""
    overrides = [[] if seed is None else [f"seed={seed}", f"name={name}-seed{seed:02}"] for name in NAMES]
    return [experiment_config(name, override) for name, override in zip(NAMES, overrides, strict=True)]


def ratios(plain: Sequence[Record], with_mpcs: Sequence[Record]) -> dict[str, float]:
    """Return, for each metric, its sum over the epochs of the MPCS run divided by its sum for the plain run."""
    return {
        name: sum(record[column] for record in with_mpcs) / sum(record[column] for record in plain)
        for name, column in COLUMNS.items()
    }


def ratios_table(ours: Mapping[str, float]) -> Table:
    """Return a table of the ratios of the published seed, next to those of the paper."""
    rows = [[n, f"{ours[n]:.4f}", f"{FIGURE_6[n]:.4f}", f"{ours[n] - FIGURE_6[n]:+.4f}"] for n in COLUMNS]
    return Table(["sum over epochs, MPCS run / plain run", "ours", "paper", "difference"], rows)


def seeds_table(by_seed: Sequence[Mapping[str, float]]) -> Table:
    """Return a table of the ratios over seeds: mean, 95 % interval, and the number of seeds with a better MPCS run."""
    rows = []
    for name in COLUMNS:
        values = [ratio[name] for ratio in by_seed]
        better = sum(value > 1 if "accuracy" in name else value < 1 for value in values)
        runs, *numbers = astuple(mean_interval(values))
        rows.append([name, *(f"{value:.4f}" for value in numbers), f"{better} of {runs}"])
    numbers = ["mean", f"{CONFIDENCE_TEXT} from", "to", "lowest seed", "highest"]
    return Table(["MPCS run / plain run", *numbers, "MPCS run better"], rows)
