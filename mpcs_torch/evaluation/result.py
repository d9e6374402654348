"""The result of an evaluation of classifiers or detectors: values, intervals, groups and comparisons."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from math import nan
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from mpcs_torch.errors import InvalidValueError, did_you_mean, printable, shown
from mpcs_torch.evaluation.first_screen import (
    MAX_CLASS_ROWS,
    DetectorMetric,
    by_family,
    on_screen,
)
from mpcs_torch.evaluation.group_differences import (
    ABOUT_GROUP_DIFFERENCES,
    GroupDifference,
    group_differences,
)
from mpcs_torch.evaluation.outcomes import OverCosts
from mpcs_torch.evaluation.paired_differences import NotCompared
from mpcs_torch.evaluation.requirement_checks import check_requirements
from mpcs_torch.evaluation.requirements import (
    Outcome,
    Requirement,
    demand_all,
)
from mpcs_torch.evaluation.scores import (
    NOT_MEASURED,
    GroupScores,
    Measured,
    Scores,
    interval_text,
    with_ends,
)
from mpcs_torch.functional import Comparison, summarize_comparisons
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.functional.inputs.evaluation_warnings import (
    EvaluationWarning as EvaluationWarning,
)
from mpcs_torch.tables import Table, in_digits

if TYPE_CHECKING:  # detectors do not need it
    from mpcs_torch.evaluation.decision_curve import DecisionCurves
    from mpcs_torch.metrics.metric_entry import MetricEntry

ScoresT = TypeVar("ScoresT", bound=Scores)
ABOUT_GROUPS = (
    "Intervals of groups are each of one group alone. The worst of many groups is likely to look worse here than on "
    "new rows, because it was selected by its value: it has no interval, nor have the mean and the spread of groups."
)

ABOUT_MANY_CLASSES = "The rates of each of so many classes are in --json, or in to_frame()."
ABOUT_CLASSES = (
    "Tables of {} classes: --all, or print(result.first.class_table()), shows them."
)
MAX_LINES = 18
"""The maximum number of table rows that a notebook or a console shows at first."""
MAX_PANELS = 6
"""The maximum number of metrics that a plot shows by default."""
MAX_GROUPS = 20
"""The maximum number of groups of each column that a plot shows."""
MAX_LEADING = 12
"""The maximum number of comparisons that a table shows, unless those by the first metric are more."""
ALL_ROWS = ("", "")
"""The key of all rows, where other keys are a column and one of its groups."""
ABOUT_RANGES = "Values are at the middle costs. The bounds are for these rows alone: other rows may differ by chance."


@dataclass(frozen=True, repr=False)
class Result(Generic[ScoresT]):
    """The values of models on the same rows, with 95 % intervals, by group and class, and comparisons of models.

    ``print(result)`` shows all of these as tables.
    """

    models: Mapping[str, ScoresT]
    """The scores of each model on all rows."""
    groups: Sequence[GroupScores] = ()
    """The scores of groups of rows, with one element for each pair of a column of groups and a model."""
    comparisons: Sequence[Comparison] = ()
    has_concern: bool = False
    """Whether the models were evaluated with a concern (costs of errors)."""
    notes: Sequence[str] = ()
    """Sentences on intervals and comparisons."""
    cautions: Sequence[EvaluationWarning] = ()
    """Warnings that values may be misleading."""
    over_costs: OverCosts | None = None
    """Bounds of mean costs, if costs are known as ranges; else None."""
    decision_curves: "DecisionCurves | str" = "they are drawn for files of probabilities."
    """Decision curves for a report of files, or the reason why it has none."""
    read: Sequence[str] = ()
    """One line for each file, which states how the file was read."""
    without: Sequence[NotCompared] = ()
    """The pairs of models that could not be compared by a metric, with the reasons; ``notes`` states them, too."""
    is_default: bool = False
    """Whether metrics were not named, so that texts show the most important ones."""
    has_open_weights: bool = False
    """Whether rows have weights of which the largest possible one is not known, as it is for shares of classes."""

    @property
    def first(self) -> ScoresT:
        """The scores of the first model on all rows."""
        return next(iter(self.models.values()))

    def scores(
        self, model: str | None = None, group: tuple[str, str] | None = None
    ) -> Scores:
        """Return the scores of a model, or of a group of its rows.

        Args:
            model: The name of the model; optional if there is only one.
            group: A column and one of its groups, such as ``("site", "north")``. Default: all rows.

        Raises:
            ValueError: If there is no such model or group.
        """
        if model is None and len(self.models) == 1:
            model = next(iter(self.models))
        if model is None or model not in self.models:
            raise InvalidValueError("one_of", "model", model, choices=list(self.models))
        groups = self.by_group(model)
        all_rows = groups.pop(ALL_ROWS)
        if group is None:
            return all_rows
        wanted = None
        if isinstance(group, tuple) and len(group) == 2:
            wanted = (group[0], str(group[1]))  # a group may be named by a number
        if wanted is None or wanted not in groups:
            raise InvalidValueError("one_of", "group", group, choices=list(groups))
        return groups[wanted]

    def by_group(self, model: str) -> dict[tuple[str, str], Scores]:
        """Return the scores of a model on all rows, with the key `ALL_ROWS`, and of groups by column and name."""
        scores: dict[tuple[str, str], Scores] = {ALL_ROWS: self.models[model]}
        for groups in self.groups:
            if groups.model == model:
                scores |= {(groups.column, name): of for name, of in groups.groups.items()}
        return scores

    def value(
        self, metric: str, model: str | None = None, group: tuple[str, str] | None = None
    ) -> float:
        """Return the value of a metric, or of the rate of a class, such as ``"recall[malignant]"``.

        ``model`` and ``group`` select the rows as in `scores`.

        Raises:
            ValueError: If there is no such metric, model or group.
        """
        return self.find(metric, model, group).value

    def interval(
        self, metric: str, model: str | None = None, group: tuple[str, str] | None = None
    ) -> Interval | None:
        """Return the 95 % interval of a value, (low, high), or None if it has none; arguments are as in `value`."""
        return self.find(metric, model, group).interval

    def find(
        self, metric: str, model: str | None = None, group: tuple[str, str] | None = None
    ) -> Measured:
        """Return a value, its interval or None, and the reason if it has no interval; arguments are as in `value`."""
        scores = self.scores(model, group)
        measured = scores.find(metric)
        if measured is not None:
            return measured
        known = [*scores.values, *scores.by_class()]
        base, *known_bases = [name.partition("[")[0] for name in (metric, *known)]
        similar = did_you_mean(metric, known)
        way = self._way_to(base)
        # If the rate of another class was measured, the class may be misspelled.
        is_of_class = "[" in metric or way is None
        hints = [similar, way] if base in known_bases and is_of_class else [way, similar]
        hint = next((hint for hint in hints if hint), "")
        raise InvalidValueError("measured", "metric", metric, known=known, hint=hint)

    def _way_to(self, metric: str) -> str | None:
        """Return a sentence on how to request ``metric``; None if it is not a registered metric."""
        from mpcs_torch.metrics.named_metrics import (  # takes seconds to import
            BY_NAME,
            OF_CLASS,
        )

        if metric not in BY_NAME and metric not in OF_CLASS:
            return None
        is_of_concern = (
            metric in BY_NAME
            and BY_NAME[metric].family == "concern"
            and not self.has_concern
        )
        further = ", and give a concern (--concern)" if is_of_concern else ""
        return f"add it to metrics (--metrics){further}."

    def require(
        self,
        *requirements: Requirement | str,
        approximate: bool = False,
        looks: int = 1,
        max_weight: float | None = None,
    ) -> list[Outcome]:
        """Test requirements such as ``"recall[malignant] > 0.98"`` (`Requirement`), and return their outcomes.

        A bound must keep the limit. It allows for a row (or cluster) as bad as any can be, which the rows may lack by
        chance. A metric without a range, such as cross entropy or a Metric of your own, has no bound. With
        ``approximate``, the end of its 95 % interval is tested instead.

        If you will test up to ``looks`` times, with more rows or other models on the same rows, a violating model
        passes any of the tests in at most 2.5 %: each bound has the confidence 1 - 0.05 / looks. Fix the number
        beforehand.

        If rows were given weights, ``max_weight`` is the largest weight that a further row, or cluster, may have: with
        weights of 1 / (sampling probability), 1 / the lowest probability. Without it, there is no bound.

        Raises:
            RequirementError: If a requirement is not met.
            ValueError: If there are no requirements, or one of them names a metric that was not measured.
        """
        outcomes = self.check(
            *requirements, approximate=approximate, looks=looks, max_weight=max_weight
        )
        demand_all(outcomes)
        return outcomes

    def check(
        self,
        *requirements: Requirement | str,
        approximate: bool = False,
        looks: int = 1,
        max_weight: float | None = None,
    ) -> list[Outcome]:
        """Test each requirement for each model, on all rows and in each group; models used as references are skipped.

        ``approximate``, ``looks`` and ``max_weight`` are as in `require`.

        Raises:
            ValueError: If there are no requirements, or one of them names a metric that was not measured.
        """
        return check_requirements(
            self,
            requirements,
            approximate=approximate,
            looks=looks,
            max_weight=max_weight,
        )

    def sections(self) -> dict[str, Table]:
        """Return tables of all metrics: one if they were named, else one for each family, by its name."""
        if self.names_shown is None:
            return {"": self.table()}
        return {
            family: self.table(names) for family, names in by_family(self.entries).items()
        }

    @property
    def entries(self) -> "list[MetricEntry | DetectorMetric]":
        """The metrics of all models."""
        by_name = dict[str, "MetricEntry | DetectorMetric"]()
        for scores in self.models.values():
            by_name |= {entry.name: entry for entry in scores.entries}
        return list(by_name.values())

    @property
    def names_shown(self) -> list[str] | None:
        """The names of the metrics that texts show unless all are asked for; None if all are shown."""
        if not self.is_default:
            return None
        few = on_screen(self.entries)
        return few if 0 < len(few) < len(self.entries) else None

    def table(self, names: Sequence[str] | None = None) -> Table:
        """Return a table with a row for each metric in ``names`` (default: all), and a column for each model."""
        if len(self.models) == 1:
            return self.first.table(names)
        if names is None:
            names = list[str]()
            for scores in self.models.values():
                names += [name for name in scores.values if name not in names]
        rows = list[list[str]]()
        for name in names:
            cells = [_cell(scores, name) for scores in self.models.values()]
            rows.append([name, *cells])
        return Table(["metric", *self.models], rows)

    def _start(self, model: str) -> str:
        """Return the beginning of sentences on a model: its name, if there are several models."""
        return f"{model}: " if len(self.models) > 1 else ""

    def _about_hidden(self, names: Collection[str]) -> str:
        """Return a sentence on the metrics that are not shown, as those with ``names`` are."""
        hidden = [entry for entry in self.first.entries if entry.name not in names]
        families = [family for family in by_family(hidden) if family != "detectors"]
        of = f" of {', '.join(families)}" if families else ""
        way = "--all shows" if self.read else "to_frame(), or --all of a command, has"
        return f"{len(hidden)} more metrics{of}: {way} them."

    def _explained(self, names: Sequence[str]) -> Table:
        """Return the table of some metrics; for one model, with a column that says what each metric is."""
        table = self.table(names)
        if len(self.models) > 1 or not table.rows:
            return table
        computes = {
            entry.name: getattr(entry, "computes", "") for entry in self.first.entries
        }
        if not any(computes[name] for name in names):
            return table
        rows = [[*row, computes[name]] for row, name in zip(table.rows, names, strict=True)]
        return Table([*table.header, "what it is"], rows)

    def all_notes(self, only: Collection[str] | None = None) -> list[str]:
        """Return sentences on how rows were read, on metrics with no value or no interval, and on the intervals.

        If given, ``only`` are the names of the metrics that are shown.
        """
        models_of_remark = dict[str, list[str]]()
        for name, scores in self.models.items():
            for remark in scores.remarks(only):
                models_of_remark.setdefault(remark, []).append(name)
        notes = list[str]()
        if len(self.models) == 1:
            notes += self.first.table_remarks()
        for remark, models in models_of_remark.items():
            is_of_all = len(models) == len(self.models)
            notes.append(remark if is_of_all else f"{', '.join(models)}: {remark}")
        notes += self.notes
        if any(groups.has_intervals for groups in self.groups):
            notes.append(ABOUT_GROUPS)
        return notes

    def warnings(self) -> list[str]:
        """Return the warnings with their codes, and each model's notes on metrics that were left out."""
        warnings = [str(caution) for caution in self.cautions]
        for name, scores in self.models.items():
            warnings += [f"{self._start(name)}{note}" for note in scores.notes]
        return warnings

    def muted(self, *codes: str) -> Self:
        """Return the result without the warnings that have these codes, such as ``"E4"``."""
        return replace(
            self,
            cautions=[caution for caution in self.cautions if caution.code not in codes],
        )

    def parts(self, *, everything: bool = False) -> list[Table | str]:
        """Return all tables and sentences in the order in which they are printed.

        Unless metrics were named, or ``everything`` is asked for, the table of values shows the most important metrics.
        """
        names = None if everything else self.names_shown
        return [
            self._head(),
            *self._parts_of_values(names),
            *self._parts_below_values(names, everything=everything),
        ]

    def _head(self) -> str:
        """Return how files were read, and the number of rows."""
        return "\n".join([*map(printable, self.read), self.first.headline()])

    def _parts_of_values(self, names: Sequence[str] | None) -> list[Table | str]:
        """Return the table of the values in ``names``, with a sentence on the others; by default, tables of all."""
        if names is not None:
            return [self._explained(names), self._about_hidden(names)]
        parts = list[Table | str]()
        for family, table in self.sections().items():
            if family:
                parts.append(f"Metrics: {family}")
            parts.append(table)
        return parts

    def _parts_below_values(
        self, names: Sequence[str] | None, *, everything: bool
    ) -> list[Table | str]:
        """Return what is printed below the values in ``names`` (default: all)."""
        parts = list[Table | str]()
        if self.over_costs is not None:
            parts += [
                self.over_costs.table(),
                printable(" ".join([ABOUT_RANGES, *self.over_costs.sentences()])),
            ]
        parts += map(printable, self.all_notes(names))
        for name, scores in self.models.items():
            parts += self._parts_of_classes(name, scores, everything=everything)
        if self.comparisons:
            parts += self._parts_of_comparisons()
        for groups in self.groups:
            parts += [
                printable(f"{groups.model}, by {groups.column}, {groups.order()}"),
                groups.table(),
            ]
            parts += [printable(sentence) for sentence in groups.about_worst()]
        for column, differences in self.group_differences.items():
            parts += [
                printable(f"Differences by {column}"),
                group_difference_table(differences),
                ABOUT_GROUP_DIFFERENCES,
            ]
        return parts

    def _parts_of_classes(
        self, model: str, scores: Scores, *, everything: bool
    ) -> list[Table | str]:
        """Return a model's tables of decisions by class; for large ones, a sentence, unless ``everything`` is true."""
        title = f"{model}, decisions by class" if len(self.models) > 1 else ""
        parts = scores.class_parts(printable(title))
        large = [
            part
            for part in parts
            if isinstance(part, Table) and len(part.rows) > MAX_CLASS_ROWS
        ]
        if large and not everything:
            return [ABOUT_CLASSES.format(len(large[-1].rows))]
        if not parts and len(self.models) == 1 and scores.by_class():
            return [ABOUT_MANY_CLASSES]
        return parts

    def _parts_of_comparisons(self) -> list[Table | str]:
        """Return the table of the first comparisons, and a verdict by each metric."""
        rows, others = leading(self.comparisons)
        parts = list[Table | str]([comparison_table(rows)])
        if others:
            listed = ", ".join(others)
            parts.append(f"p-values are corrected for these rows and those of {listed}.")
        parts.append("\n".join(summarize_comparisons(self.comparisons)))
        return parts

    @cached_property
    def group_differences(self) -> dict[str, list[GroupDifference]]:
        """The differences of models in each group of rows, by column; empty if models were not compared.

        The metric is the one that ranks the groups, if models are compared by it; else the first of the comparisons.
        """
        if not self.comparisons or not self.groups:
            return {}
        by_metric = {row.by.metric: row.by for row in self.comparisons}
        first = self.comparisons[0].by
        return group_differences(
            self.groups, by_metric.get(self.groups[0].ranked_by, first)
        )

    def __str__(self) -> str:
        warnings = [printable(f"warning: {warning}") for warning in self.warnings()]
        return "\n\n".join(
            part.markdown() if isinstance(part, Table) else part
            for part in [*self.parts(), *warnings]
        )

    def __repr__(self) -> str:
        """Return the first lines of the printed text; a notebook shows `_repr_html_` instead."""
        lines = [
            *self.first.headline().splitlines(),
            *self.table(self.names_shown).markdown().splitlines(),
        ]
        if len(lines) > MAX_LINES:
            lines = [*lines[:MAX_LINES], "..."]
        return "\n".join(
            [*lines, "print(result) shows groups, classes, comparisons and notes, too"]
        )

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the table of values, and everything else in a collapsed section."""
        whole = self.table()
        names = self.names_shown
        if names is None:
            first = Table(whole.header, whole.rows[:MAX_LINES])
            rest = Table(whole.header, whole.rows[MAX_LINES:])
        else:
            first = self.table(names)
            rest = whole
        parts = self._parts_below_values(names, everything=False)
        if rest.rows:
            parts.insert(0, rest)
        warnings = [printable(f"warning: {warning}") for warning in self.warnings()]
        alerts = "".join(f"<p><strong>{escape(text)}</strong></p>" for text in warnings)
        content = "".join(map(_html, parts))
        folded = f"<details><summary>groups, classes, comparisons, notes</summary>{content}</details>"
        return f"{_html(self._head())}{first._repr_html_()}{alerts}{folded}"

    def plot(self, names: Sequence[str] | str | None = None) -> Any:
        """Plot values with their intervals, for all rows and each group, and the differences between models.

        Args:
            names: The metrics, or rates of a class such as ``recall[malignant]``. Default: up to 6 metrics by which
                models are compared; without comparisons, the first metrics with intervals.

        Returns:
            The pyplot figure, and its axes: a single ``Axes``, or a list of several.

        Raises:
            ModuleNotFoundError: If matplotlib is missing.
            ValueError: If there is no such metric.
        """
        from mpcs_torch.metrics.base import drawing_on

        if names is None:
            names = self._main_metrics()
        elif isinstance(names, str):
            names = [names]
        whole = {name: [self.find(name, model) for model in self.models] for name in names}
        with drawing_on(None) as on:
            from mpcs_torch.plots.forest import Panel, result_figure

            rows = self._rows_of_plot()
            panels = list[Panel]()
            for name in names:
                values = {"all rows": [_effect(measured) for measured in whole[name]]}
                for row, of_models in rows.items():
                    values[row] = [
                        _effect(scores.find(name) if scores is not None else None)
                        for scores in of_models
                    ]
                differences = dict[str, tuple[float, float, float]]()
                for compared in self.comparisons:
                    if compared.by.metric == name:
                        paired = compared.paired
                        effect = paired.difference, paired.low, paired.high
                        differences[f"{compared.second} - {compared.first}"] = effect
                panels.append(Panel(name, values, differences))
            figure = result_figure(panels, list(self.models), on=on)
        axes = figure.axes
        return figure, axes[0] if len(axes) == 1 else axes

    def _main_metrics(self) -> list[str]:
        """Return the metrics by which models are compared; without comparisons, the first metrics with intervals."""
        compared = list(dict.fromkeys(row.by.metric for row in self.comparisons))
        if compared:
            return compared[:MAX_PANELS]
        if self.groups:
            names = self.groups[0].main_metrics()
        else:
            all_rows = GroupScores("", "", self.first, {})
            names = list(all_rows.directions)
        with_interval = [name for name in names if name in self.first.intervals]
        return (with_interval or names)[:MAX_PANELS]

    def _rows_of_plot(self) -> dict[str, list[Scores | None]]:
        """Return the models' scores by group to plot: up to 20 groups of each column, the first model's worst first."""
        rows = dict[str, list[Scores | None]]()
        columns = dict.fromkeys(groups.column for groups in self.groups)
        for column in columns:
            by_model = {
                groups.model: groups for groups in self.groups if groups.column == column
            }
            worst = next(iter(by_model.values())).worst_first()
            for name in worst[:MAX_GROUPS]:
                row = name if len(columns) == 1 else f"{column}: {name}"
                rows[row] = [by_model[model].groups.get(name) for model in self.models]
            if len(worst) > MAX_GROUPS:
                rows[f"and {len(worst) - MAX_GROUPS} others"] = [None] * len(self.models)
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return the whole result as dictionaries, lists, strings and numbers, for `json`."""
        plain: dict[str, Any] = {"read": list(self.read)} if self.read else {}
        plain |= self.first.about()
        if len(self.models) == 1:
            plain |= self.first.to_dict()
        else:
            plain["models"] = {
                name: scores.to_dict() for name, scores in self.models.items()
            }
        if notes := self.all_notes():
            plain["notes"] = notes
        if self.over_costs is not None:
            plain["over_costs"] = self.over_costs.to_dict()
        if self.cautions:
            plain["warnings"] = [
                {"code": each.code, "warning": each.sentence, "page": each.page}
                for each in self.cautions
            ]
        if self.comparisons:
            plain["comparisons"] = [_plain(row) for row in self.comparisons]
            plain["verdicts"] = summarize_comparisons(self.comparisons)
        if self.groups:
            plain["groups"] = [groups.to_dict() for groups in self.groups]
        if by_column := self.group_differences:
            plain["group_differences"] = [
                {"column": row.column, "group": row.group, **_plain(row.comparison)}
                for rows in by_column.values()
                for row in rows
            ]
        return plain

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each model, group and metric, with the value and its interval.

        Rates of classes are metrics such as ``recall[malignant]``. For the difference between two models, ``model`` is
        ``"B - A"``, ``column`` is ``"difference"``, and there are p-values.

        Raises:
            ModuleNotFoundError: If pandas is missing.
        """
        import pandas as pd  # type: ignore[import-untyped]  # an extra that mypy does not know

        # All rows first, then the groups of all models, column by column.
        parts: list[tuple[str, str, str, Scores]] = [
            (model, "", "", scores) for model, scores in self.models.items()
        ]
        for groups in self.groups:
            parts += [
                (groups.model, groups.column, name, scores)
                for name, scores in groups.groups.items()
            ]
        rows = list[tuple[Any, ...]]()
        rates = list[tuple[Any, ...]]()
        for model, column, group, scores in parts:
            for name in {**scores.values, **scores.by_class()}:
                effect = _effect(scores.find(name))
                of_kind = rows if name in scores.values else rates
                of_kind.append((model, column, group, name, *effect, nan, nan))
        rows += rates
        for row in self.comparisons:
            models = f"{row.second} - {row.first}"
            paired = row.paired
            effect = (paired.difference, paired.low, paired.high)
            p_values = (paired.p_value, row.adjusted_p_value)
            rows.append((models, "difference", "", row.by.metric, *effect, *p_values))
        numbers = ["value", "low", "high", "p_value", "adjusted_p_value"]
        return pd.DataFrame(rows, columns=["model", "column", "group", "metric", *numbers])


def _plain(row: Comparison) -> dict[str, Any]:
    return {
        "metric": row.by.metric,
        "measure": row.measure,
        "systems": [row.first, row.second],
        **row.paired._asdict(),
        "adjusted_p_value": row.adjusted_p_value,
        "verdict": row.verdict,
    }


def _effect(measured: Measured | None) -> tuple[float, float, float]:
    """Return a value and the two ends of its interval, each NaN if missing."""
    measured = measured or NOT_MEASURED
    low, high = measured.interval or (nan, nan)
    return measured.value, low, high


def _cell(scores: Scores, name: str) -> str:
    if name not in scores.values:
        return ""
    return with_ends(in_digits(scores.values[name], 4), scores.intervals.get(name))


def _html(part: Table | str) -> str:
    if isinstance(part, Table):
        return part._repr_html_()
    return f"<p>{escape(part)}</p>".replace("\n", "<br>")


def leading(comparisons: Sequence[Comparison]) -> tuple[list[Comparison], list[str]]:
    """Return the comparisons by the first metrics, up to `MAX_LEADING`, and the names of the other metrics."""
    by_measure: dict[str, list[Comparison]] = {}
    for row in comparisons:
        by_measure.setdefault(row.measure, []).append(row)
    kept = list[Comparison]()
    others = list[str]()
    for measure, rows in by_measure.items():
        fits = not kept or len(kept) + len(rows) <= MAX_LEADING
        if fits and not others:
            kept += rows
        else:
            others.append(measure)
    return kept, others


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """Return a table of comparisons, with a row for each metric and pair of models or detectors."""
    rows = []
    for row in comparisons:
        paired = row.paired
        rows.append(
            [
                row.measure,
                row.first,
                row.second,
                in_digits(paired.difference, 4),
                interval_text((paired.low, paired.high)),
                f"{paired.p_value:.2g}",
                f"{row.adjusted_p_value:.2g}",
            ]
        )
    return Table(["metric", "A", "B", "B - A", CONFIDENCE_TEXT, "p", "p, corrected"], rows)


def group_difference_table(rows: Sequence[GroupDifference]) -> Table:
    """Return a table of differences in the groups of a column, with a row for each group and pair of models."""
    compared = comparison_table([row.comparison for row in rows])
    named = zip(rows, compared.rows, strict=True)
    cells = [[shown(row.group, 40), *others] for row, others in named]
    return Table([shown(rows[0].column, 40), *compared.header], cells)
