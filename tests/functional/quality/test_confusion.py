"""Scores of a confusion matrix, by scikit-learn from the samples it was counted from."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from mpcs_torch.functional import dangerous_errors
from mpcs_torch.functional.quality.confusion import accuracy, count_dangerous_cells, macro_f1, matthews_correlation

SAMPLES = st.integers(2, 5).flatmap(
    lambda size: st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), min_size=1, max_size=40)
)


def counted(pairs: list[tuple[int, int]]) -> torch.Tensor:
    confusion = torch.zeros(5, 5, dtype=torch.int64)
    for true, predicted in pairs:
        confusion[true, predicted] += 1
    return confusion


@given(SAMPLES)
@pytest.mark.filterwarnings("ignore:A single label was found")
def test_scores_are_those_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    true, predicted = zip(*pairs, strict=True)
    confusion = counted(pairs)
    assert accuracy(confusion).item() == pytest.approx(sklearn_metrics.accuracy_score(true, predicted))
    assert macro_f1(confusion).item() == pytest.approx(
        sklearn_metrics.f1_score(true, predicted, average="macro", zero_division=0)
    )
    assert matthews_correlation(confusion).item() == pytest.approx(
        sklearn_metrics.matthews_corrcoef(true, predicted), abs=1e-12
    )


@given(SAMPLES, st.lists(st.booleans(), min_size=25, max_size=25))
def test_dangerous_cells_are_the_dangerous_errors(pairs: list[tuple[int, int]], released: list[bool]) -> None:
    true, predicted = torch.tensor(pairs).t()
    matrix = torch.tensor(released).reshape(5, 5)
    assert count_dangerous_cells(counted(pairs), matrix) == dangerous_errors(predicted, true, released=matrix).dangerous
