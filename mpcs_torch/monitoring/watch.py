"""Watch the decisions of a deployment by its logs, with a state that survives kills."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.evaluation.files.file_errors import PredictionsError
from mpcs_torch.functional.comparison.audit import is_beyond_chance
from mpcs_torch.functional.inputs.confidence import CONFIDENCE
from mpcs_torch.io.atomic_files import holds, replace_text
from mpcs_torch.io.locks import locked
from mpcs_torch.learning.rule_limit import Limit
from mpcs_torch.learning.state_files import StateError as StateError
from mpcs_torch.monitoring.logs import UNLABELLED, LogReader, LogRows, Place
from mpcs_torch.monitoring.monitor import DriftMonitor, Monitor, Values
from mpcs_torch.monitoring.risk_monitor import ChangeMonitor, RiskMonitor

KIND = "mpcs_torch monitor 5"
ROWS_OF_HINTS, MAX_AT_ONCE = 50, 5000
"""The number of rows after which hints look, and of rows whose evidence is in memory at once."""
RISK, CHANGE, HINT = "risk", "change", "hint"


@dataclass(frozen=True)
class Settings:
    """The settings of a watch, which stay the same for the life of its state."""

    rule: str
    """SHA-256 of the file of the rule."""
    limits: Sequence[str]
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    confidence: float = CONFIDENCE
    run_length: float | None = None
    """Of a `ChangeMonitor`; None for none."""
    least_chance: float = 1.0
    cluster_size: float = 1.0
    """The most rows that err together."""
    label_age: int = 0
    """So many of the newest rows wait for their labels."""
    like_reference: bool = False
    """Whether the limits are the rates of the reference."""


class Alarm(NamedTuple):
    """The first alarm of a mean."""

    kind: str
    """One of `RISK`, `CHANGE` and `HINT`."""
    name: str
    log: str
    row: int
    """From 1."""
    time: str


class Watch:
    """Monitors of a deployment, and what they have read.

    Args:
        settings: The limits and options.
        concern: The classes and costs.
        reference: The rows of a reference, in pieces: for hints, and for limits that are its rates.
    """

    def __init__(self, settings: Settings, concern: ConcernSpec, reference: Sequence[LogRows] = ()) -> None:
        self.settings, self._concern = settings, concern
        self.places = dict[str, Place]()
        self.rows = self.labelled = 0
        self.alarms = list[Alarm]()
        self._references = dict[str, Monitor]()
        if reference:
            self._references = self._monitors()
            for rows in reference:
                for kind, values in self._values(rows, self._references).items():
                    self._references[kind].add_values(values)
            self._references.pop(CHANGE, None)
        self.monitors = self._monitors(self._references)
        self.stand_for = torch.zeros(len(self.monitors[HINT].names) - 1, dtype=torch.float64)
        """The number of rows of each decision that its labels stand for, by their chance."""

    def _monitors(self, references: Mapping[str, Monitor] | None = None) -> dict[str, Monitor]:
        settings, known = self.settings, references or {}
        limits = [Limit.parse(text) for text in settings.limits]
        common: dict[str, Any] = {"confidence": settings.confidence, "groups": settings.groups}
        common["reference"] = known.get(RISK) if settings.like_reference else None
        common |= {"least_chance": settings.least_chance, "cluster_size": settings.cluster_size}
        monitors: dict[str, Monitor] = {RISK: RiskMonitor(self._concern, limits, **common)}
        if settings.run_length is not None:
            monitors[CHANGE] = ChangeMonitor(self._concern, limits, run_length=settings.run_length, **common)
        hints: Any = known.get(HINT)
        monitors[HINT] = DriftMonitor(self._concern, confidence=settings.confidence, reference=hints)
        return monitors

    def _values(self, rows: LogRows, monitors: Mapping[str, Monitor]) -> dict[str, list[Values]]:
        """Return what rows add to each monitor; those of risk take the rows with a label."""
        labelled = rows.at(rows.target != UNLABELLED)
        values = dict[str, list[Values]]()
        for kind, monitor in monitors.items():
            if isinstance(monitor, DriftMonitor):
                values[kind], find_faults = monitor.values_of(rows.decisions, rows.risk)
            else:
                assert isinstance(monitor, RiskMonitor)
                values[kind], find_faults = monitor.values_of(
                    labelled.decisions, labelled.target, labelled.chance, labelled.groups
                )
            monitor.admit(find_faults)
        return values

    def add(self, path: Path, rows: LogRows, place: Place) -> list[Alarm]:
        """Add rows of a log, which end at a place; return new alarms.

        Raises:
            PredictionsError: If a value breaks a rule.
        """
        before, least, is_labelled = len(self.alarms), self.settings.least_chance, rows.target != UNLABELLED
        if rows.chance is None and least < 1:
            raise PredictionsError(path, "must have a column 'chance', because --least-chance is below 1")
        if rows.chance is not None:
            is_bad = is_labelled & ~((rows.chance >= least) & (rows.chance <= 1))
            if is_bad.any():
                row = int(is_bad.int().argmax())
                rule = (
                    f"must be from {least:g} (--least-chance) to 1 where there is a label, but is {rows.chance[row]:g}"
                )
                raise PredictionsError(path, rule, row=int(rows.numbers[row]), column="chance")
        for start in range(0, len(rows.numbers), MAX_AT_ONCE):
            self._count(path, rows.at(slice(start, start + MAX_AT_ONCE)))
        self.alarms[before:] = sorted(self.alarms[before:], key=lambda alarm: alarm.row)
        self.places[str(path.resolve())] = place
        return self.alarms[before:]

    def _count(self, path: Path, rows: LogRows) -> None:
        """Count rows in all monitors, and note alarms."""
        numbers, is_labelled = rows.numbers, rows.target != UNLABELLED
        try:
            values = self._values(rows, self.monitors)
        except ValueError as error:
            raise PredictionsError(path, f"rows {numbers[0]} to {numbers[-1]}: {error}") from None
        for kind, added in values.items():
            monitor = self.monitors[kind]
            if kind == HINT:
                places = torch.arange(len(numbers))
                looks = ((int(monitor.samples[0]) + 1 + places) % ROWS_OF_HINTS == 0).nonzero()[:, 0]
            else:  # evidence falls with every sample without a loss
                places = is_labelled.nonzero()[:, 0]
                looks = torch.stack([value.loss > 0 for value in added]).any(dim=0).nonzero()[:, 0]
            self._raise(kind, monitor.follow(added, looks), places[looks], path, rows)
        counts = torch.where(is_labelled, 1.0 if rows.chance is None else 1 / rows.chance, 0.0).double()
        self.stand_for.index_add_(0, rows.decisions % len(self.stand_for), counts)  # -1, a referral, is the last
        self.rows, self.labelled = self.rows + len(numbers), self.labelled + int(is_labelled.sum())

    def _raise(self, kind: str, evidence: Tensor, places: Tensor, path: Path, rows: LogRows) -> None:
        """Note the first alarm of each mean, from the evidence (N, K) after each row."""
        monitor = self.monitors[kind]
        if not len(evidence) or evidence.mean(dim=1).max() < monitor.threshold:
            return
        is_alarm = monitor.is_alarm(evidence)
        raised = {(alarm.kind, alarm.name) for alarm in self.alarms}
        for column, name in enumerate(monitor.names):
            if is_alarm[:, column].any() and (kind, name) not in raised:
                row = int(places[int(is_alarm[:, column].int().argmax())])
                self.alarms.append(Alarm(kind, name, str(path), int(rows.numbers[row]), rows.time(row)))

    def cautions(self) -> list[str]:
        """Return in sentences which decisions lack labels, or have too many, and which limits no label has tested."""
        hints, least, sentences = self.monitors[HINT], self.settings.least_chance, list[str]()
        share = self.labelled / max(1, self.rows) if least == 1 else 1.0
        for name, number, stand_for in zip(hints.names, hints.loss.tolist(), self.stand_for.tolist(), strict=False):
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
        return {
            "kind": KIND,
            "settings": asdict(self.settings),
            "references": _plain(self._references),
            "logs": {name: place._asdict() for name, place in self.places.items()},
            "rows": self.rows,
            "labelled": self.labelled,
            "stand_for": self.stand_for.tolist(),
            "monitors": _plain(self.monitors),
            "alarms": [alarm._asdict() for alarm in self.alarms],
        }

    def check_rule(self, rule: Path) -> None:
        """Refuse the file of another rule.

        Raises:
            StateError: If it is not that of the first run.
        """
        if not holds(rule, self.settings.rule):
            raise StateError(f"{rule}: is not the rule that the state was begun with: begin another state")

    def save(self, path: Path) -> None:
        """Write the state to a file, in one step."""
        replace_text(path, json.dumps(self.plain()) + "\n")

    @classmethod
    def load(cls, path: Path, concern: ConcernSpec) -> "Watch":
        """Read the state that `save` wrote.

        Raises:
            StateError: If the file holds something else.
        """
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
            if plain["kind"] != KIND:
                raise ValueError(plain["kind"])
            watch = cls(Settings(**plain["settings"]), concern)
            watch._references = {kind: watch.monitors[kind] for kind in plain["references"]}
            _restore(watch._references, plain["references"])
            watch.monitors = watch._monitors(watch._references)
            _restore(watch.monitors, plain["monitors"])
            watch.places = {name: Place(**place) for name, place in plain["logs"].items()}
            watch.rows, watch.labelled = int(plain["rows"]), int(plain["labelled"])
            watch.stand_for = torch.tensor(plain["stand_for"], dtype=torch.float64).view_as(watch.stand_for)
            watch.alarms = [Alarm(**alarm) for alarm in plain["alarms"]]
        except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
            raise StateError(f"{path}: must be a state of `mpcs monitor` of this rule, but is not ({error})") from None
        return watch


def watch_logs(
    state: Path, logs: Sequence[Path], begin: Callable[[], tuple[Watch, LogReader]], advance: Callable[[int], object]
) -> tuple[Watch, list[Alarm]]:
    """Read the new rows of logs in order, and save the state after each piece; return the watch and its new alarms.

    The watch, or the one in the state, and its reader are made when no other process uses the state. ``advance`` gets
    the number of rows of each piece, after they are saved.

    Raises:
        FolderInUseError: If another process uses the state.
        PredictionsError: If a value breaks a rule; what was saved before stays.
    """
    with locked(state.with_name(f".{state.name}.lock")):
        watch, reader = begin()
        raised = list[Alarm]()
        watch.save(state)
        numbers, waiting = dict[Path, int](), watch.settings.label_age
        for log in reversed(logs if waiting else ()):
            number = reader.count(log)
            numbers[log], waiting = max(0, number - waiting), max(0, waiting - number)
        for log in logs:
            for rows, place in reader.pieces(log, watch.places.get(str(log.resolve()), Place()), numbers.get(log)):
                raised += watch.add(log, rows, place)
                watch.save(state)
                advance(len(rows.decisions))
    return watch, raised


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


STATES = ("loss", "samples", "starts", "block")


def _plain(monitors: Mapping[str, Monitor]) -> dict[str, Any]:
    return {
        kind: {name: getattr(monitor, name).tolist() for name in STATES if hasattr(monitor, name)}
        for kind, monitor in monitors.items()
    }


def _restore(monitors: Mapping[str, Monitor], plain: Mapping[str, Any]) -> None:
    for kind, monitor in monitors.items():
        for name, value in plain[kind].items():
            state = torch.tensor(value, dtype=torch.float64)
            if state.shape != getattr(monitor, name).shape:
                raise ValueError(f"{name} has another shape")
            setattr(monitor, name, state)
        monitor.batch_count = torch.ones_like(monitor.batch_count)
