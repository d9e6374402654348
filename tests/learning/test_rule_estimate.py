"""Estimates before labels: values by NumPy, intervals by simulation, alarms, and bad input."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mpcs_torch import ConcernSpec, evaluate
from mpcs_torch.functional import costs_if_wrong
from mpcs_torch.learning import DecisionRule, RuleEstimate, estimate_decisions
from mpcs_torch.learning.rule_estimate import estimate_lines
from tests.refused import Refused

NAMES = ["benign", "unclear", "malignant"]
CONCERN = ConcernSpec(
    NAMES,
    weights=[[0, 1, 1], [1, 0, 1], [20, 2, 0]],
    dangerous=[["malignant", "benign"]],
    refer=0.6,
)
DANGEROUS, COSTS = CONCERN.dangerous_pairs().double().numpy(), CONCERN.costs().numpy()


def draw(samples: int, seed: int, *, heat: float = 1.0) -> tuple[Tensor, Tensor]:
    """Return logits and labels; the probabilities of the logits are calibrated if ``heat`` is 1."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(samples, 3, generator=generator).double()
    labels = torch.multinomial(logits.softmax(1), 1, generator=generator).squeeze(1)
    return heat * logits, labels


def assessed(
    logits: Tensor, concern: ConcernSpec = CONCERN, costs: Tensor | None = None
) -> Any:
    return DecisionRule(concern, calibration=None).assess(logits, costs)


@pytest.mark.parametrize("has_row_costs", [False, True])
def test_values_are_means_of_the_risks_and_costs_of_decisions(has_row_costs: bool) -> None:
    logits, target = draw(500, 0)
    target[::3] = -100
    row_costs, losses_of_rows = None, np.broadcast_to(COSTS, (500, 3, 4))
    if has_row_costs:
        row_costs = costs_if_wrong(5 * torch.rand(500, 3).double())
        referrals = np.full((500, 3, 1), 0.6)
        losses_of_rows = np.concatenate([row_costs.numpy(), referrals], axis=2)
    of_rows = assessed(logits, costs=row_costs)
    probs = logits.softmax(1).numpy()
    decided = of_rows.decision.numpy()
    is_known = (target >= 0).numpy()
    assert set(decided.tolist()) == {-1, 0, 1, 2}
    dangers_of_rows = np.broadcast_to(np.pad(DANGEROUS, ((0, 0), (0, 1))), (500, 3, 4))
    for estimate, losses in zip(
        estimate_decisions(of_rows, CONCERN, target),
        (dangers_of_rows, losses_of_rows),
        strict=True,
    ):
        of_decisions = losses[np.arange(500), :, decided]
        expected = (probs * of_decisions).sum(1)
        measured = of_decisions[np.arange(500), target.clamp(min=0)]
        assert estimate.value == pytest.approx(expected.mean(), rel=1e-5)
        assert (estimate.samples, estimate.labelled) == (500, int(is_known.sum()))
        assert estimate.difference == pytest.approx(
            (measured - expected)[is_known].mean(), abs=1e-5
        )
        assert estimate.low < estimate.difference < estimate.high
    unlabelled, _ = estimate_decisions(of_rows, CONCERN)
    assert unlabelled.labelled == 0
    assert str(unlabelled) == (
        f"dangerous errors per sample: {unlabelled.value:.4g} (of 500)"
    )


def test_estimates_of_coarse_answers_are_left_out() -> None:
    coarse = ConcernSpec(
        NAMES,
        weights=CONCERN.weights,
        dangerous=20,
        refer=0.6,
        answers={"benign or unclear": 0.3},
    )
    logits, target = draw(500, 0)
    of_rows = assessed(logits, coarse)
    estimate, _ = estimate_decisions(of_rows, coarse, target)
    assert 0 < (of_rows.decision == 3).sum() < 500
    assert estimate.samples == estimate.labelled == (of_rows.decision != 3).sum()


def test_images_are_clusters() -> None:
    logits, target = draw(640, 0)
    pixels = logits.view(40, 4, 4, 3).movedim(-1, 1)
    estimates = estimate_decisions(assessed(pixels), CONCERN, target.view(40, 4, 4))
    image = torch.arange(40).repeat_interleave(16)
    assert estimates == estimate_decisions(
        assessed(logits), CONCERN, target, clusters=image
    )
    alone = estimate_decisions(assessed(logits), CONCERN, target)
    assert estimates[0].difference == pytest.approx(alone[0].difference)
    assert estimates[0].low < alone[0].low


@pytest.mark.parametrize("kind", ["calibrated", "too hot"])
def test_intervals_contain_the_true_difference(kind: str) -> None:
    """200 draws of 500 labels: of calibrated probabilities, the true difference is 0; of others, by many labels."""
    heat = 1.0 if kind == "calibrated" else 2.0
    true = [0.0, 0.0]
    if kind == "too hot":
        logits, target = draw(400_000, 10**6, heat=heat)
        many = estimate_decisions(assessed(logits), CONCERN, target)
        true = [estimate.difference for estimate in many]
    hits, alarms = np.zeros(2), np.zeros(2)
    for seed in range(200):
        logits, target = draw(500, seed, heat=heat)
        estimates = estimate_decisions(assessed(logits), CONCERN, target)
        for place, (estimate, value) in enumerate(zip(estimates, true, strict=True)):
            hits[place] += estimate.low <= value <= estimate.high
            alarms[place] += estimate.is_alarm
    assert (hits / 200 >= 0.93).all()
    if kind == "calibrated":
        assert (alarms / 200 <= 0.07).all()
    else:
        assert alarms[1] / 200 > 0.7


def test_the_gaps_of_evaluate_are_those_of_most_probable_classes() -> None:
    logits, target = draw(500, 0, heat=2)
    probs = logits.softmax(1)
    found = evaluate(probs, target, concern=CONCERN)
    decided = probs.numpy().argmax(1)
    for name, losses in (("dangerous_gap", DANGEROUS), ("cost_gap", COSTS[:, :3])):
        gaps = losses[target, decided] - (probs.numpy() @ losses)[np.arange(500), decided]
        assert found.value(name) == pytest.approx(gaps.mean())
        low, high = found.interval(name) or (1, 0)
        assert low < gaps.mean() < high
    assert "dangerous_gap" in found.table(found.names_shown).markdown()
    assert "dangerous_gap" not in evaluate(probs, target).first.values


def test_lines_say_when_estimates_are_right_and_what_an_alarm_means() -> None:
    sure = RuleEstimate("cost per sample", 0.5, 900, 800, 0.25, 0.1, 0.4)
    assert estimate_lines([sure]) == [
        "Estimated from the probabilities, which is right only while they are calibrated, and is no limit:",
        "- cost per sample: 0.5 (of 900); measured minus estimated: +0.25 (95 %: 0.1 to 0.4; 800 labels). "
        "CALIBRATION ALARM: do not rely on this estimate",
    ]
    assert "ALARM" not in str(sure._replace(low=-0.1))
    assert sure._replace(low=-0.4, high=-0.1).is_alarm
    assert estimate_lines([]) == []


@pytest.mark.parametrize(
    ("target", "refusal"),
    [
        (torch.zeros(3, 3), Refused("shape", "target", shape=(9,))),
        (torch.full((9,), 255), Refused("below_where_known", "target", 255)),
    ],
)
def test_labels_of_another_shape_or_class_are_refused(
    target: Tensor, refusal: Refused
) -> None:
    with refusal:
        estimate_decisions(assessed(draw(9, 0)[0]), CONCERN, target)
