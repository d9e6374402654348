"""``mpcs concern suggest``: a file that loads."""

from pathlib import Path

import pytest

from mpcs_torch.concern import load_concern
from tests.cli.shell import Shell


def test_an_order_takes_costs_for_both_directions_and_a_threshold(mpcs: Shell) -> None:
    costs = "--under 5 --over 2 --dangerous 0.5"
    mpcs(f"concern suggest healthy,mild,severe --from order --out out.yaml {costs}")
    spec = load_concern("out.yaml")
    assert spec.costs().tolist() == [[0, 0.2, 0.4], [0.5, 0, 0.2], [1, 0.5, 0]]
    dangerous = [[False] * 3, [True, False, False], [True, True, False]]
    assert spec.dangerous_pairs().tolist() == dangerous


def test_trees_and_orders_give_files(mpcs: Shell) -> None:
    Path("tree.yaml").write_text("animal: [cat, dog]\nvehicle: [car]\n")
    mpcs("concern suggest tree.yaml --from tree --out tree-out.yaml")
    assert load_concern("tree-out.yaml").releases == ((0, 1), (1, 0))
    mpcs("concern suggest 'low, high' --from order --out order-out.yaml")
    assert load_concern("order-out.yaml").classes == ("low", "high")


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("well,ill\n0,2\n8,0\n", ("well", "ill")),
        ("well;ill\r\n0,0;2\r\n8,0;0\r\n", ("well", "ill")),
        ("\ufeffwell\till\n0\t2\n8\t0\n", ("well", "ill")),
        ("0,1\n0,2\n8,0\n", ("0", "1")),
        ("[[0, 2]]", None),
    ],
)
def test_costs_may_have_any_delimiter(
    text: str, classes: tuple[str, ...] | None, mpcs: Shell
) -> None:
    Path("costs.csv").write_text(text)
    suggest = "concern suggest costs.csv --from costs --out out.yaml"
    if classes is None:
        mpcs.refusal(suggest)
        return
    mpcs(suggest)
    spec = load_concern("out.yaml")
    assert (spec.classes, spec.costs().tolist()) == (classes, [[0, 0.25], [1, 0]])
