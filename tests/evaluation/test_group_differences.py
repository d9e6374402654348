"""The differences of models in groups of rows."""

from typing import Any

import pytest
import torch

from mpcs_torch import ConcernSpec, evaluate
from mpcs_torch.evaluation import Result
from mpcs_torch.functional import holm_adjusted

SPEC = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"]])
ROWS = 900
SITES = [["north", "south", "west"][row % 3] for row in range(ROWS)]


def three_models(**arguments: Any) -> Result[Any]:
    """Evaluate three models on 900 rows; c is worse than a in the north alone."""
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(3, (ROWS,), generator=generator)
    noise = torch.randn(3, ROWS, 3, generator=generator)
    skill = torch.tensor([1.5, 2.5, 2.5]).view(3, 1, 1).repeat(1, ROWS, 1)
    skill[2, ::3] = 0
    logits = noise + skill * torch.eye(3)[target]
    preds = {name: logits[place].softmax(1) for place, name in enumerate("abc")}
    metrics = ["accuracy", "dangerous_rate"]
    return evaluate(preds, target, concern=SPEC, metrics=metrics, **arguments)


def test_differences_of_all_groups_are_corrected_together_from_the_worst_on() -> None:
    """That each is the difference of the group's rows alone is a law of evaluations."""
    result = three_models(groups={"site": SITES})
    [(column, differences)] = result.group_differences.items()
    assert column == "site"
    groups = list(dict.fromkeys(row.group for row in differences))
    assert groups == result.groups[0].worst_first()
    assert len(differences) == 9
    p_values = torch.tensor([row.comparison.paired.p_value for row in differences])
    adjusted = [row.comparison.adjusted_p_value for row in differences]
    assert adjusted == pytest.approx(holm_adjusted(p_values.double()).tolist())
    plain = result.to_dict()["group_differences"]
    assert [(row["group"], row["difference"]) for row in plain] == [
        (row.group, row.comparison.paired.difference) for row in differences
    ]


def test_a_model_may_be_better_on_all_rows_and_worse_in_a_group() -> None:
    result = three_models(groups={"site": SITES})
    assert "Differences by site" in str(result)
    better = {
        row.group: row.comparison.better
        for row in result.group_differences["site"]
        if (row.comparison.first, row.comparison.second) == ("a", "c")
    }
    assert better == {"north": "a", "south": "c", "west": "c"}


@pytest.mark.parametrize("arguments", [{"intervals": False}, {"groups": None}])
def test_without_intervals_or_groups_there_are_no_differences(
    arguments: dict[str, Any],
) -> None:
    result = three_models(**{"groups": {"site": SITES}, **arguments})
    assert result.group_differences == {}
    assert "group_differences" not in result.to_dict()
