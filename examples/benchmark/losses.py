"""The losses that are compared, as matrices over classes, so that many models with different losses train at once.

The loss of a sample with label y and logits z is the cross entropy of the class probabilities, softmax(z + r A[y]),
against the label distribution T[y], times the weight w[y], plus the sum over classes j of K[y, j] softmax(z)_j. r is
the share of the margin at a step: see `RAMP`. Few losses need more than T, A, w and K: see the other fields of
`LossData`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern.decision import without_diagonal
from mpcs_torch.learning.factor_choice import harm_matrix
from mpcs_torch.learning.recommended import FLOOR, FULL_MARGIN

RAMP = (0.1, 0.6)
"""The shares of the steps between which a margin grows from 0 to its full value."""


class Problem(NamedTuple):
    """The facts about a task that a loss may use."""

    concern: ConcernSpec
    class_counts: Tensor
    """int64 (C,): training samples."""
    smoothing: float = 0.0
    """The label smoothing of losses whose setting is another one."""


@dataclass(frozen=True)
class LossData:
    """A loss as data; see the top of this file."""

    labels: Tensor
    """T, (C, C): the label distribution of each true class."""
    added: Tensor
    """A, (C, C): what is added to logits, in nats."""
    weights: Tensor
    """w, (C,)."""
    errors: Tensor
    """K, (C, C): the cost of each wrong class."""
    powers: Tensor
    """(C,): each gradient is multiplied by the product of p_j ** powers_j."""
    frame: Tensor
    """(C, C): logits are cosines between outputs and the rows of the frame, if `has_frame`."""
    radius: float = 0.0
    """The distance by which weights move uphill before the gradient is taken: sharpness-aware minimization."""
    is_ramped: bool = False
    """Whether A grows with the steps."""
    is_logarithmic: bool = False
    """Whether K is a cost of -log(1 - p_j) instead of p_j."""
    is_by_row: bool = False
    """Whether the loss of a sample is multiplied by what its error costs."""
    has_frame: bool = False
    """Whether logits are `SCALE` times cosines."""
    hidden: int = 0
    """If above 0, the number of hidden units."""
    temperature: float = 0.0
    """If above 0, labels are the mean probabilities of `TEACHERS` models at this temperature, on mixed inputs."""
    branches: int = 1
    """The number of copies that train apart from the middle of the steps on, and whose weights are averaged."""


SCALE = 10.0
"""The scale of cosines as logits."""
TEACHERS, WIDE = 4, 128
"""The models whose mean is a teacher, and the hidden units of larger networks."""


def plain(problem: Problem, smoothing: float) -> LossData:
    """Return cross entropy with label smoothing."""
    classes = len(problem.class_counts)
    zeros = torch.zeros(classes, classes)
    labels = (1 - smoothing) * torch.eye(classes) + smoothing / classes
    return LossData(
        labels, zeros, torch.ones(classes), zeros, torch.zeros(classes), torch.eye(classes)
    )


def logit_adjustment(problem: Problem, tau: float) -> LossData:
    """Add multiples of the logarithms of class frequencies to logits.

    References:
        Menon, Jayasumana, Rawat, Jain, Veit, Kumar: Long-Tail Learning via Logit Adjustment, ICLR 2021, Eq. 10.
    """
    counts = problem.class_counts.clamp(min=1)
    added = tau * (counts / counts.sum()).log()
    return replace(plain(problem, problem.smoothing), added=added.expand(len(counts), -1))


def margins(problem: Problem, full: float, floor: float, smoothing: float) -> LossData:
    """Return a margin of ``full`` nats for errors of harm 1, and of the share ``floor`` of it for harmless errors."""
    harm = harm_matrix(problem.concern).float()
    added = without_diagonal(full * (floor + (1 - floor) * harm))
    return replace(plain(problem, smoothing), added=added, is_ramped=True)


def uniform_margin(problem: Problem, full: float) -> LossData:
    """Return a margin that is equal for all errors."""
    return margins(problem, full, 1.0, problem.smoothing)


def dangerous_margin(problem: Problem, full: float) -> LossData:
    """Return a margin in proportion to harm."""
    return margins(problem, full, 0.0, problem.smoothing)


def floored_margin(problem: Problem, smoothing: float) -> LossData:
    """Return a margin that grows with harm, and is not 0 without harm."""
    return margins(problem, FULL_MARGIN, FLOOR, smoothing)


def class_weights(problem: Problem, released: float) -> LossData:
    """Weigh each true class by the mean cost of mistaking it."""
    row_costs = costs_of(problem.concern, released).sum(dim=1)
    return replace(plain(problem, problem.smoothing), weights=row_costs / row_costs.mean())


def soft_labels(problem: Problem, sharpness: float) -> LossData:
    """Let labels fall off with the cost of the error.

    References:
        Bertinetto, Mueller, Tertikas, Samangooei, Lord: Making Better Mistakes, CVPR 2020: the label of class j for
        true class i is proportional to exp(-sharpness * cost[i, j]).
    """
    labels = torch.softmax(-sharpness * costs_of(problem.concern, 0.5), dim=1)
    return replace(plain(problem, 0.0), labels=labels)


def expected_cost(problem: Problem, share: float) -> LossData:
    """Add a multiple of the expected cost under the model's own probabilities.

    References:
        Galdran, Dolz, Chakor, Lombaert, Ben Ayed: Cost-Sensitive Regularization for Diabetic Retinopathy Grading,
        MICCAI 2020.
    """
    return replace(
        plain(problem, problem.smoothing), errors=share * costs_of(problem.concern, 0.1)
    )


def concern_loss(problem: Problem, share: float) -> LossData:
    """Return the loss of `mpcs_torch.learning.ConcernLoss`, with released pairs at a tenth."""
    costs = costs_of(problem.concern, 0.1)
    data = plain(problem, problem.smoothing)
    errors = share * costs / costs.sum(dim=1, keepdim=True)
    return replace(
        data, weights=(1 - share) * data.weights, errors=errors, is_logarithmic=True
    )


def row_weights(problem: Problem, smoothing: float) -> LossData:
    """Weigh each sample by what its error costs."""
    return replace(plain(problem, smoothing), is_by_row=True)


def row_costs(problem: Problem, share: float) -> LossData:
    """Return cross entropy, and the share ``share`` of the expected cost of each row."""
    data = plain(problem, problem.smoothing)
    errors = share * without_diagonal(torch.ones_like(data.errors))
    return replace(data, weights=(1 - share) * data.weights, errors=errors, is_by_row=True)


def beta_loss(problem: Problem, strength: float) -> LossData:
    """Return the expected cost under costs that have a Beta distribution; two classes.

    The gradient is that of cross entropy times p^a (1 - p)^b, for the probability p of class 1. The mean of the
    distribution, a / (a + b), is the threshold of the costs, and a + b is twice the strength.

    References:
        Komisarenko, Kull: Cost-Sensitive Classification with Cost Uncertainty: Do We Need Surrogate Losses?, Machine
        Learning 2025.
    """
    costs = costs_of(problem.concern, 0.5)
    threshold = costs[0, 1] / (costs[0, 1] + costs[1, 0])
    powers = 2 * strength * torch.stack([1 - threshold, threshold])
    return replace(plain(problem, problem.smoothing), powers=powers)


def sharpness_aware(problem: Problem, radius: float) -> LossData:
    """Return the margin with a floor under sharpness-aware minimization.

    References:
        Rangwani, Aithal, Mishra, Babu: Escaping Saddle Points for Effective Generalization on Class-Imbalanced Data,
        NeurIPS 2022.
    """
    return replace(margins(problem, FULL_MARGIN, FLOOR, problem.smoothing), radius=radius)


def branched(problem: Problem, smoothing: float) -> LossData:
    """Train four copies apart from the middle of the steps on, and average their weights.

    References:
        The benefit of averaging children of one parent is described in Jolicoeur-Martineau, Gervais, Fatras, Zhang,
        Lacoste-Julien: PopulAtion Parameter Averaging (PAPA), TMLR 2024, and in the works that it cites.
    """
    return replace(plain(problem, smoothing), branches=4)


def wide(
    problem: Problem, setting: float, *, make: Callable[[Problem, float], LossData]
) -> LossData:
    """Return the loss that ``make`` makes, for a larger network."""
    return replace(make(problem, setting), hidden=WIDE)


def distilled(problem: Problem, temperature: float) -> LossData:
    """Train a larger network to agree with the mean of several models on mixed inputs.

    References:
        Beyer, Zhai, Royer, Markeeva, Anil, Kolesnikov: Knowledge Distillation: A Good Teacher is Patient and
        Consistent, CVPR 2022.
    """
    return replace(plain(problem, 0.0), hidden=WIDE, temperature=temperature)


def hierarchical_frame(problem: Problem, decay: float) -> LossData:
    """Fix the classifier to directions whose cosines are higher for cheaper errors: exp(-decay * cost).

    References:
        Liang, Davis: Inducing Neural Collapse to a Fixed Hierarchy-Aware Frame for Reducing Mistake Severity, ICCV
        2023. There, costs are the heights of a tree, and a transformation of features comes before the frame.
    """
    costs = costs_of(problem.concern, 0.5)
    similarity = torch.exp(-decay * (costs + costs.T) / 2).double()
    values, vectors = torch.linalg.eigh(similarity)
    frame = vectors * values.clamp(min=1e-6).sqrt()
    return replace(
        plain(problem, problem.smoothing),
        frame=normalize(frame, dim=1).float(),
        has_frame=True,
    )


def costs_of(concern: ConcernSpec, released: float) -> Tensor:
    """Return float32 (C, C) costs with another one for released pairs, and 0 on the diagonal."""
    return without_diagonal(
        torch.where(concern.released(), released, concern.mpcs_weights())
    ).float()


SMOOTHING = "label smoothing"
"""The setting of losses that choose it themselves; others have that of the chosen cross entropy."""
PLAIN = "cross entropy"
UNIFORM = "margin, equal for all errors"
DANGEROUS = "margin for dangerous errors"
FLOORED = "margin with a floor"
WIDE_PLAIN = f"{PLAIN}, 128 hidden units"
WIDE_FLOORED = f"{FLOORED}, 128 hidden units"
WIDE_DANGEROUS = f"{DANGEROUS}, 128 hidden units"
DISTILLED = "mean of four models, distilled into 128 hidden units"


@dataclass(frozen=True)
class Loss:
    """A way to train, with the settings that are tried on validation samples."""

    make: Callable[[Problem, float], LossData]
    setting: str
    values: tuple[float, ...]
    knows_costs: bool = True
    group: str = "core"
    """Tasks name the groups that they try."""
    members: int = 1
    """The number of models of which a mean is judged."""
    claim: str = ""
    """The statements of a method's paper."""


LOSSES = {
    PLAIN: Loss(plain, SMOOTHING, (0.0, 0.02, 0.1), knows_costs=False, members=4),
    UNIFORM: Loss(uniform_margin, "nats", (1.0, 2.0, 4.0), knows_costs=False, members=4),
    FLOORED: Loss(floored_margin, SMOOTHING, (0.0, 0.02, 0.05), members=4),
    DANGEROUS: Loss(dangerous_margin, "nats", (1.0, 2.0, 4.0)),
    "logit adjustment": Loss(
        logit_adjustment, "tau", (0.5, 1.0, 1.5), knows_costs=False, group="others"
    ),
    "class weights by cost": Loss(
        class_weights, "released", (0.1, 0.3, 0.5), group="others"
    ),
    "soft labels": Loss(soft_labels, "sharpness", (4.0, 8.0, 16.0), group="others"),
    "expected cost": Loss(expected_cost, "share", (1.0, 3.0, 10.0), group="others"),
    "concern loss": Loss(concern_loss, "share", (0.5, 0.8, 0.95), group="others"),
    "beta loss": Loss(
        beta_loss,
        "strength",
        (0.25, 0.5, 1.0),
        group="binary",
        claim="better than cross entropy, label smoothing and focal loss in costs, accuracy and AUC",
    ),
    "margin with a floor, sharpness-aware": Loss(
        sharpness_aware,
        "radius",
        (0.02, 0.05, 0.1),
        group="literature",
        claim="long tails: +6.2 points on rare classes and +4 on all, against a margin alone",
    ),
    "branches, averaged": Loss(
        branched,
        SMOOTHING,
        (0.0, 0.02, 0.1),
        knows_costs=False,
        group="literature",
        claim="averages of weights: up to +0.8 points on CIFAR-10, +1.9 on CIFAR-100",
    ),
    WIDE_PLAIN: Loss(
        partial(wide, make=plain),
        SMOOTHING,
        (0.0, 0.02, 0.1),
        knows_costs=False,
        group="wide",
    ),
    WIDE_FLOORED: Loss(
        partial(wide, make=floored_margin), SMOOTHING, (0.0, 0.02, 0.05), group="wide"
    ),
    WIDE_DANGEROUS: Loss(
        partial(wide, make=dangerous_margin), "nats", (1.0, 2.0, 4.0), group="wide"
    ),
    DISTILLED: Loss(
        distilled,
        "temperature",
        (1.0, 2.0, 4.0),
        knows_costs=False,
        group="literature",
        claim="a student that sees the mixed images of its teacher, and trains for long, learns its whole function",
    ),
    "hierarchical frame (HAFrame)": Loss(
        hierarchical_frame,
        "decay",
        (0.3, 1.0, 3.0),
        group="literature",
        claim="less severe mistakes at the same accuracy",
    ),
    "weights by the cost of the row": Loss(
        row_weights, SMOOTHING, (0.0, 0.02, 0.1), group="rows"
    ),
    "expected cost of the row": Loss(row_costs, "share", (0.3, 0.6, 0.9), group="rows"),
}
"""By the name that tables show; each has three settings, which are tried on validation samples."""
