"""The fair comparison: each loss has the same budget and decisions as the plain one it is compared with."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from examples.benchmark import fair, fair_runs, judging, tasks
from examples.benchmark.fair import AS_USUAL, DECISIONS, Trials, results_of
from examples.benchmark.fair_runs import FLOORED, LOSSES, PLAIN, augmented, margin
from examples.benchmark.fair_tables import STEPS, losses_table, save_values, steps_table, tables_of, task_table
from examples.benchmark.methods import Batch
from examples.benchmark.tasks import TASKS

WINE = "wine, MLP"


def make_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the comparison a matter of seconds: few steps and seeds, no further processes."""
    small = replace(
        TASKS[WINE], steps=20, learning_rates=(0.01,), choice_seeds=range(2), seeds=range(100, 103), noises=(0.0, 0.3)
    )
    for module in (tasks, fair, fair_runs):
        monkeypatch.setattr(module, "TASKS", {WINE: small})
    monkeypatch.setattr(judging, "run_in_processes", lambda work, items: ((item, work(item)) for item in items))


@pytest.fixture
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    make_short(monkeypatch)
    [found] = results_of([Trials(WINE, Path(), tmp_path)])
    monkeypatch.setattr(fair, "train_and_keep", lambda training: pytest.fail(f"{training} is trained again"))
    assert list(results_of([Trials(WINE, Path(), tmp_path)])) == [found]
    save_values([found], tmp_path)
    return found


@pytest.mark.slow
def test_all_losses_have_one_condition_and_each_decision(result: dict[str, Any]) -> None:
    arms = {name: values["arm"] for name, values in result["arms"].items()}
    assert {name for name in arms if name != AS_USUAL} == set(LOSSES)
    conditions = {(arm["noise"], arm["length"]) for name, arm in arms.items() if name != AS_USUAL}
    assert len(conditions) == 1
    assert (arms[AS_USUAL]["noise"], arms[AS_USUAL]["length"]) == (0.0, 1)
    for values in result["arms"].values():
        for of_decision in values["members"].values():
            assert set(of_decision) == set(DECISIONS)
            assert all(len(of_seeds) == 3 for of_seeds in of_decision.values())
    assert set(result["arms"][PLAIN]["members"]) == set(result["arms"][FLOORED]["members"]) == {"1", "4"}


@pytest.mark.slow
def test_tables_compare_with_the_plain_loss_of_as_many_models(result: dict[str, Any]) -> None:
    steps = steps_table([result])
    assert [row[0] for row in steps.rows] == [words for words, *_ in STEPS]
    assert steps.rows[0][2].startswith("+0.0 %")
    assert [row[0] for row in losses_table([result], 1, DECISIONS[1]).rows] == [
        name for name in LOSSES if name != PLAIN
    ]
    plain = [row for row in task_table(result).rows if row[0] == PLAIN]
    assert [row[6] for row in plain] == ["+0.00 [+0.00, +0.00]"] * 2
    assert len(list(tables_of([result]))) == 5


def test_a_margin_grows_with_harm_and_with_the_steps() -> None:
    harm = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.5], [0.0, 0.0, 0.0]])
    logits, target = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1, 2, 0, 1, 2])
    loss = margin(full=4.0, floor=0.5, harm=harm, label_smoothing=0.0)
    for progress, share in ((0.0, 0.0), (0.1, 0.0), (0.35, 0.5), (0.6, 1.0), (0.9, 1.0)):
        added = logits.clone()
        for row, true in enumerate(target.tolist()):
            for other in range(3):
                if other != true:
                    added[row, other] += 4 * share * (0.5 + 0.5 * float(harm[true, other]))
        batch = Batch(logits, target, torch.arange(6), progress)
        assert loss(batch).item() == pytest.approx(cross_entropy(added, target).item(), abs=1e-6)


def test_images_are_shifted_and_other_inputs_get_noise() -> None:
    torch.manual_seed(0)
    images = torch.arange(1.0, 17).reshape(1, 1, 4, 4).repeat(50, 1, 1, 1)
    shifted = augmented(images, 1.0, is_image=True)
    assert shifted.shape == images.shape
    kinds = {tuple(each.flatten().tolist()) for each in shifted}
    assert len(kinds) == 9  # no shift, and eight neighbours
    assert all({*kind} <= {*range(17)} for kind in kinds)
    noisy = augmented(torch.zeros(1000, 20), 0.3, is_image=False)
    assert noisy.std().item() == pytest.approx(0.3, rel=0.05)
    assert augmented(images, 0.0, is_image=True) is images
