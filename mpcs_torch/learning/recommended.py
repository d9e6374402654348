"""The recommended recipe: train a model with each of several losses, then choose a model and its decision costs."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import quoted, require
from mpcs_torch.functional.comparison.means import Mean, estimate_mean
from mpcs_torch.functional.inputs.confidence import CONFIDENCE
from mpcs_torch.functional.inputs.groups import Groups, codes_by_column, group_codes
from mpcs_torch.learning.choice import (
    CHANGES,
    FACTORS,
    HARM,
    RIGHT,
    Options,
    calibrated,
    calibration_for,
    choose_referring,
    harm_matrix,
    with_factor,
)
from mpcs_torch.learning.decision_rule import DecisionRule
from mpcs_torch.learning.loss_modules import SoftmaxMarginLoss
from mpcs_torch.learning.rule_fit import checked_logits
from mpcs_torch.learning.rule_limit import Limit, decision_values
from mpcs_torch.tables import Table

MAX_ACCURACY_LOSS = 0.005
"""The largest allowed loss of accuracy, as a share of samples. Up to this loss, about one dangerous error is avoided
for each correct decision that is lost; beyond this loss, only 0.4."""
PLAIN = "plain"
LOSSES = {PLAIN: (0.0, 0.0), "margin 2": (2.0, 0.0), "margin 4": (4.0, 0.0), "margin 2, smoothed": (2.0, 0.05)}
"""The candidate losses by name: the margin in nats for the most harmful errors, and the label smoothing."""
REFERRAL_LIMIT = Limit(0.005)
"""The default limit if samples may be referred."""
HEADER = ("model", "decided by", "points of accuracy", "dangerous errors", "more in 10 000", "cost", "referred", "")
COSTS, NOTHING_ELSE = "the costs of the concern", "no other option is expected to "


class Way(NamedTuple):
    """A row of the table `Recommendation.options`, as text: the results of deciding with one model and one factor."""

    model: str
    by: str
    gain: str
    dangerous: str
    more: str
    cost: str
    referred: str
    verdict: str


@dataclass(frozen=True)
class Recommendation:
    """The model that was chosen on validation samples, and its decision rule."""

    name: str
    """The name of the model: a key of `Recipe.losses`, or the name of another candidate."""
    rule: DecisionRule
    """The fitted decision rule, whose input is the logits of the chosen model."""
    factor: float | None
    """The rule's cost of a harmless error, if the worst error costs 1; None if the rule uses the concern's costs."""
    summary: str
    """Two lines of text: the trade-off between accuracy and dangerous errors, and the choice. The 95 % intervals are
    computed on the same validation samples as the choice."""
    options: Table
    """The accuracy, dangerous errors, cost and referrals of the plain model, of the chosen model with each factor, and
    of each model with the chosen factor. With limits: of each option that was compared; the values are estimates."""

    def __str__(self) -> str:
        return f"{self.summary}\n\n{self.options.markdown()}"


@dataclass(frozen=True)
class Recipe:
    """Losses to train with, one for each model, and the method `choose`, which chooses among the trained models."""

    concern: ConcernSpec
    losses: dict[str, SoftmaxMarginLoss]
    """The losses by name. The first is ``"plain"``: cross entropy, with a margin of 0."""
    limits: tuple[Limit, ...]
    """The limits that the rule guarantees by referring samples; empty if there are no limits."""
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
        """Choose a model, and fit its decision rule on the CPU, with validation samples unseen in training.

        Each model gets a score from its calibrated probabilities: -log p(true class) - log(1 - expected harm). The best
        model is the one with the lowest score; this may be the plain model. A factor is the cost of a harmless error in
        decisions, if the worst error costs 1.

        Without limits, the best model is chosen with the factor of least expected harm whose expected loss of accuracy
        is allowed. If the 95 % intervals of counts show that a model with a factor is worse than the plain model, the
        next best factor or model is tried. If a referral has a cost, no factor is tried.

        With limits, the plain model and the best model with each factor are compared. Of those whose loss of correct
        decisions is allowed, the one that refers the fewest samples is chosen. A fifth of the samples is used for this
        choice and for the calibration. The others only set the thresholds, so the limits are guaranteed.

        Probabilities are calibrated by a temperature. But without limits, if mistaking class A for B is worse than B
        for A, they are calibrated by a scale and a bias for each class, because margins then shift the class odds.

        Args:
            logits: ``(N, C)`` logits of each trained model, by the name of its loss; ``"plain"`` is required. Other
                candidates, such as the averages of `with_averages`, may be added under other names.
            target: As in `DecisionRule.fit`.
            clusters: As in `DecisionRule.fit`; the 95 % intervals account for them, too.
            groups: As in `DecisionRule.fit`.

        Raises:
            ValueError: If the plain model is missing, or an argument is invalid as in `DecisionRule.fit`.
        """
        require(PLAIN in logits, f"logits must include those of the model {PLAIN!r}", quoted(list(logits)))
        names = [PLAIN, *(name for name in logits if name != PLAIN)]
        classes = len(self.concern.classes)
        checked = {name: checked_logits(logits[name], target, classes, calibrates=True) for name in names}
        logits, target = {name: each[0].cpu() for name, each in checked.items()}, checked[PLAIN][1].cpu()
        cluster_codes = None if clusters is None else group_codes("clusters", clusters, len(target))
        by_column = codes_by_column(groups, len(target))
        if self.limits:
            return self._choose_with_limits(names, logits, target, cluster_codes, by_column)
        return self._choose_without_limits(names, logits, target, cluster_codes)

    @property
    def _default_factor(self) -> float:
        has_costs = self.concern.weights is not None or self.concern.refer is not None
        return 0.0 if has_costs else self.concern.factor

    def _rule(self, factor: float) -> DecisionRule:
        concern = self.concern if factor == self._default_factor else with_factor(self.concern, factor)
        return DecisionRule(concern, calibration=calibration_for(harm_matrix(self.concern)))

    def _choose_without_limits(
        self, names: Sequence[str], logits: Mapping[str, Tensor], target: Tensor, clusters: Groups | None
    ) -> Recommendation:
        harm, factors = harm_matrix(self.concern), {*FACTORS, self._default_factor}
        method = calibration_for(harm)
        if self.concern.refer is not None:  # the price of a referral is on the scale of the concern: try no factor
            harm, factors = self.concern.costs() / self.concern.costs().max(), {self._default_factor}
        probs = [calibrated(logits[name], target, method) for name in names]
        options = Options.from_probs(probs, target, harm, sorted(factors, reverse=True))
        codes = None if clusters is None else clusters.codes
        place = options.choose(self.max_accuracy_loss, codes)
        ways = self._ways(options, place, {name: logits[name] for name in names}, target, codes)
        chosen, harms = ways[place], [each[HARM] for each in options.estimates()]
        same_model = [at for at, way in ways.items() if way.model == chosen.model]
        safest = ways[min(same_model, key=lambda at: (harms[at], at != place))]
        most = f"at any accuracy, {safest.by}: {safest.dangerous}, at {safest.gain} points of accuracy."
        most = NOTHING_ELSE + "do less harm." if safest is chosen else most
        change = (
            f": {chosen.more} dangerous errors in 10 000 samples, {chosen.gain} points of accuracy, against the plain "
        )
        change = " after calibration, is the best choice." if place == 0 else change + "model after calibration."
        trade = f"{self._allowance()}, {chosen.dangerous} samples are dangerous errors; {most}"
        factor = options.options[place].factor
        rule = self._rule(factor).fit(logits[chosen.model], target)
        summary, table = f"{trade}\n{chosen.model}, decided by {chosen.by}{change}", Table(HEADER, [*ways.values()])
        return Recommendation(chosen.model, rule, None if len(factors) == 1 else factor, summary, table)

    def _ways(
        self, options: Options, place: int, logits: Mapping[str, Tensor], target: Tensor, clusters: Tensor | None
    ) -> dict[int, Way]:
        """Return table rows: of the plain model, and of options with the model or the factor of option ``place``."""
        chosen, losses, ways = options.options[place], dict[int, Tensor](), dict[int, Way]()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the chosen rule gives the same warnings
            fitted = [self._rule(self._default_factor).fit(each, target).calibration for each in logits.values()]
        for at, (model, factor) in enumerate(options.options):
            if at == 0 or model == chosen.model or factor == chosen.factor:
                rule, name = self._rule(factor), list(logits)[model]
                rule.calibration, rule.is_fitted = fitted[model], True
                losses[at] = decision_values(self.concern)[:, target, rule(logits[name])]
                gain, more = (estimate_mean(each, CHANGES, clusters) for each in (losses[at] - losses[0])[:2])
                changes = _written(gain, 100, 2), _written(more, 1e4, 1)
                expected, size = options.estimates()[at][RIGHT], len(target)
                ways[at] = self._way(name, factor, losses[at].mean(dim=1), changes, expected, size, at == place)
        return ways

    def _way(
        self,
        model: str,
        factor: float | None,
        losses: Sequence[float] | Tensor,
        changes: tuple[str, str],
        expected: float,
        size: int,
        is_chosen: bool,
    ) -> Way:
        by = COSTS if factor in (None, self._default_factor) else f"a factor of {factor:g}"
        _, dangerous, cost, referred = losses
        verdict = "" if expected >= -self.max_accuracy_loss else "expected to cost too much accuracy"
        counted, share = f"{round(size * float(dangerous), 1):.9g} of {size}", f"{100 * referred:.1f} %"
        return Way(model, by, changes[0], counted, changes[1], f"{cost:.4g}", share, "chosen" if is_chosen else verdict)

    def _allowance(self) -> str:
        most = self.max_accuracy_loss
        return f"With at most {100 * most:g} points of accuracy lost (max_accuracy_loss={most:g})"

    def _choose_with_limits(
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
            fitted(self.concern, PLAIN)  # if samples are too few, raise before the choice
        every, allowed = [logits[name] for name in names], self.max_accuracy_loss
        chosen, options = choose_referring(
            every, target, self.concern, self.limits, allowed, clusters=clusters, groups=groups
        )
        ways = []
        for each in options:
            gain, more = each.right - options[0].right, each.dangerous - options[0].dangerous
            changes = f"{100 * gain:+.2f}", f"{1e4 * more:+.1f}"
            ways.append(self._way(names[each.model], each.factor, each[2:], changes, gain, len(target), each is chosen))
        way, rival = ways[options.index(chosen)], ways[min(range(len(options)), key=lambda at: options[at].referred)]
        least = f"at any accuracy, {rival.by}: {rival.referred}, at {rival.gain} points of accuracy."
        least = least if rival.referred != way.referred else NOTHING_ELSE + "refer fewer."
        rule = fitted(with_factor(self.concern, chosen.factor), way.model)
        right, _, _, referred = decision_values(self.concern)[:, target, rule(logits[way.model])].mean(dim=1)
        trade = f"{self._allowance()}, the limits are expected to refer {way.referred} of the samples; {least}"
        shares = f"{100 * (1 - referred):.1f} % of the samples under the limits, {100 * right:.1f} % correctly."
        summary = f"{trade}\n{way.model}, decided by {way.by}, decides {shares}"
        return Recommendation(way.model, rule, chosen.factor, summary, Table(HEADER, ways))


def recommended(
    concern: ConcernSpec, *, max_accuracy_loss: float = MAX_ACCURACY_LOSS, refer: bool | Limit | Sequence[Limit] = False
) -> Recipe:
    """Return the recipe for fewer dangerous errors within an allowed loss of accuracy (see ``examples/benchmark``).

    You train one plain model, and three models with margins for dangerous errors, which `MarginRamp` raises during
    training. `Recipe.choose` then chooses a model and the cost of harmless errors on validation samples. If the concern
    has weights, margins are proportional to the weights. Any optimizer and schedule will do. If training is expensive,
    train only the plain model and one with a margin.

    Args:
        concern: The costs of errors, and which errors are dangerous.
        max_accuracy_loss: The largest loss of accuracy that the choice may cause, as a share of samples in [0, 1]. The
            expected loss, and the lower end of the 95 % interval of the counted loss, must not exceed this value. With
            limits, this value bounds the loss in the share of correct decisions instead.
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
    require(0 <= max_accuracy_loss <= 1, "max_accuracy_loss must be from 0 to 1", max_accuracy_loss)
    given: list[Any] = [] if refer is False else [REFERRAL_LIMIT if refer is True else refer]
    if isinstance(refer, list | tuple):
        given = list(refer)
    are_limits = all(isinstance(each, Limit) for each in given)
    require(are_limits, "refer must be a bool, a Limit or several of them", quoted(refer))
    limits = DecisionRule(concern, given).limits
    losses = {name: margin_loss(concern, *setting) for name, setting in LOSSES.items()}
    return Recipe(concern, losses, limits, max_accuracy_loss)


def with_averages(logits: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return ``logits`` with two averages of models added, among which `Recipe.choose` may also choose.

    ``"average"`` is of all models, and ``"average of margins"`` of all but the plain model. The logits of an average
    are the logarithms of the mean probabilities. To predict with an average, run every model in it.

    Args:
        logits: ``(N, C)`` logits of each model on the same samples, by the name of its loss.

    Raises:
        ValueError: If the shapes differ.

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
    """Return the log of the mean probabilities (N, C) of several models on the same samples."""
    return torch.stack([each.log_softmax(dim=1) for each in logits]).logsumexp(dim=0) - log(len(logits))


def margin_loss(concern: ConcernSpec, margin: float, label_smoothing: float) -> SoftmaxMarginLoss:
    """Return the loss whose margin is ``margin`` nats for the most harmful errors, and 0 nats for harmless errors."""
    return SoftmaxMarginLoss(harm_matrix(concern).float(), margin=margin, label_smoothing=label_smoothing)


def _written(mean: Mean, unit: float, digits: int) -> str:
    value, low, high = (unit * each for each in (mean.value, *mean.interval(CONFIDENCE)))
    return f"{value:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"
