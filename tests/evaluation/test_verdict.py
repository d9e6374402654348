"""The cheapest over a grid of costs: against plain Python, for samples of rows, clusters, and by chance alone."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from mpcs_torch import ConcernSpec
from mpcs_torch.evaluation import rows as held
from mpcs_torch.evaluation import verdict
from mpcs_torch.evaluation.rows import KeptRows, Rows
from mpcs_torch.evaluation.verdict import POINTS, WAYS, verdict_of
from mpcs_torch.functional import least_concern_decision
from tests.cli.test_cli import run
from tests.report.page import Page

SPEC = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"], ["yellow", "red"]], factor=0.3, refer=0.1)


def rows_of(seed: int, rows: int = 60, skill: float = 2.0) -> Rows:
    generator = torch.Generator().manual_seed(seed)
    target = torch.arange(rows) % 3
    logits = torch.randn(rows, 3, generator=generator, dtype=torch.float64) + skill * torch.eye(3)[target]
    return Rows(logits.softmax(1), target, torch.arange(rows))


def cost_of(decisions: Tensor, target: Tensor, released: float, price: float) -> float:
    """Add up the costs of decisions for the concern above with other costs."""
    total = 0.0
    for decision, true in zip(decisions.tolist(), target.tolist(), strict=True):
        if decision == -1:
            total += price
        elif decision != true:
            total += released if {decision, true} == {0, 1} else 1.0
    return total


def test_the_cheapest_is_that_of_plain_python() -> None:
    models = {"A": rows_of(0), "B": rows_of(1)}
    found, one = verdict_of(models, SPEC), verdict_of({"A": models["A"]}, SPEC)
    assert found is not None
    assert one is not None
    assert found.now == (0.3, 0.1)
    assert one.names == WAYS
    for y in range(0, POINTS, 4):
        for x in range(0, POINTS, 4):
            released, price = found.released[x].item(), found.prices[y].item()
            spec = ConcernSpec(SPEC.classes, releases=SPEC.releases, factor=min(released, 1.0), refer=price)
            by_model = [least_concern_decision(each.probs, concern=spec, from_logits=False) for each in models.values()]
            costs = [cost_of(each, models["A"].target, released, price) for each in by_model]
            assert costs[found.cheapest[y, x]] == pytest.approx(min(costs))
            free = ConcernSpec(SPEC.classes, releases=SPEC.releases, factor=min(released, 1.0))
            scores, target = models["A"].probs, models["A"].target
            without = least_concern_decision(scores, concern=free, from_logits=False)
            ways = [cost_of(each, target, released, price) for each in (scores.argmax(1), without, by_model[0])]
            assert ways[one.cheapest[y, x]] == pytest.approx(min(ways))


def test_weights_and_coarse_answers_keep_their_ratios() -> None:
    spec = ConcernSpec(
        ["a", "b", "c"],
        weights=[[0, 2, 20], [4, 0, 10], [2, 2, 0]],
        dangerous=10,
        refer=[2, 4, 2],
        answers={"a or b": 1},
    )
    found = verdict_of({"A": rows_of(0), "B": rows_of(1)}, spec)
    assert found is not None
    assert found.now == (0.2, 0.2)
    assert found.against == "dangerous"
    costs = verdict._with_answers(spec, spec.matrix().fill_diagonal_(0) / 20, 20, 0.2)
    assert torch.allclose(costs, spec.costs() / 20)
    dearest = verdict_of({"A": rows_of(0)}, ConcernSpec(["a", "b", "c"], weights=[[0, 1, 5], [1, 0, 1], [2, 1, 0]]))
    assert dearest is not None
    assert (dearest.against, dearest.now) == ("dearest", (0.4, None))
    equal = verdict_of({"A": rows_of(0)}, ConcernSpec(3))
    assert equal is not None
    assert equal.now == (None, None)


def test_given_decisions_of_one_model_leave_nothing_to_compare() -> None:
    target = torch.arange(60) % 3
    wrong = Rows(torch.where(target == 2, -1, 0).unsqueeze(1), target, torch.arange(60))
    assert verdict_of({"A": wrong}, SPEC) is None
    right = wrong._replace(probs=target.unsqueeze(1))
    found = verdict_of({"A": wrong, "B": right}, SPEC)
    assert found is not None
    assert (found.cheapest == 1).all()
    assert verdict_of({"A": wrong, "B": right._replace(ids=torch.arange(60) + 1)}, SPEC) is None


@pytest.mark.parametrize(
    ("rate", "cost", "other_rate", "other_cost"), [(0.003, 1, 0.003, 1), (0.05, 1, 0.05, 1), (0.05, 1, 0.001, 50)]
)
def test_models_that_cost_the_same_are_shown_to_differ_in_few_samples(
    rate: float, cost: float, other_rate: float, other_cost: float
) -> None:
    generator = torch.Generator().manual_seed(0)
    shown = 0
    for _ in range(200):
        drawn = torch.rand(2, 1000, generator=generator, dtype=torch.float64)
        costs = torch.stack([(drawn[0] < rate) * cost, (drawn[1] < other_rate) * other_cost]).double()
        shown += verdict._least(costs, None, max(cost, other_cost))[1]
    assert shown <= 16  # 5 % of 200, and chance


def test_of_three_models_the_best_must_be_shown_against_each_other_one() -> None:
    generator = torch.Generator().manual_seed(0)
    best = torch.rand(400, generator=generator, dtype=torch.float64) * 0.2
    noise = torch.randn(400, generator=generator, dtype=torch.float64).clamp(-3, 3)
    slightly, noisy = best + 0.08, best + noise - noise.mean() + 0.1
    assert verdict._least(torch.stack([best, slightly]), None, 4.0)[1]
    assert not verdict._least(torch.stack([best, noisy]), None, 4.0)[1]
    assert verdict._least(torch.stack([best, slightly, noisy]), None, 4.0) == (0, False)


def test_rows_of_a_cluster_count_once() -> None:
    costs = torch.stack([torch.zeros(200), torch.arange(200) < 40]).double()
    assert verdict._least(costs, None, 1.0) == (0, True)
    assert verdict._least(costs, torch.arange(200) // 40, 1.0) == (0, False)


def test_equal_costs_go_to_the_simpler_way_and_are_not_shown() -> None:
    costs = torch.tensor([[0.1] * 3, [0.3, 0.0, 0.0], [0.1] * 3], dtype=torch.float64)
    assert verdict._least(costs[[0, 2]], None, 1.0) == (0, False)
    assert verdict._least(costs, None, 1.0) == (0, False)


def test_a_sample_of_many_rows_is_the_same_in_all_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "MOST_ROWS", 300)
    rows = rows_of(0, 2000)
    kept, other = KeptRows(), KeptRows()
    for start in range(0, 2000, 170):
        kept.add(rows.at(slice(start, start + 170)))
    other.add(rows.at(torch.arange(2000).flip(0)))
    assert kept.bits == other.bits > 0
    found, same = kept.rows(kept.bits), other.rows(kept.bits)
    assert found is not None
    assert same is not None
    assert 100 < len(found.ids) <= 300
    assert all(one.equal(another) for one, another in zip(found[:3], same[:3], strict=True))
    assert found.probs.equal(rows.probs[found.ids])
    assert abs((found.target == 0).double().mean().item() - 1 / 3) < 0.1


def test_reports_draw_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, seed in (("a", 0), ("b", 1)):
        rows = rows_of(seed, 900, 2.0 + seed)
        lines = [
            ",".join(map(str, [*row, SPEC.classes[y]])) for row, y in zip(rows.probs.tolist(), rows.target, strict=True)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(["red,yellow,green,target", *lines]))
    page = tmp_path / "report.html"
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for given, told in (
        (files, "The model that is shown to have"),
        (files[:1], "The way of deciding that is shown to have"),
    ):
        assert run("score", *given, "--concern", "traffic-lights", "--html", page, "--overwrite") == 0
        assert any(alt.startswith(told) for alt in Page(page).alts)
    assert run("score", files[0], "--html", page, "--overwrite") == 0
    assert not any("over a grid of costs" in alt for alt in Page(page).alts)
    capsys.readouterr()
