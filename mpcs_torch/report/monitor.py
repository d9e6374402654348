"""The report of the command `mpcs monitor`."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path

from mpcs_torch.errors import printable
from mpcs_torch.evaluation.outcomes import number_text
from mpcs_torch.learning.rule_estimate import RuleEstimate, estimate_lines
from mpcs_torch.monitoring.watch import CHANGE, RISK, Alarm, Watch
from mpcs_torch.plots.forest import MonitoredMean, watched_means
from mpcs_torch.report.render import draw, render
from mpcs_torch.tables import Table, in_percent

EVIDENCE = "evidence of an excess"
TERMS = {
    "at any time": "the interval that holds the true rate at all times, however often one looks",
    EVIDENCE: (
        "what a bet that the limit is exceeded has won so far, or since the last alarm that was acknowledged; it is no "
        "p-value"
    ),
    "samples": "the labelled rows of the rate; with chances, or rows that err together, each counts as a part of one",
    "mean": "the rate so far",
    "rate of": "errors as a share of the labelled rows that count, such as those of a class; a referral is no error",
}
"""The meaning of each header of the tables."""


def monitor_table(watch: Watch, kind: str) -> Table:
    """Return a table of the means in the monitor ``kind``: samples, interval, limit, evidence and alarm of each."""
    rows = list[dict[str, str]]()
    for mean in watch.monitors[kind].shown_means():
        cells = {
            "rate of" if kind == RISK else "change of": mean.name,
            "samples": number_text(mean.samples),
        }
        cells |= {"mean": "" if isnan(mean.rate) else rate_text(mean, mean.rate)}
        ends = rate_text(mean, mean.low).removesuffix(" %"), rate_text(mean, mean.high)
        cells |= {"at any time": " to ".join(ends), "limit": rate_text(mean, mean.highest)}
        # A bare number could be read as a p-value.
        odds = f"{mean.evidence:.3g} for 1" if mean.evidence > 1 else "none"
        rows.append({**cells, EVIDENCE: odds, "alarm": "yes" if mean.is_alarm else "no"})
    return Table.from_records(rows)


def rate_text(mean: MonitoredMean, value: float) -> str:
    """Return ``value`` as text: in percent if ``mean`` is a share, otherwise as a mean cost."""
    return in_percent(value) if mean.is_share else f"{value:.3g}"


def assumptions(watch: Watch) -> str:
    """Return sentences that explain the columns of the tables and the assumptions of the monitor."""
    risk = watch.monitors[RISK]
    rates = len(risk.names)
    error = 1 - watch.settings.confidence
    size = watch.settings.cluster_size
    unit = f"at most {size:g} rows are taken to err together"
    if size == 1:
        unit = (
            "each row is taken as independent (of those of a patient or a day, label one, with its chance, or give the "
            "cluster size)"
        )
    if watch.settings.least_chance < 1 and size == 1:
        unit = "each is weighted by its chance, and taken as independent (of those of a patient or a day, label one)"
    return (
        "Evidence is what a bet that the limit is exceeded has won: none while the limit is kept, "
        f"and {risk.threshold * rates:g} for 1 raises an alarm for one rate alone; it is no p-value. "
        f"If all limits are kept, the probability that this ever happens is at most {error:.3g} for this state, and "
        "again after each alarm that is acknowledged. Labels are assumed to be chosen without regard to the error, in "
        f"the order of rows; {unit}."
    )


def alarm_sentence(alarm: Alarm) -> str:
    """Return a sentence on which mean is above its limit, and from which row of a log this is known."""
    time = f" ({alarm.time})" if alarm.time else ""
    change = "a change: " if alarm.kind == CHANGE else ""
    where = f"known from row {alarm.row} of {alarm.log}{time} on"
    return printable(f"Alarm: {change}'{alarm.name}' is above its limit, {where}.")


def risk_verdict(watch: Watch) -> list[str]:
    """Return the cautions, then a sentence on the first alarm, or without alarms, on what is known of the rates."""
    sentences = [f"CAUTION: {text}" for text in watch.cautions()]
    sentences.append(_watch_verdict(watch))
    return [printable(text) for text in sentences]


def _watch_verdict(watch: Watch) -> str:
    if watch.alarms:
        first, *others = watch.alarms
        more = f" And {len(others)} more." if others else ""
        return f"{alarm_sentence(first)}{more}"
    if not watch.labelled:
        return f"None of {watch.rows} rows has a label yet, so no limit was tested."
    cleared = f" ({len(watch.acknowledged)} acknowledged)" if watch.acknowledged else ""
    quiet = f"alarm{cleared} in {watch.rows} rows, {watch.labelled} of them with a label"
    if watch.cautions():
        return f"That there is no {quiet}, shows nothing with such labels."
    # Over all rows, a rate with an acknowledged alarm may be above its limit: its new test says nothing about that.
    sentences, means = _tested_anew(watch)
    if not means:
        return " ".join([*sentences, f"There is no {quiet}."])
    # The least certain rate has the highest upper end of its interval, relative to its limit.
    mean = max(means, key=lambda mean: mean.high / mean.highest)
    is_partial = watch.settings.least_chance < 1 or watch.settings.cluster_size > 1
    number = f"{number_text(mean.samples)} {'effective ' if is_partial else ''}samples"
    known = f"by {number} (confidence {watch.settings.confidence:.4g})"
    rate = rate_text(mean, mean.rate)
    high = rate_text(mean, mean.high)
    highest = rate_text(mean, mean.highest)
    if mean.high <= mean.highest:
        kept = "The other limits are kept" if sentences else "Limits are kept"
        least = f"'{mean.name}', the least known rate, is at most {high} {known}, and its limit is"
        sentences.append(f"{kept}: {least} {highest}. No {quiet}.")
    else:
        sentences.append(
            f"It is not shown that '{mean.name}' keeps its limit, {highest}: it is {rate} so far, and may be as high "
            f"as {high}, {known}. There is no {quiet}."
        )
    return " ".join(sentences)


def _tested_anew(watch: Watch) -> tuple[list[str], list[MonitoredMean]]:
    """Return a sentence on each rate with an acknowledged alarm, and the means of the other rates."""
    monitor = watch.monitors[RISK]
    acknowledged = {alarm.name for alarm in watch.acknowledged if alarm.kind == RISK}
    samples_since = (monitor.samples - monitor.past[1]).tolist()
    sentences, others = list[str](), list[MonitoredMean]()
    for mean, since in zip(monitor.shown_means(), samples_since, strict=True):
        if mean.name not in acknowledged:
            others.append(mean)
            continue
        limit = rate_text(mean, mean.highest)
        ends = f"{rate_text(mean, mean.low)} to {rate_text(mean, mean.high)}"
        sentences.append(
            f"The alarm of '{mean.name}' was acknowledged: a new test of its limit, {limit}, has {number_text(since)} "
            f"samples so far. Over all rows, the rate is {rate_text(mean, mean.rate)}, from {ends}."
        )
    return sentences, others


def write_monitor_report(
    watch: Watch, path: Path, estimates: Sequence[RuleEstimate] = (), *, command: str = ""
) -> None:
    """Write an HTML page to ``path`` with the verdict, a figure of the rates, all tables, and the ``estimates``."""
    means, title = watch.monitors[RISK].shown_means(), "Rates against their limits"
    beyond = [mean.name for mean in means if mean.is_alarm]
    alarms = f"alarm for {beyond}" if beyond else "no alarm"
    logs = sorted({Path(log).name for log in watch.positions})
    render(
        "monitor",
        path,
        kind=f"Monitor of {', '.join(logs) or 'no log'}",
        conclusions=[
            *risk_verdict(watch),  # which has the first alarm
            *(alarm_sentence(alarm) for alarm in watch.alarms[1:]),
        ],
        watch=watch,
        chart=draw(watched_means(means, title), printable(f"{title}: {alarms}.")),
        assumptions=assumptions(watch),
        estimates=estimate_lines(estimates),
        tables={kind: monitor_table(watch, kind) for kind in watch.monitors},
        terms=TERMS,
        command=command,
    )
