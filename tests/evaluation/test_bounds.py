"""Bounds for requirements: laws over all metrics, and failures that a sample does not show."""

from math import isfinite
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from benchmarks.rare_failures import DESIGNS, measured, true_differences
from mpcs_torch import ConcernSpec, Evaluation, evaluate
from mpcs_torch.evaluation import Requirement, RequirementError, Result
from mpcs_torch.evaluation.influence import IndependentUnits, Influences, of_sums
from mpcs_torch.evaluation.intervals_and_bounds import End
from mpcs_torch.evaluation.reasons import NO_RANGE, ONE_LOOK, Reason
from mpcs_torch.functional.inputs.labels import Bins
from mpcs_torch.metrics.named_metrics import BY_NAME, ENTRIES
from tests.refused import Refused

SPEC = ConcernSpec(
    ["red", "yellow", "green"], releases=[["red", "yellow"], ["yellow", "red"]], factor=0.5
)
OF_REFERRALS = ("coverage", "selective_accuracy", "selective_dangerous_rate")
NAMES = [
    entry.name
    for entry in ENTRIES
    if entry.takes in ("decisions", "probabilities", "log_probabilities")
    and entry.is_measure
    and not entry.no_interval
    and entry.name not in OF_REFERRALS
]
RANKED = ["auroc", "auroc[green]"]
WITHOUT_RANGE = {"cross_entropy"}


def drawn(rows: int = 300, seed: int = 0) -> tuple[dict[str, Tensor], Tensor]:
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(3, (rows,), generator=generator)
    noise = torch.randn(2, rows, 3, generator=generator, dtype=torch.float64)
    preds = {
        name: (each + 2 * torch.eye(3)[target]).softmax(1)
        for name, each in zip("AB", noise, strict=True)
    }
    return preds, target


PREDS, TARGET = drawn()


def bounds_of(result: Result[Any], names: list[str], model: str = "A") -> Tensor:
    scores = result.models[model]
    rows = list[list[float]]()
    for name in names:
        low = scores.bound(name, End(is_upper=False))
        high = scores.bound(name, End(is_upper=True))
        rows.append([or_nan(low), or_nan(high)])
    return torch.tensor(rows)


def differences(result: Result[Any], names: list[str], pair: str = "BA") -> Tensor:
    first, second = [result.models[model].units for model in pair]
    rows = list[list[float]]()
    for name in names:
        low = first.difference_bound(second, name, End(is_upper=False))
        high = first.difference_bound(second, name, End(is_upper=True))
        rows.append([or_nan(low), or_nan(high)])
    return torch.tensor(rows)


def or_nan(bound: float | Reason) -> float:
    return float("nan") if isinstance(bound, Reason) else bound


def measure_both(**given: Any) -> Result[Any]:
    return evaluate(PREDS, TARGET, concern=SPEC, metrics=[*NAMES, *RANKED], **given)


BOTH = measure_both()
BOUNDED = [name for name in NAMES if name not in WITHOUT_RANGE]


@pytest.mark.parametrize("name", [*BOUNDED, *RANKED])
def test_a_bound_lies_beyond_the_value_and_beyond_the_value_with_one_worst_row(
    name: str,
) -> None:
    [(low, high)] = bounds_of(BOTH, [name]).tolist()
    value = BOTH.value(name, "A")
    assert low <= value <= high
    for true in range(3):
        for wrong in range(3):
            further = torch.full((1, 3), 1e-9, dtype=torch.float64)
            further[0, wrong] = 1 - 2e-9
            preds = torch.cat([PREDS["A"], further])
            target = torch.cat([TARGET, torch.tensor([true])])
            one_more = evaluate(
                preds, target, concern=SPEC, metrics=[name], intervals=False
            ).value(name)
            if name == "dangerous":  # a count, which grows with the number of rows
                one_more *= 300 / 301
            assert low <= one_more <= high


@pytest.mark.parametrize("name", sorted(WITHOUT_RANGE))
def test_a_metric_without_a_range_is_tested_only_if_it_is_asked_for(name: str) -> None:
    assert BOTH.first.bound(name, End(True)) == NO_RANGE
    requirement = f"{name} < 5"
    with pytest.raises(RequirementError, match="so its interval is approximate"):
        BOTH.require(requirement)
    outcomes = BOTH.require(requirement, approximate=True)
    assert [outcome.bound for outcome in outcomes] == [
        BOTH.interval(name, model)[1] for model in "AB"
    ]


RATES = ("accuracy", "dangerous_rate")
RATES_OF_CLASSES = (
    "recall[green]",
    "specificity[green]",
    "precision[red]",
    "error_rate[red]",
)


@pytest.mark.parametrize("name", [*RATES, *RATES_OF_CLASSES])
def test_bounds_of_rates_are_their_intervals(name: str) -> None:
    [ends] = bounds_of(BOTH, [name]).tolist()
    assert ends == pytest.approx(BOTH.interval(name, "A"), abs=1e-6)


def test_bounds_of_a_difference_of_rates_are_its_interval() -> None:
    [row] = [row for row in BOTH.comparisons if row.by.metric == "misclassification_rate"]
    [ends] = differences(BOTH, ["misclassification_rate"]).tolist()
    assert ends == pytest.approx(row.paired[3:5], abs=1e-6)


def test_bounds_of_weighted_rates_allow_for_larger_weights() -> None:
    weights = torch.rand(300, generator=torch.Generator().manual_seed(1)) + 0.5
    weighted = measure_both(weights=weights)
    bounds = bounds_of(weighted, list(RATES_OF_CLASSES)).tolist()
    for name, (least, most) in zip(RATES_OF_CLASSES, bounds, strict=True):
        low, high = weighted.interval(name, "A")
        assert low - 0.02 < least < low + 1e-6
        assert high - 1e-6 < most < high + 0.02


def test_the_models_of_a_difference_may_be_swapped() -> None:
    names = [*BOUNDED, *RANKED]
    torch.testing.assert_close(
        differences(BOTH, names), -differences(BOTH, names, "AB").flip(1), equal_nan=True
    )
    assert differences(BOTH, names).isfinite().all()


@pytest.mark.parametrize(
    "given",
    [
        {"clusters": torch.arange(300)},
        {"weights": torch.ones(300)},
        {"weights": torch.full((300,), 2.5)},
        {"groups": {"all": ["one"] * 300}},
    ],
    ids=["clusters of one row", "weights of 1", "equal weights", "a group of all rows"],
)
def test_what_changes_no_row_changes_no_bound(given: dict[str, Any]) -> None:
    names = [name for name in BOUNDED if name != "dangerous"]
    other = measure_both(**given)
    torch.testing.assert_close(
        bounds_of(other, names), bounds_of(BOTH, names), rtol=0, atol=2e-3
    )
    torch.testing.assert_close(
        differences(other, names), differences(BOTH, names), rtol=0, atol=4e-3
    )
    if "groups" in given:
        of_group = other.groups[0].groups["one"]
        assert of_group.bound("mcc", End(True)) == pytest.approx(
            other.first.bound("mcc", End(True))
        )
        assert of_group.bound("auroc", End(False)) == pytest.approx(
            other.first.bound("auroc", End(False))
        )


def test_parts_give_the_bounds_of_the_whole_and_later_rows_change_no_result() -> None:
    parts = [Evaluation(3, concern=SPEC, metrics=[*NAMES, *RANKED]) for _ in range(2)]
    for part, rows in zip(parts, (slice(0, 100), slice(100, 300)), strict=True):
        part.update({name: each[rows] for name, each in PREDS.items()}, TARGET[rows])
    parts[0].merge(parts[1])
    names, whole = [*BOUNDED, *RANKED], parts[0].result()
    for _ in range(2):
        torch.testing.assert_close(bounds_of(whole, names), bounds_of(BOTH, names))
        torch.testing.assert_close(differences(whole, names), differences(BOTH, names))
        parts[0].update({name: each[:50] for name, each in PREDS.items()}, TARGET[:50])


@given(
    st.integers(0, 10**6),
    st.sampled_from(["macro_f1", "mcc", "balanced_accuracy", "macro_precision"]),
)
@settings(max_examples=20, deadline=None)
def test_influences_are_derivatives_and_those_of_rows_are_found_among_all_pairs(
    seed: int, name: str
) -> None:
    preds, target = drawn(200, seed)
    measure: Any = BY_NAME[name].make(3)
    decisions = preds["A"].argmax(1)
    bins = measure.named(
        measure.sums(measure.rows(decisions, target), Bins(torch.arange(200), 200)).double()
    )
    ones = torch.ones(200, dtype=torch.float64)
    found = of_sums(measure, bins, IndependentUnits(ones, ones, None))
    assert isinstance(found, Influences)
    assert found.of_rows is not None
    assert found.of_units.sum().item() == pytest.approx(0, abs=1e-12)
    without = torch.stack(
        [
            measure(decisions[kept], target[kept])
            for kept in ~torch.eye(200, dtype=torch.bool)
        ]
    )
    torch.testing.assert_close(
        found.of_units, (found.value - without).double(), rtol=0.1, atol=2e-3 / 20
    )
    for true in range(3):
        of_class = found.of_units[target == true]
        low, high = found.of_rows[true].tolist()
        assert low - 1e-12 <= of_class.min()
        assert of_class.max() == pytest.approx(high)  # some row of each class is right


def test_a_class_without_rows_leaves_an_average_without_a_bound() -> None:
    target = TARGET.clamp(max=1)
    result = evaluate(PREDS["A"], target, concern=SPEC, metrics=["macro_f1", "accuracy"])
    assert result.first.bound("macro_f1", End(False)) == Reason("absent_class")
    assert isfinite(result.first.bound("accuracy", End(False)))  # type: ignore[arg-type]
    with pytest.raises(RequirementError, match="a class has no rows"):
        result.require("macro_f1 > 0.1")


def test_more_looks_take_wider_bounds() -> None:
    ends = [End(is_upper=True), End(True, 0.99)]
    for name in ("accuracy", "mcc", "mpcs", "auroc", "recall[green]", "sensitivity[green]"):
        once, often = (BOTH.first.bound(name, end) for end in ends)
        assert isinstance(once, float)
        assert once < often  # type: ignore[operator]
        [outcome] = [
            each for each in BOTH.check(f"{name} < 0.999", looks=5) if each.model == "A"
        ]
        assert outcome.bound == pytest.approx(often)
    assert BOTH.check("cross_entropy < 9", approximate=True, looks=2)[0].reason == ONE_LOOK
    with Refused("at_least", "looks", 0, minimum=1):
        BOTH.check("accuracy > 0.1", looks=0)


@pytest.mark.parametrize("rate", ["recall", "sensitivity", "precision"])
def test_bounds_do_not_depend_on_brackets_in_the_name_of_a_class(rate: str) -> None:
    plain, other = [
        evaluate(PREDS["A"], TARGET, concern=ConcernSpec([name, "yellow", "green"]))
        for name in ("red", "sensitivity[red]")
    ]
    end = End(is_upper=False)
    of_plain = plain.first.bound(f"{rate}[red]", end)
    assert isinstance(of_plain, float)
    assert other.first.bound(f"{rate}[sensitivity[red]]", end) == of_plain


@pytest.mark.parametrize("positives", [0, 40])
def test_a_value_by_convention_has_no_bound(positives: int) -> None:
    """If all rows, or all decisions, are of one class, MCC counts as 0: one row of another class would change it."""
    probs = torch.tensor([[0.9, 0.1]]).repeat(150, 1)
    target = (torch.arange(150) < positives).long()
    result = evaluate({"old": probs, "new": probs.clone()}, target, metrics=["mcc"])
    for requirement in ("mcc > -0.01", "mcc > old - 0.01"):
        outcome = result.check(requirement)[-1]
        assert (outcome.holds, outcome.reason) == (False, Reason("by_convention"))


def test_no_intervals_no_bounds() -> None:
    result = evaluate(PREDS, TARGET, metrics=["accuracy"], intervals=False)
    with pytest.raises(RequirementError, match="intervals were not requested"):
        result.require("accuracy > 0.1")


@pytest.mark.parametrize(
    "name",
    ["1 of 1000 rows fails", "3 % of 60 patients fail in 20 images", "9 rare rows of 300"],
)
def test_a_failure_that_the_sample_does_not_show_passes_no_gate(name: str) -> None:
    design = DESIGNS[name]
    gates = [
        Requirement(
            metric, ">" if BY_NAME[metric].direction == "max" else "<", difference, "old"
        )
        for metric, difference in true_differences(design, 60_000).items()
        if metric not in WITHOUT_RANGE
    ]
    passed = [
        outcome.holds
        for seed in range(30)
        for outcome in measured(design, seed).check(*gates)
    ]
    # 2.5 % may pass, and two standard errors more; intervals let 10 to 25 % pass.
    assert sum(passed) <= 0.025 * len(passed) + 2 * (0.025 * len(passed)) ** 0.5


def test_differences_allow_for_rows_of_a_class_that_one_model_alone_decides_wrongly() -> (
    None
):
    """Of ten rare rows, in which the new model fails more often, 24 % of samples did not show it."""
    design = DESIGNS["10 rare rows of 1000"]
    truth, held, shown = true_differences(design, 60_000), 0, 0
    for seed in range(60):
        for row in measured(design, seed).comparisons:
            shown += 1
            held += row.paired.low <= truth[row.by.metric] <= row.paired.high
    assert held >= 0.93 * shown - 2 * (0.05 * shown) ** 0.5
    assert shown > 60
