"""``mpcs monitor``: watch the decisions of a deployment by its logs."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpcs_torch.cli import options
from mpcs_torch.cli.console import COMMAND_LINE, note, print_json, say, text_of
from mpcs_torch.cli.options import AsJson, Html, Logits, OverwriteReport, Quiet, TargetColumn

if TYPE_CHECKING:
    from mpcs_torch.monitoring.logs import LogReader, LogRows
    from mpcs_torch.monitoring.watch import Watch

ALARM = 1
"""Exit status where a limit is exceeded."""
OF_REFERENCE = "<= reference"
PLACEHOLDER = "<= 1e-9"
"""Stands for the limit until the reference is known."""


def monitor(
    rule: Annotated[Path, options.file_argument("RULE")],
    logs: Annotated[list[Path], options.file_argument("LOG...")],
    state: Annotated[Path, typer.Option(dir_okay=False)],
    limit: Annotated[list[str] | None, typer.Option(metavar="TEXT", show_default="the rule's")] = None,
    reference: Annotated[Path | None, options.file_option()] = None,
    groups: Annotated[list[str] | None, typer.Option(metavar="COLUMN=A,B", show_default="those in the logs")] = None,
    confidence: Annotated[float | None, typer.Option(show_default="0.95")] = None,
    run_length: float | None = None,
    least_chance: Annotated[float | None, typer.Option(show_default="1")] = None,
    late_labels: Annotated[bool, typer.Option("--late-labels")] = False,
    logits: Logits = False,
    target_column: TargetColumn = None,
    html: Html = None,
    prometheus: Annotated[Path | None, typer.Option(dir_okay=False)] = None,
    overwrite: OverwriteReport = False,
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Read what was added to logs, and raise an alarm if a limit is exceeded, however often one looks.

    A row has a decision, as `decide apply` writes it, or a score of each class; a label where it is known; and, where
    there are such columns, the time, the estimated risk, the groups of limits, and the chance with which the row was
    chosen to be labelled, if not all are. The exit status is 1 after an alarm. Hints from rows without labels are no
    alarms. The settings are those of the first run with a state.

    Args:
        rule: File of `decide fit`.
        logs: csv or parquet files of decisions, or of scores, that may grow.
        state: What was read so far; made by the first run.
        limit: A limit as of `decide fit`, such as 'dangerous <= 1 % of malignant by site', or 'dangerous <= reference
            of malignant'; repeatable.
        reference: Decisions before the deployment, for hints and for limits that name it.
        groups: Groups of a limit by a column; repeatable.
        confidence: 1 minus the probability that there is ever a false alarm.
        run_length: Also look for late changes, with a false alarm in so many labels on average.
        least_chance: The lowest chance that a row is labelled, with a column `chance`.
        late_labels: Rows with a label were logged before without it.
        prometheus: Also write the values in the text format of Prometheus.
    """
    read, written = [rule, *logs, *([] if reference is None else [reference])], list[Path]()
    for name, path in (("--state", state), ("--html", html), ("--prometheus", prometheus)):
        options.check_out(path, overwrite=overwrite or path is state, option=name, read=read)
        if path is not None and path.resolve() in written:
            raise typer.BadParameter(f"{path} is written by another option, too", param_hint=name)
        written += [] if path is None else [path.resolve()]

    from mpcs_torch.cli.failures import told_warnings
    from mpcs_torch.cli.progress import row_counter
    from mpcs_torch.learning import DecisionRule
    from mpcs_torch.monitoring.logs import LogReader
    from mpcs_torch.monitoring.watch import HINT, Watch, watch_logs
    from mpcs_torch.report.monitor import (
        alarm_sentence,
        monitor_table,
        verdict_of,
        write_monitor_report,
        write_prometheus,
    )

    loaded = DecisionRule.load(rule)
    asked: dict[str, Any] = {"limit": limit, "groups": groups, "confidence": confidence, "run_length": run_length}
    asked |= {"least_chance": least_chance, "late_labels": late_labels or None, "reference": reference}

    def reader_of(names: Mapping[str, Sequence[str]], *, is_whole: bool = False) -> LogReader:
        return LogReader(loaded, groups=names, target=target_column, from_logits=logits, is_whole=is_whole)

    def begin() -> tuple[Watch, LogReader]:
        if state.exists():
            given = [f"--{name.replace('_', '-')}" for name, value in asked.items() if value is not None]
            if given:
                raise typer.BadParameter(f"the settings of {state} stay as they are", param_hint=", ".join(given))
            watch = Watch.load(state, loaded.concern)
            watch.check_rule(rule)
        else:
            watch = _begin(rule, loaded, logs, reader_of, asked)
        before.extend((watch.rows, watch.labelled))
        return watch, reader_of(watch.settings.groups)

    before = list[int]()
    with told_warnings(), row_counter("read", logs) as advance:
        watch, raised = watch_logs(state, logs, begin, advance)
    if html is not None:
        write_monitor_report(watch, html, command=str(COMMAND_LINE))
    if prometheus is not None:
        write_prometheus(watch, prometheus)
    if as_json:
        seen = {"rows": watch.rows, "labelled": watch.labelled, "alarms": [alarm._asdict() for alarm in watch.alarms]}
        print_json({**seen, **{kind: monitor_table(watch, kind).records() for kind in watch.monitors}})
    else:
        for kind in watch.monitors:
            typer.echo(f"{text_of(monitor_table(watch, kind))}\n")
        say(f"{watch.rows - before[0]} new rows, {watch.labelled - before[1]} of them with a label.")
        say(verdict_of(watch))
    for alarm in raised:
        say(f"mpcs: new: {alarm_sentence(alarm)}", err=True)
    note(*[f"wrote {path}" for path in (html, prometheus) if path is not None])
    if any(alarm.kind != HINT for alarm in watch.alarms):
        raise typer.Exit(ALARM)


def _begin(
    rule: Path, loaded: Any, logs: list[Path], reader_of: "Callable[..., LogReader]", asked: dict[str, Any]
) -> "Watch":
    """Return a new watch with the settings that were asked for."""
    from mpcs_torch.functional.inputs.cautions import EvaluationWarning
    from mpcs_torch.learning import Limit
    from mpcs_torch.monitoring.logs import Place
    from mpcs_torch.monitoring.watch import Settings, Watch, digest

    texts = asked["limit"] or [str(limit) for limit in loaded.limits if not limit.is_budget]
    of_reference = [OF_REFERENCE in text for text in texts]
    if not texts:
        raise typer.BadParameter("the rule has no limit: give one", param_hint="--limit")
    if any(of_reference) and (asked["reference"] is None or not all(of_reference)):
        raise typer.BadParameter(
            "limits that name the reference need --reference, and all or none must", param_hint="--limit"
        )
    with options.refused_values(option="--limit"):
        limits = [Limit.parse(text.replace(OF_REFERENCE, PLACEHOLDER)) for text in texts]
        for one in limits:
            one.losses(loaded.concern)
    named = dict[str, list[str]]()
    for text in asked["groups"] or ():
        column, separator, names = text.partition("=")
        if not separator or not names:
            raise typer.BadParameter(f"must be COLUMN=A,B, but is {text!r}", param_hint="--groups")
        named[column] = [name.strip() for name in names.split(",")]
    sources = logs if asked["reference"] is None else [asked["reference"], *logs]
    for column in sorted({one.by for one in limits if one.by is not None} - set(named)):
        named[column] = sorted({name for source in sources for name in reader_of({}).names_in(source, column)})
        if not named[column]:
            raise typer.BadParameter(f"no row names a group yet: pass --groups {column}=A,B", param_hint="--limit")
    settings = Settings(
        rule=digest(rule),
        limits=[str(one) for one in limits],
        groups=named,
        confidence=0.95 if asked["confidence"] is None else asked["confidence"],
        run_length=asked["run_length"],
        least_chance=1.0 if asked["least_chance"] is None else asked["least_chance"],
        late_labels=bool(asked["late_labels"]),
        like_reference=any(of_reference),
    )
    pieces: list[LogRows] = []
    if asked["reference"] is not None:
        pieces = [rows for rows, _ in reader_of(named, is_whole=True).pieces(asked["reference"], Place())]
    if loaded.report is not None and loaded.report.is_clustered:
        told = "the rule was fitted to clusters, but a monitor takes rows as independent"
        why = "it alarms too often where rows of a cluster err together; log one row of each, drawn at random"
        warnings.warn(EvaluationWarning("E2", f"{told}: {why}"), stacklevel=2)
    with options.refused_values():
        return Watch(settings, loaded.concern, pieces)
