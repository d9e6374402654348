"""The methods of the benchmark: one entry for each, with the settings that its tuning tries.

A method of your own is one file with a `Method`, whose import path goes to ``python -m examples.benchmark --method``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern.decision import without_diagonal
from mpcs_torch.functional.concern.losses import log_complement
from mpcs_torch.io.packaged import import_attribute
from mpcs_torch.learning import ConcernLoss, MarginRamp, SoftmaxMarginLoss
from mpcs_torch.learning.recommended import LOSSES, PLAIN, average_logits, margin_loss

SETTINGS = 3
"""The number of settings that each method has. Each is tried at every learning rate of the task."""
SMOOTHING = 0.02
"""The label smoothing of losses that do not try several."""
PRETRAINING = 0.3
"""The share of the steps that Deep Gamblers and self-adaptive training take with cross entropy."""


class Problem(NamedTuple):
    """Describe a task to the maker of a loss."""

    concern: ConcernSpec
    class_counts: Tensor
    """int64 (C,): training samples."""
    steps: int = 1
    """Of the training."""
    member: int = 0
    """The number of the model, where a method trains several."""


class Batch(NamedTuple):
    """Hold what a loss may use."""

    logits: Tensor
    """(N, C), or (N, C + 1) with an output for abstention."""
    target: Tensor
    """int64 (N,)."""
    places: Tensor
    """int64 (N,): the places of the samples in the training data."""
    progress: float
    """The share of the training that is done, in [0, 1)."""


BatchLoss = Callable[[Batch], Tensor]
"""The mean loss of a batch; it may have a state."""


def mean_of_members(logits: Sequence[Tensor], problem: Problem) -> Tensor:  # noqa: ARG001
    """Return the logarithm of the mean probability of all members: (N, C)."""
    return average_logits(logits)


def spread_abstention(logits: Sequence[Tensor], problem: Problem) -> Tensor:  # noqa: ARG001
    """Spread the probability of abstention evenly over the classes, so that it counts as doubt: (N, C)."""
    probs = logits[0].double().softmax(dim=1)
    return (probs[:, :-1] + probs[:, -1:] / (probs.shape[1] - 1)).log().float()


@dataclass(frozen=True)
class Method:
    """A way of training."""

    loss: Callable[..., BatchLoss]
    """Called with the `Problem` and a setting."""
    settings: tuple[Mapping[str, float], ...]
    is_plain: bool = False
    """Whether it knows nothing of the concern. The best plain method of one model is the baseline."""
    group: str = "losses"
    """Tasks name the groups that they try. Those with long runs try ``"core"`` alone."""
    extra_outputs: int = 0
    """Outputs of the model beside those of the classes."""
    members: int = 1
    """The number of models that are trained; each takes as long as one of another method."""
    combine: Callable[[Sequence[Tensor], Problem], Tensor] = mean_of_members
    """From the outputs of each member to logits (N, C)."""
    tuned_as: str | None = None
    """The method whose choice of a setting is taken over, by its name."""
    applies: Callable[[ConcernSpec], bool] = lambda _: True
    plateau: str | None = None
    """Instead of a cosine, lower the learning rate where this validation metric no longer gets better."""
    stops: bool = False
    """Whether training ends where that metric no longer gets better, at a constant learning rate."""


def plain_loss(problem: Problem, *, label_smoothing: float = SMOOTHING, **_: float) -> BatchLoss:  # noqa: ARG001
    """Make a cross entropy."""
    return lambda batch: cross_entropy(batch.logits, batch.target, label_smoothing=label_smoothing)


def focal(problem: Problem, *, gamma: float) -> BatchLoss:  # noqa: ARG001
    """Make a focal loss: cross entropy times (1 - p)^gamma for the probability p of the true class.

    References:
        Lin, Goyal, Girshick, He, Dollar: Focal Loss for Dense Object Detection, ICCV 2017, Eq. 4.
    """

    def loss(batch: Batch) -> Tensor:
        log_p = -cross_entropy(batch.logits, batch.target, reduction="none")
        missing = (1 - log_p.exp()).clamp(min=1e-6)  # the power of 0 has no derivative
        return (-(missing**gamma) * log_p).mean()

    return loss


def logit_adjustment(problem: Problem, *, tau: float) -> BatchLoss:
    """Make a cross entropy of logits to which the logarithms of class frequencies are added.

    References:
        Menon, Jayasumana, Rawat, Jain, Veit, Kumar: Long-Tail Learning via Logit Adjustment, ICLR 2021, Eq. 10.
    """
    added = tau * (problem.class_counts.clamp(min=1) / problem.class_counts.sum()).log()
    return lambda batch: cross_entropy(batch.logits + added, batch.target, label_smoothing=SMOOTHING)


def cost_weighted(problem: Problem, *, released: float) -> BatchLoss:
    """Make a cross entropy that weighs each true class by the mean cost of mistaking it."""
    row_cost = costs_of(problem.concern, released).sum(dim=1)
    weight = row_cost / row_cost.mean()
    return lambda batch: cross_entropy(batch.logits, batch.target, weight=weight)


def soft_labels(problem: Problem, *, sharpness: float) -> BatchLoss:
    """Make a cross entropy against labels that fall off with the cost of the error.

    References:
        Bertinetto, Mueller, Tertikas, Samangooei, Lord: Making Better Mistakes, CVPR 2020: the label of class j for
        true class i is proportional to exp(-sharpness * cost[i, j]).
    """
    labels = torch.softmax(-sharpness * costs_of(problem.concern, 0.5), dim=1)
    return lambda batch: cross_entropy(batch.logits, labels[batch.target])


def expected_cost(problem: Problem, *, share: float) -> BatchLoss:
    """Make a cross entropy to which a multiple of the expected cost under the model's own probabilities is added.

    References:
        Galdran, Dolz, Chakor, Lombaert, Ben Ayed: Cost-Sensitive Regularization for Diabetic Retinopathy Grading,
        MICCAI 2020.
    """
    costs = costs_of(problem.concern, 0.1)

    def loss(batch: Batch) -> Tensor:
        expected = (batch.logits.softmax(dim=1) * costs[batch.target]).sum(dim=1).mean()
        return cross_entropy(batch.logits, batch.target) + share * expected

    return loss


def class_distance_weighted(problem: Problem, *, power: float) -> BatchLoss:
    """Make a class-distance weighted cross entropy, with costs for the distances of ordinal classes.

    References:
        Polat, Cicek, Gur, Alisik, Temizel: Class Distance Weighted Cross-Entropy Loss for Ulcerative Colitis Severity
        Estimation, MIUA 2022, Eq. 2.
    """
    weights = costs_of(problem.concern, 0.5) ** power
    return lambda batch: -(log_complement(batch.logits) * weights[batch.target]).sum(dim=1).mean()


def concern(problem: Problem, *, share: float) -> BatchLoss:
    """Make a `ConcernLoss` with released pairs at a tenth."""
    loss = ConcernLoss(costs_of(problem.concern, 0.1).fill_diagonal_(1), concern_share=share, label_smoothing=SMOOTHING)
    return lambda batch: loss(batch.logits, batch.target)


def softmax_margin(problem: Problem, *, margin: float) -> BatchLoss:
    """Make a `SoftmaxMarginLoss` with released pairs at a tenth of the margin."""
    loss = SoftmaxMarginLoss(costs_of(problem.concern, 0.1), margin=margin, label_smoothing=SMOOTHING)
    return lambda batch: loss(batch.logits, batch.target)


def ramped_margin(problem: Problem, *, margin: float, label_smoothing: float) -> BatchLoss:
    """Make the loss of `recommended`: a softmax margin for dangerous errors alone, that grows while training."""
    loss = margin_loss(problem.concern, margin, label_smoothing)
    ramp = MarginRamp(loss, problem.steps)

    def of_batch(batch: Batch) -> Tensor:
        value: Tensor = loss(batch.logits, batch.target)
        ramp.step()
        return value

    return of_batch


def adaptive_margin(problem: Problem, *, margin: float) -> BatchLoss:
    """Make a softmax margin that is smaller for pairs of classes that are separated already.

    The margin of a pair is that of its cost times how often it is confused, by a moving average of the probabilities
    that the model gives, against the mean over the dangerous pairs; at most 1.
    """
    costs = costs_of(problem.concern, 0.1)
    mass = torch.full_like(costs, 1 / len(costs))
    is_dangerous = problem.concern.dangerous_pairs()

    def of_batch(batch: Batch) -> Tensor:
        probs = batch.logits.detach().softmax(dim=1)
        mass.lerp_(mass.index_copy(0, *_class_means(probs, batch.target)), 0.05)
        shares = costs * (mass / mass[is_dangerous].mean()).clamp(max=1)
        return cross_entropy(batch.logits + margin * shares[batch.target], batch.target, label_smoothing=SMOOTHING)

    return of_batch


def _class_means(probs: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return the classes of a batch, and the mean probabilities of the samples of each."""
    classes, place, counts = torch.unique(target, return_inverse=True, return_counts=True)
    sums = probs.new_zeros(len(classes), probs.shape[1]).index_add_(0, place, probs)
    return classes, sums / counts.unsqueeze(1)


def hierarchical(problem: Problem, *, alpha: float) -> BatchLoss:
    """Make a hierarchical cross entropy over the tree of classes and of their groups by released pairs.

    References:
        Bertinetto, Mueller, Tertikas, Samangooei, Lord: Making Better Mistakes, CVPR 2020, Eq. 4: an edge at height h
        weighs exp(-alpha * h).
    """
    groups = tree_of(problem.concern)
    weight = torch.tensor(-alpha).exp()

    def loss(batch: Batch) -> Tensor:
        of_class = -cross_entropy(batch.logits, batch.target, reduction="none")
        of_group = _group_log_probs(batch.logits, groups)[range(len(batch.target)), groups[batch.target]]
        return -(of_class - of_group + weight * of_group).mean()

    return loss


def fine_or_coarse(problem: Problem, *, label_smoothing: float) -> BatchLoss:
    """Make the loss of the classes for the first model, and that of their groups for the second."""
    if problem.member == 0:
        return plain_loss(problem, label_smoothing=label_smoothing)
    groups = tree_of(problem.concern)
    return lambda batch: -_group_log_probs(batch.logits, groups)[range(len(batch.target)), groups[batch.target]].mean()


def fine_times_coarse(logits: Sequence[Tensor], problem: Problem) -> Tensor:
    """Multiply the probability of each class by that of its group from a second model.

    References:
        Jain, Karthik, Gandhi: Test-Time Amendment with a Coarse Classifier for Fine-Grained Classification, NeurIPS
        2023 (HiE).
    """
    groups = tree_of(problem.concern)
    return (logits[0].log_softmax(dim=1) + _group_log_probs(logits[1], groups)[:, groups]).log_softmax(dim=1)


def _group_log_probs(logits: Tensor, groups: Tensor) -> Tensor:
    """Return the log-probabilities of groups: (N, G)."""
    log_probs = logits.log_softmax(dim=1)
    return torch.stack([log_probs[:, groups == g].logsumexp(dim=1) for g in range(int(groups.max()) + 1)], dim=1)


def deep_gamblers(problem: Problem, *, payoff: float) -> BatchLoss:
    """Make the loss of Deep Gamblers, after some steps with cross entropy.

    References:
        Liu, Wang, Liang, Salakhutdinov, Morency, Ueda: Deep Gamblers: Learning to Abstain with Portfolio Theory,
        NeurIPS 2019, Eq. 8; the reward is ``1 + payoff * (C - 1)``.
    """
    reward = torch.tensor(1 + payoff * (len(problem.class_counts) - 1))

    def loss(batch: Batch) -> Tensor:
        if batch.progress < PRETRAINING:
            return cross_entropy(batch.logits[:, :-1], batch.target)
        log_probs = batch.logits.log_softmax(dim=1)
        of_true = log_probs.gather(1, batch.target.unsqueeze(1)).squeeze(1)
        return -torch.logaddexp(of_true, log_probs[:, -1] - reward.log()).mean()

    return loss


def self_adaptive(problem: Problem, *, momentum: float) -> BatchLoss:
    """Make the loss of self-adaptive training for selective classification, after some steps with cross entropy.

    References:
        Huang, Zhang, Zhang: Self-Adaptive Training: beyond Empirical Risk Minimization, NeurIPS 2020, Section 5.
    """
    belief = torch.ones(int(problem.class_counts.sum()))
    """In the label of each training sample."""

    def loss(batch: Batch) -> Tensor:
        if batch.progress < PRETRAINING:
            return cross_entropy(batch.logits[:, :-1], batch.target)
        log_probs = batch.logits.log_softmax(dim=1)
        of_true = log_probs.gather(1, batch.target.unsqueeze(1)).squeeze(1)
        among_classes = batch.logits.detach()[:, :-1].softmax(dim=1).gather(1, batch.target.unsqueeze(1)).squeeze(1)
        kept = belief[batch.places] = momentum * belief[batch.places] + (1 - momentum) * among_classes
        return -(kept * of_true + (1 - kept) * log_probs[:, -1]).mean()

    return loss


def costs_of(concern: ConcernSpec, released: float) -> Tensor:
    """Return float32 (C, C) costs with another one for released pairs, and 0 on the diagonal."""
    return without_diagonal(torch.where(concern.released(), released, concern.matrix())).float()


def tree_of(concern: ConcernSpec) -> Tensor:
    """Return the group of each class, int64 (C,): classes that may be mistaken for each other are in one group."""
    mutual = concern.released() & concern.released().T
    reach = mutual | torch.eye(len(mutual), dtype=torch.bool)
    for _ in range(len(reach)):
        reach = (reach.float() @ reach.float()) > 0
    groups: Tensor = torch.unique(reach.float().argmax(dim=1), return_inverse=True)[1]
    return groups


def has_tree(concern: ConcernSpec) -> bool:
    """Tell whether the released pairs make groups of classes: neither one for all nor one for each."""
    return 1 < int(tree_of(concern).max()) + 1 < len(concern.classes)


def _each(name: str, *values: float, **others: float) -> tuple[dict[str, float], ...]:
    return tuple({name: value, **others} for value in values)


_SMOOTHINGS = _each("label_smoothing", 0.0, 0.02, 0.1)
_RAMPED = tuple({"margin": each[0], "label_smoothing": each[1]} for name, each in LOSSES.items() if name != PLAIN)
_SCHEDULES = _each("patience", 1, 2, 4)
METHODS: dict[str, Method] = {
    "cross entropy": Method(plain_loss, _SMOOTHINGS, is_plain=True, group="core"),
    "focal loss": Method(focal, _each("gamma", 0.5, 1.0, 2.0), is_plain=True),
    "logit adjustment": Method(logit_adjustment, _each("tau", 0.5, 1.0, 1.5), is_plain=True),
    "averaged weights": Method(plain_loss, _each("averaging", 0.99, 0.997, 0.999), is_plain=True, group="core"),
    "cost-weighted cross entropy": Method(cost_weighted, _each("released", 0.1, 0.3, 0.5)),
    "soft labels": Method(soft_labels, _each("sharpness", 4.0, 8.0, 16.0)),
    "expected cost": Method(expected_cost, _each("share", 1.0, 3.0, 10.0)),
    "class-distance weighted (CDW-CE)": Method(class_distance_weighted, _each("power", 1.0, 2.0, 4.0)),
    "concern loss": Method(concern, _each("share", 0.5, 0.8, 0.95), group="core"),
    "softmax margin": Method(softmax_margin, _each("margin", 1.0, 2.0, 4.0), group="core"),
    "ramped margin": Method(ramped_margin, _RAMPED, group="core"),
    "adaptive margin": Method(adaptive_margin, _each("margin", 2.0, 3.0, 4.0)),
    "hierarchical (HXE)": Method(hierarchical, _each("alpha", 0.1, 0.3, 0.5), applies=has_tree),
    "fine and coarse model (HiE)": Method(
        fine_or_coarse, _SMOOTHINGS, members=2, combine=fine_times_coarse, applies=has_tree
    ),
    "self-adaptive training": Method(
        self_adaptive, _each("momentum", 0.5, 0.7, 0.9), is_plain=True, extra_outputs=1, combine=spread_abstention
    ),
    "Deep Gamblers": Method(
        deep_gamblers, _each("payoff", 0.3, 0.6, 0.9), is_plain=True, extra_outputs=1, combine=spread_abstention
    ),
    "ensemble of 5": Method(
        plain_loss, _SMOOTHINGS, is_plain=True, group="ensembles", members=5, tuned_as="cross entropy"
    ),
    "ensemble of 5, ramped margin": Method(
        ramped_margin, _RAMPED, group="ensembles", members=5, tuned_as="ramped margin"
    ),
    **{
        f"{way} by {name}": Method(plain_loss, _SCHEDULES, is_plain=True, group="schedules", plateau=by, stops=stops)
        for way, stops in (("plateau", False), ("stopped", True))
        for name, by in (("loss", "cross_entropy"), ("accuracy", "accuracy"), ("MPCS", "mpcs"))
    },
    "trees": Method(plain_loss, _each("leaf", 1.0, 2.0, 4.0), is_plain=True, group="trees"),
    "trees, weights by cost": Method(plain_loss, _each("leaf", 1.0, 2.0, 4.0, released=0.1), group="trees"),
}
"""By the name that tables show."""


def method_of(name: str) -> Method:
    """Return a method of ours by its name, or a stranger's by its import path, ``package.module:attribute``.

    Raises:
        ValueError: If there is none, or it is no `Method` with `SETTINGS` settings.
    """
    if name in METHODS:
        return METHODS[name]
    if ":" not in name:
        raise ValueError(f"method must be an import path such as package.module:METHOD, or one of {', '.join(METHODS)}")
    method = import_attribute(name)
    if not isinstance(method, Method) or len(method.settings) != SETTINGS:
        raise ValueError(f"method {name} must be a Method with {SETTINGS} settings")
    return method
