"""``mpcs benchmark``: which methods make fewer dangerous errors, at which accuracy and coverage."""

from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli.console import COMMAND_LINE, note, print_json, say, text_of
from mpcs_torch.cli.failures import told_how_to_go_on
from mpcs_torch.cli.options import AsJson, DataRoot, Out, Quiet, refused_values
from mpcs_torch.errors import quoted


def benchmark(
    tasks: Annotated[list[str] | None, typer.Argument(metavar="TASK...", show_default=False)] = None,
    method: Annotated[list[str] | None, typer.Option(show_default=False)] = None,
    data_root: DataRoot = Path("data"),
    out: Out = Path("runs"),
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
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
    from mpcs_torch.cli.progress import counting_bar

    names = []
    for part in tasks or [""]:
        found = [part] if part in TASKS else [name for name in TASKS if part.lower() in name.lower()]
        if not found:
            raise typer.BadParameter(f"TASK must be part of one of {quoted(list(TASKS))}, but got {quoted(part)}")
        names += [name for name in found if name not in names]
    for path in method or ():
        with refused_values():
            method_of(path)
    folder = out / "benchmark"
    trials = [Trials(name, data_root, folder, tuple(method or ())) for name in names]
    again = f"; finished runs are kept, and the same command goes on with the others: {COMMAND_LINE}"
    with told_how_to_go_on(lambda: again):
        results = sorted(results_of(trials, counting_bar), key=lambda result: names.index(result["task"]))
    save_results(results, folder)
    if as_json:
        print_json(results)
    else:
        for result in results:
            say(f"{result['task']}\n\n{text_of(task_table(result))}\n")
        say(text_of(summary_table(results)))
    note(f"wrote {folder / 'results.md'}, and for each task its values and a figure")
