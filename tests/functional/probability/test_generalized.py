"""Generalized means and measured probabilities against independent implementations of their definitions."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mpcs_torch.functional import (
    calibration_slope,
    decisiveness,
    geometric_accuracy,
    probability_accuracy,
    robustness,
)
from mpcs_torch.functional.probability.probability_accuracy import MeasuredProbabilities
from mpcs_torch.functional.probability.scores import ProbabilityMeans
from mpcs_torch.metrics import ProbabilityAccuracy
from tests.conftest import load_oracle
from tests.refused import Refused

ORACLE = load_oracle("generalized_cases")
CASES = [(case, expected) for case in ORACLE["cases"] for expected in case["expected"]]


SETTINGS = ("n_bins", "epsilon", "delta", "span")


def id_of(case_or_settings: Any) -> str:
    """Name a case, or the settings of its expected values."""
    if "name" in case_or_settings:
        return str(case_or_settings["name"])
    return "-".join(str(case_or_settings[key]) for key in SETTINGS)


def bins_of(preds: Tensor, target: Tensor, **settings: Any) -> MeasuredProbabilities:
    metric = ProbabilityAccuracy(**settings)
    metric.update(preds, target)
    return metric.bins()


@pytest.mark.parametrize(("case", "expected"), CASES, ids=id_of)
def test_every_case_of_the_oracle(case: dict[str, Any], expected: dict[str, Any]) -> None:
    preds = torch.tensor(case["preds"], dtype=torch.float64)
    target = torch.tensor(case["target"])
    settings: dict[str, Any] = {
        "num_classes": preds.shape[1],
        "from_logits": False,
        **{key: expected[key] for key in SETTINGS},
    }
    whole = {
        "slope": float(expected["slope"]),
        **means_of_kind("reported", expected),
        **means_of_kind("measured", expected),
    }
    values = probability_accuracy(preds, target, **settings)
    assert {key: values[key].item() for key in whole} == pytest.approx(
        whole, abs=1e-6, nan_ok=True
    )
    measured = bins_of(preds, target, **settings)
    columns = {
        "lo": measured.low,
        "hi": measured.high,
        "n_correct": measured.correct,
        "n_incorrect": measured.incorrect,
        "f": measured.rate,
    }
    for key, column in columns.items():
        theirs = [of_bin[key] for of_bin in expected["bins"]]
        assert column.tolist() == pytest.approx(theirs, abs=1e-9)
    not_counted = preds.numel() - len(preds) - measured.incorrect.sum().item()
    assert not_counted == expected["incorrect_not_in_any_bin"]


def means_of_kind(kind: str, expected: dict[str, Any]) -> dict[str, float]:
    """Name the means of the oracle as `probability_accuracy` does."""
    values = expected[kind]
    return {
        f"{kind}_geometric_accuracy": values["geometric"],
        f"{kind}_decisiveness": values["decisiveness"],
        f"{kind}_robustness": values["robustness"],
    }


@pytest.mark.parametrize(
    "published",
    ORACLE["paper_table1_slopes"].values(),
    ids=list(ORACLE["paper_table1_slopes"]),
)
def test_the_papers_slopes(published: dict[str, float]) -> None:
    means = list[ProbabilityMeans]()
    for kind in ("reported", "measured"):
        of_decisiveness = torch.tensor(published[f"D_{kind}"]).double()
        of_robustness = torch.tensor(published[f"R_{kind}"]).double()
        means.append(ProbabilityMeans(torch.tensor(0.0), of_decisiveness, of_robustness))
    slope = calibration_slope(means[0], means[1]).item()
    assert slope == pytest.approx(published["slope"], abs=1e-6)


def means_of(probs: Tensor, epsilon: float) -> tuple[float, float, float]:
    """Return the geometric, the arithmetic and the robust mean of the probabilities of true classes."""
    preds = torch.stack([probs, 1 - probs], dim=1)
    target = torch.zeros(len(probs), dtype=torch.int64)
    settings: dict[str, Any] = {"num_classes": 2, "from_logits": False, "epsilon": epsilon}
    means = (geometric_accuracy, decisiveness, robustness)
    geometric, arithmetic, robust = [
        mean(preds, target, **settings).item() for mean in means
    ]
    return geometric, arithmetic, robust


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=30), st.sampled_from([0.0, 0.005, 0.1])
)
def test_the_means_are_ordered(probs: list[float], epsilon: float) -> None:
    values = torch.tensor(probs, dtype=torch.float64)
    geometric, arithmetic, robust = means_of(values, epsilon)
    assert robust <= geometric + 1e-9
    assert geometric <= arithmetic + 1e-9
    floored = [max(p, epsilon) for p in probs]
    assert arithmetic == pytest.approx(sum(floored) / len(floored))
    if min(floored) > 0:
        assert geometric == pytest.approx(
            math.exp(sum(map(math.log, floored)) / len(floored))
        )
        assert robust == pytest.approx(
            (sum(p ** (-2 / 3) for p in floored) / len(floored)) ** -1.5
        )
    else:
        assert geometric == robust == 0


def test_bins_hold_about_equal_numbers_of_true_classes_and_all_of_them() -> None:
    logits = 3 * torch.randn(1000, 5, generator=torch.Generator().manual_seed(1))
    target = (
        logits.softmax(1)
        .multinomial(1, generator=torch.Generator().manual_seed(2))
        .squeeze(1)
    )
    measured = bins_of(logits, target, num_classes=5, delta=None)
    assert measured.correct.sum() == 1000
    assert set(measured.correct.tolist()) == {50.0}
    assert torch.all(measured.low[1:] == measured.high[:-1])
    reported = decisiveness(logits, target, num_classes=5)
    assert measured.means.decisiveness.item() == pytest.approx(reported.item(), abs=0.05), (
        "drawn from what it says"
    )


@pytest.mark.parametrize("classes", [2, 10, 15, 16, 40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_means_and_bins_of_many_logits_equal_those_in_float64(
    classes: int, dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(classes)
    target = torch.randint(0, classes, (9_001,), generator=generator)
    logits = (4 * torch.randn(len(target), classes, generator=generator)).to(dtype)
    wide = logits.double().softmax(dim=1)
    of_true = wide.gather(1, target.unsqueeze(1)).squeeze(1)
    found = geometric_accuracy(logits, target, num_classes=classes)
    assert found.item() == pytest.approx(
        of_true.clamp(min=0.005).log().mean().exp().item(), rel=1e-7
    )
    bins = bins_of(logits, target, num_classes=classes)
    for low, high, correct, incorrect in zip(*bins[1:], strict=True):
        # float32 rounds some values to the other side of an edge.
        in_narrow = (wide >= low * (1 + 1e-6)) & (wide < high * (1 - 1e-6))
        in_wide = (wide >= low * (1 - 1e-6)) & (wide < high * (1 + 1e-6))
        assert in_narrow.sum() <= correct + incorrect <= in_wide.sum()
        assert correct > 0


def test_the_mean_of_no_samples_is_nan() -> None:
    measured = bins_of(
        torch.zeros(2, 3), torch.tensor([-1, -1]), num_classes=3, ignore_index=-1
    )
    assert all(mean.isnan() for mean in measured.means)
    assert len(measured.rate) == 0


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"epsilon": 1.0}, Refused("from_below", "epsilon", 1.0, minimum=0, maximum=1)),
        (
            {"epsilon": math.nan},
            Refused("from_below", "epsilon", float("nan"), minimum=0, maximum=1),
        ),
        ({"n_bins": 0}, Refused("at_least", "n_bins", 0, minimum=1)),
        ({"delta": 0.3}, Refused("inverse_of_whole", "delta", 0.3)),
        ({"span": "all"}, Refused("one_of", "span", "all")),
    ],
)
def test_errors_name_the_wrong_argument(changed: dict[str, Any], refusal: Refused) -> None:
    arguments = {
        "preds": torch.zeros(2, 3),
        "target": torch.tensor([0, 1]),
        "num_classes": 3,
        **changed,
    }
    with refusal:
        bins_of(**arguments)


def test_a_row_without_weight_changes_no_mean_even_if_its_power_is_infinite() -> None:
    probs = torch.tensor([[0.5, 0.5], [0.0, 1.0]], dtype=torch.float64)
    found = geometric_accuracy(
        probs,
        torch.tensor([0, 0]),
        torch.tensor([1.0, 0.0]),
        num_classes=2,
        from_logits=False,
        epsilon=0.0,
    )
    assert found.item() == pytest.approx(0.5)
