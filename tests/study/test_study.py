"""The study: choices on validation data alone, paired differences on test data, runs that resume."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score

from mpcs_torch.calibration import TemperatureScaling
from mpcs_torch.functional import least_concern_decision, meta_pattern_concern_score
from mpcs_torch.study import tasks as study_module
from mpcs_torch.study.plans import LOSSES, RECIPE, STUDIES, Plan
from mpcs_torch.study.results import RECIPE_WAYS, Arm, Study, results_table, study_figure, tune, verdict
from mpcs_torch.study.tasks import (
    WAYS,
    Measure,
    Outcome,
    StudyTask,
    Way,
    finish_task,
    hold_out,
    study_config,
    tuning_tasks,
)
from mpcs_torch.trainer.folder import RunExistsError
from mpcs_torch.trainer.prepare import prepare_run
from mpcs_torch.trainer.resume import open_selector
from tests.trainer.toy import toy_data

SEEDS = 6
RATES = (0.005, 0.01, 0.02)
PLAN = Plan(RATES, fresh_seeds=range(6, 12))
LOSS = "softmax margin 1"


def outcome(method: str, rate: float, seed: int) -> Outcome:
    """A loss makes 20 % fewer dangerous errors, in validation too; 0.01 validates best, though 0.02 tests best."""
    noise = np.random.default_rng(seed).normal() * 5
    bonus = {0.005: 0.0, 0.01: 0.02, 0.02: 0.01}[rate] + (0.005 if method == "cosine" else 0.0)
    dangerous = 160 if method == LOSS else 200
    measures = {}
    for way in WAYS:
        cost = 0.01 if way.factor < 0.5 else 0.0 if way.factor == 1 else 0.0002
        validation = Measure(0.9 + bonus - cost, 80 + int(20 * way.factor), 0.2)
        test = Measure(0.91 + rate - cost, int(dangerous * (0.9 if way.factor < 1 else 1) + noise), 0.2)
        measures[way] = (validation, test)
    return Outcome(method, rate, seed, measures)


def studied(make: Callable[[str, float, int], Outcome], plan: Plan = PLAN) -> Study:
    """Tune, and compare under the same seeds."""
    outcomes = [make(method, rate, seed) for method in plan.methods for rate in RATES for seed in range(SEEDS)]
    return Study(outcomes, tune(outcomes, plan), plan)


@pytest.fixture
def study() -> Study:
    return studied(outcome)


@pytest.mark.parametrize("plan", STUDIES.values(), ids=list(STUDIES))
def test_no_fresh_seed_tunes_or_chooses(plan: Plan) -> None:
    assert plan.tuning_seeds <= plan.choice_seeds <= plan.fresh_seeds[0]


def test_learning_rate_and_baseline_are_chosen_on_validation_data(study: Study) -> None:
    assert study.baseline == Arm("cosine", 0.01)
    assert {arm.learning_rate for arm in study.tuned.values()} == {0.01}


def test_further_seeds_choose_among_tuned_methods_alone() -> None:
    def worse_later(method: str, rate: float, seed: int) -> Outcome:
        one = outcome(method, rate, seed)
        if method != "cosine" or seed < SEEDS:
            return one
        measures = {way: (replace(v, accuracy=v.accuracy - 0.5), test) for way, (v, test) in one.measures.items()}
        return replace(one, measures=measures)

    outcomes = [worse_later(m, rate, seed) for m in STUDIES["mnist"].methods for rate in RATES for seed in range(SEEDS)]
    tuned = tune(outcomes, PLAN)
    assert Study(outcomes, tuned, PLAN).baseline.method == "cosine"
    later = range(SEEDS, 3 * SEEDS)
    more = [worse_later(arm.method, arm.learning_rate, seed) for arm in tuned for seed in later]
    study = Study([*outcomes, *more], tuned, PLAN)
    assert study.seeds == list(range(3 * SEEDS))
    assert study.baseline.method != "cosine"


def test_the_decision_factor_may_cost_little_validation_accuracy(study: Study) -> None:
    ways = {arm.way for arm in study.arms() if arm.method == "cosine" and arm.way.checkpoint == "last"}
    assert ways == {Way(), Way(factor=0.5), Way(calibrated=True, factor=0.5)}


def test_of_sound_recipes_the_one_with_the_fewest_dangerous_validation_errors_is_chosen() -> None:
    def changed(method: str, rate: float, seed: int) -> Outcome:
        one = outcome(method, rate, seed)
        fewer, cost = {"softmax margin 1": (30, 0.0), "softmax margin 2": (50, 0.02)}.get(method, (0, 0.0))
        bonus = 0.005 if method in LOSSES else 0.0
        measures = {
            way: (replace(v, dangerous=v.dangerous - fewer, accuracy=v.accuracy + bonus - cost), test)
            for way, (v, test) in one.measures.items()
        }
        return replace(one, measures=measures)

    study = studied(changed)
    assert study.baseline.method == "cosine"
    best = Arm("softmax margin 1", 0.01, Way(calibrated=True, factor=0.5))
    assert study.recipe == best, "more would cost too much accuracy"
    methods = ("cosine", "softmax margin 1", RECIPE)
    fresh = [changed(method, 0.01, seed) for method in methods for seed in range(SEEDS, 9)]
    confirmed, *recommended = study.confirm(fresh)
    assert [result.arm for result in recommended] == [Arm(RECIPE, 0.01, way) for way in RECIPE_WAYS]
    assert confirmed.dangerous_cut[0] == pytest.approx(0.28, abs=0.02)
    assert confirmed.accuracy_gain[0] == pytest.approx(-0.0002)


def test_a_study_that_does_not_choose_tries_the_recommended_recipe() -> None:
    plan = Plan(RATES, ("cosine", RECIPE), chooses=False)
    study = studied(outcome, plan)
    assert study.recipe == Arm(RECIPE, 0.01, RECIPE_WAYS[-1])
    assert study.recipe in study.arms()


@pytest.mark.parametrize("name", STUDIES)
def test_every_config_of_a_study_is_sound(name: str, tmp_path: Path) -> None:
    tasks = tuning_tasks(name, 1, tmp_path, tmp_path)
    assert {study_config(task).epochs.samples for task in tasks} == {"validation"}


def test_effects_are_paired_and_have_their_signs(study: Study) -> None:
    result = study.result(Arm(LOSS, 0.01))
    share, low, high = result.dangerous_cut
    assert share == pytest.approx(0.2, abs=0.02)
    assert low <= share <= high
    assert high - low < 0.02, "the noise of a seed is in both arms and must cancel"
    assert result.helps
    baseline = study.result(study.baseline)
    assert baseline.accuracy_gain == baseline.dangerous_cut == (0, 0, 0)
    assert not baseline.helps
    costly = study.result(Arm(LOSS, 0.01, Way(factor=0.3)))
    assert costly.dangerous_cut[1] > 0
    assert not costly.helps


def test_the_table_the_verdict_and_the_figure_hold_every_arm(study: Study) -> None:
    results = [study.result(arm) for arm in study.arms()]
    table = results_table(study, results)
    assert table.rows[0][0] == "cosine (baseline)"
    assert {row[0].split(" + ")[0] for row in table.rows[1:]} | {"cosine"} == set(STUDIES["mnist"].methods)
    text = verdict(study, results, [study.result(arm) for arm in study.candidates()])
    assert text.startswith("Under 6 fresh seeds, 6 to 11, against the best plain method, cosine:\n- ")
    assert text.count("(validation picks it)") == 1
    assert "Not so: constant" in text
    assert "learning rate tried: none." in text
    (axes,) = study_figure(study, results).axes
    assert len([line for line in axes.lines if line.get_marker() == "o"]) == 2


def test_every_method_runs_at_every_rate_under_every_seed(tmp_path: Path) -> None:
    tasks = tuning_tasks("mnist", 2, tmp_path, tmp_path)
    assert (
        len(tasks)
        == 2 * len(STUDIES["mnist"].methods) * len(STUDIES["mnist"].learning_rates)
        == len({task.name for task in tasks})
    )
    assert all(study_config(task).name == task.name for task in tasks)


def test_held_out_samples_come_from_the_training_part() -> None:
    data = toy_data()
    fit, other = hold_out(data, seed=0), hold_out(data, seed=1)
    assert fit.validation is not None
    assert other.validation is not None
    assert len(fit.validation.labels) == round(45 / 6)
    both = torch.cat([fit.train.inputs, fit.validation.inputs])
    assert torch.equal(both.sum(dim=1).sort().values, data.train.inputs.sum(dim=1).sort().values)
    assert not torch.equal(other.validation.inputs, fit.validation.inputs)
    assert fit.test is data.test


@pytest.fixture
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    load = study_module.load_packaged_config

    def short(path: str, overrides: list[str]) -> object:
        return load(path, [*overrides, "epochs.count=3"])

    monkeypatch.setattr(study_module, "load_packaged_config", short)


@pytest.mark.usefixtures("short_runs")
def test_a_way_decides_with_its_own_checkpoint_calibration_and_factor(tmp_path: Path) -> None:
    task = StudyTask("digits", LOSS, 0.01, 1, tmp_path, tmp_path)
    measures = finish_task(task).measures
    config = study_config(task)
    data = hold_out(config.data.load(tmp_path), seed=1)
    model, selector = prepare_run(config, data).state.measured, open_selector(config, tmp_path / task.name)
    assert data.validation is not None
    assert selector is not None
    assert selector.best is not None
    concern = config.score.concern.spec(data.class_names)
    for way, measured in measures.items():
        epoch = 3 if way.checkpoint == "last" else selector.best.number
        model.load_state_dict(selector.load(epoch)["model"])
        with torch.no_grad():
            logits = [model(split.inputs) for split in (data.validation, data.test)]
        scale = TemperatureScaling().fit(logits[0], data.validation.labels) if way.calibrated else torch.nn.Identity()
        weights = torch.where(concern.released(), way.factor, 1.0)
        for scores, split, measure in zip(logits, (data.validation, data.test), measured, strict=True):
            decided = least_concern_decision(scale(scores), concern=weights)
            assert measure.accuracy == accuracy_score(split.labels, decided)
            assert measure.dangerous == concern.dangerous_pairs()[split.labels, decided].sum()
            mpcs = meta_pattern_concern_score(
                scale(scores), split.labels, num_classes=10, k=5, t=200, concern=concern.matrix()
            )
            assert measure.mpcs == mpcs


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("name", ["digits", "breast-cancer"])
def test_a_finished_task_is_read_and_a_foreign_run_is_kept(name: str, tmp_path: Path) -> None:
    task = StudyTask(name, LOSS, 0.01, 1, tmp_path, tmp_path)
    first = finish_task(task)
    assert set(first.measures) == set(WAYS)
    written = (tmp_path / task.name / "records.csv").stat().st_mtime_ns
    assert finish_task(task) == first
    assert (tmp_path / task.name / "records.csv").stat().st_mtime_ns == written
    (tmp_path / task.name / "outcome.json").unlink()
    assert finish_task(task) == first  # cut off after training: run again
    other = replace(task, seed=2)
    (tmp_path / other.name).mkdir()
    (tmp_path / other.name / "records.csv").write_text("mine")
    with pytest.raises(RunExistsError):
        finish_task(other)
    assert (tmp_path / other.name / "records.csv").read_text() == "mine"
