"""`DecisionRule`: decide for the class of lowest expected cost, or refer the sample, under guaranteed limits."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import torch
from torch import Tensor, nn

from mpcs_torch.calibration import TemperatureScaling, VectorScaling
from mpcs_torch.calibration.scaling import ScalingMethod, make_scaling
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.files import concern_as_plain
from mpcs_torch.errors import ExistsError, InvalidValueError, listed, require
from mpcs_torch.functional.concern.decision import Choices, ranked_choices, rounding_bound
from mpcs_torch.functional.inputs.arrays import by_class
from mpcs_torch.functional.inputs.checks import check_choice, check_priors
from mpcs_torch.functional.inputs.decisions import REFERRED
from mpcs_torch.functional.inputs.evaluation_warnings import (
    hash_rows,
    known_rows,
    rare_classes,
    warn_of_known,
)
from mpcs_torch.functional.inputs.groups import (
    Groups,
    codes_by_column,
    flat_costs,
    group_codes,
    row_weights,
)
from mpcs_torch.io.artifacts import load_artifact, save_artifact
from mpcs_torch.io.local_paths import local_path
from mpcs_torch.io.untrusted_files import check_whole_tensors
from mpcs_torch.learning.rule_fit import (
    FitSamples,
    check_row_costs,
    checked_logits,
    choose_thresholds,
    class_frequencies,
    split_rows,
)
from mpcs_torch.learning.rule_limit import (
    PER_CLUSTER,
    Limit,
    RuleReport,
    as_limits,
    report_on,
)
from mpcs_torch.tables import in_percent

KIND = "mpcs_torch decision rule 3"
"""The value of the field ``kind`` in the files of decision rules."""
IS_DECIDED = 0
"""The code of `Assessment.reason` if the decision is the best class."""
IS_CHEAPER = 1
"""The code if a coarse answer or a referral costs less."""
IS_UNSOUND = 2
"""The code if the logits are not finite."""
IS_LIMITED = 3
"""The code if the risk is too high for the first limit; for limit j, it is ``IS_LIMITED + j``."""

MIN_DECIDED = 0.01
"""The lowest share of decided samples of a fit without an `AllReferredWarning`."""


class AllReferredWarning(UserWarning):
    """A fitted rule refers all samples, or more than 99 % of them: limits are too low, or classes are mixed up."""


class UnfittedRuleWarning(UserWarning):
    """A rule that needs `fit` is used or saved before `fit` was called."""


class Assessment(NamedTuple):
    """The decisions for N samples, the classes with the minimum expected cost, and why decisions differ from these.

    For logits (N, C, ...), such as those of pixels, all fields but ``costs`` have the shape (N, ...).
    """

    decision: Tensor
    """The decisions, (N,), int64: a class; C + a for coarse answer a, a set of classes; or -1 for a referral."""
    best: Tensor
    """The class with the minimum expected cost, (N,), int64."""
    risk: Tensor
    """The estimated probability, (N,), that deciding for the best class is a dangerous error."""
    cost: Tensor
    """The expected cost of the best class, (N,), in the units of the concern; samples can be reviewed in this order."""
    reason: Tensor
    """Codes, (N,), int64. 0: the decision is the best class. 1: a coarse answer or a referral costs less. 2: the logits
    are not finite. 3 + j: the risk of the best class is too high for limit j."""
    costs: Tensor | None = None
    """The costs of the samples, as they were passed to `DecisionRule.assess`; None if there were none."""


CalibrationMethod = Literal[ScalingMethod, None]


class DecisionRule(nn.Module):
    """Decide for the class with the minimum expected cost, or refer the sample to a person instead of deciding.

    `fit` calibrates the logits on validation samples. A sample is referred (-1) if a referral costs less than any
    answer (``ConcernSpec.refer``), or if the estimated risk is too high for a `Limit`. If the concern has coarse
    answers (sets of classes), the decision is the cheapest answer with an acceptable risk. A limit holds for new
    samples, whatever the model, with a probability of at least its ``confidence`` over random validation sets. All
    limits hold at once with a probability of at least the lowest ``confidence``. To guarantee this, a fifth of the
    validation samples is used only to fit the calibration, and the rest only to choose the thresholds.

    New samples must be exchangeable with the validation samples. The validation samples must be independent, or come in
    independent ``clusters``. Do not use the validation samples to choose anything else, such as the model or ``seed``.
    A limit on all or on decided samples says nothing about a rare class, and is void if class frequencies change later.

    Args:
        concern: The costs of errors and referrals, and which errors are dangerous.
        limits: The limits to guarantee: one `Limit`, or several.
        calibration: ``"temperature"`` for `TemperatureScaling`, ``"vector"`` for `VectorScaling`, or None for logits
            whose softmax is already calibrated.
        priors: ``(C,)`` class frequencies of the deployment, a tensor or list, if they differ from those of the
            validation samples. With priors, each limit must be on a single true class. Such limits hold even if priors
            are wrong, unless priors depend on the validation samples. But wrong priors make expected costs wrong.
        refers_whole: Whether a whole sample is decided or referred if it has several positions, as an image has pixels:
            by the means of expected losses and costs over the positions. Default: each position for itself.
        seed: The seed of the random draw of calibration samples. If you choose among several, no limit is guaranteed.

    Raises:
        ValueError: If an argument is invalid.

    Example:
        >>> import torch
        >>> from mpcs_torch import ConcernSpec
        >>> from mpcs_torch.learning import DecisionRule, Limit
        >>> generator = torch.Generator().manual_seed(0)
        >>> target = torch.randint(0, 3, (2000,), generator=generator)
        >>> logits = 3 * torch.eye(3)[target] + torch.randn(2000, 3, generator=generator)  # of your validation data
        >>> lights = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"], ["yellow", "red"]])
        >>> rule = DecisionRule(lights, [Limit(0.005), Limit(0.02, of="red")]).fit(logits, target)
        >>> rule(torch.tensor([[4.0, 0.0, 0.0], [1.0, 0.0, 1.5]]))  # the second is unsure between red and green
        tensor([ 0, -1])
        >>> print(rule.report.by_class["red"])
        1 of 525, 0.0019 (95 %: 4.82e-05 to 0.0106)
    """

    costs: Tensor
    """``(C, C)`` or ``(C, C + A + 1)``, float32: `ConcernSpec.costs` divided by the highest cost."""
    dangerous: Tensor
    """``(C, C)``, float32: 1 for dangerous errors; rows are true classes."""
    losses: Tensor
    """``(J, C, C + A)``, float32: for each limit, losses by true class and decision, divided by the highest loss."""
    prior_ratio: Tensor
    """``(C,)``, float32: class frequencies of the deployment divided by those of the validation samples."""
    thresholds: Tensor
    """``(J,)``, float32. A decision is allowed if, for each of the J limits, its estimated loss is below the threshold.
    If its loss is 0 for all classes, a threshold >= 0 is enough. Before a fit, thresholds are -inf."""

    def __init__(
        self,
        concern: ConcernSpec,
        limits: Limit | Sequence[Limit] = (),
        *,
        calibration: CalibrationMethod = "temperature",
        priors: Tensor | Sequence[float] | None = None,
        refers_whole: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if not isinstance(concern, ConcernSpec):
            raise InvalidValueError("spec", "concern", concern)
        classes = len(concern.classes)
        check_choice("calibration", calibration, CalibrationMethod)
        self.limits = as_limits(limits)
        for limit in self.limits:
            require(isinstance(limit, Limit), "limit_type", "limits", limit)
        if priors is not None:
            priors = torch.as_tensor(priors, dtype=torch.float32)
            check_priors(priors, classes, name="priors")
            others = [
                str(limit) for limit in self.limits if not limit.is_of_one_class(concern)
            ]
            require(not others, "limits_of_one_class", "priors", limits=others)
        if refers_whole and concern.answers:
            raise InvalidValueError("no_whole", "refers_whole")
        self.concern = concern
        self.calibration_method = calibration
        self.priors = priors
        self.seed = seed
        self.refers_whole = refers_whole
        self.calibration: nn.Module = nn.Identity()
        if calibration is not None:
            self.calibration = make_scaling(calibration, classes)
        self.report: RuleReport | None = None
        """The report of the last `fit`; None before the first one."""
        self.is_fitted = False
        """Whether the rule was fitted, possibly before it was saved and loaded."""
        self.has_row_costs = False
        """Whether the samples of the last `fit` had costs of their own. Its limits then hold for such samples only."""
        self.known_rows = torch.zeros(0, dtype=torch.int64)
        """The hashes of the logit rows used in `fit`, to detect these rows in later data."""
        costs = concern.costs()
        self.highest_cost = float(costs.max())
        losses = torch.zeros(len(self.limits), classes, classes + len(concern.answers))
        for number, limit in enumerate(self.limits):
            loss = limit.losses(concern)
            highest = float(loss.max())
            if limit.at_most >= highest:
                raise InvalidValueError(
                    "below_highest_loss", "limits", str(limit), highest=highest
                )
            losses[number] = loss / highest
        self.register_buffer("costs", (costs / costs.max()).float())
        self.register_buffer("dangerous", concern.dangerous_pairs().float())
        self.register_buffer("losses", losses)
        self.register_buffer("prior_ratio", torch.ones(classes))
        # A rule with a limit refers every sample until it is fitted.
        self.register_buffer("thresholds", torch.full((len(self.limits),), -torch.inf))

    def forward(self, preds: Tensor, costs: Tensor | None = None) -> Tensor:
        """Return the decisions (N,), int64, by logits (N, C): a class, C + a for coarse answer a, or -1 for a referral.

        A coarse answer is a set of classes. Logits (N, C, ...), such as those of pixels, give decisions (N, ...).
        Logits are not validated; a sample with a NaN or +inf logit, or a NaN cost, is referred. ``costs`` as in `fit`.
        """
        return self.assess(preds, costs).decision

    def assess(self, preds: Tensor, costs: Tensor | None = None) -> Assessment:
        """Return the `Assessment` of logits (N, C): decisions, best classes with their risks and costs, and reasons.

        ``costs`` are the costs of the samples, as in `fit`; logits may have further dimensions, as there.

        Raises:
            ValueError: If the shape of the logits or costs is wrong. Also if there are no costs, but there were in the
                fit; and, if the rule has limits, the reverse.

        Warns:
            UnfittedRuleWarning: If a rule without limits has a calibration or priors, but was not fitted.
        """
        shape, classes = tuple(preds.shape), len(self.costs)
        is_by_class = len(shape) >= 2 and shape[1] == classes
        require(
            is_by_class,
            "shape",
            "preds",
            preds,
            shape=f"(N, {classes}) or (N, {classes}, ...)",
        )
        self._warn_if_unfitted()
        if self.has_row_costs or (self.limits and self.is_fitted):
            require((costs is not None) == self.has_row_costs, "costs_as_fitted", "costs")
        flat = None if costs is None else flat_costs(costs, shape).to(preds.device).float()
        assessed = self._assess(by_class(preds, classes), flat, prod(shape[2:]))
        without_classes = shape[:1] + shape[2:]
        return Assessment(
            assessed.decision.reshape(without_classes),
            assessed.best.reshape(without_classes),
            assessed.risk.reshape(without_classes),
            assessed.cost.reshape(without_classes),
            assessed.reason.reshape(without_classes),
            costs,
        )

    def _assess(self, preds: Tensor, costs: Tensor | None, positions: int) -> Assessment:
        """Return the `Assessment` of M logits (M, C); each sample has so many successive ``positions`` among them."""
        choices, probs, expected = self._weigh(preds, costs, positions)
        answers, is_worth = choices
        # The best class is among the answers, and coarse answers have higher indices than classes.
        best = answers.amin(dim=1, keepdim=True)
        is_best = answers == best
        is_allowed = is_worth
        reason = torch.where((is_worth & is_best).any(dim=1), IS_DECIDED, IS_CHEAPER)
        for number in range(len(self.limits)):
            losses, threshold = self.losses[number], self.thresholds[number]
            has_loss = (losses.amax(dim=0) > 0)[answers].to(probs)
            can_harm = self._over_sample(has_loss, positions) > 0
            risk = self._over_sample(self._expected(probs, losses, answers), positions)
            is_below = (risk < threshold) | (~can_harm & (threshold >= 0))
            is_too_high = (is_best & ~is_below).any(dim=1) & (reason == IS_DECIDED)
            is_allowed = is_allowed & is_below
            reason = torch.where(is_too_high, IS_LIMITED + number, reason)
        # Answers are in the order of their costs, and argmax returns the first that is allowed.
        first_allowed = is_allowed.int().argmax(dim=1, keepdim=True)
        cheapest_allowed = answers.gather(1, first_allowed).squeeze(1)
        decision = torch.where(is_allowed.any(dim=1), cheapest_allowed, REFERRED)
        best_class = best.squeeze(1)
        is_other = (reason == IS_DECIDED) & (decision != best_class)
        reason = torch.where(is_other, IS_CHEAPER, reason)
        risk = self._expected(probs, self.dangerous, best).squeeze(1)
        is_sound = risk.isfinite() & expected.isfinite().all(dim=1)
        decision = torch.where(is_sound, decision, REFERRED)
        reason = torch.where(is_sound, reason, IS_UNSOUND)
        if costs is None:
            cost = self._expected(probs, self.costs, best) * self.highest_cost
        else:
            cost = expected.gather(1, best)
        return Assessment(decision, best_class, risk, cost.squeeze(1), reason)

    def _weigh(
        self, preds: Tensor, costs: Tensor | None, positions: int
    ) -> tuple[Choices, Tensor, Tensor]:
        """Return, for logits ``preds`` (M, C), candidates, cheapest first, probabilities, and expected costs."""
        # The guarantee must not depend on the precision of autocast.
        with torch.autocast(preds.device.type, enabled=False):
            # Use log-probabilities: adding a constant to the logits of a row must change nothing.
            calibrated = self.calibration(preds.float().log_softmax(dim=1))
            log_probs = calibrated.log_softmax(dim=1)
            probs = (log_probs + self.prior_ratio.float().log()).softmax(dim=1)
            expected = probs @ self.costs.float()
            weighed = expected
            if costs is not None:
                # Coarse answers and referrals cost what the concern says.
                of_classes = (probs.unsqueeze(2) * costs).sum(1)
                of_others = expected[:, of_classes.shape[1] :] * self.highest_cost
                expected = torch.cat([of_classes, of_others], dim=1)
                # Ties are relative, so costs must be at least 0.
                highest_gain = costs.flatten(1).amin(dim=1, keepdim=True).clamp(max=0)
                weighed = expected - highest_gain
            choices = ranked_choices(weighed, probs)
            if self.refers_whole and weighed.shape[1] > probs.shape[1]:
                min_cost = weighed[:, :-1].amin(dim=1, keepdim=True)
                saved = weighed[:, -1:] - min_cost * (1 - rounding_bound(probs))
                is_worth = self._over_sample(saved, positions) >= 0
                choices = choices._replace(is_worth=is_worth)
            return choices, probs, expected

    def _over_sample(self, values: Tensor, positions: int) -> Tensor:
        """Return ``values`` (M, K); if whole samples are referred, the mean over each sample's positions instead."""
        if not self.refers_whole:
            return values
        means = values.reshape(-1, positions, values.shape[1]).mean(dim=1)
        return means.repeat_interleave(positions, dim=0)

    def _expected(self, probs: Tensor, losses: Tensor, answers: Tensor) -> Tensor:
        """Return the expected loss (N, K), by ``probs``, of ``answers`` (N, K): column numbers of ``losses``."""
        with torch.autocast(probs.device.type, enabled=False):
            of_answers = losses.float().T[answers]  # (N, K, C)
            # A matrix product would round a row by the size of its batch; these sums do not.
            return (probs.unsqueeze(1) * of_answers).sum(dim=2)

    @torch.no_grad()
    def fit(
        self,
        preds: Tensor,
        target: Tensor,
        *,
        clusters: Sequence[object] | Tensor | None = None,
        groups: Mapping[str, Sequence[object] | Tensor] | None = None,
        weights: Sequence[float] | Tensor | None = None,
        costs: Tensor | None = None,
        ignore_index: int | None = None,
    ) -> Self:
        """Fit the calibration, the correction for ``priors`` and the thresholds on samples unseen in training.

        Args:
            preds: ``(N, C)`` floating point logits. Or ``(N, C, ...)``, such as those of the pixels of N images: each
                position is then decided, and **each sample is a cluster**, unless ``clusters`` are given.
            target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``.
            clusters: ``(N,)`` cluster names, for example the patient of each sample, if samples of one cluster are not
                independent. A limit per sample then holds for new clusters up to the largest size here; a limit per
                cluster holds for any size. A fifth of the clusters is used only for calibration and to tune the tests.
            groups: For each column in the ``by`` of a limit: ``(N,)`` the name of the group of each sample.
            weights: ``(N,)`` weights of the samples, if only some samples of each cluster were kept: the size of the
                cluster divided by the number of its kept samples. Default: limits hold for kept samples only.
            costs: ``(N, C, C, ...)``: costs of the samples, by true class and decision, finite, in place of those of
                the concern; gains are negative. `mpcs_torch.functional.costs_if_wrong` makes them of amounts. They must
                be known before the true class is. Coarse answers and referrals cost what the concern says, in the same
                unit. Limits on costs are then not possible.
            ignore_index: The label of samples without a label, such as some pixels. They do not count; but with
                ``refers_whole``, whole samples are referred by all positions, as new ones will be.

        Raises:
            ValueError: If a shape, a dtype or a value is invalid. If a limit counts too few samples or clusters to be
                guaranteed, the error is an `UnattainableLimitError`. Its message has the lowest limit that these
                samples can guarantee, and the number of samples that the requested limit needs.

        Warns:
            CalibrationWarning: If the calibration has no finite optimum; the logits are then left uncalibrated.
            ProbabilitiesWarning: If the logits look like probabilities.
            AllReferredWarning: If more than 99 % of the samples are referred, or if the limits allow no decision.
            EvaluationWarning: E4, if the rule has limits, but a class that is dangerous to miss has no limit of its own
                and fewer than 59 samples (or clusters with samples of this class).
        """
        number, positions = len(preds), prod(preds.shape[2:])
        if preds.ndim > 2 and clusters is None:
            clusters = range(number)
        flat = None
        if costs is not None:
            flat = flat_costs(costs, preds.shape).to(preds.device).float()
        calibrates = self.calibration_method is not None
        preds, labels = checked_logits(
            preds, target, len(self.costs), ignore_index, calibrates=calibrates
        )
        labelled = labels.counted.nonzero().squeeze(1)
        require(len(labelled), "some_label", "target", ignore_index)
        target = labels.target[labelled]
        sample = labelled.cpu() // positions  # the sample that each position belongs to
        if flat is not None:
            of_costs = [str(limit) for limit in self.limits if limit.errors == "cost"]
            require(not of_costs, "no_limit_of_costs", "limits", of_costs)
            check_row_costs(flat[labelled], target)
        codes = self._groups_by_column(groups, number, sample)
        cluster_codes = None
        if clusters is not None:
            codes_of_rows = group_codes("clusters", clusters, number).codes[sample]
            # Some clusters may have no sample with a label, so the others are numbered anew.
            _, cluster_codes = codes_of_rows.unique(return_inverse=True)  # type: ignore[no-untyped-call]
        if weights is not None:
            weights = row_weights(weights, number)[sample]
        per_cluster = [str(limit) for limit in self.limits if limit.per == PER_CLUSTER]
        is_valid = not per_cluster or clusters is not None
        require(is_valid, "clusters_of_limits", "clusters", limits=per_cluster)
        before = {name: value.clone() for name, value in self.state_dict().items()}
        was_fitted = self.is_fitted
        self.is_fitted = True
        samples = FitSamples(
            preds, labelled, target, codes, cluster_codes, weights, flat, positions
        )
        try:
            self._fit(samples)
        except BaseException:
            # An error must not leave thresholds that guarantee nothing.
            self.is_fitted = was_fitted
            self.load_state_dict(before)
            raise
        self.has_row_costs = costs is not None
        self.known_rows = known_rows(hash_rows(preds))
        self._warn_of_rare_classes(target, cluster_codes)
        self._warn_of_referrals()
        return self

    def _groups_by_column(
        self,
        groups: Mapping[str, Sequence[object] | Tensor] | None,
        number: int,
        sample: Tensor,
    ) -> dict[str, Groups]:
        """Return the groups of each position by column; ``groups`` are those of a ``number`` of samples."""
        columns = {limit.by for limit in self.limits if limit.by is not None}
        by_sample = codes_by_column(groups, number)
        if not columns <= set(by_sample):
            raise InvalidValueError(
                "columns_of_limits", "groups", list(by_sample), columns=sorted(columns)
            )
        return {
            column: Groups(by_name.names, by_name.codes[sample])
            for column, by_name in by_sample.items()
        }

    def _fit(self, samples: FitSamples) -> None:
        preds, labelled, target, _, clusters, weights, costs, positions = samples
        if clusters is None and weights is not None:
            clusters = torch.arange(len(target))
        calibration_rows, threshold_rows = split_rows(
            self.limits,
            self.concern,
            len(target),
            clusters,
            self.seed,
            is_fitted=self.calibration_method is not None or self.priors is not None,
        )
        is_split = len(threshold_rows) < len(target)
        if isinstance(self.calibration, TemperatureScaling | VectorScaling):
            log_probs = preds[labelled[calibration_rows]].log_softmax(dim=1)
            self.calibration.fit(log_probs, target[calibration_rows])
        if self.priors is not None:
            frequencies = class_frequencies(target[calibration_rows], self.concern.classes)
            self.prior_ratio.copy_(self.priors.to(preds) / frequencies.to(preds))
        if self.limits:
            choices, probs, _ = self._weigh(preds, costs, positions)
            answers, is_worth = choices
            risks = list[Tensor]()
            for losses in self.losses:
                of_answers = self._expected(probs, losses, answers)
                risks.append(self._over_sample(of_answers, positions))
            # An answer that costs more than a referral is not allowed, whatever its risk.
            risk = torch.where(is_worth.unsqueeze(2), torch.stack(risks, dim=2), torch.inf)
            thresholds = choose_thresholds(
                self.limits,
                self.concern,
                samples._replace(target=target.cpu(), clusters=clusters),
                answers[labelled].cpu(),
                risk[labelled].cpu().double(),
                calibration_rows,
                threshold_rows,
            )
            self.thresholds.copy_(thresholds)
        judged = labelled[threshold_rows]
        report = report_on(
            self._assess(preds, costs, positions).decision[judged],
            target[threshold_rows],
            self.concern,
            is_clustered=clusters is not None,
            weights=None if weights is None else weights[threshold_rows],
            costs=None if costs is None else costs[judged],
        )
        if is_split or self.calibration_method is not None:
            report = report._replace(calibrated_by=len(calibration_rows))
        self.report = report._replace(seed=self.seed if is_split else None)

    def _warn_if_unfitted(self) -> None:
        needs_fit = self.calibration_method is not None or self.priors is not None
        # Without a fit, a rule with limits refers every sample, which is safe.
        if needs_fit and not self.is_fitted and not self.limits:
            warnings.warn(
                "the rule was not fitted: call fit first.",
                UnfittedRuleWarning,
                stacklevel=4,
            )

    def _warn_of_referrals(self) -> None:
        assert self.report is not None
        if self.limits and (self.thresholds <= 0).all():
            referred = (
                "all samples are referred, except those whose decision no limit counts: with these samples, no other "
                "threshold guarantees the limits."
            )
        elif self.report.coverage < MIN_DECIDED:
            share = in_percent(1 - self.report.coverage)
            referred = f"{share} of the samples of the fit are referred."
        else:
            return
        causes = (
            f"Are the columns of preds in the order of the classes ({listed(self.concern.classes)})? If so, limits are "
            "too low, or referrals too cheap, for this model."
        )
        warnings.warn(f"{referred} {causes}", AllReferredWarning, stacklevel=3)

    def _warn_of_rare_classes(self, target: Tensor, clusters: Tensor | None) -> None:
        if not self.limits:
            return
        limited = {
            limit.of for limit in self.limits if limit.errors in ("dangerous", "any")
        }
        units = "samples"
        if clusters is not None:
            units = "clusters with samples"
            pairs = torch.stack([target.cpu(), clusters.cpu()])
            target, _ = pairs.unique(dim=1)  # type: ignore[no-untyped-call]
        counts = target.bincount(minlength=len(self.costs))
        cautions = rare_classes(
            self.concern.classes, counts, self.dangerous, limited, units
        )
        for caution in cautions:
            warnings.warn(caution, stacklevel=3)

    def warn_of_fitted(self, preds: Tensor) -> None:
        """Warn (`EvaluationWarning` E1) if rows of logits (N, C) or (N, C, ...) were used in the fit.

        Call this before you evaluate the decisions for these rows.
        """
        rows = hash_rows(by_class(preds, len(self.costs)))
        for caution in warn_of_known(self.known_rows, rows, "the fit of the rule"):
            warnings.warn(caution, stacklevel=3)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the rule atomically to a file that `load` reads.

        Raises:
            FileExistsError: If the file exists and ``overwrite`` is False.
            ValueError: If ``path`` is not local, such as ``s3://bucket/file``.
        """
        path = local_path(path, "path")
        self._warn_if_unfitted()
        if path.exists() and not overwrite:
            raise ExistsError("exists_already", str(path))
        content = {
            "concern": concern_as_plain(self.concern),
            "settings": {
                "calibration": self.calibration_method,
                "priors": self.priors,
                "refers_whole": self.refers_whole,
                "seed": self.seed,
            },
            "has_row_costs": self.has_row_costs,
            "limits": [asdict(limit) for limit in self.limits],
            "state": dict(self.state_dict()),
            "report": None if self.report is None else self.report.plain(),
            "known_rows": self.known_rows,
        }
        save_artifact(content, path, kind=KIND)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load a rule to the CPU from a file that `save` wrote; the file cannot run code (``weights_only=True``).

        Raises:
            ValueError: If the file is not a decision rule or is damaged, or if ``path`` is not local, such as
                ``s3://bucket/file``.
            FileNotFoundError: If the file does not exist.
        """
        return load_artifact(
            local_path(path, "path"),
            cls._restored,
            kind=KIND,
            source="a decision rule",
            subject="the decision rule",
        )

    @classmethod
    def _restored(cls, content: dict[str, Any]) -> Self:
        classes = content["concern"]["classes"]
        state = content["state"]
        report = content["report"]
        check_whole_tensors(
            [*state.values(), *content["settings"].values(), content["known_rows"]]
        )
        # A small file must not ask for large matrices.
        if not isinstance(classes, list) or len(state["costs"]) != len(classes):
            raise InvalidValueError("row_for_each_class", "costs")
        limits = [Limit(**limit) for limit in content["limits"]]
        if len(state["losses"]) != len(limits):
            raise InvalidValueError("matrix_for_each_limit", "losses")
        rule = cls(ConcernSpec(**content["concern"]), limits, **content["settings"])
        computed = {
            name: rule.get_buffer(name).clone() for name in ("costs", "dangerous", "losses")
        }
        rule.load_state_dict(state)
        for name, value in rule.state_dict().items():
            if name in computed and not torch.equal(value, computed[name]):
                raise InvalidValueError("of_concern", name)
            if name != "thresholds" and not value.isfinite().all():
                raise InvalidValueError("finite", name)
        is_infinite = rule.thresholds.abs() == torch.inf  # refers every sample, or none
        is_share = (rule.thresholds >= 0) & (rule.thresholds <= 1)
        if not (is_infinite | is_share).all():
            raise InvalidValueError("threshold_range", "thresholds")
        rule.known_rows = content["known_rows"].long().flatten()
        rule.has_row_costs = bool(content.get("has_row_costs"))
        if report is not None:
            rule.report = RuleReport.restored(report)
            rule.is_fitted = True
        return rule
