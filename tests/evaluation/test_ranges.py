"""Statements of evaluations for costs that are known as ranges: against 10 000 draws of costs."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from mpcs_torch import ConcernRange, ConcernSpec, evaluate
from mpcs_torch.evaluation import evaluate_confusion
from mpcs_torch.evaluation.outcomes import OverCosts
from mpcs_torch.functional import least_concern_decision
from tests.cli.shell import run
from tests.evaluation.draws import rows_of

DRAWS, CLASSES, ROWS = 10_000, 4, 200
GENERATOR = torch.Generator().manual_seed(0)
TARGET, *SCORES = rows_of(ROWS, [1.0] * CLASSES)
PROBS = dict(zip(("one", "two"), SCORES, strict=True))
LOWEST = (0.5 + torch.rand(CLASSES, CLASSES, generator=GENERATOR)).fill_diagonal_(0)
HIGHEST = LOWEST * (1 + 4 * torch.rand(CLASSES, CLASSES, generator=GENERATOR))
LOW, HIGH, TURNED = LOWEST.tolist(), HIGHEST.tolist(), HIGHEST.T.tolist()
RELEASES = [[0, 1], [1, 2], [2, 3], [3, 0]]


def between(low: dict[str, Any], high: dict[str, Any]) -> ConcernRange:
    return ConcernRange([ConcernSpec(CLASSES, **low)], [ConcernSpec(CLASSES, **high)])


RANGES = {
    "weights": between({"weights": LOW, "refer": 0.2}, {"weights": HIGH, "refer": 0.6}),
    "factor": between(
        {"releases": RELEASES, "factor": 0.1, "refer": 0.05},
        {"releases": RELEASES, "factor": 0.9, "refer": 0.3},
    ),
    "people": ConcernRange.from_people(
        {
            "anna": ConcernSpec(CLASSES, releases=RELEASES, factor=0.1, refer=0.1),
            "ben": ConcernSpec(CLASSES, weights=TURNED, refer=0.4),
            "cleo": ConcernSpec(CLASSES, releases=[[1, 0]], factor=0.5, refer=0.05),
        }
    ),
    "ranges of people and coarse answers": ConcernRange.from_people(
        {
            "anna": between(
                {"weights": LOW, "refer": 0.2, "answers": {"0 or 1": 0.1}},
                {"weights": HIGH, "refer": 0.6, "answers": {"0 or 1": 0.3}},
            ),
            "ben": ConcernSpec(
                CLASSES, releases=RELEASES, factor=0.1, refer=0.4, answers={"0 or 1": 0.2}
            ),
        }
    ),
}


def drawn(costs: ConcernRange) -> Tensor:
    """Draw costs (draws, C, K) of the set as its description says, not from its boxes."""
    generator = torch.Generator().manual_seed(1)

    def uniform(*shape: int) -> Tensor:
        where = torch.rand(DRAWS, *shape, generator=generator, dtype=torch.float64)
        is_end = torch.rand(DRAWS, *[1] * len(shape), generator=generator) < 0.5
        return torch.where(is_end, where.round(), where)

    shares = uniform(len(costs.low)) ** 3 + 1e-9
    shares = shares / shares.sum(1, keepdim=True)
    people = []
    for low, high in zip(costs.low, costs.high, strict=True):
        one, other = low.costs(), high.costs()
        # A factor has one value at a time, a weight its own.
        errors = uniform(1, 1) if low.weights is None else uniform(CLASSES, CLASSES)
        errors = errors.expand(-1, CLASSES, CLASSES)
        prices = uniform(1, 1).expand(-1, CLASSES, one.shape[1] - CLASSES)
        people.append(one + torch.cat([errors, prices], 2) * (other - one))
    total = (shares[:, :, None, None] * torch.stack(people, 1)).sum(1)
    for answer, is_member in enumerate(costs.middle.members(), start=CLASSES):
        # A wrong answer costs as much as the worst of its classes.
        worst = total[:, :, :CLASSES][..., is_member].amax(2)
        total[:, ~is_member, answer] = worst[:, ~is_member]
    return total


def as_counts(decisions: Tensor, like: Tensor) -> Tensor:
    counts = torch.zeros_like(like)
    ones = torch.ones(ROWS, dtype=like.dtype)
    return counts.index_put_((TARGET, decisions), ones, accumulate=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", RANGES)
def test_statements_for_all_costs_hold_for_ten_thousand_draws(kind: str) -> None:
    costs = RANGES[kind]
    over = evaluate(PROBS, TARGET, concern=costs).over_costs
    assert isinstance(over, OverCosts)
    draws, ranges, means = drawn(costs), over.ranges(), {}
    for model, counted in over.models.items():
        for way, counts in counted.items():
            means[f"{model}, {way}"] = (counts.double() / ROWS * draws).sum((1, 2))
        decisions = least_concern_decision(
            PROBS[model], concern=costs.middle, from_logits=False
        )
        decisions = torch.where(decisions < 0, draws.shape[2] - 1, decisions)
        expected = as_counts(decisions, draws[0])
        assert counted["least cost"].double().equal(expected)
    for way in over.models["one"]:
        means[f"two minus one, {way}"] = means[f"two, {way}"] - means[f"one, {way}"]
    assert ranges.keys() == means.keys()
    for name, (middle, low, high) in ranges.items():
        assert low - 1e-9 <= means[name].min() <= means[name].max() <= high + 1e-9
        assert low <= middle <= high
        if kind == "factor":  # whose two ends are among the draws
            assert (means[name].min().item(), means[name].max().item()) == pytest.approx(
                (low, high), abs=1e-3
            )


def test_a_difference_has_a_range_and_the_cost_that_matters_most_is_named() -> None:
    def decided(misses: int, alarms: int) -> Tensor:
        """Return decisions on 100 ill and 100 healthy people."""
        place = torch.arange(100)
        return torch.cat([place < misses, place >= alarms]).long()

    low, high = [
        ConcernSpec(["ill", "healthy"], weights=[[0, miss], [1, 0]], refer=5)
        for miss in (2, 20)
    ]
    costs, target = ConcernRange([low], [high]), torch.arange(200) // 100
    result = evaluate({"A": decided(10, 1), "B": decided(5, 40)}, target, concern=costs)
    assert result.over_costs is not None
    # The differences are 5 x + 40 - (10 x + 1) for x of 11, 20 and 2.
    difference = result.over_costs.ranges()["B minus A, as decided"]
    assert difference == pytest.approx((-16 / 200, -61 / 200, 29 / 200))
    most = "what taking ill for healthy costs (2 to 20): by 0.9 per row."
    assert f"The mean cost of A, as decided depends most on {most}" in str(result)
    counts = torch.tensor([[45, 5], [10, 40]])
    counted = evaluate_confusion(counts, ["ill", "healthy"], concern=costs)
    assert counted.over_costs is not None
    assert counted.over_costs.ranges()["as decided"] == pytest.approx((0.65, 0.2, 1.1))


def test_a_range_without_width_gives_the_usual_result() -> None:
    probs, middle = PROBS["one"], RANGES["factor"].middle
    plain = evaluate(probs, TARGET, concern=middle)
    without = evaluate(probs, TARGET, concern=ConcernRange([middle], [middle]))
    assert str(without) == str(plain)
    values = evaluate(probs, TARGET, concern=RANGES["factor"]).first.values
    assert values == plain.first.values


@pytest.mark.parametrize(
    ("words", "highest"), [(["--html", "r.html"], 1.5), (["--concern", "ben.yaml"], 2.5)]
)
def test_the_command_line_takes_ranges_and_several_people(
    words: list[str],
    highest: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "0.9,0.1,ill\n0.2,0.8,healthy\n0.4,0.6,ill\n0.05,0.95,healthy\n"
    Path("rows.csv").write_text(f"ill,healthy,target\n{rows}")
    start = "classes: [ill, healthy]\nweights: "
    Path("range.yaml").write_text(f"{start}[[0, 2 to 6], [1, 0]]\n")
    Path("ben.yaml").write_text(f"{start}[[0, 10], [1, 0]]\n")
    assert run("score", "rows.csv", "--concern", "range.yaml", "--json", *words) == 0
    means = json.loads(capsys.readouterr().out)["over_costs"]["mean_cost"]
    of_classes = means["most probable class"]
    assert (of_classes["low"], of_classes["high"]) == (0.5, highest)
    page = Path("r.html")
    assert page.exists() == ("--html" in words)
    if page.exists():
        assert "mean cost by decisions" in page.read_text()
