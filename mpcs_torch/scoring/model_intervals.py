"""Intervals of the metrics of classifiers from resamples of their rows, and their comparison."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from mpcs_torch.functional import Comparison, Resamples
from mpcs_torch.scoring.chosen_metrics import ChosenMetrics
from mpcs_torch.scoring.group_rows import rows_by_group
from mpcs_torch.scoring.group_scores import GroupScores
from mpcs_torch.scoring.main_measures import Samples, compare_models, main_intervals, main_measures
from mpcs_torch.scoring.matched_rows import GroupColumn
from mpcs_torch.scoring.model_scores import ModelScores
from mpcs_torch.scoring.own_intervals import clustered_intervals, complete
from mpcs_torch.scoring.row_means import RowMeans

Advance = Callable[[int], None]
REPEATED = (
    "Without --concern, every error is dangerous and costs the same: models are compared by wrong decisions and MPCS."
)


class KeptModels(NamedTuple):
    """The values that intervals and comparisons of models need: 26 bytes for a row and model, and 8 with clusters."""

    chosen: ChosenMetrics
    samples: list[Samples]
    """Of each model."""
    labels: Tensor
    """(N,), int64."""
    clusters: Tensor | None
    """(N,), int64: which rows are drawn together; None if they are independent."""
    means: list[RowMeans]
    """Of each model."""
    columns: Mapping[str, GroupColumn]
    """The groups of each row, by column."""
    of_groups: Mapping[str, Mapping[str, RowMeans]]
    """Of each group, by model and column."""


def with_intervals(
    found: ModelScores, kept: KeptModels, *, cluster: str | None, resamples: int, advance: Advance
) -> ModelScores:
    """Add the intervals of the main metrics, or with clusters of all, and the comparison of several models.

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
    clusters = kept.clusters
    measures = main_measures(kept.samples, kept.labels, kept.chosen, is_clustered=clusters is not None)
    drawn = Resamples(len(kept.labels), number=resamples, clusters=clusters)
    intervals = main_intervals(measures, drawn, advance) or [{}] * len(kept.samples)
    scores = {}
    for place, (name, own) in enumerate(found.scores.items()):
        if clusters is None:
            scores[name] = complete(own, {**own.intervals, **intervals[place]})
        else:
            means, samples = kept.means[place], kept.samples[place]
            scores[name] = clustered_intervals(own, means, samples, kept.labels, drawn, clusters, intervals[place])
    notes, groups = list(found.notes), [each._replace(pooled=scores[each.model]) for each in found.groups]
    if clusters is not None:
        notes.append(of_clusters(drawn.independent, cluster))
        groups = [_with_clusters(each, kept, clusters, resamples) for each in groups]
    comparisons: Sequence[Comparison] = ()
    if len(scores) > 1:
        has_concern = kept.chosen.concern is not None
        comparisons = compare_models(list(scores), measures, drawn, has_concern=has_concern, advance=advance)
        notes += [REPEATED] if comparisons and not has_concern else []
    return found._replace(scores=scores, comparisons=comparisons, groups=groups, notes=notes)


def of_clusters(number: int, cluster: str | None) -> str:
    """Say how clusters were drawn."""
    return f"95 % intervals: bootstrap of {number} whole clusters ({cluster})."


def _with_clusters(found: GroupScores, kept: KeptModels, clusters: Tensor, resamples: int) -> GroupScores:
    """Add the intervals of each group from resamples of the clusters in it; groups of one cluster have none."""
    column, means = kept.columns[found.column], kept.of_groups[found.model][found.column]
    samples = kept.samples[list(kept.of_groups).index(found.model)]
    names, groups = column.names, dict(found.groups)
    for code, rows in rows_by_group(column.codes):
        own, labels = samples.of_rows(rows), kept.labels[rows]
        numbered = clusters[rows].unique(return_inverse=True)[1]  # type: ignore[no-untyped-call]
        if int(numbered.max()) == 0:
            continue
        drawn = Resamples(len(rows), number=resamples, clusters=numbered)
        measures = main_measures([own], labels, kept.chosen, is_clustered=True)
        [of_main] = main_intervals(measures, drawn, lambda _: None) or [{}]
        scores = groups[names[code]]
        groups[names[code]] = clustered_intervals(scores, means, own, labels, drawn, numbered, of_main, code)
    return found._replace(groups=groups)
