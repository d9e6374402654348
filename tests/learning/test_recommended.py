"""The recommended recipe: its losses, and the choice among the models."""

import warnings
from dataclasses import replace

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
from mpcs_torch.learning.limited_rate import UnattainableLimitError
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


def validation(size: int = 3000, *, seed: int = 0) -> tuple[dict[str, Tensor], Tensor]:
    """Draw logits: the model with a margin tells green from the others, and red from yellow less well."""
    generator = torch.Generator().manual_seed(seed)
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


def test_the_mean_of_several_models_decides_for_new_samples() -> None:
    target = validation()[1]
    noises = torch.randn(3, len(target), 3, generator=torch.Generator().manual_seed(1))
    models = list(2.0 * torch.eye(3)[target] + noises)
    probs = sum(each.softmax(dim=1) for each in models) / 3
    torch.testing.assert_close(average_logits(models).softmax(dim=1), probs)
    alone = recommended(LIGHTS).choose({PLAIN: models[0]}, target)
    choice = recommended(LIGHTS, 3).choose({PLAIN: models}, target)
    averaged = choice.rule(average_logits(models)) == target
    assert (
        averaged.double().mean() > (alone.rule(models[0]) == target).double().mean() + 0.02
    )
    assert [step.name for step in choice.steps] == [
        "plain, most probable class",
        "+ decided by cost",
        "+ 3 models",
    ]
    more = choice.steps[-1].more_right
    assert more is not None
    assert 0.02 < more.low < more.value < more.high


def measured(
    concern: ConcernSpec, decision: Tensor, target: Tensor
) -> tuple[float, float, float, float]:
    """Return accuracy, the rate of dangerous errors, cost and the share referred, by loops over samples."""
    costs, dangerous = concern.costs(), concern.dangerous_pairs()
    pairs = list(zip(target.tolist(), decision.tolist(), strict=True))
    errors = sum(bool(dangerous[true, made]) for true, made in pairs if made >= 0)
    paid = sum(
        float(costs[true, made])
        for true, made in pairs
        if made >= 0 or concern.refer is not None
    )
    right = sum(true == made for true, made in pairs)
    referred = sum(made < 0 for _, made in pairs)
    return right / len(pairs), errors / len(pairs), paid / len(pairs), referred / len(pairs)


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
    names = ["plain, most probable class", "+ decided by cost", "+ trained with margin"]
    assert [step.name for step in choice.steps] == names
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
    factors = {
        row["a harmless error costs"]: row[""]
        for row in choice.table_of_factors().records()
    }
    assert factors[f"{choice.factor:g}"] == "chosen"
    too_costly = {
        name
        for name, verdict in factors.items()
        if verdict == "costs more accuracy than allowed"
    }
    assert too_costly == {
        f"{effect.factor:g}" for effect in choice.effects if effect.right < -0.0003
    }
    assert 0 < len(too_costly) < len(factors) - 1
    assert str(choice).endswith(choice.table_of_factors().markdown())


def test_the_costs_of_the_concern_are_a_candidate() -> None:
    logits, target = validation()
    choice = recommended(WEIGHTED, max_accuracy_loss=0.3).choose(logits, target)
    assert choice.factor == 0
    assert choice.rule.concern == WEIGHTED
    own = replace(LIGHTS, factor=0.33)
    assert [
        each.factor for each in recommended(own).choose(logits, target).effects
    ] == sorted({*FACTORS, 0.33}, reverse=True)


@pytest.mark.parametrize("answers", [{}, {"red or yellow": 0.05}])
def test_costs_of_samples_that_are_those_of_the_concern_change_nothing(
    answers: dict[str, float],
) -> None:
    logits, target = validation()
    concern = replace(LIGHTS, refer=0.2, answers=answers)
    costs = concern.costs()[:, :3].expand(len(target), 3, 3)
    alone, by_costs = (
        recommended(concern).choose(logits, target, costs=each) for each in (None, costs)
    )
    assert (by_costs.name, by_costs.factor) == (alone.name, alone.factor) == (MARGIN, None)
    for step, same in zip(by_costs.steps, alone.steps, strict=True):
        assert values(step) == pytest.approx(values(same))
        assert step.more_right == same.more_right
    assert torch.equal(by_costs.rule(logits[MARGIN], costs), alone.rule(logits[MARGIN]))
    assert "decided by the costs of the samples" in str(by_costs)


def test_costs_of_samples_choose_the_model_that_is_better_where_most_is_at_stake() -> None:
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(0, 3, (3000,), generator=generator)
    noise = torch.randn(2, 3000, 3, generator=generator)
    is_dear = (torch.arange(3000) % 5 == 0).unsqueeze(1)
    strengths = torch.where(is_dear, torch.tensor([1.0, 3.0]), torch.tensor([3.0, 2.0]))
    usual, careful = (
        strengths[:, [place]] * torch.eye(3)[target] + noise[place] for place in (0, 1)
    )
    logits = {PLAIN: usual, "careful": careful}
    recipe = recommended(LIGHTS, max_accuracy_loss=0.2)
    assert recipe.choose(logits, target).name == PLAIN
    costs = costs_if_wrong(
        torch.where(is_dear, 50.0, 1.0) * torch.rand(3000, 3, generator=generator)
    )
    choice = recipe.choose(logits, target, costs=costs)
    assert (choice.name, choice.factor, choice.effects) == ("careful", None, ())
    rule = DecisionRule(LIGHTS, calibration=choice.rule.calibration_method).fit(
        careful, target, costs=costs
    )
    assert torch.equal(choice.rule(careful, costs), rule(careful, costs))
    most_probable = usual.argmax(dim=1)
    assert choice.steps[0].cost == pytest.approx(
        costs[torch.arange(3000), target, most_probable].mean().item()
    )
    paid = [step.cost for step in choice.steps]
    assert paid == sorted(paid, reverse=True), "each step saves"
    with pytest.raises(ValueError, match="costs must be finite"):
        recipe.choose(logits, target, costs=costs / 0)


def test_a_price_of_a_referral_decides_as_the_rule_of_the_concern_does() -> None:
    logits, target = validation()
    for concern in (
        replace(LIGHTS, refer=0.2),
        replace(LIGHTS, refer=0.2, answers={"red or yellow": 0.05}),
    ):
        choice = recommended(concern, refer=False).choose(logits, target)
        assert choice.name == MARGIN
        assert not choice.effects
        alone = DecisionRule(concern).fit(logits[choice.name], target)
        decision = choice.rule(logits[choice.name])
        assert torch.equal(decision, alone(logits[choice.name]))
        assert (decision == -1).any() or (decision == 3).any()


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


def test_a_larger_allowance_saves_more() -> None:
    logits, target = validation()
    rates = []
    for allowed in (0.0, 0.02, 0.2):
        choice = recommended(LIGHTS, max_accuracy_loss=allowed).choose(
            {PLAIN: logits[PLAIN]}, target
        )
        decided = choice.rule(logits[PLAIN])
        rates.append(LIGHTS.dangerous_pairs()[target, decided].double().mean().item())
    assert rates[0] > rates[1] >= rates[2]


def test_shifted_odds_are_undone_where_one_direction_does_more_harm() -> None:
    """As a margin for one direction shifts them: a temperature would leave the shift, which costs accuracy."""
    concern = ConcernSpec(["benign", "malignant"], releases=[["benign", "malignant"]])
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(0, 2, (8000,), generator=generator)
    evidence = 2 * torch.where(target == 1, 1.0, -1.0) + 2 * torch.randn(
        8000, generator=generator
    )
    shifted = torch.stack([torch.zeros(8000), evidence + 2.0], dim=1)
    rule = recommended(concern).choose({PLAIN: shifted}, target).rule
    assert isinstance(rule.calibration, VectorScaling)
    best, decided, usual = (
        (decision == target).double().mean().item()
        for decision in ((evidence > 0).long(), rule(shifted), shifted.argmax(dim=1))
    )
    assert usual < best - 0.05
    assert decided > best - 0.005


def test_mutual_releases_leave_the_odds_alone() -> None:
    assert isinstance(
        recommended(LIGHTS).choose(*validation(600)).rule.calibration, TemperatureScaling
    )


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


def test_with_a_limit_the_better_loss_decides_more_and_no_fewer_rightly() -> None:
    logits, target = validation(6000)
    new, truth = validation(6000, seed=1)
    choice = recommended(LIGHTS, refer=Limit(0.03)).choose(logits, target)
    assert choice.name == MARGIN
    assert choice.rule.limits == (Limit(0.03),)
    shares = []
    for rule, name in (
        (choice.rule, choice.name),
        (DecisionRule(LIGHTS, Limit(0.03)).fit(logits[PLAIN], target), PLAIN),
    ):
        decision = rule(new[name])
        wrong = LIGHTS.dangerous_pairs()[truth, decision.clamp(min=0)] & (decision != -1)
        assert wrong.double().mean() < 0.035
        shares.append(
            [
                (decision != -1).double().mean().item(),
                (decision == truth).double().mean().item(),
            ]
        )
    (decided, right), (usual, usually_right) = shares
    assert decided > usual + 0.1
    assert right > usually_right
    last = choice.steps[-1]
    assert last.name == "+ referrals that keep the limits"
    assert values(last) == pytest.approx(
        measured(LIGHTS, choice.rule(logits[MARGIN]), target)
    )
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
    first, second = (
        recipe.choose(logits, labels, clusters=codes if by_cluster else None)
        for labels in (target, other_labels)
    )
    assert (first.name, first.factor, first.effects) == (
        second.name,
        second.factor,
        second.effects,
    )
    assert first.steps != second.steps


def repeated(times: int, size: int = 600) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """Each sample so many times, as equal images of a patient are."""
    logits, target = validation(size)
    copied = {name: each.repeat_interleave(times, dim=0) for name, each in logits.items()}
    return (
        copied,
        target.repeat_interleave(times),
        torch.arange(size).repeat_interleave(times),
    )


def test_copies_of_samples_in_clusters_choose_and_decide_as_the_samples_alone() -> None:
    logits, target, patients = repeated(5)
    alone, labels = {name: each[::5] for name, each in logits.items()}, target[::5]
    recipe = recommended(LIGHTS, refer=Limit(0.1))
    choice = recipe.choose(logits, target, clusters=patients)
    expected = recipe.choose(alone, labels)
    assert choice.name == expected.name
    names = [f"patient {code}" for code in patients.tolist()]
    assert str(recipe.choose(logits, target, clusters=names)) == str(choice)
    recipe = recommended(LIGHTS)
    of_patients, of_samples, of_copies = (
        each.steps[-1].more_dangerous
        for each in (
            recipe.choose(logits, target, clusters=patients),
            recipe.choose(alone, labels),
            recipe.choose(logits, target),
        )
    )
    assert of_patients is not None
    assert of_samples is not None
    assert of_copies is not None
    assert of_patients.low == pytest.approx(of_samples.low, abs=0.01)
    assert of_copies.low > of_patients.low + 0.01


@pytest.mark.parametrize("refer", [False, Limit(0.1)])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
def test_labels_may_have_any_integer_dtype(refer: bool | Limit, dtype: torch.dtype) -> None:
    logits, target = validation(500)
    recipe = recommended(LIGHTS, refer=refer)
    assert str(recipe.choose(logits, target.to(dtype))) == str(
        recipe.choose(logits, target)
    )


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
        (replace(LIGHTS, refer=0.9), Limit(0.03)),
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


@pytest.mark.filterwarnings("ignore::mpcs_torch.calibration.CalibrationWarning")
def test_too_few_samples_for_a_limit_are_refused_as_by_the_rule() -> None:
    logits, target = validation(60)
    with pytest.raises(
        UnattainableLimitError, match=r"the limit 'dangerous <= 0\.005 of samples"
    ):
        recommended(LIGHTS, refer=True).choose(logits, target)


def test_one_cluster_guarantees_no_limit() -> None:
    logits, target = validation(500)
    with pytest.raises(UnattainableLimitError, match="by 0 of 1 clusters"):
        DecisionRule(LIGHTS, Limit(0.1)).fit(logits[PLAIN], target, clusters=["A"] * 500)
    with pytest.raises(UnattainableLimitError, match="by 0 of 1 clusters"):
        recommended(LIGHTS, refer=Limit(0.1)).choose(logits, target, clusters=["A"] * 500)


def test_warnings_come_once() -> None:
    logits, target = validation(600)
    is_rare = (target == 2).nonzero().flatten()[30:]
    target[is_rare] = 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        recommended(LIGHTS, refer=Limit(0.2)).choose(logits, target)
    assert [each.category for each in caught] == [EvaluationWarning]


@pytest.mark.parametrize("refer", [False, Limit(0.1)])
def test_no_row_may_have_infinite_logits(refer: bool | Limit) -> None:
    logits, target = validation(500)
    for row in (0, 1, 2, 3):
        infinite = logits[PLAIN].clone()
        infinite[row, 0] = -torch.inf
        with Refused("finite_logits", "preds", sample=row):
            recommended(LIGHTS, refer=refer).choose({PLAIN: infinite}, target)
        with Refused("finite_logits", "preds", sample=row):
            DecisionRule(LIGHTS, () if refer is False else refer).fit(infinite, target)


@pytest.mark.parametrize("refer", [False, Limit(0.1)])
def test_clusters_and_groups_are_checked_whether_limits_read_them_or_not(
    refer: bool | Limit,
) -> None:
    logits, target = validation(500)
    recipe = recommended(LIGHTS, refer=refer)
    with Refused("mapping_of_names", "groups"):
        recipe.choose(logits, target, groups=["a"] * 500)  # type: ignore[arg-type]
    with Refused("name_for_each", "groups['site']", 5, rows=500):
        recipe.choose(logits, target, groups={"site": ["a"] * 5})
    with Refused("one_dimension", "clusters"):
        recipe.choose(logits, target, clusters=torch.zeros(500, 1))


def test_errors_name_the_argument() -> None:
    logits, target = validation(30)
    for wrong in (0.005, "dangerous <= 0.1", [0.1], None):
        with Refused("limits_or_bool", "refer"):
            recommended(LIGHTS, refer=wrong)  # type: ignore[arg-type]
    with Refused("limited_samples", "of"):
        recommended(LIGHTS, refer=[Limit(0.1), Limit(0.2, of="blue")])
    with Refused("between", "max_accuracy_loss", 2, minimum=0, maximum=1):
        recommended(LIGHTS, max_accuracy_loss=2)
    assert not recommended(replace(LIGHTS, refer=0.3)).limits
    assert recommended(replace(LIGHTS, refer=0.3), refer=True).limits
    with Refused("includes", "logits", name="plain"):
        recommended(LIGHTS).choose({MARGIN: logits[MARGIN]}, target)
    with Refused("of_members", "logits['margin']", 1, members=2):
        recommended(LIGHTS, 2).choose(
            {PLAIN: [logits[PLAIN]] * 2, MARGIN: logits[MARGIN]}, target
        )
    with Refused("at_least", "members", 0, minimum=1):
        recommended(LIGHTS, 0)
    with Refused("equal_shapes", "logits"):
        average_logits([logits[PLAIN], logits[MARGIN][1:]])
