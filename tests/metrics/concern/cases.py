"""The cases of the concern family."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric

from mpcs_torch import (
    ConcernSpec,
    DangerousErrors,
    ExpectedConcern,
    MetaPatternConcernScore,
)
from mpcs_torch.functional.concern.coverage import estimated_risks
from mpcs_torch.metrics import (
    Coverage,
    GeneralizedRiskCoverageArea,
    MeanSeverity,
    NetBenefit,
    RiskAtCoverage,
    RiskCoverageArea,
    RiskGap,
    RowCost,
    SelectiveAccuracy,
    SoftKLDivergence,
)
from tests.metrics.batches import CERTAIN, CLASSES, HARD, WIDE, flat, random_batch
from tests.metrics.case import Batch, MetricCase
from tests.oracles import algorithm_1, naive
from tests.refused import Refused

CONCERN = ConcernSpec(CLASSES, releases=[[0, 1], [2, 3, 1]], factor=0.25)


def referring_batch(size: int, seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(0, CLASSES, (size,), generator=generator)
    is_referred = torch.rand(size, generator=generator) < 0.3 + 0.1 * target
    is_wrong = torch.rand(size, generator=generator) < 0.2
    return torch.where(is_referred, -1, (target + is_wrong) % CLASSES), target


REFERRING = replace(
    HARD,
    draw=referring_batch,
    bad=(torch.tensor([0, 7]), torch.tensor([0, 1])),
    refusal=Refused("decisions_or_scores", "preds", 7, sample=1),
    ignored=(torch.tensor([0, -1]), torch.tensor([-1, -1])),
)


def costed_batch(size: int, seed: int) -> Batch:
    logits, target = random_batch(size, seed)
    costs = torch.rand(
        size, CLASSES, generator=torch.Generator().manual_seed(seed)
    ).double()
    return logits, costs * (1 + target.unsqueeze(1)) - 0.1


COSTED = replace(
    HARD,
    draw=costed_batch,
    bad=(torch.zeros(2, CLASSES), torch.tensor([[0.0, 1, 2, 3], [0, torch.inf, 2, 3]])),
    refusal=Refused("finite_costs", "target", [0, math.inf, 2, 3], sample=1, number=4),
    ignoring={},
    ignored=(torch.zeros(2, CLASSES), torch.ones(2, CLASSES), torch.zeros(2)),
)


def risk_gap_oracle(batch: Batch) -> dict[str, float]:
    dangerous = CONCERN.dangerous_pairs().double().tolist()
    return {"": naive.risk_gap(batch[0].softmax(1).tolist(), batch[1].tolist(), dangerous)}


def highest(scores: Tensor) -> list[int]:
    """Return the first of the classes with the highest score of each row."""
    return [row.index(max(row)) for row in scores.tolist()]


def row_cost_oracle(batch: Batch) -> dict[str, float]:
    pairs = zip(batch[1].tolist(), highest(batch[0]), strict=True)
    return {"": sum(row[decision] for row, decision in pairs) / len(batch[1])}


def errors_of(batch: Batch) -> list[tuple[int, int]]:
    """Return the true and the predicted class of each error."""
    pairs = zip(batch[1].tolist(), highest(batch[0]), strict=True)
    return [(true, guess) for true, guess in pairs if true != guess]


def mpcs_oracle(batch: Batch) -> dict[str, float]:
    logits, target = batch
    concern = CONCERN.mpcs_weights().tolist()
    return {
        "": algorithm_1.score(
            logits.softmax(dim=1).tolist(), target.tolist(), 3, 20, concern
        )
    }


def dangerous_oracle(batch: Batch) -> dict[str, float]:
    return {"": sum(pair not in {(0, 1), (2, 3), (2, 1)} for pair in errors_of(batch))}


def expected_concern_oracle(batch: Batch) -> dict[str, float]:
    """Decide for the class of minimum risk, and sum the concern of wrong decisions."""
    logits, target = batch
    costs = (CONCERN.mpcs_weights() * (1 - torch.eye(CLASSES))).numpy()
    risks = logits.softmax(dim=1).numpy() @ costs
    of_true = costs[target.numpy()]
    cost = of_true[range(len(target)), risks.argmin(axis=1)].sum()
    return {"": cost / of_true.sum(axis=0).min()}


def risk_coverage_oracle(batch: Batch) -> dict[str, float]:
    """Decide 1, 2, ... samples of lowest estimated risk, and average the shares of dangerous errors."""
    losses = decided_in_order(batch)
    shares = [sum(losses[:n]) / n for n in range(1, len(losses) + 1)]
    return {"": sum(shares) / len(shares)}


def mean_severity_oracle(batch: Batch) -> dict[str, float]:
    concern = CONCERN.mpcs_weights().tolist()
    costs = [concern[true][guess] for true, guess in errors_of(batch)]
    return {"": sum(costs) / len(costs) if costs else math.nan}


def net_benefit_oracle(batch: Batch) -> dict[str, float]:
    """Compute TP / N - FP / N * t / (1 - t), as in dcurves."""
    logits, target = batch
    found = needless = 0
    for row, true in zip(logits.softmax(dim=1).tolist(), target.tolist(), strict=True):
        if row[1] + row[3] >= 0.3:
            found += true in (1, 3)
            needless += true not in (1, 3)
    return {"": found / len(target) - needless / len(target) * 0.3 / 0.7}


def decided_in_order(batch: Batch) -> list[float]:
    """Return the dangerous errors of samples, those of lowest estimated risk first."""
    logits, target = batch
    dangerous = CONCERN.dangerous_pairs().tolist()
    probs = logits.softmax(dim=1).tolist()
    decisions = []
    for row, true, guess in zip(probs, target.tolist(), highest(logits), strict=True):
        risk = sum(p for i, p in enumerate(row) if dangerous[i][guess])
        decisions.append((risk, dangerous[true][guess]))
    return [loss for _, loss in sorted(decisions)]


def generalized_area_oracle(batch: Batch) -> dict[str, float]:
    """Sum trapezoids between the points of fd-shifts: coverage n / N, and errors among the first n divided by N."""
    losses = decided_in_order(batch)
    size = len(losses)
    risks = [sum(losses[:n]) / size for n in range(size + 1)]
    return {"": sum((one + other) / 2 / size for one, other in itertools.pairwise(risks))}


def risk_at_coverage_oracle(batch: Batch) -> dict[str, float]:
    losses = decided_in_order(batch)
    number = math.ceil(0.6 * len(losses))
    return {"": sum(losses[:number]) / number}


def estimated(logits: Tensor, target: Tensor) -> Any:
    return estimated_risks(flat(logits, target), CONCERN.dangerous_pairs())


def of_errors(kind: Any, oracle: Any, given_core: Any = None, **options: Any) -> MetricCase:
    """Return the case of a metric of errors, whose costs are those of `CONCERN`, or by default all alike."""
    return MetricCase(
        make=partial(kind, CLASSES, concern=CONCERN, **options),
        higher_is_better=False,
        make_other=partial(kind, CLASSES, **options),
        agreeing_batch=CERTAIN,
        oracle=oracle,
        given_core=given_core,
        batches=HARD,
    )


def of_referrals(kind: Any, oracle: Callable[[Tensor, Tensor], Tensor]) -> MetricCase:
    """Return the case of a metric of decisions that may be referrals."""
    return MetricCase(
        make=partial(kind, CLASSES),
        higher_is_better=True,
        make_other=partial(kind, CLASSES, ignore_index=0),
        agreeing_batch=(torch.tensor([1, -1]), torch.tensor([1, 2])),
        oracle=lambda batch: {"": oracle(*batch).item()},
        batches=REFERRING,
    )


SURE = (
    torch.tensor([[9.0, -9.0, 0.0, 1.0], [0.0, 9.0, 0.0, 1.0]]),
    torch.tensor([0, 1]),
)

# In both batches class 0 is true and predicted, and no released class is near.
CONCERN_CASES: dict[type[Metric], MetricCase] = {
    MetaPatternConcernScore: of_errors(MetaPatternConcernScore, mpcs_oracle, k=3, t=20),
    DangerousErrors: of_errors(DangerousErrors, dangerous_oracle),
    RiskCoverageArea: of_errors(RiskCoverageArea, risk_coverage_oracle, estimated),
    MeanSeverity: of_errors(MeanSeverity, mean_severity_oracle),
    GeneralizedRiskCoverageArea: of_errors(
        GeneralizedRiskCoverageArea, generalized_area_oracle, estimated
    ),
    RiskAtCoverage: of_errors(
        RiskAtCoverage, risk_at_coverage_oracle, estimated, coverage=0.6
    ),
    Coverage: of_referrals(Coverage, lambda decisions, _: (decisions >= 0).double().mean()),
    SelectiveAccuracy: of_referrals(
        SelectiveAccuracy,
        lambda decisions, target: (decisions == target)[decisions >= 0].double().mean(),
    ),
    NetBenefit: MetricCase(
        make=partial(NetBenefit, CLASSES, classes=[1, 3], threshold=0.3),
        higher_is_better=True,
        make_other=lambda: NetBenefit(CLASSES, classes=[1, 3]),
        agreeing_batch=SURE,
        oracle=net_benefit_oracle,
        batches=HARD,
    ),
    RiskGap: MetricCase(
        make=partial(RiskGap, CLASSES, concern=CONCERN),
        higher_is_better=None,
        make_other=lambda: RiskGap(CLASSES, concern=CONCERN, loss="cost"),
        agreeing_batch=CERTAIN,
        oracle=risk_gap_oracle,
        batches=WIDE,
    ),
    RowCost: MetricCase(
        make=partial(RowCost, CLASSES),
        higher_is_better=False,
        make_other=lambda: RowCost(CLASSES, regret=True),
        agreeing_batch=(torch.eye(CLASSES), 1 - torch.eye(CLASSES)),
        oracle=row_cost_oracle,
        batches=COSTED,
        # The mean cost and the regret share their sums.
        make_stranger=lambda: SoftKLDivergence(validate_args=False),
    ),
    ExpectedConcern: MetricCase(
        make=partial(ExpectedConcern, CLASSES, concern=CONCERN, decision="least_concern"),
        higher_is_better=False,
        make_other=lambda: ExpectedConcern(CLASSES, concern=CONCERN),
        agreeing_batch=SURE,
        oracle=expected_concern_oracle,
        batches=HARD,
    ),
}
