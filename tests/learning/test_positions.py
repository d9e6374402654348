"""Rules for samples with several positions, as images have pixels: clusters by default, and whole samples referred."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mpcs_torch import ConcernSpec
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


@pytest.mark.parametrize("has_void", [False, True], ids=["", "some pixels have no label"])
@pytest.mark.parametrize("has_more", [False, True], ids=["", "with all that a fit takes"])
@pytest.mark.parametrize("calibration", [None, "temperature"])
def test_a_fit_to_images_is_a_fit_to_pixels_in_the_clusters_of_their_images(
    calibration: Any, has_more: bool, has_void: bool
) -> None:
    logits, target = images(400, 0)
    if has_void:
        is_void = torch.rand(target.shape, generator=torch.Generator().manual_seed(1)) < 0.3
        is_void[::9] = True  # some images have no label at all
        target = target.masked_fill(is_void, -1)
    kept = target.flatten() >= 0
    image = torch.arange(400).repeat_interleave(SIDE**2)[kept]
    limit, costs, of_pixels = Limit(0.02), None, None
    given: dict[str, Any] = {}
    same: dict[str, Any] = {"clusters": image}
    if has_more:
        limit = Limit(0.2, by="site")
        costs = costs_if_wrong(torch.rand(400, 2, SIDE, SIDE) + 0.1)
        of_pixels = costs.movedim((1, 2), (-2, -1)).reshape(-1, 2, 2)
        of_images = {"clusters": torch.arange(400) // 2, "weights": torch.rand(400) + 0.5}
        site = torch.arange(400) % 2
        given = {"groups": {"site": site}, **of_images}
        same = {name: values[image] for name, values in of_images.items()}
        same |= {"groups": {"site": site[image]}, "costs": of_pixels[kept]}
    by_image = DecisionRule(SCENE, limit, calibration=calibration)
    by_pixel = DecisionRule(SCENE, limit, calibration=calibration)
    by_image.fit(logits, target, costs=costs, ignore_index=-1, **given)
    by_pixel.fit(flat(logits)[kept], target.flatten()[kept], **same)
    assert by_image.thresholds.tolist() == by_pixel.thresholds.tolist()
    assert by_image.report == by_pixel.report
    assert by_image.report is not None
    assert by_image.report.is_clustered
    assert "in clusters: no interval" in str(by_image.report.by_class["person"])
    decided = by_image(logits, costs)
    assert decided.shape == (400, SIDE, SIDE)
    assert decided.flatten().tolist() == by_pixel(flat(logits), of_pixels).tolist()
    assert (decided != -1).any()
    if costs is None:
        assert (decided == -1).any()
        alone = [by_image(one[None]) for one in logits]
        assert torch.equal(torch.cat(alone), decided), "image by image"


def test_a_fit_needs_a_label() -> None:
    logits, target = images(30, 0)
    with Refused("some_label", "target", 255):
        DecisionRule(SCENE).fit(logits, torch.full_like(target, 255), ignore_index=255)


@pytest.mark.parametrize("has_void", [False, True], ids=["", "some pixels have no label"])
def test_whole_images_are_referred_by_the_mean_risk_of_all_their_pixels(
    tmp_path: Any, has_void: bool
) -> None:
    logits, target = images(300, 0)
    if has_void:
        target[:, 0] = -100
    rule = DecisionRule(SCENE, LIMIT, refers_whole=True, calibration=None).fit(
        logits, target, ignore_index=-100
    )
    assert rule.report is not None
    assert rule.report.judged_by <= (target >= 0).sum()
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
def test_limits_hold_over_the_pixels_of_new_images_that_are_referred_as_a_whole() -> None:
    """Of 200 fits to 150 images, at most 5 % exceed the limit, up to two standard errors."""
    new, target = images(2000, 10**6)
    above, decided = list[bool](), list[float]()
    for seed in range(200):
        rule = DecisionRule(SCENE, LIMIT, refers_whole=True).fit(*images(150, seed))
        decisions = rule(new)
        above.append(
            ((decisions == 0) & (target == 1)).double().mean().item() > LIMIT.at_most
        )
        decided.append((decisions >= 0).double().mean().item())
    assert sum(above) <= 200 * 0.05 + 2 * (200 * 0.05 * 0.95) ** 0.5
    assert np.mean(decided) > 0.5


def test_what_does_not_fit_is_refused() -> None:
    logits, target = images(30, 0)
    with Refused("shape", "preds", shape="(N, 2) or (N, 2, ...)"):
        DecisionRule(SCENE, calibration=None)(logits.movedim(1, -1))
    with Refused("shape", "target", shape=(30, 4, 4)):
        DecisionRule(SCENE).fit(logits, target[:, :2])
    with Refused("name_for_each", "clusters", 480, rows=30):
        DecisionRule(SCENE).fit(logits, target, clusters=range(480))


def test_coarse_answers_are_not_of_whole_images() -> None:
    answers = ConcernSpec(["a", "b", "c"], answers={"a or b": 0.3}, refer=1)
    with Refused("no_whole", "refers_whole"):
        DecisionRule(answers, refers_whole=True)
