"""Logistic and PAV calibration against scikit-learn, and against the costs that they minimise."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from mpcs_torch.calibration import (
    CalibrationWarning,
    LogisticCalibration,
    LogisticFusion,
    PAVCalibration,
)
from mpcs_torch.functional import cllr, min_cllr
from tests.calibration.data import scores_of_systems, trials
from tests.refused import Refused

SEEDS = st.integers(0, 10**6)


logistic = pytest.mark.parametrize(
    ("kind", "draw"),
    [(LogisticCalibration, trials), (partial(LogisticFusion, 3), scores_of_systems)],
    ids=["one", "fusion"],
)
Kind = Callable[..., LogisticCalibration | LogisticFusion]
Draw = Callable[[int, int], tuple[Tensor, Tensor]]


@logistic
@pytest.mark.parametrize("p_target", [0.5, 0.01, 0.9])
def test_the_ratios_are_those_of_a_weighted_logistic_regression(
    kind: Kind, draw: Draw, p_target: float
) -> None:
    scores, target = draw(0, 400)
    weight = torch.where(
        target == 1, p_target / target.sum(), (1 - p_target) / (1 - target).sum()
    )
    oracle = LogisticRegression(
        C=float("inf"), tol=1e-12, solver="newton-cholesky", max_iter=1000
    )
    columns = scores.reshape(400, -1).numpy()
    oracle.fit(columns, target.numpy(), sample_weight=400 * weight.double().numpy())
    log_odds = torch.from_numpy(oracle.decision_function(columns))
    prior_log_odds = torch.tensor(p_target).double().logit()
    found = kind(p_target=p_target).fit(scores, target)(scores)
    torch.testing.assert_close(found, log_odds - prior_log_odds, rtol=1e-6, atol=1e-6)


@settings(max_examples=30)
@given(seed=SEEDS)
def test_logistic_calibration_lowers_cllr_to_no_less_than_its_minimum(seed: int) -> None:
    scores, target = trials(seed, 100)
    calibrated = cllr(LogisticCalibration().fit(scores, target)(scores), target)
    assert min_cllr(scores, target) <= calibrated
    assert calibrated <= min(cllr(scores, target), torch.tensor(1.0))


@pytest.mark.filterwarnings("ignore:The weights of the systems are")
@logistic
@settings(max_examples=30)
@given(seed=SEEDS, factor=st.floats(1e-6, 1e6), shift=st.floats(-1e6, 1e6))
def test_shifted_and_scaled_scores_of_a_system_give_the_same_ratios(
    kind: Kind, draw: Draw, seed: int, factor: float, shift: float
) -> None:
    scores, target = draw(seed, 100)
    moved = scores.reshape(100, -1).clone()
    moved[:, 0] = factor * (moved[:, 0] + shift)
    again = moved.reshape(scores.shape)
    plain = kind(p_target=0.1).fit(scores, target)(scores)
    changed = kind(p_target=0.1).fit(again, target)(again)
    torch.testing.assert_close(changed, plain, rtol=1e-5, atol=1e-5)


@settings(max_examples=30)
@given(seed=SEEDS)
def test_repeated_nontargets_change_no_ratio(seed: int) -> None:
    scores, target = trials(seed, 60)
    repeated = (
        torch.cat([scores, scores[target == 0]]),
        torch.cat([target, target[target == 0]]),
    )
    for make in (LogisticCalibration, PAVCalibration):
        plain = make().fit(scores, target)(scores)
        again = make().fit(*repeated)(scores)
        torch.testing.assert_close(again, plain, rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore:All ratios are 0")
@settings(max_examples=30)
@given(seed=SEEDS, size=st.integers(4, 60), ties=st.booleans())
def test_pav_is_the_isotonic_regression_of_scikit_learn(
    seed: int, size: int, ties: bool
) -> None:
    scores, target = trials(seed, size)
    scores = scores.round() if ties else scores
    oracle = IsotonicRegression(out_of_bounds="clip").fit(scores.numpy(), target.numpy())
    calibration = PAVCalibration().fit(scores, target)
    others = torch.linspace(
        scores.min().item() - 1, scores.max().item() + 1, 101, dtype=torch.float64
    )
    for given_scores in (scores, others):
        found = (calibration(given_scores) + calibration.prior_log_odds).sigmoid()
        torch.testing.assert_close(
            found, torch.from_numpy(oracle.predict(given_scores.numpy())), rtol=0, atol=1e-9
        )


@pytest.mark.filterwarnings("ignore:the area under the ROC", "ignore:All ratios are 0")
@settings(max_examples=30)
@given(seed=SEEDS, size=st.integers(4, 60), ties=st.booleans())
def test_cllr_after_pav_is_min_cllr(seed: int, size: int, ties: bool) -> None:
    scores, target = trials(seed, size)
    scores = scores.round() if ties else scores
    ratios = PAVCalibration().fit(scores, target)(scores)
    torch.testing.assert_close(cllr(ratios, target), min_cllr(scores, target))


def test_pav_trusts_pure_ends_fully_and_is_constant_beyond_them() -> None:
    calibration = PAVCalibration().fit(
        torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0, 1, 0, 1])
    )
    ends = torch.tensor([-torch.inf, torch.inf])
    assert torch.equal(calibration(torch.tensor([0.0, 5.0])), ends)
    assert torch.equal(calibration(torch.tensor([1.0, 4.0])), ends)
    assert torch.equal(calibration(ends), ends)


def test_pav_keeps_the_ends_of_blocks_and_a_block_of_one_score_once() -> None:
    scores = torch.tensor([1.0, 2.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    calibration = PAVCalibration().fit(scores, torch.tensor([0, 1, 0, 1, 0, 1, 1]))
    assert calibration.scores.tolist() == [1, 2, 4, 5, 6]
    assert calibration.posteriors.tolist() == [0, 0.5, 0.5, 1, 1]
    assert calibration.prior_log_odds.item() == pytest.approx(math.log(4 / 3))


def test_nan_stays_nan() -> None:
    for make in (LogisticCalibration, PAVCalibration):
        assert make().fit(*trials(0))(torch.tensor([torch.nan])).isnan().all()


@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        ([1.0, 2, 3, 4], [0, 0, 1, 1]),
        ([1.0, 2, 3, 4], [1, 1, 0, 0]),
        ([1.0, 2, 2, 4], [0, 0, 1, 1]),
    ],
)
def test_scores_that_a_threshold_separates_are_refused(
    scores: list[float], labels: list[int]
) -> None:
    with Refused("separated", "preds"):
        LogisticCalibration().fit(torch.tensor(scores), torch.tensor(labels))


def test_reversed_scores_of_any_shape_get_a_negative_scale_with_a_warning() -> None:
    scores, target = trials(0)
    with pytest.warns(CalibrationWarning, match="targets do not score higher"):
        calibration = LogisticCalibration().fit(
            -scores.reshape(4, 100), target.bool().reshape(4, 100)
        )
    torch.testing.assert_close(
        calibration(-scores), LogisticCalibration().fit(scores, target)(scores)
    )


@pytest.mark.parametrize(
    ("kind", "scores", "warning"),
    [
        (LogisticCalibration, [2.0, 2, 2, 2], "The scale is 0, because"),
        (PAVCalibration, [2.0, 2, 2, 2], "All ratios are 0, because targets do not score"),
        (PAVCalibration, [3.0, 1, 4, 2], "All ratios are 0, because targets do not score"),
    ],
)
def test_scores_that_say_nothing_get_a_ratio_of_0_with_a_warning(
    kind: Any, scores: list[float], warning: str
) -> None:
    with pytest.warns(CalibrationWarning, match=warning):
        calibration = kind().fit(torch.tensor(scores), torch.tensor([0, 1, 0, 1]))
    torch.testing.assert_close(calibration(torch.tensor([1.0, 5.0])), torch.zeros(2))


@pytest.mark.parametrize("make", [LogisticCalibration, PAVCalibration])
@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"target": torch.tensor([0, 1, 2])}, Refused("trial_labels", "target")),
        (
            {"target": torch.tensor([0, 0, 0])},
            Refused("both_kinds", "target", missing="targets"),
        ),
        (
            {"preds": torch.tensor([0, 0, -torch.inf])},
            Refused("finite", "preds", float("-inf"), sample=2),
        ),
    ],
)
def test_errors_of_a_fit_name_the_wrong_argument(
    make: type[LogisticCalibration | PAVCalibration],
    changed: dict[str, Tensor],
    refusal: Refused,
) -> None:
    arguments = {
        "preds": torch.tensor([0.0, 2, 1]),
        "target": torch.tensor([0, 1, 0]),
        **changed,
    }
    with refusal:
        make().fit(**arguments)
