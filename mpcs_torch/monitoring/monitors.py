"""Monitors of the errors and costs that a `Limit` bounds, of late changes, and of decisions without labels."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import InvalidValueError, Rule, require
from mpcs_torch.functional.comparison.sequential import ALTERNATIVES, log_products
from mpcs_torch.functional.inputs.confidence import CONFIDENCE
from mpcs_torch.functional.inputs.decisions import (
    REFERRED,
    decision_range,
    decision_rule,
    flatten_decisions,
)
from mpcs_torch.functional.inputs.faults import Fault, outside
from mpcs_torch.functional.inputs.groups import row_names
from mpcs_torch.functional.inputs.labels import value_rules
from mpcs_torch.learning.rule_limit import PER_CLUSTER, Limit
from mpcs_torch.monitoring.alarm import MARGIN, Batch, Monitor, Values, WatchedMean, exact

CHANCE_RULE = Rule("chance", "chance")
RISK_RULE = Rule("risk_or_unknown", "risk")
IN_WORDS = {"any": "errors", "dangerous": "dangerous errors"}
"""The names of means, by the text of `Limit.errors`; others, such as pairs of classes, are named by this text."""
MEAN_RISK = "mean risk"
"""The name of the only mean of a `DriftMonitor` that is no share of decisions."""
BLOCK = 100
"""The number of samples after which a `ChangeMonitor` starts again, counted for each rate."""
RowGroups = Mapping[str, Sequence[object] | Tensor]
"""The name or the index of the group of each sample, (N,), by column."""


class RiskMonitor(Monitor):
    r"""Test whether rates of errors are above their limits, however often you look; false alarms are rare.

    A limit is a `Limit` as in `DecisionRule`: it bounds the error rate of all samples, of a class or of decided
    samples, or a mean cost. With ``by``, there is one rate for each group. `compute` returns a `MonitorResult`: the K
    rates, intervals that contain the true rates at all times, the evidence that rates are above their limits
    (`functional.anytime_evidence`), and alarms. If all rates keep their limits, the probability that there is ever an
    alarm is at most 1 - ``confidence``, for all K rates together. If some rates exceed their limits, the expected share
    of false alarms among all alarms has the same bound.

    An alarm is raised after the sample that shows it, and stays until `acknowledge`: reading the monitor after every
    sample, every ten samples or once gives the same alarms. A merged monitor has the alarms of all its parts, and those
    of the sums, so its probability of a false alarm is at most that of all parts together.

    Samples must come in the order of time. Label all samples, or choose samples to label at random; the probability of
    being chosen (``chance``) must be known and must not depend on whether the decision is wrong. Samples need not be
    independent, but the probability that a sample is wrong, given the earlier samples, must be within the limit. This
    is not so if the images of a patient, for example, are wrong together. Then set ``cluster_size``, or add one random
    sample of each cluster, with a ``chance`` of 1 / (the size of the cluster).

    Args:
        concern: The classes, their costs, and which errors are dangerous.
        limits: The limits to test. The ``confidence`` of a `Limit` is ignored; referrals cannot be limited.
        groups: The names of the groups of each column in the ``by`` of a limit: ``{"site": ["north", "south"]}``.
        confidence: 1 minus the highest acceptable probability of a false alarm.
        reference: A `RiskMonitor` with the same arguments, updated with reference samples such as validation samples.
            Rates are then tested against upper bounds of the reference's rates instead of ``at_most``; ``confidence``
            includes the uncertainty of these bounds.
        least_chance: The lowest ``chance`` with which a sample is chosen to be labelled; 1 if all are labelled.
        cluster_size: The largest number of samples that are wrong together, at least 1. Each sample counts
            1 / ``cluster_size``, so an alarm takes ``cluster_size`` times as many samples.
        ignore_index: The label of samples without a label, which are left out.
        validate_args: Whether to check the values of each batch. If not, bad values silently give a wrong result.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument is invalid, and from `compute` if there was no
            batch. If values on an accelerator are invalid, the error comes from `compute`.

    Example:
        >>> import torch
        >>> from mpcs_torch import ConcernSpec
        >>> from mpcs_torch.learning import Limit
        >>> from mpcs_torch.monitoring import RiskMonitor
        >>> lights = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"], ["yellow", "red"]])
        >>> monitor = RiskMonitor(lights, [Limit(0.01), Limit(0.02, of="red")])
        >>> target = torch.tensor([0, 1, 2, 2]).repeat(200)
        >>> decisions = torch.where(torch.arange(800) % 40 == 0, 2, target)  # every tenth red one is decided as green
        >>> monitor.update(decisions, target)
        >>> reading = monitor.compute()
        >>> reading.rate, reading.is_alarm
        (tensor([0.0250, 0.1000], dtype=torch.float64), tensor([True, True]))
    """

    higher_is_better = None

    def __init__(
        self,
        concern: ConcernSpec,
        limits: Limit | Sequence[Limit],
        *,
        groups: Mapping[str, Sequence[str]] | None = None,
        confidence: float = CONFIDENCE,
        reference: "RiskMonitor | None" = None,
        least_chance: float = 1.0,
        cluster_size: float = 1.0,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        require(
            0 < least_chance <= 1,
            "above_at_most",
            "least_chance",
            least_chance,
            minimum=0,
            maximum=1,
        )
        require(
            1 <= cluster_size < float("inf"),
            "finite_at_least",
            "cluster_size",
            cluster_size,
            minimum=1,
        )
        limited = _checked_limits([limits] if isinstance(limits, Limit) else list(limits))
        means = [_group_means(limit, concern, groups or {}) for limit in limited]
        watched = [mean for of_limit in means for mean in of_limit]
        if least_chance < 1 or cluster_size > 1:
            watched = [mean._replace(is_counted=False) for mean in watched]
        # All local variables become attributes of the Metric, as settings; `batch_values` reads those from here on.
        rates = [mean.name for mean in watched]
        sizes = [len(of_limit) for of_limit in means]
        first_rates = [0, *accumulate(sizes[:-1])]
        num_classes = len(concern.classes)
        further = len(concern.answers) + 1
        tables = _loss_tables(limited, concern, [of_limit[0].scale for of_limit in means])
        counted = torch.stack([_counted(limit, concern) for limit in limited])
        code_of_group = {
            column: _code_of(names) for column, names in (groups or {}).items()
        }
        super().__init__(
            locals(),
            watched=watched,
            value_rules=[
                *value_rules(num_classes, decision_rule(num_classes, further)),
                CHANCE_RULE,
            ],
            state_settings=(
                "num_classes",
                "tables",
                "counted",
                "rates",
                "least_chance",
                "cluster_size",
            ),
        )

    def update(
        self,
        preds: Tensor,
        target: Tensor,
        chance: Tensor | None = None,
        *,
        groups: RowGroups | None = None,
    ) -> None:
        """Add labelled samples.

        Args:
            preds: ``(N, ...)`` integer decisions, with -1 for referrals and C, C + 1, ... for coarse answers, or
                ``(N, C, ...)`` scores: the class with the highest score is the decision.
            target: ``(N, ...)`` integer class indices.
            chance: ``(N, ...)`` the probability, from ``least_chance`` to 1, with which each sample was chosen to be
                labelled, whatever its error. Default: 1.
            groups: For each column in the ``by`` of a limit: ``(N,)`` the name of the group of each sample, or int64
                indices of its G names. Indices outside [0, G) stand for groups that are not monitored.
        """
        self.add_batch(*self.batch_values(preds, target, chance, groups))

    def batch_values(
        self,
        preds: Tensor,
        target: Tensor,
        chance: Tensor | None = None,
        groups: RowGroups | None = None,
    ) -> Batch:
        """Return the values that samples add to the rates, and a function that finds invalid values."""
        samples = flatten_decisions(
            preds, target, self.num_classes, self.ignore_index, chance, self.further
        )
        has_label = samples.labels.counted
        chances = samples.labels.weight  # ``chance`` was passed in the place of weights
        share = has_label * self.weight_of_labels(chances)
        # The true class and the decision of each sample as one number, the place in a flat table.
        cells = samples.labels.target * self.tables.shape[2] + samples.predicted
        weight = self.counted.flatten(1)[:, cells] * share
        codes = torch.zeros_like(weight, dtype=torch.int64)
        for place, limit in enumerate(self.limited):
            codes[place] = self.first_rates[place]
            if limit.by is not None:
                group = self._codes(limit.by, groups or {}, len(cells)).to(codes)
                is_known = (group >= 0) & (group < self.sizes[place])
                codes[place] += torch.where(is_known, group, 0)
                weight[place] = torch.where(is_known, weight[place], 0.0)
        loss = self.tables.flatten(1)[:, cells] * weight

        def find_faults() -> list[Fault]:
            is_bad = outside(chances, self.least_chance, 1) & has_label
            return [*samples.find_faults(), Fault(CHANCE_RULE, chances, is_bad)]

        return Values(exact(loss), exact(weight), codes), find_faults

    def weight_of_labels(self, chance: Tensor) -> Tensor:
        """Return the weight of samples by the ``chance`` with which they were labelled: (N,), at most 1."""
        # A chance below the lowest is an error that is reported elsewhere; it must not give a weight above 1.
        weight: Tensor = (
            self.least_chance / self.cluster_size / chance.clamp(min=self.least_chance)
        )
        return weight

    def _codes(self, column: str, groups: RowGroups, number: int) -> Tensor:
        """Return the index of the group of each of ``number`` samples in the ``column``: (N,), int64."""
        require(column in groups, "has_column", "groups", list(groups), name=column)
        of_samples = groups[column]
        if isinstance(of_samples, Tensor):
            return of_samples
        code_of = self.code_of_group[column]
        names = row_names(column, of_samples, number)
        unknown = next((name for name in names if name not in code_of), None)
        require(unknown is None, "one_of", column, unknown, choices=list(code_of))
        return torch.tensor([code_of[name] for name in names], dtype=torch.int64)


class ChangeMonitor(RiskMonitor):
    r"""Detect a late change for the worse, which a long good past hides from a `RiskMonitor`.

    After every 100 samples of a rate, a new test of this rate starts. The evidence is the sum over all tests that were
    started (an e-detector of Shiryaev-Roberts type). So sooner or later there is a false alarm: while all limits are
    kept, the first one comes after at least ``run_length`` samples on average. After `acknowledge`, the tests of the
    rate begin again. Rates and their intervals are of all samples, as in `RiskMonitor`.

    Samples must come in order of time, so states can be neither merged nor summed over processes. `update` waits for
    an accelerator. The arguments are those of `RiskMonitor`, and:

    Args:
        run_length: The lowest acceptable mean number of samples until the first false alarm.

    References:
        Shin, Ramdas, Rinaldo: E-detectors: A Nonparametric Framework for Sequential Change Detection, New England
        Journal of Statistics in Data Science 2(2), 2024.

    Example:
        >>> import torch
        >>> from mpcs_torch import ConcernSpec
        >>> from mpcs_torch.learning import Limit
        >>> from mpcs_torch.monitoring import ChangeMonitor
        >>> monitor = ChangeMonitor(ConcernSpec(["good", "bad"]), Limit(0.01), run_length=100_000)
        >>> target = torch.zeros(10_000, dtype=torch.int64)
        >>> monitor.update(target, target)
        >>> monitor.update((torch.arange(300) % 20 == 0).long(), target[:300])  # one in 20 is wrong now
        >>> reading = monitor.compute()
        >>> reading.rate, reading.is_alarm
        (tensor(0.0015, dtype=torch.float64), tensor(True))
    """

    lowest_of_states: ClassVar[Mapping[str, float]] = {
        **RiskMonitor.lowest_of_states,
        "starts": -torch.inf,  # the logarithm of evidence that has not begun
        "block": 0.0,
    }
    starts: Tensor
    """(K, 25), float64: for each alternative, the logarithm of the evidence of all starts up to the last block."""
    block: Tensor
    """(K, 3), float64: since the last block, the sums of losses and of weights, and the number of samples."""

    def __init__(
        self,
        concern: ConcernSpec,
        limits: Limit | Sequence[Limit],
        *,
        run_length: float = 1_000_000,
        **kwargs: Any,
    ) -> None:
        require(run_length >= BLOCK, "at_least", "run_length", run_length, minimum=BLOCK)
        super().__init__(concern, limits, **kwargs)
        self.set_threshold(run_length / BLOCK + 1)
        rates = len(self.names)
        self.add_state(
            "starts", torch.full((rates, ALTERNATIVES), -torch.inf, dtype=torch.float64)
        )
        self.add_state("block", torch.zeros(rates, 3, dtype=torch.float64))

    def moments(self, values: Values) -> Tensor:
        """Return the indices, ascending, of the samples that may raise the evidence: errors, and starts of tests."""
        may_rise = (values.loss > 0).any(dim=0)
        for weight, codes in zip(values.weight, values.codes, strict=True):
            for rate in torch.unique(codes).tolist():
                counts = (codes == rate) & (weight > 0)
                number = self.block[rate, 2] + counts.cumsum(0)
                may_rise |= counts & (number % BLOCK == 1)
        return may_rise.nonzero()[:, 0]

    def follow(self, values: Values, at: Tensor) -> Tensor:
        """Add samples in order, and return the evidence after those with the indices ``at``, as `Monitor` does."""
        evidence = self.evidence_now().repeat(len(at), 1)
        starts = self.starts.clone()
        block = self.block.clone()
        limits = self._tested_limits()
        rows = zip(values.loss, values.weight, values.codes, strict=True)
        for losses, weights, codes in rows:
            for rate in torch.unique(codes).tolist():
                counts = (codes == rate) & (weights > 0)
                added = torch.stack([losses[counts], weights[counts]], dim=1).to(block)
                # The number of new samples of this rate up to each of the moments.
                number_at = counts.cumsum(0)[at]
                of_rate, starts_of_rate, block_of_rate = self._follow_rate(
                    limits[rate], starts[rate], block[rate], added, number_at
                )
                evidence[:, rate] = of_rate
                starts[rate] = starts_of_rate
                block[rate] = block_of_rate
        super().follow(values, at[:0])  # adds the samples to the rates, without evidence
        self.starts = starts
        self.block = block
        return evidence

    def _follow_rate(
        self, limit: Tensor, starts: Tensor, block: Tensor, added: Tensor, number_at: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Add n samples to one rate.

        Args:
            limit: A scalar: its upper limit, as tested.
            starts: ``(A,)``: its row of `starts`.
            block: ``(3,)``: its row of `block`.
            added: ``(n, 2)``: the losses and weights of the samples.
            number_at: ``(m,)``: the numbers of samples after which the evidence is wanted.

        Returns:
            The evidence, (m,), and the new rows of `starts` and `block`.
        """
        before = int(block[2])  # samples of the current block that are known already
        # Row i has the sums of losses and weights of the block so far and of i new samples.
        sums = torch.cat([block[:2].unsqueeze(0), added]).cumsum(dim=0)
        # A full block ends when the next sample comes.
        full = max(0, before + len(added) - 1) // BLOCK
        ends = BLOCK * torch.arange(1, full + 1, device=sums.device) - before
        sums_at_begin = torch.cat([torch.zeros_like(sums[:1]), sums[ends]])
        # A test with the evidence 1 starts with each block, whose product multiplies the evidence of all tests.
        at_begin = [starts]
        loss, samples = sums_at_begin.diff(dim=0).T
        for product in log_products(loss, samples, limit):
            at_begin.append(at_begin[-1].logaddexp(torch.zeros_like(product)) + product)
        block_at = (before + number_at - 1).clamp(min=0) // BLOCK
        loss, samples = (sums[number_at] - sums_at_begin[block_at]).T
        starts_at = torch.stack(at_begin)[block_at]
        evidence = self._evidence(starts_at, loss, samples, limit)
        in_block = sums[-1] - sums_at_begin[-1]
        number = in_block.new_tensor([before + len(added) - BLOCK * full])
        return evidence, at_begin[-1], torch.cat([in_block, number])

    def evidence_now(self) -> Tensor:
        """Return the evidence of each rate, summed over all tests that were started: (K,)."""
        loss, samples, _ = self.block.unbind(1)
        return self._evidence(self.starts, loss, samples, self._tested_limits())

    def _evidence(
        self, starts: Tensor, loss: Tensor, samples: Tensor, limits: Tensor
    ) -> Tensor:
        """Return the evidence of tests that began with ``starts``, and of one that begins with the current block."""
        products = log_products(loss, samples, limits)
        logs = starts.logaddexp(torch.zeros_like(starts)) + products
        return logs.logsumexp(dim=-1).exp() / logs.shape[-1]

    def _tested_limits(self) -> Tensor:
        """Return the upper limits (K,), moved away from 0 and 1, where evidence is not defined."""
        return self.limits[1].clamp(MARGIN, 1 - MARGIN)

    def begin_tests(self, means: Tensor) -> None:
        """Clear the alarms of ``means``, bool (K,), and forget all tests of these means that were started."""
        super().begin_tests(means)
        self.starts = torch.where(means.unsqueeze(1), -torch.inf, self.starts)
        self.block = torch.where(means.unsqueeze(1), 0.0, self.block)

    def merge_state(self, incoming_state: object) -> None:  # noqa: ARG002  # nothing can be merged
        """Raise a ValueError: states cannot be merged, because the order of samples matters."""
        raise InvalidValueError("never_merged", "a ChangeMonitor")

    def _sync_dist(self, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002
        self.merge_state(None)


class DriftMonitor(Monitor):
    """Test whether decisions without labels still look like those of a reference, however often one looks.

    It monitors the share of each decision (a class, a coarse answer or a referral) and the mean estimated risk. Alarms
    are hints, not evidence of errors: a model can be wrong more often while its decisions look the same, and class
    frequencies can change without more errors. While nothing has changed, the probability of an alarm is at most 1 -
    ``confidence``, for all rates together.

    Args:
        concern: The classes and coarse answers.
        confidence: 1 minus the highest acceptable probability of a false alarm.
        reference: A `DriftMonitor` that was updated with reference samples. Default: nothing is tested.
        validate_args: As in `RiskMonitor`.
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
        confidence: float = CONFIDENCE,
        reference: "DriftMonitor | None" = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        decided = [*concern.classes, *(name for name, _ in concern.answers)]
        decisions = len(decided)
        shares = [*(f"decided {name}" for name in decided), "referred"]
        rates = [*shares, MEAN_RISK]
        watched = [WatchedMean(name) for name in shares]
        watched.append(WatchedMean(MEAN_RISK, is_counted=False))
        rule_of_decisions = Rule(
            "decisions", "preds", decisions=decision_range(decisions, 1)
        )
        # All local variables become attributes of the Metric, as settings.
        super().__init__(
            locals(),
            watched=watched,
            value_rules=[rule_of_decisions, RISK_RULE],
            state_settings=("rates",),
        )

    def update(self, preds: Tensor, risk: Tensor | None = None) -> None:
        """Add samples: integer decisions (N,), with -1 for referrals, and the estimated risk (N,), NaN if unknown."""
        self.add_batch(*self.batch_values(preds, risk))

    def batch_values(self, preds: Tensor, risk: Tensor | None = None) -> Batch:
        """Return the values that samples add to each mean, and a function that finds invalid values."""
        decisions = preds.reshape(-1).long()
        if risk is None:
            risks = torch.full_like(decisions, torch.nan, dtype=torch.float64)
        else:
            risks = risk.reshape(-1).double()
        known_risks = risks.nan_to_num(0.0)
        in_range = decisions.clamp(0, self.decisions - 1)
        column = torch.where(decisions == REFERRED, self.decisions, in_range)
        means = torch.arange(self.decisions + 2, device=column.device)
        codes = means.unsqueeze(1).expand(-1, len(column))
        is_decided = (column == codes[:-1]).double()  # the last mean is the risk
        loss = torch.cat([is_decided, exact(known_risks.clamp(0, 1)).unsqueeze(0)])
        weight = torch.ones_like(loss)
        weight[-1] = ~risks.isnan()

        def find_faults() -> list[Fault]:
            is_unknown = outside(decisions, REFERRED, self.decisions - 1)
            decision_fault = Fault(self.rule_of_decisions, decisions, is_unknown)
            return [decision_fault, Fault(RISK_RULE, risks, outside(known_risks, 0, 1))]

        return Values(loss, weight, codes), find_faults


def _checked_limits(limits: list[Limit]) -> list[Limit]:
    are_limits = limits and all(isinstance(limit, Limit) for limit in limits)
    require(are_limits, "some_limits", "limits", limits)
    by_cluster = next((str(limit) for limit in limits if limit.per == PER_CLUSTER), None)
    require(by_cluster is None, "per_sample", "limits", by_cluster)
    return limits


def _group_means(
    limit: Limit, concern: ConcernSpec, groups: Mapping[str, Sequence[str]]
) -> list[WatchedMean]:
    """Return the mean that ``limit`` bounds; if ``limit.by`` is a column, return one mean for each of its groups."""
    names = [] if limit.by is None else groups.get(limit.by, ())
    require(
        limit.by is None or names,
        "groups_of_column",
        "groups",
        dict(groups),
        name=limit.by,
    )
    losses = limit.losses(concern)
    scale = losses.max().item() if limit.errors == "cost" else 1.0
    above_0 = losses[losses > 0]
    smallest = above_0.min().item() if len(above_0) else scale
    # Values are rounded to multiples of `STEP`, which must be small beside each of them.
    require(smallest >= 1e-6 * scale, "comparable_costs", "costs", smallest, highest=scale)
    require(
        limit.at_most < scale, "below_highest_cost", "limits", limit.at_most, highest=scale
    )
    title = f"{IN_WORDS.get(limit.errors_as_text, limit.errors_as_text)} of {limit.of}"
    is_cost = limit.errors == "cost"
    mean = WatchedMean(
        title,
        limit.at_most / scale,
        scale,
        is_counted=not is_cost,
        is_share=not is_cost,
    )
    if limit.by is None:
        return [mean]
    return [mean._replace(name=f"{title}, {limit.by} {group}") for group in names]


def _counted(limit: Limit, concern: ConcernSpec) -> Tensor:
    """Return, by true class and decision, 1 if ``limit`` counts such samples, else 0: float64 (C, C + A + 1)."""
    classes = len(concern.classes)
    answers = classes + len(concern.answers)
    columns = torch.tensor([*range(answers), REFERRED]).expand(classes, -1)
    counted = limit.counted(torch.arange(classes), columns, concern)
    if limit.is_of_decided:
        counted = counted & (columns != REFERRED)
    return counted.double()


def _loss_tables(
    limits: Sequence[Limit], concern: ConcernSpec, scales: Sequence[float]
) -> Tensor:
    """Return the loss of each decision by true class, as a share of the scale: (J, C, C + A + 1), 0 for referrals."""
    tables = [
        limit.losses(concern) / scale for limit, scale in zip(limits, scales, strict=True)
    ]
    referral_last = (0, 1)  # no column before, and one after
    return nn.functional.pad(torch.stack(tables), referral_last)


def _code_of(names: Sequence[str]) -> dict[str, int]:
    """Return the index of each name."""
    return {str(name): code for code, name in enumerate(names)}
