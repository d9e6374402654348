"""``mpcs monitor``: watch the decisions of a deployment by its logs."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpcs_torch.cli import options
from mpcs_torch.cli.console import COMMAND_LINE, note, print_reading, print_result, say
from mpcs_torch.cli.progress import row_counter
from mpcs_torch.evaluation.files.reading import ReadOptions

if TYPE_CHECKING:
    from mpcs_torch.monitoring.logs import LogReader
    from mpcs_torch.monitoring.watch import Watch

ALARM, CAUTION = 1, 3
"""Exit status where a limit is exceeded, or where labels are such that no alarm means little."""
OF_REFERENCE = "<= reference"
PLACEHOLDER = "<= 1e-9"
"""Stands for the limit until the reference is known."""


@options.shared(*options.OF_CLASSES, "decision_column", "overwrite", "json", "quiet")
def monitor(
    rule: Annotated[Path, options.file_argument("RULE")],
    logs: Annotated[list[Path], options.file_argument("LOG...")],
    state: Annotated[Path, typer.Option(dir_okay=False, writable=True)],
    reading: ReadOptions,
    limit: Annotated[list[str] | None, typer.Option(metavar="TEXT", show_default="the rule's")] = None,
    reference: Annotated[Path | None, options.FILE] = None,
    groups: Annotated[list[str] | None, typer.Option(metavar="COLUMN=A,B", show_default="those in the logs")] = None,
    confidence: Annotated[float | None, typer.Option(show_default="0.95")] = None,
    run_length: float | None = None,
    least_chance: Annotated[float | None, typer.Option(show_default="1")] = None,
    cluster_size: Annotated[float | None, typer.Option(metavar="ROWS", show_default="1")] = None,
    label_age: Annotated[int | None, typer.Option(metavar="ROWS", min=0, show_default="0")] = None,
    html: options.Html = None,
    prometheus: Annotated[Path | None, typer.Option(dir_okay=False)] = None,
) -> None:
    """Read what was added to logs, and raise an alarm if a limit is exceeded, however often one looks.

    A row has a decision, as `decide apply` writes it, or a score of each class; a label where it is known; and, where
    there are such columns, the time, the estimated risk, the groups of limits, and the chance with which the row was
    chosen to be labelled, if not all are. The exit status is 1 after an alarm; else 3 after a caution, where decisions
    or limits lack labels. Hints from rows without labels are no alarms. The settings are those of the first run with a
    state.

    Args:
        rule: File of `decide fit`.
        logs: Files of decisions, or of scores, that may grow: text, or parquet.
        state: What was read so far; made by the first run.
        limit: A limit as of `decide fit`, such as 'dangerous <= 1 % of malignant by site', or 'dangerous <= reference
            of malignant'; repeatable.
        reference: Decisions before the deployment, for hints and for limits that name it.
        groups: Groups of a limit by a column; repeatable.
        confidence: 1 minus the probability that there is ever a false alarm with this state; with k states in turn,
            give 1 - 0.05 / k.
        run_length: Also look for late changes, with a false alarm in so many labels on average.
        least_chance: The lowest chance that a row is labelled, with a column `chance`.
        cluster_size: The most rows that err together, such as those of a patient or of a scanner's day.
        label_age: How many rows later all labels are there: the newest rows wait so long, and may still get labels.
        prometheus: Also write the values in the text format of Prometheus.
    """
    from mpcs_torch.learning import DecisionRule
    from mpcs_torch.monitoring.logs import LogReader
    from mpcs_torch.monitoring.watch import HINT, Watch, watch_logs
    from mpcs_torch.report import monitor as page

    loaded = DecisionRule.load(rule)
    asked: dict[str, Any] = {"limit": limit, "groups": groups, "confidence": confidence, "run_length": run_length}
    asked |= {"least_chance": least_chance, "cluster_size": cluster_size}
    asked |= {"label_age": label_age, "reference": reference}

    def reader_of(names: Mapping[str, Sequence[str]], *, is_whole: bool = False) -> LogReader:
        return LogReader(loaded, groups=names, reading=reading, is_whole=is_whole, tell=print_reading)

    def begin() -> tuple[Watch, LogReader]:
        if state.exists():
            options.refuse_given(asked, f"the settings of {state} stay as they are")
            watch = Watch.load(state, loaded.concern)
            watch.check_rule(rule)
        else:
            watch = _begin(rule, loaded, logs, reader_of, asked)
        before.extend((watch.rows, watch.labelled))
        return watch, reader_of(watch.settings.groups)

    before = list[int]()
    with row_counter("read", logs) as advance:
        watch, raised = watch_logs(state, logs, begin, advance)
    if html is not None:
        page.write_monitor_report(watch, html, command=str(COMMAND_LINE))
    if prometheus is not None:
        page.write_prometheus(watch, prometheus)
    tables = {kind: page.monitor_table(watch, kind) for kind in watch.monitors}
    plain = {"rows": watch.rows, "labelled": watch.labelled, "alarms": [alarm._asdict() for alarm in watch.alarms]}
    news = f"{watch.rows - before[0]} new rows, {watch.labelled - before[1]} of them with a label."
    if watch.settings.label_age:
        news += f" The newest {watch.settings.label_age} rows wait for their labels."
    plain |= {kind: table.records() for kind, table in tables.items()}
    plain |= {"cautions": watch.cautions()}
    print_result(plain, page.verdict_of(watch), *tables.values(), f"{news}\n{page.terms_of(watch)}")
    for alarm in raised:
        say(f"mpcs: new: {page.alarm_sentence(alarm)}", err=True)
    note(*[f"wrote {path}" for path in (html, prometheus) if path is not None])
    if any(alarm.kind != HINT for alarm in watch.alarms):
        raise typer.Exit(ALARM)
    if watch.cautions():
        raise typer.Exit(CAUTION)


def _begin(
    rule: Path, loaded: Any, logs: list[Path], reader_of: "Callable[..., LogReader]", asked: dict[str, Any]
) -> "Watch":
    """Return a new watch with the settings that were asked for."""
    from mpcs_torch.functional.inputs.evaluation_warnings import EvaluationWarning
    from mpcs_torch.learning import Limit
    from mpcs_torch.monitoring.logs import Place
    from mpcs_torch.monitoring.watch import Settings, Watch, digest

    reference = asked["reference"]
    texts = asked["limit"] or [str(limit) for limit in loaded.limits if not limit.is_budget]
    of_reference = [OF_REFERENCE in text for text in texts]
    if not texts:
        raise typer.BadParameter("the rule has no limit: give one", param_hint="--limit")
    if any(of_reference) and (reference is None or not all(of_reference)):
        problem = "limits that name the reference need --reference, and all or none must"
        raise typer.BadParameter(problem, param_hint="--limit")
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
    sources = logs if reference is None else [reference, *logs]
    for column in sorted({one.by for one in limits if one.by is not None} - set(named)):
        named[column] = sorted({name for source in sources for name in reader_of({}).names_in(source, column)})
        if not named[column]:
            raise typer.BadParameter(f"no row names a group yet: pass --groups {column}=A,B", param_hint="--limit")
    plain = ("confidence", "run_length", "least_chance", "cluster_size", "label_age")
    numbers = {name: asked[name] for name in plain if asked[name] is not None}
    settings = Settings(
        rule=digest(rule),
        limits=[str(one) for one in limits],
        groups=named,
        like_reference=any(of_reference),
        **numbers,
    )
    pieces = () if reference is None else reader_of(named, is_whole=True).pieces(reference, Place())
    is_clustered = loaded.report is not None and loaded.report.is_clustered
    if is_clustered and settings.cluster_size == settings.least_chance == 1:
        told = "the rule was fitted to clusters, but a monitor takes rows as independent, and alarms too often if not"
        alone = "log one row of each, drawn at random, with `chance` 1 / (its rows) and --least-chance"
        why = "without the chance, limits are those of clusters, not of rows"
        warnings.warn(EvaluationWarning("E2", f"{told}: give --cluster-size, or {alone}; {why}"), stacklevel=2)
    with options.refused_values():
        return Watch(settings, loaded.concern, [rows for rows, _ in pieces])
