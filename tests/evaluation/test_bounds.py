"""Bounds for requirements: laws over all metrics, and failures that a sample does not show."""

from collections.abc import Callable
from functools import partial
from itertools import product
from math import nan
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
from tests.evaluation.draws import rows_of
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


def drawn(rows: int, seed: int = 0) -> tuple[dict[str, Tensor], Tensor]:
    target, first, second = rows_of(rows, [1.0] * 3, skills=(2.0, 2.0), seed=seed)
    return {"A": first, "B": second}, target


PREDS, TARGET = drawn(300)


def two_bounds(bound: Callable[[End], float | Reason]) -> list[float]:
    """Return the lower and the upper bound, which are NaN where there is none."""
    ends = [bound(End(is_upper)) for is_upper in (False, True)]
    return [nan if isinstance(each, Reason) else each for each in ends]


def bounds_of(result: Result[Any], names: list[str]) -> Tensor:
    return torch.tensor([two_bounds(partial(result.first.bound, name)) for name in names])


def differences(result: Result[Any], names: list[str], pair: str = "BA") -> Tensor:
    first, second = [result.models[model].units for model in pair]
    return torch.tensor(
        [two_bounds(partial(first.difference_bound, second, name)) for name in names]
    )


def measure_both(**given: Any) -> Result[Any]:
    return evaluate(PREDS, TARGET, concern=SPEC, metrics=[*NAMES, *RANKED], **given)


BOTH = measure_both()
BOUNDED = [name for name in NAMES if name not in WITHOUT_RANGE]


@pytest.mark.parametrize("name", [*BOUNDED, *RANKED])
def test_a_bound_lies_beyond_the_value_and_beyond_the_value_with_one_worst_row(
    name: str,
) -> None:
    [(low, high)] = bounds_of(BOTH, [name]).tolist()
    assert low <= BOTH.value(name, "A") <= high
    sure = (1 - 3e-9) * torch.eye(3).double() + 1e-9
    for true, row in product(range(3), sure):
        preds = torch.cat([PREDS["A"], row.unsqueeze(0)])
        target = torch.cat([TARGET, torch.tensor([true])])
        with_row = evaluate(preds, target, concern=SPEC, metrics=[name], intervals=False)
        one_more = with_row.value(name)
        if name == "dangerous":  # a count, which grows with the number of rows
            one_more *= 300 / 301
        assert low <= one_more <= high


def test_a_metric_without_a_range_is_tested_only_if_it_is_asked_for() -> None:
    assert BOTH.first.bound("cross_entropy", End(True)) == NO_RANGE
    with pytest.raises(RequirementError) as failed:
        BOTH.require("cross_entropy < 5")
    assert {outcome.reason for outcome in failed.value.outcomes} == {NO_RANGE}
    outcomes = BOTH.require("cross_entropy < 5", approximate=True)
    highest = [BOTH.interval("cross_entropy", model)[1] for model in "AB"]
    assert [outcome.bound for outcome in outcomes] == highest


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
    ends = torch.tensor([weighted.interval(name, "A") for name in RATES_OF_CLASSES])
    wider = (bounds_of(weighted, [*RATES_OF_CLASSES]) - ends) * torch.tensor([-1, 1])
    assert ((wider > -1e-6) & (wider < 0.02)).all()


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
    names, other = [name for name in BOUNDED if name != "dangerous"], measure_both(**given)
    for bounds, near in ((bounds_of, 2e-3), (differences, 4e-3)):
        found, expected = bounds(other, names), bounds(BOTH, names)
        torch.testing.assert_close(found, expected, rtol=0, atol=near)
    for group in other.groups:
        for name, end in (("mcc", End(True)), ("auroc", End(False))):
            whole = other.models[group.model].bound(name, end)
            assert group.groups["one"].bound(name, end) == pytest.approx(whole)


def test_parts_give_the_bounds_of_the_whole_and_later_rows_change_no_result() -> None:
    parts = [Evaluation(3, concern=SPEC, metrics=[*NAMES, *RANKED]) for _ in range(2)]

    def update(part: Evaluation, rows: slice) -> None:
        part.update({name: each[rows] for name, each in PREDS.items()}, TARGET[rows])

    update(parts[0], slice(0, 100))
    update(parts[1], slice(100, 300))
    parts[0].merge(parts[1])
    names, whole = [*BOUNDED, *RANKED], parts[0].result()
    for _ in range(2):
        torch.testing.assert_close(bounds_of(whole, names), bounds_of(BOTH, names))
        torch.testing.assert_close(differences(whole, names), differences(BOTH, names))
        update(parts[0], slice(0, 50))


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
    rows = preds["A"].argmax(1), target
    of_rows = measure.sums(measure.rows(*rows), Bins(torch.arange(200), 200)).double()
    ones = torch.ones(200, dtype=torch.float64)
    found = of_sums(measure, measure.named(of_rows), IndependentUnits(ones, ones, None))
    assert isinstance(found, Influences)
    assert found.of_rows is not None
    assert found.of_units.sum().item() == pytest.approx(0, abs=1e-12)
    without = measure.value(measure.named(of_rows.sum(0) - of_rows))
    torch.testing.assert_close(
        found.of_units, (found.value - without).double(), rtol=0.1, atol=2e-3 / 20
    )
    for true, (low, high) in enumerate(found.of_rows.tolist()):
        of_class = found.of_units[target == true]
        assert low - 1e-12 <= of_class.min()
        assert of_class.max() == pytest.approx(high)  # some row of each class is right


def test_a_class_without_rows_leaves_an_average_without_a_bound() -> None:
    rows = PREDS["A"], TARGET.clamp(max=1)
    result = evaluate(*rows, concern=SPEC, metrics=["macro_f1", "accuracy"])
    assert result.first.bound("macro_f1", End(False)) == Reason("absent_class")
    assert result.check("macro_f1 > 0.1")[0].reason == Reason("absent_class")
    assert isinstance(result.first.bound("accuracy", End(False)), float)


@pytest.mark.parametrize(
    "name", ["accuracy", "mcc", "mpcs", "auroc", "recall[green]", "sensitivity[green]"]
)
def test_more_looks_take_wider_bounds(name: str) -> None:
    once, often = [BOTH.first.bound(name, end) for end in (End(True), End(True, 0.99))]
    assert once < often
    outcome = BOTH.check(f"{name} < 0.999", looks=5)[0]
    assert outcome.bound == pytest.approx(often)


def test_looks_are_for_bounds_that_hold() -> None:
    assert BOTH.check("cross_entropy < 9", approximate=True, looks=2)[0].reason == ONE_LOOK
    for looks in (0, 2.5, "5"):
        with Refused("whole_at_least", "looks", looks, minimum=1):
            BOTH.check("accuracy > 0.1", looks=looks)  # type: ignore[arg-type]


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
    truth = true_differences(design, 60_000)
    contain = [
        row.paired.low <= truth[row.by.metric] <= row.paired.high
        for seed in range(60)
        for row in measured(design, seed).comparisons
    ]
    assert len(contain) > 60
    assert sum(contain) >= 0.93 * len(contain) - 2 * (0.05 * len(contain)) ** 0.5
