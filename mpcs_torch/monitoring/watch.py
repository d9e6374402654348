"""Watch the decisions of a deployment through its growing logs, with a state in a file that survives crashes."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import InvalidValueError, Rule, quoted, require
from mpcs_torch.evaluation.decision_numbers import CHANCE, decision_numbers
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.predictions import NO_LABEL, Predictions
from mpcs_torch.evaluation.files.read_options import (
    NO_GROUP,
    NoRowsError,
    PredictionsError,
    ReadOptions,
)
from mpcs_torch.evaluation.files.tables import ReadColumns, distinct_texts, to_text
from mpcs_torch.evaluation.files.words import DECISION
from mpcs_torch.functional import anytime_interval
from mpcs_torch.functional.comparison.means import is_beyond_chance
from mpcs_torch.functional.inputs.confidence import CONFIDENCE
from mpcs_torch.functional.inputs.faults import outside
from mpcs_torch.io.artifacts import sealed_json, unsealed_json
from mpcs_torch.io.atomic_files import locked, replace_text
from mpcs_torch.io.local_paths import local_path
from mpcs_torch.io.untrusted_files import read_limited
from mpcs_torch.learning.rule_estimate import (
    COST,
    DANGEROUS,
    RuleEstimate,
    estimated_and_measured,
)
from mpcs_torch.learning.rule_limit import Limit
from mpcs_torch.monitoring.alarm import MAX_AT_ONCE
from mpcs_torch.monitoring.monitors import ChangeMonitor, RiskMonitor

KIND = "mpcs_torch monitor 9"
RISK = "risk"
"""The kind of the alarms of a `RiskMonitor`."""
CHANGE = "change"
"""The kind of the alarms of a `ChangeMonitor`."""
TIME = "time"
"""The column of a log with texts that alarms show as their time."""
ESTIMATES = ("risk", "cost")
"""The columns with the estimated risk and the expected cost of the best class, as `mpcs decide apply` writes them."""
COST_OF_ROWS = (
    f"{COST}, not compared with labels, because logs do not have the costs of rows"
)
"""The name of the estimate of costs if the rule decides by costs of rows."""
MAX_STATE_BYTES = 100_000_000
"""The maximum size of a state file, which is read into memory."""
UNREADABLE = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RuntimeError,
    OverflowError,
)
"""The errors that a state file with other content than that of `Watch.save` may raise when it is read."""


@dataclass(frozen=True)
class Settings:
    """The settings of a `Watch`, which never change once its state is saved."""

    rule: str
    """The SHA-256 of the file of the decision rule."""
    limits: Sequence[str]
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    confidence: float = CONFIDENCE
    run_length: float | None = None
    """The run length of the `ChangeMonitor`; None if there is no such monitor."""
    least_chance: float = 1.0
    cluster_size: float = 1.0
    """The largest number of rows that are wrong together."""
    has_row_costs: bool = False
    """Whether the rule decides by costs of rows, which logs do not have."""


class Position(NamedTuple):
    """The place in a log up to which it was read."""

    row: int
    """The number of the last row that was read."""
    sha256: str
    """The SHA-256 of the decisions, labels, chances and groups of all rows that were read."""


class LogRows(NamedTuple):
    """N rows of a log: decisions of a deployment, some of them with a label."""

    numbers: Tensor
    """(N,), int64: the numbers of the rows in the log, from 1."""
    decisions: Tensor
    """(N,), int64: -1 for referrals."""
    target: Tensor
    """(N,), int64: the labels; `NO_LABEL` for rows that have no label yet."""
    chance: Tensor
    """(N,), float64: the probability with which a row was chosen to be labelled; 1 if the log has no such column."""
    groups: Mapping[str, Tensor]
    """The index of the group of each row, (N,), by column; -1 for groups that are not monitored."""
    times: Any = ()
    """The times as an arrow array of texts (N,); empty if the log has no column of times."""
    estimated: Sequence[Tensor] = ()
    """The risk and the expected cost of the best class, (N,) each, NaN if unknown; empty if the log has no columns."""

    def position(self, rows: int) -> Position:
        """Return the `Position` of a log of which the first ``rows`` rows, at least one, were read."""
        content = hashlib.sha256()
        for part in (self.decisions, self.target, self.chance, *self.groups.values()):
            content.update(part[:rows].double().numpy().data)
        return Position(int(self.numbers[rows - 1]), content.hexdigest())


def read_log(
    path: Path,
    concern: ConcernSpec,
    settings: Settings,
    reading: ReadOptions,
    tell: Callable[[str], object],
) -> LogRows | None:
    """Read a log; return None if it has no complete row yet. A last line without a line break is not complete.

    ``tell`` is called with each sentence that describes how the log was read.

    Raises:
        PredictionsError: If a value is invalid or a column is missing.
    """
    try:
        table = open_table(path, is_whole=False)
        has_estimates = all(name in table.names for name in ESTIMATES)
        estimates = ESTIMATES if has_estimates else ()
        predictions = Predictions(
            path,
            reading._replace(decision_column=reading.decision_column or DECISION),
            class_names=concern.classes,
            needs_labels=False,
            texts=[*settings.groups, TIME],
            numbers=[CHANCE, *estimates],
            decisions=decision_numbers(concern.classes, concern.answers),
            table=table,
        )
    except NoRowsError:
        return None
    predictions.table.check_columns([*settings.groups], "--limit")
    if settings.least_chance < 1:
        predictions.table.check_columns([CHANCE], "--least-chance")
    if predictions.roles.label is None:
        raise PredictionsError(path, Rule("column_for_labels"))
    rows = predictions.rows()
    for sentence in (predictions.how(), *predictions.notes):
        tell(sentence)
    others = rows.others
    chance = torch.ones(len(rows.target), dtype=torch.float64)
    if CHANCE in others.columns:
        chance = torch.from_numpy(others.numbers(CHANCE))
    estimated = [torch.from_numpy(others.numbers(name)) for name in estimates]
    _check_chances(others, chance, rows.target, settings.least_chance)
    if estimated:
        _check_estimates(others, estimated, may_gain=settings.has_row_costs)
    codes = dict[str, Tensor]()
    for column, names in settings.groups.items():
        code_of = {name: code for code, name in enumerate(names)}
        codes[column] = others.codes(column, partial(_code, code_of), Rule("has_name"))
    return LogRows(
        rows.numbers,
        rows.scores.squeeze(1),
        rows.target,
        chance,
        codes,
        others.columns.get(TIME, ()),
        estimated,
    )


def _check_chances(
    read: ReadColumns, chance: Tensor, target: Tensor, least_chance: float
) -> None:
    """Refuse a labelled row whose chance is below ``least_chance``, which the monitors rely on, or above 1."""
    is_bad = outside(chance, least_chance, 1) & (target != NO_LABEL)
    rule = Rule("chance_of_label", minimum=least_chance)
    _check_column(read, CHANCE, chance, is_bad, rule)


def _check_estimates(
    read: ReadColumns, estimated: Sequence[Tensor], *, may_gain: bool
) -> None:
    """Refuse an impossible risk or cost; NaN is allowed: it is not known. With ``may_gain``, costs may be below 0."""
    risk, cost = estimated
    is_bad = outside(risk, 0, 1) & ~risk.isnan()
    _check_column(read, "risk", risk, is_bad, Rule("risk_or_empty"))
    is_bad = cost.isinf()
    if not may_gain:
        is_bad |= cost < 0
    _check_column(read, "cost", cost, is_bad, Rule("cost_or_empty"))


def _check_column(
    read: ReadColumns, name: str, values: Tensor, is_bad: Tensor, rule: Rule
) -> None:
    """Raise the error of the first row that ``is_bad`` marks, if any, with its value in the column ``name``."""
    if is_bad.any():
        row = int(is_bad.int().argmax())
        raise read.error(rule, row, name, values[row].item())


def _code(code_of: Mapping[str, int], value: Any) -> int:
    """Return the index of the group ``value``, -1 for a group that is not monitored."""
    return code_of.get(to_text(value) or NO_GROUP, -1)


def names_of_groups(path: Path, column: str) -> list[str]:
    """Return the different texts of a column, sorted; a row without a text belongs to the group "(none)"."""
    table = open_table(path)
    table.check_columns([column], "--limit")
    texts = distinct_texts(table, column, 10**4)
    return sorted({text or NO_GROUP for text in texts})


class Alarm(NamedTuple):
    """An alarm that a monitor has raised for a mean, and the row that raised it."""

    kind: str
    """`RISK` or `CHANGE`."""
    name: str
    log: str
    row: int
    """The number of the row, from 1."""
    time: str


class Watch:
    """The monitors of a deployment, and the `Position` up to which each of its logs was read."""

    def __init__(self, settings: Settings, concern: ConcernSpec) -> None:
        self.settings = settings
        self.concern = concern
        limits = [Limit.parse(text) for text in settings.limits]
        names = ("groups", "confidence", "least_chance", "cluster_size")
        common: dict[str, Any] = {name: getattr(settings, name) for name in names}
        self.monitors = {RISK: RiskMonitor(concern, limits, **common)}
        if settings.run_length is not None:
            self.monitors[CHANGE] = ChangeMonitor(
                concern, limits, run_length=settings.run_length, **common
            )
        self.positions = dict[str, Position]()
        """The position in each log, by the path of the log."""
        self.alarms = list[Alarm]()
        """The alarms that the monitors hold, in the order in which they were raised."""
        self.acknowledged = list[Alarm]()
        self.decisions = [*concern.classes, *(name for name, _ in concern.answers)]
        """The names of decisions other than a referral."""
        self.counts = torch.zeros(3, len(self.decisions) + 1, dtype=torch.float64)
        """(3, D + 1): for each decision, referrals last: the rows, the labels, and the labels' sum of 1 / chance."""
        self.sums = torch.zeros(2, 6, dtype=torch.float64)
        """(2, 6): of dangerous errors and of costs, the rows with an estimate, and the sum of estimates; then of those
        with a label, their number, and the sums of weights, and of weighted measured and estimated losses. Only
        `_add_estimates` and `estimates` know this order."""

    @property
    def rows(self) -> int:
        """The number of rows so far."""
        return int(self.counts[0].sum())

    @property
    def labelled(self) -> int:
        """The number of rows with a label so far."""
        return int(self.counts[1].sum())

    @property
    def referred(self) -> int:
        """The number of rows that were referred so far."""
        return int(self.counts[0, -1])

    def read(
        self, path: str | Path, reading: ReadOptions, tell: Callable[[str], object]
    ) -> list[Alarm]:
        """Add the new rows of a log, and return the new alarms; call ``tell`` as `read_log` does.

        Raises:
            PredictionsError: If a value is invalid, or if rows that were read before have changed.
        """
        path = local_path(path, "path")
        rows = read_log(path, self.concern, self.settings, reading, tell)
        first = self._first_new_row(path, rows)
        if rows is None or first == len(rows.numbers):
            return []
        is_labelled = rows.target != NO_LABEL
        labelled = first + is_labelled[first:].nonzero()[:, 0]
        alarms = list[Alarm]()
        for part in torch.split(labelled, MAX_AT_ONCE):
            alarms += self._add_labelled(path, rows, part)
        alarms.sort(key=lambda alarm: alarm.row)
        self.alarms += alarms
        inverse = torch.where(is_labelled, 1 / rows.chance, 0.0)
        counted = torch.stack([torch.ones_like(inverse), is_labelled, inverse])
        column = rows.decisions % self.counts.shape[1]  # a referral, -1, is the last one
        self.counts.index_add_(1, column[first:], counted[:, first:])
        self.positions[str(path.resolve())] = rows.position(len(rows.numbers))
        if rows.estimated:
            self._add_estimates(rows, first)
        return alarms

    def _first_new_row(self, path: Path, rows: LogRows | None) -> int:
        """Return the index of the first row of a log that was not read before; refuse a log whose earlier rows changed.

        ``rows`` are all rows of the log; None if it has none.
        """
        known = self.positions.get(str(path.resolve()))
        if known is None:
            return 0
        first = 0
        if rows is not None:
            first = int((rows.numbers <= known.row).sum())
        if rows is None or first == 0 or rows.position(first) != known:
            raise PredictionsError(path, Rule("unchanged_log", number=known.row))
        return first

    def _add_estimates(self, rows: LogRows, first: int) -> None:
        """Add the estimates of the rows from the index ``first`` on, and compare them with labels."""
        of_best = torch.stack([*rows.estimated])[:, first:]
        decisions, target = rows.decisions[first:], rows.target[first:]
        estimated, measured = estimated_and_measured(
            self.concern, decisions, target, of_best
        )
        weight = self.monitors[RISK].weight_of_labels(rows.chance[first:])
        # Rows without a label or without an estimate have the weight 0.
        weight = torch.where((measured - estimated).isfinite(), weight, 0.0)
        of_rows = (
            estimated.isfinite().double(),
            estimated.double(),
            (weight > 0).double(),
            weight.double(),
            (weight * measured).double(),
            (weight * estimated).double(),
        )
        self.sums += torch.stack(of_rows, dim=1).nansum(dim=2)

    def estimates(self) -> list[RuleEstimate]:
        """Return the estimates of all rows, and the difference of labels from them; empty if no log has estimates.

        With the confidence of the settings, each interval is right at all times, however often one looks.
        """
        sure = self.settings.confidence
        estimates = list[RuleEstimate]()
        highest = (1.0, float(self.concern.costs().max()))
        for name, scale, sums in zip((DANGEROUS, COST), highest, self.sums, strict=True):
            counted, estimated, labelled, weight, measured, compared = sums.unbind()
            rows = int(counted)
            if rows == 0:
                continue
            mean = (estimated / rows).item()
            estimate = RuleEstimate(name, mean, rows, without=self.rows - rows)
            if name == COST and self.settings.has_row_costs:
                estimate = estimate._replace(name=COST_OF_ROWS)
            elif labelled > 0:
                interval = anytime_interval(measured / scale, weight, confidence=sure)
                # The interval is that of the measured mean; minus the estimate, it is that of the difference.
                mean_estimate = compared / weight
                estimate = estimate._replace(
                    labelled=int(labelled),
                    difference=((measured - compared) / weight).item(),
                    low=(scale * interval.low - mean_estimate).item(),
                    high=(scale * interval.high - mean_estimate).item(),
                    sure=f"{100 * sure:g} %, at any time",
                )
            estimates.append(estimate)
        return estimates

    def _add_labelled(self, path: Path, rows: LogRows, part: Tensor) -> list[Alarm]:
        """Add the rows with the indices ``part``, all labelled, to the monitors, and return the new alarms."""
        alarms = list[Alarm]()
        groups = {column: codes[part] for column, codes in rows.groups.items()}
        values, _ = self.monitors[RISK].batch_values(
            rows.decisions[part], rows.target[part], rows.chance[part], groups
        )
        for kind, monitor in self.monitors.items():
            raised_by = monitor.add_values(values).tolist()
            for name, first in zip(monitor.names, raised_by, strict=True):
                if first >= 0:
                    row = int(part[first])
                    number = int(rows.numbers[row])
                    time = to_text(rows.times[row]) if len(rows.times) else ""
                    alarms.append(Alarm(kind, name, str(path), number, time))
        return alarms

    def acknowledge(self, *names: str) -> list[Alarm]:
        """Clear the alarms of all means, or of ``names``, by `Monitor.acknowledge`; return the cleared alarms."""
        for monitor in self.monitors.values():
            monitor.acknowledge(*names)
        cleared = [alarm for alarm in self.alarms if not names or alarm.name in names]
        self.alarms = [alarm for alarm in self.alarms if alarm not in cleared]
        self.acknowledged += cleared
        return cleared

    def cautions(self) -> list[str]:
        """Return warnings: of decisions with too few or too many labels for a random choice, and of untested limits."""
        return [*self._cautions_of_choice(), *self._cautions_of_tests()]

    def _cautions_of_choice(self) -> list[str]:
        """Return a warning for each decision whose labels stand for too few or too many rows to be a random choice."""
        sentences = list[str]()
        # A label of a row that was chosen with the chance a stands for 1 / a rows, on average for all rows.
        largest = 1 / self.settings.least_chance
        share_due = 1.0
        if self.settings.least_chance == 1:
            # Without chances, each label stands for one row, and labels are due for all decisions alike.
            share_due = self.labelled / max(1, self.rows)
        names = [*(f"decided {name}" for name in self.decisions), "referred"]
        numbers, _, labels_stand_for = self.counts.tolist()
        of_decisions = zip(names, numbers, labels_stand_for, strict=True)
        for name, number, stand_for in of_decisions:
            due = number * share_due
            variance = due * (largest - share_due)  # the highest possible one
            if is_beyond_chance(stand_for - due, variance, largest):
                labels = f"labels stand for {stand_for:.0f} of {number:.0f} rows {name}, where {due:.0f} are due"
                sentences.append(
                    f"{labels}: rates of rows with a label are not those of all rows."
                )
        return sentences

    def _cautions_of_tests(self) -> list[str]:
        """Return a warning that names the rates without a labelled row; nothing if there are none."""
        risk = self.monitors[RISK]
        untested = [
            repr(name)
            for name, samples in zip(risk.names, risk.samples.tolist(), strict=True)
            if not samples
        ]
        if not self.rows or not untested:
            return []
        return [f"no label has tested {', '.join(untested)}."]

    def plain(self) -> dict[str, Any]:
        """Return the state as dictionaries, lists, texts and numbers."""
        monitors = dict[str, dict[str, Any]]()
        for kind, monitor in self.monitors.items():
            states = {name: getattr(monitor, name) for name in monitor.lowest_of_states}
            monitors[kind] = {name: state.tolist() for name, state in states.items()}
        return {
            "kind": KIND,
            "settings": asdict(self.settings),
            "logs": self.positions,
            "counts": self.counts.tolist(),
            "sums": self.sums.tolist(),
            "monitors": monitors,
            "alarms": [alarm._asdict() for alarm in self.alarms],
            "acknowledged": [alarm._asdict() for alarm in self.acknowledged],
        }

    def save(self, path: str | Path) -> None:
        """Write the state to a file, atomically."""
        replace_text(local_path(path, "path"), sealed_json(self.plain()))

    @classmethod
    def load(cls, path: str | Path, concern: ConcernSpec) -> "Watch":
        """Read the state that `save` wrote.

        Raises:
            ValueError: If the file is not the state of a watch.
        """
        path = local_path(path, "path")
        try:
            plain = unsealed_json(read_limited(path, MAX_STATE_BYTES))
            if plain["kind"] != KIND:
                raise InvalidValueError("kind_of_state", kind=plain["kind"])
            watch = cls(Settings(**plain["settings"]), concern)
            watch._restore(plain)
        except UNREADABLE as error:
            raise InvalidValueError(
                "state_of_watch", f"{path}:", cause=str(error)
            ) from None
        return watch

    def _restore(self, plain: Mapping[str, Any]) -> None:
        """Take all states from ``plain``; refuse the first that is invalid."""
        restore("counts", plain["counts"], self.counts, lowest=0.0)
        # Expected costs may be gains.
        restore("sums", plain["sums"], self.sums, lowest=-inf)
        for kind, monitor in self.monitors.items():
            saved = plain["monitors"][kind]
            for name, lowest in monitor.lowest_of_states.items():
                state = getattr(monitor, name)
                restore(f"{kind} {name}", saved[name], state, lowest=lowest)
        for log, (row, sha256) in plain["logs"].items():
            if not _is_row_number(row) or not isinstance(sha256, str):
                raise InvalidValueError("place_in_log", log=log)
            self.positions[log] = Position(row, sha256)
        self.alarms = [Alarm(**alarm) for alarm in plain["alarms"]]
        self.acknowledged = [Alarm(**alarm) for alarm in plain["acknowledged"]]
        for alarm in (*self.alarms, *self.acknowledged):
            is_known = (
                alarm.kind in self.monitors
                and alarm.name in self.monitors[alarm.kind].names
            )
            if not is_known or not _is_row_number(alarm.row):
                raise InvalidValueError("alarm_of_state", quoted(alarm))


def _is_row_number(value: object) -> bool:
    """Return whether ``value`` is a whole number from 1; True, which is also an int, is none."""
    return type(value) is int and value >= 1


def restore(name: str, value: Any, state: Tensor, *, lowest: float) -> None:
    """Copy ``value``, nested lists of numbers, to a tensor of sums or evidence; refuse an invalid one.

    ``lowest`` is the lowest possible number in the tensor.
    """
    try:
        saved = torch.tensor(value, dtype=torch.float64)
    except (TypeError, ValueError):
        raise InvalidValueError("lists_of_numbers", name, value) from None
    shapes = tuple(state.shape), tuple(saved.shape)
    require(shapes[0] == shapes[1], "shape", name, shapes[1], shape=shapes[0])
    is_valid = ((saved >= lowest) & (saved < inf)).all()
    require(is_valid, "finite_at_least", name, minimum=lowest)
    state.copy_(saved)


def watch_logs(
    state: str | Path,
    logs: Sequence[str | Path],
    begin: Callable[[], Watch],
    reading: ReadOptions,
    tell: Callable[[str], object],
    advance: Callable[[int], object],
) -> tuple[Watch, list[Alarm]]:
    """Read the new rows of logs in order, and save the state after each log; return the watch and its new alarms.

    ``begin`` must return the watch in the file ``state``, or a new one. During the call, no other process can use it.
    After the rows of a log are saved, ``advance`` is called with their number. ``tell`` is called as in `read_log`.

    Raises:
        FolderInUseError: If another process uses the file ``state``.
        PredictionsError: If a log has an invalid value; the rows of the logs before it are saved.
    """
    state = local_path(state, "state")
    logs = [local_path(log, "logs") for log in logs]
    with locked(state.with_name(f".{state.name}.lock")):
        watch = begin()
        raised = list[Alarm]()
        watch.save(state)
        for log in logs:
            before = watch.rows
            raised += watch.read(log, reading, tell)
            watch.save(state)
            advance(watch.rows - before)
    return watch, raised
