"""The metrics of detectors under each condition: which is the worst, and how far apart they are."""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import torch

from mpcs_torch.functional import OperatingPoint, ReversedScoresWarning
from mpcs_torch.functional.detection.errors import missing_kind
from mpcs_torch.scoring.bootstrap import AREA, CLLR, EQUAL_ERROR, H_MEASURE
from mpcs_torch.scoring.detection import score_detection
from mpcs_torch.scoring.detection_scores import DetectionScores
from mpcs_torch.scoring.detectors import Detector
from mpcs_torch.scoring.thresholds import FixedThreshold
from mpcs_torch.scoring.trials import Groups, Trials
from mpcs_torch.tables import Table

HIGHER_IS_BETTER = (AREA, H_MEASURE)
MOST_SHOWN = 40
"""The number of conditions above which a table shows only the worst ones."""


class Conditions(NamedTuple):
    """The metrics of a detector under each condition."""

    detector: str
    column: str
    """The name of the column that tells the condition of each trial."""
    pooled: DetectionScores
    """Of all trials."""
    by_name: dict[str, DetectionScores]
    """By condition, of those with targets and non-targets."""
    incomplete: list[str]
    """Conditions without targets or without non-targets."""

    def table(self) -> Table:
        """Return a row for each condition, with the worst first, then the mean, the spread, and all trials pooled."""
        metrics = self._shown()
        worst = self.worst_first()
        rows = [
            [name, *_sizes(self.by_name[name]), *(f"{_of(self.by_name[name], metric):.4g}" for metric in metrics)]
            for name in worst[:MOST_SHOWN]
        ]
        if len(worst) > MOST_SHOWN:
            rows.append([f"and {len(worst) - MOST_SHOWN} others", *[""] * (2 + len(metrics))])
        for title, summary in self.summaries().items():
            rows.append([title, "", "", *(f"{summary[metric]:.4g}" for metric in metrics)])
        rows.append(["pooled", *_sizes(self.pooled), *(f"{_of(self.pooled, metric):.4g}" for metric in metrics)])
        return Table([self.column, "targets", "non-targets", *metrics], rows)

    def _shown(self) -> list[str]:
        """Return the metrics that fit a table: the equal error rate, Cllr, and costs at fixed thresholds, if any."""
        names = [value.name for value in self.pooled.values]
        fixed = [value.name for value in self.pooled.values if value.cost is not None and "minimum" not in value.name]
        costs = fixed[1:] or [name for name in names if name.startswith("minimum cost")]  # the first is equal errors
        return [EQUAL_ERROR, *(name for name in names if name == CLLR), *costs]

    def worst_first(self) -> list[str]:
        """Return the conditions by their equal error rate, the highest first."""
        return sorted(self.by_name, key=lambda name: -self.value(name, EQUAL_ERROR))

    def value(self, condition: str, metric: str) -> float:
        """Return the value of a metric under a condition."""
        return _of(self.by_name[condition], metric)

    def pooled_value(self, metric: str) -> float:
        """Return the value of a metric on all trials."""
        return _of(self.pooled, metric)

    def summaries(self) -> dict[str, dict[str, float]]:
        """Return the worst value, the mean and the spread (highest minus lowest) of each metric over the conditions."""
        found: dict[str, dict[str, float]] = {"worst": {}, "mean of conditions": {}, "spread": {}}
        for value in self.pooled.values:
            held = torch.tensor([_of(scores, value.name) for scores in self.by_name.values()], dtype=torch.float64)
            low, high = (held.amin().item(), held.amax().item()) if len(held) else (torch.nan, torch.nan)
            found["worst"][value.name] = low if value.name.startswith(HIGHER_IS_BETTER) else high
            found["mean of conditions"][value.name] = held.mean().item()
            found["spread"][value.name] = high - low
        return found


def score_conditions(
    detector: Detector,
    pooled: DetectionScores,
    column: str,
    groups: Groups,
    points: Sequence[OperatingPoint],
    fixed: Sequence[FixedThreshold],
    max_p_fa: float | None = None,
) -> Conditions:
    """Compute the metrics of a detector for each group of its trials, without intervals."""
    by_name, incomplete = {}, []
    ends = groups.codes.bincount(minlength=len(groups.names)).cumsum(0)
    parts = groups.codes.argsort(stable=True).tensor_split(ends[:-1])
    for name, places in zip(groups.names, parts, strict=True):
        trials = Trials(detector.trials.scores[places], detector.trials.labels[places])
        if missing_kind(trials.labels) is not None:
            incomplete.append(name)
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReversedScoresWarning)  # told of all trials; small groups may seem reversed
            by_name[name] = score_detection(
                trials, points, is_llr=detector.is_llr, resamples=0, fixed=fixed, max_p_fa=max_p_fa
            )
    return Conditions(detector.name, column, pooled, by_name, incomplete)


def _of(scores: DetectionScores, metric: str) -> float:
    found = scores.value(metric)
    assert found is not None
    return found


def _sizes(scores: DetectionScores) -> list[str]:
    return [str(int(scores.summary.counts.targets)), str(int(scores.summary.counts.nontargets))]
