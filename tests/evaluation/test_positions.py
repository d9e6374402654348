"""Samples with several positions, as images have pixels: each sample is a cluster, and each position a row."""

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mpcs_torch import ConcernSpec, Evaluation, evaluate
from tests.evaluation.alike import assert_same_numbers
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
MODELS = {"A": PROBS, "B": PROBS.roll(1, 0)}
IMAGE = torch.arange(40).repeat_interleave(36)
COSTS = torch.rand(40, 3, 3, 6, 6, generator=torch.Generator().manual_seed(1))
"""The cost of each pixel, by true class and decision."""


def flat(values: Tensor) -> Tensor:
    """Return rows (N * 36, ...) for the pixels of tensors (N, ..., 6, 6)."""
    return values.movedim((-2, -1), (1, 2)).flatten(0, 2)


@pytest.mark.parametrize(
    ("preds", "target", "arguments"),
    [
        (
            MODELS,
            TARGET,
            {"groups": {"site": ["north", "south"] * 20}, "weights": torch.rand(40) + 0.5},
        ),
        ({"A": PROBS.argmax(1)}, TARGET, {"clusters": torch.arange(40) // 4}),
        ({"A": PROBS}, torch.eye(3)[TARGET].movedim(-1, 1), {}),
        (
            {"A": PROBS},
            TARGET,
            {"costs": COSTS[:, 0], "metrics": ["mean_cost", "regret", "mcc"]},
        ),
        ({"A": PROBS}, TARGET, {"costs": COSTS, "metrics": ["mean_cost", "regret", "mcc"]}),
    ],
    ids=["models in groups", "decisions of patients", "shares", "costs", "costs by class"],
)
def test_pixels_are_rows_in_the_clusters_of_their_images(
    preds: dict[str, Tensor], target: Tensor, arguments: dict[str, Any]
) -> None:
    found = evaluate(preds, target, concern=CONCERN, **arguments)
    settings = {"clusters": torch.arange(40), **arguments}
    if "costs" in settings:
        settings["costs"] = flat(settings["costs"])
    if "groups" in settings:
        settings["groups"] = {"site": np.repeat(settings["groups"]["site"], 36)}
    for name in settings.keys() & {"weights", "clusters"}:
        settings[name] = settings[name].repeat_interleave(36)
    rows = {name: flat(each) for name, each in preds.items()}
    expected = evaluate(rows, flat(target), concern=CONCERN, **settings)
    assert_same_numbers(found, expected)
    number = "10 clusters" if "clusters" in arguments else "40 clusters (samples)"
    assert f"{number} are independent, the rows of a cluster are not." in str(found)


def test_the_table_of_classes_counts_pixels_and_the_images_that_have_them() -> None:
    table = evaluate(PROBS, TARGET, class_names=NAMES).first.class_table()
    assert table is not None
    for number, row in enumerate(table.records()):
        is_of_class = number == TARGET
        assert row["rows"] == str(int(is_of_class.sum()))
        assert row["samples"] == str(int(is_of_class.flatten(1).any(1).sum()))


def test_pixels_without_a_label_are_left_out() -> None:
    is_void = torch.rand(TARGET.shape, generator=torch.Generator().manual_seed(1)) < 0.3
    is_void[::7] = True  # some images have no label at all
    kept, labels = ~is_void.flatten(), TARGET.masked_fill(is_void, 255)
    found = evaluate(MODELS, labels, concern=CONCERN, ignore_index=255)
    rows = {name: flat(probs)[kept] for name, probs in MODELS.items()}
    labelled = TARGET.flatten()[kept]
    expected = evaluate(rows, labelled, concern=CONCERN, clusters=IMAGE[kept])
    assert_same_numbers(found, expected)
    by_batch = Evaluation(NAMES, concern=CONCERN, has_positions=True)
    for batch in torch.arange(40).split(4):
        by_batch.update(
            {name: probs[batch] for name, probs in MODELS.items()},
            labels[batch],
            ignore_index=255,
        )
    assert_same_numbers(by_batch.result(), found)
    with Refused("none_for_soft_labels", "ignore_index", 255):
        evaluate(PROBS, PROBS, concern=CONCERN, ignore_index=255)


def test_images_may_have_any_size() -> None:
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


def test_what_does_not_fit_is_refused() -> None:
    with Refused("name_for_each", "unit", 40, rows=1440):
        evaluate(PROBS, TARGET, class_names=NAMES, unit=range(40))
    with Refused("needs_positions", "has_positions"):
        Evaluation(NAMES).update(PROBS, TARGET)
    with Refused("shape", "target"):
        evaluate(PROBS, TARGET[:, :5], class_names=NAMES)
    with Refused("name_for_each", "clusters", rows=40):
        evaluate(PROBS, TARGET, class_names=NAMES, clusters=IMAGE)
