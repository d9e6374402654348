"""``mpcs benchmark``: which methods make fewer dangerous errors, at which accuracy and coverage."""

from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli import options
from mpcs_torch.cli.console import COMMAND_LINE, note, print_result
from mpcs_torch.cli.failures import told_how_to_go_on
from mpcs_torch.cli.progress import counting_bar
from mpcs_torch.errors import quoted


@options.shared("json", "quiet")
def benchmark(
    tasks: Annotated[list[str] | None, typer.Argument(metavar="TASK...", show_default=False)] = None,
    method: Annotated[list[str] | None, typer.Option(show_default=False)] = None,
    data_root: options.DataRoot = Path("data"),
    out: options.Out = Path("runs"),
) -> None:
    """Compare ways to train and to decide by dangerous errors, accuracy and coverage.

    Every method trains for the same number of steps and has the same number of settings and learning rates, chosen on
    validation samples; then it is judged by fresh seeds. Runs are parallel and go to OUT/benchmark, with a table
    and a figure for each task; an interrupted benchmark is resumed. All tasks take hours; where they are run one at a
    time, the tables are of all that are done.

    Args:
        tasks: Names of tasks, or parts of them. Default: all.
        method: A method of your own, package.module:METHOD, beside ours; may be given more than once.
    """
    from mpcs_torch.benchmark.judging import Trials, results_of
    from mpcs_torch.benchmark.methods import method_of
    from mpcs_torch.benchmark.results import save_results, summary_table, task_table
    from mpcs_torch.benchmark.tasks import TASKS

    names = []
    for part in tasks or [""]:
        found = [part] if part in TASKS else [name for name in TASKS if part.lower() in name.lower()]
        if not found:
            raise typer.BadParameter(f"TASK must be part of one of {quoted(list(TASKS))}, but got {quoted(part)}")
        names += [name for name in found if name not in names]
    for path in method or ():
        with options.refused_values():
            method_of(path)
    folder = out / "benchmark"
    trials = [Trials(name, data_root, folder, tuple(method or ())) for name in names]
    again = f"; finished runs are kept, and the same command goes on with the others: {COMMAND_LINE}"
    with told_how_to_go_on(lambda: again):
        results = sorted(results_of(trials, counting_bar), key=lambda result: names.index(result["task"]))
    save_results(results, folder)
    tables = [part for result in results for part in (result["task"], task_table(result))]
    print_result(results, *tables, summary_table(results))
    note(f"wrote {folder / 'results.md'}, and for each task its values and a figure")
