"""The metrics of one or several classifiers on the same rows, and of their groups of rows."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.scoring.chosen_metrics import ChosenMetrics
from mpcs_torch.scoring.chunks import PredictionsError
from mpcs_torch.scoring.group_scores import GroupScores
from mpcs_torch.scoring.main_measures import ACCURACY, MAIN, Samples
from mpcs_torch.scoring.matched_rows import MatchedRows
from mpcs_torch.scoring.model_intervals import Advance, KeptModels, of_clusters
from mpcs_torch.scoring.model_pass import ModelPass
from mpcs_torch.scoring.model_scores import INDEPENDENT, ModelScores
from mpcs_torch.scoring.own_intervals import own_intervals
from mpcs_torch.scoring.predictions import Predictions
from mpcs_torch.scoring.row_means import RowMeans
from mpcs_torch.scoring.score import Listener, score
from mpcs_torch.scoring.scores import Scores

if TYPE_CHECKING:  # torchmetrics takes seconds to import: it is loaded when predictions are scored
    from mpcs_torch.metrics.by_name import MetricEntry

SOFT_ALONE = "Models are compared on files with one class for each row: soft labels have intervals alone."


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
    listeners: Mapping[str, Sequence[Listener]] = MappingProxyType({}),
) -> tuple[ModelScores, KeptModels | None]:
    """Score files with the same rows, each in one pass.

    Held for a row are its label and its group in each column; if rows are kept, also 16 bytes for each model, or 24
    with clusters.

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
        resamples: The number of resamples for intervals, 0 for none. Of several files and of clusters with hard labels,
            what `with_intervals` needs is kept.
        listeners: What else sees the rows of a model.

    Returns:
        The scores; and what was kept, or None if there is nothing to add.

    Raises:
        PredictionsError: If a file cannot be scored, or rows do not match.
    """
    keeps = resamples > 0 and (len(opened) > 1 or cluster is not None)
    rows = MatchedRows(list(dict.fromkeys([*by, *([] if cluster is None else [cluster])])), identifier=identifier)
    scores, groups, samples = dict[str, Scores](), list[GroupScores](), list[Samples]()
    means, of_groups = list[RowMeans](), dict[str, dict[str, RowMeans]]()
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
            listeners=[of_file, *listeners.get(name, ())],
        )
        rows.end(predictions.path)
        chosen = of_file.chosen
        if resamples and chosen.is_soft and cluster is not None and len(rows.columns[cluster].names) < 2:
            problem = "a bootstrap needs at least 2 clusters, but got 1. Pass --resamples 0 to leave it out."
            raise PredictionsError(predictions.path, problem)
        if resamples and (cluster is None or chosen.is_soft):
            scores[name] = own_intervals(scores[name], concern, of_file.means, resamples)
        groups += [
            of_column.scores(name, rows.columns[column].names, scores[name])
            for column, of_column in of_file.grouped.items()
        ]
        of_groups[name] = {column: of_column.means for column, of_column in of_file.grouped.items()}
        samples += [] if of_file.kept is None else [of_file.kept.samples(rows.order())]
        means += [] if of_file.means is None else [of_file.means]
    groups.sort(key=lambda each: by.index(each.column))
    assert chosen is not None  # a file without rows is refused
    notes = []
    if any(own.intervals for own in scores.values()):
        number = 0 if cluster is None else len(rows.columns[cluster].names)
        notes.append(INDEPENDENT if cluster is None else of_clusters(number, cluster))
    found = ModelScores(scores, groups=groups, notes=notes)
    if not keeps or chosen.is_soft:
        told = [SOFT_ALONE] if keeps and len(opened) > 1 else []
        return found._replace(notes=[*notes, *told]), None
    if len(opened) > 1 and not any(entry.name in (ACCURACY, *MAIN) for entry in chosen.entries):
        found = found._replace(notes=[*notes, f"Only {', '.join((ACCURACY, *MAIN))} are compared."])
        if cluster is None:
            return found, None
    clusters = None if cluster is None else rows.columns[cluster].codes
    return found, KeptModels(chosen, samples, rows.labels, clusters, means, rows.columns, of_groups)
