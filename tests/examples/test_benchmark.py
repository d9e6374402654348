"""The benchmark from beginning to end, on a small task."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from examples.benchmark import judging, methods, runs, tasks
from examples.benchmark.__main__ import main
from examples.benchmark.judging import Arm, Trials, choose, results_of
from examples.benchmark.kept_results import KEPT, PAGE
from examples.benchmark.measures import Measure
from examples.benchmark.results import (
    SPECIAL,
    overall,
    page_of,
    rounded,
    save_values,
    saved_results,
    summary_table,
    task_table,
    tried_on,
    write_page,
)
from examples.benchmark.runs import Run, outcome_of, train_and_keep
from examples.benchmark.tasks import TASKS, simulated, simulated_probs
from mpcs_torch.cli.console import counting_bar

WINE = "wine, MLP"
TRIED = ("cross entropy", "averaged weights", "ramped margin", "self-adaptive training", "plateau by MPCS")


def make_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the benchmark a matter of seconds: some methods, few steps, two seeds, no further processes."""
    small = replace(
        TASKS[WINE],
        steps=30,
        learning_rates=(0.01,),
        tuning_seeds=range(1),
        choice_seeds=range(2),
        seeds=range(100, 102),
    )
    monkeypatch.setattr(tasks, "TASKS", {WINE: small})
    for module in (judging, runs):
        monkeypatch.setattr(module, "TASKS", {WINE: small})
    monkeypatch.setattr(judging, "METHODS", {name: methods.METHODS[name] for name in (*TRIED, "ensemble of 5")})
    monkeypatch.setattr(judging, "run_in_processes", lambda work, items: ((item, work(item)) for item in items))


def results(folder: Path) -> list[dict[str, Any]]:
    return list(results_of([Trials(WINE, Path(), folder)], counting_bar))


@pytest.mark.slow
def test_it_is_resumed_and_says_what_each_method_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_short(monkeypatch)
    first = results(tmp_path)
    monkeypatch.setattr(judging, "train_and_keep", lambda run: pytest.fail(f"{run} is trained again"))
    assert results(tmp_path) == first
    (found,) = json.loads(json.dumps(first))
    assert set(found["rows"]) == {*TRIED, "ensemble of 5"}
    table = task_table(found)
    assert [row[0] for row in table.rows[: len(SPECIAL)]] == list(SPECIAL.values())
    assert table.rows[0][3] == "+0.00 [+0.00, +0.00]"
    assert found["rows"]["ensemble of 5"]["models"] == 5
    assert {row[0] for row in summary_table([found]).rows} >= set(TRIED)
    save_values([found], tmp_path)
    write_page(list(saved_results(tmp_path)), tmp_path)
    assert "## wine, MLP" in (tmp_path / "results.md").read_text()
    assert list(saved_results(tmp_path)) == [rounded(found)]
    assert (tmp_path / "recommended.png").stat().st_size > 5_000
    assert (tmp_path / "wine--MLP.png").stat().st_size > 10_000
    assert (tmp_path / "methods.png").stat().st_size > 10_000


def test_the_kept_page_is_that_of_the_kept_values() -> None:
    results = list(saved_results(KEPT))
    assert len(results) > 8
    assert (PAGE / "results.md").read_text() == page_of(results), "python -m examples.benchmark.kept_results writes it"
    cut = overall(tried_on(results, "recommended"), "ruled")
    said = f"{100 * cut.value:.1f} % [{100 * cut.low:.1f}, {100 * cut.high:.1f}] fewer dangerous errors"
    assert said in (PAGE.parent / "index.md").read_text()


def test_tasks_have_names_and_parts_of_names() -> None:
    assert tasks.tasks_of([]) == list(TASKS)
    assert tasks.tasks_of(["MNIST, MLP", "wine"]) == ["MNIST, MLP", WINE]
    assert tasks.tasks_of(["Digits", "digits, mlp"]) == [name for name in TASKS if "digits" in name]
    with pytest.raises(ValueError, match=r"TASK must be part of one of 'MNIST, MLP', .* but got 'iris'"):
        tasks.tasks_of(["iris"])


@pytest.mark.slow
def test_the_command_prints_the_table_of_each_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_short(monkeypatch)
    monkeypatch.setattr(sys, "argv", ["benchmark", "wine", "--out", str(tmp_path)])
    main()
    assert "| **`recommended`** " in capsys.readouterr().out
    assert (tmp_path / "benchmark" / "results.md").is_file()
    monkeypatch.setattr(sys, "argv", ["benchmark", "wine", "--method", "none:"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "path must read package.module:attribute" in capsys.readouterr().err


def test_other_settings_are_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_short(monkeypatch)
    run = Run(WINE, "cross entropy", 0, 0, Path(), tmp_path)
    assert not run.is_done()
    train_and_keep(run)
    assert run.is_done()
    monkeypatch.setitem(runs.TASKS, WINE, replace(runs.TASKS[WINE], steps=31))
    assert not run.is_done()


def test_the_same_seed_gives_the_same_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_short(monkeypatch)
    for name in TRIED:
        outcomes = []
        for folder in "ab":
            run = Run(WINE, name, 1, 3, Path(), tmp_path / folder)
            train_and_keep(run)
            outcomes.append(outcome_of(run))
        assert all(torch.equal(*each) for each in zip(*outcomes, strict=True))


def test_nothing_is_chosen_by_test_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_short(monkeypatch)
    trials = Trials(WINE, Path(), tmp_path)
    for runs_of in (trials.tuning, trials.choosing):
        for run in runs_of():
            if not run.is_done():
                train_and_keep(run)
    before = choose(trials)
    original = runs.outcome_of

    def spoilt(run: Run) -> runs.Outcome:
        outcome = original(run)
        return outcome._replace(test=-outcome.test, test_labels=outcome.test_labels.flip(0))

    monkeypatch.setattr(judging, "outcome_of", spoilt)
    assert choose(trials) == before


def test_validation_samples_test_nothing_and_train_nothing() -> None:
    parts = TASKS["digits, MLP"].parts(Path(), 5)
    rows = torch.cat([split.inputs.flatten(1) for split in parts])
    assert len(rows) == 1797
    assert [len(split.labels) for split in parts] == [629, 809, 359]
    again = TASKS["digits, MLP"].parts(Path(), 5)
    assert all(torch.equal(one.inputs, other.inputs) for one, other in zip(parts, again, strict=True))


def test_the_probabilities_of_the_simulated_task_are_calibrated() -> None:
    test = simulated(Path()).test
    probs = simulated_probs(test.inputs)
    right = probs.argmax(dim=1) == test.labels
    for low, high in ((0.3, 0.6), (0.6, 0.9), (0.9, 1.0)):
        sure = (probs.amax(dim=1) > low) & (probs.amax(dim=1) <= high)
        assert right[sure].double().mean().item() == pytest.approx(probs.amax(dim=1)[sure].mean().item(), abs=0.03)


def test_no_model_is_better_than_the_true_probabilities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "simulated, MLP"
    task = replace(TASKS[name], seeds=range(100, 101), steps=200)
    for module in (judging, runs):
        monkeypatch.setattr(module, "TASKS", {name: task})
    trials, arm = Trials(name, Path(), tmp_path), Arm("cross entropy", 0)
    train_and_keep(trials.run(arm, 100))
    ours, best = judging._line(trials, [arm]), judging._bayes_line(trials)
    costs = [[Measure(*each).dangerous + 0.5 * (1 - each.accuracy) for each in line] for line in (ours, best)]
    assert min(costs[1]) < min(costs[0])
    assert np.mean([each.accuracy for each in best]) > np.mean([each.accuracy for each in ours])


@pytest.mark.parametrize("name", ["digits, random forest", "digits, boosting"])
def test_trees_are_judged_by_their_probabilities(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.tree import DecisionTreeClassifier

    def tree(leaf: float, seed: int) -> DecisionTreeClassifier:
        return DecisionTreeClassifier(min_samples_leaf=int(leaf), random_state=seed)

    monkeypatch.setitem(TASKS, name, replace(TASKS[name], estimator=tree))
    run = Run(name, "trees, weights by cost", 0, 0, Path(), tmp_path)
    train_and_keep(run)
    outcome = outcome_of(run)
    assert outcome.test.isfinite().all()
    assert (outcome.test.argmax(dim=1) == outcome.test_labels).double().mean() > 0.6
