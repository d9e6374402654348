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
IN_EXPECTATION = Limit(0.02, confidence=None)
RULES: dict[str, dict[str, Any]] = {
    "without referral": {"concern": LIGHTS},
    "not calibrated": {"concern": LIGHTS, "calibration": None},
    "vector": {"concern": LIGHTS, "calibration": "vector"},
    "priors": {"concern": LIGHTS, "priors": torch.tensor([0.2, 0.2, 0.6])},
    "Chow": {"concern": ConcernSpec(3, refer=0.1)},
    "dangerous": {"concern": LIGHTS, "limits": IN_EXPECTATION},
    "dangerous with confidence": {"concern": LIGHTS, "limits": Limit(0.02, confidence=0.9)},
    "cost": {"concern": COSTS, "limits": Limit(0.05, "cost", confidence=None)},
    "Chow and a limit": {"concern": ConcernSpec(3, refer=0.2), "limits": IN_EXPECTATION},
    "coarse answers": {
        "concern": ConcernSpec(
            LIGHTS.classes,
            releases=LIGHTS.releases,
            refer=0.4,
            answers={"red or yellow": 0.1, "yellow or green": 0.25},
        ),
        "limits": [Limit(0.05), Limit(0.1, "any", of="decided")],
    },
    "numbers of NumPy": {
        "concern": LIGHTS,
        "limits": Limit(np.float64(0.05), "any", confidence=np.float32(0.9)),  # type: ignore[arg-type]
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


def test_the_temperature_is_that_of_the_logits() -> None:
    calibration = DecisionRule(LIGHTS).fit(*FIT).calibration
    assert isinstance(calibration, TemperatureScaling)
    assert calibration.temperature.item() == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize(
    "name", ["without referral", "not calibrated", "vector", "priors", "Chow"]
)
def test_without_limits_the_calibrated_decision_of_least_concern_is_made(name: str) -> None:
    rule = DecisionRule(**RULES[name]).fit(*FIT)
    priors: dict[str, Tensor] = {}
    if rule.priors is not None:
        frequencies = FIT[1].bincount(minlength=3) / len(FIT[1])
        priors = {"training_priors": frequencies, "priors": rule.priors}
    calibrated = rule.calibration(NEW[0].log_softmax(dim=1))
    expected = least_concern_decision(calibrated, concern=rule.concern.costs(), **priors)
    assert torch.equal(rule(NEW[0]), expected)
    assert (-1 in expected) == (name == "Chow")
    if rule.calibration_method == "vector":
        alone = VectorScaling(3).fit(FIT[0].log_softmax(dim=1), FIT[1])
        assert torch.equal(alone(NEW[0].log_softmax(dim=1)), calibrated)


def test_only_samples_below_the_threshold_are_decided(rule: DecisionRule) -> None:
    assessed = rule.assess(NEW[0])
    decisions = rule(NEW[0])
    assert torch.equal(decisions, assessed.decision)
    assert torch.equal(decisions != assessed.best, assessed.reason != 0)
    is_class = (decisions >= 0) & (decisions < 3)
    assert torch.equal(decisions[is_class], assessed.best[is_class])
    assert is_class.double().mean() > 0.2
    if rule.concern.answers:
        assert {-1, 3} <= set(decisions.tolist())
    assert assessed.risk.isfinite().all(), "a reviewer needs the risk of what is referred"
    assert torch.equal(torch.cat([rule(part) for part in NEW[0].split(7000)]), decisions)


def rates(rule: DecisionRule, batch: tuple[Tensor, Tensor]) -> tuple[float, float]:
    """Return the dangerous errors and the costs per sample; a referral has none."""
    decisions, target = rule(batch[0]), batch[1]
    is_error = (decisions >= 0) & (decisions != target)
    pairs = target[is_error], decisions[is_error]
    dangerous = rule.concern.dangerous_pairs()[pairs].sum().item()
    cost = rule.concern.mpcs_weights()[pairs].sum().item()
    return dangerous / len(target), cost / len(target)


@pytest.mark.parametrize("errors", ["dangerous", "cost"])
def test_a_limit_in_expectation_holds_on_average(errors: str) -> None:
    limit = Limit(0.05, errors, confidence=None)
    new = NEW[0][:4000], NEW[1][:4000]
    found = []
    for seed in range(100):
        rule = DecisionRule(COSTS, limit).fit(*world(1500, seed + 10))
        dangerous, cost = rates(rule, new)
        found.append(cost if errors == "cost" else dangerous)
    assert np.mean(found) <= 0.05 + 2 * np.std(found) / 10
    assert np.mean(found) > 0.05 / 3, (
        "a rule that refers everything would keep to any limit"
    )


def test_logits_that_differ_by_a_constant_in_each_row_mean_the_same(
    rule: DecisionRule,
) -> None:
    decisions = rule(NEW[0][:2000])
    constants = 10 * torch.randn(3000, 1, generator=torch.Generator().manual_seed(0))
    is_same = rule(NEW[0][:2000] + constants[:2000]) == decisions
    assert is_same.double().mean() > 0.999  # not 1, because of rounding at a threshold
    rule.fit(FIT[0] + constants, FIT[1])
    assert (rule(NEW[0][:2000]) == decisions).double().mean() > 0.999


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
    rule = DecisionRule(LIGHTS, IN_EXPECTATION, calibration=None).fit(*FIT)
    report = rule.report
    assert report is not None
    assert (report.calibrated_by, report.judged_by) == (0, len(FIT[1]))
    assert (report.dangerous_rate, report.cost) == pytest.approx(rates(rule, FIT))
    assert report.coverage == pytest.approx((rule(FIT[0]) >= 0).double().mean().item())
    with pytest.warns(
        EvaluationWarning,
        match=r"^E1: 100 % of the 3000 rows are also in the fit of the rule",
    ):
        rule.warn_of_fitted(FIT[0])


def test_a_seed_draws_the_samples_that_calibrate_and_do_not_judge(tmp_path: Path) -> None:
    def fitted(rule: DecisionRule) -> float:
        calibration = rule.fit(*FIT).calibration
        assert isinstance(calibration, TemperatureScaling)
        return calibration.temperature.item()

    rules = {seed: DecisionRule(LIGHTS, IN_EXPECTATION, seed=seed) for seed in (0, 1, 7)}
    temperatures = {seed: fitted(rule) for seed, rule in rules.items()}
    assert len(set(temperatures.values())) == 3
    assert temperatures[0] == fitted(DecisionRule(LIGHTS, IN_EXPECTATION)), "the default"
    rules[7].save(tmp_path / "rule.pt")
    loaded = DecisionRule.load(tmp_path / "rule.pt")
    for report in (rules[7].report, loaded.report):
        assert report is not None
        assert (report.calibrated_by, report.judged_by) == (600, 2400)
        assert report.plain()["seed"] == 7
        assert ["seed that drew them", "7"] in report.table(LIGHTS).rows
    assert temperatures[7] == fitted(loaded), "a file keeps the seed"


@pytest.mark.parametrize("settings", [{"calibration": None}, {"limits": ()}])
def test_samples_that_are_not_drawn_have_no_seed(settings: dict[str, Any]) -> None:
    """Every sample calibrates, or judges."""
    rule = DecisionRule(LIGHTS, **{"limits": IN_EXPECTATION, "seed": 7, **settings})
    report = rule.fit(*FIT).report
    assert report is not None
    assert report.seed is None
    assert "seed that drew them" not in dict(report.table(LIGHTS).rows)


def test_a_failed_fit_leaves_the_rule_as_it_was() -> None:
    rule, few = DecisionRule(LIGHTS, Limit(0.005)), world(200, 0)
    with pytest.raises(UnattainableLimitError):
        rule.fit(*few)
    assert set(rule(NEW[0]).tolist()) == {-1}
    before = rule.fit(*FIT)(NEW[0])
    with pytest.raises(UnattainableLimitError):
        rule.fit(*few)
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


DAMAGED: dict[str, Any] = {
    "settings": {},
    "limits": [],
    "state": {"costs": torch.zeros(1, 1), "losses": torch.zeros(0, 1, 1)},
    "report": None,
    "known_rows": torch.zeros(0),
}


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    torch.save({"kind": KIND}, tmp_path / "unsealed")
    save_artifact({}, tmp_path / "other", kind="something else")
    save_artifact(
        {**DAMAGED, "concern": {"classes": ["a"]}}, tmp_path / "damaged", kind=KIND
    )
    (tmp_path / "sealed").write_bytes(sealed(b"no rule"))
    codes = {
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
    ("part", "changed", "message"),
    [
        ("concern", {"classes": 10_000_000}, sentence("row_for_each_class", "costs")),
        (
            "state",
            {"costs": torch.zeros(1).expand(10**6, 10**6)},
            sentence("contiguous", "tensors", shape=(10**6, 10**6)),
        ),
        ("state", {"costs": torch.full((3, 4), 0.5)}, sentence("of_concern", "costs")),
        ("state", {"dangerous": torch.zeros(3, 3)}, sentence("of_concern", "dangerous")),
        (
            "state",
            {"thresholds": torch.tensor([1e9])},
            sentence("threshold_range", "thresholds"),
        ),
        (
            "state",
            {"thresholds": torch.tensor([torch.nan])},
            sentence("threshold_range", "thresholds"),
        ),
        (
            "state",
            {"prior_ratio": torch.tensor([1.0, torch.inf, 1.0])},
            sentence("finite", "prior_ratio"),
        ),
        ("report", {"coverage": "\x1b[31m"}, sentence("number", "values of the report")),
        ("report", {"seed": "1"}, sentence("number", "values of the report")),
        (
            "report",
            {"by_class": {"red": [1, "2"]}},
            sentence("number", "values of the report"),
        ),
        (
            "settings",
            {"other": 1},
            r"DecisionRule.__init__\(\) got an unexpected keyword argument 'other'",
        ),
    ],
)
def test_a_changed_rule_is_refused(
    tmp_path: Path, part: str, changed: dict[str, Any], message: str
) -> None:
    """Whoever changes a rule can also write its hash anew."""
    rule = DecisionRule(ConcernSpec(3, refer=0.3), Limit(0.1), calibration=None)
    rule.fit(*FIT).save(tmp_path / "rule")
    content = torch.load(tmp_path / "rule", weights_only=True)
    content[part] |= changed
    save_artifact(content, tmp_path / "rule", kind=KIND)
    with pytest.raises(InvalidValueError, match=f"the decision rule is damaged: {message}"):
        DecisionRule.load(tmp_path / "rule")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"report": {"coverage": 1.0}}, "has no 'by_class'"),
        ({"limits": [{"at_most": 0.5}]}, sentence("matrix_for_each_limit", "losses")),
        ({"settings": None}, "'NoneType' object has no attribute"),
    ],
)
def test_a_rule_without_some_of_its_parts_is_refused(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    DecisionRule(LIGHTS, calibration=None).save(tmp_path / "rule")
    content = torch.load(tmp_path / "rule", weights_only=True)
    save_artifact({**content, **changed}, tmp_path / "rule", kind=KIND)
    with pytest.raises(InvalidValueError, match=f"the decision rule is damaged: {message}"):
        DecisionRule.load(tmp_path / "rule")


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ({"concern": ["red", "green"]}, Refused("spec", "concern", ["red", "green"])),
        ({"concern": Path("lights.yaml")}, Refused("spec", "concern")),
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
        DecisionRule(**{"concern": LIGHTS, **settings})


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


@pytest.mark.parametrize("shape", [(3,), (20, 2), (1, 20, 3)])
def test_logits_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with Refused("shape", "preds", shape="(N, 3) or (N, 3, ...)"):
        DecisionRule(LIGHTS, calibration=None)(torch.zeros(shape))
