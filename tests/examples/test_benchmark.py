"""The benchmark from choice to page: each loss has the same budget and decisions as the one it is compared with."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from examples.benchmark import __main__ as command
from examples.benchmark import judging, results, trials
from examples.benchmark.fleets import Condition, Regime
from examples.benchmark.judging import (
    BY_COST,
    CHOSEN,
    DECISIONS,
    LIKELY,
    MIXED,
    judge,
    parts_of,
)
from examples.benchmark.losses import DANGEROUS, FLOORED, PLAIN, UNIFORM
from examples.benchmark.package_tables import Samples
from examples.benchmark.results import KEPT, packed, save_values, saved_results, unpacked
from examples.benchmark.tables import (
    CLAIMS,
    STEPS,
    Way,
    against_cross_entropy,
    compare,
    comparisons_table,
    page_of,
    steps_table,
    task_table,
    values,
)
from examples.benchmark.tables import DANGEROUS as DANGEROUS_RATE
from examples.benchmark.tasks import TASKS, Task, tasks_of
from examples.benchmark.training import Outcome, Training
from examples.benchmark.trials import AS_USUAL, SHORT, Arm, Trials
from mpcs_torch import ConcernSpec
from mpcs_torch.trainer.networks import MODELS

CONCERN = ConcernSpec(3, releases=[[0, 1], [1, 0]], factor=0.5)


def groups(root: Path) -> Samples:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 3, (600,), generator=generator)
    inputs = 1.5 * torch.eye(3)[labels] + torch.randn(600, 3, generator=generator)
    return Samples(inputs, labels, ("a", "b", "c"))


SMALL = Task(
    "small",
    groups,
    lambda _: CONCERN,
    partial(MODELS["mlp"], hidden=4),
    steps=30,
    choice_seeds=range(2),
    seeds=range(100, 103),
    at_once=8,
    groups=("core",),
    noises=(0.0, 0.3),
    lengths=(1, 2),
    limit=0.2,
)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the results of a small task; a second call trains nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS, "small", SMALL)
        folder = tmp_path_factory.mktemp("runs")
        result = judging.result_of(Trials("small", Path(), folder))
        patch.setattr(
            Training, "run", lambda training: pytest.fail(f"{training} is trained again")
        )
        assert judging.result_of(Trials("small", Path(), folder)) == result
        return result


def test_all_losses_have_one_condition_and_each_decision(small: dict[str, Any]) -> None:
    judged = small["judged"]
    core = (PLAIN, UNIFORM, DANGEROUS, FLOORED)
    parts = [parts_of(key) for key in judged]
    assert {name for name, _ in parts} == {
        AS_USUAL,
        *SHORT.values(),
        *core,
        MIXED,
        CHOSEN,
    }
    of_four = {name for name, models in parts if models == 4}
    assert of_four == {PLAIN, UNIFORM, FLOORED, MIXED}
    arms = {key: of_key["of"]["arms"] for key, of_key in judged.items()}
    fair = [arm for name in core for arm in arms[f"1 {name}"]] + arms[f"4 {MIXED}"]
    assert len({(arm["noise"], arm["length"]) for arm in fair}) == 1
    for name in (AS_USUAL, *SHORT.values()):
        assert [(arm["noise"], arm["length"]) for arm in arms[f"1 {name}"]] == [(0.0, 1)]
    assert arms[f"1 {AS_USUAL}"][0]["setting"] == 0
    chosen = judged[f"1 {CHOSEN}"]
    assert chosen == judged[f"1 {chosen['of']['arms'][0]['loss']}"]
    for of_key in judged.values():
        assert set(of_key["decisions"]) == set(DECISIONS)
        assert all(len(of_seeds) == 3 for of_seeds in of_key["decisions"].values())


def test_a_killed_run_trains_only_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TASKS, "small", SMALL)
    arm = Arm(Regime(PLAIN, 0.01, Condition()), 0.02)
    parts = Trials("small", Path(), tmp_path).trainings(arm, SMALL.seeds, members=4)
    assert [part.seeds for part in parts] == [range(100, 102), range(102, 103)]
    trials.finish("all", parts[:1])
    trained: list[Training] = []
    monkeypatch.setattr(Training, "run", lambda training: trained.append(training))
    trials.finish("all", parts)
    assert trained == parts[1:]


def test_tables_compare_with_as_many_models_and_the_same_decision(
    small: dict[str, Any],
) -> None:
    steps = steps_table([small])
    assert [row[0] for row in steps.rows] == list(STEPS)
    assert steps.rows[0][3].startswith("+0.0 %")
    assert [row[0] for row in against_cross_entropy([small], 4, BY_COST).rows] == [
        UNIFORM,
        FLOORED,
    ]
    plain = [row for row in task_table(small).rows if row[0] == PLAIN]
    assert [row[6] for row in plain] == ["+0.00 [+0.00, +0.00]"] * 2
    both = compare([small], Way(FLOORED, 4, BY_COST), Way(PLAIN, 4, BY_COST))
    assert both is not None
    ours = values(small, Way(FLOORED, 4, BY_COST))[:, DANGEROUS_RATE].mean()
    theirs = values(small, Way(PLAIN, 4, BY_COST))[:, DANGEROUS_RATE].mean()
    assert 1 - both.dangerous.value == pytest.approx(ours / theirs, rel=0.05)
    assert (
        "four cross entropies against one, by cost"
        in comparisons_table([small], CLAIMS, "").markdown()
    )
    assert compare([small], Way("focal loss", 1, LIKELY), Way(PLAIN, 1, LIKELY)) is None


def test_kept_values_are_those_of_the_run(
    small: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TASKS, "small", SMALL)
    save_values([small], tmp_path)
    [kept] = saved_results(tmp_path)
    for key, of_key in small["judged"].items():
        for decision, of_seeds in of_key["decisions"].items():
            saved = kept["judged"][key]["decisions"][decision]
            assert np.array(saved) == pytest.approx(np.array(of_seeds), abs=1e-5)
    columns = packed([[0.5, 0.25, 0.125, 0.75]])
    assert columns == {
        "accuracy": [50000],
        "dangerous": [25000],
        "cost": [12500],
        "coverage": [75000],
    }
    assert unpacked(packed([[0.5, 0.25, 0.25, 1.0]])) == [[0.5, 0.25, 0.25, 1.0]]


def test_decisions_are_judged_by_hand() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 3, (2, 4000), generator=generator)
    logits = 2 * torch.eye(3)[labels] + torch.randn(2, 4000, 3, generator=generator)
    outcome = Outcome(logits[0], labels[0], logits[1], labels[1])
    likely, by_cost, cheapest, referring = judge(outcome, CONCERN, 0.02)
    decision, target = logits[1].argmax(dim=1), labels[1]
    is_dangerous = (decision != target) & ((decision == 2) | (target == 2))
    right = (decision == target).double().mean().item()
    dangerous = is_dangerous.double().mean().item()
    assert likely == pytest.approx(
        (right, dangerous, dangerous + 0.5 * (1 - right - dangerous), 1.0)
    )
    assert cheapest.cost < likely.cost + 0.002
    assert by_cost.dangerous < likely.dangerous
    assert by_cost.accuracy > likely.accuracy - 0.01
    assert referring.dangerous < 0.025
    assert 0.3 < referring.coverage < 1
    few = Outcome(logits[0, :50], labels[0, :50], logits[1], labels[1])
    assert judge(few, CONCERN, 0.001)[3] == (0.0, 0.0, 0.0, 0.0)


def test_costs_of_rows_decide_and_count() -> None:
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(0, 2, (2, 3000), generator=generator)
    logits = torch.eye(2)[labels] + torch.randn(2, 3000, 2, generator=generator)
    outcome = Outcome(logits[0], labels[0], logits[1], labels[1])
    costs = 0.1 + torch.rand(3000, 2, generator=generator) ** 3
    concern = ConcernSpec(2, releases=[[0, 1]], factor=0.5)
    likely, by_cost, *_ = judge(outcome, concern, 0.2, costs)
    wrong = logits[1].argmax(dim=1) != labels[1]
    paid = costs.gather(1, labels[1].unsqueeze(1)).squeeze(1) * wrong / costs.mean()
    assert likely.cost == pytest.approx(paid.mean().item(), rel=1e-5)
    assert by_cost.cost < 0.9 * likely.cost


def test_the_page_is_that_of_the_kept_values() -> None:
    kept = list(saved_results(KEPT))
    assert len(kept) >= 4
    page = (KEPT / "results.md").read_text(encoding="utf-8")
    assert page == page_of(kept), "python -m examples.benchmark.results writes it"
    graded = [result for result in kept if not result["has_list"]]
    assert "## grades, MLP" in page_of(graded)  # no task for the means


def test_the_command_prints_tables_and_writes_the_page(
    small: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(TASKS, "small", SMALL)
    monkeypatch.setattr(command, "result_of", lambda _: small)
    (tmp_path / "benchmark").mkdir()
    monkeypatch.setattr(sys, "argv", ["benchmark", "small", "--out", str(tmp_path)])
    threads = torch.get_num_threads()
    command.main()
    torch.set_num_threads(threads)
    assert FLOORED in capsys.readouterr().out
    assert "## What each step adds" in (tmp_path / "benchmark" / "results.md").read_text(
        encoding="utf-8"
    )
    kept = (tmp_path / "benchmark" / "small.json").read_text(encoding="utf-8")
    assert json.loads(kept)["task"] == "small"


def test_unknown_tasks_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tasks_of(["penbased"]) == [
        "penbased, MLP, random list 1",
        "penbased, MLP, random list 2",
    ]
    monkeypatch.setattr(sys, "argv", ["benchmark", "nonsense"])
    with pytest.raises(SystemExit):
        command.main()
    assert "nonsense" in capsys.readouterr().err


def test_results_are_copied_and_written_by_one_command(
    small: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TASKS, "small", SMALL)
    new, kept = tmp_path / "new", tmp_path / "kept"
    new.mkdir()
    kept.mkdir()
    save_values([small], new)
    monkeypatch.setattr(results, "KEPT", kept)
    monkeypatch.setattr(sys, "argv", ["results", str(new)])
    results.main()
    assert (kept / "small.json").read_text() == (new / "small.json").read_text()
    assert "## small" in (kept / "results.md").read_text()
