"""The metrics of one or several classifiers on the same rows, their comparison, and their groups of rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional import Comparison, Resamples
from mpcs_torch.scoring.chosen_metrics import ChosenMetrics
from mpcs_torch.scoring.group_scores import GroupScores
from mpcs_torch.scoring.main_measures import (
    ACCURACY,
    MAIN,
    Samples,
    compare_models,
    main_intervals,
    main_measures,
)
from mpcs_torch.scoring.matched_rows import MatchedRows
from mpcs_torch.scoring.metric_sections import sections_of
from mpcs_torch.scoring.model_pass import ModelPass
from mpcs_torch.scoring.own_intervals import (
    clustered_intervals,
    complete,
    own_intervals,
    reasons_without_interval,
)
from mpcs_torch.scoring.predictions import Predictions
from mpcs_torch.scoring.row_means import RowMeans
from mpcs_torch.scoring.score import score
from mpcs_torch.scoring.scores import Scores
from mpcs_torch.tables import Table

if TYPE_CHECKING:  # torchmetrics takes seconds to import: it is loaded when predictions are scored
    from mpcs_torch.metrics.by_name import MetricEntry

Advance = Callable[[int], None]
REPEATED = (
    "Without --concern, every error is dangerous and costs the same: models are compared by wrong decisions and MPCS."
)

INDEPENDENT = (
    "95 % intervals assume independent rows: Clopper-Pearson for rates of errors, Student's t for means over rows such "
    "as mpcs, bootstrap for others. With --cluster COLUMN, rows that share a value (a patient) are drawn together."
)


class ModelScores(NamedTuple):
    """All that is measured of some classifiers."""

    scores: dict[str, Scores]
    """By model."""
    comparisons: Sequence[Comparison] = ()
    groups: Sequence[GroupScores] = ()
    """One for each column and model."""
    notes: Sequence[str] = ()
    """Sentences about intervals and comparisons for the reader."""

    @property
    def first(self) -> Scores:
        """The scores of the first model."""
        return next(iter(self.scores.values()))

    def noted(self) -> "ModelScores":
        """Add to the notes how the files were read, and why metrics have no value."""
        told = dict[str, list[str]]()
        for name, scores in self.scores.items():
            for remark in scores.remarks():
                told.setdefault(remark, []).append(name)
            for reason, bare in reasons_without_interval(scores).items():
                told.setdefault(f"No interval for {', '.join(bare)}: {reason}.", []).append(name)
        several = len(self.scores) > 1
        added = [f"{', '.join(names)}: {remark}" if several else remark for remark, names in told.items()]
        return self._replace(notes=[*added, *self.notes])

    def sections(self) -> list[tuple[str, Table]]:
        """Return the metrics in tables, the main ones first, each with a sentence about it, which may be empty."""
        names = dict.fromkeys(name for scores in self.scores.values() for name in scores.values)
        found = sections_of(names, has_concern=self.first.has_concern)
        return [(section.about, self.table(section.names)) for section in found]

    def table(self, names: Sequence[str] | None = None) -> Table:
        """Return a row for each metric, or for some, and for several models a column for each, with its intervals."""
        if len(self.scores) == 1:
            return self.first.table(names)
        if names is None:
            names = list(dict.fromkeys(name for scores in self.scores.values() for name in scores.values))
        rows = [[name, *(_cell(scores, name) for scores in self.scores.values())] for name in names]
        return Table(["metric", *self.scores], rows)


class KeptModels(NamedTuple):
    """The values that intervals and comparisons of models need: 26 bytes for a row and model."""

    chosen: ChosenMetrics
    samples: list[Samples]
    """Of each model."""
    labels: Tensor
    """(N,), int64."""
    clusters: Tensor | None
    """(N,), int64: which rows are drawn together; None if they are independent."""
    means: list[RowMeans]
    """Of each model."""


def score_models(
    opened: Mapping[str, Predictions],
    concern: ConcernSpec | None,
    advance: Advance,
    *,
    entries: "Sequence[MetricEntry] | None" = None,
    settings: Mapping[str, Any] | None = None,
    development: Predictions | None = None,
    by: Sequence[str] = (),
    cluster: str | None = None,
    identifier: str | None = None,
    resamples: int = 0,
) -> tuple[ModelScores, KeptModels | None]:
    """Score files with the same rows, each in one pass.

    Held for a row are its label and its group in each column; if rows are kept, also 16 bytes for each model.

    Args:
        opened: The file of each model, which has the columns of groups among its texts.
        concern: Which errors matter, for the metrics that ask.
        advance: Called with the number of rows that were added, to show progress.
        entries: The metrics. Default: all that the labels allow.
        settings: Further settings for the metrics that have them, such as ``k`` and ``t`` of MPCS.
        development: An open file of soft labels for thresholds, as in `score`.
        by: Columns of the first file: each of their groups is measured too.
        cluster: A column of the first file that says which rows are drawn together. Default: rows are independent.
        identifier: A column of all files that names each row, by which rows are matched. Default: by their order.
        resamples: The number of resamples for intervals, 0 for none. For several files and for clusters, what
            `with_intervals` needs is kept.

    Returns:
        The scores; and what was kept, or None if no metric of `MAIN` is measured.

    Raises:
        PredictionsError: If a file cannot be scored, or rows do not match.
    """
    keeps = resamples > 0 and (len(opened) > 1 or cluster is not None)
    rows = MatchedRows(list(dict.fromkeys([*by, *([] if cluster is None else [cluster])])), identifier=identifier)
    scores, groups, samples = dict[str, Scores](), list[GroupScores](), list[Samples]()
    means: list[RowMeans] = []
    chosen: ChosenMetrics | None = None
    for name, predictions in opened.items():
        of_file = ModelPass(predictions, rows, by, cluster=cluster, keeps=keeps, resamples=resamples)
        scores[name] = score(
            predictions,
            concern,
            advance,
            entries=entries,
            settings=settings,
            development=development,
            listener=of_file,
        )
        rows.end(predictions.path)
        if resamples and cluster is None:
            scores[name] = own_intervals(scores[name], concern, of_file.means, resamples)
        chosen = of_file.chosen
        groups += [
            of_column.scores(name, rows.columns[column].names, scores[name])
            for column, of_column in of_file.grouped.items()
        ]
        samples += [] if of_file.kept is None else [of_file.kept.samples(rows.order())]
        means += [] if of_file.means is None else [of_file.means]
    groups.sort(key=lambda each: by.index(each.column))
    has_intervals = any(own.intervals for own in scores.values())
    found = ModelScores(scores, groups=groups, notes=[INDEPENDENT] if has_intervals else [])
    if not keeps or chosen is None:
        return found, None
    if not any(entry.name in (ACCURACY, *MAIN) for entry in chosen.entries):  # such as soft labels
        return found._replace(notes=[f"Only {', '.join((ACCURACY, *MAIN))} have intervals and are compared."]), None
    clusters = None if cluster is None else rows.columns[cluster].codes
    return found, KeptModels(chosen, samples, rows.labels, clusters, means)


def with_intervals(
    found: ModelScores, kept: KeptModels, *, cluster: str | None, resamples: int, advance: Advance
) -> ModelScores:
    """Add the intervals of the main metrics, and the comparison of several models.

    Args:
        found: The scores.
        kept: What was kept with them.
        cluster: The name of the column of clusters.
        resamples: The number of bootstrap resamples, at least 1.
        advance: Called with the number of resamples after each batch. There are as many for the intervals, and as many
            again for a comparison.

    Raises:
        ValueError: If there are fewer than 2 rows or clusters.
    """
    measures = main_measures(kept.samples, kept.labels, kept.chosen)
    drawn = Resamples(len(kept.labels), number=resamples, clusters=kept.clusters)
    intervals = main_intervals(measures, drawn, advance)
    scores = {}
    for place, (name, own) in enumerate(found.scores.items()):
        others = own.intervals
        if kept.clusters is not None:
            decisions, means = kept.samples[place].decisions, kept.means[place]
            others = clustered_intervals(own, means, decisions, kept.labels, kept.clusters, drawn)
        scores[name] = complete(own, {**others, **intervals[place]})
    comparisons: Sequence[Comparison] = ()
    of_clusters = f"95 % intervals: bootstrap of {drawn.independent} whole clusters ({cluster})."
    notes = [*found.notes, *([] if cluster is None else [of_clusters])]
    if len(scores) > 1:
        has_concern = kept.chosen.concern is not None
        notes += [] if has_concern else [REPEATED]
        comparisons = compare_models(list(scores), measures, drawn, has_concern=has_concern, advance=advance)
    return ModelScores(scores, comparisons, found.groups, notes)


def _cell(scores: Scores, name: str) -> str:
    if name not in scores.values:
        return ""
    interval = scores.interval(name)
    return f"{scores.values[name]:.5g}" + (f" ({interval})" if interval else "")
