"""Decision curves: the net benefit of models over thresholds, beside acting on all samples and on none."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from math import log, nan
from typing import Any, NamedTuple

import torch

from mpcs_torch.concern import ConcernRange, ConcernSpec
from mpcs_torch.errors import InvalidValueError, listed, require
from mpcs_torch.evaluation.chosen import known_classes
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.scores import GroupScores, Scores
from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.metrics.metric_entry import MetricEntry
from mpcs_torch.metrics.named_metrics import OF_CLASS
from mpcs_torch.tables import in_digits

THRESHOLDS = 13
"""The number of thresholds of a curve."""
WIDER = log(4)
"""The distance by which the log-odds of the thresholds go beyond those that costs imply."""


class CurveScale(NamedTuple):
    """The classes to act on, and the thresholds of decision curves."""

    of: str
    """The name of the class, or of the group of classes."""
    classes: tuple[int, ...]
    others: tuple[int, ...]
    implied: tuple[float, float]
    """The lowest and the highest threshold that the costs imply."""
    passed_over: tuple[str, ...] = ()
    """The other classes and groups of classes that `scale_at_risk` might have chosen."""

    @property
    def thresholds(self) -> list[float]:
        """The thresholds, in ascending order: those that the costs imply, and some beyond."""
        first, last = torch.tensor(self.implied, dtype=torch.float64).logit().tolist()
        log_odds = torch.linspace(
            first - WIDER, last + WIDER, THRESHOLDS, dtype=torch.float64
        )
        return log_odds.sigmoid().tolist()

    def metrics(self) -> list[MetricEntry]:
        """Return, for each threshold, the net benefit of acting on the classes, and that of acting on the others.

        The second, at the opposite threshold and times the odds of the threshold, is the benefit over acting on all.
        """
        entry = OF_CLASS["net_benefit"]
        metrics = list[MetricEntry]()
        for threshold in self.thresholds:
            for classes, at in ((self.classes, threshold), (self.others, 1 - threshold)):
                settings = {"classes": classes, "threshold": at}
                metrics.append(
                    replace(entry, name=f"{classes} at {at:.8g}", settings=settings)
                )
        return metrics


class DecisionCurves(NamedTuple):
    """The net benefit of models over thresholds, on all rows and in each group."""

    scale: CurveScale
    models: Mapping[str, ClassifierScores]
    """The values of `CurveScale.metrics` on all rows, by model."""
    groups: Sequence[GroupScores]
    """These values in each group of rows."""

    def sentences(self) -> list[str]:
        """Return sentences: at which thresholds each model is better than acting on all and on none, also by group."""
        first, *_, last = [
            in_digits(100 * threshold, 2) for threshold in self.scale.thresholds
        ]
        sentences = [
            f"At {self._better(scores)} (of {first} to {last} %), {name} is better than acting on all samples, and "
            f"than acting on none ({CONFIDENCE_TEXT} at each threshold)."
            for name, scores in self.models.items()
        ]
        for groups in self.groups:
            by_group = (
                f"{name} at {self._better(scores)}"
                for name, scores in groups.groups.items()
            )
            sentences.append(f"{groups.model}, by {groups.column}: {'; '.join(by_group)}.")
        if self.scale.passed_over:
            sentences.append(
                f"The curves are for {self.scale.of}, which comes first in the concern; in Python, "
                f"decision_curves(of=) draws those for {listed(self.scale.passed_over)}."
            )
        return sentences

    def plot(self, *, on: Any = None) -> Any:
        """Draw the curves of all rows, with intervals, into axes or an empty figure, ``on``; return the figure."""
        from mpcs_torch.plots.decisions import decision_curve_figure

        thresholds = self.scale.thresholds
        curves = {name: _values(scores)[::2] for name, scores in self.models.items()}
        # Acting on all is the same for each model: its benefit, minus its benefit over acting on all.
        act_on_all = list[float]()
        values = _values(next(iter(self.models.values())))
        for place, threshold in enumerate(thresholds):
            benefit, _, _ = values[2 * place]
            of_others, _, _ = values[2 * place + 1]
            act_on_all.append(benefit - threshold / (1 - threshold) * of_others)
        return decision_curve_figure(
            self.scale.of, thresholds, curves, act_on_all, self.scale.implied, on=on
        )

    def _better(self, scores: Scores) -> str:
        """Return at which thresholds a model is significantly better than both, such as "thresholds of 1 to 2 %"."""
        lows = [low for _, low, _ in _values(scores)]
        better_than_none, better_than_all = lows[::2], lows[1::2]
        lowest = map(min, better_than_none, better_than_all)
        texts = list[str]()
        for is_better, run in groupby(
            zip(lowest, self.scale.thresholds, strict=True), lambda pair: pair[0] > 0
        ):
            ends = [in_digits(100 * threshold, 2) for _, threshold in run]
            if is_better:
                texts.append(" to ".join(dict.fromkeys([ends[0], ends[-1]])))
        return f"thresholds of {', '.join(texts)} %" if texts else "no threshold"


def _values(scores: Scores) -> list[tuple[float, float, float]]:
    """Return the value of each metric, and the ends of its interval (NaN without one)."""
    return [
        (value, *scores.intervals.get(name, (nan, nan)))
        for name, value in scores.values.items()
    ]


def curve_scale(of: str, concern: ConcernSpec | ConcernRange) -> CurveScale:
    """Return the thresholds that costs imply for acting on a class or group of classes; raise a ValueError for none."""
    ranges = concern
    if not isinstance(ranges, ConcernRange):
        ranges = ConcernRange([ranges], [ranges])
    known = known_classes(ranges.classes, ranges.middle)
    require(of in known, "one_of", "of", of, choices=list(known))
    others = [label for label in range(len(ranges.classes)) if label not in known[of]]
    low, high = ranges.bounds()
    lowest, highest = low.amin(0), high.amax(0)
    # Each pair is a class to act on and another class. A miss decides the first as the second; acting needlessly is the
    # reverse. The implied threshold is the cost of acting needlessly, divided by the sum of both costs.
    targets, non_targets = torch.cartesian_prod(
        torch.tensor(known[of]), torch.tensor(others)
    ).unbind(1)
    missed = (targets, non_targets)
    needless = (non_targets, targets)
    first = (lowest[needless] / (lowest[needless] + highest[missed])).amin().item()
    last = (highest[needless] / (highest[needless] + lowest[missed])).amax().item()
    require(0 < first <= last < 1, "implied_thresholds", "concern", [first, last])
    return CurveScale(of, known[of], tuple(others), (first, last))


def scale_at_risk(concern: ConcernSpec | ConcernRange | None) -> CurveScale:
    """Return the scale of the first group of classes that the concern names, or else of the first class at risk.

    A class is at risk if it is dangerous to miss for another class, although the opposite error is not dangerous.

    Raises:
        ValueError: If there is no such class, or if the costs imply no threshold.
    """
    if concern is None:
        raise InvalidValueError("says_which_is_dangerous", "a concern (--concern)")
    spec = concern.middle if isinstance(concern, ConcernRange) else concern
    dangerous = spec.dangerous_pairs()
    at_risk = (dangerous & ~dangerous.T).any(1).nonzero().squeeze(1).tolist()
    names = [name for name, _ in spec.class_groups]
    names += [spec.classes[label] for label in at_risk]
    if not names:
        raise InvalidValueError("class_at_risk", "the concern")
    first, *others = names
    return curve_scale(first, concern)._replace(passed_over=tuple(others))
