"""``mpcs monitor``: watch the decisions of a deployment by its logs."""

import warnings
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from mpcs_torch.cli import options
from mpcs_torch.cli.console import (
    COMMAND_LINE,
    note,
    print_reading,
    print_result,
    row_counter,
    say,
)
from mpcs_torch.errors import InvalidValueError
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.exit_statuses import ExitStatus
from mpcs_torch.tables import Table, in_percent

if TYPE_CHECKING:
    from mpcs_torch.learning import DecisionRule
    from mpcs_torch.monitoring.watch import Watch

ALL = "all"
"""The value of --acknowledge that stands for all alarms."""
OPTIONS = ("label_column", "decision_column", "missing", "overwrite", "json", "quiet")


@options.shared(*OPTIONS)
def monitor(
    rule: Annotated[Path, options.file_argument("RULE")],
    logs: Annotated[list[Path], options.file_argument("LOG...")],
    state: Annotated[Path, typer.Option(dir_okay=False, writable=True)],
    reading: ReadOptions,
    limit: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", show_default="the rule's")
    ] = None,
    groups: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=A,B", show_default="those in the logs"),
    ] = None,
    confidence: Annotated[float | None, typer.Option(show_default="0.95")] = None,
    run_length: float | None = None,
    least_chance: Annotated[float | None, typer.Option(show_default="1")] = None,
    cluster_size: Annotated[
        float | None, typer.Option(metavar="ROWS", show_default="1")
    ] = None,
    acknowledge: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None,
    html: options.Html = None,
) -> None:
    """Read what was added to logs, and raise an alarm if a limit is exceeded.

    You may run it as often as you like: more runs do not cause more false alarms. A row has a decision, as
    `decide apply` writes it, and a label where it is known. Other columns are optional: `time`; `chance`, the
    probability with which the row was chosen to be labelled; and `risk` and `cost`, as `decide apply` writes them,
    which estimate the rate of dangerous errors and the cost of all rows. A limit by site needs a column `site`. The
    exit status is 4 if the state has an alarm that is not acknowledged. Otherwise, it is 5 if some decision has too few
    or too many labels to represent its rows, or if no label counts for one of the limits. The first run with a state
    fixes its settings.

    Args:
        rule: File of `decide fit`.
        logs: Files of decisions that may grow: text, or parquet.
        state: What was read so far; made by the first run.
        limit: A limit in the syntax of `decide fit`, such as 'dangerous <= 1 % of malignant by site'; repeatable.
        groups: The names of the groups in the column of a limit with `by`, such as site=north,south; repeatable.
        confidence: 1 minus the highest acceptable probability that this state ever raises a false alarm. For k states,
            one after another, 1 - 0.05 / k keeps the probability of a false alarm at 5 % for all of them together.
        run_length: Also look for late changes. On average, at least this number of labels passes before the first
            false alarm.
        least_chance: The lowest `chance` that a row with a label may have. Below 1, logs must have this column.
        cluster_size: The largest number of rows that err together, such as those of a patient or of a scanner's day.
        acknowledge: Clear the alarms of this rate, such as 'errors of bad', or of all rates (all), before the new rows
            are read. With these, a new test of the rate begins. Repeatable.
    """
    from mpcs_torch.io.atomic_files import holds
    from mpcs_torch.learning import DecisionRule
    from mpcs_torch.learning.rule_estimate import estimate_lines
    from mpcs_torch.monitoring.watch import Watch, watch_logs
    from mpcs_torch.report import monitor as page

    loaded = DecisionRule.load(rule)
    numbers: dict[str, object] = {
        "confidence": confidence,
        "run_length": run_length,
        "least_chance": least_chance,
        "cluster_size": cluster_size,
    }
    before = _Counts(0, 0, 0)

    def begin() -> Watch:
        """Return the watch in the file ``state``, or a new one; it is called when the file is locked."""
        nonlocal before
        if state.exists():
            options.refuse_given(
                {"limit": limit, "groups": groups, **numbers},
                "fixed_settings",
                state=str(state),
            )
            watch = Watch.load(state, loaded.concern)
            if not holds(rule, watch.settings.rule):
                raise InvalidValueError("rule_of_state", f"{rule}:")
            if acknowledge:
                names = acknowledge
                if names == [ALL]:
                    names = []  # the watch takes no name for all alarms
                with options.refused_values(option="--acknowledge"):
                    cleared = watch.acknowledge(*names)
                note(*(f"acknowledged: {page.alarm_sentence(alarm)}" for alarm in cleared))
        else:
            options.refuse_given(
                {"acknowledge": acknowledge},
                "some_alarm",
                state=str(state),
            )
            settings = {name: value for name, value in numbers.items() if value is not None}
            watch = _begin(rule, loaded, logs, limit, groups or (), settings)
        before = _Counts(watch.rows, watch.labelled, watch.referred)
        return watch

    with row_counter("read", logs) as advance:
        watch, raised = watch_logs(state, logs, begin, reading, print_reading, advance)
    estimates = watch.estimates()
    if html is not None:
        page.write_monitor_report(watch, html, estimates, command=str(COMMAND_LINE))
    tables = {kind: page.monitor_table(watch, kind) for kind in watch.monitors}
    plain = _plain(watch)
    plain["estimated"] = [estimate._asdict() for estimate in estimates]
    parts: list[Table | str] = ["\n".join(page.risk_verdict(watch)), *tables.values()]
    if estimates:
        parts.append("\n".join(estimate_lines(estimates)))
    print_result(plain, *parts, f"{_news(watch, before)}\n{page.assumptions(watch)}")
    for alarm in raised:
        say(f"mpcs: new: {page.alarm_sentence(alarm)}", err=True)
    if html is not None:
        note(f"wrote {html}")
    if watch.alarms:
        raise typer.Exit(ExitStatus.ALARM)
    if watch.cautions():
        raise typer.Exit(ExitStatus.NO_PROMISE)


class _Counts(NamedTuple):
    """The numbers of rows of a watch, of rows with a label, and of referrals."""

    rows: int
    labelled: int
    referred: int


def _plain(watch: "Watch") -> dict[str, Any]:
    """Return the content of --json, without estimates."""
    plain: dict[str, Any] = {
        "rows": watch.rows,
        "labelled": watch.labelled,
        "referred": watch.referred,
        "alarms": [alarm._asdict() for alarm in watch.alarms],
        "acknowledged": [alarm._asdict() for alarm in watch.acknowledged],
    }
    for kind, watched in watch.monitors.items():
        means = [mean._asdict() for mean in watched.shown_means()]
        for mean in means:
            del mean["is_share"]  # only figures ask for it
        plain[kind] = means
    plain["cautions"] = watch.cautions()
    return plain


def _news(watch: "Watch", before: _Counts) -> str:
    """Return sentences on the rows that were read since ``before``."""
    rows = watch.rows - before.rows
    labelled = watch.labelled - before.labelled
    news = f"{rows} new rows, {labelled} of them with a label."
    if not rows:
        return news
    share = in_percent((watch.referred - before.referred) / rows)
    of_all = ""
    if before.rows:
        of_all = f", {in_percent(watch.referred / watch.rows)} of all {watch.rows} rows"
    return f"{news} {share} of them are referrals{of_all}."


def _begin(
    rule: Path,
    loaded: "DecisionRule",
    logs: list[Path],
    limit_texts: list[str] | None,
    groups: Sequence[str],
    numbers: Mapping[str, Any],
) -> "Watch":
    """Return a new watch: its limits are ``limit_texts``, or by default those of ``loaded``.

    ``groups`` has texts COLUMN=A,B. A column of a limit that they lack gets the groups that occur in ``logs``.
    ``numbers`` are the other settings that were given.
    """
    from mpcs_torch.functional.inputs.evaluation_warnings import EvaluationWarning
    from mpcs_torch.learning import Limit
    from mpcs_torch.monitoring.watch import Settings, Watch, names_of_groups

    texts = limit_texts or [str(limit) for limit in loaded.limits]
    options.demand(texts, "some_limit", "--limit")
    with options.refused_values(option="--limit"):
        limits = [Limit.parse(text) for text in texts]
        for one in limits:
            one.losses(loaded.concern)
    named = dict[str, list[str]]()
    for text in groups:
        column, separator, names = text.partition("=")
        is_named = separator and names
        options.demand(is_named, "column_of_groups", "--groups", text=text)
        named[column] = [name.strip() for name in names.split(",")]
    columns = {one.by for one in limits if one.by is not None}
    for column in sorted(columns - named.keys()):
        names_in_logs = set[str]()
        for log in logs:
            names_in_logs.update(names_of_groups(log, column))
        named[column] = sorted(names_in_logs)
        options.demand(named[column], "groups_named", "--limit", column=column)
    settings = Settings(
        sha256(rule.read_bytes()).hexdigest(),
        [str(one) for one in limits],
        named,
        has_row_costs=loaded.has_row_costs,
        **numbers,
    )
    is_clustered = loaded.report is not None and loaded.report.is_clustered
    allows_for_clusters = settings.cluster_size != 1 or settings.least_chance != 1
    if is_clustered and not allows_for_clusters:
        doubt = "the rule was fitted to clusters, but a monitor takes rows as independent, and alarms too often if not"
        alone = "log one row of each, drawn at random, with `chance` 1 / (its rows) and --least-chance"
        why = "without the chance, limits are those of clusters, not of rows"
        warnings.warn(
            EvaluationWarning("E2", f"{doubt}: give --cluster-size, or {alone}; {why}"),
            stacklevel=2,
        )
    with options.refused_values():
        return Watch(settings, loaded.concern)
