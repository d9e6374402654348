"""Drafts of concern specs from trees, costs and orders."""

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpcs_torch.concern import (
    ConcernError,
    ConcernSpec,
    load_concern,
    save_concern,
    spec_from_heights,
    spec_from_tree,
    tree_from_pairs,
)
from mpcs_torch.concern.suggest import spec_from_costs, spec_from_order
from tests.refused import Refused

TREE = {"animal": {"pet": ["cat", "dog"], "farm": ["cow"]}, "vehicle": ["car", "bus"]}


def released_names(spec: ConcernSpec) -> set[tuple[str, str]]:
    names = spec.classes
    return {(names[i], names[j]) for i, j in spec.released().nonzero().tolist()}


def test_siblings_of_a_tree_are_released() -> None:
    assert released_names(spec_from_tree(TREE)) == {
        ("cat", "dog"),
        ("dog", "cat"),
        ("car", "bus"),
        ("bus", "car"),
    }


def test_an_only_child_has_no_siblings() -> None:
    assert spec_from_tree([["a", "b"], ["c"]]).releases == ((0, 1), (1, 0))


def test_classes_named_like_places_keep_their_branches_and_their_order() -> None:
    tree = [["4", "9"], ["1", "7"], "0"]
    assert released_names(spec_from_tree(tree)) == {
        ("4", "9"),
        ("9", "4"),
        ("1", "7"),
        ("7", "1"),
    }
    spec = spec_from_tree(tree, classes=["0", "1", "4", "7", "9"])
    assert spec.releases == ((2, 4), (4, 2), (1, 3), (3, 1))
    with Refused("leaves", "classes"):
        spec_from_tree(tree, classes=["0", "1"])


def test_a_broken_tree_is_refused() -> None:
    with Refused("class_once", "tree"):
        spec_from_tree({"a": ["cat"], "b": ["cat", "dog"]})
    with Refused("tree", "tree", 3, place="a"):
        spec_from_tree({"a": 3})


PAIRS = [
    ("root", "animal"),
    ("root", "vehicle"),
    ("animal", "pet"),
    ("animal", "farm"),
    ("pet", "cat"),
    ("pet", "dog"),
    ("farm", "cow"),
    ("vehicle", "car"),
    ("vehicle", "bus"),
]
"""`TREE` as pairs of a parent and a child."""


def height_of_common_ancestor(one: str, other: str) -> int:
    """Walk up from both classes, by pairs alone; the height of a node is that of its highest child plus 1."""
    parents = {child: parent for parent, child in PAIRS}

    def lineage(name: str) -> list[str]:
        if name not in parents:
            return [name]
        return [name, *lineage(parents[name])]

    def height(name: str) -> int:
        return max(
            (1 + height(child) for parent, child in PAIRS if parent == name), default=0
        )

    return height(next(name for name in lineage(one) if name in lineage(other)))


def test_costs_are_heights_of_common_ancestors() -> None:
    spec = spec_from_heights(TREE)
    assert spec.weights is not None
    for (i, one), (j, other) in product(enumerate(spec.classes), repeat=2):
        if i != j:
            assert spec.weights[i][j] == height_of_common_ancestor(one, other) / 3
    reordered = spec_from_heights(TREE, classes=["bus", "car", "cat", "cow", "dog"])
    assert reordered.costs()[2].tolist() == [
        1,
        1,
        0,
        pytest.approx(2 / 3),
        pytest.approx(1 / 3),
    ]
    assert int(spec_from_heights(TREE, dangerous=1).dangerous_pairs().sum()) == 2 * 3 * 2


def test_pairs_give_the_same_tree() -> None:
    tree = tree_from_pairs(PAIRS)
    assert tree == {
        "animal": {"pet": {"cat": None, "dog": None}, "farm": {"cow": None}},
        "vehicle": {"car": None, "bus": None},
    }
    assert spec_from_heights(tree) == spec_from_heights(TREE)
    assert tree_from_pairs(PAIRS[::-1]).keys() == tree.keys()
    assert spec_from_tree(tree) == spec_from_tree(TREE)
    with Refused("child_once", "pairs", ["cat"]):
        tree_from_pairs([*PAIRS, ("vehicle", "cat")])
    with Refused("no_circle", "pairs", ["c", "d"]):
        tree_from_pairs([("root", "a"), ("c", "d"), ("d", "c")])
    for pairs in ([("a", "b"), ("c", "d")], [("a", "b"), ("b", "a")]):
        with Refused("one_root", "pairs"):
            tree_from_pairs(pairs)


def test_the_highest_cost_gets_weight_1() -> None:
    spec = spec_from_costs([[0, 2.0], [8.0, 0]], ["well", "ill"])
    assert spec.weights == ((0.0, 0.25), (1.0, 0.0))
    with pytest.raises(ConcernError, match="must be a finite number >= 0"):
        spec_from_costs([[0, -1.0], [8.0, 0]], ["well", "ill"])


@given(
    size=st.integers(2, 6),
    under=st.floats(0, 1e6, allow_subnormal=False),
    over=st.floats(1e-3, 1e6),
)
def test_an_order_weighs_each_step_by_its_direction(
    size: int, under: float, over: float
) -> None:
    weights = spec_from_order(
        [f"stage {i}" for i in range(size)], under=under, over=over
    ).costs()
    for true, predicted in product(range(size), repeat=2):
        cost = under * (true - predicted) if predicted < true else over * (predicted - true)
        assert weights[true, predicted].item() == pytest.approx(
            cost / (max(under, over) * (size - 1))
        )
    assert weights.max() == 1


@pytest.mark.parametrize(
    ("costs", "refusal"),
    [
        ({"under": -1.0}, Refused("finite_at_least", "under", -1.0, minimum=0)),
        (
            {"over": float("nan")},
            Refused("finite_at_least", "over", float("nan"), minimum=0),
        ),
        (
            {"over": float("inf")},
            Refused("finite_at_least", "over", float("inf"), minimum=0),
        ),
        ({"under": 0.0, "over": 0.0}, Refused("one_above_0", "under or over")),
    ],
)
def test_a_broken_cost_of_a_step_is_refused(
    costs: dict[str, float], refusal: Refused
) -> None:
    with refusal:
        spec_from_order(["a", "b"], **costs)


def test_a_saved_draft_reads_back_and_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "concern.yaml"
    spec = ConcernSpec(["yes", "no", "3"], releases=[["yes", "no"]], factor=0.2)
    save_concern(spec, path, comment="a draft\nto correct")
    assert path.read_text().startswith("# a draft\n# to correct\n")
    assert load_concern(path) == spec
    with pytest.raises(FileExistsError):
        save_concern(spec, path)
