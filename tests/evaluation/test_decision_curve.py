"""Decision curves: the formula of dcurves at each threshold, beside acting on all and on none."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from mpcs_torch import ConcernRange, ConcernSpec, evaluate
from mpcs_torch.errors import Rule
from mpcs_torch.evaluation import decision_curves
from mpcs_torch.evaluation.decision_curve import (
    DecisionCurves,
    curve_scale,
    scale_at_risk,
)
from tests.cli.shell import run
from tests.refused import Refused

GENERATOR = torch.Generator().manual_seed(1)
NUMBER = 900
TARGET = (torch.rand(NUMBER, generator=GENERATOR) < 0.2).long()


def probabilities(skill: float) -> Tensor:
    malignant = torch.sigmoid(
        torch.randn(NUMBER, generator=GENERATOR) + skill * TARGET - 2.2
    ).double()
    return torch.stack([1 - malignant, malignant], dim=1)


SMALL, LARGE = probabilities(0.2), probabilities(2.0)
SKIN = ConcernSpec(["benign", "malignant"], weights=[[0, 1], [9, 0]])
SITES = np.array(["north", "south", "west"])[np.arange(NUMBER) % 3]


def curves_of(preds: Any, **arguments: Any) -> DecisionCurves:
    given = {"of": "malignant", "concern": SKIN, **arguments}
    return decision_curves(preds, TARGET, **given)


def by_formula(probs: Tensor, target: Tensor, threshold: float) -> tuple[float, float]:
    """The net benefit of the model, and of acting on all, by numpy alone, as dcurves computes them."""
    acts, is_true = probs[:, 1].numpy() >= threshold, target.numpy() == 1
    found, needless = (acts & is_true).sum(), (acts & ~is_true).sum()
    weight, number = threshold / (1 - threshold), len(is_true)
    return found / number - needless / number * weight, is_true.mean() - (
        ~is_true
    ).mean() * weight


def test_curves_are_those_of_the_formula() -> None:
    curves = curves_of({"small": SMALL, "large": LARGE})
    thresholds = curves.scale.thresholds
    assert curves.scale.implied == pytest.approx((0.1, 0.1))
    assert (thresholds[0], thresholds[6], thresholds[-1]) == pytest.approx(
        (1 / 37, 0.1, 4 / 13)
    )
    figure = curves.plot()
    [axes] = figure.axes
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    expected = [by_formula(LARGE, TARGET, threshold) for threshold in thresholds]
    assert drawn["large"] == pytest.approx([model for model, _ in expected])
    assert drawn["act on all"] == pytest.approx([everybody for _, everybody in expected])
    assert set(drawn) == {"small", "large", "act on all", "act on none"}
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "costs imply 10 %" in texts


def test_the_axis_fits_the_models_however_much_acting_on_all_costs() -> None:
    costly = ConcernSpec(["benign", "malignant"], weights=[[0, 4], [1, 0]])
    curves = curves_of(LARGE, concern=costly)
    [axes] = curves.plot().axes
    act_on_all = next(
        line.get_ydata() for line in axes.lines if line.get_label() == "act on all"
    )
    assert min(act_on_all) < -10
    [band] = axes.collections
    highest_end = band.get_paths()[0].vertices[:, 1].max()
    low, high = axes.get_ylim()
    assert high == pytest.approx(max(0.01, 1.05 * highest_end))
    assert low == pytest.approx(-0.2 * high)


def test_a_sentence_says_where_a_model_is_better_than_both() -> None:
    curves = curves_of({"small": SMALL, "large": LARGE}, groups={"site": SITES})
    of_small, of_large, small_by_site, large_by_site = curves.sentences()
    assert of_small.startswith(
        "At no threshold (of 2.7 to 31 %), small is better than acting on all samples, and than "
    )
    low, high = [
        float(end)
        for end in of_large.split(" %")[0].removeprefix("At thresholds of ").split(" to ")
    ]
    assert low < 6
    assert high == 31
    assert (
        small_by_site
        == "small, by site: north at no threshold; south at no threshold; west at no threshold."
    )
    assert large_by_site.startswith("large, by site: north at thresholds of ")


def test_where_it_is_better_is_where_both_intervals_are_above_0() -> None:
    curves = curves_of(LARGE)
    are_better = []
    for threshold in curves.scale.thresholds:
        settings = {
            "none": f"net_benefit[malignant@{threshold}]",
            "all": f"net_benefit[benign@{1 - threshold}]",
        }
        result = evaluate(LARGE, TARGET, concern=SKIN, metrics=settings)
        are_better.append(min(result.interval(name)[0] for name in settings) > 0)  # type: ignore[index]
    assert 0 < sum(are_better) < len(are_better)
    first = curves.scale.thresholds[are_better.index(True)]
    assert curves.sentences()[0].startswith(f"At thresholds of {100 * first:.2g} to 31 %")


def test_ranges_of_costs_imply_a_range_of_thresholds() -> None:
    frequent = ConcernSpec(["benign", "malignant"], weights=[[0, 1], [4, 0]])
    curves = curves_of(LARGE, concern=ConcernRange([frequent], [SKIN]))
    assert curves.scale.implied == pytest.approx((0.1, 0.2))
    texts = [text.get_text() for text in curves.plot().legends[0].get_texts()]
    assert "costs imply 10 to 20 %" in texts


def test_costs_of_several_pairs_of_classes_imply_a_range() -> None:
    stages = ConcernSpec(
        ["healthy", "mild", "severe"], weights=[[0, 1, 8], [10, 0, 2], [50, 20, 0]]
    )
    # The costs are those against mild, and against healthy.
    assert curve_scale("severe", stages).implied == pytest.approx((2 / 22, 8 / 58))
    assert curve_scale("severe", stages).others == (0, 1)
    double = ConcernSpec(stages.classes, weights=[[0, 2, 16], [20, 0, 4], [100, 40, 0]])
    assert curve_scale("severe", ConcernRange([stages], [double])).implied == pytest.approx(
        (2 / 42, 16 / 66)
    )


def test_people_who_disagree_imply_the_thresholds_between_the_outermost() -> None:
    lows, highs = [
        [
            ConcernSpec(["benign", "malignant"], weights=[[0, needless], [missed, 0]])
            for needless, missed in costs
        ]
        for costs in ([(1, 4), (2, 9)], [(2, 6), (3, 18)])
    ]
    # From 1 / (1 + 18), the lowest cost of acting beside the highest of missing, to 3 / (3 + 4).
    implied = curve_scale("malignant", ConcernRange(lows, highs)).implied
    assert implied == pytest.approx((1 / 19, 3 / 7))
    implied = curve_scale("malignant", ConcernRange(lows[::-1], highs[::-1])).implied
    assert implied == pytest.approx((1 / 19, 3 / 7))


@pytest.mark.parametrize(
    ("needless", "missed", "implied"),
    [(0, 9, [0.0, 0.5]), (9, 0, [0.5, 1.0]), (0, 0, [math.nan, math.nan])],
)
def test_costs_of_which_one_is_0_imply_no_threshold(
    needless: float, missed: float, implied: list[float]
) -> None:
    costs = [[0, needless, 1], [missed, 0, 1], [1, 1, 0]]
    concern = ConcernSpec(["benign", "malignant", "unclear"], weights=costs)
    # Against unclear, both costs are 1.
    with Refused("implied_thresholds", "concern", implied):
        curve_scale("malignant", concern)


def test_classes_at_risk_that_have_no_curve_are_passed_over_in_order() -> None:
    # Missing c is dangerous, and b for a; errors between a and d are dangerous both ways.
    costs = [[0, 1, 1, 9], [9, 0, 1, 1], [9, 9, 0, 1], [9, 1, 1, 0]]
    concern = ConcernSpec(list("abcd"), weights=costs, dangerous=9)
    scale = scale_at_risk(concern)
    assert (scale.of, scale.classes, scale.passed_over) == ("b", (1,), ("c",))
    assert scale_at_risk(ConcernRange([concern], [concern])) == scale
    grouped = replace(concern, class_groups={"last": ["c", "d"], "all but a": list("bcd")})
    scale = scale_at_risk(grouped)
    assert (scale.of, scale.classes, scale.others) == ("last", (2, 3), (0, 1))
    assert scale.passed_over == ("all but a", "b", "c")
    with Refused("says_which_is_dangerous", "a concern (--concern)"):
        scale_at_risk(None)
    with Refused("class_at_risk", "the concern"):
        scale_at_risk(ConcernSpec(list("ab"), weights=[[0, 9], [9, 0]]))


def test_the_class_at_risk_is_the_one_that_is_more_dangerous_to_miss() -> None:
    stages = ConcernSpec(
        ["healthy", "mild", "severe"],
        weights=[[0, 1, 8], [10, 0, 2], [50, 20, 0]],
        dangerous=20,
    )
    assert scale_at_risk(stages).of == "severe"
    assert scale_at_risk(stages).passed_over == ()
    of_group = scale_at_risk(replace(stages, class_groups={"ill": ["mild", "severe"]}))
    assert of_group.classes == (1, 2)
    sentence = DecisionCurves(of_group, {}, ()).sentences()[-1]
    assert sentence == (
        "The curves are for ill, which comes first in the concern; in Python, decision_curves(of=) draws those for "
        "severe."
    )


def test_clusters_and_weights_are_those_of_evaluate() -> None:
    clusters, weights = torch.arange(NUMBER) // 3, 1 + torch.arange(NUMBER) % 2
    curves = curves_of(LARGE, clusters=clusters, weights=weights)
    name_of = "net_benefit[malignant@0.1]"
    expected = evaluate(
        LARGE, TARGET, concern=SKIN, metrics=[name_of], clusters=clusters, weights=weights
    )
    scores = next(iter(curves.models.values()))
    name = list(scores.values)[2 * 6]  # of 13 thresholds, each with two metrics
    assert scores.values[name] == pytest.approx(expected.value(name_of))
    assert scores.intervals[name] == pytest.approx(expected.interval(name_of))


def test_what_has_no_curve_is_said() -> None:
    with Refused("one_of", "of", "severe", choices=["benign", "malignant"]):
        curves_of(LARGE, of="severe")
    free = ConcernSpec(["benign", "malignant"], weights=[[0, 0], [9, 0]])
    with Refused("implied_thresholds", "concern"):
        curves_of(LARGE, concern=free)


def test_names_take_thresholds() -> None:
    metrics = [
        "net_benefit[malignant]",
        "net_benefit[malignant@0.1]",
        "net_benefit[malignant@.25]",
    ]
    result = evaluate(LARGE, TARGET, concern=SKIN, metrics=metrics)
    for name, threshold in zip(metrics, (0.5, 0.1, 0.25), strict=True):
        assert result.value(name) == pytest.approx(by_formula(LARGE, TARGET, threshold)[0])
    assert result.require("net_benefit[malignant@0.1] > 0.05")[0].holds
    with Refused("misspelt_class", "net_benefit[malignan@0.1]", "malignan"):
        evaluate(LARGE, TARGET, concern=SKIN, metrics=["net_benefit[malignan@0.1]"])
    with Refused("misspelt_class", "recall[malignant@0.1]", "malignant@0.1"):
        evaluate(LARGE, TARGET, concern=SKIN, metrics=["recall[malignant@0.1]"])
    for threshold in ("0", "1", "10%", "1.5", "", "one"):
        name = f"net_benefit[malignant@{threshold}]"
        with Refused(
            "open_between", f"threshold of {name}", threshold, minimum=0, maximum=1
        ):
            evaluate(LARGE, TARGET, concern=SKIN, metrics=[name])


@pytest.mark.parametrize(
    ("concern", "reason"),
    [
        ("weights: [[0, 1], [9, 0]]\ndangerous: 5", None),
        ("weights: [[0, 9], [9, 0]]", Rule("class_at_risk", "the concern")),
        (
            "weights: [[0, 0], [9, 0]]\ndangerous: 5",
            Rule("implied_thresholds", "concern"),
        ),
        ("", Rule("says_which_is_dangerous", "a concern (--concern)")),
    ],
)
def test_a_report_has_the_sentences_of_the_function_or_says_why_there_is_no_curve(
    tmp_path: Path, concern: str, reason: Rule | None
) -> None:
    page, costs = tmp_path / "page.html", tmp_path / "costs.yaml"
    files = [tmp_path / "small.csv", tmp_path / "large.csv"]
    for file, probs in zip(files, (SMALL, LARGE), strict=True):
        rows = pd.DataFrame(probs.numpy(), columns=SKIN.classes)
        rows["label"] = [SKIN.classes[label] for label in TARGET]
        rows.assign(site=SITES).to_csv(file, index=False)
    costs.write_text(f"classes: [benign, malignant]\n{concern}\n")
    options = ["--concern", str(costs)] if concern else []
    assert run("score", *files, "--by", "site", *options, "--html", page) == 0
    text = re.sub("<[^>]+>", "", page.read_text().replace("\xa0", " "))
    assert ("What acting on malignant is worth" in text) == (reason is None)
    if reason is None:
        curves = curves_of({"small": SMALL, "large": LARGE}, groups={"site": SITES})
        assert [each for each in curves.sentences() if each not in text] == []
    else:
        assert f"There are no decision curves: {reason.argument} {reason}" in text
