"""`DecisionRule`: from logits to a class or a referral, with a guarantee; saved to a file that runs no code."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from mpcs_torch.calibration import TemperatureScaling, VectorScaling
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.files import concern_as_plain
from mpcs_torch.errors import MpcsError, quoted
from mpcs_torch.functional.concern.decision import least_risk
from mpcs_torch.functional.inputs.arrays import no_concern
from mpcs_torch.functional.inputs.checks import check_choice, check_priors
from mpcs_torch.functional.inputs.decisions import REFERRED
from mpcs_torch.io.atomic_files import replace_whole
from mpcs_torch.io.untrusted_files import check_whole_tensors, load_fitted
from mpcs_torch.learning.rule_limit import (
    RuleLimit,
    RuleReport,
    calibration_samples,
    checked_logits,
    class_frequencies,
    report_on,
)

KIND = "mpcs_torch decision rule"
"""Names the kind of the file in its field ``kind``."""


class DecisionFileError(MpcsError, ValueError):
    """A file that does not hold a decision rule."""


CalibrationMethod = Literal["temperature", "vector", None]


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
        if not isinstance(concern, ConcernSpec):
            raise ValueError(f"concern must be a ConcernSpec, but got {no_concern(concern)}")
        classes = len(concern.classes)
        check_choice("calibration", calibration, CalibrationMethod)
        self.limit = RuleLimit(max_dangerous, max_cost, confidence)
        if priors is not None:
            check_priors(priors, classes, name="priors")
            if self.limit:
                raise ValueError(
                    "priors must not be given with a limit, which holds for samples like those of the fit."
                )
        self.concern, self.calibration_method, self.priors, self.seed = concern, calibration, priors, seed
        self.calibration: nn.Module = nn.Identity()
        if calibration is not None:
            self.calibration = TemperatureScaling() if calibration == "temperature" else VectorScaling(classes)
        self.report: RuleReport | None = None
        """The findings of `fit`; None before."""
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
        with torch.autocast(preds.device.type, enabled=False):  # a guarantee must not depend on the caller's precision
            # Log-probabilities, because logits that differ by a constant in each row mean the same.
            log_probs = self.calibration(preds.float().log_softmax(dim=1)).log_softmax(dim=1)
            probs = (log_probs + self.prior_ratio.float().log()).softmax(dim=1)
            decided = least_risk(probs, self.costs)
            risk = (probs @ self.risk.float()).gather(1, decided.unsqueeze(1)).squeeze(1)
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
        preds, target = checked_logits(preds, target, len(self.costs))
        before = {name: value.clone() for name, value in self.state_dict().items()}
        try:
            self._fit(preds, target)
        except BaseException:
            self.load_state_dict(before)  # a limit that cannot be guaranteed must not leave a rule without one
            raise
        return self

    def _fit(self, preds: Tensor, target: Tensor) -> None:
        order = torch.randperm(len(target), generator=torch.Generator().manual_seed(self.seed)).to(target.device)
        calibrating = judging = order
        if self.limit and self.calibration_method:
            calibrating, judging = order.tensor_split([calibration_samples(len(target))])
        if isinstance(self.calibration, TemperatureScaling | VectorScaling):
            self.calibration.fit(preds[calibrating].log_softmax(dim=1), target[calibrating])
        if self.priors is not None:
            self.prior_ratio.copy_(self.priors.to(preds) / class_frequencies(target, self.concern.classes).to(preds))
        preds, target = preds[judging], target[judging]
        self.threshold.fill_(torch.inf)
        if self.limit:
            decided, risk = self.estimate(preds)
            loss, highest = self.risk[target, decided], float(self.risk.max())
            splits = self.calibration_method is not None
            self.threshold.copy_(self.limit.threshold(risk, loss, highest_loss=highest, splits=splits))
        calibrated_by = len(calibrating) if self.calibration_method else 0
        self.report = self.evaluate(preds, target)._replace(calibrated_by=calibrated_by)

    @torch.no_grad()
    def evaluate(self, preds: Tensor, target: Tensor) -> RuleReport:
        """Measure coverage, dangerous errors and cost on samples, at their own class frequencies, not at the priors.

        Args:
            preds: ``(N, C)`` floating point logits.
            target: ``(N,)`` integer class indices in ``[0, C)``.

        Raises:
            ValueError: If a shape, a dtype or a value breaks its rule above.
        """
        return report_on(self(preds), target, self.concern)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the rule to a file that `load` reads, in one step.

        Raises:
            FileExistsError: If the file exists, unless ``overwrite``.
        """
        path = Path(path)
        if path.exists() and not overwrite:
            raise FileExistsError(f"{path} exists: choose another file or pass overwrite=True")
        settings = {"calibration": self.calibration_method, "priors": self.priors, "seed": self.seed}
        content = {
            "kind": KIND,
            "concern": concern_as_plain(self.concern),
            "settings": settings | asdict(self.limit),
            "state": dict(self.state_dict()),
            "report": None if self.report is None else self.report._asdict(),
        }
        replace_whole(path, lambda file: torch.save(content, file))

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
        wrong = [name for name, value in (report or {}).items() if not isinstance(value, int | float)]
        if wrong:
            raise ValueError(f"{quoted(wrong)} of the report must be numbers")
        rule = cls(ConcernSpec(**content["concern"]), **content["settings"])
        rule.load_state_dict(state)
        rule.report = None if report is None else RuleReport(**report)
        return rule
