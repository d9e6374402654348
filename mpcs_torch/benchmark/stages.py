"""The benchmark from beginning to end: tuning runs, choices, judging runs, results."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from mpcs_torch.benchmark.judging import (
    Arm,
    CandidateArms,
    Choices,
    RecipeWork,
    Row,
    Trials,
    Work,
    choose,
    judged,
    judged_recipe,
    result_of,
)
from mpcs_torch.benchmark.runs import Run, train_and_keep
from mpcs_torch.benchmark.tasks import TASKS
from mpcs_torch.processes.pool import run_in_processes

Bar = Callable[[str, int], AbstractContextManager[Callable[[], None]]]
"""Shows the progress of so many items, and gives what is called after each."""


def results_of(tasks: Sequence[Trials], bar: Bar) -> Iterator[dict[str, Any]]:
    """Train what is missing, and give the results of each task; runs that an earlier call finished are kept."""
    _finish("tuning", [run for trials in tasks for run in trials.tuning()], bar)
    _finish("choosing, runs", [run for trials in tasks for run in trials.choosing()], bar)
    choices: list[tuple[Trials, Choices]] = []
    with bar("choosing", len(tasks)) as advance:
        for each in run_in_processes(choose, tasks):
            choices.append(each)
            advance()
    choices.sort(key=lambda each: tasks.index(each[0]))
    runs = [
        trials.run(arm, seed) for trials, made in choices for arm in made.arms() for seed in TASKS[trials.task].seeds
    ]
    _finish("judging", runs, bar)
    works = [Work(trials, arm, made.baseline) for trials, made in choices for arm in made.arms()]
    recipes = [RecipeWork(trials, each) for trials, made in choices for each in made.recipes().values()]
    rows: dict[tuple[Trials, Arm | CandidateArms], Row] = {}
    with bar("measuring", len(works) + len(recipes)) as advance:
        for work, row in run_in_processes(judged, works):
            rows[work.trials, work.arm] = row
            advance()
        for recipe, row in run_in_processes(judged_recipe, recipes):
            rows[recipe.trials, recipe.candidates] = row
            advance()
    for trials, made in choices:
        of_recipes = {name: rows[trials, each] for name, each in made.recipes().items()}
        yield result_of(trials, made, {arm: rows[trials, arm] for arm in made.arms()}, of_recipes)


def _finish(title: str, runs: Sequence[Run], bar: Bar) -> None:
    missing = {run.path: run for run in runs if not run.is_done()}  # some share their outcome
    with bar(title, len(missing)) as advance:
        for _ in run_in_processes(train_and_keep, list(missing.values())):
            advance()
