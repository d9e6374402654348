"""The report of `mpcs monitor`, and its metrics for Prometheus."""

from collections.abc import Iterator
from math import isfinite, isnan
from pathlib import Path

import torch

from mpcs_torch.errors import printable
from mpcs_torch.functional import detectable_rate
from mpcs_torch.io.atomic_files import replace_text
from mpcs_torch.monitoring.monitor import evidence_beyond
from mpcs_torch.monitoring.watch import CHANGE, HINT, RISK, Alarm, Watch
from mpcs_torch.plots.monitoring import Point, Watched, watched_means, watched_over_time
from mpcs_torch.report.render import Drawing, draw, render
from mpcs_torch.tables import Table

MOST_DRAWN = 12
"""Rates that are drawn over time: those with the most evidence."""
SURE = 0.9
"""The chance that a rate that could be seen is meant with."""
TERMS = {
    "at any time": "the interval that holds the true rate at all times, however often one looks",
    "seen above": "a true rate above it would have raised an alarm by now, with a chance of 9 in 10",
    "evidence of an excess": "what a bet that the limit is exceeded has won so far; it is no p-value",
    "samples": "the labelled rows that count for the rate",
    "mean": "the rate so far",
}
"""By header of the tables: what it means."""
EVIDENCE = "evidence of an excess"
HEADERS = {RISK: "rate of", CHANGE: "change of", HINT: "share of"}


def means_of(watch: Watch, kind: str) -> list[Watched]:
    """Return what a monitor knows now, with alarms as they were raised."""
    raised = {alarm.name for alarm in watch.alarms if alarm.kind == kind}
    monitor = watch.monitors[kind]
    return monitor.to_draw(monitor.loss, monitor.samples, [name in raised for name in monitor.names])


def monitor_table(watch: Watch, kind: str) -> Table:
    """Return a row for each mean: with samples, interval, limit, evidence and alarm."""
    rows = []
    monitor = watch.monitors[kind]
    evidence, seen = monitor.evidence_now().tolist(), seen_above(watch) if kind == RISK else []
    for mean, samples, against in zip(means_of(watch, kind), monitor.samples.tolist(), evidence, strict=True):
        limits = [f"{limit:.3g}" for limit in (mean.lowest, mean.highest) if 0 < limit < float("inf")]
        cells = [mean.name, f"{samples:.6g}", "" if isnan(mean.rate) else f"{mean.rate:.3g}"]
        cells += [f"{mean.low:.3g} to {mean.high:.3g}", " to ".join(limits), evidence_text(against) if limits else ""]
        rows.append([*cells, "yes" if mean.is_alarm else "no"])
    header = [HEADERS[kind], "samples", "mean", "at any time", "limit", EVIDENCE, "alarm"]
    if seen:
        header.insert(5, "seen above")
        for row, rate in zip(rows, seen, strict=True):
            row.insert(5, "nothing yet" if isnan(rate) else f"{rate:.3g}")
    return Table(header, rows)


def evidence_text(evidence: float) -> str:
    """Return the evidence that a limit is exceeded as a bet: a small number would be read as a p-value."""
    return f"{evidence:.3g} for 1" if evidence > 1 else "none"


def seen_above(watch: Watch) -> list[float]:
    """Return for each limit the rate above which an alarm was to be expected by now; NaN if there is none."""
    monitor = watch.monitors[RISK]
    level = 1 / (monitor.threshold * len(monitor.names))
    seen = []
    for samples, limit, scale in zip(monitor.samples.tolist(), monitor.limits[1].tolist(), monitor.scales, strict=True):
        is_limited = 0 < limit < 1
        rate = detectable_rate(int(samples), limit=limit, level=level, chance=SURE) if is_limited else float("nan")
        seen.append(rate * float(scale))
    return seen


def terms_of(watch: Watch) -> str:
    """Explain what the tables say and what it rests on, in sentences."""
    threshold, rates = watch.monitors[RISK].threshold, len(watch.monitors[RISK].names)
    error, size = 1 - watch.settings.confidence, watch.settings.cluster_size
    unit = "each row is taken as independent" if size == 1 else f"at most {size:g} rows are taken to err together"
    return (
        f"Seen above: a true rate above it would have raised an alarm by now, with a chance of {SURE:.0%}; lower ones "
        "may be there unseen. Evidence is what a bet that the limit is exceeded has won: none while the limit is kept, "
        f"and {threshold * rates:g} for 1 raises an alarm for one rate alone; it is no p-value. "
        f"If all limits are kept, that ever happens with a probability "
        f"of at most {error:.3g} for this state. Labels are taken to be chosen without regard to the error, in the "
        f"order of rows; {unit}."
    )


def alarm_sentence(alarm: Alarm) -> str:
    """Say which mean is beyond its limit, and from which row on this is known."""
    time = f" ({alarm.time})" if alarm.time else ""
    where = f"known from row {alarm.row} of {alarm.log}{time} on"
    if alarm.kind == HINT:
        return printable(f"Hint: '{alarm.name}' is not as in the reference, {where}. This is no evidence of errors.")
    change = "a change: " if alarm.kind == CHANGE else ""
    return printable(f"Alarm: {change}'{alarm.name}' is above its limit, {where}.")


def verdict_of(watch: Watch) -> str:
    """Return cautions, and the first alarm; or that there is none, and which rates it could have been raised by."""
    return printable(" ".join([*(f"CAUTION: {text}" for text in watch.cautions()), _verdict_of(watch)]))


def _verdict_of(watch: Watch) -> str:
    alarms = [alarm for alarm in watch.alarms if alarm.kind != HINT]
    if alarms:
        more = f" And {len(alarms) - 1} more." if len(alarms) > 1 else ""
        return alarm_sentence(alarms[0]) + more
    if not watch.labelled:
        return f"None of {watch.rows} rows has a label yet, so no limit was tested."
    place = _least_known(watch)
    mean, seen = means_of(watch, RISK)[place], seen_above(watch)[place]
    quiet = f"No alarm in {watch.rows} rows, {watch.labelled} of them with a label."
    samples = f"{watch.monitors[RISK].samples[place].item():.6g} samples"
    if watch.cautions():
        return f"{quiet} With such labels, that shows nothing."
    sure, limit = f"with {watch.settings.confidence:.4g}", f"its limit is {mean.highest:.3g}"
    if mean.high <= mean.highest:
        return (
            f"{quiet} Limits are kept, {sure} each: '{mean.name}' is at most {mean.high:.3g} by {samples}, and {limit}."
        )
    could = "no rate could have been seen" if isnan(seen) else f"a rate above {seen:.3g} would have been seen"
    may = f"'{mean.name}' may be as high as {mean.high:.3g} by {samples} ({sure}), and {limit}"
    return f"{quiet} That does not show that limits are kept: {may}. By now, {could} (chance {SURE:.0%})."


def write_monitor_report(watch: Watch, path: Path, *, command: str = "") -> None:
    """Write the verdict, figures of means and evidence over time, and all tables."""
    risk = means_of(watch, RISK)
    hints = means_of(watch, HINT)
    has_reference = any(isfinite(mean.highest) for mean in hints)
    first = next((alarm for alarm in watch.alarms if alarm.kind != HINT), None)  # the verdict
    drawings = [_draw_means(risk, "Rates against their limits"), *_over_time(watch)]
    page = render(
        "monitor",
        name=", ".join(sorted({Path(log).name for log in watch.places})) or "no log",
        verdict=verdict_of(watch),
        told=[alarm_sentence(alarm) for alarm in watch.alarms if alarm != first],
        terms=terms_of(watch),
        facts={"labelled": f"{watch.labelled} of {watch.rows} rows"} | _power(watch),
        confidence=f"{watch.settings.confidence:g}",
        meanings=TERMS,
        drawings=drawings,
        tables=[(_about(watch, kind), monitor_table(watch, kind)) for kind in watch.monitors],
        hints=[_draw_means(hints, "Hints without labels")] if has_reference else [],
        commands=[command] if command else [],
    )
    replace_text(path, page)


def _power(watch: Watch) -> dict[str, str]:
    """Return which rates of the limit that is known least would have been seen by now, for a tile."""
    if watch.cautions() or not watch.labelled:
        return {"rates that would have been seen": "none can be named"}
    least = _least_known(watch)
    seen, mean = seen_above(watch)[least], means_of(watch, RISK)[least]
    told = "none yet" if isnan(seen) else f"above {seen:.3g} (limit {mean.highest:.3g})"
    return {f"rates of '{mean.name}' that would have been seen": printable(told)}


def _least_known(watch: Watch) -> int:
    """Return the place of the rate that may exceed its limit most."""
    means = means_of(watch, RISK)
    return max(range(len(means)), key=lambda place: means[place].high / means[place].highest)


def _about(watch: Watch, kind: str) -> str:
    if kind == RISK:
        return "Rates of labelled rows"
    if kind == CHANGE:
        return f"The same, started again and again: a false alarm in {watch.settings.run_length:g} labels on average"
    return "Shares of all rows"


def _draw_means(means: list[Watched], title: str) -> Drawing:
    beyond = [mean.name for mean in means if mean.is_alarm]
    alt = f"{title}: {f'alarm for {beyond}' if beyond else 'no alarm'}."
    return draw(watched_means(means, title), printable(alt))


def _over_time(watch: Watch) -> Iterator[Drawing]:
    """Draw the rates with the most evidence over the rows, those with an alarm first."""
    monitor = watch.monitors[RISK]
    now = means_of(watch, RISK)
    evidence = monitor.evidence_now().tolist()
    strongest = sorted(range(len(now)), key=lambda place: (not now[place].is_alarm, -evidence[place]))
    sums = [
        (point["rows"], *(torch.tensor(point[name]).double() for name in ("loss", "samples")))
        for point in watch.history
    ]
    sums.append((watch.rows, monitor.loss, monitor.samples))
    quiet = [False] * len(now)
    over_time = [
        (rows, monitor.to_draw(loss, samples, quiet), evidence_beyond(loss, samples, monitor.limits, sides=1).tolist())
        for rows, loss, samples in sums
    ]
    times = [time for point in (watch.history[:1] + watch.history[-1:]) if (time := point["time"])]
    for place in strongest[:MOST_DRAWN]:
        points = [Point(rows, means[place], against[place]) for rows, means, against in over_time]
        drawn = [point for point in points if not isnan(point.mean.rate)]
        if drawn:
            title = now[place].name
            figure = watched_over_time(drawn, threshold=monitor.threshold, times=times, title=title)
            bet = evidence_text(drawn[-1].evidence)
            alt = f"{title} over {watch.rows} rows: now {drawn[-1].mean.rate:.3g}, {EVIDENCE}: {bet}."
            yield draw(figure, printable(alt))


def write_prometheus(watch: Watch, path: Path) -> None:
    """Write all means, limits, evidence and alarms in the text format of Prometheus."""
    lines = [
        "# TYPE mpcs_monitor_rows_total counter",
        f"mpcs_monitor_rows_total {watch.rows}",
        "# TYPE mpcs_monitor_labelled_rows_total counter",
        f"mpcs_monitor_labelled_rows_total {watch.labelled}",
    ]
    values: dict[str, list[str]] = {}
    for kind, monitor in watch.monitors.items():
        for mean, evidence in zip(means_of(watch, kind), monitor.evidence_now().tolist(), strict=True):
            name = mean.name.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
            label = f'{{kind="{kind}",name="{name}"}}'
            of_mean = {"mean": mean.rate, "low": mean.low, "high": mean.high, "limit": mean.highest}
            for measure, value in {**of_mean, "evidence": evidence, "alarm": float(mean.is_alarm)}.items():
                shown = {"nan": "NaN", "inf": "+Inf"}.get(str(value), repr(value))
                values.setdefault(measure, []).append(f"mpcs_monitor_{measure}{label} {shown}")
    for measure, samples in values.items():
        lines += [f"# TYPE mpcs_monitor_{measure} gauge", *samples]
    replace_text(path, "\n".join(lines) + "\n")
