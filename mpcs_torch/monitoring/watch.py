"""Watch the decisions of a deployment through its logs, with a state in a file that survives crashes."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.evaluation.files.file_errors import PredictionsError
from mpcs_torch.functional.comparison.audit import is_beyond_chance
from mpcs_torch.functional.inputs.confidence import CONFIDENCE
from mpcs_torch.io.atomic_files import holds, replace_text
from mpcs_torch.io.locks import locked
from mpcs_torch.learning.rule_limit import Limit
from mpcs_torch.learning.state_files import StateError as StateError
from mpcs_torch.monitoring.logs import UNLABELLED, LogReader, LogRows, Position
from mpcs_torch.monitoring.risk_monitor import ChangeMonitor, RiskMonitor

KIND = "mpcs_torch monitor 6"
MAX_AT_ONCE = 5000
"""The maximum number of rows whose evidence is in memory at once."""
RISK, CHANGE = "risk", "change"
STATES = ("loss", "samples", "starts", "block")
"""The states of monitors; a `RiskMonitor` has the first two."""


@dataclass(frozen=True)
class Settings:
    """The settings of a watch, which stay the same for the life of its state."""

    rule: str
    """The SHA-256 of the file of the decision rule."""
    limits: Sequence[str]
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    confidence: float = CONFIDENCE
    run_length: float | None = None
    """The run length of the `ChangeMonitor`; None if there is no such monitor."""
    least_chance: float = 1.0
    cluster_size: float = 1.0
    """The largest number of rows that err together."""


class Alarm(NamedTuple):
    """The first alarm of a mean."""

    kind: str
    """`RISK` or `CHANGE`."""
    name: str
    log: str
    row: int
    """The number of the row, from 1."""
    time: str


class Watch:
    """The monitors of a deployment, and the positions up to which its logs were read.

    Args:
        settings: The limits and options.
        concern: The classes and costs.
    """

    def __init__(self, settings: Settings, concern: ConcernSpec) -> None:
        self.settings = settings
        limits = [Limit.parse(text) for text in settings.limits]
        common: dict[str, Any] = {
            name: getattr(settings, name) for name in ("groups", "confidence", "least_chance", "cluster_size")
        }
        self.monitors = {RISK: RiskMonitor(concern, limits, **common)}
        if settings.run_length is not None:
            self.monitors[CHANGE] = ChangeMonitor(concern, limits, run_length=settings.run_length, **common)
        self.places = dict[str, Position]()
        self.rows = self.labelled = 0
        self.alarms = list[Alarm]()
        self.decisions = [*concern.classes, *(name for name, _ in concern.answers)]
        """The names of decisions other than a referral."""
        self.made, self.stand_for = torch.zeros(2, len(self.decisions) + 1, dtype=torch.float64)
        """(D + 1,) each, referrals last: the rows of each decision, and the sum of 1 / chance of its labels."""

    def add(self, path: Path, rows: LogRows, position: Position) -> list[Alarm]:
        """Add ``rows`` of a log, which end at ``position``; return the new alarms.

        Raises:
            PredictionsError: If a chance breaks its rule.
        """
        before, least, is_labelled = len(self.alarms), self.settings.least_chance, rows.target != UNLABELLED
        if rows.chance is None and least < 1:
            raise PredictionsError(path, "must have a column 'chance', because --least-chance is below 1")
        chance = torch.ones(len(rows.numbers)).double() if rows.chance is None else rows.chance
        is_bad = is_labelled & ~((chance >= least) & (chance <= 1))
        if is_bad.any():
            row = int(is_bad.int().argmax())
            rule = f"must be from {least:g} (--least-chance) to 1 where there is a label, but is {chance[row]:g}"
            raise PredictionsError(path, rule, row=int(rows.numbers[row]), column="chance")
        for start in range(0, len(rows.numbers), MAX_AT_ONCE):
            self._add_labelled(path, rows.at(slice(start, start + MAX_AT_ONCE)))
        self.alarms[before:] = sorted(self.alarms[before:], key=lambda alarm: alarm.row)
        decisions = rows.decisions % len(self.made)  # -1, a referral, is the last
        self.made.index_add_(0, decisions, torch.ones_like(chance))
        self.stand_for.index_add_(0, decisions, torch.where(is_labelled, 1 / chance, 0.0))
        self.rows, self.labelled = self.rows + len(chance), self.labelled + int(is_labelled.sum())
        self.places[str(path.resolve())] = position
        return self.alarms[before:]

    def _add_labelled(self, path: Path, rows: LogRows) -> None:
        """Add the rows with a label to all monitors, and record the first alarm of each mean."""
        places = (rows.target != UNLABELLED).nonzero()[:, 0]
        labelled = rows.at(places)
        values, _ = self.monitors[RISK].values_of(labelled.decisions, labelled.target, labelled.chance, labelled.groups)
        looks = (
            torch.stack([value.loss > 0 for value in values]).any(dim=0).nonzero()[:, 0]
        )  # evidence rises only at losses
        raised = {(alarm.kind, alarm.name) for alarm in self.alarms}
        for kind, monitor in self.monitors.items():
            is_alarm = monitor.is_alarm(monitor.follow(values, looks))
            for column, name in enumerate(monitor.names):
                if is_alarm[:, column].any() and (kind, name) not in raised:
                    row = int(places[looks[is_alarm[:, column].int().argmax()]])
                    self.alarms.append(Alarm(kind, name, str(path), int(rows.numbers[row]), rows.time(row)))

    def cautions(self) -> list[str]:
        """Return sentences about decisions with too few or too many labels, and about limits that no label tested."""
        least, sentences = self.settings.least_chance, list[str]()
        share = self.labelled / max(1, self.rows) if least == 1 else 1.0
        names = [*(f"decided {name}" for name in self.decisions), "referred"]
        for name, number, stand_for in zip(names, self.made.tolist(), self.stand_for.tolist(), strict=True):
            due = number * share
            if is_beyond_chance(stand_for - due, due * (1 / least - share), 1 / least):
                those = f"labels stand for {stand_for:.0f} of {number:.0f} rows {name}, where {due:.0f} are due"
                sentences.append(f"{those}: rates of rows with a label are not those of all rows.")
        risk = self.monitors[RISK]
        bare = [name for name, samples in zip(risk.names, risk.samples.tolist(), strict=True) if not samples]
        if self.rows and bare:
            sentences.append(f"no label has tested {', '.join(map(repr, bare))}.")
        return sentences

    def plain(self) -> dict[str, Any]:
        """Return the state as dictionaries, lists, texts and numbers."""
        monitors = {
            kind: {name: getattr(monitor, name).tolist() for name in STATES if hasattr(monitor, name)}
            for kind, monitor in self.monitors.items()
        }
        return {
            "kind": KIND,
            "settings": asdict(self.settings),
            "logs": {name: position._asdict() for name, position in self.places.items()},
            "rows": self.rows,
            "labelled": self.labelled,
            "made": self.made.tolist(),
            "stand_for": self.stand_for.tolist(),
            "monitors": monitors,
            "alarms": [alarm._asdict() for alarm in self.alarms],
        }

    def check_rule(self, rule: Path) -> None:
        """Check that ``rule`` is the file of the rule with which the state was begun.

        Raises:
            StateError: If it is another rule.
        """
        if not holds(rule, self.settings.rule):
            raise StateError(f"{rule}: is not the rule that the state was begun with: begin another state")

    def save(self, path: Path) -> None:
        """Write the state to a file, atomically."""
        replace_text(path, json.dumps(self.plain()) + "\n")

    @classmethod
    def load(cls, path: Path, concern: ConcernSpec) -> "Watch":
        """Read the state that `save` wrote.

        Raises:
            StateError: If the file is not such a state.
        """
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
            if plain["kind"] != KIND:
                raise ValueError(plain["kind"])
            watch = cls(Settings(**plain["settings"]), concern)
            tensors: list[tuple[Any, str, Any]] = [(watch, name, plain[name]) for name in ("made", "stand_for")]
            for kind, monitor in watch.monitors.items():
                tensors += [(monitor, name, value) for name, value in plain["monitors"][kind].items()]
            for holder, name, value in tensors:
                state = torch.tensor(value, dtype=torch.float64)
                if state.shape != getattr(holder, name).shape:
                    raise ValueError(f"{name} has another shape")
                setattr(holder, name, state)
            watch.places = {name: Position(**position) for name, position in plain["logs"].items()}
            watch.rows, watch.labelled = int(plain["rows"]), int(plain["labelled"])
            watch.alarms = [Alarm(**alarm) for alarm in plain["alarms"]]
        except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
            raise StateError(f"{path}: must be a state of `mpcs monitor` of this rule, but is not ({error})") from None
        return watch


def watch_logs(
    state: Path, logs: Sequence[Path], begin: Callable[[], tuple[Watch, LogReader]], advance: Callable[[int], object]
) -> tuple[Watch, list[Alarm]]:
    """Read the new rows of logs in order, and save the state after each log; return the watch and its new alarms.

    ``begin`` returns the watch, new or from the state, and its reader. It is called while no other process can use the
    state. ``advance`` is called with the number of new rows of each log, after they are saved.

    Raises:
        FolderInUseError: If another process uses the state.
        PredictionsError: If a value breaks a rule; the state that was saved before remains.
    """
    with locked(state.with_name(f".{state.name}.lock")):
        watch, reader = begin()
        raised = list[Alarm]()
        watch.save(state)
        for log in logs:
            new = reader.new_rows(log, watch.places.get(str(log.resolve()), Position()))
            if new is not None:
                raised += watch.add(log, *new)
                watch.save(state)
                advance(len(new[0].numbers))
    return watch, raised


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
