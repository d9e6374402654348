"""Costs of decisions that differ from row to row: values by hand, laws, intervals and files."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from scipy.stats import ttest_rel
from torch import Tensor

from mpcs_torch import ConcernSpec, Evaluation, evaluate
from mpcs_torch.functional import bounded_mean_interval
from tests.cli.shell import run
from tests.evaluation.draws import rows_of
from tests.refused import Refused

GENERATOR = torch.Generator().manual_seed(0)
TARGET, A, B = rows_of(300, [0.5, 0.3, 0.2], skills=(0.7, 1.7))
COSTS = (
    10 * torch.rand(300, 3, generator=GENERATOR).double() * (1 - 0.9 * torch.eye(3)[TARGET])
    - 0.5
)
SITES = ["north" if row % 3 else "south" for row in range(300)]
NAMES = ["mean_cost", "regret"]


def measured(preds: Any = A, **arguments: Any) -> Any:
    return evaluate(preds, **{"target": TARGET, "costs": COSTS, **arguments})


def paid(probs: Tensor) -> Tensor:
    return COSTS.gather(1, probs.argmax(1, keepdim=True)).squeeze(1)


def test_values_are_means_of_what_decisions_cost() -> None:
    weights = torch.rand(300, generator=GENERATOR).double()
    by_class = torch.rand(300, 3, 3, generator=GENERATOR).double()
    found, decided = measured(groups={"site": SITES}), measured(A.argmax(1), class_names=3)
    regret = paid(A) - COSTS.min(1).values
    of_pairs = by_class[torch.arange(300), TARGET, A.argmax(1)]
    for value, costs in (
        (found.value("mean_cost"), paid(A)),
        (found.value("regret"), regret),
        (found.value("mean_cost", group=("site", "south")), paid(A)[::3]),
        (measured(weights=weights).value("mean_cost"), paid(A) * weights / weights.mean()),
        (decided.value("regret"), regret),
        (measured(costs=by_class).value("mean_cost"), of_pairs),
        (measured(target=torch.eye(3)[TARGET]).value("mean_cost"), paid(A)),
    ):
        assert value == pytest.approx(costs.mean().item())
    assert "accuracy" in found.first.values
    assert decided.interval("regret") == pytest.approx(found.interval("regret"))


def test_intervals_are_gaffkes_with_the_dearest_decision_of_any_row() -> None:
    found, least = measured(), COSTS.min(1).values
    counts = torch.cat([torch.ones(300), torch.zeros(2)])
    for name, of_rows, possible in (
        ("mean_cost", paid(A), COSTS),
        ("regret", paid(A) - least, COSTS - least.unsqueeze(1)),
    ):
        values = torch.cat([of_rows, torch.stack([possible.min(), possible.max()])])
        expected = bounded_mean_interval(values, counts)
        assert found.interval(name) == pytest.approx(expected, rel=1e-3)


def test_differences_are_near_the_paired_t_test_and_those_of_regret_are_not_repeated() -> (
    None
):
    models = {"A": A, "B": B}
    [row] = [
        row.paired for row in measured(models).comparisons if row.measure == "mean cost"
    ]
    test = ttest_rel(paid(B), paid(A))
    low, high = test.confidence_interval()
    assert (row.low, row.high) == pytest.approx((low, high), abs=0.05 * (high - low))
    assert row.p_value == pytest.approx(test.pvalue, rel=0.4)
    [alone] = measured(models, metrics=["regret"]).comparisons
    assert alone.measure == "regret"
    assert alone.paired[2:] == pytest.approx(row[2:], rel=1e-3)


def test_rare_dear_decisions_have_the_bound() -> None:
    """Of 3 rows, all in favour of B, that cost most, nothing is concluded."""
    costs = torch.ones(300, 3).double()
    costs[:3] = torch.tensor([100.0, 1, 1])
    first, second = torch.zeros(300).long(), torch.ones(300).long()
    found = measured(
        {"A": first, "B": second}, costs=costs, class_names=3, metrics=["mean_cost"]
    )
    low, high = found.comparisons[0].paired[3:5]
    assert low < -0.99 < 0 < high
    assert found.interval("mean_cost", "B")[1] > 2


def test_costs_of_pairs_of_classes_are_those_of_the_concern() -> None:
    concern = ConcernSpec(3, weights=[[0, 1, 4], [2, 0, 1], [9, 3, 0]])
    costs = concern.mpcs_weights().fill_diagonal_(0)[TARGET]
    metrics = ["mean_cost", "mean_concern"]
    found = measured({"A": A, "B": B}, concern=concern, costs=costs, metrics=metrics)
    (value, ends, _), (expected, interval, _) = [found.find(name, "A") for name in metrics]
    assert value == pytest.approx(expected)
    assert ends == pytest.approx(interval)
    one, other = found.comparisons
    assert one.paired == pytest.approx(other.paired)


def test_costs_are_left_out_where_rows_are_referred() -> None:
    found = measured(preds=REFERRED, class_names=3)
    assert found.value("coverage") == 0
    assert not {*NAMES} & {*found.first.values}
    assert "the costs of rows have none of a referral" in "".join(found.warnings())


REFERRED = torch.full((300,), -1)


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"costs": COSTS[:, :2]}, Refused("shape", "costs")),
        (
            {"costs": COSTS / 0},
            Refused("finite", "costs", float("inf"), sample=0, column=0),
        ),
        ({"metrics": ["accuracy"]}, Refused("costs_of_no_metric", "")),
        ({"costs": None, "metrics": ["regret"]}, Refused("no_costs", "", metrics="regret")),
        (
            {"preds": REFERRED, "class_names": 3, "metrics": NAMES},
            Refused("has_referrals", "", metrics="mean_cost, regret"),
        ),
    ],
)
def test_what_does_not_fit_is_refused(arguments: dict[str, Any], refusal: Refused) -> None:
    with refusal:
        measured(**{"preds": A, **arguments})
    with Refused("given_for_every_batch", "costs"):
        Evaluation(3).update(A, TARGET, costs=COSTS)


def test_a_column_may_hold_lists_of_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pd.DataFrame(A.numpy(), columns=list("abc"))
    rows = rows.assign(label=["abc"[label] for label in TARGET], costs=COSTS.tolist())
    path = tmp_path / "p.jsonl"
    pd.concat([rows.iloc[[0]].assign(label=None), rows]).to_json(
        path, orient="records", lines=True, double_precision=15
    )
    words = "--cost-columns costs --metrics regret --missing drop --json"
    assert run("score", path, *words.split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["read"][0].endswith("costs of deciding a, b, c: lists costs")
    assert found["metrics"]["regret"] == pytest.approx(measured().value("regret"))


NUMBERED = "label,decision,amount,look\n0,0,100,10\n1,1,300,10\n1,0,500,10\n0,0,,10\n"
NAMED = "label,decision,amount,look\nok,ok,100,10\nfraud,fraud,300,10\nfraud,ok,500,10\nok,ok,,10\n"
ONE_CLASS = "label,prob_ok,amount,look\nok,0.9,100,10\nfraud,0.2,300,10\nfraud,0.7,500,10\nok,0.7,,10\n"


@pytest.mark.parametrize("rows", [NUMBERED, NAMED, ONE_CLASS])
def test_costs_are_refused_if_only_labels_name_the_classes(
    rows: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the order of the alphabet, fraud and ok, the costs of one class would be those of the other."""
    path = tmp_path / "p.csv"
    path.write_text(rows)
    words = "--cost-columns amount,look --costs-if-wrong --metrics mean_cost --missing drop --json"
    options: list[object] = ["score", path, *words.split()]
    if rows != NUMBERED:  # numbers have an order
        assert run(*options) == 2
        message = " ".join(capsys.readouterr().err.split())
        told = "--classes or --concern names fraud, ok in the order of amount, look"
        assert told in message
        options += ["--classes", "ok,fraud"]
    assert run(*options) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["metrics"]["mean_cost"] == pytest.approx(500 / 3)
    assert any(note.startswith("1 row without a label") for note in found["notes"])


def test_large_costs_are_shown_without_exponents() -> None:
    models, sites = {"A": A, "B": B}, {"site": SITES}
    found = measured(models, costs=1e6 * COSTS, groups=sites, metrics=NAMES)
    shown = str(found)
    assert "mean cost than A" in shown
    assert "e+" not in shown
    cost, (low, high), _ = found.find("mean_cost", "A")
    for number in (cost, low, high):
        assert f"{number:.0f}"[:3] in shown
