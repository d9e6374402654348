"""Class priors of unlabelled samples: how frequent each class is, how sure that is, and whether only that changed."""

import warnings
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.calibration.fitting import CalibrationWarning, LabelledLogits, in_float64, labelled_logits
from mpcs_torch.calibration.scaling import TemperatureScaling, VectorScaling
from mpcs_torch.errors import quoted, require
from mpcs_torch.functional.concern.decision import shift_priors
from mpcs_torch.functional.detection.interval import check_confidence
from mpcs_torch.functional.inputs.checks import check_choice

PriorMethod = Literal["em", "black_box"]
LEVEL = 0.05
"""A lower p-value warns."""
EM_STEPS, EM_CHANGE = 1000, 1e-6
"""EM stops where no prior changes by more; the step after it corrects what is left."""
UNSEEN = 2
"""Variances count so many more validation samples of each class, drawn from all: a confusion may not have been seen."""
FEWEST_RANKED = 20
"""Validation samples of a class with a statistic of its own in the test; rarer ones share one."""


class LabelShiftWarning(UserWarning):
    """Unlabelled samples differ from the validation samples in more than class frequencies: the estimate is wrong."""


class PriorEstimate(NamedTuple):
    """Class frequencies of unlabelled samples, with an interval for each, and a test of what they rest on."""

    priors: Tensor
    """``(C,)``, float64, above 0 with a sum of 1: as ``priors`` of a `DecisionRule` or of `shift_priors`."""
    low: Tensor
    """``(C,)``: the lower end of the interval of each class alone."""
    high: Tensor
    """``(C,)``: the upper end."""
    validation_priors: Tensor
    """``(C,)``: the class frequencies of the validation samples."""
    p_value: float
    """Of the test that the samples of each class look as in validation. Below 0.05, do not use the estimate."""


def estimate_priors(
    preds: Tensor, target: Tensor, unlabelled: Tensor, *, method: PriorMethod = "em", confidence: float = 0.95
) -> PriorEstimate:
    r"""Estimate class frequencies of unlabelled samples, with intervals, and test whether nothing else has changed.

    This assumes label shift: classes are more or less frequent than in validation, but samples of each look the same.
    Then any statistic :math:`g(x)` with C values has the mean :math:`\sum_c w_c E[g \mid c]` at priors w. So
    :math:`h(x) = g(x) A^{-1}`, where the rows of A are the means of g over the validation samples of each class,
    indicates the classes without bias: its mean over the unlabelled samples estimates w, whatever g is. The better g
    tells the classes apart, the smaller the error. Its variance, by the delta method, covers both samples, and the
    interval inverts the score test, so it is Wilson's where validation shows no error.

    The test asks whether the ranks of the probabilities of each class, among those of the validation samples, are on
    average those of such a mixture. It does not see changes that leave the probabilities as they are, such as classes
    whose meanings are swapped.

    Args:
        preds: ``(N, C)`` finite logits of validation samples that the model was not trained on. For probabilities, use
            their logarithms. They need not be calibrated: temperature and vector scaling are fitted to them.
        target: ``(N,)`` integer class indices in ``[0, C)``; at least two samples of each class.
        unlabelled: ``(M, C)`` finite logits of the deployment. All samples must be independent.
        method: ``"em"``: g are the probabilities under the priors of EM, which reads more from each sample.
            ``"black_box"``: g is the most probable class, so A is the confusion matrix.
        confidence: Of each interval, in (0, 1).

    Raises:
        ValueError: If a shape, a dtype or a value breaks its rule above, or if g does not tell the classes apart.

    Warns:
        LabelShiftWarning: If the p-value is below 0.05.

    References:
        Saerens, Latinne, Decaestecker: Adjusting the Outputs of a Classifier to New a Priori Probabilities, 2002 (EM).
        Lipton, Wang, Smola: Detecting and Correcting for Label Shift with Black Box Predictors, ICML 2018.
        Alexandari, Kundaje, Shrikumar: Maximum Likelihood with Bias-Corrected Calibration is Hard-To-Beat at Label
        Shift Adaptation, ICML 2020. The step after EM is ours: without it, imperfect calibration is a bias.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> target = torch.randint(0, 3, (2000,), generator=generator)
        >>> deployed = torch.multinomial(torch.tensor([0.7, 0.2, 0.1]), 2000, True, generator=generator)
        >>> preds, unlabelled = (
        ...     3 * torch.eye(3)[labels] + torch.randn(2000, 3, generator=generator) for labels in (target, deployed)
        ... )
        >>> estimate = estimate_priors(preds, target, unlabelled)
        >>> print([round(prior, 2) for prior in estimate.priors.tolist()], estimate.p_value > 0.05)
        [0.71, 0.18, 0.11] True
    """
    check_choice("method", method, PriorMethod)
    check_confidence(confidence)
    samples = labelled_logits(preds, target, preds.shape[1] if preds.ndim > 1 else 2)
    classes = samples.logits.shape[1]
    deployed = _checked_unlabelled(unlabelled, classes).to(samples.logits.device)
    labels = _Labels(samples.target, samples.target.bincount(minlength=classes))
    if (labels.counts < 2).any():
        rare = (labels.counts < 2).nonzero().flatten().tolist()
        raise ValueError(f"target must hold each class at least twice, but does not hold {quoted(rare)}.")
    validation, deployment = _calibrated(samples, deployed)
    shares = labels.counts / labels.counts.sum().double()
    if method == "em":
        shift = {"training_priors": shares, "priors": _em_priors(deployment, shares)}
        known, unknown = shift_priors(validation, **shift), shift_priors(deployment, **shift)
    else:
        one_hot = torch.eye(classes).to(shares)
        known, unknown = one_hot[validation.argmax(dim=1)], one_hot[deployment.argmax(dim=1)]
    by_class = labels.means(known)
    if torch.linalg.matrix_rank(by_class) < classes:
        raise ValueError(f"preds must tell the classes apart, but those of {method!r} are linearly dependent.")
    indicators = torch.linalg.inv(by_class)
    known, unknown = known @ indicators, unknown @ indicators
    priors = unknown.mean(dim=0).clamp(min=0.5 / len(unknown))  # no class is ruled out
    priors = priors / priors.sum()
    low, high = _score_interval(priors, known, labels, len(unknown), confidence)
    p_value = _p_value(priors, known, unknown, labels, _ranks(validation, deployment, labels.counts))
    if p_value < LEVEL:
        warnings.warn(
            f"the priors must not be used: more than class frequencies has changed (p = {p_value:.2g}).",
            LabelShiftWarning,
            stacklevel=2,
        )
    return PriorEstimate(priors, low, high, shares, p_value)


class _Labels(NamedTuple):
    """The classes of the validation samples."""

    target: Tensor
    """(N,), int64."""
    counts: Tensor
    """(C,), int64, at least 2."""

    def means(self, values: Tensor) -> Tensor:
        """Return the means (C, K) of values (N, K) over the samples of each class."""
        sums = values.new_zeros(len(self.counts), values.shape[1]).index_add_(0, self.target, values)
        return sums / self.counts.unsqueeze(1)


def _checked_unlabelled(unlabelled: Tensor, classes: int) -> Tensor:
    are_logits = unlabelled.is_floating_point() and unlabelled.ndim == 2 and unlabelled.shape[1] == classes
    rule, given = f"of shape (M, {classes})", f"{unlabelled.dtype} {tuple(unlabelled.shape)}"
    require(are_logits, f"unlabelled must be floating point logits {rule}", given)
    if len(unlabelled) < 2 or not unlabelled.isfinite().all():
        raise ValueError("unlabelled must hold finite logits of at least two samples.")
    return in_float64(unlabelled)


def _calibrated(samples: LabelledLogits, deployed: Tensor) -> tuple[Tensor, Tensor]:
    """Return probabilities of both samples; without an optimal calibration they only tell the classes apart less."""
    logits, new = samples.logits.log_softmax(dim=1), deployed.log_softmax(dim=1)  # a constant of a row means nothing
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        temperature = TemperatureScaling().fit(logits, samples.target).to(new.device)
        vector = VectorScaling(new.shape[1]).fit(temperature(logits), samples.target).to(new.device)
    return vector(temperature(logits)).softmax(dim=1), vector(temperature(new)).softmax(dim=1)


def _em_priors(probs: Tensor, shares: Tensor) -> Tensor:
    """Return the priors (C,) that explain probabilities (M, C) best."""
    priors = shares
    for _ in range(EM_STEPS):
        shifted = shift_priors(probs, training_priors=shares, priors=priors)
        before = priors
        # One sample more, a part of it of each class, keeps all priors above 0.
        priors = (shifted.sum(dim=0) + 1 / len(shares)) / (len(probs) + 1)
        if (priors - before).abs().amax() < EM_CHANGE:
            break
    return priors


def _score_interval(
    priors: Tensor, known: Tensor, labels: _Labels, unlabelled: int, confidence: float
) -> tuple[Tensor, Tensor]:
    """Return all priors t of each class, the others in proportion, with (estimate - t)^2 <= quantile^2 variance(t).

    The variance is that of an indicator in the mixture, by the number of unlabelled samples, and that of its mean over
    each class in validation, where it is 1 for its own class and 0 for others: together quadratic in t.
    """
    own = torch.eye(len(priors)).to(priors)
    spread = labels.means((known - own[labels.target]).square()).T  # (class of the indicator, true class)
    from_all = known.square().mean(dim=0).unsqueeze(1) + own * (1 - 2 * known.mean(dim=0))
    error = (spread * labels.counts + UNSEEN * from_all) / (labels.counts * (labels.counts - 1))
    others = priors * (1 - own)
    others = others / others.sum(dim=1, keepdim=True)
    square, other_square = 1 + spread.diag(), (others * spread).sum(dim=1)
    own_error, other_error = error.diag(), (others.square() * error).sum(dim=1)
    scale = torch.special.ndtri(torch.tensor((1 + confidence) / 2, dtype=torch.float64)).item() ** 2
    a = 1 + scale / unlabelled - scale * (own_error + other_error)
    b = priors + scale * (square - other_square) / (2 * unlabelled) - scale * other_error
    c = priors.square() - scale * (other_square / unlabelled + other_error)
    root = (b.square() - a * c).clamp(min=0).sqrt()
    low, high = (torch.where(a > 0, end / a, fallback) for end, fallback in ((b - root, 0.0), (b + root, 1.0)))
    return low.clamp(0, 1), high.clamp(0, 1)


def _ranks(validation: Tensor, deployment: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rank of the probability of each class among validation samples, from -1/2 to 1/2: (N, K), (M, K).

    The ranks of rare classes are added up in one column.
    """
    in_order = validation.T.contiguous().sort(dim=1).values
    column = torch.where(counts >= FEWEST_RANKED, torch.arange(len(counts), device=counts.device), len(counts))

    def ranks(probs: Tensor) -> Tensor:
        values = probs.T.contiguous()
        places = torch.searchsorted(in_order, values) + torch.searchsorted(in_order, values, right=True)
        by_class = (places / (2 * len(validation)) - 0.5).T.to(probs)
        return probs.new_zeros(len(probs), len(counts) + 1).index_add_(1, column, by_class)

    return ranks(validation), ranks(deployment)


def _p_value(
    priors: Tensor, known: Tensor, unknown: Tensor, labels: _Labels, statistics: tuple[Tensor, Tensor]
) -> float:
    """Test that the mean of statistics is as expected from the classes that the indicators indicate.

    What the indicators do not explain has the mean 0 in each class, so in any mixture. This is Hotelling's test, with
    the degrees of freedom of Nel and van der Merwe (1986), because the covariance is that of several samples.
    """
    from scipy.special import fdtrc

    by_class = labels.means(statistics[0])
    residuals, tested = statistics[0] - known @ by_class, statistics[1] - unknown @ by_class
    weights = priors / (labels.counts * (labels.counts - 1)).sqrt()
    weighted = residuals * weights[labels.target].unsqueeze(1)
    from_all = UNSEEN * weights.square().sum() * (residuals.T @ residuals) / len(residuals)
    sampled = tested.T.cov() / len(tested)
    covariance = sampled + weighted.T @ weighted + from_all
    mean, rank = tested.mean(dim=0), int(torch.linalg.matrix_rank(covariance, hermitian=True))
    distance = float(mean @ torch.linalg.pinv(covariance, hermitian=True) @ mean)
    trace = sampled.trace()
    traces = labels.means(weighted.square()).sum(dim=1) * labels.counts
    own = trace.square() / (len(tested) - 1) + (traces.square() / (labels.counts - 1)).sum()
    freedom = float((trace + traces.sum()).square() / own)
    left = max(freedom - rank + 1, 1.0)
    return float(fdtrc(rank, left, distance * left / (rank * freedom)))
