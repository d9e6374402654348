"""Rank epochs by one metric, within limits on other metrics."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import comb, inf, isclose, isfinite, isnan, nan
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from mpcs_torch.errors import CodedError, InvalidValueError, did_you_mean, require
from mpcs_torch.functional.inputs.confidence import LEVEL
from mpcs_torch.functional.inputs.evaluation_warnings import EvaluationWarning
from mpcs_torch.functional.measure import Direction
from mpcs_torch.tables import Table, in_table

if TYPE_CHECKING:
    from torchmetrics import Metric  # takes seconds to import


class MissingMetricError(CodedError, ValueError):
    """The values of an epoch lack a metric of the selection rule."""


MAX_WHOLE = 2**53
"""The magnitude up to which floats hold every whole number."""
AS_GOOD = "epochs that may be as good"
"""The header of the last column in the table of `explain`, if a metric counts errors."""
MISSPELT = 0.85
"""The likeness of a name without a direction and one with a direction from which on the first is a spelling error."""


@dataclass(frozen=True)
class Epoch:
    """An epoch and its metrics."""

    number: int
    values: Mapping[str, float]


E = TypeVar("E", bound=Epoch)


class Rank(NamedTuple):
    """A sort key of an epoch; the best epoch has the lowest."""

    loss: float
    """The loss of the metric that ranks the epochs."""
    loss_of_ties: float
    """The loss of the metric that orders epochs of equal ``loss``; 0 without such a metric."""
    order: int
    """The index of the epoch among all, negated if the last of equal epochs is best."""


@dataclass(frozen=True)
class SelectionRule:
    """Rank epochs by one metric, and leave out epochs that exceed limits on other metrics.

    Args:
        by: The metric that ranks the epochs.
        directions: For each metric, ``"min"`` or ``"max"``, or a torchmetrics `Metric` (or its class) whose
            ``higher_is_better`` is set. A direction is never guessed from a name.
        within: For each limited metric, the maximum distance from its best value over all epochs, for example
            ``{"accuracy": 0.001}``. All limits of a rule have a relative tolerance of 1e-6 for rounding.
        at_most: Upper bounds of metrics, for example ``{"dangerous_rate": 0.02}``. Metrics for which neither way is
            better have no direction; of the others, lower must be better.
        at_least: Lower bounds of metrics; if they have a direction, higher must be better.
        ties: The order of epochs that are equally good by ``by``: ``"first"`` or ``"last"``, or a second metric (of
            epochs that are equally good by this metric, too, the first ranks higher).

    Raises:
        ValueError: If ``by``, ``ties`` or a metric in ``within`` has no direction, if a distance is < 0, or if a limit
            is against the direction of its metric, or its metric looks misspelled.
    """

    by: str
    directions: Mapping[str, "Direction | Metric | type[Metric]"]
    within: Mapping[str, float] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)
    at_least: Mapping[str, float] = field(default_factory=dict)
    ties: str = "first"

    def __post_init__(self) -> None:
        for argument in ("directions", "within", "at_most", "at_least"):
            values = getattr(self, argument)
            require(isinstance(values, Mapping), "mapping_of_metrics", argument, values)
        resolved = {
            name: _direction(name, given) for name, given in self.directions.items()
        }
        object.__setattr__(self, "directions", resolved)
        if self.by not in resolved:
            raise InvalidValueError(
                "direction_of", "directions", list(resolved), name=self.by
            )
        without = ", ".join(name for name in self.within if name not in resolved)
        if without:
            raise InvalidValueError(
                "directions_of", "within", without=without, known=list(resolved)
            )
        self._convert_limits("within")
        # A distance of NaN is not >= 0, either.
        invalid = {name: slack for name, slack in self.within.items() if not slack >= 0}
        require(not invalid, "distances", "within", invalid)
        for kind in ("at_most", "at_least"):
            limits = self._convert_limits(kind)
            has_nan = any(isnan(limit) for limit in limits.values())
            require(not has_nan, "no_nan", kind, limits)
            self._check_directions_of(kind, limits)
        if self.ties not in ("first", "last", *resolved):
            raise InvalidValueError(
                "one_of", "ties", self.ties, choices=["first", "last", *resolved]
            )

    def _convert_limits(self, kind: str) -> dict[str, float]:
        """Convert the limits of a ``kind`` to floats, and return them by metric."""
        limits = {
            name: number(f"{kind} of {name}", limit)
            for name, limit in getattr(self, kind).items()
        }
        object.__setattr__(self, kind, limits)
        return limits

    def _check_directions_of(self, kind: str, limits: Mapping[str, float]) -> None:
        """Refuse a limit on the best side of a metric, and a name that is nearly that of a metric with a direction."""
        if kind == "at_most":
            direction, better, other = "min", "lower", "at_least"
        else:
            direction, better, other = "max", "higher", "at_most"
        for name in limits:
            is_right = self.directions.get(name, direction) == direction
            require(
                is_right,
                "limit_of_best",
                kind,
                limits,
                name=name,
                better=better,
                other=other,
            )
            if name not in self.directions:
                suggestion = did_you_mean(name, self.directions, MISSPELT)
                require(
                    not suggestion,
                    "misspelt_limit",
                    kind,
                    limits,
                    name=name,
                    suggestion=suggestion,
                )

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the names of all metrics that the rule reads."""
        names = [self.by, *self.directions, *self.at_most, *self.at_least]
        return tuple(dict.fromkeys(names))

    def values_in(self, values: Mapping[str, Any], remedy: str = "") -> dict[str, Any]:
        """Return, from the ``values`` of metrics by name, those that the rule reads.

        Raises:
            MissingMetricError: If ``values`` lacks a metric of the rule; the error message ends with ``remedy``.
        """
        missing = [name for name in self.metrics if name not in values]
        if missing:
            listed = ", ".join(missing)
            given = ", ".join(values) or "nothing"
            raise MissingMetricError(
                "metric_of_rule", metrics=listed, given=given, remedy=remedy
            )
        return {name: values[name] for name in self.metrics}

    def ranking(self, epochs: Sequence[E]) -> list[E]:
        """Return the epochs within the limits, best first. Epochs with NaN for the ranking metric are left out."""
        best: dict[str, float] = {}
        for epoch in epochs:
            best = self.best_losses(best, epoch)
        within = [
            (self.rank(epoch, place), place)
            for place, epoch in enumerate(epochs)
            if self.keeps_limits(epoch, best)
        ]
        return [epochs[place] for _, place in sorted(within)]

    def rank(self, epoch: Epoch, place: int) -> "Rank":
        """Return the rank of ``epoch``, the one with the index ``place``."""
        tied = self.loss(epoch, self.ties) if self.ties in self.directions else 0.0
        if isnan(tied):  # which has no order
            tied = inf
        order = -place if self.ties == "last" else place
        return Rank(self.loss(epoch, self.by), tied, order)

    def alone(self, name: str) -> "SelectionRule":
        """Return the rule that ranks by the metric ``name`` alone, without limits."""
        return SelectionRule(name, self.directions, ties=self.ties)

    def picked_by_each(self, epochs: Sequence[E]) -> dict[str, E]:
        """Return, for each metric with a direction, the epoch that this metric alone would pick, without limits."""
        rankings = {name: self.alone(name).ranking(epochs) for name in self.directions}
        return {name: ranking[0] for name, ranking in rankings.items() if ranking}

    def best_losses(self, before: Mapping[str, float], epoch: Epoch) -> dict[str, float]:
        """Return ``before``, the lowest loss of each metric in ``within``, updated by ``epoch``; NaN is ignored."""
        best = dict(before)
        for name in self.within:
            loss = self.loss(epoch, name)
            if not isnan(loss):
                best[name] = min(loss, best.get(name, loss))
        return best

    def loss(self, epoch: Epoch, name: str) -> float:
        """Return the value of the metric ``name`` in ``epoch``, negated if higher is better for this metric."""
        value = epoch.values[name]
        return value if self.directions[name] == "min" else -value

    def keeps_limits(self, epoch: Epoch, best: Mapping[str, float]) -> bool:
        """Return whether ``epoch`` is within all limits; ``best`` has the lowest loss of each metric in ``within``."""
        # Comparisons with NaN are false, so a NaN exceeds every limit.
        for name, slack in self.within.items():
            if not _is_at_most(self.loss(epoch, name), best.get(name, nan) + slack):
                return False
        for name, limit in self.at_most.items():
            if not _is_at_most(epoch.values[name], limit):
                return False
        for name, limit in self.at_least.items():
            if not _is_at_most(limit, epoch.values[name]):
                return False
        return not isnan(epoch.values[self.by])


def _is_at_most(value: float, limit: float) -> bool:
    return value <= limit or isclose(value, limit, rel_tol=1e-6)  # float32 rounding


@dataclass(frozen=True)
class Contender:
    """An epoch that is one of the best, or could become one if later epochs put others outside the limits."""

    epoch: Epoch
    place: int
    """The index of the epoch among all epochs."""
    rank: Rank
    losses: tuple[float, ...]
    """The losses of the metrics in ``within``. The lower a loss, the longer the epoch stays within its limit."""
    outranked_by: int = 0
    """The number of better contenders that stay within the limits at least as long as this one."""

    def outranks(self, other: "Contender") -> bool:
        """Return whether this contender is better than ``other`` and stays within the limits at least as long."""
        stays = all(
            loss <= of_other
            for loss, of_other in zip(self.losses, other.losses, strict=True)
        )
        return self.rank < other.rank and stays


@dataclass(frozen=True)
class Contenders:
    """The best epochs (a number of ``places``), and those that could still become one of them after later epochs.

    When a metric in ``within`` reaches a new best value, its limit becomes stricter, and epochs may fall outside the
    limits for good. So an epoch is dropped once it is outside the limits, or once ``places`` other epochs outrank it.
    """

    rule: SelectionRule
    places: int
    max_count: int | None = None
    """The maximum number of contenders. If there are more, `_most_replaceable` chooses which one to drop."""
    min_delta: float = 0.0
    """The difference in the ranking metric up to which a better epoch is no progress."""
    contenders: tuple[Contender, ...] = ()
    best_losses: Mapping[str, float] = field(default_factory=dict)
    count: int = 0
    """The number of epochs added so far."""
    waited: int = 0
    """The number of epochs without progress: without a better pick. Before the first pick, only NaN counts."""
    progress_loss: float = inf
    """The loss of the pick at the last progress."""
    progress_number: int = 0
    """The number of the epoch of the last progress."""
    last_number: int = -(2**63)
    """The number of the last epoch."""

    def add(self, epoch: Epoch, *, competes: bool = True) -> "Contenders":
        """Return the contenders after one more epoch. If ``competes`` is False, ``epoch`` only tightens the limits."""
        best = self.rule.best_losses(self.best_losses, epoch)
        kept = [
            contender
            for contender in self.contenders
            if self.rule.keeps_limits(contender.epoch, best)
        ]
        if competes and self.rule.keeps_limits(epoch, best):
            kept = self._with(epoch, kept)
        if self.max_count is not None and len(kept) > self.max_count:
            kept.remove(self._most_replaceable(kept))
        added = replace(
            self,
            contenders=tuple(kept),
            best_losses=best,
            count=self.count + 1,
            last_number=epoch.number,
        )
        return self._with_progress(added, epoch)

    def _with(self, epoch: Epoch, others: Sequence[Contender]) -> list[Contender]:
        """Return ``others`` and ``epoch``, without those that are outranked too often."""
        losses = tuple(self.rule.loss(epoch, name) for name in self.rule.within)
        new = Contender(epoch, self.count, self.rule.rank(epoch, self.count), losses)
        kept = list[Contender]()
        better = 0
        for other in others:
            if other.outranks(new):
                better += 1
            if new.outranks(other):
                other = replace(other, outranked_by=other.outranked_by + 1)
            if other.outranked_by < self.places:
                kept.append(other)
        if better < self.places:
            kept.append(replace(new, outranked_by=better))
        return kept

    def _with_progress(self, added: "Contenders", epoch: Epoch) -> "Contenders":
        """Return ``added``, the contenders after ``epoch``, with the number of epochs without progress."""
        pick = added.pick
        loss = inf
        if pick is not None:
            loss = min(contender.rank for contender in added.contenders).loss
        # If other limits have become stricter, the pick may be worse than before; then waiting begins anew, too.
        # Progress is another pick with another loss, unless it is better by less than min_delta; and an epoch that is
        # measured while none is within the limits.
        is_other = pick != self.pick and loss != self.progress_loss
        is_too_small = self.progress_loss - self.min_delta <= loss < self.progress_loss
        is_before_first = pick is None and not isnan(epoch.values[self.rule.by])
        if (is_other and not is_too_small) or is_before_first:
            return replace(
                added, waited=0, progress_loss=loss, progress_number=epoch.number
            )
        waited = self.waited
        if epoch.number < self.last_number:
            # The run went back to an earlier checkpoint: later epochs do not count.
            waited = min(waited, max(0, epoch.number - self.progress_number - 1))
        return replace(added, waited=waited + 1)

    def _most_replaceable(self, contenders: Sequence[Contender]) -> Contender:
        """Return the contender nearest in loss to the next best, but not one of the ``places`` best."""
        ranked = sorted(contenders, key=lambda contender: contender.rank)
        others = ranked[self.places :]
        gaps = [after.rank.loss - before.rank.loss for before, after in pairwise(others)]
        if not gaps:
            return ranked[-1]
        return others[gaps.index(min(gaps))]

    def among(self, places: Container[int]) -> "Contenders":
        """Return only the contenders whose index (`Contender.place`) is in ``places``."""
        kept = [contender for contender in self.contenders if contender.place in places]
        return replace(self, contenders=tuple(kept))

    @property
    def pick(self) -> int | None:
        """Return the index (`Contender.place`) of the best contender; None if there is no contender."""
        if not self.contenders:
            return None
        return min(self.contenders, key=lambda contender: contender.rank).place

    @property
    def places_kept(self) -> set[int]:
        """Return the index (`Contender.place`) of each contender."""
        return {contender.place for contender in self.contenders}


def number(name: str, value: Any) -> float:
    """Convert a scalar of any library to a float; raise a ValueError for anything else."""
    try:
        if isinstance(value, str | bytes | bytearray):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise InvalidValueError("number", name, value) from None


def whole_number(name: str, value: Any) -> int:
    """Convert a whole number of any library to an int; raise a ValueError for any other value.

    Bools and numbers above 2^53 in magnitude are refused, too.
    """
    result = number(name, value)
    dtype = str(getattr(value, "dtype", ""))  # "bool" in NumPy, "torch.bool" in PyTorch
    is_bool = isinstance(value, bool) or dtype.endswith("bool")
    is_exact = result.is_integer() and abs(result) <= MAX_WHOLE
    require(is_exact and not is_bool, "whole", name, value)
    return int(result)


def count_metrics(rule: SelectionRule, epochs: Sequence[Epoch]) -> list[str]:
    """Return the names of metrics that seem to count errors: lower is better, values are whole, and some exceed 1."""
    names = []
    for name, direction in rule.directions.items():
        finite = [epoch.values[name] for epoch in epochs if isfinite(epoch.values[name])]
        are_whole = all(value == int(value) and 0 <= value <= MAX_WHOLE for value in finite)
        if direction == "min" and are_whole and max(finite, default=0) > 1:
            names.append(name)
    return names


def count_interval(count: float) -> tuple[float, float]:
    """Return the exact 95 % interval (Garwood) of the mean of a Poisson variable of which ``count`` was observed."""
    from scipy.special import gammainccinv, gammaincinv

    if not isfinite(count):
        return count, count
    low = float(gammaincinv(count, LEVEL / 2)) if count else 0.0
    return low, float(gammainccinv(count + 1, LEVEL / 2))


def as_good_as(epochs: Sequence[E], name: str, pick: Epoch) -> list[E]:
    """Return the epochs that may have no more errors than ``pick`` on new samples, by the count ``name``.

    The pick was chosen for its low count, so it is compared at a level that is corrected for all pairs of epochs: if
    all are equally good, all are returned with a probability of at least 95 %. The exact test treats the errors of two
    epochs as independent.
    """
    from scipy.special import bdtr

    level = LEVEL / max(1, comb(len(epochs), 2))
    count = pick.values[name]
    as_good = list[E]()
    for epoch in epochs:
        other = epoch.values[name]
        if epoch.number == pick.number or not isfinite(count + other):
            continue
        # If both are equally good, each error is in either epoch with a probability of one half.
        p_value = 2 * bdtr(min(count, other), int(count + other), 0.5)
        if p_value > level:
            as_good.append(epoch)
    return as_good


class _Pick(NamedTuple):
    """An epoch, and who picks it, by which metric, of which epochs."""

    picker: str
    epoch: Epoch
    by: str
    candidates: Sequence[Epoch]


def explain(
    rule: SelectionRule, epochs: Sequence[Epoch], *, best: Epoch | None = None
) -> Table:
    """Return a table of the epoch that the rule picks, and of the epoch that each metric alone picks, to compare them.

    If a metric counts errors, its values have exact 95 % intervals for independent samples, and the last column lists
    the epochs that may be as good as the epoch in the row (see `as_good_as`), and their number. ``best``
    is the best epoch with a checkpoint; if the rule picks another epoch, the table lists both.
    """
    ranking = rule.ranking(epochs)
    counts = count_metrics(rule, epochs)
    names = list(dict.fromkeys(name for epoch in epochs for name in epoch.values))
    picks = list[_Pick]()
    reference = None
    if ranking:
        reference = ranking[0]
        is_gone = best is not None and best is not reference
        picker = "the rule (its checkpoint is gone)" if is_gone else "the rule"
        picks.append(_Pick(picker, reference, rule.by, ranking))
        if best is not None and is_gone:
            picks.append(_Pick("the rule, with a checkpoint", best, rule.by, ranking))
    picks += [
        _Pick(name, epoch, name, epochs)
        for name, epoch in rule.picked_by_each(epochs).items()
    ]
    rows = []
    for pick in picks:
        cells = [
            _cell(pick.epoch, name, reference, is_count=name in counts) for name in names
        ]
        if counts:
            cells.append(_as_good_epochs(pick) if pick.by in counts else "")
        rows.append([pick.picker, str(pick.epoch.number), *cells])
    header = ["picked by", "epoch", *names]
    if counts:
        header.append(AS_GOOD)
    if epochs and not ranking:
        empty = [""] * (len(header) - 2)
        rows.insert(0, ["the rule", "none is within its limits", *empty])
    return Table(header, rows)


def _cell(epoch: Epoch, name: str, reference: Epoch | None, *, is_count: bool) -> str:
    """Return a metric of ``epoch`` as text, with its difference from ``reference`` and, for a count, its interval."""
    if name not in epoch.values:
        return ""
    value = epoch.values[name]
    text = in_table(value)
    if reference is not None and reference is not epoch and name in reference.values:
        text += f" ({value - reference.values[name]:+.3g})"
    if is_count:
        low, high = count_interval(value)
        text += f" [{low:.3g}, {high:.3g}]"
    return text


def _as_good_epochs(pick: _Pick) -> str:
    """Return the numbers of the epochs that may be as good, as text: ``1, 4 to 9 (7 epochs)``."""
    as_good = as_good_as(pick.candidates, pick.by, pick.epoch)
    numbers = sorted({epoch.number for epoch in as_good})
    if not numbers:
        return "none"
    texts = list[str]()
    for run in _consecutive(numbers):
        if len(run) > 2:
            texts.append(f"{run[0]} to {run[-1]}")
        else:
            texts += [str(number) for number in run]
    unit = "epoch" if len(numbers) == 1 else "epochs"
    return f"{', '.join(texts)} ({len(numbers)} {unit})"


def _consecutive(numbers: Sequence[int]) -> list[list[int]]:
    """Split ascending ``numbers`` into lists of consecutive numbers."""
    runs = list[list[int]]()
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def warn_of_pick(epochs: int, by: str, where: str) -> list[EvaluationWarning]:
    """Return a warning that the picked epoch has optimistic values on the data ``where``; none if ``epochs`` is 1."""
    if epochs <= 1:
        return []
    message = f"the epoch was picked from {epochs} by {by} on {where}, so its values there are optimistic"
    return [EvaluationWarning("E5", message)]


def _direction(name: str, given: "Direction | Metric | type[Metric]") -> Direction:
    # Comparing a Metric with a string gives a Metric, which is truthy.
    if isinstance(given, str):
        higher_is_better = {"min": False, "max": True}.get(given)
    else:
        higher_is_better = getattr(given, "higher_is_better", None)
    if not isinstance(higher_is_better, bool):
        raise InvalidValueError("direction", f"the direction of {name}", given)
    return "max" if higher_is_better else "min"
