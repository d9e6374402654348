"""All metrics that predictions allow, in one pass."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.rules import MAX_MATRIX_CLASSES
from mpcs_torch.errors import quoted
from mpcs_torch.scoring.chosen_metrics import ChosenMetrics, choose_metrics, has_free_errors, inputs_of
from mpcs_torch.scoring.chunks import Chunk, PredictionsError
from mpcs_torch.scoring.predictions import Predictions
from mpcs_torch.scoring.scores import Scores
from mpcs_torch.scoring.tuned import tuned_entries

if TYPE_CHECKING:  # torchmetrics takes seconds to import: it is loaded when predictions are scored
    from mpcs_torch.metrics.by_name import MetricEntry
    from mpcs_torch.metrics.metric_set import MetricSet
    from mpcs_torch.processes.world import World


class Listener(Protocol):
    """Whatever sees the rows of a file while they are scored."""

    def begin(self, chosen: ChosenMetrics) -> None:
        """Learn the metrics, before the first row."""

    def add(self, chunk: Chunk) -> None:
        """See the next rows."""


def score(
    predictions: Predictions,
    concern: ConcernSpec | None,
    advance: Callable[[int], None],
    *,
    entries: "Sequence[MetricEntry] | None" = None,
    settings: Mapping[str, Any] | None = None,
    world: "World | None" = None,
    development: Predictions | None = None,
    listeners: Sequence[Listener] = (),
) -> Scores:
    """Score all rows in one pass of bounded memory; several processes take turns with the chunks of the file.

    Args:
        predictions: An open file.
        concern: Which errors matter, for the metrics that ask.
        advance: Called with the number of rows that were added, to show progress.
        entries: The metrics. Default: all that the labels of the file allow.
        settings: Further settings for the metrics that have them, such as ``k`` and ``t`` of MPCS.
        world: The processes that score the file together, all of which return the scores of the whole. Default: this
            one.
        development: An open file of soft labels, which is read as a whole: hard F is also measured at the thresholds
            that are best there.
        listeners: See all rows.

    Raises:
        PredictionsError: If there is no row, a value breaks a rule, or a metric does not fit the labels.
    """
    rows = 0
    metrics: MetricSet | None = None
    rank, size = (0, 1) if world is None else (world.rank, world.size)
    for number, chunk in enumerate(predictions.chunks()):
        probs, target = chunk.scores, chunk.target
        if metrics is None:
            if development is not None and target.ndim == 1:
                raise PredictionsError(predictions.path, "must have soft labels for thresholds of a development file")
            tuned = [] if development is None else tuned_entries(development, predictions.class_names)
            chosen = choose_metrics(predictions, concern, entries, tuned, settings or {}, is_soft=target.ndim == 2)
            try:
                metrics = chosen.make()
            except ValueError as error:
                raise PredictionsError(predictions.path, str(error)) from None
            for listener in listeners:
                listener.begin(chosen)
        if number % size == rank:
            metrics.update(inputs_of(probs, metrics.takes), target)
        for listener in listeners:
            listener.add(chunk)
        rows += len(probs)
        advance(len(probs))
    if metrics is None:
        raise PredictionsError(predictions.path, "holds no row")
    notes = []
    if entries is None and has_free_errors(concern):
        notes.append("mpcs is left out: it divides by weights, and the concern has weights of 0")
    if entries is None and len(predictions.class_names) > MAX_MATRIX_CLASSES and target.ndim == 1:
        notes.append(
            f"more than {MAX_MATRIX_CLASSES} classes: metrics of pairs of classes, such as accuracy, are left out"
        )
    if development is not None and development.path.samefile(predictions.path):
        notes.append("hard F at thresholds that were learned on the file that is scored is optimistic")
    found = _scores(rows, predictions.class_names, metrics, notes)
    if predictions.takes_any_column and found.confusion is not None:
        absent = [name for name, own in zip(found.class_names, found.confusion.sum(1).tolist(), strict=True) if not own]
        if absent:
            notes.append(
                f"no row has the label {quoted(absent[0])}: if that is no class, --ignore leaves its column out"
            )
    return found._replace(has_concern=concern is not None, file_notes=predictions.notes())


def _scores(rows: int, class_names: list[str], metrics: "MetricSet", notes: Sequence[str]) -> Scores:
    from mpcs_torch.metrics.probability.probability_accuracy import ProbabilityAccuracy

    values, confusion = metrics.results()
    with metrics.gathered() as gathered:
        certainty = next((metric for metric in gathered.values() if isinstance(metric, ProbabilityAccuracy)), None)
        reported, measured = (None, None) if certainty is None else (certainty.reported(), certainty.bins())
    return Scores(rows, class_names, values, confusion, reported, measured, notes)
