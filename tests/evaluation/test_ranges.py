"""Statements of evaluations for costs that are known as ranges: against 10 000 draws of costs."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from mpcs_torch import ConcernRange, ConcernSpec, evaluate
from mpcs_torch.evaluation import evaluate_confusion
from mpcs_torch.evaluation.outcomes import OverCosts
from mpcs_torch.functional import least_concern_decision
from tests.cli.test_cli import run

DRAWS = 10_000
LOADERS = {
    "digits": datasets.load_digits,
    "wine": datasets.load_wine,
    "cancer": datasets.load_breast_cancer,
}
MODELS = {"bayes": GaussianNB, "linear": lambda: LogisticRegression(C=0.01)}


@cache
def predicted(data: str, model: str) -> tuple[Tensor, Tensor]:
    bunch = LOADERS[data]()
    train, test, labels, target = train_test_split(
        bunch.data, bunch.target, test_size=0.5, random_state=0
    )
    fitted = make_pipeline(StandardScaler(), MODELS[model]()).fit(train + 1e-3, labels)
    return torch.tensor(fitted.predict_proba(test + 1e-3)), torch.tensor(target)


def costs_of(classes: int, kind: str) -> ConcernRange:
    """Return a set of costs: ranges of weights, a factor and a referral, people, or people with ranges."""
    generator = torch.Generator().manual_seed(len(kind))
    lowest = (0.5 + torch.rand(classes, classes, generator=generator)).fill_diagonal_(0)
    highest = lowest * (1 + 4 * torch.rand(classes, classes, generator=generator))
    low, high = lowest.tolist(), highest.tolist()
    releases = [[i, (i + 1) % classes] for i in range(classes)]
    weights = ConcernRange(
        [ConcernSpec(classes, weights=low, refer=0.2)],
        [ConcernSpec(classes, weights=high, refer=0.6)],
    )
    if kind == "weights":
        return weights
    if kind == "coarse answers":
        given = ((low, 0.1, 0.2), (high, 0.3, 0.6))
        ends = [
            ConcernSpec(classes, weights=w, refer=r, answers=coarse(classes, a))
            for w, a, r in given
        ]
        other = ConcernSpec(
            classes, releases=releases, factor=0.1, refer=0.4, answers=coarse(classes, 0.2)
        )
        return ConcernRange.from_people(
            {"anna": ConcernRange(*([end] for end in ends)), "ben": other}
        )
    if kind == "factor":
        ends = [
            ConcernSpec(classes, releases=releases, factor=f, refer=r)
            for f, r in ((0.1, 0.05), (0.9, 0.3))
        ]
        return ConcernRange(*([end] for end in ends))
    people: dict[str, Any] = {
        "anna": ConcernSpec(classes, releases=releases, factor=0.1, refer=0.1),
        "ben": ConcernSpec(classes, weights=torch.tensor(high).T.tolist(), refer=0.4),
        "cleo": ConcernSpec(
            classes, releases=[pair[::-1] for pair in releases], factor=0.5, refer=0.05
        ),
    }
    return ConcernRange.from_people(
        people | ({"both": weights} if kind == "ranges of people" else {})
    )


def coarse(classes: int, price: float) -> dict[str, float]:
    return {"0 or 1": price} if classes > 2 else {}


KINDS = ["weights", "factor", "people", "ranges of people", "coarse answers"]


def drawn(costs: ConcernRange, draws: int = DRAWS) -> Tensor:
    """Draw costs (draws, C, K) of the set as its description says, not from its boxes."""
    generator = torch.Generator().manual_seed(1)

    def uniform(*shape: int) -> Tensor:
        where = torch.rand(shape, generator=generator, dtype=torch.float64)
        is_end = torch.rand(draws, *[1] * (len(shape) - 1), generator=generator) < 0.5
        return torch.where(is_end, where.round(), where)

    shares = uniform(draws, len(costs.low)) ** 3 + 1e-9
    shares = shares / shares.sum(1, keepdim=True)
    total = torch.zeros(draws, *costs.low[0].costs().shape, dtype=torch.float64)
    for person, (low, high) in enumerate(zip(costs.low, costs.high, strict=True)):
        one, other = low.costs(), high.costs()
        classes = len(one)
        at = torch.zeros(draws, *one.shape, dtype=torch.float64)
        if low.weights is None:
            at[:, :, :classes] = uniform(draws, 1, 1)
        else:
            at[:, :, :classes] = uniform(draws, classes, classes)
        at[:, :, classes:] = uniform(draws, 1, 1)
        total += shares[:, person, None, None] * (one + at * (other - one))
    for answer, is_member in enumerate(costs.middle.members(), start=len(costs.classes)):
        # A wrong answer costs as much as the worst of its classes.
        of_classes = total[:, :, : len(costs.classes)]
        worst = of_classes[..., is_member].amax(2)
        total[:, ~is_member, answer] = worst[:, ~is_member]
    return total


def as_counts(decisions: Tensor, target: Tensor, like: Tensor) -> Tensor:
    counts = torch.zeros(like.shape)
    for true, decision in zip(target.tolist(), decisions.tolist(), strict=True):
        counts[true, decision] += 1
    return counts.double() / len(target)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", LOADERS)
def test_statements_for_all_costs_hold_for_ten_thousand_draws(data: str, kind: str) -> None:
    probs = {model: predicted(data, model)[0] for model in MODELS}
    target = predicted(data, "bayes")[1]
    costs = costs_of(probs["bayes"].shape[1], kind)
    over = evaluate(probs, target, concern=costs).over_costs
    assert isinstance(over, OverCosts)
    draws, ranges, means = drawn(costs), over.ranges(), {}
    for model, counted in over.models.items():
        for way, counts in counted.items():
            means[f"{model}, {way}"] = (counts.double() / counts.sum() * draws).sum((1, 2))
        decisions = least_concern_decision(
            probs[model], concern=costs.middle, from_logits=False
        )
        decisions = torch.where(decisions < 0, draws.shape[2] - 1, decisions)
        assert torch.allclose(
            counted["least cost"].double() / len(target),
            as_counts(decisions, target, draws[0]),
        )
    for way in over.models["bayes"]:
        means[f"linear minus bayes, {way}"] = (
            means[f"linear, {way}"] - means[f"bayes, {way}"]
        )
    assert ranges.keys() == means.keys()
    for name, (middle, low, high) in ranges.items():
        assert low - 1e-9 <= means[name].min() <= means[name].max() <= high + 1e-9
        assert low <= middle <= high
        if kind == "factor":  # whose two ends are among the draws
            assert (means[name].min().item(), means[name].max().item()) == pytest.approx(
                (low, high), abs=1e-3
            )


def test_a_difference_has_a_range_and_the_cost_that_matters_most_is_named() -> None:
    # Errors on 100 rows of ill and 100 of healthy people: (misses, false alarms).
    def decided(misses: int, alarms: int) -> Tensor:
        return torch.tensor(
            [1] * misses + [0] * (100 - misses) + [0] * alarms + [1] * (100 - alarms)
        )

    target = torch.tensor([0] * 100 + [1] * 100)
    low, high = (
        ConcernSpec(["ill", "healthy"], weights=[[0, miss], [1, 0]], refer=5)
        for miss in (2, 20)
    )
    result = evaluate(
        {"A": decided(10, 1), "B": decided(5, 40)},
        target,
        concern=ConcernRange([low], [high]),
    )
    assert result.over_costs is not None
    # The differences are 5 x + 40 - (10 x + 1) for x of 11, 20 and 2.
    difference = result.over_costs.ranges()["B minus A, as decided"]
    assert difference == pytest.approx((-16 / 200, -61 / 200, 29 / 200))
    depends = (
        "The mean cost of A, as decided depends most on what taking ill for healthy costs "
        "(2 to 20): by 0.9 per row."
    )
    assert depends in str(result)


def test_a_range_without_width_gives_the_usual_result() -> None:
    probs, target = predicted("wine", "bayes")
    spec = costs_of(3, "factor").middle
    assert str(evaluate(probs, target, concern=ConcernRange([spec], [spec]))) == str(
        evaluate(probs, target, concern=spec)
    )
    costs = costs_of(3, "factor")
    values = evaluate(probs, target, concern=costs).first
    assert values.values == evaluate(probs, target, concern=costs.middle).first.values


def test_a_confusion_matrix_has_a_range_of_costs() -> None:
    low, high = (
        ConcernSpec(["ill", "healthy"], weights=[[0, miss], [1, 0]], refer=5)
        for miss in (2, 20)
    )
    counts = torch.tensor([[45, 5], [10, 40]])
    result = evaluate_confusion(
        counts, ["ill", "healthy"], concern=ConcernRange([low], [high])
    )
    assert result.over_costs is not None
    assert result.over_costs.ranges()["as decided"] == pytest.approx((0.65, 0.2, 1.1))


def test_the_command_line_takes_ranges_and_several_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(
        "ill,healthy,target\n0.9,0.1,ill\n0.2,0.8,healthy\n0.4,0.6,ill\n0.05,0.95,healthy\n"
    )
    start = "classes: [ill, healthy]\nweights: "
    Path("range.yaml").write_text(start + "[[0, 2 to 6], [1, 0]]\n")
    Path("ben.yaml").write_text(start + "[[0, 10], [1, 0]]\n")
    command = ["score", "rows.csv", "--concern", "range.yaml", "--json"]
    for words, highest in ((["--html", "r.html"], 1.5), (["--concern", "ben.yaml"], 2.5)):
        assert run(*command, *words) == 0
        means = json.loads(capsys.readouterr().out)["over_costs"]["mean_cost"]
        assert means["most probable class"]["high"] == highest
        assert means["most probable class"]["low"] == 0.5
    assert "mean cost by decisions" in Path("r.html").read_text()
