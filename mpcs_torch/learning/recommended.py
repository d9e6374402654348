"""The recommended recipe: train with two losses, then choose one and the costs to decide by, on validation samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import require
from mpcs_torch.functional.comparison.means import estimate_mean
from mpcs_torch.functional.inputs.arrays import at_rows
from mpcs_torch.functional.inputs.confidence import CONFIDENCE, CONFIDENCE_TEXT
from mpcs_torch.functional.inputs.groups import flat_costs, group_codes
from mpcs_torch.learning.decision_rule import DecisionRule
from mpcs_torch.learning.factor_choice import (
    CHANGES,
    FACTORS,
    Calibrated,
    FactorEffect,
    best_calibration,
    choose_factor,
    decide,
    effects_of_factors,
    harm_matrix,
    harm_of_rows,
    softened,
    with_factor,
)
from mpcs_torch.learning.loss_modules import SoftmaxMarginLoss
from mpcs_torch.learning.rule_fit import check_row_costs, checked_logits, split_rows
from mpcs_torch.learning.rule_limit import Limit, as_limits, values_of
from mpcs_torch.tables import Table

MAX_ACCURACY_LOSS = 0.005
"""The largest loss of accuracy that decisions by cost may cause, as a share of samples."""
PLAIN = "plain"
"""The name of the loss that is cross entropy."""
MARGIN = "margin"
"""The name of the loss that is cross entropy with a margin for each error."""
FULL_MARGIN = 4.0
"""The margin for the most harmful errors, in nats."""
FLOOR = 0.5
"""The margin for harmless errors, as a share of that for the most harmful errors."""
REFERRAL_LIMIT = Limit(0.005)
"""The default limit if samples may be referred."""

Models = Tensor | Sequence[Tensor]
"""The logits of one model, or of several models on the same samples."""


class Change(NamedTuple):
    """A change of a mean over samples, and its 95 % interval."""

    value: float
    low: float
    high: float

    def text(self, unit: float, digits: int) -> str:
        """Return the change and its interval in units of 1 / ``unit``, as text."""

        def in_unit(number: float) -> str:
            return f"{unit * number:+.{digits}f}"

        return f"{in_unit(self.value)} [{in_unit(self.low)}, {in_unit(self.high)}]"


class Step(NamedTuple):
    """A way to train and to decide, measured on the samples that chose it, and its changes from the step before."""

    name: str
    right: float
    """The share of samples that are decided correctly."""
    dangerous: float
    """The share of samples that are dangerous errors."""
    cost: float
    """The mean cost of a sample, by the costs of the concern."""
    referred: float
    """The share of samples that are referred."""
    more_right: Change | None
    """The change in ``right``; None for the first step."""
    more_dangerous: Change | None

    def row(self) -> list[str]:
        """Return the row of the table of steps."""
        more_dangerous = more_right = ""
        if self.more_dangerous is not None:
            more_dangerous = self.more_dangerous.text(1e4, 1)
        if self.more_right is not None:
            more_right = self.more_right.text(100, 2)
        return [
            self.name,
            f"{100 * self.right:.2f} %",
            f"{1e4 * self.dangerous:.1f}",
            f"{self.cost:.4g}",
            f"{100 * self.referred:.1f} %",
            more_dangerous,
            more_right,
        ]


HEADER = (
    "",
    "correct",
    "dangerous in 10 000",
    "cost",
    "referred",
    "dangerous, change",
    "points of accuracy, change",
)
EFFECTS = ("a harmless error costs", "points of accuracy", "harm in 10 000", "")


@dataclass(frozen=True)
class Recommendation:
    """The loss that was chosen on validation samples, and the decision rule of its models."""

    name: str
    """The name of the chosen loss: a key of `Recipe.losses`, or the name of another candidate."""
    rule: DecisionRule
    """The fitted decision rule. Its input is the logits of the chosen model, or `average_logits` of its models, and the
    costs of the samples if they had some."""
    factor: float | None
    """The rule's cost of a harmless error, if the worst error costs 1; None if the rule uses the concern's costs."""
    steps: tuple[Step, ...]
    """The change by each step: deciding by cost, the loss, several models, and referrals. All are measured on the
    samples that were given to `choose`, so measure the last step on others."""
    effects: tuple[FactorEffect, ...]
    """The changes that each factor lets expect for the chosen models; empty if the rule uses the concern's costs."""
    max_accuracy_loss: float

    def table(self) -> Table:
        """Return the steps as a table."""
        return Table(HEADER, [step.row() for step in self.steps])

    def table_of_factors(self) -> Table:
        """Return the expected changes by each factor as a table."""
        rows = []
        for effect in self.effects:
            verdict = "chosen" if effect.factor == self.factor else ""
            if effect.right < -self.max_accuracy_loss:
                verdict = "costs more accuracy than allowed"
            rows.append(
                [
                    f"{effect.factor:g}",
                    f"{100 * effect.right:+.2f}",
                    f"{1e4 * effect.harm:+.1f}",
                    verdict,
                ]
            )
        return Table(EFFECTS, rows)

    def __str__(self) -> str:
        owner = "samples" if self.rule.has_row_costs else "concern"
        costs = f"by the costs of the {owner}"
        if self.factor is not None:
            costs = f"by cost: a harmless error costs {self.factor:g}, the worst error 1"
        lines = [
            f"{self.name}, decided {costs}.",
            f"\nEach step against the one before, with {CONFIDENCE_TEXT} intervals, on these validation samples:\n",
            self.table().markdown(),
        ]
        if self.effects:
            points = f"{100 * self.max_accuracy_loss:g} points"
            lines += [
                f"\nWhat other costs let expect, if {points} of accuracy may be lost:\n",
                self.table_of_factors().markdown(),
            ]
        return "\n".join(lines)


@dataclass(frozen=True)
class Recipe:
    """Losses to train with, and the method `choose`, which chooses a loss and fits a decision rule."""

    concern: ConcernSpec
    losses: dict[str, SoftmaxMarginLoss]
    """The losses by name: ``"plain"``, which is cross entropy, and ``"margin"``."""
    members: int
    """The number of models to train with each loss, which differ in their first weights and the order of samples."""
    limits: tuple[Limit, ...]
    """The limits that the rule guarantees by referring samples; empty if there are no limits."""
    max_accuracy_loss: float

    @torch.no_grad()
    def choose(
        self,
        logits: Mapping[str, Models],
        target: Tensor,
        *,
        clusters: Sequence[object] | Tensor | None = None,
        groups: Mapping[str, Sequence[object] | Tensor] | None = None,
        costs: Tensor | None = None,
    ) -> Recommendation:
        """Choose a loss, and fit a decision rule on the CPU, with validation samples unseen in training.

        The loss with the lowest score is chosen: -log p(true class) - log(1 - expected harm), by the calibrated mean
        probabilities of its models. Then the factor of least expected harm is chosen whose expected loss of accuracy is
        allowed. A factor is the cost of a harmless error in decisions, if the worst error costs 1. If 95 % intervals of
        counts show that the decisions are worse than those of the plain models, the next best factor or loss is tried.
        If a referral has a cost, decisions are by the costs of the concern, without a factor. If samples have ``costs``
        of their own, decisions are by these, and a sample counts in the score by the most that it can cost.

        With limits, a fifth of the samples is used for this choice and for the calibration. The others only set the
        thresholds, so the limits are guaranteed.

        Probabilities are calibrated by a temperature. If mistaking class A for B is worse than B for A, they are
        calibrated by a scale and a bias for each class instead, if this scores better.

        Args:
            logits: ``(N, C)`` logits of the models of each loss, by its name; one tensor if ``members`` is 1, otherwise
                a sequence of ``members`` tensors. ``"plain"`` is required; other candidates may have any name.
            target: As in `DecisionRule.fit`.
            clusters: As in `DecisionRule.fit`; the 95 % intervals account for them, too.
            groups: As in `DecisionRule.fit`.
            costs: As in `DecisionRule.fit`. Pass those of the training samples to the losses, too.

        Raises:
            ValueError: If the plain models are missing, a loss has another number of models, or an argument is invalid
                as in `DecisionRule.fit`.
        """
        require(PLAIN in logits, "includes", "logits", list(logits), name=PLAIN)
        plain_first = [PLAIN, *(name for name in logits if name != PLAIN)]
        models = {name: self._checked(name, logits[name], target) for name in plain_first}
        codes = None
        if clusters is not None:
            codes = group_codes("clusters", clusters, len(target)).codes
        flat = None
        if costs is not None:
            flat = flat_costs(costs, (len(target), len(self.concern.classes))).cpu()
        samples = _Samples(target.cpu().long(), codes, flat)
        if flat is not None:
            check_row_costs(flat, samples.target)
        rows, _ = split_rows(
            self.limits, self.concern, len(target), codes, seed=0, is_fitted=True
        )
        means = {name: average_logits(members) for name, members in models.items()}
        of_choice = at_rows(samples, rows)
        harm, factors = self._goal(of_choice.costs)
        suited = {
            name: best_calibration(mean[rows], of_choice.target, harm)
            for name, mean in means.items()
        }
        name, factor = self._chosen(suited, of_choice, harm, factors)
        concern = self.concern
        if factor is not None and factor != self._factor_of_concern:
            concern = with_factor(concern, factor)
        rule = DecisionRule(concern, self.limits, calibration=suited[name].method)
        rule.fit(means[name], samples.target, clusters=clusters, groups=groups, costs=flat)
        decisions = self._decisions(models, samples, name, factor)
        if self.limits:
            decisions["+ referrals that keep the limits"] = rule(means[name], flat)
        effects = list[FactorEffect]()
        if factor is not None:
            effects = effects_of_factors(suited[name].probs, harm, factors)
        steps = tuple(samples.steps(decisions, self.concern))
        return Recommendation(
            name, rule, factor, steps, tuple(effects), self.max_accuracy_loss
        )

    def _checked(self, name: str, models: Models, target: Tensor) -> list[Tensor]:
        """Return the valid logits (N, C) of each model, float32 or wider, on the CPU."""
        by_model = (
            [models] if isinstance(models, Tensor) and models.ndim == 2 else list(models)
        )
        require(
            len(by_model) == self.members,
            "of_members",
            f"logits[{name!r}]",
            len(by_model),
            members=self.members,
        )
        classes = len(self.concern.classes)
        valid = list[Tensor]()
        for logits in by_model:
            flat, _ = checked_logits(logits, target, classes, calibrates=True)
            valid.append(flat.cpu())
        return valid

    @property
    def _factor_of_concern(self) -> float:
        return 0.0 if self.concern.weights is not None else self.concern.factor

    def _goal(self, costs: Tensor | None) -> tuple[Tensor, tuple[float, ...]]:
        """Return the harm of decisions, and the candidate factors, that of the concern included.

        The only factor is 0 if costs have a scale: those of samples, or beside a price of a referral or a limit.
        """
        if costs is not None:
            return harm_of_rows(costs, self.concern), (0.0,)
        limits_cost = any(limit.errors == "cost" for limit in self.limits)
        if self.concern.refer is not None or limits_cost:
            of_concern = self.concern.costs()
            return of_concern / of_concern.max(), (0.0,)
        factors = sorted({*FACTORS, self._factor_of_concern}, reverse=True)
        return harm_matrix(self.concern), tuple(factors)

    def _chosen(
        self,
        suited: Mapping[str, Calibrated],
        samples: "_Samples",
        harm: Tensor,
        factors: Sequence[float],
    ) -> tuple[str, float | None]:
        """Return the name of the best loss that has an admissible factor, and this factor, if there are several."""
        before = decide(suited[PLAIN].probs, harm, factors[0])
        for name in sorted(suited, key=lambda name: suited[name].score):
            factor = choose_factor(
                suited[name].probs,
                samples.target,
                harm,
                self.max_accuracy_loss,
                factors=factors,
                before=before,
                clusters=samples.clusters,
            )
            if factor is None:
                continue
            if len(factors) == 1:
                return name, None
            return name, factor
        raise AssertionError("the first factor is always admissible for the plain models")

    def _decisions(
        self,
        models: Mapping[str, Sequence[Tensor]],
        samples: "_Samples",
        chosen: str,
        factor: float | None,
    ) -> dict[str, Tensor]:
        """Return the decisions (N,) of each step, by its name. Each sample is calibrated by others."""
        harm, _ = self._goal(samples.costs)

        def by_cost(logits: Tensor) -> Tensor:
            probs = best_calibration(logits, samples.target, harm).probs
            return decide(probs, harm, factor or 0.0)

        decisions = {f"{PLAIN}, most probable class": models[PLAIN][0].argmax(dim=1)}
        decisions["+ decided by cost"] = by_cost(models[PLAIN][0])
        if chosen != PLAIN:
            decisions[f"+ trained with {chosen}"] = by_cost(models[chosen][0])
        if self.members > 1:
            decisions[f"+ {self.members} models"] = by_cost(average_logits(models[chosen]))
        return decisions


class _Samples(NamedTuple):
    """The samples of the choice."""

    target: Tensor
    clusters: Tensor | None
    costs: Tensor | None
    """The costs of the samples by true class, (N, C, C); None if they are those of the concern."""

    def steps(self, decisions: Mapping[str, Tensor], concern: ConcernSpec) -> list[Step]:
        """Measure each way to decide, and compare it with the one before."""
        steps = list[Step]()
        before = None
        for name, decision in decisions.items():
            values = values_of(decision, self.target, concern, self.costs)
            means = torch.stack(values).mean(dim=1)
            right, dangerous, cost, referred = means.tolist()
            more_right = more_dangerous = None
            if before is not None:
                more_right = self._change(values.is_right - before.is_right)
                more_dangerous = self._change(values.is_dangerous - before.is_dangerous)
            steps.append(
                Step(name, right, dangerous, cost, referred, more_right, more_dangerous)
            )
            before = values
        return steps

    def _change(self, changes: Tensor) -> Change:
        mean = estimate_mean(changes, CHANGES, self.clusters)
        low, high = mean.interval(CONFIDENCE)
        return Change(mean.value, low, high)


def recommended(
    concern: ConcernSpec,
    members: int = 1,
    *,
    max_accuracy_loss: float = MAX_ACCURACY_LOSS,
    refer: bool | Limit | Sequence[Limit] = False,
) -> Recipe:
    """Return the recipe for fewer dangerous errors within an allowed loss of accuracy (see ``examples/benchmark``).

    You train models with each of two losses: plain cross entropy, and cross entropy with a margin for each error, the
    larger the more harmful the error is. `MarginRamp` raises the margin during training. `Recipe.choose` then chooses
    the loss, and the cost of harmless errors, on validation samples. Any optimizer and schedule will do; both losses
    must have the same budget. Well-trained models matter more than the loss: try noise or other augmentation, more
    steps, and label smoothing (the attribute ``label_smoothing`` of the losses) first.

    Args:
        concern: The costs of errors, and which errors are dangerous.
        members: The number of models of each loss, whose mean probability decides. Four models make fewer
            dangerous errors than one, but take four times as long to train and to run.
        max_accuracy_loss: The largest loss of accuracy that decisions by cost may cause, as a share of samples in [0,
            1]. The expected loss, and the lower end of the 95 % interval of the counted loss, must not exceed this
            value.
        refer: The limits to guarantee by referring samples; True stands for ``Limit(0.005)``, and False for no limits.
            If the concern has a cost of referral, samples may be referred even without limits.

    Raises:
        ValueError: If an argument is invalid.

    Example:
        >>> import torch
        >>> from mpcs_torch import ConcernSpec
        >>> from mpcs_torch.learning import MarginRamp, recommended
        >>> lights = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"], ["yellow", "red"]])
        >>> target = torch.arange(300) % 3
        >>> inputs = torch.eye(3)[target] + 0.6 * torch.randn(300, 3, generator=torch.Generator().manual_seed(0))
        >>> recipe, logits = recommended(lights), {}
        >>> for name, loss in recipe.losses.items():
        ...     model = torch.nn.Linear(3, 3)
        ...     optimizer, ramp = torch.optim.Adam(model.parameters(), lr=0.1), MarginRamp(loss, steps=50)
        ...     for _ in range(50):
        ...         optimizer.zero_grad()
        ...         loss(model(inputs[:150]), target[:150]).backward()
        ...         optimizer.step()
        ...         ramp.step()
        ...     logits[name] = model(inputs[150:]).detach()
        >>> choice = recipe.choose(logits, target[150:])
        >>> decisions = choice.rule(logits[choice.name])
    """
    require(members >= 1, "at_least", "members", members, minimum=1)
    require(
        0 <= max_accuracy_loss <= 1,
        "between",
        "max_accuracy_loss",
        max_accuracy_loss,
        minimum=0,
        maximum=1,
    )
    limits = as_limits(refer)
    if isinstance(refer, bool):
        limits = (REFERRAL_LIMIT,) if refer else ()
    are_limits = all(isinstance(limit, Limit) for limit in limits)
    require(are_limits, "limits_or_bool", "refer", refer)
    DecisionRule(concern, limits)  # raises an error if the limits do not fit the concern
    losses = {PLAIN: margin_loss(concern, 0.0), MARGIN: margin_loss(concern, FULL_MARGIN)}
    return Recipe(concern, losses, members, limits, max_accuracy_loss)


def average_logits(logits: Sequence[Tensor]) -> Tensor:
    """Return the log of the mean probabilities (N, C) of several models on the same samples.

    Args:
        logits: ``(N, C)`` logits of each model.

    Raises:
        ValueError: If there is no model, or the shapes differ.

    Example:
        >>> import torch
        >>> average_logits([torch.tensor([[0.0, 2.0]]), torch.tensor([[1.0, 1.0]])]).softmax(dim=1)
        tensor([[0.3096, 0.6904]])
    """
    shapes = {tuple(of_model.shape) for of_model in logits}
    require(len(shapes) == 1, "equal_shapes", "logits", sorted(shapes))
    log_probs = torch.stack([of_model.log_softmax(dim=1) for of_model in logits])
    return log_probs.logsumexp(dim=0) - log(len(logits))


def margin_loss(
    concern: ConcernSpec, margin: float, label_smoothing: float = 0.0
) -> SoftmaxMarginLoss:
    """Return the loss whose margin is ``margin`` nats for the most harmful errors, and half of it for harmless ones."""
    costs = softened(harm_matrix(concern), FLOOR)
    return SoftmaxMarginLoss(costs.float(), margin=margin, label_smoothing=label_smoothing)
