"""Sets of costs: ranges in files, people who differ, their middle, and what has one value at a time."""

from pathlib import Path
from typing import Any

import pytest
import torch

from mpcs_torch import (
    ConcernError,
    ConcernRange,
    ConcernSpec,
    load_concern,
    load_concern_range,
)

ABC = ["a", "b", "c"]
ALL = torch.tensor(True)
"""Of costs: every one matters."""
ILL = "classes: [ill, healthy]\nweights: [[0, 5 to 20], [1, 0]]\nrefer: 0.5 to 1.5\n"


def write(folder: Path, text: str, name: str = "concern.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_file_may_hold_ranges(tmp_path: Path) -> None:
    costs = load_concern_range(write(tmp_path, ILL))
    assert costs.middle == ConcernSpec(
        ["ill", "healthy"], weights=[[0, 12.5], [1, 0]], refer=1.0
    )
    low, high = costs.bounds()
    assert low.tolist() == [[[0, 5, 0.5], [1, 0, 0.5]], [[0, 5, 1.5], [1, 0, 1.5]]]
    assert high.tolist() == [[[0, 20, 0.5], [1, 0, 0.5]], [[0, 20, 1.5], [1, 0, 1.5]]]
    named = [(cost.name, cost.low, cost.high) for cost in costs.uncertain(ALL)]
    assert named == [("taking ill for healthy", 5, 20), ("a referral", 0.5, 1.5)]


def test_an_error_is_dangerous_if_its_cost_may_be(tmp_path: Path) -> None:
    text = "classes: [ill, odd, well]\nweights: [[0, 1, 8 to 50], [1, 0, 3 to 12], [1, 1, 0]]\ndangerous: 8\n"
    costs = load_concern_range(write(tmp_path, text))
    expected = [[False, False, True], [False, False, True], [False, False, False]]
    assert costs.middle.dangerous_pairs().tolist() == expected
    low = ConcernSpec(2, weights=[[0, 6], [1, 0]], dangerous=5)
    high = ConcernSpec(2, weights=[[0, 20], [1, 0]], dangerous=5)
    assert ConcernRange([low], [high]).middle.dangerous_pairs().tolist() == [
        [False, True],
        [False, False],
    ]
    from_ten = load_concern_range(write(tmp_path, text.replace("8\n", "10\n")))
    assert from_ten.middle.dangerous_pairs().tolist() == expected


def test_a_factor_has_one_value_at_a_time(tmp_path: Path) -> None:
    text = "classes: [a, b, c]\nreleases: [[a, b], [b, c]]\nfactor: 0.2 to 0.6\n"
    costs = load_concern_range(write(tmp_path, text))
    low, high = costs.bounds()
    assert torch.equal(low, high)
    assert low[:, 0, 1].tolist() == low[:, 1, 2].tolist() == [0.2, 0.6]
    assert costs.middle == ConcernSpec(ABC, releases=[["a", "b"], ["b", "c"]], factor=0.4)
    [(name, cells, lowest, highest)] = costs.uncertain(ALL)
    assert (name, len(cells), lowest, highest) == ("a released error", 2, 0.2, 0.6)


def test_people_may_differ(tmp_path: Path) -> None:
    anna = write(tmp_path, "classes: [a, b, c]\nreleases: [[a, b]]\n", "anna.yaml")
    ben = write(
        tmp_path,
        "classes: [a, b, c]\nweights: [[0, 1, 2 to 4], [1, 0, 1], [0.5, 1, 0]]\n",
        "ben.yaml",
    )
    costs = load_concern_range(anna, ben)
    assert costs == ConcernRange.from_people(
        {"anna": load_concern(anna), "ben": load_concern_range(ben)}
    )
    assert len(costs.bounds()[0]) == 2
    middle = costs.middle.mpcs_weights()
    assert middle[0, 1].item() == 0.75
    assert middle[0, 2].item() == 2.0
    assert costs.middle.dangerous_pairs()[0, 1]  # for Ben
    ranges = {cost.name: (cost.low, cost.high) for cost in costs.uncertain(ALL)}
    assert ranges == {
        "taking a for b": (0.5, 1),
        "taking a for c": (1, 4),
        "taking c for a": (0.5, 1),
    }


@pytest.mark.parametrize(
    "settings",
    [
        {"releases": [["a", "b"]], "factor": 0.1, "concession": 0.02},
        {
            "weights": [[0, 2.5, 1], [50, 0, 1], [1, 1, 0]],
            "dangerous": 50,
            "refer": [1, 2, 3],
        },
        {"refer": 0.5, "answers": {"a or b": 0.3}},
        {"releases": [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]]},
    ],
)
def test_a_range_without_width_is_the_spec(settings: dict[str, Any]) -> None:
    spec = ConcernSpec(ABC, **settings)
    for costs in (
        ConcernRange([spec], [spec]),
        ConcernRange.from_people({"anna": spec, "ben": spec}),
    ):
        assert costs.is_known
        assert costs.middle == spec
        assert costs.uncertain(ALL) == []
        assert all(
            bound.equal(spec.costs().expand(len(bound), -1, -1)) for bound in costs.bounds()
        )


def test_the_middle_is_in_the_set_of_costs() -> None:
    low = ConcernSpec(
        ABC, weights=[[0, 0, 1], [2, 0, 1], [1, 1, 0]], refer=0, answers={"a or b": 0.1}
    )
    high = ConcernSpec(
        ABC,
        weights=[[0, 4, 1], [2, 0, 3], [1, 9, 0]],
        refer=[1, 2, 3],
        answers={"a or b": 0.5},
    )
    costs = ConcernRange([low], [high])
    lowest, highest = costs.bounds()
    assert len(lowest) == 1
    assert (lowest[0] <= costs.middle.costs()).all()
    assert (costs.middle.costs() <= highest[0]).all()
    assert costs.middle.answers == (("a or b", 0.3),)
    assert costs.middle.refer == (0.5, 1, 1.5)
    assert 'answering "a or b" for c' in [cost.name for cost in costs.uncertain(ALL)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "classes: [a, b]\nfactor: 0.6 to 0.2\n",
            "2:9: factor: must go from the lower to the higher cost, but goes",
        ),
        (
            "classes: [a, b]\nweights: [[0, 5 to 1], [1, 0]]\n",
            r"2:15: weights\[0\]\[1\]: must go from the lower",
        ),
        (
            "classes: [a, b]\nfactor: 0.2 to 6\n",
            "2:9: factor: must be a number above 0 and at most 1, but got 6.0",
        ),
        (
            "classes: [a, b]\nfactor: low to high\n",
            "must be a number above 0 and at most 1, but got 'low to high'",
        ),
        ("classes: [a, b]\nrefer: 1 to nan\n", "refer: must be a finite cost >= 0"),
        ("classes: [a to b, b]\nfactor: 3\n", "factor: must be a number"),
    ],
)
def test_broken_ranges_are_refused_with_their_place(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ConcernError, match=message):
        load_concern_range(write(tmp_path, text))


def test_reading_ranges_as_one_spec_says_who_reads_them(tmp_path: Path) -> None:
    with pytest.raises(
        ConcernError, match="has ranges of costs: use load_concern_range or mpcs score"
    ):
        load_concern(write(tmp_path, ILL))


def test_costs_that_do_not_fit_together_are_refused() -> None:
    one, other = ConcernSpec(ABC), ConcernSpec(["a", "b"])
    with pytest.raises(
        ConcernError,
        match=r"specs must agree on classes, but have \['a', 'b', 'c'\] and \['a', 'b'\]",
    ):
        ConcernRange.from_people({"anna": one, "ben": other})
    with pytest.raises(
        ConcernError,
        match="must agree on whether a referral has a cost, but have False and True",
    ):
        ConcernRange.from_people({"anna": one, "ben": ConcernSpec(ABC, refer=1)})
    with pytest.raises(ConcernError, match="low must have no cost above that of high"):
        ConcernRange([ConcernSpec(ABC, refer=2)], [ConcernSpec(ABC, refer=1)])
    with pytest.raises(
        ConcernError, match="must have the same released pairs, or both weights"
    ):
        ConcernRange([one], [ConcernSpec(ABC, releases=[["a", "b"]])])
    with pytest.raises(
        ConcernError, match="must have a spec for each person, but have 0 and 0"
    ):
        load_concern_range()


def test_many_classes_are_read_without_a_matrix(tmp_path: Path) -> None:
    names = ", ".join(f"c{i}" for i in range(20_000))
    path = write(tmp_path, f"classes: [{names}]\nreleases: [[c0, c1]]\n")
    assert load_concern_range(path).middle == load_concern(path)


def test_of_many_ranges_those_that_matter_are_told() -> None:
    ones = torch.ones(300, 300)
    low = ConcernSpec(300, weights=ones.tolist())
    high = ConcernSpec(300, weights=(2 * ones).tolist())
    matters = torch.zeros(300, 300, dtype=torch.bool)
    matters[3, 7] = True
    assert [cost.name for cost in ConcernRange([low], [high]).uncertain(matters)] == [
        "taking 3 for 7"
    ]
