"""Rules for samples with several positions, as images have pixels: clusters by default, and whole samples referred."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mpcs_torch import ConcernSpec
from mpcs_torch.errors import InvalidValueError
from mpcs_torch.functional import costs_if_wrong
from mpcs_torch.learning import DecisionRule, Limit
from tests.refused import Refused

SCENE = ConcernSpec(["road", "person"], dangerous=[["person", "road"]])
LIMIT = Limit(0.05)
SIDE = 4


def images(number: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return logits (N, 2, 4, 4) and labels of images, some of which are hard."""
    generator = torch.Generator().manual_seed(seed)
    target = (torch.rand(number, SIDE, SIDE, generator=generator) < 0.4).long()
    skill = 5 * torch.rand(number, 1, 1, 1, generator=generator)
    noise = torch.randn(number, 2, SIDE, SIDE, generator=generator)
    return skill * torch.eye(2)[target].movedim(-1, 1) + noise, target


def flat(logits: Tensor) -> Tensor:
    return logits.movedim(1, -1).reshape(-1, logits.shape[1])


def test_a_fit_to_images_is_a_fit_to_pixels_in_the_clusters_of_their_images() -> None:
    logits, target = images(300, 0)
    rule = DecisionRule(SCENE, LIMIT).fit(logits, target)
    image = torch.arange(300).repeat_interleave(SIDE**2)
    same = DecisionRule(SCENE, LIMIT).fit(flat(logits), target.flatten(), clusters=image)
    assert rule.thresholds.tolist() == same.thresholds.tolist()
    assert rule.report == same.report
    assert rule.report is not None
    assert rule.report.is_clustered
    assert "in clusters: no interval" in str(rule.report.by_class["person"])
    new, _ = images(20, 1)
    decided = rule(new)
    assert decided.shape == (20, SIDE, SIDE)
    assert decided.flatten().tolist() == same(flat(new)).tolist()
    assert 0 < (decided == -1).sum() < decided.numel()
    assert torch.equal(torch.cat([rule(image[None]) for image in new]), decided), (
        "image by image"
    )


def test_groups_weights_clusters_and_costs_are_of_images() -> None:
    logits, target = images(400, 0)
    sites = ["north", "south"] * 200
    patients = torch.arange(400) // 2
    weights = torch.rand(400) + 0.5
    amounts = torch.rand(400, 2, SIDE, SIDE) + 0.1
    costs = costs_if_wrong(amounts)
    limit = Limit(0.2, by="site")
    rule = DecisionRule(SCENE, limit)
    rule.fit(
        logits,
        target,
        groups={"site": sites},
        clusters=patients,
        weights=weights,
        costs=costs,
    )
    same = DecisionRule(SCENE, limit).fit(
        flat(logits),
        target.flatten(),
        groups={"site": np.repeat(sites, SIDE**2)},
        clusters=patients.repeat_interleave(SIDE**2),
        weights=weights.repeat_interleave(SIDE**2),
        costs=costs_if_wrong(flat(amounts)),
    )
    assert rule.thresholds.tolist() == same.thresholds.tolist()
    assert rule.report == same.report
    assert (
        rule(logits, costs).flatten().tolist()
        == same(flat(logits), costs_if_wrong(flat(amounts))).tolist()
    )


@pytest.mark.parametrize("calibration", [None, "temperature"])
def test_a_fit_leaves_out_pixels_without_a_label(calibration: Any) -> None:
    logits, target = images(300, 0)
    is_void = torch.rand(target.shape, generator=torch.Generator().manual_seed(1)) < 0.3
    is_void[::9] = True  # some images have no label at all
    settings: dict[str, Any] = {"calibration": calibration}
    rule = DecisionRule(SCENE, LIMIT, **settings).fit(
        logits, target.masked_fill(is_void, 255), ignore_index=255
    )
    kept, image = ~is_void.flatten(), torch.arange(300).repeat_interleave(SIDE**2)
    costs = costs_if_wrong(torch.rand(300, 2, SIDE, SIDE) + 0.1)
    same = DecisionRule(SCENE, LIMIT, **settings).fit(
        flat(logits)[kept], target.flatten()[kept], clusters=image[kept]
    )
    assert rule.thresholds.tolist() == same.thresholds.tolist()
    assert rule.report == same.report
    by_costs = DecisionRule(SCENE, **settings).fit(
        logits, target.masked_fill(is_void, -1), costs=costs, ignore_index=-1
    )
    paid = costs.movedim((1, 2), (-2, -1))[~is_void][
        torch.arange(int(kept.sum())), target.flatten()[kept]
    ]
    decided = by_costs(logits, costs).flatten()[kept]
    assert by_costs.report is not None
    assert by_costs.report.cost == pytest.approx(
        paid.gather(1, decided.unsqueeze(1)).mean().item()
    )
    with pytest.raises(InvalidValueError) as refused:
        rule.fit(logits, torch.full_like(target, 255), ignore_index=255)
    assert (refused.value.argument, refused.value.value) == ("target", 255)


def test_whole_images_are_referred_by_all_their_pixels_though_some_have_no_label() -> None:
    logits, target = images(300, 0)
    target[:, 0] = -100
    rule = DecisionRule(SCENE, LIMIT, refers_whole=True, calibration=None).fit(
        logits, target, ignore_index=-100
    )
    assessed = rule.assess(logits)
    assert rule.report is not None
    image_risk = assessed.risk.flatten(1).mean(1)
    assert ((assessed.decision == -1).flatten(1).all(1)).tolist() == (
        image_risk >= rule.thresholds.item()
    ).tolist()
    assert 0 < rule.report.coverage < 1
    assert rule.report.judged_by < 300 * (SIDE - 1) * SIDE


def test_whole_images_are_referred_by_the_mean_risk_of_their_pixels(tmp_path: Any) -> None:
    logits, target = images(300, 0)
    rule = DecisionRule(SCENE, LIMIT, refers_whole=True, calibration=None).fit(
        logits, target
    )
    new, _ = images(200, 1)
    assessed = rule.assess(new)
    is_referred = (assessed.decision == -1).flatten(1)
    assert torch.equal(is_referred.all(1), is_referred.any(1))
    mean_risk = np.asarray(assessed.risk.double()).reshape(200, -1).mean(1)
    assert is_referred[:, 0].tolist() == (mean_risk >= rule.thresholds.item()).tolist()
    assert 0 < is_referred[:, 0].sum() < 200
    rule.save(tmp_path / "rule.pt")
    assert torch.equal(DecisionRule.load(tmp_path / "rule.pt")(new), assessed.decision)
    alone = torch.cat([rule(image[None]) for image in new])
    assert torch.equal(alone, assessed.decision)


def test_whole_images_are_referred_if_their_mean_cost_is_above_the_price() -> None:
    priced = ConcernSpec(["road", "person"], weights=[[0, 1], [9, 0]], refer=0.4)
    new, _ = images(200, 1)
    costs = torch.tensor([[0.0, 1], [9, 0]])
    expected = (
        np.einsum("nihw,ij->njhw", new.softmax(1).numpy(), costs.numpy())
        .min(1)
        .reshape(200, -1)
    )
    for given in (None, costs.view(1, 2, 2, 1, 1).expand(200, 2, 2, SIDE, SIDE)):
        whole = DecisionRule(priced, refers_whole=True, calibration=None)(
            new, given
        ).flatten(1)
        pixels = DecisionRule(priced, calibration=None)(new, given).flatten(1)
        assert (pixels == -1).tolist() == (expected > 0.4).tolist()
        assert ((whole == -1).all(1)).tolist() == (expected.mean(1) > 0.4).tolist()
        assert ((whole == -1).any(1)).tolist() == ((whole == -1).all(1)).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("refers_whole", [False, True])
def test_limits_hold_over_the_pixels_of_new_images(refers_whole: bool) -> None:
    """Of 200 fits to 150 images, at most 5 % exceed the limit, up to two standard errors."""
    new, target = images(2000, 10**6)
    above, decided = list[bool](), list[float]()
    for seed in range(200):
        rule = DecisionRule(SCENE, LIMIT, refers_whole=refers_whole).fit(*images(150, seed))
        decisions = rule(new)
        above.append(
            ((decisions == 0) & (target == 1)).double().mean().item() > LIMIT.at_most
        )
        decided.append((decisions >= 0).double().mean().item())
    assert sum(above) <= 200 * 0.05 + 2 * (200 * 0.05 * 0.95) ** 0.5
    assert np.mean(decided) > 0.5


def test_what_does_not_fit_is_refused() -> None:
    logits, target = images(30, 0)
    answers = ConcernSpec(["a", "b", "c"], answers={"a or b": 0.3}, refer=1)
    with Refused("no_whole", "refers_whole"):
        DecisionRule(answers, refers_whole=True)
    for given in (logits[:, :1], logits[0], logits.movedim(1, -1)):
        with Refused("shape", "preds", shape="(N, 2) or (N, 2, ...)"):
            DecisionRule(SCENE, calibration=None)(given)
    with Refused("shape", "target", shape=(30, 4, 4)):
        DecisionRule(SCENE).fit(logits, target[:, :2])
    with Refused("name_for_each", "clusters", 480, rows=30):
        DecisionRule(SCENE).fit(logits, target, clusters=range(480))
