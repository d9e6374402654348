"""The differences of models in a group are those of an evaluation of its rows alone."""

from typing import Any

import pytest
import torch

from mpcs_torch import ConcernSpec, evaluate
from mpcs_torch.evaluation import Result
from mpcs_torch.functional import holm_adjusted

SPEC = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"]])
ROWS = 900
SITES = [["north", "south", "west"][row % 3] for row in range(ROWS)]
PATIENTS = [f"p{row // 9}" for row in range(ROWS)]


def three_models(rows: list[int], **arguments: Any) -> Result:
    """Evaluate three models on some of 900 rows; c is worse than a in the north alone."""
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(3, (ROWS,), generator=generator)
    noise = torch.randn(3, ROWS, 3, generator=generator)
    skill = torch.tensor([1.5, 2.5, 2.5]).view(3, 1, 1).repeat(1, ROWS, 1)
    skill[2, ::3] = 0
    logits = noise + skill * torch.eye(3)[target]
    preds = {name: logits[place].softmax(1)[rows] for place, name in enumerate("abc")}
    metrics = ["accuracy", "dangerous_rate"]
    return evaluate(preds, target[rows], concern=SPEC, metrics=metrics, **arguments)


@pytest.mark.parametrize("has_clusters", [False, True])
def test_differences_by_group_are_those_of_its_rows_alone(has_clusters: bool) -> None:
    def clusters(rows: list[int]) -> dict[str, Any]:
        return {"clusters": [PATIENTS[row] for row in rows]} if has_clusters else {}

    every = [*range(ROWS)]
    result = three_models(every, groups={"site": SITES}, **clusters(every))
    [(column, differences)] = result.group_differences.items()
    assert column == "site"
    groups = list(dict.fromkeys(row.group for row in differences))
    assert groups == result.groups[0].worst_first()
    assert len(differences) == 9
    for row in differences:
        alone = [place for place in every if SITES[place] == row.group]
        [expected] = [
            compared
            for compared in three_models(alone, **clusters(alone)).comparisons
            if compared.by.metric == "dangerous_rate"
            and (compared.first, compared.second)
            == (row.comparison.first, row.comparison.second)
        ]
        assert row.comparison.paired == pytest.approx(expected.paired)
    p_values = torch.tensor([row.comparison.paired.p_value for row in differences])
    adjusted = [row.comparison.adjusted_p_value for row in differences]
    assert adjusted == pytest.approx(holm_adjusted(p_values.double()).tolist())
    plain = result.to_dict()["group_differences"]
    assert [(row["group"], row["difference"]) for row in plain] == [
        (row.group, row.comparison.paired.difference) for row in differences
    ]


def test_a_model_may_be_better_on_all_rows_and_worse_in_a_group() -> None:
    result = three_models([*range(ROWS)], groups={"site": SITES})
    text = str(result)
    assert "Differences by site" in text
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
    result = three_models([*range(ROWS)], **{"groups": {"site": SITES}, **arguments})
    assert result.group_differences == {}
    assert "group_differences" not in result.to_dict()
