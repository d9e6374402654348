"""The benchmark's trainer: many models at once train as each would alone, and losses are what their papers say."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from examples.benchmark import tasks
from examples.benchmark.fleets import Condition, Fleet, Model, Regime, cosine
from examples.benchmark.losses import FLOORED, LOSSES, PLAIN, Problem
from examples.benchmark.model_inputs import ModelInputs
from examples.benchmark.package_tables import Samples
from examples.benchmark.stacked_losses import StackedLoss
from examples.benchmark.tasks import TASKS, Task
from examples.benchmark.training import Training
from mpcs_torch import ConcernSpec
from mpcs_torch.learning import ConcernLoss
from mpcs_torch.trainer.networks import MODELS

CONCERN = ConcernSpec(3, releases=[[0, 1], [1, 0]], factor=0.5)
COUNTS = torch.tensor([10, 20, 70])
NOWHERE = Path()


def images(root: Path, *, shape: tuple[int, ...] = (1, 4, 4)) -> Samples:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 3, (90,), generator=generator)
    inputs = torch.randn(90, *shape, generator=generator) + labels.reshape(
        -1, *[1] * len(shape)
    )
    costs = 1 + torch.rand(90, 3, generator=generator)
    return Samples(inputs, labels, ("a", "b", "c"), costs=costs)


SMALL = Task(
    "small",
    images,
    lambda _: CONCERN,
    partial(MODELS["mlp"], hidden=5),
    steps=20,
    batch_size=8,
)
SERIES = replace(
    SMALL,
    load=partial(images, shape=(4, 2)),
    model=partial(MODELS["lstm"], hidden=3),
    clip_norm=0.1,
    is_scaled=True,
)


OF_MANY = [name for name, loss in LOSSES.items() if loss.group != "binary"]


@pytest.mark.parametrize("loss", OF_MANY)
def test_models_train_at_once_as_each_alone(loss: str) -> None:
    settings = LOSSES[loss].values
    models = [
        Model(settings[0], 0),
        Model(settings[1], 0),
        Model(settings[0], 0, 1),
        Model(settings[2], 1),
    ]
    for task, condition in (
        (SMALL, Condition(0.5)),
        (replace(SMALL, is_image=True), Condition(1.0, 2)),
    ):
        together = Fleet(task, Regime(loss, 0.01, condition), models, NOWHERE)
        together.train()
        outputs = []
        for place, model in enumerate(models):
            alone = Fleet(task, Regime(loss, 0.01, condition), [model], NOWHERE)
            alone.train()
            outputs.append(alone.outputs(0, alone.parts[0].test))
            found = together.outputs(place, together.parts[place].test)
            torch.testing.assert_close(found, outputs[-1], rtol=1e-4, atol=1e-5)
        assert not torch.allclose(outputs[0], outputs[2], atol=1e-2), "members differ"


def test_recurrent_models_with_clipped_gradients_train_at_once_as_each_alone() -> None:
    models = [Model(0.0, 0), Model(0.0, 1)]
    together = Fleet(SERIES, Regime(PLAIN, 0.01, Condition()), models, NOWHERE)
    together.train()
    alone = Fleet(SERIES, Regime(PLAIN, 0.01, Condition()), models[1:], NOWHERE)
    alone.train()
    places = alone.parts[0].test
    torch.testing.assert_close(
        together.outputs(1, places), alone.outputs(0, places), rtol=1e-4, atol=1e-5
    )


def test_a_model_is_trained_as_by_a_plain_loop() -> None:
    fleet = Fleet(SMALL, Regime(PLAIN, 0.01, Condition()), [Model(0.1, 3)], NOWHERE)
    fleet.train()
    samples, train = SMALL.samples(NOWHERE), SMALL.parts(NOWHERE, 3).train
    torch.manual_seed(3)
    network = SMALL.model((1, 4, 4), 3)
    optimizer = torch.optim.Adam(network.parameters())
    generator, order = torch.Generator().manual_seed(3), torch.empty(0, dtype=torch.int64)
    for step in range(20):
        if len(order) < 8:
            order = train[torch.randperm(len(train), generator=generator)]
        places, order = order[:8], order[8:]
        optimizer.param_groups[0]["lr"] = 0.01 * cosine(step, 20)
        optimizer.zero_grad()
        cross_entropy(
            network(samples.inputs[places]), samples.labels[places], label_smoothing=0.1
        ).backward()
        optimizer.step()
    test = fleet.parts[0].test
    torch.testing.assert_close(
        fleet.outputs(0, test), network(samples.inputs[test]).detach(), rtol=1e-4, atol=1e-5
    )


LOGITS = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
TARGET = torch.tensor([0, 1, 2, 0, 1, 2])


def loss_of(
    name: str, setting: float, progress: float = 0.9, smoothing: float = 0.0
) -> Tensor:
    """Return the losses of `LOGITS` of a stack of one model."""
    data = LOSSES[name].make(Problem(CONCERN, COUNTS, smoothing), setting)
    [losses] = StackedLoss([data])(LOGITS.unsqueeze(0), TARGET.unsqueeze(0), progress)
    return losses


def test_a_margin_grows_with_harm_and_with_the_steps() -> None:
    for progress, share in ((0.0, 0.0), (0.1, 0.0), (0.35, 0.5), (0.6, 1.0), (0.9, 1.0)):
        added = LOGITS.clone()
        for row, true in enumerate(TARGET.tolist()):
            for other in {0, 1, 2} - {true}:
                is_dangerous = {true, other} != {0, 1}
                added[row, other] += 4 * share * (1.0 if is_dangerous else 0.5)
        expected = cross_entropy(added, TARGET, reduction="none")
        torch.testing.assert_close(loss_of(FLOORED, 0.0, progress), expected)


def test_losses_are_those_of_their_definitions() -> None:
    logits, target = LOGITS, TARGET
    smoothed = cross_entropy(logits, target, reduction="none", label_smoothing=0.1)
    torch.testing.assert_close(loss_of(PLAIN, 0.1), smoothed)
    adjusted = logits + 0.5 * (COUNTS / 100).log()
    expected = cross_entropy(adjusted, target, reduction="none", label_smoothing=0.02)
    torch.testing.assert_close(loss_of("logit adjustment", 0.5, smoothing=0.02), expected)
    costs = torch.tensor([[0.0, 0.1, 1.0], [0.1, 0.0, 1.0], [1.0, 1.0, 0.0]])
    weights = costs.sum(dim=1) / costs.sum(dim=1).mean()
    plain = cross_entropy(logits, target, reduction="none")
    torch.testing.assert_close(
        loss_of("class weights by cost", 0.1), weights[target] * plain
    )
    expected_costs = (logits.softmax(dim=1) * costs[target]).sum(dim=1)
    torch.testing.assert_close(loss_of("expected cost", 3.0), plain + 3 * expected_costs)
    ours = ConcernLoss(costs.clone().fill_diagonal_(1), concern_share=0.8)(logits, target)
    torch.testing.assert_close(loss_of("concern loss", 0.8).mean(), ours)


def test_the_gradient_of_a_beta_loss_is_that_of_the_expected_cost_under_a_beta_distribution() -> (
    None
):
    concern = ConcernSpec(
        2, releases=[[1, 0]], factor=0.5
    )  # 1 for 0 costs 1, and 0 for 1 costs 0.5
    data = LOSSES["beta loss"].make(Problem(concern, COUNTS[:2]), 0.5)
    threshold = 1 / 1.5  # decide for 1 if its probability is above
    powers = (threshold, 1 - threshold)
    logits = torch.tensor([[[0.3, -0.4], [0.3, -0.4]]], requires_grad=True)
    StackedLoss([data])(logits, torch.tensor([[0, 1]]), 0.5).sum().backward()
    assert logits.grad is not None
    probs = logits[0, 0].softmax(dim=0)
    for row in (0, 1):
        # f is the density of the threshold: the cost of label 0 has the derivative p f(p), that of 1 -(1 - p) f(p).
        density = probs[1] ** (powers[0] - 1) * probs[0] ** (powers[1] - 1)
        by_prob = probs[1] * density if row == 0 else -probs[0] * density
        assert logits.grad[0, row, 1].item() == pytest.approx(
            (by_prob * probs[0] * probs[1]).item(), rel=1e-5
        )


def test_cosines_of_a_frame_are_higher_for_released_pairs() -> None:
    frame = LOSSES["hierarchical frame (HAFrame)"].make(Problem(CONCERN, COUNTS), 1.0).frame
    cosines = normalize(frame, dim=1) @ frame.T
    assert cosines[0, 1].item() == pytest.approx(torch.tensor(-0.5).exp().item(), abs=1e-5)
    assert cosines[0, 2].item() == pytest.approx(torch.tensor(-1.0).exp().item(), abs=1e-5)


def test_images_are_shifted_and_other_inputs_get_noise() -> None:
    values = torch.arange(1.0, 17).reshape(1, 1, 4, 4).repeat(50, 1, 1, 1)
    places = torch.arange(50).unsqueeze(0)
    generators = [torch.Generator().manual_seed(0)]
    inputs = ModelInputs(replace(SMALL, is_image=True), values, [torch.arange(50)], 1.0)
    shifted = inputs.augmented(places, generators)
    assert shifted.shape == (1, 50, 1, 4, 4)
    kinds = {tuple(each.flatten().tolist()) for each in shifted[0]}
    assert len(kinds) == 9  # no shift, and eight neighbours
    assert tuple(range(1, 17)) in kinds
    assert all({*kind} <= {*range(17)} for kind in kinds)
    noisy = (
        ModelInputs(SMALL, values, [torch.arange(50)], 0.3).augmented(places, generators)
        - values
    )
    assert noisy.std().item() == pytest.approx(0.3 * values.std().item(), rel=0.1)
    plain = ModelInputs(SMALL, values, [torch.arange(50)], 0.0).augmented(
        places, generators
    )
    assert torch.equal(plain[0], values)


def test_parts_keep_groups_together_and_follow_weights() -> None:
    groups, weights = torch.arange(300) // 3, torch.tensor([1.0, 9.0]).repeat(150)

    def load(root: Path) -> Samples:
        return Samples(
            torch.zeros(300, 2), torch.zeros(300, dtype=torch.int64), ("a",), groups=groups
        )

    parts = replace(SMALL, load=load).parts(NOWHERE, 0)
    assert sum(map(len, parts)) == 300
    of_parts = [set(groups[part].tolist()) for part in parts]
    assert not of_parts[0] & of_parts[1]
    assert not of_parts[0] & of_parts[2]
    assert not of_parts[1] & of_parts[2]
    weighted = replace(
        SMALL, load=lambda root: replace(load(root), groups=None, weights=weights)
    ).parts(NOWHERE, 0)
    assert weights[torch.cat(weighted)].mean().item() == pytest.approx(
        0.1 * 1 + 0.9 * 9, abs=0.5
    )
    assert not set(weighted.train.tolist()) & set(weighted.test.tolist())


def test_outcomes_are_kept_for_each_setting_seed_and_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TASKS, "small", SMALL)
    assert tasks.TASKS["small"] is SMALL
    one = Training(
        "small",
        Regime(PLAIN, 0.01, Condition()),
        settings=(0.0, 0.1),
        seeds=range(2),
        members=3,
        data_root=NOWHERE,
        out=tmp_path,
    )
    assert not one.is_done()
    one.run()
    assert one.is_done()
    fleet = Fleet(SMALL, Regime(PLAIN, 0.01, Condition()), [Model(0.1, 1, 2)], NOWHERE)
    fleet.train()
    outcome = one.outcome(0.1, 1)
    torch.testing.assert_close(
        outcome.test[2], fleet.outputs(0, fleet.parts[0].test), rtol=1e-4, atol=1e-5
    )
    assert torch.equal(outcome.validation_labels, fleet.labels[fleet.parts[0].validation])
    assert outcome.validation.shape == (3, 30, 3)
    assert one.seconds() > 0
