"""Samples with several positions, as images have pixels: each sample is a cluster, and each position a row."""

import pickle

import numpy as np
import pytest
import torch
from torch import Tensor

from mpcs_torch import ConcernSpec, Evaluation, evaluate
from tests.refused import Refused

NAMES = ["road", "car", "person"]
CONCERN = ConcernSpec(
    NAMES, weights=[[0, 1, 1], [2, 0, 1], [9, 3, 0]], dangerous=[["person", "road"]]
)


def images(number: int, side: int = 6, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return probabilities (N, 3, side, side) and labels; images differ in how hard they are."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(3, (number, side, side), generator=generator)
    skill = 3 * torch.rand(number, 1, 1, 1, generator=generator)
    logits = skill * torch.eye(3)[target].movedim(-1, 1) + torch.randn(
        number, 3, side, side, generator=generator
    )
    return logits.softmax(1), target


PROBS, TARGET = images(40)
FLAT, IMAGE = PROBS.movedim(1, -1).reshape(-1, 3), torch.arange(40).repeat_interleave(36)


def test_pixels_are_rows_in_the_clusters_of_their_images() -> None:
    """Values, intervals, groups and comparisons equal those of pixels that are passed with their images."""
    sites = ["north", "south"] * 20
    weights = torch.rand(40) + 0.5
    models = {"A": PROBS, "B": PROBS.roll(1, 0)}
    found = evaluate(
        models, TARGET, concern=CONCERN, groups={"site": sites}, weights=weights
    )
    flat = evaluate(
        {name: probs.movedim(1, -1).reshape(-1, 3) for name, probs in models.items()},
        TARGET.flatten(),
        concern=CONCERN,
        groups={"site": np.repeat(sites, 36)},
        weights=weights.repeat_interleave(36),
        clusters=IMAGE,
    )
    for name in ("accuracy", "dangerous_rate", "expected_concern", "cross_entropy"):
        assert found.value(name, "A") == pytest.approx(flat.value(name, "A"))
        assert found.interval(name, "B") == pytest.approx(
            flat.interval(name, "B"), rel=1e-6
        )
        group = ("site", "north")
        assert found.interval(name, "A", group) == pytest.approx(
            flat.interval(name, "A", group), rel=1e-6
        )
    assert found.comparisons[0].paired == pytest.approx(
        flat.comparisons[0].paired, rel=1e-4
    )
    assert "40 clusters (samples) are independent, the rows of a cluster are not." in str(
        found
    )


def test_the_table_of_classes_counts_pixels_and_the_images_that_have_them() -> None:
    table = evaluate(PROBS, TARGET, class_names=NAMES).first.class_table()
    assert table is not None
    for number, row in enumerate(table.records()):
        is_of_class = number == TARGET
        assert row["rows"] == str(int(is_of_class.sum()))
        assert row["samples"] == str(int(is_of_class.flatten(1).any(1).sum()))


def test_intervals_are_not_those_of_independent_pixels() -> None:
    low, high = evaluate(PROBS, TARGET, class_names=NAMES, metrics=["accuracy"]).interval(
        "accuracy"
    ) or (0, 0)
    alone = evaluate(
        FLAT, TARGET.flatten(), class_names=NAMES, metrics=["accuracy"]
    ).interval("accuracy") or (0, 0)
    assert high - low > 2 * (alone[1] - alone[0])


def test_decisions_soft_labels_costs_and_given_clusters_have_positions() -> None:
    decisions, patients = PROBS.argmax(1), torch.arange(40) // 4
    decided = evaluate(decisions, TARGET, concern=CONCERN, clusters=patients)
    probs = evaluate(PROBS, TARGET, concern=CONCERN, clusters=patients)
    assert decided.interval("accuracy") == pytest.approx(probs.interval("accuracy"))
    assert "10 clusters are independent" in str(decided)
    shares = evaluate(PROBS, torch.eye(3)[TARGET].movedim(-1, 1), concern=CONCERN)
    assert shares.value("accuracy") == pytest.approx(decided.value("accuracy"))
    costs = torch.rand(40, 3, 6, 6, generator=torch.Generator().manual_seed(1))
    found = evaluate(PROBS, TARGET, class_names=NAMES, costs=costs, metrics=["mean_cost"])
    paid = np.take_along_axis(costs.numpy(), decisions.numpy()[:, None], 1)
    assert found.value("mean_cost") == pytest.approx(paid.mean())
    by_class = torch.rand(40, 3, 3, 6, 6, generator=torch.Generator().manual_seed(2))
    found = evaluate(
        PROBS, TARGET, class_names=NAMES, costs=by_class, metrics=["mean_cost"]
    )
    rows = by_class.movedim((1, 2), (-2, -1)).reshape(-1, 3, 3).numpy()
    paid = rows[np.arange(len(rows)), TARGET.flatten(), decisions.flatten()]
    assert found.value("mean_cost") == pytest.approx(paid.mean())


def test_pixels_without_a_label_are_left_out() -> None:
    is_void = torch.rand(TARGET.shape, generator=torch.Generator().manual_seed(1)) < 0.3
    is_void[::7] = True  # some images have no label at all
    kept, labels = ~is_void.flatten(), TARGET.masked_fill(is_void, 255)
    found = evaluate(
        {"A": PROBS, "B": PROBS.roll(1, 0)}, labels, concern=CONCERN, ignore_index=255
    )
    flat = {"A": FLAT[kept], "B": FLAT.roll(36, 0)[kept]}
    expected = evaluate(flat, TARGET.flatten()[kept], concern=CONCERN, clusters=IMAGE[kept])
    for name in ("accuracy", "dangerous_rate"):
        assert found.interval(name, "A") == pytest.approx(expected.interval(name, "A"))
    assert found.comparisons[0].paired == pytest.approx(
        expected.comparisons[0].paired, rel=1e-4
    )
    by_batch = Evaluation(NAMES, concern=CONCERN, has_positions=True)
    labels[:4, 0] = 255
    for rows in torch.arange(40).split(4):
        by_batch.update(PROBS[rows], labels[rows], ignore_index=255)
    whole = evaluate(PROBS, labels, concern=CONCERN, ignore_index=255)
    assert by_batch.result().interval("accuracy") == pytest.approx(
        whole.interval("accuracy")
    )
    with Refused("none_for_soft_labels", "ignore_index", 255):
        evaluate(PROBS, PROBS, concern=CONCERN, ignore_index=255)


def test_images_may_come_one_by_one_and_in_any_size() -> None:
    whole = evaluate(PROBS, TARGET, concern=CONCERN)
    halves = [Evaluation(NAMES, concern=CONCERN, has_positions=True) for _ in range(2)]
    for image, (probs, target) in enumerate(zip(PROBS, TARGET, strict=True)):
        halves[image // 20].update(probs[None], target[None])
    halves[0].merge(halves[1])
    assert halves[0].result().interval("accuracy") == pytest.approx(
        whole.interval("accuracy")
    )
    assert str(halves[0].result()) == str(whole)
    of_sizes = Evaluation(NAMES, concern=CONCERN, has_positions=True)
    for side in (4, 9):
        of_sizes.update(*images(5, side))
    assert of_sizes.result().first.rows == 5 * 16 + 5 * 81


def test_memory_does_not_grow_with_images() -> None:
    evaluation, sizes = Evaluation(NAMES, concern=CONCERN, has_positions=True), list[int]()
    for seed in range(12):
        evaluation.update(*images(1, 128, seed=seed))
        sizes.append(len(pickle.dumps(evaluation)))
    assert sizes[-1] - sizes[2] < 9 * 128**2 / 8  # less than a bit for each new pixel
    assert evaluation.result().first.rows == 12 * 128**2


def test_intervals_contain_the_rate_of_new_images() -> None:
    """200 draws of 30 images, whose true rate is known by many images."""
    probs, target = images(20_000, 4, seed=10**6)
    true = (probs.argmax(1) == target).double().mean().item()
    held = 0
    for seed in range(200):
        low, high = evaluate(
            *images(30, 4, seed=seed), class_names=NAMES, metrics=["accuracy"]
        ).interval("accuracy") or (1, 0)
        held += low <= true <= high
    assert 0.93 <= held / 200 <= 1


def test_what_does_not_fit_is_refused() -> None:
    with Refused("name_for_each", "unit", 40, rows=1440):
        evaluate(PROBS, TARGET, class_names=NAMES, unit=range(40))
    with Refused("needs_positions", "has_positions"):
        Evaluation(NAMES).update(PROBS, TARGET)
    with Refused("shape", "target"):
        evaluate(PROBS, TARGET[:, :5], class_names=NAMES)
    with Refused("name_for_each", "clusters", rows=40):
        evaluate(PROBS, TARGET, class_names=NAMES, clusters=IMAGE)
