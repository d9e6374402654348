"""Estimate class priors of unlabelled samples, with intervals and a test of label shift."""

import warnings
from collections.abc import Mapping, Sequence
from math import floor, inf, log10
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.calibration.scaling import (
    CalibrationWarning,
    LabelledLogits,
    TemperatureScaling,
    VectorScaling,
    in_float64,
    labelled_logits,
)
from mpcs_torch.errors import InvalidValueError, require
from mpcs_torch.functional.comparison.confidence_intervals import MIN_UNITS
from mpcs_torch.functional.concern.decision import shift_priors
from mpcs_torch.functional.inputs.checks import check_choice
from mpcs_torch.functional.inputs.confidence import CONFIDENCE, LEVEL, check_confidence
from mpcs_torch.functional.inputs.decisions import highest_class
from mpcs_torch.functional.inputs.groups import group_codes, row_names

PriorMethod = Literal["em", "black_box"]
EM_STEPS, EM_CHANGE = 1000, 1e-6
"""The maximum number of EM (expectation maximization) steps, and the change of the priors below which EM stops."""
UNSEEN = 2
"""The number of pseudo-samples added to each class in variances, because validation may lack rare confusions."""
MIN_RANKED = 20
"""The minimum number of validation samples of a class to test the class separately; rarer classes are pooled."""
MAX_WIDTH = 1.0
"""The maximum width of a usable interval, divided by the estimate."""


class LabelShiftWarning(UserWarning):
    """A warning that samples differ from validation in more than class frequencies, so the estimate is invalid."""


class ClassPrior(NamedTuple):
    """The joint frequency ``prior`` of some classes, and its interval; ``low`` and ``high`` are NaN if it has none."""

    prior: float
    low: float
    high: float

    @property
    def has_interval(self) -> bool:
        """Whether there were enough samples for an interval."""
        return self.low <= self.high  # comparisons with NaN are false

    @property
    def width(self) -> float:
        """The width of the interval divided by the estimate; infinite without an interval."""
        if not self.has_interval:
            return inf
        return (self.high - self.low) / self.prior

    @property
    def interval(self) -> str:
        """The interval as text, with two digits of its width; "too few samples" if there is no interval."""
        if not self.has_interval:
            return "too few samples"
        return f"{self._rounded(self.low)} to {self._rounded(self.high)}"

    def __str__(self) -> str:
        """Return the estimate with its interval."""
        return f"{self._rounded(self.prior)} ({self.interval})"

    def _rounded(self, value: float) -> str:
        """Return ``value`` with as many decimals as show two digits of the interval's width, from 1 to 6."""
        width = self.high - self.low if self.has_interval else 1.0
        place = floor(log10(max(width, 1e-9)))  # -2 for a width of 0.01 to 0.099
        decimals = min(6, max(1, 1 - place))
        return f"{value:.{decimals}f}"


class PriorEstimate(NamedTuple):
    """The frequencies of C classes in unlabelled samples, with intervals, and a test of label shift."""

    priors: Tensor
    """The class frequencies, ``(C,)``, float64, above 0, with a sum of 1; an input of `DecisionRule`."""
    low: Tensor
    """``(C,)``: the lower end of the interval of each class; NaN for a class in fewer than 10 clusters."""
    high: Tensor
    """``(C,)``: the upper end of the interval of each class."""
    joint_low: Tensor
    """``(C,)``: the lower ends of simultaneous intervals with the same confidence (Bonferroni)."""
    joint_high: Tensor
    """``(C,)``: the upper ends of the simultaneous intervals."""
    validation_priors: Tensor
    """``(C,)``: the class frequencies of the validation samples."""
    p_value: float
    """The p-value of the test that samples of each class look as in validation; below 0.05, discard the estimate."""
    class_groups: Mapping[str, ClassPrior]
    """The joint frequency of each requested group of classes, by name."""
    told_apart: Mapping[tuple[int, ...], ClassPrior]
    """Joint frequencies by tuple of class indices: single classes, or merged classes if intervals were too wide."""

    def problem(self, names: Sequence[str]) -> str:
        """Return a reason not to use the priors, a sentence with class ``names``; empty if the priors are usable."""
        if self.p_value < LEVEL:
            return f"the samples of a class do not look the same as in validation (p = {self.p_value:.2g})"
        if len(self.told_apart) == len(self.priors):  # no class was merged with another
            return ""
        singles = class_shares(self.priors, self.low, self.high)
        wide = [
            f"{name} {share}"
            for name, share in zip(names, singles, strict=True)
            if share.width > MAX_WIDTH
        ]
        usable = "do not distinguish any classes"
        if len(self.told_apart) > 1:
            parts = list[str]()
            for labels, share in self.told_apart.items():
                merged = " or ".join(names[label] for label in labels)
                parts.append(f"{merged} {share}")
            usable = f"only distinguish {'; '.join(parts)}"
        return f"intervals are wider than their estimates: {', '.join(wide)}; these samples {usable}"


def class_shares(priors: Tensor, low: Tensor, high: Tensor) -> list[ClassPrior]:
    """Return the share of each class, from estimates (C,) and the ends (C,) of their intervals."""
    columns = torch.stack([priors, low, high], dim=1)
    return [ClassPrior(*row) for row in columns.tolist()]


def estimate_priors(
    preds: Tensor,
    target: Tensor,
    unlabelled: Tensor,
    *,
    method: PriorMethod = "em",
    confidence: float = CONFIDENCE,
    clusters: Sequence[object] | Tensor | None = None,
    unlabelled_clusters: Sequence[object] | Tensor | None = None,
    class_groups: Mapping[str, Sequence[int]] | None = None,
) -> PriorEstimate:
    r"""Estimate class frequencies of unlabelled samples, with intervals, and test for label shift.

    Label shift means that class frequencies differ from validation, but the samples of each class look the same. Let w
    be the class priors of the unlabelled samples. Then a statistic :math:`g(x)` with C values has the expected value
    :math:`\sum_c w_c E[g \mid c]`. Let row c of the matrix A be the mean of g over the validation samples of class c.
    Then the mean of :math:`h(x) = g(x) A^{-1}` over the unlabelled samples is an unbiased estimate of w.

    The variance of the estimate includes the sampling errors of A and of the mean of h (delta method). An interval has
    all frequencies that a score test does not reject; if A were exact, this would be Wilson's interval. With clusters,
    the variance is multiplied by a design effect: the variance of cluster sums, divided by the variance that samples
    would have without clusters. The quantile is then that of Student's distribution.

    The test of label shift ranks the probabilities of each class among those of validation, and compares the mean rank
    of unlabelled samples with the one expected for w. It cannot detect a change that leaves the probabilities equal.

    Args:
        preds: ``(N, C)`` finite logits of validation samples unseen in training. For probabilities, use their
            logarithms. Logits need not be calibrated: temperature and vector scaling are applied here.
        target: ``(N,)`` integer class indices in ``[0, C)``; at least two samples of each class.
        unlabelled: ``(M, C)`` finite logits of the deployment. Samples must be independent, except within a cluster.
        method: ``"em"``: g is the class probabilities under priors estimated by EM (expectation maximization).
            ``"black_box"``: g is the most probable class (one-hot), which has less information; A is then the
            confusion matrix.
        confidence: The confidence of each interval, in (0, 1).
        clusters: ``(N,)`` cluster names of the validation samples (the patient, for example). Keep all samples of a
            cluster, because frequencies are counted per sample.
        unlabelled_clusters: ``(M,)`` cluster names of the unlabelled samples. They may include names in ``clusters``.
        class_groups: Groups of classes to estimate in addition, by name: ``{"referable": [2, 3, 4]}`` for example.

    Raises:
        ValueError: If an argument breaks its rule above, or if g does not separate the classes.

    Warns:
        LabelShiftWarning: If the p-value is below 0.05.

    References:
        Saerens, Latinne, Decaestecker: Adjusting the Outputs of a Classifier to New a Priori Probabilities, 2002 (EM).
        Lipton, Wang, Smola: Detecting and Correcting for Label Shift with Black Box Predictors, ICML 2018.
        Alexandari, Kundaje, Shrikumar: Maximum Likelihood with Bias-Corrected Calibration is Hard-To-Beat at Label
        Shift Adaptation, ICML 2020. Deviation: after EM, the inverse of A corrects errors of the calibration.

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
    samples = labelled_logits(preds, target)
    classes = samples.logits.shape[1]
    deployed = _checked_unlabelled(unlabelled, classes).to(samples.logits.device)
    counts = samples.target.bincount(minlength=classes)
    design = _design(samples.target, counts, clusters, unlabelled_clusters, len(deployed))
    validation, deployment = _calibrated(samples, deployed)
    shares = design.counts / design.counts.sum().double()
    if method == "em":
        em_priors = _em_priors(deployment, shares)
        known = shift_priors(validation, training_priors=shares, priors=em_priors)
        unknown = shift_priors(deployment, training_priors=shares, priors=em_priors)
    else:
        one_hot = torch.eye(classes).to(shares)
        _, validation_classes = highest_class(validation)
        _, deployment_classes = highest_class(deployment)
        known, unknown = one_hot[validation_classes], one_hot[deployment_classes]
    # ``known`` and ``unknown`` are g(x) of the docstring, ``by_class`` is A.
    by_class = design.means(known)
    require(
        torch.linalg.matrix_rank(by_class) == classes, "dependent", "preds", method=method
    )
    inverse = torch.linalg.inv(by_class)
    mixture = _mixture(known @ inverse, unknown @ inverse, design)
    priors = mixture.priors
    singletons = torch.eye(classes).to(priors)  # row c is the group of class c alone
    groups = dict[str, ClassPrior]()
    for name, members in (class_groups or {}).items():
        groups[name] = mixture.share(_part(name, members, singletons), confidence)
    low, high = mixture.intervals(singletons, priors, confidence)
    # Bonferroni: each of C intervals misses with a C-th of the probability.
    joint_confidence = 1 - (1 - confidence) / classes
    joint_low, joint_high = mixture.intervals(singletons, priors, joint_confidence)
    known_ranks, unknown_ranks = _ranks(validation, deployment, design.counts)
    p_value = _p_value(mixture, known_ranks, unknown_ranks)
    if p_value < LEVEL:
        warnings.warn(
            f"do not use the priors: more than class frequencies has changed (p = {p_value:.2g}).",
            LabelShiftWarning,
            stacklevel=2,
        )
    singles = class_shares(priors, low, high)
    partition = mixture.usable_partition(singles, confidence)
    return PriorEstimate(
        priors, low, high, joint_low, joint_high, shares, p_value, groups, partition
    )


class _Design(NamedTuple):
    """The classes (C in number) of N validation samples, and the clusters of these and of M unlabelled samples."""

    target: Tensor
    """(N,), int64: the class of each validation sample."""
    counts: Tensor
    """(C,), int64, at least 2: the number of validation samples of each class."""
    strata: Tensor
    """(N + M,), int64: the class of each validation sample, then C for each unlabelled sample."""
    codes: Tensor
    """(N + M,), int64: the cluster of each sample, or its index if samples are independent."""
    clusters: Tensor
    """(C + 1,), int64, at least 2: the number of clusters of each class, then of the unlabelled samples."""

    def means(self, values: Tensor) -> Tensor:
        """Return the means (C, K) of ``values`` (N, K) over the samples of each class."""
        zeros = values.new_zeros(len(self.counts), values.shape[1])
        sums = zeros.index_add_(0, self.target, values)
        return sums / self.counts.unsqueeze(1)

    def sums(self, values: Tensor) -> Tensor:
        """Return the sums (K, G) of ``values`` (N + M, G) over the samples of each of K clusters."""
        zeros = values.new_zeros(int(self.codes.max()) + 1, values.shape[1])
        return zeros.index_add_(0, self.codes, values)

    def corrected(self, values: Tensor) -> Tensor:
        """Return ``values`` (N + M, G) times sqrt(k / (k - 1)), which makes variances unbiased.

        k is the number of clusters of the sample's class or, for an unlabelled sample, of all unlabelled samples.
        """
        factors = (self.clusters / (self.clusters - 1.0)).sqrt().to(values)
        return values * factors[self.strata].unsqueeze(1)


def _design(
    target: Tensor,
    counts: Tensor,
    clusters: Sequence[object] | Tensor | None,
    others: Sequence[object] | Tensor | None,
    unlabelled: int,
) -> _Design:
    """Check cluster names, and return the `_Design`; the same name in ``clusters`` and ``others`` is one cluster."""
    known, classes = len(target), len(counts)
    require(
        (clusters is None) == (others is None),
        "given_with",
        "clusters",
        other="unlabelled_clusters",
    )
    strata = torch.cat([target, target.new_full((unlabelled,), classes)])
    codes = torch.arange(len(strata))
    if clusters is not None:
        names = [
            *row_names("clusters", clusters, known),
            *row_names("unlabelled_clusters", others, unlabelled),
        ]
        codes = group_codes("clusters", names, len(names)).codes
    codes = codes.to(target.device)
    # One number for each pair of a cluster and a stratum, so that a cluster counts once in each stratum that it has.
    pairs = (codes * (classes + 1) + strata).unique()  # type: ignore[no-untyped-call]
    clusters_of_strata = (pairs % (classes + 1)).bincount(minlength=classes + 1)
    rare = (clusters_of_strata[:-1] < 2).nonzero().flatten().tolist()
    if rare:
        twice = "twice" if clusters is None else "in two clusters"
        raise InvalidValueError("each_class_twice", "target", twice=twice, classes=rare)
    unlabelled_clusters = int(clusters_of_strata[-1])
    require(
        unlabelled_clusters > 1,
        "holds_at_least",
        "unlabelled_clusters",
        unlabelled_clusters,
        minimum=2,
        unit="clusters",
    )
    return _Design(target, counts, strata, codes, clusters_of_strata)


def _part(name: str, members: Sequence[int], singletons: Tensor) -> Tensor:
    """Return (C,): 1 for each class in ``members``, else 0; ``singletons`` is the identity matrix (C, C)."""
    labels, classes = set(members), len(singletons)
    are_classes = labels <= set(range(classes))
    are_some = are_classes and 0 < len(labels) < classes
    require(are_some, "some_classes", "class_groups", {name: members}, last=classes - 1)
    return singletons[list(labels)].sum(dim=0)


def _checked_unlabelled(unlabelled: Tensor, classes: int) -> Tensor:
    are_logits = (
        unlabelled.is_floating_point()
        and unlabelled.ndim == 2
        and unlabelled.shape[1] == classes
    )
    require(are_logits, "float_shape", "unlabelled", unlabelled, shape=f"(M, {classes})")
    require(
        len(unlabelled) >= 2 and unlabelled.isfinite().all(), "finite_sample", "unlabelled"
    )
    return in_float64(unlabelled)


def _calibrated(samples: LabelledLogits, deployed: Tensor) -> tuple[Tensor, Tensor]:
    """Return calibrated probabilities of the validation ``samples`` (N, C) and of the ``deployed`` samples (M, C)."""
    # A constant added to all logits of a sample changes nothing; this one keeps them small.
    logits = samples.logits.log_softmax(dim=1)
    new = deployed.log_softmax(dim=1)
    device, classes = new.device, new.shape[1]
    with warnings.catch_warnings():
        # Imperfect calibration only widens the intervals.
        warnings.simplefilter("ignore", CalibrationWarning)
        temperature = TemperatureScaling().fit(logits, samples.target).to(device)
        tempered = temperature(logits)
        vector = VectorScaling(classes).fit(tempered, samples.target).to(device)
    return vector(tempered).softmax(dim=1), vector(temperature(new)).softmax(dim=1)


def _em_priors(probs: Tensor, shares: Tensor) -> Tensor:
    """Return maximum-likelihood priors (C,) by EM; ``probs`` (M, C) are posteriors for the priors ``shares`` (C,)."""
    priors = shares
    for _ in range(EM_STEPS):
        shifted = shift_priors(probs, training_priors=shares, priors=priors)
        before = priors
        # A pseudo-sample, spread over all classes, keeps priors above 0.
        priors = (shifted.sum(dim=0) + 1 / len(shares)) / (len(probs) + 1)
        if (priors - before).abs().amax() < EM_CHANGE:
            break
    return priors


def _above_0(priors: Tensor, unlabelled: int) -> Tensor:
    """Raise each of ``priors`` (C,) to at least 0.5 / ``unlabelled``, and then divide by the sum."""
    priors = priors.clamp(min=0.5 / unlabelled)
    return priors / priors.sum()


class _Mixture(NamedTuple):
    """Class indicators (estimates of the one-hot class) of all samples, and the class frequencies that follow."""

    known: Tensor
    """(N, C): the indicators of the validation samples."""
    unknown: Tensor
    """(M, C): the indicators of the unlabelled samples."""
    design: _Design
    priors: Tensor
    """(C,): the estimated class frequencies of the unlabelled samples."""
    errors: Tensor
    """(N + M, C): the contribution of each sample to the error of ``priors`` (delta method)."""

    def share(self, part: Tensor, confidence: float) -> ClassPrior:
        """Return the joint frequency, with its interval, of the classes for which ``part`` (C,) is 1."""
        if part.all():
            return ClassPrior(1.0, 1.0, 1.0)
        prior = self.unknown.mean(dim=0) @ part
        centre = _above_0(torch.stack([prior, 1 - prior]), len(self.unknown))[:1]
        low, high = self.intervals(part.unsqueeze(0), centre, confidence)
        return ClassPrior(centre.item(), low.item(), high.item())

    def usable_partition(
        self, shares: Sequence[ClassPrior], confidence: float
    ) -> dict[tuple[int, ...], ClassPrior]:
        """Merge classes until all intervals are narrow enough; return the joint frequency of each group of classes.

        The keys of the result are tuples of class indices; ``shares`` are the frequencies of single classes. In each
        step, the group with the widest interval is merged with the group with which it is confused most. If other
        groups have too wide intervals, only they are considered.
        """
        covariance = self.design.sums(self.errors).T.cov()
        parts = list(torch.eye(len(shares)).to(self.priors))  # each (C,): 1 for its classes
        of_parts = list(shares)
        while len(parts) > 1:
            widths = [share.width for share in of_parts]
            if max(widths) <= MAX_WIDTH:
                break
            widest = widths.index(max(widths))
            part = parts.pop(widest)
            of_parts.pop(widest)
            # Two groups are confused if their errors have opposite signs, so the lowest covariance (in standard
            # deviations of the other group) is the strongest confusion. Groups that are too wide themselves go first.
            order = list[tuple[bool, float]]()
            for other, share in zip(parts, of_parts, strict=True):
                deviation = (other @ covariance @ other).clamp(min=1e-300).sqrt()
                shared_error = part @ covariance @ other / deviation
                order.append((share.width <= MAX_WIDTH, shared_error.item()))
            joined = order.index(min(order))
            parts[joined] = parts[joined] + part
            of_parts[joined] = self.share(parts[joined], confidence)
        partition = dict[tuple[int, ...], ClassPrior]()
        for part, share in zip(parts, of_parts, strict=True):
            partition[tuple(part.nonzero().flatten().tolist())] = share
        return partition

    def intervals(
        self, parts: Tensor, centres: Tensor, confidence: float
    ) -> tuple[Tensor, Tensor]:
        """Return the lower and the upper ends, (G,) each, of intervals of the joint frequencies of G groups of classes.

        Row g of ``parts`` (G, C) is 1 for the classes of group g, else 0; ``centres`` (G,) are the estimates. An
        interval consists of all frequencies t with (centre - t)^2 <= q^2 variance(t), where q is a quantile.
        """
        design, size = self.design, len(self.unknown)
        known = self.known @ parts.T  # (N, G): indicators of the groups
        is_inside = parts.T[design.target]  # (N, G): 1 if the class is of the group
        # (G, C): the mean squared error of the indicator of a group over the samples of a class.
        spread = design.means((known - is_inside).square()).T
        # (G, C): the same over all samples, if they were of that class; it stands for confusions that were not seen.
        # For an indicator g and p, 0 or 1: the mean of (g - p)^2 is that of g^2, plus p (1 - 2 mean(g)).
        means = known.mean(dim=0).unsqueeze(1)
        from_all = known.square().mean(dim=0).unsqueeze(1) + parts * (1 - 2 * means)
        # (G, C): the variance of a row of A, in which UNSEEN pseudo-samples of each class are counted.
        squares = spread * design.counts + UNSEEN * from_all
        error = squares / (design.counts * (design.counts - 1))
        inside = _as_shares(self.priors * parts)  # (G, C): classes as shares of their group
        outside = _as_shares(self.priors * (1 - parts))  # (G, C): the others, of the rest
        square = 1 + (inside * spread).sum(dim=1)  # the mean squared indicator in the group
        other_square = (outside * spread).sum(dim=1)  # and outside of it
        part_error = (inside.square() * error).sum(dim=1)
        other_error = (outside.square() * error).sum(dim=1)
        scale = self._scale(parts, confidence)
        # The inequality is quadratic in t: a t^2 - 2 b t + c <= 0.
        a = 1 + scale / size - scale * (part_error + other_error)
        b = centres + scale * (square - other_square) / (2 * size) - scale * other_error
        c = centres.square() - scale * (other_square / size + other_error)
        root = (b.square() - a * c).clamp(min=0).sqrt()
        low = torch.where(a > 0, (b - root) / a, 0.0)
        high = torch.where(a > 0, (b + root) / a, 1.0)
        has_interval = scale.isfinite()
        low = low.clamp(0, 1).where(has_interval, torch.nan)
        high = high.clamp(0, 1).where(has_interval, torch.nan)
        return low, high

    def _scale(self, parts: Tensor, confidence: float) -> Tensor:
        """Return the squared t quantile times the design effect of G groups, (G,); inf for fewer than 10 clusters."""
        from scipy.special import stdtrit

        design = self.design
        rows = self.errors @ parts.T
        sums = design.sums(rows).square()
        squares = design.sums(rows.square())
        corrected = design.sums(design.corrected(rows)).square().sum(dim=0)
        independent = squares.sum(dim=0)  # the variance if clusters had no effect
        design_effect = torch.where(independent > 0, corrected / independent, 1.0)
        between = sums - squares  # of a cluster: the products of errors of unlike samples
        noise = (between - between.mean(dim=0)).square().sum(dim=0)  # 0 without clusters
        # Satterthwaite's degrees of freedom: 2 variance^2 / the variance of its estimate.
        freedom = (2 * sums.sum(dim=0).square() / noise.clamp(min=1e-300)).clamp(max=1e9)
        quantiles = stdtrit(freedom.cpu().numpy(), (1 + confidence) / 2)
        quantile = torch.from_numpy(quantiles).to(design_effect)
        # A group has at least as many clusters as each of its classes; the unlabelled samples may have fewer.
        clusters = (parts * design.clusters[:-1]).amax(dim=1).minimum(design.clusters[-1])
        return torch.where(
            clusters < MIN_UNITS, torch.inf, design_effect * quantile.square()
        )


def _mixture(known: Tensor, unknown: Tensor, design: _Design) -> _Mixture:
    priors = _above_0(unknown.mean(dim=0), len(unknown))
    one_hot = torch.eye(len(priors)).to(priors)
    weights = (priors / design.counts)[design.target].unsqueeze(1)
    known_errors = (one_hot[design.target] - known) * weights
    unknown_errors = (unknown - unknown.mean(dim=0)) / len(unknown)
    errors = torch.cat([known_errors, unknown_errors])
    return _Mixture(known, unknown, design, priors, errors)


def _ranks(validation: Tensor, deployment: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return ranks of ``validation`` and ``deployment`` probabilities, (N, C + 1) and (M, C + 1), from -1/2 to 1/2.

    Column c has the rank of each sample's probability of class c among those of the validation samples. Ranks for rare
    classes are summed in column C instead.
    """
    in_order = validation.T.contiguous().sort(dim=1).values
    classes = torch.arange(len(counts), device=counts.device)
    column = torch.where(counts >= MIN_RANKED, classes, len(counts))

    def ranks(probs: Tensor) -> Tensor:
        values = probs.T.contiguous()
        first = torch.searchsorted(in_order, values)
        after_last = torch.searchsorted(in_order, values, right=True)
        middle = (first + after_last) / (2 * len(validation))  # of equal values, as a share
        by_class = (middle - 0.5).T.to(probs)
        return probs.new_zeros(len(probs), len(counts) + 1).index_add_(1, column, by_class)

    return ranks(validation), ranks(deployment)


def _p_value(mixture: _Mixture, ranks: Tensor, others: Tensor) -> float:
    """Return the p-value of Hotelling's test that class frequencies explain the mean ranks of unlabelled samples.

    ``ranks`` (N, K) are those of validation samples, and ``others`` (M, K) those of unlabelled samples. The degrees of
    freedom follow Nel and van der Merwe (1986), because the covariance is a sum over several groups of samples.
    """
    from scipy.special import fdtrc

    design = mixture.design
    by_class = design.means(ranks)
    # Ranks beyond those that the class indicators of a sample explain.
    residuals = ranks - mixture.known @ by_class
    tested = others - mixture.unknown @ by_class
    mean = tested.mean(dim=0)
    weights = mixture.priors / design.counts
    known_rows = residuals * weights[design.target].unsqueeze(1)
    unknown_rows = (tested - mean) / len(tested)
    rows = design.corrected(torch.cat([known_rows, unknown_rows]))
    # The variance of UNSEEN pseudo-samples in each class, whose residuals are those of all validation samples.
    variance_factor = (weights.square() * design.counts / (design.counts - 1)).sum()
    unseen = UNSEEN * variance_factor / len(residuals)
    sums = design.sums(rows)
    covariance = sums.T @ sums + unseen * residuals.T @ residuals
    rank = int(torch.linalg.matrix_rank(covariance, hermitian=True))
    distance = float(mean @ torch.linalg.pinv(covariance, hermitian=True) @ mean)
    # A cell is a cluster within a stratum; its number gives both. Traces are the variances of the strata.
    strata = len(design.clusters)
    cells, places = (design.codes * strata + design.strata).unique(return_inverse=True)  # type: ignore[no-untyped-call]
    cell_sums = rows.new_zeros(len(cells), rows.shape[1]).index_add_(0, places, rows)
    squares = cell_sums.square().sum(dim=1)
    traces = (cells % strata).bincount(squares, minlength=strata)
    freedom = float(traces.sum().square() / (traces.square() / (design.clusters - 1)).sum())
    left = max(freedom - rank + 1, 1.0)
    return float(fdtrc(rank, left, distance * left / (rank * freedom)))


def _as_shares(weights: Tensor) -> Tensor:
    """Divide the rows of ``weights`` by their sums; a row of zeros stays."""
    return weights / weights.sum(dim=1, keepdim=True).clamp(min=1e-300)
