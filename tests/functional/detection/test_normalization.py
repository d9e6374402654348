"""Score normalisation against numpy, and the laws that it is for."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mpcs_torch.functional import CohortStatistics, cohort_statistics, normalize_scores
from tests.refused import Refused


def cohort(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw scores of four names with different numbers of scores, in no order."""
    generator = torch.Generator().manual_seed(seed)
    names = torch.arange(4).repeat_interleave(torch.arange(4) + 5)
    names = names[torch.randperm(len(names), generator=generator)]
    noise = torch.randn(len(names), generator=generator, dtype=torch.float64)
    return noise * (names + 1) + names, names


@pytest.mark.parametrize("top", [None, 2, 3, 100])
def test_statistics_are_those_of_numpy(top: int | None) -> None:
    scores, names = cohort(0)
    found = cohort_statistics(scores, names, num_names=4, top=top)
    for name in range(4):
        highest = np.sort(scores[names == name].numpy())[::-1][:top]
        assert found.mean[name].item() == pytest.approx(highest.mean(), rel=1e-12)
        assert found.deviation[name].item() == pytest.approx(highest.std(), rel=1e-12)


def test_the_three_kinds_follow_their_equations() -> None:
    scores = torch.tensor([1.0, 2.0, 5.0])
    enrollment = CohortStatistics(
        torch.tensor([0.0, 1.0, 0.0]), torch.tensor([1.0, 2.0, 4.0])
    )
    test = CohortStatistics(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([2.0, 1.0, 2.0]))
    assert normalize_scores(scores, enrollment=enrollment).tolist() == [1.0, 0.5, 1.25]
    assert normalize_scores(scores, test=test).tolist() == [0.0, 1.0, 2.0]
    assert normalize_scores(scores, enrollment=enrollment, test=test).tolist() == [
        0.5,
        0.75,
        1.625,
    ]


@given(factor=st.floats(0.01, 100), shift=st.floats(-100, 100), seed=st.integers(0, 1000))
def test_a_shift_and_a_scale_of_one_name_do_not_matter(
    factor: float, shift: float, seed: int
) -> None:
    scores, names = cohort(seed)
    trials = torch.randn(
        4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    plain = normalize_scores(
        trials, enrollment=cohort_statistics(scores, names, num_names=4)
    )
    moved = normalize_scores(
        factor * trials + shift,
        enrollment=cohort_statistics(factor * scores + shift, names, num_names=4),
    )
    torch.testing.assert_close(moved, plain, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"num_names": 0}, Refused("at_least", "num_names", 0, minimum=1)),
        ({"num_names": 1}, Refused("between", "names", 1, sample=2, minimum=0, maximum=0)),
        ({"num_names": 3}, Refused("cohort", "preds", names=[2])),
        ({"top": 1}, Refused("at_least", "top", 1, minimum=2)),
        (
            {"preds": torch.tensor([1.0, 2.0, torch.nan, 4.0])},
            Refused("finite", "preds", float("nan"), sample=2),
        ),
        (
            {"preds": torch.tensor([1, 2, 3, 4])},
            Refused("float_shape", "preds", shape="(M,)"),
        ),
        (
            {"preds": torch.tensor([1.0, 1.0, 2.0, 3.0])},
            Refused("cohort", "preds", names=[0]),
        ),
        ({"names": torch.tensor([0, 1])}, Refused("integer_shape", "names", shape=(4,))),
    ],
)
def test_wrong_cohorts_are_refused(change: dict[str, object], refusal: Refused) -> None:
    given_cohort = {
        "preds": torch.tensor([1.0, 2.0, 3.0, 4.0]),
        "names": torch.tensor([0, 0, 1, 1]),
        "num_names": 2,
    }
    with refusal:
        cohort_statistics(**{**given_cohort, **change})  # type: ignore[arg-type]


def test_trials_without_statistics_or_of_another_shape_are_refused() -> None:
    with Refused("given_or", "enrollment", other="test"):
        normalize_scores(torch.zeros(2))
    one = CohortStatistics(torch.zeros(1), torch.ones(1))
    with Refused("shape_of", "the statistics", other="preds", shape=(2,)):
        normalize_scores(torch.zeros(2), test=one)
    with Refused("float_shape", "preds", shape="(N,)"):
        normalize_scores(torch.zeros(1, dtype=torch.int64), test=one)
