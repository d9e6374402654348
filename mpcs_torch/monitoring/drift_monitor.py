"""DriftMonitor: what unlabelled samples hint at."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.inputs.decisions import REFERRED, decision_range
from mpcs_torch.functional.inputs.faults import Fault
from mpcs_torch.metrics.base import ValidateArgs
from mpcs_torch.monitoring.monitor import Monitor, Values, exact

RISK_RULE = "risk must be from 0 to 1, or NaN where it is not known"


class DriftMonitor(Monitor):
    """Test whether decisions without labels still look like those of a reference, however often one looks.

    It monitors the share of each decision (a class, a coarse answer or a referral) and the mean estimated risk. What it
    finds is a hint and no evidence of errors: a model can be wrong more often and decide as before, and class
    frequencies can change without any more errors. While nothing has changed, the probability of an alarm is at
    most 1 - ``confidence``, for all rates together.

    Args:
        concern: The classes and coarse answers.
        confidence: 1 minus the highest acceptable probability of a false alarm.
        reference: A `DriftMonitor` that was updated with reference samples. Default: nothing is tested.
        validate_args: Whether to check the values of batches; ``"eager"`` checks each in its own `update`. Without, bad
            values give a wrong result silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> from mpcs_torch import ConcernSpec
        >>> from mpcs_torch.monitoring import DriftMonitor
        >>> concern = ConcernSpec(["good", "bad"])
        >>> validation = DriftMonitor(concern)
        >>> validation.update(torch.tensor([0, 0, 0, 1, -1]).repeat(200))
        >>> deployed = DriftMonitor(concern, reference=validation)
        >>> deployed.update(torch.tensor([0, 0, 1, -1, -1]).repeat(100))
        >>> dict(zip(deployed.names, deployed.compute().is_alarm.tolist()))
        {'decided good': True, 'decided bad': False, 'referred': True, 'mean risk': False}
    """

    sides = 2

    def __init__(
        self,
        concern: ConcernSpec,
        *,
        confidence: float = 0.95,
        reference: "DriftMonitor | None" = None,
        validate_args: ValidateArgs = True,
        **kwargs: Any,
    ) -> None:
        decided = [*concern.classes, *(" or ".join(names) for names, _ in concern.answers)]
        names = [*(f"decided {name}" for name in decided), "referred", "mean risk"]
        super().__init__(
            {
                "decisions": len(decided),
                "rates": names,
                "confidence": confidence,
                "reference": reference,
                "validate_args": validate_args,
                "kwargs": kwargs,
            },
            names=names,
            is_counted=[*[True] * (len(names) - 1), False],
            value_rules=[f"preds must be decisions {decision_range(len(decided), 1)}", RISK_RULE],
            state_settings=("rates",),
        )

    def update(self, preds: Tensor, risk: Tensor | None = None) -> None:
        """Add samples: integer decisions (N,), with -1 for referrals, and the estimated risk of each, (N,), or NaN."""
        values, find_faults = self.values_of(preds, risk)
        self.admit(find_faults)
        self.add_values(values)

    def values_of(self, preds: Tensor, risk: Tensor | None = None) -> tuple[list[Values], Callable[[], list[Fault]]]:
        """Return what samples add to each mean, and what finds their faults."""
        decisions = preds.reshape(-1).long()
        safe = torch.where(decisions == REFERRED, self.decisions, decisions.clamp(0, self.decisions - 1))
        one = torch.ones_like(safe, dtype=torch.float64)

        def of_mean(code: int, values: Tensor, weight: Tensor = one) -> Values:
            return Values(values, weight, torch.full_like(safe, code))

        values = [of_mean(code, (safe == code).double()) for code in range(self.decisions + 1)]
        risks = torch.zeros_like(one) if risk is None else risk.reshape(-1).double()
        if risk is not None:
            known = (~risks.isnan()).double()
            values.append(of_mean(self.decisions + 1, exact(risks.nan_to_num(0.0).clamp(0, 1)), known))

        def find_faults() -> list[Fault]:
            is_bad = (decisions < REFERRED) | (decisions >= self.decisions)
            decided = Fault(self.value_rules[0], is_bad, decisions)
            return [decided, Fault(RISK_RULE, (risks < 0) | (risks > 1), risks)]

        return values, find_faults
