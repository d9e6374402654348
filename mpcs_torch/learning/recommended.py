"""The recommended recipe: which losses to train with, and how to choose among the models."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import quoted, require
from mpcs_torch.functional.comparison.means import Mean
from mpcs_torch.functional.concern.decision import without_diagonal
from mpcs_torch.functional.inputs.decisions import REFERRED
from mpcs_torch.functional.inputs.groups import Groups, codes_by_column, group_codes
from mpcs_torch.learning.choice import (
    CONFIDENCE,
    Options,
    calibration_for,
    change_of,
    choose_referring,
    harm_of,
    with_factor,
)
from mpcs_torch.learning.decision_rule import DecisionRule
from mpcs_torch.learning.losses import SoftmaxMarginLoss
from mpcs_torch.learning.rule_limit import Limit
from mpcs_torch.learning.rule_samples import checked_logits

MAX_ACCURACY_LOSS = 0.0005
"""The accuracy that the recipe may cost, as a share of samples."""
PLAIN = "plain"
LOSSES = {PLAIN: (0.0, 0.0), "margin 2": (2.0, 0.0), "margin 4": (4.0, 0.0), "margin 2, smoothed": (2.0, 0.05)}
"""The losses that are tried: the margin in nats for the errors that matter most, and the label smoothing. Smoothing
helps where a model fits its training samples without errors."""
REFERRAL_LIMIT = Limit(0.005)
"""The limit if samples may be referred, and none is given."""


@dataclass(frozen=True)
class Recommendation:
    """The model and the rule that validation samples choose."""

    name: str
    """The name of the model: a key of `Recipe.losses`, or another that was tried."""
    rule: DecisionRule
    """Fitted; it takes the logits of that model."""
    factor: float | None
    """The cost of a harmless error when deciding, where the worst one costs 1; None for the costs of the concern."""
    summary: str
    """The choice in a sentence, with intervals of 95 % on the validation samples that made it."""

    def __str__(self) -> str:
        return self.summary


@dataclass(frozen=True)
class Recipe:
    """The losses to train with, one model each, and the way to choose among the models."""

    concern: ConcernSpec
    losses: dict[str, SoftmaxMarginLoss]
    """By name. The first is ``"plain"``: cross entropy, as its margin is 0."""
    limits: tuple[Limit, ...]
    """The limits that the rule guarantees by referring samples; none if it refers none."""
    max_accuracy_loss: float

    @torch.no_grad()
    def choose(
        self,
        logits: Mapping[str, Tensor],
        target: Tensor,
        *,
        clusters: Sequence[object] | Tensor | None = None,
        groups: Mapping[str, Sequence[object] | Tensor] | None = None,
    ) -> Recommendation:
        """Choose a model and fit its rule, on validation samples that no model was trained on.

        The model is the one whose calibrated probabilities have the best log score, of the true class and of no harm;
        that may be the plain model. Counts of rare errors are too noisy to choose by.

        Probabilities are calibrated by a temperature, or, without limits, by a scale and a bias for each class where
        one direction of a confusion does more harm than the other: margins then shift the odds of the classes.

        Without limits, the decision factor is the one with the least expected harm that is expected to cost no more
        accuracy than is allowed. A choice that counts show to be worse than the calibrated plain model is passed over:
        one whose interval of 95 % leaves out the allowed loss of accuracy, or lies wholly above it in harm.

        With limits, the model and the factor are those that decide most samples, but not fewer rightly than is allowed.
        A fifth of the samples chooses, which also calibrates the rule; the others guarantee the limits, which therefore
        hold for the choice.

        Args:
            logits: ``(N, C)`` of the models that were trained, by the names of their losses, ``"plain"`` among them;
                and of others to choose from, by names of their own, such as those of `with_averages`.
            target: As in `DecisionRule.fit`.
            clusters: As in `DecisionRule.fit`; intervals are over clusters, too.
            groups: As in `DecisionRule.fit`.

        Returns:
            The choice. Its rule is on the CPU.

        Raises:
            ValueError: If the plain model is missing, or as from `DecisionRule.fit`.
        """
        require(PLAIN in logits, f"logits must have those of the model {PLAIN!r}", quoted(list(logits)))
        names = [PLAIN, *(name for name in logits if name != PLAIN)]
        classes = len(self.concern.classes)
        checked = {name: checked_logits(logits[name], target, classes, calibrates=True) for name in names}
        logits, target = {name: each[0].cpu() for name, each in checked.items()}, checked[PLAIN][1].cpu()
        of_clusters = None if clusters is None else group_codes("clusters", clusters, len(target))
        of_groups = codes_by_column(groups, len(target))
        if self.limits:
            return self._referring(names, logits, target, of_clusters, of_groups)
        return self._deciding(names, logits, target, of_clusters)

    def _deciding(
        self, names: Sequence[str], logits: Mapping[str, Tensor], target: Tensor, clusters: Groups | None
    ) -> Recommendation:
        codes = None if clusters is None else clusters.codes
        harm = harm_of(self.concern)
        options = Options.of([logits[name] for name in names], target, harm)
        place = options.choose(self.max_accuracy_loss, codes)
        option = options.options[place]
        name = names[option.model]

        def fitted(model: str, factor: float) -> DecisionRule:
            rule = DecisionRule(with_factor(self.concern, factor), calibration=calibration_for(harm))
            return rule.fit(logits[model], target)

        rule = fitted(name, option.factor)
        before, after = fitted(PLAIN, 1.0)(logits[PLAIN]), rule(logits[name])
        is_dangerous = self.concern.dangerous_pairs()
        more = is_dangerous[target, after].double() - is_dangerous[target, before].double()
        gain = (after == target).double() - (before == target).double()
        if place == 0:
            summary = "The plain model, decided by its most probable class after calibration, is the best choice."
        else:
            change, points = _written(change_of(more, codes), 1e4, 1), _written(change_of(gain, codes), 100, 2)
            summary = f"{name}, with a decision factor of {option.factor:g}: {change} dangerous errors in 10 000 "
            summary += f"samples, {points} points of accuracy, against the plain model after calibration."
        costs = without_diagonal(self.concern.matrix())
        share = (costs[costs > 0].min() / costs.max()).item()
        if share < option.factor:
            by_concern = f"by the concern, a harmless error costs {share:.3g} of the worst"
            summary += f" That keeps to max_accuracy_loss; {by_concern}, and DecisionRule(concern) decides by that."
        return Recommendation(name, rule, option.factor, summary)

    def _referring(
        self,
        names: Sequence[str],
        logits: Mapping[str, Tensor],
        target: Tensor,
        clusters: Groups | None,
        groups: Mapping[str, Groups],
    ) -> Recommendation:
        def fitted(concern: ConcernSpec, name: str) -> DecisionRule:
            return DecisionRule(concern, self.limits).fit(logits[name], target, clusters=clusters, groups=groups)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the chosen rule gives the same warnings
            plain = fitted(self.concern, PLAIN)
        every, allowed = [logits[name] for name in names], self.max_accuracy_loss
        chosen = choose_referring(every, target, self.concern, self.limits, allowed, clusters=clusters, groups=groups)
        name = names[chosen.model]
        rule = fitted(with_factor(self.concern, chosen.factor), name)
        decided, right = _decided(rule(logits[name]), target)
        usual, usually_right = _decided(plain(logits[PLAIN]), target)
        costs = "the costs of the concern" if chosen.factor is None else f"a decision factor of {chosen.factor:g}"
        shares = f"{100 * decided:.1f} % of the samples under the limits, and {100 * right:.1f} % rightly"
        summary = f"{name}, with {costs}, decides {shares}"
        if chosen.model == 0 and chosen.factor is None:
            summary += ": nothing that was tried was expected to do better."
        else:
            summary += f"; plain, with the costs of the concern, {100 * usual:.1f} and {100 * usually_right:.1f} %."
        return Recommendation(name, rule, chosen.factor, summary)


def recommended(
    concern: ConcernSpec, *, max_accuracy_loss: float = MAX_ACCURACY_LOSS, refer: bool | Limit | Sequence[Limit] = False
) -> Recipe:
    """Make the recipe that makes fewer dangerous errors at an accuracy that one allows (see ``examples/benchmark``).

    It trains a plain model and three with margins for dangerous errors, which grow while training (`MarginRamp`), and
    chooses among them and the costs to decide by on validation samples. With weights, margins are in proportion to
    them. Any optimizer and schedule will do; ours was Adam with a cosine after a warmup. Where training takes long, one
    model with a margin beside the plain one will do, too.

    Args:
        concern: What errors cost, and which are dangerous.
        max_accuracy_loss: The accuracy that the choice may cost, as a share of samples, in [0, 1]. The decision factor
            is expected to cost no more, and no choice costs more by an interval of 95 %. Where samples are referred,
            it is the share of right decisions that the choice may cost.
        refer: Whether samples may be referred, under limits that the rule guarantees; True is a `Limit` of 0.005.

    Raises:
        ValueError: If an argument breaks its rule, or if the concern has a cost of referral, but nothing is referred.

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
    require(0 <= max_accuracy_loss <= 1, "max_accuracy_loss must be from 0 to 1", max_accuracy_loss)
    given: list[Any] = [] if refer is False else [REFERRAL_LIMIT if refer is True else refer]
    if isinstance(refer, list | tuple):
        given = list(refer)
    are_limits = all(isinstance(each, Limit) for each in given)
    require(are_limits, "refer must be a bool, a Limit or several of them", quoted(refer))
    limits = DecisionRule(concern, given).limits
    if not limits and concern.refer is not None:
        raise ValueError("refer must be given with a concern that has a cost of referral.")
    losses = {name: margin_loss(concern, *setting) for name, setting in LOSSES.items()}
    return Recipe(concern, losses, limits, max_accuracy_loss)


def with_averages(logits: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Add averages of models to the models of a recipe: ``"average"`` of all, ``"average of margins"`` without plain.

    `Recipe.choose` may then choose an average, which needs no further training, but a forward pass of each model that
    it holds. The logits of an average are the logarithms of the mean probabilities.

    Args:
        logits: ``(N, C)`` of each model on the same samples, by the names of their losses.

    Raises:
        ValueError: If shapes differ.

    Example:
        >>> import torch
        >>> logits = {"plain": torch.tensor([[0.0, 2.0]]), "margin 4": torch.tensor([[1.0, 1.0]])}
        >>> with_averages(logits)["average"].softmax(dim=1)
        tensor([[0.3096, 0.6904]])
    """
    shapes = {name: tuple(each.shape) for name, each in logits.items()}
    require(len(set(shapes.values())) <= 1, "logits must have one shape", shapes)
    members = {"average": list(logits.values())}
    members["average of margins"] = [each for name, each in logits.items() if name != PLAIN]
    return {**logits, **{title: average_logits(each) for title, each in members.items() if len(each) > 1}}


def average_logits(logits: Sequence[Tensor]) -> Tensor:
    """Return the logarithm of the mean probabilities of several models on the same samples: (N, C)."""
    return torch.stack([each.log_softmax(dim=1) for each in logits]).logsumexp(dim=0) - log(len(logits))


def margin_loss(concern: ConcernSpec, margin: float, label_smoothing: float) -> SoftmaxMarginLoss:
    """Make the loss for a margin, in nats, of the errors that matter most; released pairs have none."""
    return SoftmaxMarginLoss(harm_of(concern).float(), margin=margin, label_smoothing=label_smoothing)


def _decided(decision: Tensor, target: Tensor) -> tuple[float, float]:
    """Return the shares of samples that are decided, and decided rightly."""
    return (decision != REFERRED).double().mean().item(), (decision == target).double().mean().item()


def _written(mean: Mean, unit: float, digits: int) -> str:
    value, low, high = (unit * each for each in (mean.value, *mean.interval(CONFIDENCE)))
    return f"{value:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"
