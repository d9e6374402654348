"""The matrices of a concern spec, and the errors in its arguments."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from mpcs_torch import ConcernError, ConcernSpec
from mpcs_torch.concern.files import concern_as_plain

LIGHTS = ["red", "yellow", "green"]


def test_released_pairs_get_the_factor_and_all_others_one() -> None:
    spec = ConcernSpec(
        LIGHTS, releases=[["red", "yellow"], ["yellow", "red", "green"]], factor=0.25
    )
    expected = torch.tensor([[1, 0.25, 1], [0.25, 1, 0.25], [1, 1, 1]], dtype=torch.float64)
    assert torch.equal(spec.mpcs_weights(), expected)
    assert torch.equal(spec.released(), expected < 1)


def test_classes_are_given_by_name_or_index() -> None:
    by_index = ConcernSpec(LIGHTS, releases=[[0, 1], [2, 0]])
    by_name = ConcernSpec(LIGHTS, releases=[["red", "yellow"], ["green", "red"]])
    assert torch.equal(by_index.mpcs_weights(), by_name.mpcs_weights())
    assert ConcernSpec(3).classes == ("0", "1", "2")


def test_a_pair_released_with_factor_one_is_still_released() -> None:
    spec = ConcernSpec(2, releases=[[0, 1]], factor=1.0)
    assert torch.equal(spec.mpcs_weights(), torch.ones(2, 2, dtype=torch.float64))
    assert spec.released().tolist() == [[False, True], [False, False]]


def test_every_error_with_a_weight_is_dangerous_unless_the_spec_says_which_are() -> None:
    weights = [[7, 50, 10], [0, 7, 10], [10, 1, 7]]
    dangerous = {
        None: [[0, 1, 1], [0, 0, 1], [1, 1, 0]],
        10: [[0, 1, 1], [0, 0, 1], [1, 0, 0]],
        ((0, 1), (2, 1, 0)): [[0, 1, 0], [0, 0, 0], [1, 1, 0]],
    }
    for given, expected in dangerous.items():
        spec = ConcernSpec(3, weights=weights, dangerous=given)
        assert spec.dangerous_pairs().int().tolist() == expected
        assert torch.equal(
            spec.released() | spec.dangerous_pairs(), ~torch.eye(3, dtype=torch.bool)
        )
        assert spec.mpcs_weights().tolist() == [[1, 50, 10], [0, 1, 10], [10, 1, 1]]


def test_errors_that_are_not_listed_as_dangerous_have_the_factor() -> None:
    spec = ConcernSpec(LIGHTS, dangerous=[["red", "green"]], factor=0.25)
    assert spec.mpcs_weights().tolist() == [[1, 0.25, 1], [0.25, 1, 0.25], [0.25, 0.25, 1]]


def test_costs_have_a_column_for_referral_if_it_has_a_cost() -> None:
    assert ConcernSpec(2, weights=[[9, 3], [0, 9]]).costs().tolist() == [[0, 3], [0, 0]]
    assert ConcernSpec(2, refer=0.5).costs().tolist() == [[0, 1, 0.5], [1, 0, 0.5]]
    assert ConcernSpec(2, refer=[0.5, 2]).costs().tolist() == [[0, 1, 0.5], [1, 0, 2]]


def test_specs_are_values() -> None:
    assert ConcernSpec(["a", "b"], releases=[["a", "b"]]) == ConcernSpec(
        ["a", "b"], releases=((0, 1),)
    )
    assert hash(ConcernSpec(2, weights=[[0, 2], [3, 0]])) == hash(
        ConcernSpec(2, weights=((0, 2), (3, 0)))
    )


def test_arrays_tensors_and_their_numbers_are_taken_as_lists_and_numbers() -> None:
    weights, refer = [[0.0, 10.0, 3.0], [50.0, 0.0, 1.0], [1.0, 2.0, 0.0]], [2.0, 3.0, 4.0]
    plain = ConcernSpec(
        LIGHTS,
        weights=weights,
        dangerous=10,
        refer=refer,
        answers={"red or green": 0.5},
        class_groups={"go": [1, 2]},
    )
    for table in (np.array(weights), torch.tensor(weights)):
        given = ConcernSpec(
            np.array(LIGHTS),
            weights=table,
            dangerous=np.int64(10),
            refer=np.array(refer),
            answers={"red or green": np.float64(0.5)},
            class_groups={"go": np.array([1, 2])},
        )
        assert (given, repr(given)) == (plain, repr(plain))
    rows = ConcernSpec(
        3,
        weights=[np.array(row) for row in weights],
        dangerous=np.argwhere(np.eye(3) == 0)[:2],
    )
    assert rows == ConcernSpec(3, weights=weights, dangerous=[[0, 1], [0, 2]])
    lists = ConcernSpec(
        np.int64(2),
        releases=np.array([[0, 1]]),
        factor=np.float32(0.25),
        concession=np.float64(0.01),
    )
    assert lists == ConcernSpec(2, releases=[[0, 1]], factor=0.25, concession=0.01)
    assert yaml.safe_load(yaml.safe_dump(concern_as_plain(lists))) == concern_as_plain(
        lists
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"classes": 2, "weights": np.array([[0, np.nan], [1, 0]])},
            r"weights\[0\]\[1\]: must be a finite number >= 0, but got nan",
        ),
        (
            {"classes": 2, "weights": pd.DataFrame([[0, 1], [2, 0]])},
            "weights: must be a matrix",
        ),
        (
            {"classes": 2, "weights": np.ones(2)},
            r"weights\[0\]: must be a list of 2 numbers, but got 1.0",
        ),
        (
            {"classes": 2, "refer": np.array([True, False])},
            r"refer\[0\]: must be a finite cost >= 0, but got True",
        ),
        (
            {"classes": 2, "releases": np.array([[0.0, 1.0]])},
            r"releases\[0\]\[0\]: must be a class name or an index from 0 to 1, but got 0.0",
        ),
        (
            {"classes": LIGHTS, "releases": [["red", "purple"]]},
            r"releases\[0\]\[1\]: must be one of the classes red, yell",
        ),
        (
            {"classes": LIGHTS, "releases": [["red", "yelow"]]},
            r"releases\[0\]\[1\]: must be one of the classes .*, but got 'yelow': did you mean yellow\?",
        ),
        (
            {"classes": LIGHTS, "refer": 1, "answers": {"red or yelow": 0.3}},
            r"answers: must name classes, but 'red or yelow' names 'yelow': did you mean yellow\?",
        ),
        (
            {"classes": LIGHTS, "class_groups": {"stop": ["read"]}},
            r"class_groups.stop\[0\]: must be one of the classes .*, but got 'read': did you mean red\?",
        ),
        (
            {"classes": LIGHTS, "releases": [[0, 3]]},
            r"releases\[0\]\[1\]: must be a class name or an index from 0 to 2, but",
        ),
        (
            {"classes": LIGHTS, "releases": [["red"]]},
            r"releases\[0\]: must be a list \[true, predicted, ...\], but got",
        ),
        (
            {"classes": LIGHTS, "releases": [["red", "green", 0]]},
            r"releases\[0\]\[2\]: must differ from the true class 'red'",
        ),
        ({"classes": LIGHTS, "releases": "red"}, "releases: must be a list of lists"),
        (
            {"classes": LIGHTS, "factor": 0},
            "factor: must be a number above 0 and at most 1, but got 0",
        ),
        (
            {"classes": LIGHTS, "factor": 1.5},
            "factor: must be a number above 0 and at most 1, but got 1.5",
        ),
        (
            {"classes": LIGHTS, "factor": "half"},
            "factor: must be a number above 0 and at most 1, but got 'half'",
        ),
        ({"classes": 1}, "classes: must be at least 2 and at most 10000000, but got 1"),
        (
            {"classes": 10**20},
            "classes: must be at least 2 and at most 10000000, but got 1000",
        ),
        (
            {"classes": 2, "weights": [[1, 10**400], [1, 1]]},
            r"weights\[0\]\[1\]: must be a finite number >= 0",
        ),
        ({"classes": ["a"]}, "classes: must name at least 2 classes, but got 1"),
        (
            {"classes": ["a", "b", "a"]},
            r"classes\[2\]: must differ from the other names, but 'a' appears twice",
        ),
        ({"classes": [0, 1]}, r"classes\[0\]: must be a name in quotes, but got 0"),
        (
            {"classes": "ab"},
            "classes: must be a list of names or the number of classes, but got 'ab'",
        ),
        (
            {"classes": 2, "weights": [[1, 0], [0, 1]]},
            "weights: must have a weight above 0 off the diagonal",
        ),
        (
            {"classes": 2, "dangerous": 0.5},
            "dangerous: must be a list of pairs unless there are weights, but got 0.5",
        ),
        (
            {"classes": 2, "dangerous": 0, "weights": [[1, 1], [1, 1]]},
            "dangerous: must be a weight above 0 or a list of pairs, but got 0",
        ),
        (
            {"classes": 2, "dangerous": 60, "weights": [[0, 10], [50, 0]]},
            "dangerous: must be at most the highest weight 50: otherwise no error would be dangerous, but got 60",
        ),
        (
            {"classes": 2, "dangerous": []},
            "dangerous: must list at least one pair: otherwise no error",
        ),
        (
            {"classes": 2, "dangerous": [[1, 0], [0, 1]], "weights": [[0, 0], [50, 0]]},
            r"dangerous\[1\]\[1\]: must have a weight above 0: decisions would not avoid this error",
        ),
        (
            {"classes": 2, "dangerous": [[0]]},
            r"dangerous\[0\]: must be a list \[true, predicted, ...\], but got \[0\]",
        ),
        (
            {"classes": 2, "dangerous": [[0, 1]], "releases": [[1, 0]]},
            "dangerous: cannot be combined with releases",
        ),
        (
            {"classes": 2, "refer": -1},
            "refer: must be a finite cost >= 0, or one for each class, but got -1",
        ),
        (
            {"classes": 2, "refer": [1]},
            "refer: must be one cost, or 2 costs, one per class, but got 1",
        ),
        (
            {"classes": 2, "refer": [1, "a"]},
            r"refer\[1\]: must be a finite cost >= 0, but got 'a'",
        ),
        (
            {"classes": 2, "concession": 0.5},
            "concession: must be a number from 2e-09 to below 0.5, but got 0.5",
        ),
        (
            {"classes": 2, "weights": [[1, -1], [1, 1]]},
            r"weights\[0\]\[1\]: must be a finite number >= 0, but got -1",
        ),
        (
            {"classes": 2, "weights": [[1, 1]]},
            "weights: must have 2 rows, one per class, but got 1",
        ),
        (
            {"classes": 2, "weights": [[1, 1], [1]]},
            r"weights\[1\]: must be a list of 2 numbers, but got \[1\]",
        ),
        (  # the last row is shifted by a place
            {"classes": 3, "weights": [[0, 1, 2], [3, 0, 4], [0, 9, 8]]},
            r"weights\[2\]\[2\]: must be 0 as in row 0",
        ),
        (
            {"classes": 2, "weights": 3},
            r"weights: must be a matrix \(a list of rows\), but got 3",
        ),
        (
            {"classes": 2, "weights": [[1, 1], [1, 1]], "releases": [[0, 1]]},
            "weights: cannot be combined with releases",
        ),
    ],
)
def test_wrong_input_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConcernError, match=message):
        ConcernSpec(**arguments)


def test_the_place_of_a_problem_is_a_path() -> None:
    with pytest.raises(ConcernError, match=r"^class_groups\.both: must leave out a class$"):
        ConcernSpec(2, class_groups={"both": [0, 1]})


def test_all_problems_are_reported_together() -> None:
    with pytest.raises(ConcernError) as error:
        ConcernSpec(LIGHTS, releases=[["red", "purple"], ["blue", "green"]], factor=2)
    assert [problem.path for problem in error.value.problems] == [
        ("releases", 0, 1),
        ("releases", 1, 0),
        ("factor",),
    ]


def test_factors_keep_the_precision_of_float64() -> None:
    assert ConcernSpec(2, releases=[[0, 1]], factor=0.3).mpcs_weights()[0, 1] == 0.3
