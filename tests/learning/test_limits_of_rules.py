"""Limits of classes, groups, decided samples and clusters through `DecisionRule`; decisions in batches of any size."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mpcs_torch import ConcernSpec
from mpcs_torch.evaluation import EvaluationWarning
from mpcs_torch.learning import (
    AllReferredWarning,
    DecisionRule,
    Limit,
    UnattainableLimitError,
)
from mpcs_torch.learning.rule_limit import report_on
from tests.refused import Refused

SKIN = ConcernSpec(
    ["benign", "unclear", "malignant"],
    releases=[
        ["benign", "unclear"],
        ["unclear", "benign"],
        ["benign", "malignant"],
        ["unclear", "malignant"],
    ],
    factor=0.2,
)
FREQUENCIES = torch.tensor([0.75, 0.2, 0.05])


def world(
    samples: int, generator: torch.Generator, size: int = 1
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw overconfident logits and labels of patients, each with images that share most of their noise."""
    target = FREQUENCIES.multinomial(
        samples // size, replacement=True, generator=generator
    ).repeat_interleave(size)
    patient = torch.arange(samples) // size
    shared = torch.randn(samples // size, 3, generator=generator)[patient]
    own = torch.randn(samples, 3, generator=generator)
    noise = 0.9**0.5 * shared + 0.1**0.5 * own
    logits = 1.3 * noise + 3 * torch.eye(3)[target] + FREQUENCIES.log()
    return 1.7 * logits, target, patient


def test_a_group_that_is_too_small_for_a_limit_is_named() -> None:
    preds, target, _ = world(3000, torch.Generator().manual_seed(0))
    with pytest.raises(
        UnattainableLimitError,
        match=r"'any <= 0.08 of samples by site .*', site b cannot .* by \d+",
    ):
        DecisionRule(SKIN, Limit(0.08, "any", by="site")).fit(
            preds, target, groups={"site": ["a"] * 2980 + ["b"] * 20}
        )


def test_a_dangerous_class_without_samples_is_warned_of_and_refused_where_a_limit_needs_it() -> (
    None
):
    preds, target, _ = world(2000, torch.Generator().manual_seed(0))
    few = target != 2
    with pytest.warns(
        EvaluationWarning,
        match=r"^E4: few samples .*, malignant \(0\): it takes 59",
    ):
        report = DecisionRule(SKIN, Limit(0.02)).fit(preds[few], target[few]).report
    assert report is not None
    assert str(report.by_class["malignant"]) == "no samples"
    with pytest.raises(
        UnattainableLimitError,
        match=r"by 0 samples of malignant, .* guarantee 1. A limit of 0.05 needs",
    ):
        DecisionRule(SKIN, Limit(0.05, of="malignant")).fit(preds[few], target[few])


def test_a_limit_of_a_class_goes_with_priors() -> None:
    generator = torch.Generator().manual_seed(0)
    limit = Limit(0.1, of="malignant")
    preds, target, _ = world(3000, generator)
    rule = DecisionRule(SKIN, limit, priors=[0.3, 0.3, 0.4]).fit(preds, target)
    new, of_new, _ = world(100_000, generator)
    decisions = rule(new)[of_new == 2]
    assert ((decisions == 0) | (decisions == 1)).double().mean() <= 0.1


GROUPED = replace(SKIN, class_groups={"referable": ["unclear", "malignant"]})


@pytest.mark.parametrize("of", ["referable", "decided referable"])
def test_a_limit_of_a_group_of_classes_is_that_of_the_classes_as_one(of: str) -> None:
    generator = torch.Generator().manual_seed(0)
    preds, target, _ = world(4000, generator)
    new, of_new, _ = world(50_000, generator)
    rule = DecisionRule(GROUPED, Limit(0.1, "any", of)).fit(preds, target)
    decisions = rule(new)
    is_ill = of_new >= 1
    counts = decisions >= 1 if of.startswith("decided") else is_ill
    wrong = ((decisions >= 0) & (decisions != of_new) & counts).sum() / counts.sum()
    assert 0.05 < wrong <= 0.1
    is_dangerous = SKIN.dangerous_pairs()[of_new, decisions] & (decisions >= 0) & is_ill
    errors = report_on(decisions, of_new, GROUPED).by_class["referable"]
    assert errors[:2] == (is_dangerous.sum(), is_ill.sum())
    with Refused("limits_of_one_class", "priors"):
        DecisionRule(GROUPED, Limit(0.1, of=of), priors=[0.3, 0.3, 0.4])


@pytest.mark.filterwarnings("ignore:E4")
@pytest.mark.parametrize(
    "limit",
    [
        Limit(0.1, "any"),
        Limit(0.1, "any", "decided"),
        Limit(0.1, "any", per="cluster"),
    ],
    ids=str,
)
def test_a_weight_counts_as_rows_of_the_same_cluster(limit: Limit) -> None:
    preds, target, patients = world(2000, torch.Generator().manual_seed(0), 5)
    weights = 1 + patients % 3
    again = torch.arange(2000).repeat_interleave(weights)
    by_weight = DecisionRule(SKIN, limit, calibration=None)
    by_rows = DecisionRule(SKIN, limit, calibration=None)
    by_weight.fit(preds, target, clusters=patients, weights=weights)
    by_rows.fit(preds[again], target[again], clusters=patients[again])
    assert (by_weight(preds) >= 0).float().mean() > 0.5
    assert by_weight(preds).equal(by_rows(preds))
    assert by_weight.report.coverage == pytest.approx(by_rows.report.coverage)  # type: ignore[union-attr]
    with Refused("finite_at_least", "weights", -1, sample=0, minimum=0):
        by_weight.fit(preds, target, clusters=patients, weights=-weights)


def test_a_limit_per_cluster_needs_clusters() -> None:
    preds, target, _ = world(1500, torch.Generator().manual_seed(0))
    with Refused("clusters_of_limits", "clusters"):
        DecisionRule(SKIN, Limit(0.05, "any", per="cluster")).fit(preds, target)


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:E4", "ignore::mpcs_torch.calibration.CalibrationWarning"
)
@pytest.mark.parametrize(
    "limits",
    [[Limit(0.5, "any")], [Limit(0.5, "any"), Limit(0.6, "any", of="decided")]],
    ids=len,
)
@pytest.mark.parametrize("distinct", [1, 5, 20])
@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_tied_samples_are_decided_alike_in_batches_of_any_size(
    classes: int, distinct: int, limits: list[Limit]
) -> None:
    generator = torch.Generator().manual_seed(classes + distinct)
    votes = torch.randint(1, 5, (distinct, classes), generator=generator).double()
    favourite = torch.randint(classes, (distinct,), generator=generator)
    places = torch.arange(distinct)
    votes[places, favourite] *= 6 * classes * (1 + places % 3)
    rows = torch.randint(distinct, (700,), generator=generator)
    logits = votes[rows].log()
    target = votes[rows].multinomial(1, generator=generator).squeeze(1)
    rule = DecisionRule(ConcernSpec(classes, refer=0.9), limits).fit(logits, target)
    whole = rule(logits)
    assert (whole >= 0).any(), "else nothing could differ"
    for size in (1, 7, 32):
        parts = [rule(part) for part in logits.split(size)]
        assert torch.equal(torch.cat(parts), whole)
    pairs = torch.stack([rows, whole]).unique(dim=1)
    assert pairs.shape[1] == distinct


@pytest.mark.parametrize("scale", [1e-300, 1e-42, 1e37, 1e300])
def test_costs_of_any_finite_scale_decide_alike(scale: float) -> None:
    preds, target, _ = world(1000, torch.Generator().manual_seed(0))
    costs = torch.tensor(
        [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [9.0, 5.0, 0.0]], dtype=torch.float64
    )
    plain = ConcernSpec(3, weights=costs.tolist())
    scaled = ConcernSpec(3, weights=(costs * scale).tolist())
    decided = DecisionRule(plain).fit(preds, target)(preds)
    assert torch.equal(DecisionRule(scaled).fit(preds, target)(preds), decided)


NAMES = st.sampled_from(["samples", "decided", "red", "decided red", "a b"])


@given(
    st.floats(1e-6, 0.99),
    st.sampled_from(
        ["dangerous", "any", (("red", "green"),), (("red", "a b"), ("a b", "green"))]
    ),
    NAMES,
    st.sampled_from([None, "site", "kind of camera"]),
    st.sampled_from([0.5, 0.95, 0.999]),
    st.sampled_from(["sample", "cluster"]),
)
def test_a_limit_in_words_is_read_again(
    at_most: float, errors: str, of: str, by: str | None, confidence: float, per: str
) -> None:
    limit = Limit(float(f"{at_most:g}"), errors, of, by, confidence, per)
    assert Limit.parse(str(limit)) == limit


def test_words_that_are_no_limit_are_refused() -> None:
    for text, refusal in {
        "dangerous < 0.1": Refused("reads_like", ""),
        "dangerous <= much": Refused("limit_as_text", "", text="dangerous <= much"),
        "dangerous <= 150 %": Refused("below", "at_most", 1.5, maximum=1),
        "bad <= 0.1": Refused("kind_of_errors", "errors", "bad"),
        "a->b->c <= 0.1": Refused("pairs_with_arrows", "errors"),
        "any <= 0.1 of decided in expectation": Refused("given_for_decided", "confidence"),
    }.items():
        with refusal:
            Limit.parse(text)


@pytest.mark.filterwarnings("ignore::mpcs_torch.calibration.CalibrationWarning")
@pytest.mark.parametrize("seed", range(4))
def test_a_huge_cluster_that_calibrates_counts_too(seed: int) -> None:
    sizes = torch.where(torch.arange(300) % 100 == 0, 200, 1)
    patients = torch.arange(300).repeat_interleave(sizes)
    is_huge = sizes[patients] > 1
    # All decisions for huge clusters are wrong.
    target, decided = 2 * (torch.arange(len(patients)) == 0).long(), is_huge.long()
    noise = torch.randn(len(target), 3, generator=torch.Generator().manual_seed(0))
    preds = 4 * torch.eye(3)[decided] + 0.1 * noise
    rule = DecisionRule(SKIN, Limit(0.1, "any"), seed=seed)
    with pytest.raises(
        UnattainableLimitError,
        match=r"by 240 of 300 clusters .* 0.1 needs \d{4,} clusters",
    ):
        rule.fit(preds, target, clusters=patients)


@pytest.mark.parametrize("limits", [(), Limit(0.2, "any")], ids=["by costs", "by a limit"])
def test_a_fit_to_columns_in_another_order_says_so(limits: tuple[()] | Limit) -> None:
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(0, 3, (1500,), generator=generator)
    logits = 3 * torch.eye(3)[target] + torch.randn(1500, 3, generator=generator)
    concern = ConcernSpec(["benign", "unsure", "malignant"], refer=0.2)
    rule = DecisionRule(concern, limits).fit(logits, target)
    assert rule.report is not None
    assert rule.report.coverage > 0.5, "in the right order, there is no warning"
    with pytest.warns(
        AllReferredWarning, match=r"in the order of the classes \(benign, unsure, mal"
    ):
        rule.fit(logits.flip(1), target)
    assert rule.report.coverage < 0.01


def test_a_very_low_limit_is_refused_at_once() -> None:
    preds, target, _ = world(1500, torch.Generator().manual_seed(0))
    with pytest.raises(UnattainableLimitError, match="1e-09 needs 37446"):
        DecisionRule(SKIN, Limit(1e-9)).fit(preds, target)


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ((None,), Refused("number", "at_most")),
        ((0.1, ["red", "green"]), Refused("pairs_of_names", "errors")),
        ((0.1, "any", 3), Refused("text", "of and by")),
        ((0.1, "any", "samples", None, "0.95"), Refused("number", "confidence", "0.95")),
        ((0.1, "cost"), Refused("none_for_costs", "confidence")),
        (
            (0.1, "any", "samples", None, 0.9, "patient"),
            Refused("one_of", "per", "patient"),
        ),
    ],
)
def test_a_limit_that_is_none_is_named(
    arguments: tuple[Any, ...], refusal: Refused
) -> None:
    with refusal:
        Limit(*arguments)
    with Refused("name_of_class", "of", "decided x"):
        DecisionRule(ConcernSpec(["x", "decided x"]), Limit(0.1, of="decided x"))
    with Refused("named", "clusters", sample=1):
        DecisionRule(SKIN, Limit(0.1)).fit(
            torch.rand(2, 3), torch.tensor([0, 1]), clusters=["a", None]
        )


def test_decisions_that_no_limit_counts_are_never_referred() -> None:
    target = torch.arange(1000) % 2
    # The probabilities are those of a model that knows nothing.
    logits = torch.randn(1000, 2, generator=torch.Generator().manual_seed(0))
    rule = DecisionRule(
        ConcernSpec(["benign", "malignant"]),
        Limit(0.05, "any", of="decided benign"),
        calibration=None,
    )
    assert (rule(logits) == -1).all(), "before the fit"
    with pytest.warns(AllReferredWarning, match="all samples are referred"):
        rule.fit(logits, target)
    assert set(rule(logits).tolist()) == {-1, 1}
