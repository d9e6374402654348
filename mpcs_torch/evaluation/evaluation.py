"""Evaluate classifiers batch by batch, from sums that can be merged."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernRange, ConcernSpec
from mpcs_torch.concern.checks import MAX_MATRIX_CLASSES
from mpcs_torch.concern.spec import about_dangerous
from mpcs_torch.errors import InvalidValueError, did_you_mean, quoted, require
from mpcs_torch.evaluation.cautions import (
    Repeats,
    independence,
    independence_of_clusters,
    shared,
    uncalibrated,
    units_among,
)
from mpcs_torch.evaluation.chosen import (
    DEGREES,
    SHARES,
    ChosenMetrics,
    Metrics,
    as_entries,
    choose_metrics,
)
from mpcs_torch.evaluation.classifier_scores import ClassifierScores, cluster_plural
from mpcs_torch.evaluation.classifier_values import scores_of
from mpcs_torch.evaluation.comparisons import compare
from mpcs_torch.evaluation.decision_numbers import decision_numbers
from mpcs_torch.evaluation.model_sums import ALL, CLASS_ROWS, ModelSums
from mpcs_torch.evaluation.outcomes import OverCosts
from mpcs_torch.evaluation.paired_differences import NotCompared
from mpcs_torch.evaluation.result import Result
from mpcs_torch.evaluation.rows import Rows, as_numbers, in_class_order
from mpcs_torch.evaluation.scores import GroupScores
from mpcs_torch.evaluation.sum_layout import SumLayout
from mpcs_torch.evaluation.unit_sums import ids_of_names, join_alike
from mpcs_torch.evaluation.unit_values import UnitValues
from mpcs_torch.functional import Comparison
from mpcs_torch.functional.inputs.arrays import as_tensor
from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.functional.inputs.evaluation_warnings import (
    EvaluationWarning,
    rare_classes,
)
from mpcs_torch.functional.inputs.groups import (
    row_costs,
    row_frequencies,
    row_names,
    row_weights,
)
from mpcs_torch.metrics.named_metrics import ENTRIES

MODEL = "model"
"""The name of the model if there is only one."""
POSITIONS = "samples"
"""The name of the clusters if samples have several positions, such as the pixels of an image."""
MANY_GROUPS = 500
"""The maximum number of groups of a column without a note that they are many."""
ABOUT_MANY_GROUPS = (
    "{} has {} groups. If it names patients or other units, they may be clusters instead (clusters=, or --cluster "
    "COLUMN). Intervals take most of the time for many groups: leave them out by intervals=False, or --no-intervals."
)
WEIGHTED = (
    "Rows are weighted: their effective sample size is {:.0f} rows. Intervals treat the weights as known; those of "
    "rates and costs allow for further rows of the largest weight."
)
REPEATED = (
    "Without a concern, every error is dangerous and costs the same: models are not compared by dangerous errors and "
    "expected concern, which would repeat the comparison by wrong decisions."
)
GroupsByColumn = Mapping[str, Sequence[object] | Tensor]
RowValues = Sequence[object] | Tensor
"""The type of predictions or labels; NumPy arrays are accepted too."""


class Evaluation:
    """Evaluate classifiers batch by batch, and merge the sums of several processes.

    The arguments must state the kinds of labels and predictions; `mpcs_torch.evaluate` infers these from the data.
    Memory is bounded, no matter how many rows there are: 16 MiB per model, 128 MiB per column of groups, and 8 bytes
    per group or cluster.

    Args:
        class_names: The names of the C classes, or the number C.
        concern: The cost of each kind of error; see `evaluate`.
        metrics: Names, Metrics, or a dictionary of these; see `evaluate`.
        settings: Settings for the metrics that take them; see `evaluate`.
        is_soft: Whether labels are soft, (N, C).
        is_decided: Whether predictions are decisions, (N,).
        refers: Whether decisions may be referrals (no class) or sets of several classes; if so, metrics that need one
            class for each row are left out.
        is_weighted: Whether rows have weights; if so, metrics that take no weights are left out.
        has_costs: Whether each row has costs of decisions; if so, ``mean_cost`` and ``regret`` are measured, too.
        has_positions: Whether samples have several positions, as images have pixels: (N, C, ...) and (N, ...). Each
            position is then a row, and each sample a cluster of rows, unless `update` gets ``clusters``.
        intervals: Whether to compute intervals and compare models.

    Raises:
        ValueError: If a metric does not suit the labels or the number of classes, or if a setting is invalid.

    Example:
        >>> import torch
        >>> probs, target = torch.tensor([[0.9, 0.1], [0.3, 0.7], [0.4, 0.6], [0.8, 0.2]]), torch.tensor([0, 1, 0, 0])
        >>> halves = [Evaluation(2, metrics=["accuracy"]) for _ in range(2)]
        >>> for half, rows in zip(halves, (slice(2), slice(2, 4)), strict=True):
        ...     half.update(probs[rows], target[rows])
        >>> halves[0].merge(halves[1])
        >>> result = halves[0].result()
        >>> print(f"{result.value('accuracy'):.2f} ({result.first.interval('accuracy')})")
        0.75 (0.1941 to 0.9937)
    """

    def __init__(
        self,
        class_names: Sequence[str] | int,
        *,
        concern: ConcernSpec | ConcernRange | None = None,
        metrics: Metrics | None = None,
        settings: Mapping[str, Any] | None = None,
        is_soft: bool = False,
        is_decided: bool = False,
        refers: bool = False,
        is_weighted: bool = False,
        has_costs: bool = False,
        has_positions: bool = False,
        intervals: bool = True,
    ) -> None:
        if isinstance(class_names, str):
            raise InvalidValueError("list_of_names", "class_names", class_names)
        if concern is not None and not isinstance(concern, ConcernSpec | ConcernRange):
            raise InvalidValueError("spec", "concern", concern)
        names = _names_of_classes(class_names, concern)
        self.class_names = names
        entries = None if metrics is None else as_entries(metrics)
        for name in settings or {}:
            _check_setting(name)
        self.chosen: ChosenMetrics = choose_metrics(
            names,
            concern,
            entries,
            settings,
            is_soft=is_soft,
            is_decided=is_decided,
            refers=refers,
            is_weighted=is_weighted,
            has_costs=has_costs,
            has_positions=has_positions,
        )
        answers = () if self.chosen.concern is None else self.chosen.concern.answers
        self._decisions = decision_numbers(names, answers)
        self._notes = self.chosen.notes()
        self._intervals = intervals
        self._models = dict[str, list[ModelSums]]()
        """The sums of each model, for each way in which rows are clustered: one, or three for crossed clusters."""
        self._columns = dict[str, dict[str, int]]()
        """For each column of groups: the code of each group, by name of the group."""
        self.default_clusters: tuple[str, ...] = (POSITIONS,) if has_positions else ()
        """The columns of clusters of rows for which none are given; empty if such rows are independent."""
        self.has_units = False
        """Whether each row is a unit of decision, such as a patient, into which rows were combined."""
        self.unread_units: Sequence[str] = ()
        """The names of unused columns of a file that seem to name clusters."""
        self._clusters: tuple[str, ...] = self.default_clusters
        """The columns of clusters: none if rows are independent, and two if clusters are crossed."""
        self._is_merged = False
        """Whether `merge` has joined rows of the same model from several evaluations."""
        self._repeats = Repeats()
        self._layout = SumLayout(self.chosen)

    def update(
        self,
        preds: RowValues | Mapping[str, RowValues],
        target: RowValues,
        *,
        groups: GroupsByColumn | None = None,
        clusters: Sequence[object] | Tensor | None = None,
        weights: Sequence[float] | Tensor | None = None,
        frequencies: Sequence[int] | Tensor | None = None,
        costs: Tensor | None = None,
        ignore_index: int | None = None,
    ) -> None:
        """Add a batch of rows.

        The arguments are as in `evaluate`; ``preds`` may be a dictionary of several models' predictions for the same
        rows. Two columns of clusters are not accepted here: `evaluate` takes them.

        Raises:
            ValueError: If an argument is one that `evaluate` refuses, or if batches have different columns.
        """
        if isinstance(clusters, Mapping):
            raise InvalidValueError("one_column_of_clusters", "clusters")
        rows = self._checked_rows(
            preds, target, groups, clusters, weights, costs, frequencies, ignore_index
        )
        self.add_all(rows, self.default_clusters if clusters is None else ("clusters",))

    def _checked_rows(
        self,
        preds: Any,
        target: Any,
        groups: Any,
        clusters: Any,
        weights: Any,
        costs: Any,
        frequencies: Any,
        ignore_index: int | None,
    ) -> dict[str, Rows]:
        by_model = preds if isinstance(preds, Mapping) else {MODEL: preds}
        if not by_model:
            raise InvalidValueError("not_empty", "preds")
        groups = {} if groups is None else groups
        if not isinstance(groups, Mapping) or "" in groups:
            raise InvalidValueError("groups_by_column", "groups", groups)
        labels, is_left_out = self._labels(target, ignore_index)
        checked = self._checked_predictions(by_model, labels)
        number = len(labels)
        probs, flat_labels = next(iter(checked.values()))
        positions = len(probs) // max(1, number)
        if positions > 1 and not self.chosen.has_positions:
            raise InvalidValueError("needs_positions", "has_positions")
        # All columns are checked before a group gets a new code, so that a refused batch leaves no trace.
        group_names = {
            column: row_names(column, names, number) for column, names in groups.items()
        }
        ids = _ids_of_clusters(clusters, number)
        if costs is not None:
            costs = self._checked_costs(costs, flat_labels, labels.shape)
        weights = None if weights is None else row_weights(weights, number)
        frequencies = None if frequencies is None else row_frequencies(frequencies, number)
        codes = {
            column: self.assign_codes(column, names)
            for column, names in group_names.items()
        }
        # What is known of samples is repeated for each position; predictions and labels are of positions already.
        of_samples = Rows(
            probs=ids,  # is replaced below, as the target is
            target=ids,
            ids=ids,
            groups=codes,
            weights=weights,
            frequencies=frequencies,
        )
        of_positions = of_samples.at(torch.arange(number).repeat_interleave(positions))
        rows = {
            name: of_positions._replace(probs=probs, target=target, costs=costs)
            for name, (probs, target) in checked.items()
        }
        if not is_left_out.any():
            return rows
        kept = ~is_left_out.flatten().cpu()
        ids = of_positions.ids[kept]
        if clusters is None:  # identifiers are the places of samples, without gaps
            ids = ids.unique(return_inverse=True)[1]  # type: ignore[no-untyped-call]
        return {
            name: of_model.at(kept)._replace(ids=ids) for name, of_model in rows.items()
        }

    def _labels(self, target: Any, ignore_index: int | None) -> tuple[Tensor, Tensor]:
        """Return the labels as numbers, and bool of their shape: whether a label is ``ignore_index``, so left out."""
        names = self.class_names
        label_by_name = {name: label for label, name in enumerate(names)}
        labels = as_numbers(
            "target", in_class_order("target", target, names), label_by_name
        )
        if ignore_index is None:
            return labels, torch.zeros_like(labels, dtype=torch.bool)
        require(
            not self.chosen.is_soft, "none_for_soft_labels", "ignore_index", ignore_index
        )
        is_left_out = labels == ignore_index
        # Rows that will be left out get any class, so that all labels are valid.
        return labels.masked_fill(is_left_out, 0), is_left_out

    def _checked_predictions(
        self, by_model: Mapping[str, Any], labels: Tensor
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """Return the predictions of each model, and the labels, both flat, once they have passed all checks."""
        checked = dict[str, tuple[Tensor, Tensor]]()
        for name, of_model in by_model.items():
            try:
                if self.chosen.is_decided:
                    preds = as_numbers("preds", of_model, self._decisions)
                else:
                    in_order = in_class_order("preds", of_model, self.class_names)
                    preds = as_tensor(in_order, "preds")
                checked[str(name)] = self.chosen.checked(preds, labels)
            except InvalidValueError as error:
                if len(by_model) > 1 and error.argument == "preds":
                    error.argument = f"preds[{name!r}]"
                raise
        return checked

    def _checked_costs(
        self, costs: Any, flat_labels: Tensor, shape_of_labels: Sequence[int]
    ) -> Tensor:
        """Return the costs of decisions for each row or position, (M, C); ``flat_labels`` are those of (M,) rows."""
        dimensions_of_samples = 2 if self.chosen.is_soft else 1  # (N, C) or (N,)
        positions = shape_of_labels[dimensions_of_samples:]
        shape = (shape_of_labels[0], len(self.class_names), *positions)
        in_order = in_class_order("costs", costs, self.class_names)
        return row_costs(in_order, flat_labels, shape)

    def add_all(self, rows: Mapping[str, Rows], clusters: tuple[str, ...] = ()) -> None:
        """Add validated rows of each model, as often as their frequencies say; the arguments are as in `add`."""
        for name, of_model in rows.items():
            is_labelled = of_model.probs.is_floating_point() and of_model.target.ndim == 1
            if is_labelled and name == next(iter(self._models), name):
                self._repeats.add(of_model.probs, of_model.target)
            for part in of_model.repeated(is_clustered=bool(clusters)):
                self.add(name, part, clusters)

    def add(self, model: str, rows: Rows, clusters: tuple[str, ...] = ()) -> None:
        """Add validated rows of one model.

        Args:
            model: The name of the model.
            rows: The rows; their groups are codes that `assign_codes` returned.
            clusters: The names of one or, for crossed clusters, two columns of clusters; none if rows are independent.

        Raises:
            ValueError: If batches or models have different columns, or if there are too many groups.
        """
        if model not in self._models:
            clusterings = 3 if len(clusters) > 1 else 1
            self._models[model] = self._new_sums(list(rows.groups), clusterings)
        sums = self._models[model][0]
        has_other_clusters = sums.rows > 0 and clusters != self._clusters
        if sums.columns != list(rows.groups) or has_other_clusters:
            raise InvalidValueError("same_columns", "groups and clusters")
        if self.chosen.is_weighted != (rows.weights is not None):
            raise InvalidValueError("given_for_every_batch", "weights")
        if self.chosen.has_costs != (rows.costs is not None):
            raise InvalidValueError("given_for_every_batch", "costs")
        self._clusters = clusters
        if self._is_numbered:
            of_batch = rows.ids if clusters else torch.arange(len(rows.ids))
            rows = rows._replace(ids=sums.rows + of_batch)
        if rows.weights is not None:
            rows = rows.at(rows.weights > 0)
        ids_by_clustering = rows.ids.unbind(1) if len(clusters) > 1 else [rows.ids]
        for ids, clustered in zip(ids_by_clustering, self._models[model], strict=True):
            clustered.add(rows._replace(ids=ids))

    @property
    def _is_numbered(self) -> bool:
        """Whether the identifiers of rows are the positions of rows or samples, counted over all batches."""
        return self._clusters == self.default_clusters

    def _new_sums(self, columns: Sequence[str], clusterings: int) -> list[ModelSums]:
        return [
            ModelSums(self._layout, columns, keeps_units=self._intervals)
            for _ in range(clusterings)
        ]

    def assign_codes(self, column: str, names: Sequence[str]) -> Tensor:
        """Return the codes (n,) of rows whose groups in ``column`` are ``names`` (n,). A new group gets a new code."""
        known = self._columns.setdefault(column, {})
        return torch.tensor(
            [known.setdefault(name, len(known)) for name in names], dtype=torch.int64
        )

    def merge(self, other: "Evaluation") -> None:
        """Add the sums of another evaluation that has the same arguments, but other rows or other models.

        Raises:
            ValueError: If ``other`` is this one, or has different classes, metrics or columns. Without clusters, also
                if it adds a model after rows were merged: the rows of the new model may be in another order.
        """
        is_another = isinstance(other, Evaluation) and other is not self
        require(is_another, "another_evaluation", "other", type(other).__name__)
        if self._arguments() != other._arguments():
            raise InvalidValueError("same_evaluation", "other")
        if self._models and other._models and self._clusters != other._clusters:
            raise InvalidValueError("clusters_as_here", "other")
        if other._models:
            further = other._models.keys() - self._models.keys() if self._models else ()
            if further and other._is_numbered and (self._is_merged or other._is_merged):
                raise InvalidValueError("no_further_models", "other", sorted(further))
            if other._is_merged or other._models.keys() & self._models.keys():
                self._is_merged = True
            self._repeats.merge(other._repeats)
            self._clusters = other._clusters
        codes = {
            column: self.assign_codes(column, list(names))
            for column, names in other._columns.items()
        }
        for name, [sums] in other._models.items():  # clusters of batches are not crossed
            [known] = self._models.setdefault(name, self._new_sums(sums.columns, 1))
            if known.columns != sums.columns:
                raise InvalidValueError("same_groups", "other")
            first = known.rows if self._is_numbered else 0
            known.merge(sums, codes, first=first)

    def result(self) -> Result[ClassifierScores]:
        """Compute the values, with intervals, for all rows so far and for each group of rows; and compare the models.

        Raises:
            ValueError: If there are no rows, or if models have different rows.
        """
        every = [sums for of_model in self._models.values() for sums in of_model]
        if not any(sums.rows for sums in every):
            raise InvalidValueError("some_row", "result")
        for sums in every:
            sums.flush()
        is_compared = self._intervals and len(self._models) > 1
        if is_compared:
            # All models are joined alike, for each way in which their rows are clustered.
            for of_models in zip(*self._models.values(), strict=True):
                for column in of_models[0].tables:
                    join_alike([sums.tables[column] for sums in of_models])
        values = {name: self._values(name, ALL)[0] for name in self._models}
        models = {name: self._scores(name, ALL, units) for name, units in values.items()}
        groups = list[GroupScores]()
        for column, known in self._columns.items():
            for name in self._models:
                by_code = self._values(name, column)
                codes = {group: code for group, code in known.items() if code in by_code}
                of_groups = {
                    group: self._scores(name, column, by_code[code])
                    for group, code in codes.items()
                }
                groups.append(GroupScores(name, column, models[name], of_groups))
        comparisons = list[Comparison]()
        without = list[NotCompared]()
        if is_compared:
            comparisons, without = compare(values)
        has_concern = self.chosen.concern is not None
        notes = [*self._notes_of_rows(), *map(str, without)]
        if comparisons and self._measures_danger and not has_concern:
            notes.append(REPEATED)
        over_costs = None
        if self.chosen.ranges is not None:
            decided = {name: dict(sums[0].decided) for name, sums in self._models.items()}
            over_costs = OverCosts(self.chosen.ranges, decided)
        cautions = self._cautions(models, next(iter(values.values())))
        return Result(
            models,
            groups,
            comparisons,
            has_concern,
            notes,
            cautions,
            over_costs,
            without=without,
            is_default=self.chosen.is_default,
            has_open_weights=self.chosen.is_weighted,
        )

    @property
    def _measures_danger(self) -> bool:
        """Whether any metric is of dangerous errors or their costs."""
        return any(entry.family == "concern" for entry in self.chosen.entries)

    def _notes_of_rows(self) -> list[str]:
        """Return sentences on dangerous errors, groups, independent units, soft labels and weights."""
        notes = list[str]()
        concern = self.chosen.concern
        is_small = concern is not None and len(concern.classes) <= MAX_MATRIX_CLASSES
        if concern is not None and self._measures_danger and is_small:
            notes.append(about_dangerous(concern))
        for column, known in self._columns.items():
            if len(known) > MANY_GROUPS:
                notes.append(ABOUT_MANY_GROUPS.format(quoted(column), len(known)))
        if self._intervals or len(self._clusters) > 1:
            notes.append(self._about_units())
        if self.chosen.is_soft and self.chosen.is_default:
            notes.append(SHARES if self.chosen.has_shares else DEGREES)
        if self.chosen.is_weighted:
            first = next(iter(self._models.values()))[0]
            notes.append(WEIGHTED.format(first.effective_rows))
        return notes

    def _values(self, model: str, column: str) -> dict[int, UnitValues]:
        """Return the units of each group of a column by its code; those of all rows, with the code 0, for `ALL`."""
        cluster = next(iter(self._clusters), None)
        first, *others = [sums.values(column, cluster) for sums in self._models[model]]
        return {
            code: replace(units, crossed=tuple(other[code] for other in others))
            for code, units in first.items()
        }

    def _about_units(self) -> str:
        """Return a sentence on what the intervals take as independent."""
        if len(self._clusters) > 1:
            names = " and ".join(self._clusters)
            return f"{CONFIDENCE_TEXT} intervals: {names} are crossed clusters: neither is nested in the other."
        if not self._clusters:
            return independence(
                "units" if self.has_units else "rows", *self.unread_units[:1]
            )
        table = next(iter(self._models.values()))[0].tables[ALL]
        clusters = _clusters_in_words(self._clusters[0])
        if table.bits is None:  # clusters were not joined, so their number is known
            clusters = f"{len(table.ids)} {clusters}"
        are_compared = len(self._models) > 1
        return independence_of_clusters(clusters, "rows", are_compared=are_compared)

    def _cautions(
        self, models: Mapping[str, ClassifierScores], units: UnitValues
    ) -> list[EvaluationWarning]:
        """Return the warnings; ``units`` are those of all rows of the first model."""
        first = next(iter(self._models.values()))[0]
        cautions = list[EvaluationWarning]()
        if self._intervals and not self._clusters:
            columns = {name: (known, first.rows) for name, known in self._columns.items()}
            cautions += [*shared(units_among(columns)), *self._repeats.warnings()]
        columns_of_clusters: Sequence[str | None] = self._clusters
        if not self._clusters:  # rows are independent, which is one clustering
            columns_of_clusters = [None]
        # The third of crossed clusterings has the pairs of clusters, which are not counted.
        counted = units.clusterings[: len(columns_of_clusters)]
        for cluster, clustered in zip(columns_of_clusters, counted, strict=True):
            independent = 1.0 if cluster is None else len(clustered.sums) / first.rows
            cautions += self._about_calibration(models, independent)
            cautions += self._about_rare_classes(
                cluster, clustered, first.totals.get(CLASS_ROWS)
            )
        # Crossed clusters may give a warning twice.
        return list({str(caution): caution for caution in cautions}.values())

    def _about_calibration(
        self, models: Mapping[str, ClassifierScores], independent: float
    ) -> list[EvaluationWarning]:
        concern = self.chosen.concern
        warnings = list[EvaluationWarning]()
        # With very many classes, the metric is left out, and a matrix of all costs would be too large.
        is_used = any(entry.name == "least_concern_cost" for entry in self.chosen.entries)
        by_cost = concern is not None and is_used and _costs_differ(concern)
        for name, scores in models.items():
            # Elsewhere, the number that is shown says it, unless it is near 0 because opposite errors cancel.
            low, high = scores.intervals.get("overconfidence", (nan, nan))
            if scores.measured is not None and (by_cost or low <= 0 <= high):
                start = f"{name}: " if len(models) > 1 else ""
                warnings += uncalibrated(scores.measured, independent, start)
        return warnings

    def _about_rare_classes(
        self, cluster: str | None, clustered: UnitValues, counts: Tensor | None
    ) -> list[EvaluationWarning]:
        """Warn of rare classes, by the numbers of rows or, if there are any, of the clusters that are the units."""
        concern = self.chosen.concern
        units = "samples"
        by_unit = clustered.class_rows() if cluster and self._intervals else None
        if by_unit is not None:
            units = f"{_clusters_in_words(str(cluster))} with samples"
            counts = (by_unit > 0).sum(0)
        if concern is None or counts is None:
            return []
        return rare_classes(
            self.class_names, counts, concern.dangerous_pairs(), units=units
        )

    def _arguments(self) -> tuple[object, ...]:
        """Return what must be the same for two evaluations to be merged."""
        # Metrics are compared by name, because their settings may be tensors.
        names = tuple(entry.name for entry in self.chosen.entries)
        return names, self.chosen._replace(entries=()), self._intervals

    def _scores(self, model: str, column: str, units: UnitValues) -> ClassifierScores:
        """Return the scores of a group of rows in ``column``, given its ``units``."""
        sums = self._models[model][0]
        is_all = column == ALL
        scores = scores_of(
            units, confusion=sums.confusion if is_all else None, intervals=self._intervals
        )
        if sums.tables[column].bits is not None:  # a folded unit has several clusters
            scores = replace(scores, clusters={})
        cluster = next(iter(self._clusters), "")
        scores = replace(scores, cluster_name=cluster_plural(cluster))
        if not is_all:
            return scores
        means = {} if units.wide is None else self._layout.probability_means(units.wide)
        return replace(scores, notes=self._notes, **means)


def _names_of_classes(
    class_names: Sequence[str] | int, concern: ConcernSpec | ConcernRange | None
) -> list[str]:
    """Return the names of the classes, which for a number are those of the concern or 0, 1, ...; refuse others."""
    if not isinstance(class_names, int):
        names = list(class_names)
    elif concern is not None and len(concern.classes) == class_names:
        names = list(concern.classes)
    else:
        names = [str(label) for label in range(class_names)]
    if len(set(names)) < len(names):
        raise InvalidValueError("different_names", "class_names", names)
    if concern is not None and list(concern.classes) != names:
        raise InvalidValueError(
            "predicted_classes", "concern", list(concern.classes), classes=names
        )
    return names


def _ids_of_clusters(clusters: Any, rows: int) -> Tensor:
    """Return the identifiers of the clusters of N rows, (N,), or (N, 3) if crossed; without clusters, of the rows."""
    if clusters is None:
        return torch.arange(rows)
    if isinstance(clusters, Mapping):
        return _crossed_ids(clusters, rows)
    return ids_of_names(row_names("clusters", clusters, rows))


def _crossed_ids(clusters: Mapping[str, Any], rows: int) -> Tensor:
    """Return the identifiers of N rows, (N, 3): of the first column of clusters, of the second, and of pairs of both.

    Raises:
        ValueError: If ``clusters`` has not exactly two columns.
    """
    if len(clusters) != 2:
        raise InvalidValueError("two_columns_of_clusters", "clusters", [*clusters])
    first, second = [
        row_names(f"clusters[{column!r}]", names, rows)
        for column, names in clusters.items()
    ]
    pairs = row_names("clusters", list(zip(first, second, strict=True)), rows)
    return torch.stack([ids_of_names(names) for names in (first, second, pairs)], dim=1)


def _clusters_in_words(column: str) -> str:
    """Return the clusters of a column in words, such as "clusters (patient)"."""
    return "clusters" if column == "clusters" else f"clusters ({column})"


def _costs_differ(concern: ConcernSpec) -> bool:
    """Return whether some errors cost more than others."""
    costs = concern.mpcs_weights()
    cost = float(costs[0, 1])
    costs.fill_diagonal_(cost)  # right decisions are no errors
    return bool((costs != cost).any())


def _check_setting(name: str) -> None:
    """Raise a ValueError if no metric has the setting ``name``."""
    measures = [entry for entry in ENTRIES if entry.is_measure]
    for entry in (*measures, *ENTRIES):  # the other metrics import torchmetrics
        if name in entry.accepted_settings:
            return
    known = {setting for entry in ENTRIES for setting in entry.accepted_settings}
    raise InvalidValueError(
        "known_setting", "settings", name, hint=did_you_mean(name, known)
    )
