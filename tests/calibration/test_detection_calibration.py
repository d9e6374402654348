"""Logistic and PAV calibration against scikit-learn, and against the costs that they minimise."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from mpcs_torch.calibration import CalibrationWarning, LogisticCalibration, PAVCalibration
from mpcs_torch.functional import cllr, min_cllr
from tests.calibration.data import trials
from tests.refused import Refused

SEEDS = st.integers(0, 10**6)


@pytest.mark.parametrize("p_target", [0.5, 0.01, 0.9])
def test_the_affine_map_is_a_weighted_logistic_regression(p_target: float) -> None:
    scores, target = trials(0)
    weight = torch.where(
        target == 1, p_target / target.sum(), (1 - p_target) / (1 - target).sum()
    ).double()
    oracle = LogisticRegression(
        C=float("inf"), tol=1e-12, solver="newton-cholesky", max_iter=1000
    )
    oracle.fit(
        scores.unsqueeze(1).numpy(),
        target.numpy(),
        sample_weight=len(target) * weight.numpy(),
    )
    found = LogisticCalibration(p_target).fit(scores, target)
    prior_log_odds = torch.tensor(p_target).double().logit().item()
    assert found.scale.item() == pytest.approx(oracle.coef_.item(), rel=1e-6)
    assert found.bias.item() == pytest.approx(
        oracle.intercept_.item() - prior_log_odds, rel=1e-6
    )


@settings(max_examples=30)
@given(seed=SEEDS)
def test_logistic_calibration_lowers_cllr_to_no_less_than_its_minimum(seed: int) -> None:
    scores, target = trials(seed, 100)
    calibrated = cllr(LogisticCalibration().fit(scores, target)(scores), target)
    assert min_cllr(scores, target) <= calibrated
    assert calibrated <= min(cllr(scores, target), torch.tensor(1.0))


@settings(max_examples=30)
@given(seed=SEEDS, factor=st.floats(1e-6, 1e6), shift=st.floats(-1e6, 1e6))
def test_shifted_and_scaled_scores_give_the_same_ratios(
    seed: int, factor: float, shift: float
) -> None:
    scores, target = trials(seed, 50)
    moved = factor * (scores + shift)
    plain, again = (
        LogisticCalibration(0.1).fit(given, target)(given) for given in (scores, moved)
    )
    torch.testing.assert_close(again, plain, rtol=1e-5, atol=1e-5)


@settings(max_examples=30)
@given(seed=SEEDS)
def test_repeated_nontargets_change_no_ratio(seed: int) -> None:
    scores, target = trials(seed, 60)
    repeated = (
        torch.cat([scores, scores[target == 0]]),
        torch.cat([target, target[target == 0]]),
    )
    for make in (LogisticCalibration, PAVCalibration):
        plain, again = make().fit(scores, target)(scores), make().fit(*repeated)(scores)
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
    assert (ratios[scores.argsort()].diff().nan_to_num() >= 0).all()
    torch.testing.assert_close(cllr(ratios, target), min_cllr(scores, target))


def test_pav_trusts_pure_ends_fully_and_is_constant_beyond_them() -> None:
    calibration = PAVCalibration().fit(
        torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0, 1, 0, 1])
    )
    ratios = calibration(torch.tensor([-torch.inf, 0.0, 1.0, 2.0, 3.0, 4.0, torch.inf]))
    assert ratios.tolist() == [
        -torch.inf,
        -torch.inf,
        -torch.inf,
        0,
        0,
        torch.inf,
        torch.inf,
    ]


@pytest.mark.parametrize("scores", [[2.0, 2, 2, 2], [3.0, 1, 4, 2]])
def test_pav_of_scores_that_are_alike_or_reversed_is_zero_with_a_warning(
    scores: list[float],
) -> None:
    with pytest.warns(
        CalibrationWarning, match="All ratios are 0, because targets do not score higher"
    ):
        calibration = PAVCalibration().fit(torch.tensor(scores), torch.tensor([0, 1, 0, 1]))
    torch.testing.assert_close(calibration(torch.tensor([1.0, 2.0, 3.0])), torch.zeros(3))


def test_nan_stays_nan() -> None:
    for make in (LogisticCalibration, PAVCalibration):
        assert make().fit(*trials(0))(torch.tensor([torch.nan])).isnan().all()


def test_pav_that_is_not_fitted_is_an_error_and_logistic_calibration_the_identity() -> None:
    with Refused("not_fitted", "PAVCalibration"):
        PAVCalibration()(torch.zeros(2))
    scores, _ = trials(0)
    assert torch.equal(LogisticCalibration()(scores), scores)


@pytest.mark.parametrize("make", [LogisticCalibration, PAVCalibration])
@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64]
)
def test_half_types_are_upcast_and_labels_may_be_bools(
    make: type[LogisticCalibration | PAVCalibration], dtype: torch.dtype
) -> None:
    scores, target = trials(2)
    given_scores = scores.to(dtype).reshape(4, 100)
    calibration = make().fit(given_scores, target.bool().reshape(4, 100))
    found = calibration(given_scores)
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    exact = make().fit(given_scores.double().flatten(), target)
    torch.testing.assert_close(
        found.double().flatten(),
        exact(given_scores.double().flatten()),
        rtol=1e-5,
        atol=1e-5,
    )


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


def test_reversed_scores_get_a_negative_scale_with_a_warning() -> None:
    scores, target = trials(0)
    with pytest.warns(
        CalibrationWarning, match="because targets do not score higher than non-targets"
    ):
        calibration = LogisticCalibration().fit(-scores, target)
    torch.testing.assert_close(
        calibration(-scores), LogisticCalibration().fit(scores, target)(scores)
    )


def test_scores_that_are_all_alike_get_a_ratio_of_0_with_a_warning() -> None:
    with pytest.warns(CalibrationWarning, match="The scale is 0, because"):
        calibration = LogisticCalibration().fit(
            torch.full((3,), 2.0), torch.tensor([0, 1, 1])
        )
    assert calibration(torch.tensor([5.0])) == 0


@pytest.mark.parametrize("make", [LogisticCalibration, PAVCalibration])
@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"preds": torch.tensor([0, 1, 2])}, Refused("floating", "preds")),
        ({"target": torch.tensor([0, 1, 2])}, Refused("trial_labels", "target")),
        (
            {"target": torch.tensor([0, 0, 0])},
            Refused("both_kinds", "target", missing="targets"),
        ),
        (
            {"preds": torch.tensor([0, torch.nan, 0])},
            Refused("no_nan", "preds", float("nan"), sample=1),
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


def test_a_prior_outside_0_and_1_is_refused() -> None:
    with Refused("open_between", "p_target", 1, minimum=0, maximum=1):
        LogisticCalibration(1)
