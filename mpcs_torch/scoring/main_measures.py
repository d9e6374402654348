"""The main metrics of classifiers, by which they are compared, and which have intervals."""

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import torch
from torch import Tensor

from mpcs_torch.functional import (
    Comparison,
    Measure,
    Resamples,
    clopper_pearson,
    compare_systems,
    expected_concern_statistic,
    mean_statistic,
    meta_pattern_concern_score,
    rate_measure,
)
from mpcs_torch.functional.comparison.bootstrap import interval_of, statistics_of, unless_all_agree
from mpcs_torch.functional.comparison.sample_statistics import Statistic
from mpcs_torch.scoring.chosen_metrics import ChosenMetrics
from mpcs_torch.scoring.chunks import Chunk
from mpcs_torch.scoring.row_values import decided_by_cost
from mpcs_torch.scoring.scores import Interval

if TYPE_CHECKING:  # torchmetrics takes seconds to import: it is loaded when predictions are scored
    from mpcs_torch.metrics.concern.mpcs import MetaPatternConcernScore

CONFIDENCE = 0.95
ACCURACY, WRONG_RATE = "accuracy", "misclassification_rate"
DANGEROUS_RATE, MPCS, EXPECTED_CONCERN = "dangerous_rate", "mpcs", "expected_concern"
LEAST_COST, DESTRUCTIVE_RATE = "least_concern_cost", "destructive_rate"
MAIN = {
    WRONG_RATE: "rate of wrong decisions",
    DANGEROUS_RATE: "rate of dangerous errors",
    MPCS: "MPCS",
    EXPECTED_CONCERN: "expected concern",
}
"""Those that are compared, as a sentence says them."""

OF_CONCERN = (DANGEROUS_RATE, EXPECTED_CONCERN)


class Samples(NamedTuple):
    """The values of each row that the main metrics need."""

    decisions: Tensor
    """(N,), int64: the most probable class."""
    mpcs: Tensor | None
    """(N,), float64: the score of the row; None if MPCS is not asked for."""
    by_cost: Tensor | None = None
    """(N,), int64: the decision by cost, -1 for a referral; None if it is not needed."""

    def of_rows(self, rows: Tensor) -> "Samples":
        """Return those of some rows."""
        return Samples(*(None if held is None else held[rows] for held in self))  # type: ignore[arg-type]


class KeptSamples:
    """Keep what the main metrics need of each row of a file: 16 bytes, and with clusters 8 for the decision by cost."""

    def __init__(self, chosen: ChosenMetrics, *, is_clustered: bool) -> None:
        entry = next((entry for entry in chosen.entries if entry.name == MPCS), None)
        settings = {"concern": chosen.concern, **chosen.settings}
        made = None if entry is None else entry.make(chosen.num_classes, **settings)
        self._metric = cast("MetaPatternConcernScore | None", made)
        self._num_classes, self._decisions, self._scores = chosen.num_classes, array("q"), array("d")
        self._by_cost, self._costs = array("q"), _costs_of(LEAST_COST, chosen) if is_clustered else None

    def add(self, chunk: Chunk) -> None:
        """Add the next rows."""
        self._decisions.frombytes(chunk.scores.argmax(dim=1).numpy().tobytes())
        if self._metric is not None:
            scores = meta_pattern_concern_score(
                chunk.scores,
                chunk.target,
                num_classes=self._num_classes,
                k=self._metric.k,
                t=self._metric.t,
                concern=self._metric.concern,
                from_logits=False,
                reduction="none",
            )
            self._scores.frombytes(scores.numpy().tobytes())
        if self._costs is not None:
            self._by_cost.frombytes(decided_by_cost(chunk.scores, chunk.target, self._costs).numpy().tobytes())

    def samples(self, order: Tensor | None = None) -> Samples:
        """Return what was kept, each row at its place in an order if there is one."""
        decisions = torch.frombuffer(self._decisions, dtype=torch.int64)
        scores = None if self._metric is None else torch.frombuffer(self._scores, dtype=torch.float64)
        by_cost = None if self._costs is None else torch.frombuffer(self._by_cost, dtype=torch.int64)
        samples = Samples(decisions, scores, by_cost)
        return samples if order is None else samples.of_rows(order.argsort())


def main_measures(
    models: Sequence[Samples], labels: Tensor, chosen: ChosenMetrics, *, is_clustered: bool
) -> dict[str, Measure]:
    """Return the main metrics among those that were chosen, by name, with a statistic for each model.

    With clusters, others that resampled counts do not determine are among them.
    """
    from mpcs_torch.metrics.concern.dangerous import dangerous_pairs_of

    names, classes = {entry.name for entry in chosen.entries}, chosen.num_classes
    found: dict[str, Measure] = {}
    if names & {WRONG_RATE, ACCURACY}:
        found[WRONG_RATE] = rate_measure(MAIN[WRONG_RATE], [own.decisions != labels for own in models])
    if names & {DANGEROUS_RATE, DESTRUCTIVE_RATE}:
        pairs = dangerous_pairs_of(chosen.concern, classes)
        if DANGEROUS_RATE in names:
            found[DANGEROUS_RATE] = rate_measure(MAIN[DANGEROUS_RATE], [pairs[labels, own.decisions] for own in models])
        if is_clustered and DESTRUCTIVE_RATE in names and chosen.concern is not None:  # without one, it is always 1
            both = [(own.decisions != labels, pairs[labels, own.decisions]) for own in models]
            found[DESTRUCTIVE_RATE] = Measure(DESTRUCTIVE_RATE, [_share_statistic(*each) for each in both])
    if MPCS in names:
        found[MPCS] = Measure(MAIN[MPCS], [mean_statistic(own.mpcs) for own in models if own.mpcs is not None])
    by_name = {EXPECTED_CONCERN: [own.decisions for own in models]}
    if is_clustered:
        by_name[LEAST_COST] = [own.by_cost for own in models if own.by_cost is not None]
    for name, decided in by_name.items():
        costs = _costs_of(name, chosen)
        if costs is not None:
            statistics = [
                expected_concern_statistic(own, labels, num_classes=classes, concern=costs) for own in decided
            ]
            found[name] = Measure(MAIN.get(name, name), statistics)
    return found


def _share_statistic(counted: Tensor, true: Tensor) -> Statistic:
    """Make a statistic of the share of the samples that are counted for which something is true."""
    numbers = torch.stack([true & counted, counted], dim=1).double()

    def statistic(weights: Tensor) -> Tensor:
        sums = weights.double() @ numbers
        return sums[:, 0] / sums[:, 1]

    return statistic


def _costs_of(name: str, chosen: ChosenMetrics) -> Tensor | None:
    """Return the costs of a metric of expected concern; None if it was not chosen."""
    from mpcs_torch.metrics.concern.expected_concern import cost_matrix

    is_chosen = any(entry.name == name for entry in chosen.entries)
    return cost_matrix(chosen.concern, chosen.num_classes) if is_chosen else None


def main_intervals(
    measures: Mapping[str, Measure], resamples: Resamples, advance: Callable[[int], None]
) -> list[dict[str, Interval]]:
    """Compute the intervals of the main metrics of each model, and of the accuracy, by name.

    Rates of independent rows have those of Clopper and Pearson. So have rates of 0 and 1 with clusters, where all
    resamples are the same and would promise too much: each cluster then counts as one trial. All others are of the
    bootstrap.
    """
    models = max((len(measure.statistics) for measure in measures.values()), default=0)
    found: list[dict[str, Interval]] = [{} for _ in range(models)]
    drawn_names = []
    for name, measure in measures.items():
        if measure.wrong is not None and not resamples.is_clustered:
            for own, wrong in zip(found, measure.wrong, strict=True):
                own[name] = clopper_pearson(int(wrong.sum()), len(wrong), confidence=CONFIDENCE)
        else:
            drawn_names.append(name)
    if drawn_names:
        drawn = statistics_of([each for name in drawn_names for each in measures[name].statistics], resamples, advance)
        for name, of_models in zip(drawn_names, drawn.view(len(drawn_names), models, -1), strict=True):
            for place, (own, values) in enumerate(zip(found, of_models, strict=True)):
                interval = unless_all_agree(*_interval(measures[name], place, values, resamples.independent))
                own |= {} if interval is None else {name: interval}
    for own in found:
        if WRONG_RATE in own:
            low, high = own[WRONG_RATE]
            own[ACCURACY] = 1 - high, 1 - low
    return found


def compare_models(
    names: Sequence[str],
    measures: Mapping[str, Measure],
    resamples: Resamples,
    *,
    has_concern: bool,
    advance: Callable[[int], None],
) -> list[Comparison]:
    """Compare each pair of models by the main metrics.

    Without a concern, dangerous errors and expected concern say what wrong decisions say, so they are left out: more
    comparisons would need lower p-values.
    """
    repeated = () if has_concern or WRONG_RATE not in measures else OF_CONCERN
    wanted = [measure for name, measure in measures.items() if name in MAIN and name not in repeated]
    return compare_systems(names, wanted, resamples, confidence=CONFIDENCE, advance=advance) if wanted else []


def _interval(measure: Measure, place: int, values: Tensor, independent: int) -> Interval:
    if measure.wrong is not None:
        wrong = measure.wrong[place]
        if bool(wrong.all()) or not bool(wrong.any()):
            return clopper_pearson(independent if bool(wrong[0]) else 0, independent, confidence=CONFIDENCE)
    return interval_of(values, independent, CONFIDENCE)
