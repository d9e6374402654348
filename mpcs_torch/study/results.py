"""The results of a study: effects over seeds with their intervals, tables and the figure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import bootstrap

from mpcs_torch.plots.scatter import accuracy_against_danger
from mpcs_torch.study.plans import LOSSES, PLAIN, RECIPE, RECIPE_FACTORS, Plan
from mpcs_torch.study.tasks import CHECKPOINTS, DECISION_FACTORS, Measure, Outcome, Way
from mpcs_torch.tables import Table

Sample = NDArray[np.float64]
"""A value for each seed."""
Effect = tuple[float, float, float]
"""A mean effect and its 95 % bootstrap interval over seeds."""


def paired_effect(ours: Sample, theirs: Sample, *, relative: bool) -> Effect:
    """Compute the difference of means, or the relative reduction, with its 95 % bootstrap interval over seeds."""

    def effect(a: Sample, b: Sample, axis: int = -1) -> Any:
        a_mean, b_mean = a.mean(axis=axis), b.mean(axis=axis)
        return (b_mean - a_mean) / b_mean if relative else a_mean - b_mean

    value = float(effect(ours, theirs))
    if np.ptp(ours - theirs) == 0 and (not relative or np.ptp(theirs) == 0 or (ours == theirs).all()):
        return value, value, value
    interval = bootstrap(
        (ours, theirs), effect, paired=True, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    return value, float(interval.low), float(interval.high)


ACCURACY_ALLOWANCE = 0.0005
"""How much test accuracy a method may cost to be said to help."""
CHOICE_ALLOWANCE = ACCURACY_ALLOWANCE / 2
"""How much it may cost in validation to be chosen: of choices on the edge, half would fall over it in the test."""
PLAIN_WAY = Way()
RECIPE_WAYS = (PLAIN_WAY, *(Way("last", calibrated=True, factor=factor) for factor in RECIPE_FACTORS))


@dataclass(frozen=True)
class Arm:
    """A method of training at a learning rate, and a way of deciding."""

    method: str
    learning_rate: float
    way: Way = PLAIN_WAY

    @property
    def run(self) -> tuple[str, float]:
        """Return how its runs are trained."""
        return self.method, self.learning_rate

    @property
    def title(self) -> str:
        """Return the name of the method, with its checkpoint and decision."""
        selected = " + selector" if self.way.checkpoint == "selected" else ""
        rule = "decision rule" if self.way.calibrated else "uncalibrated decision"
        decided = f" + {rule} ({self.way.factor:g})" if self.way.factor != 1 else ""
        return f"{self.method}{selected}{decided}"


@dataclass(frozen=True)
class Result:
    """An arm on test data over seeds, with 95 % intervals."""

    arm: Arm
    accuracy: float
    dangerous: float
    mpcs: float
    accuracy_gain: Effect
    """Mean difference to the baseline, and its interval."""
    dangerous_cut: Effect
    """Share of the baseline's dangerous errors that are gone, and its interval."""
    mpcs_cut: Effect

    @property
    def helps(self) -> bool:
        """True if dangerous errors are significantly fewer, at a loss of at most 0.05 points of accuracy."""
        return self.dangerous_cut[1] > 0 and self.accuracy_gain[0] >= -ACCURACY_ALLOWANCE


def tune(outcomes: Sequence[Outcome], plan: Plan) -> list[Arm]:
    """Return each method at its learning rate of the highest mean validation accuracy."""
    by_run = _by_run(outcomes)

    def accuracy(arm: Arm) -> float:
        return float(np.mean([one.measures[PLAIN_WAY][0].accuracy for one in by_run[arm.run].values()]))

    return [max((Arm(method, rate) for rate in plan.learning_rates), key=accuracy) for method in plan.methods]


def _by_run(outcomes: Sequence[Outcome]) -> dict[tuple[str, float], dict[int, Outcome]]:
    """Return the outcomes by method and learning rate, and then by seed."""
    by_run: dict[tuple[str, float], dict[int, Outcome]] = {}
    for outcome in outcomes:
        by_run.setdefault((outcome.method, outcome.learning_rate), {})[outcome.seed] = outcome
    return by_run


class Study:
    """The outcomes of the tuned methods of one study, under the same seeds."""

    def __init__(self, outcomes: Sequence[Outcome], tuned: Sequence[Arm], plan: Plan) -> None:
        self._by_run = _by_run(outcomes)
        self.tuned = {arm.method: arm for arm in tuned}
        """Each method at its best learning rate."""
        self.seeds = sorted(set.intersection(*(set(self._by_run[arm.run]) for arm in tuned)))
        self.plan = plan
        plain = [arm for arm in tuned if arm.method in PLAIN]
        self.baseline = max(plain, key=self.validation_accuracy)
        losses = [arm for method in LOSSES if plan.chooses for arm in deciding(self.tuned[method], True)]
        self.recipe = self._safest(losses) if plan.chooses else replace(self.tuned[RECIPE], way=RECIPE_WAYS[-1])
        """The loss and decision that validation picks, or the recommended ones."""

    def arms(self) -> list[Arm]:
        """Return the baseline, every method, and selector and decisions on top of the baseline and of the recipe."""
        arms = [self.baseline, *(arm for method, arm in self.tuned.items() if method != self.baseline.method)]
        for arm in (self.baseline, replace(self.recipe, way=Way())):
            for checkpoint in CHECKPOINTS:
                plain = replace(arm, way=Way(checkpoint))
                arms += [plain, *(self._safest(deciding(plain, calibrated)) for calibrated in (False, True))]
        return list(dict.fromkeys([*arms, self.recipe]))

    def result(self, arm: Arm) -> Result:
        """Compare an arm with the baseline, seed by seed."""
        return _compared(arm, self._measures(arm, 1), self._measures(self.baseline, 1))

    def candidates(self) -> list[Arm]:
        """Return what is compared under fresh seeds: what validation picks, and the recommended recipe."""
        return list(dict.fromkeys([self.recipe, *(replace(self.tuned[RECIPE], way=way) for way in RECIPE_WAYS)]))

    def confirm(self, outcomes: Sequence[Outcome]) -> list[Result]:
        """Compare the candidates with the baseline under seeds that were not used to choose any of them."""
        by_run, seeds = _by_run(outcomes), sorted({outcome.seed for outcome in outcomes})

        def measured(arm: Arm) -> list[Measure]:
            return [by_run[arm.run][seed].measures[arm.way][1] for seed in seeds]

        return [_compared(arm, measured(arm), measured(self.baseline)) for arm in self.candidates()]

    def validation_accuracy(self, arm: Arm) -> float:
        """Return the mean validation accuracy over seeds."""
        return float(np.mean([measure.accuracy for measure in self._measures(arm, 0)]))

    def _safest(self, arms: Sequence[Arm]) -> Arm:
        """Return the arm with the fewest dangerous validation errors among those that lose little accuracy."""
        least = self.validation_accuracy(self.baseline) - CHOICE_ALLOWANCE
        sound = [arm for arm in arms if self.validation_accuracy(arm) >= least]
        if not sound:
            return max(arms, key=self.validation_accuracy)
        return min(sound, key=lambda arm: float(np.mean([m.dangerous for m in self._measures(arm, 0)])))

    def _measures(self, arm: Arm, part: int) -> list[Measure]:
        return [self._by_run[arm.run][seed].measures[arm.way][part] for seed in self.seeds]


def deciding(arm: Arm, calibrated: bool) -> list[Arm]:
    """Return an arm with every decision factor."""
    return [
        replace(arm, way=Way(arm.way.checkpoint, calibrated and factor != 1, factor)) for factor in DECISION_FACTORS
    ]


def _compared(arm: Arm, ours: Sequence[Measure], theirs: Sequence[Measure]) -> Result:
    accuracy, dangerous, mpcs = (
        [np.array([getattr(measure, name) for measure in measures], dtype=np.float64) for measures in (ours, theirs)]
        for name in ("accuracy", "dangerous", "mpcs")
    )
    return Result(
        arm,
        float(accuracy[0].mean()),
        float(dangerous[0].mean()),
        float(mpcs[0].mean()),
        paired_effect(*accuracy, relative=False),
        paired_effect(*dangerous, relative=True),
        paired_effect(*mpcs, relative=True),
    )


def results_table(study: Study, results: Sequence[Result]) -> Table:
    """Return a table of all arms on test data, with differences to the baseline and 95 % intervals."""
    rows = []
    for result in results:
        effects = (result.accuracy_gain, result.dangerous_cut, result.mpcs_cut)
        gain, *cuts = ([100 * value for value in effect] for effect in effects)
        change, mpcs_change = (f"{-mean:+.1f} % [{-high:+.1f}, {-low:+.1f}]" for mean, low, high in cuts)
        points = f"{gain[0]:+.2f} [{gain[1]:+.2f}, {gain[2]:+.2f}]"
        title, helps = result.arm.title, "yes" if result.helps else "no"
        if result.arm == study.baseline:
            title, points, change, mpcs_change, helps = f"{title} (baseline)", "", "", "", ""
        rate, accuracy = f"{result.arm.learning_rate:g}", f"{100 * result.accuracy:.2f}"
        dangerous, mpcs = f"{result.dangerous:.1f}", f"{result.mpcs:.4f}"
        rows.append([title, rate, accuracy, points, dangerous, change, mpcs, mpcs_change, helps])
    header = ["method", "lr", "accuracy %", "points", "dangerous", "change", "MPCS", "change", "helps"]
    return Table(header, rows)


def verdict(study: Study, results: Sequence[Result], confirmed: Sequence[Result]) -> str:
    """Say in sentences what the recipes do under fresh seeds, on which nothing was chosen, and which methods help."""
    helping = [result.arm.title for result in results if result.helps]
    failing = [result.arm.title for result in results if not result.helps and result.arm != study.baseline]
    fresh, rates = study.plan.fresh_seeds, study.plan.learning_rates
    at_edge = [arm.method for arm in study.tuned.values() if arm.learning_rate in (rates[0], rates[-1])]
    lines = [
        f"Under {len(fresh)} fresh seeds, {fresh[0]} to {fresh[-1]}, against the best plain method, "
        f"{study.baseline.title}:"
    ]
    for result in confirmed:
        cut, gain = ([100 * value for value in values] for values in (result.dangerous_cut, result.accuracy_gain))
        picked = " (validation picks it)" if study.plan.chooses and result.arm == study.recipe else ""
        lines.append(
            f"- {result.arm.title}{picked}: {cut[0]:.1f} % [{cut[1]:.1f}, {cut[2]:.1f}] fewer dangerous test errors "
            f"at {gain[0]:+.2f} [{gain[1]:+.2f}, {gain[2]:+.2f}] points of accuracy"
        )
    return "\n".join(
        [
            *lines,
            f"Fewer dangerous errors beyond doubt, at no more than {100 * ACCURACY_ALLOWANCE:g} points of accuracy: "
            f"{'; '.join(helping) or 'none'}.",
            f"Not so: {'; '.join(failing) or 'none'}.",
            f"Best at the lowest or the highest learning rate tried: {'; '.join(at_edge) or 'none'}.",
        ]
    )


def study_figure(study: Study, results: Sequence[Result]) -> Figure:
    """Draw each method that decides for the most probable class, and decision factors of two: plain and recommended."""
    lines = {}
    for arm in (study.baseline, study.tuned[RECIPE]):
        line = [study.result(decided) for decided in deciding(arm, calibrated=True)]
        lines[f"{arm.method}, decision factors 1 to 0.3"] = [(each.dangerous, each.accuracy) for each in line]
    points = {each.arm.title: (each.dangerous, each.accuracy) for each in results if each.arm.way.factor == 1}
    baseline = study.result(study.baseline).accuracy
    return accuracy_against_danger(points, lines, baseline_accuracy=baseline, allowance=ACCURACY_ALLOWANCE)
