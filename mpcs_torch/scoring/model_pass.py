"""The pass through the file of a model."""

from collections.abc import Sequence

from mpcs_torch.scoring.chosen_metrics import ChosenMetrics
from mpcs_torch.scoring.chunks import Chunk
from mpcs_torch.scoring.grouped_metrics import GroupedMetrics
from mpcs_torch.scoring.main_measures import KeptSamples
from mpcs_torch.scoring.matched_rows import MatchedRows
from mpcs_torch.scoring.predictions import Predictions
from mpcs_torch.scoring.row_means import RowMeans


class ModelPass:
    """Match, group and keep the rows of a file while they are scored."""

    def __init__(
        self,
        predictions: Predictions,
        rows: MatchedRows,
        by: Sequence[str],
        *,
        cluster: str | None,
        keeps: bool,
        resamples: int,
    ) -> None:
        self._predictions, self._rows, self._by, self._keeps = predictions, rows, by, keeps
        self._cluster, self._resamples = cluster, resamples
        self.means: RowMeans | None = None
        self.kept: KeptSamples | None = None
        self.grouped = dict[str, GroupedMetrics]()

    def begin(self, chosen: ChosenMetrics) -> None:
        """Learn the metrics, before the first row."""
        self.chosen = chosen
        if self._resamples:
            self.means = RowMeans(self._resamples)
            self.means.begin(chosen)
        self.kept = None
        if self._keeps and not chosen.is_soft:
            self.kept = KeptSamples(chosen, is_clustered=self._cluster is not None)
        self.grouped = {
            column: GroupedMetrics(self._predictions.path, column, chosen, self._resamples) for column in self._by
        }

    def add(self, chunk: Chunk) -> None:
        """See the next rows."""
        codes = self._rows.add(self._predictions.path, self._predictions.class_names, chunk)
        clusters = None if self._cluster is None else codes[self._cluster]
        if self.means is not None:
            self.means.add(chunk, clusters=clusters)
        if self.kept is not None:
            self.kept.add(chunk)
        for column, grouped in self.grouped.items():
            grouped.add(chunk, codes[column], clusters)
