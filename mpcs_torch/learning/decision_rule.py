"""`DecisionRule`: from logits to a class or a referral, with a guarantee."""

from dataclasses import asdict
from pathlib import Path
from typing import Literal, Self

import torch
from torch import Tensor, nn

from mpcs_torch.calibration import TemperatureScaling, VectorScaling
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern.decision import least_risk
from mpcs_torch.functional.concern.priors import check_priors
from mpcs_torch.functional.inputs.checks import check_choice
from mpcs_torch.functional.inputs.decisions import REFERRED
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.probabilities import flatten_samples
from mpcs_torch.learning import decision_file
from mpcs_torch.learning.rule_limit import RuleLimit, RuleReport, report_on

CalibrationMethod = Literal["temperature", "vector", None]
CALIBRATION_SHARE = 0.2
"""How many of the samples fit the calibration if a limit is to be guaranteed by the others."""


class DecisionRule(nn.Module):
    """Decide for the class with the minimum expected cost, or refer the sample to somebody else.

    `fit` calibrates the logits on validation samples. A decision is referred (-1) if a referral costs less
    (``ConcernSpec.refer``), or if its estimated risk is too high for the limit that was asked for: dangerous errors or
    costs per sample, referred samples included, not per decided sample. The limit then holds for new samples, whatever
    the model: with a probability of at least ``confidence`` over the samples of the fit, or in expectation over them
    and new samples. For this, a fifth of the samples of the fit go to the calibration and the others choose the
    threshold (`mpcs_torch.functional.risk_threshold`). New samples must be like those of the fit (exchangeable), and
    nothing else may have been chosen by the latter.

    Args:
        concern: What errors and referrals cost, and which errors are dangerous.
        calibration: ``"temperature"`` for `TemperatureScaling`, ``"vector"`` for `VectorScaling`, or None for logits
            whose softmax is calibrated.
        priors: ``(C,)`` class frequencies of the deployment, if they differ from those of the samples of the fit.
            Cannot be combined with a limit, which holds for samples like those of the fit alone.
        max_dangerous: Limit on dangerous errors per sample, above 0 and below 1.
        max_cost: Limit on the cost of errors per sample, above 0; in expectation only. A referral counts 0 here.
        confidence: The probability with which the limit on dangerous errors holds, such as 0.95. Default: it holds in
            expectation.
        seed: Of the draw of the samples that fit the calibration.

    Raises:
        ValueError: If a setting breaks its rule.

    Example:
        >>> import torch
        >>> from mpcs_torch import ConcernSpec
        >>> from mpcs_torch.learning import DecisionRule
        >>> generator = torch.Generator().manual_seed(0)
        >>> target = torch.randint(0, 3, (2000,), generator=generator)
        >>> logits = 3 * torch.eye(3)[target] + torch.randn(2000, 3, generator=generator)  # of your validation data
        >>> lights = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"], ["yellow", "red"]])
        >>> rule = DecisionRule(lights, max_dangerous=0.005, confidence=0.95).fit(logits, target)
        >>> rule(torch.tensor([[4.0, 0.0, 0.0], [1.0, 0.0, 1.5]]))  # the second is unsure between red and green
        tensor([ 0, -1])
    """

    costs: Tensor
    """``(C, C)`` or ``(C, C + 1)``, float32: `ConcernSpec.costs`."""
    risk: Tensor
    """``(C, C + 1)``, float32: the loss of a decision (column, the last for a referral) that the limit is on."""
    prior_ratio: Tensor
    """``(C,)``, float32: priors of the deployment by those of the samples of the fit."""
    threshold: Tensor
    """Scalar, float32: decisions with this estimated risk or more are referred."""

    def __init__(
        self,
        concern: ConcernSpec,
        *,
        calibration: CalibrationMethod = "temperature",
        priors: Tensor | None = None,
        max_dangerous: float | None = None,
        max_cost: float | None = None,
        confidence: float | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        classes = len(concern.class_names)
        check_choice("calibration", calibration, CalibrationMethod)
        self.limit = RuleLimit(max_dangerous, max_cost, confidence)
        if priors is not None:
            check_priors(priors, classes, name="priors")
            if self.limit:
                raise ValueError(
                    "priors must not be given with a limit, which holds for samples like those of the fit."
                )
        self.concern, self.calibration_method, self.priors, self.seed = concern, calibration, priors, seed
        self.calibration = _new_calibration(calibration, classes)
        self.report: RuleReport | None = None
        """What `fit` found; None before."""
        costs = concern.costs()
        risk = concern.dangerous_pairs().double() if max_cost is None else costs[:, :classes]
        self.register_buffer("costs", costs.float())
        self.register_buffer("risk", nn.functional.pad(risk, (0, 1)).float())
        self.register_buffer("prior_ratio", torch.ones(classes))
        # A rule with a limit refers every sample until it is fitted.
        self.register_buffer("threshold", torch.tensor(-torch.inf if self.limit else torch.inf))

    def forward(self, preds: Tensor) -> Tensor:
        """Decide for each row of logits (N, C): int64 (N,) class indices, or -1 for a referral.

        Values are not checked: a sample whose logits hold NaN or +inf is referred.
        """
        decided, risk = self.estimate(preds)
        return torch.where(risk < self.threshold, decided, REFERRED)

    def estimate(self, preds: Tensor) -> tuple[Tensor, Tensor]:
        """Return the class of minimum expected cost and its estimated risk, both (N,), for logits (N, C).

        The risk is the probability that the decision is a dangerous error, or with ``max_cost`` its expected cost. It
        is infinite where a referral costs less than any class.
        """
        probs = self.calibration(preds.float()).softmax(dim=1)
        # Not normalized: that would not change which decision costs least.
        probs = probs * self.prior_ratio
        decided = least_risk(probs, self.costs)
        risk = (probs @ self.risk).gather(1, decided.unsqueeze(1)).squeeze(1) / probs.sum(dim=1)
        return decided, torch.where(decided == len(self.costs), torch.inf, risk)

    @torch.no_grad()
    def fit(self, preds: Tensor, target: Tensor) -> Self:
        """Fit the calibration, the priors and the threshold on validation samples that the model was not trained on.

        Args:
            preds: ``(N, C)`` floating point logits.
            target: ``(N,)`` integer class indices in ``[0, C)``.

        Raises:
            ValueError: If a shape, a dtype or a value breaks its rule above, or if so few samples cannot guarantee the
                limit; the message says which limit they can guarantee, and how many samples this one takes.

        Warns:
            CalibrationWarning: If the calibration has no finite optimum; the logits are then used as they are.
        """
        preds, target = self._checked(preds, target)
        before = {name: value.clone() for name, value in self.state_dict().items()}
        try:
            self._fit(preds, target)
        except BaseException:
            self.load_state_dict(before)  # a limit that cannot be guaranteed must not leave a rule without one
            raise
        return self

    def _fit(self, preds: Tensor, target: Tensor) -> None:
        given = len(target)
        order = torch.randperm(len(target), generator=torch.Generator().manual_seed(self.seed)).to(target.device)
        share = round(CALIBRATION_SHARE * len(target)) if self.limit and self.calibration_method else 0
        calibrating, judging = (order[:share], order[share:]) if share else (order, order)
        if isinstance(self.calibration, TemperatureScaling | VectorScaling):
            self.calibration.fit(preds[calibrating], target[calibrating])
        if self.priors is not None:
            frequencies = target.bincount(minlength=len(self.costs)) / len(target)
            check_priors(frequencies, len(self.costs), name="training_priors")
            self.prior_ratio.copy_(self.priors.to(frequencies) / frequencies)
        preds, target = preds[judging], target[judging]
        self.threshold.fill_(torch.inf)
        if self.limit:
            decided, risk = self.estimate(preds)
            loss, highest = self.risk[target, decided], float(self.risk.max())
            self.threshold.copy_(self.limit.threshold(risk, loss, highest_loss=highest, given=given))
        calibrated_by = len(calibrating) if self.calibration_method else 0
        self.report = report_on(self(preds), target, self.concern, calibrated_by=calibrated_by)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the rule to a file that `load` reads, in one step.

        Raises:
            FileExistsError: If the file exists, unless ``overwrite``.
        """
        settings = {
            "calibration": self.calibration_method,
            "priors": self.priors,
            "seed": self.seed,
            **asdict(self.limit),
        }
        report = None if self.report is None else self.report._asdict()
        decision_file.save(Path(path), self.concern, settings, self.state_dict(), report, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a rule that `save` wrote, with ``weights_only=True``, to the CPU.

        Raises:
            DecisionFileError: If the file holds something else or is damaged.
            FileNotFoundError: If there is no such file.
        """
        held = decision_file.load(Path(path))
        with decision_file.reading(Path(path)):
            rule = cls(ConcernSpec(**held["concern"]), **held["settings"])
            rule.load_state_dict(held["state"])
            rule.report = None if held["report"] is None else RuleReport(**held["report"])
        return rule

    def _checked(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        if preds.ndim != 2:
            raise ValueError(f"preds must have shape (N, C), but got {tuple(preds.shape)}.")
        samples = flatten_samples(
            preds, target, num_classes=len(self.costs), scale="logits", ignore_index=None, sample_weight=None
        )
        raise_first(samples.find_faults())
        if not len(preds):
            raise ValueError("preds must hold at least one sample, but is empty.")
        return samples.scores, samples.labels.target


def _new_calibration(method: CalibrationMethod, classes: int) -> nn.Module:
    if method is None:
        return nn.Identity()
    return TemperatureScaling() if method == "temperature" else VectorScaling(classes)
