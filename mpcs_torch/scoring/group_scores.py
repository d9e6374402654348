"""The metrics of a classifier for each group of rows: which is the worst, and how far apart they are."""

from math import inf, isfinite, isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from mpcs_torch.errors import quoted, shown
from mpcs_torch.scoring.chosen_metrics import ChosenMetrics, inputs_of
from mpcs_torch.scoring.chunks import Chunk, PredictionsError
from mpcs_torch.scoring.scores import Scores
from mpcs_torch.tables import Table

if TYPE_CHECKING:  # torchmetrics takes seconds to import: it is loaded when predictions are scored
    from mpcs_torch.metrics.by_name import Direction
    from mpcs_torch.metrics.metric_set import MetricSet

MOST_SHOWN = 40
"""The number of groups above which a table shows only the worst ones."""
MOST_COLUMNS = 6
"""The number of metrics above which a table, for a terminal, shows only the main ones."""
IN_TABLES = (
    *("misclassification_rate", "dangerous_rate", "balanced_error_rate", "mpcs", "expected_concern", "cross_entropy"),
    *("soft_precision_macro", "soft_recall_macro", "soft_f1_macro", "soft_f1_micro", "soft_kl_divergence"),
)
"""The main metrics, of hard and of soft labels."""
RANKED_BY = ("mpcs", "misclassification_rate", "soft_f1_macro")
"""The first of these that is measured ranks the groups: others may be undefined for a group that lacks a class."""
NUMBERS = 2**27
"""The most numbers (1 GiB) that the states of all groups may hold."""
FEWEST_NUMBERS = 10**5
"""About how many numbers the states of a group hold if there are few classes; if many, the square of their number."""


class GroupScores(NamedTuple):
    """The metrics of a model for each group of a column."""

    model: str
    column: str
    pooled: Scores
    """Of all rows."""
    rows: dict[str, int]
    """By group."""
    values: dict[str, dict[str, float]]
    """By group and metric."""
    directions: "dict[str, Direction | None]"
    """By metric: which values are better."""

    @property
    def ranked_by(self) -> str:
        """The metric by which groups are ranked."""
        named = next((name for name in RANKED_BY if name in self.directions), None)
        directed = (name for name, direction in self.directions.items() if direction is not None)
        return named or next(directed, next(iter(self.directions)))

    def order(self) -> str:
        """Say how the groups are ordered."""
        return f"the worst {self.ranked_by} first"

    def worst_first(self) -> list[str]:
        """Return the groups in the order of `ranked_by`, those without a value last."""
        name = self.ranked_by
        sign = 1 if self.directions[name] == "max" else -1

        def key(group: str) -> float:
            value = self.values[group][name]
            return inf if isnan(value) else sign * value

        return sorted(self.values, key=key)

    def summaries(self) -> dict[str, dict[str, float]]:
        """Return the worst value, the mean and the spread (highest minus lowest) of each metric over the groups.

        Groups without a value are left out, such as those without samples of a class. Counts, which grow with a group,
        have no summaries, and metrics of which neither high nor low values are better have no worst value.
        """
        found: dict[str, dict[str, float]] = {"worst": {}, "mean of groups": {}, "spread": {}}
        for name, direction in self.directions.items():
            held = [values[name] for values in self.values.values() if not isnan(values[name])] or [nan]
            worst = {"min": max(held), "max": min(held), None: nan}[direction]
            spread = max(held) - min(held) if isfinite(max(held)) else max(held)
            for title, value in zip(found, (worst, sum(held) / len(held), spread), strict=True):
                found[title][name] = value
        return found

    def table(self) -> Table:
        """Return a row for each group, the worst first, then the worst values, the mean, the spread, and all rows."""
        metrics = list(self.directions)
        if len(metrics) > MOST_COLUMNS:
            metrics = [name for name in IN_TABLES if name in self.directions]
        metrics = metrics or list(self.directions)[:MOST_COLUMNS]
        groups = self.worst_first()
        rows = [
            [shown(name, 40), str(self.rows[name]), *(_cell(self.values[name][metric]) for metric in metrics)]
            for name in groups[:MOST_SHOWN]
        ]
        if len(groups) > MOST_SHOWN:
            rows.append([f"and {len(groups) - MOST_SHOWN} others", *[""] * (1 + len(metrics))])
        for title, summary in self.summaries().items():
            rows.append([title, "", *(_cell(summary[metric]) for metric in metrics)])
        rows.append(["pooled", str(self.pooled.rows), *(_cell(self.pooled.values[metric]) for metric in metrics)])
        return Table([shown(self.column, 40), "rows", *metrics], rows)


class GroupedMetrics:
    """Measure each group of a column while the rows of a file are scored."""

    def __init__(self, path: Path, column: str, chosen: ChosenMetrics) -> None:
        self._path, self._column, self._chosen = path, column, chosen
        self._most = NUMBERS // max(FEWEST_NUMBERS, chosen.num_classes**2)
        self._sets: dict[int, MetricSet] = {}
        self._rows = dict[int, int]()

    def add(self, chunk: Chunk, codes: Tensor) -> None:
        """Add the next rows, and the code of the group of each.

        Raises:
            PredictionsError: If there are too many groups.
        """
        ordered, order = codes.sort(stable=True)
        present, counts = ordered.unique_consecutive(return_counts=True)  # type: ignore[no-untyped-call]
        for code, rows in zip(present.tolist(), order.tensor_split(counts.cumsum(0)[:-1]), strict=True):
            metrics = self._sets.get(code) or self._made(code)
            metrics.update(inputs_of(chunk.scores[rows], metrics.takes), chunk.target[rows])
            self._rows[code] += len(rows)

    def scores(self, model: str, names: list[str], pooled: Scores) -> GroupScores:
        """Return what was measured of a model whose groups have names."""
        values = {names[code]: metrics.results().values for code, metrics in self._sets.items()}
        directions = {entry.name: entry.direction for entry in self._chosen.entries if not entry.is_count}
        directions = directions or {entry.name: entry.direction for entry in self._chosen.entries}
        rows = {names[code]: number for code, number in self._rows.items()}
        return GroupScores(model, self._column, pooled, rows, values, directions)

    def _made(self, code: int) -> "MetricSet":
        if len(self._sets) >= self._most:
            rule = f"column {quoted(self._column)} must have at most {self._most} groups"
            problem = f"{rule} to measure each with {self._chosen.num_classes} classes, but has more"
            raise PredictionsError(self._path, problem)
        self._rows[code] = 0
        self._sets[code] = self._chosen.make()
        return self._sets[code]


def _cell(value: float) -> str:
    return "" if isnan(value) else f"{value:.4g}"
