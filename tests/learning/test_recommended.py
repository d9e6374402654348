"""The recommended recipe: its losses, and the choice among the models."""

import warnings
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from mpcs_torch import ConcernSpec
from mpcs_torch.calibration import TemperatureScaling, VectorScaling
from mpcs_torch.evaluation import EvaluationWarning
from mpcs_torch.functional import costs_if_wrong
from mpcs_torch.learning import DecisionRule, Limit, average_logits, recommended
from mpcs_torch.learning.factor_choice import harm_matrix
from mpcs_torch.learning.guaranteed_limits import UnattainableLimitError
from mpcs_torch.learning.recommended import FACTORS, MARGIN, PLAIN, REFERRAL_LIMIT, Step
from mpcs_torch.learning.rule_fit import draw_calibration_units
from tests.refused import Refused

LIGHTS = ConcernSpec(
    ["red", "yellow", "green"], releases=[["red", "yellow"], ["yellow", "red"]], factor=0.5
)
WEIGHTED = ConcernSpec(
    LIGHTS.classes,
    weights=[[0, 1, 100], [1, 0, 1], [1, 1, 0]],
    dangerous=[["red", "green"]],
)
LOGITS, TARGET = (
    torch.randn(20, 3, generator=torch.Generator().manual_seed(0)),
    torch.arange(20) % 3,
)


STEPS = ["plain, most probable class", "+ decided by cost", "+ trained with margin"]


def validation(size: int = 3000) -> tuple[dict[str, Tensor], Tensor]:
    """Draw logits: the model with a margin tells green from the others, and red from yellow less well."""
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(0, 3, (size,), generator=generator)
    noise = torch.randn(size, 3, generator=generator)
    plain = 2.0 * torch.eye(3)[target] + noise
    helped = plain.clone()
    helped[:, 2] += torch.where(target == 2, 1.0, -1.0)
    return {PLAIN: plain, MARGIN: helped}, target


def test_the_plain_loss_is_cross_entropy_and_released_pairs_have_half_the_margin() -> None:
    losses = recommended(LIGHTS).losses
    assert [*losses] == [PLAIN, MARGIN]
    torch.testing.assert_close(losses[PLAIN](LOGITS, TARGET), cross_entropy(LOGITS, TARGET))
    margins = losses[MARGIN].margin * losses[MARGIN].costs
    assert margins.tolist() == [[0, 2, 4], [2, 0, 4], [4, 4, 0]]


def test_margins_grow_with_weights_in_any_unit() -> None:
    weights = torch.tensor([[0, 10, 50], [10, 0, 10], [50, 0, 0]])
    harms = [
        harm_matrix(ConcernSpec(3, weights=(weights * unit).tolist())) for unit in (1, 0.1)
    ]
    torch.testing.assert_close(harms[0], weights.double() / 50)
    torch.testing.assert_close(*harms)


def test_the_mean_of_several_models_is_the_last_step() -> None:
    target = validation()[1]
    noises = torch.randn(3, len(target), 3, generator=torch.Generator().manual_seed(1))
    models = list(2.0 * torch.eye(3)[target] + noises)
    probs = sum(each.softmax(dim=1) for each in models) / 3
    torch.testing.assert_close(average_logits(models).softmax(dim=1), probs)
    choice = recommended(LIGHTS, 3).choose({PLAIN: models}, target)
    step = choice.steps[-1]
    assert [each.name for each in choice.steps] == [*STEPS[:2], "+ 3 models"]
    decided = choice.rule(average_logits(models))
    assert values(step) == pytest.approx(measured(LIGHTS, decided, target), abs=0.01)
    assert step.more_right is not None
    assert 0.02 < step.more_right.low < step.more_right.value < step.more_right.high


def measured(
    concern: ConcernSpec, decision: Tensor, target: Tensor
) -> tuple[float, float, float, float]:
    """Return accuracy, the rate of dangerous errors, cost and the share referred, by loops over samples."""
    costs, dangerous = concern.costs().tolist(), concern.dangerous_pairs().tolist()
    right = errors = referred = 0
    paid = 0.0
    for true, made in zip(target.tolist(), decision.tolist(), strict=True):
        right += made == true
        referred += made < 0
        errors += made >= 0 and dangerous[true][made]
        paid += costs[true][made] if made >= 0 else concern.refer or 0.0
    return (
        right / len(target),
        errors / len(target),
        paid / len(target),
        referred / len(target),
    )


def values(step: Step) -> tuple[float, ...]:
    return step.right, step.dangerous, step.cost, step.referred


@pytest.mark.parametrize(
    "concern", [LIGHTS, WEIGHTED, replace(LIGHTS, refer=0.2), replace(WEIGHTED, refer=0.5)]
)
def test_each_step_is_measured_and_compared_with_the_one_before(
    concern: ConcernSpec,
) -> None:
    logits, target = validation()
    choice = recommended(concern).choose(logits, target)
    assert choice.name == MARGIN
    assert (choice.factor is None) == (concern.refer is not None)
    assert [step.name for step in choice.steps] == STEPS
    assert values(choice.steps[0]) == pytest.approx(
        measured(concern, logits[PLAIN].argmax(dim=1), target)
    )
    # The rule is calibrated by all samples, the step by the others of each: they differ in few decisions.
    by_rule = measured(concern, choice.rule(logits[MARGIN]), target)
    assert values(choice.steps[-1]) == pytest.approx(by_rule, abs=0.01)
    assert choice.steps[0].more_right is choice.steps[0].more_dangerous is None
    for before, after in zip(choice.steps, choice.steps[1:], strict=False):
        assert after.more_right is not None
        assert after.more_dangerous is not None
        assert after.more_right.value == pytest.approx(after.right - before.right)
        assert after.more_dangerous.value == pytest.approx(
            after.dangerous - before.dangerous
        )
        assert after.more_right.low <= after.more_right.value <= after.more_right.high
    assert choice.steps[-1].dangerous < choice.steps[0].dangerous


def test_the_tables_hold_the_steps_and_the_factors() -> None:
    logits, target = validation()
    choice = recommended(LIGHTS, max_accuracy_loss=0.0003).choose(
        {PLAIN: logits[PLAIN]}, target
    )
    rows = choice.table().rows
    assert [row[0] for row in rows] == [step.name for step in choice.steps]
    assert rows[0][1] == f"{100 * choice.steps[0].right:.2f} %"
    factors = choice.table_of_factors()
    verdicts = {
        f"{effect.factor:g}": "costs more accuracy than allowed"
        for effect in choice.effects
        if effect.right < -0.0003
    }
    assert 0 < len(verdicts) < len(choice.effects) - 1
    verdicts[f"{choice.factor:g}"] = "chosen"
    assert [row[-1] for row in factors.rows] == [
        verdicts.get(row[0], "") for row in factors.rows
    ]
    assert str(choice).endswith(factors.markdown())


def test_the_costs_of_the_concern_are_a_candidate() -> None:
    logits, target = validation()
    choice = recommended(WEIGHTED, max_accuracy_loss=0.3).choose(logits, target)
    assert choice.factor == 0
    assert choice.rule.concern == WEIGHTED
    own = replace(LIGHTS, factor=0.33)
    assert [
        each.factor for each in recommended(own).choose(logits, target).effects
    ] == sorted({*FACTORS, 0.33}, reverse=True)


def test_costs_of_samples_that_are_those_of_the_concern_change_nothing() -> None:
    logits, target = validation()
    concern = replace(LIGHTS, refer=0.2, answers={"red or yellow": 0.05})
    costs = concern.costs()[:, :3].expand(len(target), 3, 3)
    alone = recommended(concern).choose(logits, target)
    by_costs = recommended(concern).choose(logits, target, costs=costs)
    assert (by_costs.name, by_costs.factor) == (alone.name, alone.factor) == (MARGIN, None)
    for step, same in zip(by_costs.steps, alone.steps, strict=True):
        assert values(step) == pytest.approx(values(same))
        assert step.more_right == same.more_right
    decided = by_costs.rule(logits[MARGIN], costs)
    assert {-1, 3} <= set(decided.tolist())
    for rule in (alone.rule, DecisionRule(concern).fit(logits[MARGIN], target)):
        assert torch.equal(decided, rule(logits[MARGIN]))
    assert "decided by the costs of the samples" in str(by_costs)


def test_costs_of_samples_choose_the_model_that_is_better_where_most_is_at_stake() -> None:
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(0, 3, (3000,), generator=generator)
    noise = torch.randn(2, 3000, 3, generator=generator)
    is_dear = (torch.arange(3000) % 5 == 0).unsqueeze(1)
    strengths = torch.where(is_dear, torch.tensor([1.0, 3.0]), torch.tensor([3.0, 2.0]))
    usual = strengths[:, :1] * torch.eye(3)[target] + noise[0]
    careful = strengths[:, 1:] * torch.eye(3)[target] + noise[1]
    logits = {PLAIN: usual, "careful": careful}
    recipe = recommended(LIGHTS, max_accuracy_loss=0.2)
    assert recipe.choose(logits, target).name == PLAIN
    costs = costs_if_wrong(
        torch.where(is_dear, 50.0, 1.0) * torch.rand(3000, 3, generator=generator)
    )
    choice = recipe.choose(logits, target, costs=costs)
    assert (choice.name, choice.factor, choice.effects) == ("careful", None, ())
    paid_before = costs[torch.arange(3000), target, usual.argmax(dim=1)]
    assert choice.steps[0].cost == pytest.approx(paid_before.mean().item())
    paid = [step.cost for step in choice.steps]
    assert paid == sorted(paid, reverse=True), "each step saves"
    with Refused("finite", "costs"):
        recipe.choose(logits, target, costs=costs / 0)


def test_groups_of_classes_stay_where_a_factor_decides() -> None:
    logits, target = validation()
    concern = ConcernSpec(
        LIGHTS.classes,
        weights=WEIGHTED.weights,
        class_groups={"stopping": ["red", "yellow"]},
    )
    for refer in (False, Limit(0.2, of="stopping")):
        rule = (
            recommended(concern, max_accuracy_loss=0.0, refer=refer)
            .choose(logits, target)
            .rule
        )
        assert rule.concern.class_groups == concern.class_groups
        assert rule.report is not None
        assert "stopping" in rule.report.by_class


@pytest.mark.parametrize(
    ("releases", "kind"),
    [
        ([["red", "green"]], VectorScaling),
        ([["red", "green"], ["green", "red"]], TemperatureScaling),
    ],
)
def test_shifted_odds_are_undone_where_one_direction_does_more_harm(
    releases: list[list[str]], kind: type[object]
) -> None:
    concern = ConcernSpec(LIGHTS.classes, releases=releases)
    logits, target = validation()
    shifted = {PLAIN: logits[PLAIN] + torch.tensor([0.0, 0.0, 1.5])}
    assert isinstance(recommended(concern).choose(shifted, target).rule.calibration, kind)


def test_intervals_stay_within_what_is_possible() -> None:
    logits, target = validation(400)
    clusters = (torch.arange(400) - 390).clamp(min=0)  # one large and nine single samples
    steps = recommended(LIGHTS).choose(logits, target, clusters=clusters).steps
    changes = [
        change for step in steps[1:] for change in (step.more_right, step.more_dangerous)
    ]
    assert all(
        change is not None and -1 <= change.low <= change.high <= 1 for change in changes
    )


def test_the_plain_model_is_chosen_where_it_is_best() -> None:
    logits, target = validation()
    worse = {PLAIN: logits[MARGIN] * 3, MARGIN: logits[PLAIN].roll(1, dims=1)}
    choice = recommended(LIGHTS, max_accuracy_loss=0.0).choose(worse, target)
    assert choice.name == PLAIN
    assert len(choice.steps) == 2


def test_dangerous_errors_of_the_rule_are_those_of_the_concern() -> None:
    logits, target = validation()
    for concern in (
        LIGHTS,
        ConcernSpec(3, weights=[[0, 1, 9], [1, 0, 9], [9, 9, 0]], dangerous=9.0),
    ):
        rule = recommended(concern).choose(logits, target).rule
        assert torch.equal(rule.concern.dangerous_pairs(), concern.dangerous_pairs())


def test_with_a_limit_referrals_are_the_last_step() -> None:
    logits, target = validation(6000)
    choice = recommended(LIGHTS, refer=Limit(0.01)).choose(logits, target)
    assert choice.name == MARGIN
    assert choice.rule.limits == (Limit(0.01),)
    decision = choice.rule(logits[MARGIN])
    assert 0 < (decision == -1).double().mean() < 0.3
    last = choice.steps[-1]
    assert last.name == "+ referrals that keep the limits"
    assert values(last) == pytest.approx(measured(LIGHTS, decision, target))
    assert last.dangerous <= 0.01
    assert recommended(LIGHTS, refer=True).limits == (REFERRAL_LIMIT,)


@pytest.mark.parametrize("by_cluster", [False, True])
def test_samples_that_judge_a_limit_choose_nothing(by_cluster: bool) -> None:
    logits, target = validation(2000)
    codes = torch.arange(2000) % 1000 if by_cluster else torch.arange(2000)
    judging = ~draw_calibration_units(int(codes.max()) + 1, 0)[codes]
    other_labels = target.masked_scatter(judging, target[judging].flip(0))
    recipe = recommended(
        LIGHTS, max_accuracy_loss=0.01, refer=[Limit(0.3), Limit(0.6, of="green")]
    )
    clusters = codes if by_cluster else None
    first = recipe.choose(logits, target, clusters=clusters)
    second = recipe.choose(logits, other_labels, clusters=clusters)
    assert (first.name, first.factor, first.effects) == (
        second.name,
        second.factor,
        second.effects,
    )
    assert first.steps != second.steps


def test_copies_of_samples_in_clusters_choose_and_decide_as_the_samples_alone() -> None:
    """Each sample five times, as equal images of a patient are."""
    alone, labels = validation(600)
    logits = {name: each.repeat_interleave(5, dim=0) for name, each in alone.items()}
    target = labels.repeat_interleave(5)
    patients = torch.arange(600).repeat_interleave(5)
    recipe = recommended(LIGHTS, refer=Limit(0.1))
    choice = recipe.choose(logits, target, clusters=patients)
    assert choice.name == recipe.choose(alone, labels).name
    names = [f"patient {code}" for code in patients.tolist()]
    assert str(recipe.choose(logits, target, clusters=names)) == str(choice)
    recipe = recommended(LIGHTS)
    lows = [
        each.steps[-1].more_dangerous.low  # type: ignore[union-attr]
        for each in (
            recipe.choose(logits, target, clusters=patients),
            recipe.choose(alone, labels),
            recipe.choose(logits, target),
        )
    ]
    assert lows[0] == pytest.approx(lows[1], abs=0.01)
    assert lows[2] > lows[0] + 0.01


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
def test_labels_may_have_any_integer_dtype(dtype: torch.dtype) -> None:
    logits, target = validation(500)
    recipe = recommended(LIGHTS, refer=Limit(0.1))
    choices = [recipe.choose(logits, labels) for labels in (target, target.to(dtype))]
    assert str(choices[0]) == str(choices[1])


def test_groups_of_limits_must_be_given() -> None:
    logits, target = validation(2000)
    recipe = recommended(LIGHTS, refer=Limit(0.1, by="site"))
    assert (
        recipe.choose(logits, target, groups={"site": ["a", "b"] * 1000}).rule.limits
        == recipe.limits
    )
    with Refused("columns_of_limits", "groups", columns=["site"]):
        recipe.choose(logits, target)


@pytest.mark.parametrize(
    ("concern", "limit"),
    [
        (replace(LIGHTS, refer=0.9), Limit(0.01)),
        (LIGHTS, Limit(0.05, "cost", confidence=None)),
    ],
)
def test_costs_that_matter_in_themselves_are_kept(
    concern: ConcernSpec, limit: Limit
) -> None:
    logits, target = validation(2000)
    choice = recommended(concern, refer=limit).choose(logits, target)
    assert choice.factor is None
    assert choice.rule.concern == concern


def test_one_cluster_guarantees_no_limit() -> None:
    logits, target = validation(500)
    for fit in (
        lambda: DecisionRule(LIGHTS, Limit(0.1)).fit(
            logits[PLAIN], target, clusters=["A"] * 500
        ),
        lambda: recommended(LIGHTS, refer=Limit(0.1)).choose(
            logits, target, clusters=["A"] * 500
        ),
    ):
        with pytest.raises(UnattainableLimitError, match="by 0 of 1 clusters"):
            fit()


def test_warnings_come_once() -> None:
    logits, target = validation(600)
    is_rare = (target == 2).nonzero().flatten()[30:]
    target[is_rare] = 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        recommended(LIGHTS, refer=Limit(0.2)).choose(logits, target)
    assert [each.category for each in caught] == [EvaluationWarning]


@pytest.mark.parametrize("refer", [False, Limit(0.1)])
@pytest.mark.parametrize("row", range(4))
def test_no_row_may_have_infinite_logits(refer: bool | Limit, row: int) -> None:
    logits, target = validation(500)
    logits[PLAIN][row, 0] = -torch.inf
    with Refused("finite_logits", "preds", sample=row):
        recommended(LIGHTS, refer=refer).choose(logits, target)
    with Refused("finite_logits", "preds", sample=row):
        DecisionRule(LIGHTS, refer or ()).fit(logits[PLAIN], target)


@pytest.mark.parametrize("refer", [False, Limit(0.1)])
@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"groups": ["a"] * 500}, Refused("mapping_of_names", "groups")),
        (
            {"groups": {"site": ["a"] * 5}},
            Refused("name_for_each", "groups['site']", 5, rows=500),
        ),
        ({"clusters": torch.zeros(500, 1)}, Refused("one_dimension", "clusters")),
    ],
)
def test_clusters_and_groups_are_checked_whether_limits_read_them_or_not(
    refer: bool | Limit, arguments: dict[str, Any], refusal: Refused
) -> None:
    logits, target = validation(500)
    with refusal:
        recommended(LIGHTS, refer=refer).choose(logits, target, **arguments)


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ({"refer": 0.005}, Refused("limits_or_bool", "refer")),
        ({"refer": "dangerous <= 0.1"}, Refused("limits_or_bool", "refer")),
        ({"refer": [0.1]}, Refused("limits_or_bool", "refer")),
        ({"refer": None}, Refused("limits_or_bool", "refer")),
        (
            {"refer": [Limit(0.1), Limit(0.2, of="blue")]},
            Refused("limited_samples", "of"),
        ),
        (
            {"max_accuracy_loss": 2},
            Refused("between", "max_accuracy_loss", 2, minimum=0, maximum=1),
        ),
        ({"members": 0}, Refused("at_least", "members", 0, minimum=1)),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], refusal: Refused) -> None:
    with refusal:
        recommended(LIGHTS, **settings)


def test_other_models_than_those_of_the_recipe_are_refused() -> None:
    logits, target = validation(30)
    with Refused("includes", "logits", name="plain"):
        recommended(LIGHTS).choose({MARGIN: logits[MARGIN]}, target)
    with Refused("of_members", "logits['margin']", 1, members=2):
        recommended(LIGHTS, 2).choose(
            {PLAIN: [logits[PLAIN]] * 2, MARGIN: logits[MARGIN]}, target
        )
    with Refused("equal_shapes", "logits"):
        average_logits([logits[PLAIN], logits[MARGIN][1:]])


def test_a_price_of_a_referral_needs_no_limit() -> None:
    assert not recommended(replace(LIGHTS, refer=0.3)).limits
    assert recommended(replace(LIGHTS, refer=0.3), refer=True).limits
