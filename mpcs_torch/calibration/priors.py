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


class Share(NamedTuple):
    """The joint frequency ``prior`` of some classes, and its interval; ``low`` and ``high`` are NaN if it has none."""

    prior: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """The width of the interval divided by the estimate; infinite without an interval."""
        return (self.high - self.low) / self.prior if self.low <= self.high else inf

    @property
    def interval(self) -> str:
        """The interval as text, with two digits of its width; "too few samples" if there is no interval."""
        return (
            f"{self._rounded(self.low)} to {self._rounded(self.high)}"
            if self.width < inf
            else "too few samples"
        )

    def __str__(self) -> str:
        """Return the estimate with its interval."""
        return f"{self._rounded(self.prior)} ({self.interval})"

    def _rounded(self, value: float) -> str:
        width = self.high - self.low if self.width < inf else 1.0
        return f"{value:.{min(6, max(1, 1 - floor(log10(max(width, 1e-9)))))}f}"


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
    class_groups: Mapping[str, Share]
    """The joint frequency of each requested group of classes, by name."""
    told_apart: Mapping[tuple[int, ...], Share]
    """Joint frequencies by tuple of class indices: single classes, or merged classes if intervals were too wide."""

    def problem(self, names: Sequence[str]) -> str:
        """Return a reason not to use the priors, a sentence with class ``names``; empty if the priors are usable."""
        if self.p_value < LEVEL:
            return f"the samples of a class do not look the same as in validation (p = {self.p_value:.2g})"
        if len(self.told_apart) == len(self.priors):
            return ""
        ends = zip(
            *(values.tolist() for values in (self.priors, self.low, self.high)), strict=True
        )
        singles = {name: Share(*share) for name, share in zip(names, ends, strict=True)}
        wide = [
            f"{name} {share}" for name, share in singles.items() if share.width > MAX_WIDTH
        ]
        parts = {
            " or ".join(names[label] for label in part): share
            for part, share in self.told_apart.items()
        }
        joined = "; ".join(f"{name} {share}" for name, share in parts.items())
        usable = (
            f"only distinguish {joined}"
            if len(parts) > 1
            else "do not distinguish any classes"
        )
        return f"intervals are wider than their estimates: {', '.join(wide)}; these samples {usable}"


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
    samples = labelled_logits(preds, target, preds.shape[1] if preds.ndim > 1 else 2)
    classes = samples.logits.shape[1]
    deployed = _checked_unlabelled(unlabelled, classes).to(samples.logits.device)
    counts = samples.target.bincount(minlength=classes)
    design = _design(samples.target, counts, clusters, unlabelled_clusters, len(deployed))
    validation, deployment = _calibrated(samples, deployed)
    shares = design.counts / design.counts.sum().double()
    if method == "em":
        shift = {"training_priors": shares, "priors": _em_priors(deployment, shares)}
        known, unknown = (
            shift_priors(validation, **shift),
            shift_priors(deployment, **shift),
        )
    else:
        one_hot = torch.eye(classes).to(shares)
        known, unknown = (
            one_hot[highest_class(validation)[1]],
            one_hot[highest_class(deployment)[1]],
        )
    by_class = design.means(known)
    require(
        torch.linalg.matrix_rank(by_class) == classes, "dependent", "preds", method=method
    )
    indicators = torch.linalg.inv(by_class)
    mixture = _mixture(known @ indicators, unknown @ indicators, design)
    priors, singletons = mixture.priors, torch.eye(classes).to(mixture.priors)
    groups = {
        name: mixture.share(_part(name, members, singletons), confidence)
        for name, members in (class_groups or {}).items()
    }
    single = mixture.intervals(singletons, priors, confidence)
    joint = mixture.intervals(singletons, priors, 1 - (1 - confidence) / classes)
    p_value = _p_value(mixture, *_ranks(validation, deployment, design.counts))
    if p_value < LEVEL:
        warnings.warn(
            f"do not use the priors: more than class frequencies has changed (p = {p_value:.2g}).",
            LabelShiftWarning,
            stacklevel=2,
        )
    singles = [
        Share(*ends)
        for ends in zip(*(values.tolist() for values in (priors, *single)), strict=True)
    ]
    partition = mixture.usable_partition(singles, confidence)
    return PriorEstimate(priors, *single, *joint, shares, p_value, groups, partition)


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
        sums = values.new_zeros(len(self.counts), values.shape[1]).index_add_(
            0, self.target, values
        )
        return sums / self.counts.unsqueeze(1)

    def sums(self, values: Tensor) -> Tensor:
        """Return the sums (K, G) of ``values`` (N + M, G) over the samples of each of K clusters."""
        return values.new_zeros(int(self.codes.max()) + 1, values.shape[1]).index_add_(
            0, self.codes, values
        )

    def corrected(self, values: Tensor) -> Tensor:
        """Return ``values`` (N + M, G) times sqrt(k / (k - 1)), which makes variances unbiased.

        k is the number of clusters of the sample's class or, for an unlabelled sample, of all unlabelled samples.
        """
        return values * (self.clusters / (self.clusters - 1.0)).sqrt().to(values)[
            self.strata
        ].unsqueeze(1)


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
    codes, twice = torch.arange(len(strata)), "twice"
    if clusters is not None:
        names = [
            *row_names("clusters", clusters, known),
            *row_names("unlabelled_clusters", others, unlabelled),
        ]
        codes, twice = group_codes("clusters", names, len(names)).codes, "in two clusters"
    codes = codes.to(target.device)
    pairs = (codes * (classes + 1) + strata).unique()  # type: ignore[no-untyped-call]
    of_strata = (pairs % (classes + 1)).bincount(minlength=classes + 1)
    if (of_strata[:-1] < 2).any():
        rare = (of_strata[:-1] < 2).nonzero().flatten().tolist()
        raise InvalidValueError("each_class_twice", "target", twice=twice, classes=rare)
    others_clusters = int(of_strata[-1])
    require(
        others_clusters > 1,
        "holds_at_least",
        "unlabelled_clusters",
        others_clusters,
        minimum=2,
        unit="clusters",
    )
    return _Design(target, counts, strata, codes, of_strata)


def _part(name: str, members: Sequence[int], every: Tensor) -> Tensor:
    """Return (C,): 1 for each class in ``members``, else 0; ``every`` is the identity matrix (C, C)."""
    classes, are_classes = len(every), {*members} <= {*range(len(every))}
    are_some = are_classes and 0 < len({*members}) < classes
    require(are_some, "some_classes", "class_groups", {name: members}, last=classes - 1)
    return every[[*{*members}]].sum(dim=0)


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
    logits, new = (
        samples.logits.log_softmax(dim=1),
        deployed.log_softmax(dim=1),
    )  # row constants have no effect
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", CalibrationWarning
        )  # imperfect calibration only widens the intervals
        temperature = TemperatureScaling().fit(logits, samples.target).to(new.device)
        vector = (
            VectorScaling(new.shape[1])
            .fit(temperature(logits), samples.target)
            .to(new.device)
        )
    return vector(temperature(logits)).softmax(dim=1), vector(temperature(new)).softmax(
        dim=1
    )


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

    def share(self, part: Tensor, confidence: float) -> Share:
        """Return the joint frequency, with its interval, of the classes for which ``part`` (C,) is 1."""
        prior = self.unknown.mean(dim=0) @ part
        centre = _above_0(torch.stack([prior, 1 - prior]), len(self.unknown))[:1]
        low, high = self.intervals(part.unsqueeze(0), centre, confidence)
        return (
            Share(1.0, 1.0, 1.0)
            if part.all()
            else Share(centre.item(), low.item(), high.item())
        )

    def usable_partition(
        self, shares: Sequence[Share], confidence: float
    ) -> dict[tuple[int, ...], Share]:
        """Merge classes until all intervals are narrow enough; return the joint frequency of each group of classes.

        The keys of the result are tuples of class indices; ``shares`` are the frequencies of single classes. In each
        step, the group with the widest interval is merged with the group with which it is confused most. If other
        groups have too wide intervals, only they are considered.
        """
        covariance, parts = (
            self.design.sums(self.errors).T.cov(),
            [*torch.eye(len(shares)).to(self.priors)],
        )
        shares = [*shares]
        while len(parts) > 1 and max(share.width for share in shares) > MAX_WIDTH:
            wide = max(range(len(parts)), key=lambda place: shares[place].width)
            part, _ = parts.pop(wide), shares.pop(wide)
            shared = [
                part @ covariance @ of / (of @ covariance @ of).clamp(min=1e-300).sqrt()
                for of in parts
            ]
            order = [
                (share.width <= MAX_WIDTH, error.item())
                for share, error in zip(shares, shared, strict=True)
            ]
            joined = order.index(min(order))
            parts[joined] = parts[joined] + part
            shares[joined] = self.share(parts[joined], confidence)
        return {
            tuple(part.nonzero().flatten().tolist()): share
            for part, share in zip(parts, shares, strict=True)
        }

    def intervals(
        self, parts: Tensor, centres: Tensor, confidence: float
    ) -> tuple[Tensor, Tensor]:
        """Return the lower and the upper ends, (G,) each, of intervals of the joint frequencies of G groups of classes.

        Row g of ``parts`` (G, C) is 1 for the classes of group g, else 0; ``centres`` (G,) are the estimates. An
        interval consists of all frequencies t with (centre - t)^2 <= q^2 variance(t), where q is a quantile.
        """
        design, known, size = self.design, self.known @ parts.T, len(self.unknown)
        spread = design.means(
            (known - parts.T[design.target]).square()
        ).T  # a row per group, a column per true class
        from_all = known.square().mean(dim=0).unsqueeze(1) + parts * (
            1 - 2 * known.mean(dim=0).unsqueeze(1)
        )
        error = (spread * design.counts + UNSEEN * from_all) / (
            design.counts * (design.counts - 1)
        )
        inside, outside = (
            _as_shares(self.priors * parts),
            _as_shares(self.priors * (1 - parts)),
        )
        square, other_square = (
            1 + (inside * spread).sum(dim=1),
            (outside * spread).sum(dim=1),
        )
        part_error = (inside.square() * error).sum(dim=1)
        other_error = (outside.square() * error).sum(dim=1)
        scale = self._scale(parts, confidence)
        a = 1 + scale / size - scale * (part_error + other_error)
        b = centres + scale * (square - other_square) / (2 * size) - scale * other_error
        c = centres.square() - scale * (other_square / size + other_error)
        root = (b.square() - a * c).clamp(min=0).sqrt()
        low = torch.where(a > 0, (b - root) / a, 0.0)
        high = torch.where(a > 0, (b + root) / a, 1.0)
        has_interval = scale.isfinite()
        return low.clamp(0, 1).where(has_interval, torch.nan), high.clamp(0, 1).where(
            has_interval, torch.nan
        )

    def _scale(self, parts: Tensor, confidence: float) -> Tensor:
        """Return the squared t quantile times the design effect of G groups, (G,); inf for fewer than 10 clusters."""
        from scipy.special import stdtrit

        design, rows = self.design, self.errors @ parts.T
        sums, squares = design.sums(rows).square(), design.sums(rows.square())
        corrected = design.sums(design.corrected(rows)).square().sum(dim=0)
        design_effect = torch.where(
            squares.sum(dim=0) > 0, corrected / squares.sum(dim=0), 1.0
        )
        noise = (
            (sums - squares - (sums - squares).mean(dim=0)).square().sum(dim=0)
        )  # 0 without clusters
        freedom = (2 * sums.sum(dim=0).square() / noise.clamp(min=1e-300)).clamp(max=1e9)
        quantile = torch.from_numpy(
            stdtrit(freedom.cpu().numpy(), (1 + confidence) / 2)
        ).to(design_effect)
        clusters = (parts * design.clusters[:-1]).amax(dim=1).minimum(design.clusters[-1])
        return torch.where(
            clusters < MIN_UNITS, torch.inf, design_effect * quantile.square()
        )


def _mixture(known: Tensor, unknown: Tensor, design: _Design) -> _Mixture:
    priors = _above_0(unknown.mean(dim=0), len(unknown))
    one_hot = torch.eye(len(priors)).to(priors)
    known_errors = -(known - one_hot[design.target]) * (priors / design.counts)[
        design.target
    ].unsqueeze(1)
    errors = torch.cat([known_errors, (unknown - unknown.mean(dim=0)) / len(unknown)])
    return _Mixture(known, unknown, design, priors, errors)


def _ranks(validation: Tensor, deployment: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return ranks of ``validation`` and ``deployment`` probabilities, (N, C + 1) and (M, C + 1), from -1/2 to 1/2.

    Column c has the rank of each sample's probability of class c among those of the validation samples. Ranks for rare
    classes are summed in column C instead.
    """
    in_order = validation.T.contiguous().sort(dim=1).values
    column = torch.where(
        counts >= MIN_RANKED, torch.arange(len(counts), device=counts.device), len(counts)
    )

    def ranks(probs: Tensor) -> Tensor:
        values = probs.T.contiguous()
        places = torch.searchsorted(in_order, values) + torch.searchsorted(
            in_order, values, right=True
        )
        by_class = (places / (2 * len(validation)) - 0.5).T.to(probs)
        return probs.new_zeros(len(probs), len(counts) + 1).index_add_(1, column, by_class)

    return ranks(validation), ranks(deployment)


def _p_value(mixture: _Mixture, ranks: Tensor, others: Tensor) -> float:
    """Return the p-value of Hotelling's test that class frequencies explain the mean ranks of unlabelled samples.

    ``ranks`` (N, K) are those of validation samples, and ``others`` (M, K) those of unlabelled samples. The degrees of
    freedom follow Nel and van der Merwe (1986), because the covariance is a sum over several groups of samples.
    """
    from scipy.special import fdtrc

    design = mixture.design
    by_class, strata = design.means(ranks), len(design.clusters)
    residuals, tested = (
        ranks - mixture.known @ by_class,
        others - mixture.unknown @ by_class,
    )
    mean, weights = tested.mean(dim=0), mixture.priors / design.counts
    rows = design.corrected(
        torch.cat(
            [residuals * weights[design.target].unsqueeze(1), (tested - mean) / len(tested)]
        )
    )
    unseen = (
        UNSEEN
        * (weights.square() * design.counts / (design.counts - 1)).sum()
        / len(residuals)
    )
    sums = design.sums(rows)
    covariance = sums.T @ sums + unseen * residuals.T @ residuals
    rank = int(torch.linalg.matrix_rank(covariance, hermitian=True))
    distance = float(mean @ torch.linalg.pinv(covariance, hermitian=True) @ mean)
    cells, places = (design.codes * strata + design.strata).unique(return_inverse=True)  # type: ignore[no-untyped-call]
    squares = (
        rows.new_zeros(len(cells), rows.shape[1])
        .index_add_(0, places, rows)
        .square()
        .sum(dim=1)
    )
    traces = (cells % strata).bincount(squares, minlength=strata)
    freedom = float(traces.sum().square() / (traces.square() / (design.clusters - 1)).sum())
    left = max(freedom - rank + 1, 1.0)
    return float(fdtrc(rank, left, distance * left / (rank * freedom)))


def _as_shares(weights: Tensor) -> Tensor:
    """Divide the rows of ``weights`` by their sums; a row of zeros stays."""
    return weights / weights.sum(dim=1, keepdim=True).clamp(min=1e-300)
