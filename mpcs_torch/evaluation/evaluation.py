"""Evaluate classifiers batch by batch, from sums that can be merged."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernRange, ConcernSpec
from mpcs_torch.concern.checks import decision_numbers
from mpcs_torch.errors import did_you_mean, quoted
from mpcs_torch.evaluation.cautions import Repeats, repeating, uncalibrated
from mpcs_torch.evaluation.chosen import DEGREES, SHARES, ChosenMetrics, Metrics, as_entries, choose_metrics
from mpcs_torch.evaluation.classifier_scores import ClassifierScores, cluster_plural
from mpcs_torch.evaluation.classifier_values import scores_of
from mpcs_torch.evaluation.comparisons import compare
from mpcs_torch.evaluation.influence import ABOUT_DIFFERENCES
from mpcs_torch.evaluation.model_sums import ALL, CLASS_ROWS, ModelSums
from mpcs_torch.evaluation.outcomes import OverCosts
from mpcs_torch.evaluation.result import Result
from mpcs_torch.evaluation.rows import Rows, as_numbers, in_class_order
from mpcs_torch.evaluation.scores import GroupScores
from mpcs_torch.evaluation.sum_layout import SumLayout
from mpcs_torch.evaluation.unit_sums import ids_of_names, same_units
from mpcs_torch.evaluation.unit_values import UnitValues
from mpcs_torch.functional.inputs.arrays import as_tensor, no_concern
from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.functional.inputs.evaluation_warnings import MIN_OF_DANGEROUS_CLASS, EvaluationWarning, rare_classes
from mpcs_torch.functional.inputs.groups import row_costs, row_frequencies, row_names, row_weights
from mpcs_torch.metrics.register import ENTRIES

MODEL = "model"
"""The name of the model if there is only one."""
INDEPENDENT = (
    f"{CONFIDENCE_TEXT} intervals assume independent rows; rows that share something, such as a patient, need clusters "
    "(clusters=, or --cluster COLUMN)."
)
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
Groups = Mapping[str, Sequence[object] | Tensor]
Predictions = Sequence[object] | Tensor
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
        intervals: bool = True,
    ) -> None:
        if isinstance(class_names, str):
            raise ValueError(f"class_names must be a list of names, but got {quoted(class_names)}.")
        if concern is not None and not isinstance(concern, ConcernSpec | ConcernRange):
            raise ValueError(f"concern must be a ConcernSpec, but got {no_concern(concern)}")
        names = [str(label) for label in range(class_names)] if isinstance(class_names, int) else list(class_names)
        if len(set(names)) < len(names):
            raise ValueError(f"class_names must differ, but got {quoted(names)}.")
        if concern is not None and isinstance(class_names, int) and len(concern.classes) == class_names:
            names = list(concern.classes)
        if concern is not None and list(concern.classes) != names:
            rule = f"concern must have the {len(names)} classes of the predictions, {quoted(names)}"
            raise ValueError(f"{rule}, but has {quoted(list(concern.classes))}.")
        self.class_names = names
        entries = None if metrics is None else as_entries(metrics)
        of_measures = {name for entry in ENTRIES if entry.is_measure for name in entry.accepted_settings}
        for name in (settings or {}).keys() - of_measures:
            known = {name for entry in ENTRIES for name in entry.accepted_settings}  # imports torchmetrics
            if name not in known:
                meant = did_you_mean(name, known)
                hint = f": {meant}" if meant else "."
                raise ValueError(f"settings must be those of metrics, but got {quoted(name)}{hint}")
        kinds = {"is_soft": is_soft, "is_decided": is_decided, "refers": refers}
        kinds |= {"is_weighted": is_weighted, "has_costs": has_costs}
        self.chosen: ChosenMetrics = choose_metrics(names, concern, entries, settings, **kinds)
        answers = () if self.chosen.concern is None else self.chosen.concern.answers
        self._decisions = decision_numbers(names, answers)
        self._is_default = metrics is None
        self._notes = self.chosen.notes(is_default=self._is_default)
        self._intervals = intervals
        self._models = dict[str, ModelSums]()
        self._columns = dict[str, dict[str, int]]()
        """For each column of groups: the code of each group, by name of the group."""
        self._cluster: str | None = None
        self._clusters_by_class = defaultdict[int, set[int]](set)
        """Identifiers of clusters by class of their rows, at most as many as the warning on rare classes needs."""
        self._is_numbered = True
        """Whether the identifiers of rows are the positions of the rows."""
        self._is_merged = False
        """Whether `merge` has joined rows of the same model from several evaluations."""
        self._repeats = Repeats()
        self._layout = SumLayout(self.chosen)

    def update(
        self,
        preds: Predictions | Mapping[str, Predictions],
        target: Predictions,
        *,
        groups: Groups | None = None,
        clusters: Sequence[object] | Tensor | None = None,
        weights: Sequence[float] | Tensor | None = None,
        frequencies: Sequence[int] | Tensor | None = None,
        costs: Tensor | None = None,
    ) -> None:
        """Add a batch of rows.

        The arguments are as in `evaluate`; ``preds`` may be a dictionary of several models' predictions for the same
        rows. Two columns of clusters are not accepted here: `evaluate` takes them.

        Raises:
            ValueError: If an argument is one that `evaluate` refuses, or if batches have different columns.
        """
        rows = self._checked_rows(preds, target, groups, clusters, weights, costs, frequencies)
        self._add_all(rows, is_clustered=clusters is not None)

    def _checked_rows(
        self, preds: Any, target: Any, groups: Any, clusters: Any, weights: Any, costs: Any, frequencies: Any
    ) -> dict[str, Rows]:
        by_model = preds if isinstance(preds, Mapping) else {MODEL: preds}
        if not by_model:
            raise ValueError("preds must hold at least one model, but is empty.")
        groups = {} if groups is None else groups
        if not isinstance(groups, Mapping) or "" in groups:
            got = quoted(groups) if isinstance(groups, Mapping) else type(groups).__name__
            raise ValueError(f"groups must be a dictionary by column, such as {{'site': sites}}, but got {got}.")
        names = self.class_names
        label_by_name = {name: label for label, name in enumerate(names)}
        labels = as_numbers("target", in_class_order("target", target, names), label_by_name)
        checked = dict[str, tuple[Tensor, Tensor]]()
        for name, each in by_model.items():
            try:
                preds = (
                    as_numbers("preds", each, self._decisions)
                    if self.chosen.is_decided
                    else as_tensor(in_class_order("preds", each, names), "preds")
                )
                checked[str(name)] = self.chosen.checked(preds, labels)
            except ValueError as error:
                if len(by_model) == 1:
                    raise
                raise ValueError(str(error).replace("preds", f"preds[{name!r}]")) from None
        of_rows = {column: row_names(column, each, len(labels)) for column, each in groups.items()}
        if isinstance(clusters, Mapping):
            raise ValueError("clusters must be (N,) names: two columns are for `evaluate`, which has all rows.")
        ids = torch.arange(len(labels))
        if clusters is not None:
            ids = ids_of_names(row_names("clusters", clusters, len(labels)))
        numbers = (
            None if weights is None else row_weights(weights, len(labels)),
            None if costs is None else row_costs(in_class_order("costs", costs, names), len(labels), len(names)),
            None if frequencies is None else row_frequencies(frequencies, len(labels)),
        )
        codes = {column: self.assign_codes(column, each) for column, each in of_rows.items()}
        return {name: Rows(*pair, ids, codes, *numbers) for name, pair in checked.items()}

    def _add_all(self, rows: Mapping[str, Rows], *, is_clustered: bool) -> None:
        self.count_repeats(next(iter(rows.values())))
        for name, of_model in rows.items():
            for part in of_model.repeated(is_clustered=is_clustered):
                self.add(name, part, "clusters" if is_clustered else None, are_numbered=not is_clustered)

    def count_repeats(self, rows: Rows) -> None:
        """Count rows with the scores and the label of another row, for a warning. Call this before `Rows.repeated`."""
        if rows.probs.is_floating_point() and rows.target.ndim == 1:
            self._repeats.add(rows.probs, rows.target)

    def add(self, model: str, rows: Rows, cluster: str | None, *, are_numbered: bool = False) -> None:
        """Add validated rows of one model.

        Args:
            model: The name of the model.
            rows: The rows; their groups are codes that `assign_codes` returned.
            cluster: The column of clusters; None if rows are independent.
            are_numbered: Whether to replace the identifiers of rows by their positions, counted over all batches.

        Raises:
            ValueError: If batches or models have different columns, or if there are too many groups.
        """
        if model not in self._models:
            self._models[model] = ModelSums(self._layout, list(rows.groups), keeps_units=self._intervals)
        sums = self._models[model]
        if list(sums.tables)[1:] != list(rows.groups) or (sums.rows and cluster != self._cluster):
            raise ValueError("groups and clusters must be the same columns in every batch of every model.")
        for column, kind in (("weights", "is_weighted"), ("costs", "has_costs")):
            if getattr(self.chosen, kind) != (getattr(rows, column) is not None):
                raise ValueError(f"{column} must be given for every batch if rows have them ({kind}), else for none.")
        self._cluster, self._is_numbered = cluster, are_numbered
        numbers = torch.arange(sums.rows, sums.rows + len(rows.ids)) if are_numbered else rows.ids
        rows = rows._replace(ids=numbers)
        rows = rows if rows.weights is None else rows.at(rows.weights > 0)
        if cluster is not None and (rows.target.ndim == 1 or self.chosen.has_shares):
            places, classes, _ = rows.by_class()
            for label in set(classes.tolist()):
                if len(known := self._clusters_by_class[label]) < MIN_OF_DANGEROUS_CLASS:
                    known.update(islice(set(rows.ids[places][classes == label].tolist()), MIN_OF_DANGEROUS_CLASS))
        sums.add(rows)

    def assign_codes(self, column: str, names: Sequence[str]) -> Tensor:
        """Return the codes (n,) of rows whose groups in ``column`` are ``names`` (n,). A new group gets a new code."""
        known = self._columns.setdefault(column, {})
        return torch.tensor([known.setdefault(name, len(known)) for name in names], dtype=torch.int64)

    def merge(self, other: "Evaluation") -> None:
        """Add the sums of another evaluation that has the same arguments, but other rows or other models.

        Raises:
            ValueError: If ``other`` has different classes, metrics or columns. Without clusters, also if it adds a
                model after rows were merged: the rows of the new model may be in another order.
        """
        if self._arguments() != other._arguments():
            raise ValueError("other must be an Evaluation with the same classes, concern, metrics and settings.")
        if self._models and other._models and self._cluster != other._cluster:
            raise ValueError("other must have clusters if and only if this Evaluation has them.")
        if other._models:
            further = other._models.keys() - self._models.keys() if self._models else ()
            if further and other._is_numbered and (self._is_merged or other._is_merged):
                rule = f"other must have no further models, but has {quoted(sorted(further))}"
                why = "merged rows have no identifiers, so models may have different orders: update all models in each"
                raise ValueError(f"{rule}: {why} part, or pass clusters.")
            self._is_merged |= bool(other._models.keys() & self._models.keys()) or other._is_merged
            self._repeats.merge(other._repeats)
            self._cluster, self._is_numbered = other._cluster, other._is_numbered
        for label, clusters in other._clusters_by_class.items():
            self._clusters_by_class[label] |= clusters
        codes = {column: self.assign_codes(column, list(names)) for column, names in other._columns.items()}
        for name, sums in other._models.items():
            if name not in self._models:
                self._models[name] = ModelSums(self._layout, list(sums.tables)[1:], keeps_units=self._intervals)
            elif list(self._models[name].tables) != list(sums.tables):
                raise ValueError("other must have the same columns of groups, but does not.")
            self._models[name].merge(sums, codes, first=self._models[name].rows if self._is_numbered else 0)

    def result(self) -> Result[ClassifierScores]:
        """Compute the values, with intervals, for all rows so far and for each group of rows; and compare the models.

        Raises:
            ValueError: If there are no rows, or if models have different rows.
        """
        if not any(sums.rows for sums in self._models.values()):
            raise ValueError("result needs at least one row with a weight above 0.")
        for sums in self._models.values():
            sums.flush()
        groups, notes = list[GroupScores](), list[str]()
        values = {name: sums.values(ALL, self._cluster)[0] for name, sums in self._models.items()}
        models = {name: self._scores(self._models[name], ALL, found) for name, found in values.items()}
        for column, known in self._columns.items():
            for name, sums in self._models.items():
                by_code = sums.values(column, self._cluster)
                codes = {group: code for group, code in known.items() if code in by_code}
                of_groups = {group: self._scores(sums, column, by_code[code]) for group, code in codes.items()}
                groups.append(GroupScores(name, column, models[name], of_groups))
            if len(known) > MANY_GROUPS:
                notes.append(ABOUT_MANY_GROUPS.format(quoted(column), len(known)))
        if self._intervals and self._cluster is not None:
            table = next(iter(self._models.values())).tables[ALL]
            number = f"{len(table.ids)} {_clusters(self._cluster)}" if table.bits is None else _clusters(self._cluster)
            note = f"{CONFIDENCE_TEXT} intervals: {number} are independent, the rows of a cluster are not."
            notes.append(note + (ABOUT_DIFFERENCES if len(models) > 1 else ""))
        elif self._intervals:
            notes.append(INDEPENDENT)
        if self.chosen.is_soft and self._is_default:
            notes.append(SHARES if self.chosen.has_shares else DEGREES)
        if self.chosen.is_weighted:
            notes.append(WEIGHTED.format(next(iter(self._models.values())).effective_rows))
        paired = self._paired(values) if self._intervals and len(models) > 1 else {}
        comparisons, without = compare(paired, is_default=self._is_default) if paired else ([], [])
        has_concern = self.chosen.concern is not None
        is_repeated = not has_concern and any(each.family == "concern" for each in self.chosen.entries)
        notes += [*map(str, without), *([REPEATED] if comparisons and is_repeated else [])]
        over_costs = None
        if self.chosen.ranges is not None:
            over_costs = OverCosts(
                self.chosen.ranges, {name: dict(sums.decided) for name, sums in self._models.items()}
            )
        cautions = self._cautions(models)
        return Result(
            models,
            groups,
            comparisons,
            has_concern,
            notes,
            cautions,
            over_costs,
            without=without,
            is_default=self._is_default,
            paired_units=paired,
            has_open_weights=self.chosen.is_weighted,
        )

    def _paired(self, values: Mapping[str, UnitValues]) -> dict[str, UnitValues]:
        """Return what differences are computed from, by model: the same units of all models."""
        tables = same_units([sums.tables[ALL] for sums in self._models.values()])
        return {
            name: replace(found, sums=table.sums, units=self._layout.units(table.sums, self._cluster))
            for (name, found), table in zip(values.items(), tables, strict=True)
        }

    def _cautions(self, models: Mapping[str, ClassifierScores]) -> list[EvaluationWarning]:
        sums, concern, cautions = next(iter(self._models.values())), self.chosen.concern, list[EvaluationWarning]()
        if self._intervals and self._cluster is None:
            columns = {name: (known, sums.rows) for name, known in self._columns.items()}
            cautions += [*repeating(columns), *self._repeats.warnings()]
        if concern is None:
            return cautions
        if any(entry.name == "least_concern_cost" for entry in self.chosen.entries) and _costs_differ(concern):
            independent = 1.0 if self._cluster is None else len(sums.tables[ALL].ids) / sums.rows
            for name, scores in models.items():
                start = f"{name}: " if len(models) > 1 else ""
                cautions += [] if scores.measured is None else uncalibrated(scores.measured, independent, start)
        units, counts = "samples", sums.totals.get(CLASS_ROWS)
        if self._cluster is not None and self._clusters_by_class:
            units = f"{_clusters(self._cluster)} with samples"
            counts = torch.tensor([len(self._clusters_by_class[label]) for label in range(len(self.class_names))])
        if counts is not None:
            cautions += rare_classes(self.class_names, counts, concern.dangerous_pairs(), units=units)
        return cautions

    def _arguments(self) -> tuple[object, ...]:
        names = tuple(entry.name for entry in self.chosen.entries)  # not their settings, which may be tensors
        return names, self.chosen[1:], self._intervals

    def _scores(self, sums: ModelSums, column: str, found: UnitValues) -> ClassifierScores:
        """Return the scores of a group of rows in ``column``, whose units are ``found``."""
        is_all = column == ALL
        scores = scores_of(found, confusion=sums.confusion if is_all else None, intervals=self._intervals)
        clusters = scores.clusters if sums.tables[column].bits is None else {}  # a folded unit has several clusters
        scores = replace(scores, clusters=clusters, cluster_name=cluster_plural(self._cluster or ""))
        if not is_all:
            return scores
        means = {} if found.wide is None else self._layout.probability_means(found.wide)
        return replace(scores, notes=self._notes, **means)


def _clusters(column: str) -> str:
    return "clusters" if column == "clusters" else f"clusters ({column})"


def _costs_differ(concern: ConcernSpec) -> bool:
    costs = concern.mpcs_weights()
    return bool((costs.fill_diagonal_(float(costs[0, 1])) != costs[0, 1]).any())
