"""Requirements: what is read, which bound is tested, and what cannot pass."""

import operator
import pickle
from math import inf, nan
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mpcs_torch import ConcernSpec, evaluate
from mpcs_torch.evaluation import Requirement, RequirementError, Result
from mpcs_torch.evaluation.intervals_and_bounds import End
from mpcs_torch.evaluation.reasons import Reason
from mpcs_torch.evaluation.requirements import outcomes_table
from mpcs_torch.functional import clopper_pearson
from tests.evaluation.draws import rows_of
from tests.refused import Refused

SPEC = ConcernSpec(
    ["red", "yellow", "green"], releases=[["red", "yellow"], ["yellow", "red"]], factor=0.5
)
SITES = np.where(np.arange(600) % 10 == 0, "north", "south")
PATIENTS = torch.arange(600) // 5
WORD = (
    st.text("abz_09 -+.[]<", min_size=1)
    .map(str.strip)
    .filter(
        lambda text: (
            text and text[0] not in "<+-.09[]" and not ("]" in text and "<" in text)
        )
    )
)
NAME = st.from_regex(r"[a-z][a-z_ ]{0,8}[a-z]", fullmatch=True)


TARGET, OLD, NEW = rows_of(600, [1.0] * 3, skills=(2.0, 3.0))


def evaluated(
    *, groups: bool = False, clusters: bool = False, metrics: Any = None, site: str = ""
) -> Result[Any]:
    """Evaluate two models on 600 rows, or on those of a ``site``."""
    rows = np.isin(SITES, [site] if site else SITES)
    return evaluate(
        {"old": OLD[rows], "new": NEW[rows]},
        TARGET[rows],
        concern=SPEC,
        metrics=metrics,
        groups={"site": SITES} if groups else None,
        clusters=PATIENTS[rows] if clusters else None,
    )


RESULT = evaluated()


@given(
    NAME,
    st.none() | WORD,
    st.sampled_from(["<", "<=", ">", ">="]),
    st.floats(-1e9, 1e9),
    st.none() | WORD,
)
def test_a_requirement_is_read_as_it_is_written(
    name: str, label: str | None, sign: str, limit: float, reference: str | None
) -> None:
    requirement = Requirement(
        name if label is None else f"{name}[{label}]", sign, limit, reference
    )
    assert Requirement.parse(str(requirement)) == requirement


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dangerous_rate<1%", Requirement("dangerous_rate", "<", 0.01)),
        (" recall[stop sign] >= 98 % ", Requirement("recall[stop sign]", ">=", 0.98)),
        ("mpcs < resnet-50 + 0.1 %", Requirement("mpcs", "<", 0.001, "resnet-50")),
        ("accuracy > A - 1e-2", Requirement("accuracy", ">", -0.01, "A")),
        ("mpcs < A", Requirement("mpcs", "<", 0, "A")),
        ("min_cost[p=0.01] < 0.05", Requirement("min_cost[p=0.01]", "<", 0.05)),
    ],
)
def test_what_can_be_written(text: str, expected: Requirement) -> None:
    assert Requirement.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "mpcs", "mpcs <", "mpcs = 0.1", "< 0.1", "mpcs << 1", "[red] < 1"],
)
def test_what_is_no_requirement_is_refused(text: str) -> None:
    with Refused("reads_like", f"requirement {text!r}"):
        Requirement.parse(text)
    with Refused("sign_and_limit", "sign"):
        Requirement.parse("mpcs < 1e999")


SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(-1, 1), st.sampled_from([*SIGNS]))
def test_the_end_of_the_interval_on_the_wrong_side_decides(
    one: float, other: float, limit: float, sign: str
) -> None:
    low, high = sorted((one, other))
    holds = Requirement("mpcs", sign, limit).check(one, low, high).holds
    assert holds == (SIGNS[sign](low, limit) and SIGNS[sign](high, limit))


@pytest.mark.parametrize("ends", [(nan, nan), (-inf, inf)])
@pytest.mark.parametrize("sign", ["<", ">="])
def test_a_value_without_an_interval_does_not_pass(
    ends: tuple[float, float], sign: str
) -> None:
    outcome = Requirement("mpcs", sign, -9 if sign == ">=" else 9).check(0.0, *ends)
    assert not outcome.holds
    assert outcome.reason == Reason("no_interval")


@pytest.mark.parametrize(
    ("limit", "verdict", "without"),
    [(0.4, "yes", "not shown: "), (0.3, "not shown", "not shown: "), (0.2, "no", "no: ")],
)
def test_what_a_value_breaks_differs_from_what_its_bound_does_not_show(
    limit: float, verdict: str, without: str
) -> None:
    requirement = Requirement("mpcs", "<", limit)
    outcomes = [requirement.check(0.25, 0.21, 0.34), requirement.check(0.25)]
    shown = [row[1] for row in outcomes_table(outcomes).rows]
    assert shown[0] == verdict
    assert shown[1].startswith(without)


def test_what_holds_is_returned_for_each_model_and_a_failure_shows_the_bounds() -> None:
    high = RESULT.models["old"].bound("mpcs", End(is_upper=True))
    assert isinstance(high, float)
    assert [row.model for row in RESULT.require(f"mpcs < {high + 1e-6}")] == ["old", "new"]
    with pytest.raises(
        AssertionError, match="1 of 2 tests of requirements failed"
    ) as failed:
        RESULT.require(f"mpcs < {high - 1e-6}")
    assert isinstance(failed.value, RequirementError)
    text = str(failed.value)
    assert f"| {high:.4g}" in text
    assert "| new " not in text
    assert str(pickle.loads(pickle.dumps(failed.value))) == text


def test_decisions_are_tested_among_the_true_samples_of_a_class() -> None:
    target = torch.arange(400) % 2
    decisions = torch.where(torch.arange(400) % 8 == 1, -1, target)
    result = evaluate(decisions, target, concern=SPEC)
    outcomes = result.require("coverage > 0.8", "coverage[red] > 0.95")
    assert [outcome.group for outcome in outcomes] == ["", ""]
    [of_yellow] = result.check("coverage[yellow] > 0.8")
    assert (of_yellow.value, of_yellow.holds) == (0.75, False)
    assert of_yellow.bound == pytest.approx(clopper_pearson(150, 200)[0])
    with pytest.raises(RequirementError, match="the class has no rows"):
        result.require("coverage[green] > 0.1")


def test_every_group_must_hold_too() -> None:
    rate, metrics = "misclassification_rate", ["misclassification_rate", "recall[red]"]
    result = evaluated(groups=True, metrics=metrics)
    _, pooled = result.interval(rate, "old")
    _, of_north = result.interval(rate, "old", ("site", "north"))
    assert pooled < of_north
    with pytest.raises(RequirementError) as failed:
        result.require(f"{rate} < {(pooled + of_north) / 2}")
    assert {row.group for row in failed.value.outcomes if not row.holds} == {"site = north"}
    assert len(result.require(f"{rate} <= {of_north}", "recall[red] > 0")) == 12
    with Refused("named_rate", "metric", "recall[red]"):
        evaluated(groups=True).require("recall[red] > 0")


@pytest.mark.parametrize("clusters", [False, True])
def test_a_difference_is_tested_in_every_group(clusters: bool) -> None:
    requirement = "misclassification_rate < old + 0.05"
    outcomes = evaluated(groups=True, clusters=clusters).check(requirement)
    assert {row.group for row in outcomes} == {"", "site = north", "site = south"}
    for row in outcomes:
        site = row.group.removeprefix("site = ")
        [alone] = evaluated(clusters=clusters, site=site).check(requirement)
        assert (row.value, row.bound) == pytest.approx((alone.value, alone.bound))


@pytest.mark.parametrize(("model", "reference"), [("new", "old"), ("old", "new")])
def test_a_difference_is_tested_in_either_direction(model: str, reference: str) -> None:
    high = RESULT.models[model].units.difference_bound(
        RESULT.models[reference].units, "mpcs", End(is_upper=True)
    )
    assert isinstance(high, float)
    [outcome] = RESULT.require(Requirement("mpcs", "<=", high, reference))
    assert (outcome.model, outcome.bound) == (model, high)
    with pytest.raises(RequirementError):
        RESULT.require(Requirement("mpcs", "<", high, reference))


def test_a_reference_keeps_no_requirement_itself() -> None:
    outcomes = RESULT.require("mpcs < 0.3", "misclassification_rate < old + 0.1")
    assert {row.model for row in outcomes} == {"new"}
    for requirements in (("mpcs < old", "mpcs < new"), ()):
        with Refused("needs_requirements", "require"):
            RESULT.require(*requirements)


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("mcps < 1", Refused("measured", "metric", "mcps", hint="did you mean mpcs?")),
        (
            "recall[rad] > 1",
            Refused("measured", "metric", "recall[rad]"),
        ),
        ("mpcs < older", Refused("one_of", "model", "older", choices=["old", "new"])),
        ("accuracy > old - 0.1", Refused("compared_by", "models", "accuracy")),
    ],
)
def test_unknown_names_are_errors_that_list_what_there_is(
    text: str, refusal: Refused
) -> None:
    with refusal:
        RESULT.require(text)


def test_a_list_of_requirements_is_refused() -> None:
    with Refused("requirement_type", "requirements", ["accuracy > 0"]):
        RESULT.require(["accuracy > 0"])  # type: ignore[arg-type]


def test_precision_is_said_to_hold_at_the_shares_of_classes_that_were_tested() -> None:
    """Half of the rows are ill, of whom one in a hundred is in use: a precision of 94 % there is 14 %."""
    target, names = torch.arange(4000) % 2, ["healthy", "ill"]
    chance = torch.rand(4000, generator=torch.Generator().manual_seed(0))
    rows = torch.where(chance < 0.06, 1 - target, target), target
    precision, recall = evaluate(*rows, class_names=names).require(
        "precision[ill] > 0.9", "recall[ill] > 0.9"
    )
    assert "at the class shares of these rows (prevalence=" in precision.caution
    assert not recall.caution
    in_use = evaluate(*rows, class_names=names, prevalence=[0.99, 0.01])
    with pytest.raises(RequirementError) as failed:
        in_use.require("precision[ill] > 0.9")
    expected = 0.94 * 0.01 / (0.94 * 0.01 + 0.06 * 0.99)
    assert failed.value.outcomes[0].value == pytest.approx(expected, abs=0.02)
    assert "class shares" not in str(failed.value)


@pytest.mark.parametrize(
    "metric", ["expected_concern", "cross_entropy", "auroc[1]", "net_benefit[1@0.1]"]
)
def test_a_metric_that_was_not_measured_is_added(metric: str) -> None:
    rows = torch.eye(2).repeat(50, 1), torch.arange(100) % 2
    concern = ", and give a concern (--concern)" if metric == "expected_concern" else ""
    hint = f"add it to metrics (--metrics){concern}."
    with Refused("measured", "metric", metric, hint=hint):
        evaluate(*rows, metrics=["accuracy"]).require(f"{metric} < 1")


@pytest.mark.parametrize(
    ("requirement", "limit", "may_be_percent"),
    [
        ("dangerous_rate < 1", 1, True),
        ("dangerous_rate < 0", 0, False),
        ("accuracy > 1", 1, True),
        ("misclassification_rate <= 5", 5, True),
        ("recall[0] < 98", 98, True),
        ("accuracy > 90", 90, True),
        ("accuracy >= 0", 0, False),
        ("mcc >= -1", -1, False),
        ("accuracy < 200 %", 2, False),
    ],
)
def test_a_limit_that_no_value_can_keep_or_violate_is_refused(
    requirement: str, limit: float, may_be_percent: bool
) -> None:
    probs = torch.eye(3)[[0, 1, 2, 0]].repeat(30, 1)
    target = torch.tensor([0, 1, 2, 1]).repeat(30)
    result = evaluate(probs, target, concern=ConcernSpec(3))
    code, lowest = "limit_in_percent" if may_be_percent else "limit_in_range", min(limit, 0)
    with Refused(code, f"the limit of a value from {lowest} to 1", limit):
        result.check(requirement)
    assert result.check(
        "expected_concern < 5",
        "dangerous <= 200",
        "accuracy >= 1",
        "mcc > -0.2",
        "accuracy > 0",
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("misclassification_rate < old + 1", "limit_in_percent"),
        ("misclassification_rate < old + 5", "limit_in_percent"),
        ("misclassification_rate < old + 500 %", "limit_in_range"),
        ("misclassification_rate < old - 1.5", "limit_in_range"),
    ],
)
def test_a_limit_that_no_difference_can_break_or_keep_is_refused(
    text: str, code: str
) -> None:
    with Refused(code):
        RESULT.check(text)


def test_a_metric_that_was_left_out_is_added_and_not_replaced_by_that_of_a_class() -> None:
    """The rate of a class is one of its rows, so it is not what was asked for."""
    found = evaluate(NEW, TARGET, concern=SPEC, metrics=["accuracy"])
    with Refused(
        "measured", "metric", "dangerous_rate", hint="add it to metrics (--metrics)."
    ):
        found.check("dangerous_rate < 1 %")


def test_a_metric_without_interval_says_why_and_no_bound_replaces_it() -> None:
    found = evaluate(NEW, TARGET, metrics=["ece"])
    for approximate in (False, True):
        [outcome] = found.check("ece < 0.9", approximate=approximate)
        assert outcome.reason == found.first.without_interval["ece"]
