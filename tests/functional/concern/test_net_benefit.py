"""Net benefit: the identities that it obeys."""

from typing import Any

import pytest
import torch

from mpcs_torch.functional import net_benefit
from mpcs_torch.functional.concern.net_benefit import NetBenefit
from tests.refused import Refused

GENERATOR = torch.Generator().manual_seed(0)
TARGET = (torch.rand(200, generator=GENERATOR) < 0.3).long()


def test_acting_on_all_and_on_none() -> None:
    share = TARGET.double().mean().item()
    every = torch.tensor([[0.0, 1.0]]).repeat(200, 1)
    none = torch.tensor([[1.0, 0.0]]).repeat(200, 1)
    settings: dict[str, Any] = {"num_classes": 2, "threshold": 0.25, "from_logits": False}
    assert net_benefit(every, TARGET, **settings).item() == pytest.approx(
        share - (1 - share) / 3
    )
    assert net_benefit(none, TARGET, **settings) == 0


def test_probabilities_that_equal_the_threshold_act() -> None:
    probs = torch.tensor([[0.7, 0.3], [0.9, 0.1]])
    for threshold, acts in ((0.3, 1), (0.1, 2)):
        found = net_benefit(
            probs,
            torch.tensor([1, 1]),
            num_classes=2,
            threshold=threshold,
            from_logits=False,
        )
        assert found == acts / 2


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        (
            {"threshold": 1.0},
            Refused("open_between", "threshold", 1.0, minimum=0, maximum=1),
        ),
        ({"classes": []}, Refused("some_classes", "classes", last=2)),
        ({"classes": [3]}, Refused("some_classes", "classes")),
        ({"threshold": "0.5"}, Refused("open_between", "threshold", "0.5")),
        ({"classes": 1}, Refused("some_classes", "classes", 1)),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], refusal: Refused) -> None:
    with refusal:
        NetBenefit(3, **settings)
