"""The benchmark, from beginning to end: validation samples choose settings, test samples of other seeds judge them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from examples.benchmark.measures import (
    Measure,
    Referral,
    calibrated_probs,
    measure,
    normalized,
    quietly,
    refer,
    referral,
)
from examples.benchmark.methods import METHODS, Method, method_of
from examples.benchmark.runs import Outcome, Run, outcome_of, setting_of, train_and_keep
from examples.benchmark.tasks import TASKS, Task
from mpcs_torch.calibration.scaling import ScalingMethod
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional import risk_coverage_curve
from mpcs_torch.learning import Limit, recommended, with_averages
from mpcs_torch.learning.choice import FACTORS, Options, calibrated, calibration_for, decide, harm_matrix
from mpcs_torch.learning.recommended import LOSSES
from mpcs_torch.processes import run_in_processes

Item = TypeVar("Item")
Done = TypeVar("Done")
Bar = Callable[[str, int], AbstractContextManager[Callable[[], None]]]
"""Shows the progress of so many items, and gives what is called after each."""

PLAIN_METHOD, RECIPE = "cross entropy", "ramped margin"
"""The methods that `recommended` trains: the plain one without label smoothing, and all settings of the other."""
MAX_ACCURACY_LOSS = 0.0005
"""The accuracy that a choice may cost, as a share of samples: methods are compared at nearly equal accuracy."""
COVERAGES = tuple(np.linspace(0.5, 1, 51).tolist())
"""At which dangerous errors are drawn."""


class Arm(NamedTuple):
    """A method with one of its settings."""

    method: str
    setting: int


@dataclass(frozen=True)
class Trials:
    """The runs of one task."""

    task: str
    data_root: Path
    out: Path
    others: tuple[str, ...] = ()
    """Import paths of methods that are not ours."""

    @property
    def details(self) -> Task:
        """The task itself."""
        return TASKS[self.task]

    @property
    def concern(self) -> ConcernSpec:
        """The concern of the task."""
        return self.details.spec(self.data_root)

    def methods(self) -> dict[str, Method]:
        """Return the methods that are tried on the task."""
        groups, concern = self.details.groups, self.concern
        tried = {name: method_of(name) for name in (*METHODS, *self.others)}
        return {name: each for name, each in tried.items() if each.group in groups and each.applies(concern)}

    def arms(self, method: str) -> list[Arm]:
        """Return a method with each of its settings."""
        number = len(method_of(method).settings) * len(self.details.learning_rates)
        return [Arm(method, setting) for setting in range(number)]

    def tuning(self) -> list[Run]:
        """Return the runs by which the learning rate of each setting is chosen."""
        arms = [arm for name in self.tuned() for arm in self.arms(name)]
        return [self.run(arm, seed) for arm in arms for seed in self.details.tuning_seeds]

    def tuned(self) -> list[str]:
        """Return the methods that have a tuning of their own."""
        return [name for name, each in self.methods().items() if each.tuned_as is None]

    def choosing(self) -> list[Run]:
        """Return the runs by which a setting of each method is chosen, each at its best learning rate."""
        arms = [arm for name in self.tuned() for arm in self.at_best_rates(name)]
        return [self.run(arm, seed) for arm in arms for seed in self.details.choice_seeds]

    def at_best_rates(self, method: str) -> list[Arm]:
        """Return the settings of a method, each at its learning rate of the highest validation accuracy."""
        rates, arms = len(self.details.learning_rates), self.arms(method)
        groups = [arms[start : start + rates] for start in range(0, len(arms), rates)]
        seeds = self.details.tuning_seeds
        return [group[0] if rates == 1 else max(group, key=lambda arm: self.accuracy(arm, seeds)) for group in groups]

    def accuracy(self, arm: Arm, seeds: range) -> float:
        """Return the validation accuracy of an arm."""
        right = [(each.validation.argmax(dim=1) == each.validation_labels) for each in self.outcomes(arm, seeds)]
        return torch.cat(right).double().mean().item()

    def run(self, arm: Arm, seed: int) -> Run:
        """Return the run of an arm under a seed."""
        return Run(self.task, arm.method, arm.setting, seed, self.data_root, self.out)

    def outcomes(self, arm: Arm, seeds: range) -> Iterator[Outcome]:
        """Give the outcomes of an arm."""
        return (outcome_of(self.run(arm, seed)) for seed in seeds)

    def of_seeds(self, arms: Sequence[Arm]) -> Iterator[Outcome]:
        """Give the outcome of the arm of each judging seed."""
        return (outcome_of(self.run(*each)) for each in zip(arms, self.details.seeds, strict=True))


class CandidateArms(NamedTuple):
    """The models among which `recommended` chooses: the plain one, and others in the order of `LOSSES`."""

    arms: tuple[Arm, ...]
    has_averages: bool = False
    """Whether averages of them are candidates, too."""


@dataclass(frozen=True)
class Choices:
    """The choices by the validation samples of the choice seeds."""

    baseline: Arm
    """The most accurate plain method of one model."""
    chosen: dict[str, Arm]
    """The setting of each method."""
    plain_referring: Arm
    """The plain method of one model that decides most samples under the limit of the task."""
    recipe: tuple[Arm, ...]
    """The models of `recommended`, in its order: the plain one, and each margin. Where no margin can be trained, it is
    the baseline alone."""

    def arms(self) -> list[Arm]:
        """Return what the judging seeds train."""
        return list(dict.fromkeys([*self.chosen.values(), self.baseline, self.plain_referring, *self.recipe]))

    def recipes(self) -> dict[str, CandidateArms]:
        """Return the models among which `recommended` chooses under each judging seed: its own, and a plain one."""
        plain = CandidateArms((self.plain_referring,))
        recipes = {"recommended": CandidateArms(self.recipe), "plain, recommended": plain}
        averaged = {"recommended, averages": CandidateArms(self.recipe, has_averages=True)}
        return recipes | (averaged if len(self.recipe) > 1 else {})


def choose(trials: Trials) -> Choices:
    """Choose settings by what they do on validation samples of the choice seeds."""
    torch.set_num_threads(1)
    seeds, methods = trials.details.choice_seeds, trials.methods()
    tuned = {name: trials.at_best_rates(name) for name in trials.tuned()}
    plain = [arm for name, arms in tuned.items() if methods[name].is_plain for arm in arms]
    accuracy = {arm: trials.accuracy(arm, seeds) for arm in plain}
    baseline = max(plain, key=accuracy.__getitem__)
    chosen = {}
    for name, arms in tuned.items():
        if methods[name].is_plain:
            chosen[name] = max(arms, key=accuracy.__getitem__)
        else:
            chosen[name] = arms[compared(trials, arms, seeds, factors=(1.0,)).ranking()[0]]
    for name, each in methods.items():
        if each.tuned_as is not None:
            chosen[name] = Arm(name, chosen[each.tuned_as].setting)
    plain_referring = max(plain, key=lambda arm: _validation_coverage(trials, arm, seeds))
    recipe = (tuned[PLAIN_METHOD][0], *tuned[RECIPE]) if RECIPE in tuned else (baseline,)
    return Choices(baseline, chosen, plain_referring, recipe)


def compared(trials: Trials, arms: Sequence[Arm], seeds: Sequence[int], factors: Sequence[float] = FACTORS) -> Options:
    """Compare arms, the plain one first, on the validation samples of all seeds."""
    harm, parts = harm_matrix(trials.concern), []
    for seed in seeds:
        runs = [trials.run(arm, seed) for arm in arms]
        probs = [_validation_probs(run, calibration_for(harm)) for run in runs]
        parts.append(Options.from_probs(probs, outcome_of(runs[0]).validation_labels, harm, factors))
    return pooled(parts)


def pooled(parts: Sequence[Options]) -> Options:
    """Pool the options of models that were trained in the same way with different seeds."""
    names = ("counted", "estimated", "scores")
    return Options(parts[0].options, *(torch.cat([getattr(part, name) for part in parts], dim=-1) for name in names))


@lru_cache(maxsize=32)  # the baseline is compared with every method
def _validation_probs(run: Run, method: ScalingMethod) -> Tensor:
    """Return the calibrated probabilities (N, C) of the validation samples of a run."""
    outcome = outcome_of(run)
    return calibrated(outcome.validation, outcome.validation_labels, method)


def _validation_coverage(trials: Trials, arm: Arm, seeds: range) -> float:
    """Return the mean share of validation samples that are decided under the limit, which they guarantee themselves."""
    coverages = []
    for outcome in trials.outcomes(arm, seeds):
        on_validation = outcome._replace(test=outcome.validation, test_labels=outcome.validation_labels)
        coverages.append(refer(on_validation, trials.concern, trials.details.limit).coverage)
    return float(np.mean(coverages))


@dataclass(frozen=True)
class Row:
    """A method on a task, under each judging seed."""

    setting: dict[str, float] | None
    """None if models with several settings are trained under each seed, and one of them is chosen."""
    learning_rate: float
    models: int
    """The number that are trained under each seed."""
    arms: list[Arm]
    """The model that decides, under each seed; seeds where an average decides are left out."""
    decided: list[Measure]
    """By the most probable class."""
    ruled: list[Measure]
    """By the decision rule whose factor the validation samples of the seed choose."""
    factors: list[float]
    """Those factors."""
    referred: list[Referral]
    """By the decision rule under the limit of the task."""
    normalized: list[Referral]
    """The same with normalized logits."""


class Work(NamedTuple):
    """An arm or a recipe to judge."""

    trials: Trials
    judged: Arm | CandidateArms
    baseline: Arm


def judge(work: Work) -> Row:
    """Judge an arm, or `recommended` with its models, by each of the judging seeds."""
    torch.set_num_threads(1)
    trials, judged, baseline = work
    return _of_arm(trials, judged, baseline) if isinstance(judged, Arm) else _of_recipe(trials, judged)


def _of_arm(trials: Trials, arm: Arm, baseline: Arm) -> Row:
    """Decide by the baseline or by the arm, as the validation samples of each seed choose."""
    task, spec, method = trials.details, trials.concern, method_of(arm.method)
    harm = harm_matrix(spec)
    row = Row(*setting_of(task, method, arm.setting), method.members, [arm] * len(task.seeds), [], [], [], [], [])
    candidates = list(dict.fromkeys([baseline, arm]))
    for seed in task.seeds:
        outcome = outcome_of(trials.run(arm, seed))
        row.decided.append(measure(outcome.test.argmax(dim=1), outcome.test_labels, spec))
        options = compared(trials, candidates, [seed])
        option = options.options[options.choose(MAX_ACCURACY_LOSS)]
        decider = candidates[option.model]
        chosen = outcome if decider == arm else outcome_of(trials.run(decider, seed))
        row.factors.append(option.factor)
        decision = decide(calibrated_probs(chosen, harm), harm, option.factor)
        row.ruled.append(measure(decision, chosen.test_labels, spec))
        row.referred.append(refer(outcome, spec, task.limit))
        row.normalized.append(refer(normalized(outcome), spec, task.limit))
    return row


def _of_recipe(trials: Trials, candidates: CandidateArms) -> Row:
    """Decide by the model and the rule that the validation samples of each seed choose."""
    arms, has_averages = candidates
    task, spec, names = trials.details, trials.concern, list(LOSSES)
    row = Row(None, 0.0, len(arms), [], [], [], [], [], [])
    make = partial(recommended, spec, max_accuracy_loss=MAX_ACCURACY_LOSS)
    deciding, referring = make(), make(refer=Limit(task.limit))
    for seed in task.seeds:
        outcomes = {name: outcome_of(trials.run(arm, seed)) for name, arm in zip(names, arms, strict=False)}
        logits = {name: each.validation for name, each in outcomes.items()}
        tested = {name: each.test for name, each in outcomes.items()}
        if has_averages:
            logits, tested = with_averages(logits), with_averages(tested)
        target, labels = outcomes[names[0]].validation_labels, outcomes[names[0]].test_labels
        choice = quietly(partial(deciding.choose, logits, target))
        assert choice is not None  # without a limit, no number of samples is too small
        assert choice.factor is not None
        test = tested[choice.name]
        row.arms.extend([arms[names.index(choice.name)]] if choice.name in names else [])
        row.factors.append(choice.factor)
        row.decided.append(measure(test.argmax(dim=1), labels, spec))
        row.ruled.append(measure(choice.rule(test), labels, spec))
        referred = quietly(partial(referring.choose, logits, target))
        rule, decider = (referred.rule, referred.name) if referred else (None, names[0])
        row.referred.append(referral(rule, tested[decider], labels, spec))
    return row


def result_of(trials: Trials, choices: Choices, rows: Mapping[Arm, Row], recipes: Mapping[str, Row]) -> dict[str, Any]:
    """Return the results of a task as plain values, from the rows of all arms and of recipes."""
    special = {"baseline": rows[choices.baseline], "plain, referring": rows[choices.plain_referring], **recipes}
    drawn = ("baseline", "plain, referring", "recommended")
    lines = {name: _line(trials, special[name].arms) for name in ("baseline", "recommended")}
    task = trials.details
    if task.bayes is not None:
        lines["Bayes"] = _bayes_line(trials)
    return {
        "task": trials.task,
        "seeds": [task.seeds.start, task.seeds.stop],
        "limit": task.limit,
        "samples": len(outcome_of(trials.run(choices.baseline, task.seeds[0])).test_labels),
        "rows": {name: vars(rows[arm]) for name, arm in choices.chosen.items()},
        "special": {name: vars(row) for name, row in special.items()},
        "lines": lines,
        "curves": {name: _curve(trials, special[name].arms) for name in drawn},
    }


def _line(trials: Trials, arms: Sequence[Arm]) -> list[Measure]:
    """Return the mean results with each factor, from the arm of each judging seed."""
    spec = trials.concern
    harm, measures = harm_matrix(spec), []
    for outcome in trials.of_seeds(arms):
        probs = calibrated_probs(outcome, harm)
        measures.append([measure(decide(probs, harm, factor), outcome.test_labels, spec) for factor in FACTORS])
    return [Measure(*each) for each in np.mean(measures, axis=0).tolist()]


def _bayes_line(trials: Trials) -> list[Measure]:
    """Return the results of the true probabilities with each factor."""
    task, spec = trials.details, trials.concern
    assert task.bayes is not None
    test = task.parts(trials.data_root, task.seeds[0]).test
    probs = task.bayes(test.inputs)
    return [measure(decide(probs, harm_matrix(spec), factor), test.labels, spec) for factor in FACTORS]


def _curve(trials: Trials, arms: Sequence[Arm]) -> list[float]:
    """Return the share of samples that are dangerous errors, where the safest ones are decided, at each coverage."""
    dangerous, curves = trials.concern.dangerous_pairs(), []
    for outcome in trials.of_seeds(arms):
        probs = outcome.test.double().softmax(dim=1)
        decision = decide(probs, dangerous.double(), 0.5)
        risk = (probs @ dangerous.double()).gather(1, decision.unsqueeze(1)).squeeze(1)
        curve = risk_coverage_curve(risk, dangerous[outcome.test_labels, decision])
        places = (torch.tensor(COVERAGES) * len(risk)).long().clamp(min=1) - 1
        curves.append((curve.risk * curve.coverage)[places].tolist())
    return np.mean(curves, axis=0).tolist()  # type: ignore[no-any-return]


def results_of(tasks: Sequence[Trials], bar: Bar) -> Iterator[dict[str, Any]]:
    """Train what is missing, and give the results of each task; runs that an earlier call finished are kept."""
    _finish("tuning", [run for trials in tasks for run in trials.tuning()], bar)
    _finish("choosing, runs", [run for trials in tasks for run in trials.choosing()], bar)
    choices = sorted(each_done("choosing", choose, tasks, bar), key=lambda each: tasks.index(each[0]))
    seeds_of = {trials: trials.details.seeds for trials in tasks}
    runs = [trials.run(arm, seed) for trials, made in choices for arm in made.arms() for seed in seeds_of[trials]]
    _finish("judging", runs, bar)
    works = [Work(trials, arm, made.baseline) for trials, made in choices for arm in made.arms()]
    works += [Work(trials, each, made.baseline) for trials, made in choices for each in made.recipes().values()]
    rows: dict[Any, Row] = {(work.trials, work.judged): row for work, row in each_done("measuring", judge, works, bar)}
    for trials, made in choices:
        of_recipes = {name: rows[trials, each] for name, each in made.recipes().items()}
        yield result_of(trials, made, {arm: rows[trials, arm] for arm in made.arms()}, of_recipes)


def _finish(title: str, runs: Sequence[Run], bar: Bar) -> None:
    missing = {run.path: run for run in runs if not run.is_done()}  # some share their outcome
    for _ in each_done(title, train_and_keep, list(missing.values()), bar):
        pass


def each_done(
    title: str, function: Callable[[Item], Done], items: Sequence[Item], bar: Bar
) -> Iterator[tuple[Item, Done]]:
    """Give each item with its result, as it is done."""
    with bar(title, len(items)) as advance:
        for done in run_in_processes(function, items):
            yield done
            advance()
