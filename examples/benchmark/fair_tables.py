"""The tables of the fair comparison, from its results as plain values."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from examples.benchmark.fair_runs import LOSSES, PLAIN
from examples.benchmark.measures import Effect, Values, difference, geometric_mean, reduction
from examples.benchmark.results import change, points, rounded
from examples.benchmark.runs import file_name
from mpcs_torch.tables import Table

Result = Mapping[str, Any]
"""The results of a task, as `fair.results_of` yields them."""
ACCURACY, DANGEROUS, HARM, COVERAGE = range(4)
"""The places of the values of `fair.Judged`."""
LIKELY, BY_COST, REFERRING = "most probable class", "by cost", "by cost, with referral"
USUAL = "cross entropy, as usual"
STEPS = (
    ("cross entropy as usual", USUAL, 1, LIKELY),
    ("+ more steps, noise, smoothing", PLAIN, 1, LIKELY),
    ("+ decided by cost", PLAIN, 1, BY_COST),
    ("+ four models", PLAIN, 4, BY_COST),
    ("+ a margin with a floor", "margin with a floor", 4, BY_COST),
)
"""What is added step by step: the words, the loss, the number of models, and the decision."""


def values(result: Result, loss: str, members: int, decision: str) -> Values:
    """Return the values of all seeds: (seeds, 4)."""
    return np.array(result["arms"][loss]["members"][str(members)][decision])


def has(result: Result, loss: str, members: int) -> bool:
    """Return whether a loss was judged with so many models."""
    return loss in result["arms"] and str(members) in result["arms"][loss]["members"]


def effects(ours: Values, theirs: Values) -> tuple[Effect, Effect]:
    """Return the change in accuracy, and the share of dangerous errors that is gone, paired over seeds."""
    gain = difference(ours[:, ACCURACY].tolist(), theirs[:, ACCURACY].tolist())
    return gain, reduction(ours[:, DANGEROUS].tolist(), theirs[:, DANGEROUS].tolist())


def over_tasks(results: Sequence[Result], ours: Sequence[Values], theirs: Sequence[Values]) -> Effect:
    """Return the share of dangerous errors that is gone: the geometric mean over tasks."""
    sizes = [result["samples"] for result in results]
    pairs = [(size * a[:, DANGEROUS], size * b[:, DANGEROUS]) for size, a, b in zip(sizes, ours, theirs, strict=True)]
    return geometric_mean(pairs)


def steps_table(results: Sequence[Result]) -> Table:
    """Return a row for each step: what it changes against the first row and against the row before, over all tasks."""
    header = ["what is added", "trainings", "dangerous errors, against the first row", "against the row before"]
    header += ["points of accuracy, against the first row"]
    rows, before, first = list[list[str]](), list[Values](), list[Values]()
    for words, loss, members, decision in STEPS:
        now = [values(result, loss, members, decision) for result in results]
        first = first or now
        gains = [difference(a[:, ACCURACY].tolist(), b[:, ACCURACY].tolist()) for a, b in zip(now, first, strict=True)]
        gain = np.mean([effect.value for effect in gains])
        cells = [words, str(members), change(over_tasks(results, now, first))]
        cells += [change(over_tasks(results, now, before)) if before else "", f"{100 * gain:+.2f}"]
        rows.append(cells)
        before = now
    return Table(header, rows)


def losses_table(results: Sequence[Result], members: int, decision: str) -> Table:
    """Return a row for each loss against cross entropy, with the same models, steps, noise and decision."""
    header = [f"loss, {members} model{'s' * (members > 1)}, {decision}", "tasks", "dangerous errors"]
    header += ["points of accuracy, mean", "lowest", "tasks with significantly more"]
    rows = []
    for loss in LOSSES:
        tried = [result for result in results if has(result, loss, members)]
        if loss == PLAIN or not tried:
            continue
        ours = [values(result, loss, members, decision) for result in tried]
        theirs = [values(result, PLAIN, members, decision) for result in tried]
        pairs = [effects(a, b) for a, b in zip(ours, theirs, strict=True)]
        gains = [gain.value for gain, _ in pairs]
        worse = [result["task"] for result, (_, cut) in zip(tried, pairs, strict=True) if cut.high < 0]
        cells = [loss, str(len(tried)), change(over_tasks(tried, ours, theirs))]
        cells += [f"{100 * np.mean(gains):+.2f}", f"{100 * min(gains):+.2f}", ", ".join(worse)]
        rows.append(cells)
    return Table(header, rows)


def task_table(result: Result) -> Table:
    """Return a row for each loss and number of models, decided in each way."""
    header = [
        result["task"],
        "models",
        "chosen",
        "CPU s",
        "accuracy",
        "dangerous in 10 000",
        "by cost: points",
        "change",
    ]
    header += [f"decided at {100 * result['limit']:g} %", "more"]
    rows = []
    for loss, of_loss in result["arms"].items():
        arm = of_loss["arm"]
        chosen = ", ".join(f"{name} {value:g}" for name, value in arm["setting"].items())
        chosen += f", lr {arm['rate']:g}, noise {arm['noise']:g}, steps x{arm['length']}"
        for members in map(int, of_loss["members"]):
            likely, by_cost, referring = (values(result, loss, members, way) for way in (LIKELY, BY_COST, REFERRING))
            gain, cut = effects(by_cost, values(result, PLAIN, members, BY_COST))
            more = difference(
                referring[:, COVERAGE].tolist(), values(result, PLAIN, members, REFERRING)[:, COVERAGE].tolist()
            )
            mean = likely.mean(axis=0)
            cells = [loss, str(members), chosen, f"{members * of_loss['seconds']:.1f}"]
            cells += [f"{100 * mean[ACCURACY]:.2f} %", f"{1e4 * mean[DANGEROUS]:.1f}", points(gain), change(cut)]
            cells += [f"{100 * referring[:, COVERAGE].mean():.1f} %", points(more, digits=1)]
            rows.append(cells)
    return Table(header, rows)


def tables_of(results: Sequence[Result]) -> Iterator[Table]:
    """Yield all tables."""
    yield steps_table(results)
    yield losses_table(results, 1, LIKELY)
    yield losses_table(results, 1, BY_COST)
    yield losses_table(results, 4, BY_COST)
    for result in results:
        yield task_table(result)


def save_values(results: Sequence[Result], folder: Path) -> None:
    """Write the values of each task to a folder."""
    for result in results:
        path = folder / f"{file_name(result['task'])}.json"
        path.write_text(json.dumps(rounded(result), separators=(",", ":")), encoding="utf-8")
