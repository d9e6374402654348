"""Groups of rows, also by the thousand: each has the values of its rows alone."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mpcs_torch import ConcernSpec, evaluate
from mpcs_torch.evaluation import Result, evaluation
from mpcs_torch.evaluation.scores import Scores
from tests.evaluation.alike import assert_same_scores

CONCERN = ConcernSpec(
    ["a", "b", "c"],
    weights=[[0, 1, 5], [1, 0, 2], [1, 1, 0]],
    class_groups={"ab": ["a", "b"]},
)


def drawn(rows: int, classes: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(rows, classes, generator=generator).double()
    return logits.softmax(1), torch.randint(classes, (rows,), generator=generator)


@settings(max_examples=8)
@given(
    groups=st.lists(st.sampled_from("pqrs"), min_size=1, max_size=40),
    seed=st.integers(0, 9),
    intervals=st.booleans(),
    has_concern=st.booleans(),
)
def test_a_group_has_the_values_of_its_rows_alone(
    groups: list[str], seed: int, intervals: bool, has_concern: bool
) -> None:
    probs, target = drawn(len(groups), 3, seed)
    names, concern = ["a", "b", "c"], CONCERN if has_concern else None

    def measured(rows: Tensor, **kinds: object) -> Result[Scores]:
        settings = {
            "class_names": names,
            "concern": concern,
            "intervals": intervals,
            **kinds,
        }
        return evaluate(probs[rows], target[rows], **settings)

    [of_site] = measured(torch.arange(len(groups)), groups={"site": groups}).groups
    assert set(of_site.groups) == set(groups)
    for name, scores in of_site.groups.items():
        alone = measured(torch.tensor([group == name for group in groups])).first
        assert_same_scores(scores, alone)
        for rate in of_site.pooled.class_group_rates:
            assert scores.find(rate)[0] == pytest.approx(alone.find(rate)[0], nan_ok=True)  # type: ignore[index]


@pytest.mark.parametrize("number", [4, 5])
def test_a_note_says_that_groups_are_many(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "MANY_GROUPS", 4)
    probs, target = drawn(number, 2, seed=2)
    sites = [str(row) for row in range(number)]
    result = evaluate(probs, target, groups={"site": sites}, intervals=False)
    assert any("site" in note and str(number) in note for note in result.notes) == (
        number > 4
    )
