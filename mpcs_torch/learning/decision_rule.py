"""`DecisionRule`: from logits to a class or a referral, with a guarantee; saved to a file that runs no code."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import torch
from torch import Tensor, nn

from mpcs_torch.calibration import TemperatureScaling, VectorScaling
from mpcs_torch.calibration.scaling import ScalingMethod, make_scaling
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.files import concern_as_plain
from mpcs_torch.errors import MpcsError, quoted, require
from mpcs_torch.functional.concern.decision import Choices, cheapest
from mpcs_torch.functional.inputs.arrays import no_concern
from mpcs_torch.functional.inputs.checks import check_choice, check_priors
from mpcs_torch.functional.inputs.decisions import REFERRED
from mpcs_torch.functional.inputs.evaluation_warnings import hash_rows, known_rows, rare_classes, warn_of_known
from mpcs_torch.functional.inputs.groups import Groups, codes_by_column, group_codes, row_weights
from mpcs_torch.io.atomic_files import replace_whole
from mpcs_torch.io.untrusted_files import check_whole_tensors, load_fitted
from mpcs_torch.learning.rule_limit import CLUSTER, Limit, RuleReport, report_on
from mpcs_torch.learning.rule_samples import (
    FitSamples,
    calibrating,
    checked_logits,
    choose_thresholds,
    class_frequencies,
    needs_path,
)

KIND = "mpcs_torch decision rule"
"""Names the kind of the file in its field ``kind``."""
IS_DECIDED, IS_CHEAPER, IS_UNSOUND, IS_LIMITED = range(4)
"""Why a sample is decided or referred. From the last number on: which limit its risk is too high for."""


class DecisionFileError(MpcsError, ValueError):
    """A file that does not hold a decision rule."""


class AllReferredWarning(UserWarning):
    """A fit whose limits allow no decision."""


class UnfittedRuleWarning(UserWarning):
    """A rule that has something to fit decides or is saved before it was fitted."""


class Assessment(NamedTuple):
    """The decision for each sample, and the best class, its risk and why it is not the decision, for all samples."""

    decision: Tensor
    """(N,), int64: a class, C + a for the coarse answer a of the concern, or -1 for a referral."""
    best: Tensor
    """(N,), int64: the class with the minimum expected cost."""
    risk: Tensor
    """(N,): the estimated probability that the best class is a dangerous error; 0 where it cannot be one."""
    cost: Tensor
    """(N,): the expected cost of the best class, on the scale of the concern: the order for reviewers."""
    reason: Tensor
    """(N,), int64: 0 if the best class is the decision. Else why not: 1 if something else costs less, 2 if the logits
    are not sound, 3 + j if its risk is too high for the limit j."""


CalibrationMethod = Literal[ScalingMethod, None]


class DecisionRule(nn.Module):
    """Decide for the class with the minimum expected cost, or refer the sample to somebody else.

    `fit` calibrates the logits on validation samples. A decision is referred (-1) if a referral costs less
    (``ConcernSpec.refer``), or if its estimated risk is too high for a limit that was asked for (`Limit`). If the
    concern has coarse answers, the sample gets the cheapest answer whose risk is low enough. Limits hold
    for new samples, whatever the model: with a probability of at least their ``confidence`` over the samples of the
    fit. Several limits hold together with the lowest confidence of them. For this, a fifth of the samples of the fit go
    to the calibration, and the others choose the thresholds.

    New samples must be like those of the fit (exchangeable), and these must be independent of each other, but for those
    of a cluster if clusters are given; nothing else may have been chosen by them, not even the ``seed``. A limit of all
    samples or of decided ones says nothing about a rare class, and does not hold where classes are more or less
    frequent than in the fit.

    Args:
        concern: What errors and referrals cost, and which errors are dangerous.
        limits: The limits to guarantee: one `Limit`, or several.
        calibration: ``"temperature"`` for `TemperatureScaling`, ``"vector"`` for `VectorScaling`, or None for logits
            whose softmax is calibrated.
        priors: ``(C,)`` class frequencies of the deployment, if they differ from those of the samples of the fit; a
            tensor or a list. With them, limits must be of true classes, which hold at any frequencies: also if the
            priors are wrong, as long as they do not depend on the samples of the fit. Costs rest on them entirely.
        seed: Of the draw of the samples that fit the calibration; the report shows it. Fix it beforehand: with the one
            of 16 seeds that decides most, 13 % of fits to 500 samples exceeded a limit with confidence 95 %.

    Raises:
        ValueError: If a setting breaks its rule.

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
    """``(C, C)`` or ``(C, C + A + 1)``, float32: `ConcernSpec.costs`, divided by the highest."""
    dangerous: Tensor
    """``(C, C)``, float32: 1 for dangerous errors, rows true classes."""
    losses: Tensor
    """``(J, C, C + A)``, float32: for each limit the loss of an answer (column), at most 1."""
    prior_ratio: Tensor
    """``(C,)``, float32: priors of the deployment by those of the samples of the fit."""
    thresholds: Tensor
    """``(J,)``, float32: samples whose estimated loss is not below that of each limit are referred. From 0 on, answers
    that a limit counts no error of are allowed; before a fit, thresholds are minus infinity."""

    def __init__(
        self,
        concern: ConcernSpec,
        limits: Limit | Sequence[Limit] = (),
        *,
        calibration: CalibrationMethod = "temperature",
        priors: Tensor | Sequence[float] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if not isinstance(concern, ConcernSpec):
            raise ValueError(f"concern must be a ConcernSpec, but got {no_concern(concern)}")
        classes = len(concern.classes)
        check_choice("calibration", calibration, CalibrationMethod)
        self.limits = tuple(limits) if isinstance(limits, list | tuple) else (limits,)
        wrong = next((limit for limit in self.limits if not isinstance(limit, Limit)), None)
        if wrong is not None:
            raise ValueError(f"limits must be of type Limit (Limit.parse reads text), but got {quoted(wrong)}.")
        is_alone = len(self.limits) < 2 or not any(limit.is_budget for limit in self.limits)
        rule = "limits must not have others beside a budget of referrals"
        require(is_alone, rule, quoted(list(map(str, self.limits))))
        if priors is not None:
            priors = torch.as_tensor(priors, dtype=torch.float32)
            check_priors(priors, classes, name="priors")
            are_marginal = [
                not each.is_of_true_class or len(each.classes_of(concern) or ()) > 1 for each in self.limits
            ]
            marginal = [str(limit) for limit, is_marginal in zip(self.limits, are_marginal, strict=True) if is_marginal]
            rule = "priors must only be given with limits of single true classes, which hold at any frequencies"
            require(not marginal, rule, quoted(marginal))
        self.concern, self.calibration_method, self.priors, self.seed = concern, calibration, priors, seed
        self.calibration: nn.Module = nn.Identity()
        if calibration is not None:
            self.calibration = make_scaling(calibration, classes)
        self.report: RuleReport | None = None
        """The findings of `fit`; None before."""
        self.is_fitted = False
        """Whether `fit` was called, here or before the rule was saved."""
        self.known_rows = torch.zeros(0, dtype=torch.int64)
        """Hashes by which rows of the fit are recognized."""
        costs = concern.costs()
        self.highest_cost = float(costs.max())
        losses = [limit.losses(concern) for limit in self.limits]
        highest_losses = [float(loss.max()) for loss in losses]
        for limit, highest in zip(self.limits, highest_losses, strict=True):
            if limit.at_most >= highest:
                rule = f"limits must be below the highest possible loss, but that of '{limit}' is {highest:g}"
                raise ValueError(f"{rule}: no decision can break it.")
        scaled = [loss / highest for loss, highest in zip(losses, highest_losses, strict=True)]
        self.register_buffer("costs", (costs / costs.max()).float())
        self.register_buffer("dangerous", concern.dangerous_pairs().float())
        self.register_buffer("losses", torch.stack(scaled).float() if scaled else torch.zeros(0, classes, 1))
        self.register_buffer("prior_ratio", torch.ones(classes))
        # A rule with a limit refers every sample until it is fitted.
        self.register_buffer("thresholds", torch.full((len(self.limits),), -torch.inf))

    def forward(self, preds: Tensor) -> Tensor:
        """Decide for each row of logits (N, C): int64 (N,) class indices, C and above for coarse answers, -1 to refer.

        Values are not checked: a sample whose logits hold NaN or +inf is referred.
        """
        return self.assess(preds).decision

    def assess(self, preds: Tensor) -> Assessment:
        """Return the decision for logits (N, C), and the best class, its risk, and why it is not the decision.

        Raises:
            ValueError: If the logits have another shape.

        Warns:
            UnfittedRuleWarning: If the rule has no limits, but a calibration or priors, and was not fitted.
        """
        shape, classes = tuple(preds.shape), len(self.costs)
        require(len(shape) == 2 and shape[1] == classes, f"preds must have shape (N, {classes})", shape)
        self._warn_if_unfitted()
        (answers, is_worth), probs = self._choices(preds)
        best = answers.amin(dim=1, keepdim=True)  # coarse answers follow the classes
        is_best = answers == best
        is_allowed, reason = is_worth, torch.where((is_worth & is_best).any(dim=1), IS_DECIDED, IS_CHEAPER)
        for number in range(len(self.limits)):
            losses, threshold = self.losses[number], self.thresholds[number]
            is_harmless = (losses.amax(dim=0) == 0)[answers] & (threshold >= 0)
            is_below = (self._expected(probs, losses, answers) < threshold) | is_harmless
            is_too_high = (is_best & ~is_below).any(dim=1) & (reason == IS_DECIDED)
            is_allowed, reason = is_allowed & is_below, torch.where(is_too_high, IS_LIMITED + number, reason)
        first = is_allowed.int().argmax(dim=1, keepdim=True)  # the cheapest
        decision = torch.where(is_allowed.any(dim=1), answers.gather(1, first).squeeze(1), REFERRED)
        best = best.squeeze(1)
        reason = torch.where((reason == IS_DECIDED) & (decision != best), IS_CHEAPER, reason)
        risk = self._expected(probs, self.dangerous, best.unsqueeze(1)).squeeze(1)
        is_sound = risk.isfinite()
        decision, reason = torch.where(is_sound, decision, REFERRED), torch.where(is_sound, reason, IS_UNSOUND)
        cost = self._expected(probs, self.costs, best.unsqueeze(1)).squeeze(1) * self.highest_cost
        return Assessment(decision, best, risk, cost, reason)

    def _choices(self, preds: Tensor) -> tuple[Choices, Tensor]:
        """Return the answers that samples may get, and their probabilities (N, C)."""
        with torch.autocast(preds.device.type, enabled=False):  # a guarantee must not depend on the caller's precision
            # Log-probabilities, because logits that differ by a constant in each row mean the same.
            log_probs = self.calibration(preds.float().log_softmax(dim=1)).log_softmax(dim=1)
            probs = (log_probs + self.prior_ratio.float().log()).softmax(dim=1)
            return cheapest(probs, self.costs.float()), probs

    def _expected(self, probs: Tensor, losses: Tensor, answers: Tensor) -> Tensor:
        """Return the expected loss of answers: (N, K). Each row is added up alone, so that batches do not matter."""
        with torch.autocast(probs.device.type, enabled=False):
            return (probs.unsqueeze(1) * losses.float().T[answers]).sum(dim=2)

    @torch.no_grad()
    def fit(
        self,
        preds: Tensor,
        target: Tensor,
        *,
        clusters: Sequence[object] | Tensor | None = None,
        groups: Mapping[str, Sequence[object] | Tensor] | None = None,
        weights: Sequence[float] | Tensor | None = None,
    ) -> Self:
        """Fit the calibration, the priors and the thresholds on validation samples that the model was not trained on.

        Args:
            preds: ``(N, C)`` floating point logits.
            target: ``(N,)`` integer class indices in ``[0, C)``.
            clusters: ``(N,)`` names of what samples share, such as the patient: samples of a cluster are not
                independent. Limits then hold over the samples of new clusters, none of them larger than the largest, or
                per cluster (`Limit`), of any size. A fifth of the clusters fixes the bets of their test.
            groups: ``(N,)`` names of the group of each sample, by column, for limits ``by`` a column.
            weights: ``(N,)`` 1 by the chance with which each sample was kept, where only some of those of a cluster
                are: its size by the number kept (Horvitz and Thompson). Without, limits would be of kept samples.

        Raises:
            ValueError: If a shape, a dtype or a value breaks its rule above, or, an `UnattainableLimitError`, if so few
                samples (of the class and group of the limit) or clusters cannot guarantee a limit; the message says
                which limit they can guarantee, and how many it takes.

        Warns:
            CalibrationWarning: If the calibration has no finite optimum; the logits are then used as they are.
            ProbabilitiesWarning: If the logits look like probabilities.
            AllReferredWarning: If the limits allow no decision.
            EvaluationWarning: E4, if a class that is dangerous to miss has no limit and fewer than 59 samples; given
                clusters, they count.
        """
        preds, target = checked_logits(preds, target, len(self.costs), calibrates=self.calibration_method is not None)
        columns = {limit.by for limit in self.limits if limit.by is not None}
        codes = codes_by_column(groups, len(target))
        if not columns <= set(codes):
            raise ValueError(f"groups must hold the columns of limits, {quoted(sorted(columns))}, but has not all.")
        of_clusters = None if clusters is None else group_codes("clusters", clusters, len(target)).codes
        counts = None if weights is None else row_weights(weights, len(target))
        per_cluster = next((str(limit) for limit in self.limits if limit.per == CLUSTER), None)
        require(
            per_cluster is None or clusters is not None, "clusters must be given for limits per cluster", per_cluster
        )
        before, was_fitted = {name: value.clone() for name, value in self.state_dict().items()}, self.is_fitted
        self.is_fitted = True
        try:
            self._fit(preds, target, codes, of_clusters, counts)
        except BaseException:
            self.is_fitted = was_fitted
            self.load_state_dict(before)  # a limit that cannot be guaranteed must not leave a rule without one
            raise
        self.known_rows = known_rows(hash_rows(preds))
        self._warn_of_rare_classes(target, of_clusters)
        if self.limits and (self.thresholds <= 0).all():
            warnings.warn(
                "every sample is referred, unless no limit counts its decision: no other decision keeps the limits so "
                "surely, by these samples.",
                AllReferredWarning,
                stacklevel=2,
            )
        return self

    def _fit(
        self,
        preds: Tensor,
        target: Tensor,
        groups: Mapping[str, Groups],
        clusters: Tensor | None,
        weights: Tensor | None,
    ) -> None:
        clusters = torch.arange(len(target)) if clusters is None and weights is not None else clusters
        calibrating, judging = self._split(target, clusters)
        if isinstance(self.calibration, TemperatureScaling | VectorScaling):
            self.calibration.fit(preds[calibrating].log_softmax(dim=1), target[calibrating])
        if self.priors is not None:
            frequencies = class_frequencies(target[calibrating], self.concern.classes)  # not of those that judge
            self.prior_ratio.copy_(self.priors.to(preds) / frequencies.to(preds))
        if self.limits:
            (answers, is_worth), probs = self._choices(preds)
            risk = torch.stack([self._expected(probs, losses, answers) for losses in self.losses], dim=2)
            risk = torch.where(is_worth.unsqueeze(2), risk, torch.inf).cpu().double()
            given = FitSamples(target.cpu(), answers.cpu(), risk, groups, clusters, weights)
            chosen = choose_thresholds(self.limits, self.concern, given, calibrating.cpu(), judging.cpu())
            self.thresholds.copy_(chosen.to(self.thresholds))
        is_drawn = len(judging) < len(target)
        calibrated_by = len(calibrating) if is_drawn or self.calibration_method else 0
        report = report_on(
            self(preds[judging]),
            target[judging],
            self.concern,
            priors=self.priors,
            is_clustered=clusters is not None,
            weights=None if weights is None else weights[judging.cpu()],
        )
        self.report = report._replace(calibrated_by=calibrated_by, seed=self.seed if is_drawn else None)

    def _split(self, target: Tensor, clusters: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the places of samples that calibrate and fix the path, and of those that judge: all, without need."""
        units = torch.arange(len(target), device=target.device) if clusters is None else clusters.to(target.device)
        needs_others = self.calibration_method is not None or self.priors is not None or clusters is not None
        if not self.limits or not (needs_others or needs_path(self.limits, self.concern)):
            every = torch.arange(len(target), device=target.device)
            return every, every
        chosen = calibrating(int(units.max()) + 1, self.seed).to(target.device)[units]
        return chosen.nonzero().squeeze(1), (~chosen).nonzero().squeeze(1)

    def _warn_if_unfitted(self) -> None:
        if not (self.is_fitted or self.limits) and (self.calibration_method is not None or self.priors is not None):
            warnings.warn("the rule was not fitted: call fit first.", UnfittedRuleWarning, stacklevel=4)

    def _warn_of_rare_classes(self, target: Tensor, clusters: Tensor | None) -> None:
        if not self.limits:
            return
        limited = {limit.of for limit in self.limits if limit.errors in ("dangerous", "any")}
        units = "samples" if clusters is None else "clusters with samples"
        if clusters is not None:
            pairs = torch.stack([target.cpu(), clusters.cpu()])
            target = pairs.unique(dim=1)[0]  # type: ignore[no-untyped-call]
        counts = target.bincount(minlength=len(self.costs))
        for caution in rare_classes(self.concern.classes, counts, self.dangerous, limited, units):
            warnings.warn(caution, stacklevel=3)

    def warn_of_fitted(self, preds: Tensor) -> None:
        """Warn (`EvaluationWarning` E1) if rows of logits (N, C) were in the fit."""
        for caution in warn_of_known(self.known_rows, hash_rows(preds), "the fit of the rule"):
            warnings.warn(caution, stacklevel=3)

    @torch.no_grad()
    def evaluate(self, preds: Tensor, target: Tensor) -> RuleReport:
        """Measure coverage, dangerous errors and cost on samples, at their own class frequencies and at the priors.

        Arguments and errors are those of `fit`.

        Warns:
            EvaluationWarning: E1, if samples were in the fit.
        """
        self.warn_of_fitted(preds)
        return report_on(self(preds), target, self.concern, priors=self.priors)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the rule to a file that `load` reads, in one step.

        Raises:
            FileExistsError: If the file exists, unless ``overwrite``.
        """
        self._warn_if_unfitted()
        if Path(path).exists() and not overwrite:
            raise FileExistsError(f"{path} exists: choose another file or pass overwrite=True")
        content = {
            "kind": KIND,
            "concern": concern_as_plain(self.concern),
            "settings": {"calibration": self.calibration_method, "priors": self.priors, "seed": self.seed},
            "limits": [asdict(limit) for limit in self.limits],
            "state": dict(self.state_dict()),
            "report": None if self.report is None else self.report.plain(),
            "known_rows": self.known_rows,
        }
        replace_whole(Path(path), lambda file: torch.save(content, file))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a rule that `save` wrote, with ``weights_only=True``, to the CPU.

        Raises:
            DecisionFileError: If the file holds something else or is damaged.
            FileNotFoundError: If there is no such file.
        """
        source, subject = "a decision rule", "the decision rule"
        return load_fitted(Path(path), KIND, cls._restored, source=source, subject=subject, error=DecisionFileError)

    @classmethod
    def _restored(cls, content: dict[str, Any]) -> Self:
        """Make the rule of a file; refuse what would take much more memory than the file, or is no part of a rule."""
        classes, state, report = content["concern"]["classes"], content["state"], content["report"]
        check_whole_tensors([*state.values(), *content["settings"].values()])
        if not isinstance(classes, list) or len(state["costs"]) != len(classes):
            raise ValueError("the costs must have a row for each class")
        limits = [Limit(**limit) for limit in content["limits"]]
        if len(state["losses"]) != len(limits):
            raise ValueError("the losses must have a matrix for each limit")
        rule = cls(ConcernSpec(**content["concern"]), limits, **content["settings"])
        rule.load_state_dict(state)
        check_whole_tensors([content["known_rows"]])
        rule.known_rows = content["known_rows"].long().flatten()
        rule.report, rule.is_fitted = None if report is None else RuleReport.restored(report), report is not None
        return rule
