"""Class priors of unlabelled samples: against scipy and scikit-learn, their coverage, and what is no label shift."""

import itertools
from typing import get_args

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from sklearn.metrics import confusion_matrix
from torch import Tensor

from mpcs_torch import ConcernSpec
from mpcs_torch.calibration import (
    LabelShiftWarning,
    TemperatureScaling,
    VectorScaling,
    estimate_priors,
)
from mpcs_torch.calibration.priors import MAX_WIDTH, ClassPrior, PriorEstimate, PriorMethod
from mpcs_torch.learning import DecisionRule
from tests.refused import Refused

EVEN = torch.full((3,), 1 / 3)
PRIORS = torch.tensor([0.7, 0.25, 0.05], dtype=torch.float64)
OF_CLASSES = ("priors", "low", "high", "joint_low", "joint_high", "validation_priors")
"""The fields of an estimate that have a value for each class."""
both = pytest.mark.parametrize("method", get_args(PriorMethod))
without_warnings = pytest.mark.filterwarnings(
    "ignore::mpcs_torch.calibration.LabelShiftWarning"
)


def draw(
    priors: Tensor, size: int, seed: int, *, skill: float = 2.0, spread: float = 3.0
) -> tuple[Tensor, Tensor]:
    """Draw overconfident logits (N, C), float64, and labels with these frequencies."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.multinomial(priors, size, replacement=True, generator=generator)
    noise = torch.randn(size, len(priors), generator=generator, dtype=torch.float64)
    return spread * (
        noise + skill * torch.nn.functional.one_hot(target, len(priors))
    ), target


def holds_priors(estimate: PriorEstimate) -> np.ndarray:
    """Return for each class whether its interval holds the true prior."""
    return ((estimate.low <= PRIORS) & (estimate.high >= PRIORS)).numpy()


def test_without_errors_in_validation_intervals_are_those_of_wilson() -> None:
    samples = draw(EVEN, 20_000, 0, skill=12.0)
    unlabelled, classes = draw(PRIORS, 150, 1, skill=12.0)
    estimate = estimate_priors(*samples, unlabelled, method="black_box", confidence=0.9)
    for label, count in enumerate(classes.bincount().tolist()):
        oracle = binomtest(count, 150).proportion_ci(0.9, method="wilson")
        assert estimate.priors[label] == pytest.approx(count / 150)
        assert (estimate.low[label], estimate.high[label]) == pytest.approx(
            (oracle.low, oracle.high), abs=1e-3
        )


def test_black_box_inverts_the_confusion_matrix_of_scikit_learn() -> None:
    preds, target = draw(EVEN, 500, 0)
    unlabelled, _ = draw(PRIORS, 400, 1)
    logits = preds.log_softmax(dim=1)
    temperature = TemperatureScaling().fit(logits, target)
    vector = VectorScaling(3).fit(temperature(logits), target)
    known = vector(temperature(logits)).argmax(dim=1)
    unknown = vector(temperature(unlabelled.log_softmax(dim=1))).argmax(dim=1)
    confusion = confusion_matrix(target, known, normalize="true")
    shares = np.bincount(unknown, minlength=3) / len(unknown)
    estimate = estimate_priors(preds, target, unlabelled, method="black_box")
    np.testing.assert_allclose(
        estimate.priors, np.linalg.solve(confusion.T, shares), rtol=1e-9
    )


@both
def test_the_samples_of_validation_have_their_own_frequencies(method: PriorMethod) -> None:
    preds, target = draw(PRIORS, 400, 0)
    estimate = estimate_priors(preds, target, preds, method=method)
    torch.testing.assert_close(
        estimate.priors, target.bincount() / 400.0, check_dtype=False
    )
    torch.testing.assert_close(estimate.priors, estimate.validation_priors)
    assert estimate.p_value > 0.99


@without_warnings
@both
def test_intervals_hold_the_priors_and_label_shift_is_accepted(method: PriorMethod) -> None:
    """Of so many unlabelled samples, half of the intervals would miss without the error of validation."""
    hits, p_values = [], []
    for seed in range(30):
        deployed, _ = draw(PRIORS, 3000, 1000 + seed)
        estimate = estimate_priors(*draw(EVEN, 200, seed), deployed, method=method)
        assert (estimate.low <= estimate.priors).all()
        assert (estimate.priors <= estimate.high).all()
        hits.append(holds_priors(estimate))
        p_values.append(estimate.p_value)
    assert 0.90 <= np.mean(hits) <= 0.99
    assert np.mean(np.array(p_values) < 0.05) <= 0.12
    assert 0.35 <= np.mean(p_values) <= 0.7


def test_em_reads_more_from_a_sample_than_its_class() -> None:
    samples = draw(EVEN, 2000, 2, skill=1.0)
    unlabelled, _ = draw(PRIORS, 2000, 3, skill=1.0)
    em = estimate_priors(*samples, unlabelled, method="em")
    black_box = estimate_priors(*samples, unlabelled, method="black_box")
    assert ((em.high - em.low) < 0.9 * (black_box.high - black_box.low)).all()


@both
@pytest.mark.parametrize(
    "change", [{"skill": 1.0}, {"spread": 1.5}, {"skill": 3.0}], ids=str
)
def test_samples_that_look_otherwise_are_no_label_shift(
    method: PriorMethod, change: dict[str, float]
) -> None:
    samples = draw(EVEN, 500, 0)
    unlabelled, _ = draw(PRIORS, 500, 1, **change)
    with pytest.warns(
        LabelShiftWarning,
        match=r"do not use the priors: more than class frequencies has changed \(p = ",
    ):
        assert estimate_priors(*samples, unlabelled, method=method).p_value < 0.001


def test_many_rare_classes_are_tested_together() -> None:
    even = torch.full((40,), 1 / 40)
    samples = draw(even, 500, 0, skill=5.0)
    assert estimate_priors(*samples, draw(even, 500, 1, skill=5.0)[0]).p_value > 0.05
    with pytest.warns(LabelShiftWarning):
        estimate_priors(*samples, draw(even, 500, 1, skill=2.5)[0])


@both
def test_a_class_that_is_gone_is_not_ruled_out(method: PriorMethod) -> None:
    gone = torch.tensor([0.6, 0.4, 0.0])
    estimate = estimate_priors(*draw(EVEN, 1000, 0), draw(gone, 1000, 1)[0], method=method)
    assert estimate.low[2] < 1e-3
    assert 0 < estimate.priors[2] < estimate.high[2] < 0.05
    assert estimate.priors.sum() == pytest.approx(1)


@both
def test_the_order_of_classes_and_constants_of_rows_do_not_matter(
    method: PriorMethod,
) -> None:
    preds, target = draw(EVEN, 300, 0)
    unlabelled, _ = draw(PRIORS, 300, 1)
    expected = estimate_priors(preds, target, unlabelled, method=method)
    order = torch.tensor([2, 0, 1])
    constants = torch.arange(300.0).unsqueeze(1)
    estimate = estimate_priors(
        preds[:, order] + constants,
        order.argsort()[target],
        unlabelled[:, order] + constants,
        method=method,
    )
    for name in OF_CLASSES:
        torch.testing.assert_close(
            getattr(estimate, name), getattr(expected, name)[order], rtol=1e-5, atol=1e-7
        )
    assert estimate.p_value == pytest.approx(expected.p_value, rel=1e-4)


def test_decision_rules_take_the_priors() -> None:
    samples = draw(EVEN, 1000, 0, skill=1.0)
    unlabelled, classes = draw(PRIORS, 2000, 1, skill=1.0)
    errors = []
    for priors in (estimate_priors(*samples, unlabelled).priors, None):
        rule = DecisionRule(ConcernSpec(["a", "b", "c"]), priors=priors).fit(*samples)
        errors.append((rule(unlabelled) != classes).double().mean())
    assert errors[0] < 0.9 * errors[1]


def in_clusters(
    priors: Tensor, clusters: int, size: int, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw logits and labels of clusters, whose samples share most of their noise and often the class."""
    generator = torch.Generator().manual_seed(seed)
    shared = torch.randn(clusters, len(priors), generator=generator, dtype=torch.float64)
    first = torch.multinomial(
        priors, clusters, replacement=True, generator=generator
    ).repeat_interleave(size)
    alone = torch.multinomial(
        priors, clusters * size, replacement=True, generator=generator
    )
    is_shared = torch.rand(clusters * size, generator=generator) < 0.6
    target = torch.where(is_shared, first, alone)
    noise = torch.randn(
        clusters * size, len(priors), generator=generator, dtype=torch.float64
    )
    logits = (
        2 * torch.nn.functional.one_hot(target, len(priors))
        + 0.9 * shared.repeat_interleave(size, 0)
        + noise / 2
    )
    return logits, target, torch.arange(clusters).repeat_interleave(size)


@without_warnings
def test_intervals_by_cluster_hold_the_priors_and_those_by_row_do_not() -> None:
    hits, hits_by_row, p_values = [], [], []
    for seed in range(60):
        preds, target, clusters = in_clusters(EVEN, 60, 6, seed)
        unlabelled, _, others = in_clusters(PRIORS, 80, 6, 1000 + seed)
        by_row = estimate_priors(preds, target, unlabelled)
        estimate = estimate_priors(
            preds, target, unlabelled, clusters=clusters, unlabelled_clusters=others + 60
        )
        hits.append(holds_priors(estimate))
        hits_by_row.append(holds_priors(by_row))
        p_values.append(estimate.p_value)
        assert torch.equal(estimate.priors, by_row.priors)
        assert (estimate.joint_low <= estimate.low).all()
        assert (estimate.high <= estimate.joint_high).all()
    assert 0.90 <= np.mean(hits) <= 0.99
    assert np.mean(hits_by_row) < 0.85
    assert np.mean(np.array(p_values) < 0.05) <= 0.13


@both
def test_copies_in_clusters_say_what_one_of_each_says(method: PriorMethod) -> None:
    preds, target = draw(EVEN, 300, 0)
    unlabelled, _ = draw(PRIORS, 400, 1)
    alone = estimate_priors(preds, target, unlabelled, method=method)

    def in_copies(number: int) -> PriorEstimate:
        return estimate_priors(
            preds.repeat(number, 1),
            target.repeat(number),
            unlabelled.repeat(number, 1),
            method=method,
            clusters=[*range(300)] * number,
            unlabelled_clusters=[*range(300, 700)] * number,
        )

    for name in OF_CLASSES:
        torch.testing.assert_close(getattr(in_copies(1), name), getattr(alone, name))
    copied = in_copies(5)
    torch.testing.assert_close(copied.priors, alone.priors, rtol=0.01, atol=0)
    torch.testing.assert_close(
        copied.high - copied.low, alone.high - alone.low, rtol=0.1, atol=0
    )
    assert copied.p_value == pytest.approx(alone.p_value, abs=0.05)


def poor(size: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw logits of classes of which the last two, one of them rare, hardly differ."""
    logits, seen = draw(torch.tensor([0.5, 0.25, 0.25]), size, seed, skill=2.0, spread=1.0)
    random = torch.Generator().manual_seed(seed + 500)
    target = seen + (seen == 2) * (torch.rand(size, generator=random) < 0.2)
    last = logits[:, 2] + 0.4 * (target == 3) + 0.5 * torch.randn(size, generator=random)
    return torch.cat([logits, last.unsqueeze(1)], dim=1), target


@without_warnings
def test_classes_that_cannot_be_told_apart_are_named_and_estimated_together() -> None:
    hits = []
    for seed in range(30):
        preds, target = poor(400, seed)
        unlabelled, _ = poor(500, 100 + seed)
        estimate = estimate_priors(
            preds, target, unlabelled, class_groups={"ill": [1, 2, 3]}
        )
        assert estimate.priors[2] > 0
        [joined] = [part for part in estimate.told_apart if 3 in part]
        assert 2 in joined
        assert all(share.width <= MAX_WIDTH for share in estimate.told_apart.values())
        assert sorted(itertools.chain(*estimate.told_apart)) == [0, 1, 2, 3]
        ill = estimate.class_groups["ill"]
        assert ill.width < 0.4
        assert ill.prior == pytest.approx(0.5, abs=0.12)
        hits.append(ill.low <= 0.5 <= ill.high)
        problem = estimate.problem(["none", "mild", "severe", "worse"])
        if estimate.p_value >= 0.05:
            assert "these samples only distinguish none 0." in problem
            assert "severe or worse 0." in problem
        else:
            assert "do not look the same as in validation (p = 0." in problem
    assert np.mean(hits) >= 0.85


@without_warnings
def test_logits_that_tell_nothing_leave_one_group_of_all_classes() -> None:
    random = torch.Generator().manual_seed(0)
    noise = torch.randn(180, 3, generator=random)
    estimate = estimate_priors(noise[:120], torch.arange(120) % 3, noise[120:])
    assert estimate.told_apart == {(0, 1, 2): ClassPrior(1.0, 1.0, 1.0)}


def test_an_estimate_that_can_be_used_has_no_problem() -> None:
    estimate = estimate_priors(*draw(EVEN, 2000, 0), draw(EVEN, 2000, 1)[0])
    assert estimate.problem(["a", "b", "c"]) == ""
    assert [*estimate.told_apart] == [(0,), (1,), (2,)]
    assert estimate.told_apart[0,] == ClassPrior(
        estimate.priors[0].item(), estimate.low[0].item(), estimate.high[0].item()
    )


def test_a_class_in_few_clusters_has_no_interval() -> None:
    preds, target = draw(EVEN, 600, 0)
    clusters = torch.where(target == 2, torch.arange(600) % 9, torch.arange(600))
    estimate = estimate_priors(
        preds,
        target,
        draw(EVEN, 400, 1)[0],
        clusters=clusters,
        unlabelled_clusters=range(600, 1000),
    )
    assert estimate.low.isnan().tolist() == [False, False, True]
    assert estimate.joint_high.isnan().tolist() == [False, False, True]
    assert all(2 not in part or len(part) > 1 for part in estimate.told_apart)
    assert "c 0.3 (too few samples)" in estimate.problem(["a", "b", "c"])


both_clusters = {"clusters": range(60), "unlabelled_clusters": range(60)}


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"method": "bbse"}, Refused("one_of", "method", "bbse")),
        (
            {"clusters": range(60)},
            Refused("given_with", "clusters", other="unlabelled_clusters"),
        ),
        (
            {**both_clusters, "clusters": range(59)},
            Refused("name_for_each", "clusters", 59, rows=60),
        ),
        (
            {**both_clusters, "clusters": [i if i % 3 else 0 for i in range(60)]},
            Refused("each_class_twice", "target", twice="in two clusters", classes=[0]),
        ),
        (
            {**both_clusters, "unlabelled_clusters": [1] * 60},
            Refused("holds_at_least", "unlabelled_clusters", 1, unit="clusters"),
        ),
        (
            {"class_groups": {"all": [0, 1, 2]}},
            Refused("some_classes", "class_groups", last=2),
        ),
        ({"confidence": 1.0}, Refused("open_between", "confidence", 1.0)),
        ({"preds": torch.full((60, 3), torch.inf)}, Refused("finite_logits", "preds")),
        (
            {"preds": torch.zeros(60, 3)},
            Refused("dependent", "preds", method="em"),
        ),
        (
            {"target": torch.arange(60) % 2},
            Refused("each_class_twice", "target", twice="twice", classes=[2]),
        ),
        (
            {"unlabelled": torch.zeros(5, 2)},
            Refused("float_shape", "unlabelled", shape="(M, 3)"),
        ),
        (
            {"unlabelled": torch.full((5, 3), torch.nan)},
            Refused("finite_sample", "unlabelled"),
        ),
    ],
)
def test_what_breaks_a_rule_is_refused(
    changes: dict[str, object], refusal: Refused
) -> None:
    preds, _ = draw(EVEN, 60, 0)
    given: dict[str, object] = {
        "preds": preds,
        "target": torch.arange(60) % 3,
        "unlabelled": preds,
        **changes,
    }
    with refusal:
        estimate_priors(**given)  # type: ignore[arg-type]
