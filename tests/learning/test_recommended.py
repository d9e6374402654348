"""The recommended recipe: its losses, and the choice among the models."""

import re
import warnings
from dataclasses import replace
from importlib import import_module

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from mpcs_torch import ConcernSpec
from mpcs_torch.calibration import TemperatureScaling, VectorScaling
from mpcs_torch.calibration.scaling import make_scaling
from mpcs_torch.evaluation import EvaluationWarning
from mpcs_torch.functional.concern.limits import UnattainableLimitError
from mpcs_torch.functional.inputs.groups import Groups
from mpcs_torch.learning import DecisionRule, Limit, recommended, with_averages
from mpcs_torch.learning.choice import calibration_for, choose_referring, harm_matrix
from mpcs_torch.learning.recommended import PLAIN, REFERRAL_LIMIT
from mpcs_torch.learning.rule_fit import draw_calibration_units

LIGHTS = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"], ["yellow", "red"]], factor=0.5)
LOGITS, TARGET = torch.randn(20, 3, generator=torch.Generator().manual_seed(0)), torch.arange(20) % 3


def validation(size: int = 3000, *, seed: int = 0) -> tuple[dict[str, Tensor], Tensor]:
    """Draw logits: the model with a margin tells green from the others, and red from yellow less well."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(0, 3, (size,), generator=generator)
    noise = torch.randn(size, 3, generator=generator)
    plain = 2.0 * torch.eye(3)[target] + noise
    helped = plain.clone()
    helped[:, 2] += torch.where(target == 2, 1.0, -1.0)
    return {PLAIN: plain, "margin 4": helped}, target


def test_the_plain_loss_is_cross_entropy_and_released_pairs_have_no_margin() -> None:
    losses = recommended(LIGHTS).losses
    assert next(iter(losses)) == PLAIN
    torch.testing.assert_close(losses[PLAIN](LOGITS, TARGET), cross_entropy(LOGITS, TARGET))
    margins = losses["margin 4"].margin * losses["margin 4"].costs
    assert margins.tolist() == [[0, 0, 4], [0, 0, 4], [4, 4, 0]]


def test_an_average_is_chosen_where_it_is_best_and_decides_for_new_samples() -> None:
    target = validation()[1]
    noises = torch.randn(3, len(target), 3, generator=torch.Generator().manual_seed(1))
    logits = dict(zip((PLAIN, "margin 2", "margin 4"), 2.0 * torch.eye(3)[target] + noises, strict=True))
    both = with_averages(logits)
    probs = sum(each.softmax(dim=1) for each in logits.values()) / 3
    torch.testing.assert_close(both["average"].softmax(dim=1), probs)
    assert [*both] == [*logits, "average", "average of margins"]
    choice = recommended(LIGHTS).choose(both, target)
    assert choice.name == "average"
    right = [(recommended(LIGHTS).choose(each, target), each) for each in (logits, both)]
    alone, averaged = ((made.rule(each[made.name]) == target).double().mean() for made, each in right)
    assert averaged > alone + 0.02
    assert [*with_averages({PLAIN: logits[PLAIN]})] == [PLAIN]
    assert [*with_averages({PLAIN: logits[PLAIN], "mine": logits["margin 4"]})] == [PLAIN, "mine", "average"]


def test_margins_are_in_proportion_to_weights_in_any_unit() -> None:
    weights = torch.tensor([[0, 10, 50], [10, 0, 10], [50, 0, 0]])
    harms = [harm_matrix(ConcernSpec(3, weights=(weights * unit).tolist())) for unit in (1, 0.1)]
    torch.testing.assert_close(harms[0], weights.double() / 50)
    torch.testing.assert_close(*harms)


def test_it_chooses_the_model_and_says_what_it_changes() -> None:
    logits, target = validation()
    choice = recommended(LIGHTS).choose(logits, target)
    assert choice.name == "margin 4"
    assert re.fullmatch(
        r"margin 4, decided by a factor of [\d.]+: -\d+\.\d \[.*\] dangerous errors in 10 000 samples, .* \[.*\] "
        r"points of accuracy, against the plain model after calibration\.",
        choice.summary.splitlines()[1],
    )
    decisions = choice.rule(logits[choice.name])
    before = LIGHTS.dangerous_pairs()[target, logits[PLAIN].argmax(dim=1)].double().mean()
    assert LIGHTS.dangerous_pairs()[target, decisions].double().mean() < 0.7 * before
    change = re.search(r": ([+-][\d.]+) \[([+-][\d.]+), ([+-][\d.]+)\] dangerous", choice.summary)
    assert change is not None
    value, low, high = map(float, change.groups())
    assert low < value < high < 0


def measured(concern: ConcernSpec, decision: Tensor, target: Tensor) -> tuple[float, int, float, float]:
    """Return accuracy, dangerous errors, cost and the share referred, by loops over samples."""
    costs, dangerous = concern.costs(), concern.dangerous_pairs()
    pairs = list(zip(target.tolist(), decision.tolist(), strict=True))
    errors = sum(bool(dangerous[true, made]) for true, made in pairs if made >= 0)
    paid = sum(float(costs[true, made]) for true, made in pairs if made >= 0 or concern.refer is not None)
    right, referred = sum(true == made for true, made in pairs), sum(made < 0 for _, made in pairs)
    return right / len(pairs), errors, paid / len(pairs), referred / len(pairs)


WEIGHTED = ConcernSpec(LIGHTS.classes, weights=[[0, 1, 100], [1, 0, 1], [1, 1, 0]], dangerous=[["red", "green"]])


@pytest.mark.parametrize("concern", [LIGHTS, WEIGHTED, replace(LIGHTS, refer=0.2), replace(WEIGHTED, refer=0.5)])
def test_the_table_counts_each_way_of_deciding_that_was_tried(concern: ConcernSpec) -> None:
    logits, target = validation()
    choice = recommended(concern).choose(logits, target)
    rows = choice.options.records()
    usual, accuracies = DecisionRule(concern, calibration=calibration_for(harm_matrix(concern))), list[float]()
    for row in rows:
        rule = usual
        if row["decided by"] != "the costs of the concern":
            factor = float(row["decided by"].removeprefix("a factor of "))
            harm = harm_matrix(concern)
            pairs = [[true, *of.nonzero().flatten().tolist()] for true, of in enumerate(concern.dangerous_pairs())]
            made = {"weights": factor + (1 - factor) * harm, "dangerous": [pair for pair in pairs if len(pair) > 1]}
            rule = DecisionRule(ConcernSpec(3, **made), calibration=usual.calibration_method)
        decision = rule.fit(logits[row["model"]], target)(logits[row["model"]])
        accuracy, errors, cost, referred = measured(concern, decision, target)
        assert row["dangerous errors"] == f"{errors} of 3000"
        assert row["cost"] == f"{cost:.4g}"
        assert row["referred"] == f"{100 * referred:.1f} %"
        accuracies.append(accuracy)
        points = float(row["points of accuracy"].split(" ")[0])
        assert points == pytest.approx(100 * (accuracy - accuracies[0]), abs=0.0051)
    (chosen,) = (row for row in rows if row[""] == "chosen")
    assert chosen["model"] == choice.name
    assert str(choice) == f"{choice.summary}\n\n{choice.options.markdown()}"
    assert (choice.factor is None) == (concern.refer is not None)
    if concern.refer is None:
        assert [row["decided by"] for row in rows].count("the costs of the concern") >= 1


def test_the_first_line_says_what_the_allowed_loss_of_accuracy_costs_in_danger() -> None:
    logits, target = validation()
    lines = {most: recommended(WEIGHTED, max_accuracy_loss=most).choose(logits, target) for most in (0.0, 0.3)}
    rows = {most: {row["decided by"]: row for row in each.options.records()} for most, each in lines.items()}
    safest, (chosen,) = (
        rows[0.0]["the costs of the concern"],
        (row for row in rows[0.0].values() if row[""] == "chosen"),
    )
    assert safest[""] == "expected to cost too much accuracy"
    assert lines[0.0].summary.splitlines()[0] == (
        "With at most 0 points of accuracy lost (max_accuracy_loss=0), "
        f"{chosen['dangerous errors']} samples are dangerous errors; at any accuracy, the costs of the concern: "
        f"{safest['dangerous errors']}, at {safest['points of accuracy']} points of accuracy."
    )
    assert rows[0.3]["the costs of the concern"][""] == "chosen"
    assert lines[0.3].summary.splitlines()[0].endswith("; no other option is expected to do less harm.")
    assert lines[0.3].rule.concern == WEIGHTED


def test_a_price_of_a_referral_decides_as_the_rule_of_the_concern_does() -> None:
    logits, target = validation()
    for concern in (replace(LIGHTS, refer=0.2), replace(LIGHTS, refer=0.2, answers={"red or yellow": 0.05})):
        choice = recommended(concern, refer=False).choose(logits, target)
        assert choice.name == "margin 4"
        alone = DecisionRule(concern).fit(logits[choice.name], target)
        decision = choice.rule(logits[choice.name])
        assert torch.equal(decision, alone(logits[choice.name]))
        assert (decision == -1).any() or (decision == 3).any()


def test_groups_of_classes_stay_where_a_factor_decides() -> None:
    logits, target = validation()
    concern = ConcernSpec(LIGHTS.classes, weights=WEIGHTED.weights, class_groups={"stopping": ["red", "yellow"]})
    for refer in (False, Limit(0.2, of="stopping")):
        rule = recommended(concern, max_accuracy_loss=0.0, refer=refer).choose(logits, target).rule
        assert rule.concern.class_groups == concern.class_groups
        assert rule.report is not None
        assert "stopping" in rule.report.by_class


def test_a_larger_allowance_saves_more() -> None:
    logits, target = validation()
    del logits["margin 4"]
    rates = []
    for allowed in (0.0, 0.02, 0.2):
        choice = recommended(LIGHTS, max_accuracy_loss=allowed).choose(logits, target)
        decided = choice.rule(logits[choice.name])
        rates.append(LIGHTS.dangerous_pairs()[target, decided].double().mean().item())
    assert rates[0] > rates[1] >= rates[2]


def test_the_summary_counts_what_the_rule_does() -> None:
    logits, target = validation()
    weighted = ConcernSpec(LIGHTS.classes, weights=[[0, 1, 9], [2, 0, 5], [9, 5, 0]], dangerous=[["red", "green"]])
    for concern in (LIGHTS, weighted):
        choice = recommended(concern).choose(logits, target)
        scaling = make_scaling(calibration_for(harm_matrix(concern)), 3).fit(logits[PLAIN], target)
        before, after = scaling(logits[PLAIN]).argmax(dim=1), choice.rule(logits[choice.name])
        wrong = [concern.dangerous_pairs()[target, decision].sum().item() for decision in (before, after)]
        right = [(decision == target).sum().item() for decision in (before, after)]
        assert f": {1e4 * (wrong[1] - wrong[0]) / 3000:+.1f} [" in choice.summary
        assert f", {100 * (right[1] - right[0]) / 3000:+.2f} [" in choice.summary


def test_shifted_odds_are_undone_where_one_direction_does_more_harm() -> None:
    """As a margin for one direction shifts them: a temperature would leave the shift, which costs accuracy."""
    concern = ConcernSpec(["benign", "malignant"], releases=[["benign", "malignant"]])
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(0, 2, (8000,), generator=generator)
    evidence = 2 * torch.where(target == 1, 1.0, -1.0) + 2 * torch.randn(8000, generator=generator)
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
    assert isinstance(recommended(LIGHTS).choose(*validation(600)).rule.calibration, TemperatureScaling)


def test_intervals_stay_within_what_is_possible() -> None:
    logits, target = validation(400)
    clusters = (torch.arange(400) - 390).clamp(min=0)  # one large and nine single samples
    change = recommended(LIGHTS).choose(logits, target, clusters=clusters).summary.splitlines()[1]
    ends = [[abs(float(end)) for end in each.split(", ")] for each in re.findall(r"\[(.*?)\]", change)]
    assert all(end <= 10_000 for end in ends[0])
    assert all(end <= 100 for end in ends[1])


def test_it_says_so_if_the_plain_model_is_best() -> None:
    logits, target = validation()
    worse = {PLAIN: logits["margin 4"] * 3, "margin 4": logits[PLAIN].roll(1, dims=1)}
    choice = recommended(LIGHTS, max_accuracy_loss=0.0).choose(worse, target)
    assert choice.name == PLAIN
    if choice.factor == 1:
        assert choice.summary.endswith("plain, decided by a factor of 1 after calibration, is the best choice.")


def test_dangerous_errors_of_the_rule_are_those_of_the_concern() -> None:
    logits, target = validation()
    for concern in (LIGHTS, ConcernSpec(3, weights=[[0, 1, 9], [1, 0, 9], [9, 9, 0]], dangerous=9.0)):
        rule = recommended(concern).choose(logits, target).rule
        assert torch.equal(rule.concern.dangerous_pairs(), concern.dangerous_pairs())


def test_with_referral_it_decides_more_and_no_fewer_rightly() -> None:
    logits, target = validation(6000)
    new, truth = validation(6000, seed=1)
    recipe = recommended(LIGHTS, refer=Limit(0.03))
    choice = recipe.choose(logits, target)
    assert choice.name == "margin 4"
    assert choice.rule.limits == (Limit(0.03),)
    shares = []
    for rule, name in (
        (choice.rule, choice.name),
        (DecisionRule(LIGHTS, Limit(0.03)).fit(logits[PLAIN], target), PLAIN),
    ):
        decision = rule(new[name])
        wrong = LIGHTS.dangerous_pairs()[truth, decision.clamp(min=0)] & (decision != -1)
        assert wrong.double().mean() < 0.035
        shares.append([(decision != -1).double().mean().item(), (decision == truth).double().mean().item()])
    (decided, right), (usual, usually_right) = shares
    assert decided > usual + 0.1
    assert right > usually_right
    assert re.fullmatch(
        r"With at most 0\.5 points of accuracy lost \(max_accuracy_loss=0\.005\), the limits are expected to refer "
        r"[\d.]+ % of the samples; .*\nmargin 4, decided by .*, decides [\d.]+ % of the samples under the limits, "
        r"[\d.]+ % correctly\.",
        choice.summary,
    )
    rows = choice.options.records()
    assert [row[""] for row in rows].count("chosen") == 1
    (row,) = (row for row in rows if row[""] == "chosen")
    of_rule = float(re.search(r"decides ([\d.]+) %", choice.summary)[1])  # type: ignore[index]
    assert float(row["referred"].removesuffix(" %")) == pytest.approx(100 - of_rule, abs=5)
    assert float(row["points of accuracy"]) == pytest.approx(100 * (right - usually_right), abs=5)
    assert recommended(LIGHTS, refer=True).limits == (REFERRAL_LIMIT,)


def test_samples_that_judge_a_limit_choose_nothing() -> None:
    logits, target = validation(2000)
    limits = [Limit(0.03), Limit(0.1, of="green")]
    judging = ~draw_calibration_units(len(target), 0)
    other_labels = target.masked_scatter(judging, target[judging].flip(0))
    other_logits = {name: torch.where(judging.unsqueeze(1), -each, each) for name, each in logits.items()}
    choices = [
        choose_referring(list(each.values()), labels, LIGHTS, limits, 0.01)
        for each, labels in ((logits, target), (other_logits, other_labels))
    ]
    assert choices[0] == choices[1]


def repeated(times: int, size: int = 600) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """Each sample so many times, as equal images of a patient are."""
    logits, target = validation(size)
    copied = {name: each.repeat_interleave(times, dim=0) for name, each in logits.items()}
    return copied, target.repeat_interleave(times), torch.arange(size).repeat_interleave(times)


@pytest.mark.slow
def test_copies_of_samples_in_clusters_choose_and_decide_as_the_samples_alone() -> None:
    logits, target, patients = repeated(5)
    alone, labels = {name: each[::5] for name, each in logits.items()}, target[::5]
    recipe = recommended(LIGHTS, refer=Limit(0.1))
    choice, expected = recipe.choose(logits, target, clusters=patients), recipe.choose(alone, labels)
    assert (choice.name, choice.factor) == (expected.name, expected.factor)
    torch.testing.assert_close(choice.rule(logits[choice.name])[::5], expected.rule(alone[choice.name]))
    names = [f"patient {code}" for code in patients.tolist()]
    assert str(recipe.choose(logits, target, clusters=names)) == str(choice)
    recipe = recommended(LIGHTS)
    of_patients, of_samples, of_copies = (
        each.summary.splitlines()[1].partition(": ")[2]  # what the choice changes, with intervals
        for each in (
            recipe.choose(logits, target, clusters=patients),
            recipe.choose(alone, labels),
            recipe.choose(logits, target),
        )
    )
    assert of_patients == of_samples != of_copies


def test_of_models_that_decide_all_samples_the_better_one_is_chosen() -> None:
    logits, target = validation()
    chosen, _ = choose_referring(list(logits.values()), target, LIGHTS, [Limit(0.5)], 1.0)
    assert (chosen.model, chosen.referred) == (1, 0.0)


def test_clusters_that_judge_a_limit_choose_nothing() -> None:
    logits, target = validation(2000)
    clusters = Groups(list(map(str, range(1000))), torch.arange(2000) % 1000)
    judging = ~draw_calibration_units(1000, 0)[clusters.codes]
    other_labels = target.masked_scatter(judging, target[judging].flip(0))
    sites = {"site": Groups(["north", "south"], torch.arange(2000) % 2)}
    choices = [
        choose_referring(
            list(logits.values()), labels, LIGHTS, [Limit(0.15, by="site")], 0.01, clusters=clusters, groups=sites
        )
        for labels in (target, other_labels)
    ]
    assert choices[0] == choices[1]
    assert choices[0][0].referred < 0.7


@pytest.mark.parametrize("refer", [False, Limit(0.1)])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
def test_labels_may_have_any_integer_dtype(refer: bool | Limit, dtype: torch.dtype) -> None:
    logits, target = validation(500)
    recipe = recommended(LIGHTS, refer=refer)
    assert str(recipe.choose(logits, target.to(dtype))) == str(recipe.choose(logits, target))


def test_groups_of_limits_must_be_given() -> None:
    logits, target = validation(2000)
    recipe = recommended(LIGHTS, refer=Limit(0.1, by="site"))
    assert recipe.choose(logits, target, groups={"site": ["a", "b"] * 1000}).rule.limits == recipe.limits
    with pytest.raises(ValueError, match=r"groups must have the columns of the limits, \['site'\]"):
        recipe.choose(logits, target)


@pytest.mark.parametrize(
    ("concern", "limit"),
    [
        (replace(LIGHTS, refer=0.9), Limit(0.03)),
        (LIGHTS, Limit(0.05, "cost", confidence=None)),
    ],
)
def test_costs_that_matter_in_themselves_are_kept(concern: ConcernSpec, limit: Limit) -> None:
    logits, target = validation(2000)
    choice = recommended(concern, refer=limit).choose(logits, target)
    assert choice.factor is None
    assert choice.rule.concern == concern


def test_small_factors_decide_more_under_a_limit_on_dangerous_errors() -> None:
    logits, target = validation(4000)
    cautious = ConcernSpec(3, releases=[[0, 1], [2, 1]], factor=0.5)  # class 1 is a harmless answer to all
    allowed = [choose_referring([logits[PLAIN]], target, cautious, [Limit(0.03)], loss)[0] for loss in (0.0, 0.05, 1.0)]
    assert allowed[0].referred >= allowed[1].referred >= allowed[2].referred
    assert allowed[2].referred < allowed[0].referred
    assert allowed[2].factor is not None


def test_too_few_samples_for_a_limit_are_refused_as_by_the_rule() -> None:
    logits, target = validation(60)
    with pytest.raises(UnattainableLimitError, match=r"the limit 'dangerous <= 0\.005 of samples"):
        recommended(LIGHTS, refer=True).choose(logits, target)


def test_an_unattainable_limit_is_found_before_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, target = validation(60)
    monkeypatch.setattr(
        import_module("mpcs_torch.learning.recommended"),
        "choose_referring",
        lambda *_, **__: pytest.fail("chose first"),
    )
    with pytest.raises(UnattainableLimitError):
        recommended(LIGHTS, refer=True).choose(logits, target)


def test_one_cluster_guarantees_no_limit() -> None:
    logits, target = validation(500)
    with pytest.raises(UnattainableLimitError, match="by 0 clusters"):
        DecisionRule(LIGHTS, Limit(0.1)).fit(logits[PLAIN], target, clusters=["A"] * 500)
    with pytest.raises(UnattainableLimitError, match="by 0 clusters"):
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
        with pytest.raises(ValueError, match=f"preds must be finite logits .* but sample {row} has"):
            recommended(LIGHTS, refer=refer).choose({PLAIN: infinite}, target)
        with pytest.raises(ValueError, match=f"preds must be finite logits .* but sample {row} has"):
            DecisionRule(LIGHTS, () if refer is False else refer).fit(infinite, target)


@pytest.mark.parametrize("refer", [False, Limit(0.1)])
def test_clusters_and_groups_are_checked_whether_limits_read_them_or_not(refer: bool | Limit) -> None:
    logits, target = validation(500)
    recipe = recommended(LIGHTS, refer=refer)
    with pytest.raises(ValueError, match="groups must map columns to the names of rows, but got a list"):
        recipe.choose(logits, target, groups=["a"] * 500)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"groups\['site'\] must be one name for each of the 500 rows, but got 5"):
        recipe.choose(logits, target, groups={"site": ["a"] * 5})
    with pytest.raises(ValueError, match="clusters must have one dimension, but has more"):
        recipe.choose(logits, target, clusters=torch.zeros(500, 1))


def test_errors_name_the_argument() -> None:
    logits, target = validation(30)
    for wrong in (0.005, "dangerous <= 0.1", [0.1], None):
        with pytest.raises(ValueError, match="refer must be a bool, a Limit or several of them, but got"):
            recommended(LIGHTS, refer=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="limits must not combine a budget of referrals with other limits"):
        recommended(LIGHTS, refer=[Limit(0.1), Limit(0.2, "referrals")])
    with pytest.raises(ValueError, match=r"max_accuracy_loss must be from 0 to 1, but got 2\."):
        recommended(LIGHTS, max_accuracy_loss=2)
    assert not recommended(replace(LIGHTS, refer=0.3)).limits
    assert recommended(replace(LIGHTS, refer=0.3), refer=True).limits
    with pytest.raises(ValueError, match=r"logits must include those of the model 'plain', but got .*'margin 4'"):
        recommended(LIGHTS).choose({"margin 4": logits["margin 4"]}, target)
    with pytest.raises(ValueError, match="logits must have one shape, but got"):
        with_averages({PLAIN: logits[PLAIN], "margin 4": logits["margin 4"][1:]})
