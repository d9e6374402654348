"""The decision rule: what it decides, what it guarantees, and that it survives files and torch.export."""

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mpcs_torch import ConcernSpec
from mpcs_torch.calibration import CalibrationWarning, TemperatureScaling, VectorScaling
from mpcs_torch.errors import InvalidValueError, Rule
from mpcs_torch.evaluation import EvaluationWarning
from mpcs_torch.functional import ProbabilitiesWarning, least_concern_decision
from mpcs_torch.io.artifacts import save_artifact, sealed
from mpcs_torch.learning import (
    DecisionRule,
    Limit,
    UnattainableLimitError,
    UnfittedRuleWarning,
)
from mpcs_torch.learning.decision_rule import KIND
from tests.refused import Refused, sentence

LIGHTS = ConcernSpec(
    ["red", "yellow", "green"], releases=[["red", "yellow"], ["yellow", "red"]], factor=0.5
)


def world(samples: int, seed: int, overconfident: float = 2.0) -> tuple[Tensor, Tensor]:
    """Draw logits whose best temperature is `overconfident`, and labels."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(samples, 3, generator=generator)
    target = logits.softmax(dim=1).multinomial(1, generator=generator).squeeze(1)
    return overconfident * logits, target


FIT = world(3000, 0)
NEW = world(20_000, 1)
COSTS = ConcernSpec(3, weights=[[0, 1, 9], [1, 0, 1], [9, 1, 0]])
RULES: dict[str, dict[str, Any]] = {
    "without referral": {"concern": LIGHTS},
    "not calibrated": {"concern": LIGHTS, "calibration": None},
    "vector": {"concern": LIGHTS, "calibration": "vector"},
    "priors": {"concern": LIGHTS, "priors": torch.tensor([0.2, 0.2, 0.6])},
    "Chow": {"concern": ConcernSpec(3, refer=0.1)},
    "dangerous": {"concern": LIGHTS, "limits": Limit(0.02, confidence=None)},
    "dangerous with confidence": {"concern": LIGHTS, "limits": Limit(0.02, confidence=0.9)},
    "cost": {
        "concern": ConcernSpec(3, weights=[[0, 1, 9], [1, 0, 1], [9, 1, 0]]),
        "limits": Limit(0.05, "cost", confidence=None),
    },
    "Chow and a limit": {
        "concern": ConcernSpec(3, refer=0.2),
        "limits": Limit(0.02, confidence=None),
    },
    "of a class": {"concern": LIGHTS, "limits": Limit(0.05, of="green")},
    "of decided": {"concern": LIGHTS, "limits": Limit(0.05, "any", of="decided")},
    "several": {
        "concern": LIGHTS,
        "limits": [
            Limit(0.03, "any"),
            Limit(0.05, of="red"),
            Limit(0.1, of="decided green"),
        ],
    },
}


@pytest.fixture(params=RULES)
def rule(request: pytest.FixtureRequest) -> DecisionRule:
    return DecisionRule(**RULES[request.param]).fit(*FIT)


def test_without_referral_it_is_the_calibrated_least_concern_decision() -> None:
    rule = DecisionRule(LIGHTS).fit(*FIT)
    calibrated = TemperatureScaling().fit(*FIT)(NEW[0])
    assert torch.equal(
        rule(NEW[0]), least_concern_decision(calibrated, concern=LIGHTS.costs())
    )
    assert isinstance(rule.calibration, TemperatureScaling)
    assert rule.calibration.temperature.item() == pytest.approx(2, abs=0.1)


def test_chows_rule_refers_where_that_costs_less() -> None:
    concern = ConcernSpec(3, refer=0.1)
    rule = DecisionRule(concern, calibration="vector").fit(*FIT)
    calibrated = VectorScaling(3).fit(FIT[0].log_softmax(dim=1), FIT[1])(
        NEW[0].log_softmax(dim=1)
    )
    assert torch.equal(
        rule(NEW[0]), least_concern_decision(calibrated, concern=concern.costs())
    )
    assert 0 < (rule(NEW[0]) == -1).double().mean() < 1


def test_priors_of_the_deployment_shift_decisions_to_the_frequent_class() -> None:
    plain = DecisionRule(LIGHTS).fit(*FIT)
    shifted = DecisionRule(LIGHTS, priors=torch.tensor([0.2, 0.2, 0.6])).fit(*FIT)
    frequencies = FIT[1].bincount(minlength=3) / len(FIT[1])
    calibrated = plain.calibration(NEW[0])
    expected = least_concern_decision(
        calibrated,
        concern=LIGHTS.costs(),
        training_priors=frequencies,
        priors=torch.tensor([0.2, 0.2, 0.6]),
    )
    assert torch.equal(shifted(NEW[0]), expected)
    assert (shifted(NEW[0]) == 2).sum() > (plain(NEW[0]) == 2).sum()


def test_only_samples_below_the_threshold_are_decided(rule: DecisionRule) -> None:
    assessed = rule.assess(NEW[0])
    decisions = rule(NEW[0])
    assert torch.equal(decisions == -1, assessed.reason != 0)
    assert torch.equal(decisions[decisions >= 0], assessed.decision[decisions >= 0])
    assert assessed.risk.isfinite().all(), "a reviewer needs the risk of what is referred"
    assert torch.equal(torch.cat([rule(part) for part in NEW[0].split(7000)]), decisions)


def rates(rule: DecisionRule, batch: tuple[Tensor, Tensor]) -> tuple[float, float]:
    """Count dangerous errors and costs per sample one by one."""
    dangerous, costs = rule.concern.dangerous_pairs(), rule.concern.mpcs_weights()
    counted, cost = 0, 0.0
    for decision, true in zip(rule(batch[0]).tolist(), batch[1].tolist(), strict=True):
        if decision not in (-1, true):
            counted += bool(dangerous[true, decision])
            cost += costs[true, decision].item()
    return counted / len(batch[1]), cost / len(batch[1])


@pytest.mark.slow
@pytest.mark.parametrize("confidence", [None, 0.9])
@pytest.mark.parametrize("calibration", [None, "temperature"])
def test_the_limit_holds_for_new_samples(
    confidence: float | None, calibration: Any
) -> None:
    limit, worlds = 0.03, 100
    found = []
    for seed in range(worlds):
        rule = DecisionRule(
            LIGHTS, Limit(limit, confidence=confidence), calibration=calibration
        )
        found.append(
            rates(rule.fit(*world(300, seed + 10)), (NEW[0][:4000], NEW[1][:4000]))[0]
        )
    if confidence is None:
        assert np.mean(found) <= limit + 2 * np.std(found) / worlds**0.5
    else:
        assert np.mean(np.array(found) > limit) <= 0.1 + 2 * (0.1 * 0.9 / worlds) ** 0.5
    assert np.mean(found) > limit / 3, (
        "a rule that refers everything would keep to any limit"
    )


def test_a_limit_on_costs_holds_in_expectation() -> None:
    limit, worlds = 0.05, 100
    concern = RULES["cost"]["concern"]
    found = [
        rates(
            DecisionRule(concern, Limit(limit, "cost", confidence=None)).fit(
                *world(1500, seed + 10)
            ),
            (NEW[0][:4000], NEW[1][:4000]),
        )[1]
        for seed in range(worlds)
    ]
    assert np.mean(found) <= limit + 2 * np.std(found) / worlds**0.5
    assert np.mean(found) > limit / 3


def test_logits_that_differ_by_a_constant_in_each_row_mean_the_same(
    rule: DecisionRule,
) -> None:
    moved = NEW[0][:2000] + 10 * torch.randn(
        2000, 1, generator=torch.Generator().manual_seed(0)
    )
    is_same = rule(moved) == rule(NEW[0][:2000])
    assert is_same.double().mean() > 0.999  # not 1, because of rounding at a threshold
    again = DecisionRule(
        rule.concern, rule.limits, calibration=rule.calibration_method, priors=rule.priors
    ).fit(FIT[0] - 5 * torch.arange(len(FIT[0]))[:, None].float() / len(FIT[0]), FIT[1])
    assert (again(NEW[0]) == rule(NEW[0])).double().mean() > 0.999


def test_decisions_do_not_depend_on_autocast(rule: DecisionRule) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(rule(NEW[0]), rule(NEW[0].clone()))
        inside = rule(NEW[0])
    assert torch.equal(inside, rule(NEW[0]))


@pytest.mark.parametrize("samples", [1, 2, 7, 500, 502])
def test_the_number_of_samples_that_a_message_asks_for_is_enough(samples: int) -> None:
    def fit(number: int) -> DecisionRule:
        logits = 9 * torch.eye(3)[torch.arange(number) % 3]
        target = torch.arange(number) % 3
        logits[0] = torch.tensor([0.0, 1.0, 0.0])  # so that a temperature exists
        return DecisionRule(LIGHTS, Limit(0.005)).fit(logits, target)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        warnings.simplefilter("ignore", ProbabilitiesWarning)
        with pytest.raises(UnattainableLimitError) as told:
            fit(samples)
        assert fit(told.value.needed).report is not None
        with pytest.raises(UnattainableLimitError):
            fit(told.value.needed - 2)


def test_the_report_measures_the_decisions_of_the_samples_of_the_thresholds() -> None:
    rule = DecisionRule(LIGHTS, Limit(0.02, confidence=None), calibration=None).fit(*FIT)
    report = rule.report
    dangerous, cost = rates(rule, FIT)
    assert report is not None
    assert (report.judged_by, report.dangerous_rate) == (
        len(FIT[1]),
        pytest.approx(dangerous),
    )
    assert report.cost == pytest.approx(cost)
    assert report.coverage == pytest.approx((rule(FIT[0]) >= 0).double().mean().item())
    with pytest.warns(
        EvaluationWarning,
        match=r"^E1: 100 % of the 3000 rows are also in the fit of the rule",
    ):
        rule.warn_of_fitted(FIT[0])


def test_samples_that_calibrate_do_not_judge() -> None:
    report = DecisionRule(LIGHTS, Limit(0.02, confidence=None)).fit(*FIT).report
    assert report is not None
    assert (report.calibrated_by, report.judged_by) == (600, 2400)
    plain = (
        DecisionRule(LIGHTS, Limit(0.02, confidence=None), calibration=None)
        .fit(*FIT)
        .report
    )
    assert plain is not None
    assert (plain.calibrated_by, plain.judged_by) == (0, 3000)


def test_the_report_shows_the_seed_of_a_draw_in_every_form(tmp_path: Path) -> None:
    limit = Limit(0.02, confidence=None)
    rule = DecisionRule(LIGHTS, limit, seed=7).fit(*FIT)
    rule.save(tmp_path / "rule.pt")
    for report in (rule.report, DecisionRule.load(tmp_path / "rule.pt").report):
        assert report is not None
        assert report.plain()["seed"] == 7
        assert ["seed that drew them", "7"] in report.table(LIGHTS).rows
    for undrawn in (
        DecisionRule(LIGHTS, limit, calibration=None, seed=7),
        DecisionRule(LIGHTS, seed=7),
    ):
        report = undrawn.fit(*FIT).report  # every sample calibrates, or judges
        assert report is not None
        assert report.seed is None
        assert "seed that drew them" not in dict(report.table(LIGHTS).rows)


def test_a_seed_draws_the_samples_that_calibrate(tmp_path: Path) -> None:
    def fitted(rule: DecisionRule) -> Tensor:
        calibration = rule.fit(*FIT).calibration
        assert isinstance(calibration, TemperatureScaling)
        return calibration.temperature.clone()

    rules = [
        DecisionRule(LIGHTS, Limit(0.02, confidence=None), seed=seed) for seed in (0, 1, 2)
    ]
    temperatures = [fitted(rule) for rule in rules]
    assert len({temperature.item() for temperature in temperatures}) == 3
    assert temperatures[0] == fitted(DecisionRule(LIGHTS, Limit(0.02, confidence=None))), (
        "0 is the default"
    )
    rules[1].save(tmp_path / "rule.pt")
    assert temperatures[1] == fitted(DecisionRule.load(tmp_path / "rule.pt")), (
        "a file keeps the seed"
    )


def test_a_failed_fit_leaves_the_rule_as_it_was() -> None:
    rule = DecisionRule(LIGHTS, Limit(0.005))
    with pytest.raises(ValueError, match="cannot be guaranteed"):
        rule.fit(*world(200, 0))
    assert set(rule(NEW[0]).tolist()) == {-1}
    before = rule.fit(*FIT)(NEW[0])
    with pytest.raises(ValueError, match="cannot be guaranteed"):
        rule.fit(*world(200, 0))
    assert torch.equal(rule(NEW[0]), before)
    assert 0 < (before == -1).double().mean() < 1


def test_samples_without_sound_logits_are_referred(rule: DecisionRule) -> None:
    bad = torch.tensor([[torch.nan, 9.0, 0.0], [torch.inf, 0.0, 0.0], [-torch.inf] * 3])
    assert rule(bad).tolist() == [-1, -1, -1]


def test_a_saved_rule_decides_as_before(rule: DecisionRule, tmp_path: Path) -> None:
    rule.save(tmp_path / "rule.pt")
    loaded = DecisionRule.load(tmp_path / "rule.pt")
    assert torch.equal(loaded(NEW[0]), rule(NEW[0]))
    assert (loaded.concern, loaded.report, loaded.limits) == (
        rule.concern,
        rule.report,
        rule.limits,
    )
    assert torch.load(tmp_path / "rule.pt", weights_only=True)["kind"] == KIND


@pytest.mark.slow
def test_an_exported_rule_decides_as_before(rule: DecisionRule, tmp_path: Path) -> None:
    exported = torch.export.export(
        rule.eval(),
        (NEW[0][:5],),
        dynamic_shapes=({0: torch.export.Dim("samples", min=1)},),
    )
    torch.export.save(exported, tmp_path / "rule.pt2")
    reloaded = torch.export.load(tmp_path / "rule.pt2").module()
    assert torch.equal(reloaded(NEW[0]), rule(NEW[0]))
    assert torch.equal(reloaded(NEW[0][:1]), rule(NEW[0][:1]))


def test_no_file_is_overwritten_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "rule.pt"
    path.write_text("mine")
    rule = DecisionRule(LIGHTS, calibration=None)
    with Refused("exists_already", raises=FileExistsError):
        rule.save(path)
    assert path.read_text() == "mine"
    rule.save(path, overwrite=True)
    assert DecisionRule.load(path).concern == LIGHTS


REPORT = {
    "calibrated_by": 0,
    "judged_by": 1,
    "coverage": 1.0,
    "dangerous_rate": 0.0,
    "cost": 0.0,
    "by_class": {},
}
DAMAGED: dict[str, Any] = {
    "settings": {},
    "limits": [],
    "state": {"costs": torch.zeros(1, 1), "losses": torch.zeros(0, 1, 1)},
    "report": None,
    "known_rows": torch.zeros(0),
}


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no rule")
    torch.save({"kind": KIND}, tmp_path / "unsealed")
    save_artifact({}, tmp_path / "other", kind="something else")
    save_artifact(
        {**DAMAGED, "concern": {"classes": ["a"]}}, tmp_path / "damaged", kind=KIND
    )
    (tmp_path / "sealed").write_bytes(sealed(b"no rule"))
    codes = {
        "text": "not_as_written",
        "unsealed": "not_as_written",
        "sealed": "unreadable_file",
        "other": "not_of_source",
        "damaged": "damaged",
    }
    for name, code in codes.items():
        with Refused(code, f"{tmp_path / name}:"):
            DecisionRule.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        DecisionRule.load(tmp_path / "absent")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"concern": {"classes": 10_000_000}}, sentence("row_for_each_class", "costs")),
        (
            {"state": {"costs": torch.zeros(1).expand(10**6, 10**6)}},
            sentence("contiguous", "tensors", shape=(10**6, 10**6)),
        ),
        ({"report": {"coverage": "\x1b[31m"}}, "has no 'by_class'"),
        (
            {"report": {**REPORT, "coverage": "\x1b[31m"}},
            sentence("number", "values of the report"),
        ),
        (
            {"report": {**REPORT, "by_class": {"red": [1, "2"]}}},
            sentence("number", "values of the report"),
        ),
        ({"report": {**REPORT, "seed": "1"}}, sentence("number", "values of the report")),
        ({"limits": [{"at_most": 0.5}]}, sentence("matrix_for_each_limit", "losses")),
        (
            {"settings": {"seed": 0, "other": 1}},
            r"DecisionRule.__init__\(\) got an unexpected keyword argument 'other'",
        ),
        ({"settings": None}, "'NoneType' object has no attribute"),
    ],
)
def test_a_changed_rule_is_refused(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    DecisionRule(LIGHTS, calibration=None).save(tmp_path / "rule")
    content = torch.load(tmp_path / "rule", weights_only=True)
    save_artifact({**content, **changed}, tmp_path / "rule", kind=KIND)
    with pytest.raises(InvalidValueError, match=f"the decision rule is damaged: {message}"):
        DecisionRule.load(tmp_path / "rule")


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"costs": torch.full((3, 4), 0.5)}, sentence("of_concern", "costs")),
        ({"dangerous": torch.zeros(3, 3)}, sentence("of_concern", "dangerous")),
        ({"thresholds": torch.tensor([1e9])}, sentence("threshold_range", "thresholds")),
        (
            {"thresholds": torch.tensor([float("nan")])},
            sentence("threshold_range", "thresholds"),
        ),
        (
            {"prior_ratio": torch.tensor([1.0, torch.inf, 1.0])},
            sentence("finite", "prior_ratio"),
        ),
    ],
)
def test_states_that_do_not_fit_the_concern_are_refused(
    tmp_path: Path, state: dict[str, Any], message: str
) -> None:
    """Whoever changes a rule can also write its hash anew."""
    concern = ConcernSpec(LIGHTS.classes, refer=0.3)
    DecisionRule(concern, Limit(0.1), calibration=None).save(tmp_path / "rule")
    content = torch.load(tmp_path / "rule", weights_only=True)
    content["state"] |= state
    save_artifact(content, tmp_path / "rule", kind=KIND)
    with pytest.raises(InvalidValueError, match=f"the decision rule is damaged: {message}"):
        DecisionRule.load(tmp_path / "rule")


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ({"calibration": "isotonic"}, Refused("one_of", "calibration", "isotonic")),
        (
            {"limits": "dangerous <= 0.1"},
            Refused("limit_type", "limits", "dangerous <= 0.1"),
        ),
        (
            {"limits": Limit(0.1, of="blue")},
            Refused(
                "limited_samples",
                "of",
                choices=["samples", "decided", "red", "yellow", "green"],
                decided="decided",
            ),
        ),
        (
            {"limits": Limit(0.1, (("red", "blue"),))},
            Refused("different_classes", "errors"),
        ),
        (
            {"limits": Limit(2.0, "cost", confidence=None)},
            Refused("below_highest_loss", "limits"),
        ),
        ({"priors": torch.ones(3)}, Refused("distribution", "priors", [1.0, 1.0, 1.0])),
        (
            {"priors": [0.2, 0.3, 0.5], "limits": Limit(0.1)},
            Refused("limits_of_one_class", "priors"),
        ),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], refusal: Refused) -> None:
    with refusal:
        DecisionRule(LIGHTS, **settings)


@pytest.mark.parametrize(
    ("settings", "preds", "target", "message"),
    [
        (
            {},
            torch.rand(2, 4),
            torch.tensor([0, 1]),
            sentence("class_dimension", "preds", classes=3),
        ),
        (
            {},
            torch.rand(3),
            torch.zeros(2).long(),
            sentence("shape", "preds", shape="(N, C) or (N, C, ...)"),
        ),
        ({}, torch.rand(0, 3), torch.zeros(0).long(), f"preds {Rule('not_empty')}"),
        (
            {},
            torch.full((1, 3), torch.nan),
            torch.tensor([0]),
            sentence("logits", "preds"),
        ),
        (
            {},
            torch.rand(1, 3),
            torch.tensor([3]),
            f"target {re.escape(str(Rule('class_indices', last=2)))}",
        ),
        (
            {"limits": Limit(0.005), "calibration": None},
            *world(400, 0),
            re.escape(
                "the limit 'dangerous <= 0.005 of samples with confidence 0.95' cannot be guaranteed by 400 samples, "
                "except by referring all of them. They can guarantee 0.00747. A limit of 0.005 needs 598 samples."
            ),
        ),
        (
            {"limits": Limit(0.005), "calibration": "temperature"},
            *world(500, 0),
            r"by 400 of 500 samples \(the rest calibrates the rule\), except by referring all of them. They can "
            "guarantee 0.00747. A limit of 0.005 needs 747 samples, with those that calibrate it.",
        ),
        (
            {"limits": Limit(0.1, by="site")},
            *world(400, 0),
            sentence("columns_of_limits", "groups", columns=["site"]),
        ),
        (
            {"priors": torch.ones(3) / 3},
            torch.rand(2, 3),
            torch.tensor([0, 1]),
            sentence("every_class_for_priors", "target", absent=["green"]),
        ),
    ],
)
def test_a_fit_refuses_bad_input(
    settings: dict[str, Any], preds: Tensor, target: Tensor, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        DecisionRule(LIGHTS, **{"calibration": None, **settings}).fit(preds, target)


def test_a_concern_that_is_no_spec_is_named() -> None:
    with Refused("spec", "concern", ["a", "b"]):
        DecisionRule(["a", "b"])  # type: ignore[arg-type]
    with Refused("spec", "concern"):
        DecisionRule(Path("lights.yaml"))  # type: ignore[arg-type]


def test_what_looks_wrong_is_warned_of(tmp_path: Path) -> None:
    rule = DecisionRule(LIGHTS)
    for use in (lambda: rule(NEW[0]), lambda: rule.save(tmp_path / "rule.pt")):
        with pytest.warns(
            UnfittedRuleWarning, match=r"the rule was not fitted: call fit first\."
        ):
            use()
    with pytest.warns(UnfittedRuleWarning):
        DecisionRule.load(tmp_path / "rule.pt")(NEW[0])
    with pytest.warns(
        ProbabilitiesWarning,
        match=r"the logits look like probabilities: pass from_logits=False",
    ):
        rule.fit(FIT[0].softmax(dim=1), FIT[1])
    DecisionRule(LIGHTS, calibration=None)(NEW[0])  # it has nothing to fit
    for wrong in (NEW[0][0], NEW[0][:, :2], NEW[0][None]):
        with Refused("shape", "preds", shape="(N, 3) or (N, 3, ...)"):
            rule(wrong)
