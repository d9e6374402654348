"""Decision curves: the net benefit of models over thresholds, beside acting on all samples and on none."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from math import log, nan
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernRange, ConcernSpec
from mpcs_torch.errors import quoted, require
from mpcs_torch.evaluation.chosen import known_classes
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.evaluation import Groups, Predictions
from mpcs_torch.evaluation.in_memory import evaluate
from mpcs_torch.evaluation.result import Result
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.evaluation.scores import Scores
from mpcs_torch.functional.concern.net_benefit import implied_thresholds
from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.functional.quality.scores import is_in
from mpcs_torch.metrics.register import OF_CLASS, MetricEntry
from mpcs_torch.tables import in_digits

THRESHOLDS, WIDER = 13, log(4)
"""The number of thresholds of a curve, and how far their log-odds go beyond those that costs imply."""
MAX_GROUPS = 8
"""The maximum number of groups of a column for which a report has curves."""


class CurveScale(NamedTuple):
    """The classes to act on, and the thresholds of decision curves."""

    of: str
    """The name of the class, or of the group of classes."""
    classes: tuple[int, ...]
    others: tuple[int, ...]
    implied: tuple[float, float]
    """The lowest and the highest threshold that the costs imply."""

    @property
    def thresholds(self) -> list[float]:
        """The thresholds, in ascending order: those that the costs imply, and some beyond."""
        first, last = torch.tensor(self.implied, dtype=torch.float64).logit().tolist()
        return torch.linspace(first - WIDER, last + WIDER, THRESHOLDS, dtype=torch.float64).sigmoid().tolist()

    def metrics(self) -> list[MetricEntry]:
        """Return, for each threshold, the net benefit of acting on the classes, and that of acting on the others.

        The second, at the opposite threshold and times the odds of the threshold, is the benefit over acting on all.
        """
        entry, metrics = OF_CLASS["net_benefit"], list[MetricEntry]()
        for threshold in self.thresholds:
            for classes, at in ((self.classes, threshold), (self.others, 1 - threshold)):
                settings = {"classes": classes, "threshold": at}
                metrics.append(replace(entry, name=f"{classes} at {at:.8g}", settings=settings))
        return metrics


class DecisionCurves(NamedTuple):
    """The net benefit of models over thresholds, on all rows and in each group."""

    scale: CurveScale
    result: Result[ClassifierScores]
    """The values of `CurveScale.metrics`."""

    def sentences(self) -> list[str]:
        """Return sentences: at which thresholds each model is better than acting on all and on none, also by group."""
        first, *_, last = (in_digits(100 * threshold, 2) for threshold in self.scale.thresholds)
        sentences = [
            f"At {self._better(scores)} (of {first} to {last} %), {name} is better than acting on all samples, and "
            f"than acting on none ({CONFIDENCE_TEXT} at each threshold)."
            for name, scores in self.result.models.items()
        ]
        for groups in self.result.groups:
            by_group = (f"{name} at {self._better(scores)}" for name, scores in groups.groups.items())
            sentences.append(f"{groups.model}, by {groups.column}: {'; '.join(by_group)}.")
        return sentences

    def plot(self, *, on: Any = None) -> Any:
        """Draw the curves of all rows, with intervals, into axes or an empty figure, ``on``; return the figure."""
        from mpcs_torch.plots.decisions import decision_curve_figure

        curves = {name: _values(scores)[::2] for name, scores in self.result.models.items()}
        both, at = _values(self.result.first), self.scale.thresholds
        act_on_all = [one[0] - t / (1 - t) * other[0] for t, one, other in zip(at, both[::2], both[1::2], strict=True)]
        return decision_curve_figure(self.scale.of, at, curves, act_on_all, self.scale.implied, on=on)

    def _better(self, scores: Scores) -> str:
        """Return at which thresholds a model is significantly better than both, such as "thresholds of 1 to 2 %"."""
        lows = [low for _, low, _ in _values(scores)]
        are_better = [min(both) > 0 for both in zip(lows[::2], lows[1::2], strict=True)]
        runs = groupby(zip(are_better, self.scale.thresholds, strict=True), lambda pair: pair[0])
        ranges = [[in_digits(100 * threshold, 2) for _, threshold in run] for is_better, run in runs if is_better]
        texts = [" to ".join(dict.fromkeys((run[0], run[-1]))) for run in ranges]
        return f"thresholds of {', '.join(texts)} %" if texts else "no threshold"


def _values(scores: Scores) -> list[tuple[float, float, float]]:
    """Return the value of each metric, and the ends of its interval (NaN without one)."""
    return [(value, *scores.intervals.get(name, (nan, nan))) for name, value in scores.values.items()]


def decision_curves(
    preds: Predictions | Mapping[str, Predictions],
    target: Tensor,
    *,
    of: str,
    concern: ConcernSpec | ConcernRange,
    groups: Groups | None = None,
    clusters: Sequence[object] | Tensor | None = None,
    weights: Sequence[float] | Tensor | None = None,
) -> DecisionCurves:
    """Compute the net benefit of models over thresholds, beside acting on all samples and on none.

    Args:
        preds: ``(N, C)`` probabilities of a model, or a dictionary of several by name.
        target: ``(N,)`` integer class indices.
        of: The class to act on, or a group of classes of the concern.
        concern: Costs, which imply the threshold f / (m + f): missing a sample costs m, and acting on one needlessly f.
            Curves go from a quarter to four times its odds. A `ConcernRange`, or several classes, may imply a range.
        groups: As in `evaluate`.
        clusters: As in `evaluate`.
        weights: As in `evaluate`.

    Raises:
        ValueError: If an argument breaks its rule above, or if one of the two errors costs nothing.

    References:
        Vickers, Elkin: Decision Curve Analysis: A Novel Method for Evaluating Prediction Models, Medical Decision
        Making 26, 2006.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> target = (torch.rand(500, generator=generator) < 0.2).long()
        >>> malignant = torch.sigmoid(torch.randn(500, generator=generator) + 2 * target - 2.4)
        >>> skin = ConcernSpec(["benign", "malignant"], weights=[[0, 1], [9, 0]])
        >>> curves = decision_curves(torch.stack([1 - malignant, malignant], 1), target, of="malignant", concern=skin)
        >>> print(curves.sentences()[0][:44])
        At thresholds of 4.2 to 31 % (of 2.7 to 31 %
    """
    scale = curve_scale(of, concern)
    rows: dict[str, Any] = {"groups": groups, "clusters": clusters, "weights": weights}
    return DecisionCurves(scale, evaluate(preds, target, metrics=scale.metrics(), class_names=concern.classes, **rows))


def curve_scale(of: str, concern: ConcernSpec | ConcernRange) -> CurveScale:
    """Return the thresholds that costs imply for acting on a class or group of classes; raise a ValueError for none."""
    known = known_classes(concern.classes, concern.middle if isinstance(concern, ConcernRange) else concern)
    require(of in known, f"of must be one of {quoted(list(known))}", quoted(of))
    low, high = concern.bounds() if isinstance(concern, ConcernRange) else [concern.costs()] * 2
    first, last = implied_thresholds(low, high, known[of])
    require(0 < first <= last < 1, "concern must imply thresholds above 0 and below 1", f"{first:g} to {last:g}")
    others = tuple(label for label in range(len(concern.classes)) if label not in known[of])
    return CurveScale(of, known[of], others, (first, last))


class CurveRows:
    """Rows of models, of which only the probability of the classes of a decision curve is kept."""

    def __init__(self, scale: CurveScale) -> None:
        self.scale = scale
        self.rows = dict[str, list[Rows]]()

    def add(self, model: str, rows: Rows) -> None:
        """Add rows of a model."""
        acts, is_true = rows.probs[:, list(self.scale.classes)].sum(1), is_in(rows.target, self.scale.classes)
        kept = rows._replace(probs=torch.stack([1 - acts, acts], dim=1).clamp(min=0), target=is_true.long(), costs=None)
        self.rows.setdefault(model, []).append(kept)

    def curves(self, result: Result[ClassifierScores]) -> DecisionCurves:
        """Return the curves of all rows, and of columns with few groups; ``result`` is the result of the same rows."""
        rows = {model: Rows.joined(parts) for model, parts in self.rows.items()}
        first, scale = next(iter(rows.values())), self.scale._replace(classes=(1,), others=(0,))
        names = {each.column: list(each.groups) for each in result.groups if len(each.groups) <= MAX_GROUPS}
        found = evaluate(
            {model: each.probs for model, each in rows.items()},
            first.target,
            metrics=scale.metrics(),
            groups={column: [of[code] for code in first.groups[column].tolist()] for column, of in names.items()},
            clusters=first.ids if result.first.cluster_name else None,
            weights=first.weights,
        )
        return DecisionCurves(scale, found)


def rows_at_risk(concern: ConcernRange | None) -> CurveRows | None:
    """Return where to keep rows for the curve of the first group of classes that the concern names.

    Without one, the curve is that of the class that is dangerous to miss, although the opposite error is not. The
    result is None if there is no such class, or if there are several, or if costs imply no threshold.
    """
    if concern is None:
        return None
    dangerous = concern.middle.dangerous_pairs()
    at_risk = (dangerous & ~dangerous.T).any(1).nonzero().squeeze(1).tolist()
    names = [name for name, _ in concern.middle.class_groups] or [concern.classes[label] for label in at_risk[:2]]
    if not names or (len(names) > 1 and not concern.middle.class_groups):
        return None
    try:
        return CurveRows(curve_scale(names[0], concern))
    except ValueError:
        return None
